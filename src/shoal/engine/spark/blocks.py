"""Frames in blocks: what Spark stores and moves for us.

A block is one row of a Spark DataFrame: a number, how many records it has, and the records as one
Arrow stream. Spark shuffles a few large rows in place of many small ones, and a block comes out
as it went in, with every type. What is done to a block is a pure function of it, so that Spark may
do it twice. An error inside says which sort it was and shows no cell.
"""

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby, islice
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from shoal.errors import InputError, InternalError, ShoalError

SEQ, RID = "\0seq", "\0rid"
"""Where a record stood in the file, and where it stands in the canonical order."""
FORM = "block long, rows long, data binary"
_SCHEMA = pa.schema(
    [
        pa.field("block", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("data", pa.large_binary()),
    ]
)
_MARK = "shoal-error:"

Numbered = Iterable[tuple[int, pl.DataFrame]]
Integers = NDArray[np.int64]


def pack(frame: pl.DataFrame) -> bytes:
    """Write a frame as an Arrow stream."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


def unpack(data: Any) -> pl.DataFrame:
    """Read a frame from an Arrow stream."""
    return pl.read_ipc_stream(io.BytesIO(data))


BLOCK_ROWS = 250_000
"""Records of a block, unless the setting `spark.shoal.blockRows` says."""


class Store:
    """A Spark session, as far as blocks need one."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        stated = spark.conf.get("spark.shoal.blockRows", None)
        self.block_rows = int(stated) if stated else BLOCK_ROWS

    @property
    def tasks(self) -> int:
        """Tasks that make the best of the machines there are, for answers that are put together."""
        return 2 * int(self._spark.sparkContext.defaultParallelism)

    def send(self, value: Any) -> Any:
        """Send a value to all workers, once; a task finds it under `value`."""
        return self._spark.sparkContext.broadcast(value)

    def frame(self, table: pa.Table) -> DataFrame:
        """A table that was made here, as a DataFrame."""
        made: DataFrame = self._spark.createDataFrame(table)
        return made

    def block_count(self, rows: int, least: int = 1) -> int:
        """How many blocks so many records make, none of them with fewer than stated."""
        return min(max(1, -(-rows // self.block_rows)), max(1, rows // least))


class Blocks:
    """Frames in numbered blocks, on Spark.

    Attributes:
        frame: the Spark DataFrame of blocks.
    """

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame

    @classmethod
    def of(cls, rows: DataFrame, cut: Callable[[Iterator[pa.RecordBatch]], Numbered]) -> "Blocks":
        """Make blocks of the rows of a DataFrame, task by task."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _written(cut(batches))

        return cls(rows.mapInArrow(_guarded(run), FORM))

    def map(self, change: Callable[[int, pl.DataFrame], Numbered]) -> "Blocks":
        """Make blocks of each block."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, frame in _read(batches):
                yield from _written(change(number, frame))

        return Blocks(self.frame.mapInArrow(_guarded(run), FORM))

    def fold(
        self,
        ask: Callable[[int, pl.DataFrame], Any],
        add: Callable[[Any, Any], Any],
        *,
        tasks: int,
    ) -> Any:
        """Ask each block and put the answers together: in each task first, and then here.

        Args:
            ask: gets the number of a block and its records.
            add: must not mind in which order and by which pairs answers come.
            tasks: at most so many answers come here.
        """

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            answers = (ask(number, frame) for number, frame in _read(batches))
            for first in islice(answers, 1):
                yield _row(0, 0, pickle.dumps(reduce(add, answers, first)))

        few = Blocks(self.frame.coalesce(tasks).mapInArrow(_guarded(run), FORM))
        with speaking():
            found = few.frame.select("data").toLocalIterator(prefetchPartitions=True)
            return reduce(add, (pickle.loads(row["data"]) for row in found))  # noqa: S301 (our own)

    def union(self, *others: "Blocks") -> "Blocks":
        """Put the blocks of several together."""
        frame = self.frame
        for other in others:
            frame = frame.unionAll(other.frame)
        return Blocks(frame)

    def gather(
        self, tasks: int, merge: Callable[[int, Sequence[pl.DataFrame]], Numbered]
    ) -> "Blocks":
        """Bring the blocks of one number together, and make blocks of them."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, frames in groupby(_read(batches), key=lambda pair: pair[0]):
                yield from _written(merge(number, [frame for _, frame in frames]))

        together = self.frame.repartition(tasks, "block").sortWithinPartitions("block")
        return Blocks(together.mapInArrow(_guarded(run), FORM))

    def keep(self) -> "Blocks":
        """Keep the blocks on the workers' disks, so that they are made once."""
        self.frame = self.frame.persist(StorageLevel.DISK_ONLY)
        return self

    def drop(self) -> None:
        """Forget kept blocks."""
        self.frame.unpersist()

    def sizes(self) -> dict[int, int]:
        """Records of each block that has some."""
        with speaking():
            found = self.frame.select("block", "rows").collect()
        return {row["block"]: row["rows"] for row in sorted(found)}

    def fetch(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """Bring the blocks here, task by task, in no order."""
        with speaking():
            for row in self.frame.select("block", "data").toLocalIterator(prefetchPartitions=True):
                yield row["block"], unpack(row["data"])

    def rows(self, form: Any) -> DataFrame:
        """The records as the rows of a DataFrame of a given form."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, frame in _read(batches):
                yield from frame.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()

        return self.frame.mapInArrow(_guarded(run), form)


def exchange(
    blocks: Blocks,
    keys: Callable[[pl.DataFrame], pl.DataFrame],
    count: int,
    *,
    finish: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
) -> Blocks:
    """Sort all records by keys that tell each from any other, in about so many blocks.

    Blocks are numbered in the order. Where they end depends on a sample; the order does not.
    Many records with one leading key are parted by the next, so that none of the blocks is large.

    Args:
        blocks: the records.
        keys: columns to sort by, of a frame; missing first.
        count: of the blocks that are made.
        finish: what happens to the columns once they are sorted.
    """
    borders = _borders(blocks, keys, count) if count > 1 else None

    def part(_number: int, frame: pl.DataFrame) -> Numbered:
        if borders is None:
            return [(0, frame)]
        return _parted(frame, keys(frame), unpack(borders))

    def merge(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        frame = pl.concat(frames)
        return [(number, finish(frame[_order(keys(frame))]))]

    return blocks.map(part).gather(count, merge)


_SAMPLED = 64
"""Sampled records a block that is wanted: the largest is then seldom twice the mean."""


def _borders(
    blocks: Blocks, keys: Callable[[pl.DataFrame], pl.DataFrame], count: int
) -> bytes | None:
    """Records between the blocks, from evenly spaced records of every block there is."""
    sizes = blocks.sizes()
    step = max(1, sum(sizes.values()) // (_SAMPLED * count))

    def sample(number: int, frame: pl.DataFrame) -> Numbered:
        chosen = keys(frame.gather_every(step, offset=(frame.height - 1) % step // 2))
        return [(number, chosen)]

    found = [frame for _, frame in blocks.map(sample).fetch()]
    if not found:
        return None
    drawn = pl.concat(found)
    drawn = drawn[_order(drawn)]
    places = np.unique(np.arange(1, count) * drawn.height // count)
    return pack(drawn[places])


def _order(keys: pl.DataFrame) -> pl.Series:
    return keys.select(pl.arg_sort_by(keys.columns)).to_series()


def _parted(frame: pl.DataFrame, keys: pl.DataFrame, borders: pl.DataFrame) -> Numbered:
    """Cut a block at the borders; a record that is a border stands behind it."""
    both = pl.concat([borders, keys])
    mark = pl.Series("\0mark", np.arange(both.height) >= borders.height)
    both = both.with_columns(mark)
    order = both.select(pl.arg_sort_by(both.columns)).to_series().cast(pl.Int64).to_numpy()
    record = order >= borders.height
    block = np.cumsum(~record)[record]
    sorted_frame = frame[order[record] - borders.height]
    first = np.flatnonzero(np.diff(block, prepend=-1))
    for begin, end in zip(first, np.append(first[1:], block.size), strict=True):
        yield int(block[begin]), sorted_frame[begin:end]


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pl.DataFrame]]:
    for batch in batches:
        for number, data in zip(batch.column(0), batch.column(2), strict=True):
            yield number.as_py(), unpack(data.as_buffer())


def _written(blocks: Numbered) -> Iterator[pa.RecordBatch]:
    for number, frame in blocks:
        yield _row(number, frame.height, pack(frame))


def _row(number: int, rows: int, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int64()), pa.array([rows], pa.int64()), pa.array([data])],
        names=_SCHEMA.names,
    )


def _guarded(
    run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Let no error out of a task that may quote a cell: it would stand in Spark's logs."""

    def guarded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from run(batches)
        except ShoalError as error:
            raise RuntimeError(f"{_MARK}{type(error).__name__}:{error}:{_MARK}") from None
        except Exception as error:  # noqa: BLE001 (its message may quote cells)
            raise RuntimeError(
                f"{_MARK}InternalError:A task failed: {type(error).__name__}.:{_MARK}"
            ) from None

    return guarded


class speaking:  # noqa: N801 (reads as a word where it is used)
    """Turn what Spark says of a failed job into our own error, without cells."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or not type(error).__module__.startswith(("pyspark", "py4j")):
            return
        text = str(error)
        if _MARK in text:
            name, _, said = text.split(_MARK)[1].partition(":")
            sort = InputError if name == "InputError" else InternalError
            raise sort(said.rstrip(":")) from None
        raise InternalError(
            f"Spark could not finish a job ({type(error).__name__}); its own log says why. "
            "Nothing was written."
        ) from None
