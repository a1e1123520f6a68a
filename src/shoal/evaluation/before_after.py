"""Counts of an original and its release over common bins: what before-and-after pictures show.

All of it is computed from the original and is as confidential as it. Counts are of people:
weighted where the policy names a sampling weight, and an interval or a group of categories gives
each bin its share.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Kind
from shoal.core._arrays import Bools, Floats
from shoal.evaluation.arrays import AlignedArrays
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.distributions import marginal_masses
from shoal.metrics.histograms import BINS, round_edges

CATEGORIES, MAP_CATEGORIES, MAP_BINS = 8, 7, 12
"""The most categories of a picture and of a map, the rest being one more; bins of a map's axis."""
PAIRS = {"strongest association in the original": 3, "largest change": 2}
"""The rules by which a pair of columns matters, and how many each chooses."""


def pictures(sides: AlignedArrays) -> dict[str, Any]:
    """What pictures of both tables show, as plain values.

    columns: each column's counts before and after, the one that changed most first. association:
    Cramer's V of each two columns in both tables, over the bins of the two-way marginals. pairs:
    maps of two columns, chosen as `PAIRS` says; `why` names the rule.
    """
    axes = range(len(sides.names))
    columns = [_column(sides, axis) for axis in axes]
    order = sorted(axes, key=lambda axis: -columns[axis]["distance"])
    found = list(combinations(axes, 2))
    tables = {pair: _two_way(sides, pair) for pair in found}
    before, after = ({pair: _cramer(tables[pair][side]) for pair in found} for side in (0, 1))
    moved = {pair: _distance(*tables[pair]) for pair in found}
    chosen = _chosen(before, moved)
    return {
        "columns": [columns[axis] for axis in order],
        "association": {
            "names": list(sides.names),
            "before": _matrix(before, len(axes)),
            "after": _matrix(after, len(axes)),
        },
        "pairs": [_map(sides, pair, why, before, after) for pair, why in chosen.items()],
    }


def _chosen(
    strength: Mapping[tuple[int, int], float], moved: Mapping[tuple[int, int], float]
) -> dict[tuple[int, int], str]:
    """The pairs that matter, each with the rule that chose it."""
    chosen: dict[tuple[int, int], str] = {}
    for by, (why, most) in zip((strength, moved), PAIRS.items(), strict=True):
        ordered = sorted(by, key=lambda pair: (-by[pair], pair))
        left = [pair for pair in ordered if pair not in chosen and by[pair] > 0]
        chosen |= dict.fromkeys(left[:most], why)
    return chosen


def _two_way(sides: AlignedArrays, pair: tuple[int, int]) -> tuple[Floats, Floats]:
    edges, *masses = sides.marginals
    count = len(sides.names)
    # Two-way marginals follow the one-way ones, in the order of `combinations`.
    a, b = pair
    place = count + a * (2 * count - a - 1) // 2 + b - a - 1
    shape = tuple(len(edges[axis]) + 1 for axis in pair)
    before, after = (mass[place].reshape(shape) for mass in masses)
    return before, after


def _cramer(table: Floats) -> float:
    """Cramer's V, corrected for bias: 0 where two columns are independent, else up to 1.

    phi^2 less (r - 1)(c - 1) / (n - 1), and r and c less (r - 1)^2 / (n - 1): Bergsma, "A
    bias-correction for Cramer's V and Tschuprow's T", 2013, doi:10.1016/j.jkss.2012.10.002. Weights
    below zero, which noisy boxes may have, count as zero.
    """
    table = np.maximum(table, 0.0)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    total = table.sum()
    if min(table.shape) < 2 or total <= 1:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    squares = float(((table - expected) ** 2 / expected).sum() / total)
    rows, columns = (size - (size - 1) ** 2 / (total - 1) for size in table.shape)
    squares -= (table.shape[0] - 1) * (table.shape[1] - 1) / (total - 1)
    least = min(rows, columns) - 1
    return 0.0 if squares <= 0 or least <= 0 else min(float(np.sqrt(squares / least)), 1.0)


def _distance(before: NDArray[Any], after: NDArray[Any]) -> float:
    """Total variation of two tables of counts; 1 where only one of them has any."""
    p, q = (np.maximum(np.asarray(side, dtype=np.float64), 0.0) for side in (before, after))
    if not p.sum() or not q.sum():
        return float(p.sum() != q.sum())
    return float(np.abs(p / p.sum() - q / q.sum()).sum() / 2)


def _matrix(values: Mapping[tuple[int, int], float], count: int) -> list[list[float]]:
    matrix = np.eye(count)
    for (a, b), value in values.items():
        matrix[a, b] = matrix[b, a] = round(value, 3)
    return [list(map(float, line)) for line in matrix]


def _column(sides: AlignedArrays, axis: int) -> dict[str, Any]:
    span, edges = _axis(sides, axis, categories=CATEGORIES, bins=BINS)
    counts, missing = [], []
    for boxes, gone in _tables(sides):
        there: Bools = ~gone[:, axis]
        (mass,) = marginal_masses(_some(boxes, [axis], there), [edges])
        counts.append(_folded(mass, span))
        missing.append(float(boxes.weights[~there].sum()))
    distance = _distance(*(np.append(c, m) for c, m in zip(counts, missing, strict=True)))
    return {
        "name": sides.names[axis],
        **_shown(span),
        "before": _rounded(counts[0]),
        "after": _rounded(counts[1]),
        "missing": _rounded(missing),
        "distance": distance,
    }


def _map(
    sides: AlignedArrays,
    pair: tuple[int, int],
    why: str,
    strength: Mapping[tuple[int, int], float],
    kept: Mapping[tuple[int, int], float],
) -> dict[str, Any]:
    spans, edges = zip(
        *(_axis(sides, axis, categories=MAP_CATEGORIES, bins=MAP_BINS) for axis in pair),
        strict=True,
    )
    tables = []
    for boxes, gone in _tables(sides):
        there: Bools = ~(gone[:, pair[0]] | gone[:, pair[1]])
        *_, mass = marginal_masses(_some(boxes, list(pair), there), edges)
        table = mass.reshape([len(edge) + 1 for edge in edges])
        rows = np.array([_folded(line, spans[1]) for line in table])
        tables.append(np.array([_folded(line, spans[0]) for line in rows.T]).T)
    return {
        "names": [sides.names[axis] for axis in pair],
        "axes": [_shown(span) for span in spans],
        "before": [_rounded(line) for line in tables[0]],
        "after": [_rounded(line) for line in tables[1]],
        "association": [round(by[pair], 3) for by in (strength, kept)],
        "distance": _distance(*tables),
        "why": why,
    }


def _axis(
    sides: AlignedArrays, axis: int, *, categories: int, bins: int
) -> tuple[dict[str, Any], Floats]:
    """How an axis is shown, and its inner edges."""
    name = sides.names[axis]
    if not sides.discrete[axis]:
        edges = round_edges(sides.places[:, axis], sides.midpoints[:, axis], bins=bins)
        kind = "dates" if sides.schema[name].kind is Kind.DATE else "numbers"
        return {"kind": kind, "edges": edges.tolist()}, edges[1:-1]
    places, tree = int(sides.highs[axis]), sides.reading.tree
    known = tree.values if tree is not None and tree.column == name else sides.categories(axis)
    names = [*known, *["missing"] * places][:places]
    inner = np.arange(1.0, places)
    (mass,) = marginal_masses(
        WeightedBoxes(sides.original.lower[:, [axis]], sides.original.upper[:, [axis]],
                      sides.original.weights, (True,)), [inner],
    )  # fmt: skip
    order = np.argsort(-mass, kind="stable")[:categories]
    if len(names) == categories + 1:
        order = np.argsort(-mass, kind="stable")
    if sides.schema[name].kind is Kind.ORDINAL:
        order = np.sort(order)
    return {"kind": "categories", "labels": names, "order": order.tolist()}, inner


def _shown(span: Mapping[str, Any]) -> dict[str, Any]:
    """An axis as pictures label it."""
    if "order" not in span:
        return dict(span)
    labels = [span["labels"][place] for place in span["order"]]
    rest = len(span["labels"]) - len(labels)
    return {"kind": span["kind"], "labels": [*labels, *([f"{rest} more"] if rest else [])]}


def _folded(mass: Floats, span: Mapping[str, Any]) -> Floats:
    """Counts in the order of an axis, the categories that it does not name as one."""
    if "order" not in span:
        return mass
    named = mass[span["order"]]
    rest = len(mass) > len(named)
    return np.append(named, mass.sum() - named.sum()) if rest else named


def _tables(sides: AlignedArrays) -> tuple[tuple[WeightedBoxes, Bools], ...]:
    """Both tables, each with its cells that say nothing."""
    return (sides.original, np.isnan(sides.places)), (sides.released, sides.suppressed)


def _some(boxes: WeightedBoxes, axes: Sequence[int], rows: Bools) -> WeightedBoxes:
    discrete = tuple(boxes.discrete[axis] for axis in axes)
    lower, upper = (end[rows][:, list(axes)] for end in (boxes.lower, boxes.upper))
    return WeightedBoxes(lower, upper, boxes.weights[rows], discrete)


def _rounded(counts: Sequence[float] | Floats) -> list[float]:
    return [round(float(count), 1) for count in counts]
