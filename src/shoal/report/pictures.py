"""Draw distributions, associations, maps of two columns, frontiers and lattices, as SVG.

One language for pages, prints and notebooks: a picture is a text without script or style, drawn
from plain counts, and equal counts give equal bytes. Colours are attributes, which a page may
override by class for its theme. Filled shapes show the release, lines the original.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from math import isfinite
from typing import Any

from markupsafe import Markup

from shoal import io
from shoal.core import Release, ReleaseForm
from shoal.errors import InputError, count_noun, visible
from shoal.report import released_columns
from shoal.report.phrases import number, percent
from shoal.report.shapes import (
    ALARM,
    HIGH,
    INK,
    PALE,
    SEA,
    SOFT,
    WIDE,
    Drawing,
    coord,
    draw_line,
    draw_rect,
    draw_svg,
    draw_text,
    join_pictures,
    shorten,
)

LEVELS = 12
"""Shades of a map."""
NOTHING = 1e-9
"""Changes below it are rounding."""
CONFIDENTIAL = "Confidential: compares the release with the original"
Counts = Sequence[float]


def release(made: Release) -> Drawing:
    """Draw the distribution of each released column, from the released table alone."""
    columns = count_released(made)
    if columns is None:
        raise InputError(
            "Only rows on this machine are drawn; this table lies on Spark, or its rows are boxes. "
            "Draw a sample of it with a library of your own."
        )
    return join_pictures([(column(c), WIDE, HIGH) for c in columns])


def count_released(made: Release) -> list[dict[str, Any]] | None:
    """Count a release's columns; None if its rows are boxes or on Spark."""
    if made.manifest.release_form is ReleaseForm.TREE or not hasattr(made.data, "shape"):
        return None
    tables = (made.data, made.extras.get("measurements"))
    frame, measured = (None if table is None else io.from_native(table).frame for table in tables)
    return None if frame is None else released_columns.columns(frame, measured)


def evaluation(pictures: Mapping[str, Any]) -> Drawing:
    """Draw what an evaluation compared: columns, associations, and selected pairs."""
    if not pictures:
        raise InputError("Nothing to draw: the marginals of the tables were not compared.")
    parts = [(column(picture), WIDE, HIGH) for picture in pictures["columns"]]
    if len(pictures["association"]["names"]) > 1:
        side = association_side(pictures["association"])
        parts.append((association(pictures["association"]), side, side))
    parts += [(pair(picture), *PAIR) for picture in pictures["pairs"]]
    return join_pictures(parts, title=CONFIDENTIAL)


def draw_all(pictures: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the pictures of an evaluation separately, for a page."""
    if not pictures:
        return {}
    several = len(pictures["association"]["names"]) > 1
    return {
        "columns": [column(picture) for picture in pictures["columns"]],
        "association": association(pictures["association"]) if several else "",
        "pairs": [pair(picture) for picture in pictures["pairs"]],
    }


def comparison(facts: Mapping[str, Any]) -> Drawing:
    """Draw the candidates of a comparison, risk against error of counts."""
    title = "Confidential: computed from the table that was compared on"
    return join_pictures([(frontier(facts), *FRONTIER)], title=title)


def column(one: Mapping[str, Any]) -> Markup:
    """Draw a column's distribution in the release and, if given, in the original."""
    both = one.get("before") is not None
    shares = _shares(one["after"], one["missing"][-1])
    before = _shares(one["before"], one["missing"][0]) if both else None
    draw = _bars if one["kind"] == "categories" else _histogram
    parts = [draw_text(6, 12, shorten(one["name"], 22 if both else 30), bold=True)]
    if both:
        parts.append(
            draw_text(WIDE - 6, 12, describe_distance(one["distance"]), anchor="end", soft=True)
        )
    parts.append(draw(one, shares, before))
    return draw_svg(WIDE, HIGH, parts, _column_words(one))


def describe_distance(distance: float) -> str:
    """Describe how much of a distribution moved, in a word or two."""
    return "unchanged" if distance < NOTHING else f"{percent(distance)} moved"


def _column_words(one: Mapping[str, Any]) -> str:
    if one.get("before") is None:
        return f"Distribution of {one['name']} in the release."
    words = describe_distance(one["distance"])
    return f"Distribution of {one['name']}, original and release: {words}."


def _histogram(one: Mapping[str, Any], shares: Counts, before: Counts | None) -> Markup:
    left, right, top, floor = 6.0, WIDE - 6.0, 20.0, 98.0
    answers = one.get("answers") or []
    total = sum(one["after"]) + one["missing"][-1]
    # An area is a share of people, also where bins are not equally wide.
    edges = one["edges"]
    wide = [(b - a) * len(shares) / (edges[-1] - edges[0]) for a, b in pairwise(edges)]
    shares = [share / width for share, width in zip(shares, wide, strict=True)]
    before = before and [share / width for share, width in zip(before, wide, strict=True)]
    whiskers = [
        ((answer - margin) / total / width, (answer + margin) / total / width)
        for (answer, margin), width in zip(answers, wide, strict=False)
        if total
    ]
    most = max([*shares, *(before or []), *(high for _, high in whiskers)], default=0.0) or 1.0
    steps_ = [(right - left) / len(shares) * width for width in wide]

    def steps(values: Counts) -> str:
        heights = [floor - (floor - top) * max(value, 0.0) / most for value in values]
        moves = zip(heights, steps_, strict=True)
        return "".join(f"V{coord(y)}h{coord(step)}" for y, step in moves) + f"V{coord(floor)}"

    parts = [Markup('<path class="p-sea" fill="{}" fill-opacity=".45" d="M{} {}{}z"/>').format(
        SEA, coord(left), coord(floor), steps(shares))]  # fmt: skip
    if before is not None:
        parts.append(Markup(
            '<path class="p-line" fill="none" stroke="{}" stroke-width="1.3" d="M{} {}{}"/>'
        ).format(INK, coord(left), coord(floor), steps(before)))  # fmt: skip
    for place, (low, high) in enumerate(whiskers):
        x = left + sum(steps_[:place]) + steps_[place] / 2
        ends = [floor - (floor - top) * min(max(end, 0.0), most) / most for end in (low, high)]
        parts.append(draw_line(x, ends[0], x, ends[1]))
    parts.append(draw_line(left, floor, right, floor, width=0.7))
    first, last = edges[0], edges[-1]
    parts += [
        draw_text(left, HIGH - 10, _tick(first, one["kind"]), soft=True),
        draw_text(right, HIGH - 10, _tick(last, one["kind"]), anchor="end", soft=True),
        _missing(one),
    ]
    return Markup("").join(parts)


def _bars(one: Mapping[str, Any], shares: Counts, before: Counts | None) -> Markup:
    left, right, top = 82.0, WIDE - 8.0, 20.0
    answers = one.get("answers") or []
    total = sum(one["after"]) + one["missing"][-1]
    whiskers = [((a - m) / total, (a + m) / total) for a, m in answers] if total else []
    most = max([*shares, *(before or []), *(high for _, high in whiskers)], default=0.0) or 1.0
    row = 82.0 / max(len(shares), 4)
    parts = []
    for place, (label, share) in enumerate(zip(one["labels"], shares, strict=True)):
        y = top + place * row
        width = (right - left) * max(share, 0.0) / most
        parts.append(
            draw_text(
                left - 4,
                y + row / 2 + 3.5,
                shorten(label, 13),
                anchor="end",
                size=10 if row > 11 else 9,
            )
        )
        parts.append(draw_rect("p-sea", SEA, (left, y + row * 0.15, width, row * 0.7), 0.45))
        if before is not None:
            x = left + (right - left) * max(before[place], 0.0) / most
            parts.append(draw_line(x, y + 0.5, x, y + row - 0.5, width=2))
        if whiskers:
            low, high = (
                left + (right - left) * min(max(end, 0.0), most) / most for end in whiskers[place]
            )
            parts.append(draw_line(low, y + row / 2, high, y + row / 2))
    parts += [draw_line(left, top, left, 102, width=0.7), _missing(one)]
    return Markup("").join(parts)


def _missing(one: Mapping[str, Any]) -> Markup:
    """Write how much of the column is missing, if any."""
    sides = [side for side in (one.get("before"), one["after"]) if side is not None]
    shares = [
        gone / (sum(side) + gone) if gone else 0.0
        for side, gone in zip(sides, one["missing"][-len(sides) :], strict=True)
    ]
    if not any(shares):
        return Markup("")
    words = " \N{RIGHTWARDS ARROW} ".join(dict.fromkeys(map(percent, shares)))
    return draw_text(WIDE / 2, HIGH - 10, f"missing {words}", anchor="middle", soft=True, size=9)


PAIR = (330, 136)


def pair(one: Mapping[str, Any]) -> Markup:
    """Draw maps of two columns: original, release and difference, on one scale."""
    sides = [_normal(one[side]) for side in ("before", "after")]
    most = max((share for side in sides for line in side for share in line), default=0.0) or 1.0
    change = [
        [new - old for new, old in zip(after, before, strict=True)]
        for before, after in zip(*sides, strict=True)
    ]
    across, up = one["names"]
    parts = [
        draw_text(6, 12, f"{shorten(up, 18)} by {shorten(across, 18)}", bold=True),
        draw_text(PAIR[0] - 6, 12, describe_distance(one["distance"]), anchor="end", soft=True),
    ]
    size, gap, first = 84.0, 10.0, 56.0
    for place, (values, words) in enumerate(
        zip((*sides, change), ("original", "release", "difference"), strict=True)
    ):
        x = first + place * (size + gap)
        parts.append(_heat(values, x, 20.0, size, most))
        parts.append(draw_text(x + size / 2, 130, words, anchor="middle", size=10))
    for axis, (x_first, x_last, y_first, y_last) in zip(
        one["axes"],
        ((first, first + size, 116, 116), (first - 3, first - 3, 104, 28)),
        strict=True,
    ):
        low, high = _ends(axis)
        flat = axis is one["axes"][0]
        parts += [
            draw_text(x_first, y_first, low, anchor="start" if flat else "end", size=9, soft=True),
            draw_text(x_last, y_last, high, anchor="end", size=9, soft=True),
        ]
    now, then = (f"{value:.2f}" for value in reversed(one["association"]))
    words = f"{up} by {across}, original and release: {describe_distance(one['distance'])}."
    return draw_svg(*PAIR, parts, f"{words} Association {then} before, {now} after.")


def _heat(values: list[list[float]], x: float, y: float, size: float, most: float) -> Markup:
    """Draw a heat map: first index to the right, second upwards; negative in another colour."""
    across, up = len(values), max(map(len, values), default=0)
    wide, high = size / max(across, 1), size / max(up, 1)
    shades: dict[tuple[bool, int], list[str]] = {}
    for i, line in enumerate(values):
        for j, value in enumerate(line):
            level = round(LEVELS * min(abs(value) / most, 1.0) ** 0.5)
            if level:
                cell = f"M{coord(x + i * wide)} {coord(y + size - (j + 1) * high)}"
                shades.setdefault((value < 0, level), []).append(
                    f"{cell}h{coord(wide)}v{coord(high)}h-{coord(wide)}z"
                )
    parts = [draw_rect("p-pale", PALE, (x, y, size, size))]
    parts += [
        Markup('<path class="{}" fill="{}" fill-opacity="{}" d="{}"/>').format(
            "p-alarm" if less else "p-sea",
            ALARM if less else SEA,
            coord(level / LEVELS),
            "".join(d),
        )
        for (less, level), d in sorted(shades.items())
    ]
    return Markup("").join(parts)


CELL, MARGIN = 22, 92
MOST = 14
"""Columns of a matrix; of more, those with the strongest associations are drawn."""


def association_side(values: Mapping[str, Any]) -> int:
    """Return width and height of the association matrix."""
    return MARGIN + CELL * min(len(values["names"]), MOST) + 8


def association(values: Mapping[str, Any]) -> Markup:
    """Draw the association of every two columns: below the diagonal before, above it after."""
    names, before, after = values["names"], values["before"], values["after"]
    count = range(len(names))
    strength = {i: max((before[i][j] for j in count if j != i), default=0.0) for i in count}
    kept = sorted(sorted(count, key=lambda i: (-strength[i], i))[:MOST])
    side = association_side(values)
    parts = []
    for row, i in enumerate(kept):
        y = MARGIN + row * CELL
        parts.append(draw_text(MARGIN - 5, y + 14, shorten(names[i], 14), anchor="end", size=10))
        x = MARGIN + row * CELL + 14
        parts.append(draw_text(x, MARGIN - 5, shorten(names[i], 14), size=10, turn=True))
        for place, j in enumerate(kept):
            if i == j:
                continue
            value = (before if place < row else after)[i][j]
            x = MARGIN + place * CELL
            parts.append(draw_rect("p-sea", SEA, (x, y, CELL - 1, CELL - 1), 0.04 + 0.41 * value))
            percents = f"{100 * value:.0f}"
            parts.append(draw_text(x + CELL / 2 - 0.5, y + 14, percents, anchor="middle", size=9))
    words = "Association of each two columns: below the diagonal original, above it release."
    return draw_svg(side, side, parts, words)


FRONTIER, LINE = (560, 330), 11
_STANDINGS = {"frontier": (SEA, "p-sea"), "tied": (SEA, "p-sea"), "beaten": (SOFT, "p-soft")}


def frontier(facts: Mapping[str, Any], this: str | None = None) -> Markup:
    """Risk (across) against error (up) of candidates and baselines, with intervals.

    Zoomed to the candidates: a baseline beyond them is left out. A ring marks one of them, or those
    that cannot be told apart. `data-place` is a candidate's place in the list, for a page's script.
    """
    listed = [{"place": place, **row} for place, row in enumerate(facts["candidates"])]
    candidates = [row for row in listed if _has_place(row)]
    largest = [max((row[axis]["value"] for row in candidates), default=0.0) or 1.0
               for axis in ("risk", "error")]  # fmt: skip
    # A share ends at 100%.
    most = [value if value > 1 else min(1.15 * value, 1.0) for value in largest]
    rows = candidates + [
        row
        for row in facts["baselines"]
        if _has_place(row) and row["risk"]["value"] <= most[0] and row["error"]["value"] <= most[1]
    ]
    left, right, top, floor = 52.0, FRONTIER[0] - 16.0, 16.0, FRONTIER[1] - 40.0

    def at(risk: float, error: float) -> tuple[float, float]:
        x, y = (min(max(v / m, 0.0), 1.0) for v, m in zip((risk, error), most, strict=True))
        return left + (right - left) * x, floor - (floor - top) * y

    beta = facts.get("settings", {}).get("axes") == "alpha-beta"
    risk = "increase in prediction accuracy" if beta else "linkage and inference, worst attack"
    parts = [draw_line(left, top, left, floor), draw_line(left, floor, right, floor)]
    parts += [
        draw_text((left + right) / 2, floor + 32, f"risk: {risk}", anchor="middle"),
        draw_text(6, top - 4, "median relative error of counts", size=11),
        draw_text(left, floor + 15, "0", anchor="middle", soft=True, size=10),
        draw_text(right, floor + 15, percent(most[0]), anchor="end", soft=True, size=10),
        draw_text(left - 4, top + 10, percent(most[1]), anchor="end", soft=True, size=10),
    ]
    best = sorted(
        (row["risk"]["value"], row["error"]["value"])
        for row in candidates
        if row["standing"] == "frontier"
    )
    if len(best) > 1:
        line = "L".join(f"{coord(x)} {coord(y)}" for x, y in (at(*point) for point in best))
        parts.append(Markup('<path class="p-line" fill="none" stroke="{}" stroke-width="1" '
                            'stroke-dasharray="4 3" d="M{}"/>').format(INK, line))  # fmt: skip
    best_one = this or facts.get("recommended")
    ringed = {best_one} if best_one else set(facts.get("ties", ()))
    labels: list[tuple[float, float, float]] = []
    # What has a ring is labelled first, and a label that has no room is left to the pointer.
    for row in sorted(rows, key=lambda row: row["label"] not in ringed):
        x, y = at(row["risk"]["value"], row["error"]["value"])
        (x0, y0), (x1, y1) = (at(row["risk"][e], row["error"][e]) for e in ("low", "high"))
        parts += [draw_line(x0, y, x1, y, faint=True), draw_line(x, y0, x, y1, faint=True)]
        colour, cls = _STANDINGS.get(row["standing"], (SOFT, "p-hollow"))
        hollow = row["standing"] not in _STANDINGS
        sentence = (f"{row['label']}: risk {percent(row['risk']['value'])}, error "
                f"{percent(row['error']['value'])}")  # fmt: skip
        mark = Markup(
            '<circle class="{}"{} fill="{}" stroke="{}" cx="{}" cy="{}" r="4.5"><title>{}'
        )
        inner = "none" if hollow else colour
        place = Markup(' data-place="{}"').format(row["place"]) if "place" in row else ""
        parts.append(
            mark.format(
                cls,
                place,
                inner,
                colour,
                coord(x),
                coord(y),
                visible(sentence),
            )
        )
        parts.append(Markup("</title></circle>"))
        if row["label"] in ringed:
            ring = Markup(
                '<circle class="p-ring" fill="none" stroke="{}" stroke-width="2.5" cx="{}" cy="{}" '
                'r="9"/>'
            )
            parts.append(ring.format(ALARM, coord(x), coord(y)))
        if row["standing"] == "frontier" or row["label"] in ringed or hollow:
            end, name = x > (left + right) / 2, shorten(row["label"], 34)
            wide = 5.6 * len(name)
            first, last = (x - 9 - wide, x - 9) if end else (x + 9, x + 9 + wide)
            if any(a < last and first < b and abs(y - at_y) < LINE for a, b, at_y in labels):
                continue
            labels.append((first, last, y))
            parts.append(draw_text(x - 9 if end else x + 9, y - 6, name,
                               anchor="end" if end else "start", size=10))  # fmt: skip
    return draw_svg(*FRONTIER, parts, f"Risk and error of {len(candidates)} candidates.")


NODE_HIGH, LAYER_HIGH = 20, 46


def lattice(found: Mapping[str, Any], fixed: Sequence[int] | None = None) -> Markup:
    """Draw combinations of levels, the highest on top, joined by steps of one level.

    Filled: it satisfies the requirements. Dashed: the search skipped it. A ring marks the least
    loss, a thick border the levels that are fixed. `data-place` is a node's place in the list.
    """
    nodes = found["nodes"]
    names = [" ".join(map(str, node["levels"])) for node in nodes]
    wide = 14 + 6 * max(map(len, names))
    layers: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        layers.setdefault(sum(node["levels"]), []).append(place)
    across = max(map(len, layers.values())) * (wide + 10) + 10
    at = {
        tuple(nodes[place]["levels"]): (
            across / 2 + (column - (len(layer) - 1) / 2) * (wide + 10),
            12 + NODE_HIGH / 2 + row * LAYER_HIGH,
        )
        for row, (_, layer) in enumerate(sorted(layers.items(), reverse=True))
        for column, place in enumerate(layer)
    }
    parts = [
        draw_line(x, y - NODE_HIGH / 2, at[up][0], at[up][1] + NODE_HIGH / 2, width=0.7, faint=True)
        for node, (x, y) in at.items()
        for j, level in enumerate(node)
        if (up := (*node[:j], level + 1, *node[j + 1 :])) in at
    ]
    box = Markup(
        '<g class="node" data-place="{}"><title>{}</title><rect class="{}" fill="{}" '
        'fill-opacity="{}" x="{}" y="{}" width="{}" height="{}" rx="5"/><rect class="p-edge" '
        'fill="none" stroke="{}" stroke-width="{}"{} x="{}" y="{}" width="{}" height="{}" rx="5"/>'
        "{}</g>"
    )
    for place, (node, name) in enumerate(zip(nodes, names, strict=True)):
        x, y = at[tuple(node["levels"])]
        frame = [coord(v) for v in (x - wide / 2, y - NODE_HIGH / 2, wide, NODE_HIGH)]
        keeps = node["loss"] is not None
        dashes = Markup(' stroke-dasharray="3 2"') if node["pruned"] else ""
        parts.append(box.format(
            place, visible(node_words(node, found["best"])), "p-sea" if keeps else "p-pale",
            SEA if keeps else PALE, coord(0.3 if keeps else 1), *frame, SEA if keeps else SOFT,
            2.5 if node["levels"] == fixed else 1, dashes, *frame,
            draw_text(x, y + 4, name, anchor="middle", size=10),
        ))  # fmt: skip
        if node["levels"] == found["best"]:
            parts.append(Markup('<rect class="p-ring" fill="none" stroke="{}" stroke-width="2.5" '
                'x="{}" y="{}" width="{}" height="{}" rx="8"/>').format(ALARM, *(
                coord(v) for v in (x - wide / 2 - 4, y - NODE_HIGH / 2 - 4, wide + 8, NODE_HIGH + 8)
            )))  # fmt: skip
    high = 24 + NODE_HIGH + (len(layers) - 1) * LAYER_HIGH
    return draw_svg(int(across), high, parts, f"Lattice of levels: {len(nodes)} combinations.")


def node_words(one: Mapping[str, Any], best: Sequence[int] | None) -> str:
    """Describe what a combination of levels does, in a line."""
    levels = " ".join(map(str, one["levels"]))
    rows = count_noun(one["suppressed"], "row")
    if one["loss"] is None:
        return f"{levels}: lacks what is required; at least {rows} would be left out"
    least = ", the least" if one["levels"] == best else ""
    unseen = "; pruned, because its loss cannot be less"
    sentence = f"{levels}: loss {one['loss']:.3g}{least}, {rows} left out"
    return sentence + (unseen if one["pruned"] else "")


def _has_place(row: Mapping[str, Any]) -> bool:
    return all(row[axis] and isfinite(row[axis]["value"]) for axis in ("risk", "error"))


def _tick(value: float, kind: str) -> str:
    if kind == "dates":
        try:
            return str(date(1970, 1, 1) + timedelta(days=int(value)))
        except OverflowError:
            return number(value)
    return f"{value:,.10g}"


def _ends(axis: Mapping[str, Any]) -> tuple[str, str]:
    if axis["kind"] == "categories":
        return shorten(axis["labels"][0], 9), shorten(axis["labels"][-1], 9)
    return _tick(axis["edges"][0], axis["kind"]), _tick(axis["edges"][-1], axis["kind"])


def _shares(counts: Counts, missing: float) -> list[float]:
    total = sum(counts) + missing
    return [count / total if total else 0.0 for count in counts]


def _normal(table: Sequence[Counts]) -> list[list[float]]:
    total = sum(map(sum, table))
    return [[count / total if total else 0.0 for count in line] for line in table]
