"""Nothing nearly unique is released unchanged by a draft, and persons are found by structure."""

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy import first_files, odd_files
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.core import Kind, Role
from shoal.errors import InputError
from shoal.policy import exposure
from shoal.policy.guess import Guess


def people(rows=600, seed=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame({
        "age": rng.integers(18, 80, rows),
        "sex": rng.choice(["m", "f"], rows),
        "salary": np.exp(rng.normal(10.5, 0.6, rows)).round().astype(int),
    })  # fmt: skip


@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 2)), min_size=20, max_size=200),
    st.integers(2, 6),
)
@settings(max_examples=80)
def test_after_coarsening_at_least_k_people_share_every_value(numbers, k):
    values = pl.Series(numbers)

    coding = exposure.coarsen_numbers(values, None, k)

    if coding:
        counts = exposure.round_values(values, coding).round(6).value_counts()["count"]
        assert counts.min() >= k
        step = float(coding["step"])
        assert all(float(coding[key]) % step in {0, step} or
                   abs(float(coding[key]) / step - round(float(coding[key]) / step)) < 1e-6
                   for key in coding.keys() - {"step"})  # fmt: skip


def test_persons_are_counted_and_not_their_rows():
    values = pl.Series([100.0] * 10 + [1.0, 2.0, 3.0, 4.0, 5.0] * 4)
    persons = pl.Series([1] * 10 + list(range(2, 22)))

    assert exposure.alone(values, None, 5) == pytest.approx(20 / 30)
    assert exposure.alone(values, persons, 5) == 1


def test_the_drafted_release_has_no_exact_salary_and_says_that_nobody_reviewed_it():
    table = people()

    release = shoal.protect(table, k=5, quasi_identifiers=["age", "sex"], confidential=["salary"])

    counts = release.data["salary"].value_counts()["count"]
    assert counts.min() >= 5
    assert "drafted by program, and nobody has reviewed it" in str(release)
    assert "rounded to multiples of" in release.policy


@pytest.mark.parametrize(("audience", "exact"), [("secure-use", 1.0), ("scientific-use", 0.9)])
def test_the_audience_decides_how_much_is_kept(audience, exact):
    table = people()

    drafted = shoal.draft(table, audience=audience)
    released = shoal.protect(table, drafted).data["salary"]

    assert released.is_in(table["salary"].implode()).mean() >= exact


@given(
    st.lists(st.floats(1, 1e6).map(lambda x: round(x, 2)), min_size=40, max_size=200, unique=True),
    st.integers(2, 6),
)
@settings(max_examples=80)
def test_limits_of_tails_are_round_numbers_beyond_which_k_people_are(numbers, k):
    values = pl.Series(numbers)

    coding = exposure.coarsen_numbers(values, None, k, tails_only=True)

    coded = exposure.round_values(values, coding)
    assert "step" not in coding
    for key, end in (("bottom_code", coded.min()), ("top_code", coded.max())):
        if key in coding:
            assert (coded == end).sum() >= k
            assert len(coding[key].strip("-").replace(".", "").strip("0")) <= 3
    between = coded.is_between(coded.min(), coded.max(), closed="none")
    assert coded.filter(between).equals(values.filter(between))


def test_a_draft_for_science_states_no_extreme_of_the_table_and_says_what_is_shared():
    pay = np.exp(np.random.default_rng(2).normal(10, 0.4, 500)).round(2)

    drafted = shoal.draft(pl.DataFrame({"pay": pay, "sex": ["f", "m"] * 250}),
                          audience="scientific-use")  # fmt: skip

    guess = drafted.guesses["pay"]
    assert not {float(guess.coding[key]) for key in ("bottom_code", "top_code")} & {*pay}
    assert all(float(limit) % 500 == 0 for limit in guess.coding.values())
    assert guess.reason.endswith("so 5 people share either end")


def test_a_draft_is_not_published_or_signed_before_somebody_has_reviewed_it(tmp_path):
    table = people()
    text = shoal.draft(table).text.replace("version = 1", "version = 1\none_row_per_person = true")
    public = text + '[release]\naudience = "public-use"\n'

    with pytest.raises(InputError, match="needs a policy that a person has reviewed"):
        shoal.protect(table, public)
    shoal.protect(table, text).write(tmp_path / "out")
    runner = CliRunner()
    assert runner.invoke(app, ["keys", "new", str(tmp_path / "k")]).exit_code == 0
    refused = runner.invoke(app, ["sign", str(tmp_path / "out"), "--key", str(tmp_path / "k")])

    assert refused.exit_code == 2
    assert "nobody has reviewed" in refused.output
    reviewed = public.replace(
        "[review]", f'[review]\nby = "A. Reader"\ndate = {dt.date(2026, 1, 2)}'
    )
    release = shoal.protect(table, reviewed)
    assert "A. Reader" not in str(release.manifest)
    assert "review" not in release.manifest.policy
    assert not any("drafted" in note for note in release.notes)


def test_a_column_that_numbers_persons_is_found_by_what_does_not_change_within_it():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 150, 900)
    born, sex = rng.integers(1930, 2005, 150), rng.choice(["m", "f"], 150)
    table = pl.DataFrame({
        "k7": rows * 17 % 1009 + 100,
        "region": "R" + pl.Series(rows).cast(pl.String),
        "k8": "P" + pl.Series(rows).cast(pl.String),
        "b": born[rows], "s": sex[rows], "visit": rng.integers(1, 9, 900),
        "value": rng.normal(5, 1, 900).round(2),
    })  # fmt: skip

    guesses = shoal.draft(table).guesses

    units = [name for name, made in guesses.items() if "privacy_unit" in made.flags]
    assert units == ["k7"]
    assert guesses["k8"].role is guesses["region"].role is Role.IDENTIFIER


@pytest.mark.parametrize(
    ("name", "count"), [("patient_id", 4), ("patient_id", 12), ("x1", 12), ("x1", 19)]
)
def test_the_persons_of_a_small_trial_are_found_and_a_team_is_no_person(name, count):
    rng = np.random.default_rng(4)
    born, sex = rng.integers(1930, 2005, count), (["m", "f"] * count)[:count]
    table = pl.DataFrame([
        {name: f"P{p:02d}", "team": f"T{p % 3}{sex[p]}", "sex": sex[p], "birth_year": int(born[p]),
         "visit": visit, "dose": "AB"[visit % 2], "value": float(rng.normal(5, 1))}
        for p in range(count) for visit in range(10)
    ])  # fmt: skip

    guesses = shoal.draft(table).guesses

    assert guesses[name].role is Role.IDENTIFIER
    assert "privacy_unit" in guesses[name].flags
    teams = shoal.draft(table.drop(name, "birth_year")).guesses
    assert not any(made.flags for made in teams.values())


def test_households_are_found_whose_numbers_count_up_and_an_income_of_theirs_is_none():
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 6, 400)
    home = np.repeat(np.arange(400), sizes)
    income = np.exp(rng.normal(9, 0.7, 400)).round()
    table = pl.DataFrame({
        "HV002": home + 1, "HV005": rng.integers(10**5, 10**6, 400)[home], "v": income[home],
        "HV024": rng.integers(1, 5, 400)[home], "sex": rng.choice(["m", "f"], len(home)),
        "HV216": rng.integers(1, 7, 400)[home],
    })  # fmt: skip

    guesses = shoal.draft(table).guesses

    assert guesses["HV002"].role is Role.IDENTIFIER
    assert "household" in guesses["HV002"].flags
    assert guesses["v"].role is not Role.IDENTIFIER


@pytest.mark.parametrize("numbers", [
    [None] * 393 + [21507.5, 30411.0, 18250.2, 45000.1, 9800.0, 12012.9, 77345.0],
    [5 + i * 1e-9 for i in range(400)],
], ids=["seven of 400", "no step fits"])  # fmt: skip
def test_numbers_that_no_rounding_makes_k_people_share_are_dropped_unless_they_are_to_be_kept(
    numbers,
):
    table = people(400).drop("salary").with_columns(severance_pay=pl.Series(numbers))

    dropped = shoal.draft(table)
    kept = shoal.draft(table, keep=["severance_pay"])
    stated = shoal.protect(table, k=5, confidential=["severance_pay"])

    assert "severance_pay" not in shoal.protect(table, dropped).data.columns
    assert "no rounding of its numbers" in dropped.text
    assert "severance_pay" in shoal.protect(table, kept).data.columns
    assert any("'severance_pay' is released as it is" in line for line in stated.exposed)


def test_limits_of_measurements_are_coded_and_never_missing():
    cells = ["<4.0"] * 30 + [f"{4 + i / 10:.1f}" for i in range(100)] + [">12.5"] * 10
    table = pl.DataFrame({"age": [str(20 + i % 60) for i in range(140)], "crp": cells})

    release = shoal.protect(table, k=5, quasi_identifiers=["age"], keep=["crp"])

    assert release.data["crp"].null_count() == 0
    assert (release.data["crp"].min(), release.data["crp"].max()) == (4.0, 12.5)


def test_a_limit_that_the_code_does_not_cover_is_refused():
    table = pl.DataFrame({"age": ["30"] * 20, "crp": ["<9"] * 5 + ["5", "6", "10"] * 5})
    policy = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "crp": {"role": "confidential", "kind": "numeric", "bottom_code": 4},
        },
        "protect": {"method": "mdav", "k": 5},
    }

    with pytest.raises(InputError, match="'crp'"):
        shoal.protect(table, policy)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Expected a policy, or k and the columns"),
        ({"epsilon": 1}, "states the bounds and the categories"),
        ({"k": 5, "quasi_identifiers": ["agge"]}, "Did you mean 'age'?"),
        ({"k": 1}, "Expected a whole number of at least 2 for k, found 1"),
        ({"k": 2.5}, "Expected a whole number of at least 2 for k, found 2.5"),
        ({"k": "five"}, "Expected a whole number of at least 2 for k, found 'five'"),
        ({"k": 5, "confidential": "agge"}, "No column named 'agge'"),
        ({"k": 5, "identifiers": ["age"], "confidential": ["age"]}, "Expected one role for 'age'"),
        ({"k": 5, "audience": "everybody"}, "Expected an audience among"),
    ],
)
def test_a_draft_by_arguments_names_what_is_wrong(given, message):
    with pytest.raises(InputError, match=message):
        shoal.protect(people(60), **given)


def test_an_epsilon_draft_quotes_no_value_and_asks_for_bounds(tmp_path):
    table = people(50).with_columns(name=pl.Series([f"Wilhelmina {i}" for i in range(50)]))
    table.write_csv(tmp_path / "people.csv")

    done = CliRunner().invoke(
        app, ["init", str(tmp_path / "people.csv"), "--epsilon", "1", "--out", "-"]
    )

    assert done.exit_code == 0
    assert "Wilhelmina" not in done.output
    assert '"name" = "identifier"' in done.output
    assert "bounds = [0, 120]" in done.output
    assert (
        '# "salary" = { role = "confidential", kind = "numeric", bounds = [?, ?] }' in done.output
    )


def test_an_epsilon_draft_guesses_no_decimal_mark_and_refuses_an_odd_epsilon(tmp_path):
    data = tmp_path / "people.csv"
    data.write_text("age;balance\n30;1,25\n")

    done = CliRunner().invoke(app, ["init", str(data), "--epsilon", "1", "--out", "-"])
    refused = CliRunner().invoke(app, ["init", str(data), "--epsilon", "lots", "--out", "-"])

    assert '\ndelimiter = ";"' in done.output
    assert "\ndecimal" not in done.output
    assert refused.exit_code == 2
    assert "Expected a positive number for epsilon" in refused.output


def test_of_an_epsilon_draft_no_record_decides_a_line(tmp_path):
    drafts = set()
    for record in ("30,1", '30,"1"', '30,"1', "30,1,2", "\udce9,1"):
        data = tmp_path / "people.csv"
        data.write_text(f"age,balance\n20,3\n{record}\n", errors="surrogateescape")
        done = CliRunner().invoke(app, ["init", str(data), "--epsilon", "1", "--out", "-"])
        assert done.exit_code == 0
        drafts.add(done.output)

    assert len(drafts) == 1
    assert "state that of the cells" in done.output
    assert "\ndecimal" not in done.output
    (tmp_path / "people.csv").write_text("âge;solde\n20;3\n", encoding="cp1252")
    read = CliRunner().invoke(app, ["init", str(data), "--epsilon", "1", "--out", "-"]).output
    assert '"âge"' in read
    assert 'encoding = "cp1252"' in read


@pytest.mark.parametrize("option", [("--k", "7"), ("--keep", "salary")])
def test_an_epsilon_draft_refuses_what_it_would_not_do(tmp_path, option):
    people(50).write_csv(tmp_path / "people.csv")
    asked = ["init", str(tmp_path / "people.csv"), "--epsilon", "1", "--out", "-"]

    refused = CliRunner().invoke(app, [*asked, *option])
    for_science = CliRunner().invoke(app, [*asked, "--for", "scientific-use"])

    assert refused.exit_code == 2
    assert f"{option[0]} is for a release in which k people share" in refused.output
    assert 'audience = "scientific-use"' in for_science.output


def test_a_column_that_is_to_be_kept_and_is_dropped_is_asked_about():
    table = people().with_columns(email=pl.format("p{}@x.org", pl.int_range(600)))

    drafted = shoal.draft(table, keep=["email", "salary"])

    assert "'email' is to be kept, and is dropped" in " ".join(drafted.questions)
    assert 'accept_distinct = ["salary"]' in drafted.text


def test_a_lazy_frame_is_a_table():
    release = shoal.protect(people().lazy(), k=5, quasi_identifiers=["age"])

    assert release.data.height == 600


@pytest.mark.parametrize(
    "name", ["payroll de", "trial in long form", "taxpayers de", "bike rides", "check-up ja"]
)
def test_a_draft_of_an_odd_file_runs_as_it_is_and_shows_no_number_that_few_share(name, tmp_path):
    file = odd_files.FILES[name]
    first_files.write(file, tmp_path / "people")
    table = shoal.read((tmp_path / "people").with_suffix(file.suffix))

    drafted = shoal.draft(table)
    released = shoal.protect(table, drafted).data

    shown = [
        column
        for column, made in drafted.guesses.items()
        if made.kind is Kind.NUMERIC and made.role in {Role.CONFIDENTIAL, Role.OTHER}
    ]
    assert shown
    assert all(released[name].drop_nulls().value_counts()["count"].min() >= 5 for name in shown)


def test_a_total_and_its_parts_are_rounded_alike_so_their_sum_tells_no_more():
    rng = np.random.default_rng(6)
    base, bonus = (np.exp(rng.normal(m, 0.5, 2000)).round(2) for m in (10.2, 7.5))
    table = pl.DataFrame({
        "age": rng.integers(20, 65, 2000), "base_salary": base, "bonus": bonus,
        "total_pay": (base + bonus).round(2),
    })  # fmt: skip

    guesses = shoal.draft(table).guesses

    codings = {name: guesses[name].coding for name in ("base_salary", "bonus", "total_pay")}
    assert len({coding["step"] for coding in codings.values()}) == 1
    parts = [exposure.round_values(table[name], codings[name]) for name in ("base_salary", "bonus")]
    assert exposure.alone(parts[0] + parts[1], None, 5) <= exposure.HARDLY
    assert "the sum of base_salary and bonus" in guesses["total_pay"].reason


def test_a_total_whose_part_others_know_is_protected_with_all_its_parts():
    rng = np.random.default_rng(7)
    hours, more = rng.integers(10, 60, 500), rng.integers(1, 9, 500) * 7
    table = pl.DataFrame({"sex": ["f", "m"] * 250, "age": hours, "value_x": more,
                          "income": hours + more})  # fmt: skip

    guesses = shoal.draft(table).guesses

    assert {guesses[name].role for name in ("age", "value_x", "income")} == {Role.QUASI_IDENTIFIER}


def test_a_sum_of_kept_columns_is_left_as_it_is():
    rng = np.random.default_rng(6)
    one, two = rng.integers(100, 9000, 600), rng.integers(100, 9000, 600)
    table = pl.DataFrame({"age": rng.integers(20, 65, 600), "tax": one, "rent_cost": two,
                          "total_cost": one + two})  # fmt: skip

    kept = shoal.draft(table, keep=["tax", "rent_cost", "total_cost"])

    assert not any(kept.guesses[name].coding for name in ("tax", "rent_cost", "total_cost"))


def test_categories_from_which_a_quasi_identifier_follows_are_protected_too():
    rng = np.random.default_rng(9)
    grade = rng.integers(0, 12, 600)
    table = pl.DataFrame({
        "sex": rng.choice(["f", "m"], 600), "condition": rng.choice(["I10", "E11", "J45"], 600),
        "region": pl.Series(grade // 3).cast(pl.String),
        "diagnosis": "g" + pl.Series(grade).cast(pl.String),
    })  # fmt: skip

    guesses = shoal.draft(table).guesses

    assert guesses["diagnosis"].role is Role.QUASI_IDENTIFIER
    assert "'region' follows from it" in guesses["diagnosis"].reason
    assert guesses["condition"].role is Role.CONFIDENTIAL


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=9),
    st.integers(2, 6),
    st.booleans(),
)
def test_rare_categories_are_joined_until_k_people_share_each(counts, k, several_rows):
    cells = pl.Series([f"c{at}" for at, times in enumerate(counts) for _ in range(times)])
    persons = pl.Series([at // 2 for at in range(len(cells))]) if several_rows else None
    names = tuple(sorted(set(cells)))
    made = Guess(Role.CONFIDENTIAL, Kind.NOMINAL, "a name", categories=names)

    joined = exposure.join_rare(made, cells, persons, k)

    after = cells.replace(dict(joined.spellings))
    assert set(after) == set(joined.categories)
    shared = exposure.persons_per_value(after, persons)
    if joined is made:  # nothing rare, or less than two categories would be left
        rare = exposure.persons_per_value(cells, persons).filter(pl.col("len") < k)
        assert rare.height == 0 or len(names) - rare.height < 3
    else:
        assert shared["len"].min() >= k
        assert "joined as 'other'" in joined.reason


def test_an_other_that_is_there_takes_the_rare_ones():
    cells = pl.Series(["a"] * 9 + ["b"] * 9 + ["other"] * 9 + ["d"] * 2)
    made = Guess(Role.CONFIDENTIAL, Kind.NOMINAL, "a name", ("a", "b", "d", "other"))

    joined = exposure.join_rare(made, cells, None, 5)

    assert joined.spellings == {"d": "other"}
    assert joined.categories == ("a", "b", "other")
