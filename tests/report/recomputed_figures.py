"""Every figure of an evaluation, by the definitions of the manual, from the files alone."""

import hashlib
import json
import re
from itertools import combinations

import numpy as np
import scipy
from tests.report import recompute


def wilson(hits, tried):
    z = scipy.stats.norm.ppf(0.975)
    share = hits / tried
    centre = (hits + z * z / 2) / (tried + z * z)
    half = z / (tried + z * z) * np.sqrt(tried * share * (1 - share) + z * z / 4)
    return share, max(centre - half, 0.0), min(centre + half, 1.0)


def cramer(table):
    """Cramer's V with Bergsma's correction for bias, of a table of two columns."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, (r, c) = table.sum(), table.shape
    if min(r, c) < 2 or n <= 1:
        return 0.0
    chi = scipy.stats.chi2_contingency(table, correction=False).statistic
    square = max(0.0, chi / n - (r - 1) * (c - 1) / (n - 1))
    rows, columns = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    least = min(rows, columns) - 1
    return min(np.sqrt(square / least), 1.0) if least > 0 else 0.0


def risk_of(f, people):
    """E(1 / F | f), by the integral of Benedetti and Franconi."""
    p = min(f / people, 1.0)
    inner = scipy.integrate.quad(lambda t: f * (1 - t) ** (f - 1) / (1 - (1 - p) * t), 0, 1)[0]
    return p / f * inner


class Printed(recompute.Recomputed):
    """What the pages of one release should say."""

    def __init__(self, folder, out, data, method):
        super().__init__(folder, out, data)
        self.folder, self.out, self.method = folder, out, method
        self.in_order = "in order" in method
        self.manifest = json.loads((out / "manifest.json").read_text("utf-8"))
        confidential = out.with_name(out.name + ".internal")
        self.figures_file = json.loads((confidential / "figures.json").read_text("utf-8"))
        measured = self.figures_file["measured"]["figures"]
        self.rows = {(row["metric"], row["subject"]): row for row in measured}
        self.by_name = {column.name: column for column in self.columns}
        self.numeric = [column for column in self.columns if column.numeric]
        self.own = self.figures() | self.moments() | self.coarseness() | self.uniqueness()
        self.own |= self.row_losses() if self.in_order else {}
        self.own |= self.naive_bayes()
        self.asked, self.heads = {}, []
        names = [*self.original.columns, *(v for c in self.columns if not c.numeric
                                           for v in [*c.categories, *c.nodes])]  # fmt: skip
        names += [*self.rows_of_rules(), *(f"{n}" for n in self.subjects())]
        self.known = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))

    def are_groups(self, names):
        """Whether names are those of the groups of people that losses are shown for."""
        return {*names} <= {*self.by_name[self.policy["evaluate"]["groups"]].categories}

    def rows_of_rules(self):
        return self.policy["evaluate"]["rules"]

    def subjects(self):
        """How the columns of an attack are counted."""
        keys = len(self.keys)
        return [f"{keys} columns to {len(self.columns) - keys}", "3 columns", "IL1s",
                "R2", *(str(dtype) for dtype in self.released.dtypes)]  # fmt: skip

    def value(self, metric, subject, part="value"):
        """A figure: ours, or that of the file where `NOT_COMPUTED` says why."""
        if part == "value" and (metric, subject) in self.own:
            return self.own[metric, subject]
        return self.rows[metric, subject][part]

    def moments(self):
        made, numbers = {}, [self.numbers(column) for column in self.numeric]
        for column, sides in zip(self.numeric, numbers, strict=True):
            x, y = (side[~np.isnan(side)] for side in sides)
            if y.size > 1:
                made["signed mean", column.name] = (y.mean() - x.mean()) / x.std(ddof=1)
                made["ratio of variances", column.name] = y.var(ddof=1) / x.var(ddof=1)
        apart = {}
        for (a, (x, y)), (b, (u, v)) in combinations(
            list(zip([c.name for c in self.numeric], numbers, strict=True)), 2
        ):
            sides = [(x, u), (y, v)]
            both = [~np.isnan(one) & ~np.isnan(other) for one, other in sides]
            with np.errstate(invalid="ignore", divide="ignore"):
                before, after = (
                    np.corrcoef(one[kept], other[kept])[0, 1] if kept.sum() > 1 else np.nan
                    for (one, other), kept in zip(sides, both, strict=True)
                )
            apart[f"{a} x {b}"] = after - before
        known = {pair: change for pair, change in apart.items() if np.isfinite(change)}
        if known:
            worst = max(known, key=lambda pair: abs(known[pair]))
            made["correlation", worst] = abs(known[worst])
            made["signed correlation", worst] = known[worst]
        return made

    def starred(self, column):
        return np.array([
            isinstance(cell, str) and set(cell) == {"*"} for cell in self.released[column.name]
        ])  # fmt: skip

    def coarseness(self):
        cells = list(zip(*(self.released[c.name].to_list() for c in self.keys), strict=True))
        sizes = {row: cells.count(row) for row in set(cells)}
        hidden = np.all([self.hidden(c) for c in self.keys], axis=0)
        kept = [row for row, gone in zip(cells, hidden, strict=True) if not gone]
        n, gone = len(cells), int(hidden.sum())
        made = {("discernibility", "the table"): sum(kept.count(r) for r in kept) + n * gone}
        made["classes", "the table"] = len(sizes)
        made["smallest", "the table"] = min(sizes.values())
        for column in self.keys:
            widths = [self.width(column, cell) for cell in self.released[column.name]]
            made["granularity", column.name] = 1 - float(np.average(widths, weights=self.w[1]))
        return made

    def hidden(self, column):
        """Cells that say nothing: a star, and a missing one where the original has none."""
        gone = self.released[column.name].is_null().to_numpy()
        as_value = not column.numeric and any(v is None for v in column.before)
        return self.starred(column) | (gone & (not as_value))

    def width(self, column, cell):
        """The width of a cell in that of its column, from 0 to 1."""
        if column.numeric:
            low, high = column.domain
            box = column.box(cell) or column.domain
            return (min(box[1], high) - max(box[0], low)) / (high - low)
        spare = any(v is None for v in column.before)
        room = column.bins - 1 + spare
        if cell is None:
            return 0.0 if spare else 1.0
        star = set(str(cell)) == {"*"}
        return (column.bins + (spare and star) - 1 if star else len(column.leaves(cell)) - 1) / room

    def uniqueness(self):
        subject = joined([c.name for c in self.keys])
        cells = [self.released[c.name].to_list() for c in self.keys]
        stars = [self.starred(c) for c in self.keys]
        alike = [
            (np.array(own, dtype=object)[:, None] == np.array(own, dtype=object)[None, :])
            | star[:, None] | star[None, :]
            for own, star in zip(cells, stars, strict=True)
        ]  # fmt: skip
        weights = np.maximum(self.w[1], 1.0) if self.weight else np.ones(len(cells[0]))

        def mean_risk(chosen):
            match = np.all([alike[j] for j in chosen], axis=0)
            pairs = set(zip(f := match.sum(axis=1), people := match @ weights, strict=True))
            risks = {pair: risk_of(*pair) for pair in pairs}
            return np.mean([risks[pair] for pair in zip(f, people, strict=True)]), (f == 1).sum()

        every = list(range(len(cells)))
        risk, alone = mean_risk(every)
        came = list(zip(*(c.before for c in self.keys), strict=True))
        counts = {row: came.count(row) for row in set(came)}
        made = {("uniques", subject): alone / len(weights), ("unique rows", subject): int(alone),
                ("unique before", subject): sum(1 for n in counts.values() if n == 1),
                ("individual risk", subject): risk}  # fmt: skip
        for j, column in enumerate(self.keys):
            left = mean_risk([i for i in every if i != j])[0]
            made["contribution to risk", column.name] = risk - left
            made["risk without", column.name] = left
        return made

    def row_losses(self):
        """Losses cell by cell, where row i of both files is about the same person."""
        made, x, y = {}, [], []
        for column in self.columns:
            if column.numeric:
                before, after = self.numbers(column)
                both = ~np.isnan(before) & ~np.isnan(after)
                squares = ((before - after)[both] ** 2).mean()
                made["SSE / SST", column.name] = squares / before[both].var()
                x.append(before)
                y.append(after)
            else:
                pairs = zip(column.before, self.released[column.name], strict=True)
                made["share changed", column.name] = np.mean([a != b for a, b in pairs])
        X, Y = np.array(x), np.array(y)
        made["SSE", "the table"] = np.nansum((X - Y) ** 2)
        made["SAE", "the table"] = np.nansum(np.abs(X - Y))
        scale = np.sqrt(2) * np.nanstd(X, axis=1, ddof=1)
        made["IL1s", "the table"] = np.mean(np.nanmean(np.abs(X - Y), axis=1) / scale)
        near = np.abs(X - Y) <= 0.05 * np.nanstd(Y, axis=1, ddof=1)[:, None]
        gone = np.isnan(X - Y)
        made["interval disclosure", "the numbers"] = ((near | gone).all(axis=0)
                                                      & ~gone.all(axis=0)).mean()  # fmt: skip
        made["record linkage", joined([c.name for c in self.keys])] = self.linked()
        return made

    def linked(self):
        """The share of people whose own row is the nearest; of t nearest it counts 1 / t."""
        spaces = [[], []]
        for column in self.keys:
            if column.numeric:
                x, y = self.numbers(column)
                for space, side in zip(spaces, (x, y), strict=True):
                    space.append(np.nan_to_num((side - np.nanmean(x)) / np.nanstd(x)))
                continue
            for value in [*column.categories, None] if None in column.before else column.categories:
                for space, side in zip(
                    spaces, (column.before, self.released[column.name]), strict=True
                ):
                    space.append(np.sqrt(0.5) * np.array([cell == value for cell in side]))
        apart = scipy.spatial.distance.cdist(*(np.column_stack(space) for space in spaces))
        nearest = apart <= apart.min(axis=1)[:, None] + 1e-9
        return np.mean(np.diag(nearest) / nearest.sum(axis=1))

    def inferred(self, secret):
        """The least and the most people whose secret a nearest row shows, as ties are drawn."""
        apart = np.zeros((len(self.original), len(self.released)))
        for column in self.keys:
            if column is secret:
                continue
            if column.numeric:
                x, _ = self.numbers(column)
                boxes = np.array([column.box(c) or column.domain
                                  for c in self.released[column.name]])  # fmt: skip
                a, b = boxes.T
                scale = max(b.max(), np.nanmax(x)) - min(a.min(), np.nanmin(x))
                away = np.abs(x[:, None] - np.clip(x[:, None], a, b))
                with np.errstate(invalid="ignore", divide="ignore"):
                    inside = ((x[:, None] - a) ** 2 + (b - x[:, None]) ** 2) / (2 * (b - a))
                    gap = np.where(away > 0, np.abs(x[:, None] - (a + b) / 2), inside)
                gap = np.where(a == b, np.abs(x[:, None] - a), gap) / scale
                apart += np.nan_to_num(gap)
            else:
                mass, _, at = self.cells_of(column)
                places = np.array([-1 if place is None else place for place in at])
                apart += np.where(places[:, None] < 0, 0.0, 1 - mass[:, places].T)
        ties = apart <= apart.min(axis=1)[:, None] + 1e-9
        if secret.numeric:
            truth, guess = self.numbers(secret)
            right = np.abs(guess - truth[:, None]) <= 0.05 * np.abs(guess)
            right |= np.isnan(truth)[:, None] & np.isnan(guess)
        else:
            right = np.array([[v == c for c in self.released[secret.name]] for v in secret.before])
        return (ties <= right).all(axis=1).sum(), (ties & right).any(axis=1).sum()

    def naive_bayes(self):
        """The attack of Cormode and others, value by value, with one record of smoothing."""
        secret = next((c for c in self.columns if not c.numeric and self.role(c) == "confidential"),
                      None)  # fmt: skip
        if secret is None:
            return {}
        values = secret.categories
        given = self.released[secret.name].to_list()
        exact = [cell in values for cell in given]
        w = self.w[1]
        totals = np.array([sum(w[i] for i, c in enumerate(given) if exact[i] and c == v)
                           for v in values])  # fmt: skip
        scores = np.zeros((len(secret.before), len(values)))
        with np.errstate(divide="ignore"):
            scores += np.log(totals / totals.sum())
        for column in self.keys:
            places = self.cells_of(column)
            if places is None:
                return {}
            mass, shares, at = places
            table = np.array([
                (w * [exact[i] and c == v for i, c in enumerate(given)]) @ mass for v in values
            ])  # fmt: skip
            chance = np.log((table + shares) / (totals[:, None] + 1))
            for row, cell in enumerate(at):
                if cell is not None:
                    scores[row] += chance[:, cell]
        guesses = scores.argmax(axis=1)
        truth = np.array([-1 if v is None else values.index(v) for v in secret.before])
        known = truth >= 0
        right = (guesses == truth)[known]
        common = np.bincount(truth[known]).max() / known.sum()
        surest = np.exp(scores.max(axis=1) - scipy.special.logsumexp(scores, axis=1))[known]
        first = np.argsort(-surest, kind="stable")[: max(1, int(np.ceil(0.01 * known.sum())))]
        name = secret.name
        return {("naive Bayes", name): right.mean(), ("most common", name): common,
                ("breach increase", name): right.mean() / common - 1,
                ("surest guesses", name): right[first].mean(),
                ("surest people", name): len(first)}  # fmt: skip

    def cuts_numbers(self):
        """Whether a quasi-identifier has so many places that they are cut at quantiles."""
        return any(self.cells_of(column) is None for column in self.keys)

    def cells_of(self, column):
        """Each row's mass over the cells of an axis, the widths of these, and people's cells."""
        released = self.released[column.name]
        if not column.numeric:
            spare = any(v is None for v in column.before)
            bins = column.bins + spare
            mass = np.zeros((len(released), bins))
            for row, cell in enumerate(released):
                if cell is None and spare:
                    mass[row, -1] = 1
                elif cell is None or set(str(cell)) == {"*"}:
                    mass[row] = 1 / bins
                else:
                    for at, share in column.span_after(cell):
                        mass[row, at] = share
            at = [bins - 1 if v is None and spare else None if v is None
                  else column.categories.index(v) for v in column.before]  # fmt: skip
            return mass, np.full(bins, 1 / bins), at
        low, high = column.domain
        boxes = [column.box(cell) or column.domain for cell in released]
        boxes = [tuple(np.clip(box, low, high)) for box in boxes]
        points = np.unique([a for a, b in boxes if a == b])
        ends = [end for a, b in boxes if a != b for end in (a, b)]
        cuts = sorted({c for c in [*ends, *((points[1:] + points[:-1]) / 2)] if low < c < high})
        if len(cuts) >= 256:
            return None
        edges = np.array([low, *cuts, high])
        mass = np.zeros((len(boxes), len(edges) - 1))
        for row, (a, b) in enumerate(boxes):
            if a == b:
                mass[row, min(np.searchsorted(edges, a, side="right") - 1, len(edges) - 2)] = 1
            else:
                inside = np.minimum(edges[1:], b) - np.maximum(edges[:-1], a)
                mass[row] = np.maximum(inside, 0) / (b - a)
        at = [None if v is None else int(np.searchsorted(cuts, v, side="right"))
              for v in column.before]  # fmt: skip
        return mass, np.diff(edges) / (high - low), at

    def quoted(self):
        """Texts that pages repeat from the manifest, and digests and versions of files."""
        given = {name: value for name, value in self.manifest["parameters"].items()
                 if value is not None}  # fmt: skip
        parameters = ", ".join(
            f"{name} = {str(value).lower() if isinstance(value, bool) else value}"
            for name, value in given.items()
        )
        fields = {**self.manifest, "files": {name: facts for name, facts in
                                             self.manifest["files"].items()
                                             if name != "report.html"}}  # fmt: skip
        dumped = json.dumps(fields, sort_keys=True, ensure_ascii=False).encode()
        made = ", ".join(f"{n} {v}" for n, v in self.figures_file["versions"].items())
        digests = {
            hashlib.sha256((self.out / name).read_bytes()).hexdigest()
            for name in self.manifest["files"]
        }
        return texts_of(self.manifest) | digests | {
            parameters, hashlib.sha256(dumped).hexdigest(), f"Made with {made}."}  # fmt: skip

    def workload(self, axes):
        """Our own COUNT queries: their relative errors, and the median share that they count."""
        if axes not in self.asked:
            self.asked[axes] = self.count_errors(axes, np.random.default_rng(41))
        return self.asked[axes]

    def is_text(self, name, text, quoted):
        """Whether what a line says besides its figures has none, but in names that files have."""
        if name.startswith("quoted"):
            return text in quoted
        return not re.search(r"\d", self.known.sub("", text))

    def role(self, column):
        spec = self.policy["columns"][column.name]
        return spec if isinstance(spec, str) else spec["role"]

    def count_errors(self, axes, rng, queries=2000):
        """Relative errors of our own COUNT queries over half of every domain, or of three."""
        columns = [(c, *self.cells_in(c)) for c in self.columns]
        errors, shares = [], []
        while len(errors) < queries:
            chosen = rng.permutation(len(columns))[: axes or len(columns)]
            sides = [np.ones(len(w)) for w in self.w]
            for j in chosen:
                column, low, high, boxes = columns[j]
                cells = high - low if not column.numeric else 64
                taken = (cells + 1) // 2
                first = rng.integers(0, int(cells - taken) + 1)
                step = (high - low) / cells
                a = -np.inf if first == 0 else low + first * step
                b = np.inf if first + taken == cells else low + (first + taken) * step
                sides = [side * share_inside(ends, a, b)
                         for side, ends in zip(sides, boxes, strict=True)]  # fmt: skip
            true, answer = (float(w @ side) for w, side in zip(self.w, sides, strict=True))
            if true > 0:
                errors.append(abs(answer - true) / true)
                shares.append(true / self.w[0].sum())
        return np.sort(errors), np.median(shares)

    def cells_in(self, column):
        """The domain of a column, and the boxes of both tables on it; categories are codes."""
        if column.numeric:
            low, high = column.domain
            before = [(v, v) if v is not None else (low, high) for v in column.before]
            after = [column.box(c) or (low, high) for c in self.released[column.name]]
        else:
            spare = any(v is None for v in column.before)
            low, high = 0, column.bins + spare
            place = {v: at for at, v in enumerate(column.categories)}
            before = [(p, p + 1) for p in (place.get(v, column.bins) for v in column.before)]
            after = []
            for cell in self.released[column.name]:
                if cell is None or set(str(cell)) == {"*"}:
                    after.append((column.bins, high) if cell is None and spare else (low, high))
                else:
                    at = sorted(place[leaf] for leaf in column.leaves(str(cell)))
                    after.append((at[0], at[-1] + 1))
        return low, high, [np.array(side, dtype=float) for side in (before, after)]


def share_inside(ends, low, high):
    """The share of each box between two places; a point is inside or not."""
    a, b = ends.T
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.maximum(np.minimum(b, high) - np.maximum(a, low), 0) / (b - a)
    return np.where(a == b, (a >= low) & (a < high), share)


def joined(names):
    """Names as a sentence has them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def texts_of(value):
    """Every text of a file that pages repeat, such as notes, references and values."""
    if isinstance(value, dict):
        return {text for item in value.items() for one in item for text in texts_of(one)}
    if isinstance(value, list):
        return {text for item in value for text in texts_of(item)}
    return {" ".join(str(value).split())}
