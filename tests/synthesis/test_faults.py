"""Deliberate faults in mechanisms that draw rows: an audit or the accounting finds them."""

from fractions import Fraction

import numpy as np
import pytest

from shoal.core import Kind, Neighbours, Price
from shoal.errors import InternalError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import SeededNoise
from shoal.mechanism.noisy_answers import noisy_table, table_counts
from shoal.mechanism.records import HeldColumns
from shoal.metrics.epsilon_lower_bound import lower_bound
from shoal.synthesis.adaptive_tree import PATH, UNITS, AdaptiveAxis, grow
from shoal.synthesis.domain import Domain
from shoal.synthesis.privtree import Fill, privtree

LINE = Domain("x", Kind.NUMERIC, 4)
CERTAIN = 1 - 1e-7
"""Confidence of the audits below: a correct mechanism fails one with probability 1e-7 at most."""


class Halved(SeededNoise):
    """Noise of half the scale that it was asked for."""

    def _laplace(self, values, scale):
        return super()._laplace(values, scale / 2)


class TrueSplits(SeededNoise):
    """No noise where a tree decides about a split."""

    def _laplace(self, values, scale):
        # The prime 3607 of PATH is in the scale of no count.
        split = (scale / UNITS).numerator % PATH[Neighbours.CHANGE_ONE].numerator == 0
        return values if split else super()._laplace(values, scale)


def splits(column, noise, epsilon):
    """How many leaves a tree has, run by run."""
    codes = np.array(column)

    def sample(runs):
        return np.array(
            [
                len(
                    grow(
                        HeldColumns([codes]),
                        AdaptiveAxis((LINE,)),
                        price=Price(epsilon),
                        noise=noise,
                    )
                )
                for _ in range(runs)
            ],
            float,
        )

    return sample


def tables(codes, noise, epsilon):
    """The noisy table of two columns: what its two cells that change have in common, by run."""
    exact = table_counts([np.array(column) for column in codes], [2, 2])

    def sample(runs):
        found = np.empty(runs)
        for run in range(runs):
            counts, _ = noisy_table(exact, target="a x b", price=Price(epsilon), noise=noise)
            found[run] = min(counts[0, 0], 6 - counts[1, 1])
        return found

    return sample


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "broken"), [(SeededNoise, False), (TrueSplits, True)])
def test_an_audit_sees_whether_splits_have_noise(noise, broken):
    """False alarms: below 1e-7 by the confidence of the bound."""
    epsilon = Fraction(1)
    before, after = [0] * 3, [0] * 2 + [3]

    bound = lower_bound(
        splits(before, noise(1), epsilon), splits(after, noise(2), epsilon),
        scores={"leaves": lambda leaves: leaves}, trials=2000, confidence=CERTAIN,
    )  # fmt: skip

    assert bound.exceeds(1.0) is broken


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "broken"), [(SeededNoise, False), (Halved, True)])
def test_an_audit_sees_whether_tables_have_the_noise_that_they_paid_for(noise, broken):
    """False alarms: below 1e-7 by the confidence of the bound."""
    before, after = ([0] * 6, [0] * 6), ([0] * 5 + [1], [0] * 5 + [1])

    bound = lower_bound(
        tables(before, noise(1), Fraction(1)), tables(after, noise(2), Fraction(1)),
        scores={"cells": lambda cells: cells}, trials=20_000, confidence=CERTAIN,
    )  # fmt: skip

    assert bound.exceeds(1.0) is broken


def test_a_draw_that_nobody_accounts_for_is_caught():
    noise = SeededNoise(0)
    drawn = privtree([np.arange(4)], [LINE], price=Price(Fraction(1)), noise=noise,
                     rng=np.random.default_rng(0), fill=Fill.UNIFORM)  # fmt: skip
    accounting.verify(
        drawn.privacy_losses, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )

    noise.discrete_laplace(np.array([4]), scale=Fraction(1))

    with pytest.raises(InternalError, match="the noise drew"):
        accounting.verify(
            drawn.privacy_losses, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
        )


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_spending_of_the_tree_that_was_forgotten_is_caught(missing):
    noise = SeededNoise(0)
    drawn = privtree([np.arange(4)], [LINE], price=Price(Fraction(1)), noise=noise,
                     rng=np.random.default_rng(0))  # fmt: skip
    rest = [privacy_loss for i, privacy_loss in enumerate(drawn.privacy_losses) if i != missing]

    with pytest.raises(InternalError, match="derives epsilon"):
        accounting.verify(rest, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn)
