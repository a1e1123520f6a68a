import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from shoal.core import Distance, Diversity, Hierarchy, KAnonymity, LDiversity, TCloseness
from shoal.errors import InputError
from shoal.privacy_models import (
    Counts,
    decide,
    k_anonymity,
    k_when_missing_matches,
    l_diversity,
    t_closeness,
    verdict,
)
from shoal.privacy_models.exact_comparison import _sign

cells = st.lists(st.integers(-1, 2), min_size=3, max_size=3)


@given(st.lists(cells, min_size=1, max_size=25))
def test_matching_with_wildcards_equals_the_count_of_pairs(rows):
    classes, counts = np.unique(np.array(rows), axis=0, return_counts=True)

    def match(one, other):
        return all(a == b or a < 0 or b < 0 for a, b in zip(one, other, strict=True))

    brute = min(sum(match(one, other) for other in rows) for one in rows)
    assert k_when_missing_matches(classes, counts) == brute


def exact_figures(rows, model, c=None, order=None, tree=None):
    """Figure of every class by the definitions, in fractions; None for no distance at all."""
    whole = Counter(value for _, value in rows)
    n = sum(whole.values())
    figures = {}
    for label in sorted({label for label, _ in rows}):
        own = Counter(value for which, value in rows if which == label)
        size = sum(own.values())
        ranked = sorted(own.values(), reverse=True)
        shift = {v: Fraction(own[v], size) - Fraction(whole[v], n) for v in whole}
        match model:
            case "k":
                figures[label] = size
            case Diversity.DISTINCT:
                figures[label] = len(own)
            case Diversity.FREQUENCY:
                figures[label] = Fraction(size, ranked[0])
            case Diversity.RECURSIVE:
                good = [a + 1 for a in range(len(ranked)) if ranked[0] < c * sum(ranked[a:])]
                figures[label] = max([1, *good])
            case Distance.EQUAL | Distance.VARIATION:
                figures[label] = sum(map(abs, shift.values())) / 2
            case Distance.ORDERED:
                sums = [sum(shift.get(u, 0) for u in range(v + 1)) for v in range(order - 1)]
                figures[label] = sum(map(abs, sums)) / max(order - 1, 1)
            case Distance.HIERARCHICAL:
                figures[label] = tree_cost(tree, {v: shift.get(v, Fraction(0)) for v in tree})
            case Distance.RATIO:
                shares = [(Fraction(own[v], size), Fraction(whole[v], n)) for v in whole]
                figures[label] = max(max(p / q, q / p) if p and q else math.inf for p, q in shares)
    return figures


def tree_cost(tree, shift):
    """Li et al. (2007), section 4.3: what must cross each inner node, times its height."""
    height = {}
    for path in tree.values():
        for a, node in enumerate(path):
            height[node] = max(height.get(node, 0), a)
    children = {}
    for path in tree.values():
        for child, parent in pairwise(path):
            children.setdefault(parent, set()).add(child)
    root = next(iter(tree.values()))[-1]

    def extra(node):
        if node not in children:
            return next(shift[v] for v, path in tree.items() if path[0] == node)
        return sum(extra(child) for child in children[node])

    cost = Fraction(0)
    for node, below in children.items():
        each = [extra(child) for child in below]
        up = sum(e for e in each if e > 0)
        down = -sum(e for e in each if e < 0)
        cost += Fraction(height[node], height[root]) * min(up, down)
    return cost


def assert_verdict(found, figures, wanted, *, least):
    worst = min(figures.values()) if least else max(figures.values())
    failing = [e for e, own in figures.items() if (own < wanted if least else own > wanted)]
    assert found.achieved == worst
    assert found.witness == min(e for e, own in figures.items() if own == worst)
    assert found.failing.tolist() == failing
    assert found.holds is (not failing)


records = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30)
skewed = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([0] * 8 + [1, 2])), min_size=1, max_size=60
)
tables = records | skewed
shares = st.fractions(min_value=0, max_value=2, max_denominator=12)


def counted(rows, **options):
    labels, codes = zip(*rows, strict=True)
    return Counts.of(labels, codes, **options)


@given(tables, st.integers(1, 6))
def test_k_is_the_size_of_the_smallest_class(rows, k):
    found = k_anonymity(counted(rows).persons, k)

    assert_verdict(found, exact_figures(rows, "k"), k, least=True)


@given(
    tables,
    st.fractions(min_value=1, max_value=4, max_denominator=4),
    st.sampled_from([Diversity.DISTINCT, Diversity.FREQUENCY]),
)
def test_distinct_and_frequency_diversity_are_decided_in_fractions(rows, l, kind):  # noqa: E741
    found = l_diversity(counted(rows), l, kind=kind)

    assert_verdict(found, exact_figures(rows, kind), l, least=True)


@given(tables, st.integers(1, 4), st.fractions(min_value="1/10", max_value=6, max_denominator=10))
def test_recursive_diversity_finds_the_largest_l(rows, l, c):  # noqa: E741
    found = l_diversity(counted(rows), l, kind=Diversity.RECURSIVE, c=c)

    assert_verdict(found, exact_figures(rows, Diversity.RECURSIVE, c=c), l, least=True)


@given(tables, st.fractions(min_value=1, max_value=5, max_denominator=3))
def test_entropy_is_compared_as_powers_of_whole_numbers(rows, l):  # noqa: E741
    found = l_diversity(counted(rows), l, kind=Diversity.ENTROPY)

    classes = {}
    for label, value in rows:
        classes.setdefault(label, Counter())[value] += 1
    holds = {}
    entropy = {}
    for label, own in classes.items():
        n = own.total()
        # exp(entropy)^n = n^n / prod n_i^n_i
        power = Fraction(n**n, math.prod(c**c for c in own.values()))
        holds[label] = power >= l**n
        entropy[label] = -sum(c / n * math.log(c / n) for c in own.values())
    assert found.failing.tolist() == sorted(e for e, good in holds.items() if not good)
    assert found.holds is all(holds.values())
    least = min(entropy.values())
    assert math.isclose(found.achieved, math.exp(least), rel_tol=1e-12)
    assert found.witness == min(e for e, own in entropy.items() if own - least < 1e-12)
    assert (found.achieved >= l) is found.holds


@given(tables, shares, st.sampled_from([Distance.EQUAL, Distance.VARIATION]))
def test_closeness_is_total_variation_where_all_moves_cost_the_same(rows, t, distance):
    found = t_closeness(counted(rows), t, distance=distance)

    assert_verdict(found, exact_figures(rows, distance), t, least=False)


@given(tables, shares, st.integers(0, 3))
def test_closeness_under_an_order_adds_up_cumulative_shares(rows, t, more):
    order = max(value for _, value in rows) + 1 + more

    found = t_closeness(counted(rows, width=order), t, distance=Distance.ORDERED)

    assert_verdict(found, exact_figures(rows, Distance.ORDERED, order=order), t, least=False)


@given(tables, st.fractions(min_value=1, max_value=6, max_denominator=6))
def test_the_ratio_distance_is_the_largest_quotient_and_infinite_where_a_value_lacks(rows, t):
    found = t_closeness(counted(rows), t, distance=Distance.RATIO)

    assert_verdict(found, exact_figures(rows, Distance.RATIO), t, least=False)


TREES = [
    (("a", "x"), ("b", "x"), ("c", "x"), ("d", "x"), ("e", "x")),
    (("a", "p", "x"), ("b", "p", "x"), ("c", "q", "x"), ("d", "q", "x"), ("e", "q", "x")),
    (("a", "p", "r", "x"), ("b", "x"), ("c", "p", "r", "x"), ("d", "r", "x"), ("e", "q", "x")),
]


@given(tables, shares, st.sampled_from(TREES))
def test_closeness_under_a_tree_costs_the_height_of_the_lowest_common_node(rows, t, paths):
    tree = dict(enumerate(paths))
    edges = Hierarchy(paths).edges()

    found = t_closeness(counted(rows), t, distance=Distance.HIERARCHICAL, edges=edges)

    assert_verdict(found, exact_figures(rows, Distance.HIERARCHICAL, tree=tree), t, least=False)


@given(records, st.sampled_from(TREES))
def test_earth_movers_distances_are_the_least_cost_of_moving(rows, paths):
    counts = counted(rows, width=5)
    height = [[0 if u == v else max(map(len, paths)) - 1 for v in range(5)] for u in range(5)]
    deep = {}
    for path in paths:
        for a, node in enumerate(path):
            deep[node] = max(deep.get(node, 0), a)
    for u, v in product(range(5), repeat=2):
        height[u][v] = 0 if u == v else min(deep[x] for x in paths[u] if x in paths[v])
    grounds = {
        Distance.EQUAL: 1.0 - np.eye(5),
        Distance.ORDERED: np.abs(np.subtract.outer(np.arange(5), np.arange(5))) / 4,
        Distance.HIERARCHICAL: np.array(height) / deep["x"],
    }

    for distance, cost in grounds.items():
        edges = Hierarchy(paths).edges()
        found = t_closeness(counts, 1, distance=distance, edges=edges)

        own = np.array([c for e, c in rows if e == found.witness])
        p = np.bincount(own, minlength=5) / len(own)
        q = counts.totals / counts.totals.sum()
        assert math.isclose(float(found.achieved), transport(p, q, cost), abs_tol=1e-9)


def transport(p, q, cost):
    """Least cost of moving p onto q, as a linear program."""
    m = len(p)
    sides = np.vstack([np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))])
    return linprog(cost.ravel(), A_eq=sides, b_eq=np.concatenate([p, q])).fun


@given(tables, tables)
def test_counts_of_two_parts_add_up_to_those_of_the_whole(one, other):
    joined = counted(one) + counted(other)

    together = counted(one + other)
    for field in ("classes", "values", "counts", "persons"):
        np.testing.assert_array_equal(getattr(joined, field), getattr(together, field))
    assert joined.width == together.width


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=40))
def test_units_are_counted_once_a_class_and_once_a_value(rows):
    labels, codes, units = zip(*rows, strict=True)

    counts = Counts.of(labels, codes, units=units)

    persons = Counter(label for label, _ in {(label, unit) for label, _, unit in rows})
    assert counts.persons.tolist() == [persons[e] for e in range(max(labels) + 1)]
    pairs = Counter((label, code) for label, code, _ in set(rows))
    entries = zip(counts.classes.tolist(), counts.values.tolist(), strict=True)
    assert dict(zip(entries, counts.counts.tolist(), strict=True)) == pairs


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30))
def test_distinct_values_of_persons_are_those_that_as_many_of_them_hold(rows):
    """Against all ways to assign values to persons."""
    labels, codes, units = zip(*rows, strict=True)

    apart = Counts.of(labels, codes, units=units).apart

    for label in set(labels):
        held = {(code, unit) for one, code, unit in rows if one == label}
        values, persons = ({pair[side] for pair in held} for side in (0, 1))
        most = max(
            sum((v, p) in held for v, p in zip(chosen, some, strict=True))
            for size in range(1, len(values) + 1)
            for chosen in combinations(values, min(size, len(persons)))
            for some in permutations(persons, min(size, len(persons)))
        )
        assert apart[label] == most


def test_one_person_with_many_values_is_not_diverse():
    found, counts = decide(
        [0, 0, 0, 0], [0, 1, 2, 0], LDiversity(Fraction(2), Diversity.DISTINCT, ("s",), ("q",)),
        units=[7, 7, 7, 8],
    )  # fmt: skip
    alone, _ = decide(
        [0, 0, 0], [0, 1, 2], LDiversity(Fraction(2), Diversity.DISTINCT, ("s",), ("q",)),
        units=[7, 7, 7],
    )  # fmt: skip

    assert (found.achieved, found.holds, counts.persons.tolist()) == (2, True, [2])
    assert (alone.achieved, alone.holds) == (1, False)


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 2), min_size=1, max_size=30))
def test_rows_and_persons_agree_where_each_person_has_one_row(rows):
    labels, codes = zip(*rows, strict=True)
    for guarantee in (
        LDiversity(Fraction(2), Diversity.ENTROPY, ("s",), ("q",)),
        TCloseness(Fraction(1, 3), Distance.ORDERED, ("s",), ("q",)),
    ):
        by_rows, _ = decide(labels, codes, guarantee)
        by_persons, _ = decide(labels, codes, guarantee, units=range(len(rows)))

        assert (by_rows.holds, by_rows.achieved) == (by_persons.holds, by_persons.achieved)
        assert by_rows.failing.tolist() == by_persons.failing.tolist()


def test_the_worse_of_rows_and_persons_decides():
    """Nine rows of one person hold 0: most of the rows, and a third of the persons."""
    labels, codes, units = [0] * 11, [0] * 9 + [1, 1], [1] * 9 + [2, 3]
    frequent = LDiversity(Fraction(1), Diversity.FREQUENCY, ("s",), ("q",))

    found, _ = decide(labels, codes, frequent, units=units)

    assert found.achieved == Fraction(11, 9)
    fewer, _ = decide([0] * 3, [0, 1, 1], frequent, units=[1, 2, 3])
    assert fewer.achieved == Fraction(3, 2)


def test_counts_of_persons_are_not_added():
    persons = Counts.of([0, 0], [0, 1], units=[1, 1])

    with pytest.raises(InputError, match="cannot be added"):
        persons + persons


def test_a_value_that_everyone_of_a_class_holds_makes_it_homogeneous():
    labels, codes = [0, 0, 0, 1, 1, 2], [0, 1, 0, 2, 2, 1]

    by_rows = Counts.of(labels, codes)
    by_persons = Counts.of([0, 0, 0, 0], [0, 1, 0, 2], units=[7, 7, 8, 8])

    assert by_rows.homogeneous.tolist() == [1, 2]
    assert by_persons.homogeneous.tolist() == [0]
    assert l_diversity(by_persons, 2, kind=Diversity.FREQUENCY).achieved == 1


@pytest.mark.parametrize(
    ("own", "l"), [((1, 1, 1), 3), ((7, 7, 7), 3), ((4, 1, 1, 1, 1), 4), ((16, 4, 4, 4, 4), 4)]
)
def test_entropy_that_equals_its_threshold_holds_exactly(own, l):  # noqa: E741
    counts = counted([(0, v) for v, many in enumerate(own) for _ in range(many)])

    found = l_diversity(counts, l, kind=Diversity.ENTROPY)

    assert found.holds
    assert found.achieved == l
    assert not l_diversity(counts, l + Fraction(1, 10**30), kind=Diversity.ENTROPY).holds


def test_thresholds_are_met_where_floating_point_would_miss_them():
    thirds = counted([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 0), (2, 0)])

    assert l_diversity(counted([(0, 0), (0, 1), (0, 2)]), 3, kind=Diversity.FREQUENCY).holds
    found = t_closeness(thirds, Fraction(4, 9), distance=Distance.EQUAL)
    assert (found.holds, found.achieved, found.witness) == (True, Fraction(4, 9), 2)
    assert not t_closeness(
        thirds, Fraction(4, 9) - Fraction(1, 10**20), distance=Distance.EQUAL
    ).holds


def test_tables_too_large_for_64_bits_are_counted_in_whole_numbers():
    big = 3 * 10**9
    counts = Counts(
        np.array([0, 0, 1, 1]),
        np.array([0, 2, 0, 2]),
        np.array([big, big + 1, big, big]),
        np.array([2 * big + 1, 2 * big]),
        3,
    )
    n = 4 * big + 1
    first = Fraction(2 * big, n) - Fraction(big, 2 * big + 1)
    second = Fraction(1, 2) - Fraction(2 * big, n)

    equal = t_closeness(counts, 0, distance=Distance.EQUAL)
    ordered = t_closeness(counts, 0, distance=Distance.ORDERED)
    star = t_closeness(counts, 0, distance=Distance.HIERARCHICAL, edges=np.arange(3)[:, None])
    ratio = t_closeness(counts, 1, distance=Distance.RATIO)

    assert equal.achieved == ordered.achieved == star.achieved == max(first, second)
    assert equal.witness == (0 if first > second else 1)
    assert ratio.achieved == max(
        Fraction(1, 2) / Fraction(2 * big, n),
        Fraction(2 * big + 1, n) / Fraction(1, 2),
        Fraction(2 * big, n) / Fraction(big, 2 * big + 1),
        Fraction(big + 1, 2 * big + 1) / Fraction(2 * big + 1, n),
    )


def test_the_example_of_domingoferrer2015_figure_2_is_one_and_a_half_close():
    shares = [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
    rows = [
        (e, b) for e, own in enumerate(shares) for b, many in enumerate(own) for _ in range(many)
    ]

    found = t_closeness(counted(rows), Fraction(3, 2), distance=Distance.RATIO)

    assert (found.holds, found.achieved, found.witness) == (True, Fraction(3, 2), 0)


def test_the_masses_of_domingoferrer2015_table_1_are_t_close_with_equality():
    for t in range(1, 6):
        rows = [
            (e, b)
            for e, b in product(range(t + 1), repeat=2)
            for _ in range(t * t if e == b else 1)
        ]

        found = t_closeness(counted(rows), t, distance=Distance.RATIO)

        assert (found.holds, found.achieved) == (True, t)


def test_the_salaries_of_li_2007_have_their_distances():
    """Example of section 4.2: 3k..11k; {3,4,5}k is .375 away and {6,8,11}k .167."""
    salaries = [[0, 1, 2], [3, 5, 8], [4, 6, 7]]
    rows = [(e, v) for e, own in enumerate(salaries) for v in own]
    counts = counted(rows)

    assert t_closeness(counts, 1, distance=Distance.ORDERED).achieved == Fraction(3, 8)
    own = t_closeness(
        counted([(0, 3), (0, 5), (0, 8)], width=9),
        1,
        distance=Distance.ORDERED,
        whole=counts.totals,
    )
    assert own.achieved == Fraction(1, 6)


def test_one_record_and_one_value_are_the_ends_of_every_scale():
    one = counted([(0, 0)])
    same = counted([(0, 0), (0, 0), (1, 0)])

    for counts in (one, same):
        for kind in Diversity:
            c = 3 if kind is Diversity.RECURSIVE else None
            assert l_diversity(counts, 1, kind=kind, c=c).achieved == 1
            assert not l_diversity(counts, 2, kind=kind, c=c).holds
        for distance in Distance:
            least = 1 if distance is Distance.RATIO else 0
            found = t_closeness(counts, least, distance=distance, edges=np.array([[0]]))
            assert (found.holds, found.achieved, found.witness) == (True, least, 0)
        assert len(counts.homogeneous) == len(counts.persons)


def test_a_class_without_persons_is_passed_over():
    counts = Counts.of([1, 1, 3], [0, 1, 0], groups=6)

    assert k_anonymity(counts.persons, 1).witness == 3
    assert l_diversity(counts, 2, kind=Diversity.DISTINCT).failing.tolist() == [3]
    assert t_closeness(counts, 1, distance=Distance.EQUAL).witness == 3


def test_a_guarantee_is_decided_by_its_own_model():
    counts = counted([(0, 0), (0, 1), (1, 0), (1, 0)])
    keys, columns = ("age",), ("ill",)
    l_wanted = LDiversity(Fraction(2), Diversity.RECURSIVE, columns, keys, Fraction(3))

    assert verdict(counts, KAnonymity(2, keys)).holds
    assert verdict(counts, l_wanted).failing.tolist() == [1]
    for distance in Distance:
        wanted = TCloseness(Fraction(2), distance, columns, keys)
        found = verdict(counts, wanted, edges=np.array([[0], [1]]))
        assert found.achieved == (math.inf if distance is Distance.RATIO else Fraction(1, 4))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (
            lambda: Counts.of([0, 1], [0]),
            (
                "The labels of the classes and the codes of the values "
                "must be equally long; found 2 and 1."
            ),
        ),
        (
            lambda: Counts.of([0.5], [0]),
            "The argument labels must be a one-dimensional array of whole numbers.",
        ),
        (lambda: Counts.of([0], [-1]), "The argument codes must not have negative numbers."),
        (
            lambda: Counts.of([0, 2], [0, 0], groups=2),
            "The argument groups must be at least 3, to cover all that occur; found 2.",
        ),
        (
            lambda: Counts.of([0, 2], [0, 0], units=[1]),
            "The argument units must give the person of each record; found 1 names for 2 records.",
        ),
        (
            lambda: k_anonymity(np.array([], int), 2),
            "The table has no rows; there is nothing to check.",
        ),
        (
            lambda: l_diversity(Counts.of([], []), 2, kind=Diversity.DISTINCT),
            "The table has no rows; there is nothing to check.",
        ),
        (
            lambda: l_diversity(counted([(0, 0)]), Fraction(1, 2), kind=Diversity.DISTINCT),
            "l-diversity needs l of at least 1; found 1/2.",
        ),
        (
            lambda: l_diversity(counted([(0, 0)]), 2, kind=Diversity.RECURSIVE),
            "Recursive l-diversity needs c > 0.",
        ),
        (
            lambda: t_closeness(counted([(0, 1)]), 0, distance=Distance.HIERARCHICAL),
            (
                "A hierarchical distance needs the edges of the hierarchy, with one row for "
                "each of its 2 values."
            ),
        ),
        (
            lambda: t_closeness(counted([(0, 1)]), 0, distance=Distance.EQUAL, whole=[1]),
            "The argument whole, the counts of the whole table, must count 2 values; found 1.",
        ),
        (
            lambda: t_closeness(counted([(0, 1)]), 0, distance=Distance.EQUAL, whole=[0, 0]),
            "The argument whole, the counts of the whole table, must count at least one person.",
        ),
    ],
)
def test_what_cannot_be_counted_or_compared_is_refused(attempt, message):
    with pytest.raises(InputError) as refusal:
        attempt()

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("exponents", "sign"),
    [
        ({}, 0),
        ({1: 5}, 0),
        ({6: 2, 4: -1, 9: -1}, 0),
        ({12: 3, 18: -3, 2: -3, 3: 3}, 0),
        ({2: 84, 3: -53}, -1),
        ({2: 85, 3: -53}, 1),
        ({10**40 + 1: 1, 10**40: -1}, 1),
        ({10**40: 10**9, 10**40 + 1: -(10**9)}, -1),
    ],
)
def test_signs_of_sums_of_logarithms_are_exact(exponents, sign):
    assert _sign(exponents) == sign
