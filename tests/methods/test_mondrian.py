"""Mondrian in a release: intervals, ancestors, and what it steers towards."""

from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.cells import cells_of

import shoal
from shoal import io
from shoal.errors import ClaimViolationError, InputError
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.publish import protect_file

TREE = "lyon,south,all\nnice,south,all\nlille,north,all\nparis,north,all\n"
CITIES = ["lyon", "nice", "lille", "paris"]


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory):
    path = tmp_path_factory.mktemp("mondrian") / "city.csv"
    path.write_text(TREE)
    return str(path)


def policy(hierarchy, require=None, **protect):
    quasi = {"role": "quasi-identifier"}
    return {
        "version": 1,
        "columns": {
            "age": quasi | {"kind": "numeric"},
            "city": quasi | {"kind": "nominal", "hierarchy": hierarchy},
            "team": quasi | {"kind": "nominal"},
            "rank": quasi | {"kind": "ordinal", "categories": ["low", "mid", "high"]},
            "day": quasi | {"kind": "date"},
            "ill": {"role": "confidential", "kind": "nominal"},
        },
        "protect": {"method": "mondrian", "k": 3, **protect},
        "require": require or {},
    }


@st.composite
def tables(draw):
    n = draw(st.integers(3, 40))

    def drawn(values, dtype, *, missing=False):
        return pl.Series(draw(cells_of(values, n, missing=missing)), dtype=dtype)

    return pl.DataFrame(
        {
            "age": drawn(range(10), pl.Int64, missing=True),
            "city": drawn(CITIES, pl.String, missing=True),
            "team": drawn("xyz", pl.String),
            "rank": drawn(["low", "mid", "high"], pl.String),
            "day": drawn(range(10), pl.Int32).cast(pl.Date),
            "ill": drawn("abc", pl.String),
        }
    )


def classes(released):
    held = defaultdict(list)
    for *keys, ill in released.rows():
        held[tuple(keys)].append(ill)
    return held


@given(tables(), st.booleans(), st.sampled_from(["intervals", "centroids"]))
@settings(max_examples=60)
def test_every_class_keeps_k_l_and_t_by_a_naive_recount(hierarchy, table, relaxed, output):
    whole = Counter(table["ill"])
    assume(len(whole) >= 2)
    require = {
        "k-anonymity": 3,
        "l-diversity": {"l": 2, "column": "ill"},
        "t-closeness": {"t": 0.4, "column": "ill"},
    }

    done = shoal.protect(table, policy(hierarchy, require, relaxed=relaxed, output=output))

    assert len(done.claims) == 3
    assert all(check.holds for check in done.checks)
    for held in classes(done.data).values():
        assert len(held) >= 3
        assert len(set(held)) >= 2
        shares = Counter(held)
        distance = sum(
            abs(Fraction(shares[v], len(held)) - Fraction(whole[v], table.height)) for v in whole
        )
        assert distance / 2 <= Fraction(2, 5)


@given(tables())
@settings(max_examples=40)
def test_what_is_written_covers_what_was_there(hierarchy, table):
    released = shoal.protect(table, policy(hierarchy), keep_order=True).data
    above = {row.split(",")[0]: row.split(",") for row in TREE.split()}

    for before, after in zip(table.rows(named=True), released.rows(named=True), strict=True):
        if after["city"] not in {None, "*"}:
            assert after["city"] in above[before["city"]]
        if after["team"].startswith("{"):
            assert before["team"] in after["team"].strip("{}").split(", ")
        if after["age"] is not None and str(after["age"]).startswith("["):
            low, high = map(int, after["age"].strip("[]").split(", "))
            assert low <= before["age"] <= high
        if str(after["day"]).startswith("["):
            low, high = map(date.fromisoformat, after["day"].strip("[]").split(", "))
            assert low <= before["day"] <= high


def test_a_table_that_lacks_what_is_required_stops(hierarchy):
    table = pl.DataFrame(
        {"age": [1, 2, 3], "city": CITIES[:3], "team": ["x"] * 3, "rank": ["low"] * 3,
         "day": [date(2000, 1, 1)] * 3, "ill": ["a"] * 3}
    )  # fmt: skip

    with pytest.raises(ClaimViolationError, match="because even the whole table"):
        shoal.protect(table, policy(hierarchy, {"l-diversity": {"l": 2, "column": "ill"}}))


@pytest.mark.parametrize(
    ("protect", "sentence"),
    [
        ({"dimension": "gain"}, "expected if and only if dimension = 'gain'"),
        ({"target": "ill"}, "expected if and only if dimension = 'gain'"),
        ({"dimension": "gain", "target": "ail"}, "no released column named 'ail'"),
        ({"output": "boxes"}, "expected one of intervals, centroids, tree"),
        ({"record_suppression": 1}, "record_suppression"),
        (
            {"record_suppression": Decimal("0.1"), "release_form": "row-aligned"},
            "cannot be row-aligned",
        ),
        ({"release_form": "tree"}, "expected 'tree' if and only if the release form is 'tree'"),
        ({"output": "tree", "release_form": "canonical"}, "has the release form 'tree'"),
        ({"output": "tree"}, "'team': expected categories or a hierarchy"),
        ({"output": "tree", "relaxed": True}, "boxes of relaxed cuts overlap"),
        ({"output": "tree", "count": "il"}, "no confidential column named 'il'. Did you mean"),
        ({"count": "ill"}, "expected only together with output = 'tree' or halt_beyond"),
        ({"halt_beyond": Decimal("0.5"), "halt_distance": "ratio"}, "at least 1"),
        ({"halt_beyond": Decimal("0.5"), "halt_distance": "ordered"}, "declared categories"),
    ],
)
def test_wrong_parameters_are_told(hierarchy, protect, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.plan(policy(hierarchy, **protect))


def test_gain_entropy_and_a_largest_height_are_taken(hierarchy):
    table = pl.DataFrame(
        {"age": list(range(40)), "city": CITIES * 10, "team": ["x", "y"] * 20,
         "rank": ["low", "high"] * 20, "day": [date(2000, 1, 1)] * 40, "ill": list("ab") * 20}
    )  # fmt: skip

    by_gain = shoal.protect(table, policy(hierarchy, dimension="gain", target="ill"))
    by_entropy = shoal.protect(table, policy(hierarchy, dimension="entropy"))
    low = shoal.protect(table, policy(hierarchy, max_height=1))

    assert by_gain.checks[0].holds
    assert by_entropy.checks[0].holds
    assert low.checks[0].remarks["classes"] == 2


def test_steering_needs_every_quasi_identifier_among_the_protected(hierarchy):
    require = {"l-diversity": {"l": 2, "column": "ill"}}

    with pytest.raises(InputError, match="must list every quasi-identifier"):
        shoal.plan(policy(hierarchy, require, columns=["age"]))


# Trees of boxes with counts.


def boxed(require=None, **protect):
    quasi = {"role": "quasi-identifier"}
    return {
        "version": 1,
        "one_row_per_person": True,
        "columns": {
            "age": quasi | {"kind": "numeric"},
            "team": quasi | {"kind": "nominal", "categories": list("xyz")},
            "ill": {"role": "confidential", "kind": "ordinal", "categories": list("abcd")},
        },
        "protect": {"method": "mondrian", "k": 2, **protect},
        "require": require or {},
    }


@st.composite
def small_tables(draw):
    n = draw(st.integers(4, 60))

    def drawn(values, *, missing=False):
        return draw(cells_of(values, n, missing=missing))

    return pl.DataFrame(
        {
            "age": pl.Series(drawn(range(10)), dtype=pl.Int64),
            "team": pl.Series(drawn("xyz"), dtype=pl.String),
            "ill": pl.Series(drawn("abc", missing=True), dtype=pl.String),
        }
    )


MODELS = [
    {"k-anonymity": 3},
    {"l-diversity": {"l": 2, "column": "ill"}},
    {"l-diversity": {"l": Decimal("1.5"), "column": "ill", "kind": "entropy"}},
    {"l-diversity": {"l": Decimal("1.5"), "column": "ill", "kind": "frequency"}},
    {"l-diversity": {"l": 2, "column": "ill", "kind": "recursive", "c": 2}},
    {"t-closeness": {"t": Decimal("0.3"), "column": "ill"}},
    {"t-closeness": {"t": Decimal("0.2"), "column": "ill", "distance": "ordered"}},
    {"t-closeness": {"t": Decimal("0.3"), "column": "ill", "distance": "variation"}},
    {"t-closeness": {"t": 3, "column": "ill", "distance": "ratio"}},
]


@given(small_tables(), st.sampled_from(MODELS))
@settings(max_examples=80)
def test_a_tree_is_checked_as_the_intervals_of_the_same_cuts_are(table, model):
    by_rows = shoal.protect(table, boxed()).data
    by_boxes = shoal.protect(table, boxed(output="tree")).data

    (rows,), (boxes,) = (shoal.check(data, boxed(model)) for data in (by_rows, by_boxes))

    assert boxes.holds == rows.holds
    assert boxes.achieved == pytest.approx(rows.achieved, rel=1e-12)
    for remark in ("classes", "failing_classes", "homogeneous_classes"):
        assert boxes.remarks.get(remark) == rows.remarks.get(remark)
    deciding = by_boxes.select("^ill=.*$").row(boxes.witness["rows"][0] - 1)
    assert sum(deciding) == boxes.witness["size"]


@given(small_tables(), st.lists(st.sampled_from(MODELS), min_size=1, max_size=2))
@settings(max_examples=60)
def test_a_tree_keeps_what_is_required(table, models):
    require = {key: value for model in models for key, value in model.items()}
    assume(all(check.holds for check in shoal.check(one_class(table), boxed(require))))

    release = shoal.protect(table, boxed(require, k=3, output="tree"))

    assert len(release.claims) == 1 + len(require.keys() - {"k-anonymity"})
    assert {claim.status for claim in release.claims} == {"proved"}
    assert all(check.holds for check in release.checks)
    assert all(check.holds for check in shoal.check(release.data, boxed(require)))


def one_class(table):
    return table.with_columns(age=pl.lit("*"), team=pl.lit("*"))


def test_a_tree_counts_the_column_that_is_named():
    rules = boxed(output="tree")
    rules["columns"]["pay"] = {"role": "confidential", "kind": "numeric"}
    rules["columns"]["note"] = "other"
    table = pl.DataFrame(
        {"age": [1, 1, 7, 7], "team": list("xxyy"), "ill": list("abca"), "pay": [3, 3, 2, 9],
         "note": list("pqrs")}
    )  # fmt: skip
    with pytest.raises(InputError, match="expected the confidential column to count, one of ill"):
        shoal.plan(rules)

    rules["protect"]["count"] = "pay"
    release = shoal.protect(table, rules)

    assert release.data.columns[4:] == ["pay=2", "pay=3", "pay=9"]
    assert release.data.select("^pay=.*$").rows() == [(0, 2, 0), (1, 0, 1)]
    assert "note" not in str(release.manifest.notes)
    rules["require"] = {"l-diversity": {"l": 1, "column": "ill"}}
    with pytest.raises(InputError, match="cannot be checked in a tree that counts pay"):
        shoal.plan(rules)


def test_a_tree_says_what_it_is():
    table = pl.DataFrame({"age": [1, 2, 7, 8], "team": list("xxyy"), "ill": list("aaca")})

    release = shoal.protect(table, boxed(output="tree"))

    assert repr(release).startswith("Release of 2 rows x 8 columns by mondrian")
    assert "A released row is a box, that is a range of each quasi-identifier, with counts." in str(
        release.manifest
    )
    assert "Counts of ill are exact" in release.manifest.not_claimed[0]
    assert release.claims[0].basis.startswith("by construction: every box")
    assert release.data.row(0) == (1, 3, "x", "z", 2, 0, 0, 0)


def test_a_tree_goes_through_files_and_is_checked_there(tmp_path):
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {"age": rng.integers(18, 80, 300), "team": rng.choice(list("xyz"), 300),
         "ill": rng.choice(list("abc"), 300)}
    )  # fmt: skip
    table.write_csv(tmp_path / "people.csv")
    rules = shoal.load_policy(boxed({"l-diversity": {"l": 2, "column": "ill"}}, output="tree"))

    for form in ("csv", "parquet"):
        done = protect_file.protect(
            tmp_path / "people.csv",
            rules,
            tmp_path / form,
            output=OutputOptions(file_format=form),
            evaluation=EvaluationOptions(evaluate=False),
        )
        read = io.read(tmp_path / form / f"release.{form}").frame
        assert shoal.check(read, rules) == done.release.checks[:1]
        assert read.select(pl.col("^ill=.*$").cast(pl.Int64)).to_numpy().sum() == 300
    pytest.importorskip("pyreadstat")
    with pytest.raises(InputError, match="column names that SPSS"):
        protect_file.protect(
            tmp_path / "people.csv",
            rules,
            tmp_path / "sav",
            output=OutputOptions(file_format="sav"),
        )
    assert not (tmp_path / "sav").exists()


@given(small_tables(), st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_the_order_of_the_file_does_not_matter_to_a_tree_nor_to_who_is_left_out(table, random):
    order = list(range(table.height))
    random.shuffle(order)
    rules = boxed(output="tree", record_suppression=Decimal("0.3"))

    straight, shuffled = (shoal.protect(t, rules).data for t in (table, table[order]))

    assert straight.equals(shuffled)


# Suppression.


def ncp(released, table):
    """Mean normalised certainty penalty over cells: the width of the interval over the range."""
    total = 0.0
    for name in ("age", "pay"):
        low, high = table[name].min(), table[name].max()
        for cell in released[name].cast(pl.String):
            ends = [int(end) for end in cell.strip("[]").split(", ")]
            total += (ends[-1] - ends[0]) / (high - low)
    return total / (2 * released.height)


NUMBERS = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "pay": {"role": "quasi-identifier", "kind": "numeric"},
        "ill": {"role": "confidential", "kind": "nominal"},
        "note": "other",
    },
}


def numbers(require=None, **protect):
    return NUMBERS | {
        "protect": {"method": "mondrian", "k": 5, **protect},
        "require": require or {},
    }


def people(n, seed, outliers=0):
    rng = np.random.default_rng(seed)
    X = rng.normal([40, 30], [10, 6], size=(n, 2))
    X[:outliers] *= rng.uniform(5, 15, size=(outliers, 2))
    return pl.DataFrame(
        {
            "age": np.rint(X[:, 0]).astype(np.int64),
            "pay": np.rint(X[:, 1]).astype(np.int64),
            "ill": [f"ill{i}" for i in rng.integers(0, 4, size=n)],
            "note": [f"note{i:03}" for i in range(n)],
        }
    )


@given(
    st.integers(10, 120),
    st.integers(0, 99),
    st.sampled_from(["0.02", "0.1", "0.5", "0.99"]),
    st.booleans(),
)
@settings(max_examples=40)
def test_what_is_required_holds_for_the_rows_that_stay(n, seed, share, relaxed):
    table = people(n, seed, outliers=n // 10)
    require = {
        "k-anonymity": 5,
        "l-diversity": {"l": 2, "column": "ill"},
        "t-closeness": {"t": Decimal("0.3"), "column": "ill"},
    }

    rules = numbers(require, record_suppression=Decimal(share), relaxed=relaxed)
    release = shoal.protect(table, rules)

    gone = release.manifest.suppressed
    assert gone == n - release.data.height <= float(share) * n
    assert all(check.holds for check in release.checks)
    whole = Counter(release.data["ill"])
    held = defaultdict(list)
    for age, pay, ill, _ in release.data.rows():
        held[age, pay].append(ill)
    for ills in held.values():
        assert len(ills) >= 5
        assert len(set(ills)) >= 2
        apart = sum(abs(ills.count(v) / len(ills) - whole[v] / whole.total()) for v in whole)
        assert apart / 2 <= 0.3 + 1e-12


@pytest.mark.parametrize("method", ["mondrian", "full-domain"])
def test_what_is_said_of_suppressed_people_names_all_columns_that_decide(method):
    """Whether a group stays may depend on what is required of confidential values, too."""
    require = {"t-closeness": {"t": Decimal("0.01"), "column": "ill"}}
    suppressed = {"method": method, "k": 5, "record_suppression": Decimal("0.5")}

    for required, named in ((None, "."), (require, ", given what is required of ill.")):
        texts = shoal.plan(numbers(required) | {"protect": suppressed}).not_claimed
        (said,) = (text for text in texts if "rows were suppressed" in text)
        assert said.endswith(f"was hard to group by age, pay{named}")


@pytest.mark.parametrize("seed", range(5))
def test_leaving_out_the_worst_rows_makes_the_rest_more_precise(seed):
    table = people(1000, seed, outliers=20)

    whole = shoal.protect(table, numbers()).data
    rest = shoal.protect(table, numbers(record_suppression=Decimal("0.05"))).data

    assert 950 <= rest.height < 1000
    assert ncp(rest, table) < 0.6 * ncp(whole, table)


@pytest.mark.parametrize("came", ["polars", "categories", "pandas", "arrow"])
@pytest.mark.parametrize("output", ["intervals", "centroids", "tree"])
def test_no_cell_of_a_row_that_is_left_out_is_written_anywhere(came, output, tmp_path):
    table = people(200, 1, outliers=8).with_columns(ill="note")
    if came in {"categories", "arrow"}:
        table = table.with_columns(pl.col("ill", "note").cast(pl.Categorical))
    handed = {
        "pandas": lambda: table.to_pandas().astype({"ill": "category", "note": "category"}),
        "arrow": table.to_arrow,
    }.get(came, lambda: table)()

    release = shoal.protect(handed, numbers(record_suppression=Decimal("0.1"), output=output))

    data = release.data
    kept = pl.DataFrame(data) if came == "arrow" else data
    if output == "tree":
        there = {name.removeprefix("ill=") for name in kept.columns if name.startswith("ill=")}
    else:
        there = set(kept["note"])
    gone = set(table["note"].cast(pl.String)) - there
    assert len(gone) == release.manifest.suppressed > 0
    path = tmp_path / "release.parquet"
    if came == "pandas":
        data.to_parquet(path, compression=None)
    elif came == "arrow":
        pytest.importorskip("pyarrow.parquet").write_table(data, path, compression="none")
    else:
        data.write_parquet(path, compression="uncompressed")
    raw = path.read_bytes() + repr(release.manifest).encode() + repr(data).encode()
    assert not [note for note in gone if note.encode() in raw]
    assert all(note.encode() in raw for note in there)


@given(st.integers(0, 99), st.integers(0, 99))
@settings(max_examples=15)
def test_who_is_left_out_does_not_depend_on_confidential_values(seed, other):
    """Also where t-closeness steers the second pass, and where equal values are parted."""
    table = people(150, seed, outliers=9)
    permuted = table.with_columns(table["ill"].shuffle(seed=other))
    rules = numbers(
        {"t-closeness": {"t": Decimal("0.4"), "column": "ill"}},
        record_suppression=Decimal("0.1"),
        relaxed=True,
        dimension="gain",
        target="ill",
    )

    kept = [set(shoal.protect(t, rules).data["note"]) for t in (table, permuted)]

    assert kept[0] == kept[1]
    assert len(kept[0]) < 150


def test_fewer_rows_are_left_out_where_the_rest_would_lack_diversity():
    """The far leaf alone has the second value: without it no grouping is diverse."""
    age = [*range(40), *[500, 600, 700, 800, 900]]
    table = pl.DataFrame(
        {"age": age, "pay": [1] * 45, "ill": ["a"] * 40 + ["b"] * 5, "note": ["n"] * 45}
    )
    diverse = {"l-diversity": {"l": 2, "column": "ill"}}

    free = shoal.protect(table, numbers(record_suppression=Decimal("0.2")))
    held = shoal.protect(table, numbers(diverse, record_suppression=Decimal("0.2")))

    assert "b" not in free.data["ill"]
    assert held.manifest.suppressed == 0
    assert held.checks[0].holds


def test_a_limit_below_a_leaf_and_a_table_without_loss_leave_everybody_in():
    table = people(100, 1, outliers=5)
    equal = table.with_columns(age=pl.lit(1), pay=pl.lit(2))

    for data, share in ((table, "0.03"), (equal, "0.9")):
        release = shoal.protect(data, numbers(record_suppression=Decimal(share)))
        assert release.data.height == 100
        assert release.manifest.suppressed == 0


# The rule of cormode2013.


def test_nodes_beyond_t_are_not_cut_and_nothing_is_claimed_from_it():
    table = pl.DataFrame({"age": range(64), "team": ["x"] * 64, "ill": list("ab" * 24 + "c" * 16)})

    free = shoal.protect(table, boxed(k=8, output="tree"))
    halted = shoal.protect(table, boxed(k=8, output="tree", halt_beyond=Decimal("0.3")))

    assert free.data["age_lower"].to_list() == [0, 8, 16, 24, 32, 40, 48, 56]
    assert halted.data["age_lower"].to_list() == [0, 8, 16, 24, 32, 40, 48]
    assert [claim.guarantee.name for claim in halted.claims] == ["k-anonymity"]
    assert "0.3-closeness of ill is not promised by halt_beyond" in str(halted.manifest)


def test_on_adult_the_rule_of_cormode2013_leaves_groups_far_beyond_t(reference):
    """What `not_claimed` says; categories are in the order of their names."""
    names = ["workclass", "education", "sex", "hours-per-week", "income"]
    table = reference("adult").select(*names, "occupation")
    columns = {
        name: {
            "role": "quasi-identifier",
            "kind": "nominal",
            "categories": sorted(table[name].unique()),
        }
        for name in names
    }
    columns["hours-per-week"] = {"role": "quasi-identifier", "kind": "numeric", "bounds": [1, 99]}
    columns["occupation"] = {"role": "confidential", "kind": "nominal"}
    rules = {
        "version": 1,
        "columns": columns,
        "protect": {"method": "mondrian", "k": 8, "output": "tree", "halt_beyond": Decimal("0.35")},
    }

    release = shoal.protect(table, rules)
    rules["require"] = {"t-closeness": {"t": Decimal("0.35"), "column": "occupation"}}
    (found,) = shoal.check(release.data, rules)

    assert not found.holds
    assert round(float(found.achieved), 2) == 0.75


# Persons.


def test_boxes_with_counts_are_refused_where_a_person_has_several_rows():
    rules = boxed(output="tree")
    rules["columns"]["person"] = {"role": "identifier", "privacy_unit": True}
    table = pl.DataFrame(
        {"age": [1, 1, 7, 7], "team": list("xxyy"), "ill": list("abca"), "person": [1, 1, 2, 3]}
    )

    with pytest.raises(InputError, match="found 1 more row than persons"):
        shoal.protect(table, rules)
    with pytest.raises(InputError, match="boxes of a tree count rows, but some persons have"):
        shoal.protect(table, rules | {"one_row_per_person": False})
