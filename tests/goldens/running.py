"""Release the tables of `cases`, and keep what a change of the code's shape must not change.

The only file of this folder that knows where things of Shoal live: mend its imports when they move.
"""

import hashlib
import json
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

import shoal
from shoal import sample
from shoal.core.serialise import plain
from shoal.hazmat.fakes import SeededNoise
from shoal.io.folders import INTERNAL_SUFFIX
from shoal.methods import REGISTRY
from shoal.pipeline import booking, planning
from shoal.pipeline.manifest import read as read_manifest
from shoal.pipeline.options import OutputOptions
from shoal.publish import protect_file

SOURCE = "people of Maravel"
BUDGET = "budget.sqlite"
QUERIES = "[[query]]\nwhere = 'age >= 40'\n"
RECODING = "cohabiting,married\ndivorced,single\nwidowed,single\n"
DRAWN = {"copula", "maxent", "auto", "privtree", "dp-kdtree", "dp-quadtree"}
"""Methods whose rows are drawn from a model, and may differ in the last bits of another machine."""
CLAIM = ("guarantee", "parameters", "status", "release_form")
CHECK = ("guarantee", "passed", "achieved")


def machine() -> dict[str, str]:
    """Return what the last bits of a floating-point number may depend on."""
    return {
        "cpu": llvmlite.binding.get_host_cpu_name(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in ("numpy", "numba", "polars", "scikit-learn")},
    }


def forms() -> dict[str, list[str]]:
    """Return every registered method, with its release forms."""
    return {
        name: [form.value for form in method.forms.offered] for name, method in REGISTRY.items()
    }


def defaults(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a method with those that a policy need not say."""
    fields = REGISTRY[method].parameters.model_fields.items()
    known = {key: plain(field.get_default()) for key, field in fields if not field.is_required()}
    return {key: value for key, value in known.items() if value is not None} | parameters


@cache
def table(name: str, rows: int) -> pl.DataFrame:
    """Return an invented table.

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


def run(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Release a case in an empty folder, and return what is kept of it."""
    place(folder)
    frame = table(*case["table"]).select(case["columns"])
    with chdir(folder):
        policy = dated(case["policy"])
        if case.get("granted"):
            booking.open_budget(Path(BUDGET), SOURCE, case["granted"])
        noise = None if case["seed"] is None else SeededNoise(case["seed"])
        figures: Any = None
        if case.get("file"):
            frame.write_csv("people.csv", separator=";")
            reading = replace(shoal.load_policy(policy).reading, delimiter=";", decimal=".")
            done = protect_file.protect(
                Path("people.csv"),
                replace(shoal.load_policy(policy), reading=reading),
                Path("out"),
                output=OutputOptions(file_format="csv"),
                noise=noise,
            )
            release, manifest = done.release, read_manifest(Path("out"))
            figures = json.loads(Path(f"out{INTERNAL_SUFFIX}/figures.json").read_text("utf-8"))
        else:
            release = shoal.protect(frame, policy, noise=noise)
            manifest = release.manifest
            if case.get("evaluated"):
                evaluation = shoal.evaluate(frame, release.data, policy)
                figures = {
                    f"{figure.metric}: {figure.subject}": [
                        plain(figure.value),
                        plain(figure.control),
                    ]
                    for figure in evaluation.figures
                }
        manifest = manifest.as_values()
        planned = planning.with_rows(planning.plan(policy), manifest["rows"])
        seeded = noise is not None
        return {
            "tables": {
                name: facts(frame, seeded=seeded)
                for name, frame in {**release.extras, "release": release.data}.items()
            },
            "claims": [kept(claim, CLAIM) for claim in manifest["claims"]],
            "planned": [kept(plain(claim), CLAIM) for claim in planned.claims],
            "checks": sorted(
                (kept(check, CHECK[: 3 if seeded else 2]) for check in manifest["checks"]),
                key=lambda check: json.dumps(check, sort_keys=True),
            ),
            "draws": sorted(json.dumps(draw, sort_keys=True) for draw in manifest["draws"]),
            "losses": manifest["privacy_losses"],
            "figures": None if figures is None or not seeded else rounded(figures),
        }


def facts(frame: pl.DataFrame, *, seeded: bool) -> dict[str, Any]:
    """Return names and rows of a released table, and the digest of its bytes if it is seeded."""
    digest = hashlib.sha256(frame.write_csv().encode()).hexdigest() if seeded else None
    return {"columns": frame.columns, "rows": frame.height, "sha256": digest}


def kept(fields: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Keep some fields, those that are no sentences."""
    return {name: fields[name] for name in names if name in fields}


def rounded(value: Any) -> Any:
    """Round numbers to six digits, and leave out sentences."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items() if key not in PROSE}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


PROSE = {"again", "created", "exposed", "findings", "how", "note", "seconds", "sentence",
         "sentences", "skipped"}  # fmt: skip
"""Fields of figures that people read, or that differ from run to run."""


def place(folder: Path) -> None:
    """Put beside the policy the files that policies of the cases name."""
    for name in ("region.csv", "condition.csv", "occupation.csv"):
        shutil.copyfile(sample.folder() / name, folder / name)
    (folder / "marital.csv").write_text(RECODING, encoding="utf-8")
    (folder / "queries.toml").write_text(QUERIES, encoding="utf-8")


def dated(value: Any) -> Any:
    """Read texts such as `@1935-01-31` as dates, which JSON lacks."""
    if isinstance(value, dict):
        return {key: dated(part) for key, part in value.items()}
    if isinstance(value, list):
        return [dated(part) for part in value]
    return date.fromisoformat(value[1:]) if isinstance(value, str) and value[:1] == "@" else value
