"""What every method is made of. A method's file fills this in, and the registry lists it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from shoal.core import (
    Claim,
    Column,
    Guarantee,
    Kind,
    Noise,
    PrivacyLoss,
    Progress,
    ReleaseForm,
    Role,
    Schema,
    SpatialDecomposition,
    silent,
)
from shoal.io.table import Table
from shoal.methods._distributed.rows import Distributed, DistributedRows


class Parameters(BaseModel):
    """Parameters of a method, as `[protect]` states them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


P = TypeVar("P", bound=Parameters)
P_co = TypeVar("P_co", bound=Parameters, covariant=True)


class ContributionProof(StrEnum):
    """For which tables a method has a proof, if a person may have several rows.

    `none`: for none. `exact`: if every person has the same number. `any`: if a person's rows
    beyond a public number are left out.
    """

    NONE = "none"
    EXACT = "exact"
    ANY = "any"


@dataclass(frozen=True)
class Setting(Generic[P_co]):
    """All that a method may know beside the data: public by construction.

    Attributes:
        rows: the number of rows, which is public; not known at planning.
        required: what the policy requires, for methods that can steer towards it.
    """

    schema: Schema
    columns: tuple[str, ...]
    parameters: P_co
    release_form: ReleaseForm
    rows: int | None = None
    required: tuple[Guarantee, ...] = ()


@dataclass(frozen=True)
class Tools:
    """What a method is lent for a run, and may not make itself.

    Attributes:
        noise: the randomness that carries privacy.
        rng: for post-processing alone, such as drawing rows from a noisy model. What a proof
            needs to stay unknown comes from the noise.
    """

    noise: Noise
    progress: Progress = silent
    rng: np.random.Generator = field(default_factory=np.random.default_rng)


@dataclass(frozen=True)
class Masked:
    """What a run gives, and what it costs.

    Attributes:
        data: protected rows, in the order of the rows that came in; drawn rows that stand for
            nobody, if the release form is synthetic; or boxes with counts.
        canonical: an order of the rows by public index, where the method has one.
        kept: which of the rows that came in these are, where some were suppressed.
        notes: sentences for the manifest about how the run ended; only what the released table
            shows anyway.
        extras: tables that may be published beside the rows, by name: columns of equal length.
    """

    data: Table | SpatialDecomposition
    privacy_losses: tuple[PrivacyLoss, ...] = ()
    canonical: NDArray[np.int64] | None = None
    kept: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()
    extras: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """Two tables in the unit box that differ in one record, and what tells them apart."""

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    event: str


def _quasi_identifiers(schema: Schema) -> tuple[str, ...]:
    return schema.with_role(Role.QUASI_IDENTIFIER)


UNIT = (Decimal(0), Decimal(1))
TWO_NUMBERS = (
    Column("a", Role.QUASI_IDENTIFIER, Kind.NUMERIC, UNIT),
    Column("b", Role.QUASI_IDENTIFIER, Kind.NUMERIC, UNIT),
)
"""What methods are shown on in documents: two quasi-identifiers."""


def _nothing(_setting: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Method(Generic[P]):
    """A registered method.

    Attributes:
        name: as written in the policy.
        summary: one line for `shoal methods`.
        parameters: the model that checks them.
        forms: release forms that the method has, the default first.
        claims: the rule that says what the method promises in a setting.
        run: from rows in canonical order to the same rows, protected.
        reference: where the method is published.
        example: parameters that work, for documentation and for the contract tests.
        not_claimed: sentences on what readers might expect and it does not promise.
        default_columns: what is protected unless the policy says: the quasi-identifiers.
        refuse: raises where a setting cannot work, before any data is read; once more with the
            number of rows, where that is public.
        must_choose_form: there is no default form, because no form but one is proved.
        form_of: the release form that the parameters imply, if they do.
        noisy: protected cells are clamped to public domains before the method sees them.
        clamped: which of the protected columns are, if not all of them.
        scaled: whether a numeric column's public transform is used.
        several: which tables with several rows a person it is proved for.
        gaps: missing cells reach it where the policy says that they are values of their own.
        example_columns: two protected columns that it works on, for documentation.
        sort_by: columns by which rows are put in canonical order; by default all.
        counterexample: two neighbouring tables that refute a claim, for given k.
        spread: how it runs on blocks of records, on many machines; none: it does not.
        refuse_spread: raises where a setting runs on one machine only.
        approximate: on blocks the result is another one than on one machine: the sentence that
            says how, for the manifest.
    """

    name: str
    summary: str
    parameters: type[P]
    forms: tuple[ReleaseForm, ...]
    claims: Callable[[Setting[P]], tuple[Claim, ...]]
    run: Callable[[Table, Setting[P], Tools], Masked]
    reference: str
    example: Mapping[str, Any]
    not_claimed: Callable[[Setting[P]], tuple[str, ...]] = _nothing
    default_columns: Callable[[Schema], tuple[str, ...]] = _quasi_identifiers
    refuse: Callable[[Setting[P]], None] = lambda _setting: None
    must_choose_form: bool = False
    form_of: Callable[[P], ReleaseForm | None] = lambda _parameters: None
    noisy: bool = False
    clamped: Callable[[Setting[P]], tuple[str, ...]] | None = None
    scaled: bool = False
    several: ContributionProof = ContributionProof.NONE
    gaps: bool = False
    example_columns: tuple[Column, Column] = TWO_NUMBERS
    sort_by: Callable[[Setting[P]], tuple[str, ...]] | None = None
    counterexample: Callable[[int], Pair] | None = None
    spread: Callable[[DistributedRows, Setting[P], Tools], Distributed] | None = None
    refuse_spread: Callable[[Setting[P]], None] = lambda _setting: None
    approximate: str = ""

    def clamps(self, setting: Setting[P]) -> tuple[str, ...]:
        """The columns whose cells become values of their public domains, whatever they were."""
        if not self.noisy:
            return ()
        return setting.columns if self.clamped is None else self.clamped(setting)
