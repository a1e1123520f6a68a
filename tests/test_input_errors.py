"""An InputError is a ValueError too, and no handler of a library's ValueError takes it for one."""

import polars as pl
import pytest

import shoal
from shoal import partition
from shoal.core.constraint_language import parse
from shoal.errors import ClaimViolationError, InputError, InternalError
from shoal.io.cells import plain_column


def test_a_wrong_argument_is_caught_as_pythons_own_would_be():
    with pytest.raises(ValueError, match="k must be at least 2"):
        partition.mdav([[1.0], [2.0]], k=1)
    with pytest.raises(ValueError, match="policy, columns"):
        shoal.load_policy({"version": 1, "columns": {}})

    assert issubclass(InputError, shoal.ShoalError)
    assert not issubclass(ClaimViolationError, ValueError)
    assert not issubclass(InternalError, ValueError)
    assert InputError.exit_code == 2
    assert str(InputError("a\nb")) == r"a\u000ab"


def test_a_sentence_of_ours_passes_handlers_of_what_libraries_refuse():
    with pytest.raises(InputError, match="holds Object values"):
        plain_column(pl.Series("x", [object()], dtype=pl.Object))
    with pytest.raises(InputError, match="no column named 'incme'"):
        parse("tax <= incme", ["tax", "income"])
