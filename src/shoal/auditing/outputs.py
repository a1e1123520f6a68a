"""What a program releases in a run, as numbers, and the scores that define events in it."""

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.auditing.programs import Output
from shoal.core import ReleaseForm
from shoal.core._arrays import Floats
from shoal.metrics import epsilon_lower_bound
from shoal.metrics.epsilon_lower_bound import Learner, Score

_FIRST, _MOST_ROWS, _MOST_COLUMNS = 16, 200, 30
"""Of a released table: cells that are figures by themselves, and the part that is compared."""


@dataclass(frozen=True, eq=False)
class Landed:
    """One release, as numbers.

    Attributes:
        cells: rows x columns, text by a checksum, a missing cell as -1; sorted where the
            release form has no order of its own.
        facts: figures by name.
        texts: checksums of what is compared as a whole.
    """

    cells: Floats
    facts: Mapping[str, float]
    texts: Mapping[str, int]


def file_scores(
    examples: Sequence[Landed], *, row: int = 0, form: ReleaseForm = ReleaseForm.SYNTHETIC
) -> dict[str, Score]:
    """Make the scores that define events: every figure, and the table's cells."""
    looks = {name: _fact(name) for landed in examples for name in landed.facts}
    looks["number of distinct rows"] = _cells(epsilon_lower_bound.distinct_rows)
    looks["size of the largest group"] = _cells(epsilon_lower_bound.largest_group)
    looks["low bits of the cells"] = _cells(epsilon_lower_bound.low_bits)
    if form is ReleaseForm.ROW_ALIGNED:
        looks["rows equal to the changed one"] = _cells(epsilon_lower_bound.alike(row))
    return looks


def file_learners(examples: Sequence[Landed]) -> dict[str, Learner]:
    """Make the scores that are fitted on the pilot runs."""
    texts = dict.fromkeys(name for landed in examples for name in landed.texts)
    return {
        **{name: epsilon_lower_bound.learned_patterns(_text(name)) for name in texts},
        "group sizes by rank": epsilon_lower_bound.learned_patterns(
            lambda outputs: _each(epsilon_lower_bound.sizes_by_rank, outputs)
        ),
        "learned projection": _project,
        "learned projection of all figures": _project_facts,
    }


def _project(before: Sequence[Landed], after: Sequence[Landed]) -> Score:
    shape = tuple(np.max([landed.cells.shape for landed in (*before, *after)], axis=0))
    pilots = (_stack(side, shape) for side in (before, after))
    project = epsilon_lower_bound.learned_projection(*pilots)
    return lambda outputs: project(_stack(outputs, shape))


def _project_facts(before: Sequence[Landed], after: Sequence[Landed]) -> Score:
    names = sorted({name for landed in (*before, *after) for name in landed.facts})

    def figures(outputs: Sequence[Landed]) -> Floats:
        return np.array([[landed.facts.get(name, -1.0) for name in names] for landed in outputs])

    project = epsilon_lower_bound.learned_projection(figures(before), figures(after))
    return lambda outputs: project(figures(outputs))


def land(output: Output, person: Mapping[str, Any]) -> Landed:
    """Turn what a program showed into numbers; of several tables, cells are those of the first.

    Args:
        output: of a run.
        person: the record that one of the tables has and the other has not.
    """
    facts: dict[str, float] = {
        "exit code": output.code,
        "length of what is printed": len(output.text),
    }
    facts |= {f"size of {name}": size for name, size in output.sizes.items()}
    texts: dict[str, Any] = {
        "what is printed": output.text,
        "what is printed, without digits": re.sub(r"[0-9.]+", "0", output.text),
        "names of the files": sorted(output.sizes),
    }
    for name, frame in output.frames.items():
        where = f" in {name}" if len(output.frames) > 1 else ""
        facts |= {f"number of rows{where}": frame.height, f"number of columns{where}": frame.width}
        texts[f"names and types of the columns{where}"] = str(frame.schema)
        texts[f"pattern of missing cells{where}"] = [series.null_count() for series in frame]
        for series in frame:
            at = f" of '{series.name}'{where}"
            facts |= {f"{what}{at}": x for what, x in _describe(series, person).items()}
            texts[f"set of values{at}"] = sorted(series.unique().cast(pl.String).fill_null("\0"))
    return Landed(
        cells=_cells_of(next(iter(output.frames.values()), pl.DataFrame())),
        facts=facts,
        texts={name: checksum(text) for name, text in texts.items()},
    )


def _describe(series: pl.Series, person: Mapping[str, Any]) -> dict[str, float]:
    """Return figures of a released column, and the cells that are the person's."""
    figures = {"number of values": float(series.n_unique())}
    cell = person.get(series.name)
    if series.dtype.is_numeric():
        numbers = series.cast(pl.Float64).fill_nan(None)
        for what, figure in (
            ("smallest", numbers.min()), ("largest", numbers.max()), ("sum", numbers.sum()),
        ):  # fmt: skip
            figures[what] = -1.0 if figure is None else float(cast("float", figure))
        figures |= {f"row {row + 1}": float(x) for row, x in
                    enumerate(numbers.head(_FIRST).fill_null(-1.0))}  # fmt: skip
        digits = epsilon_lower_bound.low_bits(numbers.drop_nulls().to_numpy())
        figures["lowest digit"] = float(digits.min(initial=64.0))
    if cell is not None:
        figures["cells equal to the person's"] = float((series.cast(pl.String) == str(cell)).sum())
    return figures


def _cells_of(frame: pl.DataFrame) -> Floats:
    """Return the first cells of a table as numbers, its rows sorted."""
    columns = [to_numbers(series) for series in frame.iter_columns()][:_MOST_COLUMNS]
    if not columns or not frame.height:
        return np.empty((0, 0))
    cells = np.column_stack(columns)
    return np.asarray(cells[np.lexsort(cells.T[::-1])][:_MOST_ROWS], dtype=np.float64)


def to_numbers(series: pl.Series) -> Floats:
    """Convert a column to numbers: texts by a checksum, missing cells to -1."""
    with suppress(pl.exceptions.InvalidOperationError):
        return series.cast(pl.Float64).fill_null(-1.0).to_numpy()
    texts = series.cast(pl.String).fill_null("").to_list()
    return np.array([float(zlib.crc32(text.encode())) for text in texts])


def checksum(value: Any) -> int:
    """Return a checksum of plain values."""
    return zlib.crc32(json.dumps(value, sort_keys=True).encode())


def _fact(name: str) -> Score:
    return lambda outputs: np.array([landed.facts.get(name, -1.0) for landed in outputs])


def _text(name: str) -> Any:
    return lambda outputs: np.array(
        [output.texts.get(name, -1) for output in outputs], dtype=np.int64
    )


def _cells(score: Score) -> Score:
    return lambda outputs: _each(score, outputs)


def _each(score: Callable[[Floats], NDArray[Any]], outputs: Sequence[Landed]) -> NDArray[Any]:
    """Score the cells of each run by themselves, whatever shapes those of others have."""
    return np.array([score(o.cells[None])[0] if o.cells.size else -1 for o in outputs])


def _stack(outputs: Sequence[Landed], shape: tuple[int, ...]) -> Floats:
    """Stack all tables in one array; cut or fill up those of another shape with -2."""
    rows, columns = shape
    stack = np.full((len(outputs), rows, columns), -2.0)
    for place, output in enumerate(outputs):
        cells = output.cells[:rows, :columns]
        stack[place, : cells.shape[0], : cells.shape[1]] = cells
    return stack
