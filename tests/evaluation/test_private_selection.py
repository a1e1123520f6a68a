"""Private selection: its price, its counts, and what it chooses."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.budget import budget_file
from shoal.core import LAPLACE
from shoal.errors import ClaimViolationError, InputError
from shoal.evaluation.comparison import compare, grid, private_selection
from shoal.hazmat.fakes import RecordingNoise
from shoal.policy.load import load

GRID = {
    "candidate": [
        {"method": "laplace", "epsilon": [1, 2]},
        {"method": "ir-laplace", "epsilon": 1, "k": 10, "release_form": "column-shuffled"},
        {"method": "mdav", "k": 5},
        {"method": "mdav-laplace", "epsilon": 1, "k": 5},
    ]
}


def people(n=60, seed=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"age": rng.integers(0, 100, n), "sex": rng.choice(["f", "m"], n)})


def stated(path, **more):
    return {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]},
            "sex": {"role": "confidential", "kind": "nominal", "categories": ["f", "m"]},
        },
        "protect": {"method": "laplace", "epsilon": 1},
        "budget": {"file": str(path), "source": "people"},
        **more,
    }


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "budget.sqlite"
    budget_file.init(file, "people", Fraction(4))
    return file


def test_the_choice_is_paid_for_and_leaves_a_later_epsilon_proved(path):
    policy = stated(path, require={"differential-privacy": 1})
    told = []

    chosen = compare.select(people(), policy, epsilon=3, candidates=GRID, tell=told.append)
    release = shoal.protect(people(), policy)

    assert [one.label for one in chosen.among] == [
        "laplace epsilon=0.833333333",
        "ir-laplace epsilon=0.833333333 k=10 form=column-shuffled",
    ]
    assert chosen.candidate in chosen.among
    assert {one.method for one, _ in chosen.left_out} == {"mdav", "mdav-laplace"}
    assert "costs epsilon 3" in told[0]
    assert release.claims[0].status == "proved"
    account = budget_file.account(path, "people")
    assert [(entry.method, entry.epsilon) for entry in account.entries] == [
        ("private-selection", 3),
        ("laplace", 1),
    ]
    assert not account.inspected


@pytest.mark.parametrize(
    "rows", [{"max_contributions": 3}, {"exact_contributions": 3}, {"max_contributions": 1}]
)
def test_a_choice_priced_for_rows_is_not_made_for_persons_with_several(path, rows):
    policy = stated(path)
    policy["columns"]["person"] = {"role": "identifier", "privacy_unit": True, **rows}
    frame = people().with_columns(person=pl.arange(0, 60) // 3)

    with pytest.raises(InputError, match="proved for one row per person"):
        compare.select(frame, policy, epsilon=3, candidates=GRID, tell=print)

    assert budget_file.account(path, "people").spent == 0


def test_a_budget_that_does_not_hold_the_choice_refuses_it(path):
    with pytest.raises(ClaimViolationError, match="requested epsilon 5"):
        compare.select(people(), stated(path), epsilon=5, candidates=GRID)

    assert budget_file.account(path, "people").inspections == ()


def test_without_a_budget_file_or_a_proved_epsilon_nothing_is_chosen(path):
    unbooked = {name: part for name, part in stated(path).items() if name != "budget"}
    with pytest.raises(InputError, match="A private selection spends epsilon"):
        compare.select(people(), unbooked, epsilon=1, candidates=GRID)
    with pytest.raises(InputError, match="the grid has none"):
        compare.select(
            people(), stated(path), epsilon=1, candidates={"candidate": [GRID["candidate"][2]]}
        )


@given(st.integers(0, 59), st.integers(-500, 500) | st.none(), st.sampled_from(["f", "m", "x"]))
@settings(max_examples=30)
def test_one_record_moves_every_count_by_one_at_most(row, age, sex):
    policy = load(stated("budget.sqlite"))
    queries = private_selection._queries(policy, ["age", "sex"])
    before = people()
    after = before.with_columns(
        age=pl.Series([age if i == row else v for i, v in enumerate(before["age"])]),
        sex=pl.Series([sex if i == row else v for i, v in enumerate(before["sex"])]),
    )

    counts = [
        private_selection._counts(one, policy, ["age", "sex"], queries) for one in (before, after)
    ]

    assert len(counts[0]) == private_selection.QUERIES
    assert np.abs(counts[0] - counts[1]).max() <= 1
    assert 0 < np.median(counts[0]) < 60


def stopped(base, stop):
    """Output probabilities of random stopping, with outputs from worst to best."""
    found, below = [], 0.0
    for share in base:
        upto = below + share
        f = [stop * x / (1 - (1 - stop) * x) for x in (below, upto)]
        found.append(f[1] - f[0])
        below = upto
    return found


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.floats(-1, 1)), min_size=2, max_size=6),
    st.integers(1, 20),
)
def test_random_stopping_costs_three_times_its_runs(outputs, candidates):
    first = np.array([weight for weight, _ in outputs])
    first /= first.sum()
    second = first * np.exp([tilt for _, tilt in outputs])
    second /= second.sum()
    epsilon = np.abs(np.log(first / second)).max()

    ratios = [
        abs(math.log(x / y))
        for x, y in zip(
            stopped(first, 1 / (2 * candidates)), stopped(second, 1 / (2 * candidates)), strict=True
        )
    ]

    assert sum(stopped(first, 1 / (2 * candidates))) == pytest.approx(1)
    assert max(ratios) <= 3 * epsilon + 1e-9


def test_a_clearly_better_method_is_chosen_unless_it_was_never_drawn(path):
    """Of 12 choices, one at least falls on block means rather than on plain noise.

    The errors differ by far more than the noise of the scores, so that the worse method is chosen
    only where the better was never drawn. With g = 1/4 and two candidates that has probability
    sum_k g (1 - g)^(k - 1) / 2^k = 0.2, and 0.2^12 < 1e-8 for all twelve.
    """
    budget_file.init(path, "many", Fraction(10_000))
    policy = stated(path, budget={"file": str(path), "source": "many"})
    frame = people(400)
    grid = {
        "candidate": [
            {"method": "laplace", "epsilon": 1},
            {"method": "ir-laplace", "epsilon": 1, "k": 50, "release_form": "column-shuffled"},
        ]
    }

    chosen = Counter(
        compare.select(frame, policy, epsilon=Fraction(3), candidates=grid).candidate.method
        for _ in range(12)
    )

    assert chosen["ir-laplace"] >= 1


def test_a_claim_that_falls_with_the_number_of_rows_is_left_out(path):
    """Univariate MDAV has blocks by rank only if k divides n, or n // k is odd."""
    grid = {
        "candidate": [
            {"method": "laplace", "epsilon": 1},
            {"method": "ir-mdav-laplace", "epsilon": 1, "k": 4, "release_form": "column-shuffled"},
        ]
    }

    among = [
        len(compare.select(people(n), stated(path), epsilon=1, candidates=grid).among)
        for n in (60, 34)
    ]

    assert among == [2, 1]


def test_scores_have_the_noise_that_is_paid_for(path):
    """A record moves a score by a count of each query; a sixth of a run's price is for it."""
    noise = RecordingNoise()

    private_selection.select(people(), load(stated(path)), grid.of(GRID), epsilon=Fraction(3),
                     noise=noise)  # fmt: skip

    scales = {call.scale for call in noise.calls if call.mechanism == LAPLACE}
    assert scales == {private_selection.QUERIES / Fraction(1, 6)}


def test_a_candidate_for_add_remove_is_priced_twice(path):
    """Half of what it may cost is proved for a record that comes or goes."""
    candidates = {"candidate": [
        {"method": "dp-quadtree", "epsilon": 1, "neighbours": ["change-one", "add-remove"]},
    ]}  # fmt: skip

    chosen = compare.select(people(), stated(path), epsilon=3, candidates=candidates)

    assert [one.parameters["neighbours"] for one in chosen.among] == ["change-one"]
    assert [one.parameters["neighbours"] for one, _ in chosen.left_out] == ["add-remove"]
