"""Private kd-tree: cut space near privately chosen medians, and count boxes with noise.

Claim: epsilon, proved, for change-one neighbours and for add-remove; see
`shoal.mechanism.spatial_trees` for the proof and `shoal.methods.trees.spatial_trees` for what
both trees share. Three tenths of epsilon go to the medians unless `structure` says otherwise. Boxes
are counted after every two cuts, so a box has four children, as in the paper: on Adult that
had lower errors than a count after every cut.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from shoal.methods.method import CostModel, Setting
from shoal.methods.trees.spatial_trees import SpatialTreeParameters, tree_method
from shoal.policy.values import Number

CUTS = 2
"""Number of cuts between one count and the next."""


class KdTreeParameters(SpatialTreeParameters):
    """Parameters of the kd-tree."""

    structure: Annotated[Number, Field(gt=0, lt=1)] = Field(
        Decimal("0.3"),
        title="Share of epsilon for the cuts",
        description="The share of epsilon that is spent on the medians.",
    )


def _shape(setting: Setting[KdTreeParameters]) -> tuple[int, Fraction]:
    return CUTS, Fraction(setting.parameters.structure)


METHOD = tree_method(
    "dp-kdtree",
    "Cut at private medians, count boxes with noise, draw synthetic rows (differential privacy).",
    parameters=KdTreeParameters,
    shape=_shape,
    basis=(
        "the boxes of a level are disjoint, so adding or removing a record moves the scores of "
        "one cut per level by at most 1 and one count per level by 1; the epsilons of cuts and "
        "levels add up, and where boxes are cut depends on noisy results alone"
    ),
    cost=CostModel(0.1, 0.09, 1.0, 50),
)
