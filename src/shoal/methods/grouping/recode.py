"""Give every record of a group the same value: make a masked table of a partition.

A number becomes the group's mean, median or mode; an ordinal the median category; a nominal
the category of least total path length in its hierarchy. A cell is missing in the release if at
least half of its group lacks it, and otherwise the present members decide, so a
published mean, median or mode always comes from at least two people. A medoid is one member's
whole record, missing cells too.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from typing import cast

import numpy as np
import polars as pl

from shoal.core import Hierarchy, Kind, Partition
from shoal.core._arrays import Floats, Ints, freeze
from shoal.io.dates import PERIODS
from shoal.io.table import Table, leaf_edges
from shoal.partition.kernels.univariate import central_codes
from shoal.partition.merging import medoids


class Aggregate(StrEnum):
    """The value that represents a group."""

    MEAN = "mean"
    MEDIAN = "median"
    MEDOID = "medoid"
    MODE = "mode"


def recode(
    table: Table,
    columns: Sequence[str],
    partition: Partition,
    *,
    aggregate: Aggregate = Aggregate.MEAN,
    integers: bool = False,
) -> Table:
    """Replace the values of some columns by one value per group.

    Args:
        table: the records, in the order of the partition's labels.
        columns: which columns to replace; the others stay.
        partition: the groups.
        aggregate: `mean` is the mean of numbers, to ten digits, and of dates, the median category
            of an ordinal and the category of least total distance of a nominal. `median` and `mode`
            apply to numbers as well. `medoid` takes all columns from the record that is nearest to
            the group's centroid, ties to the first.
        integers: keep whole numbers whole, and means of a column with a step to its decimals,
            rounding half to even; dates that were rounded to a period are its first days again.
            Means are then only kept up to rounding.
    """
    if aggregate is Aggregate.MEDOID:
        chosen = medoids(table.records(columns), partition)[partition.labels]
        frame = table.frame.with_columns(table.frame.select(columns)[chosen])
        return replace(table, frame=frame)
    for name in columns:
        kind = table.schema[name].kind
        if kind is Kind.NOMINAL or (kind is Kind.ORDINAL and aggregate is Aggregate.MODE):
            edges = None if aggregate is Aggregate.MODE else leaf_edges(table, name)
            central = central_category(table.codes(name), partition, edges)
            table = table.with_codes(name, central[partition.labels])
        elif kind is Kind.ORDINAL:
            middle = median_category(table.codes(name), partition)
            table = table.with_codes(name, middle[partition.labels])
        else:
            centre = _NUMERIC[aggregate](table.numbers(name), partition)
            if kind is Kind.NUMERIC and aggregate is Aggregate.MEAN:
                step = table.schema[name].step if integers else None
                centre = shorten(centre) if step is None else to_decimals_of(step, centre)
            elif integers and (period := table.schema[name].date_step) is not None:
                centre = to_first_days(period, centre)
            table = table.with_numbers(name, centre[partition.labels], integers=integers)
    return table


def shorten(values: Floats) -> Floats:
    """Round to ten significant digits: a mean is then off by at most 5e-10 of itself.

    Sums of decimals leave noise behind the digits that mean something. Numbers below 1e-12 and
    from 1e10 on stay as they are.

    >>> shorten(np.array([79.08000000000001, 1 / 3])).tolist()
    [79.08, 0.3333333333]
    """
    size = np.abs(values)
    usual = (size >= 1e-12) & (size < 1e10)
    digits = 9 - np.floor(np.log10(np.where(usual, size, 1.0)))
    return np.where(usual, np.rint(values * 10.0**digits) / 10.0**digits, values)


def to_decimals_of(step: Decimal, values: Floats) -> Floats:
    """Round to as many decimals as a step has, half to even.

    >>> to_decimals_of(Decimal("0.50"), np.array([170.25, -0.04])).tolist()
    [170.2, 0.0]
    """
    decimals = max(0, -int(step.normalize().as_tuple().exponent))
    return np.round(values, decimals) + 0.0  # never -0.0


def to_first_days(date_step: str, values: Floats) -> Floats:
    """Round days, counted from 1970, to the nearest first day of a week, month, quarter or year.

    >>> to_first_days("month", np.array([14.0, 20.0, np.nan])).tolist()
    [0.0, 31.0, nan]
    """
    half = {"week": 3, "month": 15, "quarter": 45, "year": 182}[date_step]
    days = pl.Series(values + half, nan_to_null=True).floor().cast(pl.Int32).cast(pl.Date)
    first = days.dt.truncate(PERIODS[date_step])
    return first.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()


Cells = Callable[[str], pl.DataFrame]
"""Gives the cells of a column by group, if they are more than those of the table."""


def generalise(
    table: Table, columns: Sequence[str], partition: Partition, cells: Cells | None = None
) -> Table:
    """Replace the values of some columns by the cover of their group, written as text.

    A group in which all cells are equal keeps them. Otherwise numbers, dates and ordinals
    become "[low, high]", a nominal the lowest node of its hierarchy above all members, or the
    set "{a, b}" without one. A group in which some cells are missing becomes "*".
    """
    frame = table.frame
    for name in columns:
        held = _cells(table, name, partition) if cells is None else cells(name)
        frame = frame.with_columns(_cover(table, name, partition, held).alias(name))
    return replace(table, frame=frame)


def _cells(table: Table, name: str, partition: Partition) -> pl.DataFrame:
    return pl.DataFrame({"group": partition.labels, "cell": table.frame[name]})


def name_buckets(
    table: Table, name: str, partition: Partition, cells: Cells | None = None
) -> Table:
    """Replace a column's values by the name of their bucket.

    Numbers, dates and ordinals become "[low, high]", the least and the largest value of the
    bucket. Of a nominal's hierarchy the largest branches are named whose occurring leaves all lie
    in the bucket, "{South, Lille}"; without a hierarchy the categories. A single
    value or branch is written as it is, and "or missing" is added where the bucket holds missing
    cells too. A column in which every bucket is one value is left as it is. Buckets that share no
    value read differently.
    """
    inside = _cells(table, name, partition) if cells is None else cells(name)
    held = (
        inside.group_by("group")
        .agg(
            pl.col("cell").min().alias("low"),
            pl.col("cell").max().alias("high"),
            pl.col("cell").null_count().alias("gone"),
            pl.col("cell").n_unique().alias("distinct"),
        )
        .sort("group")
    )
    if held["distinct"].max() == 1:
        return table
    held = _ends(held)
    wide = held.select(pl.format("[{}, {}]", "low", "high")).to_series()
    if table.schema[name].kind is Kind.NOMINAL:
        wide = pl.Series(_name_buckets(table, name, inside), dtype=pl.String)
    label = pl.when(pl.col("low") == pl.col("high")).then(pl.col("low").cast(pl.String))
    present = pl.when(pl.col("low").is_null()).then(None).otherwise(label.otherwise(wide))
    missing = pl.when(pl.col("gone") > 0).then(pl.lit(" or missing")).otherwise(pl.lit(""))
    text = held.select(present + missing).to_series()
    frame = table.frame.with_columns(text[partition.labels].alias(name))
    return replace(table, frame=frame)


def _name_buckets(table: Table, name: str, cells: pl.DataFrame) -> list[str]:
    """Name each bucket of a nominal by its largest whole branches, or by its categories."""
    hierarchy, pairs = table.schema[name].hierarchy, distinct_cells(cells).rows()
    held: list[list[str]] = [[] for _ in range(cast("int", cells["group"].max()) + 1)]
    for bucket, category in pairs:
        held[bucket].append(category)
    if hierarchy is None:
        return ["{" + ", ".join(some) + "}" for some in held]
    below: dict[str, set[str]] = {}
    paths = {path[0]: path for path in hierarchy.paths}
    for leaf in {category for _, category in pairs}:
        for node in paths[leaf]:
            below.setdefault(node, set()).add(leaf)
    texts = []
    for some in held:
        # From the root down, the first node with nothing beside the bucket.
        tops = [next(n for n in paths[v][::-1] if below[n] <= set(some)) for v in some]
        nodes = list(dict.fromkeys(tops))
        texts.append(nodes[0] if len(nodes) == 1 else "{" + ", ".join(nodes) + "}")
    return texts


def _cover(table: Table, name: str, partition: Partition, cells: pl.DataFrame) -> pl.Series:
    """Write for each record the cover of its group's cells."""
    column = table.schema[name]
    groups = cells.group_by("group").agg(
        pl.col("cell").min().alias("low"),
        pl.col("cell").max().alias("high"),
        pl.col("cell").null_count().alias("gone"),
        pl.len().alias("size"),
    )
    same = groups.select(
        ((pl.col("gone") == 0) & (pl.col("low") == pl.col("high")))
        | (pl.col("gone") == pl.col("size"))
    ).to_series()
    low, high = _ends(groups)["low", "high"]
    if column.kind is Kind.NOMINAL:
        wide = _covers(column.hierarchy, cells, groups["group"])
    else:
        wide = "[" + low + ", " + high + "]"
    written = pl.select(
        pl.when(same).then(low).when(groups["gone"] > 0).then(pl.lit("*")).otherwise(wide)
    ).to_series()
    place = np.empty(len(partition), dtype=np.int64)
    place[groups["group"].to_numpy()] = np.arange(groups.height)
    return written[place[partition.labels]]


def _ends(groups: pl.DataFrame) -> pl.DataFrame:
    """Write the columns `low` and `high` as texts, without times that are always zero."""
    ends = pl.col("low", "high")
    texts = groups.with_columns(ends.cast(pl.String))
    if isinstance(groups.schema["low"], pl.Datetime):
        for zero in (r"\.0+$", " 00:00:00$"):
            if texts.select(pl.all_horizontal(ends.str.contains(zero).all())).item():
                texts = texts.with_columns(ends.str.replace(zero, ""))
    return texts


def _covers(hierarchy: Hierarchy | None, cells: pl.DataFrame, groups: pl.Series) -> pl.Series:
    """Find the cover of each group's categories: without a hierarchy their set, else a node."""
    names = pl.col("cell").cast(pl.List(pl.String)).list
    inside = distinct_cells(cells).group_by("group", maintain_order=True).agg("cell")
    if hierarchy is None:
        inside = inside.with_columns(cell="{" + names.join(", ") + "}")
    else:  # many groups have the same ones
        inside = inside.with_columns(cell=names.join("\0"))
        cover = {held: _above(hierarchy, held.split("\0")) for held in inside["cell"].unique()}
        inside = inside.with_columns(pl.col("cell").replace_strict(cover, return_dtype=pl.String))
    asked = pl.DataFrame({"group": groups})
    return asked.join(inside, on="group", how="left", maintain_order="left")["cell"]


def _above(hierarchy: Hierarchy, held: Sequence[str]) -> str:
    """Return the lowest node above some leaves."""
    paths = {path[0]: path for path in hierarchy.paths}
    first, *rest = (paths[value] for value in held)
    return next(node for node in first if all(node in other for other in rest))


def distinct_cells(cells: pl.DataFrame) -> pl.DataFrame:
    """List the distinct cells of each group that are not missing, in order."""
    present, dtype = cells.drop_nulls(), cells.schema["cell"]
    if not isinstance(dtype, pl.Enum):
        return present.unique().sort("group", "cell")
    width = max(len(dtype.categories), 1)
    keys = present["group"] * width + present["cell"].to_physical().cast(pl.Int64)
    keys = keys.unique().sort()
    names = dtype.categories.gather(keys % width).cast(dtype)
    return pl.DataFrame({"group": keys // width, "cell": names})


def means(values: Floats, partition: Partition) -> Floats:
    """Compute the mean of each group's present members; NaN if half or more are missing."""
    total, count = np.bincount(partition.labels, values), partition.sizes
    if np.isnan(total).any():
        present = ~np.isnan(values)
        total = np.bincount(partition.labels, np.where(present, values, 0.0))
        count = np.bincount(partition.labels, present)
    return np.where(2 * count > partition.sizes, total / np.maximum(count, 1), np.nan)


def medians(values: Floats, partition: Partition) -> Floats:
    """Compute the median of each group's present members, the mean of two middle values."""
    ordered, starts, count = _sort_by_group(values, partition)
    low = ordered[starts + np.maximum(count - 1, 0) // 2]
    middle = (low + ordered[starts + np.maximum(count, 1) // 2]) / 2
    return np.where(2 * count > partition.sizes, middle, np.nan)


def median_category(codes: Ints, partition: Partition) -> Ints:
    """Compute the median code of each group, the lower of two; -1 if half or more are missing.

    >>> median_category(np.array([2, 1, -1, -1]), Partition([0, 0, 0, 1])).tolist()
    [1, -1]
    """
    width = int(codes.max(initial=-1)) + 2
    keys = partition.labels * width + np.where(codes < 0, width - 1, codes)  # missing comes last
    if len(partition) * width <= 4 * codes.size:
        cells = np.arange(len(partition) * width)
        held = np.bincount(keys, minlength=cells.size)
        cells, held = cells[held > 0], held[held > 0]
    else:
        cells, held = np.unique(keys, return_counts=True)
    count = np.bincount(cells // width, held * (cells % width < width - 1), len(partition))
    starts = np.cumsum(partition.sizes) - partition.sizes
    place = starts + np.maximum(count.astype(np.int64) - 1, 0) // 2
    middle = cells[np.searchsorted(np.cumsum(held), place, side="right")] % width
    return np.where(2 * count > partition.sizes, middle, -1)


def modes(values: Floats, partition: Partition) -> Floats:
    """Compute the most frequent present value of each group, the smallest among ties."""
    ordered, _, count = _sort_by_group(values, partition)
    labels = np.sort(partition.labels)
    present = ~np.isnan(ordered)
    kept, groups = ordered[present], labels[present]
    first = np.ones(kept.size, dtype=bool)
    first[1:] = (kept[1:] != kept[:-1]) | (groups[1:] != groups[:-1])
    run = np.flatnonzero(first)
    length = np.diff(np.append(run, kept.size))
    # Runs by group, longest first; a stable sort keeps smaller values ahead.
    best = np.lexsort((-length, groups[run]))
    leading = best[np.unique(groups[run][best], return_index=True)[1]]
    result = np.full(len(partition), np.nan)
    result[groups[run[leading]]] = kept[run[leading]]
    return np.where(2 * count > partition.sizes, result, np.nan)


def central_category(codes: Ints, partition: Partition, edges: Ints | None) -> Ints:
    """Find the category of least total distance to its group; ties to the lowest code.

    With s members in the group, c_e of them below edge e, a category's total path length to
    the members is a constant plus the sum of s - 2 c_e over the edges above it. Without
    edges, the most frequent category. Only categories that occur in the group compete.
    Cost O(n times depth).

    Codes are -1 where missing; edges are those between each category and the root, padded with -1.
    """
    if edges is None:
        edges = np.arange(codes.max(initial=-1) + 1)[:, None]
    below = np.zeros(int(edges.max(initial=-1)) + 1, np.int64)
    return central_codes(freeze(codes), partition.labels, partition.sizes, freeze(edges), below)


def _sort_by_group(values: Floats, partition: Partition) -> tuple[Floats, Ints, Ints]:
    """Sort values within groups, missing last; also return group starts and present counts."""
    ordered = values[np.lexsort((values, partition.labels))]
    starts = np.cumsum(partition.sizes) - partition.sizes
    present = ~np.isnan(values)
    count = np.bincount(partition.labels[present], minlength=len(partition))
    return ordered, starts, count


_NUMERIC = {Aggregate.MEAN: means, Aggregate.MEDIAN: medians, Aggregate.MODE: modes}
