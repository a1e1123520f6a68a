"""A release is verified by its public folder alone, and every kind of tampering is named."""

import hashlib
import json
import random
import shutil
import socket
from copy import deepcopy
from datetime import date, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods import test_contract as contract
from typer.testing import CliRunner

import shoal
from shoal import policy
from shoal.cli.commands import app
from shoal.core import ReleaseForm
from shoal.core.serialise import plain
from shoal.errors import InputError
from shoal.hazmat.fakes import SeededNoise
from shoal.io.files import FORMATS, write
from shoal.methods import REGISTRY
from shoal.pipeline import manifest, protect_table
from shoal.pipeline.options import EvaluationOptions, OutputOptions
from shoal.publish import (
    confidential_folder,
    derived_fields,
    protect_file,
    public_folder,
    released_folder,
    verify_folder,
)
from shoal.publish.verify_folder import PartStatus, verify
from shoal.report import html as report_html
from shoal.report import metadata as report_metadata

N = 30


def people():
    rng = random.Random(1)  # noqa: S311 (invented people)

    def drawn(values):
        return [rng.choice(values) for _ in range(N)]

    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(N)],
            "number": drawn(range(-3, 4)),
            "rank": drawn("abcd"),
            "tree": drawn("abcd"),
            "flat": drawn("abcd"),
            "day": drawn([date(1970, 1, 1) + timedelta(d) for d in range(10)]),
            "secret": drawn("abcd"),
            "batch": drawn([0, 1]),
        }
    )


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    people().write_parquet(folder / "people.parquet")
    (folder / "tree.csv").write_text("\n".join(contract.TAXONOMY))
    return folder


def released(desk, out, name, *, form=None, more=None, **options):
    protect = {} if form is None else contract.formed(form)
    stated = contract.policy(name, desk / "tree.csv", **protect) | (more or {})
    given = {"output": OutputOptions(force=True), "evaluation": EvaluationOptions(False)} | options
    return protect_file.protect(desk / "people.parquet", policy.load(stated), out, **given).folder


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_an_untouched_release_verifies_for_every_method_form_format_and_noise(desk, tmp_path, name):
    method = REGISTRY[name]
    cases = [{"form": form} for form in method.forms.offered]
    # Each method is written in the first format and in another; all methods together in all.
    another = FORMATS[1 + sorted(REGISTRY).index(name) % (len(FORMATS) - 1)]
    cases += [{"form": method.forms.offered[0], "file": another}]
    cases += [
        {"form": form, "noise": SeededNoise(1)} for form in method.forms.offered if method.noisy
    ]

    for case in cases:
        file, noise = case.get("file", "parquet"), case.get("noise")
        folder = protect_file.protect(
            desk / "people.parquet",
            policy.load(contract.policy(name, desk / "tree.csv", **contract.formed(case["form"]))),
            tmp_path / "out",
            output=OutputOptions(file_format=file, force=True),
            evaluation=EvaluationOptions(evaluate=False),
            noise=noise,
        ).folder

        found = verify(folder)

        assert found.holds, f"{case}: {found}"
        for part in ("files", "manifest", "claims", "checks", "accounting", "report", "versions"):
            assert found[part].status is PartStatus.VERIFIED, found


def test_there_are_releases_of_boxes_and_of_measurements_among_them():
    forms = {form for method in REGISTRY.values() for form in method.forms.offered}

    assert ReleaseForm.TREE in forms
    assert public_folder.EXTRAS == ("measurements.parquet",)


REQUIRED = {
    "require": {
        "k-anonymity": 2,
        "l-diversity": {"l": 1, "column": "secret"},
        "t-closeness": [
            {"t": 1, "column": "secret", "distance": "variation"},
            {"t": 1, "column": "secret", "distance": "ordered"},
        ],
    }
}


@pytest.mark.parametrize(
    ("output", "file"),  # SPSS and Stata take no column named "secret=a"
    [*(("intervals", file) for file in FORMATS), ("tree", "parquet"), ("tree", "csv")],
)
def test_required_diversity_and_closeness_are_recomputed(desk, tmp_path, file, output):
    stated = contract.policy("mondrian", desk / "tree.csv", output=output) | REQUIRED
    if output == "tree":
        stated["protect"]["count"] = "secret"
    data, out = desk / "people.parquet", tmp_path / "out"

    protect_file.protect(
        data,
        policy.load(stated),
        out,
        output=OutputOptions(file_format=file),
        evaluation=EvaluationOptions(evaluate=False),
    )

    found = verify(out)
    assert found.holds, found
    assert found["checks"].status is PartStatus.VERIFIED
    assert len(json.loads((out / "manifest.json").read_text("utf-8"))["checks"]) >= 4


def test_categories_that_were_only_observed_need_not_be_published(desk, tmp_path):
    column = {"role": "confidential", "kind": "ordinal", "categories": list("dcba")}
    stated = contract.policy("mdav", desk / "tree.csv", changed={"secret": column}) | REQUIRED
    stated["columns"]["secret"]["observed"] = True

    protect_file.protect(
        desk / "people.parquet",
        policy.load(stated),
        tmp_path / "out",
        evaluation=EvaluationOptions(evaluate=False),
    )

    found = verify(tmp_path / "out")
    assert found.holds, found
    assert found["checks"].status is PartStatus.OPEN
    assert "order of categories that is not published" in str(found["checks"])


def test_dates_fractions_coding_and_an_audience_of_the_command_line_come_back(desk, tmp_path):
    changed = {
        "number": {"role": "quasi-identifier", "kind": "numeric", "bounds": [-3.5, 3.25],
                   "top_code": 2.5, "bottom_code": -2.5, "step": 0.1},
        "day": {"role": "quasi-identifier", "kind": "date",
                "bounds": [date(1969, 12, 31), date(1970, 2, 1)], "top_code": date(1970, 1, 9),
                "missing_as": date(1970, 1, 5)},
    }  # fmt: skip
    stated = contract.policy("laplace", desk / "tree.csv", changed=changed, epsilon=0.3)
    (tmp_path / "pairs.csv").write_text("a,b\n")
    stated["columns"]["flat"] |= {"recode": str(tmp_path / "pairs.csv"), "other": "d"}

    data, out = desk / "people.parquet", tmp_path / "out"

    protect_file.protect(
        data,
        policy.load(stated),
        out,
        output=OutputOptions(audience="secure-use"),
        evaluation=EvaluationOptions(evaluate=False),
    )

    found = verify(tmp_path / "out")
    assert found.holds, found


def test_a_release_with_disarmed_formulas_verifies(tmp_path):
    frame = pl.DataFrame({"word": ["=1", "+2", "-x", "@a", "b", None] * 2, "x": range(12)})
    frame.write_csv(tmp_path / "d.csv")
    stated = {
        "version": 1,
        "columns": {
            "word": {"role": "quasi-identifier", "kind": "nominal"},
            "x": {"role": "confidential", "kind": "numeric"},
        },
        "protect": {"method": "mdav", "k": 2},
    }

    protect_file.protect(
        tmp_path / "d.csv",
        policy.load(stated),
        tmp_path / "out",
        output=OutputOptions(file_format="csv", guard_formulas=True),
        evaluation=EvaluationOptions(evaluate=False),
    )

    assert "'=1" in (tmp_path / "out" / "release.csv").read_text()
    assert verify(tmp_path / "out").holds


def test_labels_beside_a_csv_release_are_covered_by_the_manifest(tmp_path):
    frame = pl.DataFrame({"age": [1, 1, 2, 2], "ill": [1, 2, 1, 2]})
    write(frame, tmp_path / "d.sav", labels={"columns": {"age": "Age"}, "values": {}})
    stated = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "ill": {"role": "confidential", "kind": "numeric"},
        },
        "protect": {"method": "mdav", "k": 2},
    }
    out = tmp_path / "out"

    protect_file.protect(
        tmp_path / "d.sav",
        policy.load(stated),
        out,
        output=OutputOptions(file_format="csv"),
        evaluation=EvaluationOptions(evaluate=False),
    )

    assert json.loads((out / "labels.json").read_text("utf-8"))["columns"] == {"age": "Age"}
    assert verify(out).holds
    (out / "labels.json").write_text("{}")
    assert "labels.json" in failing(verify(out))["files"]


@pytest.fixture(scope="module")
def grouped(desk, tmp_path_factory):
    return released(desk, tmp_path_factory.mktemp("grouped") / "out", "mdav", more=REQUIRED)


@pytest.fixture(scope="module")
def noisy(desk, tmp_path_factory):
    return released(desk, tmp_path_factory.mktemp("noisy") / "out", "laplace")


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def edit(folder, change):
    """Change the manifest, and its report with it: a careful forger."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def failing(found):
    return {part.name: str(part) for part in found.parts if part.status is PartStatus.FAILS}


def test_one_changed_byte_of_the_table_is_named(grouped, tmp_path):
    folder = copied(grouped, tmp_path)
    table = folder / "release.parquet"
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)

    found = failing(verify(folder))

    assert "release.parquet: its SHA-256 is not the recorded one." in found["files"]


def test_a_table_that_was_exchanged_with_its_digest_is_found_by_rows_and_checks(grouped, tmp_path):
    folder = copied(grouped, tmp_path)
    table = folder / "release.parquet"
    pl.read_parquet(table)[1:].write_parquet(table)
    content = table.read_bytes()
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    edit(folder, lambda manifest: manifest["files"].update({"release.parquet": facts}))

    found = failing(verify(folder))

    assert "files" not in found
    assert f"rows: {N} recorded, {N - 1} in the table." in found["manifest"]
    assert "checks.0" in found["checks"]


def test_a_row_that_breaks_a_rule_is_found_in_a_table_exchanged_with_its_digest(tmp_path):
    numeric = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]}
    stated = {
        "version": 1,
        "columns": {"a": numeric, "b": numeric},
        "constraints": {"rules": ["a <= b"]},
        "protect": {"method": "laplace", "epsilon": 1},
    }
    table = pl.DataFrame({"a": [1, 2, 30, 4], "b": [50, 60, 70, 80]})
    folder = shoal.protect(table, stated).write(tmp_path / "out")
    whole = verify(folder)
    release = folder / "release.parquet"
    pl.read_parquet(release).with_columns(a=100.0, b=pl.lit(99.0)).write_parquet(release)
    content = release.read_bytes()
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    edit(folder, lambda manifest: manifest["files"].update({"release.parquet": facts}))

    found = failing(verify(folder))

    assert whole.holds, whole
    assert "No row breaks a rule of the policy." in str(whole)
    assert found["checks"].endswith("4 rows break the rule a <= b.")


def test_an_extra_and_a_missing_file_and_a_link_are_named(grouped, tmp_path):
    folder = copied(grouped, tmp_path)
    (folder / "more").mkdir()
    (folder / "more" / "note.txt").write_text("x")
    (folder / "report.html").rename(tmp_path / "report.html")
    (folder / "report.html").symlink_to(tmp_path / "report.html")

    found = failing(verify(folder))

    assert "more/note.txt: the manifest does not list this file." in found["files"]
    assert "report.html: the file is missing." in found["files"]
    assert "report.html: the file is missing." in found["report"]


def test_an_edited_report_is_named(grouped, tmp_path):
    folder = copied(grouped, tmp_path)
    page = folder / "report.html"
    page.write_text(page.read_text("utf-8").replace("How not to use it", "How to use it", 1))

    found = failing(verify(folder))

    assert found.keys() == {"files", "report"}
    assert "report.html: it is not what this manifest and table render to." in found["report"]


def claim(manifest, name):
    return next(one for one in manifest["claims"] if one["guarantee"]["name"] == name)


def stronger(manifest):
    claim(manifest, "differential-privacy")["guarantee"]["epsilon"] = 0.01


def halved(manifest):
    manifest["privacy_losses"][0]["scale"] /= 2


EDITS = [
    ("grouped", lambda m: m.update(rows=29), "manifest", "rows: 29 recorded, 30 in the table."),
    ("grouped", lambda m: m["columns"].update(number="Int8"), "manifest", "columns.number"),
    ("grouped", lambda m: m["columns"].update(new="Int8"), "manifest", "columns.new"),
    ("grouped", lambda m: m.update(policy_digest="0" * 64), "manifest", "policy_digest"),
    ("grouped", lambda m: m["policy"]["protect"].update(k=4), "manifest", "policy_digest"),
    ("grouped", lambda m: m["not_claimed"].pop(), "manifest", "not_claimed"),
    ("grouped", lambda m: m["notes"].insert(0, "Good."), "manifest", "notes"),
    ("grouped", lambda m: m["hierarchies"].clear(), "manifest", "hierarchies"),
    ("grouped", lambda m: m["checks"][0].update(achieved=9), "checks", "achieved: 9 recorded, 5"),
    ("grouped", lambda m: m["checks"][0]["witness"].update(rows=[1]), "checks", "witness.rows"),
    ("grouped", lambda m: m["checks"].pop(), "checks", "4 recorded in the manifest, but 5 derived"),
    ("grouped", lambda m: m["claims"][0]["guarantee"].update(k=9), "claims", "guarantee.k: 9"),
    ("grouped", lambda m: m["claims"][0].update(assumes=[]), "claims", "claims.0.assumes"),
    ("grouped", lambda m: m["claims"].clear(), "claims",
     "claims: 0 recorded in the manifest, but 1 derived"),
    ("noisy", lambda m: m["claims"][0].update(status="refuted"), "claims", 'status: "refuted"'),
    ("noisy", stronger, "claims", "epsilon: 0.01 recorded, 1 derived."),
    ("noisy", stronger, "accounting", "derives epsilon 1; the claim says 1/100"),
    ("noisy", halved, "accounting",
     "privacy_losses.0: A recorded privacy loss must not state less epsilon"),
    ("noisy", lambda m: m["privacy_losses"][0].update(sensitivity=1), "report", "it is not what"),
    ("grouped", lambda m: m.update(audience="public-use"), "report", "it is not what"),
    ("noisy", lambda m: m["privacy_losses"].pop(), "accounting", "The accounting derives epsilon"),
    ("noisy", lambda m: m["privacy_losses"][0].update(epsilon=1), "accounting", "derives epsilon"),
    ("noisy", lambda m: m["privacy_losses"][0].update(mechanism="x"), "accounting", "no proof"),
    ("noisy", lambda m: m.update(shoal_version="9"), "versions", "different versions of Shoal"),
]  # fmt: skip


@pytest.mark.parametrize(("which", "change", "part", "words"), EDITS)
def test_an_edited_field_of_the_manifest_is_named(
    which, change, part, words, grouped, noisy, tmp_path
):
    folder = copied({"grouped": grouped, "noisy": noisy}[which], tmp_path)
    edit(folder, change)

    found = failing(verify(folder))

    assert words in found[part]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["privacy_losses"][0].update(scale=m["privacy_losses"][0]["scale"] * 2),
        lambda m: m["privacy_losses"][0].update(draws=0),
        lambda m: m["draws"].clear(),
        lambda m: m["draws"][0].update(count=1),
        lambda m: m["draws"][0].update(mechanism="permute-and-flip"),
    ],
)
def test_draws_of_the_noise_are_compared_with_the_privacy_losses(noisy, tmp_path, change):
    folder = copied(noisy, tmp_path)
    edit(folder, change)

    found = failing(verify(folder))

    assert "The accounting lists" in found["accounting"]
    assert "at scale" in found["accounting"]


def test_a_manifest_without_its_draws_is_refused(noisy, tmp_path):
    folder = copied(noisy, tmp_path)
    edit(folder, lambda m: m.pop("draws"))

    with pytest.raises(InputError, match="'draws': expected this field, found none"):
        verify(folder)


def test_a_release_of_other_versions_is_reported_and_not_failed(grouped, tmp_path):
    folder = copied(grouped, tmp_path)
    edit(folder, lambda m: m["versions"].update(shoal="0.0.9", polars="1") or m.update(
        shoal_version="0.0.9"))  # fmt: skip

    found = verify(folder)

    assert found.holds
    assert found["report"].status is PartStatus.OPEN
    assert "shoal 0.0.9, here" in str(found["versions"])


def test_the_table_is_not_read_through_a_name_that_leads_out_of_the_folder(grouped, tmp_path):
    folder = copied(grouped, tmp_path)
    shutil.copy(folder / "release.parquet", tmp_path / "release.parquet")
    edit(
        folder,
        lambda m: m["files"].update({"../release.parquet": m["files"].pop("release.parquet")}),
    )

    found = failing(verify(folder))

    assert "../release.parquet: the file is missing." in found["files"]
    assert "release.parquet: the manifest does not list this file." in found["files"]


SMALL = {
    "version": 1,
    "columns": {"x": {"role": "quasi-identifier", "kind": "numeric"}},
    "protect": {"method": "mdav", "k": 2},
}
NESTED = b'{"shoal_version":' * 100_000
BROKEN = [
    b"", b"[]", b"null", b"{}", b'{"shoal_version": "1"}', b"\xff\xfe", NESTED, b"[" * 5000,
    b'{"a":' * 500 + b"1" + b"}" * 500, b'{"rows": 1, "rows": 2}', b'{"rows": NaN}',
    b'{"rows": 1e999}', b'{"a": "\\ud800"}', b'{"rows": ' + b"9" * 5000 + b"}",
]  # fmt: skip


@pytest.mark.parametrize("content", BROKEN)
def test_a_damaged_or_nested_manifest_is_exit_2_with_a_sentence(grouped, tmp_path, content):
    folder = copied(grouped, tmp_path)
    (folder / "manifest.json").write_bytes(content)

    done = CliRunner().invoke(app, ["verify", str(folder)])

    assert done.exit_code == 2
    assert "is not a Shoal release" in done.output
    assert len(done.output) < 400


@pytest.mark.parametrize("content", BROKEN)
def test_force_and_comparison_refuse_a_damaged_or_nested_file(desk, grouped, tmp_path, content):
    folder = copied(grouped, tmp_path)
    (folder / "manifest.json").write_bytes(content)
    (tmp_path / "comparison.json").write_bytes(content)

    with pytest.raises(InputError, match="is not a Shoal release"):
        confidential_folder.report(folder, desk / "people.parquet", policy.load(SMALL))
    if content != b'{"shoal_version": "1"}':  # as far as names go, that is one of ours
        with pytest.raises(InputError):
            released(desk, folder, "mdav")
    with pytest.raises(InputError):
        released(
            desk,
            tmp_path / "new",
            "mdav",
            evaluation=EvaluationOptions(comparison=tmp_path / "comparison.json"),
        )


def test_what_is_no_folder_of_a_release_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none", tmp_path / "file"):
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match="is not a Shoal release"):
            verify(path)


def places(value, path=()):
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))
        else:
            yield (*path, key)


def at(value, path):
    for key in path:
        value = value[key]
    return value


words = st.text(max_size=5) | st.sampled_from(["proved", "1/0", "../x", "Int64", "date"])
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
odd = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=3,
)


@settings(max_examples=60)
@given(data=st.data(), value=odd)
def test_no_change_of_the_manifest_is_an_error_of_ours_or_goes_unnoticed(noisy, data, value):
    """Any value anywhere is refused, or named, or the same as before."""
    path = noisy / "manifest.json"
    before = path.read_bytes()
    manifest = json.loads(before)
    where = data.draw(st.sampled_from(sorted((one for one in places(manifest) if one), key=str)))
    changed = deepcopy(manifest)
    at(changed, where[:-1])[where[-1]] = value
    try:
        path.write_text(json.dumps(changed), encoding="utf-8")
        found = verify(noisy)
        assert changed == manifest or not found.holds, where
    except InputError as error:
        assert "is not a Shoal release" in str(error)  # noqa: PT017 (either is right)
    finally:
        path.write_bytes(before)


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


def test_the_command_prints_a_line_for_each_part_or_json(grouped):
    code, told = run("verify", grouped)
    found = json.loads(run("verify", grouped, "--json")[1])

    assert code == 0
    assert len(told.splitlines()) == 9
    assert found["holds"] is True
    assert [part["name"] for part in found["parts"]] == [
        "files", "manifest", "claims", "checks", "accounting", "report", "versions", "signature",
    ]  # fmt: skip


def test_the_library_has_the_same_door_and_touches_no_network(grouped, monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("a request to a network")

    monkeypatch.setattr(socket, "socket", refuse)

    assert shoal.verify(grouped).holds
    with pytest.raises(InputError):
        shoal.verify(grouped / "none")


def test_the_schema_of_a_manifest_is_printed_and_knows_every_field(noisy):
    schema = json.loads(run("schema", "--manifest")[1])
    manifest = json.loads((noisy / "manifest.json").read_text("utf-8"))

    assert manifest.keys() <= schema["properties"].keys()
    assert set(schema["required"]) <= manifest.keys()


# What is derived, and what is taken as stated


def forge(folder, change):
    """Change the manifest, render all that follows from it anew: nothing gives it away."""
    edit(folder, change)
    describe(folder)
    read = manifest.read(folder)
    page = folder / "report.html"
    drawn = released_folder.read_pictured(folder, read)
    page.write_text(report_html.public_report(read, drawn), encoding="utf-8")
    record(folder, "report.html")


def describe(folder):
    """Write the metadata of the manifest that is there, and record their digests."""
    read = manifest.read(folder)
    labels = released_folder.read_labels(folder, read)
    for name, text in report_metadata.describe_release(read, labels).items():
        (folder / name).write_text(text, encoding="utf-8")
        record(folder, name)


def record(folder, *names):
    """Record the digests of files anew."""
    for name in names:
        content = (folder / name).read_bytes()
        facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        edit(folder, lambda stated, name=name, facts=facts: stated["files"].update({name: facts}))


UNNOTICED = {
    "versions", "created", "audience", "suppressed", "columns", "notes", "claims",
    "guard_formulas", "dialect", "privacy_losses", "release_form",
}  # fmt: skip
"""Fields that may be changed alone where the table of the manual says "in part"."""
INNER = {
    "privacy_losses": lambda entry: {"target": entry["target"] + "x"},
    "draws": lambda entry: {"count": entry["count"] + 1},
    "claims": lambda _: {"basis": "because"},
    "checks": lambda _: {"holds": False},
}
OTHER = {
    bool: lambda value: [not value],
    int: lambda value: [value + 1, *([value - 1] if value else [])],
    str: lambda value: ["row-aligned" if value == "linked-shuffled" else value + "x"],
    type(None): lambda _: ["public-use"],
    list: lambda value: [[*value, "x"], *([value[:-1], value[1:]] if value else [])],
    dict: lambda value: [
        {**value, "x": "x"},
        *({**value, key: f"{value[key]}x"} for key in [*value][:3] if isinstance(value[key], str)),
        *({n: v for n, v in value.items() if n != key} for key in [*value][:1]),
    ],
}  # fmt: skip


def changes(field, value):
    """Other values of a field, of the same type."""
    if field in INNER and value:
        yield [{**value[0], **INNER[field](value[0])}, *value[1:]]
    yield from OTHER[type(value)](value)


def test_every_field_of_a_manifest_has_a_part_that_derives_it():
    assert derived_fields.FIELDS.keys() == manifest.Manifest.model_fields.keys()


@pytest.mark.parametrize(
    ("name", "file"), [*((n, "parquet") for n in sorted(REGISTRY)), ("mdav", "csv")]
)
def test_what_the_manual_calls_derived_is_refused_and_the_rest_is_named(desk, tmp_path, name, file):
    """Each field by itself, with a report that fits: refused, failing, or named in the verdict."""
    output = OutputOptions(file_format=file, force=True)
    form = REGISTRY[name].forms.offered[0]
    folder = released(desk, tmp_path / "out", name, form=form, output=output)
    stated = json.loads((folder / "manifest.json").read_text("utf-8"))
    # The report of the forged manifest is listed anew, so it cannot be left out.
    stated["files"] = {n: f for n, f in stated["files"].items() if n != "report.html"}
    unnoticed = {}
    for field, derived in derived_fields.FIELDS.items():
        for number, value in enumerate(changes(field, stated[field]) if field in stated else ()):
            copy = shutil.copytree(folder, tmp_path / f"{field}-{number}")
            try:
                forge(copy, lambda m, field=field, value=value: m.update({field: value}))
                found = verify(copy)
            except InputError:
                continue
            except Exception:  # noqa: BLE001, S112 (no report can be rendered: nobody has it)
                continue
            if found.holds:
                named = derived.open_for(REGISTRY[name]) and derived.taken in found.taken
                unnoticed.setdefault(field, []).append(named or value)

    assert all(named is True for own in unnoticed.values() for named in own), unnoticed
    assert {"created"} <= unnoticed.keys() <= UNNOTICED


PERSONS = {
    "version": 1,
    "columns": {
        "id": {"role": "identifier", "privacy_unit": True},
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "illness": {"role": "confidential", "kind": "nominal", "categories": ["a", "b"]},
    },
    "protect": {"method": "mdav", "k": 3},
}


def stays(tmp_path, more=None):
    """A release of persons with two rows each, whose numbers are not in it."""
    table = pl.DataFrame(
        {
            "id": [f"p{i // 2}" for i in range(36)],
            "age": [20 + i // 2 for i in range(36)],
            "illness": ["a", "b"] * 18,
        }
    )
    return shoal.protect(table, PERSONS | (more or {})).write(tmp_path / "stays")


def test_true_ages_are_refuted_where_a_privacy_unit_hides_whose_rows_they_are(tmp_path):
    folder = stays(tmp_path)
    whole = verify(folder)
    table = folder / "release.parquet"
    true = pl.read_parquet(table).with_columns(age=20.0 + pl.int_range(36) // 2)
    true.write_parquet(table)
    record(folder, "release.parquet")
    forge(folder, lambda _: None)

    found = failing(verify(folder))

    assert whole.holds, whole
    assert "checks by persons or by an order that is not published" in whole.taken
    assert whole.taken[-1] in str(whole).splitlines()[-1]
    assert "3-anonymity of age does not hold: a class has 2." in found["checks"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda check: check.update(achieved=9), "9 persons recorded, in 6 rows."),
        (lambda check: check.update(holds=False), "3-anonymity of age does not hold."),
        (lambda check: check["remarks"].update(classes=7), "the table has 5 classes."),
        (lambda check: check["guarantee"].update(k=2), "is not that of the policy"),
    ],
)
def test_figures_of_persons_that_rows_refute_are_named(tmp_path, change, words):
    folder = stays(tmp_path)
    forge(folder, lambda stated: change(stated["checks"][0]))

    assert words in failing(verify(folder))["checks"]


def test_values_of_persons_are_at_most_those_of_their_rows(tmp_path):
    folder = stays(
        tmp_path, {"require": {"l-diversity": {"l": 2, "kind": "distinct", "column": "illness"}}}
    )
    whole = verify(folder)
    table = folder / "release.parquet"
    pl.read_parquet(table).with_columns(illness=pl.lit("a")).write_parquet(table)
    record(folder, "release.parquet")
    forge(folder, lambda _: None)

    assert whole.holds, whole
    assert "2-diversity of illness given age does not hold" in failing(verify(folder))["checks"]


def test_more_suppressed_rows_than_the_policy_allows_are_named(desk, tmp_path):
    none = released(desk, tmp_path / "none", "mdav")
    forge(none, lambda stated: stated.update(suppressed=1))

    assert "suppressed: 1 recorded, at most 0 allowed." in failing(verify(none))["manifest"]


def test_noisy_answers_that_nobody_drew_are_named(desk, tmp_path):
    folder = released(desk, tmp_path / "out", "maxent")
    answers = pl.read_parquet(folder / "measurements.parquet")
    pl.concat([answers, answers]).write_parquet(folder / "measurements.parquet")
    record(folder, "measurements.parquet")
    forge(folder, lambda _: None)

    assert "measurements.parquet: " in failing(verify(folder))["accounting"]
    answers.with_columns(scale=pl.col("scale") / 2).write_parquet(folder / "measurements.parquet")
    record(folder, "measurements.parquet")
    assert "0 drawn." in failing(verify(folder))["accounting"]


def test_a_dialect_of_a_table_that_is_not_csv_is_named(grouped, tmp_path):
    folder = copied(grouped, tmp_path)
    forge(folder, lambda stated: stated.update(guard_formulas=True))

    assert "the table has another format" in failing(verify(folder))["manifest"]


def test_a_manifest_that_states_a_failing_check_does_not_verify(grouped, tmp_path):
    """Figures and table agree; what they agree on is that the promise is broken."""
    folder = copied(grouped, tmp_path)
    table = folder / "release.parquet"
    alone = pl.read_parquet(table)
    classes = set(alone.select("number", "rank", "tree", "flat", "day").rows())
    _, *rest = alone.select("number", "rank", "tree", "flat", "day").row(0)
    number = min(n for n in alone["number"].unique() if (n, *rest) not in classes)
    first = pl.int_range(alone.height) == 0
    alone.with_columns(
        pl.when(first).then(pl.lit(number)).otherwise("number").alias("number")
    ).write_parquet(table)
    record(folder, "release.parquet")
    opened = released_folder.open_folder(folder)
    checks = [
        _read_back(verify_folder._recompute(opened.frame, guarantee, opened.planned))
        for guarantee in protect_table.testable(opened.planned, opened.claims)
    ]
    forge(folder, lambda stated: stated.update(checks=checks))

    found = failing(verify(folder))

    assert not all(check["holds"] for check in checks)
    assert found.keys() == {"checks"}
    assert "does not hold." in found["checks"]


def _read_back(check):
    return json.loads(json.dumps(plain(check)))


FITTED = {
    "version": 1,
    "one_row_per_person": True,
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [18, 70], "top_code": 65},
        "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
        "pay": {"role": "confidential", "kind": "numeric", "bounds": [0, 1000]},
    },
}
EVERYBODY = pl.DataFrame(
    {
        "name": [f"n{i}" for i in range(60)],
        "age": [20 + (7 * i) % 50 for i in range(60)],
        "sex": ["f", "m", "m"] * 20,
        "pay": [(37 * i) % 1000 for i in range(60)],
    }
)
MADE_BY = {
    "mdav": {"k": 4}, "mondrian": {"k": 4}, "laplace": {"epsilon": 2}, "auto": {"epsilon": 2},
    "maxent": {"epsilon": 2}, "dp-kdtree": {"epsilon": 2},
}  # fmt: skip


def first(table, name, value):
    cells = pl.when(pl.int_range(table.height) == 0).then(pl.lit(value)).otherwise(pl.col(name))
    return table.with_columns(cells.cast(table[name].dtype).alias(name))


TAMPERED = {
    "names": (lambda t: t.with_columns(name=pl.lit("Ann")), "columns.name: the table has it"),
    "extra": (lambda t: t.with_columns(other=pl.lit(1)), "columns.other: the table has it"),
    "fewer": (lambda t: t.drop("sex"), "columns.sex: the table lacks it."),
    "sex": (lambda t: first(t, "sex", "x"), "columns.sex: 1 cell outside the policy's domain."),
    "pay": (lambda t: first(t, "pay", 9999), "columns.pay: 1 cell outside the policy's domain."),
    "age": (lambda t: first(t, "age", "66"), "columns.age: 1 cell outside the policy's domain."),
}


@pytest.mark.parametrize("name", MADE_BY)
def test_a_table_that_its_own_policy_refutes_does_not_verify(tmp_path, name):
    """The forger changes table, manifest, report and digests together."""
    stated = FITTED | {"protect": {"method": name, **MADE_BY[name]}}
    folder = shoal.protect(EVERYBODY, stated).write(tmp_path / "out")

    found = {}
    for what, (change, _) in TAMPERED.items():
        copy = shutil.copytree(folder, tmp_path / what)
        exchange(copy, change)
        found[what] = failing(verify(copy)).get("manifest", "")

    assert verify(folder).holds
    for what, (_, words) in TAMPERED.items():
        assert words in found[what], (what, found[what])


def exchange(folder, change):
    """Put another table in place of the released one, and let nothing else give it away."""
    path = folder / "release.parquet"
    table = change(pl.read_parquet(path))
    table.write_parquet(path)
    record(folder, path.name)
    types = {name: str(dtype) for name, dtype in table.schema.items()}
    forge(folder, lambda stated: stated.update(rows=table.height, columns=types))


def test_boxes_of_another_column_or_beyond_the_bounds_do_not_verify(tmp_path):
    stated = FITTED | {"protect": {"method": "mondrian", "k": 4, "output": "tree"}}
    folder = shoal.protect(EVERYBODY, stated).write(tmp_path / "out")
    changes = {
        "boxes outside": lambda t: first(t, "age_upper", 200),
        "not of the columns": lambda t: t.with_columns(pay_lower=0, pay_upper=1),
        "one for each confidential value": lambda t: t.with_columns(other=1),
    }

    assert verify(folder).holds
    for words, change in changes.items():
        copy = shutil.copytree(folder, tmp_path / words)
        exchange(copy, change)
        assert words in failing(verify(copy))["manifest"]


def test_rows_that_drew_no_noise_are_named_and_elsewhere_the_verdict_takes_them(tmp_path):
    taken = "whether the original has as many rows"
    for name in ("laplace", "auto"):
        stated = FITTED | {"protect": {"method": name, "epsilon": 2}}
        folder = shoal.protect(EVERYBODY, stated).write(tmp_path / name)
        exchange(folder, lambda table: pl.concat([table, table]))

        found = verify(folder)

        if name == "laplace":
            assert "rows: 120 recorded, 60 drew noise." in failing(found)["manifest"]
        else:
            assert found.holds
            assert taken in found.taken


@pytest.mark.parametrize("epsilon", [False, True])
def test_steps_codes_levels_and_missing_cells_are_within_the_domain(tmp_path, epsilon):
    """Rounding leads beyond a bound, a period begins before it, a label stands for numbers."""
    (tmp_path / "ages.csv").write_text(
        "\n".join(f"{age},{'young' if age < 40 else 'old'},all" for age in range(18, 72))
    )
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [18, 71], "step": 10},
        "born": {"role": "quasi-identifier", "kind": "date", "date_step": "year",
                 "bounds": [date(1970, 5, 1), date(1990, 5, 1)], "bottom_code": date(1971, 5, 1)},
        "pay": {"role": "confidential", "kind": "numeric", "bounds": [0, 0.33333333336]},
    }  # fmt: skip
    table = pl.DataFrame(
        {
            "age": [None, 71, *(20 + (7 * i) % 50 for i in range(58))],
            "born": [date(1970 + i % 20, 6, 1) for i in range(60)],
            "pay": [0.33333333336] * 60,
        }
    )
    levels = {"kind": "numeric", "hierarchy": str(tmp_path / "ages.csv")}
    methods = {"laplace": {}, "auto": {}}
    if not epsilon:
        by_levels = {"age": {"role": "quasi-identifier", **levels}}
        methods = {"mdav": {}, "mondrian": {}, "local-suppression": {}, "full-domain": by_levels}

    for name, more in methods.items():
        cost = {"epsilon": 1} if epsilon else {"k": 2}
        stated = {
            "version": 1,
            "one_row_per_person": True,
            "release": {"accept_constant": list(columns)},
            "columns": columns | more,
            "protect": {"method": name, **cost},
        }
        for file in ("parquet", "csv"):
            made = shoal.protect(table, stated).write(tmp_path / f"{name}-{file}", file_format=file)
            found = verify(made)
            assert found.holds, f"{name}: {found}"
