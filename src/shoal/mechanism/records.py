"""Records that answer queries by whole numbers, and the number of records.

A mechanism that only counts need not see the records. It asks a `Columns` for a total, or sends the
records on a `Walk`: a state for each block, steps that change it, and questions that do not. Both
see one block at a time, and must not care how the records are cut into blocks. `HeldColumns` has
one block, in memory.

Between add-remove neighbours the number of records differs. A mechanism that needs it before it
draws (which marginals are accurate enough, how strongly noise is smoothed, how many rows are drawn)
must not use it: it takes `measure_total`, for a hundredth of its price. Everything that follows it
is the same for n and n + 1 records, given equal answers.

Marginals that are counted anyway have totals of their own, each with the noise of its cells. The
mean with weights 1 / variance of all of them has the least variance (`RecordTotal.refine`): that
sees noisy answers alone, and costs nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np

from shoal.core import Neighbours, Noise, Price, PrivacyLoss
from shoal.core._arrays import Ints
from shoal.errors import InternalError
from shoal.mechanism.noisy_answers import Reach, noise_variance, noisy_answers


class Walk(Protocol):
    """Blocks of records, each with a state."""

    def step(self, move: Callable[[Any], Ints]) -> Ints:
        """Change the state of each block, and sum the answers of the blocks."""

    def ask(self, question: Callable[[Any], Ints]) -> Ints:
        """Sum the answers of the blocks without changing their state."""


class Columns(Protocol):
    """Columns of whole-number codes."""

    def __len__(self) -> int: ...

    def total(self, question: Callable[[Sequence[Ints]], Ints]) -> Ints:
        """Sum the answers of the blocks."""

    def walk(self, start: Callable[[Sequence[Ints]], Any]) -> Walk:
        """Give each block a state."""


class HeldColumns:
    """Columns in memory: one block.

    >>> import numpy as np
    >>> HeldColumns([np.array([0, 1, 1])]).total(lambda columns: np.bincount(columns[0]))
    array([1, 2])
    """

    def __init__(self, columns: Sequence[Ints]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def total(self, question: Callable[[Sequence[Ints]], Ints]) -> Ints:
        """Compute the answer of the single block."""
        return question(self.columns)

    def walk(self, start: Callable[[Sequence[Ints]], Any]) -> "HeldWalk":
        """Give the single block a state."""
        return HeldWalk(start(self.columns))


class HeldWalk:
    """One block in memory, with its state."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def step(self, move: Callable[[Any], Ints]) -> Ints:
        """Change the state."""
        return move(self.state)

    def ask(self, question: Callable[[Any], Ints]) -> Ints:
        """Compute the answer of the single block."""
        return question(self.state)


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
