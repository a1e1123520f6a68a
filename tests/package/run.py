"""Build wheel and sdist, install each into an environment of its own, and run what a user runs.

    make package-test

Each environment holds what `requirements/core.txt` pins and nothing else, as links to what is
installed here, so nothing is downloaded, and a dependency that the package does not state is
missed. Kernels are compiled there again, which takes most of the time.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def built(out: Path) -> tuple[Path, Path]:
    """Build both, by the backend that is installed here; the wheel and the sdist."""
    _ran(sys.executable, "-m", "hatchling", "build", "-d", out, "-t", "sdist", "-t", "wheel",
         at=ROOT)  # fmt: skip
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def files_of(archive: Path) -> dict[str, bytes]:
    """The files of the package in a wheel or an sdist, by their path below `shoal/`."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            found = {name: file.read(name) for name in file.namelist() if name[-1] != "/"}
    else:
        with tarfile.open(archive) as file:
            found = {one.name.partition("/src/")[2]: file.extractfile(one).read()
                     for one in file.getmembers() if one.isfile()}  # fmt: skip
    return {name: raw for name, raw in found.items() if name.startswith("shoal/")}


def environment(folder: Path) -> Path:
    """An environment with the core's pinned packages alone; its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    home = next(folder.glob("lib/python*/site-packages"))
    pins = (ROOT / "requirements" / "core.txt").read_text("utf-8")
    for name in set(re.findall(r"^([A-Za-z0-9._-]+)==", pins, flags=re.MULTILINE)):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # a package of another system or Python
        for part in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (home / part).exists():
                (home / part).symlink_to(found.locate_file(part))
    return folder / "bin" / "python"


def install(python: Path, archive: Path) -> None:
    """Install a wheel, or an sdist by way of the wheel that is built from it."""
    _ran(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index",
         "--no-deps", "--no-build-isolation", "--disable-pip-version-check", archive,
         at=python.parent)  # fmt: skip


def said_version(python: Path, at: Path) -> str:
    """What the installed command and the package itself say, from a folder of nothing of ours."""
    said = _ran(python.with_name("shoal"), "--version", at=at).split()[-1]
    program = "import shoal; shoal.protect; print(shoal.__version__, shoal.__file__)"
    version, place = _ran(python, "-c", program, at=at).split()
    assert version == said
    assert Path(place).is_relative_to(python.parents[1]), place
    return said


def demonstrate(python: Path, at: Path) -> None:
    """Protect the shipped sample by the installed command."""
    _ran(python.with_name("shoal"), "demo", "--out", "demo", at=at)
    written = {path.name for path in (at / "demo" / "release").iterdir()}
    assert {"manifest.json", "release.csv", "report.html"} <= written, written


def _ran(*command: str | Path, at: Path) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run([*map(str, command)], cwd=at, env=kept, capture_output=True, text=True,
                          check=False)  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Say what was built, and that both installed and ran."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for archive in built(folder / "dist"):
            at = folder / archive.suffix / "user"
            at.mkdir(parents=True)
            python = environment(at.parent / "env")
            install(python, archive)
            assert said_version(python, at) == VERSION
            demonstrate(python, at)
            print(f"{archive.name}: {archive.stat().st_size:,} bytes, installs and runs.")


if __name__ == "__main__":
    main()
