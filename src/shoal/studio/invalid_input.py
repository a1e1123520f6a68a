"""Invalid input, which stays in its field and blocks releases until it is corrected.

A form that is refused leaves the policy as it was. If the text that was refused were forgotten, the
next click would release a table without what it asked for. So it is kept in the workspace, over
reloads and restarts, until the form is sent again and taken, or undo takes it back.
"""

from collections.abc import Collection, Mapping

from shoal.errors import ShoalError
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
    """Return the name of a column's form."""
    return f"columns.{name}"


def make_draft(
    given: Mapping[str, str], error: str, wrong: Collection[str] = (), line: int | None = None
) -> Draft:
    """Make a draft of any input that a file can store."""
    texts = {_text(name): _text(text) for name, text in given.items()}
    return Draft(texts, _text(error), tuple(wrong), line)


def sentence(workspace: Workspace) -> str:
    """Say which invalid input blocks a release."""
    where, draft = next(iter(workspace.drafts.items()))
    place = PLACES.get(where, f"Roles and policy, column '{where.partition('.')[2]}'")
    return (
        f"Something that was typed cannot be used. {place}: {draft.error} Correct it there, or "
        "take it back with Undo."
    )


def wrong_fields(error: ShoalError, known: Collection[str], *table: str) -> tuple[str, ...]:
    """The fields of a form that an error of the policy is about.

    Args:
        error: with the place in the policy.
        known: the fields of the form, by keys of the table.
        table: what of the policy the form is for, such as `columns`, `age`.

    >>> from shoal.errors import InputError
    >>> wrong_fields(InputError("x.", field=("protect", "k")), ["k", "kind"], "protect")
    ('k',)
    >>> end = InputError("x.", field=("columns", "a.b", "bounds", 1))
    >>> wrong_fields(end, ["kind", "bounds"], "columns", "a.b")
    ('bounds',)
    >>> wrong_fields(InputError("x.", field=("protect", "groups")), ["groups.age"], "protect")
    ('groups.age',)
    """
    place = error.field[len(table) :]
    if error.field[: len(table)] != table or not place:
        return ()
    path = ".".join(map(str, place)) + "."
    parts = {field: f"{field}." for field in known}
    return tuple(f for f, part in parts.items() if path.startswith(part) or part.startswith(path))


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
