"""Sentences about a release follow from its facts: each has a condition, and a checker knows it."""

import re

import numpy as np
import polars as pl
import pytest

import shoal
from shoal import io
from shoal.core.claims import claim_lines
from shoal.core.exits import for_method
from shoal.hazmat.fakes import SeededNoise
from shoal.methods import REGISTRY
from shoal.pipeline import protect_table
from shoal.report import html, terminal

COLUMNS = {
    "person": {"role": "identifier"},
    "home": {"role": "identifier", "household": True},
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]},
    "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
    "ill": {"role": "confidential", "kind": "nominal", "categories": ["no", "yes"]},
    "pay": {"role": "confidential", "kind": "numeric", "bounds": [0, 100]},
    "area": {"role": "other", "kind": "nominal", "categories": ["a", "b"], "stratum": True,
             "public": True},
    "weight": {"role": "other", "kind": "numeric", "bounds": [0, 9], "sampling_weight": True,
               "public": True},
}  # fmt: skip


def table(n=60):
    rng = np.random.default_rng(0)
    return pl.DataFrame({
        "person": np.arange(n), "home": np.arange(n) // 2,
        "age": rng.integers(20, 60, n), "sex": rng.choice(["f", "m"], n),
        "ill": rng.choice(["no", "yes"], n), "pay": rng.integers(0, 100, n),
        "area": rng.choice(["a", "b"], n), "weight": rng.integers(1, 9, n),
    })  # fmt: skip


def cases():
    for name, method in REGISTRY.items():
        for form in method.forms.offered:
            yield name, form.value, {}
    yield "mondrian", "linked-shuffled", {"output": "centroids"}


def released(name, form, more, *, persons):
    columns = dict(COLUMNS)
    stated = {"version": 1, "columns": columns}
    if persons == "one row":
        stated["one_row_per_person"] = True
    elif persons in {"numbered", "several rows"}:
        columns["person"] = {"role": "identifier", "privacy_unit": True}
    parameters = {**REGISTRY[name].example.parameters, **more}
    if REGISTRY[name].forms.implied(REGISTRY[name].parameters(**parameters)) is None:
        stated["protect"] = {"method": name, "release_form": form, **parameters}
    else:
        stated["protect"] = {"method": name, **parameters}
    if form == "tree":
        stated["protect"]["output"] = "tree"
        stated["protect"].pop("release_form", None)
    if name in {"individual-ranking", "optimal-univariate"}:
        stated["protect"]["columns"] = ["age"]
    if form == "tree" or name in {"dp-kdtree", "dp-quadtree"}:
        stated["protect"]["count"] = "ill"
    left_out = ["pay"] if name == "pram" else []
    if REGISTRY[name].noisy and name != "public-laplace":
        left_out += ["area", "weight"]
    for column in left_out:
        del columns[column]
    stated["release"] = {"accept_constant": list(columns), "accept_distinct": list(columns)}
    data = table().select(list(columns))
    if persons == "several rows":
        data = pl.concat([data, data])
    policy = shoal.policy.load(stated)
    done = protect_table.run(shoal.plan(policy), io.from_native(data), noise=SeededNoise(1))
    return policy, done


CONDITIONS = {
    r"centres of groups": lambda r, _p: (
        "aggregate" in r.manifest.parameters
        and r.manifest.parameters.get("output", "centroids") == "centroids"
    ),
    r"[Gg]roups? may (span|hold)": lambda r, _p: "k" in r.manifest.parameters,
    r"about one person": lambda _r, p: p.schema.one_row_per_person,
    r"no row is a person": lambda r, _p: (
        r.manifest.release_form in {"synthetic", "column-shuffled"}
    ),
    r"[Rr]ows? (is|are) shuffled": lambda r, _p: r.manifest.release_form == "linked-shuffled",
    r"A (released )?row is a box": lambda r, _p: r.manifest.release_form == "tree",
    r"a missing cell is a value of its own": lambda r, _p: r.manifest.release_form == "synthetic",
    r"clamped silently": lambda r, _p: REGISTRY[r.manifest.method].noisy,
    r"check has [\d,]+ persons|smallest group: [\d,]+ persons": lambda r, _p: all(
        check.remarks["counted"] == "persons" for check in r.checks
    ),
    r"check has [\d,]+ rec|smallest group: [\d,]+ rec": lambda r, _p: (
        not any(check.remarks.get("counted") == "persons" for check in r.checks)
    ),
    r"(shared by at least|fewer than) [\d,]+ (rows|records)": lambda _r, p: (
        p.schema.persons is None and not p.schema.one_row_per_person
    ),
    r"which the policy does not state": lambda _r, p: (
        p.schema.persons is None and not p.schema.one_row_per_person
    ),
}
"""What must be true of a release and its policy for a sentence to stand in what is said of it."""


def sentences(policy, done):
    release, setting = done.release, shoal.plan(policy).setting
    manifest = release.manifest
    yield from terminal.release_text(release, release.manifest.notes).splitlines()
    yield from terminal.checks_text(release.checks).splitlines()
    compared = for_method(done.evidence)
    figures = compared.figures(setting.columns, setting.release_form)
    figures |= {"clamped": compared.clamped, "suppressed": 0}
    pages = html.public_report(manifest, []), html.internal_report(manifest, figures, {})
    for page in pages:
        yield from re.sub(
            r"<style.*?</style>|<script.*?</script>|<[^>]+>", " ", page, flags=re.DOTALL
        ).split(". ")


@pytest.mark.parametrize("persons", ["one row", "numbered", "several rows", "not stated"])
@pytest.mark.parametrize(("name", "form", "more"), list(cases()))
def test_a_sentence_stands_only_where_its_condition_is_true(name, form, more, persons):
    if persons == "several rows" and (REGISTRY[name].noisy or form == "tree"):
        return  # they refuse such a table, or count its records
    policy, done = released(name, form, more, persons=persons)

    for sentence in sentences(policy, done):
        for words, holds in CONDITIONS.items():
            if re.search(words, sentence):
                assert holds(done.release, policy), f"{words!r} in {sentence!r}"


@pytest.mark.parametrize(("name", "form", "more"), list(cases()))
def test_a_refuted_claim_says_what_refutes_it_and_no_two_claims_read_alike(name, form, more):
    policy, _ = released(name, form, more, persons="one row")
    claims = shoal.plan(policy).claims

    lines = claim_lines(claims)

    refuted = [claim for claim in claims if claim.status.value == "refuted"]
    assert sum(line.startswith("  refuted by  ") for line in lines) == len(refuted)
    blocks = "\n".join(lines).split("  claim  ")[1:]
    assert len(set(blocks)) == len(blocks) == len(claims)
    assert len({str(claim.guarantee) for claim in claims}) == len(claims)
    assert all(len(line) <= 200 for line in lines if line.startswith("  refuted by  "))
