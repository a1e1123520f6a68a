"""Coarseness by hand and by definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.generalisation import average_class_size, certainty_penalty, discernibility

labels = st.lists(st.integers(0, 5), min_size=1, max_size=30)


@given(labels)
def test_discernibility_counts_the_rows_that_cannot_be_told_apart(found):
    pairs = sum(a == b for a in found for b in found)

    assert discernibility(found) == pairs
    assert discernibility(found, suppressed=[True] * len(found)) == len(found) ** 2


@given(labels, st.data())
def test_weights_stand_for_repeated_rows(found, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(found), max_size=len(found)))
    repeated = np.repeat(found, weights)

    assert discernibility(found, weights=weights) == discernibility(repeated)
    assert average_class_size(found, weights=weights) == average_class_size(repeated)


def test_sizes_by_hand():
    assert discernibility([0, 0, 1, 2], suppressed=[False, False, False, True]) == 4 + 1 + 4
    assert average_class_size([0, 0, 3, 3], k=2) == 1
    assert average_class_size([0, 0, 0, 3], k=2) == 1
    assert average_class_size([]) == discernibility([]) == 0


def test_penalties_by_hand():
    # Age in [0, 100), one of five categories; exact, coarse and suppressed.
    boxes = WeightedBoxes(
        [[30, 2], [20, 1], [0, 0]], [[30, 3], [70, 4], [100, 5]], [1, 1, 2], (False, True)
    )

    found = certainty_penalty(boxes, [0, 0], [100, 5])

    assert found.axes == pytest.approx(((0 + 0.5 + 2) / 4, (0 + 0.5 + 2) / 4))
    assert found.overall == pytest.approx(0.625)
    assert found.granularity == pytest.approx(0.375)


@given(st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_exact_rows_have_no_penalty_and_suppressed_ones_all_of_it(n, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 4, n), rng.random(n)]).astype(float)
    domain = ([0, 0], [4, 1])

    assert certainty_penalty(WeightedBoxes.points(X, discrete=(True, False)), *domain).overall == 0
    gone = WeightedBoxes.points(np.full((n, 2), np.nan), discrete=(True, False), domain=domain)
    assert certainty_penalty(gone, *domain) == (1.0, (1.0, 1.0))


def test_flat_axes_empty_tables_and_cells_beyond_the_domain_are_defined():
    flat = WeightedBoxes([[0, 3]], [[1, 3]], [1], (True, False))
    beyond = WeightedBoxes([[-50.0]], [[150.0]], [1], (False,))
    empty = WeightedBoxes(np.zeros((0, 1)), np.zeros((0, 1)), [], (False,))

    assert certainty_penalty(flat, [0, 3], [1, 3]).overall == 0
    assert certainty_penalty(beyond, [0], [100]).overall == 1
    assert certainty_penalty(empty, [0], [100]).overall == 0


def test_what_is_no_class_is_refused():
    for call, text in (
        (lambda: discernibility([0.5]), "whole numbers"),
        (lambda: discernibility([-1]), "negative"),
        (lambda: discernibility([0], suppressed=[True, False]), "each row whether"),
        (lambda: average_class_size([0], k=0), "The group size k must be at least 1; got 0"),
        (lambda: average_class_size([0], weights=[1, 2]), "one weight for each row"),
        (
            lambda: certainty_penalty(WeightedBoxes.points([[1.0]], discrete=(False,)), [1], [0]),
            "least",
        ),
    ):
        with pytest.raises(InputError, match=text):
            call()
