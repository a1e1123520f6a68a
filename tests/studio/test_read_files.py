"""Odd files go through the page as they are: drafted, each column confirmed, released."""

import io
import zipfile

import pytest
from tests.policy import read_files
from tests.policy.first_files import write

from shoal import policy
from shoal.studio import policy_document
from shoal.studio.jobs import JobKind


@pytest.mark.parametrize("name", ["call centre", "clinic ar", "jabs cz"])
def test_an_odd_file_goes_from_upload_to_release(name, client, workspace, tools, tmp_path):
    answers = write(read_files.FILES[name], tmp_path / "people")
    tools.with_table(client, workspace, (tmp_path / "people.csv").read_bytes())
    schema = policy.loads(tools.loaded(client, workspace).policy).schema
    places = ",".join(str(place) for place in range(len(schema.columns)))
    client.post(f"/w/{workspace}/roles/rows", data={"places": places, "confirm": "yes"})

    job = tools.start(client, workspace, "protect", evaluate=False)
    status = tools.ended(client, job)

    assert status["state"] == "done", status
    content = client.get(f"/releases/{job}/public.zip").content
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        table = next(n for n in zipped.namelist() if n.endswith("release.csv"))
        header = zipped.read(table).decode("utf-8-sig").splitlines()[0]
    direct = {column for column, answer in answers.items() if answer.split()[0] == "id"}
    assert direct
    assert not direct & {cell.strip('"') for cell in header.replace(";", ",").split(",")}


PACKAGE = b"""{"fields": [{"name": "age", "title": "Age in years", "missingValues": ["23"]},
{"name": "sex", "enumLabels": {"male": "Men", "female": "Women"}}]}"""


def test_labels_and_missing_codes_of_a_metadata_file_are_drafted_on_the_page(
    client, workspace, tools
):
    def given(content):
        files = {"file": ("datapackage.json", content)}
        return client.post(f"/w/{workspace}/data/metadata", files=files)

    tools.with_table(client, workspace, tools.people(80))
    before = tools.loaded(client, workspace).policy
    assert "cannot be read: expected a Frictionless" in given(b"age").text
    assert "none of them by a name" in given(b'{"fields": [{"name": "pay"}]}').text
    assert tools.loaded(client, workspace).policy == before

    assert given(PACKAGE).headers["location"] == f"/w/{workspace}/data"
    drafted(client, workspace)
    columns = policy_document.parse_toml(tools.loaded(client, workspace).policy)["columns"]
    assert columns["age"]["label"] == "Age in years"
    assert columns["age"]["missing"] == ["23"]
    assert columns["sex"]["value_labels"] == {"male": "Men", "female": "Women"}
    assert "Age in years" in client.get(f"/w/{workspace}/data").text
    # Another way of reading the file keeps what the metadata says.
    client.post(f"/w/{workspace}/data/reading", data={"missing": "24"})
    drafted(client, workspace)
    columns = policy_document.parse_toml(tools.loaded(client, workspace).policy)["columns"]
    assert columns["age"]["label"] == "Age in years"


def drafted(client, workspace):
    """Do the job that reads the table again."""
    (job,) = [
        job
        for job in client.served.studio.jobs.of(workspace)
        if job.kind is JobKind.PROFILE and not job.final
    ]
    assert client.served.do(job.id) == "done"
