"""Discover with noise what a policy leaves open of its columns, before rows are drawn.

A policy may say `discover` in place of a column's kind, categories or bounds. Then a share of the
budget buys them (`shoal.mechanism.unknown_domains`, with the proofs), and the method runs on what
was found, as if the policy had stated it. What was found stands in the manifest.

Claim. First the kinds and the number of rows are counted, for fixed shares of the price P. Given
their noisy answers, a share a of P buys domains, and the method has what is left, one after the
other, where what the method is asked depends on what was found: a sequence, whose prices add up
(`shoal.hazmat.accounting`). The share may follow from the first answers, because whatever they are,
all that comes after them costs the same in sum. Texts have a delta as well; together at most half
of the one that is claimed, and the rho is what the claimed epsilon allows at the other half.

The share. With s the deviation of a column's counts if the column had its part of the whole price,

    a = 850 w s / n,  from 1/50 to 1/10, or to the stated `discovery_share`,

w being 1 for texts and 1/2 for ranges, in the mean of the columns. Of generated tables of 2,500 to
160,000 people at epsilon 1, 3 and 10, those in which most texts are rare had 12 to 36% less error
of pairs with a third than with a tenth, and others up to 18% more: much is lost where a town is not
found. A tenth is the cautious default; who knows that most texts are rare states more.

Each question reads one cell, its column's line in the policy, and [reading]. At most r rows of a
person are asked, chosen by that person's rows alone. So a person who comes or goes moves the counts
of a question by r at most, and one whose rows change by 2 r: nothing is padded, and no domain is
needed.

What becomes of a cell that was not found: a text becomes `other`, a number or a date outside the
bounds is clamped, and what does not fit the kind counts as missing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Any, cast

import numpy as np
import polars as pl

from shoal.core import (
    Column,
    DifferentialPrivacy,
    Kind,
    Noise,
    Policy,
    Price,
    PrivacyLoss,
    PrivacyMeasure,
    Transform,
)
from shoal.core._arrays import Ints
from shoal.errors import InputError, count_noun
from shoal.mechanism import unknown_domains as unknown
from shoal.methods import cell_keys as keys
from shoal.methods.cell_keys import Count, Question
from shoal.methods.method import Setting
from shoal.methods.noise import contributions

LEAST_SHARE, MOST_SHARE = Fraction(1, 50), Fraction(1, 10)
"""Between these lies the share of a price that buys domains, unless the policy states the most."""
_SHARE_TIMES_ROWS = 850
DELTA_SHARE = Fraction(1, 2)
"""Share of a delta that the thresholds of texts have together."""
_KIND_SHARE, _ROWS_SHARE = Fraction(1, 160), Fraction(1, 200)
"""Shares of a price for all kinds, and for the number of rows where it is not public."""
_RANGE_WEIGHT = Fraction(1, 2)
"""What a range gets of the budget beside a column of texts, where most is lost to thresholds."""
_STEP_SHARE = Fraction(1, 8)
_TOTAL_SHARE = Fraction(1, 8)
"""Of all years the sum would have the noise of 400 cells, which reads as half of the dates."""
_RARE = 0.1
"""Share of the cells that may be something else in a column of numbers or dates."""
_DIGITS = 12


BASIS = (
    "what the policy leaves open of its columns is found with noise first, for a share of the "
    "price that follows from noisy counts: of these columns no value, bound or category is "
    "assumed, and what was found is from then on as public as what is stated"
)
STATED = (
    "the names of the columns, their roles, how the file is written ([reading]) and whose rows "
    "they are were stated without looking at cells"
)


@dataclass(frozen=True)
class Discovery:
    """What is to be discovered, and at which price.

    Attributes:
        columns: with what the policy states of them.
        price: of the release, for a person.
        delta: of each column that may hold texts.
        rows: of a person, at most.
        size: the number of rows of the table, where it is public.
        most: the largest share of the price that domains may take.
        decimal: the decimal mark of numbers in text.
    """

    columns: tuple[Column, ...]
    price: Price
    delta: Fraction
    rows: int
    size: int | None = None
    most: Fraction = MOST_SHARE
    decimal: str | None = None

    @property
    def delta_of_all(self) -> Fraction:
        """The delta of all columns that may hold texts."""
        return self.delta * sum(has_unknown_texts([column]) for column in self.columns)

    def divide(self, columns: Sequence[Column], size: float) -> dict[str, Fraction]:
        """Choose which share of the price each column gets, by its kind and the number of rows."""
        weights = {c.name: Fraction(1) if c.kind is Kind.NOMINAL else _RANGE_WEIGHT
                   for c in columns}  # fmt: skip
        total = sum(weights.values(), Fraction(0))
        deviation = unknown.deviation_of(self.price * (1 / total), rows=self.rows)
        wanted = Fraction(_SHARE_TIMES_ROWS * deviation / max(size, 1.0)) * total / len(columns)
        share = min(max(wanted.limit_denominator(10_000), LEAST_SHARE), self.most)
        return {name: share * weight / total for name, weight in weights.items()}

    def threshold(self) -> int:
        """Return from which noisy count on a text is found, if all columns hold texts."""
        texts = [replace(column, kind=Kind.NOMINAL) for column in self.columns]
        share = max(self.divide(texts, self.size or 1).values())
        return unknown.plan_threshold(self.price * share, self.delta, rows=self.rows)[2]


@dataclass(frozen=True)
class Discovered:
    """What was discovered: the columns, settled, with the losses of finding them.

    Attributes:
        facts: for each column the keys of its line in a policy, and `outside`, the share of its
            numbers or dates that were clamped, by noisy counts.
        left: the share of the price that is left for the method.
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    privacy_losses: tuple[PrivacyLoss, ...] = ()
    left: Fraction = Fraction(1)


def open_columns(setting: Setting[Any]) -> tuple[Column, ...]:
    """List the protected columns of which something is to be discovered."""
    columns = (setting.schema[name] for name in setting.columns)
    return tuple(column for column in columns if column.discover)


def has_unknown_texts(columns: Sequence[Column]) -> bool:
    """Whether keys that nobody knows may be released, which has a delta."""
    return any({"kind", "categories"} & {*column.discover} for column in columns)


def plan_discovery(
    setting: Setting[Any], claimed: DifferentialPrivacy, decimal: str | None
) -> Discovery | None:
    """Divide the claimed loss among the columns that are still open; None without any."""
    columns = tuple(column for column in open_columns(setting) if column.is_open)
    return _divide_price(columns, setting, claimed, decimal) if columns else None


def _divide_price(
    columns: tuple[Column, ...],
    setting: Setting[Any],
    claimed: DifferentialPrivacy,
    decimal: str | None,
) -> Discovery:
    measure = PrivacyMeasure.EPSILON if claimed.rho is None else PrivacyMeasure.RHO
    amount = claimed.epsilon if claimed.rho is None else claimed.rho
    texts = sum(has_unknown_texts([column]) for column in columns)
    return Discovery(
        columns,
        Price(amount or Fraction(0), claimed.neighbours, measure),
        claimed.delta * DELTA_SHARE / max(texts, 1),
        contributions.most(setting.schema),
        setting.rows,
        _most_share(setting),
        decimal,
    )


def _most_share(setting: Setting[Any]) -> Fraction:
    stated = getattr(setting.parameters, "discovery_share", None)
    return MOST_SHARE if stated is None else max(Fraction(stated), LEAST_SHARE)


def delta_of_texts(setting: Setting[Any], claimed: DifferentialPrivacy) -> Fraction:
    """Return what the thresholds of all texts take of a delta, at most."""
    unsettled = open_columns(setting)
    return claimed.delta * DELTA_SHARE if has_unknown_texts(unsettled) else Fraction(0)


def plan_notes(setting: Setting[Any], claimed: DifferentialPrivacy) -> tuple[str, ...]:
    """Say what is found with noise, and how many people a text must have to be found."""
    columns = open_columns(setting)
    if not columns:
        return ()
    asked = _divide_price(columns, setting, claimed, None)
    named = ", ".join(f"'{c.name}' ({', '.join(c.discover)})" for c in asked.columns)
    shares = f"{float(LEAST_SHARE):.0%} to {float(asked.most):.0%}"
    lines = [
        f"Found with noise, for {shares} of the budget, the less the more rows there are: {named}."
    ]
    if has_unknown_texts(asked.columns):
        least, whom = asked.threshold(), "people" if asked.rows == 1 else "rows"
        lines.append(
            f"A text is found where about {least:,} {whom} or more have it; others become 'other'."
        )
    return tuple(lines)


def leave_for_method(
    setting: Setting[Any], claimed: DifferentialPrivacy, left: Fraction
) -> Setting[Any]:
    """Return the setting of the method, with the share that the discovery leaves of the price."""
    if claimed.rho is None:
        stated: dict[str, Fraction | None] = {"epsilon": (claimed.epsilon or Fraction(0)) * left}
    else:
        stated = {"epsilon": None, "delta": None, "rho": claimed.rho * left}
    return replace(setting, parameters=setting.parameters.model_copy(update=stated))


def refuse_discovery(setting: Setting[Any]) -> None:
    """Refuse what cannot be discovered, or not with this epsilon."""
    columns = open_columns(setting)
    named = ", ".join(f"'{column.name}'" for column in columns)
    parameters = setting.parameters
    if has_unknown_texts(columns) and getattr(parameters, "delta", None) is None:
        texts = ", ".join(f"'{c.name}'" for c in columns if has_unknown_texts([c]))
        raise InputError(
            f"Column {texts}: texts that nobody knows beforehand cannot be discovered for a pure "
            "epsilon or a rho: one person's text would show that the person is there. State a "
            "delta beside epsilon, with auto or maxent, or state the categories; a public list "
            "that has more of them than occur will do."
        )
    strata = getattr(parameters, "strata", None)
    ruled = {name for rule in setting.constraints.rules for name in rule.columns}
    for column in columns:
        if column.name in ruled:
            raise InputError(
                f"Column '{column.name}' is to be discovered, and a rule of [constraints] reads "
                "it. State its kind, and its bounds or categories, so the rule has a meaning "
                "whatever is found."
            )
    if strata is not None and any(column.name == strata for column in columns):
        raise InputError(f"[protect], strata: expected stated categories of {named}.")


def settle_by_table(policy: Policy, frame: pl.DataFrame) -> Policy:
    """Settle what a policy leaves open by the table itself, without noise.

    For inspections and evaluations, whose figures are confidential; never for a release.
    """
    columns = tuple(c for c in policy.schema.columns if c.is_open)
    if not columns:
        return policy
    # A rho beside which any noise would be nothing.
    asked = Discovery(
        columns, Price(Fraction(10**12), measure=PrivacyMeasure.RHO), Fraction(1), 1,
        frame.height, MOST_SHARE, policy.reading.decimal,
    )  # fmt: skip
    exact = _Search(asked, partial(keys.count_keys, frame), cast("Noise", _NoNoise())).run()
    return settle_policy(policy, exact.facts)


class _NoNoise:
    """What answers exactly, for figures that are as confidential as the table."""

    def discrete_gaussian(self, values: Ints, *, scale: Fraction) -> Ints:
        del scale
        return values

    def release_keys(
        self, counts: Mapping[str, int], *, scale: Fraction, threshold: int
    ) -> dict[str, int]:
        del scale, threshold
        return dict(counts)


def refuse_unsettled(policy: Policy) -> None:
    """Refuse a policy with a column whose domain is open, as for an audit of its method."""
    for column in policy.schema.columns:
        if column.is_open:
            raise InputError(
                f"Column '{column.name}' is to be discovered, and an audit runs the method on a "
                "known domain. State its kind, and its bounds or categories, such as a release's "
                "manifest has them under found."
            )


def discover(asked: Discovery, count: Count, noise: Noise) -> Discovered:
    """Find what is open, in two rounds of counts; nothing that is found can raise."""
    return _Search(asked, count, noise).run()


@dataclass(frozen=True)
class _Search:
    """The rounds of a discovery."""

    asked: Discovery
    count: Count
    noise: Noise
    losses: list[PrivacyLoss] = field(default_factory=list)
    shares: dict[str, Fraction] = field(default_factory=dict)

    def run(self) -> Discovered:
        columns = dict(zip([c.name for c in self.asked.columns], self._with_kinds(), strict=True))
        size = self._count_rows() if self.asked.size is None else self.asked.size
        self.shares.update(self.asked.divide([*columns.values()], size))
        made = {
            **self._texts([c for c in columns.values() if c.kind is Kind.NOMINAL]),
            **self._days([c for c in columns.values() if c.kind is Kind.DATE]),
            **self._numbers([c for c in columns.values() if c.kind is Kind.NUMERIC]),
        }
        facts = {name: made[name] for name in columns}
        settled = {name: settle_column(columns[name], facts[name]) for name in columns}
        first = _KIND_SHARE * any("kind" in c.discover for c in self.asked.columns)
        first += _ROWS_SHARE * (self.asked.size is None)
        left = 1 - first - sum(self.shares.values(), Fraction(0))
        return Discovered(settled, facts, tuple(self.losses), left)

    def _count_rows(self) -> float:
        """Count the rows with noise."""
        anywhere = Question(self.asked.columns[0].name, keys.row_keys)
        (counts,) = self.count([anywhere])
        price = self.asked.price * _ROWS_SHARE
        noisy, _ = self._noisy(anywhere, counts, 1, price=price, what="rows")
        return float(noisy.sum())

    def _price_of(self, column: Column) -> Price:
        return self.asked.price * self.shares[column.name]

    def _noisy(
        self, question: Question, counts: Mapping[Any, int], size: int, *, price: Price, what: str
    ) -> tuple[Ints, float]:
        """Count cells 0 to size - 1 with noise."""
        exact = np.zeros(size, dtype=np.int64)
        exact[list(counts)] = list(counts.values())
        noisy, deviation, loss = unknown.count_with_noise(
            exact,
            rows=self.asked.rows,
            price=price,
            target=f"{what} of {question.column}",
            noise=self.noise,
        )
        self.losses.append(loss)
        return noisy, deviation

    def _with_kinds(self) -> Iterator[Column]:
        """Choose kinds and forms of dates where they are open."""
        decimal = self.asked.decimal
        unsure = [column for column in self.asked.columns if "kind" in column.discover]
        questions = [
            Question(c.name, partial(keys.kind_keys, column=c, decimal=decimal)) for c in unsure
        ]
        chosen = {}
        for column, asked, counts in zip(unsure, questions, self.count(questions), strict=True):
            price = self.asked.price * (_KIND_SHARE / len(unsure))
            noisy, deviation = self._noisy(
                asked, counts, keys.MISSING + 1, price=price, what="kind"
            )
            chosen[column.name] = _choose_kind(column, noisy, deviation)
        return (chosen.get(column.name, column) for column in self.asked.columns)

    def _texts(self, columns: Sequence[Column]) -> dict[str, dict[str, Any]]:
        questions = [Question(c.name, partial(keys.text_keys, column=c)) for c in columns]
        facts = {}
        for column, counts in zip(columns, self.count(questions), strict=True):
            released, loss = unknown.find_keys(
                counts,
                rows=self.asked.rows,
                price=self._price_of(column),
                delta=self.asked.delta_of_all / len(columns),
                target=f"categories of {column.name}",
                noise=self.noise,
            )
            self.losses.append(loss)
            rest = "other"
            while rest in released:
                rest = f"({rest})"
            facts[column.name] = {
                "kind": Kind.NOMINAL.value,
                "categories": [*sorted(released), rest],
                "other": rest,
            }
        return facts

    def _days(self, columns: Sequence[Column]) -> dict[str, dict[str, Any]]:
        """Find ranges by years, and by months where these show them within the same years."""
        years = [Question(c.name, partial(keys.year_keys, column=c)) for c in columns]
        months = [Question(c.name, partial(keys.month_keys, column=c)) for c in columns]
        totals = [Question(c.name, partial(keys.date_keys, column=c)) for c in columns]
        counted = self.count([*years, *months, *totals])
        facts = {}
        for place, column in enumerate(columns):
            price = self._price_of(column) * (1 - _TOTAL_SHARE) / 2
            coarse, deviation = self._noisy(
                years[place], counted[place], unknown.YEARS, price=price, what="years"
            )
            fine, deviation_of_months = self._noisy(
                months[place], counted[len(columns) + place], unknown.MONTHS, price=price,
                what="months",
            )  # fmt: skip
            total, _ = self._noisy(
                totals[place], counted[2 * len(columns) + place], 1,
                price=self._price_of(column) * _TOTAL_SHARE, what="number",
            )  # fmt: skip
            first, last = unknown.reach_of(coarse, deviation)
            ends = unknown.reach_of(fine, deviation_of_months)
            if (ends[0] // 12, ends[1] // 12) != (first, last):
                ends = 12 * first, 12 * last + 11
            bounds = unknown.month_range(*ends)
            facts[column.name] = {
                "kind": Kind.DATE.value,
                "bounds": [day.isoformat() for day in bounds],
                **({"date_format": column.date_format} if column.date_format else {}),
                "outside": _share_outside(coarse, first, last, total.sum()),
            }
        return facts

    def _numbers(self, columns: Sequence[Column]) -> dict[str, dict[str, Any]]:
        """Find ranges by magnitudes, and steps."""
        decimal = self.asked.decimal
        sizes = [
            Question(c.name, partial(keys.magnitude_keys, column=c, decimal=decimal))
            for c in columns
        ]
        steps = [
            Question(c.name, partial(keys.step_keys, column=c, decimal=decimal)) for c in columns
        ]
        counted = self.count([*sizes, *steps])
        facts = {}
        for place, column in enumerate(columns):
            noisy, deviation = self._noisy(
                sizes[place], counted[place], unknown.MAGNITUDES,
                price=self._price_of(column) * (1 - _STEP_SHARE), what="magnitudes",
            )  # fmt: skip
            multiples, deviation_of_steps = self._noisy(
                steps[place], counted[len(columns) + place], len(unknown.STEPS) + 2,
                price=self._price_of(column) * _STEP_SHARE, what="step",
            )  # fmt: skip
            step = column.step
            if step is None:
                step = unknown.choose_step(multiples[:-1], deviation_of_steps)
            first, last = unknown.reach_of(noisy, deviation)
            ends = _bounds(*unknown.magnitude_range(first, last), step)
            skewed = column.transform is None and unknown.is_skewed(noisy, first, last)
            facts[column.name] = {
                "kind": Kind.NUMERIC.value,
                "bounds": [_plain(end) for end in ends],
                **({"step": _plain(step)} if step is not None else {}),
                **({"transform": Transform.LOG.value} if skewed else {}),
                "outside": _share_outside(noisy, first, last, multiples.sum()),
            }
        return facts


def settle_column(column: Column, facts: Mapping[str, Any]) -> Column:
    """Return a column as it was discovered.

    Raises:
        InputError: the facts, which a manifest may hold, are not those of a column.
    """
    try:
        kind = Kind(facts["kind"])
        bounds = facts.get("bounds")
        to_bound: Callable[[Any], Any] = date.fromisoformat if kind is Kind.DATE else _exact
        categories = facts.get("categories")
        return replace(
            column,
            kind=kind,
            categories=None if categories is None else tuple(map(str, categories)),
            other=facts.get("other"),
            bounds=None if bounds is None else (to_bound(bounds[0]), to_bound(bounds[1])),
            step=_exact(facts["step"]) if "step" in facts else column.step,
            transform=Transform(facts["transform"]) if "transform" in facts else column.transform,
            date_format=facts.get("date_format", column.date_format),
        )
    except (LookupError, TypeError, ValueError, ArithmeticError):
        raise InputError(f"Column '{column.name}': what was found of it cannot be read.") from None


def describe(found: Discovered) -> tuple[str, ...]:
    """Say what was found of each column, in a sentence."""
    return tuple(_describe_column(name, facts) for name, facts in found.facts.items())


def _describe_column(name: str, facts: Mapping[str, Any]) -> str:
    if "categories" in facts:
        known, rest = len(facts["categories"]) - 1, facts["other"]
        if not known:
            return f"Found with noise: no text of '{name}' is frequent enough; all are '{rest}'."
        texts = count_noun(known, "text", "texts")
        return f"Found with noise: {texts} of '{name}'; all others are '{rest}'."
    low, high = facts["bounds"]
    what = "dates" if facts["kind"] == Kind.DATE else "numbers"
    step = f" in steps of {facts['step']:g}" if "step" in facts else ""
    beyond = f"; about {share:.1%} lie beyond and count as its ends" if (
        share := facts.get("outside")) else ""  # fmt: skip
    return f"Found with noise: '{name}' has {what} from {low} to {high}{step}{beyond}."


def settle_policy(policy: Policy, facts: Mapping[str, Mapping[str, Any]]) -> Policy:
    """Return a policy whose open columns are as they were discovered.

    Raises:
        InputError: an open column was not discovered, or facts are of another.
    """
    schema = policy.schema
    unsettled = {column.name for column in schema.columns if column.discover}
    if unsettled != set(facts):
        raise InputError("What was found is not of the columns that the policy leaves open.")
    columns = (
        settle_column(column, facts[column.name]) if column.discover else column
        for column in schema.columns
    )
    return replace(policy, schema=replace(schema, columns=tuple(columns)))


def _choose_kind(column: Column, noisy: Ints, deviation: float) -> Column:
    """Choose by noisy counts: numbers or dates where nearly all cells seem to be."""
    numbers, dates, texts = (
        int(part.sum())
        for part in (
            noisy[: keys.ISO],
            noisy[keys.ISO : keys.TEXT],
            noisy[keys.TEXT : keys.MISSING],
        )
    )
    slack = max(_RARE * (numbers + dates + texts), 3 * deviation * sqrt(keys.MISSING - 1))
    if numbers > slack >= dates + texts:
        return replace(column, kind=Kind.NUMERIC, categories=None)
    if dates > slack >= numbers + texts:
        counts, slashes = noisy, noisy[keys.EITHER]
        forms = [counts[keys.ISO], counts[keys.DOTTED],
                 slashes + counts[keys.DAY_FIRST], slashes + counts[keys.MONTH_FIRST]]  # fmt: skip
        form = column.date_format or keys.DATE_FORMATS[int(np.argmax(forms))]
        return replace(column, kind=Kind.DATE, categories=None, date_format=form)
    return column


def _bounds(low: float, high: float, step: Decimal | None) -> tuple[Decimal, Decimal]:
    """Return bounds of the numbers low <= x < high, at multiples of a step if there is one."""
    ends = _short(low), _short(high)
    if step is not None:
        first = (ends[0] / step).to_integral_value(ROUND_FLOOR)
        last = (ends[1] / step).to_integral_value(ROUND_CEILING) - 1
        ends = first * step, max(last, first + 1) * step
    return ends if ends[0] < ends[1] else (ends[0], ends[0] + max(abs(ends[0]), Decimal(1)))


def _short(number: float) -> Decimal:
    return Decimal(f"{number:.{_DIGITS}g}")


def _exact(number: Any) -> Decimal:
    return Decimal(str(number))


def _plain(number: Decimal) -> int | float:
    """Write a number for JSON; twelve digits survive a float."""
    return int(number) if number == number.to_integral_value() else float(number)


def _share_outside(noisy: Ints, first: int, last: int, total: int) -> float:
    """Estimate from noisy counts which share of the values lies outside a range."""
    outside = 1 - int(noisy[first : last + 1].sum()) / max(int(total), 1)
    return round(min(max(outside, 0.0), 1.0), 3)
