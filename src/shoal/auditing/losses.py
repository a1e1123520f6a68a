"""The exact privacy loss of single runs: the sharpest audit of a mechanism whose draws we see.

A mechanism asks for noise, again and again, and each question depends on the table and on earlier
answers. Run it on one table and keep every answer. Then run it on a neighbour with the same answers
given back. If z were the answers to exact values v on the first table and w on the second,

    loss = sum over answers of ln P(v + Z = z) - ln P(w + Z = z)

is the exact log-ratio of probabilities of all that was published: for a pure promise of epsilon no
run may have a loss above it. So one run with a larger loss refutes a claim, without statistics and
without false alarms, and the loss is the best score that an audit by frequencies can have.

Where a tree is grown, only the decision "above the threshold" is published of an answer, so that
its loss is the log-ratio of the decision's probabilities. That of a choice among scores is the
log-ratio of the probabilities that permute-and-flip chooses so (`chance`).

If the neighbour asks another question (another number of answers, another scale), something that
was not paid for decided what to ask: the loss is infinite.

Not seen: what a mechanism publishes beside its answers. `shoal.audit` looks at released tables.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Noise
from shoal.errors import InternalError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

Mechanism = Callable[[Any, Noise], Any]
"""A mechanism as a function of a table and the noise; what it returns is not looked at."""


_ONLY = "Exact losses are known for discrete Laplace noise and single choices only."


@dataclass(frozen=True)
class Laws:
    """The noise that is really added, and what is published of it.

    Attributes:
        actual: the scale of the noise that an asked scale really gets; 0 for none. A deliberate
            fault says so here.
        threshold: for an asked scale, the threshold that answers are compared with, if no more
            than that is published.
    """

    actual: Callable[[Fraction], Fraction] = lambda scale: scale
    threshold: Callable[[Fraction], int | None] = lambda _scale: None


@dataclass(frozen=True, eq=False)
class _Answer:
    values: Integers
    scale: Fraction
    drawn: Integers


@dataclass(frozen=True, eq=False)
class _Choice:
    scores: Integers
    scale: Fraction
    chosen: int


class _Over(Exception):  # noqa: N818 (no error: the last answer was given back)
    """All answers were given back; what follows is post-processing."""


class _Apart(Exception):  # noqa: N818 (no error: it is what is looked for)
    """The neighbour asks another question."""


class _Silent:
    """Discrete Laplace noise and single choices are all that may be drawn."""

    def select_many(self, *_args: Any, **_terms: Any) -> Integers:
        raise InternalError(_ONLY)

    def respond(self, *_args: Any, **_terms: Any) -> Integers:
        raise InternalError(_ONLY)

    def uniform(self, *_args: Any, **_terms: Any) -> Integers:
        raise InternalError(_ONLY)


@dataclass
class _Recorder(_Silent):
    noise: Noise
    laws: Laws
    kept: list[_Answer | _Choice] = field(default_factory=list)

    def select(self, scores: Integers, *, sensitivity: Fraction, epsilon: Fraction) -> int:
        scale = 2 * sensitivity / epsilon
        actual = self.laws.actual(scale)
        chosen = int(np.argmax(scores))
        if actual:
            price = 2 * sensitivity / actual
            chosen = self.noise.select(scores, sensitivity=sensitivity, epsilon=price)
        self.kept.append(_Choice(np.array(scores), scale, chosen))
        return chosen

    def discrete_laplace(self, values: Integers, *, scale: Fraction) -> Integers:
        actual = self.laws.actual(scale)
        drawn = values if actual == 0 else self.noise.discrete_laplace(values, scale=actual)
        self.kept.append(_Answer(np.array(values), scale, drawn))
        return drawn


@dataclass
class _Replay(_Silent):
    kept: list[_Answer | _Choice]
    laws: Laws
    loss: float = 0.0
    place: int = 0

    def select(self, scores: Integers, *, sensitivity: Fraction, epsilon: Fraction) -> int:
        choice = self._next()
        scale = 2 * sensitivity / epsilon
        if not isinstance(choice, _Choice) or choice.scale != scale:
            raise _Apart
        if choice.scores.shape != np.shape(scores):
            raise _Apart
        actual = float(self.laws.actual(scale))
        new = np.asarray(scores)
        before, after = (chance(each, choice.chosen, actual) for each in (choice.scores, new))
        self._add(before - after)
        return choice.chosen

    def discrete_laplace(self, values: Integers, *, scale: Fraction) -> Integers:
        answer = self._next()
        if not isinstance(answer, _Answer) or answer.scale != scale:
            raise _Apart
        if answer.values.shape != np.shape(values):
            raise _Apart
        self._add(self._apart(answer, np.asarray(values)))
        return answer.drawn

    def _next(self) -> _Answer | _Choice:
        if self.place == len(self.kept):
            raise _Apart
        return self.kept[self.place]

    def _add(self, loss: float) -> None:
        self.loss += loss
        self.place += 1
        if self.place == len(self.kept):
            raise _Over

    def _apart(self, answer: _Answer, values: Integers) -> float:
        moved = np.flatnonzero(answer.values.ravel() != values.ravel())
        old, new = answer.values.ravel()[moved], values.ravel()[moved]
        drawn = answer.drawn.ravel()[moved]
        scale = float(self.laws.actual(answer.scale))
        threshold = self.laws.threshold(answer.scale)
        if threshold is not None:
            above = drawn > threshold
            return float(np.sum(_decided(old - threshold, scale, above=above)
                                - _decided(new - threshold, scale, above=above)))  # fmt: skip
        if scale == 0:
            return np.inf if moved.size else 0.0
        return float(np.sum(np.abs(drawn - new) - np.abs(drawn - old))) / scale


def _decided(values: Integers, scale: float, *, above: NDArray[np.bool_]) -> Floats:
    """Ln P(value + Z > 0) where it was above, and of the opposite where not."""
    if scale == 0:
        known: Floats = np.where((values > 0) == above, 0.0, -np.inf)
        return known
    a = np.exp(-1 / scale)
    # P(Z > k) = a^(k+1) / (1 + a) for k >= 0; the law is symmetric.
    tail = np.where(values <= 0, 1 - values, values) / -scale - np.log1p(a)
    low = np.where(values <= 0, tail, np.log1p(-np.exp(tail)))
    high = np.where(values <= 0, np.log1p(-np.exp(tail)), tail)
    chosen: Floats = np.where(above, low, high)
    return chosen


def chance(scores: Integers, chosen: int, scale: float) -> float:
    """Ln P(permute-and-flip chooses this one).

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
    times, weights = np.polynomial.legendre.leggauss(len(coins) // 2 + 1)
    times = (times[:, None] + 1) / 2
    before = np.prod(1 - times * np.delete(coins, chosen), axis=1)
    return float(gaps[chosen] / scale + np.log((weights / 2 * before).sum()))


def loss(
    mechanism: Mechanism, before: Any, after: Any, noise: Noise, *, laws: Laws | None = None
) -> float:
    """Run a mechanism once, and return the exact log-ratio of what it published.

    Args:
        mechanism: it may draw discrete Laplace noise and choose among scores. Other randomness
            must be the same in all runs, such as that of a generator which it seeds anew: it
            would be taken for a difference between the tables otherwise.
        before: the table that it is run on.
        after: a neighbour.
        noise: where draws come from.
        laws: what noise they really have, and what is published of it.
    """
    laws = laws or Laws()
    recorder = _Recorder(noise, laws)
    mechanism(before, recorder)
    replay = _Replay(recorder.kept, laws)
    try:
        mechanism(after, replay)
    except _Over:
        return replay.loss
    except _Apart:
        return np.inf
    return 0.0 if not recorder.kept else np.inf


def losses(
    mechanism: Mechanism, before: Any, after: Any, noise: Noise, *, laws: Laws | None = None
) -> tuple[Callable[[int], Floats], Callable[[int], Floats]]:
    """Samplers for `measures.audit.lower_bound`: log-ratios on runs of the one and of the other.

    Both are ln P(output of `before`) - ln P(output of `after`), on runs on either table; so a
    claim of epsilon is broken by a run outside [-epsilon, epsilon].
    """

    def first(runs: int) -> Floats:
        return np.array([loss(mechanism, before, after, noise, laws=laws) for _ in range(runs)])

    def second(runs: int) -> Floats:
        return np.array([-loss(mechanism, after, before, noise, laws=laws) for _ in range(runs)])

    return first, second
