"""Records that answer queries by whole numbers: one array, or blocks whose answers add up.

A mechanism that only counts need not see the records. It asks a `Columns` for a total, or sends the
records on a `Walk`: a state for each block, steps that change it, and questions that do not. Both
see one block at a time, and must not care how the records are cut into blocks. `HeldColumns` has
one block, in memory.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from shoal.core._arrays import Ints


class Walk(Protocol):
    """Blocks of records, each with a state."""

    def step(self, move: Callable[[Any], Ints]) -> Ints:
        """Change the state of each block, and sum the answers of the blocks."""

    def ask(self, question: Callable[[Any], Ints]) -> Ints:
        """Sum the answers of the blocks without changing their state."""


class Columns(Protocol):
    """Columns of whole-number codes."""

    def __len__(self) -> int: ...

    def total(self, question: Callable[[Sequence[Ints]], Ints]) -> Ints:
        """Sum the answers of the blocks."""

    def walk(self, start: Callable[[Sequence[Ints]], Any]) -> Walk:
        """Give each block a state."""


class HeldColumns:
    """Columns in memory: one block.

    >>> import numpy as np
    >>> HeldColumns([np.array([0, 1, 1])]).total(lambda columns: np.bincount(columns[0]))
    array([1, 2])
    """

    def __init__(self, columns: Sequence[Ints]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def total(self, question: Callable[[Sequence[Ints]], Ints]) -> Ints:
        """Compute the answer of the single block."""
        return question(self.columns)

    def walk(self, start: Callable[[Sequence[Ints]], Any]) -> "HeldWalk":
        """Give the single block a state."""
        return HeldWalk(start(self.columns))


class HeldWalk:
    """One block in memory, with its state."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def step(self, move: Callable[[Any], Ints]) -> Ints:
        """Change the state."""
        return move(self.state)

    def ask(self, question: Callable[[Any], Ints]) -> Ints:
        """Compute the answer of the single block."""
        return question(self.state)
