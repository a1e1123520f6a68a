"""Measurements by OpenDP, made once for each scale, and its conversion of a rho.

OpenDP takes as long to import as all of Shoal's core, and most commands never draw: so it is loaded
by the first draw.
"""

from fractions import Fraction
from functools import lru_cache
from math import inf, isinf, nextafter
from typing import Any

from shoal.core.concentrated import root_above
from shoal.errors import InternalError


def round_up(scale: Fraction) -> float:
    """Return the least float that is not below an exact number.

    >>> float(Fraction(1, 3)) >= Fraction(1, 3), round_up(Fraction(1, 3)) >= Fraction(1, 3)
    (False, True)
    """
    try:
        nearest = float(scale)
    except OverflowError:
        nearest = inf
    if nearest < scale:  # Python compares a float with a fraction exactly.
        nearest = nextafter(nearest, inf)
    if isinf(nearest):
        raise InternalError("The scale of the noise exceeds the largest float.")
    return nearest


@lru_cache(maxsize=64)
def laplace(scale: float) -> Any:
    """Make discrete Laplace noise on a vector of whole numbers."""
    from opendp.domains import atom_domain, vector_domain  # noqa: PLC0415
    from opendp.measurements import make_laplace  # noqa: PLC0415
    from opendp.metrics import l1_distance  # noqa: PLC0415
    from opendp.mod import enable_features  # noqa: PLC0415

    enable_features("contrib")
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def gaussian(scale: float) -> Any:
    """Make discrete Gaussian noise on a vector of whole numbers."""
    from opendp.domains import atom_domain, vector_domain  # noqa: PLC0415
    from opendp.measurements import make_gaussian  # noqa: PLC0415
    from opendp.metrics import l2_distance  # noqa: PLC0415
    from opendp.mod import enable_features  # noqa: PLC0415

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T=float), scale=scale)


@lru_cache(maxsize=64)
def gumbel_max(scale: float) -> Any:
    """Make OpenDP's noisy max for zero-concentrated privacy, the exponential mechanism."""
    from opendp.domains import atom_domain, vector_domain  # noqa: PLC0415
    from opendp.measurements import make_noisy_max  # noqa: PLC0415
    from opendp.measures import zero_concentrated_divergence  # noqa: PLC0415
    from opendp.metrics import linf_distance  # noqa: PLC0415
    from opendp.mod import enable_features  # noqa: PLC0415

    enable_features("contrib")
    return make_noisy_max(
        vector_domain(atom_domain(T="i64")),
        linf_distance(T="i64"),
        zero_concentrated_divergence(),
        scale=scale,
    )


@lru_cache(maxsize=64)
def threshold(scale: float, threshold: int) -> Any:
    """Make a release of the keys whose noisy count reaches a threshold."""
    from opendp.domains import atom_domain, map_domain  # noqa: PLC0415
    from opendp.measurements import make_gaussian_threshold  # noqa: PLC0415
    from opendp.metrics import absolute_distance, l02inf_distance  # noqa: PLC0415
    from opendp.mod import enable_features  # noqa: PLC0415

    enable_features("contrib")
    return make_gaussian_threshold(
        map_domain(atom_domain(T=str), atom_domain(T="i64")),
        l02inf_distance(absolute_distance(T="i64")),
        scale=scale,
        threshold=threshold,
    )


def approximate_epsilon(rho: Fraction, delta: Fraction) -> float:
    """Convert rho to epsilon at a delta by OpenDP, which rounds up.

    OpenDP converts mechanisms. Discrete Gaussian noise of scale 1 has rho between neighbours that
    are sqrt(2 rho) apart. The distance is rounded up to a float, and the delta down.
    """
    from opendp.combinators import make_zCDP_to_approxDP  # noqa: PLC0415

    apart = round_up(root_above(2 * rho))
    profile = make_zCDP_to_approxDP(gaussian(1.0)).map(apart)
    below = float(delta)
    if below > delta:  # Python compares a float with a fraction exactly.
        below = nextafter(below, 0)
    return float(profile.epsilon(below))


@lru_cache(maxsize=64)
def noisy_max(scale: float) -> Any:
    """Make OpenDP's noisy max for pure differential privacy, permute-and-flip."""
    from opendp.domains import atom_domain, vector_domain  # noqa: PLC0415
    from opendp.measurements import make_noisy_max  # noqa: PLC0415
    from opendp.measures import max_divergence  # noqa: PLC0415
    from opendp.metrics import linf_distance  # noqa: PLC0415
    from opendp.mod import enable_features  # noqa: PLC0415

    enable_features("contrib")
    return make_noisy_max(
        vector_domain(atom_domain(T="i64")), linf_distance(T="i64"), max_divergence(), scale=scale
    )
