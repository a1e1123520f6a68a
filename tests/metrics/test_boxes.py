"""Boxes with weights: what exists is valid, and equal boxes are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.core import SpatialDecomposition
from shoal.errors import InputError
from shoal.metrics.boxes import WeightedBoxes, equal_rows


@given(arrays(np.float64, st.tuples(st.integers(0, 30), st.integers(1, 3)),
              elements=st.sampled_from([-1.5, -0.0, 0.0, 1.0, 1e300])))  # fmt: skip
def test_equal_rows_are_those_of_a_dictionary(X):
    seen = {}
    by_hand = [seen.setdefault(tuple(row + 0.0), len(seen)) for row in X]

    assert equal_rows(X).tolist() == by_hand


def test_two_rows_with_one_hash_are_still_told_apart():
    def mixed(word):
        word = word * 0x9E3779B97F4A7C15 % 2**64
        word ^= word >> 30
        word = word * 0xBF58476D1CE4E5B9 % 2**64
        return word ^ word >> 27

    words = np.array([1.0, 2.0, 5.0]).view(np.uint64)
    a, other, b = (int(word) for word in words)
    twin = mixed(a) ^ mixed(other) ^ b
    X = np.array([[a, b], [other, twin], [a, b]], dtype=np.uint64).view(np.float64)

    assert not np.isnan(X).any()
    assert equal_rows(X).tolist() == [0, 1, 0]


@given(st.integers(1, 20), st.data())
def test_classes_are_equal_boxes(n, data):
    ends = st.integers(0, 2)
    lower = data.draw(arrays(np.float64, (n, 2), elements=ends))
    upper = lower + data.draw(arrays(np.float64, (n, 2), elements=ends))
    boxes = WeightedBoxes(lower, upper, np.ones(n), (False, False))

    labels = boxes.classes()

    whole = np.column_stack([lower, upper])
    same = (whole[:, None] == whole[None]).all(axis=2)
    assert ((labels[:, None] == labels[None]) == same).all()
    assert boxes.classes([1]).tolist() == equal_rows(whole[:, [1, 3]]).tolist()


def test_a_decomposition_becomes_boxes_by_confidential_value():
    tree = SpatialDecomposition(
        ("age", "sex"), [[0, 0], [50, 0]], [[50, 2], [np.inf, 2]], [[3, 1], [0, 2.5]],
        ("a", "b"), "illness", (False, True),
    )  # fmt: skip

    boxes = WeightedBoxes.of(tree, domain=([0, 0], [100, 2]))

    assert boxes.discrete == (False, True, True)
    assert boxes.lower.tolist() == [[0, 0, 0], [0, 0, 1], [50, 0, 1]]
    assert boxes.upper.tolist() == [[50, 2, 1], [50, 2, 2], [100, 2, 2]]
    assert boxes.weights.tolist() == [3, 1, 2.5]
    assert boxes.total == 6.5
    with pytest.raises(InputError, match=r"finite ends\. Declare bounds"):
        WeightedBoxes.of(tree)


def test_a_tree_without_a_confidential_column_has_no_axis_for_it():
    tree = SpatialDecomposition(("age",), [[0]], [[50]], [[3]], ("",))

    assert WeightedBoxes.of(tree).lower.tolist() == [[0]]


def test_a_missing_cell_spans_the_domain():
    X = [[np.nan, 3.0], [1.0, np.nan]]

    boxes = WeightedBoxes.points(X, discrete=(True, False), domain=([0, 0], [4, 10]))

    assert boxes.lower.tolist() == [[0, 3], [1, 0]]
    assert boxes.upper.tolist() == [[4, 3], [2, 10]]
    assert boxes.centres().tolist() == [[2, 3], [1, 5]]
    with pytest.raises(InputError, match="2 cells are missing"):
        WeightedBoxes.points(X, discrete=(True, False))


def test_drawn_rows_lie_in_boxes_as_often_as_their_weights_say():
    """Counts of 30,000 draws, six standard deviations wide: false alarms below 1e-8."""
    boxes = WeightedBoxes(
        [[0, 0], [5, 1], [9, 0]], [[4, 1], [5, 3], [10, 1]], [2, 1, -3], (False, True)
    )

    drawn = boxes.draw(30_000, np.random.default_rng(8))

    first = drawn[:, 0] < 4
    assert abs(first.sum() - 20_000) < 6 * np.sqrt(30_000 * 2 / 9)
    assert (drawn[first, 1] == 0).all()
    assert (drawn[~first, 0] == 5).all()
    upper = (drawn[~first, 1] == 2).sum()
    assert abs(upper - (~first).sum() / 2) < 6 * np.sqrt((~first).sum() / 4)
    assert set(drawn[~first, 1]) == {1, 2}
    assert drawn[first, 0].mean() == pytest.approx(2, abs=6 * 1.16 / np.sqrt(20_000))
    empty = WeightedBoxes(np.zeros((0, 1)), np.zeros((0, 1)), [], (False,))
    assert empty.draw(0, np.random.default_rng(8)).shape == (0, 1)
    with pytest.raises(InputError, match="no rows to draw"):
        empty.draw(1, np.random.default_rng(8))


def test_boxes_are_read_only_and_do_not_share_memory_with_what_was_given():
    X = np.zeros((2, 1))
    boxes = WeightedBoxes.points(X, discrete=(False,))
    X[0] = 7

    assert boxes.lower[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        boxes.lower[0, 0] = 1


def test_an_empty_table_is_a_table():
    boxes = WeightedBoxes.points(np.zeros((0, 2)), discrete=(True, False))

    assert (len(boxes), boxes.total) == (0, 0.0)
    assert boxes.classes().tolist() == []


@pytest.mark.parametrize(
    ("lower", "upper", "weights", "discrete", "text"),
    [
        ([[2.0]], [[1.0]], [1], (False,), "lower <= upper"),
        ([[2.0]], [[2.0]], [1], (True,), "interval from c to c"),
        ([[2.0]], [[np.nan]], [1], (False,), "finite ends"),
        ([[2.0]], [[3.0]], [np.nan], (False,), "finite weights"),
        ([[2.0]], [[3.0]], [1, 1], (False,), "for each row and axis"),
        ([2.0], [3.0], [1], (False,), "for each row and axis"),
    ],
)
def test_what_is_no_table_of_boxes_is_refused(lower, upper, weights, discrete, text):
    with pytest.raises(InputError, match=text):
        WeightedBoxes(lower, upper, weights, discrete)


def test_points_need_an_answer_for_each_axis():
    with pytest.raises(InputError, match="whether it is discrete"):
        WeightedBoxes.points([[1.0, 2.0]], discrete=(True,))
