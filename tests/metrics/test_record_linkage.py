"""Record linkage and its kin, against trying all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shoal.errors import InputError
from shoal.metrics.attacks.record_linkage import (
    closeness,
    interval_disclosure,
    nearest,
    record_linkage,
)
from shoal.metrics.attacks.result import DIFFERENCE


@pytest.fixture
def rng():
    return np.random.default_rng(11)


pairs = st.tuples(st.integers(1, 14), st.integers(1, 3), st.integers(0, 2**32 - 1)).map(
    lambda shape: np.random.default_rng(shape[2]).integers(0, 3, (2, *shape[:2])).astype(float)
)


def wide(matrix):
    """The same distances on more axes than a tree is quick for."""
    return np.hstack([matrix, np.zeros((len(matrix), 12))])


def hits(original, released):
    """All pairs: 1 / ties where one's own record is among the nearest."""
    total = 0.0
    for i, row in enumerate(original):
        squares = ((released - row) ** 2).sum(axis=1)
        ties = squares <= squares.min() * (1 + 1e-9)
        total += ties[i] / ties.sum()
    return total


@given(pairs)
def test_linkage_is_that_of_all_pairs_on_few_axes_and_on_many(tables):
    original, released = tables
    wanted = hits(original, released) / len(original)

    for form in (np.asarray, wide):
        found = record_linkage(form(original), form(released), rng=np.random.default_rng(0))
        assert found.main.value == pytest.approx(wanted)
        assert found.baseline.value == pytest.approx(1 / len(original))


@given(pairs)
def test_the_nearest_record_is_at_the_least_distance(tables):
    targets, released = tables
    wanted = np.sqrt(((targets[:, None] - released[None]) ** 2).sum(axis=2).min(axis=1))

    for form in (np.asarray, wide):
        index, distance = nearest(form(released), form(targets))
        np.testing.assert_allclose(distance[:, 0], wanted, atol=1e-12)
        apart = np.sqrt(((targets - released[index[:, 0]]) ** 2).sum(axis=1))
        np.testing.assert_allclose(apart, wanted, atol=1e-12)


@given(pairs)
def test_codes_are_linked_as_their_embedding_is(tables):
    """A category is sqrt(1/2) along an axis of its own, and a missing one, -1, at the origin."""
    original, released = (np.where(table > 0, 3 * table - 3, -1) for table in tables)
    axes = [np.sqrt(0.5) * (table[:, :, None] == np.arange(4)) for table in (original, released)]
    wanted = hits(*(one.reshape(len(one), -1) for one in axes))

    found = record_linkage(
        original, released, rng=np.random.default_rng(0), discrete=[True] * original.shape[1]
    )

    assert found.main.value * len(original) == pytest.approx(wanted)


def test_distances_are_exact_where_products_of_matrices_would_cancel(rng):
    """Distances of 1e-7 between points of length 1e3 are lost in |x|^2 - 2 xy + |y|^2."""
    original = 1000 + rng.normal(size=(300, 15)) * 1e-7
    released = original + rng.normal(size=original.shape) * 1e-9

    found = record_linkage(original, released, rng=rng)

    assert found.main.value == pytest.approx(hits(original, released) / 300)
    assert found.main.value == 1


def test_the_raw_table_is_found_whole_and_a_shuffled_one_by_chance(rng):
    original = rng.normal(size=(4000, 3))

    raw = record_linkage(original, original, rng=rng)
    shuffled = record_linkage(original, rng.permutation(original), rng=rng)

    assert raw.main.value == 1
    assert shuffled.main.value <= binom.isf(1e-6, 4000, 1 / 4000) / 4000


def test_groups_of_k_share_their_hits(rng):
    original = rng.normal(size=(1000, 2))
    centres = np.repeat(original[::5].copy(), 5, axis=0)

    found = record_linkage(centres, centres, rng=rng)

    assert found.main.value == pytest.approx(1 / 5)


def test_a_sample_covers_the_rate_of_all_as_often_as_it_says(rng):
    """300 samples at 95%: false alarm below 1e-6 up to a true miss rate of 6%."""
    original = rng.normal(size=(3000, 2))
    released = original + rng.normal(size=original.shape) * 0.02
    whole = record_linkage(original, released, rng=rng).main.value
    assert 0.2 < whole < 0.8

    runs = [record_linkage(original, released, rng=rng, sample=200) for _ in range(300)]

    misses = sum(not run.main.low <= whole <= run.main.high for run in runs)
    assert misses <= binom.isf(1e-6, 300, 0.06)
    assert {run.attacks for run in runs} == {200}


@given(pairs, st.sampled_from([0.0, 0.05, 0.5]), st.integers(0, 1))
def test_interval_disclosure_is_that_of_sdcmicro(tables, width, outside):
    """The body of dRisk, written out: outside = 1 is what it counts."""
    original, released = tables
    spread = released.std(axis=0, ddof=1) if len(released) > 1 else np.zeros(released.shape[1])
    beyond = (original < released - width * spread) | (original > released + width * spread)

    found = interval_disclosure(original, released, width=width, outside=outside)

    assert found.value == pytest.approx((beyond.sum(axis=1) <= outside).mean())


def test_missing_values_are_neither_in_nor_out():
    original = np.array([[1.0, np.nan], [np.nan, np.nan], [5.0, 2.0]])
    released = np.array([[1.0, 3.0], [1.0, np.nan], [1.0, 2.0]])

    found = interval_disclosure(original, released)

    assert found.value == pytest.approx(1 / 3)


def test_a_release_of_the_people_themselves_lies_on_them(rng):
    inside, outside = rng.normal(size=(2, 1500, 3))

    found = closeness(inside, inside, outside, rng=rng)

    assert found.inside.value == 0
    assert found.advantage.value == 1
    assert found.copies.main.value == 1
    assert found.copies.control.value == 0
    assert found.copies.residual.low > 0.99
    assert found.copies.note.endswith(DIFFERENCE)


def test_an_independent_release_is_no_nearer_to_people_in_the_table(rng):
    """200 releases at 95%: false alarm below 1e-6 up to a true miss rate of 6%."""
    misses = 0
    for _ in range(200):
        released, inside, outside = rng.normal(size=(3, 150, 3))
        found = closeness(released, inside, outside, rng=rng, sample=100)
        misses += not found.advantage.low <= 0.5 <= found.advantage.high

    assert misses <= binom.isf(1e-6, 200, 0.06)


def test_the_advantage_is_the_share_of_pairs_with_ties_halved(rng):
    inside, outside, released = (rng.integers(0, 3, (n, 2)).astype(float) for n in (30, 20, 5))
    near, far = (nearest(released, side)[1] for side in (inside, outside))
    wanted = ((near[:, None] < far) + (near[:, None] == far) / 2).mean()

    assert closeness(released, inside, outside, rng=rng).advantage.value == pytest.approx(wanted)


def test_one_row_and_constant_releases_have_a_defined_value(rng):
    one, same = np.zeros((1, 2)), np.ones((6, 2))

    assert record_linkage(one, one, rng=rng).main.value == 1
    assert record_linkage(rng.normal(size=(6, 2)), same, rng=rng).main.value == pytest.approx(1 / 6)
    assert interval_disclosure(one, one).value == 1
    assert interval_disclosure(one * np.nan, one).value == 0
    assert closeness(one, same, same, rng=rng).advantage.value == 0.5


def test_what_cannot_be_measured_is_said(rng):
    empty, one = np.zeros((0, 2)), np.zeros((1, 2))

    with pytest.raises(InputError, match="Rows must correspond: found 1 original and 0 released"):
        record_linkage(one, empty, rng=rng)
    with pytest.raises(InputError, match="no closest record"):
        closeness(empty, one, one, rng=rng)
    with pytest.raises(InputError, match="people in the table and people not in it"):
        closeness(one, one, empty, rng=rng)
    with pytest.raises(InputError, match="finite numbers"):
        record_linkage(one * np.nan, one, rng=rng)
    with pytest.raises(InputError, match="at least one axis"):
        record_linkage(np.zeros((2, 0)), np.zeros((2, 0)), rng=rng)
    with pytest.raises(InputError, match="sample must be at least 1"):
        record_linkage(np.zeros((2, 1)), np.zeros((2, 1)), rng=rng, sample=0)
    with pytest.raises(InputError, match="width"):
        interval_disclosure(one, one, width=-1)
