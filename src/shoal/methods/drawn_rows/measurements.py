"""Publish the noisy answers behind drawn rows as a table; the privacy budget has paid for them.

One row per answer. Columns:

    measurement   the number of the measurement that the answer belongs to
    sort          table or tree: a count of records. blocks: a sum of a column's grid units over
                  records that follow one another in rank. concordances: concordant less
                  discordant pairs of records, of two columns. loss: records that groups of
                  values misplace, over all pairs of columns (`shoal.synthesis.maxent.measure`)
    answer        with noise; a whole number, which may be negative
    scale         of the two-sided geometric noise that it has, or of the noise that `noise` names
    noise         which noise it has; only present if some of it is discrete Gaussian
    cell_NAME     for each released column, which values were counted; empty if not counted

Users who fit their own model can weight each answer by its scale, which drawn rows do not show.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import GAUSSIAN, Kind
from shoal.core._arrays import Ints, Texts
from shoal.methods.trees.spatial_encoding import SpatialEncoding
from shoal.synthesis.domain import Measurement, Sort


def tabulate(
    measurements: Sequence[Measurement], space: Sequence[SpatialEncoding]
) -> dict[str, NDArray[Any]]:
    """Write one row per answer; see the module."""
    sizes = [measured.counts.size for measured in measurements]
    table: dict[str, NDArray[Any]] = {
        "measurement": np.repeat(np.arange(len(sizes)), sizes),
        "sort": _repeat([measured.sort.value for measured in measurements], sizes),
        "answer": np.concatenate([measured.counts.ravel() for measured in measurements]),
        "scale": np.repeat([float(measured.scale) for measured in measurements], sizes),
    }
    laws = [measured.mechanism for measured in measurements]
    if GAUSSIAN in laws:
        table["noise"] = _repeat(laws, sizes)
    described = [_cells(measured, space) for measured in measurements]
    for j, axis in enumerate(space):
        parts = [
            cells.get(j, np.full(size, None, dtype=object))
            for cells, size in zip(described, sizes, strict=True)
        ]
        table[f"cell_{axis.column.name}"] = np.concatenate(parts)
    return table


def stack_strata(
    tables: Mapping[str, Mapping[str, NDArray[Any]]], column: str
) -> dict[str, NDArray[Any]]:
    """Concatenate the tables of several strata, with the stratum of each answer."""
    joined: dict[str, NDArray[Any]] = {}
    names = next(iter(tables.values()))
    before = 0
    numbers = []
    for table in tables.values():
        numbers.append(table["measurement"] + before)
        before += int(table["measurement"].max()) + 1
    for name in names:
        parts = numbers if name == "measurement" else [table[name] for table in tables.values()]
        joined[name] = np.concatenate(parts)
    sizes = [len(table["answer"]) for table in tables.values()]
    joined[f"cell_{column}"] = _repeat(list(tables), sizes)
    return joined


def _cells(measured: Measurement, space: Sequence[SpatialEncoding]) -> dict[int, Texts]:
    """Describe what each answer counts, for each measured column."""
    columns = measured.columns
    if measured.sort is Sort.TREE:
        lower, upper = measured.groups
        return {j: _sides(space[j], lower[:, i], upper[:, i]) for i, j in enumerate(columns)}
    if measured.sort is Sort.BLOCKS:
        ends = measured.groups[0].tolist()
        pairs = pairwise(ends)
        return {columns[0]: _texts([f"ranks {a + 1} to {b}" for a, b in pairs])}
    if measured.sort is Sort.CONCORDANCES:
        cells = {j: np.full(measured.counts.size, None, dtype=object) for j in columns}
        for number, (a, b) in enumerate(combinations(columns, 2)):
            cells[a][number] = f"with {space[b].column.name}"
            cells[b][number] = f"with {space[a].column.name}"
        return cells
    places = np.indices(measured.counts.shape).reshape(len(columns), -1)
    return {
        j: _groups(space[j], groups)[place]
        for j, groups, place in zip(columns, measured.groups, places, strict=True)
    }


def _groups(axis: SpatialEncoding, groups: Ints) -> Texts:
    """Describe each bin of a marginal's axis: runs of codes by their ends, or a list of codes."""
    if groups[-1] == axis.count:
        return _sides(axis, groups[:-1], groups[1:])
    order = np.argsort(groups, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    return _texts([_list_categories(axis, codes.tolist()) for codes in members])


def _sides(axis: SpatialEncoding, lower: Ints, upper: Ints) -> Texts:
    """Write runs lower <= code < upper, formatting each distinct one once."""
    ends, back = np.unique(np.column_stack([lower, upper]), axis=0, return_inverse=True)
    texts = [
        axis.text(a, b) if axis.order is None else _list_categories(axis, range(a, b))
        for a, b in ends.tolist()
    ]
    return _texts(texts)[back.ravel()]


def _list_categories(axis: SpatialEncoding, codes: Sequence[int]) -> str:
    """List categories by name; of a run of an ordinal, the first and the last."""
    names = [axis.text(code, code + 1) for code in codes]
    if axis.order is None:  # a number that was counted in groups of single codes
        return " | ".join(names)
    run = axis.present not in codes and len(codes) > 2 and codes[-1] - codes[0] == len(codes) - 1
    if run and axis.column.kind is Kind.ORDINAL:
        return f"{names[0]} to {names[-1]}"
    return " | ".join(names)


def _texts(values: Sequence[str]) -> Texts:
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return texts


def _repeat(values: Sequence[str], sizes: Sequence[int]) -> Texts:
    return np.repeat(_texts(values), sizes)
