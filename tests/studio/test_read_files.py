"""Odd files go through the page as they are: drafted, each column confirmed, released."""

import io
import zipfile

import pytest
from tests.policy import read_files
from tests.policy.first_files import write

from shoal import policy


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
