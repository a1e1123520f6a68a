"""The five papers in words for the terminal, and for BibTeX."""

from importlib.metadata import version
from typing import Any

from shoal.methods import NAMES, find, title_of
from shoal.methods.papers import (
    PAPERS,
    find_paper,
    named_in_papers,
    papers_of,
    write_bibtex,
)


def list_papers() -> str:
    """List the five papers, with their methods."""
    lines = []
    for paper in PAPERS.values():
        lines += [f"{paper.key}: {paper}", f"  methods: {', '.join(paper.methods)}"]
    more = "`shoal papers KEY` says what its names mean here, and how to repeat a figure of it."
    return "\n".join([*lines, "", more])


def describe_paper(key: str) -> str:
    """Describe one paper: its methods, its names for them, where its figures are repeated."""
    paper = find_paper(key)
    lines = [f"{paper.key}: {paper}"]
    for name, names in paper.names.items():
        known = ", ".join(f"{k}{how and f' ({how})'}" for k, how in names.items())
        lines.append(f"  {name}: {title_of(name)}{known and f'; in the paper: {known}'}")
    lines += [
        f"  every figure, repeated on the paper's tables: {paper.page}",
        f"  on a table of your own: `shoal papers {key} --data FILE` ({paper.figure.what})",
    ]
    return "\n".join(lines)


def list_papers_as_facts(key: str | None = None) -> list[dict[str, Any]]:
    """List the papers, or one, as plain JSON values."""
    return [
        {
            "key": paper.key,
            "cited": str(paper),
            "names": {method: dict(names) for method, names in paper.names.items()},
            "methods": list(paper.methods),
            "page": paper.page,
            "figure": paper.figure.what,
            "bibtex": paper.bibtex,
        }
        for paper in ([find_paper(key)] if key else PAPERS.values())
    ]


def write_bibliography(name: str | None = None) -> str:
    """Write Shoal for BibTeX, and papers: all five, one, or those of a method."""
    papers, others = list(PAPERS.values()), []
    if name in PAPERS:
        papers = [PAPERS[name]]
    elif name is not None:
        named = named_in_papers(name)
        method = find(name if named is None or name in NAMES else named[1])
        papers = papers_of(method.name)
        if not any(paper.title in method.reference for paper in papers):
            others = [write_bibtex("misc", method.name, {"note": f"{{{method.reference}}}"})]
    software = {
        "author": "{The Shoal developers}",
        "title": "{Shoal: protecting tables of people for publication}",
        "version": version("shoal"),
    }
    entries = [*others, *(paper.bibtex for paper in papers)]
    return "\n\n".join([write_bibtex("software", "shoal", software), *entries])
