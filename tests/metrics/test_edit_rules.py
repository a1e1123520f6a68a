"""Edit rules: what is read, what is refused, and what is counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.metrics import edit_rules

NAMES = ["tax", "income", "age", "net pay", "status", "a", "b", "total"]
TABLE = {
    "tax": np.array([10.0, 30.0, np.nan, 5.0]),
    "income": np.array([20.0, 20.0, 20.0, np.nan]),
    "age": np.array([14, 40, 15, 90]),
    "net pay": np.array([1.0, 2.0, 3.0, 4.0]),
    "status": np.array(["single", "widowed", None, "widowed"], dtype=object),
    "a": np.array([0.1, 1, 1, 0]),
    "b": np.array([0.2, 1, 1, 0]),
    "total": np.array([0.3, 2, 3, 0]),
}


@pytest.mark.parametrize(
    ("text", "applicable", "violations"),
    [
        ("tax <= income", 2, 1),
        ("age >= 15", 4, 1),
        ("15 <= age < 90", 4, 2),
        ("a + b == total", 4, 1),
        ("a + b != total", 4, 3),
        ("0.5 * `net pay` < 2", 4, 1),
        ("'net pay' - 1 > 0", 4, 1),
        ("a / b <= 0.5", 3, 2),
        ("-age < -(14)", 4, 1),
        ('status == "widowed"', 3, 1),
        ("status != 'widowed' or age >= 50", 3, 1),
        ("not a == 1 and (age > 14 or tax > 0)", 3, 1),
        ("not a or age >= 40", 4, 2),
        ("tax < 30 and income == 20", 2, 1),
    ],
)
def test_violations_are_those_counted_by_hand(text, applicable, violations):
    found = edit_rules.count(edit_rules.parse(text, NAMES), TABLE)

    assert found == (text, applicable, violations)
    assert found.share == violations / applicable


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=20),
    st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]),
    st.sampled_from(["+", "-", "*"]),
)
def test_rules_are_those_of_python_on_whole_numbers(rows, comparison, operation):
    x, y = (np.array([row[i] for row in rows], dtype=float) for i in range(2))
    text = f"x {operation} 3 {comparison} y"
    broken = sum(not eval(text, {}, {"x": a, "y": b}) for a, b in rows)  # noqa: S307  # the twin

    found = edit_rules.count(edit_rules.parse(text, ["x", "y"]), {"x": x, "y": y})

    assert found[1:] == (len(rows), broken)


def test_a_division_by_zero_is_not_applicable():
    found = edit_rules.count(
        edit_rules.parse("1 / x > 0", ["x"]), {"x": np.array([0.0, 1.0, -1.0])}
    )

    assert found[1:] == (2, 1)


def test_empty_and_all_missing_columns_have_no_applicable_row():
    rule = edit_rules.parse("x > 0", ["x"])

    for column in (np.zeros(0), np.full(3, np.nan), np.array([None, None], dtype=object)):
        assert edit_rules.count(rule, {"x": column})[1:] == (0, 0)
    assert edit_rules.count(rule, {"x": np.zeros(0)}).share == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tax <= incme", "no column named 'incme'. Did you mean 'income'?"),
        ("tax <= `net pya`", "no column named 'net pya'. Did you mean 'net pay'?"),
        ("a + b = total", "Write == for equality"),
        ("a + b", "compares nothing"),
        ("1 < 2", "names no column"),
        ("", "1 to 500 characters"),
        ("a" * 501, "1 to 500 characters"),
        ("a <", "cannot be read"),
        ("(" * 400, "cannot be read"),
        ("a < " + "-" * 450 + "1", None),
        ("a ** 2 < 3", "not allowed"),
        ("a // 2 < 3", "not allowed"),
        ("open('x') == a", "not allowed"),
        ("a.real == 1", "not allowed"),
        ("a[0] == 1", "not allowed"),
        ("(lambda: a)() == 1", "not allowed"),
        ("a in (1, 2)", "not allowed"),
        ("a is b", "an unknown comparison"),
        ("a < True", "not allowed"),
        ("a + 'x' > 2", "computes with a text"),
        ("a == 3 == 'x'", "only == and !="),
        ("not 3 < a or 3", "compares nothing"),
        ("a < 1e999", "too large"),
        ("a < " + "9" * 400, "too large"),
        ("a < 1j", "not allowed"),
        ("a < (b < 2)", "mixes conditions"),
        ("(a < 1) + 2 > 1", "mixes conditions"),
        ("status < 'x'", "only == and !="),
        ("f'{a}' == 'x'", "not allowed"),
        ("a := 2", "cannot be read"),
        ("a <= total\x00", "cannot be read"),
    ],
)
def test_what_is_no_rule_is_refused(text, message):
    if message is None:
        edit_rules.count(edit_rules.parse(text, NAMES), TABLE)
        return
    with pytest.raises(InputError) as error:
        edit_rules.parse(text, NAMES)
    assert message in str(error.value)


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text):
    try:
        rule = edit_rules.parse(text, ["a", "b"])
    except InputError:
        return
    assert rule.columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("status == a", "compares a number with a text"),
        ("status < a", "compares a number with a text"),
        ("status + 1 > 2", "computes with a column of texts"),
    ],
)
def test_texts_where_numbers_are_meant_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        edit_rules.count(edit_rules.parse(text, NAMES), TABLE)


def test_columns_of_different_length_are_refused():
    with pytest.raises(InputError, match="differ in length"):
        edit_rules.count(edit_rules.parse("a < b", NAMES), {"a": np.zeros(2), "b": np.zeros(3)})
