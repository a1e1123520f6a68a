"""The common part of the private spatial trees: space, height, and rows drawn from the leaves.

Every released column but one is an axis of the space; that one, a confidential column, is counted
in each box of the last level. The mechanism and its proof are in `shoal.mechanism.spatial_trees`,
for tables that differ by one added record. With `neighbours = "change-one"` the tree is grown at
half the epsilon, and the accounting doubles it back: a change is a removal and an addition.

The number of rows n. For change-one it is public and the root's exact count. For add-remove it is
measured first, at a twentieth of epsilon, and nothing else uses it: the height, the root's count
and the number of rows that are drawn follow from the noisy one. It is not measured if none of them
is asked for: boxes are released whose counts are not fitted, and the height is stated. The same is
done for change-one where a person may have up to r rows. An added or removed person with r rows is
r records, one after the other, so the tree is grown at epsilon / r
(`shoal.methods.noise.contributions`).

The height, unless stated: floor(log2(n e)) cuts, where e is the epsilon for add-remove, so a
box cut to the end has 1 / e people on average; at least 1, at most as many as the axes have room
for, and no more than let boxes times bins stay within 300,000, so noise takes seconds. That is
some three cuts more than log2(n e / 10): boxes with few people are not cut to the end, and on
Adult more height had lower errors at every epsilon from 0.1 to 10.

Counts (`levels`, `fit`): by default boxes of all levels are counted, made consistent, and none is
negative. The paper of 2013 leaves out how its trees are made and says that “noise is added to the
histogram counts” of the leaves; the nearest reading is `levels = "leaves"` with `fit = "none"`:
every box is cut to the end, the leaves have all of epsilon that medians leave, and are released as
drawn, negative or not. With counts on all levels, `fit = "none"` and `stop_below = 0`, they have
41% of epsilon in a quadtree of 12 cuts on five axes: another algorithm, there for comparison.

Rows (`output = "rows"`): the counts of boxes and values, negative ones as 0, are rounded to whole
numbers that add up to n, or to the noisy number, by systematic sampling; each row is then uniform
over the cells of its box. All that is post-processing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import partial
from math import ceil, floor, log2
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from shoal.core import (
    Claim,
    Kind,
    LDiversity,
    Neighbours,
    PrivacyLoss,
    ReleaseForm,
    Role,
    SpatialDecomposition,
    Status,
    TCloseness,
)
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError, InternalError
from shoal.io.table import Table
from shoal.mechanism.consistent_counts import CountFit, Level, whole
from shoal.mechanism.spatial_trees import (
    UNKNOWN_TOTAL,
    Design,
    Records,
    grow,
    known_total,
    noisy_total,
)
from shoal.methods.distributed_rows import CountableRows, Distributed, HeldTable
from shoal.methods.method import (
    ContributionProof,
    CostModel,
    DistributedRun,
    Example,
    Masked,
    Method,
    Promises,
    ReleaseForms,
    Setting,
    Tools,
)
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.noise.noisy_microaggregation import EpsilonParameters
from shoal.methods.trees.spatial_encoding import SpatialEncoding, redrawn, spatial_encoding
from shoal.policy.values import MOST, Number, choice

MOST_COUNTS = 300_000
"""Largest number of boxes times bins on the last level."""
SOURCE = (
    "Cormode, Procopiuc, Shen, Srivastava and Yu, Differentially private spatial decompositions, "
    "ICDE (2012), doi:10.1109/ICDE.2012.16, and Empirical privacy and empirical utility of "
    "anonymized data, ICDE Workshops (2013)"
)


class TreeOutput(StrEnum):
    """What is released from a tree."""

    ROWS = "rows"
    TREE = "tree"


class CountedLevels(StrEnum):
    """Which boxes are counted."""

    ALL = "all"
    LEAVES = "leaves"


class SpatialTreeParameters(EpsilonParameters):
    """Parameters of every spatial tree."""

    output: Annotated[TreeOutput, choice(TreeOutput)] = Field(
        TreeOutput.ROWS,
        title="What is released",
        description="What is released: rows drawn from the tree, or its boxes with counts (tree).",
    )
    height: Annotated[int, Field(ge=1, le=MOST)] | None = Field(
        None,
        title="Number of cuts",
        description="Number of cuts above a box of the last level; by default a public rule.",
    )
    count: str | None = Field(
        None,
        title="Column that is counted",
        description="The confidential column that is counted in each box; by default the only "
        "one. All others become axes.",
    )
    bins: Annotated[int, Field(ge=2, le=1000)] = Field(
        16,
        title="Bins of a counted number",
        description="Into how many equal bins a counted number or date is cut.",
    )
    levels: Annotated[CountedLevels, choice(CountedLevels)] = Field(
        CountedLevels.ALL,
        title="Which boxes are counted",
        description="Which boxes are counted: those of every level (all), or the last alone "
        "(leaves), which then have all of epsilon but the share for cuts. Leaves with no fit are "
        "the nearest reading of Cormode et al. 2013; state the height then, as all boxes are cut.",
    )
    fit: Annotated[CountFit, choice(CountFit)] = Field(
        CountFit.NON_NEGATIVE,
        title="How counts are fitted",
        description="How noisy counts are fitted: not at all (none), parents as sums of their "
        "parts (least-squares), or the same with no count below 0 (non-negative).",
    )
    stop_below: Annotated[Number, Field(ge=0, le=1000)] = Field(
        Decimal(1),
        title="Smallest box that is cut again",
        description="Do not cut a box again whose noisy count is below so many standard "
        "deviations of the next level's noise; 0 cuts all.",
    )


Shape = Callable[[Setting[Any]], tuple[int, Fraction]]
"""Of a tree: cuts between one count and the next, and the share of epsilon for medians."""


def tree_method(
    name: str,
    summary: str,
    *,
    parameters: type[SpatialTreeParameters],
    shape: Shape,
    basis: str,
    cost: CostModel,
) -> Method[Any]:
    """Make a method that grows a tree and releases its boxes, or rows drawn from them."""

    def claims(setting: Setting[SpatialTreeParameters]) -> tuple[Claim, ...]:
        adds = setting.parameters.neighbours is Neighbours.ADD_REMOVE
        claim = epsilon_claims.privacy_claim(
            setting,
            Status.PROVED,
            basis=basis,
            source=f"{SOURCE}; thresholds and permute-and-flip: {epsilon_claims.OURS}",
            assumes=[contributions.NOT_EMPTY] if adds else [],
        )
        return (claim,)

    def run_distributed(
        rows: CountableRows, setting: Setting[SpatialTreeParameters], tools: Tools
    ) -> Distributed:
        return _run(rows, setting, tools, *shape(setting))

    return Method(
        name=name,
        summary=summary,
        reference=SOURCE,
        parameters=parameters,
        example=Example({"epsilon": 1}),
        forms=ReleaseForms((ReleaseForm.SYNTHETIC, ReleaseForm.TREE), implied=_form),
        promises=Promises(claims, _not_claimed, ContributionProof.ANY),
        run=lambda table, setting, tools: to_masked(
            run_distributed(HeldTable(table), setting, tools)
        ),
        refuse=_refuse,
        input=noisy_microaggregation.UNSORTED,
        distributed=DistributedRun(run_distributed),
        cost=cost,
    )


def to_masked(done: Distributed) -> Masked:
    """Wrap the result of counts as that of a run on one machine."""
    if done.data is None:
        raise InternalError("The method returned neither synthetic rows nor boxes.")
    return Masked(done.data, done.privacy_losses, notes=done.notes, extras=done.extras)


def _form(parameters: SpatialTreeParameters) -> ReleaseForm:
    return ReleaseForm.TREE if parameters.output is TreeOutput.TREE else ReleaseForm.SYNTHETIC


def _not_claimed(setting: Setting[SpatialTreeParameters]) -> tuple[str, ...]:
    if setting.release_form is ReleaseForm.TREE:
        return ("k-anonymity: a box may contain one person, or none.",)
    return (
        "k-anonymity: rows are synthetic, and one may happen to have a person's values.",
        (
            "The distribution inside a box: rows are drawn uniformly there, however its people "
            "are distributed."
        ),
    )


def _refuse(setting: Setting[SpatialTreeParameters]) -> None:
    noisy_microaggregation.refuse_bare(setting)
    noisy_microaggregation.nobody_beside(setting)
    tested = [g.name for g in setting.required if isinstance(g, LDiversity | TCloseness)]
    if tested and setting.release_form is ReleaseForm.TREE:
        raise InputError(
            f"[require]: {tested[0]} cannot be tested on boxes, because their counts are noisy. "
            'Release rows (output = "rows"), or drop the requirement.'
        )
    if setting.release_form is ReleaseForm.SYNTHETIC:
        contributions.refuse_many_rows(setting)
    counted = find_counted_column(setting)
    if counted is not None and len(setting.columns) < 2:
        raise InputError(
            "A tree needs at least one column to cut, besides the column that is counted."
        )
    bins = len(_Histogram.of(setting).edges) - 1
    most = floor(log2(MOST_COUNTS / bins)) if bins <= MOST_COUNTS else 0
    if most < 1:
        raise InputError(
            f"Column '{counted}' has {bins:,} values to count in each box; expected at most "
            f"{MOST_COUNTS // 2:,}."
        )
    if (setting.parameters.height or 1) > most:
        raise InputError(
            f"[protect], height: expected at most {most}, which keeps boxes times values within "
            f"{MOST_COUNTS:,}, found {setting.parameters.height}."
        )


def find_counted_column(setting: Setting[SpatialTreeParameters]) -> str | None:
    """Return the confidential column that is counted in each box: the named or the only one."""
    schema, named = setting.schema, setting.parameters.count
    confidential = [name for name in setting.columns if schema[name].role is Role.CONFIDENTIAL]
    if named is not None:
        if named not in confidential:
            raise InputError(f"[protect], count: no confidential column named '{named}'.")
        return named
    if len(confidential) > 1:
        raise InputError(
            f"[protect], count: expected one of the confidential columns "
            f"{', '.join(confidential)}; the others become axes of the tree."
        )
    return confidential[0] if confidential else None


@dataclass(frozen=True, eq=False)
class _Histogram:
    """The bins of the counted column.

    Attributes:
        edges: first cell of each bin, and the end; one bin for all if nothing is counted.
    """

    places: SpatialEncoding | None
    edges: Ints

    @classmethod
    def of(cls, setting: Setting[SpatialTreeParameters]) -> "_Histogram":
        name = find_counted_column(setting)
        if name is None:
            return cls(None, np.array([0, 1]))
        counted = spatial_encoding(setting.schema[name])
        bins = counted.count
        if counted.order is None:
            bins = min(bins, setting.parameters.bins)
        return cls(counted, np.arange(bins + 1) * counted.count // bins)

    def texts(self) -> tuple[str, ...]:
        if self.places is None:
            return ("",)
        ends = zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True)
        return tuple(self.places.text(*pair) for pair in ends)

    def bins(self, table: Table) -> Ints | None:
        if self.places is None:
            return None
        return np.searchsorted(self.edges, self.places.cells(table), side="right") - 1


def _run(
    rows: CountableRows,
    setting: Setting[SpatialTreeParameters],
    tools: Tools,
    stride: int,
    structure: Fraction,
) -> Distributed:
    schema, counted, parameters = setting.schema, find_counted_column(setting), setting.parameters
    histogram = _Histogram.of(setting)
    space = [spatial_encoding(schema[name]) for name in setting.columns if name != counted]
    bins = len(histogram.edges) - 1
    root, left, spent = _root(len(rows), setting, tools)
    height = parameters.height or public_height(int(root.counts[0]), left, bins, space)
    tree = grow(
        rows.walk(partial(_records, space=space, histogram=histogram)),
        [axis.axis for axis in space],
        bins=bins,
        histogram=histogram.places is not None,
        root=root,
        design=Design(
            left,
            height,
            min(stride, height),
            structure,
            leaves_only=parameters.levels is CountedLevels.LEAVES,
            patience=float(parameters.stop_below) or None,
        ),
        noise=tools.noise,
        progress=tools.progress,
    )
    total, counts = tree.estimates(parameters.fit)
    privacy_losses = (*spent, *tree.privacy_losses)
    if setting.release_form is ReleaseForm.TREE:
        boxes = _boxes(space, histogram, (tree.lower, tree.upper), counts)
        return Distributed(data=boxes, privacy_losses=privacy_losses)
    number = setting.rows or max(1, round(total))
    drawn = _draw_cells(tree.lower, tree.upper, np.maximum(counts, 0.0), number, tools.rng)
    data = _rows(rows.template, space, histogram, drawn, tools.rng)
    return Distributed(data=data, privacy_losses=privacy_losses)


def _records(table: Table, space: Sequence[SpatialEncoding], histogram: "_Histogram") -> Records:
    """Encode the records of a block for the mechanism."""
    return Records(np.column_stack([axis.cells(table) for axis in space]), histogram.bins(table))


def _root(
    records: int, setting: Setting[SpatialTreeParameters], tools: Tools
) -> tuple[Level, Fraction, tuple[PrivacyLoss, ...]]:
    """Return the number of records, the rest of epsilon, and what the count cost."""
    epsilon = contributions.row_epsilon(setting)
    if setting.parameters.neighbours is Neighbours.CHANGE_ONE:
        epsilon /= 2
    if contributions.rows_are_public(setting):
        return known_total(records), epsilon, ()
    stated = setting.parameters
    if (stated.output, stated.fit) == (TreeOutput.TREE, CountFit.NONE) and stated.height:
        return UNKNOWN_TOTAL, epsilon, ()
    price = epsilon * contributions.SHARE
    root, privacy_loss = noisy_total(records, price, tools.noise)
    return root, epsilon - price, (privacy_loss,)


def public_height(
    total: int, epsilon: Fraction, bins: int, space: Sequence[SpatialEncoding]
) -> int:
    """Return the number of cuts above a leaf, by the rule in this module's docstring."""
    wanted = floor(log2(max(float(total * epsilon), 1.0)))
    room = sum(ceil(log2(axis.count)) for axis in space)
    return max(1, min(wanted, room, floor(log2(MOST_COUNTS / bins))))


def _boxes(
    space: Sequence[SpatialEncoding],
    histogram: _Histogram,
    ends: tuple[Ints, Ints],
    counts: Floats,
) -> SpatialDecomposition:
    sides = [axis.ends(*(side[:, place] for side in ends)) for place, axis in enumerate(space)]
    kinds = [axis.column.kind for axis in space]
    return SpatialDecomposition(
        columns=tuple(axis.column.name for axis in space),
        lower=np.column_stack([lower for lower, _ in sides]),
        upper=np.column_stack([upper for _, upper in sides]),
        counts=counts,
        values=histogram.texts(),
        column=None if histogram.places is None else histogram.places.column.name,
        discrete=tuple(kind in {Kind.ORDINAL, Kind.NOMINAL} for kind in kinds),
    )


def _draw_cells(
    lower: Ints, upper: Ints, counts: Floats, rows: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw rows from boxes: codes of the space, and each row's bin of the histogram."""
    people = whole(counts.ravel(), rows, float(rng.random()))
    box, value = np.divmod(np.repeat(np.arange(people.size), people), counts.shape[1])
    return rng.integers(lower[box], upper[box]), value


def _rows(
    table: Table,
    space: Sequence[SpatialEncoding],
    histogram: _Histogram,
    drawn: tuple[Ints, Ints],
    rng: np.random.Generator,
) -> Table:
    cells, value = drawn
    columns = [(axis, cells[:, place]) for place, axis in enumerate(space)]
    if histogram.places is not None:
        edges = histogram.edges
        columns.append((histogram.places, rng.integers(edges[value], edges[value + 1])))
    return redrawn(table, columns)
