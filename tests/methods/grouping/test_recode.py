from collections import Counter
from datetime import datetime

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import Hierarchy, Partition
from shoal.methods.grouping import recode

TREE = Hierarchy(
    (("a", "p", "all"), ("b", "p", "all"), ("c", "q", "all"), ("d", "q", "all"), ("e", "all"))
)


@st.composite
def grouped(draw, values):
    n = draw(st.integers(1, 30))
    labels = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    labels = np.unique(labels, return_inverse=True)[1]
    cells = draw(st.lists(values, min_size=n, max_size=n))
    return Partition(labels), np.array(cells, dtype=np.float64)


numbers = grouped(st.integers(-4, 4) | st.just(np.nan))
codes = grouped(st.integers(-1, 4))


def members(partition, cells, group):
    cells = cells[partition.labels == group]
    return cells[~np.isnan(cells)], cells.size


@given(numbers)
def test_means_are_of_the_present_half_or_missing(case):
    partition, cells = case

    for group, mean in enumerate(recode.means(cells, partition)):
        present, size = members(partition, cells, group)
        if 2 * present.size > size:
            assert np.isclose(mean, present.mean())
        else:
            assert np.isnan(mean)


@given(numbers)
def test_medians_equal_numpys(case):
    partition, cells = case

    exact = recode.medians(cells, partition)

    for group in range(len(partition)):
        present, size = members(partition, cells, group)
        if 2 * present.size > size:
            assert exact[group] == np.median(present)
        else:
            assert np.isnan(exact[group])


@given(numbers, st.sampled_from([1, 5, 1000]))
def test_the_median_category_is_the_lower_of_two(case, factor):
    partition, cells = case
    codes = np.where(np.isnan(cells), -1, np.abs(cells) * factor).astype(np.int64)

    found = recode.median_category(codes, partition)

    for group in range(len(partition)):
        held = codes[partition.labels == group]
        present = np.sort(held[held >= 0])
        enough = 2 * present.size > held.size
        assert found[group] == (present[(present.size - 1) // 2] if enough else -1)


@given(numbers)
def test_modes_are_most_frequent_and_smallest_of_several(case):
    partition, cells = case

    for group, mode in enumerate(recode.modes(cells, partition)):
        present, size = members(partition, cells, group)
        if 2 * present.size > size:
            counts = Counter(present.tolist())
            assert mode == min(v for v, c in counts.items() if c == max(counts.values()))
        else:
            assert np.isnan(mode)


def path(s, t):
    ups = [TREE.paths[s], TREE.paths[t]]
    shared = set(ups[0]) & set(ups[1])
    return sum(len([node for node in up if node not in shared]) for up in ups)


@given(codes)
def test_a_nominals_centre_has_least_total_path_length_among_its_members(case):
    partition, cells = case
    cells = cells.astype(np.int64)

    centre = recode.central_category(cells, partition, TREE.edges())

    for group, chosen in enumerate(centre):
        held = cells[partition.labels == group]
        present = held[held >= 0]
        if 2 * present.size <= held.size:
            assert chosen == -1
            continue
        totals = {s: sum(path(s, t) for t in present) for s in sorted(set(present.tolist()))}
        assert chosen == min(totals, key=totals.__getitem__)


@given(codes)
def test_without_a_hierarchy_the_centre_is_the_most_frequent_category(case):
    partition, cells = case
    cells = cells.astype(np.int64)

    centre = recode.central_category(cells, partition, None)
    floats = np.where(cells < 0, np.nan, cells)
    modes = recode.modes(floats, partition)

    assert np.array_equal(np.where(np.isnan(modes), -1, modes), centre)


def test_a_published_number_never_comes_from_one_person_alone():
    cells = np.array([5.0, np.nan, np.nan, 7.0])

    mean = recode.means(cells, Partition(np.array([0, 0, 1, 1])))

    assert np.isnan(mean).all()


def test_means_of_many_records_are_those_of_few():
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.arange(70_000) // 7)
    cells = np.where(rng.random(70_000) < 0.3, np.nan, rng.normal(size=70_000))
    some = labels < 8_000

    long = recode.means(cells, Partition(labels))
    short = recode.means(cells[some], Partition(labels[some]))

    assert np.array_equal(long[:8_000], short, equal_nan=True)


midnights = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0}
moments = st.datetimes()
whole_days = moments.map(lambda moment: moment.replace(**midnights))
whole_seconds = moments.map(lambda moment: moment.replace(microsecond=0))


@given(st.lists(moments, min_size=1) | st.lists(whole_days, min_size=1)
       | st.lists(whole_seconds, min_size=1))  # fmt: skip
def test_times_are_written_without_the_parts_that_are_zero_in_all_and_read_back(days):
    groups = pl.DataFrame({"low": days, "high": days})

    text = recode._ends(groups)["high"]

    assert text.to_list() == recode._ends(groups)["low"].to_list()
    assert [datetime.fromisoformat(one) for one in text] == days
    assert len(set(map(len, text))) == 1
    if all(day == day.replace(**midnights) for day in days):
        assert set(map(len, text)) == {10}
    elif not any(day.microsecond for day in days):
        assert set(map(len, text)) == {19}


@given(codes)
def test_distinct_cells_are_those_of_the_groups_for_codes_and_for_numbers(case):
    partition, cells = case
    texts = [None if cell < 0 else "abcde"[int(cell)] for cell in cells]
    wanted = sorted({(group, text) for group, text in zip(partition.labels, texts, strict=True)
                     if text is not None})  # fmt: skip

    for dtype in (pl.Enum(list("abcde")), pl.String):
        frame = pl.DataFrame({"group": partition.labels, "cell": pl.Series(texts, dtype=dtype)})
        found = recode.distinct_cells(frame)
        assert [(group, str(cell)) for group, cell in found.rows()] == wanted
        assert found.schema["cell"] == dtype
