"""One table of benchmarks: every line has its yardstick, and one that became slower is named."""

import importlib
import json
import re
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bench(monkeypatch):
    """The program, as `make bench` runs it."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("run")


def busy(seconds):
    def work():
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    return lambda _home: work


def ran(bench, monkeypatch, folder, *, last, words=()):
    """The exit code for a line that takes twice its yardstick, with the ratio of last time."""
    results = folder / "results.json"
    results.write_text(json.dumps({"ours": last, "other": 7.0}))
    monkeypatch.setattr(bench, "RESULTS", results)
    monkeypatch.setattr(bench, "YARDSTICKS", {"theirs": busy(0.02)})
    monkeypatch.setattr(bench, "LINES", (bench.Line("ours", busy(0.04), "theirs"),))
    monkeypatch.setattr(sys, "argv", ["run.py", *words])
    return bench.main(), json.loads(results.read_text())


def test_every_line_has_a_yardstick_and_every_kept_ratio_a_line(bench):
    names = [line.name for line in bench.LINES]
    kept = json.loads(bench.RESULTS.read_text("utf-8"))

    assert len(set(names)) == len(names)
    assert {line.yardstick for line in bench.LINES} == set(bench.YARDSTICKS)
    assert set(kept) <= set(names)


def test_results_are_of_programs_that_are_there():
    named = re.findall(r"bench/(\w+\.py)", (ROOT / "bench" / "RESULTS.md").read_text("utf-8"))

    assert named
    assert [name for name in named if not (ROOT / "bench" / name).is_file()] == []


def test_what_became_slower_by_more_than_a_fifth_is_named_and_fails(
    bench, monkeypatch, tmp_path, capsys
):
    code, kept = ran(bench, monkeypatch, tmp_path, last=1.2)

    assert code == 1
    assert "ours: 2" in capsys.readouterr().out.partition("Regressed")[2]
    assert kept == {"ours": 1.2, "other": 7.0}


def test_what_did_not_passes_and_ratios_are_kept_where_asked(bench, monkeypatch, tmp_path, capsys):
    code, kept = ran(bench, monkeypatch, tmp_path, last=2.5, words=["our", "--keep"])

    assert code == 0
    assert "nothing" in capsys.readouterr().out
    assert kept["ours"] == pytest.approx(2, rel=0.2)
    assert kept["other"] == 7.0
