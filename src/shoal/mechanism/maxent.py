"""Rows from noisy tables of all columns, by the distribution of greatest entropy near them.

1. Every column is counted by itself: categories one by one, a number over the leaves of a private
   tree of its own (`privtree.marginal`). That takes a public share of epsilon.
2. From these noisy counts, codes are put into at most G groups a column.
3. Over groups, either one table of all columns is counted (FULL), or a table for every two
   columns (PAIRS) or every three (TRIPLES). K tables share what is left of epsilon.
4. A distribution over groups is fitted to all noisy counts (`fit`).
5. n rows are drawn systematically, and inside a group codes follow the counts of step 1.

With interactions counted over groups only, the distribution of greatest entropy is (joint of the
groups) x (each code given its group, column by column). So what is fitted has as many cells as
there are combinations of groups, never of codes, and numbers need no bins. Where epsilon is small,
K tables are K times noisier than one, and one coarse table of all columns beats all pairs.

Theorem (ours, unreviewed): epsilon, change-one neighbours, n public. Proof. A changed record moves
one unit between two cells of a table, so that a table's counts move by at most 2 in all, and noise
of scale 2 / e makes it cost e. A number's tree costs what `privtree` proves. Groups are
functions of what step 1 gave, so that each table of step 3 is fixed by earlier outputs
(adaptive composition): the prices add up to epsilon. The plan, G, the shares and tau follow from n,
epsilon, the number of columns, their kinds and sizes. Steps 4 and 5 see noisy counts, n and fresh
randomness. QED

Not promised: that little survives is not noticed. With P pairs and r = n epsilon / P below 50
hardly more than single columns survives; every further column lowers the accuracy of the rest.
The constants of the plan were tuned on Adult, five and eight columns (mixed-tables note).

References:
    McKenna, Miklau, Sheldon, "Winning the NIST contest: a scalable and general approach to
    differentially private synthetic data", JPC 11 (2021). doi:10.29012/jpc.778: measure, fit, draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import comb, floor, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Kind, Noise, Progress, Spending, silent
from shoal.errors import InputError
from shoal.mechanism.answers import noisy_answers
from shoal.mechanism.attributes import Attribute, Drawn, Measurement, records
from shoal.mechanism.fit import DENSE, Fitted, Target, fit
from shoal.mechanism.groups import anyhow, neighbours, quantiles
from shoal.mechanism.privtree import Marginal, marginal
from shoal.mechanism.projection import project
from shoal.mechanism.records import Columns
from shoal.mechanism.systematic import spread, systematic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LINE = 256
"""An ordinal of more codes than that is counted as a number is."""
MOST_GROUPS = 32


class Tables(StrEnum):
    """Which tables of several columns are counted."""

    FULL = "full"
    PAIRS = "pairs"
    TRIPLES = "triples"


@dataclass(frozen=True)
class Plan:
    """How epsilon is used; a function of public quantities.

    Attributes:
        tables: which tables are counted in step 3.
        groups: at most so many a column, G.
        singles: share of epsilon for step 1.
        weights: of the columns within that share.
        tau: how many times the fit overstates the noise's variance.
        strength: r = n epsilon / P, P the number of pairs: what is there for each pair.
    """

    tables: Tables
    groups: int
    singles: Fraction
    weights: tuple[int, ...]
    tau: float
    strength: Fraction

    def __post_init__(self) -> None:
        if not 2 <= self.groups <= 255 or not 0 < self.singles < 1 or self.tau <= 0:
            raise InputError("A plan needs 2 to 255 groups, a share between 0 and 1, and tau > 0.")

    @property
    def order(self) -> int | None:
        """How many columns a table has, if not all."""
        return {Tables.PAIRS: 2, Tables.TRIPLES: 3}.get(self.tables)


def plan(attributes: Sequence[Attribute], *, n: int, epsilon: Fraction) -> Plan:
    """Choose tables, groups and shares from public quantities alone.

    With m columns, P = m (m - 1) / 2 and r = n epsilon / P:

        FULL     if r < 350 and G = floor((n epsilon / 10)^(1/m)) >= 2
        TRIPLES  if 3 <= m <= 5, r >= 10^4, and the cells of 16 groups a column can all be held
        PAIRS    otherwise, G = sqrt(0.08 r) between 3 and 32

    The single columns' share is 0.5 (FULL), 0.35 (r < 700), 0.15 (r < 10^4) or 0.1; at least 0.3
    with a numeric column and 0.6 if all are; numeric columns count twice. tau = n epsilon / 100.
    """
    m = len(attributes)
    if m < 2:
        raise InputError("maxent joins columns; expected at least two, found one.")
    lines = [_is_line(attribute) for attribute in attributes]
    budget = n * epsilon
    strength = budget / comb(m, 2)
    coarse = _root(budget / 10, m)
    cells = prod(min(attribute.size, 16) for attribute in attributes)
    if strength < 350 and coarse >= 2:
        tables, groups, singles = Tables.FULL, min(coarse, MOST_GROUPS), Fraction(1, 2)
    else:
        tables = Tables.PAIRS
        groups = min(max(round(sqrt(0.08 * strength)), 3), MOST_GROUPS)
        singles = Fraction(35 if strength < 700 else 15 if strength < 10_000 else 10, 100)
        if 3 <= m <= 5 and strength >= 10_000 and cells <= DENSE:
            tables, groups = Tables.TRIPLES, 16
    if any(lines):
        singles = max(singles, Fraction(3, 10))
    if all(lines):
        singles = max(singles, Fraction(3, 5))
    weights = tuple(2 if line else 1 for line in lines)
    return Plan(tables, groups, singles, weights, float(budget) / 100, strength)


def maxent(
    codes: Sequence[NDArray[Any]] | Columns,
    attributes: Sequence[Attribute],
    *,
    epsilon: Fraction,
    noise: Noise,
    rng: np.random.Generator,
    tables: Plan | None = None,
    progress: Progress = silent,
) -> Drawn:
    """Draw as many rows as there are records; the module says how, and proves the price.

    Rows are codes in every column.

    Args:
        codes: one array of codes a column, or records that answer for them.
        attributes: their public descriptions.
        epsilon: for all of it; change-one neighbours, n public.
        noise: where draws come from.
        rng: for drawing rows.
        tables: by default what `plan` chooses; another one must not depend on the data.
        progress: called with each stage.

    Raises:
        InputError: for fewer than two columns.
        InternalError: if the fit does not settle (`fit`).

    Cost: O(n) a table; the fit takes seconds for up to twelve columns, whatever n.
    """
    columns = records(codes, attributes)
    n = len(columns)
    chosen = tables or plan(attributes, n=n, epsilon=epsilon)
    singles: list[_Single] = []
    shares = sum(chosen.weights)
    for attribute, weight in zip(attributes, chosen.weights, strict=True):
        progress("counting columns", len(singles), len(attributes))
        each = chosen.singles * epsilon * weight / shares
        count = _line if _is_line(attribute) else _categories
        single = count(
            columns, len(singles), attribute, most=chosen.groups, epsilon=each, noise=noise
        )
        singles.append(single)
    sizes = [single.size for single in singles]
    sets = list(combinations(range(len(attributes)), chosen.order or len(attributes)))
    each = (1 - chosen.singles) * epsilon / len(sets)
    spendings = [spending for single in singles for spending in single.spendings]
    measurements = [
        Measurement((j,), (single.edges,), single.counts, single.scale)
        for j, single in enumerate(singles)
    ]
    targets = [single.target(j, n) for j, single in enumerate(singles)]
    progress("counting tables", 0, len(sets))
    counts = columns.total(partial(_all_tables, singles=singles, sets=sets))
    begins = np.cumsum([0, *(prod(sizes[j] for j in members) for members in sets)])
    for number, members in enumerate(sets):
        progress("counting tables", number, len(sets))
        exact = counts[begins[number] : begins[number + 1]].reshape([sizes[j] for j in members])
        name = f"table of {' x '.join(attributes[j].name for j in members)}"
        noisy, spending = noisy_table(exact, target=name, epsilon=each, noise=noise)
        spendings.append(spending)
        groups = tuple(singles[j].groups for j in members)
        measurements.append(Measurement(members, groups, noisy, spending.scale))
        targets.append(Target(members, noisy.ravel() / n, _precision(n, spending.scale)))
    fitted = fit(
        sizes,
        [single.prior(n) for single in singles],
        targets,
        tau=chosen.tau,
        particles=min(max(2 * n, 100_000), 300_000),
        rng=rng,
        progress=progress,
    )
    progress("drawing rows", 0, 1)
    rows = _rows(fitted, singles, n, rng)
    facts = {
        "tables": chosen.tables.value,
        "number of tables": len(sets),
        "groups": sizes,
        "share of single columns": float(chosen.singles),
        "tau": fitted.tau,
        "n epsilon a pair": float(chosen.strength),
        "fit": "all cells" if fitted.dense else "particles",
        "effective sample": fitted.spread,
        "stages": fitted.stages,
    }
    return Drawn(rows, tuple(spendings), tuple(measurements), facts)


def _all_tables(
    columns: Sequence[Integers], singles: "Sequence[_Single]", sets: Sequence[Sequence[int]]
) -> Integers:
    """Records in each cell of all tables, one table after the other."""
    grouped = [single.grouped(column) for single, column in zip(singles, columns, strict=True)]
    sizes = [single.size for single in singles]
    return np.concatenate(
        [
            table_counts([grouped[j] for j in members], [sizes[j] for j in members]).ravel()
            for members in sets
        ]
    )


def _one_table(columns: Sequence[Integers], member: int, size: int) -> Integers:
    return table_counts([columns[member]], [size])


def table_counts(groups: Sequence[Integers], sizes: Sequence[int]) -> Integers:
    """Records in each cell of a table, one axis a column; blocks of records add up.

    >>> table_counts([np.array([0, 1, 1]), np.array([0, 0, 0])], [2, 2])
    array([[1, 0],
           [2, 0]])
    """
    cell = np.zeros(len(groups[0]), dtype=np.int64)
    for group, size in zip(groups, sizes, strict=True):
        cell = cell * size + group
    return np.bincount(cell, minlength=prod(sizes)).astype(np.int64).reshape(tuple(sizes))


def noisy_table(
    exact: Integers, *, target: str, epsilon: Fraction, noise: Noise
) -> tuple[Integers, Spending]:
    """Add noise to the counts of a table; a changed record moves them by at most 2 in all."""
    return noisy_answers(exact, sensitivity=2, epsilon=epsilon, target=target, noise=noise)


@dataclass(frozen=True, eq=False)
class _Single:
    """What step 1 learnt of a column, and its groups.

    Attributes:
        edges: first code of each bin of the noisy counts, and the number of codes at the end.
        counts: the noisy counts of bins.
        projected: the same, non-negative and with sum n.
        members: group of each bin.
        summed: what is believed of each group's count.
        precision: n^2 over the variance of that, before tau.
        scale: of the counts' noise.
        line: whether bins are runs of ordered codes.
    """

    edges: Integers
    counts: Integers
    projected: Floats
    members: Integers
    summed: Floats
    precision: float
    scale: Fraction
    line: bool
    spendings: tuple[Spending, ...]

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.summed.size

    @property
    def groups(self) -> Integers:
        """Group of each code; for ordered bins, the first code of each group and the end."""
        if not self.line:
            return self.members
        return np.append(self.edges[:-1][np.diff(self.members, prepend=-1) > 0], self.edges[-1])

    def grouped(self, column: Integers) -> Integers:
        """The group of each record."""
        if not self.line:
            return self.members[column]
        return np.searchsorted(self.groups[1:-1], column, side="right").astype(np.int64)

    def target(self, j: int, n: int) -> Target:
        """The noisy counts of its groups, as what the fit has to meet."""
        return Target((j,), self.summed / n, self.precision)

    def prior(self, n: int) -> Floats:
        """Shares of the groups, none of them zero: half a record and 0.3 standard deviations."""
        shares = np.maximum(self.summed / n, 0.0) + 0.5 / n + 0.3 / sqrt(self.precision)
        prior: Floats = shares / shares.sum()
        return prior

    def fill(self, group: int, total: int, rng: np.random.Generator) -> Integers:
        """Codes of so many rows of a group, in order."""
        bins = np.flatnonzero(self.members == group)
        if self.line:
            edges = self.edges[bins[0] : bins[-1] + 2]
            return spread(edges, self.projected[bins], total, rng)
        return np.repeat(bins, systematic(self.projected[bins] + 1e-9, total, rng))


def _is_line(attribute: Attribute) -> bool:
    """Whether a column is counted over the leaves of a tree."""
    return attribute.numeric or (attribute.kind is Kind.ORDINAL and attribute.size > LINE)


def _line(
    columns: Columns,
    member: int,
    attribute: Attribute,
    *,
    most: int,
    epsilon: Fraction,
    noise: Noise,
) -> _Single:
    """Count a number over the leaves of its tree; groups are runs of leaves."""
    found: Marginal = marginal(columns, attribute, epsilon=epsilon, noise=noise, member=member)
    members = quantiles(found.projected, most)
    # Leaves that are empty but for noise were set to zero, which helps where many make a group.
    summed = np.bincount(members, found.projected).astype(np.float64)
    a_group = max(members.size / summed.size, 1.0)
    return _Single(
        edges=found.edges,
        counts=found.counts,
        projected=found.projected.astype(np.float64),
        members=members,
        summed=summed,
        precision=_precision(len(columns), found.scale) / (2 * a_group),
        scale=found.scale,
        line=True,
        spendings=found.spendings,
    )


def _categories(
    columns: Columns,
    member: int,
    attribute: Attribute,
    *,
    most: int,
    epsilon: Fraction,
    noise: Noise,
) -> _Single:
    """Count every category of the public domain, those that no record has too."""
    exact = columns.total(partial(_one_table, member=member, size=attribute.size))
    name = f"{attribute.name}: counts of its categories"
    counts, spending = noisy_table(exact, target=name, epsilon=epsilon, noise=noise)
    projected = project(counts, len(columns))
    group = neighbours if attribute.kind is Kind.ORDINAL else anyhow
    members = group(projected, most)
    summed = np.bincount(members, counts).astype(np.float64)
    return _Single(
        edges=np.arange(attribute.size + 1),
        counts=counts,
        projected=projected,
        members=members,
        summed=summed,
        precision=_precision(len(columns), spending.scale) * summed.size / attribute.size,
        scale=spending.scale,
        line=False,
        spendings=(spending,),
    )


def _precision(n: int, scale: Fraction) -> float:
    """n^2 over the variance of the noise, which is that of Laplace noise, 2 scale^2."""
    return float(n * n / (2 * scale * scale))


def _rows(
    fitted: Fitted, singles: Sequence[_Single], n: int, rng: np.random.Generator
) -> tuple[Integers, ...]:
    """N rows of groups by systematic sampling, then codes inside groups, in random order."""
    cells = np.repeat(np.arange(len(fitted.weights)), systematic(fitted.weights, n, rng))
    cells = cells[rng.permutation(n)]
    rows = []
    for j, single in enumerate(singles):
        groups = fitted.groups[cells, j]
        # Rows are in random order already, and a stable sort keeps it inside a group; but
        # all columns would then share that order, so that each needs one of its own.
        order = rng.permutation(n)
        order = order[np.argsort(groups[order], kind="stable")]
        totals = np.bincount(groups, minlength=single.size)
        parts = [single.fill(int(g), int(totals[g]), rng) for g in np.flatnonzero(totals)]
        column = np.empty(n, dtype=np.int64)
        column[order] = np.concatenate(parts)
        rows.append(column)
    return tuple(rows)


def _root(number: Fraction, degree: int) -> int:
    """The largest whole g with g^degree <= number."""
    root: int = floor(float(number) ** (1 / degree)) + 1
    while root > 0 and root**degree > number:
        root -= 1
    return root
