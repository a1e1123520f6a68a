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

"The approach works with any microaggregation algorithm": `partition`. Each of them groups by the
data, so each carries the same two claims, refuted by a pair of its own (`COUNTEREXAMPLES`).
Groups of at least k whole records share their noisy centre: k-anonymity, proved. Groups of
`optimal-univariate` are of one column each, and so is their k-anonymity. Where one shuffled column
is a list, the blocks of MDAV may be fixed, and the proof of `ir-mdav-laplace` holds; the other
algorithms cut where the data decide, whatever the number of rows.

Without a minimum size (`adaptive = true`, the paper's future work) groups minimise aggregation
error plus expected noise, see `shoal.partition.noise_aware`: no k, and the two claims.
Refutation: equal records are one group. With half of them at one corner of the box and half at the
other, and n^2 above 12 times the expected noise, two groups cost less than one. On the way from
the first table to the second, one record at a time, a single record turns one group into several,
and one distinct row into several.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from shoal.core import Claim, Kind, Partition, Status
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.methods.grouping import microaggregation
from shoal.methods.grouping.partition_encoding import encode
from shoal.methods.method import CostModel, Masked, Pair, Promises, Setting, Tools
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.noise.noisy_microaggregation import (
    NoisyParameters,
    Origin,
    ProtectedColumn,
    Split,
)
from shoal.partition import mdav, mondrian, mu_approx, noise_aware, optimal_univariate, vmdav
from shoal.policy.values import Epsilon, Size, choice

if TYPE_CHECKING:
    from shoal.mechanism.microaggregate_noise import Purchase

SOURCE = (
    "Soria-Comas and Domingo-Ferrer, Differentially private data sets based on microaggregation "
    "and record perturbation, MDAI (2017)"
)
CONDITIONAL_BASIS = (
    "Proposition 2 and parallel composition: with the groups held fixed, a changed record moves "
    "one centroid by at most width / |C|"
)


class GroupingAlgorithm(StrEnum):
    """How groups of at least k records are formed."""

    MDAV = "mdav"
    VMDAV = "vmdav"
    MU_APPROX = "mu-approx"
    OPTIMAL_UNIVARIATE = "optimal-univariate"
    MONDRIAN = "mondrian"


UNSCALED = {GroupingAlgorithm.OPTIMAL_UNIVARIATE, GroupingAlgorithm.MONDRIAN}
"""Their groups are the same on every scale."""


class GroupingScale(StrEnum):
    """How columns are made comparable before records are grouped."""

    PUBLIC = "public"
    FROM_DATA = "from-data"
    OWN_UNITS = "own-units"


class MdavLaplaceParameters(NoisyParameters):
    """Parameters of MDAV with noise."""

    k: Size | None = Field(
        None,
        title="Smallest group (k)",
        description="The smallest number of records that a group may have. Required "
        "unless adaptive is set.",
    )
    partition: Annotated[GroupingAlgorithm, choice(GroupingAlgorithm)] = Field(
        GroupingAlgorithm.MDAV,
        title="How groups form",
        description="The algorithm that forms groups of k; optimal-univariate groups each column "
        "by itself. Not with adaptive.",
    )
    scale: Annotated[GroupingScale, choice(GroupingScale)] = Field(
        GroupingScale.PUBLIC,
        title="How columns are made comparable",
        description="How columns are made comparable before grouping: by their bounds (public), "
        "by mean and standard deviation (from-data), or not at all (own-units). Not with mondrian "
        "and optimal-univariate.",
    )
    adaptive: bool = Field(
        default=False,
        title="Groups of any size",
        description="Form groups of any size, without k, for the least aggregation error plus "
        "noise.",
    )
    groups: list[list[str]] | None = Field(
        None,
        title="Sets of columns that are grouped by themselves",
        description="Disjoint sets of columns to group separately (Algorithm 2); by default one "
        "set of all.",
    )
    epsilons: list[Epsilon] | None = Field(
        None,
        title="Privacy loss of each set",
        description="The epsilon of each set of columns, which add up to epsilon; by default in "
        "proportion to the widths.",
    )


def counterexample(k: int) -> Pair:
    """Make a pair with k / 2 points at each corner of a square (k even); one moves by 0.033.

    The unordered centroids are (0, 1/2) and (1, 1/2) for one table, and nearly (1/2, 0) and
    (1/2, 1) for the other.
    """
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    before = np.repeat(corners, k // 2, axis=0)
    after = before.copy()
    after[-1] = [0.967, 1.0]
    event = (
        "with 2k records at the corners of a unit square, moving one record by 0.033 flips the "
        "groups, and the centroids move by about 2, while the noise is scaled for 2 / k"
    )
    return Pair(before, after, event)


def two_ends(k: int) -> Pair:
    """Make k records at each end of the diagonal and one near its middle, which moves by 0.02.

    The group of k + 1 is at the nearer end.
    """
    before = np.repeat([0.0, 1.0, 0.49], [k, k, 1])[:, None] * np.ones(2)
    after = before.copy()
    after[-1] = 0.51
    event = (
        "with 2k + 1 records, k at each end and one near the middle, moving that one by 0.02 "
        "puts the larger group at the other end; the sums of the groups, which their sizes "
        "identify, move by 2k widths, while the noise allows for two at most"
    )
    return Pair(before, after, event)


def two_halves(k: int) -> Pair:
    """Make k records at each end of the diagonal; one of them moves to the other end.

    With k - 1 records at one end no cut leaves k on both sides.
    """
    before = np.repeat([0.0, 1.0], [k, k])[:, None] * np.ones(2)
    after = before.copy()
    after[0] = 1.0
    event = (
        "with 2k records, k at each end, moving one to the other end leaves no possible cut, "
        "and the release has one distinct row instead of two"
    )
    return Pair(before, after, event)


def square_or_ends(k: int) -> Pair:
    """Make the pair that refutes MDAV of several numbers: the square needs an even k."""
    return two_ends(k) if k % 2 else counterexample(k)


COUNTEREXAMPLES: dict[GroupingAlgorithm, Callable[[int], Pair]] = {
    GroupingAlgorithm.MDAV: square_or_ends,
    GroupingAlgorithm.VMDAV: two_ends,
    GroupingAlgorithm.MU_APPROX: two_ends,
    GroupingAlgorithm.OPTIMAL_UNIVARIATE: two_ends,
    GroupingAlgorithm.MONDRIAN: two_halves,
}


def refuting_pair(setting: Setting[MdavLaplaceParameters], k: int) -> Pair:
    """Make a pair that refutes the epsilon of such a release.

    The square needs two numbers and an even k. `two_ends` refutes MDAV as well: of 2k + 1 records,
    fewer than 3k, the first k are taken at the end that is farther from the centroid, and the rest
    are the larger group.
    """
    partition = setting.parameters.partition
    numbers = [n for n in setting.columns if setting.schema[n].kind is not Kind.NOMINAL]
    if partition is GroupingAlgorithm.MDAV and len(numbers) < 2:
        return two_ends(k)
    return COUNTEREXAMPLES[partition](k)


ONE_OR_MANY = (
    "a table of equal records forms one group, and one with half of the records at each end "
    "forms several if there are enough records; changing one record after the other leads from "
    "the first to the second, so some single change adds a group, and with it a distinct row"
)


def two_readings(
    setting: Setting[NoisyParameters],
    *,
    basis: str,
    source: str,
    refutation: str,
    assumes: Sequence[str],
    epsilon: Fraction | None = None,
    instead: str,
    about: str = epsilon_claims.MICROAGGREGATED,
) -> tuple[Claim, ...]:
    """Make two claims: the authors' one, with its assumption, and one for the original records."""
    return (
        epsilon_claims.privacy_claim(
            setting,
            Status.CONDITIONAL,
            basis=basis,
            source=source,
            assumes=assumes,
            epsilon=epsilon,
            about=about,
        ),
        epsilon_claims.privacy_claim(
            setting,
            Status.REFUTED,
            basis=refutation,
            source=epsilon_claims.OURS,
            instead=instead,
        ),
    )


def one_column_claims(setting: Setting[NoisyParameters], k: int) -> tuple[Claim, ...]:
    """Claim for one shuffled column, whose groups are blocks by rank."""
    refutation = (
        "counterexample: with 4k + 1 records at the two ends of a column, the larger group lies "
        "at the end that has the majority; changing one record moves it to the other end, and "
        "the group sums move by 2k + 1 widths"
    )
    return (epsilon_claims.list_claim(setting, k, refutation=refutation),)


def _claims(setting: Setting[MdavLaplaceParameters]) -> tuple[Claim, ...]:
    k, partition = setting.parameters.k, setting.parameters.partition
    listed = epsilon_claims.one_list(setting) and partition is GroupingAlgorithm.MDAV
    if k is not None and listed:
        return (
            *one_column_claims(setting, k),
            epsilon_claims.claim_shared_rows(setting, k, SOURCE),
        )
    refutation = (
        "counterexample: groups depend on the data, and the release "
        f"shows them; {ONE_OR_MANY if k is None else refuting_pair(setting, k).event}"
    )
    claims = two_readings(
        setting,
        basis=CONDITIONAL_BASIS,
        source=SOURCE,
        refutation=refutation,
        assumes=[epsilon_claims.FIXED_GROUPS],
        instead=f"{epsilon_claims.keep_links('4.6%')}. 'public-laplace' has the paper's proof "
        "without its assumption, if public columns name the groups",
    )
    if k is None or setting.parameters.groups:
        return claims
    univariate = partition is GroupingAlgorithm.OPTIMAL_UNIVARIATE
    sets = [(name,) for name in setting.columns] if univariate else [setting.columns]
    return (*claims, *(epsilon_claims.claim_shared_rows(setting, k, SOURCE, c) for c in sets))


def _not_claimed(setting: Setting[Any]) -> tuple[str, ...]:
    univariate = setting.parameters.partition is GroupingAlgorithm.OPTIMAL_UNIVARIATE
    return microaggregation.no_joint_promise(setting) if univariate else ()


def _refuse(setting: Setting[MdavLaplaceParameters]) -> None:
    noisy_microaggregation.no_public_columns(setting)
    parameters = setting.parameters
    if (parameters.k is None) is not parameters.adaptive:
        raise InputError("[protect]: expected either the smallest group size k or adaptive = true.")
    if parameters.adaptive and parameters.partition is not GroupingAlgorithm.MDAV:
        raise InputError(
            "[protect], partition: expected only together with k, found adaptive = true."
        )
    if parameters.partition in UNSCALED and parameters.scale is not GroupingScale.PUBLIC:
        raise InputError(
            f"[protect], scale: '{parameters.partition}' forms the same groups on every scale; "
            "expected scale only together with mdav, vmdav, mu-approx or adaptive."
        )
    if parameters.groups is None:
        if parameters.epsilons is not None:
            raise InputError(
                "[protect], epsilons: expected together with 'groups', found no groups."
            )
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
    univariate = parameters.partition is GroupingAlgorithm.OPTIMAL_UNIVARIATE
    ranked = noisy_microaggregation.NominalOrder.DECLARED if univariate else None
    given = noisy_microaggregation.put_on_grids(table, setting, ranked=ranked)
    sets = parameters.groups or [list(setting.columns)]
    parts: list[tuple[ProtectedColumn, Partition, Purchase]] = []
    for number, names in enumerate(sets):
        chosen = [axis for axis in given if axis.name in names]
        price = _price(setting, number, chosen, given)
        prices = noisy_microaggregation.budgets(chosen, price, Split.PROPORTIONAL)
        if univariate and parameters.k is not None:
            for axis, share in zip(chosen, prices, strict=True):
                partition = optimal_univariate(axis.places, parameters.k)
                parts += noisy_microaggregation.each([axis], partition, [share])
            continue
        partition = _group_records(table, parameters, chosen, price, tools)
        parts += noisy_microaggregation.each(chosen, partition, prices)
    return Masked(*noisy_microaggregation.perturb(table, tools, parts))


def _group_records(
    table: Table,
    parameters: MdavLaplaceParameters,
    chosen: Sequence[ProtectedColumn],
    price: Fraction,
    tools: Tools,
) -> Partition:
    """Group whole records by some of their columns."""
    if parameters.partition is GroupingAlgorithm.MONDRIAN and parameters.k is not None:
        X, borders = encode(table, [axis.name for axis in chosen])
        return mondrian(X, parameters.k, borders=borders)
    codes = noisy_microaggregation.nominal_codes(table, chosen)
    own_units = parameters.scale is GroupingScale.OWN_UNITS
    origin = Origin.PUBLIC if own_units else Origin(parameters.scale)
    X = noisy_microaggregation.matrix(chosen, origin, codes=codes)
    if own_units:
        blocks = [noisy_microaggregation.matrix([axis], origin, codes=codes) for axis in chosen]
        X = np.hstack([b * float(axis.width) for b, axis in zip(blocks, chosen, strict=True)])
    if parameters.k is None:
        noise = _foresee_noise(chosen, price, parameters.scale, codes)
        return noise_aware(X, noise, progress=tools.progress)
    if parameters.partition is GroupingAlgorithm.MU_APPROX:
        return mu_approx(X, parameters.k)
    form = mdav if parameters.partition is GroupingAlgorithm.MDAV else vmdav
    return form(X, parameters.k, progress=tools.progress)


def _price(
    setting: Setting[MdavLaplaceParameters],
    number: int,
    chosen: Sequence[ProtectedColumn],
    given: Iterable[ProtectedColumn],
) -> Fraction:
    """Return the epsilon that a row spends on one set of columns."""
    epsilons = setting.parameters.epsilons
    if epsilons is not None:
        return Fraction(epsilons[number]) / contributions.most(setting.schema)
    part, total = (sum((axis.width for axis in some), Fraction(0)) for some in (chosen, given))
    return contributions.row_epsilon(setting) * part / total


def _foresee_noise(
    chosen: Sequence[ProtectedColumn],
    price: Fraction,
    scale: GroupingScale,
    codes: Mapping[str, Ints],
) -> float:
    """Predict the squared length of the noise on a group of one record, in the records' units.

    Laplace noise of scale b has variance 2 b^2; in the unit box b = (sum of widths) / (width
    epsilon). A nominal counts as a number of its width: how its choice errs follows the data.
    """
    total = sum(axis.width for axis in chosen)
    expected = 0.0
    for axis in chosen:
        unit = 1.0
        if scale is GroupingScale.OWN_UNITS:
            unit = float(axis.width) ** 2
        elif scale is GroupingScale.FROM_DATA:
            places = noisy_microaggregation.matrix([axis], Origin.PUBLIC, codes=codes)
            spread = places.var(axis=0)
            unit = float(np.mean(1 / np.where(spread > 0, spread, 1.0)))
        expected += unit * float(2 * (total / (axis.width * price)) ** 2)
    return expected


METHOD = noisy_microaggregation.noisy_method(
    "mdav-laplace",
    "Group records by MDAV or otherwise, add noise (k-anonymity; conditional epsilon).",
    _run,
    Promises(_claims, _not_claimed, counterexample=square_or_ends),
    source=SOURCE,
    parameters=MdavLaplaceParameters,
    refuse=_refuse,
    cost=CostModel(1.0, 0.32, 1.0, 4),
)
