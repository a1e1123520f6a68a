import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.partition import marginality, marginality_order, path_lengths

TAXONOMY = [[0, 10, 20], [0, 10, 21], [0, 11, -1], [1, 12, 22], [1, 12, 23]]


def edges(a, b):
    """Edges between two leaves: what is left of both ways after the common beginning."""
    a, b = ([node for node in path if node >= 0] for path in (a, b))
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    return len(a) + len(b) - 2 * shared


def test_path_lengths_count_the_edges_between_leaves():
    lengths = path_lengths(TAXONOMY)

    assert lengths.tolist() == [[edges(a, b) for b in TAXONOMY] for a in TAXONOMY]


def test_equal_codes_below_different_parents_are_different_nodes():
    assert path_lengths([[0, 5], [1, 5]]).tolist() == [[0, 4], [4, 0]]


@given(st.lists(st.integers(0, 50), min_size=5, max_size=5))
def test_marginality_is_the_summed_distance_to_all_records(counts):
    lengths = path_lengths(TAXONOMY)
    records = np.repeat(np.arange(5), counts)

    values = marginality(lengths, counts)

    assert values.tolist() == [sum(lengths[a, r] for r in records) for a in range(5)]


def test_the_most_central_category_comes_first_and_ties_go_by_code():
    assert marginality_order(path_lengths(TAXONOMY)).tolist() == [2, 0, 1, 3, 4]
    assert marginality_order(path_lengths(TAXONOMY), [0, 0, 0, 9, 9]).tolist() == [3, 4, 2, 0, 1]


def test_a_flat_list_of_categories_is_ordered_by_frequency():
    flat = path_lengths([[0], [1], [2]])

    assert marginality_order(flat, [5, 9, 7]).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("distances", "counts", "message"),
    [
        (
            [[0, 1], [2, 0]],
            None,
            "The distances between categories must be a square symmetric matrix",
        ),
        (
            [[1, 1], [1, 1]],
            None,
            "The distances between categories must be a square symmetric matrix",
        ),
        (
            [[0, 1, 2], [1, 0, 2]],
            None,
            "The distances between categories must be a square symmetric matrix",
        ),
        (
            [[0, 1], [1, 0]],
            [1],
            "The counts must give a non-negative number for each of the 2 categories",
        ),
        (
            [[0, 1], [1, 0]],
            [1, -1],
            "The counts must give a non-negative number for each of the 2 categories",
        ),
    ],
)
def test_what_is_no_distance_or_count_is_refused(distances, counts, message):
    with pytest.raises(InputError, match=message):
        marginality(distances, counts)


def test_gaps_inside_a_path_are_refused():
    with pytest.raises(InputError, match="only at the end"):
        path_lengths([[0, -1, 3]])
