"""The pieces of the exact searches against plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.partition._exact_scale import centroids, squared_distances
from shoal.partition.kernels import mdav_brute as brute
from shoal.partition.kernels import mdav_tree as trees
from shoal.partition.kernels import shared


@st.composite
def clouds(draw):
    """Unit-scaled records with ties, some of them gone, and a point."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 900))
    Z = rng.uniform(-1, 1, size=(n, draw(st.integers(1, 7))))
    if draw(st.booleans()):
        Z = np.round(Z * 2) / 2
    labels = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.5])), 0, -1)
    labels[rng.integers(n)] = -1
    q = Z[rng.integers(n)] if draw(st.booleans()) else rng.uniform(-1, 1, size=Z.shape[1])
    return Z, labels, q


def nearest_twin(Z, labels, q, want):
    live = np.flatnonzero(labels < 0)
    return live[np.lexsort((live, squared_distances(Z[live], q)))][:want]


def farthest_twin(Z, labels, q):
    return int(np.argmax(np.where(labels < 0, squared_distances(Z, q), -1.0)))


def planted(Z, labels, leaf):
    """Plant a tree over all records and let those with a label leave."""
    tree = trees.plant(Z, leaf, Z.mean(axis=0))
    noted = np.zeros(len(tree.size), bool)
    for i in np.flatnonzero(labels >= 0):
        changed = np.empty(1, np.int64)
        trees.shrink(tree, noted, changed, trees.leave(tree, i, noted, changed, 0))
    return tree


@settings(max_examples=60, deadline=None)
@given(clouds())
def test_distances_are_those_of_numpy_to_the_last_bit(cloud):
    Z, _, q = cloud

    found = [shared.distance(Z, i, q) for i in range(len(Z))]

    assert found == squared_distances(Z, q).tolist()


@settings(max_examples=60, deadline=None)
@given(clouds())
def test_centroids_are_those_of_numpy_to_the_last_bit(cloud):
    Z, labels, _ = cloud
    high, low = np.empty((2, Z.shape[1]), np.int64)
    c = np.empty(Z.shape[1])

    m = shared.total_live(Z, labels, high, low)
    shared.centroid(high, low, m, c)

    assert m == (labels < 0).sum()
    np.testing.assert_array_equal(c, centroids(Z, np.where(labels < 0, 0, -1), 1)[0])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 20))
def test_the_heap_keeps_the_smallest_pairs(values, room):
    far, who = np.empty(room), np.empty(room, np.int64)
    size = 0

    for i, value in enumerate(values):
        size = shared.push(far, who, size, room, float(value), i)

    kept = sorted(zip(far[:size], who[:size], strict=True))
    assert kept == sorted((float(v), i) for i, v in enumerate(values))[:room]


@settings(max_examples=100, deadline=None)
@given(clouds(), st.sampled_from([0.0, 0.01, 0.5]))
def test_the_shell_finds_the_farthest_or_says_that_it_cannot(cloud, shift):
    Z, labels, c = cloud
    radii, who, inner = shared.outer_shell(Z, labels, int((labels < 0).sum()), c)
    q = c + shift
    moved = float(np.sqrt(((q - c) ** 2).sum()))

    found, read = shared.farthest_in_shell(Z, labels, radii, who, inner, 0, moved, q)

    assert (np.diff(radii) <= 0).all()
    assert read <= len(who)
    assert found in ({farthest_twin(Z, labels, q)} | ({-1} if shift else set()))


@settings(max_examples=60, deadline=None)
@given(clouds(), st.sampled_from([1e-4, 0.05]))
def test_a_shell_finds_one_farthest_after_the_other_until_it_helps_no_more(cloud, shift):
    Z, labels, c = cloud
    labels = labels.copy()
    shell = shared.no_shell(int((labels < 0).sum()), Z.shape[1])

    for step in range(int((labels < 0).sum())):
        m, q = int((labels < 0).sum()), c + step * shift
        found, shell = shared.farthest_out(Z, labels, m, q, shell)
        if found == shared.NOBODY:
            assert not shell.helps
            break
        assert found == farthest_twin(Z, labels, q)
        labels[found] = 0


@settings(max_examples=150, deadline=None)
@given(clouds(), st.integers(1, 12), st.sampled_from([1, 4, 32]))
def test_a_tree_finds_the_nearest_and_the_farthest(cloud, want, leaf):
    Z, labels, q = cloud
    want = min(want, int((labels < 0).sum()))
    tree = planted(Z, labels, leaf)
    near, group = np.empty(want), np.empty(want, np.int64)
    block, bounds, nodes = np.empty(leaf), np.empty(128), np.empty(128, np.int64)

    trees.nearest(tree, q, len(tree.size) // 2, want, near, group, block, bounds, nodes)
    far, _ = trees.farthest(tree, q, np.empty(len(q)), block, bounds, nodes)

    assert sorted(group) == sorted(nearest_twin(Z, labels, q, want))
    assert far == farthest_twin(Z, labels, q)


@settings(max_examples=60, deadline=None)
@given(clouds(), st.sampled_from([1, 4, 32]))
def test_every_node_bounds_the_live_records_below_it(cloud, leaf):
    Z, labels, _ = cloud
    d = Z.shape[1]
    tree = planted(Z, labels, leaf)
    leaves = len(tree.size)

    for node in range(1, 2 * leaves):
        first, last = node, node
        while first < leaves:
            first, last = 2 * first, 2 * last + 1
        rows = np.concatenate(
            [tree.who[b, : tree.size[b]] for b in range(first - leaves, last - leaves + 1)]
        )
        if len(rows):
            assert tree.nodes[node, :d].tolist() == Z[rows].min(axis=0).tolist()
            assert tree.nodes[node, d : 2 * d].tolist() == Z[rows].max(axis=0).tolist()
            assert tree.nodes[node, 2 * d] == squared_distances(Z[rows], tree.origin).max()
            assert tree.nodes[node, 2 * d + 1] == rows.min()
        else:
            assert tree.nodes[node, 2 * d + 1] == trees.EMPTY


@settings(max_examples=150, deadline=None)
@given(clouds(), st.integers(0, 12), st.sampled_from([0.0, 1e-7, 1e-3]))
def test_a_scan_in_single_precision_finds_the_nearest_and_the_farthest(cloud, want, spread):
    Z, labels, q = cloud
    if spread:
        # Records closer to one another than single precision tells apart.
        Z, q = 0.5 + Z * spread, 0.5 + q * spread
    m = int((labels < 0).sum())
    want = min(want, m)
    origin = Z.mean(axis=0)
    cells = np.zeros((m // brute.BLOCK + 1, Z.shape[1], brute.BLOCK), np.float32)
    who, where = np.empty(m, np.int64), np.empty(len(Z), np.int64)
    brute.load(Z, labels, origin, cells, who, where)
    near, group = np.empty(want + 1), np.empty(want + 1, np.int64)
    block = np.empty(brute.BLOCK, np.float32)

    far = brute.nearest(Z, q, origin, cells, who, m, want, near, group, block, True)

    assert sorted(group[:want]) == sorted(nearest_twin(Z, labels, q, want))
    assert far == farthest_twin(Z, labels, q)
    assert far == brute.farthest(Z, who, m, q)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 50, 51])
def test_the_heapsort_sorts(size):
    rng = np.random.default_rng(size)
    radii = rng.integers(0, 9, size=size).astype(float)
    who = np.arange(size)
    pairs = sorted(zip(radii, who, strict=True))

    shared.sort_outermost_first(radii, who)

    assert (np.diff(radii) <= 0).all()
    assert sorted(zip(radii, who, strict=True)) == pairs
