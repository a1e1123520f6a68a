"""Numbering rows, against sorting tuples."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.row_order import row_keys
from shoal.metrics.uniqueness import distinct_rows

cells = st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan")])
tables = st.integers(0, 4).flatmap(
    lambda d: st.lists(st.lists(cells, min_size=d, max_size=d), max_size=12).map(
        lambda rows: np.array(rows, dtype=float).reshape(len(rows), d)
    )
)


@given(tables)
def test_keys_number_the_distinct_rows_in_order_without_gaps(table):
    rows = [tuple(np.inf if np.isnan(x) else x + 0.0 for x in row) for row in table]
    wanted = {row: number for number, row in enumerate(sorted(set(rows)))}

    keys, first = distinct_rows(table)

    assert keys.tolist() == [wanted[row] for row in rows]
    assert first.tolist() == [rows.index(row) for row in wanted]


def test_keys_survive_more_digits_than_a_word_holds():
    rng = np.random.default_rng(0)
    codes = [rng.permutation(1000) for _ in range(12)]

    keys = row_keys([*codes, *codes], 1000)

    assert np.array_equal(keys, codes[0])
