"""Privacy parameters of the methods that draw rows from a noisy model: epsilon or rho.

Prices of one release are all in epsilon, or all in rho (`row_price`). Which of them follows from
the policy alone, and neither from the table nor from its number of rows: so a release claims no
more than it pays in, and strata agree. Where epsilon and a delta are stated, it is rho if that has
less noise for all pairs of columns; otherwise epsilon is purely paid, and no delta is claimed.
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import comb, prod
from typing import Annotated, Any, cast

from pydantic import Field

from shoal.core import Kind, Price, PrivacyMeasure
from shoal.core.concentrated import rho_of
from shoal.errors import InputError
from shoal.methods.discovery import DELTA_SHARE, has_unknown_texts, open_columns
from shoal.methods.drawn_rows.constrained_space import ConstrainedSpace, constrain_space
from shoal.methods.method import CostModel, Setting
from shoal.methods.noise import contributions
from shoal.methods.noise.noisy_microaggregation import EpsilonParameters
from shoal.methods.trees.spatial_encoding import SpatialEncoding
from shoal.policy.values import Delta, Epsilon, Share, Size
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent.fit import DENSE
from shoal.synthesis.maxent.plan import WORK, worth

_SEVERAL = 32
"""Groups that a column may have in the forecast of a fit's time."""
FEW = 3
"""Fewer columns have few marginals, and less noise where prices are pure."""
PureAlone = Callable[[Setting[Any]], bool]
"""Whether a method's choice may fall on a mechanism that has pure noise alone."""


class SynthesisParameters(EpsilonParameters):
    """Parameters of every method that draws rows from a noisy model."""

    min_cell: Size | None = Field(
        None,
        title="Least frequency of a combination",
        description="Merge drawn rows until every combination of the quasi-identifiers occurs so "
        "often.",
    )
    discovery_share: Annotated[Share, Field(le=Decimal("0.5"))] | None = Field(
        None,
        title="Most of the budget that finds domains",
        description="Where the policy leaves domains to be discovered: the largest share of the "
        "budget that finds them; 0.1 by default. State more, up to 0.5, where most texts are rare.",
    )
    strata: str | None = Field(
        None,
        title="Learn each category by itself",
        description="A public column whose categories are learnt one by one, each with the whole "
        "epsilon.",
    )


class DeltaParameters(SynthesisParameters):
    """Parameters of the methods that may do their accounting in rho."""

    epsilon: Epsilon | None = Field(  # type: ignore[assignment]
        None,
        title="Privacy loss (epsilon)",
        description="Privacy budget: one record changes the probability of any release by a "
        "factor of at most e^epsilon.",
    )
    delta: Delta | None = Field(
        None,
        title="Probability of a larger loss (delta)",
        description=(
            "Probability with which more than epsilon may become known; none is the stronger "
            "promise. Stated, noise may be Gaussian."
        ),
    )
    rho: Epsilon | None = Field(
        None,
        title="Privacy loss of Gaussian noise (rho)",
        description="Zero-concentrated differential privacy in place of epsilon: for every delta, "
        "rho has an epsilon. Noise is Gaussian.",
    )


def refuse_prices(setting: Setting[SynthesisParameters]) -> None:
    """Refuse privacy parameters other than epsilon, epsilon with delta, or rho."""
    parameters = setting.parameters
    if not isinstance(parameters, DeltaParameters):
        return
    if (parameters.epsilon is None) is (parameters.rho is None):
        given = "neither" if parameters.rho is None else "both"
        raise InputError(f"[protect]: expected either epsilon or rho, found {given}.")
    if parameters.epsilon is None and parameters.delta is not None:
        raise InputError(
            "[protect], delta: a rho has an epsilon for every delta, so none is stated beside it. "
            "Remove delta, or state epsilon and delta instead of rho."
        )


def find_stated_rho(setting: Setting[SynthesisParameters], pure: PureAlone) -> Fraction | None:
    """Return the rho of the release, if its losses are counted in rho, else None.

    It follows from the policy as it is published: neither rules nor categories that were copied
    from the data decide, because a recipient could not derive it again.
    """
    parameters = setting.parameters
    if not isinstance(parameters, DeltaParameters):
        return None
    if parameters.rho is not None:
        return Fraction(parameters.rho)
    if parameters.delta is None or parameters.epsilon is None or pure(setting):
        return None
    epsilon, delta = Fraction(parameters.epsilon), Fraction(parameters.delta)
    if unsettled := open_columns(setting):  # what is found may not decide how it is paid for
        left = 1 - DELTA_SHARE if has_unknown_texts(unsettled) else 1
        return rho_of(epsilon, delta * left)
    if len(setting.columns) < FEW:
        return None
    neighbours, rho = parameters.neighbours, rho_of(epsilon, delta)
    stated = [setting.schema[name] for name in setting.columns]
    columns = [
        replace(column, categories=("", " "), hierarchy=None, top_code=None, bottom_code=None)
        if column.observed
        else column
        for column in stated
    ]
    rules = setting.constraints.rules
    if setting.constraints.observed or columns != stated:
        rules = ()
    domains = [domain_of(axis) for axis in constrain_space(columns, rules).modelled]
    in_rho = worth(domains, Price(rho, neighbours, PrivacyMeasure.RHO))
    return rho if in_rho > worth(domains, Price(epsilon, neighbours)) else None


def row_price(setting: Setting[SynthesisParameters], pure: PureAlone) -> Price:
    """Return the privacy parameter of one row of a person: epsilon / r, or rho / r^2."""
    rho = find_stated_rho(setting, pure)
    if rho is None:
        return Price(contributions.row_epsilon(setting), setting.parameters.neighbours)
    each = rho / contributions.most(setting.schema) ** 2
    return Price(each, setting.parameters.neighbours, PrivacyMeasure.RHO)


def constrain_columns(setting: Setting[SynthesisParameters]) -> ConstrainedSpace:
    """Encode the columns whose domain is known so that drawn rows satisfy the constraints."""
    named = (setting.schema[name] for name in setting.columns)
    columns = [column for column in named if not column.is_open]
    return constrain_space(columns, setting.constraints.rules)


def domain_of(axis: SpatialEncoding) -> Domain:
    """Return what a mechanism may know of an axis. Codes follow the public order."""
    kind = cast("Kind", axis.column.kind)
    joins = None
    if axis.heights is not None:
        top = int(axis.heights.max())
        joins = tuple(top - int(height) for height in axis.heights)
    kind = Kind.NUMERIC if kind is Kind.DATE else kind
    return Domain(axis.column.name, kind, axis.count, joins=joins, gap=axis.gap)


def fit_cost(setting: Setting[Any]) -> CostModel:
    """Return the cost model of fitting marginals, by columns and total number of codes.

    With few cells, every cell is fitted. Particles take as long as they are many, times the pairs
    of columns, up to `WORK`, which is where wide tables are; more rows mean more particles, and
    take longer to count. The time does not grow beyond 150,000 rows.
    """
    categories = (setting.schema[name].all_categories for name in setting.columns)
    sizes = [_SEVERAL if known is None else min(len(known), _SEVERAL) for known in categories]
    if prod(sizes) <= DENSE:
        return CostModel(0.8, 0.13, 0.6, 40, most_rows=150_000)
    seconds = 2 + 22 * min(100_000 * comb(len(sizes), 2) / WORK, 1.0)
    return CostModel(0.8, seconds * 5 / len(sizes), 0.3, 40, most_rows=150_000)
