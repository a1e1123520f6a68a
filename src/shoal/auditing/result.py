"""The result of an audit: pairs of tables, events, and lower bounds beside what is claimed."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

from shoal.auditing.neighbouring_tables import NeighbouringTables
from shoal.core import DifferentialPrivacy, PrivacyMeasure, Status, write_fraction
from shoal.metrics.epsilon_lower_bound import EpsilonLowerBound, PrivacyParameter
from shoal.metrics.intervals import clopper_pearson

VIOLATED = "violated"
REFUTED = "refuted by a known counterexample"
NOTHING_FOUND = "no violation found"
STATED = "as its authors state"
_ROWS_SHOWN = 100
GIVEN_BACK = 50
"""Runs in each direction whose answers are given back on the neighbour."""
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class Declared:
    """The privacy loss that is claimed.

    Attributes:
        amount: of epsilon, rho or mu.
        target: which of them, and at which delta.
        status: of a claim of Shoal's; none of what others state of their program.
        basis: why it is thought to hold.
    """

    amount: Fraction
    target: PrivacyParameter
    status: Status | None
    basis: str

    @classmethod
    def of(cls, guarantee: DifferentialPrivacy, status: Status, basis: str) -> "Declared":
        """Take what a claim of Shoal's declares."""
        if guarantee.rho is not None:
            return cls(guarantee.rho, PrivacyParameter(measure=PrivacyMeasure.RHO), status, basis)
        return cls(guarantee.epsilon or Fraction(0), PrivacyParameter(), status, basis)

    @property
    def measure(self) -> str:
        """The name of what is declared: epsilon, rho or mu."""
        return "mu" if self.target.measure is None else self.target.measure.value

    def __str__(self) -> str:
        delta = f" at delta {self.target.delta:g}" if self.target.delta else ""
        return f"{self.measure} {write_fraction(self.amount)}{delta} ({self.status or STATED})"


@dataclass(frozen=True)
class Finding:
    """The result for one pair of tables.

    Attributes:
        moved: the largest change of answers in a replayed run, in rho; only on the fast level.
        proved: a lower bound of rho, by the first question of such a run.
    """

    pair: NeighbouringTables
    claim: Declared
    bound: EpsilonLowerBound
    moved: float | None = None
    proved: float = 0.0

    @property
    def declared(self) -> Fraction:
        """The epsilon, rho or mu that is declared."""
        return self.claim.amount

    @property
    def low(self) -> float:
        """The lower bound of it from the runs."""
        return self.claim.target.low(self.bound)

    @property
    def violated(self) -> bool:
        """Whether what is declared is refuted."""
        declared = float(self.declared)
        return self.proved > declared * _ROUNDING or self.low > declared

    @property
    def in_rho(self) -> tuple[str, ...]:
        """The lines of the report about a claim in rho."""
        if self.bound.rho is None:
            return ()
        noise = sqrt(2 * float(self.declared))
        lines = [
            f"    mu is at least {self.bound.mu.low:.3g}; Gaussian noise of rho has {noise:.3g}"
        ]
        if self.moved is not None:
            lines.append(
                f"    in {2 * GIVEN_BACK} runs given back on the other table, what moved cost a "
                f"rho of at most {self.moved:.3g}"
            )
            if self.moved > float(self.declared) * _ROUNDING and not self.violated:
                lines.append(
                    "    that is more than the accounting allows, which is a bug of Shoal; it does "
                    "not refute the claim by itself"
                )
        return tuple(lines)


@dataclass(frozen=True)
class Audit:
    """The result of an audit, pair by pair; the bounds hold together at `confidence`.

    Attributes:
        counterexamples: known ones that refute the claim.
    """

    method: str
    release_form: str
    level: str
    trials: int
    confidence: float
    findings: tuple[Finding, ...]
    counterexamples: tuple[str, ...] = ()

    @property
    def worst(self) -> Finding:
        """The finding with the largest lower bound relative to the declared epsilon or rho."""
        return max(self.findings, key=lambda f: f.low / float(f.declared))

    @property
    def violated(self) -> bool:
        """Whether some pair refutes the declared epsilon."""
        return any(finding.violated for finding in self.findings)

    @property
    def fails(self) -> bool:
        """Whether the claim is false, by the runs or by a known counterexample."""
        return self.violated or bool(self.counterexamples)

    @property
    def verdict(self) -> str:
        """The verdict: violated, refuted by a known counterexample, or no violation found."""
        if self.violated:
            return VIOLATED
        return REFUTED if self.counterexamples else NOTHING_FOUND

    def __str__(self) -> str:
        worst = self.worst
        lines = [f"{self.verdict}: {self.method}, {self.release_form}, declared {worst.claim}"]
        for finding in self.findings:
            bound = finding.bound
            low = f"{finding.low:.2f}" if bound.rho is None else f"{finding.low:.3g}"
            counts = f"{bound.before:,} and {bound.after:,}"
            sure = f"with confidence {self.confidence:.10g}"
            lines += [
                f"  pair: {finding.pair.name}",
                f"    {finding.claim.measure} is at least {low} {sure}",
                *finding.in_rho,
                f"    event: {bound.event}",
                f"    in {counts} of {bound.trials:,} runs on the two tables",
            ]
        lines += [f"  counterexample: {basis}." for basis in self.counterexamples]
        if self.counterexamples and not self.violated:
            lines.append(
                "  These runs did not detect the violation, because they were too few or on "
                "other tables. The counterexample holds all the same."
            )
        elif not self.violated:
            lines.append(
                "  That no violation was found does not support the claim; only its "
                "proof does, if it has one."
            )
        return "\n".join(lines)

    def facts(self) -> Mapping[str, Any]:
        """Return the audit as plain values for the report, with the tables of its pairs."""
        worst = self.worst
        return {
            "method": self.method,
            "release_form": self.release_form,
            "level": self.level,
            "trials": self.trials,
            "confidence": self.confidence,
            "verdict": self.verdict,
            "violated": self.violated,
            "counterexamples": list(self.counterexamples),
            "declared": write_fraction(worst.declared),
            "measure": worst.claim.measure,
            "delta": worst.claim.target.delta,
            "status": worst.claim.status and worst.claim.status.value,
            "basis": worst.claim.basis,
            "findings": [_plain(finding) for finding in self.findings],
        }


def _plain(finding: Finding) -> dict[str, Any]:
    bound, pair = finding.bound, finding.pair
    after: list[tuple[Any, ...]] = pair.after.rows()
    if pair.after.height < pair.before.height:  # an empty row for the one that is not there
        after.insert(pair.row, (None,) * pair.after.width)
    first = max(0, min(pair.row - _ROWS_SHOWN // 2, pair.before.height - _ROWS_SHOWN))
    return {
        "pair": pair.name,
        "event": str(bound.event),
        "violated": finding.violated,
        "low": finding.low,
        "value": finding.claim.target.of(bound).value,
        "in_rho": [line.strip() for line in finding.in_rho],
        "trials": bound.trials,
        "tried": bound.tried,
        "sides": [
            {"hits": hits, "share": str(clopper_pearson(hits, bound.trials))}
            for hits in (bound.before, bound.after)
        ],
        "rows": pair.before.height,
        "first": first,
        "row": pair.row,
        "columns": pair.before.columns,
        "before": pair.before[first : first + _ROWS_SHOWN].rows(),
        "after": after[first : first + _ROWS_SHOWN],
    }
