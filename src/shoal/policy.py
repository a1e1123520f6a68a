"""The policy file: TOML in, a frozen `Policy` out.

The shape, the columns, their roles and kinds are checked here, by the models of `shoal.spec`.
Methods and their parameters are checked by `shoal.planning.plan`, still before any data is read.
Numbers with a point are read as decimals, so that 0.1 means one tenth.
"""

import csv
import hashlib
import io
import json
import tomllib
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shoal.core import Column, Policy, Schema, Taxonomy
from shoal.errors import InputError
from shoal.spec import ColumnSpec, PolicySpec, RequireSpec, sentence


def load(source: Policy | Mapping[str, Any] | str | Path) -> Policy:
    """Read and check a policy.

    Args:
        source: a path to a TOML file, the same content as a mapping, or a `Policy`, which is
            returned as it is. Files that the policy names are looked for beside the policy
            file; for a mapping, in the working folder.
    """
    if isinstance(source, Policy):
        return source
    if isinstance(source, Mapping):
        return _build(_decimals(source), folder=Path(), where="policy")
    if not isinstance(source, str | Path):
        raise InputError(
            f"Expected a policy as a path, a mapping or a Policy, found {type(source).__name__}."
        )
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot read the policy '{path}': {_reason(error)}.") from None
    except UnicodeDecodeError:
        raise InputError(f"The policy '{path}' must be UTF-8 text; it is not.") from None
    return loads(text, folder=path.parent, where=path.name)


def loads(text: str, *, folder: Path = Path(), where: str = "policy") -> Policy:
    """Read and check a policy given as TOML text; see `load`."""
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is not valid TOML: {error}.") from None
    return _build(content, folder=folder, where=where)


def json_schema() -> dict[str, Any]:
    """Describe the policy file as a JSON schema, for editors that complete and check TOML."""
    schema = PolicySpec.model_json_schema(mode="validation", by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def quoted(text: str) -> str:
    """Write text as TOML does; JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _build(content: Mapping[str, Any], *, folder: Path, where: str) -> Policy:
    try:
        spec = PolicySpec.model_validate(content)
    except ValidationError as error:
        raise InputError(sentence(error, where)) from None
    files: dict[str, str] = {}
    columns = tuple(_column(name, c, folder, files) for name, c in spec.columns.items())
    document = _document(spec, files)
    text = json.dumps(document, sort_keys=True, ensure_ascii=False)
    protect = spec.protect
    return Policy(
        schema=Schema(columns, spec.one_row_per_person),
        method=protect.method,
        parameters=dict(protect.model_extra or {}),
        columns=tuple(protect.columns) if protect.columns else None,
        release_form=protect.release_form,
        required={
            field.alias or name: value
            for name, field in RequireSpec.model_fields.items()
            if (value := getattr(spec.require, name)) is not None
        },
        reading=spec.reading.model_dump(exclude_none=True),
        ledger=_ledger(spec, folder),
        context=spec.context.model_dump(exclude_none=True),
        measure=_measure(spec, folder),
        document=document,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        audience=spec.release.audience,
    )


def _document(spec: PolicySpec, files: Mapping[str, str]) -> dict[str, Any]:
    """Write the policy as plain values that may be published.

    The context is for the officer. Categories that were only observed are read off the
    data, so that they stay out too.
    """
    hidden = {"context", "ledger", "measure"}
    plain = spec.model_dump(by_alias=True, exclude_defaults=True, exclude=hidden)
    for name, column in spec.columns.items():
        if column.observed:
            del plain["columns"][name]["categories"]
    document: dict[str, Any] = shown(plain)
    return {**document, "files": dict(files)} if files else document


def _measure(spec: PolicySpec, folder: Path) -> dict[str, Any]:
    stated = spec.measure.model_dump(exclude_none=True)
    if spec.measure.queries:
        stated["queries"] = str(folder / spec.measure.queries)
    return stated


def _ledger(spec: PolicySpec, folder: Path) -> dict[str, str]:
    if spec.ledger is None:
        return {}
    return {"file": str(folder / spec.ledger.file), "source": spec.ledger.source}


def _column(name: str, spec: ColumnSpec, folder: Path, files: dict[str, str]) -> Column:
    """Read the files that a column names; record their digests in `files`."""
    values = {field: getattr(spec, field) for field in type(spec).model_fields}
    values["date_format"] = values.pop("format")
    values["missing"] = tuple(spec.missing)
    if spec.categories:
        values["categories"] = tuple(spec.categories)
    if spec.taxonomy:
        rows = _read_rows(folder, spec.taxonomy, files)
        try:
            values["taxonomy"] = Taxonomy(tuple(map(tuple, rows)))
        except InputError as error:
            raise InputError(f"Column '{name}', taxonomy '{spec.taxonomy}': {error}") from None
        for key in ("other", "missing_as"):
            value = values[key]
            if value is not None and str(value) not in values["taxonomy"].leaves:
                raise InputError(
                    f"Column '{name}': expected '{key}' to be a leaf of its taxonomy, found "
                    f"'{value}'."
                )
    if spec.recode:
        pairs = _read_rows(folder, spec.recode, files)
        if any(len(pair) != 2 for pair in pairs) or len({p[0] for p in pairs}) < len(pairs):
            raise InputError(
                f"Column '{name}', recode '{spec.recode}': expected two cells a row, a value and "
                "its new value, each value once."
            )
        values["recode"] = dict(pairs)
    return Column(name=name, **values)


def _read_rows(folder: Path, name: str, files: dict[str, str]) -> list[list[str]]:
    try:
        raw = (folder / name).read_bytes()
        text = raw.decode("utf-8-sig")
        delimiter = ";" if ";" in text.partition("\n")[0] else ","
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except OSError as error:
        raise InputError(f"Cannot read '{name}', named by the policy: {_reason(error)}.") from None
    except (ValueError, csv.Error):
        raise InputError(f"'{name}', named by the policy, must be CSV in UTF-8.") from None
    files[name] = hashlib.sha256(raw).hexdigest()
    texts = [[unicodedata.normalize("NFC", cell.strip()) for cell in row] for row in rows]
    return [cells for cells in texts if any(cells)]


def _reason(error: OSError) -> str:
    return (error.strerror or "unknown reason").lower()


def _decimals(value: Any) -> Any:
    """Read a mapping's floats as the decimals that they print as, as for TOML."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {key: _decimals(item) for key, item in value.items()}
    return [_decimals(item) for item in value] if isinstance(value, list | tuple) else value


def shown(value: Any) -> Any:
    """Write values of a policy as JSON can hold them, numbers as they were written."""
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if isinstance(value, Decimal):
        if not value.is_finite():
            return str(value)
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, StrEnum):
        return value.value
    return value if isinstance(value, str | int | float | None) else str(value)
