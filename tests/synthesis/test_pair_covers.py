from itertools import combinations
from math import prod, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.synthesis.maxent.pair_covers import Cover, cover

sizes = st.lists(st.integers(1, 40), min_size=2, max_size=7)


def noise_of_pairs(chosen: Cover, sizes):
    """Sum of the standard deviations of all pairs' cells over 2 sqrt(2), each from its best block.

    Written from the definition: shares of epsilon 1, variance of a sum of cells.
    """
    total = sum(chosen.weights)
    found = 0.0
    for a, b in combinations(range(len(sizes)), 2):
        cells = sizes[a] * sizes[b]
        found += min(
            cells * total / weight * sqrt(prod(sizes[j] for j in block) / cells)
            for block, weight in zip(chosen.blocks, chosen.weights, strict=True)
            if a in block and b in block
        )
    return found


@given(sizes)
@settings(max_examples=60)
def test_every_pair_lies_in_a_block_and_no_block_in_another(sizes):
    chosen = cover(sizes)

    seen = {pair for block in chosen.blocks for pair in combinations(block, 2)}
    assert seen == set(combinations(range(len(sizes)), 2))
    assert all(weight >= 1 for weight in chosen.weights)
    assert list(chosen.blocks) == sorted(chosen.blocks)
    for one, other in combinations(chosen.blocks, 2):
        assert not set(one) <= set(other)
        assert not set(other) <= set(one)


@given(sizes)
@settings(max_examples=60)
def test_the_cost_bounds_the_noise_and_is_never_above_pairs_or_one_table(sizes):
    chosen = cover(sizes)

    pairs = list(combinations(range(len(sizes)), 2))
    equal = Cover(tuple(pairs), (1,) * len(pairs), 0.0)
    whole = Cover((tuple(range(len(sizes))),), (1,), 0.0)
    # Weights are rounded to ten-thousandths, which the noise may feel.
    assert noise_of_pairs(chosen, sizes) <= chosen.cost * 1.05
    assert chosen.cost <= noise_of_pairs(equal, sizes) * (1 + 1e-9)
    assert chosen.cost <= noise_of_pairs(whole, sizes) * (1 + 1e-9)


def all_covers(columns):
    """Sets of blocks, none inside another, that show every pair, of four columns at most."""
    blocks = [b for k in range(2, columns + 1) for b in combinations(range(columns), k)]
    wanted = set(combinations(range(columns), 2))
    for count in range(1, len(wanted) + 1):
        for chosen in combinations(blocks, count):
            if {p for block in chosen for p in combinations(block, 2)} == wanted:
                yield chosen


@pytest.mark.parametrize("sizes", [(2, 3, 4), (2, 2, 9, 9), (5, 5, 5, 5), (2, 2, 2, 30)])
def test_the_greedy_search_is_near_the_best_cover_of_few_columns(sizes):
    def cost(blocks):
        amounts = dict.fromkeys(blocks, 0.0)
        for a, b in combinations(range(len(sizes)), 2):
            holds = [block for block in blocks if a in block and b in block]
            block = min(holds, key=lambda block: prod(sizes[j] for j in block))
            amounts[block] += sqrt(prod(sizes[j] for j in block) * sizes[a] * sizes[b])
        return sum(map(sqrt, amounts.values())) ** 2

    best = min(map(cost, all_covers(len(sizes))))

    assert best <= cover(sizes).cost * (1 + 1e-9)
    assert cover(sizes).cost <= best * 1.1


@pytest.mark.parametrize(
    ("sizes", "cost", "blocks"),
    [([2] * 8, 896, 1), ([3] * 12, 22_512, 19), ([15, 10, 16, 7, 14, 7, 2, 2], 43_675, 13)],
)
def test_covers_that_were_computed_once_by_another_program(sizes, cost, blocks):
    found = cover(sizes)

    assert round(found.cost) == cost
    assert len(found.blocks) == blocks


@given(st.permutations([2, 3, 5, 8, 13]))
@settings(max_examples=20)
def test_the_order_of_columns_does_not_change_the_cost_much(sizes):
    assert cover(sizes).cost == pytest.approx(cover(sorted(sizes)).cost, rel=0.1)
