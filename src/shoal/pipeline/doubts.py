"""What may stop a run after its plan: known from the policy, and from what was seen of the table.

A plan settles what follows from the policy. Whether the finished table is diverse enough, or a
column becomes constant, depends on the data, so a plan can only say that it may fail, and why. For
a method with an epsilon nothing of the table is used here: its choice must not depend on the table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.core import (
    Column,
    Diversity,
    Kind,
    LDiversity,
    Policy,
    ReleaseForm,
    Role,
    Schema,
    TCloseness,
    write_fraction,
)
from shoal.errors import count_noun
from shoal.methods import Method, Setting


@dataclass(frozen=True)
class SeenColumn:
    """What was seen of a column.

    Attributes:
        distinct: how many different values.
        unique: the share of the rows whose value nobody else has.
        values: those that occur, where they are few.
    """

    distinct: int
    unique: float
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeenTable:
    """What was seen of a table when it was read.

    Attributes:
        rows: how many.
        columns: by name; empty where only the number of rows may be known.
    """

    rows: int
    columns: Mapping[str, SeenColumn]


@dataclass(frozen=True)
class Doubts:
    """What will stop a run, and what may, in sentences."""

    will: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


def doubts(
    policy: Policy, method: Method[Any], setting: Setting[Any], seen: SeenTable | None
) -> Doubts:
    """Say what will or may stop a run of a method that a plan has no objection to."""
    if method.noisy:
        seen = None
    will: list[str] = []
    may: list[str] = []
    for guarantee in policy.required:
        if isinstance(guarantee, LDiversity) and (short := _too_few(guarantee, policy, seen)):
            will.append(short)
        elif isinstance(guarantee, LDiversity | TCloseness):
            may += _doubt_checks(guarantee, method, setting, seen)
    if seen is not None:
        will += _all_distinct(policy, setting, seen)
        may += [*_one_group(setting, seen), *_unknown_values(policy.schema, seen)]
    return Doubts(tuple(will), tuple(may))


def _too_few(guarantee: LDiversity, policy: Policy, seen: SeenTable | None) -> str:
    """Fewer values than l: no grouping helps, whatever the kind of l-diversity."""
    if len(guarantee.columns) > 1:
        return ""
    (name,) = guarantee.columns
    stated = policy.schema[name].all_categories
    seen_column = seen.columns.get(name) if seen is not None else None
    if stated is not None and len(stated) < guarantee.l:
        where, many = "the policy states", len(stated)
    elif seen_column is not None and seen_column.distinct < guarantee.l:
        where, many = "the table has", seen_column.distinct
    else:
        return ""
    return (
        f"{write_fraction(guarantee.l)}-diversity of '{name}' cannot be met: {where} "
        f"{count_noun(many, 'value')} of it. Lower l."
    )


def _doubt_checks(
    guarantee: LDiversity | TCloseness,
    method: Method[Any],
    setting: Setting[Any],
    seen: SeenTable | None,
) -> Iterator[str]:
    claimed = any(claim.stands and claim.guarantee == guarantee
                  for claim in method.promises.claims(setting))  # fmt: skip
    what = ", ".join(guarantee.columns)
    if not claimed:
        spent = " Its epsilon counts as spent all the same." if method.noisy else ""
        yield (
            f"{guarantee.name} of {what} is checked on the finished table, and this method does "
            f"not look at {what} when it forms groups. If the check fails, nothing is "
            f"written.{spent}"
        )
    elif not _by_one_class(guarantee, seen) or getattr(setting.parameters, "levels", None):
        yield (
            f"If no grouping meets {guarantee.name} of {what}, not even the whole table as one "
            "group, nothing is written."
        )


def _by_one_class(guarantee: LDiversity | TCloseness, seen: SeenTable | None) -> bool:
    """Whether the whole table as one class is known to meet it, so some grouping does."""
    if isinstance(guarantee, TCloseness):
        return True  # its distance from itself is none
    if guarantee.kind is not Diversity.DISTINCT or seen is None or len(guarantee.columns) > 1:
        return False
    return guarantee.columns[0] in seen.columns  # that they are enough was seen before


def _one_group(setting: Setting[Any], seen: SeenTable) -> Iterator[str]:
    k = getattr(setting.parameters, "k", None)
    if k is not None and seen.rows < 2 * k and setting.release_form is not ReleaseForm.TREE:
        yield (
            f"{count_noun(seen.rows, 'row')} make one group of k = {k:,}: protected columns become "
            "constant, which stops the release until the policy accepts it. Lower k."
        )


def _all_distinct(policy: Policy, setting: Setting[Any], seen: SeenTable) -> Iterator[str]:
    """Columns that stop a release: see `protect_table.unexpected`."""
    if setting.release_form in {ReleaseForm.TREE, ReleaseForm.SYNTHETIC}:
        return
    for name in policy.schema.released:
        column, facts = policy.schema[name], seen.columns.get(name)
        if facts is None or facts.unique < 1 or seen.rows < 2 or name in setting.columns:
            continue
        number = column.kind in {Kind.NUMERIC, Kind.DATE} and column.role is not Role.OTHER
        coded = column.top_code or column.bottom_code
        changed = column.recoded or column.step or column.date_step or coded
        if (
            not number
            and not changed
            and not column.sampling_weight
            and name not in policy.accept_distinct
        ):
            yield (
                f"Column '{name}' would be released unchanged with another value in every row. "
                "Give it the role identifier."
            )


def _unknown_values(schema: Schema, seen: SeenTable) -> Iterator[str]:
    unknown = [
        name
        for name in schema.released
        if name in seen.columns and _is_unknown(schema[name], seen.columns[name].values)
    ]
    if unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        yield (
            f"Some cells of {names} are not among the categories that the policy states. Cells "
            "that do not fit stop the run; add the categories, or a mark for missing cells."
        )


def _is_unknown(column: Column, values: tuple[str, ...]) -> bool:
    if (
        column.kind not in {Kind.NOMINAL, Kind.ORDINAL}
        or not column.all_categories
        or column.prefix
    ):
        return False
    return not {*values} <= {*column.all_categories, *column.missing, *(column.recode or {})}
