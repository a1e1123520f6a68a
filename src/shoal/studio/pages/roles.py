"""Screen 2: the role of each column in a grid, one column in full, and the policy's text.

The grid is worked by mouse, touch or keys (`static/roles.js`): select rows, set role or kind of all
of them, confirm them. What few columns need is in the inspector of one column.
"""

from collections import Counter
from collections.abc import Mapping
from json import dumps
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from shoal.core import Role
from shoal.errors import InputError, count_noun, visible
from shoal.studio import invalid_input, policy_document
from shoal.studio.context import Current, TheStudio
from shoal.studio.pages import editing, fields, hierarchies, rendering
from shoal.studio.pages.common import Form, FormWithFile, Here, Present, back_to, screen
from shoal.studio.profile import ColumnProfile
from shoal.studio.workspace import TITLES

router = APIRouter(include_in_schema=False)

ONE_LIMIT = "Expected both limits of the column, the smallest and the largest value, or neither."
FIELDS = {"bounds": ("low", "high")}
"""Keys of a column that have other fields than one of their name."""
LONGEST_LIST = 200
"""Observed values that are offered for copying, at most."""


@router.get("/w/{id}/roles")
def show(here: Present) -> Response:
    """Show every column with its role, and the policy."""
    if here.policy is None:
        return back_to(here, "data")
    rows = _rows(here)
    first = next((row["place"] for row in rows if row["wrong"]), None)
    if first is None:
        first = next((row["place"] for row in rows if not row["confirmed"]), 0)
    return screen(
        here,
        "roles",
        columns=rows,
        column=_card(here, list(here.document["columns"])[first]),
        toml=_text(here),
        policy_error=_policy_error(here),
        **_counts(here),
        **_whose(here),
    )


@router.get("/w/{id}/policy.toml")
def download(workspace: Current) -> Response:
    """Send the policy as a file."""
    headers = {"content-disposition": 'attachment; filename="policy.toml"'}
    return PlainTextResponse(workspace.policy, headers=headers)


@router.get("/w/{id}/roles/column/{place}")
def inspect(here: Present, place: int) -> Response:
    """Show one column in full."""
    name = _name(here, {"place": str(place)})
    return HTMLResponse(rendering.page("column.html", base=here.base, column=_card(here, name)))


@router.post("/w/{id}/roles/rows")
def change_rows(here: Present, form: Form) -> Response:
    """Set the role or kind of several columns, or confirm them, as one step."""
    names = [_name(here, {"place": place}) for place in form.get("places", "").split(",")]
    lines = {name: _with_choice(here, name, form) for name in names}
    before = {name: policy_document.column_of(here.document, name) for name in names}
    changed = {name: _line(stated) for name, stated in lines.items() if stated != before[name]}
    text = editing.with_keys(here.workspace.policy, "columns", changed)
    confirmed = here.workspace.confirmed
    if form.get("confirm"):
        confirmed = tuple(dict.fromkeys((*confirmed, *names)))
    try:
        settles = [invalid_input.column(name) for name in changed]
        now = here.studio.put_policy(here.workspace, text, settles=settles, confirmed=confirmed)
    except InputError as error:
        return _refuse(error)
    after = Here(here.studio, now)
    rows = [_row_part(after, name) for name in names]
    headers = {}
    if form.get("confirm") and not after.open_columns:
        headers = {"HX-Trigger": dumps({"say": "All columns are confirmed."})}
    shown = form.get("shown", "")
    if shown.isdecimal() and (name := _name(after, {"place": shown})) in changed:
        rows.append(("column.html", _one(after, name)))
    parts = [*rows, ("rows_error.html", {"error": ""}), *_text_parts(after), *_beside(after)]
    return HTMLResponse(rendering.fragments(("", {}), *parts), headers=headers)


def _refuse(error: InputError) -> Response:
    """Explain why several columns were not changed; no typed input is lost."""
    part = ("rows_error.html", {"error": f"Nothing was changed. {_own_words(error)}"})
    return HTMLResponse(rendering.fragments(("", {}), part))


def _with_choice(here: Here, name: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Return a column with another role or kind, without keys that do not fit."""
    before = _before(here, name)
    given = fields.as_form(before)
    if form.get("role"):
        given["role"] = form["role"]
    if form.get("kind") and given["role"] != Role.IDENTIFIER:
        given["kind"] = form["kind"]
    if given["role"] != Role.IDENTIFIER and not given["kind"]:
        seen = _seen(here).get(name)
        given["kind"] = seen.kind if seen else ""
    if not form.get("role") and not form.get("kind"):
        return policy_document.column_of(here.document, name)
    return fields.read_column(given, before)


@router.post("/w/{id}/roles/column")
def change(here: Present, form: Form) -> Response:
    """Take the fields of a column's card."""
    return _change(here, form, confirm=False)


@router.post("/w/{id}/roles/confirm")
def confirm(here: Present, form: Form) -> Response:
    """Take the fields of a column's card, mark it as confirmed, and open the next."""
    return _change(here, form, confirm=True)


@router.post("/w/{id}/roles/copy")
def copy(here: Present, form: Form) -> Response:
    """Copy the occurring values as categories, marked as observed."""
    name = _name(here, form)
    seen = _seen(here).get(name)
    stated = policy_document.column_of(here.document, name)
    if seen is not None and seen.values:
        # Their order was left out of the draft with them.
        kind = {"kind": "ordinal"} if seen.kind == "ordinal" else {}
        stated |= {"categories": list(seen.values), "observed": True, **kind}
    return _store(here, name, stated, form, confirm=False)


@router.post("/w/{id}/roles/hierarchy")
def build_hierarchy(here: Present, form: FormWithFile) -> Response:
    """Make or remove the hierarchy of a column."""
    name = _name(here, {key: str(form.get(key, "")) for key in ("name", "place")})
    before = policy_document.column_of(here.document, name)
    stated = {key: value for key, value in before.items() if key != "hierarchy"}
    try:
        tree = (
            None
            if form.get("how") == "none"
            else hierarchies.make_hierarchy(here, name, before, form)
        )
        if tree is not None:
            stated |= hierarchies.put(here, name, tree)
        public = not (tree and tree.observed)
        if before.get("kind") == "nominal":
            stated.pop("categories", None)
        if public and "categories" not in stated:
            stated.pop("observed", None)
        text = editing.with_key(here.workspace.policy, "columns", name, _line(stated))
        settles = [invalid_input.column(name)]
        now = here.studio.put_policy(
            here.workspace, text, settles=settles, public=[name] if public and tree else ()
        )
    except InputError as error:
        part = ("tree_error.html", {"error": _own_words(error)})
        headers = {"HX-Reswap": "none"}
        return HTMLResponse(rendering.fragments(("", {}), part), headers=headers)
    after = Here(here.studio, now)
    parts = [("column.html", _one(after, name)), *_text_parts(after), *_beside(after),
             _row_part(after, name)]  # fmt: skip
    headers = {"HX-Trigger": dumps({"say": "The hierarchy was taken."})}
    return HTMLResponse(rendering.fragments(*parts), headers=headers)


@router.post("/w/{id}/roles/persons")
def whose_rows(studio: TheStudio, workspace: Current, form: Form) -> Response:
    """Record whether somebody vouches that each row is one person."""
    text = editing.with_line(
        workspace.policy, "one_row_per_person", value=True if form.get("one_row") else None
    )
    after = Here(studio, studio.store.change(workspace.id, policy=text))
    # The box itself stays, so the keyboard's focus does.
    beside = [part for part in _beside(after) if part[0] != "whose_rows.html"]
    toml = ("toml.html", {"toml": text, "base": after.base, "policy_error": None})
    return HTMLResponse(rendering.fragments(("", {}), toml, *beside))


@router.post("/w/{id}/roles/policy")
def take_text(here: Present, form: Form) -> Response:
    """Take the typed policy; if it is invalid, say why and change no field."""
    text = form.get("toml", "").replace("\r\n", "\n")
    try:
        after = here.studio.put_policy(here.workspace, text, settles=[invalid_input.TEXT])
    except InputError as error:
        line = editing.line_of(text, error)
        draft = invalid_input.make_draft({"toml": text}, str(error), ["toml"], line)
        here = here.keep_draft(invalid_input.TEXT, draft)
        parts = [("policy_error.html", {"policy_error": _policy_error(here)}), *_beside(here)]
        headers = {"HX-Reswap": "none", **_mark_fields("toml", "policy-error", ["toml"])}
        return HTMLResponse(rendering.fragments(("", {}), *parts), headers=headers)
    here = Here(here.studio, after)
    answer = rendering.fragments(
        ("columns.html", {"base": here.base, "columns": _rows(here)}),
        ("policy_error.html", {"policy_error": None}),
        ("column.html", _one(here, _name(here, {"place": form.get("place", "")}, missing=0))),
        *_beside(here),
    )
    return HTMLResponse(answer, headers=_mark_fields("toml", "policy-error", []))


def _change(here: Here, form: Mapping[str, str], *, confirm: bool) -> Response:
    name = _name(here, form)
    stated = fields.read_column(form, _before(here, name))
    if "" in fields.known(stated, "bounds"):
        # One limit is typed and the other is not yet.
        error = InputError(ONE_LIMIT, field=("columns", name, "bounds"))
        return _wrong(here, name, form, error, quiet=not confirm)
    return _store(here, name, stated, form, confirm=confirm)


def _store(
    here: Here, name: str, stated: Mapping[str, Any], form: Mapping[str, str], *, confirm: bool
) -> Response:
    """Write a column's line, and answer with the changed parts of the page."""
    studio, workspace = here.studio, here.workspace
    text = workspace.policy
    before = policy_document.column_of(here.document, name)
    if dict(stated) != before:
        text = editing.with_key(text, "columns", name, _line(stated))
    confirmed = workspace.confirmed
    if confirm and name not in confirmed:
        confirmed = (*confirmed, name)
    try:
        now = studio.put_policy(
            workspace,
            text,
            settles=[invalid_input.column(name)],
            public=[name] if form.get("stated") else (),
            confirmed=confirmed,
        )
    except InputError as error:
        return _wrong(here, name, form, error)
    after = Here(studio, now)
    headers = _mark_fields(*_ids(after, name), [])
    parts = [
        ("column.html", _one(after, name)),
        _row_part(after, name),
        *_text_parts(after),
        *_beside(after),
    ]
    if not confirm and _same_fields(before, stated):
        # The form stays, so nothing that is being typed in it is lost.
        headers["HX-Reswap"] = "none"
        parts[0] = ("", {})
        parts.append(("column_error.html", {**_one(after, name), "alone": True}))
    following = _following(after, name) if confirm else None
    if following is not None:
        parts[0] = ("column.html", _one(after, following))
        place = list(after.document["columns"]).index(following)
        role = policy_document.column_of(after.document, following)["role"]
        headers = {"HX-Trigger": dumps({"focus-on": f"role-{place}-{role}"})}
    elif confirm:
        headers = {"HX-Trigger": dumps({"focus-on": "onward", "say": "All columns are confirmed."})}
    return HTMLResponse(rendering.fragments(*parts), headers=headers)


def _line(stated: Mapping[str, Any]) -> Any:
    """Write a column's line: only its role if nothing else is stated."""
    return stated["role"] if set(stated) == {"role"} else stated


def _text_parts(here: Here) -> list[tuple[str, Mapping[str, Any]]]:
    values = {"toml": here.workspace.policy, "base": here.base, "policy_error": None}
    return [("toml.html", values), ("policy_error.html", {"policy_error": None})]


def _wrong(
    here: Here, name: str, form: Mapping[str, str], error: InputError, *, quiet: bool = False
) -> Response:
    """Show an error beside the input, keep the input, and change nothing else."""
    known = ("bounds", "categories", "kind", *fields.MORE)
    wrong = invalid_input.wrong_fields(error, known, "columns", name)
    draft = invalid_input.make_draft(form, _own_words(error), wrong)
    after = here.keep_draft(invalid_input.column(name), draft)
    headers = {"HX-Reswap": "none"}
    parts: list[tuple[str, Mapping[str, Any]]] = [
        ("rail.html", {"rail": after.rail("roles"), "base": after.base})
    ]
    if not quiet:
        parts.append(("column_error.html", {**_one(after, name), "alone": True}))
        parts.append(_row_part(after, name))
        place, error_place = _ids(after, name)
        spoken = [f"{field}-{place}" for key in wrong for field in FIELDS.get(key, (key,))]
        headers |= _mark_fields(place, error_place, spoken)
    return HTMLResponse(rendering.fragments(("", {}), *parts), headers=headers)


def _mark_fields(form: str, error: str, wrong: list[str]) -> dict[str, str]:
    """Mark exactly the fields of a form that have an error."""
    return {"HX-Trigger": dumps({"wrong": {"form": form, "place": error, "ids": wrong}})}


def _ids(here: Here, name: str) -> tuple[str, str]:
    """Return the ids of a column's card and of its error message."""
    place = list(here.document["columns"]).index(name)
    return str(place), f"error-{place}"


def _before(here: Here, name: str) -> dict[str, Any]:
    """Return a column's keys, with the mark of a copied list even if the list is gone."""
    marked = {"observed": True} if name in here.workspace.observed else {}
    return policy_document.column_of(here.document, name) | marked


def _text(here: Here) -> str:
    """Return the policy's text, or invalid input typed in its place."""
    draft = here.workspace.drafts.get(invalid_input.TEXT)
    return here.workspace.policy if draft is None else draft.given["toml"]


def _policy_error(here: Here) -> dict[str, Any] | None:
    draft = here.workspace.drafts.get(invalid_input.TEXT)
    if draft is None:
        return None
    return {"text": draft.error, "line": draft.line}


def _same_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a card has the same fields before and after a change."""
    kept = ("role", "kind", "observed", "hierarchy")
    same = all(before.get(key) == after.get(key) for key in kept)
    return same and fields.is_open(before) is fields.is_open(after) and (
        "categories" in before) == ("categories" in after)  # fmt: skip


def _following(here: Here, name: str) -> str | None:
    """Return the next column to confirm, starting here and wrapping around."""
    names = list(here.document["columns"])
    place = names.index(name)
    return next((n for n in names[place:] + names[:place] if n in here.open_columns), None)


def _beside(here: Here) -> list[tuple[str, Mapping[str, Any]]]:
    """List what changes on the page with every change of a column."""
    return [
        ("rail.html", {"rail": here.rail("roles"), "base": here.base}),
        ("counts.html", _counts(here)),
        ("whose_rows.html", {"base": here.base, **_whose(here)}),
    ]


def _one(here: Here, name: str) -> Mapping[str, Any]:
    return {"base": here.base, "column": _card(here, name)}


def _row_part(here: Here, name: str) -> tuple[str, Mapping[str, Any]]:
    return "column_row.html", {"base": here.base, "column": _row(here, name)}


def _rows(here: Here) -> list[dict[str, Any]]:
    return [_row(here, name, place) for place, name in enumerate(here.document["columns"])]


def _row(here: Here, name: str, place: int | None = None) -> dict[str, Any]:
    """Make a column's row in the grid."""
    stated = policy_document.column_of(here.document, name)
    seen = _seen(here).get(name)
    draft = here.workspace.drafts.get(invalid_input.column(name))
    kind = str(stated.get("kind", ""))
    return {
        "place": list(here.document["columns"]).index(name) if place is None else place,
        "name": name,
        "role": str(stated["role"]),
        "kind": kind,
        "confirmed": name in here.workspace.confirmed,
        "reason": seen.reason if seen else "",
        "guess": seen.role if seen and seen.role != stated["role"] else "",
        "shape": seen.shape if seen else None,
        "short": _short(stated, kind),
        "wrong": draft is not None,
    }


def _card(here: Here, name: str) -> dict[str, Any]:
    """Make a column's card, with invalid input if there is any."""
    stated = _before(here, name)
    draft = here.workspace.drafts.get(invalid_input.column(name))
    if draft is not None:
        stated = fields.read_column(draft.given, stated)
    role, kind = str(stated["role"]), str(stated.get("kind", ""))
    seen = _seen(here).get(name)
    low, high = (fields.as_text(end) for end in fields.known(stated, "bounds") or (None, None))
    categories = [str(category) for category in fields.known(stated, "categories")]
    more = fields.column_more(kind, stated) if role != Role.IDENTIFIER else _flags(stated)
    return {
        "place": list(here.document["columns"]).index(name),
        "name": name,
        "role": role,
        "kind": kind,
        "confirmed": name in here.workspace.confirmed,
        "reason": f"First guess: {seen.role}, because {seen.reason}." if seen else "",
        "shape": seen.shape if seen else None,
        "facts": "" if seen is None else _facts(seen, here.profile.rows if here.profile else 0),
        "asks": role != Role.IDENTIFIER,
        "needs_kind": role in {Role.QUASI_IDENTIFIER, Role.CONFIDENTIAL},
        "low": low,
        "high": high,
        "open": fields.is_open(stated),
        "categories": categories,
        "observed": bool(stated.get("observed")),
        "hierarchy": str(stated.get("hierarchy", "")),
        "tree": hierarchies.tree_of(here, stated),
        "builders": hierarchies.builders(kind) if role != Role.IDENTIFIER else (),
        "values": [] if seen is None or categories else list(seen.values[:LONGEST_LIST]),
        "short": _short(stated, kind),
        "more": more,
        "more_open": any(field["value"] for field in more),
        "error": "" if draft is None else draft.error,
        "wrong": () if draft is None else draft.wrong,
    }


def _flags(stated: Mapping[str, Any]) -> list[dict[str, Any]]:
    wanted = {"privacy_unit", "household", "stratum", "max_contributions"}
    return [field for field in fields.column_more("", stated) if field["key"] in wanted]


def _facts(seen: ColumnProfile, rows: int) -> str:
    missing = rendering.share(seen.missing, rows)
    words = f"{seen.type}, {missing} missing, {count_noun(seen.distinct, 'different value')}"
    return f"{words}; {seen.shape.range}" if seen.shape.range else words


def _short(stated: Mapping[str, Any], kind: str) -> str:
    """Summarise in a few words what is stated besides the role."""
    parts = [kind] if kind else []
    if fields.is_open(stated):
        parts.append("found with noise")
    elif "bounds" in stated:
        low, high = map(fields.as_text, stated["bounds"])
        parts.append(f"{low} to {high}")
    elif kind in {"numeric", "date"}:
        parts.append("no bounds")
    if fields.known(stated, "categories"):
        copied = ", copied" if stated.get("observed") else ""
        parts.append(f"{count_noun(len(stated['categories']), 'category', 'categories')}{copied}")
    if "hierarchy" in stated:
        parts.append("a hierarchy")
    parts += [TITLES[key].lower() for key in fields.TICKS if stated.get(key)]
    return ", ".join(parts)


def _whose(here: Here) -> dict[str, Any]:
    """Say whose rows they are, as far as the policy states it."""
    names = here.document["columns"]
    marked = (
        name for name in names if policy_document.column_of(here.document, name).get("privacy_unit")
    )
    return {
        "unit": next(marked, ""),
        "one_row": here.document.get("one_row_per_person") is True,
    }


def _counts(here: Here) -> dict[str, Any]:
    names = here.document["columns"]
    counted = Counter(str(policy_document.column_of(here.document, name)["role"]) for name in names)
    left = len(here.open_columns)
    words = f"{len(names) - left} of {len(names)} confirmed" if left else "all confirmed"
    return {
        "counts": {role.value: counted[role.value] for role in Role if counted[role.value]},
        "confirmed_words": words,
    }


def _seen(here: Here) -> Mapping[str, ColumnProfile]:
    return {} if here.profile is None else here.profile.by_name


def _name(here: Here, form: Mapping[str, str], *, missing: int | None = None) -> str:
    """Find the column of a form, by its displayed name and its position.

    Without a name, the position decides; without either, `missing` does.
    """
    given, place = form.get("name", ""), form.get("place", "")
    names = [str(name) for name in here.document.get("columns", {})]
    first = [names[int(place)]] if place.isdecimal() and int(place) < len(names) else []
    if "name" not in form and (first or missing is not None):
        return first[0] if first else names[missing or 0]
    for name in (*first, *names):
        if given in {name, visible(name)}:
            return name
    raise InputError("The policy no longer has this column; load the page again.")


def _own_words(error: InputError) -> str:
    """Remove the location from an error of the policy, if the card shows it."""
    if not error.place or error.field[:1] != ("columns",):
        return str(error)
    return error.reason[0].upper() + error.reason[1:]
