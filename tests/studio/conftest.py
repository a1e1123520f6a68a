"""A studio that really listens, and clients that have its session."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import polars as pl
import pytest

from shoal.errors import ShoalError
from shoal.policy.load import to_json_value
from shoal.studio import policy_document, profile, worker
from shoal.studio.jobs import JobKind, JobState
from shoal.studio.private_files import read_json, write_json
from shoal.studio.server import create_app
from shoal.studio.server import server as make_server
from shoal.studio.settings import Settings

TOKEN = "a-token-of-the-tests"  # noqa: S105 (invented)
FINAL = {"done", "failed", "cancelled", "interrupted"}


class Loopback(httpx.HTTPTransport):
    """Reaches names under `.localhost` as browsers and curl do: without asking anybody."""

    def handle_request(self, request):
        url = request.url.copy_with(host="127.0.0.1")
        return super().handle_request(
            httpx.Request(
                request.method,
                url,
                headers=request.headers,
                stream=request.stream,
                extensions=request.extensions,
            )
        )


def browsing(address, **options):
    """A client of an address, with the origin of its pages unless told."""
    given = {"base_url": address, "headers": {"origin": address}, "timeout": 60}
    return httpx.Client(**given | {"transport": Loopback()} | options)


@dataclass
class Served:
    """A running studio."""

    app: Any
    settings: Settings
    address: str

    @property
    def studio(self):
        return self.app.state.studio

    @contextmanager
    def client(self, *, session=True, **options):
        """A browser of its own, as far as a client is one; with a session unless told."""
        with browsing(self.address, **options) as made:
            made.served = self
            if session:
                answer = made.get("/", params={"token": TOKEN}, follow_redirects=False)
                assert answer.status_code == 303
            yield made

    def do(self, job):
        """Do a job that was just started, as its process does, but here: a process takes longer.

        For tests that want what comes of it; test_jobs.py is about the processes.
        """
        if self.studio.jobs.cancel(job).state == JobState.CANCELLED:  # else it was quicker
            folder = self.studio.jobs.folder(job)
            stated = read_json(folder / "job.json")
            given, note = stated["arguments"], worker.ProgressNote(folder)
            paths = {key: Path(given[key]) for key in worker.PATHS if given.get(key)}
            try:
                found = DO[stated["kind"]]({**given, **paths}, note)
            except ShoalError as error:
                note.end(JobState.FAILED, worker.name_files(str(error), given.get("names", {})))
            else:
                write_json(folder / "result.json", found)
                note.end(JobState.DONE)
            self.studio.finish(self.studio.jobs.status(job))
        return self.studio.jobs.status(job).state


def look_at(given, note):
    """See `worker._profile`, which limits the memory of its process, and we must not."""
    asked = {name: given[name] for name in ("label", "reading")}
    return profile.write(given["data"], limit=given["decoded_limit"], progress=note, **asked)


DO = {**worker.DO, JobKind.PROFILE: look_at}


@contextmanager
def serving(home, **options):
    """Serve a studio from a home until the block ends."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        settings = Settings(home=home, port=port, token=TOKEN, **options)
        app = create_app(settings)
        server = make_server(app)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                time.sleep(0.01)
            yield Served(app, settings, settings.address)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def own_temp(tmp_path_factory):
    """A folder for temporary folders, so that tests see their own alone."""
    folder = tmp_path_factory.mktemp("temporary")
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    yield folder
    tempfile.tempdir = before


@pytest.fixture(scope="module")
def served(tmp_path_factory, own_temp):
    """One studio for the tests of a file."""
    assert own_temp.is_dir()
    with serving(tmp_path_factory.mktemp("home") / "studio", upload_limit=1 << 20) as running:
        yield running


@pytest.fixture
def client(served):
    with served.client() as made:
        yield made


@pytest.fixture
def workspace(client):
    """The id of an empty workspace."""
    return new(client)


def new(client):
    """Make a workspace, and return its id."""
    answer = client.post("/new", follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].split("/")[2]


def loaded(client, workspace):
    """Return the state of a workspace."""
    return client.served.studio.store.load(workspace)


def fields(client, workspace):
    """Return the policy of a workspace as tables."""
    return to_json_value(policy_document.parse_toml(loaded(client, workspace).policy))


def put(client, workspace, policy, public=()):
    """Take a policy as text, as the page does, in the studio's own process."""
    studio = client.served.studio
    return studio.put_policy(loaded(client, workspace), policy, settles=["policy"], public=public)


def change(client, workspace, **tables):
    """Change tables of the policy."""
    document = policy_document.parse_toml(loaded(client, workspace).policy)
    columns = {**document.get("columns", {}), **(tables.pop("columns", None) or {})}
    text = policy_document.write_plain({**document, **tables, "columns": columns})
    return client.served.studio.put_policy(loaded(client, workspace), text)


def note(client, workspace, **changed):
    """Change what a workspace knows beside its policy."""
    if audience := changed.pop("audience", None):
        change(client, workspace, release={"audience": audience})
    client.served.studio.store.change(workspace, **changed)


def start(client, workspace, kind, **given):
    """Start long work, and return the job."""
    studio, candidates = client.served.studio, given.pop("candidates", None)
    if kind == "compare":
        usual = {"repeats": 3, "max_risk": 0.1, "any_claim": False, "rows": 20_000, "seed": 0}
        given = {**usual, "axes": "advantage", **given}
    if candidates is not None:
        given["candidates"] = {"candidate": candidates}
    return getattr(studio, f"start_{kind}")(loaded(client, workspace), **given)


def entries(client):
    """Return the history of releases, the newest first."""
    return client.served.studio.history.entries()


def ended(client, job):
    """Wait for a job and give its last status."""
    deadline, patience = time.monotonic() + 120, 0.05
    while (now := vars(client.served.studio.jobs.status(job)))["state"] not in FINAL:
        assert time.monotonic() < deadline, now
        time.sleep(patience)
        patience = min(patience * 1.3, 0.4)  # asking often would cost as much as the job
    return now


@contextmanager
def frozen(group):
    """Keep a group of processes from going on before it is asked to end, or the block is over.

    However fast the machine is, its job is not done by then; and one that is stopped costs nothing.
    SIGTERM waits for a stopped process, which goes on with it first of all.
    """
    over = Event()

    def wake():
        while not asked_to_end(group) and not over.wait(0.01):
            pass
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGCONT)

    os.killpg(group, signal.SIGSTOP)
    thread = Thread(target=wake)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def asked_to_end(pid):
    """Whether SIGTERM waits for a process, or it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return bool(int(status.partition("ShdPnd:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1)


def pid_of(jobs, job):
    """The number of a job's process, once it lives; `jobs` is the folder of all of them."""
    path = Path(jobs) / job / ".lock"
    deadline = time.monotonic() + 60
    while not path.is_file() or not path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(path.read_text())


def upload(client, workspace, content, name="people.csv", where="data"):
    """Send a file as the script of the page does."""
    return client.post(
        f"/w/{workspace}/{where}",
        params={"label": name},
        content=content,
        headers={"content-type": "application/octet-stream"},
    )


def people(rows=60):
    """Invented people as CSV."""
    frame = pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            "age": [20 + 7 * i % 60 for i in range(rows)],
            "sex": ["male", "female"] * (rows // 2),
            "income": [1000 + 37 * i for i in range(rows)],
        }
    )
    return frame.write_csv().encode()


POLICY = """
version = 1
one_row_per_person = true
[columns]
name = "identifier"
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
sex = { role = "quasi-identifier", kind = "nominal", categories = ["male", "female"] }
income = { role = "confidential", kind = "numeric", bounds = [0, 1000000] }
[protect]
method = "mdav"
k = 5
[require]
k-anonymity = 5
"""


def with_table(client, workspace, content, name="people.csv"):
    """Give a workspace a table that was looked at."""
    job = upload(client, workspace, content, name).json()["job"]
    assert client.served.do(job) == "done"


def with_people(client, workspace, rows=60, policy=POLICY):
    """Bring a workspace to the point where a release can be made."""
    with_table(client, workspace, people(rows))
    put(client, workspace, policy)


BEGIN = """async ([content, policy, confirmed, released]) => {
  const send = async (path, body, type = "application/x-www-form-urlencoded") => {
    const answer = await fetch(path, {method: "POST", body, headers: {"content-type": type}});
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  };
  const shows = async (path, mark) => {
    while (!(await (await fetch(path)).text()).includes(mark))
      await new Promise(done => setTimeout(done, 100));
  };
  const here = new URL((await send("/new", "")).url).pathname.replace("/data", "");
  const sent = "application/octet-stream";
  if (content) {
    await send(`${here}/data?label=people.csv`, content, sent);
    await shows(`${here}/data`, "columns-title");
  }
  if (policy) await send(`${here}/roles/policy`, new URLSearchParams({toml: policy}));
  const places = confirmed && confirmed.map((_, place) => place).join(",");
  if (confirmed) await send(`${here}/roles/rows`, new URLSearchParams({places, confirm: "yes"}));
  if (released) {
    await send(`${here}/protect/run`, new URLSearchParams({back: "release", unmeasured: "yes"}));
    await shows(`${here}/release`, "/public.zip");
  }
  return here.split("/")[2];
}"""


def begin(tab, screen, content=None, policy=None, confirmed=None, *, released=False):
    """Show a screen of a new workspace, and bring it so far without a page for every step."""
    root = tab.context.root
    if not tab.url.startswith(root):
        tab.goto(root)
    given = [content and content.decode(), policy, confirmed, released]
    tab.base = f"{root}/w/{tab.evaluate(BEGIN, given)}"
    tab.goto(f"{tab.base}/{screen}")


class Tools:
    """Helpers for tests that cannot import this file."""

    serving = staticmethod(serving)
    browsing = staticmethod(browsing)
    ended = staticmethod(ended)
    new = staticmethod(new)
    loaded = staticmethod(loaded)
    fields = staticmethod(fields)
    put = staticmethod(put)
    change = staticmethod(change)
    note = staticmethod(note)
    start = staticmethod(start)
    entries = staticmethod(entries)
    frozen = staticmethod(frozen)
    pid_of = staticmethod(pid_of)
    upload = staticmethod(upload)
    people = staticmethod(people)
    with_table = staticmethod(with_table)
    with_people = staticmethod(with_people)
    begin = staticmethod(begin)
    policy = POLICY
    token = TOKEN


@pytest.fixture(scope="session")
def tools():
    return Tools


@contextmanager
def command(home, *, temporary, **options):
    """`shoal studio` as a process; gives it, its address with the token, and its output file."""
    log = Path(temporary) / "studio.log"
    words = [sys.executable, "-m", "shoal", "studio", "--port", "0", "--no-browser",
             "--data", str(home), *options.get("words", ())]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(
            words, stdin=options.get("stdin"), stdout=subprocess.PIPE, stderr=out, text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )  # fmt: skip
    try:
        line = process.stdout.readline()
        assert "http://" in line, (line, log.read_text())
        yield process, line.split()[-1], log
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def run_studio():
    return command


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """Where the studio of the browser tests keeps its things."""
    return tmp_path_factory.mktemp("studio") / "home"


@pytest.fixture(scope="session")
def context(chromium, run_studio, home, tmp_path_factory):
    """A browser with a session at a studio that is a process of its own, one for all files."""
    temporary = tmp_path_factory.mktemp("temporary")
    with run_studio(home, temporary=temporary) as (_, address, _):
        made = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        made.set_default_timeout(60_000)
        made.first = made.new_page()
        made.first.goto(address)
        made.root = made.first.url.partition("/w/")[0]
        watch(made.first)
        yield made
        made.close()


def watch(tab):
    """Keep a list of everything that goes wrong in a tab."""
    root = tab.context.root
    tab.tried = []
    tab.on("console", lambda said: tab.tried.append(said.text))
    tab.on("pageerror", lambda error: tab.tried.append(str(error)))
    tab.on("dialog", lambda dialog: (tab.tried.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda asked: asked.url.startswith(root) or tab.tried.append(asked.url))


@pytest.fixture(scope="session")
def desk(context):
    """The tab that a session begins with: a new one costs as much as three pages in it."""
    return context.first


@pytest.fixture(scope="session")
def open_tab(context):
    """Open further tabs, each with a new workspace."""

    def opened():
        tab = context.new_page()
        watch(tab)
        tab.goto(context.root)
        if tab.locator("#new").count():  # else the studio is new and has begun one itself
            tab.click("#new")
            tab.wait_for_url("**/w/*/data")
        tab.base = tab.url.rpartition("/")[0]
        return tab

    return opened
