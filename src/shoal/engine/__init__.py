"""Where work runs. An engine moves data and holds no privacy logic."""

from typing import Any

from shoal import io
from shoal.engine import local
from shoal.engine.engine import Adopted, Outcome, Source


def source(data: Any) -> Source:
    """What was handed in, as the engine sees it that it is for.

    A Spark DataFrame stays on Spark; any other table is taken into memory.
    """
    if isinstance(data, io.Raw):
        return local.Source(data)
    if type(data).__module__.startswith("pyspark.sql"):
        from shoal.engine.spark.source import SparkSource  # noqa: PLC0415 (optional)

        return SparkSource(data)
    if hasattr(data, "adopt"):
        made: Source = data
        return made
    return local.Source(io.from_native(data))


__all__ = ["Adopted", "Outcome", "Source", "source"]
