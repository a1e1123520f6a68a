"""A first look at an uploaded file: types, missing cells, uniqueness, guesses and warnings.

It is made once, by a job, and kept beside the data in the temporary folder, because it holds the
cells of a few rows for the page. Nothing else that the studio keeps holds a cell.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from shoal import io
from shoal.core import Progress, Role, silent
from shoal.io.validate import is_plain
from shoal.policy.draft import draft
from shoal.policy.recognise import Guess, recognise
from shoal.studio.policy_document import without_observed
from shoal.studio.private_files import read_json, write_json

PREVIEW = 8
"""Rows that are shown."""
LONGEST = 60
"""Characters of a cell that are shown."""
FEW = 100
"""Rows below which a table is small."""


@dataclass(frozen=True)
class ColumnProfile:
    """One column.

    Attributes:
        name: as in the file; any text.
        label: what the file says about it, or "".
        type: in words: number, text, date, truth value or other.
        missing: cells that are missing.
        distinct: different values among the present ones.
        unique: share of the rows whose value occurs once, from 0 to 1.
        role: guessed.
        kind: guessed.
        reason: of the guess, as part of a sentence.
        values: the values that occur, where they are few: a help for stating categories. They are
            cells: show them on the page, and never keep them.
        warnings: sentences.
    """

    name: str
    label: str
    type: str
    missing: int
    distinct: int
    unique: float
    role: str
    kind: str
    reason: str
    values: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataProfile:
    """A table at first sight.

    Attributes:
        rows: how many.
        columns: one by one, in the order of the file.
        preview: the first rows as texts; none for a missing cell. Show them on the page only.
        found: how the file was written, in words, where that was found out.
        warnings: sentences about the whole table.
    """

    rows: int
    columns: tuple[ColumnProfile, ...]
    preview: tuple[tuple[str | None, ...], ...] = field(repr=False)
    found: str = ""
    warnings: tuple[str, ...] = ()


def write(
    path: Path, *, label: str, limit: int | None = None, progress: Progress = silent
) -> dict[str, Any]:
    """Look at a file, write what was seen beside it, and draft a policy.

    Categories are asked for in the studio, and not copied: the draft is that of `shoal init`
    without what was only observed. For the limit see `shoal.io.files.read`.

    Returns:
        For the server: the drafted policy as TOML text, and the names of the columns.
    """
    raw = io.read(path, limit=limit)
    progress("reading the columns", 0, 1)
    drafted = draft(raw, source=label)
    seen = profile(raw, drafted.guesses)
    write_json(_beside(path), asdict(seen), durable=False)
    return {
        "policy": without_observed(drafted.text),
        "columns": raw.frame.columns,
        "rows": raw.frame.height,
    }


def read(path: Path) -> DataProfile | None:
    """What was seen of a file, or none where nobody has looked yet."""
    content = read_json(_beside(path))
    return None if content is None else TypeAdapter(DataProfile).validate_python(content)


def profile(raw: io.Raw, guesses: Mapping[str, Guess] | None = None) -> DataProfile:
    """See what is in a table."""
    frame = raw.frame
    guesses = recognise(raw) if guesses is None else guesses
    columns = tuple(_column(series, guesses[series.name], raw.column_labels) for series in frame)
    return DataProfile(
        rows=frame.height,
        columns=columns,
        preview=tuple(tuple(map(_shown, row)) for row in frame.head(PREVIEW).iter_rows()),
        found=raw.found,
        warnings=tuple(_warnings(frame, columns)),
    )


def _column(series: pl.Series, made: Guess, labels: Mapping[str, str]) -> ColumnProfile:
    plain = is_plain(series.dtype)
    present = series.drop_nulls()
    distinct = present.n_unique() if plain else 0
    unique = int(present.is_unique().sum()) / max(series.len(), 1) if plain else 0.0
    warnings = []
    if not plain:
        warnings.append("The column's cells are not single values; only the role identifier fits.")
    if series.len() and series.null_count() > series.len() / 2:
        warnings.append("More than half of the column's cells are missing.")
    if plain and distinct == 1 and not series.null_count():
        warnings.append("The column has only one value.")
    if plain and made.role is not Role.IDENTIFIER and unique > 0.5:
        warnings.append("Most of the column's values occur once: it may single people out.")
    return ColumnProfile(
        name=series.name,
        label=labels.get(series.name, ""),
        type=_type(series.dtype),
        missing=series.null_count(),
        distinct=distinct,
        unique=unique,
        role=made.role.value,
        kind=made.kind.value,
        reason=made.reason,
        values=made.categories,
        warnings=tuple(warnings),
    )


def _type(dtype: pl.DataType) -> str:
    if dtype == pl.Boolean:
        return "truth value"
    if dtype.is_numeric():
        return "number"
    if dtype.is_temporal():
        return "date"
    return "text" if is_plain(dtype) else "other"


def _warnings(frame: pl.DataFrame, columns: tuple[ColumnProfile, ...]) -> Iterator[str]:
    if frame.height < FEW:
        yield f"The table has {frame.height:,} rows; small tables lose much when protected."
    roles = {column.role for column in columns}
    if Role.QUASI_IDENTIFIER.value not in roles:
        yield "No column looks like something that others know; check the roles."
    if Role.CONFIDENTIAL.value not in roles:
        yield "No column looks confidential; check the roles."
    if all(is_plain(series.dtype) for series in frame):
        repeated = frame.height - frame.n_unique()
        if repeated:
            yield f"{repeated:,} rows repeat another one; expected one row per person."


def _shown(cell: Any) -> str | None:
    if cell is None:
        return None
    text = str(cell)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "\u2026"


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".profile")
