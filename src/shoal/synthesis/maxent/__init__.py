"""Draw rows from the maximum-entropy distribution that fits noisy marginals.

`maxent`, at the end of this page, is the whole mechanism. It selects, measures and generates:

1. Plan. How epsilon is divided follows from public quantities (`plan`).
2. Measure every one-way marginal: codes one by one, or of a number or ordinal of more than 256
   codes over the leaves of a private tree of its own (`measure.measure_one_way`). A column that
   stands alone takes all of epsilon, and rows are drawn from what is believed of its counts. From
   the noisy counts, codes are put into at most G groups per column (`one_way`).
3. Select pairs of columns whose dependence such groups would hide, if there are any, and measure
   them over finer groups (`fine_pairs`).
4. Measure marginals over groups that together show every two columns: one of all columns
   (FULL), of every two (PAIRS), of blocks of some columns (BLOCKS, `pair_covers`), or of every
   three (TRIPLES). The plan selects them; they share what is left of epsilon, but for a tenth of it
   where there is much.
5. Fit the distribution of greatest entropy over groups to all noisy marginals (`fit`), or to the
   two-way marginals that they add up to (`posterior`); these are fitted again without dependence
   that the first fit implies and they deny (`implied`).
6. With that tenth, select a few three-way marginals that the fit misses (`select`), measure them
   (`measure.measure_selected`), and fit again.
7. Generate n rows systematically (`generate`); inside a group codes follow the one-way marginals.

With interactions counted over groups only, the distribution of greatest entropy is (joint of the
groups) x (each code given its group, column by column). So what is fitted has as many cells as
there are combinations of groups, never of codes, and numbers need no bins. Where epsilon is small,
K marginals are K times noisier than one, and few coarse ones of many columns beat all pairs.

Public constraints forbid combinations of codes. Then bins and groups lie within what constraints
tell apart, forbidden cells have no mass, and a cover of pairs counts allowed cells alone. That
costs nothing (`structural_zeros` proves it, and says how every stratum is reached).

Theorem (ours, unreviewed). `maxent` costs epsilon for change-one neighbours: two tables of n
records, n public, that differ in one record. And it costs epsilon for add-remove neighbours: two
tables of which one has a record more, if it is given a number of records that was measured with
noise, which is paid for apart.

Proof. These are all draws that see the records. D is how far a changed record can move the answer,
and A how far an added or removed record: in L1 for discrete Laplace noise, which costs D or A over
its scale; the largest move of a score for permute-and-flip, which costs twice that
(`shoal.hazmat.noise` proves both).

    step  answer                                    D        A        price
    2     counts of a column's codes                2        1        e_j
    2     all splits of a column's tree             3.607    2.607    s_j = min(e_j / 2, S)
    2     counts of the leaves of that tree         2        1        e_j - s_j
    3     a score, in each of s selections          4        2        f
    3     counts of each of K fine pairs            2        1        u / K
    4     counts of marginal k of the cover         2        1        (rest - t - u) w_k / sum w
    6     a score, in each of q selections          2        1        t / (10 q)
    6     counts of each selected marginal          2        1        9 t / (10 q)

Shares: e_j = one_way_share epsilon v_j / sum v for column j, v and w being the plan's weights of
columns and of the cover's blocks; f = fine_share epsilon; t = three_way_share epsilon;
rest = (1 - one_way_share) epsilon - s f; u = 4 K / (5 (K + 3)) of rest - t. S is the most for which
the splits of a tree are proved (PATH / SHALLOWEST), 2.500 for D and 1.807 for A. The plan has room
for more selections than the s that are made where "none" is selected, and K of them are pairs.

Counts: the cells of a marginal, and the leaves of a given tree, divide the records. A changed
record leaves one and enters another, by 1 each; an added or removed one does so in one. Splits: a
record changes counts along two paths, or along one, but only near the threshold is a split in
doubt, and the penalty for depth keeps all but a few nodes of a path away from it; D and A are in
records, of which entries count 64ths, whatever the depth (proved in `adaptive_tree`, for halves
that do not depend on the records except by earlier answers). Scores: the floored distance of a
marginal's counts from constants (proved in `select`), or from what counts over groups say of them,
which move too (proved in `fine_pairs`).

Adaptive composition. What is asked follows from public quantities and earlier noisy answers alone:
groups from one-way counts, the constants of a score from the first fit or from one-way counts, the
next counts and their prices from the selections. So prices add up. One-way marginals and the
selections of step 3 cost one_way_share epsilon + s f; then fine pairs, the cover and three-way
marginals cost u + (rest - t - u) + q t / (10 q) + 9 q t / (10 q) = rest. Together that is epsilon,
whatever s and K are. (Of a single column one_way_share = 1, and nothing is left.)

Post-processing. The plan sees n, epsilon, and the kinds and sizes of public domains. All else
(`one_way`, `posterior`, `fit`, `implied`, `generate`, the facts) sees noisy answers, their scales,
n and fresh randomness. For add-remove neighbours n is a noisy answer too: the plan follows the one
that was measured first, so that it is the same for n and n + 1 records given equal answers, and
what comes later follows its mean with the totals of the marginals (`shoal.mechanism.records`).
The exact number is not looked at: a `Columns` is asked for counts alone. QED

Corollary. For a price in rho the same draws cost it, in zero-concentrated differential privacy, by
the same composition; shares are shares of rho. Counts get discrete Gaussian noise of scale
sqrt(D2 / (2 rho)), rounded up, D2 being the square of how far they move in L2: 2, of which two move
by 1, or 1 for an added or removed record. Selections are by the exponential mechanism, of scale
D / sqrt(2 rho). Splits keep Laplace noise at the pure price sqrt(2 rho), rounded down, which is a
rho of no more.

A person with up to r rows multiplies D or A, and the price, by r, or a rho by r^2
(`shoal.methods.noise.contributions`).

Each draw is written down with its D, scale and price (`privacy_losses`).
tests/synthesis/test_maxent.py holds these entries against the table above, and
tests/auditing/test_prices.py holds what each draw costs on neighbours against its entry.

Not promised: accuracy. With P pairs and r = n epsilon / P below 50 hardly more than one-way
marginals survives, which `shoal plan` says before anything is drawn; every further column lowers
the accuracy of the rest.

In mathematical notation: docs/explanation/proofs.md, "Maximum entropy".

References:
    McKenna, Miklau, Sheldon, "Winning the NIST contest: a scalable and general approach to
    differentially private synthetic data", JPC 11 (2021). doi:10.29012/jpc.778: select, measure,
    generate.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Noise, Price, PrivacyLoss, Progress, silent
from shoal.core._arrays import Floats
from shoal.mechanism.records import Columns, RecordTotal, permit_total
from shoal.synthesis.domain import Domain, Measurement, SyntheticRows, records
from shoal.synthesis.maxent.fine_pairs import FinePairs, select_fine_pairs
from shoal.synthesis.maxent.fit import Fitted, Target, fit_distribution
from shoal.synthesis.maxent.generate import generate_rows
from shoal.synthesis.maxent.implied import without_implied
from shoal.synthesis.maxent.measure import (
    CandidateMarginal,
    measure_cover,
    measure_one_way,
    measure_selected,
)
from shoal.synthesis.maxent.one_way import (
    OneWayMarginal,
    estimate_marginal,
    group_zeros,
    has_order,
    is_line,
)
from shoal.synthesis.maxent.plan import (
    SELECTION_SHARE,
    WEAK,
    WORK,
    WORTH,
    MaxentPlan,
    PairMarginals,
    limit_groups,
    maxent_plan,
    plan_of,
    room,
    worth,
)
from shoal.synthesis.maxent.posterior import common_margins, posterior_targets
from shoal.synthesis.maxent.select import select_three_way
from shoal.synthesis.maxent.structural_zeros import Component, GroupedZeros

__all__ = [
    "WEAK",
    "WORTH",
    "MaxentPlan",
    "PairMarginals",
    "is_line",
    "maxent",
    "maxent_plan",
    "plan_of",
    "worth",
]

_EVEN = 3
"""Fine pairs that share two fifths of what is left with the cover; more of them get more."""
_NOT_KEPT = "did not converge; rows follow the other marginals"
_STRENGTH = "number of rows n times epsilon, per pair of columns"


def maxent(
    codes: Sequence[NDArray[Any]] | Columns,
    domains: Sequence[Domain],
    *,
    price: Price,
    noise: Noise,
    rng: np.random.Generator,
    total: RecordTotal | None = None,
    plan: MaxentPlan | None = None,
    zeros: Sequence[Component] = (),
    progress: Progress = silent,
) -> SyntheticRows:
    """Draw as many rows as there are records; the module says how, and proves the price.

    Rows are codes in every column.

    Args:
        codes: one array of codes per column, or records that answer for them.
        domains: their public domains.
        price: for all of it.
        noise: where draws come from.
        rng: for fitting and for drawing rows.
        total: what was measured of the number of records, for add-remove neighbours.
        plan: by default `maxent_plan` of the total; another one must not depend on the data.
        zeros: combinations of codes that no row may have, by public constraints.
        progress: called with each stage.

    Raises:
        InputError: without a column.

    Cost: O(n) per marginal; the fit takes seconds for up to twelve columns, whatever n, and for
    wide tables.
    """
    columns = records(codes, domains)
    total = permit_total(columns, price, total)
    plan = plan or plan_of(domains, n=total.rows, price=price, zeros=zeros)

    # Measure one-way marginals.
    one_way, total = _one_way(
        columns, domains, plan, zeros, total=total, price=price, noise=noise, progress=progress
    )
    n = total.rows
    privacy_losses = [loss for marginal in one_way for loss in marginal.privacy_losses]
    measurements = [
        Measurement((j,), (m.edges,), m.counts, m.scale, mechanism=m.mechanism)
        for j, m in enumerate(one_way)
    ]
    facts: dict[str, Any] = {
        _STRENGTH if len(domains) > 1 else "n epsilon": float(
            plan.strength / WORTH[price.neighbours]
        ),
        "share of epsilon for one-way marginals": float(plan.one_way_share),
        "marginals": plan.marginals.value,
    }
    if plan.marginals is PairMarginals.NONE:
        progress("drawing rows", 0, 1)
        rows = tuple(marginal.rows(n, rng) for marginal in one_way)
        return SyntheticRows(rows, tuple(privacy_losses), tuple(measurements), facts)

    # Select pairs that groups would hide, and measure them over finer groups.
    three = price * plan.three_way_share
    rest = price * (1 - plan.one_way_share) - three
    fine, fine_tables, losses = _measure_fine_pairs(
        columns, domains, one_way, plan, n=n, price=price, noise=noise, progress=progress
    )
    privacy_losses += losses
    measurements += fine_tables
    for loss in losses:
        rest = rest - replace(price, amount=loss.epsilon or loss.rho or Fraction(0))
    if plan.fine_pairs:
        facts["pairs over finer groups"] = [
            " x ".join(domains[j].name for j in pair) for pair in fine.pairs
        ]

    # Measure the marginals of the plan's cover, and fit.
    measured, losses = measure_cover(
        columns, domains, one_way, plan.cover, price=rest, noise=noise, progress=progress
    )
    privacy_losses += losses
    measurements += measured
    grouped = group_zeros(zeros, one_way, [marginal.prior(n) for marginal in one_way])
    n_rows = total.refine(_total(marginal, grouped) for marginal in measured).rows
    counted = [marginal.target(j, n) for j, marginal in enumerate(one_way)]
    margins = common_margins(counted, measured, grouped, n=n_rows)
    priors = [target.prior(n) for target in margins]
    grouped = group_zeros(zeros, one_way, priors)
    believed, pairs, parts = posterior_targets(
        measured,
        grouped,
        n=n_rows,
        tau=plan.tau,
        learns=plan.learns,
        margins=[target.shares for target in margins],
        ordered=[has_order(domain) for domain in domains],
        cells=prod(marginal.size for marginal in fine.one_way),
    )
    sizes = [marginal.size for marginal in one_way]
    particles = min(max(2 * n, min(12 * n, 100_000)), 300_000, WORK // len(believed))
    fit: Callable[..., Fitted] = partial(
        fit_distribution, particles=particles, rng=rng, progress=progress
    )
    if plan.learns:  # what pairs are believed follows from their noise then, and so for columns
        margins = [target.believe(plan.tau) for target in margins]
    again: Callable[..., Fitted] = partial(fit, sizes, priors, zeros=grouped)
    fitted, targets = _fit_twice(again, [*margins, *believed], pairs, grouped, tau=plan.tau)

    # Fit again with the pairs over finer groups.
    if fine.pairs:
        start = fine.lift_fit(fitted, particles, rng)
        targets = [fine.lift(target, sizes) for target in targets]
        again, further = _prepare_finer(
            fine, fine_tables, priors, zeros, n=n_rows, tau=plan.tau, fit=fit,
            ordered=[has_order(domain) for domain in domains],
        )  # fmt: skip
        fitted = again([*targets, *further], tau=fitted.tau, start=start, warm=False)
        one_way, sizes = fine.one_way, [marginal.size for marginal in fine.one_way]
        if fitted is start:
            facts["fit of pairs over finer groups"] = _NOT_KEPT
        else:
            targets += further

    # Select three-way marginals that the fit misses, measure them, and fit again.
    if plan.three_way:
        selected, three_way, losses = _measure_three_way(
            columns, domains, one_way, fitted, plan, n=(n, n_rows), price=three, noise=noise,
            progress=progress,
        )  # fmt: skip
        privacy_losses += losses
        measurements += three_way
        targets += [
            Target.of(marginal, n_rows, tuple(axis.codes for axis in candidate.axes))
            for marginal, candidate in zip(three_way, selected, strict=True)
        ]
        first, fitted = fitted, again(targets, tau=fitted.tau, start=fitted)
        facts["three-way marginals"] = [
            " x ".join(domains[j].name for j in marginal.columns) for marginal in selected
        ]
        if fitted is first:
            facts["fit of three-way marginals"] = _NOT_KEPT

    # Generate rows.
    progress("drawing rows", 0, 1)
    rows = generate_rows(fitted, one_way, n_rows, rng)
    facts |= {"number of marginals": len(measured), "groups per column": sizes}
    facts |= _describe_fit(fitted, parts)
    return SyntheticRows(rows, tuple(privacy_losses), tuple(measurements), facts)


def _measure_fine_pairs(
    columns: Columns,
    domains: Sequence[Domain],
    one_way: list[OneWayMarginal],
    plan: MaxentPlan,
    *,
    n: int,
    price: Price,
    noise: Noise,
    progress: Progress,
) -> tuple[FinePairs, list[Measurement], list[PrivacyLoss]]:
    """Select the plan's fine pairs and measure them; the price is that of the whole mechanism."""
    if not plan.fine_pairs:
        return FinePairs((), one_way, {}, ()), [], []
    each = price * plan.fine_share
    fine, selections = select_fine_pairs(
        columns, domains, one_way, plan, n=n, price=each, noise=noise, progress=progress
    )
    if not fine.pairs:
        return fine, [], selections
    left = price * (1 - plan.one_way_share - plan.three_way_share) - each * len(selections)
    share = Fraction(4 * len(fine.pairs), 5 * (len(fine.pairs) + _EVEN))
    tables, losses = measure_selected(
        fine.candidates, price=left * share, noise=noise, progress=progress
    )
    return fine, tables, [*selections, *losses]


def _prepare_finer(
    fine: FinePairs,
    tables: Sequence[Measurement],
    priors: Sequence[Floats],
    zeros: Sequence[Component],
    *,
    n: int,
    tau: float,
    fit: Callable[..., Fitted],
    ordered: Sequence[bool],
) -> tuple[Callable[..., Fitted], list[Target]]:
    """Return the fit over finer groups as a function, and the tables that these add."""
    finer = [
        marginal.prior(n) if j in fine.coarse else prior
        for j, (marginal, prior) in enumerate(zip(fine.one_way, priors, strict=True))
    ]
    grouped = group_zeros(zeros, fine.one_way, finer)
    believed, _, _ = posterior_targets(
        tables, grouped, n=n, tau=tau, learns=True, margins=finer, ordered=ordered
    )
    counted = [fine.one_way[j].target(j, n) for j in fine.coarse]
    sizes = [marginal.size for marginal in fine.one_way]
    return partial(fit, sizes, finer, zeros=grouped), [*counted, *believed]


def _measure_three_way(
    columns: Columns,
    domains: Sequence[Domain],
    one_way: Sequence[OneWayMarginal],
    fitted: Fitted,
    plan: MaxentPlan,
    *,
    n: tuple[int, int],
    price: Price,
    noise: Noise,
    progress: Progress,
) -> tuple[list[CandidateMarginal], list[Measurement], list[PrivacyLoss]]:
    """Select the plan's three-way marginals by what a fit misses, and measure them.

    n is the number of records as far as it was known before the pairs, and after them.
    """
    part = price * SELECTION_SHARE
    selected, selections = select_three_way(
        columns,
        domains,
        one_way,
        fitted,
        n=n[1],
        marginals=plan.three_way,
        cells=room(n[0], price, plan.three_way),
        price=part,
        noise=noise,
        progress=progress,
    )
    measured, losses = measure_selected(
        selected, price=price - part, noise=noise, progress=progress
    )
    return selected, measured, [*selections, *losses]


def _describe_fit(fitted: Fitted, parts: Sequence[float]) -> dict[str, Any]:
    """Describe a fit, and which parts of each pair's dependence were kept, if that was learnt."""
    facts: dict[str, Any] = {
        "tau": fitted.tau,
        "fit": "on all cells" if fitted.dense else "by particles",
        "effective sample size, relative": fitted.spread,
        "stages": fitted.stages,
    }
    if not fitted.settled:
        facts["fit of marginals"] = "did not converge; rows follow its last state"
    if parts:
        facts["part of each pair's dependence that is kept (least, median, greatest)"] = [
            min(parts),
            float(np.median(parts)),
            max(parts),
        ]
    return facts


def _fit_twice(
    fit: Callable[..., Fitted],
    targets: list[Target],
    pairs: Sequence[Target],
    zeros: GroupedZeros,
    *,
    tau: float,
) -> tuple[Fitted, list[Target]]:
    """Fit some tables, then again without dependence that is implied but contradicted by pairs."""
    fitted = fit(targets, tau=tau)
    if pairs:
        targets = without_implied(targets, pairs, fitted, zeros)
        fitted = fit(targets, tau=fitted.tau, start=fitted)
    return fitted, targets


def _total(measured: Measurement, zeros: GroupedZeros) -> tuple[float, float]:
    """Return the sum of the counts of the allowed cells, and its variance."""
    if not zeros.components:
        return measured.total
    mask = zeros.mask(measured.columns)
    return float(measured.counts[mask].sum()), float(mask.sum() * measured.variance)


def _one_way(
    columns: Columns,
    domains: Sequence[Domain],
    plan: MaxentPlan,
    zeros: Sequence[Component],
    *,
    total: RecordTotal,
    price: Price,
    noise: Noise,
    progress: Progress,
) -> tuple[list[OneWayMarginal], RecordTotal]:
    """Measure one-way marginals within atoms, and refine the number of records."""
    atoms = {j: codes for zero in zeros for j, codes in zip(zero.columns, zero.atoms, strict=True)}
    each = price * plan.one_way_share / sum(plan.weights)
    counted = []
    for j, (domain, weight) in enumerate(zip(domains, plan.weights, strict=True)):
        progress("measuring one-way marginals", j, len(domains))
        share = each * weight
        counted.append(
            measure_one_way(columns, j, domain, price=share, noise=noise, atoms=atoms.get(j))
        )
    total = total.refine(histogram.total for histogram in counted)
    believed = [
        estimate_marginal(
            histogram,
            domain,
            n=total.rows,
            most=limit_groups(domain, plan.groups),
            atoms=atoms.get(j),
        )
        for j, (histogram, domain) in enumerate(zip(counted, domains, strict=True))
    ]
    return believed, total
