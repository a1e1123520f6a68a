"""Targeted record swapping: similar households trade their areas, those that are rare first.

The protected columns are levels of geography, the coarsest first. A household is at risk at a level
if a member's other quasi-identifiers are shared by fewer than `rare` rows of its area there. It
trades areas with a household of as many members who are alike in `similar`, in another area of that
level and in the same area above. Households that are not at risk trade at the finest level, until
the rate is reached. Members move together, and everything but the area stays. A household with
members in several areas does not trade.

Nothing is promised. A row that was not swapped is as it was, and no bound is known on what a
recipient can infer. What is said to protect is doubt about which rows were swapped, so the rate is
drawn in a public range with secret randomness, and nothing that leaves says what it was.

What it damages: every relation between an area and other columns, more where more is swapped; all
counts of an area by number and size of households, and all relations without an area, stay.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shoal.core import Role
from shoal.core._arrays import Ints
from shoal.core.row_order import row_keys
from shoal.errors import InputError, did_you_mean
from shoal.io.table import Table
from shoal.methods.grouping import microaggregation
from shoal.methods.method import (
    CellFacts,
    CostModel,
    Example,
    Masked,
    Method,
    MethodInput,
    Parameters,
    Promises,
    Setting,
    Tools,
    no_claims,
)
from shoal.policy.values import Share, Size, fail

SOURCE = (
    "Dalenius and Reiss, Data-swapping: a technique for disclosure control, Journal of Statistical "
    "Planning and Inference 6 (1982), doi:10.1016/0378-3758(82)90058-1; targeted and between "
    "households as in the censuses of the United Kingdom"
)
TRIES = 200
"""Households that are looked at for a partner, at most."""
STEPS = 1 << 20
"""The rate is drawn in so many steps of its range."""


class RecordSwappingParameters(Parameters):
    """Parameters of record swapping."""

    rate: Annotated[list[Share], Field(min_length=2, max_length=2)] = Field(
        title="Share of households that are swapped, from and to",
        description="The range of the share of households that are swapped. The share itself is "
        "drawn in it and never shown; it is smaller where similar households are missing.",
    )
    rare: Size = Field(
        3,
        title="Rows in an area that count as rare",
        description="A household is swapped first if fewer than so many rows of its area share a "
        "member's other quasi-identifiers.",
    )
    similar: list[str] = Field(
        default_factory=list,
        title="Columns in which households are alike",
        description="Columns whose values are the same, member for member, in households that are "
        "swapped. Their sizes always are.",
    )

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.rate[0] > self.rate[1]:
            fail(f"expected a rate from low to high, found {list(map(str, self.rate))}.", "rate")
        return self


def _not_claimed(setting: Setting[Any]) -> tuple[str, ...]:
    areas = ", ".join(setting.columns)
    return (
        "Any bound on what can be inferred: swapping is unproven. Most rows are as they were.",
        f"k-anonymity: a combination is as rare as it was; of some rows {areas} belong to others.",
    )


def _refuse(setting: Setting[RecordSwappingParameters]) -> None:
    for name in setting.parameters.similar:
        if name not in setting.schema.names or name in setting.columns:
            guess = did_you_mean(name, setting.schema.names)
            raise InputError(
                f"[protect], similar: expected a released column beside the swapped ones, found "
                f"'{name}'.{guess}"
            )


def swap_partners(
    areas: Ints,
    risk: Ints,
    profile: Ints,
    wanted: int,
    shuffled: Callable[[int], Ints],
) -> Ints:
    """Choose the household with which each trades areas, itself if with none.

    Args:
        areas: households by levels, the coarsest first; each level numbers all areas.
        risk: level at which a household is at risk; the number of levels if at none.
        profile: households trade only with those of the same profile.
        wanted: households to swap.
        shuffled: a random order of so many things.
    """
    households, levels = areas.shape
    partner = np.arange(households)
    shuffle = shuffled(households)
    above = np.column_stack([np.zeros(households, np.int64), areas[:, :-1]])
    pools: list[dict[tuple[int, int], list[int]]] = [{} for _ in range(levels)]
    by_risk = shuffle[np.argsort(risk[shuffle], kind="stable")]
    for level in range(levels):
        for home in by_risk[::-1].tolist():  # the rarest last: a trade with one moves both
            pools[level].setdefault((profile[home], above[home, level]), []).append(home)
    left = wanted
    for home in by_risk.tolist():
        if left < 2:
            break
        if partner[home] != home:
            continue
        level = min(int(risk[home]), levels - 1)
        pool = pools[level][profile[home], above[home, level]]
        while pool and partner[pool[-1]] != pool[-1]:
            pool.pop()
        for other in reversed(pool[-TRIES:]):
            if partner[other] == other and areas[other, level] != areas[home, level]:
                partner[home], partner[other] = other, home
                left -= 2
                break
    return partner


def _run(table: Table, setting: Setting[RecordSwappingParameters], tools: Tools) -> Masked:
    parameters, names = setting.parameters, setting.columns
    homes = np.arange(len(table)) if table.households is None else table.households
    first = np.unique(homes, return_index=True)[1]
    codes = [_codes(table, name) for name in names]
    areas = np.column_stack([row_keys(codes[: n + 1], len(table)) for n in range(len(names))])
    keys = [name for name in setting.schema.with_role(Role.QUASI_IDENTIFIER) if name not in names]
    others = row_keys([_codes(table, name) for name in keys], len(table))
    risk = np.full(first.size, len(names))
    for level in reversed(range(len(names))):
        rows = row_keys([areas[:, level], others], len(table))
        rare = (np.bincount(rows) < parameters.rare)[rows]
        risk[np.unique(homes[rare])] = level
    profile = _profile(table, parameters.similar, homes)
    mixed = np.unique(homes[areas[:, -1] != areas[first, -1][homes]])
    profile[mixed] = int(profile.max(initial=0)) + 1 + np.arange(mixed.size)  # like no other
    low, high = parameters.rate
    share = low + (high - low) * int(tools.noise.uniform(STEPS, size=1)[0]) / STEPS
    partner = swap_partners(
        areas[first],
        risk,
        profile,
        int(share * first.size),
        lambda many: np.argsort(tools.noise.uniform(1 << 62, size=many), kind="stable"),
    )
    stays = partner[homes] == homes
    source = pl.Series(
        np.where(stays, np.arange(len(table)), first[partner][homes]), dtype=pl.UInt32
    )
    moved = [table.frame[name][source] for name in names]
    for series in moved:
        table = table.with_series(series)
    note = (
        f"At most {float(100 * high):g}% of households traded {', '.join(names)} with a similar "
        "one; which, and how many, is not published."
    )
    return Masked(table, notes=(note,))


def _profile(table: Table, similar: list[str], homes: NDArray[np.int64]) -> Ints:
    """Number the households by their size, and by what their members have in some columns."""
    alike = row_keys([_codes(table, name) for name in similar], len(table))
    order = np.lexsort((alike, homes))
    sizes = np.bincount(homes)
    member = np.arange(len(table)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = np.zeros((sizes.size, int(sizes.max(initial=0))), dtype=np.int64)
    members[homes[order], member] = alike[order] + 1
    return row_keys(members.T, sizes.size)


def _codes(table: Table, name: str) -> Ints:
    return table.frame[name].rank("dense").cast(pl.Int64).fill_null(0).to_numpy()


METHOD = Method(
    name="record-swapping",
    summary="Let similar households trade their areas, rare ones first (no proof).",
    reference=SOURCE,
    parameters=RecordSwappingParameters,
    example=Example({"rate": [Decimal("0.05"), Decimal("0.1")]}),
    forms=microaggregation.FORMS,
    promises=Promises(no_claims, _not_claimed),
    run=_run,
    refuse=_refuse,
    input=MethodInput(households=True),
    cost=CostModel(0.2, 0.2, 1.0, 0),
    cells=CellFacts(keeps_numbers=True),
)
