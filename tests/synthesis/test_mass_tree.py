from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import Kind, Neighbours, Price
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.mechanism.records import HeldColumns, RecordTotal
from shoal.synthesis.domain import Domain, Sort
from shoal.synthesis.maxent.mass_tree import BinnedAxis, Masses, mass_tree
from shoal.synthesis.maxent.measure import measure_one_way
from shoal.synthesis.maxent.one_way import estimate_marginal

MIXED = (
    Domain("number", Kind.NUMERIC, 500, gap=True),
    Domain("grade", Kind.ORDINAL, 7),
    Domain("town", Kind.NOMINAL, 6, order=(3, 1, 0, 5, 4, 2), joins=(1, 0, 1, 1, 0)),
    Domain("sex", Kind.NOMINAL, 1),
)


def people(seed, n, attributes=MIXED):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    return [
        np.where(rng.random(n) < 0.1, rng.integers(0, a.size, n), (hidden**2 * a.size).astype(int))
        for a in attributes
    ]


def published(columns, attributes, noise):
    held = HeldColumns(columns)
    return [
        estimate_marginal(
            measure_one_way(held, j, attribute, price=Price(Fraction(1)), noise=noise),
            attribute,
            n=len(held),
            most=3,
        )
        for j, attribute in enumerate(attributes)
    ]


def grown(seed, n, epsilon="1", attributes=MIXED, held=HeldColumns, noise=None):
    columns = people(seed, n, attributes)
    singles = published(columns, attributes, SeededNoise(seed))
    noise = noise or SeededNoise(seed + 1)
    found = mass_tree(held(columns), attributes, singles, total=RecordTotal(n),
                      price=Price(Fraction(epsilon)), noise=noise,
                      rng=np.random.default_rng(seed))  # fmt: skip
    return found, noise, singles


@given(st.integers(0, 2**32), st.integers(1, 300), st.sampled_from(["0.01", "1", "30"]))
@settings(max_examples=40)
def test_rows_lie_in_their_domains_and_the_ledger_adds_up(seed, n, epsilon):
    found, noise, _ = grown(seed, n, epsilon)

    for row, attribute in zip(found.rows, MIXED, strict=True):
        assert row.shape == (n,)
        assert row.dtype == np.int64
        assert row.min() >= 0
        assert row.max() < attribute.size
    accounting.verify(
        found.privacy_losses, Fraction(epsilon), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


@given(st.integers(0, 2**32), st.integers(1, 200))
@settings(max_examples=25)
def test_leaves_part_the_whole_space_and_count_the_records(seed, n):
    """Without noise, the counts of leaves are those of the records that lie in them."""
    found, _, singles = grown(seed, n, "2", noise=RecordingNoise())
    lower, upper = found.measurements[0].groups
    axes = [BinnedAxis.of(*pair) for pair in zip(singles, MIXED, strict=True)]
    places = [
        axis.edges[axis.positions(column)]
        for axis, column in zip(axes, people(seed, n), strict=True)
    ]

    assert found.measurements[0].sort is Sort.TREE
    widths = (upper - lower).astype(object)
    assert sum(np.prod(w) for w in widths) == np.prod([a.size for a in MIXED])
    for low, high, count in zip(lower, upper, found.measurements[0].counts, strict=True):
        inside = [(p >= a) & (p < b) for p, a, b in zip(places, low, high, strict=True)]
        assert np.logical_and.reduce(inside).sum() == count


@given(st.integers(0, 2**32), st.integers(1, 8))
@settings(max_examples=40)
def test_cuts_are_those_of_the_slow_twin(seed, nodes):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, 3)
    masses = [np.append(0, np.cumsum(rng.dirichlet(np.ones(size)))) for size in sizes]
    lower = np.column_stack([rng.integers(0, size - 1, nodes) for size in sizes])
    upper = np.column_stack(
        [rng.integers(low + 1, size + 1) for low, size in zip(lower.T, sizes, strict=True)]
    )
    split = np.flatnonzero((upper - lower > 1).any(axis=1))

    axes = [BinnedAxis(None, np.arange(len(mass) - 1), mass) for mass in masses]

    axis, cut = Masses(tuple(axes)).halve(lower, upper, split)

    for node in split:
        wide = [j for j in range(3) if upper[node, j] - lower[node, j] > 1]
        side = [masses[j][upper[node, j]] - masses[j][lower[node, j]] for j in wide]
        j = wide[int(np.argmax(side))]
        mass, low, high = masses[j], lower[node, j], upper[node, j]
        half = (mass[low] + mass[high]) / 2
        off = [abs(mass[place] - half) for place in range(low + 1, high)]
        assert axis[node] == j
        assert low < cut[node] < high
        assert abs(mass[cut[node]] - half) == pytest.approx(min(off), abs=1e-12)


def test_a_tree_sees_columns_that_follow_from_each_other():
    """Rows whose two codes agree: 1/12 of independent ones, most of the tree's."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, 12, 8000)
    shuffled = rng.permutation(12)
    columns = [first, shuffled[first]]
    attributes = [Domain(name, Kind.NOMINAL, 12) for name in "ab"]
    singles = published(columns, attributes, SeededNoise(0))
    found = mass_tree(HeldColumns(columns), attributes, singles, total=RecordTotal(8000),
                      price=Price(Fraction(1)), noise=SeededNoise(1), rng=rng)  # fmt: skip

    assert (found.rows[1] == shuffled[found.rows[0]]).mean() > 0.6


@given(st.integers(0, 2**32), st.lists(st.integers(0, 60), max_size=3))
@settings(max_examples=10)
def test_the_rows_do_not_depend_on_blocks(seed, cuts):
    class Blocks(HeldColumns):
        def walk(self, start):
            parts = zip(*(np.split(c, sorted(cuts)) for c in self.columns), strict=True)
            return _Walk([start(list(part)) for part in parts])

    whole, _, _ = grown(seed, 60)
    cut, _, _ = grown(seed, 60, held=Blocks)

    for one, other in zip(whole.rows, cut.rows, strict=True):
        np.testing.assert_array_equal(one, other)


class _Walk:
    def __init__(self, states):
        self.states = states

    def step(self, move):
        return sum(move(state) for state in self.states)

    ask = step
