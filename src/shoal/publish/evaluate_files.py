"""Evaluate and compare from files; all results are confidential."""

import filecmp
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from shoal import io
from shoal.core import Policy, Progress, silent
from shoal.core.machine import cores
from shoal.errors import InputError
from shoal.evaluation import evaluate as evaluation
from shoal.evaluation import repeat_figure as figures
from shoal.evaluation.comparison import compare as comparison
from shoal.evaluation.comparison import grid
from shoal.evaluation.comparison.compare import Comparison, Selection
from shoal.evaluation.comparison.grid import Candidate
from shoal.evaluation.repeat_figure import RepeatedFigure
from shoal.io import folders, text_files
from shoal.io.folders import check_text, prepare, write_text
from shoal.metrics.attacks.result import DIFFERENCE
from shoal.pipeline.options import BudgetOptions, ReadingOptions
from shoal.pipeline.stated_reading import refuse_unstated
from shoal.report import html

KEPT = "results"
"""Folder of a comparison that keeps what is done."""
_COMPARED = {KEPT, "comparison.json", "comparison.parquet", "report.html", "selection.json"}


def evaluate(
    original: Path,
    released: Path,
    policy: Policy | Path,
    *,
    control: Path | None = None,
    out: Path | None = None,
    force: bool = False,
    reading: ReadingOptions = ReadingOptions(),
    budget: BudgetOptions = BudgetOptions(),
    progress: Progress = silent,
    **options: Any,
) -> evaluation.Evaluation:
    """Evaluate a release against its original, from files; all of it is confidential.

    A report page is written to `out`, in place of another only if forced. Other options are those
    of `shoal.evaluate`.
    """
    check_text(out, force=force)
    text_files.check_options(seed=options.get("seed"))
    stated = budget.apply_to(policy)
    progress("reading the files", 0, 1)
    marks = reading.marks(stated)
    before = io.read(original, **marks).frame
    theirs = io.marks_of_other(released, marks | {"encoding": reading.encoding})
    after = io.read(released, **theirs).frame
    frame = None if control is None else io.read(control, **marks).frame
    result = evaluation.evaluate(before, after, stated, control=frame, progress=progress, **options)
    if out is not None:
        page = html.evaluation_report(result.facts(), result.pictures, DIFFERENCE)
        write_text(out, page, force=force, confidential=True)
    return result


def compare(
    data: Path,
    policy: Policy | Path,
    out: Path,
    *,
    candidates: Path | None = None,
    on_sample: Path | None = None,
    jobs: int | None = None,
    reading: ReadingOptions = ReadingOptions(),
    budget: BudgetOptions = BudgetOptions(),
    tell: Callable[[str], None],
    progress: Progress = silent,
    **options: Any,
) -> Comparison:
    """Compare methods on a file, and write the results: all of it confidential.

    Args:
        data: the confidential table; where there is a sample, it is read only to make sure that
            the sample is another file.
        policy: the policy file, or what was read from it.
        out: the folder to write, mode 0700; results are kept in it, so a second run costs nothing
            and an interrupted one continues.
        candidates: a grid file.
        on_sample: a file of people who may be inspected.
        jobs: processes at a time; by default one for each core.
        reading: how the files are written.
        budget: where inspections are recorded, instead of the policy's.
        tell: called before the run with what the inspection costs.
        progress: called with the time left and how much is done.
        options: of `shoal.compare`.
    """
    asked = {name: value for name, value in options.items() if name in text_files.RANGES}
    text_files.check_options(jobs=jobs, **asked)
    for path in filter(None, (data, on_sample)):
        text_files.refuse_special(path)
    if on_sample is not None and _same(data, on_sample):
        raise InputError(comparison.SAME_TABLE)
    inspected = data if on_sample is None else on_sample
    stated, listed, frame = _open_inputs(
        inspected, policy, out, candidates, reading=reading, budget=budget, progress=progress
    )
    with folders.workplace(out) as place, folders.refusing(out):
        prepare(out)
        out.chmod(0o700)
        result = comparison.compare(
            None if on_sample is not None else frame,
            stated,
            candidates=listed,
            on_sample=None if on_sample is None else frame,
            folder=out / KEPT,
            jobs=cores() if jobs is None else jobs,
            note=out.name,
            tell=tell,
            progress=progress,
            **options,
        )
        progress("writing", 0, 1)
        page = html.comparison_report(result.facts())
        folder = folders.new_folder(place)
        (folder / "comparison.json").write_text(result.to_json() + "\n", encoding="utf-8")
        result.to_frame().write_parquet(
            folder / "comparison.parquet", metadata={"confidential": html.CONFIDENTIAL}
        )
        (folder / "report.html").write_text(page, encoding="utf-8")
        folders.replace_files(folder, out)
    return result


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, or to files with the same bytes."""
    try:
        return one.samefile(other) or filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False  # Whoever reads them says why.


def repeat_figure(
    key: str,
    data: Path,
    policy: Policy | Path | None = None,
    out: Path | None = None,
    *,
    force: bool = False,
    reading: ReadingOptions = ReadingOptions(),
    budget: BudgetOptions = BudgetOptions(),
    progress: Progress = silent,
    **options: Any,
) -> RepeatedFigure:
    """Repeat a paper's figure on a file; draw it to `out`. All of it is confidential.

    Other options are those of `shoal.repeat_figure`.
    """
    check_text(out, force=force)
    stated = None if policy is None else budget.apply_to(policy)
    progress("reading the file", 0, 1)
    marks = vars(reading) if stated is None else reading.marks(stated)
    frame = io.read(data, **marks).frame
    figure = figures.repeat_figure(key, frame, stated, note=data.name, progress=progress, **options)
    if out is not None:
        write_text(out, str(figure.draw()), force=force, confidential=True)
    return figure


def select(
    data: Path,
    policy: Policy | Path,
    out: Path,
    *,
    epsilon: str,
    candidates: Path | None = None,
    published: bool = False,
    reading: ReadingOptions = ReadingOptions(),
    budget: BudgetOptions = BudgetOptions(),
    tell: Callable[[str], None],
    progress: Progress = silent,
) -> Selection:
    """Choose one method privately on a file, pay for it, and write the choice to `selection.json`.

    The arguments are those of `compare`; epsilon is a number as text, so it is exact.
    """
    price = text_files.parse_epsilon(epsilon)
    stated, listed, frame = _open_inputs(
        data, policy, out, candidates, reading=reading, budget=budget, progress=progress, alone=True
    )
    with folders.workplace(out):
        prepare(out)
        out.chmod(0o700)
        chosen = comparison.select(
            frame,
            stated,
            epsilon=price,
            candidates=listed,
            published=published,
            note=out.name,
            tell=tell,
            progress=progress,
        )
        facts = chosen.facts()
        write_text(out / "selection.json", json.dumps(facts, indent=2) + "\n", force=True)
    return chosen


def _open_inputs(
    data: Path,
    policy: Policy | Path,
    out: Path,
    candidates: Path | None,
    *,
    reading: ReadingOptions,
    budget: BudgetOptions,
    progress: Progress,
    alone: bool = False,
) -> tuple[Policy, tuple[Candidate, ...] | None, pl.DataFrame]:
    """Open the policy, the grid and the table; refuse a folder with other contents."""
    if not out.name or str(out) == "-":
        raise InputError(f"Expected a folder for --out, found '{out}'.")
    if out.exists() and not out.is_dir():
        raise InputError(f"Cannot write the folder '{out}': a file of that name exists.")
    if out.is_dir() and not {path.name for path in out.iterdir()} <= _COMPARED:
        raise InputError(f"'{out}' holds more than a comparison; choose another --out.")
    listed = None if candidates is None else grid.read(candidates)
    stated = budget.apply_to(policy)
    if alone:
        refuse_unstated(stated, data, delimiter=reading.delimiter)
    progress("reading the file", 0, 1)
    return stated, listed, io.read(data, **reading.marks(stated), alone=alone).frame
