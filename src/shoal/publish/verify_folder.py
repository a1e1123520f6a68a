"""Verify a release made by somebody else, without the original or the policy file.

Everything that a manifest says and that follows from something else is derived again: digests from
the files, figures of checks from the table, claims from the policy, the price from the entries of
the accounting, the report from the manifest and the table. What differs is named, and so is what
is taken as stated, in the verdict itself: `derived_fields` says for each field of a manifest which
part derives it, and what of it no folder can show.

`open_verified` is the door for whoever computes with a folder: it opens none that does not verify.

Not promised: that the table was made as the manifest says. Whoever has the folder can make another
that is as consistent; only a signature says whose folder it is.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import polars as pl
from jinja2 import TemplateError
from polars.exceptions import PolarsError

from shoal.core import (
    Check,
    Checkable,
    DifferentialPrivacy,
    Diversity,
    KAnonymity,
    KeptRule,
    LDiversity,
    Neighbours,
    PrivacyLoss,
    ReleaseForm,
    RiskLimit,
    Schema,
    Status,
    TCloseness,
    Testable,
    figure,
)
from shoal.core.manifest import CheckRecord
from shoal.core.serialise import plain
from shoal.engine import check_table
from shoal.errors import ClaimViolationError, InputError, ShoalError, count_noun
from shoal.io import decomposition_table, folders
from shoal.pipeline import protect_table
from shoal.pipeline.manifest import (
    MANIFEST,
    PUBLIC_VERSIONS,
    SIGNATURE,
    derive_fields,
    list_deciding_versions,
    list_versions,
    parse,
    read_raw,
)
from shoal.pipeline.planning import Plan
from shoal.publish.derived_fields import (
    FIELDS,
    abridge,
    list_differences,
    list_misfits,
    not_shown,
    reread,
)
from shoal.publish.released_folder import (
    MEASUREMENTS,
    ODD,
    OpenedFolder,
    claims_epsilon,
    is_inside,
    open_folder,
    read_labels,
    read_pictured,
)
from shoal.report import html
from shoal.report.metadata import METADATA, describe_release
from shoal.report.phrases import list_names

SHOWN = 5
"""How many differences of a part are named."""


class PartStatus(StrEnum):
    """The status of a part of a release."""

    VERIFIED = "verified"
    FAILS = "does not hold"
    OPEN = "not compared"


@dataclass(frozen=True)
class VerifiedPart:
    """The result for one part of a release.

    Attributes:
        sentences: what is wrong, or what was compared.
    """

    name: str
    status: PartStatus
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        first = self.sentences[:SHOWN]
        more = len(self.sentences) - len(first)
        rest = f" And {more:,} more." if more else ""
        return f"{self.name:<11} {self.status}: {' '.join(first)}{rest}"


@dataclass(frozen=True)
class Verification:
    """The result of verifying the folder of a release, part by part.

    Attributes:
        taken: what is accepted as stated, because the folder cannot show it.
    """

    folder: Path
    parts: tuple[VerifiedPart, ...]
    taken: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no comparison found a difference."""
        return all(part.status is not PartStatus.FAILS for part in self.parts)

    def __getitem__(self, name: str) -> VerifiedPart:
        return next(part for part in self.parts if part.name == name)

    @property
    def verdict(self) -> str:
        """A sentence on what was verified and what was not."""
        if not self.holds:
            return "NOT VERIFIED: the folder is not as it was released."
        return (
            "Verified, except for what the folder cannot show and is taken as stated: "
            f"{'; '.join(self.taken)}."
        )

    def __str__(self) -> str:
        return "\n".join([*map(str, self.parts), self.verdict])

    def facts(self) -> dict[str, Any]:
        """Return the verification as plain values."""
        parts = [plain(part) for part in self.parts]
        return {"holds": self.holds, "parts": parts, "taken": list(self.taken)}


def verify(folder: str | Path, *, key: str | Path | None = None) -> Verification:
    """Verify the folder of a release; neither the original nor the policy file is needed.

    Args:
        folder: the public folder, as `shoal protect` wrote it.
        key: the public key of whoever signed it, a PEM file. Without it no signature is verified.

    Returns:
        What was found. Look at its `holds`: a folder that was changed is not an error.

    Raises:
        InputError: it is not a release, or the key cannot be used.
    """
    path = Path(folder)
    return _verify(open_folder(path), key)


def open_verified(folder: Path) -> OpenedFolder:
    """Open the folder of a release to compute with it; refuse one that does not verify."""
    opened = open_folder(folder)
    verification = _verify(opened)
    failing = [part for part in verification.parts if part.status is PartStatus.FAILS]
    if failing:
        raise InputError(
            f"'{folder}' does not verify, so nothing is computed from it. {failing[0]} "
            "`shoal verify` says more; ask for an unchanged copy of the release."
        )
    return opened


def _verify(opened: OpenedFolder, key: str | Path | None = None) -> Verification:
    parts = (_files, _verify_fields, _claims, _checks, _accounting, _report, _versions)
    results = (*(part(opened) for part in parts), _signature(opened, key))
    method = opened.planned.method if opened.planned else None
    taken = tuple(
        field.taken for field in FIELDS.values() if field.open_for(method) and field.holds(opened)
    )
    return Verification(opened.path, results, taken)


def sign(
    folder: Path, key: Path, *, passphrase: Path | None = None, force: bool = False
) -> Verification:
    """Sign the manifest of a release, which covers all its files, once the release verifies.

    The key is a private one in a PEM file; the first line of a passphrase's file opens it. What
    does not hold is a `ClaimViolationError`. A signature is replaced only if forced.
    """
    place = folder / SIGNATURE
    folders.check_text(place, force=force)
    verification = verify(folder)
    if not verification.holds:
        raise ClaimViolationError(f"'{folder}' does not verify and was not signed.\n{verification}")
    if "review" in parse(folder, raw := read_raw(folder)).policy:
        raise InputError(
            f"'{folder}' was not signed: nobody has reviewed the policy that a program drafted. "
            "Fill in by and date under [review], and protect the table again."
        )
    signed = signing().sign(raw, key, passphrase=passphrase)
    folders.write_bytes(place, signed, force=force)
    return verification


def signing() -> Any:
    """Import the signing module, if its library is installed."""
    try:
        from shoal.publish import signing as room  # noqa: PLC0415 (optional)
    except ModuleNotFoundError:
        raise InputError("Signatures need the extra 'sign': pip install 'shoal[sign]'.") from None
    return room


def _part(
    name: str, faults: Sequence[str], compared: str, left: Sequence[str] = ()
) -> VerifiedPart:
    """Make a part that fails, or that is verified except for what is left."""
    if faults:
        return VerifiedPart(name, PartStatus.FAILS, tuple(faults))
    if left:
        return VerifiedPart(name, PartStatus.OPEN, (*left, f"The rest is verified: {compared}"))
    return VerifiedPart(name, PartStatus.VERIFIED, (compared,))


def _files(opened: OpenedFolder) -> VerifiedPart:
    """Verify that every listed file has its size and digest, and no other file exists."""
    path, listed = opened.path, opened.manifest.files
    faults = []
    for name, facts in listed.items():
        shown = ascii(name)[1:-1]
        if not is_inside(path, name):
            faults.append(f"{shown}: the file is missing.")
        elif (size := (path / name).stat().st_size) != facts.bytes:
            faults.append(f"{shown}: {size:,} bytes; the manifest records {facts.bytes:,}.")
        elif folders.digest(path / name) != facts.sha256:
            faults.append(f"{shown}: its SHA-256 is not the recorded one.")
    faults += [
        f"{name}: the manifest does not list it."
        for name in (html.REPORT, *METADATA)
        if name not in listed
    ]
    known = {MANIFEST, SIGNATURE, *listed, *(p.as_posix() for n in listed for p in Path(n).parents)}
    for place in sorted(path.rglob("*")):
        name = place.relative_to(path).as_posix()
        if name not in known:
            faults.append(f"{ascii(name)[1:-1]}: the manifest does not list this file.")
    have = count_noun(len(listed), "file has its", "files have their")
    compared = f"{have} recorded size and SHA-256, and there are no others."
    return _part("files", faults, compared)


def _verify_fields(opened: OpenedFolder) -> VerifiedPart:
    """Verify rows and columns against the table, and derived fields against the policy."""
    manifest, faults = opened.manifest, list(opened.faults)
    if opened.readable:
        if opened.frame.height != manifest.rows:
            faults.append(
                f"rows: {manifest.rows:,} recorded, {opened.frame.height:,} in the table."
            )
        types = {name: str(dtype) for name, dtype in opened.frame.schema.items()}
        columns = types if opened.exact else dict.fromkeys(types, "")
        stated = manifest.columns if opened.exact else dict.fromkeys(manifest.columns, "")
        faults += list_differences(stated, columns, "columns")
        if list(stated) != list(columns):
            faults.append("columns: the table has them in another order.")
        if opened.planned:
            faults += list_misfits(opened.frame, opened.planned)
    if opened.planned is not None:
        recorded = manifest.as_values()
        for name, value in derive_fields(opened.planned).items():
            faults += list_differences(recorded[name], reread(value), name)
        notes = list(opened.planned.notes)
        faults += list_differences(manifest.notes[: len(notes)], notes, "notes")
        most = int(opened.suppressible * (manifest.rows + manifest.suppressed))
        if manifest.suppressed > most:
            faults.append(
                f"suppressed: {manifest.suppressed:,} recorded, at most {most:,} allowed."
            )
        if opened.drawn_rows not in {None, manifest.rows}:
            faults.append(f"rows: {manifest.rows:,} recorded, {opened.drawn_rows:,} drew noise.")
    if (manifest.guard_formulas and not opened.spreadsheet) or (
        manifest.dialect and not opened.text
    ):
        faults.append("guard_formulas and dialect: recorded, but the table has another format.")
    compared = (
        "rows and columns match the table, its cells are in the policy's domains, and the rest "
        "follows from the policy."
    )
    return _part("manifest", faults, compared)


def _claims(opened: OpenedFolder) -> VerifiedPart:
    """Verify that the policy allows each claim."""
    if opened.planned is None:
        fault = "no claim can be derived without a policy that can be planned."
        return _part("claims", [fault], "")
    stated, derived = [claim.as_values() for claim in opened.manifest.claims], opened.claims
    faults = []
    if len(stated) != len(derived):
        faults.append(
            f"claims: {len(stated)} recorded in the manifest, but {len(derived)} "
            f"derived from the policy."
        )
    for number, (written, claim) in enumerate(zip(stated, derived, strict=False)):
        forms = [reread(form) for form in protect_table.list_published_forms(claim)]
        if written not in forms:
            nearest = min(forms, key=lambda form: len(list(list_differences(written, form, ""))))
            faults += list_differences(written, nearest, f"claims.{number}")
    less = len(opened.planned.claims) - len(derived)
    more = " It claims no epsilon, as if made with fake noise." if less else ""
    return _part("claims", faults, f"{len(stated)} derived again from the policy.{more}")


def _checks(opened: OpenedFolder) -> VerifiedPart:
    """Verify each check by recomputing it on the table."""
    if opened.planned is None or not opened.readable:
        fault = "no check can be recomputed without the table and a policy that can be planned."
        return _part("checks", [fault], "")
    stated = opened.manifest.checks
    wanted = protect_table.testable(opened.planned, opened.claims)
    faults, left = [], []
    if len(stated) != len(wanted):
        faults.append(
            f"checks: {len(stated)} recorded in the manifest, but {len(wanted)} "
            f"derived from the policy."
        )
    for number, (record, guarantee) in enumerate(zip(stated, wanted, strict=False)):
        why = not_shown(opened, guarantee, record)
        try:
            if why:
                faults += [
                    f"checks.{number}: {text}"
                    for text in _list_refutations(opened, guarantee, record)
                ]
                left.append(f"checks.{number}: {why}")
                continue
            check = _recompute(opened.frame, guarantee, opened.planned)
        except ODD as error:
            why = f" {error}" if isinstance(error, ShoalError) else ""
            faults.append(f"checks.{number}: {guarantee} cannot be recomputed.{why}")
            continue
        pair = (record.as_values(), reread(check))
        pair = pair if opened.exact else _without_order(*pair)
        faults += list_differences(*pair, f"checks.{number}")
        if not check.holds:
            faults.append(f"checks.{number}: {guarantee} does not hold.")
    compared = f"{len(stated) - len(left)} recomputed on the table."
    if opened.planned.setting.release_form is not ReleaseForm.TREE:
        rules = check_table.check_rules(opened.frame, opened.planned.policy)
        faults += [
            f"{count_noun(int(check.achieved), 'row breaks', 'rows break')} the rule "
            f"{check.guarantee.rule}."
            for check in rules
            if isinstance(check.guarantee, KeptRule) and not check.holds
        ]
        compared += " No row breaks a rule of the policy." if rules else ""
    return _part("checks", faults, compared, left)


def _list_refutations(opened: OpenedFolder, guarantee: Checkable, stated: CheckRecord) -> list[str]:
    """List what the rows refute of a check that cannot be recomputed.

    A class of p persons has at least p rows, and as many different values as its rows have.
    """
    schema = opened.planned.policy.schema if opened.planned else Schema(())
    faults = [] if stated.holds else [f"{guarantee} does not hold."]
    if stated.guarantee != reread(guarantee):
        faults.append("the recorded guarantee is not that of the policy.")
    if isinstance(guarantee, TCloseness | RiskLimit):
        return faults
    if isinstance(guarantee, LDiversity):  # every kind needs l different values
        guarantee = replace(guarantee, kind=Diversity.DISTINCT, c=None)
    rows = check_table.check_frame(opened.frame, guarantee, schema)
    if not rows.holds:
        faults.append(f"{guarantee} does not hold: a class has {figure(rows.achieved)}.")
    odd = isinstance(stated.achieved, str) or stated.achieved > rows.achieved
    if isinstance(guarantee, KAnonymity) and odd:
        faults.append(f"{stated.achieved} persons recorded, in {rows.achieved} rows.")
    if stated.remarks.get("classes") != rows.remarks["classes"]:
        faults.append(f"the table has {rows.remarks['classes']:,} classes.")
    return faults


def _recompute(frame: pl.DataFrame, guarantee: Checkable, planned: Plan) -> Check:
    schema = planned.policy.schema
    if planned.setting.release_form is ReleaseForm.TREE:
        return check_table.check_leaves(
            decomposition_table.from_frame(frame, schema), cast("Testable", guarantee), schema
        )
    return check_table.recompute(frame, guarantee, planned.policy)


def _without_order(one: Any, other: Any) -> tuple[Any, Any]:
    """Remove from two checks what depends on an order that a file does not keep."""
    both = []
    for check in (one, other):
        witness = {name: value for name, value in check["witness"].items() if name != "rows"}
        remarks = {
            name: value for name, value in check["remarks"].items() if name in one["remarks"]
        }
        both.append({**check, "witness": witness, "remarks": remarks})
    return both[0], both[1]


def _accounting(opened: OpenedFolder) -> VerifiedPart:
    """Verify that the recorded entries add up to each claimed epsilon and cover every draw."""
    manifest, faults = opened.manifest, []
    entries: list[PrivacyLoss] = []
    for number, record in enumerate(manifest.privacy_losses):
        try:
            entries.append(PrivacyLoss(**{name: getattr(record, name) for name in _SPENDING}))
        except ShoalError as error:
            faults.append(f"privacy_losses.{number}: {error}")
    drawn: Counter[tuple[str, Fraction]] = Counter()
    for draw in manifest.draws:
        drawn[draw.mechanism, draw.scale] += draw.count
    if not claims_epsilon(manifest):  # a fake noise, which need not count
        drawn = Counter()
        for entry in entries:
            drawn[entry.mechanism, entry.scale] += entry.draws
    if not faults:
        faults += protect_table.accounting_faults(entries, _collect_epsilons(opened), drawn)
    faults += _list_unaccounted(opened, drawn)
    if not manifest.privacy_losses:
        return _part("accounting", faults, "no epsilon was spent.")
    adds = count_noun(len(entries), "entry adds up to the epsilon and accounts",
                   "entries add up to the epsilon and account")  # fmt: skip
    return _part("accounting", faults, f"{adds} for every draw.")


def _list_unaccounted(
    opened: OpenedFolder, drawn: Mapping[tuple[str, Fraction], int]
) -> Iterator[str]:
    """List published noisy answers without a draw, by their scale."""
    if opened.measurements is None:
        return
    known: Counter[float] = Counter()
    for (_, scale), count in drawn.items():
        known[float(scale)] += count
    try:
        answers = Counter(opened.measurements["scale"].cast(pl.Float64).to_list())
    except PolarsError:
        yield f"{MEASUREMENTS}: expected a column of scales."
        return
    for scale, count in answers.items():
        if count > known[scale]:
            yield f"{MEASUREMENTS}: {count:,} answers of scale {scale}, {known[scale]:,} drawn."


_SPENDING = tuple(PrivacyLoss.__dataclass_fields__)


def _collect_epsilons(opened: OpenedFolder) -> list[DifferentialPrivacy]:
    """List the epsilons to account for: derived from the policy, and recorded."""
    derived = () if opened.planned is None else opened.planned.claims
    guarantees = [
        claim.guarantee
        for claim in derived
        if isinstance(claim.guarantee, DifferentialPrivacy) and claim.status is not Status.REFUTED
    ]
    for record in opened.manifest.claims:
        stated = record.guarantee
        if stated.get("name") != DifferentialPrivacy.name or record.status is Status.REFUTED:
            continue
        try:
            epsilon, rho = (
                None if stated.get(name) is None else Fraction(str(stated[name]))
                for name in ("epsilon", "rho")
            )
            neighbours = Neighbours(stated["neighbours"])
            delta = Fraction(str(stated.get("delta", 0)))
            guarantees.append(DifferentialPrivacy(epsilon, neighbours, (), delta=delta, rho=rho))
        except ODD:
            continue  # named among the claims
    return [replace(guarantee, protects=(), invariants=()) for guarantee in guarantees]


def _report(opened: OpenedFolder) -> VerifiedPart:
    """Verify that manifest and table render to the report, if the versions agree."""
    ours = list_versions(PUBLIC_VERSIONS)["shoal"]
    if opened.manifest.versions.get("shoal") != ours:
        words = "another version of Shoal rendered the report; its digest is compared under files."
        return VerifiedPart("report", PartStatus.OPEN, (words,))
    derived: dict[str, bytes | None] = dict.fromkeys((html.REPORT, *METADATA))
    try:
        table = opened.frame if opened.readable else None
        drawn = read_pictured(opened.path, opened.manifest, table)
        derived[html.REPORT] = html.public_report(opened.manifest, drawn).encode()
        labels = read_labels(opened.path, opened.manifest)
        if labels is None:  # the format keeps a part of them, so only digests are compared
            derived = {html.REPORT: derived[html.REPORT]}
        else:
            described = describe_release(opened.manifest, labels)
            derived |= {name: text.encode() for name, text in described.items()}
    except (*ODD, TemplateError):
        pass
    faults = [
        f"{name}: the file is missing."
        if not is_inside(opened.path, name)
        else f"{name}: it is not what this manifest and table render to."
        for name, page in derived.items()
        if not is_inside(opened.path, name) or (opened.path / name).read_bytes() != page
    ]
    compared = f"{list_names([*derived])}: as the manifest and the table render to."
    return _part("report", faults, compared)


def _versions(opened: OpenedFolder) -> VerifiedPart:
    """Report the versions that made it; others may be installed here."""
    stated = opened.manifest.versions
    if stated.get("shoal") != opened.manifest.shoal_version:
        fault = "shoal_version and versions name different versions of Shoal."
        return VerifiedPart("versions", PartStatus.FAILS, (fault,))
    here = list_deciding_versions(opened.planned.method.package if opened.planned else "")
    other = [
        f"{abridge(name)[1:-1]} {abridge(stated.get(name, 'none'))[1:-1]}, here "
        f"{here.get(name, 'none')}."
        for name in dict.fromkeys([*here, *stated])
        if stated.get(name) != here.get(name)
    ]
    if other:
        return VerifiedPart("versions", PartStatus.OPEN, ("made with", *other))
    made = ", ".join(f"{name} {number}" for name, number in here.items())
    return VerifiedPart(
        "versions", PartStatus.VERIFIED, (f"made with {made}, the versions in use here.",)
    )


def _signature(opened: OpenedFolder, key: str | Path | None) -> VerifiedPart:
    """Verify the signature of the manifest's bytes by the given key."""
    signed = is_inside(opened.path, SIGNATURE)
    if key is None:
        words = (
            "the release is signed; give the public key to verify it."
            if signed
            else "the release is not signed."
        )
        return VerifiedPart("signature", PartStatus.OPEN, (words,))
    room, faults = signing(), []
    if not signed:
        room.is_signed(b"", b"", Path(key))  # a file that is not a key is an error here, too
        faults.append(f"{SIGNATURE}: a key was given, but the release is not signed.")
    elif not room.is_signed(opened.raw, (opened.path / SIGNATURE).read_bytes(), Path(key)):
        faults.append(
            f"{SIGNATURE}: it is not this key's signature of {MANIFEST}. The manifest was changed, "
            "or another key signed it."
        )
    return _part("signature", faults, f"this key signed {MANIFEST}, which covers every file.")
