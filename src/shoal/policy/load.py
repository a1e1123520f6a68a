"""Load a policy file: TOML in, a frozen `Policy` out.

The shape, the columns, their roles and kinds are checked here, by the models of
`shoal.policy.spec`. Methods and their parameters are checked by `shoal.pipeline.planning.plan`,
still before any data is read. Numbers with a point are read as decimals, so 0.1 means one tenth.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shoal.core import (
    BudgetUse,
    Column,
    ConstraintChoices,
    DifferentialPrivacy,
    Discover,
    EvaluationChoices,
    FileReading,
    Guarantee,
    Hierarchy,
    KAnonymity,
    Kind,
    LDiversity,
    Neighbours,
    Policy,
    RiskLimit,
    RiskMeasure,
    Role,
    Schema,
    StochasticTCloseness,
    TCloseness,
)
from shoal.core.constraint_language import parse, write_name
from shoal.errors import InputError
from shoal.hierarchy.files import csv_rows
from shoal.io import dates, text_files
from shoal.policy.drafted import DraftedPolicy
from shoal.policy.misfits import explain
from shoal.policy.sections import BudgetSpec, ConstraintsSpec, RequireSpec
from shoal.policy.spec import ColumnSpec, PolicySpec

PolicySource = Policy | DraftedPolicy | Mapping[str, Any] | str | Path
"""What a policy may be given as: see `load`."""


def load(source: PolicySource) -> Policy:
    """Read and check a policy.

    Args:
        source: a path to a TOML file, the same content as text or as a mapping, what `shoal.draft`
            returned, or a `Policy`, which is returned as it is. A text with several lines is TOML.
            Files that the policy names are looked for beside the policy file, otherwise in the
            working folder.
    """
    if isinstance(source, Policy):
        return source
    if isinstance(source, DraftedPolicy):
        return loads(source.text, where="the drafted policy")
    if isinstance(source, str) and "\n" in source.strip():
        return loads(source)
    if isinstance(source, Mapping):
        content = exact(source)
        text_files.refuse_absurd(content, "policy")
        return _build(content, _Files(Path()), where="policy")
    if not isinstance(source, str | Path):
        raise InputError(
            f"Expected a policy as a path, a mapping or a Policy, found {type(source).__name__}."
        )
    path = Path(source)
    text = text_files.read_text(path, f"the policy '{path}'")
    return loads(text, folder=path.parent, where=path.name)


def loads(text: str, *, folder: Path = Path(), where: str = "policy") -> Policy:
    """Load a policy from TOML text; see `load`."""
    return _build(text_files.parse_toml(text, where), _Files(folder), where=where)


def restore_policy(
    document: Mapping[str, Any],
    hierarchies: Mapping[str, list[list[str]]],
    *,
    seen: Mapping[str, Iterable[str]],
) -> Policy:
    """Rebuild a policy from a manifest, without the files that it names.

    It lacks what the manifest leaves out: the budget file, the context, pairs of a recoding.

    Args:
        document: as `Policy.document`.
        hierarchies: the rows of each column's hierarchy.
        seen: the values of columns in the released table. They stand for categories and leaves
            that were only observed, which a manifest does not show; their order says nothing.

    Raises:
        InputError: it is not a policy.
    """
    stated = dict(document)
    files = stated.pop("files", {})
    columns = stated.get("columns")
    if not isinstance(columns, Mapping) or not isinstance(files, Mapping):
        raise InputError("manifest.json, policy: expected columns, found none.")
    stated["columns"] = {
        name: _publish_column(column, seen.get(name, ())) if isinstance(column, Mapping) else column
        for name, column in columns.items()
    }
    unknown = {
        name: [[leaf, "\0"] for leaf in _stand_ins(column, seen.get(name, ()))]
        for name, column in columns.items()
        if isinstance(column, Mapping) and column.get("observed") is True
    }
    kept = _Files(Path(), dict(files), {**unknown, **hierarchies})
    return _build(exact(stated), kept, where="manifest.json, policy")


Rows = Mapping[str, list[list[str]]]


def self_contained(policy: Policy) -> tuple[dict[str, Any], Rows, Rows]:
    """Return a policy with the contents of all its files: document, hierarchies and recodings.

    The context and the evaluation are left out. It keeps categories that were read off the data,
    and the budget, in which a recoding of another table of the same source is booked too.
    """
    columns, stated = policy.schema.columns, dict(policy.document)
    stated["columns"] = {name: dict(settings) for name, settings in stated["columns"].items()}
    for column in columns:
        settings = stated["columns"][column.name]
        if column.observed and column.categories:
            settings["categories"] = list(column.categories)
        if column.observed and column.recode and not isinstance(settings.get("recode"), str):
            settings["recode"] = dict(column.recode)
        if column.value_labels:
            settings["value_labels"] = dict(column.value_labels)
    trees = {
        column.name: [list(path) for path in column.stated_hierarchy.paths]
        for column in columns
        if column.stated_hierarchy
    }
    if policy.budget is not None:
        used = {**vars(policy.budget), "file": str(policy.budget.file.absolute())}
        stated["budget"] = {key: to_json_value(value) for key, value in used.items() if value}
    pairs = {c.name: [list(pair) for pair in c.recode.items()] for c in columns if c.recode}
    return stated, trees, pairs


def from_self_contained(
    document: Mapping[str, Any], hierarchies: Rows, recodes: Rows, *, where: str
) -> Policy:
    """Rebuild a policy from what `self_contained` returned.

    Raises:
        InputError: it is not a policy.
    """
    stated = dict(document)
    files = stated.pop("files", {})
    kept = _Files(Path(), dict(files), hierarchies, recodes)
    return _build(exact(stated), kept, where=f"{where}, policy")


def _publish_column(column: Mapping[str, Any], seen: Iterable[str]) -> dict[str, Any]:
    """Restore a column of a manifest to the form of a policy file."""
    stated = dict(column)
    leaves = "hierarchy" in stated and stated.get("kind") != Kind.ORDINAL
    if stated.get("observed") is True and not leaves:
        stated["categories"] = _stand_ins(stated, seen)
    return stated


def _stand_ins(column: Mapping[str, Any], seen: Iterable[str]) -> list[str]:
    """Make stand-ins for categories that were copied from the data and not published."""
    named = [column.get(key) for key in ("bottom_code", "top_code", "other", "missing_as")]
    known = dict.fromkeys([*(item for item in named if isinstance(item, str)), *seen])
    return [*known, *(word for word in ("?", "??") if word not in known)]


def json_schema() -> dict[str, Any]:
    """Describe the policy file as a JSON schema, for editors that complete and check TOML."""
    schema = PolicySpec.model_json_schema(mode="validation", by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@dataclass(frozen=True)
class _Files:
    """The files that a policy names: read from a folder, or as kept in a manifest.

    Attributes:
        digests: by name, of those that were read; of a manifest's, all.
        kept: the rows of each column's hierarchy, if they are not to be read.
        recodes: the rows of each column's recoding, beside those.
    """

    folder: Path
    digests: dict[str, str] = field(default_factory=dict)
    kept: Rows | None = None
    recodes: Rows = field(default_factory=dict)

    def rows(self, name: str, column: str, key: str) -> list[list[str]]:
        if self.kept is None:
            return _read_rows(self.folder, name, self.digests)
        # A manifest keeps no pairs of a recoding, and no hierarchy of an identifier.
        if key == "hierarchy":
            return self.kept.get(column, [["?", "??"]])
        return self.recodes.get(column, [])


def _build(content: Mapping[str, Any], files: _Files, *, where: str) -> Policy:
    try:
        spec = PolicySpec.model_validate(content)
    except ValidationError as error:
        raise explain(error, where) from None
    spec = _with_date_format(spec)
    reading = dict(spec.reading)
    missing = tuple(reading.pop("missing"))
    schema = Schema(
        tuple(_column(name, c, missing, files) for name, c in spec.columns.items()),
        spec.one_row_per_person,
    )
    document = _document(spec, files.digests)
    text = json.dumps(document, sort_keys=True, ensure_ascii=False)
    protect, evaluate = spec.protect, spec.evaluate
    queries = files.folder / evaluate.queries if evaluate.queries else None
    return Policy(
        schema=schema,
        method=protect.method,
        parameters=dict(protect.model_extra or {}),
        columns=tuple(protect.columns) if protect.columns else None,
        release_form=protect.release_form,
        document=document,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        required=tuple(_read_requirements(spec.require, schema)),
        reading=FileReading(**reading),
        writing=dict(spec.writing),
        budget=None if spec.budget is None else _budget(spec.budget, files.folder),
        context=dict(spec.context),
        evaluate=EvaluationChoices(
            **{
                **dict(evaluate),
                "rules": tuple(evaluate.rules),
                "queries": queries,
                "query_columns": tuple(evaluate.query_columns),
            }
        ),
        audience=spec.release.audience,
        drafted=_is_unreviewed(spec),
        population=files.folder / spec.require.population if spec.require.population else None,
        accept_constant=tuple(spec.release.accept_constant),
        accept_distinct=tuple(spec.release.accept_distinct),
        pseudonym_key=files.folder / key if (key := spec.release.pseudonym_key) else None,
        constraints=_constraints(spec.constraints, schema),
    )


def _with_date_format(spec: PolicySpec) -> PolicySpec:
    """Give the date format of `[reading]` to date columns that state none."""
    form = spec.reading.date_format
    if form in {None, dates.ISO}:
        return spec
    columns = {
        name: column.model_copy(update={"date_format": form})
        if column.kind is Kind.DATE and column.date_format is None
        else column
        for name, column in spec.columns.items()
    }
    return spec.model_copy(update={"columns": columns})


def _constraints(spec: ConstraintsSpec, schema: Schema) -> ConstraintChoices:
    """Parse the constraints over the released columns, and assign each lookup to its constraint."""
    try:
        rules = tuple(parse(text, schema, spec.lookups) for text in spec.rules)
    except InputError as error:
        raise InputError(f"[constraints] {error}", field=("constraints", "rules")) from None
    used = {(rule.lookup.source, rule.lookup.target) for rule in rules if rule.lookup}
    for source, targets in spec.lookups.items():
        for target in targets:
            if (source, target) not in used:
                raise InputError(
                    f"[constraints.lookups.{source}.{target}] is used by no rule. State "
                    f"'{write_name(source)} determines {write_name(target)}'.",
                    field=("constraints", "lookups", source, target),
                )
    return ConstraintChoices(rules, spec.observed, spec.repair)


def requirements(stated: Mapping[str, Any], schema: Schema, *, where: str) -> tuple[Guarantee, ...]:
    """Parse the guarantees of a separate `[require]` table."""
    try:
        return tuple(_read_requirements(RequireSpec.model_validate(exact(stated)), schema))
    except ValidationError as error:
        raise explain(error, where, "require") from None


def _read_requirements(require: RequireSpec, schema: Schema) -> Iterator[Guarantee]:
    keys = schema.with_role(Role.QUASI_IDENTIFIER)
    if require.k_anonymity:
        yield KAnonymity(require.k_anonymity, keys)
    for entry in require.l_diversity or ():
        c = None if entry.c is None else Fraction(entry.c)
        yield LDiversity(Fraction(entry.l), entry.kind, tuple(entry.column), keys, c)
    for each in require.t_closeness or ():
        yield TCloseness(Fraction(each.t), each.distance, tuple(each.column), keys)
    for drawn in require.stochastic_t_closeness or ():
        yield StochasticTCloseness(float(drawn.t), tuple(drawn.column), keys)
    yield from _read_risk_limits(require, schema)
    if require.differential_privacy:
        columns = tuple(name for name in schema.released if not schema[name].public)
        yield DifferentialPrivacy(
            Fraction(require.differential_privacy),
            Neighbours.CHANGE_ONE,
            columns,
            rows=1 if schema.persons is None else schema.persons.most,
        )


def _read_risk_limits(require: RequireSpec, schema: Schema) -> Iterator[RiskLimit]:
    stated = require.model_dump(by_alias=True)
    for measure in RiskMeasure:
        name = measure.value
        if stated[name] is None:
            continue
        household = schema.column_with_flag("household") if measure.of_households else None
        if measure.of_households and household is None:
            raise InputError(
                f"[require] {name}: expected a column that numbers the households, with "
                "household = true, found none.",
                field=("require", name),
            )
        weight = schema.column_with_flag("sampling_weight") if measure.of_weights else None
        population = require.population if measure.of_population else None
        if measure.of_population and population is None and weight is None:
            raise InputError(
                f"[require] {name}: expected population, a file with the people of the population, "
                "or a column with sampling_weight = true, found neither.",
                field=("require", name),
            )
        yield RiskLimit(
            measure,
            Fraction(stated[name]),
            schema.with_role(Role.QUASI_IDENTIFIER),
            household=household or "",
            weight="" if population else weight or "",
            population=population or "",
        )


def _budget(spec: BudgetSpec, folder: Path) -> BudgetUse:
    return BudgetUse(**{**spec.model_dump(exclude_none=True), "file": folder / spec.file})


def _is_unreviewed(spec: PolicySpec) -> bool:
    """Whether the policy is a draft that nobody has reviewed."""
    return spec.review is not None and None in {spec.review.by, spec.review.date}


def _document(spec: PolicySpec, files: Mapping[str, str]) -> dict[str, Any]:
    """Write the policy as plain values that may be published.

    The context is left out, because it is for the officer, and so are categories that were copied
    from the data, with their labels.
    """
    hidden = {"budget", "context", "evaluate"} | (set() if _is_unreviewed(spec) else {"review"})
    plain = spec.model_dump(by_alias=True, exclude_defaults=True, exclude=hidden)
    released = {**plain.pop("release", {})}
    released.pop("pseudonym_key", None)
    plain |= {"release": released} if released else {}
    if spec.constraints.observed:
        plain.get("constraints", {}).pop("rules", None)
        plain.get("constraints", {}).pop("lookups", None)
    if "review" in plain:
        plain["review"] = {}
    for key in ("sheet", "header_row", "skip", "rows"):  # which concern the original alone
        plain.get("reading", {}).pop(key, None)
    for name, column in spec.columns.items():
        if column.observed:
            plain["columns"][name].pop("categories", None)
            plain["columns"][name].pop("value_labels", None)
            if not isinstance(column.recode, str):
                plain["columns"][name].pop("recode", None)
    document: dict[str, Any] = to_json_value(plain)
    return {**document, "files": dict(files)} if files else document


def _column(name: str, spec: ColumnSpec, missing: tuple[str, ...], files: _Files) -> Column:
    """Build a column, reading the files that it names."""
    values = {field: getattr(spec, field) for field in type(spec).model_fields}
    values["missing"] = tuple(dict.fromkeys((*spec.missing, *missing)))
    values |= _known_domain(spec) | {"breaks": tuple(spec.breaks)}
    if spec.hierarchy:
        rows = files.rows(spec.hierarchy, name, "hierarchy")
        try:
            tree = Hierarchy(tuple(map(tuple, rows)), spec.observed)
            if spec.kind not in {Kind.NOMINAL, None}:
                tree.levels()
        except InputError as error:
            raise InputError(
                f"Column '{name}', hierarchy '{spec.hierarchy}': {error}",
                field=("columns", name, "hierarchy"),
            ) from None
        nominal = spec.kind is Kind.NOMINAL
        values |= {"hierarchy": tree} if nominal else {"hierarchy": None, "level_hierarchy": tree}
    if values["hierarchy"]:
        for key in ("other", "missing_as"):
            value = values[key]
            if value is not None and str(value) not in values["hierarchy"].leaves:
                raise InputError(
                    f"Column '{name}': expected '{key}' to be a leaf of its hierarchy, found "
                    f"'{value}'.",
                    field=("columns", name, key),
                )
    if isinstance(spec.recode, str) and spec.recode:
        pairs = files.rows(spec.recode, name, "recode")
        if any(len(pair) != 2 for pair in pairs) or len({p[0] for p in pairs}) < len(pairs):
            raise InputError(
                f"Column '{name}', recode '{spec.recode}': expected two cells per row, a value "
                "and its new value, and each value once.",
                field=("columns", name, "recode"),
            )
        values["recode"] = dict(pairs)
    return Column(name=name, **values)


def _known_domain(spec: ColumnSpec) -> dict[str, Any]:
    """Return the stated categories, or what is to be discovered; unsure kinds count as nominal."""
    if not spec.discover:
        return {"categories": tuple(spec.categories)} if spec.categories else {}
    unsure = isinstance(spec.kind, Discover)
    open_domain = {"discover": spec.discover, "categories": None, "bounds": None}
    return open_domain | ({"kind": Kind.NOMINAL} if unsure else {})


def _read_rows(folder: Path, name: str, files: dict[str, str]) -> list[list[str]]:
    what = f"'{name}', named by the policy,"
    raw = text_files.read_bytes(folder / name, what.removesuffix(","))
    rows = csv_rows(raw, what)
    files[name] = hashlib.sha256(raw).hexdigest()
    return rows


def exact(value: Any) -> Any:
    """Convert floats in a mapping to the decimals that they print as, as for TOML."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {key: exact(item) for key, item in value.items()}
    return [exact(item) for item in value] if isinstance(value, list | tuple) else value


def to_json_value(value: Any) -> Any:
    """Convert a policy's value for JSON, numbers as they were written."""
    if isinstance(value, Mapping):
        return {key: to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    if isinstance(value, Decimal):
        if not value.is_finite():
            return str(value)
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, StrEnum):
        return value.value
    return value if isinstance(value, str | int | float | None) else str(value)
