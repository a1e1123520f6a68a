"""Which released column is which column of the policy."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from shoal.core import Policy, Role
from shoal.errors import InputError, did_you_mean, quotable, unlike

MOST_NAMES = 8
"""How many names a sentence lists."""


@dataclass(frozen=True)
class Names:
    """The columns that two tables share, and what was found on the way.

    Attributes:
        source: the name in the release of each policy column that it holds, identifiers too.
        shared: policy columns that both tables hold and that can be scored.
        findings: sentences about all other columns.
    """

    source: Mapping[str, str]
    shared: tuple[str, ...]
    findings: tuple[str, ...]


def match(
    original: pl.DataFrame, released: pl.DataFrame, policy: Policy, rename: Mapping[str, str]
) -> Names:
    """Match columns by name: stated, then equal, then equal but for case and separators.

    Raises:
        InputError: `rename` names a column that is not there, or nothing is shared.
    """
    schema = policy.schema
    source = _stated(released, schema.names, rename)
    free = [name for name in released.columns if name not in source.values()]
    source |= {name: name for name in schema.names if name in free and name not in source}
    guessed = _guessed(
        [name for name in schema.names if name not in source],
        [name for name in free if name not in source.values()],
    )
    source |= guessed
    findings = [f"'{found}' was read as '{name}'." for name, found in guessed.items()]
    present = [name for name in schema.with_role(Role.IDENTIFIER) if name in source]
    findings += [
        f"The release holds the identifier '{name}': it names people. Drop it." for name in present
    ]
    common = [name for name in schema.released if name in source]
    lacking = [name for name in common if name not in original.columns]
    plain = [n for n in common if n in original.columns and schema[n].kind is None]
    shared = tuple(n for n in common if n in original.columns and schema[n].kind is not None)
    if not shared:
        raise InputError(_nothing(original, released, schema.released))
    gone = [n for n in schema.released if n not in source and n in original.columns]
    extra = [name for name in released.columns if name not in source.values()]
    findings += _listed(gone, "The release lacks {}, which the original has: nothing about {} is "
                        "measured.", "it", "them")  # fmt: skip
    findings += _listed(lacking, "The original lacks {}, which the policy names: {} not measured.",
                        "it is", "they are")  # fmt: skip
    findings += _listed(plain, "{} {} no kind in the policy and {} not measured.", "has", "have",
                        "is", "are")  # fmt: skip
    if unlike("The release", source, schema.released) or not all(map(quotable, extra)):
        # Names may be cells of a file without a header.
        extra = [f"column {1 + released.columns.index(name)}" for name in extra]
    findings += _listed(extra, "The release holds {}, which the policy does not name: {} ignored. "
                        "If a column was renamed, say so.", "it is", "they are")  # fmt: skip
    return Names(source, shared, tuple(findings))


def _stated(
    released: pl.DataFrame, known: tuple[str, ...], rename: Mapping[str, str]
) -> dict[str, str]:
    for found, name in rename.items():
        if found not in released.columns:
            quoted = not unlike("The release", released.columns, known)
            guess = did_you_mean(found, released.columns) if quoted else ""
            raise InputError(f"rename: the release has no column '{found}'.{guess}")
        if name not in known:
            guess = did_you_mean(name, known)
            raise InputError(f"rename: the policy names no column '{name}'.{guess}")
    source = {name: found for found, name in rename.items()}
    if len(source) < len(rename):
        raise InputError("rename: expected each column of the policy once, found one twice.")
    return source


def _guessed(wanted: list[str], free: list[str]) -> dict[str, str]:
    """Names that are alike but for case, spaces, points and underscores, where only one is."""
    alike: dict[str, list[str]] = {}
    for name in free:
        alike.setdefault(_folded(name), []).append(name)
    folded = [_folded(name) for name in wanted]
    return {
        name: alike[key][0]
        for name, key in zip(wanted, folded, strict=True)
        if key and len(alike.get(key, ())) == 1 and folded.count(key) == 1
    }


def _folded(name: str) -> str:
    return re.sub(r"[\s_.\-]+", "", name).casefold()


def _nothing(original: pl.DataFrame, released: pl.DataFrame, wanted: tuple[str, ...]) -> str:
    """Say that no column can be measured; names that are not known may be cells."""
    return (
        unlike("The original", original.columns, wanted)
        or f"The release has no column that can be measured: expected some of {_names(wanted)}, "
        f"found {released.width} others. If columns were renamed, say which became which; if the "
        "file lacks a header, add one."
    )


def _listed(names: list[str], form: str, *verbs: str) -> list[str]:
    if not names:
        return []
    several = len(names) > 1
    return [form.format(_names(names), *verbs[several::2])]


def _names(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown or "none"
