"""Bucketization in a release: what is promised, what is written, what is refused."""

from collections import Counter, defaultdict
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cells import cells_of

import shoal
from shoal.core import Distance, TCloseness
from shoal.engine.check_table import check_frame
from shoal.errors import ClaimViolationError, InputError
from shoal.policy.load import load

TREE = "flu,light,any\ncold,light,any\ncancer,heavy,any\nstroke,heavy,any\n"
ILLS = ["flu", "cold", "cancer", "stroke"]
GRADES = ["low", "mid", "high"]


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory):
    path = tmp_path_factory.mktemp("bucketization") / "ill.csv"
    path.write_text(TREE)
    return str(path)


def policy(hierarchy, confidential=("ill",), require=None, **protect):
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "team": {"role": "quasi-identifier", "kind": "nominal"},
        "ill": {"kind": "nominal", "hierarchy": hierarchy},
        "ward": {"kind": "nominal"},
        "grade": {"kind": "ordinal", "categories": GRADES},
        "income": {"kind": "numeric"},
        "since": {"kind": "date"},
    }
    for name in ("ill", "ward", "grade", "income", "since"):
        columns[name]["role"] = "confidential" if name in confidential else "identifier"
    return {
        "version": 1,
        "columns": columns,
        "protect": {"method": "bucketization", "k": 4, "t": 2, **protect},
        "require": require or {},
    }


@st.composite
def tables(draw):
    n = draw(st.integers(4, 50))

    def drawn(values, dtype, *, missing=True):
        return pl.Series(draw(cells_of(values, n, missing=missing)), dtype=dtype)

    return pl.DataFrame(
        {
            "age": drawn(range(10), pl.Int64),
            "team": drawn("xyz", pl.String),
            "ill": drawn(ILLS, pl.String),
            "ward": drawn("abcde", pl.String, missing=False),
            "grade": drawn(GRADES, pl.String),
            "income": drawn([0, 0, 0, 0, 0, 0, 1, 2, 40, 900], pl.Int64),
            "since": drawn(range(100), pl.Int32).cast(pl.Date),
        }
    )


CONFIDENTIAL = st.lists(
    st.sampled_from(["ill", "ward", "grade", "income", "since"]),
    min_size=1,
    max_size=3,
    unique=True,
)


@given(
    tables(),
    CONFIDENTIAL,
    st.sampled_from(["1", "1.1", "1.5", "2", "3.7"]),
    st.sampled_from(["mean", "median", "medoid", "mode"]),
    st.none() | st.integers(2, 4),
)
@settings(max_examples=80)
def test_every_release_is_close_by_a_naive_recount(hierarchy, table, confidential, t, aggregate, b):
    asked = {"t": Decimal(t), "aggregate": aggregate} | ({} if b is None else {"b": b})

    done = shoal.protect(table, policy(hierarchy, confidential, **asked))

    names = [name for name in policy(hierarchy)["columns"] if name in confidential]
    whole = Counter(done.data.select(names).rows())
    classes = defaultdict(Counter)
    for keys, values in zip(
        done.data.select("age", "team").rows(), done.data.select(names).rows(), strict=True
    ):
        classes[keys][values] += 1
    for inside in classes.values():
        e = inside.total()
        assert e >= 4
        for value, count in whole.items():
            ratio = Fraction(inside[value], e) / Fraction(count, table.height)
            assert 1 / Fraction(t) <= ratio <= Fraction(t)
    assert [check.holds for check in done.checks] == [True, True]
    close = done.claims[1].guarantee
    assert close == TCloseness(Fraction(t), Distance.RATIO, tuple(names), ("age", "team"))
    again = check_frame(done.data, close, load(policy(hierarchy, confidential)).schema)
    assert again.holds
    assert (len(classes) == 1) or not done.manifest.notes


@given(tables(), CONFIDENTIAL)
@settings(max_examples=40)
def test_what_is_written_covers_what_was_there(hierarchy, table, confidential):
    released = shoal.protect(table, policy(hierarchy, confidential), keep_order=True).data
    above = {row.split(",")[0]: row.split(",") for row in TREE.split()}

    for before, after in zip(table.rows(named=True), released.rows(named=True), strict=True):
        for name in confidential:
            old, new = before[name], after[name]
            if old is None:
                assert new is None or new.endswith(" or missing")
                continue
            if not isinstance(new, str):
                assert new == old  # every bucket is one value: the column is as it was
                continue
            new = new.removesuffix(" or missing")
            parts = new.strip("[]{}").split(", ")
            if name == "ill":
                assert set(parts) & set(above[old])
            elif name == "ward":
                assert old in parts
            elif name == "grade":
                assert GRADES.index(parts[0]) <= GRADES.index(old) <= GRADES.index(parts[-1])
            elif name == "income":
                assert int(parts[0]) <= old <= int(parts[-1])
            else:
                low, high = date.fromisoformat(parts[0]), date.fromisoformat(parts[-1])
                assert low <= old <= high


def people(n=24):
    return pl.DataFrame(
        {
            "age": list(range(n)),
            "team": ["x", "y"] * (n // 2),
            "ill": (ILLS * n)[:n],
            "ward": (list("abcde") * n)[:n],
            "grade": (GRADES * n)[:n],
            "income": [100 * i for i in range(n)],
            "since": [date(2000, 1, 1) + timedelta(days=i) for i in range(n)],
        }
    )


def texts(hierarchy, name, **protect):
    done = shoal.protect(people(), policy(hierarchy, [name], **protect))
    return sorted(done.data[name].unique().to_list())


def test_buckets_are_named_by_ranges_branches_and_sets(hierarchy):
    assert texts(hierarchy, "income") == ["[0, 700]", "[1600, 2300]", "[800, 1500]"]
    assert texts(hierarchy, "grade", b=2) == ["[mid, high]", "low"]
    assert texts(hierarchy, "grade") == sorted(GRADES)
    assert texts(hierarchy, "ill", b=2) == ["heavy", "light"]
    assert texts(hierarchy, "ill", b=3) == ["flu", "stroke", "{cold, cancer}"]
    assert texts(hierarchy, "ward", b=2) == ["{a, b}", "{c, d, e}"]
    assert texts(hierarchy, "since", b=2) == [
        "[2000-01-01, 2000-01-12]",
        "[2000-01-13, 2000-01-24]",
    ]


def test_a_bucket_that_cuts_a_branch_names_its_parts(hierarchy):
    lopsided = people().with_columns(
        ill=pl.Series(["flu"] * 12 + ["cold"] * 4 + ["cancer"] * 4 + ["stroke"] * 4)
    )

    done = shoal.protect(lopsided, policy(hierarchy, b=2))

    assert sorted(done.data["ill"].unique().to_list()) == ["flu", "{cold, heavy}"]


def test_missing_cells_share_the_last_bucket_or_have_their_own(hierarchy):
    some = people().with_columns(income=pl.when(pl.col("income") < 2100).then("income"))
    many = people().with_columns(income=pl.when(pl.col("income") < 1200).then("income"))

    def written(table):
        done = shoal.protect(table, policy(hierarchy, ["income"], b=2))
        return set(done.data["income"].to_list())

    assert written(some) == {"[0, 1100]", "[1200, 2000] or missing"}
    assert written(many) == {"[0, 1100]", None}


def test_one_class_is_called_trivial(hierarchy):
    whole = shoal.protect(people(), policy(hierarchy, k=24))
    halves = shoal.protect(people(), policy(hierarchy, k=12))
    same = shoal.protect(people().with_columns(ill=pl.lit("flu")), policy(hierarchy, t=1))

    assert whole.manifest.notes[-1].startswith(
        "The release is trivial: the whole table became one class"
    )
    assert halves.manifest.notes == []
    assert same.manifest.notes == []
    assert same.checks[0].remarks["classes"] == 6
    assert set(same.data["ill"]) == {"flu"}


@pytest.mark.parametrize(("each", "k", "classes"), [(None, 4, 6), (1, 8, 3), (2, 4, 6)])
def test_l_sets_the_number_of_classes_and_raises_the_promised_k(hierarchy, each, k, classes):
    rules = policy(hierarchy, confidential=("income",), t=2, l=each)
    frame = people().with_columns(income=pl.int_range(pl.len()))
    assert shoal.plan(rules).claims[0].guarantee.k == 4

    done = shoal.protect(frame, rules)

    assert frame.height == 24
    assert done.claims[0].guarantee.k == k
    assert done.checks[0].remarks["classes"] == classes
    assert all(check.holds for check in done.checks)


@pytest.mark.parametrize(("t", "each", "buckets", "classes", "size"), [
    (3, 5, 4, 20, 54), (2, 1, 3, 3, 360), (1, 2, 2, 4, 270), (4, 6, 5, 30, 36),
])  # fmt: skip
@pytest.mark.parametrize("k", [None, 2])
def test_classes_are_those_of_section_6_2_whatever_k_is(t, each, buckets, classes, size, k):
    """k = N / ((t + 1) l) for the paper's 1,080 records, with t + 1 buckets."""
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "income": {"role": "confidential", "kind": "numeric"},
    }
    rules = {"version": 1, "columns": columns,
             "protect": {"method": "bucketization", "t": t, "l": each}}  # fmt: skip
    if k is not None:
        rules["protect"]["k"] = k
    frame = pl.DataFrame({"age": [i * 7 % 1081 for i in range(1080)], "income": range(1080)})
    assert shoal.plan(rules).claims[0].guarantee.k == buckets

    done = shoal.protect(frame, rules)

    assert done.claims[0].guarantee.k == size
    assert done.data["income"].n_unique() == buckets
    assert done.data["age"].value_counts()["count"].to_list() == [size] * classes
    assert all(check.holds for check in done.checks)


def test_the_largest_l_leaves_a_record_of_every_bucket(hierarchy):
    """l up to N / (t + 1)^2, as the paper has it; without k and l there is no size."""
    frame = people().with_columns(income=pl.int_range(pl.len()))
    rules = policy(hierarchy, confidential=("income",), t=2, l=2)
    del rules["protect"]["k"]
    assert shoal.protect(frame, rules).claims[0].guarantee.k == 4

    rules["protect"]["l"] = 3
    with pytest.raises(InputError, match=r"fewer than k = 3\. Lower l to at most 2\."):
        shoal.protect(frame, rules)
    del rules["protect"]["l"]
    with pytest.raises(InputError, match="expected k, or l, from which k follows, found neither"):
        shoal.plan(rules)


def test_an_l_that_leaves_fewer_than_k_in_a_class_is_told(hierarchy):
    message = (
        r"3 buckets with 3 classes each leave 2 of 24 rows per class, fewer than k = 4\. "
        r"Lower l to at most 2\."
    )
    with pytest.raises(InputError, match=message):
        shoal.protect(people(), policy(hierarchy, confidential=("income",), l=3))


def test_it_covers_what_a_policy_requires_of_the_released_table(hierarchy):
    wanted = {"t-closeness": {"t": 2, "distance": "ratio", "column": "ill"}, "k-anonymity": 4}

    done = shoal.protect(people(), policy(hierarchy, require=wanted, t=Decimal("1.5")))

    assert [check.holds for check in done.checks] == [True] * 3
    strict = {"t-closeness": {"t": 1, "distance": "ratio", "column": "ill"}}
    with pytest.raises(ClaimViolationError, match="1-closeness"):
        shoal.protect(people(22), policy(hierarchy, require=strict))


def test_the_intruders_epsilon_is_stated_as_not_claimed(hierarchy):
    done = shoal.protect(people(), policy(hierarchy))

    text = done.manifest.not_claimed[2]
    assert text.startswith("Not differential privacy. 2-closeness")
    assert "exp(1.386)" in text
    assert "if the prior is the same public distribution" in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"confidential": ()}, "needs a confidential column"),
        ({"t": Decimal("0.5")}, "t: "),
        ({"b": 5}, "b: expected at most k = 4, because every class holds every bucket, found 5"),
        ({"b": 1}, "b: "),
        ({"columns": ["age"]}, "must list every quasi-identifier"),
        ({"columns": ["age", "team", "ill"]}, "must not list 'ill'"),
    ],
)
def test_wrong_parameters_are_told(hierarchy, change, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.plan(policy(hierarchy, **change))


def test_a_table_smaller_than_k_is_told(hierarchy):
    with pytest.raises(InputError, match="Cannot form one group of k=4 from 2 rows"):
        shoal.protect(people(2), policy(hierarchy))


def test_a_policy_without_quasi_identifiers_is_told(hierarchy):
    bare = policy(hierarchy, columns=["note"])
    bare["columns"]["note"] = {"role": "other", "kind": "numeric"}
    for name in ("age", "team"):
        bare["columns"][name] = "identifier"

    with pytest.raises(InputError, match="needs a quasi-identifier"):
        shoal.plan(bare)
