"""The boosted attacker: what it must find, and what it must not."""

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.metrics.attacks import naive_bayes
from shoal.metrics.attacks.boosting import (
    code_attack,
    guess_codes,
    guess_numbers,
    learn_codes,
    learn_numbers,
    number_attack,
)


@pytest.fixture
def rng():
    return np.random.default_rng(21)


def corners(rng, n):
    """The value is whether two numbers lie on the same side: no attribute tells it alone."""
    places = rng.random((n, 2))
    return places, ((places[:, 0] > 0.5) == (places[:, 1] > 0.5)).astype(np.int64)


def test_it_finds_what_attributes_say_together_and_naive_bayes_does_not(rng):
    places, codes = corners(rng, 3000)
    kinds = [False, False]

    model = learn_codes(places, places, codes, discrete=kinds, rng=rng)
    strong = code_attack(model, places, codes, rng=rng, control=corners(rng, 1000))
    naive = naive_bayes.learn(
        places, places, codes, values=2, discrete=kinds, domains=[[0, 1]] * 2, cells=16
    )
    weak = naive_bayes.empirical_privacy(naive_bayes.guess(naive, places), codes)

    assert strong.attack.main.value > 0.97
    assert weak.attack.main.value < 0.65
    # A rule of the population: it is learnt about people not in the table as well.
    assert strong.attack.difference.value < 0.05


def test_what_is_learnt_of_people_in_the_table_alone_is_the_difference(rng):
    places, noise = rng.random((400, 2)), rng.integers(0, 2, 400)

    model = learn_codes(places, places, noise, discrete=[False, False], rng=rng)
    others = (rng.random((2000, 2)), rng.integers(0, 2, 2000))
    found = code_attack(model, places, noise, rng=rng, control=others)

    assert found.attack.difference.low > 0.2
    assert found.attack.control.low < 0.5 < found.attack.control.high + 0.05


def test_boxes_with_counts_are_learnt_as_their_records(rng):
    lower = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1]])
    upper = np.array([[5.0, 1], [5, 2], [10, 1], [10, 2]])
    counts = np.array([[90.0, -3], [0, 70], [2, 80], [60, 1]])

    model = learn_codes(
        np.repeat(lower, 30, axis=0),
        np.repeat(upper, 30, axis=0),
        np.repeat(counts, 30, axis=0),
        discrete=[False, True],
        rng=rng,
    )

    found = guess_codes(model, np.array([[1.0, 0], [1, 1], [9, 0], [9, 1], [np.nan, 0]]))
    assert found.codes[:4].tolist() == [0, 1, 1, 0]
    assert (found.confidence <= 1).all()


def test_caps_are_kept(rng):
    places, codes = corners(rng, 500)

    model = learn_codes(places, places, codes, discrete=[False, False], rng=rng, cap=200)
    found = code_attack(model, places, codes, rng=rng, most=50)

    assert model.rows == 200
    assert found.attack.attacks == 50


def test_numbers_are_guessed_within_a_tolerance(rng):
    places = rng.random((2000, 2))
    secret = 10 * places[:, 0]
    fresh = rng.random((500, 2))

    model = learn_numbers(places, places, secret, discrete=[False, False], rng=rng, cap=1500)
    found = number_attack(
        guess_numbers(model, places),
        secret,
        tolerance=0.5,
        control=(guess_numbers(model, fresh), 10 * fresh[:, 0]),
    )

    assert model.rows == 1500
    assert found.main.value > 0.95
    assert found.control.value > 0.9
    assert found.baseline.value == pytest.approx(0.1, abs=0.03)


def test_the_best_single_number_is_the_middle_of_the_fullest_window():
    truth = np.array([0.0, 1.0, 1.5, 2.0, 9.0, np.nan])

    found = number_attack(np.zeros(6), truth, tolerance=0.5)

    assert found.baseline.value == 3 / 5
    assert found.main.value == 1 / 5


@pytest.mark.parametrize("rows", [0, 1, 30])
def test_empty_unknown_one_row_and_constant_releases_have_a_defined_guess(rng, rows):
    places = np.zeros((rows, 1))

    for code in (-1, 3):
        model = learn_codes(places, places, np.full(rows, code), discrete=[False], rng=rng)
        want = 3 if rows and code == 3 else 0
        assert guess_codes(model, np.ones((2, 1))).codes.tolist() == [want, want]

    number = learn_numbers(places, places, np.full(rows, 4.0), discrete=[False], rng=rng)
    assert guess_numbers(number, np.ones((1, 1)))[0] == pytest.approx(4.0 if rows else 0.0)


def test_what_cannot_be_measured_is_said():
    with pytest.raises(InputError, match="nothing to guess"):
        number_attack(np.zeros(1), np.array([np.nan]), tolerance=1)
    with pytest.raises(InputError, match="tolerance of a guess must not be negative"):
        number_attack(np.zeros(1), np.zeros(1), tolerance=-1)
