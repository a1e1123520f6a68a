"""Keyed pseudonyms and shifted dates: one secret a recipient, refused where they do not belong."""

import hashlib
import hmac
import json
import pickle
import stat
from datetime import date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import policy as policies
from shoal.errors import InputError
from shoal.io.pseudonyms import read_key
from shoal.pipeline.planning import plan
from shoal.publish.protect_file import protect
from shoal.publish.verify_folder import verify

POLICY = """
version = 1
[columns]
person = { role = "other", privacy_unit = true, pseudonym = true }
home = { role = "other", pseudonym = true }
age = { role = "quasi-identifier", kind = "numeric" }
seen = { role = "confidential", kind = "date", date_shift = 100 }
gone = { role = "confidential", kind = "date", date_shift = 100 }
[protect]
method = "mdav"
k = 3
[require]
k-anonymity = 3
[release]
pseudonym_key = "study.key"
[context]
recipient = "University of Ys"
"""
SECRET = "7f" * 32


@pytest.fixture
def table():
    n = 120
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(n)]
    return pl.DataFrame(
        {
            "person": [f"P-{i // 3}" for i in range(n)],
            "home": [i // 6 for i in range(n)],
            "age": [20 + i // 3 for i in range(n)],
            "seen": days,
            "gone": [day + timedelta(days=i % 9) for i, day in enumerate(days)],
        }
    )


@pytest.fixture
def release(table, tmp_path, monkeypatch):
    """Make a release by a policy, with a key file of this test, rows in order."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.key").write_text(SECRET)
    return lambda policy=POLICY: shoal.protect(table, policy, keep_order=True)


def digest(*parts):
    """The formula of the docstring, by another route: RFC 2104's definition, step by step."""

    def once(key, text):
        block = key.ljust(64, b"\0")
        inner = hashlib.sha256(bytes(b ^ 0x36 for b in block) + text.encode()).digest()
        return hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner).digest()

    def joined(*words):
        return "".join(f"{len(word)}:{word}" for word in words)

    # A key as long as a block is used as it is.
    return once(once(SECRET.encode(), joined("University of Ys")), joined(*parts))


def test_pseudonyms_are_those_of_the_formula_and_rows_of_a_person_share_one(release, table):
    data = release().data

    assert data["person"][0] == "p" + digest("person", "p-0").hex()[:32]
    assert data["home"][0] == "p" + digest("home", "0").hex()[:32]
    pairs = pl.DataFrame({"before": table["person"], "after": data["person"]}).unique()
    assert pairs.height == pairs["after"].n_unique() == 40
    # Equal numbers of two columns have nothing in common.
    assert not set(data["home"]) & set(data["person"])


def test_dates_of_a_person_move_together_by_the_formula_and_persons_apart(release, table):
    data = release().data

    moved = (data["seen"] - table["seen"]).dt.total_days()
    assert moved.equals((data["gone"] - table["gone"]).dt.total_days(), check_names=False)
    by_person = pl.DataFrame({"person": table["person"], "days": moved}).group_by("person")
    shifts = by_person.agg(pl.col("days").n_unique(), pl.first("days").alias("shift"))
    assert set(shifts["days"]) == {1}
    assert shifts["shift"].n_unique() > 10
    assert shifts["shift"].abs().max() <= 100
    assert moved[0] == int.from_bytes(digest("shift", "p-0")) % 201 - 100


def test_another_recipient_or_another_key_gets_pseudonyms_that_nobody_links(release, tmp_path):
    first, again = release().data, release().data
    other = release(POLICY.replace("of Ys", "of Is")).data
    (tmp_path / "study.key").write_text("8f" * 32)
    renewed = release().data

    assert first["person"].equals(again["person"])
    for data in (other, renewed):
        assert not set(first["person"]) & set(data["person"])
        assert (first["seen"] != data["seen"]).mean() > 0.9


def test_spellings_of_one_identifier_have_one_pseudonym(release, table):
    spelled = table.with_columns(
        person=pl.when(pl.int_range(120) % 3 == 0)
        .then(pl.format(" {} ", pl.col("person").str.to_lowercase()))
        .otherwise(pl.col("person"))
    )  # fmt: skip

    assert release().data.equals(shoal.protect(spelled, POLICY, keep_order=True).data)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_two_pairs_of_texts_run_into_one(one, other, more):
    from shoal.io.pseudonyms import _digest  # noqa: PLC0415

    if more:
        assert _digest(b"k" * 32, one + more, other) != _digest(b"k" * 32, one, more + other)
    text = f"{len(one)}:{one}{len(other)}:{other}".encode("utf-8", "surrogatepass")
    assert _digest(b"k" * 32, one, other) == hmac.digest(b"k" * 32, text, "sha256")


def test_the_key_is_made_where_there_is_none_for_its_owner_alone(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    shoal.protect(table, POLICY)

    key = tmp_path / "study.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_text().strip()) == 64
    other = tmp_path / "other.key"
    assert read_key(other, "a") != read_key(key, "a")


@pytest.mark.parametrize(("content", "sentence"), [
    ("short", "is too short: expected at least 32 characters"),
    (None, "Cannot make the pseudonym key"),
], ids=["short", "no folder"])  # fmt: skip
def test_a_key_that_cannot_be_used_is_refused(tmp_path, content, sentence):
    file = tmp_path / "study.key" if content else tmp_path / "none" / "study.key"
    if content:
        file.write_text(content)

    with pytest.raises(InputError, match=sentence):
        read_key(file, "a")


def test_a_key_in_a_folder_of_a_release_is_refused(table, tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    table.write_parquet(tmp_path / "people.parquet")
    done = protect(tmp_path / "people.parquet", tmp_path / "policy.toml", tmp_path / "out")

    for folder in (done.folder, done.internal):
        before = sorted(folder.iterdir())
        with pytest.raises(InputError, match="lies in a folder of a release: name a file outside"):
            read_key(folder / "study.key", "a")
        assert sorted(folder.iterdir()) == before


def test_neither_key_nor_recipient_leaves_with_either_folder(table, tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "study.key").write_text(SECRET)
    table.write_parquet(tmp_path / "people.parquet")

    done = protect(tmp_path / "people.parquet", tmp_path / "policy.toml", tmp_path / "out")

    assert verify(done.folder).holds
    marks = [SECRET.encode(), digest().hex().encode(), b"study.key"]
    public = [path.read_bytes() for path in done.folder.iterdir()]
    assert not any(mark in content for mark in [*marks, b"University of Ys"] for content in public)
    inside = [path.read_bytes() for path in done.internal.iterdir()]
    assert not any(mark in content for mark in marks for content in inside)
    assert SECRET.encode() not in pickle.dumps(done.release)
    manifest = json.loads((done.folder / "manifest.json").read_text("utf-8"))
    assert "Pseudonymised data remain personal data." in manifest["not_claimed"][-1]
    assert "k is about single rows" in manifest["not_claimed"][-1]
    # P-1 would be found in the table if it had left.
    assert b"P-1" not in b"".join(public)


NOISY = POLICY.replace('"mdav"\nk = 3', '"laplace"\nepsilon = 1').partition("[require]")[0]
REFUSED = {
    "public use": (
        POLICY.replace("[release]", '[release]\naudience = "public-use"'), "found public use"),
    "epsilon": (
        NOISY.replace('"numeric" }', '"numeric", bounds = [0, 120] }'), "found another release"),
    "boxes": (
        POLICY.replace('"mdav"', '"mondrian"\noutput = "tree"'), "found another release"),
    "nobody's dates": (
        POLICY.replace("privacy_unit = true, ", ""), "expected a column that numbers the persons"),
    "bounds": (
        POLICY.replace("date_shift = 100", "date_shift = 100, bounds = [2020-01-01, 2024-12-31]"),
        "expected no 'bounds' beside 'date_shift'"),
    "months": (
        POLICY.replace("date_shift = 100", 'date_shift = 100, date_step = "month"'),
        "expected no 'date_step' beside 'date_shift'"),
    "a quasi-identifier": (
        POLICY.replace('"other", p', '"quasi-identifier", kind = "nominal", p'),
        "expected 'pseudonym' with the role other"),
    "an identifier": (POLICY.replace('"other", p', '"identifier", p'), "expected 'pseudonym' with"),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "sentence"), REFUSED.values(), ids=REFUSED)
def test_pseudonyms_are_refused_where_they_do_not_belong(policy, sentence):
    with pytest.raises(InputError) as refused:
        plan(policy)

    assert sentence in str(refused.value)


def test_pseudonyms_are_refused_on_spark_and_by_audience_of_the_command():
    with pytest.raises(InputError, match="found another release"):
        plan(POLICY, distributed=True)
    with pytest.raises(InputError, match="found public use"):
        plan(POLICY, audience="public-use")


@pytest.mark.parametrize(
    "without", ['pseudonym_key = "study.key"', 'recipient = "University of Ys"']
)
def test_a_release_without_key_or_recipient_is_refused(table, tmp_path, monkeypatch, without):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InputError, match="need a secret for each recipient: state pseudonym_key"):
        shoal.protect(table, POLICY.replace(without, ""))

    assert not [*tmp_path.iterdir()]


def test_times_and_missing_cells_are_shifted_as_days_are(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = table.with_columns(
        pl.when(pl.int_range(120) == 4).then(None).otherwise(pl.col("seen").cast(pl.Datetime)
        + pl.duration(hours=7)).alias("seen"),
        pl.when(pl.int_range(120) == 4).then(None).otherwise(pl.col("home")).alias("home"),
    )  # fmt: skip

    data = shoal.protect(times, POLICY, keep_order=True).data

    assert data["seen"].null_count() == data["home"].null_count() == 1
    moved = data["seen"] - times["seen"]
    assert moved.equals((data["gone"] - times["gone"]).set(moved.is_null(), None).cast(moved.dtype),
                        check_names=False)  # fmt: skip
    assert data["seen"].drop_nulls().dt.hour().unique().to_list() == [7]
    assert isinstance(data["seen"][0], datetime)


def test_a_manifest_is_planned_without_the_key(release):
    manifest = release().manifest

    restored = policies.restore_policy(manifest.policy, {}, seen={})

    assert restored.pseudonym_key is None
    assert plan(restored).not_claimed == tuple(manifest.not_claimed)
