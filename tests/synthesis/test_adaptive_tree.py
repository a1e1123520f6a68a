from fractions import Fraction
from itertools import product
from math import ceil, exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Kind, Neighbours, Price
from shoal.errors import InputError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import SeededNoise
from shoal.mechanism.records import HeldColumns
from shoal.synthesis import adaptive_tree
from shoal.synthesis.adaptive_tree import PATH, UNITS, AdaptiveAxis, grow, tree_histogram
from shoal.synthesis.domain import Domain
from shoal.synthesis.kernels import descend

MIXED = (
    Domain("number", Kind.NUMERIC, 33),
    Domain("grade", Kind.ORDINAL, 4, gap=True),
    Domain("town", Kind.NOMINAL, 5, order=(4, 2, 0, 1, 3), joins=(1, 0, 1, 1)),
)


def table(seed, n):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, attribute.size, n) for attribute in MIXED]


# The theorem, by numbers.


def chance(b, *, threshold, scale):
    """Chance of a split, from the law of discrete Laplace noise."""
    a = exp(-1 / scale)
    need = threshold + 1 - b
    return a**need / (1 + a) if need >= 1 else 1 - a ** (1 - need) / (1 + a)


@pytest.mark.parametrize("lam", [1.442695041, 1.6, 2.5, 10.0, 90.0])
@pytest.mark.parametrize("units", [1, 4, 64])
def test_no_path_costs_more_than_the_theorem_says(lam, units):
    scale = units * lam
    penalty = ceil(scale * log(2))
    worst = 0.0
    for lowest in range(-penalty - units - 1, 2):
        total = 0.0
        for level in range(60):
            y = lowest + level * penalty
            before, after = max(y, -penalty), max(y + units, -penalty)
            if after - before and y < 60 * scale:
                total += log(
                    chance(after, threshold=0, scale=scale)
                    / chance(before, threshold=0, scale=scale)
                )
        worst = max(worst, total)

    assert worst <= float(PATH[Neighbours.ADD_REMOVE]) / lam
    assert worst >= 0.6 * float(PATH[Neighbours.ADD_REMOVE]) / lam


def law(counts, *, low, high, depth, scale, penalty):
    """Probability of each tree over the codes low..high-1, as the set of its leaves."""
    if high - low == 1:
        return {((low, high),): 1.0}
    b = max(UNITS * sum(counts[low:high]) - depth * penalty, -penalty)
    p = chance(b, threshold=0, scale=scale)
    trees = {((low, high),): 1 - p}
    middle = low + (high - low) // 2
    below = {"depth": depth + 1, "scale": scale, "penalty": penalty}
    left = law(counts, low=low, high=middle, **below)
    right = law(counts, low=middle, high=high, **below)
    for (a, pa), (b, pb) in product(left.items(), right.items()):
        trees[a + b] = p * pa * pb
    return trees


@pytest.mark.parametrize("lam", [1.442695041, 3.0])
def test_the_exact_law_of_small_trees_keeps_the_price_for_every_changed_record(lam):
    scale = UNITS * lam
    penalty = ceil(scale * log(2))
    tables = [counts for counts in product(range(7), repeat=4) if sum(counts) == 6]
    laws = {
        counts: law(counts, low=0, high=4, depth=0, scale=scale, penalty=penalty)
        for counts in tables
    }
    worst = 0.0
    for counts in tables:
        for old, new in product(range(4), repeat=2):
            other = list(counts)
            other[old] -= 1
            other[new] += 1
            if other[old] >= 0 and old != new:
                there = laws[tuple(other)]
                worst = max(worst, *(log(p / there[t]) for t, p in laws[counts].items()))

    assert 1 / lam < worst <= float(PATH[Neighbours.CHANGE_ONE]) / lam


@pytest.mark.parametrize("lam", [1.442695041, 3.0])
def test_the_exact_law_of_small_trees_keeps_the_price_for_every_added_record(lam):
    """Dearest is a tree that the record makes more likely: 1 + E one way, 1 the other."""
    scale = UNITS * lam
    penalty = ceil(scale * log(2))
    laws = {
        counts: law(counts, low=0, high=4, depth=0, scale=scale, penalty=penalty)
        for counts in product(range(7), repeat=4)
        if sum(counts) <= 6
    }
    up = down = 0.0
    for counts, fewer in laws.items():
        for place in range(4):
            more = laws.get((*counts[:place], counts[place] + 1, *counts[place + 1 :]))
            if more is not None:
                up = max(up, *(log(p / fewer[tree]) for tree, p in more.items()))
                down = max(down, *(log(fewer[tree] / p) for tree, p in more.items()))

    assert 1 / lam < up <= float(PATH[Neighbours.ADD_REMOVE]) / lam
    assert down <= 1 / lam + 1e-12


def test_the_law_that_was_enumerated_is_the_one_that_is_drawn():
    """By Hoeffding, 5 trees: false alarms below 10 exp(-2 * 4000 * 0.05^2) = 2.1e-8."""
    counts = (4, 1, 0, 1)
    column = np.repeat(np.arange(4), counts)
    epsilon = PATH[Neighbours.CHANGE_ONE] / 3
    noise = SeededNoise(5)
    attribute = Domain("x", Kind.NUMERIC, 4)
    seen = {}
    for _ in range(4000):
        tree = grow(
            HeldColumns([column]), AdaptiveAxis((attribute,)), price=Price(epsilon), noise=noise
        )
        key = tuple(sorted(zip(tree.lower[:, 0], tree.upper[:, 0], strict=True)))
        seen[key] = seen.get(key, 0) + 1

    expected = law(
        counts, low=0, high=4, depth=0, scale=3 * UNITS, penalty=ceil(3 * UNITS * log(2))
    )

    assert set(seen) <= {tuple(sorted(tree)) for tree in expected}
    assert max(abs(seen.get(t, 0) / 4000 - p) for t, p in expected.items()) < 0.05


# Properties.


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_leaves_cover_every_place_once_and_labels_say_where_records_are(seed, n):
    columns = table(seed, n)

    tree = grow(
        HeldColumns(columns), AdaptiveAxis(MIXED), price=Price(Fraction(1)), noise=SeededNoise(seed)
    )

    assert np.prod(tree.upper - tree.lower, axis=1).sum() == 33 * 4 * 5
    positions = MIXED[2].positions
    places = np.column_stack([columns[0], columns[1], positions[columns[2]]])
    labels = tree.walk.state.labels
    assert (places >= tree.lower[labels]).all()
    assert (places < tree.upper[labels]).all()


@given(st.integers(0, 2**32), st.integers(1, 80), st.integers(0, 80))
def test_counts_of_blocks_add_up_and_equal_the_slow_twin(seed, n, first):
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 8, (2, n)).astype(np.int32)
    labels = rng.integers(-2, 3, n).astype(np.int32)
    axis, cut = rng.integers(0, 2, 3), rng.integers(1, 8, 3)
    child = np.array([0, -3, 2])

    whole = labels.copy()
    counts = descend(places, whole, axis, cut, child, 4)
    parts = [labels[:first].copy(), labels[first:].copy()]
    blocks = [np.ascontiguousarray(places[:, :first]), np.ascontiguousarray(places[:, first:])]
    added = sum(descend(b, p, axis, cut, child, 4) for b, p in zip(blocks, parts, strict=True))

    twin = [
        node if node < 0 else child[node] if child[node] < 0
        else child[node] + (places[axis[node], i] >= cut[node])
        for i, node in enumerate(labels)
    ]  # fmt: skip
    np.testing.assert_array_equal(whole, twin)
    np.testing.assert_array_equal(np.concatenate(parts), twin)
    open_ones = [t for t, node in zip(twin, labels, strict=True) if t >= 0 and node >= 0]
    np.testing.assert_array_equal(counts, np.bincount(open_ones, minlength=4))
    np.testing.assert_array_equal(counts, added)


@given(st.integers(0, 2**32), st.integers(1, 300), st.sampled_from(["0.1", "1", "20"]))
def test_a_marginal_is_a_histogram_with_n_records_over_the_whole_domain(seed, n, epsilon):
    noise = SeededNoise(seed)
    column = np.random.default_rng(seed).integers(0, 100, n)
    line = Domain("x", Kind.NUMERIC, 100)

    found = tree_histogram(
        HeldColumns([column]), 0, line, price=Price(Fraction(epsilon)), noise=noise
    )

    assert found.edges[0] == 0
    assert found.edges[-1] == 100
    assert (np.diff(found.edges) > 0).all()
    assert found.project(n).sum() == n
    assert len(found.project(n)) == len(found.edges) - 1
    accounting.verify(
        found.privacy_losses, Fraction(epsilon), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


@given(st.integers(0, 2**32), st.integers(1, 20))
def test_boxes_are_halved_where_their_columns_say(seed, nodes):
    rng = np.random.default_rng(seed)
    space = AdaptiveAxis(MIXED)
    lower = np.column_stack([rng.integers(0, size, nodes) for size in space.sizes])
    upper = np.column_stack(
        [rng.integers(low + 1, size + 1) for low, size in zip(lower.T, space.sizes, strict=True)]
    )
    split = np.flatnonzero((upper - lower > 1).any(axis=1))

    axis, cut = space.halve(lower, upper, split)

    for node in split:
        width = (upper - lower)[node]
        widest = max(w / size for w, size in zip(width, space.sizes, strict=True) if w > 1)
        j = axis[node]
        assert width[j] / space.sizes[j] == widest
        assert cut[node] == MIXED[j].cut(int(lower[node, j]), int(upper[node, j]))


# Examples.


def test_a_tree_with_too_much_epsilon_for_its_proof_is_refused():
    with pytest.raises(InputError, match=r"at most 2\.5 for its splits; got 3"):
        grow(
            HeldColumns(table(0, 5)),
            AdaptiveAxis(MIXED),
            price=Price(Fraction(3)),
            noise=SeededNoise(0),
        )


def test_the_bounds_of_logarithms_lie_on_the_right_side():
    assert float(adaptive_tree._LN2) > log(2)
    assert float(adaptive_tree.SHALLOWEST) > 1 / log(2)
    # Two terms by hand and a geometric bound for the rest: 2 + E < PATH, and 1 + E.
    series = sum(Fraction(1, 2**k - 1) for k in range(1, 40)) + Fraction(1, 2**38)
    assert 2 + series < PATH[Neighbours.CHANGE_ONE]
    assert 1 + series < PATH[Neighbours.ADD_REMOVE]
