"""Release a case of `before.json`, and keep what a rename must not change.

The only file of this folder that knows where things of Shoal live: mend its imports when they move.
"""

import hashlib
import platform
import shutil
from contextlib import chdir
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding
import polars as pl
from tests.renames.translation import Renames

import shoal
from shoal import sample
from shoal.core.serialise import plain
from shoal.hazmat.fakes import SeededNoise
from shoal.methods import REGISTRY
from shoal.pipeline import booking, planning, protect_file
from shoal.pipeline.manifest import read as read_manifest
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.policy import json_schema as policy_schema

SOURCE = "people of Maravel"
BUDGET = "budget.sqlite"
QUERIES = "[[query]]\nwhere = 'age >= 40'\n"
RECODING = "cohabiting,married\ndivorced,single\nwidowed,single\n"
PROSE = {
    "assumes",
    "basis",
    "counted",
    "invariants",
    "not_claimed",
    "notes",
    "parallel",
    "reasons",
    "reference",
    "scope",
    "target",
    "warnings",
}
"""Fields with sentences for people, or a citation: of these the number is kept."""
PASSING = {"created", "inspections", "looks", "policy_digest", "shoal_version", "time", "versions"}
"""Fields that differ from run to run, or with every word of a policy."""


def machine() -> dict[str, str]:
    """What the last bits of a floating-point number may hang on."""
    return {
        "cpu": llvmlite.binding.get_host_cpu_name(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in ("numpy", "numba", "polars")},
    }


def forms() -> dict[str, list[str]]:
    """Every registered method, with its release forms."""
    return {
        name: [form.value for form in method.forms.offered] for name, method in REGISTRY.items()
    }


def defaults(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a method with those that a policy need not say."""
    fields = REGISTRY[method].parameters.model_fields.items()
    known = {key: plain(one.get_default()) for key, one in fields if not one.is_required()}
    return {key: one for key, one in known.items() if one is not None} | parameters


def words() -> list[str]:
    """Every key and choice of a policy, `path` and `path = choice`, and those of parameters.

    A parameter is `method:key`; a choice, which methods share, is `*:key = choice`.
    """
    schema = policy_schema()
    found = {word for word in _words(schema, schema, "") if not word.startswith("columns.* = ")}
    for name, method in REGISTRY.items():
        own = method.parameters.model_json_schema()
        for word in _words(own, own, ""):
            found.add(f"{'*' if ' = ' in word else name}:{word}")
    return sorted(found)


def _words(schema: dict[str, Any], part: dict[str, Any], at: str) -> set[str]:
    """The words of a part of a JSON schema that lies at a path."""
    if "$ref" in part:
        return _words(schema, schema["$defs"][part["$ref"].rpartition("/")[2]], at)
    found = {f"{at} = {choice}" for choice in part.get("enum", ())}
    for key, below in part.get("properties", {}).items():
        path = f"{at}.{key}".lstrip(".")
        found |= {path} | _words(schema, below, path)
    for kind in ("anyOf", "oneOf"):
        for below in part.get(kind, ()):
            found |= _words(schema, below, at)
    for below, step in ((part.get("items"), ""), (part.get("additionalProperties"), ".*")):
        if isinstance(below, dict):
            found |= _words(schema, below, at + step)
    return found


@cache
def table(name: str, rows: int) -> pl.DataFrame:
    """An invented table.

    `people`: the shipped sample. `texts`: the same as a file in the manner of the continent has it,
    with odd cells. `visits`: one to three rows for each person; `pairs`: two.
    """
    people = sample.load().head(rows).with_row_index()
    if name == "people":
        return people.with_columns(
            born=pl.date(2024 - pl.col("age"), 1 + pl.col("index") % 12, 1 + pl.col("index") % 28)
        )
    if name == "texts":
        days = [date(1940, 1, 1) + timedelta(days=97 * i) for i in range(rows)]
        return people.with_columns(
            pl.Series("born", [day.strftime("%d/%m/%Y") for day in days]),
            income=pl.when(pl.col("index") % 9 == 0)
            .then(pl.lit("-9"))
            .otherwise((pl.col("income") / 8).cast(pl.String).str.replace(".", ",", literal=True)),
            sex=pl.when(pl.col("index") % 11 == 0).then(None).otherwise(pl.col("sex")),
        )
    times = pl.lit(2) if name == "pairs" else 1 + pl.col("index") % 3
    return (
        people.with_columns(year=pl.int_ranges(2023, 2023 + times))
        .explode("year")
        .with_columns(
            pl.col("year").cast(pl.String),
            hours=pl.when(pl.col("index") % 7 == 0).then(None).otherwise(pl.col("hours")),
        )
    )


def place(folder: Path) -> None:
    """Put beside the policy what policies of the cases name."""
    for name in ("region.csv", "condition.csv", "occupation.csv"):
        shutil.copyfile(sample.folder() / name, folder / name)
    (folder / "marital.csv").write_text(RECODING, encoding="utf-8")
    (folder / "queries.toml").write_text(QUERIES, encoding="utf-8")


def run(case: dict[str, Any], renames: Renames, folder: Path) -> dict[str, Any]:
    """Release a case of `before.json` in the words of today.

    Args:
        case: its name, table, policy and so on, in the words of before.
        renames: since then.
        folder: an empty one.

    Returns:
        `tables` (columns, rows, and a digest where a seed made them) and `manifest`.
    """
    place(folder)
    frame = table(*case["table"]).select(case["columns"])
    with chdir(folder):
        policy = dated(renames.policy_of(case["policy"]))
        for column in policy["columns"].values():
            # Since then a missing cell is a value of its own unless the policy says otherwise.
            if isinstance(column, dict) and not {"keep_missing", "missing_as"} & column.keys():
                column.update({"keep_missing": False} if "kind" in column else {})
        if case.get("granted"):
            booking.open_budget(Path(BUDGET), SOURCE, case["granted"])
        noise = None if case["seed"] is None else SeededNoise(case["seed"])
        if case.get("file"):
            frame.write_csv("people.csv", separator=";")
            loaded = shoal.load_policy(policy)
            # Since then an epsilon release of a text file asks how it is written; nothing of that
            # was in the policies of before.
            reading = replace(loaded.reading, delimiter=";", decimal=".")
            done = protect_file.protect(
                Path("people.csv"),
                loaded if loaded.reading.delimiter else replace(loaded, reading=reading),
                Path("out"),
                output=OutputOptions(file_format="csv"),
                evaluation=EvaluationOptions(evaluate=False),
                noise=noise,
            )
            release = done.release
            written = Path("out/release.csv").read_bytes()
            manifest = read_manifest(Path("out")).values
        else:
            release = shoal.protect(frame, policy, noise=noise)
            manifest, written = dict(release.manifest), None
        manifest = plain(manifest)
        kept = kept_of(renames.keys_of(manifest, back=True), seeded=noise is not None)
        planned = planning.with_rows(planning.plan(policy), kept["rows"])
        more = {"claims": plain(planned.claims)}
        if case.get("granted"):
            more["budget"] = plain(booking.budget_facts(Path(BUDGET)))
        found = {name: reduced(renames.part(name, one)) for name, one in more.items()}
        kept["planned"] = {"claims": found.pop("claims")}
        kept |= found
    tables = {name: _csv(data) for name, data in release.extras.items()}
    tables["release"] = written or _csv(release.data)
    return {
        "tables": {
            name: {
                "header": raw.partition(b"\n")[0].decode(),
                "lines": raw.count(b"\n"),
                "sha256": None if noise is None else _digest(raw),
            }
            for name, raw in tables.items()
        },
        "manifest": renames.keys_of(kept),
    }


def _csv(data: pl.DataFrame) -> bytes:
    return data.write_csv().encode()


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def kept_of(manifest: dict[str, Any], *, seeded: bool) -> dict[str, Any]:
    """What is kept of a manifest."""
    kept = reduced(manifest)
    kept["taxonomies"] = {
        name: _digest(repr(rows).encode()) for name, rows in manifest["taxonomies"].items()
    }
    if "files" in manifest:
        kept["files"] = sorted(manifest["files"])
    if not seeded:  # sizes of classes hang on the draws
        open_ = dict.fromkeys(("achieved", "witness", "remarks"))
        kept["checks"] = [check | open_ for check in kept["checks"]]
    return kept


def reduced(value: Any, key: str = "") -> Any:
    """Leave out what passes, and keep of sentences the number."""
    if key in PROSE and isinstance(value, list):
        return f"{len(value)} sentences"
    if key in PROSE and isinstance(value, str):
        return "a text" if " " in value else value  # a target may be a column alone
    if isinstance(value, dict):
        passing = PASSING | ({"source"} if "basis" in value else set())  # a citation
        passing |= {"policy"} if isinstance(value.get("policy"), str) else set()  # a digest
        return {name: reduced(one, name) for name, one in value.items() if name not in passing}
    if isinstance(value, list):
        return [reduced(one) for one in value]
    return value


def dated(value: Any) -> Any:
    """Read texts such as `@1935-01-31` as dates, which JSON lacks."""
    if isinstance(value, dict):
        return {key: dated(one) for key, one in value.items()}
    if isinstance(value, list):
        return [dated(one) for one in value]
    return date.fromisoformat(value[1:]) if isinstance(value, str) and value[:1] == "@" else value
