"""Between the file and the table every record is read by itself, in every reader and door."""

from pathlib import Path

import pytest
from tests import readers

from shoal import io
from shoal.errors import InputError
from shoal.io import excel_files, files

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
