"""Records that satisfy all constraints: whether one exists, and the nearest to a given record.

Constraints that share a column belong together; what follows is about one such part. Its conditions
cut the domain of each column into cells on which every atom is constant, so a list of combinations
of cells decides them exactly. Relations are linear, so within a combination they are a polyhedron.
An implication with a relation in it is a choice among several such lists; all are tried.

**Nearest** is, as Fellegi and Holt edit: with the fewest changed columns where conditions are
broken, the smaller moves breaking ties, then the first combination in the order of the policy.
Within the combination, numbers move to the Euclidean projection on the polyhedron and the bounds,
found by Dykstra's alternating projections; columns on a grid are rounded to it, and a record for
which that breaks a relation gets the least total move instead, by integer programming (HiGHS).

**A record's result depends on that record and on the policy alone**, to the last bit: rows are
computed side by side by elementwise operations, and a row stops when it has converged itself.
With that, repair costs no epsilon. Let r be the map of a record, M a mechanism with
epsilon-indistinguishable outputs for neighbours, and T, T' neighbours. Under change-one they differ
in one record, so r(T) and r(T'), taken record by record, differ in at most that one; under
add-remove r(T') is r(T) with r(x) more or less. Both pairs are neighbours again, or equal, so
M(r(T)) and M(r(T')) are epsilon-indistinguishable. Rows stay with their person, so the same holds
per person.

**Projection does not raise the squared error.** The set P of a combination is closed and convex. If
the true record x lies in P, then |p(y) - x| <= |y - x| for the projection p(y) of any y, since
projections do not expand distances and p(x) = x. Means of records in P lie in P and stay.

References:
    Fellegi and Holt, "A systematic approach to automatic edit and imputation", JASA 71 (1976).
    doi:10.1080/01621459.1976.10481472
    Boyle and Dykstra, "A method for finding projections onto the intersection of convex sets in
    Hilbert spaces", Lecture Notes in Statistics 37 (1986). doi:10.1007/978-1-4613-9940-7_3
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from typing import Any, cast

import numpy as np

from shoal.core._arrays import Array, Bools, Floats, Ints
from shoal.core.columns import Column, Schema
from shoal.core.constraints import (
    CATEGORICAL,
    AllOf,
    AnyOf,
    Atom,
    Computed,
    Constraint,
    Lookup,
    Node,
    Relation,
    allow,
    beyond,
    cells,
    grain,
    leaves,
    limits,
)
from shoal.core.polyhedra import Half, Polyhedron
from shoal.errors import InputError

LARGEST_DOMAIN = 2_000_000
"""The most combinations of cells that are listed for constraints that belong together."""

ALTERNATIVES = 100
"""The most combinations of choices among relations."""

TRIES = 20
"""The most combinations of cells that are tried for a record."""

MARGIN = 1e-6
"""How far apart < keeps numbers without a grid, as a share of 1 or of the constant."""

_OTHER = "\0other"


@dataclass(frozen=True)
class ConstraintSet:
    """Constraints over the columns of a schema.

    Attributes:
        grids: the grid of each numeric or date column that is on one; by default its `step`, or a
            day.
        frozen: columns that may not change.
        missing: columns whose cells may become missing.
    """

    constraints: tuple[Constraint, ...]
    schema: Schema
    grids: Mapping[str, float | None] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that constraints name."""
        return tuple(dict.fromkeys(name for c in self.constraints for name in c.columns))

    @cached_property
    def parts(self) -> tuple["_Part", ...]:
        """The constraints in groups that share no column."""
        groups: list[list[Constraint]] = []
        for rule in self.constraints:
            near = [g for g in groups if any({*rule.columns} & {*other.columns} for other in g)]
            groups = [g for g in groups if g not in near]
            groups.append([*(other for g in near for other in g), rule])
        return tuple(_Part(tuple(group), self) for group in groups)

    def contradiction(self) -> str:
        """Explain why no record satisfies all constraints; None if one does."""
        for part in self.parts:
            if part.witness is not None:
                continue
            for size in (1, 2):
                for some in combinations(part.constraints, size):
                    if _Part(some, self).witness is None:
                        return _impossible([constraint.text for constraint in some])
            return _impossible([constraint.text for constraint in part.constraints])
        return ""

    def nearest(self, columns: Mapping[str, Array]) -> tuple[dict[str, Array], Bools]:
        """Find each row's nearest record that satisfies all constraints; also say which changed.

        Args:
            columns: for each column that is named, numbers, or texts as objects.
        """
        made = {name: np.array(columns[name]) for name in self.columns}
        changed = np.zeros(len(next(iter(made.values()))), dtype=bool)
        for part in self.parts:
            kept = np.logical_and.reduce([c.holds(made) for c in part.constraints])
            rows = np.flatnonzero(~kept)
            if not rows.size:
                continue
            part_rows = {name: made[name][rows] for name in part.columns}
            for name, values in part.nearest(part_rows).items():
                made[name][rows] = values
            changed[rows] = True
        return made, changed


def _impossible(texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return f"No record within the bounds and categories of its columns keeps '{texts[0]}'."
    both = " and ".join(f"'{text}'" for text in texts) if len(texts) == 2 else ", ".join(texts)
    return f"No record keeps {both} together, within the bounds and categories of the columns."


@dataclass(frozen=True)
class _Axis:
    """A column cut into cells; the last position is a missing cell.

    Attributes:
        values: the least value of each cell, or the category; the place of all categories that no
            constraint names is `_OTHER`.
        high: the largest value of each cell of numbers.
        leaves: a missing cell may become present, and the other way round.
    """

    column: Column
    values: tuple[str | float, ...]
    high: Floats
    leaves: bool

    @property
    def categorical(self) -> bool:
        return self.column.kind in CATEGORICAL

    @cached_property
    def others(self) -> tuple[str, ...]:
        return tuple(c for c in self.column.all_categories or () if c not in self.values)

    def costs(self, cells: Array, owner: ConstraintSet) -> Floats:
        """Compute the cost of moving each row to each cell: 0 or 1 plus a distance."""
        name, count = self.column.name, len(self.values)
        costs = np.full((len(cells), count + 1), np.inf)
        absent = np.array([c is None or c != c for c in cells], dtype=bool)  # noqa: PLR0124
        costs[absent, count] = 0.0
        if self.leaves and name in owner.missing:
            costs[~absent, count] = 1.0
        if self.categorical:
            ranks = {text: place for place, text in enumerate(self.column.all_categories or ())}
            for place, value in enumerate(self.values):
                here = [
                    cell not in self.values if value == _OTHER else cell == value for cell in cells
                ]
                to = self.others[0] if value == _OTHER and self.others else str(value)
                reach = np.inf if to == _OTHER else 1.0
                move = [abs(ranks.get(cell, 0) - ranks.get(to, 0)) / (len(ranks) or 1)
                        for cell in cells]  # fmt: skip
                costs[:, place] = np.where(here, 0.0, reach + 0.1 * np.array(move))
        else:
            x, low = cells.astype(np.float64), np.array(self.values, dtype=np.float64)
            out = np.maximum(np.maximum(low[None] - x[:, None], x[:, None] - self.high[None]), 0.0)
            costs[:, :count] = np.where(out > 0, 1.0 + 0.1 * out / (out + self.scale), 0.0)
        costs[absent, :count] = 1.0 if self.leaves else np.inf
        if name in owner.frozen:
            costs[costs > 0] = np.inf
        return costs

    @property
    def scale(self) -> float:
        low, high = limits(self.column)
        return 1.0 if low is None or high is None else high - low

    def move(self, cells: Array, places: Ints) -> Array:
        """Move each row to its new cell; rows that are already there stay unchanged."""
        made = cells.copy()
        if self.categorical:
            for row, place in enumerate(places):
                value = None if place == len(self.values) else self.values[place]
                if value == _OTHER:
                    if cells[row] is None or cells[row] in self.values:
                        made[row] = self.others[0]
                else:
                    made[row] = value
            return made
        low = np.array([*self.values, np.nan], dtype=np.float64)[places]
        high = np.append(self.high, np.nan)[places]
        inside = np.where(np.isnan(made), low, made)
        return np.clip(inside, low, high)


@dataclass(frozen=True)
class _Part:
    """A group of constraints that share columns, directly or through others."""

    constraints: tuple[Constraint, ...]
    owner: ConstraintSet

    @cached_property
    def columns(self) -> tuple[str, ...]:
        named = {name for constraint in self.constraints for name in constraint.columns}
        return tuple(name for name in self.owner.schema.names if name in named)

    @cached_property
    def axes(self) -> dict[str, _Axis]:
        """The columns in conditions."""
        named: dict[str, list[str | float]] = {}
        unsettled: set[str] = set()
        for leaf in (leaf for constraint in self.constraints for leaf in constraint.leaves()):
            if isinstance(leaf, Atom):
                named.setdefault(leaf.column, []).extend(leaf.values)
                unsettled |= {leaf.column} if leaf.op == "missing" else set()
            elif isinstance(leaf, Lookup):
                named.setdefault(leaf.source, []).extend(leaf.pairs)
                named.setdefault(leaf.target, []).extend(leaf.pairs.values())
            elif not leaf.terms:
                for name in leaf.columns:
                    categories = self.owner.schema[name].all_categories or ()
                    named.setdefault(name, []).extend(categories)
        return {
            name: self._axis(name, named[name], leaves=name in unsettled)
            for name in self.columns
            if name in named
        }

    def _axis(self, name: str, named: Sequence[str | float], *, leaves: bool) -> _Axis:
        column = self.owner.schema[name]
        if column.kind in CATEGORICAL:
            known = column.all_categories
            texts = [text for text in dict.fromkeys(cast("Sequence[str]", named))
                     if known is None or text in known]  # fmt: skip
            rest = () if known is not None and len(texts) == len(known) else (_OTHER,)
            return _Axis(column, (*texts, *rest), np.zeros(0), leaves)
        grid = self.grid(name)
        low, high = limits(column)
        starts = cast("tuple[float, ...]", cells(column, self.constraints, grid))
        below = [start - (grid or beyond(start)) for start in starts[1:]]
        values = (-np.inf if low is None else starts[0], *starts[1:])
        return _Axis(column, values, np.array([*below, np.inf if high is None else high]), leaves)

    def grid(self, name: str) -> float | None:
        """Return the grid of a column, or None."""
        return (
            self.owner.grids[name] if name in self.owner.grids else grain(self.owner.schema[name])
        )

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """The columns in relations."""
        named = {n for c in self.constraints for leaf in c.relations() for n in leaf.terms}
        return tuple(name for name in self.columns if name in named)

    @cached_property
    def alternatives(self) -> list[tuple[Ints, list[Relation]]]:
        """Lists of allowed combinations of cells, each with its relations."""
        domains = {name: (*axis.values, None) for name, axis in self.axes.items()}
        size = float(np.prod([float(len(domain)) for domain in domains.values()]))
        if size > LARGEST_DOMAIN:
            raise InputError(
                f"The rules on {', '.join(domains)} together have {size:.3g} combinations of "
                f"values, more than {LARGEST_DOMAIN:,}. State rules on fewer columns."
            )
        conditions = [c for c in self.constraints if not any(r.terms for r in c.relations())]
        kept = allow(conditions, domains)
        choices = [_choices(c.tree) for c in self.constraints if c not in conditions]
        if np.prod([float(len(choice)) for choice in choices]) > ALTERNATIVES:
            raise InputError("The rules join too many relations by 'or'. State simpler ones.")
        pieces = []
        for chosen in product(*choices):
            parts = [leaf for some in chosen for leaf in some]
            relations = [leaf for leaf in parts if isinstance(leaf, Relation) and leaf.terms]
            rest = [_constraint(leaf) for leaf in parts if leaf not in relations]
            combos = np.argwhere(kept & allow(rest, domains))
            if len(combos):
                pieces.append((combos, relations))
        return pieces

    @cached_property
    def witness(self) -> dict[str, Any] | None:
        """A record that satisfies the constraints; None if there is none."""
        axes = self.axes.items()
        for combos, relations in self.alternatives:
            # A missing cell keeps most rules, and proves nothing unless a rule is about it.
            ends = [len(a.values) + (a.leaves and n in self.owner.missing) for n, a in axes]
            seen = set()
            for combo in combos[(combos < np.array(ends, dtype=np.int64)).all(axis=1)]:
                low, high = self._box(combo[None])
                key = (*low[0], *high[0])
                if key in seen:
                    continue
                seen.add(key)
                start = np.clip(np.zeros(len(self.numeric)), low[0], high[0])
                x = self._polyhedron(relations).least_move(start, low[0], high[0])
                if x is not None:
                    values = dict(zip(self.numeric, x, strict=True))
                    return self._record(combo, values)
        return None

    def _polyhedron(self, relations: Sequence[Relation]) -> Polyhedron:
        grids = tuple(map(self.grid, self.numeric))
        return Polyhedron(tuple(_half(r, self.numeric, self.grid) for r in relations), grids)

    def _record(self, combo: Ints, values: Mapping[str, float]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for (name, axis), place in zip(self.axes.items(), combo, strict=True):
            if name in values and place < len(axis.values):
                continue
            blank: Array = np.array([None if axis.categorical else np.nan],
                                    dtype=object if axis.categorical else np.float64)  # fmt: skip
            if place < len(axis.values) and axis.values[place] == _OTHER and not axis.others:
                made[name] = None
            else:
                made[name] = axis.move(blank, np.array([place]))[0]
        return {**values, **made}

    def _box(self, combos: Ints) -> tuple[Floats, Floats]:
        """Return the range of each relation's column in combinations of cells."""
        low, high = (np.empty((len(combos), len(self.numeric))) for _ in range(2))
        places = {name: place for place, name in enumerate(self.axes)}
        for at, name in enumerate(self.numeric):
            if name in places:
                axis, place = self.axes[name], combos[:, places[name]]
                low[:, at] = np.array([*axis.values, -np.inf], dtype=np.float64)[place]
                high[:, at] = np.append(axis.high, np.inf)[place]
            else:
                least, most = limits(self.owner.schema[name])
                low[:, at] = -np.inf if least is None else least
                high[:, at] = np.inf if most is None else most
        return low, high

    def nearest(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        """Find the nearest record that satisfies the constraints, for rows that violate them."""
        rows = len(next(iter(columns.values())))
        best = {name: column.copy() for name, column in columns.items()}
        least = np.full(rows, np.inf)
        costs = {name: axis.costs(columns[name], self.owner) for name, axis in self.axes.items()}
        for combos, relations in self.alternatives:
            open_rows = np.arange(rows)
            tried: list[Ints] = []
            for _ in range(TRIES):
                if not open_rows.size:
                    break
                place, cost = _cheapest(costs, combos, open_rows, tried)
                tried = [*(t[np.isfinite(cost)] for t in tried), place[np.isfinite(cost)]]
                open_rows, place = open_rows[np.isfinite(cost)], place[np.isfinite(cost)]
                if not open_rows.size:
                    break
                made, cost, solved = self._within(columns, open_rows, combos[place], relations)
                better = solved & (cost < least[open_rows])
                for name in self.columns:
                    best[name][open_rows[better]] = made[name][better]
                least[open_rows[better]] = cost[better]
                open_rows, tried = open_rows[~solved], [t[~solved] for t in tried]
        # Where no combination was found, or rounding broke the one that was, a known record stands.
        kept = np.logical_and.reduce([constraint.holds(best) for constraint in self.constraints])
        if (lost := np.flatnonzero(np.isinf(least) | ~kept)).size:
            if self.witness is None:  # a plan does not know which columns are of whole numbers
                why = ConstraintSet(self.constraints, self.owner.schema, self.owner.grids)
                raise InputError(
                    f"[constraints] {why.contradiction()} Columns of whole numbers stay whole."
                )
            for name, value in self.witness.items():
                if name not in self.owner.frozen:
                    best[name][lost] = value
        return best

    def _within(
        self, columns: Mapping[str, Array], rows: Ints, combos: Ints, relations: list[Relation]
    ) -> tuple[dict[str, Array], Floats, Bools]:
        """Find the nearest records in given cells, their costs, and where one exists."""
        made = {name: columns[name][rows] for name in self.columns}
        for at, (name, axis) in enumerate(self.axes.items()):
            made[name] = axis.move(made[name], combos[:, at])
        solved = np.ones(len(rows), dtype=bool)
        if relations:
            start = np.column_stack([columns[name][rows] for name in self.numeric]).astype(float)
            gone = np.column_stack([np.isnan(made[name].astype(float)) for name in self.numeric])
            low, high = self._box(combos)
            for at, name in enumerate(self.numeric):
                moved = made[name].astype(float)
                start[:, at] = np.where(np.isnan(start[:, at]), moved, start[:, at])
                if name in self.owner.frozen:
                    low[:, at] = high[:, at] = start[:, at]
            start[gone], low[gone], high[gone] = 0.0, 0.0, 0.0
            x, solved = self._polyhedron(relations).project(start, low, high, gone)
            x[gone] = np.nan
            for at, name in enumerate(self.numeric):
                made[name] = x[:, at]
        cost = np.zeros(len(rows))
        for name in self.columns:
            cost += _move(columns[name][rows], made[name])
        return made, cost, solved


def _cheapest(
    costs: Mapping[str, Floats], combos: Ints, rows: Ints, tried: Sequence[Ints]
) -> tuple[Ints, Floats]:
    """Return for each row the untried combination of least cost, and the cost."""
    place, cost = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows))
    if not costs:
        cost[:] = np.inf if tried else 0.0
        return place, cost
    size = max(1, 2_000_000 // len(combos))
    for begin in range(0, len(rows), size):
        some = slice(begin, begin + size)
        total = np.zeros((len(rows[some]), len(combos)))
        for at, column_costs in enumerate(costs.values()):
            total += column_costs[rows[some]][:, combos[:, at]]
        for excluded in tried:
            total[np.arange(len(total)), excluded[some]] = np.inf
        place[some] = total.argmin(axis=1)
        cost[some] = total.min(axis=1)
    return place, cost


def _move(before: Array, after: Array) -> Floats:
    """Return the cost of each cell's change: 1 plus a share of its distance, 0 if unchanged."""
    if before.dtype == object:
        return np.array([float(a != b) for a, b in zip(before, after, strict=True)])
    comparable = np.isnan(before) == np.isnan(after)
    distance = np.abs(np.nan_to_num(after) - np.nan_to_num(before))
    distance = np.where(comparable, distance, 1.0)
    return np.where(distance > 0, 1.0 + 0.1 * distance / (1.0 + distance), 0.0)


def _choices(node: Node) -> list[list[Node]]:
    """List the ways to satisfy a condition: lists of relations and of plain conditions."""
    if not any(isinstance(leaf, Relation) and leaf.terms for leaf in leaves(node)):
        return [[node]]
    if isinstance(node, AnyOf):
        return [way for part in node.parts for way in _choices(part)]
    if isinstance(node, AllOf):
        ways = product(*map(_choices, node.parts))
        return [[leaf for way in some for leaf in way] for some in ways]
    return [[node]]


def _half(relation: Relation, names: Sequence[str], grid: Any) -> Half:
    b = relation.constant
    if relation.op == "<":
        grids = {grid(name) for name in relation.terms}
        step = grids.pop() if len(grids) == 1 else None
        b -= step or MARGIN * max(abs(b), 1.0)
    a = np.array([relation.terms.get(name, 0.0) for name in names])
    return Half(a, b, equal=relation.op == "==")


def _constraint(node: Node) -> Constraint:
    named: dict[str, None] = {}
    for leaf in leaves(node):
        names = (
            (leaf.column,) if isinstance(leaf, Atom)
            else leaf.columns if isinstance(leaf, Relation)
            else (leaf.source, leaf.target)
        )  # fmt: skip
        named |= dict.fromkeys(names)
    return Constraint("", tuple(named), node)


def unusable(constraints: Iterable[Constraint]) -> str:
    """Explain why a rule cannot be enforced by construction or projection; None if it can."""
    for rule in constraints:
        for leaf in rule.relations():
            if isinstance(leaf.left, Computed) or isinstance(leaf.right, Computed):
                return f"Rule '{rule.text}' is not linear. [evaluate] can count how often it holds."
            if leaf.terms and (leaf.op == "!=" or not any(leaf.terms.values())):
                return f"Rule '{rule.text}' cannot be kept: it only asks numbers to differ."
    return ""
