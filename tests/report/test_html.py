import re
from importlib.resources import files
from itertools import pairwise

import polars as pl
import pytest

import shoal
from shoal import io
from shoal.core.exits import for_method
from shoal.methods import REGISTRY
from shoal.pipeline import protect_table as release_
from shoal.pipeline.options import EvaluationOptions
from shoal.pipeline.planning import plan
from shoal.policy.load import load
from shoal.publish import protect_file
from shoal.report import html, officer, phrases, pictures

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
        "unique_on_quasi_identifiers": {"original": 12, "rows": 12, "released": 0},
        "columns": [{"name": HOSTILE, "kind": "numeric", "metric": HOSTILE, "loss": 0.5,
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

    assert not re.search(r"""src\s*=|href\s*=\s*"[^#]|@import|url\(""", page)


def test_the_public_report_tells_claims_assumptions_and_checks(people, policy):
    page = html.public_report(shoal.protect(people, policy).manifest)

    for words in ("What is promised", "What is not promised", "each person has one row", "holds",
                  "Domingo-Ferrer", "a person&#39;s judgement"):  # fmt: skip
        assert words in page or words.replace("&#39;", "'") in page


def test_the_public_report_has_a_codebook_of_public_facts(people, policy):
    levels = [HOSTILE, *(f"r{i}" for i in range(60))]
    policy["columns"]["age"] |= {"bottom_code": 0, "step": 5, "transform": "log"}
    policy["columns"]["region"]["categories"] = levels
    people = people.with_columns(region=pl.lit("r1"))

    page = html.public_report(shoal.protect(people, policy).manifest)

    assert "from 0 to 110; rounded to multiples of 5; values below 0 were set to 0" in page
    assert "&lt;/script&gt;" in page
    assert "r38 and 21 more" in page
    assert HOSTILE not in page


def test_write_report_writes_the_public_report(tmp_path, people, policy):
    done = shoal.protect(people, policy)

    shoal.write_report(done, tmp_path / "report.html")

    assert (tmp_path / "report.html").read_text() == html.public_report(
        done.manifest, pictures.count_released(done)
    )


def test_a_script_island_cannot_be_left():
    assert "</" not in html.island({"x": HOSTILE})


def test_a_public_report_has_no_word_of_a_measurement(hostile):
    page = hostile.public.read_text()

    for words in ("CONFIDENTIAL", "Blind guess", "SSE", "blind guess", "data.csv", "others.csv",
                  "moved", "Before and after", "difference"):  # fmt: skip
        assert words not in page


def test_both_reports_forbid_scripts_and_requests_and_are_small(hostile):
    for path in (hostile.public, hostile.internal):
        page = path.read_text()

        assert "default-src 'none'; style-src 'unsafe-inline'" in page
        assert "<script" not in page
        assert len(page) < 300_000


def test_the_internal_report_answers_what_an_officer_asks(hostile):
    page = hostile.internal.read_text()

    for words in (
        "Meets what was required:", "What may be published", "What is promised?",
        "What does an attacker gain?", "What got worse, and for whom?", "Singling out",
        "Linkability", "Inference", "For whom the data got worse", "Epsilon spent and left",
        "To make the release again", "shoal protect", "Decision and signature", "Glossary",
        "people not in it", "often for people in the table, by", "Before and after",
        "Published unprotected", "Two columns together", "Worst column", "Worst group of people",
        "What remains your judgement",
    ):  # fmt: skip
        assert words in page


def test_a_report_without_a_control_says_so_in_plain_words(people, policy, tmp_path):
    people.write_csv(tmp_path / "people.csv")

    done = protect_file.protect(tmp_path / "people.csv", load(policy), tmp_path / "out")

    page = (done.internal / "report.html").read_text()
    assert "No control group was given" in page
    assert "no control" in page
    assert "often for people in the table, by" not in page


def test_a_report_that_was_not_measured_says_so(people, policy, tmp_path):
    people.write_csv(tmp_path / "people.csv")
    stated = load(policy)

    done = protect_file.protect(
        tmp_path / "people.csv",
        stated,
        tmp_path / "out",
        evaluation=EvaluationOptions(evaluate=False),
    )

    assert "because evaluation was switched off" in (done.internal / "report.html").read_text()
    assert done.measured is None


CASES = {
    **{name: dict(method.example.parameters) for name, method in REGISTRY.items()},
    "mondrian, tree": {"method": "mondrian", "k": 5, "output": "tree"},
    "dp-kdtree, tree": {"method": "dp-kdtree", "epsilon": 1, "output": "tree"},
}


@pytest.mark.parametrize("name", CASES)
def test_every_method_has_both_reports(name):
    """Rendered from the manifest and the figures alone, without a measurement, for speed."""
    method = REGISTRY[CASES[name].get("method", name)]
    categories = [f"v{i}" for i in range(4)]
    nominal = {"kind": "nominal", "categories": categories}
    second = nominal if name == "pram" else {"kind": "numeric", "bounds": [0, 80]}
    place = {"role": "other", "kind": "numeric", "bounds": [0, 9], "public": True}
    if method.noisy and name != "public-laplace":
        place = "identifier"
    document = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
            "hours": {"role": "confidential", **second},
            "place": place,
        },
        "protect": {"method": method.name, **CASES[name]},
    }
    if method.forms.must_choose:
        document["protect"]["release_form"] = method.forms.offered[0].value
    rows = 60
    frame = pl.DataFrame(
        {
            "age": [20 + i % 50 for i in range(rows)],
            "hours": [categories[i % 4] if name == "pram" else i % 70 for i in range(rows)],
            "place": [i % 10 for i in range(rows)],
        }
    )
    planned = plan(document)
    done = release_.run(planned, io.from_native(frame))
    compared = for_method(done.evidence)
    setting = planned.setting
    found = {
        **compared.figures(setting.columns, setting.release_form),
        "clamped": compared.clamped,
        "suppressed": 0,
    }

    pages = (
        html.public_report(done.release.manifest),
        html.internal_report(done.release.manifest, found, {}),
    )

    for page in pages:
        assert method.name in page
        assert page.count("<h1>") == 1
    manifest, data = done.release.manifest, done.release.data
    changed = {one["name"]: one["changed"] for one in phrases.codebook(manifest)}
    treated = {
        word: one["treated"] for one in officer.roles(manifest) for word in one["names"].split()
    }
    for column in phrases.list_unprotected(manifest):
        if manifest.release_form == "tree":
            counts = {one.name: one.sum() for one in data if one.name.startswith(f"{column}=")}
            held = frame[column].value_counts().rows()
            assert counts == {f"{column}={value}": count for value, count in held}
            assert treated[column] == "counted exactly in each box"
        else:
            assert sorted(data[column]) == sorted(frame[column])
            assert (changed.pop(column), treated[column]) == (
                "no, released as it was",
                "released as it is",
            )
    assert all(words.startswith("yes") for words in changed.values())
    if manifest.release_form not in {"tree", "synthetic"} and not manifest.privacy_losses:
        shared = [text for text in phrases.uses(manifest)[1] if "share one value" in text]
        for one in data.select(manifest.protected_columns).select(pl.selectors.numeric()):
            if shared:
                assert one.name in shared[0]
                assert one.value_counts()["count"].min() > 1
            else:
                assert set(one.drop_nulls()) <= set(frame[one.name])
    assert treated["age"] == "protected"
    assert treated["hours"] != "not released"


def test_the_colours_of_the_pages_have_contrast_enough():
    """WCAG 2.2, 1.4.3: text 4.5 to 1; 1.4.11: what bars show 3 to 1."""
    style = files("shoal.report").joinpath("templates", "base.html").read_text("utf-8")
    light_, dark, printed = (
        dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{.*?\}", style, re.DOTALL)
    )

    assert printed == light_
    for colours in (light_, dark):
        for text in ("ink", "soft", "sea", "alarm", "well"):
            for behind in ("paper", "pale"):
                assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind)
        for bar in ("sea", "outside", "blind"):
            assert contrast(colours[bar], colours["pale"]) >= 3, bar
        assert contrast(colours["paper"], colours["alarm"]) >= 4.5
    named = re.sub(r":root \{.*?\}", "", style, flags=re.DOTALL)
    assert not re.findall(r"#[0-9a-f]{3,6}\b", named), "a colour without a name"


def contrast(first, second):
    lights = sorted(map(light, (first, second)), reverse=True)
    above, below = next(pairwise(lights))
    return (above + 0.05) / (below + 0.05)


def light(colour):
    """Relative luminance of WCAG."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_contrast_knows_its_ends():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)
