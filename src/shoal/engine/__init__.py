"""Where work runs. An engine moves data and holds no privacy logic."""

from typing import Any

from shoal import io
from shoal.core import Policy
from shoal.engine import local
from shoal.engine.interface import Adoption, Coerced, Outcome, Source


def is_distributed(data: Any) -> bool:
    """Whether a table is a Spark DataFrame."""
    return type(data).__module__.startswith("pyspark.sql")


def source(data: Any, *, policy: Policy | None = None, alone: bool = False) -> Source:
    """Wrap a table for its engine; for `policy` and `alone` see `shoal.io.take`.

    A Spark DataFrame stays on Spark; any other table is taken into memory.
    """
    if is_distributed(data):
        from shoal.engine.spark.source import SparkSource  # noqa: PLC0415 (optional)

        return SparkSource(data)
    if hasattr(data, "adopt"):
        made: Source = data
        return made
    return local.LocalSource.of(io.take(data, policy=policy, alone=alone))


__all__ = ["Adoption", "Coerced", "Outcome", "Source", "is_distributed", "source"]
