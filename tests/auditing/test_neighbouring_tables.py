"""Tables that cannot be audited on."""

import polars as pl
import pytest

import shoal

POLICY = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
        "pay": {"role": "confidential", "kind": "numeric", "bounds": [0, 900]},
    },
    "protect": {"method": "laplace", "epsilon": 1},
}
TABLE = pl.DataFrame({"age": [20, 30, 40], "pay": [1, 2, 3]})


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (TABLE.drop("pay"), "The policy names a column 'pay' that the data lacks."),
        (TABLE.clear(), "The table to audit has no rows; expected one row per person."),
        (TABLE.with_columns(extra=1), "The data has a column 'extra' that the policy does not"),
    ],
)
def test_a_table_that_does_not_fit_its_policy_is_refused(table, sentence):
    for given in ({"table": table}, {"pair": (table, table)}):
        with pytest.raises(shoal.InputError, match=sentence):
            shoal.audit(POLICY, **given)
