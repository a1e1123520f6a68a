"""Self-contained HTML reports, from the manifest and the confidential figures.

The public report is a function of the manifest alone, so that nothing of the original can
reach it. Every text is escaped; plots are drawn by the Plotly bundle pasted into the page.
"""

import json
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

CONFIDENTIAL = "CONFIDENTIAL: computed from the original table; not for publication"
AUDIT_CONFIDENTIAL = (
    "CONFIDENTIAL: shows the tables that the audit ran on, row by row; not for publication"
)

STATUS_WORDS = {
    "proved": "proved",
    "conditional": "conditional: true if the assumptions below hold",
    "unproven": "unproven: no proof is known to us",
    "refuted": "refuted: a counterexample exists",
}


def public_report(manifest: Mapping[str, Any]) -> str:
    """Render what may be published beside the table."""
    return _page("public.html", manifest=manifest)


def internal_report(
    manifest: Mapping[str, Any], figures: Mapping[str, Any], context: Mapping[str, str]
) -> str:
    """Render the officer's report, which compares the release with the original."""
    # Plotly reads some HTML in texts, so that names are escaped for it.
    columns = sorted(figures["columns"], key=lambda column: -column["loss"])
    plot = {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": [escape(column["name"]) for column in reversed(columns)],
                "x": [column["loss"] for column in reversed(columns)],
                "text": [column["measure"] for column in reversed(columns)],
                "textposition": "none",
                "hovertemplate": "%{y}: %{x:.3f}<br>%{text}<extra></extra>",
                "marker": {"color": "#2b6c8f"},
            }
        ],
        "layout": {
            "xaxis": {"title": {"text": "loss (0 is none)"}, "rangemode": "tozero"},
            "yaxis": {"automargin": True, "type": "category"},
            "margin": {"t": 10, "r": 10},
            "height": 120 + 28 * len(columns),
        },
    }
    return _page(
        "internal.html",
        manifest=manifest,
        figures={**figures, "columns": columns},
        context=context,
        confidential=CONFIDENTIAL,
        plot=plot,
    )


def audit_report(audit: Mapping[str, Any]) -> str:
    """Render what an audit found: events, probabilities, and the tables that it ran on."""
    return _page("audit.html", audit=audit, confidential=AUDIT_CONFIDENTIAL)


def measure_report(facts: Mapping[str, Any], plots: Mapping[str, Any], difference: str) -> str:
    """Render what a measurement found, for the steward and the officer."""
    return _page("measure.html", facts=facts, plots=plots, difference=difference)


def comparison_report(facts: Mapping[str, Any], plots: Mapping[str, Any]) -> str:
    """Render a comparison of methods: the frontier, the recommendation, and what looking costs."""
    return _page("comparison.html", facts=facts, plots=plots)


def _page(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("shoal.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["island"] = _island
    environment.filters["percent"] = lambda share: f"{100 * share:.1f}%"
    environment.globals["status_words"] = STATUS_WORDS
    environment.globals["plotly"] = _plotly
    environment.globals["zip"] = zip
    return environment


def _island(value: Any) -> Markup:
    """Write JSON so that no text in it can end the script element that holds it."""
    text = json.dumps(value)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)  # noqa: S704 (escaped just above)


@cache
def _plotly() -> Markup:
    bundle = files("shoal.report").joinpath("vendor", "plotly-cartesian.min.js").read_text("utf-8")
    return Markup(bundle)  # noqa: S704 (our own vendored file)
