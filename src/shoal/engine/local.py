"""Run a method on this machine, in memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Progress
from shoal.methods import Method, Setting
from shoal.table import Table


@dataclass(frozen=True, eq=False)
class Outcome:
    """Original and protected rows, both in canonical order, and the way back.

    Attributes:
        places: for each row of the file, where it stands in the canonical order.
    """

    original: Table
    protected: Table
    places: NDArray[np.int64]


def run(table: Table, method: Method[Any], setting: Setting[Any], progress: Progress) -> Outcome:
    """Sort the rows canonically and run the method on them.

    Ties in a method go to the first row; after sorting, the result does not depend on the
    order of the file.
    """
    progress("sorting rows", 0, 1)
    order = table.canonical_order()
    original = table.take(order)
    protected = method.run(original, setting, progress)
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return Outcome(original, protected, places)
