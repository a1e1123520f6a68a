"""The method of a draft: columns recoded alike and few blanks where that will do, else groups."""

from decimal import Decimal

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import policy
from shoal.core import Kind, Role
from shoal.io import from_native
from shoal.policy import choose_method, draft
from shoal.policy.column_values import all_values
from shoal.policy.recognise import recognise


def people(rows=3000, columns=()):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({
        "age": rng.integers(18, 88, rows),
        "sex": rng.choice(["f", "m"], rows),
        "postcode": [f"{a}{b}0{c}1" for a, b, c in rng.integers(1, 4, (rows, 3))],
        "income": np.exp(rng.normal(10, 0.4, rows)).round(),
    })  # fmt: skip
    more = {name: rng.choice(list("abcdefgh"), rows) for name in columns}
    return frame.with_columns(**{name: pl.Series(cells) for name, cells in more.items()})


def lines_of(drafted):
    return drafted.text.partition("[protect]")[2].splitlines()


def test_columns_are_recoded_alike_and_few_cells_are_blank():
    table = people()
    drafted = shoal.draft(table)

    released = shoal.protect(table, drafted, keep_order=True).data

    assert policy.loads(drafted.text).method == "local-suppression"
    assert "rounded to multiples of" in drafted.guesses["age"].reason
    assert released["age"].dtype.is_numeric()
    step = int(drafted.guesses["age"].coding["step"])
    kept = released["age"].is_not_null()
    assert (released["age"].filter(kept) % step == 0).all()
    assert ((released["age"] - table["age"]).abs().filter(kept) <= step / 2).all()
    blank = released.select("age", "sex", "postcode").null_count().sum_horizontal()[0]
    assert blank <= choose_method.MOST_BLANK * 3 * table.height


def test_what_the_draft_says_of_blanks_is_what_a_run_blanks():
    table = people(1200, ["region"])
    drafted = shoal.draft(table)
    said = next(line for line in lines_of(drafted) if line.startswith("method"))

    released = shoal.protect(table, drafted).data.drop("income")

    share = released.null_count().sum_horizontal()[0] / (released.width * released.height)
    assert f"about {share:.0%} of the cells are left blank" in said


def test_where_most_cells_would_be_blank_values_are_joined():
    many = [f"region_{i}" for i in range(6)]

    assert policy.loads(shoal.draft(people(600, many)).text).method == "mondrian"
    assert policy.loads(shoal.draft(people(600, [*many, "job", "town"])).text).method == "mondrian"


def test_no_column_is_mostly_blank_and_the_release_is_not_refused():
    rng = np.random.default_rng(5)
    table = pl.DataFrame({
        "born": [f"{1945 + y}/03/17" for y in rng.integers(0, 76, 1000)],
        "sex": rng.choice(["f", "m"], 1000), "town": rng.choice(["Ayr", "Ely", "Rye", "Wem"], 1000),
        "seen": [f"2023/{m:02}/17" for m in rng.integers(1, 13, 1000)],
    })  # fmt: skip

    released = shoal.protect(table, shoal.draft(table)).data

    assert max(released.null_count().row(0)) <= 0.5 * table.height


def test_numbers_alone_are_averaged_and_kept_columns_are_not_recoded():
    numbers = people().select("age", "income")

    assert policy.loads(shoal.draft(numbers).text).method == "mdav"
    assert "step" not in shoal.draft(people(), keep=["age"]).guesses["age"].coding


@given(st.lists(st.integers(10_000, 99_999), min_size=30, max_size=60), st.sampled_from([6, 12]))
@settings(max_examples=40)
def test_a_coarser_level_joins_values_and_never_splits_them(codes, size):
    raw = from_native(pl.DataFrame({"postcode": [f"{code:05}" for code in codes]}))
    values = all_values(raw)["postcode"]
    made = recognise(raw, values={"postcode": values}, roles={"postcode": Role.QUASI_IDENTIFIER})
    guess = made["postcode"]

    levels = [level.cells for level in choose_method._levels(values, guess)]

    counts = [cells.n_unique() for cells in levels]
    assert counts == sorted(counts, reverse=True)
    if guess.kind is Kind.NOMINAL and levels:
        coarse = choose_method._recode(values, guess, size).cells
        assert coarse.n_unique() <= max(size, counts[-1])


@settings(max_examples=20)
@given(places=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
def test_means_of_a_drafted_release_have_as_many_decimals_as_their_columns(places, seed):
    rng = np.random.default_rng(seed)
    units = rng.integers(-(10**5), 10**5, 60)
    units[0] = 10 * (units[0] // 10) + 1  # the last decimal is used
    frame = pl.DataFrame({"height": units / 10**places, "age": rng.integers(18, 80, 60)})

    text = str(draft.draft(from_native(frame), source="people.csv"))
    text = text.replace('role = "confidential"', 'role = "quasi-identifier"')
    release = shoal.protect(frame, policy.loads(text))

    assert f"step = {Decimal(1).scaleb(-places)} " in text
    assert not release.data["age"].dtype.is_float()
    scaled = release.data["height"] * 10.0**places
    assert (scaled - scaled.round()).abs().max() < 1e-6


def test_means_of_dates_in_months_are_months_and_of_whole_numbers_whole():
    rng = np.random.default_rng(3)
    days = pl.Series(rng.integers(19000, 19700, 300)).cast(pl.Int32).cast(pl.Date)
    for column in (days, days.cast(pl.Datetime("us"))):
        table = pl.DataFrame({"seen": column, "hours": rng.integers(5, 45, 300)})

        drafted = shoal.draft(table)
        released = shoal.protect(table, drafted).data

        assert 'method = "mdav"' in drafted.text
        assert set(released["seen"].dt.day()) == {1}
        assert released["seen"].dt.month().n_unique() > 6
        assert abs((released["seen"].mean() - column.dt.truncate("1mo").mean()).days) < 8
        only = shoal.protect(table.select("seen"), shoal.draft(table.select("seen"))).data
        assert set(only["seen"].dt.day()) == {1}
