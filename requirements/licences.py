# noqa: INP001 (a program beside the lists, not a package)
"""Write the licences of all pinned packages: `make licences`.

The pins come from `core.txt` and `dev.txt`, the licences from the metadata of the installed
packages. `tests/test_licences.py` fails while the list and the environment differ.
"""

import re
from importlib.metadata import PackageMetadata, PackageNotFoundError, files, metadata
from pathlib import Path

HERE = Path(__file__).parent
HEAD = """\
# Licences

<!-- Written by requirements/licences.py from the metadata of the installed packages. -->

Shoal is licensed under Apache-2.0. What it is installed with, as each package states it:

| package | version | licence | needed by |
|---|---|---|---|
"""
VENDORED = """
Shipped inside Shoal, with its licence beside it: htmx (0BSD) in `src/shoal/studio/static/vendor`.
"""
ELSEWHERE = "not installed on the platform of this list"
LONGEST = 60
"""A licence field that is longer holds the whole text, not a name."""


def page() -> str:
    """The list as Markdown."""
    core = _pins(HERE / "core.txt")
    rows = [
        f"| {name} | {', '.join(versions)} | {_licence(name)} | "
        f"{'core' if name in core else 'extras and tools'} |"
        for name, versions in sorted((_pins(HERE / "dev.txt") | core).items())
    ]
    return HEAD + "\n".join(rows) + "\n" + VENDORED


def _pins(file: Path) -> dict[str, list[str]]:
    """The versions of each package: several, where Pythons or platforms need others."""
    found: dict[str, list[str]] = {}
    for line in file.read_text("utf-8").splitlines():
        if pin := re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*])?==([^ ;\\]+)", line):
            found.setdefault(pin[1], []).append(pin[2])
    return found


def _licence(name: str) -> str:
    try:
        stated = metadata(name)
    except PackageNotFoundError:
        return ELSEWHERE
    text = _field(stated) or _classified(stated) or _title(name) or "not stated"
    return text.replace("|", "\\|")


def _field(stated: PackageMetadata) -> str:
    for key in ("License-Expression", "License"):
        text = (stated.get(key) or "").strip()
        if text and len(text) <= LONGEST and "\n" not in text and text.upper() != "UNKNOWN":
            return text
    return ""


def _classified(stated: PackageMetadata) -> str:
    marks = [one for one in stated.get_all("Classifier") or () if one.startswith("License ::")]
    return ", ".join(sorted({one.rsplit(" :: ", 1)[-1] for one in marks}))


def _title(name: str) -> str:
    """The first line of a package's licence file, such as MIT License."""
    kept = [path for path in files(name) or () if path.name.startswith("LICENSE")]
    return kept[0].read_text("utf-8").partition("\n")[0].strip() if kept else ""


if __name__ == "__main__":
    (HERE / "LICENCES.md").write_text(page(), encoding="utf-8")
