"""A signature covers a release, and nothing but its key makes it."""

import errno
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from shoal import policy
from shoal.cli.commands import app
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.publish import protect_file

PEOPLE = pl.DataFrame({"age": [31, 32, 45, 47], "income": [1, 2, 3, 4]})
POLICY = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "income": {"role": "confidential", "kind": "numeric"},
    },
    "protect": {"method": "mdav", "k": 2},
}


def make(folder, *, force=False):
    data = folder.with_name("people.parquet")
    PEOPLE.write_parquet(data)
    return protect_file.protect(
        data,
        policy.load(POLICY),
        folder,
        evaluation=EvaluationOptions(evaluate=False),
        output=OutputOptions(force=force),
    ).folder


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    return make(tmp_path_factory.mktemp("signed") / "out")


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "other"):
        assert CliRunner().invoke(app, ["keys", "new", str(folder / name)]).exit_code == 0
    return folder


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


def test_a_signed_release_verifies_with_its_key_and_with_no_other(grouped, tmp_path, keys):
    folder = copied(grouped, tmp_path)

    assert run("verify", folder, "--key", keys / "ours.pub")[0] == 3  # not signed yet
    assert run("sign", folder, "--key", keys / "ours")[0] == 0
    code, told = run("verify", folder, "--key", keys / "ours.pub")
    wrong, named = run("verify", folder, "--key", keys / "other.pub")

    assert code == 0
    assert "signature   verified" in told
    assert (wrong, "manifest.sig: it is not this key's signature" in named) == (3, True)
    assert "give the public key" in run("verify", folder)[1]


def test_an_edited_manifest_of_a_signed_release_is_named(grouped, tmp_path, keys):
    folder = copied(grouped, tmp_path)
    run("sign", folder, "--key", keys / "ours")
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"audience": "public-use"}))

    code, told = run("verify", folder, "--key", keys / "ours.pub")

    assert code == 3
    assert "signature   does not hold: manifest.sig" in told


def test_openssl_verifies_the_signature(grouped, tmp_path, keys):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = copied(grouped, tmp_path)
    run("sign", folder, "--key", keys / "ours")
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(keys / "ours.pub"),
               "-rawin", "-in", str(folder / "manifest.json"),
               "-sigfile", str(folder / "manifest.sig")]  # fmt: skip

    assert os.spawnvp(os.P_WAIT, command[0], command) == 0  # noqa: S606 (as the page shows it)


def test_a_release_that_does_not_verify_is_not_signed(grouped, tmp_path, keys):
    folder = copied(grouped, tmp_path)
    (folder / "note.txt").touch()

    code, told = run("sign", folder, "--key", keys / "ours")

    assert code == 3
    assert "was not signed" in told
    assert not (folder / "manifest.sig").exists()


def test_a_signature_is_replaced_by_force_alone_and_a_signed_release_too(grouped, tmp_path, keys):
    folder = copied(grouped, tmp_path)
    run("sign", folder, "--key", keys / "ours")

    assert run("sign", folder, "--key", keys / "other")[0] == 2
    assert run("sign", folder, "--key", keys / "other", "--force")[0] == 0
    assert run("verify", folder, "--key", keys / "other.pub")[0] == 0
    make(folder, force=True)
    assert not (folder / "manifest.sig").exists()


def test_a_private_key_is_its_owners_alone_and_never_replaced(keys):
    assert (keys / "ours").stat().st_mode & 0o777 == 0o600
    assert b"BEGIN PRIVATE KEY" in (keys / "ours").read_bytes()
    before = (keys / "ours").read_bytes()

    assert run("keys", "new", keys / "ours")[0] == 2
    assert (keys / "ours").read_bytes() == before


def test_a_key_with_a_passphrase_opens_with_it_alone(grouped, tmp_path):
    folder, key = copied(grouped, tmp_path), tmp_path / "key"
    (tmp_path / "right").write_text("correct horse\n")
    (tmp_path / "wrong").write_text("battery\n")
    (tmp_path / "empty").touch()

    assert run("keys", "new", key, "--passphrase-file", tmp_path / "right")[0] == 0
    assert b"ENCRYPTED" in key.read_bytes()
    assert run("sign", folder, "--key", key)[0] == 2
    assert run("sign", folder, "--key", key, "--passphrase-file", tmp_path / "wrong")[0] == 2
    assert run("sign", folder, "--key", key, "--passphrase-file", tmp_path / "empty")[0] == 2
    assert run("sign", folder, "--key", key, "--passphrase-file", tmp_path / "right")[0] == 0
    assert run("verify", folder, "--key", tmp_path / "key.pub")[0] == 0


def test_what_is_no_key_is_refused_with_a_sentence(grouped, tmp_path, keys):
    (tmp_path / "text").write_text("no key")
    folder = copied(grouped, tmp_path)

    for words in (
        ("sign", folder, "--key", tmp_path / "text"),
        ("sign", folder, "--key", keys / "ours.pub"),
        ("sign", folder, "--key", tmp_path / "none"),
        ("verify", folder, "--key", tmp_path / "text"),
        ("verify", folder, "--key", keys / "ours"),
    ):
        code, told = run(*words)
        assert code == 2, words
        assert told.startswith("shoal: ")


def test_a_disk_that_is_full_leaves_no_part_of_a_key(tmp_path, monkeypatch):
    def full(path, _content):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)

    result = CliRunner().invoke(app, ["keys", "new", str(tmp_path / "key")])

    assert result.exit_code == 2
    assert "no space left" in result.output
    assert not list(tmp_path.iterdir())
