"""What the table says under the policy: recorded, confidential, and the lattice that is clicked."""

import re

import polars as pl
import pytest

import shoal
from shoal.budget import budget_file
from shoal.studio import policy_document

POLICY = """version = 1
one_row_per_person = true
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
sex = { role = "quasi-identifier", kind = "nominal", categories = ["male", "female"] }
income = { role = "confidential", kind = "numeric", bounds = [0, 1000000] }
[protect]
method = "full-domain"
k = 5
intervals = { age = [5, 10, 20] }
[require]
k-anonymity = 5
"""


def inspected(client, workspace, tools, policy=POLICY):
    tools.with_people(client, workspace, 120, policy)
    return again(client, workspace)


def again(client, workspace):
    answer = client.post(f"/w/{workspace}/protect/inspect")
    assert answer.status_code == 303, answer.text
    job = client.served.studio.store.load(workspace).jobs["inspect"]
    assert client.served.do(job) == "done"
    return client.get(f"/w/{workspace}/protect").text


def test_the_page_says_what_attacks_gain_over_people_who_are_held_out(seen):
    _, _, page = seen

    shown = page.partition('id="inspection"')[2]
    assert "attacks on a release of 4 in 5 persons; the others are held out" in shown
    assert "attack: inference, income: " in shown


def protect_of(client, workspace):
    return policy_document.parse_toml(client.served.studio.store.load(workspace).policy)["protect"]


@pytest.fixture(scope="module")
def found(served, tools):
    """A client and its workspace, whose table was inspected once for the tests that look at it."""
    with served.client() as client:
        workspace = tools.new(client)
        inspected(client, workspace, tools)
        yield client, workspace


@pytest.fixture
def seen(found):
    """The same with its page, and no levels fixed."""
    client, workspace = found
    client.post(f"/w/{workspace}/protect/levels", data={"node": ""})
    return client, workspace, client.get(f"/w/{workspace}/protect").text


def test_the_page_has_what_the_command_finds_other_k_and_every_combination(seen, tools):
    _, _, page = seen

    frame = pl.read_csv(tools.people(120))
    expected = shoal.inspect(frame, policy_document.parse_toml(POLICY), public=True).alternatives
    shown = page.partition('id="inspection"')[2]
    assert "Confidential" in shown
    assert len(re.findall('<g class="node"', shown)) == len(expected.lattice.nodes) == 10
    for k, one in expected.by_k.items():
        assert f'<th scope="row" class="number">{k}</th>' in shown
        assert one is None or f"{one.loss:.3g}" in shown
    assert "least loss" in shown
    assert "combinations are shown" not in shown


def test_a_click_fixes_the_levels_and_the_way_back_frees_them(seen):
    client, workspace, page = seen
    place = re.search(r'name="node" value="(\d+)"', page)[1]
    levels = re.search(r'aria-label="Fix the levels ([\d ]+)"', page)[1].split()

    client.post(f"/w/{workspace}/protect/levels", data={"node": place})

    assert protect_of(client, workspace)["levels"] == dict(
        zip(("age", "sex"), map(int, levels), strict=True)
    )
    page = client.get(f"/w/{workspace}/protect").text
    assert "The settings have changed since." not in page  # of the lattice, only levels differ
    assert '<span class="chip sea">fixed</span>' in page

    client.post(f"/w/{workspace}/protect/levels", data={"node": ""})

    assert "levels" not in protect_of(client, workspace)


def test_a_release_at_a_fixed_node_has_its_levels(seen, tools):
    client, workspace, page = seen
    places = re.findall(r'<button class="quiet" name="node" value="(\d+)"', page)
    client.post(f"/w/{workspace}/protect/levels", data={"node": places[1]})
    levels = protect_of(client, workspace)["levels"]

    tools.note(client, workspace, confirmed=("name", "age", "sex", "income"))
    job = tools.start(client, workspace, "protect", evaluate=False)

    assert client.served.do(job) == "done"
    manifest = client.get(f"/releases/{job}/manifest.json").json()
    assert f"age {levels['age']} of 4, sex {levels['sex']} of 1." in " ".join(manifest["notes"])


def test_an_inspection_is_recorded_where_a_population_is_named(served, client, workspace, tools):
    tools.with_people(client, workspace, 120, POLICY)
    client.post(f"/w/{workspace}/release/budget", data={"source": "people", "epsilon": "1"})
    page = client.get(f"/w/{workspace}/protect").text
    assert "Choosing by inspecting the table costs privacy" in page

    again(client, workspace)

    (one,) = budget_file.account(served.settings.budget, "people").inspections
    assert (one.kind, one.what) == ("table", "inspect")


def test_other_methods_show_what_they_can_and_no_lattice(client, workspace, tools):
    page = inspected(client, workspace, tools, tools.policy)

    assert "in equivalence classes of fewer than 5 records" in page
    assert '<g class="node"' not in page


@pytest.mark.parametrize("node", ["99", "-1", "x"])
def test_a_node_that_is_not_there_is_refused(client, workspace, seen, node):
    early = client.post(f"/w/{workspace}/protect/levels", data={"node": node})
    known, inspected_one, _ = seen
    answer = known.post(f"/w/{inspected_one}/protect/levels", data={"node": node})

    assert (early.status_code, answer.status_code) == (422, 422)
    assert "no such combination" in answer.text
