"""Pairs over finer groups: the scores, what one record moves in them, and what is selected."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import exp, factorial, floor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.core import SELECTION, Kind, Neighbours, Price, silent
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.mechanism.records import HeldColumns
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import maxent_plan
from shoal.synthesis.maxent.fine_pairs import (
    _find_groups,
    _share_groups,
    select_fine_pairs,
)
from shoal.synthesis.maxent.fit import Target
from shoal.synthesis.maxent.measure import mean_deviation, measure_one_way
from shoal.synthesis.maxent.one_way import estimate_marginal, split_groups

COLUMNS = (
    Domain("town", Kind.NOMINAL, 9),
    Domain("grade", Kind.ORDINAL, 6),
    Domain("number", Kind.NUMERIC, 400),
)
FINER = 5


def published(columns, attributes, *, most=3, seed=0, epsilon="5"):
    """One-way marginals with noise that does not depend on what comes next."""
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
    """Keeps the scores that a choice was made by."""

    def __init__(self):
        super().__init__()
        self.scores = []

    def select(self, scores, *, sensitivity, epsilon):
        self.scores.append(np.array(scores))
        return super().select(scores, sensitivity=sensitivity, epsilon=epsilon)


def plan(attributes, n, **more):
    chosen = maxent_plan(attributes, n=n, epsilon=Fraction(1))
    return replace(chosen, groups=2, fine_pairs=2, fine_groups=FINER, fine_cells=10**9,
                   fine_share=(1 - chosen.one_way_share) / 20, **more)  # fmt: skip


def select(columns, singles, attributes, noise, n=None):
    n = n or len(columns[0])
    return select_fine_pairs(
        HeldColumns(columns), attributes, singles, plan(attributes, n), n=n,
        price=Price(Fraction(1)), noise=noise, progress=silent,
    )  # fmt: skip


def scores(columns, singles, n=50):
    """The scores of the first selection: of each pair, and of none."""
    noise = Overheard()
    select(columns, singles, COLUMNS, noise, n=n)
    return noise.scores[0]


def people(seed, n, attributes):
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    return [
        np.where(rng.random(n) < 0.2, rng.integers(0, a.size, n), (hidden * a.size).astype(int))
        for a in attributes
    ]


@given(st.integers(0, 2**32), st.integers(1, 60), st.data())
@settings(max_examples=60)
def test_a_changed_record_moves_a_score_by_at_most_four_and_an_added_one_by_two(seed, n, data):
    before = people(seed, n, COLUMNS)
    singles = published(people(seed + 1, 50, COLUMNS), COLUMNS, seed=seed)
    who = data.draw(st.integers(0, n - 1))
    after = [column.copy() for column in before]
    for column, attribute in zip(after, COLUMNS, strict=True):
        column[who] = data.draw(st.integers(0, attribute.size - 1))
    more = [np.append(column, column[who]) for column in after]

    if all(split_groups(*e, FINER).size == e[0].size for e in zip(singles, COLUMNS, strict=True)):
        return  # no pair has a score
    moved = np.abs(scores(before, singles) - scores(after, singles))
    assert moved.max() <= 4
    assert moved[-1] == 0  # that of none
    assert np.abs(scores(more, singles) - scores(after, singles)).max() <= 2


@given(st.integers(0, 2**32), st.integers(1, 80))
@settings(max_examples=30)
def test_a_score_is_that_of_the_slow_twin(seed, n):
    columns = people(seed, n, COLUMNS)
    singles = published(columns, COLUMNS, seed=seed)
    fine = [split_groups(*each, FINER) for each in zip(singles, COLUMNS, strict=True)]
    cells = [one.group_codes(c) for one, c in zip(fine, columns, strict=True)]
    groups = [_find_groups(*each) for each in zip(fine, singles, strict=True)]
    shares = [_share_groups(*each) for each in zip(fine, groups, strict=True)]
    expected = []
    finer = [one.size > whole.size for one, whole in zip(fine, singles, strict=True)]
    for a, b in combinations(range(3), 2):
        if not finer[a] and not finer[b]:
            continue
        total = Fraction(0)
        for x in range(fine[a].size):
            for y in range(fine[b].size):
                own = sum((cells[a] == x) & (cells[b] == y))
                block = sum(
                    (groups[a][cells[a]] == groups[a][x]) & (groups[b][cells[b]] == groups[b][y])
                )
                said = Fraction(int(block) * int(shares[a][x]) * int(shares[b][y]), 1 << 20)
                total += abs(int(own) - said)
        means = n * np.outer(fine[a].shares, fine[b].shares)
        expected.append(floor(total) - round(mean_deviation(means).sum()))

    if expected:
        assert scores(columns, singles, n=n)[:-1].tolist() == expected


@given(st.integers(0, 2**32), st.integers(2, 7), st.integers(2, 30))
@settings(max_examples=40)
def test_finer_groups_lie_in_one_group_each_and_shares_add_up(seed, most, finer):
    singles = published(people(seed, 200, COLUMNS), COLUMNS, most=most, seed=seed)

    for single, attribute in zip(singles, COLUMNS, strict=True):
        fine = split_groups(single, attribute, finer)
        assert (np.unique(fine.members) == np.arange(fine.size)).all()
        assert fine.size >= single.size
        groups = _find_groups(fine, single)
        assert (groups[fine.members] == single.members).all()
        assert (np.bincount(groups, _share_groups(fine, groups)) == 1024).all()
        if single.line:
            assert (np.diff(fine.members) >= 0).all()  # runs of leaves


@given(st.integers(0, 2**32), st.lists(st.integers(0, 80), max_size=4))
@settings(max_examples=20)
def test_what_is_selected_does_not_depend_on_blocks(seed, cuts):
    columns = people(seed, 80, COLUMNS)
    singles = published(columns, COLUMNS, seed=seed)

    class Blocks(HeldColumns):
        def total(self, question):
            parts = zip(*(np.split(c, sorted(cuts)) for c in self.columns), strict=True)
            return sum(question(list(part)) for part in parts)

    found, losses = [], []
    for held in (HeldColumns(columns), Blocks(columns)):
        fine, spent = select_fine_pairs(
            held, COLUMNS, singles, plan(COLUMNS, 80), n=80, price=Price(Fraction(1)),
            noise=SeededNoise(seed), progress=silent,
        )  # fmt: skip
        found.append(fine.pairs)
        losses.append(spent)

    assert found[0] == found[1]
    assert losses[0] == losses[1]


def test_pairs_that_determine_each_other_are_selected_and_others_are_not():
    """False alarms: none is a total variation of 0.1 off, which is 0.05 e^-100 at this price."""
    rng = np.random.default_rng(1)
    attributes = [Domain(name, Kind.NOMINAL, 16) for name in "abcd"]
    first = rng.integers(0, 16, 5000)
    tied = [first, rng.permutation(16)[first], rng.permutation(16)[first],
            rng.integers(0, 16, 5000)]  # fmt: skip
    apart = [rng.integers(0, 16, 5000) for _ in attributes]

    def chosen(columns):
        singles = published(columns, attributes, most=3, epsilon="50")
        finer = plan(attributes, 5000)
        finer = replace(finer, fine_pairs=3, fine_groups=16)
        return select_fine_pairs(
            HeldColumns(columns), attributes, singles, finer, n=5000,
            price=Price(Fraction(10)), noise=SeededNoise(2), progress=silent,
        )  # fmt: skip

    fine, losses = chosen(tied)
    assert fine.pairs == ((0, 1), (0, 2), (1, 2))
    assert [loss.mechanism for loss in losses] == [SELECTION] * 3
    assert sorted(fine.coarse) == [0, 1, 2]
    none, losses = chosen(apart)
    assert none.pairs == ()
    assert len(losses) == 1


def test_a_target_over_groups_applies_to_finer_ones():
    """A table over groups is the sum of the cells of one over finer groups."""
    columns = people(3, 400, COLUMNS)
    singles = published(columns, COLUMNS)
    fine, _ = select(columns, singles, COLUMNS, SeededNoise(1))
    sizes = [one.size for one in singles]
    target = Target((0, 2), np.arange(sizes[0] * sizes[2], dtype=float), 1.0)

    lifted = fine.lift(target, sizes)

    assert fine.pairs
    for j, own in zip(
        target.columns, lifted.codes([one.size for one in fine.one_way]), strict=True
    ):
        assert (own[fine.one_way[j].members] == singles[j].members).all()


def test_a_record_that_comes_or_goes_has_half_the_reach():
    columns = people(3, 400, COLUMNS)
    singles = published(columns, COLUMNS)
    for neighbours, moves in ((Neighbours.CHANGE_ONE, 4), (Neighbours.ADD_REMOVE, 2)):
        _, losses = select_fine_pairs(
            HeldColumns(columns), COLUMNS, singles, plan(COLUMNS, 400), n=400,
            price=Price(Fraction(1), neighbours), noise=SeededNoise(1), progress=silent,
        )  # fmt: skip
        assert {loss.sensitivity for loss in losses} == {moves}


@given(st.floats(1e-6, 30))
@example(1.0)
@example(7.999999)
def test_the_mean_deviation_of_a_poisson_number_is_its_sum(mean):
    terms = [abs(k - mean) * exp(-mean) * mean**k / factorial(k) for k in range(150)]

    assert mean_deviation(np.array([mean]))[0] == pytest.approx(sum(terms), rel=1e-9)


def test_where_no_column_has_finer_groups_nothing_is_selected_or_paid():
    attributes = [Domain(name, Kind.NOMINAL, 2) for name in "abc"]
    columns = [np.zeros(12, dtype=np.int64)] * 3
    singles = published(columns, attributes, most=2)

    fine, losses = select(columns, singles, attributes, SeededNoise(1))

    assert (fine.pairs, losses) == ((), [])


def test_the_draw_alone_decides_which_pair_is_selected():
    """Not the scores: they choose by the noise that is paid for, and by nothing beside it."""

    class First(RecordingNoise):
        def select(self, scores, *, sensitivity, epsilon):
            super().select(scores, sensitivity=sensitivity, epsilon=epsilon)
            return 0

    attributes = [Domain(name, Kind.NOMINAL, 16) for name in "abc"]
    first = np.random.default_rng(1).integers(0, 16, 5000)
    columns = [np.zeros(5000, dtype=np.int64), first, first]  # b and c are the strong pair
    singles = published(columns, attributes)

    fine, _ = select(columns, singles, attributes, First())

    assert fine.pairs == ((0, 1), (0, 2))
