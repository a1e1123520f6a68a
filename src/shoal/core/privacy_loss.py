"""Privacy losses, and the randomness that they pay for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.core.guarantees import OMITTED, Neighbours
from shoal.errors import InputError, InternalError

LAPLACE = "discrete-laplace"
SELECTION = "permute-and-flip"
RESPONSE = "randomised-response"
GAUSSIAN = "discrete-gaussian"
EXPONENTIAL = "exponential-mechanism"
THRESHOLD = "gaussian-threshold"
"""Names of the mechanisms that the accounting has a proof for."""


class PrivacyMeasure(StrEnum):
    """The measure of a privacy loss.

    `epsilon`: pure differential privacy; prices add up. `rho`: zero-concentrated differential
    privacy, which a given delta converts to an epsilon; prices add up too.
    """

    EPSILON = "epsilon"
    RHO = "rho"


@dataclass(frozen=True)
class Price:
    """A privacy parameter: what one draw, or several together, may cost.

    Attributes:
        amount: the epsilon or rho.
        neighbours: the kind of neighbouring tables.
        measure: epsilon or rho.

    >>> (Price(Fraction(1)) * Fraction(1, 4)).amount
    Fraction(1, 4)
    """

    amount: Fraction
    neighbours: Neighbours = Neighbours.CHANGE_ONE
    measure: PrivacyMeasure = PrivacyMeasure.EPSILON

    @property
    def epsilon(self) -> Fraction | None:
        """The amount, if it is in epsilon."""
        return self.amount if self.measure is PrivacyMeasure.EPSILON else None

    @property
    def rho(self) -> Fraction | None:
        """The amount, if it is in rho."""
        return self.amount if self.measure is PrivacyMeasure.RHO else None

    def __mul__(self, share: Fraction | int) -> "Price":
        return replace(self, amount=self.amount * share)

    def __truediv__(self, parts: Fraction | int) -> "Price":
        return replace(self, amount=self.amount / parts)

    def __sub__(self, other: "Price") -> "Price":
        if (other.neighbours, other.measure) != (self.neighbours, self.measure):
            raise InternalError("Prices of different sorts cannot be subtracted.")
        return replace(self, amount=self.amount - other.amount)


@dataclass(frozen=True)
class PrivacyLoss:
    """One entry of the accounting: a mechanism, what it measured, and its privacy loss.

    Attributes:
        mechanism: by its name in `shoal.hazmat.noise`.
        target: what it was spent on, in public words such as a column's name.
        sensitivity: largest L1 change of the exact answer between neighbours; of discrete Gaussian
            noise the square of the largest L2 change, which is a fraction where the root is not.
        scale: of the noise, in the units of the sensitivity.
        epsilon: the price; at least sensitivity / scale. None if the price is in rho.
        neighbours: for which the sensitivity was computed.
        draws: how many random values were drawn.
        parallel: name of a division of the records into disjoint parts, if this entry uses one
            part alone.
        part: which part; entries on one part add up, parts share a price (`hazmat.accounting`).
        fixed: a record whose values change stays in its part, because the parts follow
            public facts only, such as public columns or row numbers.
        rho: the price in zero-concentrated differential privacy, if it is counted that way.
        unit_scale: of noise on sums of groups, its scale in the column's unit; the mean of a group
            C has noise of this over |C|, which the papers write as Delta / (|C| epsilon).
        threshold: of counts of unknown keys, the least noisy count with which one is released.
        delta: of these, the probability that a key shows which of two neighbours the table is.
    """

    mechanism: str
    target: str
    sensitivity: Fraction
    scale: Fraction
    epsilon: Fraction | None
    neighbours: Neighbours
    draws: int
    parallel: str | None = None
    part: str | None = None
    fixed: bool = False
    rho: Fraction | None = field(default=None, metadata=OMITTED)
    unit_scale: float | None = field(default=None, metadata=OMITTED)
    threshold: int | None = field(default=None, metadata=OMITTED)
    delta: Fraction = field(default=Fraction(0), metadata=OMITTED)

    def __post_init__(self) -> None:
        if (self.parallel is None) != (self.part is None):
            raise InternalError(
                "A recorded privacy loss must name a division of the records "
                "and its part, or neither."
            )
        price = self.rho if self.epsilon is None else self.epsilon
        if price is None or (self.rho is not None and self.epsilon is not None):
            raise InternalError("A recorded privacy loss is stated in epsilon or in rho, not both.")
        # By numerators: an audit writes down as many entries as it has runs.
        signs = (part.numerator for part in (self.sensitivity, self.scale, price))
        if min(signs) < 0 or self.scale.numerator == 0:
            raise InputError(
                "A recorded privacy loss needs a sensitivity and an epsilon of at "
                "least 0 and a noise scale above 0."
            )
        if self.epsilon is not None and self.epsilon * self.scale < self.sensitivity:
            raise InternalError(
                "A recorded privacy loss must not state less epsilon than its noise costs."
            )


class Noise(Protocol):
    """The randomness that carries privacy, as algorithms see it.

    Values are whole numbers: a mechanism first puts its answers on a public grid. Only the noise
    that `shoal.pipeline.protect_table` builds for a run supports a claim of differential privacy.
    """

    def discrete_laplace(self, values: NDArray[np.int64], *, scale: Fraction) -> NDArray[np.int64]:
        """Add two-sided geometric noise, P(z) proportional to exp(-|z| / scale), to each value."""
        ...

    def exceeds(
        self, values: NDArray[np.int64], *, threshold: int, scale: Fraction
    ) -> NDArray[np.bool_]:
        """Decide for each value whether it exceeds a threshold after two-sided geometric noise.

        The noisy values are never seen, so only the decisions are published.
        """
        ...

    def select(self, scores: NDArray[np.int64], *, sensitivity: Fraction, epsilon: Fraction) -> int:
        """Choose an index, preferring high scores, by permute-and-flip.

        It is never worse in expectation than the exponential mechanism of the same epsilon.
        """
        ...

    def select_many(
        self, scores: NDArray[np.int64], *, sensitivity: Fraction, epsilon: Fraction
    ) -> NDArray[np.int64]:
        """Choose an index for each row of scores; each choice costs epsilon."""
        ...

    def discrete_gaussian(self, values: NDArray[np.int64], *, scale: Fraction) -> NDArray[np.int64]:
        """Add noise with P(z) proportional to exp(-z^2 / (2 scale^2)) to each value."""
        ...

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        """Return the keys whose count reaches a threshold after Gaussian noise, with that count."""
        ...

    def select_by_weight(self, scores: NDArray[np.int64], *, scale: Fraction) -> int:
        """Choose an index with P(i) proportional to exp(score / scale): exponential mechanism."""
        ...

    def respond(
        self, codes: NDArray[np.int64], *, categories: int, epsilon: Fraction
    ) -> NDArray[np.int64]:
        """Answer for each code by randomised response, which costs epsilon each."""
        ...

    def uniform(self, below: int, *, size: int) -> NDArray[np.int64]:
        """Draw `size` uniform numbers from 0 to below - 1, without using the data.

        They cost nothing. Draw them here if a proof needs them to be unpredictable.
        """
        ...
