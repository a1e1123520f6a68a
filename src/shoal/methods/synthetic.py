"""What the methods share that learn a noisy model of all columns and draw rows from it.

Every released column becomes whole codes on a public axis (`shoal.methods.places`): a category, a
day, a multiple of the declared `step`, or one of 2^20 steps between the bounds, on the scale that
the policy's `transform` names. A mechanism (`privtree`, `copula`, `maxent`) measures the codes with
noise and draws as many rows as there are records; the proof stands beside each of them. What
follows is post-processing: codes become values again, rare combinations are merged on request
(`min_cell`), and the noisy answers are published beside the rows, since they are paid for.

The number of rows is public and used throughout: change-one neighbours only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.core import Claim, Kind, ReleaseForm, Role, Status
from shoal.errors import InputError
from shoal.mechanism.attributes import Attribute, Drawn
from shoal.mechanism.records import Columns
from shoal.mechanism.records import Held as HeldColumns
from shoal.mechanism.selection import warnings
from shoal.methods import noisy
from shoal.methods.measurements import tabulated
from shoal.methods.method import Method, Setting, Tools
from shoal.methods.noisy import Priced
from shoal.methods.places import Places, places, redrawn
from shoal.methods.rare import merged
from shoal.methods.rows import Coded, Counted, Held, Spread
from shoal.methods.trees import masked
from shoal.table import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

COMBINATION = "the combination and its proof are ours, unreviewed"
PRIVTREE = (
    "Zhang, Xiao and Xie, PrivTree: a differentially private algorithm for hierarchical "
    "decompositions, SIGMOD (2016), doi:10.1145/2882903.2882928"
)
COPULA = (
    "Li, Xiong and Jiang, Differentially private synthesization of multi-dimensional data using "
    "copula functions (DPCopula), EDBT (2014), doi:10.5441/002/edbt.2014.43"
)
MARGINALS = (
    "McKenna, Miklau and Sheldon, Winning the NIST contest (PGM and MST), Journal of Privacy and "
    "Confidentiality 11 (2021), doi:10.29012/jpc.778, and McKenna, Mullins, Sheldon and Miklau, "
    "AIM, PVLDB 15 (2022), doi:10.14778/3551793.3551817"
)
NOT_A_PERSON = "k-anonymity: rows are drawn, and one may by chance have the values of a person."
TAILS = "Tails: extreme values, and combinations that few people have, are mostly noise."


class Drawing(Priced):
    """Parameters of every method that draws rows from a noisy model."""

    min_cell: Annotated[int, Field(ge=2)] | None = Field(
        None,
        description="Merge drawn rows until no combination of the quasi-identifiers is rarer.",
    )


@dataclass(frozen=True)
class Task:
    """What a mechanism is given: codes, their public descriptions, epsilon."""

    codes: Columns
    attributes: Sequence[Attribute]
    epsilon: Fraction

    @property
    def rows(self) -> int:
        """The number of records, which is public."""
        return len(self.codes)


Draw = Callable[[Task, Setting[Any], Tools], tuple[Drawn, tuple[str, ...]]]
"""A mechanism with its parameters: the rows, and sentences on how it was run."""


def synthetic_method(
    name: str,
    summary: str,
    draw: Draw,
    *,
    parameters: type[Drawing],
    basis: str,
    source: str,
    unsupported: Sequence[str],
    refuse: Callable[[Setting[Any]], None] = lambda _setting: None,
    refuse_spread: Callable[[Setting[Any]], None] | None = None,
) -> Method[Any]:
    """A method that draws rows from a noisy model of all released columns.

    Args:
        name: as written in the policy.
        summary: one line.
        draw: the mechanism.
        parameters: of the method.
        basis: of its proof, in a sentence.
        source: whose idea it is.
        unsupported: sentences on uses for which the rows are no good.
        refuse: what this method refuses beside what all do.
        refuse_spread: what it refuses on Spark; none where the mechanism must see the records.
    """

    def claims(setting: Setting[Drawing]) -> tuple[Claim, ...]:
        credit = f"{source}; {COMBINATION}"
        return (noisy.privacy_claim(setting, Status.PROVED, basis=basis, source=credit),)

    def refused(setting: Setting[Drawing]) -> None:
        _refuse(setting)
        refuse(setting)

    return Method(
        name=name,
        summary=summary,
        parameters=parameters,
        forms=(ReleaseForm.SYNTHETIC,),
        claims=claims,
        run=lambda table, setting, tools: masked(_run(Held(table), setting, tools, draw)),
        reference=source,
        example={"epsilon": 1},
        not_claimed=lambda setting: (*_not_claimed(setting), *unsupported, TAILS),
        default_columns=noisy.protected_columns,
        refuse=refused,
        noisy=True,
        scaled=True,
        sort_by=lambda _setting: (),
        spread=None
        if refuse_spread is None
        else lambda rows, setting, tools: _run(rows, setting, tools, draw),
        refuse_spread=refuse_spread or (lambda _setting: None),
    )


def anywhere(_setting: Setting[Any]) -> None:
    """Refuse nothing: the mechanism only counts."""


def at_least_two(setting: Setting[Any]) -> None:
    """Refuse a single column where a mechanism joins columns."""
    if len(setting.columns) < 2:
        raise InputError(
            "This method joins columns; expected at least two, found one. Use privtree or auto."
        )


def _not_claimed(setting: Setting[Drawing]) -> tuple[str, ...]:
    least = setting.parameters.min_cell
    if least is None:
        return (NOT_A_PERSON,)
    text = (
        f"k-anonymity: each combination of the quasi-identifiers is there {least} times or more, "
        "but of drawn rows, which are no persons."
    )
    return (text,)


def _refuse(setting: Setting[Drawing]) -> None:
    noisy.change_one_only(setting)
    noisy.refuse_bare(setting)
    noisy.nobody_beside(setting)
    least = setting.parameters.min_cell
    if least is not None:
        if not setting.schema.with_role(Role.QUASI_IDENTIFIER):
            raise InputError("[protect], min_cell: expected a quasi-identifier, found none.")
        if setting.rows is not None and setting.rows < least:
            raise InputError(
                f"[protect], min_cell: expected at most the number of rows, {setting.rows:,}, "
                f"found {least:,}."
            )


def _run(rows_in: Counted, setting: Setting[Drawing], tools: Tools, draw: Draw) -> Spread:
    space = [places(setting.schema[name], scaled=True) for name in setting.columns]
    encode = partial(_encoded, space=space)
    task = Task(
        codes=HeldColumns(encode(rows_in.template))
        if isinstance(rows_in, Held)
        else Coded(rows_in, encode),
        attributes=[attribute(axis) for axis in space],
        epsilon=Fraction(setting.parameters.epsilon),
    )
    drawn, notes = draw(task, setting, tools)
    rows = [_settled(*pair) for pair in zip(space, drawn.rows, strict=True)]
    if setting.parameters.min_cell is not None:
        tools.progress("merging rare rows", 0, 1)
        rows = _without_rare(space, rows, setting.parameters.min_cell)
    ran = "; ".join(f"{name}: {_shown(value)}" for name, value in drawn.facts.items())
    warned = warnings(task.attributes, n=task.rows, epsilon=task.epsilon)
    return Spread(
        data=redrawn(rows_in.template, list(zip(space, rows, strict=True))),
        spendings=drawn.spendings,
        notes=(*notes, f"How it ran: {ran}.", *(text for text in warned if text not in notes)),
        extras={"measurements": tabulated(drawn.measurements, space)},
    )


def _encoded(table: Table, space: Sequence[Places]) -> list[Integers]:
    return [axis.cells(table) for axis in space]


def attribute(axis: Places) -> Attribute:
    """What a mechanism may know of an axis. Codes are places in the public order."""
    kind = cast("Kind", axis.column.kind)
    joins = None
    if axis.heights is not None:
        top = int(axis.heights.max())
        joins = tuple(top - int(height) for height in axis.heights)
    kind = Kind.NUMERIC if kind is Kind.DATE else kind
    return Attribute(axis.column.name, kind, axis.count, joins=joins)


def _settled(axis: Places, cells: Integers | Floats) -> Integers | Floats:
    """Whole cells, but on a grid: a mean of codes is a value there."""
    return cells if axis.grid is not None else np.rint(cells).astype(np.int64)


def _without_rare(
    space: Sequence[Places], rows: list[Integers | Floats], least: int
) -> list[Integers | Floats]:
    """The rows with rare combinations of the quasi-identifiers merged; see `rare`."""
    keys = [j for j, axis in enumerate(space) if axis.column.role is Role.QUASI_IDENTIFIER]
    unit = np.column_stack([rows[j] / max(space[j].count - 1, 1) for j in keys])
    nominal = np.array([space[j].column.kind is Kind.NOMINAL for j in keys])
    source = merged(unit, nominal, least)
    return [cells[source] if j in keys else cells for j, cells in enumerate(rows)]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
