from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from shoal.core import Kind, Neighbours, Price
from shoal.errors import InputError, InternalError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.synthesis import copula as module
from shoal.synthesis.copula import Margins, block_size, copula, kendall
from shoal.synthesis.domain import Domain

COLUMNS = (
    Domain("income", Kind.NUMERIC, 1025),
    Domain("age", Kind.NUMERIC, 100),
    Domain("town", Kind.NOMINAL, 5, order=(4, 2, 0, 1, 3)),
)


def records(seed, n):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    return [
        np.clip((hidden + rng.normal(0, 0.1, n)) * a.size, 0, a.size - 1).astype(np.int64)
        for a in COLUMNS
    ]


def slow(first, second):
    """Every pair, one by one."""
    signs = np.sign(first[:, None] - first) * np.sign(second[:, None] - second)
    return int(np.triu(signs, 1).sum())


column = st.lists(st.integers(0, 6), min_size=1, max_size=40)


@given(column, st.integers(0, 2**32))
def test_concordances_equal_the_count_over_all_pairs(first, seed):
    first = np.array(first)
    second = np.random.default_rng(seed).integers(0, 5, first.size)

    assert kendall(first, second) == slow(first, second)
    assert kendall(second, first) == slow(first, second)


def test_without_ties_it_is_kendalls_tau():
    rng = np.random.default_rng(0)
    first, second = rng.permutation(2000), rng.permutation(2000)

    tau = 2 * kendall(first, second) / (2000 * 1999)

    assert tau == pytest.approx(kendalltau(first, second).statistic)


@given(column, st.integers(0, 2**32), st.data())
def test_a_changed_record_moves_concordances_by_at_most_twice_the_others(first, seed, data):
    first = np.array(first)
    n = first.size
    second = np.random.default_rng(seed).integers(0, 5, n)
    record = data.draw(st.integers(0, n - 1))
    other, another = first.copy(), second.copy()
    other[record] = data.draw(st.integers(0, 6))
    another[record] = data.draw(st.integers(0, 5))

    assert abs(kendall(first, second) - kendall(other, another)) <= 2 * (n - 1)


def test_the_sensitivity_of_concordances_is_reached():
    first = np.arange(1, 9)
    before, after = np.append(first, 9), np.append(first, 0)

    moved = kendall(before, before) - kendall(before, after)

    assert moved == 2 * 8


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40), st.integers(1, 8), st.data())
def test_a_changed_record_moves_sums_of_blocks_by_at_most_the_width(values, size, data):
    before = np.array(values)
    after = before.copy()
    after[data.draw(st.integers(0, before.size - 1))] = data.draw(st.integers(0, 50))
    ends = module._ends(before.size, min(size, before.size))

    sums = [np.add.reduceat(np.sort(x), ends[:-1]) for x in (before, after)]

    assert np.abs(sums[0] - sums[1]).sum() <= 50


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(2, 200),
    st.sampled_from(["0.01", "1", "30"]),
    st.sampled_from(list(Margins)),
)
def test_rows_lie_in_their_domains_and_the_ledger_adds_up(seed, n, epsilon, margins):
    noise = SeededNoise(seed)

    drawn = copula(
        records(seed, n), COLUMNS, price=Price(Fraction(epsilon)), noise=noise,
        rng=np.random.default_rng(seed), margins=margins,
    )  # fmt: skip

    for row, attribute in zip(drawn.rows, COLUMNS, strict=True):
        assert row.shape == (n,)
        assert row.min() >= 0
        assert row.max() <= attribute.size - 1
    assert drawn.rows[2].dtype == np.int64
    accounting.verify(
        drawn.privacy_losses, Fraction(epsilon), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


@pytest.mark.parametrize("margins", list(Margins))
def test_scales_and_prices_do_not_depend_on_the_data(margins):
    def facts(codes):
        drawn = copula(codes, COLUMNS, price=Price(Fraction(1)), noise=SeededNoise(0),
                       rng=np.random.default_rng(0), margins=margins)  # fmt: skip
        return [(s.target, s.sensitivity, s.scale, s.epsilon) for s in drawn.privacy_losses]

    assert facts(records(0, 90)) == facts([np.zeros(90, dtype=np.int64)] * 3)


@pytest.mark.parametrize("margins", list(Margins))
def test_the_same_seeds_give_the_same_rows(margins):
    def run():
        return copula(records(0, 300), COLUMNS, price=Price(Fraction(1)), noise=SeededNoise(1),
                      rng=np.random.default_rng(2), margins=margins).rows  # fmt: skip

    for one, other in zip(run(), run(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_noise_margins_and_rank_correlations_come_back():
    codes = records(1, 4000)

    drawn = copula(codes, COLUMNS, price=Price(Fraction(10**6)), noise=RecordingNoise(),
                   rng=np.random.default_rng(0))  # fmt: skip

    for j in range(2):
        error = np.sort(drawn.rows[j]) - np.sort(codes[j])
        assert (error**2).mean() < 0.01 * codes[j].var()
    true = kendalltau(codes[0], codes[1]).statistic
    assert kendalltau(drawn.rows[0], drawn.rows[1]).statistic == pytest.approx(true, abs=0.03)


def test_correlations_that_no_distribution_has_are_mended():
    R = module._correlations(np.array([1.0, 1.0, -1.0]), 3)

    assert np.linalg.eigvalsh(R).min() > 0
    assert np.diag(R) == pytest.approx(np.ones(3))


def test_blocks_grow_with_the_noise_and_stay_within_a_quarter():
    assert block_size(10_000, 4, Fraction(1)) == 200
    assert block_size(10_000, 4, Fraction(1, 10**6)) == 2500
    assert block_size(3, 2, Fraction(1)) == 1


def test_one_column_has_nothing_to_be_joined_with():
    with pytest.raises(InputError, match="at least two"):
        copula(records(0, 9)[:1], COLUMNS[:1], price=Price(Fraction(1)), noise=SeededNoise(0),
               rng=np.random.default_rng(0))  # fmt: skip


def test_a_forgotten_spending_is_caught():
    noise = SeededNoise(0)
    drawn = copula(records(0, 50), COLUMNS, price=Price(Fraction(1)), noise=noise,
                   rng=np.random.default_rng(0))  # fmt: skip

    with pytest.raises(InternalError, match="derives epsilon"):
        accounting.verify(
            drawn.privacy_losses[:-1],
            Fraction(1),
            neighbours=Neighbours.CHANGE_ONE,
            drawn=noise.drawn,
        )
