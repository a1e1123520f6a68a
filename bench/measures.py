"""Every metric of utility on synthetic tables, in CPU seconds and memory.

    python bench/measures.py

prints a Markdown table for RESULTS.md: 100,000 and 1,000,000 rows of four numbers and two
categories, released as exact rows with noise, and as intervals. Each metric runs in a process of
its own; its peak of memory has Python, the libraries and the tables in it. The joint Wasserstein
distance has samples of 1,000 whatever the table, and is not in the sum.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shoal.metrics import (
    count_queries,
    distributions,
    edit_rules,
    generalisation,
    information_loss,
    model_utility,
    moments,
)
from shoal.metrics.boxes import WeightedBoxes
from shoal.metrics.propensity import Teller, propensity

SIZES = (100_000, 1_000_000)
KINDS = (False, False, False, False, True, True)
LEVELS = (16, 7)
LOWS = np.array([-6.0] * 4 + [0.0, 0.0])
HIGHS = np.array([6.0] * 4 + [16.0, 7.0])
MOST_SECONDS, MOST_MEMORY = 180.0, 3.0


def tables(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Four related numbers and two categories, and the same with noise."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(n, 1))
    numbers = np.clip(0.7 * z + 0.7 * rng.normal(size=(n, 4)), -6, 6)
    codes = [np.clip((z[:, 0] * 2 + rng.normal(size=n) + d / 2).astype(int), 0, d - 1)
             for d in LEVELS]  # fmt: skip
    original = np.column_stack([numbers, *codes])
    released = original.copy()
    released[:, :4] += 0.2 * rng.normal(size=(n, 4))
    swapped = rng.random(n) < 0.1
    released[swapped, 5] = rng.permutation(released[swapped, 5])
    return original, np.clip(released, LOWS, HIGHS - np.array(KINDS))


def intervals(released: NDArray[np.float64]) -> WeightedBoxes:
    """Numbers in cells of an eighth of the domain, categories in pairs: local recoding."""
    width = np.array([1.5] * 4 + [2.0, 2.0])
    shift = np.floor(np.abs(released[:, :1]) * 4) % 2 * width / 2
    lower = np.maximum(np.floor((released - shift - LOWS) / width) * width + shift + LOWS, LOWS)
    upper = np.minimum(lower + width, HIGHS)
    lower[:, 4:], upper[:, 4:] = np.floor(lower[:, 4:]), np.ceil(upper[:, 4:])
    return WeightedBoxes(lower, upper, np.ones(len(lower)), KINDS)


def binned(X: NDArray[np.float64]) -> NDArray[np.int64]:
    """Codes of all columns, numbers in 16 bins of equal width."""
    edges = np.linspace(-6, 6, 17)[1:-1]
    return np.column_stack([distributions.binned(X[:, j], edges) for j in range(4)]
                           + [X[:, 4:].astype(np.int64)])  # fmt: skip


def errors(X: NDArray[np.float64], released: WeightedBoxes, axes: int | None) -> object:
    """The median relative error of 2,000 half ranges."""
    rng = np.random.default_rng(7)
    original = count_queries.index(WeightedBoxes.points(X, discrete=KINDS))
    queries, true = count_queries.answered_half_ranges(
        original, LOWS, HIGHS, KINDS, queries=2000, rng=rng, axes=axes
    )
    found = count_queries.answers(count_queries.index(released), queries)
    return count_queries.median_relative_error(count_queries.relative_errors(true, found))


def learned(X: NDArray[np.float64], Y: NDArray[np.float64], model: model_utility.Model) -> object:
    """Predict the last category from the other columns, every tenth row held out."""
    rng = np.random.default_rng(5)
    out = np.arange(len(X)) % 10 == 0
    return model_utility.learn(
        model_utility.LabelledRows(Y[~out, :5], Y[~out, 5]),
        model_utility.LabelledRows(X[~out, :5], X[~out, 5]),
        model_utility.LabelledRows(X[out, :5], X[out, 5]),
        categorical=KINDS[:5], task=model_utility.PredictionTask.CLASSIFICATION, rng=rng,
        model=model,
    )  # fmt: skip


Work = Callable[[NDArray[np.float64], NDArray[np.float64]], object]
MEASURES: dict[str, Work] = {
    "SSE, SAE, IL1s": lambda X, Y: (
        information_loss.sse(X, Y),
        information_loss.sae(X, Y),
        information_loss.il1s(X, Y),
    ),
    "rank-matched SSE, six columns": lambda X, Y: [
        information_loss.rank_matched(X[:, j], Y[:, j]) for j in range(6)
    ],
    "moments, eigenvalues": lambda X, Y: moments.moment_changes(X, Y).eigenvalues,
    "total variation, 21 marginals": lambda X, Y: distributions.total_variations(
        binned(X), binned(Y)
    )[0],
    "the same of intervals": lambda X, Y: distributions.box_total_variations(
        WeightedBoxes.points(X, discrete=KINDS),
        intervals(Y),
        [np.linspace(-6, 6, 17)[1:-1]] * 4 + [np.arange(1, d) for d in LEVELS],
    )[0],
    "2,000 COUNTs of all columns, rows": lambda X, Y: errors(
        X, WeightedBoxes.points(Y, discrete=KINDS), None
    ),
    "2,000 COUNTs of three columns, rows": lambda X, Y: errors(
        X, WeightedBoxes.points(Y, discrete=KINDS), 3
    ),
    "2,000 COUNTs of all columns, intervals": lambda X, Y: errors(X, intervals(Y), None),
    "2,000 COUNTs of three columns, intervals": lambda X, Y: errors(X, intervals(Y), 3),
    "discernibility, penalty of intervals": lambda _, Y: (
        generalisation.discernibility(intervals(Y).classes()),
        generalisation.certainty_penalty(intervals(Y), LOWS, HIGHS).granularity,
    ),
    "pMSE, logistic": lambda X, Y: (
        propensity(X, Y, categorical=KINDS, rng=np.random.default_rng(3)).ratio
    ),
    "pMSE, boosting": lambda X, Y: (
        propensity(
            X, Y, categorical=KINDS, rng=np.random.default_rng(3), teller=Teller.BOOSTING
        ).ratio
    ),
    "learning, boosting": lambda X, Y: learned(X, Y, model_utility.Model.BOOSTING),
    "learning, linear": lambda X, Y: learned(X, Y, model_utility.Model.LINEAR),
    "regression, overlap": lambda X, Y: (
        model_utility.interval_overlap(
            model_utility.regress(X[:, 1:], X[:, 0]), model_utility.regress(Y[:, 1:], Y[:, 0])
        ).mean
    ),
    "an edit rule": lambda X, Y: [
        edit_rules.count(
            edit_rules.parse("a + 0.5 * b <= 3", ["a", "b"]), {"a": T[:, 0], "b": T[:, 1]}
        )
        for T in (X, Y)
    ],
    "joint W2, 10 samples of 1,000": lambda X, Y: distributions.joint_wasserstein(
        X, Y, rng=np.random.default_rng(2)
    ),
}


def main() -> None:
    """Run every metric in a process of its own, at both sizes."""
    print("| measure | CPU s, 100k | CPU s, 1M | ratio | peak MB, 1M |")
    print("|---|---|---|---|---|")
    spent, peaks = [0.0, 0.0], []
    for name in MEASURES:
        runs = []
        for size in SIZES:
            command = [sys.executable, __file__, name, str(size)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            runs.append([float(figure) for figure in out.split()[-2:]])
        (small, _), (large, peak) = runs
        if "W2" not in name:
            spent = [spent[0] + small, spent[1] + large]
        peaks.append(peak)
        print(f"| {name} | {small:.2f} | {large:.2f} | {large / small:.0f} | {peak:.0f} |")
    met = spent[1] < MOST_SECONDS and max(peaks) < MOST_MEMORY * 1024
    print(f"| all but W2; wanted < {MOST_SECONDS:g} s, < {MOST_MEMORY:g} GB at 1M, met: {met} "
          f"| {spent[0]:.1f} | {spent[1]:.1f} | | {max(peaks):.0f} |")  # fmt: skip


def one(name: str, size: int) -> None:
    """Run one metric and print its CPU seconds and the peak of memory of the process."""
    # A small run compiles the kernels and loads the libraries.
    MEASURES[name](*tables(2_000))
    X, Y = tables(size)
    begin = time.process_time()
    MEASURES[name](X, Y)
    spent = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(spent, peak / 1024)


if __name__ == "__main__":
    if sys.argv[1:]:
        one(sys.argv[1], int(sys.argv[2]))
    else:
        main()
