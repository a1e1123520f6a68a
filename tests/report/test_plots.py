"""Plots for notebooks: of released columns, and of the frontier of a comparison."""

import subprocess
import sys

import polars as pl
import pytest

import shoal
from shoal.core import Release
from shoal.report import plots

FACTS = {
    "candidates": [
        {"label": "mdav k=5 $x$", "standing": "frontier",
         "risk": {"value": 0.1, "low": 0.0, "high": 0.2},
         "error": {"value": 0.3, "low": 0.2, "high": 0.5}},
        {"label": "mdav k=9", "standing": None, "risk": None, "error": None},
    ],
    "baselines": [],
    "recommended": "mdav k=5 $x$",
    "ties": [],
    "settings": {"axes": "advantage"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _without_a_screen():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    yield
    matplotlib.pyplot.close("all")


def test_every_released_column_has_a_plot():
    table = pl.DataFrame(
        {"age": [1.5, None, 2.5, 2.5], "$town$": ["a", "a", None, "b"]}
    ).with_columns(day=pl.Series(["2024-01-01"] * 4).str.to_date(), rest=None)
    release = Release(table, (), (), (), {"rows": 4, "columns": {}, "method": "mdav"})

    figure = release.plot()

    titles = [one.get_title() for one in figure.axes if one.get_visible()]
    assert titles == ["age", r"\$town\$", "day", "rest"]
    figure.canvas.draw()


def test_the_frontier_is_drawn_with_intervals_and_says_that_it_is_confidential():
    figure = plots.frontier(FACTS)

    (place,) = figure.axes
    assert "Confidential" in place.get_title()
    assert [text.get_text() for text in place.get_legend().get_texts()] == [
        "frontier", "recommended"
    ]  # fmt: skip
    figure.canvas.draw()


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setattr(plots, "find_spec", lambda _name: None)

    with pytest.raises(shoal.InputError, match="Plots need matplotlib: pip install matplotlib"):
        plots.frontier(FACTS)


def test_importing_shoal_does_not_import_matplotlib():
    program = "import sys, shoal, shoal.report.plots; print('matplotlib' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
