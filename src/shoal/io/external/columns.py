"""One released column as places on the axis of its original."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Column, Kind, Schema
from shoal.core._arrays import Floats
from shoal.errors import InputError
from shoal.io import validate
from shoal.io.decomposition_table import level_order
from shoal.io.external.cells import Categories, Cell, Form, dated, numeric
from shoal.io.table import Table

CATEGORICAL = frozenset({Kind.ORDINAL, Kind.NOMINAL})
HIDDEN = (Form.STAR, Form.MISSING, Form.UNKNOWN)
"""Forms that tell nothing, and are scored as the whole domain."""

Ends = Callable[[pl.Series], Floats]
"""Reads texts as places at once, NaN where a text is no single value."""

_BRACKETS = r"^([\[(\]])([^,;\[\](){}]+)[,;]([^,;\[\](){}]+)([\])\[])$"
_COMMA = r"\d,\d"
_BARE_COMMA = r"^[+-]?\d*,\d+$"


@dataclass(frozen=True, eq=False)
class ColumnAxis:
    """The axis of a column: what the original and the policy say about its places.

    Attributes:
        places: of the original's cells; NaN for a missing number or day, the number of levels
            for a missing category.
        domain: lower <= place < upper for every place of the original and of the declaration.
        declared: the policy states the bounds or the categories.
        unit: 1 where places are whole numbers, days or categories; 0 where they are not.
    """

    column: Column
    levels: tuple[str, ...]
    places: Floats
    domain: tuple[float, float]
    declared: bool
    unit: float
    comma: bool = False

    @property
    def discrete(self) -> bool:
        """Whether places stand for categories."""
        return self.column.kind in CATEGORICAL


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """A released column on its scale, and how its cells were read.

    Attributes:
        gap: of each cell, the width of the places that its box holds and it does not: a set of
            categories that are no neighbours is read as all between them.
        counts: cells of each `Form`.
        notes: how many cells were read with a remark: "hull", "loose", "outside".
    """

    lower: Floats
    upper: Floats
    suppressed: NDArray[np.bool_]
    exact: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    gap: Floats
    counts: NDArray[np.int64]
    notes: dict[str, int] = field(default_factory=dict)


def scale_of(table: Table, name: str, text: pl.Series, *, decimal: str | None) -> ColumnAxis:
    """Lay out the axis of an original column.

    Args:
        table: the original.
        name: the column.
        text: the same column as it came, for its decimal mark.
        decimal: the mark that the policy states.
    """
    column = table.schema[name]
    if column.kind in CATEGORICAL:
        levels, gone = table.levels(name), bool(table.missing(name).any())
        domain = (0.0, float(max(len(levels) + gone, 1)))
        ordered = tuple(levels[code] for code in level_order(column, levels))
        places = places_of(table, name)
        return ColumnAxis(column, ordered, places, domain, column.levels is not None, 1.0)
    places = table.numbers(name)
    present = places[~np.isnan(places)]
    days = table.frame.schema[name] == pl.Date
    whole = days if column.kind is Kind.DATE else bool((present == np.rint(present)).all())
    unit = 1.0 if whole else 0.0
    ends = [present.min(), present.max()] if present.size else []
    if column.bounds is not None:
        low, high = table.limits(name)
        # A bound that is a day includes all of it, whatever the column's precision.
        ends += [
            low,
            np.nextafter(high + 1, low) if column.kind is Kind.DATE and not days else high,
        ]
    low, high = (min(ends), max(ends)) if ends else (0.0, 0.0)
    domain = (float(np.ceil(low) if whole else low), _after(float(high), unit))
    comma = decimal == "," or (text.dtype == pl.String and decimal is None and _uses_comma(text))
    return ColumnAxis(column, (), places, domain, column.bounds is not None, unit, comma)


def places_of(table: Table, name: str) -> Floats:
    """Places of a table's own cells; a missing category lies after the last one."""
    if table.schema[name].kind not in CATEGORICAL:
        return table.numbers(name)
    levels = table.levels(name)
    order = level_order(table.schema[name], levels)
    return np.append(np.argsort(order), len(levels)).astype(np.float64)[table.codes(name)]


def _uses_comma(text: pl.Series) -> bool:
    return bool(text.str.contains(_COMMA).any()) and not text.str.contains(".", literal=True).any()


def _after(value: float, unit: float) -> float:
    beyond = float(np.nextafter(value, np.inf))
    return max(float(np.floor(value)) + unit, beyond) if unit else beyond


def read_column(released: pl.Series, scale: ColumnAxis, *, decimal: str | None) -> ReleasedColumn:
    """Read a released column of any type on the scale of its original.

    Numbers and dates of a numeric or temporal type, and texts that are plain numbers or dates,
    are taken at once; every other distinct text is parsed once. Cost O(n + distinct texts).
    """
    if not validate.is_plain(released.dtype):
        return _boxed(scale, [Cell(Form.UNKNOWN)], np.zeros(released.len(), np.int64))
    series = validate.marked_missing(released, scale.column)
    if scale.discrete:
        return _texts(_trimmed(series), scale, _categories(scale).read)
    if scale.column.kind is Kind.DATE:
        return _date_column(series, scale)
    if series.dtype.is_numeric() or series.dtype in {pl.Boolean, pl.Null}:
        return _values(series.cast(pl.Float64), series.is_null(), scale)
    text = _trimmed(series)
    marks = _marks(text, scale, decimal)
    plain = text.str.replace(",", ".", literal=True) if marks[0] == "," else text
    if marks[0] == ",":
        plain = plain.set(text.str.contains(".", literal=True).fill_null(value=False), None)
    values = plain.cast(pl.Float64, strict=False)
    values = values.set(~values.is_finite().fill_null(value=False), None)
    return _mixed(
        text,
        values,
        scale,
        lambda cell: numeric(cell, marks, whole=scale.unit == 1.0),
        _numbers if marks[0] == "." else None,
    )


def _marks(text: pl.Series, scale: ColumnAxis, decimal: str | None) -> Sequence[str]:
    """Decimal marks to try: a release may be written with another one than its original."""
    if decimal == ".":
        return (".",)
    if not scale.comma:
        return (".",)
    bare = bool(text.str.contains(_BARE_COMMA).any())
    return (",",) if bare else (",", ".")


def _trimmed(series: pl.Series) -> pl.Series:
    return validate.as_text(series).str.strip_chars()


def _date_column(series: pl.Series, scale: ColumnAxis) -> ReleasedColumn:
    days = scale.unit == 1.0
    if series.dtype == pl.Date and days:
        return _values(series.to_physical().cast(pl.Float64), series.is_null(), scale)
    if isinstance(series.dtype, pl.Datetime):
        if series.dtype.time_zone:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        at = series.cast(pl.Datetime("us")).to_physical().cast(pl.Float64) / 86_400e6
        return _values(at, series.is_null(), scale)
    text = _trimmed(series)
    form = scale.column.date_format

    def dates(text: pl.Series) -> Floats:
        values = text.str.to_date(form or "%Y-%m-%d", strict=False)
        if form:  # whatever the policy says, dates may be written as we write them
            values = values.fill_null(text.str.to_date("%Y-%m-%d", strict=False))
        return values.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()

    def parse(cell: str) -> Cell:
        return dated(cell, form, days=days)

    if not days:  # there, a day is an interval of times
        return _texts(text, scale, parse)
    return _mixed(text, pl.Series(dates(text), nan_to_null=True), scale, parse, dates)


def _categories(scale: ColumnAxis) -> Categories:
    place = {level: at for at, level in enumerate(scale.levels)}
    below: dict[str, list[int]] = {}
    for path in scale.column.hierarchy.paths if scale.column.hierarchy else ():
        for node in set(path[1:]) - {path[0]}:
            below.setdefault(node, []).append(place[path[0]])
    nodes = {node: (float(min(at)), max(at) + 1.0) for node, at in below.items()}
    ordered = scale.column.kind is Kind.ORDINAL
    return Categories(place, nodes, recode=scale.column.recode, ordered=ordered)


def _values(values: pl.Series, gone: pl.Series, scale: ColumnAxis) -> ReleasedColumn:
    """Boxes of a column that holds numbers already."""
    numbers = values.fill_null(np.nan).to_numpy()
    missing = gone.to_numpy() | np.isnan(numbers)
    wild = ~missing & ~(np.abs(numbers) <= validate.LARGEST)
    forms = np.select([missing, wild], [Form.MISSING, Form.UNKNOWN], Form.ONE)
    return _boxes(scale, forms, numbers, numbers)


def _mixed(
    text: pl.Series,
    values: pl.Series,
    scale: ColumnAxis,
    parse: Callable[[str], Cell],
    ends: Ends | None,
) -> ReleasedColumn:
    """Boxes of a column of texts, of which `values` has the plain ones."""
    done = values.is_not_null()
    if done.all():
        return _values(values, values.is_null(), scale)
    rest = _texts(text.set(done, "*"), scale, parse, ends)
    if not done.any():
        return rest
    at = done.to_numpy()
    plain = _values(values.filter(done), values.filter(done).is_null(), scale)
    lower, upper, suppressed, exact, missing, gap = (
        _patched(getattr(rest, name), at, getattr(plain, name))
        for name in ("lower", "upper", "suppressed", "exact", "missing", "gap")
    )
    counts = rest.counts + plain.counts
    counts[Form.STAR] -= int(at.sum())  # the stand-ins above
    notes = {key: rest.notes[key] + plain.notes[key] for key in rest.notes}
    return ReleasedColumn(lower, upper, suppressed, exact, missing, gap, counts, notes)


def _patched(whole: NDArray[Any], at: NDArray[np.bool_], part: NDArray[Any]) -> NDArray[Any]:
    whole = whole.copy()
    whole[at] = part
    return whole


def _texts(
    text: pl.Series, scale: ColumnAxis, parse: Callable[[str], Cell], ends: Ends | None = None
) -> ReleasedColumn:
    """Boxes of a column of texts, each distinct text parsed once."""
    distinct = text.drop_nulls().unique()
    codes = text.cast(pl.Enum(distinct)).to_physical().cast(pl.Int64)
    lower, upper = brackets(distinct, ends, whole=scale.unit == 1.0) if ends else ((), ())
    quick = zip(lower, upper, strict=True) if ends else ((np.nan, np.nan),) * distinct.len()
    cells = [
        Cell(Form.RANGE, low, high) if low < high else parse(cell)
        for cell, (low, high) in zip(distinct.to_list(), quick, strict=True)
    ]
    cells.append(Cell(Form.MISSING))
    return _boxed(scale, cells, codes.fill_null(len(cells) - 1).to_numpy())


def brackets(texts: pl.Series, ends: Ends, *, whole: bool) -> tuple[list[float], list[float]]:
    """Read all intervals between brackets at once, as `cells.interval` reads them one by one.

    Returns:
        The two ends of each, NaN where a text is something else.
    """
    parts = texts.str.extract_groups(_BRACKETS).struct.unnest()
    low, high = (ends(parts.to_series(at).str.strip_chars()) for at in (1, 2))
    first, after = zip(_around(low, whole=whole), _around(high, whole=whole), strict=True)
    included = [(parts.to_series(at) == mark).fill_null(value=False).to_numpy()
                for at, mark in ((0, "["), (3, "]"))]  # fmt: skip
    lower = np.where(included[0], first[0], after[0])
    upper = np.where(included[1], after[1], first[1])
    found = lower < upper
    return np.where(found, lower, np.nan).tolist(), np.where(found, upper, np.nan).tolist()


def _around(values: Floats, *, whole: bool) -> tuple[Floats, Floats]:
    """`cells.around` for many numbers."""
    beyond = np.nextafter(values, np.inf)
    if not whole:
        return values, beyond
    up = np.ceil(values)
    return up, np.where(up == values, np.maximum(up + 1, beyond), up)


def _numbers(text: pl.Series) -> Floats:
    values = text.cast(pl.Float64, strict=False)
    return values.set(~(values.abs() <= validate.LARGEST), None).fill_null(np.nan).to_numpy()


def _boxed(scale: ColumnAxis, cells: Iterable[Cell], codes: NDArray[np.int64]) -> ReleasedColumn:
    form, lower, upper, gap, loose = map(np.array, zip(*cells, strict=True))
    axis = _boxes(scale, form[codes], lower[codes], upper[codes])
    told = {"hull": int((gap[codes] > 0).sum()), "loose": int(loose[codes].sum())}
    return replace(axis, gap=gap[codes].astype(np.float64), notes={**axis.notes, **told})


def _boxes(
    scale: ColumnAxis, forms: NDArray[np.int64], lower: Floats, upper: Floats
) -> ReleasedColumn:
    """Bring spans into the domain, and find those that hold one value.

    What lies outside the domain keeps its place: noise goes there. Of what lies partly
    outside, the part inside is kept, so that no interval is wider than a suppressed cell.
    """
    least, beyond = scale.domain
    hidden = np.isin(forms, HIDDEN)
    single = ~hidden & (lower == upper)
    outside = ~hidden & ((upper <= least) & ~single | (lower >= beyond) | (upper < least))
    inside = ~(hidden | single | outside)
    lower = np.where(hidden, least, np.where(inside, np.maximum(lower, least), lower))
    upper = np.where(hidden, beyond, np.where(inside, np.minimum(upper, beyond), upper))
    # An open end that starts outside has no other end to be brought to.
    lower = np.where(np.isinf(lower), np.nextafter(upper, -np.inf), lower)
    upper = np.where(np.isinf(upper), np.nextafter(lower, np.inf), upper)
    if scale.discrete:
        exact = ~hidden & (upper - lower == 1)
    else:
        after = np.nextafter(lower, np.inf)
        after = np.maximum(after, lower + scale.unit) if scale.unit else after
        whole = (lower == np.rint(lower)) if scale.unit else np.ones(len(lower), np.bool_)
        exact = ~hidden & (single | (whole & (upper <= after)))
        upper = np.where(exact, lower, upper)
    counts = np.bincount(forms, minlength=len(Form))
    notes = {"hull": 0, "loose": 0, "outside": int(outside.sum())}
    gap = np.zeros(len(lower))
    return ReleasedColumn(lower, upper, hidden, exact, forms == Form.MISSING, gap, counts, notes)


def typed_alike(
    original: pl.DataFrame, control: pl.DataFrame | None, schema: Schema, *, decimal: str | None
) -> tuple[Table, Table | None]:
    """Type the original and the people not in it, over one list of categories for each column.

    A place means the same in both tables only if they share the list. Where the policy declares
    none, it has the categories of the original in their order, and then those that only the
    control has, in theirs: the control never moves a category of the original.

    Raises:
        InputError: a table does not fit the policy, or the control lacks a column.
    """
    table = validate.validate(original.select(schema.names), schema, decimal=decimal)
    if control is None:
        return table, None
    absent = [name for name in schema.names if name not in control.columns]
    if absent:
        raise InputError(f"Control: expected the columns of the original; no '{absent[0]}'.")
    if control.height == 0:
        raise InputError("Control: expected one row per person, found no rows.")
    try:
        others = validate.validate(control.select(schema.names), schema, decimal=decimal)
    except InputError as error:
        raise InputError(f"Control: {error}") from None
    shared = {
        column.name: pl.Enum(
            tuple(dict.fromkeys((*table.levels(column.name), *others.levels(column.name))))
        )
        for column in schema.columns
        if column.kind in {Kind.ORDINAL, Kind.NOMINAL}
    }
    return _recast(table, shared), _recast(others, shared)


def _recast(table: Table, shared: dict[str, pl.Enum]) -> Table:
    columns = [pl.col(name).cast(pl.String).cast(levels) for name, levels in shared.items()]
    return Table(table.frame.with_columns(columns), table.schema, table.dtypes)
