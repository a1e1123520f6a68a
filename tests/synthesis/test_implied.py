from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.synthesis.maxent.fit import Fitted, Target, fit_distribution
from shoal.synthesis.maxent.implied import _observed_multiple, without_implied
from shoal.synthesis.maxent.structural_zeros import GroupedZeros

SIZES = [4, 3, 5]
PAIRS = [(0, 1), (0, 2), (1, 2)]
SURE, LITTLE = 1e9, 1e-3


def axes_away(a, b):
    return tuple(k for k in range(3) if k not in (a, b))


def shape_of(a, b, of):
    return of.reshape([SIZES[j] if j in (a, b) else 1 for j in range(3)])


def cells(p):
    groups = np.indices(p.shape).reshape(3, -1).T.astype(np.uint8)
    return groups, p.ravel()


def dense(p, theta):
    groups, weights = cells(p)
    return Fitted(groups, weights, 1.0, stages=1, tau=1.0, dense=True, theta=np.concatenate(theta))


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_without_their_parameters_two_columns_are_the_fit_over_their_factor(seed):
    rng = np.random.default_rng(seed)
    theta = {pair: rng.normal(size=SIZES[pair[0]] * SIZES[pair[1]]) for pair in PAIRS}

    def distribution(pairs):
        p = np.exp(sum(shape_of(*pair, theta[pair]) for pair in pairs) + np.zeros(SIZES))
        return p / p.sum()

    fitted = dense(distribution(PAIRS), list(theta.values()))
    targets = [Target(pair, theta[pair], 1.0) for pair in PAIRS]
    for a, b in PAIRS:
        others = distribution([pair for pair in PAIRS if pair != (a, b)]).sum(axis=axes_away(a, b))
        q = fitted.pair(a, b, SIZES) * np.exp(-fitted.parameters(a, b, SIZES, targets))
        assert q / q.sum() == pytest.approx(others, rel=1e-9)


def two_fits(truth, weights, noise=0.0):
    """The first and the second fit to tables of a truth with these weights."""
    rng = np.random.default_rng(1)
    margins = [truth.sum(axis=tuple(k for k in range(3) if k != j)) for j in range(3)]
    alone = [Target((j,), margin, SURE) for j, margin in enumerate(margins)]
    shown = [truth.sum(axis=axes_away(*pair)).ravel() for pair in PAIRS]
    shown[0] = shown[0] + noise * rng.normal(size=shown[0].size)
    measured = [Target(pair, shares, SURE) for pair, shares in zip(PAIRS, shown, strict=True)]
    measured[0] = replace(measured[0], weight=noise**-2 if noise else SURE)
    believed = [replace(table, weight=weights[table.columns]) for table in measured]
    zeros = GroupedZeros(priors=margins)
    targets = [*alone, *believed]

    def fit(targets, start=None):
        return fit_distribution(
            SIZES, margins, targets, tau=1.0, particles=10, rng=rng, zeros=zeros, start=start
        )

    first = fit(targets)
    centred = without_implied(targets, measured, first, zeros)
    return first, fit(centred, first), centred


def off(fitted, truth, pair):
    return np.abs(fitted.pair(*pair, SIZES) - truth.sum(axis=axes_away(*pair))).sum()


def collider():
    """Columns 0 and 1 by themselves, and a third that depends on both."""
    a, b, c = (np.linspace(-1, 1, size) for size in SIZES)
    given = np.exp(np.add.outer(np.add.outer(a, b), np.zeros(SIZES[2])) * c)
    given /= given.sum(axis=2, keepdims=True)
    return given / (SIZES[0] * SIZES[1])


def chain():
    """Column 0 and column 1 that depend on each other by the third alone."""
    a, b, c = (np.linspace(-1, 1, size) for size in SIZES)
    p = np.exp(2 * np.multiply.outer(a, c)[:, None, :] + 2 * np.multiply.outer(b, c)[None, :, :])
    return p / p.sum()


BELIEVED = {(0, 1): LITTLE, (0, 2): SURE, (1, 2): SURE}


@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_dependence_that_the_pair_itself_denies_is_taken_back(noise):
    truth = collider()
    first, second, _ = two_fits(truth, BELIEVED, noise)
    assert off(first, truth, (0, 1)) > 0.1
    assert off(second, truth, (0, 1)) < 0.4 * off(first, truth, (0, 1))
    for pair in PAIRS[1:]:
        assert off(second, truth, pair) < off(first, truth, pair) + 1e-3


@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_dependence_that_is_implied_rightly_stays(noise):
    truth = chain()
    first, second, centred = two_fits(truth, BELIEVED, noise)
    assert off(first, truth, (0, 1)) < 0.03
    assert off(second, truth, (0, 1)) < 0.03
    (pair,) = (one for one in centred if one.columns == (0, 1))
    assert np.abs(pair.centre).max() < 0.1


def test_a_pair_that_says_nothing_changes_nothing():
    implied = np.outer([1.0, -1.0], [1.0, -1.0]) / 10
    table = Target((0, 1), np.full(4, 0.25), 1e-12)
    assert _observed_multiple(table, np.full((2, 2), 0.25), implied) == pytest.approx(1.0)


@settings(max_examples=30)
@given(st.floats(0.0, 2.0), st.integers(0, 10**6))
def test_a_pair_without_noise_tells_how_much_of_what_is_implied_is_there(times, seed):
    rng = np.random.default_rng(seed)
    implied = np.outer(rng.normal(size=3), rng.normal(size=4))
    implied -= implied.mean(axis=0)
    implied -= implied.mean(axis=1, keepdims=True)
    implied *= 0.01 / np.abs(implied).sum()
    fitted = np.full((3, 4), 1 / 12)
    table = Target((0, 1), (fitted + (times - 1) * implied).ravel(), 1e12)
    assert _observed_multiple(table, fitted, implied) == pytest.approx(times, abs=0.13)


def test_forbidden_cells_have_no_centre_and_cells_of_steep_parameters_keep_theirs():
    truth = chain()
    truth[0, :, :2] = 0.0
    truth /= truth.sum()
    _, second, centred = two_fits(truth, BELIEVED)
    assert all(np.isfinite(np.asarray(one.centre)).all() for one in centred)
    assert second.pair(0, 2, SIZES)[0, :2] == pytest.approx(0.0, abs=1e-4)
