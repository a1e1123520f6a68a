from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import LAPLACE, Hierarchy, Neighbours, Partition, PrivacyLoss
from shoal.errors import InputError, InternalError


@given(st.lists(st.integers(0, 5), min_size=1))
def test_a_partition_exists_exactly_if_its_labels_have_no_gap(labels):
    whole = set(labels) == set(range(max(labels) + 1))

    if whole:
        partition = Partition(np.array(labels))
        assert partition.sizes.sum() == len(labels)
        assert len(partition) == len(set(labels))
    else:
        with pytest.raises(InputError, match="without gaps"):
            Partition(np.array(labels))


def test_a_partition_cannot_be_changed_and_keeps_no_hold_on_its_input():
    labels = np.array([0, 1, 1])
    partition = Partition(labels)

    labels[0] = 1

    assert partition.labels.tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        partition.labels[0] = 1


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        ((), "at least two cells"),
        ((("a",),), "at least two cells"),
        ((("a", "x"), ("b", "y")), "same root"),
        ((("a", "all"), ("a", "all")), "each leaf once"),
        ((("a", "p", "all"), ("b", "q", "all"), ("c", "p", "q", "all")), "two parents"),
        ((("a", "b", "all"), ("b", "all")), "also an inner node"),
        ((("a", "all", "p", "all"),), "has a parent"),
    ],
)
def test_what_is_no_tree_is_no_hierarchy(paths, sentence):
    with pytest.raises(InputError, match=sentence):
        Hierarchy(paths)


def test_short_branches_may_repeat_a_node():
    tree = Hierarchy((("a", "a", "all"), ("b", "p", "all"), ("c", "p", "all")))

    edges = tree.edges()

    assert tree.leaves == ("a", "b", "c")
    assert (edges >= 0).sum(axis=1).tolist() == [1, 2, 2]
    assert edges[1, 1] == edges[2, 1]


def test_a_spending_states_no_less_than_its_noise_costs():
    terms = {"mechanism": LAPLACE, "target": "x", "sensitivity": Fraction(2), "scale": Fraction(4)}
    more = {"neighbours": Neighbours.CHANGE_ONE, "draws": 1}

    assert PrivacyLoss(**terms, epsilon=Fraction(1, 2), **more).epsilon == Fraction(1, 2)
    with pytest.raises(InternalError, match="must not state less epsilon than its noise costs"):
        PrivacyLoss(**terms, epsilon=Fraction(1, 3), **more)
