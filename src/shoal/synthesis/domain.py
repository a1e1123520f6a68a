"""What a mechanism that draws rows may know of a column, and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import GAUSSIAN, LAPLACE, Kind, PrivacyLoss
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError, InternalError
from shoal.mechanism.records import Columns, HeldColumns

_MOST_CODES = 1 << 31


@dataclass(frozen=True)
class Domain:
    """The public facts about a column; its cells are codes 0 to size - 1.

    A number's codes are cells of a public grid at the column's public resolution, in order of value
    (`shoal.mechanism.fixed_point`, whose units run from 0 to `steps`: size = steps + 1). Every code
    of the public domain counts, whether or not a record has it.

    Attributes:
        name: for the accounting.
        kind: numeric, ordinal or nominal; a day is numeric.
        size: how many codes there are.
        order: for a nominal, its codes in a public order in which siblings of the hierarchy stand
            side by side; by default as they are.
        joins: for a hierarchy, how deep the common ancestor of each two neighbours of the order
            lies, 0 being the root; by default 0 throughout, which is a flat nominal.
        gap: the last code stands for a missing cell. It is separated before the others are halved.

    >>> Domain("colour", Kind.NOMINAL, 4, joins=(1, 0, 1)).cut(0, 4)
    2
    """

    name: str
    kind: Kind
    size: int
    order: tuple[int, ...] | None = None
    joins: tuple[int, ...] | None = None
    gap: bool = False

    def __post_init__(self) -> None:
        if self.kind not in {Kind.NUMERIC, Kind.ORDINAL, Kind.NOMINAL} or self.size < 1:
            raise InputError(
                f"Column '{self.name}': expected a numeric, ordinal or nominal column of at least "
                f"one code, found {self.kind} of {self.size}."
            )
        if self.size > _MOST_CODES:
            raise InputError(
                f"Column '{self.name}': expected at most 2^31 codes, found {self.size}. Use a "
                "coarser grid."
            )
        if self.order is not None and sorted(self.order) != list(range(self.size)):
            raise InputError(f"Column '{self.name}': expected an order that has each code once.")
        if self.joins is not None and len(self.joins) != self.size - 1:
            raise InputError(
                f"Column '{self.name}': expected {self.size - 1} heights, one between each two "
                "neighbouring categories."
            )

    @property
    def numeric(self) -> bool:
        """Whether codes may be averaged."""
        return self.kind is Kind.NUMERIC

    @cached_property
    def positions(self) -> Ints | None:
        """The position of each code in the public order, if there is one."""
        if self.order is None:
            return None
        return np.argsort(np.array(self.order, dtype=np.int64)).astype(np.int64)

    def cut(self, low: int, high: int) -> int:
        """Halve the positions low <= x < high: return the first position of the upper half.

        Between categories of a hierarchy, at a boundary of the highest level that the range
        has, and of these at the one nearest the middle, the lower of two. So a hierarchy's
        nodes come apart before their members do, by halves, whatever their fan-out.
        """
        if self.gap and high == self.size:
            return high - 1
        middle = low + (high - low) // 2
        if self.joins is None:
            return middle
        inner = self.joins[low : high - 1]
        top = min(inner)
        positions = [low + 1 + i for i, depth in enumerate(inner) if depth == top]
        return min(positions, key=lambda position: (abs(2 * position - low - high), position))


class Sort(StrEnum):
    """Kind of a `Measurement`."""

    TABLE = "table"
    TREE = "tree"
    BLOCKS = "blocks"
    CONCORDANCES = "concordances"


@dataclass(frozen=True, eq=False)
class Measurement:
    """Counts of a public or already published division of the records, with noise.

    Attributes:
        columns: which columns it counts, by index.
        groups: what it counts of them. A table: for each column the group of each code, or for
            ordered codes the first code of each bin and the number of codes at the end. A tree: the
            lower and upper ends of its leaves, as positions in the public orders. Blocks by rank:
            their first ranks, and n. Concordances of every two columns: nothing.
        counts: the noisy answers; a table has one axis per column. They may be negative.
        scale: of the noise that they have.
        mechanism: which noise that is: discrete Laplace, or Gaussian.
        sort: which of these it is.
    """

    columns: tuple[int, ...]
    groups: tuple[Ints, ...]
    counts: Ints
    scale: Fraction
    sort: Sort = Sort.TABLE
    mechanism: str = LAPLACE

    @property
    def variance(self) -> Fraction:
        """Variance of each answer's noise."""
        return (1 if self.mechanism == GAUSSIAN else 2) * self.scale**2

    @property
    def total(self) -> tuple[float, float]:
        """The sum of the counts, and its variance."""
        return float(self.counts.sum()), float(self.counts.size * self.variance)


@dataclass(frozen=True, eq=False)
class SyntheticRows:
    """Synthetic rows, the answers that they were drawn from, and their privacy losses.

    Attributes:
        rows: one array per column; codes, or for a numeric column numbers between 0 and size - 1
            that need not be whole.
        facts: plain values for the report, such as the plan or the number of leaves. They
            follow from the public inputs and the noisy answers.
    """

    rows: tuple[Ints | Floats, ...]
    privacy_losses: tuple[PrivacyLoss, ...]
    measurements: tuple[Measurement, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def check_codes(
    codes: Sequence[NDArray[Any]] | NDArray[Any], domains: Sequence[Domain]
) -> list[Ints]:
    """Check that the columns are whole numbers within their domains, as the caller clamped them.

    The error about a cell outside its domain does not show it.
    """
    if len(codes) != len(domains) or not domains:
        raise InternalError(
            f"Expected one column of codes for each of the {len(domains)} domains; got "
            f"{len(codes)}."
        )
    columns = []
    for column, domain in zip(codes, domains, strict=True):
        array = np.asarray(column)
        if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) != len(codes[0]):
            raise InternalError(f"Column '{domain.name}' must hold whole numbers as codes.")
        if array.size and (array.min() < 0 or array.max() >= domain.size):
            raise InternalError(f"Column '{domain.name}' has a code outside its domain.")
        columns.append(array.astype(np.int64, copy=False))
    if not columns[0].size:
        raise InputError("Expected at least one record, found none.")
    return columns


def records(codes: Sequence[NDArray[Any]] | Columns, domains: Sequence[Domain]) -> Columns:
    """Wrap columns as records that answer queries; arrays are checked, see `check_codes`."""
    if isinstance(codes, Sequence | np.ndarray):
        return HeldColumns(check_codes(codes, domains))
    return codes
