"""The shape of the policy file, as pydantic models, and the sentences for what does not fit it.

`shoal.policy.load` reads a file into these and builds a `Policy` of them; methods state their
parameters with the same types. Categories are held in their composed normal form (NFC), in which
`shoal.io.validate` reads cells: two that look the same are one.
"""

import re
import unicodedata
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from shoal.core import (
    Audience,
    Distance,
    Diversity,
    Extract,
    Kind,
    ReleaseForm,
    Role,
    Transform,
)
from shoal.errors import counted, did_you_mean
from shoal.io.text_files import brief
from shoal.policy.reading_spec import ReadingSpec, WritingSpec
from shoal.policy.reading_spec import Spec as _Spec

EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table of keys",
    "int_type": "a whole number",
    "is_instance_of": "a number",
    "list_type": "a list",
    "model_type": "a table of keys",
    "string_type": "text",
    "too_short": "at least one entry",
    "tuple_type": "a list of two values",
}
"""How pydantic's errors read in our sentences, where its own words are Python's."""
FLAGS = ("privacy_unit", "household", "sampling_weight", "stratum")
"""Column keys that at most one column may carry."""


def sentence(error: ValidationError, where: str) -> str:
    """Turn pydantic's account of a wrong value into one sentence: expected, found, where."""
    # A misspelt key explains the one that is missing, and comes first.
    errors = error.errors(include_url=False)
    first, *others = sorted(errors, key=lambda one: one["type"] != "extra_forbidden")
    # pydantic lists every type that a place might have had; a place counts once.
    places = {_place(other) for other in others} - {_place(first)}
    more = f" ({counted(len(places), 'more error')}.)" if places else ""
    return f"{where}, {_place(first)}: {_expected(first)}{more}"


def _text(value: object) -> object:
    """Write a category as text, the way a CSV file would hold it; accents composed (NFC)."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value) if isinstance(value, int | Decimal | date) else value
    return unicodedata.normalize("NFC", text) if isinstance(text, str) else text


def _number(value: object) -> object:
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _pair(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _from_role(value: object) -> object:
    return {"role": value} if isinstance(value, str) else value


def choice(kind: type[StrEnum]) -> BeforeValidator:
    """Let a strict model take an enumeration as text, and name the choices otherwise."""

    def convert(value: object) -> object:
        known = [member.value for member in kind]
        if value not in known:
            guess = did_you_mean(str(value), known)
            _fail(f"expected one of {', '.join(known)}, found '{value}'.{guess}")
        return kind(str(value))

    return BeforeValidator(convert, json_schema_input_type=kind)


Category = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | int | bool)]
Number = Annotated[Decimal, BeforeValidator(_number, json_schema_input_type=float)]


MOST = 10**9
"""Sizes, counts and ratios beyond this are slips: no table is so long."""
Size = Annotated[int, Field(ge=2, le=MOST)]
Epsilon = Annotated[Number, Field(gt=0, ge=Decimal("1e-9"), le=Decimal("1e9"))]
LARGEST = Decimal("1e150")
"""Bounds beyond this are refused: their squares would overflow."""


class ColumnSpec(_Spec):
    """One column: its role, and what its values may be."""

    role: Annotated[Role, choice(Role)] = Field(description="What an attacker may do with it.")
    kind: Annotated[Kind, choice(Kind)] | None = Field(
        None, description="Which arithmetic it allows; optional for identifiers and others."
    )
    bounds: (
        Annotated[
            tuple[Number | date, Number | date],
            BeforeValidator(_pair, json_schema_input_type=list[float | date]),
        ]
        | None
    ) = Field(None, description="Smallest and largest value that can occur, publicly known.")
    categories: list[Category] | None = Field(
        None, min_length=1, description="All values that can occur; in order for an ordinal."
    )
    observed: bool = Field(
        default=False, description="The categories were copied from the data, not stated."
    )
    hierarchy: str | None = Field(None, description="CSV file: one row a leaf, root last.")
    transform: Annotated[Transform, choice(Transform)] | None = Field(
        None, description="Scale on which distances between numbers are taken."
    )
    public: bool = Field(default=False, description="The values are public knowledge.")
    privacy_unit: bool = Field(default=False, description="The column numbers the persons.")
    max_contributions: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None, description="Rows of a person that an epsilon release uses at most; public."
    )
    exact_contributions: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None, description="Rows that every person has, publicly known."
    )
    household: bool = Field(default=False, description="The column numbers the households.")
    sampling_weight: bool = Field(default=False, description="The column is the sampling weight.")
    stratum: bool = Field(default=False, description="The column is the sampling stratum.")
    step: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="Round to multiples of this before any method."
    )
    top_code: Number | date | Category | None = Field(None, description="Values above become this.")
    bottom_code: Number | date | Category | None = Field(
        None, description="Values below become this."
    )
    missing: list[Category] = Field(
        default_factory=list, description="Cells that mean missing, beside the empty one."
    )
    recode: str | None = Field(None, description="CSV file: value, new value.")
    date_format: str | None = Field(None, description="How dates are written, e.g. %d/%m/%Y.")
    other: Category | None = Field(
        None, description="Category that unknown values become in an epsilon release."
    )
    missing_as: Number | date | Category | None = Field(
        None, description="What missing cells become in an epsilon release: a public constant."
    )
    keep_missing: bool = Field(
        default=False,
        description="Methods that draw rows count missing cells as a value of their own.",
    )

    label: str | None = Field(None, max_length=255, description="What it is, in words; public.")
    value_labels: dict[str, str] = Field(
        default_factory=dict, description="What its values mean, by value; public."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        # A limit of 0 is named; false and an empty list are not.
        named = {
            name
            for name in self.model_fields_set
            if (value := getattr(self, name)) is not None and value is not False and value != []
        }
        if self.kind is None:
            if self.role in {Role.QUASI_IDENTIFIER, Role.CONFIDENTIAL}:
                _fail(f"expected a kind ({', '.join(Kind)}) for a {self.role} column, found none.")
            if self.sampling_weight:
                _fail('expected kind = "numeric" for a sampling weight, found none.')
        allowed = {
            "bounds": {Kind.NUMERIC, Kind.DATE},
            "categories": {Kind.ORDINAL, Kind.NOMINAL},
            "hierarchy": {Kind.NOMINAL},
            "transform": {Kind.NUMERIC},
            "step": {Kind.NUMERIC},
            "sampling_weight": {Kind.NUMERIC},
            "top_code": {Kind.NUMERIC, Kind.DATE, Kind.ORDINAL},
            "bottom_code": {Kind.NUMERIC, Kind.DATE, Kind.ORDINAL},
            "recode": {Kind.ORDINAL, Kind.NOMINAL},
            "date_format": {Kind.DATE},
            "other": {Kind.ORDINAL, Kind.NOMINAL},
            "missing_as": set(Kind),
            "keep_missing": set(Kind),
        }
        for key in named & allowed.keys():
            if self.kind not in allowed[key]:
                kinds = " or ".join(sorted(allowed[key]))
                found = f"a {self.kind} column" if self.kind else "a column without a kind"
                _fail(f"expected '{key}' only on a {kinds} column, found it on {found}.")
        if named & {"max_contributions", "exact_contributions"} and not self.privacy_unit:
            _fail(
                "expected 'max_contributions' and 'exact_contributions' only beside "
                "'privacy_unit = true'."
            )
        if {"max_contributions", "exact_contributions"} <= named:
            _fail("expected 'max_contributions' or 'exact_contributions', found both.")
        if {"keep_missing", "missing_as"} <= named:
            _fail("expected 'keep_missing' or 'missing_as', found both.")
        self._check_categories()
        self._check_limits()
        return self

    def _check_categories(self) -> None:
        if self.kind is Kind.ORDINAL and self.categories is None:
            _fail("expected 'categories', in order, for an ordinal column, found none.")
        if self.categories and self.hierarchy:
            _fail("expected 'categories' or 'hierarchy', found both.")
        if self.categories and len(set(self.categories)) < len(self.categories):
            _fail("expected each category once, found one twice.")
        if self.observed and not self.categories:
            _fail("expected 'observed' beside 'categories', found no categories.")
        if self.kind in {Kind.ORDINAL, Kind.NOMINAL} and self.categories:
            for key in ("top_code", "bottom_code", "other", "missing_as"):
                value = getattr(self, key)
                if value is not None and str(value) not in self.categories:
                    _fail(f"expected '{key}' to be one of the categories, found '{value}'.")
        if self.kind is Kind.ORDINAL:
            order = [(self.categories or []).index(str(v)) for v in self._coding if v is not None]
            if order != sorted(order):
                _fail("expected 'bottom_code' below 'top_code' in the order of the categories.")

    def _check_limits(self) -> None:
        if self.kind in {Kind.NUMERIC, Kind.DATE}:
            wanted = Decimal if self.kind is Kind.NUMERIC else date
            for value in (*(self.bounds or ()), self.top_code, self.bottom_code, self.missing_as):
                if value is not None and not isinstance(value, wanted):
                    what = "numbers" if self.kind is Kind.NUMERIC else "dates"
                    _fail(
                        f"expected {what} as bounds, top_code, bottom_code and missing_as, found "
                        f"'{value}'."
                    )
            if self.bounds and not self.bounds[0] < self.bounds[1]:  # type: ignore[operator]
                _fail(f"expected bounds from low to high, found {list(map(str, self.bounds))}.")
            self._check_sizes()
            if self.bounds and self.missing_as is not None:
                low, high = cast("tuple[Any, Any]", self.bounds)
                if not low <= cast("Any", self.missing_as) <= high:
                    _fail(f"expected 'missing_as' within the bounds, found '{self.missing_as}'.")
            if None not in self._coding and self._coding[0] > self._coding[1]:
                _fail(
                    "expected 'bottom_code' below 'top_code', found "
                    f"{list(map(str, self._coding))}."
                )

    def _check_sizes(self) -> None:
        if self.step and not 1 / LARGEST <= self.step <= LARGEST:
            _fail("expected 'step' from 1e-150 to 1e150.")
        numbers = (*(self.bounds or ()), self.top_code, self.bottom_code, self.missing_as)
        if any(abs(value) > LARGEST for value in numbers if isinstance(value, Decimal)):
            _fail("expected bounds, top_code, bottom_code and missing_as within 1e150.")
        if self.bounds and self.kind is Kind.NUMERIC:
            low, high = cast("tuple[Decimal, Decimal]", self.bounds)
            if abs(high - low) < 1 / LARGEST:
                _fail("expected bounds at least 1e-150 apart.")

    @property
    def _coding(self) -> tuple[Any, Any]:
        return self.bottom_code, self.top_code


class ProtectSpec(_Spec):
    """The method, what it protects, and its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    method: str = Field(description="Name of a method; `shoal methods` lists them.")
    columns: list[str] | None = Field(
        None, min_length=1, description="What is protected; the method has a default."
    )
    release_form: Annotated[ReleaseForm, choice(ReleaseForm)] | None = Field(
        None, description="How the rows of the release relate to the original's."
    )


def _listed(value: object) -> object:
    return [value] if isinstance(value, dict) else value


def _names(value: object) -> object:
    return [value] if isinstance(value, str) else value


ColumnNames = Annotated[
    list[str], BeforeValidator(_names, json_schema_input_type=str | list[str]), Field(min_length=1)
]


class DiversitySpec(_Spec):
    """The confidential values of every class are diverse."""

    l: Annotated[Number, Field(ge=1, le=MOST)] = Field(description="How diverse.")  # noqa: E741 (as in the literature)
    column: ColumnNames = Field(description="The confidential column, or several jointly.")
    kind: Annotated[Diversity, choice(Diversity)] = Field(
        Diversity.DISTINCT, description="How values are counted."
    )
    c: Annotated[Number, Field(gt=0, le=MOST)] | None = Field(
        None, description="Of the recursive kind."
    )

    @model_validator(mode="after")
    def _c_where_needed(self) -> Self:
        if (self.kind is Diversity.RECURSIVE) is (self.c is None):
            _fail("expected 'c' with the recursive kind, and with no other.")
        return self


class ClosenessSpec(_Spec):
    """The confidential values of every class are distributed nearly as in the whole table."""

    t: Annotated[Number, Field(ge=0, le=MOST)] = Field(description="How near.")
    column: ColumnNames = Field(description="The confidential column, or several jointly.")
    distance: Annotated[Distance, choice(Distance)] = Field(
        Distance.EQUAL, description="How distributions are compared."
    )

    @model_validator(mode="after")
    def _ratios_from_one(self) -> Self:
        if self.distance is Distance.RATIO and self.t < 1:
            _fail(f"expected t of at least 1 for the ratio distance, found '{self.t}'.")
        return self


class StochasticSpec(_Spec):
    """What is drawn for the confidential values of a class is distributed nearly as for all."""

    t: Annotated[Number, Field(ge=1, le=MOST)] = Field(
        description="Largest ratio of probabilities, either way."
    )
    column: ColumnNames = Field(description="The confidential column, or several jointly.")


class RequireSpec(_Spec):
    """Promises that the release must keep, or nothing is written."""

    k_anonymity: Size | None = Field(
        None, alias="k-anonymity", description="Of the quasi-identifiers together."
    )
    l_diversity: (
        Annotated[
            list[DiversitySpec],
            BeforeValidator(_listed, json_schema_input_type=DiversitySpec | list[DiversitySpec]),
        ]
        | None
    ) = Field(None, alias="l-diversity", description="Of the classes of the quasi-identifiers.")
    t_closeness: (
        Annotated[
            list[ClosenessSpec],
            BeforeValidator(_listed, json_schema_input_type=ClosenessSpec | list[ClosenessSpec]),
        ]
        | None
    ) = Field(None, alias="t-closeness", description="Of the classes of the quasi-identifiers.")
    stochastic_t_closeness: (
        Annotated[
            list[StochasticSpec],
            BeforeValidator(_listed, json_schema_input_type=StochasticSpec | list[StochasticSpec]),
        ]
        | None
    ) = Field(
        None,
        alias="stochastic-t-closeness",
        description="Of the distribution that confidential values are drawn from.",
    )
    differential_privacy: Epsilon | None = Field(
        None, alias="differential-privacy", description="Epsilon for all released columns."
    )


class ReleaseSpec(_Spec):
    """For whom the release is."""

    audience: Annotated[Audience, choice(Audience)] | None = Field(
        None, description="Who will get it; its claims must do for them, or nothing is written."
    )


class BudgetSpec(_Spec):
    """Where the budget of the population is kept; never published with the release."""

    file: str = Field(description="The budget file, made by `shoal budget init`.")
    source: str = Field(description="The population, which all its extracts share.")
    extract: Annotated[str, Field(min_length=1, max_length=500)] | None = Field(
        None, description="The rule by which the table was cut out of its source; none: the whole."
    )
    extract_by: Annotated[Extract, choice(Extract)] | None = Field(
        None, description="What that rule reads: public facts, the row alone, or other rows too."
    )
    max_contributions: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None, description="Rows that a person has at most in any table of the source: a fact."
    )

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.extract is None) is not (self.extract_by is None):
            _fail(
                "expected 'extract' (the rule, in words) and 'extract_by' "
                f"({', '.join(Extract)}) together, found one."
            )
        return self


class ContextSpec(_Spec):
    """For the officer's report; never published with the release."""

    recipient: str | None = None
    environment: str | None = None
    purpose: str | None = None
    legal_basis: str | None = None
    earlier_releases: str | None = None
    approver: str | None = None


class EvaluateSpec(_Spec):
    """What `shoal evaluate` computes beyond its defaults; never published with the release."""

    rules: list[str] = Field(
        default_factory=list,
        description='Edit rules that records should keep, e.g. "tax <= income".',
    )
    groups: str | None = Field(None, description="Column by whose values losses are told apart.")
    learn: str | None = Field(None, description="Column that a model learns to predict.")
    secret: str | None = Field(None, description="Confidential column that attacks try to guess.")
    regression: str | None = Field(
        None, description='Your own linear model, e.g. "income ~ age + hours".'
    )
    queries: str | None = Field(None, description="TOML file with COUNT queries of your own.")
    smoothing: Annotated[Number, Field(ge=0, le=1000)] = Field(
        Decimal(1), description="Unknown records that naive Bayes adds to each value; 0 for none."
    )


class PolicySpec(_Spec):
    """A Shoal policy."""

    version: Literal[1]
    one_row_per_person: bool = Field(
        default=False,
        description="You state it; promises about persons are then not conditional on it.",
    )
    columns: dict[
        str,
        Annotated[
            ColumnSpec, BeforeValidator(_from_role, json_schema_input_type=Role | ColumnSpec)
        ],
    ] = Field(min_length=1)
    protect: ProtectSpec
    require: RequireSpec = Field(default_factory=lambda: RequireSpec.model_validate({}))
    release: ReleaseSpec = Field(default_factory=lambda: ReleaseSpec.model_validate({}))
    reading: ReadingSpec = Field(default_factory=lambda: ReadingSpec.model_validate({}))
    writing: WritingSpec = Field(default_factory=lambda: WritingSpec.model_validate({}))
    budget: BudgetSpec | None = None
    context: ContextSpec = Field(default_factory=ContextSpec)
    evaluate: EvaluateSpec = Field(default_factory=lambda: EvaluateSpec.model_validate({}))

    @model_validator(mode="after")
    def _flags_once(self) -> Self:
        for flag in FLAGS:
            names = [name for name, spec in self.columns.items() if getattr(spec, flag)]
            if len(names) > 1:
                _fail(f"expected at most one column with '{flag}', found {', '.join(names)}.")
        require = self.require
        of_columns = (require.l_diversity, require.t_closeness, require.stochastic_t_closeness)
        for listed in of_columns:
            for name in chain.from_iterable(one.column for one in listed or ()):
                if name not in self.columns or self.columns[name].role is not Role.CONFIDENTIAL:
                    secret = [n for n, s in self.columns.items() if s.role is Role.CONFIDENTIAL]
                    guess = did_you_mean(name, secret)
                    _fail(f"[require] expected a confidential column, found '{name}'.{guess}")
        for name in self.protect.columns or ():
            if name not in self.columns:
                guess = did_you_mean(name, self.columns)
                _fail(f"expected [protect] columns that [columns] names, found '{name}'.{guess}")
            if self.columns[name].role is Role.IDENTIFIER:
                _fail(f"expected columns that are released, found the identifier '{name}'.")
            if self.columns[name].kind is None:
                _fail(f"expected a kind for the protected column '{name}', found none.")
        return self

    @model_validator(mode="after")
    def _contributions(self) -> Self:
        most = None if self.budget is None else self.budget.max_contributions
        for name, spec in self.columns.items():
            if most is not None and (spec.exact_contributions or 1) > most:
                _fail(
                    f"expected max_contributions of at least {spec.exact_contributions}, the "
                    "exact_contributions of "
                    f"'{name}', found {most}."
                )
        return self

    @model_validator(mode="after")
    def _rows_of_persons(self) -> Self:
        several = {
            spec.max_contributions or spec.exact_contributions or 1
            for spec in self.columns.values()
        } - {1}
        if self.one_row_per_person and several:
            rows = several.pop()
            _fail(f"expected one row per person, as one_row_per_person states, found {rows} rows.")
        return self

    @model_validator(mode="after")
    def _measured_columns(self) -> Self:
        for key in ("groups", "learn", "secret"):
            name = getattr(self.evaluate, key)
            if name is not None and name not in self.columns:
                guess = did_you_mean(name, self.columns)
                _fail(f"[evaluate] {key}: no column named '{name}'.{guess}")
        return self


def _fail(text: str) -> None:
    # Braces would be read as a template.
    raise PydanticCustomError("shoal", "{text}", {"text": text})


def _place(error: ErrorDetails) -> str:
    # Behind the second part, pydantic mixes the names of tried types into the path.
    head, tail = error["loc"][:2], error["loc"][2:]
    parts = [*head, *(p for p in tail if isinstance(p, int) or p in ColumnSpec.model_fields)]
    return ".".join(map(str, parts)) or "top level"


def _expected(error: ErrorDetails) -> str:
    kind, found = error["type"], error["input"]
    if kind == "shoal":
        return str(error["msg"])
    name = str(error["loc"][-1]) if error["loc"] else ""
    if kind == "extra_forbidden":
        known = _known_keys(error)
        hint = f" Known here: {', '.join(known)}." if known else ""
        return f"unknown key '{name}'.{did_you_mean(name, known) or hint}"
    if kind == "missing":
        what = "two values" if isinstance(error["loc"][-1], int) else f"a value for '{name}'"
        return f"expected {what}, found none."
    text = EXPECTED.get(kind, error["msg"].removeprefix("Input should be "))
    text = re.sub(r"Decimal\('([^']*)'\)", r"\1", text)
    shown = f"'{brief(found)}'" if isinstance(found, str | int | Decimal) else f"a {_sort(found)}"
    if isinstance(found, str) and kind in {"int_type", "literal_error"}:
        shown = f"the text {shown}"
    return f"expected {text}, found {shown}."


def _sort(value: object) -> str:
    names = {dict: "table", list: "list", tuple: "list", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _known_keys(error: ErrorDetails) -> list[str]:
    """The keys of the table that has an unknown one; none for a table of a method's own."""
    tables = [str(part) for part in error["loc"][:-1] if not isinstance(part, int)] or [""]
    models: dict[str, type[BaseModel]] = {
        "": PolicySpec,
        "columns": ColumnSpec,
        "require": RequireSpec,
        "l-diversity": DiversitySpec,
        "t-closeness": ClosenessSpec,
        "stochastic-t-closeness": StochasticSpec,
        "release": ReleaseSpec,
        "reading": ReadingSpec,
        "writing": WritingSpec,
        "budget": BudgetSpec,
        "context": ContextSpec,
        "evaluate": EvaluateSpec,
    }
    # Below [columns] come names that the steward gave.
    model = models.get("columns" if tables[0] == "columns" else tables[-1])
    return [] if model is None else [f.alias or name for name, f in model.model_fields.items()]
