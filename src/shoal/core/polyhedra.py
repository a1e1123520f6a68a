"""Project points on polyhedra, row by row: half-spaces, hyperplanes, boxes and grids.

`shoal.core.allowed_records` uses it. No row depends on the others, to the last bit: all is
elementwise, and each row stops when it has converged itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core._arrays import Bools, Floats, Ints

ROUNDS = 2000
"""The most rounds of alternating projections."""

CLOSE = 1e-10
"""How far from a half-space a point may be, as a share of its largest term."""


@dataclass(frozen=True, eq=False)
class Half:
    """A half-space a x <= b, or a hyperplane a x = b."""

    a: Floats
    b: float
    equal: bool

    @property
    def used(self) -> Ints:
        """The coordinates with non-zero coefficients."""
        return np.flatnonzero(self.a).astype(np.int64)

    def excess(self, x: Floats) -> Floats:
        """Return a x - b. Elementwise, so no row depends on the others."""
        total = np.full(len(x), -self.b)
        for at in self.used:
            total = total + self.a[at] * x[:, at]
        return total

    def size(self, x: Floats) -> Floats:
        """Return the largest absolute term of a x - b."""
        total = np.full(len(x), abs(self.b))
        for at in self.used:
            total = np.maximum(total, np.abs(self.a[at] * x[:, at]))
        return total

    def holds(self, x: Floats) -> Bools:
        """Return which rows it contains, up to rounding."""
        over = self.excess(x)
        return (np.abs(over) if self.equal else over) <= CLOSE * np.maximum(self.size(x), 1e-6)

    def settle(
        self, x: Floats, live: Bools, grids: Sequence[float | None], low: Floats, high: Floats
    ) -> None:
        """Remove rounding error from the last column with room for the correction."""
        for at in self.used[::-1]:
            over = self.excess(x)
            wrong = live & ((over != 0) if self.equal else (over > 0))
            if not wrong.any():
                return
            value, grid = x[:, at] - over / self.a[at], grids[at]
            if grid:
                away = np.floor if self.a[at] > 0 else np.ceil
                value = (np.rint if self.equal else away)(np.round(value / grid, 9)) * grid
            fits = wrong & (value >= low[:, at]) & (value <= high[:, at])
            x[fits, at] = value[fits]


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """Half-spaces and hyperplanes, with the grid of each coordinate that has one."""

    halves: tuple[Half, ...]
    grids: tuple[float | None, ...]

    def project(
        self, start: Floats, low: Floats, high: Floats, gone: Bools
    ) -> tuple[Floats, Bools]:
        """Project rows onto the half-spaces and their boxes; also return where a point exists.

        A half-space with a coordinate that is `gone` does not count. Coordinates are rounded to
        their grids; where that breaks a relation, the point of least total move is taken.
        """
        live = [~np.asarray(gone[:, half.used].any(axis=1)) for half in self.halves]
        x = self._dykstra(start, live, low, high)
        for at, grid in enumerate(self.grids):
            if grid:
                x[:, at] = np.clip(np.rint(x[:, at] / grid) * grid, low[:, at], high[:, at])
        wrong = np.zeros(len(x), dtype=bool)
        for half, active in zip(self.halves, live, strict=True):
            half.settle(x, active, self.grids, low, high)
        for half, active in zip(self.halves, live, strict=True):
            wrong |= active & ~half.holds(x)
        solved = np.ones(len(x), dtype=bool)
        for row in np.flatnonzero(wrong):
            some = tuple(half for half, on in zip(self.halves, live, strict=True) if on[row])
            least = Polyhedron(some, self.grids).least_move(start[row], low[row], high[row])
            solved[row] = least is not None
            x[row] = x[row] if least is None else least
        return x, solved

    def least_move(self, start: Floats, low: Floats, high: Floats) -> Floats | None:
        """Return the point on the grids with the least total move, or None."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        if (low > high).any():
            return None
        if not self.halves:
            return start
        many, eye = len(start), np.eye(len(start))
        unit = np.array([grid or 1.0 for grid in self.grids])
        gridded = np.array([grid is not None for grid in self.grids])
        least = np.where(gridded, np.ceil(low / unit - 1e-9), low / unit)
        most = np.where(gridded, np.floor(high / unit + 1e-9), high / unit)
        relations = [
            LinearConstraint(
                np.append(half.a * unit, np.zeros(many)), half.b if half.equal else -np.inf, half.b
            )
            for half in self.halves
        ]
        solution = milp(
            np.append(np.zeros(many), unit),
            integrality=np.append(gridded, np.zeros(many)),
            bounds=Bounds(np.append(least, np.zeros(many)), np.append(most, np.full(many, np.inf))),
            constraints=[
                LinearConstraint(np.hstack([eye, -eye]), ub=start / unit),
                LinearConstraint(np.hstack([-eye, -eye]), ub=-start / unit),
                *relations,
            ],
        )
        if solution.x is None:
            return None
        steps = np.where(gridded, np.rint(solution.x[:many]), solution.x[:many])
        return np.asarray(steps * unit, dtype=np.float64)

    def _dykstra(self, start: Floats, live: Sequence[Bools], low: Floats, high: Floats) -> Floats:
        x, corrections = start.copy(), np.zeros((len(self.halves) + 1, *start.shape))
        moving = np.ones(len(start), dtype=bool)
        for _ in range(ROUNDS):
            rows = np.flatnonzero(moving)
            if not rows.size:
                break
            before, y = x[rows], x[rows]
            for number, (half, active) in enumerate(zip(self.halves, live, strict=True)):
                z = y + corrections[number, rows]
                over = half.excess(z)
                over = np.where(active[rows] & ((over > 0) | half.equal), over, 0.0)
                y = z - (over / float((half.a**2).sum()))[:, None] * half.a[None]
                corrections[number, rows] = z - y
            z = y + corrections[-1, rows]
            y = np.clip(z, low[rows], high[rows])
            corrections[-1, rows] = z - y
            x[rows] = y
            still = np.abs(y - before).max(axis=1) > 1e-13 * np.abs(y).max(axis=1)
            kept = np.logical_and.reduce(
                [
                    half.holds(y) | ~active[rows]
                    for half, active in zip(self.halves, live, strict=True)
                ]
            )
            moving[rows] = still | ~kept
        return x
