"""Names with characters that cannot be seen: on every page as escapes, and never mistaken."""

import json
from html import unescape
from unicodedata import category

import polars as pl
import pytest

pytest.importorskip("fastapi", reason="needs the extra 'studio'")

from shoal.errors import UNSEEN

AGE, INCOME, NORTH, OTHER = "age\u202e\u200b\x1b", "\u2066income", "nor\u202eth", "so\u200buth"
POLICY = f"""version = 1
[columns]
{json.dumps(AGE)} = {{ role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }}
region = {{ role = "quasi-identifier", kind = "nominal", categories = [{json.dumps(NORTH)}, {json.dumps(OTHER)}], other = {json.dumps(OTHER)}, missing = ["-9", "x"] }}
{json.dumps(INCOME)} = {{ role = "confidential", kind = "numeric", bounds = [0, 100000] }}
[protect]
method = "mdav"
k = 5
"""  # noqa: E501 (one line a column)


@pytest.fixture(scope="module")
def shown(served, tools):
    """A session whose table has such names; the client and the workspace."""
    frame = pl.DataFrame(
        {
            AGE: [20 + i for i in range(40)],
            "region": [NORTH, OTHER] * 20,
            INCOME: [100 * i for i in range(40)],
        }
    )
    with served.client() as client:
        workspace = tools.new(client)
        tools.with_table(client, workspace, frame.write_csv().encode(), "pe\u202eople.csv")
        drafted = tools.loaded(client, workspace).policy
        assert AGE in tools.fields(client, workspace)["columns"]
        assert not [c for c in drafted if category(c) in UNSEEN and c != "\n"]
        tools.put(client, workspace, POLICY)
        yield client, workspace


@pytest.mark.parametrize("screen", ["data", "roles", "protect", "compare", "release"])
def test_no_page_holds_a_character_that_cannot_be_seen(shown, tools, screen):
    client, workspace = shown
    # The text that somebody typed is theirs; ours is written with escapes.
    text = tools.fields(client, workspace)
    tools.change(client, workspace, columns=text["columns"])
    page = client.get(f"/w/{workspace}/{screen}").text

    assert not [c for c in unescape(page) if category(c) in UNSEEN and c not in "\n\t"]
    if screen in {"data", "roles", "protect"}:
        assert r"\u2066income" in page


def test_a_card_that_is_kept_as_the_page_shows_it_changes_nothing(shown, tools):
    client, workspace = shown
    before = tools.fields(client, workspace)["columns"]
    cards = [
        {"name": r"age\u202e\u200b\u001b", "place": "0", "role": "quasi-identifier",
         "kind": "numeric", "low": "0", "high": "110"},
        {"name": "region", "place": "1", "role": "quasi-identifier", "kind": "nominal",
         "categories": "nor\\u202eth\nso\\u200buth", "stated": "yes", "other": r"so\u200buth",
         "missing": "-9, x"},
        {"name": r"\u2066income", "place": "2", "role": "confidential", "kind": "numeric",
         "low": "0", "high": "100000"},
    ]  # fmt: skip
    for card in cards:
        page = client.get(f"/w/{workspace}/roles/column/{card['place']}").text
        assert f'name="name" value="{card["name"]}"' in page
        assert ('name="missing" value="-9, x"' in page) is (card["name"] == "region")
        assert client.post(f"/w/{workspace}/roles/confirm", data=card).status_code == 200

    after = tools.loaded(client, workspace)
    assert (after.drafts, len(after.confirmed)) == ({}, 3)
    assert tools.fields(client, workspace)["columns"] == before
