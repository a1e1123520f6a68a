"""Write a release that was made in Python as its public folder, and as nothing else."""

from dataclasses import replace
from pathlib import Path

from shoal import engine, io
from shoal.core import Release, ReleaseForm
from shoal.errors import InputError
from shoal.io import folders
from shoal.io.csv_files import choose_dialect
from shoal.pipeline.options import SPREADSHEETS, OutputOptions
from shoal.publish import public_folder
from shoal.publish.verify_folder import verify


def write(
    release: Release,
    folder: Path,
    *,
    file_format: str = "parquet",
    guard_formulas: bool | None = None,
    force: bool = False,
) -> Path:
    """Write the public folder of a release; see `Release.write`."""
    if release.unexpected:
        raise InputError(f"{' '.join(release.unexpected)} Nothing was written.")
    distributed = engine.is_distributed(release.data)
    if distributed and file_format != "parquet":
        raise InputError("Spark writes a folder of Parquet files; expected file_format parquet.")
    io.check_writable(file_format, tuple(release.manifest.columns))
    if _is_tree(release) and file_format in io.STATS_NAMES:
        raise InputError("Boxes have columns that SPSS and Stata cannot name; expected file_format "
                         "parquet or csv.")  # fmt: skip
    if guard_formulas and file_format not in SPREADSHEETS:
        raise InputError("guard_formulas is for spreadsheets; expected file_format csv or xlsx.")
    policy = release.manifest.policy
    dialect = choose_dialect(policy.get("writing", {}), policy.get("reading", {}))
    output = OutputOptions(
        file_format=file_format, guard_formulas=guard_formulas, force=force, dialect=dialect
    )
    with folders.workplace(folder) as place, folders.refusing(folder):
        folders.recover(place, folder)
        public_folder.refuse_places(folder, force=force)
        new = folders.new_folder(place)
        made = release if distributed else _in_polars(release)
        public_folder.write(made, new, output, distributed=distributed)
        verification = verify(new)
        if not verification.holds:
            raise InputError(
                "The table of this release is no longer the one that its claims are about. Make "
                "the release again, and write it unchanged. Nothing was written."
            )
        folders.commit(place, folder)
    return folder


def _is_tree(release: Release) -> bool:
    return release.manifest.release_form is ReleaseForm.TREE


def _in_polars(release: Release) -> Release:
    tables = {name: io.from_native(extra).frame for name, extra in release.extras.items()}
    return replace(release, data=io.from_native(release.data).frame, extras=tables)
