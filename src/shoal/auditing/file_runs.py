"""Run the whole pipeline on a file many times, and read the public folder.

The slow level of the audit: the pipeline may leak what the method does not, through the number of
rows, missing cells, types, the manifest or the size of a file. The confidential folder is not read,
because it is not published.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import polars as pl

from shoal.core import FileReading, Noise, ReleaseForm
from shoal.core._arrays import Floats
from shoal.io.dates import ISO
from shoal.metrics import epsilon_lower_bound
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.pipeline.planning import Plan
from shoal.publish import protect_file, public_folder

_FIRST = 16
"""How many rows of a table beside the release are examined."""


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


class Releases:
    """Repeated releases of one table by `protect_file.protect`, each in a temporary folder."""

    def __init__(
        self, planned: Plan, table: pl.DataFrame, noise: Noise | None, folder: Path
    ) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._data = folder / "people.csv"
        table.write_csv(self._data)
        # An audit of invented people must not be charged to the population's budget, and has no
        # audience. Its file is written here, so the steward's reading options do not apply.
        written = FileReading(delimiter=",", decimal=".", date_format=ISO)
        self._policy = replace(planned.policy, budget=None, audience=None, reading=written)
        self._form = planned.setting.release_form
        self._noise = noise

    def __call__(self, runs: int) -> list[Landed]:
        """Return `runs` releases."""
        return [self._once() for _ in range(runs)]

    def _once(self) -> Landed:
        out = self._folder / "release"
        keep = self._form is ReleaseForm.ROW_ALIGNED
        done = protect_file.protect(
            self._data, self._policy, out, output=OutputOptions("csv", keep_order=keep),
            evaluation=EvaluationOptions(evaluate=False), noise=self._noise,
        )  # fmt: skip
        landed = _read(done.folder, self._form)
        for folder in (done.folder, done.internal):
            rmtree(folder)
        return landed


def scores(example: Landed, *, row: int, form: ReleaseForm) -> dict[str, epsilon_lower_bound.Score]:
    """Make the scores that define events: every figure, and the table's cells."""
    looks = {name: _fact(name) for name in example.facts}
    looks["number of distinct rows"] = _cells(epsilon_lower_bound.distinct_rows)
    looks["size of the largest group"] = _cells(epsilon_lower_bound.largest_group)
    looks["low bits of the cells"] = _cells(epsilon_lower_bound.low_bits)
    if form is ReleaseForm.ROW_ALIGNED:
        looks["rows equal to the changed one"] = _cells(epsilon_lower_bound.alike(row))
    return looks


def learners(example: Landed) -> dict[str, epsilon_lower_bound.Learner]:
    """Make the scores that are fitted on the pilot runs."""
    return {
        **{name: epsilon_lower_bound.learned_patterns(_text(name)) for name in example.texts},
        "group sizes by rank": epsilon_lower_bound.learned_patterns(
            lambda outputs: epsilon_lower_bound.sizes_by_rank(_stack(outputs))
        ),
        "learned projection": _project,
    }


def _project(before: Sequence[Landed], after: Sequence[Landed]) -> epsilon_lower_bound.Score:
    both = _stack([*before, *after])
    project = epsilon_lower_bound.learned_projection(both[: len(before)], both[len(before) :])
    return lambda outputs: project(_stack(outputs, both.shape[1:]))


def _read(folder: Path, form: ReleaseForm) -> Landed:
    frame = pl.read_csv(folder / "release.csv", infer_schema_length=None)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest.pop("created")  # the time of day, and what follows from the cells
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    for file in manifest["files"].values():
        file.pop("sha256")
        file.pop("bytes")
    gaps = [series.null_count() for series in frame]
    columns = [_numbers(series) for series in frame]
    cells = np.column_stack(columns) if columns else np.empty((frame.height, 0))
    if form is ReleaseForm.COLUMN_SHUFFLED:
        cells = np.sort(cells, axis=0)
    elif form is not ReleaseForm.ROW_ALIGNED:
        cells = cells[np.lexsort(cells.T[::-1])] if form is not ReleaseForm.CANONICAL else cells
    return Landed(
        cells=cells,
        facts={
            "number of rows": frame.height,
            "number of columns": frame.width,
            "number of missing cells": sum(gaps),
            **{f"size of {name}": size for name, size in sizes.items()},
            **_read_figures(folder),
        },
        texts={
            "names of the files": _checksum(list(sizes)),
            "names and types of the columns": _checksum([str(frame.schema)]),
            "pattern of missing cells": _checksum(gaps),
            "manifest": _checksum(manifest),
        },
    )


def _read_figures(folder: Path) -> dict[str, float]:
    """Read the first numbers of the extra tables, each as a figure."""
    return {
        f"{column} {row + 1} of {name}": float(value)
        for name in public_folder.EXTRAS
        if (folder / name).exists()
        for column, series in pl.read_parquet(folder / name).to_dict().items()
        if series.dtype.is_numeric()
        for row, value in enumerate(series.head(_FIRST))
    }


def _numbers(series: pl.Series) -> Floats:
    with suppress(pl.exceptions.InvalidOperationError):
        return series.cast(pl.Float64).fill_null(-1.0).to_numpy()
    texts = series.cast(pl.String).fill_null("").to_list()
    return np.array([float(zlib.crc32(text.encode())) for text in texts])


def _checksum(value: Any) -> int:
    return zlib.crc32(json.dumps(value, sort_keys=True).encode())


def _fact(name: str) -> epsilon_lower_bound.Score:
    return lambda outputs: np.array([landed.facts.get(name, -1.0) for landed in outputs])


def _text(name: str) -> Any:
    return lambda outputs: np.array([output.texts[name] for output in outputs], dtype=np.int64)


def _cells(score: epsilon_lower_bound.Score) -> epsilon_lower_bound.Score:
    return lambda outputs: score(_stack(outputs))


def _stack(outputs: Sequence[Landed], shape: tuple[int, ...] | None = None) -> Floats:
    """Stack all tables in one array; cut or fill up those of another shape with -2."""
    rows, columns = shape or [max(o.cells.shape[side] for o in outputs) for side in (0, 1)]
    stack = np.full((len(outputs), rows, columns), -2.0)
    for place, output in enumerate(outputs):
        cells = output.cells[:rows, :columns]
        stack[place, : cells.shape[0], : cells.shape[1]] = cells
    return stack
