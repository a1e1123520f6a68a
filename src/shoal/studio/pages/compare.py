"""Screen 4: compare methods, after a warning on what inspecting the table costs."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, Response

from shoal.core import Policy
from shoal.errors import InputError, count_noun, visible
from shoal.evaluation.comparison import compare, grid
from shoal.evaluation.results import COLUMN_LOSSES, LOSS_WORDS
from shoal.methods import find, title_of
from shoal.pipeline import booking, planning
from shoal.report import pictures
from shoal.report.phrases import number
from shoal.studio import invalid_input, uploads
from shoal.studio.context import Current, TheStudio
from shoal.studio.jobs import JobKind, JobState
from shoal.studio.pages import rendering
from shoal.studio.pages.common import Form, Here, Present, back_to, screen
from shoal.studio.pages.fields import as_number
from shoal.studio.pages.home import job_values
from shoal.studio.shapes import before_and_after

router = APIRouter(include_in_schema=False)

UNREAD = "Read what inspecting the table costs, and tick the box, before you compare."
STANDINGS = ("frontier", "tied", "beaten", "does not meet the policy")
MOST_WORST = 6
PICTURES = 5
"""Columns whose distribution is drawn beside each candidate: those that candidates change most."""
DETAILS = (
    (
        "repeats",
        "Releases per candidate",
        compare.REPEATS,
        "More releases give narrower intervals.",
    ),
    (
        "max_risk",
        "Largest risk",
        compare.MAX_RISK,
        "A method is recommended only if the interval of its risk ends at this or below.",
    ),
    (
        "rows",
        "Rows",
        compare.MOST_ROWS,
        "A table with more rows is compared on a random sample of it.",
    ),
    (
        "seed",
        "Seed",
        0,
        (
            "The seed decides which people are held out and which COUNT queries are "
            "asked, not the noise."
        ),
    ),
)
AXES = {
    compare.Axes.ADVANTAGE.value: "linkage and inference, and counts over three columns",
    compare.Axes.ALPHA_BETA.value: "naive Bayes, and counts over all columns (alpha and beta)",
}


@router.get("/w/{id}/compare")
def show(here: Present) -> Response:
    """Show what inspecting the table costs, then the results."""
    return back_to(here, "data") if here.policy is None else _show(here, here.policy)


@router.post("/w/{id}/compare/run")
def run(here: Present, form: Form) -> Response:
    """Start a comparison, or a private selection, in a job."""
    if here.policy is None:
        return back_to(here, "data")
    try:
        if form.get("understood") != "yes":
            raise InputError(UNREAD)  # noqa: TRY301
        candidates = _grid(form, here.policy)
        published = form.get("grid") == "published"
        if form.get("look") == "private":
            epsilon = form.get("epsilon", "").strip()
            here.studio.start_select(
                here.workspace, epsilon=epsilon, candidates=candidates, published=published
            )
        else:
            here.studio.start_compare(
                here.workspace,
                on_others=form.get("look") == "others",
                candidates=candidates,
                published=published,
                **_details(form),
            )
    except InputError as error:
        return _show(here, here.policy, error=str(error), form=form)
    return back_to(here, "compare")


@router.get("/w/{id}/compare/candidates/{place}")
def candidate(here: Present, place: int) -> Response:
    """Show one candidate: its losses, claims, and metrics."""
    comparison = here.studio.read_comparison(here.workspace)
    if comparison is None or not 0 <= place < len(comparison["candidates"]):
        raise InputError("The comparison has no such candidate; load the page again.")
    values = {"base": here.base, "candidate": _candidate(here, comparison, place)}
    return HTMLResponse(rendering.page("candidate_alone.html", **values))


@router.post("/w/{id}/compare/choose")
def choose(here: Present, form: Form) -> Response:
    """Take a candidate as the policy's method, and open its settings."""
    label = form.get("label", "")
    private = here.job(JobKind.SELECT)
    if private is not None and private.result and visible(private.result["chosen"]) == label:
        tables = {"protect": private.result["protect"]}
        label = private.result["chosen"]
    else:
        tables = here.studio.candidate(here.workspace, label)
    here.put_tables(tables, settles=[invalid_input.PARAMETERS], chosen=label)
    return back_to(here, "protect")


@router.get("/w/{id}/compare/report")
def report(studio: TheStudio, workspace: Current) -> Response:
    """Send the comparison as a report to save, because it draws by a script: confidential."""
    folder = studio.comparison(workspace)
    if folder is None:
        raise InputError("No comparison is done yet. Start one.")
    return FileResponse(
        folder / "report.html", media_type="text/html", filename="comparison-confidential.html"
    )


def _show(
    here: Here, policy: Policy, *, error: str = "", form: Mapping[str, str] | None = None
) -> Response:
    workspace, studio = here.workspace, here.studio
    given = form or {}
    job = here.job(JobKind.COMPARE, JobKind.SELECT)
    control = workspace.others if studio.path(workspace, workspace.others) else None
    booked = studio.add_budget(workspace, policy)
    listed = {
        key: len(grid.default(policy, published=key == "published"))
        for key in ("to-start-with", "published")
    }
    comparison = _read_result(here)
    return screen(
        here,
        "compare",
        table_costs=booking.inspection_costs(booked, sample=False),
        looks=_looks(booked, others=control is not None),
        look=given.get("look", "others" if control else "table"),
        found=comparison,
        candidate=None,
        picked=None,
        grid=given.get("grid", "to-start-with"),
        grid_sizes={key: count_noun(number, "candidate") for key, number in listed.items()},
        grid_methods=_methods(here, policy, given),
        grid_values=[
            {"key": key, "title": title, "value": given.get(f"grid.{key}", value)}
            for key, title, value in (
                ("k", "Smallest groups (k)", "5, 15"),
                ("epsilon", "Privacy losses (epsilon)", "0.5, 2"),
            )
        ],
        details=[
            {"key": key, "title": title, "value": given.get(key, str(value)), "words": words}
            for key, title, value, words in DETAILS
        ],
        axes=AXES,
        axes_chosen=given.get("axes", compare.Axes.ADVANTAGE.value),
        error=error,
        others=control,
        suffixes=uploads.SUFFIXES,
        **job_values(None if job is None or job.state is JobState.DONE else job),
    )


def _looks(policy: Policy, *, others: bool) -> list[dict[str, str]]:
    needed = "A private choice needs a population with a privacy budget. Name one under Release."
    unpaid = "" if policy.budget else needed
    return [
        {
            "key": "others",
            "title": "Other people instead",
            "words": " ".join(booking.inspection_costs(policy, sample=True)),
            "blocked": "" if others else "This needs a file of other people. Choose one below.",
        },
        {
            "key": "private",
            "title": "One private choice",
            "words": compare.selection_costs(0.5),
            "blocked": unpaid,
        },
        {
            "key": "table",
            "title": "The table itself",
            "words": "All figures are shown, and the warning above applies.",
            "blocked": "",
        },
    ]


def _methods(here: Here, policy: Policy, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """List the methods that may be compared, those to start with first; the policy's is ticked."""
    offers = [offer for offer in planning.offers(policy, here.seen) if not offer.refused]
    generated = given.get("grid") != "own"
    return [
        {
            "name": offer.method.name,
            "title": title_of(offer.method.name),
            "fit": offer.fit,
            "ticked": offer.method.name == policy.method
            if generated
            else bool(given.get(f"method.{offer.method.name}")),
        }
        for offer in offers
    ]


def _grid(form: Mapping[str, str], policy: Policy) -> dict[str, Any] | None:
    """Make the grid of the ticked methods with the stated values."""
    if form.get("grid") != "own":
        return None
    names = [key.removeprefix("method.") for key in form if key.startswith("method.")]
    if not names:
        raise InputError("Choose at least one method to compare.")
    listed = []
    for name in names:
        offer = planning.offer(policy, find(name))
        stated = {key: [value] for key, value in offer.parameters.items()}
        for key in ("k", "epsilon"):
            values = [as_number(text.strip()) for text in form.get(f"grid.{key}", "").split(",")]
            if key in stated and any(values):
                stated[key] = values
        entry: dict[str, Any] = {"method": name, **stated}
        if offer.release_form is not None:
            entry["release_form"] = offer.release_form.value
        listed.append(entry)
    content = {"candidate": listed}
    grid.of(content, where="The list of methods")
    return content


def _details(form: Mapping[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for key, title, value, _ in DETAILS:
        text = form.get(key, "").strip() or str(value)
        try:
            options[key] = type(value)(text)
        except ValueError:
            raise InputError(
                f"{title}: expected a number such as {value}, found '{text}'."
            ) from None
    return {**options, "axes": form.get("axes") or compare.Axes.ADVANTAGE.value}


def _read_result(here: Here) -> dict[str, Any] | None:
    """Read the latest result for the page."""
    private, open_ = here.job(JobKind.SELECT), here.job(JobKind.COMPARE)
    newest = private is not None and (open_ is None or open_.begun <= private.begun)
    if newest and private is not None and private.state is JobState.DONE and private.result:
        return {
            "chosen_privately": private.result["chosen"],
            "sentence": private.result["sentence"],
        }
    facts = here.studio.read_comparison(here.workspace)
    if facts is None:
        return None
    drawn = _choose_columns(facts)
    rows = [
        {
            **row,
            "place": place,
            "title": title_of(row["method"]),
            "settings": row["label"].removeprefix(row["method"]).strip(),
            "pictures": _strip(row, drawn),
            "recommended": row["label"] == facts["recommended"],
            "open": facts["recommended"] is None and row["label"] in facts["ties"],
        }
        for place, row in enumerate(facts["candidates"])
    ]
    return {
        "chosen_privately": "",
        "recommendation": _first_sentence(facts["recommendation"]),
        "drawn": drawn,
        "figures": _figures_of(facts),
        "axes": facts["axes"],
        "settings": facts["settings"],
        "rows": sorted(
            (row for row in rows if row["standing"] is not None),
            key=lambda row: (STANDINGS.index(row["standing"]), row["error"]["value"]),
        ),
        "lost": [
            {"label": row["label"], "why": row["failed"] or compare.NO_PLACE}
            for row in rows
            if row["standing"] is None
        ],
        "baselines": [row for row in facts["baselines"] if row["risk"] is not None],
    }


def _first_sentence(text: str) -> tuple[str, str]:
    """Split a recommendation into its first sentence and the rest."""
    first, stop, rest = text.partition(". ")
    return f"{first}{stop.strip()}", rest


def _choose_columns(facts: Mapping[str, Any]) -> list[str]:
    """Choose the columns that candidates on the frontier change most."""
    most: dict[str, float] = {}
    for row in facts["candidates"]:
        for picture in row.get("pictures", ()) if row["standing"] == "frontier" else ():
            most[picture["name"]] = max(most.get(picture["name"], 0.0), picture["distance"])
    return sorted(most, key=lambda name: -most[name])[:PICTURES]


def _strip(row: Mapping[str, Any], drawn: list[str]) -> list[Any]:
    by_name = {picture["name"]: picture for picture in row.get("pictures", ())}
    return [before_and_after(by_name[name]) for name in drawn if name in by_name]


def _figures_of(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Draw the frontier zoomed in, and with every candidate if that differs."""
    listed = [{**row, "place": place} for place, row in enumerate(facts["candidates"])]
    named = {facts["recommended"], *facts["ties"]}
    near = [
        row for row in listed if row["standing"] in {"frontier", "tied"} or row["label"] in named
    ]
    groups = [{"key": "near", "title": "Near the frontier", "rows": near},
             {"key": "all", "title": "All candidates", "rows": listed}]  # fmt: skip
    placed = [row for row in listed if row["standing"] is not None]
    shown = groups[1:] if len(near) in {0, len(placed)} else groups
    return [{**group, "svg": pictures.frontier({**facts, "candidates": group["rows"]})}
            for group in shown]  # fmt: skip


def _candidate(here: Here, facts: Mapping[str, Any], place: int) -> dict[str, Any]:
    row = facts["candidates"][place]
    folder = here.studio.comparison(here.workspace)
    figures = [] if folder is None else list(_figures(folder / "comparison.parquet", row["label"]))
    worst: dict[str, dict[str, Any]] = {}
    for figure in figures:
        if figure["metric"] in COLUMN_LOSSES and figure["subject"] in here.document["columns"]:
            known = worst.get(figure["subject"])
            if known is None or known["value"] < figure["value"]:
                worst[figure["subject"]] = figure
    first = sorted(worst.values(), key=lambda one: -one["value"])[:MOST_WORST]
    return {
        **row,
        "place": place,
        "chosen": row["label"] == here.workspace.chosen,
        "sentence": compare.in_words(row, facts["settings"].get("axes", compare.Axes.ADVANTAGE)),
        "worst": [
            {
                **figure,
                "width": round(100 * min(1.0, max(0.0, figure["value"])), 1),
                "shown": number(figure["value"]),
            }
            for figure in first
        ],
        "worst_words": LOSS_WORDS,
        "title": title_of(row["method"]),
        "drawn": [pictures.column(picture) for picture in row.get("pictures", ())],
        "figures": figures,
    }


@lru_cache(maxsize=64)
def _figures(path: Path, label: str) -> tuple[dict[str, Any], ...]:
    """List the metrics of one candidate, averaged over its repeats."""
    figures = pl.read_parquet(path).filter(
        (pl.col("label") == label)
        & (pl.col("truth") == "estimate")
        & ~pl.col("metric").is_in(["risk", "error"])
    )
    return tuple(
        {**row, "better": (row["text"] or "").rpartition(", ")[2].partition(" ")[0]}
        for row in figures.select("metric", "subject", "value", "low", "high", "text").to_dicts()
    )
