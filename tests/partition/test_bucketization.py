"""Classes that hold every bucket in nearly its share."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from tests.cells import cells_of

from shoal.errors import InputError
from shoal.partition import (
    bucketization,
    class_sizes,
    count_bounds,
    mdav,
    merge_close,
    rank_buckets,
)
from shoal.partition._exact_scale import centroids, squared_distances, unit_scaled
from shoal.partition.kernels.bucketization import extendable

RATIOS = st.sampled_from(
    ["1", "1.05", "1.1", "1.25", "1.5", "2", "2.7", "3", "7", "1000000/999999"]
)
TS = RATIOS.map(Fraction) | st.fractions(1, 5)


@st.composite
def tables(draw, most=70):
    """Few distinct places and skewed buckets, so that there are ties."""
    n = draw(st.integers(2, most))
    X = [draw(cells_of(range(size), n, missing=False)) for size in (7, 4)]
    skewed = [v * v // 8 for v in range(13)]
    values = draw(cells_of(skewed, n, missing=False) | st.just(list(range(n))))
    bucket = rank_buckets(values, draw(st.integers(1, 5)))
    return np.array(X, float).T.copy(), bucket, draw(st.integers(2, n))


def recount(labels, bucket):
    """The worst ratio and the smallest class, by nothing but counting and fractions."""
    n = len(bucket)
    whole = Counter(bucket.tolist())
    worst, smallest = Fraction(1), n
    for label in set(labels.tolist()):
        inside = Counter(bucket[labels == label].tolist())
        e = sum(inside.values())
        smallest = min(smallest, e)
        for j, b in whole.items():
            if not inside[j]:
                return math.inf, smallest
            ratio = Fraction(inside[j], e) / Fraction(b, n)
            worst = max(worst, ratio, 1 / ratio)
    return worst, smallest


def flow(sizes, totals, t):
    """Counts for classes of any sizes by maximum flow, or none."""
    n, g, b = sum(totals), len(sizes), len(totals)
    low = [[math.ceil(Fraction(e * own, n) / t) for own in totals] for e in sizes]
    high = [[math.floor(Fraction(e * own, n) * t) for own in totals] for e in sizes]
    return bounded_flow(sizes, totals, low, high, g, b)


def bounded_flow(sizes, totals, low, high, g, b):
    low, high = np.array(low), np.array(high)
    supply, demand = np.array(sizes) - low.sum(axis=1), np.array(totals) - low.sum(axis=0)
    if (supply < 0).any() or (demand < 0).any() or (low > high).any():
        return None
    network = np.zeros((g + b + 2, g + b + 2), np.int32)
    network[0, 1 : g + 1] = supply
    network[g + 1 : g + b + 1, g + b + 1] = demand
    network[1 : g + 1, g + 1 : g + b + 1] = high - low
    found = maximum_flow(csr_array(network), 0, g + b + 1)
    if found.flow_value != supply.sum() or supply.sum() != demand.sum():
        return None
    return low + found.flow.toarray()[1 : g + 1, g + 1 : g + b + 1]


def balanced(n, g):
    return [(i + 1) * n // g - i * n // g for i in range(g)]


@given(tables(), TS)
@settings(max_examples=300)
def test_every_table_is_close_by_a_naive_recount(table, t):
    X, bucket, k = table

    found = bucketization(X, bucket, k, t)

    worst, smallest = recount(found.partition.labels, bucket)
    assert worst <= t
    assert smallest >= k
    assert found.achieved == worst
    assert found.trivial is (len(found.partition) == 1)
    assert found.counts.sum() == len(X)
    assert len(found.partition) == class_sizes(np.bincount(bucket), k, t).number


@given(
    st.integers(1, 3).flatmap(
        lambda b: st.tuples(
            st.lists(st.integers(0, 9), min_size=3, max_size=3),
            st.lists(
                st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=b, max_size=b),
                min_size=3,
                max_size=3,
            ),
            st.lists(st.integers(0, 12), min_size=b, max_size=b),
        )
    )
)
@settings(max_examples=300)
def test_the_minimum_cut_agrees_with_maximum_flow(case):
    supply, bounds, rest = case
    rest[-1] = sum(supply) - sum(rest[:-1])
    assume(rest[-1] >= 0)
    low = [[min(pair) for pair in row] for row in bounds]
    high = [[max(pair) for pair in row] for row in bounds]

    decided = extendable(*(np.array(part) for part in (supply, low, high, rest)))

    assert decided is (bounded_flow(supply, rest, low, high, 3, len(rest)) is not None)


@given(st.lists(st.integers(1, 15), min_size=1, max_size=4), st.integers(2, 20), TS)
@settings(max_examples=200)
def test_classes_are_as_many_as_maximum_flow_allows_for_balanced_sizes(totals, k, t):
    n = sum(totals)
    assume(k <= n)

    sizes = class_sizes(totals, k, t)

    each = [sizes.small] * sizes.smaller + [sizes.small + sizes.step] * sizes.larger
    assert sum(each) == n
    assert min(each) >= k
    assert flow(each, totals, t) is not None
    for g in range(sizes.number + 1, n // k + 1):
        assert flow(balanced(n, g), totals, t) is None


@given(
    st.lists(st.integers(1, 15), min_size=1, max_size=4),
    st.integers(2, 10),
    TS,
    st.integers(1, 12),
)
@settings(max_examples=200)
def test_a_limit_of_classes_is_kept_and_met_where_balanced_sizes_allow_it(totals, k, t, most):
    n = sum(totals)
    assume(k <= n)

    sizes = class_sizes(totals, k, t, most=most)

    each = [sizes.small] * sizes.smaller + [sizes.small + sizes.step] * sizes.larger
    assert sum(each) == n
    assert min(each) >= k
    assert len(each) <= most
    assert flow(each, totals, t) is not None
    for g in range(sizes.number + 1, min(n // k, most) + 1):
        assert flow(balanced(n, g), totals, t) is None


@pytest.mark.parametrize(("t", "each"), [(2, 1), (2, 3), (3, 2), (4, 5)])
def test_l_classes_emphasise_each_bucket_as_the_paper_has_it(t, each):
    """Table 1 for l classes each: t of the t + 1 shares in one bucket, 1 / t in the others."""
    bucket = np.repeat(np.arange(t + 1), each * t * (t + 1))

    found = bucketization(bucket[:, None].astype(float), bucket, t + 1, t, most=each * (t + 1))

    masses = Counter(map(tuple, found.counts.tolist()))
    wanted = {tuple(t * t if j == i else 1 for j in range(t + 1)): each for i in range(t + 1)}
    assert masses == wanted
    assert found.achieved == t


def test_the_search_comes_close_to_the_best_over_all_sizes():
    lost = total = 0
    for b_1, b_2, k, t in product(range(1, 8), range(1, 8), (2, 3, 4), ("1", "1.25", "1.5", "2")):
        if b_1 + b_2 < k:
            continue
        found = class_sizes([b_1, b_2], k, Fraction(t)).number
        best = most_classes(b_1, b_2, k, Fraction(t))
        assert found <= best
        lost += best - found
        total += best

    assert lost / total < 0.01


def most_classes(b_1, b_2, k, t):
    """The most t-close classes of k or more, whatever their sizes: all divisions are looked at."""
    n = b_1 + b_2

    def close(x, y):
        shares = Fraction(x * n, (x + y) * b_1), Fraction(y * n, (x + y) * b_2)
        return x + y >= k and all(1 / t <= share <= t for share in shares)

    good = [(x, y) for x in range(b_1 + 1) for y in range(b_2 + 1) if x + y and close(x, y)]
    best = np.full((b_1 + 1, b_2 + 1), -1)
    best[0, 0] = 0
    for x, y in product(range(b_1 + 1), range(b_2 + 1)):
        for a, b in good:
            if a <= x and b <= y and best[x - a, y - b] >= 0:
                best[x, y] = max(best[x, y], best[x - a, y - b] + 1)
    return best[b_1, b_2]


def slow_buckets(X, bucket, k, t):
    """The rule in words: every feasible count is tried, and of all classes the nearest taken."""
    Z = unit_scaled(X)
    totals = np.bincount(bucket)
    sizes = class_sizes(totals, k, t)
    to_come = [sizes.small] * sizes.smaller + [sizes.small + sizes.step] * sizes.larger
    labels = np.full(len(Z), -1)
    bounds = {e: count_bounds(e, totals, t) for e in set(to_come)}
    for g, e in enumerate(to_come):
        live = np.flatnonzero(labels < 0)
        rest = np.bincount(bucket[live], minlength=len(totals)).tolist()
        centre = centroids(Z, np.where(labels < 0, 0, -1), 1)[0]
        seed = live[np.argmax(squared_distances(Z[live], centre))]
        far = squared_distances(Z, Z[seed])
        near = [
            sorted(live[bucket[live] == j].tolist(), key=lambda i, far=far: (far[i], i))
            for j in range(len(totals))
        ]
        options = []
        later = to_come[g + 1 :]
        low, high = bounds[e]
        for counts in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
            left = [r - c for r, c in zip(rest, counts, strict=True)]
            if sum(counts) != e or min(left) < 0:
                continue
            lows, highs = zip(*(bounds[one] for one in later), strict=True) if later else ((), ())
            if later and bounded_flow(later, left, lows, highs, len(later), len(left)) is None:
                continue
            chosen = [i for j, c in enumerate(counts) for i in near[j][:c]]
            options.append((sorted((far[i], i) for i in chosen), chosen))
        # The greedy choice has the least sum; of several its distances come first in order.
        least = min(sum(d for d, _ in ranked) for ranked, _ in options)
        close = [o for o in options if math.isclose(sum(d for d, _ in o[0]), least, rel_tol=1e-9)]
        labels[min(close)[1]] = g
    return labels


@given(tables(most=24), TS)
@settings(max_examples=120)
def test_the_kernels_choose_as_the_rule_in_words_does(table, t):
    X, bucket, k = table
    assume(len(set(bucket.tolist())) <= 3)

    assert (
        bucketization(X, bucket, k, t).partition.labels.tolist()
        == slow_buckets(X, bucket, k, t).tolist()
    )


@given(tables(), TS, st.integers(2, 9))
@settings(max_examples=150)
def test_merging_makes_any_classes_close(table, t, k):
    X, bucket, _ = table
    start = mdav(X, min(k, len(X)))

    found = merge_close(X, start.labels, bucket, t)

    worst, _ = recount(found.partition.labels, bucket)
    assert found.achieved == worst <= t
    for label in range(len(start)):
        assert len(set(found.partition.labels[start.labels == label].tolist())) == 1
    if recount(start.labels, bucket)[0] <= t:
        assert found.partition == start


@pytest.mark.parametrize("n", [997, 1003])
@pytest.mark.parametrize("t", ["1", "1.05", "1.2", "1.7", "2.5"])
def test_it_works_where_n_divides_by_nothing_convenient(n, t):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    bucket = rank_buckets(X[:, 0] + rng.normal(size=n), int(Fraction(t)) + 1)

    found = bucketization(X, bucket, 3, Fraction(t))

    assert recount(found.partition.labels, bucket)[0] <= Fraction(t)
    # t = 1 wants shares that are equal exactly, which bucket sizes without a divisor forbid.
    assert len(found.partition) >= (1 if t == "1" else n // 6)
    assert found.trivial is (t == "1")


def test_one_value_one_class_and_k_of_the_whole_table():
    X = np.arange(10.0)[:, None]

    one_value = bucketization(X, np.zeros(10, int), 3, 1)
    assert one_value.partition.sizes.tolist() == [3, 3, 4]
    assert one_value.achieved == 1
    assert bucketization(X, rank_buckets(X[:, 0], 2), 10, 1).trivial
    assert bucketization(X, rank_buckets(X[:, 0], 2), 5, 1).trivial  # halves of 5 cannot be even
    assert len(bucketization(X, rank_buckets(X[:, 0], 2), 4, 1).partition) == 2  # 4 and 6 can
    with pytest.raises(InputError, match="Cannot form one group of k=2 from 1 record"):
        bucketization(X[:1], [0], 2, 2)


def test_a_cap_rounded_up_as_our_copy_reads_would_exceed_t():
    e, totals, t = 5, [5, 5, 5], 2

    _, high = count_bounds(e, totals, t)
    read = math.ceil(Fraction(e * 5, 15) * t)

    assert (high[0], read) == (3, 4)
    assert Fraction(high[0], e) / Fraction(1, 3) == Fraction(9, 5) <= t
    assert Fraction(read, e) / Fraction(1, 3) == Fraction(12, 5) > t


@pytest.mark.parametrize(
    ("n", "k", "t", "b", "classes"),
    [
        (12, 4, "1.5", 3, 3),  # Fig. 2
        (100, 2, "2", 3, 33),
        (101, 2, "1", 2, 1),
        (1080, 3, "3", 4, 270),
        (1080, 10, "1.25", 2, 108),
        (14, 4, "1", 2, 3),  # 4, 4 and 6: balanced sizes would leave one class
        (1003, 3, "1.05", 2, 246),  # 45 with balanced sizes
        (2_000_003, 2, "1.0001", 2, 994_952),  # pairs, and one class of 10,101
    ],
)
def test_how_many_classes_there_are(n, k, t, b, classes):
    totals = np.bincount(rank_buckets(np.arange(n), b))

    assert class_sizes(totals, k, Fraction(t)).number == classes


def test_ties_go_to_the_lowest_index():
    same = np.zeros((8, 2))

    # Of four records, one to three may be of either bucket.
    assert bucketization(same, [0, 0, 0, 0, 1, 1, 1, 1], 4, 2).partition.labels.tolist() == [
        *(0, 0, 0, 1),
        *(0, 1, 1, 1),
    ]
    assert bucketization(same, [1, 1, 1, 1, 0, 0, 0, 0], 4, 2).partition.labels.tolist() == [
        *(0, 0, 0, 1),
        *(0, 1, 1, 1),
    ]


def test_many_records_with_many_ties_keep_the_promise():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(20_000, 3)).round(1)
    bucket = rank_buckets((X[:, 0] + rng.normal(size=20_000)).round(1), 4)

    found = bucketization(X, bucket, 7, Decimal("1.9"))

    worst, smallest = recount(found.partition.labels, bucket)
    assert worst <= Fraction("1.9")
    assert smallest >= 7
    assert len(found.partition) > 2000


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"t": Fraction(1, 2)}, "must be at least 1, because it is a ratio of shares; found 1/2"),
        ({"t": 1.5}, "t of t-closeness must be exact"),
        ({"k": 1}, "k must be at least 2"),
        ({"k": 7}, "Cannot form one group of k=7 from 6 records"),
        ({"bucket": [0, 0, 0, 2, 2, 2]}, "bucket must number the bucket of each record from 0"),
        ({"bucket": [0, 1]}, "found 2 for 6 records"),
    ],
)
def test_wrong_input_is_told(change, sentence):
    given = {"bucket": [0, 1, 0, 1, 0, 1], "k": 2, "t": 2} | change

    with pytest.raises(InputError, match=sentence):
        bucketization(np.arange(6.0)[:, None], **given)


def test_wrong_classes_and_totals_are_told():
    with pytest.raises(InputError, match="found 2 for 3 records"):
        merge_close([[1], [2], [3]], [0, 1], [0, 0, 0], 2)
    with pytest.raises(InputError, match="totals must be whole numbers of at least 1"):
        class_sizes([3, 0], 2, 2)
