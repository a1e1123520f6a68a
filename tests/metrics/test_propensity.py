"""The propensity score: its null and its extremes."""

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.metrics.propensity import Teller, propensity


def mixed(rng, n):
    z = rng.normal(size=n)
    return np.column_stack([z, z + rng.normal(size=n), rng.integers(0, 4, n)])


KINDS = (False, False, True)


@pytest.mark.parametrize("most", [10_000, 300])
def test_a_fresh_draw_has_a_ratio_of_one_whether_sampled_or_not(most):
    """Mean of 40 ratios, each chi-squared over its k - 1 = 15 degrees: sd 0.37 / sqrt(40).

    The bounds are six standard deviations away: false alarms below 1e-8.
    """
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(40):
        original = mixed(rng, 1000)
        fresh = original[rng.integers(0, 1000, 1000)]
        found = propensity(original, fresh, categorical=KINDS, rng=rng, most=most, repeats=2)
        ratios.append(found.ratio.value)

    assert 0.65 < np.mean(ratios) < 1.35


@pytest.mark.parametrize("teller", list(Teller))
def test_a_release_that_breaks_a_relation_is_told_apart(teller):
    rng = np.random.default_rng(3)
    original = mixed(rng, 1500)
    broken = original.copy()
    broken[:, 1] = rng.permutation(broken[:, 1])
    fresh = original[rng.integers(0, 1500, 1500)]

    bad, good = (
        propensity(original, table, categorical=KINDS, rng=rng, teller=teller, repeats=3)
        for table in (broken, fresh)
    )

    assert bad.ratio.low > 2 * good.ratio.high
    assert bad.pmse.value > good.pmse.value


def test_the_same_table_cannot_be_told_apart_and_a_distant_one_always():
    rng = np.random.default_rng(4)
    table = mixed(rng, 200)

    same = propensity(table, table, categorical=KINDS, rng=rng)
    apart = propensity(table, table + 100, categorical=KINDS, rng=rng)

    assert same.pmse.value == pytest.approx(0, abs=1e-12)
    assert same.pmse.low == same.pmse.high
    assert apart.pmse.value == pytest.approx(0.25, abs=0.01)


def test_missing_cells_tell_tables_apart():
    rng = np.random.default_rng(5)
    table = mixed(rng, 300)
    holes = table.copy()
    holes[rng.random(300) < 0.5, 0] = np.nan
    holes[rng.random(300) < 0.5, 2] = np.nan

    assert propensity(table, holes, categorical=KINDS, rng=rng).ratio.value > 5


def test_degenerate_tables_have_a_defined_score_or_a_sentence():
    rng = np.random.default_rng(6)
    flat = np.ones((5, 2))
    gone = np.full((5, 2), np.nan)

    for table in (flat, gone):
        found = propensity(table, table, categorical=(False, True), rng=rng)
        assert (found.pmse.value, found.ratio.value, found.parameters) == (0, 0, 1)
    assert propensity(flat, flat[:1], categorical=(False, True), rng=rng).ratio.value == 0
    assert propensity(flat, gone, categorical=(False, False), rng=rng).pmse.value > 0.2
    for table in (flat, gone):
        boosted = propensity(
            table, table, categorical=(False, True), rng=rng, teller=Teller.BOOSTING
        )
        assert boosted.ratio.value == 0
    with pytest.raises(
        InputError, match="rows in both tables and at least two repeats; found 5, 0"
    ):
        propensity(flat, flat[:0], categorical=(False, True), rng=rng)
