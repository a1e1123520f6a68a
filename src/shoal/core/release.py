"""A protected table with its claims, checks and manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.core.claims import Check, Claim, claim_lines
from shoal.core.confidential import Confidential
from shoal.core.guarantees import figure
from shoal.core.policy import Policy
from shoal.core.privacy_loss import PrivacyLoss
from shoal.errors import count_noun

if TYPE_CHECKING:
    from shoal.core.manifest import Manifest


@dataclass(frozen=True, eq=False)
class Scheme:
    """How a release recoded its table, so another can be recoded the same way.

    Attributes:
        policy: of the release that it comes from.
        recoding: the levels, the cuts or the borders that were chosen; it cannot be printed.
        public: nothing in it was read off the table, beyond the levels that the release states.
    """

    policy: Policy = field(repr=False)
    recoding: Confidential[Mapping[str, Any]]
    public: bool

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write it as TOML for `shoal apply`; readable by you alone, unless it is public.

        Args:
            path: where to write it.
            force: replace an existing file.
        """
        # Imported by name: `core` does not depend on files.
        import_module("shoal.pipeline.scheme_files").write(self, Path(path), force=force)


@dataclass(frozen=True)
class Release:
    """A protected table and all that may be said about it. It never holds the original.

    Attributes:
        data: the table, of the type that was handed in.
        privacy_losses: the accounting entries of a release that spends epsilon.
        manifest: the same facts and all others that are published in `manifest.json`.
        labels: variable and value labels that came with the file, for the released columns.
        extras: further tables that may be published, by name, of the same type as the data.
        unexpected: sentences on what a steward should confirm before publication; none if noise was
            paid for.
        scheme: how the table was recoded, if another can be recoded the same way: for
            `shoal.apply`. A pickle of the release lacks it.
        policy: the policy that was drafted for it, if it was; as confidential as the table.
    """

    data: Any
    claims: tuple[Claim, ...]
    checks: tuple[Check, ...]
    privacy_losses: tuple[PrivacyLoss, ...]
    manifest: "Manifest"
    labels: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extras: Mapping[str, Any] = field(default_factory=dict, repr=False)
    unexpected: tuple[str, ...] = ()
    scheme: Scheme | None = field(default=None, repr=False)
    policy: str | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "scheme": None, "policy": None}

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done without a question, and what recipients should know; published."""
        return tuple(self.manifest.notes)

    @property
    def exposed(self) -> tuple[str, ...]:
        """Columns released unchanged although few rows share their values."""
        frame = import_module("shoal.io").from_native(self.data).frame
        sentences: tuple[str, ...] = import_module("shoal.policy.exposure").nearly_unique(
            self.manifest, frame
        )[0]
        return sentences

    def __repr__(self) -> str:
        notes = [*(f"  note  {text}" for text in self.notes),
                 *(f"  exposed  {text}" for text in self.exposed)]  # fmt: skip
        return "\n".join([self.summary(), *notes])

    def summary(self) -> str:
        """Summarise in a few lines what is promised and what was tested."""
        rows, columns = self.manifest.rows, len(self.manifest.columns)
        size = f"{count_noun(rows, 'row')} x {count_noun(columns, 'column')}"
        lines = [f"Release of {size} by {self.manifest.method}"]
        lines += claim_lines(self.claims)
        lines += [f"  not claimed  {text}" for text in self.manifest.not_claimed]
        lines += [
            f"  check  {'holds' if check.holds else 'FAILS':<11} {check.guarantee}"
            f" (achieved {figure(check.achieved)})"
            for check in self.checks
        ]
        lines += [f"  confirm  {text}" for text in self.unexpected]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def write(
        self,
        folder: str | Path,
        *,
        file_format: str = "parquet",
        guard_formulas: bool | None = None,
        force: bool = False,
    ) -> Path:
        """Write the public folder: the table, its manifest and the public report.

        It is what `shoal protect` publishes, and it is verified before it is put in place. The
        confidential folder beside it needs the original, which a release never holds; make it with
        `shoal report FOLDER DATA --policy POLICY`.

        Args:
            folder: where to write it.
            file_format: parquet, csv, xlsx, sav, dta or xpt. CSV is written as `[writing]` of the
                policy says, or else `[reading]`.
            guard_formulas: disarm text that a spreadsheet would run as a formula; the default for
                CSV and xlsx.
            force: replace an existing release.

        Raises:
            InputError: it cannot be written there, the table is no longer the one that was
                released, or something unexpected is not accepted by the policy.
        """
        # Imported by name: `core` does not depend on files.
        door = import_module("shoal.publish.public_folder")
        path: Path = door.write_release(
            self, Path(folder), file_format=file_format, guard_formulas=guard_formulas, force=force
        )
        return path

    def plot(self) -> Any:
        """Draw the distribution of each released column.

        A `shoal.report.pictures.Drawing`, which a notebook shows and `save` writes as SVG.
        """
        return import_module("shoal.report.pictures").release(self)
