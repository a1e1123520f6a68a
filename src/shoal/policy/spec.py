"""The shape of the policy file, as pydantic models; `misfits` words their errors.

`shoal.policy.load` reads a file into these and builds a `Policy` of them; methods state their
parameters with the types of `values`.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from shoal.core import Discover, Kind, ReleaseForm, Role, Transform
from shoal.errors import did_you_mean
from shoal.io.dates import days, is_format, strptime_format
from shoal.io.text_files import brief
from shoal.io.validate import is_number
from shoal.policy.sections import (
    BudgetSpec,
    ConstraintsSpec,
    ContextSpec,
    EvaluateSpec,
    ReadingSpec,
    ReleaseSpec,
    RequireSpec,
    ReviewSpec,
    WritingSpec,
)
from shoal.policy.sections import Spec as _Spec
from shoal.policy.values import (
    LARGEST,
    Category,
    Number,
    accept_discover,
    choice,
    fail,
)

_EVALUATED = ("groups", "learn", "secret")
_LISTS = (
    ("release", "accept_constant"),
    ("release", "accept_distinct"),
    ("evaluate", "query_columns"),
)
FLAGS = ("privacy_unit", "household", "sampling_weight", "class_mean", "stratum")
"""Column keys that at most one column may carry."""


def _pair(value: object) -> object:
    return tuple(value) if isinstance(value, list) else accept_discover(value)


def with_days(column: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the dates that a date column states as text."""
    limits = ("bounds", "top_code", "bottom_code", "missing_as")
    is_date = column.get("kind") == Kind.DATE
    dated = [key for key in limits if is_date and column.get(key, "discover") != "discover"]
    return {**column, **{key: days(column[key]) for key in dated}}


def _from_role(value: object) -> object:
    return {"role": value} if isinstance(value, str) else value


KINDS_OF_KEYS: dict[str, set[Kind]] = {
    "bounds": {Kind.NUMERIC, Kind.DATE},
    "categories": {Kind.ORDINAL, Kind.NOMINAL},
    "hierarchy": set(Kind),
    "transform": {Kind.NUMERIC},
    "step": {Kind.NUMERIC},
    "sampling_weight": {Kind.NUMERIC},
    "class_mean": {Kind.NUMERIC},
    "totals": {Kind.NUMERIC},
    "top_code": {Kind.NUMERIC, Kind.DATE, Kind.ORDINAL},
    "bottom_code": {Kind.NUMERIC, Kind.DATE, Kind.ORDINAL},
    "breaks": {Kind.ORDINAL},
    "prefix": {Kind.ORDINAL, Kind.NOMINAL},
    "recode": {Kind.ORDINAL, Kind.NOMINAL},
    "date_format": {Kind.DATE},
    "date_step": {Kind.DATE},
    "date_shift": {Kind.DATE},
    "other": {Kind.ORDINAL, Kind.NOMINAL},
    "missing_as": set(Kind),
    "keep_missing": set(Kind),
}
"""Column keys that only some kinds of columns may have."""
_OPEN = dict.fromkeys(("prefix", "recode", "date_format", "keep_missing"), (Discover.DISCOVER,))
"""Those that a column of an unknown kind may have, too: they say how its cells are read."""


def suits(key: str, kind: str | None) -> bool:
    """Whether a column of a kind may have a key."""
    return kind in {*KINDS_OF_KEYS.get(key, {kind}), *_OPEN.get(key, ())}


class ColumnSpec(_Spec):
    """One column: its role, and what its values may be."""

    role: Annotated[Role, choice(Role)] = Field(
        description="What an attacker may do with the column."
    )
    kind: Annotated[Kind | Discover, choice(Kind, Discover)] | None = Field(
        None,
        description="Which arithmetic the column allows. Needed for quasi-identifiers, "
        "confidential and protected columns. Where an epsilon release draws rows, discover finds "
        "kind, bounds and categories with noise, for a share of epsilon.",
    )
    bounds: (
        Annotated[
            tuple[Number | date, Number | date] | Discover,
            BeforeValidator(_pair, json_schema_input_type=list[float | date] | Literal["discover"]),
        ]
        | None
    ) = Field(
        None,
        description="The smallest and the largest value that can occur, as everybody knows. A "
        "value outside is an error, or in an epsilon release clamped. Where rows are drawn, "
        "discover finds them with noise.",
    )
    categories: (
        Annotated[
            Annotated[list[Category], Field(min_length=1)] | Discover,
            BeforeValidator(
                accept_discover, json_schema_input_type=list[Category] | Literal["discover"]
            ),
        ]
        | None
    ) = Field(
        None,
        description="All values that can occur, in order for an ordinal. An ordinal needs them. "
        "Where rows are drawn with a delta, discover finds those of a nominal with noise; the rest "
        "becomes other.",
    )
    observed: bool = Field(
        default=False,
        description="The categories or the hierarchy were copied from the data, and nobody "
        "confirmed that they are public. They stay out of the manifest, and a claim of "
        "differential privacy becomes conditional.",
    )
    hierarchy: str | None = Field(
        None,
        description="A CSV file with a tree of the values, which `shoal hierarchy` builds. On a "
        "nominal column in place of categories; of other columns only full-domain uses it.",
    )
    transform: Annotated[Transform, choice(Transform)] | None = Field(
        None,
        description="The public scale on which distances between numbers are taken. Drawn numbers "
        "have their grid on it.",
    )
    public: bool = Field(
        default=False,
        description="The values of the column are public knowledge. An epsilon release may hold "
        "them as they are, and public-laplace groups by them.",
    )
    privacy_unit: bool = Field(
        default=False,
        description="The column numbers the persons. Methods without noise then count persons; "
        "with noise each has one row, unless max_contributions or exact_contributions says "
        "otherwise. A row without a person is an error.",
    )
    max_contributions: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None,
        description="The largest number of rows of a person that an epsilon release uses. "
        "Further rows are left "
        "out; methods without noise use all. Beside privacy_unit.",
    )
    exact_contributions: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        None,
        description="The number of rows that every person has, as everybody knows. Another "
        "number is an error. "
        "Beside privacy_unit, in place of max_contributions.",
    )
    household: bool = Field(
        default=False,
        description="The column numbers the households.",
    )
    sampling_weight: bool = Field(
        default=False,
        description="How many people of the population a row represents.",
    )
    class_mean: bool = Field(
        default=False,
        description="Each row gets the mean weight of its class, which k-anonymity covers.",
    )
    totals: dict[str, dict[str, Annotated[Number, Field(gt=0)]]] = Field(
        default_factory=dict,
        description="Mean weights are raked to these public totals, by columns and values.",
    )
    stratum: bool = Field(
        default=False,
        description="The column holds the sampling stratum. Groups may span strata.",
    )
    pseudonym: bool = Field(
        default=False,
        description="Its values become keyed pseudonyms. The role is other, without a kind.",
    )
    date_shift: Annotated[int, Field(ge=1, le=3650)] | None = Field(
        None,
        description="All dates of a person are shifted by one secret number of days, at most this.",
    )
    step: Annotated[Number, Field(gt=0)] | None = Field(
        None,
        description="Numbers are rounded to multiples of this, half to even, before any method.",
    )
    top_code: Number | date | Category | None = Field(
        None, description="Values above this limit are set to it."
    )
    bottom_code: Number | date | Category | None = Field(
        None, description="Values below this limit are set to it."
    )
    missing: list[Category] = Field(
        default_factory=list, description="Cells that mean missing, beside the empty one."
    )
    breaks: list[Number] = Field(
        default_factory=list,
        description="Numbers are cut into the categories at these. Each begins a class.",
    )
    prefix: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None,
        description="Codes are cut to this many first characters, before recode and any method.",
    )
    recode: str | dict[str, Category] | None = Field(
        None,
        description="Replaces values by others in every row: a table of values and new ones, "
        "or a CSV file whose lines have both.",
    )
    date_format: Annotated[str, AfterValidator(strptime_format)] | None = Field(
        None,
        description="How dates are written, in the file and in a CSV release: %d.%m.%Y or "
        "dd.mm.yyyy, with %H:%M or hh:mm for a time, 'dd.mm.yy until 2024' for years of two "
        "digits, or era for Japanese years. By default %Y-%m-%d.",
    )
    date_step: Literal["week", "month", "quarter", "year"] | None = Field(
        None,
        description="Round dates down to its first day, within the bounds.",
    )
    other: Category | None = Field(
        None,
        description="The category that unknown values become in an epsilon release. By default "
        "they become missing where missing cells stay (keep_missing), and elsewhere the first.",
    )
    missing_as: Number | date | Category | None = Field(
        None,
        description="What missing cells become in an epsilon release, and missing numbers in the "
        "boxes of mondrian. By default the middle of the bounds, or for categories that of other; "
        "mondrian has no default.",
    )
    keep_missing: bool | None = Field(
        default=None,
        description="Whether methods that draw rows count a missing cell as a value of its own: by "
        "default they do, unless missing_as is stated. Other methods with noise use the constant.",
    )

    label: str | None = Field(
        None, max_length=255, description="What the column is, in words. It is public."
    )
    value_labels: dict[str, str] = Field(
        default_factory=dict, description="What the values mean, by value. It is public."
    )

    @model_validator(mode="before")
    @classmethod
    def _dates(cls, stated: Any) -> Any:
        return with_days(stated) if isinstance(stated, Mapping) else stated

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        # A limit of 0 is a stated key; false and an empty list are not.
        named = {
            name
            for name in self.model_fields_set
            if (value := getattr(self, name)) is not None and value is not False and value != []
        }
        if self.kind is None:
            if self.role in {Role.QUASI_IDENTIFIER, Role.CONFIDENTIAL}:
                fail(
                    f"expected a kind ({', '.join(Kind)}) for a {self.role} column, found none.",
                    "kind",
                )
            if self.sampling_weight:
                fail('expected kind = "numeric" for a sampling weight, found none.', "kind")
        for key in named & KINDS_OF_KEYS.keys():
            if not suits(key, self.kind):
                kinds = " or ".join(sorted(KINDS_OF_KEYS[key]))
                described = f"a {self.kind} column" if self.kind else "a column without a kind"
                fail(f"expected '{key}' only on a {kinds} column, found it on {described}.", key)
        if named & {"max_contributions", "exact_contributions"} and not self.privacy_unit:
            fail(
                "expected 'max_contributions' and 'exact_contributions' only beside "
                "'privacy_unit = true'.",
                "privacy_unit",
            )
        if {"max_contributions", "exact_contributions"} <= named:
            fail(
                "expected 'max_contributions' or 'exact_contributions', found both.",
                "exact_contributions",
            )
        self._check_linked_keys()
        if {"keep_missing", "missing_as"} <= named:
            fail("expected 'keep_missing' or 'missing_as', found both.", "missing_as")
        if self.discover:
            self._check_discovery(named)
            return self
        self._check_categories()
        self._check_limits()
        return self

    def _check_linked_keys(self) -> None:
        if self.breaks and (
            sorted({*self.breaks}) != self.breaks
            or len(self.categories or ()) != len(self.breaks) + 1
            or any(is_number(str(name)) for name in self.categories or ())
        ):
            fail("expected 'breaks' that rise, and one category more, none of them a number.",
                 "breaks")  # fmt: skip
        if self.pseudonym and (self.kind is not None or self.role is not Role.OTHER):
            fail("expected 'pseudonym' with the role other and without a kind.", "pseudonym")
        shown = ("bounds", "top_code", "bottom_code", "date_step")
        moved = "date_shift" if self.date_shift else "totals"
        if getattr(self, moved) and (stated := [key for key in shown if getattr(self, key)]):
            fail(f"expected no '{stated[0]}' beside '{moved}', which moves values beyond.", moved)
        if self.class_mean > self.sampling_weight or bool(self.totals) > self.class_mean:
            fail(
                "expected 'class_mean' beside 'sampling_weight = true', and 'totals' beside both.",
                "class_mean" if self.class_mean else "totals",
            )
        if len({sum(margin.values()) for margin in self.totals.values()}) > 1:
            fail("expected totals that add up to the same population for each column.", "totals")

    @property
    def discover(self) -> tuple[str, ...]:
        """The keys that are to be found with noise."""
        keys = ("kind", "categories", "bounds")
        return tuple(key for key in keys if isinstance(getattr(self, key), Discover))

    def _check_discovery(self, named: set[str]) -> None:
        """Refuse what has no meaning before the column is known."""
        (key, *_) = self.discover
        if self.kind is Kind.ORDINAL:
            fail(
                "expected 'categories', in order, for an ordinal column; found \"discover\", which "
                "finds no order.",
                "categories",
            )
        for other in ("hierarchy", "observed", "public", "sampling_weight", "privacy_unit",
                      "top_code", "bottom_code", "other", "missing_as", "date_step"):  # fmt: skip
            if other in named:
                fail(f"expected no '{other}' beside {key} = \"discover\", found one.", other)

    def _check_categories(self) -> None:
        if self.kind is Kind.ORDINAL and self.categories is None:
            fail(
                "expected 'categories', in order, for an ordinal column, found none.", "categories"
            )
        if self.kind is Kind.NOMINAL and self.categories and self.hierarchy:
            fail("expected 'categories' or 'hierarchy', found both.", "categories")
        if self.categories and len(set(self.categories)) < len(self.categories):
            fail("expected each category once, found one twice.", "categories")
        if self.observed and not (self.categories or self.hierarchy):
            fail(
                "expected 'observed' beside 'categories' or 'hierarchy', found neither.",
                "categories",
            )
        if self.kind in {Kind.ORDINAL, Kind.NOMINAL} and self.categories:
            for key in ("top_code", "bottom_code", "other", "missing_as"):
                value = getattr(self, key)
                if value is not None and str(value) not in self.categories:
                    fail(f"expected '{key}' to be one of the categories, found '{value}'.", key)
        if self.kind is Kind.ORDINAL:
            order = [(self.categories or []).index(str(v)) for v in self._coding if v is not None]
            if order != sorted(order):
                fail(
                    "expected 'bottom_code' below 'top_code' in the order of the categories.",
                    "bottom_code",
                )

    def _check_limits(self) -> None:
        if self.kind in {Kind.NUMERIC, Kind.DATE}:
            wanted = Decimal if self.kind is Kind.NUMERIC else date
            for value in (*(self.bounds or ()), self.top_code, self.bottom_code, self.missing_as):
                if value is not None and not isinstance(value, wanted):
                    what = "numbers" if self.kind is Kind.NUMERIC else "dates such as 2023-09-17"
                    fail(
                        f"expected {what} as bounds, top_code, bottom_code and missing_as, found "
                        f"'{value}'.",
                        "bounds",
                    )
            if self.bounds and not self.bounds[0] < self.bounds[1]:  # type: ignore[operator]
                fail(
                    f"expected bounds from low to high, found {list(map(str, self.bounds))}.",
                    "bounds",
                )
            if self.date_format is not None and not is_format(self.date_format):
                fail(
                    "expected a date_format with year, month and day, such as '%d.%m.%Y' or "
                    f"'dd.mm.yyyy', found '{brief(self.date_format)}'.",
                    "date_format",
                )
            self._check_sizes()
            if self.bounds and self.missing_as is not None:
                low, high = cast("tuple[Any, Any]", self.bounds)
                if not low <= cast("Any", self.missing_as) <= high:
                    fail(
                        f"expected 'missing_as' within the bounds, found '{self.missing_as}'.",
                        "missing_as",
                    )
            if None not in self._coding and self._coding[0] > self._coding[1]:
                fail(
                    "expected 'bottom_code' below 'top_code', found "
                    f"{list(map(str, self._coding))}.",
                    "bottom_code",
                )

    def _check_sizes(self) -> None:
        if self.step and not 1 / LARGEST <= self.step <= LARGEST:
            fail("expected 'step' from 1e-150 to 1e150.", "step")
        numbers = (*(self.bounds or ()), self.top_code, self.bottom_code, self.missing_as)
        if any(abs(value) > LARGEST for value in numbers if isinstance(value, Decimal)):
            fail("expected bounds, top_code, bottom_code and missing_as within 1e150.", "bounds")
        if self.bounds and self.kind is Kind.NUMERIC:
            low, high = cast("tuple[Decimal, Decimal]", self.bounds)
            if abs(high - low) < 1 / LARGEST:
                fail("expected bounds at least 1e-150 apart.", "bounds")

    @property
    def _coding(self) -> tuple[Any, Any]:
        return self.bottom_code, self.top_code


class ProtectSpec(_Spec):
    """The method, what it protects, and its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    method: str = Field(description="The name of a method, as `shoal methods` lists them.")
    columns: list[str] | None = Field(
        None,
        min_length=1,
        description="The columns that the method protects. By default the quasi-identifiers, and "
        "with noise every released column that is not public.",
    )
    release_form: Annotated[ReleaseForm, choice(ReleaseForm)] | None = Field(
        None,
        description="How the rows of the release relate to the original's. By default the "
        "method's first form; two methods have no default.",
    )


class PolicySpec(_Spec):
    """A Shoal policy."""

    version: Literal[1] = Field(description="The version of the policy's format.")
    one_row_per_person: bool = Field(
        default=False,
        description="The steward states that each person has one row.",
    )
    columns: dict[
        str,
        Annotated[
            ColumnSpec, BeforeValidator(_from_role, json_schema_input_type=Role | ColumnSpec)
        ],
    ] = Field(min_length=1, description="One line for each column of the table.")
    protect: ProtectSpec = Field(description="The method and its parameters.")
    require: RequireSpec = Field(
        default_factory=lambda: RequireSpec.model_validate({}),
        description="Guarantees that the release must have, or nothing is written.",
    )
    constraints: ConstraintsSpec = Field(
        default_factory=lambda: ConstraintsSpec.model_validate({}),
        description="Rules that every released row keeps.",
    )
    release: ReleaseSpec = Field(
        default_factory=lambda: ReleaseSpec.model_validate({}),
        description="Who will get the release.",
    )
    review: ReviewSpec | None = Field(
        None,
        description="That the policy was drafted by program, and who has reviewed it since.",
    )
    reading: ReadingSpec = Field(
        default_factory=lambda: ReadingSpec.model_validate({}),
        description="How the CSV file of the original is written.",
    )
    writing: WritingSpec = Field(
        default_factory=lambda: WritingSpec.model_validate({}),
        description="How a CSV release is written.",
    )
    budget: BudgetSpec | None = Field(
        None,
        description="Which budget file records the release, and how the table relates to its "
        "source. Never published.",
    )
    context: ContextSpec = Field(
        default_factory=lambda: ContextSpec.model_validate({}),
        description="What the officer's report quotes about the recipients and the purpose. "
        "Never published.",
    )
    evaluate: EvaluateSpec = Field(
        default_factory=lambda: EvaluateSpec.model_validate({}),
        description="What the command `shoal evaluate` computes beside its own choice. Never "
        "published.",
    )

    @model_validator(mode="after")
    def _flags_once(self) -> Self:
        for flag in FLAGS:
            names = [name for name, spec in self.columns.items() if getattr(spec, flag)]
            if len(names) > 1:
                fail(
                    f"expected at most one column with '{flag}', found {', '.join(names)}.",
                    "columns",
                    names[1],
                    flag,
                )
        require = self.require
        secret = [n for n, s in self.columns.items() if s.role is Role.CONFIDENTIAL]
        for key in ("l_diversity", "t_closeness", "stochastic_t_closeness"):
            for place, entry in enumerate(getattr(require, key) or ()):
                for name in [n for n in entry.column if n not in secret]:
                    guess = did_you_mean(name, secret)
                    fail(
                        f"[require] expected a confidential column, found '{name}'.{guess}",
                        *("require", key.replace("_", "-"), place, "column"),
                    )
        protected = ("protect", "columns")
        for name in self.protect.columns or ():
            if name not in self.columns:
                guess = did_you_mean(name, self.columns)
                fail(
                    f"expected [protect] columns that [columns] names, found '{name}'.{guess}",
                    *protected,
                )
            if self.columns[name].role is Role.IDENTIFIER:
                fail(
                    f"expected columns that are released, found the identifier '{name}'.",
                    *protected,
                )
            if self.columns[name].kind is None:
                fail(
                    f"expected a kind for the protected column '{name}', found none.",
                    "columns",
                    name,
                    "kind",
                )
        return self

    @model_validator(mode="after")
    def _contributions(self) -> Self:
        most = None if self.budget is None else self.budget.max_contributions
        for name, spec in self.columns.items():
            if most is not None and (spec.exact_contributions or 1) > most:
                fail(
                    f"expected max_contributions of at least {spec.exact_contributions}, the "
                    "exact_contributions of "
                    f"'{name}', found {most}.",
                    *("budget", "max_contributions"),
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
            fail(
                f"expected one row per person, as one_row_per_person states, found {rows} rows.",
                "one_row_per_person",
            )
        return self

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        named = [("evaluate", key, getattr(self.evaluate, key)) for key in _EVALUATED]
        for section, key in _LISTS:
            named += [(section, key, name) for name in getattr(getattr(self, section), key)]
        for table, key, name in named:
            if name is not None and name not in self.columns:
                guess = did_you_mean(name, self.columns)
                fail(f"[{table}] {key}: no column named '{name}'.{guess}", table, key)
        return self
