import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import MixedRecords
from shoal.errors import InputError
from shoal.partition import mdav
from shoal.partition.coarse_tree import centre_of, coarse_cells
from shoal.partition.kernels.coarse_tree import tally_grid


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(60, 600), st.integers(1, 4), st.integers(1, 12))
def test_every_record_is_in_one_cell_and_merged_cells_are_large_enough(seed, n, d, values):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (n, d)).astype(np.float64)
    sample = X[rng.random(n) < 0.5]
    if len(sample) < 10:
        return
    tree = coarse_cells(sample, n, 2, size=40, least=20, method=mdav)
    sizes = np.bincount(tree.route(X), minlength=tree.count)

    merged = tree.merge_small(sizes, 20)
    after = np.bincount(merged.route(X), minlength=merged.count)

    assert sizes.sum() == after.sum() == n
    assert len(after) == merged.count <= tree.count
    assert merged.count == 1 or after.min() >= 20


def test_cuts_go_through_the_gap():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(size=(500, 2)), np.array([40.0, 0.0]) + rng.normal(size=(480, 2))]
    )

    tree = coarse_cells(X, len(X), 5, size=400, least=200, method=mdav)

    assert tree.count == 2
    assert set(tree.route(X)[:500].tolist()) == {int(tree.route(X)[0])}


def test_equal_records_are_one_cell():
    tree = coarse_cells(np.ones((300, 2)), 300, 5, size=50, least=20, method=mdav)

    assert tree.count == 1
    assert not tree.route(np.ones((4, 2))).any()


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="k <= least <= size"):
        coarse_cells(np.zeros((10, 1)), 10, 5, size=3, least=4, method=mdav)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_counts_on_a_grid_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, (50, 2)).astype(np.float64)
    slot = rng.integers(-1, 2, 50)
    grids = [np.unique(rng.integers(0, 9, 3)).astype(np.float64) for _ in range(4)]
    first = np.zeros((2, 3), np.int64)
    ends = np.cumsum([0, *map(len, grids)])
    first[0], first[1] = ends[:3], ends[2:]
    edges = np.concatenate(grids)
    counts = np.zeros(2 * len(edges) + 4, np.int64)
    limits = np.array([[np.inf] * 2, [-np.inf] * 2] * 2)

    tally_grid(X, slot, edges, first, limits, counts)

    for s in range(2):
        for j in range(2):
            own, x = grids[2 * s + j], X[slot == s, j]
            place = np.searchsorted(own, x, "left") + np.searchsorted(own, x, "right")
            begin = 2 * first[s, j] + 2 * s + j
            found = counts[begin : begin + 2 * len(own) + 1]
            assert found.tolist() == np.bincount(place, minlength=2 * len(own) + 1).tolist()
            if x.size:
                assert (limits[2 * s, j], limits[2 * s + 1, j]) == (x.min(), x.max())


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(60, 400), st.integers(1, 9))
def test_codes_and_numbers_are_cut_into_cells_that_are_large_enough(seed, n, values):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, values, (n, 1)).astype(np.float64)
    codes = np.column_stack([rng.integers(0, values, n), rng.integers(1, 4, n)])
    records = MixedRecords(numbers, codes, np.array([0.7, 1.5]))
    sample = records.take(np.flatnonzero(rng.random(n) < 0.7))
    tree = coarse_cells(sample, n, 2, size=40, least=20, method=mdav)

    merged = tree.merge_small(np.bincount(tree.route(records), minlength=tree.count), 20)
    sizes = np.bincount(merged.route(records), minlength=merged.count)

    assert sizes.sum() == n
    assert merged.count == 1 or sizes.min() >= 20


def test_the_centre_of_codes_is_that_of_one_axis_per_code():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 4, (200, 1))
    records = MixedRecords(rng.normal(size=(200, 1)), codes, np.array([0.7]))
    axes = np.hstack([records.numbers, np.sqrt(0.7) * (codes == np.arange(1, 4))])

    far = centre_of(records).distances(records)

    assert np.allclose(far, ((axes - axes.mean(axis=0)) ** 2).sum(axis=1))


def test_categories_are_cut_apart_before_numbers_that_lie_close():
    rng = np.random.default_rng(2)
    codes = rng.integers(1, 3, (1000, 1))
    records = MixedRecords(rng.normal(size=(1000, 1)), codes, np.array([2.0]))

    tree = coarse_cells(records, 1000, 5, size=400, least=200, method=mdav)

    assert [set(tree.route(records)[codes[:, 0] == code].tolist()) for code in (1, 2)] == [{0}, {1}]
