"""Divide epsilon and choose the marginals to measure, by public quantities alone.

The shares of epsilon and tau were tuned on Adult, five and eight columns (mixed-tables note); what
noise a marginal may have, and the one-way share for r >= 350, on generated tables
(docs/research/drawn-rows.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, isqrt, log, prod, sqrt
from typing import Any

from shoal.core import Neighbours, Price, PrivacyMeasure
from shoal.errors import InputError
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent.fit import DENSE
from shoal.synthesis.maxent.one_way import has_order, is_line
from shoal.synthesis.maxent.pair_covers import CONCENTRATED, PURE, Cover, cover
from shoal.synthesis.maxent.structural_zeros import AllowedCells, Component

_ALIKE = 32
"""Ordered codes of which more tell little: beyond that, neighbours answer for each other."""
WEAK = 50
"""r below which hardly more than one-way marginals survives."""
LEAST_NOMINAL = 3
"""Groups of a column without order at least."""
FINEST = 128
"""Groups per column at most."""
_MOST_CELLS = 100_000
"""Cells of all two-way marginals together: as many parameters has the fit."""
_MOST_ENERGIES = 20_000_000
"""Numbers that Gibbs sampling looks up: groups times columns, squared."""
_HELD = 1600
"""Fine pairs times columns: particles carry so many cells. Wider tables have fewer such pairs."""
NOISE = Fraction(1, 10)
"""Mean total variation that noise alone may give to a two-way marginal."""
WORTH = {Neighbours.CHANGE_ONE: 1, Neighbours.ADD_REMOVE: 2}
"""How many times an epsilon counts: an added or removed record needs half the noise."""
SELECTION_SHARE = Fraction(1, 10)
"""Part of the price of three-way marginals for selecting them; the rest is for measuring them."""
WORK = 20_000_000
"""Particles times pairs of columns at most, which the time of a fit follows."""
FINE_SELECTION = Fraction(1, 5)
"""Most of what one-way marginals leave that selecting fine pairs may cost."""


class PairMarginals(StrEnum):
    """Which marginals of several columns are measured, whatever the data."""

    NONE = "none"
    FULL = "full"
    BLOCKS = "blocks"
    PAIRS = "pairs"
    TRIPLES = "triples"


@dataclass(frozen=True)
class MaxentPlan:
    """The division of epsilon and the marginals to measure; a function of public quantities.

    Attributes:
        marginals: which marginals are measured in step 4.
        groups: G, the largest number of groups per column.
        one_way_share: of epsilon, for one-way marginals.
        weights: of the columns within that share.
        tau: how many times the fit overstates the noise's variance.
        strength: r = n epsilon / P, P the number of pairs: what is there for each pair; for
            add-remove neighbours epsilon counts twice.
        cover: the columns of each marginal of step 4, and its share of the remaining epsilon.
        fine_pairs: how many pairs of columns may be measured over finer groups.
        fine_groups: the largest number of these per column.
        fine_cells: how many cells a marginal may have that gets a tenth of what one-way marginals
            leave, for a total variation of `NOISE` from noise.
        fine_share: of epsilon, for each selection of such a pair.
        learns: whether the shrinkage of two-way marginals is estimated from them.
        three_way: how many three-way marginals are selected after a first fit.
        three_way_share: of epsilon, for selecting and measuring them.
    """

    marginals: PairMarginals
    groups: int
    one_way_share: Fraction
    weights: tuple[int, ...]
    tau: float
    strength: Fraction
    cover: Cover
    fine_pairs: int = 0
    fine_groups: int = 0
    fine_cells: int = 0
    fine_share: Fraction = Fraction(0)
    learns: bool = False
    three_way: int = 0
    three_way_share: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not 2 <= self.groups <= 255 or not 0 < self.one_way_share <= 1 or self.tau <= 0:
            raise InputError("A plan needs 2 to 255 groups, a share between 0 and 1, and tau > 0.")
        no_pairs, m = self.marginals is PairMarginals.NONE, len(self.weights)
        if no_pairs != (self.one_way_share == 1) or (m == 1 and not no_pairs):
            raise InputError(
                "A plan for one column measures its one-way marginal alone; a plan for several "
                "columns measures marginals of several columns too, or spends all of epsilon on "
                "one-way marginals."
            )
        most = 0 if no_pairs else m - 1
        if not 0 <= self.fine_pairs <= most or (self.fine_share > 0) != (self.fine_pairs > 0):
            raise InputError(
                "Fine pairs are fewer than columns and stand beside a cover of all pairs, and each "
                "selection of one has a price."
            )
        wanted = set() if no_pairs else set(combinations(range(m), 2))
        if wanted != {pair for block in self.cover.blocks for pair in combinations(block, 2)}:
            raise InputError("The marginals of a plan must cover every pair of columns.")
        if min(self.fine_share, self.three_way_share) < 0:
            raise InputError("A plan's shares must not be negative.")
        after = self.fine_pairs * self.fine_share + self.three_way_share
        if not no_pairs and after >= 1 - self.one_way_share:
            raise InputError("A plan must leave a share of epsilon for its two-way marginals.")
        if not 0 <= self.three_way <= comb(len(self.weights), 3) or bool(self.three_way) != (
            self.three_way_share > 0
        ):
            raise InputError(
                "A plan has a share of epsilon for three-way marginals if and only if it "
                "measures some, and no more of them than there are."
            )


def maxent_plan(
    domains: Sequence[Domain],
    *,
    n: int,
    epsilon: Fraction,
    neighbours: Neighbours = Neighbours.CHANGE_ONE,
    zeros: Sequence[Component] = (),
) -> MaxentPlan:
    """Choose marginals, groups and shares from public quantities alone.

    The rule below is written for change-one neighbours. For add-remove neighbours all noise has
    half the scale, so that epsilon counts twice in it; and n is what was measured of it, the same
    for two neighbours.

    The marginal of a single column takes all of epsilon. With m > 1 columns, P = m (m - 1) / 2 and
    r = n epsilon / P:

        TRIPLES  if 3 <= m <= 5, r >= 10^4, and the cells of 16 groups per column can all be held
        a cover  otherwise, for the largest G for which noise alone gives two-way marginals a
                 mean total variation of at most 0.1 (G = 2 if there is none; a column without
                 order has three groups at least)

    G is at most 128, and less where the two-way marginals of all pairs would have more than 100,000
    cells, which a fit cannot hold.

    The cover of columns of so many groups is `pair_covers.cover`. By its cost, and because the
    mean of a noise's absolute value is about 0.8 of its standard deviation, that total variation
    is 1.1 cost / (P (1 - share) n epsilon). It is called FULL if it is one marginal, PAIRS if all
    of them are two-way, and BLOCKS otherwise.

    The one-way share is 200 / (200 + r): the less is there for a pair, the less of it survives. It
    is at least 0.1 and 0.4 times
    the part of all codes that groups hide (9 / sqrt(r) times if that is less, `_share_for_codes`):
    codes inside groups follow one-way marginals alone. It is at least 0.15 with a column that is
    counted over a tree and 0.6 if all are, and these columns count twice; with structural zeros it
    is at least 0.2, because these answer for part of every pair. tau = n epsilon / 100. That of
    each cell of a pair is learnt (`posterior.by_levels`) for r < 2500 where the fit cannot hold all
    cells, and for r < 50 always.
    Where it holds them, wider marginals say more than their pairs, to which what is learnt applies.

    Pairs that groups would hide may be selected and measured over finer groups (`fine_pairs`), less
    than m of them. A selection costs what lets it miss the best pair by a total variation of about
    0.05, or 0.1 where as many selections would cost more than a fifth of what one-way marginals
    leave; all of them cost at most that, and of more than 40 columns there are at most 1,600 / m,
    which particles can carry. There are as many finer groups per column as a marginal of
    a tenth of it has cells with that noise, at most 128.

    With three to 16 columns and PAIRS or BLOCKS, where r >= 1000, a tenth of what one-way marginals
    leave is for three-way ones: as many as have room for six groups per column with a total
    variation of 0.1 from noise (`room`), at most m; and none where that is fewer than three
    (m > 3): one of many is not worth its price.
    """
    worth = WORTH[neighbours] * epsilon
    return _make_plan(domains, _Terms(n, Price(epsilon, neighbours), worth), zeros)


def plan_in_rho(
    domains: Sequence[Domain],
    *,
    n: int,
    rho: Fraction,
    neighbours: Neighbours,
    zeros: Sequence[Component] = (),
) -> MaxentPlan:
    """Plan with a budget in rho, divided into shares of rho.

    For many marginals, Gaussian noise is as small as Laplace noise of a larger epsilon. So the rule
    of `maxent_plan` is applied to the epsilon whose pure cover, over at most 16 groups per column,
    has as much noise for all pairs as the cover in rho (`pair_covers`): 2 sqrt(2) C / epsilon = C'
    / sqrt(rho) for change-one neighbours, and C' / sqrt(2 rho) for add-remove. Of one column that
    is the epsilon whose one-way marginal has as much noise.

    A share s of epsilon gives one-way marginals a noise of 1 / s, one of rho 1 / sqrt(s). With x =
    s / (1 - s) and K blocks, x' = K x^2 / m keeps the ratio of their noise to that of the cover;
    the share is that of x', or s if that is less.
    """
    price = Price(rho, neighbours, PrivacyMeasure.RHO)
    return _make_plan(domains, _terms_in_rho(domains, n, price), zeros)


def plan_of(
    domains: Sequence[Domain], *, n: int, price: Price, zeros: Sequence[Component] = ()
) -> MaxentPlan:
    """Plan with a budget in epsilon or in rho."""
    if price.rho is not None:
        return plan_in_rho(domains, n=n, rho=price.rho, neighbours=price.neighbours, zeros=zeros)
    return maxent_plan(domains, n=n, epsilon=price.amount, neighbours=price.neighbours, zeros=zeros)


def worth(domains: Sequence[Domain], price: Price) -> Fraction:
    """Return the epsilon (change-one) with as much noise for all pairs as a privacy parameter.

    It does not depend on the number of records, and so neither do comparisons by it.
    """
    if price.rho is not None:
        return _terms_in_rho(domains, 1, price).worth
    return WORTH[price.neighbours] * price.amount


@dataclass(frozen=True)
class _Terms:
    """The public quantities that a plan depends on, besides the domains.

    Attributes:
        n: the number of records, as far as it is known.
        price: of all.
        worth: the epsilon for change-one neighbours that has as much noise.
        blocks: how many marginals a cover has, for a price in rho.
    """

    n: int
    price: Price
    worth: Fraction
    blocks: int = 0

    @property
    def pure(self) -> bool:
        return self.price.rho is None

    @property
    def root(self) -> float:
        """1 over the standard deviation of a marginal's noise, for a budget in rho."""
        return sqrt(float(self.price.amount) * WORTH[self.price.neighbours])

    def one_way(self, share: Fraction, m: int) -> Fraction:
        """Return the budget share of one-way marginals, given their share of epsilon."""
        if self.pure:
            return share
        odds = self.blocks * (share / (1 - share)) ** 2 / m
        return min(share, odds / (1 + odds))

    def costliest(self, share: Fraction, pairs: int) -> float:
        """Return the largest acceptable cost of a cover, given the share of one-way marginals."""
        if self.pure:
            return float(NOISE * pairs * (1 - share) * self.n * self.worth) / 1.1
        return float(NOISE) * pairs * self.n * self.root * sqrt(float(1 - share)) / 0.4

    def count_near_misses(
        self, price: Price, candidates: int, moves: int, *, off: Fraction = NOISE
    ) -> float:
        """Count the selections of which each misses the best by some total variation.

        A selection's noise has scale 2 D / e, or D / sqrt(2 rho), and among c candidates it misses
        the best score by about ln(c) times that, in records that are counted twice: a total
        variation of `NOISE` is a score of 2 n `NOISE`.
        """
        reach = moves / WORTH[price.neighbours]
        missed = log(candidates) * reach / (2 * self.n * float(off))
        if price.rho is None:
            return float(price.amount) / (2 * missed)
        return 2 * float(price.amount) / missed**2


def _terms_in_rho(domains: Sequence[Domain], n: int, price: Price) -> "_Terms":
    """Make the terms of a budget in rho; see `plan_in_rho`."""
    terms = _Terms(n, price, Fraction(0))
    if len(domains) < 2:
        return replace(terms, worth=_round(2 * sqrt(2 * len(domains)) * terms.root))
    sizes = tuple(min(domain.size, 16) for domain in domains)
    pure, blocks, cost = _covers(sizes)
    return replace(terms, worth=_round(2 * sqrt(2) * terms.root * pure / cost), blocks=blocks)


@lru_cache(maxsize=16)
def _covers(sizes: tuple[int, ...]) -> tuple[float, int, float]:
    """Return the cost of the cover for epsilon, and the number of blocks and cost for rho."""
    mixed = cover(sizes, power=CONCENTRATED)
    return cover(sizes).cost, len(mixed.blocks), mixed.cost


def _round(number: float) -> Fraction:
    return Fraction(number).limit_denominator(10**6)


def _make_plan(domains: Sequence[Domain], terms: _Terms, zeros: Sequence[Component]) -> MaxentPlan:
    """Apply the rule of `maxent_plan` to the epsilon that corresponds to the budget."""
    m = len(domains)
    if m < 1:
        raise InputError("maxent needs at least one column; found none.")
    n = terms.n
    budget = n * terms.worth
    tau = float(budget) / 100
    if m == 1:
        return MaxentPlan(PairMarginals.NONE, 2, Fraction(1), (1,), tau, budget, Cover((), (), 0.0))
    lines = [is_line(domain) for domain in domains]
    strength = budget / comb(m, 2)
    one_way = max(
        _share_for_noise(strength), _share_for_codes(domains, 255, lines, zeros, strength)
    )
    cells = prod(limit_groups(domain, 16) for domain in domains)
    if 3 <= m <= 5 and strength >= 10_000 and cells <= DENSE:
        sets = tuple(combinations(range(m), 3))
        marginals, groups, chosen = PairMarginals.TRIPLES, 16, Cover(sets, (1,) * len(sets), 0.0)
        one_way = terms.one_way(one_way, m)
    else:
        groups, chosen = _finest(domains, terms, one_way, zeros)
        one_way = max(one_way, _share_for_codes(domains, groups, lines, zeros, strength))
        groups, chosen = _finest(domains, terms, one_way, zeros)
        one_way = terms.one_way(one_way, m)
        marginals = _name_pairs(chosen)
    fine = prod(limit_groups(domain, groups) for domain in domains) > DENSE
    three_way, three_way_share = 0, (1 - one_way) / 10
    if (
        3 <= m <= _MOST_COLUMNS
        and strength >= _MUCH
        and marginals in {PairMarginals.PAIRS, PairMarginals.BLOCKS}
    ):
        three_way = min(room(n, terms.price * three_way_share, 1) // 6**3, m, comb(m, 3))
    if three_way < min(_FEWEST, comb(m, 3)) or not three_way:
        three_way, three_way_share = 0, Fraction(0)
    return MaxentPlan(
        marginals=marginals,
        groups=groups,
        one_way_share=one_way,
        weights=tuple(2 if line else 1 for line in lines),
        tau=tau,
        strength=strength,
        cover=chosen,
        **_plan_fine_pairs(terms, one_way, [domain.size for domain in domains], groups),
        learns=strength < (_LEARNT if fine else WEAK),
        three_way=three_way,
        three_way_share=three_way_share,
    )


def _plan_fine_pairs(
    terms: _Terms, one_way: Fraction, sizes: Sequence[int], groups: int
) -> dict[str, Any]:
    """Plan how many pairs may be measured over finer groups, and how fine."""
    m, left = len(sizes), 1 - one_way
    pairs = comb(m, 2)
    finest = room(terms.n, terms.price * left, 10, selection=Fraction(0))
    most = min(FINEST, isqrt(_MOST_ENERGIES) // m)
    price = terms.price * left * FINE_SELECTION
    selections = terms.count_near_misses(price, pairs + 1, 4)
    nearer = terms.count_near_misses(price, pairs + 1, 4, off=NOISE / 2)
    if selections < 1 or min(max(sizes), finest, most) <= groups:
        return {}
    most_pairs = min(int(selections), m - 1, max(_HELD // m, 1))
    return {
        "fine_pairs": most_pairs,
        "fine_groups": min(finest, most),
        "fine_cells": finest,
        "fine_share": left * FINE_SELECTION / max(Fraction(most_pairs), _round(nearer)),
    }


def foresee_errors(
    domains: Sequence[Domain], plan: MaxentPlan, *, n: int, price: Price
) -> tuple[tuple[float, ...], dict[tuple[int, int], float]]:
    """Predict the errors of one-way and two-way marginals from noise alone, by formula.

    One-way: the mean absolute error of the share of one category, or of one leaf of a number's
    tree. Counts have noise of scale 2 / e, whose mean absolute value is its scale: 2 / (n e). A
    tree's counts have e - min(e / 2, 2.5) of the column's price e.

    Two-way: the mean total variation, over groups. In a marginal k of price e_k the counts of two
    columns of A and B groups are sums over V_k cells, of variance 8 V_k / e_k^2; several marginals
    are weighted by the inverse. With s the standard deviation of what comes of it, and 0.8 s its
    mean absolute value, that is 0.4 A B s / n, at most 1.

    For an added or removed record the scale is half of that. A price of rho gives Gaussian noise
    of variance 1 / rho, or half of that, and 0.8 of its standard deviation; a tree's counts have
    half the column's price.

    Neither counts what groups lose, nor what the fit gains by knowing that counts are not negative.
    """
    budget, pure = float(price.amount), price.rho is None
    worth = WORTH[price.neighbours]
    prices = [float(plan.one_way_share) * budget * w / sum(plan.weights) for w in plan.weights]
    counted = [
        (p - min(p / 2, 2.5) if pure else p / 2) if is_line(domain) else p
        for domain, p in zip(domains, prices, strict=True)
    ]
    means = [2 / (worth * p) if pure else 0.8 / sqrt(worth * p) for p in counted]
    one_way = tuple(min(mean / n, 1.0) for mean in means)
    left = 1 - plan.one_way_share - plan.fine_share - plan.three_way_share
    sizes = [limit_groups(domain, plan.groups) for domain in domains]
    pairs: dict[tuple[int, int], float] = {}
    if plan.marginals is PairMarginals.NONE:
        return one_way, pairs
    for a, b in combinations(range(len(domains)), 2):
        precision = 0.0
        for block, weight in zip(plan.cover.blocks, plan.cover.weights, strict=True):
            if a in block and b in block:
                amount = float(left) * budget * weight / sum(plan.cover.weights)
                cells = prod(sizes[j] for j in block if j not in (a, b))
                precision += ((worth * amount) ** 2 / 8 if pure else worth * amount) / cells
        pairs[a, b] = min(0.4 * sizes[a] * sizes[b] / (n * precision**0.5), 1.0)
    return one_way, pairs


def room(n: int, price: Price, marginals: int, *, selection: Fraction = SELECTION_SHARE) -> int:
    """Return the cells that each of several marginals may have, which share a budget.

    The mean of Laplace noise's absolute value is its scale, 2 / e, so a marginal of c cells
    has a total variation of c / (n e) from noise alone, which must not exceed `NOISE`. For an added
    or removed record the scale is half of that. Gaussian noise has 0.8 of its standard deviation.

    >>> room(12_000, Price(Fraction(17, 20)), 4)
    229
    """
    share = price * (1 - selection) / marginals
    if price.rho is None:
        return int(NOISE * n * share.amount * WORTH[price.neighbours])
    return int(float(NOISE) * n * sqrt(float(share.amount) * WORTH[price.neighbours]) / 0.4)


_EVEN, _MUCH, _LEARNT = 200, 1000, 2500
_MOST_COLUMNS = 16  # columns whose three-way marginals are all scored
_FEWEST = 3  # three-way marginals that are worth a selection


def _share_for_noise(strength: Fraction) -> Fraction:
    """Return the one-way share that noise asks for: the more, the less two-way marginals tell."""
    return _EVEN / (_EVEN + strength)


def _share_for_codes(
    domains: Sequence[Domain],
    groups: int,
    lines: Sequence[bool],
    zeros: Sequence[Component],
    strength: Fraction,
) -> Fraction:
    """Return the one-way share that codes ask for: the more of them binning hides, the more.

    Of ordered codes at most 32 count: beyond that, neighbours answer for each other
    (`posterior.smooth`).
    """
    codes = sum(limit_groups(domain, domain.size) for domain in domains)
    hidden = 1 - Fraction(sum(limit_groups(domain, groups) for domain in domains), codes)
    share = Fraction(1, 10) + hidden * _round(min(0.4, 9 / sqrt(strength)))
    if any(lines):
        share = max(share, Fraction(15, 100))
    if all(lines):
        share = max(share, Fraction(3, 5))
    if zeros:
        share = max(share, Fraction(1, 5))
    return share


def _finest(
    domains: Sequence[Domain], terms: _Terms, share: Fraction, zeros: Sequence[Component]
) -> tuple[int, Cover]:
    """Search the most groups whose cover has acceptable noise, and that cover.

    More groups cost more, so halving finds it.
    """
    sizes = [limit_groups(domain, domain.size) for domain in domains]
    one_way = terms.one_way(share, len(sizes))
    most = terms.costliest(one_way, comb(len(sizes), 2))
    power = PURE if terms.pure else CONCENTRATED

    def find_cover(groups: int) -> Cover:
        allowed = AllowedCells(sizes, zeros, groups) if zeros else None
        grouped = [limit_groups(domain, groups) for domain in domains]
        return cover(grouped, power=power, allowed=allowed)

    low, high = 2, max(min(max(sizes), _most_groups(sizes)), 2)
    best = find_cover(low)
    while low < high:
        middle = (low + high + 1) // 2
        found_cover = find_cover(middle)
        if found_cover.cost <= most:
            low, best = middle, found_cover
        else:
            high = middle - 1
    return low, best


def limit_groups(domain: Domain, groups: int) -> int:
    """Return how many groups a column has at most, by the plan's number of them.

    Two groups of unordered codes mix unlike ones, and show next to nothing: three are the least.
    """
    if has_order(domain):
        return min(domain.size, groups, _ALIKE)
    return min(domain.size, max(groups, LEAST_NOMINAL))


def _most_groups(sizes: Sequence[int]) -> int:
    """Return the most groups for which a fit can hold the two-way marginals of all pairs."""
    most = FINEST
    while most > 2:
        capped = [min(size, most) for size in sizes]
        if (sum(capped) ** 2 - sum(size**2 for size in capped)) // 2 <= _MOST_CELLS:
            break
        most -= 1
    return most


def _name_pairs(chosen: Cover) -> PairMarginals:
    if len(chosen.blocks) == 1:
        return PairMarginals.FULL
    return PairMarginals.PAIRS if all(len(b) == 2 for b in chosen.blocks) else PairMarginals.BLOCKS
