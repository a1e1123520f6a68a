"""The fewest cells blanked: against all ways to blank them, and against what is asked for."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import MissingMeaning
from shoal.errors import InputError
from shoal.partition import local_suppression
from shoal.privacy_models import k_when_missing_matches

OWN, MATCHES = MissingMeaning


def shown(codes, found):
    return np.where(found.blanked | (codes < 0), -1, codes)


def achieved(codes, meaning):
    classes, counts = np.unique(codes, axis=0, return_counts=True)
    return counts.min() if meaning is OWN else k_when_missing_matches(classes, counts)


@st.composite
def tables(draw):
    n, d = draw(st.integers(3, 24)), draw(st.integers(1, 4))
    cells = draw(st.lists(st.integers(-1, 3), min_size=n * d, max_size=n * d))
    weights = draw(st.lists(st.integers(1, 5), min_size=d, max_size=d))
    return np.array(cells).reshape(n, d), [float(w) for w in weights], draw(st.integers(2, 3))


@given(case=tables(), meaning=st.sampled_from(MissingMeaning), several=st.booleans())
@settings(max_examples=60)
def test_no_combination_is_rarer_than_k_and_the_bound_is_below_the_cost(case, meaning, several):
    codes, weights, k = case
    d = codes.shape[1]
    sets = list(combinations(range(d), max(1, d - 1))) if several else None

    found = local_suppression(codes, k, weights=weights, sets=sets, missing=meaning)

    for one in sets or [range(codes.shape[1])]:
        assert achieved(shown(codes, found)[:, list(one)], meaning) >= k
    assert not found.blanked[codes < 0].any()
    assert found.cost == pytest.approx((found.blanked * weights).sum())
    assert found.bound <= found.cost + 1e-6
    assert found.gap == 0 if found.exact else found.gap > 0


@pytest.mark.parametrize("meaning", MissingMeaning)
def test_small_tables_are_solved_exactly_by_brute_force(meaning):
    """Where missing matches anything, a record that was rare is not left whole."""
    rng = np.random.default_rng(26)
    for _ in range(15):
        codes, weights = rng.integers(0, 3, (5, 2)), rng.integers(1, 4, 2).astype(float)
        every = ((np.arange(1 << 10)[:, None] >> np.arange(10)) & 1 == 1).reshape(-1, 5, 2)
        rare = (codes[:, None] == codes).all(axis=2).sum(axis=1) < 2
        cheapest_first = sorted(every, key=lambda blank: (blank * weights).sum())
        least = next(
            float((blank * weights).sum())
            for blank in cheapest_first
            if (meaning is OWN or blank[rare].any(axis=1).all())
            and achieved(np.where(blank, -1, codes), meaning) >= 2
        )

        found = local_suppression(codes, 2, weights=weights, missing=meaning)

        assert found.exact
        assert found.cost == least


def test_importance_decides_which_column_is_blanked():
    codes = [[1, 1]] * 3 + [[2, 2]] * 3 + [[1, 2]]

    cheap_first = local_suppression(codes, 2, weights=[1.0, 9.0], missing=MATCHES)
    cheap_second = local_suppression(codes, 2, weights=[9.0, 1.0], missing=MATCHES)

    assert cheap_first.blanked[6].tolist() == [True, False]
    assert cheap_second.blanked[6].tolist() == [False, True]
    assert cheap_first.exact
    # As a value of its own the blank needs company: a record of a larger class is blanked too.
    own = local_suppression(codes, 2, weights=[1.0, 9.0])
    assert (own.cost, own.exact, int(own.blanked.sum())) == (2.0, True, 2)


def test_rows_that_match_everybody_are_no_way_out():
    """Two whole rows blanked would make every row agree with three, and leave all visible."""
    codes = np.arange(8)[:, None] * [1, 1] + [0, 100]

    found = local_suppression(codes, 3, missing=MATCHES)

    assert found.blanked.any(axis=1).all()
    assert found.bound == found.cost == 8


def test_a_larger_table_states_its_gap():
    codes = np.random.default_rng(1).gamma(1.2, 2.0, (400, 4)).astype(int)

    own, matches = (local_suppression(codes, 3, missing=one) for one in MissingMeaning)

    assert not own.exact
    assert 0 < own.gap < 0.35
    assert 0 <= matches.gap < 0.2
    assert matches.cost < own.cost


def test_what_cannot_be_asked_for_is_refused():
    with pytest.raises(InputError, match="at least k = 3 records"):
        local_suppression([[1], [2]], 3)
    with pytest.raises(InputError, match="sets of 1 to 14 columns"):
        local_suppression([[1] * 15] * 3, 2)
    with pytest.raises(InputError, match="a weight above 0"):
        local_suppression([[1]] * 3, 2, weights=[0.0])
