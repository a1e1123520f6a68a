"""MDAV, then Laplace noise on the centroids: soriacomas2017, Algorithms 1 and 2.

The authors say: "the data set to be protected is the microaggregated one". Two claims follow.

Conditional: given that both tables have the same groups, a record moves its own group's centroid
by at most width / |C| in each column; noise of scale (sum of widths) / (|C| epsilon) on each column
makes the centroids cost epsilon (Proposition 2 and parallel composition).

Refuted, for the original records: groups follow the data. `counterexample`: k/2 points at each
corner of a square; moving one record by 0.033 turns vertical pairs of corners into horizontal
ones, and the centroids move by 1.998 where the noise is scaled for 2 / k. The table moreover
shows who is in which group.

Algorithm 2 groups disjoint sets of columns separately, each at a price of its own:
`groups = [["age", "hours"], ["income"]]`, with `epsilons` if they are not to share by width.

Without a minimum size (`adaptive = true`, the paper's future work) groups grow while aggregation
error plus expected noise falls. They follow the data even more closely: no k, and the
same two claims.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from shoal.core import Claim, Partition, Status
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.methods._shared import epsilon_claims, noisy_microaggregation
from shoal.methods._shared.noisy_microaggregation import (
    NoisyParameters,
    Origin,
    ProtectedColumn,
    Split,
)
from shoal.methods.method import Masked, Pair, Promises, Setting, Tools
from shoal.partition import mdav, noise_aware
from shoal.policy.spec import Epsilon, Size, choice

if TYPE_CHECKING:
    from shoal.mechanism.microaggregate_noise import Purchase

SOURCE = (
    "Soria-Comas and Domingo-Ferrer, Differentially private data sets based on microaggregation "
    "and record perturbation, MDAI (2017)"
)
CONDITIONAL_BASIS = (
    "Proposition 2 and parallel composition: with groups held fixed, a record moves one centroid, "
    "by at most width / |C|"
)


class MdavLaplaceParameters(NoisyParameters):
    """Parameters of MDAV with noise."""

    k: Size | None = Field(
        None, description="Smallest number of records in a group; not with adaptive."
    )
    scale: Annotated[Origin, choice(Origin)] = Field(
        Origin.PUBLIC,
        description="from-data standardises columns by the data before grouping them.",
    )
    adaptive: bool = Field(
        default=False, description="Let groups grow while error plus noise falls, without k."
    )
    groups: list[list[str]] | None = Field(
        None, description="Disjoint sets of columns to group separately (Algorithm 2)."
    )
    epsilons: list[Epsilon] | None = Field(
        None, description="The price of each set of columns; together epsilon."
    )


def counterexample(k: int) -> Pair:
    """K / 2 points at each corner of the unit square (k even); one record moves by 0.033.

    The unordered centroids are (0, 1/2) and (1, 1/2) for one table, and nearly (1/2, 0) and
    (1/2, 1) for the other.
    """
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    before = np.repeat(corners, k // 2, axis=0)
    after = before.copy()
    after[-1] = [0.967, 1.0]
    event = (
        "moving one of 2k records at the corners of a square by 0.033 flips the groups, and the "
        "centroids move by about 2 where the noise is scaled for 2 / k"
    )
    return Pair(before, after, event)


def two_readings(
    setting: Setting[NoisyParameters],
    *,
    basis: str,
    source: str,
    refutation: str,
    assumes: Sequence[str],
    epsilon: Fraction | None = None,
) -> tuple[Claim, ...]:
    """The authors' reading, with its assumption, and the reading for the original records."""
    return (
        epsilon_claims.privacy_claim(
            setting,
            Status.CONDITIONAL,
            basis=basis,
            source=source,
            assumes=assumes,
            epsilon=epsilon,
        ),
        epsilon_claims.privacy_claim(
            setting, Status.REFUTED, basis=refutation, source=epsilon_claims.OURS
        ),
    )


def one_column_claims(setting: Setting[NoisyParameters], k: int) -> tuple[Claim, ...]:
    """Claims for one shuffled column, whose groups are blocks by rank."""
    refutation = (
        "counterexample: of 4k + 1 records at the two ends of a column the larger group is the "
        "majority's; one record turns it over, and group sums move by 2k + 1 widths"
    )
    return (epsilon_claims.list_claim(setting, k, refutation=refutation),)


def _claims(setting: Setting[MdavLaplaceParameters]) -> tuple[Claim, ...]:
    k = setting.parameters.k
    if epsilon_claims.one_list(setting) and k is not None:
        return (
            *one_column_claims(setting, k),
            epsilon_claims.shared_rows(setting, k, SOURCE),
        )
    refutation = (
        "counterexample, for the original records: groups follow the data, and the release shows "
        f"them; {counterexample(2).event}"
    )
    claims = two_readings(
        setting,
        basis=CONDITIONAL_BASIS,
        source=SOURCE,
        refutation=refutation,
        assumes=[epsilon_claims.FIXED_GROUPS],
    )
    if k is None or setting.parameters.groups:
        return claims
    return (*claims, epsilon_claims.shared_rows(setting, k, SOURCE))


def _refuse(setting: Setting[MdavLaplaceParameters]) -> None:
    noisy_microaggregation.no_public_columns(setting)
    parameters = setting.parameters
    if (parameters.k is None) is not parameters.adaptive:
        raise InputError("[protect]: expected either k or adaptive = true.")
    if parameters.groups is None:
        if parameters.epsilons is not None:
            raise InputError("[protect], epsilons: expected 'groups' beside it, found none.")
        return
    named = [name for group in parameters.groups for name in group]
    if sorted(named) != sorted(setting.columns):
        raise InputError(
            "[protect], groups: expected every protected column in exactly one set: "
            f"{', '.join(setting.columns)}."
        )
    if parameters.epsilons is not None:
        if len(parameters.epsilons) != len(parameters.groups):
            raise InputError("[protect], epsilons: expected one for each set of columns.")
        if sum(parameters.epsilons) != parameters.epsilon:
            raise InputError(
                f"[protect], epsilons: expected a sum of {parameters.epsilon}, found "
                f"{sum(parameters.epsilons)}."
            )


def _run(table: Table, setting: Setting[MdavLaplaceParameters], tools: Tools) -> Masked:
    parameters = setting.parameters
    given = noisy_microaggregation.protected_axes(table, setting)
    sets = parameters.groups or [list(setting.columns)]
    parts: list[tuple[ProtectedColumn, Partition, Purchase]] = []
    partition = None
    for number, names in enumerate(sets):
        chosen = [axis for axis in given if axis.name in names]
        price = _price(parameters, number, chosen, given)
        X = noisy_microaggregation.matrix(
            chosen, parameters.scale, codes=noisy_microaggregation.nominal_codes(table, chosen)
        )
        if parameters.k is None:
            partition = noise_aware(X, _expected_noise(chosen, price), progress=tools.progress)
        else:
            partition = mdav(X, parameters.k, progress=tools.progress)
        parts += noisy_microaggregation.each(
            chosen, partition, noisy_microaggregation.budgets(chosen, price, Split.PROPORTIONAL)
        )
    return Masked(*noisy_microaggregation.perturbed(table, tools, parts))


def _price(
    parameters: MdavLaplaceParameters,
    number: int,
    chosen: Sequence[ProtectedColumn],
    given: Iterable[ProtectedColumn],
) -> Fraction:
    if parameters.epsilons is not None:
        return Fraction(parameters.epsilons[number])
    part, whole = (sum((axis.width for axis in some), Fraction(0)) for some in (chosen, given))
    return Fraction(parameters.epsilon) * part / whole


def _expected_noise(chosen: Sequence[ProtectedColumn], price: Fraction) -> float:
    """Expected squared length of the noise on a group of one, in the unit box.

    Laplace noise of scale b has variance 2 b^2; here b = (sum of widths) / (width epsilon).
    """
    total = sum(axis.width for axis in chosen)
    return float(sum(2 * (total / (axis.width * price)) ** 2 for axis in chosen))


METHOD = noisy_microaggregation.noisy_method(
    "mdav-laplace",
    "Group records by MDAV and add noise to the centroids (soriacomas2017).",
    _run,
    Promises(_claims, counterexample=counterexample),
    source=SOURCE,
    parameters=MdavLaplaceParameters,
    refuse=_refuse,
)
