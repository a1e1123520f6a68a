from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from shoal.errors import InternalError
from shoal.mechanism import fit as module
from shoal.mechanism._kernels_fit import gibbs
from shoal.mechanism.fit import Target, fit, fit_dense


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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tau", [1.0, 20.0])
def test_the_fit_is_the_minimum_of_the_convex_problem(seed, tau):
    sizes = (2, 3, 2)
    _, targets, priors = problem(seed, sizes)

    found = fit_dense(sizes, priors, targets, tau=tau)

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
    grid = module._Grid(sizes, sets)
    cells = np.array(list(product(*map(range, sizes))), dtype=np.uint8)
    particles = module._Particles(cells, sizes, sets)
    theta, weights = rng.normal(size=int(grid.starts[-1])), rng.random(len(cells))

    np.testing.assert_array_equal(grid.starts, particles.starts)
    np.testing.assert_allclose(grid.energies(theta), particles.energies(theta), atol=1e-12)
    np.testing.assert_allclose(grid.marginals(weights), particles.marginals(weights), atol=1e-12)
    plain = np.concatenate([table(weights.reshape(sizes), members) for members in sets])
    np.testing.assert_allclose(grid.marginals(weights), plain, atol=1e-12)


def test_particles_reach_the_fit_of_all_cells():
    sizes = (5, 4, 6, 3)
    _, targets, priors = problem(1, sizes, weight=1e5, noise=0.002)

    dense = fit_dense(sizes, priors, targets, tau=3.0)
    found = module._fit_particles(
        sizes, priors, targets, tau=3.0, particles=40_000, rng=np.random.default_rng(0),
        progress=lambda *_: None,
    )  # fmt: skip

    joint = np.zeros(sizes)
    np.add.at(joint, tuple(found.groups.T), found.weights)
    assert found.spread > 0.9
    for members in combinations(range(4), 2):
        assert np.abs(table(joint, members) - table(dense, members)).sum() / 2 < 0.01


def test_tables_of_three_columns_do_not_go_to_particles():
    _, targets, priors = problem(1, (2, 2, 2), order=3)

    with pytest.raises(InternalError, match="one or two columns"):
        module._fit_particles(
            (2, 2, 2), priors, targets, tau=1e-3, particles=1000, rng=np.random.default_rng(0),
            progress=lambda *_: None,
        )  # fmt: skip


def test_a_sweep_draws_each_column_given_the_others():
    rng = np.random.default_rng(0)
    sizes = np.array([3, 2, 4])
    single, pairs = rng.normal(size=(3, 4)), rng.normal(size=(3, 3, 4, 4))
    groups = np.column_stack([rng.integers(0, size, 50) for size in sizes]).astype(np.uint8)
    uniforms = rng.random((50, 3))

    twin = groups.copy()
    for row, u in zip(twin, uniforms, strict=True):
        for j in range(3):
            energy = single[j, : sizes[j]] + sum(
                pairs[j, k, row[k], : sizes[j]] for k in range(3) if k != j
            )
            chances = np.exp(energy - energy.max())
            row[j] = np.searchsorted(np.cumsum(chances / chances.sum())[:-1], u[j], side="right")
    gibbs(groups, sizes, single, pairs, uniforms)

    np.testing.assert_array_equal(groups, twin)


def test_cells_come_in_lexicographic_order_with_the_largest_column_first():
    _, targets, priors = problem(0, (2, 4, 3))

    found = fit((2, 4, 3), priors, targets, tau=1.0, particles=10, rng=np.random.default_rng(0))

    order = [tuple(row) for row in found.groups[:, [1, 2, 0]]]
    assert order == sorted(order)
    assert len(order) == 24
    dense = fit_dense((2, 4, 3), priors, targets, tau=1.0)
    np.testing.assert_allclose(found.weights, dense[tuple(found.groups.T)])


@pytest.mark.parametrize("particles", [50, 300])
def test_particles_that_have_become_one_are_no_fit(particles):
    sizes = (6, 6, 6, 6, 6, 6, 7)  # more cells than a dense fit takes
    _, targets, priors = problem(2, sizes, weight=1e6, noise=0.01)

    with pytest.raises(InternalError, match="did not settle; nothing was drawn"):
        fit(sizes, priors, targets, tau=1.0, particles=particles, rng=np.random.default_rng(0))


def test_enough_particles_follow_the_same_tables():
    sizes = (6, 6, 6, 6, 6, 6, 7)
    _, targets, priors = problem(2, sizes, weight=1e4, noise=0.01)

    found = fit(sizes, priors, targets, tau=10.0, particles=40_000, rng=np.random.default_rng(0))

    assert found.spread > 0.9
    assert found.tau == 10.0
