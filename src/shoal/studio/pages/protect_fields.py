"""The fields of the screen Protect: settings of a method, and required guarantees.

Each is a field with a title in plain words, and columns are picked from those that fit. A text
that does not fit is handed on as it is, so the policy's own check says what was expected.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.core import Distance, Diversity, Kind, Policy, Role, Schema
from shoal.core.constraint_language import write_name
from shoal.errors import InputError, ShoalError
from shoal.methods import Method
from shoal.policy.sections import RequireSpec
from shoal.studio.pages.fields import as_number, as_text, as_value

COMPARISONS = {
    "=": "is", "!=": "is not", "<=": "is at most", "<": "is below", ">=": "is at least",
    ">": "is above",
}  # fmt: skip
"""Comparisons of a rule, as the page words them."""
RELEASE_FORM = "How released rows relate to the original"
FIRST = ("k", "epsilon", "t", "release_form")
"""Settings that are shown at once, beside those that are required or stated."""
UNASKED = ("columns",)
"""Keys of `[protect]` that no field shows; the page leaves them as the policy states them."""
BY_COLUMN = ("importance", "intervals", "levels", "weights")
"""Parameters with a value for each protected column."""
SETS = ("groups", "sets")
"""Parameters that list sets of columns: each column has a field for the numbers of its sets."""
SETS_HELP = "Columns with the same number are one set; several numbers are separated by commas."
LISTED = {
    "l-diversity": ("l", "kind", "c"),
    "t-closeness": ("t", "distance"),
    "stochastic-t-closeness": ("t",),
}
"""Requirements about confidential columns: several may be stated, each with these fields."""
REQUIREMENTS = {
    "k-anonymity": "Nobody stands out (k-anonymity)",
    "differential-privacy": "One person hardly matters (differential privacy)",
    "individual-risk": "A match is rarely right (individual risk)",
    "household-risk": "No household is found (household risk)",
    "k-map": "Others of the population are alike (k-map)",
    "household-k": "Other households are alike",
    "suda": "Nobody is special in few columns (SUDA)",
    "population": "The population, for k-map",
    "l-diversity": "Confidential values are diverse (l-diversity)",
    "t-closeness": "Confidential values are as in the whole table (t-closeness)",
    "stochastic-t-closeness": "Drawn values are nearly alike in every group (stochastic "
    "t-closeness)",
}
"""How the page calls requirements."""
PARTS = {
    "k-anonymity": ("At least so many alike (k)", "5"),
    "differential-privacy": ("At most this epsilon", "1"),
    "individual-risk": ("At most this probability", "0.05"),
    "household-risk": ("At most this probability", "0.2"),
    "k-map": ("At least so many people", "5"),
    "household-k": ("At least so many households", "3"),
    "suda": ("At most this DIS-SUDA score", "0.1"),
    "population": ("File, beside the policy", "register.csv"),
    "l": ("Diversity (l)", "2"),
    "kind": ("How it is counted", ""),
    "c": ("Factor (c), if recursive", "3"),
    "t": ("Largest distance (t)", "0.3"),
    "distance": ("By which distance", ""),
}
"""How the page calls the parts of a requirement, each with an example."""
CHOICES = {"kind": tuple(map(str, Diversity)), "distance": tuple(map(str, Distance))}


def parameters(
    method: Method[Any], stated: Mapping[str, Any], policy: Policy
) -> list[dict[str, Any]]:
    """Make the fields of `[protect]`: a method's parameters, and the release form."""
    schema = method.parameters.model_json_schema(mode="validation")
    protected = policy.columns or method.input.columns(policy.schema)
    fields = []
    for name in schema["properties"]:
        if name in UNASKED:
            continue
        if name in BY_COLUMN:
            fields += [
                _of_column(name, column, schema, stated.get(name, {}).get(column))
                for column in protected
            ]
            continue
        if name in SETS:
            fields += [
                _of_column(name, column, schema, _number_sets(stated.get(name) or (), column))
                | {"words": SETS_HELP}
                for column in protected
            ]
            continue
        required = name in schema.get("required", ())
        field = _parameter(name, schema, stated.get(name), required=required)
        if picked := _list_choices(name, policy, protected):
            field |= {"choices": [(column, column) for column in picked], "number": False}
        fields.append(field)
    forms = [form.value for form in method.forms.offered]
    if len(forms) > 1:
        fields.append(
            {
                "name": "release_form",
                "title": RELEASE_FORM,
                "words": "How the rows of the release relate to those of the original.",
                "required": method.forms.must_choose,
                "default": f"{forms[0]} by default",
                "value": str(stated.get("release_form", "")),
                "choices": [(form, form) for form in forms],
                "number": False,
            }
        )
    for field in fields:
        field["first"] = field["required"] or bool(field["value"]) or field["name"] in FIRST
    return fields


def _parameter(
    name: str, schema: Mapping[str, Any], value: Any, *, required: bool
) -> dict[str, Any]:
    stated = schema["properties"][name]
    resolved = _resolve(stated, schema)
    kind = resolved.get("type", "string")
    default = stated.get("default")
    words = {True: "yes", False: "no", None: "not stated"}
    shown = words[default] if default is None or kind == "boolean" else default
    return {
        "name": name,
        "title": stated["title"],
        "words": stated.get("description", ""),
        "required": required,
        "default": "" if required else f"{shown} by default",
        "value": _write_list(value),
        "choices": [("true", "yes"), ("false", "no")]
        if kind == "boolean"
        else [(str(choice), str(choice)) for choice in resolved.get("enum", ())],
        "number": kind in {"integer", "number"},
    }


def _of_column(name: str, column: str, schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Make one column's field of a parameter that has a value for each column."""
    return {
        "name": f"{name}.{column}",
        "title": f"{schema['properties'][name]['title']}: {column}",
        "words": schema["properties"][name].get("description", ""),
        "required": False,
        "default": "not stated by default",
        "value": _write_list(value),
        "choices": [],
        "number": False,
    }


def _write_list(value: Any) -> str:
    """Write one value or several, separated by commas."""
    listed = value if isinstance(value, list) else [] if value is None else [value]
    return ", ".join(as_text(item) for item in listed)


def _number_sets(sets: Iterable[Iterable[str]], column: str) -> list[int]:
    """Number the sets that a column is in, from 1."""
    return [number for number, names in enumerate(sets, 1) if column in names]


def _list_choices(name: str, policy: Policy, protected: Iterable[str]) -> list[str]:
    """List the columns that a parameter may name."""
    schema = policy.schema
    if name in {"count", "target"}:
        return list(schema.with_role(Role.CONFIDENTIAL))
    if name == "strata":
        return [column.name for column in schema.columns if column.public and column.all_categories]
    if name == "blocks":
        kinds = {Kind.NOMINAL, Kind.ORDINAL}
        return ["median", *(n for n in protected if schema[n].kind in kinds)]
    return []


def read_parameters(
    method: Method[Any], given: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Read a method's parameters from a form; empty fields are not stated."""
    schema = method.parameters.model_json_schema(mode="validation")
    given_values: dict[str, Any] = {}
    numbered: dict[str, dict[str, list[str]]] = {}
    for name, typed in given.items():
        text = typed.strip()
        key, _, column = name.partition(".")
        known = key == "release_form" or key in schema["properties"]
        if not text or not known or key in UNASKED:
            continue
        several = [as_number(part.strip()) for part in text.split(",")]
        if key in SETS:
            for number in several:
                numbered.setdefault(key, {}).setdefault(str(number), []).append(column)
        elif column and key in BY_COLUMN:
            single = key != "intervals" and len(several) == 1
            given_values.setdefault(key, {})[column] = several[0] if single else several
        else:
            kind = _resolve(schema["properties"].get(key, {}), schema).get("type", "string")
            given_values[key] = several if kind == "array" else as_value(text, kind)
    given_values |= {key: _order_sets(sets) for key, sets in numbered.items()}
    return given_values | {key: before[key] for key in UNASKED if key in before}


def _order_sets(sets: Mapping[str, list[str]]) -> Any:
    """List sets of columns by their numbers; what is no number is handed on."""
    wrong = next((text for text in sets if not text.isdecimal()), None)
    return wrong or [sets[number] for number in sorted(sets, key=int)]


def as_form(stated: Mapping[str, Any]) -> dict[str, str]:
    """Return `[require]` as form fields."""
    fields: dict[str, str] = {}
    for key, value in stated.items():
        if key not in LISTED:
            fields[key] = as_text(value)
            continue
        for at, entry in enumerate(value if isinstance(value, list) else [value]):
            named = entry.get("column", ())
            fields |= {f"{key}.{at}.{part}": as_text(entry.get(part)) for part in LISTED[key]}
            columns = [named] if isinstance(named, str) else named
            fields |= {f"{key}.{at}.column.{name}": "yes" for name in columns}
    return fields


def requirements(
    given: Mapping[str, str], policy: Policy, wrong: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Make the fields of the required guarantees, filled in from a form; see `as_form`."""
    words = {
        field.alias or name: field.description or ""
        for name, field in RequireSpec.model_fields.items()
    }
    wrong = set(wrong)
    fields = []
    for key, title in REQUIREMENTS.items():
        if key not in LISTED:
            groups = [{"place": "", "fields": [_part(key, key, given, wrong)], "columns": []}]
        else:
            used = _places(given, key)
            # One more than is stated, for the next.
            groups = [_group(f"{key}.{at}", key, given, policy, wrong)
                      for at in [*used, max(used, default=-1) + 1]]  # fmt: skip
        fields.append(
            {
                "key": key,
                "title": title,
                "words": words[key],
                "groups": groups,
                "stated": any(name == key or name.startswith(f"{key}.")
                              for name, text in given.items() if text.strip()),
                "wrong": any(name == key or name.startswith(f"{key}.") for name in wrong),
            }
        )  # fmt: skip
    return fields


def _group(
    place: str, key: str, given: Mapping[str, str], policy: Policy, wrong: set[str]
) -> dict[str, Any]:
    confidential = policy.schema.with_role(Role.CONFIDENTIAL)
    named = [name.removeprefix(f"{place}.column.") for name in given
             if name.startswith(f"{place}.column.")]  # fmt: skip
    return {
        "place": place,
        "fields": [_part(f"{place}.{part}", part, given, wrong) for part in LISTED[key]],
        "columns": [
            {"name": f"{place}.column.{name}", "column": name, "ticked": name in named,
             "wrong": f"{place}.column" in wrong}
            for name in dict.fromkeys((*confidential, *named))
        ],
    }  # fmt: skip


def _part(name: str, part: str, given: Mapping[str, str], wrong: set[str]) -> dict[str, Any]:
    title, example = PARTS[part]
    return {
        "name": name,
        "id": f"q-{name.replace('.', '-')}",
        "title": title,
        "example": f"for example {example}",
        "value": given.get(name, ""),
        "choices": CHOICES.get(part, ()),
        "wrong": name in wrong,
    }


def _places(given: Mapping[str, str], key: str) -> list[int]:
    """List the numbers of a kind's requirements that are filled in."""
    numbers = {
        int(parts[1])
        for name, text in given.items()
        if (parts := name.split("."))[0] == key and len(parts) > 2 and parts[1].isdecimal()
        if text.strip() and parts[2] not in CHOICES
    }
    return sorted(numbers)


def read_requirements(given: Mapping[str, str]) -> dict[str, Any]:
    """Read the requirements of a form, in the shape of `[require]`; empty ones are left out."""
    required: dict[str, Any] = {}
    for key in REQUIREMENTS:
        if key not in LISTED:
            if text := given.get(key, "").strip():
                required[key] = as_number(text)
            continue
        several = []
        for at in _places(given, key):
            place = f"{key}.{at}"
            entry: dict[str, Any] = {}
            for part in LISTED[key]:
                if text := given.get(f"{place}.{part}", "").strip():
                    entry[part] = text if part in CHOICES else as_number(text)
            columns = [name.removeprefix(f"{place}.column.") for name, text in given.items()
                       if name.startswith(f"{place}.column.") and text]  # fmt: skip
            if columns:
                entry["column"] = columns[0] if len(columns) == 1 else columns
            several.append(entry)
        if several:
            required[key] = several[0] if len(several) == 1 else several
    return required


def wrong_parts(error: ShoalError, given: Mapping[str, str]) -> tuple[str, ...]:
    """The field of the form of requirements that an error of the policy is about.

    >>> error = InputError("no c.", field=("require", "l-diversity", 0, "c"))
    >>> wrong_parts(error, {"l-diversity.0.l": "2"})
    ('l-diversity.0.c',)
    """
    if error.field[:1] != ("require",) or len(error.field) < 2:
        return ()
    key, *rest = map(str, error.field[1:])
    if key not in LISTED:
        return (key,)
    known = _places(given, key) or [0]
    at = next((int(part) for part in rest if part.isdecimal()), 0)
    parts = [part for part in rest if part in (*LISTED[key], "column")]
    return (f"{key}.{known[min(at, len(known) - 1)]}.{(*parts, LISTED[key][0])[0]}",)


def titles(method: Method[Any]) -> dict[str, str]:
    """Return the displayed titles of a method's settings, by their names in `[protect]`."""
    fields = method.parameters.model_fields
    stated = {name: field.title for name, field in fields.items() if field.title}
    return {"method": "Method", "release_form": RELEASE_FORM, **stated}


def in_words(error: ShoalError, known: Mapping[str, str]) -> str:
    """Write an error of the policy with fields called as the page calls them; see `titles`.

    >>> text, field = "expected a whole number.", ("protect", "k")
    >>> in_words(InputError(text, field=field, place="[protect], k"), {"k": "Smallest group (k)"})
    'Smallest group (k): expected a whole number.'
    >>> field = ("require", "l-diversity", 0, "c")
    >>> in_words(InputError("expected the factor 'c'.", field=field, place="The policy, x"), {})
    'Confidential values are diverse (l-diversity): expected a factor c.'
    """
    table, key = map(str, (*error.field, "", "")[:2])
    name = {"protect": known, "require": REQUIREMENTS}.get(table, {}).get(key, "")
    named = f"{name}: {error.reason}" if name and isinstance(error, InputError) else str(error)
    text = named.removeprefix("The policy, ")
    return text.replace("a value for 'column'", "a column").replace("the factor 'c'", "a factor c")


def _resolve(stated: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve the schema of a property, without its null alternative."""
    if "$ref" in stated:
        stated = schema["$defs"][stated["$ref"].rpartition("/")[2]]
    for option in stated.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolve(option, schema)
    return stated


def rule(form: Mapping[str, str], schema: Schema) -> str:
    """Write a rule of `[constraints]` from picked columns and typed values."""
    parts = [
        _comparison(form, place, schema) for place in ("if", "then") if form.get(f"{place}.column")
    ]
    return " implies ".join(parts)


def _comparison(form: Mapping[str, str], place: str, schema: Schema) -> str:
    name, value = form[f"{place}.column"], form.get(f"{place}.value", "").strip()
    if value in schema.released:
        value = write_name(value)
    elif name in schema.released and schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        value = f'"{value}"' if "'" in value else f"'{value}'"
    return f"{write_name(name)} {form.get(f'{place}.op', '=')} {value}"
