"""Randomised response and the second stage of an invariant PRAM."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.mechanism.microaggregate_noise import Purchase
from shoal.mechanism.randomised_response import posterior, redrawn, response_matrix, responses

counts = st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any)
epsilons = st.floats(0.01, 20)


@given(counts=counts, epsilon=epsilons)
def test_the_two_stages_together_keep_the_shares(counts, epsilon):
    shares = np.array(counts) / sum(counts)
    P = response_matrix(len(counts), epsilon)

    R = P @ posterior(P, shares)

    assert R.sum(axis=1) == pytest.approx(1)
    assert shares @ R == pytest.approx(shares, abs=1e-12)


@given(counts=counts, odds=st.fractions(Fraction(1, 100), 100))
def test_the_algebra_holds_exactly_in_fractions(counts, odds):
    """The same with e^epsilon an exact number: pi R = pi, not up to rounding."""
    n, total = len(counts), sum(counts)
    pi = [Fraction(count, total) for count in counts]
    P = [[(odds if u == c else 1) / (odds + n - 1) for u in range(n)] for c in range(n)]
    m = [sum(pi[w] * P[w][u] for w in range(n)) for u in range(n)]
    Q = [[pi[v] * P[v][u] / m[u] for v in range(n)] for u in range(n)]

    R = [[sum(P[c][u] * Q[u][v] for u in range(n)) for v in range(n)] for c in range(n)]

    assert [sum(pi[c] * R[c][v] for c in range(n)) for v in range(n)] == pi


@given(counts=counts, epsilon=epsilons)
def test_no_value_is_likelier_from_one_truth_than_epsilon_allows(counts, epsilon):
    shares = np.array(counts) / sum(counts)
    P = response_matrix(len(counts), epsilon)

    for matrix in (P, P @ posterior(P, shares)):
        most, least = matrix.max(axis=0), matrix.min(axis=0)
        assert (most <= np.exp(epsilon) * least * (1 + 1e-9)).all()


@given(counts=counts, epsilon=epsilons, seed=st.integers(0, 999))
@settings(max_examples=50)
def test_a_value_that_nobody_has_is_never_drawn(counts, epsilon, seed):
    rng = np.random.default_rng(seed)
    Q = posterior(response_matrix(len(counts), epsilon), np.array(counts) / sum(counts))

    drawn = redrawn(rng.integers(len(counts), size=300), Q, rng)

    assert set(drawn) <= set(np.flatnonzero(counts))


def test_each_answer_is_redrawn_from_its_own_row():
    """Chi-square for each row of a table of 20,000 answers; false alarms: 3e-7 in all."""
    Q = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.1, 0.9]])
    answers = np.arange(60_000) % 3

    drawn = redrawn(answers, Q, np.random.default_rng())

    for answer, row in enumerate(Q):
        found = np.bincount(drawn[answers == answer], minlength=3)
        likely = row > 0
        assert found[~likely].sum() == 0
        assert stats.chisquare(found[likely], 20_000 * row[likely]).pvalue > 1e-7


def test_released_counts_are_the_true_ones_on_average():
    """1,000 runs on 40 records. A count is a sum of 40 independent truth values with the true
    count as its mean; by Hoeffding's bound the mean of 1,000 is off by 0.6 or more with
    probability below 2 exp(-2 * 0.36 * 1000 / 40) = 3e-8 for each of the four."""
    codes = np.repeat(np.arange(4), [25, 10, 4, 1])
    epsilon = Fraction(1)
    rng, noise = np.random.default_rng(), SeededNoise(int(np.random.default_rng().integers(2**32)))
    Q = posterior(response_matrix(4, float(epsilon)), np.bincount(codes) / 40)

    answers = noise.respond(np.tile(codes, (1000, 1)), categories=4, epsilon=epsilon)
    drawn = redrawn(answers.ravel(), Q, rng)

    assert np.abs(np.bincount(drawn) / 1000 - [25, 10, 4, 1]).max() < 0.6
    # The response alone does not keep them: 25 of 40 becomes some 15.
    assert np.bincount(answers.ravel())[0] / 1000 < 20


@given(epsilon=st.fractions(Fraction(1, 1000), 50))
def test_what_is_spent_is_the_price_that_the_ledger_derives(epsilon):
    answers, privacy_loss = responses(
        np.array([0, 1, 2]),
        categories=3,
        purchase=Purchase("job", epsilon),
        noise=RecordingNoise(added=1),
    )

    assert answers.tolist() == [1, 2, 0]
    assert privacy_loss.draws == 3
    assert accounting.total([privacy_loss]) == epsilon
    derived = accounting.compose_epsilon(
        privacy_loss.mechanism, sensitivity=privacy_loss.sensitivity, scale=privacy_loss.scale
    )
    assert derived == epsilon


def test_a_high_epsilon_leaves_everything_as_it_is():
    P = response_matrix(3, 1e6)

    R = P @ posterior(P, np.array([0.5, 0.5, 0.0]))

    assert R[:2] == pytest.approx(np.eye(3)[:2])
