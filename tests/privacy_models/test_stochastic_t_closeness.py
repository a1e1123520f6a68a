import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.privacy_models.stochastic_t_closeness import (
    epsilon_for_t,
    epsilon_from_t,
    t_from_epsilon,
)

sizes = st.lists(st.integers(1, 50), min_size=2, max_size=6)
epsilons = st.floats(0.01, 5)


def ratio(inside, outside, size, total):
    """Distance of a class's share of an output from the whole table's, either way."""
    share = inside
    whole = (size * inside + (total - size) * outside) / total
    return max(share / whole, whole / share)


@given(sizes, epsilons)
def test_t_is_never_exceeded_by_outputs_within_the_ratio_and_is_attained(classes, epsilon):
    t, total = t_from_epsilon(epsilon, classes), sum(classes)
    found = 0.0
    for size in classes:
        for factor in np.exp(np.linspace(-epsilon, epsilon, 21)):
            found = max(found, ratio(1e-6, 1e-6 * factor, size, total))

    assert found <= t * (1 + 1e-12)
    assert found == pytest.approx(t)


def test_the_form_in_our_copy_is_exceeded():
    attained = ratio(1e-6, math.e * 1e-6, 3, 10)
    copied = 3 / 10 * (1 + (10 - 3 - 1) / 3 * math.e)

    assert attained == pytest.approx(2.2028, abs=5e-5)
    assert copied == pytest.approx(1.931, abs=5e-4)
    assert attained > copied


@given(sizes, epsilons)
def test_each_formula_undoes_the_other(classes, epsilon):
    assert epsilon_for_t(t_from_epsilon(epsilon, classes), classes) == pytest.approx(epsilon)


@given(st.floats(1, 100))
def test_closeness_by_ratio_gives_twice_its_logarithm(t):
    assert math.exp(epsilon_from_t(t) / 2) == pytest.approx(t)


def test_one_class_is_the_whole_table():
    assert t_from_epsilon(3.0, [7]) == 1
    assert epsilon_for_t(1.0, [7]) == math.inf


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: t_from_epsilon(-1, [3]), "epsilon must be"),
        (lambda: t_from_epsilon(math.nan, [3]), "epsilon must be"),
        (lambda: t_from_epsilon(1, []), "class_sizes must be"),
        (lambda: t_from_epsilon(1, [0, 3]), "class_sizes must be"),
        (lambda: epsilon_for_t(0.5, [3]), "t must be"),
        (lambda: epsilon_from_t(0.5), "t must be"),
    ],
)
def test_what_has_no_meaning_is_refused(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
