"""List the lattice of levels around the node of least loss, each node evaluated separately.

A whole lattice is listed if it is small. Of a larger one these nodes are: the node of least loss,
those one step away from it, then two steps, and so on while all of them fit; a step is one level of
one column. If every node fails, the highest levels take the place of the best ones.

Cost: that of `full_domain`, and O(n d) for each node that is listed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from shoal.core import silent
from shoal.core._arrays import Ints
from shoal.partition.full_domain import LatticeOptions, Node, prepare
from shoal.partition.kernels.full_domain import Lattice

MOST_LISTED = 60
"""Nodes of a lattice that a page can show."""


@dataclass(frozen=True)
class NodeState:
    """The result for one node.

    Attributes:
        levels: of each column.
        loss: None if it does not keep what is required.
        suppressed: records that it leaves out. If it fails, how many would have to be; where a
            model beside k is required, no less than this number.
        pruned: the search did not look at it, because no loss from here upwards is less.
    """

    levels: Node
    loss: float | None
    suppressed: int
    pruned: bool


@dataclass(frozen=True)
class Layer:
    """The nodes of one height (sum of levels), and what the search found of them.

    Attributes:
        height: the sum.
        nodes: how many they are.
        failing: of these, nodes that do not keep what is required.
        looked_at: nodes that were looked at and closed nothing below them.
        pruned: nodes that were not looked at, because no loss from there upwards is less.
    """

    height: int
    nodes: int
    failing: int
    looked_at: int
    pruned: int


@dataclass(frozen=True)
class Neighbourhood:
    """A lattice, or the part around its best node.

    Attributes:
        best: levels of the node of least loss, None if every node fails.
        nodes: those that are listed, by height and then by levels.
        layers: of the whole lattice, from the lowest.
        size: nodes of the whole lattice.
    """

    best: Node | None
    nodes: tuple[NodeState, ...]
    layers: tuple[Layer, ...]
    size: int


def neighbourhood(
    codes: ArrayLike,
    hierarchies: Sequence[ArrayLike],
    k: int,
    *,
    most: int = MOST_LISTED,
    **options: Unpack[LatticeOptions],
) -> Neighbourhood:
    """Search a lattice as `full_domain` does, and list at most about `most` nodes around the best.

    >>> tree = [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]]
    >>> found = neighbourhood([[0], [1], [2], [3]], [tree], 2)
    >>> found.best, [node.loss for node in found.nodes]
    ((1,), [None, 0.5, 1.0])
    """
    search, lattice = prepare(codes, hierarchies, options)
    solution = search.best(lattice, k, options.get("progress", silent))
    low, high = lattice.low, lattice.low + lattice.shape - 1
    centre = tuple(high.tolist()) if solution is None else solution.levels
    listed = sorted(_around(centre, low, high, most), key=lambda node: (sum(node), node))
    states = []
    for node in listed:
        at = int((np.array(node) - low) @ lattice.strides)
        loss, _, _, gone = search.rate_node(np.array(node, np.int64), k)
        known = lattice.passed[at] or not isfinite(lattice.bound[at])
        states.append(NodeState(node, loss if isfinite(loss) else None, gone, not known))
    best = None if solution is None else solution.levels
    return Neighbourhood(best, tuple(states), tuple(_layers(lattice)), len(lattice.bound))


def _around(centre: Node, low: Ints, high: Ints, most: int) -> set[Node]:
    """List all nodes, or those within whole steps of one node; the first step is complete."""
    if np.prod(high - low + 1.0) <= most:
        return set(product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))))
    reached, edge = {centre}, {centre}
    while edge:
        edge = {node for start in edge for node in _steps(start, low, high)} - reached
        if len(reached) > 1 and len(reached) + len(edge) > most:
            break
        reached |= edge
    return reached


def _steps(node: Node, low: Ints, high: Ints) -> Iterator[Node]:
    for place, level in enumerate(node):
        for other in (level - 1, level + 1):
            if low[place] <= other <= high[place]:
                yield (*node[:place], other, *node[place + 1 :])


def _layers(lattice: Lattice) -> Iterator[Layer]:
    every = np.arange(len(lattice.bound))
    heights = sum(
        (every // stride % size + low
         for stride, size, low in zip(lattice.strides, lattice.shape, lattice.low, strict=True)),
        np.zeros_like(every),
    )  # fmt: skip
    failing = ~np.isfinite(lattice.bound)
    looked_at = lattice.passed & ~failing
    least = int(heights.min())
    counts = [
        np.bincount(heights - least, kind)
        for kind in (np.ones_like(failing), failing, looked_at, ~(failing | looked_at))
    ]
    for height, numbers in enumerate(zip(*counts, strict=True), least):
        yield Layer(height, *map(int, numbers))
