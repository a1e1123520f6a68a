"""Inspect a table under a policy before it is protected: confidential, and written nowhere.

Somebody who reads these figures may choose a method by them, so a budget file records the
inspection first. Cells are named by column and row, and never shown. If asked, a release of most
of the persons is made and attacked, beside people who are kept out of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import permutations
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from shoal import io
from shoal import policy as policies
from shoal.core import Estimate, KAnonymity, KeptRule, Kind, Policy, Progress, Role, Schema, silent
from shoal.core.constraint_language import write_name
from shoal.core.serialise import plain
from shoal.engine import local
from shoal.engine.check_table import check_rules
from shoal.engine.risk_limits import TableRisk, table_risks
from shoal.errors import InputError, ShoalError, count_noun
from shoal.evaluation.evaluate import Part, evaluate_frames
from shoal.evaluation.results import Figure
from shoal.io import validate
from shoal.io.persons import spell_persons
from shoal.io.repair import repair_rows
from shoal.methods import Alternatives, Tools
from shoal.methods.discovery import settle_by_table
from shoal.metrics.intervals import difference
from shoal.metrics.suda import MOST_COLUMNS
from shoal.pipeline import booking, protect_table
from shoal.pipeline.options import BudgetOptions, ReadingOptions
from shoal.pipeline.planning import Plan, plan
from shoal.pipeline.protect_table import list_unexpected, secure_noise

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
MOST_SUGGESTED = 20
"""The most rules that are suggested."""
CONFIDENTIAL = "CONFIDENTIAL: computed from the table; not for publication"
BEGINS = (
    "This is an inspection: it reads the confidential table, and what it prints is confidential."
)
PUBLIC = (
    "You said that the file is public, or a sample that may be seen. So this inspection is "
    "not recorded."
)


@dataclass(frozen=True)
class AttackGain:
    """What an attack gains on people in the table over people who were held out.

    Attributes:
        name: the attack and what it is about.
        inside: its success rate on people in the table.
        outside: its success rate on people who were held out.
        helps: a sentence on what would reduce it; empty if it is small enough.
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


@dataclass(frozen=True)
class InspectedTable:
    """The result of inspecting a table under a policy; all of it is confidential.

    Attributes:
        refused: what keeps the policy from being planned, or the names of columns from fitting.
        misfits: cells that cannot be read, by column; of some columns a sentence alone.
        k: the k of the policy, or 2.
        below_k: records whose quasi-identifiers, as they are, fewer than k records share.
        unique: records whose quasi-identifiers nobody else has.
        resolved: how many of these records would not be unique without a column, by column.
        duplicates: rows that equal an earlier row in every column.
        repeated: rows of an identifier whose value an earlier row has, by column.
        unexpected: what would stop a release, such as columns that become constant.
        broken: rows that break each rule of the policy.
        suggested: orders and functional dependences that hold for every row and are not stated.
        alternatives: what other settings of the method would give, if it says so.
        risks: of the rows as they are, for which the table and its policy have what it takes.
        attacks: what attacks on a release gain on people in the table, if that was asked for.
    """

    rows: int
    refused: tuple[str, ...] = ()
    misfits: Mapping[str, tuple[validate.Misfit, ...] | str] = field(default_factory=dict)
    k: int = 2
    below_k: int | None = None
    unique: int | None = None
    resolved: Mapping[str, int] = field(default_factory=dict)
    duplicates: int = 0
    repeated: Mapping[str, int] = field(default_factory=dict)
    unexpected: tuple[str, ...] = ()
    broken: Mapping[str, int] = field(default_factory=dict)
    suggested: tuple[str, ...] = ()
    alternatives: Alternatives | None = None
    risks: tuple[TableRisk, ...] = ()
    attacks: tuple[AttackGain, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return the inspection as plain values."""
        misfits = {
            name: listed if isinstance(listed, str) else [misfit._asdict() for misfit in listed]
            for name, listed in self.misfits.items()
        }
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"confidential": CONFIDENTIAL, **plain({**values, "misfits": misfits})}

    def __str__(self) -> str:
        first = [CONFIDENTIAL, count_noun(self.rows, "row")]
        last = [f"release: {text}" for text in self.unexpected]
        risks = [f"risk: {risk}" for risk in self.risks]
        middle = [*self._cells(), *self._keys(), *risks, *self._persons(), *self._rules()]
        alternatives = [str(self.alternatives)] if self.alternatives else []
        return "\n".join([*first, *middle, *alternatives, *self.describe_attacks(), *last])

    def describe_attacks(self) -> list[str]:
        """Describe how a release fares against attacks, without quoting a cell."""
        how = [
            f"attacks on a release of {HELD_OUT - 1} in {HELD_OUT} persons; the others are held out"
        ]
        return [*how, *(f"attack: {gain}" for gain in self.attacks)] if self.attacks else []

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _cells(self) -> list[str]:
        lines = [f"policy: {text}" for text in self.refused]
        for name, misfits in self.misfits.items():
            texts = [misfits] if isinstance(misfits, str) else [f"'{name}': {m}" for m in misfits]
            lines += [f"cells: {text}" for text in texts]
        return lines if self.misfits else [*lines, "cells: all can be read under the policy"]

    def _keys(self) -> list[str]:
        if self.below_k is None:
            return []
        few = count_noun(self.below_k, "record lies", "records lie")
        unique = count_noun(self.unique or 0, "record is", "records are")
        classes = f"in equivalence classes of fewer than {self.k:,} records"
        lines = [f"quasi-identifiers, as they are: {few} {classes}; {unique} unique"]
        telling = {name: number for name, number in self.resolved.items() if number}
        for name, number in sorted(telling.items(), key=lambda one: -one[1]):
            would = count_noun(number, "unique record", "unique records")
            lines.append(f"  without '{name}', {would} would share their values with others")
        if self.unique and not telling:
            lines.append(
                f"  leaving out one of the {len(self.resolved):,} quasi-identifiers makes none of "
                "them less unique: round several columns, or protect fewer"
            )
        return lines

    def _persons(self) -> list[str]:
        lines = [
            f"persons: {count_noun(number, 'row repeats', 'rows repeat')} a value of '{name}'"
            for name, number in self.repeated.items()
            if number
        ]
        if self.duplicates:
            same = count_noun(self.duplicates, "row equals", "rows equal")
            lines.append(f"persons: {same} an earlier row in every column")
        return lines or ["persons: no row equals another in every column"]

    def _rules(self) -> list[str]:
        lines = [
            f"rules: {count_noun(number, 'row breaks', 'rows break')} '{text}'"
            for text, number in self.broken.items()
        ]
        if self.suggested:
            lines.append(
                f"rules: every row keeps {'; '.join(self.suggested)}. State under [constraints] "
                "what everybody knows; if that is not confirmed, with observed = true"
            )
        return lines


def inspect(
    data: Any,
    policy: policies.PolicySource,
    *,
    public: bool = False,
    reading: ReadingOptions = ReadingOptions(),
    budget: BudgetOptions = BudgetOptions(),
    attacks: bool = False,
    population: str | Path | None = None,
    tell: Callable[[str], None] = lambda _sentence: None,
    progress: Progress = silent,
    note: str = "",
) -> InspectedTable:
    """Inspect a table under a policy: unreadable cells, rare people, columns made constant.

    Where the policy names a budget file, the inspection is recorded in it before the table is
    read: every later epsilon of the source then holds only if nothing was chosen by it.

    Args:
        data: a pandas, Polars or PyArrow table, or the path of a file.
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.
        public: the table is public, or a sample that may be seen: nothing is recorded.
        reading: how a CSV file is written, instead of the policy's.
        budget: the budget file, instead of the policy's.
        attacks: protect four in five persons as the policy says, and attack them and the others:
            singling out, linkability and inference. Not for a policy with an epsilon.
        population: a file with the quasi-identifiers of everybody whom an attacker could match,
            instead of the policy's.
        tell: called with what the inspection costs, in sentences, before it begins.
        progress: called with the stage and how far it is.
        note: public, for the budget file.
    """
    policy = budget.apply_to(policies.load(policy))
    if population is not None:
        policy = replace(policy, population=Path(population))
    tell(PUBLIC if public else BEGINS)
    if not public:
        for sentence in booking.record_inspection(policy, what="inspect", note=note):
            tell(sentence)
    progress("reading the table", 0, 1)
    raw = io.read(data, **reading.marks(policy)) if isinstance(data, str | Path) else data
    return inspect_raw(io.from_native(raw), policy, attacks=attacks, progress=progress)


def inspect_raw(
    raw: io.Raw, policy: Policy, *, attacks: bool = False, progress: Progress = silent
) -> InspectedTable:
    """Inspect a table that was already read; nothing is recorded."""
    frame = raw.frame
    refused: list[str] = []
    planned = _try_plan(policy, refused)
    try:
        validate.check_names(frame, policy.schema)
    except InputError as error:
        return InspectedTable(frame.height, (*refused, str(error)))
    policy = settle_by_table(policy, frame)
    schema = policy.schema
    typed, misfits = _coerce_columns(frame, schema, policy.reading.decimal)
    keys = [name for name in schema.with_role(Role.QUASI_IDENTIFIER) if name in typed.columns]
    k = _least(policy)
    below, unique, resolved = _rare(typed, keys, k)
    unexpected: tuple[str, ...] = ()
    alternatives = None
    if planned is not None and not misfits and not planned.method.noisy and frame.height:
        progress("protecting a copy", 0, 1)
        unexpected, alternatives = _try_release(raw, planned, refused)
    gains = _attack(raw, planned, refused, progress) if attacks and not misfits else ()
    return InspectedTable(
        rows=frame.height,
        refused=tuple(refused),
        misfits=misfits,
        k=k,
        below_k=below,
        unique=unique,
        resolved=resolved,
        duplicates=frame.height - frame.unique().height,
        repeated=_count_repeats(frame, schema),
        unexpected=unexpected,
        risks=_risks(typed, frame, policy, keys),
        broken={
            check.guarantee.rule: int(check.achieved)
            for check in check_rules(frame, policy)
            if isinstance(check.guarantee, KeptRule)
        },
        suggested=_suggest_rules(typed, policy),
        alternatives=alternatives,
        attacks=gains,
    )


def _risks(
    typed: pl.DataFrame, frame: pl.DataFrame, policy: Policy, keys: Sequence[str]
) -> tuple[TableRisk, ...]:
    """Compute the risks of the rows; of more columns than SUDA searches, none."""
    if not keys or not frame.height or len(keys) > MOST_COLUMNS:
        return ()
    return table_risks(typed, frame, policy, keys)


def _try_plan(policy: Policy, refused: list[str]) -> Plan | None:
    try:
        return plan(policy)
    except ShoalError as error:
        refused.append(str(error))
        return None


def _coerce_columns(
    frame: pl.DataFrame, schema: Schema, decimal: str | None
) -> tuple[pl.DataFrame, dict[str, tuple[validate.Misfit, ...] | str]]:
    """Convert columns to the types of the policy where possible, and report what does not fit."""
    columns, misfits = [], dict[str, tuple[validate.Misfit, ...] | str]()
    for name in frame.columns:
        if schema[name].role is Role.IDENTIFIER:
            continue
        try:
            columns.append(validate.parse_column(frame[name], schema[name], decimal))
        except validate.MisfitError as error:
            misfits[name] = error.misfits
            columns.append(validate.mark_missing(frame[name], schema[name]))
        except InputError as error:
            misfits[name] = str(error)
    return pl.DataFrame(columns), misfits


def _least(policy: Policy) -> int:
    """Return the k that the policy requires or states, or 2."""
    required = [guarantee.k for guarantee in policy.required if isinstance(guarantee, KAnonymity)]
    stated = policy.parameters.get("k")
    return max([2, *required, *([stated] if isinstance(stated, int) else [])])


def _rare(
    frame: pl.DataFrame, keys: Sequence[str], k: int
) -> tuple[int | None, int | None, dict[str, int]]:
    """Count records in classes below k, unique ones, and those that each column makes unique."""
    if not keys:
        return None, None, {}
    sizes = _class_sizes(frame, keys)
    unique = sizes == 1
    resolved = {
        name: int((unique & (_class_sizes(frame, [o for o in keys if o != name]) > 1)).sum())
        for name in keys
    }
    return int((sizes < k).sum()), int(unique.sum()), resolved


def _class_sizes(frame: pl.DataFrame, keys: Sequence[str]) -> pl.Series:
    """Return for each row how many rows have its values; missing cells are equal."""
    if not keys:
        return pl.Series([frame.height]).new_from_index(0, frame.height)
    return frame.select(pl.len().over(keys)).to_series()


def _suggest_rules(typed: pl.DataFrame, policy: Policy) -> tuple[str, ...]:
    """Find orders and functional dependences without exception, where exceptions were possible.

    An order counts if the ranges of its columns overlap; a dependence if its source has several
    rows for most of its values, and its target several values.
    """
    stated = {rule.text for rule in policy.constraints.rules}
    rules = []
    kinds = {column.name: policy.schema[column.name].kind for column in typed}
    for column, other in permutations(typed, 2):
        kind, same = kinds[column.name], kinds[column.name] is kinds[other.name]
        names = [write_name(column.name), write_name(other.name)]
        if kind in {Kind.NUMERIC, Kind.DATE} and same and column.dtype.is_(other.dtype):
            apart = (column <= other).all() and column.n_unique() > 1 < other.n_unique()
            if apart and cast("Any", column.max()) > cast("Any", other.min()):
                rules.append(f"{names[0]} <= {names[1]}")
        elif kind is Kind.NOMINAL and kinds[other.name] in {Kind.NOMINAL, Kind.ORDINAL}:
            sources, targets = column.n_unique(), other.n_unique()
            could = 2 * sources <= column.len() and 1 < targets < sources
            if could and pl.DataFrame([column, other]).unique().height == sources:
                rules.append(f"{names[0]} determines {names[1]}")
    return tuple(text for text in rules if text not in stated)[:MOST_SUGGESTED]


def _count_repeats(frame: pl.DataFrame, schema: Schema) -> dict[str, int]:
    """Count rows that repeat a value of a column that names or identifies persons."""
    unit = schema.column_with_flag("privacy_unit")
    names = [unit] if unit else schema.with_role(Role.IDENTIFIER)
    cells = {name: spell_persons(frame[name], schema[name]).drop_nulls() for name in names}
    return {name: some.len() - some.n_unique() for name, some in cells.items()}


def _try_release(
    raw: io.Raw, planned: Plan, refused: list[str]
) -> tuple[tuple[str, ...], Alternatives | None]:
    """Make a trial release, and report what would stop it and what other methods would give."""
    alternatives = None
    try:
        policy, tools = planned.policy, Tools(secure_noise())
        typed = validate.validate(raw.frame, policy.schema, decimal=policy.reading.decimal)
        # Rows that break a rule are counted elsewhere; a release would have them repaired.
        table = repair_rows(typed, policy.constraints.rules, missing=policy.schema.released)[0]
        if planned.method.alternatives is not None:
            alternatives = planned.method.alternatives(table, planned.setting, tools)
        outcome = local.run(table, planned.method, planned.setting, tools)
    except ShoalError as error:
        refused.append(str(error))
        return (), alternatives
    return list_unexpected(planned, outcome), alternatives


def _attack(
    raw: io.Raw, planned: Plan | None, refused: list[str], progress: Progress
) -> tuple[AttackGain, ...]:
    if planned is None:
        return ()
    try:
        return attack_release(raw, planned.policy, progress=progress)
    except ShoalError as error:
        refused.append(f"not attacked: {error}")
        return ()


def attack_release(
    raw: io.Raw, policy: Policy, *, progress: Progress = silent
) -> tuple[AttackGain, ...]:
    """Protect most of the persons by a policy without an epsilon, and attack them and the others.

    How often an attack succeeds says little: some of it works on anybody. So a part of the persons
    is held out, the policy is run on the others, and the same attacks go against both. What they
    gain on the people in the table is due to being in it.

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
    """Split the rows by persons, so nobody is in both parts."""
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
    """A policy, the people protected by it, the people held out, and the release."""

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
    """Find columns whose removal reduces an attack enough, and advise what to do with them."""
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
        return "Leaving out a few columns would not help: use a higher k, or protect fewer columns."
    names = " and ".join(f"'{name}'" for name in left_out)
    them = "it" if len(left_out) == 1 else "them"
    still, more = ("", "") if gain <= MOST_GAIN else ("still ", " Use a higher k as well.")
    return (
        f"Without {names} the gain would {still}be {_per_hundred(max(gain, 0))}: drop {them}, make "
        f"{them} coarser, or protect {them} too (role quasi-identifier).{more}"
    )


def _per_hundred(share: float) -> str:
    return f"{100 * share:.0f}"
