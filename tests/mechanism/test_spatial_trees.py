from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.core import LAPLACE, SELECTION, Neighbours
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.mechanism import spatial_trees
from shoal.mechanism.consistent_counts import CountFit, least_squares
from shoal.mechanism.spatial_trees import (
    Design,
    SpatialAxis,
    grow,
    known_total,
    noisy_total,
    prices,
)

TAXONOMY = SpatialAxis(6, np.array([0, 2, 1, 0, 1]))
"""Two branches of 2 and 4 leaves; the second has branches of 1, 2 and 1."""


@st.composite
def spaces(draw):
    """Records with ties, skew, constant columns, down to a single one."""
    kinds = st.sampled_from(
        [
            SpatialAxis(1),
            SpatialAxis(2),
            SpatialAxis(7),
            SpatialAxis(100),
            SpatialAxis(2**20 + 1),
            TAXONOMY,
        ]
    )
    axes = draw(st.lists(kinds, min_size=1, max_size=4))
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    power = draw(st.sampled_from([0.0, 1.0, 8.0]))
    unit = rng.random((n, len(axes))) ** power
    ends = np.array([axis.cells for axis in axes])
    cells = np.minimum((unit * ends).astype(np.int64), ends - 1)
    bins = draw(st.sampled_from([None, 1, 3]))
    values = None if bins is None else rng.integers(0, bins, n)
    return cells, axes, values, bins or 1


@st.composite
def designs(draw):
    height = draw(st.integers(1, 6))
    return Design(
        epsilon=draw(st.sampled_from([Fraction(1, 20), Fraction(1, 3), Fraction(7)])),
        height=height,
        stride=draw(st.integers(1, height)),
        structure=draw(st.sampled_from([Fraction(0), Fraction(3, 10)])),
        leaves_only=draw(st.booleans()),
        patience=draw(st.sampled_from([None, 0.5, 2.0])),
    )


def measured(space, design, noise, **more):
    cells, axes, values, bins = space
    return grow(cells, axes, values=values, bins=bins, design=design, noise=noise,
                root=known_total(len(cells)), **more)  # fmt: skip


@given(spaces(), designs(), st.integers(0, 99))
def test_every_cell_lies_in_one_box_and_counts_are_those_of_the_boxes(space, design, seed):
    cells, axes, values, bins = space

    noise = RecordingNoise()
    noise._choose_many = SeededNoise(seed)._choose_many
    tree = measured(space, design, noise)

    rng = np.random.default_rng(seed)
    ends = np.array([axis.cells for axis in axes])
    points = np.vstack([rng.integers(0, ends, (50, len(axes))), cells])
    held = ((points[:, None] >= tree.lower) & (points[:, None] < tree.upper)).all(axis=2)
    assert (held.sum(axis=1) == 1).all()
    volume = np.prod((tree.upper - tree.lower).astype(object), axis=1).sum()
    assert volume == np.prod(ends.astype(object))
    box = held[50:].argmax(axis=1)
    level = tree.levels[-1]
    expected = np.bincount(
        box * bins + (0 if values is None else values), minlength=len(held[0]) * bins
    )
    assert np.array_equal(level.counts, expected)
    for above, below in zip(tree.levels, tree.levels[1:], strict=False):
        assert np.array_equal(np.bincount(below.parents, below.counts), above.counts)
    total, counts = tree.estimates()
    assert total == pytest.approx(counts.sum()) == pytest.approx(len(cells))


@given(spaces(), designs(), st.integers(0, 99))
def test_privacy_losses_add_up_to_epsilon_for_both_relations_and_count_every_draw(
    space, design, seed
):
    noise = SeededNoise(seed)

    tree = measured(space, design, noise)

    for neighbours, times in ((Neighbours.ADD_REMOVE, 1), (Neighbours.CHANGE_ONE, 2)):
        accounting.verify(tree.privacy_losses, times * design.epsilon, neighbours=neighbours,
                      drawn=noise.drawn)  # fmt: skip
    plain, straight, default = (tree.estimates(fit)[1] for fit in CountFit)
    assert np.array_equal(plain.ravel(), tree.levels[-1].counts)
    assert straight.ravel() == pytest.approx(least_squares(tree.levels)[-1])
    assert (default >= 0).all()
    assert np.array_equal(default, tree.estimates()[1])


class Deaf(RecordingNoise):
    """Answers that do not depend on the data, and a record of what was asked."""

    def __init__(self, seed):
        super().__init__()
        self._answers, self.asked = np.random.default_rng(seed), []

    def _laplace(self, values, scale):
        self.asked.append((LAPLACE, values, scale))
        return self._answers.integers(-5, 30, values.size)

    def _choose_many(self, scores, scale):
        self.asked.append((SELECTION, scores, scale))
        return self._answers.integers(0, scores.shape[1], len(scores))


@given(spaces(), designs(), st.integers(0, 99), st.data())
def test_a_record_more_moves_one_count_of_a_level_and_the_scores_of_one_cut_by_one(
    space, design, seed, data
):
    """The proof, step by step: with all that was drawn fixed, boxes are the same."""
    cells, axes, values, bins = space
    row = data.draw(st.integers(0, len(cells) - 1))
    fewer = np.delete(cells, row, axis=0)
    less = None if values is None else np.delete(values, row)
    with_it, without = Deaf(seed), Deaf(seed)
    root = known_total(10)  # what the root says is no record's business here

    one = grow(cells, axes, values=values, bins=bins, design=design, noise=with_it, root=root)
    other = grow(fewer, axes, values=less, bins=bins, design=design, noise=without, root=root)

    assert np.array_equal(one.lower, other.lower)
    assert np.array_equal(one.estimates()[1], other.estimates()[1])
    assert one.privacy_losses == other.privacy_losses
    moved = Counter()
    for (mechanism, x, scale), (_, y, same) in zip(with_it.asked, without.asked, strict=True):
        assert scale == same
        if mechanism == LAPLACE:
            assert np.abs(x - y).sum() == 1
        else:
            assert np.abs(x - y).max(initial=0) <= 1
            moved[mechanism, scale] += int((x != y).any(axis=1).sum())
    assert sum(moved.values()) <= design.height


def slow_cut(cells, axes, design, box, turn):
    """Cut one box by looking at each of its records and positions."""
    wide = [axis for step in range(len(axes)) if box[1][axis := (turn + step) % len(axes)]
            - box[0][axis] > 1]  # fmt: skip
    if not wide:
        return [box], turn
    axis = wide[0]
    low, high, heights = box[0][axis], box[1][axis], axes[axis].heights
    positions = range(low + 1, high)
    if heights is not None:
        top = max(heights[p - 1] for p in positions)
        positions = [p for p in positions if heights[p - 1] == top]
    elif design.structure and len(positions) > 16:
        some = max(size for size in (16, 32, 64) if size <= len(positions))
        positions = [low + 1 + len(positions) * (2 * j + 1) // (2 * some) for j in range(some)]
    here = [record[axis] for record in cells if all(box[0] <= record) and all(record < box[1])]
    best = (low + high) // 2
    if design.structure:
        best = min(positions, key=lambda p: abs(2 * sum(v < p for v in here) - len(here)))
    elif heights is not None:
        best = min(positions, key=lambda p: abs(2 * p - low - high))
    left, right = (box[0], box[1].copy()), (box[0].copy(), box[1])
    left[1][axis] = right[0][axis] = best
    return [left, right], (axis + 1) % len(axes)


def slow(space, design):
    """Boxes by looking at one after another, exact medians, no noise."""
    cells, axes, values, _ = space
    price = prices(design, len(axes), histogram=values is not None)
    boxes = [((np.zeros(len(axes), int), np.array([a.cells for a in axes])), 0, False)]
    for number in range(1, design.height + 1):
        made = []
        for box, turn, stopped in boxes:
            parts, then = ([box], turn) if stopped else slow_cut(cells, axes, design, box, turn)
            made += [(part, then, stopped) for part in parts]
        boxes = made
        counted = number % design.stride == 0 and not design.leaves_only
        if counted and number < design.height and design.patience is not None:
            deviation = float(spatial_trees._variance(price.levels[number // design.stride])) ** 0.5
            boxes = [
                (box, turn, stopped or sum(((cells >= box[0]) & (cells < box[1])).all(axis=1))
                 < design.patience * deviation)
                for box, turn, stopped in boxes
            ]  # fmt: skip
    return [[*box[0].tolist(), *box[1].tolist()] for box, _, _ in boxes]


@given(spaces(), designs())
@settings(max_examples=60)
@example(
    (np.array([[4937], [698368], [0], [687775], [93]]), [SpatialAxis(1048577)], None, 1),
    Design(epsilon=Fraction(7), height=4, stride=1, structure=Fraction(3, 10), patience=2.0),
)
def test_boxes_are_those_of_a_slow_recursion(space, design):
    tree = measured(space, design, RecordingNoise())

    assert np.hstack([tree.lower, tree.upper]).tolist() == slow(space, design)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 6), st.booleans())
def test_prices_are_exact_and_rise_towards_the_leaves(height, stride, dimensions, histogram):
    design = Design(Fraction(1, 7), height, stride, Fraction(3, 10))

    split = prices(design, dimensions, histogram=histogram)

    assert height * split.cut + sum(split.levels) == Fraction(1, 7)
    assert len(split.levels) == -(-height // stride) + histogram
    assert list(split.levels) == sorted(split.levels)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 6), st.booleans())
def test_leaves_alone_have_all_that_medians_leave(height, stride, dimensions, histogram):
    design = Design(Fraction(1, 7), height, stride, Fraction(3, 10), leaves_only=True)

    split = prices(design, dimensions, histogram=histogram)

    assert split.levels == (Fraction(1, 10),)
    assert height * split.cut == Fraction(3, 70)


def test_a_root_that_nobody_counted_is_the_sum_of_its_leaves():
    cells = np.arange(32)[:, None]
    design = Design(Fraction(1), 3, leaves_only=True)

    tree = grow(cells, [SpatialAxis(32)], design=design, root=spatial_trees.UNKNOWN_TOTAL,
                noise=SeededNoise(1))  # fmt: skip

    total, leaves = tree.estimates(CountFit.LEAST_SQUARES)
    assert leaves.ravel().tolist() == tree.levels[-1].counts.tolist()
    assert total == pytest.approx(leaves.sum())
    assert total != 32


def test_levels_of_a_quadtree_of_two_axes_grow_by_the_cube_root_of_two():
    split = prices(Design(Fraction(1), 8, 2), 2, histogram=False)

    ratios = [float(b / a) for a, b in zip(split.levels, split.levels[1:], strict=False)]
    assert ratios == pytest.approx([2 ** (1 / 3)] * 3, rel=1e-3)


def test_counts_are_unbiased_before_clamping_as_measured_and_as_fitted():
    """False alarms: 20 counts, each with a z-score above 6: below 20 x 2e-9 = 4e-8."""
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 16, (200, 2))
    design = Design(Fraction(1, 2), 4, 2, patience=None)
    exact = measured((cells, [SpatialAxis(16)] * 2, None, 1), design, RecordingNoise()).levels
    raw, fitted = [], []

    noise = SeededNoise(3)
    for _ in range(600):
        levels = measured((cells, [SpatialAxis(16)] * 2, None, 1), design, noise).levels
        raw.append(np.concatenate([level.counts for level in levels[1:]]))
        fitted.append(np.concatenate(least_squares(levels)[1:]))

    truth = np.concatenate([level.counts for level in exact[1:]])
    for estimates in (np.array(raw), np.array(fitted)):
        error = estimates.std(axis=0) / len(estimates) ** 0.5
        assert (np.abs(estimates.mean(axis=0) - truth) < 6 * error).all()
    assert (np.var(fitted, axis=0) < np.var(raw, axis=0)).all()


def test_a_box_with_a_low_noisy_count_is_not_cut_and_is_counted_again():
    cells = np.array([[0, 0]] * 60 + [[9, 9]])
    design = Design(Fraction(1), 6, 2, patience=2.0)

    tree = measured((cells, [SpatialAxis(16)] * 2, None, 1), design, RecordingNoise())

    sizes = [level.counts.size for level in tree.levels]
    assert sizes == [1, 4, 7, 10]  # only the full quarter is cut again
    assert tree.levels[-1].counts.tolist().count(60) == 1


def test_a_hierarchy_is_cut_at_the_borders_of_its_largest_branches_first():
    cells = np.zeros((5, 1), dtype=np.int64)
    design = Design(Fraction(1), 2, patience=None)

    tree = measured((cells, [TAXONOMY], None, 1), design, RecordingNoise())

    assert tree.lower.ravel().tolist() == [0, 1, 2, 3]


def test_a_noisy_number_of_records_is_paid_for_and_weighed():
    noise = RecordingNoise(added=7)

    root, privacy_loss = noisy_total(40, Fraction(1, 20), noise)

    assert (root.counts.tolist(), privacy_loss.draws) == ([47], 1)
    assert privacy_loss.scale == 20
    assert root.variance == pytest.approx(800, rel=0.01)


def test_progress_is_told_cut_by_cut():
    told = []

    measured((np.zeros((3, 1), int), [SpatialAxis(8)], None, 1), Design(Fraction(1), 3),
             RecordingNoise(), progress=lambda *news: told.append(news))  # fmt: skip

    assert told == [("cutting boxes", cut, 3) for cut in range(3)]
