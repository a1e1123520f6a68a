"""Tables, and how the cells of a release are read: from the files alone, by code that shares none
of ours.
"""

import csv
import json
import re
import tomllib
from itertools import combinations, pairwise

import numpy as np
import polars as pl

import shoal

METHODS = {
    "mdav": 'method = "mdav"\nk = 4',
    "mondrian": 'method = "mondrian"\nk = 4',
    "full-domain": 'method = "full-domain"\nk = 4\nrecord_suppression = 0.05',
    "auto": 'method = "auto"\nepsilon = 2',
    "laplace": 'method = "laplace"\nepsilon = 2',
}


class Cells:
    """A column of one table: for each row its mass over the bins, the last for missing cells."""

    def __init__(self, spans, bins):
        self.mass = np.zeros((len(spans), bins + 1))
        for row, span in enumerate(spans):
            if span is None:
                self.mass[row, -1] = 1
            else:
                for at, share in span:
                    self.mass[row, at] += share


def number_span(low, high, edges):
    """Shares of an interval in bins that begin at their edges; a point lies in one bin."""
    ends = [-np.inf, *edges, np.inf]
    if low == high:
        return [(int(np.searchsorted(edges, low, side="right")), 1.0)]
    shares = [
        (at, max(min(high, b) - max(low, a), 0) / (high - low))
        for at, (a, b) in enumerate(pairwise(ends))
    ]
    return [(at, share) for at, share in shares if share > 0]


class Column:
    """What the files say about a column."""

    def __init__(self, name, stated, folder, original):
        self.name, self.kind = name, stated["kind"]
        self.numeric = self.kind == "numeric"
        came = original[name]
        if self.numeric:
            self.before = [None if v is None else float(v) for v in came]
            present = np.array([v for v in self.before if v is not None])
            quantiles = np.quantile(present, np.arange(1, 16) / 16, method="higher")
            self.edges = [e for e in sorted(set(quantiles)) if e > present.min()]
            self.bins = len(self.edges) + 1
            self.whole = bool((present == np.rint(present)).all())
            bounds = stated.get("bounds")
            low, high = bounds or (present.min(), present.max())
            after = float(high) + 1 if self.whole else np.nextafter(float(high), np.inf)
            self.domain = (float(low), after)
            return
        self.before = [None if v is None else str(v) for v in came]
        self.nodes = {}
        if "hierarchy" in stated:
            with (folder / stated["hierarchy"]).open(encoding="utf-8") as file:
                paths = [row for row in csv.reader(file) if row]
            self.categories = sorted_by_branch(paths)
            for path in paths:
                for node in path[1:]:
                    self.nodes.setdefault(node, set()).add(path[0])
        else:
            self.categories = stated.get("categories") or sorted(
                {v for v in self.before if v is not None}
            )
        known = set(self.categories)
        self.categories = [
            *self.categories,
            *sorted({v for v in self.before if v is not None and v not in known}),
        ]
        self.bins = len(self.categories)

    def span_before(self, value):
        if value is None:
            return None
        if self.numeric:
            return number_span(value, value, self.edges)
        return [(self.categories.index(value), 1.0)]

    def box(self, cell):
        """The ends of a released number, or None where it is missing."""
        if cell is None or (isinstance(cell, float) and np.isnan(cell)):
            return None
        if isinstance(cell, str) and set(cell) == {"*"}:
            return self.domain
        if not isinstance(cell, str):
            return float(cell), float(cell)
        match = re.fullmatch(r"([\[(])([^,]+), ([^,]+)([\])])", cell)
        if match is None:
            return float(cell), float(cell)
        low, high = float(match[2]), float(match[3])
        assert match[1] == "["
        if match[4] == "]":
            high = high + 1 if self.whole else np.nextafter(high, np.inf)
        low, high = max(low, self.domain[0]), min(high, self.domain[1])
        return (low, low) if self.whole and high - low == 1 else (low, high)

    def leaves(self, cell):
        """The categories that a released cell stands for."""
        if cell in self.categories:
            return [cell]
        if cell in self.nodes:
            return sorted(self.nodes[cell])
        if set(cell) == {"*"}:
            return self.categories
        match = re.fullmatch(r"\[(.+), (.+)\]", cell)
        if match and match[1] in self.categories:
            first, last = (self.categories.index(match[at]) for at in (1, 2))
            return self.categories[first : last + 1]
        return re.split(r", |\|", cell.strip("{}"))

    def span_after(self, cell):
        if self.numeric:
            box = self.box(cell)
            return None if box is None else number_span(*box, self.edges)
        if cell is None:
            return None
        leaves = self.leaves(str(cell))
        at = sorted(self.categories.index(leaf) for leaf in leaves)
        places = range(at[0], at[-1] + 1)  # a set counts as all between its members
        return [(at, 1 / len(places)) for at in places]

    def middle(self, cell):
        if cell is None or (isinstance(cell, str) and set(cell) == {"*"}):
            return np.nan
        low, high = self.box(cell)
        return low if low == high else (low + high - (1 if self.whole else 0)) / 2


def sorted_by_branch(paths):
    """Leaves in the order in which branches of a hierarchy first appear, from the root down."""
    first = {}
    for number, path in enumerate(paths):
        for node in path:
            first.setdefault(node, number)
    return [p[0] for p in sorted(paths, key=lambda path: [first[node] for node in path[::-1]])]


def tv(p, q):
    return float(np.abs(p / p.sum() - q / q.sum()).sum() / 2)


class Recomputed:
    """Figures of a release by the definitions of the manual."""

    def __init__(self, folder, out, data):
        self.policy = tomllib.loads((folder / "policy.toml").read_text("utf-8"))
        stated = {
            name: {"role": spec} if isinstance(spec, str) else spec
            for name, spec in self.policy["columns"].items()
        }
        released = pl.read_parquet(next(out.glob("release.*")))
        self.released, self.original = released, data
        self.weight = next(
            (n for n, s in stated.items() if s.get("sampling_weight") and n in released), None
        )
        exact = self.weight and released[self.weight].dtype.is_numeric()
        positive = exact and (released[self.weight].fill_null(-1) >= 0).all()
        self.weight = self.weight if positive else None
        self.columns = [
            Column(name, spec, folder, data)
            for name, spec in stated.items()
            if spec["role"] != "identifier" and name in released.columns and name != self.weight
        ]
        self.keys = [c for c in self.columns if stated[c.name]["role"] == "quasi-identifier"]
        self.w = [
            np.ones(len(side))
            if self.weight is None
            else side[self.weight].to_numpy().astype(float)
            for side in (data, released)
        ]
        self.mass = {
            c.name: (
                Cells(list(map(c.span_before, c.before)), c.bins).mass,
                Cells(list(map(c.span_after, released[c.name])), c.bins).mass,
            )
            for c in self.columns
        }

    def one_way(self, name):
        return [w @ mass for w, mass in zip(self.w, self.mass[name], strict=True)]

    def two_way(self, a, b):
        return [
            (x * w[:, None]).T @ y
            for w, x, y in zip(self.w, self.mass[a], self.mass[b], strict=True)
        ]

    def numbers(self, column):
        before = np.array([np.nan if v is None else v for v in column.before])
        return before, np.array([column.middle(cell) for cell in self.released[column.name]])

    def figures(self):
        made = {}
        for c in self.columns:
            made["total variation", c.name] = tv(*self.one_way(c.name))
        for a, b in combinations(self.columns, 2):
            made["total variation of pairs", f"{a.name} x {b.name}"] = tv(
                *self.two_way(a.name, b.name)
            )
        numeric = [c for c in self.columns if c.numeric]
        for c in numeric:
            x, y = (side[~np.isnan(side)] for side in self.numbers(c))
            if not y.size:
                continue
            made["mean", c.name] = abs(y.mean() - x.mean()) / x.std(ddof=1)
            made["variance", c.name] = abs(np.log(y.var(ddof=1) / x.var(ddof=1)))
            x_, y_ = np.sort(np.repeat(x, len(y))), np.sort(np.repeat(y, len(x)))
            made["rank-matched SSE / SST", c.name] = ((x_ - y_) ** 2).mean() / x.var()
        for group in (self.policy["evaluate"]["groups"],):
            own = next(c for c in self.columns if c.name == group)
            for other in self.columns:
                if other is own:
                    continue
                before, after = self.two_way(group, other.name)
                for code, category in enumerate(own.categories):
                    if category in own.before:
                        name = f"{category}: {other.name}"
                        p, q = before[code], after[code]
                        made["loss by group", name] = tv(p, q) if q.sum() else 1.0
        rows = self.released.select([c.name for c in self.keys])
        sizes = rows.group_by(rows.columns).len()["len"].to_numpy()
        made["average class size", "the table"] = sizes.mean()
        rule = self.policy["evaluate"]["rules"][0]
        left, right = rule.split(" <= ")
        columns = {c.name: c for c in self.columns}
        both = [self.numbers(columns[name])[1] for name in (left, right)]
        there = ~np.isnan(both[0]) & ~np.isnan(both[1])
        made["edit rules", rule] = (both[0] > both[1])[there].mean()
        return made


def generated(n=500):
    """A table with missing cells, spaces in cells, weights and a hierarchy."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 80, n)
    income = np.round(rng.lognormal(10, 0.6, n))
    frame = pl.DataFrame({
        "age": age,
        "sex": rng.choice(["f", "m"], n),
        "town": rng.choice(["Aa", "Bb", "Cc", "Dd"], n),
        "job": rng.choice(["cook ", "nurse", "clerk"], n),
        "income": income,
        "tax": np.round(income * 0.2),
        "weight": rng.integers(1, 9, n) / 2,
    })  # fmt: skip
    for name, share in (("job", 0.1), ("income", 0.2), ("sex", 0.03)):
        gone = pl.Series(rng.random(n) < share)
        frame = frame.with_columns(pl.when(~gone).then(pl.col(name)).alias(name))
    return frame


GENERATED = """
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
sex = { role = "quasi-identifier", kind = "nominal", categories = ["f", "m"] }
town = { role = "quasi-identifier", kind = "nominal", hierarchy = "town.csv" }
job = { role = "confidential", kind = "nominal", categories = ["cook ", "nurse", "clerk"] }
income = { role = "confidential", kind = "numeric", bounds = [0, 200000] }
tax = { role = "confidential", kind = "numeric", bounds = [0, 40000] }

[columns.weight]
role = "other"
kind = "numeric"
bounds = [0, 10]
sampling_weight = true
keep_missing = false

[evaluate]
rules = ["tax <= income"]
groups = "sex"
"""
TOWN = "Aa,north,all\nBb,north,all\nCc,south,all\nDd,south,all\n"


def sample(folder, _reference):
    people = shoal.sample.load().head(500)
    for path in shoal.sample.folder().glob("*.csv"):
        (folder / path.name).write_bytes(path.read_bytes())
    stated = (shoal.sample.folder() / "people.toml").read_text("utf-8")
    columns = stated[stated.index("[columns]") : stated.index("[protect]")]
    return people, columns + '\n[evaluate]\nrules = ["tax <= income"]\ngroups = "sex"\n'


def made(folder, _reference):
    (folder / "town.csv").write_text(TOWN, "utf-8")
    return generated(), GENERATED


ADULT = """
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 100] }
sex = { role = "quasi-identifier", kind = "nominal", categories = ["Female", "Male"] }
race = { role = "quasi-identifier", kind = "nominal", categories = RACES }
hours = { role = "confidential", kind = "numeric", bounds = [0, 168] }
years = { role = "confidential", kind = "numeric", bounds = [0, 20] }

[evaluate]
rules = ["years <= hours"]
groups = "sex"
"""


def adult(_folder, reference):
    names = {"hours-per-week": "hours", "education-num": "years"}
    frame = reference("adult").rename(names).head(500)
    frame = frame.select("age", "sex", "race", *names.values())
    races = sorted(frame["race"].unique())
    return frame, ADULT.replace("RACES", json.dumps(races))
