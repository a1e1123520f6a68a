"""Reports: what a release promises, for people to read."""

from pathlib import Path

from shoal.core import Release
from shoal.report import html


def write_report(release: Release, path: str | Path) -> None:
    """Write the public report of a release: claims, assumptions and checks, in one HTML file."""
    Path(path).write_text(html.public_report(release.manifest), encoding="utf-8")


__all__ = ["write_report"]
