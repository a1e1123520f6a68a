"""Arrange the officer's report: requirements, attackers' gains, and losses by group.

It converts the manifest and the confidential figures to values for the template. Nothing is
computed here but differences and their order.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import Any

from shoal.core import Estimate, ReleaseForm, Status
from shoal.core.claims import KNOWN_COLUMNS
from shoal.core.manifest import Manifest
from shoal.errors import count_noun
from shoal.metrics.intervals import difference
from shoal.report import pictures
from shoal.report.phrases import (
    list_names,
    list_protected,
    list_unprotected,
    number,
    percent,
    with_role,
)

Row = Mapping[str, Any]

QUESTIONS: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "singling-out",
        "Singling out",
        "Can one person be picked out of the table?",
        ("The attacker looks for a condition that exactly one released row fits, such as an exact "
        "income or a rare combination, and hopes that exactly one person fits it, too. If that "
        "succeeds as often for people who are not in the table, the release is not the cause."),
        ("singling out", "uniques", "individual risk", "contribution to risk"),
    ),
    (
        "linkability",
        "Linkability",
        "Can a released row be traced to its person, or two files about a person be linked?",
        ("The attacker has files about people and looks for the released rows nearest to them. "
        "If both halves of what is known about a person lead to the same row, they are linked."),
        ("linkability", "record linkage", "copies", "closeness", "membership",
         "membership at 1%", "members recognised", "interval disclosure"),
    ),
    (
        "inference",
        "Inference",
        "Can a confidential value of a person be guessed?",
        ("The attacker knows the quasi-identifiers of a person and guesses a confidential value, "
        "from the nearest released row or with a model trained on the release. A model also "
        "guesses well about people who are not in the table: that is what statistics are for, and "
        "it is why the difference counts."),
        ("naive Bayes", "gradient boosting", "inference", "surest guesses", "breach increase"),
    ),
)  # fmt: skip
"""The three questions of European guidance, with the metrics of each."""

RATES = ("singling out", "linkability", "record linkage", "copies",
         "naive Bayes", "gradient boosting", "inference")  # fmt: skip
"""Attacks whose figure is a share of tries that succeed."""

UTILITY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Counting people", ("COUNT queries", "own queries")),
    ("Single columns", ("SSE / SST", "share changed", "rank-matched SSE / SST", "total variation",
                        "mean", "variance", "IL1s", "SSE", "SAE")),
    ("Columns together", ("total variation of pairs", "correlation",
                          "propensity")),
    ("Models", ("learning", "own regression", "interval overlap")),
    ("How coarse the table is", ("granularity", "average class size", "discernibility")),
)  # fmt: skip

LISTED = 3
"""Figures of one measure that are listed; all are in figures.json."""

ASIDE = ("edit rules", "loss by group")
"""Measures of utility with a section of their own."""

NOTHING = 1e-9
"""Losses below it are rounding."""


def questions(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Group the attacks under the three questions, the largest gain first, with bars."""
    rows = [row for row in measured["figures"] if row["part"] == "risk"]
    known = [name for *_, names in QUESTIONS for name in names]
    sections = []
    for anchor, title, asked, how, names in QUESTIONS:
        selected = [row for name in names for row in rows if row["metric"] == name]
        if anchor == "inference":
            selected += [row for row in rows if row["metric"] not in known]
        rates = sorted((row for row in selected if row["metric"] in RATES), key=_gain, reverse=True)
        first = {rate["metric"]: rate for rate in reversed(rates)}
        sections.append(
            {
                "anchor": anchor,
                "title": title,
                "asked": asked,
                "how": how,
                "rates": [{**_rate(row), "first": first[row["metric"]] is row} for row in rates],
                "others": [row for row in selected if row["metric"] not in RATES],
            }
        )
    return sections


def _rate(row: Row) -> dict[str, Any]:
    sides = [("people in the table", "in", ""), ("people not in it", "out", "control"),
             ("blind guess", "blind", "baseline")]  # fmt: skip
    bars = []
    for name, style, prefix in sides:
        share = _estimate(row, prefix)
        if share is not None:
            bars.append({"name": name, "style": style, "text": _per_hundred(share.value),
                         "interval": _between(share), **_bar(share)})  # fmt: skip
    return {**row, "bars": bars, "gain": gain(row)}


def _bar(share: Estimate) -> dict[str, float]:
    """Compute a bar and its whisker in percent of the width."""
    low, value, high = (
        round(100 * min(max(end, 0.0), 1.0), 2) for end in (share.low, share.value, share.high)
    )
    return {"width": value, "from": low, "to": high}


def gain(row: Row) -> str:
    """Describe what the release gives an attacker, over people not in the table or guessing."""
    share, control, blind = (_estimate(row, prefix) for prefix in ("", "control", "baseline"))
    if share is None or (control is None and blind is None):
        return ""
    if control is not None:
        apart = difference(share, control)
        size = f"{_per_hundred(abs(apart.value))} of 100 ({_between(apart)})"
        if apart.low > 0:
            return f"The attack succeeds more often for people in the table, by {size}."
        if apart.high < 0:
            return f"The attack succeeds less often for people in the table, by {size}."
        return f"No difference between people in the table and others is shown: {size}."
    over = share.value - (blind.value if blind else 0.0)
    if over <= 0:
        return "The attack succeeds no more often than a blind guess."
    return (
        f"The attack succeeds in {_per_hundred(over)} of 100 tries more than a blind guess. How "
        "much of this is due to the release is not known without people who are not in the table."
    )


def verdict(
    manifest: Manifest,
    figures: Mapping[str, Any],
    asked: Iterable[Mapping[str, Any]],
    scales: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """Summarise a release: for each question the worst attack, and the three worst losses.

    Attacks come with their baselines, `asked` are the questions and `scales` the losses of columns.
    """
    measured = figures.get("measured") or {}
    risks = [
        {"title": question["title"], "anchor": question["anchor"], **question["rates"][0],
         "name": f"{question['rates'][0]['metric']}: {question['rates'][0]['subject']}"}
        for question in asked
        if question["rates"]
    ]  # fmt: skip
    why = f"Not evaluated. {figures.get('unmeasured') or ''}".strip()
    rows = measured.get("figures", [])
    broken = [
        row for row in rows if row["metric"] == "edit rules" and row["value"] != row["baseline"]
    ]
    left_out = figures.get("suppressed")
    of_original = count_noun(left_out or 0, "row of the original was", "rows of the original were")
    return {
        "risks": risks,
        "controlled": any(risk["control"] is not None for risk in risks),
        "losses": _three_losses(rows) if rows else [],
        "uniques": [*_uniques(manifest, figures), *_homogeneous(manifest, figures)],
        "others": [
            *(scale["columns"][0]["words"] for scale in scales),
            *([f"{of_original} left out."] if left_out else []),
            *(f"Edit rule {row['sentence']}" for row in broken[:1]),
        ],
        "unmeasured": "No attack could be run on a release of this form." if measured else why,
    }  # fmt: skip


def _three_losses(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return the worst two-way marginal, the worst column and the worst group of people."""
    worst_losses = []
    for title, metric in (
        ("Two columns together", "total variation of pairs"),
        ("Worst column", "total variation"),
        ("Worst group of people", "loss by group"),
    ):
        selected = [row for row in rows if row["metric"] == metric]
        if selected:
            worst = max(selected, key=_number)
            text = "" if worst["value"] is None else percent(worst["value"])
            worst_losses.append({"title": title, "text": text, "sentence": worst["sentence"]})
        elif metric == "loss by group":
            worst_losses.append({"title": title, "text": "", "sentence": NO_GROUPS})
    return worst_losses


NO_GROUPS = "Not evaluated: the policy names no column whose groups are compared."


def _uniques(manifest: Manifest, figures: Mapping[str, Any]) -> list[str]:
    unique = figures["unique_on_quasi_identifiers"]
    if unique["released"] is None:
        return []
    by = f"By {list_names(with_role(manifest, 'quasi-identifier'))}, "
    before, here = unique["original"], unique["released"]
    if before is None:
        return [f"{by}{count_noun(here, 'row is', 'rows are')} unique in the release."]
    were, are = ("was" if before == 1 else "were"), ("is" if here == 1 else "are")
    rows = count_noun(unique["rows"], "row")
    of = f"{by}{before:,} of {rows} {were} unique in the original, as it came"
    return [f"{of}; in the release, {here:,} {are}."]


def _homogeneous(manifest: Manifest, figures: Mapping[str, Any]) -> list[str]:
    listed = [
        f"{counts['rows']:,} for {name}"
        for name, counts in figures.get("homogeneous", {}).items()
        if counts["rows"]
    ]
    if not listed:
        return []
    return [
        (
            f"People whose value is disclosed, because all in their group share it: "
            f"{', '.join(listed)}; of {count_noun(manifest.rows, 'row')}."
        )
    ]


def utility(measured: Mapping[str, Any], *, most: int | None = LISTED) -> list[dict[str, Any]]:
    """List utility metrics by topic, worst first, and what did not change in one line.

    List at most `most` of a metric; without a limit, also those with a separate section.
    """
    rows = [row for row in measured["figures"] if row["part"] == "utility"]
    named = {name for _, names in UTILITY for name in names} | set(ASIDE if most else ())
    rest = tuple(dict.fromkeys(row["metric"] for row in rows if row["metric"] not in named))
    sections = []
    for title, names in (*UTILITY, ("Further measures", rest)):
        shown, same, more = [], [], 0
        for name in names:
            selected = [row for row in rows if row["metric"] == name]
            changed = [row for row in selected if not _is_unchanged(row)]
            same += [f"{row['subject']} ({name})" for row in selected if _is_unchanged(row)]
            shown += changed[:most]
            more += len(changed) - len(changed[:most])
        if shown or same:
            sections.append({"title": title, "rows": shown, "same": same, "more": more})
    return sections


def _is_unchanged(row: Row) -> bool:
    value = row["value"]
    if row["low"] is not None or not isinstance(value, float):
        return False
    if row["metric"] == "granularity":
        return value > 1 - NOTHING
    return row["better"] == "lower" and abs(value) < NOTHING


def groups(measured: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any] | None:
    """Make a table of the losses of each column by group of people, worst column first."""
    rows = [row for row in measured["figures"] if row["metric"] == "loss by group"]
    by_length = sorted(columns, key=len, reverse=True)
    cells: dict[str, dict[str, Row]] = {}
    people: dict[str, None] = {}
    for row in rows:
        # A group and a column make the subject; only the names show where it is cut.
        name = next((n for n in by_length if row["subject"].endswith(f": {n}")), None)
        if name is None:
            continue
        group = row["subject"][: -len(name) - 2]
        people[group] = None
        cells.setdefault(name, {})[group] = row
    changed = {
        name: by_group
        for name, by_group in cells.items()
        if any(not _is_unchanged(row) for row in by_group.values())
    }
    if not changed:
        return None
    lines = [
        {"name": name, "cells": [_cell(by_group.get(group), by_group) for group in people]}
        for name, by_group in changed.items()
    ]
    same = [name for name in cells if name not in changed]
    return {"names": list(people), "lines": lines, "same": same, "worst": _uneven(changed)}


def _cell(row: Row | None, own: Mapping[str, Row]) -> dict[str, Any]:
    if row is None:
        return {"text": "", "worst": False}
    if row["value"] is None:
        return {"text": "none", "worst": True}
    most = max(_number(other) for other in own.values())
    value = _number(row)
    return {"text": percent(value), "worst": value == most and value > NOTHING and len(own) > 1}


def _uneven(cells: Mapping[str, Mapping[str, Row]]) -> list[str]:
    """Find the column with the largest difference of loss between groups."""

    def apart(own: Mapping[str, Row]) -> float:
        values = [_number(row) for row in own.values() if row["value"] is not None]
        return max(values, default=0.0) - min(values, default=0.0)

    widest = max(cells.values(), key=apart)
    ordered = sorted(widest.values(), key=_number)
    ends = [ordered[-1]] if len(ordered) == 1 else [ordered[-1], ordered[0]]
    return [row["sentence"] for row in ends]


def roles(manifest: Manifest) -> list[dict[str, str]]:
    """List the policy's columns by role and by their treatment."""
    grouped: dict[tuple[str, str], list[str]] = {}
    tree, bare = manifest.release_form is ReleaseForm.TREE, list_unprotected(manifest)
    for name, spec in manifest.policy["columns"].items():
        treated = (
            "protected" if name in manifest.protected_columns
            else "released as buckets of values" if name in list_protected(manifest)
            else "not released" if name not in bare
            else "counted exactly in each box" if tree else "released as it is"
        )  # fmt: skip
        kind = f" ({spec['kind']})" if spec.get("kind") else ""
        grouped.setdefault((spec["role"], treated), []).append(f"{name}{kind}")
    return [
        {"role": role, "treated": treated, "names": ", ".join(names)}
        for (role, treated), names in grouped.items()
    ]


def losses(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the loss of each protected column, by metric: each has a separate scale.

    Columns are worst first, before them those whose loss is not a number; scales in the order of
    `SCALES`.
    """
    sections = []
    for metric in dict.fromkeys((*SCALES, *(column["metric"] for column in figures["columns"]))):
        selected = [column for column in figures["columns"] if column["metric"] == metric]
        selected.sort(key=lambda column: -inf if column["loss"] is None else -column["loss"])
        if selected:
            rows = [_loss_row(column) for column in selected]
            sections.append({"metric": metric, "meaning": SCALES.get(metric, ""), "columns": rows})
    return sections


SCALES = {
    "SSE / SST": "Numbers and dates, row by row: the squared error as a share of the variance. 0 "
    "means no error, 1 is as much as publishing only the mean, more is worse than that.",
    "rank-matched SSE / SST": "Numbers and dates, both columns sorted: how far the distribution "
    "moved, as a share of the variance. 0 is not at all, 1 is as far as publishing only the mean.",
    "share of rows whose cell was generalised": "Cells that became a range or a group of "
    "categories: 0 is no row, 1 is every row. How wide the ranges are is shown by the granularity.",
    "share of rows whose category changed": "Categories: the share of rows with another "
    "category. 0 is no row, 1 is every row.",
    "total variation": "Categories, by their shares, with the sampling weights where both tables "
    "have them and were evaluated: 0 if all shares are the same, 1 if no value is in common.",
}
"""The measures of a column's loss, and what 0 and 1 mean on each."""


def _loss_row(column: Mapping[str, Any]) -> dict[str, Any]:
    loss = column["loss"]
    if loss is None:
        return {**column, "words": _describe_loss(column), "text": "none"}
    text = number(loss) if column["metric"].endswith("SSE / SST") else percent(loss)
    return {**column, "words": _describe_loss(column), "text": text}


def _describe_loss(column: Mapping[str, Any]) -> str:
    name, loss, metric = column["name"], column["loss"], column["metric"]
    if loss is None:
        return f"The loss of '{name}' cannot be computed: {column['reason']}."
    if metric.endswith("SSE / SST") and loss > 1:
        return (
            f"The squared error of '{name}' is {number(loss)} times its variance: worse than "
            "publishing its mean."
        )
    if metric not in _LOST:
        return f"'{name}' lost {number(loss)} ({metric})."
    share = percent(loss)
    return _LOST[metric].format(name=name, loss=share, points=share.removesuffix("%"))


_LOST = {
    "share of rows whose category changed": "{loss} of the rows have another '{name}'.",
    "share of rows whose cell was generalised": "'{name}' is coarser in {loss} of the rows.",
    "total variation": "The share of any set of values of '{name}' is off by at most {points} "
    "percentage points.",
    "SSE / SST": "The squared error of '{name}' is {loss} of its variance.",
    "rank-matched SSE / SST": "With both columns sorted, the squared error of '{name}' is {loss} "
    "of its variance.",
}


def frontier(comparison: Mapping[str, Any] | None, manifest: Manifest) -> dict[str, Any] | None:
    """List and draw the candidates of a comparison, with this release among them."""
    if comparison is None:
        return None
    rows = [
        {**row, "standing": row["standing"] or "baseline", "this": _is_this(row, manifest)}
        for row in (*comparison["candidates"], *comparison["baselines"])
        if all(row[axis] and isfinite(row[axis]["value"]) for axis in ("risk", "error"))
    ]
    order = ("frontier", "tied", "beaten", "does not meet the policy", "baseline")
    rows.sort(key=lambda row: (order.index(row["standing"]), row["error"]["value"]))
    return {
        "rows": rows,
        "drawn": pictures.frontier(
            comparison, next((row["label"] for row in rows if row["this"]), None)
        ),
        "recommendation": comparison["recommendation"],
        "axes": comparison["axes"],
    }


def _is_this(row: Mapping[str, Any], manifest: Manifest) -> bool:
    given = {name: str(value) for name, value in row["parameters"].items()}
    parameters = {name: str(value) for name, value in manifest.parameters.items()}
    return row["method"] == manifest.method and given.items() <= parameters.items()


def requirements(manifest: Manifest) -> list[dict[str, Any]]:
    """List what the policy requires, with the claim and the check that satisfy it."""
    sections = []
    for name, stated in manifest.policy.get("require", {}).items():
        if name == "population":  # which says how another is checked
            continue
        for value in stated if isinstance(stated, list) else [stated]:
            claims = [c for c in manifest.claims if _answers(c.guarantee, name, value)]
            checks = [c for c in manifest.checks if _answers(c.guarantee, name, value)]
            sections.append(
                {
                    "name": name,
                    "stated": _describe_requirement(value),
                    "claims": [c for c in claims if c.status is not Status.REFUTED],
                    "conditions": [
                        text
                        for claim in claims
                        if claim.status is Status.CONDITIONAL
                        for text in claim.assumes
                        if text != KNOWN_COLUMNS
                    ],
                    "checks": checks,
                }
            )
    return sections


def _answers(guarantee: Mapping[str, Any], name: str, stated: Any) -> bool:
    if guarantee["name"] != name:
        return False
    if not isinstance(stated, Mapping):
        return True
    wanted = stated["column"] if isinstance(stated["column"], list) else [stated["column"]]
    return list(guarantee["columns"]) == list(wanted)


def _describe_requirement(stated: Any) -> str:
    if not isinstance(stated, Mapping):
        return str(stated)
    parts = [f"{key} = {value}" for key, value in stated.items() if key != "column"]
    columns = stated["column"]
    of = list_names(columns if isinstance(columns, list) else [columns])
    return f"{', '.join(parts)} of {of}"


def _estimate(row: Row, prefix: str) -> Estimate | None:
    value = row[prefix or "value"]
    if not isinstance(value, float | int) or not isfinite(value):
        return None
    low, high = (
        row[f"{prefix}_{end}" if prefix else end] for end in ("low", "high")
    )  # fmt: skip
    return Estimate(value, value if low is None else low, value if high is None else high, 0.95)


def _gain(row: Row) -> float:
    share = _estimate(row, "")
    other = _estimate(row, "control") or _estimate(row, "baseline")
    if share is None or other is None:
        return -1.0
    return share.value - other.value


def _number(row: Row) -> float:
    """Return the figure as a number; one without a value counts as the worst."""
    return inf if row["value"] is None else float(row["value"])


def _per_hundred(share: float) -> str:
    hundred = 100 * share
    return f"{hundred:.0f}" if hundred >= 10 or hundred == round(hundred) else f"{hundred:.1f}"


def _between(share: Estimate) -> str:
    ends: Sequence[str] = [f"{100 * end:.1f}".removesuffix(".0") for end in (share.low, share.high)]
    return f"{ends[0]} to {ends[1]}"
