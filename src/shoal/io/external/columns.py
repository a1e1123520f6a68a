"""Released columns: matched to the policy's columns, and placed on the original's axes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core import Column, Kind, Policy, Role, Schema
from shoal.core._arrays import Floats
from shoal.core.constraints import CATEGORICAL
from shoal.errors import InputError, count_noun, did_you_mean, quotable, unlike
from shoal.io import validate
from shoal.io.cells import is_plain
from shoal.io.dates import read_days
from shoal.io.decomposition_table import category_order
from shoal.io.external.cells import Categories, Cell, Form, numeric, read_date
from shoal.io.original import read_original
from shoal.io.table import Table

HIDDEN = (Form.STAR, Form.MISSING, Form.UNKNOWN)
"""Forms that tell nothing, and are scored as the whole domain."""

MOST_NAMES = 8
"""How many names a sentence lists."""
BY_ROW = ("lower", "upper", "suppressed", "exact", "missing", "gap")
"""What a release has for each of its cells."""

_COMMA = r"\d,\d"
_BARE_COMMA = r"^[+-]?\d*,\d+$"


@dataclass(frozen=True, eq=False)
class ColumnAxis:
    """The axis of a column: what the original and the policy say about its places.

    Attributes:
        places: of the original's cells; NaN for a missing number or day, the number of categories
            for a missing category.
        domain: lower <= place < upper for every declared place; where none is declared, for every
            place of the original.
        declared: the policy states the bounds or the categories.
        unit: 1 where places are whole numbers, days or categories; 0 where they are not.
    """

    column: Column
    categories: tuple[str, ...]
    places: Floats
    domain: tuple[float, float]
    declared: bool
    unit: float
    comma: bool = False

    @property
    def discrete(self) -> bool:
        """Whether the axis numbers categories."""
        return self.column.kind in CATEGORICAL


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """A released column on its original's axis, and how its cells were read.

    Attributes:
        gap: for each cell, the width of the parts of its interval that it does not include:
            a set of non-adjacent categories is read with all those between them.
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
    """Make the axis of an original column.

    `text` is the column as it was read; it shows the decimal mark if the policy states none.
    """
    column = table.schema[name]
    if column.kind in CATEGORICAL:
        categories, gone = table.categories(name), bool(table.missing(name).any())
        domain = (0.0, float(max(len(categories) + gone, 1)))
        ordered = tuple(categories[code] for code in category_order(column, categories))
        places = places_of(table, name)
        return ColumnAxis(column, ordered, places, domain, column.all_categories is not None, 1.0)
    places = table.numbers(name)
    present = places[~np.isnan(places)]
    days = table.frame.schema[name] == pl.Date
    integral = days if column.kind is Kind.DATE else bool((present == np.rint(present)).all())
    unit = 1.0 if integral else 0.0
    low, high = (present.min(), present.max()) if present.size else (0.0, 0.0)
    if column.bounds is not None:
        # A value beyond the stated bounds is kept, and does not widen the domain.
        low, high = table.limits(name)
        if column.kind is Kind.DATE and not days:  # a bound that is a day includes all of it
            high = np.nextafter(high + 1, low)
    domain = (float(np.ceil(low) if integral else low), _after(float(high), unit))
    comma = decimal == ","
    if text.dtype == pl.String and decimal is None:
        points = text.str.contains(".", literal=True).any()
        comma = bool(text.str.contains(_COMMA).any()) and not points
    return ColumnAxis(column, (), places, domain, column.bounds is not None, unit, comma)


def places_of(table: Table, name: str) -> Floats:
    """Return the positions of a table's cells on the axis; missing comes after all categories."""
    if table.schema[name].kind not in CATEGORICAL:
        return table.numbers(name)
    categories = table.categories(name)
    order = category_order(table.schema[name], categories)
    return np.append(np.argsort(order), len(categories)).astype(np.float64)[table.codes(name)]


def missing_as_value(scale: ColumnAxis, axis: ReleasedColumn) -> ReleasedColumn:
    """Read an empty category as missing, the last place, where the original has such cells."""
    last = float(len(scale.categories))
    if not scale.discrete or scale.domain[1] <= last:
        return axis
    gone = axis.missing
    return replace(
        axis,
        lower=np.where(gone, last, axis.lower),
        upper=np.where(gone, last + 1, axis.upper),
        suppressed=axis.suppressed & ~gone,
        exact=axis.exact | gone,
    )


def _after(value: float, unit: float) -> float:
    beyond = float(np.nextafter(value, np.inf))
    return max(float(np.floor(value)) + unit, beyond) if unit else beyond


def read_column(released: pl.Series, scale: ColumnAxis, *, decimal: str | None) -> ReleasedColumn:
    """Read a released column of any type onto the axis of its original.

    Numbers and dates of a numeric or temporal type, and texts that are plain numbers or dates,
    are taken at once; every other distinct text is parsed once. Cost O(n + distinct texts).
    """
    if not is_plain(released.dtype):
        return _box(scale, [Cell(Form.UNKNOWN)], np.zeros(released.len(), np.int64))
    series = validate.mark_missing(released, scale.column)
    if scale.discrete:
        return _texts(validate.as_text(series), scale, _categories(scale).read)
    if scale.column.kind is Kind.DATE:
        return _date_column(series, scale)
    if series.dtype.is_numeric() or series.dtype in {pl.Boolean, pl.Null}:
        return _values(series.cast(pl.Float64), series.is_null(), scale)
    text = _trim(series)
    marks = _marks(text, scale, decimal)
    plain = text.str.replace(",", ".", literal=True) if marks[0] == "," else text
    if marks[0] == ",":
        plain = plain.set(text.str.contains(".", literal=True).fill_null(value=False), None)
    values = plain.cast(pl.Float64, strict=False)
    values = values.set(~values.is_finite().fill_null(value=False), None)
    return _mix_boxes(
        text, values, scale, lambda cell: numeric(cell, marks, whole=scale.unit == 1.0)
    )


def _marks(text: pl.Series, scale: ColumnAxis, decimal: str | None) -> Sequence[str]:
    """List the decimal marks to try; a release may use another mark than its original."""
    if decimal == ".":
        return (".",)
    if not scale.comma:
        return (".",)
    bare = bool(text.str.contains(_BARE_COMMA).any())
    return (",",) if bare else (",", ".")


def _trim(series: pl.Series) -> pl.Series:
    return validate.as_text(series).str.strip_chars()


def _date_column(series: pl.Series, scale: ColumnAxis) -> ReleasedColumn:
    days = scale.unit == 1.0
    if series.dtype == pl.Date and days:
        return _values(series.to_physical().cast(pl.Float64), series.is_null(), scale)
    if isinstance(series.dtype, pl.Datetime):
        at = (
            validate.naive(series).cast(pl.Datetime("us")).to_physical().cast(pl.Float64) / 86_400e6
        )
        return _values(at, series.is_null(), scale)
    text = _trim(series)
    form = scale.column.date_format

    def parse(cell: str) -> Cell:
        return read_date(cell, form, days=days)

    if not days:  # there, a day is an interval of times
        return _texts(text, scale, parse)
    values = read_days(text, form or "%Y-%m-%d")
    if form:  # whatever the policy says, dates may be written as we write them
        values = values.fill_null(text.str.to_date("%Y-%m-%d", strict=False))
    return _mix_boxes(text, values.to_physical().cast(pl.Float64), scale, parse)


def _categories(scale: ColumnAxis) -> Categories:
    place = {category: at for at, category in enumerate(scale.categories)}
    below: dict[str, list[int]] = {}
    tree = scale.column.stated_hierarchy
    for path in tree.paths if tree else ():
        for node in set(path[1:]) - {path[0]} if path[0] in place else ():
            below.setdefault(node, []).append(place[path[0]])
    nodes = {node: (float(min(at)), max(at) + 1.0) for node, at in below.items()}
    ordered = scale.column.kind is Kind.ORDINAL
    return Categories(place, nodes, recode=scale.column.recode, ordered=ordered)


def _values(values: pl.Series, gone: pl.Series, scale: ColumnAxis) -> ReleasedColumn:
    """Make the intervals of a column of numbers."""
    numbers = values.fill_null(np.nan).to_numpy()
    missing = gone.to_numpy() | np.isnan(numbers)
    wild = ~missing & ~(np.abs(numbers) <= validate.LARGEST)
    forms = np.select([missing, wild], [Form.MISSING, Form.UNKNOWN], Form.ONE)
    return _boxes(scale, forms, numbers, numbers)


def _mix_boxes(
    text: pl.Series, values: pl.Series, scale: ColumnAxis, parse: Callable[[str], Cell]
) -> ReleasedColumn:
    """Make the intervals of a column of texts; `values` has those that are plain values."""
    done = values.is_not_null()
    if done.all():
        return _values(values, values.is_null(), scale)
    rest = _texts(text.set(done, "*"), scale, parse)
    if not done.any():
        return rest
    at = done.to_numpy()
    plain = _values(values.filter(done), values.filter(done).is_null(), scale)
    for name in BY_ROW:
        getattr(rest, name)[at] = getattr(plain, name)
    counts = rest.counts + plain.counts
    counts[Form.STAR] -= int(at.sum())  # the stand-ins above
    notes = {key: rest.notes[key] + plain.notes[key] for key in rest.notes}
    return replace(rest, counts=counts, notes=notes)


def _texts(text: pl.Series, scale: ColumnAxis, parse: Callable[[str], Cell]) -> ReleasedColumn:
    """Make the intervals of a column of texts, parsing each distinct text once."""
    distinct = text.drop_nulls().unique()
    codes = text.cast(pl.Enum(distinct)).to_physical().cast(pl.Int64)
    cells = [*map(parse, distinct.to_list()), Cell(Form.MISSING)]
    return _box(scale, cells, codes.fill_null(len(cells) - 1).to_numpy())


def _box(scale: ColumnAxis, cells: Iterable[Cell], codes: NDArray[np.int64]) -> ReleasedColumn:
    form, lower, upper, gap, loose = map(np.array, zip(*cells, strict=True))
    axis = _boxes(scale, form[codes], lower[codes], upper[codes])
    remarks = {"hull": int((gap[codes] > 0).sum()), "loose": int(loose[codes].sum())}
    return replace(axis, gap=gap[codes].astype(np.float64), notes={**axis.notes, **remarks})


def _boxes(
    scale: ColumnAxis, forms: NDArray[np.int64], lower: Floats, upper: Floats
) -> ReleasedColumn:
    """Clip intervals to the domain, and mark those that hold one value.

    A value or interval entirely outside the domain stays, because noise can move values there. One
    partly outside is clipped, so no interval is wider than a suppressed cell.
    """
    least, beyond = scale.domain
    hidden = np.isin(forms, HIDDEN)
    single = ~hidden & (lower == upper)
    outside = ~hidden & ((upper <= least) & ~single | (lower >= beyond) | (upper < least))
    inside = ~(hidden | single | outside)
    lower = np.where(hidden, least, np.where(inside, np.maximum(lower, least), lower))
    upper = np.where(hidden, beyond, np.where(inside, np.minimum(upper, beyond), upper))
    # An open interval that starts outside has no finite end to clip to.
    lower = np.where(np.isinf(lower), np.nextafter(upper, -np.inf), lower)
    upper = np.where(np.isinf(upper), np.nextafter(lower, np.inf), upper)
    if scale.discrete:
        exact = ~hidden & (upper - lower == 1)
    else:
        after = np.nextafter(lower, np.inf)
        after = np.maximum(after, lower + scale.unit) if scale.unit else after
        integral = (lower == np.rint(lower)) if scale.unit else np.ones(len(lower), np.bool_)
        exact = ~hidden & (single | (integral & (upper <= after)))
        upper = np.where(exact, lower, upper)
    counts = np.bincount(forms, minlength=len(Form))
    notes = {"hull": 0, "loose": 0, "outside": int(outside.sum())}
    gap = np.zeros(len(lower))
    return ReleasedColumn(lower, upper, hidden, exact, forms == Form.MISSING, gap, counts, notes)


def type_alike(
    original: pl.DataFrame,
    control: pl.DataFrame | None,
    schema: Schema,
    *,
    decimal: str | None,
    silent: bool,
) -> tuple[Table, Table | None]:
    """Type the original and the control, with one list of categories for each column.

    A category's number means the same in both tables only if they share the list. Where the policy
    declares none, it has the categories of the original in their order, and then those that only
    the control has, in theirs: the control never moves a category of the original.
    """
    table = read_original(original, schema, decimal=decimal, silent=silent)
    if control is None:
        return table, None
    absent = [name for name in schema.names if name not in control.columns]
    if absent:
        raise InputError(
            f"Control group: expected a table with the columns of the original; it "
            f"lacks '{absent[0]}'."
        )
    if control.height == 0:
        raise InputError("Control group: expected one row per person, found no rows.")
    try:
        other = read_original(control, schema, decimal=decimal, silent=silent)
    except InputError as error:
        raise InputError(f"Control: {error}") from None
    shared = {
        column.name: pl.Enum(
            tuple(dict.fromkeys((*table.categories(column.name), *other.categories(column.name))))
        )
        for column in schema.columns
        if column.kind in CATEGORICAL
    }
    return _recast(table, shared), _recast(other, shared)


def _recast(table: Table, shared: dict[str, pl.Enum]) -> Table:
    columns = [pl.col(name).cast(pl.String).cast(categories) for name, categories in shared.items()]
    return Table(table.frame.with_columns(columns), table.schema, table.dtypes)


@dataclass(frozen=True)
class Names:
    """Columns matched between original and release, and findings about the others.

    Attributes:
        source: the name in the release of each policy column that it holds, identifiers too.
        shared: policy columns that both tables hold and that can be scored.
        findings: sentences about all other columns.
    """

    source: Mapping[str, str]
    shared: tuple[str, ...]
    findings: tuple[str, ...]


def match(
    original: pl.DataFrame, released: pl.DataFrame, policy: Policy, rename: Mapping[str, str]
) -> Names:
    """Match columns by the stated renaming, then by name, then ignoring case and separators.

    A `rename` of an absent column is refused, and so are tables that share no column.
    """
    schema = policy.schema
    source = _apply_renames(released, schema.names, rename)
    free = [name for name in released.columns if name not in source.values()]
    source |= {name: name for name in schema.names if name in free and name not in source}
    guessed = _guess_names(
        [name for name in schema.names if name not in source],
        [name for name in free if name not in source.values()],
    )
    source |= guessed
    findings = [f"'{theirs}' was read as '{name}'." for name, theirs in guessed.items()]
    present = [name for name in schema.with_role(Role.IDENTIFIER) if name in source]
    findings += [
        f"The release holds the identifier '{name}': it names people. Drop it." for name in present
    ]
    common = [name for name in schema.released if name in source]
    lacking = [name for name in common if name not in original.columns]
    plain = [n for n in common if n in original.columns and schema[n].kind is None]
    shared = tuple(n for n in common if n in original.columns and schema[n].kind is not None)
    if not shared:
        raise InputError(_nothing(original, released, schema.released))
    gone = [n for n in schema.released if n not in source and n in original.columns]
    extra = [name for name in released.columns if name not in source.values()]
    about_gone = "The release lacks {}, which the original has: nothing about {} is evaluated."
    about_lacking = "The original lacks {}, which the policy names: {} not evaluated."
    about_plain = "{} {} no kind in the policy and {} not evaluated."
    findings += _list_names(gone, about_gone, "it", "them")
    findings += _list_names(lacking, about_lacking, "it is", "they are")
    findings += _list_names(plain, about_plain, "has", "have", "is", "are")
    if unlike("The release", source, schema.released) or not all(map(quotable, extra)):
        # In a file without a header, names are cells.
        extra = [f"column {1 + released.columns.index(name)}" for name in extra]
    findings += _list_names(
        extra,
        "The release holds {}, which the policy does not name: {} ignored. If a column was "
        "renamed, state its new name.",
        "it is",
        "they are",
    )
    return Names(source, shared, tuple(findings))


def _apply_renames(
    released: pl.DataFrame, known: tuple[str, ...], rename: Mapping[str, str]
) -> dict[str, str]:
    for theirs, name in rename.items():
        if theirs not in released.columns:
            quoted = not unlike("The release", released.columns, known)
            guess = did_you_mean(theirs, released.columns) if quoted else ""
            raise InputError(f"rename: the release has no column '{theirs}'.{guess}")
        if name not in known:
            guess = did_you_mean(name, known)
            raise InputError(f"rename: the policy names no column '{name}'.{guess}")
    source = {name: theirs for theirs, name in rename.items()}
    if len(source) < len(rename):
        raise InputError("rename: expected each column of the policy once, found one twice.")
    return source


def _guess_names(wanted: list[str], free: list[str]) -> dict[str, str]:
    """Match names that differ only in case, spaces, points and underscores, if unambiguous."""
    alike: dict[str, list[str]] = {}
    for name in free:
        alike.setdefault(_fold(name), []).append(name)
    folded = [_fold(name) for name in wanted]
    return {
        name: alike[key][0]
        for name, key in zip(wanted, folded, strict=True)
        if key and len(alike.get(key, ())) == 1 and folded.count(key) == 1
    }


def _fold(name: str) -> str:
    return re.sub(r"[\s_.\-]+", "", name).casefold()


def _nothing(original: pl.DataFrame, released: pl.DataFrame, wanted: tuple[str, ...]) -> str:
    """Say that no column can be evaluated; unknown names are not shown, as they may be cells."""
    return (
        unlike("The original", original.columns, wanted)
        or f"The release has no column that can be evaluated: expected some of {_names(wanted)}, "
        f"found {count_noun(released.width, 'other')}. If columns were renamed, say which became "
        "which; if the file lacks a header, add one."
    )


def _list_names(names: list[str], form: str, *verbs: str) -> list[str]:
    if not names:
        return []
    several = len(names) > 1
    return [form.format(_names(names), *verbs[several::2])]


def _names(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown or "none"
