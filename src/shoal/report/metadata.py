"""Describe a release for archives: a Frictionless data package, and a DDI codebook.

Both are functions of the manifest and of the labels that the release carries, so `verify` derives
them again. They say of each column what it is, what its values mean and what was done to it.

References:
    Open Knowledge, Data Package 2 (https://datapackage.org).
    DDI Alliance, DDI Codebook 2.5 (2012).
"""

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from shoal.core import ReleaseForm
from shoal.core.manifest import Manifest
from shoal.errors import count_noun
from shoal.io.dates import ERA, strptime_format
from shoal.report import html, phrases

PACKAGE = "datapackage.json"
CODEBOOK = "codebook.xml"
METADATA = (PACKAGE, CODEBOOK)
"""Their names in a public folder."""
_TYPES = {"Int": "integer", "UInt": "integer", "Float": "number", "Decimal": "number",
          "Boolean": "boolean", "Datetime": "datetime", "Date": "date"}  # fmt: skip
"""Types of a data package, by how the name of a released column's type begins."""


def describe_release(manifest: Manifest, labels: Mapping[str, Any]) -> dict[str, str]:
    """Describe a release whose table is written: texts by their names in the folder."""
    columns = _describe_columns(manifest, labels)
    return {
        PACKAGE: _write_package(manifest, columns),
        CODEBOOK: _write_codebook(manifest, columns),
    }


def _describe_columns(manifest: Manifest, labels: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Add to the codebook's entries the labels, the type, and what was done, in a sentence."""
    drawn, stated = bool(manifest.privacy_losses), manifest.policy["columns"]
    entries = []
    for entry in phrases.codebook(manifest):
        name, spec = entry["name"], stated.get(entry["name"], {})
        changed = f"Changed: {entry['changed']}"
        meanings = labels.get("values", {}).get(name, {})
        kept = entry["changed"].startswith("no,") or drawn
        single = kept and manifest.release_form is not ReleaseForm.TREE
        categories = [str(value) for value in spec.get("categories", ())]
        missing = [str(value) for value in spec.get("missing", ())]
        entries.append(
            {
                **entry,
                "label": labels.get("columns", {}).get(name, entry["label"]),
                "meanings": {str(value): str(text) for value, text in meanings.items()},
                "categories": categories,
                "missing": missing,
                "listed": dict.fromkeys([*categories, *meanings, *missing]),
                "single": single,
                "weight": bool(spec.get("sampling_weight")),
                "type": next(
                    (form for dtype, form in _TYPES.items() if entry["type"].startswith(dtype)),
                    "string",
                ),
                "done": ". ".join([changed, *(f[0].upper() + f[1:] for f in entry["facts"])]) + ".",
                "format": strptime_format(spec.get("date_format", "")),
            }
        )
    return entries


def _table(manifest: Manifest) -> tuple[list[str], str]:
    """Return the files of the table, and their format."""
    paths = sorted(name for name in manifest.files if name.startswith("release."))
    return paths, PurePosixPath(paths[0].partition("/")[0]).suffix.removeprefix(".")


def _write_package(manifest: Manifest, columns: list[dict[str, Any]]) -> str:
    paths, form = _table(manifest)
    fields = [_write_field(manifest, column, form) for column in columns]
    resource: dict[str, Any] = {
        "name": "release",
        "path": paths if len(paths) > 1 else paths[0],
        "format": form,
        "schema": {"fields": fields, "missingValues": [""]},
    }
    if form == "csv":
        resource |= {
            "encoding": manifest.dialect["encoding"],
            "dialect": {"delimiter": manifest.dialect["delimiter"]},
        }
    if len(paths) == 1:
        resource["bytes"] = manifest.files[paths[0]].bytes
    package = {
        "name": "release",
        "title": _title(manifest),
        "description": " ".join(_sentences(manifest)),
        "created": manifest.created,
        "resources": [resource],
    }
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def _write_field(manifest: Manifest, column: Mapping[str, Any], form: str) -> dict[str, Any]:
    made = {
        "name": column["name"],
        "type": column["type"],
        "title": column["label"] or column["name"],
        "description": column["done"],
    }
    made |= {"weight": True} if column["weight"] else {}
    if form == "csv" and column["type"] == "number":
        made["decimalChar"] = manifest.dialect["decimal"]
    if form == "csv" and column["type"] == "date" and column["format"]:
        dated = column["format"] != ERA  # which no other reader knows
        made |= {"format": column["format"]} if dated else {"type": "string"}
    values, meanings = column["categories"], column["meanings"]
    typed = int if column["type"] == "integer" else str
    whole = all(re.fullmatch(r"-?\d{1,15}", value) for value in values)
    if values and column["single"] and (typed is str or whole):
        # All that a cell may be; ranges, sets and stars of other methods are not listed.
        made["categories"] = [{"value": typed(v), "label": meanings.get(v, v)} for v in values]
    elif labelled := {v: text for v, text in meanings.items() if v not in column["missing"]}:
        made["enumLabels"] = labelled
    return made


def _write_codebook(manifest: Manifest, columns: list[dict[str, Any]]) -> str:
    weights = [place for place, column in enumerate(columns, start=1) if column["weight"]]
    text = html.environment("shoal.report").get_template("codebook.xml").render(
        manifest=manifest, columns=columns, paths=_table(manifest)[0], title=_title(manifest),
        sentences=_sentences(manifest), weight=weights[0] if weights else None,
    )  # fmt: skip
    # XML has no place for two code points that stand for nothing.
    return text.translate({0xFFFE: None, 0xFFFF: None}) + "\n"


def _title(manifest: Manifest) -> str:
    return f"Release of {count_noun(manifest.rows, 'row')} by {manifest.method}"


def _sentences(manifest: Manifest) -> list[str]:
    """Say what is promised, by its status, and what recipients should know."""
    promised = [
        f"{claim.guarantee['name']} is {claim.status}: {claim.basis.rstrip('.')}."
        for claim in manifest.claims
    ]
    return [*promised, *manifest.notes]
