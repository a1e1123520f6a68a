"""Kinds, categories and bounds that a policy leaves to be found with noise."""

import json
from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import analysis, engine
from shoal.auditing.privacy_losses import replay
from shoal.core import Kind, Neighbours, Price, PrivacyMeasure
from shoal.errors import ClaimViolationError, InputError
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.hazmat.noise import OpenDPNoise
from shoal.mechanism.unknown_domains import STEPS
from shoal.methods import cell_keys, discovery
from shoal.methods.cell_keys import Question, count_keys
from shoal.methods.discovery import Discovery, discover
from shoal.pipeline import booking, planning
from shoal.policy import load
from shoal.policy.draft import draft_from_header

DELTA = {"epsilon": 1, "delta": 1e-9}
NAMES = ("age", "pay", "town", "seen")


def stated(columns=None, **protect):
    columns = columns or {name: {"role": "quasi-identifier", "kind": "discover"} for name in NAMES}
    return {
        "version": 1,
        "one_row_per_person": True,
        "columns": columns,
        "protect": {"method": "auto", **(protect or DELTA)},
    }


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2021-03-01") + rng.integers(0, 600, n).astype("timedelta64[D]")
    return pl.DataFrame(
        {
            "age": rng.integers(18, 95, n),
            "pay": np.round(rng.lognormal(10, 1, n), 2),
            "town": rng.choice(["Aber", "Brig", "Coln"], n, p=[0.6, 0.3, 0.1]),
            "seen": pl.Series(days).cast(pl.Date),
        }
    )


DAY = date(2020, 1, 31)
CELLS = {
    "age": st.integers(-5, 120) | st.none(),
    "pay": st.floats(-1e6, 1e9) | st.none(),
    "town": st.sampled_from(["Aber", "Brig", "Coln", "only me", "", "  ", "0123", "1e5", "=1"])
    | st.none(),
    "seen": st.dates(date(1, 1, 1), date(9999, 12, 31)) | st.none(),
}
TYPES = {"age": pl.Int64, "pay": pl.Float64, "town": pl.String, "seen": pl.Date}


@st.composite
def tables(draw, least=1):
    n = draw(st.integers(least, 12))
    columns = {
        name: pl.Series(draw(st.lists(cells, min_size=n, max_size=n)), dtype=TYPES[name])
        for name, cells in CELLS.items()
    }
    return pl.DataFrame(columns)


def asked(neighbours=Neighbours.ADD_REMOVE, *, rows=1, measure=PrivacyMeasure.RHO, delta=1e-9):
    schema = load(stated()).schema
    price = Price(Fraction(1, 100), neighbours, measure)
    return Discovery(schema.columns, price, Fraction(str(delta)), rows)


# Privacy


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("changed", [False, True])
@given(frame=tables(least=4), data=st.data(), price=st.sampled_from([Fraction(1, 100), 100]))
@settings(max_examples=40)
def test_no_pair_of_neighbours_costs_more_than_the_price(rows, changed, frame, data, price):
    person, rest = frame[:rows], frame[rows:]
    if changed:
        other = data.draw(tables(least=rows)).head(rows)
        before, after = pl.concat([person, rest]), pl.concat([rest, other])
        search = asked(Neighbours.CHANGE_ONE, rows=rows)
    else:
        before, after = frame, rest
        search = asked(rows=rows)
    search = replace(search, price=replace(search.price, amount=Fraction(price)))

    found = replay(
        lambda table, noise: discover(search, partial(count_keys, table), noise),
        before, after, OpenDPNoise(threads=1),
    )  # fmt: skip

    # A text that one of them alone has is no rho; where noise is small, it is hardly unseen.
    lost = sum(rho for draw, rho in found.rhos.items() if draw[0] != "gaussian-threshold")
    texts = sum(rho for draw, rho in found.rhos.items() if draw[0] == "gaussian-threshold")
    spent = float(price * (1 - found.first.left))
    assert lost + (texts if price < 1 else 0) <= spent * (1 + 1e-9)
    if found.second is not None:  # what is found follows from the answers alone
        assert found.first.facts == found.second.facts


def test_the_delta_is_shared_by_all_columns_that_may_hold_texts():
    planned = planning.plan(stated())
    (claim,) = planned.claims

    asked_for = discovery.plan_discovery(planned.setting, claim.guarantee, None)

    assert asked_for.delta_of_all == claim.guarantee.delta / 2
    assert asked_for.delta * len(NAMES) == asked_for.delta_of_all
    assert asked_for.price.amount == claim.guarantee.rho


@given(
    size=st.floats(0, 1e9),
    amount=st.fractions(Fraction(1, 1000), 10),
    kinds=st.lists(st.sampled_from(Kind), min_size=1, max_size=9),
)
def test_shares_fall_with_rows_and_price_and_leave_most_for_the_rows(size, amount, kinds):
    columns = [replace(asked().columns[0], name=f"c{n}", kind=kind) for n, kind in enumerate(kinds)]
    search = replace(asked(), price=replace(asked().price, amount=amount))
    richer = replace(search, price=search.price * 2)

    shares = search.divide(columns, size)

    total = sum(shares.values())
    assert discovery.LEAST_SHARE <= total <= discovery.MOST_SHARE
    assert sum(search.divide(columns, 2 * size).values()) <= total
    assert sum(richer.divide(columns, size).values()) <= total


def test_the_share_follows_a_noisy_number_of_rows():
    """Of one table, other draws give other shares."""
    search = replace(asked(), price=replace(asked().price, amount=Fraction(1, 10)))
    count = partial(count_keys, people(60_000))

    left = {discover(search, count, SeededNoise(seed)).left for seed in range(4)}

    assert len(left) == 4


def test_ranges_follow_noisy_counts():
    """Where noise is larger than the table, other draws find other ranges."""
    columns = {"pay": {"role": "quasi-identifier", "kind": "numeric", "bounds": "discover"}}
    price = replace(asked().price, amount=Fraction(1, 100_000))
    search = replace(asked(), columns=load(stated(columns)).schema.columns, price=price)
    count = partial(count_keys, people(50))

    found = [discover(search, count, SeededNoise(seed)).facts["pay"] for seed in range(6)]

    assert len({str(facts) for facts in found}) > 3


def test_what_the_first_answers_decide_adds_up_to_the_price():
    """The share follows from noisy answers; what is spent and what is left are the price."""
    search = replace(asked(), price=replace(asked().price, amount=Fraction(1)))
    shares = set()
    for n in (300, 3000, 30_000):
        found = discover(search, partial(count_keys, people(n)), SeededNoise(1))

        spent = sum(loss.rho for loss in found.privacy_losses)
        assert spent <= 1 - found.left
        assert spent > (1 - found.left) * Fraction(99, 100)
        shares.add(found.left)
    assert len(shares) > 1


def test_no_more_rows_of_a_person_are_asked_than_stated():
    rows = pl.DataFrame({"id": [1] * 50 + [2, 3], "town": [f"t{n}" for n in range(52)]})
    columns = {
        "id": {"role": "identifier", "privacy_unit": True, "max_contributions": 3},
        "town": {"role": "quasi-identifier", "kind": "discover"},
    }
    policy = load({key: value for key, value in stated(columns).items() if key[:3] != "one"})
    how = engine.Adoption(schema=policy.schema, clamped=("town",), decimal=None, key=5)
    seen = []

    def search(count):
        question = Question("town", partial(cell_keys.text_keys, column=policy.schema["town"]))
        seen.extend(count([question])[0])
        return discovery.Discovered()

    engine.source(rows).ask(how, search)

    assert len(set(seen) & {f"t{n}" for n in range(50)}) == 3
    assert {"t50", "t51"} <= set(seen)


@given(frame=tables(least=4))
@settings(max_examples=15)
def test_no_pair_costs_more_in_epsilon_where_no_texts_are_asked(frame):
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": "discover"},
        "seen": {"role": "quasi-identifier", "kind": "date", "bounds": "discover"},
    }
    schema = load(stated(columns, epsilon=1)).schema
    search = Discovery(schema.columns, Price(Fraction(1), Neighbours.ADD_REMOVE), Fraction(0), 1)

    found = replay(
        lambda table, noise: discover(search, partial(count_keys, table), noise),
        frame, frame[1:], OpenDPNoise(threads=1),
    )  # fmt: skip

    assert sum(found.losses.values()) <= 2 + 1e-9


@pytest.mark.parametrize("rows", [1, 20])
def test_a_text_of_one_person_appears_with_probability_delta_at_most(rows):
    """Binomial with 10,000 draws at delta 1e-3 against 32: false alarms below 1e-6."""
    search = replace(asked(rows=rows, delta=1e-3), columns=asked().columns[2:3])
    table = pl.DataFrame({"town": ["Aber"] * 5000 + ["only me"] * rows})
    counts = count_keys(table, [Question("town", partial(
        cell_keys.text_keys, column=search.columns[0]))])[0]  # fmt: skip
    price = search.price * Fraction(7, 8)
    noise = SeededNoise(7)

    times = Counter()
    for _ in range(10_000):
        keys, loss = discovery.unknown.find_keys(
            counts, rows=rows, price=price, delta=search.delta, target="town", noise=noise
        )
        times.update(list(keys))

    assert times["Aber"] > 9_500
    assert 0 < loss.delta <= Fraction(1, 1000)
    assert times["only me"] <= 32


@given(frame=tables(least=2), odd=tables(least=1))
@settings(max_examples=25)
def test_an_odd_record_changes_the_reading_of_no_other(frame, odd):
    """Every key is a function of its cell: those of a column are those of its cells."""
    both = pl.concat([frame, odd])

    for question in questions(load(stated()).schema):
        alone = [
            question.keys(both[at : at + 1][question.column]).item() for at in range(len(both))
        ]

        assert question.keys(both[question.column]).to_list() == alone


@given(
    st.lists(
        st.sampled_from(["1", "1.5", "x", "2020-01-31", None, 7, 2.5, True, DAY, "07"]),
        min_size=2, max_size=8,
    )
)  # fmt: skip
@settings(max_examples=25)
def test_cells_of_python_objects_are_read_one_by_one(cells):
    """In pandas one text makes objects of a column; each cell is still read by itself."""
    columns = {"town": {"role": "quasi-identifier", "kind": "discover"}}
    schema = load(stated(columns, **DELTA)).schema
    both = as_read(cells)

    for question in questions(schema):
        alone = [question.keys(as_read([cell])["town"]).item() for cell in cells]

        assert question.keys(both["town"]).to_list() == alone


def as_read(cells):
    """As a release with an epsilon reads pandas."""
    table = pd.DataFrame({"town": pd.Series(cells, dtype=object)})
    return shoal.io.from_native(table, alone=True).frame


def questions(schema):
    for column in schema.columns:
        bare = replace(column, categories=None)
        number = replace(bare, kind=Kind.NUMERIC)
        yield Question(column.name, partial(cell_keys.kind_keys, column=column, decimal=None))
        yield Question(column.name, partial(cell_keys.text_keys, column=column))
        for keys in (cell_keys.magnitude_keys, cell_keys.step_keys):
            yield Question(column.name, partial(keys, column=number, decimal=None))
        day = replace(bare, kind=Kind.DATE)
        yield Question(column.name, partial(cell_keys.month_keys, column=day))


# After the draw


@pytest.mark.parametrize("neighbours", ["change-one", "add-remove"])
@given(
    frame=tables(),
    added=st.lists(st.sampled_from([-(10**6), -1, 0, 1, 500]), min_size=1, max_size=6),
)
@settings(max_examples=8)
def test_whatever_is_found_rows_are_drawn_and_lie_in_it(neighbours, frame, added):
    release = shoal.protect(
        frame, stated(**DELTA, neighbours=neighbours), noise=RecordingNoise(added)
    )

    for name, facts in release.manifest.found.items():
        values = release.data[name].drop_nulls()
        if facts["kind"] == "nominal":
            assert set(values) <= set(facts["categories"])
        elif facts["kind"] == "numeric":
            low, high = facts["bounds"]
            slack = 1e-9 * max(abs(low), abs(high))
            assert values.is_between(low - slack, high + slack).all()
        else:
            low, high = map(date.fromisoformat, facts["bounds"])
            assert values.is_between(low, high).all()


def test_what_is_found_is_near_what_is_there():
    noise = SeededNoise(3)
    found = shoal.protect(people(40_000), stated(epsilon=4, delta=1e-9), noise=noise).manifest.found

    assert found["age"]["kind"] == "numeric"
    assert found["age"]["step"] == 1
    assert 10 <= found["age"]["bounds"][0] <= 20
    assert 90 <= found["age"]["bounds"][1] <= 112
    assert found["pay"]["transform"] == "log"
    assert found["pay"]["step"] == 0.01
    assert found["town"]["categories"] == ["Aber", "Brig", "Coln", "other"]
    assert found["seen"]["bounds"] == ["2021-03-01", "2022-10-31"]


@pytest.mark.parametrize(
    ("cells", "kind", "form"),
    [
        (["31.12.2020", "01.02.2021"], "date", "%d.%m.%Y"),
        (["12/31/2020", "01/02/2021"], "date", "%m/%d/%Y"),
        (["31/12/2020", "01/02/2021"], "date", "%d/%m/%Y"),
        (["2020-12-31", "2021-02-01"], "date", None),
        (["01234", "00777"], "nominal", None),
        (["3", "4"], "numeric", None),
        (["yes", "no"], "nominal", None),
    ],
)
def test_the_kind_is_that_of_most_cells(cells, kind, form):
    table = pl.DataFrame({"x": cells * 2000})
    columns = {"x": {"role": "quasi-identifier", "kind": "discover"}}

    policy = stated(columns, epsilon=2, delta=1e-9)
    facts = shoal.protect(table, policy, noise=SeededNoise(4)).manifest.found["x"]

    assert facts["kind"] == kind
    assert facts.get("date_format") == form


@pytest.mark.parametrize("file_format", ["csv", "xlsx", "sav", "dta", "parquet"])
def test_texts_that_are_found_survive_every_format(tmp_path, file_format):
    """SPSS keeps no blank at the end of a text."""
    odd = [
        "  two ",
        "end\u00a0",
        " ",
        "=1",
        "'q'",
        '"q"',
        "a,b;c",
        "01",
        "1.0",
        "other",
        "é",
        "#N",
        "\t",
    ]
    table = pl.DataFrame({"town": odd * 300, "kin": ["ledig"] * 300 * len(odd)})
    columns = {name: {"role": "quasi-identifier", "kind": "discover"} for name in table.columns}

    release = shoal.protect(table, stated(columns), noise=RecordingNoise())
    release.write(tmp_path / "release", file_format=file_format)

    assert set(odd) - set(release.manifest.found["town"]["categories"]) == {
        "  two ", "end\u00a0", " ", "\t"
    }  # fmt: skip
    assert shoal.verify(tmp_path / "release").holds


def test_a_release_of_pandas_with_days_and_missing_whole_numbers_is_written_and_verifies(tmp_path):
    """pandas has neither: as times and floats they would not be those of the manifest."""
    cells = [None, 2**60 + 1, *range(40)] * 50
    table = people(len(cells)).select("seen", "town").to_pandas()
    table["age"] = pd.Series(cells, dtype="Int64")
    columns = {
        "seen": {"role": "quasi-identifier", "kind": "date", "bounds": "discover"},
        "town": {"role": "quasi-identifier", "categories": "discover", "kind": "nominal"},
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": "discover",
                "step": 1, "keep_missing": True},
    }  # fmt: skip

    release = shoal.protect(table, stated(columns))
    release.write(tmp_path / "release")

    assert release.data["age"].isna().any()
    assert shoal.verify(tmp_path / "release").holds


def test_the_share_beyond_a_range_of_dates_is_not_noise():
    """Of 40,000 dates none lies beyond; the deviation is 0.002, and 0.05 25 of them."""
    columns = {"seen": {"role": "quasi-identifier", "kind": "date", "bounds": "discover"}}
    table = people(40_000).select("seen")
    release = shoal.protect(table, stated(columns), noise=SeededNoise(2))

    assert release.manifest.found["seen"]["outside"] < 0.05


def test_a_flat_column_of_many_years_is_not_taken_for_noise():
    """In 8,000 dates of 68 years, each year has less than the noise of one and of a few."""
    days = np.datetime64("1940-01-01") + np.arange(8000).astype("timedelta64[D]") * 3
    table = pl.DataFrame({"seen": pl.Series(days).cast(pl.Date)})
    columns = {"seen": {"role": "quasi-identifier", "kind": "date", "bounds": "discover"}}
    search = replace(asked(), columns=load(stated(columns)).schema.columns)
    price = Price(Fraction(10, 3500), Neighbours.CHANGE_ONE, search.price.measure)
    search = replace(search, price=price, size=8000)

    shares = []
    for seed in range(10):
        found = discover(search, partial(count_keys, table), SeededNoise(seed))
        low, high = map(date.fromisoformat, found.facts["seen"]["bounds"])
        shares.append(table["seen"].is_between(low, high).mean())

    assert np.mean(shares) > 0.6


def test_what_is_found_is_said_in_sentences():
    found = discovery.Discovered(facts={
        "age": {"kind": "numeric", "bounds": [4, 7], "step": 1, "outside": 0.321},
        "seen": {"kind": "date", "bounds": ["2021-01-01", "2021-12-31"], "outside": 0.0},
        "town": {"kind": "nominal", "categories": ["Aber", "other"], "other": "other"},
        "code": {"kind": "nominal", "categories": ["other"], "other": "other"},
    })  # fmt: skip

    assert discovery.describe(found) == (
        (
            "Found with noise: 'age' has numbers from 4 to 7 in steps of 1; about 32.1% lie beyond "
            "and count as its ends."
        ),
        "Found with noise: 'seen' has dates from 2021-01-01 to 2021-12-31.",
        "Found with noise: 1 text of 'town'; all others are 'other'.",
        "Found with noise: no text of 'code' is frequent enough; all are 'other'.",
    )


def test_where_nothing_is_found_the_only_category_is_everybodys(tmp_path):
    table = pl.DataFrame({"town": [f"t{n}" for n in range(400)]})
    columns = {"town": {"role": "quasi-identifier", "kind": "nominal", "categories": "discover"}}
    for neighbours in ("change-one", "add-remove"):
        release = shoal.protect(table, stated(columns, **DELTA, neighbours=neighbours))
        release.write(tmp_path / neighbours)

        assert analysis.proportion(tmp_path / neighbours, "town", "other").estimate == 1


# What is promised


def test_a_release_of_a_strangers_file_is_proved_and_verifies(tmp_path):
    """Of 40,000 ages the kind is missed by 11 standard deviations of noise."""
    people(40_000).write_csv(tmp_path / "people.csv")
    drafted = draft_from_header(tmp_path / "people.csv", epsilon="1", delta="1e-9")
    (tmp_path / "policy.toml").write_text(drafted.text)

    release = shoal.protect(tmp_path / "people.csv", tmp_path / "policy.toml")
    release.write(tmp_path / "release")

    (claim,) = release.claims
    assert claim.status == "proved"
    assert claim.guarantee.delta == Fraction(1, 10**9)
    assert claim.basis.startswith(discovery.BASIS)
    assert discovery.STATED in claim.assumes
    spent = [loss for loss in release.privacy_losses if loss.delta]
    assert sum(loss.delta for loss in spent) <= Fraction(1, 2 * 10**9)
    assert shoal.verify(tmp_path / "release").holds
    assert analysis.mean(tmp_path / "release", "age").estimate == pytest.approx(56, abs=6)


def test_a_table_without_a_policy_needs_no_more_than_epsilon_and_delta():
    release = shoal.protect(people(), epsilon=1, delta=1e-9)

    assert release.claims[0].status == "proved"
    assert set(release.manifest.found) == set(NAMES)
    assert 'kind = "discover"' in release.policy


@pytest.mark.parametrize("other", [{"k": 5}, {"keep": ["age"]}, {"template": "safe-harbor"}])
def test_what_drafts_groups_is_refused_beside_an_epsilon(other):
    with pytest.raises(InputError, match="protects each person by noise"):
        shoal.protect(people(), epsilon=1, delta=1e-9, **other)
    with pytest.raises(InputError, match=r"such as 1e-9, they are discovered"):
        shoal.protect(people(), epsilon=1)
    with pytest.raises(InputError, match="delta"):
        shoal.protect(people(), delta=1e-9)


def test_a_column_that_numbers_persons_is_the_unit_and_one_row_of_each_is_used():
    table = people().with_columns(patient_nr=pl.Series(np.arange(4000) // 2))

    release = shoal.protect(table, epsilon=1, delta=1e-9)

    assert release.claims[0].guarantee.privacy_unit == "person"
    assert "patient_nr" not in release.data.columns
    assert release.data.height < 3000


def test_a_changed_finding_in_a_manifest_does_not_verify(tmp_path):
    shoal.protect(people(), stated()).write(tmp_path / "release")
    path = tmp_path / "release" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["found"]["town"]["categories"].remove("Aber")
    path.write_text(json.dumps(manifest))

    assert not shoal.verify(tmp_path / "release").holds


@pytest.mark.parametrize(
    ("keys", "protect", "words"),
    [
        ({"kind": "discover"}, {"epsilon": 1}, "cannot be discovered for a pure epsilon or a rho"),
        ({"kind": "discover"}, {"rho": 0.1}, "State a delta beside epsilon"),
        ({"kind": "nominal", "categories": "discover"}, {"epsilon": 1}, "will do"),
        ({"kind": "discover"}, {"method": "mdav", "k": 5}, "These methods discover them: "),
        ({"kind": "discover"}, {"method": "laplace", "epsilon": 1}, "must be stated"),
        ({"kind": "ordinal", "categories": "discover"}, DELTA, "finds no order"),
        ({"kind": "discover", "observed": True}, DELTA, "expected no 'observed'"),
        ({"kind": "numeric", "bounds": "discover", "top_code": 5}, DELTA, "no 'top_code'"),
        ({"kind": "discover", "step": 1}, DELTA, "expected 'step' only on a numeric column"),
    ],
)
def test_what_cannot_be_discovered_is_refused_in_a_sentence(keys, protect, words):
    columns = {"town": {"role": "quasi-identifier", **keys}}

    with pytest.raises(InputError, match=words):
        planning.plan(stated(columns, **protect))


def test_a_rule_on_a_column_that_nobody_knows_is_refused():
    policy = stated() | {"constraints": {"rules": ["age < 15 implies pay = 0"]}}
    policy["columns"]["age"] = {"role": "quasi-identifier", "kind": "numeric", "bounds": "discover"}
    policy["columns"]["pay"] = {"role": "confidential", "kind": "numeric", "bounds": [0, 10]}

    with pytest.raises(InputError, match="and a rule of"):
        planning.plan(policy)


def test_bounds_may_be_found_for_a_pure_epsilon_by_every_method_that_draws_rows():
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": "discover", "step": 1},
        "seen": {"role": "quasi-identifier", "kind": "date", "bounds": "discover"},
    }
    table = people().select("age", "seen")
    for method in ("auto", "maxent", "privtree", "copula"):
        release = shoal.protect(table, stated(columns, method=method, epsilon=2))

        (claim,) = release.claims
        assert (claim.status, claim.guarantee.delta) == ("proved", 0)
        assert set(release.manifest.found) == {"age", "seen"}


def test_an_open_column_has_no_domain_that_could_be_taken_for_one():
    open_columns = planning.plan(stated()).policy.schema.columns
    found = {name: {"kind": "nominal", "categories": ["a", "other"], "other": "other"}
             for name in NAMES}  # fmt: skip

    settled = discovery.settle_policy(load(stated()), found).schema.columns

    assert all(c.is_open and c.categories is None and c.bounds is None for c in open_columns)
    assert not any(column.is_open for column in settled)


def test_an_audit_refuses_open_domains():
    pair = people(20), people(20, seed=1)

    with pytest.raises(InputError, match="an audit runs the method on a known domain"):
        shoal.audit(stated(), pair=pair)


def test_a_plan_says_the_price_and_how_many_people_a_text_needs_and_no_value():
    text = repr(planning.plan(stated()))

    assert "Found with noise, for 2% to 10% of the budget, the less the more rows there are" in text
    assert "people or more have it; others become 'other'." in text
    assert "Aber" not in text


def test_more_of_the_budget_may_be_stated_and_is_spent():
    few = people(2000).with_columns(rare=pl.Series([f"t{n % 150}" for n in range(2000)]))
    columns = {name: {"role": "quasi-identifier", "kind": "discover"} for name in few.columns}
    spent = []
    for share in (0.05, 0.4):
        policy = stated(columns, **DELTA, discovery_share=share)
        losses = shoal.protect(few, policy, noise=SeededNoise(1)).privacy_losses
        found = [
            loss.rho for loss in losses if loss.target.startswith(("categories", "magnitudes"))
        ]
        spent.append(sum(found))

        assert f"for 2% to {share:.0%} of the budget" in repr(planning.plan(policy))
    assert spent[1] > 6 * spent[0]
    with pytest.raises(InputError, match="discovery_share"):
        planning.plan(stated(columns, **DELTA, discovery_share=0.6))


def test_the_budget_file_holds_the_delta_of_texts(tmp_path):
    path = tmp_path / "budget.db"
    booking.open_budget(path, "people", "3", "1e-9")
    policy = stated(epsilon=0.5, delta=1e-9) | {"budget": {"file": str(path), "source": "people"}}

    shoal.protect(people(), policy)
    (account,) = booking.budget_facts(path)
    with pytest.raises(
        ClaimViolationError, match="a delta of 1e-09, and finding texts takes 1e-09 of it"
    ):
        shoal.protect(people(), policy)

    assert account["entries"][0]["delta"] == pytest.approx(5e-10)
    assert account["cumulative"] == pytest.approx(0.5)


def test_an_evaluation_and_an_inspection_settle_a_policy_by_the_table():
    table, policy = people(), stated()
    release = shoal.protect(table, policy)

    by_release = shoal.evaluate(table, release, policy, which=["marginals"])
    by_table = shoal.evaluate(table, release.data, policy, which=["marginals"])

    assert by_release.facts()["figures"]
    assert by_table.facts()["figures"]
    assert not shoal.inspect(table, policy).misfits


def test_steps_are_powers_of_ten_from_the_coarsest_on():
    assert list(STEPS) == sorted(STEPS, reverse=True)
