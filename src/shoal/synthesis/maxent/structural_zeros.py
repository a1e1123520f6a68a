"""Structural zeros: combinations of codes that no record and no drawn row can have.

Constraints are public. They join columns into components. Within a component codes that no
constraint tells apart form an *atom*, and a table over atoms says which combinations are allowed
(`Component`). Atoms are few where codes are many: "no income below 15" has two atoms of age and two
of income.

The model has this structure. Bins and groups of a column lie inside atoms, so a cell over groups is
allowed or not as a whole (`GroupedZeros`), and a code drawn within a group cannot violate a
constraint. Forbidden cells have no mass in the prior, and hence none in the fit. Noise of a
marginal in forbidden cells is set to zero, and a cover of pairs counts allowed cells alone.

Theorem: the price of `maxent` stays as it is. Proof. Which cells are allowed follows from public
constraints, and from noisy counts, which put codes into groups. So what is asked follows from what
is public or published, as before. A table whose forbidden cells are left out counts each record at
most once, as the whole table does: a changed record moves its counts by at most 2, one that comes
or goes by at most 1, whether or not it keeps the constraints. All else is post-processing. QED

The prior. Of component c let s be a combination of atoms, and m_j(t) the mass that the marginals
with column j give to its atom t (`posterior.common_margins`). The prior is

    p0(x) = product over components of q_c(s(x)) times product over columns of p_j(x_j | atom),

where q_c is the distribution of greatest entropy over allowed combinations whose margins are the
m_j (iterative proportional fitting). A column that no constraint names is a component by itself.

Strata. Each allowed combination s is a stratum. A sweep that redraws one column at a time hardly
leaves it, so particles are not moved between strata: every stratum has its share of the particles
at the start, by q_c and at least a hundredth divided evenly, and from there its mass follows the
weights with which particles are resampled.

In mathematical notation: docs/explanation/proofs.md, "Maximum entropy".

References:
    Bishop, Fienberg, Holland, "Discrete multivariate analysis" (1975), chapter 5: structural zeros.
    Deming, Stephan, "On a least squares adjustment of a sampled frequency table", Annals of
    Mathematical Statistics 11 (1940). doi:10.1214/aoms/1177731829
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core._arrays import Array, Bools, Floats, Ints
from shoal.mechanism.systematic_sampling import systematic

_FITTED = 200
_SPARE = 0.01
"""Share of the prior that all allowed combinations have evenly, so each is reached."""


@dataclass(frozen=True, eq=False)
class Component:
    """A component of columns that are joined by constraints.

    Attributes:
        columns: by index, in increasing order.
        atoms: for each of them, the atom of each code.
        allowed: which combinations of atoms are allowed; one axis per column.
    """

    columns: tuple[int, ...]
    atoms: tuple[Ints, ...]
    allowed: Bools

    def cells(self, columns: Sequence[int], sizes: Sequence[Ints]) -> int:
        """Return the number of allowed cells in a table of some of its columns.

        `sizes` has for each column of the component how many groups each atom has.
        """
        inside = [axis for axis, j in enumerate(self.columns) if j in columns]
        away = tuple(axis for axis in range(len(self.columns)) if axis not in inside)
        left = _any(self.allowed, away).astype(np.int64)
        for axis in reversed(inside):
            left = left @ sizes[axis]
        return int(left)


class AllowedCells:
    """Public bounds on the number of cells in a table of some columns, for `pair_covers`.

    A column of more than `most` codes has about `most` groups, and each of its atoms at least one.
    """

    def __init__(self, sizes: Sequence[int], zeros: Sequence[Component], most: int) -> None:
        self._sizes = [min(size, most) for size in sizes]
        self._of = {j: (zero, _allotments(zero, most)) for zero in zeros for j in zero.columns}
        self._known: dict[tuple[int, ...], float] = {}

    def root(self, columns: tuple[int, ...]) -> float:
        """Return the square root of the number of cells."""
        if columns not in self._known:
            free = prod(self._sizes[j] for j in columns if j not in self._of)
            joined = {id(entry[0]): entry for j, entry in self._of.items() if j in columns}
            cells = prod(zero.cells(columns, sizes) for zero, sizes in joined.values())
            self._known[columns] = float(np.sqrt(free * cells))
        return self._known[columns]


def _allotments(component: Component, most: int) -> list[Ints]:
    return [allot_groups(np.bincount(atoms), most) for atoms in component.atoms]


def allot_groups(codes: Ints, most: int, masses: Floats | None = None) -> Ints:
    """Allot groups to atoms: about `most` in all, at least one each, by mass or codes.

    >>> allot_groups(np.array([3, 12, 2, 83]), 10)
    array([1, 1, 1, 8])
    """
    if codes.sum() <= most:
        return codes
    weights = codes.astype(np.float64) if masses is None else np.maximum(masses, 0.0) + 1e-9
    wanted = np.rint(most * weights / weights.sum()).astype(np.int64)
    groups: Ints = np.clip(wanted, np.minimum(codes, 1), codes)
    return groups


class PriorTables(NamedTuple):
    """The arrays of a prior that `shoal.synthesis.kernels.gibbs` reads.

    Attributes:
        single: logarithm of the share of each group in its atom, by column.
        component: component of each column, -1 for none.
        strides: stride of each column in the table of its component.
        atoms: atom of each group, by column.
        begins: where the table of each component begins.
        potential: logarithms of q, component after component; -inf where forbidden.
    """

    single: list[Floats]
    component: Ints
    strides: Ints
    atoms: Ints
    begins: Ints
    potential: Floats


class GroupedZeros:
    """Components over groups, with a prior from the one-way shares of groups.

    Args:
        components: the public ones.
        atoms: for each column of each component, the atom of each group.
        priors: shares of the groups of every column.
    """

    def __init__(
        self,
        components: Sequence[Component] = (),
        atoms: Sequence[Sequence[Ints]] = (),
        *,
        priors: Sequence[Floats],
    ) -> None:
        self.components, self._atoms, self.priors = tuple(components), tuple(atoms), priors
        self._where = {
            j: (c, axis) for c, o in enumerate(components) for axis, j in enumerate(o.columns)
        }

    @cached_property
    def strata(self) -> list[Floats]:
        """Q of each component."""
        pairs = zip(self.components, self._atoms, strict=True)
        return [self._fit_component(component, atoms) for component, atoms in pairs]

    def _fit_component(self, one: Component, atoms: Sequence[Ints]) -> Floats:
        """Fit q of a component."""
        q = one.allowed / one.allowed.sum()
        masses = [
            np.bincount(codes, self.priors[j], minlength=q.shape[axis])
            for axis, (j, codes) in enumerate(zip(one.columns, atoms, strict=True))
        ]
        for _ in range(_FITTED):
            for axis, mass in enumerate(masses):
                away = tuple(k for k in range(q.ndim) if k != axis)
                now = q.sum(axis=away, keepdims=True)
                q = q * np.divide(
                    mass.reshape(now.shape), now, out=np.zeros_like(now), where=now > 0
                )
        q = (1 - _SPARE) * q / q.sum() + _SPARE * one.allowed / one.allowed.sum()
        fitted: Floats = q
        return fitted

    def share_in_atom(self, j: int) -> Floats:
        """Return each group's share of its atom, or of all if the column is free."""
        prior = self.priors[j]
        if j not in self._where:
            return prior
        atoms = self._own(j)
        masses = np.bincount(atoms, prior)
        shares: Floats = prior / masses[atoms]
        return shares

    def _own(self, j: int) -> Ints:
        c, axis = self._where[j]
        return self._atoms[c][axis]

    def atoms_of(self, j: int, runs: Ints) -> Ints:
        """Return the atom of each run of a column's groups; a free column has one atom."""
        first = np.unique(runs, return_index=True)[1]
        return self._own(j)[first] if j in self._where else np.zeros(first.size, dtype=np.int64)

    def mask(self, columns: Sequence[int]) -> Bools:
        """Mask the allowed cells of a table of some columns; one axis per column."""
        allowed = np.ones([self.priors[j].size for j in columns], dtype=bool)
        for component in self.components:
            inside = [j for j in columns if j in component.columns]
            if inside:
                away = tuple(a for a, j in enumerate(component.columns) if j not in inside)
                allowed &= self._spread(_any(component.allowed, away), inside, columns)
        return allowed

    def table(self, columns: Sequence[int]) -> Floats:
        """Return the prior's marginal of some columns, in increasing order; one axis per column."""
        table = np.ones([self.priors[j].size for j in columns])
        for j in columns:
            table *= self.share_in_atom(j).reshape([-1 if k == j else 1 for k in columns])
        for component, q in zip(self.components, self.strata, strict=True):
            inside = [j for j in columns if j in component.columns]
            if inside:
                away = tuple(axis for axis, j in enumerate(component.columns) if j not in inside)
                table *= self._spread(q.sum(axis=away), inside, columns)
        return table

    def are_joined(self, a: int, b: int) -> bool:
        """Whether two columns lie in one component."""
        return a in self._where and b in self._where and self._where[a][0] == self._where[b][0]

    def _spread(self, table: Array, inside: Sequence[int], columns: Sequence[int]) -> Array:
        """Expand a table over atoms to groups, with an axis of length 1 for every other column."""
        grouped = table[np.ix_(*(self._own(j) for j in inside))]
        return grouped.reshape([self.priors[j].size if j in inside else 1 for j in columns])

    def logarithms(self) -> Floats:
        """Return the logarithm of the prior on all cells."""
        every = range(len(self.priors))
        base = np.zeros([prior.size for prior in self.priors])
        with np.errstate(divide="ignore"):
            for j in every:
                base += np.log(self.share_in_atom(j)).reshape([-1 if k == j else 1 for k in every])
            for component, q in zip(self.components, self.strata, strict=True):
                base += self._spread(np.log(q), component.columns, every)
        return base

    def particles(self, count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Draw rows from the prior, each stratum in proportion to its probability."""
        groups = np.empty((count, len(self.priors)), dtype=np.uint8)
        for j, prior in enumerate(self.priors):
            if j not in self._where:
                groups[:, j] = rng.permutation(_repeat(prior, count, rng))
        for c, component in enumerate(self.components):
            strata = rng.permutation(_repeat(self.strata[c].ravel(), count, rng))
            for j, atoms in zip(
                component.columns, np.unravel_index(strata, component.allowed.shape), strict=True
            ):
                atom_of, shares = self._own(j), self.share_in_atom(j)
                for atom in np.unique(atoms):
                    rows, members = np.flatnonzero(atoms == atom), np.flatnonzero(atom_of == atom)
                    drawn = _repeat(shares[members], rows.size, rng)
                    groups[rows, j] = rng.permutation(members[drawn])
        return groups

    def tables(self) -> PriorTables:
        """Return the prior as arrays for the kernel of a Gibbs sweep."""
        m, widest = len(self.priors), max(prior.size for prior in self.priors)
        component, strides = np.full(m, -1, dtype=np.int64), np.zeros(m, dtype=np.int64)
        atoms = np.zeros((m, widest), dtype=np.int64)
        begins = np.cumsum([0, *(q.size for q in self.strata)])
        for c, part in enumerate(self.components):
            shape = part.allowed.shape
            for axis, j in enumerate(part.columns):
                component[j], strides[j] = c, prod(shape[axis + 1 :])
                atoms[j, : self.priors[j].size] = self._own(j)
        with np.errstate(divide="ignore"):
            potential = np.log(np.concatenate([np.zeros(0), *(q.ravel() for q in self.strata)]))
            single = [np.log(self.share_in_atom(j)) for j in range(m)]
        return PriorTables(single, component, strides, atoms, begins, potential)


def _any(allowed: Bools, away: tuple[int, ...]) -> Bools:
    return np.asarray(allowed.any(axis=away))


def _repeat(shares: Floats, count: int, rng: np.random.Generator) -> Ints:
    return np.repeat(np.arange(shares.size), systematic(shares, count, rng))
