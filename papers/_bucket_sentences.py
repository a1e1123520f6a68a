"""What section 6 of Domingo-Ferrer and Soria-Comas (2015) says of buckets and classes, tested.

Tables are small enough to try all of them, or many. Marks that our copy of the text may have lost
are read as the argument needs them, and each such reading is stated.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product

import numpy as np
from _closeness_sentences import distance, rng
from _common import Floats, Sentence, once, show

from shoal.partition import bucketization, class_sizes, count_bounds, rank_buckets

EMPHASISED = np.array([1, 4, 1]) / 6
"""Fig. 3 in thirds: density 1/2, 2 in the middle third, 1/2."""


def halves(thirds: Floats) -> Floats:
    """Two buckets of Fig. 4: the middle third is cut in two."""
    return np.array([thirds[0] + thirds[1] / 2, thirds[1] / 2 + thirds[2]])


def figures() -> list[Sentence]:
    """Sentences on Fig. 1 to 4."""
    example = bucketization(
        np.arange(12.0)[:, None], rank_buckets(np.arange(12), 3), 4, Fraction(3, 2)
    )
    rows = [tuple(row) for row in example.counts.tolist()]
    low, high = count_bounds(4, [4, 4, 4], Fraction(3, 2))
    single = class_sizes([1] * 12, 4, 10**9).number
    even, two = np.full(3, 1 / 3), np.full(2, 1 / 2)
    ratios = EMPHASISED / even
    within = {b: 1 / (12 * b**2) for b in (2, 3)}
    return [
        Sentence(
            "Fig. 1: “t-closeness (for a finite t) is not feasible for it. … The granularity "
            "reduction of the data makes it feasible”",
            "12 values, each once, k = 4: the largest number of classes is 1 at any t up to 1e9; "
            "with three buckets of four it is 3 at t = 1.5",
            once(single == 1 and class_sizes([4, 4, 4], 4, Fraction(3, 2)).number == 3),
            f"{single} class as they are, {len(rows)} with buckets",
        ),
        Sentence(
            "“Fig. 2 shows a partition of the data set in equivalence classes that satisfies "
            "1.5-closeness”",
            "12 records on a line, three buckets by rank: our construction has three classes of "
            "four, at distance 3/2 exactly, that emphasise one bucket each",
            once(sorted(rows) == sorted(set(permutations((2, 1, 1)))) and example.achieved == 1.5),
            f"counts by class {rows}; distance {example.achieved}",
        ),
        Sentence(
            "“Each of the equivalence classes in the partition (E₁, E₂, E₃) takes either one or "
            "two points from each bucket”",
            "bounds of the counts for e = 4, p = 1/3, t = 1.5",
            once(low == [1, 1, 1] and high == [2, 2, 2]),
            f"from {low[0]} to {high[0]}",
        ),
        Sentence(
            "Fig. 3: “These two distributions satisfy 2-closeness”, density 1/2 but for a subrange "
            "where it is 2",
            "densities integrate to 1 if the subrange has length 1/3, and their ratios are 2",
            once(math.isclose(EMPHASISED.sum(), 1) and math.isclose(distance(EMPHASISED, even), 2)),
            f"distance {show(distance(EMPHASISED, even))}",
        ),
        Sentence(
            "Fig. 4, top: with three buckets “we attain 2-closeness with equality for each of the "
            "buckets”",
            "each bucket's mass in the class is 2 or 1/2 times that in the table",
            once(np.allclose(np.maximum(ratios, 1 / ratios), 2)),
            "ratios " + ", ".join(map(show, ratios)),
        ),
        Sentence(
            "Fig. 4, bottom: with two buckets “both bucketized distributions are identical; that "
            "is, we get 1-closeness, … but comes at the cost of data utility loss”",
            "masses are equal; and of the uniform distribution, bucket means lose more of the "
            "variance with two buckets than with three",
            once(bool(np.allclose(halves(EMPHASISED), two)) and within[2] > within[3]),
            f"distance {show(distance(halves(EMPHASISED), two))}; lost "
            f"{show(12 * within[2])} of the variance against {show(12 * within[3])}",
        ),
    ]


def construction() -> list[Sentence]:
    """Sentences on buckets and classes."""
    emphasis = {t: _most_buckets(t) for t in range(2, 11)}
    least = {t: _least_size(t) for t in range(1, 11)}
    reached = {t: _table_1(t) for t in range(2, 6)}
    sizes = {
        (n, b): np.bincount(rank_buckets(np.arange(n), b), minlength=b)
        for n in range(2, 201)
        for b in range(2, 11)
        if b <= n
    }
    borders = [
        np.diff([0, *(math.floor(Fraction(j * n, b) + Fraction(1, 2)) for j in range(1, b + 1))])
        for n, b in sizes
    ]
    solved = [t * p + (1 - p) / t == 1 for t in range(2, 21) for p in [Fraction(1, t + 1)]]
    uniform = max(
        float(max(row.max() * b / n, n / (b * row.min())))
        for n in (1000, 1080, 5000)
        for b in range(2, 11)
        for row in [np.bincount(rank_buckets(np.arange(n), b))]
    )
    return [
        Sentence(
            "The necessary condition “bᵢ ≥ e for all i”, e being the number of classes",
            "all tables of two buckets of up to 8 records, k = 2 and 3, t = 1, 1.5, 2 and 4, all "
            "divisions into classes of any sizes",
            once(all(best <= least_bucket for best, _, least_bucket in _divisions())),
            _divided(),
        ),
        Sentence(
            "“taking too small buckets may defeat the purpose of the bucketization”",
            "buckets of one record: no t up to 1e9 allows two classes, for 4 to 60 records",
            once(all(class_sizes([1] * n, 2, 10**9).number == 1 for n in range(4, 61))),
            "1 class in 57 of 57 tables",
        ),
        Sentence(
            "“t × bᵢ/N + (1/t)(1 − bᵢ/N) = 1 … The result is bᵢ = N/(t+1)”",
            "t = 2 to 20, in fractions",
            once(all(solved)),
            "solved by 1/(t+1) in all 19, and linear in bᵢ/N, so by nothing else",
        ),
        Sentence(
            "“the optimal bucketization consists of t + 1 buckets of size N/(t+1)”: the largest "
            "number with which a class can emphasise one bucket",
            "t = 2 to 10: with b equal buckets, all but one at 1/(tb), the last stays within t/b "
            "if and only if b ≤ t + 1",
            once(all(emphasis[t] == t + 1 for t in emphasis)),
            "; ".join(f"t = {t}: b = {emphasis[t]}" for t in (2, 3, 5, 10)),
        ),
        Sentence(
            "“the optimal bucketization is only attainable if t + 1 divides N; otherwise we should "
            "select the closest feasible bucketization”",
            "N up to 200, t up to 9, values without ties: our buckets are equal if and only if t + "
            "1 divides N, and else differ by one record",
            once(
                all(
                    (np.ptp(row) == 0) == (n % b == 0) and np.ptp(row) <= 1
                    for (n, b), row in sizes.items()
                )
            ),
            f"{len(sizes):,} bucketizations",
        ),
        Sentence(
            "The buckets of section 6.2, Bⱼ up to the value number ⌊j N/(t+1) + 0.5⌋",
            "the same N and t: `rank_buckets` has these borders",
            once(all((a == b).all() for a, b in zip(sizes.values(), borders, strict=True))),
            f"equal in all {len(sizes):,}",
        ),
        Sentence(
            "Step 3(a): “each bucket contains ⌈N/b⌉ values, except for some buckets that contain "
            "⌈N/b⌉ + 1”",
            "the same N and t: ⌊N/b⌋ or one more in each bucket",
            once(all(set(row) <= {n // b, n // b + 1} for (n, b), row in sizes.items())),
            "⌈N/b⌉ in every bucket would be more than N values where b does not divide N",
            reading="⌊N/b⌋, a mark that our copy may have lost",
        ),
        Sentence(
            "“we can view the bucketized distribution of the confidential attribute in the "
            "original data set as being uniform”",
            "N = 1,000, 1,080 and 5,000, b up to 10: within 1.01 of uniform by Definition 4",
            once(uniform <= 1.01),
            f"largest distance {show(uniform)}",
        ),
        Sentence(
            "“it must be k ≥ t + 1”",
            "t = 1 to 10, t + 1 buckets of 1,000: the least size for which a class can be t-close",
            once(all(least[t] == t + 1 for t in least)),
            "; ".join(f"t = {t}: {least[t]}" for t in (1, 2, 5, 10)),
        ),
        *_sizes_by_l(),
        Sentence(
            "Table 1: class Eᵢ has mass t/(t+1) in bucket Bᵢ and 1/(t(t+1)) in each other",
            "t = 2 to 5, l = 1 and 3, N = l t(t+1)² records whose quasi-identifier is the bucket: "
            "our classes have these masses, l of them for each bucket",
            {f"t = {t}": met for t, (met, _) in reached.items()},
            "; ".join(f"t = {t}: {counts}" for t, (_, counts) in list(reached.items())[:2]),
        ),
        *_counts(),
        Sentence(
            "Step 4(b): “no bucket contains a proportion of the confidential attribute values of "
            "the equivalence class higher than t/b or lower than 1/(tb)”",
            "600 records in the plane, t = 2 to 5, b = t + 1, k = 6, 12 and 30: our classes",
            once(_within_4b()),
            "12 partitions",
        ),
    ]


def _sizes_by_l() -> list[Sentence]:
    allowed, alike, shaped = [], [], []
    for t, n in product(range(1, 6), range(4, 201)):
        most = n // (t + 1) ** 2
        fitting = [g for g in range(1, n + 1) if Fraction(n, (t + 1) * g) >= t + 1]
        allowed.append(fitting == list(range(1, most + 1)))
        totals = np.bincount(rank_buckets(np.arange(n), t + 1))
        for each in fitting:
            g = (t + 1) * each
            ends = [-(-i * n // g) for i in range(g + 1)]
            sizes = np.diff(ends)
            shaped.append(sizes.sum() == n and np.ptp(sizes) <= 1)
            own = class_sizes(totals, n // g, t, most=g)
            ours = [own.small] * own.smaller + [own.small + own.step] * own.larger
            alike.append(sorted(sizes.tolist()) == ours)
    return [
        Sentence(
            "“l belongs to the set {1, 2, …, ⌊N/(t+1)²⌋}”",
            "t = 1 to 5, N up to 200: these are the l with N/((t+1) l) ≥ t + 1",
            once(all(allowed)),
            f"{len(allowed):,} cases",
        ),
        Sentence(
            "The sizes eᵢ = ⌈i N/((t+1) l)⌉ − ⌈(i − 1) N/((t+1) l)⌉",
            "the same t and N, every l: they add up to N and differ by at most one",
            once(all(shaped)),
            f"{len(shaped):,} cases; `bucketization` with l has classes of these sizes in "
            f"{sum(alike):,}, and fewer where no counts of whole records are t-close",
        ),
    ]


def _counts() -> list[Sentence]:
    caps, floors, lows, built = [], [], [], []
    for e, b, step in product(range(1, 61), range(2, 7), range(81)):
        t = 1 + Fraction(step, 20)
        cap, need = Fraction(e, b) * t, math.ceil(Fraction(e, b) / t)
        lows.append(Fraction(need * b, e) >= 1 / t > Fraction((need - 1) * b, e))
        if math.ceil(cap) <= e:
            caps.append(Fraction(math.ceil(cap) * b, e) > t)
            floors.append(Fraction(math.floor(cap) * b, e) <= t)
    for t in range(2, 7):
        for e in range(t + 1, 101):
            other = -(-e // (t * (t + 1)))
            own = e - t * other
            shares = [Fraction(c * (t + 1), e) for c in (own, other)]
            built.append(all(Fraction(1, t) <= share <= t for share in shares))
    where = "e up to 60, b up to 6 equal buckets, t = 1, 1.05, ..., 5"
    lost = "a mark that our copy may have lost"
    return [
        Sentence(
            "“(i) at most ⌈eᵢpᵢt⌉ records must have Bᵢ as the value for the confidential "
            "attribute”",
            f"{where}: so many of e records are within t of p",
            once(all(floors)),
            f"within t in all {len(floors):,} cases; rounded up, beyond it in {sum(caps):,}",
            reading=f"⌊eᵢpᵢt⌋, {lost}",
        ),
        Sentence(
            "“(ii) at least ⌈eᵢpᵢt⌉ records must have Bᵢ as the value for the confidential "
            "attribute”",
            f"{where}: the least number that is within t of p",
            once(all(lows)),
            f"{len(lows):,} cases; as it stands, the least number would be the largest",
            reading=f"⌈eᵢpᵢ/t⌉, {lost}",
        ),
        Sentence(
            "“we can start selecting ⌈eᵢpᵢt⌉ records with confidential attribute Bⱼ, for each j ≠ "
            "i, and complete the partition set with eᵢ − t⌈eᵢpᵢt⌉ records with … Bᵢ”",
            "t = 2 to 6, t + 1 equal buckets, classes of t + 1 to 100 records: every share is "
            "within t of 1/(t+1)",
            once(all(built)),
            f"{len(built):,} classes",
            reading=f"⌈eᵢpⱼ/t⌉ in both places, {lost}",
        ),
    ]


def _within_4b() -> bool:
    X = rng().normal(size=(600, 2))
    for t, k in product(range(2, 6), (6, 12, 30)):
        b = t + 1
        found = bucketization(X, rank_buckets(X[:, 0] + X[:, 1], b), max(k, b), t)
        for row in found.counts.tolist():
            shares = [Fraction(c, sum(row)) for c in row]
            if not all(Fraction(1, t * b) <= share <= Fraction(t, b) for share in shares):
                return False
    return True


def _divisions() -> Iterator[tuple[int, int, int]]:
    """The most classes of two buckets by trying all; by our search; and the smaller bucket."""
    for one, two, k, t in product(range(1, 9), range(1, 9), (2, 3), ("1", "1.5", "2", "4")):
        if one + two >= k:
            ours = class_sizes([one, two], k, Fraction(t)).number
            yield _most_classes(one, two, k, Fraction(t)), ours, min(one, two)


def _most_classes(one: int, two: int, k: int, t: Fraction) -> int:
    n = one + two

    def close(x: int, y: int) -> bool:
        ratios = (Fraction(x * n, (x + y) * one), Fraction(y * n, (x + y) * two))
        return all(1 / t <= share <= t for share in ratios)

    cells = list(product(range(one + 1), range(two + 1)))
    good = [(x, y) for x, y in cells if x + y >= k and close(x, y)]
    best = {(0, 0): 0}
    for x, y in cells:
        for a, b in good:
            if (x - a, y - b) in best:
                best[x, y] = max(best.get((x, y), 0), best[x - a, y - b] + 1)
    return best[one, two]


def _divided() -> str:
    cases = list(_divisions())
    total, ours = sum(best for best, _, _ in cases), sum(own for _, own, _ in cases)
    return (
        f"{len(cases):,} tables. Our search, with two sizes of classes at most, finds {ours:,} of "
        f"the {total:,} classes that there can be"
    )


def _most_buckets(t: int) -> int:
    return max(b for b in range(1, 50) if 1 - Fraction(b - 1, t * b) <= Fraction(t, b))


def _least_size(t: int) -> int:
    totals = [1000] * (t + 1)
    for e in range(1, 100):
        low, high = count_bounds(e, totals, t)
        if sum(low) <= e <= sum(high) and all(a <= b for a, b in zip(low, high, strict=True)):
            return e
    return 0


def _table_1(t: int) -> tuple[bool, str]:
    """Whether classes have the masses of Table 1, for l = 1 and 3; and their counts for l = 1."""
    met, first = True, ""
    for each in (1, 3):
        bucket = np.repeat(np.arange(t + 1), each * t * (t + 1))
        found = bucketization(
            bucket[:, None].astype(float), bucket, t * (t + 1), t, most=each * (t + 1)
        )
        counts = sorted(map(tuple, found.counts.tolist()))
        wanted = sorted(each * sorted(set(permutations((t * t, *[1] * t)))))
        met &= counts == wanted
        first = first or " ".join(map(str, counts))
    return met, first
