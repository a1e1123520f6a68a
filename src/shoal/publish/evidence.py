"""What the officer sees besides the figures: attacks, digests, versions, and commands.

All of it goes to the confidential folder alone: a digest of the original confirms a guess of it.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import io
from shoal.core import Policy, Progress, Release, ReleaseForm
from shoal.core.serialise import parse_json
from shoal.errors import InputError, ShoalError
from shoal.io import memory
from shoal.io.files import format_like
from shoal.io.folders import digest
from shoal.io.text_files import read_bytes
from shoal.pipeline.manifest import PUBLIC_VERSIONS, list_versions
from shoal.pipeline.options import EvaluationOptions
from shoal.pipeline.planning import Plan

if TYPE_CHECKING:
    from shoal.evaluation.evaluate import Evaluation

EVALUATION_CELL = 300
"""Bytes that an evaluation takes for each cell: of 1.5 million rows of eight columns."""

ON_SPARK = (
    "The release was not evaluated, because it was made on Spark. Use `shoal evaluate` on a sample "
    "of both tables for attacks and utility."
)
_LIBRARIES = (*PUBLIC_VERSIONS, "numba", "scikit-learn", "pyspark")


def evaluate_release(
    planned: Plan,
    raw: io.Raw,
    release: Release,
    *,
    wanted: bool | None,
    control: io.Raw | None,
    progress: Progress,
) -> tuple["Evaluation | None", str]:
    """Evaluate a release for its officer, or say why it was not done.

    A release that is paid for is not lost because it cannot be evaluated: whatever stops the
    evaluation becomes a sentence. Unless `wanted` says so, one that needs more memory than is free
    is not begun.
    """
    rows = raw.height
    if wanted is False:
        return None, "The release was not evaluated, because evaluation was switched off."
    needed = EVALUATION_CELL * rows * raw.frame.width
    if wanted is None and needed > memory.available():
        return None, (
            "The release was not evaluated, because that takes more memory than is free. Use "
            "`shoal evaluate` on a sample of both tables."
        )
    from shoal.evaluation import evaluate  # noqa: PLC0415 (heavy, and only needed here)

    aligned = release.manifest.release_form is ReleaseForm.ROW_ALIGNED
    try:
        evaluation = evaluate.evaluate_frames(
            raw.frame,
            io.from_native(release.data).frame,
            planned.policy,
            control=None if control is None else control.frame,
            aligned=True if aligned and rows == release.manifest.rows else None,
            progress=progress,
        )
    except ShoalError as reason:
        return None, f"The release could not be evaluated: {reason}"
    except Exception as error:  # noqa: BLE001 (its message may quote the data)
        return None, (
            f"The release could not be evaluated: a bug of Shoal, {type(error).__name__}. Please "
            "report this line."
        )
    return evaluation, ""


def check_control(control: io.Raw | None, policy: Policy) -> None:
    """Refuse a control that cannot be compared, before the release is paid for."""
    if control is None:
        return
    missing = [name for name in policy.schema.released if name not in control.frame.columns]
    if missing:
        raise InputError(
            f"--control: expected a table with the columns of the original; it lacks "
            f"'{missing[0]}'."
        )


def facts(
    data: Path,
    policy: Policy | Path,
    out: Path,
    evaluation: EvaluationOptions,
    *,
    alone: bool,
    **options: Any,
) -> dict[str, Any]:
    """Collect what else the officer sees: a comparison, input files, versions, commands."""
    named = None if isinstance(policy, Policy) else policy
    names = {Path(path).name: label for path, label in evaluation.names.items()}
    files = inputs(data=data, policy=named, control=evaluation.control)
    given = {key: names.get(value, value) if isinstance(value, str) else value
             for key, value in options.items()}  # fmt: skip
    called = Path(names.get(data.name, data.name))
    return {
        "comparison": read_comparison(evaluation.comparison),
        "inputs": {
            what: {**file, "name": names.get(file["name"], file["name"])}
            for what, file in files.items()
        },
        "versions": list_versions(_LIBRARIES),
        "again": again(called, named, out, given, alone=alone),
    }


def read_comparison(path: Path | None) -> dict[str, Any] | None:
    """Read what `shoal compare --json` printed, to show this release among others."""
    if path is None:
        return None
    raw = read_bytes(path, f"the comparison '{path.name}'")
    try:
        printed = parse_json(raw)
        rows = [*printed["candidates"], *printed["baselines"]]
        _ = [(row["label"], row["method"], row["parameters"], row["standing"]) for row in rows]
        _ = [(estimate["value"], estimate["low"], estimate["high"]) for row in rows
             for estimate in (row["risk"], row["error"]) if estimate is not None]  # fmt: skip
        return {key: printed[key] for key in ("recommendation", "axes", "candidates", "baselines")}
    except (ValueError, LookupError, TypeError):
        raise InputError(
            f"--comparison: expected what `shoal compare --json` prints in '{path.name}'."
        ) from None


def inputs(**paths: Path | None) -> dict[str, dict[str, Any]]:
    """List name, digest and size of each input file, without its folder."""
    return {
        name: {"name": path.name, "sha256": digest(path), "bytes": size_of(path)}
        for name, path in paths.items()
        if path is not None
    }


def again(
    data: Path,
    policy: Path | None,
    out: Path,
    options: Mapping[str, str | bool | None],
    *,
    alone: bool = False,
) -> dict[str, str]:
    """Write the command and the Python call of this run, without local folders.

    `alone` is that of `shoal.read`; it is set for an epsilon release.
    """
    stated = "policy.toml" if policy is None else policy.name
    words = ["shoal", "protect", data.name, "--policy", stated, "--out", out.name]
    for option, value in options.items():
        if value and (option, value) != ("file-format", format_like(data)):
            words += [f"--{option}"] if value is True else [f"--{option}", value]
    whom = f", audience={options['audience']!r}" if options.get("audience") else ""
    if options.get("engine") == "spark":
        python = (
            f"import shoal\n\npeople = spark.read.parquet({data.name!r})\n"
            f"release = shoal.protect(people, {stated!r}{whom})\nprint(release)"
        )
        return {"command": shlex.join(words), "python": python}
    marks = "".join(
        f", {mark}={options[mark.replace('_', '-')]!r}"
        for mark in ("delimiter", "encoding", "sheet", "header_row", "skip")
        if options.get(mark.replace("_", "-"))
    )
    order = ", keep_order=True" if options.get("keep-order") else ""
    control = options.get("control")
    control_argument = f", control=shoal.read({control!r}{marks})" if control else ""
    # What nothing more is said about is read when it is protected, as the policy says.
    by_itself = ", alone=True" if alone else ""
    table = f"shoal.read({data.name!r}{marks}{by_itself})" if marks else repr(data.name)
    form = options.get("file-format") or "parquet"
    written = "" if form == "parquet" else f", file_format={form!r}"
    written += ", guard_formulas=False" if options.get("no-guard-formulas") else ""
    lines = [
        "import shoal",
        "",
        f"people = {table}",
        f"release = shoal.protect(people, {stated!r}{order}{whom})",
        "print(release)",
        f"release.write({out.name!r}{written})",
        f"print(shoal.evaluate(people, release, {stated!r}{control_argument}))",
    ]
    return {"command": shlex.join(words), "python": "\n".join(lines)}


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size
