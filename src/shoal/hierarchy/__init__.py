"""Build the hierarchy of a column.

    tree = shoal.hierarchy.intervals(0, 99, [5, 10, 20])
    shoal.hierarchy.write(tree, "age.csv")

Every function returns a `Hierarchy`, whose paths hold the labels of one leaf, level by level. It
refuses anything but a tree with nested levels, and says why. A hierarchy read off the data is
marked (`observed`), because an epsilon claim takes every hierarchy to be public.
"""

from shoal.core import Hierarchy
from shoal.hierarchy.codes import CodeScheme, MaskSide, codes, mask_codes, prefixes
from shoal.hierarchy.files import mapping, read, write
from shoal.hierarchy.ranges import (
    DateLevel,
    dates,
    intervals,
    join_ordered,
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
    "join_ordered",
    "mapping",
    "mask_codes",
    "prefixes",
    "quantiles",
    "quantiles_of",
    "read",
    "write",
]
