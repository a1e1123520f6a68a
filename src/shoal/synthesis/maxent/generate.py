"""Rows from noisy tables of all columns, by the distribution of greatest entropy near them.

1. Every column is counted by itself: categories one by one, a number over the leaves of a private
   tree of its own (`boxes.marginal`). That takes a public share of epsilon, and of a single column
   all of it: rows are then drawn from what is believed of its counts.
2. From these noisy counts, codes are put into at most G groups a column.
3. If it can be had for little, one number is asked: how much of the tables of two columns such
   groups lose (`coarseness`). Where it exceeds 0.25, columns nearly determine each other: then a
   tree over all columns is grown with what is left of epsilon (`mass_tree`), and rows are drawn
   from its leaves. Otherwise:
4. Over groups, tables of several columns are counted that together show every two of them: one
   table of all columns (FULL), of every two (PAIRS), of blocks of some columns (BLOCKS, chosen
   by `covers`), or of every three (TRIPLES). They share what is left of epsilon, but for a tenth of
   it where there is much: after a first fit it chooses and counts a few tables of three columns
   that the fit misses (`interactions`).
5. A distribution over groups is fitted to all noisy counts (`fit`). Where there are too many
   cells to hold, or little budget, it is fitted to the tables of two columns that the counted
   ones add up to; with little budget these tell how far they are to be believed (`posterior`).
6. n rows are drawn systematically, and inside a group codes follow the counts of step 1.

With interactions counted over groups only, the distribution of greatest entropy is (joint of the
groups) x (each code given its group, column by column). So what is fitted has as many cells as
there are combinations of groups, never of codes, and numbers need no bins. Where epsilon is small,
K tables are K times noisier than one, and few coarse tables of many columns beat all pairs.

Theorem (ours, unreviewed): epsilon, change-one neighbours, n public. Proof. A changed record moves
one unit between two cells of a table, so that a table's counts move by at most 2 in all, and noise
of scale 2 / e makes it cost e. A number's tree costs what `boxes` proves. Groups are
functions of what step 1 gave, so that the question of step 3 and each table of step 4 are fixed
by earlier outputs (adaptive composition): the prices add up to epsilon, and so they do on the way
through the tree, which is taken by the noisy answer, and through `interactions`, which has a proof
of its own. The plan (which tables, G, the shares of all of them, tau, how many threes) follows from
n, epsilon, the number of columns, their kinds and the sizes of their public domains. Steps 2, 5
and 6, what is believed of noisy counts too, see noisy counts, their scales, n and fresh
randomness. QED

Not promised: that little survives is not noticed. With P pairs and r = n epsilon / P below 50
hardly more than single columns survives; every further column lowers the accuracy of the rest.
The shares of epsilon and tau were tuned on Adult, five and eight columns (mixed-tables note); what
noise a table may have, and what is done for r < 700, on generated tables (docs/research.md).

References:
    McKenna, Miklau, Sheldon, "Winning the NIST contest: a scalable and general approach to
    differentially private synthetic data", JPC 11 (2021). doi:10.29012/jpc.778: measure, fit, draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Noise, PrivacyLoss, Progress, silent
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.mechanism.noisy_answers import noisy_table
from shoal.mechanism.records import Columns
from shoal.mechanism.systematic_sampling import systematic
from shoal.synthesis.domain import Domain, Measurement, SyntheticRows, records
from shoal.synthesis.maxent.coarseness import loss_of_groups
from shoal.synthesis.maxent.fit import DENSE, Fitted, Target, fit
from shoal.synthesis.maxent.mass_tree import mass_tree
from shoal.synthesis.maxent.one_way import (
    OneWayMarginal,
    counts_of_groups,
    is_line,
    learn,
    precision_of,
)
from shoal.synthesis.maxent.pair_covers import Cover, cover
from shoal.synthesis.maxent.posterior import taus
from shoal.synthesis.maxent.three_way import interactions, room

MOST_GROUPS = 32
WEAK = 50
"""r below which hardly more than single columns survives."""
LOST = Fraction(1, 4)
"""Mean total variation that groups may lose on tables of two columns before a tree is grown."""
ASKED = 60
"""Asking what groups lose costs that over n: the answer's noise then has scale 1/30."""
GROWN = "a tree"
"""What the facts say in place of tables where a tree was grown."""
NOISE = Fraction(1, 10)
"""Mean total variation that noise alone may give to a table of two columns."""


class PairMarginals(StrEnum):
    """Which tables of several columns are counted."""

    NONE = "none"
    FULL = "full"
    BLOCKS = "blocks"
    PAIRS = "pairs"
    TRIPLES = "triples"


@dataclass(frozen=True)
class MaxentPlan:
    """How epsilon is used; a function of public quantities.

    Attributes:
        tables: which tables are counted in step 4.
        groups: at most so many a column, G.
        singles: share of epsilon for step 1.
        weights: of the columns within that share.
        tau: how many times the fit overstates the noise's variance.
        learns: whether tables say themselves how far they are believed.
        strength: r = n epsilon / P, P the number of pairs: what is there for each pair.
        question: share of epsilon for asking what groups lose; 0 if that is not asked.
        cover: the columns of each table of step 4, and its part of what is left of epsilon.
        threes: how many tables of three columns are chosen after a first fit.
        further: share of epsilon for choosing and counting them.
    """

    tables: PairMarginals
    groups: int
    singles: Fraction
    weights: tuple[int, ...]
    tau: float
    strength: Fraction
    cover: Cover
    question: Fraction = Fraction(0)
    learns: bool = False
    threes: int = 0
    further: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not 2 <= self.groups <= 255 or not 0 < self.singles <= 1 or self.tau <= 0:
            raise InputError("A plan needs 2 to 255 groups, a share between 0 and 1, and tau > 0.")
        alone = self.tables is PairMarginals.NONE
        if alone != (self.singles == 1) or alone != (len(self.weights) == 1):
            raise InputError("A plan counts no tables of one column, and some of several.")
        if alone and self.question:
            raise InputError("A plan asks nothing about groups of one column.")
        seen = {pair for block in self.cover.blocks for pair in combinations(block, 2)}
        if seen != set(combinations(range(len(self.weights)), 2)):
            raise InputError("A plan needs tables that show every two columns together.")
        if min(self.question, self.further) < 0:
            raise InputError("A plan's shares must not be negative.")
        if not alone and self.question + self.further >= 1 - self.singles:
            raise InputError("A plan's question must leave something for what it is about.")
        if not 0 <= self.threes <= comb(len(self.weights), 3) or bool(self.threes) != (
            self.further > 0
        ):
            raise InputError("A plan pays for tables of three columns that there are, or for none.")


def plan(attributes: Sequence[Domain], *, n: int, epsilon: Fraction) -> MaxentPlan:
    """Choose tables, groups and shares from public quantities alone.

    One column is counted by itself, and takes all of epsilon. With m > 1 columns,
    P = m (m - 1) / 2 and r = n epsilon / P:

        TRIPLES  if 3 <= m <= 5, r >= 10^4, and the cells of 16 groups a column can all be held
        a cover  otherwise, for the largest G from 2 to 32 for which noise alone gives tables of
                 two columns a mean total variation of at most 0.1 (G = 2 if there is none)

    The cover of columns of min(size, G) groups is `covers.cover`. By its cost, and because the
    mean of a noise's absolute value is about 0.8 of its standard deviation, that total variation
    is 1.1 cost / (P (1 - share) n epsilon). It is called FULL if it has one table, PAIRS if all of
    them have two columns, and BLOCKS otherwise.

    The single columns' share is 0.7 (r < 50), 0.5 (r < 350), 0.35 (r < 700), 0.15 (r < 10^4) or
    0.1; at least 0.3 with a numeric column and 0.6 if all are; numeric columns count twice.
    tau = n epsilon / 100. That of each pair is learnt (`posterior.taus`) for r < 700 where the fit
    cannot hold all cells, and for r < 50 always. Where it holds them, tables of more columns say
    more than their pairs, to which what is learnt applies.

    What groups lose is asked, for the price 60 / n, where that is at most a tenth of epsilon,
    r >= 50, there are three columns or more, and a column has more codes than G: elsewhere the
    answer would be too dear, or could not change anything.

    Of three to 16 columns whose tables are PAIRS or BLOCKS, where r >= 1000, a tenth of what single
    columns leave is for tables of three columns: as many as have room for six groups a column
    with a total variation of 0.1 from noise (`interactions.room`), at most m; and none where that
    is fewer than three (m > 3): one table of many is not worth its price.
    """
    m = len(attributes)
    if m < 1:
        raise InputError("maxent needs a column, found none.")
    budget = n * epsilon
    tau = float(budget) / 100
    if m == 1:
        return MaxentPlan(PairMarginals.NONE, 2, Fraction(1), (1,), tau, budget, Cover((), (), 0.0))
    lines = [is_line(attribute) for attribute in attributes]
    sizes = [attribute.size for attribute in attributes]
    strength = budget / comb(m, 2)
    singles = next((share for bound, share in _SHARES if strength < bound), Fraction(1, 10))
    if any(lines):
        singles = max(singles, Fraction(3, 10))
    if all(lines):
        singles = max(singles, Fraction(3, 5))
    cells = prod(min(size, 16) for size in sizes)
    if 3 <= m <= 5 and strength >= 10_000 and cells <= DENSE:
        sets = tuple(combinations(range(m), 3))
        tables, groups, chosen = PairMarginals.TRIPLES, 16, Cover(sets, (1,) * len(sets), 0.0)
    else:
        most = float(NOISE * comb(m, 2) * (1 - singles) * budget) / 1.1
        groups, chosen = _finest(sizes, most)
        tables = _named(chosen)
    weights = tuple(2 if line else 1 for line in lines)
    finer = any(lines) or max(sizes) > groups
    asks = m > 2 and tables is not PairMarginals.TRIPLES and finer and strength >= WEAK
    question = Fraction(ASKED, n) / epsilon if asks else Fraction(0)
    if question > Fraction(1, 10):
        question = Fraction(0)
    fine = prod(min(size, groups) for size in sizes) > DENSE
    learns = strength < (_LITTLE if fine else WEAK)
    threes, further = 0, (1 - singles) / 10
    if (
        3 <= m <= _MOST_COLUMNS
        and strength >= _MUCH
        and tables in {PairMarginals.PAIRS, PairMarginals.BLOCKS}
    ):
        threes = min(room(n, further * epsilon, 1, NOISE) // 6**3, m, comb(m, 3))
    if threes < min(_FEWEST, comb(m, 3)) or not threes:
        threes, further = 0, Fraction(0)
    return MaxentPlan(
        tables,
        groups,
        singles,
        weights,
        tau,
        strength,
        chosen,
        question,
        learns,
        threes,
        further,
    )


_LITTLE, _MUCH = 700, 1000
_MOST_COLUMNS = 16  # of which all tables of three are looked at
_FEWEST = 3  # tables of three that are worth a choice
_SHARES = (
    (WEAK, Fraction(7, 10)),
    (350, Fraction(1, 2)),
    (_LITTLE, Fraction(35, 100)),
    (10_000, Fraction(15, 100)),
)


def _finest(sizes: Sequence[int], most: float) -> tuple[int, Cover]:
    """The largest number of groups whose cover costs at most so much, and that cover.

    More groups cost more, so that halving finds it.
    """
    low, high = 2, max(min(max(sizes), MOST_GROUPS), 2)
    best = cover([min(size, low) for size in sizes])
    while low < high:
        middle = (low + high + 1) // 2
        found = cover([min(size, middle) for size in sizes])
        if found.cost <= most:
            low, best = middle, found
        else:
            high = middle - 1
    return low, best


def _named(chosen: Cover) -> PairMarginals:
    if len(chosen.blocks) == 1:
        return PairMarginals.FULL
    return PairMarginals.PAIRS if all(len(b) == 2 for b in chosen.blocks) else PairMarginals.BLOCKS


def maxent(
    codes: Sequence[NDArray[Any]] | Columns,
    attributes: Sequence[Domain],
    *,
    epsilon: Fraction,
    noise: Noise,
    rng: np.random.Generator,
    tables: MaxentPlan | None = None,
    progress: Progress = silent,
) -> SyntheticRows:
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
        InputError: without a column.
        InternalError: if the fit does not settle (`fit`).

    Cost: O(n) a table; the fit takes seconds for up to twelve columns, whatever n.
    """
    columns = records(codes, attributes)
    chosen = tables or plan(attributes, n=len(columns), epsilon=epsilon)
    each = chosen.singles * epsilon / sum(chosen.weights)
    singles: list[OneWayMarginal] = []
    for attribute, weight in zip(attributes, chosen.weights, strict=True):
        progress("counting columns", len(singles), len(attributes))
        price = each * weight
        single = learn(
            columns, len(singles), attribute, most=chosen.groups, epsilon=price, noise=noise
        )
        singles.append(single)
    privacy_losses = [privacy_loss for single in singles for privacy_loss in single.privacy_losses]
    measurements = [
        Measurement((j,), (single.edges,), single.counts, single.scale)
        for j, single in enumerate(singles)
    ]
    n = len(columns)
    if chosen.tables is PairMarginals.NONE:
        rows = tuple(single.rows(n, rng) for single in singles)
        told = {"n epsilon": float(chosen.strength), "tables": chosen.tables.value}
        return SyntheticRows(rows, tuple(privacy_losses), tuple(measurements), told)
    facts: dict[str, Any] = {
        "n epsilon a pair": float(chosen.strength),
        "share of single columns": float(chosen.singles),
    }
    rest = (1 - chosen.singles - chosen.question) * epsilon
    if chosen.question:
        progress("asking what groups lose", 0, 1)
        price = chosen.question * epsilon
        lost, answer, privacy_loss = loss_of_groups(columns, singles, epsilon=price, noise=noise)
        privacy_losses.append(privacy_loss)
        measurements.append(answer)
        facts |= {"groups lose": lost, "share of asking": float(chosen.question)}
        if lost > LOST:
            grown = mass_tree(
                columns, attributes, singles, epsilon=rest, noise=noise, rng=rng, progress=progress
            )
            privacy_losses += grown.privacy_losses
            measurements.append(grown.measurement)
            facts |= {"tables": GROWN, "leaves": grown.measurement.counts.size}
            return SyntheticRows(grown.rows, tuple(privacy_losses), tuple(measurements), facts)
    further = chosen.further * epsilon
    counted, prices = _count(
        columns,
        attributes,
        singles,
        chosen.cover,
        epsilon=rest - further,
        noise=noise,
        progress=progress,
    )
    privacy_losses += prices
    measurements += counted
    targets, believed = _targets(counted, singles, n, chosen)
    solve = partial(_fit, singles=singles, n=n, rng=rng, progress=progress)
    fitted = solve(targets, tau=chosen.tau)
    if chosen.threes:
        found = interactions(
            columns,
            attributes,
            singles,
            fitted,
            tables=chosen.threes,
            cells=room(n, further, chosen.threes, NOISE),
            epsilon=further,
            noise=noise,
            progress=progress,
        )
        privacy_losses += found.privacy_losses
        measurements += found.measurements
        first, fitted = fitted, solve(targets + found.targets, tau=fitted.tau, start=fitted)
        facts["tables of three columns"] = [
            " x ".join(attributes[j].name for j in table.columns) for table in found.measurements
        ]
        if fitted is first:
            facts["fit of three columns"] = "did not settle; rows follow the other tables"
    progress("drawing rows", 0, 1)
    rows = _rows(fitted, singles, n, rng)
    facts |= {
        "tables": chosen.tables.value,
        "number of tables": len(counted),
        "groups": [single.size for single in singles],
        "tau": fitted.tau,
        "fit": "all cells" if fitted.dense else "particles",
        "effective sample": fitted.spread,
        "stages": fitted.stages,
    }
    if believed:
        facts["tau of pairs"] = [min(believed), float(np.median(believed)), max(believed)]
    return SyntheticRows(rows, tuple(privacy_losses), tuple(measurements), facts)


def _count(
    columns: Columns,
    attributes: Sequence[Domain],
    singles: Sequence[OneWayMarginal],
    chosen: Cover,
    *,
    epsilon: Fraction,
    noise: Noise,
    progress: Progress,
) -> tuple[list[Measurement], list[PrivacyLoss]]:
    """The tables of a cover over groups, with noise; each takes its part of epsilon."""
    sizes = [single.size for single in singles]
    parts = sum(chosen.weights)
    found: list[Measurement] = []
    privacy_losses: list[PrivacyLoss] = []
    progress("counting tables", 0, len(chosen.blocks))
    axes = tuple(enumerate(singles))
    counts = columns.total(partial(counts_of_groups, axes=axes, sets=chosen.blocks))
    begin = 0
    for members, part in zip(chosen.blocks, chosen.weights, strict=True):
        progress("counting tables", len(found), len(chosen.blocks))
        shape = [sizes[j] for j in members]
        exact = counts[begin : begin + prod(shape)].reshape(shape)
        begin += prod(shape)
        name = f"table of {' x '.join(attributes[j].name for j in members)}"
        price = epsilon * part / parts
        noisy, privacy_loss = noisy_table(exact, target=name, epsilon=price, noise=noise)
        groups = tuple(singles[j].groups for j in members)
        found.append(Measurement(members, groups, noisy, privacy_loss.scale))
        privacy_losses.append(privacy_loss)
    return found, privacy_losses


def _targets(
    counted: Sequence[Measurement], singles: Sequence[OneWayMarginal], n: int, chosen: MaxentPlan
) -> tuple[list[Target], list[float]]:
    """What the fit has to meet besides single columns, and taus that were learnt."""
    sizes = [single.size for single in singles]
    targets = [
        Target(table.columns, table.counts.ravel() / n, precision_of(n, table.scale))
        for table in counted
    ]
    if prod(sizes) > DENSE or chosen.learns:
        targets = pairs_of(targets, sizes)
    if not chosen.learns:
        return targets, []
    learnt = taus(targets, [single.prior(n) for single in singles], least=chosen.tau / 4)
    believed = [
        replace(target, weight=target.weight * chosen.tau / tau)
        for target, tau in zip(targets, learnt, strict=True)
    ]
    return believed, learnt


def _fit(
    targets: Sequence[Target],
    *,
    singles: Sequence[OneWayMarginal],
    n: int,
    tau: float,
    rng: np.random.Generator,
    progress: Progress,
    start: Fitted | None = None,
) -> Fitted:
    """The distribution over groups nearest to all noisy counts."""
    return fit(
        [single.size for single in singles],
        [single.prior(n) for single in singles],
        [*(single.target(j, n) for j, single in enumerate(singles)), *targets],
        tau=tau,
        particles=min(max(2 * n, 100_000), 300_000),
        rng=rng,
        start=start,
        progress=progress,
    )


def pairs_of(tables: Sequence[Target], sizes: Sequence[int]) -> list[Target]:
    """Tables of every two columns that noisy tables of more columns add up to.

    A cell that sums c cells has c times their noise's variance. Where several tables show a pair,
    their mean is taken with weights in proportion to 1 / variance, which has the least variance.
    """
    found: dict[tuple[int, ...], Target] = {}
    for table in tables:
        whole = table.shares.reshape([sizes[j] for j in table.columns])
        for pair in combinations(range(len(table.columns)), 2):
            away = tuple(axis for axis in range(whole.ndim) if axis not in pair)
            shares = whole.sum(axis=away).ravel()
            weight = table.weight * shares.size / whole.size
            columns = tuple(table.columns[axis] for axis in pair)
            if columns in found:
                other = found[columns]
                both = weight + other.weight
                shares = (weight * shares + other.weight * other.shares) / both
                weight = both
            found[columns] = Target(columns, shares, weight)
    return [found[columns] for columns in sorted(found)]


def _rows(
    fitted: Fitted, singles: Sequence[OneWayMarginal], n: int, rng: np.random.Generator
) -> tuple[Ints, ...]:
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
