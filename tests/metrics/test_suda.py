"""Special uniques against brute force, a published example, and sdcMicro's results."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.metrics.suda import suda

PRACTICE_GUIDE = np.array([
    [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 2, 1], [0, 1, 3, 0], [1, 0, 3, 2],
    [0, 1, 3, 0], [0, 0, 4, 1], [0, 1, 5, 2], [0, 0, 1, 1], [0, 0, 1, 1],
])  # fmt: skip
"""Table 4.5 of the IHSN's practice guide to statistical disclosure control, as codes."""


def minimal_sets(table: np.ndarray, largest: int) -> list[list[tuple[int, ...]]]:
    """The twin of the kernel: try every set of columns for every record."""
    per_row: list[list[tuple[int, ...]]] = [[] for _ in table]
    for size in range(1, largest + 1):
        for chosen in combinations(range(table.shape[1]), size):
            part = table[:, chosen]
            for row, cells in enumerate(part):
                smaller = any(set(known) <= set(chosen) for known in per_row[row])
                if not smaller and (part == cells).all(axis=1).sum() == 1:
                    per_row[row].append(chosen)
    return per_row


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_the_kernel_finds_the_minimal_sets_of_brute_force(data: st.DataObject) -> None:
    d, rows = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 70))
    widths = data.draw(st.lists(st.integers(1, 9), min_size=d, max_size=d))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    table = np.column_stack([rng.integers(0, width, rows) for width in widths])
    largest = data.draw(st.integers(1, d))
    expected = minimal_sets(table, largest)
    result = suda(table, largest=largest)
    sizes = [[sum(len(s) == size + 1 for s in sets) for size in range(largest)]
             for sets in expected]  # fmt: skip
    assert result.sizes.tolist() == sizes
    worth = [
        np.prod([d - i for i in range(s, largest + 1) if i < d]) for s in range(1, largest + 1)
    ]
    scores = [sum(worth[len(s) - 1] for s in sets) for sets in expected]
    assert result.scores.tolist() == scores
    by_column = [
        sum(worth[len(s) - 1] for sets in expected for s in sets if j in s) for j in range(d)
    ]
    assert np.allclose(result.contributions * max(sum(scores), 1), by_column)


def test_the_scores_of_the_practice_guide() -> None:
    assert suda(PRACTICE_GUIDE).scores.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [
        (0.01, {2: 0.0049867976611432099, 4: 0.0113830065142360680, 7: 0.0091666788691624687}),
        (0.3, {2: 0.17535508283457232, 4: 0.32819431613945022, 7: 0.28188123137188403}),
    ],
)
def test_dis_scores_are_those_of_sdcmicro(fraction: float, expected: dict[int, float]) -> None:
    """sdcMicro 5.8.1: suda2 of the table above, disScore, in its single precision."""
    dis = suda(PRACTICE_GUIDE, fraction=fraction).dis
    assert {row: dis[row] for row in expected} == pytest.approx(expected, abs=1e-6)
    assert (dis[[0, 1, 3, 5, 8, 9]] == 0).all()


def test_scores_of_a_single_column_are_factorials() -> None:
    table = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    assert suda(table, largest=4).scores.tolist() == [0, 0, factorial(3)]


def test_missing_is_a_value_and_no_record_is_no_error() -> None:
    table = np.array([[np.nan, 1.0], [np.nan, 1.0], [2.0, 1.0]])
    assert suda(table).scores.tolist() == [0, 0, 1]
    assert suda(np.zeros((0, 2))).scores.size == 0


@pytest.mark.parametrize("bad", [{"fraction": 0.0}, {"fraction": 1.5}, {"largest": 0}])
def test_senseless_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match="sampling fraction"):
        suda(PRACTICE_GUIDE, **bad)


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(InputError, match="1 to 20 columns"):
        suda(np.zeros((3, 21)))
