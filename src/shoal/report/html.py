"""Self-contained HTML reports from the manifest and the confidential figures.

The public report is a function of the manifest and of the released table alone, so nothing else of
the original can reach it.
Every text is escaped. No report holds a script, and all forbid scripts and
requests by a content security policy: pictures are SVG and print as they are.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from jinja2 import (
    ChoiceLoader,
    Environment,
    PackageLoader,
    StrictUndefined,
)
from markupsafe import Markup, escape

from shoal.core import Release
from shoal.core.manifest import Manifest
from shoal.core.serialise import plain
from shoal.errors import count_noun, visible
from shoal.methods import REGISTRY
from shoal.report import officer, phrases, pictures

CONFIDENTIAL = "CONFIDENTIAL: computed from the original table; not for publication"
REPORT = "report.html"
"""Name of a release's report, in both folders."""
AUDIT_CONFIDENTIAL = (
    "CONFIDENTIAL: shows the tables that the audit ran on, row by row; not for publication"
)


def write_report(release: Release, path: str | Path) -> None:
    """Write the public report of a release: claims, assumptions and checks, in one HTML file."""
    page = public_report(release.manifest, pictures.count_released(release))
    Path(path).write_text(page, encoding="utf-8")


def public_report(manifest: Manifest, columns: Sequence[Mapping[str, Any]] | None = None) -> str:
    """Render the public report: a function of manifest and released table alone.

    The columns are the counts of the released table, see `released_columns.columns`; none where it
    is not drawn.

    The manifest has the digest of this report, which cannot be in it. The report has a digest of
    all the rest, so no field of a manifest changes without its report.
    """
    files = {name: facts for name, facts in manifest.files.items() if name != REPORT}
    manifest = manifest.model_copy(update={"files": files})
    fields = json.dumps(manifest.as_values(), sort_keys=True, ensure_ascii=False)
    do, dont = phrases.uses(manifest)
    return _page(
        "public.html",
        manifest=manifest,
        fields_digest=sha256(fields.encode()).hexdigest(),
        summary=_summary(manifest),
        do=do,
        dont=dont,
        codebook=phrases.codebook(manifest),
        analysis=phrases.analysis(manifest),
        columns=[pictures.column(column) for column in columns or ()],
        with_margins=[column["name"] for column in columns or () if column["answers"]],
        glossary=phrases.PUBLIC_GLOSSARY,
    )


def internal_report(
    manifest: Manifest, figures: Mapping[str, Any], context: Mapping[str, str]
) -> str:
    """Render the officer's report, which compares the release with the original."""
    measured = figures.get("measured")
    asked = officer.questions(measured) if measured else []
    return _page(
        "internal.html",
        manifest=manifest,
        figures=figures,
        context=context,
        confidential=CONFIDENTIAL,
        summary=_summary(manifest),
        measured=measured,
        **collect_decisions(manifest, figures),
        controlled=any(rate["control"] is not None for q in asked for rate in q["rates"]),
        questions=asked,
        losses=officer.losses(figures),
        utility=officer.utility(measured) if measured else [],
        groups=officer.groups(measured, manifest.columns) if measured else None,
        rules=[r for r in measured["figures"] if r["metric"] == "edit rules"] if measured else [],
        glossary=phrases.GLOSSARY,
        frontier=officer.frontier(figures.get("comparison"), manifest),
        requirements=officer.requirements(manifest),
        roles=officer.roles(manifest),
    )


def collect_decisions(manifest: Manifest, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Collect what the officer and the steward decide by.

    verdict: promises, risks and losses. drawn: pictures that compare with the original, if the
    release was evaluated. bare: the columns that are published unprotected. repaired: those of them
    that rules name, where rows may be repaired. Figures that could not be made are none.
    """
    known = {"columns": [], "unique_on_quasi_identifiers": {"released": None}, **figures}
    known["unmeasured"] = figures.get("failed") or figures.get("unmeasured")
    asked = officer.questions(known["measured"]) if known.get("measured") else []
    bare, repaired = phrases.list_unprotected(manifest), phrases.repairable(manifest)
    return {
        "verdict": officer.verdict(manifest, known, asked, officer.losses(known)),
        "drawn": pictures.draw_all(known.get("pictures") or {}),
        "bare": bare,
        "repaired": [name for name in bare if name in repaired],
    }


def stylesheet() -> str:
    """Return the style of the verdict and of pictures, for pages in the reports' colours."""
    return _page("pictures.css")


def render_failure(reason: str) -> str:
    """Render a page that explains why there is no officer's report, and what to do."""
    return _page("failed.html", confidential=CONFIDENTIAL, reason=reason)


def audit_report(audit: Mapping[str, Any]) -> str:
    """Render the result of an audit: events, probabilities, and its tables."""
    return _page("audit.html", audit=audit, confidential=AUDIT_CONFIDENTIAL)


def evaluation_report(
    facts: Mapping[str, Any], compared: Mapping[str, Any], difference: str
) -> str:
    """Render the result of an evaluation with its pictures, for the steward and the officer."""
    parts = {row["part"] for row in facts["figures"]}
    return _page(
        "evaluation.html",
        facts=facts,
        drawn=pictures.draw_all(compared),
        questions=officer.questions(facts) if "risk" in parts else [],
        utility=officer.utility(facts, most=None),
        difference=difference,
    )


def comparison_report(facts: Mapping[str, Any]) -> str:
    """Render a comparison of methods: the frontier, the recommendation, and the cost."""
    return _page("comparison.html", facts=facts, drawn=pictures.frontier(facts))


def _summary(manifest: Manifest) -> str:
    """Return a line on the method, if this version knows it."""
    method = REGISTRY.get(manifest.method)
    return method.summary if method else ""


def _page(template: str, **values: Any) -> str:
    return environment("shoal.report").get_template(template).render(**values)


@cache
def environment(package: str) -> Environment:
    """Make the template environment of a package, with the shared filters and words."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("shoal.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=show_value,
    )
    environment.filters["island"] = island
    environment.filters["lines"] = lines
    environment.filters["plain"] = plain
    environment.filters["percent"] = phrases.percent
    environment.filters["listed"] = phrases.list_names
    environment.filters["title_of"] = phrases.title
    environment.filters["meaning_of"] = phrases.meaning
    environment.filters["group_size"] = phrases.group_size
    environment.filters["figure"] = figure
    environment.filters["counted"] = count_noun
    environment.globals["status_words"] = phrases.STATUS_WORDS
    environment.globals["form_words"] = phrases.FORM_WORDS
    environment.globals["remark_words"] = phrases.REMARK_WORDS
    environment.globals["judgement"] = phrases.JUDGEMENT
    environment.globals["limits"] = phrases.LIMITS
    environment.globals["zip"] = zip
    return environment


def figure(value: Any) -> str:
    """Write a number for people: whole with separators, else to three digits; or "none"."""
    if value is None:
        return "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return phrases.number(value) if isinstance(value, float) else str(value)


def show_value(value: Any) -> Any:
    """Show invisible characters as escapes; leave markup unchanged."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def lines(text: str) -> Markup:
    """Keep the line breaks of a text in a template."""
    return escape(visible(text, lines=True))


def island(value: Any) -> Markup:
    """Write JSON that cannot end the script element around it."""
    text = json.dumps(_seen(value))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)  # noqa: S704 (escaped just above)


def _seen(value: Any) -> Any:
    """Make every character of a plain value visible; line breaks stay."""
    if isinstance(value, str):
        return visible(value, lines=True)
    if isinstance(value, float):
        return value if isfinite(value) else None  # JSON has no others
    if isinstance(value, Mapping):
        return {key: _seen(item) for key, item in value.items()}
    return [_seen(item) for item in value] if isinstance(value, list | tuple) else value
