"""Columns of invented tables for properties, each drawn in one piece.

Hypothesis takes longer to draw a table cell by cell than Shoal takes to protect it. Here a column
is one draw of bytes, and three small draws say how many of its cells are missing, how many values
it has and which: constant, empty and complete columns come up often, and shrinking keeps working.
"""

import numpy as np
from hypothesis import strategies as st


@st.composite
def cells_of(draw, values, n, *, missing=True):
    """So many cells, each of them one of the values or missing."""
    share = draw(st.sampled_from([0, 128, 16, 256])) if missing else 0
    distinct = draw(st.sampled_from([len(values), 1, 2, 3]))
    first = draw(st.integers(0, len(values) - 1))
    drawn = np.frombuffer(draw(st.binary(min_size=3 * n, max_size=3 * n)), dtype=np.uint8)
    gone, high, low = drawn.reshape(3, n).astype(np.int64)
    places = (first + (256 * high + low) % distinct) % len(values)
    pairs = zip((gone < share).tolist(), places.tolist(), strict=True)
    return [None if absent else values[place] for absent, place in pairs]
