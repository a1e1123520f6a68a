"""Records that keep constraints: whether one exists, and the nearest, against enumeration."""

from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.core import Column, Kind, Role, Schema
from shoal.core.allowed_records import ConstraintSet, unusable
from shoal.core.constraint_language import parse
from shoal.errors import InputError


def number(name, low=0, high=4, step=1):
    bounds = (Decimal(low), Decimal(high))
    stated = None if step is None else Decimal(step)
    return Column(name, Role.OTHER, Kind.NUMERIC, bounds, step=stated)


def nominal(name, *categories):
    return Column(name, Role.OTHER, Kind.NOMINAL, categories=categories)


SCHEMA = Schema((number("x"), number("y"), nominal("c", "u", "v", "w"), nominal("d", "p", "q")))
DOMAIN = {"x": range(5), "y": range(5), "c": ["u", "v", "w"], "d": ["p", "q"]}
ATOMS = [
    "x < 2", "x >= 3", "x = 1", "y <= 1", "y > 2", "c = 'u'", "c != 'v'", "c in {'v', 'w'}",
    "d = 'p'", "x <= y", "x + 1 < y", "x = y", "x + y <= 5", "2 * x >= y", "d is not 'p'",
]  # fmt: skip
RULES = st.lists(
    st.one_of(
        st.sampled_from(ATOMS),
        st.tuples(st.sampled_from(ATOMS), st.sampled_from(["implies", "or", "and"]),
                  st.sampled_from(ATOMS)).map(" ".join),
        st.sampled_from(ATOMS).map(lambda atom: f"not ({atom})"),
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip
ALL = list(product(*DOMAIN.values()))


def columns(rows):
    cells = dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True))
    return {n: np.array(c, dtype=object if n in "cd" else float) for n, c in cells.items()}


def parsed(texts, schema=SCHEMA):
    rules = tuple(parse(text, schema) for text in texts)
    return ConstraintSet(rules, schema)


@settings(deadline=None, max_examples=20)
@given(RULES)
def test_the_nearest_record_is_allowed_and_changes_the_fewest_columns(texts):
    chosen = parsed(texts)
    assume(not unusable(chosen.constraints))
    table = columns(ALL)
    kept = np.logical_and.reduce([rule.holds(table) for rule in chosen.constraints])
    if not kept.any():
        assert chosen.contradiction().startswith("No record")
        return
    assert chosen.contradiction() == ""
    made, changed = chosen.nearest({name: table[name] for name in chosen.columns})

    assert (changed == ~kept).all()
    made = {**table, **made}
    assert all(rule.holds(made).all() for rule in chosen.constraints)
    assert all((made[name][kept] == table[name][kept]).all() for name in table)
    assert all(set(made[name]) <= set(DOMAIN[name]) for name in table)
    if not any(any(rule.relations()) for rule in chosen.constraints):
        moves = np.sum([made[name] != table[name] for name in table], axis=0)
        allowed = [row for row, keeps in zip(ALL, kept, strict=True) if keeps]
        fewest = [min(sum(a != b for a, b in zip(row, other, strict=True)) for other in allowed)
                  for row in ALL]  # fmt: skip
        assert moves.tolist() == fewest


@settings(deadline=None, max_examples=20)
@given(RULES, st.lists(st.sampled_from(ALL), min_size=1, max_size=5))
def test_a_record_s_result_depends_on_that_record_alone(texts, rows):
    chosen = parsed(texts)
    assume(not unusable(chosen.constraints))
    assume(not chosen.contradiction())
    together = chosen.nearest(columns(rows))[0]

    for place, row in enumerate(rows):
        alone = chosen.nearest(columns([row]))[0]
        assert all(alone[name][0] == together[name][place] for name in chosen.columns)


REAL = Schema(tuple(number(name, -100, 100, None) for name in ("a", "b", "total")))
LINEAR = ["a <= b", "total = a + b", "a >= 0", "b <= 40", "2 * a + b <= 60", "a + b + total >= 3"]
REALS = st.floats(-100, 100, allow_subnormal=False)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from(LINEAR), min_size=1, max_size=4, unique=True),
    st.tuples(REALS, REALS, REALS),
    st.lists(st.tuples(REALS, REALS), min_size=3, max_size=6),
)
def test_projection_does_not_raise_the_squared_error_of_records_that_keep_the_rules(
    texts, point, others
):
    chosen = parsed(texts, REAL)
    names = ("a", "b", "total")
    truth = chosen.nearest(
        {n: np.array([*v], dtype=float)
         for n, v in zip(names, zip(*[(a, b, a + b) for a, b in others], strict=True), strict=True)
         if n in chosen.columns}
    )[0]  # fmt: skip
    start = {n: np.array([v]) for n, v in zip(names, point, strict=True) if n in chosen.columns}
    made, _ = chosen.nearest(start)

    assert all(rule.holds(made).all() for rule in chosen.constraints)
    before = sum((truth[name] - start[name][0]) ** 2 for name in chosen.columns)
    after = sum((truth[name] - made[name][0]) ** 2 for name in chosen.columns)
    assert (after <= before + 1e-4).all()
    means = {name: np.array([truth[name].mean()]) for name in chosen.columns}
    assert all(rule.holds(means).all() for rule in chosen.constraints if rule.linear)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["x > 4"], "No record within the bounds and categories of its columns keeps 'x > 4'."),
        (["x < 1", "c = 'u'", "x > 2"], "keeps 'x < 1' and 'x > 2' together"),
        (["x + y >= 9"], "keeps 'x + y >= 9'"),
        (["x <= y", "y + 1 <= x"], "'x <= y' and 'y + 1 <= x'"),
        (["c = 'u' implies x <= y", "c = 'u'", "x > y"], "c = 'u' implies x <= y, c = 'u', x > y"),
        (["2 * x = 2 * y + 1"], "keeps '2 * x = 2 * y + 1'"),
    ],
)
def test_contradictions_name_the_rules(texts, message):
    assert message in parsed(texts).contradiction()


def test_missing_cells_stay_unless_a_rule_is_about_them():
    schema = Schema((number("age", 0, 99), number("income", 0, 99)))
    rule = (parse("age < 15 implies income is missing", schema),)
    table = {
        "age": np.array([10.0, 20.0, 10.0, np.nan]),
        "income": np.array([5.0, np.nan, np.nan, 7]),
    }

    made, changed = ConstraintSet(rule, schema, missing=frozenset({"income"})).nearest(table)
    assert changed.tolist() == [True, False, False, False]
    np.testing.assert_equal(made["income"], [np.nan, np.nan, np.nan, 7])
    made, _ = ConstraintSet(rule, schema).nearest(table)
    np.testing.assert_equal(made["age"], [15.0, 20.0, 10.0, np.nan])
    frozen, _ = ConstraintSet(rule, schema, frozen=frozenset({"age"})).nearest(table)
    np.testing.assert_equal(frozen["age"], table["age"])


def test_what_cannot_be_kept_or_listed_is_refused():
    assert "is not linear" in unusable([parse("x * y < 3", SCHEMA)])
    assert "numbers to differ" in unusable([parse("x != y", SCHEMA)])
    assert unusable([parse("c != 'u' or x <= y", SCHEMA)]) == ""
    many = Schema(tuple(nominal(f"n{i}", *map(str, range(9))) for i in range(9)))
    rules = [parse(f"n{i} in {{0, 1, 2, 3, 4, 5, 6, 7}} or n{i + 1} != 0", many) for i in range(8)]
    with pytest.raises(InputError, match="combinations of values"):
        ConstraintSet(tuple(rules), many).contradiction()


def test_a_frozen_column_keeps_its_values_whatever_rule_is_broken():
    """In a relation, in a condition, and where nothing else can be moved."""
    schema = Schema((number("x", 0, 99), number("y", 0, 99), nominal("c", "u", "v")))
    table = {
        "x": np.array([50.0, 10.0, 50.0]),
        "y": np.array([35.0, 20.0, 60.0]),
        "c": np.array(["u", "u", "v"], dtype=object),
    }
    rules = tuple(parse(text, schema) for text in ("x <= y", "c = 'v' implies x = 10"))

    made, changed = ConstraintSet(rules, schema, frozen=frozenset({"x"})).nearest(table)

    assert made["x"].tolist() == [50.0, 10.0, 50.0]
    assert made["y"].tolist() == [50.0, 20.0, 60.0]
    assert made["c"].tolist() == ["u", "u", "u"]
    assert changed.tolist() == [True, False, True]
    lost, _ = ConstraintSet(rules, schema, frozen=frozenset({"x", "y", "c"})).nearest(table)
    np.testing.assert_equal(lost, table)


def test_a_value_off_the_grid_is_moved_where_a_rule_compares_with_a_value():
    """Noise leaves no whole numbers: 0.4 hours are not 0."""
    schema = Schema((number("age", 0, 99), number("hours", 0, 80)))
    rule = (parse("age < 15 implies hours = 0", schema),)
    free = ConstraintSet(rule, schema, {"age": None, "hours": None})
    table = {"age": np.array([14.9, 15.2]), "hours": np.array([0.4, 0.4])}

    made, changed = free.nearest(table)

    assert changed.tolist() == [True, False]
    assert rule[0].holds(made).all()
    np.testing.assert_allclose(made["age"], [15.0, 15.2])  # the nearest, not any record
    np.testing.assert_array_equal(made["hours"], [0.4, 0.4])


def test_a_strict_order_is_kept_next_to_where_it_was_broken():
    schema = Schema((number("x", step=None), number("y", step=None)))
    rule = (parse("x < y", schema),)

    made, _ = ConstraintSet(rule, schema).nearest({"x": np.array([3.0]), "y": np.array([2.0])})

    assert made["x"][0] < made["y"][0]
    np.testing.assert_allclose([made["x"][0], made["y"][0]], 2.5, atol=1e-4)
