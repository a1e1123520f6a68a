"""Numbers cut into labelled classes: a function of each cell, in every reader and on the page."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.core import Column, Kind, Role
from shoal.errors import InputError
from shoal.io.cells import recode_text
from shoal.policy.load import load
from shoal.publish.verify_folder import verify
from shoal.studio.pages import fields

POLICY = """
version = 1
one_row_per_person = true
[columns]
age = { role = "quasi-identifier", kind = "ordinal", breaks = [18, 65], categories = ["child", "adult", "senior"] }
income = { role = "confidential", kind = "numeric" }
[protect]
method = "local-suppression"
k = 3
[require]
k-anonymity = 3
"""  # noqa: E501 (a line for each column)
COLUMN = load({
    "version": 1, "protect": {"method": "mdav", "k": 2},
    "columns": {"age": {"role": "quasi-identifier", "kind": "ordinal", "breaks": [18, 65],
                        "categories": ["child", "adult", "senior"]}},
}).schema["age"]  # fmt: skip


def slowly(text):
    """The class of one cell."""
    try:
        number = float(text.strip())
    except ValueError:
        return text
    if number != number:  # noqa: PLR0124 (not a number)
        return text
    return "child" if number < 18 else "adult" if number < 65 else "senior"


NUMBERS = st.one_of(st.integers(-5, 120).map(str), st.floats(-1e9, 1e9).map(repr))
CELLS = st.one_of(NUMBERS, st.sampled_from(["", "adult", "18", "64.999", "65", " 17 ", "nan", "?"]))


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_a_cell_becomes_its_class_whatever_stands_beside_it(cells):
    text = pl.Series("age", cells)

    cut = recode_text(text, COLUMN)

    assert cut.to_list() == [slowly(cell) for cell in cells]
    alone = [recode_text(pl.Series("age", [cell]), COLUMN)[0] for cell in cells]
    assert cut.to_list() == alone
    assert recode_text(cut, COLUMN).equals(cut)


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.String])
def test_a_release_has_the_classes_and_verifies(dtype, tmp_path):
    ages = [3, 17, 18, 40, 64, 65, 90, 12, 33, 77] * 3
    table = pl.DataFrame({"age": pl.Series(ages).cast(dtype), "income": range(30)})

    release = shoal.protect(table, POLICY, keep_order=True)

    assert release.data["age"].to_list() == [slowly(str(age)) for age in ages]
    assert verify(release.write(tmp_path / "out", file_format="csv")).holds


def test_under_an_epsilon_a_cell_that_is_no_number_and_no_class_is_unlisted():
    policy = POLICY.partition("[require]")[0].replace(
        '"local-suppression"\nk = 3', '"pram"\nk = 2\nepsilon = 5'
    )
    policy = policy.replace("breaks", 'other = "adult", missing_as = "senior", breaks')
    policy = policy.replace('"quasi-identifier"', '"confidential"', 1).replace(
        'income = { role = "confidential", kind = "numeric"',
        'income = { role = "quasi-identifier", kind = "numeric", bounds = [0, 30]',
    )
    table = pl.DataFrame({"age": ["3", "x", "70", "", *["20"] * 26], "income": range(30)})

    release = shoal.protect(table, policy)

    assert set(release.data["age"]) <= {"child", "adult", "senior"}


@pytest.mark.parametrize("stated", [
    'breaks = [65, 18], categories = ["a", "b", "c"]',
    'breaks = [18, 18], categories = ["a", "b", "c"]',
    'breaks = [18], categories = ["a", "b", "c"]',
    'breaks = [18, 65], categories = ["1", "2", "3"]',
])  # fmt: skip
def test_breaks_that_do_not_rise_or_do_not_fit_the_categories_are_refused(stated):
    named = 'breaks = [18, 65], categories = ["child", "adult", "senior"]'

    with pytest.raises(InputError, match="expected 'breaks' that rise, and one category more"):
        shoal.load_policy(POLICY.replace(named, stated))


def test_breaks_are_for_ordinal_columns():
    with pytest.raises(InputError, match="expected 'breaks' only on a ordinal column, found it on"):
        shoal.load_policy(POLICY.replace('"ordinal"', '"nominal"'))


def test_breaks_are_read_and_written_by_the_page():
    stated = {"role": "quasi-identifier", "kind": "ordinal", "breaks": [18, 65],
              "categories": ["child", "adult", "senior"]}  # fmt: skip
    form = fields.as_form(stated)

    assert form["breaks"] == "[18, 65]"
    assert fields.read_column(form, {}) == stated
    assert fields.read_column({**form, "breaks": "18, 65"}, {}) == stated
    assert Column("a", Role.OTHER, Kind.ORDINAL, breaks=COLUMN.breaks).recoded
