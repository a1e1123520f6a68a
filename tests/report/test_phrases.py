import pytest

from shoal.core import ReleaseForm, Status
from shoal.core.manifest import Manifest
from shoal.report import phrases

K = {"name": "k-anonymity", "k": 5, "columns": ["age", "sex"]}
KEYS = {"columns": ["ill"], "keys": ["age", "sex"]}
EPSILON = {"name": "differential-privacy", "epsilon": "1/2", "neighbours": "change-one",
           "protects": ["age"], "invariants": ["the number of rows"],
           "privacy_unit": "row"}  # fmt: skip
DIVERSE = {"name": "l-diversity", "l": 3, "c": None, "kind": "distinct", **KEYS}
CLOSE = {"name": "t-closeness", "t": 0.2, "distance": "equal", **KEYS}


def manifest(**changes):
    facts = {
        "method": "mdav",
        "release_form": "linked-shuffled",
        "protected_columns": ["age"],
        "columns": {"age": "Float64", "region": "String", "weight": "Float64"},
        "policy": {
            "columns": {
                "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110_000]},
                "region": {"role": "other", "kind": "nominal", "hierarchy": "r.csv"},
                "weight": {"role": "other", "kind": "numeric", "sampling_weight": True},
            }
        },
        "hierarchies": {"region": [["Lyon", "South", "all"], ["Lille", "North", "all"]]},
        "privacy_losses": [],
        **changes,
    }
    form = ReleaseForm(facts.pop("release_form"))
    return Manifest.model_construct(release_form=form, **facts)


@pytest.mark.parametrize(
    ("guarantee", "said"),
    [
        (K, "cannot narrow that person down to fewer than 5 people"),
        (DIVERSE, "at least 3 different values of ill"),
        (DIVERSE | {"kind": "entropy"}, "as uncertain as 3 equally frequent values"),
        (DIVERSE | {"kind": "recursive", "c": 2}, "rarer than 2 times all values from the 3-th"),
        (DIVERSE | {"kind": "frequency"}, "no value of ill has a share above 1 / 3"),
        (CLOSE, "the distance is at most 0.2"),
        (CLOSE | {"distance": "ratio", "t": 2}, "by more than a factor of 2"),
        ({"name": "stochastic-t-closeness", "t": 1.5, **KEYS}, "by a factor of at most 1.5"),
        (EPSILON, "more than 1.65 times as likely"),
        (EPSILON | {"neighbours": "add-remove"}, "whether one row is in the table or not"),
        (EPSILON | {"privacy_unit": "row"}, "any guess about a person who has one row change"),
        (
            EPSILON | {"neighbours": "add-remove", "privacy_unit": "person"},
            "whether one person is in the table or not",
        ),
        (EPSILON | {"epsilon": 10}, "hides little"),
        (EPSILON | {"epsilon": 1000}, "an astronomical number"),
    ],
)
def test_a_guarantee_is_said_in_plain_words_and_has_a_title(guarantee, said):
    assert said in phrases.meaning(guarantee)
    assert phrases.title(guarantee).startswith(
        guarantee["name"].replace("stochastic-", "stochastic ")
    )


@pytest.mark.parametrize(
    ("changes", "do", "dont"),
    [
        ({}, "Weight rows by 'weight'", "variances tend to be too small"),
        ({"release_form": "synthetic"}, "sample of a model", "no row is one"),
        ({"release_form": "column-shuffled"}, "each column by itself", "Do not cross"),
        ({"release_form": "tree"}, "counts of the boxes", "a box as a person"),
        ({"columns": {"age": "String"}}, "Treat age as ranges", "replace a range by its middle"),
        ({"privacy_losses": [{}]}, "Allow for noise", "noise inflates variances"),
        ({"protected_columns": []}, "many rows", "Do not take a row for the truth"),
        ({"method": "full-domain"}, "many rows", "age may have been changed"),
        ({"method": "local-suppression"}, "many rows", "age for missing at random"),
    ],
)
def test_the_advice_follows_from_form_and_method(changes, do, dont):
    uses, misuses = phrases.uses(manifest(**changes))

    assert any(do in text for text in uses)
    assert any(dont in text for text in misuses)
    assert any("Do not try to find out who" in text for text in misuses)


def test_every_release_form_is_explained():
    assert set(phrases.FORM_WORDS) == {form.value for form in ReleaseForm}
    assert set(phrases.STATUS_WORDS) == {status.value for status in Status}


def test_the_codebook_has_limits_values_and_levels_and_only_what_is_declared():
    age, region, weight = phrases.codebook(manifest())

    assert age["facts"] == ["from 0 to 110,000"]
    assert region["values"] == ["Lyon", "Lille"]
    assert region["levels"] == [["South", "North"], ["all"]]
    assert weight["facts"] == ["sampling weight"]
    assert [one["changed"][:3] for one in (age, region, weight)] == ["yes", "no,", "no,"]


def test_the_codebook_has_the_labels_that_the_policy_states():
    stated = manifest()
    stated.policy["columns"]["region"] |= {"label": "Town", "value_labels": {"Lyon": "in Rhône"}}

    region = phrases.codebook(stated)[1]

    assert region["label"] == "Town"
    assert region["values"] == ["Lyon = in Rhône", "Lille"]


def test_the_codebook_says_by_the_policy_alone_where_a_row_may_be_repaired():
    rules = {"rules": ["`region` = 'weight' implies age >= 1"], "repair": True}

    def repaired(stated):
        policy = manifest().policy | {"constraints": stated}
        return sorted(phrases.repairable(manifest(policy=policy)))

    assert repaired(rules) == ["age", "region"]
    assert repaired({**rules, "repair": False}) == []
    assert repaired({"observed": True, "repair": True}) == ["age", "region", "weight"]


def test_no_page_calls_a_table_what_only_a_person_can():
    text = " ".join(
        [
            *phrases.JUDGEMENT,
            *phrases.LIMITS,
            *phrases.GLOSSARY.values(),
            *phrases.FORM_WORDS.values(),
        ]
    )

    for word in ("anonymous", "safe", "compliant"):
        assert word not in text.lower()
