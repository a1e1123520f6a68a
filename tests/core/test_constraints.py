"""Constraints: what is read, what is refused, and what they mean."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Column, Kind, Role, Schema
from shoal.core.constraint_language import parse
from shoal.core.constraints import AllOf, Atom, allow, cells
from shoal.errors import InputError

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
        ("`net pay` - 1 > 0", 4, 1),
        ("a / b <= 0.5", 3, 2),
        ("-age < -(14)", 4, 1),
        ('status == "widowed"', 3, 1),
        ("status != 'widowed' or age >= 50", 3, 1),
        # In the third row `tax` is missing, and the rule is false whatever it is.
        ("not a == 1 and (age > 14 or tax > 0)", 4, 2),
        ("a + b = total implies age is not missing and tax is missing", 4, 3),
        ("age in {14, 15} or a != 1", 4, 1),
        ('status is "widowed" implies age not in {40}', 4, 1),
        ("at most one of (a = 1, b = 1)", 4, 2),
        ("not (age > 14 and tax > 0)", 3, 2),
        ("not a or age >= 40", 4, 2),
        ("tax < 30 and income == 20", 2, 1),
    ],
)
def test_violations_are_those_counted_by_hand(text, applicable, violations):
    found = parse(text, NAMES).count(TABLE)

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

    found = parse(text, ["x", "y"]).count({"x": x, "y": y})

    assert found[1:] == (len(rows), broken)


def test_a_division_by_zero_is_not_applicable():
    found = parse("1 / x > 0", ["x"]).count({"x": np.array([0.0, 1.0, -1.0])})

    assert found[1:] == (2, 1)


def test_empty_and_all_missing_columns_have_no_applicable_row():
    rule = parse("x > 0", ["x"])

    for column in (np.zeros(0), np.full(3, np.nan), np.array([None, None], dtype=object)):
        assert rule.count({"x": column})[1:] == (0, 0)
    assert rule.count({"x": np.zeros(0)}).share == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tax <= incme", "character 8: no column named 'incme'. Did you mean 'income'?"),
        ("tax <= `net pya`", "no column named 'net pya'. Did you mean 'net pay'?"),
        ("a + b", "compares nothing (character 1)"),
        ("1 < 2", "compares nothing (character 1)"),
        ("a > 1 and 1 < 2", "compares nothing (character 11)"),
        ("", "1 to 1,000 characters"),
        ("a" * 1001, "1 to 1,000 characters"),
        ("a <", "ends where a column or a value was expected (character 4)"),
        ("(" * 400, "too many parentheses"),
        ("a < " + "-" * 450 + "1", None),
        ("not " * 200 + "a", None),
        ("a + " * 200 + "b < 1", None),
        ("a ** 2 < 3", "has '*' where"),
        ("a // 2 < 3", "has '/' where"),
        ("open('x') == a", "no column named 'open'"),
        ("a.real == 1", "cannot be read from there on (character 2)"),
        ("a[0] == 1", "cannot be read from there on (character 2)"),
        ("a in (1, 2)", "lacks '{' (character 6)"),
        ("a in {1, 2", "lacks '}'"),
        ("a in {b}", "has a column where a value was expected"),
        ("a not 1", "lacks 'in' after 'not'"),
        ("a + b is missing", "needs a column before"),
        ("a < 1 b", "has 'b' where an operator was expected (character 7)"),
        ("status = widowed", "no column named 'widowed'. A text stands in quotes."),
        ("a + 'x' > 2", "computes with a text"),
        ("a == 3 == 'x'", "computes with a text"),
        ("not 3 < a or 3", "compares nothing (character 14)"),
        ("a < 1e999", "too large"),
        ("a < " + "9" * 400, "too large"),
        ("a < 1e9999", "cannot be read"),
        ("a < 1j", "cannot be read"),
        ("a < (b < 2)", "mixes conditions"),
        ("(a < 1) + 2 > 1", "mixes conditions"),
        ("status < 'x'", "orders texts"),
        ("a <= total\x00", "cannot be read"),
        ("at most one of (a)", "needs two flags"),
        ("a determines b", "[constraints.lookups.a.b]"),
        ("a + b determines total", "compares nothing (character 1)"),
        ("a determines 3", "needs a column on each side"),
        ("age < 2024-02-30", "a day that does not exist"),
    ],
)
def test_what_is_not_a_constraint_is_refused_with_its_place(text, message):
    if message is None:
        parse(text, NAMES).count(TABLE)
        return
    with pytest.raises(InputError) as error:
        parse(text, NAMES)
    assert message in str(error.value)


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text):
    try:
        rule = parse(text, ["a", "b"])
    except InputError:
        return
    assert rule.columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("status == a", "compares a number with a text"),
        ("status < a", "compares a number with a text"),
        ("status + age > 2", "computes with a column of texts"),
        ("status + 1 > 2", "compares a number with a text"),
    ],
)
def test_texts_where_numbers_are_meant_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse(text, NAMES).count(TABLE)


def test_columns_of_different_length_are_refused():
    with pytest.raises(InputError, match="differ in length"):
        parse("a < b", NAMES).count({"a": np.zeros(2), "b": np.zeros(3)})


SCHEMA = Schema(
    (
        Column("AGEP", Role.OTHER, Kind.NUMERIC, (Decimal(0), Decimal(99)), step=Decimal(1)),
        Column("MSP", Role.OTHER, Kind.NOMINAL, categories=("N", "1", "2")),
        Column("EDU", Role.OTHER, Kind.ORDINAL, categories=("N", "8", "9", "10")),
        Column("admission", Role.OTHER, Kind.DATE),
        Column("discharge", Role.OTHER, Kind.DATE),
        Column("district", Role.OTHER, Kind.NOMINAL, categories=("d1", "d2")),
        Column("region", Role.OTHER, Kind.NOMINAL, categories=("north", "south")),
        Column("married", Role.OTHER, Kind.NOMINAL, categories=("false", "true")),
    )
)
LOOKUPS = {"district": {"region": {"d1": "north", "d2": "south"}}}


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("MSP = 1", Atom("MSP", "in", ("1",))),
        ("MSP != 'N'", Atom("MSP", "in", ("N",), negated=True)),
        ("EDU >= 9", Atom("EDU", "in", ("9", "10"))),
        ("9 > EDU", Atom("EDU", "in", ("N", "8"))),
        ("2 * AGEP <= 30", Atom("AGEP", "<=", (15.0,))),
        ("AGEP > 0.3 / 0.1", Atom("AGEP", "<=", (3.0,), negated=True)),
        ("married", Atom("married", "in", ("true",))),
        ("not married", Atom("married", "in", ("true",), negated=True)),
        ("admission < 1970-01-03", Atom("admission", "<", (2.0,))),
        ('"1970-01-03" <= admission', Atom("admission", "<", (2.0,), negated=True)),
        ("1 <= AGEP < 3", AllOf((Atom("AGEP", "<", (1.0,), True), Atom("AGEP", "<", (3.0,))))),
    ],
)
def test_constants_have_the_type_of_their_column(text, tree):
    assert parse(text, SCHEMA).tree == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MSP = 7", "has '7', which is not a category of 'MSP'"),
        ("MSP < 'N'", "orders texts"),
        ("AGEP = 'N'", "a column of numbers, with a text"),
        ("MSP + AGEP > 3", "computes with 'MSP', a column of categories"),
        ("MSP = AGEP", "computes with 'MSP'"),
        ("region", "none of the categories"),
        ("admission > 'soon'", "does not exist"),
        ("AGEP determines region", "under [constraints.lookups.AGEP.region]"),
    ],
)
def test_constants_that_do_not_fit_their_column_are_refused(text, message):
    with pytest.raises(InputError) as error:
        parse(text, SCHEMA, LOOKUPS)
    assert message in str(error.value)


def test_relations_have_their_coefficients_and_dependences_their_pairs():
    order = parse("discharge >= admission + 1", SCHEMA)
    (relation,) = order.relations()

    assert order.linear
    assert not order.boolean
    assert (relation.terms, relation.op, relation.constant) == (
        {"admission": 1.0, "discharge": -1.0},
        "<=",
        -1.0,
    )
    depends = parse("district determines region", SCHEMA, LOOKUPS)
    assert depends.boolean
    assert depends.lookup.pairs == {"d1": "north", "d2": "south"}
    assert allow([depends], {"district": ("d1", "d2"), "region": ("north", "south")}).tolist() == [
        [True, False],
        [False, True],
    ]


def test_cells_are_cut_where_the_atoms_cut():
    rules = [parse(text, SCHEMA) for text in ("AGEP < 15", "AGEP <= 17", "AGEP != 30 or MSP = 1")]

    assert cells(SCHEMA["AGEP"], rules, 1.0) == (0.0, 15.0, 18.0, 30.0, 31.0)
    assert cells(SCHEMA["MSP"], rules, None) == ("N", "1", "2")
    assert allow(rules[2:], {"AGEP": (0.0, 30.0), "MSP": ("N", "1")}).tolist() == [
        [True, True],
        [False, True],
    ]


CONDITIONS = st.recursive(
    st.tuples(
        st.sampled_from("xyz"),
        st.sampled_from(["<", "<=", "=", "!=", ">", ">="]),
        st.sampled_from("xyz012"),
    ),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(inner, st.sampled_from(["and", "or", "implies"]), inner),
    ),
    max_leaves=6,
)


def written(node):
    if node[0] == "not":
        return f"not ({written(node[1])})"
    if isinstance(node[0], str):
        return " ".join(node)
    return f"({written(node[0])}) {node[1]} ({written(node[2])})"


def kleene(node, row):
    """True, False, or None if a missing cell leaves it open."""
    if node[0] == "not":
        inner = kleene(node[1], row)
        return None if inner is None else not inner
    if isinstance(node[0], str):
        a, b = (int(side) if side.isdigit() else row[side] for side in (node[0], node[2]))
        if a is None or b is None:
            return None
        return eval(f"a {node[1].replace('=', '==') if node[1] == '=' else node[1]} b")  # noqa: S307
    a, b = kleene(node[0], row), kleene(node[2], row)
    if node[1] == "implies":
        a = None if a is None else not a
    decisive = node[1] != "and"
    if decisive in {a, b}:
        return decisive
    return None if None in {a, b} else not decisive


@given(
    CONDITIONS,
    st.lists(st.tuples(*[st.sampled_from([None, 0, 1, 2])] * 3), min_size=1, max_size=10),
)
def test_conditions_have_the_three_values_of_kleene(node, rows):
    rows = [dict(zip("xyz", row, strict=True)) for row in rows]
    columns = {n: np.array([np.nan if r[n] is None else r[n] for r in rows]) for n in "xyz"}

    true, false = parse(written(node), list("xyz")).truth(columns)

    expected = [kleene(node, row) for row in rows]
    assert true.tolist() == [value is True for value in expected]
    assert false.tolist() == [value is False for value in expected]
