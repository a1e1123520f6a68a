"""Translate pydantic's errors in a policy or in parameters into plain sentences."""

import re
from decimal import Decimal

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from shoal.core import Discover
from shoal.errors import InputError, count_noun, did_you_mean
from shoal.io.text_files import brief
from shoal.policy.sections import (
    BudgetSpec,
    ClosenessSpec,
    ConstraintsSpec,
    ContextSpec,
    DiversitySpec,
    EvaluateSpec,
    ReadingSpec,
    ReleaseSpec,
    RequireSpec,
    StochasticSpec,
    WritingSpec,
)
from shoal.policy.spec import ColumnSpec, PolicySpec

EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table of keys",
    "int_type": "a whole number",
    "is_instance_of": "a number",
    "list_type": "a list",
    "model_type": "a table of keys",
    "string_type": "text",
    "too_short": "at least one entry",
    "tuple_type": "a list of two values",
}
"""How pydantic's errors read in our sentences, where its own words are Python's."""


def explain(error: ValidationError, where: str, *table: str) -> InputError:
    """Turn pydantic's account of a wrong value into one sentence: expected, found, where.

    The table is the part of the policy that was checked; without it, all of the policy was.
    """
    # A misspelt key explains the one that is missing, and comes first.
    # What is not the word for something to be found is reported as what it is.
    errors = [
        e for e in error.errors(include_url=False) if f"[{Discover.__name__}]" not in str(e["loc"])
    ]
    first, *rest = sorted(errors, key=lambda one: one["type"] != "extra_forbidden")
    # pydantic reports a position once for each type that it tried; count positions.
    places = {_place(other) for other in rest} - {_place(first)}
    more = f" ({count_noun(len(places), 'more error')}.)" if places else ""
    field = (*table, *first["loc"], *first.get("ctx", {}).get("field", ()))
    return InputError(
        f"{_expectation(first)}{more}", field=field, place=f"{where}, {_place(first)}"
    )


def _place(error: ErrorDetails) -> str:
    # Below the second key, pydantic adds the names of the types that it tried.
    head, tail = error["loc"][:2], error["loc"][2:]
    parts = [*head, *(p for p in tail if isinstance(p, int) or p in ColumnSpec.model_fields)]
    return ".".join(map(str, parts)) or "top level"


def _expectation(error: ErrorDetails) -> str:
    kind, given = error["type"], error["input"]
    if kind == "shoal":
        return str(error["msg"])
    name = str(error["loc"][-1]) if error["loc"] else ""
    if kind == "extra_forbidden":
        known = _list_known_keys(error)
        hint = f" Known here: {', '.join(known)}." if known else ""
        return f"unknown key '{name}'.{did_you_mean(name, known) or hint}"
    if kind == "missing":
        what = "two values" if isinstance(error["loc"][-1], int) else f"a value for '{name}'"
        return f"expected {what}, found none."
    text = EXPECTED.get(kind, error["msg"].removeprefix("Input should be "))
    text = re.sub(r"Decimal\('([^']*)'\)", r"\1", text)
    shown = f"'{brief(given)}'" if isinstance(given, str | int | Decimal) else f"a {_sort(given)}"
    if isinstance(given, str) and kind in {"int_type", "literal_error"}:
        shown = f"the text {shown}"
    local = isinstance(given, str) and re.match(r"\d+[./-]\d+[./-]\d+", given)
    return f"expected {text}, found {shown}.{' Write days as 2023-09-17.' if local else ''}"


def _sort(value: object) -> str:
    names = {dict: "table", list: "list", tuple: "list", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _list_known_keys(error: ErrorDetails) -> list[str]:
    """List the known keys of the table with an unknown key; empty for a method's own table."""
    tables = [str(part) for part in error["loc"][:-1] if not isinstance(part, int)] or [""]
    models: dict[str, type[BaseModel]] = {
        "": PolicySpec,
        "columns": ColumnSpec,
        "require": RequireSpec,
        "l-diversity": DiversitySpec,
        "t-closeness": ClosenessSpec,
        "stochastic-t-closeness": StochasticSpec,
        "constraints": ConstraintsSpec,
        "release": ReleaseSpec,
        "reading": ReadingSpec,
        "writing": WritingSpec,
        "budget": BudgetSpec,
        "context": ContextSpec,
        "evaluate": EvaluateSpec,
    }
    # The keys below [columns] are names that the steward chose.
    model = models.get("columns" if tables[0] == "columns" else tables[-1])
    return [] if model is None else [f.alias or name for name, f in model.model_fields.items()]
