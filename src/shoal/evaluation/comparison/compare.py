"""Compare methods and parameters on one table by utility and risk.

`compare` releases every candidate of a grid several times, evaluates the releases, and puts them on
two axes. Risk is what the worst attack gains over people who are not in the table. Utility is the
median relative error of COUNT queries. Both have intervals over repeats.

Choosing by inspection costs privacy. A comparison on the confidential table is recorded under its
source in the budget file, and a later epsilon of that source is conditional.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from shoal import io
from shoal import policy as policies
from shoal.core import KNOWN_COLUMNS, ONE_ROW, Estimate, Policy, Progress, Role, Status, silent
from shoal.core.serialise import plain
from shoal.errors import InputError, ShoalError
from shoal.evaluation.comparison import frontier, grid, private_selection, running
from shoal.evaluation.comparison.frontier import Point, Recommendation, Standing
from shoal.evaluation.comparison.grid import Candidate
from shoal.evaluation.comparison.private_selection import Selection
from shoal.evaluation.comparison.results import (
    NO_PLACE,
    Axes,
    Comparison,
    Row,
    in_words,
    place_row,
)
from shoal.io import text_files
from shoal.io.validate import check_names
from shoal.pipeline import booking
from shoal.pipeline.planning import plan

__all__ = [
    "NO_PLACE",
    "Axes",
    "Candidate",
    "Comparison",
    "Point",
    "Row",
    "Selection",
    "Standing",
    "compare",
    "in_words",
    "select",
    "selection_costs",
]

REPEATS = 3
MORE = 4
"""The most repeats, as a multiple, of candidates that cannot be told apart."""
MAX_RISK = 0.1
"""Default limit on the risk of a recommended release: a share of what an attacker could gain."""
MOST_ROWS = 20_000
"""The most rows that are compared; larger tables are sampled."""
LEAST_ROWS = 30
SHARES = (0.01, 0.05, 0.2, 0.5)
"""Shares of the rows published as they are, to read a candidate's error against."""
AXIS = ("naive Bayes", "linkability", "inference")
"""Attacks that the risk is the worst of: they start from what others know of a person.

Singling out stands beside the risk, and is no part of it. One exact income singles somebody out
whatever the groups are, so it is near 1 for every method that releases confidential columns as they
are.
"""


SAME_TABLE = (
    "The sample is the confidential table itself, so the comparison would inspect it. Give a "
    "sample of other people, or remove --on-sample, and the inspection is recorded."
)


def _quiet(_sentence: str) -> None:
    pass


def compare(
    data: Any,
    policy: policies.PolicySource,
    *,
    candidates: Sequence[Candidate] | Mapping[str, Any] | str | Path | None = None,
    published: bool = False,
    on_sample: Any = None,
    folder: Path | None = None,
    repeats: int = REPEATS,
    jobs: int = 1,
    max_risk: float = MAX_RISK,
    any_claim: bool = False,
    rows: int = MOST_ROWS,
    seed: int = 0,
    axes: str = "advantage",
    note: str = "",
    tell: Callable[[str], None] = _quiet,
    progress: Progress = silent,
) -> Comparison:
    """Compare methods and parameters on a table, and recommend one.

    Candidate releases are made with the noise of a real release, never published and never
    booked. The comparison itself is recorded in the policy's budget file before it starts.

    Args:
        data: the confidential table: a path, or pandas, Polars or PyArrow. With `on_sample` it may
            be None; it then only serves to refuse a sample that is the table itself.
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.
        candidates: a path to a grid file, the same content as a mapping, or `Candidate`s; by
            default the policy's own choice and the methods to start with, at a few k or epsilons.
        published: by default compare the published methods too.
        on_sample: public or synthetic people, or a release that is paid for, to compare on
            instead. The choice then costs no privacy.
        folder: where results are kept, so a second run costs nothing; made if necessary.
        repeats: releases of each candidate, each with other people held out; but one of a candidate
            that fails or does not meet the policy in the first. Candidates that cannot be told
            apart, or whose risk cannot be told from the limit, are released up to four times as
            often.
        jobs: processes at a time. More than one needs the guard `if __name__ == "__main__":` in
            a program.
        max_risk: largest risk of what is recommended, by the upper end of its interval.
        any_claim: also recommend candidates without a proved claim for the quasi-identifiers
            together.
        rows: the most rows to compare; a larger table is sampled at random.
        seed: of who is held out and which queries are asked; not of the noise.
        axes: `advantage`, or `alpha-beta` as in cormode2013: the increase of naive Bayes over the
            most frequent value, and the error of counts over all columns.
        note: public words for the budget file.
        tell: called before the run with sentences on what inspecting the table costs.
        progress: called with the time left and how much is done.

    Raises:
        InputError: the table, the policy or the grid cannot be used as they are.
    """
    policy = policies.load(policy)
    axes = Axes.of(axes)
    listed = _list_candidates(candidates, policy, published=published)
    text_files.check_options(repeats=repeats, jobs=jobs, max_risk=max_risk, rows=rows, seed=seed)
    frame = io.take(data if on_sample is None else on_sample, policy=policy).frame
    check_names(frame, policy.schema)
    both = on_sample is not None and data is not None
    if both and frame.equals(io.take(data, policy=policy).frame):
        raise InputError(SAME_TABLE)
    if frame.height < LEAST_ROWS:
        raise InputError(f"Expected {LEAST_ROWS} rows or more to compare on, found {frame.height}.")
    costs = booking.record_comparison(policy, sample=on_sample is not None, note=note)
    for sentence in costs:
        tell(sentence)
    height = frame.height
    if height > rows:
        frame = frame[np.sort(np.random.default_rng(seed).permutation(height)[:rows])]
    digest = running.data_digest(frame)
    refused = [_refusal(candidate, policy) for candidate in listed]
    quasi = policy.schema.with_role(Role.QUASI_IDENTIFIER)
    keys = frozenset(quasi) - {column.name for column in policy.schema.columns if column.public}
    settings = {
        "rows": frame.height,
        "rows_in_table": height,
        "held_out": "a third of the people, different ones in each repeat",
        "repeats": repeats,
        "max_risk": max_risk,
        "any_claim": any_claim,
        "seed": seed,
        "axes": axes.value,
        "looked_at": "table" if on_sample is None else "sample",
        "confidence": frontier.CONFIDENCE,
        "most_repeats": MORE * repeats,
    }
    if folder is not None:
        _prepare(folder)

    def releases(
        wanted: Sequence[tuple[Policy, float | None, bool]],
        numbers: range,
        progress: Progress,
        *,
        around: tuple[int, int] = (0, 0),
    ) -> list[list[dict[str, Any]]]:
        jobs_ = [
            running.Job.of(stated, digest, share=share, repeat=repeat, seed=seed, strict=strict)
            for repeat in numbers
            for stated, share, strict in wanted
        ]
        done = running.run(
            frame, jobs_, folder=folder, processes=jobs, progress=progress, around=around
        )
        return [done[at :: len(wanted)] for at in range(len(wanted))]

    able = _order(listed, refused, policy)
    shares = (1.0, *SHARES)
    unbooked = replace(policy, budget=None)
    raw = [(unbooked, share, False) for share in shares]
    wanted = [*(_what_to_run(listed[place], policy) for place in able), *raw]
    done = _release_stepwise(releases, wanted, repeats, progress)
    batches = dict(zip(able, done, strict=False))
    baselines = [
        _row(_share(share), None, batch, keys, axes)
        for share, batch in zip(shares, done[len(able) :], strict=True)
    ]

    def run_comparison() -> Comparison:
        rows = [
            _row(c.label, c, batches.get(place, [{"failed": refused[place]}]), keys, axes)
            for place, c in enumerate(listed)
        ]
        return _rank(rows, baselines, costs, settings)

    comparison = run_comparison()
    # More repeats of some may leave others undecided. Each is repeated once, so this ends, and
    # each is seen after `repeats` and after all: the two looks that its intervals allow for.
    while open_ := [p for p in comparison.choice.open if len(batches[p]) == repeats]:
        again = [_what_to_run(listed[place], policy) for place in open_]
        more = releases(again, range(repeats, MORE * repeats), _again(progress))
        for place, batch in zip(open_, more, strict=True):
            batches[place] = [*batches[place], *batch]
        comparison = run_comparison()
    return comparison


def _release_stepwise(
    releases: Callable[..., list[list[dict[str, Any]]]],
    wanted: Sequence[tuple[Policy, float | None, bool]],
    repeats: int,
    progress: Progress,
) -> list[list[dict[str, Any]]]:
    """Release all once, and again those that can lead.

    Who fails or does not meet the policy cannot, and one release shows it.
    """
    done = releases(wanted, range(1), progress, around=(0, (repeats - 1) * len(wanted)))
    going = [
        at for at, (first,) in enumerate(done) if not (first.get("unmet") or "failed" in first)
    ]
    again = [wanted[at] for at in going]
    rest = releases(again, range(1, repeats), progress, around=(len(wanted), 0))
    for at, batch in zip(going, rest, strict=True):
        done[at] += batch
    return done


def _order(listed: Sequence[Candidate], refused: Sequence[str | None], policy: Policy) -> list[int]:
    """List the candidates that can run, first those whose plan promises what is required."""
    able = [place for place, reason in enumerate(refused) if reason is None]
    return sorted(able, key=lambda at: _refusal(listed[at], policy, required=True) is not None)


def _what_to_run(candidate: Candidate, policy: Policy) -> tuple[Policy, None, bool]:
    return candidate.apply(policy), None, candidate.require is not None


def _again(progress: Progress) -> Progress:
    def again(stage: str, done: int, total: int) -> None:
        progress(stage.replace("comparing", "comparing again", 1), done, total)

    return again


def select(
    data: Any,
    policy: policies.PolicySource,
    *,
    epsilon: Fraction | Decimal | int,
    candidates: Sequence[Candidate] | Mapping[str, Any] | str | Path | None = None,
    published: bool = False,
    note: str = "",
    tell: Callable[[str], None] = _quiet,
    progress: Progress = silent,
) -> Selection:
    """Choose one method privately, and pay for it; see `private_selection`.

    Args:
        data: the confidential table: a path, or pandas, Polars or PyArrow.
        policy: with a `[budget]`, which is charged before the first draw.
        epsilon: of the whole selection.
        candidates: as for `compare`; those without a proved epsilon are left out.
        published: as for `compare`.
        note: public words for the budget file.
        tell: called before the run with what it costs.
        progress: called with how much is done.
    """
    policy = policies.load(policy)
    price = text_files.parse_epsilon(str(epsilon), "an epsilon of a private selection")
    tell(selection_costs(float(price)))
    listed = _list_candidates(candidates, policy, published=published)
    frame = io.take(data, policy=policy).frame
    check_names(frame, policy.schema)
    return private_selection.select(
        frame, policy, listed, epsilon=price, note=note, progress=progress
    )


def selection_costs(epsilon: float) -> str:
    """Say what a private selection costs."""
    return (
        f"A private selection costs epsilon {epsilon:g} of the source's budget, whatever it "
        "chooses; releasing the chosen method then costs its own epsilon in addition."
    )


def _list_candidates(
    candidates: Sequence[Candidate] | Mapping[str, Any] | str | Path | None,
    policy: Policy,
    *,
    published: bool,
) -> tuple[Candidate, ...]:
    if candidates is None:
        return grid.default(policy, published=published)
    if isinstance(candidates, str | Path):
        return grid.read(Path(candidates))
    listed = grid.of(candidates) if isinstance(candidates, Mapping) else tuple(candidates)
    if not listed:
        raise InputError("Expected at least one candidate, found none.")
    return listed


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "the disk does not accept it").lower()
        raise InputError(f"Cannot write '{folder}': {reason}.") from None


def _refusal(candidate: Candidate, policy: Policy, *, required: bool = False) -> str | None:
    """Explain why a candidate cannot be planned; apart from the requirements, unless `required`."""
    try:
        stated = candidate.apply(policy)
        plan(stated if required else grid.without_requirements(stated))
    except ShoalError as error:
        return str(error)
    return None


def _share(share: float) -> str:
    return "the raw table" if share == 1 else f"a {100 * share:g}% sample"


def _row(
    label: str,
    candidate: Candidate | None,
    repeats: Sequence[Mapping[str, Any]],
    keys: frozenset[str],
    axes: Axes,
) -> Row:
    """Combine the repeats of one candidate."""
    method = "baseline" if candidate is None else candidate.method
    parameters = {} if candidate is None else plain(candidate.parameters)
    require = {} if candidate is None else plain(candidate.require or {})
    failed = next((repeat["failed"] for repeat in repeats if "failed" in repeat), None)
    if failed is not None:
        return Row(label, method, parameters, require=require, failed=failed)
    figures = _by_figure(repeats)
    claims = tuple(repeats[0]["claims"])
    risk, attack, error = _axes(repeats, axes)
    return Row(
        label=label,
        method=method,
        parameters=parameters,
        require=require,
        point=None if risk is None or error is None else Point(risk, error),
        attack=attack,
        proved=any(_proves(claim, keys) for claim in claims),
        unmet=next((repeat["unmet"] for repeat in repeats if repeat["unmet"]), None),
        claims=claims,
        checks=tuple(repeats[0]["checks"]),
        figures=figures,
        pictures=tuple(repeats[0].get("pictures", ())),
        seconds=float(np.mean([repeat["seconds"] for repeat in repeats])),
        repeats=len(repeats),
    )


def _proves(claim: Mapping[str, Any], keys: frozenset[str]) -> bool:
    """Whether a claim is proved for all quasi-identifiers jointly, not for single ones.

    Public columns need no protection.
    """
    guarantee = claim["guarantee"]
    about = guarantee.get("keys") or guarantee.get("protects") or guarantee["columns"]
    by_rows = claim["status"] == Status.CONDITIONAL.value and {*claim["assumes"]} <= {
        KNOWN_COLUMNS,
        ONE_ROW,
    }
    return (by_rows or claim["status"] == Status.PROVED.value) and keys <= set(about)


def _by_figure(
    repeats: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str, str, str], Estimate]:
    """Average every figure that all repeats have, with an interval."""
    by_key: dict[tuple[str, str, str, str], list[Estimate]] = {}
    for repeat in repeats:
        for figure in repeat["figures"]:
            key = (figure["part"], figure["metric"], figure["subject"], figure["better"])
            if (estimate := _estimate(figure, "value", "low", "high")) is not None:
                by_key.setdefault(key, []).append(estimate)
    return {
        key: frontier.combine(estimates)
        for key, estimates in by_key.items()
        if len(estimates) == len(repeats)
    }


def _axes(
    repeats: Sequence[Mapping[str, Any]], axes: Axes
) -> tuple[Estimate | None, str | None, Estimate | None]:
    metrics: tuple[str, ...] = AXIS
    ends, workload = ("residual", "residual_low", "residual_high"), -1
    if axes is Axes.ALPHA_BETA:
        metrics, ends, workload = ("breach increase",), ("value", "low", "high"), 0
    gains: dict[str, list[Estimate]] = {}
    errors: dict[str, list[Estimate]] = {}
    for repeat in repeats:
        for figure in repeat["figures"]:
            if figure["metric"] in metrics and (gain := _estimate(figure, *ends)) is not None:
                name = f"{figure['metric']}: {figure['subject']}"
                gains.setdefault(name, []).append(gain)
            counted = _estimate(figure, "value", "low", "high")
            if figure["metric"] == "COUNT queries" and counted is not None:
                errors.setdefault(figure["subject"], []).append(counted)
    # The workload over three columns comes last, and most tables have it; the one over all
    # columns, which comes first, is the paper's.
    error = None
    if errors:
        error = _from_zero(frontier.combine(list(errors.values())[workload], frontier.EACH_LOOK))
    if not gains:
        return None, None, error
    attack, risk = frontier.worst(gains, frontier.EACH_LOOK)
    if axes is Axes.ALPHA_BETA:  # An attacker may do worse than the most frequent value.
        return replace(risk, confidence=frontier.CONFIDENCE), attack, error
    return _from_zero(risk, 1.0), attack, error


def _from_zero(estimate: Estimate, most: float = np.inf) -> Estimate:
    """Clip an interval to the range of a share or an error; all intervals hold jointly."""
    low, high = max(estimate.low, 0.0), min(estimate.high, most)
    return Estimate(estimate.value, low, high, frontier.CONFIDENCE)


def _estimate(figure: Mapping[str, Any], value: str, low: str, high: str) -> Estimate | None:
    if figure.get(value) is None:
        return None
    point = float(figure[value])
    if not np.isfinite(point):
        return None
    ends = [point if figure[end] is None else float(figure[end]) for end in (low, high)]
    return Estimate(point, ends[0], ends[1], frontier.CONFIDENCE)


def _rank(
    rows: Sequence[Row],
    baselines: Sequence[Row],
    costs: tuple[str, ...],
    settings: Mapping[str, Any],
) -> Comparison:
    """Determine the standing of every candidate, and the recommendation."""
    samples = {
        share: row.point.error.value
        for share, row in zip(SHARES, baselines[1:], strict=True)
        if row.point is not None
    }
    places = [place for place, row in enumerate(rows) if row.point is not None]
    points = [row.point for row in rows if row.point is not None]
    stands = dict.fromkeys(places, Standing.UNMET)
    met = [place for place in places if rows[place].unmet is None]
    chosen_points = [point for place, point in zip(places, points, strict=True) if place in met]
    stands |= zip(met, frontier.standings(chosen_points), strict=True)
    shown = tuple(
        place_row(
            row,
            stands.get(place),
            None if row.point is None else frontier.like_a_sample(row.point.error.value, samples),
        )
        for place, row in enumerate(rows)
    )
    eligible = [
        shown[place].unmet is None and (shown[place].proved or settings["any_claim"])
        for place in places
    ]
    choice = frontier.choose(points, eligible, settings["max_risk"]).among(places)
    nothing = Row(
        "publishing nothing",
        "baseline",
        {},
        point=Point(*(Estimate(x, x, x, frontier.CONFIDENCE) for x in (0.0, 1.0))),
    )
    return Comparison(
        rows=shown,
        baselines=(*(place_row(row, None, None) for row in baselines), nothing),
        choice=choice,
        recommendation=_sentence(
            shown, choice, [places[at] for at, may in enumerate(eligible) if may], settings
        ),
        costs=costs,
        settings=settings,
    )


def _sentence(
    rows: Sequence[Row],
    choice: Recommendation,
    eligible: Sequence[int],
    settings: Mapping[str, Any],
) -> str:
    """Write the recommendation with its reason, or why there is none."""
    whom = "that meet the policy's requirements"
    if not settings["any_claim"]:
        whom = f"with a proved claim {whom}"
    single = whom.replace("meet", "meets")
    if not eligible:
        return f"No candidate is recommended: there is none {single}."
    limit = f"{settings['max_risk']:.3g} or below with {settings['confidence']:.0%} confidence"
    risk = "the risk of linkage and inference"
    if settings["axes"] == Axes.ALPHA_BETA:
        risk = "the risk"
    unsure = _unsure(rows, choice)
    if choice.best is None:
        least = min((rows[place] for place in eligible), key=_most_risk)
        return (
            f"No candidate is recommended: of {_write_count(len(eligible))} "
            f"{single if len(eligible) == 1 else whom}, none is shown to keep {risk} at {limit}. "
            f"{least.label} has the lowest upper end of its interval, {_most_risk(least):.1%}."
            f"{unsure}"
        )
    if choice.index is None:
        names = _names([rows[place].label for place in choice.ties])
        times = min(rows[place].repeats for place in choice.ties)
        return (
            f"Cannot be told apart: {names}. Of {_write_count(choice.within)} {whom} and keep "
            f"{risk} at {limit}, none is clearly the best: after {times:,} repeats, their "
            "intervals overlap. Choose among them for other reasons, or compare again with more "
            f"repeats.{unsure}"
        )
    row, point = rows[choice.index], rows[choice.index].point
    single_out = row.singling_out or 0.0
    if single_out > settings["max_risk"]:
        unsure += (
            f" This risk leaves singling out aside: {single_out:.0%} of the conditions that match "
            "one released row match one person."
        )
    assert point is not None  # noqa: S101 (only points are chosen)
    wrong = f"{point.error.value:.1%} ({row.like})"
    if choice.within == 1:
        return (
            f"Take {row.label}, the only candidate {single} and keeps {risk} at {limit}; its "
            f"counts are off by {wrong}.{unsure}"
        )
    if choice.index == choice.best and len(choice.close) == 1:
        reason = f"its counts clearly have the smallest error, {wrong}"
    else:
        reason = (
            f"its risk is clearly the lowest, {point.risk.value:.1%}, among the "
            f"{len(choice.close)} whose counts have the smallest error up to noise; its counts are "
            f"off by {wrong}"
        )
    head = f"Take {row.label}: of {_write_count(choice.within)} {whom} and keep {risk} at {limit}, "
    return f"{head}{reason}.{unsure}"


def _unsure(rows: Sequence[Row], choice: Recommendation) -> str:
    """Name the candidates whose estimate is within the limit, but not their whole interval."""
    if not choice.unsure:
        return ""
    unsure = [row for row in (rows[place] for place in choice.unsure) if row.point is not None]
    ends = [f"{row.label} ({row.point.risk.low:.3g} to {row.point.risk.high:.3g})"
            for row in unsure if row.point is not None]  # fmt: skip
    return f" The estimate, but not the whole interval, is within the limit for: {', '.join(ends)}."


def _most_risk(row: Row) -> float:
    return np.inf if row.point is None else row.point.risk.high


def _write_count(number: int) -> str:
    return f"{number:,} candidate{'' if number == 1 else 's'}"


def _names(names: Sequence[str]) -> str:
    """Join names as in a sentence."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
