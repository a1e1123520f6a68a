"""Methods of other packages: found by name, never in the way of ours, and at most conditional."""

import subprocess
import sys
from dataclasses import replace

import polars as pl
import pytest

import shoal
from shoal.core import Status
from shoal.errors import InputError
from shoal.methods import REGISTRY, external, find, title_of
from shoal.methods.laplace import METHOD as LAPLACE
from shoal.methods.mdav import METHOD as MDAV

PACKAGE = """
from dataclasses import replace
from shoal.methods.mdav import METHOD as mdav

METHOD = replace(mdav, name="swap")
"""
POLICY = {
    "version": 1,
    "one_row_per_person": True,
    "columns": {"age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 120]}},
    "protect": {"method": "swap", "k": 3},
}
PEOPLE = pl.DataFrame({"age": list(range(20, 50))})


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install packages that offer methods: a name, the module, and what its entry points say."""

    def install(package, source, *points):
        stem = package.replace("-", "_")
        (tmp_path / f"{stem}.py").write_text(source)
        facts = tmp_path / f"{stem}-1.2.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        (facts / "entry_points.txt").write_text("\n".join(["[shoal.methods]", *points]))
        external._load.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    external._load.cache_clear()
    for name in [name for name in sys.modules if name.startswith("their_")]:
        del sys.modules[name]


def test_a_policy_names_a_method_of_another_package_whose_claims_are_conditional(
    installed, tmp_path
):
    installed("their-swap", PACKAGE, "swap = their_swap:METHOD")

    release = shoal.protect(PEOPLE, POLICY)
    release.write(tmp_path / "out")

    (claim,) = release.claims
    assert claim.status is Status.CONDITIONAL
    assert claim.assumes[-1] == "the package 'their-swap' 1.2 does what it says"
    assert not claim.stands
    assert release.manifest.versions["their-swap"] == "1.2"
    assert all(check.holds for check in release.checks)
    assert shoal.verify(tmp_path / "out").holds
    with pytest.raises(InputError, match="needs a claim that is proved"):
        shoal.plan(POLICY, audience="public-use")


def test_a_folder_whose_method_is_not_installed_here_does_not_verify(installed, tmp_path):
    installed("their-swap", PACKAGE, "swap = their_swap:METHOD")
    shoal.protect(PEOPLE, POLICY).write(tmp_path / "out")
    for path in (tmp_path / "their_swap-1.2.dist-info").iterdir():
        path.unlink()
    (tmp_path / "their_swap-1.2.dist-info").rmdir()
    external._load.cache_clear()

    verified = shoal.verify(tmp_path / "out")

    assert not verified.holds
    assert "No method named 'swap'" in str(verified)


def test_ours_is_never_looked_up_elsewhere_and_nothing_is_imported_before_it_is_named(installed):
    installed("their-evil", "raise SystemExit('imported')", "mdav = their_evil:METHOD",
              "evil = their_evil:METHOD")  # fmt: skip

    assert find("mdav") is MDAV
    assert [*REGISTRY] == [name for name in REGISTRY if name != "evil"]
    assert shoal.plan({**POLICY, "protect": {"method": "mdav", "k": 3}}).claims[0].status is (
        Status.PROVED
    )
    assert "their_evil" not in sys.modules
    with pytest.raises(InputError, match=r"No method named 'evl'\. Did you mean 'evil'\?"):
        find("evl")
    assert "their_evil" not in sys.modules


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import nowhere", "cannot be loaded: ModuleNotFoundError in their_swap:METHOD"),
        ("METHOD = 3", "to be a shoal.methods.Method named 'swap'"),
        (PACKAGE.replace('"swap"', '"other"'), "to be a shoal.methods.Method named 'swap'"),
    ],
)
def test_a_package_that_does_not_hold_what_it_says_is_named(installed, source, sentence):
    installed("their-swap", source, "swap = their_swap:METHOD")

    with pytest.raises(InputError, match=sentence):
        shoal.plan(POLICY)


def test_two_packages_with_one_name_are_refused(installed):
    installed("their-swap", PACKAGE, "swap = their_swap:METHOD")
    installed("their-shop", PACKAGE, "swap = their_shop:METHOD")

    with pytest.raises(InputError, match="'their-shop' and 'their-swap' both offer"):
        find("swap")


def test_a_refuted_claim_stays_refuted():
    """Of a package that repeats a paper's method."""
    ours = REGISTRY["mdav-laplace"]
    columns = dict.fromkeys(("age", "hours"), POLICY["columns"]["age"])
    refuted = {**POLICY, "columns": columns, "protect": {"method": "theirs", "epsilon": 1, "k": 3,
                                     "release_form": "linked-shuffled"}}  # fmt: skip

    with external.offer(replace(ours, name="theirs")):
        claims = shoal.plan(refuted).claims

    assert {claim.status for claim in claims} <= {Status.REFUTED, Status.CONDITIONAL}
    assert Status.REFUTED in {claim.status for claim in claims}


def test_an_epsilon_of_another_package_is_paid_from_the_budget_and_never_proved():
    stated = {**POLICY, "protect": {"method": "theirs", "epsilon": 1}}

    with external.offer(replace(LAPLACE, name="theirs")):
        release = shoal.protect(PEOPLE, stated)

    assert [claim.status for claim in release.claims] == [Status.CONDITIONAL]
    assert sum(loss.epsilon for loss in release.privacy_losses) == 1
    assert title_of("theirs") == "theirs"


def test_the_command_tests_a_method_by_its_contract():
    run = [sys.executable, "-m", "shoal", "methods"]

    done = subprocess.run([*run, "mdav", "--test"], capture_output=True, text=True, check=False)
    nobody = subprocess.run([*run, "--test"], capture_output=True, text=True, check=False)

    assert (done.returncode, nobody.returncode) == (0, 2)
    assert done.stdout.count("holds  ") == 8
    assert "--test takes a method" in nobody.stderr
