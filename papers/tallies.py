"""Write on the papers' first page how many sentences of each paper hold."""

import csv
import sys
from pathlib import Path

from _common import PAGES, STANDINGS, Sentence, grid_table, standings

START, END = "<!-- tallies: start -->", "<!-- tallies: end -->"
PAPERS = {
    "sanchez2014": "Sánchez et al. 2014",
    "soriacomas2017": "Soria-Comas and Domingo-Ferrer 2017",
    "iftikhar2019": "Iftikhar et al. 2019",
    "cormode2013": "Cormode et al. 2013",
    "domingoferrer2015": "Domingo-Ferrer and Soria-Comas 2015",
    "domingoferrer2015-pram": "the same, PRAM",
}


def read(path: Path) -> list[Sentence]:
    """The sentences of a page, from the table that lies beside it."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Sentence(
                row["sentence"],
                row["test"],
                {} if row["verdict"] == "cannot be tested" else {"": row["verdict"] == "holds"},
                row["numbers"],
                row["reading"],
                bool(row.get("beside")),
            )
            for row in csv.DictReader(file)
        ]


def table(folder: Path) -> str:
    """A line for each paper."""
    rows = []
    for paper, title in PAPERS.items():
        counts = standings(read(folder / f"{paper}-sentences.csv"))
        rows.append([f"[{title}]({paper}.md)", *map(str, [sum(counts.values()), *counts.values()])])
    return grid_table(["paper", "sentences", *STANDINGS], rows)


def main(folder: Path = PAGES) -> None:
    """Replace the table on the page."""
    page = folder / "index.md"
    before, rest = page.read_text("utf-8").split(START)
    after = rest.split(END)[1]
    page.write_text(f"{before}{START}\n{table(folder)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
