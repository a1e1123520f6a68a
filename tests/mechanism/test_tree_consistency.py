import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanism.tree_consistency import (
    Level,
    laplace_variance,
    least_squares,
    non_negative,
    whole,
)


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
