"""What leaves the studio."""

import base64
import hashlib
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi import BackgroundTasks

from shoal.studio import downloads
from shoal.studio.keeping import write_json


@pytest.fixture
def studio(tmp_path):
    """As much of a studio as a download needs."""
    folder = tmp_path / "job" / "out" / "release-x"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    write_json(tmp_path / "job" / "result.json", {"labels": {"columns": {"age": "</script>Age"}}})
    jobs = SimpleNamespace(folder=lambda _id: tmp_path / "job")
    return SimpleNamespace(temporary=tmp_path, jobs=jobs, released=lambda _id: folder)


@pytest.mark.parametrize(("form", "labelled"), [("csv", True), ("parquet", False)])
def test_labels_come_along_where_the_table_has_no_room_for_them(studio, form, labelled):
    (studio.released("x") / f"release.{form}").write_bytes(b"age\n1\n")
    answer = downloads.public_zip(studio, "x", BackgroundTasks())
    with zipfile.ZipFile(answer.path) as archive:
        names = archive.namelist()
        labels = json.loads(archive.read("release-x/labels.json")) if labelled else {}

    assert set(names) == {
        "release-x/manifest.json", f"release-x/release.{form}",
        *(["release-x/labels.json"] if labelled else []),
    }  # fmt: skip
    assert labels.get("columns") == ({"age": "</script>Age"} if labelled else None)
    assert Path(answer.path).stat().st_mode & 0o777 == 0o600


def test_a_report_may_use_its_own_style_and_nothing_else():
    style = "body { color: red }"
    stated = downloads.report_headers(f"<style>{style}</style><p>")["content-security-policy"]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    assert f"style-src 'sha256-{digest}'" in stated
    assert "script-src" not in stated
    assert "default-src 'none'" in stated
    assert "sandbox" in stated
    assert "style-src 'none'" in downloads.report_headers("<p>")["content-security-policy"]
