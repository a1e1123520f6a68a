from dataclasses import replace
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from shoal.errors import InternalError
from shoal.synthesis.kernels import gibbs
from shoal.synthesis.maxent import fit as module
from shoal.synthesis.maxent.fit import Target, fit_distribution
from shoal.synthesis.maxent.structural_zeros import GroupedZeros


def problem(seed, sizes, order=2, weight=400.0, noise=0.03):
    """A random table, its noisy one-way and joint shares, and uniform priors."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(int(np.prod(sizes)), 0.7)).reshape(sizes)
    sets = [(j,) for j in range(len(sizes))] + list(combinations(range(len(sizes)), order))
    targets = []
    for members in sets:
        table = joint.sum(axis=tuple(j for j in range(len(sizes)) if j not in members))
        targets.append(Target(members, table.ravel() + rng.normal(0, noise, table.size), weight))
    return joint, targets, [np.full(size, 1 / size) for size in sizes]


def table(p, members):
    return p.sum(axis=tuple(j for j in range(p.ndim) if j not in members)).ravel()


def all_cells(sizes, priors, targets, *, tau):
    """The fit of all cells, one axis per column."""
    found = module._fit_cells(sizes, GroupedZeros(priors=priors), targets, tau=tau)
    joint = np.zeros(sizes)
    joint[tuple(found.groups.T)] = found.weights
    return joint


def joined(rng, sizes, members):
    """A table over groups that are joined at random, with its number of cells."""
    places = tuple(np.unique(rng.integers(0, sizes[j], sizes[j]), return_inverse=True)[1]
                   for j in members)  # fmt: skip
    cells = int(np.prod([place.max() + 1 for place in places]))
    return Target(members, np.full(cells, 1 / cells), 1.0, places)


def joined_table(p, target):
    """The slow twin: one cell after the other."""
    shape = [int(place.max()) + 1 for place in target.joined]
    found = np.zeros(shape)
    for cell in np.ndindex(*p.shape):
        place = zip(target.columns, target.joined, strict=True)
        found[tuple(int(groups[cell[j]]) for j, groups in place)] += p[cell]
    return found.ravel()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tau", [1.0, 20.0])
def test_the_fit_is_the_minimum_of_the_convex_problem(seed, tau):
    sizes = (2, 3, 2)
    _, targets, priors = problem(seed, sizes)

    found = all_cells(sizes, priors, targets, tau=tau)

    def primal(p):
        p = np.maximum(p, 1e-15).reshape(sizes)
        value = float((p * np.log(p * 12)).sum())
        for t in targets:
            value += t.weight / tau / 2 * ((table(p, t.columns) - t.shares) ** 2).sum()
        return value

    other = minimize(primal, np.full(12, 1 / 12), bounds=[(1e-12, 1)] * 12, method="SLSQP",
                     constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
                     options={"ftol": 1e-13, "maxiter": 2000})  # fmt: skip
    assert found.sum() == pytest.approx(1)
    assert primal(found.ravel()) <= other.fun + 1e-6
    assert found.ravel() == pytest.approx(other.x, abs=2e-3)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 3))
def test_shared_sums_equal_the_plain_ones_cell_by_cell(seed, columns, order):
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 4, columns)]
    sets = [(j,) for j in range(columns)] + list(combinations(range(columns), order))
    whole = [Target(members, np.zeros(int(np.prod([sizes[j] for j in members]))), 1.0)
             for members in sets]  # fmt: skip
    fewer = [joined(rng, sizes, members) for members in sets]
    grid = module._Grid(sizes, whole + fewer)
    cells = np.array(list(product(*map(range, sizes))), dtype=np.uint8)
    particles = module._Particles(cells, sizes, whole + fewer)
    theta, weights = rng.normal(size=int(grid.starts[-1])), rng.random(len(cells))

    np.testing.assert_array_equal(grid.starts, particles.starts)
    np.testing.assert_allclose(grid.energies(theta), particles.energies(theta), atol=1e-12)
    np.testing.assert_allclose(grid.marginals(weights), particles.marginals(weights), atol=1e-12)
    weighed = weights.reshape(sizes)
    plain = np.concatenate([table(weighed, members) for members in sets]
                           + [joined_table(weighed, target) for target in fewer])  # fmt: skip
    np.testing.assert_allclose(grid.marginals(weights), plain, atol=1e-12)


def test_particles_reach_the_fit_of_all_cells():
    sizes = (5, 4, 6, 3)
    _, targets, priors = problem(1, sizes, weight=1e5, noise=0.002)

    dense = all_cells(sizes, priors, targets, tau=3.0)
    found = particles_of(sizes, priors, targets)

    joint = np.zeros(sizes)
    np.add.at(joint, tuple(found.groups.T), found.weights)
    assert found.spread > 0.9
    for members in combinations(range(4), 2):
        assert np.abs(table(joint, members) - table(dense, members)).sum() / 2 < 0.01


def particles_of(sizes, priors, targets, *, tau=3.0, particles=40_000, start=None):
    return module._fit_particles(
        sizes, GroupedZeros(priors=priors), targets, tau=tau, particles=particles,
        rng=np.random.default_rng(0), start=start, progress=lambda *_: None,
    )  # fmt: skip


@pytest.mark.parametrize("warm", [False, True])
def test_particles_follow_joined_tables_of_three_columns(warm):
    sizes, rng = (5, 4, 6, 3), np.random.default_rng(5)
    joint, targets, priors = problem(1, sizes, weight=1e5, noise=0.002)
    threes = []
    for members in ((0, 1, 2), (1, 2, 3)):
        target = joined(rng, sizes, members)
        threes.append(replace(target, shares=joined_table(joint, target), weight=1e5))
    start = particles_of(sizes, priors, targets) if warm else None

    dense = all_cells(sizes, priors, targets + threes, tau=3.0)
    found = particles_of(sizes, priors, targets + threes, start=start)

    drawn = np.zeros(sizes)
    np.add.at(drawn, tuple(found.groups.T), found.weights)
    assert found.spread > 0.9
    if warm:
        assert found.stages < particles_of(sizes, priors, targets + threes).stages
    for members in [*combinations(range(4), 2), (0, 1, 2), (1, 2, 3)]:
        assert np.abs(table(drawn, members) - table(dense, members)).sum() / 2 < 0.02
    for target in threes:
        assert np.abs(joined_table(drawn, target) - target.shares).sum() / 2 < 0.02


@pytest.mark.parametrize("members", [(1,), (0, 2)])
def test_particles_follow_joined_tables_of_fewer_columns(members):
    sizes, rng = (5, 4, 6), np.random.default_rng(5)
    joint, targets, priors = problem(1, sizes, weight=1e4, noise=0.01)
    target = joined(rng, sizes, members)
    target = replace(target, shares=joined_table(joint, target), weight=1e6)

    found = particles_of(sizes, priors, [*targets, target])

    drawn = np.zeros(sizes)
    np.add.at(drawn, tuple(found.groups.T), found.weights)
    dense = all_cells(sizes, priors, [*targets, target], tau=3.0)
    assert np.abs(drawn - dense).sum() / 2 < 0.03
    assert np.abs(joined_table(drawn, target) - target.shares).sum() / 2 < 0.01


def test_a_fit_that_does_not_settle_with_further_tables_is_the_one_before():
    sizes = (6, 6, 6, 6, 6, 6, 7)  # more cells than a dense fit takes
    _, targets, priors = problem(2, sizes, weight=1e4, noise=0.01)
    rng = np.random.default_rng(0)
    first = fit_distribution(sizes, priors, targets, tau=10.0, particles=20_000, rng=rng)
    further = problem(3, sizes, order=3, weight=1e6)[1][7:]

    found = fit_distribution(
        sizes, priors, [*targets, *further], tau=1.0, particles=50, rng=rng, start=first
    )

    assert found is first


def test_a_fit_of_all_cells_ends_where_it_ends_wherever_it_began():
    sizes = (3, 4, 2)
    _, targets, priors = problem(3, sizes, order=3, weight=1e4)
    rng = np.random.default_rng(0)

    first = fit_distribution(sizes, priors, targets[:-1], tau=1.0, particles=10, rng=rng)
    warm = fit_distribution(sizes, priors, targets, tau=1.0, particles=10, rng=rng, start=first)
    cold = fit_distribution(sizes, priors, targets, tau=1.0, particles=10, rng=rng)

    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-4)
    assert np.abs(first.weights - cold.weights).max() > 1e-3


def test_tables_of_four_columns_do_not_go_to_particles():
    _, targets, priors = problem(1, (2, 2, 2, 2), order=4)

    with pytest.raises(InternalError, match="three-way marginals only"):
        particles_of((2, 2, 2, 2), priors, targets, tau=1e-3, particles=1000)


def test_a_sweep_draws_each_column_given_the_others():
    rng = np.random.default_rng(0)
    sizes = np.array([3, 2, 4])
    single, pairs = rng.normal(size=(3, 4)), rng.normal(size=(3, 3, 4, 4))
    groups = np.column_stack([rng.integers(0, size, 50) for size in sizes]).astype(np.uint8)
    uniforms = rng.random((50, 3))
    places = rng.integers(0, 3, (1, 3, 4))
    strides = places * np.array([9, 3, 1])[None, :, None]
    theta = rng.normal(size=5 + 27)

    twin = groups.copy()
    for row, u in zip(twin, uniforms, strict=True):
        for j in range(3):
            energy = single[j, : sizes[j]] + sum(
                pairs[j, k, row[k], : sizes[j]] for k in range(3) if k != j
            )
            for v in range(sizes[j]):
                cell = [v if k == j else row[k] for k in range(3)]
                energy[v] += theta[5 + sum(strides[0, k, cell[k]] for k in range(3))]
            chances = np.exp(energy - energy.max())
            row[j] = np.searchsorted(np.cumsum(chances / chances.sum())[:-1], u[j], side="right")
    triples = np.array([[0, 1, 2]])
    free = GroupedZeros(priors=[np.ones(size) for size in sizes]).tables()
    gibbs(groups, sizes, single, pairs, triples, strides, np.array([5]), theta, free[1:], uniforms)

    np.testing.assert_array_equal(groups, twin)


def test_cells_come_in_lexicographic_order_with_the_largest_column_first():
    _, targets, priors = problem(0, (2, 4, 3))

    found = fit_distribution(
        (2, 4, 3), priors, targets, tau=1.0, particles=10, rng=np.random.default_rng(0)
    )

    order = [tuple(row) for row in found.groups[:, [1, 2, 0]]]
    assert order == sorted(order)
    assert len(order) == 24
    dense = all_cells((2, 4, 3), priors, targets, tau=1.0)
    np.testing.assert_allclose(found.weights, dense[tuple(found.groups.T)])


def test_a_fit_that_loses_earlier_tables_for_later_ones_is_not_taken():
    """As of two amounts that follow from each other: the particles lost every other column."""
    sizes = (4, 3, 2)
    _, targets, priors = problem(3, sizes, weight=40_000.0, noise=0.005)
    earlier = fit_distribution(sizes, priors, targets, tau=1.0, particles=0, rng=None)
    far = replace(earlier, weights=np.roll(earlier.weights, 1))
    near = replace(earlier, weights=0.995 * earlier.weights + 0.005 / earlier.weights.size)

    assert module._keeps(earlier, earlier, sizes, targets)
    assert module._keeps(near, earlier, sizes, targets)
    assert not module._keeps(far, earlier, sizes, targets)


@settings(max_examples=15)
@given(
    st.integers(0, 2**32),
    st.sampled_from([(4, 3, 5), (6, 6, 6, 6, 6, 6, 7)]),
    st.sampled_from([1.0, 1e3, 1e6]),
    st.booleans(),
)
def test_no_refit_loses_what_the_fit_before_had(seed, sizes, times, warm):
    """Whatever comes: tables that contradict each other, believed as closely as one likes."""
    _, targets, priors = problem(seed, sizes, weight=1e4, noise=0.01)
    rng = np.random.default_rng(seed)
    fit = partial(fit_distribution, sizes, priors, particles=400, rng=rng)
    earlier = fit(targets, tau=10.0)
    further = [replace(target, weight=1e4 * times) for target in problem(seed + 1, sizes)[1]]

    later = fit([*targets, *further], tau=10.0, start=earlier, warm=warm)

    def misfit(fitted, tables):
        return sum(
            t.weight * float(((shares_of(fitted, sizes, t.columns) - t.shares) ** 2).sum())
            for t in tables
        )

    cells = sum(target.shares.size for target in targets)
    assert misfit(later, targets) <= 4 * (misfit(earlier, targets) + cells) + 1e-6
    assert misfit(later, further) <= misfit(earlier, further) + 1e-6
    assert later is earlier or later.settled


def shares_of(fitted, sizes, columns):
    joint = np.zeros([sizes[j] for j in columns])
    np.add.at(joint, tuple(fitted.groups[:, j] for j in columns), fitted.weights)
    return joint.ravel()


@pytest.mark.parametrize("particles", [50, 300])
def test_particles_that_have_become_one_are_no_fit(particles):
    sizes = (6, 6, 6, 6, 6, 6, 7)  # more cells than a dense fit takes
    _, targets, priors = problem(2, sizes, weight=1e6, noise=0.01)

    found = fit_distribution(
        sizes, priors, targets, tau=1.0, particles=particles, rng=np.random.default_rng(0)
    )

    # Epsilon is spent: rows follow where particles are, or the prior if that is nearer.
    assert not found.settled
    assert found.groups.shape == (particles, 7)
    np.testing.assert_allclose(found.weights.sum(), 1.0)
    assert len(np.unique(found.groups, axis=0)) > particles / 2
    shares = [np.bincount(found.groups[:, j], found.weights, size) for j, size in enumerate(sizes)]
    assert max(np.abs(s - p).sum() / 2 for s, p in zip(shares, priors, strict=True)) < 0.2


def test_enough_particles_follow_the_same_tables():
    sizes = (6, 6, 6, 6, 6, 6, 7)
    _, targets, priors = problem(2, sizes, weight=1e4, noise=0.01)

    found = fit_distribution(
        sizes, priors, targets, tau=10.0, particles=40_000, rng=np.random.default_rng(0)
    )

    assert found.spread > 0.9
    assert found.tau == 10.0
