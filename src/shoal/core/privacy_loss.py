"""What privacy costs, and the randomness that it is paid for."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.core.guarantees import Neighbours
from shoal.errors import InputError, InternalError

LAPLACE = "discrete-laplace"
SELECTION = "permute-and-flip"
RESPONSE = "randomised-response"
"""Names of the mechanisms that the accounting has a proof for."""


@dataclass(frozen=True)
class PrivacyLoss:
    """One entry of the accounting: what a mechanism was allowed to learn, and at what price.

    Attributes:
        mechanism: by its name in `shoal.hazmat.noise`.
        target: what it was spent on, in public words such as a column's name.
        sensitivity: largest L1 change of the exact answer between neighbours.
        scale: of the noise, in the units of the sensitivity.
        epsilon: the price; at least sensitivity / scale.
        neighbours: for which the sensitivity was computed.
        draws: how many random values were drawn.
        parallel: name of a division of the records into disjoint parts, if this entry uses one
            part alone.
        part: which part; entries on one part add up, parts share a price (`hazmat.accounting`).
        fixed: a record whose values change stays in its part, because the parts follow
            public facts only, such as public columns or row numbers.
    """

    mechanism: str
    target: str
    sensitivity: Fraction
    scale: Fraction
    epsilon: Fraction
    neighbours: Neighbours
    draws: int
    parallel: str | None = None
    part: str | None = None
    fixed: bool = False

    def __post_init__(self) -> None:
        if (self.parallel is None) != (self.part is None):
            raise InternalError(
                "A recorded privacy loss must name a division of the records "
                "and its part, or neither."
            )
        if min(self.sensitivity, self.scale, self.epsilon) < 0 or self.scale == 0:
            raise InputError(
                "A recorded privacy loss needs a sensitivity and an epsilon of at "
                "least 0 and a noise scale above 0."
            )
        if self.epsilon * self.scale < self.sensitivity:
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

    def select(self, scores: NDArray[np.int64], *, sensitivity: Fraction, epsilon: Fraction) -> int:
        """Choose an index, preferring high scores, by permute-and-flip.

        It is never worse in expectation than the exponential mechanism of the same epsilon.
        """
        ...

    def select_many(
        self, scores: NDArray[np.int64], *, sensitivity: Fraction, epsilon: Fraction
    ) -> NDArray[np.int64]:
        """Choose an index for each row of scores, each choice at the price of epsilon."""
        ...

    def respond(
        self, codes: NDArray[np.int64], *, categories: int, epsilon: Fraction
    ) -> NDArray[np.int64]:
        """Answer for each code below `categories`, by randomised response at the price epsilon."""
        ...

    def uniform(self, below: int, *, size: int) -> NDArray[np.int64]:
        """Draw so many numbers evenly from 0 to below - 1, without using the data.

        They cost nothing. They are drawn here where a proof needs that nobody can guess them.
        """
        ...
