"""Each standard error of `analyse` is the standard deviation of its estimate, to 15%.

2,000 seeded releases of small tables for each statistic and treatment of a column: noise of the
published law on new people (for the population) or on the same ones (for the table). Compared are
the root of the mean squared standard error, and the standard deviation of the estimates.

False alarm: a standard deviation of R estimates, sums of many draws with a kurtosis below 4, is off
by a factor of 1 +- sqrt(3 / (4 R)), 0.019 for R = 2,000. A ratio truly within 5% of 1 leaves
the band of 5% and five such errors, 15% together, with probability below 1e-6. Releases with
measurements take longer, and there are 400 of each, with a band of 27%; `make fuzz` has 2,000.
"""

import os
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import scipy

import shoal
from shoal import analysis
from shoal.analysis.published import PublishedTable
from shoal.core import ReleaseForm
from shoal.core.manifest import Manifest, PrivacyLossRecord
from shoal.mechanism.randomised_response import response_matrix

RELEASES, N = 2000, 60
FEWER = RELEASES if os.environ.get("SHOAL_EXAMPLES") == "fuzz" else 400
LOW, HIGH, GRID = 0.0, 10.0, 1 << 20
BINS, SIZES = np.linspace(LOW, HIGH, 9), np.full(6, N // 6)


POLICY = shoal.load_policy(
    {
        "version": 1,
        "columns": {
            "x": {"role": "confidential", "kind": "numeric", "bounds": [LOW, HIGH]},
            "z": {"role": "other", "kind": "numeric", "bounds": [LOW, HIGH]},
            "c": {"role": "other", "kind": "nominal", "categories": ["a", "b", "d"]},
        },
        "protect": {"method": "copula", "epsilon": 1},
    }
)


def published(frame, loss=None, measurements=None, **facts):
    """A release as its folder would have it: a number x and a category c."""
    stated = {
        "policy": {}, "parameters": {}, "protected_columns": [], "method": "mdav",
        "suppressed": 0, "release_form": ReleaseForm.LINKED_SHUFFLED, "hierarchies": {},
        "privacy_losses": [] if loss is None else [loss_record(**loss)],
    }  # fmt: skip
    manifest = Manifest.model_construct(**{**stated, **facts})
    return PublishedTable(pl.DataFrame(frame), manifest, POLICY, measurements)


def loss_record(*, epsilon, scale, **stated):
    return PrivacyLossRecord.model_construct(
        epsilon=Fraction(epsilon), scale=Fraction(scale), **stated
    )


def people(rng):
    return np.clip(rng.normal(5, 1.5, N), LOW, HIGH)


def noisy_cells(x, rng, b=1.5):
    cells = np.clip(x + rng.laplace(0, b, N), LOW, HIGH)
    loss = {"target": "x", "mechanism": "discrete-laplace", "draws": N, "epsilon": 1,
            "scale": b * GRID / (HIGH - LOW)}  # fmt: skip
    return published({"x": cells}, loss, protected_columns=["x"])


def noisy_groups(x, rng, b=4.0, k=5):
    means = np.sort(x).reshape(-1, k).mean(axis=1) + rng.laplace(0, b / k, N // k)
    loss = {"target": "x", "mechanism": "discrete-laplace", "draws": N // k, "epsilon": 1,
            "scale": b * GRID / (HIGH - LOW)}  # fmt: skip
    cells = np.repeat(np.clip(means, LOW, HIGH), k)
    return published({"x": cells}, loss, protected_columns=["x"], parameters={"k": k})


def responses(x, rng, epsilon=1.5):
    codes = np.digitize(x, [4, 5.5])
    odds = response_matrix(3, epsilon)[codes]
    given = (odds.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    loss = {"target": "c", "mechanism": "randomised-response", "draws": N, "epsilon": epsilon,
            "scale": 1}  # fmt: skip
    return published({"c": np.array(["a", "b", "d"])[given]}, loss, protected_columns=["c"])


def counted(x, rng, scale=1.5):
    """Noisy counts of x in bins and of c, and rows that are drawn anew from the former."""
    counts = np.histogram(x, BINS)[0]
    kinds = np.bincount(np.digitize(x, [4, 5.5]), minlength=3)
    answers = np.concatenate([counts, kinds]) + rng.laplace(0, scale, len(counts) + 3)
    ends = [f"[{a:g}, {b:g}{']' if b == HIGH else ')'}" for a, b in pairwise(BINS)]
    measurements = pl.DataFrame(
        {
            "measurement": [0] * len(ends) + [1] * 3, "sort": "table", "answer": answers,
            "scale": scale, "cell_x": ends + [None] * 3,
            "cell_c": [None] * len(ends) + ["a", "b", "d"],
        }
    )  # fmt: skip
    return published({"x": x, "c": np.array(["a", "b", "d"])[np.digitize(x, [4, 5.5])]},
                     measurements=measurements, protected_columns=["x", "c"])  # fmt: skip


def blocks(x, rng, b=3.0):
    codes = np.sort((x - LOW) / (HIGH - LOW) * GRID)
    starts = np.cumsum(SIZES) - SIZES
    scale = b * GRID / (HIGH - LOW)
    answers = np.add.reduceat(codes, starts) + rng.laplace(0, scale, len(SIZES))
    ranks = [f"ranks {a + 1} to {a + s}" for a, s in zip(starts, SIZES, strict=True)]
    measurements = pl.DataFrame({"measurement": 0, "sort": "blocks", "answer": answers,
                                 "scale": scale, "cell_x": ranks})  # fmt: skip
    return published({"x": x}, measurements=measurements, protected_columns=["x"])


def plain(x, rng):
    z = np.clip(x + rng.normal(0, 1, N), LOW, HIGH)
    return published({"x": x, "z": z, "c": np.array(["a", "b", "d"])[np.digitize(x, [4, 5.5])]})


def skewed(x, rng):
    ranks = scipy.special.ndtr((x - 5) / 1.5)
    return plain(np.clip(-2 * np.log1p(-ranks), LOW, HIGH), rng)


def rounded(x, rng):
    return plain(np.round(x, 1), rng)


def mean(release, **about):
    return analysis.mean(release, "x", **about)


def share(release, **about):
    return analysis.proportion(release, "c", "b", **about)


def median(release, **about):
    return analysis.quantile(release, "x", **about)


def low_tail(release, **about):
    return analysis.quantile(release, "x", at=0.1, **about)


def high_tail(release, **about):
    return analysis.quantile(release, "x", at=0.9, **about)


def slope(release, **about):
    return analysis.ols(release, "z ~ x", **about)


CASES = [
    (noisy_cells, [mean], "population"), (noisy_cells, [mean], "table"),
    (noisy_groups, [mean], "population"), (noisy_groups, [mean], "table"),
    (responses, [share], "population"), (responses, [share], "table"),
    (counted, [mean, share], "population"), (counted, [share], "table"),
    (blocks, [mean], "population"), (blocks, [mean], "table"),
    (plain, [mean, share, slope], "population"),
    *((make, [low_tail, median, high_tail], "population") for make in (plain, skewed, rounded)),
    (counted, [median], "population"),
    (counted, [median], "table"), (blocks, [median], "table"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "asked", "about"), CASES)
def test_a_standard_error_is_the_standard_deviation_of_the_estimate(make, asked, about):
    rng = np.random.default_rng(41)
    same = people(rng)
    releases = RELEASES if make not in {counted, blocks} else FEWER
    found = []
    for _ in range(releases):
        release = make(people(rng) if about == "population" else same, rng)
        terms = [ask(release, estimand=about).terms[-1] for ask in asked]
        found.append([(term.estimate, term.standard_error) for term in terms])
    estimates, errors = np.moveaxis(np.array(found), 2, 0)
    ratios = np.sqrt((errors**2).mean(axis=0)) / estimates.std(axis=0, ddof=1)

    assert ratios == pytest.approx(1.0, abs=0.05 + 5 * np.sqrt(3 / (4 * releases)))
