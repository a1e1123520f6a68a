"""Edit rules: relations between columns that every true record satisfies, such as tax <= income.

A rule is a comparison of sums, products and quotients of columns and numbers. Comparisons are
joined by `and`, `or` and `not`: "not married or age >= 16" says that married people are 16 or
older, for a column `married` of zeros and ones. Texts are compared by == and != alone. Columns
whose name is not a plain word stand in backquotes or quotes; a quoted text that is not a column is
a value:

    tax <= income        0 <= age < 120        a + b == total        `net pay` < 0.5 * gross
    status != "widowed" or age >= 16

Rules are parsed by Python's grammar, reduced to these forms, and computed by this module: no
text is ever evaluated.
"""

import ast
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.core._arrays import Bools
from shoal.errors import InputError, InternalError, did_you_mean

TOLERANCE = 1e-9
"""Two numbers count as equal when they differ by less than this share of the larger."""

LONGEST = 500
"""The most characters of a rule; longer ones could exhaust the parser."""

_FORM = "Expected comparisons such as 'tax <= income' or 'a + b == total'."


@dataclass(frozen=True)
class EditRule:
    """A rule that was read: its text, the columns that it names, and its tree."""

    text: str
    columns: tuple[str, ...]
    tree: ast.expr


class Violations(NamedTuple):
    """How often a rule is broken.

    Attributes:
        applicable: rows in which all columns of the rule are present and its value is defined.
        violations: those among them that break it.
    """

    rule: str
    applicable: int
    violations: int

    @property
    def share(self) -> float:
        """Violations among the applicable rows; 0 without any."""
        return self.violations / self.applicable if self.applicable else 0.0


def parse(text: str, names: Sequence[str]) -> EditRule:
    """Read a rule over the named columns.

    Raises:
        InputError: the rule has another form, or names a column that does not exist.

    >>> parse("tax <= 0.5 * `net income`", ["tax", "net income"]).columns
    ('tax', 'net income')
    """
    if not 0 < len(text) <= LONGEST:
        raise InputError(f"A rule must have 1 to {LONGEST} characters.")
    # A backquoted name becomes a string, which Python's grammar knows.
    plain = re.sub(r"`([^`]*)`", lambda quoted: repr(quoted[1]), text.strip())
    try:
        tree = ast.parse(plain, mode="eval").body
        reading = _Reading(text, tuple(names), {})
        reading.condition(tree)
    except InputError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        hint = " Write == for equality." if re.search(r"[^<>=!]=[^=]", text) else ""
        raise InputError(f"Rule '{text}' cannot be read.{hint} {_FORM}") from None
    if not reading.columns:
        raise InputError(f"Rule '{text}' names no column. {_FORM}")
    return EditRule(text, tuple(reading.columns), tree)


def count(rule: EditRule, table: Mapping[str, ArrayLike]) -> Violations:
    """Count the rows that break a rule. Cost O(n) for each operation of the rule.

    A row with a missing cell (NaN or None) in any column of the rule is skipped, and so is one
    in which a quotient is not defined. ==, <= and >= allow for rounding, one part in 10^9;
    < and > are exact.

    Args:
        rule: as `parse` returns it.
        table: for each column of the rule one array, of numbers or of texts.
    """
    columns, present = {}, np.ones(0, dtype=bool)
    for position, name in enumerate(rule.columns):
        column = np.asarray(table[name])
        if not np.issubdtype(column.dtype, np.number) and column.dtype != bool:
            column = column.astype(object)
            there = np.array([cell is not None and cell == cell for cell in column], dtype=bool)  # noqa: PLR0124  # NaN differs from itself
        else:
            column = column.astype(np.float64)
            there = ~np.isnan(column)
        if position and len(there) != len(present):
            raise InputError(f"Rule '{rule.text}': its columns differ in length.")
        columns[name], present = column, there & present if position else there
    if not present.any():
        return Violations(rule.text, 0, 0)
    columns = {name: column[present] for name, column in columns.items()}
    defined = np.ones(int(present.sum()), dtype=bool)
    with np.errstate(all="ignore"):
        holds = np.broadcast_to(_truth(rule, rule.tree, columns, defined), defined.shape)
    return Violations(rule.text, int(defined.sum()), int((defined & ~holds).sum()))


@dataclass(frozen=True)
class _Reading:
    """A walk over the tree of a rule that refuses unknown forms.

    Attributes:
        columns: those named, in the order in which they appear.
    """

    text: str
    names: tuple[str, ...]
    columns: dict[str, None]

    def condition(self, node: ast.expr) -> None:
        match node:
            case ast.BoolOp(values=parts):
                for part in parts:
                    self.condition(part)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                self.condition(part)
            case ast.Compare(left=left, ops=ops, comparators=others):
                kinds = [self.term(part) for part in (left, *others)]
                if not all(type(op) in _COMPARE for op in ops):
                    raise self.error("has an unknown comparison")
                exact = all(isinstance(op, ast.Eq | ast.NotEq) for op in ops)
                if "text" in kinds and (not exact or "number" in kinds):
                    raise self.error("orders texts, which only == and != can compare")
            case _ if self.term(node) != "column":
                raise self.error("compares nothing")

    def term(self, node: ast.expr) -> str:
        """Check a term and say what it is: a number, a text, or a column, which may be either."""
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTE:
                self.number(left)
                self.number(right)
                return "number"
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=part):
                self.number(part)
                return "number"
            case ast.Constant(value=(int() | float()) as value) if not isinstance(value, bool):
                if not abs(value) <= sys.float_info.max:
                    raise self.error("has a number that is too large")
                return "number"
            case ast.Constant(value=str(name)) | ast.Name(id=name):
                return self.column(name, quoted=isinstance(node, ast.Constant))
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                raise self.error("mixes conditions and numbers")
            case _:
                raise self.error("has a part that is not allowed")

    def number(self, node: ast.expr) -> None:
        if self.term(node) == "text":
            raise self.error("computes with a text")

    def column(self, name: str, *, quoted: bool) -> str:
        if name in self.names:
            self.columns[name] = None
            return "column"
        if quoted and f"`{name}`" not in self.text:
            return "text"
        raise InputError(
            f"Rule '{self.text}': no column named '{name}'.{did_you_mean(name, self.names)}"
        )

    def error(self, what: str) -> InputError:
        return InputError(f"Rule '{self.text}' {what}. {_FORM}")


def _truth(rule: EditRule, node: ast.expr, columns: Mapping[str, Any], defined: Bools) -> Any:
    match node:
        case ast.BoolOp(op=joint, values=parts):
            joined = np.logical_and if isinstance(joint, ast.And) else np.logical_or
            truths = [_truth(rule, part, columns, defined) for part in parts]
            return joined.reduce(np.broadcast_arrays(*truths))
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return ~_truth(rule, part, columns, defined)
        case ast.Compare(left=left, ops=ops, comparators=others):
            terms = [_term(rule, part, columns, defined) for part in (left, *others)]
            truth: Any = np.True_
            for a, op, b in zip(terms, ops, terms[1:], strict=False):
                truth = truth & _compare(rule, op, a, b)
            return truth
        case _:
            # A column of zeros and ones stands for a condition.
            return _number(rule, _term(rule, node, columns, defined)) != 0


def _term(rule: EditRule, node: ast.expr, columns: Mapping[str, Any], defined: Bools) -> Any:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            a, b = (_number(rule, _term(rule, part, columns, defined)) for part in (left, right))
            value = _COMPUTE[type(op)](a, b)
            defined &= np.isfinite(value)
            return value
        case ast.UnaryOp(op=op, operand=part):
            value = _number(rule, _term(rule, part, columns, defined))
            return -value if isinstance(op, ast.USub) else value
        case ast.Constant(value=str(name)) | ast.Name(id=name):
            return columns.get(name, name)
        case ast.Constant(value=int(whole)):
            return np.float64(whole)
        case ast.Constant(value=value):
            return value
    raise InternalError(f"A part of rule '{rule.text}' passed that should not have.")


def _compare(rule: EditRule, op: ast.cmpop, a: Any, b: Any) -> Any:
    if _is_text(a) or _is_text(b):
        if _is_text(a) != _is_text(b) or not isinstance(op, ast.Eq | ast.NotEq):
            raise InputError(
                f"Rule '{rule.text}' compares a number with a text, or orders texts. {_FORM}"
            )
        same = np.asarray(a == b, dtype=bool)
        return same if isinstance(op, ast.Eq) else ~same
    return _COMPARE[type(op)](a, b)


def _number(rule: EditRule, value: Any) -> Any:
    if _is_text(value):
        raise InputError(f"Rule '{rule.text}' computes with a column of texts. {_FORM}")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or getattr(value, "dtype", np.dtype(float)).kind == "O"


def _near(a: Any, b: Any) -> Any:
    # Equal infinities have no difference.
    return (a == b) | (np.abs(a - b) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b)))


_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: _near,
    ast.NotEq: lambda a, b: ~_near(a, b),
    ast.LtE: lambda a, b: (a <= b) | _near(a, b),
    ast.GtE: lambda a, b: (a >= b) | _near(a, b),
    ast.Lt: lambda a, b: a < b,
    ast.Gt: lambda a, b: a > b,
}

_COMPUTE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}
