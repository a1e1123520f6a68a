"""Choose the method of a draft: truthful categories, and easy analysis.

Sets of towns and intervals that differ from row to row are hard to use. So columns are recoded the
same way in all rows as far as they can be, numbers to a step, dates to a period, codes to a prefix,
and rare combinations are left blank, if that blanks few cells of this table. Else `mondrian` joins
the values of each group. With an epsilon nothing is chosen here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from shoal.core import Kind, MissingMeaning, Role
from shoal.core._arrays import Ints
from shoal.policy.column_values import ColumnValues
from shoal.policy.exposure import Purpose, in_words, persons_per_value, round_values, steps
from shoal.policy.guess import Guess

LARGE = 100_000
"""From this many rows on, groups are made within blocks: the cost is then linear."""
WIDEST = 8
"""With more columns than this, blanks are not tried: too many cells of any table would be."""
COST = 500_000
"""Rows times patterns of blanks that are tried; of a larger table, some rows are."""
SIZES = (None, 20, 12)
COARSEST = 6
"""Values that a column keeps at most, from the finest recoding to the coarsest; none for all."""
FEW_BLANK, MOST_BLANK = 0.05, 0.25
"""The finest recoding that blanks so few cells is taken, or else the coarsest if it blanks at most
one in four: of most such tables `mondrian` makes sets or intervals of more than half."""
MOST_OF_ONE = 0.5
"""No column may lose more of its cells: it would be of little use, and refused if all were."""


@dataclass(frozen=True, eq=False)
class _Recoded:
    """A column as a run would recode it, and how a policy says so."""

    cells: pl.Series
    coding: Mapping[str, str]


def choose_method(
    values: Mapping[str, ColumnValues], guesses: Mapping[str, Guess], purpose: Purpose, rows: int
) -> tuple[dict[str, Guess], list[str]]:
    """Choose a method that replaces no category by another, and how columns are recoded for it.

    Returns:
        The guesses that change, and the lines of `[protect]`.
    """
    keys = {name: made for name, made in guesses.items() if made.role is Role.QUASI_IDENTIFIER}
    if all(made.kind in {Kind.NUMERIC, Kind.DATE} for made in keys.values()):
        lines = ['method = "mdav"  # groups of similar people get their mean', f"k = {purpose.k}"]
        if any(made.step or "date_step" in made.coding for made in keys.values()):
            lines.append("integers = true  # means have as many digits as their column")
        if rows >= LARGE:
            lines.append(
                'blocks = "median"  # a large table: the cost is linear, the loss a little larger'
            )
        return {}, lines
    unit = next((name for name, made in guesses.items() if "privacy_unit" in made.flags), None)
    persons = None if unit is None else _codes(values[unit].cells)

    def blank_at(size: int | None) -> tuple[dict[str, _Recoded], float]:
        recoded = {
            name: _recode(values[name], made, None if name in purpose.keep else size)
            for name, made in keys.items()
        }
        codes = np.column_stack([_codes(column.cells) for column in recoded.values()])
        return recoded, _estimate_blanks(codes, persons, purpose.k)

    coarsest = blank_at(COARSEST) if len(keys) <= WIDEST and rows >= purpose.k else ({}, 1.0)
    if coarsest[1] <= MOST_BLANK:
        tried = (blank_at(size) for size in SIZES)
        recoded, blank = next((attempt for attempt in tried if attempt[1] <= FEW_BLANK), coarsest)
        return _apply_recoding(keys, recoded, purpose.k), _blanking(purpose.k, blank)
    return {}, [
        'method = "mondrian"  # values become intervals and sets, and none is replaced',
        f"k = {purpose.k}",
    ]


def _estimate_blanks(codes: Ints, persons: Ints | None, k: int) -> float:
    """Estimate the share of cells that local suppression blanks; sample rows of a large table."""
    from shoal.partition import local_suppression  # noqa: PLC0415 (SciPy takes a while to load)
    from shoal.privacy_models import persons_agreeing  # noqa: PLC0415 (the same)

    frame = pl.DataFrame(codes)
    sizes = frame.group_by(frame.columns).len()["len"]
    rare = float(sizes.filter(sizes < k).sum()) / len(codes)
    if persons is None and rare <= FEW_BLANK:
        return rare  # not more than all cells of these rows
    some = np.random.default_rng(0).permutation(len(codes))[: COST >> codes.shape[1]]
    codes, wanted = codes[some], k
    while True:  # as a run does: more rows hold more persons
        blanked = local_suppression(codes, min(k, len(codes))).blanked
        made = np.where(blanked, -1, codes)
        if (
            persons is None
            or k >= len(codes)
            or blanked.mean() > MOST_BLANK  # and more with a larger k
            or persons_agreeing(made, persons[some], MissingMeaning.OWN_VALUE) >= wanted
        ):
            worst = float(blanked.mean(axis=0).max())
            return 1.0 if worst > MOST_OF_ONE else float(blanked.mean())
        k *= 2


def _blanking(k: int, blank: float) -> list[str]:
    share = f"about {blank:.0%}" if blank >= 0.01 else "less than 1%"
    return [
        f'method = "local-suppression"  # {share} of the cells are left blank, as they are rare',
        f"k = {k}",
    ]


def _apply_recoding(
    keys: Mapping[str, Guess], recoded: Mapping[str, _Recoded], k: int
) -> dict[str, Guess]:
    result = {}
    for name, made in keys.items():
        column = recoded[name]
        if column.coding != made.coding:
            few = () if "prefix" in column.coding else made.categories
            explained = made.because(in_words(made, column.coding, k))
            result[name] = replace(explained, coding=column.coding, categories=few)
    return result


def _recode(values: ColumnValues, made: Guess, size: int | None) -> _Recoded:
    """Recode a column as little as possible, to at most `size` values."""
    first = _Recoded(round_values(values.to_typed(), made.coding), made.coding)
    best = first
    for best in (first, *(_levels(values, made) if size is not None else ())):
        if size is None or best.cells.drop_nulls().n_unique() <= size:
            break
    return best


def _levels(values: ColumnValues, made: Guess) -> Iterator[_Recoded]:
    """Yield ever coarser recodings of a column."""
    cells, coding = values.to_typed(), made.coding
    if made.kind is Kind.NUMERIC:
        seen = persons_per_value(cells, None)["value"].cast(pl.Float64).to_numpy()
        for step in steps(seen) if seen.size > 1 else ():
            if step > float(coding.get("step", made.step or 0)):
                coarser = {**coding, "step": f"{step:f}"}
                yield _Recoded(round_values(cells, coarser), coarser)
    elif made.kind is Kind.DATE:
        for period in ("quarter", "year"):
            coarser = {**coding, "date_step": f'"{period}"'}
            yield _Recoded(round_values(cells, coarser), coarser)
    elif made.kind is Kind.NOMINAL and "prefix" not in coding and _is_code(values):
        for length in range(int(values.text.str.len_chars().min()), 0, -1):  # type: ignore[arg-type]
            coarser = {**coding, "prefix": str(length)}
            yield _Recoded(round_values(cells, coarser), coarser)


def _is_code(values: ColumnValues) -> bool:
    """Whether the first characters of the values say more than the last, as in postal codes."""
    text = values.text
    return bool(text.str.contains(r"^[A-Z]?\d{2,}").all() and text.str.len_chars().min() >= 3)  # type: ignore[operator]


def _codes(cells: pl.Series) -> Ints:
    return cells.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
