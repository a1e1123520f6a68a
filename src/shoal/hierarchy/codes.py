"""Hierarchies of codes: prefixes, published classifications, and masks from either end."""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

from shoal.core import Hierarchy
from shoal.errors import InputError, count_noun

ROOT = "*"

NACE_SECTIONS = (
    "A 1 3", "B 5 9", "C 10 33", "D 35 35", "E 36 39", "F 41 43", "G 45 47", "H 49 53", "I 55 56",
    "J 58 63", "K 64 66", "L 68 68", "M 69 75", "N 77 82", "O 84 84", "P 85 85", "Q 86 88",
    "R 90 93", "S 94 96", "T 97 98", "U 99 99",
)  # fmt: skip
"""Sections of NACE Rev. 2, each with its first and last division."""
ICD_CHAPTERS = (
    "I A00 B99", "II C00 D48", "III D50 D89", "IV E00 E90", "V F00 F99", "VI G00 G99",
    "VII H00 H59", "VIII H60 H95", "IX I00 I99", "X J00 J99", "XI K00 K93", "XII L00 L99",
    "XIII M00 M99", "XIV N00 N99", "XV O00 O99", "XVI P00 P96", "XVII Q00 Q99", "XVIII R00 R99",
    "XIX S00 T98", "XX V01 Y98", "XXI Z00 Z99", "XXII U00 U99",
)  # fmt: skip
"""Chapters of ICD-10 (WHO), each with its first and last category."""


class CodeScheme(StrEnum):
    """A classification whose hierarchy follows from the digits of its codes."""

    ICD_10 = "icd-10"
    NACE = "nace"
    ISCO = "isco"


class MaskSide(StrEnum):
    """The end from which characters are masked."""

    RIGHT = "right"
    LEFT = "left"


def prefixes(
    values: Iterable[str], lengths: Sequence[int], *, root: str = ROOT, observed: bool = False
) -> Hierarchy:
    """Group codes by their first characters, such as the leading digits of a postcode.

    A prefix that several codes share is written with a star, 75*; a code of exactly that length
    belongs to it too.

    Args:
        values: all codes that can occur.
        lengths: of the prefixes, level by level, each shorter than the one before.
        root: label of the last level.
        observed: the codes were read off the data.

    Raises:
        InputError: the lengths do not descend.

    >>> prefixes(["75011", "75012", "91000"], [2]).paths[0]
    ('75011', '75*', '*')
    """
    if not lengths or min(lengths) < 1 or any(a <= b for a, b in pairwise(lengths)):
        raise InputError("Expected lengths of 1 or more that descend, such as 3 and 2.")
    leaves = _distinct(values)
    keys = [[leaf[:length] for length in lengths] for leaf in leaves]
    return _group(leaves, keys, [lambda key: key + "*"] * len(lengths), root, observed=observed)


def codes(
    values: Iterable[str],
    scheme: CodeScheme | str,
    *,
    root: str = ROOT,
    observed: bool = False,
) -> Hierarchy:
    """Group the codes of a published classification by the structure of their digits.

    `icd-10`: A00.1, then the category A00*, then the chapter. `nace` (Rev. 2, with or without the
    letter of the section): 01.11, then the group 01.1*, the division 01* and the section. `isco`:
    2211, then 221*, 22* and 2*.

    Raises:
        InputError: some values are not codes of the classification; they are counted.

    >>> codes(["I21.0", "I21.9"], "icd-10").paths[0]
    ('I21.0', 'I21*', 'chapter IX (I00-I99)', '*')
    """
    known = list(CodeScheme)
    if scheme not in known:
        raise InputError(f"Expected a classification among {', '.join(known)}, found '{scheme}'.")
    leaves = _distinct(values)
    split, example = _SCHEMES[CodeScheme(scheme)]
    rows = [split(leaf) for leaf in leaves]
    wrong = sum(row is None for row in rows)
    if wrong:
        raise InputError(
            f"Expected codes of {scheme} such as {example}, found "
            f"{count_noun(wrong, 'value that is', 'values that are')} not one."
        )
    keys = [row for row in rows if row is not None]
    last = scheme != CodeScheme.ISCO
    stars: list[Callable[[str], str]] = [lambda key: key + "*"] * (len(keys[0]) - last)
    named: list[Callable[[str], str]] = [str] * last
    return _group(leaves, keys, [*stars, *named], root, observed=observed)


def mask_codes(
    values: Iterable[str],
    *,
    side: MaskSide | str = MaskSide.RIGHT,
    by: int = 1,
    root: str = ROOT,
    observed: bool = False,
) -> Hierarchy:
    """Mask codes by stars, `by` more characters with each level, until nothing is left.

    >>> mask_codes(["1234", "1299"], by=2).paths[0]
    ('1234', '12**', '*')
    """
    if side not in list(MaskSide) or by < 1:
        raise InputError("Expected to mask one character or more, from the right or from the left.")
    leaves = _distinct(values)
    most = max(map(len, leaves))

    def mask(leaf: str, gone: int) -> str:
        if gone >= len(leaf):
            return root
        kept = leaf[: len(leaf) - gone] if side == MaskSide.RIGHT else leaf[gone:]
        return kept + "*" * gone if side == MaskSide.RIGHT else "*" * gone + kept

    return Hierarchy(
        tuple((leaf, *(mask(leaf, gone) for gone in range(by, most, by)), root) for leaf in leaves),
        observed=observed,
    )


def _distinct(values: Iterable[str]) -> list[str]:
    leaves = sorted({str(value).strip() for value in values} - {""})
    if not leaves:
        raise InputError("Expected some values, found none.")
    return leaves


def _group(
    leaves: Sequence[str],
    keys: Sequence[Sequence[str]],
    labels: Sequence[Callable[[str], str]],
    root: str,
    *,
    observed: bool,
) -> Hierarchy:
    """Label each key; a key that equals its only leaf keeps its name."""
    paths = [[leaf] for leaf in leaves]
    for depth, label in enumerate(labels):
        members: dict[str, int] = {}
        for key in keys:
            members[key[depth]] = members.get(key[depth], 0) + 1
        for path, key in zip(paths, keys, strict=True):
            code = key[depth]
            single = members[code] == 1 and code == path[0]
            path.append(code if single else label(code))
    return Hierarchy(tuple((*path, root) for path in paths), observed=observed)


def _icd(code: str) -> list[str] | None:
    match = re.fullmatch(r"([A-Z]\d\d)(\.?[0-9A-Z]{1,4})?", code)
    chapter = None if match is None else _within(ICD_CHAPTERS, match[1])
    if match is None or chapter is None:
        return None
    name, low, high = chapter.split()
    return [match[1], f"chapter {name} ({low}-{high})"]


def _nace(code: str) -> list[str] | None:
    match = re.fullmatch(r"[A-U]?(\d\d)(?:\.?(\d)(?:\.?(\d))?)?", code)
    section = None if match is None else _section(int(match[1]))
    if match is None or section is None:
        return None
    group = match[1] if match[2] is None else f"{match[1]}.{match[2]}"
    return [group, match[1], f"section {section}"]


def _isco(code: str) -> list[str] | None:
    if re.fullmatch(r"\d{1,4}", code) is None:
        return None
    return [code[:3], code[:2], code[:1]]


def _within(ranges: Sequence[str], key: str) -> str | None:
    """Return the range that contains a key, compared as text."""
    return next((r for r in ranges if r.split()[1] <= key <= r.split()[2]), None)


def _section(division: int) -> str | None:
    for row in NACE_SECTIONS:
        letter, low, high = row.split()
        if int(low) <= division <= int(high):
            return letter
    return None


_SCHEMES: dict[CodeScheme, tuple[Callable[[str], list[str] | None], str]] = {
    CodeScheme.ICD_10: (_icd, "A00.1"),
    CodeScheme.NACE: (_nace, "01.11"),
    CodeScheme.ISCO: (_isco, "2211"),
}
