from itertools import cycle, islice, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import InputError
from shoal.partition import insensitive, insensitivity
from shoal.partition.insensitive import _hilbert_words

SORTED = ["reference", "lexicographic", "hilbert"]
ORDERS = [*SORTED, "corners"]

boxes = st.tuples(st.integers(2, 60), st.integers(1, 4)).flatmap(
    lambda shape: st.one_of(
        arrays(np.float64, shape, elements=st.floats(0, 1)),
        arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.5, 1.0])),
    )
)


def curve(bits, d):
    """Visit all cells of a grid in the order of the Hilbert curve."""
    cells = np.array(list(np.ndindex(*[2**bits] * d)))
    return cells[np.lexsort(_hilbert_words(cells, bits)[::-1])]


@settings(max_examples=200, deadline=None)
@given(boxes, st.integers(2, 7), st.sampled_from(ORDERS), st.data())
def test_changing_one_record_changes_every_group_by_at_most_one_record(X, k, order, data):
    k = min(k, len(X))
    row = data.draw(st.integers(0, len(X) - 1))
    Y = X.copy()
    Y[row] = data.draw(arrays(np.float64, X.shape[1], elements=st.floats(0, 1)))

    before, after = insensitive(X, k, order=order), insensitive(Y, k, order=order)

    assert insensitivity(before, after, row) <= 1


@settings(max_examples=100, deadline=None)
@given(boxes, st.integers(2, 7), st.sampled_from(ORDERS))
def test_groups_have_k_records_but_the_last(X, k, order):
    k = min(k, len(X))

    sizes = insensitive(X, k, order=order).sizes

    assert (sizes[:-1] == k).all()
    assert k <= sizes[-1] < 2 * k


@settings(max_examples=100, deadline=None)
@given(boxes, st.integers(2, 7))
def test_reference_and_lexicographic_orders_follow_their_definition(X, k):
    k = min(k, len(X))
    keys = {
        "reference": lambda i: (sum(v * v for v in X[i]), i),
        "lexicographic": lambda i: (tuple(X[i]), i),
    }

    for order, key in keys.items():
        labels = insensitive(X, k, order=order).labels
        by_hand = sorted(range(len(X)), key=key)
        assert [labels[i] for i in by_hand] == sorted(labels)


def farthest_first(d):
    """All corners, the next one farthest from the last, in ties from the one before, and so on."""
    left = list(product((0, 1), repeat=d))
    used = [left.pop(0)]
    while left:
        near = left
        for corner in reversed(used):
            far = [sum(a != b for a, b in zip(corner, other, strict=True)) for other in near]
            near = [other for other, away in zip(near, far, strict=True) if away == max(far)]
        left.remove(near[0])
        used.append(near[0])
    return used


@settings(max_examples=100, deadline=None)
@given(boxes, st.integers(2, 5))
def test_corners_take_the_nearest_of_those_left_one_corner_after_the_other(X, k):
    k = min(k, len(X))
    left, groups = set(range(len(X))), []
    for corner in islice(cycle(farthest_first(X.shape[1])), len(X) // k - 1):
        squares = [sum((a - b) ** 2 for a, b in zip(x, corner, strict=True)) for x in X]
        near = sorted(left, key=lambda i, squares=squares: (squares[i], i))
        groups.append(sorted(near[:k]))
        left -= set(near[:k])
    groups.append(sorted(left))

    labels = insensitive(X, k, order="corners").labels

    assert [np.flatnonzero(labels == g).tolist() for g in range(len(groups))] == groups


@pytest.mark.parametrize(("bits", "d"), [(6, 1), (4, 2), (3, 3), (2, 4)])
def test_the_hilbert_curve_visits_all_cells_by_steps_of_one(bits, d):
    steps = np.abs(np.diff(curve(bits, d), axis=0)).sum(axis=1)

    assert (steps == 1).all()


@pytest.mark.parametrize(("bits", "constant"), [(4, 2.75), (5, 2.875)])
def test_the_jump_constants_of_the_plane_are_met(bits, constant):
    """Largest L1 jump over |dt|^(1/2), guarantees.md A4: 2.75 at 4 bits, 2.875 at 5."""
    places = curve(bits, 2) / 2**bits
    largest = max(
        np.abs(places[lag:] - places[:-lag]).sum(axis=1).max() / np.sqrt(lag / 4**bits)
        for lag in range(1, 4**bits)
    )

    assert largest == pytest.approx(constant)


def test_many_columns_need_more_than_one_word():
    cells = np.random.default_rng(13).integers(0, 2, size=(50, 150))

    words = _hilbert_words(cells, 1)

    assert len(words) == 3
    assert len({tuple(row) for row in zip(*words, strict=True)}) == len(np.unique(cells, axis=0))


def test_one_column_is_ordered_by_value_in_all_orders():
    x = np.random.default_rng(14).random((40, 1))

    one, two, three = (insensitive(x, 4, order=order) for order in SORTED)

    assert all(a == b for a, b in pairwise([one, two, three]))


@pytest.mark.parametrize(
    ("X", "order", "message"),
    [
        (
            [[0.5], [1.5], [-0.1]],
            "reference",
            (
                "The columns X must be scaled to [0, 1] by public bounds; 2 of its 3 cells lie "
                "outside."
            ),
        ),
        (
            [[0.5], [0.5]],
            "hilbrt",
            "There is no order of records named 'hilbrt'. Did you mean 'hilbert'?",
        ),
    ],
)
def test_other_boxes_and_orders_are_refused(X, order, message):
    with pytest.raises(InputError) as refusal:
        insensitive(X, 2, order=order)

    assert str(refusal.value) == message
