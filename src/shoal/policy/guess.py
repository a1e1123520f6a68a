"""What is known of a column, and what the draft takes it for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from functools import cached_property

from shoal.core import Kind, Role
from shoal.policy.column_values import LIFE, ColumnValues, words

BY_COUNTS = "codes, by how often each occurs"
"""Why numbers are taken for codes that nothing else speaks for."""
AS_STATED = "its role was stated"
"""Why a column has a role that somebody has given it."""
UNKNOWN = "not recognised"
"""How the reason begins of a column whose name says nothing."""


class Nature(StrEnum):
    """The nature of a column's values, where it decides how they are coarsened."""

    BIRTH = "birth"
    COORDINATE = "coordinate"
    OTHER = "other"


@dataclass(frozen=True)
class Guess:
    """What a column is taken for, and why.

    Attributes:
        role: what an attacker may do with it.
        kind: which arithmetic it allows.
        reason: why, as a part of a sentence.
        categories: its values where they are few; in order for an ordinal.
        spellings: those that mean one of the categories, each with it.
        flags: keys of the policy that become true.
        date_format: where dates are not written as 2023-09-17.
        missing: cells that mean missing.
        step: 1 where all numbers are whole, else the unit of their last decimal of at most three.
        limits: bounds that are public knowledge, as an example.
        question: what only the steward can answer, as a sentence.
        forms: the formats that a question about dates leaves open, the guess first.
        nature: what its values are where that decides how they are coarsened.
        coding: further keys of the policy with their values, such as a limit or a step.
        advice: how a policy keeps a column that is left out, as a part of a sentence.
        parts: columns that add up to it.
    """

    role: Role
    kind: Kind
    reason: str
    categories: tuple[str, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    date_format: str | None = None
    missing: tuple[str, ...] = ()
    step: Decimal | None = None
    limits: tuple[str, ...] = ()
    question: str = ""
    forms: tuple[str, ...] = ()
    nature: Nature = Nature.OTHER
    coding: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""
    parts: tuple[str, ...] = ()

    def because(self, more: str) -> "Guess":
        """Append to the reason."""
        return replace(self, reason=f"{self.reason}{more}")


@dataclass(frozen=True, eq=False)
class NamedColumn:
    """A column with the meanings of its name and evidence from the other columns.

    Attributes:
        holds: what its values are that leads to a person, in words.
    """

    name: str
    means: frozenset[str]
    values: ColumnValues
    beside_body: bool
    day_first: bool | None
    holds: str = ""

    @property
    def counted(self) -> bool:
        """Whether the column's name suggests counts or measurements, and its values are numbers."""
        return "quantity" in self.means and self.values.numbers is not None

    @property
    def is_sex(self) -> bool:
        """Whether its values are a sex; digits count only if the name says so too."""
        written = {text.strip().lower() for text in self.values.text.to_list()[:9]}
        digits = any(text.isdigit() for text in written)
        few = 2 <= self.values.distinct <= 4 and written <= set(words()["sexes"].split())
        return few and ("sex" in self.means or not digits)

    @cached_property
    def is_birth(self) -> bool:
        """Whether it holds days or years of birth, by its name or by its range."""
        days = self.values.days
        if days is not None and days.len():
            years = days.dt.year()
            first, last = int(years.min()), int(years.max())  # type: ignore[arg-type]
            return "birth" in self.means or (last - first >= LIFE and last <= 2035)
        numbers = self.values.numbers
        named = "birth" in self.means
        if numbers is None or not self.values.whole or (self.values.distinct < 20 and not named):
            return False
        return bool(numbers.is_between(1900, 2035).all())

    @property
    def nature(self) -> Nature:
        """The nature of the values, where it decides how they are coarsened."""
        if self.is_birth:
            return Nature.BIRTH
        return Nature.COORDINATE if self.is_coordinate else Nature.OTHER

    @property
    def is_coordinate(self) -> bool:
        """Whether it holds coordinates: within 180, close together, with four decimals or more."""
        numbers = self.values.numbers
        if numbers is None or not bool(numbers.is_between(-180, 180).all()):
            return False
        exact = self.values.text.str.contains(r"[.,]\d{4,}\s*$").mean() or 0.0
        low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
        return bool(exact > 0.8 and high - low < 30)  # type: ignore[operator]

    @property
    def is_amount(self) -> bool:
        """Whether its numbers have decimals, or enough values to be measurements."""
        values = self.values
        return not values.unbroken or (values.distinct > 100 and float(values.numbers.max()) > 1000)  # type: ignore[union-attr,arg-type]

    @property
    def few_codes(self) -> bool:
        """Whether it has few enough values to be codes."""
        values = self.values
        few = values.distinct <= 10 and values.present > 2 * values.distinct
        return few and not (values.round_amounts and "quantity" in self.means)


def guess_dropped(reason: str, *flags: str, advice: str = "") -> Guess:
    """Guess that a column identifies a person, so it is dropped."""
    return Guess(Role.IDENTIFIER, Kind.NOMINAL, reason, flags=flags, advice=advice)
