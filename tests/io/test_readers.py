"""Between the file and the table every record is read by itself, in every reader and door."""

from datetime import date
from pathlib import Path

import polars as pl
import pytest
from tests import readers

from shoal import io
from shoal import policy as policies
from shoal.core import Schema
from shoal.errors import InputError
from shoal.io import excel_files, files
from shoal.io.original import read_original

PAGE = Path(__file__).parents[2] / "docs" / "research" / "attacks.md"


def test_every_format_that_can_be_read_is_in_the_contract():
    known = {*io.STATS, *excel_files.EXCEL, *files.PARQUET, *files.ARROW, ".csv", *files.PACKED}
    alike = {".pq": ".parquet", ".xlsm": ".xlsx", ".ipc": ".arrow", ".feather": ".arrow",
             ".tsv.gz": ".csv.gz", ".txt.gz": ".csv.gz"}  # fmt: skip
    names = [name for name, _ in readers.READERS.values() if name]

    tested = {f".{name.partition('.')[2]}" for name in names}
    assert {alike.get(suffix, suffix) for suffix in known} - readers.NOT_WRITABLE <= tested


@pytest.mark.parametrize("reader", readers.READERS)
def test_a_changed_record_changes_nothing_else_that_is_read(reader, tmp_path):
    facts, before = readers.outcome(readers.build(reader, "", tmp_path))
    del before[readers.CHANGED]
    for odd in readers.SUBSTITUTIONS:
        if readers.entry(reader, odd, tmp_path) == readers.NO_SUCH:
            continue
        changed = readers.build(reader, odd, tmp_path)
        if (reader, odd) in readers.REFUSED_BY_TYPE:
            with pytest.raises(InputError, match="and pandas holds it as float64"):
                readers.outcome(changed)
            continue

        other_facts, after = readers.outcome(changed)

        assert other_facts == facts, odd
        assert len(after) == readers.ROWS, odd
        del after[readers.CHANGED]
        assert after == before, odd


def test_the_page_shows_which_records_every_reader_met(tmp_path):
    met = {
        reader: {odd: readers.entry(reader, odd, tmp_path) for odd in readers.SUBSTITUTIONS}
        for reader in readers.READERS
    }

    assert table_of_the_page() == met


def table_of_the_page():
    """The table of readers and substitutions in the docs, by reader."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| record with |")]
    start = PAGE.read_text().index(lines[0])
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in PAGE.read_text()[start:].split("\n\n")[0].splitlines()]  # fmt: skip
    head, _, *body = rows
    return {
        reader: {row[0]: row[place] for row in body} for place, reader in enumerate(head) if place
    }


FORMS = {"born": "dd.mm.yy until 2024", "seen": None, "asked": "era"}
CELLS = {
    "born": ["01.02.24", "01.02.25", "29.02.00"],
    "seen": ["2024-05-01T23:30:00+02:00", "2024-05-02T00:30:00Z", "2024-05-03T12:00:00"],
    "asked": ["令和5年4月1日", "S60.1.2", "昭和65年1月1日"],
    "town": ["North", " north", "south"],
}
DAYS = {
    "born": [date(2024, 2, 1), date(1925, 2, 1), date(2000, 2, 29)],
    "seen": [date(2024, 5, 1), date(2024, 5, 2), date(2024, 5, 3)],
    "asked": [date(2023, 4, 1), date(1985, 1, 2), None],
    "town": ["north", "north", "south"],
}
DECLARED = {
    "version": 1,
    "columns": {
        **{name: {"role": "other", "kind": "date", **({"date_format": form} if form else {})}
           for name, form in FORMS.items()},
        "town": {"role": "other", "kind": "nominal", "categories": ["north", "south"],
                 "recode": {"North": "north", " north": "north"}},
    },
    "protect": {"method": "mdav", "k": 2},
}  # fmt: skip
WRITE = {
    "people.csv": lambda frame, path: frame.write_csv(path),
    "people.xlsx": lambda frame, path: io.write(frame, path, labels={}),
    "people.parquet": lambda frame, path: frame.write_parquet(path),
    "people.arrow": lambda frame, path: frame.write_ipc(path),
    "people.sav": lambda frame, path: io.write(frame, path, labels={}),
    "people.dta": lambda frame, path: io.write(frame, path, labels={}),
    "polars": lambda frame, _: frame,
    "pandas": lambda frame, _: frame.to_pandas(),
    "pyarrow": lambda frame, _: frame.to_arrow(),
}


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("kind", WRITE)
def test_declared_dates_and_spellings_are_read_alike_by_every_reader(tmp_path, kind, alone):
    frame, path = pl.DataFrame(CELLS), tmp_path / kind
    made = WRITE[kind](frame, path)
    raw = io.read(path if "." in kind else made, alone=alone)
    schema = policies.load(DECLARED).schema

    for name in CELLS:
        values = raw.frame[name]
        if not alone:  # a year beyond its era is refused where nothing is silent
            values = values.set(values == "昭和65年1月1日", None)
        column = Schema((schema[name],))
        table = read_original(values.to_frame(), column, decimal=None, silent=alone)
        read = table.frame[name]
        assert (read if name == "town" else read.cast(pl.Date)).to_list() == DAYS[name], name
