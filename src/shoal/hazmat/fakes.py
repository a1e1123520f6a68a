"""Fake noise: record what a mechanism requests, or repeat an experiment.

A release that is made with one carries no claim of differential privacy, because only the noise
that the pipeline builds itself does. They check their input exactly as the real noise does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.core import EXPONENTIAL, GAUSSIAN, LAPLACE, RESPONSE, SELECTION, THRESHOLD
from shoal.hazmat.noise import CheckedNoise


@dataclass(frozen=True)
class Call:
    """One request for randomness: mechanism, shape, and exact scale.

    Attributes:
        shape: of the values that noise was added to; for a selection, of the scores.
    """

    mechanism: str
    shape: tuple[int, ...]
    scale: Fraction


class RecordingNoise(CheckedNoise):
    """Fake noise that adds known numbers and records every call.

    A selection takes the highest score, the first of equals. A response is the truth, moved up by
    the known numbers, from the last level on to the first. Uniform numbers count up from 0.

    Args:
        added: what is added to the values of each call in turn, repeated as needed; 0 by
            default, so a mechanism shows its exact answer.

    >>> noise = RecordingNoise(added=[1, -1])
    >>> noise.discrete_laplace(np.array([10, 20, 30]), scale=Fraction(5, 2))
    array([11, 19, 31])
    >>> noise.calls
    [Call(mechanism='discrete-laplace', shape=(3,), scale=Fraction(5, 2))]
    """

    def __init__(self, added: int | Sequence[int] | NDArray[np.int64] = 0) -> None:
        super().__init__()
        self.rng = np.random.default_rng(0)
        self.calls: list[Call] = []
        self._added = np.atleast_1d(np.asarray(added, dtype=np.int64)).ravel()

    def discrete_laplace(self, values: NDArray[np.int64], *, scale: Fraction) -> NDArray[np.int64]:
        """Add the known numbers, after the checks of the real noise."""
        noisy = super().discrete_laplace(values, scale=scale)
        self.calls.append(Call(LAPLACE, noisy.shape, Fraction(scale)))
        return noisy

    def discrete_gaussian(self, values: NDArray[np.int64], *, scale: Fraction) -> NDArray[np.int64]:
        """Add the known numbers, after the checks of the real noise."""
        noisy = super().discrete_gaussian(values, scale=scale)
        self.calls.append(Call(GAUSSIAN, noisy.shape, Fraction(scale)))
        return noisy

    def _laplace(self, values: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        del scale
        return values + np.resize(self._added, values.size)

    def _gaussian(self, values: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        return self._laplace(values, scale)

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        """Add the known numbers, after the checks of the real noise."""
        released = super().release_keys(counts, scale=scale, threshold=threshold)
        self.calls.append(Call(THRESHOLD, (len(counts),), Fraction(scale)))
        return released

    def _choose_by_weight(self, scores: NDArray[np.int64], scale: Fraction) -> int:
        self.calls.append(Call(EXPONENTIAL, scores.shape, scale))
        return int(scores.argmax())

    def _choose(self, scores: NDArray[np.int64], scale: Fraction) -> int:
        self.calls.append(Call(SELECTION, scores.shape, scale))
        return int(scores.argmax())

    def _choose_many(self, scores: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        self.calls.append(Call(SELECTION, scores.shape, scale))
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)

    def _respond(
        self, codes: NDArray[np.int64], categories: int, epsilon: Fraction
    ) -> NDArray[np.int64]:
        self.calls.append(Call(RESPONSE, codes.shape, 1 / epsilon))
        return (codes + np.resize(self._added, codes.size)) % categories

    def _uniform(self, below: int, size: int) -> NDArray[np.int64]:
        return np.arange(size, dtype=np.int64) % below


class SeededNoise(CheckedNoise):
    """Noise of the right distribution, to floating-point accuracy, reproducible by a seed.

    For experiments that compare methods: fast, and worthless as protection.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = np.random.default_rng(seed)
        self.rng = np.random.default_rng([seed, 1])

    def _laplace(self, values: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        # The difference of two geometric numbers is discrete Laplace.
        p = -np.expm1(-1 / float(scale))
        return values + self._rng.geometric(p, values.size) - self._rng.geometric(p, values.size)

    def _gaussian(self, values: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        noise = np.rint(self._rng.normal(0.0, float(scale), values.size))
        return values + noise.astype(np.int64)

    def _choose_by_weight(self, scores: NDArray[np.int64], scale: Fraction) -> int:
        gaps = (scores - scores.max()) / float(scale)
        return int((gaps + self._rng.gumbel(size=scores.size)).argmax())

    def _choose(self, scores: NDArray[np.int64], scale: Fraction) -> int:
        return int(self._choose_many(scores[None, :], scale)[0])

    def _choose_many(self, scores: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        gaps = scores - scores.max(axis=1, keepdims=True)
        noisy = gaps + self._rng.exponential(float(scale), scores.shape)
        return np.asarray(noisy.argmax(axis=1), dtype=np.int64)

    def _respond(
        self, codes: NDArray[np.int64], categories: int, epsilon: Fraction
    ) -> NDArray[np.int64]:
        if categories == 1:
            return codes.copy()
        lie = 1 / (1 + np.exp(min(float(epsilon), 700.0)) / (categories - 1))
        answers = self._rng.integers(categories - 1, size=codes.size)
        lies = self._rng.random(codes.size) < lie
        return np.where(lies, answers + (answers >= codes), codes)

    def _uniform(self, below: int, size: int) -> NDArray[np.int64]:
        return self._rng.integers(below, size=size)
