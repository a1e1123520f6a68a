from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.models import k_when_missing_matches, smallest_run

cells = st.lists(st.integers(-1, 2), min_size=3, max_size=3)


@given(st.lists(st.integers(0, 3) | st.just(np.nan), min_size=1))
def test_the_smallest_run_is_the_rarest_value_nan_being_one(values):
    counts = Counter("missing" if np.isnan(v) else v for v in values)

    assert smallest_run(np.array(values, dtype=float)) == min(counts.values())


@given(st.lists(cells, min_size=1, max_size=25))
def test_matching_with_wildcards_equals_the_count_of_pairs(rows):
    classes, counts = np.unique(np.array(rows), axis=0, return_counts=True)

    def match(one, other):
        return all(a == b or a < 0 or b < 0 for a, b in zip(one, other, strict=True))

    brute = min(sum(match(one, other) for other in rows) for one in rows)
    assert k_when_missing_matches(classes, counts) == brute
