"""What a public folder shows of each column: its cells, and how they were treated.

Nothing else is read. `Treatment` is what an estimate has to undo.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.core import (
    GAUSSIAN,
    RESPONSE,
    SELECTION,
    Column,
    Kind,
    Neighbours,
    Policy,
    Release,
    ReleaseForm,
)
from shoal.core._arrays import Floats, Ints
from shoal.core.allowed_records import ConstraintSet
from shoal.core.manifest import Manifest, PrivacyLossRecord
from shoal.errors import InputError, did_you_mean
from shoal.io.external.cells import Form, numeric
from shoal.methods import find
from shoal.methods.discovery import settle_policy
from shoal.methods.drawn_rows.constrained_space import constrain_space
from shoal.methods.method import CellFacts
from shoal.methods.trees.spatial_encoding import missing_label
from shoal.publish.released_folder import read_recorded_policy
from shoal.publish.verify_folder import open_verified

_FEW = 0.01
"""Share of missing cells up to which a count of the largest values may have them too."""
GRID = 1 << 20
_RANGE = re.compile(r"\[(-?[\d.e+-]+), (-?[\d.e+-]+)[)\]]")


class Treatment(StrEnum):
    """How the cells of a column were treated."""

    NONE = "released as it is"
    GROUP_MEANS = "replaced by the means of groups"
    INTERVALS = "replaced by intervals"
    CELL_NOISE = "noise on each cell"
    RESPONSE = "randomised response"
    GROUP_NOISE = "noise on the means of groups"
    DRAWN = "drawn from noisy measurements"
    MOVED = "moved to keep rules"
    BOUND = "drawn between limits that rules set"
    UNKNOWN = "replaced by values whose error is not published"


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Noisy counts of one or several columns.

    Attributes:
        columns: the counted columns.
        cells: for each column what its cells are: (low, high) of numbers, or sets of categories.
        counts: one axis per column.
        variance: of the noise of each count.
        gaussian: whether the noise is Gaussian rather than Laplace; sums are neither.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...]
    counts: Floats
    variance: float
    gaussian: bool = False

    def over(self, columns: Sequence[str]) -> "NoisyTable":
        """Sum to the table of some of the columns, in this order; variances add up."""
        axes = [self.columns.index(name) for name in columns]
        away = tuple(axis for axis in range(self.counts.ndim) if axis not in axes)
        kept = sorted(axes)
        summed = self.counts.sum(axis=away).transpose([kept.index(axis) for axis in axes])
        joined = self.counts.size / summed.size
        cells = tuple(self.cells[axis] for axis in axes)
        variance = self.variance * joined
        return NoisyTable(tuple(columns), cells, summed, variance, self.gaussian)


@dataclass(frozen=True, eq=False)
class NoisyBlocks:
    """Noisy sums of a column over runs of ranks, in units of `unit` above `low`."""

    sizes: Ints
    sums: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A public folder, or a release as its folder would have it.

    Attributes:
        frame: the released table.
        policy: as far as it is published.
        measurements: the noisy answers that rows were drawn from, if any.
    """

    frame: pl.DataFrame
    manifest: Manifest
    policy: Policy
    measurements: pl.DataFrame | None

    @classmethod
    def read(cls, folder: str | Path) -> "PublishedTable":
        """Read a folder that verifies; refuse others, and folders without rows."""
        opened = open_verified(Path(folder))
        if opened.manifest.release_form is ReleaseForm.TREE:
            raise InputError(
                "The release has boxes with counts in place of rows, and boxes alone say nothing "
                "about where in a box people are. No interval is supported for it."
            )
        return cls(
            opened.frame,
            opened.manifest,
            _restore_policy(opened.manifest, opened.frame),
            opened.measurements,
        )

    @classmethod
    def of(cls, release: Release) -> "PublishedTable":
        """Take a release that is not written yet."""
        policy = _restore_policy(release.manifest, release.data)
        return cls(release.data, release.manifest, policy, release.extras.get("measurements"))

    @property
    def n(self) -> int:
        """The number of released rows."""
        return self.frame.height

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of released rows is that of the confidential table."""
        return self.table_rows == self.n

    @property
    def table_rows(self) -> int | None:
        """The number of rows of the confidential table, if it is public."""
        neighbours = self.manifest.parameters.get("neighbours", Neighbours.CHANGE_ONE)
        cut = self.manifest.privacy_losses and self._unit and self._unit.max_contributions
        public = neighbours == Neighbours.CHANGE_ONE and not cut
        return self.n + self.manifest.suppressed if public else None

    @property
    def several_rows(self) -> bool:
        """Whether the policy lets a person have several rows."""
        unit = self._unit
        if unit is None or not self.manifest.privacy_losses:
            return unit is not None
        return bool(unit.max_contributions or unit.exact_contributions)

    @property
    def _unit(self) -> Column | None:
        """The column that numbers the persons, if one does."""
        return next((column for column in self.policy.schema.columns if column.privacy_unit), None)

    @property
    def linked(self) -> bool:
        """Whether the cells of a row belong together."""
        return self.manifest.release_form is not ReleaseForm.COLUMN_SHUFFLED

    @cached_property
    def weights(self) -> Floats | None:
        """The sampling weights, if they are released unchanged."""
        weight = self.policy.schema.column_with_flag("sampling_weight")
        if weight is None or weight not in self.frame.columns:
            return None
        drawn = self.treatment(weight) is not Treatment.NONE
        return None if drawn else self.frame[weight].cast(pl.Float64).to_numpy()

    def column(self, name: str) -> Column:
        """Return the policy's settings of a column; refuse one that is not released."""
        if name not in self.frame.columns:
            guess = did_you_mean(name, self.frame.columns)
            raise InputError(f"The release has no column '{name}'.{guess}")
        return self.policy.schema[name]

    def numeric(self, name: str) -> bool:
        """Whether a column holds numbers, noisy ones and intervals included."""
        kind = self.column(name).kind
        return kind is Kind.NUMERIC or (kind is None and self.frame.schema[name].is_numeric())

    def categories(self, name: str) -> list[str]:
        """List the declared categories of a column, or else the released ones."""
        stated = self.column(name).categories
        if stated is not None:
            return list(stated)
        if name in self.manifest.hierarchies:
            return [row[0] for row in self.manifest.hierarchies[name]]
        return self.frame[name].drop_nulls().cast(pl.String).unique().sort().to_list()

    def step(self, name: str) -> float:
        """Return the step of a numeric column, or 0."""
        return float(self.column(name).step or 0)

    def bounds(self, name: str) -> tuple[float, float]:
        """Return the public bounds of a numeric column; infinite if none are stated."""
        low, high = self.column(name).bounds or (-np.inf, np.inf)
        return float(low), float(high)  # type: ignore[arg-type]  # numbers have no days

    def treatment(self, name: str) -> Treatment:
        """Return how a column was treated."""
        self.column(name)
        loss = self.loss(name)
        if self.measurements is not None:
            measured = f"cell_{name}" in self.measurements.columns
            merged = any(name in columns for columns in self.merged.values())
            return Treatment.DRAWN if measured or merged else Treatment.BOUND
        if self.manifest.release_form is ReleaseForm.SYNTHETIC:
            return Treatment.UNKNOWN
        kind = self._grouping(name) if loss is None else self._noise(name, loss)
        still = {Treatment.NONE, Treatment.INTERVALS, Treatment.UNKNOWN}
        return Treatment.MOVED if kind not in still and self._may_be_moved(name, kind) else kind

    @cached_property
    def cells(self) -> CellFacts:
        """What the method does to cells."""
        return find(self.manifest.method).cells

    @cached_property
    def _parts(self) -> tuple[tuple[set[str], bool], ...] | None:
        """Groups of columns that rules join, and whether all these rules are linear.

        None where the rules are not published, because they were copied from the data.
        """
        stated = self.manifest.policy.get("constraints", {})
        if not stated or stated.get("observed"):
            return None if stated else ()
        rules = ConstraintSet(self.policy.constraints.rules, self.policy.schema)
        return tuple(
            (set(part.columns), all(rule.linear for rule in part.constraints))
            for part in rules.parts
        )

    def may_be_repaired(self, name: str) -> bool:
        """Whether a record that violated a rule may have been changed before the method ran."""
        stated = self.manifest.policy.get("constraints", {}).get("repair")
        named = self._parts is None or any(name in columns for columns, _ in self._parts)
        return named and bool(stated or self.manifest.privacy_losses)

    def _may_be_moved(self, name: str, treatment: Treatment) -> bool:
        """Whether a rule may have changed cells after the method, by the policy alone.

        Means of the same groups satisfy the linear rules that their records satisfy, and stay
        unchanged.
        """
        if self._parts is None:
            return True
        means = treatment is Treatment.GROUP_MEANS
        return any(
            name in columns and not (means and linear and columns <= {*self.grouped})
            for columns, linear in self._parts
        )

    def _grouping(self, name: str) -> Treatment:
        if self.cells.classes_by_confidential:
            return Treatment.UNKNOWN
        if name not in self.manifest.protected_columns:
            return Treatment.NONE
        if not self.numeric(name):
            centres = self.manifest.parameters.get("output") == "centroids"
            generalised = self.cells.generalises and not centres
            single = set(self.frame[name].drop_nulls().unique()) <= set(self.categories(name))
            return Treatment.NONE if generalised and single else Treatment.UNKNOWN
        if self.frame.schema[name] == pl.String:
            return Treatment.INTERVALS
        means = self.manifest.parameters.get("aggregate") == "mean"
        return Treatment.GROUP_MEANS if means else Treatment.UNKNOWN

    def _noise(self, name: str, loss: PrivacyLossRecord) -> Treatment:
        if loss.mechanism == RESPONSE:
            return Treatment.UNKNOWN if self.cells.shrinks else Treatment.RESPONSE
        if loss.mechanism == SELECTION or not self.numeric(name):
            return Treatment.UNKNOWN
        if loss.draws == self.n:
            return Treatment.CELL_NOISE
        isotonic = self.manifest.parameters.get("isotonic", False)
        sized = "k" in self.manifest.parameters and not self.manifest.parameters.get("adaptive")
        return Treatment.GROUP_NOISE if sized and not isotonic else Treatment.UNKNOWN

    @property
    def grouped(self) -> tuple[str, ...]:
        """The columns with one value per group, for the same groups."""
        noisy = {entry.target for entry in self.manifest.privacy_losses}
        protected = self.manifest.protected_columns
        return tuple(n for n in self.frame.columns if n in protected and n not in noisy)

    def alone(self, name: str) -> bool:
        """Whether a column's groups were formed by this column alone."""
        return self.cells.by_column and name in self.manifest.protected_columns

    def loss(self, name: str) -> PrivacyLossRecord | None:
        """Return a column's entry in the accounting of noise, if any."""
        return next((e for e in self.manifest.privacy_losses if e.target == name), None)

    def laplace(self, name: str) -> float:
        """Return the scale of the noise on a cell or a group's sum, in the column's own unit."""
        low, high = self.bounds(name)
        loss = self.loss(name)
        assert loss is not None  # noqa: S101 (asked only where noise was recorded)
        return float(loss.scale) * (high - low) / GRID

    def response(self, name: str) -> tuple[float, float]:
        """Return the probabilities that randomised response keeps or changes a category."""
        loss = self.loss(name)
        assert loss is not None  # noqa: S101
        assert loss.epsilon is not None  # noqa: S101 (it never costs a rho)
        count = len(self.categories(name))
        other = 1 / (np.exp(min(float(loss.epsilon), 700.0)) + count - 1)
        return 1 - (count - 1) * other, other

    def numbers(self, name: str) -> Floats:
        """Return the cells of a numeric column, NaN if missing."""
        cells = self.frame[name].cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
        return np.array(cells, dtype=np.float64)

    def ends(self, name: str) -> tuple[Floats, Floats]:
        """Return the ends of interval cells; the public bounds if suppressed."""
        texts = self.frame[name].to_list()
        spans = {text: self._span(text, name) for text in set(texts)}
        if None in spans.values():
            raise InputError(
                f"Column '{name}' has cells whose numbers the release does not say. No interval is "
                "supported here."
            )
        ends = np.array([spans[text] for text in texts], dtype=np.float64).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]

    def _span(self, text: str | None, name: str) -> tuple[float, float] | None:
        """Parse the least and greatest number of a cell; None if it states none."""
        if text is None:
            return np.nan, np.nan
        cell = numeric(text, (".",), whole=False)
        if cell.form in {Form.STAR, Form.OPEN}:
            low, high = self.bounds(name)
            span = max(low, cell.lower), min(high, cell.upper)
            return span if np.isfinite(span).all() else None
        if cell.form in {Form.ONE, Form.RANGE}:
            return cell.lower, cell.upper
        paths = self.manifest.hierarchies.get(name, ())
        leaves = [float(path[0]) for path in paths if text in path]
        return (min(leaves), max(leaves)) if leaves else None

    @property
    def stratified(self) -> bool:
        """Whether people were counted separately by stratum."""
        return self.manifest.parameters.get("strata") is not None

    @cached_property
    def tables(self) -> tuple[NoisyTable, ...]:
        """All published noisy counts."""
        if self.measurements is None or self.stratified:
            return ()
        noisy = []
        for _, part in self.measurements.group_by("measurement", maintain_order=True):
            if part["sort"][0] != "table":
                continue
            cell_columns = [column for column in part.columns if column.startswith("cell_")]
            names = [c.removeprefix("cell_") for c in cell_columns if part[c][0] is not None]
            labels = [part[f"cell_{name}"].unique(maintain_order=True).to_list() for name in names]
            counts = part["answer"].to_numpy().astype(np.float64)
            cells = tuple(
                tuple(self._cell(label, name) for label in column)
                for name, column in zip(names, labels, strict=True)
            )
            shape = [len(column) for column in labels]
            variance, gaussian = _noise_of(part)
            noisy.append(NoisyTable(tuple(names), cells, counts.reshape(shape), variance, gaussian))
        return tuple(noisy)

    @cached_property
    def merged(self) -> dict[str, dict[str, dict[str, str]]]:
        """Axes that were counted for several columns jointly, because rules allow few combinations.

        For each axis its columns, and for each of these the category that a cell of the axis has.
        """
        merges: dict[str, dict[str, dict[str, str]]] = {}
        names = self.manifest.protected_columns
        if self.measurements is None or self.stratified or not self._parts:
            return merges
        if all(f"cell_{name}" in self.measurements.columns for name in names):
            return merges
        columns = [self.policy.schema[name] for name in names]
        space = constrain_space(columns, self.policy.constraints.rules)
        for axis, source in zip(space.modelled, space.sources, strict=True):
            if not isinstance(source, int):
                labels = [axis.text(code, code + 1) for code in range(axis.count)]
                merges[axis.column.name] = {
                    names[j]: {
                        label: space.space[j].text(code, code + 1)
                        for label, code in zip(labels, codes, strict=True)
                    }
                    for j, codes in zip(source.columns, source.combinations.T, strict=True)
                }
        return merges

    def mark_counts(self, table: NoisyTable, name: str, category: str) -> Floats | None:
        """Mark the counts of a category in a table; None if they cannot be separated."""
        for axis, sets in self._axes(table, name):
            marks = np.array([category in s for s in sets])
            if marks.any() and all(len(s) == 1 for s in sets if category in s):
                shape = np.where(np.arange(table.counts.ndim) == axis, len(sets), 1)
                return marks.reshape(shape).astype(np.float64)
        return None

    def _axes(self, table: NoisyTable, name: str) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the axes on which a table counts a column, with the categories of each cell."""
        for axis, (axis_name, cells) in enumerate(zip(table.columns, table.cells, strict=True)):
            if axis_name == name:
                yield axis, cells
            elif (labels := self.merged.get(axis_name, {}).get(name)) is not None:
                yield axis, tuple({labels[label] for label in cell} for cell in cells)

    def covering(self, columns: Sequence[str]) -> list[NoisyTable]:
        """Collect counts of people with values in these columns, from all tables with them."""
        margins = (
            self.present(table.over(columns))
            for table in self.tables
            if set(columns) <= set(table.columns)
        )
        return [table for table in margins if table is not None]

    def present(self, table: NoisyTable) -> NoisyTable | None:
        """Remove the missing cells from a table's counts.

        None where a count is of missing cells and others together.
        """
        for axis, name in enumerate(table.columns):
            if name not in self.frame.columns:
                continue
            gone, numeric = self.missing(name), self.numeric(name)
            kept = [n for n, cell in enumerate(table.cells[axis]) if cell != frozenset([gone])]
            cells = tuple(table.cells[axis][n] for n in kept)
            if numeric and self._few_missing(name):
                cells = tuple(self._without(cell, gone, name) for cell in cells)
            if any(numeric or gone in cell for cell in cells if isinstance(cell, frozenset)):
                return None
            table = replace(
                table,
                cells=(*table.cells[:axis], cells, *table.cells[axis + 1 :]),
                counts=table.counts.take(kept, axis=axis),
            )
        return table

    def _few_missing(self, name: str) -> bool:
        """Whether hardly anybody lacks a value of a column, by its noisy counts."""
        gone = frozenset([self.missing(name)])
        shares = [
            (float(table.counts[table.cells[0].index(gone)]) - 2 * table.variance**0.5) / self.n
            for table in self.tables
            if table.columns == (name,) and gone in table.cells[0]
        ]
        return max(shares, default=1.0) < _FEW

    def _without(self, cell: Any, gone: str, name: str) -> Any:
        """Remove the few missing cells from a cell of numbers."""
        label = next(iter(cell)) if isinstance(cell, frozenset) and len(cell) == 1 else ""
        numbers = label.removesuffix(f" or {gone}").removesuffix(f" | {gone}")
        return cell if numbers == label else self._cell(numbers, name)

    def missing(self, name: str) -> str:
        """Return the label of missing cells of a column among counts."""
        return missing_label(() if self.numeric(name) else self.categories(name))

    def counts_missing(self, name: str) -> bool:
        """Whether missing cells of a column are counted as a separate value."""
        return any(
            self.missing(name) in s
            for table in self.tables
            for _, sets in self._axes(table, name)
            for s in sets
        )

    def _cell(self, label: str, name: str) -> Any:
        """Parse a range of numbers, or a set of categories."""
        if name not in self.frame.columns:
            return frozenset(label.split(" | "))
        if self.numeric(name):
            return self._numbers_of(label, name)
        categories = self.categories(name)
        if label in categories:
            return frozenset([label])
        first, _, last = label.partition(" to ")
        if first in categories and last in categories:
            places = categories.index(first), categories.index(last)
            return frozenset(categories[places[0] : places[1] + 1])
        return frozenset(label.split(" | "))

    def _numbers_of(self, label: str, name: str) -> tuple[float, float] | frozenset[str]:
        """Parse the range of numbers that a cell counts, or return other text unchanged."""
        if match := _RANGE.fullmatch(label):
            high = float(match[2])
            return float(match[1]), high - self.step(name) if label.endswith(")") else high
        try:
            numbers = [float(part) for part in label.split(" | ")]
        except ValueError:
            return frozenset([label])
        return min(numbers), max(numbers)

    def blocks(self, name: str) -> NoisyBlocks | None:
        """Return the noisy sums of a column over blocks of ranks, if they are published."""
        if self.measurements is None or self.stratified:
            return None
        if f"cell_{name}" not in self.measurements.columns:
            return None
        cells = pl.col(f"cell_{name}")
        part = self.measurements.filter((pl.col("sort") == "blocks") & cells.is_not_null())
        if not part.height:
            return None
        last = np.array([int(text.rsplit(" ", 1)[1]) for text in part[f"cell_{name}"]])
        sums = part["answer"].to_numpy().astype(np.float64)
        return NoisyBlocks(np.diff(last, prepend=0), sums, _noise_of(part)[0])


def _restore_policy(manifest: Manifest, frame: pl.DataFrame) -> Policy:
    policy = settle_policy(read_recorded_policy(manifest, frame), manifest.found)
    method = find(policy.method)
    parameters = method.parameters.model_validate(dict(policy.parameters))
    return replace(policy, schema=method.settle_missing(policy.schema, parameters))


def _noise_of(part: pl.DataFrame) -> tuple[float, bool]:
    """Return the variance of a measurement's noise, and whether it is Gaussian."""
    gaussian = "noise" in part.columns and part["noise"][0] == GAUSSIAN
    return float((1 if gaussian else 2) * part["scale"][0] ** 2), gaussian
