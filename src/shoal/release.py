"""The pipeline: plan, run, check, release. The only room that attaches claims.

`plan` settles everything that can be settled without the data: the method, its parameters,
what it will promise, and whether that covers what the policy requires. `run` protects a
table and recomputes every promise on the result; what fails stops the release.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import ValidationError

from shoal import intake, io
from shoal import policy as policies
from shoal.core import (
    Check,
    Claim,
    Guarantee,
    KAnonymity,
    Kind,
    Policy,
    Progress,
    Release,
    ReleaseForm,
    Role,
    Status,
    silent,
)
from shoal.engine import local
from shoal.errors import ClaimViolationError, InputError, InternalError, did_you_mean
from shoal.measures import loss
from shoal.methods import REGISTRY, Method, Setting, Tools, find
from shoal.models import k_when_missing_matches, smallest_run
from shoal.table import Table

WITNESS_ROWS = 5
"""How many rows of a witness group are named."""


@dataclass(frozen=True)
class Plan:
    """What will be done, and what it will promise, settled before any data is read.

    Attributes:
        notes: what the policy says and this method does not use, in sentences.
    """

    policy: Policy
    method: Method[Any]
    setting: Setting[Any]
    claims: tuple[Claim, ...]
    required: tuple[Guarantee, ...]
    not_claimed: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """A release, and the confidential figures that compare it with the original."""

    release: Release
    figures: Mapping[str, Any]


def protect(
    data: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    keep_order: bool = False,
    progress: Progress = silent,
) -> Release:
    """Protect a table as its policy says.

    Args:
        data: a pandas, Polars or PyArrow table, one row a person.
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.
        keep_order: release row i in place of row i. By default rows are shuffled, since
            their order can identify.
        progress: called with the stage and how far it is.

    Returns:
        The release; `data` in it has the type that was handed in.

    Raises:
        InputError: the table or the policy cannot be used as it is.
        ClaimViolationError: a required promise cannot be kept; nothing is released.
    """
    planned = plan(policy, keep_order=keep_order)
    return run(planned, io.from_native(data), progress=progress).release


def plan(policy: Policy | Mapping[str, Any] | str | Path, *, keep_order: bool = False) -> Plan:
    """Settle method, parameters and promises, and stop if a required promise is not among them."""
    policy = policies.load(policy)
    method = find(policy.method)
    columns = policy.columns or method.default_columns(policy.schema)
    if not columns:
        raise InputError(
            f"Method '{method.name}' protects the quasi-identifiers, and the policy names none. "
            "Give a column that role, or list columns under [protect]."
        )
    setting = Setting(
        schema=policy.schema,
        columns=columns,
        parameters=_parameters(method, policy.parameters),
        release_form=_form(method, policy, keep_order=keep_order),
    )
    method.refuse(setting)
    planned = Plan(
        policy=policy,
        method=method,
        setting=setting,
        claims=method.claims(setting),
        required=_required(policy),
        not_claimed=method.not_claimed(setting),
        notes=_notes(policy, setting),
    )
    for guarantee in planned.required:
        if not any(_covers(claim, guarantee) for claim in planned.claims):
            raise ClaimViolationError(_cannot(planned, guarantee))
    return planned


def run(planned: Plan, raw: io.Raw, *, progress: Progress = silent) -> Run:
    """Protect a table by a plan and recompute every promise on the result.

    Returns:
        The release, and the figures that compare it with the original, which are as
        confidential as the original.
    """
    progress("reading columns", 0, 1)
    policy = planned.policy
    table = intake.adopt(raw.frame, policy.schema, decimal=policy.reading.get("decimal"))
    _check_size(table, planned.setting)
    outcome = local.run(table, planned.method, planned.setting, Tools(progress))
    progress("checking promises", 0, 1)
    frame = outcome.protected.publishable()[_row_order(planned, outcome.places)]
    checks = tuple(check_frame(frame, g) for g in _to_check(planned))
    for check in checks:
        if not check.holds:
            raise InternalError(
                f"The release was stopped: {check.guarantee} is promised and does not hold "
                f"(achieved {check.achieved}). This is a bug of Shoal; please report it."
            )
    release = Release(
        data=raw.restore(frame),
        claims=planned.claims,
        checks=checks,
        spendings=outcome.spendings,
        manifest=_manifest(planned, checks, frame),
        labels=_released_labels(raw.labels, frame),
    )
    progress("measuring losses", 0, 1)
    return Run(release, _figures(outcome, planned.setting))


def check(released: Any, policy: Policy | Mapping[str, Any] | str | Path) -> tuple[Check, ...]:
    """Recompute what a policy requires on any released table, whoever made it.

    Cells are compared as they are released: intervals, ancestors and stars are values. Where
    the policy requires nothing, the k of its quasi-identifiers is reported against k = 2.

    Args:
        released: a pandas, Polars or PyArrow table.
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.

    Raises:
        InputError: the table has columns that the policy does not name, or lacks one that
            the guarantee is about.
        ClaimViolationError: an identifier column is present.
    """
    policy = policies.load(policy)
    frame = io.from_native(released).frame
    schema = policy.schema
    present = [name for name in schema.with_role(Role.IDENTIFIER) if name in frame.columns]
    if present:
        raise ClaimViolationError(
            f"The released table holds the identifier column '{present[0]}'; expected none."
        )
    for name in frame.columns:
        if name not in schema.names:
            guess = did_you_mean(name, schema.names)
            raise InputError(f"The table has a column '{name}' that the policy lacks.{guess}")
    required = _required(policy) or (KAnonymity(2, schema.with_role(Role.QUASI_IDENTIFIER)),)
    for guarantee in required:
        for name in guarantee.columns:
            if name not in frame.columns:
                raise InputError(
                    f"The table lacks the quasi-identifier '{name}', which {guarantee.name} is "
                    "about. If it was dropped on purpose, take it out of the policy."
                )
        if not guarantee.columns:
            raise InputError("The policy names no quasi-identifier, so that k has no meaning.")
    if frame.height == 0:
        raise InputError("The table has no rows; there is nothing to check.")
    return tuple(check_frame(frame, guarantee) for guarantee in required)


def check_frame(frame: pl.DataFrame, guarantee: KAnonymity) -> Check:
    """Recompute a guarantee on a frame, cells compared as they are."""
    keys = list(guarantee.columns)
    if len(keys) == 1 and frame.schema[keys[0]].is_float():
        # One numeric column, as individual ranking promises: sorting beats hashing.
        quick = _check_column(frame[keys[0]], guarantee)
        if quick.holds:
            return quick
    classes = frame.group_by(keys).len("records")
    achieved = int(classes["records"].min())  # type: ignore[arg-type]  # never empty
    smallest = classes.filter(pl.col("records") == achieved).sort(keys, nulls_last=True)[:1]
    rows = (
        frame.select(keys)
        .with_row_index("row", offset=1)
        .join(smallest, on=keys, how="semi", nulls_equal=True)["row"]
    )
    remarks: dict[str, Any] = {"classes": classes.height}
    if sum(frame.select(keys).null_count().row(0)):
        codes = np.column_stack([_dense(classes[name]) for name in keys])
        counts = classes["records"].cast(pl.Int64).to_numpy()
        remarks["k_if_missing_matches_anything"] = k_when_missing_matches(codes, counts)
    return Check(
        guarantee,
        holds=achieved >= guarantee.k,
        achieved=achieved,
        witness={"size": achieved, "rows": rows.head(WITNESS_ROWS).to_list()},
        remarks=remarks,
    )


def _check_column(series: pl.Series, guarantee: KAnonymity) -> Check:
    """Recompute k of one column of floats; without naming the rows of the smallest class."""
    present = series.drop_nulls()
    gone = series.null_count()
    rarest = smallest_run(present.to_numpy()) if present.len() else gone
    achieved = min(rarest, gone) if gone else rarest
    remarks = {"k_if_missing_matches_anything": min(rarest + gone, series.len())} if gone else {}
    return Check(guarantee, achieved >= guarantee.k, achieved, {"size": achieved}, remarks)


def _dense(series: pl.Series) -> NDArray[np.int64]:
    """Number the distinct values of a column from 0, -1 where missing."""
    return (series.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy()


def _parameters(method: Method[Any], given: Mapping[str, Any]) -> Any:
    known = list(method.parameters.model_fields)
    for name in given:
        if name not in known:
            guess = did_you_mean(name, known)
            raise InputError(
                f"Method '{method.name}' has no parameter '{name}'.{guess} It takes: "
                f"{', '.join(known)}."
            )
    try:
        return method.parameters.model_validate(dict(given))
    except ValidationError as error:
        raise InputError(policies.sentence(error, "[protect]")) from None


def _form(method: Method[Any], policy: Policy, *, keep_order: bool) -> ReleaseForm:
    asked = ReleaseForm.ROW_ALIGNED if keep_order else policy.release_form
    if asked is None:
        return method.forms[0]
    if asked not in method.forms:
        known = ", ".join(method.forms)
        raise InputError(f"Method '{method.name}' has no release form '{asked}'. It has: {known}.")
    return asked


def _required(policy: Policy) -> tuple[Guarantee, ...]:
    columns = policy.schema.with_role(Role.QUASI_IDENTIFIER)
    return tuple(KAnonymity(k, columns) for k in policy.required.values())


def _covers(claim: Claim, guarantee: Guarantee) -> bool:
    """Whether a claim implies a guarantee: at least as many records, at least these columns."""
    return (
        claim.status is Status.PROVED
        and claim.guarantee.k >= guarantee.k
        and set(claim.guarantee.columns) >= set(guarantee.columns)
    )


def _cannot(planned: Plan, guarantee: Guarantee) -> str:
    """Say why a requirement stops the plan, and name the nearest method that meets it."""
    able = [
        method.name
        for method in REGISTRY.values()
        if method.name != planned.method.name
        and any(_covers(claim, guarantee) for claim in _claims_with(method, planned, guarantee))
    ]
    unprotected = [name for name in guarantee.columns if name not in planned.setting.columns]
    wide = [
        c.guarantee for c in planned.claims if set(c.guarantee.columns) >= set(guarantee.columns)
    ]
    if unprotected:
        why = f"[protect] columns leaves out {', '.join(unprotected)}; add what is missing"
    elif wide:
        why = f"it promises {wide[0]}; raise its k to {guarantee.k}"
    else:
        why = " ".join(planned.not_claimed).rstrip(".")
    fixable = unprotected or wide
    offer = f" Nearest that can: {', '.join(able)}." if able and not fixable else ""
    return (
        f"The policy requires {guarantee}, and method '{planned.method.name}' as set up cannot "
        f"promise it: {why}.{offer} Nothing was read or written."
    )


def _claims_with(method: Method[Any], planned: Plan, guarantee: Guarantee) -> tuple[Claim, ...]:
    """What another method would claim if it were given the same parameters and all columns."""
    try:
        parameters = method.parameters.model_validate(dict(planned.policy.parameters))
    except ValidationError:
        return ()
    setting = replace(planned.setting, parameters=parameters, columns=guarantee.columns)
    return method.claims(setting)


def _notes(policy: Policy, setting: Setting[Any]) -> tuple[str, ...]:
    """Say which keys of the policy this method carries along without using them."""
    schema = policy.schema
    notes = []
    weight = schema.flagged("weight")
    if weight in schema.released:
        notes.append(f"Weight '{weight}' is released as it is; group centres are unweighted.")
    stratum = schema.flagged("stratum")
    if stratum:
        notes.append(f"Stratum '{stratum}' is carried along; groups may span strata.")
    household = schema.flagged("household")
    if household:
        notes.append(
            f"Household '{household}': a group of k records may hold several members of one."
        )
    public = [column.name for column in schema.columns if column.public]
    if public:
        notes.append(f"Declared public: {', '.join(public)}; this method does not use it.")
    observed = [column.name for column in schema.columns if column.observed]
    if observed:
        notes.append(
            f"Categories of {', '.join(observed)} were copied from the data and are not "
            "confirmed as public."
        )
    untyped = [
        column.name
        for column in schema.columns
        if column.role is Role.OTHER and column.name not in setting.columns
    ]
    if untyped:
        notes.append(f"Released as it is, by role 'other': {', '.join(untyped)}.")
    return tuple(notes)


def _check_size(table: Table, setting: Setting[Any]) -> None:
    k = getattr(setting.parameters, "k", 1)
    if len(table) < k:
        raise InputError(f"Cannot form one group of k={k} from {len(table)} rows.")


def _row_order(planned: Plan, places: NDArray[np.int64]) -> NDArray[np.int64]:
    if planned.setting.release_form is ReleaseForm.ROW_ALIGNED:
        return places
    # Post-processing: a generator seeded by the operating system hides the order.
    rng = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
    return rng.permutation(places.size)


def _to_check(planned: Plan) -> list[Guarantee]:
    """Every promise that a table can be tested for, once."""
    promised = [claim.guarantee for claim in planned.claims if claim.status is not Status.REFUTED]
    return list(dict.fromkeys([*planned.required, *promised]))


def _manifest(planned: Plan, checks: Iterable[Check], frame: pl.DataFrame) -> dict[str, Any]:
    return {
        "shoal_version": version("shoal"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "method": planned.method.name,
        "reference": planned.method.reference,
        "parameters": planned.setting.parameters.model_dump(mode="json"),
        "protected_columns": list(planned.setting.columns),
        "release_form": planned.setting.release_form.value,
        "rows": frame.height,
        "columns": {name: str(dtype) for name, dtype in frame.schema.items()},
        "policy": dict(planned.policy.document),
        "policy_digest": planned.policy.digest,
        "claims": [_plain(claim) for claim in planned.claims],
        "not_claimed": list(planned.not_claimed),
        "notes": list(planned.notes),
        "checks": [_plain(check) for check in checks],
        "spendings": [],
    }


def _plain(value: Claim | Check) -> dict[str, Any]:
    """Write a claim or a check as plain values, the guarantee with its name first."""
    plain = asdict(value)
    guarantee = {"name": value.guarantee.name, **asdict(value.guarantee)}
    return {**plain, "guarantee": guarantee}


def _released_labels(labels: Mapping[str, Any], frame: pl.DataFrame) -> dict[str, Any]:
    kept = {
        sort: {name: label for name, label in labels.get(sort, {}).items() if name in frame.columns}
        for sort in ("columns", "values")
    }
    return kept if any(kept.values()) else {}


def _figures(outcome: local.Outcome, setting: Setting[Any]) -> dict[str, Any]:
    """Compare release and original: for the steward and the officer alone."""
    before, after = outcome.original, outcome.protected
    keys = list(setting.schema.with_role(Role.QUASI_IDENTIFIER))
    return {
        "rows": len(before),
        "unique_on_quasi_identifiers": {
            "original": _unique_rows(before.frame, keys),
            "released": _unique_rows(after.frame, keys),
        },
        "columns": [_column_figures(before, after, name) for name in setting.columns],
    }


def _unique_rows(frame: pl.DataFrame, keys: list[str]) -> int | None:
    """Count the rows whose combination of values nobody else has.

    Rows are compared by a hash of 64 bits: among n rows, a wrong count has probability
    below n^2 / 2^65, 3e-8 for a million.
    """
    if not keys:
        return None
    hashes = np.sort(frame.select(keys).hash_rows().to_numpy())
    new = np.concatenate(([True], hashes[1:] != hashes[:-1], [True]))
    return int((new[1:] & new[:-1]).sum())


def _column_figures(before: Table, after: Table, name: str) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "name": name,
        "kind": before.schema[name].kind,
        "missing_original": int(before.missing(name).sum()),
        "missing_released": int(after.missing(name).sum()),
    }
    if before.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        changed = loss.share_changed(before.codes(name), after.codes(name))
        return {**figures, "loss": changed, "measure": "share of rows whose category changed"}
    ratio = loss.sse_over_sst(before.numbers(name), after.numbers(name))
    return {**figures, "loss": ratio, "measure": "SSE / SST"}
