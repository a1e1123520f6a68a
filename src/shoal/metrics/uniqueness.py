"""Unique records in the sample and, as far as it can be estimated, in the population.

A key is a combination of values of the attributes that an attacker may know. f is the number of
records of the table with a record's key, F the number of people in the population with it. Missing
is a value of its own.

These are counts and model-based expectations for one table, and not attacks: no control can be
given, and a record that is alone in the release is found by somebody only if its values are true.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from shoal.core import Estimate
from shoal.core._arrays import Floats, Ints
from shoal.core.row_order import row_keys
from shoal.errors import InputError

MOST_PATTERNS = 64
"""Patterns of suppressed cells that records are matched by."""


@dataclass(frozen=True)
class Uniques:
    """Counts of records that share their keys.

    Attributes:
        records: rows of the table.
        keys: different keys.
        uniques: records that are alone with their key.
        pairs: records that share their key with one other.
        smallest: the smallest class; the k of k-anonymity, and 0 for an empty table.
    """

    records: int
    keys: int
    uniques: int
    pairs: int
    smallest: int

    @property
    def share(self) -> float:
        """The share of records that are unique; 0 for an empty table."""
        return self.uniques / self.records if self.records else 0.0


@dataclass(frozen=True, eq=False)
class IndividualRisk:
    """Estimated probability, record by record, that an attacker's match on the key is right.

    Attributes:
        risks: one per record.
        mean: the global risk, their mean. The interval is for the share of hits of an attacker
            who tries every record once, if the risks are right: it does not cover their error.
        expected: number of re-identifications to expect, the sum of the risks.
        population_uniques: how many of the sample uniques are expected to be alone in the
            population too: the sum of their 1 / weight.
    """

    risks: Floats
    mean: Estimate
    expected: float
    population_uniques: float


@dataclass(frozen=True)
class Contribution:
    """The contribution of one attribute to a risk.

    Attributes:
        alone: the risk if the attacker knows this attribute only.
        without: the risk if the attacker knows all the others.
        added: the risk of all attributes minus `without`.
    """

    alone: float
    without: float
    added: float


def uniques(columns: NDArray[np.generic], *, hidden: NDArray[np.bool_] | None = None) -> Uniques:
    """Count the records that are unique in their values. Cost O(d n log n).

    Args:
        columns: records by attributes.
        hidden: which cells are suppressed. Such a cell matches any, so a record is alone if
            no other agrees with it wherever both show a value; p patterns of hidden cells cost
            p^2 times as much.

    >>> uniques(np.array([[1, 0], [1, 0], [1, 2]])).uniques
    1
    """
    codes, rows = value_codes(columns), len(columns)
    sizes = _matches(codes, rows, hidden, None)[0]
    return Uniques(
        records=rows,
        keys=int(row_keys(codes, rows).max(initial=-1)) + 1,
        uniques=int((sizes == 1).sum()),
        pairs=int((sizes == 2).sum()),
        smallest=int(sizes.min()) if rows else 0,
    )


def individual_risk(
    columns: NDArray[np.generic],
    weights: Floats | None = None,
    *,
    hidden: NDArray[np.bool_] | None = None,
    confidence: float = 0.95,
) -> IndividualRisk:
    """Estimate the individual risk of Benedetti and Franconi.

    With F estimated by the sum of the weights over the key's records, and p = f / F, the
    population frequency given the sample's is taken as negative binomial with f successes at p,
    and the risk is E(1 / F | f):

        r = (p / f) 2F1(1, 1; f + 1; 1 - p)

    which is p / (1 - p) log(1 / p) for a sample unique, and 1 / f where the table is the whole
    population (p = 1, or no weights). sdcMicro's `indivRisk` has the same at f = 1 and 2 and
    approximates p / (f - (1 - p)) beyond; its `measure_risk` also takes 0.0001 off p.

    Args:
        columns: records by attributes that an attacker may know.
        weights: people that each record stands for; a weight below 1 counts as 1.
        hidden: which cells are suppressed, and match any; see `uniques`.
        confidence: of the interval.

    References:
        Benedetti and Franconi, "Statistical and technological solutions for controlled data
        dissemination", New Techniques and Technologies for Statistics 1998.
        Franconi and Polettini, "Individual risk estimation in mu-Argus: a review", Privacy in
        Statistical Databases 2004, LNCS 3050, 262-272.
        Templ, Kowarik and Meindl, "Statistical disclosure control for micro-data using the R
        package sdcMicro", J. Stat. Software 67 (2015). doi:10.18637/jss.v067.i04

    >>> individual_risk(np.array([[1], [2], [2]])).risks
    array([1. , 0.5, 0.5])
    """
    codes, rows = value_codes(columns), len(columns)
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != (rows,) or not np.isfinite(weights).all():
            raise InputError(f"Expected a finite weight for each of {rows} records.")
        weights = np.maximum(weights, 1.0)
    frequencies = _matches(codes, rows, hidden, weights)
    risks = _risks(*frequencies)
    n = max(rows, 1)
    mean = float(risks.sum()) / n
    z = float(scipy.special.ndtri((1 + confidence) / 2))
    half = z * float(np.sqrt((risks * (1 - risks)).sum())) / n
    unique = frequencies[0] == 1
    return IndividualRisk(
        risks=risks,
        mean=Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), confidence),
        expected=float(risks.sum()),
        population_uniques=float(unique.sum() if weights is None else (1 / weights[unique]).sum()),
    )


def contributions(
    columns: NDArray[np.generic],
    weights: Floats | None = None,
    *,
    hidden: NDArray[np.bool_] | None = None,
) -> tuple[Contribution, ...]:
    """Estimate how much each attribute adds to the mean individual risk. Cost O(d^2 n log n).

    The parts do not sum to the whole: two equivalent attributes add nothing to each other.
    """
    codes, rows = value_codes(columns), len(columns)
    if weights is not None:
        weights = np.maximum(np.asarray(weights, dtype=np.float64), 1.0)

    def risk(chosen: list[int]) -> float:
        part = None if hidden is None else hidden[:, chosen]
        matches = _matches([codes[j] for j in chosen], rows, part, weights)
        return float(_risks(*matches).sum()) / max(rows, 1)

    every = list(range(len(codes)))
    total = risk(every)
    parts = []
    for j in every:
        without = risk(every[:j] + every[j + 1 :])
        parts.append(Contribution(risk([j]), without, total - without))
    return tuple(parts)


def household_risk(risks: Floats, households: Ints) -> Floats:
    """Estimate, for each record, the probability that a member of its household is found.

    A household is found if one member is: 1 less the product of 1 - r over its members, if these
    are found independently.

    Args:
        risks: individual risk of each record.
        households: the household of each record, numbered from 0.

    References:
        Hundepool et al., Statistical Disclosure Control, Wiley 2012, section 3.5: household risk.

    >>> household_risk(np.array([0.5, 0.5, 0.2]), np.array([0, 0, 1])).tolist()
    [0.75, 0.75, 0.2]
    """
    missed = np.log1p(-np.minimum(risks, 1 - 2.0**-53))
    total = np.bincount(households, missed)
    certain = np.bincount(households, risks >= 1) > 0
    risk: Floats = np.where(certain, 1.0, -np.expm1(total))[households]
    return risk


def _matches(
    codes: list[Ints], rows: int, hidden: NDArray[np.bool_] | None, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Count for each record the records that match it, itself included, and sum their weights."""
    heavy = np.ones(rows) if weights is None else weights
    if hidden is None or not hidden.any():
        keys = row_keys(codes, rows)
        f = np.bincount(keys).astype(np.float64)
        people = np.bincount(keys, heavy).astype(np.float64)
        return f[keys], people[keys]
    pattern, first = distinct_rows(hidden)
    patterns = hidden[first]
    if len(patterns) > MOST_PATTERNS:
        raise InputError(
            f"{len(patterns)} patterns of suppressed cells are too many to match records by; "
            f"expected at most {MOST_PATTERNS}."
        )
    groups = [np.flatnonzero(pattern == p) for p in range(len(patterns))]
    records, mass = np.zeros(rows), np.zeros(rows)
    for p, mine in enumerate(groups):
        for q, theirs in enumerate(groups):
            shown = np.flatnonzero(~(patterns[p] | patterns[q]))
            both = np.concatenate([mine, theirs])
            keys = row_keys([codes[j][both] for j in shown], len(both))
            own_keys, other = keys[: mine.size], keys[mine.size :]
            width = int(keys.max(initial=0)) + 1
            records[mine] += np.bincount(other, minlength=width)[own_keys]
            mass[mine] += np.bincount(other, heavy[theirs], minlength=width)[own_keys]
    return records, mass


def _risks(f: Floats, people: Floats) -> Floats:
    """Compute E(1 / F | f) of each record."""
    where, first = distinct_rows(np.column_stack([f, people]))
    many = f[first]
    p = np.minimum(many / np.maximum(people[first], 1e-300), 1.0)
    risk: Floats = (p / many * _gauss(many, 1 - p))[where]
    return risk


def _gauss(f: Floats, q: Floats) -> Floats:
    """Compute 2F1(1, 1; f + 1; q), the sum over j of q^j / C(f + j, j).

    Euler's transformation of p^(f - 1) 2F1(f, f; f + 1; q), which overflows. From f = 20 on 64
    terms of the sum are enough, since 1 / C(84, 20) < 1e-18; the library's function fails at
    large f.
    """
    few = f < 20
    result = np.ones(len(f))
    result[few] = scipy.special.hyp2f1(1.0, 1.0, f[few] + 1, q[few])
    many, rest = f[~few], q[~few]
    term, total = np.ones(len(many)), np.ones(len(many))
    for j in range(1, 65):
        term = term * rest * j / (many + j)
        total += term
    result[~few] = total
    return result


def value_codes(columns: NDArray[np.generic]) -> list[NDArray[np.int64]]:
    """Number the distinct values of each column in order; missing (NaN) is one value.

    >>> [codes.tolist() for codes in value_codes(np.array([[2.0, 1.0], [np.nan, 1.0]]))]
    [[0, 1], [0, 0]]
    """
    table = np.asarray(columns)
    if table.ndim != 2:
        raise InputError("Expected a matrix of records by columns.")
    return [np.unique(column, return_inverse=True)[1] for column in table.T]


def distinct_rows(columns: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the key of each row, and the first row with each key.

    >>> keys, first = distinct_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]]))
    >>> keys.tolist(), first.tolist()
    ([1, 0, 1], [1, 0])
    """
    keys = row_keys(value_codes(columns), len(columns))
    first = np.full(int(keys.max(initial=-1)) + 1, len(keys), dtype=np.int64)
    np.minimum.at(first, keys, np.arange(len(keys)))
    return keys, first
