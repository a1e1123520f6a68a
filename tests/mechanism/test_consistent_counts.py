import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from shoal.mechanism.consistent_counts import (
    Level,
    apportion,
    laplace_variance,
    least_squares,
    non_negative,
    project,
    scale_to,
    shrink,
    whole,
)

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


@st.composite
def trees(draw, *, known_root=None):
    """Trees of two to four levels with any numbers of children, one child included."""
    known = draw(st.booleans()) if known_root is None else known_root
    variance = st.floats(0.1, 100)
    levels = [Level(np.array([0]), np.array([draw(st.integers(0, 60))]),
                    0.0 if known else draw(variance))]  # fmt: skip
    for _ in range(draw(st.integers(1, 3))):
        nodes = levels[-1].counts.size
        sizes = draw(st.lists(st.integers(1, 4), min_size=nodes, max_size=nodes))
        parents = np.repeat(np.arange(nodes), sizes)
        noisy = st.lists(st.integers(-30, 60), min_size=parents.size, max_size=parents.size)
        levels.append(Level(parents, np.array(draw(noisy)), draw(variance)))
    return levels


def dense(levels):
    """The same by a dense solver: leaves that make the sum of squares least, root kept if known."""
    held = [np.eye(levels[-1].counts.size)]
    for level in levels[:0:-1]:
        up = np.zeros((level.parents.max() + 1, level.parents.size))
        up[level.parents, np.arange(level.parents.size)] = 1
        held.insert(0, up @ held[0])
    noisy = levels if levels[0].variance else levels[1:]
    rows = held[-len(noisy) :]
    weight = [np.full(level.counts.size, 1 / level.variance) for level in noisy]
    A, w = np.vstack(rows), np.concatenate(weight)
    normal, right = (A.T * w) @ A, (A.T * w) @ np.concatenate([level.counts for level in noisy])
    if not levels[0].variance:
        leaves = len(normal)
        normal = np.block(
            [[normal, np.ones((leaves, 1))], [np.ones((1, leaves)), np.zeros((1, 1))]]
        )
        right = np.append(right, levels[0].counts)
    solution = np.linalg.solve(normal, right)[: levels[-1].counts.size]
    return [part @ solution for part in held]


@given(trees())
def test_two_passes_give_the_dense_least_squares_solution(levels):
    fitted = least_squares(levels)

    for ours, theirs in zip(fitted, dense(levels), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)


@given(trees())
def test_parents_are_the_sums_of_their_children_before_and_after_clamping(levels):
    fitted = least_squares(levels)

    for estimates in (fitted, non_negative(fitted, levels)):
        for above, below, level in zip(estimates, estimates[1:], levels[1:], strict=False):
            assert above == pytest.approx(np.bincount(level.parents, below), abs=1e-6)


@given(trees(known_root=True))
def test_a_known_root_is_kept_and_consistent_counts_stay_as_they_are(levels):
    assert least_squares(levels)[0] == levels[0].counts

    exact = [levels[-1].counts]
    for level in levels[:0:-1]:
        exact.insert(0, np.bincount(level.parents, exact[0]).astype(np.int64))
    right = [Level(level.parents, counts, level.variance)
             for level, counts in zip(levels, exact, strict=True)]  # fmt: skip

    for ours, counts in zip(least_squares(right), exact, strict=True):
        assert ours == pytest.approx(counts, abs=1e-6)


def nearest(values, total):
    """The nearest numbers >= 0 with a given sum, by bisection."""
    low, high = values.min() - total - 1, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = ((middle, high) if np.maximum(values - middle, 0).sum() > total
                     else (low, middle))  # fmt: skip
    return np.maximum(values - high, 0)


@given(trees())
def test_clamped_counts_are_the_nearest_that_add_up(levels):
    fitted = least_squares(levels)

    clamped = non_negative(fitted, levels)

    assert clamped[0] == max(fitted[0], 0)
    for place, level in enumerate(levels[1:], 1):
        assert (clamped[place] >= 0).all()
        for node in range(level.parents.max() + 1):
            mine = level.parents == node
            expected = nearest(fitted[place][mine], clamped[place - 1][node])
            assert clamped[place][mine] == pytest.approx(expected, abs=1e-6)


counts = st.lists(st.floats(0, 50), min_size=1, max_size=30).map(np.array)


@example(np.array([5e-324]), 1, 0.0)
@example(np.array([5e-324, 0.0, 1e-310]), 7, 0.5)
@given(counts, st.integers(0, 200), st.floats(0, 1, exclude_max=True))
def test_whole_numbers_add_up_and_every_run_of_neighbours_is_right_within_one(
    given_counts, total, offset
):
    people = whole(given_counts, total, offset)

    assert people.sum() == total
    assert (people >= 0).all()
    if given_counts.sum() > 0:
        share = np.cumsum(given_counts) / given_counts.sum() * total
        apart = np.cumsum(people) - share
        assert np.ptp(np.append(apart, 0.0)) <= 1 + 1e-6


def test_whole_numbers_are_right_in_expectation():
    offsets = (np.arange(10_000) + 0.5) / 10_000

    mean = np.mean([whole(np.array([0.3, 2.5, 0.0, 1.2]), 4, u) for u in offsets], axis=0)

    assert mean == pytest.approx([0.3, 2.5, 0.0, 1.2], abs=1e-3)


def test_nobody_is_spread_evenly_where_nobody_is_counted():
    assert whole(np.zeros(4), 2, 0.5).sum() == 2


@pytest.mark.parametrize("scale", [0.3, 1.0, 17.0])
def test_the_variance_of_the_noise_is_that_of_its_distribution(scale):
    z = np.arange(-2000, 2001)
    weight = np.exp(-np.abs(z) / scale)

    assert laplace_variance(scale) == pytest.approx((weight * z**2).sum() / weight.sum())
