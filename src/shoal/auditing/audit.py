"""Audit a policy: search for an output that violates its privacy claim.

`audit` takes a policy that claims differential privacy, runs its method many times on pairs of
tables that differ in one person, and looks for an event that is more frequent on one table than
the declared epsilon allows. It says "violated" or "no violation found", never more. A claim that
a counterexample has refuted already stays refuted, whatever the runs find.

Where prices are counted in rho, an event bounds rho (`shoal.metrics.epsilon_lower_bound`). And some
runs are given back on the neighbour (`privacy_losses`): in each, the squared moves of answers over
twice the variance of their noise, and the prices of selections and trees, must not exceed rho
together, or the accounting is wrong. A single run decides this for a claim only by its first
question. No answer comes before that, so its moves are the same in every run; Gaussian noise of
scale s that moves by d has a Renyi divergence of a d^2 / (2 s^2) at every whole order a > 1, and
what follows an answer cannot lower that of all answers. So rho is at least d^2 / (2 s^2). A later
question may depend on answers that are rare, and its divergence is a mean over them.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from shoal import io
from shoal.auditing import neighbouring_tables, privacy_losses
from shoal.auditing.audit_program import audit_program, declare, find_neighbours
from shoal.auditing.neighbouring_tables import NeighbouringTables
from shoal.auditing.outputs import file_learners, file_scores
from shoal.auditing.programs import RunLimits
from shoal.auditing.result import GIVEN_BACK, Audit, Declared, Finding
from shoal.auditing.runs import ArrayRuns, Releases, columns_at_stake
from shoal.core import (
    GAUSSIAN,
    LAPLACE,
    Claim,
    DifferentialPrivacy,
    Neighbours,
    Noise,
    PrivacyMeasure,
    Progress,
    ReleaseForm,
    Status,
    silent,
)
from shoal.errors import InputError
from shoal.io import folders, text_files
from shoal.io.validate import check_names
from shoal.methods.discovery import refuse_unsettled
from shoal.metrics import epsilon_lower_bound
from shoal.pipeline import booking
from shoal.pipeline.planning import Plan, plan, with_rows
from shoal.pipeline.protect_table import secure_noise
from shoal.policy import PolicySource, load

LEVELS = {"arrays": 20_000, "files": 200}
"""The categories, and how many runs on each table are enough to see something."""
_FEW_GROUPS = 5
_ROWS_MORE = 20


def audit(
    policy: PolicySource,
    *,
    run: str | Callable[[pl.DataFrame], Any] | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    neighbours: str = Neighbours.ADD_REMOVE.value,
    limits: RunLimits | None = None,
    log: str | Path | None = None,
    pair: tuple[Any, Any] | None = None,
    table: Any = None,
    trials: int | None = None,
    confidence: float = 0.95,
    level: str = "arrays",
    noise: Noise | None = None,
    most: int = 2,
    tries: int = 200,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _sentence: None,
    progress: Progress = silent,
) -> Audit:
    """Try to refute the differential privacy that a policy claims, or that a program declares.

    Without a pair or a table, worst cases of the methods' families are built for the policy's
    columns; those whose exact answers are furthest apart, relative to the noise, are run.

    Args:
        policy: a path to a policy file, the same content as a mapping, or a `Policy`. Its
            budget file, if it names one, is not charged; a table is inspected, and recorded there.
            With `run` it states the public domains of the columns alone.
        run: any program, audited in place of the policy's method: a command with {in} and {out}, or
            a function of a Polars frame that returns a frame or a number. It is run on tables in
            which one invented person differs in a way that has broken programs.
        epsilon: what the program declares, if it is an epsilon.
        delta: beside that epsilon.
        rho: what it declares, if it is zero-concentrated differential privacy.
        mu: what it declares, if it is Gaussian differential privacy: as far apart as two normal
            distributions of variance 1 whose means differ by it.
        neighbours: whether a person comes or changes, in what the program declares.
        limits: of a command's run.
        log: file that keeps what runs showed; the same call goes on from it.
        pair: two tables that differ in one person.
        table: one table; a search changes one of its records, and the best change is run.
        trials: runs on each table of a pair; half of them choose the event. By default
            20,000 for arrays and 200 for files. With `run`, on both sides of all pairs together;
            1,200 by default, and fewer where the declared loss is refuted before.
        confidence: that all bounds hold together.
        level: "arrays" runs the method itself; "files" runs the whole pipeline, on two CSV
            files, and reads all that lands in the folder to publish.
        noise: another source of noise, to be tested; by default that of releases.
        most: at most so many of the built-in pairs are run.
        tries: how many changes the search considers.
        seed: of the search; the runs themselves have no seed.
        tell: called with sentences on what inspecting a table costs.
        progress: called with the stage and how far it is.

    Returns:
        The findings. An audit can refute a claim; it never supports one.

    Raises:
        InputError: the policy claims no differential privacy, or the tables are not neighbours.
    """
    if level not in LEVELS:
        raise InputError(
            f"Expected the level of the audit to be {' or '.join(LEVELS)}, found '{level}'."
        )
    if pair is not None and table is not None:
        raise InputError(
            "Expected either a pair of tables or a table to search for a neighbour, found both."
        )
    text_files.check_options(trials=trials, confidence=confidence, seed=seed)
    declared = [name for name, amount in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if amount]
    if run is not None:
        if table is not None:
            raise InputError("An audit of a program takes no table. State a pair, or neither.")
        return audit_program(
            run, load(policy), declare(epsilon=epsilon, delta=delta, rho=rho, mu=mu),
            neighbours=find_neighbours(neighbours), limits=limits or RunLimits(),
            log=None if log is None else Path(log),
            pair=pair, trials=trials, confidence=confidence, seed=seed, progress=progress,
        )  # fmt: skip
    if declared or delta or log is not None:
        raise InputError(
            f"'{(declared or ['delta' if delta else 'log'])[0]}' belongs to an audit of a program. "
            "State run, or leave it out: a policy says itself what it claims."
        )
    planned = plan(policy)
    refuse_unsettled(planned.policy)
    _claim_to_test(planned)
    if table is not None:
        if isinstance(table, str | Path):
            text_files.refuse_special(Path(table))
        for sentence in booking.record_inspection(planned.policy, what="audit"):
            tell(sentence)
    trials = LEVELS[level] if trials is None else trials
    chosen = _choose_pairs(
        planned, pair, table, most=most, tries=tries, seed=seed, progress=progress
    )
    findings = tuple(
        _finding(
            planned, neighbours, level, noise,
            trials=trials, confidence=confidence, family=len(chosen), progress=progress,
        )
        for neighbours in chosen
    )  # fmt: skip
    refuted = [claim for claim in _list_promises(planned) if claim.status is Status.REFUTED]
    return Audit(
        method=planned.method.name,
        release_form=planned.setting.release_form.value,
        level=level,
        trials=trials,
        confidence=confidence,
        findings=findings,
        counterexamples=tuple(dict.fromkeys(claim.basis for claim in refuted)),
    )


def _list_promises(planned: Plan) -> list[Claim]:
    return [claim for claim in planned.claims if isinstance(claim.guarantee, DifferentialPrivacy)]


def _claim_to_test(planned: Plan) -> Declared:
    """Return what is to be tested: the one about the original records.

    A method with two claims has a conditional one, for tables with the same groups, and one without
    that condition; the pairs built here are for the latter.
    """
    claims = _list_promises(planned)
    if not claims:
        raise InputError(
            f"Method '{planned.method.name}' claims no differential privacy, so there is nothing "
            "to audit. `shoal check` recomputes what it does claim."
        )
    claim = next((c for c in claims if c.status is not Status.CONDITIONAL), claims[0])
    guarantee = cast("DifferentialPrivacy", claim.guarantee)
    return Declared.of(guarantee, claim.status, claim.basis)


def _choose_pairs(
    planned: Plan,
    pair: tuple[Any, Any] | None,
    table: Any,
    *,
    most: int,
    tries: int,
    seed: int,
    progress: Progress,
) -> Sequence[NeighbouringTables]:
    if pair is not None:
        return [neighbouring_tables.check_given(planned, *(_frame(planned, side) for side in pair))]
    if table is not None:
        rng = np.random.default_rng(seed)
        frame = _frame(planned, table)
        return [neighbouring_tables.search(planned, frame, tries=tries, rng=rng, progress=progress)]
    made = neighbouring_tables.list_worst_cases(planned)
    if not made:
        raise InputError(
            "No built-in pair of tables fits the policy's columns; give a pair with --pair."
        )
    progress("comparing pairs", 0, 1)
    # The method's own counterexample is always run.
    worst = made[:1] if planned.method.promises.counterexample else []
    rest = sorted(
        made[len(worst) :], key=lambda other: -neighbouring_tables.apartness(planned, other)
    )
    return [*worst, *rest][: max(most, 1)]


def _frame(planned: Plan, data: Any) -> pl.DataFrame:
    frame = io.take(data, policy=planned.policy).frame
    check_names(frame, planned.policy.schema)
    if frame.height == 0:
        raise InputError("The table to audit has no rows; expected one row per person.")
    return frame


def _finding(
    planned: Plan, pair: NeighbouringTables, level: str, noise: Noise | None, **terms: Any
) -> Finding:
    """Run a pair; for the arguments see `epsilon_lower_bound.lower_bound`."""
    planned = with_rows(planned, pair.before.height)
    claim, moved, proved = _claim_to_test(planned), None, 0.0
    terms["target"] = claim.target
    frames = (pair.before, pair.after)
    if level == "files":
        with folders.temporary() as folder:
            sides = [
                Releases(planned, frame, noise, folder / str(side))
                for side, frame in enumerate(frames)
            ]
            example = sides[0](1)
            looks = file_scores(example, row=pair.row, form=planned.setting.release_form)
            learn = file_learners(example)
            bound = epsilon_lower_bound.lower_bound(*sides, scores=looks, learners=learn, **terms)
    else:
        source = secure_noise() if noise is None else noise
        rows = 2 * pair.before.height + _ROWS_MORE
        runs = [
            ArrayRuns(planned, neighbouring_tables.table_of(planned, frame), source, rows=rows)
            for frame in frames
        ]
        bound = epsilon_lower_bound.lower_bound(
            *runs, scores=_scores(planned, pair, runs), learners=_learners(planned, pair), **terms
        )
        if claim.target.measure is PrivacyMeasure.RHO:
            moved, proved = _most_moved(runs, source)
    return Finding(pair, claim, bound, moved, proved)


def _most_moved(runs: Sequence[ArrayRuns], noise: Noise) -> tuple[float, float]:
    """Return the largest rho of the changes in replayed runs, and of their first question."""
    most = proved = 0.0
    for _ in range(GIVEN_BACK):
        for base, other in (runs, runs[::-1]):
            losses = privacy_losses.replay(ArrayRuns.with_noise, base, other, noise)
            most = max(most, sum(losses.rhos.values()))
            (mechanism, _), first = losses.parts[0] if losses.parts else ((LAPLACE, 0), 0.0)
            proved = max(proved, first if mechanism == GAUSSIAN else 0.0)
    return most, proved


def _scores(
    planned: Plan, pair: NeighbouringTables, runs: Sequence[ArrayRuns]
) -> dict[str, epsilon_lower_bound.Score]:
    """Make the scores that define events on the fast level."""
    aligned = planned.setting.release_form is ReleaseForm.ROW_ALIGNED
    marginal = planned.setting.release_form is ReleaseForm.COLUMN_SHUFFLED
    (before, scales), (after, _) = (neighbouring_tables.exact_answers(run) for run in runs)
    names = runs[0].names
    looks: dict[str, epsilon_lower_bound.Score] = {
        "low bits of the cells": epsilon_lower_bound.low_bits
    }
    views = {f" of '{name}'": [place] for place, name in enumerate(names)}
    if not marginal and len(names) > 1:
        views = {"": list(range(len(names))), **views}
    groups = {
        "number of distinct rows": epsilon_lower_bound.distinct_rows,
        "size of the largest group": epsilon_lower_bound.largest_group,
        "size of the smallest group": epsilon_lower_bound.smallest_group,
    }
    for view, columns in views.items():
        for name, score in groups.items():
            looks[f"{name}{view}"] = epsilon_lower_bound.within(columns, score)
        if aligned:
            alike = epsilon_lower_bound.alike(pair.row, columns[0] if len(columns) == 1 else None)
            looks[f"rows equal to the changed one{view}"] = alike
    if not np.array_equal(before, after):
        looks["projection on the exact difference"] = epsilon_lower_bound.projection(after - before)
    return looks | _likelihoods(planned, before, after, scales)


def _likelihoods(
    planned: Plan, before: Any, after: Any, scales: Sequence[Fraction]
) -> dict[str, epsilon_lower_bound.Score]:
    """Compute the likelihood ratio of Laplace noise on the exact answers, if it has a closed form.

    A group of size c has noise of scale s / c on each of its c rows' cells, so over
    rows a cell counts for |z - mean| / s. Scales are in grid units, 2^20 to the width.
    """
    form = planned.setting.release_form
    if form in {ReleaseForm.SYNTHETIC, ReleaseForm.TREE}:
        return {}  # Cells are not noisy answers.
    if len(scales) != before.shape[1] or np.array_equal(before, after):
        return {}
    widths = [planned.policy.schema[name].bounds for name in columns_at_stake(planned)]
    if any(bounds is None or not hasattr(bounds[1], "as_tuple") for bounds in widths):
        return {}
    spans = [float(b[1]) - float(b[0]) for b in widths if b is not None]  # type: ignore[arg-type]
    scale = np.array([float(s) * w / 2**20 for s, w in zip(scales, spans, strict=True)])
    name = "likelihood ratio"
    if form in {ReleaseForm.ROW_ALIGNED, ReleaseForm.CANONICAL}:
        return {name: epsilon_lower_bound.likelihood_ratio(before, after, scale)}
    answers = [np.unique(side, axis=0, return_counts=True) for side in (before, after)]
    sizes = np.concatenate([counts for _, counts in answers])
    groups = len(answers[0][0])
    if form is not ReleaseForm.LINKED_SHUFFLED or groups > _FEW_GROUPS or np.ptp(sizes):
        return {}
    size = int(sizes[0])
    ratio = epsilon_lower_bound.unordered_likelihood_ratio(
        answers[0][0], answers[1][0], scale / size
    )
    return {f"{name}, ignoring the order of rows": lambda outputs: ratio(outputs[:, ::size])}


def _learners(planned: Plan, pair: NeighbouringTables) -> dict[str, epsilon_lower_bound.Learner]:
    learn: dict[str, epsilon_lower_bound.Learner] = {
        "learned projection": epsilon_lower_bound.learned_projection,
        "learned likelihood ratio": epsilon_lower_bound.learned_likelihood_ratio,
        "group sizes by rank": epsilon_lower_bound.learned_patterns(
            epsilon_lower_bound.sizes_by_rank
        ),
    }
    if planned.setting.release_form is ReleaseForm.ROW_ALIGNED:
        pattern = epsilon_lower_bound.learned_patterns(epsilon_lower_bound.equal_to(pair.row))
        learn["which cells equal the changed row's"] = pattern
    return learn


__all__ = ["Audit", "Finding", "audit"]
