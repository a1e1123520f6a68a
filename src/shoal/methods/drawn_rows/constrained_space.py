"""Encode records so that a model of the codes cannot violate a public constraint.

Three things are done, in this order, all of them by the policy alone:

1. Numbers and days in linear relations, such as `tax <= income`, become their places in the
   intervals that these leave (`shoal.methods.drawn_rows.placed_columns`).
2. Rules without relations are evaluated on all combinations of their columns' codes. Codes that no
   rule tells apart form an atom; rules join columns into components with structural zeros
   (`shoal.synthesis.maxent.structural_zeros`).
3. Two columns of categories whose allowed combinations are no more than both have categories become
   one column of these combinations, again and again. So what is determined is derived: a region
   from its district, flags of which at most one is set from one column.

A record's new codes are a function of that record and the policy, so neighbours stay neighbours,
and nothing is paid. Records are expected to keep the rules: repair comes before (`[constraints]`).
Where rounding to a grid breaks one, a combination that is not allowed becomes one that is, and a
number outside its interval the nearest end: again a function of the record.

Decoded rows keep all rules of steps 2 and 3, and those of step 1 if each column has one place in
the order. What is left are relations inside conditions, products, relations whose columns other
rules name too, and intervals that are empty: rows that break such a rule are moved to the nearest
that does not, as those of any method are, which may move shares of small strata.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from shoal.core import Column, Kind
from shoal.core._arrays import Bools, Floats, Ints
from shoal.core.constraints import Constraint
from shoal.errors import InputError
from shoal.methods.drawn_rows.placed_columns import PlacedColumn, decode_values, placements
from shoal.methods.trees.spatial_encoding import SpatialEncoding, spatial_encoding
from shoal.synthesis.maxent.structural_zeros import Component

_MOST = 1 << 20
"""Combinations that a rule, or a component's atoms, may have."""
_MOST_ATOMS = 128


@dataclass(frozen=True, eq=False)
class _Compound:
    """Several categorical columns as one.

    Attributes:
        columns: which, by index.
        axis: of their allowed combinations.
        combinations: of codes, one row each.
        numbers: code of each combination; a forbidden one has the code of an allowed one.
    """

    columns: tuple[int, ...]
    axis: SpatialEncoding
    combinations: Ints
    numbers: Ints


@dataclass(frozen=True, eq=False)
class ConstrainedSpace:
    """The released columns, and the encoded columns that are modelled.

    Attributes:
        space: public axes of the released columns.
        modelled: axes of what is modelled.
        zeros: combinations of its codes that are not allowed.
        placed: columns that are modelled by their place in an interval, in their order.
        sources: of each modelled column, the column or the compound that it is.
    """

    space: tuple[SpatialEncoding, ...]
    modelled: tuple[SpatialEncoding, ...]
    zeros: tuple[Component, ...]
    placed: tuple[PlacedColumn, ...]
    sources: tuple[int | _Compound, ...]

    def encode(self, codes: Sequence[Ints]) -> list[Ints]:
        """Encode each record as codes of the modelled columns."""
        encoded = list(codes)
        values = self._values(codes, range(len(codes))) if self.placed else {}
        for placement in self.placed:
            if not placement.derived:
                encoded[placement.column] = placement.encode(codes[placement.column], values)
        return [
            encoded[source]
            if isinstance(source, int)
            else source.numbers[tuple(encoded[j] for j in source.columns)]
            for source in self.sources
        ]

    def decode(self, rows: Sequence[Ints | Floats]) -> list[Ints | Floats]:
        """Decode rows of the modelled columns to codes of the released columns."""
        codes: dict[int, Ints | Floats] = {}
        for source, column in zip(self.sources, rows, strict=True):
            if isinstance(source, int):
                codes[source] = column
            else:
                drawn = source.combinations[np.asarray(column, dtype=np.int64)]
                codes |= {j: drawn[:, axis] for axis, j in enumerate(source.columns)}
        if self.placed:
            given = set(codes) - {placement.column for placement in self.placed}
            values = self._values(codes, given)
            for placement in self.placed:
                places = np.zeros(len(rows[0])) if placement.derived else codes[placement.column]
                codes[placement.column] = placement.decode(np.rint(places).astype(np.int64), values)
                values |= self._values(codes, [placement.column])
        return [codes[j] for j in range(len(self.space))]

    def _values(self, codes: Any, which: Any) -> dict[int, Floats]:
        numeric = {j for p in self.placed for limit in p.limits for j in limit.factors}
        return {
            j: decode_values(self.space[j], codes[j]).astype(np.float64)
            for j in which
            if j in numeric
        }


_MADE: deque[tuple[tuple[Any, ...], ConstrainedSpace]] = deque(maxlen=4)
"""The last ones: a page plans every method for the same columns and rules."""


def constrain_space(columns: Sequence[Column], rules: Sequence[Constraint]) -> ConstrainedSpace:
    """Choose the columns to model under the constraints.

    Raises:
        InputError: a rule names a column that is not modelled, or rules are too many for a model.
    """
    asked = (tuple(columns), tuple(rules))
    cached = next((made for known, made in tuple(_MADE) if known == asked), None)
    if cached is None:
        cached = _constrain_space(*asked)
        _MADE.appendleft((asked, cached))
    return cached


def _constrain_space(columns: Sequence[Column], rules: Sequence[Constraint]) -> ConstrainedSpace:
    space = [spatial_encoding(column, scaled=True, gaps=True) for column in columns]
    names = [column.name for column in columns]
    if foreign := {name for rule in rules for name in rule.columns} - set(names):
        raise InputError(
            f"[constraints]: a rule names '{min(foreign)}', which is not among the protected "
            "columns that rows are drawn for."
        )
    joined = [rule for rule in rules if rule.boolean]
    placed = placements(space, names, [rule for rule in rules if rule.linear], joined)
    for placement in placed:
        space[placement.column] = placement.plain
    zeros = _components(space, names, joined)
    zeros, compounds = _merge_columns(space, zeros)
    sources: list[int | _Compound] = []
    derived = {placement.column for placement in placed if placement.derived}
    for j in sorted(set(range(len(space))) - derived):
        merged = next((compound for compound in compounds if j in compound.columns), None)
        if merged is None or j == merged.columns[0]:
            sources.append(j if merged is None else merged)
    axes = {placement.column: placement.axis for placement in placed}
    modelled = [
        axes.get(source, space[source]) if isinstance(source, int) else source.axis
        for source in sources
    ]
    where = {
        (source if isinstance(source, int) else source.columns[0]): index
        for index, source in enumerate(sources)
    }
    zeros = [replace(zero, columns=tuple(where[j] for j in zero.columns)) for zero in zeros]
    return ConstrainedSpace(
        tuple(space), tuple(modelled), tuple(zeros), tuple(placed), tuple(sources)
    )


def _components(
    space: Sequence[SpatialEncoding], names: Sequence[str], rules: Sequence[Constraint]
) -> list[Component]:
    """Find which combinations of atoms the rules without relations allow."""
    classes = {names.index(name): None for rule in rules for name in rule.columns}
    cut = {j: _classes(space[j], rules) for j in classes}
    tables = [
        _table(rule, [names.index(name) for name in rule.columns], space, cut) for rule in rules
    ]
    atoms = {j: np.zeros(cut[j].max() + 1, dtype=np.int64) for j in cut}
    for columns, table in tables:
        for axis, j in enumerate(columns):
            _, kinds = np.unique(_slices(table, axis), axis=0, return_inverse=True)
            _, atoms[j] = np.unique(
                np.column_stack([atoms[j], kinds.ravel()]), axis=0, return_inverse=True
            )
            atoms[j] = atoms[j].ravel()
    components = []
    for members in _connect([columns for columns, _ in tables]):
        shape = [int(atoms[j].max()) + 1 for j in members]
        if prod(shape) > _MOST:
            raise InputError(
                f"[constraints]: rules join {', '.join(names[j] for j in members)} in more than "
                f"{_MOST:,} combinations. State fewer of them, or with fewer values."
            )
        allowed = np.ones(shape, dtype=bool)
        for columns, table in tables:
            if columns[0] in members:
                first = [np.unique(atoms[j], return_index=True)[1] for j in columns]
                part = table[np.ix_(*first)].transpose(np.argsort(columns))
                axes = [shape[k] if j in columns else 1 for k, j in enumerate(members)]
                allowed &= part.reshape(axes)
        codes = tuple(atoms[j][cut[j]] for j in members)
        components.append(_coarse(Component(tuple(members), codes, allowed)))
    for component in components:
        if not component.allowed.any():
            listed = ", ".join(names[j] for j in component.columns)
            raise InputError(
                f"[constraints]: no combination of values of {listed} keeps all rules."
            )
        if max(component.allowed.shape) > _MOST_ATOMS:
            worst = names[component.columns[int(np.argmax(component.allowed.shape))]]
            raise InputError(
                f"[constraints]: rules cut '{worst}' into more than {_MOST_ATOMS} parts."
            )
    return [component for component in components if not component.allowed.all()]


def _classes(axis: SpatialEncoding, rules: Sequence[Constraint]) -> Ints:
    """Group codes that no comparison of the column with values can distinguish."""
    codes = np.arange(axis.count)
    if axis.order is not None:
        return codes
    name, cells = axis.column.name, decode_values(axis, codes)
    starts = np.zeros(axis.count, dtype=bool)
    for rule in rules:
        for atom in rule.atoms():
            if atom.column == name:
                true, _ = Constraint(rule.text, (name,), atom).truth({name: cells})
                starts[1:] |= true[1:] != true[:-1]
    if axis.gap:
        starts[-1] = True
    return np.cumsum(starts)


def _table(
    rule: Constraint,
    columns: list[int],
    space: Sequence[SpatialEncoding],
    cut: Mapping[int, Ints],
) -> tuple[list[int], Bools]:
    """Tabulate which combinations of its columns' classes a rule allows."""
    first = [np.unique(cut[j], return_index=True)[1] for j in columns]
    shape = tuple(codes.size for codes in first)
    if prod(shape) > _MOST:
        raise InputError(
            f"[constraints]: the rule '{rule.text}' has more than {_MOST:,} combinations of values."
        )
    places = np.unravel_index(np.arange(prod(shape)), shape)
    cells = {
        space[j].column.name: decode_values(space[j], codes)[place]
        for j, codes, place in zip(columns, first, places, strict=True)
    }
    return columns, rule.holds(cells).reshape(shape)


def _connect(sets: Sequence[Sequence[int]]) -> list[list[int]]:
    """Find the connected components of overlapping sets; each list in increasing order."""
    groups: list[set[int]] = []
    for members in sets:
        touching = [other for other in groups if other & set(members)]
        groups = [other for other in groups if not other & set(members)]
        groups.append(set(members).union(*touching))
    return sorted(sorted(group) for group in groups)


def _slices(table: Bools, axis: int) -> Bools:
    return np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)


def _coarse(one: Component) -> Component:
    """Join the atoms of a component that it does not distinguish."""
    allowed, atoms = one.allowed, list(one.atoms)
    for axis in range(allowed.ndim):
        _, first, classes = np.unique(
            _slices(allowed, axis), axis=0, return_index=True, return_inverse=True
        )
        atoms[axis] = classes.ravel()[atoms[axis]]
        allowed = np.take(allowed, first, axis=axis)
    return Component(one.columns, tuple(atoms), allowed)


def _merge_columns(
    space: Sequence[SpatialEncoding], zeros: Sequence[Component]
) -> tuple[list[Component], list[_Compound]]:
    """Merge categorical columns whose allowed combinations do not outnumber their codes."""
    left, compounds = [], []
    for component in zeros:
        members = {j: np.arange(space[j].count)[:, None] for j in component.columns}
        names: dict[int, tuple[int, ...]] = {j: (j,) for j in component.columns}
        merged = component
        while pair := _mergeable(merged, [space[names[j][0]] for j in merged.columns]):
            merged, (a, b), kept = _merge(merged, *pair)
            members[a] = np.hstack([members[a][kept[:, 0]], members[b][kept[:, 1]]])
            names[a] += names.pop(b)
        for j, columns in names.items():
            if len(columns) > 1:
                compounds.append(_compound(space, columns, members[j]))
        if not merged.allowed.all():
            left.append(merged)
    return left, compounds


def _mergeable(one: Component, axes: Sequence[SpatialEncoding]) -> tuple[int, int] | None:
    """Return the first two columns, by axis, with few allowed combinations."""
    codes = [np.bincount(atoms) for atoms in one.atoms]
    for a, b in combinations(range(len(axes)), 2):
        few = one.cells((one.columns[a], one.columns[b]), codes) <= codes[a].sum() + codes[b].sum()
        if few and axes[a].order is not None and axes[b].order is not None:
            return a, b
    return None


def _merge(one: Component, a: int, b: int) -> tuple[Component, tuple[int, int], Ints]:
    """Merge column b into a; also return the allowed combinations of their codes."""
    away = tuple(axis for axis in range(one.allowed.ndim) if axis not in (a, b))
    pairs = np.asarray(one.allowed.any(axis=away))
    kept = np.argwhere(pairs[np.ix_(one.atoms[a], one.atoms[b])])
    both = np.argwhere(pairs)
    numbers = np.zeros(pairs.shape, dtype=np.int64)
    numbers[tuple(both.T)] = np.arange(len(both))
    last = np.moveaxis(one.allowed, (a, b), (-2, -1))[..., both[:, 0], both[:, 1]]
    columns, atoms = list(one.columns), list(one.atoms)
    atoms[a] = numbers[atoms[a][kept[:, 0]], atoms[b][kept[:, 1]]]
    merged = np.moveaxis(last, -1, a)
    names = (columns[a], columns[b])
    del columns[b], atoms[b]
    return _coarse(Component(tuple(columns), tuple(atoms), merged)), names, kept


def _compound(
    space: Sequence[SpatialEncoding], columns: tuple[int, ...], members: Ints
) -> _Compound:
    """Make the column of allowed combinations."""
    order = np.argsort(columns)
    columns, members = tuple(sorted(columns)), members[:, order]
    shape = tuple(space[j].count for j in columns)
    numbers = np.full(shape, -1, dtype=np.int64)
    numbers[tuple(members.T)] = np.arange(len(members))
    flat = np.flatnonzero(numbers.ravel() >= 0)
    nearest = flat[np.minimum(np.searchsorted(flat, np.arange(numbers.size)), flat.size - 1)]
    numbers = numbers.ravel()[nearest].reshape(shape)
    source = next((k for k, j in enumerate(columns) if space[j].count == len(members)), None)
    if source is not None:  # it determines the others
        by_code = np.argsort(members[:, source])
        return _Compound(
            columns, space[columns[source]], members[by_code], np.argsort(by_code)[numbers]
        )
    axes = [space[j] for j in columns]
    texts = [
        [axis.text(code, code + 1) for axis, code in zip(axes, row, strict=True)]
        for row in members.tolist()
    ]
    column = Column(
        " and ".join(axis.column.name for axis in axes),
        axes[0].column.role,
        Kind.NOMINAL,
        categories=tuple(", ".join(row) for row in texts),
    )
    return _Compound(columns, spatial_encoding(column), members, numbers)
