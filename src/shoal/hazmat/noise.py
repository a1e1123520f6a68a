"""Discrete Laplace and Gaussian noise, private selection and randomised response by OpenDP.

Prices, proved in the docstrings below. With scale s and a neighbour that moves the answer,

    discrete-laplace    epsilon = D / s    D = L1 change of the vector of whole numbers
    permute-and-flip    epsilon = 2 D / s  D = largest change of a single score
    randomised-response epsilon = 1 / s    whatever category it changes to; D is 1 by convention

and in zero-concentrated differential privacy, where a pure epsilon is a rho of epsilon^2 / 2,

    discrete-gaussian       rho = D^2 / (2 s^2)    D = L2 change of the vector of whole numbers
    exponential-mechanism   rho = D^2 / (2 s^2)    D = largest change of a single score
    gaussian-threshold      rho = D^2 / (2 s^2)    D = L2 change of the counts, except with
                                                   probability delta (`release_keys`)

Scales are fractions. OpenDP takes floats, so a scale is rounded up to the next float, and the
stated epsilon stays an upper bound.

OpenDP does not check at call time that its input lies in the declared domain, so everything is
checked here, for the fakes too. A value that fails comes from our own arithmetic: InternalError.

Not promised: constant time. The time of a draw depends on the draw, and the time of a selection
on the scores; whoever can time single draws learns more than epsilon says.

In mathematical notation: docs/explanation/proofs.md, "Draws".
"""

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, log, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import EXPONENTIAL, GAUSSIAN, LAPLACE, RESPONSE, SELECTION, THRESHOLD
from shoal.core.machine import cores
from shoal.errors import InternalError
from shoal.hazmat import opendp_measurements as opendp
from shoal.hazmat.opendp_measurements import round_up

LIMIT = 1 << 62
"""Largest magnitude of a value that noise is added to, and of a difference of scores."""

_GRAIN = 1 << 40  # Log odds of a response are multiples of 1 / _GRAIN.
_LEAST_RESPONSE = Fraction(1, 1 << 30)
_MOST_CERTAIN = 40  # exp(-40) is 4e-18: no release is long enough to see a lie.
_MOST_CATEGORIES = 1 << 31
_CHUNK = 2048  # Draws worth a thread of their own: some 13 ms, against 0.1 ms to start one.


class CheckedNoise(ABC):
    """The `Noise` protocol with all checks: the base of the real noise and the fakes.

    Attributes:
        drawn: how many values were drawn, by mechanism and scale. The noise keeps this account
            itself, and the accounting is held against it.
    """

    def __init__(self) -> None:
        self.drawn: Counter[tuple[str, Fraction]] = Counter()

    def discrete_laplace(self, values: NDArray[np.int64], *, scale: Fraction) -> NDArray[np.int64]:
        """Add independent two-sided geometric noise to each value, in the shape that came.

        With s the scale, P(z) = (1 - a) / (1 + a) a^|z| for a = exp(-1/s) and z whole. Hence
        for x, y with ||x - y||_1 <= D and any output o

            P(x + Z = o) / P(y + Z = o) = exp((sum_i |o_i - y_i| - |o_i - x_i|) / s)
                                       <= exp(||x - y||_1 / s) <= exp(D / s),

        so the price is D / s, and no less where D is attained. The scale that is drawn with is
        the least float f >= s; D / f <= D / s, so the price holds for the stated scale.

        Raises:
            InternalError: if values are not whole numbers within +-2^62, or scale is not a
                positive exact number.

        References:
            Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy
            mechanisms", SIAM J. Comput. 41 (2012). doi:10.1137/09076828X
            Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy",
            NeurIPS 2020, Algorithm 2: the sampler that OpenDP implements.
        """
        integers = _whole(values, LIMIT)
        _positive(scale, "scale")
        self.drawn[LAPLACE, Fraction(scale)] += integers.size
        return self._laplace(integers.ravel(), scale).reshape(integers.shape)

    def exceeds(
        self, values: NDArray[np.int64], *, threshold: int, scale: Fraction
    ) -> NDArray[np.bool_]:
        """Decide whether each value exceeds a threshold after the noise of `discrete_laplace`.

        A decision is a function of the noisy value, so it costs no more; a proof that looks at
        decisions alone, such as that of a private tree, may show that it costs less.
        """
        return np.asarray(self.discrete_laplace(values, scale=scale) > threshold)

    def select(self, scores: NDArray[np.int64], *, sensitivity: Fraction, epsilon: Fraction) -> int:
        """Choose an index, preferring high scores, by permute-and-flip.

        With q the scores, D the sensitivity and s = 2 D / epsilon: go through the indices in a
        uniformly random order, and take i with probability p_i = exp((q_i - max q) / s).

        Claim 1: that is the index of the largest q_i + E_i, with E_i independent exponential
        of mean s. For let H be the set of i with q_i + E_i >= max q. Each i is in H
        independently with probability p_i; in H, q_i + E_i - max q is again exponential of
        mean s, so each member of H is the largest with the same probability. And the
        first success in a random order is uniform over the set of coins that show heads.

        Claim 2: that costs 2 D / s = epsilon if no score moves by more than D. Fix all E_j
        but E_i, and let T = max_{j != i} q_j + E_j. Index i wins if E_i > T - q_i, with
        probability G(T - q_i), G(t) = min(1, exp(-t/s)). For the neighbour T' <= T + D and
        q'_i >= q_i - D, so it wins with probability at least G(T - q_i + 2 D), which is at
        least exp(-2 D / s) G(T - q_i). Average over the other E_j.

        No use is made of monotonicity, which would halve the price. Ties share alike. In
        expectation the chosen score is at least that of the exponential mechanism
        P(i) ~ exp(epsilon q_i / (2 D)) (McKenna and Sheldon).

        Scores are whole numbers, such as counts or grid units, so their sensitivity is
        exact. OpenDP would take floats too, as the exact fractions that they are; but the
        rounding on the way to a float score can exceed the sensitivity of its formula.

        Raises:
            InternalError: if there is no score, if one is not a whole number within +-2^61,
                or if sensitivity or epsilon is not a positive exact number.

        References:
            McKenna and Sheldon, "Permute-and-flip: a new mechanism for differentially private
            selection", NeurIPS 2020. arXiv:2010.12603. Claim 1: Ding, Kifer et al., "The
            permute-and-flip mechanism is identical to report-noisy-max with exponential
            noise", 2021. arXiv:2105.07260
        """
        row = _scores(scores, 1)
        scale = selection_scale(sensitivity, epsilon)
        self.drawn[SELECTION, scale] += 1
        return self._choose(row, scale)

    def select_many(
        self, scores: NDArray[np.int64], *, sensitivity: Fraction, epsilon: Fraction
    ) -> NDArray[np.int64]:
        """Choose an index for each row of a matrix, as `select` does; each row pays epsilon.

        The same distribution as one call of `select` a row, in few calls of OpenDP. With d a
        whole gap max q - q_i, a coin of probability exp(-d/s) is G >= d for G geometric,
        P(G = k) ~ exp(-k/s); and G = Z if Z >= 0, else -Z - 1, is such a G for Z discrete
        Laplace, because then P(G = k) = P(Z = k) + P(Z = -k - 1) ~ exp(-k/s) (1 + exp(-1/s)).
        Whole noise that OpenDP cuts off at 2^63 still exceeds any gap, so no coin is wrong.

        Expected draws: at most (c - 1) / 2 a row of c scores, fewer where scores are close.

        Raises:
            InternalError: as `select`.
        """
        rows = _scores(scores, 2)
        scale = selection_scale(sensitivity, epsilon)
        self.drawn[SELECTION, scale] += len(rows)
        return self._choose_many(rows, scale)

    def discrete_gaussian(self, values: NDArray[np.int64], *, scale: Fraction) -> NDArray[np.int64]:
        """Add independent discrete Gaussian noise to each value, in the shape that came.

        With s the scale, P(z) ~ exp(-z^2 / (2 s^2)) for z whole. Between x and y with
        ||x - y||_2 <= D the Renyi divergence of every order a is at most a D^2 / (2 s^2)
        (Canonne, Kamath and Steinke, Theorem 14, which is for vectors of whole numbers): the price
        is rho = D^2 / (2 s^2). The scale that is drawn with is the least float f >= s, and
        D^2 / (2 f^2) <= D^2 / (2 s^2), so the price holds for the stated scale.

        Raises:
            InternalError: as `discrete_laplace`.

        References:
            Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy",
            NeurIPS 2020, Algorithm 3: the sampler that OpenDP implements. arXiv:2004.00010
        """
        integers = _whole(values, LIMIT)
        _positive(scale, "scale")
        self.drawn[GAUSSIAN, Fraction(scale)] += integers.size
        return self._gaussian(integers.ravel(), scale).reshape(integers.shape)

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        """Release the keys whose noisy count reaches a threshold, each with that count.

        A key that no record has cannot be released, so which keys there are is an output. With s
        the scale and T the threshold, every key that occurs gets discrete Gaussian noise Z of scale
        s, and is released if its noisy count is at least T.

        Claim. Let a person bring at most r counts, over any keys. Between tables that differ in
        one person's coming or going the release has (rho, delta), which is rho = r^2 / (2 s^2) on
        events of probability 1 - delta at least in either table (Bun and Steinke 2016,
        Definition 8.1), with delta = r P[Z >= T - r]. For a person whose counts become others it
        has 2 r^2 / (2 s^2) and the same delta; twice that is booked, which is more.

        Proof. Let A be the keys that both tables have. Their counts differ by a vector of L2 norm r
        at most (a change: r leave and r enter, the square is 2 r^2), and a threshold is
        post-processing, so what is released of A has rho. Every other key is one person's, has a
        count c <= r, and there are at most r of them. Let the event E be that none of them is
        released. It fails in a table with probability at most sum P[c + Z >= T] <=
        r P[Z >= T - r]. Given E, nothing is released but of A; and E is independent of the noise on
        A. QED. Under composition rho and delta add up, and (rho, delta) is epsilon at
        delta' + delta for the epsilon of rho at delta' (Lemma 8.8 there).

        P[Z >= t] <= Q((t - 1) / s), Q being the normal tail: the sum over z >= t of
        exp(-z^2 / (2 s^2)) is at most the integral from t - 1, and the normalising sum over all z
        is at least sqrt(2 pi) s, by Poisson summation.

        OpenDP releases a noisy count from its threshold on, and its map omits the mass there
        (report 2922): for scale 1 and threshold 5 it says 3.2e-5 where it is 1.4e-4. So it is
        constructed with T, and what is booked is r Q((T - 1 - r) / s) (`core.concentrated`), which
        by the line above is at least r P[Z >= T - r]. For r = 1 that is OpenDP's map at T - 1; the
        map itself is a multiple of 2^-53, too coarse for a delta divided among columns.

        Raises:
            InternalError: if a count is not a whole number from 1 to 2^62, or the scale or the
                threshold is not positive.

        References:
            Rogers, "A unifying privacy analysis framework for unknown domain algorithms in
            differential privacy", 2023. arXiv:2309.09170
        """
        whole = _whole(np.array(list(counts.values()), dtype=np.int64), LIMIT)
        if whole.size and whole.min() < 1:
            raise InternalError("A key that no record has reached the noise.")
        _positive(scale, "scale")
        _positive(threshold, "threshold")
        self.drawn[THRESHOLD, Fraction(scale)] += 1
        # In an order that does not follow the file, nor how keys were counted.
        return self._keys({key: int(counts[key]) for key in sorted(counts)}, scale, threshold)

    def select_by_weight(self, scores: NDArray[np.int64], *, scale: Fraction) -> int:
        """Choose an index with P(i) ~ exp(q_i / s): the exponential mechanism.

        OpenDP draws it as the index of the largest q_i + G_i, with G_i independent Gumbel noise of
        scale s, in exact arithmetic. If no score moves by more than D, the log-ratio of an index's
        probabilities lies, for all indices, in an interval of length 2 D / s: for q_i / s moves by
        at most D / s either way, and the normalisation by the same amount for all i. A mechanism
        of that range has rho = (2 D / s)^2 / 8 (Cesar and Rogers, Lemma 3.4, by Hoeffding's lemma),
        which is D^2 / (2 s^2).

        Permute-and-flip is not of bounded range: with scores (0, 0) against a gap of 2 D it has a
        divergence of 0.255 at epsilon = 1, twice the 0.125 that this price would say. It costs
        epsilon^2 / 2, as every pure price does.

        Raises:
            InternalError: as `select`.

        References:
            Cesar, Rogers, "Bounding, concentrating, and truncating: unifying privacy loss
            composition for data analytics", ALT 2021. arXiv:2004.07223
        """
        row = _scores(scores, 1)
        _positive(scale, "scale")
        self.drawn[EXPONENTIAL, Fraction(scale)] += 1
        return self._choose_by_weight(row, Fraction(scale))

    def respond(
        self, codes: NDArray[np.int64], *, categories: int, epsilon: Fraction
    ) -> NDArray[np.int64]:
        """Answer for each code by randomised response, in the shape that came.

        With L categories, the answer is the truth with probability p and each other category with
        probability (1 - p) / (L - 1). The textbook's p is 1 / (1 + (L - 1) exp(-epsilon)); it
        is irrational, and here the log odds of the truth against all lies together are

            h = floor(2^40 (epsilon - r)) / 2^40, at most 40, where r >= ln(L - 1),

        so p = 1 / (1 + exp(-h)). That is the textbook's p up to a factor of 1 - 2^-38, or
        up to 1 - exp(-40) where epsilon is so large that no lie will be seen.

        Price. P(truth) / P(another) = (L - 1) exp(h) <= (L - 1) exp(epsilon - r), which is at most
        exp(epsilon), because exp(r) >= L - 1. The other way, h > epsilon - r - 2^-40 or h = 40, and
        r < ln(L - 1) + 2^-38, so P(another) / P(truth) < exp(2^-37 - epsilon): below exp(epsilon)
        from epsilon = 2^-30 on. Below that the answer is uniform over all categories, without
        information. Where the output is a lie for both codes the ratio is 1. Hence for any codes c,
        c' of a record and any output, P(o | c) <= exp(epsilon) P(o | c'): each record pays epsilon,
        and a table in which one record changes pays epsilon too.

        Coin. A coin of log odds -x for heads, x > 0, is one draw of OpenDP: for Z discrete
        Laplace of scale 1/x, G = Z if Z >= 0, else -Z - 1, is geometric with P(G = j) ~
        exp(-x j) (see `select_many`), so P(G odd) = exp(-x) P(G even). For h > 0 heads is
        a lie, and the float scale is rounded up; for h < 0 heads is the truth, and the float
        scale is rounded down; for h = 0 the coin is fair. Each rounding makes lies likelier,
        and moves h by less than 2^-46, which the 2^-37 above has room for. The scale is at
        most 2^40, so OpenDP's cut-off at 2^63 has probability below exp(-2^23).

        r is a multiple of 2^-40 above the float ln(L - 1), and is only used once a partial
        sum of its exponential series, which is all positive, has been found to reach L - 1.

        One draw and one uniform number per record, whatever epsilon and L are.

        Raises:
            InternalError: if a code is not a category, or epsilon is not a positive exact number.

        References:
            Warner, "Randomized response", JASA 60 (1965). doi:10.1080/01621459.1965.10480775
            Kairouz, Bonawitz, Ramage, "Discrete distribution estimation under local privacy",
            ICML 2016, for k categories. arXiv:1602.07387
        """
        checked = _codes(codes, categories)
        _positive(epsilon, "epsilon")
        self.drawn[RESPONSE, 1 / Fraction(epsilon)] += checked.size
        return self._respond(checked.ravel(), categories, Fraction(epsilon)).reshape(checked.shape)

    def uniform(self, below: int, *, size: int) -> NDArray[np.int64]:
        """Draw numbers evenly from 0 to below - 1; they see no data and are in no accounting.

        Raises:
            InternalError: if there is nothing to draw from, or more than whole numbers hold.
        """
        if not 1 <= below <= LIMIT:
            raise InternalError(
                "Expected a range of 1 to 2^62 whole numbers for the random "
                "number generator to draw from."
            )
        return self._uniform(below, size)

    @abstractmethod
    def _uniform(self, below: int, size: int) -> NDArray[np.int64]:
        """Draw numbers below a checked bound."""

    @abstractmethod
    def _laplace(self, values: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        """Add noise to a checked vector."""

    @abstractmethod
    def _gaussian(self, values: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        """Add Gaussian noise to a checked vector."""

    def _keys(self, counts: dict[str, int], scale: Fraction, threshold: int) -> dict[str, int]:
        """Threshold checked counts after their noise."""
        noisy = self._gaussian(np.array(list(counts.values()), dtype=np.int64), scale)
        return {
            key: int(count) for key, count in zip(counts, noisy, strict=True) if count >= threshold
        }

    @abstractmethod
    def _choose_by_weight(self, scores: NDArray[np.int64], scale: Fraction) -> int:
        """Choose from a checked vector of scores, in proportion to their exponentials."""

    @abstractmethod
    def _choose(self, scores: NDArray[np.int64], scale: Fraction) -> int:
        """Choose from a checked vector of scores."""

    @abstractmethod
    def _choose_many(self, scores: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        """Choose from each row of a checked matrix of scores."""

    @abstractmethod
    def _respond(
        self, codes: NDArray[np.int64], categories: int, epsilon: Fraction
    ) -> NDArray[np.int64]:
        """Answer for a checked vector of codes."""


class OpenDPNoise(CheckedNoise):
    """Noise for release: no seed, entropy of the operating system, also after a fork.

    Long vectors are cut into pieces for threads; OpenDP computes outside Python's lock.

    OpenDP adds in big integers and cuts the sum off at the ends of int64 (its
    `then_saturating_cast`): post-processing, which costs nothing and, with values within
    +-2^62, happens with probability below exp(-2^62 / scale) a draw.

    Args:
        threads: the largest number at a time; by default, as many as this process may use.
    """

    def __init__(self, *, threads: int | None = None) -> None:
        super().__init__()
        self._threads = threads or cores()

    def _laplace(self, values: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        return self._in_pieces(opendp.laplace(round_up(scale)), values)

    def _gaussian(self, values: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        return self._in_pieces(opendp.gaussian(round_up(scale)), values)

    def _choose_by_weight(self, scores: NDArray[np.int64], scale: Fraction) -> int:
        return int(opendp.gumbel_max(round_up(scale))(scores))

    def _keys(self, counts: dict[str, int], scale: Fraction, threshold: int) -> dict[str, int]:
        noisy = opendp.threshold(round_up(scale), threshold)(counts)
        return {key: int(noisy[key]) for key in sorted(noisy)}

    def _in_pieces(self, draw: Any, values: NDArray[np.int64]) -> NDArray[np.int64]:
        pieces = min(self._threads, values.size // _CHUNK)
        if pieces < 2:
            return np.array(draw(values) if values.size else [], dtype=np.int64)
        with ThreadPoolExecutor(pieces) as pool:
            parts = pool.map(
                lambda part: np.array(draw(part), dtype=np.int64), np.array_split(values, pieces)
            )
            return np.concatenate(list(parts))

    def _choose(self, scores: NDArray[np.int64], scale: Fraction) -> int:
        return int(opendp.noisy_max(round_up(scale))(scores))

    def _choose_many(self, scores: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
        gaps = scores.max(axis=1, keepdims=True) - scores
        rows, candidates = scores.shape
        order = np.tile(np.arange(candidates), (rows, 1))
        chosen = np.empty(rows, dtype=np.int64)
        active = np.arange(rows)
        for left in range(candidates):  # Fisher and Yates, only as far as is needed.
            right = left + _uniform_below(candidates - left, active.size)
            candidate = order[active, right]
            order[active, right] = order[active, left]
            gap = gaps[active, candidate]
            heads = gap == 0
            flipped = np.flatnonzero(~heads)
            z = self._laplace(np.zeros(flipped.size, dtype=np.int64), scale)
            heads[flipped] = np.where(z >= 0, z, -(z + 1)) >= gap[flipped]
            chosen[active[heads]] = candidate[heads]
            active = active[~heads]
        return chosen

    def _respond(
        self, codes: NDArray[np.int64], categories: int, epsilon: Fraction
    ) -> NDArray[np.int64]:
        if categories == 1:
            return codes.copy()
        if epsilon < _LEAST_RESPONSE:
            return _uniform_below(categories, codes.size)
        lies = self._lies(response_odds(categories, epsilon), codes.size)
        answers = _uniform_below(categories - 1, codes.size)
        return np.where(lies, answers + (answers >= codes), codes)

    def _uniform(self, below: int, size: int) -> NDArray[np.int64]:
        return _uniform_below(below, size)

    def _lies(self, odds: Fraction, size: int) -> NDArray[np.bool_]:
        """Draw coins whose heads are lies, with log odds between -odds and -odds + 2^-46."""
        if odds == 0:
            return np.asarray(_uniform_below(2, size) == 1)
        scale = round_up(1 / abs(odds))
        if odds < 0 and scale > 1 / abs(odds):
            scale = nextafter(scale, 0)
        z = self._laplace(np.zeros(size, dtype=np.int64), Fraction(scale))
        odd = np.asarray((np.where(z >= 0, z, -(z + 1)) & 1) == 1)
        return odd if odds > 0 else np.logical_not(odd)


def selection_scale(sensitivity: Fraction, epsilon: Fraction) -> Fraction:
    """Return the scale of permute-and-flip: 2 sensitivity / epsilon, exactly."""
    _positive(sensitivity, "sensitivity")
    _positive(epsilon, "epsilon")
    return 2 * Fraction(sensitivity) / Fraction(epsilon)


def response_odds(categories: int, epsilon: Fraction) -> Fraction:
    """Return the log odds of the truth against all lies together, in randomised response.

    >>> response_odds(2, Fraction(1)), round(float(response_odds(3, Fraction(1))), 6)
    (Fraction(1, 1), 0.306853)
    """
    exact = min(Fraction(epsilon) - _log_above(categories - 1), Fraction(_MOST_CERTAIN))
    return Fraction(floor(exact * _GRAIN), _GRAIN)


@lru_cache(maxsize=64)
def _log_above(number: int) -> Fraction:
    """Return a multiple of 1 / _GRAIN not below ln(number), checked in whole numbers."""
    if number == 1:
        return Fraction(0)
    bound = Fraction(ceil(log(number) * _GRAIN) + 1, _GRAIN)
    term, total = Fraction(1), Fraction(1)
    for place in range(1, 200):
        term *= bound / place
        total += term
        if total >= number:
            return bound
    raise InternalError("A logarithm that the noise needs could not be bounded from above.")


def _codes(codes: NDArray[Any], categories: int) -> NDArray[np.int64]:
    """Return the codes as int64, or refuse them without showing any."""
    if not 1 <= categories <= _MOST_CATEGORIES:
        raise InternalError(f"Expected 1 to 2^31 categories; got {categories}.")
    integers = _whole(codes, _MOST_CATEGORIES)
    if integers.size and (int(integers.min()) < 0 or int(integers.max()) >= categories):
        raise InternalError(
            f"A category code outside the {categories} categories reached the noise."
        )
    return integers


def _positive(number: Any, name: str) -> None:
    if not isinstance(number, Fraction | int) or number <= 0:  # A float is not exact.
        raise InternalError(f"{name} must be a Fraction above 0; got {number!r}.")


def _whole(values: NDArray[Any], limit: int) -> NDArray[np.int64]:
    """Return the values as int64, or refuse them without showing any."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise InternalError("A number that is not finite reached the noise.")
        # Beyond 2^53, distinct whole numbers can be the same float.
        if (np.abs(array) > 2.0**53).any() or (np.rint(array) != array).any():
            raise InternalError(
                "A number that is not whole reached the noise; put numbers on a grid first."
            )
    elif array.dtype.kind not in "iu":
        raise InternalError(f"Noise is added to whole numbers; got {array.dtype}.")
    if array.size and (int(array.min()) < -limit or int(array.max()) > limit):
        raise InternalError(f"A value beyond +-2^{limit.bit_length() - 1} reached the noise.")
    return array.astype(np.int64, order="C")


def _scores(scores: NDArray[Any], dimensions: int) -> NDArray[np.int64]:
    integers = _whole(scores, LIMIT // 2)  # So that a difference of two stays within the limit.
    if integers.ndim != dimensions or integers.shape[-1] == 0:
        raise InternalError(f"Expected {dimensions}-dimensional scores; got {integers.shape}.")
    return integers


def _uniform_below(bound: int, size: int) -> NDArray[np.int64]:
    """Draw exactly uniform numbers in 0..bound-1 from the operating system, by rejection."""
    numbers = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
    if bound & (bound - 1) == 0:  # Of a power of two no number is rejected.
        return (numbers & np.uint64(bound - 1)).view(np.int64)
    highest, numbers = (1 << 64) - (1 << 64) % bound - 1, numbers.copy()
    while (bad := np.flatnonzero(numbers > np.uint64(highest))).size:
        numbers[bad] = np.frombuffer(os.urandom(8 * bad.size), dtype=np.uint64)
    return (numbers % np.uint64(bound)).astype(np.int64)
