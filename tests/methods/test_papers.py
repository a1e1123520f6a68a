"""The five papers: their names, their pages, their citations, and the prices that claims quote."""

import csv
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

import shoal
from shoal.core import Status
from shoal.errors import InputError
from shoal.methods import NAMES, REGISTRY, TO_START_WITH, find
from shoal.methods.papers import (
    PAPERS,
    cite_shortly,
    explain_name,
    find_paper,
    named_in_papers,
    papers_of,
)
from shoal.report.papers import write_bibliography
from shoal.report.terminal import method_text

ROOT = Path(__file__).parents[2]
PROPOSED = sorted({(method, key) for key, paper in PAPERS.items() for method in paper.methods})
CALLED = [
    (paper.key, known, method, stated)
    for paper in PAPERS.values()
    for method, names in paper.names.items()
    for known, stated in names.items()
]


@pytest.mark.parametrize(("method", "key"), PROPOSED)
def test_a_method_and_its_paper_link_each_other(method, key):
    page = (ROOT / f"docs/reference/methods/{method}.md").read_text("utf-8")
    papers = "".join(path.read_text("utf-8") for path in (ROOT / "docs/papers").glob(f"{key}*.md"))

    assert f"](../../papers/{key}.md)" in page
    assert f"](../reference/methods/{method}.md)" in papers


@pytest.mark.parametrize(
    ("page", "prefix"),
    [("README.md", "docs/"), ("docs/index.md", ""), ("docs/papers/index.md", "")],
)
@pytest.mark.parametrize("key", PAPERS)
def test_every_front_page_links_every_paper(page, prefix, key):
    link = f"]({key}.md)" if page == "docs/papers/index.md" else f"]({prefix}papers/{key}.md)"

    assert link in (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize(("key", "known", "method", "stated"), CALLED)
def test_what_a_paper_calls_a_method_is_understood(key, known, method, stated):
    """Spelled as in the paper, or with other marks between the words."""
    paper, found, how = named_in_papers(known)
    loose = known.replace("+", " ").replace("_", "-").lower()

    assert (found, how) == (method, stated) or known == "MDAV"
    assert named_in_papers(loose)[1] == found
    assert method_text(known).startswith(f"{found}: ")
    if known.lower() not in NAMES:
        with pytest.raises(InputError, match=rf"{re.escape(paper.short)} use this name for"):
            find(known)
    assert key in PAPERS


@pytest.mark.parametrize("key", PAPERS)
def test_a_paper_in_place_of_a_method_is_told_its_methods(key):
    assert method_text(key).startswith(f"{key}: ")
    assert all(f"'{method}'" in explain_name(key) for method in PAPERS[key].methods)


def test_a_paper_that_is_not_one_of_the_five_is_refused_with_their_names():
    with pytest.raises(InputError, match=r"No paper named 'sanchez2015'. Did you mean") as raised:
        find_paper("sanchez2015")

    assert all(key in str(raised.value) for key in PAPERS)


def test_every_method_is_to_start_with_or_cites_what_was_published():
    assert set(TO_START_WITH) == {"local-suppression", "full-domain", "mondrian", "mdav", "auto"}
    for name in set(NAMES) - set(TO_START_WITH):
        assert papers_of(name) or re.search(r" \d{4}$", cite_shortly(REGISTRY[name].reference))


@pytest.mark.parametrize("name", [None, *PAPERS, *NAMES])
def test_a_bibliography_is_whole_entries_of_bibtex(name):
    text = write_bibliography(name)

    entries = re.split(r"\n\n", text)
    expected = PAPERS if name is None else [name] if name in PAPERS else papers_of(name)
    method = REGISTRY.get(name)
    cited = [method is None or paper.title in method.reference for paper in expected]
    assert len(entries) == 1 + len(expected) + (not any(cited))
    for entry in entries:
        assert re.fullmatch(r"@[a-z]+\{[\w-]+,\n(  [a-z]+ = \{.*\},\n)+\}", entry)
        assert entry.count("{") == entry.count("}")
    assert shoal.__version__ in entries[0]


def _load_generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate


@cache
def _refuted():
    """Each refuted claim of each method, in every release form and with other bounds."""
    generate = _load_generator()

    found = []
    for method in REGISTRY.values():
        for _, parameters, columns in generate._variants(method):
            for setting in generate._settings(method, parameters, columns).values():
                if not generate._refused(method, setting):
                    found += [
                        (method.name, claim)
                        for claim in method.promises.claims(setting)
                        if claim.status is Status.REFUTED
                    ]
    return found


def test_every_refuted_claim_names_what_keeps_its_aim_and_no_other_does():
    refuted = _refuted()

    assert {name for name, _ in refuted} >= {
        "ir-laplace", "mdav-laplace", "ir-mdav-laplace", "stable-laplace", "insensitive-laplace",
        "pram", "laplace",
    }  # fmt: skip
    for name, claim in refuted:
        assert claim.instead, name
        named = re.findall(r"'([\w-]+)'", claim.instead)
        assert all(word in NAMES and word != name for word in named), claim.instead


def test_prices_in_claims_are_those_of_the_papers_pages():
    with (ROOT / "docs/papers/sanchez2014-beside.csv").open(encoding="utf-8", newline="") as file:
        rows = {
            row["release"]: float(row["count_half"])
            for row in csv.DictReader(file)
            if (row["table"], row["epsilon"]) == ("Adult", "1")
        }
    said = {
        claim.instead for _, claim in _refuted() if "of Adult (epsilon 1, k = 100)" in claim.instead
    }
    here = {
        "IR + Laplace, k=100, table", "MDAV + Laplace, k=100, table",
        "IR_MDAV + Laplace, k=100, table", "S-MDAV, k=100, table",
    }  # fmt: skip

    def shown(release):
        return f"{float(f'{100 * rows[release]:.2g}'):g}%"

    found = {re.search(r"and by ([\d.]+%) with this method", text).group(1) for text in said}
    assert found == {shown(release) for release in here}
    for text in said:
        assert f"by {shown('auto')} with 'auto', by {shown('maximum entropy')} with 'm" in text
        others = re.findall(r"off by ([\d.]+%)", text.partition("with this method")[2])
        assert set(others) <= {shown("IR + Laplace, k=100, lists"), shown("INS, k=1000")}
