"""Blocks of records as Arrow streams, which Spark stores and moves.

A block is one row of a Spark DataFrame: a number, how many records it has, and the records as one
Arrow stream. Spark shuffles a few large rows in place of many small ones, and a block comes out
as it went in, with every type. What is done to a block is a pure function of it, so Spark may
do it twice. An error inside names its kind and shows no cell.
"""

import gc
import io
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby, islice
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from shoal.core._arrays import Ints
from shoal.errors import (
    LOST_SPARK,
    InputError,
    InternalError,
    ShoalError,
    SparkError,
    is_spark_lost,
)

SEQ, RID = "\0seq", "\0rid"
"""Where a record stood in the file, and where it stands in the canonical order."""
UNIT = "\0unit"
"""Whose record it is, if persons may have several."""
FORM = "block long, rows long, data binary"
_MARK = "shoal-error:"
_MANY = 4_000_000
"""Cells above which blocks are fetched task by task: each is then a job of its own."""
_ANSWERS = 32
"""The most answers that the driver combines; more are first reduced to this many by tasks."""
_BATCH = 32 << 20
"""Bytes that go from Spark to Python at a time, at least a block."""
TASKS = 4
"""Tasks per core, so the last one does not keep the others waiting."""
STRIDE = 1 << 40
"""Between the block numbers of one order and those of the next."""

Numbered = Iterable[tuple[int, pl.DataFrame]]
Reader = Callable[[Iterator[pa.RecordBatch]], Numbered]
Step = Callable[[int, pl.DataFrame], Numbered]
Merge = Callable[[int, Sequence[pl.DataFrame]], Numbered]


@dataclass(frozen=True)
class SortOrder:
    """A sort order of the records.

    Attributes:
        select: picks what is shipped of a block.
        keys: picks the columns to sort that by; missing first.
        finish: makes blocks of the sorted records of a block.
    """

    select: Callable[[pl.DataFrame], pl.DataFrame]
    keys: Callable[[pl.DataFrame], pl.DataFrame]
    finish: Step = lambda number, frame: [(number, frame)]


def pack(frame: pl.DataFrame) -> bytes:
    """Write a frame as an Arrow stream."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


def unpack(data: Any) -> pl.DataFrame:
    """Read a frame from an Arrow stream."""
    return pl.read_ipc_stream(io.BytesIO(data))


BLOCK_ROWS = 250_000
"""Records of a block, unless `spark.shoal.blockRows` is set."""


class BlockStore:
    """A Spark session, as far as blocks need one."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        stated = spark.conf.get("spark.shoal.blockRows", None)
        self.block_rows = int(stated) if stated else BLOCK_ROWS
        # A row holds a whole block here, so ten thousand rows in a batch would be too many.
        spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_BATCH))

    @property
    def tasks(self) -> int:
        """The number of tasks that uses the machines best when answers are combined."""
        return 2 * int(self._spark.sparkContext.defaultParallelism)

    def send(self, value: Any) -> Any:
        """Broadcast a value to all workers; a task finds it under `value`."""
        return self._spark.sparkContext.broadcast(value)

    def frame(self, table: pa.Table) -> DataFrame:
        """Make a DataFrame of a local table."""
        made: DataFrame = self._spark.createDataFrame(table)
        return made

    def block_count(self, rows: int, least: int = 1) -> int:
        """Return the number of blocks for `rows` records, none with fewer than `least`."""
        return min(max(1, -(-rows // self.block_rows)), max(1, rows // least))


class Blocks:
    """Frames in numbered blocks, on Spark, with steps that run when a result is needed.

    Steps that follow one another run in one Python worker, without going through Spark. Blocks with
    numbers below 0 are notes: a few rows for the driver, which later steps do not see.

    Args:
        source: rows, or blocks, as Spark holds them.
        reader: makes numbered frames of what a task gets.
        steps: what happens to each of them, one after the other.
    """

    def __init__(
        self, source: DataFrame, reader: Reader | None = None, steps: tuple[Step, ...] = ()
    ) -> None:
        self._source, self._reader, self._steps = source, reader, steps

    def map(self, *changes: Step) -> "Blocks":
        """Apply changes to each block; several changes all get the original block."""
        if len(changes) == 1:
            return Blocks(self._source, self._reader, (*self._steps, changes[0]))
        return self.map(
            lambda number, frame: chain.from_iterable(change(number, frame) for change in changes)
        )

    @property
    def frame(self) -> DataFrame:
        """The Spark DataFrame of blocks."""
        if self._reader is None and not self._steps:
            return self._source
        reader, steps = self._reader or read, self._steps

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, frame in reader(batches):
                yield from _write(_take_steps(steps, number, frame))

        return self._source.mapInArrow(_guard(run), FORM)

    def fold(
        self,
        ask: Callable[[int, pl.DataFrame], Any],
        add: Callable[[Any, Any], Any],
        *,
        tasks: int,
    ) -> Any:
        """Compute an answer for each block, and combine the answers.

        `ask` gets the number of a block and its records; `add` combines two answers and must not
        depend on order or grouping. More than a few `tasks` leave the combining to other tasks
        first.
        """
        reader, steps = self._reader or read, self._steps

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            made = chain.from_iterable(_take_steps(steps, *block) for block in reader(batches))
            return put(ask(number, frame) for number, frame in made if number >= 0)

        def again(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            held = chain.from_iterable(batch.column(2) for batch in batches)
            return put(pickle.loads(data.as_buffer()) for data in held)  # noqa: S301 (our own)

        def put(answers: Iterator[Any]) -> Iterator[pa.RecordBatch]:
            for first in islice(answers, 1):
                yield _row(0, 0, pickle.dumps(reduce(add, answers, first)))

        few = self._source.coalesce(tasks).mapInArrow(_guard(run), FORM)
        if tasks > _ANSWERS:
            few = few.repartition(_ANSWERS).mapInArrow(_guard(again), FORM)
        with speaking():
            answers = few.select("data").collect()
        return reduce(add, (pickle.loads(row["data"]) for row in answers))  # noqa: S301 (our own)

    def union(self, *others: "Blocks") -> "Blocks":
        """Join the blocks of several collections."""
        frame = self.frame
        for other in others:
            frame = frame.unionAll(other.frame)
        return Blocks(frame)

    def gather(self, count: int, merge: Merge) -> "Blocks":
        """Collect the blocks with the same number, and merge them by `merge`.

        A task takes several of the `count` numbers, one after the other.
        """

        def reader(batches: Iterator[pa.RecordBatch]) -> Numbered:
            for number, frames in groupby(read(batches), key=lambda pair: pair[0]):
                yield from merge(number, [frame for _, frame in frames])

        cores = self._source.sparkSession.sparkContext.defaultParallelism
        tasks = min(count, TASKS * cores)
        together = self.frame.repartition(tasks, "block").sortWithinPartitions("block")
        return Blocks(together, reader)

    def keep(self) -> "Kept":
        """Compute the blocks and keep them on the workers' disks; return them with the notes.

        Everything is made now, in one job.
        """
        held = self.frame.persist(StorageLevel.DISK_ONLY)
        data = f.when(f.col("block") < 0, f.col("data")).alias("data")
        with speaking():
            held_rows = held.select("block", "rows", data).collect()
        sizes = {row["block"]: row["rows"] for row in held_rows if row["block"] >= 0}
        if len(sizes) < sum(row["block"] >= 0 for row in held_rows):
            raise InternalError("Two blocks of records on Spark have the same number.")
        notes = [(row["block"], unpack(row["data"])) for row in held_rows if row["block"] < 0]
        return Kept(held, dict(sorted(sizes.items())), sorted(notes, key=lambda pair: pair[0]))

    def fetch(self, cells: int = 0) -> Iterator[tuple[int, pl.DataFrame]]:
        """Collect the blocks at the driver in any order; task by task if they hold many cells."""
        frame = self.frame.select("block", "data")
        with speaking():
            rows = (
                frame.toLocalIterator(prefetchPartitions=True) if cells > _MANY else frame.collect()
            )
            for row in rows:
                yield row["block"], unpack(row["data"])

    def rows(self, form: Any) -> DataFrame:
        """Convert the records to rows of a DataFrame with a given schema."""
        reader, steps = self._reader or read, self._steps

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, frame in reader(batches):
                for _, made in _take_steps(steps, number, frame):
                    yield from made.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()

        return self._source.mapInArrow(_guard(run), form)


class Kept(Blocks):
    """Computed blocks, kept on the workers' disks.

    Attributes:
        sizes: records of each block, by number.
        notes: what the steps reported to the driver, by number.
    """

    def __init__(
        self, held: DataFrame, sizes: dict[int, int], notes: list[tuple[int, pl.DataFrame]]
    ) -> None:
        super().__init__(held.where(f.col("block") >= 0))
        self._held, self.sizes, self.notes = held, sizes, notes

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def drop(self) -> None:
        """Release the blocks. What was derived from them remains, and can be computed again."""
        self._held.unpersist()


def exchange(
    blocks: Blocks, orders: Sequence[SortOrder], counts: Sequence[int], *, rows: int
) -> Blocks:
    """Sort all records by unique keys, into about `counts` blocks for each order.

    Blocks are numbered in the order; those of the second order come after `STRIDE`, and so on.
    Where they end depends on a sample; the order does not. Many records with one leading key are
    split by the next, so no block is large. All orders are made in one shuffle. `rows` is the
    number of records.
    """
    borders = _borders(blocks, orders, counts, rows)

    def part(which: int) -> Step:
        order, ends = orders[which], borders[which]

        def cut(_number: int, frame: pl.DataFrame) -> Numbered:
            shipped = order.select(frame)
            if ends is None:
                return [(which * STRIDE, shipped)]
            return _split(shipped, order.keys(shipped), unpack(ends), which * STRIDE)

        return cut

    def merge(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        order = orders[number // STRIDE]
        frame = pl.concat(frames)
        return order.finish(number, frame[_order(order.keys(frame))])

    return blocks.map(*map(part, range(len(orders)))).gather(sum(counts), merge)


_SAMPLED = 64
"""Sampled records per block: the largest block is then seldom twice the mean."""


def _borders(
    blocks: Blocks, orders: Sequence[SortOrder], counts: Sequence[int], rows: int
) -> list[bytes | None]:
    """Choose borders between the blocks from evenly spaced records of every block."""
    if max(counts) == 1:
        return [None] * len(orders)
    step = max(1, rows // (_SAMPLED * max(counts)))

    def sample(_number: int, frame: pl.DataFrame) -> Numbered:
        chosen = frame.gather_every(step, offset=(frame.height - 1) % step // 2)
        for which, order in enumerate(orders):
            yield which, order.keys(order.select(chosen))

    samples: dict[int, list[pl.DataFrame]] = {}
    for which, frame in blocks.map(sample).fetch():
        samples.setdefault(which, []).append(frame)
    borders: list[bytes | None] = []
    for which, count in enumerate(counts):
        drawn = pl.concat(samples[which])
        drawn = drawn[_order(drawn)]
        places = np.unique(np.arange(1, count) * drawn.height // count)
        borders.append(pack(drawn[places]) if count > 1 else None)
    return borders


def _order(keys: pl.DataFrame) -> pl.Series:
    return keys.select(pl.arg_sort_by(keys.columns)).to_series()


def _split(frame: pl.DataFrame, keys: pl.DataFrame, borders: pl.DataFrame, first: int) -> Numbered:
    """Split a block at the borders; a record equal to a border belongs to the upper part."""
    both = pl.concat([borders, keys])
    mark = pl.Series("\0mark", np.arange(both.height) >= borders.height)
    both = both.with_columns(mark)
    order = both.select(pl.arg_sort_by(both.columns)).to_series().cast(pl.Int64).to_numpy()
    record = order >= borders.height
    block = np.cumsum(~record)[record]
    return cut_by(frame[order[record] - borders.height], first + block)


def cut_by(frame: pl.DataFrame, block: Ints) -> Numbered:
    """Split a frame where its block number changes; block numbers do not decrease."""
    first = np.flatnonzero(np.diff(block, prepend=-1))
    for begin, end in zip(first, np.append(first[1:], block.size), strict=True):
        yield int(block[begin]), frame[int(begin) : int(end)]


def _take_steps(steps: Sequence[Step], number: int, frame: pl.DataFrame) -> Numbered:
    if not steps:
        return [(number, frame)]
    made = steps[0](number, frame)
    if len(steps) == 1:
        return made
    return chain.from_iterable(
        [(i, some)] if i < 0 else _take_steps(steps[1:], i, some) for i, some in made
    )


def read(batches: Iterator[pa.RecordBatch]) -> Numbered:
    """Read the blocks that a task gets."""
    for batch in batches:
        for number, data in zip(batch.column(0), batch.column(2), strict=True):
            yield number.as_py(), unpack(data.as_buffer())


def _write(blocks: Numbered) -> Iterator[pa.RecordBatch]:
    for number, frame in blocks:
        yield _row(number, frame.height, pack(frame))


def _row(number: int, rows: int, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([number], pa.int64()),
            pa.array([rows], pa.int64()),
            pa.array([data], pa.binary()),
        ],
        names=["block", "rows", "data"],
    )


def _guard(
    run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Replace errors within a task, which may quote a cell and would be logged by Spark."""

    def run_guarded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _settle()
        try:
            yield from run(batches)
        except ShoalError as error:
            raise RuntimeError(f"{_MARK}{type(error).__name__}:{error}:{_MARK}") from None
        except Exception as error:  # noqa: BLE001 (its message may quote cells)
            raise RuntimeError(
                f"{_MARK}InternalError:A task failed: {type(error).__name__}.:{_MARK}"
            ) from None

    return run_guarded


_loaded = 0


def _settle() -> None:
    """Exempt imported modules from garbage collection.

    A Python worker of Spark collects garbage after every task, and walks over all modules for it:
    a tenth of a second with ours, which is more than a small task takes. Done only if modules were
    imported since, so no task leaves its garbage behind for good.
    """
    global _loaded  # noqa: PLW0603 (one worker, one count)
    if len(sys.modules) > _loaded:
        _loaded = len(sys.modules)
        gc.freeze()


@contextmanager
def speaking(otherwise: ShoalError | None = None) -> Iterator[None]:
    """Replace Spark's report of a failed job by our own error, without cells.

    `otherwise` is raised if no task of ours reported an error.
    """
    try:
        yield
    except Exception as error:
        if not is_spark_lost(error):
            raise
        text = str(error)
        if _MARK in text:
            name, _, sentence = text.split(_MARK)[1].partition(":")
            sort = InputError if name == "InputError" else InternalError
            raise sort(sentence.rstrip(":")) from None
        raise (otherwise or SparkError(f"{LOST_SPARK} Nothing was written.")) from None
