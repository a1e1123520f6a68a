from fractions import Fraction
from math import log

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import Kind, Neighbours, Price
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.synthesis.adaptive_tree import SHALLOWEST, UNITS
from shoal.synthesis.domain import Domain
from shoal.synthesis.privtree import Fill, privtree

MIXED = (
    Domain("number", Kind.NUMERIC, 33),
    Domain("grade", Kind.ORDINAL, 4),
    Domain("town", Kind.NOMINAL, 5, order=(4, 2, 0, 1, 3), joins=(1, 0, 1, 1)),
)


def table(seed, n):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, attribute.size, n) for attribute in MIXED]


# Properties.


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(1, 200),
    st.sampled_from(["0.05", "1", "30"]),
    st.sampled_from(list(Fill)),
)
def test_rows_lie_in_their_domains_and_the_ledger_adds_up(seed, n, epsilon, fill):
    noise = SeededNoise(seed)

    drawn = privtree(
        table(seed, n), MIXED, price=Price(Fraction(epsilon)), noise=noise,
        rng=np.random.default_rng(seed), fill=fill,
    )  # fmt: skip

    for row, attribute in zip(drawn.rows, MIXED, strict=True):
        assert row.shape == (n,)
        assert row.min() >= 0
        assert row.max() <= attribute.size - 1
        if not attribute.numeric:
            assert row.dtype == np.int64
    accounting.verify(
        drawn.privacy_losses, Fraction(epsilon), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
    )


@given(st.integers(0, 2**32), st.integers(2, 100))
def test_scales_and_prices_do_not_depend_on_the_data(seed, n):
    def facts(codes):
        drawn = privtree(codes, MIXED, price=Price(Fraction(1)), noise=SeededNoise(seed),
                         rng=np.random.default_rng(0))  # fmt: skip
        return [(s.target, s.sensitivity, s.scale, s.epsilon) for s in drawn.privacy_losses]

    assert facts(table(seed, n)) == facts([np.zeros(n, dtype=np.int64)] * 3)


def test_the_same_seeds_give_the_same_rows():
    def run():
        return privtree(table(0, 300), MIXED, price=Price(Fraction(1)), noise=SeededNoise(1),
                        rng=np.random.default_rng(2)).rows  # fmt: skip

    for one, other in zip(run(), run(), strict=True):
        np.testing.assert_array_equal(one, other)


# Examples.


def test_without_noise_the_rows_are_the_records():
    columns = table(3, 500)
    noise = RecordingNoise()

    drawn = privtree(columns, MIXED, price=Price(Fraction(2**20)), noise=noise,
                     rng=np.random.default_rng(0), theta=-500)  # fmt: skip

    assert sorted(zip(*drawn.rows, strict=True)) == sorted(zip(*columns, strict=True))
    assert noise.calls[0].scale == UNITS * SHALLOWEST


def test_what_the_tree_cannot_use_goes_to_the_counts():
    drawn = privtree(table(0, 50), MIXED, price=Price(Fraction(100)), noise=SeededNoise(0),
                     rng=np.random.default_rng(0), fill=Fill.UNIFORM)  # fmt: skip

    tree, counts = drawn.privacy_losses
    assert tree.scale / UNITS >= 1 / log(2)
    assert counts.epsilon == 100 - tree.epsilon
    assert tree.epsilon < Fraction(26, 10)
