import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import MixedRecords
from shoal.partition import mdav, mu_approx
from shoal.partition._exact_scale import centroids, squared_distances, unit_scaled
from shoal.partition.mixed_records import mixed_records, scale, within_groups


def mu_approx_twin(X, k):
    """Forest and decomposition by their definition, on sets and lists."""
    Z = unit_scaled(np.asarray(X, float))
    n = len(Z)
    far = np.array([squared_distances(Z, z) for z in Z])
    onto = [None] * n
    component = [{i} for i in range(n)]
    for i in range(n):
        while len(component[i]) < k:
            root = next(j for j in component[i] if onto[j] is None)
            outside = set(range(n)) - component[i]
            onto[root] = min(outside, key=lambda j: (far[root, j], j))
            merged = component[i] | component[onto[root]]
            for j in merged:
                component[j] = merged
    groups = []
    for tree in {id(c): c for c in component}.values():
        groups += [tree] if len(tree) < 2 * k else _cut(Z, k, tree, onto, far)
    return {frozenset(group) for group in groups}


def _cut(Z, k, tree, onto, far):
    groups = []

    def gather(v):
        bag = []
        kids = [j for j in tree if onto[j] == v]
        for part in [*sorted(kids, key=lambda j: (-far[j, v], j)), None]:
            bag += [v] if part is None else gather(part)
            if len(bag) >= k:
                groups.append(bag)
                bag = []
        return bag

    left = gather(next(j for j in tree if onto[j] is None))
    if left:
        mean = {id(g): centroids(Z[g], np.zeros(len(g), int), 1) for g in groups}
        middle = centroids(Z[left], np.zeros(len(left), int), 1)[0]
        best = min(squared_distances(mean[id(g)], middle)[0] for g in groups)
        nearest = [g for g in groups if squared_distances(mean[id(g)], middle)[0] == best]
        assert len(nearest) == 1
        groups.remove(nearest[0])
        members = np.array(sorted(nearest[0] + left))
        if len(members) < 2 * k:
            return [*groups, members.tolist()]
        side = mdav(Z[members], k).labels
        return [*groups, members[side == 0].tolist(), members[side == 1].tolist()]
    return groups


@st.composite
def tables(draw):
    k = draw(st.integers(2, 6))
    n = draw(st.integers(k, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return rng.normal(size=(n, draw(st.integers(1, 4)))), k


@settings(max_examples=150, deadline=None)
@given(tables())
def test_every_table_gets_the_groups_of_the_two_procedures(table):
    X, k = table

    labels = mu_approx(X, k).labels

    groups = {frozenset(np.flatnonzero(labels == g).tolist()) for g in range(labels.max() + 1)}
    assert groups == mu_approx_twin(X, k)


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(1, 6))
def test_every_group_has_k_to_2k_minus_1_records_even_where_many_are_equal(table, distinct):
    X, k = table
    X = np.round(X * distinct / 2)

    sizes = mu_approx(X, k).sizes

    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


def test_groups_are_numbered_by_their_lowest_index():
    X = np.random.default_rng(6).normal(size=(200, 2))

    labels = mu_approx(X, 4).labels

    firsts = [np.flatnonzero(labels == g)[0] for g in range(labels.max() + 1)]
    assert firsts == sorted(firsts)


def test_separate_clusters_of_five_to_nine_are_found():
    rng = np.random.default_rng(7)
    sizes = rng.integers(5, 10, size=50)
    centres = np.array(list(np.ndindex(8, 8)))[:50] * 20.0
    X = np.repeat(centres, sizes, axis=0) + rng.normal(size=(sizes.sum(), 2))
    Z = scale(mixed_records(X))

    partition = mu_approx(X, 5)

    assert sorted(partition.sizes) == sorted(sizes)
    assert within_groups(Z, partition.labels) < 0.1 * within_groups(Z, mdav(X, 5).labels)


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(1, 12), st.sampled_from([0.25, 0.5, 1.0]))
def test_codes_get_the_groups_of_an_axis_for_each(table, codes, weight):
    """No distances tie where numbers are continuous, so rounding decides nothing."""
    X, k = table
    column = np.random.default_rng(len(X)).integers(0, codes + 1, len(X))
    axes = np.sqrt(weight) * (column[:, None] == np.arange(1, codes + 1))

    found = mu_approx(MixedRecords(X, column[:, None], np.array([weight])), k)

    assert found == mu_approx(np.hstack([X, axes]), k)
