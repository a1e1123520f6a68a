"""What is published holds what the source holds; `make package-test` also installs and runs it."""

import pytest
from tests.package.run import ROOT, VERSION, built, environment, files_of, install, said_version


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    return built(tmp_path_factory.mktemp("dist"))


def test_wheel_and_sdist_hold_every_file_of_the_source_and_no_other(archives):
    """Templates, scripts, styles, licences of others, the sample and py.typed among them."""
    source = {
        path.relative_to(ROOT / "src").as_posix(): path.read_bytes()
        for path in (ROOT / "src" / "shoal").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    for archive in archives:
        found = files_of(archive)
        assert found.keys() == source.keys(), archive.name
        assert found == source, archive.name
    kinds = {name.rpartition(".")[2] for name in source}
    assert {"py", "html", "js", "css", "svg", "csv", "toml", "parquet", "typed"} <= kinds


def test_a_wheel_starts_where_nothing_but_the_core_is_installed(archives, tmp_path):
    python = environment(tmp_path / "env")
    install(python, archives[0])

    assert said_version(python, tmp_path) == VERSION
