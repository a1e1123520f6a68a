"""Read hierarchies from files and mappings, and write them."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from shoal.core import Hierarchy
from shoal.errors import InputError
from shoal.io import text_files
from shoal.io.folders import write_text


def read(path: str | Path) -> Hierarchy:
    """Read a hierarchy as ARX writes it: one row per leaf, leaf first, root last.

    Cells are separated by commas, or by semicolons if the first line has one.

    Raises:
        InputError: it is not CSV in UTF-8, not a tree, or its levels are not nested.
    """
    rows = csv_rows(text_files.read_bytes(Path(path), f"'{path}'"), f"'{path}'")
    tree = Hierarchy(tuple(map(tuple, rows)))
    tree.levels()
    return tree


def mapping(
    parents: Mapping[str, str], *, root: str | None = None, observed: bool = False
) -> Hierarchy:
    """Build a hierarchy from the parent of each value.

    A value that is nobody's parent is a leaf. A short branch is padded with its leaf, so all rows
    are equally long.

    Args:
        parents: from each node to the one above it.
        root: put above the uppermost nodes if there are several.
        observed: the values were read off the data.

    Raises:
        InputError: there is a cycle, or there are several roots and `root` is not given.

    >>> mapping({"Lyon": "South", "Nice": "South", "South": "all", "Lille": "all"}).paths[-1]
    ('Lille', 'Lille', 'all')
    """
    inner = set(parents.values())
    leaves = [node for node in parents if node not in inner]
    paths = []
    for leaf in leaves:
        path = [leaf]
        while path[-1] in parents:
            path.append(parents[path[-1]])
            if len(path) > len(parents) + 1:
                break
        paths.append(path)
    if not leaves or any(len(path) > len(parents) + 1 for path in paths):
        raise InputError("A hierarchy must be a tree; this mapping goes round in a circle.")
    if root is not None:
        paths = [path if path[-1] == root else [*path, root] for path in paths]
    longest = max(map(len, paths))
    padded = [(path[0],) * (longest - len(path)) + tuple(path) for path in paths]
    return Hierarchy(tuple(padded), observed=observed)


def write(hierarchy: Hierarchy, path: str | Path, *, force: bool = False) -> dict[str, Any]:
    """Write a hierarchy as the CSV file that a policy names.

    Args:
        hierarchy: its levels must be nested.
        path: where to write it.
        force: replace an existing file.

    Returns:
        The keys that the column's line in the policy takes: the file's name, and `observed` where
        the hierarchy was read off the data.
    """
    hierarchy.levels()
    write_text(Path(path), csv_text(hierarchy.paths), force=force)
    keys: dict[str, Any] = {"hierarchy": Path(path).name}
    return {**keys, "observed": True} if hierarchy.observed else keys


def csv_rows(raw: bytes, what: str) -> list[list[str]]:
    """Read rows of cells: stripped, without empty rows, accents composed (NFC)."""
    try:
        text = raw.decode("utf-8-sig")
        delimiter = ";" if ";" in text.partition("\n")[0] else ","
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except (ValueError, csv.Error):
        raise InputError(f"{what} must be CSV in UTF-8.") from None
    texts = [[unicodedata.normalize("NFC", cell.strip()) for cell in row] for row in rows]
    return [cells for cells in texts if any(cells)]


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """Write rows of cells as `csv_rows` reads them."""
    held = io.StringIO(newline="")
    # The reader takes a semicolon in the first line for the separator.
    mark = ";" if any(";" in cell for cell in rows[0]) else ","
    csv.writer(held, delimiter=mark, lineterminator="\n").writerows(rows)
    return held.getvalue()


def read_parents(raw: bytes, what: str) -> dict[str, str]:
    """Read the parent of each value: two cells per row."""
    rows, parents = csv_rows(raw, what), dict[str, str]()
    if any(len(row) != 2 for row in rows):
        raise InputError(f"{what}: expected two cells per row, a value and its parent.")
    for child, parent in rows:
        if parents.setdefault(child, parent) != parent:
            raise InputError(f"A hierarchy must be a tree; '{child}' has two parents.")
    return parents


def read_integers(texts: Iterable[str]) -> list[int]:
    """Read whole numbers as somebody typed them."""
    numbers = list(texts)
    for text in numbers:
        if not text.isdecimal():
            raise InputError(f"Expected a whole number, found '{text}'.")
    return list(map(int, numbers))


def read_day(text: str) -> date:
    """Read a day as somebody typed it."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"Expected a day such as 2020-01-31, found '{text}'.") from None
