"""Read what a metadata file says of a table: a Frictionless data package, or a DDI codebook.

Labels, missing codes, levels of measurement and the sampling weight are taken from it, so nobody
types them again. They are drafted into a policy, for the steward to correct; no cell decides them.

References:
    Open Knowledge, Data Package 1 and 2; "Enum labels and ordering" of its recipes.
    DDI Alliance, DDI Codebook 2.5 (2012), section 4, elements var, catgry and invalrng.
"""

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shoal.core.serialise import parse_json
from shoal.errors import InputError, count_noun
from shoal.io.raw import Raw
from shoal.io.text_files import read_bytes

_MEASURES = {"nominal": "nominal", "ordinal": "ordinal", "interval": "scale", "ratio": "scale"}


@dataclass(frozen=True)
class Metadata:
    """What a metadata file says of the columns that it names.

    Attributes:
        names: all of them.
        labels: of columns.
        values: of columns, each value with its label.
        missing: of columns, the values that mean missing.
        measures: of columns: nominal, ordinal or scale.
        weights: columns that hold sampling weights.
    """

    names: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)
    weights: list[str] = field(default_factory=list)

    def describe(self, raw: Raw) -> Raw:
        """Add it to what the table's own file says; where both say something, it holds."""
        return replace(
            raw,
            column_labels={**raw.column_labels, **self.labels},
            labels={**raw.labels, **self.values},
            measures={**raw.measures, **self.measures},
            missing={name: tuple(marks) for name, marks in self.missing.items()},
            weights=frozenset(self.weights),
        )


def describe_by(raw: Raw, path: Path) -> Raw:
    """Add to a table what a metadata file says of it."""
    content = read_bytes(path, f"the metadata '{path}'")
    return parse(content, raw.names, f"The metadata '{path}'").describe(raw)


def parse(content: bytes, names: Collection[str], source: str) -> Metadata:
    """Parse a metadata file of a table with these columns; `source` is named in errors.

    Of a package with several tables it is the one that shares the most names with them.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        package = content.lstrip()[:1] == b"{"
        made = _parse_package(parse_json(content), names) if package else _parse_codebook(content)
    except (ET.ParseError, AttributeError, LookupError, TypeError, ValueError):
        raise InputError(
            f"{source} cannot be read: expected a Frictionless data package (JSON) or a DDI "
            "codebook (XML)."
        ) from None
    if not set(made.names) & set(names):
        described = count_noun(len(made.names), "column")
        raise InputError(
            f"{source} describes {described}, none of them by a name of the table's columns. "
            "Expected the metadata of this table."
        )
    return made


def _parse_package(document: dict[str, Any], names: Collection[str]) -> Metadata:
    tables = [resource["schema"] for resource in document.get("resources", ())
              if isinstance(resource.get("schema"), dict)] or [document]  # fmt: skip

    def shared(table: Mapping[str, Any]) -> int:
        return len({item["name"] for item in table["fields"]} & set(names))

    table, made = max(tables, key=shared), Metadata()
    for item in table["fields"]:
        name = str(item["name"])
        made.names.append(name)
        label = str(item.get("title") or item.get("description") or name)
        if label != name:
            made.labels[name] = label
        values = dict(_labelled(item.get("categories", ())))
        values |= {str(value): str(label) for value, label in item.get("enumLabels", {}).items()}
        missing = dict(_labelled(item.get("missingValues", table.get("missingValues", ()))))
        missing.pop("", None)
        made.missing[name] = list(missing)
        made.values[name] = {v: label for v, label in {**values, **missing}.items() if label}
        if values:
            ordered = item.get("categoriesOrdered") or item.get("enumOrdered")
            made.measures[name] = "ordinal" if ordered else "nominal"
        if item.get("weight") is True:
            made.weights.append(name)
    return made


def _labelled(values: Any) -> Iterator[tuple[str, str]]:
    """Yield values with their labels: each is a value, or an object of both."""
    for value in values:
        if isinstance(value, dict):
            yield str(value["value"]), str(value.get("label", ""))
        else:
            yield str(value), ""


class _Tree(ET.TreeBuilder):
    """Refuses a document type, which may define entities that grow without end."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError(name, pubid, system)


def _parse_codebook(content: bytes) -> Metadata:
    # The parser resolves nothing outside the file, and `_Tree` leaves no entity to expand.
    root = ET.fromstring(content, ET.XMLParser(target=_Tree()))  # noqa: S314
    if not root.tag.endswith("codeBook"):
        raise ValueError(root.tag)
    made = Metadata()
    for item in root.iterfind(".//{*}var"):
        name = item.attrib["name"]
        made.names.append(name)
        if label := _text(item, "{*}labl"):
            made.labels[name] = label
        categories = [(_text(c, "{*}catValu"), _text(c, "{*}labl"), c.get("missing") == "Y")
                      for c in item.findall("{*}catgry")]  # fmt: skip
        made.values[name] = {value: label for value, label, _ in categories if value and label}
        invalid = [i.attrib["VALUE"] for i in item.findall("{*}invalrng/{*}item")]
        marked = [value for value, _, missing in categories if missing and value]
        made.missing[name] = list(dict.fromkeys([*marked, *invalid]))
        if measure := _MEASURES.get(item.get("nature", "")):
            made.measures[name] = measure
        if item.get("wgt") == "wgt":
            made.weights.append(name)
    return made


def _text(item: ET.Element, path: str) -> str:
    inner = item.find(path)
    return "" if inner is None else " ".join("".join(inner.itertext()).split())
