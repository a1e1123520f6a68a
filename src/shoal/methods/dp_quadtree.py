"""Private quadtree: cut space in the middle of its axes, and count boxes with noise.

Claim: epsilon, proved, for change-one neighbours and for add-remove; see
`shoal.mechanism.spatial_trees` for the proof and `shoal.methods.trees.spatial_trees` for what
both trees share. All of epsilon goes to counts.

A box of a quadtree has 2^d children, and one cut on each of d axes makes them. With many axes that
is more than counts can bear, so boxes are counted after every four cuts, or after d if there
are fewer axes; the axes take turns, and after d cuts each has been cut once.
"""

from fractions import Fraction

from shoal.methods.method import CostModel, Setting
from shoal.methods.trees.spatial_trees import (
    SpatialTreeParameters,
    find_counted_column,
    tree_method,
)

MOST_CUTS = 4
"""Largest number of cuts between one count and the next."""


def _shape(setting: Setting[SpatialTreeParameters]) -> tuple[int, Fraction]:
    axes = len(setting.columns) - (find_counted_column(setting) is not None)
    return min(axes, MOST_CUTS), Fraction(0)


METHOD = tree_method(
    "dp-quadtree",
    "Cut at midpoints, count boxes with noise, draw synthetic rows (differential privacy).",
    parameters=SpatialTreeParameters,
    shape=_shape,
    basis=(
        "the boxes of a level are disjoint, so adding or removing a record moves one count per "
        "level by 1; the epsilons of the levels add up, and which boxes are cut depends on "
        "noisy counts alone"
    ),
    cost=CostModel(0.1, 0.035, 1.0, 9),
)
