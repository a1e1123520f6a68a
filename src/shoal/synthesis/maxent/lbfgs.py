"""L-BFGS for smooth convex functions of many variables, without a linear algebra library.

SciPy's L-BFGS-B finds the same minimum, but its inner products go to a threaded BLAS: on a machine
whose cores are busy we saw a fit of 2 seconds take 147, nearly all of it threads that
wait for one another. Nothing here needs threads or bounds.

References:
    Nocedal, "Updating quasi-Newton matrices with limited storage", Math. Comp. 35 (1980).
    doi:10.1090/S0025-5718-1980-0572855-7
"""

from collections.abc import Callable

import numpy as np

from shoal.core._arrays import Floats
from shoal.synthesis.kernels import direction

_MEMORY = 20
_DECREASE = 1e-4  # Armijo's condition
_FLAT = 1e-10
_STEEP = 1e-7
_HALVINGS = 40


def minimise(
    function: Callable[[Floats], tuple[float, Floats]], start: Floats, *, iterations: int
) -> Floats:
    """Minimise a smooth convex function by L-BFGS from a start.

    Steps are shortened by quadratic interpolation until the function decreases by 1e-4 of what its
    slope predicts. It ends when no partial derivative exceeds 1e-7, when a step gains less than
    1e-10 of the value, or after `iterations`. The function, smooth and convex, gives its value and
    gradient.
    """
    point = start.copy()
    value, gradient = function(point)
    steps, changes = np.zeros((2, _MEMORY, point.size))
    newest, kept = -1, 0
    for _ in range(iterations):
        if np.maximum.reduce(np.abs(gradient)) <= _STEEP:
            break
        along = direction(gradient, steps, changes, newest, kept)
        slope = float(np.add.reduce(along * gradient))
        if slope >= 0:  # Rounding spoilt the curvature; begin anew with the steepest descent.
            kept = 0
            along = -gradient
            slope = -float((gradient * gradient).sum())
        size = 1.0 if kept else min(1.0, 1.0 / float(np.abs(gradient).sum()))
        for _halving in range(_HALVINGS):
            following, ahead = function(point + size * along)
            if following <= value + _DECREASE * size * slope:
                break
            bend = 2 * (following - value - size * slope)
            size *= min(max(-slope * size / bend, 0.1), 0.5)
        else:
            break
        step, change = size * along, ahead - gradient
        if float(np.add.reduce(step * change)) > 0:
            newest = (newest + 1) % _MEMORY
            steps[newest], changes[newest] = step, change
            kept = min(kept + 1, _MEMORY)
        gain = value - following
        point, value, gradient = point + step, following, ahead
        if gain <= _FLAT * max(abs(value), 1.0):
            break
    return point
