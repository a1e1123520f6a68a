"""The guarantees that a release can have: k, l, t, and differential privacy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar

from shoal.errors import InputError, visible

OMITTED: Mapping[str, bool] = {"omitted": True}
"""Marks a field that is written only if it differs from its default."""


class Neighbours(StrEnum):
    """Which tables must be hard to distinguish.

    `change-one`: One record has other values, and the number of rows is public.
    `add-remove`: One record is there or is not.
    """

    CHANGE_ONE = "change-one"
    ADD_REMOVE = "add-remove"


class MissingMeaning(StrEnum):
    """How a missing cell is treated when records are counted.

    `own-value`: Missing is a value like any other.
    `matches-anything`: A missing cell agrees with every value, as in sdcMicro.
    """

    OWN_VALUE = "own-value"
    MATCHES = "matches-anything"


@dataclass(frozen=True)
class KAnonymity:
    """Every combination of released values in `columns` is shared by at least k records.

    Attributes:
        missing: whether a missing cell is a value of its own, or agrees with every value.
    """

    name: ClassVar[str] = "k-anonymity"
    k: int
    columns: tuple[str, ...]
    missing: MissingMeaning = field(default=MissingMeaning.OWN_VALUE, metadata=OMITTED)

    def __str__(self) -> str:
        loose = self.missing is MissingMeaning.MATCHES
        more = " if a missing cell matches anything" if loose else ""
        return f"{self.k}-anonymity of {' + '.join(self.columns)}{more}"


class Diversity(StrEnum):
    """How l-diversity counts the confidential values of a class.

    `distinct`: A class has at least l different values.
    `entropy`: The values of a class have an entropy of at least log l.
    `recursive`: The most frequent value is rarer than c times all from the l-th on.
    `frequency`: No value has a share above 1/l of its class.
    """

    DISTINCT = "distinct"
    ENTROPY = "entropy"
    RECURSIVE = "recursive"
    FREQUENCY = "frequency"


class Distance(StrEnum):
    """How t-closeness compares the distribution of a class with that of the whole table.

    `equal`: Earth mover's distance where all categories are equally far apart.
    `ordered`: Earth mover's distance along the order of the values.
    `hierarchical`: Earth mover's distance over the hierarchy of the column.
    `variation`: Half of the summed differences of shares.
    `ratio`: The largest ratio of shares, either way.
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
            raise InputError(f"l-diversity needs l of at least 1; found {write_fraction(self.l)}.")
        if (self.kind is Diversity.RECURSIVE) is not (self.c is not None):
            raise InputError("Recursive l-diversity, and no other kind, needs a c.")

    def __str__(self) -> str:
        more = f" with c = {write_fraction(self.c)}" if self.c is not None else ""
        what = visible(" + ".join(self.columns))
        given = " + ".join(self.keys)
        return f"{self.kind} {write_fraction(self.l)}-diversity{more} of {what} given {given}"


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
            raise InputError(
                f"t-closeness needs t of at least {least}; found {write_fraction(self.t)}."
            )

    def __str__(self) -> str:
        what = visible(" + ".join(self.columns))
        given = " + ".join(self.keys)
        return f"{write_fraction(self.t)}-closeness ({self.distance}) of {what} given {given}"


@dataclass(frozen=True)
class DifferentialPrivacy:
    """One record changes the probability of any output by a factor of at most exp(epsilon).

    With a delta, it holds except for outcomes of total probability delta. A rho by itself is
    zero-concentrated differential privacy, which has an epsilon for every delta.

    Attributes:
        protects: the columns whose values may change.
        invariants: what is published exactly, and is therefore the same in both tables.
        privacy_unit: whose record may change: a row's, or a person's if a column numbers them.
        rows: how many rows a person may have.
        epsilon: none where the guarantee is a rho by itself.
        delta: probability with which the factor may be exceeded; 0 by default, which is pure.
        rho: the zero-concentrated differential privacy that epsilon and delta follow from, or that
            is the guarantee by itself; none of a pure one.
        about: the tables that must look alike, in words, where two readings are claimed.
    """

    name: ClassVar[str] = "differential-privacy"
    epsilon: Fraction | None
    neighbours: Neighbours
    protects: tuple[str, ...]
    invariants: tuple[str, ...] = ("the number of rows",)
    privacy_unit: str = "row"
    rows: int = 1
    delta: Fraction = field(default=Fraction(0), metadata=OMITTED)
    rho: Fraction | None = field(default=None, metadata=OMITTED)
    about: str = field(default="", metadata=OMITTED)

    def __post_init__(self) -> None:
        concentrated = self.delta > 0 or self.epsilon is None
        if not 0 <= self.delta < 1 or concentrated is not (self.rho is not None):
            raise InputError("A delta lies between 0 and 1, and comes with the rho that it is of.")
        if self.epsilon is None and self.delta:
            raise InputError("A delta comes with the epsilon that it is of.")

    @property
    def pure(self) -> Fraction | None:
        """The epsilon, if there is no delta."""
        return None if self.delta else self.epsilon

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the guarantee is about."""
        return self.protects

    def __str__(self) -> str:
        whom = " (add-remove)" if self.neighbours is Neighbours.ADD_REMOVE else ""
        what = visible(" + ".join(self.protects))
        each = f", for persons of up to {self.rows:,} rows" if self.rows > 1 else ""
        if self.epsilon is None:
            name = (
                f"{write_fraction(self.rho or Fraction(0))}-zero-concentrated differential privacy"
            )
        elif self.delta:
            both = f"({write_fraction(self.epsilon)}, {write_fraction(self.delta)})"
            name = f"{both}-differential privacy"
        else:
            name = f"{write_fraction(self.epsilon)}-differential privacy"
        about = f", for {self.about}" if self.about else ""
        return f"{name}{whom} of {what}{each}{about}"


@dataclass(frozen=True)
class StochasticTCloseness:
    """The released draw of a class's confidential values is distributed nearly as for all records.

    It is derived from class sizes and each record's epsilon, and never tested on a table: one draw
    does not show a distribution (domingoferrer2015, Definition 3).

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


class RiskMeasure(StrEnum):
    """Which disclosure risk of a row is limited.

    `individual-risk`: The estimated probability that a match on the quasi-identifiers is right.
    `household-risk`: The same for at least one member of the row's household.
    `k-map`: People of the population who agree with the row.
    `household-k`: Households that share the row's combination.
    `suda`: The DIS-SUDA score of the row.
    """

    INDIVIDUAL = "individual-risk"
    HOUSEHOLD = "household-risk"
    K_MAP = "k-map"
    HOUSEHOLD_K = "household-k"
    SUDA = "suda"

    @property
    def counts(self) -> bool:
        """Whether it counts who shares a combination: the fewer, the higher the risk."""
        return self in {RiskMeasure.K_MAP, RiskMeasure.HOUSEHOLD_K}

    @property
    def of_households(self) -> bool:
        """Whether it uses the household of each row."""
        return self in {RiskMeasure.HOUSEHOLD, RiskMeasure.HOUSEHOLD_K}

    @property
    def of_weights(self) -> bool:
        """Whether it uses sampling weights, if there are some."""
        return self is not RiskMeasure.HOUSEHOLD_K

    @property
    def of_population(self) -> bool:
        """Whether it uses a table of the population; without one, the weights."""
        return self is RiskMeasure.K_MAP


@dataclass(frozen=True)
class RiskLimit:
    """No row of the table has a disclosure risk beyond a limit.

    It is checked on the finished table. What is estimated about a population is as good as the
    model that the estimate is from, and is never proved.

    Attributes:
        columns: the quasi-identifiers, which an attacker is assumed to know.
        household: the column that numbers households, if the measure uses one.
        weight: the column of sampling weights, if the measure uses them.
        population: the file with the population, as the policy names it, if the measure uses one.
    """

    measure: RiskMeasure
    limit: Fraction
    columns: tuple[str, ...]
    household: str = field(default="", metadata=OMITTED)
    weight: str = field(default="", metadata=OMITTED)
    population: str = field(default="", metadata=OMITTED)

    @property
    def name(self) -> str:
        """The key under which a policy requires it."""
        return self.measure.value

    @property
    def keys(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return self.columns

    def holds(self, worst: float) -> bool:
        """Whether a row's risk is within the limit."""
        exact = Fraction(worst)
        return exact >= self.limit if self.measure.counts else exact <= self.limit

    def __str__(self) -> str:
        bound = "at least" if self.measure.counts else "at most"
        return f"{self.measure} of {bound} {write_fraction(self.limit)} of {' + '.join(self.keys)}"


@dataclass(frozen=True)
class KeptRule:
    """No row of the table breaks a rule that the policy states."""

    name: ClassVar[str] = "constraint"
    rule: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"every row keeps {visible(self.rule)}"


Guarantee = (
    KAnonymity | LDiversity | TCloseness | StochasticTCloseness | DifferentialPrivacy | RiskLimit
)
Testable = KAnonymity | LDiversity | TCloseness
"""Guarantees that the counts of a finished table's classes decide."""
Checkable = Testable | RiskLimit
"""Guarantees that a finished table can be checked for."""


def figure(number: float | Fraction) -> str:
    """Write an achieved parameter for people: whole, exact if short, else with three digits.

    >>> figure(5), figure(Fraction(1, 4)), figure(Fraction(1, 3))
    ('5', '0.25', '0.333')
    """
    if isinstance(number, int):
        return f"{number:,}"
    text = write_fraction(Fraction(number)) if isinstance(number, Fraction) else f"{number:.3g}"
    return text if "/" not in text else f"{float(number):.3g}"


def write_fraction(number: Fraction) -> str:
    """Write a number for people: as a decimal where that is exact, as a fraction otherwise.

    >>> write_fraction(Fraction(1, 10)), write_fraction(Fraction(2)), write_fraction(Fraction(1, 3))
    ('0.1', '2', '1/3')
    """
    try:
        text = f"{float(number):g}"
    except OverflowError:
        return str(number)
    return text if Fraction(text) == number else str(number)
