"""What every method is made of. A method's file fills this in, and the registry lists it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from shoal.core import Claim, KAnonymity, Progress, ReleaseForm, Role, Schema, Status
from shoal.policy import choice
from shoal.recode import Aggregate
from shoal.table import Table

ONE_ROW_A_PERSON = "each person has one row"
KNOWN_COLUMNS = "an attacker knows no more than the columns named here"


class Parameters(BaseModel):
    """Parameters of a method, as `[protect]` states them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Grouping(Parameters):
    """Parameters of the methods that form groups of at least k records."""

    k: Annotated[int, Field(ge=2)] = Field(description="Smallest number of records in a group.")
    aggregate: Annotated[Aggregate, choice(Aggregate)] = Field(
        Aggregate.MEAN, description="What stands for a group: mean, median, medoid or mode."
    )
    integers: bool = Field(default=False, description="Keep whole numbers whole, by rounding.")


P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True)
class Setting(Generic[P]):
    """All that a method may know before the data is read: public by construction."""

    schema: Schema
    columns: tuple[str, ...]
    parameters: P
    release_form: ReleaseForm


@dataclass(frozen=True)
class Method(Generic[P]):
    """A registered method.

    Attributes:
        name: as written in the policy.
        summary: one line for `shoal methods`.
        parameters: the model that checks them.
        forms: release forms that the method has, the default first.
        claims: the rule that says what the method promises in a setting.
        not_claimed: sentences on what readers might expect and it does not promise.
        run: from rows in canonical order to the same rows, protected.
        reference: where the method is published.
        example: parameters that work, for documentation and for the contract tests.
    """

    name: str
    summary: str
    parameters: type[P]
    forms: tuple[ReleaseForm, ...]
    claims: Callable[[Setting[P]], tuple[Claim, ...]]
    not_claimed: Callable[[Setting[P]], tuple[str, ...]]
    run: Callable[[Table, Setting[P], Progress], Table]
    reference: str
    example: Mapping[str, Any]

    def default_columns(self, schema: Schema) -> tuple[str, ...]:
        """What is protected unless the policy says: the quasi-identifiers."""
        return schema.with_role(Role.QUASI_IDENTIFIER)


def k_anonymity_claim(
    setting: Setting[Grouping], columns: Sequence[str], *, basis: str, source: str
) -> Claim:
    """Claim that the released values of some columns are shared by k records.

    Assumptions that the policy itself settles are left out: with a `unit` column, one row a
    person is checked on reading.
    """
    assumes = [KNOWN_COLUMNS]
    if setting.schema.flagged("unit") is None:
        assumes.append(ONE_ROW_A_PERSON)
    return Claim(
        guarantee=KAnonymity(setting.parameters.k, tuple(columns)),
        status=Status.PROVED,
        basis=basis,
        assumes=tuple(assumes),
        source=source,
        release_form=setting.release_form,
    )
