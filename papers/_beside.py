"""Releases without rows to compare: what Sánchez et al. (2014) plan to be compared with.

Rows of a histogram, of a tree or of a drawn table are nobody's, so that loss is measured without
looking at rows: by sorted columns, and by counting queries.
"""

from decimal import Decimal
from typing import Any

import _common as common
import numpy as np
import polars as pl
from _common import Floats, Study

import shoal

QUERIES = 200
HEADER = ("table", "release", "epsilon", "rank_sse_over_sst", "count_half", "count_fifth", "status")
GRID = "noisy grid"


def compared(
    study: Study, k: int, epsilons: tuple[str, ...], repeats: int
) -> list[tuple[Any, ...]]:
    """Losses that need no correspondence of rows, mean over runs."""
    X = study.matrix
    rng = np.random.default_rng(common.SEED)
    workloads = [boxes(X, share, rng) for share in (0.5, 0.2)]
    large = max(2, min(1000, len(X) // 10))
    releases: dict[str, tuple[str, dict[str, Any]]] = {
        "plain Laplace": ("laplace", {}),
        f"IR + Laplace, k={k}, table": ("ir-laplace", {"k": k, "release_form": "row-aligned"}),
        f"IR + Laplace, k={k}, lists": ("ir-laplace", {"k": k, "release_form": "column-shuffled"}),
        f"MDAV + Laplace, k={k}, table": ("mdav-laplace", {"k": k}),
        f"IR_MDAV + Laplace, k={k}, table": (
            "ir-mdav-laplace",
            {"k": k, "release_form": "row-aligned"},
        ),
        f"S-MDAV, k={k}, table": ("stable-laplace", {"k": k, "sensitivity": "summed"}),
        f"INS, k={large}": ("insensitive-laplace", {"k": large}),
        "quadtree": ("dp-quadtree", {}),
        "kd-tree": ("dp-kdtree", {}),
        "PrivTree": ("privtree", {}),
        "copula": ("copula", {}),
        "maximum entropy": ("maxent", {}),
        "auto": ("auto", {}),
    }
    rows: list[tuple[Any, ...]] = []
    for eps in epsilons:
        for label, (method, more) in releases.items():
            policy = study.policy(method=method, epsilon=common.epsilon(eps), **more)
            made = [shoal.protect(study.frame, policy) for _ in range(repeats)]
            tables = [np.asarray(release.data.to_numpy(), dtype=float) for release in made]
            status = str(made[0].claims[0].status)
            rows.append((study.name, label, eps, *summary(X, tables, workloads), status))
        if X.shape[1] == 2:
            side = cells(len(X), float(eps))
            tables = [noisy_grid(study, Decimal(eps), side, rng) for _ in range(repeats)]
            label = f"{GRID}, {side} x {side} cells"
            rows.append((study.name, label, eps, *summary(X, tables, workloads), "proved (below)"))
    return rows


def cells(n: int, eps: float) -> int:
    """Cells a side: sqrt(n (epsilon / 2) / 10), the rule of Li, Yang and Qardaji (2013).

    Their epsilon is for a record that is there or not; changing one costs twice that.
    """
    return max(2, round((n * eps / 2 / 10) ** 0.5))


def noisy_grid(study: Study, eps: Decimal, side: int, rng: np.random.Generator) -> Floats:
    """Records drawn from noisy counts of equal cells of the public box.

    The noise is had through the public interface: the counts are the one column of a table
    whose rows are cells, and `laplace` adds noise of scale width / epsilon' to each. With
    bounds of -2^15 and 2^15 the width is 2^16, the counts lie exactly on the grid of 2^20 steps,
    and epsilon' = 2^16 epsilon / 2 makes the scale 2 / epsilon. Changing one record of the
    people moves at most two counts, by one each, so that the counts cost epsilon (change-one
    neighbours, n public). What follows is post-processing: the nearest counts that are not
    negative and add up to n, rounded, and records spread evenly over their cells.
    """
    X = study.matrix
    low, high = (np.array([pair[at] for pair in study.bounds.values()]) for at in (0, 1))
    width = (high - low) / side
    places = np.clip(((X - low) // width).astype(int), 0, side - 1)
    shape = (side,) * X.shape[1]
    flat = np.ravel_multi_index(tuple(places.T), shape)
    counts = np.bincount(flat, minlength=side ** X.shape[1])
    reach = 2**15
    if len(X) > reach:
        raise ValueError(f"Counts of {len(X)} records do not fit in bounds of {reach}.")
    policy = {
        "version": 1,
        "columns": {
            "count": {"role": "confidential", "kind": "numeric", "bounds": [-reach, reach]}
        },
        "protect": {"method": "laplace", "epsilon": eps * reach},
    }
    release = shoal.protect(pl.DataFrame({"count": counts}), policy, keep_order=True)
    noisy = release.data["count"].to_numpy()
    kept = rounded(nearest(noisy, len(X)), len(X))
    corner = np.column_stack(np.unravel_index(np.repeat(np.arange(kept.size), kept), shape))
    return low + (corner + rng.random(corner.shape)) * width


def nearest(values: Floats, total: float) -> Floats:
    """The nearest point, in squares, with no negative part and this total."""
    ordered = np.sort(values)[::-1]
    over = (np.cumsum(ordered) - total) / np.arange(1, values.size + 1)
    cut = over[np.flatnonzero(ordered > over)[-1]]
    return np.maximum(values - cut, 0.0)


def rounded(values: Floats, total: int) -> Any:
    """Whole numbers with this total, by largest remainders."""
    whole = np.floor(values).astype(int)
    missing = total - int(whole.sum())
    whole[np.argsort(whole - values, kind="stable")[:missing]] += 1
    return whole


def boxes(X: Floats, share: float, rng: np.random.Generator) -> Any:
    """Random ranges that span a share of each column's range, as low and high corners."""
    least, most = X.min(axis=0), X.max(axis=0)
    span = share * (most - least)
    low = least + rng.random((QUERIES, X.shape[1])) * (most - least - span)
    return low, low + span


def answers(records: Floats, ranges: Any) -> Floats:
    """How many records lie in each range."""
    low, high = ranges
    return np.array([
        ((records >= a) & (records <= b)).all(axis=1).sum() for a, b in zip(low, high, strict=True)
    ])  # fmt: skip


def summary(X: Floats, tables: list[Floats], workloads: list[Any]) -> tuple[float, ...]:
    """Rank-matched SSE / SST (mean over columns), then median relative errors of the counts."""
    ordered = np.sort(X, axis=0)
    spread = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    ranks = [
        float((((ordered - np.sort(Y, axis=0)) ** 2).sum(axis=0) / spread).mean()) for Y in tables
    ]
    found = [float(np.mean(ranks))]
    for ranges in workloads:
        truth = answers(X, ranges)
        asked = truth > 0
        errors = [
            float(np.median(np.abs(answers(Y, ranges) - truth)[asked] / truth[asked]))
            for Y in tables
        ]
        found.append(float(np.mean(errors)))
    return tuple(found)
