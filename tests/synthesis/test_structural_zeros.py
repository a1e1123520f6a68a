from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import Kind, Neighbours, Price, PrivacyMeasure
from shoal.hazmat.fakes import SeededNoise
from shoal.mechanism.records import HeldColumns, RecordTotal
from shoal.synthesis.adaptive_tree import tree_histogram
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import fit as module
from shoal.synthesis.maxent import maxent, posterior
from shoal.synthesis.maxent.fit import Target, fit_distribution
from shoal.synthesis.maxent.pair_covers import cover
from shoal.synthesis.maxent.structural_zeros import AllowedCells, Component, GroupedZeros


@st.composite
def components(draw):
    """Domains, a component of two to four of their columns, and records that keep it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m = draw(st.integers(2, 4))
    domains = []
    for j in range(m):
        kind = draw(st.sampled_from([Kind.NUMERIC, Kind.ORDINAL, Kind.NOMINAL]))
        size = draw(st.integers(20, 60) if kind is Kind.NUMERIC else st.integers(2, 9))
        domains.append(Domain(f"c{j}", kind, size))
    columns = tuple(sorted(rng.permutation(m)[: draw(st.integers(2, m))].tolist()))
    counts = [int(rng.integers(1, min(domains[j].size, 4) + 1)) for j in columns]
    atoms = []
    for j, count in zip(columns, counts, strict=True):
        own = np.concatenate([np.arange(count), rng.integers(0, count, domains[j].size - count)])
        ordered = domains[j].kind is not Kind.NOMINAL
        atoms.append(np.sort(own) if ordered else rng.permutation(own))
    allowed = rng.random(counts) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    allowed[tuple(rng.integers(0, count) for count in counts)] = True
    zeros = Component(columns, tuple(atoms), allowed)
    strata = np.argwhere(allowed)[rng.integers(0, int(allowed.sum()), 400)]
    codes = [rng.integers(0, domain.size, 400) for domain in domains]
    for axis, j in enumerate(columns):
        codes[j] = np.array([rng.choice(np.flatnonzero(atoms[axis] == a)) for a in strata[:, axis]])
    return domains, zeros, codes


def keeps(zeros, rows):
    atoms = (own[rows[j]] for j, own in zip(zeros.columns, zeros.atoms, strict=True))
    return zeros.allowed[tuple(atoms)]


@settings(max_examples=6, deadline=None)
@given(components(), st.sampled_from([0.1, 1, 30]), st.booleans(), st.booleans())
def test_no_drawn_row_breaks_a_constraint_and_the_price_is_what_it_was(made, epsilon, dense, adds):
    domains, zeros, codes = made
    price = Price(Fraction(epsilon))
    total = None
    if adds:
        price = Price(Fraction(epsilon), Neighbours.ADD_REMOVE, PrivacyMeasure.RHO)
        total = RecordTotal(403.0, 4.0)
    with pytest.MonkeyPatch.context() as patch:
        for room in (module, posterior):
            patch.setattr(room, "DENSE", 10**6 if dense else 1)
        drawn = maxent(
            codes, domains, price=price, noise=SeededNoise(1), rng=np.random.default_rng(1),
            zeros=[zeros], total=total,
        )  # fmt: skip
    assert keeps(zeros, drawn.rows).all()
    costs = [loss.rho if adds else loss.epsilon for loss in drawn.privacy_losses]
    assert sum(costs) == price.amount


@settings(max_examples=50, deadline=None)
@given(components(), st.integers(0, 10**6))
def test_the_prior_is_one_distribution_however_it_is_asked(made, seed):
    domains, zeros, _ = made
    rng = np.random.default_rng(seed)
    own = [
        np.concatenate([np.arange(count), rng.integers(0, count, 2)])
        for count in zeros.allowed.shape
    ]
    groups = dict(zip(zeros.columns, own, strict=True))
    small = [groups[j].size if j in groups else 3 for j in range(len(domains))]
    priors = [rng.dirichlet(np.ones(size)) for size in small]
    grouped = GroupedZeros([zeros], [own], priors=priors)
    joint = np.exp(grouped.logarithms())
    assert joint.sum() == pytest.approx(1)
    whole = tuple(range(len(small)))
    assert (joint[~grouped.mask(whole)] == 0).all()
    for a, b in combinations(whole, 2):
        away = tuple(j for j in whole if j not in (a, b))
        np.testing.assert_allclose(grouped.table((a, b)), joint.sum(axis=away), atol=1e-12)
        assert ((grouped.table((a, b)) > 0) <= grouped.mask((a, b))).all()


@pytest.mark.parametrize("masses", [(0.7, 0.25, 0.05), (0.02, 0.96, 0.02)])
def test_particles_reach_every_stratum_with_its_mass_though_no_sweep_crosses(masses):
    # Three columns that are equal, in atoms of two groups each: to leave a stratum, all must move.
    atoms = np.repeat(np.arange(3), 2)
    equal = np.zeros((3, 3, 3), dtype=bool)
    equal[np.arange(3), np.arange(3), np.arange(3)] = True
    even = [np.full(6, 1 / 6)] * 3 + [np.full(4, 1 / 4)]
    zeros = GroupedZeros([Component((0, 1, 2), (atoms,) * 3, equal)], [[atoms] * 3], priors=even)
    rng = np.random.default_rng(3)
    joint = np.exp(zeros.logarithms()) * rng.dirichlet(np.ones(4), 3)[atoms][:, None, None, :]
    for stratum, mass in enumerate(masses):
        inside = atoms == stratum
        joint[inside] *= mass / joint[inside].sum()
    joint *= 1 + 0.5 * rng.random(joint.shape)
    joint /= joint.sum()
    targets = [
        Target(pair, joint.sum(axis=tuple({0, 1, 2, 3} - set(pair))).ravel(), 1e7)
        for pair in combinations(range(4), 2)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE", 1)
        found = fit_distribution(
            [6, 6, 6, 4], even, targets, tau=1.0, particles=30_000, rng=rng, zeros=zeros
        )
    assert not found.dense
    reached = np.bincount(atoms[found.groups[:, 0]], found.weights, minlength=3)
    wanted = joint.sum(axis=(1, 2, 3)).reshape(3, 2).sum(axis=1)
    np.testing.assert_allclose(reached, wanted, atol=0.003)
    both = np.zeros((6, 4))
    np.add.at(both, (found.groups[:, 0], found.groups[:, 3]), found.weights)
    assert np.abs(both - joint.sum(axis=(1, 2))).sum() < 0.03


@settings(max_examples=30, deadline=None)
@given(components())
def test_a_cover_counts_allowed_cells_alone(made):
    domains, zeros, _ = made
    sizes = [domain.size for domain in domains]
    small = [min(size, 6) for size in sizes]
    free = AllowedCells(small, [], 6)
    cells = AllowedCells(sizes, [zeros], 400)
    for members in combinations(range(len(sizes)), 2):
        assert free.root(members) ** 2 == pytest.approx(prod(small[j] for j in members))
        inside = [j for j in members if j in zeros.columns]
        away = tuple(a for a, j in enumerate(zeros.columns) if j not in inside)
        mask = zeros.allowed.any(axis=away)
        own = [zeros.atoms[zeros.columns.index(j)] for j in inside]
        counted = mask[np.ix_(*own)].sum() if inside else 1
        others = prod(sizes[j] for j in members if j not in inside)
        assert cells.root(members) ** 2 == pytest.approx(counted * others)
    plain = cover(small)
    assert cover(small, allowed=free).cost == pytest.approx(plain.cost)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(5)])
def test_leaves_of_a_tree_end_at_public_breaks(epsilon):
    column = np.random.default_rng(0).integers(0, 1000, 300)
    breaks = (3, 15, 17, 999)
    found = tree_histogram(
        HeldColumns([column]), 0, Domain("age", Kind.NUMERIC, 1000), price=Price(epsilon),
        noise=SeededNoise(2), breaks=breaks,
    )  # fmt: skip
    assert set(breaks) <= set(found.edges.tolist())
    assert [loss.epsilon for loss in found.privacy_losses] == [epsilon / 2] * 2
