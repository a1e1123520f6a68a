"""The documentation is true: its code runs, and nothing of the product is left out of it."""

import ast
import contextlib
import doctest
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from decimal import Decimal
from enum import StrEnum
from inspect import isclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
import yaml
from pydantic import BaseModel
from tests.engine.conftest import JAVA
from typer.testing import CliRunner

import shoal
from shoal import errors, policy
from shoal import io as files
from shoal import partition as partitions
from shoal import sklearn as estimators
from shoal.cli.commands import app
from shoal.core import Audience, Kind, Neighbours, ReleaseForm, Role, Status, Transform
from shoal.evaluation.comparison import grid
from shoal.hazmat.fakes import RecordingNoise
from shoal.methods import REGISTRY
from shoal.methods.grouping.recode import Aggregate
from shoal.methods.insensitive import RecordOrder
from shoal.methods.mdav_laplace import GroupingAlgorithm, GroupingScale
from shoal.methods.noise.noisy_microaggregation import NominalOrder, Origin, Split
from shoal.methods.stable_laplace import DeltaReading
from shoal.policy import sections, spec
from shoal.publish import protect_file

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = DOCS.parent / "site"
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES = [*FRONT, *sorted(DOCS.rglob("*.md"))]

MAKE = {"make demo", "make test", "make setup-dev"}
"""Commands of the documentation that a test cannot run: they would build and test again."""


class Block(NamedTuple):
    language: str
    title: str
    text: str
    line: int
    end: int


def blocks_of(page):
    """Every fenced block of a page, with the lines of its two fences."""
    found, opened, body = [], None, []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if opened and line == "```":
            language, title, start = opened
            found.append(Block(language, title, "\n".join(body), start, number))
            opened, body = None, []
        elif opened:
            body.append(line)
        elif re.match(r"\s*(```|~~~)", line):
            fence = re.fullmatch(r'```(\w+|{\w+(?:-\w+)?})(?: title="([\w.-]+)")?', line)
            assert fence, f"{page.name}:{number}: expected ```language, found {line!r}."
            opened = (fence[1], fence[2] or "", number)
    assert not opened, f"{page.name}: a code block is never closed."
    return found


def matches(want, got):
    """Whether an output is as shown; `...` stands for anything."""
    return doctest.OutputChecker().check_output(want + "\n", got, doctest.ELLIPSIS)


def steps_of(block):
    """Commands of a console block, each with the output shown below it."""
    lines = block.text.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], "a console block starts with a line '$ command'."
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start].removeprefix("$ "), "\n".join(lines[start + 1 : end])


def inside(arguments, folder):
    """Exit code and output of a command in this process, which has loaded what commands load."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def alone(arguments, folder):
    """The same in a process of its own: Java takes its options from the environment."""
    done = subprocess.run(
        [sys.executable, "-m", "shoal", *arguments],
        cwd=folder,
        env={**os.environ, **JAVA},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout


class Reader:
    """Follows a page in a folder of its own, as a reader would."""

    def __init__(self, page, folder):
        self.page, self.folder = page, folder
        self.names, self.printed, self.code = {"__name__": "__main__"}, None, 0

    def read(self, block):
        place = f"{self.page.name}:{block.line}"
        language = "directive" if block.language[0] == "{" else block.language
        action = getattr(self, f"_{language}", None)
        assert action, f"{place}: nobody runs blocks of '{block.language}'."
        if block.title:
            (self.folder / block.title).write_text(block.text + "\n", encoding="utf-8")
        printed, self.printed = self.printed, None
        action(block, place, printed)

    def _python(self, block, place, _):
        if block.title:  # a program that a command of the page runs
            compile(block.text, place, "exec")
            return
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.text, place, "exec"), self.names)  # noqa: S102 (our own pages)
        self.printed = out.getvalue()

    def _text(self, block, place, printed):
        assert printed is not None, f"{place}: a text block shows what Python printed just before."
        assert matches(block.text, printed), f"{place}: shown\n{block.text}\nprinted\n{printed}"

    def _console(self, block, place, _):
        for command, shown in steps_of(block):
            if command in MAKE:
                target = command.removeprefix("make ")
                assert f"\n{target}:" in (ROOT / "Makefile").read_text("utf-8"), place
            elif command == "echo $?":
                assert shown == str(self.code), f"{place}: exit code {self.code}, shown {shown}"
                self.code = 0
            else:
                self._shoal(command, shown, place)
        assert self.code == 0, f"{place}: the last command exits with {self.code}; show 'echo $?'."

    def _shoal(self, command, shown, place):
        assert self.code == 0, f"{place}: exit code {self.code} is not shown; add 'echo $?'."
        program, *arguments = shlex.split(command)
        assert program == "shoal", f"{place}: nobody runs '{command}'."
        self.code, printed = (alone if "spark" in arguments else inside)(arguments, self.folder)
        printed = re.sub(r"(?m)^shoal: Compiling .*\n", "", printed)  # once on a machine
        if shown:
            assert matches(shown, printed), (
                f"{place}: $ {command}\nshown\n{shown}\nprinted\n{printed}"
            )

    _sh = _console

    def _bash(self, block, place, _):
        """Commands for a cluster, which nobody runs here."""
        assert shlex.split(block.text), place

    def _r(self, block, place, _printed):
        """Programs for R run where R is; those for reticulate do not, as their page says."""
        if "library(reticulate)" in block.text:
            assert "was not run" in self.page.read_text("utf-8"), place
        elif shutil.which("Rscript"):
            (self.folder / "block.R").write_text(block.text, encoding="utf-8")
            found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["Rscript", "block.R"],
                cwd=self.folder,
                env={**os.environ, "PATH": found},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{place}: {done.stderr}"

    def _toml(self, block, place, _):
        content = tomllib.loads(block.text, parse_float=Decimal)
        if "candidate" in content:
            assert grid.of(content), place
            return
        if "version" not in content:  # a part of a policy: the rest is filled in
            columns = {"x": {"role": "quasi-identifier", "kind": "numeric"}}
            protect = {"method": "mdav", "k": 2}
            content = {"version": 1, "columns": columns, "protect": protect} | content
        with contextlib.chdir(self.folder):
            loaded = shoal.load_policy(content)
        assert loaded.method in REGISTRY, place

    def _json(self, block, _place, _printed):
        json.loads(block.text)

    def _directive(self, block, place, _):
        """Sphinx runs these when it builds the site; tests here only wait for that."""

    def _csv(self, block, place, _):
        assert block.title, f"{place}: a CSV block is a file; give it a title."


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_code_block_does_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = Reader(page, tmp_path)

    for block in blocks_of(page):
        reader.read(block)


def test_a_page_that_shows_another_output_is_caught(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('```python\nprint("one")\n```\n\n```text\ntwo\n```\n', encoding="utf-8")
    reader = Reader(page, tmp_path)
    python, text = blocks_of(page)

    reader.read(python)

    with pytest.raises(AssertionError, match="shown"):
        reader.read(text)


def test_a_page_that_hides_a_failing_command_is_caught(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ shoal init none.csv\n```\n", encoding="utf-8")

    with pytest.raises(AssertionError, match="exits with 2"):
        Reader(page, tmp_path).read(*blocks_of(page))


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R")
def test_a_page_whose_program_for_r_fails_is_caught(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('```r\nstop("no such column")\n```\n')

    with pytest.raises(AssertionError, match="no such column"):
        Reader(page, tmp_path).read(blocks_of(page)[0])


def test_the_readme_shows_an_example_of_five_lines_and_its_output_before_line_40():
    python, text = blocks_of(ROOT / "README.md")[:2]

    assert (python.language, text.language) == ("python", "text")
    assert len([line for line in python.text.splitlines() if line]) == 5
    assert text.end < 40


def generator():
    """The program that writes pages from the code."""
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate


GENERATED = ("reference/commands.md", "reference/claims.md", "tutorials/python.ipynb")
"""Pages without a word by hand."""
STALE = "docs/{} is stale; write it again: .venv/bin/python docs/generate.py"


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_that_of_the_code(name):
    pages = generator().PAGES

    assert tuple(pages) == GENERATED
    assert pages[name]() == (DOCS / name).read_text("utf-8"), STALE.format(name)


def test_the_generated_parts_of_pages_are_those_of_the_code():
    generate = generator()

    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        assert generate.filled(text) == text, STALE.format(page.relative_to(DOCS))
        assert len(generate.PART.findall(text)) == text.count("<!-- generated: ")


def test_every_generated_picture_is_that_of_the_code():
    pictures = generator().PICTURES

    there = {str(path.relative_to(DOCS)) for path in (DOCS / "reference/methods").rglob("*.svg")}

    assert there == {name for name in pictures if name.startswith("reference/methods/")}
    for name, draw in pictures.items():
        assert draw() == (DOCS / name).read_text("utf-8"), STALE.format(name)


SECTIONS = ("tutorials", "how-to", "reference", "explanation")
"""Sections of the manual; research and papers are no part of it."""
LONGEST = 3000
"""Words of a page, its generated parts included."""
LONGEST_METHOD = 900
LONGEST_OF_ALL = {"explanation/proofs.md": 6000}
"""The page with every proof is as long as they are."""


def words(text):
    """How many words a text has: prose and tables, formulas in them too.

    A word is what stands between blanks and has a letter or a digit, so bars and rules of tables
    are none. Fenced code blocks, comments and the targets of links are not counted.
    """
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    plain = re.sub(r"<!--.*?-->", "", plain, flags=re.DOTALL)
    return sum(bool(re.search(r"\w", word)) for word in re.sub(r"\]\([^)]*\)", "]", plain).split())


def manual():
    """The pages of the manual, which research and papers are no part of."""
    return [page for section in SECTIONS for page in sorted((DOCS / section).rglob("*.md"))]


def test_words_are_counted_outside_code_comments_links_and_rules():
    text = (
        "# Two words\n\n| a | [b](c d) |\n|---|---|\n\n```toml\nnot = 1\n```\n<!-- nor this -->\n"
    )

    assert words(text) == 4


@pytest.mark.parametrize("page", manual(), ids=lambda page: str(page.relative_to(DOCS)))
def test_no_page_is_longer_than_somebody_reads(page):
    whole = str(page.relative_to(DOCS)) in GENERATED
    count = 0 if whole else words(page.read_text("utf-8"))

    longest = LONGEST_OF_ALL.get(str(page.relative_to(DOCS)), LONGEST)
    assert count <= longest, f"{count:,} words"


def test_the_notebook_has_the_code_and_the_outputs_of_its_page_in_at_most_15_cells():
    page = [block.text for block in blocks_of(DOCS / "tutorials/python.md")]
    notebook = json.loads((DOCS / "tutorials/python.ipynb").read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]

    texts = []
    for cell in code:
        printed = [shown for shown in cell["outputs"] if shown["output_type"] == "stream"]
        texts += ["".join(cell["source"]), *("".join(shown["text"]).strip() for shown in printed)]

    assert texts == page  # a test above runs them, in this order and in one namespace
    assert len(notebook["cells"]) <= 15


def claim_rows():
    """The table of all claims, a dictionary for each of its lines."""
    lines = (DOCS / "reference/claims.md").read_text("utf-8").splitlines()
    head, _, *body = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
        if line.startswith("|")
    ]
    return [dict(zip(head, cells, strict=True)) for cells in body]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_the_table_of_claims_has_every_method_in_every_form_and_case(name):
    rows = [row for row in claim_rows() if row["method"].split(",")[0] == f"`{name}`"]
    neighbours = {Neighbours.CHANGE_ONE} if REGISTRY[name].noisy else {"-"}
    if "neighbours" in REGISTRY[name].parameters.model_fields:
        neighbours = set(Neighbours)

    forms = {form for row in rows for form in row["release form"].split(", ")}
    limits = {case for row in rows for case in row["limits"].split(", ")}

    assert forms == {f"`{form}`" for form in REGISTRY[name].forms.offered}
    assert "any" in limits or limits == {"public", "from-data", "observed"}
    shown = {row["neighbours"] for row in rows}
    assert shown == neighbours or shown == neighbours | {"any"}
    assert all(row["status"] and row["reason, in short"] for row in rows)


ADD_REMOVE = {"`dp-kdtree`", "`dp-quadtree`", "`privtree`", "`copula`", "`maxent`", "`auto`"}
"""Methods with a proof for a record that comes or goes."""


def test_the_table_of_claims_proves_no_epsilon_from_the_data_or_unduly_for_added_records():
    proved = [row for row in claim_rows() if row["status"] == "*proved*"]
    private = [row for row in proved if "differential" in row["claim"]]

    assert {row["limits"] for row in private} == {"public"}
    added = {row["method"] for row in private if row["neighbours"] != "change-one"}
    assert added == ADD_REMOVE
    assert {row["scale"] for row in private} <= {"public", "-"}


def section(page, heading):
    """The text below a heading, up to the next one of its level; empty without it."""
    level = heading.split()[0]
    text = (DOCS / page).read_text("utf-8")
    after = re.split(rf"^{re.escape(heading)}$", text, maxsplit=1, flags=re.MULTILINE)
    return re.split(rf"^{level} ", after[1], flags=re.MULTILINE)[0] if len(after) == 2 else ""


THEOREM = re.compile(r"\| \[([^\]]+)\]\(#([\w-]+)\) \| `([\w/]+\.py)` \| `([\w/]+\.py)`")


def test_the_table_of_proofs_leads_to_theorems_code_and_tests_and_code_leads_back():
    text = (DOCS / "explanation/proofs.md").read_text("utf-8")
    rows = THEOREM.findall(text)
    headings = re.findall(r"^##+ (.+)$", text, flags=re.MULTILINE)

    assert len(rows) == len(re.findall(r"^\| .*_?\.py`", text, flags=re.MULTILINE)) >= 20
    for title, anchor, place, test in rows:
        assert title in headings
        assert anchor == re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        code = (ROOT / "src/shoal" / place).read_text("utf-8")
        assert f'docs/explanation/proofs.md, "{title}"' in code, f"{place} does not name {title}."
        assert (ROOT / "tests" / test).is_file()


def rows_of(text):
    """What the first cells of a text's tables name in code marks."""
    return set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))


SECTIONS = {
    spec.PolicySpec: "## Top level",
    spec.ColumnSpec: "## `[columns]`",
    spec.ProtectSpec: "## `[protect]`",
    spec.RequireSpec: "## `[require]`",
    spec.ConstraintsSpec: "## `[constraints]`",
    spec.ReleaseSpec: "## `[release]`",
    spec.ReviewSpec: "## `[review]`",
    spec.ReadingSpec: "## `[reading]`",
    spec.WritingSpec: "## `[writing]`",
    sections.DiversitySpec: "### `l-diversity`",
    sections.ClosenessSpec: "### `t-closeness`",
    sections.StochasticSpec: "### `stochastic-t-closeness`",
    sections.BudgetSpec: "## `[budget]`",
    spec.ContextSpec: "## `[context]`",
    spec.EvaluateSpec: "## `[evaluate]`",
}


def test_every_section_of_a_policy_has_a_place_in_the_documentation():
    models = {
        thing
        for name, thing in {**vars(spec), **vars(sections)}.items()
        if isclass(thing) and issubclass(thing, BaseModel) and name.endswith("Spec")
    } - {spec._Spec}

    assert models == set(SECTIONS), (
        "Give the new model a section of docs/reference/policy.md, above."
    )


@pytest.mark.parametrize("model", SECTIONS, ids=lambda model: model.__name__)
def test_every_policy_key_is_documented(model):
    keys = {field.alias or name for name, field in model.model_fields.items()}

    missing = keys - rows_of(section("reference/policy.md", SECTIONS[model]))

    assert not missing, (
        f"docs/reference/policy.md, {SECTIONS[model]}: no table row for {sorted(missing)}."
    )


@pytest.mark.parametrize(
    ("choices", "page"),
    [
        (Role, "reference/policy.md"),
        (Kind, "reference/policy.md"),
        (Transform, "reference/policy.md"),
        (ReleaseForm, "reference/policy.md"),
        (Audience, "reference/policy.md"),
        (Aggregate, "reference/methods/index.md"),
        (Neighbours, "reference/methods/laplace.md"),
        (Origin, "reference/methods/stable-laplace.md"),
        (Split, "reference/methods/ir-mdav-laplace.md"),
        (GroupingAlgorithm, "reference/methods/mdav-laplace.md"),
        (GroupingScale, "reference/methods/mdav-laplace.md"),
        (RecordOrder, "reference/methods/insensitive.md"),
        (NominalOrder, "reference/methods/ir-laplace.md"),
        (DeltaReading, "reference/methods/stable-laplace.md"),
        (Status, "reference/manifest.md"),
    ],
)
def test_every_choice_is_documented(choices: type[StrEnum], page):
    text = (DOCS / page).read_text("utf-8")

    missing = [choice.value for choice in choices if f"`{choice.value}`" not in text]

    assert not missing, f"docs/{page} does not mention {missing} of {choices.__name__}."


def method_page(name):
    return (DOCS / f"reference/methods/{name}.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_method_has_a_page_of_at_most_900_words(name):
    text = method_page(name)
    parts = (
        "## How it works",
        "## Parameters",
        "## Claims",
        "**Not promised.**",
        "**Release forms.**",
    )

    assert re.match(rf"# `{name}`\n\n[^<#\n]+\.\n\n<!-- generated: example {name} -->\n", text)
    assert f"<!-- generated: method {name} -->" in text
    missing = [part for part in (*parts, "**Reference.**") if part not in text]
    assert not missing, f"docs/reference/methods/{name}.md has no {missing}."
    assert words(text) <= LONGEST_METHOD, f"{words(text)} words"


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_method_page_says_what_a_plan_claims_in_every_form(name):
    claims = method_page(name).partition("## Claims")[2]

    lines = re.findall(r"^- \*(\w+)\* \(([^)]+)", claims, flags=re.MULTILINE)

    assert {status for status, _ in lines} <= set(Status)
    named = {form for _, where in lines for form in re.findall(r"`([\w-]+)`", where)}
    assert {form.value for form in REGISTRY[name].forms.offered} <= named


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_parameter_of_a_method_is_documented_and_no_other(name):
    written = rows_of(method_page(name))

    wanted = set(REGISTRY[name].parameters.model_fields)

    assert written == wanted, (
        f"docs/reference/methods/{name}.md: lacks {sorted(wanted - written)}, "
        f"has {sorted(written - wanted)} that the method does not take."
    )


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_choice_of_a_parameter_is_on_the_page_of_the_method(name):
    schema = REGISTRY[name].parameters.model_json_schema()
    text = method_page(name)

    choices = {one for shape in schema.get("$defs", {}).values() for one in shape["enum"]}

    assert not {one for one in choices if f"`{one}`" not in text}


def test_the_methods_are_listed_once_and_no_other_has_a_page():
    index = DOCS / "reference/methods/index.md"
    (tree,) = [block for block in blocks_of(index) if block.language == "{toctree}"]
    table = index.read_text("utf-8").partition("{toctree}")[0]

    pages = {path.stem for path in index.parent.glob("*.md")} - {"index"}
    linked = re.findall(r"\[`([\w-]+)`\]\(\1\.md\)", table)

    assert pages == set(REGISTRY)
    assert sorted(linked) == sorted(REGISTRY)
    assert sorted(tree.text.split()[1:]) == sorted(REGISTRY)


def test_every_exit_code_is_documented():
    raised = [thing for thing in vars(errors).values() if isclass(thing)]
    codes = {
        "0",
        "130",
        "141",
        *(str(e.exit_code) for e in raised if issubclass(e, errors.ShoalError)),
    }

    assert rows_of((DOCS / "reference/exit-codes.md").read_text("utf-8")) == codes


def test_every_public_name_is_documented():
    text = (DOCS / "tutorials/python.md").read_text("utf-8")

    missing = [name for name in shoal.__all__ if f"shoal.{name}" not in text]

    assert not missing, f"docs/tutorials/python.md does not mention {missing}."


def test_every_partition_function_and_estimator_is_documented():
    text = (DOCS / "how-to/algorithms.md").read_text("utf-8")
    public = {
        name
        for name, thing in vars(estimators).items()
        if isclass(thing) and thing.__module__ == estimators.__name__ and name[0] != "_"
    }

    missing = [name for name in partitions.__all__ if f"`{name}" not in text]
    missing += sorted(name for name in public if f"`{name}`" not in text)

    assert not missing, f"docs/how-to/algorithms.md does not mention {missing}."


def test_every_field_of_an_epsilon_release_is_documented(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,x\n2,y\n", encoding="utf-8")
    (tmp_path / "policy.toml").write_text(EPSILON, encoding="utf-8")
    text = (DOCS / "reference/manifest.md").read_text("utf-8")

    done = protect_file.protect(tmp_path / "data.csv", tmp_path / "policy.toml", tmp_path / "out")

    manifest = json.loads((done.folder / "manifest.json").read_text("utf-8"))
    figures = json.loads((done.internal / "figures.json").read_text("utf-8"))
    (claim,), privacy_loss = manifest["claims"], manifest["privacy_losses"][0]
    assert (
        not set(claim["guarantee"])
        - {"name"}
        - rows_of(section("reference/manifest.md", "### A claim"))
    )
    assert not set(privacy_loss) - rows_of(section("reference/manifest.md", "### A privacy loss"))
    inner = {name for counts in figures["clamped"].values() for name in counts}
    inner |= {entry["mechanism"] for entry in manifest["privacy_losses"]}
    missing = sorted(name for name in inner if f"`{name}`" not in text)
    assert not missing, f"docs/reference/manifest.md does not mention {missing}."


def test_every_field_of_manifest_and_figures_is_documented(tmp_path):
    shoal.sample.load().head(200).write_parquet(tmp_path / "people.parquet")
    text = (DOCS / "reference/manifest.md").read_text("utf-8")

    done = protect_file.protect(
        tmp_path / "people.parquet", shoal.sample.folder() / "people.toml", tmp_path / "out"
    )

    manifest = json.loads((done.folder / "manifest.json").read_text("utf-8"))
    figures = json.loads((done.internal / "figures.json").read_text("utf-8"))
    (claim,), (check,) = manifest["claims"], manifest["checks"]
    file = manifest["files"]["release.parquet"]
    tables = {
        "## `manifest.json`": manifest,
        "### A claim": claim,
        "### A check": check,
        "## `figures.json`": figures,
    }
    for heading, fields in tables.items():
        missing = set(fields) - rows_of(section("reference/manifest.md", heading))
        assert not missing, (
            f"docs/reference/manifest.md, {heading}: no table row for {sorted(missing)}."
        )
    inner = {*file, *claim["guarantee"], *check["witness"], *check["remarks"]}
    inner |= {*figures["unique_on_quasi_identifiers"], *figures["columns"][0]}
    missing = sorted(name for name in inner if f"`{name}`" not in text)
    assert not missing, f"docs/reference/manifest.md does not mention {missing}."
    written = {path.name for path in (*done.folder.iterdir(), *done.internal.iterdir())}
    assert all(f"/{name}`" in text for name in written)


def test_every_make_target_is_explained_to_contributors():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.search(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)[1].split()

    explained = rows_of((ROOT / "CONTRIBUTING.md").read_text("utf-8"))

    named = {name for name in explained if name.startswith("make ")}
    assert named == {f"make {target}" for target in targets}


def test_every_package_is_explained_to_contributors():
    there = {path.stem for path in (ROOT / "src" / "shoal").iterdir() if path.name != "py.typed"}

    named = rows_of(section("explanation/architecture.md", "## The rooms"))

    assert named == {name for name in there if not name.startswith("_")}


OLD_WORDS = re.compile(
    r"shoal[ .]measure\b|--(?:no-)?measure\b|--format\b|\[measure\]|ledger|taxonom"
    r"|(?:max|exact)_rows|optimal.ranking|spendings?\b|`(?:buckets|unit = true|suppress|partner)`"
    r"|one row a |shoal\.(?:measures|measuring|models|foreign)\b",
    re.IGNORECASE,
)
ALIASES = {"CHANGELOG.md", "glossary.md", "glossary-keys.md"}
"""Pages that say what a thing was called before, or is called elsewhere."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_the_words_of_today(page):
    found = [] if page.name in ALIASES else OLD_WORDS.findall(page.read_text("utf-8"))

    assert not found, f"{page.name} says {found}; docs/reference/glossary.md has the words."


def test_version_and_extras_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    readme = (ROOT / "README.md").read_text("utf-8")

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))

    assert citation["version"] == project["version"]
    assert f"version {project['version']}" in readme
    assert f"\n## {project['version']} " in (ROOT / "CHANGELOG.md").read_text("utf-8")
    named = project["optional-dependencies"].keys() - {"dev"}
    assert all(f"`{extra}`" in readme for extra in named)
    assert shoal.__version__ == project["version"]
    wheels = {
        name
        for page in PAGES
        for name in re.findall(r"shoal-([\d.]+)-py3-none-any\.whl", page.read_text("utf-8"))
    }
    assert wheels == {project["version"]}


def test_every_dependency_has_its_purpose_on_the_page_on_installing():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = (ROOT / "docs/how-to/install.md").read_text("utf-8")
    extras = {name: list_ for name, list_ in project["optional-dependencies"].items()
              if name != "dev"}  # fmt: skip

    core, *rest = (
        [re.split("[>=~<]", stated)[0] for stated in stated_list]
        for stated_list in (project["dependencies"], *extras.values())
    )

    assert [name for name in core if f"| `{name}`" not in page] == []
    for extra, names in zip(extras, rest, strict=True):
        assert f"| `{extra}` | {', '.join(f'`{name}`' for name in names)} |" in page


def test_a_changelog_entry_lists_security_first_and_changed_results_under_its_heading():
    known = ["Security", "Added", "Changed", "Changed results", "Deprecated", "Removed", "Fixed"]
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")

    for entry in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        headings = re.findall(r"^### (.+)$", entry, flags=re.MULTILINE)
        assert set(headings) <= set(known), headings
        assert "Security" not in headings[1:]


@pytest.mark.parametrize("page", FRONT, ids=lambda page: page.name)
def test_links_of_the_front_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))

    gone = [link for link in links if "://" not in link and not (page.parent / link).exists()]

    assert not gone


def test_the_manual_asks_nothing_of_another_host():
    """Of the pages that `make docs`, which `make test` calls, has built without a warning."""
    if not SITE.is_dir():
        pytest.skip("the manual is not built: make docs")
    pages = list(SITE.rglob("*.html"))
    foreign = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="?(?:https?:)?//')
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    assert not [page.name for page in pages if foreign.search(page.read_text("utf-8"))]


# Shoal protects and assesses. These words would state a person's judgement as a fact about a
# table. Names of models (k-anonymity, 5-anonymous) and a program's properties are no such claim.
CLAIMING = re.compile(
    r"\b(anonym\w*|de-?identif\w*|safe|safely|safer|safest|safety|complian\w*|risk-free)\b",
    re.IGNORECASE,
)
ALLOWED = re.compile(r"(?<!\w)(?:[klt]|\d+)-anonym(?:ity|ous)\b|\b(?:thread|crash|type)-safe\b|"
                     r"\bSafe Harbor fields\b|\bthe Safe Harbor list\b|\bsafe[-_]harbor\b",
                     re.IGNORECASE)  # fmt: skip
RULE = "Shoal never calls a table anonymous, safe or compliant"
TITLES = (
    "Anonymization of nominal data based on semantic marginality",
    "From t-closeness to differential privacy and vice versa in data anonymization",
    "(alpha, k)-anonymity",
    "Empirical privacy and empirical utility of anonymized data",
    "Opinion 05/2014 on anonymisation techniques",
    "anonymeter",
)
"""Titles of papers that we cite, and a program's name."""


def claims_in(text):
    """Words of a text that call a table what only a person may call it."""
    plain = " ".join(text.split())
    for said in (RULE, *TITLES):
        plain = plain.replace(said, "")
    return CLAIMING.findall(ALLOWED.sub("", plain))


def prose_of(path):
    """The words of a file: all of it, or of a program its strings and comments."""
    source = path.read_text("utf-8")
    if path.suffix != ".py":
        return source
    strings = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            # A value in braces is a number or a letter as far as words go: {k}-anonymity.
            parts = [p.value if isinstance(p, ast.Constant) else "5" for p in node.values]
            strings.append("".join(parts))
            for part in node.values:
                part.value = "" if isinstance(part, ast.Constant) else part.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append(node.value)
    # What follows this sign in a string is read twice, which is no harm and quicker than tokens.
    return "\n".join([*strings, *re.findall("#.*", source)])


WRITTEN = [
    *PAGES,
    ROOT / "CITATION.cff",
    DOCS / "conf.py",
    ROOT / "pyproject.toml",
    *sorted(
        path
        for path in (ROOT / "src").rglob("*")
        if path.suffix in {".py", ".html", ".toml", ".csv"} and "vendor" not in path.parts
    ),
]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_we_write_calls_a_table_what_only_a_person_may(path):
    found = claims_in(prose_of(path))

    assert not found, f"{path.name} says {found}; say what is protected, claimed or checked."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("an anonymous table", ["anonymous"]),
        ("Anonymised data", ["Anonymised"]),
        ("it is safe\nto publish", ["safe"]),
        ("GDPR-compliant", ["compliant"]),
        ("k-anonymity, a 5-anonymous table, 2-anonymity of age", []),
        ("not-k-anonymous? unsafe, safeguard, safe_load", []),
        (f"{RULE}: that is a person's judgement.", []),
        ("fully k-anonymous and thus anonymous", ["anonymous"]),
    ],
)
def test_the_rule_about_words_finds_claims_and_nothing_else(text, found):
    assert claims_in(text) == found


def test_the_rule_about_words_reads_strings_and_comments_of_a_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text('safe = f"{1}-anonymity"  # a compliant table\n', encoding="utf-8")

    assert claims_in(prose_of(program)) == ["compliant"]


EPSILON = """
version = 1

[columns]
a = { role = "confidential", kind = "numeric", bounds = [0, 3] }
b = { role = "confidential", kind = "nominal", categories = ["x", "y"] }

[reading]
delimiter = ","
decimal = "."

[protect]
method = "laplace"
epsilon = 1
"""
SMALL = {
    "version": 1,
    "columns": {
        "a": {"role": "quasi-identifier", "kind": "numeric"},
        "b": {"role": "confidential", "kind": "numeric"},
    },
    "protect": {"method": "mdav", "k": 2},
}


def protected(tmp_path, text):
    (tmp_path / "data.csv").write_text(text, encoding="utf-8")
    frame = files.read(tmp_path / "data.csv").frame
    return shoal.protect(frame, SMALL, keep_order=True).data


def test_empty_text_is_missing_and_blank_lines_are_skipped_as_the_limitations_say(tmp_path):
    released = protected(tmp_path, 'a,b\n1,2\n3,\n\n5, 6\n7,""\n')

    assert released["b"].to_list() == [2, None, 6, None]


def test_an_unstated_decimal_comma_becomes_the_constant_as_the_limitations_say(tmp_path):
    (tmp_path / "data.csv").write_text("a;b\n1,5;x\n2,5;y\n", encoding="utf-8")
    frame = files.read(tmp_path / "data.csv").frame

    released = shoal.protect(frame, policy.loads(EPSILON), noise=RecordingNoise()).data

    assert released["a"].to_list() == [1.5, 1.5]  # the middle of [0, 3]


def test_without_a_unit_nothing_notices_several_rows_as_the_limitations_say():
    person = 'version = 1\n\n[columns]\np = { role = "identifier", privacy_unit = true }\n'
    stated = policy.loads(EPSILON.replace("version = 1\n\n[columns]\n", person))
    unsaid = policy.loads(EPSILON.replace("version = 1\n\n[columns]\n", person.replace(
        ", privacy_unit = true", "")))  # fmt: skip
    frame = pl.DataFrame({"p": [1, 1], "a": [1, 2], "b": ["x", "y"]})

    assert shoal.protect(frame, unsaid, noise=RecordingNoise()).data.columns == ["a", "b"]
    with pytest.raises(shoal.InputError, match="1 more row than persons"):
        shoal.protect(frame, stated, noise=RecordingNoise())


def test_an_epsilon_cannot_be_checked_on_a_table_as_the_limitations_say():
    stated = {
        **SMALL,
        "protect": {"method": "laplace", "epsilon": 1},
        "require": {"differential-privacy": 1},
    }

    with pytest.raises(shoal.InputError, match="no table can be checked for it"):
        shoal.check(pl.DataFrame({"a": [1, 2], "b": [1, 2]}), stated)


def test_short_rows_are_refused_as_the_limitations_say(tmp_path):
    with pytest.raises(shoal.InputError, match="another number of cells"):
        protected(tmp_path, "a,b\n1,2\n3\n5,6\n")


def test_large_whole_numbers_are_inexact_where_protected_as_the_limitations_say(tmp_path):
    large = 2**53 + 1

    released = protected(tmp_path, f"a,b\n{large},{large}\n{large},{large}\n1,1\n1,1\n")

    assert released["a"][0] == 2**53
    assert released["b"][0] == large


def test_text_is_not_trimmed_as_the_limitations_say(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\nx,1\nx ,1\n", encoding="utf-8")

    (check,) = shoal.check(files.read(tmp_path / "data.csv").frame, SMALL)

    assert check.achieved == 1


def test_check_takes_two_spellings_of_a_number_for_two_values_as_the_limitations_say(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n5,1\n5.0,1\n", encoding="utf-8")

    (check,) = shoal.check(files.read(tmp_path / "data.csv").frame, SMALL)

    assert check.achieved == 1
