"""Distances of distributions against slow twins, scipy and numbers computed by hand."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import InputError
from shoal.metrics import distributions, information_loss
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.distributions import MarginalDistance


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
    found = distributions.total_variations(original, released)

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
    distances = [marginal.distance for marginal in found]
    assert distances == sorted(distances, reverse=True)


def test_wide_tables_are_counted_by_sorting(monkeypatch):
    rng = np.random.default_rng(2)
    original, released = rng.integers(-1, 40, (2, 300, 3))
    dense = distributions.total_variations(original, released)

    monkeypatch.setattr(distributions, "MOST_CELLS", 100)

    sparse = distributions.total_variations(original, released)
    assert [m.columns for m in sparse] == [m.columns for m in dense]
    assert [m.distance for m in sparse] == pytest.approx([m.distance for m in dense])


def test_weights_stand_for_repeated_rows():
    rng = np.random.default_rng(3)
    original, released = rng.integers(0, 3, (2, 40, 2))
    weights = rng.integers(0, 4, 40)

    weighted = distributions.total_variations(original, released, weights=(None, weights))

    repeated = distributions.total_variations(original, np.repeat(released, weights, axis=0))
    assert [m.distance for m in weighted] == pytest.approx([m.distance for m in repeated])


def test_empty_and_all_missing_releases_are_defined():
    original, nothing = np.zeros((4, 2), dtype=int), np.zeros((0, 2), dtype=int)

    assert distributions.total_variations(original, nothing)[0] == MarginalDistance((0,), 1.0)
    assert distributions.total_variations(nothing, nothing)[0].distance == 0
    gone = distributions.total_variations(original, np.full((3, 2), -1))
    assert {marginal.distance for marginal in gone} == {1.0}
    with pytest.raises(InputError, match="same columns"):
        distributions.total_variations(original, original[:, :1])
    with pytest.raises(InputError, match="-1, which stands for missing"):
        distributions.total_variations(original, original - 2)


@given(st.data())
def test_points_as_boxes_have_the_distances_of_their_codes(data):
    draw = lambda: data.draw(arrays(np.float64, (9, 2), elements=st.integers(0, 5)))  # noqa: E731
    original, released = draw(), draw()
    edges = [np.arange(1, 6), np.array([1.5, 3.0])]
    codes = [
        np.column_stack([distributions.assign_bins(t[:, j], edges[j]) for j in range(2)])
        for t in (original, released)
    ]
    boxes = [WeightedBoxes.points(t, discrete=(True, False)) for t in (original, released)]

    found = dict(distributions.box_total_variations(*boxes, edges))

    assert found == pytest.approx(dict(distributions.total_variations(*codes)), abs=1e-12)


def test_an_interval_gives_each_bin_its_share():
    exact = WeightedBoxes.points([[0.0, 0], [9.0, 1]], discrete=(False, True))
    # The first half of the weight is spread over [0, 10), of which 4/10 lie below 4.
    vague = WeightedBoxes([[0.0, 0], [0.0, 0]], [[10.0, 1], [10.0, 2]], [1, 1], (False, True))

    found = dict(distributions.box_total_variations(exact, vague, [[4.0], [1]]))

    assert found[0,] == pytest.approx(abs(0.5 - 0.4))
    assert found[1,] == pytest.approx(abs(0.5 - 0.75))
    # Cells (low, 0), (low, 1), (high, 0), (high, 1): (1, 0, 0, 1)/2 against shares.
    vaguely = np.array([0.4 * 1.5, 0.4 * 0.5, 0.6 * 1.5, 0.6 * 0.5]) / 2
    assert found[0, 1] == pytest.approx(np.abs([0.5, 0, 0, 0.5] - vaguely).sum() / 2)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 6))
def test_quantile_bins_hold_every_value_and_none_is_empty(values, bins):
    codes = distributions.assign_bins(values, distributions.quantile_edges(values, bins))

    assert set(codes) == set(range(max(codes) + 1))
    assert max(codes) < bins
    assert (np.diff(codes[np.argsort(values)]) >= 0).all()
