"""Long work: in processes of its own, cancelled without a trace, told in one sentence."""

import html
import io
import json
import os
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
from shoal.errors import InputError
from shoal.pipeline import check_table, protect_file
from shoal.pipeline.options import BudgetOptions, EvaluationOptions, OutputOptions
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


def start(client, workspace, **given):
    answer = client.post(f"/api/workspaces/{workspace}/jobs", json=given)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def test_from_a_file_to_a_release_that_passes_the_check(served, client, workspace, tools, tmp_path):
    job = tools.upload(client, workspace, tools.people()).json()["id"]
    assert tools.ended(client, job)["state"] == "done"
    client.put(f"/api/workspaces/{workspace}/policy", json={"toml": tools.policy})
    job = start(client, workspace, kind="protect", evaluate=False)
    status = tools.ended(client, job)
    archive = client.get(f"/api/releases/{job}/public.zip")
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
    entry = client.get("/api/history").json()[0]
    assert (entry["id"], entry["state"], entry["rows"]) == (job, "released", 60)
    for name in ("report.html", "internal.html", "manifest.json"):
        page = client.get(f"/api/releases/{job}/{name}")
        assert page.status_code == 200
        assert "unsafe-inline" not in page.headers["content-security-policy"]
    found = client.get(f"/api/releases/{job}/verification").json()
    page = client.get(f"/w/{workspace}/releases/{job}/verification")
    assert found["holds"] is True
    assert {part["status"] for part in found["parts"]} == {"verified", "not compared"}
    assert "verified</span> Verified, except for what the folder cannot show" in page.text
    saved = client.get(f"/api/releases/{job}/internal.html", params={"save": True})
    assert "attachment" in saved.headers["content-disposition"]
    file = client.get(f"/api/workspaces/{workspace}").json()["data"]
    assert file["label"] == "people.csv"
    assert "shoal protect people.csv" in saved.text  # as the user knows it
    assert file["id"] not in saved.text
    assert str(served.studio.temporary) not in saved.text

    measured = start(client, workspace, kind="evaluate", release=job)
    status = tools.ended(client, measured)
    assert status["state"] == "done", status
    assert status["result"]["figures"] > 0
    assert (served.studio.jobs.folder(measured) / "out" / "evaluation.html").is_file()


def test_a_comparison_is_made_on_other_people_and_a_candidate_chosen(client, workspace, tools):
    tools.with_people(client, workspace, rows=80)
    path = f"/api/workspaces/{workspace}"
    early = client.post(f"{path}/jobs", json={"kind": "compare", "on_others": True})
    assert (early.status_code, client.get(f"{path}/comparison").status_code) == (422, 409)
    tools.upload(client, workspace, tools.people(80), name="same.csv", where="others")
    same = start(client, workspace, kind="compare", on_others=True, candidates=GRID, repeats=1)
    assert client.served.do(same) == "failed"
    assert "the confidential table itself" in client.get(f"/api/jobs/{same}").json()["error"]
    tools.upload(client, workspace, tools.people(60), name="others.csv", where="others")
    job = start(client, workspace, kind="compare", on_others=True, candidates=GRID, repeats=1)
    status = tools.ended(client, job)
    found = client.get(f"{path}/comparison").json()
    chosen = client.post(f"{path}/choose", json={"label": "mdav k=6"}).json()

    assert status["state"] == "done", status
    assert any("costs nothing" in sentence for sentence in status["result"]["costs"])
    assert [row["label"] for row in found["candidates"]] == ["mdav k=3", "mdav k=6"]
    assert chosen["fields"]["protect"] == {"method": "mdav", "k": 6}
    assert "--control others.csv" in client.get(f"{path}/again").json()["command"]
    assert client.post(f"{path}/undo").json()["chosen"] == ""
    assert client.get(f"{path}/policy").json()["fields"]["protect"]["k"] == 5


def test_one_release_runs_at_a_time_and_cancelled_before_it_is_out_leaves_nothing_behind(
    served, client, workspace, tools
):
    tools.with_people(client, workspace, rows=4000)
    job = start(client, workspace, kind="protect", evaluate=True)
    pid = tools.pid_of(served.settings.home / "jobs", job)
    out = served.settings.home / "jobs" / job / "out"
    until(served, job, lambda: list(out.glob(".*")))  # where the release is being made

    with tools.frozen(pid):
        second = client.post(f"/api/workspaces/{workspace}/jobs", json={"kind": "protect"})
        status = client.post(f"/api/jobs/{job}/cancel").json()

    assert second.status_code == 422
    assert "under way" in second.json()["error"]
    assert status["state"] == "cancelled"
    assert not lives(pid)
    assert not out.exists()
    assert client.get("/api/history").json()[0]["state"] == "cancelled"
    assert client.get(f"/api/releases/{job}/public.zip").status_code == 404
    assert client.post(f"/api/jobs/{job}/cancel").json()["state"] == "cancelled"


def test_cancelled_while_it_is_measured_a_release_stays_without_its_internal_report(
    served, client, workspace, tools
):
    """It is in place by then, and may be paid for."""
    tools.with_people(client, workspace, rows=4000)
    job = start(client, workspace, kind="protect", evaluate=True)
    pid = tools.pid_of(served.settings.home / "jobs", job)
    until(served, job, lambda: "evaluating" in served.studio.jobs.status(job).stage)

    with tools.frozen(pid):
        status = client.post(f"/api/jobs/{job}/cancel").json()

    assert status["state"] == "done"
    assert not lives(pid)
    assert client.get("/api/history").json()[0]["state"] == "released"
    assert client.get(f"/api/releases/{job}/public.zip").status_code == 200
    shown = client.get(f"/api/releases/{job}/internal.html")
    assert shown.status_code == 422
    assert "shoal report" in shown.json()["error"]
    assert any("confidential report is missing" in note for note in status["result"]["notes"])


def test_a_comparison_in_many_processes_is_cancelled_with_all_of_them(
    served, client, workspace, tools
):
    tools.with_people(client, workspace, rows=3000)
    job = start(client, workspace, kind="compare", repeats=3)
    pid = tools.pid_of(served.settings.home / "jobs", job)
    children = Path(f"/proc/{pid}/task/{pid}/children")
    # A helper of Python's, and the first of its own.
    until(served, job, lambda: len(children.read_text().split()) >= 2)

    with tools.frozen(pid):
        assert client.post(f"/api/jobs/{job}/cancel").json()["state"] == "cancelled"
    # All of them were killed; the system ends them when their turn comes.
    patience = time.monotonic() + 10
    while lives(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not lives(pid)
    assert not (served.studio.jobs.folder(job) / "out").exists()


def test_a_job_that_the_system_ends_fails_in_a_sentence(served, client, workspace, tools):
    tools.with_people(client, workspace, rows=4000)
    job = start(client, workspace, kind="protect", evaluate=True)
    os.killpg(tools.pid_of(served.settings.home / "jobs", job), signal.SIGKILL)
    status = tools.ended(client, job)

    assert (status["state"], status["error"]) == ("failed", KILLED)
    assert not (served.studio.jobs.folder(job) / "out").exists()


def test_an_error_is_one_sentence_and_no_cell_and_names_the_file_as_its_user_does(
    served, client, workspace, tools
):
    tools.with_people(client, workspace)
    bad = tools.policy.replace('categories = ["male", "female"]', 'categories = ["man", "woman"]')
    client.put(f"/api/workspaces/{workspace}/policy", json={"toml": bad})
    status = tools.ended(client, start(client, workspace, kind="protect", evaluate=False))

    assert status["state"] == "failed"
    assert "sex" in status["error"]
    assert "Traceback" not in status["error"]
    assert "person 1" not in status["error"]
    assert client.get("/api/history").json()[0]["sentence"] == status["error"]
    assert "Some cells of &#39;sex&#39; are not among" in client.get(f"/w/{workspace}/protect").text
    (path,) = (served.studio.temporary / workspace).rglob("people.csv")
    path.write_bytes(b"PK\x03\x04 an archive")
    for kind in ("protect", "compare"):
        status = tools.ended(client, start(client, workspace, kind=kind))
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
        workspace = client.post("/api/workspaces").json()["id"]
        tools.with_people(client, workspace)
        job = start(client, workspace, kind="protect", evaluate=True)
        pid = tools.pid_of(tmp_path / "home" / "jobs", job)
        until_the_server_has_ended.enter_context(tools.frozen(pid))

    assert not lives(pid)
    with tools.serving(tmp_path / "home") as running, running.client() as client:
        found = client.get(f"/api/jobs/{job}").json()
        entry = client.get("/api/history").json()[0]
        shown = client.get("/api/workspaces").json()[0]

    assert (found["state"], entry["state"]) == ("interrupted", "interrupted")
    assert found["error"].startswith("The studio ended")
    assert shown["data"]["here"] is False


def test_an_audience_refuses_a_method_whose_claims_will_not_do(client, workspace, tools):
    policy = tools.policy.replace('method = "mdav"', 'method = "individual-ranking"')
    policy = policy.partition("[require]")[0]
    tools.with_people(client, workspace, policy=policy)
    refused = client.post(f"/api/workspaces/{workspace}/jobs", json={"kind": "protect"})
    client.patch(f"/api/workspaces/{workspace}", json={"audience": "secure-use"})
    job = start(client, workspace, kind="protect", evaluate=False)

    assert refused.status_code == 422
    assert "Audience 'public-use' (anybody)" in refused.json()["error"]
    assert client.served.do(job) == "done"
    again = client.get(f"/api/workspaces/{workspace}/again").json()
    assert "--audience secure-use" in again["command"]
    assert client.get(f"/api/workspaces/{workspace}").json()["audience"] == "secure-use"
    assert client.get(f"/api/releases/{job}/manifest.json").json()["audience"] == "secure-use"


def test_after_a_look_the_screen_says_before_the_job_that_an_epsilon_is_not_for_anybody(
    served, client, workspace, tools, tmp_path
):
    here = f"/api/workspaces/{workspace}"
    tools.with_people(client, workspace, policy=EPSILON)
    client.post("/api/budget", json={"source": "looked at", "epsilon": "5"})
    names = ["name", "age", "sex", "income"]
    client.patch(here, json={"source": "looked at", "confirmed": names})
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

    refused = client.post(f"{here}/jobs", json={"kind": "protect"})
    after, protect = (client.get(f"/w/{workspace}/{name}").text for name in ("release", "protect"))
    client.patch(here, json={"audience": "scientific-use"})
    partner = client.get(f"/w/{workspace}/release").text

    assert "after an inspection of the table itself" in sentence
    assert (refused.status_code, refused.json()["error"]) == (422, sentence)
    assert 'id="run-now">' in before
    assert f": {STATUS_WORDS['proved']}." in before
    for page in (after, protect):
        assert 'id="run-now" disabled' in page
        assert html.escape(sentence).replace("&#x27;", "&#39;") in page
    assert 'id="run-now">' in partner
    assert f": {STATUS_WORDS['conditional']}." in partner
    assert not client.get(here).json()["jobs"].get("protect")


def test_the_screen_says_what_all_releases_cost_and_a_release_can_be_made_without_an_inspection(
    client, workspace, tools
):
    here = f"/api/workspaces/{workspace}"
    tools.with_people(client, workspace, policy=EPSILON)
    client.post("/api/budget", json={"source": "people", "epsilon": "5"})
    names = ["name", "age", "sex", "income"]
    client.patch(here, json={"source": "people", "confirmed": names, "audience": "public-use"})
    page = client.get(f"/w/{workspace}/release").text
    form = {"back": "release", "unmeasured": "yes"}
    client.post(f"/w/{workspace}/protect/run", data=form)
    assert client.served.do(client.get(here).json()["jobs"]["protect"]) == "done"
    accounts = client.get("/api/budget").json()["accounts"]
    (account,) = (one for one in accounts if one["source"] == "people")
    after = client.get(f"/w/{workspace}/release").text

    assert 'name="unmeasured"' in page
    assert account["inspections"] == [] == account["reasons"]
    assert account["cumulative"] == account["spent"] > 0
    assert account["scope"] == "per row, beside the public sex"
    assert f"epsilon {account['cumulative']} per row" in after
    assert 'id="run-now">' in after


@pytest.mark.parametrize("kind", ["protect", "compare"])
def test_without_a_table_nothing_is_started(client, workspace, kind):
    answer = client.post(f"/api/workspaces/{workspace}/jobs", json={"kind": kind})

    assert answer.status_code == 422
    assert "Choose" in answer.json()["error"]


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
