"""Mondrian: space is cut at medians, column after column, while both sides keep what is required.

Claims, proved: k-anonymity of the protected columns together, and every l-diversity and t-closeness
that the policy requires of them. The whole table has them, or the run stops; a cut is made only if
both sides have them; and records of a leaf share every released value. Two leaves with the same
released values are one class, and all these models are kept by merging classes.

`output = "intervals"` writes for each leaf the range of its own records, a taxonomy's lowest common
ancestor, or a set; `output = "centroids"` writes the group's centre, as `mdav` does.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.core import Claim, Distance, Kind, LDiversity, Status, TCloseness
from shoal.errors import InputError
from shoal.methods import grouping
from shoal.methods.grouping import Grouping
from shoal.methods.method import Masked, Method, Setting, Tools
from shoal.partition import Choice, Requirement, mondrian, taxonomy_order
from shoal.recode import generalise
from shoal.spec import choice
from shoal.table import Table, leaf_edges

SOURCE = (
    "LeFevre, DeWitt and Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE (2006), "
    "doi:10.1109/ICDE.2006.101"
)


class Output(StrEnum):
    """What stands for a leaf."""

    INTERVALS = "intervals"
    CENTROIDS = "centroids"


class Cuts(Grouping):
    """Parameters of Mondrian."""

    output: Annotated[Output, choice(Output)] = Field(
        Output.INTERVALS, description="intervals (and ancestors), or centroids."
    )
    dimension: Annotated[Choice, choice(Choice)] = Field(
        Choice.RANGE, description="Which column is cut first: by range, entropy or gain."
    )
    target: str | None = Field(None, description="The confidential column that gain looks at.")
    relaxed: bool = Field(
        default=False, description="Let equal values be parted, so that groups are smaller."
    )
    max_height: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Largest number of cuts above a group."
    )


def _steered(setting: Setting[Cuts]) -> list[LDiversity | TCloseness]:
    return [g for g in setting.required if isinstance(g, LDiversity | TCloseness)]


def _claims(setting: Setting[Cuts]) -> tuple[Claim, ...]:
    (k_anonymity,) = grouping.joint_claims(SOURCE)(setting)
    classes = set(setting.columns)
    steered = tuple(
        Claim(
            guarantee=guarantee,
            status=Status.PROVED,
            basis="by construction: no cut is made unless both sides keep it",
            assumes=k_anonymity.assumes,
            source=SOURCE,
            release_form=setting.release_form,
        )
        for guarantee in _steered(setting)
        if classes >= set(guarantee.keys)
    )
    return (k_anonymity, *steered)


def _refuse(setting: Setting[Cuts]) -> None:
    parameters, schema = setting.parameters, setting.schema
    if (parameters.dimension is Choice.GAIN) is not (parameters.target is not None):
        raise InputError("[protect], target: expected beside dimension = 'gain', and only there.")
    if parameters.target is not None and parameters.target not in schema.released:
        raise InputError(f"[protect], target: no released column named '{parameters.target}'.")
    for guarantee in _steered(setting):
        if not set(setting.columns) >= set(guarantee.keys):
            raise InputError(
                f"[protect] columns must hold every quasi-identifier, because {guarantee.name} is "
                "about their classes."
            )


def _run(table: Table, setting: Setting[Cuts], tools: Tools) -> Masked:
    parameters = setting.parameters
    tools.progress("cutting space", 0, 1)
    X, borders = places(table, setting.columns)
    target = None if parameters.target is None else _codes(table, [parameters.target])[0]
    partition = mondrian(
        X,
        parameters.k,
        require=[_requirement(table, guarantee) for guarantee in _steered(setting)],
        relaxed=parameters.relaxed,
        choice=parameters.dimension,
        target=target,
        borders=borders,
        max_height=parameters.max_height,
    )
    if parameters.output is Output.CENTROIDS:
        return grouping.masked(table, setting, partition)
    return Masked(generalise(table, setting.columns, partition))


def places(
    table: Table, columns: Sequence[str]
) -> tuple[NDArray[np.float64], dict[int, NDArray[np.int64]] | None]:
    """Numbers to cut each column by, and where the columns with a taxonomy may be cut."""
    found = [_place(table, name) for name in columns]
    borders = {number: border for number, (_, border) in enumerate(found) if border is not None}
    return np.column_stack([place for place, _ in found]), borders or None


def _place(table: Table, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Numbers to cut a column by, missing beyond the largest; and where a taxonomy may be cut."""
    column = table.schema[name]
    if column.kind not in {Kind.ORDINAL, Kind.NOMINAL}:
        values = table.numbers(name)
        last = np.nextafter(np.nanmax(values, initial=0.0), np.inf)
        return np.where(np.isnan(values), last, values), None
    codes, count = table.codes(name), len(table.levels(name))
    gone = codes < 0
    if column.taxonomy is None or count < 2:
        return np.where(gone, count, codes).astype(np.float64), None
    order, heights = taxonomy_order(leaf_edges(table, name))
    place = np.append(np.argsort(order), count)[codes].astype(np.float64)
    if gone.any():
        # The missing cell hangs from the root, as one more leaf.
        heights = np.append(heights, heights.max())
    return place, heights


def _codes(table: Table, columns: list[str]) -> tuple[NDArray[np.int64], int]:
    """Number the values of confidential columns, as `checking.value_codes` does."""
    if len(columns) > 1:
        parts = [_codes(table, [name])[0] for name in columns]
        joint = np.unique(np.column_stack(parts), axis=0, return_inverse=True)[1].ravel()
        return joint, int(joint.max(initial=0)) + 1
    name = columns[0]
    if table.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        codes, width = table.codes(name), len(table.levels(name))
    else:
        values = table.numbers(name)
        present = np.unique(values[~np.isnan(values)])
        codes = np.where(np.isnan(values), -1, np.searchsorted(present, values))
        width = len(present)
    gone = codes < 0
    return np.where(gone, width, codes), width + int(gone.any())


def _requirement(table: Table, guarantee: LDiversity | TCloseness) -> Requirement:
    codes, width = _codes(table, list(guarantee.columns))
    edges = None
    if isinstance(guarantee, TCloseness) and guarantee.distance is Distance.HIERARCHICAL:
        edges = leaf_edges(table, guarantee.columns[0])
        if width > len(edges):
            own = np.full((1, edges.shape[1]), -1, dtype=np.int64)
            own[0, 0] = edges.max() + 1
            edges = np.vstack([edges, own])
    return Requirement(guarantee, codes, width, edges)


METHOD = Method(
    name="mondrian",
    summary="Cut space at medians into groups of k or more, steered by l and t (k-anonymity).",
    parameters=Cuts,
    forms=grouping.FORMS,
    claims=_claims,
    run=_run,
    reference=SOURCE,
    example={"k": 5},
    not_claimed=grouping.bare_columns,
    refuse=_refuse,
)
