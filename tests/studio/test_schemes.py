"""A scheme is saved from a release, taken for another table, and its promises are checked again."""

import os
import re
import tomllib

import polars as pl
import pytest
from tests.studio.axe import violations

import shoal
from shoal.errors import InputError

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
NAMES = ["name", "age", "sex", "income"]


@pytest.fixture(scope="module")
def client(served):
    """One session for the tests of this file: they begin with one release."""
    with served.client() as made:
        yield made


@pytest.fixture(scope="module")
def first(client, tools):
    """The workspace of that release."""
    made = tools.new(client)
    tools.with_people(client, made, 120, POLICY)
    tools.note(client, made, confirmed=NAMES)
    return made


@pytest.fixture(scope="module")
def released(client, first):
    """The id of the release; nothing here changes it."""
    return run(client, first)


def run(client, workspace, state="done"):
    studio = client.served.studio
    # Nothing here looks at the evaluation.
    job = studio.start_protect(studio.store.load(workspace), evaluate=False)
    assert client.served.do(job) == state
    return job


@pytest.fixture
def another(client, tools):
    """A workspace with another table of the same form."""
    made = tools.new(client)
    tools.with_table(client, made, tools.people(80), "next.csv")
    return made


def saved(client, release):
    answer = client.get(f"/releases/{release}/scheme.toml")
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    return answer.content


def taken(client, workspace, content):
    files = {"file": ("scheme.toml", content)}
    return client.post(f"/w/{workspace}/scheme/file", files=files)


def test_a_saved_scheme_recodes_another_table_as_the_command_does(
    served, client, first, another, released, tools, tmp_path
):
    page = client.get(f"/w/{first}/release").text
    assert "Save the scheme (public)" in page
    content = saved(client, released)
    (tmp_path / "scheme.toml").write_bytes(content)

    assert taken(client, another, content).headers["location"] == f"/w/{another}/protect"
    page = client.get(f"/w/{another}/protect").text
    assert "Recoded as an earlier release" in page
    assert "What it would look like" not in page
    again = client.served.studio.again(tools.loaded(client, another))
    assert again["command"].startswith("shoal apply scheme.toml next.csv --out release --policy")

    job = run(client, another)

    made = pl.read_csv(served.studio.jobs.release(job) / "release.csv")
    frame = pl.read_csv(tools.people(80))
    expected = shoal.apply(tmp_path / "scheme.toml", frame)
    assert (
        made.select("age", "sex")
        .sort("age", "sex")
        .equals(expected.data.select("age", "sex").sort("age", "sex"))
    )
    page = client.get(f"/w/{another}/release").text
    assert "The table was recoded by the scheme of an earlier release" in page
    assert "holds" in page
    again = tomllib.loads(saved(client, job).decode())["recoding"]
    assert again == tomllib.loads(content.decode())["recoding"]


def test_of_a_release_that_was_made_here_it_is_said_what_both_disclose_together(
    client, another, released
):
    answer = client.post(f"/w/{another}/scheme/release", data={"release": released})
    assert answer.headers["location"] == f"/w/{another}/protect"

    job = run(client, another)

    notes = client.get(f"/releases/{job}/manifest.json").json()["notes"]
    assert any("Beside the release that the scheme comes from" in text for text in notes)


def test_what_no_longer_holds_is_said_with_what_to_do_and_coarsening_does_it(
    client, released, tools
):
    made = tools.new(client)
    tools.with_table(client, made, tools.people(50), "few.csv")
    taken(client, made, saved(client, released))

    failed = run(client, made, "failed")

    said = client.served.studio.jobs.status(failed).error
    assert "By this scheme 5-anonymity no longer holds" in said
    assert "coarsen a column by one level" in said
    assert said.split("no longer holds")[1][:20] in client.get(f"/w/{made}/protect").text

    left = {name: int(rows) for rows, name in re.findall(r"(\d+) with '(\w+)'", said)}
    assert left["age"] == 0, said
    client.post(f"/w/{made}/protect/scheme", data={"column": "age"})
    job = run(client, made)
    manifest = client.get(f"/releases/{job}/manifest.json").json()
    assert all(one["holds"] for one in manifest["checks"])
    assert "Coarsened: age" in client.get(f"/w/{made}/protect").text
    client.post(f"/w/{made}/protect/scheme", data={"none": "yes"})
    assert "Coarsened: age" not in client.get(f"/w/{made}/protect").text


def test_a_policy_that_recodes_otherwise_is_refused_until_the_scheme_is_dropped(
    client, another, released, tools
):
    taken(client, another, saved(client, released))
    protect = tools.fields(client, another)["protect"]
    changed = {"protect": {**protect, "intervals": {"age": [5, 10, 20, 40]}}}
    tools.change(client, another, **changed)

    with pytest.raises(InputError, match=r"differs from that of the scheme in \[protect\]"):
        tools.start(client, another, "protect")
    client.post(f"/w/{another}/protect/scheme", data={"drop": "yes"})
    run(client, another)


def test_what_is_not_a_scheme_or_does_not_fit_is_refused_and_nothing_changes(
    client, another, released, tools
):
    before = tools.loaded(client, another).policy
    content = saved(client, released)

    refused = taken(client, another, b"scheme = 2")
    assert "is not a scheme of this version" in refused.text
    other = content.replace(b"income", b"pay")
    assert "The scheme does not fit: the table has no column" in taken(client, another, other).text
    assert "Choose the file of a scheme first." in taken(client, another, b"").text
    assert tools.loaded(client, another).policy == before
    gone = client.post(f"/w/{another}/protect/scheme", data={"column": "age"})
    assert gone.status_code == 422


def test_hierarchies_and_recodings_come_with_the_scheme(client, workspace, another, tools, served):
    folder = served.studio.store.files(workspace)
    (folder / "sex.csv").write_text("male,all\nfemale,all\n")
    policy = POLICY.replace('categories = ["male", "female"]', 'hierarchy = "sex.csv"')
    tools.with_people(client, workspace, 120, policy)
    tools.note(client, workspace, confirmed=NAMES)
    content = saved(client, run(client, workspace))

    assert taken(client, another, content).status_code == 303
    run(client, another)


def test_in_a_browser_a_scheme_is_saved_and_taken(desk, tmp_path, tools):
    desk.tried.clear()
    tools.begin(desk, "release", tools.people(120), POLICY, NAMES, released=True)
    with desk.expect_download() as download:
        desk.click("#scheme")
    download.value.save_as(tmp_path / "scheme.toml")

    tools.begin(desk, "data", tools.people(110))
    desk.click("#scheme-title")
    desk.set_input_files("#scheme-file", tmp_path / "scheme.toml")
    assert violations(desk, "#scheme") == []
    desk.click("#scheme-upload")
    desk.wait_for_selector("#coarsen-now")
    desk.select_option("#coarsen", "sex")
    desk.click("#coarsen-now")
    desk.wait_for_selector("#coarsened")
    assert violations(desk, "#scheme") == []
    if folder := os.environ.get("SHOAL_SHOTS"):
        desk.locator("#scheme").screenshot(path=f"{folder}/scheme.png")
    desk.click("text=Not coarsened any more")
    desk.wait_for_selector("#coarsened", state="detached")
    desk.click("#run-now")
    desk.goto(f"{desk.base}/release")
    desk.wait_for_selector("#download", timeout=120_000)
    assert "recoded by the scheme of an earlier release" in desk.inner_text("main")
    assert desk.tried == []
