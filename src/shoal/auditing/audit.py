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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import io
from shoal.auditing import neighbouring_tables, privacy_losses
from shoal.auditing.neighbouring_tables import NeighbouringTables
from shoal.auditing.runs import ArrayRuns, Releases, columns_at_stake, file_learners, file_scores
from shoal.core import (
    GAUSSIAN,
    LAPLACE,
    Claim,
    DifferentialPrivacy,
    Noise,
    PrivacyMeasure,
    Progress,
    ReleaseForm,
    Status,
    silent,
    write_fraction,
)
from shoal.errors import InputError
from shoal.io import folders, text_files
from shoal.io.validate import check_names
from shoal.methods.discovery import refuse_unsettled
from shoal.metrics import epsilon_lower_bound
from shoal.metrics.epsilon_lower_bound import EpsilonLowerBound
from shoal.metrics.intervals import clopper_pearson
from shoal.pipeline import booking
from shoal.pipeline.planning import Plan, plan, with_rows
from shoal.pipeline.protect_table import secure_noise
from shoal.policy import PolicySource

VIOLATED = "violated"
REFUTED = "refuted by a known counterexample"
NOTHING_FOUND = "no violation found"
LEVELS = {"arrays": 20_000, "files": 200}
"""The categories, and how many runs on each table are enough to see something."""
_FEW_GROUPS = 5
_ROWS_SHOWN = 100
_ROWS_MORE = 20
_GIVEN_BACK = 50
"""Runs in each direction whose answers are given back on the neighbour."""
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class Finding:
    """The result for one pair of tables.

    Attributes:
        moved: the largest change of answers in a replayed run, in rho; only on the fast level.
        proved: a lower bound of rho, by the first question of such a run.
    """

    pair: NeighbouringTables
    claim: Claim
    bound: EpsilonLowerBound
    moved: float | None = None
    proved: float = 0.0

    @property
    def measure(self) -> PrivacyMeasure:
        """The measure of the claim: epsilon or rho."""
        return PrivacyMeasure.EPSILON if self._guarantee.rho is None else PrivacyMeasure.RHO

    @property
    def declared(self) -> Fraction:
        """The epsilon, or rho, that the claim declares for this pair."""
        guarantee = self._guarantee
        return guarantee.rho or guarantee.epsilon or Fraction(0)

    @property
    def low(self) -> float:
        """The lower bound of epsilon, or rho, from the runs."""
        return (self.bound.rho or self.bound.epsilon).low

    @property
    def violated(self) -> bool:
        """Whether the declared epsilon, or rho, is refuted."""
        declared = float(self.declared)
        return self.proved > declared * _ROUNDING or self.bound.exceeds(declared)

    @property
    def in_rho(self) -> tuple[str, ...]:
        """The lines of the report about a claim in rho."""
        if self.bound.mu is None:
            return ()
        noise = sqrt(2 * float(self.declared))
        lines = [
            f"    mu is at least {self.bound.mu.low:.3g}; Gaussian noise of rho has {noise:.3g}"
        ]
        if self.moved is not None:
            lines.append(
                f"    in {2 * _GIVEN_BACK} runs given back on the other table, what moved cost a "
                f"rho of at most {self.moved:.3g}"
            )
            if self.moved > float(self.declared) * _ROUNDING and not self.violated:
                lines.append(
                    "    that is more than the accounting allows, which is a bug of Shoal; it does "
                    "not refute the claim by itself"
                )
        return tuple(lines)

    @property
    def _guarantee(self) -> DifferentialPrivacy:
        guarantee = self.claim.guarantee
        assert isinstance(guarantee, DifferentialPrivacy)  # noqa: S101 (`_claim_to_test` saw to it)
        return guarantee


@dataclass(frozen=True)
class Audit:
    """The result of an audit, pair by pair; the bounds hold together at `confidence`.

    Attributes:
        refuted: claims that a known counterexample refutes; their basis names it.
    """

    method: str
    release_form: ReleaseForm
    level: str
    trials: int
    confidence: float
    findings: tuple[Finding, ...]
    refuted: tuple[Claim, ...] = ()

    @property
    def worst(self) -> Finding:
        """The finding with the largest lower bound relative to the declared epsilon or rho."""
        return max(self.findings, key=lambda f: f.low / float(f.declared))

    @property
    def violated(self) -> bool:
        """Whether some pair refutes the declared epsilon."""
        return any(finding.violated for finding in self.findings)

    @property
    def fails(self) -> bool:
        """Whether the claim is false, by the runs or by a known counterexample."""
        return self.violated or bool(self.refuted)

    @property
    def verdict(self) -> str:
        """The verdict: violated, refuted by a known counterexample, or no violation found."""
        if self.violated:
            return VIOLATED
        return REFUTED if self.refuted else NOTHING_FOUND

    def __str__(self) -> str:
        worst = self.worst
        declared = (
            f"declared {worst.measure} {write_fraction(worst.declared)} ({worst.claim.status})"
        )
        lines = [f"{self.verdict}: {self.method}, {self.release_form}, {declared}"]
        for finding in self.findings:
            bound = finding.bound
            low = f"{finding.low:.2f}" if bound.rho is None else f"{finding.low:.3g}"
            counts = f"{bound.before:,} and {bound.after:,}"
            lines += [
                f"  pair: {finding.pair.name}",
                f"    {finding.measure} is at least {low} with confidence {self.confidence:.10g}",
                *finding.in_rho,
                f"    event: {bound.event}",
                f"    in {counts} of {bound.trials:,} runs on the two tables",
            ]
        lines += [f"  counterexample: {basis}." for basis in self._counterexamples]
        if self.refuted and not self.violated:
            lines.append(
                "  These runs did not detect the violation, because they were too few or on "
                "other tables. The counterexample holds all the same."
            )
        elif not self.violated:
            lines.append(
                "  That no violation was found does not support the claim; only its "
                "proof does, if it has one."
            )
        return "\n".join(lines)

    @property
    def _counterexamples(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(claim.basis for claim in self.refuted))

    def facts(self) -> Mapping[str, Any]:
        """Return the audit as plain values for the report, with the tables of its pairs."""
        worst = self.worst
        return {
            "method": self.method,
            "release_form": self.release_form.value,
            "level": self.level,
            "trials": self.trials,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "violated": self.violated,
            "counterexamples": list(self._counterexamples),
            "declared": write_fraction(worst.declared),
            "measure": worst.measure.value,
            "status": worst.claim.status.value,
            "basis": worst.claim.basis,
            "findings": [_plain(finding) for finding in self.findings],
        }


def audit(
    policy: PolicySource,
    *,
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
    """Try to refute the differential privacy that a policy claims.

    Without a pair or a table, worst cases of the methods' families are built for the policy's
    columns; those whose exact answers are furthest apart, relative to the noise, are run.

    Args:
        policy: a path to a policy file, the same content as a mapping, or a `Policy`. Its
            budget file, if it names one, is not charged; a table is inspected, and recorded there.
        pair: two tables that differ in one person.
        table: one table; a search changes one of its records, and the best change is run.
        trials: runs on each table of a pair; half of them choose the event. By default
            20,000 for arrays and 200 for files.
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
    return Audit(
        method=planned.method.name,
        release_form=planned.setting.release_form,
        level=level,
        trials=trials,
        confidence=confidence,
        findings=findings,
        refuted=tuple(claim for claim in _list_promises(planned) if claim.status is Status.REFUTED),
    )


def _list_promises(planned: Plan) -> list[Claim]:
    return [claim for claim in planned.claims if isinstance(claim.guarantee, DifferentialPrivacy)]


def _claim_to_test(planned: Plan) -> Claim:
    """Return the claim to test: the one about the original records.

    A method with two claims has a conditional one, for tables with the same groups, and one without
    that condition; the pairs built here are for the latter.
    """
    claims = _list_promises(planned)
    if not claims:
        raise InputError(
            f"Method '{planned.method.name}' claims no differential privacy, so there is nothing "
            "to audit. `shoal check` recomputes what it does claim."
        )
    return next((c for c in claims if c.status is not Status.CONDITIONAL), claims[0])


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
    in_rho = isinstance(claim.guarantee, DifferentialPrivacy) and claim.guarantee.rho is not None
    terms["concentrated"] = in_rho
    frames = (pair.before, pair.after)
    if level == "files":
        with folders.temporary() as folder:
            sides = [
                Releases(planned, frame, noise, folder / str(side))
                for side, frame in enumerate(frames)
            ]
            (example,) = sides[0](1)
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
        if in_rho:
            moved, proved = _most_moved(runs, source)
    return Finding(pair, claim, bound, moved, proved)


def _most_moved(runs: Sequence[ArrayRuns], noise: Noise) -> tuple[float, float]:
    """Return the largest rho of the changes in replayed runs, and of their first question."""
    most = proved = 0.0
    for _ in range(_GIVEN_BACK):
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


def _plain(finding: Finding) -> dict[str, Any]:
    bound, pair = finding.bound, finding.pair
    after: list[tuple[Any, ...]] = pair.after.rows()
    if pair.after.height < pair.before.height:  # an empty row for the one that is not there
        after.insert(pair.row, (None,) * pair.after.width)
    first = max(0, min(pair.row - _ROWS_SHOWN // 2, pair.before.height - _ROWS_SHOWN))
    return {
        "pair": pair.name,
        "event": str(bound.event),
        "violated": finding.violated,
        "low": finding.low,
        "value": (bound.rho or bound.epsilon).value,
        "in_rho": [line.strip() for line in finding.in_rho],
        "trials": bound.trials,
        "tried": bound.tried,
        "sides": [
            {"hits": hits, "share": str(clopper_pearson(hits, bound.trials))}
            for hits in (bound.before, bound.after)
        ],
        "rows": pair.before.height,
        "first": first,
        "row": pair.row,
        "columns": pair.before.columns,
        "before": pair.before[first : first + _ROWS_SHOWN].rows(),
        "after": after[first : first + _ROWS_SHOWN],
    }


__all__ = ["Audit", "Finding", "audit"]
