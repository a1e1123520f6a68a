from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import InputError
from shoal.partition import (
    individual_ranking,
    individual_rankings,
    optimal_univariate,
    optimal_univariates,
)
from shoal.partition.kernels.univariate import optimal_ends

CENSUS_4 = ["FICA", "FEDTAX", "INTVAL", "POTHVAL"]
CENSUS_13 = [
    *("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC", "POTHVAL"),
    *("INTVAL", "PEARNVAL", "FICA", "WSALVAL", "ERNVAL"),
]
EIA_4 = ["RESREVENUE", "RESSALES", "TOTREVENUE", "TOTSALES"]

columns = st.integers(2, 200).flatmap(
    lambda n: st.one_of(
        arrays(np.float64, n, elements=st.floats(allow_nan=False, allow_infinity=False)),
        arrays(np.float64, n, elements=st.sampled_from([-1.0, -0.0, 0.0, 1.0, 2.0])),
    )
)


def ranking_twin(x, k):
    """Rank blocks by their definition."""
    labels = [0] * len(x)
    for rank, i in enumerate(sorted(range(len(x)), key=lambda i: (x[i], i))):
        labels[i] = min(rank // k, len(x) // k - 1)
    return labels


def squares(x, labels):
    """Sum of squares within groups."""
    return sum(
        ((x[labels == g] - x[labels == g].mean()) ** 2).sum() for g in range(max(labels) + 1)
    )


@settings(deadline=None)
@given(columns, st.integers(2, 9))
def test_ranking_gives_blocks_of_k_with_the_bigger_block_last(x, k):
    k = min(k, len(x))

    partition = individual_ranking(x, k)

    assert partition.labels.tolist() == ranking_twin(x, k)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "names", "losses"),
    [
        ("census.csv", CENSUS_13, {3: 0.1073, 10: 0.8951}),
        ("census.csv", CENSUS_4, {3: 0.2936, 10: 2.6449}),
        ("eia.csv", EIA_4, {3: 0.0160, 10: 0.1346}),
    ],
    ids=["census-13", "census-4", "eia-4"],
)
def test_the_reference_losses_of_ranking_are_met_to_four_decimals(reference, name, names, losses):
    X = reference(name, names)
    total = ((X - X.mean(axis=0)) ** 2).sum()

    found = {
        k: round(
            100
            * sum(squares(x, p.labels) for x, p in zip(X.T, individual_rankings(X, k), strict=True))
            / total,
            4,
        )
        for k in losses
    }

    assert found == losses


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((3, 2)), "The argument x must be one column of numbers; found the shape (3, 2)."),
        ([1.0, np.nan], "The argument x must be finite; 1 of its 2 cells are missing or infinite."),
        ([1.0], "Cannot form one group of k=2 from 1 record."),
        (["a", "b"], "The argument x must hold numbers; found the type <U1."),
    ],
)
def test_what_is_no_column_of_numbers_is_refused(x, message):
    with pytest.raises(InputError) as refusal:
        individual_ranking(x, 2)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.normal(size=n).round(2),
        lambda rng, n: rng.integers(0, 90, size=n).astype(float),
        lambda rng, n: rng.standard_cauchy(size=n) ** 5,
        lambda rng, n: 1 + rng.normal(size=n) * 1e-9,
        lambda rng, n: 1 + np.where(rng.random(n) < 0.5, rng.random(n) * 1e-14, 1e300),
        lambda rng, n: rng.choice([-0.0, 0.0, -1.0], size=n),
        lambda _rng, n: np.full(n, 7.0),
    ],
    ids=["normal", "cents", "ages", "heavy", "close", "crowded", "zeros", "constant"],
)
def test_long_columns_are_ranked_as_numpy_ranks_them(draw):
    n = 70_000
    x = draw(np.random.default_rng(8), n)
    expected = np.empty(n, int)
    expected[np.argsort(x, kind="stable")] = np.minimum(np.arange(n) // 7, n // 7 - 1)

    partition = individual_ranking(x, 7)

    np.testing.assert_array_equal(partition.labels, expected)


def optimum(v, k):
    """Least sum of squares of a sorted list in runs of k or more, by the plain recursion."""
    best = [0.0] + [np.inf] * len(v)
    for i in range(k, len(v) + 1):
        best[i] = min(best[j] + ((v[j:i] - v[j:i].mean()) ** 2).sum() for j in range(i - k + 1))
    return best[-1]


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**32), st.booleans(), st.integers(2, 150))
def test_no_grouping_in_runs_has_a_smaller_sum_of_squares(k, seed, ties, n):
    rng = np.random.default_rng(seed)
    n = max(n, k)
    x = rng.integers(0, 20, size=n).astype(float) if ties else rng.normal(size=n)

    partition = optimal_univariate(x, k)

    assert partition.sizes.min() >= k
    assert partition.sizes.max() <= 2 * k - 1
    assert squares(x, partition.labels) == pytest.approx(optimum(np.sort(x), k), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(columns, st.integers(2, 9))
def test_optimal_groups_are_runs_of_the_sorted_column(x, k):
    k = min(k, len(x))

    labels = optimal_univariate(x, k).labels

    in_order = labels[np.argsort(x, kind="stable")]
    assert (np.diff(in_order) >= 0).all()


def test_a_large_common_part_of_all_values_does_not_change_the_optimum():
    x = np.random.default_rng(9).integers(0, 1000, size=400) / 8

    moved = optimal_univariate(x + 2.0**40, 5)

    assert squares(x, moved.labels) == pytest.approx(squares(x, optimal_univariate(x, 5).labels))


def test_both_searches_of_the_dynamic_program_agree():
    rng = np.random.default_rng(10)
    for k in (33, 40, 64):
        v = np.sort(rng.normal(size=300))
        begin = np.empty(301, np.int64)

        optimal_ends(v, k, begin)

        ends = [300]
        while ends[-1]:
            ends.append(begin[ends[-1]])
        cost = sum(((v[b:e] - v[b:e].mean()) ** 2).sum() for e, b in pairwise(ends))
        assert cost == pytest.approx(optimum(v, k))


def test_many_columns_give_one_partition_each():
    X = np.random.default_rng(11).normal(size=(40, 3))

    assert individual_rankings(X, 4) == tuple(individual_ranking(x, 4) for x in X.T)
    assert optimal_univariates(X, 4) == tuple(optimal_univariate(x, 4) for x in X.T)
