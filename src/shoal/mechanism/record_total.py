"""The number of records as a mechanism may know it: public, or measured with noise.

Between add-remove neighbours the number of records differs. A mechanism that needs it before it
draws (which marginals can be read, how far noise is believed, how many rows are drawn) must not
look: it takes `measure_total`, for a hundredth of its price. Everything that follows it is the
same for n and n + 1 records, given equal answers.

Marginals that are counted anyway have totals of their own, each with the noise of its cells. The
mean with weights 1 / variance of all of them has the least variance (`RecordTotal.refine`): that
sees noisy answers alone, and costs nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from shoal.core import Neighbours, Noise, Price, PrivacyLoss
from shoal.errors import InternalError
from shoal.mechanism.noisy_answers import Reach, noise_variance, noisy_answers
from shoal.mechanism.records import Columns

TOTAL_SHARE = Fraction(1, 100)
"""Share of a price that the number of records takes first, where it is not public."""
_ONE: Reach = {Neighbours.CHANGE_ONE: 1, Neighbours.ADD_REMOVE: 1}
"""For each row of a person: where a person's rows change, their number may."""


@dataclass(frozen=True)
class RecordTotal:
    """The number of records, or an estimate of it.

    Attributes:
        estimate: the number, or its noisy measurement.
        variance: variance of the noise; 0 if it is public.
        least: lower limit of the estimate.
    """

    estimate: float
    variance: float = 0.0
    least: int = 1

    @property
    def rows(self) -> int:
        """The estimate as a whole number."""
        return max(round(self.estimate), self.least)

    def refine(self, totals: Iterable[tuple[float, float]]) -> Self:
        """Average this and other noisy totals, weighted by 1 / variance.

        >>> RecordTotal(100.0, 4.0).refine([(106.0, 2.0)]).rows
        104
        >>> RecordTotal(100.0).refine([(106.0, 2.0)]).rows
        100
        """
        if self.variance == 0:
            return self
        pairs = [(self.estimate, self.variance), *totals]
        weights = [1 / variance for _, variance in pairs]
        mean = sum(w * total for w, (total, _) in zip(weights, pairs, strict=True)) / sum(weights)
        return type(self)(mean, 1 / sum(weights), self.least)


def measure_total(
    n: int, *, price: Price, noise: Noise, least: int = 1
) -> tuple[RecordTotal, PrivacyLoss]:
    """Measure the number of records; a row of an added or removed person moves it by 1."""
    noisy, privacy_loss = noisy_answers(
        np.array([n]), reach=_ONE, price=price, target="the number of rows", noise=noise
    )
    variance = float(noise_variance(privacy_loss))
    return RecordTotal(float(noisy[0]), variance, least), privacy_loss


def permit_total(columns: Columns, price: Price, total: RecordTotal | None) -> RecordTotal:
    """Return the number of records if it is public, else its measurement.

    Raises:
        InternalError: if it is neither.
    """
    if price.neighbours is Neighbours.CHANGE_ONE:
        return RecordTotal(float(len(columns)))
    if total is None or total.variance == 0:
        raise InternalError("The number of records is not public, and was not measured.")
    return total
