"""PrivTree: halve space where people are, count boxes with noise, and draw rows from them.

Claim: epsilon, proved, for change-one and for add-remove neighbours; the theorem is in
`shoal.synthesis.adaptive_tree`; `shoal.methods.drawn_rows.synthesis` says what happens around it.
The depth is not bounded beforehand: a box is halved while its noisy count, less a penalty for its
depth, exceeds `theta`.
"""

from functools import partial
from typing import Annotated

from pydantic import Field

from shoal.methods.drawn_rows.synthesis import (
    PRIVTREE,
    SynthesisTask,
    Synthesizer,
    anywhere,
    synthetic_method,
)
from shoal.methods.drawn_rows.synthesis_prices import SynthesisParameters
from shoal.methods.method import CostModel, Setting
from shoal.policy.values import choice
from shoal.synthesis.privtree import Fill, privtree


class PrivTreeParameters(SynthesisParameters):
    """Parameters of PrivTree."""

    fill: Annotated[Fill, choice(Fill)] = Field(
        Fill.UNIFORM,
        title="Where a row lies in its box",
        description="Where a row lies in its box: anywhere (uniform), or at its noisy mean "
        "(centroid), which costs a third of what the splits leave.",
    )
    theta: Annotated[int, Field(ge=0, le=10**9)] = Field(
        0,
        title="Threshold of a cut (theta)",
        description="Halve a box whose noisy penalised count exceeds this threshold.",
    )


def _choose(_task: SynthesisTask, setting: Setting[PrivTreeParameters]) -> Synthesizer:
    stated = setting.parameters
    return Synthesizer(partial(privtree, fill=stated.fill, theta=stated.theta))


METHOD = synthetic_method(
    "privtree",
    "Halve crowded boxes, count them with noise, draw synthetic rows (differential privacy).",
    _choose,
    parameters=PrivTreeParameters,
    basis=(
        "a changed record moves the counts on two paths of the tree; the splits on both paths "
        "together cost at most 3.607 divided by the scale of their noise, at any depth; the "
        "leaf counts move by 2 in total, and the leaf sums by the leaves' widths; rows are "
        "drawn from the noisy answers alone"
    ),
    added=(
        "a record that comes or goes moves counts on one path of the tree, whose splits together "
        "cost 2.607 over the scale of their noise, however deep; counts of leaves move by 1, their "
        "sums by half of their widths; the number of rows is measured with noise; rows are drawn "
        "from noisy answers"
    ),
    source=PRIVTREE,
    unsupported=(
        "The distribution inside a box: rows are spread evenly there, or share its noisy mean.",
        "Use with many columns: each column is then halved only a few times.",
    ),
    refuse_distributed=anywhere,
    cost=CostModel(0.9, 0.00084, 1.0, 0),
)
