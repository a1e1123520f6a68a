"""Edit single lines of a policy's TOML, leaving the rest, comments included, unchanged.

The text is the one truth of the policy in the studio: a field of a page rewrites its line, and a
line that is typed changes its field. A text is cut into statements, each a header, a key with its
value, or a line without either. What a steward wrote in another layout, such as a header for each
column, is folded into one line when its field is changed.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from shoal.errors import ShoalError
from shoal.io.text_files import as_toml, bare

WIDEST = 60
"""Lines that one value may span before it is given up as unreadable."""


@dataclass(frozen=True)
class Statement:
    """A statement of a TOML text.

    Attributes:
        start: its first line, from 0.
        end: the line behind its last.
        table: path of the table that it stands in, or that it opens.
        key: path of the key that it sets, within the table; empty for headers and blank lines.
        header: it opens a table.
    """

    start: int
    end: int
    table: tuple[str, ...]
    key: tuple[str, ...] = ()
    header: bool = False


def statements(text: str) -> list[Statement]:
    r"""Split a TOML text into statements; an unreadable one becomes a line without a key.

    >>> [s.key for s in statements("a = 1\n[t]\nb.c = [\n 2]")]
    [('a',), (), ('b', 'c')]
    """
    return list(_statements(text.split("\n")))


def _statements(lines: list[str]) -> Iterator[Statement]:
    table: tuple[str, ...] = ()
    place = 0
    while place < len(lines):
        stripped = lines[place].strip()
        end, header = place + 1, False
        key: tuple[str, ...] = ()
        if stripped.startswith("["):
            parsed = _parse(lines[place])
            if parsed is not None:
                table, header = _path(parsed), True
        elif stripped and not stripped.startswith("#"):
            for end in range(place + 1, min(place + WIDEST, len(lines)) + 1):
                parsed = _parse("\n".join(lines[place:end]))
                if parsed is not None:
                    key = _path(parsed)
                    break
            else:
                end = place + 1
        yield Statement(place, end, table, key, header)
        place = end


def _parse(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except ValueError:  # also of a date that no calendar has
        return None


def _path(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the dotted path of a parsed statement."""
    path: list[str] = []
    value: Any = found
    while isinstance(value, Mapping) and len(value) == 1 and len(path) < 2:
        name = next(iter(value))
        path.append(name)
        value = value[name]
        if isinstance(value, list):
            break
    return tuple(path)


def with_key(text: str, table: str, key: str, value: Any) -> str:
    """Set a key of a table, or remove it with None; add the table if necessary."""
    lines = text.split("\n")
    parsed = statements(text)
    matching = [s for s in parsed if _sets(s, table, key)]
    new = [] if value is None else [f"{bare(key)} = {as_toml(value)}"]
    if matching:
        aligned = lines[matching[0].start].partition("=")[0]
        if new and matching[0].table == (table,) and aligned.strip() == bare(key):
            new = [f"{aligned}= {as_toml(value)}"]
        kept = _comment(lines, matching[0]) if new and len(matching) == 1 else ""
        place = matching[0].start
        for statement in reversed(matching):
            del lines[statement.start : statement.end]
        # A header for the column alone is folded into the line, so it must stand in its table.
        if all(s.table == (table,) or (s.table, s.key) == ((), (table, key)) for s in matching):
            if new and matching[0].table == ():
                new = [f"{bare(table)}.{new[0]}"]
            lines[place:place] = [line + kept for line in new]
            return "\n".join(lines)
        return with_key("\n".join(lines), table, key, value)
    if not new:
        return text
    header = next((s for s in parsed if s.header and s.table == (table,)), None)
    if header is not None:
        inside = [s for s in parsed if s.table == (table,) and (s.key or s.header)]
        lines[inside[-1].end : inside[-1].end] = new
        return "\n".join(lines)
    return text.rstrip("\n") + "\n\n" + "\n".join([f"[{bare(table)}]", *new]) + "\n"


def with_keys(text: str, table: str, values: Mapping[str, Any]) -> str:
    """Set many keys of a table, finding the lines of single keys in one pass."""
    lines = text.split("\n")
    by_key: dict[str, list[Statement]] = {}
    for statement in statements(text):
        path = (*statement.table, *statement.key)
        if path[:1] == (table,) and len(path) > 1:
            by_key.setdefault(path[1], []).append(statement)
    plain = {
        key: m[0]
        for key, m in by_key.items()
        if key in values and len(m) == 1 and m[0].table == (table,) and len(m[0].key) == 1
    }
    for key, setting in sorted(plain.items(), key=lambda one: -one[1].start):
        before = lines[setting.start].partition("=")[0]
        name = before if before.strip() == bare(key) else f"{bare(key)} "
        new = f"{name}= {as_toml(values[key])}{_comment(lines, setting)}"
        lines[setting.start : setting.end] = [new]
    text = "\n".join(lines)
    for key, value in values.items():
        if key not in plain:
            text = with_key(text, table, key, value)
    return text


def with_line(text: str, key: str, *, value: Any) -> str:
    r"""Set a top-level key, or remove it with None; a new one follows the version.

    >>> with_line("version = 1\n[t]\na = 1", "b", value=True)
    'version = 1\nb = true\n[t]\na = 1'
    """
    lines = text.split("\n")
    matching = [s for s in statements(text) if (s.table, s.key) == ((), (key,))]
    for statement in reversed(matching):
        del lines[statement.start : statement.end]
    if value is not None:
        left = statements("\n".join(lines))
        behind = next((s.end for s in left if (s.table, s.key) == ((), ("version",))), 0)
        lines.insert(matching[0].start if matching else behind, f"{bare(key)} = {as_toml(value)}")
    return "\n".join(lines)


def with_table(text: str, table: str, values: Mapping[str, Any]) -> str:
    """Give a table exactly these keys; unchanged ones keep their lines."""
    for key in tomllib.loads(text).get(table, {}):
        if key not in values:
            text = with_key(text, table, key, None)
    now = tomllib.loads(text, parse_float=Decimal).get(table, {})
    for key, value in values.items():
        same = json.dumps(now.get(key), default=str) == json.dumps(value, default=str)
        if value is not None and not same:
            text = with_key(text, table, key, value)
    return text


def line_of(text: str, error: ShoalError) -> int | None:
    """The line, from 1, that an error of the policy is about, where it is known.

    Errors carry a place such as `columns`, `age`, `bounds`; those of the TOML itself end in a line.
    """
    marked = str(error).rpartition("(at line ")[2].partition(",")[0]
    if marked.isdecimal():
        return int(marked)
    best, length = None, 0
    for statement in statements(text):
        path = (*statement.table, *statement.key)
        if len(path) > length and error.field[: len(path)] == path:
            best, length = statement.start + 1, len(path)
    return best


def _sets(statement: Statement, table: str, key: str) -> bool:
    """Whether a statement belongs to the value of a key of a table."""
    path = (*statement.table, *statement.key)
    return path[:2] == (table, key) and (statement.header or bool(statement.key))


def _comment(lines: list[str], statement: Statement) -> str:
    """Return the comment after a one-line statement, with its leading spaces."""
    if statement.end - statement.start != 1:
        return ""
    line = lines[statement.start]
    for place, mark in enumerate(line):
        if mark == "#" and _parse(line[:place].rstrip() + "\n") is not None:
            return "  " + line[place:].rstrip()
    return ""
