"""Encode numbers and days under linear relations by their position in the allowed interval.

The columns of relations are put in an order: the total before its parts, the greater number before
the smaller, the earlier day before the later, and a column that other rules name before all. Given
the columns before it, and the public bounds of those after it, each column has an interval in which
it keeps every relation. A day is modelled by its distance from the end that another column sets, a
number by its place in the interval, from 0 to 1. The last part of a sum has an interval of one
number, and is derived.

Encoding sees one record and the policy. It is the inverse of decoding for records that keep the
relations, up to the rounding of a place to 2^-20 of its interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import cast

import numpy as np

from shoal.core import Column, Kind
from shoal.core._arrays import Array, Floats, Ints
from shoal.core.constraints import Constraint, Relation
from shoal.methods.trees.spatial_encoding import SpatialEncoding, spatial_encoding

_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Limit:
    """An upper or lower limit: a constant plus multiples of earlier columns."""

    upper: bool
    constant: float
    factors: Mapping[int, float]


@dataclass(frozen=True, eq=False)
class PlacedColumn:
    """A number or day that is modelled by its position in the allowed interval.

    Attributes:
        column: which, by index.
        axis: how it is modelled.
        plain: its own public axis.
        end: for a day, whether it is the distance from the lower end, or the upper one.
        derived: those before it determine it, so it is not modelled.
    """

    column: int
    axis: SpatialEncoding
    plain: SpatialEncoding
    limits: tuple[Limit, ...]
    end: bool | None
    derived: bool

    def interval(self, values: Mapping[int, Floats], rows: int) -> tuple[Floats, Floats]:
        """Return the codes of the column's own axis that satisfy the relations; at least one."""
        low, high = np.zeros(rows), np.full(rows, float(self.plain.present - 1))
        for limit in self.limits:
            bound = np.full(rows, limit.constant)
            for j, factor in limit.factors.items():
                bound += factor * values[j]
            code = _units(self.plain, bound)
            if self.plain.grid is None:
                code = np.floor(code + _SLACK) if limit.upper else np.ceil(code - _SLACK)
            if limit.upper:
                high = np.where(np.isnan(code), high, np.minimum(high, code))
            else:
                low = np.where(np.isnan(code), low, np.maximum(low, code))
        low = np.clip(low, 0, self.plain.present - 1)
        return low, np.maximum(high, low)

    def encode(self, codes: Ints, values: Mapping[int, Floats]) -> Ints:
        """Encode records by their positions in their intervals."""
        low, high = self.interval(values, len(codes))
        inside = np.clip(codes, low, high)
        if self.end is None:
            wide = np.where(high > low, high - low, 1.0)
            place = np.rint((inside - low) / wide * (self.axis.present - 1))
        else:
            place = np.rint(inside - low if self.end else high - inside)
        gone = codes >= self.plain.present
        return np.where(gone, self.axis.present, place).astype(np.int64)

    def decode(self, places: Ints, values: Mapping[int, Floats]) -> Ints | Floats:
        """Decode positions to codes of the column's own axis, with fractions if it is a grid."""
        low, high = self.interval(values, len(places))
        if self.end is None:
            codes = low + (high - low) * (places / (self.axis.present - 1))
        else:
            codes = np.minimum(low + places, high) if self.end else np.maximum(high - places, low)
        if self.plain.grid is None:
            codes = np.rint(codes)
        codes = np.where(places >= self.axis.present, self.plain.present, codes)
        return codes if self.plain.grid is not None else codes.astype(np.int64)


def decode_values(axis: SpatialEncoding, codes: Ints | Floats) -> Array:
    """Return the values of codes, in the units that constraints compare."""
    gone = axis.gap & (np.rint(codes) >= axis.present)
    if axis.order is None:
        return np.where(gone, np.nan, axis.values(np.where(gone, 0, codes)))
    categories = np.array(
        [*cast("tuple[str, ...]", axis.column.all_categories), None], dtype=object
    )
    places = np.asarray(np.where(gone, 0, codes), dtype=np.int64) + axis.first
    return categories[np.where(gone, len(categories) - 1, axis.order[places])]


def _units(axis: SpatialEncoding, numbers: Floats) -> Floats:
    """Convert numbers or days to codes, with fractions."""
    if axis.grid is not None:
        low, high = float(axis.grid.low), float(axis.grid.high)
        return (numbers - low) / (high - low) * (axis.present - 1)
    if axis.step is not None:
        numbers = numbers * axis.step.denominator / axis.step.numerator
    return numbers - axis.first


def placements(
    space: Sequence[SpatialEncoding],
    names: Sequence[str],
    linear: Sequence[Constraint],
    joined: Sequence[Constraint],
) -> list[PlacedColumn]:
    """Choose the columns that are modelled by their position in an interval, in order."""
    relations = [
        ({names.index(name): factor for name, factor in relation.terms.items() if factor}, relation)
        for rule in linear
        for relation in rule.relations()
    ]
    fixed = {names.index(name) for rule in joined for name in rule.columns}
    days = {j for j, axis in enumerate(space) if axis.column.kind is Kind.DATE}
    before: dict[int, set[int]] = {j: set() for terms, _ in relations for j in terms}
    for terms, affine in relations:
        first = _first(terms, fixed, days)
        parts = sorted(set(terms) - {first}, key=lambda j: -_grain(space[j]))
        if affine.op == "==" and _grain(space[first]) < min(map(_grain, (space[j] for j in parts))):
            parts, first = [*parts[1:], first], parts[0]  # only a finer grid has every sum
        chain = affine.op == "=="
        for early, late in pairwise([first, *parts]) if chain else [(first, j) for j in parts]:
            before[late].add(early)
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError:
        order = sorted(before)
    placed = []
    for j in order:
        if j in fixed:
            continue
        plain = spatial_encoding(space[j].column, gaps=True)
        earlier = set(order[: order.index(j)])
        limits = [
            limit
            for terms, relation in relations
            if j in terms
            for limit in _limits(j, terms, relation, earlier=earlier, space=space)
        ]
        if any(limit.factors for limit in limits):
            end = None
            if j in days:
                end = any(limit.factors and not limit.upper for limit in limits)
            derived = any(
                relation.op == "=="
                and set(terms) <= {j, *earlier}
                and not any(space[k].gap for k in terms)
                for terms, relation in relations
                if j in terms
            )
            axis = _place_axis(plain, days=end is not None)
            placed.append(PlacedColumn(j, axis, plain, tuple(limits), end, derived))
    return placed


def _grain(axis: SpatialEncoding) -> float:
    """Return the distance between adjacent values of an axis; 0 on a grid."""
    if axis.step is not None:
        return float(axis.step)
    return 0.0 if axis.grid is not None else 1.0


def _first(terms: Mapping[int, float], fixed: set[int], days: set[int]) -> int:
    """Return the first column of a relation: a total, the greater number, the earlier day."""
    bound = [j for j in terms if j in fixed]
    if len(bound) == 1:
        return bound[0]
    falling = [j for j, factor in terms.items() if factor < 0]
    rising = [j for j, factor in terms.items() if factor > 0]
    if set(terms) <= days and len(terms) == 2 and rising:
        return rising[0]
    preferred = falling if len(falling) == 1 else rising if len(rising) == 1 else list(terms)
    return preferred[0]


def _limits(
    j: int,
    terms: Mapping[int, float],
    relation: Relation,
    *,
    earlier: set[int],
    space: Sequence[SpatialEncoding],
) -> list[Limit]:
    """Derive a column's limits from a relation, earlier columns and later columns' bounds."""
    limits = []
    multiple = terms[j]
    signs = (1, -1) if relation.op == "==" else (1,)
    for sign in signs:  # sign * (sum of terms) <= sign * constant
        constant = sign * relation.constant
        for k, factor in terms.items():
            if k != j and k not in earlier:
                ends = decode_values(space[k], np.array([0, space[k].present - 1]))
                constant -= float((sign * factor * ends).min())
        upper = sign * multiple > 0
        constant /= sign * multiple
        if relation.op == "<":
            constant += (-1 if upper else 1) * (_grain(space[j]) or _SLACK * abs(constant))
        factors = {k: -factor / multiple for k, factor in terms.items() if k in earlier}
        limits.append(Limit(upper, constant, factors))
    return limits


def _place_axis(plain: SpatialEncoding, *, days: bool) -> SpatialEncoding:
    """Make the axis of positions: days from one end, or shares of the interval."""
    high, step = (Decimal(max(plain.present - 1, 1)), Decimal(1)) if days else (Decimal(1), None)
    kind = "days from its limit" if days else "place in its interval"
    column = Column(
        f"{plain.column.name}, {kind}",
        plain.column.role,
        Kind.NUMERIC,
        (Decimal(0), high),
        step=step,
        keep_missing=plain.gap,
    )
    return spatial_encoding(column, gaps=True)
