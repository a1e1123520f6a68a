"""Write the confidential folder, which compares a release with its original.

It is written after the release is in place, and may fail without harm to it. In an epsilon
release, whether and how it failed may itself disclose something about the table, so only the folder
says so.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from shoal import io
from shoal.core import Confidential, Kind, Policy, Progress, Release, silent
from shoal.core.exits import for_folder
from shoal.core.manifest import Manifest
from shoal.core.serialise import parse_json
from shoal.engine import local
from shoal.errors import InputError, count_noun, withheld
from shoal.io import clamp, folders
from shoal.io.folders import FIGURES
from shoal.io.table import Table
from shoal.io.text_files import read_bytes
from shoal.pipeline import booking
from shoal.pipeline.manifest import read as read_manifest
from shoal.pipeline.options import EvaluationOptions, ReadingOptions
from shoal.pipeline.planning import Plan, plan
from shoal.pipeline.protect_table import settle_plan
from shoal.pipeline.scheme_files import SCHEME
from shoal.pipeline.scheme_files import read as read_scheme
from shoal.pipeline.scheme_files import text as scheme_text
from shoal.policy.exposure import nearly_unique
from shoal.policy.load import load
from shoal.publish import evidence, public_folder
from shoal.publish.public_folder import dump
from shoal.report import html
from shoal.report.html import REPORT
from shoal.report.phrases import percent

if TYPE_CHECKING:
    from shoal.evaluation.evaluate import Evaluation


@dataclass(frozen=True)
class Written:
    """The outcome of writing the confidential folder.

    Attributes:
        measured: what compares the release with the original, if it was measured.
        unmeasured: why it was not, or nothing.
        failed: why there is no report, or nothing.
        exposed: what is released as it is though few share its values, in sentences.
    """

    measured: "Evaluation | None"
    unmeasured: str
    failed: str = ""
    exposed: tuple[str, ...] = ()


def write(
    secret: Confidential[Any],
    folder: Path,
    *,
    planned: Plan,
    release: Release,
    manifest: Manifest,
    facts: Mapping[str, Any],
    evaluate: bool | None,
    control: io.Raw | None,
    progress: Progress,
) -> Written:
    """Compare a release with its original, and write the figures into an empty folder.

    The secret is the `evidence` of `shoal.engine.interface.Outcome`, the manifest as it was
    published, and the facts are what else the officer is shown. Attacks and measures of utility run
    where `evaluate` says so; none: on tables of ordinary size.
    """
    progress("computing losses", 0, 1)
    # Otherwise whoever reads the folder inspects nothing.
    inspected = evaluate is not False or not planned.policy.budget
    try:
        source = for_folder(secret, folder)
        measured, unmeasured = None, evidence.ON_SPARK
        exposed, accepted = _measure_exposure(source, release, manifest) if inspected else ((), ())
        if isinstance(getattr(source, "raw", None), io.Raw):
            measured, unmeasured = evidence.evaluate_release(
                planned, source.raw, release, wanted=evaluate, control=control, progress=progress
            )
        figures = {
            "confidential": html.CONFIDENTIAL,
            **_as_measured(losses(planned, source) if inspected else _UNREAD, measured),
            "suppressed": manifest.suppressed if inspected else None,
            "exposed": [*exposed, *accepted],
            **facts,
            "measured": None if measured is None else measured.facts(),
            "unmeasured": unmeasured,
            "pictures": {} if measured is None else measured.pictures,
            "context": dict(planned.policy.context),
        }
        dump(folder / FIGURES, figures)
        page = html.internal_report(manifest, figures, figures["context"])
        (folder / REPORT).write_text(page, encoding="utf-8")
        if release.scheme is not None:
            held = for_folder(release.scheme.recoding, folder)
            (folder / SCHEME).write_text(scheme_text(release.scheme, held), encoding="utf-8")
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 (the release is out; its message may quote the data)
        failed = f"This report could not be made: {withheld(error)}"
        dump(folder / FIGURES, {"confidential": html.CONFIDENTIAL, **facts, "failed": failed})
        (folder / REPORT).write_text(html.render_failure(failed), encoding="utf-8")
        return Written(None, "", failed)
    return Written(measured, unmeasured, exposed=exposed)


def _measure_exposure(
    found: Any, release: Release, manifest: Manifest
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Measure what is released unchanged, by persons if a run knows them."""
    table = getattr(found, "table", None)
    if isinstance(table, Table) and table.persons is not None:
        return nearly_unique(manifest, table.publishable(), pl.Series(table.persons))
    if not hasattr(found, "raw"):
        return (), ()  # made on Spark
    return nearly_unique(manifest, io.from_native(release.data).frame)


_UNREAD = {**local.figures(None, uniques=(None, None, None)), "clamped": {}, "prepared": []}
"""Figures of an original that nobody reads."""


def losses(planned: Plan, found: Any) -> dict[str, Any]:
    """Compare the release with the original, row by row."""
    compared: dict[str, Any] = found.figures(planned.setting.columns, planned.setting.release_form)
    return {
        **compared,
        "clamped": found.clamped,
        "prepared": _describe_preparation(
            planned, found.clamped, compared["unique_on_quasi_identifiers"]["rows"]
        ),
        "beyond_max_contributions": found.dropped,
        "remarks": [*_describe_repairs(found.repaired), *compared.get("remarks", ())],
    }


def _as_measured(lost: dict[str, Any], measured: "Evaluation | None") -> dict[str, Any]:
    """Take from an evaluation the figures that it defines too: distances, and unique rows."""
    if measured is None:
        return lost
    moved = {p["name"]: p["distance"] for p in measured.pictures.get("columns", ())}
    for column in lost["columns"]:
        if column["metric"] == "total variation":
            column["loss"] = moved.get(column["name"], column["loss"])
    for figure in measured.of("uniques"):
        lost["unique_on_quasi_identifiers"]["released"] = round(figure.point * measured.rows[1])
    return lost


def _describe_preparation(
    planned: Plan, clamped: Mapping[str, Mapping[str, int]], rows: int | None
) -> list[str]:
    """Say which share of each column was imputed or clamped before the method ran, most first."""
    sentences: list[tuple[float, str]] = []
    for name, counts in clamped.items():
        column, parts = planned.policy.schema[name], []
        constant = f"'{column.missing_as or column.unlisted}'"
        if column.kind not in {Kind.ORDINAL, Kind.NOMINAL}:
            constant = f"{clamp.constant(column):g}" if column.kind is Kind.NUMERIC else str(
                clamp.constant(column))  # fmt: skip
        filled = "count as missing" if column.keep_missing else f"count as {constant}"
        listed_as = "missing" if column.unlisted is None else f"'{column.unlisted}'"
        words = {
            "missing": "" if column.keep_missing else f"were missing and {filled}",
            "unreadable": f"could not be read and {filled}",
            "unknown": f"had a category that the policy does not list and count as {listed_as}",
            "outside": "lay outside the bounds and were clamped",
        }
        for sort, words_of in words.items():
            if words_of and counts.get(sort, 0):
                parts.append((counts[sort] / max(rows or 0, 1), words_of))
        if parts:
            listed = "; ".join(f"{percent(share)} of the cells {words}" for share, words in parts)
            sentences.append((max(share for share, _ in parts), f"'{name}': {listed}."))
    return [text for _, text in sorted(sentences, key=lambda one: -one[0])]


def _describe_repairs(broken: Mapping[str, int]) -> list[str]:
    """Say which rules were violated by rows of the original."""
    return [
        f"{count_noun(rows, 'row')} of the original broke the rule '{text}'; "
        f"{'it' if rows == 1 else 'each'} was brought to the nearest row that breaks none, before "
        "the method saw it."
        for text, rows in broken.items()
        if rows
    ]


def compare_with_original(
    secret: Confidential[Any], place: Path, out: Path, **terms: Any
) -> Written:
    """Compare a published release with its original; report if the disk refuses."""
    try:
        folder = folders.new_folder(place, "internal")
        written = write(secret, folder, **terms)
        folders.put(folder, folders.internal_of(out))
    except OSError as error:
        reason = (error.strerror or "the disk refuses it").lower()
        raise InputError(
            f"The confidential report of the release could not be written: {reason}. Run `shoal "
            f"report {out} DATA "
            "--policy POLICY` to make it; that spends no more epsilon."
        ) from None
    return written


def render(out: Path) -> None:
    """Render the report of a confidential folder again, from the figures that it holds.

    The original is not read, and nothing is computed anew.
    """
    place = folders.internal_of(out)
    manifest = read_manifest(out)
    try:
        figures = parse_json(read_bytes(place / FIGURES, f"'{place / FIGURES}'"))
        page = html.internal_report(manifest, figures, figures["context"])
    except (InputError, ValueError, LookupError, TypeError):
        raise InputError(
            f"'{place}' holds no figures of this version to make a report from. Give the original "
            f"and the policy: `shoal report {out} DATA --policy POLICY`. That spends no epsilon."
        ) from None
    folders.write_text(place / REPORT, page, force=True, confidential=True)


def report(
    out: Path,
    data: Path,
    policy: Policy | Path,
    *,
    reading: ReadingOptions = ReadingOptions(),
    evaluation: EvaluationOptions = EvaluationOptions(),
    progress: Progress = silent,
) -> Written:
    """Make the confidential folder of a release again, from its files and the original.

    It spends no epsilon and touches nothing that is public. Released rows are not matched to
    original ones: only the run that made the release knows losses row by row.
    """
    manifest = read_manifest(out)
    stated = load(policy)
    if stated.digest != manifest.policy_digest:
        raise InputError(
            f"'{out}' was made with another policy; expected the policy that its manifest records."
        )
    planned = settle_plan(plan(replace(stated, required=(), audience=None)), manifest.found)
    progress("reading the files", 0, 1)
    marks = reading.marks(stated)
    raw = io.read(data, **marks, alone=planned.method.noisy)
    control = None if evaluation.control is None else io.read(evaluation.control, **marks)
    evidence.check_control(control, planned.policy)
    table = next((out / name for name in manifest.files if name.startswith("release.")),
                 None)  # fmt: skip
    if table is None or not table.is_file():
        raise InputError(
            f"'{out}' lacks the released table, or has it in parts; expected one file."
        )
    facts = evidence.facts(
        data, policy, out, evaluation, alone=planned.method.noisy, **vars(reading)
    )
    if stated.budget is not None:
        booking.refuse_older_copies(stated.budget.file, out.parent)
    kept = folders.internal_of(out) / SCHEME
    scheme = read_scheme(kept) if kept.is_file() else None
    made = Release(io.read(table).frame, (), (), (), manifest, scheme=scheme)
    if evaluation.evaluate is not False:
        booking.record_inspection(stated, what="evaluate", note=out.name)
    booked = booking.read_account(folders.internal_of(out))
    with folders.workplace(out) as place:
        with folders.refusing(folders.internal_of(out)):
            folders.recover(place, out)
            public_folder.refuse_place(folders.internal_of(out), force=True)
            shutil.rmtree(folders.internal_of(out), ignore_errors=True)
        return compare_with_original(
            Confidential(_Unmatched(raw)),
            place,
            out,
            planned=planned,
            release=made,
            manifest=manifest,
            facts={"budget": booked, **facts},
            evaluate=evaluation.evaluate,
            control=control,
            progress=progress,
        )


@dataclass(frozen=True, eq=False)
class _Unmatched:
    """The original of a release without row correspondence."""

    raw: io.Raw
    dropped: int = 0
    clamped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)

    def figures(self, _columns: Any, _form: Any) -> dict[str, Any]:
        """Return the number of rows; nothing that compares row by row."""
        rows = self.raw.height
        return local.figures(rows, uniques=(None, rows, None))
