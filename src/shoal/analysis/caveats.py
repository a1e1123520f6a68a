"""What an interval accounts for, and what it does not: by the policy and the release alone."""

from collections.abc import Sequence

from shoal.analysis.published import PublishedTable, Treatment
from shoal.analysis.result import Estimand

_PLAIN = {Treatment.NONE, Treatment.GROUP_MEANS, Treatment.INTERVALS}
"""What is done without noise."""


def caveats(
    published: PublishedTable, statistic: str, columns: Sequence[str], estimand: Estimand
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the interval of a statistic accounts for, and what it does not account for."""
    treatments = {published.treatment(name) for name in columns}
    drawn = treatments == {Treatment.DRAWN}
    population = estimand is Estimand.POPULATION
    weighted = published.weights is not None and not drawn and population
    people = "rows" if published.several_rows else "people"
    means, intervals = Treatment.GROUP_MEANS in treatments, Treatment.INTERVALS in treatments
    grouped, noisy = means or intervals, bool(treatments - _PLAIN)
    regression = statistic in {"ols", "logit"}
    average = statistic in {"mean", "total"}
    steps = all(published.step(name) for name in columns if published.numeric(name))
    accounts = {
        f"the sampling of {people}, by the released weights": weighted,
        f"the simple random sampling of {people}": population and not weighted,
        "the noise of the release, by its published law": noisy,
        "where in a counted bin people are, by a sixth of its width": drawn
        and average
        and published.blocks(columns[0]) is None,
        "where in an interval people are on average, by a sixth of its width": intervals
        and population
        and average,
        "where in their intervals people are: the interval has bounds that hold for certain":
        intervals and not population,
    }  # fmt: skip
    leaves = {
        "strata and clusters of the sampling design": population,
        "rows of one person, which are more alike than others": population
        and published.several_rows,
        "the error of the population's size, which is taken from the weights": weighted
        and statistic == "total",
        "dependence inside counted groups that is not linear in the scores": drawn and regression,
        "where in a counted bin people are, beyond a density that is linear in it": drawn
        and statistic == "quantile",
        "where in their intervals people are, beyond the density that all intervals show":
        intervals and population,
        "the spread inside groups, beyond that of groups which tile the space": means
        and population,
        "a relation inside groups that is not a line": grouped and regression,
        "whole numbers, which people may have: the policy states no step": grouped
        and statistic == "quantile"
        and not steps,
        "weights that differ inside groups, whose means are unweighted": means and weighted,
        **_of_the_table(published, columns, grouped=grouped),
        "missing cells, which may have got the mean of their group": means,
        "cells that were missing, or outside the public bounds or categories, which got a public "
        "value inside": noisy and bool(published.manifest.privacy_losses),
        **_of_missing(published, columns, statistic),
        "error in the confidential table, such as nonresponse": True,
    }  # fmt: skip
    first, second = (tuple(text for text, holds in s.items() if holds) for s in (accounts, leaves))
    return first, second


def _of_the_table(
    published: PublishedTable, columns: Sequence[str], *, grouped: bool
) -> dict[str, bool]:
    """What the policy says that was done to the table before."""
    required = {*published.manifest.policy.get("require", ())}
    stated = [published.column(name) for name in columns]
    return {
        "groups that were steered by confidential values": grouped
        and bool({"l-diversity", "t-closeness"} & required),
        "the rows that were left out": bool(published.manifest.suppressed)
        or (published.table_rows is None and published.several_rows),
        "values beyond those at which the column was cut off": any(
            column.top_code is not None or column.bottom_code is not None for column in stated
        ),
        "records that broke a rule, which were moved to the nearest that keeps all": any(
            published.may_be_repaired(name) for name in columns
        ),
    }


def _of_missing(
    published: PublishedTable, columns: Sequence[str], statistic: str
) -> dict[str, bool]:
    gone = any(published.frame[name].null_count() for name in columns)
    return {
        "missing cells, which count as the mean of the others": gone and statistic == "total",
        "rows in which a cell is missing, which are left out": gone and statistic != "total",
    }
