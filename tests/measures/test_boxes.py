"""Boxes with weights: what exists is valid, and equal boxes are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.core import Decomposition
from shoal.errors import InputError
from shoal.measures.boxes import Boxes, equal_rows


@given(arrays(np.float64, st.tuples(st.integers(0, 30), st.integers(1, 3)),
              elements=st.sampled_from([-1.5, -0.0, 0.0, 1.0, 1e300])))  # fmt: skip
def test_equal_rows_are_those_of_a_dictionary(X):
    seen = {}
    by_hand = [seen.setdefault(tuple(row + 0.0), len(seen)) for row in X]

    assert equal_rows(X).tolist() == by_hand


@given(st.integers(1, 20), st.data())
def test_classes_are_equal_boxes(n, data):
    ends = st.integers(0, 2)
    lower = data.draw(arrays(np.float64, (n, 2), elements=ends))
    upper = lower + data.draw(arrays(np.float64, (n, 2), elements=ends))
    boxes = Boxes(lower, upper, np.ones(n), (False, False))

    labels = boxes.classes()

    whole = np.column_stack([lower, upper])
    same = (whole[:, None] == whole[None]).all(axis=2)
    assert ((labels[:, None] == labels[None]) == same).all()
    assert boxes.classes([1]).tolist() == equal_rows(whole[:, [1, 3]]).tolist()


def test_a_decomposition_becomes_boxes_by_confidential_value():
    tree = Decomposition(
        ("age", "sex"), [[0, 0], [50, 0]], [[50, 2], [np.inf, 2]], [[3, 1], [0, 2.5]],
        ("a", "b"), "illness", (False, True),
    )  # fmt: skip

    boxes = Boxes.of(tree, domain=([0, 0], [100, 2]))

    assert boxes.discrete == (False, True, True)
    assert boxes.lower.tolist() == [[0, 0, 0], [0, 0, 1], [50, 0, 1]]
    assert boxes.upper.tolist() == [[50, 2, 1], [50, 2, 2], [100, 2, 2]]
    assert boxes.weights.tolist() == [3, 1, 2.5]
    assert boxes.total == 6.5
    with pytest.raises(InputError, match=r"finite ends\. Declare bounds"):
        Boxes.of(tree)


def test_a_tree_without_a_confidential_column_has_no_axis_for_it():
    tree = Decomposition(("age",), [[0]], [[50]], [[3]], ("",))

    assert Boxes.of(tree).lower.tolist() == [[0]]


def test_a_missing_cell_spans_the_domain():
    X = [[np.nan, 3.0], [1.0, np.nan]]

    boxes = Boxes.points(X, discrete=(True, False), domain=([0, 0], [4, 10]))

    assert boxes.lower.tolist() == [[0, 3], [1, 0]]
    assert boxes.upper.tolist() == [[4, 3], [2, 10]]
    assert boxes.centres().tolist() == [[2, 3], [1, 5]]
    with pytest.raises(InputError, match="2 cells are missing"):
        Boxes.points(X, discrete=(True, False))


def test_boxes_are_read_only_and_do_not_share_memory_with_what_was_given():
    X = np.zeros((2, 1))
    boxes = Boxes.points(X, discrete=(False,))
    X[0] = 7

    assert boxes.lower[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        boxes.lower[0, 0] = 1


def test_an_empty_table_is_a_table():
    boxes = Boxes.points(np.zeros((0, 2)), discrete=(True, False))

    assert (len(boxes), boxes.total) == (0, 0.0)
    assert boxes.classes().tolist() == []


@pytest.mark.parametrize(
    ("lower", "upper", "weights", "discrete", "text"),
    [
        ([[2.0]], [[1.0]], [1], (False,), "lower <= upper"),
        ([[2.0]], [[2.0]], [1], (True,), "places from c to c"),
        ([[2.0]], [[np.nan]], [1], (False,), "finite ends"),
        ([[2.0]], [[3.0]], [np.nan], (False,), "finite weights"),
        ([[2.0]], [[3.0]], [1, 1], (False,), "for each row and axis"),
        ([2.0], [3.0], [1], (False,), "for each row and axis"),
    ],
)
def test_what_is_no_table_of_boxes_is_refused(lower, upper, weights, discrete, text):
    with pytest.raises(InputError, match=text):
        Boxes(lower, upper, weights, discrete)
