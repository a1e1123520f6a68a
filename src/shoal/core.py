"""The nouns of Shoal: frozen values that are valid because they exist.

Three kinds of truth have three types. A `Claim` is promised by a method, a `Check` was
computed on the released table, an `Estimate` was measured and has an interval. Only
`shoal.release` attaches claims to a release.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from html import escape
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, InternalError

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, how much of it is done, and how much there is."""


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody: the default of every long computation."""


class Role(StrEnum):
    """What an attacker may do with a column."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    CONFIDENTIAL = "confidential"
    OTHER = "other"


class Kind(StrEnum):
    """Which arithmetic a column allows."""

    NUMERIC = "numeric"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"


class ReleaseForm(StrEnum):
    """How the rows of a release relate to the rows of the original."""

    ROW_ALIGNED = "row-aligned"
    LINKED_SHUFFLED = "linked-shuffled"
    CANONICAL = "canonical"
    MARGINALS = "marginals"
    SYNTHETIC = "synthetic"


class Status(StrEnum):
    """How far a claim is known to be true."""

    PROVED = "proved"
    CONDITIONAL = "conditional"
    UNPROVEN = "unproven"
    REFUTED = "refuted"


class Neighbours(StrEnum):
    """Which tables must be hard to tell apart.

    `change-one`: one record has other values, and the number of records is public.
    `add-remove`: one record is there or not.
    """

    CHANGE_ONE = "change-one"
    ADD_REMOVE = "add-remove"


class Transform(StrEnum):
    """A public scale on which distances between numbers are taken."""

    LOG = "log"
    SQRT = "sqrt"


@dataclass(frozen=True)
class Taxonomy:
    """A tree of categories: one path a leaf, leaf first, root last.

    >>> tree = Taxonomy((("Lyon", "South", "all"), ("Lille", "North", "all")))
    >>> tree.leaves
    ('Lyon', 'Lille')
    """

    paths: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if not self.paths or any(len(path) < 2 for path in self.paths):
            raise InputError("A taxonomy needs rows of at least two cells: a leaf and the root.")
        if len({path[-1] for path in self.paths}) > 1:
            raise InputError("A taxonomy must end every row in the same root; it has several.")
        if len(set(self.leaves)) < len(self.leaves):
            raise InputError("A taxonomy must list each leaf once; a leaf is there twice.")
        parents: dict[str, str] = {}
        for path in self.paths:
            # A node may be written twice in a row: ARX pads short branches so.
            for child, parent in pairwise(path):
                if child != parent and parents.setdefault(child, parent) != parent:
                    raise InputError(f"A taxonomy must be a tree; '{child}' has two parents.")
        if self.root in parents:
            raise InputError(f"A taxonomy must be a tree; its root '{self.root}' has a parent.")
        inner = {node for path in self.paths for node in path[1:] if node != path[0]}
        if inner.intersection(self.leaves):
            raise InputError("A taxonomy must be a tree; a leaf is also an inner node.")

    @property
    def leaves(self) -> tuple[str, ...]:
        """The categories that records hold, in the order of the file."""
        return tuple(path[0] for path in self.paths)

    @property
    def root(self) -> str:
        """The category that covers all."""
        return self.paths[0][-1]

    def edges(self) -> NDArray[np.int64]:
        """Which edges lie between each leaf and the root.

        Returns:
            One row a leaf with the numbers of its edges, 0..e-1, padded with -1. The path
            between two leaves runs over the edges that exactly one of them has.
        """
        numbers: dict[str, int] = {}
        rows = [
            [
                numbers.setdefault(child, len(numbers))
                for child, parent in pairwise(path)
                if child != parent
            ]
            for path in self.paths
        ]
        edges = np.full((len(rows), max(map(len, rows))), -1, dtype=np.int64)
        for row, numbered in enumerate(rows):
            edges[row, : len(numbered)] = numbered
        return edges


@dataclass(frozen=True)
class Column:
    """What the policy says about one column of the table."""

    name: str
    role: Role
    kind: Kind | None = None
    bounds: tuple[Decimal | date, Decimal | date] | None = None
    categories: tuple[str, ...] | None = None
    observed: bool = False
    taxonomy: Taxonomy | None = None
    transform: Transform | None = None
    public: bool = False
    unit: bool = False
    household: bool = False
    weight: bool = False
    stratum: bool = False
    step: Decimal | None = None
    top: Decimal | date | str | None = None
    bottom: Decimal | date | str | None = None
    missing: tuple[str, ...] = ()
    recode: Mapping[str, str] | None = None
    date_format: str | None = None
    other: str | None = None
    missing_as: Decimal | date | str | None = None

    @property
    def levels(self) -> tuple[str, ...] | None:
        """The categories that the policy declares, in their order, if it does."""
        return self.taxonomy.leaves if self.taxonomy else self.categories


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in the order of the policy."""

    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        """All column names."""
        return tuple(column.name for column in self.columns)

    @property
    def released(self) -> tuple[str, ...]:
        """The columns that a release may hold: all but the identifiers."""
        return tuple(c.name for c in self.columns if c.role is not Role.IDENTIFIER)

    def with_role(self, role: Role) -> tuple[str, ...]:
        """Names of the columns with a role."""
        return tuple(column.name for column in self.columns if column.role is role)

    def flagged(self, flag: str) -> str | None:
        """Name of the column that carries a flag such as `unit` or `weight`, if one does."""
        return next((column.name for column in self.columns if getattr(column, flag)), None)


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
        what = " + ".join(self.columns)
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
        what = " + ".join(self.columns)
        return (
            f"{shown(self.t)}-closeness ({self.distance}) of {what} given {' + '.join(self.keys)}"
        )


@dataclass(frozen=True)
class DifferentialPrivacy:
    """One record changes the probability of any output by a factor of at most exp(epsilon).

    Attributes:
        protects: the columns whose values may change.
        invariants: what is published exactly, and so is the same in both tables.
        unit: whose record may change: a row, unless a person may have several.
    """

    name: ClassVar[str] = "differential-privacy"
    epsilon: Fraction
    neighbours: Neighbours
    protects: tuple[str, ...]
    invariants: tuple[str, ...] = ("the number of rows",)
    unit: str = "row"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the guarantee is about."""
        return self.protects

    def __str__(self) -> str:
        return f"{shown(self.epsilon)}-differential privacy of {' + '.join(self.protects)}"


Guarantee = KAnonymity | LDiversity | TCloseness | DifferentialPrivacy
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


LAPLACE = "discrete-laplace"
SELECTION = "permute-and-flip"
"""Names of the mechanisms that the ledger has a proof for."""


@dataclass(frozen=True)
class Spending:
    """One entry of the ledger: what a mechanism was allowed to learn, and at what price.

    Attributes:
        mechanism: by its name in `shoal.hazmat.noise`.
        target: what it was spent on, in public words such as a column's name.
        sensitivity: largest L1 change of the exact answer between neighbours.
        scale: of the noise, in the units of the sensitivity.
        epsilon: the price; at least sensitivity / scale.
        neighbours: for which the sensitivity was computed.
        draws: how many random values were drawn.
        parallel: name of a division of the records into disjoint parts, if this entry looks at
            one part alone.
        part: which part; entries on one part add up, parts share a price (`hazmat.ledger`).
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
            raise InternalError("A spending names a division and its part, or neither.")
        if min(self.sensitivity, self.scale, self.epsilon) < 0 or self.scale == 0:
            raise InputError("A spending needs sensitivity and epsilon >= 0 and a scale > 0.")
        if self.epsilon * self.scale < self.sensitivity:
            raise InternalError("A spending states less epsilon than its noise costs.")


class Noise(Protocol):
    """The randomness that carries privacy, as algorithms see it.

    Values are whole numbers: a mechanism first puts its answers on a public grid. Only a
    source with `secure = True` supports a claim of differential privacy.
    """

    @property
    def secure(self) -> bool:
        """Whether the draws come from a source that no seed can repeat."""
        ...

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


@dataclass(frozen=True)
class Policy:
    """What a steward decided: the columns, the method, and the promises required.

    Attributes:
        required: guarantees by name with their parameter, as written in `[require]`.
        document: the policy as plain JSON values, `[context]` aside; it is published.
        digest: SHA-256 of the document and of the files that it names.
    """

    schema: Schema
    method: str
    parameters: Mapping[str, Any]
    columns: tuple[str, ...] | None
    release_form: ReleaseForm | None
    required: Mapping[str, Any]
    reading: Mapping[str, str]
    ledger: Mapping[str, str]
    context: Mapping[str, str]
    document: Mapping[str, Any]
    digest: str


@dataclass(frozen=True, eq=False)
class Partition:
    """Every record in exactly one group.

    Attributes:
        labels: group of each record, 0..g-1 without gaps; read-only.

    >>> Partition([0, 1, 0, 1]).sizes
    array([2, 2])
    """

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        labels = np.array(self.labels)
        if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
            raise InputError("labels must be a one-dimensional array of whole numbers.")
        labels = labels.astype(np.int64, copy=False)
        if labels.size and labels.min() < 0:
            raise InputError("labels must not be negative.")
        sizes = np.bincount(labels)
        if not sizes.all():
            raise InputError("labels must run from 0 to g - 1 without gaps.")
        labels.flags.writeable = sizes.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "sizes", sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and np.array_equal(self.labels, other.labels)

    def __hash__(self) -> int:
        return hash(self.labels.tobytes())


@dataclass(frozen=True)
class Release:
    """A protected table and all that may be said about it. It never holds the original.

    Attributes:
        data: the table, of the type that was handed in.
        spendings: the ledger entries of a release that spends epsilon.
        manifest: the same facts as plain JSON values, as published in `manifest.json`.
        labels: variable and value labels that came with the file, for the released columns.
    """

    data: Any
    claims: tuple[Claim, ...]
    checks: tuple[Check, ...]
    spendings: tuple[Spending, ...]
    manifest: Mapping[str, Any]
    labels: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        rows, columns = self.data.shape
        lines = [f"Release of {rows:,} rows x {columns} columns by {self.manifest['method']}"]
        lines += [f"  claim  {claim.status.value:<11} {claim.guarantee}" for claim in self.claims]
        lines += [f"  not claimed  {text}" for text in self.manifest["not_claimed"]]
        lines += [
            f"  check  {'holds' if check.holds else 'FAILS':<11} {check.guarantee}"
            f" (achieved {figure(check.achieved)})"
            for check in self.checks
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
