"""One suite for every registered method: registering is how a method opts in."""

from collections import Counter
from datetime import date

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.methods import REGISTRY

LEVELS = ["a", "b", "c", "d"]
TAXONOMY = ["a,ab,all", "b,ab,all", "c,cd,all", "d,cd,all"]
DAYS = [date(1970, 1, 1), date(1970, 1, 10)]
METHODS = sorted(REGISTRY)


def schema(taxonomy):
    return {
        "name": "identifier",
        "number": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-3, 3]},
        "rank": {"role": "quasi-identifier", "kind": "ordinal", "categories": LEVELS},
        "tree": {"role": "quasi-identifier", "kind": "nominal", "taxonomy": str(taxonomy)},
        "flat": {"role": "quasi-identifier", "kind": "nominal", "categories": LEVELS},
        "day": {"role": "quasi-identifier", "kind": "date", "bounds": DAYS},
        "secret": {"role": "confidential", "kind": "nominal"},
        "batch": "other",
    }


@st.composite
def tables(draw):
    n = draw(st.integers(5, 40))

    def column(values):
        return draw(st.lists(st.none() | values, min_size=n, max_size=n))

    frame = pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(n)],
            "number": pl.Series(column(st.integers(-3, 3)), dtype=pl.Int64),
            "rank": pl.Series(column(st.sampled_from(LEVELS)), dtype=pl.String),
            "tree": pl.Series(column(st.sampled_from(LEVELS)), dtype=pl.String),
            "flat": pl.Series(column(st.sampled_from(LEVELS)), dtype=pl.String),
            "day": pl.Series(column(st.integers(0, 9)), dtype=pl.Int32).cast(pl.Date),
            "secret": pl.Series(column(st.sampled_from(LEVELS)), dtype=pl.String),
            "batch": pl.Series(column(st.integers(0, 1)), dtype=pl.Int64),
        }
    )
    return frame, draw(st.permutations(range(n)))


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory):
    path = tmp_path_factory.mktemp("contract") / "tree.csv"
    path.write_text("\n".join(TAXONOMY))
    return path


def run(frame, name, taxonomy, **protect):
    method = REGISTRY[name]
    policy = {
        "version": 1,
        "columns": schema(taxonomy),
        "protect": {"method": name, **method.example, **protect},
    }
    return shoal.protect(frame, policy, keep_order=True)


@pytest.mark.parametrize("name", METHODS)
@given(case=tables(), aggregate=st.sampled_from(["mean", "median", "medoid", "mode"]))
@settings(max_examples=40)
def test_every_claim_holds_by_an_independent_count(taxonomy, name, case, aggregate):
    frame, _ = case

    release = run(frame, name, taxonomy, aggregate=aggregate)

    assert release.claims
    for claim in release.claims:
        rows = release.data.select(claim.guarantee.columns).rows()
        assert min(Counter(rows).values()) >= claim.guarantee.k
    assert all(check.holds for check in release.checks)


@pytest.mark.parametrize("name", METHODS)
@given(case=tables())
@settings(max_examples=30)
def test_permuting_the_rows_of_the_file_changes_nothing_but_their_order(taxonomy, name, case):
    frame, permutation = case

    straight = run(frame, name, taxonomy).data
    permuted = run(frame[list(permutation)], name, taxonomy).data

    assert Counter(straight.rows()) == Counter(permuted.rows())


@pytest.mark.parametrize("name", METHODS)
@given(case=tables())
@settings(max_examples=20)
def test_rows_columns_types_and_unprotected_cells_stay(taxonomy, name, case):
    frame, _ = case

    released = run(frame, name, taxonomy).data

    assert released.columns == frame.columns[1:]
    assert released.height == frame.height
    for column in ("secret", "batch"):
        assert released[column].equals(frame[column])
    assert [released.schema[c] for c in ("rank", "tree", "flat", "day")] == [
        frame.schema[c] for c in ("rank", "tree", "flat", "day")
    ]


@pytest.mark.parametrize("name", METHODS)
@given(case=tables())
@settings(max_examples=20)
def test_whole_numbers_stay_whole_on_request(taxonomy, name, case):
    frame, _ = case

    released = run(frame, name, taxonomy, integers=True).data

    assert released.schema["number"] == pl.Int64


@pytest.mark.parametrize("name", METHODS)
@given(values=st.lists(st.integers(-1000, 1000), min_size=5, max_size=60))
@settings(max_examples=40)
def test_means_are_kept_where_nothing_is_missing(name, values):
    policy = {
        "version": 1,
        "columns": {"x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-1000, 1000]}},
        "protect": {"method": name, **REGISTRY[name].example},
    }

    released = shoal.protect(pl.DataFrame({"x": values}), policy).data

    assert released["x"].mean() == pytest.approx(sum(values) / len(values), abs=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_names_its_reference_and_says_what_it_does(name):
    method = REGISTRY[name]

    assert method.summary.endswith(".")
    assert len(method.reference) > 20
    for field in method.parameters.model_fields.values():
        assert field.description
