"""Schemes as files, and what two releases by one scheme disclose together.

A scheme file is self-contained: it holds the policy, the hierarchies and recodings that the policy
names, and what the method chose. It is confidential if any of that was read off the table.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.core import Confidential, Policy, Role, Scheme
from shoal.errors import InputError, count_noun, did_you_mean
from shoal.io import text_files
from shoal.io.folders import write_text
from shoal.io.text_files import as_toml, bare
from shoal.methods import find
from shoal.policy.load import from_self_contained, self_contained

SCHEME = "scheme.toml"
"""Name of the file in the confidential folder."""
_PART = 1 << 16
"""Entries of an array that are written at a time."""
_SECTIONS = ("policy", "hierarchies", "recodes", "recoding")


@dataclass(frozen=True)
class Applied:
    """A scheme that is applied, and the release that it comes from, if available."""

    scheme: Scheme
    previous: pl.DataFrame | None = None


def is_public(policy: Policy) -> bool:
    """Whether a policy contains nothing read off the data, and no pairs of a recoding."""
    return not any(
        column.observed or column.recode or (tree is not None and tree.observed)
        for column in policy.schema.columns
        for tree in [column.stated_hierarchy]
    )


def write(scheme: Scheme, path: Path, *, force: bool = False) -> None:
    """Write a scheme; see `Scheme.write`."""
    private = not scheme.public
    scheme.recoding.map(
        lambda held: write_text(path, text(scheme, held), force=force, confidential=private)
    )


def text(scheme: Scheme, recoding: Mapping[str, Any]) -> str:
    """Write a scheme as TOML."""
    document, hierarchies, recodes = self_contained(scheme.policy)
    mark = (
        "Public: nothing in it was read off the table, beyond the levels that the release states."
        if scheme.public
        else "Confidential: parts of it were read off the table."
    )
    parts = (document, hierarchies, recodes, recoding)
    lines = [f"# How a release by {scheme.policy.method} recoded its table.", f"# {mark}",
             "# Recode another table the same way: shoal apply scheme.toml DATA --out DIR",
             "scheme = 1", f"public = {as_toml(scheme.public)}"]  # fmt: skip
    if scheme.policy.budget is not None:
        lines.insert(2, "# Remove [policy.budget] before you hand it on: it names a budget file.")
    for name, part in zip(_SECTIONS, parts, strict=True):
        lines += _section([name], _plain(part))
    return "\n".join(lines) + "\n"


def _section(path: Sequence[str], content: Mapping[str, Any]) -> list[str]:
    """Write a mapping as a TOML table: its values first, then its subtables."""
    lines = ["", f"[{'.'.join(map(bare, path))}]"]
    lines += [
        f"{bare(key)} = {_write(value)}"
        for key, value in content.items()
        if not isinstance(value, Mapping)
    ]
    for key, value in content.items():
        if isinstance(value, Mapping):
            lines += _section([*path, key], value)
    return lines


def _write(value: Any) -> str:
    """Write a value as TOML; a long array in parts, which take less memory than all its numbers."""
    if not isinstance(value, np.ndarray | pl.Series):
        return as_toml(value)
    lists = (value[at : at + _PART] for at in range(0, len(value), _PART))
    parts = (as_toml(p.to_list() if isinstance(p, pl.Series) else p.tolist()) for p in lists)
    return f"[{', '.join(part[1:-1] for part in parts)}]"


def _plain(value: Any) -> Any:
    """Convert single numbers of NumPy, and drop keys without a value."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def read(path: Path) -> Scheme:
    """Read a scheme.

    Raises:
        InputError: it is not one.
    """
    content = text_files.parse_toml(text_files.read_text(path, f"the scheme '{path}'"), path.name)
    parts = [part for name in _SECTIONS if isinstance(part := content.get(name), Mapping)]
    if content.get("scheme") != 1 or len(parts) < len(_SECTIONS):
        raise InputError(
            f"'{path}' is not a scheme of this version; expected one that a release wrote."
        )
    document, hierarchies, recodes, recoding = parts
    policy = from_self_contained(document, hierarchies, recodes, where=path.name)
    return Scheme(policy, Confidential(recoding), public=content.get("public") is True)


def under(scheme: Scheme, policy: Policy) -> Scheme:
    """Return the recoding of a scheme under another policy that recodes its columns alike.

    Such a policy may differ in k, in the suppression it allows and in what it requires.

    Raises:
        InputError: it protects other columns, describes them otherwise, or uses another method.
    """
    before = scheme.policy
    columns = [_list_protected(p) for p in (before, policy)]
    differing = [
        f"column '{name}'"
        for name in dict.fromkeys([*columns[0], *columns[1]])
        if name not in columns[0] or name not in columns[1] or _describe(before, name) !=
        _describe(policy, name)
    ]  # fmt: skip
    settings = [
        {key: value for key, value in p.parameters.items() if key not in _FREE}
        for p in (before, policy)
    ]
    if before.method != policy.method or settings[0] != settings[1]:
        differing.append("[protect]")
    if differing:
        raise InputError(
            f"The policy differs from that of the scheme in {', '.join(differing)}, so the table "
            "cannot be recoded in the same way. Undo that, or release it without the scheme."
        )
    return replace(scheme, policy=policy)


_FREE = ("k", "record_suppression", "loss", "weights", "levels")
_RECODED = ("kind", "categories", "hierarchy", "level_hierarchy", "recode", "step", "date_step",
            "top_code", "bottom_code")  # fmt: skip


def _list_protected(policy: Policy) -> tuple[str, ...]:
    return policy.columns or policy.schema.with_role(Role.QUASI_IDENTIFIER)


def _describe(policy: Policy, name: str) -> list[Any]:
    return [getattr(policy.schema[name], key) for key in _RECODED]


def adjust(
    scheme: Scheme, *, record_suppression: Any = None, coarsen: Sequence[str] = ()
) -> Scheme:
    """Change a scheme's limit of suppression, and raise columns by a level each time named.

    Raises:
        InputError: it does not suppress rows, or has no levels.
    """
    policy = scheme.policy
    if record_suppression is not None:
        document, *files = self_contained(policy)
        protect = {**document["protect"], "record_suppression": record_suppression}
        changed = {**document, "protect": protect}
        policy = from_self_contained(changed, *files, where="scheme")
    if not coarsen:
        return replace(scheme, policy=policy)
    columns = _list_protected(policy)
    for name in coarsen:
        if not find(policy.method).cells.has_levels:
            raise InputError(
                f"A scheme of '{policy.method}' has no levels, so it cannot be coarsened."
            )
        if name not in columns:
            raise InputError(f"The scheme recodes no column '{name}'.{did_you_mean(name, columns)}")
    more = Counter(coarsen)

    def raise_levels(held: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"levels": {name: at + more[name] for name, at in held["levels"].items()}}

    higher = scheme.recoding.map(raise_levels)
    return replace(scheme, policy=policy, recoding=higher)


def together(
    previous: pl.DataFrame,
    released: pl.DataFrame,
    columns: Sequence[str],
    policy: Policy,
    *,
    k: int,
) -> tuple[str, ...]:
    """Say what a release discloses together with an earlier one by the same scheme.

    Somebody in both tables whose quasi-identifiers did not change is in classes of equal labels,
    and has a value that both classes hold (the intersection attack of Ganta, Kasiviswanathan and
    Smith, KDD 2008, doi:10.1145/1401890.1401926). If a class grew or shrank by fewer than k rows,
    the rows that both tables share leave fewer than k for those who came or left.
    """
    secrets = set(policy.schema.with_role(Role.CONFIDENTIAL))
    shared = [name for name in released.columns if name in previous.columns]
    keys = [name for name in shared if name in columns and name not in secrets]
    if not keys:
        return ()
    key_cells = pl.col(keys).cast(pl.String).fill_null("\0")
    first, second = previous.with_columns(key_cells), released.with_columns(key_cells)
    sizes = [frame.group_by(keys).len(name) for name, frame in (("\0a", first), ("\0b", second))]
    both = sizes[0].join(sizes[1], on=keys, how="inner")
    off = np.abs(both["\0a"].cast(pl.Int64).to_numpy() - both["\0b"].cast(pl.Int64).to_numpy())
    few = int(((off > 0) & (off < k)).sum())
    texts = []
    texts.append(
        "Beside the release that the scheme comes from: the number of classes with the same labels "
        f"in both is {both.height:,}; in {few:,} of them the two sizes differ by fewer than "
        f"k = {k:,}. If the same people are in both tables, the difference is about the few who "
        "came or left."
    )
    for name in (n for n in shared if n in secrets):
        values = [
            frame.select(*keys, pl.col(name).cast(pl.String).fill_null("\0")).unique()
            for frame in (first, second)
        ]
        once = [f.group_by(keys).len().filter(pl.col("len") == 1).select(keys) for f in values]
        common = values[0].join(values[1], on=[*keys, name], how="inner")
        single = common.group_by(keys).len().filter(pl.col("len") == 1).select(keys)
        new = single.join(pl.concat(once).unique(), on=keys, how="anti").height
        texts.append(
            f"In {count_noun(new, 'class', 'classes')} the two releases have one value of {name} "
            "in common although each has several: anyone known to be in both, with unchanged "
            f"quasi-identifiers and {name}, is disclosed."
            if new
            else f"No class has only one value of {name} that both releases hold, unless one of "
            "them discloses it already."
        )
    return tuple(texts)
