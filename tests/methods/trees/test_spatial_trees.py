"""The private spatial trees, from policy to release."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cells import cells_of

import shoal
from shoal.core import (
    Column,
    DifferentialPrivacy,
    Hierarchy,
    Kind,
    Neighbours,
    Role,
    Schema,
    Status,
)
from shoal.errors import ClaimViolationError, InputError, InternalError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.hazmat.noise import OpenDPNoise
from shoal.io import decomposition_table, validate
from shoal.methods.trees.spatial_encoding import redrawn, spatial_encoding
from shoal.methods.trees.spatial_trees import CountedLevels, public_height

METHODS = ["dp-kdtree", "dp-quadtree"]
JOBS = ["clerk", "cook", "none"]
BORN = [date(1950, 1, 1), date(1951, 12, 31)]
COLUMNS = {
    "id": "identifier",
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110], "step": 1},
    "income": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1000], "top_code": 500},
    "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
    "born": {"role": "quasi-identifier", "kind": "date", "bounds": BORN},
    "job": {"role": "confidential", "kind": "nominal", "categories": JOBS},
}


def policy(method, columns=None, **protect):
    return {
        "version": 1,
        "columns": COLUMNS if columns is None else columns,
        "protect": {"method": method, "epsilon": 1, **protect},
    }


@st.composite
def tables(draw):
    """Ties, missing cells, skew, constant columns, one distinct job, down to one row."""
    n = draw(st.integers(1, 30))
    constant = draw(st.booleans())

    def drawn(values, dtype):
        cells = draw(cells_of(values, 1)) * n if constant else draw(cells_of(values, n))
        return pl.Series(cells, dtype=dtype)

    return pl.DataFrame(
        {
            "id": pl.Series([f"p{i}" for i in range(n)]),
            "age": drawn(range(-5, 121), pl.Int64),
            "income": drawn([0.0, 0.0, 0.5, 1e9], pl.Float64),
            "sex": drawn(["f", "m", "?"], pl.String),
            "born": drawn(range(-7670, -6208), pl.Int32).cast(pl.Date),  # from 1949 to 1953
            "job": drawn(JOBS[:2], pl.String),
        }
    )


cases = {
    "method": st.sampled_from(METHODS),
    "neighbours": st.sampled_from(list(Neighbours)),
    "height": st.none() | st.integers(1, 5),
    "levels": st.sampled_from(list(CountedLevels)),
}


@given(frame=tables(), seed=st.integers(0, 99), **cases)
@settings(max_examples=60)
def test_drawn_rows_lie_in_the_public_domains_and_cost_epsilon(
    frame, seed, method, neighbours, height, levels
):
    noise = SeededNoise(seed)

    release = shoal.protect(
        frame,
        policy(method, neighbours=neighbours.value, height=height, levels=levels),
        noise=noise,
    )

    rows = release.data
    assert rows.columns == frame.columns[1:]
    assert rows.null_count().sum_horizontal()[0] == 0
    assert rows.height == frame.height or neighbours is Neighbours.ADD_REMOVE
    assert set(rows["age"]) <= set(range(111))
    assert rows["income"].is_between(0, 500).all()
    assert rows["sex"].is_in(["f", "m"]).all()
    assert rows["born"].is_between(*BORN).all()
    assert rows["job"].is_in(JOBS).all()
    accounting.verify(release.privacy_losses, Fraction(1), neighbours=neighbours, drawn=noise.drawn)


@given(frame=tables(), seed=st.integers(0, 99), **cases)
@settings(max_examples=60)
def test_released_boxes_cover_the_space_and_count_everybody(
    frame, seed, method, neighbours, height, levels
):
    noise = SeededNoise(seed)
    rules = policy(method, neighbours=neighbours.value, height=height, levels=levels, output="tree")

    release = shoal.protect(frame, rules, noise=noise)

    boxes = decomposition_table.from_frame(release.data, shoal.load_policy(rules).schema)
    assert boxes.columns == ("age", "income", "sex", "born")
    assert boxes.values == tuple(JOBS)
    lower, upper = boxes.extent
    days = [(day - date(1970, 1, 1)).days for day in BORN]
    assert lower.tolist() == [0, 0, 0, days[0]]
    assert upper == pytest.approx([111, 500, 2, days[1] + 1])
    whole = np.prod(upper - lower)
    assert np.prod(boxes.upper - boxes.lower, axis=1).sum() == pytest.approx(whole)
    assert (boxes.counts >= 0).all()
    if neighbours is Neighbours.CHANGE_ONE:
        assert boxes.counts.sum() == pytest.approx(frame.height)
    accounting.verify(release.privacy_losses, Fraction(1), neighbours=neighbours, drawn=noise.drawn)


class Deaf(RecordingNoise):
    """Noise that never hears the data: its answers follow from the order of the questions."""

    def __init__(self, seed):
        super().__init__()
        self._answers = np.random.default_rng(seed)

    def _laplace(self, values, scale):
        del scale
        return self._answers.integers(0, 40, values.size)

    def _choose_many(self, scores, scale):
        del scale
        return self._answers.integers(0, scores.shape[1], len(scores))


@given(
    one=tables(),
    other=tables(),
    seed=st.integers(0, 99),
    output=st.sampled_from(["rows", "tree"]),
    **cases,
)
@settings(max_examples=60)
def test_a_release_knows_of_the_data_only_what_the_noise_answers(
    one, other, seed, output, method, neighbours, height, levels
):
    """With add-remove not even the number of rows; with change-one that alone."""
    if neighbours is Neighbours.CHANGE_ONE:
        other = pl.concat([other] * one.height).head(one.height)
    rules = policy(method, neighbours=neighbours.value, height=height, levels=levels, output=output)

    releases = [shoal.protect(frame, rules, noise=Deaf(seed)) for frame in (one, other)]

    order = releases[0].data.columns
    assert releases[0].data.sort(order).equals(releases[1].data.sort(order))
    assert releases[0].privacy_losses == releases[1].privacy_losses


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("output", ["rows", "tree"])
def test_with_real_noise_the_claim_is_proved_and_the_ledger_agrees(method, neighbours, output):
    frame = pl.DataFrame({c: ["1"] * 40 for c in COLUMNS})

    release = shoal.protect(frame, policy(method, neighbours=neighbours.value, output=output))

    (claim,) = release.claims
    assert claim.status is Status.PROVED
    assert isinstance(claim.guarantee, DifferentialPrivacy)
    assert claim.guarantee.neighbours is neighbours
    known = ("the number of rows",) if neighbours is Neighbours.CHANGE_ONE else ()
    assert claim.guarantee.invariants == known
    assert {entry.neighbours for entry in release.privacy_losses} == {Neighbours.ADD_REMOVE}


@given(frame=tables(), seed=st.integers(0, 99), **cases)
@settings(max_examples=30)
def test_the_plain_tree_cuts_every_box_and_releases_what_was_drawn(
    frame, seed, method, neighbours, height, levels
):
    """All counts are whole, some negative; fitted ones cost the same, and rows can be drawn."""
    rules = policy(
        method, neighbours=neighbours.value, height=height or 3, levels=levels, fit="none"
    )
    rules["protect"] |= {"epsilon": Decimal("0.1"), "stop_below": 0}
    unfitted, noise = SeededNoise(seed), SeededNoise(seed)

    rows = shoal.protect(frame, rules, noise=noise)
    rules["protect"]["output"] = "tree"
    plain = shoal.protect(frame, rules, noise=unfitted)
    rules["protect"]["fit"] = "least-squares"
    straight = shoal.protect(frame, rules, noise=SeededNoise(seed))

    schema = shoal.load_policy(rules).schema
    boxes, fitted = (decomposition_table.from_frame(r.data, schema) for r in (plain, straight))
    assert len(boxes) == 2 ** (height or 3) == len(fitted)
    assert (boxes.counts == boxes.counts.round()).all()
    assert straight.privacy_losses == rows.privacy_losses
    for release, source in ((plain, unfitted), (rows, noise)):
        accounting.verify(
            release.privacy_losses, Fraction(1, 10), neighbours=neighbours, drawn=source.drawn
        )
    if neighbours is Neighbours.CHANGE_ONE:
        assert rows.data.height == frame.height
        assert fitted.counts.sum() == pytest.approx(frame.height)


@pytest.mark.parametrize("method", METHODS)
def test_small_boxes_are_left_whole_as_far_as_stop_below_says(method):
    """A single box has 40 people: it is cut on at 1 deviation, and stops at 1,000."""
    frame = pl.DataFrame({c: ["1"] * 40 for c in COLUMNS})
    found = []
    for below in (0, 1, 1000):
        rules = policy(method, output="tree", height=8, stop_below=below, epsilon=5)
        found.append(shoal.protect(frame, rules, noise=SeededNoise(1)).data.height)

    assert found[0] == 2**8 > found[1] > found[2]
    with pytest.raises(InputError, match="stop_below"):
        shoal.plan(policy(method, stop_below=-1))


@pytest.mark.parametrize("method", METHODS)
def test_a_forgotten_level_is_found_by_the_budget(method):
    noise = RecordingNoise()
    frame = pl.DataFrame({c: ["1"] * 40 for c in COLUMNS})
    privacy_losses = shoal.protect(frame, policy(method), noise=noise).privacy_losses

    for gone in range(len(privacy_losses)):
        left = privacy_losses[:gone] + privacy_losses[gone + 1 :]
        with pytest.raises(InternalError, match="accounting derives"):
            accounting.verify(
                left, Fraction(1), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
            )


def test_a_change_one_requirement_is_met_by_an_add_remove_claim_of_half():
    rules = policy("dp-kdtree", neighbours="add-remove")
    rules["require"] = {"differential-privacy": 2}
    shoal.plan(rules)

    rules["require"] = {"differential-privacy": 1}
    with pytest.raises(ClaimViolationError, match="requires 1-differential privacy"):
        shoal.plan(rules)


def test_dense_regions_keep_their_people():
    """At epsilon 50 noise is small beside 2,000 people in two clusters."""
    rng = np.random.default_rng(1)
    where = rng.integers(0, 2, 2000)
    frame = pl.DataFrame({"x": where * 0.5 + rng.uniform(0.1, 0.2, 2000), "y": where * 0.5 + 0.1,
                          "s": np.where(where, "b", "a")})  # fmt: skip
    columns = {
        "x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]},
        "y": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]},
        "s": {"role": "confidential", "kind": "nominal", "categories": ["a", "b"]},
    }

    for method in METHODS:
        rows = shoal.protect(frame, policy(method, columns, epsilon=50), noise=SeededNoise(1)).data
        assert rows.filter(s="b")["x"].is_between(0.5, 0.8).mean() > 0.97
        assert abs(rows.filter(s="b").height - where.sum()) < 20


# The counted column.


def counting(kind, **more):
    return {**COLUMNS, "wage": {"role": "confidential", "kind": kind, **more}}


def test_of_several_confidential_columns_one_is_counted_and_the_others_are_axes():
    columns = counting("numeric", bounds=[0, 100])
    frame = pl.DataFrame({c: ["1"] * 30 for c in columns})

    with pytest.raises(InputError, match="expected one of the confidential columns job, wage"):
        shoal.plan(policy("dp-kdtree", columns))
    with pytest.raises(InputError, match="no confidential column named 'age'"):
        shoal.plan(policy("dp-kdtree", columns, count="age"))
    boxes = shoal.protect(
        frame, policy("dp-quadtree", columns, count="wage", bins=4, output="tree")
    ).data

    assert "job_lower" in boxes.columns
    assert boxes.columns[-4:] == [
        "wage=[0, 25)", "wage=[25, 50)", "wage=[50, 75)", "wage=[75, 100]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ({"kind": "numeric", "bounds": [0, 2], "step": 1}, ["0", "1", "2"]),
        ({"kind": "date", "bounds": [date(2000, 1, 1), date(2000, 1, 31)]},
         ["[2000-01-01, 2000-01-16)", "[2000-01-16, 2000-01-31]"]),
        ({"kind": "ordinal", "categories": ["l", "m", "h"], "top_code": "m"}, ["l", "m"]),
    ],
)  # fmt: skip
def test_numbers_dates_and_ordinals_are_counted_in_public_bins(column, texts):
    columns = {**COLUMNS, "job": {"role": "confidential", **column}}
    frame = pl.DataFrame({c: ["1"] * 30 for c in columns})
    bins = 2 if column["kind"] == "date" else 16

    boxes, rows = (
        shoal.protect(frame, policy("dp-kdtree", columns, bins=bins, output=output)).data
        for output in ("tree", "rows")
    )

    assert [name for name in boxes.columns if "=" in name] == [f"job={text}" for text in texts]
    assert rows.height == 30
    if column["kind"] == "numeric":
        assert set(rows["job"]) <= {0, 1, 2}


def test_without_a_confidential_column_boxes_count_records():
    columns = {name: column for name, column in COLUMNS.items() if name != "job"}
    frame = pl.DataFrame({c: ["1"] * 30 for c in columns})

    boxes = shoal.protect(frame, policy("dp-kdtree", columns, output="tree")).data

    assert boxes.columns[-1] == "count"


# Refusals.


@pytest.mark.parametrize("method", METHODS)
def test_what_a_tree_cannot_hold_is_refused_in_a_sentence(method):
    public = {**COLUMNS, "zone": {"role": "other", "kind": "numeric", "public": True}}
    many = {**COLUMNS, "job": {"role": "confidential", "kind": "nominal",
                               "categories": [f"j{i}" for i in range(200_000)]}}  # fmt: skip
    alone = {"id": "identifier", "job": COLUMNS["job"]}

    with pytest.raises(
        InputError,
        match="'zone': values cannot stand beside the release; the method",
    ):
        shoal.plan(policy(method, public))
    with pytest.raises(InputError, match="'job' has 200,000 values to count"):
        shoal.plan(policy(method, many))
    with pytest.raises(InputError, match="height: expected at most 16"):
        shoal.plan(policy(method, height=17))
    with pytest.raises(InputError, match="needs at least one column to cut"):
        shoal.plan(policy(method, alone))
    with pytest.raises(InputError, match="has the release form 'synthetic'"):
        shoal.plan(policy(method, release_form="tree"))


def test_boxes_with_noisy_counts_are_not_tested_for_diversity():
    rules = policy("dp-kdtree", output="tree")
    rules["require"] = {"l-diversity": {"l": 2, "column": "job"}}

    with pytest.raises(InputError, match="l-diversity cannot be tested on boxes"):
        shoal.plan(rules)
    rules["protect"]["output"] = "rows"
    shoal.plan(rules)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("epsilon", [1e-9, 1e9])
def test_extreme_epsilons_give_a_table(method, neighbours, epsilon):
    frame = pl.DataFrame({c: ["1"] * 9 for c in COLUMNS})
    rules = policy(method, epsilon=epsilon, neighbours=neighbours.value, height=3, output="tree")

    boxes = shoal.protect(frame, rules).data

    total = boxes.select(f"job={job}" for job in JOBS).sum().sum_horizontal()[0]
    if epsilon > 1 or neighbours is Neighbours.CHANGE_ONE:
        assert total == pytest.approx(9)


def test_medians_take_a_share_of_epsilon_between_0_and_1():
    with pytest.raises(InputError, match="structure"):
        shoal.plan(policy("dp-kdtree", structure=1))


# Height and axes.


def test_the_height_follows_a_public_rule():
    axes = [
        spatial_encoding(
            Column("x", Role.QUASI_IDENTIFIER, Kind.NOMINAL, categories=tuple("abcdefgh"))
        )
    ]
    wide = axes * 10

    assert public_height(1000, Fraction(1, 2), 1, wide) == 8  # log2 500 = 8.97
    assert public_height(1000, Fraction(1, 2), 1, axes) == 3
    assert public_height(10**9, Fraction(1), 100, wide) == 11  # 2^11 x 100 < 300,000
    assert public_height(-20, Fraction(1), 1, wide) == 1


def test_a_hierarchy_gives_the_order_and_the_borders():
    tree = Hierarchy((("a", "p", "all"), ("b", "q", "all"), ("c", "p", "all")))
    axis = spatial_encoding(Column("x", Role.QUASI_IDENTIFIER, Kind.NOMINAL, hierarchy=tree))

    assert axis.order.tolist() == [0, 2, 1]
    assert axis.heights[1] > axis.heights[0]


def test_places_go_there_and_back():
    days = [date(2000, 1, 1) + timedelta(days=d) for d in range(5)]
    columns = {
        "n": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-1, 1], "step": 0.1},
        "d": {"role": "quasi-identifier", "kind": "date", "bounds": [days[0], days[-1]]},
        "c": {"role": "quasi-identifier", "kind": "nominal", "categories": list("abcde")},
        "f": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-1, 1]},
        "z": {"role": "quasi-identifier", "kind": "numeric", "bounds": [5, 9], "top_code": 5},
    }
    frame = pl.DataFrame({"n": [-1.0, -0.3, 0.0, 0.1, 1.0], "d": days, "c": list("abcde"),
                          "f": [-1.0, -0.5, 0.0, 0.5, 1.0], "z": [5.0] * 5})  # fmt: skip
    schema: Schema = shoal.load_policy(policy("dp-kdtree", columns)).schema
    table = shoal.io.clamp.clamp(frame, schema, columns=tuple(columns))[0]

    back = table
    for name in columns:
        axis = spatial_encoding(schema[name])
        cells = axis.cells(table)
        assert cells.min() >= 0
        assert cells.max() < axis.count
        back = axis.put(back, cells)

    assert back.publishable().equals(frame)
    assert spatial_encoding(schema["n"]).count == 21


# The audit.


class HalfNoise(OpenDPNoise):
    """A fake with a bug: noise of half the scale that was asked for."""

    def _laplace(self, values, scale):
        return super()._laplace(values, scale / 2)


class TrueMedians(OpenDPNoise):
    """A fake with a bug: cuts at the best scores, without noise."""

    def _choose_many(self, scores, scale):
        del scale
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)


SURE = 1 - 1e-6
LINE = {"x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]}}
ENDS = {
    "change-one": (pl.DataFrame({"x": [0.0] * 20 + [1.0] * 20}),
                   pl.DataFrame({"x": [0.0] * 19 + [1.0] * 21})),
    "add-remove": (pl.DataFrame({"x": [0.0] * 20 + [1.0] * 20}),
                   pl.DataFrame({"x": [0.0] * 19 + [1.0] * 20})),
}  # fmt: skip
"""One record at an end of the line goes over to the other, or away."""
RUNS = 1000
"""Of an audit that shall find nothing: noise of a quarter of its scale has events of chances near
0.77 and 0.03, which half of these runs miss with a probability below 1e-9."""


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("output", ["rows", "tree"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_audits_find_nothing(method, output, neighbours):
    """False alarms: below 1e-6, the confidence of the bounds."""
    rules = policy(method, LINE, output=output, neighbours=neighbours.value, height=1)

    found = shoal.audit(rules, pair=ENDS[neighbours], trials=RUNS, confidence=SURE)

    assert found.verdict == "no violation found"
    assert found.worst.claim.status is Status.PROVED


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_audits_of_built_in_pairs_find_nothing(method):
    """False alarms: below 1e-6, the confidence of the bounds."""
    columns = {**LINE, "y": LINE["x"], "job": COLUMNS["job"]}

    found = shoal.audit(policy(method, columns, height=2), trials=RUNS // 2, confidence=SURE)

    assert len(found.findings) == 2
    assert not found.violated


@pytest.mark.slow
def test_noise_of_half_the_scale_is_found():
    """At epsilon 2, where this takes the fewest runs: the event found has chances near 0.81 and
    0.04, and the half of the runs that counts misses it with a probability below 1e-6."""
    found = shoal.audit(
        policy("dp-quadtree", LINE, output="tree", height=1, epsilon=2),
        pair=ENDS["change-one"], trials=4000, confidence=SURE, noise=HalfNoise(),
    )  # fmt: skip

    assert found.violated


@pytest.mark.slow
def test_medians_of_true_counts_are_found():
    """One record turns the median over, from below the middle to above it; with real noise the
    same pair shows nothing. False alarms: below 1e-6, the confidence of the bounds. Without noise
    the event is certain on one table and impossible on the other: no number of runs misses it."""
    pair = tuple(
        pl.DataFrame({"x": [0.1] * 9 + [moves] + [0.5] + [0.9] * 10}) for moves in (0.1, 0.9)
    )
    rules = policy("dp-kdtree", LINE, output="tree", height=1)

    found = shoal.audit(rules, pair=pair, trials=RUNS, confidence=SURE, noise=TrueMedians())
    fine = shoal.audit(rules, pair=pair, trials=RUNS, confidence=SURE)

    assert found.violated
    assert found.worst.bound.epsilon.low > 3
    assert not fine.violated


def test_no_column_of_the_original_stands_beside_drawn_rows():
    number = Column("x", Role.QUASI_IDENTIFIER, Kind.NUMERIC, (Decimal(0), Decimal(9)))
    schema = Schema((number, Column("y", Role.CONFIDENTIAL)))
    table = validate.validate(pl.DataFrame({"x": [1, 2], "y": ["a", "b"]}), schema)

    with pytest.raises(InternalError, match="would be released beside synthetic rows"):
        redrawn(table, [(spatial_encoding(number), np.array([3, 4]))])
