"""The demonstration: the shipped sample, from CSV to release, shown as commands."""

import shutil
from collections.abc import Callable
from pathlib import Path

from shoal import sample
from shoal.core import Progress, silent
from shoal.engine import check_table
from shoal.io import folders
from shoal.io.files import read
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.publish import protect_file
from shoal.report import terminal

STORY = ("naive Bayes", "inference", "uniques", "COUNT queries", "own regression", "edit rules")
"""Metrics that the demonstration shows, one line each."""

OTHERS = 5_000
OTHER_SEED = 2005
"""Seed of people who are not in the table, for the attacks."""


def run(out: Path, *, say: Callable[[str], None], progress: Progress = silent) -> None:
    """Write the sample and its policy to a folder, protect it, and check the release.

    Args:
        out: the folder; what an earlier demonstration left there is replaced.
        say: called with each part of the story: what a person would type and see.
        progress: called with the stage and how far it is.
    """
    folders.prepare(out)
    for path in sample.folder().iterdir():
        if path.suffix in {".toml", ".csv"}:
            shutil.copyfile(path, out / path.name)
    sample.load().write_csv(out / "people.csv")
    sample.people(OTHERS, seed=OTHER_SEED).write_csv(out / "others.csv")
    data, policy, folder = out / "people.csv", out / "people.toml", out / "release"
    say(f"A table of 10,000 invented people is in {data}, and its policy in {policy}.")
    say(f"{OTHERS:,} other people of the same country are in {out / 'others.csv'}.")
    say(f"\n$ shoal protect {data} --policy {policy} --out {folder} --control {out / 'others.csv'}")
    published = protect_file.protect(
        data, policy, folder, output=OutputOptions(force=True), progress=progress,
        evaluation=EvaluationOptions(control=out / "others.csv"),
    )  # fmt: skip
    say(terminal.release_text(published.release, published.notes))
    say(f"To publish: {published.folder}  Confidential: {published.internal}")
    say(f"\n$ shoal check {folder / 'release.csv'} --policy {policy}")
    say(terminal.checks_text(check_table.check(read(folder / "release.csv").frame, policy)))
    if published.measured is not None:
        say("\nFrom the confidential report:")
        for name in STORY:
            say(f"  {name}: {published.measured.of(name)[0].sentence}")
    say(
        f"\nOpen {folder / 'report.html'} in a browser; the confidential report is "
        f"{published.internal / 'report.html'}."
    )
