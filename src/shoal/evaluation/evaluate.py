"""Evaluate a release against its original: utility and disclosure risk.

`evaluate` takes two tables, whoever made the second. The result comes from the original and is as
confidential as it. Sampling here carries no privacy: it is seeded, so figures repeat.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from shoal import io
from shoal import policy as policies
from shoal.core import Kind, Policy, Progress, Release, ReleaseForm, silent
from shoal.core._arrays import Floats
from shoal.core.machine import cores
from shoal.errors import InputError, did_you_mean
from shoal.evaluation import disclosure_risk, utility
from shoal.evaluation.arrays import AlignedArrays
from shoal.evaluation.results import Better, Evaluation, Figure, Part
from shoal.io import text_files
from shoal.io.external import read
from shoal.methods import find
from shoal.methods.discovery import settle_by_table, settle_policy
from shoal.metrics._sklearn import one_thread
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.distributions import marginal_masses
from shoal.metrics.histograms import BINS, round_edges
from shoal.pipeline import booking

CATEGORIES, MAP_CATEGORIES, MAP_BINS = 8, 7, 12
"""The most categories of a picture and of a map, the rest being one more; bins of a map's axis."""
PAIRS = {"strongest association in the original": 3, "largest change": 2}
"""The rules by which a pair of columns matters, and how many each chooses."""


ATTACKS = tuple(disclosure_risk.ATTACKS_BY_NAME)
METRICS = tuple(utility.METRICS)

__all__ = [
    "ATTACKS",
    "METRICS",
    "Better",
    "Evaluation",
    "Figure",
    "Part",
    "evaluate",
    "evaluate_frames",
]  # fmt: skip


def evaluate(
    original: Any,
    released: Any,
    policy: policies.PolicySource,
    *,
    control: Any = None,
    only: Part | str | None = None,
    which: Collection[str] | None = None,
    aligned: bool | None = None,
    rename: Mapping[str, str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    tell: Callable[[str], None] = lambda _sentence: None,
    progress: Progress = silent,
) -> Evaluation:
    """Evaluate what a release preserves and what it reveals.

    This is an inspection of the original. It is recorded in the policy's budget file first.

    Args:
        original: the table that the policy describes: a path, or pandas, Polars or PyArrow.
        released: what was made of it, by any tool; or a `Release`.
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.
        control: people of the same population who are not in the original, with its columns. Only
            they show what is due to being in the table.
        only: `utility` or `risk`; both by default.
        which: names of the metrics and attacks to run, out of `ATTACKS` and `METRICS`; all by
            default. A figure does not depend on which others are taken.
        aligned: whether row i of the release is about row i of the original. A `privacy_unit`
            column in both tables shows it too.
        rename: for columns with other names in the release: its name to the policy's.
        seed: of the samples that are drawn.
        jobs: metrics at a time, in threads; as many as there are cores by default. No figure
            depends on it.
        tell: called with sentences on what inspecting the original costs.
        progress: called with the stage and how far it is.

    Raises:
        InputError: the tables or the policy cannot be used as they are.
    """
    text_files.check_options(seed=seed, jobs=jobs)
    policy = policies.load(policy)
    _parts(only), _names(which)  # what is refused is not an inspection
    for sentence in booking.record_inspection(policy, what="evaluate"):
        tell(sentence)
    if isinstance(released, Release):
        form = released.manifest.release_form
        aligned = form is ReleaseForm.ROW_ALIGNED if aligned is None else aligned
        if released.manifest.found:
            policy = settle_policy(policy, released.manifest.found)
        released = released.data
    return evaluate_frames(
        io.take(original, policy=policy).frame,
        io.take(released).frame,
        policy,
        control=None if control is None else io.take(control, policy=policy).frame,
        only=only,
        which=which,
        aligned=aligned,
        rename=rename,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )


def evaluate_frames(
    original: pl.DataFrame,
    released: pl.DataFrame,
    policy: Policy,
    *,
    control: pl.DataFrame | None,
    only: Part | str | None = None,
    which: Collection[str] | None = None,
    aligned: bool | None = None,
    rename: Mapping[str, str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Evaluate frames; see `evaluate`.

    The original is the table as it was handed in. Linear algebra has one thread, and metrics run in
    parallel: no figure depends on the number of cores.
    """
    wanted, which = _parts(only), _names(which)
    policy = settle_by_table(policy, original)
    jobs = cores() if jobs is None else jobs
    progress("reading the release", 0, 1)
    reading = read.read_external_release(
        original,
        released,
        policy,
        control=control,
        rename=rename,
        aligned=aligned,
        silent=find(policy.method).noisy,
    )
    sides = AlignedArrays.of(reading)
    risks: tuple[Figure, ...] = ()
    kept: tuple[Figure, ...] = ()
    unattacked: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    pictures: Mapping[str, Any] = {}
    with one_thread():
        if Part.RISK in wanted:
            rng = np.random.default_rng([seed, 1])
            risks, unattacked = disclosure_risk.evaluate_risk(
                sides, policy, came=original, which=which, rng=rng, jobs=jobs, progress=progress
            )
        if Part.UTILITY in wanted:
            rng = np.random.default_rng([seed, 2])
            kept, unmeasured = utility.evaluate_utility(
                sides, policy, which=which, rng=rng, jobs=jobs, progress=progress
            )
            if "marginals" in which and len(sides.released):
                pictures = count_before_and_after(sides)
    sampled = disclosure_risk.describe_sample(sides) if risks else ""
    return Evaluation(
        figures=(*risks, *kept),
        skipped=(*unattacked, *unmeasured),
        how=(*reading.how, *([sampled] if sampled else [])),
        findings=reading.findings,
        rows=(original.height, released.height),
        pictures=pictures,
    )


def _parts(only: Part | str | None) -> tuple[Part, ...]:
    if only is None:
        return tuple(Part)
    if only not in set(Part):
        raise InputError(f"What to evaluate (only) must be utility or risk; found '{only}'.")
    return (Part(only),)


def _names(which: Collection[str] | None) -> frozenset[str]:
    known = (*ATTACKS, *METRICS)
    for name in which or ():
        if name not in known:
            guess = did_you_mean(name, known)
            raise InputError(f"No metric named '{name}'.{guess} They are: {', '.join(known)}.")
    return frozenset(known if which is None else which)


def count_before_and_after(sides: AlignedArrays) -> dict[str, Any]:
    """What pictures of both tables show, as plain values.

    columns: each column's counts before and after, the one that changed most first. association:
    Cramer's V of each two columns in both tables, over the bins of the two-way marginals. pairs:
    maps of two columns, chosen as `PAIRS` says; `why` names the rule. Counts are of people:
    weighted where the policy names a sampling weight, and an interval or a group of categories
    gives each bin its share.
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
    """Choose pairs of columns for maps, each with the rule that chose it."""
    chosen: dict[tuple[int, int], str] = {}
    for by, (why, most) in zip((strength, moved), PAIRS.items(), strict=True):
        ordered = sorted(by, key=lambda pair: (-by[pair], pair))
        left = [pair for pair in ordered if pair not in chosen and by[pair] > 0]
        chosen |= dict.fromkeys(left[:most], why)
    return chosen


def _cramer(table: Floats) -> float:
    """Compute bias-corrected Cramer's V: 0 if two columns are independent, up to 1.

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
    """Reorder counts as on an axis, with its unnamed categories as one."""
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
    """Round each count to six digits, because sampling weights may be small."""
    return [float(f"{count:.6g}") for count in counts]
