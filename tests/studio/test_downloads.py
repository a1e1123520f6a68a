"""What leaves the studio."""

import base64
import hashlib
import zipfile
from pathlib import Path
from types import SimpleNamespace

from fastapi import BackgroundTasks

from shoal.studio.pages.release import public_zip, report_headers


def test_the_archive_holds_the_public_folder_and_is_its_owners_alone(tmp_path):
    folder = tmp_path / "release-x"
    folder.mkdir()
    for name in ("manifest.json", "labels.json", "release.csv"):
        (folder / name).write_text("{}")
    studio = SimpleNamespace(temporary=tmp_path)

    answer = public_zip(studio, folder, BackgroundTasks())

    with zipfile.ZipFile(answer.path) as archive:
        assert set(archive.namelist()) == {f"release-x/{path.name}" for path in folder.iterdir()}
    assert Path(answer.path).stat().st_mode & 0o777 == 0o600


def test_a_report_may_use_its_own_style_and_nothing_else():
    style = "body { color: red }"
    stated = report_headers(f"<style>{style}</style><p>")["content-security-policy"]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    assert f"style-src 'sha256-{digest}'" in stated
    assert "script-src" not in stated
    assert "default-src 'none'" in stated
    assert "sandbox" in stated
    assert "style-src 'none'" in report_headers("<p>")["content-security-policy"]
