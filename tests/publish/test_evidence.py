import gzip
import hashlib
import json
import shlex
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from shoal import io
from shoal.cli.commands import app
from shoal.errors import InputError
from shoal.io import memory
from shoal.pipeline import protect_table
from shoal.pipeline.options import EvaluationOptions, OutputOptions, ReadingOptions
from shoal.pipeline.planning import plan
from shoal.policy.load import load
from shoal.publish import evidence, protect_file
from shoal.publish.verify_folder import verify


@pytest.fixture
def files(tmp_path, people, policy):
    people.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv", load(policy), tmp_path / "out"


def figures(done):
    return json.loads((done.internal / "figures.json").read_text())


def test_a_release_is_measured_and_its_inputs_are_named_by_digest(files):
    data = files[0]

    done = protect_file.protect(*files)

    found = figures(done)
    assert found["measured"]["figures"]
    assert found["unmeasured"] == ""
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    assert found["inputs"]["data"] == {
        "name": "people.csv", "sha256": digest, "bytes": data.stat().st_size
    }  # fmt: skip
    assert digest in (done.internal / "report.html").read_text()
    assert str(data.parent) not in (done.internal / "report.html").read_text()
    for path in done.folder.iterdir():
        assert digest.encode() not in path.read_bytes()


def test_an_evaluation_that_does_not_fit_into_memory_is_not_begun_unless_asked(
    people, policy, monkeypatch
):
    planned, raw = plan(policy), io.from_native(people)
    made = protect_table.run(planned, raw).release
    monkeypatch.setattr(memory, "available", lambda: 1000)

    found, why = evidence.evaluate_release(
        planned, raw, made, wanted=None, control=None, progress=lambda *_: None
    )
    asked, _ = evidence.evaluate_release(
        planned, raw, made, wanted=True, control=None, progress=lambda *_: None
    )

    assert found is None
    assert "takes more memory than is free" in why
    assert not any(digit.isdigit() for digit in why)  # the number of rows may be hidden
    assert asked is not None


def test_a_control_is_checked_before_anything_is_run(files, tmp_path):
    data, policy, out = files
    pl.DataFrame({"age": [1]}).write_csv(tmp_path / "others.csv")

    with pytest.raises(InputError, match="it lacks 'region'"):
        protect_file.protect(
            data, policy, out, evaluation=EvaluationOptions(control=tmp_path / "others.csv")
        )
    with pytest.raises(InputError, match="without --no-evaluate"):
        protect_file.protect(
            data,
            policy,
            out,
            evaluation=EvaluationOptions(control=tmp_path / "others.csv", evaluate=False),
        )

    assert not out.exists()


def test_a_release_is_not_lost_where_it_cannot_be_measured(people, policy):
    planned, raw = plan(policy), io.from_native(people)
    made = protect_table.run(planned, raw).release
    strange = io.from_native(people.with_columns(age=pl.lit("old")))

    class Broken:
        @property
        def frame(self):
            raise ValueError("CANARY")

    found, refused = evidence.evaluate_release(
        planned, strange, made, wanted=True, control=None, progress=lambda *_: None
    )
    _, bug = evidence.evaluate_release(
        planned, raw, made, wanted=True, control=Broken(), progress=lambda *_: None
    )

    assert found is None
    assert refused.startswith("The release could not be evaluated: ")
    assert "bug of Shoal, ValueError" in bug
    assert "CANARY" not in bug


def test_an_epsilon_release_is_measured_as_it_was_clamped(tmp_path):
    pl.DataFrame({"a": [1, 999, None] * 10, "b": ["x", "odd", "y"] * 10}).write_csv(
        tmp_path / "data.csv"
    )
    policy = load(
        {
            "version": 1,
            "columns": {
                "a": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 10]},
                "b": {"role": "confidential", "kind": "nominal", "categories": ["x", "y"]},
            },
            "reading": {"delimiter": ",", "decimal": "."},
            "protect": {"method": "laplace", "epsilon": 1},
        }
    )

    done = protect_file.protect(tmp_path / "data.csv", policy, tmp_path / "out")

    assert done.measured is not None, done.notes


def test_the_lines_to_do_it_again_name_files_and_no_folder():
    again = evidence.again(
        Path("/secret/home/my data.csv"),
        Path("/secret/home/p.toml"),
        Path("/secret/out"),
        {
            "file-format": "csv",
            "keep-order": True,
            "delimiter": ";",
            "control": "o.csv",
            "source": None,
        },
    )

    assert again["command"] == (
        "shoal protect 'my data.csv' --policy p.toml --out out --keep-order --delimiter ';' "
        "--control o.csv"
    )
    assert "shoal.read('my data.csv', delimiter=';')" in again["python"]
    assert "release.write('out', file_format='csv')" in again["python"]
    assert "keep_order=True" in again["python"]
    assert "secret" not in again["python"] + again["command"]
    compile(again["python"], "again", "exec")


def test_the_python_lines_run(files, monkeypatch, capsys):
    data, policy, _ = files
    monkeypatch.chdir(data.parent)
    (data.parent / "p.toml").write_text(
        "version = 1\n[columns]\nname = 'identifier'\n"
        "age = { role = 'quasi-identifier', kind = 'numeric' }\n"
        "region = { role = 'quasi-identifier', kind = 'nominal' }\n"
        "income = { role = 'confidential', kind = 'numeric' }\n[protect]\nmethod = 'mdav'\nk = 3\n"
    )

    exec(evidence.again(data, Path("p.toml"), Path("o"), {})["python"], {})  # noqa: S102

    assert policy.method in capsys.readouterr().out


PEOPLE = pl.DataFrame(
    {"name": [f"P{i}" for i in range(60)], "age": [20.5 + i % 10 for i in range(60)],
     "region": ["north", "s\u00fcd"] * 30}
)  # fmt: skip
METHODS = {False: "method = 'mdav'\nk = 3", True: "method = 'laplace'\nepsilon = 1"}


def semicolons(path):
    PEOPLE.with_columns(
        pl.col("age").cast(pl.String).str.replace(".", ",", literal=True)
    ).write_csv(path, separator=";")
    return "delimiter = ';'\ndecimal = ','\n", {}


def packed(path):
    path.write_bytes(gzip.compress(PEOPLE.write_csv(separator="|").encode("cp1252")))
    return "decimal = '.'\n", {"delimiter": "|", "encoding": "cp1252"}


def spss(path):
    io.write(PEOPLE, path, labels={})
    return "", {}


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(
    ("name", "make"),
    [("my people.csv", semicolons), ("people.csv.gz", packed), ("people.sav", spss)],
)
def test_what_the_report_prints_runs_as_printed(tmp_path, monkeypatch, capsys, name, make, noisy):
    if name.endswith("sav"):
        pytest.importorskip("pyreadstat")
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    decimal, options = make(there / name)
    (there / "p.toml").write_text(
        "version = 1\none_row_per_person = true\n[columns]\nname = 'identifier'\n"
        "age = { role = 'quasi-identifier', kind = 'numeric', bounds = [0, 99] }\n"
        "region = { role = 'quasi-identifier', kind = 'nominal',"
        " categories = ['north', 's\u00fcd'] }\n"
        f"[reading]\n{decimal}[protect]\n{METHODS[noisy]}\n"
    )
    done = protect_file.protect(
        there / name,
        there / "p.toml",
        there / "out",
        reading=ReadingOptions(**options),
        output=OutputOptions(file_format="csv"),
        evaluation=EvaluationOptions(evaluate=False),
    )
    again = json.loads((done.internal / "figures.json").read_text())["again"]
    for file in (name, "p.toml"):
        (here / file).write_bytes((there / file).read_bytes())
    monkeypatch.chdir(here)

    program, *words = shlex.split(again["command"])
    ended = CliRunner().invoke(app, words)
    Path("out").rename("by-command")
    Path("out.internal").rename("by-command.internal")
    exec(again["python"], {})  # noqa: S102

    assert program == "shoal"
    assert ended.exit_code == 0, ended.output
    assert verify("by-command").holds
    assert verify("out").holds
    assert METHODS[noisy].split("'")[1] in capsys.readouterr().out


def test_a_comparison_is_shown_to_the_officer_alone(files, tmp_path):
    ends = {"value": 0.25, "low": 0.2, "high": 0.3}
    row = {"label": "mdav <b>k = 3</b>", "method": "mdav", "parameters": {"k": 3},
           "standing": "frontier", "risk": ends, "error": ends}  # fmt: skip
    facts = {"recommendation": "Take <i>mdav</i>.", "axes": {"risk": "R.", "error": "E."},
             "candidates": [row], "baselines": []}  # fmt: skip
    (tmp_path / "found.json").write_text(json.dumps(facts))

    done = protect_file.protect(
        *files, evaluation=EvaluationOptions(comparison=tmp_path / "found.json")
    )

    page = (done.internal / "report.html").read_text()
    assert "Take &lt;i&gt;mdav&lt;/i&gt;." in page
    assert "(this release)" in page
    assert "25%" in page
    assert "Take" not in (done.folder / "report.html").read_text()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"candidates": [{}], "baselines": []}'])
def test_a_file_that_is_no_comparison_stops_the_run(files, tmp_path, text):
    (tmp_path / "found.json").write_text(text)

    with pytest.raises(InputError, match="shoal compare --json"):
        protect_file.protect(
            *files, evaluation=EvaluationOptions(comparison=tmp_path / "found.json")
        )
    with pytest.raises(InputError, match=r"Cannot read the comparison 'none\.json'"):
        protect_file.protect(
            *files, evaluation=EvaluationOptions(comparison=tmp_path / "none.json")
        )

    assert not files[2].exists()
