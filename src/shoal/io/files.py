"""Files and foreign frames to Polars frames, and back.

CSV is read as text: the policy's kinds say what each column is, and `intake` parses it, so
that a number that is no number is counted and not guessed at. Errors of the libraries below
may quote cells; none of them is passed on.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors
from polars.exceptions import DuplicateError, PanicException, PolarsError

from shoal.core import Policy
from shoal.errors import InputError
from shoal.io import decoded_size, memory, text_files
from shoal.io.validate import is_number

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 1 << 16
STATS = {".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".dta": "read_dta",
         ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}  # fmt: skip
STATS_NAMES = {"sav": r"[^\W\d_][\w.$#@]{0,63}", "dta": r"[^\W\d]\w{0,31}"}
"""Which column names SPSS and Stata take."""
STATS_LABEL = {"sav": 255, "dta": 80}
"""How long the label of a column may be there."""
FOREIGN = {b"\x1f\x8b": "a gzip archive", b"PK\x03\x04": "a zip archive or an Excel workbook",
           b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file"}  # fmt: skip
"""What a file is whose first bytes are these, and CSV it is not."""
FORMULA = "'*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
"""How text begins that a spreadsheet would run, the wide forms of the signs included; or text that
has apostrophes before such a sign already."""
GUARDED = (
    "In the CSV file, text that starts with = + - @ or a tab has an apostrophe before it, so a "
    "spreadsheet does not run it. Shoal takes it away when it reads the file beside its manifest."
)
FORMATS = ("parquet", "csv", "sav", "dta")
"""What a release can be written as; each is the file's suffix too."""


@dataclass(frozen=True, eq=False)
class Raw:
    """A frame as it was read, with the labels of its columns and values.

    Attributes:
        labels: {"columns": {name: label}, "values": {name: {value: label}}}.
        restore: turns a Polars frame into the type that was handed in, given columns with the types
            that they came in, Polars' and their own.
        types: the types of the columns where they came from.
        found: how the file was written, in words, where that was found out.
        reading: the same as `[reading]` states it.
    """

    frame: pl.DataFrame
    labels: Mapping[str, Any] = field(default_factory=dict)
    restore: "Restore" = lambda frame, _types: frame
    types: Mapping[str, Any] = field(default_factory=dict)
    found: str = ""
    reading: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, str] = field(default_factory=dict)
    ordered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def restoring(self, clamped: Collection[str]) -> Callable[[pl.DataFrame], Any]:
        """What turns a released frame into the type that was handed in.

        A column leaves in the type that it came in, where its values still fit. That type may
        follow from a single cell, so that it is not looked at where cells are clamped: such a
        column leaves in the type that its policy gave it.
        """
        types = {
            name: (self.frame.schema[name], own)
            for name, own in self.types.items()
            if name not in clamped
        }
        restore = self.restore
        return lambda frame: restore(frame, types)


Restore = Callable[[pl.DataFrame, Mapping[str, tuple[pl.DataType, Any]]], Any]


def read(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    alone: bool = False,
    limit: int | None = None,
) -> Raw:
    r"""Read a table: CSV, Parquet, Arrow IPC, or with `shoal[stats]` SPSS, Stata and SAS.

    Args:
        path: the file. Its suffix says what it is; anything unknown is taken for CSV.
        delimiter: of a CSV file, one character or `\t`; found out where not given.
        encoding: of a CSV file; UTF-8, UTF-16 with a byte order mark and Windows-1252 are
            found out.
        alone: cells are read each by itself, and no record decides how the others are read: what
            is not stated follows from the header, and bytes that are not text make their own cell
            unknown.
        limit: bytes that a Parquet or Arrow file may take once decoded, by its own metadata; the
            memory of this machine, if none is given.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"Expected a file, found the folder '{path}'.")
    text_files.refuse_special(path)
    memory.refuse_large(path)
    limit = int(min(memory.available(), 1 << 62)) if limit is None else limit
    suffix = path.suffix.lower()
    with _refusing(path):
        if suffix in STATS:
            return _read_stats(path, suffix)
        if suffix in {".parquet", ".pq"}:
            _refuse_bombs(path, limit)
            frame = pl.read_parquet(path, glob=False)
            return Raw(decoded_size.refuse_texts(frame, path, limit=limit))
        if suffix in {".arrow", ".ipc", ".feather"}:
            # From an open file, because a path would be expanded as a pattern.
            _refuse_bombs(path, limit)
            with path.open("rb") as file:
                return Raw(decoded_size.refuse_texts(pl.read_ipc(file), path, limit=limit))
        raw = _read_csv(path, delimiter, encoding, alone=alone)
    return replace(raw, frame=unguarded(raw.frame)) if _is_guarded(path) else raw


def _refuse_bombs(path: Path, limit: int) -> None:
    try:
        decoded_size.refuse(path, limit=limit)
    except decoded_size.DamagedError:
        raise UnicodeError from None  # said by `_refusing`, as of any file that cannot be read


def marks(
    policy: Policy, *, delimiter: str | None = None, encoding: str | None = None
) -> dict[str, Any]:
    """Delimiter and encoding for `read`: as given, or else as the policy states them."""
    return {
        "delimiter": delimiter or policy.reading.delimiter,
        "encoding": encoding or policy.reading.encoding,
    }


def marks_of_other(path: Path, marks: Mapping[str, Any]) -> dict[str, Any]:
    """Marks for a release: those of its original, if its header has them, or else found out."""
    text_files.refuse_special(path)
    with _refusing(path), path.open("rb") as file:
        header = header_line(file.read(SAMPLE)).decode(errors="ignore")
    mark = stated_delimiter(marks["delimiter"])
    return {**marks, "delimiter": mark if mark is not None and mark in header else None}


def write(
    frame: pl.DataFrame,
    path: Path,
    *,
    labels: Mapping[str, Any],
    about: str | None = None,
    guard_formulas: bool = True,
) -> None:
    """Write a release in the format that the path's suffix names.

    Labels go where the format has room for them: SPSS and Stata natively, Parquet as metadata
    under the key `shoal.labels`. A sentence about the table is the label of an SPSS or Stata file,
    and in Parquet metadata under `shoal.about`; a CSV file has no place for either. In a CSV file,
    text that a spreadsheet would run is guarded, names of columns too, unless told otherwise.
    """
    kind = path.suffix.removeprefix(".")
    if guard_formulas and kind == "csv":
        frame = _guarded(frame)
    try:
        if kind == "csv":
            frame.write_csv(path)
        elif kind == "parquet":
            metadata = {"shoal.labels": json.dumps(labels)} if labels else {}
            metadata |= {"shoal.about": about} if about else {}
            frame.write_parquet(path, metadata=metadata or None)
        else:
            _write_stats(frame, path, kind, labels, about)
    except (PolarsError, PanicException):
        raise InputError(
            f"Cannot write '{path.name}': the disk is full or refuses it. Nothing was written."
        ) from None


def from_native(data: Any, *, alone: bool = False) -> Raw:
    """Take a pandas, Polars or PyArrow table.

    Args:
        data: the table.
        alone: cells are read each by itself: a pandas column of objects keeps them as they are, and
            no cell decides about the type of the others.
    """
    if isinstance(data, pl.DataFrame):
        return Raw(data)
    import narwhals as nw  # noqa: PLC0415 (loads adapters for every library of tables)

    try:
        native = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise InputError("The table has two columns of one name; expected each once.") from None
    except TypeError:
        advice = " Call collect() first." if isinstance(data, pl.LazyFrame) else ""
        raise InputError(
            f"Expected a pandas, Polars or PyArrow table, found {type(data).__name__}.{advice}"
        ) from None
    _check_names(native.columns, "The table")
    if not native.implementation.is_pyarrow() and find_spec("pyarrow") is None:
        raise InputError("A pandas table needs pyarrow on its way in and out: install pyarrow.")
    try:
        if native.implementation.is_pyarrow():
            types = {name: data.schema.field(name) for name in native.columns}
            return Raw(native.to_polars(), restore=_to_arrow, types=types)
        types = {name: data[name].dtype for name in native.columns}
        frame = pl.DataFrame(map(_cells, data.items())) if alone else native.to_polars()
    except ImportError:
        raise InputError("Reading a pandas table needs pyarrow: pip install pyarrow.") from None
    except (Exception, PanicException):  # noqa: BLE001 (their own messages may quote cells)
        raise InputError(
            "Expected one plain type of value a column, found a column of mixed or unusual "
            "objects. Convert it to text or to numbers first."
        ) from None
    return Raw(frame, restore=_to_pandas, types=types)


def _cells(named: tuple[str, Any]) -> pl.Series:
    """A pandas column without a look at its cells: numbers and times as they are, else objects."""
    name, column = named
    if getattr(column.dtype, "kind", "") in set("iufb") or str(column.dtype).startswith("datetime"):
        with suppress(Exception):  # a type that Polars does not know is read as objects
            return pl.Series(name, pl.from_pandas(column))
    return pl.Series(name, column.astype(object).tolist(), dtype=pl.Object)


def _check_names(names: Sequence[Any], where: str) -> None:
    """Refuse names that a policy cannot tell apart."""
    for place, name in enumerate(names, start=1):
        if not isinstance(name, str):
            kind = type(name).__name__
            raise InputError(f"{where}: expected text as the name of column {place}, found {kind}.")
        if not name:
            raise InputError(f"{where}: column {place} has no name; expected one for each column.")
        if name in names[: place - 1]:
            # In a file without a header it is a cell, and is not shown.
            first = 1 + names.index(name)
            raise InputError(
                f"{where}: columns {first} and {place} have one name; expected each name once."
            )


def _to_pandas(released: pl.DataFrame, types: Mapping[str, tuple[pl.DataType, Any]]) -> Any:
    """Go back to pandas; a column that kept its type here gets its pandas type back.

    The index of the original is not released: it may tell the rows.
    """
    result = released.to_pandas()
    for name, dtype in released.schema.items():
        values = result[name]
        if hasattr(values.dtype, "categories"):
            values = values.cat.remove_unused_categories()
        came, wanted = types.get(name, (None, None))
        if came == dtype and values.dtype != wanted:
            # Whole numbers of NumPy, for one, have no room for a cell that is missing now.
            with suppress(TypeError, ValueError):
                values = values.astype(_without_unused(wanted, values))
        result[name] = values
    return result


def _without_unused(dtype: Any, values: Any) -> Any:
    """Take out of a pandas categorical the categories that are not released."""
    if not hasattr(dtype, "categories"):
        return dtype
    present = set(values.dropna())
    kept = [category for category in dtype.categories if category in present]
    if len(kept) < len(present):
        return "category"
    return type(dtype)(kept, ordered=dtype.ordered)


def _to_arrow(released: pl.DataFrame, types: Mapping[str, tuple[pl.DataType, Any]]) -> Any:
    result = released.to_arrow()
    for place, (name, dtype) in enumerate(released.schema.items()):
        came, wanted = types.get(name, (None, None))
        if came == dtype and wanted is not None and result.schema.field(name).type != wanted.type:
            # Some types, such as a dictionary of numbers, can be read and not be cast to.
            with suppress(TypeError, ValueError, NotImplementedError):
                result = result.set_column(place, wanted, result[name].cast(wanted.type))
    return result


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Replace the messages of libraries, which may quote cells, by our own."""
    try:
        path.open("rb").close()  # the libraries do not say why a file cannot be opened
        yield
    except (OSError, PolarsError, PanicException, UnicodeError) as error:
        if isinstance(error, DuplicateError):
            text = f"'{path}' has two columns of one name; expected each once."
        elif isinstance(error, OSError) and error.strerror:
            text = f"Cannot read '{path}': {error.strerror.lower()}."
        else:
            kind = path.suffix.removeprefix(".").upper() or "CSV"
            text = f"Cannot read '{path}' as {kind}: the file is damaged or of another format."
        raise InputError(text) from None


def _read_csv(path: Path, delimiter: str | None, encoding: str | None, *, alone: bool) -> Raw:
    raw = path.read_bytes()
    for mark, name in FOREIGN.items():
        if raw.startswith(mark):
            raise InputError(f"Expected '{path}' to be CSV; it is {name}. Unpack or rename it.")
    known = encoding or found_encoding(raw, path, alone=alone)
    if alone or known not in {"utf-8", "utf8"}:
        try:
            # A byte that the encoding lacks makes a cell unknown, and not the table unreadable.
            text = raw.decode(known, "replace" if alone else "strict")
        except (ValueError, LookupError):
            raise InputError(
                f"Cannot read '{path}' with the encoding '{known}'. State another one."
            ) from None
        raw = text.removeprefix("\ufeff").encode()
    raw = raw.lstrip(b"\r\n")
    if not raw.strip():
        raise InputError(f"'{path}' is empty; expected a header and one row per person.")
    first = header_line(raw)
    if raw[len(first) : len(first) + 1] == b"\r" and raw[len(first) : len(first) + 2] != b"\r\n":
        raw = raw.replace(b"\r", b"\n")
    sample = first if alone else raw[:SAMPLE]
    separator = stated_delimiter(delimiter) or found_delimiter(sample.decode(errors="ignore"))
    try:
        frame = pl.read_csv(
            raw, separator=separator, infer_schema=False, has_header=False, null_values=""
        )
    except PolarsError:
        raise InputError(
            f"Cannot read '{path}' as CSV with the delimiter {separator!r}: a row has more cells "
            "than the header, or a quote is never closed."
        ) from None
    header = [name or "" for name in frame.row(0)]
    _check_numbers(header, path)
    rows = _complete_rows(raw, separator, frame, path)[1:]
    found = f"{known}, delimiter {separator!r}"
    if header[0] == "" and (all(header[1:]) if alone else _row_names(header, rows)):
        header, rows, frame = header[1:], rows[:, 1:], frame[:, 1:]
        found += ", row numbers in the first column left out"
    _check_names(header, f"'{path}'")
    named = rows.rename(dict(zip(frame.columns, header, strict=True)))
    return Raw(named, found=found, reading={"delimiter": separator, "encoding": known})


def check_header(header: Sequence[str], path: Path) -> None:
    """Refuse a first row that holds no names, or names that a policy cannot tell apart."""
    _check_numbers(header, path)
    _check_names(header, f"'{path}'")


def _check_numbers(header: Sequence[str], path: Path) -> None:
    numbers = sum(is_number(name.replace(",", ".")) for name in header)
    if 2 * numbers > len(header):
        # Names would be shown in messages, and here they would be a person's cells.
        raise InputError(
            f"'{path}' seems to lack a header: {numbers} of the {len(header)} names in its first "
            "row are numbers. Add a row of column names."
        )


def header_line(raw: bytes) -> bytes:
    """The first line of a CSV file, without its end; a line end in quotes is none."""
    quoted = False
    for place, byte in enumerate(raw):
        if byte == ord('"'):
            quoted = not quoted
        elif byte in b"\r\n" and not quoted:
            return raw[:place]
    return raw


def _row_names(header: Sequence[str], rows: pl.DataFrame) -> bool:
    """Whether the first column is what R's write.csv and pandas put there: row numbers, no name."""
    if len(header) < 2 or not all(header[1:]) or not rows.height:
        return False
    numbers = rows.to_series().cast(pl.Int64, strict=False)
    first = numbers[0]
    return first in {0, 1} and numbers.equals(
        pl.Series(numbers.name, range(first, first + rows.height), dtype=pl.Int64)
    )


def _complete_rows(raw: bytes, separator: str, frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Drop blank lines, and refuse rows with fewer cells than the header.

    Polars fills both up with missing cells, and would so make persons of blank lines. With the
    quoted parts taken out, a line is a row and every delimiter ends a cell. In a table of one
    column a blank line is a missing cell, as Polars writes it.
    """
    if frame.width == 1:
        return frame
    plain = re.sub(rb'"[^"]*"', b"\0", raw) if b'"' in raw else raw
    mark = separator.encode()
    if plain.count(mark) == frame.height * (frame.width - 1):
        return frame
    lines = plain.replace(b"\r\n", b"\n").split(b"\n")
    cells = [line.count(mark) + 1 if line else 0 for line in lines]
    filled = pl.Series(cells[: frame.height], dtype=pl.Int64)
    short = int(((filled > 0) & (filled != frame.width)).sum())
    if short or filled.len() < frame.height:
        raise InputError(
            f"'{path}' has rows with another number of cells than its header, {short:,} of them; "
            f"expected {frame.width} cells, split at {separator!r}."
        )
    return frame.filter(filled > 0)


def stated_delimiter(delimiter: str | None) -> str | None:
    """The delimiter that was stated, or say that it is none."""
    mark = "\t" if delimiter == r"\t" else delimiter
    if mark and (len(mark) > 1 or not mark.isascii() or mark in '"\r\n\0'):
        raise InputError(
            f"Expected one ASCII character other than a quote as delimiter, found {delimiter!r}."
        )
    return mark


def found_encoding(raw: bytes, path: Path, *, alone: bool = False) -> str:
    """Find the encoding: a byte order mark, then UTF-8, then Windows-1252 if it fits.

    Where cells are read `alone`, no record has a say: without a mark it is UTF-8.
    """
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"),
                       (b"\0\0\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"),
                       (b"\xfe\xff", "utf-16")):  # fmt: skip
        if raw.startswith(mark):
            return name
    if alone:
        return "utf-8"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        if b"\0" not in raw:
            return "utf-8"
    # Five bytes mean nothing in Windows-1252, and zero bytes are no text.
    if not set(raw).intersection(b"\x81\x8d\x8f\x90\x9d\0"):
        return "cp1252"
    raise InputError(
        f"Cannot find the encoding of '{path}': it is neither UTF-8 nor Windows-1252. State it "
        "with --encoding or under [reading]."
    )


def found_delimiter(sample: str) -> str:
    """Find the delimiter that cuts most of the first lines as it cuts the header, the finest."""
    complete = sample.rsplit("\n", 1)[0] if sample.count("\n") > 1 else sample
    lines = complete.replace("\r", "")

    def cells(mark: str) -> int:
        widths = [len(row) for row in csv.reader(io.StringIO(lines), delimiter=mark) if row]
        return widths[0] if 2 * widths.count(widths[0]) > len(widths) else 0

    best = max(DELIMITERS, key=cells)
    return best if cells(best) > 1 else ","


def _guarded(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before text that a spreadsheet would run as a formula, and before names.

    Text that looks guarded already gets one more, so two texts stay two, and `unguarded` gives
    back what was there.
    """
    text = selectors.by_dtype(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    return frame.with_columns(
        pl.when(text.str.contains(f"^{FORMULA}")).then("'" + text).otherwise(text).name.keep()
    ).rename(lambda name: f"'{name}" if re.match(FORMULA, name) else name)


def unguarded(frame: pl.DataFrame) -> pl.DataFrame:
    """Take away what `_guarded` put there; all columns are text."""
    return frame.with_columns(pl.all().str.replace(f"^'({FORMULA})", "${1}")).rename(
        lambda name: re.sub(f"^'({FORMULA})", r"\1", name)
    )


def _is_guarded(path: Path) -> bool:
    """Whether a CSV file is part of a release whose manifest says that its formulas are guarded."""
    try:
        manifest = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
        return manifest["guard_formulas"] is True and path.name in manifest["files"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def _stats_library() -> Any:
    try:
        import pyreadstat  # noqa: PLC0415 (optional)
    except ImportError:
        raise InputError(
            "SPSS, Stata and SAS files need the extra 'stats': pip install 'shoal[stats]'."
        ) from None
    return pyreadstat


def _read_stats(path: Path, suffix: str) -> Raw:
    library = _stats_library()
    try:
        frame, meta = getattr(library, STATS[suffix])(str(path), output_format="polars")
    except (library.ReadstatError, library.PyreadstatError, LookupError, TypeError, ValueError):
        raise InputError(
            f"Cannot read '{path}': the file is damaged or of another format."
        ) from None
    # These formats have no missing text but the empty one.
    frame = frame.with_columns(pl.col(pl.String).replace("", None))
    columns = {name: label for name, label in meta.column_names_to_labels.items() if label}
    values = {
        name: {
            # As the text that categories have.
            str(int(v)) if isinstance(v, float) and v.is_integer() else str(v): label
            for v, label in labels.items()
        }
        for name, labels in meta.variable_value_labels.items()
    }
    return Raw(frame, labels={"columns": columns, "values": values})


def check_writable(form: str, names: Sequence[str]) -> None:
    """Refuse a format that cannot be written, before anything is spent on the release."""
    if form not in FORMATS:
        raise InputError(f"Expected a format among {', '.join(FORMATS)}, found '{form}'.")
    if form not in STATS_NAMES:
        return
    _stats_library()
    program = "SPSS" if form == "sav" else "Stata"
    for name in names:
        if not re.fullmatch(STATS_NAMES[form], name):
            raise InputError(
                f"Cannot write the release for {program}: it takes no column named '{name}'. "
                "Rename the column, or choose --file-format parquet or csv."
            )


def _write_stats(
    frame: pl.DataFrame, path: Path, kind: str, labels: Mapping[str, Any], about: str | None
) -> None:
    library = _stats_library()
    check_writable(kind, frame.columns)
    program = "SPSS" if kind == "sav" else "Stata"
    write = library.write_sav if kind == "sav" else library.write_dta
    values = {
        name: dict(_codes(mapping, frame.schema[name], kind))
        for name, mapping in labels.get("values", {}).items()
    }
    try:
        write(
            frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64)),
            str(path),
            file_label=about or "",
            column_labels={
                name: label[: STATS_LABEL[kind]]
                for name, label in labels.get("columns", {}).items()
            },
            variable_value_labels={name: codes for name, codes in values.items() if codes},
        )
    except (library.ReadstatError, library.PyreadstatError):
        raise InputError(
            f"Cannot write the release for {program}: a name or a text does not fit the format, or "
            "the disk is full. Choose --file-format parquet or csv."
        ) from None


def _codes(
    labels: Mapping[str, str], dtype: pl.DataType, kind: str
) -> Iterator[tuple[str | float, str]]:
    """Write labelled values in the type of their column; Stata labels whole numbers alone."""
    for code, label in labels.items():
        if dtype == pl.String:
            if kind == "sav":
                yield code, label
        else:
            with suppress(ValueError):
                if kind == "sav" or float(code).is_integer():
                    yield float(code), label
