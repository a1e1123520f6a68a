import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from shoal.mechanism.consistent_counts import apportion, project, scale_to, shrink

counts = st.lists(st.integers(-50, 100), min_size=1, max_size=12).map(np.array)


@given(counts, st.integers(1, 200))
def test_projected_counts_are_not_negative_and_have_the_total(noisy, total):
    projected = project(noisy, total)

    assert (projected >= 0).all()
    assert projected.sum() == pytest.approx(total)


@given(counts, st.integers(1, 200), st.integers(0, 2**32))
def test_no_other_point_with_that_total_is_nearer(noisy, total, seed):
    projected = project(noisy, total)

    others = np.random.default_rng(seed).dirichlet(np.full(noisy.size, 0.3), 50) * total
    distances = ((others - noisy) ** 2).sum(axis=1)
    assert ((projected - noisy) ** 2).sum() <= distances.min() + 1e-6


def test_the_projection_agrees_with_a_quadratic_program():
    noisy = np.array([7.0, -4.0, 2.0, 0.0, 12.0, -1.0])

    found = minimize(
        lambda x: ((x - noisy) ** 2).sum(),
        np.full(6, 1.5),
        jac=lambda x: 2 * (x - noisy),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 9},
        method="SLSQP",
        options={"ftol": 1e-14},
    )

    assert project(noisy, 9) == pytest.approx(found.x, abs=1e-5)


variances = st.sampled_from([1e-9, 1.0, 50.0, 1e4, 1e9])


@given(counts, st.integers(1, 200), variances)
def test_shrunk_counts_are_not_negative_have_the_total_and_keep_their_order(noisy, total, variance):
    shrunk = shrink(noisy, total, variance)

    assert (shrunk >= 0).all()
    assert shrunk.sum() == pytest.approx(total)
    assert (np.diff(shrunk[np.argsort(noisy, kind="stable")]) >= -1e-9 * total).all()


@given(counts, st.integers(1, 200))
def test_without_noise_shrinking_is_projection_and_with_endless_noise_all_are_equal(noisy, total):
    assert shrink(noisy, total, 1e-9) == pytest.approx(project(noisy, total), abs=1e-3)
    assert shrink(noisy, total, 1e12) == pytest.approx(np.full(noisy.size, total / noisy.size))


@given(counts, st.integers(1, 200), variances, st.integers(0, 2**32))
def test_no_other_distribution_has_a_lower_value_than_the_shrunk_one(noisy, total, variance, seed):
    size, weight = noisy.size, total**2 / variance

    def value(p):
        logs = np.log(np.maximum(p, 1e-300) * size)
        misfit = ((p - noisy / total) ** 2).sum(axis=-1)
        return size * (p * logs).sum(axis=-1) + weight / 2 * misfit

    found = shrink(noisy, total, variance) / total

    rng = np.random.default_rng(seed)
    others = rng.dirichlet(np.full(size, 0.5), 40)
    steps = rng.random((40, 1)) ** 4
    lowest = value(found)
    assert (value(found + steps * (others - found)) >= lowest - 1e-7 * (1 + abs(lowest))).all()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.integers(0, 10_000))
def test_apportioned_numbers_are_whole_have_the_total_and_stay_near_their_shares(weights, total):
    weights = np.array(weights) + 1e-3

    whole = apportion(weights, total)

    assert whole.sum() == total
    assert (whole >= 0).all()
    assert np.abs(whole - weights * (total / weights.sum())).max() < 1 + 1e-6


extreme = st.lists(
    st.sampled_from([-(2**60), -1.0, 0.0, 5e-324, 1e-300, 1.0, 2.0**60]), min_size=1, max_size=6
).map(np.array)
totals = st.sampled_from([0, 1, 7, 10**6])


@given(extreme, totals)
def test_whatever_noise_leaves_has_the_total_and_nothing_negative(noisy, total):
    masses = np.maximum(noisy, 0.0)
    for found in (
        scale_to(masses, total),
        project(noisy, total),
        shrink(noisy, total, 1e12),
        apportion(masses, total),
    ):
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(total)


def test_without_mass_all_get_the_same():
    assert scale_to(np.zeros(4), 2.0).tolist() == [0.5] * 4
    assert apportion(np.zeros(4), 6).tolist() == [2, 2, 1, 1]
