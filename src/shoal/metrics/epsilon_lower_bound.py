"""Lower bounds on epsilon from samples, which may refute a claim of differential privacy.

A mechanism with epsilon satisfies P(M(X) in S) <= exp(epsilon) P(M(Y) in S) for all neighbours X, Y
and all events S. So every pair and every event gives a lower bound: with p the lower and q the
upper confidence bound of the two probabilities, epsilon >= ln(p / q).

The runs on each table fall in two halves that share nothing. On the first half an event is chosen:
a score of the output, a threshold, a side of it, and which table is on top. On the second half
the few events that were chosen are counted, and only there are bounds computed, so
they hold however the choice was made. The first part of the first half, the pilot, serves scores
that learn: what they look at is fitted there, and the threshold is chosen on the rest.

The confidence is shared: an audit that is one of `family` audits, each with `finalists` events on
its second half, bounds every single probability at (1 - confidence) / (2 family finalists).

Rho. In zero-concentrated differential privacy the Renyi divergence of every order a > 1 is at most
a rho, either way. What happens to an output cannot raise it, so it holds for the two chances p > q
of an event too: with D_a the divergence of coins with these chances,

    rho >= max over a of max(D_a(p, q), D_a(q, p)) / a,

which grows with p and falls with q, so bounds of these give one of rho (`least_rho`). Beside it
stands mu = z(p) - z(q), z being the quantiles of the normal distribution: Gaussian noise of rho has
a mu of sqrt(2 rho) and no event of a larger one (Dong, Roth and Su). It is shown and refutes
nothing, because a mechanism of rho need not be Gaussian. A claim of mu itself is refuted by it.

Delta. With a delta, P(M(X) in S) <= exp(epsilon) P(M(Y) in S) + delta, so the bound is
ln((p - delta) / q).

Looking often. Where runs are dear, the events that were chosen are counted until they refute the
claim (`bound_event` with `ever`). Its bounds hold at all times together: those of the two chances
are `least_ever` and `most_ever`.

An audit refutes or finds nothing. It never supports a claim: another pair or another event may
do what these did not.

References:
    Ding, Wang, Wang, Zhang and Kifer, "Detecting violations of differential privacy", CCS 2018.
    doi:10.1145/3243734.3243818
    Jagielski, Ullman and Oprea, "Auditing differentially private machine learning", NeurIPS 2020:
    Clopper-Pearson on both probabilities. arXiv:2006.07709
    Bun, Steinke, "Concentrated differential privacy", TCC 2016, Lemma 2.2. arXiv:1605.02065
    Dong, Roth, Su, "Gaussian differential privacy", JRSS B 84 (2022). doi:10.1111/rssb.12454
    Mironov, "On significance of the least significant bits for differential privacy", CCS 2012:
    `low_bits`. doi:10.1145/2382196.2382264
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import inf
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from shoal.core import Estimate, PrivacyMeasure, Progress, silent
from shoal.core._arrays import Floats
from shoal.errors import InputError
from shoal.metrics.intervals import least, least_ever, most, most_ever

Sampler = Callable[[int], Any]
"""Runs a mechanism on one fixed table that many times; only scores read what it returns."""
Score = Callable[[Any], Floats]
"""One number per run, from a batch of outputs."""
Learner = Callable[[Any, Any], Score]
"""Makes a score from the pilot's outputs on both tables."""

PILOT = 1000
_BATCH = 2000
_THRESHOLDS = 600
_LEAST_TRIALS = 20


@dataclass(frozen=True)
class Event:
    """The event that a score of the output lies on one side of a threshold.

    Attributes:
        before: whether it is expected more often on the first table than on the second.

    >>> print(Event("number of distinct rows", at_least=True, threshold=3.0, before=True))
    number of distinct rows >= 3
    """

    score: str
    at_least: bool
    threshold: float
    before: bool

    def count(self, scores: Floats) -> int:
        """Count the runs in which it happened."""
        side = scores >= self.threshold if self.at_least else scores <= self.threshold
        return int(np.count_nonzero(side))

    def __str__(self) -> str:
        return f"{self.score} {'>=' if self.at_least else '<='} {self.threshold:.6g}"


@dataclass(frozen=True)
class PrivacyParameter:
    """What is to be bounded: epsilon at a delta, rho, or mu.

    Attributes:
        delta: of the epsilon.
        measure: in which privacy loss is declared; none for mu.
    """

    delta: float = 0.0
    measure: PrivacyMeasure | None = PrivacyMeasure.EPSILON

    def bound(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """Return what events with these probabilities, at least and at most, bound it by."""
        first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
        if self.measure is PrivacyMeasure.RHO:
            return least_rho(first, second)
        if self.measure is None:
            return least_mu(first, second)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(first - self.delta, 0.0)) - np.log(second))

    def of(self, bound: "EpsilonLowerBound") -> Estimate:
        """Return the estimate of what is declared."""
        return bound.mu if self.measure is None else bound.rho or bound.epsilon

    def low(self, bound: "EpsilonLowerBound") -> float:
        """Return the lower bound of what is declared."""
        return self.of(bound).low


@dataclass(frozen=True)
class EpsilonLowerBound:
    """The bound on epsilon from one pair of tables.

    Attributes:
        epsilon: `low` is the lower bound at the stated confidence; `high` is infinite, because
            no audit bounds epsilon from above. `value` is the log-ratio of the two counts
            with half a run added to each, so it stays finite where an event never
            happened; it is the point estimate for this event, not for the mechanism.
        event: the one that showed it.
        before: in how many of the second half's runs it happened on the first table.
        after: and on the second table.
        trials: runs of the second half, on each table.
        tried: over how many events and audits the confidence was shared.
        mu: the same of mu; its `value` is that of the two shares.
        rho: the same of rho, if one was asked for.
    """

    epsilon: Estimate
    event: Event
    before: int
    after: int
    trials: int
    tried: int
    mu: Estimate
    rho: Estimate | None = None

    def exceeds(self, declared: float) -> bool:
        """Whether a declared epsilon, or rho, is refuted at the bound's confidence."""
        return (self.rho or self.epsilon).low > declared


def lower_bound(
    before: Sampler,
    after: Sampler,
    *,
    scores: Mapping[str, Score],
    learners: Mapping[str, Learner] | None = None,
    trials: int = 20_000,
    confidence: float = 0.95,
    finalists: int = 3,
    family: int = 1,
    target: PrivacyParameter | None = None,
    progress: Progress = silent,
) -> EpsilonLowerBound:
    """Bound epsilon, or rho, from below over one pair of neighbouring tables.

    Args:
        before: runs the mechanism on one table.
        after: runs it on its neighbour.
        scores: statistics of the output that define events, by name.
        learners: scores that are fitted on the pilot, by name.
        trials: runs on each table; half of them choose the events.
        confidence: that the bound holds, together with those of the family.
        finalists: the most events, of different scores, that go to the second half.
        family: how many audits share the confidence.
        target: what is bounded; by default a pure epsilon.
        progress: called with the stage and how many runs are done.

    Cost: 2 trials runs and as many evaluations of every score.

    >>> rng = np.random.default_rng(1)
    >>> same = lambda runs: rng.laplace(0, 1, runs)
    >>> lower_bound(same, same, scores={"output": identity}).exceeds(0.5)
    False
    """
    if trials < _LEAST_TRIALS:
        raise InputError(f"The number of trials must be at least {_LEAST_TRIALS}; got {trials}.")
    if not 0 < confidence < 1:
        raise InputError(
            f"The confidence of an interval must lie between 0 and 1; got {confidence}."
        )
    target = target or PrivacyParameter()
    half = trials // 2
    pilot = min(PILOT, half // 4)
    looks = dict(scores)
    if learners:
        ahead, behind = before(pilot), after(pilot)
        looks |= {name: learn(ahead, behind) for name, learn in learners.items()}
    else:
        pilot = 0
    if not looks:
        raise InputError("An audit needs at least one score.")
    finalists = min(finalists, len(looks))
    share = (1 - confidence) / (2 * finalists * family)
    done = [0]

    def observe(sampler: Sampler, runs: int, names: Mapping[str, Score]) -> dict[str, Floats]:
        parts: dict[str, list[Floats]] = {name: [] for name in names}
        while runs:
            size = min(_BATCH, runs)
            outputs = sampler(size)
            for name, score in names.items():
                parts[name].append(np.nan_to_num(score(outputs), posinf=inf, neginf=-inf))
            runs -= size
            done[0] += size
            progress("running the mechanism", done[0], 2 * (trials - pilot))
        return {name: np.concatenate(part) for name, part in parts.items()}

    first = [observe(sampler, half - pilot, looks) for sampler in (before, after)]
    events = [event for _, event in choose_events(*first, share=share, target=target)[:finalists]]
    finals = {event.score: looks[event.score] for event in events}
    second = [observe(sampler, trials - half, finals) for sampler in (before, after)]
    bounds = [
        bound_event(event, *(event.count(scores[event.score]) for scores in second),
                    trials=trials - half, confidence=confidence,
                    tried=finalists * family, target=target)
        for event in events
    ]  # fmt: skip
    return max(bounds, key=target.low)


def choose_events(
    before: Mapping[str, Floats],
    after: Mapping[str, Floats],
    *,
    share: float,
    target: PrivacyParameter,
) -> list[tuple[float, Event]]:
    """Choose the best event of each score, with what it would bound; the best first."""
    chosen = [
        _choose_event(name, before[name], after[name], share, target=target) for name in before
    ]
    return sorted(chosen, key=lambda choice: -choice[0])


def _choose_event(
    name: str, before: Floats, after: Floats, share: float, *, target: PrivacyParameter
) -> tuple[float, Event]:
    """Choose a score's event with the largest bound on the first half; return both."""
    runs = before.size
    before, after = np.sort(before), np.sort(after)
    thresholds = _thresholds(np.sort(np.concatenate([before, after])))
    best: tuple[float, Event] | None = None
    for at_least in (True, False):
        side: Literal["left", "right"] = "left" if at_least else "right"
        counts = [np.searchsorted(scores, thresholds, side) for scores in (before, after)]
        if at_least:
            counts = [runs - count for count in counts]
        for first in (True, False):
            top, bottom = counts if first else counts[::-1]
            bounds = target.bound(least(top, runs, share), most(bottom, runs, share))
            place = int(np.argmax(bounds))
            if best is None or bounds[place] > best[0]:
                event = Event(name, at_least, float(thresholds[place]), first)
                best = float(bounds[place]), event
    assert best is not None  # noqa: S101 (for the type checker: the loop always runs)
    return best


def _thresholds(pooled: Floats) -> Floats:
    """Choose thresholds of a score: all values, or by rank, more densely in both tails."""
    distinct = np.unique(pooled)
    if distinct.size <= _THRESHOLDS:
        return distinct
    tail = np.unique(np.geomspace(1, pooled.size, _THRESHOLDS // 4).astype(np.int64)) - 1
    even = np.linspace(0, pooled.size - 1, _THRESHOLDS // 2).astype(np.int64)
    return np.unique(pooled[np.concatenate([tail, even, pooled.size - 1 - tail])])


def bound_event(
    event: Event,
    before: int,
    after: int,
    *,
    trials: int,
    confidence: float,
    tried: int,
    target: PrivacyParameter,
    ever: bool = False,
) -> EpsilonLowerBound:
    """Bound what is declared by one event, in the direction chosen with it.

    Args:
        event: chosen on other runs.
        before: in how many runs it happened on the first table.
        after: and on the second.
        trials: runs on each table.
        confidence: that the bounds of all events hold together.
        tried: how many events share it.
        target: what is bounded.
        ever: whether the bound must hold however often it is computed, as runs are added.
    """
    share = (1 - confidence) / (2 * tried)
    lower, upper = (least_ever, most_ever) if ever else (least, most)
    top, bottom = (before, after) if event.before else (after, before)
    p, q = float(lower(top, trials, share)), float(upper(bottom, trials, share))
    shares = np.array([[p, (top + 0.5) / (trials + 1)], [q, (bottom + 0.5) / (trials + 1)]])
    epsilon, rho, mu = (
        Estimate(max(low, about), low, inf, confidence)
        for low, about in (
            map(float, np.maximum(bound(*shares), 0.0))
            for bound in (PrivacyParameter(delta=target.delta).bound, least_rho, least_mu)
        )
    )
    in_rho = rho if target.measure is PrivacyMeasure.RHO else None
    return EpsilonLowerBound(epsilon, event, before, after, trials, tried, mu, in_rho)


def least_rho(p: Floats, q: Floats) -> Floats:
    """Return the least rho that allows an event these two probabilities; 0 unless p > q.

    Each order of the Renyi divergence gives a bound; the largest of many is returned.

    >>> least_rho(np.array([0.75, 0.25]), np.array([0.25, 0.75])).round(3)
    array([0.549, 0.   ])
    """
    above = p > q
    clipped_p, clipped_q = (np.clip(chance, 1e-12, 1 - 1e-12)[:, None] for chance in (p, q))
    bound = np.zeros(p.shape)
    for first, second in ((clipped_p, clipped_q), (clipped_q, clipped_p)):
        heads = _ORDERS * np.log(first) + (1 - _ORDERS) * np.log(second)
        tails = _ORDERS * np.log1p(-first) + (1 - _ORDERS) * np.log1p(-second)
        divergences = np.logaddexp(heads, tails) / (_ORDERS - 1)
        bound = np.maximum(bound, (divergences / _ORDERS).max(axis=1))
    return np.where(above, bound, 0.0)


def least_mu(p: Floats, q: Floats) -> Floats:
    """Return the least distance of two normal distributions that allows these probabilities."""
    bound: Floats = np.maximum(scipy.special.ndtri(p) - scipy.special.ndtri(q), 0.0)
    return bound


_ORDERS = 1 + np.geomspace(1e-3, 1e3, 60)


# Scores of numbers.


def identity(outputs: Floats) -> Floats:
    """Return the output itself, of a mechanism that answers with one number."""
    return outputs


def low_bits(outputs: Floats) -> Floats:
    """Return the position of the last binary digit: the largest e such that 2^e divides the output.

    A float after noise keeps only digits that the exact part leaves room for. For a table, the
    lowest position of all cells is returned; 0 has no last digit, and counts as 64.

    >>> low_bits(np.array([1.0, 0.75, 0.0]))
    array([ 0., -2., 64.])
    """
    mantissa, exponent = np.frexp(outputs)
    integers = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.frexp((integers & -integers).astype(np.float64))[1] - 1
    places = np.where(integers == 0, 64, exponent - 53 + lowest).astype(np.float64)
    return places if places.ndim == 1 else places.reshape(len(places), -1).min(axis=1)


# Scores of tables: outputs are runs x rows x columns. Where rows come shuffled, the sampler
# sorts them, which loses nothing.


def distinct_rows(outputs: Floats) -> Floats:
    """Count the distinct rows of a table."""
    return np.asarray(np.count_nonzero(_starts(outputs), axis=1), dtype=np.float64)


def largest_group(outputs: Floats) -> Floats:
    """Return the size of the largest group of equal rows."""
    return np.asarray(_run_lengths(_starts(outputs)).max(axis=1), dtype=np.float64)


def smallest_group(outputs: Floats) -> Floats:
    """Return the size of the smallest group of equal rows."""
    starts = _starts(outputs)
    lengths = _run_lengths(starts)
    ends = np.concatenate([starts[:, 1:], np.ones_like(starts[:, :1])], axis=1)
    shortest = np.where(ends, lengths, lengths.shape[1]).min(axis=1)
    return np.asarray(shortest, dtype=np.float64)


def alike(row: int, column: int | None = None) -> Score:
    """Make a score that counts the rows equal to a given row, in one column or in all."""

    def score(outputs: Floats) -> Floats:
        part = outputs if column is None else outputs[:, :, [column]]
        same = (part == part[:, [row]]).all(axis=2)
        return np.asarray(np.count_nonzero(same, axis=1), dtype=np.float64)

    return score


def within(columns: list[int], score: Score) -> Score:
    """Restrict a score to some columns of the table."""
    return lambda outputs: score(outputs[:, :, columns])


def projection(direction: Floats) -> Score:
    """Make a score that projects the table, as a vector, on a fixed direction."""
    return lambda outputs: np.tensordot(outputs, direction, axes=direction.ndim)


def likelihood_ratio(before: Floats, after: Floats, scale: Floats) -> Score:
    """Make the log-likelihood ratio of the first to the second table for Laplace noise.

    sum_i (|z_i - after_i| - |z_i - before_i|) / scale_i over all cells. The event is
    white-box, the samples are not; clamping is ignored, which weakens the event only.
    """

    def score(outputs: Floats) -> Floats:
        apart = np.abs(outputs - after) - np.abs(outputs - before)
        total: Floats = (apart / scale).reshape(len(outputs), -1).sum(axis=1)
        return total

    return score


def unordered_likelihood_ratio(before: Floats, after: Floats, scale: Floats) -> Score:
    """Make the same score for unordered rows: summed over all orders.

    For few rows: the cost grows with the factorial of their number.
    """
    orders = np.array(list(permutations(range(len(before)))))

    def likelihood(outputs: Floats, answer: Floats) -> Floats:
        terms = [-(np.abs(outputs - answer[o]) / scale).sum(axis=(1, 2)) for o in orders]
        return np.asarray(np.logaddexp.reduce(terms, axis=0), dtype=np.float64)

    return lambda outputs: likelihood(outputs, before) - likelihood(outputs, after)


# Scores that learn on the pilot.


def learned_patterns(key: Callable[[Any], NDArray[np.int64]]) -> Learner:
    """Make the log-ratio of a pattern's frequencies in the pilot; 0 for unknown patterns."""

    def learn(before: Any, after: Any) -> Score:
        keys = [key(before), key(after)]
        known, which = np.unique(np.concatenate(keys), return_inverse=True)
        counts = [
            np.bincount(part, minlength=known.size)
            for part in np.split(which, [keys[0].size])
        ]  # fmt: skip
        ratios = np.log((counts[0] + 0.5) / (counts[1] + 0.5))

        def score(outputs: Any) -> Floats:
            keys = key(outputs)
            places = np.minimum(np.searchsorted(known, keys), known.size - 1)
            return np.where(known[places] == keys, ratios[places], 0.0)

        return score

    return learn


def equal_to(row: int) -> Callable[[Floats], NDArray[np.int64]]:
    """Number the pattern of cells equal to those of a given row, column by column."""

    def key(outputs: Floats) -> NDArray[np.int64]:
        same = outputs == outputs[:, [row]]
        return _number_patterns(same.reshape(len(outputs), -1))

    return key


def sizes_by_rank(outputs: Floats) -> NDArray[np.int64]:
    """Number the pattern of group sizes, column by column, in increasing order of value."""
    ordered = np.sort(outputs, axis=1)
    return _number_patterns((ordered[:, 1:] != ordered[:, :-1]).reshape(len(outputs), -1))


def learned_projection(before: Floats, after: Floats) -> Score:
    """Project on the difference of the pilot's means, each cell in units of its deviation."""
    return projection(_standardise(before, after)[0])


def learned_likelihood_ratio(before: Floats, after: Floats) -> Score:
    """Make the Laplace log-likelihood ratio at the pilot's medians and mean absolute deviations."""
    direction, spread = _standardise(before, after)
    medians = np.median(before, axis=0), np.median(after, axis=0)
    # A cell that does not tell the tables apart in the pilot would only add noise.
    scale = np.where(direction != 0, spread, inf)
    return likelihood_ratio(*medians, scale)


def _standardise(before: Floats, after: Floats) -> tuple[Floats, Floats]:
    difference = after.mean(axis=0) - before.mean(axis=0)
    deviations = [
        np.abs(part - np.median(part, axis=0)).mean(axis=0) for part in (before, after)
    ]  # fmt: skip
    spread = np.maximum((deviations[0] + deviations[1]) / 2, 1e-9)
    direction = difference / spread
    chance = 3 * np.sqrt(2 / len(before))
    return np.where(np.abs(direction) > chance, direction, 0.0), spread


def _starts(outputs: Floats) -> NDArray[np.bool_]:
    """Mark where a new value begins, after sorting each table's rows by a fixed mixture.

    Equal rows have equal mixtures; others collide with a probability that rounding decides.
    """
    weights: Floats = np.random.default_rng(1934).uniform(1, 2, (outputs.shape[2],))
    mixed = np.zeros(outputs.shape[:2])
    for column, weight in enumerate(weights):  # the rounding of a matrix product depends on place
        mixed += weight * outputs[:, :, column]
    mixed.sort(axis=1)
    first = np.ones((len(outputs), 1), dtype=np.bool_)
    return np.concatenate([first, mixed[:, 1:] != mixed[:, :-1]], axis=1)


def _run_lengths(starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many rows each group has, up to and including each position."""
    places = np.arange(starts.shape[1])
    begun = np.maximum.accumulate(np.where(starts, places, 0), axis=1)
    return np.asarray(places - begun + 1, dtype=np.int64)


def _number_patterns(pattern: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Hash each row of a pattern to a number; distinct ones collide with probability 2^-64."""
    weights = np.random.default_rng(1934).integers(-(2**62), 2**62, pattern.shape[1])
    return np.asarray(pattern @ weights, dtype=np.int64)
