"""What was typed and refused is neither lost nor left out of a release."""

import re
from dataclasses import replace
from html import unescape

import pytest

from shoal.errors import InputError
from shoal.pipeline import booking

pytest.importorskip("fastapi", reason="needs the extra 'studio'")

from shoal.studio.history import find_latest

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
    made = tools.new(client)
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
    drafts = client.served.studio.store.load(ready[3:]).drafts
    return {where: draft.error for where, draft in drafts.items()}


def refused_everywhere(client, ready, sentence):
    """Nothing starts a release, and pages say why."""
    page = client.post(f"{ready}/protect/run", data={"back": "release"})
    assert page.status_code == 422
    studio = client.served.studio
    with pytest.raises(InputError, match=r"Undo") as refused:
        studio.start_protect(studio.store.load(ready[3:]))
    assert sentence in str(refused.value)
    for screen in ("protect", "release"):
        assert re.search(r'id="run-now" disabled', client.get(f"{ready}/{screen}").text)
    assert all(entry.state == "released" for entry in studio.history.entries())


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
def test_undo_takes_back_what_was_refused_and_nothing_else(client, ready, tools, where):
    place, form, _ = REFUSED[where]
    policy = tools.loaded(client, ready[3:]).policy
    client.post(f"{ready}/{place}", data=form)
    client.post(f"{ready}/undo")

    assert invalid(client, ready) == {}
    assert tools.loaded(client, ready[3:]).policy == policy
    assert 'id="run-now">' in client.get(f"{ready}/protect").text


def test_a_form_that_is_sent_again_and_taken_settles_its_draft_alone(client, ready):
    client.post(f"{ready}/protect/require", data={"k-anonymity": "5", "l-diversity.0.l": "3"})
    client.post(f"{ready}/protect/parameters", data={"p.k": "many"})
    client.post(f"{ready}/protect/require", data={"k-anonymity": "5", "l-diversity.0.l": ""})

    assert list(invalid(client, ready)) == ["parameters"]
    client.post(f"{ready}/protect/parameters", data={"p.k": "6"})
    assert invalid(client, ready) == {}


def test_while_the_text_is_refused_no_field_is_changed_beneath_it(client, ready, tools):
    client.post(f"{ready}/roles/policy", data={"toml": "version = 1\n[columns"})
    before = tools.loaded(client, ready[3:]).policy

    shown = client.post(f"{ready}/protect/method", data={"method": "mondrian"})

    assert "Something that was typed cannot be used" in shown.text
    assert tools.loaded(client, ready[3:]).policy == before


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


def test_a_release_is_bound_to_its_policy_and_out_of_date_with_what_changed(client, ready, tools):
    def bound():
        return find_latest(client.served.studio, tools.loaded(client, ready[3:]))

    job = tools.start(client, ready[3:], "protect", evaluate=False)
    assert client.served.do(job) == "done"
    manifest = client.get(f"/releases/{job}/manifest.json").json()
    fresh, page = bound(), client.get(f"{ready}/release").text
    assert (fresh.current, list(fresh.changed)) == (True, [])
    assert fresh.policy_digest == manifest["policy_digest"]
    assert manifest["policy_digest"][:12] in page
    assert re.search(r"k-anonymity with k = 5[^<]*: holds", page)
    assert "out of date" not in page

    seven = {"protect": {"method": "mdav", "k": 7}, "require": {"k-anonymity": 7}}
    tools.change(client, ready[3:], **seven)
    tools.note(client, ready[3:], file_format="sav")
    stale, page = bound(), client.get(f"{ready}/release").text

    assert stale.policy_digest == manifest["policy_digest"]
    assert not stale.current
    assert set(stale.changed) == {
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
    assert "--file-format sav" not in stale.again["command"]
    assert "--file-format sav" not in made

    five = {"protect": {"method": "mdav", "k": 5}, "require": {"k-anonymity": 5}}
    tools.change(client, ready[3:], **five)
    tools.note(client, ready[3:], file_format="parquet")
    assert bound().current is True


@pytest.fixture
def copied(client, ready, tools):
    """The same with categories that were copied from the data."""
    tools.put(client, ready[3:], WITH_UNIT)
    return ready[3:]


def test_the_mark_of_copied_categories_survives_every_edit_but_the_tick(
    client, ready, copied, tools
):
    def mark():
        stated = tools.fields(client, copied)["columns"]["sex"]
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

    client.post(f"{ready}/roles/column", data={**SEX, "categories": "male\nfemale", "stated": "x"})
    assert mark() is None or mark() is False


@pytest.mark.parametrize("two_steps", [False, True])
def test_the_text_cannot_take_the_mark_away(client, ready, copied, tools, two_steps):
    unmarked = WITH_UNIT.replace(", observed = true", "")
    if two_steps:
        gone = WITH_UNIT.replace(', categories = ["male", "female"], observed = true', "")
        client.post(f"{ready}/roles/policy", data={"toml": gone})
        assert invalid(client, ready) == {}
    client.post(f"{ready}/roles/policy", data={"toml": unmarked})

    assert "copied from the data" in invalid(client, ready)["policy"]
    refused_everywhere(client, ready, "copied from the data")
    client.post(f"{ready}/undo")
    sex = {"role": "other", "kind": "nominal", "categories": ["a"]}
    with pytest.raises(InputError, match="copied from the data"):
        tools.put(client, copied, unmarked)
    with pytest.raises(InputError, match="copied from the data"):
        tools.change(client, copied, columns={"sex": sex})
    tools.put(client, copied, unmarked, public=["sex"])
    assert invalid(client, ready) == {}
    tools.put(client, copied, unmarked)


LEDGERS = ["/tmp/elsewhere.db", "../../../../elsewhere.db", "link.db", "folder/x.db", "a\\u0000b"]  # noqa: S108


@pytest.mark.parametrize("file", LEDGERS)
def test_a_budget_file_outside_the_studio_s_folder_is_refused_wherever_it_is_named(
    served, client, ready, tmp_path, tools, file
):
    files = served.studio.store.files(ready[3:])
    (tmp_path / "x.db").write_bytes(b"")
    for name, target in (("link.db", tmp_path / "x.db"), ("folder", tmp_path)):
        if not (files / name).is_symlink():
            (files / name).symlink_to(target)
    text = f'{tools.policy}[budget]\nfile = "{file}"\nsource = "people"\n'

    typed = client.post(f"{ready}/roles/policy", data={"toml": text})
    client.post(f"{ready}/undo")

    assert "in the studio&#39;s own folder" in typed.text
    with pytest.raises(InputError, match="in the studio's own folder"):
        tools.put(client, ready[3:], text)

    # A policy that got into the workspace another way is stopped when it is to be used.
    served.studio.store.change(ready[3:], policy=text)
    for job in ({"kind": "protect"}, {"kind": "compare"}, {"kind": "select", "epsilon": "1"}):
        with pytest.raises(InputError, match="in the studio's own folder"):
            tools.start(client, ready[3:], **job)
    assert "in the studio&#39;s own folder" in client.get(f"{ready}/release").text
    assert (tmp_path / "x.db").read_bytes() == b""


def test_the_studio_s_own_budget_file_may_be_named(served, client, ready, tools):
    file = served.settings.budget
    booking.open_budget(file, "named", "1")
    text = f'{tools.policy}[budget]\nfile = "{file}"\nsource = "named"\n'

    assert tools.put(client, ready[3:], text).policy == text


def test_rules_are_stated_by_picking_columns_and_a_contradiction_is_shown(client, ready, tools):
    def stated():
        return tools.loaded(client, ready[3:]).policy

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
    tools.put(client, ready[3:], text)

    client.post(f"{ready}/protect/rules", data={"remove": "age >= 1"})
    assert "lookups" in tools.loaded(client, ready[3:]).policy
    client.post(
        f"{ready}/protect/rules",
        data={"then.column": "age", "then.op": ">=", "then.value": "2"},
    )
    client.post(f"{ready}/protect/rules", data={"remove": "sex determines name"})

    left = tools.loaded(client, ready[3:]).policy
    assert 'rules = ["age >= 2"]' in left
    assert "lookups" not in left
    assert "observed = true" in left
