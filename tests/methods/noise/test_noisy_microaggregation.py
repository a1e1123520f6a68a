"""The noisy methods against exact fakes: scales, sharing, splitting, proofs and counterexamples."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core import (
    Column,
    DifferentialPrivacy,
    Hierarchy,
    Kind,
    Neighbours,
    Role,
    Schema,
    Status,
)
from shoal.errors import ClaimViolationError, InputError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.io import clamp, validate
from shoal.mechanism.fixed_point import FixedPointGrid
from shoal.mechanism.microaggregate_noise import isotonic
from shoal.methods import (
    REGISTRY,
    insensitive_laplace,
    ir_laplace,
    ir_mdav_laplace,
    mdav_laplace,
    noise_on_groups,
)
from shoal.methods.noise.epsilon_claims import has_fixed_blocks
from shoal.methods.noise.noisy_microaggregation import NominalOrder, put_on_grid
from shoal.partition import grouping_cost, individual_ranking, insensitive, mdav, noise_aware

STEPS = FixedPointGrid(0, 1).steps


def policy(method, columns=("a", "b"), widths=None, **protect):
    bounds = widths or {}
    return {
        "version": 1,
        "columns": {
            name: {
                "role": "quasi-identifier",
                "kind": "numeric",
                "bounds": bounds.get(name, [0, 1]),
            }
            for name in columns
        },
        "protect": {"method": method, "epsilon": 1, **protect},
    }


def frame(X, columns=("a", "b")):
    return pl.DataFrame(np.asarray(X), schema=list(columns), orient="row")


def release(X, method, *, added=0, columns=("a", "b"), widths=None, **protect):
    noise = RecordingNoise(added)
    rules = policy(method, columns, widths, **protect)
    done = shoal.protect(frame(X, columns), rules, noise=noise)
    return done, [call.scale for call in noise.calls]


RAMP = np.column_stack([np.linspace(0, 1, 12), np.linspace(1, 0, 12)])


@pytest.mark.parametrize(
    ("method", "protect", "scales"),
    [
        ("laplace", {}, [2, 2]),
        ("ir-laplace", {"k": 3, "release_form": "row-aligned"}, [2, 2]),
        ("mdav-laplace", {"k": 3}, [2, 2]),
        ("ir-mdav-laplace", {"k": 3, "release_form": "row-aligned"}, [2, 2]),
        ("insensitive-laplace", {"k": 3}, [8, 8]),
        ("insensitive-laplace", {"k": 3, "order": "lexicographic"}, [2, 8]),
        ("stable-laplace", {"k": 3}, [2, 2]),
        ("stable-laplace", {"k": 3, "sensitivity": "summed"}, [4, 4]),
    ],
)
def test_sums_get_noise_of_the_published_scale_times_the_group_size(method, protect, scales):
    """In units of the width over epsilon = 1, for two columns and four groups of three."""
    _, drawn = release(RAMP, method, **protect)

    assert drawn == [Fraction(STEPS * scale) for scale in scales]


@pytest.mark.parametrize(("split", "shares"), [("equal", [4, 4]), ("proportional", [8, 4])])
def test_epsilon_is_split_in_equal_parts_or_by_width(split, shares):
    """Widths 1 and 3 at epsilon 1/2: equal parts are 1/4 each, by width 1/8 and 3/8."""
    X = RAMP * [1, 3]

    done, drawn = release(X, "ir-mdav-laplace", k=3, epsilon=0.5, split=split,
                          release_form="column-shuffled", widths={"b": [0, 3]})  # fmt: skip

    assert drawn[0] == STEPS * shares[0]
    assert sum(privacy_loss.epsilon for privacy_loss in done.privacy_losses) == Fraction(1, 2)


def test_one_draw_is_shared_by_a_group_and_scaled_to_its_own_size():
    """Seven records at k=3: groups of 3 and 4. Noise of 12 % of the width on each sum."""
    X = np.array([0.1] * 3 + [0.6] * 4)[:, None]

    done, _ = release(X, "ir-laplace", added=int(0.12 * STEPS), columns=("a",), k=3,
                      release_form="row-aligned")  # fmt: skip

    assert done.data["a"].to_list() == pytest.approx([0.14] * 3 + [0.63] * 4, abs=1e-5)


def test_noisy_means_are_clamped_to_the_public_bounds():
    done, _ = release(RAMP, "mdav-laplace", added=100 * STEPS, k=3)

    assert done.data["a"].unique().to_list() == [1.0]


def test_isotonic_regression_orders_the_blocks_again():
    noisy = np.array([0.3, 0.1, 0.6])

    fitted = isotonic(noisy, np.array([1, 3, 2]))

    assert fitted.tolist() == pytest.approx([0.15, 0.15, 0.6])


def test_algorithm_2_groups_sets_of_columns_at_their_own_price():
    X = np.column_stack([RAMP, RAMP[:, 0]])
    given = {"k": 3, "groups": [["a", "b"], ["c"]], "epsilons": [0.25, 0.75]}

    done, drawn = release(X, "mdav-laplace", columns=("a", "b", "c"), **given)

    assert drawn == [8 * STEPS, 8 * STEPS, Fraction(4, 3) * STEPS]
    assert [s.epsilon for s in done.privacy_losses] == [
        Fraction(1, 8),
        Fraction(1, 8),
        Fraction(3, 4),
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"k": 3, "groups": [["a"]]}, "every protected column in exactly one set"),
        ({"k": 3, "groups": [["a"], ["b"]], "epsilons": [1]}, "one for each set"),
        ({"k": 3, "groups": [["a"], ["b"]], "epsilons": [0.5, 0.4]}, "expected a sum of 1"),
        ({"k": 3, "epsilons": [1]}, "expected together with 'groups'"),
        ({}, "either the smallest group size k or adaptive"),
        ({"k": 3, "adaptive": True}, "either the smallest group size k or adaptive"),
        ({"adaptive": True, "partition": "vmdav"}, "partition: expected only together with k"),
        ({"k": 3, "partition": "mondrian", "scale": "own-units"}, "same groups on every scale"),
    ],
)
def test_wrong_sets_of_columns_are_told_at_planning(given, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.plan(policy("mdav-laplace", **given))


def test_without_a_minimum_size_groups_grow_with_the_noise():
    X = np.random.default_rng(3).random((400, 2))

    many, few = (
        release(X, "mdav-laplace", adaptive=True, epsilon=epsilon)[0].privacy_losses[0].draws
        for epsilon in (100, 1)
    )

    assert many > 4 * few


UNEQUAL = np.random.default_rng(5).exponential([[1.0, 40.0]], size=(300, 2)).clip(0, 200)
BOUNDS = {"a": [0, 20], "b": [0, 200]}


def groups_of(done):
    """The partition that a release shows, and no other: records of a group are equal."""
    _, labels = np.unique(done.data.to_numpy(), axis=0, return_inverse=True)
    return labels.ravel()


@pytest.mark.parametrize("scale", ["public", "from-data", "own-units"])
def test_adaptive_groups_weigh_the_noise_in_the_units_of_the_records(scale):
    """Noise on a sum has scale 220 / epsilon, in both columns, in their own units."""
    unit = {"public": np.array([20, 200]), "from-data": UNEQUAL.std(axis=0), "own-units": 1.0}
    expected = np.sum(2 * (220 / 50 / (np.ones(2) * unit[scale])) ** 2)

    done, _ = release(UNEQUAL, "mdav-laplace", adaptive=True, epsilon=50, scale=scale,
                      widths=BOUNDS, release_form="row-aligned")  # fmt: skip

    found = shoal.core.Partition(groups_of(done))
    best = noise_aware(UNEQUAL / unit[scale], expected)
    fixed = [mdav(UNEQUAL / unit[scale], k) for k in range(2, 151)]
    costs = [
        grouping_cost(UNEQUAL / unit[scale], groups, expected) for groups in (found, best, *fixed)
    ]
    assert costs[0] == pytest.approx(costs[1], rel=0.03)  # rows come in another order
    assert costs[0] < min(costs[2:])


def test_adaptive_groups_of_single_columns_are_the_cheapest_of_all():
    done, _ = release(UNEQUAL, "mdav-laplace", adaptive=True, epsilon=50, widths=BOUNDS,
                      groups=[["a"], ["b"]], release_form="row-aligned")  # fmt: skip

    for x, released in zip(UNEQUAL.T, done.data.to_numpy().T, strict=True):
        found = np.unique(released, return_inverse=True)[1]
        best = noise_aware(x[:, None], 2 * (220 / 50) ** 2)
        assert len(set(zip(found, best.labels, strict=True))) == len(best)


ALGORITHMS = list(mdav_laplace.GroupingAlgorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_microaggregation_gets_the_noise_of_its_groups(algorithm):
    done, drawn = release(UNEQUAL, "mdav-laplace", k=7, partition=algorithm.value, widths=BOUNDS,
                          release_form="row-aligned")  # fmt: skip

    assert drawn == [STEPS * 11, STEPS * Fraction(11, 10)]
    X = done.data.to_numpy()
    sets = [X[:, :1], X[:, 1:]] if algorithm == "optimal-univariate" else [X]
    for columns in sets:
        assert min(np.unique(columns, axis=0, return_counts=True)[1]) >= 7
    assert X.mean(axis=0) == pytest.approx(UNEQUAL.mean(axis=0), abs=1e-3)


@pytest.mark.parametrize("form", ["linked-shuffled", "row-aligned"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_microaggregation_carries_the_claim_that_it_can(algorithm, form):
    planned = shoal.plan(
        policy("mdav-laplace", k=3, partition=algorithm.value, release_form=form)
        | {"one_row_per_person": True}
    )
    alone = algorithm == "optimal-univariate"

    assert [claim.status.value for claim in planned.claims][:2] == ["conditional", "refuted"]
    joint = [claim.guarantee.columns for claim in planned.claims[2:]]
    assert joint == ([("a",), ("b",)] if alone else [("a", "b")])
    assert {claim.status for claim in planned.claims[2:]} == {Status.PROVED}
    pair = mdav_laplace.refuting_pair(planned.setting, planned.setting.parameters.k)
    assert pair.event in planned.claims[1].basis
    told = planned.method.promises.not_claimed(planned.setting)
    assert len(told) == int(alone)


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a != "mdav"])
def test_blocks_that_follow_the_data_make_no_list_that_is_proved(algorithm):
    rules = policy("mdav-laplace", columns=("a",), k=4, partition=algorithm.value)

    assert statuses(rules, 20) == ["conditional", "refuted"]


@pytest.mark.parametrize(("k", "columns", "square"), [(4, 2, True), (3, 2, False), (4, 1, False)])
def test_mdav_is_refuted_by_a_pair_that_its_columns_and_k_have(k, columns, square):
    rules = policy("mdav-laplace", columns=("a", "b")[:columns], k=k, release_form="row-aligned")

    (basis,) = (c.basis for c in shoal.plan(rules).claims if c.status is Status.REFUTED)

    assert ("corners of a unit square" in basis) is square
    assert ("2k + 1 records" in basis) is not square


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_microaggregation_is_refuted_by_a_pair_of_its_own(algorithm, k):
    """Groups are known by their sizes, and their sums move by 2k widths; or rows become one."""
    pair = (
        mdav_laplace.two_ends(k)
        if algorithm == "mdav"
        else mdav_laplace.COUNTEREXAMPLES[algorithm](k)
    )

    def groups(X):
        done, _ = release(X, "mdav-laplace", k=k, partition=algorithm.value)
        return done.data.group_by("a", "b").len().rows()

    before, after = groups(pair.before), groups(pair.after)

    assert differ_in_one(pair)
    if algorithm == "mondrian":
        assert (len(before), len(after)) == (2, 1)
    else:
        sums = [{size: size * a for a, _, size in found} for found in (before, after)]
        moved = sum(abs(sums[0][size] - sums[1][size]) for size in (k, k + 1))
        assert moved == pytest.approx(2 * k, abs=0.1)


@pytest.mark.parametrize("columns", [("a",), ("a", "b")])
def test_one_record_turns_one_adaptive_group_into_several(columns):
    """At n^2 > 12 noise, somewhere between equal records and two halves."""
    n = 40
    X = np.zeros((n, len(columns)))
    distinct = []
    for moved in range(n // 2 + 1):
        X[:moved] = 1.0
        done, _ = release(X, "mdav-laplace", adaptive=True, epsilon=1, columns=columns)
        distinct.append(done.data.n_unique())

    assert distinct[0] == 1
    assert distinct[-1] == 2
    assert 1 in distinct[: distinct.index(2)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_categories_are_grouped_by_every_microaggregation(algorithm):
    rules = policy("mdav-laplace", columns=("a", "b"), k=5, partition=algorithm.value)
    rules["columns"]["b"] = {"role": "quasi-identifier", "kind": "nominal",
                             "categories": ["x", "y", "z"]}  # fmt: skip
    rows = pl.DataFrame({"a": [i / 40 for i in range(40)], "b": ["x", "y"] * 20})

    released = shoal.protect(rows, rules, noise=SeededNoise(1)).data

    assert set(released["b"]) <= {"x", "y", "z"}
    assert released.height == 40


def test_given_groups_get_the_noise_of_algorithm_1():
    X = np.array([[0.1, 10.0], [0.3, 30.0], [0.8, 40.0], [0.6, 60.0], [0.7, 80.0]])
    groups = shoal.core.Partition([0, 0, 1, 1, 1])
    noise = RecordingNoise(int(0.06 * STEPS))

    released, losses = noise_on_groups(
        X, groups, bounds={"a": (0, 1), "b": (0, 100)}, epsilon=Fraction(1, 2), noise=noise
    )

    assert [call.scale for call in noise.calls] == [202 * STEPS, Fraction(202, 100) * STEPS]
    assert released[:, 0] == pytest.approx([0.23] * 2 + [0.72] * 3, abs=1e-5)
    assert released[:, 1] == pytest.approx([23.0] * 2 + [62.0] * 3, abs=1e-3)
    assert sum(loss.epsilon for loss in losses) == Fraction(1, 2)


def test_given_groups_can_pay_for_each_column_by_itself():
    noise = RecordingNoise()
    split = [Fraction(1, 4), Fraction(3, 4)]

    noise_on_groups(RAMP, mdav(RAMP, 3), bounds={"a": (0, 1), "b": (0, 1)}, epsilon=1,
                    epsilons=split, noise=noise)  # fmt: skip

    assert [call.scale for call in noise.calls] == [4 * STEPS, Fraction(4, 3) * STEPS]


@pytest.mark.parametrize(
    ("X", "given", "sentence"),
    [
        (RAMP[:5], {}, "a row for each of the 12 labels"),
        (np.full((12, 2), np.nan), {}, "must be finite"),
        (RAMP, {"epsilon": 0}, "must be positive"),
        (RAMP, {"epsilons": [0.5, 0.25]}, "with a sum of 1"),
        (RAMP, {"bounds": {"a": (0, 1), "b": (1, 1)}}, "low < high"),
    ],
)
def test_given_groups_that_do_not_fit_are_refused(X, given, sentence):
    asked = {"bounds": {"a": (0, 1), "b": (0, 1)}, "epsilon": 1, "noise": RecordingNoise()} | given

    with pytest.raises(InputError, match=sentence):
        noise_on_groups(X, mdav(RAMP, 3), **asked)


# Proofs, as properties of exact sums on the grid.

units = st.lists(st.integers(0, 100), min_size=4, max_size=40)


def block_sums(x, k):
    partition = individual_ranking(x, k)
    sums = np.bincount(partition.labels, x)
    means = sums / partition.sizes
    return sums[np.argsort(means, kind="stable")]


@given(units, st.integers(2, 4), st.data())
def test_block_sums_by_rank_move_by_at_most_the_change_of_one_value(values, k, data):
    """Lemma 1 of sanchez2014, for sums."""
    x = np.array(values, dtype=float)
    y = x.copy()
    place = data.draw(st.integers(0, len(x) - 1))
    y[place] = data.draw(st.integers(0, 100))

    moved = np.abs(block_sums(x, k) - block_sums(y, k)).sum()

    assert moved <= abs(x[place] - y[place])


@given(st.integers(4, 40), st.integers(2, 4), st.integers(0, 9999),
       st.sampled_from(["reference", "lexicographic", "hilbert", "corners"]))  # fmt: skip
def test_sums_of_insensitive_groups_move_by_at_most_a_width_each(n, k, seed, order):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2)).round(1)
    Y = X.copy()
    Y[rng.integers(n)] = rng.random(2).round(1)

    def sums(Z):
        # As in a release: rows in canonical order, so that ties go by value.
        Z = Z[np.lexsort(Z.T[::-1])]
        partition = insensitive(Z, k, order=order)
        return np.column_stack([np.bincount(partition.labels, z) for z in Z.T])

    moved = np.abs(sums(X) - sums(Y))

    assert (moved <= 1 + 1e-9).all()
    if order == "lexicographic":
        assert moved[:, 0].sum() <= 1 + 1e-9


@given(st.integers(2, 5), st.integers(4, 60), st.integers(0, 999))
@settings(max_examples=60)
def test_mdav_on_one_column_cuts_at_fixed_ranks_where_we_say_so(k, n, seed):
    if n < k or not has_fixed_blocks(n, k):
        return
    rng = np.random.default_rng(seed)

    def sizes_by_rank(x):
        partition = mdav(x[:, None], k)
        order = np.argsort(np.bincount(partition.labels, x) / partition.sizes, kind="stable")
        return partition.sizes[order].tolist()

    one, other = (np.sort(rng.exponential(size=n) ** p) for p in (1, 3))
    assert sizes_by_rank(one) == sizes_by_rank(other)


@given(st.integers(0, 999))
@settings(max_examples=30)
def test_changing_one_record_changes_no_other_place_in_the_public_box(seed):
    rng = np.random.default_rng(seed)
    rules = shoal.plan(policy("mdav-laplace", k=3))
    X = rng.random((9, 2))
    Y = X.copy()
    Y[4] = [5.0, np.nan]  # outside and missing

    def places(Z):
        schema = rules.policy.schema
        table, _ = clamp.clamp(frame(Z), schema, columns=("a", "b"))
        return table.unit_matrix(["a", "b"])

    assert set(np.flatnonzero((places(X) != places(Y)).any(axis=1))) <= {4}


# Counterexamples, run.


def differ_in_one(pair):
    return len(np.flatnonzero((pair.before != pair.after).any(axis=1))) == 1


@pytest.mark.parametrize(
    "name", sorted(n for n, m in REGISTRY.items() if m.promises.counterexample)
)
def test_a_counterexample_is_a_pair_of_neighbours_in_the_unit_box(name):
    pair = REGISTRY[name].promises.counterexample(20)

    assert differ_in_one(pair)
    assert pair.before.min() >= 0 <= pair.after.min()
    assert pair.before.max() <= 1 >= pair.after.max()


def test_ir_laplace_shows_who_shares_a_block():
    pair = ir_laplace.counterexample(5)

    before, after = (
        release(X, "ir-laplace", k=5, release_form="row-aligned")[0].data
        for X in (pair.before, pair.after)
    )

    assert before["a"][0] == before["a"][1]
    assert after["a"][0] != after["a"][1]
    assert (before.n_unique(), after.n_unique()) == (2, 4)


def test_mdav_centroids_move_as_far_as_the_square_is_wide():
    k = 20
    pair = mdav_laplace.counterexample(k)

    def centroids(X):
        partition = mdav(X, k)
        return np.array([X[partition.labels == i].mean(axis=0) for i in range(len(partition))])

    before, after = centroids(pair.before), centroids(pair.after)
    moved = min(np.abs(before - order).sum() for order in (after, after[::-1]))
    assert moved > 1.9
    assert moved > 9 * (2 / k)


@pytest.mark.parametrize("k", range(2, 10))
@pytest.mark.parametrize(("method", "touched"), [("mdav-laplace", 1), ("stable-laplace", 2)])
def test_the_counterexample_of_a_method_moves_more_than_its_noise_allows_for(method, touched, k):
    """For every k, odd ones too; groups are told apart by their sizes at best."""
    pair = REGISTRY[method].promises.counterexample(k)

    def groups(X):
        partition = mdav(X, k)
        sums = [X[partition.labels == i].sum(axis=0) for i in range(len(partition))]
        return list(partition.sizes), sums

    (sizes, before), (others, after) = groups(pair.before), groups(pair.after)
    moved = min(
        np.abs(np.subtract(before, [after[i] for i in order])).sum()
        for order in permutations(range(len(sizes)))
        if [others[i] for i in order] == sizes
    )
    columns = 2
    assert moved > 0.95 * touched * columns  # of which the noise hides touched x columns
    assert k < 4 or moved > 1.5 * touched * columns


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_mdav_on_one_column_moves_its_larger_group_with_the_data(k):
    pair = ir_mdav_laplace.counterexample(k)

    def sums(X):
        partition = mdav(X, k)
        found = zip(partition.sizes, np.bincount(partition.labels, X[:, 0]), strict=True)
        return sorted((int(size), int(total)) for size, total in found)

    assert sums(pair.before) == [(k, 0), (k, k), (k, k), (k + 1, 0)]
    assert sums(pair.after) == [(k, 0), (k, 0), (k, k), (k + 1, k + 1)]
    assert not has_fixed_blocks(len(pair.before), k)


def test_a_scale_from_the_data_breaks_the_bound_of_insensitive_groups():
    pair = insensitive_laplace.counterexample(40)

    def sums(X, scale):
        done, _ = release(X, "insensitive-laplace", k=40, scale=scale)
        groups = done.data.group_by("a", "b", maintain_order=True).len()
        return (groups.select("a", "b") * groups["len"]).to_numpy()

    def moved(scale):
        return np.abs(sums(pair.before, scale) - sums(pair.after, scale)).sum() / (2 * 2)

    assert moved("public") <= 1
    assert moved("from-data") > 1.5


def test_bounds_from_the_data_are_seen_in_the_release():
    X = np.array([[0.2]] * 5 + [[0.8]])
    lowered = np.array([[0.2]] * 6)

    far, near = (
        release(Z, "laplace", added=50 * STEPS, columns=("a",), bounds="from-data")[0].data["a"]
        for Z in (X, lowered)
    )

    assert far.max() == pytest.approx(1.2)
    assert near.max() == pytest.approx(0.3)


# Claims and requirements.


def statuses(rules, rows=None):
    planned = shoal.plan(rules)
    setting = planned.setting if rows is None else replace_rows(planned.setting, rows)
    claims = planned.method.promises.claims(setting)
    return [c.status.value for c in claims if isinstance(c.guarantee, DifferentialPrivacy)]


def replace_rows(setting, rows):
    return type(setting)(
        setting.schema, setting.columns, setting.parameters, setting.release_form, rows
    )


@pytest.mark.parametrize(
    ("method", "form", "expected"),
    [
        ("laplace", "row-aligned", ["proved"]),
        ("laplace", "linked-shuffled", ["proved"]),
        ("ir-laplace", "column-shuffled", ["proved"]),
        ("ir-laplace", "linked-shuffled", ["refuted"]),
        ("ir-laplace", "row-aligned", ["refuted"]),
        ("mdav-laplace", "linked-shuffled", ["conditional", "refuted"]),
        ("mdav-laplace", "row-aligned", ["conditional", "refuted"]),
        ("ir-mdav-laplace", "column-shuffled", ["conditional"]),
        ("ir-mdav-laplace", "linked-shuffled", ["conditional", "refuted"]),
        ("stable-laplace", "linked-shuffled", ["conditional", "refuted"]),
        ("insensitive-laplace", "canonical", ["proved"]),
        ("insensitive-laplace", "linked-shuffled", ["proved"]),
        ("insensitive-laplace", "row-aligned", ["refuted"]),
    ],
)
def test_each_form_carries_the_claim_that_could_be_proved(method, form, expected):
    more = {} if method == "laplace" else {"k": 3}

    assert statuses(policy(method, release_form=form, **more)) == expected


def test_one_shuffled_column_of_ir_laplace_is_a_list_and_proved():
    rules = policy("ir-laplace", columns=("a",), k=3, release_form="linked-shuffled")

    assert statuses(rules) == ["proved"]


@pytest.mark.parametrize("method", ["mdav-laplace", "stable-laplace", "ir-mdav-laplace"])
@pytest.mark.parametrize(("rows", "status"), [(18, "refuted"), (20, "proved")])
def test_one_shuffled_column_is_a_list_whose_blocks_may_be_fixed(method, rows, status):
    rules = policy(method, columns=("a",), k=4, release_form="linked-shuffled")

    assert statuses(rules, rows) == [status]


def test_a_scale_from_the_data_is_harmless_where_it_changes_no_order():
    one = policy("insensitive-laplace", columns=("a",), k=3, scale="from-data")
    sorted_first = policy("insensitive-laplace", k=3, scale="from-data", order="lexicographic")

    assert statuses(one) == statuses(sorted_first) == ["proved"]


def test_bounds_from_the_data_matter_only_where_there_are_bounds():
    rules = policy("laplace", bounds="from-data")
    for name in ("a", "b"):
        rules["columns"][name] = {
            "role": "quasi-identifier", "kind": "nominal", "categories": ["x", "y"],
        }  # fmt: skip

    assert statuses(rules) == ["proved"]


@pytest.mark.parametrize(("rows", "status"), [(18, "refuted"), (20, "proved"), (22, "proved")])
def test_ir_mdav_is_proved_or_refuted_once_the_number_of_rows_is_known(rows, status):
    rules = policy("ir-mdav-laplace", k=4, release_form="column-shuffled")

    assert statuses(rules, rows) == [status]


def test_insensitive_with_a_scale_from_the_data_is_refuted():
    assert statuses(policy("insensitive-laplace", k=3, scale="from-data")) == ["refuted"]


@pytest.mark.parametrize("method", ["ir-laplace", "ir-mdav-laplace"])
def test_a_method_with_one_proved_form_makes_the_steward_choose(method):
    with pytest.raises(
        InputError, match=r"choose one under \[protect\] with release_form: column-shuffled"
    ):
        shoal.plan(policy(method, k=3))


def test_a_required_epsilon_names_the_nearest_that_can_give_it():
    rules = policy("mdav-laplace", k=3) | {"require": {"differential-privacy": 1.0}}

    with pytest.raises(ClaimViolationError) as stopped:
        shoal.plan(rules)

    assert "its claim is conditional" in str(stopped.value)
    assert "These methods can promise it: auto, laplace, ir-laplace (column-shuffled)" in str(
        stopped.value
    )

    other_form = policy("ir-laplace", k=3, release_form="row-aligned")
    nearest = r"These methods can promise it: ir-laplace \(column-shuffled\)"
    with pytest.raises(ClaimViolationError, match=nearest):
        shoal.plan(other_form | {"require": {"differential-privacy": 1.0}})

    enough = policy("laplace") | {"require": {"differential-privacy": 1.0}}
    assert shoal.plan(enough).claims[0].status is Status.PROVED
    with pytest.raises(ClaimViolationError, match="it promises 1-differential privacy"):
        shoal.plan(enough | {"require": {"differential-privacy": 0.5}})


def test_public_columns_beside_groups_are_refused_but_by_public_laplace():
    rules = policy("mdav-laplace", k=3)
    rules["columns"]["c"] = {"role": "other", "kind": "numeric", "public": True}

    with pytest.raises(InputError, match="'c': beside the groups, public values would show"):
        shoal.plan(rules)

    rules["protect"]["method"] = "public-laplace"
    claim = shoal.plan(rules).claims[0]
    assert claim.status is Status.PROVED
    assert "who is in the table" in claim.guarantee.invariants
    assert claim.guarantee.protects == ("a", "b")


def test_public_groups_do_not_look_at_protected_columns_even_to_break_ties():
    """All public cells are equal, so that ties decide; a protected cell changes."""
    rules = policy("public-laplace", k=3)
    rules["columns"]["c"] = {"role": "other", "kind": "numeric", "public": True}
    X = np.column_stack([RAMP, np.ones(12)])
    Y = X.copy()
    Y[5, :2] = [0.0, 0.0]

    one, other = (
        shoal.protect(frame(Z, ("a", "b", "c")), rules, noise=RecordingNoise()).data for Z in (X, Y)
    )

    changed = (one.to_numpy() != other.to_numpy()).any(axis=1)
    assert 1 <= changed.sum() <= 5  # one group of three to five


GROUP = {"role": "other", "kind": "nominal", "public": True}


def by_groups(**protect):
    rules = policy("public-laplace", group_by="c", **protect)
    rules["columns"]["c"] = GROUP
    return rules


@given(st.lists(st.sampled_from("xyz"), min_size=1, max_size=30), st.integers(0, 99))
def test_records_that_agree_on_public_columns_are_a_group_of_any_size(labels, seed):
    """With no noise each has its group's means; with noise the scale is that of its own size."""
    X = np.random.default_rng(seed).random((len(labels), 2)).round(3)
    table = frame(X, ("a", "b")).with_columns(c=pl.Series(labels))

    exact = shoal.protect(table, by_groups(), noise=RecordingNoise(), keep_order=True)
    noise = SeededNoise(seed)
    noisy = shoal.protect(table, by_groups(), noise=noise, keep_order=True)

    means = table.with_columns(pl.col("a", "b").mean().over("c"))
    assert exact.data["a"].to_numpy() == pytest.approx(means["a"].to_numpy(), abs=1e-4)
    assert exact.data["c"].to_list() == labels
    assert noisy.data.select("a", "b", "c").n_unique() <= len(set(labels))
    assert sum(loss.draws for loss in noisy.privacy_losses) == 2 * len(set(labels))
    accounting.verify(
        noisy.privacy_losses, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


def test_a_partition_carries_the_claim_that_its_origin_allows():
    """Public columns are known to all; an array is the word of the one who formed it."""
    public, own = (
        shoal.plan(by_groups(own_groups=mine, release_form="linked-shuffled")).claims[0]
        for mine in (False, True)
    )

    assert (public.status, own.status) == (Status.PROVED, Status.CONDITIONAL)
    assert "the groups of c were formed without the protected columns" in own.assumes
    assert not [text for text in (*public.assumes, *own.assumes) if "order of the rows" in text]
    assert shoal.plan(by_groups() | {"require": {"differential-privacy": 1}})
    with pytest.raises(ClaimViolationError, match="its claim is conditional"):
        shoal.plan(by_groups(own_groups=True) | {"require": {"differential-privacy": 1}})


@pytest.mark.parametrize(("protect", "sentence"), [
    ({"k": 3}, "expected either k, for groups of similar records, or group_by"),
    ({"group_by": "a"}, "group_by: expected columns with public = true and a kind .*, found 'a'"),
    ({"group_by": "zone"}, "found 'zone'"),
])  # fmt: skip
def test_groups_are_of_k_or_of_public_columns(protect, sentence):
    rules = by_groups()
    rules["protect"] |= protect
    with pytest.raises(InputError, match=sentence):
        shoal.plan(rules)
    del rules["protect"]["group_by"]
    rules["protect"] |= {"k": 3, "own_groups": True}
    with pytest.raises(InputError, match="expected group_by beside own_groups"):
        shoal.plan(rules)


def test_marginals_say_that_no_row_is_a_person():
    done, _ = release(RAMP, "ir-laplace", k=3, release_form="column-shuffled")

    assert any("no joint information" in note for note in done.manifest.notes)


@pytest.mark.parametrize("method", ["mdav-laplace", "stable-laplace"])
def test_one_nominal_column_has_no_block_means_and_so_no_proof(method):
    """Tables aabbbbbcc and aabbbbbbc at k=3 and epsilon 2 differ by 3.1 in log probability."""
    rules = policy(method, columns=("a",), k=3, release_form="linked-shuffled")
    rules["columns"]["a"] = {
        "role": "quasi-identifier", "kind": "nominal", "categories": ["a", "b", "c"],
    }  # fmt: skip

    assert statuses(rules, 9) == ["conditional", "refuted"]


@pytest.mark.parametrize("method", ["ir-laplace", "mdav-laplace", "stable-laplace"])
def test_one_column_in_the_order_of_the_file_is_no_list(method):
    """Which rows are equal shows who shares a block."""
    rules = policy(method, columns=("a",), k=4, release_form="row-aligned")

    assert "proved" not in statuses(rules, 20)


@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form)
        for name in ("laplace", "ir-laplace", "mdav-laplace", "ir-mdav-laplace",
                     "insensitive-laplace", "stable-laplace")
        for form in REGISTRY[name].forms.offered
    ],
)  # fmt: skip
def test_a_column_of_one_declared_category_is_released_as_that(name, form, kind):
    """The grid of one category is as wide as that of two, and noise can reach its other end."""
    rules = {
        "version": 1,
        "columns": {
            "a": {"role": "quasi-identifier", "kind": kind, "categories": ["x"]},
            "b": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 10]},
        },
        "protect": {
            "method": name,
            **REGISTRY[name].example.parameters,
            "release_form": form.value,
        },
    }
    frame = pl.DataFrame({"a": ["x"] * 40, "b": [i % 10 for i in range(40)]})

    for seed in range(3):
        assert (
            shoal.protect(frame, rules, noise=SeededNoise(seed)).data["a"].to_list() == ["x"] * 40
        )


TREE = "far,x,y,all\nnear,p,all\nalone,all\nmid,p,all\n"
"""Marginality: far 5 + 4 + 5 = 14; near, alone and mid 10 each, in the order of the file."""
CENTRAL_FIRST = ["near", "alone", "mid", "far"]


def ranked_policy(tmp_path, order, **protect):
    (tmp_path / "tree.csv").write_text(TREE, "utf-8")
    rules = policy("ir-laplace", ("c",), k=2, release_form="row-aligned", **protect)
    quasi = {"role": "quasi-identifier", "kind": "nominal"}
    rules["columns"]["c"] = {**quasi, "hierarchy": str(tmp_path / "tree.csv")}
    rules["protect"]["nominal_order"] = order
    return rules


@pytest.mark.parametrize(
    ("order", "places"),
    [("declared", ["far", "near", "alone", "mid"]), ("marginality", CENTRAL_FIRST)],
)
def test_ir_laplace_ranks_a_nominal_in_a_public_order(tmp_path, order, places):
    cells = ["far", "mid", "far", "near", "alone", "far", "mid", "far", "far"]
    rules = ranked_policy(tmp_path, order)

    done = shoal.protect(pl.DataFrame({"c": cells}), rules, noise=RecordingNoise())

    ranks = np.array([places.index(cell) for cell in cells])
    groups = individual_ranking(np.sort(ranks), 2).labels
    means = np.bincount(groups, np.sort(ranks)) / np.bincount(groups)
    exact = sorted(places[int(np.rint(means[g]))] for g in groups)
    assert sorted(done.data["c"].to_list()) == exact


@given(st.lists(st.sampled_from(CENTRAL_FIRST), min_size=4, max_size=30), st.data())
def test_block_sums_of_public_places_move_by_at_most_the_number_of_categories_less_one(cells, data):
    """Lemma 1 for a nominal: the order sees no record, so that one place changes and no other."""
    tree = Hierarchy(tuple(tuple(line.split(",")) for line in TREE.split()))
    schema = Schema((Column("c", Role.QUASI_IDENTIFIER, Kind.NOMINAL, hierarchy=tree),))
    changed = [*cells]
    changed[data.draw(st.integers(0, len(cells) - 1))] = data.draw(st.sampled_from(CENTRAL_FIRST))

    def units(cells):
        table = validate.validate(pl.DataFrame({"c": cells}), schema)
        return put_on_grid(table, "c", ranked=NominalOrder.MARGINALITY).units

    one, other = units(cells), units(changed)

    assert (one == np.rint([STEPS * CENTRAL_FIRST.index(cell) / 3 for cell in cells])).all()
    assert np.count_nonzero(one != other) <= 1
    for k in (2, 3):
        moved = block_sums(one, k) - block_sums(other, k)
        assert np.abs(moved).sum() <= STEPS


def test_the_order_by_marginality_is_proved_as_a_list_and_its_basis_names_the_hierarchy(tmp_path):
    rules = ranked_policy(tmp_path, "marginality")
    assert shoal.plan(rules).claims[0].status is Status.REFUTED

    rules["protect"]["release_form"] = "column-shuffled"
    (claim,) = shoal.plan(rules).claims

    assert claim.status is Status.PROVED
    assert claim.basis.endswith("the order of the categories depends on the hierarchy alone")
