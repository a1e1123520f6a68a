"""What leads to a person is recognised by its content, and chance is not."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core import Role
from shoal.io import Raw
from shoal.policy import content
from shoal.policy.column_values import column_values
from shoal.policy.recognise import recognise

RNG = np.random.default_rng(7)


def held(values):
    raw = Raw(pl.DataFrame({"x": values}))
    return content.identity(column_values(raw.frame["x"], raw))


def luhn(digits):
    total = sum(sum(divmod(2 * int(d), 10)) if i % 2 == 0 else int(d)
                for i, d in enumerate(reversed(digits)))  # fmt: skip
    return digits + str(-total % 10)


def cpf(nine):
    for length in (10, 11):
        total = sum(int(d) * w for d, w in zip(nine, range(length, 1, -1), strict=True))
        nine += str(11 - total % 11 if total % 11 > 1 else 0)
    return nine


@pytest.mark.parametrize(
    ("what", "values"),
    [
        ("e-mail addresses", ["a.b@example.org", "c@d.io", "x_y@uni.ac.uk"]),
        ("addresses of web pages", ["https://a.org/x", "www.b.com/y?z=1"]),
        ("addresses on the internet", ["192.168.1.7", "2001:db8::1", "10.1.2.3"]),
        ("addresses of devices", ["00:1A:2B:3C:4D:5E", "00-1a-2b-3c-4d-5f"]),
        ("UUIDs", [f"123e4567-e89b-12d3-a456-42661417400{i}" for i in range(3)]),
        ("bank account numbers (IBAN)", ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"]),
        ("hashes or tokens", [f"5d41402abc4b2a76b9719d911017c59{i}" for i in range(3)]),
        ("paths of files", ["/home/anna/scan/1.png", "C:\\Users\\bob\\x.doc"]),
        ("coordinates", ["52.52013, 13.40495", "48.13743, 11.57549"]),
        ("social security numbers", ["123-45-6789", "987-65-4321"]),
        ("telephone numbers", ["+49 171 1234567", "+1 (555) 123-4567", "030 1234567"]),
        ("licence plates", [f"M-AB {i}" for i in range(101, 120)]),
        ("street addresses", ["Hauptstr. 5", "12 High Street", "3 rue de Rivoli", "Calle Mayor 4"]),
        ("names of persons", ["Anna Müller", "John Q. Smith", "José García", "Lena Vogt"]),
        ("names of persons", ["佐藤 太郎", "鈴木 花子", "田中 一郎"]),
        ("names of persons", ["Иванов И.И.", "Петрова А.С.", "Сидоренко К.П."]),
        ("names of persons", ["محمد علي", "أحمد حسن", "سارة خالد"]),
        ("names of persons", ["Γιώργος Παπαδόπουλος", "Μαρία Ιωαννίδου", "Νίκος Γεωργιάδης"]),
    ],
)  # fmt: skip
def test_what_leads_to_a_person_is_recognised_however_few_values_there_are(what, values):
    assert held(values) == what


@pytest.mark.parametrize(
    "values",
    [
        ["male", "female"], ["Berlin", "Hamburg", "Köln", "Bremen", "Kiel"], ["M", "F"],
        ["男", "女"],
        ["Müller GmbH", "Weber AG", "Schulz KG", "Vogt Ltd"], ["Cardiology", "Surgery", "Oncology"],
        ["1.2.3", "2.0.1", "2.1.0"], ["12:30", "08:15"], ["2021-03-04", "2022-05-06"],
        ["single", "married", "widowed"], ["A10", "B20", "C34"], ["高血圧", "糖尿病", "胃炎"],
    ],
)  # fmt: skip
def test_what_leads_to_nobody_is_left(values):
    assert held(values) == ""


def test_check_digits_are_recognised_beyond_chance_alone():
    pytest.importorskip("stdnum", reason="the extra 'recognise' is not installed")
    nine = ["".join(map(str, RNG.integers(0, 10, 9))) for _ in range(300)]
    cards = [luhn("4" + "".join(map(str, RNG.integers(0, 10, 14)))) for _ in range(60)]

    assert held([cpf(digits) for digits in nine]) == "identity, tax or health numbers"
    assert held(cards) == "card numbers"
    assert held(nine) == ""  # of which 89 in 100 pass as American social security numbers
    assert held([digits + "00" for digits in nine]) == ""


@given(st.lists(st.integers(10**7, 10**8 - 1), min_size=30, max_size=200, unique=True))
@settings(max_examples=25)
def test_random_numbers_are_no_identity_numbers(numbers):
    """False alarms would need 60 in 100 to pass a check of 1 in 10 by chance: below 1e-9."""
    assert held(numbers) == ""


def test_a_stated_place_may_be_named_after_a_person_and_other_columns_may_not():
    values = ["Florence", "Victoria", "Charlotte", "Sofia"] * 10

    made = recognise(Raw(pl.DataFrame({"city": values, "f1": values})))

    assert made["f1"].role is Role.IDENTIFIER
    assert made["city"].role is Role.QUASI_IDENTIFIER


def test_without_the_packages_the_draft_says_what_was_not_looked_for(monkeypatch):
    monkeypatch.setattr(content, "find_spec", lambda _name: None)

    assert content.not_looked_for() == (
        "card numbers", "identity, tax or health numbers",
        "telephone numbers without a country code",
    )  # fmt: skip
