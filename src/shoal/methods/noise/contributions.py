"""Privacy losses for persons with several rows, and for tables with a secret number of rows.

A mechanism proves a price for change-one neighbours: two tables of N records, N public, that
differ in one record. A policy may promise more: a person has up to r rows (`max_contributions`), or
exactly r (`exact_contributions`), and a neighbour is a table in which one person has other rows, or
in which a person comes or goes with all rows. Two steps lead from the one to the other.

Rows beyond r are left out first, by a rule that sees the rows of that person alone
(`shoal.io.persons.at_most`): so another person's rows are the same in both tables. That rule sees
protected cells. So nothing of the row that stays may be released as it is: no other column, no
stratum whose size is exact, no place among the rows (`refuse_shown`,
`shoal.methods.drawn_rows.strata`). Counterexample: 20 rows of one public value and one of another;
if the 20 are equal, the other one stays with probability 1/2, if they differ with 1/21
(`tests/methods/noise/test_contributions.py`).

Theorem (ours, unreviewed; after group privacy, Dwork et al. 2006). Let M cost e for change-one
neighbours of N records, for every N. Let a person have at most r rows.

1.  n public: exactly r rows per person, change-one. M on the table costs r e.
2.  n not public. Measure N = n + Z, Z discrete Laplace of scale 1 / e0; put in N's place any
    function of N. If n > N, keep N of the records, chosen evenly. If n < N, add N - n records
    that are drawn evenly from the public domain. Run M on these N records. Together that
    costs r (e0 + e), if a person comes or goes with up to r rows, and also if one person's rows,
    1 to r of them, become 1 to r others.

Proof. 1. There is a chain of r + 1 tables from one to the other in which neighbours differ in one
record. 2. n moves by at most r, so N costs r e0. Fix N. Give every record a random priority,
the records from the domain lower ones, in their order: what M sees are the first N of this list.
Let C be the records that both tables have, with all those of the domain behind; the one table
has A beside them and the other B, each of at most r records. The first N of C and A are some a of A
and the first N - a of C; of C and B, some b of B and the first N - b of C, with a, b <= r. Both
have the first N - max(a, b) of C, and so differ in at most r records: by 1, M costs r e. That holds
for any fixed priorities and records of the domain, which are drawn independently of the table, and
so for the mixture. Both steps are a sequence. QED

What step 1 is for the methods that add noise to groups: changing r values moves the sums of blocks
by rank by r W at most (Lemma 1, r times), those of insensitive groups by r g W, those of fixed
groups by r W; the noise has r times the scale. A claim that assumes the same groups in both tables
assumes no more for a person. Groups are not merged until they hold k persons, as without noise
(`shoal.methods.grouping.whole_persons`): merging reads whose rows they are, and would move groups
that are fixed.

The losses that a method reports are those of a row. The engine restates them for a person
(`restate_losses`), once for all methods, and the accounting compares them with the claim.

So M is run at e = (epsilon / r)(1 - share) and the number is measured at e0 = (epsilon / r) share,
share = 1/20; the accounting states sensitivities and prices r times, which is what they are for a
person.

3.  Let M cost e for add-remove neighbours by a proof of its own
    (`shoal.methods.trees.spatial_trees`, `shoal.synthesis.maxent`, `shoal.synthesis.privtree`). If
    a person comes or goes with up to r rows, M on the table costs r e: there is a chain of at most
    r + 1 tables in which neighbours differ by one record. Nothing is left out or added.

Which of 2 and 3 is cheaper. For add-remove 3: counts move by 1, where those of a table that was
brought to N move by 2. For a person whose rows become others 2: by 3 that is r removals and r
additions, which cost 2 r e, as much for counts and more for the splits of a tree.

Not promised: by 2, rows that are drawn evenly blur what is learnt, by about r / e0 rows.

In mathematical notation: docs/explanation/proofs.md, "Several rows of a person".

References:
    Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006. doi:10.1007/11681878_14
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.core import GAUSSIAN, Neighbours, Noise, PrivacyLoss, ReleaseForm, Schema
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.methods.method import Setting
from shoal.synthesis.domain import Domain

SHARE = Fraction(1, 20)
"""Share of epsilon that the number of rows takes where it is not public."""
LEAST_DRAWN = Decimal("0.0001")
"""Epsilon of a row from which a noisy number is drawn: below, it is hundreds of thousands."""
_PRIORITIES = 1 << 62
"""So many that two are hardly ever equal; of equals the first goes first, in either table."""
NOT_EMPTY = "both tables have at least one row, because an empty table is refused"


def most(schema: Schema) -> int:
    """Return how many rows of a person a release may use; one if the policy states nothing."""
    return 1 if schema.persons is None else schema.persons.most


def adds(setting: Setting[Any]) -> bool:
    """Whether neighbouring tables differ by one added person."""
    return getattr(setting.parameters, "neighbours", None) is Neighbours.ADD_REMOVE


def rows_are_public(setting: Setting[Any]) -> bool:
    """Whether neighbouring tables have the same number of rows."""
    persons = setting.schema.persons
    return not adds(setting) and (persons is None or persons.exact)


def row_epsilon(setting: Setting[Any]) -> Fraction:
    """Return the epsilon of one row of a person."""
    return Fraction(setting.parameters.epsilon) / most(setting.schema)


def restate_losses(
    privacy_losses: Iterable[PrivacyLoss], setting: Setting[Any]
) -> tuple[PrivacyLoss, ...]:
    """Convert the privacy loss of a row to that of a person; the noise stays the same.

    That is r times the epsilon, or r^2 times the rho: divergence grows with the square of the
    distance (Bun and Steinke 2016, Proposition 1.9). Gaussian noise states its distance squared.
    """
    r = most(setting.schema)
    if r == 1 and not adds(setting):
        return tuple(privacy_losses)
    return tuple(
        replace(
            entry,
            sensitivity=(r * r if entry.mechanism == GAUSSIAN else r) * entry.sensitivity,
            epsilon=None if entry.epsilon is None else r * entry.epsilon,
            rho=None if entry.rho is None else r * r * entry.rho,
            # With the number of rows fixed by (2), an added or removed person changes r rows.
            neighbours=setting.parameters.neighbours if adds(setting) else entry.neighbours,
        )
        for entry in privacy_losses
    )


def refuse_many_rows(setting: Setting[Any]) -> None:
    """Refuse an epsilon so small that the noisy number of rows could be millions."""
    if rows_are_public(setting):
        return
    rho = getattr(setting.parameters, "rho", None)
    name, least = ("epsilon", LEAST_DRAWN) if rho is None else ("rho", LEAST_DRAWN**2 / 2)
    each = row_epsilon(setting) if rho is None else Fraction(rho) / most(setting.schema) ** 2
    if each < Fraction(least):
        raise InputError(
            f"[protect], {name}: the number of rows to draw is noisy too, and below "
            f"{least} for each row of a person it may run to millions, whatever the table "
            f"holds. Raise {name}."
        )


def refuse_shown(setting: Setting[Any], noisy: Collection[str], method: str) -> None:
    """Refuse to drop rows of a person if columns without noise show which one stayed."""
    schema = setting.schema
    public = next((name for name in schema.released if name not in noisy), None)
    if public is None and setting.release_form is not ReleaseForm.ROW_ALIGNED:
        return
    shown = "the rows in their original order" if public is None else f"'{public}' unchanged"
    raise InputError(
        f"Column '{schema.column_with_flag('privacy_unit')}', max_contributions: of a person with "
        f"several rows one is kept, which depends on protected cells, and '{method}' would show "
        f"which one, because it releases {shown}. Bring the table to one row per person and drop "
        "max_contributions, or use auto."
    )


def fit_rows(
    codes: Sequence[Ints],
    attributes: Sequence[Domain],
    *,
    total: int,
    noise: Noise,
) -> list[Ints]:
    """Cut or pad a table to `total` records; added ones come from the public domain.

    An added or removed record changes at most one record of the result (step 2 above), for
    given priorities and records of the domain. Nobody may know these, so they are drawn where
    noise is, and the generator that places released rows has no part in them.
    """
    n = len(codes[0])
    priorities = noise.uniform(_PRIORITIES, size=n)
    kept = np.argsort(priorities, kind="stable")[:total]
    return [
        np.concatenate([column[kept], noise.uniform(attribute.size, size=max(total - n, 0))])
        for column, attribute in zip(codes, attributes, strict=True)
    ]
