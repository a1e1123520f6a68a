"""The sample table: what holds in every draw, and that the shipped files are the generator's."""

import csv
import tomllib
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.sample.shipped_files import TABLES, chooser, write
from tests.sample.world import EDUCATIONS, MARITAL, SEXES, WAVES, hierarchies

from shoal import sample
from shoal.errors import InputError
from shoal.sample import ROWS, SEED, households
from shoal.sample.draws import OLDEST, exponential, normal, pick
from shoal.sample.generator import COLUMNS, LARGEST

seeds = st.integers(0, 2**70)
sizes = st.integers(0, 60)


@pytest.fixture(scope="module")
def table():
    return sample.people(50_000, seed=11)


@given(sizes, seeds)
@settings(max_examples=25, deadline=None)
def test_same_seed_gives_the_same_table_of_the_size_asked_for(n, seed):
    first = sample.people(n, seed)

    assert first.shape == (n, len(COLUMNS))
    assert_frame_equal(first, sample.people(n, seed))


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_another_seed_gives_another_table(seed):
    assert not sample.people(50, seed).equals(sample.people(50, seed + 1))


@given(sizes, seeds)
@settings(max_examples=25, deadline=None)
def test_a_smaller_table_is_the_head_of_a_larger_one(n, seed):
    assert_frame_equal(sample.people(n, seed), sample.people(60, seed).head(n))


def test_a_table_is_the_head_of_a_larger_one_across_blocks(table):
    assert_frame_equal(sample.people(30_000, seed=11), table.head(30_000))


@pytest.mark.parametrize("n", [0, 1])
def test_an_empty_table_and_one_row_have_all_columns_and_types(table, n):
    assert sample.people(n, seed=0).schema == table.schema


@pytest.mark.parametrize("n", [-1, LARGEST + 1])
def test_a_size_out_of_range_is_refused(n):
    with pytest.raises(InputError, match=rf"n must be between 0 and 90000000; found n={n}\."):
        sample.people(n, seed=1)


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match=r"seed must not be negative; found seed=-1\."):
        sample.people(1, seed=-1)


@given(seeds)
@settings(max_examples=5, deadline=None)
def test_numbers_stay_within_their_bounds(seed):
    table = sample.people(20_000, seed)

    assert table["age"].is_between(0, OLDEST).all()
    assert table["hours"].drop_nulls().is_between(0, 80).all()
    assert table["income"].drop_nulls().is_between(0, 500_000).all()
    assert (table["tax"] >= 0).all()
    assert (table["weight"] > 0).all()
    assert table["weight"].equals(table["weight"].round(2))


@given(seeds)
@settings(max_examples=5, deadline=None)
def test_tax_is_never_above_income(seed):
    told = sample.people(20_000, seed).drop_nulls("income")

    assert (told["tax"] <= told["income"]).all()


def test_every_person_has_a_number_of_nine_digits_of_their_own(table):
    assert table["person"].n_unique() == len(table)
    assert table["person"].is_between(100_000_000, 999_999_999).all()


def test_households_have_one_to_six_members_who_share_region_and_batch(table):
    homes = table.group_by("household").agg(
        pl.len(), pl.col("region", "batch").n_unique(), pl.col("age").max().alias("oldest")
    )

    assert set(homes["len"]) == {1, 2, 3, 4, 5, 6}
    assert homes["region"].max() == homes["batch"].max() == 1
    assert homes["household"].is_between(10_000_000, 99_999_999).all()
    assert homes["oldest"].min() >= 18


def test_levels_are_those_that_policy_and_hierarchies_state(table):
    levels = {column: {row[0] for row in rows} for column, rows in hierarchies().items()}
    levels |= {"sex": set(SEXES), "education": set(EDUCATIONS), "marital": set(MARITAL)}
    levels |= {"batch": set(WAVES)}

    for column, known in levels.items():
        assert set(table[column].drop_nulls()) == known


def test_missing_values_stand_where_a_survey_has_them(table):
    shares = {name: table[name].null_count() / len(table) for name in COLUMNS}

    assert {name for name, share in shares.items() if share} == {
        *("education", "hours", "income", "condition")
    }
    assert all(share == 0 or 0.01 < share < 0.04 for share in shares.values())


def test_children_neither_work_nor_earn_nor_marry(table):
    children = table.filter(pl.col("age") < 16)

    assert set(children["occupation"]) == {"not working"}
    assert set(children["hours"].drop_nulls()) == {0}
    assert set(children["income"].drop_nulls()) == {0}
    assert set(children["marital"]) == {"single"}
    assert set(children.filter(pl.col("age") < 12)["education"].drop_nulls()) == {"none"}


def test_hours_are_zero_exactly_for_those_who_do_not_work(table):
    told = table.drop_nulls("hours")

    assert ((told["hours"] == 0) == (told["occupation"] == "not working")).all()


def test_the_table_is_believable(table):
    """Broad limits on what a reader would look at first; the seed is fixed, so no false alarms."""
    adults = table.filter(pl.col("age").is_between(30, 60))
    pay = (
        adults.filter(pl.col("hours") > 0)
        .group_by("education")
        .agg(pl.col("income").median())
        .drop_nulls()
    )
    pay = dict(pay.iter_rows())
    income = table["income"].drop_nulls()

    assert pay["primary"] * 1.1 < pay["secondary"] < pay["tertiary"] / 1.4
    assert 0.2 < (income == 0).mean() < 0.35
    assert income.mean() > 1.4 * income.median()
    assert income.quantile(0.999) > 10 * income.median()
    assert 0.12 < (table["age"] < 15).mean() < 0.22
    assert 0.13 < (table["age"] >= 65).mean() < 0.23
    assert 0.45 < (table["condition"] == "none").mean() < 0.7
    assert table.filter(pl.col("condition") == "dementia")["age"].median() > 70
    assert (
        table.filter(pl.col("occupation") == "physician")["education"]
        .drop_nulls()
        .eq("tertiary")
        .all()
    )


@given(st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_couples_are_of_near_age_and_children_are_younger_than_their_parents(seed):
    who = households.draw(np.random.default_rng(seed), 2000)
    heads = who.age[who.place == households.HEAD]
    partner, child, elder = (
        who.place == place for place in (households.PARTNER, households.CHILD, households.ELDER)
    )

    assert len(heads) == 2000
    assert np.abs(who.age[partner] - heads[who.household[partner]]).max() <= 13
    assert (heads[who.household[child]] - who.age[child]).min() >= 18
    assert (who.age[elder] - heads[who.household[elder]]).min() >= 20
    assert who.age[child].max() <= 27


def test_the_shipped_table_is_what_the_generator_draws():
    shipped = sample.load()

    assert len(shipped) == ROWS == 10_000
    assert_frame_equal(shipped, sample.people(ROWS, SEED), check_exact=False, abs_tol=0.005)


def test_the_script_writes_the_shipped_files(tmp_path):
    write(tmp_path)

    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"people.parquet", "tables.npz", "region.csv", "occupation.csv",
                       "condition.csv"}  # fmt: skip
    for name in written - {"people.parquet", "tables.npz"}:
        assert (tmp_path / name).read_bytes() == (sample.folder() / name).read_bytes()
    assert_frame_equal(pl.read_parquet(tmp_path / "people.parquet"), sample.load())


def test_the_shipped_tables_are_those_of_the_script():
    with np.load(sample.folder() / "tables.npz") as shipped:
        assert set(shipped) == set(TABLES)
        for name, table in TABLES.items():
            np.testing.assert_array_equal(shipped[name], table, err_msg=name)


def test_the_shipped_files_are_small():
    assert sum(path.stat().st_size for path in sample.folder().iterdir()) < 400_000


@pytest.mark.parametrize("column", ["region", "occupation", "condition"])
def test_shipped_hierarchies_are_trees_and_cover_the_table(column):
    with (sample.folder() / f"{column}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))

    parents = {}
    for row in rows:
        assert len(row) == 3
        for child, parent in pairwise(row):
            assert parents.setdefault(child, parent) == parent
    assert len({row[0] for row in rows}) == len(rows)
    assert len({row[-1] for row in rows}) == 1
    assert not {row[0] for row in rows} & {node for row in rows for node in row[1:]}
    assert set(sample.load()[column].drop_nulls()) <= {row[0] for row in rows}


def test_the_shipped_policy_names_every_column_in_order():
    policy = tomllib.loads((sample.folder() / "people.toml").read_text(encoding="utf-8"))

    assert tuple(policy["columns"]) == COLUMNS
    assert policy["columns"]["education"]["categories"] == list(EDUCATIONS)
    assert policy["columns"]["sex"]["categories"] == list(SEXES)
    assert policy["columns"]["marital"]["categories"] == list(MARITAL)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=9).filter(any))
def test_a_chooser_gives_each_level_its_share(weights):
    counts = np.bincount(chooser([weights])[0], minlength=len(weights))

    assert np.abs(counts - 4096 * np.array(weights) / sum(weights)).max() <= 1
    assert all(count == 0 for count, weight in zip(counts, weights, strict=True) if weight == 0)


def test_picking_takes_the_row_that_it_is_told():
    table = chooser([[1, 0], [0, 1]])

    assert pick(table, np.array([0, 1, 1]), np.array([0.0, 0.5, 1 - 2**-53])).tolist() == [0, 1, 1]


def test_tabulated_functions_are_close_to_the_real_ones():
    u = np.linspace(0, 1 - 2**-53, 100_001)
    x = np.linspace(-5.9, 5.9, 1001)

    assert abs(normal(u).mean()) < 1e-4
    assert abs(normal(u).std() - 1) < 2e-3
    assert np.abs(exponential(x) / np.exp(x) - 1).max() < 1e-5
