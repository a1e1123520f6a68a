"""How epsilon is divided, and which marginals are measured: a function of public quantities alone.

The shares of epsilon and tau were tuned on Adult, five and eight columns (mixed-tables note); what
noise a marginal may have, and what is done for r < 700, on generated tables
(docs/research/drawn-rows.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from math import comb, prod

from shoal.errors import InputError
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent.fit import DENSE
from shoal.synthesis.maxent.one_way import is_line
from shoal.synthesis.maxent.pair_covers import Cover, cover

MOST_GROUPS = 32
WEAK = 50
"""r below which hardly more than one-way marginals survives."""
COARSENESS = 60
"""Measuring what groups lose costs that over n: the answer's noise then has scale 1/30."""
NOISE = Fraction(1, 10)
"""Mean total variation that noise alone may give to a two-way marginal."""
SELECTION_SHARE = Fraction(1, 10)
"""Part of the price of three-way marginals for selecting them; the rest is for measuring them."""


class PairMarginals(StrEnum):
    """Which marginals of several columns are measured, whatever the data."""

    NONE = "none"
    FULL = "full"
    BLOCKS = "blocks"
    PAIRS = "pairs"
    TRIPLES = "triples"


@dataclass(frozen=True)
class MaxentPlan:
    """How epsilon is divided; a function of public quantities.

    Attributes:
        marginals: which marginals are measured in step 4.
        groups: at most so many a column, G.
        one_way_share: of epsilon, for one-way marginals.
        weights: of the columns within that share.
        tau: how many times the fit overstates the noise's variance.
        strength: r = n epsilon / P, P the number of pairs: what is there for each pair.
        cover: the columns of each marginal of step 4, and its part of what is left of epsilon.
        coarseness_share: of epsilon, for measuring what groups lose; 0 if that is not measured.
        learns: whether two-way marginals say themselves how far they are believed.
        three_way: how many three-way marginals are selected after a first fit.
        three_way_share: of epsilon, for selecting and measuring them.
    """

    marginals: PairMarginals
    groups: int
    one_way_share: Fraction
    weights: tuple[int, ...]
    tau: float
    strength: Fraction
    cover: Cover
    coarseness_share: Fraction = Fraction(0)
    learns: bool = False
    three_way: int = 0
    three_way_share: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not 2 <= self.groups <= 255 or not 0 < self.one_way_share <= 1 or self.tau <= 0:
            raise InputError("A plan needs 2 to 255 groups, a share between 0 and 1, and tau > 0.")
        alone = self.marginals is PairMarginals.NONE
        if alone != (self.one_way_share == 1) or alone != (len(self.weights) == 1):
            raise InputError(
                "A plan for one column measures its one-way marginal alone; a plan for several "
                "columns measures marginals of several columns too."
            )
        if alone and self.coarseness_share:
            raise InputError("A plan for one column has no dependence test.")
        seen = {pair for block in self.cover.blocks for pair in combinations(block, 2)}
        if seen != set(combinations(range(len(self.weights)), 2)):
            raise InputError("The marginals of a plan must cover every pair of columns.")
        if min(self.coarseness_share, self.three_way_share) < 0:
            raise InputError("A plan's shares must not be negative.")
        if not alone and self.coarseness_share + self.three_way_share >= 1 - self.one_way_share:
            raise InputError("A plan must leave a share of epsilon for its two-way marginals.")
        if not 0 <= self.three_way <= comb(len(self.weights), 3) or bool(self.three_way) != (
            self.three_way_share > 0
        ):
            raise InputError(
                "A plan has a share of epsilon for three-way marginals if and only if it "
                "measures some, and no more of them than there are."
            )


def maxent_plan(domains: Sequence[Domain], *, n: int, epsilon: Fraction) -> MaxentPlan:
    """Choose marginals, groups and shares from public quantities alone.

    The marginal of a column that stands alone takes all of epsilon. With m > 1 columns,
    P = m (m - 1) / 2 and r = n epsilon / P:

        TRIPLES  if 3 <= m <= 5, r >= 10^4, and the cells of 16 groups per column can all be held
        a cover  otherwise, for the largest G from 2 to 32 for which noise alone gives two-way
                 marginals a mean total variation of at most 0.1 (G = 2 if there is none)

    The cover of columns of min(size, G) groups is `pair_covers.cover`. By its cost, and because the
    mean of a noise's absolute value is about 0.8 of its standard deviation, that total variation
    is 1.1 cost / (P (1 - share) n epsilon). It is called FULL if it is one marginal, PAIRS if all
    of them are two-way, and BLOCKS otherwise.

    The one-way share is 0.7 (r < 50), 0.5 (r < 350), 0.35 (r < 700), 0.15 (r < 10^4) or
    0.1; at least 0.3 with a numeric column and 0.6 if all are; numeric columns count twice.
    tau = n epsilon / 100. That of each pair is learnt (`posterior.taus`) for r < 700 where the fit
    cannot hold all cells, and for r < 50 always. Where it holds them, wider marginals say
    more than their pairs, to which what is learnt applies.

    What groups lose is measured, for the price 60 / n, where that is at most a tenth of epsilon,
    r >= 50, there are three columns or more, and a column has more codes than G: elsewhere the
    answer would be too dear, or could not change anything.

    With three to 16 columns and PAIRS or BLOCKS, where r >= 1000, a tenth of what one-way marginals
    leave is for three-way ones: as many as have room for six groups per column with a total
    variation of 0.1 from noise (`room`), at most m; and none where that is fewer than three
    (m > 3): one of many is not worth its price.
    """
    m = len(domains)
    if m < 1:
        raise InputError("maxent needs at least one column; found none.")
    budget = n * epsilon
    tau = float(budget) / 100
    if m == 1:
        return MaxentPlan(PairMarginals.NONE, 2, Fraction(1), (1,), tau, budget, Cover((), (), 0.0))
    lines = [is_line(domain) for domain in domains]
    sizes = [domain.size for domain in domains]
    strength = budget / comb(m, 2)
    one_way = next((share for bound, share in _SHARES if strength < bound), Fraction(1, 10))
    if any(lines):
        one_way = max(one_way, Fraction(3, 10))
    if all(lines):
        one_way = max(one_way, Fraction(3, 5))
    cells = prod(min(size, 16) for size in sizes)
    if 3 <= m <= 5 and strength >= 10_000 and cells <= DENSE:
        sets = tuple(combinations(range(m), 3))
        marginals, groups, chosen = PairMarginals.TRIPLES, 16, Cover(sets, (1,) * len(sets), 0.0)
    else:
        most = float(NOISE * comb(m, 2) * (1 - one_way) * budget) / 1.1
        groups, chosen = _finest(sizes, most)
        marginals = _named(chosen)
    finer = any(lines) or max(sizes) > groups
    coarse = m > 2 and marginals is not PairMarginals.TRIPLES and finer and strength >= WEAK
    coarseness = Fraction(COARSENESS, n) / epsilon if coarse else Fraction(0)
    if coarseness > Fraction(1, 10):
        coarseness = Fraction(0)
    fine = prod(min(size, groups) for size in sizes) > DENSE
    three_way, three_way_share = 0, (1 - one_way) / 10
    if (
        3 <= m <= _MOST_COLUMNS
        and strength >= _MUCH
        and marginals in {PairMarginals.PAIRS, PairMarginals.BLOCKS}
    ):
        three_way = min(room(n, three_way_share * epsilon, 1) // 6**3, m, comb(m, 3))
    if three_way < min(_FEWEST, comb(m, 3)) or not three_way:
        three_way, three_way_share = 0, Fraction(0)
    return MaxentPlan(
        marginals=marginals,
        groups=groups,
        one_way_share=one_way,
        weights=tuple(2 if line else 1 for line in lines),
        tau=tau,
        strength=strength,
        cover=chosen,
        coarseness_share=coarseness,
        learns=strength < (_LITTLE if fine else WEAK),
        three_way=three_way,
        three_way_share=three_way_share,
    )


def expected_errors(
    domains: Sequence[Domain], plan: MaxentPlan, *, n: int, epsilon: Fraction
) -> tuple[tuple[float, ...], dict[tuple[int, int], float]]:
    """What noise alone is expected to do to one-way and two-way marginals, by formula.

    One-way: the mean absolute error of the share of one category, or of one leaf of a number's
    tree. Counts have noise of scale 2 / e, whose mean absolute value is its scale: 2 / (n e). A
    tree's counts have e - min(e / 2, 2.5) of the column's price e.

    Two-way: the mean total variation, over groups. In a marginal k of price e_k the counts of two
    columns of A and B groups are sums over V_k cells, of variance 8 V_k / e_k^2; several marginals
    are weighted by the inverse. With s the standard deviation of what comes of it, and 0.8 s its
    mean absolute value, that is 0.4 A B s / n, at most 1.

    Neither counts what groups lose, nor what the fit gains by knowing that counts are not negative.
    """
    budget = float(epsilon)
    prices = [float(plan.one_way_share) * budget * w / sum(plan.weights) for w in plan.weights]
    counted = [
        price - min(price / 2, 2.5) if is_line(domain) else price
        for domain, price in zip(domains, prices, strict=True)
    ]
    one_way = tuple(min(2 / (n * price), 1.0) for price in counted)
    left = 1 - plan.one_way_share - plan.coarseness_share - plan.three_way_share
    sizes = [min(domain.size, plan.groups) for domain in domains]
    pairs = {}
    for a, b in combinations(range(len(domains)), 2):
        precision = 0.0
        for block, weight in zip(plan.cover.blocks, plan.cover.weights, strict=True):
            if a in block and b in block:
                price = float(left) * budget * weight / sum(plan.cover.weights)
                precision += price**2 / (8 * prod(sizes[j] for j in block if j not in (a, b)))
        pairs[a, b] = min(0.4 * sizes[a] * sizes[b] / (n * precision**0.5), 1.0)
    return one_way, pairs


def room(n: int, epsilon: Fraction, marginals: int) -> int:
    """Cells that a three-way marginal may have, of so many that share epsilon and their selection.

    The mean of the noise's absolute value is its scale, 2 / e, so a marginal of c cells has a
    total variation of c / (n e) from noise alone, which must not exceed `NOISE`.

    >>> room(12_000, Fraction(17, 20), 4)
    229
    """
    return int(NOISE * n * epsilon * (1 - SELECTION_SHARE) / marginals)


_LITTLE, _MUCH = 700, 1000
_MOST_COLUMNS = 16  # columns whose three-way marginals are all scored
_FEWEST = 3  # three-way marginals that are worth a selection
_SHARES = (
    (WEAK, Fraction(7, 10)),
    (350, Fraction(1, 2)),
    (_LITTLE, Fraction(35, 100)),
    (10_000, Fraction(15, 100)),
)


def _finest(sizes: Sequence[int], most: float) -> tuple[int, Cover]:
    """The largest number of groups whose cover costs at most so much, and that cover.

    More groups cost more, so halving finds it.
    """
    low, high = 2, max(min(max(sizes), MOST_GROUPS), 2)
    best = cover([min(size, low) for size in sizes])
    while low < high:
        middle = (low + high + 1) // 2
        found = cover([min(size, middle) for size in sizes])
        if found.cost <= most:
            low, best = middle, found
        else:
            high = middle - 1
    return low, best


def _named(chosen: Cover) -> PairMarginals:
    if len(chosen.blocks) == 1:
        return PairMarginals.FULL
    return PairMarginals.PAIRS if all(len(b) == 2 for b in chosen.blocks) else PairMarginals.BLOCKS
