"""Steering by l-diversity and t-closeness: which models a method takes into account."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shoal.core import Distance, Kind, LDiversity, ReleaseForm, TCloseness
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.methods.grouping.partition_encoding import Values, levels_of, way
from shoal.methods.method import Setting
from shoal.partition import Requirement
from shoal.privacy_models import decide


def steering(setting: Setting[Any]) -> list[LDiversity | TCloseness]:
    """List the required models that steer how classes are formed."""
    return [g for g in setting.required if isinstance(g, LDiversity | TCloseness)]


def refuse_steering(setting: Setting[Any]) -> None:
    """Refuse privacy models whose classes are not those of the protected columns."""
    for guarantee in steering(setting):
        if not set(setting.columns) >= set(guarantee.keys):
            raise InputError(
                f"[protect], columns: must list every quasi-identifier, because {guarantee.name} "
                "is about classes of equal quasi-identifiers."
            )
        if isinstance(guarantee, TCloseness):
            refuse_unordered(setting, guarantee)


def refuse_unordered(setting: Setting[Any], guarantee: TCloseness) -> None:
    """Require a stated order for a distance that uses one, or a check could use another."""
    columns = [setting.schema[name] for name in guarantee.columns]
    flat = any(column.kind is Kind.NOMINAL and column.all_categories is None for column in columns)
    if guarantee.distance is Distance.ORDERED and (flat or len(columns) > 1):
        raise InputError(
            f"Distance 'ordered' of {', '.join(guarantee.columns)}: expected one column with "
            "numbers, dates or declared categories."
        )


def refuse_aligned_suppression(setting: Setting[Any]) -> None:
    """Refuse suppression of rows if row i of the release is about row i of the original."""
    if setting.parameters.record_suppression and setting.release_form is ReleaseForm.ROW_ALIGNED:
        raise InputError(
            "[protect], record_suppression: a release without some rows cannot be row-aligned; "
            "expected another release form."
        )


def suppression_promise(setting: Setting[Any]) -> str:
    """State what is promised to people whose rows were suppressed."""
    steered = sorted({name for guarantee in steering(setting) for name in guarantee.columns})
    under = f", given what is required of {', '.join(steered)}" if steered else ""
    return (
        "People whose rows were suppressed are promised only that their rows are absent: "
        "anyone known to be in the original and missing here was hard to group by "
        f"{', '.join(setting.columns)}{under}."
    )


def confidential_codes(table: Table, columns: Sequence[str]) -> tuple[Ints, int]:
    """Number the combinations of values of some columns; also return their number."""
    raws = [table.raw(name) for name in columns]
    values = Values.of(raws, levels_of(table, columns))
    return values.codes(raws), values.width


def judge_of(table: Table, require: Sequence[Requirement]) -> Callable[[Ints], Ints] | None:
    """Make a function that lists the classes that violate a model, in rows or in persons."""
    persons = table.persons
    if persons is None or not require:
        return None

    def judge(labels: Ints) -> Ints:
        kept = labels >= 0
        failing = [
            decide(
                labels[kept],
                rule.codes[kept],
                rule.guarantee,
                units=persons[kept],
                width=rule.width,
                edges=rule.edges,
            )[0].failing
            for rule in require
        ]
        return np.unique(np.concatenate(failing))

    return judge


def requirement_of(table: Table, guarantee: LDiversity | TCloseness) -> Requirement:
    """Make the requirement of a model with its values in the table."""
    codes, width = confidential_codes(table, guarantee.columns)
    return Requirement(guarantee, codes, width, way(table, guarantee, width))
