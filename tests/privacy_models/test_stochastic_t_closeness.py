import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Distance
from shoal.errors import InputError
from shoal.privacy_models import Counts, t_closeness
from shoal.privacy_models.stochastic_t_closeness import (
    epsilon_for_t,
    epsilon_from_t,
    stochastic_t,
    t_for_epsilon,
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


@given(st.floats(0, 20))
def test_the_t_of_a_view_undoes_its_epsilon(epsilon):
    assert epsilon_from_t(t_for_epsilon(epsilon)) == pytest.approx(epsilon)


def channels(values=3, outputs=3):
    rows = st.lists(st.integers(0, 20), min_size=outputs, max_size=outputs).filter(any)
    return st.lists(rows, min_size=values, max_size=values).map(
        lambda found: np.array(found) / np.sum(found, axis=1, keepdims=True)
    )


tables = st.lists(
    st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any), min_size=1, max_size=4
)


@given(tables, channels())
def test_a_draw_is_as_close_as_the_values_that_it_is_drawn_for(counts, Z):
    drawn = stochastic_t(counts, Z)

    assert 1 - 1e-12 <= drawn <= stochastic_t(counts, np.eye(3)) * (1 + 1e-12)


@given(tables)
def test_certain_draws_have_plain_closeness_by_ratio(counts):
    held = Counts.of(
        *np.array([(e, v) for e, row in enumerate(counts) for v in range(3) for _ in range(row[v])])
        .reshape(-1, 2)
        .T
    )
    plain = t_closeness(held, 1, distance=Distance.RATIO).achieved

    assert stochastic_t(counts, np.eye(3)) == pytest.approx(
        math.inf if plain is None else float(plain)
    )


@given(st.lists(st.integers(1, 6), min_size=2, max_size=4), channels())
def test_closeness_of_every_table_is_record_wise_epsilon_and_no_more(sizes, Z):
    """The question that the paper leaves open: with all tables it is an equivalence.

    Of all tables with these classes the worst are those with one value in a class and one other
    outside: their t is that of Proposition 1 for the epsilon of Z, and gives it back.
    """
    Z = Z + 0.01
    Z /= Z.sum(axis=1, keepdims=True)
    epsilon = math.log((Z.max(axis=0) / Z.min(axis=0)).max())
    worst = 1.0
    for inside, one, other in product(range(len(sizes)), range(3), range(3)):
        counts = np.zeros((len(sizes), 3))
        counts[:, other] = sizes
        counts[inside] = 0
        counts[inside, one] = sizes[inside]
        worst = max(worst, stochastic_t(counts, Z))

    assert worst == pytest.approx(t_from_epsilon(epsilon, sizes))
    assert epsilon_for_t(worst, sizes) == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize("n", [4, 10, 100])
@pytest.mark.parametrize("q", [0.25, 1e-3, 1e-9, 0.0])
def test_closeness_of_two_neighbours_bounds_no_epsilon(n, q):
    """The counterexample: t stays below (n - 1) / (n - 2) while epsilon has no bound."""
    Z = np.array([[1 - q, q], [q, 1 - q]])
    before, after = [[n // 2, n // 2]] * 2, [[n // 2 - 1, n // 2 + 1], [n // 2, n // 2]]

    assert stochastic_t(before, Z) == pytest.approx(1)
    assert stochastic_t(after, Z) <= (n - 1) / (n - 2) * (1 + 1e-12)
    # One record's draw is all that differs: x with 1 - q before, with q after.
    assert q == 0 or math.log((1 - q) / q) > 2 * math.log((n - 1) / (n - 2))


def test_twice_the_logarithm_is_no_epsilon_of_the_release():
    Z = np.array([[0.75, 0.25], [0.25, 0.75]])

    close = [stochastic_t(counts, Z) for counts in ([[1, 1], [1, 1]], [[0, 2], [1, 1]])]

    assert close == pytest.approx([1, 1.5])
    assert math.log(0.75 / 0.25) > epsilon_from_t(1.5)


def test_one_class_is_the_whole_table():
    assert t_from_epsilon(3.0, [7]) == 1
    assert epsilon_for_t(1.0, [7]) == math.inf


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: t_from_epsilon(-1, [3]), "epsilon must be"),
        (lambda: t_from_epsilon(math.nan, [3]), "epsilon must be"),
        (lambda: t_from_epsilon(1, []), "class_sizes must hold"),
        (lambda: t_from_epsilon(1, [0, 3]), "class_sizes must hold"),
        (lambda: epsilon_for_t(0.5, [3]), "t-closeness must be"),
        (lambda: epsilon_from_t(0.5), "t-closeness must be"),
        (lambda: t_for_epsilon(-1), "epsilon must be"),
        (lambda: stochastic_t([[1, 2]], [[1.0]]), "same values by outputs; found"),
        (lambda: stochastic_t([[0, 0]], np.eye(2)), "without empty classes"),
    ],
)
def test_what_has_no_meaning_is_refused(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
