"""What a method made of rows in blocks, on its way to a DataFrame."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from shoal import leaves
from shoal.checking import check_frame, check_leaves
from shoal.core import (
    Check,
    Decomposition,
    KAnonymity,
    ReleaseForm,
    Schema,
    Spending,
    Testable,
)
from shoal.engine.spark.blocks import RID, SEQ, Blocks, Numbered, exchange, speaking
from shoal.engine.spark.reading import quoted
from shoal.engine.spark.rows import GROUP, SparkRows
from shoal.errors import InputError
from shoal.methods.rows import Change
from shoal.table import Table, as_it_came


@dataclass(frozen=True, eq=False)
class SparkOutcome:
    """What a method made of rows in blocks.

    Attributes:
        records: the original.
        protected: changed records in blocks; rows that stand for nobody; or boxes.
        canonical: the groups of the records, where their order is public.
    """

    records: SparkRows
    protected: Blocks | Table | Decomposition
    form: ReleaseForm
    spendings: tuple[Spending, ...]
    canonical: Change | None
    notes: tuple[str, ...]
    tables: Mapping[str, Mapping[str, NDArray[Any]]]
    suppressed: int = 0

    @cached_property
    def _local(self) -> pl.DataFrame | None:
        """The release, where it was made on the driver."""
        if isinstance(self.protected, Decomposition):
            return leaves.to_frame(self.protected, self.records.layout.schema)
        if isinstance(self.protected, Table):
            frame = self.protected.publishable()
            order = np.argsort(np.frombuffer(secrets.token_bytes(8 * frame.height), np.uint64))
            return frame[order]
        return None

    @cached_property
    def data(self) -> DataFrame:
        """The released table, a DataFrame that is kept on the workers' disks."""
        if self._local is not None:
            return self._sent(self._local)
        with speaking():
            return self._arranged().rows(_form(self._types))

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
        """Tables beside it, by name."""
        return {
            name: self._sent(
                pl.DataFrame({n: c.tolist() if c.dtype == object else c for n, c in some.items()})
            )
            for name, some in self.tables.items()
        }

    def _sent(self, frame: pl.DataFrame) -> DataFrame:
        arrow = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        sent: DataFrame = self.records.store.frame(arrow)
        return sent

    @cached_property
    def _leaving(self) -> dict[str, tuple[pl.DataType, bool]]:
        """For each column the type that it leaves in, and whether all its cells fit the old one."""
        dtypes = self.records.layout.dtypes

        def ask(_number: int, frame: pl.DataFrame) -> Numbered:
            misfit = [
                as_it_came(frame[name], dtype).dtype != as_it_came(frame[name].clear(), dtype).dtype
                for name, dtype in dtypes.items()
            ]
            yield 0, frame.clear().select(list(dtypes))
            yield 1, pl.DataFrame({"misfit": misfit})

        found: dict[str, tuple[pl.DataType, bool]] = {}
        types: pl.DataFrame | None = None
        misfits = np.zeros(len(dtypes), dtype=bool)
        assert isinstance(self.protected, Blocks)  # noqa: S101
        for which, frame in self.protected.map(ask).fetch():
            if which:
                misfits |= frame["misfit"].to_numpy()
            else:
                types = frame
        assert types is not None  # noqa: S101
        for (name, dtype), misfit in zip(dtypes.items(), misfits.tolist(), strict=True):
            came = as_it_came(types[name], dtype).dtype
            own = types.schema[name]
            bare = pl.String() if isinstance(own, pl.Enum) else own
            found[name] = (bare, False) if misfit else (came, True)
        return found

    @property
    def _types(self) -> dict[str, pl.DataType]:
        return {name: dtype for name, (dtype, _) in self._leaving.items()}

    def _arranged(self) -> Blocks:
        """The released rows in the order of the release form."""
        assert isinstance(self.protected, Blocks)  # noqa: S101
        leaving, dtypes = self._leaving, self.records.layout.dtypes
        count = self.records.block_count()

        def dressed(frame: pl.DataFrame) -> pl.DataFrame:
            return pl.DataFrame(
                [
                    as_it_came(frame[name], dtypes[name]) if fits else frame[name].cast(dtype)
                    for name, (dtype, fits) in leaving.items()
                ]
            )

        if self.form is ReleaseForm.ROW_ALIGNED:
            made = exchange(self.protected, lambda frame: frame.select(SEQ), count, finish=dressed)
            return Blocks(made.frame.orderBy("block"))
        if self.form is ReleaseForm.CANONICAL and self.canonical is not None:
            made = exchange(
                self.protected, lambda frame: frame.select(GROUP, RID), count, finish=dressed
            )
            return Blocks(made.frame.orderBy("block"))
        return shuffled(self.protected, count, dressed).keep()

    def check(self, guarantee: Testable, schema: Schema) -> Check:
        """Recompute a promise on what is released."""
        if isinstance(self.protected, Decomposition):
            return check_leaves(self.protected, guarantee, schema)
        if self._local is not None:
            return check_frame(self._local, guarantee, schema)
        if isinstance(guarantee, KAnonymity):
            keys = [f.col(quoted(name)) for name in guarantee.columns]
            with speaking():
                row = (
                    self.data.groupBy(*keys).count()
                    .agg(f.min("count").alias("least"), f.count("count").alias("classes"))
                    .collect()[0]
                )  # fmt: skip
            least = int(row["least"])
            return Check(
                guarantee, least >= guarantee.k, least, {"size": least}, {"classes": row["classes"]}
            )
        raise InputError(f"{guarantee.name} cannot be checked on Spark yet.")

    def figures(self, columns: Sequence[str], form: ReleaseForm) -> dict[str, Any]:
        """Compare with the original: confidential."""
        del columns, form
        return {
            "rows": len(self.records),
            "unique_on_quasi_identifiers": {"original": None, "released": None},
            "homogeneous": {},
            "columns": [],
        }


def shuffled(blocks: Blocks, count: int, finish: Any) -> Blocks:
    """Put all records in an order that nobody can tell from any other.

    A record's key is 64 bits of SHAKE-256 over a secret of 256 bits that the driver drew and
    forgets, the number of its block and its place there. A task that runs twice gives the same
    keys, so that no record is lost or doubled, as with bits that the task itself drew.
    """
    secret = secrets.token_bytes(32)

    def part(number: int, frame: pl.DataFrame) -> Numbered:
        keys = random_keys(secret, number, frame.height)
        block = ((keys >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
        order = np.lexsort((keys, block))
        moved = frame.with_columns(pl.Series("\0key", keys))[order]
        block = block[order].astype(np.int64)
        first = np.flatnonzero(np.diff(block, prepend=-1))
        for begin, end in zip(first, np.append(first[1:], block.size), strict=True):
            yield int(block[begin]), moved[int(begin) : int(end)]

    def merge(number: int, frames: Sequence[pl.DataFrame]) -> Numbered:
        return [(number, finish(pl.concat(frames).sort("\0key", RID)))]

    return blocks.map(part).gather(count, merge)


def random_keys(secret: bytes, number: int, size: int) -> NDArray[np.uint64]:
    """64 bits for each record of a block, from a secret."""
    stream = hashlib.shake_256(secret + number.to_bytes(8, "little", signed=True))
    return np.frombuffer(stream.digest(8 * size), dtype=np.uint64)


def _form(types: Mapping[str, pl.DataType]) -> Any:
    empty = pl.DataFrame(schema=dict(types)).to_arrow(compat_level=pl.CompatLevel.oldest())
    return from_arrow_schema(empty.schema)
