"""How far each field of a manifest is derived again by `verify`, and what no folder can show of it.

The manual prints this table by method, and the verdict of a verification names what is not checked.

A table is refuted by its own policy, whatever else its manifest says: a cell is missing, one value
of the domain, or text that covers several: an interval, a set, a node of the hierarchy, a star.
Cells that noise was paid for are single values, and missing only where that is a value. Not
derived: what a policy leaves open, such as categories that were observed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import inf
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Checkable, Column, Distance, Kind, ReleaseForm, RiskLimit, Schema, TCloseness
from shoal.core.constraints import CATEGORICAL
from shoal.core.manifest import CheckRecord
from shoal.core.serialise import plain
from shoal.engine import class_weights, risk_limits
from shoal.errors import InputError, count_noun
from shoal.io import decomposition_table, validate
from shoal.io.cells import compose, is_plain
from shoal.io.external.cells import Form
from shoal.io.external.columns import ColumnAxis, read_column
from shoal.methods import Method, Setting
from shoal.pipeline import protect_table
from shoal.pipeline.planning import Plan
from shoal.publish.released_folder import OpenedFolder


def not_shown(opened: OpenedFolder, guarantee: Checkable, stated: CheckRecord) -> str:
    """Explain why a check cannot be recomputed from public files, or return ""."""
    schema = opened.planned.policy.schema if opened.planned else Schema(())
    distance = guarantee.distance if isinstance(guarantee, TCloseness) else None
    hidden_order = any(schema[name].observed for name in guarantee.columns)
    if distance is Distance.ORDERED and hidden_order:
        return f"{guarantee} follows an order of categories that is not published."
    if distance is Distance.HIERARCHICAL and hidden_order:
        return f"{guarantee} follows a hierarchy that is not published."
    if isinstance(guarantee, RiskLimit):
        return risk_limits.not_in(opened.frame, guarantee)
    unit = schema.column_with_flag("privacy_unit")
    hidden = unit is not None and unit not in opened.frame.columns
    if hidden and stated.remarks.get("counted") == "persons":
        return f"{guarantee} counts persons, and the table does not say whose rows they are."
    return ""


def _hides_checks(opened: OpenedFolder) -> bool:
    """Whether a check depends on persons or on an order that the folder does not show."""
    if opened.planned is None:
        return False
    wanted = protect_table.testable(opened.planned, opened.claims)
    pairs = zip(wanted, opened.manifest.checks, strict=False)
    return any(not_shown(opened, guarantee, stated) for guarantee, stated in pairs)


@dataclass(frozen=True)
class DerivedField:
    """How far a field of a manifest is derived again.

    Attributes:
        part: the part of the verification that derives it.
        taken: what is accepted as stated, because no folder can show it.
        where: of which releases, in words; of all, if none.
        holds: whether a release is one of these.
        among: whether a method makes such releases.
    """

    part: str
    taken: str = ""
    where: str = ""
    holds: Callable[[OpenedFolder], bool] = lambda _: True
    among: Callable[[Method[Any]], bool] = lambda _: True

    def open_for(self, method: Method[Any] | None) -> bool:
        """Whether a part of it is not derived for releases of a method, or an unknown one."""
        return bool(self.taken) and (method is None or self.among(method))


_MANIFEST = DerivedField("manifest")
FIELDS: Mapping[str, DerivedField] = {
    "shoal_version": DerivedField("versions"),
    "versions": DerivedField("versions", "the versions that made it"),
    "created": DerivedField("report", "when it was made"),
    **dict.fromkeys(("method", "reference", "parameters", "protected_columns"), _MANIFEST),
    "release_form": DerivedField(
        "manifest", "its release form, of which no claim speaks", "the method claims nothing",
        lambda one: one.planned is not None and one.planned.method.promises.claims_nothing,
        lambda method: method.promises.claims_nothing,
    ),
    "hierarchies": _MANIFEST,
    "columns": DerivedField("manifest", "the types of its columns",
                            "the table is not a Parquet file", lambda one: not one.exact),
    "rows": DerivedField(
        "manifest", "whether the original has as many rows", "no row has noise of its own",
        among=lambda method: not method.noise_by_row,
    ),
    **dict.fromkeys(("policy_digest", "not_claimed"), _MANIFEST),
    "audience": DerivedField(
        "manifest", "its audience", "one is stated", lambda one: one.manifest.audience is not None
    ),
    "suppressed": DerivedField(
        "manifest", "how many rows were left out", "the policy states record_suppression",
        lambda one: one.suppressible > 0,
        lambda method: "record_suppression" in method.parameters.model_fields,
    ),
    "policy": DerivedField("manifest", "the policy, and that the table was made by it"),
    "claims": DerivedField(
        "claims", "whether the noise was secure and nobody inspected the table before",
        "the method draws noise",
        among=lambda method: method.noisy,
    ),
    "notes": DerivedField("manifest", "notes on how the run went"),
    "checks": DerivedField(
        "checks", "checks by persons or by an order that is not published",
        "such a check is promised or required", _hides_checks,
    ),
    "privacy_losses": DerivedField(
        "accounting", "sensitivities, draws and unit scales of the noise", "the method draws noise",
        among=lambda method: method.noisy,
    ),
    "draws": DerivedField("accounting"),
    "guard_formulas": DerivedField(
        "manifest", "how its text was guarded", "the table is a CSV file or a workbook",
        lambda opened: opened.spreadsheet,
    ),
    "dialect": DerivedField(
        "manifest", "its encoding and decimal mark", "the table is a CSV file",
        lambda opened: bool(opened.manifest.dialect),
    ),
    "files": DerivedField("files"),
    "found": DerivedField(
        "manifest", "what was found with noise of the columns that the policy leaves open",
        "the policy leaves columns to be discovered", lambda one: bool(one.manifest.found),
        lambda method: method.discovers,
    ),
}  # fmt: skip
"""For each field of a manifest, how far it is derived again."""


ROUNDING = 1e-9
"""How far beyond a limit rounding may lead, relative to it: means are rounded to ten digits."""
_ANYWHERE = (-validate.LARGEST, validate.LARGEST)


def list_misfits(frame: pl.DataFrame, planned: Plan) -> Iterator[str]:
    """List what the policy does not allow in a released table: columns, then values."""
    setting, schema = planned.setting, planned.setting.schema
    if setting.release_form is ReleaseForm.TREE:
        yield from _list_tree_misfits(frame, setting)
        return
    for name in sorted({*schema.released} ^ {*frame.columns}):
        where = (
            "lacks it"
            if name in schema.released
            else "has it, and the policy releases no such column"
        )
        yield f"columns.{name}: the table {where}."
    noisy = planned.method.clamps(setting)
    bounded = planned.method.keeps_bounds(setting)
    for series in (frame[name] for name in schema.released if name in frame.columns):
        column = schema[series.name] if bounded else replace(schema[series.name], bounds=None)
        cells = _count_outside(series, column, single=series.name in noisy)
        if series.name in noisy and not column.keep_missing:
            cells += series.null_count()
        if cells:
            yield f"columns.{series.name}: {count_noun(cells, 'cell')} outside the policy's domain."
        yield from class_weights.list_misfits(frame, column)


def _count_outside(series: pl.Series, column: Column, *, single: bool) -> int:
    """Count the cells outside the domain of a column; missing cells are inside."""
    discrete, known = column.kind in CATEGORICAL, column.all_categories or ()
    if column.kind is None or (discrete and not known):
        return 0
    if not is_plain(series.dtype):
        return series.len()
    names, tree = set(known), column.stated_hierarchy
    if tree and not single:
        names |= {node for path in tree.paths for node in path}
    if series.dtype == pl.String or discrete:
        text = compose(validate.as_text(series)).drop_nulls()
        text = text.filter(~text.is_in([*names, ""]))
        if discrete and single:
            return text.len()
        series = text if single else text.str.strip_suffix(" or missing")
    axis = ColumnAxis(
        replace(column, missing=()), known, np.zeros(0), _ANYWHERE, declared=True,
        unit=float(column.kind is not Kind.NUMERIC),
    )  # fmt: skip
    read = read_column(series, axis, decimal=".")
    odd = int(read.counts[Form.UNKNOWN]) + read.notes["loose"]
    if discrete:
        return odd
    low, high = _limits(column)
    shown = ~read.suppressed
    inside = (read.lower >= low) & (read.upper <= high) & (read.exact | (not single))
    return odd + int((shown & ~inside).sum())


def _limits(column: Column) -> tuple[float, float]:
    """Return the range of a numeric or date column, after the policy's own steps."""
    never = (date.min, date.max) if column.kind is Kind.DATE else (-inf, inf)
    ends = [*map(validate.limit, column.bounds)] if column.bounds else never
    coded = validate.code_extremes(pl.Series(column.name, ends), column)
    stepped = validate.round_to_step(coded, column.step) if column.step else coded
    both = pl.concat([coded, validate.first_days(stepped, column)]).to_physical().cast(pl.Float64)
    low, high = float(both.min()), float(both.max())  # type: ignore[arg-type]
    if column.kind is Kind.DATE:
        return low, high + 1  # a bound is a day, and includes all of it
    return tuple(np.array([low, high]) + ROUNDING * np.abs([low, high]) * [-1, 1])


def _list_tree_misfits(frame: pl.DataFrame, setting: Setting[Any]) -> Iterator[str]:
    """The same for boxes with counts."""
    schema, wanted = setting.schema, {*setting.columns}
    try:
        boxes = decomposition_table.from_frame(frame, schema)
    except InputError as error:
        yield f"columns: {error}"
        return
    axes, column = {*boxes.columns}, boxes.column
    if not wanted - {column} <= axes <= wanted or column not in {None, *schema.released}:
        yield "columns: the boxes are not of the columns that the policy protects."
    if column is not None and _count_outside(
        pl.Series(boxes.values), _widen(schema[column]), single=False
    ):
        yield f"columns.{column}: the boxes count values outside the policy's domain."
    for name, lower, upper in zip(boxes.columns, boxes.lower.T, boxes.upper.T, strict=True):
        if schema[name].kind not in CATEGORICAL:
            low, high = _limits(_widen(schema[name]))
            ends = np.concatenate([lower, upper])[np.isfinite([*lower, *upper])]
            if not ((ends >= low) & (ends <= high)).all():
                yield f"columns.{name}: boxes outside the policy's domain."


def _widen(column: Column) -> Column:
    """Widen a column to what its boxes cover: the bounds, up to the value after the last."""
    bounds = column.bounds
    if bounds is not None:
        after: Any = max(column.step or 1, 1)
        if column.kind is Kind.DATE:
            after = timedelta(366 if column.date_step else 1)
        bounds = (bounds[0], bounds[1] + after)
    return replace(column, bounds=bounds, bottom_code=None, top_code=None)


def reread(value: Any) -> Any:
    """A noun or a plain value as it comes back from a JSON file."""
    return json.loads(json.dumps(plain(value)))


def list_differences(stated: Any, derived: Any, place: str) -> Iterator[str]:
    """Describe each difference of two plain values in a sentence."""
    if isinstance(stated, Mapping) and isinstance(derived, Mapping):
        for name in dict.fromkeys([*derived, *stated]):
            inner = f"{place}.{ascii(name)[1:-1]}"
            if name not in stated:
                yield f"{inner}: expected {abridge(derived[name])}, and nothing is recorded."
            elif name not in derived:
                yield f"{inner}: {abridge(stated[name])} recorded, expected nothing."
            else:
                yield from list_differences(stated[name], derived[name], inner)
    elif isinstance(stated, list) and isinstance(derived, list) and len(stated) == len(derived):
        for number, (item, other) in enumerate(zip(stated, derived, strict=True)):
            yield from list_differences(item, other, f"{place}.{number}")
    elif stated != derived or isinstance(stated, bool) is not isinstance(derived, bool):
        yield f"{place}: {abridge(stated)} recorded, {abridge(derived)} derived."


def abridge(value: Any) -> str:
    """Write a value of a manifest as JSON, shortened if it is long."""
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
