"""Public strata: each is modelled separately, with the whole epsilon.

The policy names a public column of categories (`strata`). Records of a stratum make a table of
their own, and a mechanism is run on each.

Theorem (McSherry 2009, Theorem 4). Let each run cost epsilon for neighbours of its own table. If a
record that changes keeps its stratum, all runs together cost epsilon: two neighbours differ in the
records of one stratum, and all other outputs have the same distribution. The same holds for an
added or removed record, which affects a single stratum.

A person with exactly r rows may have them in several strata, r_s of them in stratum s. If a run
costs e for one record, these cost sum r_s e = r e together (`shoal.methods.noise.contributions`),
which is what each stratum's entries state once they are restated for a person: the total is the
loss of the costliest part.

Rows that are left out. Which row of a person stays depends on its protected cells too. So a
person's one row may change its stratum with them, and if sizes of strata are released exactly,
`max_contributions` is refused. For add-remove they are not, and a person comes or goes in one
stratum.

Consequences. For change-one neighbours the sizes of strata are invariants, as the number of rows
is: they are released exactly. A stratum without records has no rows. For add-remove each stratum's
number of rows is measured with noise, and every declared category has rows, so no stratum shows by
its absence.

In mathematical notation: docs/explanation/proofs.md, "Public strata".

References:
    McSherry, "Privacy integrated queries", SIGMOD 2009. doi:10.1145/1559845.1559850
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from shoal.core import Kind, PrivacyLoss, Schema
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.methods.method import Setting
from shoal.methods.noise import contributions

TINY = 50
"""Records of a stratum below which a reader is warned."""


@dataclass(frozen=True, eq=False)
class Stratum:
    """The records of one category of the public column."""

    name: str
    code: int
    members: Ints


def refuse(setting: Setting[Any], name: str) -> None:
    """Refuse a column that is not a public division of the records."""
    schema = setting.schema
    if name not in schema.released:
        raise InputError(f"[protect], strata: no released column named '{name}'.")
    column = schema[name]
    if name in setting.columns or not column.public:
        raise InputError(
            f"[protect], strata: expected a column with public = true, found '{name}', which is "
            "protected. The sizes of the strata are published exactly."
        )
    if column.kind not in {Kind.ORDINAL, Kind.NOMINAL} or column.all_categories is None:
        raise InputError(
            f"[protect], strata: expected a column with categories or a hierarchy, found '{name}'."
        )
    stated = schema.persons
    if stated is None or not stated.dropped:
        return
    if stated.most > 1 or contributions.rows_are_public(setting):
        raise InputError(
            "[protect], strata: a person's rows may lie in several strata, and which of them "
            "are kept is not public. State exact_contributions instead of max_contributions, or "
            "remove strata."
        )


def divide(table: Table, setting: Setting[Any], name: str) -> list[Stratum]:
    """Split the records into strata, in the order of the categories."""
    codes = table.codes(name)
    lacking = int((codes < 0).sum())
    if lacking:
        raise InputError(
            f"Column '{name}' defines the strata and is missing in {lacking:,} "
            f"{'row' if lacking == 1 else 'rows'}. Remove these rows, or state a category for "
            "them."
        )
    categories = cast("tuple[str, ...]", setting.schema[name].all_categories)
    strata = [
        Stratum(name, code, np.flatnonzero(codes == code)) for code, name in enumerate(categories)
    ]
    if contributions.rows_are_public(setting):
        strata = [stratum for stratum in strata if stratum.members.size]
    return strata


def side_by_side(
    privacy_losses: Iterable[PrivacyLoss], name: str, stratum: str
) -> tuple[PrivacyLoss, ...]:
    """Mark the losses of one stratum for parallel composition with the other strata."""
    return tuple(
        replace(entry, parallel=f"strata of {name}", part=stratum, fixed=True)
        for entry in privacy_losses
    )


def invariants(setting: Setting[Any], name: str | None) -> tuple[str, ...]:
    """Name what is published exactly because of the strata."""
    if name is None or not contributions.rows_are_public(setting):
        return ()
    return (f"the number of rows in each stratum of {name}",)


def assumes(name: str | None) -> tuple[str, ...]:
    """State the assumption that strata add to the definition of neighbours."""
    return () if name is None else (f"{name} is public, and a record keeps its stratum",)


def notes(schema: Schema, name: str, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Note which strata have no rows, and which are so small that one record dominates counts."""
    categories = cast("tuple[str, ...]", schema[name].all_categories)
    sentences = [f"Each stratum of {name} was modelled separately, with the whole epsilon."]
    empty = [category for category in categories if category not in sizes]
    tiny = [category for category, size in sizes.items() if size < TINY]
    if empty:
        sentences.append(f"Strata without rows: {', '.join(empty)}.")
    if tiny:
        sentences.append(
            f"Strata of fewer than {TINY} rows, whose synthetic rows are mostly noise: "
            f"{', '.join(tiny)}."
        )
    return tuple(sentences)
