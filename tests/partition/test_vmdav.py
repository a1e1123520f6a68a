import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.partition import mdav, vmdav
from shoal.partition._exact_scale import centroids, squared_distances, unit_scaled
from shoal.partition.mixed_records import mixed_records, scale, within_groups


def vmdav_twin(X, k, gamma):
    """V-MDAV by its definition, with the whole matrix of squared distances."""
    Z = unit_scaled(np.asarray(X, float))
    n = len(Z)
    far = np.array([squared_distances(Z, z) for z in Z])
    from_mean = squared_distances(Z, centroids(Z, np.zeros(n, int), 1)[0])
    free = set(range(n))
    groups = []
    while len(free) >= k:
        e = min(free, key=lambda i: (-from_mean[i], i))
        group = [e, *sorted(free - {e}, key=lambda i: (far[e, i], i))[: k - 1]]
        free -= set(group)
        while len(group) < 2 * k - 1 and len(free) >= 2 and len(free) != k:
            d_in, u = min((min(far[m, i] for m in group), i) for i in free)
            d_out = min(far[u, i] for i in free - {u})
            if not d_in < gamma * gamma * d_out:
                break
            group.append(u)
            free.remove(u)
        groups.append(group)
    labels = np.full(n, -1)
    for g, group in enumerate(groups):
        labels[group] = g
    means = centroids(Z, labels, len(groups))
    sizes = [len(group) for group in groups]
    for i in sorted(free):
        near = squared_distances(means, Z[i])
        labels[i] = min(
            (g for g in range(len(groups)) if sizes[g] < 2 * k - 1), key=lambda g: (near[g], g)
        )
        sizes[labels[i]] += 1
    return labels


@st.composite
def tables(draw):
    k = draw(st.integers(2, 6))
    n = draw(st.integers(k, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        return rng.integers(0, 5, size=(n, draw(st.integers(1, 3)))).astype(float), k
    return rng.normal(size=(n, draw(st.integers(1, 4)))), k


@settings(max_examples=150, deadline=None)
@given(tables(), st.sampled_from([0.0, 0.2, 0.8, 1.1, 3.0]))
def test_every_table_gets_the_partition_of_the_definition(table, gamma):
    X, k = table

    partition = vmdav(X, k, gamma=gamma)

    np.testing.assert_array_equal(partition.labels, vmdav_twin(X, k, gamma))


@settings(max_examples=100, deadline=None)
@given(tables(), st.sampled_from([None, 0.0, 0.5, 100.0]))
def test_every_group_has_k_to_2k_minus_1_records(table, gamma):
    X, k = table

    sizes = vmdav(X, k, gamma=gamma).sizes

    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


def clusters(rng, sizes):
    """Draw compact clusters on a grid of four columns, far from one another."""
    centres = np.array(list(np.ndindex(3, 3, 3, 3)))[rng.permutation(81)[: len(sizes)]] * 10.0
    return np.repeat(centres, sizes, axis=0) + rng.normal(size=(sum(sizes), 4))


def test_equal_clusters_cost_at_most_a_twentieth_more_than_mdav():
    rng = np.random.default_rng(4)
    X = clusters(rng, [20] * 50)
    Z = scale(mixed_records(X))

    ratio = within_groups(Z, vmdav(X, 5).labels) / within_groups(Z, mdav(X, 5).labels)

    assert ratio <= 1.05


def test_clusters_of_five_to_nine_are_found_where_mdav_mixes_them():
    rng = np.random.default_rng(5)
    X = clusters(rng, rng.integers(5, 10, size=50).tolist())
    Z = scale(mixed_records(X))

    ratio = within_groups(Z, vmdav(X, 5).labels) / within_groups(Z, mdav(X, 5).labels)

    assert ratio <= 0.8


@pytest.mark.parametrize("gamma", [-0.1, float("nan"), float("inf")])
def test_a_gamma_that_is_no_scale_is_refused(gamma):
    with pytest.raises(
        InputError,
        match=r"^The argument gamma, how willingly a group grows, must be a finite "
        r"number of at least 0, or None\.$",
    ):
        vmdav(np.zeros((4, 1)), 2, gamma=gamma)
