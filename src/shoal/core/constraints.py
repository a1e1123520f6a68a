"""Constraints: relations between columns that hold for every true record, such as tax <= income.

`shoal.core.constraint_language` reads them; it describes the language.

**Missing cells.** As in SQL's CHECK, a comparison with a missing cell is neither true nor false
(Kleene's three values), and a record breaks a constraint where it is false. `is missing` is
always true or false.

**How to use it.** `parse(text, schema)` returns a `Constraint`. With a schema its constants have
the types of the columns: texts for categories, numbers for numbers, days since 1970 for dates.

    columns, holds(arrays)       which columns it names; which rows do not break it
    tree                         in negation normal form: `AllOf` and `AnyOf` of leaves
    atoms()                      the leaves over one column: `Atom`
    relations()                  the leaves over several: `Relation`. A linear one has `terms` and
                                 `constant`: sum of terms[c] * c, then op, then the constant
    lookup                       of a functional dependence, `Lookup`; it is then the whole tree
    boolean, linear              has atoms and lookups only; is a conjunction of linear relations

`cells` cuts the domain of a column where the atoms of some constraints cut it, so every atom is
constant on a cell; `allow` says which combinations of cells keep them all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Array, Bools
from shoal.core.columns import Column, Kind
from shoal.errors import InputError

TOLERANCE = 1e-9
"""Two numbers count as equal when they differ by less than this share of the larger."""

EPOCH = date(1970, 1, 1)
CATEGORICAL = {Kind.ORDINAL, Kind.NOMINAL}
FORM = "Expected comparisons such as 'tax <= income' or 'a + b = total'."


@dataclass(frozen=True)
class Linear:
    """A linear combination of columns plus a constant, which may keep its written form."""

    terms: Mapping[str, Fraction]
    constant: Fraction = Fraction(0)
    text: str | None = None

    def plus(self, other: "Linear", sign: int = 1) -> "Linear":
        """Return the sum, or with sign -1 the difference."""
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, Fraction(0)) + sign * factor
        return Linear(terms, self.constant + sign * other.constant)

    def times(self, factor: Fraction) -> "Linear":
        """Multiply every coefficient and the constant."""
        return Linear({n: factor * f for n, f in self.terms.items()}, factor * self.constant)

    @property
    def column(self) -> str | None:
        """The column, if the expression is a single column."""
        bare = not self.constant and [*self.terms.values()] == [1]
        return next(iter(self.terms)) if bare else None


@dataclass(frozen=True)
class Computed:
    """A nonlinear sum, product or quotient."""

    op: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Text:
    """A quoted text."""

    value: str


Expression = Linear | Computed | Text


@dataclass(frozen=True)
class Atom:
    """A condition on a single column.

    Attributes:
        op: `in` some values, `<` or `<=` the only value, or `missing`.
        values: texts of categories; numbers; or days.
        negated: whether the condition is negated; for a missing cell, neither form is true.
    """

    column: str
    op: Literal["in", "<", "<=", "missing"]
    values: tuple[str | float, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Relation:
    """A comparison of several columns.

    Attributes:
        terms: if it is linear, the coefficient of each column in left - right; else empty.
        constant: what their sum is compared with.
    """

    left: Expression
    op: Literal["<", "<=", "==", "!="]
    right: Expression
    columns: tuple[str, ...]
    terms: Mapping[str, float] = field(default_factory=dict)
    constant: float = 0.0


@dataclass(frozen=True)
class Lookup:
    """The source column determines the target, by pairs of texts."""

    source: str
    target: str
    pairs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AllOf:
    """A conjunction of conditions."""

    parts: tuple["Node", ...]


@dataclass(frozen=True)
class AnyOf:
    """A disjunction of conditions."""

    parts: tuple["Node", ...]


Node = AllOf | AnyOf | Atom | Relation | Lookup
CONDITIONS = (AllOf, AnyOf, Atom, Relation, Lookup)


class Violations(NamedTuple):
    """How often a constraint is violated.

    Attributes:
        applicable: rows for which it is true or false.
        violations: those for which it is false.
    """

    rule: str
    applicable: int
    violations: int

    @property
    def share(self) -> float:
        """Violations as a share of the applicable rows; 0 if there are none."""
        return self.violations / self.applicable if self.applicable else 0.0


@dataclass(frozen=True)
class Constraint:
    """A parsed constraint: its text, the columns that it names, and its tree."""

    text: str
    columns: tuple[str, ...]
    tree: Node

    def leaves(self) -> Iterator[Atom | Relation | Lookup]:
        """Yield the leaves of the tree, from left to right."""
        return leaves(self.tree)

    def atoms(self) -> Iterator[Atom]:
        """Yield the conditions on a single column."""
        return (leaf for leaf in self.leaves() if isinstance(leaf, Atom))

    def relations(self) -> Iterator[Relation]:
        """Yield the comparisons of several columns."""
        return (leaf for leaf in self.leaves() if isinstance(leaf, Relation))

    @property
    def lookup(self) -> Lookup | None:
        """The functional dependence, if the constraint is one."""
        return self.tree if isinstance(self.tree, Lookup) else None

    @property
    def boolean(self) -> bool:
        """Whether it has no relation, so the cells of its columns decide it."""
        return not any(self.relations())

    @property
    def linear(self) -> bool:
        """Whether it is a conjunction of linear <=, < and ==."""
        parts = self.tree.parts if isinstance(self.tree, AllOf) else (self.tree,)
        return all(isinstance(p, Relation) and p.terms and p.op != "!=" for p in parts)

    def truth(self, columns: Mapping[str, ArrayLike]) -> tuple[Bools, Bools]:
        """Return where the constraint is true, and where it is false. Cost O(n) for each operation.

        ==, <= and >= allow for rounding, one part in 10^9; < and > are exact.

        Args:
            columns: for each column one array, of numbers or of texts; NaN or None is missing.
        """
        read = {name: _read(columns[name]) for name in self.columns}
        if len({len(column) for column in read.values()}) > 1:
            raise InputError(f"Rule '{self.text}': its columns differ in length.")
        with np.errstate(all="ignore"):
            try:
                return _truth(self.tree, read)
            except TypeError as error:
                raise InputError(f"Rule '{self.text}' {error}. {FORM}") from None

    def holds(self, columns: Mapping[str, ArrayLike]) -> Bools:
        """Return which rows do not violate it."""
        return ~self.truth(columns)[1]

    def count(self, columns: Mapping[str, ArrayLike]) -> Violations:
        """Count the rows that violate it."""
        true, false = self.truth(columns)
        return Violations(self.text, int((true | false).sum()), int(false.sum()))


def cells(
    column: Column, constraints: Iterable[Constraint], grid: float | None
) -> tuple[str | float, ...]:
    """Return a representative of each cell of a column's domain, on which all atoms are constant.

    A categorical column has a cell for each category. The domain of a number or a date is cut
    where the atoms cut it, and the least value of each cell on the grid, if it has one, stands for
    it; without bounds, cells reach one beyond the outermost cuts.
    """
    if column.kind in CATEGORICAL:
        return column.all_categories or ()
    starts = set()
    for atom in (atom for c in constraints for atom in c.atoms() if atom.column == column.name):
        for value in cast("tuple[float, ...]", atom.values):
            after = value + (grid or beyond(value))
            starts |= {value} if atom.op == "<" else {after} if atom.op == "<=" else {value, after}
    if grid is not None:
        starts = {grid * float(np.ceil(start / grid - TOLERANCE)) for start in starts}
    low, high = limits(column)
    low = min(starts, default=0.0) - 1.0 if low is None else low
    return (low, *sorted(s for s in starts if low < s <= (np.inf if high is None else high)))


def beyond(value: float) -> float:
    """Return the distance beyond which a number no longer counts as equal."""
    return max(2 * TOLERANCE * abs(value), 1e-300)


def grain(column: Column) -> float | None:
    """Return the grid of a numeric or date column, if the policy states one: its step, or a day."""
    return 1.0 if column.kind is Kind.DATE else None if not column.step else float(column.step)


def limits(column: Column) -> tuple[float | None, float | None]:
    """Return the bounds of a numeric or date column, after coding of extremes."""
    coded = (column.bottom_code, column.top_code)
    low, high = (
        [(float(v) if isinstance(v, Decimal) else float((v - EPOCH).days))
         for v in some if isinstance(v, Decimal | date)]
        for some in zip(column.bounds or (None, None), coded, strict=True)
    )  # fmt: skip
    return max(low, default=None), min(high, default=None)


def allow(
    constraints: Iterable[Constraint], domains: Mapping[str, Sequence[str | float | None]]
) -> Bools:
    """Find which combinations of values satisfy all constraints; one axis per column."""
    shape = tuple(map(len, domains.values()))
    if not shape:
        return np.ones((), dtype=bool)
    places = np.unravel_index(np.arange(int(np.prod(shape, dtype=np.int64))), shape)
    columns: dict[str, Array] = {}
    for (name, values), place in zip(domains.items(), places, strict=True):
        texts = any(isinstance(value, str) for value in values)
        columns[name] = np.array(values, dtype=object if texts else np.float64)[place]
    kept = np.ones(int(np.prod(shape, dtype=np.int64)), dtype=bool)
    for constraint in constraints:
        kept &= constraint.holds(columns)
    return kept.reshape(shape)


def leaves(node: Node) -> Iterator[Atom | Relation | Lookup]:
    """Yield the leaves of a tree, from left to right."""
    if isinstance(node, AllOf | AnyOf):
        for part in node.parts:
            yield from leaves(part)
    else:
        yield node


def _read(column: ArrayLike) -> Array:
    """Convert a column to floats, or to objects."""
    array = np.asarray(column)
    numbers = np.issubdtype(array.dtype, np.number) or array.dtype == bool
    return array.astype(np.float64) if numbers else array.astype(object)


def _absent(column: Array) -> Bools:
    if column.dtype == object:
        return np.array([cell is None or cell != cell for cell in column], dtype=bool)  # noqa: PLR0124  # NaN differs from itself
    return np.isnan(column)


def _truth(node: Node, columns: Mapping[str, Array]) -> tuple[Bools, Bools]:
    match node:
        case AllOf(parts) | AnyOf(parts):
            true, false = zip(*(_truth(part, columns) for part in parts), strict=True)
            if isinstance(node, AllOf):
                return np.logical_and.reduce(true), np.logical_or.reduce(false)
            return np.logical_or.reduce(true), np.logical_and.reduce(false)
        case Atom(name):
            column = columns[name]
            absent = _absent(column)
            is_so = absent if node.op == "missing" else _atom(node, column, absent)
            known = np.ones_like(absent) if node.op == "missing" else ~absent
            return known & (is_so ^ node.negated), known & ~(is_so ^ node.negated)
        case Lookup(source, target, pairs):
            looked_up = np.array([pairs.get(cell) for cell in columns[source]], dtype=object)
            known = ~_absent(looked_up) & ~_absent(columns[target])
            same = np.asarray(looked_up == columns[target], dtype=bool)
            return known & same, known & ~same
        case Relation():
            return _compare(node, columns)


def _atom(atom: Atom, column: Array, absent: Bools) -> Bools:
    texts = column.dtype == object and not absent.all()
    if any(isinstance(value, str) is not texts for value in atom.values if not absent.all()):
        raise TypeError("compares a number with a text")
    if texts:
        if atom.op != "in":
            raise TypeError("orders texts, which only = and != can compare")
        listed = set(atom.values)
        return np.array([cell in listed for cell in column], dtype=bool)
    if absent.all():
        return np.zeros(len(column), dtype=bool)
    values = cast("tuple[float, ...]", atom.values)
    if atom.op == "<":
        return np.asarray(column < values[0])
    if atom.op == "<=":
        return np.asarray((column <= values[0]) | _near(column, np.float64(values[0])))
    matches: Bools = np.logical_or.reduce([_near(column, np.float64(value)) for value in values])
    return matches


def _compare(node: Relation, columns: Mapping[str, Array]) -> tuple[Bools, Bools]:
    rows = len(columns[node.columns[0]])
    absent = np.logical_or.reduce([_absent(columns[name]) for name in node.columns])
    if absent.all():
        return np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
    if any(columns[name].dtype == object for name in node.columns):
        return _same_texts(node, columns, absent)
    a, b = _value(node.left, columns), _value(node.right, columns)
    known = ~(np.isnan(a) | np.isnan(b))
    if node.op == "<":
        is_so = a < b
    elif node.op == "<=":
        is_so = (a <= b) | _near(a, b)
    else:
        is_so = _near(a, b) ^ (node.op == "!=")
    return known & is_so, known & ~is_so


def _same_texts(node: Relation, columns: Mapping[str, Array], absent: Bools) -> tuple[Bools, Bools]:
    names = [side.column if isinstance(side, Linear) else None for side in (node.left, node.right)]
    if None in names:
        raise TypeError("computes with a column of texts")
    a, b = (columns[cast("str", name)] for name in names)
    if a.dtype != b.dtype:
        raise TypeError("compares a number with a text")
    if node.op not in {"==", "!="}:
        raise TypeError("orders texts, which only = and != can compare")
    same = np.asarray(a == b, dtype=bool) ^ (node.op == "!=")
    return ~absent & same, ~absent & ~same


def _value(node: Expression, columns: Mapping[str, Array]) -> Any:
    if isinstance(node, Linear):
        value: Any = np.float64(node.constant)
        for name, factor in node.terms.items():
            value = value + (columns[name] if factor == 1 else float(factor) * columns[name])
        return value
    computed = cast("Computed", node)
    a, b = _value(computed.left, columns), _value(computed.right, columns)
    if computed.op == "/":
        return np.where(b == 0, np.nan, a / b)
    return a * b if computed.op == "*" else a + b if computed.op == "+" else a - b


def _near(a: Any, b: Any) -> Any:
    # Equal infinities have no difference.
    return (a == b) | (np.abs(a - b) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b)))


def negation(node: Node) -> Node:
    """Negate a condition, in negation normal form."""
    match node:
        case AllOf(parts):
            return AnyOf(tuple(map(negation, parts)))
        case AnyOf(parts):
            return AllOf(tuple(map(negation, parts)))
        case Atom():
            return replace(node, negated=not node.negated)
        case Relation(op="==" | "!="):
            return replace(node, op="!=" if node.op == "==" else "==")
        case Relation():
            # not (a < b) is b <= a, and the other way round.
            return relation(node.right, "<=" if node.op == "<" else "<", node.left)
        case Lookup():
            raise InputError("A functional dependence cannot be negated.")


def relation(left: Expression, op: Literal["<", "<=", "==", "!="], right: Expression) -> Relation:
    """Make a comparison, with its coefficients if it is linear."""
    columns = tuple(dict.fromkeys((*_columns_of(left), *_columns_of(right))))
    if not (isinstance(left, Linear) and isinstance(right, Linear)):
        return Relation(left, op, right, columns)
    both = left.plus(right, -1)
    terms = {name: float(factor) for name, factor in both.terms.items()}
    return Relation(left, op, right, columns, terms, float(-both.constant))


def _columns_of(node: Expression) -> Iterator[str]:
    if isinstance(node, Linear):
        yield from node.terms
    elif isinstance(node, Computed):
        yield from _columns_of(node.left)
        yield from _columns_of(node.right)
