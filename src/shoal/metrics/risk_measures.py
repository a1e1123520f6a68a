"""The disclosure risks that a policy can limit, each a number for every row, and its model.

A measure is one entry of `MEASURES`: how the risk of each row is computed, and what the figure
assumes about the population. `core.RiskMeasure` says which facts beside the cells it uses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from shoal.core import RiskMeasure
from shoal.core._arrays import Bools, Floats, Ints
from shoal.core.row_order import row_keys
from shoal.errors import InputError
from shoal.metrics.kernels.population import count_people
from shoal.metrics.suda import FRACTION, LARGEST, suda
from shoal.metrics.uniqueness import distinct_rows, household_risk, individual_risk


@dataclass(frozen=True, eq=False)
class RowsAtRisk:
    """Released rows, with what is known of each beside its cells.

    Attributes:
        columns: rows by quasi-identifiers, as codes; missing is a value of its own.
        weights: people that each row stands for.
        households: the household of each row, numbered from 0.
        people: of the population who agree with each row.
    """

    columns: Ints
    weights: Floats | None = None
    households: Ints | None = None
    people: Ints | None = None

    @property
    def fraction(self) -> float:
        """The sampling fraction by the weights; without them that of the field's programs."""
        if self.weights is None:
            return FRACTION
        return min(1.0, len(self.weights) / max(float(self.weights.sum()), 1.0))

    def contributions(self) -> Floats:
        """Return the share of the score of SUDA that is of sets with each column."""
        return suda(self.columns, fraction=self.fraction).contributions


@dataclass(frozen=True)
class Measure:
    """How the risk of each row is computed.

    Attributes:
        risks: of each row.
        model: what must hold for the figure to be right; "" for a count of the table itself.
    """

    risks: Callable[[RowsAtRisk], Floats | Ints]
    model: Callable[[RowsAtRisk], str]


def _individual(rows: RowsAtRisk) -> Floats:
    return individual_risk(rows.columns, rows.weights).risks


def _individual_model(rows: RowsAtRisk) -> str:
    return (
        "the table is the whole population, or the attacker knows who is in it"
        if rows.weights is None
        else "the weights are right, and people with a combination are in the table by chance "
        "(Benedetti and Franconi)"
    )


def _household(rows: RowsAtRisk) -> Floats:
    return household_risk(_individual(rows), cast("Ints", rows.households))


def _people(rows: RowsAtRisk) -> Floats | Ints:
    if rows.people is not None:
        return rows.people
    if rows.weights is None:
        raise InputError("The k of k-map needs a table of the population, or sampling weights.")
    keys = distinct_rows(rows.columns)[0]
    # Exact for weights that are: a sum that is 5 must not fall short of it by rounding.
    people: Floats = np.round(np.bincount(keys, np.maximum(rows.weights, 1.0))[keys], 9)
    return people


def _people_model(rows: RowsAtRisk) -> str:
    return (
        "as many people share a combination as its weights sum up to"
        if rows.people is None
        else "an attacker finds nobody but the people of the population file, with the values there"
    )


def _households(rows: RowsAtRisk) -> Ints:
    """Count the households that share each row's combination."""
    keys = distinct_rows(rows.columns)[0]
    pairs = np.unique(np.column_stack([keys, cast("Ints", rows.households)]), axis=0)
    return np.bincount(pairs[:, 0])[keys]


def _suda(rows: RowsAtRisk) -> Floats:
    return suda(rows.columns, fraction=rows.fraction).dis


def _suda_model(rows: RowsAtRisk) -> str:
    return (
        f"the table is a simple random sample of a share of {rows.fraction:.3g} of the population "
        f"(scores of Elliot et al., sets of up to {LARGEST} columns)"
    )


MEASURES: Mapping[RiskMeasure, Measure] = {
    RiskMeasure.INDIVIDUAL: Measure(_individual, _individual_model),
    RiskMeasure.HOUSEHOLD: Measure(
        _household,
        lambda rows: f"{_individual_model(rows)}; members are found independently of each other",
    ),
    RiskMeasure.K_MAP: Measure(_people, _people_model),
    RiskMeasure.HOUSEHOLD_K: Measure(_households, lambda _rows: ""),
    RiskMeasure.SUDA: Measure(_suda, _suda_model),
}


def people_behind(lower: Floats, upper: Floats, anything: Bools, places: Floats) -> Ints:
    """Count the people of a population who agree with each released row (k-map).

    Args:
        lower: rows by columns: a released cell holds lower <= place < upper, or one place.
        upper: the other end.
        anything: rows by columns: the cell agrees with every value.
        places: people by columns; NaN where missing, which agrees with such cells alone.

    References:
        Sweeney, "Computational disclosure control: a primer on data privacy protection", PhD
        thesis, MIT, 2001: k-map.

    >>> row, people = np.array([[30.0], [40.0]]), np.array([[31.0], [39.0], [40.0]])
    >>> people_behind(row, row + 10, np.zeros((2, 1), bool), people).tolist()
    [2, 1]
    """
    widths = [np.unique(column).size for column in places.T]
    by_width = np.argsort([-width for width in widths], kind="stable")
    person, first = distinct_rows(places[:, by_width])
    number = np.bincount(person, minlength=first.size)
    people = places[first][:, by_width]
    order = np.argsort(people[:, 0], kind="stable")
    boxes: list[Any] = [ends[:, by_width] for ends in (lower, upper, anything)]
    key = row_keys([distinct_rows(ends)[0] for ends in boxes], len(lower))
    each = np.unique(key, return_index=True)[1]
    low, high, any_value = (np.ascontiguousarray(ends[each]) for ends in boxes)
    counted: Ints = count_people(low, high, any_value, people[order], number[order])[key]
    return counted
