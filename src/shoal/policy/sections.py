"""The models of a policy's sections but `[columns]`, `[protect]` and `[require]`."""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from shoal.core import Audience, BoxKernel, Distance, Diversity, Extract
from shoal.errors import InputError
from shoal.io.dates import is_format, strptime_format
from shoal.io.sheet_rows import numbers_of
from shoal.policy.values import (
    MOST,
    Category,
    ColumnNames,
    Epsilon,
    Number,
    Share,
    Size,
    choice,
    fail,
)


class Spec(BaseModel):
    """A strict table of keys, which refuses unknown ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


_Mark = Annotated[str, Field(min_length=1, max_length=1)]
_Decimal = Annotated[str, Field(pattern=r"^[.,]$")]


def _date_format(pattern: str) -> str:
    form = strptime_format(pattern)
    if not is_format(form):
        raise PydanticCustomError(
            "date_format", "expected year, month and day, such as '%d.%m.%Y' or 'dd.mm.yyyy'."
        )
    return form


def _rows(stated: str) -> str:
    try:
        numbers_of(stated)
    except InputError as error:
        raise PydanticCustomError("rows", "{why}", {"why": str(error)}) from None
    return stated


_Rows = Annotated[
    str,
    BeforeValidator(lambda rows: str(rows) if type(rows) is int else rows),
    AfterValidator(_rows),
]


class ReadingSpec(Spec):
    """How the data file is written. An epsilon release of a text file detects nothing of it."""

    delimiter: _Mark | None = Field(
        None,
        description="The character between cells of a CSV file. Comma, semicolon, tab and bar are "
        "detected.",
    )
    encoding: str | None = Field(
        None,
        description="The encoding of a CSV file. UTF-8, UTF-16 with a byte order mark and "
        "Windows-1252 are detected. Beside an epsilon it is UTF-8, or a stated one that reads each "
        "line by itself: not UTF-16, UTF-7, HZ or ISO 2022.",
    )
    decimal: _Decimal | None = Field(
        None,
        description="The decimal mark of numbers in text. A comma is detected unless it could "
        "separate thousands. If stated, marks between thousands, currencies and percent signs are "
        "left out: $1,234.50 is 1234.5.",
    )
    date_format: Annotated[str, AfterValidator(_date_format)] | None = Field(
        None,
        description="How dates are written, unless a column says.",
    )
    sheet: str | None = Field(None, description="The sheet of an Excel workbook.")
    header_row: _Rows | None = Field(
        None,
        description="The row of an Excel sheet that names the columns, such as 3, or the rows, "
        "'3-4'. By default the first that has a cell.",
    )
    skip: _Rows | None = Field(
        None,
        description="Rows of an Excel sheet that are not records, such as 105 or '105-107'.",
    )
    rows: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="Records of an Excel sheet, empty ones too. Without it an epsilon is "
        "conditional.",
    )
    multiline: bool = Field(
        default=False,
        description="Cells of a CSV file may have several lines. An epsilon is then conditional.",
    )
    missing: list[Category] = Field(
        default_factory=list,
        description="Cells that mean missing in every column, beside its own.",
    )


class WritingSpec(Spec):
    """How a CSV release is written; what is left out is as `[reading]` states it."""

    delimiter: _Mark | None = Field(
        None,
        description="The character between two cells of a CSV release. By default that of reading.",
    )
    encoding: Literal["utf-8", "utf-8-sig"] | None = Field(
        None, description="The character encoding of a CSV release. Excel reads utf-8-sig."
    )
    decimal: _Decimal | None = Field(
        None, description="The decimal mark of a CSV release. By default that of reading."
    )


class BudgetSpec(Spec):
    """Where the budget of the population is kept; never published with the release."""

    file: str = Field(
        description="The budget file, which `shoal budget init` makes. It is looked for beside "
        "the policy."
    )
    source: str = Field(description="The population, which all its extracts and versions share.")
    extract: Annotated[str, Field(min_length=1, max_length=500)] | None = Field(
        None,
        description="The rule by which the table was cut out of its source, in words. Without it "
        "the table is the whole source, or a later version of it.",
    )
    extract_by: Annotated[Extract, choice(Extract)] | None = Field(
        None, description="What the rule of the extract reads. Needed beside extract."
    )
    max_contributions: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None,
        description="The largest number of rows that a person has in any table of the source. A "
        "fact of the "
        "source, not a cut that a release makes.",
    )

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.extract is None) is not (self.extract_by is None):
            fail(
                "expected 'extract' (the rule, in words) and 'extract_by' "
                f"({', '.join(Extract)}) together, found one."
            )
        return self


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
        description="Columns released unchanged although few share their values. If every row of "
        "another has its own value, a method without epsilon writes nothing.",
    )
    pseudonym_key: str | None = Field(
        None,
        description="The file with the secret of pseudonyms, made where it is missing.",
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
    individual_risk: Share | None = Field(
        None,
        alias="individual-risk",
        description="The largest individual risk of a row, by the sampling weights.",
    )
    household_risk: Share | None = Field(
        None,
        alias="household-risk",
        description="The largest household risk of a row.",
    )
    k_map: Size | None = Field(
        None,
        alias="k-map",
        description="The fewest people of the population who agree with a row.",
    )
    household_k: Size | None = Field(
        None,
        alias="household-k",
        description="The fewest households that share a combination.",
    )
    suda: Share | None = Field(
        None,
        description="The largest DIS-SUDA score of a row.",
    )
    population: str | None = Field(
        None,
        description="A file with the quasi-identifiers of the population, for k-map.",
    )
    differential_privacy: Epsilon | None = Field(
        None,
        alias="differential-privacy",
        description="The largest epsilon for all released columns that are not public. Neighbours "
        "are change-one.",
    )

    @model_validator(mode="after")
    def _population_for_k_map(self) -> Self:
        if self.population is not None and self.k_map is None:
            fail("expected 'population' beside 'k-map', which alone uses it.", "population")
        return self


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


class ConstraintsSpec(Spec):
    """Rules that hold for every true record, as everybody knows."""

    rules: list[str] = Field(
        default_factory=list,
        description="Relations between columns, such as tax <= income. Every released row keeps "
        "them.",
    )
    lookups: dict[str, dict[str, dict[Category, Category]]] = Field(
        default_factory=dict,
        description="The pairs of values, for a column that determines another.",
    )
    observed: bool = Field(
        default=False,
        description="The rules were copied from the data. An epsilon becomes conditional.",
    )
    repair: bool = Field(
        default=False,
        description="Repair records that break a rule. Otherwise a method without epsilon stops.",
    )


class EvaluateSpec(Spec):
    """What `shoal evaluate` computes beyond its defaults; never published with the release."""

    rules: list[str] = Field(
        default_factory=list,
        description="Relations that every true record satisfies, such as tax <= income. "
        "Violations are counted before and after.",
    )
    groups: str | None = Field(
        None,
        description="The column by whose values losses are reported, the group that lost most "
        "first.",
    )
    learn: str | None = Field(
        None,
        description="The column that a model learns to predict. By default the first confidential "
        "one.",
    )
    secret: str | None = Field(
        None,
        description="The confidential column that attacks try to guess. By default the first one "
        "with categories.",
    )
    regression: str | None = Field(
        None,
        description="A linear model of your own, whose coefficients are compared, such as income "
        "~ age + hours.",
    )
    queries: str | None = Field(
        None,
        description="A TOML file with COUNT queries of your own. It is looked for beside the "
        "policy.",
    )
    query_columns: list[str] = Field(
        default_factory=list,
        description="The columns that COUNT queries restrict, each to half of its range. By "
        "default all, and three at random.",
    )
    round_down: bool = Field(
        default=False,
        description="Queries take half of an odd number of categories rounded down, not up.",
    )
    smoothing: Annotated[Number, Field(ge=0, le=1000)] = Field(
        Decimal(1),
        description="The number of pseudo-records that the naive Bayes attack adds to each "
        "value. 0 is the paper's attacker.",
    )
    kernel: Annotated[BoxKernel, choice(BoxKernel)] = Field(
        BoxKernel.EVEN,
        description="How the naive Bayes attack spreads the count of a box: over the box (even), "
        "in its middle (middle), or over twice its width (wide).",
    )
    surest: Annotated[int, Field(ge=1, le=MOST)] | None = Field(
        None,
        description="The number of people for the attack's surest guesses. By default a hundredth.",
    )
