"""Rows drawn from noisy models of all columns, from policy to release."""

import json
from collections import Counter
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cells import cells_of

import shoal
from shoal.core import LAPLACE, Kind, Neighbours, ReleaseForm, Status
from shoal.errors import ClaimViolationError, InputError
from shoal.hazmat import accounting
from shoal.hazmat.fakes import RecordingNoise, SeededNoise
from shoal.hazmat.noise import OpenDPNoise
from shoal.methods.drawn_rows.merge_rare import merge_rare_rows
from shoal.methods.drawn_rows.synthesis_prices import domain_of
from shoal.methods.trees.spatial_encoding import spatial_encoding
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.publish import protect_file
from shoal.report.metadata import METADATA
from shoal.synthesis.copula import kendall

METHODS = ["privtree", "copula", "maxent", "auto"]
VARIANTS = [
    ("privtree", {}),
    ("privtree", {"fill": "centroid", "theta": 3}),
    ("copula", {}),
    ("copula", {"margins": "tree"}),
    ("maxent", {}),
    ("auto", {}),
    ("auto", {"goal": "means"}),
]
GRADES = ["low", "middle", "high"]
JOBS = ["clerk", "cook", "none"]
BORN = [date(1950, 1, 1), date(1951, 12, 31)]
COLUMNS = {
    "id": "identifier",
    "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110], "step": 1},
    "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
    "income": {
        "role": "confidential", "kind": "numeric", "bounds": [0, 1000], "top_code": 500,
        "transform": "log",
    },
    "rate": {
        "role": "confidential", "kind": "numeric", "bounds": [Decimal("-0.9"), 1],
        "step": Decimal("0.25"), "transform": "sqrt",
    },
    "born": {"role": "confidential", "kind": "date", "bounds": BORN},
    "grade": {"role": "confidential", "kind": "ordinal", "categories": GRADES},
    "job": {"role": "confidential", "kind": "nominal", "categories": JOBS},
}  # fmt: skip
NUMBER = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 1]}


def policy(method, columns=None, *, kept=False, **protect):
    """With cells that cannot be missing, unless missing cells are kept, as by default."""
    stated = {} if kept else {"keep_missing": False}
    return {
        "version": 1,
        "columns": {
            name: {**stated, **column} if isinstance(column, dict) else column
            for name, column in (COLUMNS if columns is None else columns).items()
        },
        "protect": {"method": method, "epsilon": 1, **protect},
    }


EDGES = [-0.9, 1.0, np.nextafter(-0.9, -1), np.nextafter(1, 2), -0.0, 5e-324]
RATES = [*EDGES, *np.linspace(-2, 2, 999)]
"""Inside the bounds, outside, and as near to them as a float can be."""


@st.composite
def tables(draw, least=2):
    """Ties, missing cells, cells out of bounds, constant columns."""
    n = draw(st.integers(least, 25))
    constant = draw(st.booleans())

    def drawn(values, dtype):
        cells = draw(cells_of(values, 1)) * n if constant else draw(cells_of(values, n))
        return pl.Series(cells, dtype=dtype)

    return pl.DataFrame(
        {
            "id": pl.Series([f"p{i}" for i in range(n)]),
            "age": drawn(range(-5, 121), pl.Int64),
            "sex": drawn(["f", "m", "?"], pl.String),
            "income": drawn([0.0, 0.5, 1e9], pl.Float64),
            "rate": drawn(RATES, pl.Float64),
            "born": drawn(range(-7670, -6208), pl.Int32).cast(pl.Date),  # from 1949 to 1953
            "grade": drawn(GRADES, pl.String),
            "job": drawn(JOBS, pl.String),
        }
    )


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "income": np.exp(rng.normal(4, 1, n)),
            "rate": rng.integers(-3, 5, n) / 4,
            "born": pl.Series(rng.integers(-7300, -6600, n)).cast(pl.Date),
            "grade": rng.choice(GRADES, n, p=[0.2, 0.5, 0.3]),
            "job": np.where(age > 60, "none", "cook"),
        }
    )


# What comes out.


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@given(
    frame=tables(),
    seed=st.integers(0, 99),
    epsilon=st.sampled_from(["0.01", "1", "100"]),
    kept=st.booleans(),
)
@settings(max_examples=15)
def test_rows_have_public_values_and_their_number_is_kept(
    name, options, frame, seed, epsilon, kept
):
    rules = policy(name, kept=kept, epsilon=Decimal(epsilon), **options)

    released = shoal.protect(frame, rules, noise=SeededNoise(seed)).data

    assert released.height == frame.height
    assert released.columns == frame.columns[1:]
    assert kept or sum(released.null_count().row(0)) == 0
    assert released["age"].is_between(0, 110).all()
    assert (released["age"] % 1 == 0).all()
    assert released["income"].is_between(0, 500).all()
    assert released["rate"].is_between(-0.75, 1).all()
    assert (released["rate"] * 4 % 1 == 0).all()
    assert released["born"].is_between(*BORN).all()
    assert set(released["sex"].drop_nulls()) <= {"f", "m"}
    assert set(released["grade"].drop_nulls()) <= set(GRADES)
    assert set(released["job"].drop_nulls()) <= set(JOBS)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_a_fake_noise_repeats_rows_and_measurements(name, options):
    frame = people(60)

    first, second = (
        shoal.protect(frame, policy(name, **options), noise=SeededNoise(7)) for _ in range(2)
    )

    assert Counter(first.data.rows()) == Counter(second.data.rows())
    assert first.extras["measurements"].equals(second.extras["measurements"])
    assert first.claims == ()


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@given(frame=tables(), epsilon=st.decimals("0.001", 50, places=3))
@settings(max_examples=8)
def test_prices_add_up_exactly_and_are_the_same_whatever_the_data(name, options, frame, epsilon):
    rules = policy(name, epsilon=epsilon, **options)
    other = frame.with_columns(pl.exclude("id").reverse().shift(1))

    spent = []
    for table in (frame, other):
        noise = RecordingNoise()
        privacy_losses = shoal.protect(table, rules, noise=noise).privacy_losses
        assert sum(entry.epsilon for entry in privacy_losses) == Fraction(epsilon)
        accounting.verify(
            privacy_losses, Fraction(epsilon), neighbours=Neighbours.CHANGE_ONE, drawn=noise.drawn
        )
        spent.append([replace(entry, draws=0) for entry in privacy_losses])

    assert spent[0] == spent[1]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_the_claim_is_proved_and_gives_credit(name, options):
    planned = shoal.plan(policy(name, **options))

    (claim,) = planned.claims
    assert claim.status is Status.PROVED
    assert claim.release_form is ReleaseForm.SYNTHETIC
    assert claim.guarantee.protects == tuple(COLUMNS)[1:]
    assert claim.guarantee.invariants == ("the number of rows",)
    assert claim.source.endswith("the combination and its proof are ours, unreviewed")
    assert any(text.startswith("k-anonymity:") for text in planned.not_claimed)
    assert any(text.startswith("Tails:") for text in planned.not_claimed)
    assert not any("transform" in note for note in planned.notes)
    credit = {"privtree": "PrivTree", "copula": "DPCopula", "maxent": "AIM"}
    for word in credit.values() if name == "auto" else [credit[name]]:
        assert word in claim.source


# Small and odd tables.


@pytest.mark.parametrize("name", ["privtree", "maxent", "auto"])
def test_one_column_of_numbers_is_enough(name):
    frame = people(200).select("age")

    released = shoal.protect(frame, policy(name, {"age": COLUMNS["age"]}, epsilon=100)).data

    assert released.height == 200
    assert abs(released["age"].mean() - frame["age"].mean()) < 5


@pytest.mark.parametrize("name", ["privtree", "maxent", "auto"])
def test_one_column_of_categories_is_enough(name):
    frame = people(200).select("job")

    release = shoal.protect(frame, policy(name, {"job": COLUMNS["job"]}, epsilon=100))

    true, drawn = (dict(data["job"].value_counts().iter_rows()) for data in (frame, release.data))
    assert sum(abs(true.get(job, 0) - drawn.get(job, 0)) for job in true | drawn) < 20
    if name == "auto":
        assert (
            "auto chose maxent (one-way marginals alone) for the goal 'counts'."
            in release.manifest.notes
        )


def test_a_copula_wants_two_columns():
    with pytest.raises(InputError, match="at least two columns"):
        shoal.plan(policy("copula", {"age": COLUMNS["age"]}))


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_one_row_is_released_or_refused_before_anything_is_spent(name, options):
    frame = people(1)
    if name == "copula":
        noise = RecordingNoise()
        with pytest.raises(InputError, match="at least two rows"):
            shoal.protect(frame, policy(name, **options), noise=noise)
        assert noise.calls == []
        return

    release = shoal.protect(frame, policy(name, **options))

    assert release.data.height == 1
    (note,) = [text for text in release.manifest.notes if text.startswith("With 1 row ")]
    assert "is preserved" in note


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_columns_of_a_single_value_are_no_trouble(name, options):
    columns = {
        "a": {**NUMBER, "bounds": [5, 9], "top_code": 5},
        "b": {"role": "quasi-identifier", "kind": "nominal", "categories": ["only"]},
        "c": {"role": "quasi-identifier", "kind": "ordinal", "categories": ["only"]},
    }
    frame = pl.DataFrame({"a": [7.0] * 9, "b": ["only"] * 9, "c": ["?"] * 9})

    released = shoal.protect(frame, policy(name, columns, **options)).data

    assert released.rows() == [(5.0, "only", "only")] * 9


@pytest.mark.parametrize("name", METHODS)
def test_few_rows_work_and_are_warned_about(name):
    rules = policy(name, {"age": COLUMNS["age"], "sex": COLUMNS["sex"]}, epsilon=50)

    release = shoal.protect(people(49).select("age", "sex"), rules)

    expected = "With 49 rows, fewer than 50, one record is a large part of every count."
    assert release.manifest.notes.count(expected) == 1


@pytest.mark.parametrize("name", METHODS)
def test_more_combinations_than_memory_could_hold_are_no_trouble(name):
    """Ten columns of 2^20 to 10^15 cells each, and a nominal of 3,000 categories."""
    categories = [f"c{i}" for i in range(3000)]
    fine = {**NUMBER, "bounds": [0, 10**6], "step": Decimal("1e-9")}
    columns = {f"x{j}": NUMBER for j in range(9)} | {
        "fine": fine,
        "many": {"role": "confidential", "kind": "nominal", "categories": categories},
    }
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {c: rng.random(300) for c in columns if c != "many"} | {"many": rng.choice(categories, 300)}
    )

    released = shoal.protect(frame, policy(name, columns)).data

    assert released.height == 300
    assert released["fine"].is_between(0, 10**6).all()


# Refusals.


@pytest.mark.parametrize("name", METHODS)
def test_what_cannot_work_is_refused_in_sentences(name):
    def plan(columns=None, **protect):
        return shoal.plan(policy(name, {**COLUMNS, **(columns or {})}, **protect))

    with pytest.raises(InputError, match="'age': expected bounds"):
        plan({"age": {"role": "quasi-identifier", "kind": "numeric"}})
    with pytest.raises(InputError, match="'sex': expected categories or a hierarchy"):
        plan({"sex": {"role": "quasi-identifier", "kind": "nominal"}})
    for epsilon in (0, -1, Decimal("NaN"), Decimal("-Infinity"), float("nan"), "much", None):
        with pytest.raises(InputError, match="epsilon"):
            plan(epsilon=epsilon)
    with pytest.raises(
        InputError,
        match="'town': values cannot stand beside the release; the method",
    ):
        plan({"town": {"role": "other", "public": True}})
    with pytest.raises(InputError, match="has no release form 'row-aligned'"):
        plan(release_form="row-aligned")
    with pytest.raises(InputError, match="min_cell"):
        plan(min_cell=1)


def test_a_smallest_cell_needs_quasi_identifiers_and_as_many_rows():
    bare = {name: COLUMNS[name] for name in ("income", "job")}
    noise = RecordingNoise()

    with pytest.raises(InputError, match="min_cell: expected a quasi-identifier, found none"):
        shoal.plan(policy("auto", bare, min_cell=3))
    with pytest.raises(InputError, match="at most the number of rows, 8, found 9"):
        shoal.protect(people(8), policy("auto", min_cell=9), noise=noise)
    assert noise.calls == []


def test_k_anonymity_is_not_to_be_had_from_a_smallest_cell():
    rules = policy("auto", min_cell=5) | {"require": {"k-anonymity": 5}}

    with pytest.raises(ClaimViolationError, match="among synthetic rows, which are not persons"):
        shoal.plan(rules)


# Merging of rare combinations.


@st.composite
def drawn_rows(draw):
    d = draw(st.integers(1, 3))
    cells = st.tuples(*[st.integers(0, 4)] * d)
    rows = np.array(draw(st.lists(cells, min_size=2, max_size=60))) / 4
    nominal = np.array(draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    return rows, nominal, draw(st.integers(2, min(len(rows), 9)))


@given(drawn_rows())
@settings(max_examples=200)
def test_merging_leaves_no_rare_combination_and_touches_no_other(case):
    rows, nominal, least = case
    before = Counter(map(tuple, rows))

    source = merge_rare_rows(rows, nominal, least)

    after = Counter(map(tuple, rows[source]))
    assert min(after.values()) >= least
    for row, taken in zip(rows, rows[source], strict=True):
        assert before[tuple(row)] < least or tuple(row) == tuple(taken)
        assert tuple(taken) in before
    rare = [i for i, row in enumerate(rows) if before[tuple(row)] < least]
    if 0 < len(rare) < least:
        staying = sorted(row for row, count in before.items() if count >= least)
        for i in rare:
            apart = [
                sum(float(a != b) if n else abs(a - b)
                    for a, b, n in zip(row, rows[i], nominal, strict=True))
                for row in staying
            ]  # fmt: skip
            assert tuple(rows[source[i]]) == staying[int(np.argmin(apart))]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@given(frame=tables(), least=st.integers(2, 8), seed=st.integers(0, 99))
@settings(max_examples=10)
def test_a_smallest_cell_is_kept_in_the_release(name, options, frame, least, seed):
    least = min(least, frame.height)
    rules = policy(name, min_cell=least, **options)

    released = shoal.protect(frame, rules, noise=SeededNoise(seed)).data

    assert min(Counter(released.select("age", "sex").rows()).values()) >= least
    assert released.height == frame.height


# What is told beside the rows.


def test_measurements_of_tables_are_counts_of_what_their_cells_say():
    """With noise that adds nothing the answers are exact."""
    frame = people(400)

    release = shoal.protect(frame, policy("maxent", epsilon=50), noise=RecordingNoise())

    told = release.extras["measurements"]
    assert told.columns[:4] == ["measurement", "sort", "answer", "scale"]
    assert told.columns[4:] == [f"cell_{name}" for name in frame.columns[1:]]
    assert set(told["sort"]) == {"table"}
    counts = told.group_by("measurement")
    assert (counts.agg(pl.col("answer").sum())["answer"] == 400).all()
    jobs = told.filter(pl.col("cell_job").is_not_null() & (pl.col("measurement") == 6))
    assert dict(jobs.select("cell_job", "answer").rows()) == {
        job: frame["job"].to_list().count(job) for job in JOBS
    }
    cells = told.filter((pl.col("cell_sex") == "f") & (pl.col("cell_grade") == "high"))
    counted = frame.filter((pl.col("sex") == "f") & (pl.col("grade") == "high")).height
    blocks = cells.group_by("measurement").agg(pl.col("answer").sum())["answer"].to_list()
    assert blocks
    assert set(blocks) == {counted}  # whatever other columns a block has
    drawn = [entry for entry in release.privacy_losses if entry.mechanism == LAPLACE]
    scales = {entry.scale for entry in drawn if "tree" not in entry.target}
    assert set(told["scale"]) == {float(scale) for scale in scales}


def test_measurements_of_a_tree_are_counts_of_its_leaves():
    columns = {"age": COLUMNS["age"], "sex": COLUMNS["sex"], "grade": COLUMNS["grade"]}
    frame = people(300).select(list(columns))

    told = shoal.protect(
        frame, policy("privtree", columns, epsilon=20), noise=RecordingNoise()
    ).extras["measurements"]

    assert set(told["sort"]) == {"tree"}
    assert told["answer"].sum() == 300
    assert told.height > 3
    for age, sex, grade, answer in told.select(
        "cell_age", "cell_sex", "cell_grade", "answer"
    ).rows():
        low, high = (int(end) for end in age.strip("[])").split(", "))
        grades = GRADES if " to " in grade else grade.split(" | ")
        found = frame.filter(
            pl.col("age").is_between(low, high, closed="both" if age[-1] == "]" else "left")
            & pl.col("sex").is_in(sex.split(" | "))
            & pl.col("grade").is_in(grades)
        )
        assert found.height == answer


def test_measurements_of_a_copula_are_sums_by_rank_and_concordances():
    columns = {
        "age": COLUMNS["age"],
        "rate": {**NUMBER, "bounds": [-1, 1], "step": Decimal("0.25")},
    }
    frame = people(40).select(list(columns))

    told = shoal.protect(frame, policy("copula", columns), noise=RecordingNoise()).extras[
        "measurements"
    ]

    ages = told.filter((pl.col("sort") == "blocks") & pl.col("cell_age").is_not_null())
    assert ages["cell_age"][0] == "ranks 1 to 10"
    assert ages["answer"][0] == frame["age"].sort()[:10].sum()
    assert ages["answer"].sum() == frame["age"].sum()
    (links,) = told.filter(pl.col("sort") == "concordances").rows(named=True)
    assert (links["cell_age"], links["cell_rate"]) == ("with rate", "with age")
    assert links["answer"] == kendall(
        frame["age"].to_numpy(), (frame["rate"] * 4).cast(pl.Int64).to_numpy()
    )


UNEVALUATED = EvaluationOptions(evaluate=False)


def test_measurements_are_published_with_their_digest_and_can_be_replaced(tmp_path):
    data, rules = tmp_path / "people.parquet", tmp_path / "policy.json"
    people(80).write_parquet(data)
    out = tmp_path / "out"

    for force in (False, True):
        loaded = shoal.load_policy(policy("auto"))
        published = protect_file.protect(
            data, loaded, out, output=OutputOptions(force=force), evaluation=UNEVALUATED
        )

    assert not rules.exists()
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    files = {"release.parquet", "measurements.parquet", "report.html", *METADATA}
    assert set(manifest["files"]) == files
    assert {path.name for path in out.iterdir()} == {"manifest.json", *files}
    assert pl.read_parquet(out / "measurements.parquet").height > 10
    assert any(note.startswith("auto chose maxent") for note in published.notes)


@pytest.mark.parametrize("form", ["parquet", "csv", "sav", "dta"])
def test_the_folder_says_that_no_row_is_a_person_and_what_rows_are_no_good_for(tmp_path, form):
    data, out = tmp_path / "people.parquet", tmp_path / "out"
    people(60).write_parquet(data)

    protect_file.protect(
        data,
        shoal.load_policy(policy("maxent")),
        out,
        output=OutputOptions(file_format=form),
        evaluation=UNEVALUATED,
    )

    text = "Rows were drawn from a noisy model: no row is a person."
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    assert text in manifest["notes"]
    page = (out / "report.html").read_text("utf-8")
    codebook = page[page.index('id="codebook"') :]
    assert "no row is a person" in codebook[: codebook.index("<table>")]
    for use in (
        "Dependence beyond the marginals",
        "Tails:",
        "k-anonymity: rows are synthetic",
    ):
        assert any(line.startswith(use) for line in manifest["not_claimed"])
        assert use in page
    if form == "parquet":
        assert pl.read_parquet_metadata(out / "release.parquet")["shoal.about"] == text
    elif form != "csv":
        pyreadstat = pytest.importorskip("pyreadstat")
        read = {"sav": pyreadstat.read_sav, "dta": pyreadstat.read_dta}[form]
        assert read(str(out / f"release.{form}"), metadataonly=True)[1].file_label == text


def test_pandas_tables_get_their_measurements_as_pandas():
    pandas = pytest.importorskip("pandas")

    release = shoal.protect(people(30).to_pandas(), policy("privtree"))

    assert isinstance(release.data, pandas.DataFrame)
    assert isinstance(release.extras["measurements"], pandas.DataFrame)


@pytest.mark.parametrize(
    ("columns", "options", "chosen"),
    [
        (["age", "sex"], {}, "auto chose privtree (fill uniform) for the goal 'counts'."),
        (["age", "income", "rate"], {"goal": "means"}, "auto chose copula (margins blocks) for"),
        (
            ["age", "sex", "grade", "job"],
            {},
            "auto chose maxent (marginals full) for the goal 'counts'.",
        ),
    ],
)
def test_auto_says_what_it_chose_why_and_what_to_expect(columns, options, chosen):
    rules = policy("auto", {name: COLUMNS[name] for name in columns}, **options)

    notes = shoal.protect(people(240).select(columns), rules).manifest.notes

    at = next(i for i, note in enumerate(notes) if note.startswith(chosen))
    assert len(notes) > at + 2
    assert notes[-1].startswith(("Settings and diagnostics:", "With 240 rows"))
    assert len(set(notes)) == len(notes)


def test_a_failed_requirement_says_that_a_further_try_costs_epsilon_again():
    """Failing is certain: two rows do not have three jobs."""
    rules = policy("privtree") | {"require": {"l-diversity": {"l": 3, "column": "job"}}}

    with pytest.raises(ClaimViolationError, match=r"Each further try draws new noise and spends"):
        shoal.protect(people(2), rules)


# Columns as codes.


def test_a_transform_gives_small_numbers_more_codes():
    schema = shoal.load_policy(policy("auto")).schema

    plain, scaled = (
        spatial_encoding(schema["income"]),
        spatial_encoding(schema["income"], scaled=True),
    )

    assert plain.count == scaled.count == 2**20 + 1
    assert plain.values(np.array([2**19]))[0] == 250
    assert 0 < scaled.values(np.array([2**19]))[0] < 50
    assert domain_of(scaled).kind is Kind.NUMERIC
    assert spatial_encoding(schema["age"], scaled=True).count == 111


def test_multiples_of_a_step_lie_within_bounds_that_are_none():
    column = {**NUMBER, "bounds": [Decimal("0.3"), Decimal("2.9")], "step": 1}
    (axis,) = (
        spatial_encoding(shoal.load_policy(policy("privtree", {"x": column})).schema["x"], scaled=s)
        for s in (True,)
    )

    assert axis.values(np.arange(axis.count)).tolist() == [1, 2]


def test_a_hierarchy_is_halved_between_its_largest_branches(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("a,p,all\nb,q,all\nc,p,all\nd,q,all\ne,q,all\n")
    column = {"role": "quasi-identifier", "kind": "nominal", "hierarchy": str(path)}
    axis = spatial_encoding(
        shoal.load_policy(policy("privtree", {"x": column})).schema["x"], scaled=True
    )

    assert domain_of(axis).cut(0, 5) == 2  # between a, c and b, d, e


# The audit.


class WeakNoise(OpenDPNoise):
    """A fake with a bug: noise of an eighth of the scale that was asked for."""

    def _laplace(self, values, scale):
        return super()._laplace(values, scale / 8)


SURE = 1 - 1e-6
PAIR = {name: {"role": "quasi-identifier", "kind": "nominal", "categories": ["0", "1"]}
        for name in "ab"}  # fmt: skip


def corner(n, moved):
    """All at one corner, but for one who may be at the other."""
    cells = ["0"] * (n - 1) + ["1" if moved else "0"]
    return pl.DataFrame({"a": cells, "b": cells})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), VARIANTS[:-2])
def test_audits_find_nothing(name, options):
    """False alarms: below 1e-6, the confidence of the bounds. 600 runs show noise of an eighth of
    its scale, as below."""
    rules = policy(name, PAIR, **options)

    found = shoal.audit(
        rules, pair=(corner(12, moved=False), corner(12, moved=True)), trials=600, confidence=SURE
    )

    assert found.verdict == "no violation found"
    assert found.worst.claim.status is Status.PROVED


@pytest.mark.parametrize("options", [options for name, options in VARIANTS if name == "auto"])
@pytest.mark.parametrize("moved", [False, True])
def test_on_the_audited_pair_auto_draws_what_an_audited_method_draws(options, moved):
    table = corner(12, moved=moved)
    auto, *others = (
        shoal.protect(table, policy(name, PAIR, **own), noise=SeededNoise(1))
        for name, own in (("auto", options), ("maxent", {}), ("privtree", {}))
    )

    same = [one for one in others if one.data.equals(auto.data)]
    assert [one.privacy_losses for one in same] == [auto.privacy_losses]


def line(moved):
    """Three at one end of the line, of whom one may be at the other."""
    cells = [0.0, 0.0, 1.0 if moved else 0.0]
    return pl.DataFrame({"a": cells, "b": cells})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "trials"), [("privtree", 560), ("copula", 480), ("maxent", 760)],
    ids=["privtree", "copula", "maxent"],
)  # fmt: skip
def test_noise_of_an_eighth_of_its_scale_is_found(name, trials):
    """The copula's blocks are single records here, which tell most.

    Of so few records `maxent` believes hardly anything at epsilon 1, and its rows tell less.
    The events found have chances near 0.77 and 0.03, 0.67 and 0.01, 0.81 and 0: a miss below 1e-6
    takes 275, 230 and 370 runs of the counting half.
    """
    columns = {c: {**NUMBER, "step": Decimal("0.0625")} for c in "ab"}
    epsilon = 2 if name == "maxent" else 1
    rules = policy(name, columns if name == "copula" else PAIR, epsilon=epsilon)
    pair = [line(m) if name == "copula" else corner(12, moved=m) for m in (False, True)]

    found = shoal.audit(rules, pair=tuple(pair), trials=trials, confidence=SURE, noise=WeakNoise())

    assert found.violated


@pytest.mark.slow
def test_an_audit_of_the_folder_reads_the_measurements_too():
    """Noise that adds nothing shows in them; with real noise nothing is found.

    False alarms: below 1e-6, the confidence of the bounds. Without noise all 30 runs that count
    show the event on one table and none on the other, a bound of 0.38.
    """
    pair = (corner(12, moved=False), corner(12, moved=True))

    def audit(trials, noise=None):
        return shoal.audit(policy("maxent", PAIR, epsilon=Decimal("0.25")), pair=pair,
                           level="files", trials=trials, confidence=SURE, noise=noise)  # fmt: skip

    assert not audit(30).violated
    assert audit(60, RecordingNoise()).violated
