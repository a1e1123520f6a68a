"""The order in which rows leave: nobody can predict it."""

from types import SimpleNamespace

import polars as pl
import pytest

from shoal.core import Column, ConstraintChoices, Kind, ReleaseForm, Role, Schema
from shoal.engine.local import run
from shoal.hazmat.noise import OpenDPNoise
from shoal.io import validate
from shoal.methods import Masked, Tools
from shoal.methods.method import MethodInput

ROWS = 40
SCHEMA = Schema(tuple(Column(name, Role.QUASI_IDENTIFIER, Kind.NUMERIC) for name in "ab"))


def outcome(form):
    """What leaves by a method that changes nothing."""
    table = validate.validate(pl.DataFrame({"a": range(ROWS), "b": range(ROWS)}), SCHEMA)
    method = SimpleNamespace(
        noisy=False, input=MethodInput(), run=lambda rows, _setting, _tools: Masked(rows)
    )
    setting = SimpleNamespace(
        release_form=form,
        required=(),
        constraints=ConstraintChoices(),
        columns=(),
        schema=SCHEMA,
        parameters=None,
    )
    return run(table, method, setting, Tools(OpenDPNoise()))


@pytest.mark.parametrize("form", [ReleaseForm.LINKED_SHUFFLED, ReleaseForm.SYNTHETIC,
                                  ReleaseForm.COLUMN_SHUFFLED])  # fmt: skip
def test_no_two_releases_have_the_same_order(form):
    """That two of three orders of 40 rows are equal, or one is that of the file: below 1e-46."""
    orders = {tuple(outcome(form).frame["a"]) for _ in range(3)} | {tuple(range(ROWS))}

    assert len(orders) == 4


def test_columns_of_marginals_are_shuffled_each_by_itself():
    """A row of the table is a row of the release by chance alone: all 40 with 1 / 40!."""
    frame = outcome(ReleaseForm.COLUMN_SHUFFLED).frame

    assert sorted(frame["a"]) == sorted(frame["b"]) == list(range(ROWS))
    assert not frame["a"].equals(frame["b"])


def test_rows_stay_together_where_they_are_linked():
    frame = outcome(ReleaseForm.LINKED_SHUFFLED).frame

    assert frame["a"].equals(frame["b"])
