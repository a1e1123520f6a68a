"""kanon-dp and pram: k-anonymous quasi-identifiers beside record-wise noise."""

import math
from datetime import date
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core import DifferentialPrivacy, KAnonymity, Status, StochasticTCloseness
from shoal.errors import ClaimViolationError, InputError
from shoal.hazmat.fakes import Call, RecordingNoise, SeededNoise
from shoal.methods.noise import recordwise
from shoal.methods.noise.recordwise import least_t
from shoal.privacy_models import t_from_epsilon

JOBS = ["none", "clerk", "farmer", "nurse"]
METHODS = ["kanon-dp", "pram"]


def policy(method="kanon-dp", *, columns=None, require=None, **protect):
    rules = {
        "version": 1,
        "one_row_per_person": True,
        "columns": {
            "name": "identifier",
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "town": {"role": "quasi-identifier", "kind": "nominal"},
            "job": {"role": "confidential", "kind": "nominal", "categories": JOBS},
            **(columns or {}),
        },
        "protect": {"method": method, "k": 3, "epsilon": 1, **protect},
    }
    return rules | ({"require": require} if require else {})


PAY = {"pay": {"role": "confidential", "kind": "numeric", "bounds": [0, 100]}}
BORN = {
    "born": {"role": "confidential", "kind": "date", "bounds": [date(1950, 1, 1), date(2010, 1, 1)]}
}
GRADE = {"grade": {"role": "confidential", "kind": "ordinal", "categories": ["low", "mid", "top"]}}


def people(n=20, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(n)],
            "age": rng.integers(18, 80, n),
            "town": rng.choice(["Lyon", "Lille", "Nice"], n),
            "job": rng.choice(JOBS, n, p=[0.5, 0.3, 0.2, 0]),
            "pay": rng.integers(0, 100, n),
            "born": [f"19{year}-05-01" for year in rng.integers(50, 99, n)],
            "grade": rng.choice(["low", "mid", "top"], n),
        }
    )


def guarantee(release, sort):
    return [claim for claim in release.claims if isinstance(claim.guarantee, sort)]


# What is promised.


def test_the_release_carries_k_the_price_of_a_record_and_stochastic_closeness():
    release = shoal.protect(people().drop("pay", "born", "grade"), policy())

    k_anonymity, privacy, closeness = release.claims
    assert k_anonymity.guarantee == KAnonymity(3, ("age", "town"))
    assert privacy.guarantee.epsilon == 1
    assert privacy.guarantee.protects == ("job",)
    assert "the quasi-identifiers of every row: age, town" in privacy.guarantee.invariants
    assert "who is in the table" in privacy.guarantee.invariants
    assert closeness.guarantee.columns == ("job",)
    assert closeness.guarantee.keys == ("age", "town")
    assert closeness.guarantee.t == pytest.approx(3 / 20 + 17 / 20 * math.e)
    assert {claim.status for claim in release.claims} == {Status.PROVED}
    # Stochastic t-closeness is derived, never checked.
    assert [check.guarantee for check in release.checks] == [k_anonymity.guarantee]


@given(
    epsilon=st.floats(0, 10),
    k=st.integers(1, 30),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
)
def test_the_t_that_is_claimed_covers_any_classes_of_k_or_more(epsilon, k, sizes):
    sizes = [size + k - 1 for size in sizes]

    claimed = least_t(epsilon, k, sum(sizes))

    assert t_from_epsilon(epsilon, sizes) <= claimed * (1 + 1e-12)
    assert claimed <= least_t(epsilon, k, None)


def test_the_ratio_of_shares_in_every_class_stays_within_the_claimed_t():
    """The distribution that is drawn from, computed exactly by the matrix of the responses."""
    frame = people(60, seed=3)
    released = shoal.protect(
        frame.drop("pay", "born", "grade"), policy(), keep_order=True, noise=SeededNoise(1)
    ).data
    truth = np.array([JOBS.index(job) for job in frame["job"]])
    P = (np.ones((4, 4)) + (math.e - 1) * np.eye(4)) / (math.e + 3)

    whole = P[truth].mean(axis=0)
    worst = 1.0
    for rows in released.with_row_index().group_by("age", "town").agg("index")["index"]:
        ratio = P[truth[rows.to_numpy()]].mean(axis=0) / whole
        worst = max(worst, ratio.max(), (1 / ratio).max())

    assert 1 < worst <= least_t(1.0, 3, 60)


@given(t=st.decimals("1.000000001", 1000, allow_nan=False, places=9))
@settings(max_examples=50)
def test_asking_for_t_promises_no_more_than_t(t):
    claims = shoal.plan(asking(t=t)).claims

    (privacy,) = [c.guarantee for c in claims if isinstance(c.guarantee, DifferentialPrivacy)]
    (closeness,) = [c.guarantee for c in claims if isinstance(c.guarantee, StochasticTCloseness)]
    assert 0 < privacy.epsilon <= Fraction(math.log(t)) * (1 + Fraction(1, 10**12))
    assert closeness.t <= float(t) * (1 + 1e-12)
    assert float(privacy.epsilon) == pytest.approx(math.log(t), rel=1e-5)


def asking(method="kanon-dp", *, columns=None, require=None, **protect):
    rules = policy(method, columns=columns, require=require)
    rules["protect"] = {"method": method, "k": 3, **protect}
    return rules


@pytest.mark.parametrize(("joint", "each"), [(True, math.log(3) / 2), (False, math.log(3))])
def test_t_is_of_all_confidential_columns_or_of_each(joint, each):
    release = shoal.protect(
        people().drop("pay", "born"), asking(columns=GRADE, t=3, joint=joint), noise=None
    )

    losses = [float(loss.epsilon) for loss in release.privacy_losses]
    assert losses == pytest.approx([each] * 2, rel=1e-5)
    close = {c.guarantee.columns: c.guarantee.t for c in guarantee(release, StochasticTCloseness)}
    bound = {
        columns: k_of_20(cost) for columns, cost in zip(close, (2 * each, each, each), strict=True)
    }
    assert list(close) == [("job", "grade"), ("job",), ("grade",)]
    assert close == pytest.approx(bound, rel=1e-4)
    assert {claim.status for claim in release.claims} == {Status.PROVED}


@pytest.mark.parametrize("how", ["row-aligned", "public column"])
def test_classes_do_not_count_where_a_row_may_be_known_to_be_somebody_s(how):
    """Who knows the row sees one response, not a draw from a class of k: t is exp(epsilon)."""
    rules = asking(epsilon=2)
    table = people().drop("pay", "born", "grade")
    if how == "row-aligned":
        rules["protect"]["release_form"] = how
    else:
        rules["columns"]["place"] = {"role": "other", "public": True}
        table = table.with_columns(place=pl.Series(range(20)))

    release = shoal.protect(table, rules)

    (close,) = guarantee(release, StochasticTCloseness)
    assert close.guarantee.t == pytest.approx(math.exp(2))
    assert "may show which person a value was drawn for" in close.basis


@settings(max_examples=60)
@given(st.decimals("1.000000001", "1e6", places=60))
def test_the_epsilon_of_t_is_never_above_its_logarithm(t):
    assert recordwise._log(t) < Fraction(Context(80).ln(t))


def test_the_epsilon_of_the_cut_off_power_of_e_is_below_it():
    t = Decimal("20.08553692318766774092852965458171789698790783855415014")

    assert recordwise._log(t) < 3


def k_of_20(epsilon):
    return 3 / 20 + 17 / 20 * math.exp(epsilon)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("protect", "sentence"),
    [
        ({}, "takes either epsilon or t; found neither"),
        ({"t": 2, "epsilon": 1}, "found both"),
        ({"epsilon": 1, "joint": False}, "joint: epsilon always covers all"),
        ({"t": 1}, "greater than or equal to 1.000000001"),
    ],
)
def test_epsilon_or_t_and_not_both(method, protect, sentence):
    with pytest.raises(InputError, match=sentence):
        shoal.plan(asking(method, **protect))


def test_stochastic_closeness_is_required_jointly_and_column_by_column():
    def required(*wanted):
        return {"stochastic-t-closeness": [{"t": t, "column": names} for t, names in wanted]}

    grown = {"columns": GRADE, "t": 4}
    held = required((4, ["job", "grade"]), (2, "job"), (2, "grade"))
    assert shoal.plan(asking(**grown, require=held))
    with pytest.raises(ClaimViolationError, match=r"state t = 3 under \[protect\], and no epsilon"):
        shoal.plan(asking(**grown, require=required((3, ["job", "grade"]))))
    with pytest.raises(ClaimViolationError, match=r"state t = 1\.5"):
        shoal.plan(asking(**grown, require=required((1.5, "job"))))
    release = shoal.protect(people().drop("pay", "born"), asking(**grown, require=held), noise=None)
    assert len(guarantee(release, StochasticTCloseness)) == 3
    # Nothing is checked on the table for it, and without secure noise nothing is promised.
    assert [type(check.guarantee) for check in release.checks] == [KAnonymity]
    with pytest.raises(ClaimViolationError, match="with these rows and this source of noise"):
        shoal.protect(
            people().drop("pay", "born"), asking(**grown, require=held), noise=SeededNoise(1)
        )


def test_stochastic_closeness_is_refused_where_it_is_conditional_or_not_there():
    wanted = {"stochastic-t-closeness": {"t": 3, "column": "job"}}

    with pytest.raises(
        ClaimViolationError, match=r"share of each value.* These methods can promise it: .*kanon"
    ):
        shoal.plan(asking("pram", t=2, require=wanted))
    bare = asking("mdav", require=wanted)
    with pytest.raises(
        ClaimViolationError, match=r"These methods can promise it: bucketization, kanon-dp"
    ):
        shoal.plan(bare)
    bare["protect"] = {"method": "bucketization", "k": 4, "t": 3}
    assert shoal.plan(bare)
    bare["protect"]["t"] = 4
    with pytest.raises(ClaimViolationError, match="stochastic 3-closeness"):
        shoal.plan(bare)
    with pytest.raises(InputError, match="no table can be checked for it"):
        shoal.check(people().select("age", "town", "job"), bare)
    del bare["columns"]["job"]["categories"]
    bare["require"] = {"stochastic-t-closeness": {"t": 0.5, "column": "job"}}
    with pytest.raises(InputError, match="greater than or equal to 1"):
        shoal.plan(bare)
    bare["require"] = {"stochastic-t-closeness": {"t": 2, "column": "age"}}
    with pytest.raises(InputError, match="expected a confidential column, found 'age'"):
        shoal.plan(bare)


def test_one_row_per_person_is_the_one_condition_that_a_requirement_may_carry():
    rules = asking(t=3, require={"stochastic-t-closeness": {"t": 3, "column": "job"}})
    del rules["one_row_per_person"]

    claims = shoal.plan(rules).claims

    assert claims[-1].status is Status.CONDITIONAL


def test_pram_has_two_readings_and_only_conditional_closeness():
    claims = shoal.plan(policy("pram")).claims

    statuses = [(type(claim.guarantee), claim.status) for claim in claims]
    assert statuses == [
        (KAnonymity, Status.PROVED),
        (DifferentialPrivacy, Status.CONDITIONAL),
        (DifferentialPrivacy, Status.REFUTED),
        (StochasticTCloseness, Status.CONDITIONAL),
    ]
    assert any("share of each value" in text for text in claims[1].assumes)


@pytest.mark.parametrize("method", METHODS)
def test_categories_copied_from_the_data_weaken_the_claims(method):
    job = {"role": "confidential", "kind": "nominal", "categories": JOBS, "observed": True}

    claims = shoal.plan(policy(method, columns={"job": job})).claims

    assert [claim.status for claim in claims[1:]].count(Status.PROVED) == 0
    assert claims[0].status is Status.PROVED


def test_an_epsilon_beyond_all_numbers_has_no_closeness():
    claims = shoal.plan(policy(epsilon=1000)).claims

    assert not any(isinstance(claim.guarantee, StochasticTCloseness) for claim in claims)


# What is done.


def test_each_confidential_column_gets_its_part_of_epsilon_and_each_cell_a_draw():
    noise = RecordingNoise()
    frame = people()

    release = shoal.protect(
        frame, policy(columns={**PAY, **BORN, **GRADE}, epsilon=2), keep_order=True, noise=noise
    )

    width = Fraction(2**20)
    assert noise.calls == [
        Call("randomised-response", (20,), Fraction(2)),
        *[Call("discrete-laplace", (20,), width * 2)] * 3,
    ]
    assert [privacy_loss.epsilon for privacy_loss in release.privacy_losses] == [Fraction(1, 2)] * 4
    # Noise that adds nothing shows that every cell is its own.
    assert release.data["job"].equals(frame["job"])
    assert release.data["pay"].to_numpy() == pytest.approx(frame["pay"].to_numpy(), abs=1e-4)
    assert release.data["born"].cast(pl.String).to_list() == frame["born"].to_list()
    assert release.data["grade"].equals(frame["grade"])


@pytest.mark.parametrize(("partition", "other"), [("mdav", "mdav"), ("mondrian", "mondrian")])
def test_quasi_identifiers_leave_as_from_the_method_without_noise(partition, other):
    frame = people(30).select("name", "age", "town", "job")
    bare = policy(other, output="centroids") if other == "mondrian" else policy(other)
    del bare["protect"]["epsilon"]
    # Without the confidential column no tie can be broken by it.
    del bare["columns"]["job"]

    released = shoal.protect(
        frame, policy(partition=partition), keep_order=True, noise=RecordingNoise()
    ).data
    grouped = shoal.protect(frame.drop("job"), bare, keep_order=True).data

    classes = [sorted(data.select("age", "town").rows()) for data in (released, grouped)]
    assert classes[0] == classes[1]


@given(seed=st.integers(0, 99))
@settings(max_examples=20)
def test_confidential_numbers_stay_within_their_bounds(seed):
    released = shoal.protect(
        people(), policy(columns={**PAY, **BORN, **GRADE}), noise=SeededNoise(seed)
    ).data

    assert released["pay"].is_between(0, 100).all()
    assert released["born"].dt.year().is_between(1950, 2010).all()
    assert set(released["grade"]) <= {"low", "mid", "top"}


def test_odd_confidential_cells_count_in_silence_and_odd_quasi_identifiers_do_not():
    frame = people().select("name", "age", "town", "job")
    strange = frame.with_columns(job=pl.lit("pilot"))

    released = shoal.protect(strange, policy(), noise=RecordingNoise()).data

    assert set(released["job"]) == {"none"}
    with pytest.raises(
        InputError, match="'age': expected numbers, found something else in 20 rows"
    ):
        shoal.protect(frame.with_columns(age=pl.lit("old")), policy())


def test_pram_never_releases_what_nobody_has_and_response_does():
    """Twenty cells a run, 40 runs: randomised response misses a category in all of them with
    probability below (1 - 0.17)^800 = 1e-65."""
    frame = people().select("name", "age", "town", "job")

    seen = {
        method: set().union(
            *(shoal.protect(frame, policy(method)).data["job"].to_list() for _ in range(40))
        )
        for method in METHODS
    }

    assert seen["kanon-dp"] == set(JOBS)
    assert seen["pram"] == set(frame["job"])


def test_pram_keeps_the_counts_on_average():
    """300 releases of 200 rows: the mean of a count of 200 independent draws is off by 4 or
    more with probability below 2 exp(-2 * 16 * 300 / 200) = 3e-21."""
    frame = people(200).select("name", "age", "town", "job")
    truth = frame["job"].value_counts().sort("job")

    total = pl.concat(
        shoal.protect(frame, policy("pram"), noise=SeededNoise(seed)).data["job"].to_frame()
        for seed in range(300)
    )

    counts = total["job"].value_counts().sort("job")
    assert counts["job"].to_list() == truth["job"].to_list()
    assert np.abs(counts["count"].to_numpy() / 300 - truth["count"].to_numpy()).max() < 4


# What is refused before any data is read.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"require": {"l-diversity": {"l": 2, "column": "job"}}},
            "if confidential values steered the groups",
        ),
        (
            {"require": {"t-closeness": {"t": 0.3, "column": "job"}}},
            "or stopped the release",
        ),
        ({"columns": {"job": "identifier"}}, "the policy has none"),
        (
            {"columns": {"age": "identifier", "town": "identifier"}},
            "groups records by their quasi-ident",
        ),
        ({"columns": {"note": "other"}}, "'note' would be released without noise"),
        ({"columns": {"job": {"role": "confidential", "kind": "nominal"}}}, "expected categories"),
        ({"columns": {"job": "confidential"}}, "expected a kind"),
        ({"columns": {"age": "other"}, "epsilon": 1}, "'age' would be released without"),
        (
            {"columns": None, "protect": ["age", "job"]},
            "Remove 'columns', and change the columns' roles",
        ),
        (
            {"columns": None, "protect": ["age", "town"]},
            "Remove 'columns', and change the columns' roles",
        ),
        ({"record_suppression": 0.1}, "no parameter 'record_suppression'"),
        ({"k": 1}, "k"),
    ],
)
def test_what_no_claim_survives_is_refused_at_planning(method, changes, sentence):
    changes = dict(changes)
    chosen = changes.pop("protect", None)
    rules = policy(method, **changes)
    if chosen:
        rules["protect"]["columns"] = chosen

    with pytest.raises(InputError, match=sentence):
        shoal.plan(rules)


def test_naming_all_columns_is_naming_none():
    rules = policy()
    rules["protect"]["columns"] = ["job", "town", "age"]

    assert len(shoal.plan(rules).claims) == 3


@pytest.mark.parametrize("column", [PAY, BORN])
def test_pram_refuses_numbers_and_names_the_other_method(column):
    with pytest.raises(InputError, match=r"holds numbers or dates.*use kanon-dp"):
        shoal.plan(policy("pram", columns=column))


def test_epsilon_of_all_columns_cannot_be_required_unless_the_others_are_public():
    wanted = {"differential-privacy": 1}
    public = {"role": "quasi-identifier", "kind": "numeric", "public": True}
    known = {"age": public, "town": public | {"kind": "nominal"}}

    with pytest.raises(ClaimViolationError, match="Differential privacy of age, town is not prom"):
        shoal.plan(policy(require=wanted))
    assert shoal.plan(policy(columns=known, require=wanted))
    with pytest.raises(ClaimViolationError, match=r"holds only if .* share of each value"):
        shoal.plan(policy("pram", columns=known, require=wanted))


def test_noise_that_is_not_secure_leaves_k_anonymity_alone():
    release = shoal.protect(
        people().select("name", "age", "town", "job"), policy(), noise=SeededNoise(1)
    )

    assert [type(claim.guarantee) for claim in release.claims] == [KAnonymity]
