"""The glossary has every word of the code, each in one sentence, and no word that is not there."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.main import get_command

import shoal
from shoal import core, sample
from shoal.cli.commands import app
from shoal.core import Neighbours, Status
from shoal.evaluation.disclosure_risk import ATTACKS_BY_NAME
from shoal.evaluation.results import Part
from shoal.evaluation.utility import METRICS
from shoal.methods import REGISTRY
from shoal.methods.papers import PAPERS
from shoal.policy.load import json_schema

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
PAGES = (REFERENCE / "glossary.md", REFERENCE / "glossary-keys.md")
FIELD = "Words of the field"
"""The only part whose words the code need not have."""
SCHEMA = json_schema()
KEYS = {
    "Policy: top level": SCHEMA,
    **{
        f"Policy: `{heading}`": SCHEMA["$defs"][name]
        for heading, name in {
            "[columns]": "ColumnSpec",
            "[protect]": "ProtectSpec",
            "[require]": "RequireSpec",
            "l-diversity": "DiversitySpec",
            "t-closeness": "ClosenessSpec",
            "stochastic-t-closeness": "StochasticSpec",
            "[constraints]": "ConstraintsSpec",
            "[release]": "ReleaseSpec",
            "[review]": "ReviewSpec",
            "[reading]": "ReadingSpec",
            "[writing]": "WritingSpec",
            "[budget]": "BudgetSpec",
            "[context]": "ContextSpec",
            "[evaluate]": "EvaluateSpec",
        }.items()
    },
}
CHOICES = {
    "Release forms": ["ReleaseForm"],
    "Audiences": ["Audience"],
    "Roles": ["Role"],
    "Kinds": ["Kind"],
    "Other choices": ["Transform", "Diversity", "Distance", "Extract", "BoxKernel", "Discover"],
}


class Entry(NamedTuple):
    part: str
    word: str
    sentence: str
    aliases: tuple[str, ...]


def entries():
    """The rows of all tables below their headings; code marks are taken off the words."""
    found, part = [], ""
    for line in "\n".join(page.read_text("utf-8") for page in PAGES).splitlines():
        if line.startswith("## "):
            part = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith(("| word |", "| ---")):
            word, sentence, aliases = (cell.strip() for cell in line[1:-1].split(" |"))
            names = tuple(name.strip() for name in aliases.split(",") if name.strip())
            found.append(Entry(part, word.strip("`"), sentence, names))
    return found


ENTRIES = entries()


def words(part):
    return [entry.word for entry in ENTRIES if entry.part == part]


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """Figures of every metric: an evaluation that leaves nothing out."""
    queries = tmp_path_factory.mktemp("queries") / "queries.toml"
    queries.write_text("[[query]]\nage = [20, 40]\n", encoding="utf-8")
    number = {"role": "confidential", "kind": "numeric"}
    policy = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "sex": {"role": "quasi-identifier", "kind": "nominal"},
            "hours": number,
            "income": number,
            "condition": {"role": "confidential", "kind": "nominal"},
        },
        "protect": {"method": "mdav", "k": 5},
        "evaluate": {
            "rules": ["hours <= 100"],
            "groups": "sex",
            "learn": "income",
            "regression": "income ~ age + hours",
            "queries": str(queries),
        },
    }
    people = sample.people(120, seed=1).select(list(policy["columns"]))
    inside = people.head(80)
    release = shoal.protect(inside, policy, keep_order=True)
    found = shoal.evaluate(inside, release, policy, control=people.tail(40))
    assert not found.skipped
    return found.figures


def test_every_noun_of_core_has_an_entry_and_no_other():
    nouns = {name for name in core.__all__ if name[0].isupper() and not name.isupper()}

    assert sorted(words("Nouns of the code")) == sorted(nouns)


@pytest.mark.parametrize("part", KEYS)
def test_every_policy_key_has_an_entry_and_no_other(part):
    assert sorted(words(part)) == sorted(KEYS[part]["properties"])


def test_every_table_of_a_policy_has_a_part():
    tables = {name for name, shape in SCHEMA["$defs"].items() if "properties" in shape}

    assert len(KEYS) == len(tables) + 1


@pytest.mark.parametrize("part", CHOICES)
def test_every_choice_of_a_policy_has_an_entry_and_no_other(part):
    known = [value for name in CHOICES[part] for value in SCHEMA["$defs"][name]["enum"]]

    assert sorted(words(part)) == sorted(known)


def test_every_enumeration_of_a_policy_has_a_part():
    lists = {name for name, shape in SCHEMA["$defs"].items() if "enum" in shape}

    assert {name for names in CHOICES.values() for name in names} == lists


def test_every_status_and_every_relation_of_neighbours_has_an_entry_and_no_other():
    assert words("Statuses of a claim") == list(Status)
    assert words("Neighbours") == list(Neighbours)


@pytest.mark.parametrize(
    ("part", "heading", "chosen"),
    [
        (Part.UTILITY, "Metrics of utility", METRICS),
        (Part.RISK, "Metrics of disclosure risk", ATTACKS_BY_NAME),
    ],
)
def test_every_metric_has_an_entry_and_no_other(figures, part, heading, chosen):
    known = {figure.metric for figure in figures if figure.part is part} | set(chosen)

    assert sorted(words(heading)) == sorted(known)


def test_every_entry_belongs_to_a_part_that_is_compared_with_the_code():
    compared = {FIELD, "Nouns of the code", "Statuses of a claim", "Neighbours", *KEYS, *CHOICES}
    compared |= {"Names of the five papers", "Metrics of utility", "Metrics of disclosure risk"}

    assert {entry.part for entry in ENTRIES} == compared


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.part}-{entry.word}")
def test_an_entry_is_one_sentence(entry):
    assert re.fullmatch(r"[A-Z0-9'].*[^.]\.", entry.sentence), entry.sentence
    assert len(re.findall(r"[.!?](?=\s|$)", entry.sentence)) == 1, entry.sentence
    assert ";" not in entry.sentence
    assert entry.word not in entry.aliases


def commands():
    """Every command of the command line, as it is typed."""
    group = get_command(app)
    for name, command in group.commands.items():
        inner = getattr(command, "commands", {})
        yield from [f"shoal {name}"] + [f"shoal {name} {part}" for part in inner]


def test_what_a_sentence_names_in_code_marks_is_there():
    known = {entry.word for entry in ENTRIES if entry.part != FIELD} | {*REGISTRY, *commands()}

    named = {name for entry in ENTRIES for name in re.findall(r"`([^`]+)`", entry.sentence)}

    assert not named - known


def test_the_names_of_the_papers_are_those_that_the_code_understands():
    listed = {entry.word for entry in ENTRIES if entry.part == "Names of the five papers"}

    names = {name for paper in PAPERS.values() for known in paper.names.values() for name in known}
    assert listed == names


def test_no_part_has_a_word_twice():
    pairs = [(entry.part, entry.word) for entry in ENTRIES]

    assert len(pairs) == len(set(pairs))
