"""The inspection on the screen Protect: rare rows, other values of k, the lattice.

All of it is computed from the original: an inspection, recorded where a budget is named.
"""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from shoal.core import Policy
from shoal.errors import InputError
from shoal.evaluation import inspect_table
from shoal.pipeline import booking
from shoal.report import pictures
from shoal.studio import invalid_input, policy_document
from shoal.studio.jobs import JobKind
from shoal.studio.pages import editing
from shoal.studio.pages.common import Form, Here, Present, back_to
from shoal.studio.private_files import read_json

router = APIRouter(include_in_schema=False)


@router.post("/w/{id}/protect/inspect")
def inspect(here: Present) -> Response:
    """Start an inspection of the table under the policy."""
    here.studio.start_inspect(here.workspace)
    return back_to(here, "protect")


@router.post("/w/{id}/protect/levels")
def fix_levels(here: Present, form: Form) -> Response:
    """Fix the levels of a node of the lattice; without a node, allow those of the inspection."""
    inspection = read_json(here.studio.inspection_file(here.workspace))
    shown = None if inspection is None else inspection["alternatives"]
    if inspection is None or shown is None:
        raise InputError("The lattice was not computed yet. Inspect the table first.")
    levels = inspection["levels"]
    if place := form.get("node", ""):
        nodes = shown["lattice"]["nodes"]
        if not place.isdecimal() or int(place) >= len(nodes):
            raise InputError("The lattice has no such combination of levels; load the page again.")
        levels = dict(zip(shown["columns"], nodes[int(place)]["levels"], strict=True))
    stated = {**here.document["protect"], "levels": levels}
    if not levels:
        del stated["levels"]
    here.put_tables({"protect": stated}, settles=[invalid_input.PARAMETERS])
    return back_to(here, "protect")


def values(here: Here, policy: Policy) -> dict[str, Any]:
    """Collect what the card of the chosen method shows of the table."""
    job = here.job(JobKind.INSPECT)
    facts = read_json(here.studio.inspection_file(here.workspace))
    booked = here.studio.add_budget(here.workspace, policy)
    costs = booking.inspection_costs(booked, sample=False) if booked.budget else ()
    fixed = policy.parameters.get("levels", {})
    return {
        "error": job.error if job is not None and job.final else "",
        "running": job is not None and not job.final,
        "costs": (inspect_table.BEGINS, *costs),
        "found": facts,
        "current": facts is not None and _same(here, facts),
        "fixed": facts is not None and fixed != facts["levels"],
        "svg": "",
        **({} if facts is None or facts["alternatives"] is None else _lattice(facts, fixed)),
    }


def _same(here: Here, found: dict[str, Any]) -> bool:
    """Whether only the levels have changed since the inspection."""
    levels = found["levels"] or None
    text = editing.with_key(here.workspace.policy, "protect", "levels", levels)
    folder = here.studio.store.files(here.workspace.id)
    try:
        return bool(policy_document.judge(text, folder=folder).digest == found["digest"])
    except InputError:
        return False


def _lattice(found: dict[str, Any], fixed: Any) -> dict[str, Any]:
    alternatives = found["alternatives"]
    columns, lattice = alternatives["columns"], alternatives["lattice"]
    at = [fixed.get(name) for name in columns]
    nodes = [
        {
            **node,
            "place": place,
            "words": _tag(node, lattice["best"]),
            "fixed": node["levels"] == at,
        }
        for place, node in enumerate(lattice["nodes"])
    ]
    order = sorted(nodes, key=lambda one: (one["loss"] is None, one["loss"] or one["suppressed"]))
    return {
        "loss": alternatives["loss"].replace("-", " "),
        "columns": columns,
        "by_k": alternatives["by_k"].items(),
        "svg": pictures.lattice(lattice, at),
        "nodes": order,
        "size": lattice["size"],
        "layers": [] if lattice["size"] == len(nodes) else lattice["layers"],
    }


def _tag(one: dict[str, Any], best: list[int] | None) -> str:
    if one["levels"] == best:
        return "least loss"
    keeps = "keeps it" if one["loss"] is not None else "lacks it"
    return f"{keeps}, pruned" if one["pruned"] else keeps
