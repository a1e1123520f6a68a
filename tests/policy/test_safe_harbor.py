"""The fields of 45 CFR 164.514(b)(2): what is dropped, what is coarsened, and what is not said."""

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal import io
from shoal.cli.commands import app
from shoal.errors import InputError
from shoal.policy.column_values import all_values
from shoal.policy.recognise import recognise
from shoal.policy.safe_harbor import RESTRICTED, draft_safe_harbor

ROWS = 400


def patients():
    rng = np.random.default_rng(8)
    day = dt.date(1915, 1, 1)
    kinds = {
        "Patient Name": [f"Wilhelmina {i}" for i in range(ROWS)],
        "Fax": [f"+1 617 555 {i:04}" for i in range(ROWS)],
        "Email": [f"w{i}@example.org" for i in range(ROWS)],
        "SSN": [f"{i % 700 + 1:03}-{i % 90 + 10}-{i + 1000}" for i in range(ROWS)],
        "Medical Record No": range(70_000, 70_000 + ROWS),
        "Health Plan Beneficiary ID": [f"HPB{i:06}" for i in range(ROWS)],
        "Account Number": range(900_000, 900_000 + ROWS),
        "License Plate": [f"{i % 9}ABC{i:03}" for i in range(ROWS)],
        "Device Serial": [f"SN-{i:07}" for i in range(ROWS)],
        "URL": [f"https://example.org/{i}" for i in range(ROWS)],
        "IP Address": [f"10.0.{i // 200}.{i % 200}" for i in range(ROWS)],
        "Street Address": [f"{i} Main Street" for i in range(ROWS)],
        "City": rng.choice(["Boston", "Salem", "Lynn"], ROWS),
        "County": rng.choice(["Essex", "Suffolk"], ROWS),
        "Father Name": [f"Adalbert {i}" for i in range(ROWS)],
        "Employer": rng.choice(["Acme", "Umbrella"], ROWS),
    }
    kept = {
        "State": rng.choice(["MA", "NH"], ROWS),
        "ZIP": rng.choice(["02139", "03601", "01970-1234", "05901"], ROWS),
        "Birth Date": [day + dt.timedelta(days=int(d)) for d in rng.integers(0, 32_000, ROWS)],
        "Admission Date": [dt.date(2021, 1, 1) + dt.timedelta(days=int(d))
                           for d in rng.integers(0, 600, ROWS)],
        "Age": rng.integers(18, 100, ROWS),
        "Sex": rng.choice(["f", "m"], ROWS),
        "Glucose": rng.normal(95, 12, ROWS).round(1),
    }  # fmt: skip
    return pl.DataFrame({**kinds, **kept}), list(kinds), list(kept)


def test_the_kinds_of_the_list_are_dropped_also_of_relatives_and_employers():
    table, kinds, kept = patients()

    released = shoal.protect(table, shoal.draft(table, template="safe-harbor")).data

    assert not set(kinds) & set(released.columns)
    assert set(released.columns) == set(kept)


@pytest.mark.parametrize("name", [
    "comune", "Municipio", "localidad", "freguesia", "gmina", "obec", "woonplaats", "ilçe", "город",
    "المدينة", "Δήμος", "시군구", "市区町村",
])  # fmt: skip
def test_places_below_the_state_are_dropped_whatever_their_language(name):
    table = pl.DataFrame({name: ["north", "south"] * 40, "sex": ["f", "m", "x", "m"] * 20})

    released = shoal.protect(table, shoal.draft(table, template="safe-harbor")).data

    assert released.columns == ["sex"]


def test_places_dates_and_ages_are_as_coarse_as_the_list_asks():
    table, _, _ = patients()
    year = dt.datetime.now(dt.UTC).year
    drafted = shoal.draft(table, template="safe-harbor")
    plain = drafted.text.replace('method = "mondrian"', 'method = "local-suppression"')

    released = shoal.protect(table, plain).data.drop("Glucose")

    zips = released["ZIP"].drop_nulls()
    assert set(zips) <= {"021", "000", "019"}
    for name in ("Birth Date", "Admission Date"):
        days = released[name].drop_nulls().cast(pl.Date)
        assert days.is_empty() or (days.dt.ordinal_day() == 1).all()
        assert days.is_empty() or days.dt.year().min() >= year - 90
    assert released["Age"].drop_nulls().is_empty() or released["Age"].max() <= 90
    assert "top_code = 90" in drafted.text
    assert f"bottom_code = {year - 90}-01-01" in drafted.text


@given(st.integers(501, 99_950))
def test_a_zip_code_keeps_three_digits_and_none_where_few_live(number):
    code = f"{number:05}"
    frame = pl.DataFrame({"zip": [code] * 30, "sex": ["f", "m"] * 15})
    (line,) = [line for line in shoal.draft(frame, template="safe-harbor").text.splitlines()
               if line.startswith('"zip"')]  # fmt: skip
    policy = (
        f'version = 1\n[columns]\n{line}\nsex = {{ role = "quasi-identifier", kind = "nominal" }}\n'
        '[protect]\nmethod = "local-suppression"\nk = 2\n'
    )

    released = shoal.protect(frame, policy).data["zip"].unique().to_list()

    assert released == ["000" if code[:3] in RESTRICTED else code[:3]]


def test_zip_codes_without_their_zeros_and_other_postal_codes_are_dropped():
    for codes in ([501, 2139] * 20, ["SW1A 1AA", "EC1A 1BB"] * 20):
        frame = pl.DataFrame({"zip": codes, "sex": ["f", "m"] * 20})

        assert shoal.draft(frame, template="safe-harbor").guesses["zip"].role == "identifier"


def test_a_year_that_shows_a_high_age_and_months_and_bands_are_coarsened_or_dropped():
    frame = pl.DataFrame({
        "birth_year": [1920 + i % 80 for i in range(80)],
        "visit": ["2021-03", "2020-11"] * 40,
        "weekday": ["Mon", "Tue"] * 40,
        "age group": ["80-89", "90-94"] * 40,
        "age band": ["80-89", "90+"] * 40,
    })  # fmt: skip
    raw = io.from_native(frame)
    values = all_values(raw)

    made = draft_safe_harbor(values, recognise(raw, values=values), 2020)

    assert made["birth_year"].coding["bottom_code"] == "1930"
    assert made["visit"].coding == {"prefix": "4"}
    assert made["weekday"].role == made["age group"].role == "identifier"
    assert made["age band"].role == "quasi-identifier"


def test_the_draft_says_that_it_is_no_determination_at_every_door(tmp_path):
    table, _, _ = patients()
    table.write_csv(tmp_path / "p.csv")

    done = CliRunner().invoke(
        app, ["init", str(tmp_path / "p.csv"), "--template", "safe-harbor", "--out",
              str(tmp_path / "policy.toml")]
    )  # fmt: skip

    assert done.exit_code == 0, done.output
    assert "by the Census of 2000" in done.output
    assert "That is not a determination" in done.output
    assert "of which you have actual knowledge, is a person's judgement" in done.output
    assert "That is not a determination" in (tmp_path / "policy.toml").read_text()
    assert "Wilhelmina" not in done.output


def test_a_release_of_the_list_has_its_confidential_report(tmp_path):
    table, _, _ = patients()
    table.write_csv(tmp_path / "p.csv")
    files = {name: str(tmp_path / name) for name in ("p.csv", "policy.toml", "out")}
    shoal.draft(files["p.csv"], template="safe-harbor").write(files["policy.toml"])

    done = CliRunner().invoke(
        app, ["protect", files["p.csv"], "--policy", files["policy.toml"], "--out", files["out"]]
    )

    assert done.exit_code == 0, done.output
    assert "could not be made" not in done.output


def test_another_template_is_refused():
    with pytest.raises(InputError, match="Expected the template safe-harbor, found 'gdpr'"):
        shoal.draft(patients()[0], template="gdpr")
