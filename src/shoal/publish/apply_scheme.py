"""Recode another table as an earlier release recoded its own, and check every promise again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from shoal import engine, io
from shoal import policy as policies
from shoal.core import Progress, Release, Scheme, silent
from shoal.errors import InputError
from shoal.pipeline import protect_table, scheme_files
from shoal.pipeline.manifest import MANIFEST
from shoal.pipeline.manifest import read as read_manifest
from shoal.pipeline.options import EvaluationOptions, OutputOptions, ReadingOptions
from shoal.pipeline.planning import plan
from shoal.pipeline.scheme_files import Applied
from shoal.policy import PolicySource
from shoal.publish import protect_file
from shoal.publish.protect_file import Published
from shoal.publish.released_folder import read_table


def apply(
    scheme: Scheme | Release | str | Path,
    data: Any,
    *,
    policy: PolicySource | None = None,
    previous: Any = None,
    record_suppression: Any = None,
    coarsen: Sequence[str] = (),
    keep_order: bool = False,
    audience: str | None = None,
    progress: Progress = silent,
) -> Release:
    """Recode a table as an earlier release recoded its own.

    Every promise of the scheme's policy is checked again on the result. Classes that lack one are
    suppressed within the policy's `record_suppression`; beyond that nothing is released, and the
    error says how many rows lack what, and what would mend it.

    Args:
        scheme: `release.scheme`, a release that has one, or the path of a `scheme.toml`.
        data: the new table, as for `shoal.protect`.
        policy: instead of the scheme's own, one that recodes the same columns alike; k, the
            suppression it allows and what it requires may differ.
        previous: the table that was released before: the notes of the new release then say what
            both disclose together. By default that of the release, or of the folder beside the
            scheme's.
        record_suppression: the largest share of the rows that may be left out, instead of the
            policy's.
        coarsen: columns to release one level higher than the scheme says; name one twice for two
            levels. For `full-domain`.
        keep_order: as for `shoal.protect`.
        audience: as for `shoal.protect`.
        progress: called with the stage and how far it is.

    Raises:
        InputError: the table, the scheme or an option cannot be used.
        ClaimViolationError: a promise does not hold by this scheme; nothing is released.
    """
    prepared = prepare_scheme(
        scheme,
        policy=policy,
        previous=previous,
        record_suppression=record_suppression,
        coarsen=coarsen,
    )
    if engine.is_distributed(data):
        raise InputError("A scheme is applied on one machine; expected a table that fits into it.")
    scheme_policy = prepared.scheme.policy
    planned = plan(scheme_policy, keep_order=keep_order, audience=audience)
    source = engine.source(data, policy=scheme_policy)
    return protect_table.run(planned, source, progress=progress, applied=prepared).settle()


def apply_file(
    scheme: Path,
    data: Path,
    out: Path,
    *,
    policy: Path | None = None,
    previous: Path | None = None,
    record_suppression: float | None = None,
    coarsen: Sequence[str] = (),
    reading: ReadingOptions = ReadingOptions(),
    output: OutputOptions = OutputOptions(),
    evaluation: EvaluationOptions = EvaluationOptions(),
    progress: Progress = silent,
) -> Published:
    """Recode a file as an earlier release recoded its own, and write the release; see `apply`."""
    prepared = prepare_scheme(
        scheme,
        policy=policy,
        previous=previous,
        record_suppression=record_suppression,
        coarsen=coarsen,
    )
    return protect_file.protect(
        data,
        prepared.scheme.policy,
        out,
        reading=reading,
        output=output,
        evaluation=evaluation,
        progress=progress,
        applied=prepared,
    )


def prepare_scheme(
    scheme: Scheme | Release | str | Path,
    *,
    policy: PolicySource | None = None,
    previous: Any = None,
    record_suppression: Any = None,
    coarsen: Sequence[str] = (),
) -> Applied:
    """Prepare a scheme for use, and find the release before it; see `apply`."""
    before = previous
    if isinstance(scheme, str | Path):
        path = Path(scheme)
        before = _beside(path) if before is None else before
        scheme = scheme_files.read(path)
    elif isinstance(scheme, Release):
        before = scheme.data if before is None else before
        if scheme.scheme is None:
            raise InputError(
                f"This release by '{scheme.manifest.method}' has no scheme. Releases by "
                "full-domain, bucketization, and mondrian with intervals have one."
            )
        scheme = scheme.scheme
    if policy is not None:
        scheme = scheme_files.under(scheme, policies.load(policy))
    changed = scheme_files.adjust(scheme, record_suppression=record_suppression, coarsen=coarsen)
    return Applied(changed, None if before is None else _read_released(before))


def _beside(path: Path) -> Path | None:
    """Find the release folder of a scheme in its confidential folder."""
    folder = path.absolute().parent
    public = folder.with_name(folder.name.removesuffix(".internal"))
    return public if public != folder and (public / MANIFEST).is_file() else None


def _read_released(previous: Any) -> pl.DataFrame:
    """Read the table of an earlier release: a frame, its file, or its folder."""
    if isinstance(previous, str | Path) and Path(previous).is_dir():
        return read_table(Path(previous), read_manifest(Path(previous)))
    return io.take(previous).frame
