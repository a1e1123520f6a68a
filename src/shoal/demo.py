"""The demonstration: the shipped sample, from a CSV to a release, told as commands."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal import publish, release, sample
from shoal.core import Check, Progress, silent
from shoal.io import read


@dataclass(frozen=True)
class Shown:
    """What the demonstration made."""

    published: publish.Published
    checks: tuple[Check, ...]


def run(out: Path, *, say: Callable[[str], None], progress: Progress = silent) -> Shown:
    """Write the sample and its policy to a folder, protect it, and check the release.

    Args:
        out: the folder; what an earlier demonstration left there is replaced.
        say: called with each line of the story.
        progress: called with the stage and how far it is.
    """
    out.mkdir(parents=True, exist_ok=True)
    for path in sample.folder().iterdir():
        if path.suffix in {".toml", ".csv"}:
            shutil.copyfile(path, out / path.name)
    sample.load().write_csv(out / "people.csv")
    data, policy, folder = out / "people.csv", out / "people.toml", out / "release"
    say(f"A table of 10,000 invented people is in {data}, and its policy in {policy}.")
    say(f"$ shoal protect {data} --policy {policy} --out {folder}")
    published = publish.protect(data, policy, folder, force=True, progress=progress)
    say(repr(published.release))
    say(f"$ shoal check {folder / 'release.parquet'} --policy {policy}")
    checks = release.check(read(folder / "release.parquet").frame, policy)
    for check in checks:
        say(f"{check.guarantee}: holds, the smallest group has {check.achieved} records")
    return Shown(published, checks)
