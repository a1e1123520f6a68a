"""The common part of the methods that add noise to microaggregates.

Columns become whole numbers on public grids, groups form, each group's sum gets one draw that its
records share, and the noisy mean, clamped to the grid, is released. Ordinals are grids of their
ranks, dates of days. A nominal's category is chosen privately for a small total path length to
the group's members; where groups are blocks by rank, it is the noisy rank in a public order.

`epsilon` is the whole release's. It is split over the columns, in equal parts or in proportion to
their widths; the accounting has an entry for each.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, TypeVar, cast

import numpy as np
from pydantic import Field

from shoal.core import (
    Column,
    Kind,
    Neighbours,
    Partition,
    PrivacyLoss,
    ReleaseForm,
    Schema,
)
from shoal.core._arrays import Floats, Ints
from shoal.core.columns import top_down
from shoal.errors import InputError, columns_named
from shoal.io.table import Table, leaf_edges
from shoal.mechanism.fixed_point import FixedPointGrid, public_grid
from shoal.mechanism.microaggregate_noise import (
    Purchase,
    categories_of_counts,
    choose_categories,
    isotonic,
    means_of_sums,
    noisy_means,
)
from shoal.methods.distributed_rows import (
    CountableRows,
    DistributedGroups,
    DistributedRows,
    ReplacedColumns,
)
from shoal.methods.grouping.microaggregation import central_first
from shoal.methods.method import (
    ContributionProof,
    CostModel,
    DistributedRun,
    Example,
    Masked,
    Method,
    MethodInput,
    Parameters,
    Promises,
    ReleaseForms,
    Setting,
    Tools,
    protected,
)
from shoal.partition import path_lengths
from shoal.policy.values import Epsilon, Size, choice

LINKED = ReleaseForms[Any]((ReleaseForm.LINKED_SHUFFLED, ReleaseForm.ROW_ALIGNED))
BY_COLUMN = ReleaseForms[Any]((ReleaseForm.COLUMN_SHUFFLED, *LINKED.offered), must_choose=True)
"""Of methods whose proof holds only if each column is shuffled by itself."""


class Origin(StrEnum):
    """The source of a quantity: public, or the data."""

    PUBLIC = "public"
    FROM_DATA = "from-data"


class Split(StrEnum):
    """How epsilon is divided among the columns."""

    EQUAL = "equal"
    PROPORTIONAL = "proportional"


class NominalOrder(StrEnum):
    """A public order of a nominal column's categories."""

    DECLARED = "declared"
    MARGINALITY = "marginality"


class EpsilonParameters(Parameters):
    """Parameters of every method that spends epsilon."""

    epsilon: Epsilon = Field(
        title="Privacy loss (epsilon)",
        description="Privacy budget: one record changes the probability of any release by a "
        "factor of at most e^epsilon.",
    )
    neighbours: Annotated[Neighbours, choice(Neighbours)] = Field(
        Neighbours.CHANGE_ONE,
        title="Which tables must look alike",
        description="Which tables must be hard to tell apart: one record has other values "
        "(change-one), or is there or not (add-remove).",
    )


class NoisyParameters(EpsilonParameters):
    """Parameters of the methods that add noise to cells or to groups."""

    bounds: Annotated[Origin, choice(Origin)] = Field(
        Origin.PUBLIC,
        title="Where the limits come from",
        description="Where bounds come from: the policy (public), or [0, 1.5 max] of the data, as "
        "in the papers (from-data), which refutes every epsilon.",
    )


class NoisyGroupParameters(NoisyParameters):
    """Parameters of the methods that form groups of at least k records before adding noise."""

    k: Size = Field(
        title="Smallest group (k)",
        description="The smallest number of records that a group may have.",
    )


class ScaledParameters(NoisyGroupParameters):
    """Parameters of the methods that group whole records."""

    scale: Annotated[Origin, choice(Origin)] = Field(
        Origin.PUBLIC,
        title="How columns are made comparable",
        description="How columns are made comparable before grouping: by their bounds (public), "
        "or by mean and standard deviation of the data (from-data).",
    )


@dataclass(frozen=True)
class ProtectedColumn:
    """One protected column on its grid.

    Attributes:
        width: what the papers call its sensitivity, in the column's own units.
        distances: between categories, for a nominal that is not ranked.
        embedding: places of such categories in a public box, squared distance in proportion
            to path length and 1 at most.
        order: category at each place of the grid, if a nominal is not ranked as declared.
        from_data: whether the bounds were read off the data.
    """

    name: str
    kind: Kind
    grid: FixedPointGrid
    units: Ints
    width: Fraction
    distances: Ints | None = None
    embedding: Floats | None = None
    order: Ints | None = None
    from_data: bool = False

    @property
    def public_width(self) -> Fraction | None:
        """The width, unless it was read off the data."""
        return None if self.from_data else self.width

    @property
    def places(self) -> Floats:
        """The column scaled to [0, 1]."""
        return self.units / self.grid.steps


def noisy_method(
    name: str,
    summary: str,
    run: Callable[[Table, Setting[Any], Tools], Masked],
    promises: Promises[Any],
    *,
    source: str,
    parameters: type[NoisyParameters],
    forms: ReleaseForms[Any] = LINKED,
    refuse: Callable[[Setting[Any]], None] | None = None,
    sort_by: Callable[[Setting[Any]], tuple[str, ...]] | None = None,
    distributed: DistributedRun[Any] | None = None,
    cost: CostModel,
) -> Method[Any]:
    """Make a method that forms groups of k and adds noise to all released columns.

    Persons may have several rows, the same number each: a table in which all rows of one person
    change is r changed rows away, whatever the groups (`contributions`, step 1).
    """
    return Method(
        name=name,
        summary=summary,
        reference=source,
        parameters=parameters,
        example=Example({"epsilon": 1, "k": 5}),
        forms=forms,
        promises=replace(promises, contributions=ContributionProof.EXACT),
        run=run,
        refuse=refuse or no_public_columns,
        input=MethodInput(protected_columns, clamped=protected, sort_by=sort_by),
        distributed=distributed,
        cost=cost,
    )


def protected_columns(schema: Schema) -> tuple[str, ...]:
    """Every released column that is not declared public."""
    return tuple(name for name in schema.released if not schema[name].public)


UNSORTED = MethodInput[Any](protected_columns, clamped=protected, sort_by=lambda _setting: ())
"""Of a method to which the order of the rows does not matter."""


def refuse(setting: Setting[NoisyParameters]) -> None:
    """Refuse what rules out any claim of differential privacy, before data are read."""
    change_one_only(setting)
    refuse_bare(setting, bounded=setting.parameters.bounds is Origin.PUBLIC)


def change_one_only(setting: Setting[EpsilonParameters]) -> None:
    """Refuse neighbours whose number of rows differs."""
    if setting.parameters.neighbours is not Neighbours.CHANGE_ONE:
        raise InputError(
            "[protect], neighbours: this method takes the number of rows as public, so it "
            "supports change-one neighbours only."
        )


def nobody_beside(setting: Setting[EpsilonParameters]) -> None:
    """Refuse public columns beside synthetic rows or boxes."""
    strata = getattr(setting.parameters, "strata", None)
    public = [name for name in setting.schema.released if name not in {*setting.columns, strata}]
    if public:
        raise InputError(
            f"{columns_named(public)}: values cannot stand beside the release; the method makes "
            "synthetic rows or boxes, which belong to no person. Expected protection, or the role "
            "identifier."
        )


def refuse_bare(setting: Setting[EpsilonParameters], *, bounded: bool = True) -> None:
    """Refuse columns that bypass the noise, and protected columns without a public domain."""
    check_domains(setting, setting.columns, "protection", bounded=bounded)


def check_domains(
    setting: Setting[Any], protected: Iterable[str], wanted: str, *, bounded: bool = True
) -> None:
    """Refuse columns that bypass the noise, and protected columns without a public domain.

    One error names them all. `wanted` says what would put the former under the noise.
    """
    schema = setting.schema
    lacking: dict[str, list[str]] = {}
    for name in schema.released:
        if name not in setting.columns and not schema[name].public:
            lacking.setdefault(
                f" would be released without noise. Expected {wanted}, the role identifier, or "
                "public = true if everybody knows the values.",
                [],
            ).append(name)
    for column in (schema[name] for name in protected if not schema[name].is_open):
        why = _without_domain(column, bounded=bounded)
        lacking.setdefault(why, []).append(column.name) if why else None
    if lacking:
        raise InputError(" ".join(columns_named(names) + why for why, names in lacking.items()))


def _without_domain(column: Column, *, bounded: bool) -> str:
    """Say what public domain a column lacks, as the end of a sentence; empty if it has one."""
    if column.kind is None:
        return (
            ": no kind is stated, so no noise can be added. State it, or declare the column as an "
            "identifier or with public = true."
        )
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL} and column.all_categories is None:
        return (
            ": expected categories or a hierarchy, because those read off the data are not public, "
            "found none."
        )
    if column.kind in {Kind.NUMERIC, Kind.DATE} and column.bounds is None:
        if bounded:
            return ": expected bounds, because limits read off the data are not public, found none."
        if column.kind is Kind.DATE:
            return ": a date needs stated bounds."
    return ""


def no_public_columns(setting: Setting[NoisyParameters]) -> None:
    """Refuse public columns in the rows of groups: they would show who is in which group."""
    refuse(setting)
    public = [name for name in setting.schema.released if name not in setting.columns]
    if public and setting.release_form is not ReleaseForm.COLUMN_SHUFFLED:
        raise InputError(
            f"{columns_named(public)}: beside the groups, public values would show who is in which "
            "group. Expected protection, the role identifier, or the method public-laplace."
        )


def put_on_grids(
    table: Table, setting: Setting[NoisyParameters], *, ranked: NominalOrder | None = None
) -> tuple[ProtectedColumn, ...]:
    """Put the protected columns on their grids; with `ranked`, nominals by ranks in that order."""
    return tuple(put_on_grid(table, name, setting.parameters.bounds, ranked=ranked)
                 for name in setting.columns)  # fmt: skip


def put_on_grid(
    table: Table, name: str, origin: Origin = Origin.PUBLIC, *, ranked: NominalOrder | None = None
) -> ProtectedColumn:
    """Put one column on its grid."""
    kind = cast("Kind", table.schema[name].kind)
    if kind in {Kind.ORDINAL, Kind.NOMINAL}:
        last = max(len(table.categories(name)) - 1, 1)
        grid, codes = public_grid(0, last), table.codes(name)
        distances = embedding = order = None
        if kind is Kind.NOMINAL and ranked is NominalOrder.MARGINALITY:
            order = central_first(table, name)
            codes = np.argsort(order)[codes]
        elif kind is Kind.NOMINAL and ranked is None:
            edges = leaf_edges(table, name)
            distances = path_lengths(top_down(edges)).astype(np.int64)
            embedding = _embed(edges) / np.sqrt(max(int(distances.max()), 1))
        encoded = grid.encode(codes.astype(np.float64))
        return ProtectedColumn(
            name, kind, grid, encoded, Fraction(last), distances, embedding, order
        )
    values = table.numbers(name)
    if origin is Origin.FROM_DATA:
        # As in the papers: [0, 1.5 max]; a negative minimum extends it downwards likewise.
        low, high = min(1.5 * float(values.min()), 0.0), max(1.5 * float(values.max()), 0.0)
        grid = FixedPointGrid(Fraction(low), Fraction(high if high > low else low + 1.0))
    else:
        low, high = table.limits(name)
        grid = public_grid(Fraction(low), Fraction(high))
    width = Fraction(grid.high) - Fraction(grid.low)
    return ProtectedColumn(
        name, kind, grid, grid.encode(values), width, from_data=origin is Origin.FROM_DATA
    )


def budgets(given: Sequence[ProtectedColumn], epsilon: Fraction, split: Split) -> list[Fraction]:
    """Divide epsilon among columns: equally, or in proportion to their widths."""
    if split is Split.EQUAL:
        return [epsilon / len(given)] * len(given)
    total = sum(axis.width for axis in given)
    return [epsilon * axis.width / total for axis in given]


def _embed(edges: Ints) -> Floats:
    """Place categories on one axis per edge of the hierarchy, 1 where it lies above them."""
    places = np.zeros((len(edges), int(edges.max(initial=0)) + 1))
    level, step = np.nonzero(edges >= 0)
    places[level, edges[level, step]] = 1.0
    return places


def matrix(given: Sequence[ProtectedColumn], scale: Origin, *, codes: Mapping[str, Ints]) -> Floats:
    """Place records for grouping: in the public unit box, or standardised by the data.

    `codes` has the records' categories in nominal columns that are placed by their hierarchy.
    """
    blocks = [
        axis.places[:, None]
        if axis.embedding is None or axis.name not in codes
        else axis.embedding[codes[axis.name]]
        for axis in given
    ]
    X = np.hstack(blocks)
    if scale is Origin.PUBLIC:
        return X
    spread = X.std(axis=0)
    Z: Floats = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Z


def nominal_codes(table: Table, given: Sequence[ProtectedColumn]) -> dict[str, Ints]:
    """Return the category codes of the nominal columns that are not ranked."""
    return {axis.name: table.codes(axis.name) for axis in given if axis.distances is not None}


def perturb(
    table: Table,
    tools: Tools,
    parts: Iterable[tuple[ProtectedColumn, Partition, Purchase]],
    *,
    monotone: bool = False,
) -> tuple[Table, tuple[PrivacyLoss, ...]]:
    """Replace each column by its noisy group values.

    `parts` has each column with its groups and its share of the privacy loss. If `monotone`, groups
    are blocks by rank, which the fit may use.
    """
    privacy_losses = []
    for axis, partition, purchase in parts:
        if axis.distances is not None:
            chosen, privacy_loss = choose_categories(
                table.codes(axis.name),
                partition,
                distances=axis.distances,
                purchase=purchase,
                noise=tools.noise,
            )
            table = table.with_codes(axis.name, chosen[partition.labels])
        else:
            means, privacy_loss = noisy_means(
                axis.units,
                partition,
                steps=axis.grid.steps,
                purchase=purchase,
                noise=tools.noise,
                width=axis.public_width,
            )
            if monotone:
                means = isotonic(means, partition.sizes)
            table = _release_column(table, axis, means[partition.labels])
        privacy_losses.append(privacy_loss)
    return table, tuple(privacy_losses)


def grids_in_blocks(
    rows: CountableRows, setting: Setting[NoisyParameters], *, ranked: NominalOrder | None = None
) -> tuple[ProtectedColumn, ...]:
    """Return the grids of the protected columns, without records."""
    return put_on_grids(rows.template.take(np.zeros(0, dtype=np.int64)), setting, ranked=ranked)


def units_of(table: Table, name: str, *, ranked: NominalOrder) -> Ints:
    """Return a column of a block in units of its public grid."""
    return put_on_grid(table, name, ranked=ranked).units


def perturb_in_blocks(
    rows: DistributedRows,
    tools: Tools,
    parts: Iterable[tuple[ProtectedColumn, DistributedGroups, Purchase]],
    *,
    monotone: bool = False,
) -> tuple[tuple[ReplacedColumns, ...], tuple[PrivacyLoss, ...]]:
    """Replace each column by its noisy group values: `perturb`, for records in blocks.

    Sums of whole numbers come to the caller exactly as one machine adds them up. Noise is drawn
    here, once per group; blocks get the answers, and look them up.
    """
    changes, privacy_losses = [], []
    held = list(parts)
    sums = rows.sums([(groups, _question_of(axis)) for axis, groups, _ in held])
    for (axis, groups, purchase), answers in zip(held, sums, strict=True):
        if axis.distances is not None:
            chosen, privacy_loss = categories_of_counts(
                answers, distances=axis.distances, purchase=purchase, noise=tools.noise
            )
            put = partial(_put_codes, name=axis.name)
            changes.append(groups.answer([axis.name], chosen, put))
        else:
            means, privacy_loss = means_of_sums(
                answers[:, 0], groups.sizes, steps=axis.grid.steps, purchase=purchase,
                noise=tools.noise, width=axis.public_width,
            )  # fmt: skip
            if monotone:
                means = isotonic(means, groups.sizes)
            changes.append(groups.answer([axis.name], means, partial(_put_units, one=axis)))
        privacy_losses.append(privacy_loss)
    return tuple(changes), tuple(privacy_losses)


def _question_of(one: ProtectedColumn) -> Callable[[Table], Ints]:
    """Make the function that a column sums: indicators of its categories, or its units."""
    if one.distances is not None:
        return partial(_present, name=one.name, count=len(one.distances))
    ranked = NominalOrder.DECLARED if one.order is None else NominalOrder.MARGINALITY
    return partial(units_of, name=one.name, ranked=ranked)


def _present(table: Table, name: str, count: int) -> Ints:
    """Return the indicators of each record's category, one column per category."""
    present: Ints = (table.codes(name)[:, None] == np.arange(count)).astype(np.int64)
    return present


def _put_codes(table: Table, codes: Ints, name: str) -> Table:
    return table.with_codes(name, codes)


def _put_units(table: Table, units: Floats, one: ProtectedColumn) -> Table:
    return _release_column(table, one, units)


def public_only(setting: Setting[NoisyParameters]) -> None:
    """Refuse on Spark what depends on all records; it would refute the claim anyway.

    Raises:
        InputError: bounds or scale come from the data.
    """
    for name in ("bounds", "scale"):
        if getattr(setting.parameters, name, None) is Origin.FROM_DATA:
            raise InputError(f"[protect], {name}: expected public on Spark, found from-data.")


def _release_column(table: Table, axis: ProtectedColumn, units: Floats) -> Table:
    values = axis.grid.decode(units)
    if axis.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        # A single category gets a grid as wide as that of two.
        last = len(table.categories(axis.name)) - 1
        codes = np.rint(values).clip(0, last).astype(np.int64)
        return table.with_codes(axis.name, codes if axis.order is None else axis.order[codes])
    return table.with_numbers(axis.name, values)


G = TypeVar("G")


def each(
    given: Sequence[ProtectedColumn],
    partition: G,
    prices: Sequence[Fraction],
    touched: Sequence[int] | int = 1,
) -> Iterable[tuple[ProtectedColumn, G, Purchase]]:
    """Pair all columns with one partition, or with groups in blocks."""
    reach = [touched] * len(given) if isinstance(touched, int) else touched
    return [
        (axis, partition, Purchase(axis.name, price, count))
        for axis, price, count in zip(given, prices, reach, strict=True)
    ]


def mask_in_group_order(
    table: Table, privacy_losses: tuple[PrivacyLoss, ...], partition: Partition
) -> Masked:
    """Make a masked table whose canonical order is that of its groups."""
    return Masked(table, privacy_losses, np.argsort(partition.labels, kind="stable"))
