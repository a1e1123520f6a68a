"""Remove dependence of two columns that a fit implies but that their own table contradicts.

Two columns that both depend on a third depend on each other in a fit, whatever their own table
says: a table that shows nothing above noise has parameters of zero, and zero means no dependence
*beyond* what all other tables imply. If the two are independent, the fit is then farther from the
truth than independence is.

What others imply. Parameters theta of columns a and b are one factor exp(theta(x_a, x_b)) of the
fitted p, which is constant in a sum over the other columns. So without it, and all else unchanged,
the pair would have shares in proportion to

    q = p exp(-theta),

exactly. Both q and the shares under independence, `alone`, are scaled to the same margins.

What the table shows. With d = q - alone, least squares of the noisy y along d estimate that the
table has

    l = 1 + <y - p, d> / <d, d>    times d,    with variance 1 / (W <d, d>),

W being the table's weight. (d adds up to zero in every row and column, so it does not matter that y
misses its margins.) As one number of a whole table, it is detectable where no single cell is. Most
implied dependence is right: l is 1 with a prior probability of 0.8, and otherwise uniform on the
quarters from 0 to 2.

What is done. With the mean of l given y, base = alone + l d, and the parameters of the table are
shrunk to log(base / q) in place of zero (`fit.Target.centre`), as strongly as before: a table that
shows nothing comes near `base`, if others stay unchanged, and cells with strong evidence hardly
move.

Nothing here sees a record. Measured on generated tables (docs/research/drawn-rows.md): 0.7 points
of the K-marginal score with a delta, less where noise is larger; estimating the shrinkage of cells
again, relative to `base`, lost as much.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shoal.core._arrays import Floats
from shoal.synthesis.maxent.fit import Fitted, Target
from shoal.synthesis.maxent.structural_zeros import GroupedZeros

_TIMES = np.arange(9) / 4
_PRIOR = np.where(_TIMES == 1, 0.8, 0.2 / 8)
_FITTED = 50
"""Largest number of iterations of scaling to margins."""
_SETTLED = 1e-12
"""Relative change of rows below which the margins are reached."""
_STEEP = 5.0
"""Largest parameter that is removed: beyond it, few particles show what other tables imply."""


def without_implied(
    targets: Sequence[Target], pairs: Sequence[Target], fitted: Fitted, zeros: GroupedZeros
) -> list[Target]:
    """Re-centre the parameters of tables whose implied dependence is contradicted, for a refit.

    Args:
        targets: what was fitted.
        pairs: the noisy table of every two columns, as it was measured.
        fitted: the fit to these targets.
        zeros: cells that have no mass, and the prior.
    """
    sizes = [prior.size for prior in zeros.priors]
    margins = {target.columns[0]: target.shares for target in targets if len(target.columns) == 1}
    centres = {}
    for table in pairs:
        a, b = table.columns
        ends = margins[a], margins[b]
        indep = _to_margins(zeros.table((a, b)), *ends)
        # A cell without particles is not impossible: one more particle is spread over all cells.
        shares = fitted.pair(a, b, sizes) + indep / len(fitted.weights)
        interaction = fitted.parameters(a, b, sizes, targets)
        interaction = interaction - (interaction * indep).sum()
        steep = np.abs(interaction) > _STEEP
        without = np.where(steep, indep, shares * np.exp(-np.where(steep, 0.0, interaction)))
        without = _to_margins(without, *ends)
        times = _observed_multiple(table, _to_margins(shares, *ends), without - indep)
        base = np.maximum(indep + times * (without - indep), np.minimum(indep, without) / 4)
        ratio = np.divide(base, without, out=np.ones_like(base), where=without > 0)
        centres[a, b] = np.log(np.where(base > 0, ratio, 1.0)).ravel()
    return [
        replace(target, centre=centres[target.columns])
        if target.joined is None and target.columns in centres
        else target
        for target in targets
    ]


def _observed_multiple(table: Target, fitted: Floats, implied: Floats) -> float:
    """Estimate which multiple of the implied dependence the noisy table supports."""
    weights = np.broadcast_to(table.weight, implied.size).reshape(implied.shape)
    precision = float((weights * implied**2).sum())
    off = table.shares.reshape(implied.shape) - fitted
    along = float((weights * implied * off).sum())
    logs = along * (_TIMES - 1) - precision * (_TIMES - 1) ** 2 / 2
    likely = _PRIOR * np.exp(logs - logs.max())
    return float((likely * _TIMES).sum() / likely.sum())


def _to_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale the table's rows and columns iteratively to these margins."""
    for _ in range(_FITTED):
        factors = rows / np.maximum(table.sum(axis=1), 1e-300)
        table = table * factors[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), 1e-300))
        if np.abs(factors - 1).max() < _SETTLED:
            break
    return table
