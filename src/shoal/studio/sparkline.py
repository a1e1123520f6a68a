"""A column before and after, so small that many of them stand in one line of a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

WIDE, HIGH = 56, 22
"""The size of a picture in its own units."""


def before_and_after(one: Mapping[str, Any]) -> Markup:
    """Draw the counts of a column: a filled shape for the release, a line for the original.

    Args:
        one: a column of `shoal.evaluation.before_after.pictures`.
    """
    before, after = (_shares(one[side]) for side in ("before", "after"))
    most = max([*before, *after, 1e-12])
    words = f"{one['name']}: {one['distance']:.0%} moved"
    return Markup(
        '<svg class="twin" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><title>{}</title><path class="after" d="M0 {}{}z"/><path class="before" '
        'd="M0 {}{}"/></svg>'
    ).format(WIDE, HIGH, words, words, HIGH, _steps(after, most), HIGH, _steps(before, most))


def _shares(counts: Sequence[float]) -> list[float]:
    total = sum(max(count, 0.0) for count in counts)
    return [max(count, 0.0) / total if total else 0.0 for count in counts]


def _steps(shares: Sequence[float], most: float) -> str:
    step = WIDE / max(len(shares), 1)
    heights = (HIGH - (HIGH - 2) * share / most for share in shares)
    return "".join(f"V{height:.4g}h{step:.4g}" for height in heights) + f"V{HIGH}"
