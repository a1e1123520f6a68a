"""What every method is made of. A method's file fills this in, and the registry lists it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from shoal.core import Claim, Progress, ReleaseForm, Role, Schema, Spending, silent
from shoal.table import Table


class Parameters(BaseModel):
    """Parameters of a method, as `[protect]` states them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


P = TypeVar("P", bound=Parameters)
P_co = TypeVar("P_co", bound=Parameters, covariant=True)


@dataclass(frozen=True)
class Setting(Generic[P_co]):
    """All that a method may know before the data is read: public by construction."""

    schema: Schema
    columns: tuple[str, ...]
    parameters: P_co
    release_form: ReleaseForm


@dataclass(frozen=True)
class Tools:
    """What a method is lent for a run, and may not make itself."""

    progress: Progress = silent


@dataclass(frozen=True)
class Masked:
    """Protected rows, in the order of the rows that came in, and what they cost."""

    table: Table
    spendings: tuple[Spending, ...] = field(default=())


def _quasi_identifiers(schema: Schema) -> tuple[str, ...]:
    return schema.with_role(Role.QUASI_IDENTIFIER)


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
        refuse: raises where a setting cannot work, before any data is read.
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
