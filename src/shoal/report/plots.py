"""Plots for notebooks, drawn by Matplotlib where it is installed."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from typing import Any

import polars as pl

from shoal import io
from shoal.core import Release
from shoal.errors import InputError, visible
from shoal.evaluation.comparison.results import frontier_plot

ACROSS, BARS, SHADE = 3, 12, "#1f5f80"
"""Plots in a row; the most bars of a plot; their colour."""


def release(made: Release) -> Any:
    """One plot for each released column: a histogram of numbers, the most frequent categories.

    All of it is in the released table, which holds nothing of the original.
    """
    if not hasattr(made.data, "shape"):
        raise InputError(
            "This table lies on Spark. Draw a sample of it with a library of your own."
        )
    frame = io.from_native(made.data).frame
    figure, places = _figure(max(frame.width, 1))
    for place, series in zip(places, frame, strict=False):
        _column(place, series)
    for place in places[frame.width :]:
        place.set_visible(False)
    return figure


def frontier(facts: Mapping[str, Any]) -> Any:
    """Risk against error of the candidates of a comparison, from what its `facts` say."""
    drawn = frontier_plot(facts)
    figure, (place,) = _figure(1, wide=8.0, high=5.0)
    for dots in drawn["data"]:
        across, up = dots["error_x"], dots["error_y"]
        ring = dots["marker"].get("symbol") == "circle-open"
        place.errorbar(
            dots["x"],
            dots["y"],
            xerr=None if ring else [across["arrayminus"], across["array"]],
            yerr=None if ring else [up["arrayminus"], up["array"]],
            fmt="o",
            label=dots["name"],
            color=dots["marker"]["color"],
            markersize=dots["marker"]["size"] * 0.7,
            fillstyle="none" if ring else "full",
        )
    rows = [*facts["candidates"], *facts["baselines"]]
    for row in rows:
        if row["risk"] is not None and row["error"] is not None:
            at = (row["risk"]["value"], row["error"]["value"])
            place.annotate(_plain(row["label"]), at, xytext=(4, 4), textcoords="offset points",
                           fontsize=8)  # fmt: skip
    place.set_xlabel(drawn["layout"]["xaxis"]["title"]["text"])
    place.set_ylabel(drawn["layout"]["yaxis"]["title"]["text"])
    place.set_title("Confidential: computed from the table that was compared on", fontsize=9)
    if rows:
        place.legend()
    return figure


def _figure(plots: int, *, wide: float = 4.0, high: float = 2.6) -> tuple[Any, list[Any]]:
    if find_spec("matplotlib") is None:
        raise InputError("Plots need matplotlib: pip install matplotlib.")
    pyplot = import_module("matplotlib.pyplot")
    across = min(plots, ACROSS)
    down = ceil(plots / across)
    figure, places = pyplot.subplots(
        down, across, figsize=(wide * across, high * down), layout="constrained", squeeze=False
    )
    return figure, list(places.flat)


def _column(place: Any, series: pl.Series) -> None:
    place.set_title(_plain(series.name), fontsize=10)
    cells = series.drop_nulls()
    if cells.dtype.is_numeric() or cells.dtype.is_temporal():
        place.hist(cells.to_list(), bins="auto" if cells.len() > 1 else 1, color=SHADE)
        place.tick_params(axis="x", labelrotation=30)
        return
    counts = cells.cast(pl.String).value_counts(sort=True).head(BARS).reverse()
    names, numbers = counts.get_columns()
    place.barh([_plain(name) for name in names], numbers.to_list(), color=SHADE)


def _plain(text: str) -> str:
    """A text that Matplotlib draws as it is: it takes what stands between dollars for a formula."""
    short = text if len(text) <= 24 else f"{text[:23]}\N{HORIZONTAL ELLIPSIS}"
    return visible(short).replace("$", r"\$")
