"""Wide tables: select a forest of column pairs with noise, and draw rows along it.

Of m columns there are P = m (m - 1) / 2 pairs. Beyond some twenty columns all of them together have
too little of a budget for each, and a fit to all of them takes too long. So a few are selected, at
most as many as form a forest, which is a graph without cycles. For the records c of a pair over
groups, and e = n p_a p_b, what its one-way marginals say, the score is

    K = floor(sum over cells of |c - e|) - what it would be if the cells were Poisson numbers,

as for three-way marginals (`select`). One pair after the other is selected, of those that join two
trees of the forest; so three columns that all depend on each other take two pairs, not three.

Lemma (ours, unreviewed): a changed record moves a score by at most 2, an added or removed one by at
most 1. Proof: that of `select`, e being a function of noisy one-way counts. Which pairs are left to
select from follows from earlier selections. QED

Fit. The distribution of greatest entropy with given tables along a forest, whose margins agree, is

    p(x) = product over columns of p_j(x_j) times product over pairs of t_ab(x_a, x_b) / (p_a p_b),

so each pair is fitted by itself, and rows are drawn from parent to child (Chow and Liu). Each t_ab
is brought to the margins p_a and p_b that are believed of its columns. Hence the rows of a column
follow its one-way marginal, as if the column stood alone.

Corollary: one-way marginals have the noise of their share s of the price and no more. Had all of
the price been spent on them, that would be s times as much noise for a price in epsilon, or sqrt(s)
for one in rho. `plan` has s = 7/10 and s = 1/2, and more where there is little: the factor is at
most 1.43, or 1.42. All of this is post-processing but for the selections and the counts.

References:
    Chow, Liu, "Approximating discrete probability distributions with dependence trees", IEEE
    Trans. Inf. Theory 14 (1968). doi:10.1109/TIT.1968.1054142
    McKenna, Miklau, Sheldon, "Winning the NIST contest", JPC 11 (2021). doi:10.29012/jpc.778: a
    spanning tree that is selected with noise (MST). Ours has at most as many pairs as the budget
    can resolve.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from shoal.core import Noise, Price, PrivacyLoss, Progress
from shoal.core._arrays import Floats
from shoal.mechanism.noisy_answers import COUNTS, noisy_choice
from shoal.mechanism.records import Columns, RecordTotal
from shoal.mechanism.systematic_sampling import systematic
from shoal.synthesis.domain import SyntheticRows
from shoal.synthesis.maxent.fit import Fitted, Target, fit_distribution
from shoal.synthesis.maxent.generate import generate_rows
from shoal.synthesis.maxent.measure import CandidateMarginal, exact_marginals, measure_selected
from shoal.synthesis.maxent.one_way import JoinedCodes, OneWayMarginal
from shoal.synthesis.maxent.plan import FOREST_SELECTION, MaxentPlan
from shoal.synthesis.maxent.posterior import posterior_targets
from shoal.synthesis.maxent.select import score
from shoal.synthesis.maxent.structural_zeros import GroupedZeros

_WHICH = "selection of two-way marginals"
_RAKED = 100


def forest(
    columns: Columns,
    one_way: Sequence[OneWayMarginal],
    plan: MaxentPlan,
    *,
    total: RecordTotal,
    price: Price,
    noise: Noise,
    rng: np.random.Generator,
    progress: Progress,
) -> SyntheticRows:
    """Select the plan's pairs, measure them, and draw rows along the forest.

    Cost in time: O(n m^2) for the scores of all pairs, and O(n m) for the rows.
    """
    share = price * FOREST_SELECTION
    selected, selections = _select(
        columns,
        one_way,
        n=total.rows,
        pairs=plan.pairs,
        price=share,
        noise=noise,
        progress=progress,
    )
    tables, counts = measure_selected(selected, price=price - share, noise=noise, progress=progress)
    n = total.refine(marginal.total for marginal in tables).rows
    priors = [marginal.prior(n) for marginal in one_way]
    free = GroupedZeros(priors=priors)
    believed, _, _ = posterior_targets(
        tables,
        free,
        n=n,
        tau=plan.tau,
        learns=plan.learns,
        margins=priors,
        ordered=[False] * len(one_way),
    )
    fitted = _fit(one_way, believed, n=n, tau=plan.tau, rng=rng, progress=progress)
    progress("drawing rows", 0, 1)
    return SyntheticRows(
        generate_rows(fitted, one_way, n, rng),
        (*selections, *counts),
        tuple(tables),
        {"number of marginals": len(tables), "groups per column": [m.size for m in one_way]},
    )


def _select(
    columns: Columns,
    one_way: Sequence[OneWayMarginal],
    *,
    n: int,
    pairs: int,
    price: Price,
    noise: Noise,
    progress: Progress,
) -> tuple[list[CandidateMarginal], list[PrivacyLoss]]:
    """Select pairs of columns that form a forest, sorted by their columns.

    The selections together spend `price`. n is the number of records, or an estimate of it.
    """
    progress("selecting two-way marginals", 0, pairs)
    sets = list(combinations(range(len(one_way)), 2))
    exact = exact_marginals(columns, tuple(enumerate(one_way)), sets)
    shares = [marginal.shares for marginal in one_way]
    scores = np.array(
        [
            score(counts, n * np.outer(shares[a], shares[b])) if min(counts.shape) > 1 else -2 * n
            for (a, b), counts in zip(sets, exact, strict=True)
        ]
    )
    ends = np.array(sets)
    tree = np.arange(len(one_way))
    selected, privacy_losses = [], []
    for number in range(pairs):
        progress("selecting two-way marginals", number, pairs)
        left = np.flatnonzero(tree[ends[:, 0]] != tree[ends[:, 1]])
        best, privacy_loss = noisy_choice(
            scores[left], reach=COUNTS, price=price / pairs, target=_WHICH, noise=noise
        )
        a, b = ends[left[best]]
        tree[tree == tree[b]] = tree[a]
        selected.append(int(left[best]))
        privacy_losses.append(privacy_loss)
    joined = [JoinedCodes(marginal, np.arange(marginal.size)) for marginal in one_way]
    chosen = [
        CandidateMarginal(sets[i], tuple(joined[j] for j in sets[i]), exact[i])
        for i in sorted(selected)
    ]
    return chosen, privacy_losses


def _fit(
    one_way: Sequence[OneWayMarginal],
    targets: Sequence[Target],
    *,
    n: int,
    tau: float,
    rng: np.random.Generator,
    progress: Progress,
) -> Fitted:
    """Draw n rows of groups from one-way marginals and the pairs of a forest."""
    tables = {}
    for number, target in enumerate(targets):
        progress("fitting the distribution", number, len(targets))
        tables[target.columns] = _table([one_way[j] for j in target.columns], target, n, tau, rng)
    groups = np.empty((n, len(one_way)), dtype=np.uint8)
    for j, parent in _from_the_roots(len(one_way), list(tables)):
        if parent is None:
            counts = systematic(one_way[j].shares, n, rng)
            groups[:, j] = rng.permutation(np.repeat(np.arange(counts.size), counts))
            continue
        both = tables[parent, j] if parent < j else tables[j, parent].T
        for group in np.unique(groups[:, parent]):
            rows = np.flatnonzero(groups[:, parent] == group)
            drawn = systematic(both[group], rows.size, rng)
            groups[rng.permutation(rows), j] = np.repeat(np.arange(drawn.size), drawn)
    weights = np.full(n, 1 / n)
    return Fitted(groups, weights, spread=1.0, stages=1, tau=tau, dense=False, theta=np.zeros(0))


def _table(
    one_way: Sequence[OneWayMarginal], target: Target, n: int, tau: float, rng: np.random.Generator
) -> Floats:
    """Estimate the table of a pair, with the posterior margins of its columns."""
    sizes = [marginal.size for marginal in one_way]
    targets = [marginal.target(j, n) for j, marginal in enumerate(one_way)]
    priors = [marginal.prior(n) for marginal in one_way]
    both = Target((0, 1), target.shares, target.weight)
    fitted = fit_distribution(sizes, priors, [*targets, both], tau=tau, particles=1, rng=rng)
    table = np.zeros(sizes)
    table[fitted.groups[:, 0], fitted.groups[:, 1]] = fitted.weights
    down, across = (marginal.shares for marginal in one_way)
    for _ in range(_RAKED):
        table *= (down / table.sum(axis=1))[:, None]
        table *= across / table.sum(axis=0)
    return table


def _from_the_roots(m: int, pairs: Sequence[tuple[int, ...]]) -> list[tuple[int, int | None]]:
    """List every column after its parent; a root has None.

    >>> _from_the_roots(4, [(0, 2), (1, 2)])
    [(0, None), (2, 0), (1, 2), (3, None)]
    """
    beside: dict[int, list[int]] = {j: [] for j in range(m)}
    for a, b in pairs:
        beside[a].append(b)
        beside[b].append(a)
    edges: list[tuple[int, int | None]] = []
    seen: set[int] = set()
    for root in range(m):
        waiting: list[tuple[int, int | None]] = [] if root in seen else [(root, None)]
        while waiting:
            j, parent = waiting.pop(0)
            seen.add(j)
            edges.append((j, parent))
            waiting += [(k, j) for k in beside[j] if k != parent]
    return edges
