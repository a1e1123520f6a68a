"""Coarsen columns that are released unprotected, until at least k people share each value.

k-anonymity of the quasi-identifiers does not protect an exact salary in the same row: whoever knows
the salary finds the row. So a draft rounds such numbers and codes their tails until at least k
people share every value, and says so in the column's line. Limits are multiples of the step, which
is 1, 2 or 5 times a power of ten: round numbers, not the values of the largest and the smallest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations

import numpy as np
import polars as pl

from shoal.core import Audience, Kind, ReleaseForm, Role
from shoal.core._arrays import Floats, Ints
from shoal.core.manifest import Manifest
from shoal.io.dates import PERIODS
from shoal.io.text_files import quote
from shoal.io.validate import round_to_step
from shoal.policy.column_values import ColumnValues
from shoal.policy.guess import AS_STATED, Guess, Nature, guess_dropped

DATE_STEPS = ("week", "month", "quarter", "year")
"""From the finest."""
MOST_STEPS = 100
"""So many multiples of its step cover a range whose limits are round numbers."""
MOST_PAIRS = 20
"""Pairs of so many columns are looked at."""
JOINED, MOST_JOINED = "other", 100
"""The category of rare ones, and how many of them a line of the policy may name."""
HARDLY = 0.01
"""A share of people that is hardly anybody."""
RARE = 0.05
"""Pairs are reported that point to somebody in more of the rows."""
MOST_NAMED = 5
"""So many columns are named, the worst first."""
LINKED = {ReleaseForm.ROW_ALIGNED, ReleaseForm.LINKED_SHUFFLED}
"""Forms whose rows are people."""


@dataclass(frozen=True)
class Purpose:
    """The purpose of a draft: audience, k and exceptions.

    Attributes:
        audience: who will get the release. Nothing nearly unique is released unchanged to the
            public, and where no audience is stated; for scientific use tails are coded, and for
            secure use all is kept.
        k: how many people must share a value.
        keep: columns that are released unchanged in any case.
        template: `safe-harbor` for the fields of 45 CFR 164.514(b)(2), or nothing.
    """

    audience: Audience | None = None
    k: int = 5
    keep: tuple[str, ...] = ()
    template: str | None = None


NO_PURPOSE = Purpose()


def coarsen(
    values: Mapping[str, ColumnValues], guesses: Mapping[str, Guess], purpose: Purpose
) -> tuple[dict[str, Guess], tuple[str, ...]]:
    """Coarsen columns that would be released unchanged; list pairs that still single out people."""
    k = purpose.k
    unit = next((name for name, made in guesses.items() if "privacy_unit" in made.flags), None)
    persons = None if unit is None else values[unit].cells
    left = {
        name: made
        for name, made in guesses.items()
        if made.role is not Role.IDENTIFIER and purpose.audience is not Audience.SECURE_USE
    }
    cells = {name: values[name].to_typed() for name in left}
    codings = {
        name: {**made.coding, **_coding(made, cells[name], persons, purpose)}
        if name not in purpose.keep
        else dict(made.coding)
        for name, made in left.items()
    }
    for total, made in left.items():
        family = (total, *made.parts)
        shown = all(name in left and _is_shown(left[name]) for name in family)
        asked = set(family) & {*purpose.keep} or purpose.audience is Audience.SCIENTIFIC_USE
        if made.parts and shown and not asked:
            codings |= coarsen_sum({n: cells[n] for n in family}, total, persons, k, codings)
    result = {
        name: replace(made, coding=codings[name]).because(in_words(made, codings[name], k))
        if name in codings and codings[name] != made.coding
        else made
        for name, made in guesses.items()
    }
    if purpose.audience is not Audience.SCIENTIFIC_USE:
        for name, made in left.items():
            if _is_shown(made) and made.kind is Kind.NOMINAL and name not in purpose.keep:
                result[name] = join_rare(result[name], cells[name], persons, k)
    coded = {name: round_values(cells[name], codings[name])
             for name, made in left.items() if _is_shown(made)}  # fmt: skip
    for name in [name for name in coded if result[name].kind is Kind.NOMINAL]:
        coded[name] = coded[name].cast(pl.String).replace(dict(result[name].spellings))
    if purpose.audience is not Audience.SCIENTIFIC_USE:
        for name in [name for name in coded if left[name].kind is Kind.NUMERIC]:
            stated = name in purpose.keep or AS_STATED in left[name].reason
            if not stated and alone(coded[name], persons, k):
                result[name] = guess_dropped(
                    f"no rounding of its numbers makes {k} people share each value",
                    advice="to release them all the same, name it in --keep",
                )
                del coded[name]
    return result, pairs_in_words(rare_pairs(coded, persons, k), k, "people", most=3)


def _is_shown(made: Guess) -> bool:
    """Whether a release shows the column unprotected."""
    return made.role in {Role.CONFIDENTIAL, Role.OTHER}


def _coding(
    made: Guess, cells: pl.Series, persons: pl.Series | None, purpose: Purpose
) -> dict[str, str]:
    """Choose how a column is coarsened, as keys of the policy."""
    public = purpose.audience is not Audience.SCIENTIFIC_USE
    if "date_step" in made.coding:
        return {}
    if made.role is Role.QUASI_IDENTIFIER:
        if not public:
            return {}
        if made.nature is Nature.COORDINATE:
            return {"step": "0.1"}
        return {"date_step": f'"{"year" if made.nature is Nature.BIRTH else "month"}"'} if (
            made.kind is Kind.DATE) else {}  # fmt: skip
    if made.kind is Kind.NUMERIC:
        coding = coarsen_numbers(cells, persons, purpose.k, tails_only=not public)
        for key, farther in (("bottom_code", max), ("top_code", min)):  # a limit such as <4.0 stays
            if key in coding and key in made.coding:
                coding[key] = farther(coding[key], made.coding[key], key=Decimal)
        return coding
    return coarsen_days(cells, persons, purpose.k) if made.kind is Kind.DATE and public else {}


def in_words(made: Guess, coding: Mapping[str, str], k: int) -> str:
    """Describe a column's coarsening, as the end of the reason for its guess."""
    words = {
        "prefix": "cut to {} characters",
        "step": "rounded to multiples of {}",
        "date_step": "dates rounded to the {}",
        "bottom_code": "coded below {}",
        "top_code": "coded above {}",
    }
    done = [text.format(coding[key].strip('"')) for key, text in words.items() if key in coding]
    shared = "each value" if coding.keys() & {"step", "date_step", "prefix"} else "either end"
    why = "" if made.role is Role.QUASI_IDENTIFIER else f", so {k} people share {shared}"
    return f"; {', '.join(done)}{why}"


def join_rare(made: Guess, values: pl.Series, persons: pl.Series | None, k: int) -> Guess:
    """Join the categories of fewer than k people as one, with more where they are fewer than k.

    Spellings of a category count with it. A column that would keep fewer than two categories
    beside it, or has too many rare ones for a line of the policy, stays, and its rows are reported.
    """
    spelt = values.cast(pl.String).replace(dict(made.spellings))
    counts = persons_per_value(spelt, persons).sort("len", "value")
    counts = counts.filter(pl.col("value") != JOINED)
    names, people = counts["value"].to_list(), counts["len"].to_list()

    def joined_people(rare: int) -> int:
        """Count the people in the joined category; one may have several of the rare ones."""
        together = spelt.replace(dict.fromkeys(names[:rare], JOINED))
        shared = persons_per_value(together, persons).filter(pl.col("value") == JOINED)
        return int(shared["len"].sum())

    rare = sum(count < k for count in people)
    if rare or joined_people(0):
        while rare < min(len(people), MOST_JOINED) and joined_people(rare) < k:
            rare += 1
    if (
        not 0 < rare <= min(MOST_JOINED, len(names) - 2)
        or not made.categories
        or joined_people(rare) < k
    ):
        return made
    joined = {**made.spellings, **dict.fromkeys(names[:rare], JOINED)}
    joined = {before: joined.get(after, after) for before, after in joined.items()}
    kept = [name for name in made.categories if name not in {*names[:rare], JOINED}]
    reason = f"; categories of fewer than {k} people joined as '{JOINED}'"
    return replace(made, spellings=joined, categories=(*kept, JOINED)).because(reason)


def persons_per_value(values: pl.Series, persons: pl.Series | None) -> pl.DataFrame:
    """Count for each value the persons, or rows, that have it; missing cells are left out."""
    frame = pl.DataFrame({"value": values})
    if persons is not None:
        frame = frame.with_columns(person=persons).unique()
    return frame.drop_nulls("value").group_by("value").len().sort("value")


def alone(values: pl.Series, persons: pl.Series | None, k: int) -> float:
    """Return the share of persons, or rows, whose value is shared by fewer than k."""
    counts = persons_per_value(values, persons)["len"]
    return float(counts.filter(counts < k).sum()) / max(int(counts.sum()), 1)


def alone_in_tails(values: pl.Series, persons: pl.Series | None, k: int) -> tuple[float, float]:
    """Return the share with a rare value within the lowest and the highest hundredth."""
    counts = persons_per_value(values, persons)["len"].cast(pl.Int64).to_numpy()
    shares = []
    for people in (counts, counts[::-1]):
        tail = people[np.cumsum(people) - people < people.sum() / 100]
        shares.append(float(tail[tail < k].sum() / max(tail.sum(), 1)))
    return shares[0], shares[1]


def coarsen_numbers(
    values: pl.Series,
    persons: pl.Series | None,
    k: int,
    *,
    tails_only: bool = False,
    among: Sequence[Decimal] | None = None,
) -> dict[str, str]:
    """Choose the step and the limits with the least change by which k people share each value.

    For every step the values are rounded as a run rounds them. From the median outwards, rounded
    values are kept while k people have them; what lies beyond is coded at the last of them. Of all
    steps the one with the least absolute change is taken. Cost: the number of steps times that of
    distinct values.

    Args:
        values: the column, missing cells as nulls.
        persons: whose rows they are; none for one row each.
        k: how many must share a value.
        tails_only: keep the values between the limits as they are, also where fewer share them.
        among: steps to choose from; by default all that fit the column.

    Returns:
        Keys of the policy, `step`, `bottom_code` and `top_code`, as far as needed.
    """
    counts = persons_per_value(values, persons)
    seen = counts["value"].cast(pl.Float64).to_numpy()
    people = counts["len"].cast(pl.Int64).to_numpy()
    if seen.size < 2 or people.min() >= k or people.sum() < 2 * k:
        return {}
    if tails_only:
        return _code_tails(seen, people, k)
    best: tuple[float, dict[str, str]] | None = None
    for step in steps(seen) if among is None else among:
        numerator, denominator = map(float, step.as_integer_ratio())
        multiples = np.rint(seen * denominator / numerator)  # as a run rounds
        low, high, fits = _limits(multiples, people, k)
        if not fits:
            continue
        coded = np.clip(multiples, low, high) * float(step)
        change = float(np.abs(coded - seen) @ people)
        coding = {"step": f"{step:f}"}
        if low > multiples[0]:
            coding["bottom_code"] = f"{Decimal(int(low)) * step:f}"
        if high < multiples[-1]:
            coding["top_code"] = f"{Decimal(int(high)) * step:f}"
        if best is None or change < best[0]:
            best = change, coding
    return {} if best is None else best[1]


def coarsen_sum(
    cells: Mapping[str, pl.Series],
    total: str,
    persons: pl.Series | None,
    k: int,
    codings: Mapping[str, Mapping[str, str]],
) -> dict[str, dict[str, str]]:
    """Choose a common step for a total and its parts, so few people have a rare sum of parts.

    Otherwise the parts would disclose the total that was rounded. Steps are tried from the coarsest
    step of any of the columns; if none suffices, their codings stay.
    """
    least = max(Decimal(codings[name].get("step", "0")) for name in cells)
    seen = persons_per_value(cells[total], persons)["value"].cast(pl.Float64).to_numpy()
    for step in [s for s in steps(seen) if s >= least > 0] if seen.size > 1 else ():
        coded = {n: coarsen_numbers(cells[n], persons, k, among=[step]) for n in cells}
        if any(not coded[n] and codings[n].get("step") for n in cells):
            continue
        parts = [round_values(cells[n], coded[n]) for n in cells if n != total]
        if parts and alone(sum(parts[1:], parts[0]), persons, k) <= HARDLY:
            return coded
    return {}


def steps(seen: Floats) -> Iterator[Decimal]:
    """Yield 1, 2 and 5 times powers of ten, from the values' resolution to half their range."""
    gap = max(float(np.diff(seen).min()), 1e-6)
    width = float(seen[-1] - seen[0])
    for power in range(int(np.floor(np.log10(gap))), int(np.ceil(np.log10(width))) + 1):
        for digit in (1, 2, 5):
            step = Decimal(digit).scaleb(power)
            if gap / 2 <= float(step) <= width / 2:
                yield step


def _code_tails(seen: Floats, people: Ints, k: int) -> dict[str, str]:
    """Choose limits beyond which at least k have a value; values between them stay.

    They are multiples of 1, 2 or 5 times the power of ten that is about a hundredth of the range,
    so no value of the table is stated. An end that k people share needs none.
    """
    usable = list(steps(seen))
    fine = (step for step in usable if seen[-1] - seen[0] <= MOST_STEPS * float(step))
    step = next(fine, usable[-1] if usable else None)
    if step is None:
        return {}
    numerator, denominator = map(float, step.as_integer_ratio())
    multiples = seen * denominator / numerator
    low = np.ceil(multiples[np.argmax(np.cumsum(people) >= k)])
    high = np.floor(multiples[::-1][np.argmax(np.cumsum(people[::-1]) >= k)])
    if low >= high:
        return {}
    ends = (("bottom_code", low, people[0]), ("top_code", high, people[-1]))
    return {key: f"{Decimal(int(limit)) * step:f}" for key, limit, at_end in ends if at_end < k}


def _limits(rounded: Floats, people: Ints, k: int) -> tuple[float, float, bool]:
    """Return the lowest and the highest rounded value to keep, and whether any can be kept."""
    places, at = np.unique(rounded, return_inverse=True)
    counts = np.bincount(at, weights=people)
    enough = counts >= k
    middle = int(np.argmax(np.cumsum(counts) >= counts.sum() / 2))
    if not enough[middle]:
        return 0.0, 0.0, False
    first, last = middle, middle
    while first > 0 and enough[first - 1]:
        first -= 1
    while last + 1 < places.size and enough[last + 1]:
        last += 1
    return places[first], places[last], True


def coarsen_days(values: pl.Series, persons: pl.Series | None, k: int) -> dict[str, str]:
    """Choose the finest step of dates, from a month on, at which hardly any value is rare."""
    days = values.cast(pl.Date, strict=False)
    if alone(days, persons, k) == 0:
        return {}
    steps = [step for step in DATE_STEPS[1:] if _few(days.dt.truncate(PERIODS[step]), persons, k)]
    return {"date_step": f'"{steps[0] if steps else DATE_STEPS[-1]}"'}


def _few(values: pl.Series, persons: pl.Series | None, k: int) -> bool:
    return alone(values, persons, k) <= HARDLY


def rare_pairs(
    coded: Mapping[str, pl.Series], persons: pl.Series | None, k: int
) -> list[tuple[float, str, str]]:
    """List pairs of columns with the share of rows whose pair fewer than k share, worst first."""
    pairs = []
    for name, other in combinations(list(coded)[:MOST_PAIRS], 2):
        both = pl.DataFrame({"a": coded[name], "b": coded[other]}).drop_nulls().to_struct()
        rows = (
            None
            if persons is None
            else persons.filter(coded[name].is_not_null() & coded[other].is_not_null())
        )
        pairs.append((alone(both, rows, k), name, other))
    return sorted(pairs, reverse=True)


def pairs_in_words(
    pairs: Iterable[tuple[float, str, str]], k: int, who: str, *, most: int
) -> tuple[str, ...]:
    """Describe the pairs of columns that single out people in over one row in twenty."""
    worst = [pair for pair in pairs if pair[0] > RARE][:most]
    return tuple(
        f"Fewer than {k} {who} share the values of '{name}' and '{other}' in {share:.0%} of the "
        "rows: whoever knows both finds them."
        for share, name, other in worst
    )


def round_values(values: pl.Series, coding: Mapping[str, str]) -> pl.Series:
    """Apply a coding as a run does."""
    if "prefix" in coding:
        return values.cast(pl.String).str.slice(0, int(coding["prefix"]))
    if "date_step" in coding:
        period = PERIODS[coding["date_step"].strip('"')]
        return values.cast(pl.Date, strict=False).dt.truncate(period)
    if not coding:
        return values
    low, high = (
        float(coding[key]) if key in coding else None for key in ("bottom_code", "top_code")
    )
    coded = values.cast(pl.Float64).clip(low, high)
    return round_to_step(coded, Decimal(coding["step"])) if "step" in coding else coded


def nearly_unique(
    manifest: Manifest, released: pl.DataFrame, persons: pl.Series | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Measure the columns that are released unchanged: rare values, and what is accepted.

    A promise about the protected columns says nothing about an exact salary beside them. The
    measure is that of a draft, on what a release shows: from its table and its manifest, so it
    tells nothing that the release does not. In an epsilon release nothing is looked at.

    Args:
        manifest: of the release.
        released: its table.
        persons: whose rows they are, if some have several; only the steward knows.

    Returns:
        Sentences on what a steward should know, and on what the policy has accepted.
    """
    if manifest.privacy_losses or manifest.release_form not in LINKED:
        return (), ()
    k = max(int(manifest.parameters.get("k") or 2), 2)
    policy = manifest.policy
    accepted = policy.get("release", {}).get("accept_distinct", [])
    shown = {
        series.name: series
        for series in released
        if series.name not in manifest.protected_columns
        and not policy["columns"].get(series.name, {}).keys() & {"sampling_weight", "pseudonym"}
    }
    shares = {name: alone(series, persons, k) for name, series in shown.items()}
    rare = sorted((name for name, share in shares.items() if share), key=lambda name: -shares[name])
    sentences = {name: _share(shown[name], shares[name], persons, k) for name in rare}
    kept = tuple(f"{sentences[name]} The policy accepts it." for name in rare if name in accepted)
    open_ = [name for name in rare if name not in accepted]
    listed = [sentences[name] for name in open_[:MOST_NAMED]]
    if open_:
        names = ", ".join(map(quote, open_))
        more = f" So it is for {len(open_) - MOST_NAMED} more." if len(open_) > MOST_NAMED else ""
        listed[-1] += (
            f"{more} Whoever knows the value finds the row: make it coarser, or accept it under "
            f"[release]: accept_distinct = [{names}]."
        )
    pairs = rare_pairs({n: s for n, s in shown.items() if n not in rare}, persons, k)
    who = "rows" if persons is None else "people"
    return (*listed, *pairs_in_words(pairs, k, who, most=1)), kept


def _share(values: pl.Series, share: float, persons: pl.Series | None, k: int) -> str:
    who, beside = "rows" if persons is None else "people", ""
    if values.dtype.is_numeric():
        low, high = alone_in_tails(values, persons, k)
        beside = f" ({low:.0%} in the lowest hundredth, {high:.0%} in the highest)"
    size = f"{share:.0%}" if share >= 0.01 else "less than 1%"
    have = " that have one" if values.null_count() else ""
    return (
        f"'{values.name}' is released as it is, and fewer than {k} {who} share its value in {size} "
        f"of the rows{have}{beside}."
    )
