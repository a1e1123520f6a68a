"""Which claims suffice for which audience, through every entry point."""

import json
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.budget import budget_file
from shoal.cli.commands import app
from shoal.core import Audience, Claim, KAnonymity, ReleaseForm, Status
from shoal.errors import InputError, ShoalError
from shoal.hazmat.fakes import SeededNoise
from shoal.pipeline import audiences, planning, protect_table

COLUMNS = {
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
    "hours": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]},
    "town": {"role": "quasi-identifier", "kind": "nominal", "categories": ["a"], "public": True},
}
RANKED = {"method": "individual-ranking", "k": 3}
LAPLACE = {"method": "laplace", "epsilon": 1, "columns": ["age", "hours"]}


def stated(protect=RANKED, **more):
    return shoal.load_policy({"version": 1, "columns": COLUMNS, "protect": protect, **more})


def people(rows=30):
    return pl.DataFrame(
        {"age": range(20, 20 + rows), "hours": range(rows), "town": ["a"] * rows},
        schema_overrides={"age": pl.Int64, "hours": pl.Int64},
    )


def claim(status, columns):
    return Claim(
        guarantee=KAnonymity(3, tuple(columns)),
        status=status,
        basis="for the test",
        assumes=(),
        source="",
        release_form=ReleaseForm.LINKED_SHUFFLED,
    )


@given(
    st.sampled_from(Audience),
    st.lists(
        st.tuples(st.sampled_from(Status), st.sets(st.sampled_from(["age", "hours"]), min_size=1)),
        max_size=4,
    ),
)
def test_an_audience_needs_one_claim_of_a_good_status_on_all_keys_that_are_not_public(
    audience, made
):
    enough = {
        Audience.PUBLIC_USE: {Status.PROVED},
        Audience.SCIENTIFIC_USE: {Status.PROVED, Status.CONDITIONAL},
        Audience.SECURE_USE: set(Status),
    }[audience]
    claims = [claim(status, columns) for status, columns in made]

    reason = audiences.objection(replace(stated(), audience=audience), claims)

    fits = any(s in enough and columns == {"age", "hours"} for s, columns in made)
    assert (not reason) is (fits or audience is Audience.SECURE_USE)


def test_without_an_audience_any_claim_will_do():
    assert audiences.objection(stated(), []) == ""


def test_the_policy_states_the_audience_and_the_plan_refuses_what_will_not_do():
    with pytest.raises(InputError) as caught:
        shoal.plan(stated(release={"audience": "public-use"}))

    assert str(caught.value) == (
        "Audience 'public-use' (anybody) needs a claim that is proved for all quasi-identifiers "
        "together, but method 'individual-ranking' as set up has none. Choose another method, "
        "release form or audience."
    )
    planning.plan(stated(release={"audience": "secure-use"}))


def test_the_argument_wins_over_the_policy_and_the_manifest_tells_which_it_was():
    policy = stated(release={"audience": "public-use"})

    made = shoal.protect(people(), policy, audience="secure-use")
    plain = shoal.protect(people(), stated())

    assert made.manifest.audience == "secure-use"
    assert made.manifest.policy["release"] == {"audience": "public-use"}
    assert plain.manifest.audience is None


@pytest.mark.parametrize("name", ["opne", "", "Open"])
def test_an_unknown_audience_is_told_the_known_ones(name):
    known = "an audience among public-use, scientific-use, secure-use, found"
    with pytest.raises(InputError, match=known):
        shoal.plan(stated(), audience=name)


def test_a_misspelt_audience_in_a_policy_is_told_the_known_ones():
    with pytest.raises(InputError, match=r"release.audience: expected one of public-use, "):
        stated(release={"audience": "opne"})


def test_noise_that_is_not_secure_carries_no_claim_for_an_open_release():
    with pytest.raises(InputError, match="this source of noise has none"):
        shoal.protect(people(), stated(LAPLACE), audience="public-use", noise=SeededNoise(1))


def test_after_a_look_an_epsilon_does_for_a_partner_and_not_for_all_and_nothing_is_spent(tmp_path):
    path = tmp_path / "budget.sqlite"
    budget_file.init(path, "people", Fraction(5))
    policy = stated(LAPLACE, budget={"file": str(path), "source": "people"})
    budget_file.record_inspection(
        path, "people", budget_file.Inspection.TABLE, policy=policy.digest, note=""
    )

    with pytest.raises(InputError, match="after an inspection of the table itself has none"):
        shoal.protect(people(), policy, audience="public-use")

    assert budget_file.account(path, "people").spent == 0
    shoal.protect(people(), policy, audience="scientific-use")
    assert budget_file.account(path, "people").spent == 1


@pytest.mark.parametrize(
    "more", [{"release": {"audience": "public-use"}}, {"require": {"differential-privacy": 1}}]
)
def test_what_a_look_stops_is_foreseen_without_a_table_in_the_words_of_the_run(tmp_path, more):
    path = tmp_path / "budget.sqlite"
    budget_file.init(path, "people", Fraction(5))
    budget = {"file": str(path), "source": "people"}
    policy = stated(LAPLACE, budget=budget, **more)
    before = protect_table.foreseen(policy)
    budget_file.record_inspection(
        path, "people", budget_file.Inspection.TABLE, policy=policy.digest, note=""
    )

    with pytest.raises(ShoalError) as foreseen:
        protect_table.foreseen(policy)
    with pytest.raises(ShoalError) as met:
        shoal.protect(people(), policy)
    after = protect_table.foreseen(stated(LAPLACE, budget=budget))

    assert (type(foreseen.value), str(foreseen.value)) == (type(met.value), str(met.value))
    assert {one.status for one in before.claims} == {Status.PROVED}
    assert {one.status for one in after.claims} == {Status.CONDITIONAL}
    assert after.claims == shoal.protect(people(), stated(LAPLACE, budget=budget)).claims


def test_an_offer_that_will_not_do_for_the_audience_says_so():
    policy = stated(
        {"method": "mdav", "k": 3}, release={"audience": "public-use"}, one_row_per_person=True
    )

    offers = {one.method.name: one for one in planning.offers(policy)}

    assert offers["mdav"].unmet == ""
    assert offers["individual-ranking"].unmet.startswith("Audience 'public-use'")
    assert offers["individual-ranking"].claims


def test_the_command_refuses_with_2_before_the_table_is_read_and_records_the_audience(tmp_path):
    (tmp_path / "policy.toml").write_text(
        'version = 1\n[columns]\nage = { role = "quasi-identifier", kind = "numeric" }\n'
        'hours = { role = "quasi-identifier", kind = "numeric" }\n'
        '[protect]\nmethod = "individual-ranking"\nk = 3\n[release]\naudience = "public-use"\n',
        encoding="utf-8",
    )
    command = ["protect", str(tmp_path / "people.csv"), "--policy", str(tmp_path / "policy.toml"),
               "--out", str(tmp_path / "out"), "--no-evaluate"]  # fmt: skip

    refused = CliRunner().invoke(app, command)  # There is no table yet.
    people().drop("town").write_csv(tmp_path / "people.csv")
    done = CliRunner().invoke(app, [*command, "--audience", "secure-use"])

    assert refused.exit_code == 2
    assert "Audience 'public-use'" in refused.output
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    figures = json.loads((tmp_path / "out.internal" / "figures.json").read_text("utf-8"))
    assert manifest["audience"] == "secure-use"
    assert "--audience secure-use" in figures["again"]["command"]
    assert "audience='secure-use'" in figures["again"]["python"]
