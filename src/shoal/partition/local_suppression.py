"""Local suppression: blank the fewest cells so no combination of values is rarer than k.

Blanking a cell of column j costs w_j. What a missing cell means decides what is asked for:

*   `own-value`: missing is a value like any other. Of every combination of released values, missing
    ones included, there are k records. This is k-anonymity as every other method has it.
*   `matches-anything`: a record is counted with all that agree with it where both are present, as
    sdcMicro counts; there must be k of them. It is weaker: whoever takes a missing cell for a value
    may find rarer combinations.

**Own value, heuristic.** A pattern is a set of columns to blank. Records in combinations of k or
more stay. For the others, patterns are tried from the cheapest on: records that agree outside a
pattern are blanked by it if they are k, or if records of larger combinations, which have some to
spare, make up the rest at less cost than the cheapest pattern under which they are k without. Who
is left joins a combination of k by the cells in which they differ.

**Own value, lower bound and optimum.** With x the number of records of a combination that take a
pattern and y whether a released combination is used,

    min sum cost x,  sum of x over the patterns of a combination = its records,
    k y <= sum of x into a released combination,  x <= records y.

The linear relaxation bounds the cost of any solution from below; over whole numbers it is the
optimum, which HiGHS finds for tables of up to `EXACT` variables. Beyond `LINEAR` variables a weaker
bound is used: what each rare record costs if all others help for nothing.

**Matches anything.** The fewest cells that make every record agree with k are those of k - 1
records blanked whole: they agree with everybody, and every rare record stays visible. So more is
asked: a record that lacks k is blanked in at least one cell. Each first takes the cheapest pattern
under which the values that it shows are held by k records of the table as it came: those agree with
it in the release or are blank there. Then cells are restored, the dearest first, while every record
agrees with k and none that lacked k is whole again. The bound is the cheapest cell of each. With s
whether a cell is blank, and a whether two records agree that do not in the table as it came,

    min sum w s,  a <= s + s' for each column in which the two differ,  sum of s >= 1 over a record
    that lacks k,  sum of a over its pairs >= what it lacks,

all of them 0 or 1, is the optimum, for tables of up to `EXACT` variables.

Several sets of columns are taken in turn until none lacks anything, which ends because cells are
only blanked; the bound is then the largest of the sets' own. The last programme takes all of them.

Cost: O(2^d n log n) for d columns.

References:
    Meyerson and Williams, "On the complexity of optimal k-anonymity", PODS 2004.
    doi:10.1145/1055558.1055591
    Templ, Kowarik and Meindl, "Statistical disclosure control for micro-data using the R package
    sdcMicro", JSS 67 (2015). doi:10.18637/jss.v067.i04
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from shoal.core import MissingMeaning, Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.core.row_order import row_keys
from shoal.errors import InputError

EXACT, LINEAR = 600, 20_000
"""Variables up to which the optimum, and the linear bound, are computed."""
MOST_COMPARED = 3_000_000_000
"""Cells that are compared to restore some; beyond that none is."""
ORDERS = 40
"""Orders in which cells of small tables are restored."""
WIDEST = 14
"""Columns in a set; every pattern of them is tried."""
_NODES = 500
_SMALL = 1e-6


@dataclass(frozen=True, eq=False)
class Suppression:
    """The blanked cells, with their cost and a lower bound of the least cost.

    Attributes:
        blanked: records by columns.
        cost: total weight of the blanked cells.
        bound: no solution costs less; where missing matches anything, none that blanks a cell of
            every rare record.
        exact: the cost is the least of these, up to rounding: the optimum was computed.
    """

    blanked: NDArray[np.bool_]
    cost: float
    bound: float
    exact: bool

    @property
    def gap(self) -> float:
        """How far the cost exceeds the bound, as a share of the bound."""
        return 0.0 if self.cost <= self.bound else self.cost / max(self.bound, _SMALL) - 1


def local_suppression(
    codes: ArrayLike,
    k: int,
    *,
    weights: Sequence[float] | None = None,
    sets: Sequence[Sequence[int]] | None = None,
    missing: MissingMeaning = MissingMeaning.OWN_VALUE,
    progress: Progress = silent,
) -> Suppression:
    """Blank cells of small total weight until no combination is rarer than k.

    Args:
        codes: records by columns, whole numbers; negative where missing.
        k: smallest number of records of a combination.
        weights: cost of a cell of each column; by default 1.
        sets: numbers of the columns that are taken together; by default all.
        missing: what a missing cell means.
        progress: called after each set.

    Raises:
        InputError: there are fewer than k records, or a set is too wide.

    >>> local_suppression([[1, 1], [1, 1], [1, 2]], 2, missing="matches-anything").blanked[2]
    array([False,  True])
    """
    C = np.where(np.asarray(codes, np.int64) < 0, -1, np.asarray(codes, np.int64))
    if C.ndim != 2 or len(C) < k:
        raise InputError(f"Expected at least k = {k} records by columns, found {len(C)}.")
    w = np.ones(C.shape[1]) if weights is None else np.asarray(weights, np.float64)
    groups = [list(range(C.shape[1]))] if sets is None else [list(columns) for columns in sets]
    if any(not group or len(group) > WIDEST for group in groups):
        raise InputError(f"Expected sets of 1 to {WIDEST} columns. Take subsets of fewer.")
    if w.shape != (C.shape[1],) or (w <= 0).any():
        raise InputError("Expected a weight above 0 for each column.")
    meaning = MissingMeaning(missing)
    made = C.copy()
    while lacking := [group for group in groups if _lacks(made[:, group], C[:, group], k, meaning)]:
        for number, group in enumerate(lacking):
            if meaning is MissingMeaning.OWN_VALUE:
                made[:, group] = _own_value(made[:, group], k, w[group])
            else:
                made[:, group] = _matching(made[:, group], C[:, group], k, w[group])
            progress("blanking cells", number + 1, len(lacking))
    blanked = made != C
    cost = float((blanked * w).sum())
    if meaning is MissingMeaning.MATCHES:
        made = _restore_cells(C, made, groups, k, w)
        blanked = made != C
        cost = float((blanked * w).sum())
        least = max((_one_cell_each(C[:, group], k, w[group]) for group in groups), default=0.0)
        best = None if cost <= least else _best_matching(C, groups, k, w)
        if best is not None:
            blanked = best
            cost = least = float((blanked * w).sum())
        return Suppression(blanked, cost, min(least, cost), exact=cost <= least)
    least = max((_bound(C[:, group], k, w[group]) for group in groups), default=0.0)
    exact = cost <= least * (1 + 1e-9) + _SMALL
    better = None if exact or len(groups) > 1 else _best(C[:, groups[0]], k, w[groups[0]])
    if better is not None:
        made = C.copy()
        made[:, groups[0]] = better
        blanked = made != C
        cost = least = float((blanked * w).sum())
    return Suppression(blanked, cost, min(least, cost), exact or better is not None)


def _lacks(made: Ints, original: Ints, k: int, meaning: MissingMeaning) -> bool:
    numbers, counts = _number_rows(made)
    if meaning is MissingMeaning.OWN_VALUE:
        return bool((counts < k).any())
    for at in np.flatnonzero(counts < k).tolist():
        shown = made[int(np.flatnonzero(numbers == at)[0])]
        if int(((original == shown) | (shown < 0)).all(axis=1).sum()) < k:
            return True
    return False


def _number_rows(C: Ints) -> tuple[Ints, Ints]:
    """Number the distinct records from 0, and count each."""
    numbers = row_keys((column + 1 for column in C.T), len(C))
    return numbers, np.bincount(numbers)


def _distinct(C: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the distinct records, the index of each record's, and their counts."""
    numbers, counts = _number_rows(C)
    first = np.empty(len(counts), np.int64)
    first[numbers[::-1]] = np.arange(len(C))[::-1]
    return C[first], numbers, counts


def _patterns(w: Floats) -> tuple[Ints, Floats]:
    """List all sets of columns as bits, in order of increasing cost, and their costs."""
    bits = np.arange(1 << len(w))
    cost = ((bits[:, None] >> np.arange(len(w))) & 1) @ w
    order = np.lexsort((bits, cost))
    return bits[order], cost[order]


def _hidden(C: Ints, pattern: int) -> Ints:
    """Return records with the cells of a pattern blanked."""
    out = (pattern >> np.arange(C.shape[1])) & 1 == 1
    return np.where(out, -1, C)


# A missing cell is a value of its own.


def _own_value(C: Ints, k: int, w: Floats) -> Ints:
    distinct, where, counts = _distinct(C)
    spare = np.maximum(counts - k, 0)
    waiting = np.flatnonzero(counts < k)
    if not waiting.size:
        return C
    bits, costs = _patterns(w)
    cheapest = _cheapest_alone(distinct, counts, waiting, (bits, costs), k)
    # How many records of each combination take which pattern.
    takes: list[tuple[int, int, int]] = []
    used: set[bytes] = {row.tobytes() for row in distinct[counts >= k]}
    for bit, cost in zip(bits.tolist(), costs.tolist(), strict=True):
        if not waiting.size:
            break
        keys, group, _ = _distinct(_hidden(distinct[waiting], bit))
        held = np.bincount(group, counts[waiting])
        value = np.bincount(group, counts[waiting] * cheapest[waiting])
        done = np.zeros(len(waiting), dtype=bool)
        for g in np.flatnonzero((held >= k) | (value > cost * k) | (len(used) > 0)).tolist():
            ready = held[g] >= k or keys[g].tobytes() in used
            if not ready and value[g] <= cost * k:
                continue
            if not ready:
                rows = _helpers(_hidden(distinct, bit), keys[g], spare, k - int(held[g]))
                if rows is None:
                    continue
                for helper, number in rows:
                    spare[helper] -= number
                    takes.append((helper, bit, number))
            used.add(keys[g].tobytes())
            mine = group == g
            done |= mine
            takes += [(int(c), bit, int(counts[c])) for c in waiting[mine]]
        waiting = waiting[~done]
    return _join_left(_blank_cells(C, where, takes), k, w)


def _cheapest_alone(
    distinct: Ints, counts: Ints, rare: Ints, patterns: tuple[Ints, Floats], k: int
) -> Floats:
    """Return for each rare combination the least cost to reach k among rare records alone."""
    cheapest = np.full(len(distinct), np.inf)
    bits, costs = patterns
    for bit, cost in zip(bits.tolist(), costs.tolist(), strict=True):
        open_ = rare[np.isinf(cheapest[rare])]
        if not open_.size:
            break
        group, _ = _number_rows(_hidden(distinct[rare], bit))
        enough = np.bincount(group, counts[rare])[group] >= k
        fresh = rare[enough & np.isinf(cheapest[rare])]
        cheapest[fresh] = cost
    return cheapest


def _helpers(hidden: Ints, key: Ints, spare: Ints, wanted: int) -> list[tuple[int, int]] | None:
    """Find combinations that match and can spare records, largest first; None if too few."""
    fitting = np.flatnonzero((hidden == key).all(axis=1) & (spare > 0))
    fitting = fitting[np.argsort(-spare[fitting], kind="stable")]
    rows = []
    for helper in fitting.tolist():
        if wanted <= 0:
            break
        number = min(int(spare[helper]), wanted)
        rows.append((helper, number))
        wanted -= number
    return None if wanted > 0 else rows


def _join_left(made: Ints, k: int, w: Floats) -> Ints:
    """Let each remaining record join a combination of k, blanking the cells that differ.

    If that combination can spare k - 1 records, so many are blanked with it, else all of them.
    """
    while True:
        classes, where, counts = _distinct(made)
        rare = np.flatnonzero(counts < k)
        if not rare.size:
            return made
        row = classes[rare[0]]
        enough = np.flatnonzero(counts >= k)
        if not enough.size:
            return np.full_like(made, -1)
        apart = classes[enough] != row
        moved = np.where(counts[enough] >= 2 * k - 1, k - 1, counts[enough])
        price = (apart & (classes[enough] >= 0)) @ w * moved
        price += counts[rare[0]] * ((apart & (row >= 0)) @ w)
        best = int(price.argmin())
        members = np.flatnonzero(where == enough[best])[: moved[best]]
        rows = np.concatenate([np.flatnonzero(where == rare[0]), members])
        made[rows] = np.where(apart[best], -1, made[rows])


def _blank_cells(C: Ints, where: Ints, takes: Sequence[tuple[int, int, int]]) -> Ints:
    """Blank cells of as many records of each combination as each pattern takes, in order."""
    order = np.argsort(where, kind="stable")
    starts = np.searchsorted(where[order], np.arange(int(where.max()) + 1))
    made, used = C.copy(), np.zeros(len(starts), np.int64)
    for combination, bit, number in takes:
        begin = starts[combination] + used[combination]
        rows = order[begin : begin + number]
        made[rows] = _hidden(made[rows], bit)
        used[combination] += number
    return made


@dataclass(frozen=True, eq=False)
class _Assignment:
    """The integer programme if missing is a value: x by combination and pattern, then y."""

    distinct: Ints
    where: Ints
    counts: Ints
    combination: Ints
    bit: Ints
    target: Ints
    cost: Floats

    @property
    def variables(self) -> int:
        return len(self.cost) + int(self.target.max(initial=-1)) + 1

    @classmethod
    def of(cls, C: Ints, k: int, w: Floats) -> "_Assignment":
        distinct, where, counts = _distinct(C)
        rare = counts < k
        bits, _ = _patterns(w)
        known: dict[bytes, int] = {}
        parts: dict[tuple[int, int], tuple[float, int]] = {}
        for bit in bits.tolist():
            hidden = _hidden(distinct, bit)
            keys, group, _ = _distinct(hidden)
            enough = np.bincount(group, counts) >= k
            wanted = enough & (np.bincount(group, rare) > 0) if bit else enough
            numbers = [known.setdefault(key.tobytes(), len(known)) if wanted[g] else -1
                       for g, key in enumerate(keys)]  # fmt: skip
            price = ((hidden != distinct) * w).sum(axis=1)
            for c in np.flatnonzero(wanted[group]).tolist():
                at = (c, numbers[group[c]])
                if at not in parts or price[c] < parts[at][0]:
                    parts[at] = (float(price[c]), bit)
            if len(parts) > LINEAR:
                break
        places = np.array(list(parts), np.int64).reshape(-1, 2)
        priced = np.array(list(parts.values()), np.float64).reshape(-1, 2)
        return cls(
            distinct,
            where,
            counts,
            places[:, 0],
            priced[:, 1].astype(np.int64),
            places[:, 1],
            priced[:, 0],
        )

    def solve(self, k: int, *, whole: bool) -> tuple[float, Floats] | None:
        x, targets = len(self.cost), int(self.target.max(initial=-1)) + 1
        at, ones = np.arange(x), np.ones(x)
        held = scipy.sparse.coo_array(
            (ones, (self.combination, at)), shape=(len(self.counts), x + targets)
        )
        sums = scipy.sparse.coo_array((ones, (self.target, at)), shape=(targets, x + targets))
        each = np.arange(targets)
        used = scipy.sparse.coo_array(
            (np.full(targets, -k), (each, x + each)), shape=(targets, x + targets)
        )
        diagonal = scipy.sparse.coo_array((ones, (at, at)), shape=(x, x + targets))
        most = self.counts[self.combination].astype(np.float64)
        opened = scipy.sparse.coo_array((-most, (at, x + self.target)), shape=(x, x + targets))
        rules = [
            scipy.optimize.LinearConstraint(held.tocsr(), self.counts, self.counts),
            scipy.optimize.LinearConstraint((sums + used).tocsr(), 0, np.inf),
            scipy.optimize.LinearConstraint((diagonal + opened).tocsr(), -np.inf, 0),
        ]
        upper = np.concatenate([most, np.ones(targets)])
        return _solve(np.append(self.cost, np.zeros(targets)), rules, upper, whole=whole)


def _bound(C: Ints, k: int, w: Floats) -> float:
    programme = _Assignment.of(C, k, w)
    if programme.variables <= LINEAR and len(programme.cost):
        solution = programme.solve(k, whole=False)
        if solution is not None:
            return solution[0]
    distinct, _, counts = _distinct(C)
    rare, total = np.flatnonzero(counts < k), 0.0
    bits, costs = _patterns(w)
    for bit, cost in zip(bits.tolist(), costs.tolist(), strict=True):
        if not rare.size:
            break
        group, _ = _number_rows(_hidden(distinct, bit))
        enough = np.bincount(group, counts)[group][rare] >= k
        # A cell that is missing already costs nothing; the cheapest pattern may hold one.
        present = (distinct[rare] >= 0) & ((bit >> np.arange(len(w))) & 1 == 1)
        total += float((counts[rare] * (present * w).sum(axis=1))[enough].sum())
        rare = rare[~enough]
        del cost
    return total


def _best(C: Ints, k: int, w: Floats) -> Ints | None:
    programme = _Assignment.of(C, k, w)
    if programme.variables > EXACT:
        return None
    solution = programme.solve(k, whole=True)
    if solution is None:
        return None
    taken = np.rint(solution[1][: len(programme.cost)]).astype(np.int64)
    takes = [
        (int(programme.combination[at]), int(programme.bit[at]), int(taken[at]))
        for at in np.flatnonzero(taken)
    ]
    return _blank_cells(C, programme.where, takes)


# A missing cell matches anything.


def _matching(C: Ints, original: Ints, k: int, w: Floats) -> Ints:
    """Blank each record by the cheapest pattern whose remaining values k records had."""
    numbers, counts = _number_rows(original)
    open_ = np.flatnonzero(counts[numbers] < k)
    if not open_.size:
        return C
    least, chosen = np.full(len(open_), np.inf), np.zeros(len(open_), np.int64)
    for bit in _patterns(w)[0].tolist():
        hidden = _hidden(original, bit)
        group, held = _number_rows(hidden)
        # A cell that is blank already costs nothing more, and nothing is known of it.
        price = ((hidden[open_] < 0) & (C[open_] >= 0)) @ w
        better = (held[group[open_]] >= k) & (price < least)
        least[better], chosen[better] = price[better], bit
    made = C.copy()
    made[open_] = np.where((chosen[:, None] >> np.arange(C.shape[1])) & 1 == 1, -1, C[open_])
    return made


def _agreeing(C: Ints, record: Ints) -> NDArray[np.bool_]:
    """Find the records that match one wherever both are present."""
    fits: NDArray[np.bool_] = ((record == C) | (C < 0) | (record < 0)).all(axis=1)
    return fits


def _one_cell_each(C: Ints, k: int, w: Floats) -> float:
    """Return the cost of the cheapest present cell of each record that k records do not match."""
    numbers, counts = _number_rows(C)
    rare = np.flatnonzero(counts[numbers] < k)
    if (C < 0).any():
        rare = np.array([r for r in rare if _agreeing(C, C[r]).sum() < k], np.int64)
    return float(np.where(C[rare] >= 0, w, np.inf).min(axis=1, initial=np.inf).sum())


def _restore_cells(C: Ints, made: Ints, groups: Sequence[list[int]], k: int, w: Floats) -> Ints:
    """Restore cells, most costly first, while every record matches k and none is complete.

    Small tables are tried in several orders of equally dear cells, and from all cells of the same
    records blank; the cheapest is kept.
    """
    size = max(int((made != C).any(axis=1).sum()) * C.shape[1] * C.size, 1)
    if size > MOST_COMPARED:
        return made
    # All cells of the same records blank is a solution, too: those agree with everybody.
    row_wise = np.where((made != C).any(axis=1)[:, None], -1, made)
    rng = np.random.default_rng(0)
    best, least = made, np.inf
    for attempt in range(min(ORDERS, 1 + MOST_COMPARED // (1000 * size))):
        start = row_wise if attempt % 2 else made
        rows, columns = np.nonzero(start != C)
        ties = rng.permutation(rows.size) if attempt else np.arange(rows.size)
        order = np.lexsort((ties, -w[columns]))
        restored = _put_back(C, start.copy(), groups, k, (rows[order], columns[order]))
        cost = float(((restored != C) * w).sum())
        if cost < least:
            best, least = restored, cost
    return best


def _put_back(
    C: Ints, made: Ints, groups: Sequence[list[int]], k: int, cells: tuple[Ints, Ints]
) -> Ints:
    held = [np.full(len(C), -1, np.int64) for _ in groups]

    def lacks_one(number: int, lost: Ints) -> bool:
        columns, counts = groups[number], held[number]
        for other in lost[counts[lost] < 0].tolist():
            counts[other] = _agreeing(made[:, columns], made[other, columns]).sum()
        return bool((counts[lost] <= k).any())

    for row, column in zip(cells[0].tolist(), cells[1].tolist(), strict=True):
        changes = []
        for number, group in enumerate(groups):
            if column not in group:
                continue
            before = _agreeing(made[:, group], made[row, group])
            value = made[:, column]
            lost = np.flatnonzero(before & (value >= 0) & (value != C[row, column]))
            left = int(before.sum()) - lost.size
            blank = int((made[row, group] != C[row, group]).sum())
            last = blank == 1 and int(_agreeing(C[:, group], C[row, group]).sum()) < k
            if left < k or last or lacks_one(number, lost):
                break
            changes.append((number, lost, left))
        else:
            made[row, column] = C[row, column]
            for number, lost, left in changes:
                held[number][lost] -= 1
                held[number][row] = left
    return made


def _best_matching(
    C: Ints, groups: Sequence[list[int]], k: int, w: Floats
) -> NDArray[np.bool_] | None:
    """Find the cheapest set of blanked cells; see the module."""
    n, cells = len(C), C.size
    if cells + len(groups) * n * (n - 1) // 2 > EXACT:
        return None
    differ = (C[:, None] != C) & (C[:, None] >= 0) & (C >= 0)
    pairs = [
        (number, i, j)
        for number, group in enumerate(groups)
        for i, j in combinations(range(n), 2)
        if differ[i, j, group].any()
    ]
    where = np.arange(cells).reshape(C.shape)
    rules: list[tuple[Ints, Ints, int]] = []  # variables, their factors, and the least sum
    for at, (number, i, j) in enumerate(pairs, cells):
        for column in np.intersect1d(np.flatnonzero(differ[i, j]), groups[number]):
            both = np.array([where[i, column], where[j, column], at])
            rules.append((both, np.array([1, 1, -1]), 0))
    for number, group in enumerate(groups):
        lacks = k - (~differ[:, :, group].any(axis=2)).sum(axis=1)
        for i in np.flatnonzero(lacks > 0).tolist():
            terms = [at for at, (of, *two) in enumerate(pairs, cells) if of == number and i in two]
            rules.append((np.array(terms), np.ones(len(terms), np.int64), int(lacks[i])))
            rules.append((where[i, group], np.ones(len(group), np.int64), 1))
    table = np.zeros((len(rules), cells + len(pairs)))
    for row, (variables, factors, _) in enumerate(rules):
        table[row, variables] = factors
    least = np.array([rule[2] for rule in rules])
    cost = np.append(np.tile(w, n), np.zeros(len(pairs)))
    upper = np.append((C >= 0).ravel(), np.ones(len(pairs))).astype(np.float64)
    plan = _solve(cost, [scipy.optimize.LinearConstraint(table, least, np.inf)], upper, whole=True)
    if plan is None:
        return None
    blank: NDArray[np.bool_] = plan[1][:cells].reshape(C.shape) > 1 / 2
    return blank


def _solve(
    cost: Floats, rules: "Sequence[scipy.optimize.LinearConstraint]", upper: Floats, *, whole: bool
) -> tuple[float, Floats] | None:
    """Return the least cost and its solution; None if HiGHS did not prove optimality."""
    result = scipy.optimize.milp(
        cost,
        constraints=list(rules),
        bounds=scipy.optimize.Bounds(0, upper),
        integrality=np.full(len(cost), int(whole)),
        options={"node_limit": _NODES, "mip_rel_gap": 0.0} if whole else {},
    )
    if result.status != 0 or result.x is None:
        return None
    return float(result.fun), np.asarray(result.x, np.float64)
