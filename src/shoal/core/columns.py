"""What a policy says about the columns of a table."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import InputError, did_you_mean

Progress = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is in all."""


def silent(stage: str, done: int, total: int) -> None:
    """Report no progress: the default of every long computation."""


class Role(StrEnum):
    """What an attacker may do with a column.

    `identifier`: The column names a person, and every release drops it.
    `quasi-identifier`: Others may know the column, and several together may single somebody
    out.
    `confidential`: Nobody should learn the column about a person.
    `other`: The column is neither, and is released as it is.
    """

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    CONFIDENTIAL = "confidential"
    OTHER = "other"


class Kind(StrEnum):
    """Which arithmetic a column allows.

    `numeric`: Numbers, on a scale where averages have a meaning.
    `ordinal`: Categories with an order.
    `nominal`: Categories without an order, flat or with a hierarchy.
    `date`: Days, or times of days.
    """

    NUMERIC = "numeric"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"


class Discover(StrEnum):
    """What stands for public facts of a column that are to be found.

    `discover`: It is found with noise before rows are drawn, for a share of epsilon.
    """

    DISCOVER = "discover"


class Transform(StrEnum):
    """A public scale on which distances between numbers are measured.

    `log`: Distances between numbers are taken of their logarithms.
    `sqrt`: Distances between numbers are taken of their square roots.
    """

    LOG = "log"
    SQRT = "sqrt"


@dataclass(frozen=True)
class Hierarchy:
    """A tree of categories, from the values that records hold up to one root.

    It has one path per leaf, the leaf first and the root last.

    Attributes:
        observed: its leaves or its borders were read off the data.

    >>> tree = Hierarchy((("Lyon", "South", "all"), ("Lille", "North", "all")))
    >>> tree.leaves
    ('Lyon', 'Lille')
    """

    paths: tuple[tuple[str, ...], ...]
    observed: bool = False

    def __post_init__(self) -> None:
        if not self.paths or any(len(path) < 2 for path in self.paths):
            raise InputError("A hierarchy needs rows of at least two cells: a leaf and the root.")
        if len({path[-1] for path in self.paths}) > 1:
            raise InputError("A hierarchy must end in the same root in every row; it has several.")
        if len(set(self.leaves)) < len(self.leaves):
            raise InputError("A hierarchy must list each leaf once; it lists a leaf twice.")
        parents: dict[str, str] = {}
        for path in self.paths:
            # A node may be repeated in a path: ARX pads short branches that way.
            for child, parent in pairwise(path):
                if child != parent and parents.setdefault(child, parent) != parent:
                    raise InputError(f"A hierarchy must be a tree; '{child}' has two parents.")
        if self.root in parents:
            raise InputError(f"A hierarchy must be a tree; its root '{self.root}' has a parent.")
        inner = {node for path in self.paths for node in path[1:] if node != path[0]}
        if inner.intersection(self.leaves):
            raise InputError("A hierarchy must be a tree; a leaf is also an inner node.")

    @property
    def leaves(self) -> tuple[str, ...]:
        """The leaf categories, in the order of the file."""
        return tuple(path[0] for path in self.paths)

    @property
    def root(self) -> str:
        """The category that covers all."""
        return self.paths[0][-1]

    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Return the labels of all leaves, level by level: the leaves first, the root last.

        A path that is shorter than another ends in the root earlier.

        Raises:
            InputError: the levels are not nested: leaves that share a label at one level have
                different ones at the next.

        >>> Hierarchy((("a", "ab", "all"), ("b", "ab", "all"), ("c", "all"))).levels()[1]
        ('ab', 'ab', 'all')
        """
        height = max(map(len, self.paths))
        rows = [path + (self.root,) * (height - len(path)) for path in self.paths]
        levels = tuple(zip(*rows, strict=True))
        for number, (below, above) in enumerate(pairwise(levels), start=1):
            parents: dict[str, str] = {}
            for child, parent in zip(below, above, strict=True):
                if parents.setdefault(child, parent) != parent:
                    raise InputError(
                        f"The levels of a hierarchy must be nested; '{child}' of level "
                        f"{number - 1} has two parents at level {number}."
                    )
        return levels

    def edges(self, *, missing: bool = False) -> NDArray[np.int64]:
        """Number the edges between each leaf and the root.

        Args:
            missing: add a last row for a missing cell, with an edge of its own to the root.

        Returns:
            One row per leaf with the numbers of its edges, 0..e-1, padded with -1. The path
            between two leaves runs over the edges that exactly one of them has.
        """
        numbers: dict[str, int] = {}
        rows = [
            [
                numbers.setdefault(child, len(numbers))
                for child, parent in pairwise(path)
                if child != parent
            ]
            for path in self.paths
        ]
        edges = np.full((len(rows), max(map(len, rows))), -1, dtype=np.int64)
        for row, numbered in enumerate(rows):
            edges[row, : len(numbered)] = numbered
        if missing:
            extra = [[len(numbers), *[-1] * (edges.shape[1] - 1)]]
            edges = np.vstack([edges, np.array(extra, dtype=np.int64)])
        return edges


def hierarchy_order(edges: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order the leaves of a hierarchy so that those below any node are adjacent.

    Args:
        edges: of `Hierarchy.edges`.

    Returns:
        The leaves in their new order, nodes by their first leaf; and between each leaf and
        the next the height of the lowest node above both, as `borders` of `mondrian_tree`
        has it. A record of leaf v gets the code `np.argsort(order)[v]`.

    >>> hierarchy_order([[0, 4], [1, 5], [2, 4], [3, -1]])
    (array([0, 2, 1, 3]), array([1, 2, 2]))
    """
    paths = [[e for e in row if e >= 0] for row in np.asarray(edges).tolist()]
    first: dict[int, int] = {}
    height: dict[int, int] = {}
    for row, path in enumerate(paths):
        for step, e in enumerate(path):
            first.setdefault(e, row)
            height[e] = max(height.get(e, 0), step)
    order = sorted(range(len(paths)), key=lambda row: [first[e] for e in reversed(paths[row])])
    tallest = max(map(len, paths))
    between = []
    for left, right in pairwise(order):
        shared = [e for e in paths[left] if e in paths[right]]
        between.append(height[shared[0]] if shared else tallest)
    return np.array(order, np.int64), np.array(between, np.int64)


def top_down(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Reverse paths from leaf to root, padded at the end, into paths from root to leaf."""
    used = edges >= 0
    return np.take_along_axis(
        edges[:, ::-1], np.argsort(~used[:, ::-1], axis=1, stable=True), axis=1
    )


@dataclass(frozen=True)
class Column:
    """What the policy says about one column of the table.

    Attributes:
        hierarchy: of a nominal column, whose categories are its leaves.
        level_hierarchy: of a column of another kind, for methods that recode it by levels.
        keep_missing: whether a missing cell is a value of its own; none where the policy leaves it
            to the method (`Method.settle_missing`).
        discover: what the policy leaves to be found with noise: kind, categories or bounds. Until
            it is found the column has neither categories nor bounds (`shoal.methods.discovery`).
    """

    name: str
    role: Role
    kind: Kind | None = None
    bounds: tuple[Decimal | date, Decimal | date] | None = None
    categories: tuple[str, ...] | None = None
    observed: bool = False
    hierarchy: Hierarchy | None = None
    transform: Transform | None = None
    public: bool = False
    privacy_unit: bool = False
    household: bool = False
    sampling_weight: bool = False
    class_mean: bool = False
    pseudonym: bool = False
    date_shift: int | None = None
    totals: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict, hash=False)
    stratum: bool = False
    step: Decimal | None = None
    top_code: Decimal | date | str | None = None
    bottom_code: Decimal | date | str | None = None
    missing: tuple[str, ...] = ()
    breaks: tuple[Decimal, ...] = ()
    prefix: int | None = None
    recode: Mapping[str, str] | None = None
    date_format: str | None = None
    date_step: str | None = None
    other: str | None = None
    missing_as: Decimal | date | str | None = None
    keep_missing: bool | None = None
    max_contributions: int | None = None
    exact_contributions: int | None = None
    label: str | None = None
    value_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    level_hierarchy: Hierarchy | None = None
    discover: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:  # type: ignore[operator]
            low, high = self.bounds
            raise InputError(
                f"Column '{self.name}': expected bounds from low to high, found {low} and {high}."
            )

    @property
    def all_categories(self) -> tuple[str, ...] | None:
        """The categories that the policy declares, in order, or None."""
        return self.hierarchy.leaves if self.hierarchy else self.categories

    @property
    def unlisted(self) -> str | None:
        """The category that replaces unlisted ones; None if they become missing."""
        if self.other is not None or self.keep_missing:
            return self.other
        return (self.all_categories or ("",))[0]

    @property
    def disguised(self) -> bool:
        """Whether its values become pseudonyms, or its dates are shifted."""
        return self.pseudonym or self.date_shift is not None

    @property
    def is_open(self) -> bool:
        """Whether its domain is still to be discovered."""
        return bool(self.discover) and self.categories is None and self.bounds is None

    @property
    def recoded(self) -> bool:
        """Whether the policy replaces its categories by others."""
        return bool(self.breaks or self.prefix or self.recode)

    @property
    def has_steps(self) -> bool:
        """Whether the policy codes or rounds its values before the method runs."""
        return (
            any(
                step is not None
                for step in (self.step, self.date_step, self.top_code, self.bottom_code)
            )
            or self.disguised
        )

    @property
    def stated_hierarchy(self) -> Hierarchy | None:
        """The hierarchy that the policy names for the column, whatever its kind."""
        return self.hierarchy or self.level_hierarchy


@dataclass(frozen=True)
class Persons:
    """How rows belong to persons, as the policy states it.

    Attributes:
        column: the column that numbers the persons.
        most: the most rows of a person that an epsilon release uses.
        exact: every person has exactly that many rows, so the number of rows follows from that of
            persons.
        dropped: further rows of a person are left out; otherwise they are an error.
    """

    column: str
    most: int = 1
    exact: bool = True
    dropped: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in the order of the policy.

    Attributes:
        one_row_per_person: the policy states it; where a column numbers the persons, it is checked.
    """

    columns: tuple[Column, ...]
    one_row_per_person: bool = False

    def __post_init__(self) -> None:
        if twice := [name for name, times in Counter(self.names).items() if times > 1]:
            raise InputError(f"Expected each column once, found '{min(twice)}' twice.")

    def __getitem__(self, name: str) -> Column:
        column = self._by_name.get(name)
        if column is None:
            raise KeyError(f"The schema has no column '{name}'.{did_you_mean(name, self.names)}")
        return column

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @property
    def names(self) -> tuple[str, ...]:
        """All column names."""
        return tuple(column.name for column in self.columns)

    @property
    def released(self) -> tuple[str, ...]:
        """The columns that a release may hold: all but the identifiers."""
        return tuple(c.name for c in self.columns if c.role is not Role.IDENTIFIER)

    def with_role(self, role: Role) -> tuple[str, ...]:
        """Names of the columns with a role."""
        return tuple(column.name for column in self.columns if column.role is role)

    def column_with_flag(self, flag: str) -> str | None:
        """Return the column that carries a flag such as `privacy_unit`, or None."""
        return next((column.name for column in self.columns if getattr(column, flag)), None)

    @property
    def persons(self) -> Persons | None:
        """How rows belong to persons, if a column identifies them."""
        column = next((column for column in self.columns if column.privacy_unit), None)
        if column is None:
            return None
        if column.max_contributions is not None:
            # One row at most is exactly one: a person without a row is not in the table.
            return Persons(
                column.name, column.max_contributions, column.max_contributions == 1, dropped=True
            )
        return Persons(column.name, column.exact_contributions or 1)
