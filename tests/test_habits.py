"""What several files say about how we work is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def recipe(target):
    """The commands of a target of the Makefile."""
    body = re.search(rf"^{target}:.*\n((?:\t.+\n)+)", MAKEFILE, flags=re.MULTILINE)[1]
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in body.splitlines()]


def test_every_python_that_the_package_names_is_in_the_matrix_and_no_other():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    job = workflow["jobs"]["test"]
    tried = job["strategy"]["matrix"]["python-version"]
    named = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.MULTILINE)

    assert tried == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    assert PROJECT["tool"]["mypy"]["python_version"] == named[0]
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{named[0].replace('.', '')}"
    assert "make test PYTHON=python" in [step.get("run") for step in job["steps"]]
    assert (ROOT / ".ci/run").read_text("utf-8").endswith("\nexec make test\n")


def test_the_hooks_before_a_commit_are_the_steps_of_make_lint():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))

    assert [repo["repo"] for repo in config["repos"]] == ["local"]  # nothing is fetched
    hooks = config["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == recipe("lint")
    assert {hook["language"] for hook in hooks} == {"system"}


def test_coverage_is_of_the_fast_part_and_has_a_floor():
    assert "pytest $(FAST)" in recipe("test-fast")[0]
    assert "pytest $(FAST) --cov" in recipe("coverage")[0]
    assert "not slow and not browser and not spark and not data" in MAKEFILE
    assert PROJECT["tool"]["coverage"]["report"]["fail_under"] >= 70


def test_what_is_left_out_of_the_fast_part_is_there(request):
    left_out = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py")).SLOW

    missing = [name for name in left_out if not (ROOT / "tests" / name).exists()]

    assert not missing, f"moved or renamed? See SLOW in tests/conftest.py: {missing}"
    assert "methods/test_contract.py" not in left_out  # its quick half is what most edits break


@pytest.mark.parametrize("name", ["ISSUE_TEMPLATE/fault.yml", "pull_request_template.md"])
def test_templates_send_privacy_holes_to_the_maintainers_alone(name):
    assert "SECURITY.md" in (ROOT / ".github" / name).read_text("utf-8")


def test_forms_can_be_read():
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text("utf-8"))
        assert path.name == "config.yml" or {"name", "description", "body"} <= form.keys()
