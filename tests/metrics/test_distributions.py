"""Distances of distributions against slow twins, scipy and numbers computed by hand."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.metrics import distributions, information_loss
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.distributions import MarginalDistance


def distances(original, released, edges):
    masses = (distributions.marginal_masses(boxes, edges) for boxes in (original, released))
    return distributions.marginal_distances(*masses)


def distances_of_codes(original, released, most=5):
    """Distances of tables of codes from -1, each code a bin."""
    columns = original.shape[1]
    points = (
        WeightedBoxes.points(t + 1.0, discrete=(True,) * columns) for t in (original, released)
    )
    return distances(*points, [np.arange(1, most)] * columns)


def slowly(original, released, columns):
    shares = []
    for table in (original, released):
        counts = Counter(tuple(row) for row in table[:, columns].tolist())
        shares.append({cell: count / len(table) for cell, count in counts.items()})
    p, q = shares
    return sum(abs(p.get(cell, 0) - q.get(cell, 0)) for cell in p | q) / 2


def tables(columns):
    return arrays(np.int64, st.tuples(st.integers(1, 25), columns), elements=st.integers(-1, 3))


@given(tables(st.just(3)), tables(st.just(3)))
def test_distances_are_those_of_the_definition_worst_first(original, released):
    found = distances_of_codes(original, released)

    assert len(found) == 6
    assert {marginal.columns for marginal in found} == {
        *combinations(range(3), 1), *combinations(range(3), 2),
    }  # fmt: skip
    for columns, distance in found:
        assert distance == pytest.approx(slowly(original, released, list(columns)))
        if len(columns) == 1:
            j = columns[0]
            assert distance == pytest.approx(
                information_loss.total_variation(original[:, j], released[:, j])
            )
    worst_first = [marginal.distance for marginal in found]
    assert worst_first == sorted(worst_first, reverse=True)


def test_weights_stand_for_repeated_rows():
    rng = np.random.default_rng(3)
    original, released = rng.integers(0, 3, (2, 40, 2)).astype(float)
    weights = rng.integers(0, 4, 40)
    kinds, edges = (True, True), [np.arange(1, 3)] * 2
    points = WeightedBoxes.points(original, discrete=kinds)

    weighted = distances(
        points, WeightedBoxes(released, released + 1, weights.astype(float), kinds), edges
    )

    repeated = WeightedBoxes.points(np.repeat(released, weights, axis=0), discrete=kinds)
    expected = distances(points, repeated, edges)
    assert [m.distance for m in weighted] == pytest.approx([m.distance for m in expected])


def test_empty_and_all_missing_releases_are_defined():
    original, nothing = np.zeros((4, 2), dtype=int), np.zeros((0, 2), dtype=int)

    assert distances_of_codes(original, nothing)[0] == MarginalDistance((0,), 1.0)
    assert distances_of_codes(nothing, nothing)[0].distance == 0
    gone = distances_of_codes(original, np.full((3, 2), -1))
    assert {marginal.distance for marginal in gone} == {1.0}


@given(st.data())
def test_points_have_the_distances_of_their_bins(data):
    draw = lambda: data.draw(arrays(np.float64, (9, 2), elements=st.integers(0, 5)))  # noqa: E731
    original, released = draw(), draw()
    edges = [np.arange(1, 6), np.array([1.5, 3.0])]
    codes = [
        np.column_stack([np.searchsorted(edges[j], t[:, j], side="right") for j in range(2)])
        for t in (original, released)
    ]
    points = [WeightedBoxes.points(t, discrete=(True, False)) for t in (original, released)]

    found = dict(distances(*points, edges))

    assert found == pytest.approx(dict(distances_of_codes(*codes, most=7)), abs=1e-12)


def test_an_interval_gives_each_bin_its_share():
    exact = WeightedBoxes.points([[0.0, 0], [9.0, 1]], discrete=(False, True))
    # The first half of the weight is spread over [0, 10), of which 4/10 lie below 4.
    vague = WeightedBoxes([[0.0, 0], [0.0, 0]], [[10.0, 1], [10.0, 2]], [1, 1], (False, True))

    found = dict(distances(exact, vague, [[4.0], [1]]))

    assert found[0,] == pytest.approx(abs(0.5 - 0.4))
    assert found[1,] == pytest.approx(abs(0.5 - 0.75))
    # Cells (low, 0), (low, 1), (high, 0), (high, 1): (1, 0, 0, 1)/2 against shares.
    vaguely = np.array([0.4 * 1.5, 0.4 * 0.5, 0.6 * 1.5, 0.6 * 0.5]) / 2
    assert found[0, 1] == pytest.approx(np.abs([0.5, 0, 0, 0.5] - vaguely).sum() / 2)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 6))
def test_quantile_bins_hold_every_value_and_none_is_empty(values, bins):
    codes = np.searchsorted(distributions.quantile_edges(values, bins), values, side="right")

    assert set(codes) == set(range(max(codes) + 1))
    assert max(codes) < bins
    assert (np.diff(codes[np.argsort(values)]) >= 0).all()
