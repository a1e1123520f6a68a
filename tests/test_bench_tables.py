"""The comparison of tables: its questions have known answers, and rivals stay outside."""

import importlib
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
MODULES = ("_cases", "_charts", "_contenders", "_figures", "_peers", "_scores", "tables")


@pytest.fixture
def bench(monkeypatch):
    """The modules of the comparison, by name, as a fresh start of the program has them."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


@pytest.fixture
def case(bench):
    """Two numbers, an ordinal and a nominal of few records."""
    cases = bench("_cases")
    rng = np.random.default_rng(1)
    axes = (
        cases.Axis("a", "numeric", 8, (0, 10), step=1),
        cases.Axis("b", "numeric", 8, (0, 1000), log=True),
        cases.Axis("c", "ordinal", 4),
        cases.Axis("d", "nominal", 3),
    )
    n = 300
    hidden = rng.random(n)
    columns = [np.rint(10 * hidden), 1000 * hidden**3, np.floor(4 * hidden), np.floor(3 * hidden)]
    return cases.Case("small", "a small table", axes, np.column_stack(columns), target="d")


def test_numbers_come_back_from_their_bins_within_a_bin(case):
    rng = np.random.default_rng(2)

    back = case.decoded(case.codes, rng)

    again = case.coded(back)
    assert (again[:, 1:] == case.codes[:, 1:]).all()
    # A step of 1 is wider than the distance to the edge of a bin, so that rounding may cross it.
    assert np.abs(back[:, 0] - case.X[:, 0]).max() <= 10 / 8 + 1


def test_a_table_is_at_no_distance_from_itself(bench, case):
    scores = bench("_scores").Scores(case)

    found = scores.of(case.X[::-1], seed=1)

    assert {name: found[name] for name in ("counts", "triples", "pairs", "ranks", "w2")} == (
        dict.fromkeys(("counts", "triples", "pairs", "ranks", "w2"), 0.0)
    )
    assert found["accuracy"] > 0.9
    assert scores.honest_accuracy > 0.9


def test_every_contender_draws_as_many_rows_as_there_are_records(bench, case):
    contenders = bench("_contenders")

    applying = [contender for contender in contenders.CONTENDERS if contender.applies(case)]
    assert len(applying) == len(contenders.CONTENDERS) - 2  # two are for numbers alone
    for contender in applying:
        done = contender.run(case, "1", 1)
        rows, columns = case.X.shape
        if "native" in contender.label:  # add-remove: the number of rows is noisy too
            rows = len(done.rows)
        assert done.rows.shape == (rows, columns), contender.label
        coded = case.coded(done.rows)
        assert (coded >= 0).all(), contender.label
        assert (coded < case.sizes).all(), contender.label


def test_counts_from_noisy_cells_are_those_of_the_cells(bench, case):
    scores = bench("_scores")
    coded = bench("_cases").Case(
        "coded",
        "codes alone",
        tuple(bench("_cases").Axis(axis.name, "ordinal", axis.size) for axis in case.axes),
        case.codes.astype(float),
    )
    table = np.zeros(coded.sizes)
    np.add.at(table, tuple(coded.codes.T), 1)
    asked = scores.Scores(coded)

    assert scores.table_error(table, asked.all) == 0
    assert scores.table_error(table, asked.three) == 0
    assert scores.table_error(2 * table, asked.three) == 1


RIVAL = """
import json, sys
job = json.loads(open(sys.argv[2]).read())
lines = open(job["table"]).read().splitlines()
if job["epsilon"] > 1:
    sys.exit("no such epsilon")
assert len(lines) == job["rows"] + 1
open(job["out"], "w").write("\\n".join(lines) + "\\n")
print(json.dumps({"seconds": 2.0, "clock": 4.0, "compiling": {"backend_compile_duration": 2.0}}))
"""


@pytest.fixture
def interpreter(tmp_path, monkeypatch):
    """An interpreter that hands the table back instead of running the rivals."""
    program = tmp_path / "rival.py"
    program.write_text(RIVAL, encoding="utf-8")
    command = tmp_path / "rivals" / "venv" / "bin" / "python"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("SHOAL_RIVALS", str(tmp_path / "rivals"))
    monkeypatch.setenv("SHOAL_BENCH_CACHE", str(tmp_path / "kept"))
    return command


@pytest.mark.usefixtures("interpreter")
def test_a_rival_is_handed_codes_and_its_run_is_kept(bench, case, tmp_path):
    peers = bench("_peers")
    rival = peers.RIVALS[0]

    first = peers.drawn(case, rival, "0.1", 1, keep_only=False)
    (tmp_path / "rivals" / "venv" / "bin" / "python").unlink()
    kept = peers.drawn(case, rival, "0.1", 1, keep_only=False)

    assert (first.rows == case.codes).all()
    assert (kept.rows == case.codes).all()
    assert kept.told == first.told
    assert peers.drawn(case, rival, "0.1", 2, keep_only=True) is None


@pytest.mark.usefixtures("interpreter")
def test_a_rival_that_fails_is_kept_as_such(bench, case):
    peers = bench("_peers")

    failed = peers.drawn(case, peers.RIVALS[0], "10", 1, keep_only=False)

    assert failed.rows is None
    assert failed.failure == "error"
    assert "no such epsilon" in failed.told["error"]


def test_without_an_interpreter_there_is_no_new_run(bench, case, monkeypatch, tmp_path):
    monkeypatch.delenv("SHOAL_RIVALS", raising=False)
    monkeypatch.setenv("SHOAL_BENCH_CACHE", str(tmp_path))
    peers = bench("_peers")

    assert peers.drawn(case, peers.RIVALS[0], "1", 1, keep_only=False) is None


def test_whoever_is_not_asked_for_keeps_the_figures_on_file(bench, case, monkeypatch):
    tables, figures = bench("tables"), bench("_figures")
    on_file = [
        figures.Figure(epsilon, who, "ours", "epsilon", "counts", 7.0, 0.0, 5, "as it was")
        for epsilon in case.epsilons
        for who in ("auto", "privtree", "AIM")
    ]
    monkeypatch.setattr(tables, "read", lambda _case: on_file)
    asked = tables.Asked(cases=(), runs=1, kept=True, who=("auto",), draw=False)

    found = list(tables.compared(case, asked))

    kept = [figure for figure in found if figure.who != "auto"]
    assert sorted(map(str, kept)) == sorted(str(f) for f in on_file if f.who != "auto")
    anew = [figure for figure in found if figure.who == "auto"]
    assert {figure.epsilon for figure in anew} == set(case.epsilons)
    assert not set(on_file) & set(anew)


def test_figures_are_put_on_file_drawn_and_filled_into_the_page(bench, tmp_path):
    figures = bench("_figures")
    folder, page = tmp_path / "tables", tmp_path / "tables.md"
    page.write_text(
        "Words.\n\n<!-- figures: losses -->\nold\n<!-- end -->\n\nMore words.\n", encoding="utf-8"
    )
    some = [
        figures.Figure(epsilon, who, "x", "epsilon", measure, mean, 0.001, 5)
        for epsilon in ("0.1", "1")
        for measure in ("counts", "pairs", "seconds")
        for who, mean in (("auto", 0.2), ("AIM", 0.1))
    ]

    figures.write("small", some, folder)
    figures.publish(["small", "absent"], folder, [page])

    assert figures.read("small", folder) == some
    filled = page.read_text(encoding="utf-8")
    assert "old" not in filled
    assert filled.endswith("More words.\n")
    assert "| small | 0.1 | counts | auto 0.2 ± 0.001 | AIM 0.1 ± 0.001 |" in filled
    for name in ("counts", "pairs", "seconds"):
        drawn = ET.parse(folder / f"{name}.svg").getroot()  # noqa: S314 (our own file)
        assert len(drawn.findall(".//{*}circle")) >= 4


def test_the_published_figures_are_those_on_the_page(bench):
    """The page of this repository shows the figures of its files, none of them typed."""
    figures = bench("_figures")
    names = bench("_cases").NAMES
    page = figures.PAGE.read_text(encoding="utf-8")

    for name in names:
        block = page.split(f"<!-- figures: {name} -->")[1].split("<!-- end -->")[0].strip()
        found = figures.read(name)
        assert block.splitlines() == (figures._table(found) if found else ["Not run."])
