import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import InputError
from shoal.metrics import count_queries, information_loss
from shoal.metrics.additive_losses import Losses
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.distributions import marginal_distances, marginal_masses

cells = st.one_of(st.just(np.nan), st.integers(-5, 5).map(float))
tables = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        arrays(float, (n, 2), elements=cells), arrays(float, (n, 2), elements=cells)
    )
)


@settings(deadline=None)
@given(tables, st.integers(0, 12))
def test_losses_of_two_parts_add_up_to_those_of_the_whole(pair, cut):
    x, y = pair

    added = Losses.of(x[:cut], y[:cut]) + Losses.of(x[cut:], y[cut:])

    for j, share in enumerate(added.sse_over_sst):
        assert share == pytest.approx(information_loss.sse_over_sst(x[:, j], y[:, j]), rel=1e-9)


def test_marginals_and_counts_of_parts_add_up():
    rng = np.random.default_rng(0)
    lower = rng.integers(0, 8, (300, 3)).astype(float)
    lower[:, 2] = rng.normal(size=300)
    upper = lower + np.array([1, 1, 0.5])
    points = WeightedBoxes(lower, lower + np.array([1, 1, 0]), np.ones(300), (True, True, False))
    boxes = WeightedBoxes(lower, upper, np.ones(300), (True, True, False))
    edges = [np.arange(1.0, 9), np.arange(1.0, 9), np.array([-1.0, 0.0, 1.0])]
    queries = count_queries.half_ranges(
        [0, 0, -3], [9, 9, 3], [True, True, False], queries=20, rng=rng, axes=2
    )

    def part(whole, rows):
        return WeightedBoxes(
            whole.lower[rows], whole.upper[rows], whole.weights[rows], whole.discrete
        )

    halves = [slice(0, 120), slice(120, 300)]
    masses = []
    for whole in (points, boxes):
        some = [marginal_masses(part(whole, rows), edges) for rows in halves]
        masses.append(tuple(a + b for a, b in zip(*some, strict=True)))
    counts = sum(
        count_queries.answers(count_queries.index(part(boxes, rows)), queries) for rows in halves
    )

    whole = marginal_distances(*(marginal_masses(all_, edges) for all_ in (points, boxes)))
    for one, other in zip(marginal_distances(*masses), whole, strict=True):
        assert one.columns == other.columns
        assert one.distance == pytest.approx(other.distance, abs=1e-12)
    np.testing.assert_allclose(counts, count_queries.answers(count_queries.index(boxes), queries))


def test_tables_of_two_shapes_are_refused():
    with pytest.raises(InputError, match="same shape"):
        Losses.of(np.zeros((2, 1)), np.zeros((3, 1)))
