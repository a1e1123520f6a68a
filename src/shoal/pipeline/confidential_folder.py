"""Write the confidential folder: what compares a release with its original.

It is written after the release is in place, and may fail without harm to it. In an epsilon
release whether and how it failed may itself tell of the table, so that the folder says so, and
nothing else does.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal import io
from shoal.core import Confidential, Progress, Release
from shoal.core.exits import for_folder
from shoal.errors import withheld
from shoal.pipeline.planning import Plan
from shoal.pipeline.public_folder import dump
from shoal.report import evidence, html
from shoal.report.html import REPORT

if TYPE_CHECKING:
    from shoal.evaluation.evaluate import Evaluation

FIGURES = "figures.json"


@dataclass(frozen=True)
class Written:
    """What became of the confidential folder.

    Attributes:
        measured: what compares the release with the original, if it was measured.
        unmeasured: why it was not, or nothing.
        failed: why there is no report, or nothing.
    """

    measured: "Evaluation | None"
    unmeasured: str
    failed: str = ""


def write(
    secret: Confidential[Any],
    folder: Path,
    *,
    planned: Plan,
    release: Release,
    manifest: Mapping[str, Any],
    facts: Mapping[str, Any],
    evaluate: bool | None,
    control: io.Raw | None,
    progress: Progress,
) -> Written:
    """Compare a release with its original, and write what was found.

    Args:
        secret: the original beside the release, `shoal.engine.Evidence`.
        folder: empty, mode 0700.
        planned: what was run.
        release: what was made.
        manifest: as it was published.
        facts: what else the officer is shown.
        evaluate: run attacks and measures of utility; none: on tables of ordinary size.
        control: people who are not in the original.
        progress: called with the stage and how far it is.
    """
    progress("measuring losses", 0, 1)
    # Otherwise whoever reads the folder inspects nothing.
    inspected = evaluate is not False or not planned.policy.budget
    try:
        found = for_folder(secret, folder)
        measured, unmeasured = None, evidence.ON_SPARK
        if isinstance(getattr(found, "raw", None), io.Raw):
            measured, unmeasured = evidence.measured(
                planned, found.raw, release, wanted=evaluate, control=control, progress=progress
            )
        figures = {
            "confidential": html.CONFIDENTIAL,
            **(losses(planned, found) if inspected else _UNREAD),
            "suppressed": manifest["suppressed"] if inspected else None,
            **facts,
            "measured": None if measured is None else measured.facts(),
            "unmeasured": unmeasured,
        }
        dump(folder / FIGURES, figures)
        page = html.internal_report(manifest, figures, asdict(planned.policy.context))
        (folder / REPORT).write_text(page, encoding="utf-8")
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 (the release is out; its message may quote the data)
        failed = f"This report could not be made: {withheld(error)}"
        dump(folder / FIGURES, {"confidential": html.CONFIDENTIAL, **facts, "failed": failed})
        (folder / REPORT).write_text(html.failed_report(failed), encoding="utf-8")
        return Written(None, "", failed)
    return Written(measured, unmeasured)


_UNREAD: Mapping[str, Any] = {
    "rows": None,
    "unique_on_quasi_identifiers": {"original": None, "rows": None, "released": None},
    "homogeneous": {},
    "columns": [],
    "clamped": {},
}
"""Figures of an original that nobody reads."""


def losses(planned: Plan, found: Any) -> dict[str, Any]:
    """What compares the release with the original, row by row."""
    compared: dict[str, Any] = found.figures(planned.setting.columns, planned.setting.release_form)
    for column in compared["columns"]:
        if column["name"] in found.clamped:  # the original here is already clamped
            column["missing_original"] = found.clamped[column["name"]]["missing"]
    return {
        **compared,
        "clamped": found.clamped,
        "beyond_max_contributions": found.dropped,
        "remarks": _unreadable(found.clamped, compared["rows"]),
    }


def _unreadable(clamped: Mapping[str, Mapping[str, int]], rows: int) -> list[str]:
    """Say where much of a column could not be read."""
    return [
        f"'{name}': {lost:,} of {rows:,} cells could not be read and count as the constant. Are "
        "decimal mark, format and categories right?"
        for name, counts in clamped.items()
        if (lost := counts.get("unreadable", 0) + counts.get("unknown", 0)) > rows / 5
    ]
