import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import InputError
from shoal.partition import individual_ranking, individual_rankings

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
        (np.zeros((3, 2)), "x must be one column of numbers; found the shape (3, 2)."),
        ([1.0, np.nan], "x must be finite; 1 of its 2 cells are missing or infinite."),
        ([1.0], "Cannot form one cluster of k=2 from 1 records."),
        (["a", "b"], "x must hold numbers; found the type <U1."),
    ],
)
def test_what_is_no_column_of_numbers_is_refused(x, message):
    with pytest.raises(InputError) as refusal:
        individual_ranking(x, 2)

    assert str(refusal.value) == message
