"""The pieces of the exact searches against plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.partition._exact_scale import centroids
from shoal.partition.kernels import mdav_brute as brute
from shoal.partition.kernels import mdav_tree as trees
from shoal.partition.kernels import shared

NOTHING = np.empty(0)


@st.composite
def clouds(draw):
    """Unit-scaled records with ties and codes, some of them gone, and a record or a centroid."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(1, 900)), draw(st.integers(0, 7))
    Z = rng.uniform(-1, 1, size=(n, d))
    if draw(st.booleans()):
        Z = np.round(Z * 2) / 2
    many = draw(st.lists(st.sampled_from([1, 3, 70]), min_size=d == 0, max_size=3))
    codes = np.array([rng.integers(0, most + 1, size=n) for most in many]).reshape(len(many), n)
    Z = np.hstack([Z, codes.T])
    start = np.concatenate([[0], np.cumsum(np.array(many, np.int64) + 1)]).astype(np.int64)
    space = shared.MixedSpace(d, rng.choice([0.25, 1 / 3, 0.9], size=len(many)), start)
    labels = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.5])), 0, -1)
    labels[rng.integers(n)] = -1
    if draw(st.booleans()):
        return Z, space, labels, record(Z[rng.integers(n)])
    q = centre_of(Z[rng.random(n) < 0.5] if n > 9 else Z[:1], space)
    q.at[:d] = rng.uniform(-1, 1, size=d)
    return Z, space, labels, q


def record(at):
    return shared.QueryPoint(at, NOTHING, NOTHING, NOTHING)


def centre_of(rows, space):
    """The centroid of some records, by numpy."""
    d, m = space.numbers, max(len(rows), 1)
    at = np.zeros(d + len(space.weight))
    if d:
        at[:d] = centroids(rows[:, :d], np.zeros(len(rows), np.int64), 1)[0]
    shares, table = np.zeros((2, space.start[-1]))
    top = np.zeros(len(space.weight))
    for c, weight in enumerate(space.weight):
        first, last = space.start[c : c + 2]
        counts = np.bincount(rows[:, d + c].astype(int), minlength=last - first)
        counts[0] = 0
        spread = float((counts**2).sum()) / m / m
        shares[first:last] = counts / m
        table[first:last] = np.maximum((spread + (1.0 - 2.0 * shares[first:last])) * weight, 0.0)
        table[first] = spread * weight
        top[c] = table[first:last].max()
    return shared.QueryPoint(at, shares, table, top)


def distances(Z, q, space):
    """Squared distances to a point in column order, by numpy."""
    d = space.numbers
    total = np.zeros(len(Z))
    for j in range(d):
        total += (Z[:, j] - q.at[j]) ** 2
    for c, weight in enumerate(space.weight):
        codes = Z[:, d + c]
        if q.table.size:
            total += q.table[space.start[c] + codes.astype(int)]
        else:
            edges = (codes > 0).astype(float) + float(q.at[d + c] > 0)
            total += np.where(codes == q.at[d + c], 0.0, weight * edges)
    return total


def nearest_twin(Z, space, labels, q, want):
    live = np.flatnonzero(labels < 0)
    return live[np.lexsort((live, distances(Z[live], q, space)))][:want]


def farthest_twin(Z, space, labels, q):
    return int(np.argmax(np.where(labels < 0, distances(Z, q, space), -1.0)))


def planted(Z, space, labels, leaf):
    """Plant a tree over all records and let those with a label leave."""
    tree = trees.plant(Z, space, leaf, Z.mean(axis=0))
    noted = np.zeros(len(tree.size), bool)
    for i in np.flatnonzero(labels >= 0):
        changed = np.empty(1, np.int64)
        changes = trees.leave(tree, i, noted, changed, 0)
        trees.shrink(tree, space, noted, changed, changes)
    return tree


@settings(max_examples=60, deadline=None)
@given(clouds())
def test_distances_are_those_of_numpy_to_the_last_bit(cloud):
    Z, space, _, q = cloud

    found = [shared.distance(Z, i, q, space) for i in range(len(Z))]

    assert found == distances(Z, q, space).tolist()


@settings(max_examples=60, deadline=None)
@given(clouds())
def test_centroids_are_those_of_numpy_to_the_last_bit(cloud):
    Z, space, labels, _ = cloud
    sums, c = shared.no_sums(space), shared.no_centroid(space)

    m = shared.total_live(Z, labels, sums, space)
    shared.centroid(sums, m, c, space)

    assert m == (labels < 0).sum()
    for ours, theirs in zip(c, centre_of(Z[labels < 0], space), strict=True):
        np.testing.assert_array_equal(ours, theirs)


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
    Z, space, labels, _ = cloud
    c = centre_of(Z, space)
    radii, who, inner = shared.outer_shell(Z, labels, int((labels < 0).sum()), c, space)
    q = centre_of(Z[: max(1, round(len(Z) * (1 - shift)))], space)
    moved = float(np.sqrt(shared.gap(q, c, space)))

    found, read = shared.farthest_in_shell(Z, labels, radii, who, inner, 0, moved, q, space)

    assert (np.diff(radii) <= 0).all()
    assert read <= len(who)
    assert found in ({farthest_twin(Z, space, labels, q)} | ({-1} if shift else set()))


@settings(max_examples=60, deadline=None)
@given(clouds())
def test_a_shell_finds_one_farthest_after_the_other_until_it_helps_no_more(cloud):
    Z, space, labels, _ = cloud
    labels = labels.copy()
    shell = shared.no_shell(int((labels < 0).sum()), space)

    for _ in range(int((labels < 0).sum())):
        m, q = int((labels < 0).sum()), centre_of(Z[labels < 0], space)
        found, shell = shared.farthest_out(Z, labels, m, q, shell, space)
        if found == shared.NOBODY:
            assert not shell.helps
            break
        assert found == farthest_twin(Z, space, labels, q)
        labels[found] = 0


@settings(max_examples=150, deadline=None)
@given(clouds(), st.integers(1, 12), st.sampled_from([1, 4, 32]))
def test_a_tree_finds_the_nearest_and_the_farthest(cloud, want, leaf):
    Z, space, labels, q = cloud
    want = min(want, int((labels < 0).sum()))
    tree = planted(Z, space, labels, leaf)
    near, group = np.empty(want), np.empty(want, np.int64)
    block, bounds, nodes = np.empty(leaf), np.empty(128), np.empty(128, np.int64)
    r = record(Z[len(Z) // 2])

    trees.nearest(tree, r, space, len(tree.size) // 2, want, near, group, block, bounds, nodes)
    far, _ = trees.farthest(tree, q, space, np.empty(Z.shape[1]), block, bounds, nodes)

    assert sorted(group) == sorted(nearest_twin(Z, space, labels, r, want))
    assert far == farthest_twin(Z, space, labels, q)


@settings(max_examples=60, deadline=None)
@given(clouds(), st.sampled_from([1, 4, 32]))
def test_every_node_bounds_the_live_records_below_it(cloud, leaf):
    Z, space, labels, _ = cloud
    d, numbers = Z.shape[1], space.numbers
    tree = planted(Z, space, labels, leaf)
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
            reach = ((Z[rows, :numbers] - tree.origin[:numbers]) ** 2).sum(axis=1).max()
            assert tree.nodes[node, 2 * d] == pytest.approx(reach, rel=1e-14)
            assert tree.nodes[node, 2 * d + 1] == rows.min()
        else:
            assert tree.nodes[node, 2 * d + 1] == trees.EMPTY


@settings(max_examples=150, deadline=None)
@given(clouds(), st.integers(0, 12), st.sampled_from([0.0, 1e-7, 1e-3]))
def test_a_scan_in_single_precision_finds_the_nearest_and_the_farthest(cloud, want, spread):
    Z, space, labels, q = cloud
    d = space.numbers
    Z, q = Z.copy(), q._replace(at=q.at.copy())
    if spread:
        # Records closer to one another than single precision tells apart.
        Z[:, :d], q.at[:d] = 0.5 + Z[:, :d] * spread, 0.5 + q.at[:d] * spread
        space = space._replace(weight=space.weight * spread**2)
        q = q._replace(table=q.table * spread**2)
    m = int((labels < 0).sum())
    want = min(want, m)
    origin = np.append(Z.mean(axis=0)[:d], np.zeros(Z.shape[1] - d))
    cells = np.zeros((m // brute.BLOCK + 1, Z.shape[1], brute.BLOCK), np.float32)
    who, where = np.empty(m, np.int64), np.empty(len(Z), np.int64)
    brute.load(Z, labels, origin, cells, who, where)
    near, group = np.empty(want + 1), np.empty(want + 1, np.int64)
    block = np.empty(brute.BLOCK, np.float32)

    far = brute.nearest(Z, q, space, origin, cells, who, m, want, near, group, block, True)

    assert sorted(group[:want]) == sorted(nearest_twin(Z, space, labels, q, want))
    assert far == farthest_twin(Z, space, labels, q)
    assert far == brute.farthest(Z, who, m, q, space)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 50, 51])
def test_the_heapsort_sorts(size):
    rng = np.random.default_rng(size)
    radii = rng.integers(0, 9, size=size).astype(float)
    who = np.arange(size)
    pairs = sorted(zip(radii, who, strict=True))

    shared.sort_outermost_first(radii, who)

    assert (np.diff(radii) <= 0).all()
    assert sorted(zip(radii, who, strict=True)) == pairs
