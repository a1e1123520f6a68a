"""The command, as a process: its address, its log, its end, and its death."""

import json
import signal
import socket
import stat
import sys
import time
import webbrowser
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from typer.testing import CliRunner

from shoal.cli.commands import app
from shoal.pipeline import booking
from shoal.studio import server
from shoal.studio.history import History

LAPLACE = """
version = 1
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
sex = "identifier"
income = { role = "quasi-identifier", kind = "numeric", bounds = [0, 1000000] }
[reading]
delimiter = ","
decimal = "."
[protect]
method = "laplace"
epsilon = 0.5
"""


@pytest.fixture
def connected(tools):
    return lambda address: connecting(address, tools)


@contextmanager
def connecting(address, tools):
    """A client with the session that the printed address opens."""
    base, _, token = address.partition("/?token=")
    deadline = time.monotonic() + 60
    with tools.browsing(base) as client:
        while True:
            try:
                answer = client.get("/", params={"token": token})
            except httpx.ConnectError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            else:
                assert answer.status_code == 303
                yield client
                return


def listening_at(port):
    """Addresses at which somebody listens at a port, as the system writes them."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")]


def command(*words):
    return CliRunner().invoke(app, ["studio", "--no-browser", *words])


def test_the_token_is_printed_once_and_never_logged_and_ctrl_c_tidies_up(
    tmp_path, run_studio, tools, connected
):
    with run_studio(tmp_path / "home", temporary=tmp_path) as (process, address, log):
        token = address.partition("token=")[2]
        with connected(address) as client:
            with tools.browsing(str(client.base_url)) as stranger:
                stranger.get(f"/?token={token}")
                stranger.get("/?token=wrong-one")
                stranger.get(f"/w/x?token={token}")
            tools.upload(client, tools.new(client), tools.people())
            left = list(tmp_path.glob("shoal-studio-*"))
            listening = listening_at(client.base_url.port)
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
            code = process.wait(30)

    assert len(token) > 40
    assert len(left) == 1
    assert not left[0].exists()
    assert code == 130
    assert listening == [f"0100007F:{client.base_url.port:04X}"]  # 127.0.0.1
    for text in (rest, log.read_text()):
        assert token not in text
        assert "wrong-one" not in text
        assert "Traceback" not in text
    assert not [
        p
        for p in (tmp_path / "home").rglob("*")
        if p.is_file() and token.encode() in p.read_bytes()
    ]


def alive(process):
    """Whether a process runs; one that has ended and that nobody has asked for does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def test_a_killed_server_restarts_with_history_and_budget_right(
    tmp_path, run_studio, tools, connected
):
    home, jobs = tmp_path / "home", tmp_path / "home" / "jobs"

    def status(job):
        return json.loads((jobs / job / "status.json").read_text())

    def wait(job, reached):
        deadline = time.monotonic() + 60
        while not reached(status(job) if (jobs / job / "status.json").is_file() else {}):
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def run(client, page, **data):
        """Ask for a release; the server knows of the end of a job when its process is gone."""
        deadline = time.monotonic() + 60
        while (answer := client.post(f"{page}/protect/run", data=data)).status_code == 422:
            assert time.monotonic() < deadline, answer.text
            time.sleep(0.05)

    def newest(before=()):
        (made,) = {path.name for path in jobs.iterdir()} - set(before)
        return made

    with (
        run_studio(home, temporary=tmp_path) as (process, address, _),
        connected(address) as client,
    ):
        workspace = tools.new(client)
        page = f"/w/{workspace}"
        read = tools.upload(client, workspace, tools.people(8000)).json()["job"]
        wait(read, lambda now: now.get("state") == "done")
        client.post(f"{page}/roles/policy", data={"toml": LAPLACE})
        client.post(f"{page}/release/budget", data={"source": "people", "epsilon": "1"})
        client.post(f"{page}/roles/rows", data={"places": "0,1,2,3", "confirm": "yes"})
        run(client, page, unmeasured="yes")
        first = newest([read])
        run(client, page)
        second = newest([read, first])
        worker = tools.pid_of(jobs, second)
        wait(second, lambda now: "evaluating" in now.get("stage", ""))
        process.kill()
        process.wait()

    with (
        run_studio(home, temporary=tmp_path) as (process, address, _),
        connected(address) as client,
    ):
        wait(second, lambda _: not alive(worker))
        shown = client.get(f"{page}/data").text
        archive = client.get(f"/releases/{first}/public.zip")
        third = client.post(f"{page}/protect/run", data={})
        process.send_signal(signal.SIGTERM)
        process.wait(30)

    entries = History(home).entries()
    (account,) = booking.budget_facts(home / "budget.db")
    assert [(entry.id, entry.state) for entry in entries] == [
        (second, "released"), (first, "released")
    ]  # fmt: skip
    assert all(entry.privacy_losses for entry in entries)  # it was out before it was measured
    assert (account["spent"], account["remaining"]) == (1, 0)
    assert [entry["note"] for entry in account["entries"]] == [
        f"release-{first}", f"release-{second}"
    ]  # fmt: skip
    assert [entry["status"] for entry in account["entries"]] == ["released", "released"]
    assert archive.status_code == 200
    assert "again" in shown
    assert third.status_code == 422
    assert (jobs / second / "out" / f"release-{second}").exists()
    assert not list(tmp_path.glob("shoal-studio-*"))


def test_a_port_that_is_taken_or_is_none_is_said_in_a_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = command("--port", str(port), "--data", str(tmp_path / "home"))
    wrong = command("--port", "70000", "--data", str(tmp_path / "home"))

    assert (done.exit_code, wrong.exit_code) == (2, 2)
    assert done.stderr.startswith("shoal: Cannot listen on 127.0.0.1")
    assert "--port" in done.stderr
    assert "70000" in wrong.stderr


@pytest.mark.usefixtures("own_temp")
def test_a_home_that_is_in_use_or_cannot_be_made_is_said_in_a_sentence(tmp_path, tools):
    (tmp_path / "file").write_text("")
    impossible = command("--port", "0", "--data", str(tmp_path / "file" / "home"))
    with tools.serving(tmp_path / "home"):
        used = command("--port", "0", "--data", str(tmp_path / "home"))

    assert (impossible.exit_code, used.exit_code) == (2, 2)
    assert "Cannot use the folder" in impossible.stderr
    assert "Another studio works in" in used.stderr


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("shoal.studio")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    done = command()

    assert done.exit_code == 2
    assert "shoal[studio]" in done.stderr


def test_another_host_is_warned_of_and_a_wrong_one_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_arguments, **_named: None)
    words = ("--port", "0", "--data", str(tmp_path / "home"))
    done = command("--host", "0.0.0.0", *words)  # noqa: S104 (what the test is about)
    usual = command(*words)
    wrong = command("--host", "no.such.host.invalid", *words)

    assert "warning: other machines can reach this studio" in done.stderr
    assert "ssh -L" in done.stderr
    assert (usual.exit_code, usual.stderr) == (0, "")
    assert wrong.exit_code == 2
    assert "--host" in wrong.stderr


def test_the_browser_is_opened_by_a_file_that_its_owner_alone_may_read(tmp_path, monkeypatch):
    seen = []

    def look(address):
        path = Path(address.removeprefix("file://"))
        seen.append((stat.S_IMODE(path.stat().st_mode), path.read_text()))

    monkeypatch.setattr(server, "SOON", 0)
    monkeypatch.setattr(webbrowser, "open", look)
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_arguments, **_named: time.sleep(0.3))
    done = CliRunner().invoke(app, ["studio", "--port", "0", "--data", str(tmp_path / "home")])
    token = done.stdout.partition("token=")[2].split()[0]

    ((mode, page),) = seen
    assert mode == 0o600
    assert token in page
    assert not (tmp_path / "home" / "open.html").exists()
