"""The shape of `[release]`, `[require]`, `[review]` and `[context]`: for whom, on which terms."""

import datetime as dt
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from shoal.core import Audience, Distance, Diversity
from shoal.policy.reading_spec import Spec
from shoal.policy.values import MOST, ColumnNames, Epsilon, Number, Size, choice, fail


class ReleaseSpec(Spec):
    """The audience of the release."""

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


def _to_list(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class DiversitySpec(Spec):
    """The confidential values of every class are diverse."""

    l: Annotated[Number, Field(ge=1, le=MOST)] = Field(  # noqa: E741 (as in the literature)
        description="How diverse the values of every equivalence class must be."
    )
    column: ColumnNames = Field(description="The confidential column, or several taken jointly.")
    kind: Annotated[Diversity, choice(Diversity)] = Field(
        Diversity.DISTINCT, description="How the diversity of the values is counted."
    )
    c: Annotated[Number, Field(gt=0, le=MOST)] | None = Field(
        None, description="The factor c of recursive l-diversity. With that kind only."
    )

    @model_validator(mode="after")
    def _c_where_needed(self) -> Self:
        if (self.kind is Diversity.RECURSIVE) is (self.c is None):
            fail(
                "expected the factor 'c' with the recursive kind of l-diversity, and with no "
                "other kind.",
                "c",
            )
        return self


class ClosenessSpec(Spec):
    """The confidential values of every class are distributed nearly as in the whole table."""

    t: Annotated[Number, Field(ge=0, le=MOST)] = Field(
        description="The largest distance allowed from an equivalence class to the whole table. "
        "For the ratio distance at least 1."
    )
    column: ColumnNames = Field(description="The confidential column, or several taken jointly.")
    distance: Annotated[Distance, choice(Distance)] = Field(
        Distance.EQUAL, description="By which distance the distributions are compared."
    )

    @model_validator(mode="after")
    def _ratios_from_one(self) -> Self:
        if self.distance is Distance.RATIO and self.t < 1:
            fail(f"expected t of at least 1 for the ratio distance, found '{self.t}'.", "t")
        return self


class StochasticSpec(Spec):
    """What is drawn for the confidential values of a class is distributed nearly as for all."""

    t: Annotated[Number, Field(ge=1, le=MOST)] = Field(
        description="The largest ratio of the probabilities of a drawn value, either way."
    )
    column: ColumnNames = Field(description="The confidential column, or several taken jointly.")


class RequireSpec(Spec):
    """Promises that the release must keep, or nothing is written."""

    k_anonymity: Size | None = Field(
        None,
        alias="k-anonymity",
        description="Every combination of the quasi-identifiers is shared by at least so many "
        "records.",
    )
    l_diversity: (
        Annotated[
            list[DiversitySpec],
            BeforeValidator(_to_list, json_schema_input_type=DiversitySpec | list[DiversitySpec]),
        ]
        | None
    ) = Field(
        None,
        alias="l-diversity",
        description="The confidential values of every equivalence class are diverse.",
    )
    t_closeness: (
        Annotated[
            list[ClosenessSpec],
            BeforeValidator(_to_list, json_schema_input_type=ClosenessSpec | list[ClosenessSpec]),
        ]
        | None
    ) = Field(
        None,
        alias="t-closeness",
        description="The confidential values of every equivalence class are distributed nearly as "
        "in the whole table.",
    )
    stochastic_t_closeness: (
        Annotated[
            list[StochasticSpec],
            BeforeValidator(_to_list, json_schema_input_type=StochasticSpec | list[StochasticSpec]),
        ]
        | None
    ) = Field(
        None,
        alias="stochastic-t-closeness",
        description="The distributions that confidential values are drawn from are nearly alike "
        "in every equivalence class.",
    )
    differential_privacy: Epsilon | None = Field(
        None,
        alias="differential-privacy",
        description="The largest epsilon for all released columns that are not public. Neighbours "
        "are change-one.",
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
