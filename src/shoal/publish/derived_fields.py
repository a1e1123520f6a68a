"""How far each field of a manifest is derived again by `verify`, and what no folder can show of it.

The manual prints this table by method, and the verdict of a verification names what is not checked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.core import Distance, Schema, TCloseness, Testable
from shoal.core.manifest import CheckRecord
from shoal.methods import Method
from shoal.pipeline import protect_table
from shoal.publish.released_folder import OpenedFolder


def not_shown(opened: OpenedFolder, guarantee: Testable, stated: CheckRecord) -> str:
    """Why a check cannot be recomputed from what is public, or nothing."""
    schema = opened.planned.policy.schema if opened.planned else Schema(())
    distance = guarantee.distance if isinstance(guarantee, TCloseness) else None
    hidden_order = any(schema[name].observed for name in guarantee.columns)
    if distance is Distance.ORDERED and hidden_order:
        return f"{guarantee} follows an order of categories that is not published."
    if distance is Distance.HIERARCHICAL and hidden_order:
        return f"{guarantee} follows a hierarchy that is not published."
    unit = schema.column_with_flag("privacy_unit")
    hidden = unit is not None and unit not in opened.frame.columns
    if hidden and stated.remarks.get("counted") == "persons":
        return f"{guarantee} counts persons, and the table does not say whose rows they are."
    return ""


def _hides_checks(opened: OpenedFolder) -> bool:
    """Whether a check follows persons or an order that the folder does not show."""
    if opened.planned is None:
        return False
    wanted = protect_table.testable(opened.planned, opened.claims)
    pairs = zip(wanted, opened.manifest.checks, strict=False)
    return any(not_shown(opened, guarantee, stated) for guarantee, stated in pairs)


@dataclass(frozen=True)
class DerivedField:
    """How far a field of a manifest is derived again.

    Attributes:
        part: of the verification, that derives it.
        taken: what of it is taken as stated, because no folder can show it.
        where: of which releases, in words; of all, if none.
        holds: whether a release is one of these.
        among: whether a method makes such releases.
    """

    part: str
    taken: str = ""
    where: str = ""
    holds: Callable[[OpenedFolder], bool] = lambda _: True
    among: Callable[[Method[Any]], bool] = lambda _: True

    def open_for(self, method: Method[Any] | None) -> bool:
        """Whether not all of it is derived in the releases of a method; of an unknown one, so."""
        return bool(self.taken) and (method is None or self.among(method))


_MANIFEST = DerivedField("manifest")
FIELDS: Mapping[str, DerivedField] = {
    "shoal_version": DerivedField("versions"),
    "versions": DerivedField("versions", "the versions that made it"),
    "created": DerivedField("report", "when it was made"),
    **dict.fromkeys(("method", "reference", "parameters", "protected_columns"), _MANIFEST),
    **dict.fromkeys(("release_form", "hierarchies"), _MANIFEST),
    "columns": DerivedField("manifest", "the types of its columns",
                            "the table is not a Parquet file", lambda one: not one.exact),
    "rows": DerivedField(
        "manifest", "whether the original has as many rows", "no row has noise of its own",
        among=lambda method: not method.noise_by_row,
    ),
    **dict.fromkeys(("policy_digest", "not_claimed"), _MANIFEST),
    "audience": DerivedField(
        "manifest", "its audience", "one is stated", lambda one: one.manifest.audience is not None
    ),
    "suppressed": DerivedField(
        "manifest", "how many rows were left out", "the policy states record_suppression",
        lambda one: one.suppressible > 0,
        lambda method: "record_suppression" in method.parameters.model_fields,
    ),
    "policy": DerivedField("manifest", "the policy, and that the table was made by it"),
    "claims": DerivedField(
        "claims", "whether the noise was secure and nobody inspected the table before",
        "the method draws noise",
        among=lambda method: method.noisy,
    ),
    "notes": DerivedField("manifest", "notes on how the run went"),
    "checks": DerivedField(
        "checks", "checks by persons or by an order that is not published",
        "such a check is promised or required", _hides_checks,
    ),
    "privacy_losses": DerivedField(
        "accounting", "sensitivities and draws of the noise", "the method draws noise",
        among=lambda method: method.noisy,
    ),
    "draws": DerivedField("accounting"),
    "guard_formulas": DerivedField(
        "manifest", "how its text was guarded", "the table is a CSV file or a workbook",
        lambda opened: opened.spreadsheet,
    ),
    "dialect": DerivedField(
        "manifest", "its encoding and decimal mark", "the table is a CSV file",
        lambda opened: bool(opened.manifest.dialect),
    ),
    "files": DerivedField("files"),
}  # fmt: skip
"""For each field of a manifest, how far it is derived again."""
