"""Release sampling weights that point to nobody: means of classes, raked to public totals.

Rows that agree on the protected columns are a class, and share one weight: the mean of theirs, so a
class keeps its sum, and weighted counts of protected columns stay as they were. Raking multiplies
the weights of a class by one factor for each margin until all margins add up to public totals.
Margins are protected columns, which are constant in a class. So the released weight is a function
of the released cells of the protected columns and of sums over classes of at least k people, and
k-anonymity of these columns is k-anonymity of these columns and the weight.

Not promised: that a class hides the weight of somebody whose other members are all known.

References:
    Deming and Stephan, "On a least squares adjustment of a sampled frequency table when the
    expected marginal totals are known", Annals of Mathematical Statistics 11 (1940), pages 427-444.
    doi:10.1214/aoms/1177731829
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Claim, Column, KAnonymity, MissingMeaning, ReleaseForm
from shoal.core._arrays import Floats, Ints
from shoal.engine.check_table import class_labels
from shoal.errors import InputError, count_noun
from shoal.io.table import Table
from shoal.methods import Method, Setting

ROUNDS = 1_000
CLOSE = 1e-9
"""How far a raked margin may be from its total, relative to it."""


def weight_by_class(setting: Setting[Any]) -> Column | None:
    """Return the weight that is released as the mean of each class, if there is one."""
    return next((column for column in setting.schema.columns if column.class_mean), None)


def cover_weight(
    claims: tuple[Claim, ...], method: Method[Any], setting: Setting[Any], *, distributed: bool
) -> tuple[Claim, ...]:
    """Extend k-anonymity of the protected columns to the mean weight of its classes.

    Raises:
        InputError: the method promises no classes of k, or the weight is one of the columns.
    """
    weight = weight_by_class(setting)
    if weight is None:
        return claims

    def forms_classes(claim: Claim) -> bool:
        promise = claim.guarantee
        own = isinstance(promise, KAnonymity) and promise.missing is MissingMeaning.OWN_VALUE
        return own and claim.stands and {*promise.columns} == {*setting.columns}

    where = f"Column '{weight.name}', class_mean"
    rows = setting.release_form in {ReleaseForm.ROW_ALIGNED, ReleaseForm.LINKED_SHUFFLED}
    if method.noisy or distributed or not rows or not any(map(forms_classes, claims)):
        raise InputError(
            f"{where}: expected a method that promises k-anonymity of all protected columns "
            f"together, on one machine and without noise, such as mdav; '{method.name}' as set up "
            "does not. Leave the weight out, with the role identifier, or choose another method.",
            field=("columns", weight.name, "class_mean"),
        )
    if weight.name in setting.columns:
        raise InputError(f"{where}: expected the role other; classes are formed by the protected "
                         "columns, and the weight is one of them.")  # fmt: skip
    if any(weight.name in rule.columns for rule in setting.constraints.rules):
        raise InputError(f"{where}: expected no rule about the weight; a mean may break it.")
    for name in weight.totals:
        if name not in setting.columns:
            raise InputError(
                f"Column '{weight.name}', totals: expected protected columns, whose values are "
                f"constant in a class; '{name}' is not one of {', '.join(setting.columns)}."
            )
    return tuple(
        replace(
            claim,
            guarantee=KAnonymity(claim.guarantee.k, (*setting.columns, weight.name)),
            basis=f"{claim.basis}; every row of a class has the same weight",
        )
        if isinstance(claim.guarantee, KAnonymity) and forms_classes(claim)
        else claim
        for claim in claims
    )


def average_weights(table: Table, setting: Setting[Any]) -> Table:
    """Give each row the mean weight of its class, raked to the public totals."""
    weight = weight_by_class(setting)
    if weight is None:
        return table
    values = table.numbers(weight.name)
    if bad := int((~(values >= 0)).sum()):
        raise InputError(
            f"Column '{weight.name}' is the sampling weight, but "
            f"{count_noun(bad, 'row has', 'rows have')} none, or a negative one."
        )
    labels = class_labels(table.frame, setting.columns)
    firsts = np.unique(labels, return_index=True)[1]
    margins = [
        _margin(table.frame[name][firsts], totals, weight.name)
        for name, totals in weight.totals.items()
    ]
    sums = np.bincount(labels, values).astype(np.float64)
    means = rake(sums, margins) / np.bincount(labels)
    return table.with_series(pl.Series(weight.name, means[labels]))


def list_misfits(frame: pl.DataFrame, column: Column) -> Iterator[str]:
    """List the public totals that a released weight does not add up to."""
    for name, totals in column.totals.items():
        sums = dict(frame.group_by(pl.col(name).cast(pl.String)).agg(pl.sum(column.name)).rows())
        if any(abs(sums.get(str(at), 0) / float(total) - 1) > 1e-6 for at, total in totals.items()):
            yield f"columns.{column.name}: it does not add up to the totals of {name}."


def _margin(cells: pl.Series, totals: Any, weight: str) -> tuple[Ints, Floats]:
    """Place each class among the values that have a total."""
    places = {str(value): place for place, value in enumerate(totals)}
    codes = cells.cast(pl.String).replace_strict(places, default=None, return_dtype=pl.Int64)
    if codes.null_count() or codes.n_unique() < len(places):
        raise InputError(
            f"Column '{weight}', totals: expected one for each released value of '{cells.name}' "
            "and for no other. A range, a set, a blank and a value that nobody has cannot be "
            "raked: rake by a column that the method leaves as it is."
        )
    return codes.to_numpy(), np.array([float(total) for total in totals.values()])


def rake(sums: Floats, margins: Sequence[tuple[Ints, Floats]]) -> Floats:
    """Multiply sums by factors of their margins until each margin adds up to its totals.

    Args:
        sums: of the weights of each class.
        margins: for each margin the place of each class, and the totals by place.

    Raises:
        InputError: no factors do.

    >>> rake(np.array([1.0, 3.0]), [(np.array([0, 1]), np.array([2.0, 4.0]))])
    array([2., 4.])
    """
    for _ in range(ROUNDS):
        off = 0.0
        for places, totals in margins:
            have = np.bincount(places, sums, minlength=totals.size)
            factors = totals / np.maximum(have, np.finfo(float).tiny)
            off = max(off, float(np.abs(factors - 1).max()))
            sums = sums * factors[places]
        if off <= CLOSE:
            return sums
    raise InputError(
        "The totals of the sampling weights contradict each other in this table: no weights of its "
        "classes add up to all of them. State fewer margins, or coarser ones."
    )
