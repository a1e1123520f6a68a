"""Reports: what a release promises, for people to read."""

from pathlib import Path

from shoal.core import Release
from shoal.report import html, pictures


def write_report(release: Release, path: str | Path) -> None:
    """Write the public report of a release: claims, assumptions and checks, in one HTML file."""
    page = html.public_report(release.manifest, pictures.released(release))
    Path(path).write_text(page, encoding="utf-8")


__all__ = ["write_report"]
