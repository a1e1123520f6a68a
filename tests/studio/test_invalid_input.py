"""What was typed and refused is neither lost nor left out of a release, by any door."""

import re
from dataclasses import replace
from html import unescape

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'studio'")

WITH_UNIT = """
version = 1
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
sex = { role = "quasi-identifier", kind = "nominal", categories = ["male", "female"], observed = true }
income = { role = "confidential", kind = "numeric", bounds = [0, 1000000] }
[protect]
method = "mdav"
k = 5
"""  # noqa: E501 (one line a column)
INCOME = {"name": "income", "role": "confidential", "kind": "numeric"}
SEX = {"name": "sex", "role": "quasi-identifier", "kind": "nominal"}


def no_bug(answer):
    assert answer.status_code < 500, answer.request.url


@pytest.fixture(scope="module")
def client(served):
    """One session for the file, in which nothing may go wrong."""
    with served.client(event_hooks={"response": [no_bug]}) as made:
        yield made


@pytest.fixture(scope="module")
def table(client, tools):
    """A workspace with a table; looking at one takes a process."""
    made = client.post("/api/workspaces").json()["id"]
    tools.with_people(client, made)
    return made


@pytest.fixture
def ready(served, table, tools):
    """A workspace in which a release can be made and nothing was typed yet, by its address."""
    columns = ("name", "age", "sex", "income")
    served.studio.store.note(
        table,
        lambda now: replace(
            now,
            policy=tools.policy,
            confirmed=columns,
            observed=(),
            drafts={},
            file_format="parquet",
        ),
    )
    return f"/w/{table}"


def invalid(client, ready):
    return client.get(f"/api/workspaces/{ready[3:]}").json()["invalid"]


def refused_everywhere(client, ready, sentence):
    """Both doors to a release are shut, and say why."""
    page = client.post(f"{ready}/protect/run", data={"back": "release"})
    script = client.post(f"/api/workspaces/{ready[3:]}/jobs", json={"kind": "protect"})
    assert (page.status_code, script.status_code) == (422, 422)
    assert sentence in script.json()["error"]
    assert "Undo" in script.json()["error"]
    for screen in ("protect", "release"):
        assert re.search(r'id="run-now" disabled', client.get(f"{ready}/{screen}").text)
    assert all(one["state"] == "released" for one in client.get("/api/history").json())


REFUSED = {
    "require": (
        "protect/require",
        {"k-anonymity": "5", "l-diversity.0.l": "many", "l-diversity.0.column.income": "yes"},
        "q-l-diversity-0-l",
    ),
    "parameters": ("protect/parameters", {"p.k": "many"}, "p-k"),
    "columns.income": ("roles/confirm", {**INCOME, "low": "9", "high": "1"}, "low-3"),
    "columns.age": (
        "roles/column",
        {"name": "age", "role": "quasi-identifier", "kind": "numeric", "low": "7"},
        "low-1",
    ),
    "policy": ("roles/policy", {"toml": "version = 1\n[columns"}, "toml"),
    "budget": ("release/budget", {"source": "nobody yet", "epsilon": ""}, "source"),
}


@pytest.mark.parametrize("where", REFUSED)
def test_while_a_form_is_refused_nothing_is_released_and_what_was_typed_stays(client, ready, where):
    place, form, field = REFUSED[where]
    screen = place.partition("/")[0]
    client.post(f"{ready}/{place}", data=form)

    assert list(invalid(client, ready)) == [where]
    refused_everywhere(client, ready, invalid(client, ready)[where])
    page = client.get(f"{ready}/{screen}").text  # as after a reload
    for key in set(form) - {"name", "role", "kind", "k-anonymity", "epsilon"}:
        assert form[key] in page
    (tag,) = re.findall(rf'<(?:input|textarea)[^>]*\sid="{field}"[^>]*>', page)
    (described,) = re.findall(r'aria-describedby="([^"]*)"', tag)
    assert 'aria-invalid="true"' in tag
    error = next(one for one in described.split() if "error" in one)
    said = re.search(rf'id="{error}"[^>]*>(.+?)</(?:p|div)>', page, re.DOTALL)
    assert said
    assert invalid(client, ready)[where] in unescape(said.group(1))


@pytest.mark.parametrize("where", REFUSED)
def test_undo_takes_back_what_was_refused_and_nothing_else(client, ready, where):
    place, form, _ = REFUSED[where]
    policy = client.get(f"/api{ready.replace('/w/', '/workspaces/')}/policy").json()["toml"]
    client.post(f"{ready}/{place}", data=form)
    after = client.post(f"/api/workspaces/{ready[3:]}/undo").json()

    assert after["invalid"] == {}
    assert client.get(f"/api/workspaces/{ready[3:]}/policy").json()["toml"] == policy
    assert 'id="run-now">' in client.get(f"{ready}/protect").text


def test_a_form_that_is_sent_again_and_taken_settles_its_draft_alone(client, ready):
    client.post(f"{ready}/protect/require", data={"k-anonymity": "5", "l-diversity.0.l": "3"})
    client.post(f"{ready}/protect/parameters", data={"p.k": "many"})
    client.post(f"{ready}/protect/require", data={"k-anonymity": "5", "l-diversity.0.l": ""})

    assert list(invalid(client, ready)) == ["parameters"]
    client.post(f"{ready}/protect/parameters", data={"p.k": "6"})
    assert invalid(client, ready) == {}


def test_while_the_text_is_refused_no_field_is_changed_beneath_it(client, ready):
    client.post(f"{ready}/roles/policy", data={"toml": "version = 1\n[columns"})
    policy = f"/api/workspaces/{ready[3:]}/policy"
    before = client.get(policy).json()["toml"]

    shown = client.post(f"{ready}/protect/method", data={"method": "mondrian"})
    fields = client.patch(policy, json={"protect": {"method": "mondrian", "k": 5}})

    assert "Something that was typed cannot be used" in shown.text
    assert fields.status_code == 422
    assert client.get(policy).json()["toml"] == before


def test_what_a_script_sends_and_is_refused_blocks_the_release_too(client, ready):
    policy = f"/api/workspaces/{ready[3:]}/policy"
    wanted = {"k-anonymity": 5, "l-diversity": 3}
    assert client.patch(policy, json={"require": wanted}).status_code == 422
    refused_everywhere(client, ready, "l-diversity")

    # Another section being right does not make this one right.
    assert client.patch(policy, json={"protect": {"method": "mdav", "k": 6}}).status_code == 200
    refused_everywhere(client, ready, "l-diversity")

    assert client.patch(policy, json={"require": {"k-anonymity": 6}}).status_code == 200
    assert invalid(client, ready) == {}
    text = client.get(policy).json()["toml"]
    assert client.put(policy, json={"toml": text.replace("k = 6", "k = 'x'")}).status_code == 200
    assert client.put(policy, json={"toml": text + "[nothing]\nx = 1"}).status_code == 422
    refused_everywhere(client, ready, "nothing")
    assert client.put(policy, json={"toml": text}).status_code == 200
    assert invalid(client, ready) == {}


def test_a_page_that_shows_another_policy_than_the_present_one_does_not_release(client, ready):
    page = client.get(f"{ready}/release").text
    (shown,) = re.findall(r'name="policy" value="([0-9a-f]{64})"', page)
    client.post(f"{ready}/protect/parameters", data={"p.k": "7"})  # in another tab

    answer = client.post(f"{ready}/protect/run", data={"policy": shown})

    assert answer.status_code == 422
    assert "has changed since this page was shown" in answer.text


def test_two_changes_of_one_policy_at_a_time_do_not_lose_each_other(served, ready):
    studio = served.studio
    seen = studio.store.load(ready[3:])
    text = seen.policy.replace("k-anonymity = 5", "k-anonymity = 6")
    studio.put_policy(seen, text)

    with pytest.raises(Exception, match="changed meanwhile"):
        studio.put_policy(seen, seen.policy.replace("k = 5", "k = 9"))
    assert studio.store.load(ready[3:]).policy == text


def test_a_release_is_bound_to_its_policy_and_out_of_date_with_what_changed(client, ready):
    asked = {"kind": "protect", "evaluate": False}
    job = client.post(f"/api/workspaces/{ready[3:]}/jobs", json=asked).json()["id"]
    assert client.served.do(job) == "done"
    own = f"/api/workspaces/{ready[3:]}"
    manifest = client.get(f"/api/releases/{job}/manifest.json").json()
    fresh, page = client.get(f"{own}/release").json(), client.get(f"{ready}/release").text
    assert (fresh["current"], fresh["changed"]) == (True, [])
    assert fresh["policy_digest"] == manifest["policy_digest"]
    assert manifest["policy_digest"][:12] in page
    assert re.search(r"k-anonymity with k = 5[^<]*: holds", page)
    assert "out of date" not in page

    client.patch(f"{own}/policy", json={"protect": {"method": "mdav", "k": 7}})
    client.patch(f"{own}/policy", json={"require": {"k-anonymity": 7}})
    client.patch(own, json={"file_format": "sav"})
    stale, page = client.get(f"{own}/release").json(), client.get(f"{ready}/release").text

    assert stale["policy_digest"] == manifest["policy_digest"]
    assert not stale["current"]
    assert {(one["key"], one["old"], one["new"]) for one in stale["changed"]} == {
        ("protect.k", "5", "7"),
        ("require.k-anonymity", "5", "7"),
        ("file format", "parquet", "sav"),
    }
    made, _, below = page.partition('id="list-title"')
    checklist = below.partition("context-title")[0]
    assert "k-anonymity with k = 7" in checklist
    assert "k-anonymity with k = 5" not in checklist
    assert "holds" not in checklist
    assert "out of date" in checklist
    assert '<span class="chip fails">out of date</span>' in made
    assert "<strong>Smallest group (k)</strong>: 5 → 7" in made
    assert "--file-format sav" not in stale["again"]["command"]
    assert "--file-format sav" not in made

    client.patch(f"{own}/policy", json={"protect": {"method": "mdav", "k": 5}})
    client.patch(f"{own}/policy", json={"require": {"k-anonymity": 5}})
    client.patch(own, json={"file_format": "parquet"})
    assert client.get(f"{own}/release").json()["current"] is True


@pytest.fixture
def copied(client, ready):
    """The same with categories that were copied from the data."""
    own = f"/api/workspaces/{ready[3:]}/policy"
    assert client.put(own, json={"toml": WITH_UNIT}).status_code == 200
    return own


def test_the_mark_of_copied_categories_survives_every_edit_but_the_tick(client, ready, copied):
    def mark():
        stated = client.get(copied).json()["fields"]["columns"]["sex"]
        return stated.get("observed") if "categories" in stated else None

    for edited in ("male\nfemale ", "female\nmale", "male\nfemale\nother"):
        client.post(f"{ready}/roles/column", data={**SEX, "categories": edited, "stated": ""})
        assert mark() is True
        client.post(f"{ready}/roles/confirm", data={**SEX, "categories": edited})
        assert mark() is True
    client.post(f"{ready}/roles/column", data={**SEX, "categories": ""})  # and typed anew
    assert mark() is None
    client.post(f"{ready}/roles/column", data={**SEX, "categories": "male\nfemale"})
    assert mark() is True
    client.post(f"{ready}/roles/column", data={**SEX, "kind": "ordinal", "categories": "a\nb"})
    assert mark() is True
    shown = client.post(f"/api/workspaces/{ready[3:]}/plan", json={}).json()["claims"]

    client.post(f"{ready}/roles/column", data={**SEX, "categories": "male\nfemale", "stated": "x"})
    assert mark() is None or mark() is False
    assert shown


@pytest.mark.parametrize("two_steps", [False, True])
def test_the_text_cannot_take_the_mark_away(client, ready, copied, two_steps):
    unmarked = WITH_UNIT.replace(", observed = true", "")
    if two_steps:
        gone = WITH_UNIT.replace(', categories = ["male", "female"], observed = true', "")
        client.post(f"{ready}/roles/policy", data={"toml": gone})
        assert invalid(client, ready) == {}
    client.post(f"{ready}/roles/policy", data={"toml": unmarked})

    assert "copied from the data" in invalid(client, ready)["policy"]
    refused_everywhere(client, ready, "copied from the data")
    client.post(f"/api/workspaces/{ready[3:]}/undo")
    for answer in (
        client.put(copied, json={"toml": unmarked}),
        client.patch(
            copied,
            json={"columns": {"sex": {"role": "other", "kind": "nominal", "categories": ["a"]}}},
        ),
    ):
        assert answer.status_code == 422
        assert "copied from the data" in answer.json()["error"]
    taken = client.put(copied, json={"toml": unmarked, "public_knowledge": ["sex"]})
    assert taken.status_code == 200
    assert invalid(client, ready) == {}
    assert client.put(copied, json={"toml": unmarked}).status_code == 200


LEDGERS = ["/tmp/elsewhere.db", "../../../../elsewhere.db", "link.db", "folder/x.db", "a\\u0000b"]  # noqa: S108


@pytest.mark.parametrize("file", LEDGERS)
def test_a_budget_file_outside_the_studio_s_folder_is_refused_by_every_door(
    served, client, ready, tmp_path, tools, file
):
    files = served.studio.store.files(ready[3:])
    (tmp_path / "x.db").write_bytes(b"")
    for name, target in (("link.db", tmp_path / "x.db"), ("folder", tmp_path)):
        if not (files / name).is_symlink():
            (files / name).symlink_to(target)
    text = f'{tools.policy}[budget]\nfile = "{file}"\nsource = "people"\n'
    own = f"/api/workspaces/{ready[3:]}"

    typed = client.post(f"{ready}/roles/policy", data={"toml": text})
    put = client.put(f"{own}/policy", json={"toml": text})
    client.post(f"{own}/undo")
    patched = client.patch(
        f"{own}/policy", json={"budget": {"file": file.replace("\\u0000", "\0"), "source": "x"}}
    )
    client.post(f"{own}/undo")

    assert "in the studio&#39;s own folder" in typed.text
    for answer in (put, patched):
        assert answer.status_code == 422
        assert "in the studio's own folder" in answer.json()["error"]

    # A policy that got into the workspace another way is stopped when it is to be used.
    served.studio.store.change(ready[3:], policy=text)
    for job in ({"kind": "protect"}, {"kind": "compare"}, {"kind": "select", "epsilon": "1"}):
        stopped = client.post(f"{own}/jobs", json=job)
        assert stopped.status_code == 422
        assert "in the studio's own folder" in stopped.json()["error"]
    assert "in the studio&#39;s own folder" in client.get(f"{ready}/release").text
    assert (tmp_path / "x.db").read_bytes() == b""


def test_the_studio_s_own_budget_file_may_be_named(served, client, ready, tools):
    client.post("/api/budget", json={"source": "named", "epsilon": "1"})
    file = served.settings.budget
    text = f'{tools.policy}[budget]\nfile = "{file}"\nsource = "named"\n'
    answer = client.put(f"/api/workspaces/{ready[3:]}/policy", json={"toml": text})

    assert answer.status_code == 200, answer.text


def test_rules_are_stated_by_picking_columns_and_a_contradiction_is_shown(client, ready):
    def stated():
        return client.get(f"/api/workspaces/{ready[3:]}/policy").json()["toml"]

    def add(column, op, value, **premise):
        form = {"then.column": column, "then.op": op, "then.value": value}
        said = client.post(f"{ready}/protect/rules", data=form | premise).text
        return said or client.get(f"{ready}/protect").text

    page = add("income", ">=", "age")
    assert 'rules = ["income >= age"]' in stated()
    assert "<code>income &gt;= age</code>" in page
    page = add("income", "=", "0", **{"if.column": "age", "if.op": "<", "if.value": "15"})
    assert "age < 15 implies income = 0" in stated()
    page = add("income", "<=", "incme")
    assert "no column named &#39;incme&#39;" in page
    assert "incme" not in stated()
    page = add("income", "<", "age")
    assert "No record keeps &#39;income &gt;= age&#39; and &#39;income &lt; age&#39;" in page
    for rule in ("income < age", "age < 15 implies income = 0", "income >= age"):
        client.post(f"{ready}/protect/rules", data={"remove": rule})
    assert "rules = " not in stated()
    assert 'id="run-now">' in client.get(f"{ready}/protect").text


def test_a_lookup_is_taken_out_with_its_rule_and_stays_while_another_goes(client, ready, tools):
    named = 'name = { role = "other", kind = "nominal", categories = ["a", "b"] }'
    text = tools.policy.replace('name = "identifier"', named) + (
        '[constraints]\nrules = ["sex determines name", "age >= 1"]\nobserved = true\n'
        '[constraints.lookups.sex.name]\nmale = "a"\nfemale = "b"\n'
    )
    path = f"/api/workspaces/{ready[3:]}/policy"
    answer = client.put(path, json={"toml": text})
    assert answer.status_code == 200, answer.text

    client.post(f"{ready}/protect/rules", data={"remove": "age >= 1"})
    assert "lookups" in client.get(path).json()["toml"]
    client.post(
        f"{ready}/protect/rules",
        data={"then.column": "age", "then.op": ">=", "then.value": "2"},
    )
    client.post(f"{ready}/protect/rules", data={"remove": "sex determines name"})

    left = client.get(path).json()["toml"]
    assert 'rules = ["age >= 2"]' in left
    assert "lookups" not in left
    assert "observed = true" in left
