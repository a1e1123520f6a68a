"""Requirements beyond k on any table: from a policy to a check with its witness."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.core import KAnonymity, MissingMeaning
from shoal.engine import check_table
from shoal.engine.check_table import check_frame
from shoal.errors import ClaimViolationError, InputError
from shoal.policy import load
from shoal.report import terminal

RELEASED = pl.DataFrame(
    {
        "age": [30] * 4 + [50] * 4,
        "ill": ["flu", "flu", "gout", "none", "none", "none", "none", "none"],
        "pay": [1, 2, 3, 4, 5, 6, 7, 8],
    }
)


def policy(**require):
    return {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "ill": {"role": "confidential", "kind": "nominal"},
            "pay": {"role": "confidential", "kind": "numeric"},
        },
        "protect": {"method": "mdav", "k": 4},
        "require": {name.replace("_", "-"): value for name, value in require.items()},
    }


@pytest.mark.parametrize(
    ("require", "achieved", "holds"),
    [
        ({"l_diversity": {"l": 2, "column": "ill"}}, 1, False),
        ({"l_diversity": {"l": 1, "column": "ill"}}, 1, True),
        ({"l_diversity": {"l": 4, "column": "pay", "kind": "frequency"}}, 4, True),
        ({"t_closeness": {"t": 0.375, "column": "ill"}}, Fraction(3, 8), True),
        ({"t_closeness": {"t": 0.374, "column": "ill"}}, Fraction(3, 8), False),
        (
            {"t_closeness": {"t": 0.3, "column": "pay", "distance": "ordered"}},
            Fraction(2, 7),
            True,
        ),
        ({"l_diversity": {"l": 4, "column": ["ill", "pay"]}}, 4, True),
    ],
)
def test_diversity_and_closeness_are_recomputed_by_hand(require, achieved, holds):
    (check,) = shoal.check(RELEASED, policy(**require))

    assert check.achieved == achieved
    assert check.holds is holds
    assert len(check.witness["rows"]) == 4


def test_homogeneous_classes_are_counted_and_the_deciding_group_is_named():
    (check,) = shoal.check(RELEASED, policy(l_diversity={"l": 2, "column": "ill"}))

    assert check.remarks["homogeneous_classes"] == 1
    assert check.witness == {"size": 4, "rows": [5, 6, 7, 8]}


def test_a_list_of_requirements_gives_a_check_each():
    wanted = [{"l": 1, "column": "ill"}, {"l": 2, "column": "pay", "kind": "entropy"}]

    checks = shoal.check(RELEASED, policy(k_anonymity=4, l_diversity=wanted))

    assert [check.holds for check in checks] == [True, True, True]


def test_persons_are_counted_where_the_table_names_them():
    """Four rows of two persons are no class of four."""
    rules = policy(k_anonymity=2, l_diversity={"l": 2, "column": "ill"})
    rules["columns"]["person"] = {"role": "other", "privacy_unit": True}
    table = RELEASED.with_columns(person=pl.Series([1, 1, 2, 2, 3, 4, 5, 6]))

    k, diversity = shoal.check(table, rules)

    assert k.achieved == 2
    assert diversity.witness["size"] == 4


def test_a_requirement_that_the_method_does_not_steer_to_is_checked_and_stops():
    original = RELEASED.with_columns(age=pl.Series([30, 31, 32, 33, 50, 51, 52, 53]))

    met = shoal.protect(original, policy(l_diversity={"l": 1, "column": "ill"}))
    with pytest.raises(ClaimViolationError, match="does not keep: distinct 2-diversity of ill"):
        shoal.protect(original, policy(l_diversity={"l": 2, "column": "ill"}))

    assert met.checks[0].holds


@pytest.mark.parametrize(
    ("require", "sentence"),
    [
        ({"l_diversity": {"l": 2, "column": "age"}}, "expected a confidential column, found 'age'"),
        ({"l_diversity": {"l": 2, "column": "il"}}, "Did you mean 'ill'"),
        (
            {"l_diversity": {"l": 2, "column": "ill", "kind": "recursive"}},
            "expected the factor 'c'",
        ),
        ({"l_diversity": {"l": 2, "column": "ill", "kind": "many"}}, "expected one of distinct"),
        ({"t_closeness": {"t": 0.5, "column": "ill", "distance": "ratio"}}, "at least 1"),
        ({"t_closeness": {"column": "ill"}}, "expected a value for 't'"),
    ],
)
def test_a_wrong_requirement_is_told_in_a_sentence(require, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.load_policy(policy(**require))


def test_a_hierarchical_distance_needs_a_hierarchy(tmp_path):
    (tmp_path / "ill.csv").write_text("flu,acute,all\ngout,chronic,all\nnone,none at all,all\n")
    rules = policy(t_closeness={"t": 0.4, "column": "ill", "distance": "hierarchical"})

    with pytest.raises(InputError, match="needs one column with a hierarchy"):
        shoal.check(RELEASED, rules)

    rules["columns"]["ill"]["hierarchy"] = str(tmp_path / "ill.csv")
    (check,) = shoal.check(RELEASED, rules)
    assert check.achieved == Fraction(3, 8)


@given(st.lists(st.tuples(st.integers(0, 2), st.none() | st.sampled_from("abc")), min_size=1))
def test_distinct_diversity_equals_a_naive_count_missing_being_a_value(rows):
    table = pl.DataFrame(
        {"age": [a for a, _ in rows], "ill": [i for _, i in rows], "pay": [1] * len(rows)},
        schema={"age": pl.Int64, "ill": pl.String, "pay": pl.Int64},
    )

    (check,) = shoal.check(table, policy(l_diversity={"l": 1, "column": "ill"}))

    naive = min(len({i for b, i in rows if b == a}) for a, _ in rows)
    assert check.achieved == naive


CELL = st.none() | st.sampled_from("ab")


@given(
    st.lists(st.tuples(CELL, CELL, st.integers(0, 4)), min_size=1, max_size=15),
    st.sampled_from(MissingMeaning),
    st.booleans(),
)
@example([("a", None, 0), (None, None, 0)], MissingMeaning.OWN_VALUE, True)
@example([("a", None, i) for i in (0, 1)] * 3, MissingMeaning.MATCHES, True)
def test_both_k_of_missing_cells_are_counted_in_the_unit_that_the_check_states(
    rows, meaning, persons
):
    table = pl.DataFrame(
        rows, schema={"a": pl.String, "b": pl.String, "who": pl.Int64}, orient="row"
    )
    schema = load(policy()).schema
    units = table["who"].to_numpy() if persons else None

    check = check_frame(table, KAnonymity(2, ("a", "b"), meaning), schema, units=units)

    def least(alike):
        groups = ([other for other in rows if alike(row, other)] for row in rows)
        return min(len({who for *_, who in found}) if persons else len(found) for found in groups)

    own = least(lambda one, other: one[:2] == other[:2])
    loose = least(
        lambda one, other: all(
            None in pair or len(set(pair)) == 1 for pair in zip(one[:2], other[:2], strict=True)
        )
    )
    matches = meaning is MissingMeaning.MATCHES
    key = "k_if_missing_is_a_value" if matches else "k_if_missing_matches_anything"
    assert check.achieved == (loose if matches else own)
    assert check.remarks.get(key, own) == (own if matches else loose)
    assert check.remarks.get("counted") == ("persons" if persons else None)


def test_persons_are_not_matched_where_that_takes_too_long(monkeypatch):
    monkeypatch.setattr(check_table, "MOST_PERSON_MATCHES", 3)
    rules = policy(k_anonymity=2)
    rules["columns"]["person"] = {"role": "other", "privacy_unit": True}
    table = pl.DataFrame({"age": [1, None], "ill": ["flu"] * 2, "pay": [1] * 2, "person": [1, 1]})

    (check,) = shoal.check(table, rules)

    assert "k_if_missing_matches_anything" not in check.remarks
    assert check.remarks["patterns_of_missing_cells"] == 2


def test_many_patterns_of_missing_cells_do_not_stop_a_check():
    """Matching with wildcards is quadratic in the patterns; beyond a limit it is left out."""
    import numpy as np  # noqa: PLC0415

    rng = np.random.default_rng(1)
    cells = {f"c{i}": [v or None for v in rng.integers(0, 4, 3000)] for i in range(12)}
    rules = {
        "version": 1,
        "columns": {name: {"role": "quasi-identifier", "kind": "numeric"} for name in cells},
        "protect": {"method": "mdav", "k": 2},
    }

    (check,) = shoal.check(pl.DataFrame(cells), rules)

    assert "k_if_missing_matches_anything" not in check.remarks
    assert check.remarks["patterns_of_missing_cells"] > 500


# Tables of boxes.

BOXES = pl.DataFrame(
    {
        "age_lower": [0, 20, 40, 60],
        "age_upper": [20, 40, 60, 80],
        "ill=flu": [1, 0, 3, 0],
        "ill=gout": [1, 0, 3, 0],
        "ill=": [1, 0, 0, 4],
    }
)


def test_boxes_are_classes_and_empty_ones_are_none():
    wanted = policy(
        k_anonymity=3,
        l_diversity={"l": 2, "column": "ill"},
        t_closeness={"t": 0.5, "column": "ill"},
    )

    k, diversity, closeness = shoal.check(BOXES, wanted)

    assert (k.holds, k.achieved, k.remarks) == (True, 3, {"classes": 3})
    assert k.witness == {"size": 3, "rows": [1]}
    assert (diversity.holds, diversity.achieved) == (False, 1)
    assert diversity.witness == {"size": 4, "rows": [4]}
    assert diversity.remarks["homogeneous_classes"] == 1
    assert closeness.achieved == Fraction(8, 13)


def test_values_of_boxes_have_the_order_of_those_of_rows():
    """Pay has the order of its numbers, whatever the order of the columns that count it."""
    boxes = BOXES.select("age_lower", "age_upper").with_columns(
        pl.Series("pay=100", [1, 1, 1, 1]),
        pl.Series("pay=20", [2, 0, 0, 0]),
        pl.Series("pay=3", [0, 0, 0, 3]),
    )
    rows = pl.DataFrame(
        {
            "age": [0, 0, 0, 20, 40, 60, 60, 60, 60],
            "ill": ["flu"] * 9,
            "pay": [100, 20, 20, 100, 100, 100, 3, 3, 3],
        }
    )
    wanted = policy(t_closeness={"t": 0.5, "column": "pay", "distance": "ordered"})

    (by_boxes,), (by_rows,) = (shoal.check(table, wanted) for table in (boxes, rows))

    assert by_boxes.achieved == by_rows.achieved


@pytest.mark.parametrize(
    ("table", "require", "sentence"),
    [
        (BOXES, {"l_diversity": {"l": 2, "column": "pay"}}, "lacks the column 'pay'"),
        (BOXES * 0.5, {"k_anonymity": 2}, "negative or fractional counts: they are noisy"),
        (BOXES * -1, {"k_anonymity": 2}, "lower ends are below the upper ends"),
        (BOXES.with_columns(pl.lit(-1).alias("ill=")), {"k_anonymity": 2}, "they are noisy"),
        (BOXES.with_columns(pl.col("^ill=.*$") * 0), {"k_anonymity": 2}, "hold no records"),
        (BOXES.with_columns(x=1), {"k_anonymity": 2}, "a column 'count', or one for each"),
        (BOXES.head(0), {"k_anonymity": 2}, "a lower and an upper end for each box"),
    ],
)
def test_boxes_that_cannot_be_checked_are_told(table, require, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.check(table, policy(**require))


def test_texts_that_look_the_same_count_once():
    """Two ways to write an accent are neither two values nor two classes."""
    rules = policy(k_anonymity=2, l_diversity={"l": 2, "column": "ill"})
    for dtype in (pl.String, pl.Categorical):
        table = pl.DataFrame(
            {"age": ["caf\u00e9", "cafe\u0301"], "ill": ["\u00e9", "e\u0301"], "pay": [1, 2]},
            schema_overrides={"age": dtype, "ill": dtype},
        )

        k, diversity = shoal.check(table, rules)

        assert k.holds
        assert not diversity.holds


def test_a_check_says_that_it_counted_rows_where_the_persons_are_not_in_the_table():
    rules = policy(k_anonymity=2)
    rules["columns"]["person"] = {"role": "identifier", "privacy_unit": True}

    (check,) = shoal.check(RELEASED, rules)

    said = "rows; 'person', which numbers the persons, is not in the table"
    assert check.remarks["counted"] == said
    assert f"  unit that is counted: {said}" in terminal.checks_text([check]).splitlines()


def test_persons_are_counted_by_how_they_may_be_spelled():
    rules = policy(k_anonymity=2)
    rules["columns"]["person"] = {"role": "other", "privacy_unit": True}
    table = RELEASED.with_columns(person=pl.Series(["7", "07", " 7", "7.0", "a", "b", "c", "d"]))

    (check,) = shoal.check(table, rules)

    assert (check.achieved, check.holds) == (1, False)
    assert "  smallest group: 1 person, for example rows 1" in terminal.checks_text([check])
