"""The contract of readers: what is read of one record never changes what is read of another.

Readers and doors on one side, substitutions of one record on the other. A reader that is new in
`shoal.io` has to be here: `tests/io/test_readers.py` compares the list with what can be read.
"""

import gzip
from dataclasses import dataclass
from datetime import date, timedelta

import pandas as pd
import polars as pl
from tests import workbook

import shoal
from shoal import io
from shoal.engine import Adoption
from shoal.io import clamp
from shoal.io.persons import spell_persons

ROWS, CHANGED = 6, 3
READING = {"delimiter": ",", "decimal": ".", "date_format": "yyyy-mm-dd", "rows": ROWS}
CONTENT = {
    "version": 1,
    "columns": {
        "id": {"role": "identifier", "privacy_unit": True, "max_contributions": 2},
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
        "born": {
            "role": "quasi-identifier",
            "kind": "date",
            "bounds": [date(1900, 1, 1), date(2030, 1, 1)],
        },
        "town": {"role": "quasi-identifier", "kind": "nominal", "categories": ["a", "b", "é"]},
    },
    "reading": READING,
    "protect": {"method": "auto", "epsilon": 1},
}
PROTECTED = ("age", "born", "town")


class UnwritableError(Exception):
    """The format cannot hold such a record."""


@dataclass(frozen=True)
class Bytes:
    """A text that is not in the encoding of its file."""

    raw: bytes


@dataclass(frozen=True)
class Day:
    """A day by its number from 1970 on, in the calendar or not."""

    number: int

    @property
    def text(self):
        return f"{1970 + self.number // 365}-01-01"


def person(number):
    return {
        "id": 10**9 + number,
        "age": 20.0 + number,
        "born": date(1950, 1, 1) + timedelta(days=number),
        "town": "abé"[number % 3],
    }


EARLY = "date before the calendar"
SUBSTITUTIONS = {
    "another person": {"id": 5, "age": 77.0, "born": date(1999, 9, 9), "town": "a"},
    "text for a number": {"age": "many"},
    "text for a date": {"born": "soon"},
    "number for a text": {"town": 7},
    "long text": {"town": "x" * 32_767},
    "all cells empty": {"id": None, "age": None, "born": None, "town": None},
    "id missing": {"id": None},
    "id with a letter": {"id": "100000000000053X"},
    "id a fraction": {"id": 0.5},
    "id of 18 digits": {"id": 10**17 + 1},
    "bare quote": {"town": 'x"y'},
    "open quote": {"town": '"x'},
    "more cells": {"town": "a,b"},
    "carriage return": {"town": "a\rb"},
    "bytes that are not UTF-8": {"town": Bytes(b"\xff")},
    "number of 401 digits": {"age": 10**400},
    "infinite": {"age": float("inf")},
    "not a number": {"age": float("nan")},
    "date out of range": {"born": Day(2**31 - 5)},
    EARLY: {"born": Day(-(2**31) + 5)},
    "nested": {"town": ["a", "b"]},
    "missing code": {"age": 999.0},
}
"""Cells of the record that changes, by what is odd about them."""


def table(**cells):
    return [person(n) | (cells if n == CHANGED else {}) for n in range(ROWS)]


def as_csv(records, path):
    path.write_bytes(csv_bytes(records))
    return path


def csv_bytes(records):
    lines = [b"id,age,born,town"]
    lines += [b",".join(map(cell_bytes, record.values())) for record in records]
    return b"\n".join([*lines, b""])


def cell_bytes(cell):
    if isinstance(cell, Bytes):
        return cell.raw
    text = "" if cell is None else cell.text if isinstance(cell, Day) else str(cell)
    return text.encode()


def as_gzip(records, path):
    path.write_bytes(gzip.compress(csv_bytes(records)))
    return path


def as_excel(records, path):
    def cell(value):
        if isinstance(value, Bytes):
            raise UnwritableError
        if isinstance(value, Day):
            return workbook.Xml(f'<c s="1"><v>{value.number}</v></c>')
        if isinstance(value, float) and value - value != 0:
            return workbook.Xml('<c t="e"><v>#NUM!</v></c>')
        if isinstance(value, int) and value > 10**300:
            return workbook.Xml("<c><v>1e400</v></c>")
        return str(value) if isinstance(value, list) else value

    rows = [list(records[0]), *([cell(v) for v in record.values()] for record in records)]
    workbook.write(path, {"people": rows})
    return path


TYPES = {"id": pl.Int64, "age": pl.Float64, "born": pl.Int32, "town": pl.String}


def as_polars(records, _path=None):
    """Typed columns, as Polars, Arrow and Parquet have them."""

    def cell(name, value):
        if name == "born" and value is not None:
            days = value.number if isinstance(value, Day) else None
            if days is None and not isinstance(value, date):
                raise UnwritableError
            return (value - date(1970, 1, 1)).days if days is None else days
        kinds = {"id": int, "age": float, "town": str}
        if value is not None and not isinstance(value, kinds.get(name, object)):
            raise UnwritableError
        return value

    columns = {n: [cell(n, record[n]) for record in records] for n in records[0]}
    frame = pl.DataFrame(columns, schema=TYPES)
    return frame.with_columns(pl.col("born").cast(pl.Date))


def as_texts(records, _path=None):
    """Columns of text alone."""
    if any(isinstance(cell, Bytes) for record in records for cell in record.values()):
        raise UnwritableError
    cells = {n: [None if r[n] is None else cell_bytes(r[n]).decode() for r in records]
             for n in records[0]}  # fmt: skip
    return pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String))


def as_arrow(records, _path=None):
    return as_polars(records).to_arrow()


def as_pandas(records, _path=None):
    """As pandas builds it: the type of a column follows its cells."""

    def cell(value):
        if isinstance(value, Day):
            return value.text
        return value.raw if isinstance(value, Bytes) else value

    return pd.DataFrame({n: pd.Series([cell(r[n]) for r in records]) for n in records[0]})


def as_parquet(records, path):
    as_polars(records).write_parquet(path)
    return path


def as_parquet_texts(records, path):
    as_texts(records).write_parquet(path)
    return path


def as_ipc(records, path):
    as_polars(records).write_ipc(path)
    return path


def as_folder(records, path):
    path.mkdir(exist_ok=True)
    as_polars(records[:2]).write_parquet(path / "a.parquet")
    as_polars(records[2:]).write_parquet(path / "b.parquet")
    return path


def as_stats(records, path):
    """Through pyreadstat: dates are numbers with a format, and bytes are put into the file."""
    import pyreadstat  # noqa: PLC0415 (optional)

    spss = path.suffix in {".sav", ".zsav"}
    columns = {n: [stats_cell(n, r[n], spss=spss) for r in records] for n in records[0]}
    frame = pl.DataFrame(columns, strict=False)
    if spss:
        packed = path.suffix == ".zsav"
        form, codes = {"born": "DATE11"}, {"age": [999.0]}
        pyreadstat.write_sav(
            frame, path, variable_format=form, missing_ranges=codes, compress=packed
        )
    elif path.suffix == ".dta":
        pyreadstat.write_dta(frame, path, variable_format={"born": "%td"})
    else:
        pyreadstat.write_xport(frame, path, variable_format={"born": "DATE9"})
    for spoilt in (r["town"].raw for r in records if isinstance(r["town"], Bytes)):
        old, raw = MARK.encode(), path.read_bytes()
        if raw.count(old) != 1:
            raise UnwritableError
        path.write_bytes(raw.replace(old, spoilt.ljust(len(old), b"\xfe")))
    return path


MARK = "\u20ac"
"""What stands in a file where bytes are put that are not text."""


def stats_cell(name, value, *, spss):
    if name == "town":
        if not isinstance(value, str | Bytes | None) or (
            isinstance(value, str) and len(value) > 200
        ):
            raise UnwritableError
        return MARK if isinstance(value, Bytes) else value or ""
    if value is None:
        return None
    if name == "born":
        return stats_day(value, spss=spss)
    if isinstance(value, str) or value - value != 0 or value > 10**300:
        raise UnwritableError
    return float(value)


def stats_day(value, *, spss):
    if not isinstance(value, Day | date) or (not spss and value == SUBSTITUTIONS[EARLY]["born"]):
        raise UnwritableError
    start = date(1582, 10, 14) if spss else date(1960, 1, 1)
    days = (value - start).days if isinstance(value, date) else value.number
    return float(days) * (86_400 if spss else 1)


READERS = {
    "CSV": ("people.csv", as_csv),
    "CSV, gzip": ("people.csv.gz", as_gzip),
    "Excel": ("people.xlsx", as_excel),
    "Parquet": ("people.parquet", as_parquet),
    "Parquet of texts": ("texts.parquet", as_parquet_texts),
    "folder of Parquet": ("people", as_folder),
    "Arrow IPC": ("people.arrow", as_ipc),
    "SPSS": ("people.sav", as_stats),
    "SPSS, packed": ("people.zsav", as_stats),
    "Stata": ("people.dta", as_stats),
    "SAS transport": ("people.xpt", as_stats),
    "pandas": (None, as_pandas),
    "Polars": (None, as_polars),
    "Polars of texts": (None, as_texts),
    "Arrow": (None, as_arrow),
}
"""Every reader and door on one machine: the name of its file, and who writes it."""
REFUSED_BY_TYPE = {
    ("pandas", "all cells empty"),
    ("pandas", "id missing"),
    ("pandas", "id a fraction"),
}
"""pandas makes floats of all ids here before Shoal sees them; the type is refused."""
NOT_WRITABLE = {".por", ".sas7bdat"}
"""What can be read, and no package that we install writes."""


HOLDS, NO_SUCH, BY_TYPE = "yes", "", "type"
"""In the table of docs/research/attacks.md: the rest stays as it is; the format has no such record;
the type of the column is refused."""


def build(reader, substitution, folder):
    """The table with one record replaced, as the reader takes it."""
    name, write = READERS[reader]
    path = None if name is None else folder / name
    return write(table(**SUBSTITUTIONS.get(substitution, {})), path)


def entry(reader, substitution, folder):
    """What the table of the page says of a reader and a record."""
    try:
        build(reader, substitution, folder)
    except UnwritableError:
        return NO_SUCH
    return BY_TYPE if (reader, substitution) in REFUSED_BY_TYPE else HOLDS


def adopt(data):
    """How a run reads the table: the policy, and what `engine.Source.adopt` is told."""
    policy = shoal.plan(CONTENT, data=data).policy
    return policy, Adoption(schema=policy.schema, clamped=PROTECTED, decimal=".", key=1)


def outcome(data):
    """All that a run takes from a reader: records, persons, types, and words about the file."""
    policy, _ = adopt(data)
    raw = io.take(data, policy=policy, alone=True)
    clamp.refuse_float_ids(policy.schema, raw.types)
    read, _ = clamp.clamp(raw.frame, policy.schema, columns=PROTECTED, decimal=".")
    ids = spell_persons(clamp.texts(raw.frame["id"]), policy.schema["id"])
    facts = (raw.found, dict(raw.reading), raw.assumes, read.frame.schema, read.dtypes)
    return facts, list(zip(ids, read.frame.rows(), strict=True))
