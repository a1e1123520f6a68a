"""The programs that repeat the papers' figures run, and leave no sentence without a verdict."""

import csv
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "papers"
VERDICT = re.compile(r"holds|does not hold|not tested|holds for .+ only")
PLOTS = {
    "sanchez2014": ["sse"],
    "soriacomas2017": ["sse", "sae"],
    "iftikhar2019": ["fig4", "fig5", "fig5-free"],
    "domingoferrer2015-pram": ["pairs", "local", "qi"],
}
POINTS = {
    # ks x epsilons of the noisy method, plain noise, plain ranking
    "sanchez2014": 3 * 3 + 3 + 3,
    # ks x (2 plain + 3 noisy x 2 epsilons), and INS at eight values of k
    "soriacomas2017": 3 * (2 + 6) + 3 + 5,
    # ks x (MDAV, 3 orders), then 8 epsilons and 4 without clamping, each plain, and 2 a k
    "iftikhar2019": 3 * 4 + (8 + 4) * (1 + 2 * 3),
    # cases x ks x (5 methods x 6 values of t, and k-anonymity alone)
    "domingoferrer2015-pram": 2 * 3 * (5 * 6 + 1),
}


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize("paper", PLOTS)
def test_a_paper_is_run_again_on_the_sample(paper, tmp_path):
    program = ROOT / "papers" / f"{paper.replace('-', '_')}.py"
    command = [sys.executable, str(program), "--sample", "--runs", "1"]
    command += ["--ks", "2", "10", "100", "--out", str(tmp_path)]

    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, encoding="utf-8", env=os.environ, check=False
    )

    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"{paper}.md").read_text("utf-8")
    assert page.splitlines()[0].endswith(", on the shipped sample")
    assert "reference" not in page.split("## ")[0]
    for plot in PLOTS[paper]:
        drawn = ET.parse(tmp_path / f"{paper}-{plot}.svg").getroot()  # noqa: S314 (our own file)
        assert drawn.findall(".//{*}polyline")
        assert f"({paper}-{plot}.svg)" in page
    points = rows_of(tmp_path / f"{paper}.csv")
    assert len(points) == POINTS[paper]
    assert all(float(point["sse"]) >= 0 for point in points)
    sentences = rows_of(tmp_path / f"{paper}-sentences.csv")
    assert len(sentences) >= 6
    for sentence in sentences:
        assert VERDICT.fullmatch(sentence["verdict"])
        row = f"| {sentence['sentence']} | {sentence['test']} | **{sentence['verdict']}** | "
        assert row + sentence["numbers"] + " |" in page


@pytest.mark.parametrize("paper", PLOTS)
def test_the_pages_that_we_publish_are_of_the_papers_own_tables(paper):
    page = (PAGES / f"{paper}.md").read_text("utf-8")

    assert "shipped sample" not in page
    shown = re.findall(rf"\(({paper}[\w.-]*\.(?:svg|csv))\)", page)
    assert len(shown) >= 2
    assert all((PAGES / name).is_file() for name in shown)
    verdicts = [sentence["verdict"] for sentence in rows_of(PAGES / f"{paper}-sentences.csv")]
    assert page.count("| **") == len(verdicts)
    assert "not tested" not in verdicts


def test_no_program_reaches_past_the_public_interface():
    for program in (ROOT / "papers").glob("*.py"):
        text = program.read_text("utf-8")
        assert not re.search(r"\bopendp\b|shoal\.hazmat|import .*\b_kernels", text), program.name
