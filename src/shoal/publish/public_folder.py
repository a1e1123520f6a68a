"""Write the public folder from the release alone.

An import contract keeps everything out of this file that could hold the original: of a release
it sees the `Release`, which never does.
"""

import json
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from shoal import engine, io
from shoal.core import Release, ReleaseForm
from shoal.core.manifest import FileRecord, Manifest
from shoal.core.serialise import parse_json, plain
from shoal.errors import InputError, UnfitTableError
from shoal.io import dates, folders
from shoal.io.column_counts import ColumnCounts
from shoal.io.csv_files import choose_dialect
from shoal.io.folders import FIGURES, INTERNAL_SUFFIX, digest, internal_of
from shoal.io.text_files import read_bytes
from shoal.pipeline.manifest import MANIFEST, SIGNATURE
from shoal.pipeline.options import SPREADSHEETS, OutputOptions
from shoal.pipeline.plan_notes import NO_PERSON
from shoal.publish.released_folder import LABELS, MEASUREMENTS, as_read, read_pictured
from shoal.publish.verify_folder import verify
from shoal.report import html, metadata
from shoal.report.html import REPORT
from shoal.report.metadata import METADATA

EXTRAS = (MEASUREMENTS,)
"""Tables that methods publish beside the rows."""
UNLABELLED = ("csv", "xlsx", "xpt")
UNFIT = "The table is a Parquet file: {} has no room for it, by its number of rows or a long text."
_TABLES = tuple(f"release.{file_format}" for file_format in io.FORMATS)
_SCHEME = "scheme.toml"


def write(
    release: Release,
    folder: Path,
    output: OutputOptions,
    *,
    distributed: bool,
    counts: ColumnCounts | None = None,
) -> Manifest:
    """Write table, manifest and report into an empty folder; return the manifest.

    A distributed table lies on Spark, whose workers write it. The counts are those of its columns,
    if they were counted before. A table for which its format has no room becomes a Parquet file,
    because it may be paid for.
    """
    unfit, output = [], replace(output, file_format=output.file_format or "parquet")
    try:
        written = _tables(release, folder, output, distributed=distributed)
    except UnfitTableError:
        unfit = [UNFIT.format(f"'{output.file_format}'")]
        (folder / f"release.{output.file_format}").unlink(missing_ok=True)
        output = replace(output, file_format="parquet")
        written = _tables(release, folder, output, distributed=distributed)
    files = {path.relative_to(folder).as_posix(): _describe_file(path) for path in written}
    # Said whenever it is done: whether a cell needed it would tell of the cells.
    guarded = [io.GUARDED] if output.guarded else []
    notes = [*release.manifest.notes, *guarded, *unfit]
    dialect = asdict(output.dialect) if output.file_format == "csv" else {}
    stated = {
        "notes": notes, "guard_formulas": output.guarded, "dialect": dialect, "files": files
    }  # fmt: skip
    manifest = release.manifest.model_copy(update=stated)
    described = metadata.describe_release(manifest, {} if distributed else release.labels)
    for name, text in described.items():
        (folder / name).write_text(text, encoding="utf-8")
        files[name] = _describe_file(folder / name)
    page = folder / REPORT
    # From the files as others will read them, so whoever verifies the folder draws the same.
    counted = counts if counts is not None and counts.frame is release.data else release.data
    known = None if distributed else as_read(counted, str(output.file_format))
    drawn = read_pictured(folder, manifest, known)
    page.write_text(html.public_report(manifest, drawn), encoding="utf-8")
    manifest = manifest.model_copy(update={"files": {**files, REPORT: _describe_file(page)}})
    dump(folder / MANIFEST, manifest.as_values())
    return manifest


def _describe_file(path: Path) -> FileRecord:
    return FileRecord(sha256=digest(path), bytes=path.stat().st_size)


def _tables(
    release: Release, folder: Path, output: OutputOptions, *, distributed: bool
) -> list[Path]:
    """Write the table and its extra files; return their paths."""
    table = folder / f"release.{output.file_format}"
    about = NO_PERSON if NO_PERSON in release.manifest.notes else None
    if distributed:
        from shoal.engine.spark import files  # noqa: PLC0415 (optional)

        written = files.write(release.data, table, rows=release.manifest.rows, about=about)
        extras = {name: files.fetch(extra) for name, extra in release.extras.items()}
    else:
        guarded, labels = output.guarded, release.labels
        data = _with_dates(release) if output.file_format == "csv" else release.data
        io.write(
            data,
            table,
            labels=labels,
            about=about,
            guard_formulas=guarded,
            dialect=output.dialect,
        )
        written, extras = [table], dict(release.extras)
        if output.file_format in UNLABELLED and labels:
            written.append(folder / LABELS)
            dump(written[-1], labels)
    for name, extra in extras.items():
        written.append(folder / f"{name}.parquet")
        io.write(extra, written[-1], labels={})
    return written


def _with_dates(release: Release) -> Any:
    """Convert dates to texts as the policy writes them; other formats store dates."""
    columns = release.manifest.policy["columns"]
    return release.data.with_columns(
        dates.write_dates(series, columns[series.name]["date_format"])
        for series in release.data
        if series.dtype.is_temporal() and "date_format" in columns.get(series.name, ())
    )


def dump(path: Path, value: Any) -> None:
    """Write a value as JSON. Infinite numbers become texts."""
    text = json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def refuse_places(out: Path, *, force: bool) -> None:
    """Refuse a place for a release, and for the confidential folder beside it."""
    if out.name.endswith(INTERNAL_SUFFIX):
        raise InputError(
            f"'{out}' ends like a confidential folder; choose a name without {INTERNAL_SUFFIX}."
        )
    for folder in (out, internal_of(out)):
        refuse_place(folder, force=force)


def refuse_place(folder: Path, *, force: bool) -> None:
    """Refuse a place for a folder before the work for it is done.

    Refused are places inside a release, and existing folders that may not be replaced.
    """
    for above in folder.absolute().parents:
        if _is_ours(above):
            raise InputError(f"'{folder}' lies inside the release '{above}'; choose another place.")
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir() or folder.is_symlink():
        raise InputError(f"Cannot write the folder '{folder}': a file of that name exists.")
    if not any(folder.iterdir()):
        return
    if not force:
        raise InputError(
            f"'{folder}' exists already. Choose another place, or replace it with --force (in "
            "Python, force=True)."
        )
    names = {path.name for path in folder.iterdir()}
    known = {MANIFEST, SIGNATURE, FIGURES, _SCHEME, REPORT, LABELS, *METADATA, *_TABLES, *EXTRAS}
    if not names <= known or not _is_ours(folder):
        raise InputError(f"'{folder}' is not a Shoal release, and is never replaced.")


def _is_ours(folder: Path) -> bool:
    for name, key in ((MANIFEST, "shoal_version"), (FIGURES, "confidential")):
        with suppress(InputError, ValueError):
            content = parse_json(read_bytes(folder / name, name))
            if isinstance(content, dict) and key in content:
                return True
    return False


def write_release(
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
    if release.manifest.release_form is ReleaseForm.TREE and file_format in io.STATS_NAMES:
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
        refuse_places(folder, force=force)
        new = folders.new_folder(place)
        made = release if distributed else _in_polars(release)
        write(made, new, output, distributed=distributed)
        verification = verify(new)
        if not verification.holds:
            raise InputError(
                "The table of this release is no longer the one that its claims are about. Make "
                "the release again, and write it unchanged. Nothing was written."
            )
        folders.commit(place, folder)
    return folder


def _in_polars(release: Release) -> Release:
    """Take over tables, and days from pandas, which holds them as times, as days again."""
    tables = {name: io.from_native(extra).frame for name, extra in release.extras.items()}
    frame = io.from_native(release.data).frame
    days = [
        pl.col(name).cast(pl.Date)
        for name, dtype in release.manifest.columns.items()
        if dtype == "Date" and isinstance(frame.schema.get(name), pl.Datetime)
    ]
    return replace(release, data=frame.with_columns(days), extras=tables)
