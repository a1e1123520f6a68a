"""What unknown columns are taken for: files with a known answer, and rules for any file."""

from functools import reduce

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import DATA
from tests.policy import blind_files, first_files, odd_files, read_files
from tests.policy.first_files import Score, judged

from shoal import io, policy
from shoal.core import Kind, Role
from shoal.io import Raw, from_native
from shoal.io.dates import read_days
from shoal.policy.column_values import order, words
from shoal.policy.draft import draft
from shoal.policy.recognise import NO_NAMES, meanings, recognise

FILES = first_files.FILES | blind_files.FILES | odd_files.FILES | read_files.FILES


def scored(file, folder):
    """Write a file, draft its policy, and score that."""
    path = folder / "people"
    answers = first_files.write(file, path)
    made = draft(io.read(path.with_suffix(file.suffix)), source="people")
    return judged(answers, policy.loads(made.text).schema)


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    return {name: scored(file, tmp_path_factory.mktemp("file")) for name, file in FILES.items()}


@pytest.mark.parametrize("name", FILES)
def test_no_protected_cell_would_be_published_and_no_code_averaged(name, scores):
    score = scores[name]

    assert score.share("not published") == 1, score.wrong
    assert score.share("not averaged") == 1, score.wrong


def test_most_of_the_guesses_are_right(scores):
    total = reduce(Score.__add__, scores.values())

    assert len(scores) >= 30
    shares = {what: total.share(what) for what in total.asked}
    least = {
        "role": 0.97,
        "not needless": 0.97,
        "kind": 0.97,
        "missing": 0.97,
        "date": 0.99,
        "unit": 0.7,
    }
    assert all(share >= least.get(what, 1) for what, share in shares.items()), total.wrong


@pytest.mark.data
@pytest.mark.parametrize("name", first_files.REFERENCE)
def test_the_reference_tables_are_recognised(name):
    if not (DATA / f"{name}.csv").exists():
        pytest.skip(f"needs the reference table {name}.csv in SHOAL_DATA")
    made = draft(io.read(DATA / f"{name}.csv"), source=name)

    score = judged(first_files.REFERENCE[name], policy.loads(made.text).schema)

    assert not score.wrong


def guess(name="x", values=(), **more):
    return recognise(Raw(pl.DataFrame({name: values}, strict=False), **more))[name]


# Rules


@given(
    st.sampled_from(["x", "count", "income", "age", "value", "Kosten"]),
    st.lists(st.integers(0, 99_999), min_size=30, max_size=60),
)
@settings(max_examples=60)
def test_what_has_leading_zeros_is_never_a_number(name, numbers):
    codes = ["00123", *(f"{number:05d}" for number in numbers)]

    assert guess(name, codes).kind is not Kind.NUMERIC


@given(st.lists(st.text(min_size=1), min_size=1, max_size=40), st.text(max_size=12))
@settings(max_examples=100)
def test_any_column_gets_a_guess_that_protects_it_or_says_why_not(cells, name):
    made = guess(name, cells)

    assert made.reason
    if made.role is Role.OTHER:
        assert "same value" in made.reason or "part of the survey" in made.reason


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("17.09.2023", "%d.%m.%Y"), ("09/17/2023", "%m/%d/%Y"), ("17/09/2023", "%d/%m/%Y"),
        ("17-09-2023", "%d-%m-%Y"), ("20230917", "%Y%m%d"), ("17Sep2023", "%d%b%Y"),
        ("17 Sep 2023", "%d %b %Y"), ("17.09.23", "%d.%m.%y"), ("2023/09/17", "%Y/%m/%d"),
        ("17.09.2023 14:05", "%d.%m.%Y %H:%M"), ("2023-09-17", None),
    ],
)  # fmt: skip
def test_dates_are_read_in_the_form_of_the_file(text, form):
    made = guess("x", [text] * 30)

    assert (made.kind, made.date_format, made.question) == (Kind.DATE, form, "")


def test_a_date_that_can_be_read_in_two_ways_is_asked_about():
    made = guess("x", ["03/04/2023", "05/06/2022"] * 20)

    assert made.question == "Every date fits dd/mm/yyyy and mm/dd/yyyy. Which one is it?"


def test_another_column_of_the_file_tells_how_dates_are_written():
    frame = pl.DataFrame({"x": ["03/04/2023"] * 20, "y": ["12/31/2022"] * 20})

    made = recognise(Raw(frame))

    assert made["x"].date_format == "%m/%d/%Y"
    assert not made["x"].question


@pytest.mark.parametrize("mark", ["NA", ".", "n/a", "-99", "999", "#N/A", "k.A.", " "])
def test_a_mark_for_missing_is_not_a_value(mark):
    made = guess("score", [mark, *map(str, range(60))] * 3)

    assert made.kind is Kind.NUMERIC
    assert made.missing == (mark,)


def test_numbers_that_only_look_like_marks_stay():
    assert guess("income", [99, 150, 999, 1200, 5000] * 20).missing == ()
    assert guess("change", [-99, -50, 0, 17] * 20).missing == ()
    assert guess("country", ["NA", "DE", "FR", "IT"] * 20).missing == ()


def test_a_body_weight_is_not_a_sampling_weight():
    weights = [50 + i % 40 for i in range(100)]
    alone = recognise(Raw(pl.DataFrame({"weight": weights})))
    beside = recognise(Raw(pl.DataFrame({"weight": weights, "height": [170, 180] * 50})))

    assert alone["weight"].role is Role.IDENTIFIER
    assert beside["weight"].role is Role.QUASI_IDENTIFIER


def test_numbers_of_persons_that_repeat_are_proposed_as_the_privacy_unit():
    made = guess("customer_id", [1000 + i % 669 for i in range(20_000)])

    assert made.flags == ("privacy_unit",)
    assert made.reason == "the column numbers persons: 669 of them in 20,000 rows"


def test_a_copy_of_a_column_is_as_strict_as_the_column():
    frame = pl.DataFrame(
        {"district": ["a", "b", "c", "d"] * 20, "score": ["1", "2", "3", "4"] * 20}
    )

    made = recognise(Raw(frame))

    assert made["score"].role is Role.QUASI_IDENTIFIER
    assert "each value goes with one of 'district'" in made["score"].reason


@pytest.mark.parametrize("word", [
    word
    for key, listed in words().items()
    if key not in NO_NAMES
    for word in listed.split()
    if not word.isascii() and word.isalpha()
])  # fmt: skip
def test_every_word_of_another_script_is_known_in_a_name(word):
    lists = {key for key, listed in words().items() if word in listed.split()}

    assert meanings(f"x {word} 2") & lists


def test_a_sum_is_named():
    frame = pl.DataFrame(
        {"a": [i * 0.37 for i in range(50)], "b": [0.5 * i * i for i in range(50)]}
    )
    frame = frame.with_columns(total=pl.col("a") + pl.col("b"))

    assert recognise(Raw(frame))["total"].reason.count("; the sum of a and b") == 1


@pytest.mark.parametrize("written", ["thousands", "missing"])
def test_a_sum_is_named_however_its_numbers_are_written(written):
    pay, rent = ([round(37.5 * i**p + 1000, 2) for i in range(60)] for p in (1, 1.5))
    total = [a + b for a, b in zip(pay, rent, strict=True)]
    if written == "thousands":  # 1.037,50
        turn = str.maketrans(",.", ".,")
        pay, rent, total = ([f"{x:,.2f}".translate(turn) for x in c] for c in (pay, rent, total))
    else:
        pay[50:] = [9999999] * 10
    frame = pl.DataFrame({"pay": pay, "rent": rent, "total": total}, strict=False)

    assert "; the sum of pay and rent" in recognise(Raw(frame))["total"].reason


def test_an_ordered_category_of_pandas_is_an_ordinal():
    values = pd.Categorical(["mid", "low", "top"] * 10, ["low", "mid", "top"], ordered=True)

    made = recognise(from_native(pd.DataFrame({"x": values})))["x"]

    assert (made.kind, made.categories) == (Kind.ORDINAL, ("low", "mid", "top"))


def test_labels_and_measurement_levels_of_the_file_decide():
    numbers = [1, 2, 3, 4, 9] * 20
    labels = {"x": {"1": "a", "2": "b", "3": "c", "4": "d", "9": "no answer"}}

    labelled = guess("x", numbers, labels=labels)
    scale = guess("x", numbers, measures={"x": "scale"})
    ordinal = guess("x", numbers, measures={"x": "ordinal"})

    assert (labelled.kind, labelled.missing) == (Kind.NOMINAL, ("9",))
    assert scale.kind is Kind.NUMERIC
    assert (ordinal.kind, ordinal.categories) == (Kind.ORDINAL, ("1", "2", "3", "4", "9"))


def test_words_and_ranges_have_an_order():
    assert order(["nie", "oft", "immer"]) == ("nie", "oft", "immer")
    assert order(["a", "b", "c"]) is None
    assert order(["1", "2", "3"]) is None
    assert order(["05-2019", "06-2019"]) is None


def test_a_large_table_is_grouped_within_blocks():
    frame = pl.DataFrame({"age": [i % 90 for i in range(100_000)]})

    assert 'blocks = "median"' in draft(Raw(frame), source="x").text
    assert "blocks" not in draft(Raw(frame.head(1000)), source="x").text


# What was found by reading drafted releases


def test_a_title_that_nobody_listed_makes_a_name():
    clergy = ["Rev. Tamsin Opie", "Rev. Silas Rowse", "MUDr. Radek Hájek", "Hon. Abdi Quispe"]

    assert guess("x", clergy * 20).role is Role.IDENTIFIER
    assert guess("x", ["Dept. of Health", "St. Ives", "Inc. Tax", "Mt. Isa"] * 20).role is not (
        Role.IDENTIFIER
    )


def test_words_that_stand_in_the_names_of_the_same_row_are_dropped():
    first = [f"{a}{b}" for a in ("Tamsin", "Oyela", "Xio") for b in ("", "ra", "mi")] * 20
    frame = pl.DataFrame({"a": [f"{word} Smith" for word in first], "b": ["x", "y", "z"] * 60})

    made = recognise(Raw(frame.with_columns(c=pl.Series(first))))

    assert [made[name].role for name in "abc"] == [
        Role.IDENTIFIER, Role.QUASI_IDENTIFIER, Role.IDENTIFIER,
    ]  # fmt: skip


def test_single_words_beside_family_names_are_dropped_and_far_from_them_are_not():
    words = [f"{a}{b}" for a in ("Elif", "Oguz", "Sule") for b in ("", "ra", "mi", "na")] * 20
    frame = pl.DataFrame(
        {"x": words, "soyad": [f"Yil{i}" for i in range(240)], "y": [1, 2] * 120, "z": words[::-1]}
    )

    made = recognise(Raw(frame))

    assert made["x"].role is Role.IDENTIFIER
    assert made["z"].role is Role.QUASI_IDENTIFIER


@pytest.mark.parametrize(("first", "last"), [(1932, 1961), (1938, 2015), (2019, 2040)])
def test_two_digits_of_a_year_mean_the_last_span_that_has_begun(first, last):
    texts = [f"17.09.{year % 100:02d}" for year in range(first, last + 1)] * 5

    made = guess("x", texts)

    days = read_days(pl.Series(texts), made.date_format)
    assert (days.dt.year().min(), days.dt.year().max()) == (first, last)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("17. 09. 2023", "%d. %m. %Y"), ("17FEB85", "%d%b%y"),
        ("20230917101500", "%Y%m%d%H%M%S"), ("12 Mar 1781", "%d %b %Y"),
    ],
)  # fmt: skip
def test_dates_of_registers_and_logs_are_read(text, form):
    made = guess("x", [text] * 30)

    assert (made.kind, made.date_format) == (Kind.DATE, form)


def test_nine_behind_a_gap_is_no_answer_and_the_end_of_a_tail_is_one():
    answers = [*[1, 2, 3, 4, 5, 6, 7] * 20, 9, 9, 9]
    rooms = [*[1] * 20, *[2] * 40, *[3] * 60, *[4] * 40, *[5] * 20, *[6] * 8, *[7] * 2, 9]

    assert guess("x", answers).missing == ("9",)
    assert guess("rooms", rooms).missing == ()


def test_whole_numbers_from_0_on_have_an_order_and_codes_from_1_on_do_not():
    absences = np.random.default_rng(1).integers(0, 21, 630).tolist()

    assert guess("x", absences).kind is Kind.ORDINAL
    assert guess("x", [i + 1 for i in absences]).kind is Kind.NOMINAL


def test_whole_numbers_below_a_limit_are_measured():
    ferritin = [*["<5"] * 90, *(str(5 + (i * i) % 113) for i in range(1200))]

    made = guess("x", ferritin)

    assert made.kind is Kind.NUMERIC
    assert made.coding["bottom_code"] == "5"


def test_numbers_too_long_for_amounts_are_dropped_whatever_their_length():
    called = [f"49{area}{3_000_017 + 7919 * i}" for i in range(200) for area in ("30", "151")]

    assert guess("x", called).role is Role.IDENTIFIER


def test_a_customer_with_one_telephone_and_two_more_constants_numbers_the_persons():
    who = [i % 120 for i in range(360)]
    frame = pl.DataFrame(
        {
            "a": [f"K{4000 + 7 * w}" for w in who],
            "b": [f"+4930{5_550_000 + 31 * w}" for w in who],
            "c": [("18-29", "30-44", "60+")[w % 3] for w in who],
            "d": ["AB"[w % 2] for w in who],
            "e": [("billing", "sales", "other")[i * i % 7 % 3] for i in range(360)],
        }
    )

    assert recognise(Raw(frame))["a"].flags == ("privacy_unit",)
