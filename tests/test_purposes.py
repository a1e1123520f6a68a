"""Which claims will do for whom, by every door."""

import json
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal import planning, purposes
from shoal.cli import app
from shoal.core import Claim, KAnonymity, Purpose, ReleaseForm, Status
from shoal.errors import InputError
from shoal.hazmat import budget
from shoal.hazmat.fakes import SeededNoise

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
    st.sampled_from(Purpose),
    st.lists(
        st.tuples(st.sampled_from(Status), st.sets(st.sampled_from(["age", "hours"]), min_size=1)),
        max_size=4,
    ),
)
def test_a_purpose_needs_one_claim_of_a_good_status_on_all_keys_that_are_not_public(purpose, made):
    enough = {
        Purpose.OPEN: {Status.PROVED},
        Purpose.PARTNER: {Status.PROVED, Status.CONDITIONAL},
        Purpose.INTERNAL: set(Status),
    }[purpose]
    claims = [claim(status, columns) for status, columns in made]

    reason = purposes.objection(replace(stated(), purpose=purpose), claims)

    fits = any(s in enough and columns == {"age", "hours"} for s, columns in made)
    assert (not reason) is (fits or purpose is Purpose.INTERNAL)


def test_without_a_purpose_any_claim_will_do():
    assert purposes.objection(stated(), []) == ""


def test_the_policy_states_the_purpose_and_the_plan_refuses_what_will_not_do():
    with pytest.raises(InputError) as caught:
        shoal.plan(stated(release={"purpose": "open"}))

    assert str(caught.value) == (
        "Purpose 'open' (open release) needs a claim that is proved for all quasi-identifiers "
        "together, and method 'individual-ranking' as set up carries none. Choose another method, "
        "release form or purpose."
    )
    planning.plan(stated(release={"purpose": "internal"}))


def test_the_argument_wins_over_the_policy_and_the_manifest_tells_which_it_was():
    policy = stated(release={"purpose": "open"})

    release = shoal.protect(people(), policy, purpose="internal")
    plain = shoal.protect(people(), stated())

    assert release.manifest["purpose"] == "internal"
    assert release.manifest["policy"]["release"] == {"purpose": "open"}
    assert plain.manifest["purpose"] is None


@pytest.mark.parametrize("name", ["opne", "", "Open"])
def test_an_unknown_purpose_is_told_the_known_ones(name):
    with pytest.raises(InputError, match="a purpose among open, partner, internal, found"):
        shoal.plan(stated(), purpose=name)


def test_a_misspelt_purpose_in_a_policy_is_told_the_known_ones():
    with pytest.raises(InputError, match=r"release.purpose: expected one of open, partner"):
        stated(release={"purpose": "opne"})


def test_noise_that_is_not_secure_carries_no_claim_for_an_open_release():
    with pytest.raises(InputError, match="this source of noise carries none"):
        shoal.protect(people(), stated(LAPLACE), purpose="open", noise=SeededNoise(1))


def test_after_a_look_an_epsilon_does_for_a_partner_and_not_for_all_and_nothing_is_spent(tmp_path):
    path = tmp_path / "budget.sqlite"
    budget.init(path, "people", Fraction(5))
    policy = stated(LAPLACE, ledger={"file": str(path), "source": "people"})
    budget.look(path, "people", budget.Look.TABLE, policy=policy.digest, note="")

    with pytest.raises(InputError, match="chosen by a look at the table itself carries none"):
        shoal.protect(people(), policy, purpose="open")

    assert budget.account(path, "people").spent == 0
    shoal.protect(people(), policy, purpose="partner")
    assert budget.account(path, "people").spent == 1


def test_an_offer_that_will_not_do_for_the_purpose_says_so():
    policy = stated({"method": "mdav", "k": 3}, release={"purpose": "open"})

    offers = {one.method.name: one for one in planning.offers(policy)}

    assert offers["mdav"].unmet == ""
    assert offers["individual-ranking"].unmet.startswith("Purpose 'open'")
    assert offers["individual-ranking"].claims


def test_the_command_refuses_with_2_before_the_table_is_read_and_records_the_purpose(tmp_path):
    (tmp_path / "policy.toml").write_text(
        'version = 1\n[columns]\nage = { role = "quasi-identifier", kind = "numeric" }\n'
        'hours = { role = "quasi-identifier", kind = "numeric" }\n'
        '[protect]\nmethod = "individual-ranking"\nk = 3\n[release]\npurpose = "open"\n',
        encoding="utf-8",
    )
    command = ["protect", str(tmp_path / "people.csv"), "--policy", str(tmp_path / "policy.toml"),
               "--out", str(tmp_path / "out"), "--no-measure"]  # fmt: skip

    refused = CliRunner().invoke(app, command)  # There is no table yet.
    people().drop("town").write_csv(tmp_path / "people.csv")
    done = CliRunner().invoke(app, [*command, "--purpose", "internal"])

    assert refused.exit_code == 2
    assert "Purpose 'open'" in refused.output
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    figures = json.loads((tmp_path / "out.internal" / "figures.json").read_text("utf-8"))
    assert manifest["purpose"] == "internal"
    assert "--purpose internal" in figures["again"]["command"]
    assert "purpose='internal'" in figures["again"]["python"]
