"""Run a method on this machine, in memory, and compare its release with the original."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import io
from shoal.core import (
    Check,
    Checkable,
    Column,
    Confidential,
    Kind,
    Noise,
    Policy,
    PrivacyLoss,
    ReleaseForm,
    Role,
    Schema,
    SpatialDecomposition,
    Testable,
)
from shoal.core.exits import for_method
from shoal.core.row_order import words_order
from shoal.engine.check_table import check_leaves, class_labels, recompute, value_codes
from shoal.engine.class_weights import average_weights
from shoal.engine.constraint_fit import may_be_missing
from shoal.engine.interface import Adoption
from shoal.engine.risk_limits import names_beside
from shoal.io import clamp, decomposition_table, validate
from shoal.io.column_counts import ColumnCounts
from shoal.io.original import read_original
from shoal.io.persons import at_most, first_of_each, spell_persons
from shoal.io.pseudonyms import disguise
from shoal.io.repair import repair_rows
from shoal.io.table import Table
from shoal.methods import Masked, Method, Setting, Tools
from shoal.methods.cell_keys import Count, count_keys
from shoal.methods.discovery import Discovered
from shoal.methods.noise import contributions
from shoal.metrics import information_loss
from shoal.privacy_models import Counts

T = TypeVar("T", bound=Table | SpatialDecomposition)

GENERALISED = "share of rows whose cell was generalised"
RECODED = "share of rows whose category changed"


@dataclass(frozen=True, eq=False)
class TableBesideOriginal(Generic[T]):
    """A table beside its original: first as the method sees it, then as the method left it.

    Attributes:
        raw: the original as it was read.
        original: makes its rows with types and without the policy's steps, see `io.original`; those
            that were left out because a person had more than stated are not among them.
        table: what was made of them so far.
        rows: the rows of the original that those of the table stand for, after a method.
        clamped: for each clamped column, how many cells were changed.
        dropped: how many rows were left out because a person had more than stated.
        repaired: how many rows broke each rule, and were repaired.
    """

    raw: io.Raw
    original: Callable[[], Table]
    table: T
    rows: NDArray[np.int64] | None = None
    clamped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    dropped: int = 0
    repaired: Mapping[str, int] = field(default_factory=dict)

    def close(self) -> None:
        """Do nothing: memory is freed automatically."""

    def figures(self, columns: Sequence[str], form: ReleaseForm) -> dict[str, Any]:
        """Compare with the original."""
        original = self.original()
        before = original if self.rows is None else original.take(self.rows)
        losses = losses_of(before, self.table, columns, form=form, raw=self.raw)
        for column in losses["columns"]:  # whether or not a row was left out
            column["missing_original"] = original.frame[column["name"]].null_count()
        return losses


@dataclass(frozen=True, eq=False)
class LocalOutcome:
    """The result of a method in memory, in the row order of the release form.

    Attributes:
        frame: the released rows, or boxes.
        boxes: the released boxes, if it is boxes.
        restore: turns a frame into the type that was handed in.
        suppressed: how many rows were left out.
        notes: the method's notes on this run.
        tables: what may be published beside the rows.
        evidence: the original beside it.
        units: whose row each is, where some persons have several.
        beside: the household and the weight of each row, where a risk is limited by them and
            they are not released.
        constant: columns with several values before and one now; not looked at with epsilon.
    """

    frame: pl.DataFrame
    boxes: SpatialDecomposition | None
    restore: Callable[[pl.DataFrame], Any]
    privacy_losses: tuple[PrivacyLoss, ...]
    suppressed: int
    notes: tuple[str, ...]
    tables: Mapping[str, Mapping[str, NDArray[Any]]]
    evidence: Confidential[TableBesideOriginal[Any]]
    units: Confidential[NDArray[np.int64]] | None = None
    beside: Confidential[pl.DataFrame] | None = None
    constant: tuple[str, ...] = ()
    recoding: Confidential[Mapping[str, Any]] | None = None
    recoding_public: bool = False

    @cached_property
    def counts(self) -> ColumnCounts:
        """Value counts of the released columns."""
        return ColumnCounts(self.frame)

    @property
    def distinct(self) -> tuple[str, ...]:
        """Columns whose values are all different."""
        if self.boxes is not None or self.privacy_losses or self.rows < 2:
            return ()
        return tuple(series.name for series in self.frame if _all_differ(series))

    @property
    def rows(self) -> int:
        """Rows that are released."""
        return self.frame.height

    @property
    def columns(self) -> dict[str, str]:
        """Columns that are released, with the names of their types."""
        return {name: str(dtype) for name, dtype in self.frame.schema.items()}

    @property
    def data(self) -> Any:
        """The release, in the type of frame that was handed in."""
        return self.restore(self.frame)

    @property
    def extras(self) -> dict[str, Any]:
        """Tables published beside the release, by name."""
        return {name: self.restore(make_frame(columns)) for name, columns in self.tables.items()}

    def checks(self, guarantees: Sequence[Checkable], policy: Policy) -> tuple[Check, ...]:
        """Recompute guarantees on the release; with boxes, a plan refuses risk limits."""
        if self.boxes is not None:
            counted = [guarantee for guarantee in guarantees if isinstance(guarantee, Testable)]
            return tuple(check_leaves(self.boxes, g, policy.schema) for g in counted)
        units = None if self.units is None else for_method(self.units)
        beside = None if self.beside is None else for_method(self.beside)
        return tuple(
            recompute(self.counts, g, policy, units=units, beside=beside) for g in guarantees
        )


@dataclass(frozen=True, eq=False)
class LocalRows:
    """A table with the types of its policy, in memory.

    Attributes:
        typed: the table.
        restore: turns a released frame into the type that was handed in.
    """

    typed: Confidential[TableBesideOriginal[Table]]
    restore: Callable[[pl.DataFrame], Any]

    def public_rows(self, setting: Setting[Any]) -> int | None:
        """Return the number of rows, if it is the same in neighbouring tables."""
        if not contributions.rows_are_public(setting):
            return None
        return len(for_method(self.typed).table)

    def run(
        self,
        method: Method[Any],
        setting: Setting[Any],
        tools: Tools,
        recoding: Confidential[Mapping[str, Any]] | None = None,
    ) -> LocalOutcome:
        """Sort the rows canonically and run the method on them.

        Ties in a method go to the first row; after sorting by all columns, the result does not
        depend on the order of the file. A method that must not break ties by some columns names the
        others.
        """
        tools.progress("sorting rows", 0, 1)
        columns = None if method.input.sort_by is None else method.input.sort_by(setting)
        typed = for_method(self.typed)
        order = typed.table.canonical_order(columns)
        original = typed.table.take(order)
        if recoding is not None:
            tools = replace(tools, recoding=for_method(recoding))
        masked = method.run(original, setting, tools)
        if isinstance(masked.data, Table):
            inside = bring_to_domain(masked.data, setting, method)
            masked = replace(masked, data=average_weights(inside, setting))
        rows = order if masked.kept is None else order[masked.kept]
        evidence = TableBesideOriginal(
            typed.raw,
            typed.original,
            masked.data,
            rows,
            typed.clamped,
            typed.dropped,
            typed.repaired,
        )
        boxes = units = beside = None
        if isinstance(masked.data, SpatialDecomposition):
            boxes, frame = masked.data, decomposition_table.to_frame(masked.data, original.schema)
        elif setting.release_form is ReleaseForm.COLUMN_SHUFFLED:
            frame = _unlink(masked.data.publishable(), tools.noise)
        else:
            place = _places(masked, masked.data, order, setting.release_form, tools.noise)
            released = masked.data.take(place)
            frame = released.publishable()
            units = None if released.persons is None else Confidential(released.persons)
            names = [n for n in names_beside(setting.required) if n not in frame.columns]
            if names:
                beside = Confidential(typed.raw.frame.select(names)[pl.Series(rows[place])])
        return LocalOutcome(
            frame=frame,
            boxes=boxes,
            restore=self.restore,
            privacy_losses=contributions.restate_losses(masked.privacy_losses, setting),
            suppressed=len(original) - rows.size,
            notes=masked.notes,
            tables=masked.extras,
            evidence=Confidential(evidence),
            units=units,
            beside=beside,
            constant=() if boxes or masked.privacy_losses else constant(original.frame, frame),
            recoding=None if masked.recoding is None else Confidential(masked.recoding),
            recoding_public=masked.recoding_public,
        )


def bring_to_domain(table: Table, setting: Setting[Any], method: Method[Any]) -> Table:
    """Move released rows into their public domain: code extremes, then satisfy constraints.

    This is post-processing: noise can exceed a `top_code` and violate constraints. The change
    depends on the row's values alone, so equal rows stay equal, and groups of k stay groups of k;
    `constraint_fit` refuses constraints for which that is not enough. Whole means satisfy linear
    rules that the records satisfy, and stay.
    """
    for name in method.clamps(setting) if method.noisy else ():
        table = table.with_series(validate.code_extremes(table.frame[name], table.schema[name]))
    bare = [name for name in table.schema.names if name not in setting.columns]
    absent = may_be_missing(method, setting.schema)
    rules = setting.constraints.rules
    return repair_rows(table, rules, frozen=bare, missing=absent, stepped=False)[0]


def constant(before: pl.DataFrame, after: pl.DataFrame) -> tuple[str, ...]:
    """List columns that became constant; a missing cell counts as a value."""
    both = [(before[series.name], series) for series in after if series.name in before.columns]
    return tuple(new.name for old, new in both if _all_equal(new) and not _all_equal(old))


def _all_equal(series: pl.Series) -> bool:
    # For nearly every column, the first rows decide.
    return series.head(100).n_unique() == 1 and series.n_unique() == 1


def _all_differ(series: pl.Series) -> bool:
    sizes = sorted({min(rows, len(series)) for rows in (100, 10_000, len(series))})
    firsts = map(series.head, sizes)
    return all(not some.has_nulls() and some.n_unique() == some.len() for some in firsts)


def _places(
    masked: Masked,
    table: Table,
    order: NDArray[np.int64],
    form: ReleaseForm,
    noise: Noise,
) -> NDArray[np.int64]:
    """Return for each released row its protected row, in the order of the release form.

    A random order comes from sorting random numbers below 2^62; two of n rows get the same number
    with probability below n^2 / 2^63. Where noise was paid for, rows are sorted first: the release
    is then a function of the released rows as a set and of the random order, and of nothing else.
    """
    if form is ReleaseForm.ROW_ALIGNED:
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return places
    if form is ReleaseForm.CANONICAL and masked.canonical is not None:
        return masked.canonical
    shuffled = _random_order(len(table), noise)
    if not masked.privacy_losses:
        return shuffled
    frame = table.publishable()
    rising = frame.select(pl.arg_sort_by(frame.columns)).to_series()
    return rising.cast(pl.Int64).to_numpy()[shuffled]


def _unlink(frame: pl.DataFrame, noise: Noise) -> pl.DataFrame:
    """Put each column into a separate random order; see `_places`."""
    return pl.DataFrame([series.sort()[_random_order(frame.height, noise)] for series in frame])


@dataclass(frozen=True, eq=False)
class LocalSource:
    """A table in memory, as it was handed in.

    Attributes:
        labels: of its columns and values.
        found: how the file was written, in words, if that was detected.
    """

    raw: Confidential[io.Raw]
    labels: Mapping[str, Any] = field(default_factory=dict)
    found: str = ""
    assumes: tuple[str, ...] = ()

    @staticmethod
    def of(raw: io.Raw) -> "LocalSource":
        """Wrap a table that was read."""
        return LocalSource(Confidential(raw), raw.all_labels(), raw.found, assumes=raw.assumes)

    def ask(self, how: Adoption, search: Callable[[Count], Discovered]) -> Discovered:
        """Let a search count cells of the table as it came; of a person only so many rows.

        Those are chosen by a hash of what the person's own cells read as, before anything is known
        of their domains.
        """
        raw, schema = for_method(self.raw), how.schema
        rows = None
        if schema.persons is not None and schema.persons.dropped:
            name = schema.persons.column
            unit = spell_persons(clamp.texts(raw.frame[name]), schema[name])
            read = [clamp.read(raw.frame[other], schema[other]) for other in schema.released]
            frame = pl.DataFrame({f"{at} {sort}": cells for at, reading in enumerate(read)
                                  for sort, cells in reading._asdict().items()})  # fmt: skip
            rows = first_of_each(frame, unit, schema.persons, key=how.key)
        return search(lambda questions: count_keys(raw.frame, questions, rows))

    def adopt(self, how: Adoption) -> LocalRows:
        """Convert the rows to the types of the policy, or clamp them to its public domains.

        Rows of a person beyond the number that the policy states are left out. Released columns
        have the types that came in, except clamped ones, whose types the policy alone decides.
        """
        restore = for_method(self.raw).restoring(frozenset(how.clamped or ()))
        return LocalRows(self.raw.map(lambda raw: _coerce(raw, how)), restore)


def _coerce(raw: io.Raw, how: Adoption) -> TableBesideOriginal[Table]:
    schema = how.schema
    silent = how.clamped is not None
    clamp.refuse_float_ids(schema, raw.types)

    def original() -> Table:
        return read_original(raw.frame, schema, decimal=how.decimal, silent=silent)

    if how.clamped is None:
        table = validate.validate(raw.frame, schema, decimal=how.decimal)
        if how.pseudonym_key is not None:
            table = disguise(table, raw.frame, schema, how.pseudonym_key)
        repaired, broken = how.repair(table)
        how.refuse(broken)
        changed = any(column.has_steps for column in schema.columns)
        as_read = original if changed else lambda: table
        return TableBesideOriginal(raw, as_read, repaired, repaired=broken)
    table, counts = clamp.clamp(raw.frame, schema, columns=how.clamped, decimal=how.decimal)
    table, broken = how.repair(table, raw.frame)
    if schema.persons is None:
        return TableBesideOriginal(raw, original, table, clamped=counts, repaired=broken)
    name = schema.persons.column
    unit = spell_persons(clamp.texts(raw.frame[name]), schema[name])
    kept = at_most(table, unit, schema.persons, key=how.key)
    return TableBesideOriginal(
        raw,
        lambda: original().take(kept),
        table.take(kept),
        clamped=counts,
        dropped=len(table) - kept.size,
        repaired=broken,
    )


def run(table: Table, method: Method[Any], setting: Setting[Any], tools: Tools) -> LocalOutcome:
    """Run a method on a table that already has its types; see `LocalRows.run`."""
    typed = TableBesideOriginal(io.Raw(table.frame), lambda: table, table)
    return LocalRows(Confidential(typed), lambda frame: frame).run(method, setting, tools)


def make_frame(columns: Mapping[str, NDArray[Any]]) -> pl.DataFrame:
    """Make a frame of columns; texts are given as objects."""
    return pl.DataFrame(
        {name: c.tolist() if c.dtype == object else c for name, c in columns.items()}
    )


def _random_order(rows: int, noise: Noise) -> NDArray[np.int64]:
    return words_order([noise.uniform(1 << 62, size=rows).view(np.uint64)])


def losses_of(
    before: Table,
    after: Table | SpatialDecomposition,
    columns: Sequence[str],
    *,
    form: ReleaseForm,
    raw: io.Raw,
) -> dict[str, Any]:
    """Compute the information loss of each protected column, and uniqueness before and after.

    The released rows are in the order of the original ones if they correspond. `raw` is the
    original as it came, before any step of the policy; all its rows. For a column-shuffled release
    nothing is said about combinations.
    """
    linked = form is not ReleaseForm.COLUMN_SHUFFLED
    keys = list(before.schema.with_role(Role.QUASI_IDENTIFIER)) if linked else []
    original, rows = alone(raw, before.schema, keys), raw.height
    if isinstance(after, SpatialDecomposition):
        return figures(len(before), uniques=(original, rows, 0))
    paired = form is not ReleaseForm.SYNTHETIC
    return figures(
        len(before),
        uniques=(original, rows, _unique_rows(after.frame, keys)),
        homogeneous=_homogeneous(after, keys, columns) if paired else {},
        columns=[_column_figures(before, after, name, paired=paired) for name in columns],
    )


def figures(
    rows: int | None,
    *,
    uniques: tuple[int | None, int | None, int | None],
    homogeneous: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    columns: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Collect the figures that every engine reports on a release and its original.

    `uniques` counts the original rows that are alone with their quasi-identifiers, all original
    rows, and the released rows that are alone.
    """
    names = ("original", "rows", "released")
    return {
        "rows": rows,
        "unique_on_quasi_identifiers": dict(zip(names, uniques, strict=True)),
        "homogeneous": dict(homogeneous),
        "columns": list(columns),
    }


def alone(raw: io.Raw, schema: Schema, keys: Sequence[str]) -> int | None:
    """Count the rows whose cells in some columns, as handed in, are unique.

    Cells are compared as the table holds them, before it is clamped, coded, rounded or recoded;
    missing cells are equal, and so are those that the policy lists under `missing`. None without
    columns.
    """
    cells = [
        validate.mark_missing(raw.frame[name], schema[name]) for name in keys if name in raw.names
    ]
    return _unique_rows(pl.DataFrame(cells), [cell.name for cell in cells])


def _homogeneous(
    after: Table, keys: Sequence[str], protected: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Count the classes, and their rows, that are homogeneous in a confidential value.

    Only columns that are released as they are count: there, such a class discloses the value of
    each of its members.
    """
    bare = [name for name in after.schema.with_role(Role.CONFIDENTIAL) if name not in protected]
    if not keys or not bare:
        return {}
    labels = class_labels(after.frame, keys)
    classes = {}
    for name in bare:
        codes, width = value_codes(after.frame, [name], after.schema)
        counts = Counts.of(labels, codes, width=width)
        alike = counts.homogeneous
        classes[name] = {"classes": len(alike), "rows": int(counts.persons[alike].sum())}
    return classes


def _unique_rows(frame: pl.DataFrame, keys: list[str]) -> int | None:
    """Count the rows whose combination of values is unique.

    Rows are compared by a hash of 64 bits: among n rows, a wrong count has probability
    below n^2 / 2^65, 3e-8 for a million.
    """
    if not keys:
        return None
    words = np.sort(frame.select(keys).hash_rows().to_numpy())
    new = np.concatenate([[True], words[1:] != words[:-1], [True]])[: words.size + 1]
    return int((new[1:] & new[:-1]).sum())


def column_figures(
    column: Column, missing: tuple[int, int], loss: float | None, metric: str, reason: str = ""
) -> dict[str, Any]:
    """Collect the figures of one column, with its missing cells before and after."""
    names = ("name", "kind", "missing_original", "missing_released", "reason", "loss", "metric")
    values = (column.name, column.kind, *missing, reason, loss, metric)
    return dict(zip(names, values, strict=True))


def _column_figures(before: Table, after: Table, name: str, *, paired: bool) -> dict[str, Any]:
    """Compare a column cell by cell, or its distribution if rows do not correspond."""
    column, (x, y) = before.schema[name], (before.frame[name], after.frame[name])
    figures_of = partial(column_figures, column, (x.null_count(), y.null_count()))
    if paired and y.dtype == pl.String != x.dtype:
        kept = float(x.cast(pl.String).eq_missing(y).mean() or 0.0)  # type: ignore[arg-type]
        return figures_of(1 - kept, GENERALISED)
    if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
        codes = before.codes(name), after.codes(name)
        if not paired:
            return figures_of(information_loss.total_variation(*codes), "total variation")
        return figures_of(information_loss.share_changed(*codes), RECODED)
    ratio, why = information_loss.of_spread(
        before.numbers(name), after.numbers(name), paired=paired
    )
    return figures_of(ratio, "SSE / SST" if paired else "rank-matched SSE / SST", why)
