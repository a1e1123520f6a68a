"""What leaves an epsilon release, and neighbouring tables to hold it against."""

import json
import re
from datetime import date

import pandas as pd
import polars as pl
from tests import workbook

from shoal.core import DifferentialPrivacy, Status
from shoal.errors import InputError
from shoal.hazmat.fakes import SeededNoise
from shoal.methods import REGISTRY
from shoal.pipeline import planning

ROWS = 24
LEVELS = ["a", "b", "c"]
LONG = ["10000000000000001", "20000000000000005", "30000000000000007"]
COLUMNS = {
    "name": "identifier",
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]},
    "born": {
        "role": "quasi-identifier", "kind": "date",
        "bounds": [date(1900, 1, 1), date(2000, 1, 1)],
    },
    "town": {"role": "quasi-identifier", "kind": "nominal", "categories": LEVELS},
    "code": {"role": "confidential", "kind": "nominal", "categories": [*LONG, "rest"],
             "other": "rest"},
    "batch": {"role": "other", "kind": "numeric", "public": True},
}  # fmt: skip
"""A column of each sort; codes are whole numbers beyond what a float holds."""

STRANGE = {
    "age": [None, 2.5, "old; very, old", True, 10**400, float("nan"), "1,5", b"x"],
    "born": [None, "yesterday", 7, date(1800, 1, 1), pd.NaT],
    "town": [None, "ü\u202e", "a ", 3, 2.5, "=1+1", ["a"]],
    "code": [None, 1, "10000000000000001", 0.5, "x" * 300],
}
"""Cells of the one record that differs."""


class Replay(SeededNoise):
    """Noise that gives the answers of its first run again, whatever is asked about.

    A neighbouring table must ask questions of the same shape at the same scale in the same order:
    otherwise what is asked would tell of the table.
    """

    def __init__(self):
        super().__init__(7)
        self.kept, self.place = [], None
        self.begin()

    def begin(self):
        """Start a run; from the second on, answers are given again."""
        super().__init__(7)
        self.place = 0 if self.kept else None

    def _again(self, terms, answer):
        if self.place is None:
            self.kept.append((terms, answer()))
            return self.kept[-1][1]
        asked, given = self.kept[self.place]
        assert asked == terms, "a neighbour asks another question"
        self.place += 1
        return given

    def _laplace(self, values, scale):
        draw = super()._laplace
        return self._again(("laplace", values.shape, scale), lambda: draw(values, scale))

    def _choose_many(self, scores, scale):
        draw = super()._choose_many
        return self._again(("choose", scores.shape, scale), lambda: draw(scores, scale))

    def _respond(self, codes, categories, epsilon):
        draw = super()._respond
        terms = ("respond", codes.shape, categories, epsilon)
        return self._again(terms, lambda: draw(codes, categories, epsilon))

    def _uniform(self, below, size):
        draw = super()._uniform
        return self._again(("uniform", below, size), lambda: draw(below, size))


READING = {"delimiter": ",", "decimal": ".", "date_format": "yyyy-mm-dd", "rows": ROWS}


def policy(name, form):
    """A policy for a method in a release form, or nothing where that has no proved epsilon."""
    method = REGISTRY[name]
    columns = dict(COLUMNS)
    if name != "public-laplace":
        columns["batch"] = "identifier"
    protect = {"method": name, **method.example.parameters, "release_form": form.value}
    if form.value == "tree":
        protect["output"] = "tree"
    content = {"version": 1, "columns": columns, "reading": READING, "protect": protect}
    try:
        planned = planning.plan(content)
        planned = planning.with_rows(planned, ROWS)
    except InputError:
        return None
    proved = any(
        isinstance(claim.guarantee, DifferentialPrivacy) and claim.status is Status.PROVED
        for claim in planned.claims
    )
    return (content, set(method.clamps(planned.setting))) if proved else None


PROVED = [
    (name, form)
    for name, method in REGISTRY.items()
    if method.noisy
    for form in method.forms.offered
    if policy(name, form)
]
"""Every method and release form with a proved epsilon."""


def people():
    """A table in which every cell fits, as lists of Python's own values."""
    return {
        "name": [f"person {i}" for i in range(ROWS)],
        "age": [(7 * i) % 90 for i in range(ROWS)],
        "born": [date(1920 + 3 * i, 1 + i % 12, 1) for i in range(ROWS)],
        "town": [LEVELS[i % 3] for i in range(ROWS)],
        "code": [int(LONG[i % 3]) for i in range(ROWS)],
        "batch": [i % 2 for i in range(ROWS)],
    }


def neighbour(number, changeable):
    """The same table with another last record, in the columns that may differ."""
    cells = people()
    for name in changeable:
        cells[name][-1] = STRANGE[name][number % len(STRANGE[name])]
    cells["name"][-1] = "another"
    return cells


NEIGHBOURS = max(map(len, STRANGE.values()))


def as_pandas(cells):
    """As pandas builds it: types follow the cells."""
    return pd.DataFrame({name: pd.Series(values) for name, values in cells.items()})


def as_polars(cells):
    """As Polars builds it, where it can: what it cannot hold is missing."""

    def held(cell):
        odd = isinstance(cell, bytes | list) or cell is pd.NaT
        return None if odd or (isinstance(cell, int) and cell > 2**63) else cell

    return pl.DataFrame(
        [pl.Series(name, map(held, values), strict=False) for name, values in cells.items()]
    )


def as_csv(cells, path):
    """Write all cells as texts, quoted where need be."""
    texts = {
        name: ["" if v is None or v is pd.NaT else str(v) for v in values]
        for name, values in cells.items()
    }
    pl.DataFrame(texts, schema=dict.fromkeys(texts, pl.String)).write_csv(path)


def as_excel(cells, path):
    """Write numbers, texts, days and truth values as such, and anything else as text."""
    plain = (str, int, float, bool, date)
    rows = zip(*cells.values(), strict=True)
    workbook.write(path, {"people": [list(cells), *(
        [None if v is None or v is pd.NaT or v != v else v if isinstance(v, plain) else str(v)  # noqa: PLR0124
         for v in row]
        for row in rows
    )]})  # fmt: skip


def described(frame):
    """Everything a returned table shows: type, columns, types, index, attributes, cells."""
    if isinstance(frame, pd.DataFrame):
        return (
            "pandas", [(n, str(d)) for n, d in frame.dtypes.items()], repr(frame.index),
            frame.attrs,
            [repr(list(c.array)) for _, c in frame.items()],
            [list(getattr(c.dtype, "categories", ())) for _, c in frame.items()],
        )  # fmt: skip
    if isinstance(frame, pl.DataFrame):
        return "polars", frame.schema, frame.rows()
    return "arrow", str(frame.schema), frame.schema.metadata, frame.to_pylist()


def returned(release):
    """Everything that `shoal.protect` hands back."""
    manifest = {**release.manifest.as_values(), "created": ""}
    return (
        described(release.data),
        json.dumps(manifest, sort_keys=True),
        repr(release),
        repr(release.claims),
        repr(release.checks),
        repr(release.privacy_losses),
        json.dumps(release.labels, sort_keys=True),
        {name: described(extra) for name, extra in release.extras.items()},
    )


def published(out):
    """Every byte of a public folder but for the time of day, and the names around it."""
    created = json.loads((out / "manifest.json").read_text())["created"]
    found = {}
    for path in sorted(out.rglob("*")):
        if path.is_file():
            raw = path.read_bytes().replace(created.encode(), b"")
            if path.suffix == ".sav":
                raw = raw[:92] + raw[109:]  # day and time in the header
            if path.suffix == ".dta":
                raw = re.sub(rb"\d\d \w{3} \d{4} \d\d:\d\d", b"", raw)
            if path.suffix == ".xpt":
                raw = re.sub(rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d", b"", raw)
            if path.name in {
                "manifest.json",
                "report.html",
            }:  # digests of files with a time in them
                raw = re.sub(rb"[0-9a-f]{64}", b"", raw)
            found[path.relative_to(out).as_posix()] = raw
    around = sorted(path.name for path in out.parent.iterdir())
    inside = sorted(path.name for path in out.with_name(out.name + ".internal").iterdir())
    return found, around, inside
