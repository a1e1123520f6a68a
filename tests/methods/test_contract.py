"""One suite for every registered method: registering is how a method opts in."""

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cells import cells_of

import shoal
from shoal.core import DifferentialPrivacy, Distance, KAnonymity, ReleaseForm, Status
from shoal.errors import InputError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.methods import REGISTRY
from shoal.methods.method import protected

LEVELS = ["a", "b", "c", "d"]
TAXONOMY = ["a,ab,all", "b,ab,all", "c,cd,all", "d,cd,all"]
DAYS = [date(1970, 1, 1), date(1970, 1, 10)]
GROUPING = sorted(
    name for name, method in REGISTRY.items() if not method.noisy and method.has_groups
)
CENTRED = {"mondrian": {"output": "centroids"}}
"""Intervals are texts; what the contract says of types and means is about centres."""
AVERAGED = sorted(set(GROUPING) - {"full-domain", "local-suppression"})
"""Methods that release a centre of each group, of the type that its column has; the others
release labels, or cells as they were."""
DRAWN = {ReleaseForm.SYNTHETIC, ReleaseForm.TREE}
"""Forms in which no row stands for a row of the original."""
OUTPUT = {ReleaseForm.TREE: {"output": "tree"}}
"""Parameters that imply a form."""
ADD_REMOVE = {"dp-kdtree", "dp-quadtree", "privtree", "copula", "maxent", "auto"}
"""Methods that have a proof for a record that comes or goes."""
PUBLIC_BOUNDS = {"dp-kdtree", "dp-quadtree", "privtree", "copula", "maxent", "auto"}
"""Methods that take no bounds from the data at all."""
BUCKETED = {"bucketization"}
"""Methods that release confidential values as buckets, and need some."""
NOISY = sorted(name for name, method in REGISTRY.items() if method.input.clamped is protected)
"""Methods whose noise covers every protected column."""
RECORD_WISE = sorted(
    name for name, method in REGISTRY.items() if method.noisy and name not in NOISY
)
"""Methods that group the quasi-identifiers, and cover the confidential columns with noise."""
NOISY_FORMS = [(name, form) for name in NOISY for form in REGISTRY[name].forms.offered]
SPENDING_FORMS = [
    (name, form) for name in (*NOISY, *RECORD_WISE) for form in REGISTRY[name].forms.offered
]


def schema(hierarchy):
    return {
        "name": "identifier",
        "number": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-3, 3]},
        "rank": {"role": "quasi-identifier", "kind": "ordinal", "categories": LEVELS},
        "tree": {"role": "quasi-identifier", "kind": "nominal", "hierarchy": str(hierarchy)},
        "flat": {"role": "quasi-identifier", "kind": "nominal", "categories": LEVELS},
        "day": {"role": "quasi-identifier", "kind": "date", "bounds": DAYS},
        "secret": {"role": "confidential", "kind": "nominal", "categories": LEVELS},
        "batch": {"role": "other", "kind": "numeric", "public": True},
    }


@st.composite
def tables(draw):
    n = draw(st.integers(5, 40))

    def drawn(values, dtype):
        return pl.Series(draw(cells_of(values, n)), dtype=dtype)

    frame = pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(n)],
            "number": drawn(range(-3, 4), pl.Int64),
            "rank": drawn(LEVELS, pl.String),
            "tree": drawn(LEVELS, pl.String),
            "flat": drawn(LEVELS, pl.String),
            "day": drawn(range(10), pl.Int32).cast(pl.Date),
            "secret": drawn(LEVELS, pl.String),
            "batch": drawn(range(2), pl.Int64),
        }
    )
    return frame, np.random.default_rng(draw(st.integers(0, 999))).permutation(n).tolist()


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory):
    path = tmp_path_factory.mktemp("contract") / "tree.csv"
    path.write_text("\n".join(TAXONOMY))
    return path


def policy(name, hierarchy, *, changed=None, **protect):
    columns = schema(hierarchy)
    if name in (*NOISY, *RECORD_WISE) and name != "public-laplace":
        columns["batch"] = "identifier"
    # The best levels of a small table may be the roots.
    release = (
        {"release": {"accept_constant": list(columns)}}
        if name in {"full-domain", "local-suppression"}
        else {}
    )
    return {
        "version": 1,
        **release,
        "columns": columns | (changed or {}),
        "protect": {
            "method": name,
            **REGISTRY[name].example.parameters,
            **CENTRED.get(name, {}),
            **protect,
        },
    }


def strange(name, hierarchy, rows):
    """Cells that fit no domain, but for columns that the method does not clamp."""
    fit = {"number": "1", "rank": "a", "tree": "a", "flat": "a", "day": "1970-01-02"}
    cells = dict.fromkeys(schema(hierarchy), "x") | (fit if name in RECORD_WISE else {})
    return pl.DataFrame({c: [cell] * rows for c, cell in cells.items()}).with_columns(
        batch=pl.lit(1)
    )


def formed(form):
    return {"release_form": form.value, **OUTPUT.get(form, {})}


def run(frame, name, hierarchy, *, noise=None, form=None, **protect):
    kept = name in GROUPING
    protect |= {} if form is None else formed(form)
    return shoal.protect(frame, policy(name, hierarchy, **protect), keep_order=kept, noise=noise)


@pytest.mark.parametrize("name", GROUPING)
@given(case=tables(), aggregate=st.sampled_from(["mean", "median", "medoid", "mode"]))
@settings(max_examples=40)
def test_every_claim_holds_by_an_independent_count(hierarchy, name, case, aggregate):
    frame, _ = case
    choice = {"aggregate": aggregate} if name in AVERAGED else {}

    release = run(frame, name, hierarchy, **choice)

    assert release.claims
    for claim in release.claims:
        rows = release.data.select(claim.guarantee.columns).rows()
        if isinstance(claim.guarantee, KAnonymity):
            assert min(Counter(rows).values()) >= claim.guarantee.k
        else:
            assert claim.guarantee.distance is Distance.RATIO
            assert largest_ratio(release.data, claim.guarantee, rows) <= claim.guarantee.t
    assert all(check.holds for check in release.checks)


def largest_ratio(data, close, values):
    """How far a value's share in a class is from that in the table, by counting."""
    keys = data.select(close.keys).rows()
    sizes, whole = Counter(keys), Counter(values)
    inside = Counter(zip(keys, values, strict=True))
    ratios = [
        Fraction(inside[key, value] * len(values), sizes[key] * whole[value])
        for key in sizes
        for value in whole
    ]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPING)
@given(case=tables())
@settings(max_examples=30)
def test_permuting_the_rows_of_the_file_changes_nothing_but_their_order(hierarchy, name, case):
    frame, permutation = case

    straight = run(frame, name, hierarchy).data
    permuted = run(frame[permutation], name, hierarchy).data

    assert Counter(straight.rows()) == Counter(permuted.rows())


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPING)
@given(case=tables())
@settings(max_examples=20)
def test_rows_columns_types_and_unprotected_cells_stay(hierarchy, name, case):
    frame, _ = case

    released = run(frame, name, hierarchy).data

    assert released.columns == frame.columns[1:]
    assert released.height == frame.height
    for column in ("batch",) if name in BUCKETED else ("secret", "batch"):
        assert released[column].equals(frame[column])
    typed = ("rank", "tree", "flat", "day") if name in AVERAGED else ("rank", "tree", "flat")
    assert [released.schema[c] for c in typed] == [frame.schema[c] for c in typed]


@pytest.mark.slow
@pytest.mark.parametrize("name", AVERAGED)
@given(case=tables())
@settings(max_examples=20)
def test_whole_numbers_stay_whole_on_request(hierarchy, name, case):
    frame, _ = case

    released = run(frame, name, hierarchy, integers=True).data

    assert released.schema["number"] == pl.Int64


@pytest.mark.parametrize("name", AVERAGED)
@given(values=st.lists(st.integers(-1000, 1000), min_size=5, max_size=60))
@settings(max_examples=40)
def test_means_are_kept_where_nothing_is_missing(name, values):
    policy = {
        "version": 1,
        "columns": {"x": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-1000, 1000]}},
        "protect": {"method": name, **REGISTRY[name].example.parameters, **CENTRED.get(name, {})},
    }
    frame = pl.DataFrame({"x": values})
    if name in BUCKETED:
        policy["columns"]["secret"] = {"role": "confidential", "kind": "numeric"}
        frame = frame.with_columns(secret=pl.col("x") % 7)

    released = shoal.protect(frame, policy).data

    digits = 1000 * 5e-10  # a released mean has ten
    assert released["x"].mean() == pytest.approx(sum(values) / len(values), abs=digits)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), NOISY_FORMS)
@given(case=tables(), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_noisy_rows_lie_in_public_domains_and_only_drawn_ones_miss_cells(
    hierarchy, name, form, case, seed
):
    frame, _ = case

    released = run(frame, name, hierarchy, noise=SeededNoise(seed), form=form).data

    if form is ReleaseForm.TREE:
        numbers, days = ([released[f"{c}_{side}"] for side in ("lower", "upper")]
                         for c in ("number", "day"))  # fmt: skip
        assert min(numbers[0]) == -3
        assert max(numbers[1]) == pytest.approx(3)
        assert min(days[0]) == DAYS[0]
        assert max(days[1]) == DAYS[1] + timedelta(days=1)
        counts = released.select(f"secret={level}" for level in LEVELS)
        assert counts.sum_horizontal().sum() == pytest.approx(frame.height)
        assert min(counts.min().row(0)) >= 0
        return
    assert released.height == frame.height
    for column in ("rank", "tree", "flat", "secret"):
        assert set(released[column].drop_nulls()) <= set(LEVELS)
    assert released["number"].is_between(-3, 3).all()
    assert released["day"].is_between(*DAYS).all()
    missing = released.select(pl.exclude("batch")).null_count().row(0)
    assert missing == (0,) * 6 or name in MISSING


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), SPENDING_FORMS)
@given(case=tables())
@settings(max_examples=10)
def test_the_same_is_spent_whatever_the_data(hierarchy, name, form, case):
    frame, _ = case
    other = frame.with_columns(pl.exclude("batch").reverse().shift(1))

    spent = [
        run(f, name, hierarchy, noise=RecordingNoise(), form=form).privacy_losses
        for f in (frame, other)
    ]
    if form in DRAWN:
        # How often a step draws follows from the noisy outputs before it; its price does not.
        spent = [[replace(entry, draws=0) for entry in entries] for entries in spent]

    assert spent[0] == spent[1]


@pytest.mark.parametrize(("name", "form"), SPENDING_FORMS)
def test_what_is_spent_adds_up_to_every_claim_that_is_not_refuted(hierarchy, name, form):
    frame = strange(name, hierarchy, 30)
    noise = RecordingNoise()

    release = run(frame, name, hierarchy, noise=noise, form=form)
    claims = shoal.plan(policy(name, hierarchy, **formed(form))).claims

    for claim in claims:
        if isinstance(claim.guarantee, DifferentialPrivacy) and claim.status is not Status.REFUTED:
            accounting.verify(
                release.privacy_losses,
                claim.guarantee.epsilon,
                neighbours=claim.guarantee.neighbours,
                drawn=noise.drawn,
            )


EXTREME = [-(10**6), -1, 0, 1, 500]
"""What noise may add to an answer: no mass at all, one code, several times the number of rows."""
MISSING = {"privtree", "maxent", "auto"}
"""Methods that keep missing cells."""


@st.composite
def degenerate_tables(draw):
    """Few rows; any column may be missing for everybody, or have one value."""
    columns = {
        "age": ([0, 14, 15, 85, 100], pl.Int64),
        "hours": ([0, 1, 80], pl.Int64),
        "rank": (LEVELS, pl.String),
        "secret": (LEVELS, pl.String),
    }
    n = draw(st.integers(2, 8))
    cells = {name: draw(st.sampled_from([[None], values, values[:1]]))
             for name, (values, _) in columns.items()}  # fmt: skip
    return pl.DataFrame(
        {name: pl.Series(draw(cells_of(cells[name], n)), dtype=dtype)
         for name, (_, dtype) in columns.items()}
    )  # fmt: skip


@pytest.mark.parametrize("name", [*NOISY, *RECORD_WISE])
@given(frame=degenerate_tables(), added=st.lists(st.sampled_from(EXTREME), min_size=1, max_size=6),
       ruled=st.booleans(), neighbours=st.sampled_from(["change-one", "add-remove"]))  # fmt: skip
@settings(max_examples=8)
def test_nothing_after_the_draw_raises_and_rows_stay_in_their_domain(
    name, frame, added, ruled, neighbours
):
    kept = {"keep_missing": True} if name in MISSING else {}
    covered = "quasi-identifier" if name in NOISY else "confidential"
    numeric = {"role": covered, "kind": "numeric", "step": 1, **kept}
    ordinal = {"role": covered, "kind": "ordinal", "categories": LEVELS, "top_code": "c", **kept}
    number = {"age": numeric | {"bounds": [0, 100], "top_code": 85},
              "hours": numeric | {"bounds": [0, 80]}}  # fmt: skip
    stated = {
        "version": 1,
        "columns": (number if name != "pram" else {"age": "identifier", "hours": "identifier"})
        | {"rank": ordinal, "secret": ordinal | {"role": "confidential"}},
        "protect": {"method": name, **REGISTRY[name].example.parameters},
    }
    if name in ADD_REMOVE:
        stated["protect"]["neighbours"] = neighbours
    if "k" in stated["protect"]:
        stated["protect"]["k"] = 2
    if REGISTRY[name].forms.must_choose:
        stated["protect"]["release_form"] = "linked-shuffled"
    if name in RECORD_WISE:
        frame = frame.with_columns(key=pl.lit("a"))
        stated["columns"]["key"] = {
            "role": "quasi-identifier", "kind": "nominal", "categories": LEVELS,
        }  # fmt: skip
    if name == "public-laplace":
        frame = frame.with_columns(batch=pl.lit(1))
        stated["columns"]["batch"] = {"role": "other", "kind": "numeric", "public": True}
    if ruled and name != "pram":
        stated["constraints"] = {"rules": ["age < 15 implies hours = 0", "hours <= age"]}

    released = shoal.protect(frame, stated, noise=RecordingNoise(added)).data

    assert not set(released["rank"].drop_nulls()) & {"d"}
    if name != "pram":
        age, hours = (released[c].cast(pl.Float64) for c in ("age", "hours"))
        assert age.drop_nulls().is_between(0, 85).all()
        assert hours.drop_nulls().is_between(0, 80).all()
    if "constraints" in stated:
        assert not ((age < 15) & (hours.abs() > 1e-9)).any()
        assert not (hours > age + 1e-6).any()


@pytest.mark.parametrize(("name", "form"), SPENDING_FORMS)
def test_noise_that_is_not_secure_carries_no_claim_of_differential_privacy(hierarchy, name, form):
    frame = strange(name, hierarchy, 20)

    real = run(frame, name, hierarchy, form=form)
    fake = run(frame, name, hierarchy, noise=SeededNoise(1), form=form)

    assert any(isinstance(claim.guarantee, DifferentialPrivacy) for claim in real.claims)
    assert all(isinstance(claim.guarantee, KAnonymity) for claim in fake.claims)


@pytest.mark.parametrize("name", NOISY)
def test_noisy_methods_refuse_what_no_claim_survives(hierarchy, name):
    form = REGISTRY[name].forms.offered[0].value

    def plan(**changes):
        return shoal.plan(policy(name, hierarchy, release_form=form, **changes))

    bare = {"role": "quasi-identifier"}
    protected = [c for c in schema(hierarchy) if c not in {"name", "batch"}]

    plan()
    if name in ADD_REMOVE:
        assert plan(neighbours="add-remove").claims[0].status is Status.PROVED
    else:
        with pytest.raises(InputError, match="change-one neighbours only"):
            plan(neighbours="add-remove")
    with pytest.raises(InputError, match="'number': expected bounds"):
        plan(changed={"number": bare | {"kind": "numeric"}})
    with pytest.raises(InputError, match="'flat': expected categories"):
        plan(changed={"flat": bare | {"kind": "nominal"}})
    both = "Columns 'note' and 'remark' would be released without noise.*'number': expected bounds"
    with pytest.raises(InputError, match=both):
        plan(
            changed={"note": "other", "remark": "other", "number": bare | {"kind": "numeric"}},
            columns=protected,
        )
    with pytest.raises(InputError, match="epsilon"):
        plan(epsilon=0)


@pytest.mark.parametrize(("name", "form"), NOISY_FORMS)
def test_what_is_read_off_the_data_weakens_the_claim(hierarchy, name, form):
    flat = schema(hierarchy)["flat"] | {"observed": True}

    def claims(**changes):
        planned = shoal.plan(policy(name, hierarchy, **formed(form), **changes))
        return [c for c in planned.claims if isinstance(c.guarantee, DifferentialPrivacy)]

    assert all(claim.status is not Status.PROVED for claim in claims(changed={"flat": flat}))
    if name in PUBLIC_BOUNDS:
        with pytest.raises(InputError, match="no parameter 'bounds'"):
            claims(bounds="from-data")
    else:
        assert all(claim.status is Status.REFUTED for claim in claims(bounds="from-data"))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORD_WISE)
@given(
    case=tables(),
    seed=st.integers(0, 99),
    aggregate=st.sampled_from(["mean", "median", "medoid", "mode"]),
    partition=st.sampled_from(["mdav", "mondrian"]),
)
@settings(max_examples=40)
def test_classes_hold_k_and_confidential_cells_lie_in_their_domains(
    hierarchy, name, case, seed, aggregate, partition
):
    frame, _ = case

    release = run(
        frame, name, hierarchy, noise=SeededNoise(seed), aggregate=aggregate, partition=partition
    )

    assert release.data.height == frame.height
    (claim,) = release.claims
    rows = release.data.select(claim.guarantee.columns).rows()
    assert min(Counter(rows).values()) >= claim.guarantee.k
    assert set(release.data["secret"]) <= set(LEVELS)
    assert all(check.holds for check in release.checks)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORD_WISE)
@given(case=tables(), partition=st.sampled_from(["mdav", "mondrian"]), data=st.data())
@settings(max_examples=100)
def test_released_quasi_identifiers_do_not_follow_confidential_values(
    hierarchy, name, case, partition, data
):
    frame, _ = case
    secrets = data.draw(cells_of(LEVELS, len(frame)))
    other = frame.with_columns(secret=pl.Series(secrets, dtype=pl.String))

    released = [
        shoal.protect(
            f, policy(name, hierarchy, partition=partition), keep_order=True, noise=RecordingNoise()
        ).data
        for f in (frame, other)
    ]

    assert released[0].drop("secret").equals(released[1].drop("secret"))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORD_WISE)
@given(case=tables())
@settings(max_examples=30)
def test_permuting_the_file_changes_no_class_of_quasi_identifiers(hierarchy, name, case):
    frame, permutation = case

    straight = run(frame, name, hierarchy, noise=RecordingNoise()).data
    permuted = run(frame[permutation], name, hierarchy, noise=RecordingNoise()).data

    assert Counter(straight.drop("secret").rows()) == Counter(permuted.drop("secret").rows())


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_method_names_its_reference_and_says_what_it_does(name):
    method = REGISTRY[name]

    assert method.summary.endswith(".")
    assert len(method.reference) > 20
    assert method.forms.offered
    for field in method.parameters.model_fields.values():
        assert field.description
    if method.forms.must_choose:
        assert method.forms.offered[0] is ReleaseForm.COLUMN_SHUFFLED
