from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import Partition
from shoal.errors import InputError
from shoal.partition import PartitionChange, insensitivity, mdav, stability, stable


@st.composite
def pairs(draw):
    k = draw(st.integers(2, 4))
    n = draw(st.integers(k, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, draw(st.integers(1, 3))))
    Y = X.copy()
    row = draw(st.integers(0, n - 1))
    Y[row] = rng.normal(size=X.shape[1]) * 3
    return X, Y, k, row


def stable_twin(X, Y, k, row):
    """Algorithm 1, line by line, with the loss over the whole table."""
    c_x = [set(np.flatnonzero(mdav(X, k).labels == g)) for g in range(len(mdav(X, k)))]
    mean = [X[sorted(c)].mean(axis=0) for c in c_x]
    d = {i: np.linalg.norm(Y[row] - mean[i]) for i in range(len(c_x))}
    own = next(i for i, c in enumerate(c_x) if row in c)
    if min(d, key=d.get) == own:
        return c_x
    del d[own]
    for j in d:
        d[j] += np.linalg.norm(mean[own] - mean[j])
    other = min(d, key=d.get)
    results = []
    for member in sorted(c_x[other]):
        c_y = [set(c) for c in c_x]
        c_y[own] = c_x[own] - {row} | {member}
        c_y[other] = c_x[other] - {member} | {row}
        loss = sum(
            (np.abs(Y[sorted(c)] - Y[sorted(c)].mean(axis=0)) / Y.std(axis=0, ddof=1)).sum()
            for c in c_y
        )
        results.append((loss, c_y))
    least = min(loss for loss, _ in results)
    return next(c_y for loss, c_y in results if loss <= least * (1 + 1e-12))


@settings(max_examples=150, deadline=None)
@given(pairs())
def test_the_pair_is_grouped_as_algorithm_1_says(pair):
    X, Y, k, row = pair

    before, after = stable(X, Y, k)

    assert before == mdav(X, k)
    groups = [set(np.flatnonzero(after.labels == g)) for g in range(len(after))]
    assert groups == stable_twin(X, Y, k, row)


@settings(max_examples=150, deadline=None)
@given(pairs())
def test_at_most_two_groups_differ_by_one_record(pair):
    X, Y, k, row = pair

    change = stability(*stable(X, Y, k), row)

    assert change.groups <= 2
    assert change.records <= 1


def test_equal_tables_have_equal_groups():
    X = np.random.default_rng(15).normal(size=(20, 2))

    before, after = stable(X, X, 3)

    assert before == after


def test_mdav_is_neither_insensitive_nor_stable():
    rng = np.random.default_rng(16)
    X = rng.normal(size=(60, 2))
    changes = []
    for row in range(len(X)):
        Y = X.copy()
        Y[row] = rng.normal(size=2)
        changes.append(stability(mdav(X, 5), mdav(Y, 5), row))

    assert max(change.groups for change in changes) > 2
    assert max(change.records for change in changes) > 1


def by_all_bijections(before, after, record):
    """Change by its definition: try all bijections, new and old record told apart."""
    side = max(len(before), len(after))
    one = [{(i, i == record) for i in np.flatnonzero(before.labels == g)} for g in range(side)]
    two = [{(i, 2 * (i == record)) for i in np.flatnonzero(after.labels == g)} for g in range(side)]
    best = None
    for order in permutations(range(side)):
        gaps = [max(len(one[g] - two[h]), len(two[h] - one[g])) for g, h in enumerate(order)]
        found = (sum(gap > 0 for gap in gaps), max(gaps))
        best = found if best is None else min(best, found)
    return PartitionChange(*best)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 5), st.integers(5, 14))
def test_the_change_is_that_of_the_best_of_all_bijections(seed, g, h, n):
    rng = np.random.default_rng(seed)
    before = Partition(rng.permutation(np.concatenate([np.arange(g), rng.integers(0, g, n - g)])))
    after = Partition(rng.permutation(np.concatenate([np.arange(h), rng.integers(0, h, n - h)])))
    record = int(rng.integers(n))

    change = stability(before, after, record)

    assert change == by_all_bijections(before, after, record)
    assert insensitivity(before, after, record) == change.records


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (
            np.zeros((4, 1)),
            np.zeros((5, 1)),
            "The two tables X and Y must have the same shape; found (4, 1) and (5, 1).",
        ),
        (
            np.zeros((4, 1)),
            np.ones((4, 1)),
            "The two tables X and Y must differ in exactly one record; they differ in 4.",
        ),
    ],
)
def test_tables_that_are_no_neighbours_are_refused(X, Y, message):
    with pytest.raises(InputError) as refusal:
        stable(X, Y, 2)

    assert str(refusal.value) == message


def test_partitions_of_other_rows_are_refused():
    with pytest.raises(InputError, match="same rows"):
        stability(Partition([0, 0]), Partition([0, 0, 0]), 0)
