"""One-way models of columns, joined by a private Gaussian copula.

Claim: epsilon, proved, for change-one neighbours; the theorem is in `shoal.synthesis.copula`, and
`shoal.methods.drawn_rows.synthesis` says what happens around it.
"""

from functools import partial
from typing import Annotated

from pydantic import Field

from shoal.errors import InputError
from shoal.methods.drawn_rows.synthesis import (
    COPULA,
    PRIVTREE,
    SynthesisTask,
    Synthesizer,
    synthetic_method,
)
from shoal.methods.drawn_rows.synthesis_prices import SynthesisParameters
from shoal.methods.method import CostModel, Setting
from shoal.policy.values import choice
from shoal.synthesis.copula import Margins, copula
from shoal.synthesis.privtree import Fill, privtree


class CopulaParameters(SynthesisParameters):
    """Parameters of the copula."""

    margins: Annotated[Margins, choice(Margins)] = Field(
        Margins.BLOCKS,
        title="How a column is learnt",
        description="How a column is learnt: from means of blocks by rank, for means and squared "
        "distance (blocks, 0.8 of epsilon), or from a private tree, for counts (tree, 0.85).",
    )


def _refuse(setting: Setting[CopulaParameters]) -> None:
    if len(setting.columns) < 2:
        raise InputError(
            "Expected at least two columns, because this method models their dependence; found "
            "one. Use privtree, maxent or auto."
        )
    if setting.rows is not None and setting.rows < 2 and setting.parameters.strata is None:
        raise InputError(
            "Expected at least two rows, because a rank correlation needs them; found one. Use "
            "privtree or auto."
        )


def _choose(task: SynthesisTask, setting: Setting[CopulaParameters]) -> Synthesizer:
    if len(task.codes) < 2:
        # A stratum of one row, or a noisy number of one: public both, and so is the choice.
        note = "With one row there is no rank correlation, so the row was drawn by privtree."
        return Synthesizer(partial(privtree, fill=Fill.UNIFORM), lambda _facts: (note,))
    return Synthesizer(partial(copula, margins=setting.parameters.margins))


METHOD = synthetic_method(
    "copula",
    "Model each column and their rank correlations, draw synthetic rows (differential privacy).",
    _choose,
    parameters=CopulaParameters,
    basis=(
        "a changed record moves the sums of a column's rank blocks by at most the column's "
        "width in total (Lemma 1 of sanchez2014), or its tree as in privtree; it moves the "
        "concordance of each pair of columns by at most 2 (n - 1); rows are drawn from the "
        "noisy answers alone"
    ),
    source=f"{COPULA}; sanchez2014 for rank blocks; for trees {PRIVTREE}",
    unsupported=(
        (
            "Dependence that a rank correlation does not capture, and dependence among three or "
            "more columns."
        ),
        "Dependence of nominal columns: their categories are ranked in the declared order.",
    ),
    refuse=_refuse,
    # A rank block has no place for a missing cell.
    missing=lambda parameters: parameters.margins is not Margins.BLOCKS,
    cost=CostModel(1.3, 0.00084, 1.0, 0),
)
