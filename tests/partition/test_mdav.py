import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import cKDTree

from shoal.core import MixedRecords, silent
from shoal.errors import InputError
from shoal.partition import mdav
from shoal.partition.mdav import _rounds
from shoal.partition.mixed_records import (
    distances_of_record,
    distances_to_centroid,
    exponent,
    mixed_records,
    scale,
    within_groups,
)

SHAPE = (
    "The argument X must be a matrix of records by columns, with at least one column; found the "
    "shape "
)
CENSUS_4 = ["FICA", "FEDTAX", "INTVAL", "POTHVAL"]
CENSUS_13 = [
    *("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC", "POTHVAL"),
    *("INTVAL", "PEARNVAL", "FICA", "WSALVAL", "ERNVAL"),
]
EIA_4 = ["RESREVENUE", "RESSALES", "TOTREVENUE", "TOTSALES"]
EIA_11 = [
    *("UTILITYID", "RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE"),
    *("INDSALES", "OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"),
]


def loss(X, labels):
    """100 SSE / SST of a partition."""
    means = np.zeros((labels.max() + 1, X.shape[1]))
    np.add.at(means, labels, X)
    means /= np.bincount(labels)[:, None]
    return 100 * ((X - means[labels]) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()


def mdav_twin(X, k):
    """MDAV by its definition, in the documented arithmetic, one numpy pass a step."""
    records = X if isinstance(X, MixedRecords) else None
    X = np.asarray(X, float) if records is None else records.numbers
    codes = np.zeros((len(X), 0), int) if records is None else records.codes
    weights = np.zeros(0) if records is None else records.weights
    top = max(np.abs(X).max(initial=0.0), (weights**0.5).max(initial=0.0))
    exponent = int(np.frexp(top)[1] - (np.frexp(top)[0] == 0.5))
    Z = np.ldexp(X, -exponent)
    weights = np.ldexp(weights, -2 * exponent)
    high = np.floor(Z * 2.0**31)
    low = np.floor((Z * 2.0**31 - high) * 2.0**31).astype(np.int64)
    high = high.astype(np.int64)

    def numbers_apart(rest, q):
        total = np.zeros(len(rest))
        for j in range(Z.shape[1]):
            total += (Z[rest, j] - q[j]) ** 2
        return total

    def distances(rest, r):
        total = numbers_apart(rest, Z[r])
        for column, weight in zip(codes.T, weights, strict=True):
            edges = (column[rest] > 0).astype(float) + float(column[r] > 0)
            total += np.where(column[rest] == column[r], 0.0, weight * edges)
        return total

    def to_mean(rest):
        high_sum = high[rest].sum(axis=0).astype(float)
        mean = (high_sum + low[rest].sum(axis=0) / 2.0**31) / len(rest) / 2.0**31
        total = numbers_apart(rest, mean)
        for column, weight in zip(codes.T, weights, strict=True):
            counts = np.bincount(column[rest])
            spread = float((counts[1:] ** 2).sum()) / len(rest) / len(rest)
            shares = counts / len(rest)
            own = np.where(column[rest] > 0, 1.0 - 2.0 * shares[column[rest]], 0.0)
            total += np.maximum((spread + own) * weight, 0.0)
        return total

    def group(rest, at):
        others = np.delete(rest, at)
        far = distances(others, rest[at])
        edge = np.partition(far, k - 2)[k - 2]
        inside = np.flatnonzero(far < edge)
        ties = np.flatnonzero(far == edge)[: k - 1 - len(inside)]
        members = np.concatenate([inside, ties])
        return [rest[at], *others[members]], np.delete(others, members)

    rest = np.arange(len(Z))
    labels = np.full(len(Z), -1)
    g = 0
    while len(rest) >= 2 * k:
        two = len(rest) >= 3 * k
        at = int(np.argmax(to_mean(rest)))
        r = rest[at]
        members, rest = group(rest, at)
        labels[members] = g
        g += 1
        if not two:
            break
        members, rest = group(rest, int(np.argmax(distances(rest, r))))
        labels[members] = g
        g += 1
    labels[rest] = g
    return labels


@st.composite
def tables(draw, most=300, columns=6):
    """Tables with ties: small integers, constant columns, copies, odd magnitudes."""
    k = draw(st.integers(2, 12))
    n = draw(st.integers(k, most))
    d = draw(st.integers(1, columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(
        st.sampled_from(
            ["normal", "grid", "copies", "heavy", "offset", "constant", "mixed", "tiny"]
        )
    )
    X = rng.normal(size=(n, d))
    if kind == "grid":
        X = rng.integers(0, draw(st.integers(1, 5)) + 1, size=(n, d)).astype(float)
    elif kind == "copies":
        X = X[rng.integers(0, max(1, n // 10), size=n)]
    elif kind == "heavy":
        X = rng.standard_cauchy(size=(n, d)) ** 3
    elif kind == "offset":
        X = 1e9 + rng.integers(0, 9, size=(n, d)) * 2.0**-20
    elif kind == "constant":
        X[:, :] = X[0]
        X[:, 0] = rng.integers(0, 3, size=n)
    elif kind == "mixed":
        ages = rng.integers(18, 60, size=(n, d // 3 + 1)) / 7
        X = np.hstack([ages, np.eye(d)[rng.integers(0, d, size=n)] * np.sqrt(0.5)])
    elif kind == "tiny":
        X = rng.choice([0.0, -0.0, 1.0, 2.0**-500, 2.0**-600, 1.5 * 2.0**-600], size=(n, d))
    return X * draw(st.sampled_from([1.0, 0.1, 1e-300, 1e300 / max(1.0, np.abs(X).max())])), k


@st.composite
def mixed_tables(draw, most=300):
    """Numbers beside categories, flat or of several levels, some records without a code."""
    X, k = draw(tables(most, 3))
    n = len(X)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = [rng.integers(1, draw(st.sampled_from([2, 3, 40])) + 1, size=n)]
    if draw(st.booleans()):  # a hierarchy: the code of a parent above that of its child
        children = (levels[0] - 1) * 3 + rng.integers(1, 4, size=n)
        levels.append(np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.3])), 0, children))
    if draw(st.booleans()):
        levels.append(rng.integers(0, 18, size=n))
    numbers = np.zeros((n, 0)) if draw(st.sampled_from([False, False, True])) else X
    numbers = numbers / max(1.0, np.abs(numbers).max(initial=0.0)) * 3
    weights = rng.choice([0.5, 1.0, 1 / 3, 2.7], size=len(levels))
    return MixedRecords(numbers, np.column_stack(levels), weights), k


def coordinates(records):
    """The same records with one axis for each code."""
    axes = [records.numbers]
    for column, weight in zip(records.codes.T, records.weights, strict=True):
        axes.append(np.eye(column.max() + 1)[column][:, 1:] * np.sqrt(weight))
    return np.hstack(axes)


@settings(max_examples=300, deadline=None)
@given(mixed_tables())
def test_codes_are_grouped_as_the_definition_says(table):
    records, k = table

    np.testing.assert_array_equal(mdav(records, k).labels, mdav_twin(records, k))


@settings(max_examples=300, deadline=None)
@given(mixed_tables(), st.sampled_from([1, 4, 64]), st.sampled_from([0.0, 0.1, 1e9]))
def test_cells_and_trees_of_codes_give_the_same_partition(table, leaf, tree_while):
    records, k = table

    labels = _rounds(scale(records), k, silent, tree_from=2, tree_while=tree_while, leaf=leaf)

    np.testing.assert_array_equal(labels, mdav_twin(records, k))


@settings(max_examples=100, deadline=None)
@given(mixed_tables(60))
def test_distances_of_codes_are_those_of_one_axis_for_each_code(table):
    records, _ = table
    X, scaled = coordinates(records), scale(records)
    labels = np.arange(len(records)) % 3 % len(records)
    g = int(labels.max()) + 1
    means = np.array([X[labels == group].mean(axis=0) for group in range(g)])
    # The kernels' numbers are scaled by a power of two.
    square = 4.0 ** exponent(records)

    to_own = distances_to_centroid(scaled, labels, g) * square
    of_first = distances_of_record(scaled, 0, labels, g) * square

    np.testing.assert_allclose(to_own, ((X - means[labels]) ** 2).sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(of_first, ((means - X[0]) ** 2).sum(axis=1), atol=1e-9)
    assert within_groups(scaled, labels) * square == pytest.approx(to_own.sum(), abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_regions_of_cells_give_the_same_partition(seed):
    """Thousands of small cells, many records that tie, and numbers whose distances round alike."""
    rng = np.random.default_rng(seed)
    n, levels = int(rng.integers(500, 3000)), int(rng.choice([3, 20, 300]))
    spread = rng.integers(0, int(rng.integers(2, 60)), n).astype(float)
    income = rng.normal(size=n) if seed % 3 else np.nextafter(spread, 99 * (rng.random(n) < 0.5))
    codes = np.column_stack([rng.integers(seed % 2, levels, n), rng.integers(1, 4, n)])
    weights = rng.random(2) + 0.01 if seed % 5 else np.full(2, 0.5)
    records = scale(MixedRecords(np.column_stack([spread, income]), codes, weights))
    k = int(rng.integers(2, 9))

    over_cells = _rounds(records, k, silent, tree_from=8, tree_while=1e9, leaf=1 + seed % 8)

    assert np.array_equal(over_cells, _rounds(records, k, silent, tree_from=10**9))


@settings(max_examples=300, deadline=None)
@given(tables())
def test_every_table_gets_the_partition_of_the_definition(table):
    X, k = table

    partition = mdav(X, k)

    np.testing.assert_array_equal(partition.labels, mdav_twin(X, k))


@settings(max_examples=200, deadline=None)
@given(tables(), st.sampled_from([1, 4, 64]), st.sampled_from([0.0, 0.1, 1e9]))
def test_a_tree_given_up_early_late_or_never_gives_the_same_partition(table, leaf, tree_while):
    X, k = table
    records = scale(mixed_records(X))

    labels = _rounds(records, k, silent, tree_from=2, tree_while=tree_while, leaf=leaf)

    np.testing.assert_array_equal(labels, mdav_twin(X, k))


@settings(max_examples=50, deadline=None)
@given(arrays(np.float64, (12, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_any_finite_numbers_are_grouped(X):
    partition = mdav(X, 3)

    assert partition.sizes.tolist() == [3, 3, 3, 3]
    np.testing.assert_array_equal(partition.labels, mdav_twin(X, 3))


@settings(max_examples=50, deadline=None)
@given(tables())
def test_all_groups_have_k_records_but_the_last_which_has_fewer_than_2k(table):
    X, k = table

    sizes = mdav(X, k).sizes

    assert (sizes[:-1] == k).all()
    assert k <= sizes[-1] < 2 * k


@settings(max_examples=25, deadline=None)
@given(tables(), st.sampled_from([2.0**-40, 2.0, 2.0**70]))
def test_a_change_of_unit_by_a_power_of_two_changes_nothing(table, factor):
    X, k = table
    X = np.ldexp(X, -int(np.frexp(np.abs(X).max())[1]))

    assert mdav(X * factor, k) == mdav(X, k)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "columns", "losses"),
    [
        ("census.csv", CENSUS_13, {3: 5.6922, 4: 7.4947, 5: 9.0884, 10: 14.1559}),
        ("eia.csv", EIA_11, {3: 0.4829, 4: 0.6713, 5: 1.6667, 10: 3.8397}),
        ("census.csv", CENSUS_4, {3: 2.4765, 4: 3.6651, 5: 4.6363, 10: 8.3307}),
        ("eia.csv", EIA_4, {3: 0.2173, 4: 0.3490, 5: 0.4552, 10: 0.8799}),
    ],
    ids=["census-13", "eia-11", "census-4", "eia-4"],
)
def test_the_published_losses_are_met_to_four_decimals(reference, name, columns, losses):
    X = reference(name, columns)

    found = {k: round(loss(X, mdav(X, k).labels), 4) for k in losses}

    assert found == losses


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.astype(np.float32).astype(float).astype(np.float32),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: np.round(X).astype(np.int16),
        lambda X: X.tolist(),
    ],
    ids=["float32", "fortran", "strided-rows", "strided-columns", "integers", "lists"],
)
def test_every_layout_and_number_type_is_grouped_alike_and_left_alone(change):
    X = change(np.random.default_rng(1).normal(size=(90, 3)) * 100)
    before = np.array(X)
    if isinstance(X, np.ndarray):
        X.flags.writeable = False

    partition = mdav(X, 4)

    np.testing.assert_array_equal(partition.labels, mdav_twin(before, 4))
    np.testing.assert_array_equal(np.array(X), before)


def test_a_single_column_is_not_overwritten():
    x = np.random.default_rng(2).normal(size=(500, 1))
    before = x.copy()

    mdav(x, 3)

    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    ("X", "k", "message"),
    [
        (np.zeros((3, 2)), 5, "Cannot form one group of k=5 from 3 records."),
        (np.zeros((0, 2)), 2, "Cannot form one group of k=2 from 0 records."),
        (
            np.zeros((9, 2)),
            1,
            (
                "The smallest group size k must be at least 2, because a group of one hides "
                "nobody; found 1."
            ),
        ),
        (
            np.zeros((9, 2)),
            2.5,
            "The smallest group size k must be a whole number of at least 2; found a float.",
        ),
        (
            np.zeros(9),
            2,
            SHAPE + "(9,).",
        ),
        (
            np.zeros((9, 0)),
            2,
            SHAPE + "(9, 0).",
        ),
        (
            [[1.0, np.nan], [np.inf, 2.0]],
            2,
            "The argument X must be finite; 2 of its 4 cells are missing or infinite.",
        ),
        (
            np.full((4, 1), "secret", object),
            2,
            "The argument X must hold numbers; found the type object.",
        ),
        (
            np.ma.masked_equal([[1.0], [2.0]], 2.0),
            2,
            "The argument X must have a number in every cell; some are masked.",
        ),
        ([[1, 2], [3]], 2, "The argument X must be a rectangular array of numbers."),
        (
            np.zeros((4, 1), complex),
            2,
            "The argument X must hold numbers; found the type complex128.",
        ),
    ],
)
def test_what_cannot_be_grouped_is_refused_in_one_sentence(X, k, message):
    with pytest.raises(InputError) as refusal:
        mdav(X, k)

    assert str(refusal.value) == message


def test_progress_is_told_and_ends_at_all_records():
    calls = []

    mdav(
        np.random.default_rng(3).normal(size=(5000, 2)),
        3,
        progress=lambda *call: calls.append(call),
    )

    assert [stage for stage, _, _ in calls] == ["grouping"] * len(calls)
    assert calls[-1] == ("grouping", 5000, 5000)
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)


def sphere(rng):
    """Points that all lie about as far from their mean as any other."""
    X = rng.normal(size=(2000, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("tree_from", [2, 10**9], ids=["tree", "brute-force"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.integers(0, 2, size=(2000, 4)).astype(float),
        lambda rng: np.eye(9)[rng.integers(0, 9, size=2000)] * np.sqrt(0.5),
        lambda rng: np.c_[rng.integers(0, 40, 2000), np.eye(9)[rng.integers(0, 9, 2000)] * 7.3],
        lambda rng: np.c_[rng.normal(size=(2000, 2)).round(1), rng.integers(0, 3, 2000)],
        lambda rng: np.where(rng.random((2000, 1)) < 0.9, 0.1, rng.normal(size=(2000, 3))),
        lambda rng: rng.normal(size=(200, 3))[rng.integers(0, 200, size=2000)],
        lambda _rng: np.full((2000, 2), 0.1),
        lambda rng: np.concatenate([sphere(rng), [[1e9, 0, 0]]]),
        sphere,
    ],
    ids=[
        "cube",
        "one-hot",
        "mixed",
        "two-numbers",
        "mostly-equal",
        "copies",
        "constant",
        "outlier",
        "sphere",
    ],
)
def test_tables_with_thousands_of_ties_get_the_partition_of_the_definition(draw, tree_from):
    X = draw(np.random.default_rng(22))

    labels = _rounds(scale(mixed_records(X)), 4, silent, tree_from=tree_from)

    np.testing.assert_array_equal(labels, mdav_twin(X, 4))


def plain_distances(Z, q):
    total = (Z[:, 0] - q[0]) ** 2
    for j in range(1, Z.shape[1]):
        total += (Z[:, j] - q[j]) ** 2
    return total


def nearest_live(tree, rows, live, Z, centre, k):
    """Ask scipy's tree for ever more neighbours until k - 1 live ones are certain."""
    ask = 4 * k
    while True:
        far, at = tree.query(Z[centre], min(ask, len(rows)))
        near = rows[at[live[rows[at]]]]
        exact = plain_distances(Z[near], Z[centre])
        order = np.lexsort((near, exact))[: k - 1]
        if ask >= len(rows) or (
            len(order) == k - 1 and np.sqrt(exact[order[-1]]) < far[-1] * (1 - 1e-9)
        ):
            return near[order]
        ask *= 2


def mdav_by_ckdtree(X, k):
    """MDAV with scipy's kd-tree for neighbours and one pass over all records for extremes."""
    Z = np.ldexp(X, -int(np.frexp(np.abs(X).max())[1]))
    high = np.floor(Z * 2.0**31).astype(np.int64)
    low = np.floor((Z * 2.0**31 - high) * 2.0**31).astype(np.int64)
    sums = [high.sum(axis=0), low.sum(axis=0)]
    labels = np.full(len(Z), -1)
    rows = np.arange(len(Z))
    tree = cKDTree(Z)
    left = len(Z)
    g = 0
    while left >= 2 * k:
        q = (sums[0] + sums[1] / 2.0**31) / left / 2.0**31
        for _ in range(2 if left >= 3 * k else 1):
            centre = int(np.argmax(np.where(labels < 0, plain_distances(Z, q), -1.0)))
            labels[centre] = g
            group = [centre, *nearest_live(tree, rows, labels < 0, Z, centre, k)]
            labels[group] = g
            sums = [sums[0] - high[group].sum(axis=0), sums[1] - low[group].sum(axis=0)]
            left -= k
            g += 1
            q = Z[centre]
        if left < 0.7 * len(rows):
            rows = np.flatnonzero(labels < 0)
            tree = cKDTree(Z[rows])
    labels[labels < 0] = g
    return labels


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [16, 1], ids=["normal", "many-ties"])
def test_fifty_thousand_records_are_grouped_as_a_second_implementation_groups_them(decimals):
    X = np.random.default_rng(20).normal(size=(50_000, 4)).round(decimals)

    partition = mdav(X, 10)

    np.testing.assert_array_equal(partition.labels, mdav_by_ckdtree(X, 10))
