"""Records re-encoded by public rules: what is decoded keeps them, and nothing is lost."""

from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core import Column, Kind, Role, Schema
from shoal.core.constraint_language import parse
from shoal.errors import InputError
from shoal.methods.drawn_rows.constrained_space import constrain_space
from shoal.methods.drawn_rows.placed_columns import decode_values

COLUMNS = {
    "age": Column("age", Role.CONFIDENTIAL, Kind.NUMERIC, (Decimal(0), Decimal(99)), step=1),
    "status": Column("status", Role.CONFIDENTIAL, Kind.NOMINAL, categories=tuple("Nabcde")),
    "school": Column("school", Role.CONFIDENTIAL, Kind.ORDINAL, categories=tuple("N123456")),
    "home": Column("home", Role.CONFIDENTIAL, Kind.NOMINAL, categories=tuple("xyz")),
    "tenure": Column("tenure", Role.CONFIDENTIAL, Kind.NOMINAL, categories=tuple("0or")),
    "town": Column(
        "town", Role.CONFIDENTIAL, Kind.NOMINAL, categories=tuple("klmnop"), keep_missing=True
    ),
    "land": Column("land", Role.CONFIDENTIAL, Kind.NOMINAL, categories=tuple("KLM")),
    "came": Column("came", Role.CONFIDENTIAL, Kind.DATE, (date(2020, 1, 1), date(2020, 12, 31))),
    "left": Column("left", Role.CONFIDENTIAL, Kind.DATE, (date(2020, 1, 1), date(2021, 3, 31))),
    "income": Column("income", Role.CONFIDENTIAL, Kind.NUMERIC, (Decimal(0), Decimal(500_000))),
    "tax": Column("tax", Role.CONFIDENTIAL, Kind.NUMERIC, (Decimal(0), Decimal(200_000))),
    "sum": Column("sum", Role.CONFIDENTIAL, Kind.NUMERIC, (Decimal(0), Decimal(80)), step=1),
    "one": Column("one", Role.CONFIDENTIAL, Kind.NUMERIC, (Decimal(0), Decimal(50)), step=1),
    "two": Column("two", Role.CONFIDENTIAL, Kind.NUMERIC, (Decimal(-5), Decimal(60)), step=1),
}
SCHEMA = Schema(tuple(COLUMNS.values()))
LOOKUPS = {"town": {"land": dict(zip("klmnop", "KKLLMM", strict=True))}}
CATEGORICAL = [
    "age < 15 implies status = 'N'",
    "age >= 15 implies status != 'N'",
    "age < 3 implies school = 'N'",
    "age >= 3 implies school != 'N'",
    "age < 15 implies not school in {'5', '6'}",
    "home = 'x' implies tenure != '0'",
    "home != 'x' implies tenure = '0'",
    "town determines land",
    "status = 'a' and school = '1' implies home = 'x'",
    "town is missing or age > 10",
]
LINEAR = ["left >= came", "tax <= income", "sum = one + two"]


def space_of(rules):
    read = [parse(text, SCHEMA, LOOKUPS) for text in rules]
    return constrain_space(SCHEMA.columns, read), read


def holds(space, rules, codes):
    cells = {
        axis.column.name: decode_values(axis, own)
        for axis, own in zip(space.space, codes, strict=True)
    }
    return np.logical_and.reduce([rule.holds(cells) for rule in rules])


def allowed(space, rows):
    kept = np.ones(len(rows[0]), dtype=bool)
    for zeros in space.zeros:
        atoms = (own[rows[j]] for j, own in zip(zeros.columns, zeros.atoms, strict=True))
        kept &= zeros.allowed[tuple(atoms)]
    return kept


@settings(max_examples=25, deadline=None)
@given(
    st.sets(st.sampled_from(CATEGORICAL), min_size=1),
    st.sets(st.sampled_from(LINEAR)),
    st.integers(0, 2**32 - 1),
)
def test_what_is_allowed_decodes_to_records_that_keep_the_rules_and_no_other(some, linear, seed):
    space, rules = space_of([*sorted(some), *sorted(linear)])
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, axis.count, 3000) for axis in space.modelled]
    kept = allowed(space, rows)
    codes = space.decode(rows)
    # Rows that the structure allows keep every rule, and rows that it does not allow break one.
    np.testing.assert_array_equal(holds(space, rules, codes), kept)
    # Encoding is the inverse on allowed records, but for places in intervals.
    again = space.encode([np.rint(own).astype(np.int64) for own in codes])
    placed = {one.axis.column.name for one in space.placed}
    for axis, before, after in zip(space.modelled, rows, again, strict=True):
        if axis.column.name not in placed:
            np.testing.assert_array_equal(before[kept], after[kept])
    # Any record that keeps the rules is allowed, and comes back as it was.
    records = [rng.integers(0, axis.count, 3000) for axis in space.space]
    good = holds(space, rules, records)
    encoded = space.encode(records)
    assert allowed(space, encoded)[good].all()
    for axis, before, after in zip(space.space, records, space.decode(encoded), strict=True):
        far = 1 if axis.grid is not None else 0
        assert (np.abs(before - after)[good] <= far).all()


def test_what_is_determined_is_derived_and_small_domains_are_one_column():
    space, _ = space_of([*CATEGORICAL[:8], *LINEAR])
    names = [axis.column.name for axis in space.modelled]
    assert names == [
        "age", "status", "school", "home and tenure", "town and land", "came",
        "left, days from its limit", "income", "tax, place in its interval", "sum",
        "one, place in its interval",
    ]  # fmt: skip
    combined = space.modelled[3].column.all_categories
    assert combined == ("x, o", "x, r", "y, 0", "z, 0")
    (zeros,) = space.zeros
    assert zeros.columns == (0, 1, 2)
    assert int(zeros.allowed.sum()) == 4  # below 3, below 15, and from 15 on with two of school
    assert np.flatnonzero(np.diff(zeros.atoms[0])).tolist() == [2, 14]


def test_rules_that_a_model_cannot_have_are_refused_in_a_sentence():
    with pytest.raises(InputError, match="no combination of values of age, status"):
        space_of(["age < 15 implies status = 'N'", "age < 15 implies status != 'N'", "age < 10"])
    with pytest.raises(InputError, match="'home', which is not among"):
        constrain_space([COLUMNS["age"]], [parse(CATEGORICAL[6], SCHEMA)])


@pytest.mark.parametrize("method", ["maxent", "auto"])
@pytest.mark.parametrize(
    "protect",
    [{"epsilon": Decimal("0.1")}, {"epsilon": 1, "neighbours": "add-remove", "delta": 1e-9}],
)
def test_released_rows_keep_the_rules(method, protect):
    rng = np.random.default_rng(4)
    n = 600
    age = rng.integers(0, 99, n)
    came, income = rng.integers(18262, 18600, n), np.round(rng.gamma(2, 20_000, n), 2)
    table = pl.DataFrame(
        {
            "age": age,
            "status": np.where(age < 15, "N", rng.choice(list("abcde"), n)),
            "school": np.where(age < 3, "N", rng.choice(list("1234"), n)),
            "came": pl.Series(came).cast(pl.Int32).cast(pl.Date),
            "left": pl.Series(came + rng.integers(0, 30, n)).cast(pl.Int32).cast(pl.Date),
            "income": income,
            "tax": np.round(income * rng.choice([0, 0.2, 0.3], n), 2),
        }
    )
    texts = [*CATEGORICAL[:5], *LINEAR[:2]]
    names = table.columns
    bounds = {"age": [0, 99], "income": [0, 500_000], "tax": [0, 200_000]}
    columns = {}
    for name in names:
        one = COLUMNS[name]
        columns[name] = {"role": "confidential", "kind": str(one.kind)}
        if one.categories:
            columns[name]["categories"] = list(one.categories)
        else:
            columns[name]["bounds"] = bounds.get(name) or list(one.bounds)
    columns["age"]["step"] = 1
    policy = {
        "version": 1, "columns": columns, "protect": {"method": method, **protect},
        "constraints": {"rules": texts},
    }  # fmt: skip
    released = shoal.protect(table, policy).data
    day = {name: released[name].cast(pl.Int32).to_numpy() for name in ("came", "left")}
    cells = {name: released[name].to_numpy() for name in names} | day
    for text in texts:
        assert parse(text, SCHEMA, LOOKUPS).holds(cells).all()
    assert released["status"].n_unique() > 2
    if protect["epsilon"] == 1:  # a stay is modelled as a number of days
        assert np.nanmedian(day["left"] - day["came"]) < 60
