"""Trying a policy on a few rows: it costs nothing and is recorded nowhere."""

from datetime import date

import polars as pl
import pytest

from shoal import policy, sample
from shoal.budget import budget_file
from shoal.pipeline import booking, preview

COLUMNS = {
    "name": "identifier",
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [20, 60]},
    "born": {"role": "quasi-identifier", "kind": "date",
             "bounds": [date(1950, 1, 1), date(2000, 1, 1)]},
    "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["m", "f"]},
    "rate": {"role": "confidential", "kind": "numeric", "bounds": [0, 1], "step": 0.5},
    "ill": {"role": "confidential", "kind": "nominal", "categories": ["yes", "no"]},
}  # fmt: skip


def stated(tmp_path, **protect):
    booking.open_budget(tmp_path / "budget.db", "people", "1")
    return policy.load(
        {
            "version": 1,
            "one_row_per_person": True,
            "columns": COLUMNS,
            "protect": protect,
            "budget": {"file": str(tmp_path / "budget.db"), "source": "people"},
        }
    )


def test_invented_rows_come_from_the_stated_domains_alone(tmp_path):
    found = preview.invent_rows(stated(tmp_path, method="laplace", epsilon=1), 300)

    assert found.columns == list(COLUMNS)
    assert found["age"].is_between(20, 60).all()
    assert found["born"].is_between(date(1950, 1, 1), date(2000, 1, 1)).all()
    assert set(found["rate"]) == {0.0, 0.5, 1.0}
    assert set(found["sex"]) == {"m", "f"}


@pytest.mark.parametrize(
    "protect", [{"method": "mdav", "k": 5}, {"method": "laplace", "epsilon": 2}]
)
def test_a_preview_spends_and_records_nothing(tmp_path, protect):
    policy_ = stated(tmp_path, **protect)

    tried = preview.preview(policy_, preview.invent_rows(policy_, 60))

    assert len(tried.shown) == preview.SHOWN
    assert "name" not in tried.columns
    assert tried.release.data.height == 60
    (account,) = budget_file.show(tmp_path / "budget.db")
    assert (account.spent, list(account.entries), list(account.inspections)) == (0, [], [])


def test_a_requirement_that_a_few_rows_miss_is_said_and_the_rows_are_shown():
    policy_ = policy.load(
        {
            "version": 1,
            "columns": COLUMNS,
            "protect": {"method": "mdav", "k": 2},
            "require": {"l-diversity": {"l": 2, "column": "ill"}},
        }
    )
    rows = preview.invent_rows(policy_, 40).with_columns(pl.lit("yes").alias("ill"))

    tried = preview.preview(policy_, rows)

    assert "l-diversity" in tried.unmet or "2-diversity" in tried.unmet
    assert tried.shown


def test_rows_can_be_invented_for_hierarchies_and_persons():
    policy_ = policy.load(sample.folder() / "people.toml")

    rows = preview.invent_rows(policy_, 50)

    assert rows.columns == [one.name for one in policy_.schema.columns]
    assert preview.preview(policy_, rows).shown
