import importlib.util
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import (
    Column,
    Distance,
    Diversity,
    Hierarchy,
    Kind,
    LDiversity,
    ReleaseForm,
    Role,
    Schema,
    TCloseness,
    Transform,
)
from shoal.errors import ClaimViolationError
from shoal.hazmat.fakes import SeededNoise
from shoal.io import validate
from shoal.methods import REGISTRY
from shoal.methods.distributed import blockwise, cuts
from shoal.methods.method import Setting, Tools
from shoal.partition import mdav, vmdav
from shoal.partition.kernels.mondrian import border_cuts as compiled_border_cuts
from shoal.partition.mixed_records import mixed_records, scale, within_groups

_spec = importlib.util.spec_from_file_location(
    "blocks_here", Path(__file__).parent / "blocks_here.py"
)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
RowsHere = _module.RowsHere

QI = Role.QUASI_IDENTIFIER
TREE = Hierarchy((
    ("a", "N", "all"), ("b", "N", "all"), ("c", "S", "all"), ("d", "S", "all"), ("e", "S", "all"),
))  # fmt: skip
SCHEMA = Schema((
    Column("x", QI, Kind.NUMERIC, transform=Transform.LOG),
    Column("age", QI, Kind.NUMERIC),
    Column("o", QI, Kind.ORDINAL, categories=("lo", "mid", "hi")),
    Column("t", QI, Kind.NOMINAL, hierarchy=TREE),
    Column("c", QI, Kind.NOMINAL),
    Column("ill", Role.CONFIDENTIAL, Kind.NOMINAL),
    Column("cost", Role.CONFIDENTIAL, Kind.NUMERIC),
))  # fmt: skip
KEYS = ("x", "age", "o", "t", "c")
TOOLS = Tools(SeededNoise(0))


def table(rows: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({
        "x": rng.normal(size=rows),
        "age": rng.integers(18, 90, rows),
        "o": rng.choice(["lo", "mid", "hi"], rows),
        "t": rng.choice(list("abcde"), rows, p=[0.4, 0.1, 0.2, 0.2, 0.1]),
        "c": rng.choice(["ü", "v", "w"], rows, p=[0.8, 0.1, 0.1]),
        "ill": rng.choice(["flu", "cold", "no"], rows),
        "cost": rng.integers(0, 6, rows),
    })  # fmt: skip
    holes = {name: pl.Series(rng.random(rows) < 0.02) for name in ("age", "t")}
    frame = frame.with_columns(frame[name].set(gone, None) for name, gone in holes.items())
    adopted = validate.validate(frame, SCHEMA)
    return adopted.take(adopted.canonical_order())


def setting(method: str, required=(), columns=KEYS, **parameters):
    model = REGISTRY[method].parameters.model_validate({"k": 5, **parameters})
    return Setting(SCHEMA, columns, model, ReleaseForm.LINKED_SHUFFLED, None, tuple(required))


def distributed(method: str, rows, stated) -> pl.DataFrame:
    return REGISTRY[method].distributed.run(rows, stated, TOOLS).changes[0].held


L = LDiversity(Fraction(2), Diversity.DISTINCT, ("ill",), KEYS)
T = TCloseness(Fraction(3, 10), Distance.EQUAL, ("ill",), KEYS)
ORDERED = TCloseness(Fraction(1, 5), Distance.ORDERED, ("cost",), KEYS)
JOINT = LDiversity(Fraction(3), Diversity.ENTROPY, ("ill", "cost"), KEYS)


@pytest.mark.parametrize(
    ("required", "parameters"),
    [
        ((), {}),
        ((L, ORDERED), {}),
        ((T, JOINT), {"output": "centroids", "aggregate": "medoid"}),
        ((), {"max_height": 4}),
        ((), {"halt_beyond": Decimal("0.05"), "count": "ill"}),
    ],
)
def test_strict_mondrian_in_blocks_is_that_of_one_machine(required, parameters):
    own = table(6_000)
    stated = setting("mondrian", required, **parameters)
    local = REGISTRY["mondrian"].run(own, stated, TOOLS).data.frame.select(KEYS)

    for blocks in (1, 5):
        rows = RowsHere(own, blocks=blocks, block_rows=200)
        assert distributed("mondrian", rows, stated).equals(local)
        assert len(rows.cells) > 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(20, 300), st.integers(1, 6), st.integers(2, 9))
def test_mondrian_of_few_values_is_that_of_one_machine_whatever_the_blocks(seed, n, blocks, top):
    rng = np.random.default_rng(seed)
    schema = Schema((Column("a", QI, Kind.NUMERIC), Column("b", QI, Kind.NUMERIC)))
    frame = pl.DataFrame({"a": rng.integers(0, top, n), "b": rng.integers(0, 3, n)})
    own = validate.validate(frame, schema)
    own = own.take(own.canonical_order())
    model = REGISTRY["mondrian"].parameters.model_validate({"k": 2})
    stated = Setting(schema, ("a", "b"), model, ReleaseForm.LINKED_SHUFFLED)

    local = REGISTRY["mondrian"].run(own, stated, TOOLS).data.frame
    rows = RowsHere(own, blocks=blocks, block_rows=3, seed=seed)

    assert distributed("mondrian", rows, stated).equals(local)


def test_relaxed_mondrian_in_blocks_keeps_k_whatever_the_blocks():
    own = table(4_000)
    stated = setting("mondrian", relaxed=True)
    found = [
        distributed("mondrian", RowsHere(own, blocks=b, block_rows=200), stated) for b in (1, 6)
    ]

    assert found[0].equals(found[1])
    assert found[0].group_by(KEYS).len()["len"].min() >= 5


def test_a_requirement_that_the_whole_table_lacks_stops_the_run():
    many = LDiversity(Fraction(9), Diversity.DISTINCT, ("ill",), KEYS)

    with pytest.raises(ClaimViolationError, match="because even the whole table"):
        distributed(
            "mondrian", RowsHere(table(500), blocks=2, block_rows=50), setting("mondrian", [many])
        )


def heap():
    """30,000 equal rows, one just below them, and 40 others."""
    schema = Schema((
        Column("a", QI, Kind.NUMERIC), Column("b", QI, Kind.NOMINAL),
    ))  # fmt: skip
    frame = pl.DataFrame({
        "a": [0.1] * 30_000 + [float(v) for v in range(40)],
        "b": ["ü"] * 30_000 + [None, "w"] * 20,
    })  # fmt: skip
    own = validate.validate(frame, schema)
    return own.take(own.canonical_order())


@pytest.mark.parametrize("output", ["intervals", "centroids"])
def test_a_giant_heap_of_equal_rows_is_parted_and_released_as_on_one_machine(output):
    own = heap()
    model = REGISTRY["mondrian"].parameters.model_validate({"k": 5, "output": output})
    stated = Setting(own.schema, ("a", "b"), model, ReleaseForm.LINKED_SHUFFLED)
    rows = RowsHere(own, blocks=3, block_rows=600)

    released = distributed("mondrian", rows, stated)

    assert released.equals(REGISTRY["mondrian"].run(own, stated, TOOLS).data.frame)
    if output == "intervals":
        assert max(rows.cells.values()) < 3_000


def test_cells_of_a_heap_are_parted_by_record_number(monkeypatch):
    monkeypatch.setattr(blockwise, "LEAST", 100)
    own = heap()
    model = REGISTRY["mdav"].parameters.model_validate({"k": 5})
    stated = Setting(own.schema, ("a", "b"), model, ReleaseForm.LINKED_SHUFFLED)
    rows = RowsHere(own, blocks=3, block_rows=600)

    released = distributed("mdav", rows, stated)

    assert max(rows.cells.values()) < 3_000
    assert released.group_by("a", "b").len()["len"].min() >= 5


@pytest.mark.parametrize("method", ["mdav", "vmdav"])
def test_cells_keep_k_and_do_not_depend_on_blocks(method):
    own = table(30_000)
    more = {"gamma": Decimal("0.2")} if method == "vmdav" else {}
    stated = setting(method, **more)
    found = []
    for blocks in (1, 7):
        rows = RowsHere(own, blocks=blocks, block_rows=25_000, seed=blocks)
        found.append(distributed(method, rows, stated))
        assert len(rows.cells) > 1
        assert min(rows.cells.values()) >= 10_000

    assert found[0].equals(found[1])
    assert found[0].group_by(KEYS).len()["len"].min() >= 5


def test_a_table_of_one_cell_is_grouped_as_on_one_machine():
    own = table(700)
    stated = setting("mdav")

    local = REGISTRY["mdav"].run(own, stated, TOOLS).data.frame.select(KEYS)

    assert distributed("mdav", RowsHere(own, blocks=4, block_rows=25_000), stated).equals(local)


def test_scales_of_blocks_are_those_of_the_whole_table():
    own = table(3_000)
    found = [blockwise.scales_of(RowsHere(own, blocks=b, block_rows=100), KEYS) for b in (1, 4)]

    for scales in found:
        placed, whole = own.records(KEYS, scales), own.records(KEYS)
        assert np.array_equal(placed.numbers, whole.numbers)
        assert np.array_equal(placed.codes, whole.codes)
        assert np.array_equal(placed.weights, whole.weights)


@pytest.mark.parametrize("kind", ["normal", "uniform", "clustered", "long tails"])
@pytest.mark.parametrize("grouper", [mdav, vmdav])
def test_cells_of_ten_thousand_lose_at_most_a_twentieth_more(kind, grouper):
    """100,000 x 4 for mdav, as promised; a third of the records for vmdav, which is slower.

    Not so where clusters are tight and far apart: there a few groups between clusters are most of
    the loss, and the ratio was found anywhere between 0.95 and 1.13, whatever the cells.
    """
    n = 100_000 if grouper is mdav else 30_000
    rng = np.random.default_rng(7)
    if kind == "clustered":
        X = rng.random((60, 4))[rng.integers(60, size=n)] * 20 + rng.normal(size=(n, 4))
    elif kind == "uniform":
        X = rng.random((n, 4))
    else:
        X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4))
        X = np.exp(rng.normal(size=(n, 4))) if kind == "long tails" else X
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    method = mdav if grouper is mdav else lambda Z, k: vmdav(Z, k, gamma=0.2)
    sample = X[rng.random(n) < 0.4]

    tree = blockwise.coarse_cells(sample, n, 5, size=10_000, least=10_000, method=method)
    tree = tree.merge_small(np.bincount(tree.route(X), minlength=tree.count), 10_000)
    cell = tree.route(X)

    sizes = np.bincount(cell, minlength=tree.count)
    assert tree.count > 1
    assert sizes.min() >= 10_000
    labels = np.empty(n, np.int64)
    for c in range(tree.count):
        labels[cell == c] = method(X[cell == c], 5).labels + c * n
    labels = np.unique(labels, return_inverse=True)[1]
    records = scale(mixed_records(X))
    assert within_groups(records, labels) <= 1.05 * within_groups(records, method(X, 5).labels)


@given(st.data())
def test_border_cuts_are_those_of_the_kernel(data):
    size = data.draw(st.integers(2, 8))
    held = np.array(data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)))
    borders = np.array(data.draw(st.lists(st.integers(1, 3), min_size=size - 1, max_size=size - 1)))
    if np.count_nonzero(held) < 2:
        return
    x = np.repeat(np.arange(size), held).astype(np.float64)
    cut, many = np.zeros(2), np.zeros(2, np.int64)
    compiled_border_cuts(x, np.append(borders, 0), np.zeros(size, np.int64), cut, many)

    found = cuts.border_cuts(held, borders)

    assert sorted(own.fewer for own in found) == sorted(many.tolist())
    for own in found:
        if own.fewer:
            assert (x < own.value).sum() == own.fewer
