import json
from collections import Counter
from copy import deepcopy
from dataclasses import replace

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import io
from shoal.core import KAnonymity, ReleaseForm, Schema
from shoal.engine.check_table import check_frame
from shoal.errors import ClaimViolationError, InputError, InternalError
from shoal.methods import Masked
from shoal.pipeline import protect_table


def test_a_release_holds_data_claims_checks_and_never_the_original(people, policy):
    done = shoal.protect(people, policy)

    assert done.data.columns == ["age", "region", "income"]
    assert [claim.status for claim in done.claims] == ["proved"]
    assert done.checks[0].achieved >= 3
    held = {id(value) for value in vars(done).values()}
    assert id(people) not in held
    assert "person 3" not in repr(vars(done))


def test_the_repr_tells_claims_and_checks_and_html_escapes_names(people, policy):
    people = people.rename({"age": "<b>age"})
    policy["columns"]["<b>age"] = policy["columns"].pop("age")

    done = shoal.protect(people, policy)

    assert "claim  proved" in repr(done)
    assert "check  holds" in repr(done)
    assert "<b>age" not in done._repr_html_()
    assert "&lt;b&gt;age" in done._repr_html_()


@pytest.mark.parametrize(
    "make", [pl.DataFrame.clone, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow]
)
def test_the_release_has_the_type_that_was_handed_in(people, policy, make):
    data = make(people)

    done = shoal.protect(data, policy)

    assert type(done.data) is type(data)
    assert isinstance(data, pl.DataFrame | pd.DataFrame | pa.Table)


def test_rows_are_shuffled_by_default_and_kept_on_request(policy):
    n = 2000
    frame = pl.DataFrame(
        {"name": ["x"] * n, "age": [1] * n, "region": ["a"] * n, "income": range(n)}
    )

    shuffled = shoal.protect(frame, policy)
    kept = shoal.protect(frame, policy, keep_order=True)

    # That a random order of 2,000 rows is the file's has probability 1/2000!.
    assert shuffled.data["income"].to_list() != list(range(n))
    assert sorted(shuffled.data["income"]) == list(range(n))
    assert kept.data["income"].to_list() == list(range(n))
    assert shuffled.manifest.release_form == "linked-shuffled"
    assert kept.manifest.release_form == "row-aligned"
    assert kept.claims[0].release_form is ReleaseForm.ROW_ALIGNED


def test_the_policy_can_state_the_release_form(people, policy):
    policy["protect"]["release_form"] = "row-aligned"
    assert shoal.protect(people, policy).manifest.release_form == "row-aligned"

    policy["protect"]["release_form"] = "synthetic"
    with pytest.raises(InputError, match="no release form 'synthetic'"):
        shoal.plan(policy)


def test_a_requirement_that_the_method_cannot_promise_stops_at_planning(policy):
    policy["protect"]["method"] = "individual-ranking"
    policy["require"] = {"k-anonymity": 3}

    with pytest.raises(ClaimViolationError) as stopped:
        shoal.plan(policy)

    assert "individual-ranking" in str(stopped.value)
    assert "These methods can promise it: " in str(stopped.value)
    assert "mdav" in str(stopped.value)


def test_individual_ranking_meets_a_requirement_about_a_single_column(people, policy):
    policy["columns"]["region"] = "other"
    policy["protect"]["method"] = "individual-ranking"
    policy["require"] = {"k-anonymity": 3}

    done = shoal.protect(people, policy)

    assert done.checks[0].guarantee.columns == ("age",)
    assert not done.manifest.not_claimed


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"k": 2}, r"promises 2-anonymity of age \+ region; raise its k to 3"),
        ({"columns": ["age"]}, "leaves out region"),
    ],
)
def test_too_small_a_k_or_too_few_columns_stop_at_planning(policy, change, sentence):
    policy["protect"].update(change)
    policy["require"] = {"k-anonymity": 3}

    with pytest.raises(ClaimViolationError, match=sentence):
        shoal.plan(policy)


def test_a_method_that_breaks_its_promise_is_stopped_as_our_bug(people, policy):
    planned = protect_table.plan(policy)
    lazy = replace(planned.method, run=lambda table, _setting, _tools: Masked(table))

    with pytest.raises(InternalError, match="does not hold"):
        protect_table.run(replace(planned, method=lazy), io.from_native(people))


def test_one_row_per_person_is_checked_where_a_column_numbers_the_persons(people, policy):
    policy["columns"]["name"] = {"role": "identifier", "privacy_unit": True}
    assert not any("one row" in text for text in shoal.plan(policy).claims[0].assumes)

    with pytest.raises(InputError, match=r"1 more row than persons\. Correct the table, or remove"):
        shoal.protect(
            people.with_columns(name=pl.col("name").replace("person 0", "person 1")), policy
        )


def test_what_the_policy_says_and_the_method_does_not_use_is_noted(people, policy):
    policy["columns"]["income"] |= {"sampling_weight": True}
    policy["columns"]["region"] |= {"stratum": True, "public": True}

    notes = " ".join(shoal.protect(people, policy).manifest.notes)

    for word in (
        "weight in column 'income'",
        "stratum in column 'region'",
        "declared public: region",
    ):
        assert word in notes


def test_the_manifest_is_plain_json_and_holds_what_the_issue_names(people, policy):
    manifest = shoal.protect(people, policy).manifest.as_values()

    plain = json.loads(json.dumps(manifest))

    assert plain == manifest or json.dumps(plain) == json.dumps(manifest)
    assert {"shoal_version", "policy", "policy_digest", "claims", "checks", "privacy_losses",
            "created"} <= plain.keys()  # fmt: skip
    claim = plain["claims"][0]
    assert claim.keys() == {"guarantee", "status", "basis", "assumes", "source", "release_form"}
    assert claim["guarantee"] == {"name": "k-anonymity", "k": 3, "columns": ["age", "region"]}


def test_check_recomputes_k_on_any_table_and_names_rows_as_witness(policy):
    policy["require"] = {"k-anonymity": 3}
    released = pl.DataFrame(
        {
            "age": ["[20, 30)"] * 3 + ["*"] * 2,
            "region": ["north"] * 3 + ["*"] * 2,
            "income": [1, 2, 3, 4, 5],
        }
    )

    (check,) = shoal.check(released, policy)

    assert not check.holds
    assert check.achieved == 2
    assert check.witness == {"size": 2, "rows": [4, 5]}


def test_check_reports_k_under_both_readings_of_missing(policy):
    released = pl.DataFrame({"age": [1, 1, None], "region": ["a", "a", "a"], "income": [1, 2, 3]})

    (check,) = shoal.check(released, policy)

    assert check.achieved == 1
    assert check.witness["rows"] == [3]
    assert check.remarks["k_if_missing_matches_anything"] == 3


def test_check_refuses_an_identifier_an_unknown_and_a_lacking_column(people, policy):
    with pytest.raises(ClaimViolationError, match="identifier column 'name'"):
        shoal.check(people, policy)
    with pytest.raises(InputError, match="'agee' that the policy does not name"):
        shoal.check(people.drop("name").rename({"age": "agee"}), policy)
    with pytest.raises(InputError, match="lacks the column 'age'"):
        shoal.check(people.drop("name", "age"), policy)


def test_our_check_agrees_with_an_independent_count_on_the_sample():
    policy = shoal.load_policy(shoal.sample.folder() / "people.toml")

    done = shoal.protect(shoal.sample.load(), policy)

    keys = ["age", "sex", "region", "education", "marital"]
    smallest = min(Counter(done.data.select(keys).rows()).values())
    assert done.checks[0].achieved == smallest == 5


def test_an_l_diversity_that_fails_names_the_methods_that_steer_towards_it(people, policy):
    same = people.with_columns(income=pl.lit(1000))
    required = {"l-diversity": {"l": 2, "column": "income"}}

    with pytest.raises(
        ClaimViolationError,
        match=r"\(achieved 1\)\. These methods can promise it: full-domain, mondrian\.",
    ):
        shoal.protect(same, {**policy, "require": required})


def test_labels_come_along_for_released_columns_only(people, policy):
    raw = io.Raw(people, labels={"region": {"north": "North"}},
                 column_labels={"name": "Name", "age": "Age in years"})  # fmt: skip

    done = protect_table.run(protect_table.plan(policy), raw).release

    assert done.labels == {
        "columns": {"age": "Age in years"},
        "values": {"region": {"north": "North"}},
        "measures": {"age": "scale", "region": "nominal", "income": "scale"},
    }


@given(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=20))
def test_one_column_is_checked_alike_by_sorting_and_by_counting(values):
    floats = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    texts = floats.cast(pl.String)

    quick = check_frame(floats, KAnonymity(1, ("x",)), Schema(()))
    slow = check_frame(texts, KAnonymity(1, ("x",)), Schema(()))

    assert quick.achieved == slow.achieved == min(Counter(values).values())
    other = "k_if_missing_matches_anything"
    assert quick.remarks.get(other) == slow.remarks.get(other)


EPSILON = {
    "version": 1,
    "columns": {
        "name": "identifier",
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
        "region": {"role": "quasi-identifier", "kind": "nominal", "categories": ["north", "rest"],
                   "other": "rest"},
        "income": {"role": "confidential", "kind": "numeric", "bounds": [0, 100]},
    },
    "protect": {"method": "laplace", "epsilon": 1},
}  # fmt: skip


@pytest.mark.parametrize("flag", ["privacy_unit", "household", "stratum", None])
@pytest.mark.parametrize("noisy", [False, True])
def test_no_identifier_is_released_whatever_its_flag(people, policy, noisy, flag):
    stated = deepcopy(EPSILON if noisy else policy)
    stated["columns"]["name"] = {"role": "identifier"} | ({} if flag is None else {flag: True})

    done = shoal.protect(people, stated)

    assert done.data.columns == ["age", "region", "income"]
    assert "person 3" not in repr(vars(done))


def test_beside_noise_the_labels_of_a_file_are_dropped_and_those_of_the_policy_released(people):
    """Labels of a file may list the values of its table."""
    raw = io.Raw(people, labels={"region": {"north": "North", "isle": "The isle"}},
                 column_labels={"region": "Region"}, measures={"region": "ordinal"})  # fmt: skip
    stated = deepcopy(EPSILON)
    stated["columns"]["region"] |= {"label": "Part", "value_labels": {"rest": "Elsewhere"}}

    silent = protect_table.run(protect_table.plan(EPSILON), raw).release
    done = protect_table.run(protect_table.plan(stated), raw).release

    assert silent.labels == {}
    assert done.labels == {
        "columns": {"region": "Part"}, "values": {"region": {"rest": "Elsewhere"}},
        "measures": {"age": "scale", "region": "nominal", "income": "scale"},
    }  # fmt: skip


def test_labels_of_the_policy_come_before_those_of_the_file(people, policy):
    stated = deepcopy(policy)
    stated["columns"]["region"] |= {"label": "Part"}
    raw = io.Raw(people, column_labels={"region": "Region", "age": "Age"})

    done = protect_table.run(protect_table.plan(stated), raw).release

    assert done.labels["columns"] == {"region": "Part", "age": "Age"}


def test_a_method_that_forgets_an_entry_is_stopped_as_our_bug(people):
    planned = protect_table.plan(EPSILON)

    def forgetful(table, setting, tools):
        done = planned.method.run(table, setting, tools)
        return replace(done, privacy_losses=done.privacy_losses[1:])

    with pytest.raises(InternalError, match="derives epsilon"):
        protect_table.run(
            replace(planned, method=replace(planned.method, run=forgetful)), io.from_native(people)
        )


def test_which_rows_of_a_person_stay_cannot_be_foreseen():
    """Of 40 rows one stays, in each of 12 runs: all the same with probability 40^-11."""
    stated = {
        "version": 1,
        "columns": {
            "person": {"role": "identifier", "privacy_unit": True, "max_contributions": 1},
            "x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 40], "step": 1},
        },
        "protect": {"method": "privtree", "epsilon": 1},
    }
    planned, seen = protect_table.plan(stated), set()

    def watched(table, setting, tools):
        seen.add(table.frame["x"].item())
        return planned.method.run(table, setting, tools)

    watching = replace(planned, method=replace(planned.method, run=watched))
    for _ in range(12):
        protect_table.run(
            watching, io.from_native(pl.DataFrame({"person": [1] * 40, "x": range(40)}))
        )

    assert len(seen) > 1
