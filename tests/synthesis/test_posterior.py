from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import gamma, norm

from shoal.hazmat.fakes import SeededNoise
from shoal.mechanism.consistent_counts import project, shrink
from shoal.synthesis.domain import Measurement
from shoal.synthesis.maxent.fit import Target
from shoal.synthesis.maxent.posterior import (
    _LAWS,
    by_levels,
    common_margins,
    posterior_mean,
    smooth,
)
from shoal.synthesis.maxent.structural_zeros import Component, GroupedZeros

SHAPES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0)
WIDE, OTHERS = 1, 0.02

counts = st.lists(st.tuples(st.integers(0, 500), st.floats(-9, 9)), min_size=1, max_size=20)
scales = st.sampled_from([1e-3, 0.4, 3.0, 40.0, 900.0, 1e7])


@settings(max_examples=200)
@given(counts, scales)
def test_believed_counts_are_positive_have_the_total_and_keep_their_order(drawn, scale):
    true, steps = np.array(drawn).T
    total = int(true.sum()) + 1
    noisy = np.rint(true + scale * steps)

    believed = posterior_mean(noisy, total, scale)

    assert (believed > 0).all()
    assert believed.sum() == pytest.approx(total)
    assert (np.diff(believed[np.argsort(noisy, kind="stable")]) >= -1e-6 * total).all()


@pytest.mark.parametrize(
    ("noisy", "total", "scale"),
    [((60, -20, 9), 50, 8.0), ((4, 3, 90, 0, 1), 100, 2.0), ((30, 45, 25, 38), 140, 20.0)],
)
def test_they_are_the_means_of_the_stated_law(noisy, total, scale):
    """The slow twin sums each law over 10^5 points; what lies below the first is an atom there."""
    mean = total / len(noisy)
    points = np.geomspace(1e-12, 60 * scale + max(noisy), 100_000)
    widths = np.gradient(points)
    laws = [gamma(shape, scale=mean / shape) for shape in SHAPES]
    masses = np.array([law.pdf(points) * widths for law in laws])
    masses[:, 0] += [law.cdf(points[0]) for law in laws]
    masses = (1 - OTHERS) * masses + OTHERS * masses[WIDE]
    joint = np.array([masses * np.exp(-np.abs(points - y) / scale) for y in noisy])
    alone = joint.sum(axis=2)
    evidence = alone.prod(axis=0) / alone.prod(axis=0).sum()
    mixed = (joint * (evidence / alone)[:, :, None]).sum(axis=1)

    def means(b):
        tilted = mixed * np.exp(-b * points)
        return (tilted * points).sum(axis=1) / tilted.sum(axis=1)

    b = brentq(lambda b: means(b).sum() - total, -0.5 / scale, 0.5 / scale, xtol=1e-6 / scale)

    assert posterior_mean(np.array(noisy), total, scale) == pytest.approx(
        means(b), abs=0.02 * scale
    )


@pytest.mark.parametrize("most", [1 / 30, 0.9])
def test_columns_of_one_large_code_and_even_columns_are_nearer_than_projected_and_shrunk_ones(most):
    n, size = 30_000, 30
    true = np.full(size, n * (1 - most) / (size - 1))
    true[0] = n * most
    true = np.rint(true).astype(np.int64)
    noise, scale = SeededNoise(0), n / size / 2
    drawn = [noise.discrete_laplace(true, scale=int(scale)) for _ in range(40)]

    def distance(way):
        return np.mean([np.abs(way(noisy) - true).sum() for noisy in drawn]) / 2 / n

    found = distance(lambda noisy: posterior_mean(noisy, n, scale))

    assert found < 0.75 * distance(lambda noisy: project(noisy, n))
    assert found < 0.75 * distance(lambda noisy: shrink(noisy, n, 2 * scale**2))


@pytest.mark.parametrize(
    ("size", "mean", "other", "scale"), [(1000, 6, 600, 2), (51, 500, 3000, 100), (24, 100, 0, 10)]
)
def test_many_codes_that_are_alike_do_not_outvote_the_one_that_is_not(size, mean, other, scale):
    true = np.full(size, mean)
    true[3] = other
    noisy = SeededNoise(5).discrete_laplace(true, scale=scale)

    believed = posterior_mean(noisy, int(true.sum()), scale)

    assert believed[3] == pytest.approx(max(noisy[3], 0), abs=3 * scale)


@given(
    st.lists(st.integers(-50, 500), min_size=1, max_size=40),
    st.sampled_from([1e-6, 1.0, 90.0, 1e4]),
    st.integers(0, 40),
)
def test_smoothed_counts_have_the_total_and_do_not_depend_on_where_runs_begin(noisy, variance, by):
    counts = np.array(noisy)
    total = max(int(counts.sum()), 1)

    found = smooth(counts, total, variance)

    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)
    np.testing.assert_allclose(smooth(counts[::-1], total, variance)[::-1], found, atol=1e-7)
    if counts.size & (counts.size - 1) == 0:
        moved = smooth(np.roll(counts, by), total, variance)
        np.testing.assert_allclose(np.roll(moved, -by), found, atol=1e-7)


@settings(max_examples=40)
@given(
    st.lists(st.integers(-20, 200), min_size=2, max_size=11),
    st.sampled_from([1.0, 60.0, 2500.0]),
)
def test_smoothed_counts_equal_their_slow_twin(noisy, variance):
    total = max(sum(noisy), 1)
    found = smooth(np.array(noisy), total, variance)
    np.testing.assert_allclose(found, slowly_smoothed(noisy, total, variance), atol=1e-6 * total)


def slowly_smoothed(noisy, total, variance):
    """Run by run on a ring, as the definition says."""
    levels = max((len(noisy) - 1).bit_length(), 1)
    ring = 2**levels
    codes = [[(start + k) % ring for k in range(ring)] for start in range(ring)]
    believed = [float(total)] * ring
    for half in (2**level for level in range(levels - 1, -1, -1)):
        sides = [
            [[c for c in part if c < len(noisy)] for part in (run[:half], run[half : 2 * half])]
            for run in codes
        ]
        apart, spread, noise, cut = [], [], [], []
        for start, (left, right) in enumerate(sides):
            if left and right:
                width = len(left) + len(right)
                sums = [sum(noisy[c] for c in side) for side in (left, right)]
                apart.append((sums[0] * len(right) - sums[1] * len(left)) / width)
                noise.append(variance * len(left) * len(right) / width)
                spread.append(2 * believed[start] * len(left) * len(right) / width**2)
                cut.append(start)
        weights = np.full(_LAWS.size, 1 / _LAWS.size)
        apart, spread, noise = map(np.array, (apart, spread, noise))
        laws = (_LAWS[:, None] * spread) ** 2 if cut else np.zeros((_LAWS.size, 0))
        for _ in range(50 if cut else 0):
            shares = weights[:, None] * norm.pdf(apart, scale=np.sqrt(laws + noise))
            shares /= shares.sum(axis=0)
            weights = shares.sum(axis=1) / min(2 * half, len(cut)) + 1 / _LAWS.size
            weights /= weights.sum()
        moved = [0.0] * ring
        for number, start in enumerate(cut):
            kept = (shares[:, number] * laws[:, number] / (laws + noise)[:, number]).sum()
            moved[start] = kept * apart[number]
        halves = []
        for start, (left, right) in enumerate(sides):
            width = max(len(left) + len(right), 1)
            a, b = (believed[start] * len(side) / width for side in (left, right))
            move = min(max(moved[start], -a), b)
            halves.append((a + move, b - move))
        believed = [(halves[s][0] + halves[(s - half) % ring][1]) / 2 for s in range(ring)]
    found = np.array(believed[: len(noisy)])
    return found * total / found.sum()


@pytest.mark.parametrize("sort", ["ages", "heaps", "zeros"])
def test_ordered_counts_are_nearer_smoothed_than_believed_one_by_one(sort):
    n, size, scale = 27_000, 100, 40
    code = np.arange(size)
    shares = {
        "ages": 1.2 - (code / 80) ** 2,
        "heaps": np.exp(-(((code - 40) / 15) ** 2)) * np.where(code % 10, 1, 1.4),
        "zeros": np.where(code, np.exp(-(((code - 50) / 12) ** 2)), 90.0),
    }[sort]
    shares = np.maximum(shares, 0.01)
    true = np.rint(n * shares / shares.sum()).astype(np.int64)
    noise = SeededNoise(1)
    drawn = [noise.discrete_laplace(true, scale=scale) for _ in range(20)]

    def distance(way):
        return np.mean([np.abs(way(noisy) - true).sum() for noisy in drawn]) / 2 / n

    found = distance(lambda noisy: smooth(noisy, int(true.sum()), 2 * scale**2))

    assert found < 0.7 * distance(lambda noisy: posterior_mean(noisy, int(true.sum()), scale))


def pair(columns, priors, strength, weight, seed):
    """A noisy table of two columns in which matching groups occur more often than by chance."""
    rng = np.random.default_rng(seed)
    alone = np.outer(*(priors[j] for j in columns))
    matched = np.diag(priors[columns[0]])
    shares = (1 - strength) * alone + strength * matched
    return Target(columns, (shares + rng.normal(0, weight**-0.5, shares.shape)).ravel(), weight)


PRIORS = [np.array([0.4, 0.3, 0.2, 0.1])] * 4


def learnt(tables, priors=PRIORS):
    """Targets of tables without order, and the part of each that is believed."""
    return by_levels(tables, GroupedZeros(priors=priors), priors, [False] * len(priors), tau=10.0)


def test_tables_that_show_nothing_but_noise_are_not_believed_and_strong_ones_are():
    nothing = [
        pair(columns, PRIORS, 0.0, 1e3, seed)
        for seed, columns in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)])
    ]
    strong = pair((2, 3), PRIORS, 0.8, 1e3, 9)

    _, parts = learnt([*nothing, strong])

    assert np.median(parts[:-1]) < 0.3  # one in five shows a cell as few tables of noise do
    assert max(parts[:-1]) < 0.7 < parts[-1]


def test_the_same_table_is_believed_less_if_more_of_it_may_be_noise():
    table = pair((0, 1), PRIORS, 0.5, 1e4, 3)

    found = [learnt([replace(table, weight=weight)])[1][0] for weight in (30.0, 300.0, 1e3, 1e6)]

    assert found == sorted(found)
    assert found[0] < 0.6
    assert found[-1] > 0.99


def test_one_strong_cell_is_believed_and_those_beside_it_are_not():
    priors = [np.full(8, 1 / 8)] * 2
    rng = np.random.default_rng(4)
    shares = np.outer(*priors) + rng.normal(0, 0.002, (8, 8))
    shares[2, 5] += 0.05

    (target,), _ = learnt([Target((0, 1), shares.ravel(), 0.002**-2)], priors)

    weights = np.broadcast_to(target.weight, 64).reshape(8, 8).copy()
    strong, weights[2], weights[:, 5] = weights[2, 5], 0.0, 0.0
    assert strong > 20 * weights.max()


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
def test_departures_that_margins_explain_count_for_nothing(seed, strength):
    """Any row and column effects may be added: single columns answer for these."""
    rng = np.random.default_rng(seed)
    table = pair((0, 1), PRIORS, strength, 300.0, seed)
    rows, columns = rng.normal(size=(2, 4))
    moved = table.shares.reshape(4, 4) + np.outer(rows, PRIORS[1]) + np.outer(PRIORS[0], columns)
    other = Target((0, 1), moved.ravel(), table.weight)

    assert learnt([other])[1] == pytest.approx(learnt([table])[1], rel=1e-3, abs=1e-6)


def test_a_column_of_one_group_says_nothing():
    priors = [np.array([1.0]), np.array([0.5, 0.5]), np.array([0.7, 0.3])]
    empty = Target((0, 1), np.array([0.6, 0.4]), 100.0)
    full = Target((1, 2), np.array([0.6, 0.0, 0.1, 0.3]), 100.0)

    _, parts = learnt([empty, full], priors)

    assert parts[0] == pytest.approx(0, abs=1e-6)
    assert parts[1] > 0.3


JOINED = Component(
    (0, 1),
    (np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 1, 1, 1])),
    np.array([[True, False], [True, True]]),
)
"""The first three codes of one column allow the first code of another alone."""


@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=2, max_size=2), st.booleans())
def test_every_level_of_a_pair_adds_up_to_the_margins_and_to_the_next_level(seed, ordered, ruled):
    priors = [np.full(7, 1 / 7), np.array([0.4, 0.3, 0.2, 0.1])]
    rng = np.random.default_rng(seed)
    zeros = GroupedZeros(*([[JOINED], [JOINED.atoms]] if ruled else []), priors=priors)
    kept = zeros.mask((0, 1))
    noisy = kept * (np.outer(*priors) + rng.normal(0, 0.02, (7, 4)))
    true = kept * (rng.random((7, 4)) + 0.1)
    margins = [true.sum(axis=axis) / true.sum() for axis in (1, 0)]
    table = Target((0, 1), noisy.ravel(), 2500.0)

    levels, _ = by_levels([table], zeros, margins, ordered, tau=10.0)

    assert len(levels) == (3 if ordered[0] else 2 if ordered[1] else 1)
    finest = levels[0].shares.reshape(7, 4)
    np.testing.assert_allclose(finest.sum(axis=1), margins[0], atol=1e-6)
    np.testing.assert_allclose(finest.sum(axis=0), margins[1], atol=1e-6)
    assert not finest[~kept].any()
    for level in levels:
        rows, columns = level.joined or (np.arange(7), np.arange(4))
        sums, joined = np.zeros((2, rows[-1] + 1, columns[-1] + 1))
        np.add.at(sums, (rows[:, None], columns), finest)
        np.add.at(joined, (rows[:, None], columns), kept)
        np.testing.assert_allclose(level.shares, sums.ravel(), atol=1e-12)
        whole = np.bincount(rows)[:, None] * np.bincount(columns)
        assert ((joined == 0) | (joined == whole)).all()  # runs are allowed or not as a whole
        assert (level.weight > 0).all()


def test_margins_are_shares_also_where_all_noisy_counts_are_negative():
    one_way = [Target((0,), np.array([-0.5, -0.25, -0.75]), 4.0)]

    (found,) = common_margins(one_way, [], GroupedZeros(priors=[np.full(3, 1 / 3)]), n=100)

    np.testing.assert_allclose(found.shares, np.full(3, 1 / 3))
    assert found.weight == 4.0


def test_margins_are_means_by_variance_of_all_that_shows_a_column_where_it_is_allowed():
    zeros = GroupedZeros([JOINED], [JOINED.atoms], priors=[np.full(7, 1 / 7), np.full(4, 1 / 4)])
    counts = np.where(zeros.mask((0, 1)), 10, 1000)  # noise alone where nothing is allowed
    pair = Measurement((0, 1), (np.arange(7), np.arange(4)), counts, Fraction(1))
    one_way = [Target((0,), np.full(7, 1 / 7), 100.0), Target((1,), np.full(4, 1 / 4), 100.0)]

    rows, _ = common_margins(one_way, [pair], zeros, n=190)

    weights = 190**2 / 2 / np.array([1, 1, 1, 4, 4, 4, 4])
    shares = 100 / 7 + weights * np.array([10, 10, 10, 40, 40, 40, 40]) / 190
    shares /= 100 + weights
    np.testing.assert_allclose(rows.shares, shares / shares.sum(), atol=1e-6)
    np.testing.assert_allclose(rows.weight, 100 + weights)


@given(
    noisy=st.lists(st.sampled_from([-(10**9), -1, 0, 1, 10**9]), min_size=1, max_size=9),
    total=st.sampled_from([0, 1, 40]),
    scale=st.sampled_from([1e-6, 1.0, 1e9]),
)
@settings(max_examples=60)
def test_counts_at_their_ends_are_believed_with_the_total(noisy, total, scale):
    for found in (
        posterior_mean(np.array(noisy), total, scale),
        smooth(np.array(noisy), total, 2 * scale**2),
    ):
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(total)
