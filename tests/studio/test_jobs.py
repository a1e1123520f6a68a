"""Long work: in processes of its own, cancelled without a trace, told in one sentence."""

import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest

from shoal.budget import budget_file
from shoal.engine import check_table
from shoal.errors import InputError, ShoalError
from shoal.pipeline import booking
from shoal.pipeline.options import BudgetOptions, EvaluationOptions, OutputOptions
from shoal.publish import protect_file
from shoal.report.phrases import STATUS_WORDS
from shoal.studio.jobs import KILLED, JobKind, Jobs
from shoal.studio.private_files import new_id

EPSILON = """
version = 1
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
sex = { role = "other", public = true }
income = { role = "confidential", kind = "numeric", bounds = [0, 1000000] }
[reading]
delimiter = ","
decimal = "."
[protect]
method = "laplace"
epsilon = 1
columns = ["age", "income"]
"""
GRID = [{"method": "mdav", "k": [3, 6]}]


def until(served, job, reached):
    """Wait until a job that runs has reached something."""
    deadline = time.monotonic() + 60
    while not reached():
        assert not served.studio.jobs.status(job).final
        assert time.monotonic() < deadline
        time.sleep(0.005)


def lives(pid):
    """Whether a process group has a member that is not a zombie."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == pid and fields[0] != "Z":
                return True
    return False


def test_from_a_file_to_a_release_that_passes_the_check(served, client, workspace, tools, tmp_path):
    job = tools.upload(client, workspace, tools.people()).json()["job"]
    assert tools.ended(client, job)["state"] == "done"
    tools.put(client, workspace, tools.policy)
    job = tools.start(client, workspace, "protect", evaluate=False)
    status = tools.ended(client, job)
    archive = client.get(f"/releases/{job}/public.zip")
    with zipfile.ZipFile(io.BytesIO(archive.content)) as zipped:
        zipped.extractall(tmp_path)
    folder = tmp_path / f"release-{job}"
    (tmp_path / "people.csv").write_bytes(tools.people())
    (tmp_path / "policy.toml").write_text(tools.policy)
    checks = check_table.check(pl.read_csv(folder / "release.csv"), tmp_path / "policy.toml")
    protect_file.protect(
        tmp_path / "people.csv",
        tmp_path / "policy.toml",
        tmp_path / "other",
        evaluation=EvaluationOptions(evaluate=False),
        output=OutputOptions(audience="public-use"),
    )
    ours, theirs = (
        json.loads((where / "manifest.json").read_text()) for where in (folder, tmp_path / "other")
    )

    assert status["state"] == "done"
    assert all(check.holds for check in checks)
    for manifest in (ours, theirs):
        del manifest["created"], manifest["files"]
        for check in manifest["checks"]:
            del check["witness"]  # rows are shuffled
    assert ours == theirs
    entry = tools.entries(client)[0]
    assert (entry.id, entry.state, entry.rows) == (job, "released", 60)
    for name in ("report.html", "internal.html", "manifest.json"):
        page = client.get(f"/releases/{job}/{name}")
        assert page.status_code == 200
        assert "unsafe-inline" not in page.headers["content-security-policy"]
    page = client.get(f"/w/{workspace}/releases/{job}/verification")
    assert "verified</span> Verified, except for what the folder cannot show" in page.text
    saved = client.get(f"/releases/{job}/internal.html", params={"save": True})
    assert "attachment" in saved.headers["content-disposition"]
    file = tools.loaded(client, workspace).data
    assert file.label == "people.csv"
    assert "shoal protect people.csv" in saved.text  # as the user knows it
    assert file.id not in saved.text
    assert str(served.studio.temporary) not in saved.text


def test_a_comparison_is_made_on_other_people_and_a_candidate_chosen(client, workspace, tools):
    tools.with_people(client, workspace, rows=80)
    studio = client.served.studio
    with pytest.raises(InputError, match="Choose a file of other people"):
        tools.start(client, workspace, "compare", on_others=True)
    assert studio.read_comparison(tools.loaded(client, workspace)) is None
    tools.upload(client, workspace, tools.people(80), name="same.csv", where="others")
    same = tools.start(client, workspace, "compare", on_others=True, candidates=GRID, repeats=1)
    assert client.served.do(same) == "failed"
    assert "the confidential table itself" in studio.jobs.status(same).error
    tools.upload(client, workspace, tools.people(60), name="others.csv", where="others")
    job = tools.start(client, workspace, "compare", on_others=True, candidates=GRID, repeats=1)
    status = tools.ended(client, job)
    found = studio.read_comparison(tools.loaded(client, workspace))
    client.post(f"/w/{workspace}/compare/choose", data={"label": "mdav k=6"})
    chosen = tools.fields(client, workspace)

    assert status["state"] == "done", status
    assert any("costs nothing" in sentence for sentence in status["result"]["costs"])
    assert [row["label"] for row in found["candidates"]] == ["mdav k=3", "mdav k=6"]
    assert chosen["protect"] == {"method": "mdav", "k": 6}
    again = studio.again(tools.loaded(client, workspace))
    assert "--control others.csv" in again["command"]
    assert studio.store.undo(workspace).chosen == ""
    assert tools.fields(client, workspace)["protect"]["k"] == 5


def test_one_release_runs_at_a_time_and_cancelled_before_it_is_out_leaves_nothing_behind(
    served, client, workspace, tools
):
    tools.with_people(client, workspace, rows=4000)
    job = tools.start(client, workspace, "protect", evaluate=True)
    pid = tools.pid_of(served.settings.home / "jobs", job)
    out = served.settings.home / "jobs" / job / "out"
    until(served, job, lambda: list(out.glob(".*")))  # where the release is being made

    with tools.frozen(pid):
        with pytest.raises(InputError, match="under way"):
            tools.start(client, workspace, "protect")
        client.post(f"/w/{workspace}/jobs/{job}/cancel")

    assert served.studio.jobs.status(job).state == "cancelled"
    assert not lives(pid)
    assert not out.exists()
    assert tools.entries(client)[0].state == "cancelled"
    assert client.get(f"/releases/{job}/public.zip").status_code == 404
    assert served.studio.jobs.cancel(job).state == "cancelled"


def test_cancelled_while_it_is_measured_a_release_stays_without_its_internal_report(
    served, client, workspace, tools
):
    """It is in place by then, and may be paid for."""
    tools.with_people(client, workspace, rows=4000)
    job = tools.start(client, workspace, "protect", evaluate=True)
    pid = tools.pid_of(served.settings.home / "jobs", job)
    until(served, job, lambda: "evaluating" in served.studio.jobs.status(job).stage)

    with tools.frozen(pid):
        status = served.studio.jobs.cancel(job)

    assert status.state == "done"
    assert not lives(pid)
    assert tools.entries(client)[0].state == "released"
    assert client.get(f"/releases/{job}/public.zip").status_code == 200
    shown = client.get(f"/releases/{job}/internal.html")
    assert shown.status_code == 422
    assert "shoal report" in shown.text
    assert any("confidential report is missing" in note for note in status.result["notes"])


def test_a_comparison_in_many_processes_is_cancelled_with_all_of_them(
    served, client, workspace, tools
):
    tools.with_people(client, workspace, rows=3000)
    job = tools.start(client, workspace, "compare")
    pid = tools.pid_of(served.settings.home / "jobs", job)
    children = Path(f"/proc/{pid}/task/{pid}/children")
    # A helper of Python's, and the first of its own.
    until(served, job, lambda: len(children.read_text().split()) >= 2)

    with tools.frozen(pid):
        assert served.studio.jobs.cancel(job).state == "cancelled"
    # All of them were killed; the system ends them when their turn comes.
    patience = time.monotonic() + 10
    while lives(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not lives(pid)
    assert not (served.studio.jobs.folder(job) / "out").exists()


def test_a_job_that_the_system_ends_fails_in_a_sentence(served, client, workspace, tools):
    tools.with_people(client, workspace, rows=4000)
    job = tools.start(client, workspace, "protect", evaluate=True)
    os.killpg(tools.pid_of(served.settings.home / "jobs", job), signal.SIGKILL)
    status = tools.ended(client, job)

    assert (status["state"], status["error"]) == ("failed", KILLED)
    assert not (served.studio.jobs.folder(job) / "out").exists()


def test_an_error_is_one_sentence_and_no_cell_and_names_the_file_as_its_user_does(
    served, client, workspace, tools
):
    tools.with_people(client, workspace)
    bad = tools.policy.replace('categories = ["male", "female"]', 'categories = ["man", "woman"]')
    tools.put(client, workspace, bad)
    status = tools.ended(client, tools.start(client, workspace, "protect", evaluate=False))

    assert status["state"] == "failed"
    assert "sex" in status["error"]
    assert "Traceback" not in status["error"]
    assert "person 1" not in status["error"]
    assert tools.entries(client)[0].sentence == status["error"]
    assert "Some cells of &#39;sex&#39; are not among" in client.get(f"/w/{workspace}/protect").text
    (path,) = (served.studio.temporary / workspace).rglob("people.csv")
    path.write_bytes(b"PK\x03\x04 an archive")
    for kind in ("protect", "compare"):
        status = tools.ended(client, tools.start(client, workspace, kind))
        assert status["state"] == "failed"
        assert "'people.csv'" in status["error"]
        assert str(served.studio.temporary) not in status["error"]


def test_a_job_waits_for_room_and_is_cancelled_while_it_waits(tmp_path, tools):
    (tmp_path / "people.csv").write_bytes(tools.people())
    jobs = Jobs(tmp_path, most=1)
    jobs._room.acquire()
    given = {"data": str(tmp_path / "people.csv"), "label": "people.csv", "decoded_limit": 1 << 40}
    id_ = jobs.start(new_id(), "w", JobKind.PROFILE, given)

    assert jobs.status(id_).state == "waiting"
    assert jobs.of("w")
    assert jobs.cancel(id_).state == "cancelled"
    assert not (jobs.folder(id_) / ".lock").exists()
    jobs.close()


@pytest.mark.usefixtures("own_temp")
def test_no_job_outlives_the_server_and_the_next_one_says_so(tmp_path, tools):
    with (
        ExitStack() as until_the_server_has_ended,
        tools.serving(tmp_path / "home") as running,
        running.client() as client,
    ):
        workspace = tools.new(client)
        tools.with_people(client, workspace)
        job = tools.start(client, workspace, "protect", evaluate=True)
        pid = tools.pid_of(tmp_path / "home" / "jobs", job)
        until_the_server_has_ended.enter_context(tools.frozen(pid))

    assert not lives(pid)
    with tools.serving(tmp_path / "home") as running, running.client() as client:
        status, entry = running.studio.jobs.status(job), tools.entries(client)[0]
        (shown,) = running.studio.store.all()

        assert (status.state, entry.state) == ("interrupted", "interrupted")
        assert status.error.startswith("The studio ended")
        assert running.studio.path(shown, shown.data) is None


def test_an_audience_refuses_a_method_whose_claims_will_not_do(client, workspace, tools):
    policy = tools.policy.replace('method = "mdav"', 'method = "individual-ranking"')
    policy = policy.partition("[require]")[0]
    tools.with_people(client, workspace, policy=policy)
    with pytest.raises(ShoalError, match=r"Audience 'public-use' \(anybody\)"):
        tools.start(client, workspace, "protect")
    tools.note(client, workspace, audience="secure-use")
    job = tools.start(client, workspace, "protect", evaluate=False)

    assert client.served.do(job) == "done"
    again = client.served.studio.again(tools.loaded(client, workspace))
    assert "--audience secure-use" in again["command"]
    assert tools.fields(client, workspace)["release"] == {"audience": "secure-use"}
    assert client.get(f"/releases/{job}/manifest.json").json()["audience"] == "secure-use"


def test_after_a_look_the_screen_says_before_the_job_that_an_epsilon_is_not_for_anybody(
    served, client, workspace, tools, tmp_path
):
    tools.with_people(client, workspace, policy=EPSILON)
    booking.open_budget(served.settings.budget, "looked at", "5")
    names = ("name", "age", "sex", "income")
    tools.note(client, workspace, source="looked at", confirmed=names)
    before = client.get(f"/w/{workspace}/release").text
    budget_file.record_inspection(
        served.settings.budget, "looked at", budget_file.Inspection.TABLE, policy=""
    )
    (tmp_path / "people.csv").write_bytes(tools.people())
    (tmp_path / "policy.toml").write_text(EPSILON)
    with pytest.raises(InputError) as caught:  # What a job does.
        protect_file.protect(
            tmp_path / "people.csv",
            tmp_path / "policy.toml",
            tmp_path / "out",
            output=OutputOptions(audience="public-use"),
            budget=BudgetOptions(file=served.settings.budget, source="looked at"),
        )
    sentence = str(caught.value)

    with pytest.raises(InputError, match=re.escape(sentence)):
        tools.start(client, workspace, "protect")
    after, protect = (client.get(f"/w/{workspace}/{name}").text for name in ("release", "protect"))
    tools.note(client, workspace, audience="scientific-use")
    partner = client.get(f"/w/{workspace}/release").text

    assert "after an inspection of the table itself" in sentence
    assert 'id="run-now">' in before
    assert f": {STATUS_WORDS['proved']}." in before
    for page in (after, protect):
        assert 'id="run-now" disabled' in page
        assert html.escape(sentence).replace("&#x27;", "&#39;") in page
    assert 'id="run-now">' in partner
    assert f": {STATUS_WORDS['conditional']}." in partner
    assert "protect" not in tools.loaded(client, workspace).jobs


def test_the_screen_says_what_all_releases_cost_and_a_release_can_be_made_without_an_inspection(
    client, workspace, tools
):
    tools.with_people(client, workspace, policy=EPSILON)
    budget = client.served.settings.budget
    booking.open_budget(budget, "people", "5")
    names = ("name", "age", "sex", "income")
    tools.note(client, workspace, source="people", confirmed=names, audience="public-use")
    page = client.get(f"/w/{workspace}/release").text
    form = {"back": "release", "unmeasured": "yes"}
    client.post(f"/w/{workspace}/protect/run", data=form)
    assert client.served.do(tools.loaded(client, workspace).jobs["protect"]) == "done"
    accounts = booking.budget_facts(budget)
    (account,) = (one for one in accounts if one["source"] == "people")
    after = client.get(f"/w/{workspace}/release").text

    assert 'name="unmeasured"' in page
    assert account["inspections"] == [] == account["reasons"]
    assert account["cumulative"] == account["spent"] > 0
    assert account["scope"] == "per row, beside the public sex"
    assert f"epsilon {account['cumulative']} per row" in after
    assert 'id="run-now">' in after


@pytest.mark.parametrize("kind", ["protect", "compare"])
def test_without_a_table_nothing_is_started(client, workspace, tools, kind):
    with pytest.raises(InputError, match="Choose"):
        tools.start(client, workspace, kind)


INTERRUPTED_IN_A_LIBRARY = """
import os, signal, sys, time
from pathlib import Path
from shoal.studio import worker

def work(given, status):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    except KeyboardInterrupt:
        raise ValueError from None

worker.DO = dict.fromkeys(worker.DO, work)
worker.main(Path(sys.argv[1]))
"""


def test_an_error_of_a_library_that_was_interrupted_is_not_the_job_s(tmp_path):
    """The server then says that it was cancelled; pydantic makes an error of an interrupt."""
    (tmp_path / "job.json").write_text('{"kind": "profile", "arguments": {}}')
    words = [sys.executable, "-c", INTERRUPTED_IN_A_LIBRARY, str(tmp_path)]

    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as process:
        code = process.wait()

    assert code == 130
    assert json.loads((tmp_path / "status.json").read_text())["state"] == "running"
