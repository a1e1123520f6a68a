"""Remarks about an external release, without any cell of the original."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.core import Role, Schema
from shoal.errors import count_noun
from shoal.io.external.cells import Form
from shoal.io.external.columns import ColumnAxis, ReleasedColumn, missing_as_value

SAMPLE = 200
"""Released rows that are looked up in the original."""
FEW = 0.1
"""Below this share of rows that fit an original row, two files may be about other people."""
FAR = 0.6
"""Above this distance between two distributions, they are called far apart."""

_SCORED = {
    Form.ONE: ("holds one value", "hold one value"),
    Form.RANGE: ("holds an interval", "hold an interval"),
    Form.OPEN: ("has an open end, which is the end of the domain",
                "have an open end, which is the end of the domain"),
    Form.SET: ("holds a set", "hold a set"),
    Form.NODE: ("holds an ancestor, read as all categories below it",
                "hold an ancestor, read as all categories below it"),
    Form.MASK: ("is masked, read as all values that fit",
                "are masked, read as all values that fit"),
    Form.STAR: ("is suppressed by a star", "are suppressed by a star"),
    Form.MISSING: ("is missing", "are missing"),
    Form.UNKNOWN: ("cannot be read or is not a known category",
                   "cannot be read or are not known categories"),
}  # fmt: skip


def how_scored(name: str, scale: ColumnAxis, axis: ReleasedColumn) -> str:
    """Say how the cells of one column were read and scored, with counts alone."""
    parts = [count_noun(int(axis.counts[form]), *words) for form, words in _SCORED.items()
            if axis.counts[form]]  # fmt: skip
    total = count_noun(axis.suppressed.size, "cell", "cells")
    text = f"'{name}': of {total}, {'; '.join(parts)}."
    hidden, gone = int(axis.suppressed.sum()), int(axis.missing.sum())
    if scale.discrete and scale.domain[1] > len(scale.categories) and gone:
        text += f" {count_noun(gone, 'empty cell counts', 'empty cells count')} as missing."
        hidden, gone = hidden - gone, 0
    if hidden:
        cells = count_noun(hidden, "cell counts", "cells count")
        but = "; where distributions are compared, what is missing is missing" if gone else ""
        text += f" {cells} as the whole domain of the column, that is {_whence(scale)}{but}."
    if axis.notes["hull"]:
        sets = count_noun(axis.notes["hull"], "set or mask was", "sets or masks were")
        text += (
            f" {sets} scored with all values in between, because its values are not neighbours "
            f"in the order of the column."
        )
    if axis.notes["loose"]:
        cells = count_noun(axis.notes["loose"], "cell matches a category", "cells match a category")
        text += f" {cells} except for case, spaces or a final '.0'."
    if axis.notes["outside"]:
        cells = count_noun(axis.notes["outside"], "cell lies", "cells lie")
        text += f" {cells} outside {_whence(scale)}; such cells are not moved."
    return text


def _whence(scale: ColumnAxis) -> str:
    if scale.discrete:
        return "the declared categories" if scale.declared else "the categories that occur"
    return "the declared bounds" if scale.declared else "the range of the original"


def rows(original: int, released: int) -> list[str]:
    """Say whether the release has fewer or more rows than the original."""
    if released == original:
        return []
    more = f"{abs(released - original):,} {'fewer' if released < original else 'more'}"
    return [f"The release has {released:,} rows and the original {original:,}: {more}."]


def find_left_under_stars(schema: Schema, suppressed: NDArray[np.bool_]) -> list[str]:
    """Find rows that hide every quasi-identifier and still show a confidential cell.

    ARX writes suppressed rows this way. Anyone who knows that a person's row was suppressed still
    learns the confidential value.
    """
    names = schema.names
    keys = [names.index(name) for name in schema.with_role(Role.QUASI_IDENTIFIER)]
    if not keys:
        return []
    hidden = suppressed[:, keys].all(axis=1)
    sentences = []
    for name in schema.with_role(Role.CONFIDENTIAL):
        left = int((hidden & ~suppressed[:, names.index(name)]).sum())
        if left:
            rows = count_noun(left, "row has", "rows have")
            their = "shows its" if left == 1 else "show their"
            drop = "drop this row" if left == 1 else "drop these rows"
            sentences.append(
                f"{rows} every quasi-identifier suppressed and still {their} '{name}', as ARX "
                f"leaves it; {drop} or clear the cell."
            )
    return sentences


def hidden_rows(schema: Schema, suppressed: NDArray[np.bool_]) -> list[str]:
    """Count the rows and columns that are completely suppressed."""
    names = schema.names
    sentences = [f"Every cell of '{name}' is suppressed, missing or cannot be read."
             for name, gone in zip(names, suppressed.T, strict=True) if gone.all()]  # fmt: skip
    keys = [names.index(name) for name in schema.with_role(Role.QUASI_IDENTIFIER)]
    starred = int(suppressed[:, keys].all(axis=1).sum()) if keys else 0
    if starred:
        rows = count_noun(starred, "row has every quasi-identifier suppressed",
                        "rows have every quasi-identifier suppressed")  # fmt: skip
        sentences.append(f"{rows}: such rows count as released and cover the whole domain.")
    return sentences


def other_people(
    schema: Schema, scales: Sequence[ColumnAxis], axes: Sequence[ReleasedColumn]
) -> tuple[list[str], list[str]]:
    """Check whether the released rows fit anybody in the original.

    A generalised row is true of somebody, if nothing else was done to it. A row of single
    values need not be: means, noise and synthetic rows are nobody's. So such rows count only
    where also a column is distributed far from the original's.

    Returns:
        Findings, and sentences for the record.
    """
    keys = schema.with_role(Role.QUASI_IDENTIFIER) or schema.names
    chosen = [schema.names.index(name) for name in keys]
    scales = [scales[i] for i in chosen]
    axes = [missing_as_value(scale, axes[i]) for scale, i in zip(scales, chosen, strict=True)]
    shown = np.column_stack([~axis.suppressed for axis in axes])
    wide = np.column_stack([~axis.suppressed & ~axis.exact for axis in axes]).any(axis=1)
    findings, record = [], []
    checked, fit = _fitting(scales, axes, np.flatnonzero(wide))
    if fit < checked:
        rows = count_noun(checked, "generalised row that was", "generalised rows that were")
        cover = "covers" if checked - fit == 1 else "cover"
        text = f"Of {rows} checked, {checked - fit:,} {cover} no row of the original"
        other = "the two files may not be about the same people, or cells were changed as well"
        changed = "some cells were changed beyond generalising, or the rows are of other people"
        findings.append(f"{text}: {other if fit < FEW * checked else changed}.")
    checked, fit = _fitting(scales, axes, np.flatnonzero(shown.any(axis=1) & ~wide))
    if checked and fit < FEW * checked:
        rows = count_noun(
            checked, "row of single values that was", "rows of single values that were"
        )
        text = f"Of {rows} checked, {fit:,} {'is' if fit == 1 else 'are'} found in the original"
        far = [name for name, scale, axis in zip(keys, scales, axes, strict=True)
               if _far(scale, axis)]  # fmt: skip
        if far:
            listed = ", ".join(f"'{name}'" for name in far)
            findings.append(
                f"{text}, and {listed} {'is' if len(far) == 1 else 'are'} distributed far from it: "
                "the two files may not be about the same people. Strongly perturbed or averaged "
                "rows can look like this, too."
            )
        else:
            record.append(f"{text}; averaged, perturbed and synthetic rows need not be.")
    return findings, record


def _fitting(
    scales: Sequence[ColumnAxis], axes: Sequence[ReleasedColumn], rows: NDArray[np.int64]
) -> tuple[int, int]:
    """Count the released rows, of an evenly spaced sample, that match a row of the original."""
    chosen = rows[np.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).astype(np.int64)]
    fit = 0
    for row in chosen:
        left: NDArray[np.int64] | None = None
        for scale, axis in zip(scales, axes, strict=True):
            if axis.suppressed[row]:
                continue
            places = scale.places if left is None else scale.places[left]
            lower, upper = axis.lower[row], axis.upper[row]
            inside = (places >= lower) & ((places < upper) | (places == lower))
            left = np.flatnonzero(inside) if left is None else left[inside]
            if not left.size:
                break
        fit += left is None or left.size > 0
    return len(chosen), fit


def _far(scale: ColumnAxis, axis: ReleasedColumn) -> bool:
    """Whether the released distribution is far from the original's.

    Numbers are compared by the Kolmogorov-Smirnov distance, categories by total variation.
    """
    lower, upper = axis.lower[~axis.suppressed], axis.upper[~axis.suppressed]
    places = scale.places[~np.isnan(scale.places)]
    if not lower.size or not places.size:
        return False
    if scale.discrete:
        width = len(scale.categories) + 1
        before = np.bincount(places.astype(np.int64), minlength=width) / places.size
        after = np.bincount(lower.astype(np.int64), minlength=width) / lower.size
        return bool(np.abs(before - after).sum() / 2 > FAR)
    middle = np.sort(np.where(lower == upper, lower, (lower + upper) / 2))
    at = np.concatenate([places, middle])
    below = np.searchsorted(np.sort(places), at, side="right") / places.size
    under = np.searchsorted(middle, at, side="right") / middle.size
    return bool(np.abs(below - under).max() > FAR)
