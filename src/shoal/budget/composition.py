"""Composition over several releases of one source: the rule, and its proof.

Every entry of a budget file holds facts that a steward declared. The cumulative epsilon follows
from them alone, never from what a table holds: a figure or a refusal that followed from a table's
content or its exact size would itself tell of a changed record.

Model. A source is a set of persons, and each person has rows. A row carries the public facts of its
life too, such as the version of the table that it was first in. Every table of the source
is the rows of the source that satisfy a predicate, which is one of

    public   of public facts of the row alone; so is the whole table, and each of its versions
    row      of the row alone, protected cells included: "diagnosis = C50"
    table    of other rows too: the first thousand by income, or what is left of duplicates

Neighbours are sources that satisfy what was declared. They differ in one person (where persons are
the unit; else in one row):

    change-one   the person has as many rows in both, and these have other cells. Public columns and
                 what public predicates say stay: those of all entries of the source.
    add-remove   the person comes or goes, with all rows.

An entry costs e if the probabilities of its output differ by at most exp(e) between
neighbours of *its own table*: change-one publishes how many rows or persons that table has,
add-remove does not.

Theorem (ours, unreviewed). Let R be the largest number of rows that a person has in any table of
the source, a declared fact. All releases of a source together cost the sum of w e over the entries,
with w the product of

    2   for an add-remove entry, if change-one neighbours are asked for; else 1
    R   for an entry whose unit is a row, if the unit of the source is a person; else 1

provided that

    (a) the table of every change-one entry is public, and there is none for add-remove neighbours;
    (b) the table of every add-remove entry is public or row;
    (c) persons are numbered by one column in all entries that number them;
    (d) R is declared, where an entry whose unit is a row meets a source whose unit is a person.

Or provided that (c), (d) and the tables of all entries are one extract, by whatever predicate: it
is then the source itself, and neighbours keep who is in it.

Proof. Releases of a source are a sequence, and prices add up, also where a later one was set up by
the output of earlier ones (Dwork et al. 2006). So let S and S' be neighbours and T and T' the
tables of one entry.

Add-remove entry, S' = S and the rows A of one person. By (b) a row is in T for its own sake, so
T' = T and some rows of A. That is one person (e), or at most R rows that come one by one (R e).
For change-one neighbours take the source without that person between S and S': twice that.

Change-one entry. By (a) the predicate says of each row of S what it says of the row of S' in its
place. T and T' have as many rows and persons, the same public columns, and differ in the rows of
one person (e), or in at most R rows that change one by one (R e).

A release that leaves rows of a person out beyond its own limit does so by the rows of that person
alone, and its price is that of the person, whatever R is (`shoal.methods.noise.contributions`).
Such a limit is a cut of that release. It bounds no other table, so it is no R.

Where all tables are one extract, call it the source: every table is then whole. QED

Without (a) there is no bound. Let all but one diagnosis be known. The extract of one diagnosis
has n or n + 1 rows, and change-one publishes which. Without (d) there is none either: a person of
the first table may have any number of rows.

Rho. A source may be granted its epsilon at a delta, and then holds entries in zero-concentrated
differential privacy. Where the weight of an entry is w, a price of rho counts w^2 rho, because
divergence grows with the square of the distance: 4 rho for a change, R^2 rho for R rows. For any
set of pure entries that are kept pure, all releases together have

    the sum of these, and the epsilon at that delta of the rho of all others,

a pure price of e among the others being a rho of e^2 / 2. Proof. Let L be the sum of the losses of
the others. A loss that is kept is at most its epsilon in every outcome, and exp((a - 1) L) has the
expectation exp(a (a - 1) rho) at most, by taking conditional expectations from the last release to
the first; that is all that the conversion uses (`shoal.core.concentrated`). QED

A release that finds unknown texts has a delta of its own (`shoal.hazmat.noise.release_keys`),
booked for one row or one person. Those of all entries are taken from the delta of the source first,
and rho is converted at what is left. For R rows there is no such bound, and no number is shown.

The least of these sums is shown. It keeps the largest pure entries: if one of price e is among the
others and a smaller one, f, is not, then f is better there too. For the epsilon of a rho is concave
in it, as the least of linear functions, so f^2 / 2 more of it cost at most (f^2 / e^2) e < f.

Prices that are chosen by earlier outputs. The sum of epsilons is a privacy filter, and so is the
sum of rho: a bound that is fixed beforehand holds however prices are chosen below it (Rogers et
al. 2016; Feldman and Zrnic 2021). The least of several such sums is not known to be one: it is for
prices that were fixed beforehand. Nor is a running total an odometer: it bounds what was released
where somebody stops, and not where somebody stops because of what was released.

An entry of an older Shoal has no declared facts. Alone, it costs what it claimed. Beside others
there is no bound that could be derived.

In mathematical notation: docs/explanation/proofs.md, "Several releases of the same people".

References:
    Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006. doi:10.1007/11681878_14
    Rogers, Roth, Ullman, Vadhan, "Privacy odometers and filters: pay-as-you-go composition",
    NeurIPS 2016. arXiv:1605.08294
    Feldman, Zrnic, "Individual privacy accounting via a Renyi filter", NeurIPS 2021.
    arXiv:2008.11193
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pydantic import ConfigDict, PositiveInt, TypeAdapter
from pydantic.dataclasses import dataclass as checked

from shoal.core import Extract, Neighbours
from shoal.core.concentrated import epsilon_above
from shoal.errors import InternalError

ROW = ""
"""The privacy unit of a release whose policy numbers no persons; every other is a column."""


@checked(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class DeclaredFacts:
    """What a steward declared about one release: no cell, no count, no digest of a table.

    Attributes:
        neighbours: for which its privacy loss is stated.
        unit: the column that numbers the persons; `ROW` if none does.
        contributions: rows of a person that the release looks at.
        cut: further rows of a person are left out; otherwise that number is exact.
        public_number: what is public about its size: "rows", "persons", or "" for nothing.
        public_columns: released as they are, because everybody knows them.
        extract: the predicate by which the table was cut out of its source, in the steward's words;
            "" for the whole table.
        extract_by: what the predicate reads; "" for the whole table.
        max_contributions: rows that a person has at most in any table of the source.
    """

    neighbours: Neighbours
    unit: str = ROW
    contributions: PositiveInt = 1
    cut: bool = False
    public_number: str = "rows"
    public_columns: tuple[str, ...] = ()
    extract: str = ""
    extract_by: Extract | None = None
    max_contributions: PositiveInt | None = None

    def to_json(self) -> str:
        """Write the facts as JSON."""
        return _FACTS.dump_json(self).decode()

    @classmethod
    def of_json(cls, text: str) -> "DeclaredFacts":
        """Read the facts from JSON.

        Raises:
            ValueError: if they are something else.
        """
        return _FACTS.validate_json(text)

    @property
    def adds_up(self) -> bool:
        """Whether the table meets condition (a) or (b)."""
        if self.extract_by is Extract.ROW:
            return self.neighbours is Neighbours.ADD_REMOVE
        return self.extract_by is not Extract.TABLE

    def __str__(self) -> str:
        words = [self.neighbours.value, f"unit: {self.unit or 'row'}"]
        if self.unit != ROW:
            rows = "row" if self.contributions == 1 else "rows"
            how = "at most" if self.cut else "exactly"
            cut = ", cut by this release" if self.cut else ""
            words.append(f"{how} {self.contributions:,} {rows} per person{cut}")
        if self.max_contributions is not None:
            words.append(f"max_contributions of the source: {self.max_contributions:,}")
        public = f"number of {self.public_number}" if self.public_number else "no number"
        words.append(f"public: {', '.join((public, *self.public_columns))}")
        by = f"extract by {self.extract_by}: {self.extract}"
        words.append("whole table" if self.extract_by is None else by)
        return "; ".join(words)


_FACTS = TypeAdapter(DeclaredFacts)


@checked(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class BudgetEntry:
    """One release, or an attempt at one, in the budget file.

    Attributes:
        time: of the reservation, UTC.
        policy: digest of the policy.
        epsilon: in the neighbours of the source; None if the release has no pure one.
        rho: the same, of a release that counts in rho; without either it has no proved price.
        status: `reserved` before the noise is drawn, `released` after the table is written. A
            reserved entry counts as spent: its run may be under way, or was killed.
        note: public words; never a cell.
        facts: what was declared; None in an entry of an older Shoal.
        delta: what finding unknown texts took of the source's delta, if it was done.
    """

    id: PositiveInt
    time: str
    source: str
    policy: str
    method: str
    epsilon: Fraction | None
    status: Literal["reserved", "released"]
    note: str
    facts: DeclaredFacts | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None

    @property
    def priced(self) -> bool:
        """Whether the release has a proved privacy loss."""
        return self.epsilon is not None or self.rho is not None

    def __str__(self) -> str:
        epsilon = "unbounded" if self.epsilon is None else f"epsilon {number(self.epsilon)}"
        if self.rho is not None:
            epsilon = f"rho {number(self.rho)}"
        note = f"  {self.note}" if self.note else ""
        line = f"{self.id}  {self.time}  {self.method}  {epsilon}  {self.status}{note}"
        if not self.priced:
            return line
        return f"{line}\n       {self.facts or 'no declared facts: by an older version of Shoal'}"


@dataclass(frozen=True)
class Sum:
    """The composed privacy loss of several entries.

    Attributes:
        spent: the loss by the theorem, as far as it applies; it is taken from the budget.
        reasons: why no number covers all of them, in sentences; empty if `spent` does.
        scope: whom the number protects, in words.
    """

    spent: Fraction
    reasons: tuple[str, ...]
    scope: str


def compose(entries: Sequence[BudgetEntry], delta: Fraction | None = None) -> Sum:
    """Compose the entries of one source by the theorem above.

    Args:
        entries: of a source that counts their neighbours. Those without a price are left
            to the caller.
        delta: at which the source is granted its epsilon, if it is not pure.
    """
    priced = [entry for entry in entries if entry.priced]
    facts = [entry.facts for entry in priced if entry.facts is not None]
    units = {fold_name(fact.unit): fact.unit for fact in facts if fact.unit != ROW}
    stated = [fact.max_contributions for fact in facts if fact.max_contributions is not None]
    most = max(stated, default=None)
    persons = bool(units) or most is not None
    pure, rho, texts, spread = [], Fraction(0), Fraction(0), []
    for entry in priced:
        single = entry.facts is not None and entry.facts.unit == ROW
        weight = most if single and most else 1
        texts += entry.delta or 0
        if entry.delta and weight > 1:
            spread.append(entry.id)
        if entry.rho is not None:
            rho += weight * weight * entry.rho
        else:
            pure.append(weight * (entry.epsilon or Fraction(0)))
    spent = cumulative(pure, rho, None if delta is None else delta - texts)
    if len(priced) == 1 and not facts:
        return Sum(spent, (), "")
    reasons = [
        *_unknown(priced),
        *_extracts(priced, facts),
        *_units(priced, units, most, persons=persons),
    ]
    if spread:
        reasons.append(
            f"{_numbers(spread)} of a release that found texts by single rows, beside one that "
            "protects persons: what the texts of several rows show of a person has no bound here."
        )
    return Sum(spent, tuple(reasons), _scope(facts, units, persons=persons))


def cumulative(pure: Sequence[Fraction], rho: Fraction, delta: Fraction | None) -> Fraction:
    """Return the least epsilon, at a delta, of pure losses and a rho; the pure sum without delta.

    >>> float(cumulative([Fraction(1)], Fraction(1, 50), Fraction(1, 10**9)))
    2.163288

    Raises:
        InternalError: if there is a rho and no delta.
    """
    kept = sum(pure, Fraction(0))
    if delta is None:
        if rho:
            raise InternalError("A rho cannot be added up where no delta is stated.")
        return kept
    least = kept + epsilon_above(rho, delta)
    for price in sorted(pure):
        kept, rho = kept - price, rho + price * price / 2
        least = min(least, kept + epsilon_above(rho, delta))
    return least


def _unknown(priced: Sequence[BudgetEntry]) -> list[str]:
    old = [entry.id for entry in priced if entry.facts is None]
    if not old:
        return []
    return [f"{_numbers(old)} by an older version of Shoal, without declared facts to add up by."]


def _extracts(priced: Sequence[BudgetEntry], facts: Sequence[DeclaredFacts]) -> list[str]:
    """Check conditions (a) and (b), or that all entries have one extract."""
    extracts = {(fold_name(f.extract), f.extract_by) for f in facts}
    if len(facts) == len(priced) and len(extracts) <= 1:
        return []
    apart = [entry for entry in priced if entry.facts and not entry.facts.adds_up]
    sized = [e.id for e in apart if e.facts and e.facts.extract_by is Extract.ROW]
    chosen = [e.id for e in apart if e.id not in sized]
    reasons = []
    if sized:
        reasons.append(
            f"{_numbers(sized)} of an extract by protected cells, with change-one neighbours: its "
            "public size discloses who is in the extract. Extracts add up with add-remove "
            "neighbours."
        )
    if chosen:
        reasons.append(
            f"{_numbers(chosen)} of an extract in which whether a row is in it depends on other "
            "rows: one person may change the rows of many."
        )
    return reasons


def _units(
    priced: Sequence[BudgetEntry], units: dict[str, str], most: int | None, *, persons: bool
) -> list[str]:
    """Check conditions (c) and (d)."""
    reasons = []
    if len(units) > 1:
        names = " and ".join(f"'{name}'" for name in units.values())
        reasons.append(
            f"Persons are numbered by {names}, which may be different units. If they are the same, "
            "give the column one name in all tables of the source."
        )
    rows = [e.id for e in priced if e.facts and e.facts.unit == ROW]
    if persons and rows and most is None:
        reasons.append(
            f"{_numbers(rows)} of a release that protects single rows, beside one that protects "
            "persons, and no largest number of rows per person is declared for the source. If "
            "it is known, state max_contributions under [budget]."
        )
    return reasons


def _scope(facts: Sequence[DeclaredFacts], units: dict[str, str], *, persons: bool) -> str:
    words = []
    if persons:
        words.append(f"per person{''.join(f' ({name})' for name in units.values())}")
    elif facts:
        words.append("per row")
    if not all(fact.adds_up for fact in facts):
        words.append(f"within the extract '{facts[0].extract}'")
    public = dict.fromkeys(name for fact in facts for name in fact.public_columns)
    if public:
        words.append(f"beside the public {', '.join(public)}")
    return ", ".join(words)


def _numbers(ids: Sequence[int]) -> str:
    if len(ids) == 1:
        return f"Entry {ids[0]} is"
    return f"Entries {', '.join(map(str, ids[:-1]))} and {ids[-1]} are"


def fold_name(name: str) -> str:
    """Normalise a name for comparison, ignoring spaces, case and Unicode composition.

    Unicode's compatibility composition (NFKC) with case folding; spaces and characters that are not
    seen are left out. Letters of different alphabets that look alike stay different.

    >>> fold_name("Pe\u0301 ople") == fold_name("P\u00c9OPLE")
    True
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(letter for letter in plain if unicodedata.category(letter)[0] not in "CZ")


def number(epsilon: Fraction) -> str:
    """Write an exact number for people: as a decimal if that is short, else as a fraction.

    >>> number(Fraction(1, 10)), number(Fraction(3)), number(Fraction(1, 3))
    ('0.1', '3', '1/3')
    """
    epsilon = Fraction(epsilon)
    for digits in range(10):
        if (scaled := epsilon * 10**digits).denominator == 1:
            return f"{'-' if scaled < 0 else ''}{_decimal(abs(scaled.numerator), digits)}"
    return str(epsilon)


def _decimal(scaled: int, digits: int) -> str:
    integer, rest = divmod(scaled, 10**digits)
    return f"{integer}.{rest:0{digits}d}" if digits else str(integer)
