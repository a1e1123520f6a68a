"""NIST's K-marginal score by the `sdnist` package, in the environment that has it (2.4).

    PYTHON bench/sdnist_score.py TARGET.csv RELEASED.csv

prints the score over all pairs of columns, with numbers binned as the package's report bins them.
`k_marginal.py --sdnist PYTHON` calls it.
"""

import sys

import pandas as pd
import sdnist.report  # noqa: F401 - first: the package imports itself in a circle
from sdnist.metrics.kmarginal import KMarginal
from sdnist.report.dataset.binning import percentile_rank_synthetic, percentile_rank_target

NUMBERS = ["AGEP"]

target, released = (pd.read_csv(path, dtype=str) for path in sys.argv[1:3])
binned = percentile_rank_target(target, NUMBERS)
scored = KMarginal(binned, percentile_rank_synthetic(released, target, binned, NUMBERS))
print(scored.compute_score())
