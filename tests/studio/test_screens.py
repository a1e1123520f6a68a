"""How the five screens look and read: hostile names, contrast, narrow windows, the keyboard."""

import json
import re
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from tests.studio.axe import violations

HOSTILE = "</script><img src=x onerror=alert(1)>"
QUOTED = "\" onmouseover=alert(2) x='{{ 7 * 7 }}"
LONG = "column" * 40
SCREENS = ("data", "roles", "protect", "compare", "release")
VALUES = json.dumps([HOSTILE, "b", QUOTED])
FILE = "<b>people & co.csv"

POLICY = f"""version = 1
one_row_per_person = true
[columns]
name = "identifier"
{json.dumps(HOSTILE)} = {{ role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }}
{json.dumps(QUOTED)} = {{ role = "quasi-identifier", kind = "nominal", categories = {VALUES} }}
{LONG} = {{ role = "confidential", kind = "numeric", bounds = [0, 100000] }}
ill = {{ role = "confidential", kind = "nominal", categories = ["yes", "no", "{{% raw %}}"] }}
[protect]
method = "mdav"
k = 5
[require]
k-anonymity = 5
[context]
purpose = {json.dumps(HOSTILE)}
approver = {json.dumps(QUOTED)}
"""


def hostile_people(rows=120):
    """People whose columns and values are written by somebody with bad intentions."""
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            HOSTILE: rng.integers(18, 90, rows),
            QUOTED: rng.choice([HOSTILE, "b", QUOTED], rows),
            LONG: rng.integers(0, 90_000, rows),
            "ill": rng.choice(["yes", "no", "{% raw %}"], rows),
        }
    )


@pytest.fixture(scope="module")
def tab(desk, tools, tmp_path_factory):
    """A tab whose workspace went the whole way with hostile names, and what it tried."""
    file = tmp_path_factory.mktemp("hostile") / FILE
    hostile_people().write_csv(file)
    tab = desk
    tab.tried.clear()
    tools.begin(tab, "data")
    tab.set_input_files("#file", file)
    tab.wait_for_selector("#columns-title")
    tab.goto(f"{tab.base}/roles")
    tab.click("#show-text")
    tab.fill("#toml", POLICY)
    tab.wait_for_selector("#column-4.confidential")
    tab.click("#bulk-all")
    tab.click("#bulk-confirm")
    tab.wait_for_selector("text=all confirmed")
    tab.goto(f"{tab.base}/compare")
    tab.check("#grid-own")
    tab.fill("#grid-k", "5")
    tab.click("text=Details")
    tab.fill("#c-repeats", "1")
    tab.check("#understood")
    tab.click("#compare-now")
    tab.wait_for_selector("#frontier svg >> nth=0", timeout=120_000)
    tab.goto(f"{tab.base}/release")
    tab.click("#run-now")
    tab.wait_for_selector("#download", timeout=120_000)
    return tab


@pytest.fixture(scope="module", params=SCREENS)
def shown(request, tab):
    """One screen with everything unfolded that can be, loaded once for the tests of it."""
    tab.emulate_media(color_scheme="light")
    show(tab, request.param)
    return tab


@pytest.fixture
def screen(shown):
    """That screen, in a wide window by daylight and from its top."""
    shown.emulate_media(color_scheme="light")
    shown.set_viewport_size({"width": 1280, "height": 900})
    shown.mouse.move(0, 0)
    shown.evaluate("scrollTo(0, 0)")
    return shown


def show(tab, name):
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.goto(f"{tab.base}/{name}")
    if name == "compare":
        tab.wait_for_selector("#frontier svg >> nth=0")
        tab.click("button[data-place='0']")
        tab.wait_for_selector("#candidate h3")
    tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")


def test_hostile_names_and_values_are_text_in_every_page_and_plot(screen):
    found = screen.content()
    body = screen.evaluate(
        "document.body.innerText + [...document.querySelectorAll('input, textarea')]"
        ".map(e => e.value).join(' ')"
    )

    assert HOSTILE in body
    assert screen.locator("img, iframe, object, [onerror], [onmouseover]").count() == 0
    assert "<b>people" not in found
    assert "</script><img" not in found
    assert screen.locator("script:not([src]):not([type='application/json'])").count() == 0
    assert screen.locator("[style]").count() == 0
    screen.mouse.wheel(0, 20_000)
    for spot in screen.locator("summary").all()[:3]:
        spot.hover()
    assert screen.tried == []


CONTRASTS = """() => {
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
      || (e.matches('input[type=text], textarea, select') && !e.disabled);
    if (!own || !e.getClientRects().length || e.closest('script, .unseen, option')) continue;
    const style = getComputedStyle(e);
    const ink = e.closest('svg') ? style.fill : style.color;
    const pair = [light(parse(ink)), light(behind(e))].sort((a, b) => b - a);
    found.push([(pair[0] + 0.05) / (pair[1] + 0.05), e.tagName + '.' + e.getAttribute('class')]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(screen, scheme):
    screen.emulate_media(color_scheme=scheme)

    behind = screen.evaluate("getComputedStyle(document.body).backgroundColor")
    ratios = screen.evaluate(CONTRASTS)

    assert (int(re.search(r"\d+", behind)[0]) < 128) == (scheme == "dark")
    assert len(ratios) > 30
    assert ratios[0][0] >= 4.5, ratios[:5]


def test_pages_speak_to_who_cannot_see_them(screen):
    levels = screen.evaluate(
        "[...document.querySelectorAll('main h1, main h2, main h3')].map(h => +h.tagName[1])"
    )
    ids = screen.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    unnamed = screen.evaluate(
        "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
        ".filter(e => !e.labels.length && !e.getAttribute('aria-label')).map(e => e.id)"
    )
    mute = screen.evaluate(
        "[...document.querySelectorAll('button, a')].filter(e => !e.textContent.trim()"
        " && !e.getAttribute('aria-label')).length"
    )

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(ids) == len(set(ids))
    assert unnamed == []
    assert mute == 0
    assert screen.locator("th:not([scope])").count() == 0
    assert screen.locator("[aria-current=step]").count() == 1
    assert screen.locator("[aria-live]").count() >= 1
    assert violations(screen) == []


def test_every_table_and_plot_has_a_plain_line_above_it(screen):
    lonely = screen.evaluate(
        "[...document.querySelectorAll('main table, main figure, main .bars')].filter(e => {"
        "  const box = e.closest('.scroll') || e; let near = box.previousElementSibling;"
        "  return !near || !near.matches('p, .why, script'); }).length"
    )

    assert lonely == 0


# The last two change what a screen shows; the next one is loaded anew.
@pytest.mark.parametrize("width", [1280, 1000, 400])
def test_nothing_has_to_be_scrolled_sideways(screen, width):
    screen.set_viewport_size({"width": width, "height": 900})
    for _ in range(100):  # a plot is drawn anew for the width, on a busy machine not at once
        screen.wait_for_timeout(100)
        if screen.evaluate("document.documentElement.scrollWidth") <= width:
            break

    assert screen.evaluate("document.documentElement.scrollWidth") <= width
    cut = "[...document.querySelectorAll('.grid .row')].filter(e => e.scrollWidth > e.clientWidth)"
    assert screen.evaluate(f"{cut}.length") == 0
    if width == 400 and screen.locator("#inspector").count():
        screen.click("#column-1 .shape")  # A card lies over the list here, wherever its row is hit.
        screen.wait_for_selector("#inspector[data-place='1']", state="visible")
        screen.click("#close-inspector")
        screen.wait_for_selector("#inspector", state="hidden")


def test_the_toggle_wins_over_the_system_and_is_kept(screen):
    behind = "getComputedStyle(document.body).backgroundColor"
    before = screen.evaluate(behind)

    screen.click("#theme")
    after = screen.evaluate(behind)
    screen.reload()

    assert after != before
    assert screen.evaluate(behind) == after
    assert screen.get_attribute("#theme", "aria-pressed") == "true"
    screen.click("#theme")
    assert screen.evaluate(behind) == before
    screen.evaluate("localStorage.clear()")  # or the system's theme would count no more


def test_pointing_at_the_frontier_finds_the_list_and_a_click_opens_a_candidate(tab):
    show(tab, "compare")
    assert tab.locator(".picked").count() == 2  # a row and its point
    point = tab.locator("#frontier .zoomed:visible circle[data-place='0']")
    tab.evaluate("document.activeElement.blur()")
    point.hover()
    assert "pointed" in tab.get_attribute("#row-0", "class")
    tab.hover("h1")
    assert tab.locator(".pointed").count() == 0
    tab.focus("#row-0 button")
    assert "pointed" in point.get_attribute("class")
    point.click()
    tab.wait_for_selector("#candidate .pictures svg")

    assert "risk" in point.text_content()
    assert tab.locator("#row-0 svg.twin").count() == 4
    assert HOSTILE[:16] in tab.locator("#candidate .pictures").inner_text()
    assert tab.locator("#frontier image, #frontier img").count() == 0
    assert tab.tried == []


def test_by_the_keyboard_alone_fourteen_columns_are_confirmed_in_fewer_than_twenty_keys(
    desk, tmp_path
):
    tab = desk
    tab.set_viewport_size({"width": 1280, "height": 900})
    hospital(40).write_csv(tmp_path / "people.csv")
    choose_by_keys(tab, tmp_path / "people.csv")
    reach(tab, "#onward")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/roles")
    tab.wait_for_selector("#column-0:focus")
    keys = 0
    for _ in range(14):
        tab.keyboard.press("Enter")  # confirms, and leads to the next column
        keys += 1
    tab.wait_for_selector("#counts >> text=all confirmed")
    assert keys < 20
    assert "14 columns confirmed" in tab.inner_text("#rail")
    assert tab.evaluate("document.activeElement.id") == "onward"

    # A range of rows gets another role in one step, which one key takes back.
    tab.focus("#column-4")
    for _ in range(2):
        tab.keyboard.press("Shift+ArrowDown")
    assert tab.inner_text("#picked") == "3 selected"
    tab.keyboard.press("o")
    for place in (4, 5, 6):
        tab.wait_for_selector(f"#column-{place}.other[aria-selected=true]")
    assert tab.inner_text("#undo").endswith("Undo: role of 3 columns")
    assert tab.evaluate("document.activeElement.id") == "column-6"
    with tab.expect_navigation():
        tab.keyboard.press("Control+z")
    assert tab.locator("#columns .row.other").count() == 0
    with tab.expect_navigation():
        tab.keyboard.press("Control+Shift+z")
    assert tab.locator("#columns .row.other").count() == 3

    # The filter, everything it shows, and one column in full.
    tab.focus("#column-0")
    tab.keyboard.press("/")
    tab.keyboard.type("lab")
    tab.keyboard.press("Enter")
    assert tab.locator("#columns .row:visible").count() == 8
    tab.keyboard.press("Control+a")
    assert tab.inner_text("#picked") == "8 selected"
    tab.keyboard.press("Escape")
    assert tab.inner_text("#picked") == ""
    place = tab.get_attribute("#columns .row:focus", "data-place")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_selector(f"#inspector[data-place='{place}'] input[name=role]:focus")
    reach(tab, f"#low-{place}")
    tab.keyboard.type("0")
    tab.keyboard.press("Tab")
    tab.keyboard.type("110")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#undo >> text=limits of lab 1")
    assert "bounds = [0, 110]" in tab.input_value("#toml")


def choose_by_keys(tab, path):
    """Begin a workspace and choose its file without a mouse."""
    choosers = []

    def chosen(chooser):
        choosers.append(chooser)

    # From the start, so that nothing need be switched on in time for the key.
    tab.on("filechooser", chosen)
    tab.goto(tab.context.root)
    if tab.locator("#new").count():  # else the studio is new, and this its first table
        tab.focus("#new")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/data")
    reach(tab, "#file")
    for _ in range(5):  # a busy browser may lose a key, and a person presses it again
        tab.keyboard.press("Space")
        tab.wait_for_timeout(500)
        if choosers:
            break
    choosers[0].set_files(path)
    tab.wait_for_selector("#columns-title")
    tab.remove_listener("filechooser", chosen)


def hospital(rows):
    """Invented patients, whose fourteen columns are guessed right."""
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(rows)],
            "age": rng.integers(18, 90, rows),
            "sex": rng.choice(["male", "female"], rows),
            "region": rng.choice(["north", "south", "east"], rows),
            "income": rng.integers(0, 90_000, rows),
            "diagnosis": rng.choice(["flu", "asthma", "none"], rows),
            **{f"lab {i}": rng.normal(50, 9, rows).round(2) for i in range(1, 9)},
        }
    )


def reach(tab, wanted):
    """Press Tab until something has the focus, and see that it shows it."""
    for _ in range(80):
        tab.keyboard.press("Tab")
        if tab.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            shown = tab.evaluate(
                "(() => { const e = document.activeElement, near = e.nextElementSibling;"
                "return [e, near].some(x => x && getComputedStyle(x).outlineStyle == 'solid'); })()"
            )
            assert shown, wanted
            return
    raise AssertionError(wanted)
