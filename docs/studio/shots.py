# noqa: INP001 (a program beside the pages, not a package)
"""Take the screenshots of the studio's five screens again: light and dark, wide and narrow.

    python docs/studio/shots.py [FILE NAME]

Needs the extras of the tests and a Chromium (SHOAL_CHROMIUM, or one on the path). It starts the
studio in a folder of its own, goes the whole way with the shipped sample, and writes JPEG files
beside this program. Of another table, FILE, it confirms every guess, takes the wide and
light pictures alone, and prints how long the way took.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
METHODS = ("mdav", "mondrian", "insensitive", "full-domain")
SIZES = {"wide": (1280, 900), "narrow": (400, 860)}
FOCUS = {"compare": "#frontier-title"}
QUALITY = 74


def main() -> None:
    """Start the studio, go the way, and take the pictures."""
    words = [sys.executable, "-m", "shoal", "studio", "--port", "0", "--no-browser", "--data"]
    with (
        tempfile.TemporaryDirectory() as home,
        sync_playwright() as driver,
        subprocess.Popen([*words, home], stdout=subprocess.PIPE, text=True) as server,  # noqa: S603
    ):
        try:
            assert server.stdout is not None  # noqa: S101 (asked for above)
            address = server.stdout.readline().split()[-1]
            found = os.environ.get("SHOAL_CHROMIUM") or shutil.which("chromium")
            browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            tab.set_default_timeout(300_000)
            tab.goto(address)
            if len(sys.argv) > 2:
                go_with(tab, Path(sys.argv[1]))
                shoot(tab, "light-wide", f"{sys.argv[2]}-")
                return
            go(tab)
            for scheme in ("light", "dark"):
                tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                for size, (width, height) in SIZES.items():
                    tab.set_viewport_size({"width": width, "height": height})
                    shoot(tab, f"{scheme}-{size}")
        finally:
            server.terminate()


def go_with(tab: Page, table: Path) -> None:
    """From a file to a release: every guess confirmed, two methods compared."""
    begun = monotonic()
    tab.set_input_files("#file", table)
    tab.wait_for_selector("#columns-title")
    base = tab.url.rpartition("/")[0]
    tab.goto(f"{base}/roles")
    if tab.locator("#one-row").count():
        tab.check("#one-row")
    tab.click("#bulk-all")
    tab.click("#bulk-confirm")
    tab.wait_for_selector("#columns > .row:not(.confirmed)", state="detached")
    compare(tab, base, METHODS[:2], k="5, 15", repeats=1, rows=1000)
    release(tab, base)
    sys.stdout.write(f"{table.name}: {(monotonic() - begun) / 60:.1f} minutes to its release\n")


def go(tab: Page) -> None:
    """From the sample to a release."""
    tab.click("#take-sample")
    tab.wait_for_selector("#columns-title")
    base = tab.url.rpartition("/")[0]
    compare(tab, base, METHODS, k="5, 15, 50", repeats=2, rows=2000)
    release(tab, base)


def compare(
    tab: Page, base: str, methods: tuple[str, ...], *, k: str, repeats: int, rows: int
) -> None:
    """Compare methods, and choose the second of the list."""
    tab.goto(f"{base}/compare")
    tab.check("#grid-own")
    for method in methods:
        tab.check(f"#grid-{method}")
    tab.fill("#grid-k", k)
    tab.click("text=Details")
    tab.fill("#c-repeats", str(repeats))
    tab.fill("#c-rows", str(rows))
    tab.check("#understood")
    tab.click("#compare-now")
    tab.wait_for_selector("#frontier svg >> nth=0")
    tab.click("button[data-place='1']")
    tab.wait_for_selector("#candidate h3")
    tab.click("#choose")
    tab.wait_for_url("**/protect")


def release(tab: Page, base: str) -> None:
    """Make the release, and wait for it."""
    tab.goto(f"{base}/release")
    tab.click("#run-now")
    tab.wait_for_selector("#download")


def shoot(tab: Page, name: str, table: str = "") -> None:
    """All five screens in one look."""
    base = tab.url.rpartition("/")[0]
    for screen in ("data", "roles", "protect", "compare", "release"):
        tab.goto(f"{base}/{screen}")
        if screen == "roles":
            tab.click("#column-3 .shape")
            tab.wait_for_selector("#inspector[data-place='3']")
        if screen == "compare":
            tab.wait_for_selector("#frontier svg >> nth=0")
        if screen in FOCUS:
            tab.evaluate("at => document.querySelector(at).scrollIntoView()", FOCUS[screen])
        else:
            tab.evaluate("scrollTo(0, 0)")
        tab.mouse.move(1, 1)
        path = HERE / f"{table}{screen}-{name}.jpg"
        tab.screenshot(path=path, type="jpeg", quality=QUALITY)


if __name__ == "__main__":
    main()
