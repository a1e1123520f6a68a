"""What tests read of a run that only its confidential folder may show."""

import numpy as np

from shoal.core.exits import for_method
from shoal.pipeline.planning import plan
from shoal.publish import confidential_folder


def figures(stated, done):
    """What compares a release with its original, for the policy or the plan that made it."""
    planned = stated if hasattr(stated, "setting") else plan(stated)
    return confidential_folder.losses(planned, for_method(done.evidence))


def protected(outcome):
    """What a method made of the rows, in canonical order."""
    return for_method(outcome.evidence).table


def in_file_order(outcome, table, method, setting):
    """The same, row by row of the file."""
    columns = None if method.input.sort_by is None else method.input.sort_by(setting)
    return protected(outcome).take(np.argsort(table.canonical_order(columns)))
