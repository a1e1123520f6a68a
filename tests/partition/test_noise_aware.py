"""Groups of least squares plus noise: the optimum of one column, and the search in several."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import Partition
from shoal.errors import InputError
from shoal.partition import grouping_cost, mdav, noise_aware
from shoal.partition.noise_aware import EVERY, _sizes

noises = st.sampled_from([0.0, 0.25, 1.0, 3.5, 20.0, 500.0, 1e9])


def exact_cost(group, noise):
    """Squares around the mean plus noise over the size, in fractions."""
    mean = Fraction(sum(group), len(group))
    return sum((x - mean) ** 2 for x in group) + Fraction(noise) / len(group)


def least_of_runs(values, noise):
    """The slow twin: every beginning of every run of the sorted values."""
    v, best = sorted(values), [Fraction(0)]
    for i in range(1, len(v) + 1):
        best.append(min(best[j] + exact_cost(v[j:i], noise) for j in range(i)))
    return best[-1]


def groupings(values):
    """Every way to group some values, runs or not."""
    if not values:
        yield []
        return
    first, rest = values[0], values[1:]
    for grouping in groupings(rest):
        yield [[first], *grouping]
        for i, group in enumerate(grouping):
            yield [*grouping[:i], [first, *group], *grouping[i + 1 :]]


@given(st.lists(st.integers(-60, 60), min_size=1, max_size=40), noises)
def test_groups_of_one_column_cost_what_the_slow_twin_finds(values, noise):
    x = np.array(values, dtype=float)[:, None]

    found = noise_aware(x, noise)

    assert grouping_cost(x, found, noise) == pytest.approx(float(least_of_runs(values, noise)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=7), noises)
@settings(max_examples=25)
def test_no_grouping_of_a_column_is_cheaper_be_it_of_runs_or_not(values, noise):
    least = min(sum(exact_cost(group, noise) for group in one) for one in groupings(values))

    assert least_of_runs(values, noise) == least


@given(st.integers(0, 999), st.floats(1e-6, 1e3), st.sampled_from([1e-9, 1.0, 1e9]))
@settings(max_examples=25)
def test_groups_of_one_column_are_runs_and_follow_a_change_of_unit_and_origin(seed, noise, unit):
    x = np.random.default_rng(seed).exponential(size=(200, 1))

    found = noise_aware(x, noise)
    moved = noise_aware(unit * (7.0 - x), unit**2 * noise)

    assert grouping_cost(x, moved, noise) == pytest.approx(grouping_cost(x, found, noise))
    ends = sorted(
        (x[found.labels == g].min(), x[found.labels == g].max()) for g in set(found.labels)
    )
    assert all(one[1] <= other[0] for one, other in pairwise(ends))


def test_a_long_column_takes_no_more_than_its_sorting_and_a_logarithm():
    """A program that looked at every beginning would take hours."""
    x = np.random.default_rng(0).normal(size=(200_000, 1))

    few, many = (len(noise_aware(x, noise)) for noise in (1e4, 1e-4))

    assert 1 < few < 200 < many


@given(st.integers(1, 60), st.integers(1, 3), st.integers(0, 999), noises)
@settings(max_examples=60)
def test_groups_of_several_columns_never_cost_more_than_those_of_any_k(n, columns, seed, noise):
    X = np.random.default_rng(seed).exponential(size=(n, columns)).round(1)

    cost = grouping_cost(X, noise_aware(X, noise), noise)

    for k in range(2, n + 1):
        assert cost <= grouping_cost(X, mdav(X, k), noise) * (1 + 1e-9) + 1e-12


def test_the_search_gains_on_every_k_where_clusters_have_different_sizes():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(c, 0.05, size=(m, 2)) for c, m in ((0, 7), (3, 40), (6, 133))])

    found = noise_aware(X, 20.0)
    fixed = min(grouping_cost(X, mdav(X, k), 20.0) for k in range(2, 181))

    assert sorted(found.sizes) == [7, 40, 133]
    assert grouping_cost(X, found, 20.0) < 0.5 * fixed


def test_a_large_table_is_tried_with_eight_sizes_for_each_doubling():
    sizes = _sizes(EVERY + 1)
    X = np.random.default_rng(2).random((EVERY + 1, 2))

    cost = grouping_cost(X, noise_aware(X, 30.0), 30.0)

    assert sizes[:3] == [EVERY + 1, (EVERY + 1) // 2, 1878]
    assert set(range(2, 17)) <= set(sizes)
    assert len(sizes) < 80
    assert all(cost <= grouping_cost(X, mdav(X, k), 30.0) for k in sizes if k > 60)


def test_all_records_are_alone_without_noise_and_together_with_much():
    X = np.repeat(np.arange(5.0), 2)[:, None] * [1, 2]

    assert len(noise_aware(X, 0)) == 10
    assert len(noise_aware(X, 1e300)) == len(noise_aware(1e-200 * X, 1.0)) == 1
    assert len(noise_aware(np.ones((4, 1)), 1e-300)) == 1
    assert noise_aware([[1.0, 2.0]], 3.0) == Partition([0])


@pytest.mark.parametrize("noise", [-1.0, np.nan, np.inf])
def test_noise_is_a_number_from_zero(noise):
    with pytest.raises(InputError, match="a number of at least 0"):
        noise_aware([[1.0]], noise)


def test_a_table_without_records_has_no_groups():
    with pytest.raises(InputError, match="without records"):
        noise_aware(np.empty((0, 2)), 1.0)
