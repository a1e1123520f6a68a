"""Covers of pairs: sets of marginals that together contain every pair of columns.

A block is a set of columns that are counted in one table. A cover is a set of blocks such that
every pair of columns lies in one of them. All pairs are a cover, and so is one table of all
columns; between them lie covers by few blocks of three or four columns. Few blocks share epsilon
in few parts; large blocks have many cells, whose noise adds up where a pair's table is summed from
them. The best cover depends on the sizes of the columns, which are public.

Noise. Let block k have a share s_k of epsilon, V_k cells and noise of scale 2 / (s_k epsilon). A
cell of its table of two columns a and b, of sizes D_a and D_b, sums V_k / (D_a D_b) cells, so
that its noise has standard deviation 2 sqrt(2) / (s_k epsilon) sqrt(V_k / (D_a D_b)). Over its
D_a D_b cells that adds up to

    2 sqrt(2) / (s_k epsilon) sqrt(V_k D_a D_b).

Let each pair be read from one block, and A_k be the sum of sqrt(V_k D_a D_b) over the pairs that
are read from block k. Then all pairs together have noise 2 sqrt(2) / epsilon sum_k A_k / s_k, which
is least for s_k in proportion to sqrt(A_k) (Cauchy and Schwarz), and is then

    2 sqrt(2) / epsilon cost,    cost = (sum_k sqrt(A_k))^2.

Where prices are in rho, noise of a block has standard deviation 1 / sqrt(s_k rho), and all pairs
together have noise sum_k A_k / sqrt(s_k rho): least for s_k in proportion to A_k^(2/3) (Hoelder),
and then cost / sqrt(rho) with cost = (sum_k A_k^(2/3))^(3/2). Both are (sum_k A_k^p)^(1/p), with
p = 1/2 for epsilon and p = 2/3 for rho, and shares in proportion to A_k^p. In rho many blocks cost
less, and covers have more of them.

So a cover with the least cost is wanted. Nobody needs the very best: `cover` is greedy. Of many
columns a search would take too long: they are put into bundles, which blocks take as a whole.

References:
    Qardaji, Yang, Li, "PriView: practical differentially private release of marginal contingency
    tables", SIGMOD 2014. doi:10.1145/2588555.2588575: covers of pairs by equal blocks of
    binary columns. Ours are the sizes, the shares and the search.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from math import ceil, prod, sqrt

from shoal.synthesis.maxent.structural_zeros import AllowedCells

PURE, CONCENTRATED = 1 / 2, 2 / 3
"""p of the module, for epsilon and for rho."""
_UNITS = 10_000  # a share of epsilon is a whole number of ten-thousandths, and one at least
_SEARCHED = 20
"""Columns, or bundles of columns, of which a cover is searched: more would take too long."""
_FAINT = 1e-9  # less than that share of a sum is rounding


@dataclass(frozen=True)
class Cover:
    """Blocks of columns, in lexicographic order, and how epsilon is shared among them.

    Attributes:
        blocks: the columns of each, by index, in increasing order.
        weights: shares of epsilon, in proportion to these whole numbers.
        cost: noise of all pairs, in units of 2 sqrt(2) / epsilon, or of 1 / sqrt(rho); see the
            module.
    """

    blocks: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    cost: float


def cover(
    sizes: Sequence[int], *, power: float = PURE, allowed: AllowedCells | None = None
) -> Cover:
    """Choose marginals that cover all pairs of columns with little noise, by public sizes.

    It begins with a block for each pair. A move adds a column to a block, which takes over all
    pairs inside it; a block without pairs disappears. The move that lowers the cost most is
    made, the first of equals, until none lowers it. One block of all columns is tried too. `power`
    is p of the module. With structural zeros a table has its allowed cells alone.

    More than 20 columns are put into 20 bundles or more, of tables of about equal size: 20 of them
    are searched as columns are, and of more every two are a block. The cheapest cover is taken, all
    pairs being one of them.

    With m columns, a move examines O(m^3) blocks. It takes some 20 ms for twelve columns, a quarter
    of a second for twenty and some seconds for more.

    >>> cover([2, 2, 2, 2]).blocks
    ((0, 1, 2, 3),)
    >>> cover([40, 40, 2, 2]).blocks
    ((0, 1), (0, 2, 3), (1, 2, 3))
    """
    if allowed is None:
        return _cover_of_sizes(tuple(sizes), power)
    return _cover(_Roots(sizes, allowed), power)


@lru_cache(maxsize=512)
def _cover_of_sizes(sizes: tuple[int, ...], power: float) -> Cover:
    """Cache covers, because audits and comparisons request the same one for each release."""
    return _cover(_Roots(sizes, None), power)


def _cover(roots: "_Roots", power: float) -> Cover:
    """Search the cover, given the square roots of table sizes."""
    grow = sqrt if power == PURE else partial(_raise_to, power=power)
    blocks, amounts = min(
        (_search(roots, bundles, grow) for bundles in _bundle(roots.sizes)),
        key=lambda searched: sum(map(grow, searched[1])),
    )
    cost = sum(map(grow, amounts)) ** (1 / power)
    full = roots.whole()
    if full <= cost * (1 + _FAINT):
        return Cover((tuple(range(len(roots.sizes))),), (1,), full)
    total = sum(map(grow, amounts))
    weights = [max(1, round(_UNITS * grow(amount) / total)) for amount in amounts]
    ordered = sorted(zip(blocks, weights, strict=True))
    return Cover(tuple(b for b, _ in ordered), tuple(w for _, w in ordered), cost)


def _raise_to(amount: float, power: float) -> float:
    return float(amount**power)


def _bundle(sizes: Sequence[int]) -> list[list[tuple[int, ...]]]:
    """Put columns into bundles of about equal tables, in several ways; few columns stay apart."""
    m, ways = len(sizes), []
    for count in sorted({min(m, max(_SEARCHED, ceil(m / k))) for k in range(1, m + 1)}):
        bundles: list[list[int]] = [[] for _ in range(count)]
        volumes = [1] * count
        for j in sorted(range(m), key=lambda j: (-sizes[j], j)):
            least = volumes.index(min(volumes))
            bundles[least].append(j)
            volumes[least] *= sizes[j]
        ways.append([tuple(sorted(bundle)) for bundle in bundles])
    return ways


def _search(
    roots: "_Roots", bundles: Sequence[tuple[int, ...]], grow: Callable[[float], float]
) -> tuple[list[tuple[int, ...]], list[float]]:
    """Cover all pairs by blocks of bundles, with A_k of each; few bundles by a greedy search."""
    joined = roots if len(bundles) == len(roots.sizes) else roots.join(bundles)
    blocks: list[tuple[int, ...]] = list(combinations(range(len(bundles)), 2))
    if len(bundles) <= _SEARCHED:
        blocks, amounts = _greedy(joined, grow)
        if joined is roots:
            return blocks, amounts
    blocks = sorted(tuple(sorted(j for k in block for j in bundles[k])) for block in blocks)
    volumes = [roots.volume(block) for block in blocks]
    owner: dict[tuple[int, int], int] = {}
    for k in sorted(range(len(blocks)), key=lambda k: volumes[k]):
        for pair in combinations(blocks[k], 2):
            owner.setdefault(pair, k)
    amounts = [0.0] * len(blocks)
    for pair, k in owner.items():
        amounts[k] += roots.pair(*pair, volumes[k])
    return blocks, amounts


class _Roots:
    """Square roots of the numbers of cells in tables."""

    def __init__(
        self,
        sizes: Sequence[int],
        allowed: AllowedCells | None,
        bundles: Sequence[tuple[int, ...]] | None = None,
    ) -> None:
        self.sizes, self._allowed = sizes, allowed
        self._roots = [sqrt(size) for size in sizes]
        self._bundles = bundles or [(j,) for j in range(len(sizes))]

    def join(self, bundles: Sequence[tuple[int, ...]]) -> "_Roots":
        """Return the roots of bundles of columns."""
        sizes = [prod(self.sizes[j] for j in bundle) for bundle in bundles]
        return _Roots(sizes, self._allowed, bundles)

    def volume(self, block: Sequence[int]) -> float:
        """Return the root for the columns of a block."""
        if self._allowed is None:
            return prod(self._roots[j] for j in block)
        return self._allowed.root(tuple(sorted(j for k in block for j in self._bundles[k])))

    def pair(self, a: int, b: int, times: float = 1.0) -> float:
        """Return the root for two columns, times a factor."""
        return times * self.volume((a, b))

    def grown(self, block: tuple[int, ...], volume: float, j: int) -> float:
        """Return the root for a block with one more column."""
        if self._allowed is None:
            return volume * self._roots[j]
        return self.volume((*block, j))

    def whole(self) -> float:
        """Return A_k of a block of all columns."""
        every = tuple(range(len(self.sizes)))
        return self.volume(every) * _inside(every, self)


def _greedy(
    roots: _Roots, grow: Callable[[float], float]
) -> tuple[list[tuple[int, ...]], list[float]]:
    """Search blocks that own at least one pair each, with A_k of each."""
    columns = range(len(roots.sizes))
    blocks: list[tuple[int, ...]] = list(combinations(columns, 2))
    owner = {pair: k for k, pair in enumerate(combinations(columns, 2))}
    volumes = [roots.pair(a, b) for a, b in owner]  # roots of the numbers of cells
    amounts = [volume**2 for volume in volumes]
    while True:
        best, move = -_FAINT * sum(map(grow, amounts)), None
        for k, block in enumerate(blocks):
            for j in columns:
                if amounts[k] and j not in block:
                    wider = tuple(sorted((*block, j)))
                    wider_cost = roots.grown(block, volumes[k], j) * _inside(wider, roots)
                    # The change in the root of the cost, if other blocks lose the pairs that are
                    # taken.
                    change = grow(wider_cost) - sum(
                        grow(amounts[other]) - grow(_rest(amounts[other], lost))
                        for other, lost in _loss_by_block(wider, roots, owner, volumes).items()
                    )
                    if change < best:
                        best, move = change, (k, j, wider)
        if move is None:
            alive = [k for k in range(len(blocks)) if amounts[k]]
            return [blocks[k] for k in alive], [amounts[k] for k in alive]
        k, j, wider = move
        volumes[k], blocks[k] = roots.grown(blocks[k], volumes[k], j), wider
        for other, lost in _loss_by_block(blocks[k], roots, owner, volumes).items():
            amounts[other] = _rest(amounts[other], lost)
        amounts[k] = volumes[k] * _inside(blocks[k], roots)
        owner |= dict.fromkeys(combinations(blocks[k], 2), k)


def _loss_by_block(
    block: tuple[int, ...],
    roots: _Roots,
    owner: dict[tuple[int, int], int],
    volumes: Sequence[float],
) -> dict[int, float]:
    """Return what each block loses of its A_k if another one takes all pairs inside it."""
    taken: dict[int, float] = {}
    for a, b in combinations(block, 2):
        other = owner[a, b]
        taken[other] = taken.get(other, 0.0) + roots.pair(a, b, volumes[other])
    return taken


def _inside(block: tuple[int, ...], roots: _Roots) -> float:
    """Sum of sqrt(D_a D_b) over the pairs inside a block."""
    return sum(roots.pair(a, b) for a, b in combinations(block, 2))


def _rest(amount: float, taken: float) -> float:
    """Return the remainder, or 0 if it is only rounding error."""
    return amount - taken if amount - taken > _FAINT * amount else 0.0
