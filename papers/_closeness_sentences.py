"""What Domingo-Ferrer and Soria-Comas (2015) say of closeness itself: sections 3 to 5, tested.

Distributions and tables are small enough to try all of them, or many; nothing is random but by a
seed.
"""

import math
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import _common as common
import numpy as np
import polars as pl
from _common import Floats, Sentence, once, show

import shoal
from shoal.core import Distance
from shoal.partition import bucketization, rank_buckets
from shoal.privacy_models import (
    Counts,
    epsilon_for_t,
    epsilon_from_t,
    stochastic_t,
    t_closeness,
    t_from_epsilon,
)

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)
LARGEST = 30
"""Tables of up to so many records are tried in the formula's grid."""
IDENTITY = np.eye(2)


def rng() -> np.random.Generator:
    """The generator of every random table here."""
    return np.random.default_rng(common.SEED)


def distance(one: Floats, other: Floats) -> float:
    """Definition 4 for discrete distributions, by Proposition 2."""
    p, q = one[(one > 0) | (other > 0)], other[(one > 0) | (other > 0)]
    with np.errstate(divide="ignore"):
        return float(max((p / q).max(), (q / p).max()))


def over_all_sets(one: Floats, other: Floats) -> float:
    """Definition 4 as it is written: every set of values is tried."""
    places = range(len(one))
    worst = 0.0
    for size in range(1, len(one) + 1):
        for chosen in combinations(places, size):
            p, q = one[list(chosen)].sum(), other[list(chosen)].sum()
            if p or q:
                worst = max(worst, math.inf if min(p, q) == 0 else max(p / q, q / p))
    return worst


# Sections 3 and 4: stochastic t-closeness, and the formula of Proposition 1.


def attained(n: int, size: int, epsilon: float) -> float:
    """The largest ratio of shares, either way, that record-wise epsilon allows.

    For an output, record i has probability p_i, and no two differ by more than exp(epsilon). The
    ratio of the class's mean to the table's is a quotient of linear functions, largest and
    smallest in a corner: each p_i is q or q exp(epsilon), and q may be as small as it takes. By
    symmetry only their numbers count, in the class and outside.
    """
    x = math.exp(epsilon)
    inside = np.arange(size + 1)[:, None]
    outside = np.arange(n - size + 1)[None, :]
    own = (size + inside * (x - 1)) / size
    whole = (n + (inside + outside) * (x - 1)) / n
    return float(max((own / whole).max(), (whole / own).max()))


def stated(n: int, size: int, epsilon: float) -> float:
    """The formula as our copy of Proposition 1 has it, with N - |E| - 1."""
    return size / n * (1 + (n - size - 1) / size * math.exp(epsilon))


def first_term(n: int, size: int, epsilon: float) -> float:
    """The other term of the maximum in the proof."""
    return n / size / (1 + (n - size) / size * math.exp(-epsilon))


def t_of(n: int, size: int, epsilon: float) -> float:
    """The formula for one class, with N - |E|."""
    return size / n + (1 - size / n) * math.exp(epsilon)


def formula() -> list[Sentence]:
    """Sentences on Definition 3 and Proposition 1."""
    grid = [(n, e, x) for n in range(2, LARGEST + 1) for e in range(1, n + 1) for x in EPSILONS]
    most = {case: attained(*case) for case in grid}
    off = max(abs(t_of(*case) / most[case] - 1) for case in grid)
    # The function takes all classes, and its t is that of the smallest.
    pairs = [(n, e, x) for n, e, x in grid if 2 * e <= n]
    function = max(abs(t_from_epsilon(x, [e, n - e]) / t_of(n, e, x) - 1) for n, e, x in pairs)
    exceeded = [case for case in grid if most[case] > stated(*case) * (1 + 1e-12)]
    named = (10, 3, 1.0)
    second = min(t_of(*case) / first_term(*case) for case in grid)
    certain = [
        (stochastic_t(counts, np.eye(4)), _plain(counts))
        for counts in rng().integers(0, 40, (300, 3, 4)) + np.array([1, 0, 0, 0])
    ]
    proposition = (
        "Proposition 1: record-wise ε-differential privacy gives stochastic t-closeness with t = "
        "max e/N (1 + (N − e − 1)/e exp(ε)) over the sizes e of classes"
    )
    where = f"N = 2 to {LARGEST}, all e up to N, ε = 0.1, 0.5, 1, 2, 3"
    return [
        Sentence(
            "“there is a natural extension of the concept of t-closeness that deals smoothly with "
            "stochastic functions” (Definition 3)",
            "300 tables of three classes and four values: with draws that are certain, "
            "`stochastic_t` is plain t-closeness by the ratio",
            once(all(math.isclose(a, b) or a == b for a, b in certain)),
            f"equal in all {len(certain)}; infinite in {sum(math.isinf(b) for _, b in certain)}",
        ),
        Sentence(
            proposition,
            f"{where}: no channel that is private record by record exceeds it",
            once(not exceeded),
            f"exceeded in {len(exceeded):,} of {len(grid):,} cases; N = 10, e = 3, ε = 1: "
            f"{stated(*named):.4f} against {most[named]:.4f}",
        ),
        Sentence(
            proposition,
            f"{where}: equal to the largest ratio, up to rounding; `t_from_epsilon` agrees",
            once(off < 1e-12 and function < 1e-12),
            f"largest relative difference {off:.1g} (function: {function:.1g}); N = 10, e = 3, "
            f"ε = 1: {t_of(*named):.4f}",
            reading="with N − e, the number that the proof's inequality (3) sums over",
        ),
        Sentence(
            "“It can be seen that the second term is always greater than the first one”",
            "second / first at least 1 on the grid, with N − e; equal where the class is the table",
            once(second >= 1 - 1e-12),
            f"least quotient {second:.6g}",
        ),
        *_approaches(),
        *_stronger(),
    ]


def _plain(counts: Floats) -> float:
    pairs = [(e, v) for e, row in enumerate(counts) for v, c in enumerate(row) for _ in range(c)]
    classes, values = np.array(pairs).T
    found = t_closeness(Counts.of(classes, values), 1, distance=Distance.RATIO).achieved
    return math.inf if found is None else float(found)


def _approaches() -> list[Sentence]:
    joint, each = [], []
    for counts in rng().integers(0, 4, (300, 3, 2, 3)) + 1:
        whole = stochastic_t(counts.reshape(3, 6), np.eye(6))
        joint.append(whole)
        sides = (counts.sum(axis=2), counts.sum(axis=1))
        each.append(max(stochastic_t(side, np.eye(side.shape[1])) for side in sides))
    # Two columns of two values: both halves in each class, but never in the same order.
    crossed = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    alone = max(stochastic_t(side, IDENTITY) for side in (crossed.sum(axis=2), crossed.sum(axis=1)))
    together = stochastic_t(crossed.reshape(2, 4), np.eye(4))
    sizes = [(n, e, x) for n in (10, 100, 1000) for e in (2, n // 2) for x in EPSILONS]
    parts = [(t_of(n, e, x), t_of(n, e, 2 * x)) for n, e, x in sizes]
    return [
        Sentence(
            "“The first approach [attributes together] is stronger in terms of privacy guarantees”",
            "300 tables of two columns: each column by itself is at most as far as both jointly; "
            "and a table exists where each is 1-close and both are not close at any t",
            once(
                all(a <= b * (1 + 1e-12) for a, b in zip(each, joint, strict=True))
                and alone == 1
                and math.isinf(together)
            ),
            f"joint distance above that of the columns in "
            f"{sum(b > a * (1 + 1e-9) for a, b in zip(each, joint, strict=True))} of 300",
        ),
        Sentence(
            "“If … we had ε-differential privacy for each individual attribute, then the second "
            "approach would be more suitable”",
            "two columns at ε each: the t of a column is below that of both jointly, which have 2ε",
            once(all(own < both for own, both in parts)),
            f"N = 100, classes from 2, ε = 1: {show(t_of(100, 2, 1.0))} for a column, "
            f"{show(t_of(100, 2, 2.0))} jointly",
        ),
    ]


def neighbours(n: int) -> tuple[Floats, Floats]:
    """Two tables of two classes with n records each; one record has another value."""
    half = n // 2
    before = np.array([[half, n - half]] * 2)
    after = before.copy()
    after[0] += (-1, 1)
    return before, after


def lying(q: float) -> Floats:
    """Two values, and the wrong one with probability q."""
    return np.array([[1 - q, q], [q, 1 - q]])


def _stronger() -> list[Sentence]:
    rows = []
    for n, q in product((4, 10, 100), (0.25, 1e-3, 1e-6)):
        t = max(stochastic_t(table, lying(q)) for table in neighbours(n))
        rows.append((t, math.log((1 - q) / q), (n - 1) / (n - 2)))
    finite = [t_from_epsilon(x, [e, 100 - e]) for e in (1, 50) for x in EPSILONS]
    far = rows[-1]
    return [
        Sentence(
            "“ε-differential privacy is stronger than (stochastic) t-closeness as a privacy model”",
            "every ε gives a finite t; and two neighbouring tables exist that are both t-close "
            "with t at most (n − 1)/(n − 2), classes of n, at an ε above 2 ln t and without bound",
            once(
                all(map(math.isfinite, finite))
                and all(t <= bound * (1 + 1e-12) for t, _, bound in rows)
                and all(x > epsilon_from_t(bound) for _, x, bound in rows)
            ),
            f"n = 100 and a lie with probability 1e-6: t = {show(far[0])}, ε = {show(far[1])}",
        ),
        Sentence(
            "“t-closeness fails to provide any protection if we assume that all the records except "
            "one are known by the intruder”",
            "the example of Fig. 2: for each of the 12 records, the class's buckets without the "
            "known ones leave one, the true one",
            once(_all_but_one()),
            "12 of 12",
        ),
        Sentence(
            "“Attaining exact ε-differential privacy from t-closeness is unfeasible”",
            "two tables that differ in one record, released as they are: both are close at a "
            "finite t, and one has a row that the other has not",
            once(
                all(
                    math.isfinite(stochastic_t(one, IDENTITY)) and (one != other).any()
                    for n in (4, 10, 100)
                    for one, other in permutations(neighbours(n))
                )
            ),
            f"classes of 100: t = {show(stochastic_t(neighbours(100)[1], IDENTITY))}, no ε",
        ),
    ]


def _all_but_one() -> bool:
    bucket = rank_buckets(np.arange(12), 3)
    found = bucketization(np.arange(12.0)[:, None], bucket, 4, Fraction(3, 2))
    for record, label in enumerate(found.partition.labels):
        left = found.counts[label].copy()
        for other in np.flatnonzero(found.partition.labels == label):
            left[bucket[other]] -= other != record
        if left.tolist() != np.eye(3)[bucket[record]].tolist():
            return False
    return True


# Section 5: what t-closeness gives.


def views() -> list[Sentence]:
    """Sentences on the distance of discrete distributions."""
    generator = rng()
    tried = []
    for _ in range(300):
        one, other = generator.integers(0, 15, (2, generator.integers(2, 8))).astype(float)
        if one.any() and other.any():
            one, other = one / one.sum(), other / other.sum()
            tried.append((over_all_sets(one, other), distance(one, other)))
    # By class, first column and second column.
    counts = np.array([[[4, 0], [2, 0]], [[0, 2], [0, 4]]])
    sides = counts.sum(axis=2) / 6, counts.sum(axis=1) / 6
    first, second = (distance(own, other) for own, other in sides)
    return [
        Sentence(
            "Proposition 2: for discrete distributions “taking the maximum over the possible "
            "individual values suffices”",
            "300 pairs of distributions on 2 to 7 values, zeros among them: the same as over all "
            "sets of values",
            once(all(a == b or math.isclose(a, b) for a, b in tried)),
            f"equal in all {len(tried)}; infinite in {sum(math.isinf(a) for a, _ in tried)}",
        ),
        Sentence(
            "“t-closeness offers no additional protection to the quasi-identifiers beyond what "
            "k-anonymity does. … we may learn that an individual is not in the data set”",
            "people of 20 to 29 and of 60 to 69, released as intervals with k = 5, with t = 2 "
            "required and without: somebody of 45 fits no class, those of 20 and 69 do",
            {
                "k-anonymity": _shut_out(None),
                "k-anonymity and 2-closeness": _shut_out({"t": 2, "distance": "ratio"}),
            },
            "the same intervals with and without t-closeness",
        ),
        Sentence(
            "“If t-closeness is satisfied only for a specific confidential attribute …, then we "
            "get differential privacy for that attribute”",
            "a table of two columns whose classes are 2-close in the first one only: shares in two "
            "classes differ by at most 2² in it, and without bound in the other",
            once(first <= 4 and math.isinf(second)),
            f"by {show(first)} and ∞",
            reading="of an intruder's view, as Proposition 3 is",
        ),
    ]


def _shut_out(asked: dict[str, Any] | None) -> bool:
    """Whether ranges of ages tell that somebody of 45 is not there, and of 20 and 69 do not."""
    ages = [*range(20, 30), *range(60, 70)]
    frame = pl.DataFrame({"age": ages, "ill": ["no", "yes"] * 10})
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "ill": {"role": "confidential", "kind": "nominal"},
    }
    policy = {
        "version": 1,
        "columns": columns,
        "protect": {"method": "mondrian", "k": 5, "output": "intervals"},
        "require": {} if asked is None else {"t-closeness": asked | {"column": "ill"}},
    }
    written = shoal.protect(frame, policy).data["age"].unique()
    ranges = [tuple(float(end) for end in text.strip("[]").split(",")) for text in written]

    def fits(age: int) -> bool:
        return any(low <= age <= high for low, high in ranges)

    return fits(20) and fits(69) and not fits(45)


# The question of section 8.


def converse() -> tuple[float, int]:
    """How far the worst t over all tables is from Proposition 1's, and on how many channels.

    For every channel of three values and outputs and every pair of class sizes, all tables with
    one value in a class and one other outside are tried: the proof of the converse uses no others.
    """
    generator, off, tried = rng(), 0.0, 0
    for sizes in ((2, 2), (2, 5), (3, 4, 9)):
        for Z in generator.dirichlet(np.ones(3), (100, 3)) + 0.01:
            P = Z / Z.sum(axis=1, keepdims=True)
            epsilon = math.log((P.max(axis=0) / P.min(axis=0)).max())
            worst = 1.0
            for inside, one, other in product(range(len(sizes)), range(3), range(3)):
                counts = np.zeros((len(sizes), 3))
                counts[:, other] = sizes
                counts[inside] = 0
                counts[inside, one] = sizes[inside]
                worst = max(worst, stochastic_t(counts, P))
            off = max(off, abs(epsilon_for_t(worst, sizes) / epsilon - 1))
            tried += 1
    return off, tried
