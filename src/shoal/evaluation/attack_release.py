"""Attack a release of a table before it is made, beside people who are kept out of it.

How often an attack succeeds says little: some of it works on anybody. So a part of the persons is
held out, the policy is run on the others, and the same attacks go against both. What they gain on
the people in the table is due to being in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from shoal import io
from shoal.core import Estimate, Policy, Progress, Role, silent
from shoal.errors import InputError
from shoal.evaluation.evaluate import Part, evaluate_frames
from shoal.evaluation.results import Figure
from shoal.metrics.intervals import difference
from shoal.pipeline import protect_table
from shoal.pipeline.planning import plan

ATTACKS = ("singling out", "linkability", "inference")
"""The three questions of European guidance."""
MOST_GAIN = 0.09
"""An attack may succeed so much more often on people in the table than on others: the probability
of re-identification that the European Medicines Agency (policy 0070) and Health Canada accept in
data that they publish."""
HELD_OUT, MOST_HELD_OUT = 5, 2000
"""One person in so many is held out, and at most so many persons."""
FEWEST = 50
"""Fewer persons show nothing."""
MOST_LEFT_OUT = 3
"""So many columns are left out at most, one after the other, to see what would help."""


@dataclass(frozen=True)
class AttackGain:
    """What an attack gains on people in the table over people who were held out.

    Attributes:
        name: the attack and what it is about.
        inside: its rate of success on people in the table.
        outside: the same on people who were held out.
        helps: what would bring it down, as a sentence; empty if it need not come down.
    """

    name: str
    inside: float
    outside: float
    gain: Estimate
    helps: str = ""

    @property
    def passes(self) -> bool:
        """Whether the gain is at most `MOST_GAIN`."""
        return self.gain.value <= MOST_GAIN

    def __str__(self) -> str:
        if self.gain.high - self.gain.low > 1:
            return f"{self.name}: passes: nothing in the release invites it."
        verdict = "passes" if self.passes else "does not pass"
        return (
            f"{self.name}: {verdict}: succeeds for {_per_hundred(self.inside)} of 100 people in "
            f"the table and {_per_hundred(self.outside)} of 100 held out; "
            f"{_per_hundred(self.gain.value)} more ({_per_hundred(self.gain.low)} to "
            f"{_per_hundred(self.gain.high)}), at most {_per_hundred(MOST_GAIN)} "
            f"wanted.{f' {self.helps}' if self.helps else ''}"
        )


def attack_release(
    raw: io.Raw, policy: Policy, *, progress: Progress = silent
) -> tuple[AttackGain, ...]:
    """Protect most of the persons by a policy without an epsilon, and attack them and the others.

    Nothing is written, booked or recorded: whoever calls it has recorded an inspection. Of an
    attack that gains too much, columns that are released as they are get left out, the one that
    helps most first, until it gains little enough.
    """
    inside, outside = _hold_out(raw.frame, policy)
    accepted = policy.schema.released
    policy = replace(policy, required=(), audience=None, budget=None, accept_constant=accepted)
    planned = plan(policy)
    if planned.method.noisy:
        raise InputError("A release with an epsilon is not tried on its table; use a sample.")
    progress("protecting a copy", 0, 1)
    done = protect_table.run(planned, replace(raw, frame=inside), progress=progress)
    done.close()
    tables = _Tables(policy, inside, outside, io.from_native(done.release.data).frame)
    as_they_are = [name for name in tables.released.columns if name not in planned.setting.columns]
    gains = list(tables.attack(ATTACKS))
    return tuple(
        gain if gain.passes else replace(gain, helps=_helps(gain, tables, as_they_are, progress))
        for gain in gains
    )


def _hold_out(frame: pl.DataFrame, policy: Policy) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split the rows by persons, so nobody is on both sides."""
    unit = policy.schema.column_with_flag("privacy_unit")
    who = (
        np.arange(frame.height)
        if unit is None
        else frame[unit].rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    )
    persons = np.unique(who)
    if persons.size < FEWEST:
        raise InputError(f"Fewer than {FEWEST} persons are too few to hold some of them out.")
    held = np.random.default_rng(0).permutation(persons)
    out = np.isin(who, held[: min(persons.size // HELD_OUT, MOST_HELD_OUT)])
    return frame.filter(~out), frame.filter(out)


@dataclass(frozen=True, eq=False)
class _Tables:
    """A policy, people who were protected by it, others, and the release."""

    policy: Policy
    inside: pl.DataFrame
    outside: pl.DataFrame
    released: pl.DataFrame

    def attack(self, which: Sequence[str]) -> Iterator[AttackGain]:
        """Attack both sides."""
        evaluation = evaluate_frames(
            self.inside, self.released, self.policy, control=self.outside, only=Part.RISK,
            which=which,
        )  # fmt: skip
        return map(_gain, evaluation.figures)

    def without(self, name: str) -> "_Tables":
        """The same if a column had not been released."""
        columns = tuple(
            replace(column, role=Role.IDENTIFIER) if column.name == name else column
            for column in self.policy.schema.columns
        )
        schema = replace(self.policy.schema, columns=columns)
        return replace(
            self, policy=replace(self.policy, schema=schema), released=self.released.drop(name)
        )


def _gain(figure: Figure) -> AttackGain:
    rates = [rate if isinstance(rate, Estimate) else Estimate(0.0, 0.0, 1.0, 0.95)
             for rate in (figure.value, figure.control)]  # fmt: skip
    gain = difference(*rates)
    name = f"{figure.metric}, {figure.subject}"
    return AttackGain(name, rates[0].value, rates[1].value, gain)


def _helps(
    failed: AttackGain, tables: _Tables, as_they_are: Sequence[str], progress: Progress
) -> str:
    """Find columns without which an attack gains little enough, and say what to do with them."""
    attack, _, subject = failed.name.partition(", ")
    if attack == "inference":
        return f"Leave '{subject}' out, or protect it too: role quasi-identifier."
    left_out: list[str] = []
    gain = failed.gain.value
    for _ in range(min(MOST_LEFT_OUT, len(as_they_are))):
        tried = {}
        for name in as_they_are:
            if name in left_out:
                continue
            progress(f"attacking it without '{name}'", 0, 1)
            fewer = tables.without(name)
            tried[name] = fewer, max(
                (outcome.gain.value for outcome in fewer.attack([attack])
                 if attack == "linkability" or outcome.name == failed.name), default=0.0
            )  # fmt: skip
        name = min(tried, key=lambda name: tried[name][1])
        left_out.append(name)
        tables, gain = tried[name]
        if gain <= MOST_GAIN:
            break
    if gain >= failed.gain.value:
        return "No few columns are the cause: use a higher k, or protect fewer columns."
    names = " and ".join(f"'{name}'" for name in left_out)
    them = "it" if len(left_out) == 1 else "them"
    still, more = ("", "") if gain <= MOST_GAIN else ("still ", " Use a higher k as well.")
    return (
        f"Without {names} the gain would {still}be {_per_hundred(max(gain, 0))}: drop {them}, make "
        f"{them} coarser, or protect {them} too (role quasi-identifier).{more}"
    )


def _per_hundred(share: float) -> str:
    return f"{100 * share:.0f}"
