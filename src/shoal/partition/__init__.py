"""Deterministic grouping of records: arrays in, `Partition` out.

Every function breaks ties by the lowest index, leaves its input as it is and raises
`InputError` for what it cannot group.
"""

from shoal.partition.mdav import mdav
from shoal.partition.mu_approx import mu_approx
from shoal.partition.univariate import individual_ranking, individual_rankings
from shoal.partition.vmdav import vmdav

__all__ = ["individual_ranking", "individual_rankings", "mdav", "mu_approx", "vmdav"]
