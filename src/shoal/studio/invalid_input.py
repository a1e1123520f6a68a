"""What was typed and cannot be used: it stays in its field, and nothing is released meanwhile.

A form that is refused leaves the policy as it was. If the text that was refused were forgotten, the
next click would release a table without what it asked for. So it is kept in the workspace, over
reloads and restarts, until the form is sent again and taken, or undo takes it back.
"""

import re
from collections.abc import Collection, Mapping

from shoal.studio.workspace import Draft, Workspace

TEXT, REQUIRE, PARAMETERS, BUDGET = "policy", "require", "parameters", "budget"
"""Forms that can be refused; `column` names those of the columns."""
PLACES = {
    TEXT: "Roles and policy, the text",
    REQUIRE: "Protect, what must be promised",
    PARAMETERS: "Protect, the settings of the method",
    BUDGET: "Release, privacy budget",
}
"""Where to find a form, in words."""


def column(name: str) -> str:
    """The form of a column."""
    return f"columns.{name}"


def make_draft(given: Mapping[str, str], error: str, wrong: Collection[str] = ()) -> Draft:
    """A draft that a file can hold, whatever was sent."""
    return Draft(
        {_text(name): _text(text) for name, text in given.items()}, _text(error), tuple(wrong)
    )


def sentence(workspace: Workspace) -> str:
    """Why nothing can be released: the first thing that was typed and cannot be used."""
    where, draft = next(iter(workspace.drafts.items()))
    place = PLACES.get(where, f"Roles and policy, column '{where.partition('.')[2]}'")
    return (
        f"Something that was typed cannot be used. {place}: {draft.error} Correct it there, or "
        "take it back with Undo."
    )


def wrong_fields(error: str, known: Collection[str], *, table: str) -> tuple[str, ...]:
    """The fields that an error of the policy speaks of, by the place that it names.

    Args:
        error: such as `The policy, require.l-diversity: expected ...`.
        known: the fields of the form.
        table: that the fields are keys of, such as `require`.

    >>> wrong_fields("policy, require.k-anonymity: x.", ["k-anonymity"], table="require")
    ('k-anonymity',)
    >>> wrong_fields("[protect], k: expected x.", ["k", "kind"], table="protect")
    ('k',)
    >>> wrong_fields("policy, columns.a: expected bounds.", ["bounds"], table="columns.a")
    ('bounds',)
    """
    places = rf"(?:{re.escape(table)}\.|\[{re.escape(table)}\], |parameter ')"
    named = [field for field in known if re.search(rf"{places}{re.escape(field)}(?![\w-])", error)]
    spoken = error.rpartition(f"{table}: expected ")[2].split() if f"{table}: " in error else []
    # An error of a column as a whole has the key among its words, a category in the singular.
    words = {word.strip("'.,").replace("category", "categories") for word in spoken}
    return tuple(named or [field for field in known if field in words][:1])


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
