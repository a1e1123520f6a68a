"""Counts of persons by equivalence class and confidential value."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core import MissingMeaning, whole_numbers
from shoal.core._arrays import Ints
from shoal.errors import InputError


@dataclass(frozen=True, eq=False)
class Counts:
    """How many persons of each class hold each confidential value, if any do.

    One entry per pair of class and value that occurs, in the order of the classes and, within
    a class, of the values. A class without persons is allowed, and every model ignores it, so
    parts of a table can be counted separately and added.

    Attributes:
        classes: class of each entry, from 0.
        values: confidential value of each entry, from 0. Under an ordered distance the
            codes are the order.
        counts: persons, at least 1.
        persons: in each class, whatever values they hold. Where a person has one record,
            this is the sum of the class's counts; where a person has several, each is
            counted once per value, and the sum may be larger.
        width: number of values that there may be, occurring or not.
        apart: for each class, the largest number of values that as many different persons hold;
            None if each person has one record: then it is the number of values.

    >>> counts = Counts.of([0, 0, 1, 1, 1], [2, 2, 0, 1, 1])
    >>> counts.classes, counts.values, counts.counts
    (array([0, 1, 1]), array([2, 0, 1]), array([2, 1, 2]))
    """

    classes: Ints
    values: Ints
    counts: Ints
    persons: Ints
    width: int
    apart: Ints | None = None

    @classmethod
    def of(
        cls,
        labels: ArrayLike,
        codes: ArrayLike,
        *,
        units: ArrayLike | None = None,
        groups: int | None = None,
        width: int | None = None,
    ) -> "Counts":
        """Count records, or the distinct `units` that they belong to.

        Cost of sorting the records once; with units of sorting them twice more, and of a largest
        matching of values and persons in each class.

        Args:
            labels: class of each record, from 0.
            codes: confidential value of each record, from 0, missing having its own code.
            units: person of each record, as whole numbers; None where each record is one.
            groups: number of classes, at least all that occur.
            width: number of values, at least all that occur.
        """
        label, code = whole_numbers(labels, "labels"), whole_numbers(codes, "codes")
        if len(label) != len(code):
            raise InputError(
                f"The labels of the classes and the codes of the values must be equally long; "
                f"found {len(label)} and {len(code)}."
            )
        groups = _room(label, groups, "groups")
        width = _room(code, width, "width")
        persons = label
        key = label * width + code
        apart = None
        if units is not None:
            unit = np.unique(np.asarray(units), return_inverse=True)[1].ravel()
            if len(unit) != len(label):
                raise InputError(
                    f"The argument units must give the person of each record; found {len(unit)} "
                    f"names for "
                    f"{len(label)} records."
                )
            many = int(unit.max(initial=0)) + 1
            persons = np.unique(label * many + unit) // many
            apart = _match(label, key, label * many + unit, groups)
            key = np.unique(key * many + unit) // many
        pairs, counts = np.unique(key, return_counts=True)
        return cls(
            pairs // width,
            pairs % width,
            counts.astype(np.int64),
            np.bincount(persons, minlength=groups),
            width,
            apart,
        )

    def __add__(self, other: "Counts") -> "Counts":
        """Add the counts of another part of the same table.

        Classes and values must be numbered alike.

        Raises:
            InputError: units were counted; one that lies in both parts would count twice.
        """
        if self.apart is not None or other.apart is not None:
            raise InputError("Counts of persons cannot be added when persons have several records.")
        width = max(self.width, other.width)
        groups = max(len(self.persons), len(other.persons))
        keys = [part.classes * width + part.values for part in (self, other)]
        pairs, where = np.unique(np.concatenate(keys), return_inverse=True)
        counts = np.zeros(len(pairs), np.int64)
        np.add.at(counts, where.ravel(), np.concatenate([self.counts, other.counts]))
        persons = np.zeros(groups, np.int64)
        for part in (self, other):
            persons[: len(part.persons)] += part.persons
        return Counts(pairs // width, pairs % width, counts, persons, width)

    def layout(self) -> tuple[Ints, Ints]:
        """Return where the entries of each class that has any begin, and which classes they are."""
        if not len(self.counts):
            raise InputError("The table has no rows; there is nothing to check.")
        starts = np.flatnonzero(np.diff(self.classes, prepend=-1))
        return starts, self.classes[starts]

    @property
    def totals(self) -> Ints:
        """Persons by value, over all classes."""
        totals = np.zeros(self.width, np.int64)
        np.add.at(totals, self.values, self.counts)
        return totals

    @property
    def homogeneous(self) -> Ints:
        """The classes in which all persons share a value, so their size protects nobody."""
        starts, present = self.layout()
        alike: Ints = present[np.maximum.reduceat(self.counts, starts) == self.persons[present]]
        return alike


def k_when_missing_matches(classes: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """Return the largest k such that every record matches at least k, if missing matches all.

    This is the other reading of a missing cell in the literature: records match if they agree
    wherever both are present. Matching is then not an equivalence, so the smallest number
    of matches over all records is reported. Cost O(p^2 g log g) for p patterns of missing
    cells among g classes.

    Args:
        classes: one row per class, one integer code per column, -1 where missing.
        counts: records in each class.

    >>> k_when_missing_matches(np.array([[0, 1], [0, -1], [1, 1]]), np.array([1, 1, 2]))
    2
    """
    present = classes >= 0
    patterns, pattern = np.unique(present, axis=0, return_inverse=True)
    matches = np.zeros(len(classes), dtype=np.int64)
    groups = [np.flatnonzero(pattern.ravel() == p) for p in range(len(patterns))]
    for (p, mine), (q, theirs) in product(enumerate(groups), repeat=2):
        both = patterns[p] & patterns[q]
        rows = np.vstack([classes[mine][:, both], classes[theirs][:, both]])
        # Rows without a shared present column all match.
        key = np.unique(rows, axis=0, return_inverse=True)[1].ravel() if both.any() else None
        if key is None:
            matches[mine] += counts[theirs].sum()
            continue
        total = np.bincount(key[mine.size :], counts[theirs], minlength=int(key.max()) + 1)
        matches[mine] += total[key[: mine.size]].astype(np.int64)
    return int(matches.min())


def persons_agreeing(codes: Ints, units: Ints, missing: MissingMeaning) -> int:
    """Return the least number of persons among the rows that agree with any one row.

    Rows agree if they are equal, or wherever both are present. Cost O(n) for each class.

    >>> persons_agreeing(np.array([[0], [0], [-1]]), np.array([0, 0, 1]), MissingMeaning.MATCHES)
    2
    """
    least = len(units)
    for row in np.unique(codes, axis=0):
        same = codes == row
        if missing is MissingMeaning.MATCHES:
            same |= (codes < 0) | (row < 0)
        least = min(least, int(np.unique(units[same.all(axis=1)]).size))
    return least


def _match(label: Ints, holding: Ints, held_by: Ints, groups: int) -> Ints:
    """Return the size of the largest matching of values and persons in each class.

    `holding` numbers a record's class and value together, `held_by` its class and person.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    values, first, left = np.unique(holding, return_index=True, return_inverse=True)
    persons, right = np.unique(held_by, return_inverse=True)
    edges = coo_array(
        (np.ones(len(label), np.int8), (left.ravel(), right.ravel())),
        shape=(len(values), len(persons)),
    )
    matched = maximum_bipartite_matching(edges.tocsr(), perm_type="column") >= 0
    return np.bincount(label[first][matched], minlength=groups)


def _room(codes: Ints, given: int | None, name: str) -> int:
    """Return how many codes there may be, at least 1."""
    needed = int(codes.max(initial=-1)) + 1
    if given is not None and given < needed:
        raise InputError(
            f"The argument {name} must be at least {needed}, to cover all that occur; found "
            f"{given}."
        )
    return max(needed if given is None else given, 1)
