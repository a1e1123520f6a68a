"""The exact privacy loss of single runs: the sharpest audit of a mechanism whose draws we see.

A mechanism asks for noise, again and again, and each question depends on the table and on earlier
answers. Run it on one table and keep every answer. Then run it on a neighbour with the same answers
given back. If z were the answers to exact values v on the first table and w on the second,

    loss = sum over answers of ln P(v + Z = z) - ln P(w + Z = z)

is the exact log-ratio of probabilities of all that was published: for a pure promise of epsilon no
run may have a loss above it. So one run with a larger loss refutes a claim, without statistics and
without false alarms, and the loss is the best score that an audit by frequencies can have.

Where a tree is grown, the mechanism asks whether values exceed a threshold after noise
(`Noise.exceeds`), so the loss is the log-ratio of the decision's probabilities. That of a choice
among scores is the log-ratio of the probabilities that permute-and-flip chooses so (`chance`), that
of a response epsilon where it is one of the two truths. Uniform numbers see no data: both runs get
the same.

If the neighbour asks a different question (a different number of answers, or scale), the choice of
the question was not paid for: the loss is infinite.

`replay` is sharper still. It keeps the loss of each part of a run: of a question, or of all
decisions of a tree, which have one price. Parts are added up as composition does, by mechanism and
scale: in epsilon their absolute losses, because a signed sum would hide one part behind another.
The sums are to be held against the entries of that mechanism and scale. And it goes on to what
either run returns: all that follows the last answer is post-processing, so both must be the same.

Where prices are in rho no run has a largest loss. There the sharpest figure is the price of what
moved: for Gaussian noise the sum of squared moves over 2 s^2, for the exponential mechanism the
square of the range of its log-ratios over 8, and for a part with a pure price, such as a tree, half
its squared loss, since epsilon costs epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4).
Composition adds these up over parts: the sum of squares, not the square of a sum.

Of keys that nobody knew, those that both tables have cost the rho of their counts. A key of one
table alone that is released has an infinite loss, which the delta allows to happen.

Not seen by `loss`: what a mechanism publishes beside its answers. `shoal.audit` examines released
tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import EXPONENTIAL, GAUSSIAN, LAPLACE, RESPONSE, SELECTION, THRESHOLD, Noise
from shoal.core._arrays import Bools, Floats, Ints

Mechanism = Callable[[Any, Noise], Any]
"""A mechanism as a function of a table and the noise; what it returns is not used."""


@dataclass(frozen=True)
class Laws:
    """The distributions of the noise that is really added, and what is published.

    Attributes:
        actual: the scale of the noise that is really drawn for a requested scale; 0 for none.
            A deliberate fault differs here.
        decisive: the same for the noise of decisions; as `actual` by default.
        unordered: answers of one question are published as a list in no order, so those of
            the two tables are matched by size: an upper bound of the loss.
    """

    actual: Callable[[Fraction], Fraction] = lambda scale: scale
    decisive: Callable[[Fraction], Fraction] | None = None
    unordered: bool = False

    def scale(self, asked: Fraction, *, decides: bool) -> Fraction:
        """Return the scale that noise really has."""
        return (self.decisive if decides and self.decisive else self.actual)(asked)


Draw = tuple[str, Fraction]
"""A mechanism of the noise, and its scale."""


@dataclass(frozen=True, eq=False)
class Replay:
    """A run on one table, replayed with the same answers on another.

    Attributes:
        parts: mechanism and scale of each part, with its loss, or with the rho of what moved if it
            is priced in rho; infinite where questions differ.
        first: what the mechanism returned on the first table.
        second: what it returned on the second for the same answers; none where questions differ.
    """

    parts: Sequence[tuple[Draw, float]]
    first: Any
    second: Any

    @property
    def losses(self) -> Mapping[Draw, float]:
        """Absolute losses, summed by mechanism and scale."""
        return self._add_up(abs)

    @property
    def rhos(self) -> Mapping[Draw, float]:
        """Losses in rho, summed by mechanism and scale; pure noise has half its squared loss."""
        return self._add_up(lambda loss: loss**2 / 2)

    def _add_up(self, pure: Callable[[float], float]) -> Mapping[Draw, float]:
        costs: dict[Draw, float] = {}
        for draw, loss in self.parts:
            cost = loss if draw[0] in {EXPONENTIAL, GAUSSIAN, THRESHOLD} else pure(loss)
            costs[draw] = costs.get(draw, 0.0) + cost
        return costs


@dataclass(frozen=True, eq=False)
class _Answer:
    draw: Draw
    values: Ints
    drawn: Ints
    categories: int = 0
    threshold: int | None = None

    @property
    def question(self) -> tuple[Any, ...]:
        """The request without the values, which depend on the table."""
        return self.draw, self.values.shape, self.categories, self.threshold


@dataclass(frozen=True, eq=False)
class _Keys:
    """An answer that releases keys of those that one table has."""

    draw: Draw
    counts: Mapping[str, int]
    released: dict[str, int]
    question: tuple[Any, ...]
    threshold: None = None


class _Over(Exception):  # noqa: N818 (no error: the last answer was given back)
    """Raised when all answers were given back; the rest is post-processing."""


class _Apart(Exception):  # noqa: N818 (no error: it is what is looked for)
    """Raised when the neighbour asks a different question."""


@dataclass
class _Asked:
    """Noise that passes each question of a mechanism through `_answer`.

    Attributes:
        rng: the generator with which the pipeline draws rows, the same in both runs.
    """

    uniforms = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def discrete_laplace(self, values: Ints, *, scale: Fraction) -> Ints:
        return self._answer((LAPLACE, scale), values)

    def exceeds(self, values: Ints, *, threshold: int, scale: Fraction) -> Bools:
        return self._answer((LAPLACE, scale), values, threshold=threshold).astype(np.bool_)

    def discrete_gaussian(self, values: Ints, *, scale: Fraction) -> Ints:
        return self._answer((GAUSSIAN, scale), values)

    def select_by_weight(self, scores: Ints, *, scale: Fraction) -> int:
        return int(self._answer((EXPONENTIAL, scale), np.asarray(scores)[None, :])[0])

    def select(self, scores: Ints, *, sensitivity: Fraction, epsilon: Fraction) -> int:
        scale = 2 * sensitivity / epsilon
        return int(self._answer((SELECTION, scale), np.asarray(scores)[None, :])[0])

    def select_many(self, scores: Ints, *, sensitivity: Fraction, epsilon: Fraction) -> Ints:
        return self._answer((SELECTION, 2 * sensitivity / epsilon), scores)

    def respond(self, codes: Ints, *, categories: int, epsilon: Fraction) -> Ints:
        return self._answer((RESPONSE, 1 / epsilon), codes, categories=categories)

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        raise NotImplementedError

    def uniform(self, below: int, *, size: int) -> Ints:
        """Draw numbers that are the same in both runs; a short draw begins a longer one."""
        self.uniforms += 1
        return np.random.default_rng(self.uniforms).integers(below, size=size)

    def _answer(self, draw: Draw, values: Ints, **more: int) -> Ints:
        raise NotImplementedError


@dataclass
class _Recorder(_Asked):
    noise: Noise
    laws: Laws
    kept: list[_Answer | _Keys] = field(default_factory=list)

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        drawn = self.laws.scale(scale, decides=False)
        if drawn == 0:
            released = {key: count for key, count in counts.items() if count >= threshold}
        else:
            released = self.noise.release_keys(counts, scale=drawn, threshold=threshold)
        draw = (THRESHOLD, scale)
        self.kept.append(_Keys(draw, dict(counts), released, (draw, threshold)))
        return dict(released)

    def _answer(self, draw: Draw, values: Ints, **more: int) -> Ints:
        values = np.array(values)
        scale = self.laws.scale(draw[1], decides="threshold" in more)
        drawn = (
            self._decide(values, more["threshold"], scale)
            if "threshold" in more
            else self._draw(draw[0], values, more.get("categories", 0), scale)
        )
        self.kept.append(_Answer(draw, values, drawn, **more))
        return drawn

    def _decide(self, values: Ints, threshold: int, scale: Fraction) -> Ints:
        if scale == 0:
            return np.asarray(values > threshold, dtype=np.int64)
        return self.noise.exceeds(values, threshold=threshold, scale=scale).astype(np.int64)

    def _draw(self, mechanism: str, values: Ints, categories: int, scale: Fraction) -> Ints:
        if mechanism == LAPLACE:
            return values if scale == 0 else self.noise.discrete_laplace(values, scale=scale)
        if mechanism == GAUSSIAN:
            return values if scale == 0 else self.noise.discrete_gaussian(values, scale=scale)
        if mechanism == RESPONSE:
            return self.noise.respond(values, categories=categories, epsilon=1 / scale)
        if mechanism == EXPONENTIAL and scale > 0:
            return np.array([self.noise.select_by_weight(values[0], scale=scale)])
        if scale == 0:
            return np.asarray(values.argmax(axis=1), dtype=np.int64)
        unit = Fraction(1)
        return self.noise.select_many(values, sensitivity=unit, epsilon=2 / scale)


@dataclass
class _Replay(_Asked):
    kept: list[_Answer | _Keys]
    laws: Laws
    to_the_end: bool = False
    parts: list[tuple[Draw, float]] = field(default_factory=list)
    place: int = 0

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        """Give back the keys; what only one of the tables has, and is released, is no rho."""
        answer = self.kept[self.place] if self.place < len(self.kept) else None
        if not isinstance(answer, _Keys) or answer.question != ((THRESHOLD, scale), threshold):
            raise _Apart
        drawn = float(self.laws.scale(scale, decides=False))
        moves = [counts[key] - count for key, count in answer.counts.items() if key in counts]
        apart = (answer.counts.keys() ^ counts.keys()) & answer.released.keys()
        square = float(sum(move * move for move in moves))
        infinite = apart or (square and not drawn)
        self.parts.append((answer.draw, np.inf if infinite else square / (2 * drawn**2 or 1)))
        self._go_on()
        return dict(answer.released)

    def _go_on(self) -> None:
        self.place += 1
        if self.place == len(self.kept) and not self.to_the_end:
            raise _Over

    def _answer(self, draw: Draw, values: Ints, **more: int) -> Ints:
        if self.place == len(self.kept):
            raise _Apart
        answer = self.kept[self.place]
        if isinstance(answer, _Keys):
            raise _Apart
        if _Answer(draw, np.asarray(values), answer.drawn, **more).question != answer.question:
            raise _Apart
        loss = self._loss(answer, np.asarray(values))
        if self.place and answer.threshold is not None:
            before = self.kept[self.place - 1]
            if (before.draw, before.threshold) == (draw, answer.threshold):  # the same tree
                loss += self.parts.pop()[1]
        self.parts.append((draw, loss))
        self._go_on()
        return answer.drawn

    def _loss(self, answer: _Answer, values: Ints) -> float:
        mechanism, asked = answer.draw
        scale = float(self.laws.scale(asked, decides=answer.threshold is not None))
        if mechanism in {EXPONENTIAL, GAUSSIAN}:
            return self._rho_loss(answer, values, scale)
        if mechanism == SELECTION:
            moved = np.flatnonzero((answer.values != values).any(axis=1))
            return sum(
                chance(answer.values[i], int(answer.drawn[i]), scale)
                - chance(values[i], int(answer.drawn[i]), scale)
                for i in moved.tolist()
            )
        old, new, drawn = (each.ravel() for each in (answer.values, values, answer.drawn))
        if self.laws.unordered:
            order = np.argsort(old, kind="stable")
            old, new, drawn = old[order], np.sort(new), drawn[order]
        moved = np.flatnonzero(old != new)
        old, new, drawn = old[moved], new[moved], drawn[moved]
        if mechanism == RESPONSE:
            return float(np.sum((drawn == old).astype(int) - (drawn == new))) / scale
        if (threshold := answer.threshold) is not None:
            above = drawn.astype(np.bool_)
            return float(np.sum(_decision_loss(old - threshold, scale, above=above)
                                - _decision_loss(new - threshold, scale, above=above)))  # fmt: skip
        if scale == 0:
            return np.inf if moved.size else 0.0
        return float(np.sum(np.abs(drawn - new) - np.abs(drawn - old))) / scale

    def _rho_loss(self, answer: _Answer, values: Ints, scale: float) -> float:
        """Return the loss of a mechanism in rho; for `replay`, the rho of the change."""
        if answer.draw[0] == EXPONENTIAL:
            before, after = (log_weights(v[0], scale) for v in (answer.values, values))
            width = float(np.ptp(before - after))
            return width**2 / 8 if self.to_the_end else float((before - after)[answer.drawn[0]])
        moves = (answer.values - values).astype(np.float64)
        if scale == 0:
            return np.inf if moves.any() else 0.0
        half = 1 / (2 * scale**2)
        if self.to_the_end:
            return float(np.sum(moves**2)) * half
        later, earlier = (answer.drawn - v for v in (values, answer.values))
        return float(np.sum(later.astype(np.float64) ** 2 - earlier.astype(np.float64) ** 2)) * half


def _decision_loss(values: Ints, scale: float, *, above: NDArray[np.bool_]) -> Floats:
    """Return ln P(value + Z > 0) for values decided as above, else ln of the complement."""
    if scale == 0:
        known: Floats = np.where((values > 0) == above, 0.0, -np.inf)
        return known
    a = np.exp(-1 / scale)
    # P(Z > k) = a^(k+1) / (1 + a) for k >= 0; the distribution is symmetric.
    tail = np.where(values <= 0, 1 - values, values) / -scale - np.log1p(a)
    low = np.where(values <= 0, tail, np.log1p(-np.exp(tail)))
    high = np.where(values <= 0, np.log1p(-np.exp(tail)), tail)
    chosen: Floats = np.where(above, low, high)
    return chosen


def chance(scores: Ints, chosen: int, scale: float) -> float:
    """Return ln of the probability that permute-and-flip chooses this index.

    It goes through the scores in a random order, as if each came at a random time in [0, 1], and
    takes the first whose coin, p_i = exp((q_i - max q) / scale), shows heads: that of the chosen,
    and of no other that came before. So P = p_i times the integral of prod (1 - t p_j), j != i,
    over t, a polynomial, for which Gauss's rule with so many nodes is exact.

    >>> round(float(np.exp(chance(np.array([3, 3]), 0, 1.0))), 12)
    0.5
    """
    gaps = (scores - scores.max()).astype(np.float64)
    if scale == 0:
        return 0.0 if chosen == int(np.argmax(scores)) else -np.inf
    coins = np.exp(gaps / scale)
    times, weights = _gauss(len(coins) // 2 + 1)
    times = (times[:, None] + 1) / 2
    before = np.prod(1 - times * np.delete(coins, chosen), axis=1)
    return float(gaps[chosen] / scale + np.log((weights / 2 * before).sum()))


def log_weights(scores: Ints, scale: float) -> Floats:
    """Return ln P(i) of the exponential mechanism, P(i) ~ exp(score / scale).

    >>> np.exp(log_weights(np.array([3, 3]), 1.0)).round(12)
    array([0.5, 0.5])
    """
    if scale == 0:
        best: Floats = np.where(np.arange(scores.size) == int(np.argmax(scores)), 0.0, -np.inf)
        return best
    gaps = (scores - scores.max()) / scale
    logs: Floats = gaps - np.log(np.exp(gaps).sum())
    return logs


@cache
def _gauss(nodes: int) -> tuple[Floats, Floats]:
    """Compute nodes and weights of Gauss's rule; cached, because they take longest."""
    times, weights = np.polynomial.legendre.leggauss(nodes)
    return times, weights


def loss(
    mechanism: Mechanism, before: Any, after: Any, noise: Noise, *, laws: Laws | None = None
) -> float:
    """Run a mechanism once, and return the exact log-likelihood ratio of its output.

    Args:
        mechanism: it may ask the noise for anything. Other randomness must be the same in all
            runs, such as that of a generator which it seeds anew: otherwise it would be
            mistaken for a difference between the tables.
        before: the table that it is run on.
        after: a neighbour.
        noise: where draws come from.
        laws: what noise they really have, and what is published of it.
    """
    laws = laws or Laws()
    recorder = _Recorder(noise, laws)
    mechanism(before, recorder)
    given = _Replay(recorder.kept, laws)
    try:
        mechanism(after, given)
    except _Over:
        return sum(loss for _, loss in given.parts)
    except _Apart:
        return np.inf
    return 0.0 if not recorder.kept else np.inf


def replay(
    mechanism: Mechanism, before: Any, after: Any, noise: Noise, *, laws: Laws | None = None
) -> Replay:
    """Run a mechanism once, replay its answers on a neighbour, and keep both results.

    The arguments are those of `loss`.
    """
    laws = laws or Laws()
    recorder = _Recorder(noise, laws)
    first = mechanism(before, recorder)
    given = _Replay(recorder.kept, laws, to_the_end=True)
    try:
        second = mechanism(after, given)
        if given.place == len(recorder.kept):
            return Replay(given.parts, first, second)
    except _Apart:
        pass
    return Replay([(answer.draw, np.inf) for answer in recorder.kept], first, None)


def losses(
    mechanism: Mechanism, before: Any, after: Any, noise: Noise, *, laws: Laws | None = None
) -> tuple[Callable[[int], Floats], Callable[[int], Floats]]:
    """Make samplers of log-likelihood ratios for `epsilon_lower_bound.lower_bound`.

    Both are ln P(output of `before`) - ln P(output of `after`), on runs on either table; so a run
    outside [-epsilon, epsilon] violates a claim of epsilon.
    """

    def first(runs: int) -> Floats:
        return np.array([loss(mechanism, before, after, noise, laws=laws) for _ in range(runs)])

    def second(runs: int) -> Floats:
        return np.array([-loss(mechanism, after, before, noise, laws=laws) for _ in range(runs)])

    return first, second
