"""Run a method on this machine, in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Decomposition, Spending
from shoal.methods import Method, Setting, Tools
from shoal.table import Table


@dataclass(frozen=True, eq=False)
class Outcome:
    """Original and protected rows, both in canonical order, and the way back.

    Attributes:
        original: the rows that the protected ones stand for, or all.
        places: for each row of the file, where it stands in the canonical order.
        suppressed: how many rows were left out.
        notes: what the method has to say about this run.
        extras: tables that may be published beside the rows.
    """

    original: Table
    protected: Table | Decomposition
    places: NDArray[np.int64]
    spendings: tuple[Spending, ...]
    canonical: NDArray[np.int64] | None
    suppressed: int
    notes: tuple[str, ...] = ()
    extras: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)


def run(table: Table, method: Method[Any], setting: Setting[Any], tools: Tools) -> Outcome:
    """Sort the rows canonically and run the method on them.

    Ties in a method go to the first row; after sorting by all columns, the result does not
    depend on the order of the file. A method that may not look at some columns when it breaks
    ties names the others.
    """
    tools.progress("sorting rows", 0, 1)
    columns = None if method.sort_by is None else method.sort_by(setting)
    order = table.canonical_order(columns)
    original = table.take(order)
    masked = method.run(original, setting, tools)
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    suppressed = 0
    if masked.kept is not None:
        suppressed = len(original) - masked.kept.size
        original = original.take(masked.kept)
    return Outcome(
        original,
        masked.data,
        places,
        masked.spendings,
        masked.canonical,
        suppressed,
        masked.notes,
        masked.extras,
    )
