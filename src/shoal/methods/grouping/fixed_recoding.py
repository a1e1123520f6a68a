"""Recode a table as an earlier release recoded its own: by the same cuts and borders.

What is kept of a column are the places of its categories, or where numbers end and missing cells
begin; of a group the least and the largest number, the categories and whether cells were missing.
A group of the new table is covered by what covers it and that of the earlier one together, so a
label says the truth of both, and reads as before unless the new rows reach beyond it.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Kind
from shoal.core._arrays import Floats, Ints
from shoal.errors import ClaimViolationError, InputError, count_noun
from shoal.io.table import Table
from shoal.methods.grouping.partition_encoding import encoding
from shoal.methods.grouping.recode import distinct_cells
from shoal.methods.grouping.steering import judge_of, requirement_of, steering
from shoal.methods.method import Masked, Setting
from shoal.partition import full_domain

GROUP, CELL = "group", "cell"
RECODED_AS_BEFORE = (
    "The table was recoded by the scheme of an earlier release, which was chosen for another table."
)


def describe_places(table: Table, columns: Sequence[str]) -> dict[str, Any]:
    """Record how the cells of some columns were encoded as numbers for cutting."""
    kept: dict[str, Any] = {}
    for name in columns:
        raw = table.raw(name)
        largest = float(np.nanmax(raw, initial=0.0))
        encoded = encoding(table, name, largest=largest, gone=bool(np.isnan(raw).any()))
        kept[name] = {"last": encoded.last}
        if encoded.order is not None:
            kept[name] |= {"categories": table.categories(name), "places": encoded.order}
    return kept


def same_places(table: Table, columns: Sequence[str], kept: Mapping[str, Any]) -> Floats:
    """Encode the cells of another table as those of the earlier one were.

    A number beyond all earlier ones is treated as the largest of them, not as missing.

    Raises: InputError: it has categories that the earlier table lacked.
    """
    axes = []
    for name in columns:
        described, raw, last = kept[name], table.raw(name), float(kept[name]["last"])
        gone = np.isnan(raw)
        if "places" not in described:
            axes.append(np.where(gone, last, np.minimum(raw, np.nextafter(last, -np.inf))))
            continue
        known = dict(zip(described["categories"], described["places"], strict=True))
        place = np.array([known.get(c, np.nan) for c in table.categories(name)] + [last], float)
        cells = place[np.where(gone, -1, raw).astype(np.int64)]
        strange = int(np.isnan(cells).sum())
        if strange:
            raise InputError(
                f"Column '{name}': expected categories that the scheme knows, found others in "
                f"{count_noun(strange, 'row')}. Recode them in the policy, or protect the table "
                "anew."
            )
        axes.append(cells)
    return np.column_stack(axes)


def describe_cells(table: Table, columns: Sequence[str], labels: Ints) -> dict[str, Any]:
    """Record what the cover of each group depends on: ends, categories, and missing cells."""
    kept: dict[str, Any] = {}
    for name in columns:
        cells = pl.DataFrame({GROUP: labels, CELL: table.frame[name]})
        gone = cells.filter(pl.col(CELL).is_null())[GROUP].unique().sort()
        if table.schema[name].kind is not Kind.NOMINAL:
            low, high = pl.col(CELL).min().alias("low"), pl.col(CELL).max()
            ends = cells.drop_nulls().group_by(GROUP).agg(low, high)
            least = ends.filter(pl.col("low") != pl.col(CELL)).select(
                GROUP, pl.col("low").alias(CELL)
            )
            held = pl.concat([least, ends.drop("low")]).sort(GROUP, CELL)
        else:
            held = distinct_cells(cells)
        held = held.with_columns(pl.col(CELL).cast(pl.String))
        kept[name] = {"missing": gone, GROUP: held[GROUP], CELL: held[CELL]}
    return kept


def beside(table: Table, name: str, kept: Mapping[str, Any], labels: Ints) -> pl.DataFrame:
    """Join the cells of a column by group with those recorded for the same groups.

    Groups are numbered from 0 without gaps, in the order of their earlier numbers.
    """
    cells, spec = table.frame[name], kept[name]
    texts = pl.Series(spec[CELL], dtype=pl.String)
    dtype = cells.dtype
    if dtype.is_integer() and texts.str.contains(r"[.eE]").any():
        dtype = pl.Float64()
        cells = cells.cast(dtype)
    if isinstance(dtype, pl.Date):
        earlier = texts.str.to_date("%Y-%m-%d", strict=False)
    elif isinstance(dtype, pl.Datetime):
        earlier = texts.str.to_datetime(time_unit=dtype.time_unit, strict=False)
    else:
        earlier = texts.cast(dtype, strict=False)
    if earlier.null_count():
        raise InputError(
            f"Column '{name}': expected cells of the type and the categories that the scheme was "
            "made from, found others."
        )
    groups = [pl.Series(n, dtype=pl.Int64) for n in (spec[GROUP], spec["missing"])]
    nothing = pl.Series([None] * len(groups[1]), dtype=dtype)
    combined = pl.DataFrame(
        {
            GROUP: pl.concat([pl.Series(labels, dtype=pl.Int64), *groups]),
            CELL: pl.concat([cells, earlier, nothing]),
        }
    )
    held = np.unique(labels)
    kept_rows = combined.filter(pl.col(GROUP).is_in(held.tolist()))
    dense = np.searchsorted(held, kept_rows[GROUP].to_numpy())
    return kept_rows.with_columns(pl.Series(GROUP, dense, dtype=pl.Int64))


def without_lacking(made: Table, table: Table, setting: Setting[Any]) -> Masked:
    """Suppress the classes of a recoded table that violate a promise, within the limit.

    Raises:
        ClaimViolationError: they are more than `record_suppression` allows.
    """
    parameters = setting.parameters
    codes = np.column_stack(
        [made.frame[n].cast(pl.String).fill_null("\0").rank("dense") - 1 for n in setting.columns]
    ).astype(np.int64)
    require = [requirement_of(table, guarantee) for guarantee in steering(setting)]
    judge = judge_of(table, require)
    limit = int(Fraction(parameters.record_suppression) * len(table))

    def keep_at_most(most: int) -> Ints | None:
        solution = full_domain(
            codes,
            [np.arange(int(column.max()) + 1)[None] for column in codes.T],
            parameters.k,
            limit=most,
            require=() if judge else require,
            units=table.persons,
            judge=judge,
        )
        return None if solution is None else np.flatnonzero(solution.labels >= 0)

    stays = keep_at_most(limit)
    if stays is None:
        least = keep_at_most(len(table))
        raise ClaimViolationError(
            no_longer(setting, len(table), 0 if least is None else len(least))
            + " Or protect the table anew, by a scheme of its own."
        )
    rest = None if len(stays) == len(table) else stays
    return Masked(made if rest is None else made.take(rest), kept=rest, notes=(RECODED_AS_BEFORE,))


def no_longer(setting: Setting[Any], rows: int, stays: int) -> str:
    """Say what a recoded table violates, and which suppression would mend it."""
    promised = [f"{setting.parameters.k}-anonymity", *map(str, steering(setting))]
    lost, allowed = rows - stays, int(Fraction(setting.parameters.record_suppression) * rows)
    # Rounded up to three digits, so the stated share is enough.
    share = -((-1000 * lost) // rows) / 1000
    return (
        f"By this scheme {' and '.join(promised)} no longer {'hold' if promised[1:] else 'holds'}: "
        f"{count_noun(lost, 'row')} of {rows:,} would have to be suppressed, and {allowed:,} may "
        "be. Nothing was written. "
        + (
            f"Suppress them (record_suppression = {share:g})."
            if stays
            else "No row could be released, so suppression does not help."
        )
    )
