"""Replace categories by others before any method sees them, as the policy says."""

import polars as pl

from shoal.core import Column


def recode_text(text: pl.Series, column: Column) -> pl.Series:
    """Cut codes to their prefix, and replace values by others, as the policy says."""
    if column.prefix:
        text = text.str.strip_chars().str.slice(0, column.prefix)
    if column.recode:
        text = text.replace({old: new or None for old, new in column.recode.items()})
    return text
