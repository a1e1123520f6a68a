"""What a run starts from and what it ends with: policy, groups, leaves, release."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core.columns import Schema
from shoal.core.guarantees import ONE_ROW, Audience, Check, Claim, ReleaseForm, figure
from shoal.core.privacy_loss import PrivacyLoss
from shoal.errors import InputError


@dataclass(frozen=True)
class Policy:
    """What a steward decided: the columns, the method, and the promises required.

    Attributes:
        required: guarantees by name with their parameter, as written in `[require]`.
        audience: who will get the release, if stated; then its claims must do for them.
        budget: budget file, source, and what is declared of the table as a part of its source.
        evaluate: what `shoal evaluate` looks at beside its own choice.
        document: the policy as plain JSON values, without `[context]`, `[budget]` and
            `[evaluate]`; it is published.
        digest: SHA-256 of the document and of the files that it names.
    """

    schema: Schema
    method: str
    parameters: Mapping[str, Any]
    columns: tuple[str, ...] | None
    release_form: ReleaseForm | None
    required: Mapping[str, Any]
    reading: Mapping[str, str]
    budget: Mapping[str, Any]
    context: Mapping[str, str]
    evaluate: Mapping[str, Any]
    document: Mapping[str, Any]
    digest: str
    audience: Audience | None = None


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
        labels = whole_numbers(np.array(self.labels), "labels")
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


def whole_numbers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return an array of whole numbers from 0, or say what is wrong with it."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a one-dimensional array of whole numbers.")
    if array.size and array.min() < 0:
        raise InputError(f"{name} must not be negative.")
    return array.astype(np.int64, copy=False)


HOW_TO_STATE_IT = "state one_row_per_person = true, or mark who is who with privacy_unit = true"
"""How a policy answers what a promise about persons assumes of rows."""


@dataclass(frozen=True, eq=False)
class SpatialDecomposition:
    """Boxes that cover a public space, each point once, with counts by confidential value.

    Places are numbers. A number or a day is its own place; category c of a declared order holds
    the places from c to c + 1. A box holds the places lower <= x < upper.

    Attributes:
        columns: the quasi-identifiers, one axis each.
        lower: one row a box, one column an axis.
        upper: the other end.
        counts: one row a box, one column a confidential value; noisy ones may be fractions.
        values: the confidential values, as texts; one empty text where none is counted.
        column: the confidential column, or none.
        discrete: which axes are categories.

    >>> counts = [[3, 1], [0, 2]]
    >>> halves = SpatialDecomposition(("age",), [[0], [50]], [[50], [100]], counts, ("a", "b"))
    >>> halves.counts.sum(axis=1)
    array([4., 2.])
    """

    columns: tuple[str, ...]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    counts: NDArray[np.float64]
    values: tuple[str, ...]
    column: str | None = None
    discrete: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "counts"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.discrete is None:
            object.__setattr__(self, "discrete", (False,) * len(self.columns))
        boxes = len(self.lower)
        shape = (boxes, len(self.columns))
        if self.lower.shape != shape or self.upper.shape != shape or not boxes:
            raise InputError(
                "A decomposition needs a lower and an upper end for each box and axis."
            )
        if self.counts.shape != (boxes, len(self.values)):
            raise InputError("A decomposition needs one count for each box and value.")
        if not (self.lower < self.upper).all() or np.isnan(self.counts).any():
            raise InputError("A decomposition needs boxes with lower < upper, and counts.")

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def extent(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and the greatest place of each axis."""
        return self.lower.min(axis=0), self.upper.max(axis=0)


@dataclass(frozen=True)
class Release:
    """A protected table and all that may be said about it. It never holds the original.

    Attributes:
        data: the table, of the type that was handed in.
        privacy_losses: the accounting entries of a release that spends epsilon.
        manifest: the same facts as plain JSON values, as published in `manifest.json`.
        labels: variable and value labels that came with the file, for the released columns.
        extras: further tables that may be published, by name, of the same type as the data.
    """

    data: Any
    claims: tuple[Claim, ...]
    checks: tuple[Check, ...]
    privacy_losses: tuple[PrivacyLoss, ...]
    manifest: Mapping[str, Any]
    labels: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extras: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        rows, columns = self.manifest["rows"], len(self.manifest["columns"])
        lines = [f"Release of {rows:,} rows x {columns} columns by {self.manifest['method']}"]
        lines += [f"  claim  {claim.status.value:<11} {claim.guarantee}" for claim in self.claims]
        if any(ONE_ROW in claim.assumes for claim in self.claims):
            lines.append(f"  assumes  {ONE_ROW} ({HOW_TO_STATE_IT})")
        lines += [f"  not claimed  {text}" for text in self.manifest["not_claimed"]]
        lines += [
            f"  check  {'holds' if check.holds else 'FAILS':<11} {check.guarantee}"
            f" (achieved {figure(check.achieved)})"
            for check in self.checks
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
