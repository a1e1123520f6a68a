"""The shape of `[release]` and `[context]`: for whom a release is, and what its officer reads."""

import datetime as dt
from typing import Annotated

from pydantic import Field

from shoal.core import Audience
from shoal.policy.reading_spec import Spec
from shoal.policy.values import choice


class ReleaseSpec(Spec):
    """For whom the release is."""

    audience: Annotated[Audience, choice(Audience)] | None = Field(
        None, description="Who will get the release. Its claims must be enough for them."
    )
    accept_constant: list[str] = Field(
        default_factory=list,
        description="Columns that a method without epsilon may make constant. Otherwise nothing is "
        "written.",
    )
    accept_distinct: list[str] = Field(
        default_factory=list,
        description="Columns released as they are though few share their values: nobody is told of "
        "them again, and the confidential report lists them. If every row of another column has "
        "its own value, a method without epsilon writes nothing.",
    )


class ReviewSpec(Spec):
    """Who has read a drafted policy. Until both keys are filled in, it counts as not reviewed."""

    by: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Who has read and corrected every line of the draft. Never published."
    )
    date: dt.date | None = Field(None, description="When that was. Never published.")


class ContextSpec(Spec):
    """For the officer's report; never published with the release."""

    recipient: str | None = Field(None, description="Who will get the table.")
    environment: str | None = Field(
        None, description="Where and under which terms the recipients will use the table."
    )
    purpose: str | None = Field(None, description="What the recipients will use the table for.")
    legal_basis: str | None = Field(
        None, description="The legal ground on which the table is released."
    )
    earlier_releases: str | None = Field(
        None, description="What was published about the same people before."
    )
    approver: str | None = Field(None, description="Who decides about the release.")
