"""The hierarchy of a column on screen 2: uploaded, or built on the page.

The builders are those of `shoal hierarchy`. Each hierarchy becomes a file of its own in the
workspace, so undo finds the one before. What is made of values that were read off the table is
marked, as copied categories are.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import hierarchy
from shoal.core import Hierarchy
from shoal.errors import InputError, count_noun
from shoal.hierarchy.files import csv_rows, read_day, read_integers, read_parents
from shoal.studio import profile
from shoal.studio.pages.fields import known

if TYPE_CHECKING:
    from shoal.studio.pages.common import Here

SHOWN = 4
"""Groups of a level that the page names."""
BUILDERS: dict[str, dict[str, Any]] = {
    "intervals": {
        "title": "Intervals of equal width",
        "kinds": ("numeric", "nominal"),
        "fields": (
            ("low", "Smallest possible number", "0", ()),
            ("high", "Largest possible number", "110", ()),
            ("widths", "Widths, each a multiple of the one before", "5, 10, 20", ()),
        ),
    },
    "dates": {
        "title": "Weeks, months, years",
        "kinds": ("date",),
        "fields": (
            ("first", "First possible day", "1920-01-01", ()),
            ("last", "Last possible day", "2025-12-31", ()),
            ("levels", "Levels", "", (
                ("month, year, decade", "months, years, decades"),
                ("month, quarter, year", "months, quarters, years"),
                ("year, decade", "years, decades"),
                ("week", "weeks"),
            )),
        ),
    },
    "prefixes": {
        "title": "First characters of a code",
        "kinds": ("nominal",),
        "fields": (("lengths", "Characters that stay, level by level", "3, 2", ()),),
    },
    "codes": {
        "title": "Published classification",
        "kinds": ("nominal",),
        "fields": (("scheme", "Classification", "", (
            ("icd-10", "ICD-10 (diseases)"), ("isco", "ISCO (occupations)"),
            ("nace", "NACE (industries)"))),),
    },
    "masked": {
        "title": "Mask characters by stars",
        "kinds": ("nominal",),
        "fields": (
            ("side", "From", "", (("right", "the right"), ("left", "the left"))),
            ("by", "Characters that each level masks", "1", ()),
        ),
    },
    "ordered": {
        "title": "Join neighbours of ordered categories",
        "kinds": ("ordinal",),
        "fields": (("join", "Neighbours that each level joins", "2", ()),),
    },
    "file": {
        "title": "From a CSV file",
        "kinds": ("numeric", "ordinal", "nominal", "date"),
        "file": True,
        "fields": (("rows", "Each row holds", "", (
            ("paths", "a value, its group, the group of that, and so on"),
            ("parents", "a value or a group, and what it belongs to"))),),
    },
}  # fmt: skip
"""Ways to make a hierarchy: for which kinds of columns, and what they ask for."""


def builders(kind: str) -> list[dict[str, Any]]:
    """List the builders that suit a kind of column."""
    return [{"how": how, "file": False, **b} for how, b in BUILDERS.items() if kind in b["kinds"]]


def tree_of(here: "Here", stated: Mapping[str, Any]) -> dict[str, Any] | None:
    """Describe a column's hierarchy: its size, and the first groups of each level."""
    name = stated.get("hierarchy")
    if not isinstance(name, str):
        return None
    path = here.studio.store.files(here.workspace.id) / Path(name).name
    try:
        return _describe(path, path.stat().st_mtime_ns)
    except (InputError, OSError):
        return None


@cache
def _describe(path: Path, _changed: int) -> dict[str, Any]:
    tree = hierarchy.read(path)
    levels = []
    for level in range(1, len(tree.paths[0])):
        groups = list(dict.fromkeys(row[level] for row in tree.paths))
        more = f" and {len(groups) - SHOWN:,} more" if len(groups) > SHOWN else ""
        levels.append(
            {"size": count_noun(len(groups), "group"), "names": ", ".join(groups[:SHOWN]) + more}
        )
    return {"size": count_noun(len(tree.paths), "value"), "levels": levels}


def make_hierarchy(
    here: "Here", name: str, stated: Mapping[str, Any], given: Mapping[str, Any]
) -> Hierarchy:
    """Make the hierarchy that a form requests.

    Raises: InputError: the input is invalid, or the file is not a hierarchy.
    """
    how = str(given.get("how", ""))
    if how not in BUILDERS:
        raise InputError("Choose how the hierarchy is to be made.")
    if how == "file":
        return _from_file(given)
    text = {key: str(given.get(key, "")).strip() for key, *_ in BUILDERS[how]["fields"]}
    if empty := [title for key, title, *_ in BUILDERS[how]["fields"] if not text[key]]:
        raise InputError(f"Fill in: {empty[0]}.")
    if how == "intervals":
        step = str(stated.get("step", 1))
        return hierarchy.intervals(
            text["low"], text["high"], _split_list(text["widths"]), step=step
        )
    if how == "dates":
        return hierarchy.dates(
            read_day(text["first"]), read_day(text["last"]), _split_list(text["levels"])
        )
    if how == "ordered":
        return hierarchy.join_ordered(list(map(str, known(stated, "categories"))),
                                 join=read_integers([text["join"]])[0],
                                 observed=bool(stated.get("observed")))  # fmt: skip
    values, observed = _values(here, name, stated)
    build: Mapping[str, Callable[[], Hierarchy]] = {
        "prefixes": lambda: hierarchy.prefixes(
            values, read_integers(_split_list(text["lengths"])), observed=observed
        ),
        "codes": lambda: hierarchy.codes(values, text["scheme"], observed=observed),
        "masked": lambda: hierarchy.mask_codes(
            values, side=text["side"], by=read_integers([text["by"]])[0], observed=observed
        ),
    }
    return build[how]()


def put(here: "Here", name: str, tree: Hierarchy) -> dict[str, Any]:
    """Write a hierarchy into the workspace; return the keys for the column's line."""
    folder = here.studio.store.files(here.workspace.id)
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "column"
    place = next(n for n in range(1, 10_000) if not (folder / f"{stem}-{n}.csv").exists())
    path = folder / f"{stem}-{place}.csv"
    keys = hierarchy.write(tree, path)
    path.chmod(0o600)
    return keys


def _values(here: "Here", name: str, stated: Mapping[str, Any]) -> tuple[list[str], bool]:
    """List all values that can occur: the stated ones, or else those observed, marked as such."""
    if known(stated, "categories"):
        return list(map(str, known(stated, "categories"))), bool(stated.get("observed"))
    path = here.studio.path(here.workspace, here.workspace.data)
    values = profile.values_of(path, here.workspace.reading, name) if path else []
    if not values:
        raise InputError(
            "The column has no values to build a hierarchy from, or too many. State its "
            "categories, or take a file."
        )
    return values, True


def _from_file(given: Mapping[str, Any]) -> Hierarchy:
    content = given.get("file")
    if not isinstance(content, bytes) or not content:
        raise InputError("Choose the file with the hierarchy.")
    if given.get("rows") == "parents":
        parents = read_parents(content, "The file")
        tops = set(parents.values()) - set(parents)
        return hierarchy.mapping(parents, root="*" if len(tops) > 1 else None)
    tree = Hierarchy(tuple(map(tuple, csv_rows(content, "The file"))))
    tree.levels()
    return tree


def _split_list(text: str) -> list[str]:
    return [part for part in re.split(r"[\s,;]+", text) if part]
