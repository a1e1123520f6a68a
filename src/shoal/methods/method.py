"""What every method consists of. A method's file fills this in, and the registry lists it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from shoal.core import (
    Claim,
    Column,
    ConstraintChoices,
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
from shoal.errors import count_noun
from shoal.io.table import Table
from shoal.methods.distributed_rows import Distributed, DistributedRows

if TYPE_CHECKING:  # loading kernels takes as long as all the rest
    from shoal.partition import Neighbourhood


class Parameters(BaseModel):
    """Parameters of a method, as `[protect]` states them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


P = TypeVar("P", bound=Parameters)
P_co = TypeVar("P_co", bound=Parameters, covariant=True)


class ContributionProof(StrEnum):
    """The tables for which a method has a proof, if a person may have several rows.

    `none`: for none. `exact`: if every person has the same number. `any`: if a person's rows
    beyond a public number are left out.
    """

    NONE = "none"
    EXACT = "exact"
    ANY = "any"


@dataclass(frozen=True)
class Setting(Generic[P_co]):
    """The public facts that a method may use besides the data.

    Attributes:
        rows: the number of rows, which is public; not known at planning.
        required: what the policy requires, for methods that can steer towards it.
        constraints: what every released row must satisfy; public, or declared so.
    """

    schema: Schema
    columns: tuple[str, ...]
    parameters: P_co
    release_form: ReleaseForm
    rows: int | None = None
    required: tuple[Guarantee, ...] = ()
    constraints: ConstraintChoices = field(default_factory=ConstraintChoices)


@dataclass(frozen=True)
class Tools:
    """The tools of a run, which a method may not make itself.

    Attributes:
        noise: the randomness that carries privacy.
        rng: for post-processing only, such as drawing rows from a noisy model. Secret random
            numbers come from the noise.
        recoding: `Masked.recoding` of an earlier release, if this table is recoded the same way.
    """

    noise: Noise
    progress: Progress = silent
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    recoding: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Masked:
    """The result of a run, and its privacy losses.

    Attributes:
        data: protected rows, in the order of the rows that came in; synthetic rows, if the release
            form is synthetic; or boxes with counts.
        canonical: an order of the rows by public index, if the method has one.
        kept: which of the rows that came in these are, if some were suppressed.
        notes: sentences for the manifest about how the run ended; only what the released table
            shows anyway.
        extras: tables that may be published beside the rows, by name: columns of equal length.
        recoding: what another table needs to be recoded the same way: texts, numbers and arrays;
            confidential.
        recoding_public: it holds nothing but what the notes say.
    """

    data: Table | SpatialDecomposition
    privacy_losses: tuple[PrivacyLoss, ...] = ()
    canonical: NDArray[np.int64] | None = None
    kept: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()
    extras: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    recoding: Mapping[str, Any] | None = None
    recoding_public: bool = False


@dataclass(frozen=True)
class Pair:
    """Two tables in the unit box that differ in one record, and what distinguishes them."""

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    event: str


UNIT = (Decimal(0), Decimal(1))
TWO_NUMBERS = (
    Column("a", Role.QUASI_IDENTIFIER, Kind.NUMERIC, UNIT),
    Column("b", Role.QUASI_IDENTIFIER, Kind.NUMERIC, UNIT),
)
"""What methods are shown on in documents: two quasi-identifiers."""


@dataclass(frozen=True)
class Example:
    """Parameters that work, and two columns to protect, a and b: for documents and tests.

    Attributes:
        columns: these, and a confidential column s where a method needs one beside them.
    """

    parameters: Mapping[str, Any]
    columns: tuple[Column, ...] = TWO_NUMBERS


def _nothing(_setting: Any) -> tuple[Any, ...]:
    return ()


def no_claims(_setting: Any) -> tuple[Claim, ...]:
    """Claim nothing, in any setting."""
    return ()


@dataclass(frozen=True)
class Promises(Generic[P]):
    """What a method promises, and what it does not.

    Attributes:
        claims: the rule that says what it promises in a setting.
        not_claimed: sentences on what readers might expect and it does not promise.
        contributions: which tables it is proved for, if a person may have several rows.
        counterexample: two neighbouring tables that refute a claim, for given k.
    """

    claims: Callable[[Setting[P]], tuple[Claim, ...]]
    not_claimed: Callable[[Setting[P]], tuple[str, ...]] = _nothing
    contributions: ContributionProof = ContributionProof.NONE
    counterexample: Callable[[int], Pair] | None = None

    @property
    def claims_nothing(self) -> bool:
        """Whether there is no setting in which it promises anything."""
        return self.claims is no_claims


def _quasi_identifiers(schema: Schema) -> tuple[str, ...]:
    return schema.with_role(Role.QUASI_IDENTIFIER)


def protected(setting: Setting[Any]) -> tuple[str, ...]:
    """List the protected columns."""
    return setting.columns


@dataclass(frozen=True)
class Expectation:
    """A figure that a formula predicts for a release, from public quantities alone.

    Attributes:
        what: a name for machines, such as `one_way.age`.
        value: the figure.
        text: the same for people, with its unit.
    """

    what: str
    value: float
    text: str


@dataclass(frozen=True)
class LeastLoss:
    """The levels of least loss at one k.

    Attributes:
        loss: of these levels.
        levels: by column.
        suppressed: rows that they leave out.
    """

    loss: float
    levels: Mapping[str, int]
    suppressed: int


@dataclass(frozen=True)
class Alternatives:
    """Results of other settings on a table; read off the data, so only for an inspection.

    Attributes:
        loss: the name of the loss that is minimised.
        columns: those that have levels.
        by_k: of several k, the policy's among them; None where no levels keep what is required.
        lattice: combinations of levels at the policy's k.
    """

    loss: str
    columns: tuple[str, ...]
    by_k: Mapping[int, LeastLoss | None]
    lattice: "Neighbourhood"

    def __str__(self) -> str:
        lines = []
        for k, plan in self.by_k.items():
            if plan is None:
                lines.append(f"k = {k:,}: no combination of levels keeps what is required")
                continue
            rows = count_noun(plan.suppressed, "row")
            levels = ", ".join(f"{name} {level}" for name, level in plan.levels.items())
            lines.append(
                f"k = {k:,}: least {self.loss.replace('-', ' ')} {plan.loss:.3g}, {rows} left out; "
                f"levels: {levels}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class MethodInput(Generic[P]):
    """The input of a method.

    Attributes:
        columns: what is protected by default: the quasi-identifiers.
        clamped: which columns are clamped to their public domains, as differential privacy
            needs; None if cells that do not fit are refused.
        scaled: whether a numeric column's public transform is used.
        missing: whether it counts a missing cell as a value of its own, by its parameters.
        households: whether members of a household are treated together.
        sort_by: columns by which rows are put in canonical order; by default all.
    """

    columns: Callable[[Schema], tuple[str, ...]] = _quasi_identifiers
    clamped: Callable[[Setting[P]], tuple[str, ...]] | None = None
    scaled: bool = False
    missing: Callable[[P], bool] = lambda _parameters: False
    households: bool = False
    sort_by: Callable[[Setting[P]], tuple[str, ...]] | None = None


@dataclass(frozen=True)
class ReleaseForms(Generic[P]):
    """The release forms of a method.

    Attributes:
        offered: all of them, the default first.
        must_choose: there is no default, because only one form is proved.
        implied: the one that the parameters imply, if they do.
    """

    offered: tuple[ReleaseForm, ...]
    must_choose: bool = False
    implied: Callable[[P], ReleaseForm | None] = lambda _parameters: None


@dataclass(frozen=True)
class DistributedRun(Generic[P]):
    """How a method runs on blocks of records, on many machines.

    Attributes:
        refuse: raises if a setting runs on one machine only.
        approximate: the sentence on how the result differs from that on one machine,
            for the manifest.
    """

    run: Callable[[DistributedRows, Setting[P], Tools], Distributed]
    refuse: Callable[[Setting[P]], None] = lambda _setting: None
    approximate: str = ""


@dataclass(frozen=True)
class CostModel:
    """The time and memory of a method beside those of every run, as `make calibrate` measures them.

    Attributes:
        start: processor seconds for a few rows: what it loads.
        seconds: further ones for 10,000 rows of five mixed columns.
        power: of the number of rows, by which those grow. Where records share few combinations of
            categories, or few columns carry the spread, `mdav` is that quick; elsewhere it takes
            longer.
        cell_bytes: further bytes for each protected cell.
        most_rows: rows beyond which it takes no longer, if there is such a number.
    """

    start: float = 0.8
    seconds: float = 0.5
    power: float = 1.2
    cell_bytes: int = 200
    most_rows: int | None = None


BLOCKS = CostModel(0.8, 0.03, 1.0, 0)
"""Of a method that groups within blocks."""


@dataclass(frozen=True)
class CellFacts:
    """What a method does to cells, for readers, analyses and recodings of its releases.

    Attributes:
        by_column: each column is grouped by itself.
        generalises: values become coarser, and one that stands alone is the person's own.
        tight_intervals: intervals end at values that occur.
        keeps_numbers: numbers that are not ranges are those of the people.
        blanks: cells of rare combinations are missing.
        has_levels: columns are recoded to levels of hierarchies, which can be coarsened.
        classes_by_confidential: classes follow confidential values.
        shrinks: response probabilities differ by group and are not published.
    """

    by_column: bool = False
    generalises: bool = False
    tight_intervals: bool = False
    keeps_numbers: bool = False
    blanks: bool = False
    has_levels: bool = False
    classes_by_confidential: bool = False
    shrinks: bool = False


@dataclass(frozen=True)
class Method(Generic[P]):
    """A registered method.

    Attributes:
        name: as written in the policy.
        summary: one line for `shoal methods`.
        reference: where the method is published.
        parameters: the model that checks them.
        run: from rows in canonical order to the same rows, protected.
        refuse: raises if a setting cannot work, before any data is read; once more with the
            number of rows, where that is public.
        distributed: how it runs on many machines; None if it does not.
        expect: what survives, by formula, in a setting whose number of rows is known.
        alternatives: what other settings would give on a table, for an inspection of it.
        noise_by_row: each row draws its own noise, in every column that has some, so the
            accounting has as many draws as there are rows.
        cost: what it takes, or a function of the setting that says so.
        cells: what it does to them.
        discovers: what a policy leaves open of a column may be found with noise before it runs.
        package: the package that it comes from, if that is another than Shoal.
    """

    name: str
    summary: str
    reference: str
    parameters: type[P]
    example: Example
    forms: ReleaseForms[P]
    promises: Promises[P]
    run: Callable[[Table, Setting[P], Tools], Masked]
    refuse: Callable[[Setting[P]], None] = lambda _setting: None
    input: MethodInput[P] = field(default_factory=MethodInput)
    distributed: DistributedRun[P] | None = None
    expect: Callable[[Setting[P]], tuple[Expectation, ...]] = _nothing
    alternatives: Callable[[Table, Setting[P], Tools], Alternatives] | None = None
    noise_by_row: bool = False
    cost: CostModel | Callable[[Setting[P]], CostModel] = field(default_factory=CostModel)
    cells: CellFacts = field(default_factory=CellFacts)
    discovers: bool = False
    package: str = ""

    def cost_of(self, setting: Setting[P]) -> CostModel:
        """Return the cost model of a run in a setting."""
        if getattr(setting.parameters, "blocks", None) is not None:
            return BLOCKS
        return self.cost if isinstance(self.cost, CostModel) else self.cost(setting)

    @property
    def noisy(self) -> bool:
        """Whether it adds noise for differential privacy, and so needs clamped cells."""
        return self.input.clamped is not None

    def clamps(self, setting: Setting[P]) -> tuple[str, ...]:
        """List the columns whose cells are clamped to their public domains."""
        return () if self.input.clamped is None else self.input.clamped(setting)

    @property
    def has_groups(self) -> bool:
        """Whether it forms groups of a stated size."""
        return "k" in self.parameters.model_fields

    def has_centres(self, setting: Setting[P]) -> bool:
        """Whether the release has centres of groups: aggregates, not ranges or boxes."""
        output = getattr(setting.parameters, "output", "centroids")
        return hasattr(setting.parameters, "aggregate") and output == "centroids"

    def keeps_bounds(self, setting: Setting[P]) -> bool:
        """Whether released numbers stay within the policy's bounds, not only within the data's."""
        return getattr(setting.parameters, "bounds", "public") == "public"

    def settle_missing(self, schema: Schema, parameters: P) -> Schema:
        """Decide for each column whether missing is a value; never by the data.

        Missing is a value where the method supports it, unless the policy says otherwise or states
        a constant.
        """
        able = self.input.missing(parameters)
        return replace(
            schema,
            columns=tuple(
                replace(
                    column,
                    keep_missing=able
                    and (
                        column.missing_as is None
                        if column.keep_missing is None
                        else column.keep_missing
                    ),
                )
                for column in schema.columns
            ),
        )

    def approximate(self, *, distributed: bool) -> str:
        """Describe how a run differs from one on one machine; empty if it does not."""
        return self.distributed.approximate if distributed and self.distributed else ""
