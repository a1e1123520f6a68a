"""Full-domain generalisation: one level per column for the whole table, of least loss.

A node of the lattice says for each column at which level of its hierarchy all its values are
released. Records with equal labels are an equivalence class. At a node, classes that do not keep
what is required are suppressed with all their records, if these are at most `limit`; otherwise the
node fails. Of the nodes that do not fail, the one of least loss is returned. Ties go to the lowest
levels, as the mean share of the way up, and then to the node that the search reaches first, which
depends on counts alone and not on the order of the records.

**What is pruned, and why that loses nothing.** Let u be above v if no level of u is lower. Each
class of u is then a union of classes of v, because levels are nested.

1.  *k.* A record in a class of k or more at v is in one at u. So the records that lack k at u are
    some of those that lack it at v: if they are more than the limit at u, they are at v. A node at
    which k fails closes all nodes below it. That holds in persons, too. Without suppression one
    class is enough: the sizes of one record's class at all nodes close those where it is below k.
2.  *Distinct l-diversity.* A union has the values of each part: the same argument.
3.  *The other l-diversities and t-closeness.* Two classes that keep one of them keep it together:
    entropy is concave, the largest share and the distances are convex, and under the recursive
    kind r1 < c (r_l + ...) adds up. So if no class at v lacks them, none at u does: without
    suppression (`limit` 0) a failing node closes all below it. With suppression it does not: a
    class that keeps the model may lack it once it is merged with one that was suppressed. Then a
    node closes those below it by k, and by the least size that classes need (`_least_size`), which
    is a k of its own: smaller classes are suppressed whatever else is. Counted in persons, l and t
    are not kept by merging, see `shoal.privacy_models.decided`; there a node closes by k alone.
4.  *Loss.* With B(v) the loss of v if nothing were suppressed, B(v) <= loss(v) and B(v) <= B(u):
    a node closes all above it once B(v) is not below the best loss so far (or, where it is equal,
    the levels are not lower). For each loss:
    discernibility has the sum of squares of all classes, and a suppressed record costs n, no less
    than the size of its class; unions have larger squares. Granularity and entropy are sums over
    cells that do not fall with the level, and a suppressed cell costs as much as the root. The
    average class size is n over the number of classes, of which suppressed records are one, and
    unions are fewer. The error of COUNT queries has no such bound: B is 0, and every node that
    keeps what is required is looked at.

t-closeness compares with the records that are left, as a check of the release does. A class that
fails is suppressed, which changes that distribution; this is repeated until none fails. This rule
need not give the least possible suppression.

**The search** follows Flash: start at the open node of least B, climb along open nodes, look at the
last one of that path, bisect the rest, and close what follows from each node. The classes of a
node, by confidential value where a model asks for it, are merged from those of the node below it
with the fewest that were kept. For several k the same lattice serves: what fails at one k fails at
a larger one.

Cost: O(c d) for each node that is looked at, c being the classes it is merged from; at most all
nodes. Memory: four numbers per node, and up to `ROOM` kept classes.

References:
    Kohlmayer, Prasser, Eckert, Kemper and Kuhn, "Flash: efficient, stable and optimal
    k-anonymity", PASSAT 2012. doi:10.1109/SocialCom-PASSAT.2012.52
    LeFevre, DeWitt and Ramakrishnan, "Incognito: efficient full-domain k-anonymity", SIGMOD 2005.
    doi:10.1145/1066157.1066164
    Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, "l-diversity", TKDD 1 (2007), on
    monotonicity. doi:10.1145/1217299.1217302
    Li, Li and Venkatasubramanian, "t-closeness", ICDE 2007, generalisation property.
    doi:10.1109/ICDE.2007.367856
    Bayardo and Agrawal, ICDE 2005 (discernibility). doi:10.1109/ICDE.2005.42
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import (
    Distance,
    Diversity,
    LDiversity,
    Progress,
    TCloseness,
    silent,
    whole_numbers,
)
from shoal.core._arrays import Floats, Ints, Unsigned32
from shoal.errors import InputError
from shoal.partition.cell_costs import CellCosts
from shoal.partition.kernels import full_domain as kernels
from shoal.partition.requirement import Requirement, below, longest_way, rules_of

MOST_NODES = 20_000_000
"""A lattice of more nodes is refused."""
ROOM = 4_000_000
"""Entries that are kept to merge others from, over all nodes."""
MOST_KEPT = 20_000
"""Nodes whose entries are kept."""
EFFORT = 20_000_000
"""Rows that are merged between two reports of progress."""
_WIDE = 2**62

Node = tuple[int, ...]
Judge = Callable[[Ints], Ints]
"""Takes the class of each record, -1 where suppressed, and returns the classes that fail."""
Rating = Callable[[Ints, Ints, Ints], float]
"""Takes the levels of a node, a leaf for each column and class, and the records of each class that
is left, and returns the loss."""


class Loss(StrEnum):
    """The loss that the chosen node minimises."""

    DISCERNIBILITY = "discernibility"
    GRANULARITY = "granularity"
    ENTROPY = "entropy"
    CLASS_SIZE = "average-class-size"
    COUNT_ERROR = "count-error"


@dataclass(frozen=True, eq=False)
class Generalisation:
    """The node of least loss, and its effect on the records.

    Attributes:
        levels: of each column.
        labels: equivalence class of each record, from 0; -1 where it is suppressed.
        loss: of the node: discernibility over n^2, or the mean of cells from 0 to 1, or the mean
            number of records in a class.
        looked_at: number of nodes whose classes were counted.
        nodes: number of nodes of the lattice.
    """

    levels: Node
    labels: Ints
    loss: float
    looked_at: int
    nodes: int


class LatticeOptions(TypedDict, total=False):
    """The options of a search, besides records, hierarchies and k.

    Attributes:
        loss: which one; by default discernibility.
        limit: records that may be suppressed; by default none.
        require: what every class must keep beside k, in records.
        units: person of each record, where some have several.
        judge: decides on the classes of a node that keeps k, in place of `require`; where persons
            have several records.
        rating: the loss of a node, if it is to be the error of COUNT queries.
        weights: of the columns, under granularity and entropy; by default equal.
        penalties: of each column levels by leaves, from 0 to 1: what granularity takes for a label.
            By default (leaves of the label - 1) / (leaves - 1).
        between: lowest and highest level of each column that may be chosen.
        times: how many records each row of the codes stands for; by default one.
        progress: called as nodes are closed.
    """

    loss: Loss
    limit: int
    require: Sequence[Requirement]
    units: Ints | None
    judge: Judge | None
    rating: Rating | None
    weights: Sequence[float] | None
    penalties: Sequence[ArrayLike] | None
    between: Sequence[tuple[int, int]] | None
    times: Ints | None
    progress: Progress


def full_domain(
    codes: ArrayLike, hierarchies: Sequence[ArrayLike], k: int, **options: Unpack[LatticeOptions]
) -> Generalisation | None:
    """Find the node of least loss that satisfies all requirements, exactly.

    Args:
        codes: records by columns, the leaf of each cell as a whole number from 0.
        hierarchies: of each column levels by leaves: the label of each leaf at each level, as whole
            numbers from 0. At level 0 every leaf has its own.
        k: smallest number of records, or of persons, in a class.
        options: see `LatticeOptions`.

    Returns:
        The best node, or None if every node fails.

    Raises:
        InputError: levels are not nested, the lattice is too large, or the input does not fit.

    >>> tree = [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]]
    >>> full_domain([[0], [1], [2], [3]], [tree], 2).levels
    (1,)
    """
    return frontier(codes, hierarchies, [k], **options)[0]


def frontier(
    codes: ArrayLike,
    hierarchies: Sequence[ArrayLike],
    ks: Sequence[int],
    **options: Unpack[LatticeOptions],
) -> list[Generalisation | None]:
    """Find the node of least loss for each of several k, in one pass over the lattice.

    What fails at a k fails at a larger one, and bounds do not depend on k: so neither is computed
    again. Arguments are those of `full_domain`, but for `ks`, which must rise.

    >>> tree = [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]]
    >>> [found.levels for found in frontier([[0], [1], [2], [3]], [tree], [1, 2, 4])]
    [(0,), (1,), (2,)]
    """
    if any(a >= b for a, b in pairwise(ks)):
        raise InputError("Expected values of k that rise.")
    search, lattice = prepare(codes, hierarchies, options)
    progress = options.get("progress", silent)
    return [search.best(lattice, k, progress) for k in ks]


def prepare(
    codes: ArrayLike, hierarchies: Sequence[ArrayLike], options: LatticeOptions
) -> "tuple[Search, kernels.Lattice]":
    """Make a search and its unexplored lattice."""
    judge, rating = options.get("judge"), options.get("rating")
    loss = options.get("loss", Loss.DISCERNIBILITY)
    models = [] if judge else list(options.get("require", ()))
    table = _Table.of(codes, hierarchies, models, options.get("units"), options.get("times"))
    costs = _costs(table, loss, options.get("weights"), options.get("penalties"))
    if (rating is None) == (loss is Loss.COUNT_ERROR):
        raise InputError("Expected a rating for the error of COUNT queries, and for no other loss.")
    search = Search(table, options.get("limit", 0), loss, models, judge, rating, costs)
    return search, search.lattice(_shape(table, options.get("between")))


@dataclass(frozen=True, eq=False)
class _Table:
    """Distinct combinations of leaves and confidential values, with counts.

    Attributes:
        rows: the combinations; confidential values are numbered over all models together.
        values: for each model, the value of each such number.
        where: the combination of each record.
        trees: labels by level and leaf, of each column.
    """

    rows: kernels.Rows
    values: Ints
    where: Ints
    trees: tuple[Ints, ...]
    units: Ints | None

    @classmethod
    def of(
        cls,
        codes: ArrayLike,
        hierarchies: Sequence[ArrayLike],
        require: Sequence[Requirement],
        units: Ints | None,
        times: Ints | None,
    ) -> "_Table":
        cells = np.asarray(codes)
        n = len(cells)
        if cells.ndim != 2 or not cells.size or cells.shape[1] != len(hierarchies):
            raise InputError("Expected records by columns, and a hierarchy for each column.")
        trees = tuple(np.asarray(tree, np.int64) for tree in hierarchies)
        labels, starts = _side_by_side(trees)
        integers = whole_numbers(cells.ravel(), "codes").reshape(cells.shape)
        leaves = kernels.place_leaves(np.require(integers, requirements=["C", "W"]), starts)
        if not len(leaves):
            raise InputError("Expected codes of leaves that the hierarchy has.")
        widths = kernels.widths_of(labels, starts)
        if not len(widths):
            raise InputError("Levels of a hierarchy must be nested.")
        secret, values = _together(require, n)
        rows = kernels.Rows(
            leaves=leaves,
            secret=secret,
            secrets=values.shape[1],
            counts=np.ones(n, np.int64) if times is None else whole_numbers(times, "times"),
            labels=labels,
            starts=starts,
            widths=widths,
            kind=kernels.SQUARES,
            gaps=np.zeros(labels.shape),
        )
        lowest, every = np.zeros(len(trees), np.int64), np.arange(n, dtype=np.uint32)
        keys, room = kernels.key_entries(rows, lowest, every)
        firsts, counts, where = kernels.merge(keys, rows.counts, room)
        rows = rows._replace(leaves=leaves.take(firsts, 1), secret=secret[firsts], counts=counts)
        return cls(rows, values, where, trees, units)


def _side_by_side(trees: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Concatenate the labels of all columns by level and leaf; also return each column's start."""
    wrong = InputError("Expected levels by leaves, every leaf with its own label at 0.")
    if any(tree.ndim != 2 for tree in trees):
        raise wrong
    many = [tree.shape[1] for tree in trees]
    starts = np.cumsum([0, *many])
    labels = np.empty((max(map(len, trees)), starts[-1]), np.int64)
    for tree, first, end in zip(trees, starts, starts[1:], strict=False):
        labels[: len(tree), first:end] = tree
        labels[len(tree) :, first:end] = tree[-1]
    if (
        labels.min() < 0
        or (labels[0] + np.repeat(starts[:-1], many) != np.arange(starts[-1])).any()
    ):
        raise wrong
    return labels, starts


def _together(require: Sequence[Requirement], n: int) -> tuple[Unsigned32, Ints]:
    """Number the confidential values of all models together; also return the values by number."""
    if not require:
        return np.zeros(n, np.uint32), np.zeros((0, 1), np.int64)
    if len(require) == 1:
        return require[0].codes.astype(np.uint32), np.arange(int(require[0].width or 1))[None]
    codes = np.array([rule.codes for rule in require], np.int64)
    values, secret = np.unique(codes, axis=1, return_inverse=True)
    return secret.ravel().astype(np.uint32), np.ascontiguousarray(values)


def _costs(
    table: _Table,
    loss: Loss,
    weights: Sequence[float] | None,
    penalties: Sequence[ArrayLike] | None,
) -> CellCosts | None:
    """Compute the costs of cells, if the loss is a sum over them."""
    d = len(table.trees)
    heavy = np.ones(d) if weights is None else np.asarray(weights, np.float64)
    if heavy.shape != (d,) or (heavy < 0).any() or not heavy.sum() > 0:
        raise InputError("Expected a weight of 0 or more for each column, and one above 0.")
    if loss not in {Loss.GRANULARITY, Loss.ENTROPY}:
        return None
    entropy = loss is Loss.ENTROPY
    return CellCosts.of(table.rows, table.trees, heavy, penalties, entropy=entropy)


def _shape(table: _Table, between: Sequence[tuple[int, int]] | None) -> list[tuple[int, int]]:
    limits = [(0, len(tree) - 1) for tree in table.trees] if between is None else list(between)
    for (low, high), tree in zip(limits, table.trees, strict=True):
        if not 0 <= low <= high < len(tree):
            raise InputError(f"Expected levels from 0 to {len(tree) - 1}, found {low} to {high}.")
    nodes = math.prod(high - low + 1 for low, high in limits)
    if nodes > MOST_NODES:
        raise InputError(
            f"The lattice has {nodes:,} nodes; at most {MOST_NODES:,} are searched. Limit the "
            "levels."
        )
    return limits


@dataclass(eq=False)
class Search:
    """A search for several k."""

    table: _Table
    limit: int
    loss: Loss
    require: Sequence[Requirement]
    judge: Judge | None
    rating: Rating | None
    costs: CellCosts | None

    def __post_init__(self) -> None:
        table = self.table
        self.n = int(table.rows.counts.sum())
        self.limit = min(self.limit, self.n - 1)
        kinds = {Loss.DISCERNIBILITY: kernels.SQUARES, Loss.CLASS_SIZE: kernels.CLASSES}
        self.rows = table.rows._replace(kind=kinds.get(self.loss, kernels.CELLS))
        if self.costs is not None:
            self.rows = self.rows._replace(gaps=self.costs.gaps)
        # Under the ratio distance the rules for the records that are left are made anew.
        self.ratio = self.limit > 0 and any(
            getattr(rule.guarantee, "distance", None) is Distance.RATIO for rule in self.require
        )
        self.compiled = not self.ratio and all(
            option is None for option in (table.units, self.judge, self.rating)
        )
        self.models = self._models(self.require, len(table.where))

    def _models(self, require: Sequence[Requirement], n: int) -> kernels.Models:
        # Rounded down only if the denominator is so large that 64 bits would overflow.
        limits = [
            below(min(rule.guarantee.t, Fraction(1)) * way, _WIDE // (2 * self.n * way))
            if isinstance(rule.guarantee, TCloseness)
            else Fraction(0)
            for rule, way in zip(require, map(longest_way, require), strict=True)
        ]
        rules = rules_of(require, n)
        return kernels.Models(
            rules=rules,
            values=self.table.values,
            over=np.array([x.numerator for x in limits], np.int64),
            under=np.array([x.denominator for x in limits], np.int64),
            moving=not self.ratio and any(isinstance(r.guarantee, TCloseness) for r in require),
            monotone=not self.limit
            or all(getattr(rule.guarantee, "kind", None) is Diversity.DISTINCT for rule in require),
            least=max(
                (
                    _least_size(rule, rules.total[first:end], rules.records - self.limit)
                    for rule, (first, end) in zip(require, pairwise(rules.first), strict=True)
                ),
                default=1,
            ),
        )

    def best(self, lattice: kernels.Lattice, k: int, progress: Progress) -> Generalisation | None:
        """Return the node of least loss, reusing what a smaller k showed of the lattice."""
        lattice.passed[:] = False
        lattice.best[:] = math.inf, -1.0
        lattice.at[: kernels.KEPT] = [0, 0, 0, -1, 0, -1, 0]
        # The path from the lowest node closes most others; only what it leaves is put in order.
        self._explore(lattice, k, progress)
        left = np.flatnonzero((lattice.bound <= lattice.best[0]) & (lattice.bound < math.inf))
        lattice.at[kernels.DONE] = 0
        order = left[np.argsort(lattice.guess[left], kind="stable")]
        self._explore(lattice._replace(order=order), k, progress)
        return self._best_found(lattice, k)

    def _explore(self, lattice: kernels.Lattice, k: int, progress: Progress) -> None:
        while not self._explore_more(lattice, k):
            progress("searching the lattice", int(lattice.at[kernels.DONE]), len(lattice.order))

    def rate_node(self, levels: Ints, k: int) -> tuple[float, float, bool, int]:
        """Compute what a node does, from scratch.

        Return its loss, infinite if it fails; a lower bound on it; whether all nodes below it fail
        too; and the number of suppressed records, where counting stops once they are too many.
        """
        firsts, sizes, _, failing = self._find_suppressed(levels, k)
        (known,) = self._bounds(levels, np.ones_like(levels))
        bound = kernels.bound_of(self.rows, sizes, float(known))
        closes = int(sizes[failing == _LACKS_K].sum()) > self.limit
        gone = int(sizes[failing > 0].sum())
        if gone > self.limit:
            closes |= self.judge is None and self.models.monotone
            return math.inf, bound, closes, gone
        if self.rating is None:
            loss = kernels.loss_of(self.rows, levels, firsts, sizes, failing, bound)
        else:
            left = failing == 0
            leaves = self.rows.leaves[:, firsts[left]] - self.rows.starts[:-1, None]
            loss = self.rating(levels, leaves, sizes[left])
        return loss, bound, False, gone

    def _explore_more(self, lattice: kernels.Lattice, k: int) -> bool:
        """Explore some more nodes; return whether none is left."""
        if self.compiled:
            return kernels.explore(self.rows, self.models, lattice, k, self.limit, EFFORT)
        node = kernels.advance(lattice)
        if node < 0:
            return True
        loss, bound, closes, _ = self.rate_node(levels_of(lattice, node), k)
        kernels.settle(lattice, node, closes, bound, loss)
        return False

    def _best_found(self, lattice: kernels.Lattice, k: int) -> Generalisation | None:
        if lattice.at[kernels.CHOSEN] < 0:
            return None
        node = levels_of(lattice, int(lattice.at[kernels.CHOSEN]))
        if self.limit:
            _, _, labels, failing = self._find_suppressed(node, k)
            labels = np.where(failing > 0, -1, np.cumsum(failing == 0) - 1)[labels]
        else:
            _, _, labels = kernels.classes_of(self.rows, node)
        return Generalisation(
            tuple(node.tolist()),
            labels.take(self.table.where),
            float(lattice.best[0]),
            int(lattice.at[kernels.LOOKED]),
            len(lattice.bound),
        )

    def lattice(self, between: Sequence[tuple[int, int]]) -> kernels.Lattice:
        """Make an unexplored lattice."""
        low = np.array([first for first, _ in between], np.int64)
        shape = np.array([last - first + 1 for first, last in between], np.int64)
        nodes, d = math.prod(shape.tolist()), len(shape)
        bound = self._bounds(low, shape)
        height = _outer(
            [
                np.arange(a, a + s) / max(len(tree) - 1, 1)
                for tree, a, s in zip(self.table.trees, low, shape, strict=True)
            ]
        )
        guess = height if self.costs is None else bound.copy()
        return kernels.Lattice(
            low=low,
            shape=shape,
            strides=np.append(np.cumprod(shape[:0:-1])[::-1], 1),
            bound=bound,
            passed=np.zeros(nodes, dtype=bool),
            height=height,
            guess=guess,
            order=np.zeros(1, np.int64),
            path=np.zeros(int((shape - 1).sum()) + 1, np.int64),
            best=np.zeros(2),
            at=np.zeros(8, np.int64),
            everything=np.arange(len(self.rows.counts), dtype=np.uint32),
            nodes=np.empty((MOST_KEPT, d), np.int32),
            begin=np.zeros(MOST_KEPT + 1, np.int64),
            rows=np.empty(ROOM, np.uint32),
            counts=np.empty(ROOM, np.int64),
        )

    def _bounds(self, low: Ints, shape: Ints) -> Floats:
        """Compute a lower bound on the loss of each node before the search."""
        if self.costs is not None:
            means = zip(self.costs.mean, low, shape, strict=True)
            return _outer([mean[a : a + s] for mean, a, s in means])
        if self.rating is not None:
            return np.zeros(math.prod(shape.tolist()))
        # There are no more classes than combinations of labels.
        widths = zip(self.rows.widths, low, shape, strict=True)
        labels = _outer(
            [width[a : a + s].astype(np.float64) for width, a, s in widths], np.multiply
        )
        classes = np.minimum(labels, self.n)
        scale = 1.0 if self.loss is Loss.DISCERNIBILITY else self.n
        return scale / classes * (1.0 - 1e-9)

    def _find_suppressed(self, node: Ints, k: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return a node's classes: a row and the size of each, each row's class, and failures."""
        table = self.table
        firsts, sizes, labels = kernels.classes_of(self.rows, node)
        persons = sizes
        if table.units is not None:
            most = int(table.units.max()) + 1
            pairs = np.unique(labels[table.where] * most + table.units)
            persons = np.bincount(pairs // most, minlength=len(sizes))
        failing = np.where(persons < k, _LACKS_K, 0)
        if self.judge is not None:
            self._ask(labels, failing)
        elif self.require:
            self._steer(labels, sizes, failing)
        return firsts, sizes, labels, failing

    def _ask(self, labels: Ints, failing: Ints) -> None:
        """Suppress the classes that the judge rejects, repeatedly, until it rejects none."""
        judge = self.judge
        while judge is not None and not failing.all():
            rows = labels[self.table.where]
            rejected = judge(np.where(failing[rows] > 0, -1, rows))
            if not len(rejected):
                return
            failing[rejected] = _LACKS_MODEL

    def _steer(self, labels: Ints, sizes: Ints, failing: Ints) -> None:
        """Suppress classes that violate a model, repeatedly, until none does."""
        table, models = self.table, self.models
        while True:
            before = int(sizes[failing > 0].sum())
            if self.ratio and 0 < before <= self.limit:
                rows = (failing[labels] == 0)[table.where]
                left = [replace(rule, codes=rule.codes[rows]) for rule in self.require]
                models = self._models(left, int(rows.sum()))
            lacking = (failing > 0).astype(np.int64)
            gone = kernels.suppress(
                models, self.limit, labels, self.rows.secret, self.rows.counts, sizes, lacking
            )
            failing[(lacking > 0) & (failing == 0)] = _LACKS_MODEL
            if not self.ratio or gone == before or gone > self.limit:
                return


_LACKS_K, _LACKS_MODEL = 1, 2


def levels_of(lattice: kernels.Lattice, node: int) -> Ints:
    """Return the levels of a node."""
    levels: Ints = node // lattice.strides % lattice.shape + lattice.low
    return levels


def _outer(parts: Sequence[Floats], combine: np.ufunc = np.add) -> Floats:
    """Combine one number per column for all nodes, by sums or products."""
    return reduce(combine.outer, parts).ravel()


def _least_size(own: Requirement, counts: Ints, left: int) -> int:
    """Return the class size below which a class must fail, if at least `left` records remain.

    With s records a class has at most s values. Its equal distance from the remaining records is at
    least the share of these that have none of its values, which is at least 1 - (records with the s
    most frequent values) / left.
    """
    guarantee = own.guarantee
    if isinstance(guarantee, LDiversity):
        return math.ceil(guarantee.l) if guarantee.kind is Diversity.DISTINCT else 1
    if guarantee.distance is not Distance.EQUAL:
        return 1
    held = np.cumsum(np.sort(counts)[::-1])
    return int(np.searchsorted(held, math.ceil((1 - guarantee.t) * left))) + 1
