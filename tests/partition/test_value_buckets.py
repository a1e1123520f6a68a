"""Buckets of confidential values."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.partition import hierarchy_order, joint_buckets, rank_buckets

VALUES = st.lists(st.integers(0, 9), min_size=1, max_size=60)


@given(VALUES, st.integers(1, 8))
def test_buckets_are_runs_of_the_order_and_no_value_is_in_two(values, b):
    bucket = rank_buckets(values, b)

    order = np.argsort(values, kind="stable")
    assert (np.diff(bucket[order]) >= 0).all()
    assert len({(v, j) for v, j in zip(values, bucket.tolist(), strict=True)}) == len(set(values))
    assert set(bucket.tolist()) == set(range(int(bucket.max()) + 1))
    assert min(2, b, len(set(values))) <= bucket.max() + 1 <= b


@given(st.integers(1, 80), st.integers(1, 12))
def test_without_ties_borders_are_those_of_the_paper(n, b):
    bucket = rank_buckets(np.arange(n), b)

    ends = sorted({int(np.floor(j * n / b + 0.5)) for j in range(1, b + 1)} - {0})
    assert [int((bucket <= j).sum()) for j in range(int(bucket.max()) + 1)] == ends


@given(VALUES, st.integers(2, 5))
def test_a_border_is_nearest_to_where_it_is_wanted(values, b):
    bucket = rank_buckets(values, b)

    n = len(values)
    found = {int((bucket <= j).sum()) for j in range(int(bucket.max()) + 1)} | {0, n}
    possible = {sum(u <= v for u in values) for v in values} | {0, n}
    for j in range(1, b):
        wanted = (2 * j * n + b) // (2 * b)
        assert min(abs(e - wanted) for e in found) == min(abs(e - wanted) for e in possible)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60
    ),
    st.integers(1, 3),
    st.integers(1, 12),
)
def test_joint_buckets_are_boxes_within_the_buckets_of_the_columns_before(rows, m, b):
    columns = np.array(rows)[:, :m].T

    steps = joint_buckets(list(columns), b)

    assert steps.shape == (len(rows), m)
    assert steps[:, -1].max() < b
    before = np.zeros(len(rows), np.int64)
    for column, step in zip(columns, steps.T, strict=True):
        assert set(step.tolist()) == set(range(int(step.max()) + 1))
        for one, other in combinations(np.unique(step).tolist(), 2):
            inside, outside = step == one, step == other
            apart = set(before[inside]).isdisjoint(before[outside])
            values = set(column[inside]), set(column[outside])
            assert apart or max(values[0]) < min(values[1]) or max(values[1]) < min(values[0])
        before = step


def test_two_columns_share_the_buckets():
    grid = np.arange(36)

    assert joint_buckets([grid // 6, grid % 6], 4)[:, -1].tolist() == [
        2 * (i // 18) + (i % 6) // 3 for i in range(36)
    ]
    # Two buckets are cut by the first column alone; six are cut in two and then in three.
    assert (joint_buckets([grid // 6, grid % 6], 2)[:, -1] == grid // 18).all()
    assert np.bincount(joint_buckets([grid // 6, grid % 6], 6)[:, -1]).tolist() == [6] * 6


def test_branches_stay_together_where_masses_allow_it():
    edges = [[0, 6], [1, 6], [2, 6], [3, 7], [4, 7], [5, 7]]
    order, heights = hierarchy_order(edges)
    place = np.argsort(order)
    leaf = np.repeat(np.arange(6), [4, 4, 3, 2, 4, 3])  # 11 in one branch, 9 in the other

    flat = rank_buckets(place[leaf], 2)
    tree = rank_buckets(place[leaf], 2, heights=heights)

    assert np.bincount(flat).tolist() == [11, 9]
    assert tree.tolist() == (leaf >= 3).astype(int).tolist()
    # The nearest border would part the first branch: 8 and 12.
    leaf = np.repeat(np.arange(6), [4, 4, 4, 1, 2, 2])
    assert np.bincount(rank_buckets(place[leaf], 2)).tolist() == [8, 9]
    assert np.bincount(rank_buckets(place[leaf], 2, heights=heights)).tolist() == [8, 9]
    leaf = np.repeat(np.arange(6), [4, 4, 2, 2, 2, 3])
    assert np.bincount(rank_buckets(place[leaf], 2)).tolist() == [8, 9]
    assert np.bincount(rank_buckets(place[leaf], 2, heights=heights)).tolist() == [10, 7]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: rank_buckets([1.0], 0),
            "The number of buckets b must be a whole number of at least 1; found 0",
        ),
        (lambda: joint_buckets([], 2), "at least one column"),
        (lambda: joint_buckets([[1], [1, 2]], 2), "equally long"),
        (lambda: rank_buckets([0, 5], 2, heights=[1, 1]), "from 0 to 2"),
        (lambda: rank_buckets([0.5], 2, heights=[1, 1]), "from 0 to 2"),
    ],
)
def test_wrong_input_is_told(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
