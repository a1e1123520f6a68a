"""Randomised response, and the second stage that makes it an invariant PRAM.

PRAM replaces each category by another at random, by a matrix R: R[c, v] is the probability that a
record with category c is released with v. Randomised response is the PRAM with

    P[c, c] = e^epsilon / (e^epsilon + L - 1),    P[c, u] = 1 / (e^epsilon + L - 1),  u != c,

and costs epsilon per record. It moves all shares towards 1 / L.

Invariant PRAM. Let pi be the shares of the categories in the table, and after the response u draw
v from the distribution that Bayes' rule gives for the truth,

    Q[u, v] = pi_v P[v, u] / m_u,    m_u = sum_w pi_w P[w, u],    R = P Q.

Then pi R = pi: (pi P)_u = m_u, and sum_u m_u Q[u, v] = pi_v sum_u P[v, u] = pi_v. A table of n
records, n pi_c of them with category c, is released with sum_c n pi_c R[c, v] = n pi_v records of
category v on average: expected counts are the true ones.

Price. For fixed pi, v depends on c through u alone, so for any c, c'

    R[c, v] = sum_u P[c, u] Q[u, v] <= e^epsilon sum_u P[c', u] Q[u, v] = e^epsilon R[c', v].

pi is read off the table. Who takes the table's pi for a public constant may use the line above; for
tables with different pi it gives no bound, and there is no finite one: a category that nobody has
is never released, and one that somebody has is released with positive probability.

References:
    Gouweleeuw, Kooiman, Willenborg, de Wolf, "Post randomisation for statistical disclosure
    control: theory and implementation", Journal of Official Statistics 14 (1998).
    Hundepool et al., "Statistical Disclosure Control", Wiley 2012. doi:10.1002/9781118348239
"""

from fractions import Fraction

import numpy as np

from shoal.core import RESPONSE, Neighbours, Noise, PrivacyLoss
from shoal.core._arrays import Floats, Ints
from shoal.mechanism.microaggregate_noise import Purchase


def responses(
    codes: Ints, *, categories: int, purchase: Purchase, noise: Noise
) -> tuple[Ints, PrivacyLoss]:
    """Answer for every record by randomised response, at `purchase.epsilon` each.

    Args:
        codes: category of each record, 0 to categories - 1.
        categories: how many categories are declared.
        purchase: the price; a record changes its own answer only.
        noise: where draws come from.
    """
    answers = noise.respond(codes, categories=categories, epsilon=purchase.epsilon)
    privacy_loss = PrivacyLoss(
        mechanism=RESPONSE,
        target=purchase.target,
        sensitivity=Fraction(1),
        scale=1 / purchase.epsilon,
        epsilon=purchase.epsilon,
        neighbours=Neighbours.CHANGE_ONE,
        draws=codes.size,
    )
    return answers, privacy_loss


def response_matrix(categories: int, epsilon: float) -> Floats:
    """Return P of randomised response: a row for each truth, a column for each answer.

    >>> response_matrix(2, float(np.log(3)))
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    other = 1 / (np.exp(min(epsilon, 700.0)) + categories - 1)
    P = np.full((categories, categories), other)
    np.fill_diagonal(P, 1 - (categories - 1) * other)
    return P


def posterior(P: Floats, shares: Floats) -> Floats:
    """Compute Q, the distribution of the truth given each answer, by Bayes' rule.

    A row for each answer, a column for each truth. An answer that cannot come gets the shares.
    """
    joint = (P * shares[:, None]).T
    total = joint.sum(axis=1, keepdims=True)
    possible = total > 0
    Q: Floats = np.where(possible, joint / np.where(possible, total, 1.0), shares)
    return Q


def redrawn(answers: Ints, Q: Floats, rng: np.random.Generator) -> Ints:
    """Draw each record anew from its answer's row of Q: post-processing, once Q is fixed.

    What Q gives no probability is never drawn. One uniform number per record; the cost is that
    of sorting the answers.
    """
    ends = np.cumsum(Q, axis=1)
    ends /= ends[:, -1:]
    places = rng.random(answers.size)
    order = np.argsort(answers, kind="stable")
    starts = np.searchsorted(answers[order], np.arange(len(Q) + 1))
    drawn = np.empty(answers.size, dtype=np.int64)
    for code in range(len(Q)):
        rows = order[starts[code] : starts[code + 1]]
        drawn[rows] = np.searchsorted(ends[code], places[rows], side="right")
    return drawn
