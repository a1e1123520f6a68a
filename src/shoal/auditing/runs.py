"""Run a method, or the whole pipeline, many times: the two levels of the audit.

The fast level runs the method as it is. What surrounds it is arranged for speed: columns are plain
arrays, and noise is drawn ahead for many runs at once. A method that asks for the same noise on
the same numbers in every run gets, in each, draws that no other run got, so the distribution is
that of separate runs.

The slow level of the audit: the pipeline may leak what the method does not, through the number of
rows, missing cells, types, the manifest or the size of a file. The confidential folder is not read,
because it is not published.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.auditing.outputs import Landed, checksum, to_numbers
from shoal.core import (
    DifferentialPrivacy,
    FileReading,
    Kind,
    Noise,
    ReleaseForm,
    SpatialDecomposition,
)
from shoal.core._arrays import Bools, Floats, Ints
from shoal.io.dates import ISO
from shoal.io.table import Table
from shoal.methods import Tools
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.pipeline.planning import Plan, with_rows
from shoal.publish import protect_file, public_folder

_AHEAD = 200_000
_CORNERS = 4


@dataclass(frozen=True, eq=False)
class Arrays(Table):
    """A table whose columns are arrays: numbers, days or positions in the categories."""

    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, table: Table) -> "Arrays":
        """Convert the columns that have a kind to arrays; leave others in the frame."""
        columns: dict[str, NDArray[Any]] = {}
        for column in table.schema.columns:
            if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
                columns[column.name] = table.codes(column.name)
            elif column.kind is not None:
                columns[column.name] = table.numbers(column.name)
        return cls(table.frame, table.schema, table.dtypes, columns)

    def codes(self, name: str) -> Ints:
        """Return an ordinal or nominal column as indices of its categories."""
        return self.columns[name]

    def numbers(self, name: str) -> Floats:
        """Return a numeric or date column as floats."""
        return self.columns[name]

    def take(self, order: Ints) -> "Arrays":
        """Select or reorder rows; the frame, which nobody reads here, stays."""
        columns = {name: cells[order] for name, cells in self.columns.items()}
        return replace(self, columns=columns)

    def with_codes(self, name: str, codes: Ints) -> "Arrays":
        """Replace an ordinal or nominal column."""
        return replace(self, columns={**self.columns, name: codes})

    def with_numbers(self, name: str, values: Floats, *, integers: bool = False) -> "Arrays":
        """Replace a numeric or date column; dates are rounded to the day."""
        if integers or self.schema[name].kind is Kind.DATE:
            values = np.rint(values)
        return replace(self, columns={**self.columns, name: values})


class Ahead:
    """Noise that is drawn in advance for many runs.

    Each run calls `begin`. The first run's i-th request is drawn once for each remaining run; a
    later run whose i-th request is exactly the same takes the next of these draws. A different
    request is drawn separately.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._pools: list[_Pool] = []
        self._place, self._left = 0, 1

    def begin(self, left: int) -> None:
        """Start a run; `left` runs remain, this one included."""
        self._place, self._left = 0, left

    def discrete_laplace(self, values: Ints, *, scale: Fraction) -> Ints:
        """Add two-sided geometric noise."""
        draw = partial(self._noise.discrete_laplace, scale=scale)
        return self._next(values, (scale,), draw)

    def exceeds(self, values: Ints, *, threshold: int, scale: Fraction) -> Bools:
        """Decide whether values exceed a threshold after that noise."""
        return np.asarray(self.discrete_laplace(values, scale=scale) > threshold)

    def select(self, scores: Ints, *, sensitivity: Fraction, epsilon: Fraction) -> int:
        """Choose an index by permute-and-flip."""
        rows = scores[None, :]
        return int(self.select_many(rows, sensitivity=sensitivity, epsilon=epsilon)[0])

    def select_many(self, scores: Ints, *, sensitivity: Fraction, epsilon: Fraction) -> Ints:
        """Choose an index for each row of scores."""

        def draw(many: Ints) -> Ints:
            rows = many.reshape(-1, many.shape[2])
            chosen = self._noise.select_many(rows, sensitivity=sensitivity, epsilon=epsilon)
            return chosen.reshape(many.shape[:2])

        return self._next(scores, (sensitivity, epsilon), draw)

    def discrete_gaussian(self, values: Ints, *, scale: Fraction) -> Ints:
        """Add discrete Gaussian noise."""
        draw = partial(self._noise.discrete_gaussian, scale=scale)
        return self._next(values, (scale, scale), draw)

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        """Release keys by their noisy counts, drawn separately."""
        return self._noise.release_keys(counts, scale=scale, threshold=threshold)

    def select_by_weight(self, scores: Ints, *, scale: Fraction) -> int:
        """Choose an index by the exponential mechanism, drawn separately."""
        return self._noise.select_by_weight(scores, scale=scale)

    def respond(self, codes: Ints, *, categories: int, epsilon: Fraction) -> Ints:
        """Answer for each code by randomised response."""
        draw = partial(self._noise.respond, categories=categories, epsilon=epsilon)
        return self._next(codes, (Fraction(categories), epsilon), draw)

    def uniform(self, below: int, *, size: int) -> Ints:
        """Draw uniform whole numbers, separately for each run."""
        return self._noise.uniform(below, size=size)

    def _next(
        self, values: Ints, terms: tuple[Fraction, ...], many: Callable[[Ints], Ints]
    ) -> Ints:
        place, self._place = self._place, self._place + 1
        if place == len(self._pools):
            self._pools.append(_Pool(values, terms, many))
        pool = self._pools[place]
        return pool.take(self._left) if pool.serves(values, terms) else many(values[None])[0]


class _Pool:
    """A request for noise, its values repeated in `many`, and the draws."""

    def __init__(
        self, values: Ints, terms: tuple[Fraction, ...], many: Callable[[Ints], Ints]
    ) -> None:
        self.values, self.terms, self._many = values, terms, many
        self._asked = values.shape, values.tobytes()
        self._drawn: Ints = np.empty((0, *values.shape), dtype=np.int64)
        self._taken = 0

    def serves(self, values: Ints, terms: tuple[Fraction, ...]) -> bool:
        return self.terms == terms and self._asked == (values.shape, values.tobytes())

    def _draw(self, times: int) -> Ints:
        return self._many(np.broadcast_to(self.values, (times, *self.values.shape)))

    def take(self, left: int) -> Ints:
        if self._taken == len(self._drawn):
            self._drawn = self._draw(max(1, min(left, _AHEAD // max(1, self.values.size))))
            self._taken = 0
        self._taken += 1
        drawn: Ints = self._drawn[self._taken - 1]
        return drawn


def columns_at_stake(planned: Plan) -> tuple[str, ...]:
    """List the columns that may differ between neighbours: those that epsilon is claimed for."""
    claimed = [c.guarantee for c in planned.claims if isinstance(c.guarantee, DifferentialPrivacy)]
    return claimed[0].protects if claimed else planned.setting.columns


class ArrayRuns:
    """Runs of a plan on one table, each with the values that it would release, as arrays.

    Rows that a release form shuffles are sorted, public columns first, which loses no information.
    So are the values of each column of a column-shuffled release. Of a tree's boxes, those at the
    corners of the space are returned: their ends and their counts.

    Where their number is not that of the table, an output has `rows` rows: further ones are left
    out, and missing ones are -1 throughout.
    """

    def __init__(
        self, planned: Plan, table: Table, noise: Noise, *, rows: int | None = None
    ) -> None:
        planned = with_rows(planned, len(table))
        self._method, self._setting = planned.method, planned.setting
        by = self._method.input.sort_by
        order = table.canonical_order(None if by is None else by(self._setting))
        self._rows = Arrays.of(table.take(order))
        self._places = np.argsort(order)
        self._ahead = Ahead(noise)
        self._height = rows if planned.setting.rows is None else None
        self.names: Sequence[str] = columns_at_stake(planned)
        shown = [name for name in table.schema.released if name not in self.names]
        self._public = {name: _to_numbers(self._rows.frame[name]) for name in shown}

    def __call__(self, runs: int) -> Floats:
        """Return `runs` runs as an array: runs x rows x protected columns."""
        rng = np.random.default_rng()
        made = []
        for left in range(runs, 0, -1):
            self._ahead.begin(left)
            made.append(self._once(self._ahead, rng))
        return np.stack(made)

    def with_noise(self, noise: Noise) -> Floats:
        """Run once with different noise, such as one that adds nothing."""
        return self._once(noise, np.random.default_rng(0))

    def _once(self, noise: Noise, rng: np.random.Generator) -> Floats:
        masked = self._method.run(self._rows, self._setting, Tools(noise=noise, rng=rng))
        table: Any = masked.data
        if isinstance(table, SpatialDecomposition):
            self.names, cells = _corners(table)
            return cells
        cells = np.column_stack([table.columns[name] for name in self.names])
        form = self._setting.release_form
        if form is ReleaseForm.ROW_ALIGNED:
            arranged = cells[self._places]
        elif form is ReleaseForm.CANONICAL and masked.canonical is not None:
            arranged = cells[masked.canonical]
        elif form is ReleaseForm.COLUMN_SHUFFLED:
            arranged = np.sort(cells, axis=0)
        else:
            # A public column that the method changed is shown as released.
            shown = [table.columns.get(name, known) for name, known in self._public.items()]
            arranged = cells[np.lexsort([*cells.T[::-1], *shown[::-1]])]
        if self._height is not None:
            missing = max(0, self._height - len(arranged))
            arranged = np.pad(arranged[: self._height], ((0, missing), (0, 0)), constant_values=-1)
        return arranged.astype(np.float64, copy=False)


def _corners(boxes: SpatialDecomposition) -> tuple[list[str], Floats]:
    """Return the corner boxes of the space, along its first axes: ends, counts and names."""
    low, high = boxes.extent
    axes = low.size
    held = []
    for sides in product((False, True), repeat=min(axes, _CORNERS)):
        upper = np.array([*sides, *[False] * (axes - len(sides))])
        at_corner = np.where(upper, boxes.upper == high, boxes.lower == low)
        held.append(int(np.flatnonzero(at_corner.all(axis=1))[0]))
    names = [f"{name}, {side} end" for side in ("lower", "upper") for name in boxes.columns]
    names += [f"count of {value}" for value in boxes.values]
    return names, np.hstack([boxes.lower, boxes.upper, boxes.counts])[held]


def _to_numbers(series: pl.Series) -> Floats:
    ranks = series if series.dtype.is_numeric() else series.cast(pl.String).rank("dense")
    return ranks.cast(pl.Float64).fill_null(-1.0).to_numpy()


_FIRST = 16
"""How many rows of a table beside the release are examined."""


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


def _read(folder: Path, form: ReleaseForm) -> Landed:
    frame = pl.read_csv(folder / "release.csv", infer_schema_length=None)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest.pop("created")  # the time of day, and what follows from the cells
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    for file in manifest["files"].values():
        file.pop("sha256")
        file.pop("bytes")
    gaps = [series.null_count() for series in frame]
    columns = [to_numbers(series) for series in frame]
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
            "names of the files": checksum(list(sizes)),
            "names and types of the columns": checksum([str(frame.schema)]),
            "pattern of missing cells": checksum(gaps),
            "manifest": checksum(manifest),
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
