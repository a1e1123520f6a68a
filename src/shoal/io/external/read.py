"""Read any tool's release beside its original, to evaluate it.

Every released cell becomes a span of places on the axis of its column, whatever it is written
as. How each column was scored, and what is odd about the release, is said in sentences. They
hold counts and names, never a cell of the original.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Kind, Policy, Schema, SpatialDecomposition
from shoal.core.constraints import CATEGORICAL
from shoal.errors import InputError, count_noun
from shoal.io import decomposition_table, validate
from shoal.io.external import columns, sentences
from shoal.io.external.columns import (
    BY_ROW,
    places_of,
    read_column,
    scale_of,
    type_alike,
)
from shoal.io.table import Table


@dataclass(frozen=True, eq=False)
class ExternalRelease:
    """A release, its original and its control on common axes. As confidential as these tables.

    Original and control share one list of categories for each column, and the release is read
    on it: a reading whose tables disagree does not exist.

    A place is a number, a day since 1970, or a category's place in
    `decomposition_table.category_order`. A box holds lower <= place < upper; a number or a day that
    is known exactly has lower == upper.

    Attributes:
        schema: the columns that both tables have, by the policy, identifiers left out. Of a
            tree: its axes, and the column that it counts.
        original: these columns of the original, typed.
        columns: one axis each, in the order of the schema. Of a tree: its axes alone.
        places: original rows x axes; NaN for a missing number, the number of categories for a
            missing category.
        lower: released rows x axes.
        upper: the other end.
        suppressed: released rows x axes: starred, missing or unreadable; the whole domain.
        exact: released rows x axes: one value.
        missing: released rows x axes: the cell is empty, which may mean suppressed or, where the
            original has such cells too, missing.
        gap: released rows x axes: width of the places that a box holds and its cell does not.
        domains: axes x 2: lower <= place < upper for every value, declared or in the original;
            of categories also those of the control.
        discrete: which axes are categories.
        aligned: whether row i of the release is about row i of the original; none: unknown.
        how: how each column was scored.
        findings: what is odd: columns that differ, confidential cells under stars, others' rows.
        tree: the boxes and counts, where the release is a tree.
        weights: the original's sampling weights, if the policy names them.
        control: people who are not in the original, typed, if some were handed in.
        outside: their rows x axes, as `places`.
    """

    schema: Schema
    original: Table
    columns: tuple[str, ...]
    places: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    suppressed: NDArray[np.bool_]
    exact: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    gap: NDArray[np.float64]
    domains: NDArray[np.float64]
    discrete: tuple[bool, ...]
    aligned: bool | None
    how: tuple[str, ...]
    findings: tuple[str, ...]
    tree: SpatialDecomposition | None = None
    weights: NDArray[np.float64] | None = None
    control: Table | None = None
    outside: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        axes = len(self.columns)
        if self.control is not None and self.control.frame.schema != self.original.frame.schema:
            self._refuse_two_domains(self.control)
        shape = (len(self.lower), axes)
        for name in BY_ROW:
            if getattr(self, name).shape != shape:
                raise InputError(
                    f"The argument {name} must have one row per released row and one column per "
                    f"axis."
                )
        if self.places.shape != (len(self.original), axes) or self.domains.shape != (axes, 2):
            raise InputError(
                "The argument places must have one column per axis, and the "
                "argument domains one row per axis."
            )
        for name in ("places", "lower", "upper", "suppressed", "exact", "missing", "domains"):
            getattr(self, name).flags.writeable = False

    def _refuse_two_domains(self, control: Table) -> None:
        for column in self.schema.columns:
            name = column.name
            if column.kind in CATEGORICAL and control.categories(name) != self.original.categories(
                name
            ):
                raise InputError(f"Original and control must share the categories of '{name}'.")


def read_external_release(
    original: pl.DataFrame,
    released: pl.DataFrame,
    policy: Policy,
    *,
    control: pl.DataFrame | None = None,
    rename: Mapping[str, str] | None = None,
    aligned: bool | None = None,
    silent: bool = False,
) -> ExternalRelease:
    """Read a release beside its original and people not in it, by the original's policy.

    The original is the table as it came (`io.original`); of the release, missing marks and recoded
    categories are understood. Cost O(rows x columns), and one parse for each distinct text that is
    not a plain value.

    Args:
        original: the table that the policy describes.
        released: what was made of it, by any tool.
        policy: names, roles and kinds of the columns.
        control: people who are not in the original, with its columns.
        rename: for columns that the release names differently: its name to the policy's.
        aligned: whether row i of the release is about row i of the original, if the caller
            knows. A `privacy_unit` column in both tables shows it, too; rows are then put in
            order.
        silent: cells of the original that do not fit are read as a run with noise reads them.

    Raises:
        InputError: the release is empty, shares no column with the original, or the original
            does not fit its policy.
    """
    if released.height == 0 or released.width == 0:
        raise InputError("The release has no rows; there is nothing to evaluate.")
    if original.height == 0:
        raise InputError("The original has no rows; there is nothing to compare with.")
    decimal = policy.reading.decimal
    if decomposition_table.is_tree(released, policy.schema):
        return _read_tree(original, released, policy, control, silent=silent)
    matched = columns.match(original, released, policy, rename or {})
    schema = Schema(tuple(c for c in policy.schema.columns if c.name in matched.shared))
    table, control_table = type_alike(original, control, schema, decimal=decimal, silent=silent)
    released, aligned, keyed = _in_order(original, released, policy, matched, aligned)
    scales = [scale_of(table, name, original[name], decimal=decimal) for name in schema.names]
    axes = [
        read_column(released[matched.source[scale.column.name]], scale, decimal=decimal)
        for scale in scales
    ]
    cells: dict[str, Any] = {
        name: np.column_stack([getattr(axis, name) for axis in axes]) for name in BY_ROW
    }
    suppressed = cells["suppressed"]
    strange, record = sentences.other_people(schema, scales, axes)
    scored = [sentences.how_scored(s.column.name, s, a) for s, a in zip(scales, axes, strict=True)]
    return ExternalRelease(
        schema=schema,
        original=table,
        columns=schema.names,
        places=np.column_stack([scale.places for scale in scales]),
        **cells,
        domains=np.array([scale.domain for scale in scales]),
        discrete=tuple(scale.discrete for scale in scales),
        aligned=aligned,
        how=(*scored, *_steps(schema), *record, *keyed),
        findings=(
            *matched.findings,
            *sentences.rows(original.height, released.height),
            *sentences.hidden_rows(schema, suppressed),
            *sentences.find_left_under_stars(schema, suppressed),
            *strange,
        ),
        weights=_weights(original, policy, decimal),
        control=control_table,
        outside=_outside(control_table, schema.names),
    )


def _outside(others: Table | None, names: tuple[str, ...]) -> NDArray[np.float64] | None:
    if others is None:
        return None
    return np.column_stack([places_of(others, name) for name in names])


def _steps(schema: Schema) -> list[str]:
    """Say which columns of the original are recoded before the comparison."""
    recoded = [column.name for column in schema.columns if column.recoded]
    if not recoded:
        return []
    listed = ", ".join(f"'{name}'" for name in recoded)
    return [f"The policy recodes {listed}: the release is compared with the recoded original."]


def _in_order(
    original: pl.DataFrame,
    released: pl.DataFrame,
    policy: Policy,
    matched: columns.Names,
    aligned: bool | None,  # noqa: FBT001 (as it was stated)
) -> tuple[pl.DataFrame, bool | None, list[str]]:
    """Find whether rows correspond, and sort them where a row key shows how.

    Equal numbers of rows prove nothing: a shuffled release has them, too.
    """
    if aligned and original.height != released.height:
        raise InputError(
            f"The rows are stated to correspond; expected {original.height:,} released rows, found "
            f"{released.height:,}."
        )
    key = policy.schema.column_with_flag("privacy_unit")
    if key is None or key not in original.columns or key not in matched.source:
        return released, aligned, []
    ours = original[key].cast(pl.String).str.strip_chars()
    theirs = released[matched.source[key]].cast(pl.String).str.strip_chars()
    if ours.equals(theirs):
        return released, aligned is not False, [f"The rows correspond by their '{key}'."]
    if aligned:
        raise InputError(
            f"The rows are stated to correspond, but the row key '{key}' differs in "
            f"{count_noun(int((ours != theirs).sum()), 'row')}."
        )
    distinct = ours.n_unique() == ours.len() == theirs.len() == theirs.n_unique()
    if not distinct or ours.null_count() or not theirs.is_in(ours.implode()).all():
        return released, False, [f"By their '{key}', the rows are not those of the original."]
    places = pl.DataFrame({"key": theirs}).with_row_index("place")
    order = pl.DataFrame({"key": ours}).join(places, on="key", how="left", maintain_order="left")
    return released[order["place"]], True, [f"The rows were put in order by their '{key}'."]


def _weights(
    original: pl.DataFrame, policy: Policy, decimal: str | None
) -> NDArray[np.float64] | None:
    name = policy.schema.column_with_flag("sampling_weight")
    if name is None or name not in original.columns:
        return None
    values = validate.parse_column(original[name], policy.schema[name], decimal).cast(pl.Float64)
    bad = values.null_count() + int((values < 0).sum())
    if bad:
        raise InputError(
            f"Column '{name}' is the sampling weight, but "
            f"{count_noun(bad, 'row has', 'rows have')} none, or a negative one."
        )
    return values.to_numpy()


def _read_tree(
    original: pl.DataFrame,
    released: pl.DataFrame,
    policy: Policy,
    control: pl.DataFrame | None,
    *,
    silent: bool,
) -> ExternalRelease:
    """Read a release that is a spatial decomposition: one row per box, with counts."""
    decimal = policy.reading.decimal
    boxes = decomposition_table.from_frame(_type_tree(released, policy.schema), policy.schema)
    wanted = {*boxes.columns, boxes.column}
    schema = Schema(tuple(c for c in policy.schema.columns if c.name in wanted))
    absent = [name for name in schema.names if name not in original.columns]
    if absent:
        raise InputError(f"The release is a tree over '{absent[0]}', which the original lacks.")
    table, control_table = type_alike(original, control, schema, decimal=decimal, silent=silent)
    scales = [scale_of(table, name, original[name], decimal=decimal) for name in boxes.columns]
    least, beyond = boxes.extent
    domains = np.array([scale.domain for scale in scales])
    # The boxes cover a public domain, which may be wider than the declared one.
    domains[:, 0] = np.where(np.isinf(least), domains[:, 0], np.minimum(domains[:, 0], least))
    domains[:, 1] = np.where(np.isinf(beyond), domains[:, 1], np.maximum(domains[:, 1], beyond))
    lower, upper = np.maximum(boxes.lower, domains[:, 0]), np.minimum(boxes.upper, domains[:, 1])
    unit = np.array([scale.unit for scale in scales])
    number, column = (
        count_noun(len(boxes), "box", "boxes"),
        f" by '{boxes.column}'" if boxes.column else "",
    )
    lost = [name for name in policy.schema.released
            if name in original.columns and name not in schema.names]  # fmt: skip
    return ExternalRelease(
        schema=schema,
        original=table,
        columns=boxes.columns,
        places=np.column_stack([scale.places for scale in scales]),
        lower=lower,
        upper=upper,
        suppressed=np.zeros(lower.shape, np.bool_),
        exact=(upper - lower == 1) & (unit == 1),
        missing=np.zeros(lower.shape, np.bool_),
        gap=np.zeros(lower.shape),
        domains=domains,
        discrete=tuple(scale.discrete for scale in scales),
        aligned=False,
        how=(f"The release is a tree: {number} with counts{column}; the boxes stand in for rows.",),
        findings=tuple(f"The tree says nothing about '{name}'." for name in lost),
        tree=boxes,
        weights=_weights(original, policy, decimal),
        control=control_table,
        outside=_outside(control_table, boxes.columns),
    )


def _type_tree(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Parse the cells of a decomposition that was read as text."""
    ends = {f"{c.name}_{side}": c for c in schema.columns for side in ("lower", "upper")}
    series: list[Any] = []
    for cells in frame:
        column = ends.get(cells.name)
        if cells.dtype != pl.String or (column and column.kind in CATEGORICAL):
            series.append(cells)
            continue
        days = column is not None and column.kind is Kind.DATE
        typed = cells.str.to_date("%Y-%m-%d", strict=False) if days else cells.cast(
            pl.Float64, strict=False)  # fmt: skip
        bad = typed.null_count() - cells.null_count()
        if bad:
            raise InputError(
                f"Column '{cells.name}' of the tree: expected {'dates' if days else 'numbers'}, "
                f"found something else in {count_noun(bad, 'row')}."
            )
        series.append(typed)
    return pl.DataFrame(series)
