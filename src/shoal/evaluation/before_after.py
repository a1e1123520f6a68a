"""Counts of an original and its release over common bins: what before-and-after pictures show.

All of it is computed from the original and is as confidential as it. Counts are of people:
weighted where the policy names a sampling weight, and an interval or a group of categories gives
each bin its share.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from shoal.core import Kind
from shoal.core._arrays import Floats
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
    pairs = list(combinations(axes, 2))
    before, after = (
        {pair: _cramer(sides.two_way(*pair)[side]) for pair in pairs} for side in (0, 1)
    )
    chosen = _choose_pairs(before, {pair: sides.distances[pair] for pair in pairs})
    return {
        "columns": [columns[axis] for axis in order],
        "association": {
            "names": list(sides.names),
            "before": _matrix(before, len(axes)),
            "after": _matrix(after, len(axes)),
        },
        "pairs": [_map(sides, pair, why, before, after) for pair, why in chosen.items()],
    }


def _choose_pairs(
    strength: Mapping[tuple[int, int], float], moved: Mapping[tuple[int, int], float]
) -> dict[tuple[int, int], str]:
    """The pairs that matter, each with the rule that chose it."""
    chosen: dict[tuple[int, int], str] = {}
    for by, (why, most) in zip((strength, moved), PAIRS.items(), strict=True):
        ordered = sorted(by, key=lambda pair: (-by[pair], pair))
        left = [pair for pair in ordered if pair not in chosen and by[pair] > 0]
        chosen |= dict.fromkeys(left[:most], why)
    return chosen


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


def _matrix(values: Mapping[tuple[int, int], float], count: int) -> list[list[float]]:
    matrix = np.eye(count)
    for (a, b), value in values.items():
        matrix[a, b] = matrix[b, a] = round(value, 9)
    return [list(map(float, line)) for line in matrix]


def _column(sides: AlignedArrays, axis: int) -> dict[str, Any]:
    span, inner = _axis(sides, axis, categories=CATEGORIES, bins=BINS)
    edges = sides.with_missing_edge(axis, inner)
    (before, after) = (
        marginal_masses(_some(boxes, [axis]), [edges])[0] for boxes in sides.with_missing
    )
    hidden = sides.suppressed[:, axis] & ~sides.missing[:, axis]
    return {
        "name": sides.names[axis],
        **_label_axis(span),
        "before": _round(_fold(before[:-1], span)),
        "after": _round(_fold(after[:-1], span)),
        "missing": _round([before[-1], after[-1]]),
        "suppressed": _round([sides.released.weights[hidden].sum()])[0],
        "distance": sides.distances[(axis,)],
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
    edges = [sides.with_missing_edge(a, e) for a, e in zip(pair, edges, strict=True)]
    tables = []
    for boxes in sides.with_missing:
        *_, mass = marginal_masses(_some(boxes, list(pair)), edges)
        table = mass.reshape([len(edge) + 1 for edge in edges])[:-1, :-1]
        rows = np.array([_fold(line, spans[1]) for line in table])
        tables.append(np.array([_fold(line, spans[0]) for line in rows.T]).T)
    return {
        "names": [sides.names[axis] for axis in pair],
        "axes": [_label_axis(span) for span in spans],
        "before": [_round(line) for line in tables[0]],
        "after": [_round(line) for line in tables[1]],
        "association": [round(by[pair], 9) for by in (strength, kept)],
        "distance": sides.distances[pair],
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
    tree, inner = sides.reading.tree, np.arange(1.0, sides.present[axis])
    names = tree.values if tree is not None and tree.column == name else sides.categories(axis)
    names = names or ("",)  # of a column that is missing throughout
    mass = sides.marginals[1][axis][:-1]
    order = np.argsort(-mass, kind="stable")[:categories]
    if len(names) == categories + 1:
        order = np.argsort(-mass, kind="stable")
    if sides.schema[name].kind is Kind.ORDINAL:
        order = np.sort(order)
    return {"kind": "categories", "labels": names, "order": order.tolist()}, inner


def _label_axis(span: Mapping[str, Any]) -> dict[str, Any]:
    """An axis as pictures label it."""
    if "order" not in span:
        return dict(span)
    labels = [span["labels"][place] for place in span["order"]]
    rest = len(span["labels"]) - len(labels)
    return {"kind": span["kind"], "labels": [*labels, *([f"{rest} more"] if rest else [])]}


def _fold(mass: Floats, span: Mapping[str, Any]) -> Floats:
    """Counts in the order of an axis, the categories that it does not name as one."""
    if "order" not in span:
        return mass
    named = mass[span["order"]]
    rest = len(mass) > len(named)
    return np.append(named, mass.sum() - named.sum()) if rest else named


def _some(boxes: WeightedBoxes, axes: Sequence[int]) -> WeightedBoxes:
    discrete = tuple(boxes.discrete[axis] for axis in axes)
    lower, upper = (end[:, list(axes)] for end in (boxes.lower, boxes.upper))
    return WeightedBoxes(lower, upper, boxes.weights, discrete)


def _round(counts: Sequence[float] | Floats) -> list[float]:
    """Six digits of each count: sampling weights may be small."""
    return [float(f"{count:.6g}") for count in counts]
