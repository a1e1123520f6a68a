"""The pipeline: plan, run, check, release. The only module that attaches claims.

`planning.plan` has settled what will be promised. `run` protects a table, recomputes every
promise on the result, and derives the price again from the accounting; what fails stops the
release.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from shoal import engine, io
from shoal.budget import budget_file
from shoal.core import (
    Check,
    Checkable,
    Claim,
    Confidential,
    DifferentialPrivacy,
    Guarantee,
    KeptRule,
    Kind,
    Noise,
    Policy,
    PrivacyLoss,
    Progress,
    Release,
    Role,
    Scheme,
    Status,
    Testable,
    figure,
    silent,
    write_fraction,
)
from shoal.core.machine import now
from shoal.core.manifest import Manifest
from shoal.core.serialise import plain
from shoal.engine import Outcome, Source
from shoal.errors import (
    LOST_SPARK,
    ClaimViolationError,
    InputError,
    InternalError,
    ShoalError,
    is_spark_lost,
)
from shoal.hazmat import accounting
from shoal.hazmat.noise import OpenDPNoise
from shoal.io.column_counts import ColumnCounts
from shoal.io.text_files import quote
from shoal.methods import Setting, Tools, discovery
from shoal.methods.discovery import Discovered
from shoal.pipeline import audiences, booking, forecast
from shoal.pipeline.booking import NOT_CHOSEN
from shoal.pipeline.manifest import derive_fields, list_deciding_versions, select_labels, version_of
from shoal.pipeline.planning import Foreseeable, Plan, able, covers, foreseen_rows, plan, with_rows
from shoal.pipeline.scheme_files import Applied, is_public, together
from shoal.pipeline.stated_reading import assume
from shoal.policy import PolicySource
from shoal.policy.draft import draft, draft_from_header
from shoal.policy.drafted import DraftedPolicy


@dataclass(frozen=True)
class Run:
    """A release, and what only the steward may see of it.

    Attributes:
        planned: the plan, with what was discovered.
        evidence: the original beside the release, for the confidential folder:
            see `engine.interface.Outcome`.
        account: what the budget file says of it: source, epsilon, what remains, warnings.
        booking: the budget file and the entry that `settle` closes once the release is out.
        counts: those of the released columns, if promises were checked by them.
    """

    release: Release
    planned: Plan
    evidence: Confidential[Any]
    counts: ColumnCounts | None
    account: Mapping[str, Any] | None = None
    booking: tuple[Path, int] | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the budget file."""
        return () if self.account is None else tuple(self.account["warnings"])

    def close(self) -> None:
        """Free the original."""
        self.evidence.map(lambda evidence: evidence.close())

    def settle(self) -> Release:
        """Mark the budget's entry as released, free the original, and return the release."""
        settle(self)
        self.close()
        return self.release


class StoppedError(ClaimViolationError):
    """A release drawn with noise that fails a check; only for its steward."""

    release: Release


def protect(
    data: Any,
    policy: PolicySource | None = None,
    *,
    keep_order: bool = False,
    audience: str | None = None,
    progress: Progress = silent,
    noise: Noise | None = None,
    epsilon: float | str | None = None,
    delta: float | str | None = None,
    **drafting: Any,
) -> Release:
    """Protect a table as its policy says, or as a draft does.

        shoal.protect(people, k=5, quasi_identifiers=["age", "region"], confidential=["income"])
        shoal.protect(people, epsilon=1, delta=1e-9)

    Args:
        data: the path of a file, what `shoal.read` returned, a pandas, Polars or PyArrow table, or
            a Spark DataFrame; one row per person.
        policy: a path to a policy file, the same content as text or as a mapping, what
            `shoal.draft` returned, or a `Policy`.
        keep_order: release row i in place of row i. By default rows are shuffled, since
            their order can identify.
        audience: who will get the release, instead of the policy's: public-use, scientific-use or
            secure-use; see `shoal.pipeline.audiences`.
        progress: called with the stage and how far it is.
        noise: another source of noise, for experiments: a release made with one carries no claim
            of differential privacy, whatever it is.
        epsilon: without a policy, what the release may cost, with a delta: rows are drawn, and
            kinds, categories and bounds are discovered with noise. It is assumed that each person
            has one row, unless a column says by its name that it numbers them.
        delta: the probability of a larger loss, which discovering texts needs: about 1e-9.
        drafting: without a policy, arguments of `shoal.draft`, such as k, keep and the columns of
            each role; `release.policy` has the draft, with what was guessed.

    Returns:
        The release; `data` in it has the type that was handed in. Of a file it is Polars'.

    Raises:
        InputError: the table or the policy cannot be used as it is, or the claims will not do
            for the audience.
        ClaimViolationError: a required promise cannot be kept; nothing is released.
    """
    drafted = None
    if policy is None:
        data, drafted = _draft(data, epsilon, delta, audience=audience, **drafting)
        policy, audience = drafted, None
    elif epsilon is not None or delta is not None or drafting:
        prices = {"epsilon": epsilon, "delta": delta}
        named = ", ".join([*drafting, *(name for name, given in prices.items() if given)])
        raise InputError(f"Expected a policy, or what to draft one from; found both ({named}).")
    planned = plan(
        policy,
        keep_order=keep_order,
        distributed=engine.is_distributed(data),
        audience=audience,
        data=data,
    )
    source = engine.source(data, policy=planned.policy, alone=planned.method.noisy)
    release = run(planned, source, progress=progress, noise=noise).settle()
    return release if drafted is None else replace(release, policy=drafted.text)


def _draft(
    data: Any, epsilon: float | str | None, delta: float | str | None, **drafting: Any
) -> tuple[Any, DraftedPolicy]:
    """Draft a policy for a caller without one; also return the table as it was read."""
    if epsilon is None and delta is not None:
        raise InputError("Expected delta beside epsilon, found delta alone.")
    if epsilon is None and "k" not in drafting:
        raise InputError(
            "Expected a policy, or k and the columns of each role, or epsilon and delta; found "
            "none of them."
        )
    if engine.is_distributed(data):
        raise InputError("A table on Spark needs a policy; draft one from a part of it.")
    if epsilon is not None:
        if delta is None:
            raise InputError(
                "An epsilon by itself needs a policy that states the bounds and the categories of "
                "every column, from public knowledge: `shoal init --epsilon` writes the lines to "
                "fill in. With a delta, such as 1e-9, they are discovered with noise."
            )
        known = signature(draft_from_header).parameters
        if other := [name for name in drafting if name not in known]:
            raise InputError(
                f"'{other[0]}' is for a release in which k people share a value, and one with an "
                "epsilon protects each person by noise. State one or the other."
            )
        return data, draft_from_header(data, epsilon=str(epsilon), delta=str(delta), **drafting)
    raw = io.read(data) if isinstance(data, str | Path) else io.from_native(data)
    return raw, draft(raw, **drafting)


def run(
    planned: Plan,
    raw: io.Raw | Source,
    *,
    progress: Progress = silent,
    noise: Noise | None = None,
    note: str = "",
    applied: Applied | None = None,
) -> Run:
    """Protect a table by a plan and recompute every promise on the result.

    `applied` is the scheme of an earlier release, if the table is recoded the same way.

    The budget file, if the policy names one, is charged before the first draw: a run that
    crashes later counts as spent. Beside the release is the original, which nothing but a
    confidential folder takes.
    """
    progress("reading columns", 0, 1)
    ours = noise is None
    noise = OpenDPNoise() if noise is None else noise
    rng = getattr(noise, "rng", None) or np.random.default_rng()
    source = engine.source(raw)
    how = engine.Adoption(
        schema=planned.policy.schema,
        clamped=planned.method.clamps(planned.setting) if planned.method.noisy else None,
        decimal=planned.policy.reading.decimal,
        key=0 if planned.policy.schema.persons is None else int(rng.integers(1 << 63)),
        constraints=planned.policy.constraints,
        pseudonym_key=audiences.read_pseudonym_key(planned.policy),
    )
    rows = source.adopt(how)
    planned = with_rows(planned, rows.public_rows(planned.setting))
    claims = assume(planned.claims, source.assumes)
    claims = tuple(c for c in claims if ours or isinstance(c.guarantee, Testable))
    _still_covered(planned, claims)
    _not_inspected(planned, claims)
    booked = booking.book(planned, claims, note)
    with _counting_as_spent(booked):
        if booked is not None and booked.inspected:
            _not_inspected(planned, claims)  # Somebody may have inspected it just now.
            claims = tuple(map(_if_not_chosen_from_it, claims))
        progress = forecast.report_estimate(progress, planned)
        tools = Tools(noise, progress, rng)
        planned, setting, found = _discover(planned, claims, source, how, tools)
        if found.columns:
            rows = source.adopt(replace(how, schema=planned.policy.schema))
        recoding = None if applied is None else applied.scheme.recoding
        outcome = rows.run(planned.method, setting, tools, recoding)
        privacy_losses = (*found.privacy_losses, *outcome.privacy_losses)
        progress("checking promises", 0, 1)
        drawn = getattr(noise, "drawn", {})
        _verify(claims, privacy_losses, drawn)
        checks = outcome.checks(testable(planned, claims), planned.policy)
        failed = _find_failure(planned, claims, checks)
        if failed is not None and not privacy_losses:
            raise failed
        release = Release(
            data=outcome.data,
            claims=claims,
            checks=checks,
            privacy_losses=privacy_losses,
            manifest=_manifest(
                planned,
                claims,
                checks,
                outcome,
                drawn,
                beside=_beside(planned, applied, outcome),
                found=found,
            ),
            labels=select_labels(planned, source.labels, outcome.columns),
            extras=outcome.extras,
            unexpected=list_unexpected(planned, outcome),
            scheme=None
            if outcome.recoding is None
            else Scheme(
                planned.policy,
                outcome.recoding,
                public=outcome.recoding_public and is_public(planned.policy),
            ),
        )
        if failed is not None:
            # Noise was paid for: whoever paid may see it, and nobody else.
            stopped = StoppedError(str(failed))
            stopped.release = release
            raise stopped
    used = planned.policy.budget
    if booked is None or used is None:
        return Run(release, planned, outcome.evidence, outcome.counts)
    account = {
        "source": used.source,
        "epsilon": booked.epsilon,
        "rho": booked.rho,
        "remaining": booked.remaining,
        "warnings": booked.warnings,
        "head": booked.head,
    }
    entry = (used.file, booked.id)
    return Run(release, planned, outcome.evidence, outcome.counts, plain(account), entry)


def _discover(
    planned: Plan, claims: Iterable[Claim], source: Source, how: engine.Adoption, tools: Tools
) -> tuple[Plan, Setting[Any], Discovered]:
    """Find what the policy leaves open; return the plan with it, and what the method may spend."""
    stated = (*claims, *planned.claims)  # noise of an experiment supports no claim, and is paid too
    claimed = next((c.guarantee for c in stated if isinstance(c.guarantee, DifferentialPrivacy)),
                   None)  # fmt: skip
    asked = None
    if claimed is not None:
        asked = discovery.plan_discovery(planned.setting, claimed, planned.policy.reading.decimal)
    if asked is None or claimed is None:
        return planned, planned.setting, Discovered()
    tools.progress("discovering columns", 0, 1)
    found = source.ask(how, lambda count: discovery.discover(asked, count, tools.noise))
    planned = settle_plan(planned, found.facts)
    return planned, discovery.leave_for_method(planned.setting, claimed, found.left), found


def settle_plan(planned: Plan, facts: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Return a plan whose open columns are as they were discovered."""
    policy = discovery.settle_policy(planned.policy, facts)
    return replace(planned, policy=policy, setting=replace(planned.setting, schema=policy.schema))


def _beside(planned: Plan, applied: Applied | None, outcome: Outcome) -> tuple[str, ...]:
    """Say what a release by a scheme discloses together with the scheme's own release."""
    if applied is None or applied.previous is None:
        return ()
    released = io.from_native(outcome.data).frame
    return together(
        applied.previous,
        released,
        planned.setting.columns,
        planned.policy,
        k=planned.setting.parameters.k,
    )


def list_unexpected(planned: Plan, outcome: Outcome) -> tuple[str, ...]:
    """List what the policy has not accepted of a release without epsilon, in sentences.

    For a release with epsilon the list is empty, because a sentence would disclose something about
    the table.
    """
    if planned.method.noisy:
        return ()
    policy, schema = planned.policy, planned.policy.schema
    constant = [name for name in outcome.constant if name not in policy.accept_constant]
    distinct = [
        name
        for name in outcome.distinct
        if name not in (*policy.accept_distinct, *planned.setting.columns)
        and (schema[name].role is Role.OTHER or schema[name].kind not in {Kind.NUMERIC, Kind.DATE})
        and not (schema[name].sampling_weight or schema[name].pseudonym)  # who states it, asks
    ]
    unexpected = []
    if constant:
        unexpected.append(
            f"{_name_columns(constant, 'has', 'have')} one value in the release and several in "
            "the table. Lower k or protect fewer columns; or accept it under [release]: "
            f"accept_constant = [{', '.join(map(quote, constant))}]."
        )
    if distinct:
        unexpected.append(
            f"{_name_columns(distinct, 'is', 'are')} released unchanged with another value in "
            "every row: whoever knows the value finds the row. Use the role identifier; or accept "
            f"it under [release]: accept_distinct = [{', '.join(map(quote, distinct))}]."
        )
    return tuple(unexpected)


def _name_columns(names: Sequence[str], one: str, several: str) -> str:
    quoted_names = ", ".join(f"'{name}'" for name in names)
    return (
        f"Column {quoted_names} {one}" if len(names) == 1 else f"Columns {quoted_names} {several}"
    )


@contextmanager
def _counting_as_spent(booked: budget_file.Reservation | None) -> Iterator[None]:
    """Add to every error after the booking that the epsilon stays spent."""
    try:
        yield
    except Exception as error:
        if is_spark_lost(error):
            error = InputError(f"{LOST_SPARK} Nothing was written.")
        price = None if booked is None else booked.epsilon or booked.rho
        if not isinstance(error, ShoalError) or booked is None or price is None:
            raise error from None
        what = "Epsilon" if booked.epsilon else "Rho"
        spent = f"{what} {write_fraction(price)} still counts as spent."
        error.args = (f"{error} {spent}",)
        raise error from None


def settle(done: Run) -> None:
    """Mark the budget's entry of a run as released."""
    if done.booking is not None:
        budget_file.settle(*done.booking)


def settle_entry(file: Path, entry: int) -> None:
    """Mark an entry of a budget file as released, if it is not yet."""
    if any(booked.id == entry and booked.status == "reserved"
           for account in budget_file.show(file) for booked in account.entries):  # fmt: skip
        budget_file.settle(file, entry)


def secure_noise() -> Noise:
    """Make the noise of releases: no seed, entropy of the operating system."""
    return OpenDPNoise()


def _still_covered(planned: Plan, claims: tuple[Claim, ...]) -> None:
    """Refuse a plan whose required claims were lost by the number of rows or by the noise."""
    for guarantee in planned.required:
        if isinstance(guarantee, Foreseeable) and not any(
            covers(claim, guarantee) for claim in claims
        ):
            raise ClaimViolationError(
                f"The policy requires {guarantee}, but this run cannot promise it: with these "
                "rows and this source of noise, no proved claim is left. Nothing was written."
            )
    audiences.refuse(planned.policy, claims, why="with these rows and this source of noise")


def foreseen(policy: Policy, rows: int | None = None) -> Plan:
    """Plan a release with everything known before its table is read; nothing is recorded.

    To `plan` it adds what `run` finds in the budget file: after an inspection of the table itself
    an epsilon is conditional. It refuses what `plan` does. `rows` is the number of them, if it is
    known; see `foreseen_rows`.
    """
    planned = foreseen_rows(plan(policy), rows)
    if not booking.is_inspected(policy):
        return planned
    _not_inspected(planned, planned.claims)
    return replace(planned, claims=tuple(map(_if_not_chosen_from_it, planned.claims)))


def _not_inspected(planned: Plan, claims: Iterable[Claim]) -> None:
    """Refuse a required epsilon if the choice of the method may have used the data."""
    used = planned.policy.budget
    if used is None or not booking.is_inspected(planned.policy):
        return
    left = map(_if_not_chosen_from_it, claims)
    audiences.refuse(planned.policy, left, why="after an inspection of the table itself")
    for guarantee in planned.required:
        if isinstance(guarantee, DifferentialPrivacy):
            raise ClaimViolationError(
                f"The policy requires {guarantee}, but the table of source "
                f"'{used.source}' was inspected: since then, an epsilon holds "
                f"only if {NOT_CHOSEN}. An inspection cannot be undone. Remove the requirement and "
                "publish with a conditional claim, or protect a table of people who were not "
                "inspected, choose its method with `shoal compare --on-sample` or "
                "`--private-epsilon`, and use --no-evaluate. Nothing was written."
            )


def _if_not_chosen_from_it(claim: Claim) -> Claim:
    """Make a proved epsilon conditional on how its method was chosen.

    A method that was chosen by inspecting a table is a function of the table, and its
    price does not cover the choice.
    """
    private = isinstance(claim.guarantee, DifferentialPrivacy)
    if not private or claim.status not in {Status.PROVED, Status.CONDITIONAL}:
        return claim
    return replace(claim, status=Status.CONDITIONAL, assumes=(*claim.assumes, NOT_CHOSEN))


def _verify(
    claims: Iterable[Claim],
    privacy_losses: tuple[PrivacyLoss, ...],
    drawn: Mapping[tuple[str, Fraction], int],
) -> None:
    """Derive the total loss of what method and noise report, and compare every claim."""
    for claim in claims:
        guarantee = claim.guarantee
        if isinstance(guarantee, DifferentialPrivacy) and claim.status is not Status.REFUTED:
            _verify_one(privacy_losses, guarantee, drawn)


def _verify_one(
    privacy_losses: tuple[PrivacyLoss, ...],
    guarantee: DifferentialPrivacy,
    drawn: Mapping[tuple[str, Fraction], int],
) -> None:
    accounting.verify(
        privacy_losses,
        guarantee.epsilon,
        neighbours=guarantee.neighbours,
        drawn=drawn,
        delta=guarantee.delta,
        rho=guarantee.rho,
    )


def accounting_faults(
    privacy_losses: Iterable[PrivacyLoss],
    priced: Iterable[DifferentialPrivacy],
    drawn: Mapping[tuple[str, Fraction], int],
) -> tuple[str, ...]:
    """Derive the total loss of a published release's entries, and list what does not fit.

    The entries must add up to each of the guarantees, and account for every draw.
    """
    entries, faults = tuple(privacy_losses), []
    for guarantee in priced:
        try:
            _verify_one(entries, guarantee, drawn)
        except InternalError as error:
            faults.append(str(error))
    return tuple(dict.fromkeys(faults))


def list_published_forms(claim: Claim) -> tuple[Claim, ...]:
    """List the claims that a manifest may state for a planned claim: as strong, or weaker."""
    return (claim, _if_not_chosen_from_it(claim))


def testable(planned: Plan, claims: Iterable[Claim]) -> list[Checkable]:
    """List what is checked on a finished table: all required or promised guarantees, once each."""
    wanted = (*planned.required, *_list_guarantees(claims))
    return list(
        dict.fromkeys(guarantee for guarantee in wanted if isinstance(guarantee, Checkable))
    )


def _list_guarantees(claims: Iterable[Claim]) -> list[Guarantee]:
    return [claim.guarantee for claim in claims if claim.status is not Status.REFUTED]


def _find_failure(
    planned: Plan, claims: Iterable[Claim], checks: Iterable[Check]
) -> ShoalError | None:
    """Make the error of the first failed check, if any; a broken promise is our bug."""
    promised = _list_guarantees(claims)
    noisy = any(isinstance(claim.guarantee, DifferentialPrivacy) for claim in claims)
    for check in checks:
        if check.holds or isinstance(check.guarantee, KeptRule):
            continue
        failure = f"{check.guarantee} does not hold (achieved {figure(check.achieved)})"
        again = " Each further try draws new noise and spends epsilon again." if noisy else ""
        if check.guarantee in promised:
            return InternalError(
                f"The release was stopped: {failure}, although it is promised. This is a bug of "
                "Shoal; please report it."
            )
        return ClaimViolationError(
            f"The policy requires a promise that the release of '{planned.method.name}' does not "
            f"keep: {failure}.{able(planned, check.guarantee)} Nothing was published.{again}"
        )
    return None


def _manifest(
    planned: Plan,
    claims: Iterable[Claim],
    checks: Iterable[Check],
    outcome: Outcome,
    drawn: Mapping[tuple[str, Fraction], int],
    *,
    beside: Sequence[str],
    found: Discovered,
) -> Manifest:
    facts = {
        "shoal_version": version_of("shoal"),
        "versions": list_deciding_versions(planned.method.package),
        "created": now(),
        **derive_fields(planned),
        "rows": outcome.rows,
        "suppressed": outcome.suppressed,
        "columns": dict(outcome.columns),
        "claims": tuple(claims),
        "notes": [*planned.notes, *discovery.describe(found), *outcome.notes, *beside],
        "checks": tuple(checks),
        "privacy_losses": (*found.privacy_losses, *outcome.privacy_losses),
        "draws": [
            {"mechanism": mechanism, "scale": scale, "count": count}
            for (mechanism, scale), count in sorted(drawn.items())
        ],
        "guard_formulas": False,
        "dialect": {},
        "files": {},
        **({"found": found.facts} if found.facts else {}),
    }
    return Manifest.model_validate(plain(facts))
