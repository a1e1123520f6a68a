"""The node of least loss, against every node of the lattice counted by itself."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import Distance, Diversity, LDiversity, TCloseness
from shoal.errors import InputError
from shoal.metrics.generalisation import average_class_size, discernibility
from shoal.partition import Loss, Requirement, frontier, full_domain, neighbourhood
from shoal.privacy_models import decide

LATTICES = 500


def tree(rng, leaves, height):
    """A random nested hierarchy: each level joins some labels of the one before."""
    levels = [np.arange(leaves)]
    for _ in range(height - 1):
        width = int(levels[-1].max()) + 1
        joined = rng.integers(0, max(width // 2, 1) + 1, size=width)
        dense = np.unique(joined, return_inverse=True)[1].ravel()
        levels.append(dense[levels[-1]])
    levels.append(np.zeros(leaves, np.int64))
    return np.array(levels)


def random_case(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    sizes = rng.integers(2, 7, size=d)
    trees = [tree(rng, int(m), int(rng.integers(1, 4))) for m in sizes]
    n = int(rng.integers(6, 60))
    codes = np.column_stack([rng.integers(0, m, size=n) for m in sizes])
    return rng, trees, codes, rng.integers(0, 4, size=n)


MODELS = [
    LDiversity(Fraction(2), Diversity.DISTINCT, ("s",), ("a",)),
    LDiversity(Fraction(3, 2), Diversity.FREQUENCY, ("s",), ("a",)),
    LDiversity(Fraction(2), Diversity.ENTROPY, ("s",), ("a",)),
    LDiversity(Fraction(2), Diversity.RECURSIVE, ("s",), ("a",), Fraction(2)),
    TCloseness(Fraction(1, 3), Distance.EQUAL, ("s",), ("a",)),
    TCloseness(Fraction(1, 4), Distance.ORDERED, ("s",), ("a",)),
    TCloseness(Fraction(2), Distance.RATIO, ("s",), ("a",)),
]


def brute(codes, trees, k, *, loss, limit, model, secret, weights):
    """Losses of all nodes that do not fail, by plain counting."""
    found = {}
    n = len(codes)
    for node in product(*(range(len(levels)) for levels in trees)):
        rows = [tuple(trees[j][node[j]][c] for j, c in enumerate(row)) for row in codes]
        sizes = Counter(rows)
        gone = {row for row in sizes if sizes[row] < k}
        # More classes only ever join those that are gone, so a node beyond the limit stays there.
        while model is not None and sum(sizes[row] for row in gone) <= limit:
            left = [i for i in range(n) if rows[i] not in gone]
            names = sorted({rows[i] for i in left})
            labels = [names.index(rows[i]) for i in left]
            verdict, _ = decide(labels, secret[left], model, width=int(secret.max()) + 1)
            if not len(verdict.failing):
                break
            gone |= {names[a] for a in verdict.failing}
        suppressed = np.array([row in gone for row in rows])
        if suppressed.sum() > limit or suppressed.all():
            continue
        found[node] = loss_of(codes, trees, node, rows, suppressed, loss, weights)
    return found


def loss_of(codes, trees, node, rows, suppressed, loss, weights):
    n = len(codes)
    names = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    labels = np.array([names[row] for row in rows])
    if loss is Loss.DISCERNIBILITY:
        return discernibility(labels, suppressed=suppressed) / n**2
    if loss is Loss.CLASS_SIZE:
        return average_class_size(np.where(suppressed, len(names), labels))
    total = 0.0
    for j, levels in enumerate(trees):
        own = codes[:, j]
        if loss is Loss.GRANULARITY:
            label = levels[node[j]]
            below = np.array([(label == label[c]).sum() for c in own])
            cells = np.where(suppressed, 1.0, (below - 1) / (levels.shape[1] - 1))
            total += weights[j] * cells.mean()
        else:
            counts = Counter(own.tolist())
            above = Counter(levels[node[j]][own].tolist())
            root = np.array([np.log2(n / counts[c]) for c in own])
            cells = np.array([np.log2(above[levels[node[j]][c]] / counts[c]) for c in own])
            if root.sum():
                total += weights[j] * np.where(suppressed, root, cells).sum() / root.sum()
    return total / sum(weights)


def compared(seed):
    rng, trees, codes, secret = random_case(seed)
    k = int(rng.integers(1, 6))
    limit = int(rng.integers(0, len(codes) // 3)) * int(rng.integers(0, 2))
    model = [None, *MODELS][int(rng.integers(0, len(MODELS) + 1))]
    loss = list(Loss)[int(rng.integers(0, 4))]
    weights = rng.integers(1, 4, size=len(trees)).astype(float)
    require = [] if model is None else [Requirement(model, secret, int(secret.max()) + 1)]

    found = full_domain(codes, trees, k, loss=loss, limit=limit, require=require, weights=weights)
    nodes = brute(
        codes, trees, k, loss=loss, limit=limit, model=model, secret=secret, weights=weights
    )

    if not nodes:
        assert found is None
        return 0, 0
    assert found.loss == pytest.approx(min(nodes.values()), abs=1e-12)
    assert nodes[found.levels] == pytest.approx(found.loss, abs=1e-12)
    heights = {
        node: sum(level / (len(own) - 1) for level, own in zip(node, trees, strict=True))
        for node, value in nodes.items()
        if value <= min(nodes.values()) + 1e-12
    }
    if loss in {Loss.DISCERNIBILITY, Loss.CLASS_SIZE}:  # whole numbers: ties are exact
        assert heights[found.levels] == pytest.approx(min(heights.values()))
    assert (found.labels < 0).sum() <= limit
    sizes = np.bincount(found.labels[found.labels >= 0])
    assert sizes.min() >= k
    return found.looked_at, found.nodes


def test_the_optimum_is_that_of_brute_force_on_500_random_lattices():
    looked, nodes = np.sum([compared(seed) for seed in range(LATTICES)], axis=0)

    assert looked < nodes  # something was pruned


@pytest.mark.parametrize("seed", range(40))
def test_one_pass_for_several_k_finds_what_each_finds_alone(seed):
    rng, trees, codes, secret = random_case(seed)
    ks = sorted({int(k) for k in rng.integers(1, 12, size=4)})
    model = [None, *MODELS][seed % (len(MODELS) + 1)]
    given = {
        "loss": list(Loss)[seed % 4],
        "limit": seed % 3 * 2,
        "require": [] if model is None else [Requirement(model, secret, int(secret.max()) + 1)],
    }

    found = frontier(codes, trees, ks, **given)

    for k, one in zip(ks, found, strict=True):
        alone = full_domain(codes, trees, k, **given)
        assert (one is None) == (alone is None)
        if one is not None:
            assert (one.levels, one.loss) == (alone.levels, alone.loss)
            assert np.array_equal(one.labels, alone.labels)
    losses = [one.loss for one in found if one is not None]
    assert losses == sorted(losses)
    with pytest.raises(InputError, match="k that rise"):
        frontier(codes, trees, [3, 2])


@given(st.integers(0, 2**32 - 1), st.permutations(range(12)))
@settings(max_examples=60)
def test_the_order_of_the_records_changes_nothing(seed, permutation):
    _, trees, codes, _ = random_case(seed)
    codes = np.resize(codes, (12, codes.shape[1]))

    straight = full_domain(codes, trees, 3, limit=2)
    permuted = full_domain(codes[list(permutation)], trees, 3, limit=2)

    assert straight.levels == permuted.levels
    assert straight.loss == permuted.loss
    assert np.array_equal(straight.labels[list(permutation)] < 0, permuted.labels < 0)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_persons_are_counted_where_they_have_several_records(seed):
    rng, trees, codes, _ = random_case(seed)
    units = rng.integers(0, max(len(codes) // 2, 1), size=len(codes))

    found = full_domain(codes, trees, 2, units=units, limit=2)

    if np.unique(units).size < 2:
        assert found is None
        return
    for own in np.unique(found.labels[found.labels >= 0]):
        assert len(set(units[found.labels == own])) >= 2
    best = min(
        (
            sum(size**2 for row, size in Counter(rows).items() if row in kept)
            + len(rows) * sum(row not in kept for row in rows)
            for rows, kept in with_persons(codes, trees, units, limit=2)
        ),
    )
    assert found.loss == pytest.approx(best / len(codes) ** 2)


def with_persons(codes, trees, units, *, limit):
    for node in product(*(range(len(levels)) for levels in trees)):
        rows = [tuple(trees[j][node[j]][c] for j, c in enumerate(row)) for row in codes]
        pairs = Counter(row for row, _ in set(zip(rows, units.tolist(), strict=True)))
        kept = {row for row in pairs if pairs[row] >= 2}
        if sum(row not in kept for row in rows) <= limit and kept:
            yield rows, kept


def test_limits_on_levels_and_weights_steer_the_choice():
    trees = [np.array([[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]])] * 2
    codes = np.array([[a, b] for a in range(4) for b in range(4)])

    def levels(**more):
        return full_domain(codes, trees, 2, loss=Loss.GRANULARITY, **more).levels

    assert levels(weights=[2.0, 1.0]) == (0, 1)
    assert levels(weights=[1.0, 2.0]) == (1, 0)
    assert levels(weights=[2.0, 1.0], between=[(1, 2), (0, 2)]) == (1, 0)
    assert levels(weights=[2.0, 1.0], between=[(0, 0), (2, 2)]) == (0, 2)
    assert full_domain(codes, trees, 5, between=[(0, 0), (0, 1)]) is None


def test_a_number_of_labels_beyond_64_bits_is_still_counted_exactly():
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 3, size=(200, 5))
    few = [np.array([[0, 1, 2], [0, 0, 1], [0, 0, 0]])] * 5
    spread = np.arange(3) * 8191
    wide = np.zeros((3, 2**14), np.int64)
    wide[0] = np.arange(2**14)
    wide[1] = np.arange(2**14) // 8192 * 8191

    straight = full_domain(codes, few, 3)
    beyond = full_domain(spread[codes], [wide] * 5, 3)

    assert beyond.loss == straight.loss
    assert np.array_equal(beyond.labels < 0, straight.labels < 0)


def test_a_judge_decides_in_place_of_the_models():
    trees = [np.array([[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]])]
    codes = np.repeat(np.arange(4), 3)[:, None]

    def nothing_small(labels):
        sizes = np.bincount(labels[labels >= 0])
        return np.flatnonzero((sizes > 0) & (sizes < 6))

    assert full_domain(codes, trees, 2).levels == (0,)
    assert full_domain(codes, trees, 2, judge=nothing_small).levels == (1,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"codes": [[0]], "trees": []}, "a hierarchy for each column"),
        ({"codes": [[0]], "trees": [[[1, 0]]]}, "its own label at 0"),
        ({"codes": [[2]], "trees": [[[0, 1]]]}, "codes of leaves"),
        ({"codes": [[0]], "trees": [[[0, 1], [0, 0], [0, 1]]]}, "must be nested"),
        ({"codes": [[0]], "trees": [[[0, 1], [0, 0]]], "between": [(0, 2)]}, "from 0 to 1"),
        ({"codes": [[0]], "trees": [[[0, 1], [0, 0]]], "weights": [0.0]}, "one above 0"),
        (
            {
                "codes": [[0]],
                "trees": [[[0, 1], [0, 0]]],
                "loss": Loss.GRANULARITY,
                "penalties": [[[1, 1], [0, 0]]],
            },
            "must not fall",
        ),
    ],
)
def test_input_that_does_not_fit_is_refused(given, message):
    codes, trees = given.pop("codes"), given.pop("trees")

    with pytest.raises(InputError, match=message):
        full_domain(codes, trees, 2, **given)


def test_a_lattice_that_is_too_large_is_refused():
    high = np.zeros((40, 2), np.int64)
    high[0] = [0, 1]

    with pytest.raises(InputError, match=r"has 102,400,000 nodes; .* Limit the levels\."):
        full_domain([[0] * 5], [high] * 5, 2)


@pytest.mark.parametrize("seed", range(60))
def test_every_node_of_a_small_lattice_is_listed_with_the_loss_of_plain_counting(seed):
    rng, trees, codes, secret = random_case(seed)
    k, limit = int(rng.integers(1, 6)), int(rng.integers(0, len(codes) // 3)) * (seed % 2)
    model = [None, *MODELS][seed % (len(MODELS) + 1)]
    loss = list(Loss)[seed % 4]
    require = [] if model is None else [Requirement(model, secret, int(secret.max()) + 1)]
    size = int(np.prod([len(levels) for levels in trees]))

    found = neighbourhood(codes, trees, k, loss=loss, limit=limit, require=require, most=size)
    expected = brute(codes, trees, k, loss=loss, limit=limit, model=model, secret=secret,
                     weights=[1.0] * len(trees))  # fmt: skip

    assert len(found.nodes) == found.size == size == sum(layer.nodes for layer in found.layers)
    losses = {node.levels: node.loss for node in found.nodes if node.loss is not None}
    assert losses == pytest.approx(expected, abs=1e-12)
    best = full_domain(codes, trees, k, loss=loss, limit=limit, require=require)
    assert found.best == (None if best is None else best.levels)
    for node in found.nodes:
        assert (node.suppressed > limit) == (node.loss is None)
        if node.pruned and node.loss is not None:
            assert node.loss >= losses[found.best] - 1e-12
    for layer in found.layers:
        own = [node for node in found.nodes if sum(node.levels) == layer.height]
        assert layer.pruned == sum(node.pruned for node in own)
        assert layer.nodes == len(own) == layer.failing + layer.looked_at + layer.pruned


def test_of_a_large_lattice_whole_steps_around_the_best_node_are_listed():
    rng = np.random.default_rng(3)
    trees = [tree(rng, 6, 3) for _ in range(6)]
    codes = np.column_stack([rng.integers(0, 6, size=400) for _ in trees])

    found = neighbourhood(codes, trees, 5, most=60)

    away = [sum(abs(a - b) for a, b in zip(node.levels, found.best, strict=True))
            for node in found.nodes]  # fmt: skip
    near = [sum(abs(a - b) for a, b in zip(node, found.best, strict=True))
            for node in product(*(range(len(levels)) for levels in trees))]  # fmt: skip
    assert max(away) >= 1
    assert Counter(away) == Counter(one for one in near if one <= max(away))
    assert sum(one <= max(away) + 1 for one in near) > 60


def test_if_every_node_fails_the_highest_levels_are_listed_and_how_much_they_lack():
    flat = np.arange(3)[None]

    found = neighbourhood([[0], [1], [2]], [flat], 2)

    assert found.best is None
    assert [(node.loss, node.suppressed, node.pruned) for node in found.nodes] == [(None, 3, False)]
