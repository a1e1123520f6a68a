"""The whole way in a real browser: from a file to a release, by `shoal studio` as a process."""

import json
import os
import re
import zipfile
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tests.studio.axe import violations
from typer.testing import CliRunner

from shoal.cli.commands import app

GRID = ("mdav", "mondrian")
COLUMNS = ("name", "age", "region", "income", "ill")


def invented(rows=300):
    rng = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            "age": rng.integers(18, 90, rows),
            "region": rng.choice(["north", "south", "east"], rows),
            "income": rng.integers(0, 90_000, rows),
            "ill": rng.choice(["yes", "no"], rows),
        }
    )


@pytest.fixture(scope="module")
def taken(desk, tools, tmp_path_factory):
    """The steward's tab with a table, a folder, and what was seen so far: the way begins."""
    folder = tmp_path_factory.mktemp("steward")
    invented().write_csv(folder / "people.csv")
    desk.tried.clear()
    tools.begin(desk, "data")
    take(desk, folder / "people.csv")
    return SimpleNamespace(tab=desk, folder=folder, seen={"data": desk.inner_text("main")})


@pytest.fixture(scope="module")
def confirmed(taken):
    """The same with every column confirmed."""
    confirm_all(taken.tab)
    taken.seen["rail"] = taken.tab.inner_text("#rail")
    return taken


@pytest.fixture(scope="module")
def second_tab(open_tab, taken, tmp_path_factory):
    """Another tab with another table."""
    path = tmp_path_factory.mktemp("second") / "two.csv"
    invented(150).write_csv(path)
    # Not before the first has one: a studio without a table leads both to its first workspace.
    assert taken.tab
    made = open_tab()
    take(made, path)
    yield made
    made.close()


@pytest.fixture
def other(second_tab):
    yield second_tab
    assert second_tab.tried == []


@pytest.fixture(scope="module")
def with_sample(second_tab, tools):
    """The second tab with the sample in a further workspace."""
    tools.begin(second_tab, "data")
    second_tab.click("#take-sample")
    second_tab.wait_for_selector("#columns-title")
    return second_tab


@pytest.fixture
def sampled(with_sample):
    yield with_sample
    assert with_sample.tried == []


def take(tab, path):
    tab.set_input_files("#file", path)
    tab.wait_for_selector("#columns-title")


def confirm_all(tab):
    """State bounds where they are asked for, and confirm the columns one by one."""
    tab.goto(f"{tab.base}/roles")
    with tab.expect_response("**/roles/persons"):
        tab.check("#one-row")
    limits = {"age": ("0", "110"), "income": ("0", "100000")}
    first = int(tab.get_attribute("#inspector", "data-place"))
    for place, name in list(enumerate(COLUMNS))[first:]:
        tab.wait_for_selector(f"#inspector[data-place='{place}']")
        if name == "ill":
            tab.check(f"#role-{place}-confidential", force=True)
            tab.wait_for_selector(f"#column-{place}.confidential")
        if name in limits:
            tab.fill(f"#low-{place}", limits[name][0])
            tab.fill(f"#high-{place}", limits[name][1])
        tab.click(f"#confirm-{place}")
        tab.wait_for_selector(f"#column-{place}.confirmed")


def start_comparison(tab, grid):
    tab.goto(f"{tab.base}/compare")
    if grid:
        tab.check("#grid-own")
        for method in grid:
            tab.check(f"#grid-{method}")
        tab.fill("#grid-k", "5, 15")
        tab.click("text=Details")
        tab.fill("#c-repeats", "1")
    tab.check("#understood")
    tab.click("#compare-now")


def test_two_tabs_do_not_mix(taken, other):
    tab = taken.tab
    tab.goto(f"{tab.base}/roles")
    other.goto(f"{other.base}/roles")
    tab.click("#confirm-0")
    tab.wait_for_selector("#column-0.confirmed")
    other.reload()

    assert tab.base != other.base
    assert "people.csv" in tab.inner_text("#rail")
    assert "two.csv" in other.inner_text("#rail")
    assert "4 of 5 columns to confirm" in tab.inner_text("#rail")
    assert "5 of 5 columns to confirm" in other.inner_text("#rail")
    assert tab.tried == []


def test_a_requirement_that_is_refused_stops_the_release_and_stays_typed(confirmed):
    tab = confirmed.tab
    tab.goto(f"{tab.base}/protect")
    tab.click("#method-mdav button")
    tab.wait_for_selector("#settings[data-method=mdav]")
    assert tab.is_enabled("#run-now")

    assert "3 may fail" not in tab.inner_text("#methods-title + p")
    tab.click("#require-fold > summary")
    tab.click("#require-l-diversity summary")
    tab.fill("#q-l-diversity-0-l", "2")
    tab.click("#run-now")  # at once: what was typed has not reached the server yet
    tab.wait_for_selector("#require-error:not(:empty)")

    for again in (False, True):
        if again:
            tab.reload()
        assert tab.input_value("#q-l-diversity-0-l") == "2"
        assert tab.get_attribute("#q-l-diversity-0-l", "aria-invalid") is None
        assert "require-error" in tab.get_attribute("#require .picker", "aria-describedby")
        assert tab.get_attribute("#q-k-anonymity", "aria-invalid") is None
        assert "(l-diversity): expected a column" in tab.inner_text("#require-error")
        assert tab.is_disabled("#run-now")
        assert tab.locator(".job").count() == 0
    tab.goto(f"{tab.base}/release")
    assert tab.is_disabled("#run-now")
    assert "Something that was typed cannot be used" in tab.inner_text("#blocked")
    assert tab.locator("#download").count() == 0

    tab.goto(f"{tab.base}/protect")
    place = COLUMNS[3:].index("ill")
    tab.check(f"#q-l-diversity-0-column-{place}", force=True)
    tab.wait_for_selector("#settings .chip >> text=may fail")
    assert "is checked on the finished table" in tab.inner_text("#plan")
    assert "may fail" not in tab.inner_text("#method-mondrian")
    tab.click("#preview-now")
    tab.wait_for_selector("#preview table", timeout=120_000)
    assert "300 rows drawn at random from your table" in tab.inner_text("#preview")
    assert tab.locator("#preview .pictures svg").count() == 4
    tab.click("#require-fold > summary")
    tab.uncheck(f"#q-l-diversity-0-column-{place}", force=True)
    tab.wait_for_selector("#require-error:not(:empty)")  # the page is a new one by then
    tab.fill("#q-l-diversity-0-l", "")
    tab.press("#q-l-diversity-0-l", "Tab")
    tab.wait_for_selector("#run-now:enabled")
    tab.wait_for_selector("#settings .chip >> text=fits")
    assert tab.tried == []


@pytest.fixture(scope="module")
def walked(confirmed):
    """The rest of the way, gone once; what was seen on it and what came out."""
    tab, folder, seen = confirmed.tab, confirmed.folder, confirmed.seen
    start_comparison(tab, GRID)
    tab.wait_for_selector("#frontier svg >> nth=0", timeout=120_000)
    seen["compare"] = tab.inner_text("main")
    tab.click("tr:has-text('k=15') button[data-place] >> text=Groups of similar people (MDAV)")
    tab.wait_for_selector("#candidate h3")
    seen["candidate"] = tab.inner_text("#candidate")
    tab.click("#choose")
    tab.wait_for_url("**/protect")
    seen["k"] = tab.input_value("#p-k")
    tab.goto(f"{tab.base}/release")
    seen["checklist"] = tab.inner_text(".checklist")
    tab.goto(f"{tab.base}/protect")
    tab.click("#run-now")
    tab.wait_for_selector("text=See the release", timeout=120_000)
    tab.click("text=See the release")
    tab.wait_for_selector("#download")
    seen["released"] = tab.inner_text("main")
    with tab.expect_download() as download:
        tab.click("#download")
    download.value.save_as(folder / "release.zip")
    seen["pictures"] = tab.locator(".pictures svg").count()
    seen["folded"] = tab.is_hidden("#again-command")
    href = tab.get_attribute("text=Confidential report", "href")
    seen["report"] = tab.evaluate("async href => (await fetch(href)).text()", href)
    tab.click("text=For scripts")
    seen["axe"] = violations(tab)
    with tab.expect_download() as download:
        tab.click("text=The policy of this release")
    download.value.save_as(folder / "policy.toml")
    command = tab.text_content("#again-command")
    tab.goto(tab.context.root)
    seen["axe"] += violations(tab)
    tried = list(tab.tried)
    with tab.context.browser.new_context() as outside:  # the other tab goes on asking meanwhile
        stranger = outside.new_page()
        seen["stranger"] = stranger.goto(tab.context.root).status
        seen["axe"] += violations(stranger)
    with zipfile.ZipFile(folder / "release.zip") as archive:
        archive.extractall(folder / "zip")
    (public,) = (folder / "zip").iterdir()
    return SimpleNamespace(
        tab=tab, folder=folder, public=public, command=command, seen=seen, tried=tried
    )


def shoal(*words, cwd, monkeypatch):
    monkeypatch.chdir(cwd)
    return CliRunner().invoke(app, words)


def test_axe_finds_nothing_on_the_release_screen_at_home_and_outside(walked):
    assert walked.seen["axe"] == []
    assert walked.seen["stranger"] == 401


def test_nothing_went_wrong_on_the_way_and_nothing_left_the_machine(walked):
    assert walked.tried == []


def test_each_screen_says_what_it_found(walked):
    assert "300 rows" in walked.seen["data"]
    assert "5 columns confirmed" in walked.seen["rail"]
    assert "Choosing by inspecting the table costs privacy" in walked.seen["compare"]
    assert "Groups of similar people (MDAV)" in walked.seen["compare"]
    assert "k=15" in walked.seen["compare"]
    assert "Columns that lose most" in walked.seen["candidate"]
    assert walked.seen["k"] == "15"
    assert "Every role is confirmed." in walked.seen["checklist"]
    assert "holds" in walked.seen["released"]
    for words in ("What is promised?", "What does an attacker gain?", "Two columns together",
                  "Worst column", "Published unprotected", "Before and after"):  # fmt: skip
        assert words in walked.seen["released"]
    assert walked.seen["pictures"] >= 4 + 1 + 3  # columns, associations, pairs
    assert walked.seen["folded"]
    for flag in ("--policy", "[protect]", "[columns]"):
        assert flag not in walked.seen["released"]


def test_the_officers_report_names_the_file_as_the_steward_does_and_the_public_folder_not(walked):
    assert "Data: people.csv" in walked.seen["report"]
    assert "shoal protect people.csv" in walked.seen["report"]
    assert not re.search(r"[0-9a-f]{16}\.csv", walked.seen["report"])
    for path in walked.public.iterdir():
        assert b"people.csv" not in path.read_bytes(), path.name


def test_the_downloaded_table_passes_the_check(walked, monkeypatch):
    names = {path.name for path in walked.public.iterdir()}
    about = {"manifest.json", "report.html", "codebook.xml", "datapackage.json"}
    assert names == {"release.csv", *about}

    checked = shoal(
        "check",
        str(walked.public / "release.csv"),
        "--policy",
        "policy.toml",
        cwd=walked.folder,
        monkeypatch=monkeypatch,
    )

    assert checked.exit_code == 0, checked.stderr
    assert "holds: 5-anonymity of age + region" in checked.stdout


def test_the_command_that_the_page_shows_gives_the_same_manifest(walked, monkeypatch):
    assert walked.command.startswith("shoal protect people.csv --policy policy.toml")

    done = shoal(*walked.command.split()[1:], cwd=walked.folder, monkeypatch=monkeypatch)
    assert done.exit_code == 0, done.stderr
    ours, theirs = (
        json.loads((folder / "manifest.json").read_text())
        for folder in (walked.public, walked.folder / "release")
    )

    # The order of the rows is drawn anew, and with it the file and its digest.
    for manifest in (ours, theirs):
        del manifest["created"], manifest["files"]
        for check in manifest["checks"]:
            del check["witness"]["rows"]
    assert ours == theirs


def test_after_a_change_the_release_is_out_of_date_and_what_is_not_taken_yet_holds_the_next(walked):
    tab = walked.tab
    tab.goto(f"{tab.base}/protect")
    k = tab.input_value("#p-k")
    tab.fill("#p-k", "7")
    tab.press("#p-k", "Tab")
    tab.wait_for_selector("#settings >> text=k-anonymity with k = 7")
    tab.goto(f"{tab.base}/release")

    assert f"Smallest group (k): {k} → 7" in tab.inner_text("#out-of-date")
    assert "out of date" in tab.inner_text(".checklist")
    assert f"k = {k}" not in tab.inner_text(".checklist")
    assert "out of date" in tab.inner_text("#rail")
    tab.click("#budget-title")
    tab.fill("#source", "people")  # typed and not kept: a release would not be booked
    tab.click("#run-now")
    assert "not taken yet" in tab.inner_text("#held")
    assert tab.locator("#cancel").count() == 0
    assert tab.tried == []


def test_a_reload_goes_on_with_the_job_and_cancel_leaves_nothing_behind(other, home, tools):
    tab = other
    start_comparison(tab, "")
    tab.wait_for_selector("#cancel")
    job = tab.get_attribute("form:has(#cancel)", "action").split("/")[-2]
    out = home / "jobs" / job / "out"
    while not out.exists():  # there is something to leave behind
        tab.wait_for_timeout(20)
    with tools.frozen(tools.pid_of(home / "jobs", job)):
        reloaded_and_cancelled(tab, job)

    assert not out.exists()
    assert tab.locator("#frontier").count() == 0
    assert tab.locator("#compare-now").count() == 1


def reloaded_and_cancelled(tab, job):
    tab.reload()
    tab.wait_for_selector("#cancel")
    assert tab.get_attribute("form:has(#cancel)", "action").split("/")[-2] == job
    assert tab.locator(".job progress:visible").count() == 1
    tab.goto(f"{tab.base}/roles")  # the bar is on every screen, and leads back
    tab.wait_for_selector("#job-bar >> text=Comparing methods")
    assert "so far" in tab.inner_text("#job-bar")
    tab.goto(f"{tab.base}/compare")
    tab.wait_for_selector("#cancel")
    tab.click("#cancel")
    tab.wait_for_selector("text=Cancelled. Nothing was written.")


def test_fields_and_text_follow_each_other_and_undo_takes_a_change_back(other):
    tab = other
    tab.goto(f"{tab.base}/roles")

    tab.click("#summary-3")
    tab.check("#role-3-quasi-identifier", force=True)
    assert tab.is_hidden("#toml")
    tab.click("#show-text")
    tab.wait_for_selector("#column-3.quasi-identifier")
    typed = tab.input_value("#toml")
    assert 'income = { role = "quasi-identifier"' in typed

    tab.fill("#toml", typed.replace('income = { role = "quasi-identifier"',
                                    'income = { role = "other"'))  # fmt: skip
    tab.wait_for_selector("#column-3.other")

    assert tab.inner_text("#undo").endswith("Undo: role of income")
    tab.focus("#column-3")
    with tab.expect_navigation():
        tab.keyboard.press("Control+z")
    assert tab.inner_text("#redo").endswith("Redo: role of income")
    tab.click("#show-text")
    assert tab.locator("#column-3.quasi-identifier").count() == 1
    tab.fill("#toml", tab.input_value("#toml").replace('"identifier"', '"nobody"', 1))
    tab.wait_for_selector("[data-line]")
    line = tab.input_value("#toml").split("\n").index('name = "nobody"') + 1
    assert f"Go to line {line}" in tab.inner_text("#policy-error")
    assert "expected one of identifier" in tab.inner_text("#policy-error")
    assert tab.locator("#column-0.identifier").count() == 1


def test_the_sample_comes_with_a_policy_and_cards_and_audiences_change_what_would_be_done(
    sampled,
):
    tab = sampled
    assert "10,000 rows" in tab.inner_text("#rail")
    assert "15 columns confirmed" in tab.inner_text("#rail")

    tab.goto(f"{tab.base}/protect")
    before = tab.locator(".method:visible").count()
    tab.click("#audience-fold > summary")
    tab.check("#audience-secure-use")
    tab.wait_for_selector("#audience-secure-use[checked]")  # as the answer has it
    assert tab.locator(".method:visible").count() >= before
    tab.click("#method-mondrian button")
    tab.wait_for_selector("#settings[data-method=mondrian]")
    assert tab.inner_text("#settings-title") == "Groups by cuts at medians (Mondrian)"
    tab.fill("#p-k", "7")
    tab.press("#p-k", "Tab")
    tab.wait_for_selector("#settings >> text=k-anonymity with k = 7")
    tab.fill("#p-k", "many")
    tab.press("#p-k", "Tab")
    tab.wait_for_selector("#parameters .error >> text=expected a whole number")

    tab.click("#require-fold > summary")
    tab.fill("#q-k-anonymity", "9")
    tab.press("#q-k-anonymity", "Tab")
    tab.wait_for_selector("#settings .note.alarm >> text=requires 9-anonymity")
    tab.fill("#q-k-anonymity", "")
    tab.press("#q-k-anonymity", "Tab")
    tab.wait_for_selector("#settings:not(:has(.note.alarm))")
    plan = tab.inner_text("#plan")
    assert "At most 1,428 groups of k = 7 or more records." in plan
    assert "A run takes about" in plan
    assert "[protect]" not in tab.inner_text("main")

    tab.context.set_offline(True)
    tab.wait_for_selector("#lost:not([hidden]) >> text=connection to the studio is lost")
    tab.context.set_offline(False)
    tab.wait_for_selector("#lost", state="hidden")
    for one in tab.context.pages:
        one.tried.clear()  # that the network was gone

    tab.goto(f"{tab.base}/roles")
    tab.click("#summary-5")
    tab.wait_for_selector("#inspector[data-place='5'] #hierarchy .levels")
    assert 'method = "mondrian"\nk = 7' in tab.input_value("#toml")
    assert "# per week" in tab.input_value("#toml"), "comments of the policy stay"


def test_the_lattice_is_pointed_at_and_clicked_and_of_a_large_one_a_part_is_drawn(
    sampled,
):
    tab = sampled
    tab.goto(f"{tab.base}/protect")
    tab.click("#method-full-domain button")
    tab.wait_for_selector("#settings[data-method='full-domain']")
    tab.click("#inspect-now")
    tab.wait_for_selector("#lattice svg", timeout=120_000)
    whole = tab.locator("#lattice g.node").count()

    assert whole == tab.locator("#inspection .points tbody tr").count() > 1
    assert violations(tab, "#inspection") == []
    node = tab.locator("#lattice g.node").first
    node.hover()
    assert tab.locator("tr.pointed").count() == 1
    node.click()
    tab.wait_for_selector("#free-levels")
    assert tab.locator("tr.picked").count() == 1
    shot(tab, "small")
    tab.click("#free-levels")
    tab.wait_for_selector("#free-levels", state="detached")

    tab.click("#parameters summary")
    tab.fill("[name='p.intervals.age']", "2, 4, 8, 16, 32")
    tab.press("[name='p.intervals.age']", "Tab")
    tab.wait_for_selector("text=The settings have changed since.")
    tab.click("#inspect-now")
    tab.wait_for_selector("#part", timeout=120_000)
    shot(tab, "large")
    assert "combinations are shown" in tab.inner_text("#part")
    assert tab.locator("#lattice g.node").count() <= 60
    assert violations(tab, "#inspection", whole=False) == []


def shot(tab, name):
    if folder := os.environ.get("SHOAL_SHOTS"):
        tab.locator("#inspection").screenshot(path=f"{folder}/{name}.png")


def test_an_edit_on_protect_keeps_the_place_the_focus_and_what_was_unfolded(sampled):
    tab = sampled
    tab.set_viewport_size({"width": 1440, "height": 700})
    tab.goto(f"{tab.base}/protect")
    tab.click("#method-mdav button")
    tab.wait_for_selector("#settings[data-method=mdav]")
    words = [len(tab.inner_text(part).split()) for part in ("main", "#inspection")]
    assert words[0] - words[1] <= 450
    tab.click("#require-fold > summary")
    tab.click("#parameters summary")
    tab.fill("#p-k", "6")
    tab.evaluate("scrollTo(0, 80)")
    tab.press("#p-k", "Tab")
    tab.wait_for_selector("#settings >> text=k-anonymity with k = 6")

    assert tab.evaluate("scrollY") == 80
    assert tab.evaluate("document.activeElement.id") not in {"", "p-k"}
    assert tab.evaluate("document.getElementById('require-fold').open")
    assert tab.locator("#run-now").is_visible()
    bottom = tab.evaluate("document.getElementById('run-now').getBoundingClientRect().bottom")
    assert 0 < bottom <= 700, "the button to protect is always in view"
    tab.set_viewport_size({"width": 1280, "height": 900})


def test_an_unknown_method_is_an_error_at_the_editor(sampled):
    tab = sampled
    tab.goto(f"{tab.base}/roles")
    text = tab.input_value("#toml")
    tab.click("#show-text")
    tab.fill("#toml", re.sub('method = ".*"', 'method = "mdaw"', text))
    tab.press("#toml", "Tab")
    tab.wait_for_selector("text=mdaw >> nth=0")

    assert "Did you mean 'mdav'" in tab.inner_text("main")
    tab.goto(f"{tab.base}/protect")
    assert tab.locator("#settings").count() == 1
