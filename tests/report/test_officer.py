import pytest

from shoal.core import Status
from shoal.core.manifest import ClaimRecord, Manifest
from shoal.report import officer


def row(measure, value, **more):
    empty = dict.fromkeys(
        ("low", "high", "baseline", "baseline_low", "baseline_high", "control", "control_low",
         "control_high"))  # fmt: skip
    return {**empty, "part": "risk", "metric": measure, "subject": "x", "value": value,
            "better": "lower", "sentence": f"{measure} {value}.", **more}  # fmt: skip


def test_attacks_stand_under_their_question_and_the_one_that_gains_most_is_first():
    rows = [
        row("inference", 0.6, low=0.55, high=0.65, baseline=0.5),
        row("inference", 0.4, low=0.35, high=0.45, baseline=0.1),
        row("singling out", 0.2, baseline=0.1),
        row("uniques", 0.0, baseline=0.6),
        row("of another version", 0.5),
    ]

    single, link, infer = officer.questions({"figures": rows})

    assert [one["value"] for one in infer["rates"]] == [0.4, 0.6]
    assert [one["metric"] for one in infer["others"]] == ["of another version"]
    assert [one["metric"] for one in single["others"]] == ["uniques"]
    assert link["rates"] == []
    figures = {"unique_on_quasi_identifiers": {"released": None}, "measured": {"figures": rows}}
    short = officer.verdict(Manifest.model_construct(rows=9), figures, (single, link, infer), [])
    assert [one["title"] for one in short["risks"]] == ["Singling out", "Inference"]
    assert [bar["name"] for bar in short["risks"][1]["bars"]] == [
        "people in the table", "blind guess"
    ]  # fmt: skip
    assert not short["controlled"]
    (group,) = short["losses"]
    assert group["sentence"] == officer.NO_GROUPS
    silent = officer.verdict(
        Manifest.model_construct(rows=9),
        {**figures, "measured": None, "unmeasured": "Why."},
        [],
        [],
    )
    assert silent["unmeasured"] == "Not evaluated. Why."


def test_the_three_losses_are_those_of_pairs_columns_and_groups_that_lost_most():
    rows = [
        row("total variation of pairs", 0.1), row("total variation of pairs", 0.3),
        row("total variation", 0.02), row("loss by group", 0.4), row("loss by group", None),
    ]  # fmt: skip
    figures = {
        "unique_on_quasi_identifiers": {"released": 1, "original": 2, "rows": 9},
        "homogeneous": {"ill": {"rows": 4}}, "suppressed": 1, "measured": {"figures": rows},
    }  # fmt: skip
    policy = {"columns": {"age": {"role": "quasi-identifier"}}}
    manifest = Manifest.model_construct(rows=9, policy=policy)

    found = officer.verdict(manifest, figures, [], [])

    assert [one["text"] for one in found["losses"]] == ["30%", "2%", ""]
    assert found["uniques"] == [
        "By age, 2 of 9 rows were unique in the original, as it came; in the release, 1 is.",
        (
            "People whose value is disclosed, because all in their group share it: 4 for ill; of 9 "
            "rows."
        ),
    ]
    assert found["others"] == ["1 row of the original was left out."]


@pytest.mark.parametrize(
    ("control", "ends", "said"),
    [
        (0.1, (0.08, 0.12), "succeeds more often for people in the table, by 20 of 100"),
        (0.29, (0.2, 0.38), "No difference between people in the table"),
        (0.6, (0.55, 0.65), "succeeds less often for people in the table"),
    ],
)
def test_a_gain_is_told_against_people_not_in_the_table(control, ends, said):
    low, high = ends

    told = officer.gain(
        row("inference", 0.3, low=0.26, high=0.34, control=control, control_low=low,
            control_high=high, baseline=0.0)
    )  # fmt: skip

    assert said in told


def test_without_them_it_is_told_against_a_blind_guess_and_what_is_not_known_is_said():
    assert "20 of 100 tries more than a blind guess" in officer.gain(
        row("inference", 0.3, baseline=0.1)
    )
    assert "is not known" in officer.gain(row("inference", 0.3, baseline=0.1))
    assert "no more often than a blind guess" in officer.gain(row("inference", 0.1, baseline=0.3))
    assert officer.gain(row("inference", 0.3)) == ""


def test_what_did_not_change_is_one_line_and_long_lists_are_cut():
    rows = [row("mean", 0.1 * i, part="utility", subject=f"c{i}") for i in range(9)]
    rows.append(row("of another version", 1.0, part="utility"))

    single, further = officer.utility({"figures": rows})

    assert single["same"] == ["c0 (mean)"]
    assert len(single["rows"]) == officer.LISTED
    assert single["more"] == 8 - officer.LISTED
    assert further["rows"][0]["metric"] == "of another version"


def test_losses_by_group_are_a_table_whatever_the_groups_are_called():
    rows = [
        row("loss by group", 0.3, subject="a: b: income", sentence="Worst."),
        row("loss by group", 0.1, subject="c: income", sentence="Best."),
        row("loss by group", 0.0, subject="c: tax: income"),
    ]

    found = officer.groups({"figures": rows}, ["income", "tax: income"])

    assert found["names"] == ["a: b", "c"]
    assert [line["name"] for line in found["lines"]] == ["income"]
    assert [cell["text"] for cell in found["lines"][0]["cells"]] == ["30%", "10%"]
    assert [cell["worst"] for cell in found["lines"][0]["cells"]] == [True, False]
    assert found["worst"] == ["Worst.", "Best."]
    assert found["same"] == ["tax: income"]
    assert officer.groups({"figures": []}, ["income"]) is None


@pytest.mark.parametrize(
    ("loss", "measure", "said"),
    [
        (0.144, "share of rows whose category changed", "14.4% of the rows have another 'x'."),
        (0.5, "share of rows whose cell was generalised", "'x' is coarser in 50% of the rows."),
        (0.04, "SSE / SST", "The squared error of 'x' is 4% of its variance."),
        (1150.0, "SSE / SST", "The squared error of 'x' is 1,150 times its variance"),
        (
            0.02,
            "total variation",
            "The share of any set of values of 'x' is off by at most 2 percentage points.",
        ),
        (0.5, "of another version", "'x' lost 0.5 (of another version)."),
    ],
)
def test_a_loss_is_said_in_words(loss, measure, said):
    (scale,) = officer.losses({"columns": [{"name": "x", "loss": loss, "metric": measure}]})

    (found,) = scale["columns"]
    assert found["words"].startswith(said)


def test_every_measure_of_a_loss_has_a_scale_and_a_meaning_of_its_own():
    """A generalised age is 1 on a share of rows; the mean alone is 1 on SSE / SST."""
    columns = [
        {"name": "Alter", "loss": 1.0, "metric": "share of rows whose cell was generalised"},
        {"name": "Einkommen", "loss": 8.0, "metric": "SSE / SST"},
        {"name": "Kinder", "loss": None, "metric": "SSE / SST", "reason": "it has no spread"},
        {"name": "Ort", "loss": 0.25, "metric": "share of rows whose category changed"},
    ]

    found = {scale["metric"]: scale for scale in officer.losses({"columns": columns})}

    generalised = found["share of rows whose cell was generalised"]
    assert "mean" not in generalised["meaning"]
    (age,) = generalised["columns"]
    assert age["text"] == "100%"
    (none, income) = found["SSE / SST"]["columns"]
    assert "publishing only the mean" in found["SSE / SST"]["meaning"]
    assert income["text"] == "8"
    assert none["text"] == "none"
    assert none["words"] == "The loss of 'Kinder' cannot be computed: it has no spread."


def test_a_requirement_stands_beside_what_meets_it():
    claim, other = (
        ClaimRecord.model_construct(
            guarantee={"name": "l-diversity", "columns": [name]}, status=Status.PROVED
        )
        for name in ("ill", "tax")
    )
    manifest = Manifest.model_construct(
        policy={"require": {"l-diversity": [{"l": 2, "column": ["ill"]}], "k-anonymity": 5}},
        claims=[claim, other],
        checks=[],
    )

    diversity, anonymity = officer.requirements(manifest)

    assert diversity["stated"] == "l = 2 of ill"
    assert diversity["claims"] == [claim]
    assert (anonymity["stated"], anonymity["claims"]) == ("5", [])


def candidate(label, standing, risk, error, **parameters):
    ends = [{"value": v, "low": v, "high": v} for v in (risk, error)]
    return {"label": label, "method": label, "parameters": parameters, "standing": standing,
            "risk": ends[0], "error": ends[1]}  # fmt: skip


COMPARISON = {
    "recommendation": "Take mdav.",
    "axes": {"risk": "Risk.", "error": "Error."},
    "candidates": [
        candidate("laplace", "beaten", -0.1, 0.9, epsilon=1),
        candidate("mdav", "frontier", 0.2, 0.1, k=5),
        {**candidate("failed", None, 0, 0), "risk": None, "error": None},
        candidate("endless", "beaten", 0.1, float("inf")),
    ],
    "baselines": [candidate("raw", None, 1.0, 0.0)],
}


def test_a_comparison_is_drawn_and_listed_and_this_release_is_marked():
    manifest = Manifest.model_construct(method="mdav", parameters={"k": 5, "aggregate": "mean"})

    found = officer.frontier(COMPARISON, manifest)

    assert [row["label"] for row in found["rows"]] == ["mdav", "laplace", "raw"]
    assert [row["this"] for row in found["rows"]] == [True, False, False]
    assert found["drawn"].count("p-ring") == 1
    other = officer.frontier(COMPARISON, manifest.model_copy(update={"parameters": {"k": 6}}))
    assert not other["rows"][0]["this"]
    assert "p-ring" not in other["drawn"]
    assert officer.frontier(None, manifest) is None
