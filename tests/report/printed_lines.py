"""The lines of reports and terminal that have a figure, and what the files say each of them is."""

import hashlib
import re
from fractions import Fraction

import numpy as np
import polars as pl
from tests.report import printed
from tests.report.recomputed_figures import cramer, joined, wilson


def weighted(own):
    return ", weighted by the sampling weights," if own.weight else ""


def names_of(text):
    return [name.strip("'") for name in re.split(r", | and | x ", text)]


def distance(own, g):
    names = names_of(g["of"].removesuffix(weighted(own)))
    metric = "total variation" if len(names) == 1 else "total variation of pairs"
    return {"points": 100 * own.value(metric, " x ".join(names))}


def group_distance(own, g):
    column = g["of"].removesuffix(weighted(own)).strip("'")
    group = own.by_name[g["group"]]
    return {"people": group.before.count(g["value"]),
            "points": 100 * own.value("loss by group", f"{g['value']}: {column}")}  # fmt: skip


def loss_of(own, g):
    """A loss in the table of columns; where rows are shuffled, no file says whose cell is whose."""
    name, metric = g["column"], g["metric"]
    column = own.by_name.get(name)
    stated = next(c for c in own.figures_file["columns"] if c["name"] == name)
    assert stated["metric"] == metric
    if column is None:  # the sampling weights are no axis, and no figure of the evaluation
        return stated["loss"]
    if metric.endswith("SSE / SST"):
        least = own.own.get(("rank-matched SSE / SST", name), 0.0)
        exact = own.own.get((metric, name))
        x, y = own.numbers(column)
        complete = not (np.isnan(x).any() or np.isnan(y).any()) and len(x) == len(y)
        assert exact is not None or not complete or stated["loss"] >= least - 1e-9
        return stated["loss"] if exact is None else exact
    if metric == "total variation":
        return own.own["total variation", name]
    sides = (own.original[name], own.released[name])
    texts = [side.cast(pl.String).to_list() for side in sides]
    if own.in_order:
        return np.mean([a != b for a, b in zip(*texts, strict=True)])
    common = sum(min(texts[0].count(t), texts[1].count(t)) for t in {*texts[0]})
    assert stated["loss"] >= 1 - common / len(texts[1]) - 1e-9
    return stated["loss"]


def row_of(own, g):
    """A row of a table of measures: the figure, its interval, and the sentence."""
    row, made = own.rows[g["metric"], g["subject"]], own.value(g["metric"], g["subject"])
    return {"value": row["value"] if made is None else made, "low": row["low"],
            "high": row["high"]}  # fmt: skip


def rate(own, g):
    """Shares of tries that succeed: figure and interval, of a hundred."""
    metric = next(m for m in METRICS_OF_RATES if g["of"].startswith(m))
    subject = g["of"].removeprefix(metric).lstrip(": ")
    found = rates_of(own, metric, subject)
    if match := re.search(r"succeeds in ([\d.]+) of 100 tries more", g.get("sentence", "")):
        over = found["value"][0] - found["blind"][0]
        assert printed.is_printed(match[1], over, places=hundred(over / 100))
    return found


METRICS_OF_RATES = ("singling out", "linkability", "record linkage",
                    "naive Bayes", "gradient boosting", "inference")  # fmt: skip


def rates_of(own, metric, subject):
    row = own.rows[metric, subject]
    found = {"value": own.value(metric, subject), "low": row["low"], "high": row["high"],
             "blind": row["baseline"], "from": row["baseline_low"],
             "to": row["baseline_high"]}  # fmt: skip
    if (metric, subject) in own.own and metric == "naive Bayes":
        people = sum(v is not None for v in own.by_name[subject].before)
        names = ("value", "low", "high")
        found |= dict(zip(names, wilson(round(found["value"] * people), people), strict=True))
        common = round(own.own["most common", subject] * people)
        found |= dict(zip(("blind", "from", "to"), wilson(common, people), strict=True))
    found = {name: 0.0 if one is None else one for name, one in found.items()}
    if row["baseline_low"] is None:
        found["from"] = found["to"] = found["blind"]
    return {name: (100 * value, 1 if name in {"low", "high", "from", "to"} else hundred(value))
            for name, value in found.items()}  # fmt: skip


def hundred(share):
    """Digits of a rate among 100: whole from 10 on."""
    return 0 if 100 * share >= 10 else 1


def inside_rate(own, g):
    """A sentence of an attack: the row of `figures.json` that has this very sentence."""
    key = next(key for key, row in own.rows.items() if row["sentence"] == g["line"])
    found = rates_of(own, *key)
    for name, ends in (("between", ("low", "high")), ("also", ("from", "to"))):
        if g.get(name):
            shown = re.fullmatch(r" \(between (\d+) and (\d+)\)", g[name]).groups()
            assert all(
                printed.is_printed(text, found[end][0], places=0)
                for text, end in zip(shown, ends, strict=True)
            )
    return found


def unique(own, _g):
    subject = joined([c.name for c in own.keys])
    return {"after": own.own["unique rows", subject], "rows": len(own.released),
            "before": own.own["unique before", subject], "came": len(own.original)}  # fmt: skip


def homogeneous(own, name):
    """Classes, and rows in them, in which all share a confidential value."""
    keys = [c.name for c in own.keys]
    sizes = own.released.group_by(keys).agg(pl.len(), pl.col(name).n_unique().alias("values"))
    alike = sizes.filter((pl.col("values") == 1) & (pl.col("len") >= 1))
    return {"classes": alike.height, "rows": alike["len"].sum()}


def picture_of(own, g):
    """A column in both tables: how much moved, the ends of its axis, the missing cells."""
    found = own.one_way(g["column"])
    gone = [masses[-1] / masses.sum() for masses in found]
    texts = g["texts"].split(" | ")
    moved = 100 * own.own["total variation", g["column"]]
    assert ("unchanged" in g["how"]) == (moved < 1e-7)
    for text in texts:
        if match := re.fullmatch(r"missing ([\d.]+)%(?: → ([\d.]+)%)?", text):
            shown = [match[1], match[2] or match[1]]
            assert all(printed.is_printed(a, 100 * b) for a, b in zip(shown, gone, strict=True))
    assert any(text.startswith("missing") for text in texts) == any(share > 0 for share in gone)
    if own.by_name[g["column"]].numeric:
        ticks = [float(t.replace(",", "")) for t in texts if re.fullmatch(r"-?[\d,.]+", t)]
        values = np.concatenate([own.numbers(own.by_name[g["column"]])[s] for s in (0, 1)])
        inside = (values >= ticks[0]) & (values <= ticks[-1])
        assert len(ticks) == 2
        assert inside.sum() >= 0.95 * np.isfinite(values).sum()
    return {"moved": moved} if "moved" in g["how"] else {}


def map_of(own, g):
    pair = own.two_way(g["across"], g["up"])
    before, after = (cramer(np.maximum(table, 0)) for table in pair)
    return {"moved": 100 * tv_of(own, g["up"], g["across"]), "was": (before, 2), "is": (after, 2)}


def tv_of(own, a, b):
    pairs = own.own
    return pairs.get(("total variation of pairs", f"{a} x {b}"),
                     pairs.get(("total variation of pairs", f"{b} x {a}")))  # fmt: skip


def matrix(own, g):
    """Association of each two columns in hundredths: below the diagonal before, above it after."""
    texts = g["texts"].split(" | ")
    stated = own.figures_file["pictures"]["association"]["names"]
    assert stated == [c.name for c in own.columns]
    cells = [text for text in texts if re.fullmatch(r"\d+", text)]
    count = len(stated)
    expected = [
        100 * cramer(np.maximum(own.two_way(stated[i], stated[j])[int(j > i)], 0))
        for i in range(count) for j in range(count) if i != j
    ]  # fmt: skip
    assert len(cells) == len(expected)
    for cell, value in zip(cells, expected, strict=True):
        assert printed.is_printed(cell, value, places=0), (cell, value)
    return {}


def forms(own, g):
    """How cells of a column are written, counted one by one."""
    name = g["column"]
    column, cells = own.by_name.get(name), own.released[name].to_list()
    found = dict.fromkeys(("one", "interval", "set", "node", "star", "gone"), 0)
    for cell in cells:
        text = "" if cell is None else str(cell)
        if cell is None:
            found["gone"] += 1
        elif set(text) == {"*"}:
            found["star"] += 1
        elif column is None or column.numeric:
            found["interval" if text[0] in "[(" else "one"] += 1
        elif text in column.categories:
            found["one"] += 1
        elif text in column.nodes:
            found["node"] += 1
        else:
            found["set" if text[0] == "{" else "interval"] += 1
    as_value = column is not None and not column.numeric and None in column.before
    hidden = found["star"] + found["gone"] * (not as_value)
    known = {"of": len(cells), "hidden": hidden, "empty": found["gone"], **found}
    said = {"hold": "one", "hold an interval": "interval", "hold a set": "set",
            "hold an ancestor": "node", "suppressed": "star", "missing": "gone"}  # fmt: skip
    for words, form in said.items():
        assert (words in g["rest"]) or not found[form] or words == "hold", (words, g["rest"])
    for match in re.finditer(rf"({printed.NUMBER}) ([^.;]*)", g["rest"]):
        number, words = int(match[1].replace(",", "")), match[2]
        kind = (
            "one" if "one value" in words else "interval" if "an interval" in words
            else "set" if "hold a set" in words or "holds a set" in words
            else "node" if "ancestor" in words else "star" if "star" in words
            else "empty" if "empty cell" in words else "hidden" if "whole domain" in words
            else "gone" if "missing" in words else "hull"
        )  # fmt: skip
        if kind == "hull":
            assert "sets or masks were scored" in words or "set or mask was" in words
            assert number <= found["set"]
        else:
            assert number == known[kind], (g, known)
    return {"of": len(cells)}


def rule(own, g):
    left, right = g["rule"].split(" <= ")
    found = {}
    for side, names in ((0, ("before", "whole")), (1, ("after", "all"))):
        x, y = (own.numbers(own.by_name[name])[side] for name in (left, right))
        there = ~np.isnan(x) & ~np.isnan(y)
        found |= {names[0]: (x > y)[there].sum(), names[1]: there.sum()}
    return found


def group_row(own, g):
    cells = g["cells"].split(" | ")
    values = [100 * own.own["loss by group", f"{one}: {g['column']}"] for one in own.heads]
    for cell, value in zip(cells, values, strict=True):
        shown, most = re.fullmatch(r"([\d.]+)%( most)?", cell).groups()
        assert printed.is_printed(shown, value)
        assert not most or value == max(values)
    return {}


def check_of(own, g):
    keys = [c.name for c in own.keys]
    assert names_of(g["columns"]) == keys
    rows = [int(n) for n in re.findall(r"\d+", g["rows"])]
    cells = own.released.select(keys)
    (witness,) = set(cells[[n - 1 for n in rows]].rows())
    smallest = own.own["smallest", "the table"]
    assert cells.rows().count(witness) == smallest
    classes = own.own["classes", "the table"]
    known = {"k": own.policy["protect"]["k"], "achieved": smallest, "size": smallest,
             "classes": classes, "matching": smallest}  # fmt: skip
    gone = cells.null_count().sum_horizontal()[0]
    if gone:
        alike = [
            np.equal.outer(v := np.array(cells[n].to_list(), dtype=object), v)
            | (u := cells[n].is_null().to_numpy())[:, None] | u[None, :]
            for n in keys
        ]  # fmt: skip
        known["matching"] = np.all(alike, axis=0).sum(axis=1).min()
    return known


def loss_entry(own, g):
    entries = own.manifest["privacy_losses"]
    (entry,) = [e for e in entries if e["target"] == g["target"]]
    total = sum(Fraction(str(e["epsilon"])) for e in entries)
    assert total == Fraction(str(own.policy["protect"]["epsilon"]))
    assert Fraction(g["epsilon"]) == Fraction(str(entry["epsilon"]))
    by_cell = (
        g["mechanism"] not in {"discrete-laplace", "permute-and-flip"}
        or own.manifest["method"] == "laplace"
    )
    return {"draws": len(own.original) if by_cell else entry["draws"]}


def noise_on_groups(own, g):
    stated = own.policy["columns"][g["target"]]
    low, high = stated.get("bounds") or (0, len(stated["categories"]) - 1)
    return {**loss_entry(own, g), "scale": float((high - low) / Fraction(g["epsilon"]))}


def clamped(own, g):
    cells, column = own.original[g["column"]], own.by_name.get(g["column"])
    outside = 0
    if column is not None and column.numeric:
        low, high = own.policy["columns"][g["column"]]["bounds"]
        outside = ((cells < low) | (cells > high)).sum()
    return {"gone": cells.null_count(), "odd": 0, "outside": outside, "coded": 0}


def imputed(own, g):
    stated = own.policy["columns"][g["column"]]
    return {"share": 100 * own.original[g["column"]].null_count() / len(own.original),
            "constant": sum(stated.get("bounds", [0])) / 2}  # fmt: skip


def digest_of(own, g):
    place = {"Data": own.folder, "Policy file": own.folder, "Release": own.out}[g["what"]]
    assert hashlib.sha256((place / g["name"]).read_bytes()).hexdigest() == g["sha"]
    return {}


def fitting(own, _g):
    """Of rows of single values, at even distances, those whose shown keys a row of the table "
    "has."""
    keys = [c.name for c in own.keys]
    came = own.original.select(keys).rows()
    hidden = [own.hidden(c) for c in own.keys]
    wide = [~gone & np.array([width(own, c, cell) for cell in own.released[c.name]])
            for c, gone in zip(own.keys, hidden, strict=True)]  # fmt: skip
    rows = np.flatnonzero(~np.all(hidden, axis=0) & ~np.any(wide, axis=0))
    chosen = rows[np.linspace(0, len(rows) - 1, min(200, len(rows))).astype(int)]
    cells = own.released.select(keys).rows()
    fit = sum(
        any(all(gone[row] or a == b for a, b, gone in zip(cells[row], one, hidden, strict=True))
            for one in came)
        for row in chosen
    )  # fmt: skip
    return {"checked": len(chosen), "fit": fit}


def width(own, column, cell):
    return cell is not None and own.width(column, cell) > 0


def sizes(own, _g):
    rows, came = len(own.released), len(own.original)
    keys = [c.name for c in own.keys]
    return {"rows": rows, "came": came, "fewer": came - rows, "left": came - rows,
            "columns": own.released.width, "k": own.policy["protect"].get("k"),
            "epsilon": own.policy["protect"].get("epsilon"), "keys": len(keys),
            "factor": np.exp(own.policy["protect"].get("epsilon", 0))}  # fmt: skip


def more_of(own, g):
    """Figures that the tables of utility do not list; the three worst of each metric are."""
    kept = [row for row in own.rows.values() if row["part"] == "utility"]
    assert int(g["more"]) <= len(kept)
    return {"more": int(g["more"])}


def bounds_of(own, g):
    low, high = own.policy["columns"][g["column"]]["bounds"]
    return {"low": low, "high": high}


def drawn_picture(own, g):
    cells = own.released[g["column"]]
    for text in g["texts"].split(" | "):
        if match := re.fullmatch(r"missing ([\d.]+)%", text):
            assert printed.is_printed(match[1], 100 * cells.null_count() / len(cells))
        elif match := re.fullmatch(r"(\d+) more", text):
            assert int(match[1]) == cells.drop_nulls().n_unique() - 8
        elif cells.dtype.is_numeric() and re.fullmatch(r"-?[\d,.]+", text):
            assert (
                float(text.replace(",", ""))
                <= own.policy["columns"][g["column"]]["bounds"][1] * 1.1
            )
        else:
            start = text.rstrip("\N{HORIZONTAL ELLIPSIS}")
            named = text == g["column"] or not re.search(r"\d", text)
            assert named or any(str(cell).startswith(start) for cell in cells)
    return {}


def signed(metric):
    return lambda own, g: {"v": own.value(metric, f"{g['a']} x {g['b']}" if "b" in g else g["a"])}


def of_column(metric, factor=1.0):
    return lambda own, g: {"v": factor * own.value(metric, g["a"])}


def whole(metric, factor=1.0, places=None):
    return lambda own, _g: {"v": (factor * own.value(metric, "the table"), places)}


def squared(own, g):
    """A squared error: in the table of measures, or in that of columns, which may be paired."""
    metric = g.get("metric") or "SSE / SST"
    made = own.own.get((metric, g["a"]))
    stated = [c["loss"] for c in own.figures_file["columns"] if c["name"] == g["a"]]
    value = stated[0] if made is None else made
    return {"v": 100 * value if g.get("percent") else value}


def risk(own, _g):
    value = own.own["individual risk", joined([c.name for c in own.keys])]
    return {"v": value, "n": (value * len(own.released), 1)}


def stated(own, g):
    """A loss in words, of the table of columns, in percent."""
    row = next(c for c in own.figures_file["columns"] if c["name"] == g["a"])
    return {"v": 100 * loss_of(own, {"column": g["a"], "metric": row["metric"]})}


def stated_times(own, g):
    return {"v": stated(own, g)["v"] / 100}


def disclosed(own, g):
    for part in g["list"].split(", "):
        rows, name = re.fullmatch(r"([\d,]+) for (.*)", part).groups()
        assert int(rows.replace(",", "")) == homogeneous(own, name)["rows"]
    return {"rows": len(own.released)}


def learning(own, g):
    row = own.rows["learning", g["a"]]
    return {"v": (row["value"], 3), "o": (row["baseline"], 3), "guess": (-np.inf, 1.0),
            "tested": (1, len(own.original))}  # fmt: skip


def nothing_of(metric, subject):
    """Nothing, where the definition gives no finite number."""

    def handler(own, _g):
        assert own.rows[metric, subject]["value"] is None
        assert own.own.get((metric, subject)) is None
        return {}

    return handler


def nearly_alone(own, g):
    """Of the rows with a value, the share whose value fewer than k of them have; also of the ends,
    which are values from the end inwards until a hundredth of the rows is reached.
    """
    k = own.policy["protect"]["k"]
    cells = sorted(own.released[g["a"]].drop_nulls().to_list())
    sizes_of = [(cell, cells.count(cell)) for cell in dict.fromkeys(cells)]
    found = {"k": k, "v": (100 * sum(n for _, n in sizes_of if n < k) / len(cells), 0)}
    for end, ordered in (("low", sizes_of), ("high", sizes_of[::-1])):
        tail, reached = [], 0
        for _, n in ordered:
            if reached < len(cells) / 100:
                tail.append(n)
            reached += n
        found[end] = (100 * sum(n for n in tail if n < k) / sum(tail), 0)
    return found


def worst(metric):
    return lambda own, _g: {
        "v": 100 * max(value for (name, _), value in own.own.items() if name == metric)
    }


def hundred_of(share):
    return {"v": (100 * share, hundred(share))}


def surest(own, g):
    (name,) = [subject for metric, subject in own.rows if metric == "surest guesses"]
    share = own.value("surest guesses", name)
    known = sum(v is not None for v in own.by_name[name].before)
    people = max(1, int(np.ceil(0.01 * known)))
    if match := re.fullmatch(r" \(between (\d+) and (\d+)\)", g["between"]):
        _, low, high = wilson(round(share * people), people)
        for end, text in zip((low, high), match.groups(), strict=True):
            assert printed.is_printed(text, 100 * end, places=0)
    return hundred_of(share) | {"n": people}


def counted_queries(own, g):
    row = own.rows["COUNT queries", g["a"]]
    _, share = own.workload(None if g["a"] == "all columns" else 3)
    return {"v": (100 * row["value"], 1), "m": (70 * share - 0.1, 140 * share + 0.1)}


def column_row(own, g, factor=1.0):
    gone = [side[g["column"]] for side in (own.original, own.released)]
    return {"v": factor * loss_of(own, g), "gone": gone[0].null_count(),
            "now": gone[1].null_count()}  # fmt: skip


CHECKED = {"line", "texts", "t", "rest", "cells", "rows", "sentence", "sha", "epsilon", "between",
           "also", "list", "how"}  # fmt: skip
"""Parts of a line whose figures are compared one by one."""
LINES = [(printed.pattern(text), re.findall(r"<(\w+)>", text), handler) for text, handler in [
    ("The share of any set of [what] of [of] is off by at most <points> percentage points.",
     distance),
    (("The share of any set of ranges (up to 16 per column) of [of] is off by at most <points> "
     "percentage points."), distance),
    (("Among the <people> people with [group] = [value], the share of any set of [what] of [of] is "
     "off by at most <points> percentage points."), group_distance),
    (("Among the <people> people with [group] = [value], the share of any set of ranges (up to 16 "
     "per column) of [of] is off by at most <points> percentage points."), group_distance),
    ("The mean of '[a]' moves by <v> standard deviations.", signed("signed mean")),
    ("The variance of '[a]' is <v> times the original's.", signed("ratio of variances")),
    ("The correlation between [a] and [b] moves by <v>, more than any other.",
     lambda own, g: {"v": (own.own["signed correlation", f"{g['a']} x {g['b']}"], 3)}),
    ("An equivalence class has <v> row on average.", whole("average class size")),
    ("An equivalence class has <v> rows on average.", whole("average class size")),
    ("The number of rows from which a row cannot be told apart, summed over all rows, is <v>.",
     whole("discernibility")),
    ("The squared errors sum to <v>.", whole("SSE")),
    ("The absolute errors sum to <v>.", whole("SAE")),
    ("On average, a number is off by <v> times sqrt(2) standard deviations (IL1s).",
     whole("IL1s")),
    ("In <v>% of the rows '[a]' is different or missing.",
     lambda own, g: {"v": (100 * own.own["share changed", g["a"]], 1)}),
    (("'[a]', weighted by the sampling weights, keeps <v>% of its detail (100%: every cell exact; "
     "0%: every cell suppressed)."),
     lambda own, g: {"v": (100 * own.own["granularity", g["a"]], 1)}),
    ("'[a]' keeps <v>% of its detail (100%: every cell exact; 0%: every cell suppressed).",
     lambda own, g: {"v": (100 * own.own["granularity", g["a"]], 1)}),
    (("<after> of <rows> released rows are unique in [keys]; <before> of <came> were in the "
     "original."), unique),
    (("<after> of <rows> released rows is unique in [keys]; <before> of <came> were in the "
     "original."), unique),
    (("By [keys], <before> of <came> rows were unique in the original, as it came; in the release, "
     "<after> are."), unique),
    (("By [keys], <before> of <came> rows were unique in the original, as it came; in the release, "
     "<after> is."), unique),
    (("A match on the released quasi-identifiers is correct with probability <v> on average, "
     "[whom]; <n> correct matches are expected."), risk),
    ("Without '[a]' the average risk would be <v>.", of_column("risk without")),
    (("[rule]: violated in <after> of <all> released rows, and in <before> of <whole> original "
     "ones."), rule),
    (("Of the <n> people about whom the attacker is most certain, <v>[between] of 100 are guessed "
     "correctly."), surest),
    ("Guesses of '[a]' are right <v> times as often as always guessing the most frequent value.",
     lambda own, g: {"v": (1 + own.value("breach increase", g["a"]), 2)}),
    (("For <v> of 100 people, every number that is not missing lies within 5% of a standard "
     "deviation of the released one."),
     lambda own, _g: hundred_of(own.own["interval disclosure", "the numbers"])),
    (("Half of 2,000 COUNT queries, each over half of the range of [a],[w] are off by at most "
      "<v>%; "
     "the median query counts <m>% of the people."), counted_queries),
    ("The release has <rows> rows and the original <came>: <fewer> fewer.", sizes),
    ("<left> rows of the original were left out.", sizes),
    ("Confidential report on a release of <rows> rows by [method]", sizes),
    ("A table of <rows> rows and <columns> columns about people, changed by [how]", sizes),
    ("<rows>", sizes),
    ("<rows>, and <left> left out", sizes),
    ("Release of <rows> rows x <columns> columns by [method]", sizes),
    ("'[column]': of <of> cells, [rest]", forms),
    ("<more> more with smaller losses are in figures.json.", more_of),
    ("<more> more with smaller losses is in figures.json.", more_of),
    ("'[column]': <share>% of the cells were missing and count as '[value]'.", imputed),
    ("'[column]': <share>% of the cells were missing and count as <constant>.", imputed),
    (("Cells of [c] may be coarser than they were: [20, 30] is a number from 20 to 30, {a, b} "
      "is one "
     "of a and b, a name that covers others is one of these, and * is any value of the column."),
     sizes),
    ("The [metric] of [a] cannot be computed: it has <n> numbers in the release.",
     lambda own, g: {"n": np.isfinite(own.numbers(own.by_name[g["a"]])[1]).sum()}),
    (("Of <checked> rows of single values that were checked, <fit> are found in the original; "
     "averaged, perturbed and synthetic rows need not be."), fitting),
    (("Of <checked> rows of single values that were checked, <fit> is found in the original; "
     "averaged, perturbed and synthetic rows need not be."), fitting),
    ("| [column] | [kind] | [texts] and <more> more, in manifest.json[t] | [changed]",
     lambda own, g: {"more": own.by_name[g["column"]].bins - 40}),
    (("Of <checked> rows of single values that were checked, <fit> are found in the original, and "
     "[far] distributed far from it: [why]"), fitting),
    ("k-anonymity with k = <k> of [c]", sizes), ("k-anonymity with k = <k> of [c]: proved.", sizes),
    ("Every combination of [c] in the released table is shared by at least <k> people.", sizes),
    (("An attacker who knows nothing else about somebody cannot narrow that person down to fewer "
     "than <k> people."), sizes),
    ("differential-privacy with epsilon = <epsilon> ([n] neighbours) of [c]", sizes),
    ("differential-privacy with epsilon = <epsilon> ([n] neighbours) of [c]: proved.", sizes),
    (("For [c]: whatever [one] may hold, no outcome of this release becomes more than <factor> "
     "times as likely."), sizes),
    (("So an attacker's odds for any guess about [whom] change by a factor of at most <factor>, "
     "whatever else the attacker knows."), sizes),
    ("claim proved <k>-anonymity of [c]", sizes),
    ("claim proved <epsilon>-differential privacy of [c]", sizes),
    ("check holds <k>-anonymity of [c] (achieved <achieved>)",
     lambda own, g: sizes(own, g) | {"achieved": own.own["smallest", "the table"]}),
    ("note [sentence]", lambda _own, _g: {}),
    ("'[a]' is released as it is, and fewer than <k> rows share its value in <v>% of the rows.",
     nearly_alone),
    (("'[a]' is released as it is, and fewer than <k> rows share its value in <v>% of the rows "
      "(<low>% in the lowest hundredth, <high>% in the highest)."), nearly_alone),
    (("'[a]' is released as it is, and fewer than <k> rows share its value in <v>% of the rows "
      "that have one."), nearly_alone),
    (("'[a]' is released as it is, and fewer than <k> rows share its value in <v>% of the rows "
      "that have one (<low>% in the lowest hundredth, <high>% in the highest)."), nearly_alone),
    ("| Source | [quoted]", sizes),
    ("[quoted], Shoal [quoted1]", sizes),
    ("Linkability linkability: <keys> columns to <others>",
     lambda own, _g: {"keys": len(own.keys), "others": len(own.columns) - len(own.keys)}),
    (("People whose value is disclosed, because all in their group share it: [list]; of <rows> "
     "rows."),
     disclosed),
    ("'[a]' is coarser in <v>% of the rows.", stated),
    ("<v>% of the rows have another '[a]'.", stated),
    ("The squared error of '[a]' is <v>% of its variance.", stated),
    ("The squared error of '[a]' is <v> times its variance: worse than publishing its mean.",
     stated_times),
    ("The squared error of '[a]' is <v> of its variance (1: as if only its mean were published).",
     of_column("SSE / SST")),
    (("The squared error of '[a]' is <v> times its variance (1: as if only its mean were "
     "published)."), of_column("SSE / SST")),
    ("With both columns sorted, the squared error of '[a]' is <v>% of its variance.", stated),
    ("With both columns sorted, the squared error of '[a]' is <v> of its variance.",
     of_column("rank-matched SSE / SST")),
    ("With both columns sorted, the squared error of '[a]' is <v> times its variance.",
     of_column("rank-matched SSE / SST")),
    (("This decision is about the release whose table has the digest (SHA-256) [quoted]; all "
     "digests are in the appendix."), sizes),
    ("| Policy, as published in the manifest | [quoted]", sizes), ("SHA-256 [quoted]", sizes),
    (("Of 100 conditions on [s] that match one released row, <value>[between] match exactly one "
     "person in the table; for <blind>[also] by guessing without the release."), inside_rate),
    (("Two files, one with [a] and one with the rest, are linked through the release for "
     "<value>[between] of 100 people in the table; for <blind>[also] by guessing without the "
     "release."), inside_rate),
    (("The released row nearest in [keys] gives the right '[a]' to within 5% for <value>[between] "
     "of 100 people in the table; for <blind>[also] by guessing without the release."),
     inside_rate),
    (("The released row nearest in [keys] gives the right '[a]' for <value>[between] of 100 people "
     "in the table; for <blind>[also] by guessing without the release."), inside_rate),
    (("An attacker who knows [keys] finds the right '[a]' for <value>[between] of 100 people in "
      "the "
     "table; guessing the most common value is right for <blind>[also]."), inside_rate),
    (("An attacker who knows [keys] guesses '[a]' to a tenth of its standard deviation for "
     "<value>[between] of 100 people in the table; for <blind>[also] by guessing without the "
     "release."), inside_rate),
    ("For <value>[between] of 100 people, the released record nearest in [keys] is their own.",
     inside_rate),
    ("The best one-to-one matching of all records is right for <value>[between] of 100 people.",
     inside_rate),
    (("A classifier distinguishes released rows from original ones <v> times as well as it would a "
     "fresh sample of the original (pMSE ratio)."),
     lambda own, _g: {"v": own.rows["propensity", "the table"]["value"]}),
    (("A model trained on the release[w] predicts '[a]' with [score] <v>; the same model "
      "trained on "
     "the original reaches <o>, and a constant guess <guess> (tested on <tested> [whom])."),
     learning),
    ("| [metric] | [subject] | none | [sentence]",
     lambda own, g: nothing_of(g["metric"], g["subject"])(own, g)),
    (("[of]: people in the table <value> of 100, <low> to <high>; blind guess <blind> of 100, "
      "<from> "
     "to <to> | people in the table | <value> | blind guess | <blind>"), rate),
    ("Two columns together <v>% [sentence]", worst("total variation of pairs")),
    ("Worst column <v>% [sentence]", worst("total variation")),
    ("Worst group of people <v>% [sentence]", worst("loss by group")),
    ("Edit rule [sentence]", lambda _own, _g: {}),
    ("| [of] | <value> (<low> to <high>) | no control | <blind> (<from> to <to>) | [sentence]",
     rate),
    ("The attack succeeds in <over> of 100 tries more than a blind guess.",
     lambda _own, _g: {"over": (0, 100)}),
    ("| [column] | [metric] | <v> | <gone> | <now> | [sentence]", column_row),
    ("| [column] | [metric] | <v>% | <gone> | <now> | [sentence]",
     lambda own, g: column_row(own, g, 100)),
    ("| [metric] | [subject] | <value> | [sentence]", row_of),
    ("| [metric] | [subject] | <value> <low> to <high> | [sentence]", row_of),
    ("| [column] | <gone> | <odd> | <outside> | <coded>", clamped),
    ("| [column] | <classes> | <rows>", lambda own, g: homogeneous(own, g["column"])),
    ("| [column] | [cells]", group_row),
    (("| k-anonymity with k = <k> of [columns] | holds | <achieved> | The group that decides the "
     "check has <size> records, for example rows [rows] of the release. Number of equivalence "
     "classes: <classes>."), check_of),
    (("| k-anonymity with k = <k> of [columns] | holds | <achieved> | The group that decides the "
     "check has <size> records, for example rows [rows] of the release. Number of equivalence "
     "classes: <classes>. k, if a missing cell is taken to match any value: <matching>."),
     check_of),
    ("check holds [columns] (achieved <k>)",
     lambda own, _g: {"k": own.own["smallest", "the table"]}),
    ("| [target] | [mechanism] | epsilon [epsilon] | <draws> | -", loss_entry),
    ("| [target] | [mechanism] | epsilon [epsilon] | <draws> | <scale> / n", noise_on_groups),
    ("Distribution of [column], original and release: [how] | [texts]", picture_of),
    ("[up] by [across], original and release: [how]. Association <was> before, <is> after. | [t]",
     map_of),
    ("Association of each two columns: below the diagonal original, above it release. | [texts]",
     matrix),
    ("Distribution of [column] in the release. | [texts]", drawn_picture),
    ("| [what]: [name] | [sha]", digest_of),
    ("| [column] | [kind] | from <low> to <high>[more] | [changed]", bounds_of),
]]  # fmt: skip
RANGES = {"m", "guess", "tested", "over"}
"""Figures of samples: between two numbers."""


def explain(own, line, quoted):
    """Why a line is not what the files say; nothing where it is."""
    text = line.strip(" |")
    if not re.search(r"\d", own.known.sub("", text)) or text in quoted:
        return ""
    said = []
    for rule_of, figures, handler in LINES:
        match = rule_of.fullmatch(text if text.startswith("| ") else line)
        if match is None:
            continue
        given = match.groupdict() | {"line": text}
        try:
            for name in given.keys() - CHECKED - {*figures}:
                assert own.is_text(name, given[name], quoted), f"{name}: {given[name]}"
            expected = handler(own, given)
            for name in figures:
                value, places = expected[name], None
                if isinstance(value, tuple) and name not in RANGES:
                    value, places = value
                assert printed.is_printed(given[name], value, places=places), (
                    f"{name}: printed {given[name]}, computed {value}"
                )
        except (
            LookupError,
            ValueError,
            AssertionError,
            StopIteration,
            TypeError,
            AttributeError,
        ) as error:
            said.append(f"{type(error).__name__}: {error}".partition("\n")[0])
            continue
        why = explain(own, given["sentence"], quoted) if "sentence" in given else ""
        if not why:
            return ""
        said.append(why)
    parts = re.split(r"(?<=[.:;])\s+(?=[A-Z'0-9])", text)
    if len(parts) > 1 and not any(explain(own, part, quoted) for part in parts):
        return ""
    return "; ".join(said) or "in no list"
