"""Original and release on common axes, as arrays for metrics."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.core import Kind, Role, Schema, SpatialDecomposition
from shoal.core._arrays import Bools, Floats, Ints
from shoal.io.decomposition_table import category_order
from shoal.io.external.read import ExternalRelease
from shoal.io.table import Table
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.distributions import marginal_distances, marginal_masses, quantile_edges

BINS = 16
"""Bins of a numeric column when marginals are compared; missing cells have one more."""
_BEYOND = 1e300
"""Where marginals have the missing numbers: after every number."""


@dataclass(frozen=True, eq=False)
class AlignedArrays:
    """Both tables over the same axes: the columns that the release has, with a kind.

    Attributes:
        reading: how the release was read.
        names: one axis each; of a tree, its axes and the column that it counts.
        places: of the original, records by axes; NaN for a missing number.
        original: the same as boxes, weighted where the policy names a weight.
        released: the release as boxes.
        suppressed: released boxes by axes: the cell says nothing.
        missing: released boxes by axes: the cell is empty.
        gap: released boxes by axes: width of the places that a box holds and its cell does not.
        control: places of people who are not in the original, on the same axes and over the same
            categories; None if none were handed in.
        weighted: how sentences say that people count by sampling weights; "" where each counts 1.
    """

    reading: ExternalRelease
    names: tuple[str, ...]
    places: Floats
    original: WeightedBoxes
    released: WeightedBoxes
    suppressed: Bools
    missing: Bools
    lows: Floats
    highs: Floats
    gap: Floats
    control: Floats | None = None
    weighted: str = ""

    @classmethod
    def of(cls, reading: ExternalRelease) -> "AlignedArrays":
        """Place both tables on the axes of a reading."""
        names, places, domains = reading.columns, reading.places, reading.domains
        discrete, outside = reading.discrete, reading.outside
        tree = reading.tree
        if tree is not None and tree.column is not None:
            names = (*names, tree.column)
            places = np.column_stack([places, _value_places(reading.original, tree)])
            if outside is not None and reading.control is not None:
                outside = np.column_stack([outside, _value_places(reading.control, tree)])
            domains = np.vstack([domains, [0.0, len(tree.values)]])
            discrete = (*discrete, True)
        low, high = domains[:, 0], domains[:, 1]
        if tree is not None:
            ends = (reading.domains[:, 0], reading.domains[:, 1])
            released = WeightedBoxes.of(tree, domain=ends)
            suppressed = missing = np.zeros(released.lower.shape, np.bool_)
            gap = np.zeros(released.lower.shape)
        else:
            ones = np.ones(len(reading.lower))
            lower, upper, suppressed = _missing_as_value(reading)
            released = WeightedBoxes(lower, upper, ones, discrete)
            gap, missing = reading.gap, reading.missing
        original = WeightedBoxes.points(places, discrete=discrete, domain=(low, high))
        laid = cls(
            reading, names, places, original, released, suppressed, missing, low, high, gap, outside
        )
        return laid._apply_weights()

    def _apply_weights(self) -> "AlignedArrays":
        """Weight by the sampling weights if both tables have them, and drop their axis."""
        name = self.schema.column_with_flag("sampling_weight")
        if name not in self.names or self.reading.weights is None:
            return self
        axis = self.names.index(name)
        weights = self.released.lower[:, axis]
        if (weights != self.released.upper[:, axis]).any() or (weights < 0).any():
            return self
        kept = [other for other in range(len(self.names)) if other != axis]
        return replace(
            self,
            names=tuple(self.names[other] for other in kept),
            places=self.places[:, kept],
            original=_some(self.original, kept, self.reading.weights),
            released=_some(self.released, kept, weights),
            suppressed=self.suppressed[:, kept],
            missing=self.missing[:, kept],
            lows=self.lows[kept],
            highs=self.highs[kept],
            gap=self.gap[:, kept],
            control=None if self.control is None else self.control[:, kept],
            weighted=", weighted by the sampling weights,",
        )

    @property
    def schema(self) -> Schema:
        """The schema of the axes."""
        return self.reading.schema

    @property
    def discrete(self) -> tuple[bool, ...]:
        """Whether each axis has categories."""
        return self.original.discrete

    @cached_property
    def midpoints(self) -> Floats:
        """The release as one number per cell, the middle of an interval; NaN if suppressed."""
        middle = self.released.centres()
        exact = self.released.lower == self.released.upper
        integral = ~exact & ~np.asarray(self.discrete) & _whole(self.places)
        # The middle of the whole numbers 20 to 29, kept as [20, 30), is 24.5.
        middle = np.where(integral, (self.released.lower + self.released.upper - 1) / 2, middle)
        return np.where(self.suppressed, np.nan, middle)

    @cached_property
    def marginals(self) -> tuple[tuple[Floats, ...], tuple[Floats, ...], tuple[Floats, ...]]:
        """The inner edges of each axis, and the one- and two-way marginals of both tables.

        The last bin of an axis has its missing cells, which are a value of their own in both
        tables; a suppressed cell spreads over the others.
        """
        inner = [
            np.arange(1.0, self.present[axis])
            if codes
            else quantile_edges(self.places[:, axis], BINS)
            for axis, codes in enumerate(self.discrete)
        ]
        edges = tuple(self.with_missing_edge(axis, edge) for axis, edge in enumerate(inner))
        before, after = (marginal_masses(side, edges) for side in self.with_missing)
        return edges, before, after

    @cached_property
    def distances(self) -> dict[tuple[int, ...], float]:
        """Total variation of each one- and two-way marginal, by axes, worst first.

        Every figure and picture of how far a distribution moved uses it.
        """
        _, before, after = self.marginals
        return {d.columns: d.distance for d in marginal_distances(before, after)}

    def two_way(self, first: int, second: int) -> tuple[Floats, Floats]:
        """Return the two-way marginal of both tables, one row per bin of the first axis."""
        edges, *masses = self.marginals
        count, (a, b) = len(self.names), sorted((first, second))
        # Two-way marginals follow the one-way ones, in the order of `combinations`.
        place = count + a * (2 * count - a - 1) // 2 + b - a - 1
        shape = (len(edges[a]) + 1, len(edges[b]) + 1)
        before, after = (mass[place].reshape(shape) for mass in masses)
        return (before, after) if first < second else (before.T, after.T)

    @cached_property
    def present(self) -> NDArray[np.int64]:
        """The number of categories of each discrete axis, without missing."""
        tree = self.reading.tree
        return np.array([
            0 if not codes
            else len(tree.values) if tree is not None and tree.column == self.names[axis]
            else len(self.categories(axis))
            for axis, codes in enumerate(self.discrete)
        ])  # fmt: skip

    def with_missing_edge(self, axis: int, inner: Floats) -> Floats:
        """Append the edge beyond which missing cells are placed to an axis' inner edges."""
        last = max(float(self.present[axis]), 1.0) if self.discrete[axis] else _BEYOND
        return np.append(inner, last)

    @cached_property
    def with_missing(self) -> tuple[WeightedBoxes, WeightedBoxes]:
        """Both tables as boxes in which missing cells are placed beyond all others."""
        discrete, last = np.asarray(self.discrete), np.maximum(self.present, 1)
        gone = np.where(discrete, self.places >= self.present, np.isnan(self.places))
        sides = []
        for boxes, missing in ((self.original, gone), (self.released, self.missing)):
            # What is suppressed is some value, and not a missing one.
            top = np.where(discrete & ~missing, last, np.inf)
            lower = np.where(missing, np.where(discrete, last, _BEYOND), boxes.lower)
            upper = np.where(missing, lower + discrete, np.minimum(boxes.upper, top))
            sides.append(WeightedBoxes(lower, upper, boxes.weights, self.discrete))
        return sides[0], sides[1]

    @property
    def keys(self) -> list[int]:
        """The axes of the quasi-identifiers."""
        return self.axes(self.schema.with_role(Role.QUASI_IDENTIFIER))

    @property
    def numeric(self) -> list[int]:
        """The axes of numbers and days."""
        return [axis for axis, codes in enumerate(self.discrete) if not codes]

    def axes(self, columns: tuple[str, ...]) -> list[int]:
        """Return the axes of some columns, if the release has them."""
        return [self.names.index(name) for name in columns if name in self.names]

    def categories(self, axis: int) -> tuple[str, ...]:
        """List the categories of an axis in the order of their codes."""
        name = self.names[axis]
        categories = self.reading.original.categories(name)
        return tuple(categories[code] for code in category_order(self.schema[name], categories))

    def codes(self, axis: int, *, released: bool = False) -> Ints:
        """Return each row's category on a discrete axis; -1 if missing or not known exactly."""
        if released:
            table = self.released
            exact = (table.upper[:, axis] - table.lower[:, axis] == 1) & ~self.suppressed[:, axis]
            places = np.where(exact, table.lower[:, axis], np.nan)
        else:
            places = self.places[:, axis]
        return self._code_places(places, axis)

    def outside(self, axes: list[int], axis: int) -> tuple[Floats, Ints] | None:
        """Return the control's coordinates on some axes, and its codes on a discrete axis.

        If the original has no missing cells there, a missing category is outside the domain, and
        unknown.
        """
        if self.control is None:
            return None
        places = self.control[:, axes]
        beyond = np.asarray(self.discrete)[axes] & (places >= self.highs[axes])
        return np.where(beyond, np.nan, places), self._code_places(self.control[:, axis], axis)

    def _code_places(self, places: Floats, axis: int) -> Ints:
        count = len(self.categories(axis))
        return np.where(np.isnan(places) | (places >= count), -1, places).astype(np.int64)


def _missing_as_value(reading: ExternalRelease) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Read an empty category as missing, the last code, if the original has such cells."""
    places = np.array([
        len(reading.original.categories(name)) if codes else -1
        for name, codes in zip(reading.columns, reading.discrete, strict=True)
    ])  # fmt: skip
    known = np.asarray(reading.discrete) & (reading.domains[:, 1] > places)
    gone = reading.missing & known
    lower = np.where(gone, places, reading.lower)
    upper = np.where(gone, places + 1, reading.upper)
    return lower, upper, reading.suppressed & ~gone


def _some(boxes: WeightedBoxes, axes: list[int], weights: Floats) -> WeightedBoxes:
    discrete = tuple(boxes.discrete[axis] for axis in axes)
    return WeightedBoxes(boxes.lower[:, axes], boxes.upper[:, axes], weights, discrete)


def _value_places(table: Table, tree: SpatialDecomposition) -> Floats:
    """Return the code of each record's counted value, in the order of the tree's values."""
    name = tree.column or ""
    places = {value: float(place) for place, value in enumerate(tree.values)}
    if table.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        categories = table.categories(name)
        known = np.array([places.get(category, np.nan) for category in (*categories, "")])
        return known[table.codes(name)]
    texts = table.frame[name].cast(str).fill_null("")
    return np.array([places.get(text, np.nan) for text in texts])


def _whole(places: Floats) -> NDArray[np.bool_]:
    """Return which axes of the original have only whole numbers."""
    present = np.where(np.isnan(places), 0.0, places)
    integral: NDArray[np.bool_] = (present == np.rint(present)).all(axis=0)
    return integral
