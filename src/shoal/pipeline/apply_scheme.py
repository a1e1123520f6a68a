"""Recode another table as an earlier release recoded its own, and check every promise again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from shoal import engine, io
from shoal.core import Policy, Progress, Release, Scheme, silent
from shoal.errors import InputError
from shoal.pipeline import protect_file, protect_table, scheme_files
from shoal.pipeline.manifest import MANIFEST
from shoal.pipeline.options import EvaluationOptions, OutputOptions, ReadingOptions
from shoal.pipeline.planning import plan
from shoal.pipeline.protect_file import Published
from shoal.pipeline.scheme_files import Applied


def apply(
    scheme: Scheme | Release | str | Path,
    data: Any,
    *,
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
    applied = _applied(scheme, previous, record_suppression, coarsen)
    policy = applied.scheme.policy
    if engine.is_distributed(data):
        raise InputError("A scheme is applied on one machine; expected a table that fits into it.")
    planned = plan(policy, keep_order=keep_order, audience=audience)
    done = protect_table.run(
        planned, engine.source(data, policy=policy), progress=progress, applied=applied
    )
    done.close()
    return done.release


def apply_file(
    scheme: Path,
    data: Path,
    out: Path,
    *,
    previous: Path | None = None,
    record_suppression: float | None = None,
    coarsen: Sequence[str] = (),
    reading: ReadingOptions = ReadingOptions(),
    output: OutputOptions = OutputOptions(),
    evaluation: EvaluationOptions = EvaluationOptions(),
    progress: Progress = silent,
) -> Published:
    """Recode a file as an earlier release recoded its own, and write the release; see `apply`."""
    applied = _applied(scheme, previous, record_suppression, coarsen)
    return protect_file.protect(
        data,
        applied.scheme.policy,
        out,
        reading=reading,
        output=output,
        evaluation=evaluation,
        progress=progress,
        applied=applied,
    )


def under_policy(
    scheme: Path, policy: Policy, *, previous: Path | None = None, coarsen: Sequence[str] = ()
) -> Applied:
    """A scheme for `protect_file.protect`, under a policy that recodes as the scheme's own does."""
    before = _beside(scheme) if previous is None else previous
    kept = scheme_files.adjusted(
        scheme_files.under(scheme_files.read(scheme), policy), coarsen=coarsen
    )
    return Applied(kept, None if before is None else _released(before))


def _applied(
    scheme: Scheme | Release | str | Path,
    previous: Any,
    record_suppression: Any,
    coarsen: Sequence[str],
) -> Applied:
    before = previous
    if isinstance(scheme, str | Path):
        path = Path(scheme)
        before = _beside(path) if before is None else before
        scheme = scheme_files.read(path)
    elif isinstance(scheme, Release):
        before = scheme.data if before is None else before
        if scheme.scheme is None:
            raise InputError(
                f"This release by '{scheme.manifest['method']}' has no scheme. Releases by "
                "full-domain, bucketization, and mondrian with intervals have one."
            )
        scheme = scheme.scheme
    changed = scheme_files.adjusted(scheme, record_suppression=record_suppression, coarsen=coarsen)
    return Applied(changed, None if before is None else _released(before))


def _beside(path: Path) -> Path | None:
    """The release folder that a scheme in its confidential folder belongs to."""
    folder = path.absolute().parent
    public = folder.with_name(folder.name.removesuffix(".internal"))
    return public if public != folder and (public / MANIFEST).is_file() else None


def _released(previous: Any) -> pl.DataFrame:
    """The table of an earlier release: a frame, its file, or its folder."""
    if isinstance(previous, str | Path) and Path(previous).is_dir():
        tables = sorted(Path(previous).glob("release.*"))
        if not tables:
            raise InputError(f"'{previous}' holds no released table.")
        previous = tables[0]
    return io.take(previous).frame
