from fractions import Fraction
from itertools import combinations
from math import exp, factorial, floor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.core import Kind, Price
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.mechanism.records import HeldColumns
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent.measure import (
    FINE,
    _finer,
    _nests,
    mean_deviation,
    measure_coarseness,
    measure_one_way,
)
from shoal.synthesis.maxent.one_way import estimate_marginal

COLUMNS = (
    Domain("town", Kind.NOMINAL, 9),
    Domain("grade", Kind.ORDINAL, 6),
    Domain("number", Kind.NUMERIC, 400),
)


def published(columns, attributes, *, most=3, seed=0, epsilon="5"):
    """Single columns with noise that does not depend on what is asked next."""
    noise = SeededNoise(seed)
    held = HeldColumns(columns)
    return [
        estimate_marginal(
            measure_one_way(held, j, attribute, price=Price(Fraction(epsilon)), noise=noise),
            attribute,
            n=len(held),
            most=most,
        )
        for j, attribute in enumerate(attributes)
    ]


class Overheard(RecordingNoise):
    """Keeps what noise was to be added to."""

    def discrete_laplace(self, values, *, scale):
        self.values = values
        return super().discrete_laplace(values, scale=scale)


def exact(columns, singles):
    """The answer before noise, in records."""
    noise = Overheard()
    measure_coarseness(
        HeldColumns(columns), singles, n=len(columns[0]), price=Price(Fraction(1)), noise=noise
    )
    return int(noise.values[0])


def people(seed, n, attributes):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    return [
        np.where(rng.random(n) < 0.2, rng.integers(0, a.size, n), (hidden * a.size).astype(int))
        for a in attributes
    ]


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(2, 5), st.data())
@settings(max_examples=60)
def test_a_changed_record_moves_the_loss_by_at_most_four_a_pair(seed, n, most, data):
    before = people(seed, n, COLUMNS)
    singles = published(people(seed + 1, 50, COLUMNS), COLUMNS, most=most, seed=seed)
    who = data.draw(st.integers(0, n - 1))
    after = [column.copy() for column in before]
    for column, attribute in zip(after, COLUMNS, strict=True):
        column[who] = data.draw(st.integers(0, attribute.size - 1))

    assert abs(exact(before, singles) - exact(after, singles)) <= 4 * 3


@given(st.integers(0, 2**32), st.integers(1, 80), st.integers(2, 6))
@settings(max_examples=30)
def test_the_loss_is_that_of_the_slow_twin(seed, n, most):
    columns = people(seed, n, COLUMNS)
    singles = published(columns, COLUMNS, most=most, seed=seed)
    fine = [_finer(single) for single in singles]
    cells = [labels[s.bins(c)] for labels, s, c in zip(fine, singles, columns, strict=True)]
    believed = [np.bincount(f, s.projected + 1e-9) for f, s in zip(fine, singles, strict=True)]
    nests = [_nests(*each) for each in zip(fine, singles, believed, strict=True)]
    total = Fraction(0)
    for a, b in combinations(range(3), 2):
        (ga, ua), (gb, ub) = nests[a], nests[b]
        for x in range(len(ga)):
            for y in range(len(gb)):
                own = sum((cells[a] == x) & (cells[b] == y))
                block = sum((ga[cells[a]] == ga[x]) & (gb[cells[b]] == gb[y]))
                said = Fraction(int(block) * int(ua[x]) * int(ub[y]), 1 << 20)
                total += abs(int(own) - said)

    assert exact(columns, singles) == floor(total)


@given(st.integers(0, 2**32), st.integers(2, 7))
@settings(max_examples=25)
def test_fine_cells_lie_in_one_group_each_and_shares_add_up(seed, most):
    singles = published(people(seed, 200, COLUMNS), COLUMNS, most=most, seed=seed)

    for single in singles:
        fine = _finer(single)
        assert (np.unique(fine) == np.arange(fine.max() + 1)).all()
        assert fine.max() + 1 <= FINE + single.size
        for cell in range(fine.max() + 1):
            assert np.unique(single.members[fine == cell]).size == 1
        groups, shares = _nests(fine, single, np.bincount(fine, single.projected + 1e-9))
        assert (np.bincount(groups, shares) == 1024).all()


@given(st.integers(0, 2**32), st.lists(st.integers(0, 80), max_size=4))
@settings(max_examples=20)
def test_the_answer_does_not_depend_on_blocks(seed, cuts):
    columns = people(seed, 80, COLUMNS)
    singles = published(columns, COLUMNS, seed=seed)

    class Blocks(HeldColumns):
        def total(self, question):
            parts = zip(*(np.split(c, sorted(cuts)) for c in self.columns), strict=True)
            return sum(question(list(part)) for part in parts)

    whole, _, one = measure_coarseness(
        HeldColumns(columns), singles, n=80, price=Price(Fraction(1)), noise=SeededNoise(seed)
    )
    cut, _, other = measure_coarseness(
        Blocks(columns), singles, n=80, price=Price(Fraction(1)), noise=SeededNoise(seed)
    )
    assert (whole, one) == (cut, other)


def test_independent_columns_lose_nothing_and_columns_that_follow_from_each_other_much():
    rng = np.random.default_rng(1)
    attributes = [Domain(name, Kind.NOMINAL, 16) for name in "abc"]
    apart = [rng.integers(0, 16, 5000) for _ in attributes]
    first = rng.integers(0, 16, 5000)
    tied = [first, rng.permutation(16)[first], rng.permutation(16)[first]]

    def lost(columns):
        singles = published(columns, attributes, most=3)
        return measure_coarseness(
            HeldColumns(columns),
            singles,
            n=5000,
            price=Price(Fraction(1)),
            noise=RecordingNoise(),
        )

    assert abs(lost(apart)[0]) < 0.02
    assert lost(tied)[0] > 0.6
    assert lost(tied)[2].sensitivity == 12
    assert lost(tied)[2].epsilon == 1


@given(st.floats(1e-6, 30))
@example(1.0)
@example(7.999999)
def test_the_mean_deviation_of_a_poisson_number_is_its_sum(mean):
    terms = [abs(k - mean) * exp(-mean) * mean**k / factorial(k) for k in range(150)]

    assert mean_deviation(np.array([mean]))[0] == pytest.approx(sum(terms), rel=1e-9)
