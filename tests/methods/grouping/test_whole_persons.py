"""Persons with several rows: groups hold k of them, and l and t count them once."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.core import Status
from shoal.errors import ClaimViolationError, InputError
from shoal.methods import REGISTRY

VALUES = ["a", "b", "c", "d"]
KEYS = ["age", "town"]
GROUPING = {n: method for n, method in REGISTRY.items() if not method.noisy and method.has_groups}
JOINT = [name for name in GROUPING if name not in {"individual-ranking", "optimal-univariate"}]
EXTRA = {"bucketization": {"t": 4, "b": 2}}


def policy(method="mdav", k=3, *, unit=True, require=None, **protect):
    quasi = {"role": "quasi-identifier"}
    return {
        "version": 1,
        "columns": {
            "id": {"role": "identifier", "privacy_unit": True} if unit else "identifier",
            "age": quasi | {"kind": "numeric", "bounds": [0, 100]},
            "town": quasi | {"kind": "nominal", "categories": ["x", "y", "z"]},
            "ill": {"role": "confidential", "kind": "nominal", "categories": VALUES},
        },
        "protect": {"method": method, "k": k, **EXTRA.get(method, {}), **protect},
        "require": require or {},
    }


def log(persons=400, seed=0):
    """Several rows a customer, with the same age and town in all of them."""
    rng = np.random.default_rng(seed)
    rows = rng.geometric(0.25, persons)
    who = np.repeat(np.arange(persons), rows)
    frame = pl.DataFrame(
        {
            "id": who,
            "age": rng.integers(18, 90, persons)[who],
            "town": rng.choice(["x", "y", "z"], persons)[who],
            "ill": rng.choice(VALUES, who.size),
        }
    )
    return frame.sample(fraction=1, shuffle=True, seed=seed)


def members(table, released, keys=KEYS):
    """Who has which values in each class of the released table, row i standing for row i."""
    classes = defaultdict(lambda: defaultdict(set))
    for person, *cells in zip(table["id"], *(released[key] for key in [*keys, "ill"]), strict=True):
        classes[tuple(cells[:-1])][person].add(cells[-1])
    return list(classes.values())


def of_classes(table, released, keys=KEYS):
    return min(len(persons) for persons in members(table, released, keys))


@st.composite
def logs(draw):
    """Few places and many repeats: equal rows of different persons, persons all over the place."""
    n = draw(st.integers(6, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    persons = draw(st.integers(3, 12))
    return pl.DataFrame(
        {
            "id": rng.integers(0, persons, n),
            "age": rng.integers(0, draw(st.sampled_from([2, 8, 100])), n),
            "town": rng.choice(["x", "y", "z"], n),
            "ill": rng.choice(VALUES, n, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )


@pytest.mark.parametrize("method", JOINT)
def test_every_group_of_a_log_holds_k_customers_and_not_k_rows(method):
    table = log()

    by_rows = shoal.protect(table, policy(method, 5, unit=False), keep_order=True)
    by_persons = shoal.protect(table, policy(method, 5), keep_order=True)

    if method != "full-domain":  # whose levels here are so coarse that every class has k customers
        assert of_classes(table, by_rows.data) < 5
    assert by_rows.claims[0].status is Status.CONDITIONAL
    assert of_classes(table, by_persons.data) >= 5
    assert by_persons.claims[0].status is Status.PROVED
    assert by_persons.checks[0].achieved == of_classes(table, by_persons.data)


@pytest.mark.parametrize("method", sorted(GROUPING.keys() - set(JOINT)))
def test_every_value_of_a_ranked_column_stands_for_k_customers(method):
    table = log(60)

    release = shoal.protect(table, policy(method, 5), keep_order=True)

    for key in KEYS:
        assert of_classes(table, release.data, [key]) >= 5
    assert [check.achieved for check in release.checks] == [
        of_classes(table, release.data, [key]) for key in KEYS
    ]


@settings(max_examples=40)
@given(logs(), st.integers(2, 4), st.sampled_from(JOINT))
def test_groups_hold_k_persons_whatever_the_log(table, k, method):
    assume(table["id"].n_unique() >= k)

    release = shoal.protect(table, policy(method, k), keep_order=True)

    assert of_classes(table, release.data) >= k


MODELS = [
    {"l-diversity": {"l": 2, "column": "ill"}},
    {"l-diversity": {"l": 2, "column": "ill", "kind": "frequency"}},
    {"l-diversity": {"l": 1.5, "column": "ill", "kind": "entropy"}},
    {"l-diversity": {"l": 2, "c": 2, "column": "ill", "kind": "recursive"}},
    {"t-closeness": {"t": 0.3, "column": "ill"}},
    {"t-closeness": {"t": 3, "column": "ill", "distance": "ratio"}},
]


@settings(max_examples=60)
@given(logs(), st.integers(2, 3), st.sampled_from(MODELS), st.booleans())
def test_l_and_t_hold_in_persons_and_in_rows(table, k, require, centroids):
    assume(table["id"].n_unique() >= k)
    rules = policy("mondrian", k, require=require, output="centroids" if centroids else "intervals")

    one_class = table.with_columns(age=pl.lit("*"), town=pl.lit("*"))
    seen = rules | {"columns": rules["columns"] | {"id": {"role": "other", "privacy_unit": True}}}
    try:
        release = shoal.protect(table, rules, keep_order=True)
    except ClaimViolationError:
        # Where one class of all meets it, a grouping exists. Where not, one may exist all the
        # same: a person whose rows lie in two classes holds fewer values in each.
        assert not all(check.holds for check in shoal.check(one_class, seen))
        return

    assert {claim.status for claim in release.claims} == {Status.PROVED}
    assert of_classes(table, release.data) >= k
    ((name, wanted),) = require.items()
    persons = members(table, release.data)
    whole = pairs([{p: v for one in persons for p, v in held(one, persons)}])
    for one in persons:
        counted = pairs([one])
        if name == "t-closeness":
            assert distance(counted, whole, wanted.get("distance")) <= Fraction(str(wanted["t"]))
        elif wanted.get("kind") == "frequency":
            assert max(counted.values()) * 2 <= len(one)
        elif wanted.get("kind") == "entropy":
            shares = np.array(list(counted.values())) / sum(counted.values())
            assert np.exp(-(shares * np.log(shares)).sum()) >= 1.5 - 1e-9
        elif wanted.get("kind") == "recursive":
            falling = sorted(counted.values(), reverse=True)
            assert falling[0] < 2 * sum(falling[1:])
        else:
            assert any(v != w for p in one for q in one if p != q for v in one[p] for w in one[q])
    # What a reader of the released table can check, in rows, holds as well.
    again = shoal.check(release.data, rules)
    assert all(check.holds for check in again)
    assert {check.remarks["counted"] for check in again} == {
        "rows; 'id', which numbers the persons, is not in the table"
    }


def held(one, classes):
    """Every person of a class, with all values that the person has in any class."""
    for person in one:
        yield person, set().union(*(other.get(person, set()) for other in classes))


def pairs(classes):
    """How many persons hold each value."""
    counts = defaultdict(int)
    for one in classes:
        for values in one.values():
            for value in values:
                counts[value] += 1
    return counts


def distance(counted, whole, kind):
    n, all_ = sum(counted.values()), sum(whole.values())
    p = {v: Fraction(counted.get(v, 0), n) for v in whole}
    q = {v: Fraction(whole[v], all_) for v in whole}
    if kind != "ratio":
        return sum(abs(p[v] - q[v]) for v in whole) / 2
    return max(max(p[v] / q[v], q[v] / p[v] if p[v] else Fraction(10**9)) for v in whole)


def test_buckets_are_close_in_persons_too():
    table = log(80, seed=3)

    release = shoal.protect(table, policy("bucketization", 4), keep_order=True)

    persons = members(table, release.data)
    whole = pairs([{p: v for one in persons for p, v in held(one, persons)}])
    worst = max(distance(pairs([one]), whole, "ratio") for one in persons)
    assert worst <= 4
    assert release.checks[1].achieved >= worst


def test_the_result_does_not_depend_on_the_order_of_the_file():
    table = log(100)

    one = shoal.protect(table, policy("mondrian", 4)).data
    other = shoal.protect(
        table.sample(fraction=1, shuffle=True, seed=9), policy("mondrian", 4)
    ).data

    assert one.sort(one.columns).equals(other.sort(other.columns))


def test_a_table_of_fewer_than_k_persons_is_refused():
    table = log(3)

    with pytest.raises(InputError, match=r"Cannot form one group of k=5 persons from 3. Lower k."):
        shoal.protect(table, policy(k=5))


def test_suppression_leaves_k_persons():
    table = log(40)

    release = shoal.protect(table, policy("mondrian", 4, record_suppression=0.5))

    assert release.checks[0].achieved >= 4
    assert release.checks[0].remarks["counted"] == "persons"


def test_a_line_in_the_policy_makes_the_claim_proved_and_the_terminal_says_what_is_assumed(
    tmp_path,
):
    log(50).write_csv(tmp_path / "log.csv")
    shown = {}
    for line in ("", "one_row_per_person = true\n"):
        text = (
            f'version = 1\n{line}[columns]\nid = "identifier"\n'
            'age = { role = "quasi-identifier", kind = "numeric" }\n'
            'town = { role = "quasi-identifier", kind = "nominal" }\nill = "other"\n'
            '[protect]\nmethod = "mdav"\nk = 5\n[require]\nk-anonymity = 5\n'
        )
        (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
        done = CliRunner().invoke(
            app,
            ["protect", str(tmp_path / "log.csv"), "--policy", str(tmp_path / "policy.toml"),
             "--out", str(tmp_path / "out"), "--no-evaluate", "--force"],
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        shown[line] = done.output

    assert "claim  conditional 5-anonymity of age + town" in shown[""]
    assert "assumes  each person has one row (state one_row_per_person = true, or" in shown[""]
    assert "claim  proved      5-anonymity of age + town" in shown["one_row_per_person = true\n"]
    assert "assumes  each person has one row (" not in shown["one_row_per_person = true\n"]


@pytest.mark.parametrize("method", sorted(REGISTRY))
def test_no_method_proves_a_claim_about_persons_that_assumes_one_row(method):
    quasi = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]}
    rules = {
        "version": 1,
        "columns": {"a": quasi, "b": quasi | {"public": method == "public-laplace"},
                    "c": {"role": "confidential", "kind": "nominal", "categories": ["x", "y"]}},
        "protect": {"method": method, **REGISTRY[method].example.parameters},
    }  # fmt: skip
    if REGISTRY[method].forms.must_choose:
        rules["protect"]["release_form"] = REGISTRY[method].forms.offered[0].value

    for stated in (False, True):
        claims = shoal.plan(rules | {"one_row_per_person": stated}).claims
        of_persons = [c for c in claims if c.guarantee.name != "differential-privacy"]
        for claim in of_persons:
            assert stated or claim.status is not Status.PROVED
            assert ("each person has one row" in claim.assumes) is not stated
        for claim in set(claims) - set(of_persons):
            assert claim.guarantee.privacy_unit == "row"
