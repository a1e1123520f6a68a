"""Compile every kernel of this package ahead of the first run."""

from fractions import Fraction

import numpy as np

from shoal.core import Diversity, LDiversity, Partition
from shoal.core._arrays import freeze
from shoal.partition.bucketization import bucketization
from shoal.partition.coarse_tree import Centre, CoarseTree
from shoal.partition.full_domain import full_domain
from shoal.partition.kernels.coarse_tree import tally_grid
from shoal.partition.kernels.univariate import central_codes
from shoal.partition.mdav import mdav
from shoal.partition.merging import nearest_others
from shoal.partition.mondrian import mondrian
from shoal.partition.mu_approx import mu_approx
from shoal.partition.noise_aware import noise_aware
from shoal.partition.requirement import Requirement
from shoal.partition.univariate import individual_ranking, optimal_univariate
from shoal.partition.vmdav import vmdav


def warmup() -> None:
    """Compile all kernels and leave them in the cache for later processes.

    Each method is run once on a table large enough to take every path. Takes about
    twenty seconds the first time and less than a second once all is cached.
    """
    grid = np.arange(5000.0)
    table = np.column_stack([grid % 71, grid % 13])
    mdav(table, 3)  # by cells, as the second column has few values
    mdav(table + grid[:, None] % 29, 3)
    vmdav(table[:100], 3, gamma=1.0)
    mu_approx(table[:100], 3)
    nearest_others(table[:100], np.arange(2))  # where groups of persons are merged
    diverse = LDiversity(Fraction(2), Diversity.DISTINCT, (), ())
    mondrian(table[:100], 3, require=[Requirement(diverse, np.arange(100))])
    bucketization(table[:100], np.arange(100) % 2, 3, 2)
    full_domain(np.arange(9)[:, None], [np.vstack([np.arange(9), np.zeros(9, np.int64)])], 3,
                require=[Requirement(diverse, np.arange(9))])  # fmt: skip
    individual_ranking(-np.arange(70_000.0), 3)  # long columns are sorted by a kernel
    optimal_univariate(grid[:100], 3)
    labels = Partition(np.arange(9)).labels
    ones = freeze(np.ones(9, np.int64))
    central_codes(labels, labels, ones, freeze(np.arange(9)[:, None]), np.zeros(9, np.int64))
    noise_aware(table[:100], 1.0)
    noise_aware(table[:100, :1], 1.0)
    # Kernels that blocks of records on Spark use.
    nodes = np.zeros(1, np.int64)
    centre = Centre(np.zeros(2), ())
    CoarseTree(nodes, np.ones(1), nodes - 1, nodes - 2, 2, centre).route(table[:9])
    first = np.zeros((1, 3), np.int64)
    tally_grid(table[:1], nodes, np.zeros(0), first, np.zeros((2, 2)), np.zeros(2, np.int64))
