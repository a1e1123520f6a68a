"""Full-domain generalisation from a policy to a release."""

from collections import Counter
from datetime import date
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal import hierarchy, sample
from shoal.core import KAnonymity, LDiversity, ReleaseForm, Status, TCloseness
from shoal.errors import ClaimViolationError, InputError
from shoal.methods.full_domain import QUERIES, SEED, count_error
from shoal.metrics.count_queries import half_ranges, relative_errors
from shoal.partition import Loss, full_domain
from shoal.privacy_models import decide

AGE = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]}
SEX = {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]}
ILL = {"role": "confidential", "kind": "nominal", "categories": ["a", "b", "c"]}


def policy(described, *, require=None, flags=None, **protect):
    return {
        "version": 1,
        **(flags or {"one_row_per_person": True}),
        "columns": described,
        "protect": {"method": "full-domain", "k": 2, **protect},
        "require": require or {},
    }


def tree(folder, made, name):
    hierarchy.write(made, folder / f"{name}.csv")
    return str(folder / f"{name}.csv")


@pytest.fixture
def ages(tmp_path):
    return tree(tmp_path, hierarchy.intervals(0, 99, [5, 10]), "age")


def test_numbers_are_released_at_one_level_of_their_hierarchy(ages):
    frame = pl.DataFrame({"age": [21, 24, 33, 34, 41, 43]})

    release = shoal.protect(frame, policy({"age": AGE | {"hierarchy": ages}}), keep_order=True)

    assert release.data["age"].to_list() == ["20-24", "20-24", "30-34", "30-34", "40-44", "40-44"]
    assert "Levels, where 0 is the column as it is: age 1 of 3." in release.manifest.notes


def test_a_hierarchy_in_a_file_and_intervals_by_the_method_give_the_same(ages):
    frame = pl.DataFrame({"age": [7, 11, 21, 28, 33, 39, 41, 43], "sex": list("fmfmfmfm")})
    loss = {"loss": "granularity"}

    by_file = shoal.protect(
        frame, policy({"age": AGE | {"hierarchy": ages}, "sex": SEX}, **loss), keep_order=True
    )
    built = shoal.protect(
        frame,
        policy({"age": AGE, "sex": SEX}, intervals={"age": [5, 10]}, **loss),
        keep_order=True,
    )

    assert by_file.data.equals(built.data)


def test_dates_ordinals_and_fractions_take_part(tmp_path):
    columns = {
        "born": {
            "role": "quasi-identifier",
            "kind": "date",
            "bounds": [date(1990, 1, 1), date(2009, 12, 31)],
        },
        "school": {
            "role": "quasi-identifier",
            "kind": "ordinal",
            "categories": ["none", "low", "mid", "high"],
            "hierarchy": tree(
                tmp_path, hierarchy.join_ordered(["none", "low", "mid", "high"]), "school"
            ),
        },
        "height": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 3]},
    }
    frame = pl.DataFrame({
        "born": [date(1990, 2, 3), date(1990, 3, 9), date(2001, 7, 1), date(2001, 9, 30)],
        "school": ["none", "low", "mid", "high"],
        "height": [1.61, 1.74, 1.8, 1.99],
    })  # fmt: skip
    rules = policy(columns, intervals={"born": ["quarter", "year"], "height": [0.25, 0.5]})

    released = shoal.protect(frame, rules, keep_order=True).data

    assert released["born"].to_list() == ["1990-Q1", "1990-Q1", "2001-Q3", "2001-Q3"]
    assert released["school"].to_list() == ["[none, low]"] * 2 + ["[mid, high]"] * 2
    assert released["height"].to_list() == ["[1.5, 1.75)"] * 2 + ["[1.75, 2)"] * 2


def test_days_may_come_from_a_file_and_times_lie_in_their_day(tmp_path):
    made = hierarchy.dates(date(2020, 1, 1), date(2020, 12, 31), ["month"])
    day = {
        "role": "quasi-identifier",
        "kind": "date",
        "hierarchy": tree(tmp_path, made, "day"),
    }
    frame = pl.DataFrame({"day": ["2020-03-01", "2020-03-09", "2020-05-05", "2020-05-31"]})
    times = frame.select(pl.col("day").str.to_datetime() + pl.duration(hours=7))

    for table in (frame, times):
        released = shoal.protect(table, policy({"day": day}), keep_order=True).data
        assert released["day"].to_list() == ["2020-03"] * 2 + ["2020-05"] * 2


def test_a_missing_cell_is_a_value_of_its_own_below_the_root(ages):
    columns = {"age": AGE | {"hierarchy": ages}}

    kept = shoal.protect(
        pl.DataFrame({"age": [21, 22, None, None]}), policy(columns), keep_order=True
    )
    alone = shoal.protect(pl.DataFrame({"age": [21, 22, 23, None]}), policy(columns))

    assert kept.data["age"].to_list() == ["20-24", "20-24", None, None]
    assert alone.data["age"].to_list() == ["*"] * 4


def test_rows_are_left_out_within_the_limit_and_not_beyond_it():
    frame = pl.DataFrame({"age": [21] * 9 + [70]})

    def ages_of(share):
        return shoal.protect(frame, policy({"age": AGE}, record_suppression=share)).data["age"]

    assert ages_of(0.1).to_list() == [21] * 9
    assert ages_of(0.09).to_list() == ["*"] * 10


SECRETS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from("fm"), st.sampled_from("abc")),
    min_size=12,
    max_size=40,
)
MODELS = [
    {"l-diversity": {"l": 2, "column": "ill"}},
    {"l-diversity": {"l": 1.5, "column": "ill", "kind": "entropy"}},
    {"l-diversity": {"l": 2, "column": "ill", "kind": "recursive", "c": 3}},
    {"l-diversity": {"l": 1.5, "column": "ill", "kind": "frequency"}},
    {"t-closeness": {"t": 0.3, "column": "ill"}},
    {"t-closeness": {"t": 0.3, "column": "ill", "distance": "ordered"}},
]


@pytest.mark.parametrize("require", MODELS, ids=str)
@pytest.mark.parametrize("persons", [False, True])
@given(rows=SECRETS, share=st.sampled_from([0, 0.2]))
@settings(max_examples=15)
def test_every_required_model_is_claimed_and_holds_by_an_independent_count(
    require, persons, rows, share
):
    who = {"who": {"role": "identifier", "privacy_unit": True}} if persons else {}
    frame = pl.DataFrame(rows, schema=["age", "sex", "ill"], orient="row")
    if persons:
        frame = frame.with_columns(who=pl.int_range(pl.len()) // 2)
    rules = policy(
        {**who, "age": AGE, "sex": SEX, "ill": ILL},
        require={"k-anonymity": 2, **require},
        flags={"one_row_per_person": False} if persons else None,
        intervals={"age": [5, 10]},
        record_suppression=share,
    )

    try:
        release = shoal.protect(frame, rules)
    except ClaimViolationError:
        with pytest.raises(ClaimViolationError, match="No combination of levels keeps"):
            shoal.protect(frame, rules)
        return

    assert {type(c.guarantee) for c in release.claims} >= {KAnonymity}
    steered = [c for c in release.claims if isinstance(c.guarantee, LDiversity | TCloseness)]
    assert [c.status for c in steered] == [Status.PROVED]
    assert all(check.holds for check in release.checks)
    keys = release.data.select("age", "sex").rows()
    assert min(Counter(keys).values()) >= 2
    assert release.data.height >= frame.height * (1 - share)
    names = sorted(set(keys), key=str)
    codes = [ord(value) - 97 for value in release.data["ill"]]
    verdict, _ = decide([names.index(key) for key in keys], codes, steered[0].guarantee, width=3)
    assert verdict.holds


def test_limits_on_levels_and_weights_are_kept(ages):
    columns = {"age": AGE | {"hierarchy": ages}, "sex": SEX}
    frame = pl.DataFrame({"age": [21, 22, 33, 34] * 2, "sex": list("fmfmfmfm")})

    def levels(**protect):
        notes = shoal.protect(frame, policy(columns, loss="granularity", **protect)).manifest
        (note,) = [text for text in notes.notes if text.startswith("Levels")]
        return note.partition(": ")[2]

    assert levels() == "age 0 of 3, sex 0 of 1."
    assert levels(levels={"age": 2}) == "age 2 of 3, sex 0 of 1."
    assert levels(levels={"age": [1, 3], "sex": 1}) == "age 1 of 3, sex 1 of 1."
    assert levels(k=4) == "age 3 of 3, sex 0 of 1."
    assert levels(k=4, weights={"age": 100}) == "age 1 of 3, sex 1 of 1."


@pytest.mark.parametrize("loss", list(Loss))
def test_the_sample_is_released_under_every_loss(loss):
    people = sample.people(300, seed=3).select("age", "sex", "region", "condition")
    folder = sample.folder()
    rules = policy(
        {
            "age": AGE | {"bounds": [0, 120]},
            "sex": {"role": "quasi-identifier", "kind": "nominal"},
            "region": {
                "role": "quasi-identifier",
                "kind": "nominal",
                "hierarchy": str(folder / "region.csv"),
            },
            "condition": {"role": "confidential", "kind": "nominal"},
        },
        k=5,
        loss=loss,
        intervals={"age": [5, 10, 20]},
        record_suppression=0.05,
    )

    release = shoal.protect(people, rules)

    assert all(check.holds for check in release.checks)
    assert release.data.height >= 285
    found = shoal.evaluate(people, release, rules)
    assert not [text for text in found.how if "not understood" in text]
    assert found.of("granularity")
    by_k = shoal.inspect(people, rules).alternatives.by_k
    levels = ", ".join(
        f"{name} {level} of {last}"
        for (name, level), last in zip(by_k[5].levels.items(), (4, 1, 2), strict=True)
    )
    assert [text for text in release.manifest.notes if text.endswith(f": {levels}.")]
    assert list(by_k) == [2, 3, 5, 10, 20, 50, 100]
    assert by_k[2].loss <= by_k[100].loss


def test_count_error_is_the_least_of_all_levels_by_plain_counting():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, [6, 4, 3], size=(60, 3))
    trees = [
        np.array([np.arange(6), [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1], [0] * 6]),
        np.array([np.arange(4), [0, 1, 0, 1], [0] * 4]),
        np.array([np.arange(3), [0] * 3]),
    ]
    drawn = half_ranges([0] * 3, [6, 4, 3], [True] * 3, queries=QUERIES, axes=3,
                        rng=np.random.default_rng(SEED))  # fmt: skip

    def answers(node, kept):
        cells = np.ones((len(codes), QUERIES))
        for j, (tree, level) in enumerate(zip(trees, node, strict=True)):
            for leaf, label in enumerate(tree[level]):
                own = np.flatnonzero(tree[level] == label)[:, None]
                inside = (drawn.lower[:, j] <= own) & (own < drawn.upper[:, j])
                cells[codes[:, j] == leaf] *= inside.mean(axis=0)
        return cells[kept].sum(axis=0)

    true, losses = answers((0, 0, 0), np.ones(60, dtype=bool)), {}
    for node in product(*(range(len(tree)) for tree in trees)):
        rows = [tuple(t[a][c] for t, a, c in zip(trees, node, row, strict=True)) for row in codes]
        kept = np.array([rows.count(row) >= 4 for row in rows])
        if (~kept).sum() <= 5:
            losses[node] = np.median(relative_errors(true, answers(node, kept)))
    rate = count_error(codes, trees)

    found = full_domain(codes, trees, 4, limit=5, loss=Loss.COUNT_ERROR, rating=rate)

    assert found.loss == pytest.approx(min(losses.values()))
    assert losses[found.levels] == pytest.approx(found.loss)
    assert found.looked_at >= len(losses)  # this loss has no bound that closes a node
    with pytest.raises(InputError, match="Expected a rating"):
        full_domain(codes, trees, 4, loss=Loss.COUNT_ERROR)


def planned(described=None, **protect):
    given = described or {"age": AGE, "sex": SEX, "ill": ILL}
    return shoal.plan(policy(given, **protect))


REFUSED = [
    ({"intervals": {"agee": [5]}}, "no protected column named 'agee'. Did you mean 'age'"),
    ({"weights": {"ill": 2}, "loss": "entropy"}, "no protected column named 'ill'"),
    ({"weights": {"age": 2}}, "discernibility counts rows, not columns"),
    ({"weights": {"age": 0, "sex": 0}, "loss": "entropy"}, "expected one above 0"),
    ({"intervals": {"sex": [5]}}, "expected a number or a date, found a nominal column"),
    ({"intervals": {"age": [5, 12]}}, "a width of 12 is not a multiple of 5"),
    ({"intervals": {"age": ["month"]}}, "expected widths above 0"),
    ({"levels": {"age": 2}}, "'age': expected levels from 0 to 1, found 2"),
    ({"levels": {"age": [1, 0]}}, "found 1 and 0"),
    ({"record_suppression": 0.1, "release_form": "row-aligned"}, "cannot be row-aligned"),
    (
        {"columns": ["age"], "require": {"l-diversity": {"l": 2, "column": "ill"}}},
        "must list every",
    ),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_a_setting_that_cannot_work_is_refused_before_data_is_read(given, message):
    with pytest.raises(InputError, match=message):
        planned(**given)


def test_columns_that_cannot_have_intervals_or_whose_file_does_not_fit_are_refused(tmp_path, ages):
    born = {"role": "quasi-identifier", "kind": "date"}
    days = [date(2000, 1, 1), date(2009, 1, 1)]

    with pytest.raises(InputError, match="intervals or a hierarchy, found both"):
        planned({"age": AGE | {"hierarchy": ages}}, intervals={"age": [5]})
    with pytest.raises(InputError, match="expected public bounds of the column"):
        planned({"born": born}, intervals={"born": ["year"]})
    with pytest.raises(InputError, match="such as 'month', found a number"):
        planned({"born": born | {"bounds": days}}, intervals={"born": [5]})
    with pytest.raises(InputError, match="a week may lie in two years"):
        planned({"born": born | {"bounds": days}}, intervals={"born": ["week", "year"]})
    with pytest.raises(InputError, match="expected days such as 2020-01-31 as leaves"):
        planned({"born": born | {"hierarchy": ages}})
    (tmp_path / "bad.csv").write_text("1,*\n1.0,*\n", encoding="utf-8")
    with pytest.raises(InputError, match="two spellings of one value"):
        planned({"age": AGE | {"hierarchy": str(tmp_path / "bad.csv")}})
    (tmp_path / "bad.csv").write_text("one,*\n2,*\n", encoding="utf-8")
    with pytest.raises(InputError, match="expected numbers as leaves"):
        planned({"age": AGE | {"hierarchy": str(tmp_path / "bad.csv")}})


def test_a_value_that_the_hierarchy_lacks_is_refused_without_showing_it(tmp_path):
    short = tree(tmp_path, hierarchy.intervals(0, 49, [5]), "short")

    with pytest.raises(InputError, match="leaves of its hierarchy, found others in 2 rows") as said:
        shoal.protect(
            pl.DataFrame({"age": [1, 77, 78]}), policy({"age": AGE | {"hierarchy": short}})
        )

    assert "77" not in str(said.value)


def test_too_few_records_and_a_promise_that_no_levels_keep_stop_the_run():
    frame = pl.DataFrame({"age": [1, 2, 3], "sex": ["f"] * 3, "ill": ["a", "a", "b"]})
    columns = {"age": AGE, "sex": SEX, "ill": ILL}

    several = frame.with_columns(who=pl.lit(1))
    who = {"who": {"role": "identifier", "privacy_unit": True}}
    with pytest.raises(InputError, match="one class of k=2 persons from 1"):
        shoal.protect(several, policy(who | columns, flags={"one_row_per_person": False}))
    with pytest.raises(ClaimViolationError, match="keeps 2-anonymity and distinct 3-diversity"):
        shoal.protect(frame, policy(columns, require={"l-diversity": {"l": 3, "column": "ill"}}))
    with pytest.raises(ClaimViolationError, match="Allow higher levels"):
        shoal.protect(frame, policy(columns, levels={"age": 0}))


def test_what_is_not_promised_is_said():
    plain = planned(record_suppression=0.1)
    steered = planned(require={"t-closeness": {"t": 0.5, "column": "ill"}})

    assert any("about ill" in text for text in plain.not_claimed)
    assert any("rows were suppressed" in text for text in plain.not_claimed)
    assert any("The levels follow ill, too" in text for text in steered.not_claimed)
    assert steered.setting.release_form is ReleaseForm.LINKED_SHUFFLED
    (claim,) = [c for c in steered.claims if isinstance(c.guarantee, TCloseness)]
    assert claim.guarantee.t == Fraction(1, 2)


def test_a_release_verifies_also_where_a_hierarchy_was_read_off_the_data(tmp_path):
    made = hierarchy.quantiles_of([1, 5, 20, 34, 77], 2)
    keys = hierarchy.write(made, tmp_path / "age.csv")
    (tmp_path / "data.csv").write_text("age\n1\n5\n20\n34\n77\n77\n", encoding="utf-8")
    (tmp_path / "policy.toml").write_text(
        'version = 1\n[columns]\nage = { role = "quasi-identifier", kind = "numeric", '
        'hierarchy = "age.csv", observed = true }\n'
        '[protect]\nmethod = "full-domain"\nk = 2\nlevels = { age = [1, 2] }\n',
        encoding="utf-8",
    )
    from shoal.publish import protect_file  # noqa: PLC0415

    assert keys["observed"]
    protect_file.protect(tmp_path / "data.csv", tmp_path / "policy.toml", tmp_path / "out")
    found = shoal.verify(tmp_path / "out")
    assert found.holds, str(found)
