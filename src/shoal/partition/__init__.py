"""Deterministic grouping of records: arrays in, `Partition` out.

Every function breaks ties by the lowest index, leaves its input as it is and raises
`InputError` for what it cannot group.
"""

from shoal.core.columns import hierarchy_order
from shoal.core.jit import compile_notice
from shoal.partition.bucketization import (
    Bucketed,
    Sizes,
    bucketization,
    class_sizes,
    count_bounds,
    merge_close,
)
from shoal.partition.full_domain import (
    Generalisation,
    LatticeOptions,
    Loss,
    frontier,
    full_domain,
)
from shoal.partition.insensitive import insensitive
from shoal.partition.local_suppression import Suppression, local_suppression
from shoal.partition.marginality import marginality, marginality_order, path_lengths
from shoal.partition.mdav import mdav
from shoal.partition.mondrian import (
    CutColumn,
    PartitionTree,
    blocks,
    cell_of,
    median_cut,
    mondrian,
    mondrian_tree,
)
from shoal.partition.mu_approx import mu_approx
from shoal.partition.neighbourhood import Layer, Neighbourhood, NodeState, neighbourhood
from shoal.partition.noise_aware import grouping_cost, noise_aware
from shoal.partition.requirement import Requirement, unmet
from shoal.partition.stable import PartitionChange, insensitivity, stability, stable
from shoal.partition.univariate import (
    individual_ranking,
    individual_rankings,
    optimal_univariate,
    optimal_univariates,
)
from shoal.partition.value_buckets import joint_buckets, rank_buckets
from shoal.partition.vmdav import vmdav
from shoal.partition.warmup import warmup

__all__ = [
    "Bucketed",
    "CutColumn",
    "Generalisation",
    "LatticeOptions",
    "Layer",
    "Loss",
    "Neighbourhood",
    "NodeState",
    "PartitionChange",
    "PartitionTree",
    "Requirement",
    "Sizes",
    "Suppression",
    "blocks",
    "bucketization",
    "cell_of",
    "class_sizes",
    "compile_notice",
    "count_bounds",
    "frontier",
    "full_domain",
    "grouping_cost",
    "hierarchy_order",
    "individual_ranking",
    "individual_rankings",
    "insensitive",
    "insensitivity",
    "joint_buckets",
    "local_suppression",
    "marginality",
    "marginality_order",
    "mdav",
    "median_cut",
    "merge_close",
    "mondrian",
    "mondrian_tree",
    "mu_approx",
    "neighbourhood",
    "noise_aware",
    "optimal_univariate",
    "optimal_univariates",
    "path_lengths",
    "rank_buckets",
    "stability",
    "stable",
    "unmet",
    "vmdav",
    "warmup",
]
