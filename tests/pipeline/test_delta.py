"""Releases with a delta: what they claim, and what they may not be taken for."""

import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import shoal
from shoal import policy as policies
from shoal.budget import budget_file
from shoal.budget.composition import cumulative
from shoal.core import GAUSSIAN, DifferentialPrivacy, Neighbours
from shoal.core.concentrated import rho_of
from shoal.errors import ClaimViolationError, InputError
from shoal.hazmat.fakes import SeededNoise
from shoal.pipeline import planning
from shoal.pipeline.options import EvaluationOptions
from shoal.publish import protect_file
from shoal.report import phrases

LEVELS = list("abcd")
COLUMNS = {
    f"c{j}": {"role": "quasi-identifier", "kind": "nominal", "categories": LEVELS}
    for j in range(10)
}


def policy(*, method="auto", delta=1e-9, columns=COLUMNS, stated=None, **more):
    price = {"epsilon": 1} if delta is None else {"epsilon": 1, "delta": delta}
    protect = {"method": method, **(price if stated is None else stated)}
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
    stated = release.manifest.claims[0].guarantee
    assert "Delta is a probability" in phrases.meaning(stated)
    assert "delta = 1e-09" in phrases.title(stated)


def test_without_a_delta_nothing_of_it_is_written():
    release = shoal.protect(people(), policy(delta=None))

    assert not {"delta", "rho"} & release.manifest.claims[0].guarantee.keys()
    assert all("rho" not in entry.as_values() for entry in release.manifest.privacy_losses)
    assert "noise" not in release.extras["measurements"].columns


NUMBERS = {f"n{j}": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 9]}
           for j in range(10)}  # fmt: skip


@pytest.mark.parametrize("method", ["auto", "maxent"])
@pytest.mark.parametrize("neighbours", ["change-one", "add-remove"])
def test_where_pure_noise_is_less_no_delta_is_claimed(method, neighbours):
    """Its entries add up to epsilon: a rho of their squares, far above that of epsilon and delta.

    Of two columns there is one marginal, and of three a few.
    """
    for m in (2, 3):
        columns = {name: COLUMNS[name] for name in list(COLUMNS)[:m]}
        stated = {"epsilon": 1, "delta": 1e-9, "neighbours": neighbours}
        release = shoal.protect(
            people(40).select(*columns), policy(method=method, columns=columns, stated=stated)
        )

        (claim,) = release.claims
        assert (claim.guarantee.pure, claim.guarantee.rho) == (1, None)
        assert sum(entry.epsilon for entry in release.privacy_losses) == 1


def test_strata_count_in_one_measure_however_many_rows_they_have():
    """Of few numeric rows auto takes copula, which is pure, and of many maxent."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({name: rng.integers(0, 9, 120) for name in NUMBERS})
    table = table.with_columns(s=pl.Series(["u"] * 10 + ["v"] * 110))
    numbers = {name: {**column, "keep_missing": False} for name, column in NUMBERS.items()}
    public = {"role": "other", "kind": "nominal", "categories": ["u", "v"], "public": True}
    stated = {"epsilon": 200, "delta": 1e-9, "strata": "s", "goal": "means"}
    release = shoal.protect(table, policy(columns={**numbers, "s": public}, stated=stated))

    assert release.claims[0].guarantee.pure == 200
    notes = "\n".join(release.manifest.notes)
    assert "auto chose copula" in notes
    assert "auto chose maxent" in notes


@pytest.mark.parametrize(("method", "m"), [("auto", 1), ("auto", 2), ("maxent", 4)])
@pytest.mark.parametrize("neighbours", ["change-one", "add-remove"])
def test_a_rho_is_a_guarantee_of_its_own(method, m, neighbours, tmp_path):
    columns = {name: NUMBERS[name] for name in list(NUMBERS)[:m]}
    table = pl.DataFrame({name: np.arange(60) % 10 for name in columns})
    table.write_parquet(tmp_path / "people.parquet")
    stated = policy(method=method, columns=columns, stated={"rho": 0.1, "neighbours": neighbours})
    quiet = EvaluationOptions(evaluate=False)
    protect_file.protect(
        tmp_path / "people.parquet", policies.load(stated), tmp_path / "out", evaluation=quiet
    )

    assert shoal.verify(tmp_path / "out").holds
    fields = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    guarantee = fields["claims"][0]["guarantee"]
    assert (guarantee["epsilon"], guarantee["rho"]) == (None, 0.1)
    assert "zero-concentrated" in phrases.title(guarantee)
    assert "for every delta" in phrases.meaning(guarantee)
    (claim,) = shoal.plan(stated).claims
    assert str(claim.guarantee).startswith("0.1-zero-concentrated differential privacy")
    assert {entry["epsilon"] for entry in fields["privacy_losses"]} == {None}
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "rho = 0.1" in report
    assert "None" not in report


def test_a_price_is_an_epsilon_or_a_rho():
    for stated, found in (({"epsilon": 1, "rho": 1}, "both"), ({}, "neither")):
        with pytest.raises(InputError, match=f"either epsilon or rho, found {found}"):
            shoal.plan(policy(stated=stated))
    with pytest.raises(InputError, match="a rho has an epsilon for every delta"):
        shoal.plan(policy(stated={"rho": 1, "delta": 1e-9}))
    with pytest.raises(InputError, match="rho: the number of rows to draw is noisy"):
        shoal.plan(policy(stated={"rho": 1e-9, "neighbours": "add-remove"}))


@pytest.mark.parametrize("method", ["privtree", "copula", "laplace"])
def test_a_method_that_only_knows_pure_noise_has_no_delta(method):
    with pytest.raises(InputError, match="has no parameter 'delta'"):
        shoal.plan(policy(method=method))


def test_a_delta_does_not_meet_a_pure_requirement():
    shoal.plan(policy(delta=None, require={"differential-privacy": 1}))
    with pytest.raises(ClaimViolationError, match="without delta or rho: the requirement is pure"):
        shoal.plan(policy(require={"differential-privacy": 1}))


def test_a_budget_with_a_delta_holds_a_rho_and_a_pure_one_does_not(tmp_path):
    file, rho = tmp_path / "budget.db", rho_of(Fraction(1), Fraction("1e-9"))
    budget_file.init(file, "pure", Fraction(10))
    budget_file.init(file, "people", Fraction(10), delta=Fraction("1e-9"))
    table, columns = people(40), {name: COLUMNS[name] for name in list(COLUMNS)[:2]}

    def booked(source, **stated):
        return policy(budget={"file": str(file), "source": source}, **stated)

    with pytest.raises(InputError, match="is pure, and this release counts in rho"):
        shoal.protect(table, booked("pure"))
    shoal.protect(table, booked("people"))
    shoal.protect(table, booked("people", stated={"epsilon": 1, "delta": 1e-9,
                                                  "neighbours": "add-remove"}))  # fmt: skip
    pure = booked("people", columns=columns)
    shoal.protect(table.select(*columns), pure)

    account, other = budget_file.show(file)
    assert not other.entries
    assert [(e.epsilon, e.rho) for e in account.entries] == [
        (None, rho),
        (None, 4 * rho),
        (1, None),
    ]
    assert account.spent == cumulative([Fraction(1)], 5 * rho, Fraction("1e-9"))
    assert "budget epsilon 10 at delta 1e-09" in str(account)
    assert f"rho {float(rho)}" in str(account)
    assert planning.cost(policies.load(policy()), shoal.plan(policy()).claims).startswith(
        "Costs rho"
    )


class FaintNoise(SeededNoise):
    """Gaussian noise of a sixteenth of the scale."""

    def _gaussian(self, values, scale):
        return super()._gaussian(values, scale / 16)


@pytest.mark.parametrize("neighbours", ["change-one", "add-remove"])
def test_an_audit_finds_what_breaks_a_rho_and_nothing_else(neighbours):
    """False alarms: the bounds hold together but for 1e-7; what moved is exact."""
    stated = policy(columns={"c0": COLUMNS["c0"]}, stated={"rho": 0.25, "neighbours": neighbours})
    about = {"confidence": 1 - 1e-7, "most": 1}

    found = shoal.audit(stated, noise=SeededNoise(1), trials=100, **about)
    assert found.verdict == "no violation found", found
    (finding,) = found.findings
    assert 0.2 < finding.moved <= 0.25
    assert finding.bound.rho.low <= 0.25
    assert finding.bound.mu.low <= 0.5**0.5  # sqrt(2 rho)
    assert "declared rho 0.25 (proved)" in str(found)
    assert "what moved cost a rho of at most 0.25" in str(found)
    assert found.facts()["measure"] == "rho"
    if neighbours == "add-remove":
        broken = shoal.audit(stated, noise=FaintNoise(1), trials=200, **about)
        assert broken.violated
        assert broken.worst.bound.mu.low > 0.5**0.5


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
    with pytest.raises(InputError, match="comes with the epsilon"):
        DifferentialPrivacy(**about | {"epsilon": None}, delta=Fraction(1, 9), rho=Fraction(1))


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
