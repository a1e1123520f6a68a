"""The language of constraints: text in, a `Constraint` out.

One language serves `[constraints]` and the edit rules of `[evaluate]`:

    AGEP < 15 implies MSP = "N"            not (housing = 1 and tenure = 0)
    EDU in {9, 10, 11} or AGEP >= 15       AGEP < 15 implies income is missing
    tax <= 0.5 * `net income`              discharge >= admission + 1
    total = a + b + c                      sex = "f" implies 0 <= weeks <= 40
    at most one of (rents, owns)           district determines region

From the loosest to the tightest: `implies`, `or`, `and`, `not`, comparisons (which may be chained),
+ and -, * and /. Text in double or single quotes is a value, a name that is not one plain word
stands in backquotes, and 2024-02-29 is a day. A column by itself is a flag. Ordinals are compared
in the order of their categories.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from shoal.core.columns import Column, Kind, Role, Schema
from shoal.core.constraints import (
    CATEGORICAL,
    CONDITIONS,
    EPOCH,
    FORM,
    AllOf,
    AnyOf,
    Atom,
    Computed,
    Constraint,
    Expression,
    Linear,
    Lookup,
    Node,
    Relation,
    Text,
    negation,
    relation,
)
from shoal.errors import InputError, did_you_mean

LONGEST = 1000
"""The most characters of a constraint."""

DEEPEST = 20
"""The most parentheses within each other."""

FLAGGED = ("1", "true", "yes")
"""Categories that mean that a flag is set."""


def parse(
    text: str,
    columns: Schema | Sequence[str],
    lookups: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None,
) -> Constraint:
    """Parse a constraint.

    Args:
        text: as the module's documentation describes.
        columns: the schema; or names alone, and the arrays then decide what is a text.
        lookups: for each column that determines another, and each column that it determines, the
            pairs.

    Raises:
        InputError: the text has another form, or names a column that does not exist; it says where.

    >>> parse("tax <= 0.5 * `net income`", ["tax", "net income"]).columns
    ('tax', 'net income')
    """
    if not 0 < len(text.strip()) <= LONGEST:
        raise InputError(f"A rule must have 1 to {LONGEST:,} characters.")
    return _Parser(text, columns, lookups or {}).rule()


def find_columns(text: str, columns: Sequence[str]) -> set[str]:
    """The columns that a constraint names; values need not be known.

    >>> find_columns("level <= 'low'", ["level", "low"])
    {'level'}
    """
    tokens = _Parser(text, columns, {}).tokens
    return {token.text for token in tokens if token.kind in {"word", "name"}} & {*columns}


_TOKEN = re.compile(
    r"""\s*(?:(?P<date>\d{4}-\d\d-\d\d)(?![\w-])
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)(?![\w.])
    |`(?P<name>[^`]+)`|"(?P<double>[^"]*)"|'(?P<single>[^']*)'
    |(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|==|!=|[-<>=+*/(){},])|(?P<end>$))""",
    re.VERBOSE,
)
_WORDS = {"and", "or", "not", "implies", "in", "is", "missing", "determines"}
_FLIPPED = {"<": "<", "<=": "<=", "=": "==", "==": "==", "!=": "!=", ">": "<", ">=": "<="}


def write_name(column: str) -> str:
    """The name of a column as a rule writes it.

    >>> write_name("age"), write_name("net pay"), write_name("in")
    ('age', '`net pay`', '`in`')
    """
    plain = column.isidentifier() and column not in {*_WORDS, "at"}
    return column if plain else f"`{column}`"


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Parser:
    """A recursive-descent parser of one constraint."""

    def __init__(
        self,
        text: str,
        columns: Schema | Sequence[str],
        lookups: Mapping[str, Mapping[str, Mapping[str, str]]],
    ) -> None:
        self.text, self.lookups = text, lookups
        self.schema = columns if isinstance(columns, Schema) else None
        self.names = columns.names if isinstance(columns, Schema) else tuple(columns)
        self.named: dict[str, None] = {}
        self.depth, self.place, self.start = 0, 0, 0
        self.tokens: list[_Token] = []
        while not self.tokens or self.tokens[-1].kind != "end":
            match = _TOKEN.match(text, self.start)
            if match is None:
                rest = text[self.start :]
                self.start += len(rest) - len(rest.lstrip())
                raise self.error("cannot be read from there on")
            kind = str(match.lastgroup)
            self.tokens.append(_Token(kind, match[kind], match.start(kind)))
            self.start = match.end()

    def rule(self) -> Constraint:
        tree = self.dependence() or self.condition(self.implication())
        if self.token.kind != "end":
            hint = "" if self.token.kind == "sign" else " Put a text in quotes."
            raise self.error(f"has '{self.token.text}' where an operator was expected", hint)
        if not self.named:
            raise self.error("names no column")
        return Constraint(self.text, tuple(self.named), tree)

    @property
    def token(self) -> _Token:
        self.start = self.tokens[self.place].start
        return self.tokens[self.place]

    def error(self, what: str, hint: str = f" {FORM}") -> InputError:
        return InputError(f"Rule '{self.text}' {what} (character {self.start + 1}).{hint}")

    def take(self, *texts: str) -> str | None:
        """Take the next token if it is one of these signs or words, else return None."""
        token = self.token
        if token.kind in {"sign", "word"} and token.text in texts:
            self.place += 1
            return token.text
        return None

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.error(f"lacks '{text}'", "")

    def dependence(self) -> Lookup | None:
        if self.place + 1 >= len(self.tokens) or self.tokens[1].text != "determines":
            return None
        source, start = self.primary(), self.token.start
        self.expect("determines")
        target = self.primary()
        pair = [side.column if isinstance(side, Linear) else None for side in (source, target)]
        if None in pair or pair[0] == pair[1]:
            raise self.error("needs a column on each side of 'determines'", "")
        left, other = cast("list[str]", pair)
        pairs = self.lookups.get(left, {}).get(other)
        if pairs is None:
            self.start = start
            raise self.error(
                "needs a lookup", f" State it under [constraints.lookups.{left}.{other}]."
            )
        if self.schema is not None:
            self.check_pairs(self.schema[left], self.schema[other], pairs)
        return Lookup(left, other, dict(pairs))

    def check_pairs(self, source: Column, target: Column, pairs: Mapping[str, str]) -> None:
        for column in (source, target):
            if column.kind not in CATEGORICAL:
                what = f"needs categories, and '{column.name}' is neither nominal nor ordinal"
                raise self.error(what, "")
        for text in pairs.values():
            self.check_value(target.name, text)
        lacking = [text for text in source.all_categories or () if text not in pairs]
        if lacking and not source.observed:
            raise self.error(f"has a lookup without '{lacking[0]}'", "")

    def implication(self) -> Any:
        start = self.token.start
        left = self.disjunction()
        if not self.take("implies"):
            return left
        premise = negation(self.condition(left, start))
        start = self.token.start
        return AnyOf((premise, self.condition(self.implication(), start)))

    def disjunction(self) -> Any:
        return self.join("or", AnyOf, self.conjunction)

    def conjunction(self) -> Any:
        return self.join("and", AllOf, self.inversion)

    def join(self, word: str, joint: type[AllOf] | type[AnyOf], part: Any) -> Any:
        start = self.token.start
        first = part()
        if self.token.text != word or self.token.kind != "word":
            return first
        parts = [self.condition(first, start)]
        while self.take(word):
            start = self.token.start
            parts.append(self.condition(part(), start))
        return joint(tuple(parts))

    def inversion(self) -> Any:
        times = 0
        while self.take("not"):
            times += 1
        start = self.token.start
        inner = self.comparison()
        if not times:
            return inner
        condition = self.condition(inner, start)
        return negation(condition) if times % 2 else condition

    def comparison(self) -> Any:
        start = self.token.start
        left = self.sum()
        if self.take("is"):
            return self.being(left, start)
        negated = self.take("not") is not None
        if self.take("in"):
            atom = self.member(self.bare(left, start), self.parse_list())
            return negation(atom) if negated else atom
        if negated:
            raise self.error("lacks 'in' after 'not'", "")
        parts = []
        while op := self.take("<", "<=", "=", "==", "!=", ">", ">="):
            after = self.token.start
            right = self.sum()
            parts.append(self.compare_sides(left, op, right, start))
            left, start = right, after
        if not parts:
            return left
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def being(self, left: Any, start: int) -> Node:
        negated = self.take("not") is not None
        if self.take("missing"):
            return Atom(self.bare(left, start), "missing", negated=negated)
        return self.compare_sides(left, "!=" if negated else "==", self.sum(), start)

    def parse_list(self) -> list[Expression]:
        self.expect("{")
        values: list[Expression] = []
        while not values or self.take(","):
            values.append(self.sum())
        self.expect("}")
        return values

    def compare_sides(self, left: Any, op: str, right: Any, start: int) -> Node:
        if isinstance(left, CONDITIONS) or isinstance(right, CONDITIONS):
            self.start = start
            raise self.error("mixes conditions and numbers")
        order = cast("Literal['<', '<=', '==', '!=']", _FLIPPED[op])
        if op in {">", ">="}:
            left, right = right, left
        for side, other in ((left, right), (right, left)):
            name = side.column if isinstance(side, Linear) else None
            constant = isinstance(other, Text) or (isinstance(other, Linear) and not other.terms)
            if name is None or not constant:
                continue
            if order in {"==", "!="}:
                return self.member(name, [other], negated=order == "!=")
            if self.kind(name) in CATEGORICAL or isinstance(other, Text):
                return self.compare_ordinals(name, order, other, upper=side is left)
        if isinstance(left, Text) or isinstance(right, Text):
            self.start = start
            raise self.error("computes with a text")
        made = relation(left, order, right)
        if not made.columns:
            self.start = start
            raise self.error("compares nothing")
        return self.numbers(made, start)

    def numbers(self, made: Relation, start: int) -> Node:
        """Make a comparison of numbers: an atom, if it compares one column with a constant."""
        same = [side.column if isinstance(side, Linear) else None
                for side in (made.left, made.right)]  # fmt: skip
        texts = [name for name in made.columns if self.kind(name) in CATEGORICAL]
        if texts and (None in same or len(texts) < 2 or made.op not in {"==", "!="}):
            self.start = start
            raise self.error(f"computes with '{texts[0]}', a column of categories", "")
        if texts:
            return replace(made, terms={}, constant=0.0)
        if len(made.columns) != 1 or not made.terms or not any(made.terms.values()):
            return made
        both = cast("Linear", made.left).plus(cast("Linear", made.right), -1)
        ((name, factor),) = both.terms.items()
        value = float(-both.constant / factor)
        if made.op in {"==", "!="}:
            return Atom(name, "in", (value,), negated=made.op == "!=")
        if factor > 0:
            return Atom(name, cast("Literal['<', '<=']", made.op), (value,))
        # Above a value is not at or below it.
        return Atom(name, "<" if made.op == "<=" else "<=", (value,), negated=True)

    def member(self, name: str, values: Sequence[Expression], *, negated: bool = False) -> Atom:
        return Atom(name, "in", tuple(self.constant(name, value) for value in values), negated)

    def compare_ordinals(self, name: str, order: str, value: Expression, *, upper: bool) -> Atom:
        """Make a comparison of an ordinal with its categories, or of a date with a quoted day."""
        constant = self.constant(name, value)
        if isinstance(constant, float):
            atom = Atom(name, cast("Literal['<', '<=']", order), (constant,))
            if upper:
                return atom
            return Atom(name, "<" if order == "<=" else "<=", (constant,), negated=True)
        known = () if self.schema is None else self.schema[name].all_categories or ()
        if self.kind(name) is not Kind.ORDINAL:
            raise self.error("orders texts, which only = and != can compare", "")
        if constant not in known:
            return Atom(name, "in", ())
        place = known.index(constant)
        chosen = known[: place + (order == "<=")] if upper else known[place + (order == "<") :]
        return Atom(name, "in", chosen)

    def constant(self, name: str, value: Expression) -> str | float:
        """Convert a constant to the type of the column that it is compared with."""
        kind = self.kind(name)
        if isinstance(value, Linear) and not value.terms:
            text, number = str(value.text), float(value.constant)
        elif isinstance(value, Text):
            text, number = value.value, None
        else:
            raise self.error("has a column where a value was expected", "")
        if kind in CATEGORICAL:
            self.check_value(name, text)
            return text
        if number is None and kind is Kind.DATE:
            return float(self.day(text))
        if number is None and kind is Kind.NUMERIC:
            raise self.error(f"compares '{name}', a column of numbers, with a text", "")
        return text if number is None else number

    def check_value(self, name: str, text: str) -> None:
        """Refuse a value that is not a category, unless categories were only observed."""
        column = cast("Schema", self.schema)[name]
        listed = column.all_categories
        if listed is not None and text not in listed and not column.observed:
            guess = did_you_mean(text, listed)
            raise self.error(f"has '{text}', which is not a category of '{name}'", guess)

    def kind(self, name: str) -> Kind | None:
        return None if self.schema is None else self.schema[name].kind

    def sum(self) -> Any:
        start = self.token.start
        left = self.product()
        while op := self.take("+", "-"):
            left = self.compute(op, left, self.product(), start)
        return left

    def product(self) -> Any:
        start = self.token.start
        left = self.unary()
        while op := self.take("*", "/"):
            left = self.compute(op, left, self.unary(), start)
        return left

    def unary(self) -> Any:
        start, minus, signed = self.token.start, False, False
        while sign := self.take("-", "+"):
            minus, signed = minus ^ (sign == "-"), True
        value = self.primary()
        if not signed:
            return value
        if minus and isinstance(value, Linear) and value.text is not None:
            return Linear({}, -value.constant, f"-{value.text}")
        return self.compute("*", Linear({}, Fraction(-1 if minus else 1)), value, start)

    def compute(self, op: str, left: Any, right: Any, start: int) -> Expression:
        for side in (left, right):
            if isinstance(side, Text | AllOf | AnyOf | Atom | Relation):
                self.start = start
                text = isinstance(side, Text)
                raise self.error("computes with a text" if text else "mixes conditions and numbers")
        if isinstance(left, Linear) and isinstance(right, Linear):
            if op in {"+", "-"}:
                return left.plus(right, 1 if op == "+" else -1)
            if op == "*" and not (left.terms and right.terms):
                return right.times(left.constant) if right.terms else left.times(right.constant)
            if op == "/" and not right.terms and right.constant:
                return left.times(1 / right.constant)
        return Computed(op, left, right)

    def primary(self) -> Any:
        token = self.token
        if self.take("("):
            self.depth += 1
            if self.depth > DEEPEST:
                raise self.error("has too many parentheses within each other", "")
            inner = self.implication()
            self.expect(")")
            self.depth -= 1
            return inner
        self.place += 1
        if token.kind == "number":
            if float(token.text) == np.inf or len(token.text) > 300:
                raise self.error("has a number that is too large", "")
            return Linear({}, Fraction(token.text), token.text)
        if token.kind == "date":
            return Linear({}, self.day(token.text), token.text)
        if token.kind in {"double", "single"}:
            return Text(token.text)
        if token.kind == "word" and token.text == "at" and self.take("most"):
            return self.at_most_one()
        if token.kind == "name" or (token.kind == "word" and token.text not in _WORDS):
            return self.column(token.text)
        self.start = token.start
        what = f"has '{token.text}' where" if token.text else "ends where"
        raise self.error(f"{what} a column or a value was expected")

    def at_most_one(self) -> AllOf:
        for word in ("one", "of", "("):
            self.expect(word)
        flags: list[Node] = []
        while not flags or self.take(","):
            start = self.token.start
            flags.append(self.condition(self.implication(), start))
        self.expect(")")
        if len(flags) < 2:
            raise self.error("needs two flags at least", "")
        return AllOf(tuple(AnyOf(pair) for pair in combinations(map(negation, flags), 2)))

    def day(self, text: str) -> Fraction:
        try:
            return Fraction((date.fromisoformat(text) - EPOCH).days)
        except ValueError:
            raise self.error("has a day that does not exist; write it as 2024-02-29", "") from None

    def column(self, name: str) -> Linear:
        if name not in self.names:
            raise InputError(
                f"Rule '{self.text}', character {self.start + 1}: no column named '{name}'."
                f"{did_you_mean(name, self.names) or ' A text stands in quotes.'}"
            )
        if self.schema is not None and self.schema[name].role is Role.IDENTIFIER:
            raise InputError(
                f"Rule '{self.text}', character {self.start + 1}: '{name}' is an identifier, which "
                "no release holds."
            )
        self.named[name] = None
        return Linear({name: Fraction(1)})

    def bare(self, node: Any, start: int) -> str:
        name = node.column if isinstance(node, Linear) else None
        if name is None:
            self.start = start
            raise self.error("needs a column before 'in' or 'is'", "")
        return str(name)

    def condition(self, node: Any, start: int = 0) -> Node:
        if isinstance(node, CONDITIONS):
            return node
        name = node.column if isinstance(node, Linear) else None
        if name is None:
            self.start = start
            raise self.error("compares nothing")
        if self.kind(name) not in CATEGORICAL:
            return Atom(name, "in", (0.0,), negated=True)
        known = cast("Schema", self.schema)[name].all_categories or ()
        if not (flagged := tuple(word for word in FLAGGED if word in known)):
            self.start = start
            raise self.error(f"takes '{name}' as a flag, which has none of the categories "
                             f"{', '.join(FLAGGED)}", "")  # fmt: skip
        return Atom(name, "in", flagged)
