"""Files and foreign frames to Polars frames, and back.

CSV is read as text: the policy's kinds say what each column is, and `intake` parses it, so
that a number that is no number is counted and not guessed at. Errors of the libraries below
may quote cells; none of them is passed on.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
from polars.exceptions import PanicException, PolarsError

from shoal.errors import InputError

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 1 << 16
STATS = {".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".dta": "read_dta",
         ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}  # fmt: skip
FORMATS = ("parquet", "csv", "sav", "dta")
"""What a release can be written as; each is the file's suffix too."""


@dataclass(frozen=True, eq=False)
class Raw:
    """A frame as it was read, with the labels of its columns and values.

    Attributes:
        labels: {"columns": {name: label}, "values": {name: {value: label}}}.
        restore: turns a Polars frame into the type that was handed in.
        found: how the file was written, in words, where that was found out.
    """

    frame: pl.DataFrame
    labels: Mapping[str, Any] = field(default_factory=dict)
    restore: Callable[[pl.DataFrame], Any] = lambda frame: frame
    found: str = ""


def read(path: str | Path, *, delimiter: str | None = None, encoding: str | None = None) -> Raw:
    """Read a table: CSV, Parquet, Arrow IPC, or with `shoal[stats]` SPSS, Stata and SAS.

    Args:
        path: the file. Its suffix says what it is; anything unknown is taken for CSV.
        delimiter: of a CSV file; found out where not given.
        encoding: of a CSV file; UTF-8, UTF-16 with a byte order mark and Windows-1252 are
            found out.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"Expected a file, found the folder '{path}'.")
    suffix = path.suffix.lower()
    with _refusing(path):
        if suffix in STATS:
            return _read_stats(path, suffix)
        if suffix in {".parquet", ".pq"}:
            return Raw(pl.read_parquet(path))
        if suffix in {".arrow", ".ipc", ".feather"}:
            return Raw(pl.read_ipc(path))
        return _read_csv(path, delimiter, encoding)


def write(
    frame: pl.DataFrame, path: Path, *, labels: Mapping[str, Any], guard_formulas: bool = False
) -> None:
    """Write a release in the format that the path's suffix names.

    Labels go where the format has room for them: SPSS and Stata natively, Parquet as metadata
    under the key `shoal.labels`.
    """
    kind = path.suffix.removeprefix(".")
    if guard_formulas:
        frame = _guarded(frame)
    if kind == "csv":
        frame.write_csv(path)
    elif kind == "parquet":
        frame.write_parquet(path, metadata={"shoal.labels": json.dumps(labels)} if labels else None)
    else:
        _write_stats(frame, path, kind, labels)


def from_native(data: Any) -> Raw:
    """Take a pandas, Polars or PyArrow table."""
    if isinstance(data, pl.DataFrame):
        return Raw(data)
    names = list(getattr(data, "columns", ()))
    if len(set(map(str, names))) < len(names) and all(isinstance(name, str) for name in names):
        raise InputError("Expected each column name once, found one twice.")
    try:
        native = nw.from_native(data, eager_only=True)
    except TypeError:
        raise InputError(
            f"Expected a pandas, Polars or PyArrow table, found {type(data).__name__}."
        ) from None
    try:
        frame = native.to_polars()
    except ImportError:
        raise InputError("Reading a pandas table needs pyarrow: pip install pyarrow.") from None
    except Exception:  # noqa: BLE001 (the libraries' own messages may quote cells)
        raise InputError(
            "Expected one type of value a column, found a column of mixed objects. Convert it "
            "to text or to numbers first."
        ) from None
    if native.implementation.is_pyarrow():
        return Raw(frame, restore=lambda released: _to_arrow(released, frame, data))
    return Raw(frame, restore=lambda released: _to_pandas(released, frame, data))


def _to_pandas(released: pl.DataFrame, before: pl.DataFrame, like: Any) -> Any:
    """Go back to pandas; a column that kept its type here gets its pandas type back."""
    result = released.to_pandas()
    for name, dtype in released.schema.items():
        if before.schema[name] == dtype and result[name].dtype != like[name].dtype:
            result[name] = result[name].astype(like[name].dtype)
    return result


def _to_arrow(released: pl.DataFrame, before: pl.DataFrame, like: Any) -> Any:
    result = released.to_arrow()
    for place, (name, dtype) in enumerate(released.schema.items()):
        wanted = like.schema.field(name)
        if before.schema[name] == dtype and result.schema.field(name).type != wanted.type:
            result = result.set_column(place, wanted, result[name].cast(wanted.type))
    return result


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Replace the messages of libraries, which may quote cells, by our own."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
        raise InputError(f"Cannot read '{path}': {reason}.") from None
    except (PolarsError, PanicException, UnicodeError):
        kind = path.suffix.removeprefix(".").upper() or "CSV"
        raise InputError(
            f"Cannot read '{path}' as {kind}: the file is damaged or of another format."
        ) from None


def _read_csv(path: Path, delimiter: str | None, encoding: str | None) -> Raw:
    raw = path.read_bytes()
    if not raw.strip():
        raise InputError(f"'{path}' is empty; expected a header and one row a person.")
    known = encoding or _encoding(raw, path)
    if known not in {"utf-8", "utf8"}:
        try:
            raw = raw.decode(known).removeprefix("\ufeff").encode()
        except (UnicodeError, LookupError):
            raise InputError(
                f"Cannot read '{path}' with the encoding '{known}'. State another one."
            ) from None
    sample = raw[:SAMPLE].decode(errors="ignore")
    separator = delimiter or _delimiter(sample)
    header = next(csv.reader(io.StringIO(sample), delimiter=separator))
    _check_header(header, path)
    try:
        frame = pl.read_csv(
            raw, separator=separator, infer_schema=False, has_header=False, skip_rows=0
        )
    except PolarsError:
        raise InputError(
            f"Cannot read '{path}' as CSV with the delimiter {separator!r}: a row has more cells "
            "than the header, or a quote is never closed."
        ) from None
    if frame.width != len(header):
        raise InputError(f"Cannot read '{path}' as CSV: its rows have more cells than its header.")
    frame = frame[1:].rename(dict(zip(frame.columns, header, strict=True)))
    return Raw(frame, found=f"{known}, delimiter {separator!r}")


def _check_header(header: list[str], path: Path) -> None:
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"'{path}' has two columns named '{twice}'; expected each name once.")
    if "" in header:
        place = header.index("") + 1
        raise InputError(f"'{path}': column {place} has no name; expected a header row.")


def _encoding(raw: bytes, path: Path) -> str:
    """Find the encoding: a byte order mark, then UTF-8, then Windows-1252 if it fits."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"),
                       (b"\xfe\xff", "utf-16")):  # fmt: skip
        if raw.startswith(mark):
            return name
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


def _delimiter(sample: str) -> str:
    """Find the delimiter that cuts the first lines into the same number of cells, the most."""
    complete = sample.rsplit("\n", 1)[0] if sample.count("\n") > 1 else sample

    def cells(mark: str) -> int:
        widths = [len(row) for row in csv.reader(io.StringIO(complete), delimiter=mark) if row]
        return widths[0] if len(set(widths)) == 1 else 0

    best = max(DELIMITERS, key=cells)
    return best if cells(best) > 1 else ","


def _guarded(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    text = pl.col(pl.String)
    return frame.with_columns(
        pl.when(text.str.contains(r"^[=+\-@\t\r]")).then("'" + text).otherwise(text).name.keep()
    )


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
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory")
    try:
        frame, meta = getattr(library, STATS[suffix])(str(path), output_format="polars")
    except library.ReadstatError:
        raise InputError(
            f"Cannot read '{path}': the file is damaged or of another format."
        ) from None
    columns = {name: label for name, label in meta.column_names_to_labels.items() if label}
    values = {
        name: {_code(value): label for value, label in labels.items()}
        for name, labels in meta.variable_value_labels.items()
    }
    return Raw(frame, labels={"columns": columns, "values": values})


def _code(value: Any) -> str:
    """Write a labelled value as the text that categories have."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _write_stats(frame: pl.DataFrame, path: Path, kind: str, labels: Mapping[str, Any]) -> None:
    library = _stats_library()
    write = library.write_sav if kind == "sav" else library.write_dta
    values = {
        name: {(code if frame.schema[name] == pl.String else float(code)): label
               for code, label in mapping.items()}
        for name, mapping in labels.get("values", {}).items()
    }  # fmt: skip
    write(
        frame,
        str(path),
        column_labels=dict(labels.get("columns", {})),
        variable_value_labels=values,
    )
