"""Score any release against its original: what it preserves, and what it reveals.

`evaluate` takes two tables, whoever made the second. The result comes from the original and is as
confidential as it. Sampling here carries no privacy: it is seeded, so figures repeat.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import polars as pl

from shoal import io
from shoal import policy as policies
from shoal.core import Policy, Progress, Release, ReleaseForm, silent
from shoal.core.machine import cores
from shoal.errors import InputError, did_you_mean
from shoal.evaluation import before_after, disclosure_risk, utility
from shoal.evaluation.arrays import AlignedArrays
from shoal.evaluation.results import Better, Evaluation, Figure, Part
from shoal.io import text_files
from shoal.io.external import read
from shoal.methods import find
from shoal.metrics._sklearn import one_thread
from shoal.pipeline import booking

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

    The original is the table as it was handed in. Linear algebra has one thread, and metrics run
    beside each other: no figure depends on how many cores there are.
    """
    wanted, which = _parts(only), _names(which)
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
                pictures = before_after.pictures(sides)
    return Evaluation(
        figures=(*risks, *kept),
        skipped=(*unattacked, *unmeasured),
        how=reading.how,
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
