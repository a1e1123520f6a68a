"""The result of a method on rows in blocks, converted to a DataFrame."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from shoal.core import (
    Check,
    Checkable,
    Confidential,
    Noise,
    Policy,
    PrivacyLoss,
    ReleaseForm,
    SpatialDecomposition,
    Testable,
)
from shoal.engine import local
from shoal.engine.check_table import check_frame, check_leaves
from shoal.engine.spark import checks_and_metrics
from shoal.engine.spark.blocks import (
    RID,
    SEQ,
    STRIDE,
    Blocks,
    Kept,
    Numbered,
    SortOrder,
    cut_by,
    exchange,
    speaking,
)
from shoal.engine.spark.rows import GROUP, SparkRows
from shoal.errors import InternalError
from shoal.io import decomposition_table
from shoal.io.table import Table, as_it_came
from shoal.methods.distributed_rows import ReplacedColumns

_KEY = "\0key"


@dataclass(frozen=True, eq=False)
class SparkOutcome:
    """The result of a method on rows in blocks.

    Attributes:
        records: the original.
        protected: changed records in blocks; synthetic rows; or boxes.
    """

    records: SparkRows
    protected: Kept | Table | SpatialDecomposition
    form: ReleaseForm
    privacy_losses: tuple[PrivacyLoss, ...]
    notes: tuple[str, ...]
    tables: Mapping[str, Mapping[str, NDArray[Any]]]
    noise: Noise
    clamped: Mapping[str, Mapping[str, int]]
    repaired: Mapping[str, int]
    dropped: int
    suppressed: int = 0

    recoding_public = False

    @property
    def recoding(self) -> None:
        """Not kept on Spark."""
        return

    @property
    def counts(self) -> None:
        """Not kept on Spark."""
        return

    @property
    def constant(self) -> tuple[str, ...]:
        """Not computed on Spark."""
        return ()

    @property
    def distinct(self) -> tuple[str, ...]:
        """Not computed on Spark."""
        return ()

    @property
    def evidence(self) -> Confidential["SparkOutcome"]:
        """The original and its release, still in their blocks."""
        return Confidential(self)

    @cached_property
    def _secret(self) -> bytes:
        """About 300 secret random bits, drawn by the driver for this run."""
        return self.noise.uniform(1 << 62, size=5).tobytes()

    @cached_property
    def _local(self) -> pl.DataFrame | None:
        """The release, if it was made on the driver."""
        if isinstance(self.protected, SpatialDecomposition):
            return decomposition_table.to_frame(self.protected, self.records.layout.schema)
        if isinstance(self.protected, Table):
            frame = self.protected.publishable()
            return frame[np.argsort(random_keys(self._secret, 0, frame.height), kind="stable")]
        return None

    @cached_property
    def data(self) -> DataFrame:
        """The released table, a DataFrame that is kept on the workers' disks."""
        if self._local is not None:
            return self._sent(self._local)
        return self.released.rows(_form(self._types))

    @cached_property
    def released(self) -> Kept:
        """The released rows in blocks, kept on the workers' disks."""
        with speaking():
            return self._arrange().keep()

    @cached_property
    def rows(self) -> int:
        """Rows that are released."""
        return len(self.records) if self._local is None else self._local.height

    @property
    def columns(self) -> dict[str, str]:
        """Columns that are released, with the names of their types."""
        types = self._types if self._local is None else self._local.schema
        return {name: str(dtype) for name, dtype in types.items()}

    @property
    def extras(self) -> dict[str, DataFrame]:
        """Tables published beside the release, by name."""
        return {name: self._sent(local.make_frame(some)) for name, some in self.tables.items()}

    def _sent(self, frame: pl.DataFrame) -> DataFrame:
        arrow = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        sent: DataFrame = self.records.store.frame(arrow)
        return sent

    @cached_property
    def _leaving(self) -> dict[str, tuple[pl.DataType, bool]]:
        """The released type of each column, and whether all its cells fit the original type."""
        dtypes = self.records.layout.dtypes
        notes = dict(_require_kept(self.protected).notes)
        types = notes[_TYPES]
        misfits = np.logical_or.reduce(
            [frame["misfit"].to_numpy() for note, frame in _require_kept(self.protected).notes
             if note == _MISFITS]
        )  # fmt: skip
        leaving: dict[str, tuple[pl.DataType, bool]] = {}
        for (name, dtype), misfit in zip(dtypes.items(), misfits.tolist(), strict=True):
            came = as_it_came(types[name], dtype).dtype
            original = types.schema[name]
            bare = pl.String() if isinstance(original, pl.Enum) else original
            leaving[name] = (bare, False) if misfit else (came, True)
        return leaving

    @property
    def _columns(self) -> Sequence[str]:
        return dict(_require_kept(self.protected).notes)[_TYPES].columns

    @property
    def _types(self) -> dict[str, pl.DataType]:
        return {name: dtype for name, (dtype, _) in self._leaving.items()}

    def _arrange(self) -> Blocks:
        """Put the released rows into the order of the release form."""
        kept = _require_kept(self.protected)
        leaving, dtypes = self._leaving, self.records.layout.dtypes
        count = self.records.block_count()

        def dress(number: int, frame: pl.DataFrame) -> Numbered:
            columns = [
                as_it_came(frame[name], dtypes[name]) if fits else frame[name].cast(dtype)
                for name, (dtype, fits) in leaving.items()
            ]
            return [(number, pl.DataFrame(columns))]

        if self.form is ReleaseForm.COLUMN_SHUFFLED:
            made = permute_columns(kept, list(leaving), count, len(self.records), self._secret)
            return made.map(dress)
        by = None
        if self.form is ReleaseForm.ROW_ALIGNED:
            by = [SEQ]
        if self.form is ReleaseForm.CANONICAL and GROUP in self._columns:
            by = [GROUP, RID]
        if by is None:
            return shuffle(kept, count, self._secret).map(dress)
        order = SortOrder(lambda frame: frame, lambda frame: frame.select(by), dress)
        made = exchange(kept, [order], [count], rows=len(self.records))
        return Blocks(level(made, count, len(self.records)).frame.orderBy("block"))

    def checks(self, guarantees: Sequence[Checkable], policy: Policy) -> tuple[Check, ...]:
        """Recompute guarantees on the release, all in one pass or two; a plan refuses others."""
        schema = policy.schema
        counted = [guarantee for guarantee in guarantees if isinstance(guarantee, Testable)]
        if isinstance(self.protected, SpatialDecomposition):
            return tuple(check_leaves(self.protected, g, schema) for g in counted)
        if self._local is not None:
            return tuple(check_frame(self._local, guarantee, schema) for guarantee in counted)
        return checks_and_metrics.checks(
            self.released, counted, schema, tasks=self.records.store.tasks
        )

    def close(self) -> None:
        """Free the original, which lies on the workers' disks."""
        self.records.close()

    def figures(self, columns: Sequence[str], form: ReleaseForm) -> dict[str, Any]:
        """Compare with the original: confidential."""
        rows = len(self.records)
        bare = local.figures(rows, uniques=(None, rows, None))
        if self._local is not None or form is ReleaseForm.COLUMN_SHUFFLED:
            return bare
        if self._prepared:
            return bare | {"remarks": [_PREPARED]}
        return checks_and_metrics.compare(self.records, _require_kept(self.protected), columns)

    @property
    def _prepared(self) -> bool:
        """Whether the records in the blocks differ from the original."""
        changed = sum(sum(sorts.values()) for sorts in self.clamped.values())
        return bool(changed + sum(self.repaired.values()))


_PREPARED = (
    "The policy changed cells before the method ran, and Spark keeps no table without these "
    "changes: columns are not compared."
)
_TYPES, _MISFITS = -1, -2


def replace_columns(
    records: SparkRows,
    changes: Sequence[ReplacedColumns],
    move: Callable[[Table], Table] | None = None,
) -> Kept:
    """Replace columns, and note their types and which cells do not fit the original type.

    `move` then changes each row by itself.
    """
    layout, dtypes = records.layout, records.layout.dtypes

    def note(number: int, frame: pl.DataFrame) -> Numbered:
        if move is not None:
            frame = frame.with_columns(move(layout.table(frame)).frame)
        misfit = [
            as_it_came(frame[name], dtype).dtype != as_it_came(frame[name].clear(), dtype).dtype
            for name, dtype in dtypes.items()
        ]
        yield number, frame
        yield _TYPES, frame.clear()
        yield _MISFITS, pl.DataFrame({"misfit": misfit})

    made = records.change_columns(changes).map(note).keep()
    records.forget()
    return made


def _require_kept(protected: Kept | Table | SpatialDecomposition) -> Kept:
    if not isinstance(protected, Kept):
        raise InternalError(
            "The result on Spark has no blocks of records, but they were requested."
        )
    return protected


def shuffle(blocks: Blocks, count: int, secret: bytes) -> Blocks:
    """Put all records in a secret random order.

    A record's key is 64 bits of SHAKE-256 over a secret that the driver drew and
    forgets, the number of its block and its place there. A task that runs twice gives the same
    keys, so no record is lost or doubled, as it would be with bits that the task itself drew.
    """

    def part(number: int, frame: pl.DataFrame) -> Numbered:
        keys = random_keys(secret, number, frame.height)
        return _scatter(frame.with_columns(pl.Series(_KEY, keys)), keys, count)

    return blocks.map(part).gather(count, _by_key)


def _by_key(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
    return [(number, pl.concat(frames).sort(_KEY, RID))]


def level(blocks: Blocks, count: int, rows: int) -> Blocks:
    """Split ordered records into blocks whose sizes depend on the number of records alone.

    Sorted blocks end where the sorted values decide, and blocks become files, so their lengths
    would disclose protected cells without noise.
    """
    if count == 1:
        return blocks
    kept = blocks.keep()
    numbers = sorted(kept.sizes)
    begins = np.cumsum([0, *(kept.sizes[number] for number in numbers)])
    first = dict(zip(numbers, begins.tolist(), strict=False))
    each = -(-rows // count)

    def cut(number: int, frame: pl.DataFrame) -> Numbered:
        rank = first[number] + np.arange(frame.height)
        return cut_by(frame.with_columns(pl.Series(_KEY, rank)), rank // each)

    def merge(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        return [(number, pl.concat(frames).sort(_KEY).drop(_KEY))]

    return kept.map(cut).gather(count, merge)


def permute_columns(
    blocks: Blocks, names: Sequence[str], count: int, rows: int, secret: bytes
) -> Blocks:
    """Put each column into a separate random order.

    A column's cells are sorted by random keys; the cell of rank p goes to row p.
    """
    secrets_of = [secret + place.to_bytes(4, "little") for place in range(len(names))]

    def part(number: int, frame: pl.DataFrame) -> Numbered:
        for place, name in enumerate(names):
            keys = random_keys(secrets_of[place], number, frame.height)
            cells = frame.select(pl.col(name), pl.Series(_KEY, keys), RID)
            for block, some in _scatter(cells, keys, count):
                yield place * STRIDE + block, some

    sorted_cells = blocks.map(part).gather(count * len(names), _by_key).keep()
    first: dict[int, int] = {}
    ends: dict[int, int] = {}
    for number, size in sorted_cells.sizes.items():
        first[number] = ends.get(number // STRIDE, 0)
        ends[number // STRIDE] = first[number] + size
    each = -(-rows // count)

    def place_cells(number: int, frame: pl.DataFrame) -> Numbered:
        rank = first[number] + np.arange(frame.height)
        moved = frame.drop(_KEY, RID).with_columns(pl.Series(RID, rank))
        return cut_by(moved, rank // each)

    def together(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        columns = [
            pl.concat([frame for frame in frames if name in frame.columns]).sort(RID)[name]
            for name in names
        ]
        return [(number, pl.DataFrame(columns))]

    return sorted_cells.map(place_cells).gather(count, together)


def _scatter(frame: pl.DataFrame, keys: NDArray[np.uint64], count: int) -> Numbered:
    """Split records by random keys into blocks of about equal size."""
    block = ((keys >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
    order = np.argsort(block, kind="stable")
    return cut_by(frame[order], block[order].astype(np.int64))


def random_keys(secret: bytes, number: int, size: int) -> NDArray[np.uint64]:
    """Derive 64 pseudo-random bits for each record of a block from a secret."""
    stream = hashlib.shake_256(secret + number.to_bytes(8, "little", signed=True))
    return np.frombuffer(stream.digest(8 * size), dtype=np.uint64)


def _form(types: Mapping[str, pl.DataType]) -> Any:
    empty = pl.DataFrame(schema=dict(types)).to_arrow(compat_level=pl.CompatLevel.oldest())
    return from_arrow_schema(empty.schema)
