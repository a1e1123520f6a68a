"""Both reports of a release in a real browser: nothing runs, nothing leaves, all can be read."""

from itertools import pairwise

import pytest


@pytest.fixture(scope="module")
def tab(chromium):
    """A tab, with everything that its pages try."""
    made = chromium.new_page(viewport={"width": 1280, "height": 900})
    made.tried = []
    made.on("request", lambda asked: made.tried.append(asked.url))
    made.on("console", lambda said: made.tried.append(said.text))
    made.on("pageerror", lambda error: made.tried.append(str(error)))
    made.on("dialog", lambda dialog: (made.tried.append(dialog.message), dialog.dismiss()))
    yield made
    made.close()


@pytest.fixture(scope="module", params=["internal", "public"])
def shown(request, tab, hostile):
    """A report as it opens, loaded once for the tests of it."""
    tab.tried.clear()
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.address = getattr(hostile, request.param).as_uri()
    tab.goto(tab.address)
    return tab


@pytest.fixture
def page(shown):
    """That report, in a wide window and from its top."""
    shown.set_viewport_size({"width": 1280, "height": 900})
    shown.evaluate("scrollTo(0, 0)")
    return shown


@pytest.fixture
def untouched(page):
    """That report, loaded anew: no key was pressed in it."""
    page.tried.clear()
    page.reload()
    return page


def test_a_report_asks_nothing_of_the_network_and_the_console_stays_empty(page):
    page.mouse.wheel(0, 20_000)
    page.wait_for_timeout(50)

    assert page.tried == [page.address]


def test_hostile_names_and_values_are_shown_as_text(page, hostile):
    shown = page.inner_text("body")

    for text in hostile.texts:
        assert text in shown
    assert page.locator("script, img, iframe, object, link, i, [onmouseover]").count() == 0
    assert "49" not in page.locator("h1").inner_text()


def test_a_report_prints_to_pdf(page):
    pdf = page.pdf(format="A4")

    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type/Page\n") >= 2
    assert page.tried == [page.address]


@pytest.mark.parametrize("width", [1280, 400])
def test_a_report_fits_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 900})

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_that_can_be_reached_is_reached_by_keyboard_and_shows_it(untouched):
    page = untouched
    wanted = page.locator("a[href], [tabindex='0']").count()
    seen, outlined = [], []
    for _ in range(wanted):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(
            "[...document.querySelectorAll('*')].indexOf(document.activeElement)"))  # fmt: skip
        outlined.append(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))

    assert len(set(seen)) == wanted
    assert set(outlined) == {"solid"}


def test_the_first_stop_of_the_keyboard_skips_to_the_report(untouched):
    page = untouched
    page.keyboard.press("Tab")
    inside = page.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
    page.keyboard.press("Enter")

    assert inside
    assert page.evaluate("location.hash") == "#main"


def test_headings_stand_in_order_and_links_lead_somewhere(page):
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    links = page.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(ids) == len(set(ids))
    assert all(link[1:] in ids for link in links)


def test_tables_and_figures_speak_to_who_cannot_see_them(page):
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("figure:not([role=img][aria-label])").count() == 0
    assert page.locator("[role=region]:not([aria-label])").count() == 0
    assert page.locator("html[lang=en]").count() == 1


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
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('svg')) continue;
    const pair = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((a, b) => b - a);
    found.push([(pair[0] + 0.05) / (pair[1] + 0.05), e.tagName + '.' + e.className]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}"""


def test_every_text_stands_out_from_what_is_behind_it(page):
    ratios = page.evaluate(CONTRASTS)

    assert len(ratios) > 50
    assert ratios[0][0] >= 4.5, ratios[:5]
