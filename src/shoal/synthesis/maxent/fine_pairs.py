"""Pairs of columns whose dependence groups would hide, measured over finer groups.

`maxent` counts columns together over groups of their codes, few of them where there are many pairs.
Within groups, columns are taken to be independent. Where two columns nearly determine each other,
such as county and state, that loses most of what they say, and nothing public shows it.

For a pair of columns let c(x, y) be the records in a cell of fine groups, C(g, h) those in the
cell of groups that has it, and u(x), v(y) the shares of x and y within their groups, as noisy
one-way marginals have them. Groups say C u v of a cell. The score of the pair is

    K = floor(sum over cells of |c - C u v|) - a - b.

a is what the sum would be if nothing were lost, since people are few: the expectation if cells were
Poisson numbers around the product of the one-way marginals, E|X - mean| being
2 exp(-mean) mean^(k+1) / k! with k = floor(mean) (De Moivre). Where columns depend on each other
fewer cells are filled and that is too much: the score errs towards "little is lost". b is what
noise would do to the fine cells that hold records, of which a strong dependence fills few: four for
each group of the longer side.

One pair after the other is selected. Beside the pairs stands "none", whose score is a total
variation of `NOISE`: where it is selected, nothing else is. Pairs need not form a forest. Of three
columns that all depend on each other the third pair mostly follows from two, but only if these two
are the right ones, which noise may miss.

Lemma (ours, unreviewed): a changed record moves a score by at most 4, an added or removed one by at
most 2. Proof. An added or removed record moves c by 1 in one cell, and C by 1 in one cell. Since u
and v sum to 1 within groups, C u v moves by 1 in all: the sum moves by at most 2. Shares are whole
multiples of 2^-10, so 2^20 times the sum is whole and moves by at most 2^21, which its floor
follows. a, b and the score of "none" are constants given noisy one-way counts and n. A change is a
removal and an addition. Which pairs are left to select from follows from earlier selections. QED

The pairs are measured over fine groups; all else is measured over groups, as without them. A table
over groups is a sum of cells of one over fine groups (`Target.joined`), so one fit takes both.

In mathematical notation: docs/explanation/proofs.md, "Scores of marginals".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from shoal.core import Neighbours, Noise, Price, PrivacyLoss, Progress
from shoal.core._arrays import Ints
from shoal.mechanism.consistent_counts import apportion
from shoal.mechanism.noisy_answers import Reach, noisy_choice
from shoal.mechanism.records import Columns
from shoal.mechanism.systematic_sampling import systematic
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent.fit import Fitted, Target
from shoal.synthesis.maxent.measure import CandidateMarginal, exact_marginals, mean_deviation
from shoal.synthesis.maxent.one_way import JoinedCodes, OneWayMarginal, split_groups
from shoal.synthesis.maxent.plan import NOISE, MaxentPlan

LOSS: Reach = {Neighbours.CHANGE_ONE: 4, Neighbours.ADD_REMOVE: 2}
"""How far one record can move a score, proved above."""
_FILLED = 4
_UNIT = 1 << 10
_WHICH = "selection of fine two-way marginals"


@dataclass(frozen=True, eq=False)
class FinePairs:
    """The selected pairs, and the groups of all columns: finer ones in the columns of pairs.

    Attributes:
        pairs: the selected pairs of columns, sorted.
        one_way: every column's marginal over its groups.
        coarse: for columns with finer groups the group of each.
        candidates: the exact counts of the pairs. They never leave the mechanism.
    """

    pairs: tuple[tuple[int, int], ...]
    one_way: list[OneWayMarginal]
    coarse: dict[int, Ints]
    candidates: Sequence[CandidateMarginal]

    def lift(self, target: Target, sizes: Sequence[int]) -> Target:
        """Let a target over groups apply to the finer ones; `sizes` counts the groups."""
        if self.coarse.keys().isdisjoint(target.columns):
            return target
        codes = zip(target.columns, target.codes(sizes), strict=True)
        joined = tuple(own[self.coarse[j]] if j in self.coarse else own for j, own in codes)
        return replace(target, joined=joined)

    def lift_fit(self, fitted: Fitted, particles: int, rng: np.random.Generator) -> Fitted:
        """Draw particles of a fit, and their finer groups by the shares that these have in theirs.

        That is the same distribution, over finer groups, with the parameters that it had.
        """
        rows = np.repeat(fitted.groups, systematic(fitted.weights, particles, rng), axis=0)
        groups = rows.copy()
        for j, coarse in self.coarse.items():
            shares = self.one_way[j].shares
            for group in np.unique(coarse):
                inside, members = rows[:, j] == group, np.flatnonzero(coarse == group)
                count = int(inside.sum())
                drawn = np.repeat(members, systematic(shares[members], count, rng))
                groups[inside, j] = rng.permutation(drawn)
        even = np.full(particles, 1 / particles)
        return replace(fitted, groups=groups, weights=even, dense=False)


def select_fine_pairs(
    columns: Columns,
    domains: Sequence[Domain],
    one_way: Sequence[OneWayMarginal],
    plan: MaxentPlan,
    *,
    n: int,
    price: Price,
    noise: Noise,
    progress: Progress,
) -> tuple[FinePairs, list[PrivacyLoss]]:
    """Select pairs that groups would hide, at most as many as the plan allows.

    Args:
        columns: the records.
        domains: their public domains.
        one_way: their noisy one-way marginals, with the groups.
        plan: how many pairs, and how fine.
        n: the number of records, or an estimate of it.
        price: of one selection.
        noise: where draws come from.
        progress: called before each selection.

    Cost in time: O(n m^2) for the scores.
    """
    fine = [
        split_groups(marginal, domain, plan.fine_groups)
        for marginal, domain in zip(one_way, domains, strict=True)
    ]
    coarse = [_find_groups(*each) for each in zip(fine, one_way, strict=True)]
    finer = [one.size > whole.size for one, whole in zip(fine, one_way, strict=True)]
    sets = [(a, b) for a, b in combinations(range(len(fine)), 2) if finer[a] or finer[b]]
    if not sets:  # as the noisy counts have it, no column has finer groups
        return FinePairs((), list(one_way), {}, ()), []
    exact = exact_marginals(columns, tuple(enumerate(fine)), sets)
    shares = [_share_groups(*each) for each in zip(fine, coarse, strict=True)]
    scores = np.array(
        [
            _loss(table, (coarse[a], shares[a]), (coarse[b], shares[b]))
            - round(float(mean_deviation(n * np.outer(fine[a].shares, fine[b].shares)).sum()))
            - round(2 * NOISE * n * _filled(fine[a].size, fine[b].size) / plan.fine_cells)
            for (a, b), table in zip(sets, exact, strict=True)
        ],
        dtype=np.int64,
    )
    none = round(2 * NOISE * n)
    left = list(range(len(sets)))
    selected: list[int] = []
    privacy_losses: list[PrivacyLoss] = []
    while left and len(selected) < plan.fine_pairs:
        progress("selecting fine two-way marginals", len(selected), plan.fine_pairs)
        best, privacy_loss = noisy_choice(
            np.append(scores[left], none), reach=LOSS, price=price, target=_WHICH, noise=noise
        )
        privacy_losses.append(privacy_loss)
        if best == len(left):
            break
        selected.append(left.pop(best))
    pairs = tuple(sets[i] for i in sorted(selected))
    used = {j for pair in pairs for j in pair if finer[j]}
    joined = [JoinedCodes(marginal, np.arange(marginal.size)) for marginal in fine]
    found = FinePairs(
        pairs,
        [fine[j] if j in used else one_way[j] for j in range(len(fine))],
        {j: coarse[j] for j in sorted(used)},
        [CandidateMarginal(sets[i], tuple(joined[j] for j in sets[i]), exact[i])
         for i in sorted(selected)],
    )  # fmt: skip
    return found, privacy_losses


def _find_groups(fine: OneWayMarginal, whole: OneWayMarginal) -> Ints:
    """Find the group of each finer one."""
    groups = np.zeros(fine.size, dtype=np.int64)
    groups[fine.members] = whole.members
    return groups


def _share_groups(fine: OneWayMarginal, coarse: Ints) -> Ints:
    """Return each finer group's share of its group, in whole units."""
    believed = np.maximum(fine.summed, 0.0) + 1e-9
    shares = np.zeros(fine.size, dtype=np.int64)
    for group in np.unique(coarse):
        cells = np.flatnonzero(coarse == group)
        shares[cells] = apportion(believed[cells], _UNIT)
    return shares


def _loss(table: Ints, first: tuple[Ints, Ints], second: tuple[Ints, Ints]) -> int:
    """Count the records that groups put into other fine cells of a pair, twice; floored."""
    (rows, down), (across, right) = first, second
    coarse = np.zeros((int(rows.max()) + 1, int(across.max()) + 1), dtype=np.int64)
    np.add.at(coarse, (rows[:, None], across[None, :]), table)
    scaled = coarse[rows][:, across] * (down[:, None] * right[None, :])
    return int(np.abs(table * _UNIT**2 - scaled).sum()) // _UNIT**2


def _filled(rows: int, across: int) -> int:
    """Count the cells that a strong dependence may fill."""
    return min(rows * across, _FILLED * max(rows, across))
