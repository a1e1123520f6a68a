import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from shoal.synthesis.kernels import direction
from shoal.synthesis.maxent.lbfgs import minimise


def soft(matrix, shift, slack):
    """A log-sum-exp with a quadratic, and its gradient."""

    def function(x):
        energy = matrix @ x
        top = energy.max()
        weights = np.exp(energy - top)
        value = top + np.log(weights.sum()) - shift @ x + slack * (x @ x) / 2
        return value, matrix.T @ (weights / weights.sum()) - shift + slack * x

    return function


@settings(max_examples=10)
@given(st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([1e-3, 0.1, 10.0]))
def test_the_minimum_is_that_of_scipy(seed, size, slack):
    rng = np.random.default_rng(seed)
    function = soft(rng.normal(size=(50, size)), rng.normal(size=size), slack)

    found = minimise(function, np.zeros(size), iterations=500)

    other = minimize(function, np.zeros(size), jac=True, method="L-BFGS-B",
                     options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9})  # fmt: skip
    assert function(found)[0] <= other.fun + 1e-7 * max(abs(other.fun), 1)


def test_the_direction_is_that_of_the_dense_update():
    rng = np.random.default_rng(2)
    base = rng.normal(size=(5, 5))
    hessian = base @ base.T + np.eye(5)
    steps = rng.normal(size=(4, 5))
    changes = steps @ hessian
    gradient = rng.normal(size=5)

    inverse = np.eye(5) * (steps[2] @ changes[2]) / (changes[2] @ changes[2])
    for row in (0, 1, 2):  # the oldest first
        s, y = steps[row], changes[row]
        left = np.eye(5) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)

    assert direction(gradient, steps, changes, 2, 3) == pytest.approx(-inverse @ gradient)
    assert direction(gradient, steps, changes, 2, 0) == pytest.approx(-gradient)


def test_a_minimum_is_left_alone():
    assert minimise(lambda x: (float(x @ x), 2 * x), np.zeros(3), iterations=5).tolist() == [0] * 3
