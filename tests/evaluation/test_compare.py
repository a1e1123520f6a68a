"""Comparisons end to end: kept results, failures, the recommendation by hand, the budget."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.budget import budget_file
from shoal.errors import ClaimViolationError, InputError
from shoal.evaluation.comparison import compare as comparison
from shoal.evaluation.comparison import running
from shoal.policy.load import load
from shoal.publish import evaluate_files
from shoal.report import html

CITIES = ["a", "b", "c", "d"]
GRID = {
    "candidate": [
        {"method": "mondrian", "k": [3, 20]},
        {"method": "laplace", "epsilon": 1},
        {"method": "mdav", "k": 100_000},
        {"method": "public-laplace", "epsilon": 1, "k": 5},
    ]
}


def people(n=240, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, n)
    city = rng.integers(0, 4, n)
    ill = (age // 10 + city + rng.integers(0, 2, n)) % 3
    return pl.DataFrame(
        {
            "age": age,
            "city": [CITIES[code] for code in city],
            "income": (1000 * age + rng.normal(0, 5000, n)).round(),
            "ill": [str(code) for code in ill],
        }
    )


def stated(**more):
    return {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]},
            "city": {"role": "quasi-identifier", "kind": "nominal", "categories": CITIES},
            "income": {"role": "confidential", "kind": "numeric", "bounds": [0, 120_000]},
            "ill": {"role": "confidential", "kind": "nominal", "categories": ["0", "1", "2"]},
        },
        "protect": {"method": "mondrian", "k": 3},
        **more,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def found(folder):
    return shoal.compare(people(), stated(), candidates=GRID, repeats=2, folder=folder)


def test_every_candidate_is_listed_and_those_that_fail_say_why(found):
    rows = {row.label: row for row in found.rows}

    assert list(rows) == [
        "mondrian k=3",
        "mondrian k=20",
        "laplace epsilon=1",
        "mdav k=100000",
        "public-laplace epsilon=1 k=5",
    ]
    assert "Cannot form one group of k=100,000" in rows["mdav k=100000"].failed
    assert "public" in rows["public-laplace epsilon=1 k=5"].failed
    assert all(rows[label].point is not None for label in list(rows)[:3])
    assert "failed: Cannot form one group" in str(found)


def test_models_of_a_paper_vary_by_what_candidates_require_on_the_axes_of_the_paper():
    """Figure 5 of cormode2013 for a table of one's own: k, l, t and epsilon on alpha and beta."""
    secret = {"column": "ill"}
    grid = {
        "candidate": [
            {"method": "mondrian", "k": 3, "output": "tree", "count": "ill"},
            {"method": "mondrian", "k": 3,
             "require": [{"l-diversity": {**secret, "l": least}} for least in (2, 50)]},
            {"method": "mondrian", "k": 3, "require": {"t-closeness": {**secret, "t": 0.2}}},
            {"method": "dp-quadtree", "epsilon": 1, "count": "ill", "output": "tree"},
        ]
    }  # fmt: skip

    found = shoal.compare(people(), stated(), candidates=grid, repeats=1, axes="alpha-beta")

    tree, diverse, impossible, close, private = found.rows
    assert "l=50" in impossible.label
    assert impossible.point is None
    assert "No grouping meets distinct 50-diversity" in impossible.failed
    for row in (tree, diverse, close, private):
        figures = {key[1:3]: value for key, value in row.figures.items()}
        assert row.point.risk.value == pytest.approx(figures["breach increase", "ill"].value)
        alpha = next(v for (name, _), v in figures.items() if name == "COUNT queries")
        assert row.point.error.value == pytest.approx(alpha.value)
    assert tree.require == {}
    assert close.require == {"t-closeness": {"column": "ill", "t": 0.2}}
    assert "l-diversity" in {check["guarantee"]["name"] for check in diverse.checks}
    facts = found.facts()
    assert "beta" in facts["axes"]["risk"]
    assert {one["name"] for one in facts["candidates"][0]["pictures"]} >= {"age", "ill"}
    assert "times as often" in comparison.in_words(facts["candidates"][0], "alpha-beta")
    with pytest.raises(InputError, match="axes: expected advantage or alpha-beta, found 'x'"):
        shoal.compare(people(), stated(), candidates=grid, axes="x")


def test_a_second_run_reads_what_the_first_has_kept(folder, found, monkeypatch):
    monkeypatch.setattr(running, "_measure", None)  # whoever measures now, fails

    again = shoal.compare(people(), stated(), candidates=GRID, repeats=2, folder=folder)

    assert again.to_json() == found.to_json()


def test_another_table_policy_or_repeat_is_not_taken_for_the_same():
    frame, policy = people(), load(stated())
    digest = running.data_digest(frame)
    keys = {
        running.Job.of(one, data, share=share, repeat=repeat, seed=seed).key
        for one in (policy, load(stated(require={"k-anonymity": 3})),
                    load(stated(protect={"method": "mondrian", "k": 4})))
        for data in (digest, running.data_digest(frame.with_columns(age=pl.col("age") + 1)))
        for share in (None, 1.0)
        for repeat in (0, 1)
        for seed in (0, 1)
    }  # fmt: skip

    assert len(keys) == 3 * 2**4
    assert running.data_digest(pl.concat([frame[:7], frame[7:]], rechunk=False)) == digest


def by_hand(facts, limit):
    """The rule of docs/how-to/compare.md again: labels within the limit, and those left."""
    able = [row for row in facts["candidates"]
            if row["risk"] is not None and row["proved"] and row["unmet"] is None]  # fmt: skip
    within = [row for row in able if row["risk"]["high"] <= limit]
    if not within:
        return [], []
    best = min(within, key=lambda row: row["error"]["value"])
    close = [row for row in within if row["error"]["low"] <= best["error"]["high"]]
    left = [row for row in close
            if row["risk"]["low"] <= min(other["risk"]["high"] for other in close)]  # fmt: skip
    if len(left) == 1:
        risk, error = left[0]["risk"]["value"], left[0]["error"]["value"]
        places = [(row["risk"]["value"], row["error"]["value"]) for row in able]
        left += [row for row, place in zip(able, places, strict=True)
                 if place[0] <= risk and place[1] <= error and place != (risk, error)]  # fmt: skip
    return [row["label"] for row in within], [row["label"] for row in left]


@pytest.mark.parametrize("limit", [0.1, 0.3, 1.0])
def test_the_recommendation_follows_from_the_json_by_hand(folder, limit):
    options = {"candidates": GRID, "repeats": 2, "folder": folder, "max_risk": limit}
    found = shoal.compare(people(), stated(), **options)
    facts = json.loads(found.to_json())

    within, left = by_hand(facts, limit)

    assert found.choice.within == len(within)
    assert set(facts["ties"]) == set(left)
    assert facts["recommended"] == (left[0] if len(left) == 1 else None)
    start = {0: "No candidate is recommended: ", 1: "Take "}
    assert facts["recommendation"].startswith(start.get(len(left), "Cannot be told apart: "))
    assert all(label in facts["recommendation"] for label in left)
    assert f"{limit:.3g} or below with 95% confidence" in facts["recommendation"]


def test_candidates_that_cannot_be_told_apart_are_released_more_often_and_then_named():
    """Two names for one method differ in nothing, however often they are released."""
    one = {"method": "mondrian", "k": 20}
    grid = {"candidate": [one, {**one, "output": "intervals"}]}
    told = []

    found = shoal.compare(
        people(90), stated(), candidates=grid, repeats=1, max_risk=1,
        progress=lambda stage, done, total: told.append((stage, done, total)),
    )  # fmt: skip

    labels = [row.label for row in found.rows]
    assert (found.recommended, found.facts()["ties"]) == (None, labels)
    assert [row.repeats for row in found.rows] == [4, 4]
    assert found.settings["most_repeats"] == 4
    assert found.recommendation.startswith(f"Cannot be told apart: {labels[0]} and {labels[1]}.")
    assert "after 4 repeats" in found.recommendation
    assert told[-1][0].startswith("comparing again")
    page = html.comparison_report(found.facts())
    assert page.count("(not distinguishable)") == 2
    assert page.count('class="p-ring"') == 2


def fake_results(rng):
    """What jobs return, with risks near 0.1 and errors near one another."""

    def figures():
        risk, error = rng.normal(0.08, 0.02), abs(rng.normal(0.2, 0.02))
        for metric, value in (("naive Bayes", risk), ("COUNT queries", error)):
            low, high = value - 0.01, value + 0.01
            yield {"part": "", "metric": metric, "subject": "", "better": "less",
                   "value": value, "low": low, "high": high,
                   "residual": value, "residual_low": low, "residual_high": high}  # fmt: skip

    def run(_frame, jobs, **_options):
        fixed = {"claims": [], "checks": [], "unmet": None, "seconds": 0}
        return [{**fixed, "figures": list(figures())} for _ in jobs]

    return run


def test_whoever_is_undecided_in_the_end_has_been_released_as_often_as_the_manual_says(
    monkeypatch,
):
    """More repeats of some candidates leave others undecided; they are repeated too."""
    grid, rounds = {"candidate": [{"method": "mondrian", "k": [3, 4, 5, 6, 7, 8]}]}, set()
    for seed in range(60):
        calls = []
        run = fake_results(np.random.default_rng(seed))
        monkeypatch.setattr(
            running, "run", lambda *a, run=run, calls=calls, **o: calls.append(1) or run(*a, **o)
        )

        found = shoal.compare(people(90), stated(), candidates=grid, repeats=2, any_claim=True)

        rounds.add(len(calls))
        assert {row.repeats for row in found.rows} <= {2, 8}
        assert {found.rows[place].repeats for place in found.choice.open} <= {8}
        assert ("after 8 repeats" in found.recommendation) == (
            found.choice.index is None and found.choice.best is not None
        )
    assert max(rounds) > 2


def test_a_decision_costs_no_more_repeats():
    grid = {"candidate": [{"method": "mondrian", "k": 5}]}

    found = shoal.compare(people(90), stated(), candidates=grid, repeats=1, max_risk=1)

    assert found.recommended.label == "mondrian k=5"
    assert found.rows[0].repeats == 1
    assert "the only candidate with a proved claim that meets" in found.recommendation


def test_baselines_bracket_the_candidates(found):
    points = {row.label: row.point for row in found.baselines}

    assert points["the raw table"].error.value == 0
    assert points["the raw table"].risk.low > 0.5
    assert (points["publishing nothing"].risk.value, points["publishing nothing"].error.value) == (
        0,
        1,
    )
    errors = [points[f"a {share}% sample"].error.value for share in (5, 20, 50)]
    assert errors == sorted(errors, reverse=True)
    assert all(row.like for row in found.rows if row.point is not None)


def test_a_requirement_that_is_not_kept_keeps_a_candidate_from_being_recommended():
    policy = stated(require={"k-anonymity": 3})

    found = shoal.compare(
        people(), policy, candidates=GRID, repeats=1, max_risk=1, rows=120, seed=3
    )

    rows = {row.label: row for row in found.rows}
    assert "requires 3-anonymity" in rows["laplace epsilon=1"].unmet
    assert rows["laplace epsilon=1"].standing is not None
    assert "laplace epsilon=1" not in found.facts()["ties"]
    assert "mondrian" in found.recommendation
    assert found.settings["rows"] == 120


def test_without_a_proved_claim_nothing_is_recommended_unless_asked():
    grid = {"candidate": [{"method": "individual-ranking", "k": 5}]}
    frame = people(120)

    options = {"candidates": grid, "repeats": 1, "max_risk": 1}
    careful = shoal.compare(frame, stated(), **options)
    asked = shoal.compare(frame, stated(), **options, any_claim=True)

    assert careful.recommended is None
    assert careful.recommendation.startswith("No candidate is recommended")
    assert asked.recommended.method == "individual-ranking"


def test_figures_claims_and_checks_are_in_the_frame(found):
    frame = found.to_frame()

    assert set(frame["truth"]) == {"estimate", "claim", "check", "failure"}
    own = frame.filter(pl.col("label") == "mondrian k=20")
    assert {"risk", "error", "linkability", "COUNT queries"} <= set(own["metric"])
    claim = own.filter(pl.col("truth") == "claim", pl.col("metric") == "k-anonymity")
    assert claim["verdict"].to_list() == ["conditional"]  # on one row per person, and eligible
    assert next(row for row in found.rows if row.label == "mondrian k=20").proved


def test_who_is_held_out_is_a_third_and_households_stay_together():
    frame = people(300).with_columns(home=pl.Series([i // 3 for i in range(300)]))
    schema = load(
        stated(columns={**stated()["columns"], "home": {"role": "identifier", "household": True}})
    ).schema

    inside, outside = running.hold_out(frame, schema, np.random.default_rng(0))

    assert sorted([*inside, *outside]) == list(range(300))
    assert len(outside) == 99
    assert not set(frame["home"][inside]) & set(frame["home"][outside])


def test_too_few_people_are_refused_before_anything_is_recorded(tmp_path):
    policy = booked(tmp_path)

    with pytest.raises(InputError, match="Expected 30 rows or more"):
        shoal.compare(people(20), policy, candidates=GRID)

    assert budget_file.account(tmp_path / "budget.sqlite", "people").inspections == ()


# Files, processes and interrupts.


def write(tmp_path, policy):
    people().write_parquet(tmp_path / "people.parquet")
    lines = ["version = 1", "[columns]"]
    for name, spec in policy["columns"].items():
        lines.append(f"{name} = {_toml(spec)}")
    for section in ("protect", "require", "budget"):
        if section in policy:
            lines.append(f"[{section}]")
            lines += [f"{key} = {_toml(value)}" for key, value in policy[section].items()]
    (tmp_path / "policy.toml").write_text("\n".join(lines))
    grid = '[[candidate]]\nmethod = "mondrian"\nk = [3, 20]\n'
    (tmp_path / "grid.toml").write_text(grid + '[[candidate]]\nmethod = "laplace"\nepsilon = 1\n')


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def command(*more):
    return [
        sys.executable, "-m", "shoal", "compare", "people.parquet", "--policy", "policy.toml",
        "--grid", "grid.toml", "--out", "out", "--repeats", "2", *more,
    ]  # fmt: skip


def test_an_interrupted_run_goes_on_where_it_was_and_two_processes_find_the_same(tmp_path):
    write(tmp_path, stated())
    kept = tmp_path / "out" / "results"

    first = subprocess.Popen(
        command("--jobs", "1", "--repeats", "4"), cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while len(list(kept.glob("*.json"))) < 2 and time.monotonic() < deadline:
        assert first.poll() is None
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, told = first.communicate(timeout=120)
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}

    assert first.returncode == 130
    assert "finished results are kept in out" in told
    assert not (tmp_path / "out" / "comparison.json").exists()
    second = subprocess.Popen(
        command("--jobs", "2", "--repeats", "4"),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    children, most = Path(f"/proc/{second.pid}/task/{second.pid}/children"), 0
    while second.poll() is None:
        most = max(most, len(children.read_text().split()) if children.exists() else 3)
        time.sleep(0.02)
    shown, _ = second.communicate()
    assert second.returncode == 0
    assert most == 3  # the two, and a helper of Python's: there is more than a second of work
    after = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert {name: after[name] for name in before} == before
    assert "CONFIDENTIAL" in shown
    facts = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert facts["confidential"].startswith("CONFIDENTIAL")
    assert len(after) == sum(row["repeats"] for row in facts["candidates"]) + 5 * 4
    assert "CONFIDENTIAL" in (tmp_path / "out" / "report.html").read_text()
    assert pl.read_parquet_metadata(tmp_path / "out" / "comparison.parquet")["confidential"]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.rglob(".*"))


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    write(tmp_path, stated())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.doc").touch()

    with pytest.raises(InputError, match="holds more than a comparison"):
        evaluate_files.compare(
            tmp_path / "people.parquet", tmp_path / "policy.toml", tmp_path / "out", tell=print
        )


# The accounting.


def booked(tmp_path, **more):
    path = tmp_path / "budget.sqlite"
    if not path.exists():
        budget_file.init(path, "people", Fraction(10))
    return stated(budget={"file": str(path), "source": "people"}, **more)


LAPLACE = {"protect": {"method": "laplace", "epsilon": 1}}
ONE = {"candidate": [{"method": "mondrian", "k": 5}]}


def claims_of(policy, frame=None):
    manifest = shoal.protect(people() if frame is None else frame, policy).manifest
    return [claim for claim in manifest.as_values()["claims"]
            if claim["guarantee"]["name"] == "differential-privacy"]  # fmt: skip


def test_a_look_at_the_table_makes_a_later_epsilon_conditional_in_the_manifest(tmp_path):
    policy = booked(tmp_path, **LAPLACE)
    told = []
    (before,) = claims_of(policy)

    shoal.compare(people(), policy, candidates=ONE, repeats=1, tell=told.append)
    (after,) = claims_of(policy)

    assert before["status"] == "proved"
    assert after["status"] == "conditional"
    assert "the method and its parameters were not chosen from this table" in after["assumes"]
    assert any("Choosing by inspecting the table costs privacy" in sentence for sentence in told)
    account = budget_file.account(tmp_path / "budget.sqlite", "people")
    assert account.spent == 2  # a conditional epsilon takes from the budget all the same
    assert "first by `shoal compare` on" in str(account)


def test_a_required_epsilon_is_refused_after_a_look_and_nothing_is_spent(tmp_path):
    policy = booked(tmp_path, require={"differential-privacy": 1}, **LAPLACE)
    shoal.compare(people(), policy, candidates=ONE, repeats=1)

    with pytest.raises(
        ClaimViolationError, match="the table of source 'people' was inspected"
    ) as caught:
        shoal.protect(people(), policy)

    assert "--on-sample" in str(caught.value)
    assert budget_file.account(tmp_path / "budget.sqlite", "people").spent == 0


def test_a_k_anonymous_release_is_as_proved_after_a_look_as_before(tmp_path):
    policy = booked(tmp_path)
    shoal.compare(people(), policy, candidates=ONE, repeats=1)

    release = shoal.protect(people(), policy)

    assert [claim.status for claim in release.claims] == ["conditional"]
    assert release.claims[0].stands  # on one row per person alone, as before


def test_a_comparison_on_public_people_leaves_epsilon_proved(tmp_path):
    policy = booked(tmp_path, require={"differential-privacy": 1}, **LAPLACE)
    told = []

    shoal.compare(
        None, policy, candidates=ONE, on_sample=people(seed=7), repeats=1, tell=told.append
    )
    (claim,) = claims_of(policy)

    assert claim["status"] == "proved"
    assert told[0].startswith("The confidential table is not inspected")
    (look,) = budget_file.account(tmp_path / "budget.sqlite", "people").inspections
    assert look.kind is budget_file.Inspection.SAMPLE


def test_public_people_do_not_undo_a_look(tmp_path):
    policy = booked(tmp_path, **LAPLACE)
    told = []
    shoal.compare(people(), policy, candidates=ONE, repeats=1)
    shoal.compare(None, policy, candidates=ONE, on_sample=people(seed=7), repeats=1,
                  tell=told.append)  # fmt: skip

    (claim,) = claims_of(policy)

    assert claim["status"] == "conditional"
    assert "does not undo that" in told[0]


def test_another_source_of_the_same_file_is_not_touched_by_a_look(tmp_path):
    policy = booked(tmp_path, **LAPLACE)
    budget_file.init(tmp_path / "budget.sqlite", "firms", Fraction(1))
    shoal.compare(people(), policy, candidates=ONE, repeats=1)

    (claim,) = claims_of({**policy, "budget": {**policy["budget"], "source": "firms"}})

    assert claim["status"] == "proved"


def test_going_on_with_a_comparison_is_recorded_once(tmp_path):
    policy = booked(tmp_path)
    for _ in range(2):
        shoal.compare(people(), policy, candidates=ONE, repeats=1, folder=tmp_path / "kept")

    assert len(budget_file.account(tmp_path / "budget.sqlite", "people").inspections) == 1


def test_without_a_budget_file_the_steward_is_told_that_nothing_is_recorded():
    told = []

    shoal.compare(people(60), stated(), candidates=ONE, repeats=1, tell=told.append)

    assert "cannot be recorded" in told[1]


def test_candidates_are_never_booked(tmp_path):
    policy = booked(tmp_path)
    grid = {"candidate": [{"method": "laplace", "epsilon": 1}]}

    shoal.compare(people(90), policy, candidates=grid, repeats=1)

    assert budget_file.account(tmp_path / "budget.sqlite", "people").entries == ()


def test_the_report_shows_the_frontier_and_takes_labels_for_text(found):
    hostile = "</script><img src=x onerror=alert(1)>"
    rows = (replace(found.rows[0], label=hostile), *found.rows[1:])
    shown = replace(found, rows=rows)

    page = html.comparison_report(shown.facts())

    assert hostile not in page
    assert "<img" not in page
    assert "What inspecting the table costs" in page
    assert "Cannot form one group of k=100,000" in page


def test_a_candidate_that_does_not_meet_the_policy_is_shown_and_never_leads():
    grid = {"candidate": [{"method": "mondrian", "k": [3, 20]}]}

    found = shoal.compare(people(), stated(require={"k-anonymity": 10}), candidates=grid, repeats=2)

    rows = {row.label: row for row in found.rows}
    assert rows["mondrian k=3"].standing.value == "does not meet the policy"
    assert rows["mondrian k=20"].standing.value == "frontier"
    assert rows["mondrian k=3"].repeats == 1
    assert rows["mondrian k=20"].repeats > 1
    lines = str(found).splitlines()
    places = [next(n for n, line in enumerate(lines) if line.startswith(f"mondrian k={k} "))
              for k in (20, 3)]  # fmt: skip
    assert places == sorted(places)


def test_candidates_whose_plan_keeps_the_policy_are_released_first(monkeypatch):
    """And the time left counts the repeats that are still expected."""
    order, told, measure = [], [], running._measure
    monkeypatch.setattr(
        running, "_measure",
        lambda frame, job: order.append((job.policy.method, job.repeat)) or measure(frame, job),
    )  # fmt: skip
    grid = {"candidate": [{"method": "laplace", "epsilon": 1}, {"method": "mondrian", "k": 20}]}

    shoal.compare(
        people(), stated(require={"k-anonymity": 10}), candidates=grid, repeats=2,
        progress=lambda *said: told.append(said),
    )  # fmt: skip

    assert order[:2] == [("mondrian", 0), ("laplace", 0)]
    assert ("laplace", 1) not in order
    assert ("mondrian", 1) in order
    first = [(done, total) for stage, done, total in told if "again" not in stage]
    assert first[0] == (0, 14)  # two candidates and five baselines, twice each
    assert first[-1] == (13, 13)  # the one that does not meet the policy, once


def test_a_recommendation_names_what_its_risk_is_of_and_what_is_no_part_of_it(found):
    words = found.facts()["axes"]["risk"]

    assert words.startswith("Risk of linkage and inference: ")
    assert "Singling out stands beside it" in words
    assert "the risk of linkage and inference" in found.recommendation
    rates = [row["singling_out"] for row in found.facts()["candidates"] if row["risk"]]
    assert all(0 <= rate <= 1 for rate in rates)


def test_the_axes_of_a_picture_end_at_all(found):
    facts = found.facts()
    for row in facts["candidates"]:
        if row["risk"]:
            row["risk"] = {"value": 0.97, "low": 0.9, "high": 1.0}

    assert ">115%<" not in html.comparison_report(facts)
    assert ">100%<" in html.comparison_report(facts)
