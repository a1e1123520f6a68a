"""Find released columns that single out people because few share their values.

A promise about the protected columns says nothing about an exact salary beside them. The measure is
that of a draft (`shoal.policy.exposure`), on what a release shows: from its table and its manifest,
so it tells nothing that the release does not. In an epsilon release nothing is looked at.
"""

import polars as pl

from shoal.core import ReleaseForm
from shoal.core.manifest import Manifest
from shoal.io.text_files import quote
from shoal.policy.exposure import alone, alone_in_tails, pairs_in_words, rare_pairs

MOST_NAMED = 5
"""So many columns are named, the worst first."""
LINKED = {ReleaseForm.ROW_ALIGNED, ReleaseForm.LINKED_SHUFFLED}
"""Forms whose rows are people."""


def nearly_unique(
    manifest: Manifest, released: pl.DataFrame, persons: pl.Series | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Measure the columns that are released unchanged: rare values, and what is accepted.

    Args:
        manifest: of the release.
        released: its table.
        persons: whose rows they are, if some have several; only the steward knows.

    Returns:
        Sentences on what a steward should know, and on what the policy has accepted.
    """
    if manifest.privacy_losses or manifest.release_form not in LINKED:
        return (), ()
    k = max(int(manifest.parameters.get("k") or 2), 2)
    policy = manifest.policy
    accepted = policy.get("release", {}).get("accept_distinct", [])
    shown = {
        series.name: series
        for series in released
        if series.name not in manifest.protected_columns
        and not policy["columns"].get(series.name, {}).get("sampling_weight")
    }
    shares = {name: alone(series, persons, k) for name, series in shown.items()}
    rare = sorted((name for name, share in shares.items() if share), key=lambda name: -shares[name])
    sentences = {name: _share(shown[name], shares[name], persons, k) for name in rare}
    kept = tuple(f"{sentences[name]} The policy accepts it." for name in rare if name in accepted)
    open_ = [name for name in rare if name not in accepted]
    listed = [sentences[name] for name in open_[:MOST_NAMED]]
    if open_:
        names = ", ".join(map(quote, open_))
        more = f" So it is for {len(open_) - MOST_NAMED} more." if len(open_) > MOST_NAMED else ""
        listed[-1] += (
            f"{more} Whoever knows the value finds the row: make it coarser, or accept it under "
            f"[release]: accept_distinct = [{names}]."
        )
    pairs = rare_pairs({n: s for n, s in shown.items() if n not in rare}, persons, k)
    who = "rows" if persons is None else "people"
    return (*listed, *pairs_in_words(pairs, k, who, most=1)), kept


def _share(values: pl.Series, share: float, persons: pl.Series | None, k: int) -> str:
    who, beside = "rows" if persons is None else "people", ""
    if values.dtype.is_numeric():
        low, high = alone_in_tails(values, persons, k)
        beside = f" ({low:.0%} in the lowest hundredth, {high:.0%} in the highest)"
    size = f"{share:.0%}" if share >= 0.01 else "less than 1%"
    have = " that have one" if values.null_count() else ""
    return (
        f"'{values.name}' is released as it is, and fewer than {k} {who} share its value in {size} "
        f"of the rows{have}{beside}."
    )
