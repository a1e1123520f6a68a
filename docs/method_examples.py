# noqa: INP001 (a program beside the pages, not a package)
"""One example of every method, for its page: a policy, three rows before and after, a picture.

All examples are runs of the method on people of the sample who work: the first 60 of them where it
groups rows, the first 1,000 where it adds noise, recodes or blanks. Noise is seeded here, so the
pages are the same each time; what a page promises is what a plan of the same policy promises.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import polars as pl
from markupsafe import Markup

import shoal
from shoal.core import ReleaseForm, Status
from shoal.core.serialise import plain
from shoal.errors import count_noun
from shoal.hazmat.fakes import SeededNoise
from shoal.methods import REGISTRY, Method
from shoal.pipeline.planning import Plan, plan
from shoal.report import phrases
from shoal.report.shapes import (
    INK,
    PALE,
    SEA,
    SOFT,
    coord,
    draw_line,
    draw_rect,
    draw_svg,
    draw_text,
    shorten,
)
from shoal.studio.policy_document import write_toml

SEED = 1927
MOST = 300
"""Points that a picture shows."""
AGE, HOURS = (15, 80), (0, 80)
"""The bounds of the two columns that a picture shows."""
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [*AGE], "step": 1},
    "hours": {"role": "quasi-identifier", "kind": "numeric", "bounds": [*HOURS], "step": 1},
    "education": {
        "role": "quasi-identifier",
        "kind": "ordinal",
        "categories": ["none", "primary", "secondary", "tertiary"],
    },
    "marital": {
        "role": "confidential",
        "kind": "nominal",
        "categories": ["single", "cohabiting", "married", "divorced", "widowed"],
    },
}
BESIDE: dict[str, dict[str, Any]] = {
    "record-swapping": {"region": {"role": "quasi-identifier", "kind": "nominal"}},
}
"""Columns that an example needs in place of the confidential one."""
PARAMETERS: dict[str, dict[str, Any]] = {
    "full-domain": {"intervals": {"age": [10, 20], "hours": [40]}},
    "record-swapping": {"columns": ["region"], "rate": [0.2, 0.3], "similar": ["education"]},
}
"""Parameters that an example needs beside those that the method's file states."""


class Example(NamedTuple):
    """A run of a method on people of the sample.

    Attributes:
        aligned: row i of the release is about row i of the table.
    """

    method: Method[Any]
    policy: dict[str, Any]
    planned: Plan
    before: pl.DataFrame
    after: pl.DataFrame
    aligned: bool


@cache
def run(name: str) -> Example:
    """Protect people of the sample by a method."""
    method = REGISTRY[name]
    policy = policy_of(method)
    forms = method.forms.offered
    aligned = ReleaseForm.ROW_ALIGNED in forms and not method.forms.must_choose
    crowd = method.noisy or method.cells.has_levels or method.cells.blanks
    people = take_people(1000 if crowd else 60, list(policy["columns"]))
    made = shoal.protect(people, policy, keep_order=aligned, noise=SeededNoise(SEED))
    return Example(method, policy, plan(policy), people, made.data, aligned)


def take_people(number: int, columns: list[str]) -> pl.DataFrame:
    """Take the first people of the sample who work, and some of their columns."""
    working = shoal.sample.load().filter(pl.col("hours") > 0, pl.col("age") <= AGE[1])
    return working.head(number).select(columns)


def policy_of(method: Method[Any]) -> dict[str, Any]:
    """Return the example's policy: the method's own parameters, for groups that suit the table."""
    known = method.parameters.model_fields
    columns = {name: dict(column) for name, column in COLUMNS.items()}
    if "group_by" in known:
        columns["education"] = {**columns["education"], "public": True, "role": "other"}
    elif method.has_groups:
        del columns["education"]  # groups in two columns can be seen in a picture
    if method.noisy and all(column.role != "confidential" for column in method.example.columns):
        del columns["marital"]
    if method.name in BESIDE:
        columns = {**columns, **BESIDE[method.name]}
        del columns["marital"]
    stated = {**method.example.parameters, **PARAMETERS.get(method.name, {})}
    if method.noisy and "k" in stated:
        stated["k"] = 50
    if method.forms.must_choose:
        stated["release_form"] = method.forms.offered[0].value
    protect = {"method": method.name, **stated}
    return {"version": 1, "one_row_per_person": True, "columns": columns, "protect": protect}


def written(name: str) -> str:
    """Write the example of a method: rows before and after, the picture, the policy, promises."""
    example = run(name)
    return "\n\n".join(
        [
            rows_text(example),
            f"![{name}, before and after](pictures/{name}.svg)",
            f"*{caption(example)}*",
            "The policy to copy:",
            f"```toml\n{write_toml(example.policy).strip()}\n```",
            "## What it promises, and what it does not",
            "\n".join(promise_lines(example)),
        ]
    )


def rows_text(example: Example) -> str:
    """Three rows before and after, those that changed first; how they belong together."""
    before, after = example.before, example.after
    picked = range(3)
    if example.aligned:
        changed = [
            place
            for place in range(len(before))
            if [*map(write_cell, before.row(place))] != [*map(write_cell, after.row(place))]
        ]
        picked = (changed + [place for place in range(3) if place not in changed])[:3]
    rows = [(*map(write_cell, before.row(i)), "", *map(write_cell, after.row(i))) for i in picked]
    heads = [*before.columns, "→", *after.columns]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))
    how = (
        "a row stands beside the row that it was; a file to publish has them shuffled."
        if example.aligned
        else "the rows on the right are nobody's, and stand beside no row on the left."
    )
    of = count_noun(len(before), "person").replace("persons", "people")
    sample = "[the sample](../../tutorials/steward.md) who work"
    return f"Three rows of {of} of {sample}, before and after; {how}\n\n{table}"


def write_cell(value: Any) -> str:
    """Write a cell: numbers with three digits, a missing cell as a dash, long sets cut."""
    if value is None:
        return "—"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def promise_lines(example: Example) -> list[str]:
    """Put what the plan of the example claims into words, and what it does not claim."""
    alike: dict[tuple[Status, str, str], list[str]] = {}
    for claim in example.planned.claims:
        fields = plain(claim.guarantee)
        columns = phrases.of_columns(fields)
        said = phrases.meaning(fields).replace(columns, "{}", 1)
        if claim.status is Status.REFUTED:
            said = f"{phrases.short(fields)} of {{}}: a counterexample is known."
        conditional = claim.status is Status.CONDITIONAL
        given = " The assumptions stand [below](#claims)." if conditional else ""
        alike.setdefault((claim.status, said, given), []).append(columns)
    lines = []
    for (status, said, given), columns in alike.items():
        each = "" if len(columns) == 1 else f"For each of {phrases.list_names(columns)}: "
        filled = said.format(columns[0]) if len(columns) == 1 else said.format("the column")
        lines.append(f"- *{status.value.capitalize()}*. {each}{filled}{given}")
    lines = lines or ["- *Unproven*. Nothing is promised."]
    return lines + [f"- *Not claimed*. {said}" for said in example.planned.not_claimed]


def caption(example: Example) -> str:
    """Say what the picture of an example shows."""
    shown = min(len(example.before), MOST)
    after = "the rows that are released"
    if _is_coarse(example.after):
        after = "the ranges that are released, darker where more people are"
    elif example.aligned:
        after = "where each of them lies in the release"
    third = _third(example)
    below = f" Below: the shares of {third}, before (outlines) and after (bars)." if third else ""
    return f"Left: age and hours of {shown} people. Right: {after}.{below}"


def _third(example: Example) -> str:
    """The column of the bars: the last of those beside the two that changed; or none."""
    names = [name for name in example.before.columns if name not in {"age", "hours"}]
    was, now = example.before, example.after
    changed = [n for n in names if [*map(write_cell, was[n])] != [*map(write_cell, now[n])]]
    return changed[-1] if changed else ""


def _is_coarse(frame: pl.DataFrame) -> bool:
    two = [frame["age"], frame["hours"]]
    return any(column.dtype == pl.String or column.has_nulls() for column in two)


LEFT, TOP, SIDE, HEIGHT, GAP = 34, 26, 300, 200, 48


def draw(name: str) -> str:
    """Draw the example of a method: two columns before and after, and a third as bars."""
    example = run(name)
    before, after, third = example.before, example.after, _third(example)
    second, wide, high = LEFT + SIDE + GAP, 2 * (LEFT + SIDE) + 30, 390 if third else 262
    parts = [
        draw_rect("p-paper", "#ffffff", (0, 0, wide, high)),
        *_frame(LEFT, "before"),
        *_frame(second, "after"),
        _dots(_points(before), LEFT, SOFT),
        *(_ranges(after, second) if _is_coarse(after) else _moved(example, second)),
        *(_bars(before, after, third) if third else ()),
    ]
    return str(draw_svg(wide, high, parts, caption(example)))


def _place(age: float, hours: float, left: int) -> tuple[float, float]:
    x = left + SIDE * (age - AGE[0]) / (AGE[1] - AGE[0])
    return x, TOP + HEIGHT * (1 - hours / HOURS[1])


def _frame(left: int, title: str) -> Iterable[Markup]:
    yield draw_rect("p-back", PALE, (left, TOP, SIDE, HEIGHT), 0.35)
    yield draw_text(left, TOP - 9, title, bold=True)
    for value in (20, 40, 60, 80):
        yield draw_text(
            _place(value, 0, left)[0],
            TOP + HEIGHT + 14,
            str(value),
            anchor="middle",
            soft=True,
            size=10,
        )
    yield draw_text(left + SIDE, TOP + HEIGHT + 28, "age", anchor="end", soft=True)
    for value in (0, 40, 80):
        yield draw_text(
            left - 5,
            _place(AGE[0], value, left)[1] + 4,
            str(value),
            anchor="end",
            soft=True,
            size=10,
        )
    yield draw_text(left + 4, TOP + 12, "hours", soft=True)


def _points(frame: pl.DataFrame) -> list[tuple[float, float] | None]:
    shown = frame.head(MOST)
    pairs = zip(shown["age"], shown["hours"], strict=True)
    return [None if a is None or h is None else (float(a), float(h)) for a, h in pairs]


def _dots(
    points: Sequence[tuple[float, float] | None], left: int, colour: str, opacity: float = 1.0
) -> Markup:
    """Dots in one path, since a page has many: a line of no length has a round cap."""
    many = len(points) > 200
    steps = "".join(
        f"M{coord(round(x, 1))} {coord(round(y, 1))}h0"
        for x, y in (_place(*point, left) for point in points if point is not None)
    )
    return Markup(
        '<path d="{}" fill="none" stroke="{}" stroke-opacity="{}" stroke-width="{}" '
        'stroke-linecap="round"/>'
    ).format(steps, colour, (0.7 if many else 0.9) * opacity, 3.4 if many else 5)


def _moved(example: Example, left: int) -> Iterable[Markup]:
    """Released points; where rows are aligned, with a line from where each of them was."""
    there = _points(example.after)
    if example.aligned:
        was = _points(example.before)
        shown = [(one, two) for one, two in zip(was, there, strict=True) if one and two][:120]
        steps = "".join(
            f"M{coord(round(x, 1))} {coord(round(y, 1))}L{coord(round(u, 1))} {coord(round(v, 1))}"
            for (x, y), (u, v) in ((_place(*one, left), _place(*two, left)) for one, two in shown)
        )
        yield Markup(
            '<path d="{}" fill="none" stroke="{}" stroke-opacity=".35" stroke-width="1"/>'
        ).format(steps, SEA)
        yield _dots([one for one, _ in shown], left, SOFT, 0.35)
    yield _dots(there, left, SEA)


RANGE = re.compile(r"[\[(]?(-?[\d.]+)(?:, ?|-)(-?[\d.]+)[\])]?")


def _ends(value: Any, limits: tuple[float, float]) -> tuple[float, float]:
    """The ends of a released range; of a number itself, of a blank or a star the bounds."""
    if value is None or value == "*":
        return limits
    found = RANGE.fullmatch(str(value))
    low, high = (float(found[1]), float(found[2])) if found else (float(value), float(value))
    return low - 0.5, high + 0.5


def _ranges(frame: pl.DataFrame, left: int) -> Iterable[Markup]:
    """A rectangle for each combination of ranges, darker where more people are."""
    counts = frame.group_by("age", "hours", maintain_order=True).len()
    for age, hours, many in counts.iter_rows():
        (a, b), (c, d) = _ends(age, AGE), _ends(hours, HOURS)
        x0, y0 = _place(max(a, AGE[0]), max(c, HOURS[0]), left)
        x1, y1 = _place(min(b, AGE[1]), min(d, HOURS[1]), left)
        yield Markup(
            '<rect x="{}" y="{}" width="{}" height="{}" fill="{}" fill-opacity="{}" stroke="{}" '
            'stroke-width="1.2"/>'
        ).format(
            *(coord(v) for v in (x0, y1, x1 - x0, y0 - y1)),
            SEA,
            round(min(0.5, 3 * many / len(frame) + 0.04), 2),
            SEA,
        )


def _bars(before: pl.DataFrame, after: pl.DataFrame, name: str) -> Iterable[Markup]:
    """The shares of a column's values, at most eight: before as an outline, after as a bar."""
    released = [write_cell(value) for value in after[name]]
    seen = [write_cell(value) for value in before[name]]
    stated = COLUMNS.get(name, {}).get("categories") or sorted(set(seen))
    values = [*stated, *dict.fromkeys(value for value in released if value not in stated)]
    shares = {
        value: (seen.count(value) / len(seen), released.count(value) / max(len(released), 1))
        for value in values
    }
    values = [
        value for value in values if value in sorted(values, key=lambda v: -max(shares[v]))[:8]
    ]
    foot, high = 366, 62 / max(map(max, shares.values()))
    wide = (2 * SIDE + GAP) / len(values)
    head = f"{name}: share of the rows before (outline) and after"
    yield draw_text(LEFT, foot - 76, head, soft=True)
    for place, value in enumerate(values):
        x = LEFT + place * wide
        old, new = (high * share for share in shares[value])
        yield draw_rect("p-after", SEA, (x, foot - new, wide * 0.7, new), 0.75)
        yield Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="{}"/>').format(
            *map(coord, (x, foot - old, wide * 0.7, old)), INK
        )
        middle = x + wide * 0.35
        yield draw_text(
            middle, foot + 13, shorten(value, int(wide / 6)), anchor="middle", soft=True, size=10
        )
    yield draw_line(LEFT, foot, LEFT + 2 * SIDE + GAP, foot, faint=True)
