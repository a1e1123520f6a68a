"""Choose the mechanism that draws the rows, by a rule over public facts, with reasons.

The rule is a function of the columns' kinds and domain sizes, of n, of epsilon and of what the rows
are wanted for. It never sees a record, so following it costs nothing. For a budget in rho, epsilon
is the one with as much noise (`maxent.worth`), and copula, which has only pure noise, is excluded.

    m = number of columns, P = m (m - 1) / 2, r = n epsilon / P

    m = 1 or 2, at most 256 codes in each column, and       maxent, which counts them
        n epsilon / (2 m) in all
    m = 1 or 2 otherwise                                    privtree
    all numeric, goal MEANS, n epsilon < 5000               copula, blocks by rank;
                                                            not where missing is a value
    otherwise, and wherever rows must keep constraints      maxent, with its own `maxent_plan`

Where the thresholds come from. Adult, age and hours, 300 to 3,000 records, epsilon 0.3 and 1:
privtree, evenly spread, had less rank distance and count error than either copula. With all 30,162
records centroids were nearer at epsilon 10 only. A single column's counts had about 0.6 of the
distance, unless it had more codes than half of n epsilon (bench/two.py, on generated tables). Ten
generated pairs of numbers of 101 and 81 values, n epsilon 1,000 to 100,000: counts had 0.58 to 0.98
of the count error and 0.4 to 1.03 of the distance of a tree; at n epsilon 300 they had 1.2 times
both. On 1,001 and 801 values trees were nearer in distance by 1.15 to 1.7 times, but where numbers
are heaped or often zero. Adult's age and hours: 0.7 to 0.8 of the count error. Census, four amounts
on a log scale, n epsilon 216 to 3,240, 12 seeds: blocks by rank had the least squared distance (at
1,080: 0.42 of the variance against 0.56 for maxent, which counted three times better). The others
are those of the mixed-tables note. A few tables are not the world: on another, another choice may
be better. What is chosen is always proved; how good it is, is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import comb

from shoal.core import Price, figure
from shoal.errors import InputError
from shoal.synthesis.copula import Margins
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import (
    WEAK,
    WORTH,
    MaxentPlan,
    PairMarginals,
    is_line,
    plan_of,
    worth,
)
from shoal.synthesis.maxent.plan import LEAST_NOMINAL
from shoal.synthesis.maxent.structural_zeros import Component
from shoal.synthesis.privtree import Fill

_TREE_COLUMNS = 2
"""Columns of which a tree may be nearer than marginals."""
_FEW = 5000
_MANY = 100_000


class Goal(StrEnum):
    """The intended use of the rows: counting, or means and squared distance."""

    COUNTS = "counts"
    MEANS = "means"


@dataclass(frozen=True)
class SynthesizerChoice:
    """The chosen mechanism with its public settings, and the reasons.

    Attributes:
        plan: the mechanism and how it is run: `Fill` of privtree, `Margins` of copula, or
            `MaxentPlan`.
        why: sentences for the report.
        warnings: what the user should know before spending epsilon.
    """

    plan: Fill | Margins | MaxentPlan
    why: tuple[str, ...]
    warnings: tuple[str, ...]


def choose(
    domains: Sequence[Domain],
    *,
    n: int,
    price: Price,
    goal: Goal = Goal.COUNTS,
    zeros: Sequence[Component] = (),
    constrained: bool = False,
) -> SynthesizerChoice:
    """Choose a mechanism for n records, if n is known, and a privacy parameter.

    See the rule above. For add-remove neighbours epsilon counts twice in it, because noise has half
    the scale, if not that of copula. Constraints, which zeros follow from, only maxent keeps.
    """
    if not domains or n < 1 or price.amount <= 0:
        raise InputError("Expected at least one column, at least one record and epsilon > 0.")
    m, budget = len(domains), n * worth(domains, price)
    numeric = all(domain.numeric and not domain.gap for domain in domains)
    weak = warnings(domains, n=n, price=price)
    plan = plan_of(domains, n=n, price=price, zeros=zeros)
    if constrained:
        return SynthesizerChoice(plan, (_CONSTRAINED, *_why(domains, plan, n, price, zeros)), weak)
    if m <= _TREE_COLUMNS and not _has_few_codes(domains, budget):
        return SynthesizerChoice(*_tree(budget, goal), weak)
    if m == 1:
        note = "There is one column of few values: the count of each value is measured with noise."
        return SynthesizerChoice(plan, (note,), weak)
    few_records = budget < _FEW and n > 1 and price.rho is None
    if numeric and goal is Goal.MEANS and few_records:
        blocks = (
            f"All {m} columns are numeric, the goal is means, and n epsilon is below {_FEW:,}.",
            (
                "In our experiments, noisy means of rank blocks, joined by rank correlations, then "
                "had the smallest squared distance."
            ),
        )
        skewed = "Declare a log or square-root scale for skewed columns."
        return SynthesizerChoice(Margins.BLOCKS, blocks, (*weak, skewed))
    if m == _TREE_COLUMNS:
        few = "There are two columns of few values: their two-way marginal is measured with noise."
        return SynthesizerChoice(plan, (few,), weak)
    return SynthesizerChoice(plan, _why(domains, plan, n, price, zeros), weak)


def _why(
    domains: Sequence[Domain],
    plan: MaxentPlan,
    n: int,
    price: Price,
    zeros: Sequence[Component],
) -> tuple[str, ...]:
    """Say what maxent measures, and why."""
    m = len(domains)
    if m == 1:
        return ()
    strength = figure(float(n * worth(domains, price) / WORTH[price.neighbours] / comb(m, 2)))
    as_much = "" if price.rho is None else f" ({AS_MUCH})"
    tables = (
        "comes one three-way marginal"
        if plan.three_way == 1
        else f"come {plan.three_way} three-way marginals"
    )
    return (
        (
            f"There are {m} columns to model: marginals are measured with noise, and rows are "
            "drawn from the maximum-entropy distribution that fits them."
        ),
        (
            f"The number of rows n times epsilon{as_much} is {strength} for each pair of columns: "
            f"{_REASONS[plan.marginals]}."
        ),
        groups_text(plan, zeros),
        *([_GAUSSIAN] if price.rho is not None else []),
        *([_FINE] if plan.fine_pairs else []),
        *([f"Last {tables}, {_THREE_WAY}"] if plan.three_way else []),
    )


def groups_text(plan: MaxentPlan, zeros: Sequence[Component]) -> str:
    """Say how coarse a plan's marginals are."""
    most = (
        f"at most {max(plan.groups, LEAST_NOMINAL)} groups"
        if not zeros
        else (f"about {plan.groups} groups, and one at least for all that the rules tell apart")
    )
    return f"In these marginals, the values of a column form {most}."


AS_MUCH = "the epsilon of equally large Laplace noise"
_CONSTRAINED = "There are constraints: only maxent draws rows that keep them by its structure."
_GAUSSIAN = "Noise is Gaussian, which many marginals need: privacy losses are counted in rho."
_THREE_WAY = "selected with noise where pairs of columns explain too little."
_FINE = (
    "Pairs of columns whose dependence such groups would hide are selected with noise, and "
    "measured over finer groups."
)


_REASONS = {
    PairMarginals.FULL: (
        "one coarse marginal of all columns, because several would each get too little of it"
    ),
    PairMarginals.BLOCKS: (
        "marginals of a few columns each, which together cover every pair with the least noise"
    ),
    PairMarginals.PAIRS: "a marginal of every two columns",
    PairMarginals.TRIPLES: "enough for a marginal of every three columns",
}


def warnings(domains: Sequence[Domain], *, n: int, price: Price) -> tuple[str, ...]:
    """Warn of what to know before any budget is spent, whichever mechanism is chosen."""
    m, times = len(domains), WORTH[price.neighbours]
    strength = n * worth(domains, price) / times / max(comb(m, 2), 1)
    rows = f"With {n:,} {'row' if n == 1 else 'rows'}"
    least = WEAK // times
    as_much = "" if price.rho is None else f" ({AS_MUCH})"
    if strength < least:
        columns = "for each pair of columns" if m > 1 else "for the column"
        amount = (
            f"the number of rows n times epsilon{as_much} is {figure(float(strength))} {columns}, "
            f"below {least}"
        )
        left = (
            "little beyond the one-way marginals is preserved"
            if m > 1
            else "little of the data is preserved"
        )
        move = f"Use {'fewer columns or ' if m > 1 else ''}a larger {price.measure}."
        cost = f"{price.measure} {figure(float(price.amount))}"
        return (f"{rows} and {cost}, {amount}: {left}. {move}",)
    if n < WEAK:
        return (f"{rows}, fewer than {WEAK}, one record is a large part of every count.",)
    return ()


def _has_few_codes(domains: Sequence[Domain], budget: Fraction) -> bool:
    """Whether noisy counts of all codes are nearer than a tree that is refined where they are."""
    codes = sum(domain.size for domain in domains)
    return not any(map(is_line, domains)) and 2 * len(domains) * codes <= budget


def _tree(budget: Fraction, goal: Goal) -> tuple[Fill, tuple[str, ...]]:
    first = "There are only one or two columns: a private tree is refined where records are dense."
    if goal is Goal.MEANS and budget >= _MANY:
        return Fill.CENTROID, (first, "Rows get the noisy mean of their leaf.")
    return Fill.UNIFORM, (first, "Rows are spread evenly over their leaf.")
