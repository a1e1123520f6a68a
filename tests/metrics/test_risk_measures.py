"""Risks of rows against counts by hand."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.metrics.risk_measures import MEASURES, RowsAtRisk, people_behind


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_people_are_those_whose_places_lie_in_every_cell(seed: int) -> None:
    """The twin of the kernel: every released row against every person."""
    rng = np.random.default_rng(seed)
    rows, people, d = rng.integers(1, 12), rng.integers(0, 40), rng.integers(1, 4)
    lower = rng.integers(0, 5, (rows, d)).astype(float)
    upper = lower + rng.integers(0, 3, (rows, d))
    anything = rng.random((rows, d)) < 0.2
    places = rng.integers(0, 6, (people, d)).astype(float)
    places[rng.random((people, d)) < 0.1] = np.nan
    expected = [
        sum(
            all(
                any_value or low <= x < high or low == x == high
                for low, high, any_value, x in zip(*cells, person, strict=True)
            )
            for person in places
        )
        for cells in zip(lower, upper, anything, strict=True)
    ]
    assert people_behind(lower, upper, anything, places).tolist() == expected


@given(st.integers(0, 2**32 - 1))
def test_households_and_weights_are_counted_by_combination(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    columns, homes = rng.integers(0, 3, (n, 2)), rng.integers(0, 6, n)
    weights = rng.integers(1, 9, n).astype(float)
    rows = RowsAtRisk(columns, weights=weights, households=homes)
    same = (columns[:, None] == columns).all(axis=2)
    by_name = {str(name): measure.risks(rows) for name, measure in MEASURES.items()}
    assert by_name["household-k"].tolist() == [np.unique(homes[row]).size for row in same]
    assert by_name["k-map"].tolist() == [weights[row].sum() for row in same]
    assert rows.fraction == min(1.0, n / weights.sum())
