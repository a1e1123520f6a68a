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
    which k fails closes all nodes below it. That holds in persons, too.
2.  *Distinct l-diversity.* A union has the values of each part: the same argument.
3.  *The other l-diversities and t-closeness.* Two classes that keep one of them keep it together:
    entropy is concave, the largest share and the distances are convex, and under the recursive
    kind r1 < c (r_l + ...) adds up. So if no class at v lacks them, none at u does: without
    suppression (`limit` 0) a failing node closes all below it. With suppression it does not: a
    class that keeps the model may lack it once it is merged with one that was suppressed. Then a
    node closes those below it by k alone. Counted in persons, l and t are not kept by merging, see
    `shoal.privacy_models.decided`, and a node closes others by k alone as well.
4.  *Loss.* With B(v) the loss of v if nothing were suppressed, B(v) <= loss(v) and B(v) <= B(u):
    a node closes all above it once B(v) is not below the best loss so far (or, where it is equal,
    the levels are not lower). For each loss:
    discernibility has the sum of squares of all classes, and a suppressed record costs n, no less
    than the size of its class; unions have larger squares. Granularity and entropy are sums over
    cells that do not fall with the level, and a suppressed cell costs as much as the root. The
    average class size is n over the number of classes, of which suppressed records are one, and
    unions are fewer.

t-closeness compares with the records that are left, as a check of the release does. A class that
fails is suppressed, which changes that distribution; this is repeated until none fails. This rule
need not give the least possible suppression.

**The search** is that of Flash: start at the open node of least B, climb to the top along open
nodes, bisect that path, and close what follows from each node that was looked at. The classes of
a node are merged from those of the node below it with the fewest classes that were kept.

Cost: O(c d) for each node that is looked at, c being the classes it is merged from; at most all
nodes. Memory: one byte and one number per node, and up to `ROOM` kept classes.

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
    Gionis and Tassa, TKDE 21 (2009), on non-uniform entropy. doi:10.1109/TKDE.2008.129
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core import Diversity, LDiversity, Progress, TCloseness, silent, whole_numbers
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.partition.kernels import full_domain as kernels
from shoal.partition.kernels.requirement import Rules
from shoal.partition.requirement import Requirement, compiled

MOST_NODES = 20_000_000
"""A lattice of more nodes is refused."""
ROOM = 4_000_000
"""Classes that are kept to merge others from, over all nodes."""
_WIDE = 2**62

Node = tuple[int, ...]
Judge = Callable[[Ints], Ints]
"""Takes the class of each record, -1 where suppressed, and returns the classes that fail."""


class Loss(StrEnum):
    """What the chosen node makes small."""

    DISCERNIBILITY = "discernibility"
    GRANULARITY = "granularity"
    ENTROPY = "entropy"
    CLASS_SIZE = "average-class-size"


@dataclass(frozen=True, eq=False)
class Generalisation:
    """The node of least loss, and what it does to the records.

    Attributes:
        levels: of each column.
        labels: equivalence class of each record, from 0; -1 where it is suppressed.
        loss: of the node: discernibility over n^2, or the mean of cells from 0 to 1, or the mean
            number of records in a class.
        looked_at: nodes whose classes were counted.
        nodes: of the lattice.
    """

    levels: Node
    labels: Ints
    loss: float
    looked_at: int
    nodes: int


def full_domain(
    codes: ArrayLike,
    hierarchies: Sequence[ArrayLike],
    k: int,
    *,
    loss: Loss = Loss.DISCERNIBILITY,
    limit: int = 0,
    require: Sequence[Requirement] = (),
    units: Ints | None = None,
    judge: Judge | None = None,
    weights: Sequence[float] | None = None,
    penalties: Sequence[ArrayLike] | None = None,
    between: Sequence[tuple[int, int]] | None = None,
    progress: Progress = silent,
) -> Generalisation | None:
    """Find the node of least loss that keeps what is required, exactly.

    Args:
        codes: records by columns, the leaf of each cell as a whole number from 0.
        hierarchies: of each column levels by leaves: the label of each leaf at each level, as whole
            numbers from 0. At level 0 every leaf has its own.
        k: smallest number of records, or of persons, in a class.
        loss: which one.
        limit: records that may be suppressed.
        require: what every class must keep beside k, in records.
        units: person of each record, where some have several.
        judge: decides on the classes of a node that keeps k, in place of `require`; where persons
            have several records.
        weights: of the columns, under granularity and entropy; by default equal.
        penalties: of each column levels by leaves, from 0 to 1: what granularity takes for a label.
            By default (leaves of the label - 1) / (leaves - 1).
        between: lowest and highest level of each column that may be chosen.
        progress: called as nodes are closed.

    Returns:
        The best node, or None if every node fails.

    Raises:
        InputError: levels are not nested, the lattice is too large, or the input does not fit.

    >>> tree = [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]]
    >>> full_domain([[0], [1], [2], [3]], [tree], 2).levels
    (1,)
    """
    table = _Table.of(codes, hierarchies, units)
    search = _Search(
        table, k, limit, loss, require, judge, _Costs.of(table, loss, weights, penalties)
    )
    return search.run(_shape(table, between), progress)


@dataclass(frozen=True, eq=False)
class _Table:
    """Distinct combinations of leaves, and how often each occurs.

    Attributes:
        leaves: combinations by columns.
        counts: records of each.
        where: the combination of each record.
        trees: labels by level and leaf, of each column.
        widths: number of labels at each level, of each column.
    """

    leaves: Ints
    counts: Ints
    where: Ints
    trees: tuple[Ints, ...]
    widths: tuple[Ints, ...]
    units: Ints | None

    @classmethod
    def of(cls, codes: ArrayLike, hierarchies: Sequence[ArrayLike], units: Ints | None) -> "_Table":
        rows = np.asarray(codes)
        if rows.ndim != 2 or not rows.size or rows.shape[1] != len(hierarchies):
            raise InputError("Expected records by columns, and a hierarchy for each column.")
        trees = tuple(np.ascontiguousarray(tree, np.int64) for tree in hierarchies)
        for column, tree in zip(rows.T, trees, strict=True):
            if tree.ndim != 2 or (tree[0] != np.arange(tree.shape[1])).any():
                raise InputError("Expected levels by leaves, every leaf with its own label at 0.")
            if whole_numbers(column, "codes").max() >= tree.shape[1]:
                raise InputError("Expected codes of leaves that the hierarchy has.")
            for below, above in pairwise(tree):
                parents = np.full(int(below.max()) + 1, -1)
                parents[below] = above
                if (parents[below] != above).any():
                    raise InputError("Levels of a hierarchy must be nested.")
        widths = tuple(tree.max(axis=1) + 1 for tree in trees)
        keys = _keys(rows, [np.arange(tree.shape[1]) for tree in trees])
        distinct, first, where = np.unique(keys, return_index=True, return_inverse=True)
        counts = np.bincount(where.ravel(), minlength=len(distinct))
        leaves = np.ascontiguousarray(rows[first], np.int64)
        return cls(leaves, counts, where.ravel(), trees, widths, units)

    def labels_at(self, node: Node) -> list[Ints]:
        """The label of each leaf at a node, column by column."""
        return [tree[level] for tree, level in zip(self.trees, node, strict=True)]


def _keys(rows: Ints, labels: Sequence[Ints]) -> Ints:
    """One number for each combination of labels; equal only for equal combinations."""
    keys, room = np.zeros(len(rows), np.int64), 1
    for column, label in zip(rows.T, labels, strict=True):
        width = int(label.max()) + 1
        if room * width >= _WIDE:
            keys = np.unique(keys, return_inverse=True)[1].ravel()
            room = int(keys.max()) + 1
        keys = keys * width + label[column]
        room *= width
    return keys


@dataclass(frozen=True, eq=False)
class _Costs:
    """What losses that are sums over cells cost at each level of each column.

    Attributes:
        mean: per level, the mean over the records, weighted; empty for other losses.
        gaps: per level and leaf, how much more a suppressed cell costs.
    """

    mean: tuple[Floats, ...] = ()
    gaps: tuple[Floats, ...] = ()

    @classmethod
    def of(
        cls,
        table: _Table,
        loss: Loss,
        weights: Sequence[float] | None,
        penalties: Sequence[ArrayLike] | None,
    ) -> "_Costs":
        d = len(table.trees)
        heavy = np.ones(d) if weights is None else np.asarray(weights, np.float64)
        if heavy.shape != (d,) or (heavy < 0).any() or not heavy.sum() > 0:
            raise InputError("Expected a weight of 0 or more for each column, and one above 0.")
        if loss in {Loss.DISCERNIBILITY, Loss.CLASS_SIZE}:
            return cls()
        heavy = heavy / heavy.sum()
        n = int(table.counts.sum())
        held = [np.bincount(column, table.counts, minlength=tree.shape[1])
                for column, tree in zip(table.leaves.T, table.trees, strict=True)]  # fmt: skip
        means, gaps = [], []
        for j, (tree, own) in enumerate(zip(table.trees, held, strict=True)):
            if loss is Loss.ENTROPY:
                cost, star = _entropy(tree, own.astype(np.float64), n)
            else:
                given = None if penalties is None else np.asarray(penalties[j], np.float64)
                cost = _leaf_shares(tree) if given is None else given
                star = np.ones(tree.shape[1])
                if (
                    cost.shape != tree.shape
                    or (np.diff(cost, axis=0) < 0).any()
                    or (cost > 1).any()
                ):
                    raise InputError("Penalties must not fall from level to level, nor exceed 1.")
            means.append(heavy[j] * (cost @ own) / n)
            gaps.append(heavy[j] * np.maximum(star - cost, 0.0) / n)
        return cls(tuple(means), tuple(gaps))


def _entropy(tree: Ints, held: Floats, n: int) -> tuple[Floats, Floats]:
    """Cost of each leaf's record at each level, and if suppressed, relative to suppressing all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(held > 0, np.log2(held), 0.0)
        above = np.array([np.bincount(level, held)[level] for level in tree])
        cost = np.where(held > 0, np.log2(np.maximum(above, 1.0)) - logs, 0.0)
    star = np.where(held > 0, math.log2(n) - logs, 0.0)
    most = float(star @ held) / n
    return (cost / most, star / most) if most > 0 else (np.zeros_like(cost), np.zeros_like(star))


def _leaf_shares(tree: Ints) -> Floats:
    """Leaves of each label but one, over all leaves but one."""
    below = np.array([np.bincount(level)[level] for level in tree], np.float64)
    shares: Floats = (below - 1.0) / max(tree.shape[1] - 1, 1)
    return shares


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


class _Classes(NamedTuple):
    """Classes of a node: one combination of leaves to represent each, and its records."""

    rows: Ints
    counts: Ints


class _Best(NamedTuple):
    """Loss and height of the best node so far; lower is better."""

    loss: float
    height: float


class _Verdict(NamedTuple):
    """What was found at a node.

    Attributes:
        closes: it fails, and so does every node below it.
        bound: its loss if nothing were suppressed.
        loss: infinite if it fails.
    """

    closes: bool
    bound: float
    loss: float


@dataclass(eq=False)
class _Search:
    """The state of one search."""

    table: _Table
    k: int
    limit: int
    loss: Loss
    require: Sequence[Requirement]
    judge: Judge | None
    costs: _Costs
    kept: dict[Node, _Classes] = field(default_factory=dict)
    room: int = ROOM
    looked_at: int = 0

    def __post_init__(self) -> None:
        self.n = int(self.table.counts.sum())
        self.limit = min(self.limit, self.n - 1)
        self.closeness = any(isinstance(own.guarantee, TCloseness) for own in self.require)
        self.monotone = self.judge is None and (
            not self.limit
            or all(
                isinstance(own.guarantee, LDiversity) and own.guarantee.kind is Diversity.DISTINCT
                for own in self.require
            )
        )
        self._entries = [self._entries_of(own) for own in self.require]
        self._whole = compiled(self.require, self.n)[0] if self.require else None
        self._nodes = np.zeros((0, len(self.table.trees)), np.int64)
        self._sizes = np.zeros(0, np.int64)

    def run(self, between: Sequence[tuple[int, int]], progress: Progress) -> Generalisation | None:
        low = tuple(first for first, _ in between)
        shape = tuple(last - first + 1 for first, last in between)
        bound = self._bounds(low, shape)
        closed = np.zeros(shape, dtype=bool)
        heights = self._heights(low, shape)
        guess = bound.copy() if self.costs.mean else heights
        order = np.argsort(guess.ravel(), kind="stable")
        best, chosen = _Best(math.inf, -1.0), None
        flat_closed, flat_bound, flat_height = closed.ravel(), bound.ravel(), heights.ravel()
        for done, flat in enumerate(order.tolist()):
            if self.costs.mean and flat_bound[flat] > best.loss:
                break  # nodes come in the order of their bounds, so no later one is better
            while not flat_closed[flat] and (flat_bound[flat], flat_height[flat]) < best:
                progress("searching the lattice", done, len(order))
                start = tuple(map(int, np.unravel_index(flat, shape)))
                path = _path(start, closed, guess, lambda at: (bound[at], heights[at]) < best)  # noqa: B023 (called at once)
                first, last = 0, len(path) - 1
                while first <= last:
                    middle = (first + last) // 2
                    at = path[middle]
                    if (bound[at], heights[at]) >= best:  # by what was found since
                        last = middle - 1
                        continue
                    verdict = self._look(tuple(a + b for a, b in zip(at, low, strict=True)))
                    closed[at] = True
                    above = tuple(slice(a, None) for a in at)
                    np.maximum(bound[above], verdict.bound, out=bound[above])
                    if verdict.closes:
                        closed[tuple(slice(None, a + 1) for a in at)] = True
                        first = middle + 1
                    else:
                        last = middle - 1
                    if (verdict.loss, heights[at]) < best:
                        best, chosen = _Best(verdict.loss, float(heights[at])), at
        if chosen is None:
            return None
        node = tuple(a + b for a, b in zip(chosen, low, strict=True))
        _, labels, failing = self._suppressed(node)
        classes = np.where(failing[labels] > 0, -1, labels)
        left = np.unique(classes[classes >= 0], return_inverse=True)[1]
        classes[classes >= 0] = left.ravel()
        total = math.prod(shape)
        return Generalisation(node, classes[self.table.where], best.loss, self.looked_at, total)

    def _bounds(self, low: Node, shape: Node) -> Floats:
        """A lower bound on the loss of each node, before any node is looked at."""
        if self.costs.mean:
            parts = [m[a : a + s] for m, a, s in zip(self.costs.mean, low, shape, strict=True)]
            return reduce(np.add.outer, parts)
        # There are no more classes than combinations of labels.
        widths = [
            np.log(width[a : a + s])
            for width, a, s in zip(self.table.widths, low, shape, strict=True)
        ]
        classes = np.exp(np.minimum(reduce(np.add.outer, widths), math.log(self.n)))
        scale = 1.0 if self.loss is Loss.DISCERNIBILITY else self.n
        return scale / classes * (1.0 - 1e-9)

    def _heights(self, low: Node, shape: Node) -> Floats:
        """How high each node lies: the share of the way up, summed over the columns."""
        parts = [
            np.arange(a, a + s) / max(len(tree) - 1, 1)
            for tree, a, s in zip(self.table.trees, low, shape, strict=True)
        ]
        return reduce(np.add.outer, parts)

    def _look(self, node: Node) -> _Verdict:
        """Count the classes of a node, and say what follows."""
        self.looked_at += 1
        classes = self._classes(node)
        bound = self._bound(classes, node)
        if self.table.units is None:
            small = int(classes.counts[classes.counts < self.k].sum())
            if small > self.limit:
                return _Verdict(closes=True, bound=bound, loss=math.inf)
            if not self.require and self.judge is None:
                return self._judged(classes, classes.counts < self.k, node, bound)
        classes, _, failing = self._suppressed(node)
        lacking = failing == _LACKS_K
        if int(classes.counts[lacking].sum()) > self.limit:
            return _Verdict(closes=True, bound=bound, loss=math.inf)
        if int(classes.counts[failing > 0].sum()) > self.limit:
            return _Verdict(closes=self.monotone, bound=bound, loss=math.inf)
        return self._judged(classes, failing > 0, node, bound)

    def _judged(
        self, classes: _Classes, failing: NDArray[np.bool_], node: Node, bound: float
    ) -> _Verdict:
        """The loss of a node whose failing classes are suppressed."""
        gone = int(classes.counts[failing].sum())
        if self.loss is Loss.DISCERNIBILITY:
            kept = classes.counts[~failing].astype(np.float64)
            value = (float(kept @ kept) + float(self.n) * gone) / float(self.n) ** 2
        elif self.loss is Loss.CLASS_SIZE:
            value = self.n / (int((~failing).sum()) + (gone > 0))
        else:
            value, rows = bound, classes.rows[failing]
            if len(rows):
                extra = np.zeros(len(rows))
                for j, (gaps, level) in enumerate(zip(self.costs.gaps, node, strict=True)):
                    extra += gaps[level][self.table.leaves[rows, j]]
                value += float(extra @ classes.counts[failing])
        return _Verdict(closes=False, bound=bound, loss=value)

    def _bound(self, classes: _Classes, node: Node) -> float:
        if self.loss is Loss.DISCERNIBILITY:
            sizes = classes.counts.astype(np.float64)
            return float(sizes @ sizes) / float(self.n) ** 2
        if self.loss is Loss.CLASS_SIZE:
            return self.n / len(classes.counts)
        return float(sum(mean[level] for mean, level in zip(self.costs.mean, node, strict=True)))

    def _classes(self, node: Node) -> _Classes:
        """Merge the classes of a node from the fewest that are known below it."""
        table = self.table
        below = np.flatnonzero((self._nodes <= node).all(axis=1))
        if len(below):
            near = tuple(self._nodes[below[np.argmin(self._sizes[below])]].tolist())
            source = self.kept[near]
        else:
            source = _Classes(np.arange(len(table.counts)), table.counts)
        keys = self._keys_at(node, source.rows)
        firsts, counts, _ = kernels.merged(keys, source.counts)
        made = _Classes(source.rows[firsts], counts)
        if len(counts) <= self.room and 5 * len(counts) <= 4 * len(source.counts):
            self.room -= len(counts)
            self.kept[node] = made
            self._nodes = np.vstack([self._nodes, [node]])
            self._sizes = np.append(self._sizes, len(counts))
        return made

    def _keys_at(self, node: Node, rows: Ints) -> Ints:
        table = self.table
        labels = table.labels_at(node)
        widths = [int(width[level]) for width, level in zip(table.widths, node, strict=True)]
        if math.prod(widths) >= _WIDE:
            return _keys(table.leaves[rows], labels)
        strides = np.cumprod([1, *widths[:-1]], dtype=np.int64)
        maps = np.concatenate([label * s for label, s in zip(labels, strides, strict=True)])
        first = np.cumsum([0, *[len(label) for label in labels[:-1]]], dtype=np.int64)
        return kernels.combined(table.leaves, rows, maps, first)

    def _suppressed(self, node: Node) -> tuple[_Classes, Ints, Ints]:
        """Classes of a node, the class of each combination, and which are to be suppressed."""
        table = self.table
        keys = self._keys_at(node, np.arange(len(table.counts)))
        firsts, counts, labels = kernels.merged(keys, table.counts)
        sizes = counts
        if table.units is not None:
            own = labels[table.where] * (int(table.units.max()) + 1) + table.units
            sizes = np.bincount(
                np.unique(own) // (int(table.units.max()) + 1), minlength=len(counts)
            )
        failing = np.where(sizes < self.k, _LACKS_K, 0)
        if self.judge is not None:
            self._ask(labels, failing)
        elif int(counts[failing > 0].sum()) <= self.limit:
            self._steer(labels, counts, failing)
        return _Classes(firsts, counts), labels, failing

    def _ask(self, labels: Ints, failing: Ints) -> None:
        """Suppress the classes that the judge rejects, repeatedly, until it rejects none."""
        judge = self.judge
        while judge is not None and not failing.all():
            rows = labels[self.table.where]
            rejected = judge(np.where(failing[rows] > 0, -1, rows))
            if not len(rejected):
                return
            failing[rejected] = _LACKS_MODEL

    def _steer(self, labels: Ints, counts: Ints, failing: Ints) -> None:
        """Suppress classes that lack a model, repeatedly, until none does or none is left."""
        rules = self._whole
        while rules is not None and not failing.all():
            before = int((failing > 0).sum())
            if before and self.closeness:
                rules = self._rest(failing[labels] == 0)
            marks = (failing > 0).astype(np.int64)
            for r, (entry, value, count) in enumerate(self._entries):
                inside = np.where(failing[labels[entry]] > 0, -1, labels[entry])
                kernels.unmet_classes(rules, r, inside, value, count, counts, marks)
            failing[(marks > 0) & (failing == 0)] = _LACKS_MODEL
            done = int((failing > 0).sum()) == before or not self.closeness
            if done or int(counts[failing > 0].sum()) > self.limit:
                return

    def _rest(self, stays: NDArray[np.bool_]) -> Rules:
        """The rules for the combinations that are left: closeness to their own distribution."""
        rows = stays[self.table.where]
        left = [
            Requirement(own.guarantee, own.codes[rows], own.width, own.edges)
            for own in self.require
        ]
        return compiled(left, int(rows.sum()))[0]

    def _entries_of(self, own: Requirement) -> tuple[Ints, Ints, Ints]:
        """Combination, value and count of each pair that occurs."""
        width = int(own.width or 1)
        pairs, counts = np.unique(self.table.where * width + own.codes, return_counts=True)
        return pairs // width, pairs % width, counts.astype(np.int64)


_LACKS_K, _LACKS_MODEL = 1, 2


def _path(
    start: Node, closed: NDArray[np.bool_], guess: Floats, worthwhile: Callable[[Node], bool]
) -> list[Node]:
    """Climb from a node along open ones, each time to the one with the least guess."""
    path = [start]
    while True:
        at = path[-1]
        up = [
            (*at[:j], at[j] + 1, *at[j + 1 :])
            for j in range(len(at))
            if at[j] + 1 < closed.shape[j]
        ]
        open_ones = [node for node in up if not closed[node] and worthwhile(node)]
        if not open_ones:
            return path
        path.append(min(open_ones, key=lambda node: float(guess[node])))
