import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import MixedRecords, Partition
from shoal.partition.merging import medoids, merge_groups, nearest_others


@st.composite
def mixed(draw):
    """Records with many ties, and all squared distances, a missing code included."""
    n, values = draw(st.integers(2, 120)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X, codes = rng.integers(0, values, (n, 2)) / 4.0, rng.integers(0, values, (n, 1))
    step = 0.5 * ((codes > 0) + 1.0 * (codes > 0).T)
    far = ((X[:, None] - X) ** 2).sum(axis=2) + np.where(codes == codes.T, 0.0, step)
    groups = np.unique(rng.integers(0, draw(st.integers(2, n)), n), return_inverse=True)[1]
    return MixedRecords(X, codes, np.array([0.5])), far, Partition(groups)


@settings(max_examples=100, deadline=None)
@given(mixed())
def test_the_nearest_other_record_is_that_of_all_distances(case):
    records, far, _ = case
    np.fill_diagonal(far, np.inf)
    chosen = np.arange(0, len(records), 2)

    assert nearest_others(records, chosen).tolist() == far[chosen].argmin(axis=1).tolist()


@given(mixed())
def test_the_medoid_is_a_member_with_least_total_squared_distance(case):
    records, far, partition = case

    for group, chosen in enumerate(medoids(records, partition)):
        inside = np.flatnonzero(partition.labels == group)
        totals = far[np.ix_(inside, inside)].sum(axis=1)
        assert chosen in inside
        assert np.isclose(totals[inside == chosen][0], totals.min())


@given(mixed(), st.integers(0, 2**32))
def test_every_failing_group_joins_another_and_no_group_is_cut(case, seed):
    records, _, partition = case
    failing = np.random.default_rng(seed).random(len(partition)) < 0.5
    if len(partition) < 2:
        return

    merged = merge_groups(records, partition, failing).labels

    joined = [np.unique(merged[partition.labels == g]) for g in range(len(partition))]
    assert all(labels.size == 1 for labels in joined)
    together = np.bincount([labels[0] for labels in joined])
    assert all(together[joined[g][0]] > 1 for g in np.flatnonzero(failing))
    if not failing.any():
        assert np.array_equal(merged, partition.labels)
