"""Two tables on which anonymeter's risks are stored in `anonymeter.toml`.

They come from uniform draws of a fixed bit stream by plain arithmetic, so they are the same
under any numpy; `checksum` in the file says whether they are. `bench/anonymeter_vectors.py` wrote
it.
"""

import numpy as np

ATTACKS = 1000
PREDICATES = {"numbers": (1000, 1000), "mixed": (1000, 200)}
"""On one and on three axes: the mixed table has few on three that single out."""


def numbers():
    """1,500 people in, 1,500 not in, five numbers; the release moves each number a little."""
    u = np.random.Generator(np.random.PCG64(20231)).random((3000, 10))
    base = u[:, 0] + u[:, 1]
    skew = -np.log1p(-u[:, 3])
    people = np.column_stack(
        [
            10 + base,
            10 + base + u[:, 2] / 2,
            1 + skew,
            1 + skew / 2 + u[:, 4],
            1 + u[:, 5] * u[:, 6],
        ]
    )
    moved = people[:1500] + (np.random.Generator(np.random.PCG64(7)).random((1500, 5)) - 0.5) / 300
    return people[:1500], people[1500:], moved, [False] * 5


def mixed():
    """Three categories, an age and an income; half of the release is copied, half is fresh."""
    u = np.random.Generator(np.random.PCG64(20232)).random((3750, 8))
    region = np.floor(6 * u[:, 0] ** 1.5)
    school = np.floor(4 * (0.6 * u[:, 1] + 0.4 * u[:, 0]))
    sex = np.floor(2 * u[:, 2])
    age = 18 + np.floor(70 * u[:, 3] ** 1.3)
    income = np.round(1000 * (1 + school + age / 30 + 4 * u[:, 4] * u[:, 5]), 1)
    people = np.column_stack([region, school, sex, age, income])
    inside, outside, fresh = people[:1500], people[1500:3000], people[3000:]
    return inside, outside, np.vstack([inside[:750], fresh]), [True, True, True, False, False]


TABLES = {"numbers": numbers, "mixed": mixed}
PARTS = {"numbers": ([0, 2], [1, 3, 4]), "mixed": ([1, 4], [0, 2, 3])}
SECRETS = {"numbers": {2: 0.05, 3: 0.05}, "mixed": {1: None, 4: 0.05}}
"""Secret columns, with the tolerance where they are numbers."""
