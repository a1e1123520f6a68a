"""Releases with a delta: what they claim, and what they may not be taken for."""

import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import shoal
from shoal import policy as policies
from shoal.core import GAUSSIAN, DifferentialPrivacy, Neighbours
from shoal.core.concentrated import rho_of
from shoal.errors import ClaimViolationError, InputError
from shoal.pipeline import protect_file
from shoal.pipeline.options import EvaluationOptions
from shoal.report import phrases

LEVELS = list("abcd")
COLUMNS = {
    f"c{j}": {"role": "quasi-identifier", "kind": "nominal", "categories": LEVELS}
    for j in range(10)
}


def policy(*, method="auto", delta=1e-9, columns=COLUMNS, **more):
    protect = {"method": method, "epsilon": 1, **({} if delta is None else {"delta": delta})}
    return {"version": 1, "columns": columns, "protect": protect, **more}


def people(n=400):
    rng = np.random.default_rng(1)
    return pl.DataFrame({name: rng.choice(LEVELS, n) for name in COLUMNS})


@pytest.mark.parametrize("method", ["auto", "maxent"])
def test_a_release_with_a_delta_claims_epsilon_delta_and_rho(method, tmp_path):
    people().write_parquet(tmp_path / "people.parquet")
    release = shoal.protect(people(), policy(method=method))

    (claim,) = release.claims
    assert claim.guarantee.delta == Fraction("1e-9")
    assert claim.guarantee.rho == rho_of(Fraction(1), Fraction("1e-9"))
    assert str(claim.guarantee).startswith("(1, 1e-09)-differential privacy of")
    assert "delta is a probability" in claim.basis
    assert GAUSSIAN in {entry.mechanism for entry in release.privacy_losses}
    assert "noise" in release.extras["measurements"].columns
    stated = release.manifest["claims"][0]["guarantee"]
    assert "Delta is a probability" in phrases.meaning(stated)
    assert "delta = 1e-09" in phrases.title(stated)


def test_without_a_delta_nothing_of_it_is_written():
    release = shoal.protect(people(), policy(delta=None))

    assert not {"delta", "rho"} & release.manifest["claims"][0]["guarantee"].keys()
    assert all("rho" not in entry for entry in release.manifest["privacy_losses"])
    assert "noise" not in release.extras["measurements"].columns


def test_few_tables_have_pure_noise_whatever_delta_is():
    """One table of two columns: Laplace noise is less, and the entries add up to epsilon."""
    columns = {name: COLUMNS[name] for name in ("c0", "c1")}
    release = shoal.protect(people().select("c0", "c1"), policy(columns=columns))

    assert sum(entry.epsilon for entry in release.privacy_losses) == 1


@pytest.mark.parametrize("method", ["privtree", "copula", "laplace"])
def test_a_method_that_only_knows_pure_noise_has_no_delta(method):
    with pytest.raises(InputError, match="has no parameter 'delta'"):
        shoal.plan(policy(method=method))


def test_a_delta_does_not_meet_a_pure_requirement():
    shoal.plan(policy(delta=None, require={"differential-privacy": 1}))
    with pytest.raises(ClaimViolationError, match="leave out delta"):
        shoal.plan(policy(require={"differential-privacy": 1}))


def test_a_budget_file_refuses_a_release_with_a_delta(tmp_path):
    stated = {"file": str(tmp_path / "budget.db"), "source": "people"}
    shoal.plan(policy(delta=None, budget=stated))
    with pytest.raises(InputError, match="a release with a delta cannot be booked"):
        shoal.plan(policy(budget=stated))


def test_an_audit_is_about_pure_epsilons():
    with pytest.raises(InputError, match="a delta allows for some"):
        shoal.audit(policy())


@pytest.mark.parametrize("delta", [0, 0.01, -1e-9, "much"])
def test_a_delta_is_a_small_probability(delta):
    with pytest.raises(InputError, match="delta"):
        shoal.plan(policy(delta=delta))


def test_a_guarantee_has_a_delta_and_its_rho_or_neither():
    about = {"epsilon": Fraction(1), "neighbours": Neighbours.CHANGE_ONE, "protects": ("x",)}
    with pytest.raises(InputError, match="comes with the rho"):
        DifferentialPrivacy(**about, delta=Fraction(1, 10**9))
    with pytest.raises(InputError, match="comes with the rho"):
        DifferentialPrivacy(**about, rho=Fraction(1, 10))


def test_a_folder_with_a_delta_is_verified_by_its_recipient(tmp_path):
    source = tmp_path / "people.parquet"
    people().write_parquet(source)
    out = tmp_path / "out"
    quiet = EvaluationOptions(evaluate=False)
    protect_file.protect(source, policies.load(policy()), out, evaluation=quiet)

    found = shoal.verify(out)
    assert found.holds, found
    fields = json.loads((out / "manifest.json").read_text("utf-8"))
    fields["claims"][0]["guarantee"]["delta"] = 1e-12
    (out / "manifest.json").write_text(json.dumps(fields))
    assert not shoal.verify(out).holds
