"""A contract test for methods of other packages, and fake noise.

`shoal methods NAME --test` runs it, or in Python

    for result in check_method(METHOD):
        print(result)

on invented tables, most of them odd: missing cells, one row, one value, noise of a million. It can
refute what a method claims, and proves nothing: a price may be wrong although all draws are paid
for. `shoal audit` attacks the claim itself.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from shoal.core import DifferentialPrivacy, KAnonymity, ReleaseForm, Status
from shoal.errors import ShoalError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import Call, RecordingNoise, SeededNoise
from shoal.methods import find
from shoal.methods.external import offer
from shoal.methods.method import Method
from shoal.pipeline.planning import plan
from shoal.pipeline.protect_table import protect

LEVELS = ["a", "b", "c", "d"]
FIRST_DAY = date(1970, 1, 1)
DOMAINS: Mapping[str, tuple[list[Any], Any]] = {
    "number": ([*range(-3, 4)], pl.Int64),
    "rank": (LEVELS, pl.String),
    "flat": (LEVELS, pl.String),
    "day": ([FIRST_DAY + timedelta(days=days) for days in range(10)], pl.Date),
    "secret": (LEVELS, pl.String),
    "batch": ([0, 1], pl.Int64),
}
"""The cells of the invented columns, and their types."""
DRAWN = {ReleaseForm.SYNTHETIC, ReleaseForm.TREE}
"""Forms in which no row stands for a row of the original."""
EXTREMES = ([0], [-1_000_000], [1, 0], [500, -1], [-1_000_000, 1_000_000])
"""What noise may add: no mass at all, one code, several times the number of rows."""


@dataclass(frozen=True)
class ContractResult:
    """The result for one part of the contract.

    Attributes:
        part: what the method has to do.
        holds: whether it did so on every table.
        fault: what it did instead, on the first table that failed.
    """

    part: str
    holds: bool
    fault: str = ""

    def __str__(self) -> str:
        return (
            f"{'holds' if self.holds else 'FAILS'}  {self.part}{self.fault and f': {self.fault}'}"
        )


class BreachError(AssertionError):
    """A method did not do what the contract asks."""


def check_method(
    method: Method[Any] | str, *, tables: int = 10, seed: int = 0
) -> tuple[ContractResult, ...]:
    """Test a method against the contract.

    Args:
        method: the method, or its name in a policy.
        tables: how many invented tables each part is tried on.
        seed: of the tables.
    """
    if isinstance(method, Method):
        with offer(method):
            return check_method(method.name, tables=tables, seed=seed)
    case = _Case(find(method), tables, seed)
    return tuple(_try(part, case) for part in PARTS)


def _try(part: Callable[["_Case"], None], case: "_Case") -> ContractResult:
    words = (part.__doc__ or "").rstrip(".")
    try:
        part(case)
    except BreachError as breach:
        return ContractResult(words, holds=False, fault=str(breach))
    except Exception as error:  # noqa: BLE001 (whatever it raises is the finding)
        return ContractResult(words, holds=False, fault=f"{type(error).__name__}: {error}")
    return ContractResult(words, holds=True)


class _Case:
    """A method, its policies and its tables."""

    def __init__(self, method: Method[Any], tables: int, seed: int) -> None:
        self.method, self._tables, self._seed = method, tables, seed
        self.least = int(method.example.parameters.get("k", 2))
        self.forms = [form for form in ReleaseForm if self._plans(form)]

    def policy(self, form: ReleaseForm, batch: Any = "identifier") -> dict[str, Any]:
        """Make a policy with invented columns, the method's own example and a release form."""
        protected = {"role": "quasi-identifier"}
        categories = {"categories": LEVELS}
        columns: dict[str, Any] = {
            "number": protected | {"kind": "numeric", "bounds": [-3, 3]},
            "rank": protected | categories | {"kind": "ordinal"},
            "flat": protected | categories | {"kind": "nominal"},
            "day": protected | {"kind": "date", "bounds": [FIRST_DAY, DOMAINS["day"][0][-1]]},
            "secret": {"role": "confidential", "kind": "nominal"} | categories,
            "batch": batch,
        }
        stated = {} if self.method.noisy else {"release": {"accept_constant": list(columns)}}
        output = {"output": "tree"} if form is ReleaseForm.TREE else {}
        chosen = {} if self._implied(output) else {"release_form": form.value}
        return {
            "version": 1,
            **stated,
            "columns": columns,
            "protect": {
                "method": self.method.name,
                **self.method.example.parameters,
                **output,
                **chosen,
            },
        }

    def _implied(self, output: Mapping[str, Any]) -> bool:
        return bool(output) and "output" not in self.method.parameters.model_fields

    def stated(self, form: ReleaseForm) -> dict[str, Any]:
        """Find a policy for which the method can be planned: some methods need a public column."""
        public = {"role": "other", "kind": "numeric", "public": True}
        policies = [self.policy(form), self.policy(form, public)]
        for policy in policies:
            try:
                plan(policy)
            except ShoalError:
                continue
            return policy
        plan(policies[0])
        return policies[0]

    def _plans(self, form: ReleaseForm) -> bool:
        if form not in self.method.forms.offered:
            return False
        try:
            self.stated(form)
        except ShoalError:
            return False
        return True

    def frames(self, *, odd: bool = False) -> Iterator[pl.DataFrame]:
        """Draw tables; odd ones are short, with columns that are missing or constant."""
        rng = np.random.default_rng(self._seed)
        for _ in range(self._tables):
            n = int(rng.integers(self.least, self.least + 6) if odd else rng.integers(24, 60))
            yield pl.DataFrame([_column(name, n, rng, odd=odd) for name in DOMAINS])

    def run(self, frame: pl.DataFrame, form: ReleaseForm, **options: Any) -> Any:
        """Make a release."""
        keep = form is ReleaseForm.ROW_ALIGNED
        return protect(frame, self.stated(form), keep_order=keep, **options)


def _column(name: str, n: int, rng: np.random.Generator, *, odd: bool) -> pl.Series:
    values, dtype = DOMAINS[name]
    if odd and name != "batch":
        values = [[None], values[:1], values][int(rng.integers(3))]
    return pl.Series(name, [values[code] for code in rng.integers(len(values), size=n)], dtype)


def _require(condition: object, fault: str) -> None:
    if not condition:
        raise BreachError(fault)


def describe_itself(case: _Case) -> None:
    """Says in a sentence what it does, where it is published and what its parameters mean."""
    method = case.method
    _require(method.summary.endswith("."), "its summary is not a sentence")
    _require(len(method.reference) > 20, "its reference is too short to be one")
    fields = method.parameters.model_fields
    unsaid = [name for name, field in fields.items() if not field.description]
    _require(not unsaid, f"the parameters {', '.join(unsaid)} have no description")


def plan_every_form(case: _Case) -> None:
    """Can be planned with the parameters of its example, in every form that it offers."""
    for form in case.method.forms.offered:
        case.stated(form)


def keep_what_it_claims(case: _Case) -> None:
    """Keeps every k that it claims, by an independent count, and every check holds."""
    for form in case.forms:
        for frame in case.frames():
            release = case.run(frame, form, noise=_fake(case))
            failing = [check for check in release.checks if not check.holds]
            _require(not failing, f"the check of {failing and failing[0].guarantee} fails")
            for claim in release.claims:
                if isinstance(claim.guarantee, KAnonymity) and form is not ReleaseForm.TREE:
                    rows = Counter(release.data.select(claim.guarantee.columns).rows())
                    _require(
                        min(rows.values()) >= claim.guarantee.k,
                        f"{claim.guarantee} is claimed, and a class has {min(rows.values())} rows",
                    )


def ignore_the_order(case: _Case) -> None:
    """Without noise, gives the same rows whatever their order in the file."""
    if case.method.noisy:
        return
    for form in case.forms:
        for frame in case.frames():
            made = case.run(frame, form, noise=SeededNoise(1)).data
            turned = case.run(frame.reverse(), form, noise=SeededNoise(1)).data
            _require(
                Counter(made.rows()) == Counter(turned.rows()),
                "the file with its rows in reverse has other rows in its release",
            )


def stay_in_the_domains(case: _Case) -> None:
    """Releases a row for each row and cells of public domains, and nothing after a draw raises."""
    for form in case.forms:
        if not case.method.noisy or form is ReleaseForm.TREE:
            continue
        for place, frame in enumerate(case.frames(odd=True)):
            added = EXTREMES[place % len(EXTREMES)]
            made = case.run(frame, form, noise=RecordingNoise(added)).data
            _require(made.height == frame.height, f"{frame.height} rows became {made.height}")
            for name in made.columns:
                values = DOMAINS[name][0]
                cells = made[name].drop_nulls()
                outside = (
                    not set(cells) <= set(values)
                    if name in {"rank", "flat", "secret"}
                    else len(cells) and not values[0] <= cells.min() <= cells.max() <= values[-1]
                )
                _require(not outside, f"cells of '{name}' lie outside its public domain")


def spend_the_same(case: _Case) -> None:
    """With noise, spends the same whatever the cells are."""
    if not case.method.noisy:
        return
    for form in case.forms:
        for frame in case.frames():
            other = frame.with_columns(pl.exclude("batch").reverse().shift(1))
            spent = [_spending(case, table, form) for table in (frame, other)]
            _require(spent[0] == spent[1], "another table costs another price")


def _spending(case: _Case, frame: pl.DataFrame, form: ReleaseForm) -> list[Any]:
    losses = case.run(frame, form, noise=RecordingNoise()).privacy_losses
    # How often a step draws may follow from noisy answers before it; its price may not.
    return [(loss.target, loss.mechanism, loss.scale, loss.sensitivity,
             0 if form in DRAWN else loss.draws) for loss in losses]  # fmt: skip


def pay_for_every_draw(case: _Case) -> None:
    """With noise, states every draw, and the prices add up to each claim that it makes."""
    for form in case.forms:
        promised = [
            claim.guarantee
            for claim in plan(case.stated(form)).claims
            if isinstance(claim.guarantee, DifferentialPrivacy)
            and claim.status is not Status.REFUTED
        ]
        for frame in case.frames() if promised else ():
            noise = RecordingNoise()
            release = case.run(frame, form, noise=noise)
            for privacy in promised:
                accounting.verify(
                    release.privacy_losses,
                    privacy.epsilon,
                    neighbours=privacy.neighbours,
                    drawn=noise.drawn,
                    delta=privacy.delta,
                    rho=privacy.rho,
                )


def repeat_by_its_seed(case: _Case) -> None:
    """Takes all its randomness from the tools: one seed gives one release."""
    for form in case.forms:
        for frame in case.frames():
            first, second = (case.run(frame, form, noise=SeededNoise(1)).data for _ in range(2))
            _require(first.equals(second), "two runs with one seed differ")


def _fake(case: _Case) -> SeededNoise | None:
    return SeededNoise(0) if case.method.noisy else None


PARTS: tuple[Callable[[_Case], None], ...] = (
    describe_itself,
    plan_every_form,
    keep_what_it_claims,
    ignore_the_order,
    stay_in_the_domains,
    spend_the_same,
    pay_for_every_draw,
    repeat_by_its_seed,
)
"""The contract, part by part."""

__all__ = [
    "Call",
    "ContractResult",
    "RecordingNoise",
    "SeededNoise",
    "check_method",
]
