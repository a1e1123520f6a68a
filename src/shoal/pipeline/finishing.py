"""After a release is drawn: keep it, finish it, compare it with the original."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal import io
from shoal.core import Confidential, Policy, Progress, Release, silent
from shoal.core.serialise import parsed
from shoal.errors import InputError, ShoalError
from shoal.io import folders
from shoal.io.folders import UNFINISHED
from shoal.io.text_files import read_bytes
from shoal.pipeline import booking, confidential_folder, protecting, public_folder
from shoal.pipeline.manifest import read as read_manifest
from shoal.pipeline.options import EvaluationOptions, OutputOptions, ReadingOptions
from shoal.pipeline.planning import plan
from shoal.policy.load import load
from shoal.report import evidence


def compared(
    secret: Confidential[Any], place: Path, out: Path, **terms: Any
) -> confidential_folder.Written:
    """Compare a release that is in place with its original; say if the disk does not take it."""
    try:
        folder = folders.new_folder(place, "internal")
        written = confidential_folder.write(secret, folder, **terms)
        folders.put(folder, folders.internal_of(out))
    except OSError as error:
        reason = (error.strerror or "the disk refuses it").lower()
        raise InputError(
            f"Its confidential report could not be written: {reason}. Run `shoal report {out} DATA "
            "--policy POLICY` to make it; that spends nothing more."
        ) from None
    return written


@contextmanager
def in_place(done: protecting.Run, out: Path) -> Iterator[None]:
    """Say in every error after a release was put in place that it is there, and what it cost."""
    try:
        yield
    except ShoalError as error:
        raise type(error)(f"The release is complete in '{out}'. {_spent(done)}{error}") from None


def _spent(done: protecting.Run) -> str:
    epsilon = (done.account or {}).get("epsilon")
    return f"Epsilon {epsilon} counts as spent. " if epsilon else ""


@contextmanager
def keeping(
    done: protecting.Run, out: Path, output: OutputOptions, *, distributed: bool
) -> Iterator[None]:
    """Keep a release that is paid for where its place cannot be written, and say where it is."""
    try:
        yield
    except (OSError, InputError) as error:
        reason = str(error) if isinstance(error, InputError) else (error.strerror or "").lower()
        first = f"Cannot write '{out}': {reason.rstrip('.')}. {_spent(done)}"
        if not done.release.privacy_losses:  # it can be made again for nothing
            raise InputError(f"{first}Nothing was written.") from None
        for folder in (out.parent, Path(tempfile.gettempdir())):
            kept = folder / (out.name + UNFINISHED)
            try:
                _keep(done, kept, output, distributed=distributed)
            except (OSError, ShoalError):
                shutil.rmtree(kept, ignore_errors=True)
                continue
            raise InputError(
                f"{first}The release itself is kept, for you alone, in '{kept}'. Make room, and "
                f"run `shoal finish {out} --kept {kept}`: that spends nothing more."
            ) from None
        raise InputError(f"{first}No other disk had room for the release: it is lost.") from None


def _keep(done: protecting.Run, kept: Path, output: OutputOptions, *, distributed: bool) -> None:
    kept.mkdir(mode=0o700)
    new = kept / "public"
    new.mkdir()
    public_folder.write(done.release, new, output, distributed=distributed)
    file, entry = done.booking or (None, None)
    public_folder.dump(
        kept / "booking.json", {"file": None if file is None else str(file), "id": entry}
    )


def finish(out: Path, *, kept: Path | None = None, force: bool = False) -> Path:
    """Put a release in place that was drawn and paid for, and whose disk was full then.

    Args:
        out: the folder to write.
        kept: where the release is kept; by default beside it.
        force: replace an existing release.

    Returns:
        The folder.
    """
    kept = out.with_name(out.name + UNFINISHED) if kept is None else kept
    manifest = read_manifest(kept / "public").values
    try:
        booked = parsed(read_bytes(kept / "booking.json", "booking.json"))
        file, entry = booked["file"], booked["id"]
        whole = all(
            folders.digest(kept / "public" / name) == fact["sha256"]
            for name, fact in manifest["files"].items()
        )
    except (OSError, InputError, ValueError, LookupError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise InputError(f"'{kept}' is damaged: it is not what an unfinished run kept there.")
    with folders.workplace(out) as place:
        with folders.refusing(out):
            folders.recover(place, out)
            for folder in (out, folders.internal_of(out)):
                public_folder.refuse_place(folder, force=force)
            shutil.copytree(kept / "public", place / "new")
            folders.commit(place, out)
        if file is not None:
            protecting.settle_entry(Path(file), entry)
        shutil.rmtree(kept, ignore_errors=True)
    return out


def report(
    out: Path,
    data: Path,
    policy: Policy | Path,
    *,
    reading: ReadingOptions = ReadingOptions(),
    evaluation: EvaluationOptions = EvaluationOptions(),
    progress: Progress = silent,
) -> confidential_folder.Written:
    """Make the confidential folder of a release again, from its files and the original.

    It spends no epsilon and touches nothing that is public. Rows of the release are matched to
    nobody: losses row by row are known to the run that made the release, and to no other.

    Args:
        out: the release.
        data: the table that it was made of.
        policy: the policy that it was made by.
        reading: how the file is written.
        evaluation: what the report compares.
        progress: called with the stage and how far it is.
    """
    manifest = read_manifest(out).values
    stated = load(policy)
    if stated.digest != manifest.get("policy_digest"):
        raise InputError(f"'{out}' was made by another policy; expected the one of its manifest.")
    planned = plan(replace(stated, required=(), audience=None))
    progress("reading the files", 0, 1)
    marks = reading.marks(stated)
    raw = io.read(data, **marks, alone=planned.method.noisy)
    control = None if evaluation.control is None else io.read(evaluation.control, **marks)
    evidence.check_control(control, planned.policy)
    table = next((out / name for name in manifest.get("files", {}) if name.startswith("release.")),
                 None)  # fmt: skip
    if table is None or not table.is_file():
        raise InputError(f"'{out}' lacks its table, or has it in parts; expected release.parquet.")
    made = Release(io.read(table).frame, (), (), (), manifest)
    if evaluation.evaluate is not False:
        booking.record_inspection(stated, what="evaluate", note=out.name)
    with folders.workplace(out) as place:
        with folders.refusing(folders.internal_of(out)):
            folders.recover(place, out)
            public_folder.refuse_place(folders.internal_of(out), force=True)
            shutil.rmtree(folders.internal_of(out), ignore_errors=True)
        return compared(
            Confidential(_Unmatched(raw)),
            place,
            out,
            planned=planned,
            release=made,
            manifest=manifest,
            facts={"budget": None, **evidence.facts(data, policy, out, evaluation)},
            evaluate=evaluation.evaluate,
            control=control,
            progress=progress,
        )


@dataclass(frozen=True, eq=False)
class _Unmatched:
    """The original of a release whose rows are matched to nobody."""

    raw: io.Raw
    dropped: int = 0

    @property
    def clamped(self) -> Mapping[str, Mapping[str, int]]:
        """Not known any more."""
        return {}

    def figures(self, _columns: Any, _form: Any) -> dict[str, Any]:
        """The number of rows; nothing that compares row by row."""
        return {
            "rows": self.raw.frame.height,
            "unique_on_quasi_identifiers": {
                "original": None,
                "rows": self.raw.frame.height,
                "released": None,
            },
            "homogeneous": {},
            "columns": [],
        }
