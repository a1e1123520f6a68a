"""Run a method on Apache Spark: blocks of records as Arrow, each processed by our kernels.

Spark stores blocks, moves them, and runs a task again that was lost. It never sorts, counts or
draws: that is done by the array functions that a run on one machine uses.
"""
