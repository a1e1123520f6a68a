"""The contract of methods: ours meet it, and each part catches what breaks it."""

from dataclasses import replace

import numpy as np
import pytest

from shoal.core import KAnonymity, Partition
from shoal.methods import REGISTRY
from shoal.methods.grouping import microaggregation
from shoal.methods.laplace import METHOD as LAPLACE
from shoal.methods.mdav import METHOD as MDAV
from shoal.methods.method import Masked
from shoal.testing import check_method


@pytest.mark.parametrize("name", REGISTRY)
def test_every_method_of_ours_meets_the_contract(name):
    results = check_method(name, tables=3)

    assert len(results) == 8
    assert [str(result) for result in results if not result.holds] == []


def groups_of_one(table, setting, tools):
    del tools
    return microaggregation.mask_groups(table, setting, Partition(np.arange(len(table))))


def own_randomness(table, setting, tools):
    shuffled = np.random.default_rng().permutation(len(table)) // setting.parameters.k
    del tools
    return microaggregation.mask_groups(
        table, setting, Partition(np.minimum(shuffled, len(table) // setting.parameters.k - 1))
    )


def free_noise(table, setting, tools):
    return replace(LAPLACE.run(table, setting, tools), privacy_losses=())


def price_by_the_data(table, setting, tools):
    done = LAPLACE.run(table, setting, tools)
    more = int(table.frame["number"][0] > 0)
    return replace(done, privacy_losses=done.privacy_losses * (1 + more))


def raises_on_missing_cells(table, setting, tools):
    if table.frame["number"].n_unique() == 1:
        raise ZeroDivisionError
    return LAPLACE.run(table, setting, tools)


def without_a_row(table, setting, tools):
    done = LAPLACE.run(table, setting, tools)
    return Masked(done.data.take(np.arange(len(table) - 1)), done.privacy_losses)


def claims_too_much(setting):
    claims = MDAV.promises.claims(setting)
    return tuple(replace(c, guarantee=KAnonymity(50, c.guarantee.columns)) for c in claims)


BROKEN = {
    "a summary without a sentence": (replace(MDAV, summary="groups"), "Says in a sentence"),
    "an example that cannot be planned": (
        replace(MDAV, example=replace(MDAV.example, parameters={"k": 0})),
        "Can be planned",
    ),
    "groups of one": (replace(MDAV, run=groups_of_one), "Keeps every k"),
    "a k that nobody reaches": (
        replace(MDAV, promises=replace(MDAV.promises, claims=claims_too_much)),
        "Keeps every k",
    ),
    "randomness of its own": (replace(MDAV, run=own_randomness), "Takes all its randomness"),
    "draws that nobody pays": (replace(LAPLACE, run=free_noise), "states every draw"),
    "a price by the data": (replace(LAPLACE, run=price_by_the_data), "spends the same"),
    "an error after the draw": (
        replace(LAPLACE, run=raises_on_missing_cells),
        "nothing after a draw",
    ),
    "a row that is left out": (replace(LAPLACE, run=without_a_row), "Releases a row"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_method_fails_the_part_that_is_about_it(what):
    method, part = BROKEN[what]

    results = check_method(replace(method, name="broken"))
    failing = [result for result in results if not result.holds]

    assert any(part in result.part for result in failing), failing
    assert all(result.fault for result in failing)
    assert str(failing[0]).startswith("FAILS  ")
