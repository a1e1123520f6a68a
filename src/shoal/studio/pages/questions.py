"""Questions about a file that only the steward can answer: sheets, dates, whose rows.

A question is answered by a click, which changes the policy. The answer stays on the page, and can
be another one later.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, count_noun, visible
from shoal.io.dates import in_words
from shoal.studio import policy_document
from shoal.studio.pages import editing
from shoal.studio.profile import ColumnProfile

if TYPE_CHECKING:
    from shoal.studio.pages.common import Here

PERSONS, SHEET = "persons", "sheet"
"""Questions about the whole table; all others are about a column, by its place."""
EXAMPLE = date(2024, 3, 4)
"""An invented day that reads otherwise if day and month are exchanged."""


def list_questions(here: "Here") -> list[dict[str, Any]]:
    """List every question about the file: title, text, and answers."""
    seen = here.profile
    if seen is None or here.policy is None:
        return []
    questions = []
    if len(seen.sheets) > 1:
        questions.append(_sheet(here, seen.sheets))
    marked = _unit(here)
    for place, column in enumerate(seen.columns):
        if column.name not in here.document["columns"]:
            continue
        if column.forms:
            questions.append(_date(here, place, column))
        if column.persons:
            questions.append(_numbers_persons(here, place, column, marked))
    if not any(column.persons for column in seen.columns):
        questions.append(_persons(here, marked))
    return questions


def open_questions(here: "Here") -> int:
    """Count the unanswered questions; confirming a column answers those about it."""
    return sum(not question["answered"] for question in list_questions(here))


def _sheet(here: "Here", sheets: tuple[str, ...]) -> dict[str, Any]:
    read = here.profile.reading.get("sheet") if here.profile else None
    return {
        "id": SHEET,
        "title": "Which sheet holds the table?",
        "words": f"The workbook has {count_noun(len(sheets), 'sheet')}.",
        "answered": bool(here.workspace.reading.get("sheet")),
        "answers": [
            _answer(str(at), visible(name), name == read) for at, name in enumerate(sheets)
        ],
    }


def _date(here: "Here", place: int, column: ColumnProfile) -> dict[str, Any]:
    stated = policy_document.column_of(here.document, column.name).get("date_format")
    written = EXAMPLE.strftime(column.forms[0].partition(" %H")[0].partition("T%H")[0])
    answers = []
    for form in column.forms:
        first = "Day" if form.startswith("%d") else "Month"
        day = EXAMPLE if form == column.forms[0] else date(2024, EXAMPLE.day, EXAMPLE.month)
        words = f"{first} first: {written} is {day.day} {day:%B}"
        answers.append(_answer(form, words, form == stated))
    return {
        "id": str(place),
        "title": f"Which comes first in {visible(column.name)}, the day or the month?",
        "words": "No date in the column has a day after the 12th in a place that would show it.",
        "answered": _is_answered(here, column.name),
        "answers": answers,
    }


def _numbers_persons(
    here: "Here", place: int, column: ColumnProfile, marked: str
) -> dict[str, Any]:
    rows = here.profile.rows if here.profile else 0
    shown = visible(column.name)
    is_marked = marked == column.name
    return {
        "id": str(place),
        "title": f"Does {shown} number the persons?",
        "words": f"It has {count_noun(column.distinct, 'different value')} in "
        f"{count_noun(rows, 'row')}. "
        "If it numbers the persons, promises count persons and not rows.",
        "answered": _is_answered(here, column.name),
        "answers": [
            _answer("yes", f"Yes, {shown} numbers the persons", is_marked),
            _answer("no", "No", not is_marked),
        ],
    }


def _persons(here: "Here", marked: str) -> dict[str, Any]:
    one_row_each = here.document.get("one_row_per_person") is True
    return {
        "id": PERSONS,
        "title": "Is each row one person?",
        "words": "Promises about persons rest on your answer.",
        "answered": one_row_each or bool(marked) or PERSONS in here.workspace.answered,
        "answers": [
            _answer("one", "Yes, and nobody has two rows", one_row_each),
            _answer("unknown", "No, or not known", not one_row_each and not marked),
        ],
        "columns": [(at, name, name == marked) for at, name in enumerate(here.document["columns"])],
        "marked": marked,
    }


def _answer(value: str, words: str, given: bool) -> dict[str, Any]:  # noqa: FBT001 (a fact)
    return {"value": value, "words": words, "given": given}


def _is_answered(here: "Here", name: str) -> bool:
    return name in (*here.workspace.answered, *here.workspace.confirmed)


def _unit(here: "Here") -> str:
    names = here.document["columns"]
    marked = (n for n in names if policy_document.column_of(here.document, n).get("privacy_unit"))
    return next(marked, "")


def answer(here: "Here", form: Mapping[str, str]) -> None:
    """Write an answer into the policy; an answer about the sheet reads the file again.

    Raises:
        InputError: there is no such question or answer.
    """
    id_, value = form.get("question", ""), form.get("answer", "")
    asked = next((each for each in list_questions(here) if each["id"] == id_), None)
    given = () if asked is None else [each["value"] for each in asked["answers"]]
    if asked is None or (value not in given and not (asked.get("columns") and value == "column")):
        raise InputError("The studio no longer asks this; load the page again.")
    if id_ == SHEET and here.profile is not None:
        sheet = here.profile.sheets[int(value)]
        here.studio.read_again(here.workspace, {**here.workspace.reading, "sheet": sheet})
        return
    text, name = here.workspace.policy, PERSONS
    if id_ == PERSONS:
        text = _whose(here, text, value, form)
    elif here.profile is not None:
        name = here.profile.columns[int(id_)].name
        stated = policy_document.column_of(here.document, name)
        change = (
            {"date_format": value} if value.startswith("%") else {"privacy_unit": value == "yes"}
        )
        text = _with(text, name, {**stated, **change})
    answered = tuple(dict.fromkeys((*here.workspace.answered, name)))
    here.studio.put_policy(here.workspace, text, answered=answered)


def _whose(here: "Here", text: str, value: str, form: Mapping[str, str]) -> str:
    names = list(here.document["columns"])
    place = form.get("column", "")
    unit = names[int(place)] if value == "column" and place.isdecimal() else None
    for name in names:
        stated = policy_document.column_of(here.document, name)
        if (name == unit) is not bool(stated.get("privacy_unit")):
            text = _with(text, name, {**stated, "privacy_unit": name == unit})
    return editing.with_line(text, "one_row_per_person", value=True if value == "one" else None)


def _with(text: str, name: str, stated: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in stated.items() if value is not False}
    if "privacy_unit" not in kept:
        for key in ("max_contributions", "exact_contributions"):
            kept.pop(key, None)
    return editing.with_key(text, "columns", name, kept["role"] if set(kept) == {"role"} else kept)


def reading_of(given: Mapping[str, str]) -> dict[str, Any]:
    """Read the reading options of a form; empty ones are detected."""
    stated: dict[str, Any] = {key: given.get(key, "") for key in CHOICES}
    stated |= {key: given.get(key, "").strip() for key in ("sheet", *ROWS)}
    marks = [mark.strip() for mark in given.get("missing", "").split(",")]
    stated["missing"] = list(dict.fromkeys(filter(None, marks)))
    if stated["delimiter"] == "tab":
        stated["delimiter"] = "\t"
    return {key: value for key, value in stated.items() if value}


DELIMITERS = {",": "comma", ";": "semicolon", "tab": "tab", "|": "bar", " ": "blank"}
ENCODINGS = {"utf-8": "UTF-8", "cp1252": "Windows-1252", "iso-8859-15": "ISO 8859-15",
             "utf-16": "UTF-16"}  # fmt: skip
CHOICES: dict[str, tuple[str, dict[str, str]]] = {
    "delimiter": ("Between two cells", DELIMITERS),
    "encoding": ("Character encoding", ENCODINGS),
    "decimal": ("Decimal mark", {".": "point, as in 1.5", ",": "comma, as in 1,5"}),
    "dates": ("Dates such as 03/04/2024", {"day": "day first", "month": "month first"}),
    "template": ("What is drafted", {"safe-harbor": "Safe Harbor fields (45 CFR 164.514(b)(2))"}),
}
"""What can be corrected about reading: a title, and words for each value."""
ROWS = {"header_row": "Rows that name the columns", "skip": "Rows that are not records"}
"""What can be stated of a sheet: rows by their numbers, such as 3-4."""
OF_TEXT = ("delimiter", "encoding")
"""What only files of text have."""


def reading_fields(here: "Here", *, text: bool) -> Iterator[dict[str, Any]]:
    """Make the fields of the reading options, with the detected values where none are stated."""
    seen = here.profile.reading if here.profile else {}
    stated = here.workspace.reading
    for key, (title, choices) in CHOICES.items():
        if key in OF_TEXT and not text:
            continue
        detected = "tab" if seen.get(key) == "\t" else str(seen.get(key, ""))
        chosen = "tab" if stated.get(key) == "\t" else str(stated.get(key, ""))
        words = choices.get(detected, detected.upper())
        yield {"key": key, "title": title, "value": chosen, "choices": choices,
               "found": words if detected and not chosen else ""}  # fmt: skip


def reading_words(here: "Here") -> list[tuple[str, str]]:
    """Say in a few words how the file was read."""
    seen = here.profile
    if seen is None:
        return []
    read = seen.reading
    pairs: list[tuple[str, str]] = []
    if "sheet" in read:
        pairs.append(("Sheet", visible(str(read["sheet"]))))
    pairs += [(title, str(read[key])) for key, title in ROWS.items() if key in read]
    if "delimiter" in read:
        mark = "tab" if read["delimiter"] == "\t" else str(read["delimiter"])
        pairs.append(("Between two cells", DELIMITERS.get(mark, mark)))
    if "encoding" in read:
        code = str(read["encoding"])
        pairs.append(("Character encoding", ENCODINGS.get(code, code.upper())))
    if "decimal" in read:
        pairs.append(("Decimal mark", "comma" if read["decimal"] == "," else "point"))
    forms = {
        policy_document.column_of(here.document, column.name).get("date_format", "yyyy-mm-dd")
        for column in seen.columns
        if column.type == "date" and column.name in here.document.get("columns", {})
    }
    if forms:
        pairs.append(("Dates", ", ".join(sorted(map(in_words, forms)))))
    column_marks = (mark for column in seen.columns for mark in column.marks)
    marks = dict.fromkeys((*read.get("missing", ()), *column_marks))
    empty = any(column.missing for column in seen.columns)
    if marks or empty:
        pairs.append(("Missing cells", ", ".join(map(visible, marks)) or "empty"))
    return pairs
