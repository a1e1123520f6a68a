"""Build the hierarchy of a column, so nobody writes it by hand.

    tree = shoal.hierarchy.intervals(0, 99, [5, 10, 20])
    shoal.hierarchy.write(tree, "age.csv")

Every function returns a `Hierarchy`, whose paths hold the labels of one leaf, level by level. It is
a tree, and its levels are nested, or it is refused with the reason. What was read off the data is
marked (`observed`), because an epsilon takes every hierarchy for public.
"""

from shoal.core import Hierarchy
from shoal.hierarchy.codes import CodeScheme, MaskSide, codes, masked, prefixes
from shoal.hierarchy.files import mapping, read, write
from shoal.hierarchy.ranges import (
    DateLevel,
    dates,
    intervals,
    ordered,
    quantiles,
    quantiles_of,
)

__all__ = [
    "CodeScheme",
    "DateLevel",
    "Hierarchy",
    "MaskSide",
    "codes",
    "dates",
    "intervals",
    "mapping",
    "masked",
    "ordered",
    "prefixes",
    "quantiles",
    "quantiles_of",
    "read",
    "write",
]
