"""What is promised, what was tested, and what was measured: three types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

from shoal.errors import InputError, InternalError, visible


class ReleaseForm(StrEnum):
    """How the rows of a release relate to the rows of the original.

    `synthetic`: rows were drawn from a model, and none is a person. `tree`: a row is a box of the
    quasi-identifiers' space with counts.
    """

    ROW_ALIGNED = "row-aligned"
    LINKED_SHUFFLED = "linked-shuffled"
    CANONICAL = "canonical"
    COLUMN_SHUFFLED = "column-shuffled"
    SYNTHETIC = "synthetic"
    TREE = "tree"


class Status(StrEnum):
    """How far a claim is known to be true."""

    PROVED = "proved"
    CONDITIONAL = "conditional"
    UNPROVEN = "unproven"
    REFUTED = "refuted"


class Audience(StrEnum):
    """Who will get a release; see `shoal.pipeline.audiences` for the claims that each needs."""

    PUBLIC_USE = "public-use"
    SCIENTIFIC_USE = "scientific-use"
    SECURE_USE = "secure-use"


class Neighbours(StrEnum):
    """Which tables must be hard to tell apart.

    `change-one`: one record has other values, and the number of records is public.
    `add-remove`: one record is there or not.
    """

    CHANGE_ONE = "change-one"
    ADD_REMOVE = "add-remove"


class Extract(StrEnum):
    """By what a table was cut out of its source.

    `public`: by public facts of a row. `row`: by cells of the row alone. `table`: by other rows
    too, as the first thousand by income, or what is left after duplicates were dropped.
    """

    PUBLIC = "public"
    ROW = "row"
    TABLE = "table"


@dataclass(frozen=True)
class KAnonymity:
    """Every combination of released values in `columns` is shared by at least k records."""

    name: ClassVar[str] = "k-anonymity"
    k: int
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.k}-anonymity of {' + '.join(self.columns)}"


class Diversity(StrEnum):
    """How l-diversity counts the confidential values of a class.

    `distinct`: at least l values. `entropy`: entropy at least log l. `recursive`: the most
    frequent value is rarer than c times all from the l-th on. `frequency`: no value has a share
    above 1 / l.
    """

    DISTINCT = "distinct"
    ENTROPY = "entropy"
    RECURSIVE = "recursive"
    FREQUENCY = "frequency"


class Distance(StrEnum):
    """How t-closeness measures a class's distribution against the whole table's.

    `equal`, `ordered` and `hierarchical` are earth mover's distances with that ground distance,
    `variation` is total variation, `ratio` the largest ratio of shares either way
    (domingoferrer2015, Definition 4).
    """

    EQUAL = "equal"
    ORDERED = "ordered"
    HIERARCHICAL = "hierarchical"
    VARIATION = "variation"
    RATIO = "ratio"


@dataclass(frozen=True)
class LDiversity:
    """The confidential values of every class are diverse.

    Attributes:
        columns: the confidential columns, taken jointly.
        keys: the quasi-identifiers that make the classes.
        c: of the recursive kind.
    """

    name: ClassVar[str] = "l-diversity"
    l: Fraction  # noqa: E741 (as in the literature)
    kind: Diversity
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    c: Fraction | None = None

    def __post_init__(self) -> None:
        if self.l < 1:
            raise InputError(f"l-diversity needs l of at least 1; found {shown(self.l)}.")
        if (self.kind is Diversity.RECURSIVE) is not (self.c is not None):
            raise InputError("Recursive l-diversity, and no other kind, needs a c.")

    def __str__(self) -> str:
        more = f" with c = {shown(self.c)}" if self.c is not None else ""
        what = visible(" + ".join(self.columns))
        return (
            f"{self.kind} {shown(self.l)}-diversity{more} of {what} given {' + '.join(self.keys)}"
        )


@dataclass(frozen=True)
class TCloseness:
    """The confidential values of every class are distributed nearly as in the whole table.

    Attributes:
        columns: the confidential columns, taken jointly.
        keys: the quasi-identifiers that make the classes.
    """

    name: ClassVar[str] = "t-closeness"
    t: Fraction
    distance: Distance
    columns: tuple[str, ...]
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        least = 1 if self.distance is Distance.RATIO else 0
        if self.t < least:
            raise InputError(f"t-closeness needs t of at least {least}; found {shown(self.t)}.")

    def __str__(self) -> str:
        what = visible(" + ".join(self.columns))
        return (
            f"{shown(self.t)}-closeness ({self.distance}) of {what} given {' + '.join(self.keys)}"
        )


@dataclass(frozen=True)
class DifferentialPrivacy:
    """One record changes the probability of any output by a factor of at most exp(epsilon).

    Attributes:
        protects: the columns whose values may change.
        invariants: what is published exactly, and so is the same in both tables.
        unit: whose record may change: a row, or where a column numbers them a person.
        rows: how many rows a person may have.
    """

    name: ClassVar[str] = "differential-privacy"
    epsilon: Fraction
    neighbours: Neighbours
    protects: tuple[str, ...]
    invariants: tuple[str, ...] = ("the number of rows",)
    unit: str = "row"
    rows: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the guarantee is about."""
        return self.protects

    def __str__(self) -> str:
        whom = " (add-remove)" if self.neighbours is Neighbours.ADD_REMOVE else ""
        what = visible(" + ".join(self.protects))
        each = f", for persons of up to {self.rows:,} rows" if self.rows > 1 else ""
        return f"{shown(self.epsilon)}-differential privacy{whom} of {what}{each}"


@dataclass(frozen=True)
class StochasticTCloseness:
    """What is drawn for the confidential values of a class is distributed nearly as for all.

    It is derived from class sizes and the price of each record's draw, and never tested on a
    table: one draw does not show a distribution (domingoferrer2015, Definition 3).

    Attributes:
        t: largest ratio of probabilities, either way.
        columns: the confidential columns.
        keys: the quasi-identifiers that make the classes.
    """

    name: ClassVar[str] = "stochastic-t-closeness"
    t: float
    columns: tuple[str, ...]
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.t >= 1:
            raise InputError(f"Stochastic t-closeness needs t of at least 1; found {self.t}.")

    def __str__(self) -> str:
        what = visible(" + ".join(self.columns))
        return f"stochastic {self.t:.4g}-closeness of {what} given {' + '.join(self.keys)}"


Guarantee = KAnonymity | LDiversity | TCloseness | StochasticTCloseness | DifferentialPrivacy
Testable = KAnonymity | LDiversity | TCloseness
"""Guarantees that a finished table can be tested for."""


def figure(number: float | Fraction) -> str:
    """Write an achieved figure for people: whole, exact if short, else to four digits.

    >>> figure(5), figure(Fraction(1, 4)), figure(Fraction(1, 3))
    ('5', '0.25', '0.3333')
    """
    if isinstance(number, int):
        return f"{number:,}"
    text = shown(Fraction(number)) if isinstance(number, Fraction) else f"{number:.4g}"
    return text if "/" not in text else f"{float(number):.4g}"


def shown(number: Fraction) -> str:
    """Write a number for people: as a decimal where that is exact, as a fraction otherwise.

    >>> shown(Fraction(1, 10)), shown(Fraction(2)), shown(Fraction(1, 3))
    ('0.1', '2', '1/3')
    """
    try:
        text = f"{float(number):g}"
    except OverflowError:
        return str(number)
    return text if Fraction(text) == number else str(number)


KNOWN_COLUMNS = "an attacker knows no more than the columns named here"
ONE_ROW = "each person has one row"
"""What a promise about persons assumes where the policy does not say whose rows they are."""


@dataclass(frozen=True)
class Claim:
    """A promise, with how far it is known to be true and why.

    Attributes:
        basis: the reason, or for a refuted claim the counterexample, in plain words.
        assumes: what must hold outside the table for the claim to mean what it says.
        source: where the proof is published; "ours" if it is our own.
    """

    guarantee: Guarantee
    status: Status
    basis: str
    assumes: tuple[str, ...]
    source: str
    release_form: ReleaseForm

    @property
    def stands(self) -> bool:
        """Whether it is proved, if need be on the one condition that each person has one row."""
        others = {*self.assumes} - {KNOWN_COLUMNS}
        by_rows = self.status is Status.CONDITIONAL and others == {ONE_ROW}
        return self.status is Status.PROVED or by_rows


@dataclass(frozen=True)
class Check:
    """A guarantee recomputed on a released table.

    Attributes:
        achieved: the best parameter for which the guarantee holds, e.g. the smallest class;
            exact where it is rational.
        witness: the group of records that decides: its size, and row numbers from 1 in the
            table that was checked, never cells.
        remarks: further facts computed on the same table.
    """

    guarantee: Testable
    holds: bool
    achieved: int | Fraction | float
    witness: Mapping[str, Any]
    remarks: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """A measured figure with its interval.

    >>> print(Estimate(0.85, 0.767, 0.907, 0.95))
    0.850 [0.767, 0.907]
    """

    value: float
    low: float
    high: float
    confidence: float

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise InternalError("An estimate must lie within its interval.")
        if not 0 < self.confidence < 1:
            raise InternalError("A confidence must lie between 0 and 1.")

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"
