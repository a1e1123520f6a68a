import csv
import math
import os
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import Distance, Diversity, Hierarchy, LDiversity, TCloseness
from shoal.errors import InputError
from shoal.partition import CutColumn, Requirement, hierarchy_order, mondrian, mondrian_tree, unmet
from shoal.partition.requirement import below
from shoal.privacy_models import Counts, verdict

PATHS = (
    ("a", "p", "r", "x"),
    ("b", "x"),
    ("c", "p", "r", "x"),
    ("d", "r", "x"),
    ("e", "q", "x"),
)
EDGES = Hierarchy(PATHS).edges()
THRESHOLDS = {
    Distance.EQUAL: ["0", "1/10", "1/4", "1/3", "1/2", "1"],
    Distance.VARIATION: ["1/5", "3/10"],
    Distance.ORDERED: ["0", "1/10", "1/7", "1/4"],
    Distance.HIERARCHICAL: ["1/10", "1/5", "1/3"],
    Distance.RATIO: ["1", "3/2", "2", "5", "31415926535/10000000000"],
}


def diverse(l, kind, c=None):  # noqa: E741
    return LDiversity(Fraction(l), kind, ("ill",), ("age",), c and Fraction(c))


def close(t, distance):
    return TCloseness(Fraction(t), distance, ("ill",), ("age",))


models = st.one_of(
    st.builds(
        diverse,
        st.sampled_from(["1", "3/2", "2", "3"]),
        st.sampled_from([Diversity.DISTINCT, Diversity.ENTROPY, Diversity.FREQUENCY]),
    ),
    st.builds(
        diverse,
        st.integers(1, 3),
        st.just(Diversity.RECURSIVE),
        st.sampled_from(["1/2", "1", "10/3", "3"]),
    ),
    st.sampled_from([close(t, d) for d, ts in THRESHOLDS.items() for t in ts]),
)


@st.composite
def tables(draw, least=2, most=90):
    """Tables with ties, skew and a code for missing cells, and confidential codes."""
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, draw(st.integers(1, 3))))
    match draw(st.sampled_from(["distinct", "ties", "skew"])):
        case "ties":
            X = np.round(X)
        case "skew":
            X = np.floor(np.exp(2 * X))
    X[rng.random(X.shape) < draw(st.sampled_from([0, 0.1]))] = -9.0
    values = draw(st.integers(1, 5))
    weights = rng.random(values) ** draw(st.sampled_from([0, 3])) + 1e-3
    return X, rng.choice(values, size=n, p=weights / weights.sum())


def naive_holds(guarantee, own, whole):  # noqa: PLR0911  # one definition after the other
    """Decide a guarantee for a class by its definition, in fractions."""
    n, everybody = own.total(), whole.total()
    ranked = sorted(own.values(), reverse=True)
    if isinstance(guarantee, LDiversity):
        match guarantee.kind:
            case Diversity.DISTINCT:
                return len(own) >= guarantee.l
            case Diversity.FREQUENCY:
                return Fraction(ranked[0], n) <= 1 / guarantee.l
            case Diversity.RECURSIVE:
                last = ranked[math.ceil(guarantee.l) - 1 :]
                return guarantee.l <= 1 or ranked[0] < guarantee.c * sum(last)
            case Diversity.ENTROPY:
                power = Fraction(n**n, math.prod(c**c for c in own.values()))
                return power >= guarantee.l**n
    shift = [Fraction(own[v], n) - Fraction(whole[v], everybody) for v in range(5)]
    match guarantee.distance:
        case Distance.EQUAL | Distance.VARIATION:
            return sum(map(abs, shift)) / 2 <= guarantee.t
        case Distance.ORDERED:
            return sum(abs(sum(shift[: v + 1])) for v in range(4)) / 4 <= guarantee.t
        case Distance.RATIO:
            pairs = [(Fraction(own[v], n), Fraction(whole[v], everybody)) for v in whole]
            return all(p and p / q <= guarantee.t and q / p <= guarantee.t for p, q in pairs)
    # Heights of the nodes above each value, and differences below each node.
    height = {"p": 1, "q": 1, "r": 2, "x": 3}
    cost = Fraction(0)
    nodes = {node: parent for path in PATHS for node, parent in pairwise(path)}
    for node, parent in nodes.items():
        extra = sum(shift[v] for v, path in enumerate(PATHS) if node in path)
        cost += abs(extra) * (height[parent] - height.get(node, 0))
    return cost / 6 <= guarantee.t


def twin(X, k, codes, guarantees, *, relaxed=False, max_height=10**6, halt=None):
    """Mondrian as the docstring has it, on lists; leaves from low to high."""
    span = [
        Fraction(*x.max().as_integer_ratio()) - Fraction(*x.min().as_integer_ratio()) for x in X.T
    ]
    whole = Counter(codes.tolist())

    def fine(rows):
        own = Counter(codes[rows].tolist())
        return len(rows) >= k and all(naive_holds(g, own, whole) for g in guarantees)

    def cuts(rows, j):
        ranked = sorted(rows, key=lambda i: (X[i, j], i))
        half = len(rows) // 2
        if relaxed:
            return [half], ranked
        middle = X[ranked[half], j]
        places = {sum(X[i, j] < middle for i in rows), sum(X[i, j] <= middle for i in rows)}
        places -= {0, len(rows)}
        return sorted(places, key=lambda p: (-min(p, len(rows) - p), p)), ranked

    def leaves(rows, depth):
        widths = [
            (X[rows, j].max() - X[rows, j].min()) / float(span[j]) if span[j] else 0.0
            for j in range(X.shape[1])
        ]
        beyond = halt and not naive_holds(halt, Counter(codes[rows].tolist()), whole)
        if depth < max_height and not beyond:
            for j in sorted(range(X.shape[1]), key=lambda j: (-widths[j], j)):
                places, ranked = cuts(rows, j) if widths[j] else ([], [])
                for place in places:
                    low, high = sorted(ranked[:place]), sorted(ranked[place:])
                    if fine(low) and fine(high):
                        return leaves(low, depth + 1) + leaves(high, depth + 1)
        return [rows]

    return leaves(list(range(len(X))), 0)


@settings(max_examples=150)
@given(tables(), st.lists(models, max_size=3))
def test_a_requirement_is_unmet_where_no_grouping_is_made(table, guarantees):
    X, ill = table
    wanted = [Requirement(guarantee, ill, 5, EDGES) for guarantee in guarantees]
    whole = Counter(ill.tolist())

    missed = unmet(wanted)

    # Closeness to itself is always met, and what is unmet is the first that is.
    fails = [own for own in wanted if not naive_holds(own.guarantee, whole, whole)]
    assert missed is (fails[0] if fails else None)
    if missed is not None:
        with pytest.raises(InputError, match="because even the whole table as one group does not"):
            mondrian(X, 2, require=wanted)


@settings(max_examples=300, deadline=None)
@given(
    tables(),
    st.integers(2, 6),
    st.lists(models, max_size=2),
    st.booleans(),
    st.sampled_from([None, 0, 2, 5]),
)
def test_nodes_are_cut_as_defined_and_every_leaf_meets_what_is_required(
    table, k, guarantees, relaxed, max_height
):
    X, codes = table
    k = min(k, len(X))
    require = [Requirement(g, codes, width=5, edges=EDGES) for g in guarantees]
    whole = Counter(codes.tolist())
    missed = [g for g in guarantees if not naive_holds(g, whole, whole)]

    if missed:
        with pytest.raises(InputError, match="because even the whole table as one group does not"):
            mondrian(X, k, require=require, relaxed=relaxed)
        return
    tree = mondrian_tree(X, k, require=require, relaxed=relaxed, max_height=max_height)

    height = 10**6 if max_height is None else max_height
    expected = twin(X, k, codes, guarantees, relaxed=relaxed, max_height=height)
    leaves = [
        np.flatnonzero(tree.partition.labels == e).tolist() for e in range(len(tree.partition))
    ]
    assert leaves == expected
    assert tree.partition.sizes.min() >= k
    assert tree.depth.max(initial=0) <= height
    for guarantee, own in product(guarantees, leaves):
        assert naive_holds(guarantee, Counter(codes[own].tolist()), whole)
    for guarantee in guarantees:
        counts = Counts.of(tree.partition.labels, codes, width=5)
        assert verdict(counts, guarantee, edges=EDGES).holds


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(2, 6), st.booleans())
def test_boxes_are_those_of_their_records_and_cells_cover_space_once(table, k, relaxed):
    X, _ = table
    tree = mondrian_tree(X, min(k, len(X)), relaxed=relaxed)

    for e in range(len(tree.partition)):
        own = X[tree.partition.labels == e]
        np.testing.assert_array_equal(tree.lower[e], own.min(axis=0))
        np.testing.assert_array_equal(tree.upper[e], own.max(axis=0))
    if relaxed:
        return
    places = np.vstack([X, X + 0.25, np.nextafter(X, -np.inf), [[1e9] * X.shape[1]]])
    inside = (places[:, None] > tree.above).all(axis=2) & (places[:, None] <= tree.upto).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(inside[: len(X)].argmax(axis=1), tree.partition.labels)
    for one, other in product(range(len(tree.partition)), repeat=2):
        apart = (tree.upper[one] < tree.lower[other]) | (tree.upper[other] < tree.lower[one])
        assert one == other or apart.any()


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(2, 5), st.sampled_from(list(CutColumn)), st.lists(models, max_size=1))
def test_every_choice_of_column_gives_groups_that_meet_what_is_required(
    table, k, choice, guarantees
):
    X, codes = table
    k = min(k, len(X))
    whole = Counter(codes.tolist())
    guarantees = [g for g in guarantees if naive_holds(g, whole, whole)]
    target = codes if choice is CutColumn.GAIN else None
    require = [Requirement(g, codes, width=5, edges=EDGES) for g in guarantees]

    tree = mondrian_tree(X, k, require=require, choice=choice, target=target)

    for e in range(len(tree.partition)):
        rows = tree.partition.labels == e
        assert rows.sum() >= k
        assert all(naive_holds(g, Counter(codes[rows].tolist()), whole) for g in guarantees)
        np.testing.assert_array_equal(tree.lower[e], X[rows].min(axis=0))
        np.testing.assert_array_equal(tree.upper[e], X[rows].max(axis=0))
        assert ((X[rows] > tree.above[e]) & (X[rows] <= tree.upto[e])).all()
    _, where = np.unique(X, axis=0, return_inverse=True)
    assert len({*zip(where.ravel(), tree.partition.labels, strict=True)}) == where.max() + 1


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(2, 5), st.sampled_from(["1/10", "1/4", "1/2"]))
def test_the_rule_of_cormode2013_ends_branches_beyond_t_and_no_more(table, k, t):
    X, codes = table
    k = min(k, len(X))
    halt = Requirement(close(t, Distance.EQUAL), codes, width=5)

    labels = mondrian(X, k, halt=halt).labels

    expected = twin(X, k, codes, [], halt=halt.guarantee)
    assert [np.flatnonzero(labels == e).tolist() for e in range(labels.max() + 1)] == expected


def test_the_rule_of_cormode2013_does_not_give_t_closeness():
    X = np.arange(32.0)[:, None]
    codes = (np.arange(32) >= 16).astype(int)
    wanted = close("1/4", Distance.EQUAL)

    halted = mondrian(X, 8, halt=Requirement(wanted, codes))
    steered = mondrian(X, 8, require=[Requirement(wanted, codes)])

    found = verdict(Counts.of(halted.labels, codes), wanted)
    assert (len(halted), found.achieved) == (2, Fraction(1, 2))
    assert len(steered) == 1


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(2, 4), st.integers(0, 2**32))
def test_leaves_have_k_persons_where_units_are_given(table, k, seed):
    X, _ = table
    k = min(k, len(X))
    units = np.random.default_rng(seed).integers(0, max(len(X) // 2, 1), size=len(X))
    if len(set(units.tolist())) < k:
        with pytest.raises(InputError, match=f"Cannot form one group of k={k} persons from"):
            mondrian(X, k, units=units)
        return

    labels = mondrian(X, k, units=units).labels

    assert Counts.of(labels, np.zeros_like(labels), units=units).persons.min() >= k


@settings(max_examples=100, deadline=None)
@given(st.integers(4, 80), st.integers(0, 2**32), st.booleans(), st.integers(2, 4))
def test_nominal_columns_are_cut_between_children_of_their_lowest_node(n, seed, by_entropy, k):
    rng = np.random.default_rng(seed)
    order, heights = hierarchy_order(EDGES)
    leaf = rng.integers(0, 5, size=n)
    X = np.argsort(order)[leaf][:, None].astype(float)
    choice = CutColumn.ENTROPY if by_entropy else CutColumn.RANGE

    labels = mondrian(X, k, borders={0: heights}, choice=choice).labels

    def leaves(codes):
        """Naive recursion over codes, on counts of records a code."""
        rows = [c for c in range(5) for _ in range(codes.get(c, 0))]
        held = sorted(codes)
        gaps = [max(heights[a:b]) for a, b in pairwise(held)]
        places = []
        for a, gap in enumerate(gaps):
            low = sum(codes[c] for c in held[: a + 1])
            if gap == max(gaps):
                places.append((low, a + 1))
        half = len(rows) // 2
        nearest = [p for p in places if p[0] <= half][-1:] + [p for p in places if p[0] > half][:1]
        for low, a in sorted(nearest, key=lambda p: -min(p[0], len(rows) - p[0])):
            if min(low, len(rows) - low) >= k:
                left, right = ({c: codes[c] for c in part} for part in (held[:a], held[a:]))
                return leaves(left) + leaves(right)
        return [set(held)]

    expected = leaves(Counter(X[:, 0].astype(int).tolist()))
    found = [set(X[labels == e, 0].astype(int).tolist()) for e in range(labels.max() + 1)]
    assert found == expected


def test_a_hierarchy_is_ordered_so_that_nodes_are_runs():
    order, heights = hierarchy_order(EDGES)

    # a and c below p and, with d, below r; then b and e, below the root alone or by q.
    assert order.tolist() == [0, 2, 3, 1, 4]
    assert heights.tolist() == [1, 2, 3, 3]


def test_information_gain_cuts_the_column_that_tells():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.permutation(100), np.arange(100)]).astype(float)
    target = (np.arange(100) >= 50).astype(int)

    tree = mondrian_tree(X, 50, choice=CutColumn.GAIN, target=target)

    np.testing.assert_array_equal(tree.partition.labels, target)
    np.testing.assert_array_equal(tree.upto[0], [np.inf, 49])


def test_entropy_cuts_the_column_with_most_even_values():
    X = np.column_stack([[0] * 7 + [100], [1, 1, 2, 2, 3, 3, 4, 4]]).astype(float)

    assert mondrian(X, 4).labels.tolist() == [0] * 4 + [1] * 4
    by_entropy = mondrian_tree(X, 2, choice=CutColumn.ENTROPY, max_height=1)
    np.testing.assert_array_equal(by_entropy.upto[0], [np.inf, 2])


def test_columns_equally_wide_are_cut_by_the_lowest():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)

    assert mondrian(X, 2).labels.tolist() == [0, 0, 1, 1]
    assert mondrian(X, 2, relaxed=True).labels.tolist() == [0, 0, 1, 1]


def test_relaxed_cuts_part_equal_values_by_the_lowest_index():
    X = np.array([1.0, 1, 1, 1, 1, 2])[:, None]

    tree = mondrian_tree(X, 3, relaxed=True)

    assert tree.partition.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert tree.lower.ravel().tolist() == [1, 1]
    assert len(mondrian(X, 3)) == 1


def test_other_columns_are_tried_before_a_node_is_closed():
    X = np.column_stack([[0, 0, 0, 0, 0, 9], [0, 0, 0, 1, 1, 1]]).astype(float)

    assert mondrian(X, 3).labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_k_of_all_records_and_one_confidential_value_leave_what_they_allow():
    X = np.arange(12.0)[:, None]
    same = np.zeros(12, int)

    assert len(mondrian(X, 12)) == 1
    for distance in Distance:
        wanted = close(1 if distance is Distance.RATIO else 0, distance)
        require = [Requirement(wanted, same, edges=np.array([[0]]))]
        assert mondrian(X, 3, require=require).sizes.tolist() == [3] * 4


def test_closeness_of_zero_and_ratio_one_keep_the_distribution_exactly():
    X = np.arange(16.0)[:, None]
    codes = np.tile([0, 0, 1, 2], 4)

    for wanted in (close(0, Distance.EQUAL), close(0, Distance.ORDERED), close(1, Distance.RATIO)):
        assert mondrian(X, 2, require=[Requirement(wanted, codes)]).sizes.tolist() == [4] * 4


def test_the_input_is_left_as_it_is_and_one_column_is_no_exception():
    for d in (1, 2):
        X = np.ascontiguousarray(np.random.default_rng(3).normal(size=(50, d)))
        before = X.copy()

        mondrian(X, 2)
        mondrian(X, 2, choice=CutColumn.ENTROPY)

        np.testing.assert_array_equal(X, before)


def test_numbers_of_any_magnitude_are_cut():
    X = np.array([[-1e308, 0], [1e308, 0], [-1e308, 5e-324], [1e308, 5e-324]])

    assert mondrian(X, 2).labels.tolist() == [0, 1, 0, 1]


def test_one_record_is_no_group():
    with pytest.raises(InputError) as refusal:
        mondrian([[1.0]], 2)

    assert str(refusal.value) == "Cannot form one group of k=2 from 1 record."


def test_adversarial_orders_are_cut_like_any_other():
    n = 3000
    organ = np.concatenate([np.arange(n // 2), np.arange(n // 2)[::-1]]).astype(float)
    for x in (np.arange(n), np.arange(n)[::-1], organ, np.arange(n) % 7):
        labels = mondrian(x[:, None].astype(float), 100).labels

        assert [
            rows.tolist() for rows in (np.flatnonzero(labels == e) for e in range(labels.max() + 1))
        ] == twin(x[:, None].astype(float), 100, np.zeros(n, int), [])


@given(st.fractions(min_value=-2, max_value=2, max_denominator=10**6), st.integers(1, 40))
def test_thresholds_are_rounded_down_to_a_fraction_that_decides_alike(x, most):
    found = below(x, most)

    best = max(Fraction(math.floor(x * q), q) for q in range(1, most + 1))
    assert found == best


def adult_matrix(adult, numeric, nominal):
    numbers = [adult[name].astype(float) for name in numeric]
    codes = [np.unique(adult[name], return_inverse=True)[1] for name in nominal]
    return np.column_stack([*numbers, *codes]).astype(float)


@pytest.mark.data
def test_adult_has_no_fewer_classes_than_anonypy(adult):
    X = adult_matrix(adult, ["age", "hours-per-week", "education-num"], ["workclass", "sex"])

    tree = mondrian_tree(X, 5)

    assert len(tree.partition) >= 2350
    assert tree.partition.sizes.min() >= 5
    rows = {*map(tuple, X)}
    assert len({*zip(map(tuple, X), tree.partition.labels, strict=True)}) == len(rows)


@pytest.mark.data
def test_the_frequency_kind_leaves_adult_whole_from_l_of_6_on_as_cormode2013_has_it(adult):
    """Section III: "when l >= 6 for Adult ... the tree does not split beyond the root level"."""
    X = adult_matrix(adult, ["hours-per-week"], ["workclass", "education", "sex", "income"])
    ill = np.unique(adult["occupation"], return_inverse=True)[1]

    def classes(l, kind):  # noqa: E741
        return len(mondrian(X, 2, require=[Requirement(diverse(l, kind), ill)]))

    assert classes(5, Diversity.FREQUENCY) > 1
    assert classes(6, Diversity.FREQUENCY) == 1
    assert classes(6, Diversity.DISTINCT) > 1
    assert classes(6, Diversity.ENTROPY) > 1


@pytest.fixture(scope="session")
def adult():
    places = [os.environ.get("SHOAL_DATA", ""), Path(__file__).parents[3] / "shared" / "data"]
    files = [Path(place) / "adult.csv" for place in places if place]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        pytest.skip("adult.csv is not here: set SHOAL_DATA to the folder that holds it")
    with found.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"k": 1},
            (
                "The smallest group size k must be at least 2, because a group of one hides "
                "nobody; found 1."
            ),
        ),
        ({"k": 11}, "Cannot form one group of k=11 from 10 records."),
        (
            {"choice": "gain"},
            (
                "The argument target, the class of each record, must be given if "
                "and only if choice = 'gain'."
            ),
        ),
        (
            {"target": [0] * 10},
            (
                "The argument target, the class of each record, must be given "
                "if and only if choice = 'gain'."
            ),
        ),
        (
            {"max_height": -1},
            (
                "The argument max_height, the largest number of cuts above a "
                "group, must be at least 0; found -1."
            ),
        ),
        (
            {"units": [0, 1]},
            "The argument units must have one entry for each of 10 records; found 2.",
        ),
        ({"units": [0] * 10}, "Cannot form one group of k=2 persons from 1."),
        (
            {"borders": {1: [1]}},
            "The argument borders names column 1; expected one below 1, the number of columns.",
        ),
        ({"borders": {0: [1, 1]}}, "A column with 2 borders must hold codes from 0 to 2."),
        (
            {"require": [Requirement(diverse(3, Diversity.DISTINCT), np.arange(10) % 2)]},
            (
                "No grouping meets distinct 3-diversity of ill given age, because even the "
                "whole table as one group does not."
            ),
        ),
        (
            {"require": [Requirement(diverse(2, Diversity.ENTROPY), np.arange(10) // 9)]},
            (
                "No grouping meets entropy 2-diversity of ill given age, because even the whole "
                "table as one group does not."
            ),
        ),
        (
            {"require": [Requirement(diverse(2, Diversity.DISTINCT), np.arange(9))]},
            "The argument codes must have one entry for each of 10 records; found 9.",
        ),
    ],
)
def test_what_cannot_be_cut_is_refused(options, message):
    with pytest.raises(InputError) as refusal:
        mondrian(np.arange(10.0)[:, None], **{"k": 2, **options})

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (
            lambda: Requirement(close(1, Distance.EQUAL), np.array([0.5])),
            "The argument codes must be a one-dimensional array of whole numbers.",
        ),
        (
            lambda: Requirement(close(1, Distance.EQUAL), np.array([-1])),
            "The argument codes must not have negative numbers.",
        ),
        (
            lambda: Requirement(close(1, Distance.EQUAL), np.array([3]), width=3),
            (
                "The argument width, the number of different values, must be at least 4, to cover "
                "all values that occur; found 3."
            ),
        ),
        (
            lambda: Requirement(close(1, Distance.HIERARCHICAL), np.array([1])),
            (
                "A hierarchical distance needs the edges of the hierarchy, with one row for "
                "each of its 2 values."
            ),
        ),
        (
            lambda: mondrian(
                np.zeros((2, 1)),
                2,
                require=[Requirement(close(1, Distance.ORDERED), np.array([0, 1]), width=2**61)],
            ),
            (
                f"A distance over {2**61} values and 2 records is too large to be computed "
                "exactly; use fewer values."
            ),
        ),
    ],
)
def test_requirements_that_cannot_be_are_refused(attempt, message):
    with pytest.raises(InputError) as refusal:
        attempt()

    assert str(refusal.value) == message


def test_a_root_whose_entropy_is_exactly_log_l_is_no_failure():
    # 8^8 = 4^8 4^4: four ones and a four have an entropy of exactly two bits.
    codes = np.array([0, 0, 0, 0, 1, 2, 3, 4])
    X = np.arange(8.0)[:, None]

    assert len(mondrian(X, 2, require=[Requirement(diverse(4, Diversity.ENTROPY), codes)])) == 1
    with pytest.raises(InputError, match="because even the whole table as one group does not"):
        mondrian(X, 2, require=[Requirement(diverse("4.0000001", Diversity.ENTROPY), codes)])


def test_a_node_of_a_larger_table_is_cut_as_the_whole_table_would_cut_it():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, 60, 400), rng.normal(size=400)])
    codes = rng.integers(0, 3, 400)
    close = TCloseness(Fraction(3, 10), Distance.EQUAL, (), ())
    tree = mondrian_tree(X, 4, require=[Requirement(close, codes)])
    top = mondrian_tree(X, 4, require=[Requirement(close, codes)], max_height=2)

    whole, totals = np.vstack([X.min(axis=0), X.max(axis=0)]), np.bincount(codes, minlength=3)
    parts = []
    for node in range(len(top.partition)):
        rows = np.flatnonzero(top.partition.labels == node)
        own = Requirement(close, codes[rows], 3, totals=totals)
        below = mondrian_tree(X[rows], 4, require=[own], whole=whole)
        parts += [set(rows[below.partition.labels == g].tolist()) for g in range(len(below.depth))]

    leaves = [
        set(np.flatnonzero(tree.partition.labels == g).tolist()) for g in range(len(tree.depth))
    ]
    assert sorted(map(sorted, parts)) == sorted(map(sorted, leaves))


def test_a_whole_that_does_not_hold_the_node_is_refused():
    close = TCloseness(Fraction(1, 2), Distance.EQUAL, (), ())
    X = np.arange(8.0)[:, None]

    with pytest.raises(InputError, match="two ends for each column"):
        mondrian_tree(X, 2, whole=[[0.0], [6.0]])
    with pytest.raises(InputError, match="at least as often"):
        Requirement(close, np.zeros(8, np.int64), 2, totals=np.array([7, 9]))
    with pytest.raises(InputError, match="same whole table"):
        mondrian_tree(X, 2, require=[
            Requirement(close, np.zeros(8, np.int64), 1, totals=np.array([9])),
            Requirement(close, np.zeros(8, np.int64), 1),
        ])  # fmt: skip
