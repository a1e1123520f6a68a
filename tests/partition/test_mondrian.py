import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.partition import blocks, individual_ranking, mdav, median_cut
from shoal.partition.mixed_records import mixed_records, scale, within_groups


@st.composite
def tables(draw):
    n = draw(st.integers(2, 120))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, draw(st.integers(1, 3))))
    return np.round(X) if draw(st.booleans()) else X


def cut_twin(X, rows, least):
    """Halve the rows by rank in the column of the largest variance, low half first."""
    if len(rows) < 2 * least:
        return [rows]
    j = int(
        np.argmax(np.var(X[rows] / np.abs(X[rows]).max() if X[rows].any() else X[rows], axis=0))
    )
    ranked = sorted(rows, key=lambda i: (X[i, j], i))
    low, high = ranked[: len(rows) // 2], ranked[len(rows) // 2 :]
    return cut_twin(X, sorted(low), least) + cut_twin(X, sorted(high), least)


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(1, 30))
def test_medians_are_cut_as_defined_and_every_block_is_large_enough(X, least):
    cut = median_cut(X, least)

    parts = cut_twin(X, list(range(len(X))), least)
    assert [np.flatnonzero(cut.labels == b).tolist() for b in range(len(cut))] == parts
    assert cut.sizes.min() >= min(least, len(X))
    assert cut.sizes.max() < 2 * least or len(cut) == 1


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(2, 5), st.integers(5, 30))
def test_each_block_is_partitioned_by_itself(X, k, least):
    k = min(k, len(X))

    partition = blocks(X, k, least=least)

    cut = median_cut(X, least)
    groups = 0
    for block in range(len(cut)):
        inside = cut.labels == block
        own = mdav(X[inside], k)
        np.testing.assert_array_equal(partition.labels[inside], own.labels + groups)
        groups += len(own)
    assert partition.sizes.min() >= k


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(1, 6), st.integers(5, 30), st.integers(0, 2**32))
def test_categories_stay_whole_and_small_ones_are_taken_together(X, categories, least, seed):
    by = np.random.default_rng(seed).integers(0, categories, size=len(X)) * 3

    seen = []
    blocks(X, 2, by=by, least=least, method=lambda part, k: seen.append(part) or mdav(part, k))

    assert sum(len(part) for part in seen) == len(X)
    assert all(len(part) >= least for part in seen) or len(seen) == 1


def test_a_category_is_never_shared_by_two_blocks():
    by = np.repeat([4, 1, 7, 2], [30, 10, 5, 40])
    X = np.arange(85.0)[:, None]
    homes = []

    blocks(X, 2, by=by, least=20, method=lambda part, k: homes.append(part[:, 0]) or mdav(part, k))

    # Blocks are formed side by side, in no order.
    assert sorted(sorted({by[int(i)] for i in home}) for home in homes) == [[1, 2], [4, 7]]


def test_small_tables_are_one_block():
    X = np.random.default_rng(17).normal(size=(500, 3))

    assert blocks(X, 5) == mdav(X, 5)


def test_other_methods_can_be_used_within_blocks():
    X = np.random.default_rng(18).normal(size=(100, 1))

    partition = blocks(X, 5, least=25, method=lambda part, k: individual_ranking(part[:, 0], k))

    assert partition.sizes.tolist() == [5] * 20


def test_blocks_lose_little_against_the_whole_table():
    X = np.random.default_rng(19).normal(size=(40_000, 2))
    Z = scale(mixed_records(X))

    ratio = within_groups(Z, blocks(X, 5).labels) / within_groups(Z, mdav(X, 5).labels)

    assert ratio <= 1.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"least": 3}, "A block of 3 records cannot hold a group of k=5."),
        (
            {"by": [0, 1]},
            "The argument by must give a non-negative whole number for each of the 10 records.",
        ),
        (
            {"by": [0.5] * 10},
            "The argument by must give a non-negative whole number for each of the 10 records.",
        ),
        (
            {"by": [-1] * 10},
            "The argument by must give a non-negative whole number for each of the 10 records.",
        ),
    ],
)
def test_blocks_that_cannot_be_are_refused(options, message):
    with pytest.raises(InputError) as refusal:
        blocks(np.zeros((10, 1)), 5, **options)

    assert str(refusal.value) == message


def test_progress_is_told_after_each_block():
    calls = []

    blocks(np.arange(40.0)[:, None], 2, least=10, progress=lambda *call: calls.append(call))

    assert calls == [("blocks", done, 40) for done in (10, 20, 30, 40)]
