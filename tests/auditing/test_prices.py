"""Every draw of every method with a proved epsilon, held against the entry that pays for it.

A run's answers are given back on a neighbouring table
(`shoal.auditing.privacy_losses.replay`). For each mechanism and scale the exact loss may
not exceed what the accounting derives from the entries of that mechanism and scale, no draw may
lack an entry, and all that is released beside the answers must be the same for both tables. The
pairs are the worst that the proofs know, and tables with cells that fit no domain. No false alarms:
losses are exact. Seeded, so it fails never or always.
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.auditing.privacy_losses import Laws, replay
from shoal.core import GAUSSIAN, Kind, Neighbours, Price, PrivacyMeasure, ReleaseForm
from shoal.core.concentrated import rho_of
from shoal.hazmat import accounting
from shoal.hazmat.fakes import SeededNoise
from shoal.io.table import Table
from shoal.mechanism.consistent_counts import CountFit
from shoal.mechanism.records import RecordTotal
from shoal.mechanism.spatial_trees import UNKNOWN_TOTAL, Design, SpatialAxis, grow
from shoal.methods.method import Tools
from shoal.methods.noise import contributions
from shoal.pipeline.planning import plan
from shoal.policy.load import load
from shoal.synthesis.copula import Margins, copula
from shoal.synthesis.domain import Domain
from shoal.synthesis.maxent import maxent, maxent_plan
from shoal.synthesis.privtree import Fill, privtree

WHOLE = Price(Fraction(1))
RHO = PrivacyMeasure.RHO
CHANGE, ADD = Neighbours.CHANGE_ONE, Neighbours.ADD_REMOVE
N, K = 12, 3
TAXONOMY = "a,ab,all\nb,ab,all\nc,cd,all\nd,cd,all\n"
SEEDS = range(8)
LAWS = Laws()


def worst_shares(run, before, after, neighbours, *, laws=LAWS, seeds=SEEDS, noise=SeededNoise):
    """Of each mechanism and scale, the largest loss over what its entries state.

    Args:
        run: gives the privacy_losses, and what else is released.
    """
    worst = {}
    for seed in seeds:
        pair = (before, after) if seed % 2 else (after, before)
        found = replay(run, *pair, noise(seed), laws=laws)
        privacy_losses, shown = found.first
        for draw, loss in found.losses.items():
            paid = [entry for entry in privacy_losses if (entry.mechanism, entry.scale) == draw]
            assert paid, f"no entry pays for draws of {draw}"
            pure = all(entry.rho is None for entry in paid)
            cost = loss if pure else found.rhos[draw]
            worst[draw] = max(worst.get(draw, 0.0), cost / stated(paid, neighbours))
        if found.second is not None and not laws.unordered:
            assert found.second == (privacy_losses, shown)
    return worst


def stated(paid, neighbours):
    """What entries of one mechanism and scale allow: epsilon or rho."""
    if all(entry.rho is None for entry in paid):
        return float(accounting.total(paid, neighbours=neighbours))
    return float(accounting.total(paid, neighbours=neighbours, measure=PrivacyMeasure.RHO))


def holds(run, before, after, neighbours=CHANGE, **more):
    """Whether no part costs more than it states; the largest share, so that a test sees much."""
    worst = worst_shares(run, before, after, neighbours, **more)
    assert max(worst.values()) <= 1 + 1e-9, worst
    return max(worst.values())


# Methods, through the whole pipeline.


def numeric(role="quasi-identifier", **more):
    return {"role": role, "kind": "numeric", "bounds": [0, N], "step": 1, **more}


def nominal(role="quasi-identifier", **more):
    return {"role": role, "kind": "nominal", **more}


LEVELS = {"categories": ["a", "b", "c", "d"], "other": "b"}
NUMBERS = {"x": numeric(), "y": numeric(), "z": numeric()}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    path = tmp_path_factory.mktemp("prices") / "tree.csv"
    path.write_text(TAXONOMY)
    rank = {"role": "quasi-identifier", "kind": "ordinal", **LEVELS}
    return {"x": numeric(), "rank": rank, "tree": nominal(hierarchy=str(path)),
            "flat": nominal(**LEVELS)}  # fmt: skip


POLICIES = {}


def read(document):
    """The policy, read once for all its runs."""
    if (name := repr(document)) not in POLICIES:
        POLICIES[name] = load(document)
    return POLICIES[name]


def released(frame, noise, *, columns, protect, rules=()):
    """The entries, and all else that a release holds, but for the time of day."""
    document = {"version": 1, "columns": columns, "protect": protect}
    if rules:
        document["constraints"] = {"rules": list(rules)}
    release = shoal.protect(frame, read(document), noise=noise)
    manifest = {
        name: part for name, part in release.manifest.as_values().items() if name != "created"
    }
    for check in manifest["checks"]:
        check.pop("witness")  # by places in a random order
    rows = release.data.rows()
    if manifest["release_form"] == ReleaseForm.COLUMN_SHUFFLED:
        rows = [sorted(column, key=repr) for column in zip(*rows, strict=True)]
    elif manifest["release_form"] != ReleaseForm.ROW_ALIGNED:
        rows = sorted(rows, key=repr)
    extras = {name: extra.rows() for name, extra in release.extras.items()}
    return release.privacy_losses, repr((manifest, release.data.schema, rows, extras))


def ends(columns, *, high):
    """The cell at one end of each column."""
    return {
        name: (N if high else 0) if stated["kind"] == "numeric" else ("d" if high else "a")
        for name, stated in columns.items()
    }


def extreme(columns):
    """All at one corner of space, and one of them at the other."""
    low, high = ends(columns, high=False), ends(columns, high=True)
    before = pl.DataFrame([low] * N)
    return before, pl.concat([before.head(N - 1), pl.DataFrame([high], schema=before.schema)])


def shifted(columns):
    """The first becomes the last along the first column, and each group of k changes by one.

    The members that come and go lie at opposite ends of all other columns.
    """
    low, high = ends(columns, high=False), ends(columns, high=True)
    cells = [high if (i // K) % 2 and i % K == 0 else low for i in range(N)]
    first = next(iter(columns))
    before = pl.DataFrame([{**cell, first: i} for i, cell in enumerate(cells)])
    after = before.with_columns(pl.Series(first, [N, *range(1, N)]))
    return before, after


def turned(columns):
    """All agree in all columns; one that was the highest in all is now so in the first alone."""
    rows = [{name: i if stated["kind"] == "numeric" else "ad"[i > N // 2]
             for name, stated in columns.items()} for i in range(N)]  # fmt: skip
    before = pl.DataFrame(rows)
    first = next(iter(columns))
    last = {**ends(columns, high=False), first: N - 1}
    return before, pl.concat([before.head(N - 1), pl.DataFrame([last], schema=before.schema)])


def dirty(columns):
    """Cells that fit no domain, as texts; the one that changes decides every majority."""
    odd = {"numeric": ["3", "", "999", "word", "7"], "nominal": ["q", "r", "", "c", "d"]}
    rows = [
        {name: odd["numeric" if stated["kind"] == "numeric" else "nominal"][(i + j) % 5] or None
         for j, (name, stated) in enumerate(columns.items())}
        for i in range(N - 1)
    ]  # fmt: skip
    low, high = ({name: str(cell) for name, cell in ends(columns, high=side).items()}
                 for side in (False, True))  # fmt: skip
    schema = dict.fromkeys(columns, pl.String)
    return tuple(pl.DataFrame([*rows, last], schema=schema) for last in (low, high))


PAIRS = {"extreme": extreme, "shifted": shifted, "turned": turned, "dirty": dirty}
FORMS = {
    "laplace": {},
    "laplace, aligned": {"method": "laplace", "release_form": "row-aligned"},
    "ir-laplace": {"k": K, "release_form": "column-shuffled"},
    "insensitive-laplace": {"k": K},
    "insensitive-laplace, lexicographic": {
        "method": "insensitive-laplace", "k": K, "order": "lexicographic",
    },
    "privtree": {},
    "privtree, centroid": {"method": "privtree", "fill": "centroid"},
    "copula": {},
    "copula, tree": {"method": "copula", "margins": "tree"},
    "maxent": {},
    "dp-kdtree": {},
    "dp-quadtree": {},
    "dp-kdtree, boxes": {"method": "dp-kdtree", "output": "tree"},
    **{
        f"{method}, leaves": {"method": method, "levels": "leaves", "output": "tree",
                              "fit": "none", "height": 4}
        for method in ("dp-kdtree", "dp-quadtree")
    },
}  # fmt: skip


@pytest.mark.parametrize(("kinds", "pair"), [
    ("numbers", "extreme"), ("numbers", "shifted"), ("numbers", "turned"),
    ("mixed", "extreme"), ("mixed", "shifted"), ("mixed", "dirty"),
])  # fmt: skip
@pytest.mark.parametrize("case", FORMS)
def test_no_draw_of_a_method_costs_more_than_its_entry_states(mixed, case, kinds, pair):
    columns = NUMBERS if kinds == "numbers" else mixed
    protect = {"method": case, "epsilon": 1, **FORMS[case]}

    run = partial(released, columns=columns, protect=protect)

    share = holds(run, *PAIRS[pair](columns))
    # Insensitive groups pay for a change of each, which a single move does not make.
    assert share > (0 if "insensitive" in case else 0.3) or pair != "extreme"


@pytest.mark.parametrize("case", ["laplace", "privtree, centroid", "copula", "dp-kdtree"])
def test_the_one_who_has_the_largest_value_moves_nobody_else(case):
    """All are near one end but one: what follows the largest value follows that one."""
    low, high = dict.fromkeys(NUMBERS, 1), dict.fromkeys(NUMBERS, N)
    before, after = pl.DataFrame([low] * N), pl.DataFrame([*[low] * (N - 1), high])
    protect = {"method": case, "epsilon": 1, **FORMS[case]}

    assert holds(partial(released, columns=NUMBERS, protect=protect), before, after) > 0.2


@pytest.mark.parametrize("epsilon", [4, 8, 16])
def test_which_boxes_are_cut_follows_noisy_counts(epsilon):
    """With so little noise one record decides whether a box is worth another cut."""
    protect = {"method": "dp-quadtree", "epsilon": epsilon}
    run = partial(released, columns=NUMBERS, protect=protect)

    for pair in (extreme, turned):
        assert holds(run, *pair(NUMBERS), seeds=range(4)) > 0.1


@pytest.mark.parametrize("method", ["laplace", "ir-laplace", "ir-mdav-laplace", "mdav-laplace",
                                    "stable-laplace"])  # fmt: skip
def test_a_list_of_one_column_costs_what_its_entry_states(method):
    """Which group came first is not released, so that sums are matched by size."""
    columns = {"x": numeric()}
    protect = {"method": method, "epsilon": 1, "release_form": "linked-shuffled"}
    protect |= {} if method == "laplace" else {"k": K}

    for pair in (extreme, shifted):
        run = partial(released, columns=columns, protect=protect)
        assert holds(run, *pair(columns), laws=Laws(unordered=True)) > 0.3


@pytest.mark.parametrize("method", ["privtree", "copula", "maxent", "auto", "dp-kdtree",
                                    "dp-quadtree"])  # fmt: skip
def test_a_record_that_comes_or_goes_costs_what_the_entries_state(mixed, method):
    """The last one goes: all others keep their numbers in the file, and their priorities."""
    protect = {"method": method, "epsilon": 1, "neighbours": "add-remove"}
    kept = {name: {**column, "keep_missing": True} for name, column in NUMBERS.items()}
    for columns in (NUMBERS, mixed, kept):
        _, before = extreme(columns)
        run = partial(released, columns=columns, protect=protect)
        assert holds(run, before, before.head(N - 1), ADD) > 0.3


@pytest.mark.parametrize("neighbours", [CHANGE, ADD])
@pytest.mark.parametrize("spent", [{}, {"epsilon": None, "rho": 0.1}])
def test_a_record_that_breaks_a_rule_costs_what_the_entries_state(mixed, neighbours, spent):
    """It changes from or into one that keeps all rules, or comes or goes: rules are free."""
    rules = [
        "x < 4 implies rank = 'a'",
        "flat = 'a' implies tree = 'a'",
        "x >= 11 implies rank != 'a'",
    ]
    numbers = ["x <= y", "x + z <= 20"]
    for columns, stated, usual, odd in (
        (mixed, rules, ends(mixed, high=False), {"x": 1, "rank": "d", "tree": "d", "flat": "a"}),
        (NUMBERS, numbers, {"x": 3, "y": 6, "z": 2}, {"x": 12, "y": 8, "z": 12}),
    ):
        before = pl.DataFrame([usual] * N)
        after = pl.concat([before.head(N - 1), pl.DataFrame([odd], schema=before.schema)])
        protect = {"method": "auto", "epsilon": 1, "neighbours": str(neighbours), **spent}
        protect = {name: value for name, value in protect.items() if value is not None}
        run = partial(released, columns=columns, protect=protect, rules=stated)
        pair = (before, after) if neighbours is CHANGE else (after, after.head(N - 1))
        assert holds(run, *pair, neighbours, seeds=range(4)) > 0.2


@pytest.mark.parametrize("method", ["privtree", "copula", "maxent", "auto"])
def test_prices_of_those_who_come_or_go_add_up_to_the_claim(method):
    protect = {"method": method, "epsilon": 2, "neighbours": "add-remove"}
    entries, _ = released(extreme(NUMBERS)[1], SeededNoise(1), columns=NUMBERS, protect=protect)

    assert accounting.total(entries) == 2
    assert {entry.neighbours for entry in entries} == {ADD}


def without_missing(columns):
    """The columns without a place for missing cells, where a tree of few rows stops early."""
    return {name: {**column, "keep_missing": False} for name, column in columns.items()}


def persons(columns, rows, **stated):
    """The columns beside a person of so many rows, and two tables in which one person changes."""
    before, after = extreme(columns)
    low, high = before.head(N), pl.concat([after.tail(1)] * N)
    number = pl.Series("person", np.arange(N) // rows)
    after = pl.concat([low.head(N - rows), high.head(rows)])
    unit = {"person": {"role": "identifier", "privacy_unit": True, **stated}}
    return {**unit, **columns}, low.insert_column(0, number), after.insert_column(0, number)


@pytest.mark.parametrize(("method", "stated"), [
    ("laplace", "exact_contributions"), ("privtree", "exact_contributions"),
    ("maxent", "exact_contributions"), ("privtree", "max_contributions"),
    ("copula", "max_contributions"), ("dp-quadtree", "max_contributions"),
])  # fmt: skip
def test_all_rows_of_a_person_together_cost_what_the_entries_state(method, stated):
    columns, before, after = persons(without_missing(NUMBERS), 3, **{stated: 3})
    run = partial(released, columns=columns, protect={"method": method, "epsilon": 1})

    assert holds(run, before, after) > 0.3


@pytest.mark.parametrize("pair", ["extreme", "shifted", "turned"])
@pytest.mark.parametrize("case", ["ir-laplace", "insensitive-laplace",
                                  "insensitive-laplace, lexicographic"])  # fmt: skip
def test_r_rows_of_a_person_move_groups_no_more_than_the_entries_state(case, pair):
    """Two rows of the last person change; `extreme` by all there is to change."""
    columns, before, after = persons(NUMBERS, 2, exact_contributions=2)
    if pair != "extreme":
        one, other = PAIRS[pair](NUMBERS)
        number = before["person"]
        before, after = (table.insert_column(0, number) for table in (one, other))
    run = partial(released, columns=columns, protect={"method": case, "epsilon": 1, **FORMS[case]})

    # Insensitive groups pay for a change of each, which two moves do not make.
    assert holds(run, before, after) > (0.3 if case == "ir-laplace" and pair == "extreme" else 0)


def drawn_by_a_method(columns, protect):
    """A method without the pipeline around it, as a function of cells and noise."""
    planned = plan({"version": 1, "columns": columns, "protect": protect}, rows=N)
    setting = replace(planned.setting, rows=N)

    def run(cells, noise):
        frame = pl.DataFrame(dict(zip("xyz", cells.T, strict=True)))
        masked = planned.method.run(Table(frame, setting.schema, frame.schema), setting,
                                    Tools(noise))  # fmt: skip
        shown = masked.data.frame.select("x", "y", "z").rows()
        if setting.release_form is ReleaseForm.COLUMN_SHUFFLED:
            shown = [sorted(column) for column in zip(*shown, strict=True)]
        return contributions.restate_losses(masked.privacy_losses, setting), sorted(shown)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("case", "sharp"), [
    ("ir-laplace", 0.999), ("insensitive-laplace", 0.2),
    ("insensitive-laplace, lexicographic", 0.2), ("public-laplace", 0.999),
])  # fmt: skip
def test_no_person_of_20_000_costs_more_than_the_epsilon_of_the_policy(case, sharp):
    """Two rows of a person become any others: 10,000 pairs of tables for each of four ways to form
    groups, half of them the other way round, so 2 x 20,000 in all; losses are exact.
    """
    public = {"z": {"role": "other", "public": True, "kind": "numeric"}}
    numbers = NUMBERS if case != "public-laplace" else {**NUMBERS, **public}
    columns, *_ = persons(numbers, 2, exact_contributions=2)
    forms = {**FORMS, "public-laplace": {"k": K}}
    run = drawn_by_a_method(columns, {"method": case, "epsilon": 1, **forms[case]})
    largest = 0.0
    for seed in range(10_000):
        rng = np.random.default_rng(seed)
        before = rng.integers(0, N + 1, (N, 3))
        if seed % 3:
            before = np.where(before > N / 2, N, 0)
        after = before.copy()
        after[-2:] = rng.integers(0, N + 1, (2, 3)) if seed % 5 == 0 else N - before[-2:]
        if case == "public-laplace":
            after[:, 2] = before[:, 2]
        largest = max(largest, holds(run, before, after, seeds=[seed]))

    assert largest > sharp
    assert accounting.total(run(before, SeededNoise(1))[0]) == 1


@pytest.mark.parametrize("method", ["ir-laplace", "ir-mdav-laplace", "mdav-laplace",
                                    "stable-laplace"])  # fmt: skip
def test_r_rows_of_a_person_in_one_column_cost_what_its_entry_states(method):
    """The lists of a column, whose groups are blocks by rank; matched by size, as shown."""
    columns, before, after = persons({"x": numeric()}, 2, exact_contributions=2)
    protect = {"method": method, "epsilon": 1, "release_form": "linked-shuffled", "k": K}
    run = partial(released, columns=columns, protect=protect)

    assert holds(run, before, after, laws=Laws(unordered=True)) > 0.3


@pytest.mark.parametrize("method", ["kanon-dp", "pram"])
def test_confidential_cells_of_all_rows_of_a_person_cost_what_the_entries_state(method):
    """With shares held fixed for `pram`: two persons exchange their values, at twice the price."""
    values = {"s": nominal("confidential", **LEVELS)}
    columns, before, after = persons(values, 3, exact_contributions=3)
    if method == "pram":
        low, high = ends(values, high=False)["s"], ends(values, high=True)["s"]
        halves = [[low] * 3 + [high] * 3, [high] * 3 + [low] * 3]
        before, after = (
            before.with_columns(s=pl.Series(half + [low] * (N - 6))) for half in halves
        )
    keys = pl.Series("x", range(N))
    protect = {"method": method, "epsilon": 1, "k": K}
    run = partial(released, columns={"x": numeric(), **columns}, protect=protect)

    worst = worst_shares(run, before.with_columns(keys), after.with_columns(keys), CHANGE)
    assert 0.6 < max(worst.values()) <= (2 if method == "pram" else 1) + 1e-9


@pytest.mark.parametrize("method", ["privtree", "dp-quadtree"])
def test_rows_beyond_those_that_a_person_may_have_cost_nothing_more(method):
    """Five rows of a person become five others, of which two are looked at."""
    columns, before, after = persons(NUMBERS, 5, max_contributions=2)
    run = partial(released, columns=columns, protect={"method": method, "epsilon": 1})

    assert holds(run, before, after) > 0.2


@pytest.mark.parametrize("confidential", [
    {"s": nominal("confidential", **LEVELS)}, {"s": numeric("confidential")},
    {"s": nominal("confidential", **LEVELS), "t": numeric("confidential")},
])  # fmt: skip
def test_a_record_s_confidential_cells_cost_what_the_entries_state(confidential):
    keys = pl.DataFrame({"x": range(N)})
    before, after = (pl.concat([keys, f], how="horizontal") for f in extreme(confidential))
    protect = {"method": "kanon-dp", "epsilon": 1, "k": K}
    run = partial(released, columns={"x": numeric(), **confidential}, protect=protect)

    assert holds(run, before, after) > 0.9


def test_groups_of_public_columns_and_public_strata_cost_what_the_entries_state(mixed):
    keys = pl.DataFrame({"p": ["u", "v"] * (N // 2)})
    public = nominal("other", categories=["u", "v"], public=True)
    for columns in map(without_missing, (NUMBERS, mixed)):
        tables = [pl.concat([keys, f], how="horizontal") for f in extreme(columns)]
        for protect in ({"method": "public-laplace", "k": K},
                        {"method": "public-laplace", "group_by": "p"},
                        {"method": "privtree", "strata": "p"},
                        {"method": "maxent", "strata": "p"}):  # fmt: skip
            run = partial(released, columns={"p": public, **columns},
                          protect={"epsilon": 1, **protect})  # fmt: skip
            assert holds(run, *tables) > 0.2


# Ways through mechanisms that take more rows than a test of the pipeline has.

FOUR = [Domain("a", Kind.NUMERIC, 9), *(Domain(c, Kind.NOMINAL, 3) for c in "bcd")]
GAPS = [Domain("a", Kind.NUMERIC, 9, gap=True), Domain("b", Kind.NOMINAL, 3, gap=True),
        Domain("c", Kind.ORDINAL, 5)]  # fmt: skip
LONG = [Domain("a", Kind.ORDINAL, 300), *FOUR[1:]]


def paths(attributes, n):
    """Ways of `maxent`: pairs over finer groups, or tables of three columns."""
    chosen = maxent_plan(attributes, n=n, epsilon=Fraction(1))
    half = (1 - chosen.one_way_share) / 2
    nothing = {"fine_pairs": 0, "fine_share": Fraction(0)}
    threes = replace(chosen, three_way=1, three_way_share=half, **nothing)
    fine = replace(chosen, groups=2, fine_pairs=2, fine_groups=9, fine_cells=n,
                   fine_share=half / 4)  # fmt: skip
    return {"fine": fine, "threes": threes, "plain": chosen}


def drawn(codes, noise, *, mechanism, attributes, price=WHOLE, **more):
    made = mechanism(codes, attributes, price=price, noise=noise,
                     rng=np.random.default_rng(0), **more)  # fmt: skip
    rows = [row.tolist() for row in made.rows]
    measured = [(m.columns, m.counts.tolist()) for m in made.measurements]
    return made.privacy_losses, repr((rows, measured, made.facts))


def corners(attributes, n):
    """All at one corner, and one of them at the other."""
    before = [np.zeros(n, dtype=np.int64) for _ in attributes]
    return before, [np.append(column[1:], attribute.size - 1)
                    for column, attribute in zip(before, attributes, strict=True)]  # fmt: skip


@pytest.mark.parametrize("attributes", [FOUR, GAPS, LONG], ids=["four", "gaps", "long"])
@pytest.mark.parametrize("path", ["fine", "threes", "plain"])
def test_no_draw_of_maxent_costs_more_than_its_entry_states(attributes, path):
    run = partial(drawn, mechanism=maxent, attributes=attributes,
                  plan=paths(attributes, N)[path])  # fmt: skip

    assert holds(run, *corners(attributes, N)) > 0.3
    assert accounting.total(run(corners(attributes, N)[0], SeededNoise(1))[0]) == 1


@pytest.mark.parametrize("way", [
    (privtree, {"fill": Fill.UNIFORM}), (privtree, {"fill": Fill.CENTROID}),
    (copula, {"margins": Margins.TREE}),
], ids=["uniform", "centroid", "copula"])  # fmt: skip
@pytest.mark.parametrize("attributes", [FOUR, GAPS], ids=["four", "gaps"])
def test_no_draw_of_a_mechanism_costs_more_than_its_entry_states(attributes, way):
    mechanism, more = way
    run = partial(drawn, mechanism=mechanism, attributes=attributes, **more)

    assert holds(run, *corners(attributes, 40)) > 0.3


def gone(attributes, n):
    """All at one corner and one at the other, and the table without that one."""
    _, after = corners(attributes, n)
    return after, [column[:-1] for column in after]


@pytest.mark.parametrize("attributes", [FOUR, GAPS, LONG], ids=["four", "gaps", "long"])
@pytest.mark.parametrize("path", ["fine", "threes", "plain", "own"])
def test_a_record_that_comes_or_goes_costs_what_the_entries_of_maxent_state(attributes, path):
    """The plan, which the noisy number decides, is the same for both tables."""
    plan = paths(attributes, N).get(path)
    run = partial(drawn, mechanism=maxent, attributes=attributes, plan=plan,
                  price=Price(Fraction(1), ADD), total=RecordTotal(N + 0.4, 9.0))  # fmt: skip

    assert holds(run, *gone(attributes, N), ADD) > 0.3
    assert accounting.total(run(gone(attributes, N)[0], SeededNoise(1))[0]) == 1


@pytest.mark.parametrize("fill", list(Fill))
@pytest.mark.parametrize("attributes", [FOUR, GAPS], ids=["four", "gaps"])
def test_a_record_that_comes_or_goes_costs_what_the_entries_of_a_tree_state(attributes, fill):
    run = partial(drawn, mechanism=privtree, attributes=attributes, fill=fill,
                  price=Price(Fraction(1), ADD), total=RecordTotal(40.4, 9.0))  # fmt: skip

    assert holds(run, *gone(attributes, 40), ADD) > 0.3


@pytest.mark.parametrize("attributes", [FOUR, GAPS, LONG], ids=["four", "gaps", "long"])
@pytest.mark.parametrize("path", ["fine", "threes", "plain", "own"])
@pytest.mark.parametrize("neighbours", [CHANGE, ADD])
def test_what_moves_costs_the_rho_that_the_entries_state(attributes, path, neighbours):
    """Squared moves over twice the variance, and ranges of choices: no run exceeds its entries."""
    price = Price(Fraction(1, 10), neighbours, PrivacyMeasure.RHO)
    total = RecordTotal(N + 0.4, 9.0) if neighbours is ADD else None
    run = partial(drawn, mechanism=maxent, attributes=attributes, price=price, total=total,
                  plan=paths(attributes, N).get(path))  # fmt: skip
    pair = gone(attributes, N) if neighbours is ADD else corners(attributes, N)

    assert holds(run, *pair, neighbours, seeds=range(4)) > 0.9
    entries = run(pair[0], SeededNoise(1))[0]
    assert accounting.total(entries, measure=PrivacyMeasure.RHO) == Fraction(1, 10)
    assert {entry.mechanism for entry in entries} >= {GAUSSIAN}


@pytest.mark.parametrize("fill", list(Fill))
@pytest.mark.parametrize("neighbours", [CHANGE, ADD])
def test_a_tree_costs_the_rho_that_its_entries_state(fill, neighbours):
    price = Price(Fraction(1, 10), neighbours, PrivacyMeasure.RHO)
    total = RecordTotal(40.4, 9.0) if neighbours is ADD else None
    run = partial(drawn, mechanism=privtree, attributes=GAPS, fill=fill, price=price, total=total)
    pair = gone(GAPS, 40) if neighbours is ADD else corners(GAPS, 40)

    assert holds(run, *pair, neighbours) > 0.9


@pytest.mark.parametrize("price", [Price(Fraction(1)), Price(Fraction(1, 10), CHANGE, RHO)],
                         ids=["epsilon", "rho"])  # fmt: skip
def test_a_sum_moves_by_the_whole_width_of_its_leaf(price):
    """Nothing is split, so one leaf has all, and a record goes from one end of it to the other."""
    run = partial(drawn, mechanism=privtree, attributes=FOUR, fill=Fill.CENTROID, price=price,
                  theta=10**6)  # fmt: skip

    assert holds(run, *corners(FOUR, 40)) > 0.9


MANY = {f"c{j}": nominal(**LEVELS) for j in range(10)}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("neighbours", ["change-one", "add-remove"])
def test_a_release_with_a_delta_costs_the_rho_of_its_claim(neighbours, rows):
    """Also for all rows of a person together, which cost the square of their number."""
    before, after = extreme(MANY)
    columns = MANY
    if rows > 1:
        columns, before, after = persons(MANY, rows, exact_contributions=rows)
    if neighbours == "add-remove":
        before = after.head(N - rows)
    method = "maxent" if rows == 1 else "auto"
    protect = {"method": method, "epsilon": 1, "delta": 1e-9, "neighbours": neighbours}
    run = partial(released, columns=columns, protect=protect)

    assert holds(run, before, after, Neighbours(neighbours), seeds=range(4)) > 0.5
    entries = run(after, SeededNoise(1))[0]
    rho = rho_of(Fraction(1), Fraction(1, 10**9))
    assert accounting.total(entries, measure=PrivacyMeasure.RHO) == rho
    assert accounting.total(entries, neighbours=CHANGE, measure=PrivacyMeasure.RHO) == (
        rho if neighbours == "change-one" else 4 * rho
    )


class Leftmost(SeededNoise):
    """Answers that split the first node of every level and no other, however unlikely.

    Losses are exact for every answer, whatever its probability.
    """

    def exceeds(self, values, *, threshold, scale):
        super().exceeds(values, threshold=threshold, scale=scale)  # for the account of draws
        return np.arange(values.size) == 0


@pytest.mark.parametrize("n", [1, 2, 6])
def test_a_path_that_is_split_to_the_end_costs_what_its_entry_states(n):
    """Sixteen halvings around one person, who is there or at the other end of space.

    Of six people the first half has more than its penalty, and of five it has not.
    """
    attributes = [Domain("a", Kind.NUMERIC, 1 << 16)]
    run = partial(drawn, mechanism=privtree, attributes=attributes, fill=Fill.UNIFORM)

    assert holds(run, *corners(attributes, n), noise=Leftmost) > 0.3
    added = partial(run, price=Price(Fraction(1), ADD), total=RecordTotal(5.0, 9.0))
    assert holds(added, *gone(attributes, n + 1), ADD, noise=Leftmost) > 0.3


@pytest.mark.parametrize("method", ["dp-quadtree", "dp-kdtree"])
def test_a_counted_column_costs_what_its_entry_states(method):
    columns = {"x": numeric(), "s": nominal("confidential", **LEVELS)}
    run = partial(released, columns=columns, protect={"method": method, "epsilon": 1})

    assert holds(run, *extreme(columns)) > 0.3


@pytest.mark.parametrize("neighbours", [CHANGE, ADD])
@pytest.mark.parametrize("method", ["dp-quadtree", "dp-kdtree"])
def test_leaves_alone_cost_all_that_the_entries_state_and_no_more(method, neighbours):
    """The tree of the 2013 paper: one draw on the histograms, which has all that medians leave."""
    columns = {"x": numeric(), "y": numeric(), "s": nominal("confidential", **LEVELS)}
    protect = {"epsilon": 1, "neighbours": str(neighbours), **FORMS[f"{method}, leaves"]}
    run = partial(released, columns=columns, protect=protect)
    before, after = extreme(columns)
    pair = (before, after) if neighbours is CHANGE else (after, after.head(N - 1))

    assert holds(run, *pair, neighbours) > 0.999
    entries, _ = run(after, SeededNoise(1))
    assert accounting.total(entries, neighbours=neighbours) == 1
    assert entries[-1].target == "counts of values in boxes"
    times = 2 if neighbours is CHANGE else 1
    assert times * entries[-1].epsilon == (1 if method == "dp-quadtree" else Fraction(7, 10))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", [CHANGE, ADD])
@pytest.mark.parametrize("structure", [Fraction(0), Fraction(3, 10)])
def test_no_run_of_20_000_with_leaves_alone_loses_more_than_the_entries_state(
    structure, neighbours
):
    """2 x 20,000 runs: of each relation 10,000 with each sort of cut, both ways; exact losses."""
    design = Design(Fraction(1), 3, structure=structure, leaves_only=True)
    cells = np.array([[0, 0], [0, 7], [7, 0], [7, 7], [3, 4], [0, 0]])
    values = np.array([0, 1, 2, 0, 1, 2])

    def run(rows, noise):
        tree = grow(cells[rows], [SpatialAxis(8)] * 2, values=values[rows], bins=3,
                    root=UNKNOWN_TOTAL, design=design, noise=noise)  # fmt: skip
        return tree.privacy_losses, (tree.lower.tolist(), tree.estimates(CountFit.NONE)[1].tolist())

    first, other = np.array([0, 1, 2, 4]), np.array([0, 1, 2, 3])
    pair = (first, other) if neighbours is CHANGE else (first, first[:-1])

    assert holds(run, *pair, neighbours, seeds=range(10_000)) > 0.999


def test_a_height_follows_the_noisy_number():
    """Of 12 and of 11 rows the public rule would make trees of three and of two cuts."""
    protect = {"method": "dp-quadtree", "epsilon": 0.72, "neighbours": "add-remove"}
    before, _ = extreme(NUMBERS)
    run = partial(released, columns=NUMBERS, protect=protect)

    assert holds(run, before, before.head(N - 1), ADD) > 0.3


def test_a_nominal_first_in_a_lexicographic_order_pays_for_every_group():
    """One leaves the first group and one enters the last, so that all four change."""
    columns = {"flat": nominal(**LEVELS), "x": numeric()}
    cells = [level for level in "abcd" for _ in range(K)]
    before = pl.DataFrame({"flat": cells, "x": [0] * N})
    after = pl.DataFrame({"flat": [*cells[1:], "d"], "x": [0] * N})
    protect = {"method": "insensitive-laplace", "epsilon": 2, "k": K, "order": "lexicographic"}
    run = partial(released, columns=columns, protect=protect)

    assert holds(run, before, after, seeds=range(40)) > 0.1
