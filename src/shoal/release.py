"""The pipeline: plan, run, check, release. The only room that attaches claims.

`planning.plan` has settled what will be promised. `run` protects a table, recomputes every
promise on the result, and derives the price again from the ledger; what fails stops the release.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import clamp, figures, intake, io
from shoal.checking import check_frame
from shoal.core import (
    Check,
    Claim,
    DifferentialPrivacy,
    KAnonymity,
    Neighbours,
    Noise,
    Policy,
    Progress,
    Release,
    ReleaseForm,
    Spending,
    Status,
    Testable,
    figure,
    plain,
    silent,
)
from shoal.engine import local
from shoal.errors import ClaimViolationError, InputError, InternalError
from shoal.hazmat import budget, ledger
from shoal.hazmat.noise import OpenDPNoise
from shoal.methods import Tools
from shoal.planning import Plan, plan, with_rows
from shoal.table import Table


@dataclass(frozen=True)
class Run:
    """A release, and what only the steward may see of it.

    Attributes:
        figures: what compares the release with the original: confidential.
        warnings: what the budget file had to say.
        booking: the budget file and the entry that `settle` closes once the release is out.
    """

    release: Release
    figures: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    booking: tuple[Path, int] | None = None


def protect(
    data: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    keep_order: bool = False,
    progress: Progress = silent,
    noise: Noise | None = None,
) -> Release:
    """Protect a table as its policy says.

    Args:
        data: a pandas, Polars or PyArrow table, one row a person.
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.
        keep_order: release row i in place of row i. By default rows are shuffled, since
            their order can identify.
        progress: called with the stage and how far it is.
        noise: another source of noise, for experiments: a release made with one that is
            not secure carries no claim of differential privacy.

    Returns:
        The release; `data` in it has the type that was handed in.

    Raises:
        InputError: the table or the policy cannot be used as it is.
        ClaimViolationError: a required promise cannot be kept; nothing is released.
    """
    planned = plan(policy, keep_order=keep_order)
    done = run(planned, io.from_native(data), progress=progress, noise=noise)
    settle(done)
    return done.release


def run(
    planned: Plan,
    raw: io.Raw,
    *,
    progress: Progress = silent,
    noise: Noise | None = None,
) -> Run:
    """Protect a table by a plan and recompute every promise on the result.

    The budget file, if the policy names one, is charged before the first draw: a run that
    crashes later counts as spent.

    Returns:
        The release, and the figures that compare it with the original, which are as
        confidential as the original.
    """
    progress("reading columns", 0, 1)
    table, clamped = _adopted(planned, raw)
    planned = with_rows(planned, len(table))
    noise = OpenDPNoise() if noise is None else noise
    claims = tuple(c for c in planned.claims if noise.secure or isinstance(c.guarantee, KAnonymity))
    booking, warnings = _book(planned, claims)
    tools = Tools(noise=noise, progress=progress)
    outcome = local.run(table, planned.method, planned.setting, tools)
    progress("checking promises", 0, 1)
    _verify(claims, outcome.spendings, noise)
    frame = _arranged(planned, outcome)
    checks = _checked(planned, claims, frame)
    release = Release(
        data=raw.restore(frame),
        claims=claims,
        checks=checks,
        spendings=outcome.spendings,
        manifest=_manifest(planned, claims, checks, outcome.spendings, frame),
        labels=_released_labels(planned, raw.labels, frame),
    )
    progress("measuring losses", 0, 1)
    compared = figures.compare(outcome.original, outcome.protected, planned.setting.columns)
    for column in compared["columns"]:
        if column["name"] in clamped:  # the original here is already clamped
            column["missing_original"] = clamped[column["name"]]["missing"]
    told = (*warnings, *_unreadable(clamped, len(table)))
    return Run(release, {**compared, "clamped": clamped}, told, booking)


def settle(done: Run) -> None:
    """Mark the budget's entry of a run as released."""
    if done.booking is not None:
        budget.settle(*done.booking)


def secure_noise() -> Noise:
    """The noise that releases are made with: no seed, entropy of the operating system."""
    return OpenDPNoise()


def open_budget(path: Path, source: str, epsilon: str) -> str:
    """Grant a population a budget in a budget file, which is made if need be."""
    try:
        granted = Fraction(epsilon)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"Expected epsilon as a number such as 0.5, found '{epsilon}'.") from None
    if granted <= 0:
        raise InputError(f"Expected epsilon above 0, found '{epsilon}'.")
    return str(budget.init(path, source, granted))


def show_budget(path: Path) -> str:
    """Say what was granted, spent and left for each population of a budget file."""
    return "\n\n".join(str(account) for account in budget.show(path))


def _adopted(planned: Plan, raw: io.Raw) -> tuple[Table, Mapping[str, Any]]:
    schema, decimal = planned.policy.schema, planned.policy.reading.get("decimal")
    if planned.method.noisy:
        return clamp.adopt(raw.frame, schema, columns=planned.setting.columns, decimal=decimal)
    return intake.adopt(raw.frame, schema, decimal=decimal), {}


def _unreadable(clamped: Mapping[str, Mapping[str, int]], rows: int) -> tuple[str, ...]:
    """Warn the steward, and nobody else, where much of a column could not be read."""
    return tuple(
        f"'{name}': {lost:,} of {rows:,} cells could not be read and count as the constant. Are "
        "decimal mark, format and categories right? (Confidential: do not publish this line.)"
        for name, counts in clamped.items()
        if (lost := counts.get("unreadable", 0) + counts.get("unknown", 0)) > rows / 5
    )


def _book(
    planned: Plan, claims: Iterable[Claim]
) -> tuple[tuple[Path, int] | None, tuple[str, ...]]:
    """Charge the budget of the population: epsilon where it is proved, and else no bound."""
    policy = planned.policy
    if not policy.ledger:
        return None, ()
    proved = [
        claim.guarantee.epsilon
        for claim in claims
        if isinstance(claim.guarantee, DifferentialPrivacy) and claim.status is Status.PROVED
    ]
    path = Path(policy.ledger["file"])
    reservation = budget.spend(
        path,
        policy.ledger["source"],
        epsilon=min(proved, default=None),
        neighbours=Neighbours.CHANGE_ONE,
        policy=policy.digest,
        method=planned.method.name,
    )
    return (path, reservation.id), reservation.warnings


def _verify(claims: Iterable[Claim], spendings: tuple[Spending, ...], noise: Noise) -> None:
    """Derive the price of what was drawn again, and compare it with every claim."""
    drawn = getattr(noise, "drawn", None)
    for claim in claims:
        guarantee = claim.guarantee
        if isinstance(guarantee, DifferentialPrivacy) and claim.status is not Status.REFUTED:
            ledger.verify(
                spendings, guarantee.epsilon, neighbours=guarantee.neighbours, drawn=drawn
            )


def _arranged(planned: Plan, outcome: local.Outcome) -> pl.DataFrame:
    """Put the rows in the order of the release form.

    Shuffling is post-processing: a generator seeded by the operating system hides the order.
    """
    frame = outcome.protected.publishable()
    rng = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
    form = planned.setting.release_form
    if form is ReleaseForm.ROW_ALIGNED:
        return frame[outcome.places]
    if form is ReleaseForm.CANONICAL and outcome.canonical is not None:
        return frame[outcome.canonical]
    if form is ReleaseForm.MARGINALS:
        orders = [rng.permutation(frame.height) for _ in frame.columns]
        return pl.DataFrame([s[order] for s, order in zip(frame, orders, strict=True)])
    return frame[rng.permutation(frame.height)]


def _checked(planned: Plan, claims: Iterable[Claim], frame: pl.DataFrame) -> tuple[Check, ...]:
    """Recompute every promise that a table can be tested for, once; stop if one fails."""
    promised = [claim.guarantee for claim in claims if claim.status is not Status.REFUTED]
    testable = [g for g in (*planned.required, *promised) if isinstance(g, Testable)]
    schema = planned.policy.schema
    checks = tuple(check_frame(frame, guarantee, schema) for guarantee in dict.fromkeys(testable))
    for check in checks:
        if check.holds:
            continue
        found = f"{check.guarantee} does not hold (achieved {figure(check.achieved)})"
        if check.guarantee in promised:
            raise InternalError(
                f"The release was stopped: {found}, and it is promised. This is a bug of Shoal; "
                "please report it."
            )
        raise ClaimViolationError(
            f"The policy requires a promise that the release of '{planned.method.name}' does not "
            f"keep: {found}. Nothing was written."
        )
    return checks


def _manifest(
    planned: Plan,
    claims: Iterable[Claim],
    checks: Iterable[Check],
    spendings: Iterable[Spending],
    frame: pl.DataFrame,
) -> dict[str, Any]:
    return {
        "shoal_version": version("shoal"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "method": planned.method.name,
        "reference": planned.method.reference,
        "parameters": plain(planned.setting.parameters.model_dump()),
        "protected_columns": list(planned.setting.columns),
        "release_form": planned.setting.release_form.value,
        "rows": frame.height,
        "columns": {name: str(dtype) for name, dtype in frame.schema.items()},
        "policy": dict(planned.policy.document),
        "policy_digest": planned.policy.digest,
        "claims": [plain(claim) for claim in claims],
        "not_claimed": list(planned.not_claimed),
        "notes": list(planned.notes),
        "checks": [plain(check) for check in checks],
        "spendings": [plain(spending) for spending in spendings],
    }


def _released_labels(
    planned: Plan, labels: Mapping[str, Any], frame: pl.DataFrame
) -> dict[str, Any]:
    """Labels of the released columns; beside noise, only of values that the policy declares."""
    kept: dict[str, dict[str, Any]] = {
        sort: {name: label for name, label in labels.get(sort, {}).items() if name in frame.columns}
        for sort in ("columns", "values")
    }
    if planned.method.noisy:
        for name, values in kept["values"].items():
            declared = planned.policy.schema[name].levels or ()
            kept["values"][name] = {v: label for v, label in values.items() if v in declared}
    return kept if any(kept.values()) else {}
