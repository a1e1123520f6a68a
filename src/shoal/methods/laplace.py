"""Plain Laplace noise on every cell: the baseline that microaggregation improves on.

Claim: epsilon, proved, row-aligned or shuffled. Changing a record changes its own row only, in each
protected column by at most the width of the public bounds, and each column's noise has scale
width / epsilon_j with the epsilon_j adding up to epsilon; a nominal cell is chosen at price
epsilon_j. Public columns may stand beside it: they are the same in both tables.
"""

from fractions import Fraction

import numpy as np

from shoal.core import Claim, Partition, Status
from shoal.methods import noisy
from shoal.methods.method import Masked, Method, Setting, Tools
from shoal.methods.noisy import Noisy, Split
from shoal.methods.rows import Rows, Spread
from shoal.table import Table

SOURCE = (
    "Dwork, McSherry, Nissim and Smith, Calibrating noise to sensitivity in private data analysis, "
    "TCC (2006), doi:10.1007/11681878_14"
)


def _claims(setting: Setting[Noisy]) -> tuple[Claim, ...]:
    claim = noisy.privacy_claim(
        setting,
        Status.PROVED,
        basis="a record changes its own row only, and each column's noise is scaled to its width",
        source=SOURCE,
    )
    return (claim,)


def _run(table: Table, setting: Setting[Noisy], tools: Tools) -> Masked:
    given = noisy.axes(table, setting)
    alone = Partition(np.arange(len(table)))
    prices = noisy.budgets(given, Fraction(setting.parameters.epsilon), Split.EQUAL)
    return Masked(*noisy.perturbed(table, tools, noisy.each(given, alone, prices)))


def _spread(rows: Rows, setting: Setting[Noisy], tools: Tools) -> Spread:
    """Every record is a group: its cells come to the driver as whole numbers and go back noisy."""
    given = noisy.spread_axes(rows, setting)
    prices = noisy.budgets(given, Fraction(setting.parameters.epsilon), Split.EQUAL)
    parts = noisy.each(given, rows.singly(), prices)
    changes, spendings = noisy.spread_perturbed(tools, parts)
    return Spread(changes, spendings=spendings)


METHOD = Method(
    name="laplace",
    summary="Add Laplace noise to every cell (differential privacy; the baseline).",
    parameters=Noisy,
    forms=noisy.LINKED,
    claims=_claims,
    run=_run,
    reference=SOURCE,
    example={"epsilon": 1},
    default_columns=noisy.protected_columns,
    refuse=noisy.refuse,
    noisy=True,
    sort_by=lambda _setting: (),
    spread=_spread,
    refuse_spread=noisy.public_only,
)
