import re

import polars as pl

import shoal
from shoal.report import html

HOSTILE = "</script><img src=x onerror=alert(1)>"


def release(people, policy):
    return shoal.protect(people.rename({"age": HOSTILE}), _renamed(policy))


def _renamed(policy):
    columns = {HOSTILE if name == "age" else name: spec for name, spec in policy["columns"].items()}
    return {**policy, "columns": columns}


def test_hostile_column_names_are_text_in_both_reports(people, policy):
    manifest = release(people, policy).manifest
    figures = {
        "rows": 12,
        "unique_on_quasi_identifiers": {"original": 12, "released": 0},
        "columns": [{"name": HOSTILE, "kind": "numeric", "measure": HOSTILE, "loss": 0.5,
                     "missing_original": 0, "missing_released": 0}],
    }  # fmt: skip

    pages = [
        html.public_report(manifest),
        html.internal_report(manifest, figures, {"purpose": HOSTILE}),
    ]

    for page in pages:
        assert HOSTILE not in page
        assert "<img" not in page


def test_reports_ask_nothing_of_the_network(people, policy):
    page = html.public_report(shoal.protect(people, policy).manifest)

    assert not re.search(r"""(src|href)\s*=|@import|url\(""", page)


def test_the_public_report_tells_claims_assumptions_and_checks(people, policy):
    page = html.public_report(shoal.protect(people, policy).manifest)

    for words in ("What is promised", "What is not promised", "each person has one row", "holds",
                  "Domingo-Ferrer", "a person&#39;s judgement"):  # fmt: skip
        assert words in page or words.replace("&#39;", "'") in page


def test_the_public_report_has_a_codebook_of_public_facts(people, policy):
    levels = [HOSTILE, *(f"r{i}" for i in range(60))]
    policy["columns"]["age"] |= {"bottom": 0, "step": 5, "transform": "log"}
    policy["columns"]["region"]["categories"] = levels
    people = people.with_columns(region=pl.lit("r1"))

    page = html.public_report(shoal.protect(people, policy).manifest)

    assert "0 to 110; step 5; bottom 0; transform log" in page
    assert "&lt;/script&gt;" in page
    assert "r48, and 11 more" in page
    assert HOSTILE not in page


def test_write_report_writes_the_public_report(tmp_path, people, policy):
    done = shoal.protect(people, policy)

    shoal.write_report(done, tmp_path / "report.html")

    assert (tmp_path / "report.html").read_text() == html.public_report(done.manifest)


def test_a_script_island_cannot_be_left():
    assert "</" not in html._island({"x": HOSTILE})
