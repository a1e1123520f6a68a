"""Open a public folder that anybody may have written: what it says, and what follows from it."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from shoal.core import Claim, DifferentialPrivacy, ReleaseForm, Testable
from shoal.core.manifest import Manifest
from shoal.errors import InputError, ShoalError
from shoal.pipeline import planning
from shoal.pipeline.manifest import parse, read_raw
from shoal.pipeline.planning import Plan
from shoal.publish.released_table import PARTS, read_measurements, read_recorded_policy, read_table

ODD = (
    ShoalError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, PolarsError
)  # fmt: skip
"""What values that nobody checked can do to code that expects our own."""


@dataclass(frozen=True)
class OpenedFolder:
    """A release as it was read, and what follows from its policy.

    Attributes:
        raw: the bytes of the manifest.
        frame: the table; empty where it cannot be read.
        readable: it could be read.
        measurements: the noisy answers beside it, if any.
        planned: none where the policy cannot be planned.
        faults: why not, in sentences.
        exact: the file keeps the types of cells.
    """

    path: Path
    raw: bytes
    manifest: Manifest
    frame: pl.DataFrame
    readable: bool
    measurements: pl.DataFrame | None
    planned: Plan | None
    faults: tuple[str, ...]
    exact: bool

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the policy lets it claim; less where the noise carried no claim."""
        claims = () if self.planned is None else self.planned.claims
        if claims_epsilon(self.manifest):
            return claims
        return tuple(claim for claim in claims if isinstance(claim.guarantee, Testable))

    @property
    def text(self) -> bool:
        """Whether the table is a CSV file."""
        return "release.csv" in self.manifest.files

    @property
    def spreadsheet(self) -> bool:
        """Whether people open the table in a spreadsheet."""
        return self.text or "release.xlsx" in self.manifest.files

    @property
    def suppressible(self) -> Fraction:
        """The share of the rows that the policy lets the method leave out."""
        parameters = self.planned.setting.parameters if self.planned else None
        return Fraction(getattr(parameters, "record_suppression", 0))

    @property
    def drawn_rows(self) -> int | None:
        """The number of rows that drew noise, where each row draws its own."""
        if self.planned is None or not self.planned.method.noise_by_row:
            return None
        return max((entry.draws for entry in self.manifest.privacy_losses), default=0)


def open_folder(path: Path) -> OpenedFolder:
    """Read manifest, table and measurements, and plan what the recorded policy says."""
    raw = read_raw(path)
    manifest, faults = parse(path, raw), []
    frame, measured, planned = None, None, None
    exact = "release.parquet" in manifest.files
    try:
        frame = read_table(path, manifest)
        measured = read_measurements(path, manifest)
    except InputError as error:
        faults.append(str(error))
    try:
        planned = _plan_again(manifest, frame)
    except ODD as error:
        why = (
            str(error) if isinstance(error, ShoalError) else "its values are not those of a policy."
        )
        faults.append(f"The recorded policy cannot be planned: {why}")
    shown = pl.DataFrame() if frame is None else frame
    readable = frame is not None
    return OpenedFolder(
        path, raw, manifest, shown, readable, measured, planned, tuple(faults), exact
    )


def _plan_again(manifest: Manifest, frame: pl.DataFrame | None) -> Plan:
    """Plan the release again from what the manifest records."""
    planned = planning.plan(
        read_recorded_policy(manifest.policy, manifest.hierarchies, frame),
        keep_order=manifest.release_form is ReleaseForm.ROW_ALIGNED,
        distributed=any(name.startswith(PARTS) for name in manifest.files),
        audience=manifest.audience,
    )
    if planned.setting.release_form in {ReleaseForm.TREE, ReleaseForm.SYNTHETIC}:
        return planned  # its rows are not those of the original
    return planning.with_rows(planned, manifest.rows + manifest.suppressed)


def claims_epsilon(manifest: Manifest) -> bool:
    """Whether a manifest claims an epsilon; one of fake noise does not."""
    return any(claim.guarantee.get("name") == DifferentialPrivacy.name for claim in manifest.claims)
