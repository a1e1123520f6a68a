"""Screen 2: what each column is, confirmed one by one, beside the policy as a text."""

from collections import Counter
from collections.abc import Mapping
from json import dumps
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from shoal.core import Role
from shoal.errors import InputError, counted, visible
from shoal.policy.spec import FLAGS
from shoal.studio import invalid_input, policy_document
from shoal.studio.context import Current, TheStudio
from shoal.studio.pages import editing, fields, rendering
from shoal.studio.pages.common import Form, Here, Present, back_to, screen
from shoal.studio.profile import ColumnProfile

router = APIRouter(include_in_schema=False)

ONE_LIMIT = "Expected both limits of the column, the smallest and the largest value, or neither."
FIELDS = {"bounds": ("low", "high")}
"""Keys of a column that have other fields than one of their name."""
LONGEST_LIST = 200
"""Observed values that are offered for copying, at most."""


@router.get("/w/{id}/roles")
def show(here: Present) -> Response:
    """Show every column with its role, and the policy beside them."""
    if here.policy is None:
        return back_to(here, "data")
    return screen(
        here,
        "roles",
        columns=_columns(here),
        toml=_text(here),
        policy_error=_policy_error(here),
        **_counts(here),
        **_whose(here),
    )


@router.get("/w/{id}/policy.toml")
def download(workspace: Current) -> Response:
    """The policy as a file."""
    headers = {"content-disposition": 'attachment; filename="policy.toml"'}
    return PlainTextResponse(workspace.policy, headers=headers)


@router.post("/w/{id}/roles/column")
def change(here: Present, form: Form) -> Response:
    """Take what a column's card states."""
    return _changed(here, form, confirm=False)


@router.post("/w/{id}/roles/confirm")
def confirm(here: Present, form: Form) -> Response:
    """Take what a column's card states, note that somebody confirmed it, and open the next."""
    return _changed(here, form, confirm=True)


@router.post("/w/{id}/roles/copy")
def copy(here: Present, form: Form) -> Response:
    """Copy the values that occur as categories, marked as observed."""
    name = _name(here, form)
    seen = _seen(here).get(name)
    stated = policy_document.column_of(here.document, name)
    if seen is not None and seen.values:
        stated |= {"categories": list(seen.values), "observed": True}
    return _store(here, name, stated, form, confirm=False)


@router.post("/w/{id}/roles/persons")
def whose_rows(studio: TheStudio, workspace: Current, form: Form) -> Response:
    """Take whether somebody vouches that each row is one person."""
    text = editing.with_line(
        workspace.policy, "one_row_per_person", value=True if form.get("one_row") else None
    )
    after = Here(studio, studio.store.change(workspace.id, policy=text))
    # The box itself stays, so the keyboard's focus does.
    beside = [part for part in _beside(after) if part[0] != "whose_rows.html"]
    toml = ("toml.html", {"toml": text, "base": after.base, "policy_error": None})
    return HTMLResponse(rendering.fragments(("", {}), toml, *beside))


@router.post("/w/{id}/roles/policy")
def typed(here: Present, form: Form) -> Response:
    """Take the policy as it was typed; where it cannot be used, say why and change no field."""
    text = form.get("toml", "").replace("\r\n", "\n")
    try:
        after = here.studio.put_policy(here.workspace, text, settles=[invalid_input.TEXT])
    except InputError as error:
        here = here.drafted(invalid_input.TEXT, {"toml": text}, str(error), ("toml",))
        parts = [("policy_error.html", {"policy_error": _policy_error(here)}), *_beside(here)]
        headers = {"HX-Reswap": "none", **_marked("toml", "policy-error", ["toml"])}
        return HTMLResponse(rendering.fragments(("", {}), *parts), headers=headers)
    here = Here(here.studio, after)
    answer = rendering.fragments(
        ("columns.html", {"base": here.base, "columns": _columns(here)}),
        ("policy_error.html", {"policy_error": None}),
        *_beside(here),
    )
    return HTMLResponse(answer, headers=_marked("toml", "policy-error", []))


def _changed(here: Here, form: Mapping[str, str], *, confirm: bool) -> Response:
    name = _name(here, form)
    stated = fields.read_column(form, _before(here, name))
    ends = stated.get("bounds", ())
    if "" in ends:
        # One limit is typed and the other is not yet.
        return _wrong(here, name, form, ONE_LIMIT, quiet=not confirm)
    return _store(here, name, stated, form, confirm=confirm)


def _store(
    here: Here, name: str, stated: Mapping[str, Any], form: Mapping[str, str], *, confirm: bool
) -> Response:
    """Write a column's line, and answer with what changes on the page."""
    studio, workspace = here.studio, here.workspace
    line: Any = stated["role"] if set(stated) == {"role"} else stated
    text = workspace.policy
    before = policy_document.column_of(here.document, name)
    if dict(stated) != before:
        text = editing.with_key(text, "columns", name, line)
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
        return _wrong(here, name, form, str(error))
    after = Here(studio, now)
    headers = _marked(*_ids(after, name), [])
    parts: list[tuple[str, Mapping[str, Any]]] = [
        ("column.html", _one(after, name, opened=not confirm)),
        ("toml.html", {"toml": text, "base": after.base, "policy_error": None}),
        ("policy_error.html", {"policy_error": None}),
        *_beside(after),
    ]
    if not confirm and _same_fields(before, stated):
        # The card stays, so nothing that is being typed in it is lost.
        headers["HX-Reswap"] = "none"
        parts[0] = ("", {})
        parts += [(part, {**_one(after, name, opened=True), "alone": True})
                  for part in ("column_sum.html", "column_error.html")]  # fmt: skip
    following = _following(after, name) if confirm else None
    if following is not None:
        parts.append(("column.html", _one(after, following, opened=True)))
        place = list(after.document["columns"]).index(following)
        role = policy_document.column_of(after.document, following)["role"]
        headers = {"HX-Trigger": dumps({"focus-on": f"role-{place}-{role}"})}
    elif confirm:
        headers = {"HX-Trigger": dumps({"focus-on": "onward", "say": "All columns are confirmed."})}
    return HTMLResponse(rendering.fragments(*parts), headers=headers)


def _wrong(
    here: Here, name: str, form: Mapping[str, str], sentence: str, *, quiet: bool = False
) -> Response:
    """Say what does not fit beside what was typed, keep that, and change nothing else."""
    known = ("bounds", "categories", "kind", *fields.MORE)
    wrong = invalid_input.wrong_fields(sentence, known, table=invalid_input.column(name))
    if sentence == ONE_LIMIT:
        wrong = ("bounds",)
    after = here.drafted(invalid_input.column(name), form, _own_words(sentence), wrong)
    headers = {"HX-Reswap": "none"}
    parts = [("rail.html", {"rail": after.rail("roles"), "base": after.base})]
    if not quiet:
        card = {**_one(after, name, opened=True), "alone": True}
        parts.append(("column_error.html", card))
        place, error = _ids(after, name)
        spoken = [f"{one}-{place}" for key in wrong for one in FIELDS.get(key, (key,))]
        headers |= _marked(place, error, spoken)
    return HTMLResponse(rendering.fragments(("", {}), *parts), headers=headers)


def _marked(form: str, error: str, wrong: list[str]) -> dict[str, str]:
    """Tell the page which fields of a form an error stands on, and no others."""
    return {"HX-Trigger": dumps({"wrong": {"form": form, "place": error, "ids": wrong}})}


def _ids(here: Here, name: str) -> tuple[str, str]:
    """The ids of a column's card and of the place for its error."""
    place = list(here.document["columns"]).index(name)
    return str(place), f"error-{place}"


def _before(here: Here, name: str) -> dict[str, Any]:
    """A column as it stands, with the mark of a list that was copied, though it be gone now."""
    marked = {"observed": True} if name in here.workspace.observed else {}
    return policy_document.column_of(here.document, name) | marked


def _text(here: Here) -> str:
    """The policy's text, or what was typed in its place and cannot be used."""
    draft = here.workspace.drafts.get(invalid_input.TEXT)
    return here.workspace.policy if draft is None else draft.given["toml"]


def _policy_error(here: Here) -> dict[str, Any] | None:
    draft = here.workspace.drafts.get(invalid_input.TEXT)
    if draft is None:
        return None
    return {"text": draft.error, "line": editing.line_of(draft.given["toml"], draft.error)}


def _same_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a card with this content has the same fields as one with that."""
    kept = ("role", "kind", "observed", "hierarchy")
    return all(before.get(key) == after.get(key) for key in kept) and (
        "categories" in before) == ("categories" in after)  # fmt: skip


def _following(here: Here, name: str) -> str | None:
    """The next column to confirm, from this one on and then from the top."""
    names = list(here.document["columns"])
    place = names.index(name)
    return next((one for one in names[place:] + names[:place] if one in here.open_columns), None)


def _beside(here: Here) -> list[tuple[str, Mapping[str, Any]]]:
    """What changes with every change of a column."""
    return [
        ("rail.html", {"rail": here.rail("roles"), "base": here.base}),
        ("counts.html", _counts(here)),
        ("whose_rows.html", {"base": here.base, **_whose(here)}),
    ]


def _one(here: Here, name: str, *, opened: bool) -> Mapping[str, Any]:
    return {"base": here.base, "column": _card(here, name, opened=opened)}


def _columns(here: Here) -> list[dict[str, Any]]:
    names = list(here.document["columns"])
    first = next(iter(here.open_columns), None)
    return [_card(here, name, opened=name == first) for name in names]


def _card(here: Here, name: str, *, opened: bool) -> dict[str, Any]:
    """A column as its card shows it: what was typed last, where that cannot be used."""
    stated = _before(here, name)
    draft = here.workspace.drafts.get(invalid_input.column(name))
    if draft is not None:
        stated = fields.read_column(draft.given, stated)
    role, kind = str(stated["role"]), str(stated.get("kind", ""))
    seen = _seen(here).get(name)
    low, high = (fields.as_text(end) for end in stated.get("bounds", (None, None)))
    categories = [str(one) for one in stated.get("categories", ())]
    more = fields.column_more(kind, stated) if role != Role.IDENTIFIER else _flags(stated)
    return {
        "place": list(here.document["columns"]).index(name),
        "name": name,
        "role": role,
        "kind": kind,
        "open": opened or draft is not None,
        "confirmed": name in here.workspace.confirmed,
        "reason": f"First guess: {seen.role}, because {seen.reason}." if seen else "",
        "facts": "" if seen is None else _facts(seen, here.profile.rows if here.profile else 0),
        "asks": role != Role.IDENTIFIER,
        "needs_kind": role in {Role.QUASI_IDENTIFIER, Role.CONFIDENTIAL},
        "low": low,
        "high": high,
        "categories": categories,
        "observed": bool(stated.get("observed")),
        "hierarchy": str(stated.get("hierarchy", "")),
        "values": [] if seen is None or categories else list(seen.values[:LONGEST_LIST]),
        "short": _short(stated, kind),
        "more": more,
        "more_open": any(one["value"] for one in more),
        "error": "" if draft is None else draft.error,
        "wrong": () if draft is None else draft.wrong,
    }


def _flags(stated: Mapping[str, Any]) -> list[dict[str, Any]]:
    wanted = {"privacy_unit", "household", "stratum"}
    return [one for one in fields.column_more("", stated) if one["key"] in wanted]


def _facts(seen: ColumnProfile, rows: int) -> str:
    missing = rendering.share(seen.missing, rows)
    return f"{seen.type}, {missing} missing, {counted(seen.distinct, 'different value')}"


def _short(stated: Mapping[str, Any], kind: str) -> str:
    """What is stated beside the role, in a few words."""
    parts = [kind] if kind else []
    if "bounds" in stated:
        low, high = map(fields.as_text, stated["bounds"])
        parts.append(f"{low} to {high}")
    elif kind in {"numeric", "date"}:
        parts.append("no bounds")
    if "categories" in stated:
        copied = ", copied" if stated.get("observed") else ""
        parts.append(f"{counted(len(stated['categories']), 'category', 'categories')}{copied}")
    if "hierarchy" in stated:
        parts.append("a hierarchy")
    parts += [fields.TITLES[key].lower() for key in ("public", *FLAGS) if stated.get(key)]
    return ", ".join(parts)


def _whose(here: Here) -> dict[str, Any]:
    """Whose rows they are, as far as the policy says."""
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
    found = Counter(str(policy_document.column_of(here.document, name)["role"]) for name in names)
    left = len(here.open_columns)
    words = f"{len(names) - left} of {len(names)} confirmed" if left else "all confirmed"
    return {
        "counts": {role.value: found[role.value] for role in Role if found[role.value]},
        "confirmed_words": words,
    }


def _seen(here: Here) -> dict[str, ColumnProfile]:
    return {} if here.profile is None else {one.name: one for one in here.profile.columns}


def _name(here: Here, form: Mapping[str, str]) -> str:
    """The column of a card, which has its name as the page shows it, and its place."""
    given, place = form.get("name", ""), form.get("place", "")
    names = [str(name) for name in here.document.get("columns", {})]
    first = [names[int(place)]] if place.isdecimal() and int(place) < len(names) else []
    for name in (*first, *names):
        if given in {name, visible(name)}:
            return name
    raise InputError("The policy no longer has this column; load the page again.")


def _own_words(sentence: str) -> str:
    """An error of the policy without the place, where the card is the place."""
    before, mark, after = sentence.rpartition(": expected")
    return f"Expected{after}" if mark and before.startswith("The policy, columns") else sentence
