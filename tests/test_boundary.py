"""Nothing but the mechanism reaches the public: what leaves is the same for neighbouring tables.

Two tables differ in one record, whose cells fit no domain. Under the same noisy answers
everything that leaves must be equal: every byte of the public folder, the returned object with its
types, what is printed, the exit code, and which files there are. `docs/explanation/boundary.md`
lists it.
"""

import json
import re
import tomllib

import pytest
from tests import leaving
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.core import Confidential, ReleaseForm
from shoal.core.exits import for_folder, for_method
from shoal.errors import InputError, InternalError
from shoal.io import folders
from shoal.pipeline import protect_table
from shoal.pipeline.options import EvaluationOptions, OutputOptions, ReadingOptions
from shoal.publish import confidential_folder, protect_file
from shoal.studio import worker
from shoal.studio.jobs import JobKind

FORMATS = ("parquet", "csv", "sav", "dta", "xpt")
LATER = len(FORMATS) - 1
IDS = [f"{name}-{form.value}" for name, form in leaving.PROVED]


@pytest.fixture
def replay(monkeypatch):
    """The pipeline builds noise that replays, so that what it makes carries its claims."""
    noise = leaving.Replay()

    def built():
        noise.begin()
        return noise

    # The command and the page offer no other way in.
    monkeypatch.setattr(protect_table, "OpenDPNoise", built)
    return noise


def test_every_sort_of_proved_method_is_here():
    assert {name for name, _ in leaving.PROVED} >= {
        "laplace", "ir-laplace", "insensitive-laplace", "public-laplace", "kanon-dp", "dp-kdtree",
        "dp-quadtree", "privtree", "copula", "maxent", "auto",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "form"), leaving.PROVED, ids=IDS)
def test_what_the_library_returns_is_the_same_for_neighbours(name, form, replay):
    rules, changeable = leaving.policy(name, form)
    for build in (leaving.as_pandas, leaving.as_polars, lambda c: leaving.as_polars(c).to_arrow()):
        replay.kept.clear()
        first = leaving.returned(shoal.protect(build(leaving.people()), rules))
        # Each form meets every third of the strange records; all forms together meet all.
        for number in range(leaving.PROVED.index((name, form)) % 3, leaving.NEIGHBOURS, 3):
            other = build(leaving.neighbour(number, changeable))

            assert leaving.returned(shoal.protect(other, rules)) == first


@pytest.mark.parametrize(("name", "form"), leaving.PROVED, ids=IDS)
def test_what_the_command_writes_and_prints_is_the_same_for_neighbours(
    name, form, replay, tmp_path
):
    rules, changeable = leaving.policy(name, form)
    (tmp_path / "policy.toml").write_text(toml(rules))
    place = leaving.PROVED.index((name, form))
    # Each form is written in the first format and in another; all forms together in all.
    kinds = FORMATS[:2] if form is ReleaseForm.TREE else (FORMATS[0], FORMATS[1 + place % LATER])
    for kind in kinds:
        replay.kept.clear()
        seen = []
        strange = 2 + place % 4
        for number in (None, strange):
            cells = leaving.people() if number is None else leaving.neighbour(number, changeable)
            leaving.as_csv(cells, tmp_path / "people.csv")
            done = CliRunner().invoke(app, [
                "protect", str(tmp_path / "people.csv"), "--policy", str(tmp_path / "policy.toml"),
                "--out", str(tmp_path / "out"), "--force", "--file-format", kind, "--no-evaluate",
            ])  # fmt: skip
            assert done.exit_code == 0, done.output
            seen.append((done.stdout, done.stderr, leaving.published(tmp_path / "out")))

        assert seen[0] == seen[1]


def toml(rules):
    lines = ["version = 1", "[columns]"]
    lines += [f"{name} = {inline(spec)}" for name, spec in rules["columns"].items()]
    lines += ["[reading]", *(f"{key} = {inline(v)}" for key, v in leaving.READING.items())]
    lines += ["[protect]", *(f"{key} = {inline(value)}" for key, value in rules["protect"].items())]
    text = "\n".join(lines)
    assert tomllib.loads(text)["protect"]["method"]
    return text


def inline(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return str(value) if hasattr(value, "isoformat") else json.dumps(value)


@pytest.mark.usefixtures("replay")
def test_measuring_for_the_officer_changes_nothing_that_leaves(tmp_path):
    """Of a column that is the same for all, most measures are undefined."""
    rules, changeable = leaving.policy("laplace", leaving.REGISTRY["laplace"].forms.offered[0])
    (tmp_path / "policy.toml").write_text(toml(rules))
    seen = []
    for number in (None, None, 1):
        cells = leaving.people() if number is None else leaving.neighbour(number, changeable)
        cells |= {"age": [0] * leaving.ROWS} if number is None else {}
        leaving.as_csv(cells, tmp_path / "people.csv")
        done = CliRunner().invoke(app, [
            "protect", str(tmp_path / "people.csv"), "--policy", str(tmp_path / "policy.toml"),
            "--out", str(tmp_path / "out"), "--force", "--evaluate",
        ])  # fmt: skip
        seen.append((done.exit_code, done.output, leaving.published(tmp_path / "out")))

    _, first, second = seen  # before them, kernels may be compiled, which the terminal is told
    assert first == second
    assert first[0] == 0


@pytest.mark.usefixtures("replay")
def test_what_the_studio_tells_is_the_same_for_neighbours(tmp_path):
    rules, changeable = leaving.policy("maxent", leaving.REGISTRY["maxent"].forms.offered[0])
    (tmp_path / "policy.toml").write_text(toml(rules))
    seen = []
    for number in (None, 2, 4):
        cells = leaving.people() if number is None else leaving.neighbour(number, changeable)
        leaving.as_csv(cells, tmp_path / "people.csv")
        given = {
            "data": tmp_path / "people.csv", "policy": tmp_path / "policy.toml",
            "out": tmp_path / f"out{number}" / "release", "file_format": "parquet",
            "audience": None, "evaluate": False, "control": None, "comparison": None,
            "budget": None, "source": None, "scheme": None,
        }  # fmt: skip
        told = worker.DO[JobKind.PROTECT](given, lambda *_: None)
        seen.append((told, leaving.published(tmp_path / f"out{number}" / "release")))

    assert seen[0] == seen[1] == seen[2]


def test_a_date_column_without_a_date_comes_back_as_one_with_a_date(replay):
    rules, _ = leaving.policy("laplace", leaving.REGISTRY["laplace"].forms.offered[0])
    cells = leaving.people() | {"born": [None] * leaving.ROWS}
    other = leaving.people() | {"born": [None] * (leaving.ROWS - 1) + [leaving.date(1950, 1, 1)]}

    for build in (leaving.as_pandas, leaving.as_polars, lambda c: leaving.as_polars(c).to_arrow()):
        replay.kept.clear()
        both = [leaving.returned(shoal.protect(build(c), rules)) for c in (cells, other)]

        assert both[0] == both[1]


@pytest.mark.usefixtures("replay")
@pytest.mark.parametrize("stated", [None, ","])
def test_rows_that_look_like_another_delimiter_do_not_change_how_others_are_read(tmp_path, stated):
    """A name with seven semicolons looks like eight columns, if enough rows have as many."""
    name = "t;o;w;n;n;a;m;e"
    (tmp_path / "policy.toml").write_text(
        "version = 1\n[columns]\nage = { role = 'quasi-identifier', kind = 'numeric', "
        f"bounds = [0, 9] }}\n'{name}' = {{ role = 'quasi-identifier', kind = 'nominal', "
        "categories = ['a', 'b'] }\n[reading]\ndecimal = '.'\n"
        "[protect]\nmethod = 'laplace'\nepsilon = 1\n"
    )
    seen = []
    for odd in (10, 11):
        rows = ["1,a"] * (21 - odd) + ["1,a;b;c;d;e;f;g;h"] * odd
        (tmp_path / "people.csv").write_text("\n".join([f"age,{name}", *rows, ""]))
        try:
            done = protect_file.protect(
                tmp_path / "people.csv",
                tmp_path / "policy.toml",
                tmp_path / "out",
                output=OutputOptions(force=True),
                evaluation=EvaluationOptions(evaluate=False),
                reading=ReadingOptions(delimiter=stated),
            )
        except InputError as error:
            seen.append(re.sub(r"\d+", "", str(error)))  # how many rows do not fit
        else:
            seen.append((done.notes, leaving.published(tmp_path / "out")))

    assert seen[0] == seen[1]
    assert (stated is None) == isinstance(seen[0], str)


@pytest.mark.usefixtures("replay")
def test_a_strange_record_of_a_workbook_does_not_change_how_others_are_read(tmp_path):
    """A text among numbers or days makes a column of texts for a reader that looks for types."""
    pytest.importorskip("fastexcel")
    rules, changeable = leaving.policy("laplace", leaving.REGISTRY["laplace"].forms.offered[0])
    (tmp_path / "policy.toml").write_text(toml(rules))
    seen = []
    for number in (None, *range(leaving.NEIGHBOURS)):
        cells = leaving.people() if number is None else leaving.neighbour(number, changeable)
        leaving.as_excel(cells, tmp_path / "people.xlsx")
        done = protect_file.protect(
            tmp_path / "people.xlsx",
            tmp_path / "policy.toml",
            tmp_path / "out",
            output=OutputOptions(file_format="csv", force=True),
            evaluation=EvaluationOptions(evaluate=False),
        )
        seen.append((done.notes, leaving.published(tmp_path / "out")))

    assert all(one == seen[0] for one in seen)


@pytest.mark.usefixtures("replay")
@pytest.mark.parametrize("kind", ["parquet", "csv", "sav", "xpt"])
def test_labels_and_measures_of_a_file_do_not_leave_beside_an_epsilon(tmp_path, kind):
    """They may list the values of the table, or be written by somebody who saw them."""
    library = pytest.importorskip("pyreadstat")
    rules, _ = leaving.policy("laplace", leaving.REGISTRY["laplace"].forms.offered[0])
    (tmp_path / "policy.toml").write_text(toml(rules))
    frame = leaving.as_polars(leaving.people())
    told = {"column_labels": {"age": "Age, at most 89"},
            "variable_value_labels": {"age": {89.0: "the oldest"}},
            "variable_measure": {"age": "ordinal"}}  # fmt: skip
    seen = []
    for labels in ({}, told):
        library.write_sav(frame, str(tmp_path / "people.sav"), **labels)
        done = protect_file.protect(
            tmp_path / "people.sav",
            tmp_path / "policy.toml",
            tmp_path / "out",
            output=OutputOptions(file_format=kind, force=True),
            evaluation=EvaluationOptions(evaluate=False),
        )
        seen.append((done.notes, leaving.published(tmp_path / "out")))

    assert seen[0] == seen[1]


@pytest.mark.usefixtures("replay")
def test_a_byte_that_is_no_text_makes_its_own_cell_unknown_and_nobody_elses(tmp_path):
    rules, _ = leaving.policy("laplace", leaving.REGISTRY["laplace"].forms.offered[0])
    (tmp_path / "policy.toml").write_text(toml(rules))
    leaving.as_csv(leaving.people(), tmp_path / "people.csv")
    good = (tmp_path / "people.csv").read_bytes()
    seen = []
    for raw in (good, good.replace(b"person 23", b"person \xff\x81")):
        (tmp_path / "people.csv").write_bytes(raw)
        done = protect_file.protect(
            tmp_path / "people.csv",
            tmp_path / "policy.toml",
            tmp_path / "out",
            output=OutputOptions(force=True),
            evaluation=EvaluationOptions(evaluate=False),
        )
        seen.append((done.notes, leaving.published(tmp_path / "out")))

    assert seen[0] == seen[1]


def test_noise_from_outside_carries_no_claim_of_privacy_whatever_it_says(people, policy):
    class Nothing(leaving.SeededNoise):
        secure = True

        def _laplace(self, values, _scale):
            return values

    rules = policy | {"protect": {"method": "laplace", "epsilon": 1}}
    rules["columns"]["region"] |= {"categories": ["north", "south"]}
    rules["columns"]["income"] |= {"bounds": [0, 100]}
    for noise in (Nothing(1), protect_table.OpenDPNoise()):
        assert not shoal.protect(people, rules, noise=noise).claims
    assert shoal.protect(people, rules).claims


def test_the_noise_writes_the_account_and_a_method_that_says_otherwise_is_stopped(
    people, policy, monkeypatch
):
    """A method that draws at a hundredth of the scale that it states, as often as it states."""

    class Weak(protect_table.OpenDPNoise):
        def discrete_laplace(self, values, *, scale):
            return super().discrete_laplace(values, scale=scale / 100)

    monkeypatch.setattr(protect_table, "OpenDPNoise", Weak)
    rules = policy | {"protect": {"method": "laplace", "epsilon": 1}}
    rules["columns"]["region"] |= {"categories": ["north", "south"]}
    rules["columns"]["income"] |= {"bounds": [0, 100]}

    with pytest.raises(InternalError, match="the noise drew"):
        shoal.protect(people, rules)


def test_a_confidential_value_shows_nothing_of_itself(tmp_path):
    secret = Confidential("canary")

    assert "canary" not in f"{secret} {secret!r} {secret.map(str.upper)}"
    for look in (bool, hash, len, iter, lambda s: s == "canary", lambda s: s.__reduce_ex__(4)):
        with pytest.raises(TypeError, match="has no content"):
            look(secret)
    assert not hasattr(secret, "__dict__")
    assert for_method(secret) == "canary"
    tmp_path.chmod(0o700)
    assert for_folder(secret, tmp_path) == "canary"
    tmp_path.chmod(0o755)
    with pytest.raises(PermissionError):
        for_folder(secret, tmp_path)


def test_a_failure_of_the_confidential_step_leaves_the_release_and_can_be_repeated(
    tmp_path, people, monkeypatch
):
    data, rules, out = tmp_path / "people.csv", tmp_path / "policy.toml", tmp_path / "out"
    people.write_csv(data)
    rules.write_text(
        "version = 1\n[columns]\nname = 'identifier'\n"
        "age = { role = 'quasi-identifier', kind = 'numeric', bounds = [0, 110] }\n"
        "region = { role = 'quasi-identifier', kind = 'nominal', categories = ['north', 'south'] }"
        "\nincome = { role = 'confidential', kind = 'numeric', bounds = [0, 100] }\n"
        "[reading]\ndelimiter = ','\ndecimal = '.'\n[protect]\nmethod = 'laplace'\nepsilon = 1\n"
    )

    def broken(*_arguments):
        raise ValueError("canary")

    with monkeypatch.context() as patch:
        patch.setattr("shoal.report.html.internal_report", broken)
        done = protect_file.protect(data, rules, out, evaluation=EvaluationOptions(evaluate=False))
    page = (done.internal / "report.html").read_text()
    assert "could not be made" in page
    assert "canary" not in page
    assert shoal.verify(out).holds
    before = leaving.published(out)[0]

    confidential_folder.report(out, data, rules, evaluation=EvaluationOptions(evaluate=False))

    assert "Confidential report on a release" in (done.internal / "report.html").read_text()
    assert leaving.published(out)[0] == before
    assert folders.internal_of(out).stat().st_mode & 0o777 == 0o700
