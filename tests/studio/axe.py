"""What axe-core, the checker of accessibility that browsers' own tools use, finds on a page."""

from importlib.resources import files

COLOURS = ["color-contrast", "link-in-text-block"]
"""Its rules that ask for colours: all that another theme changes."""


WANTED = {"resultTypes": ["violations"], "selectors": False}
"""What is asked of it: a third of its work goes into telling where all is well."""


def violations(tab, part="html", *, whole=True):
    """What it objects to on a screen, or on what is new in a part of it.

    By daylight it looks at the whole screen, unless it has seen the rest before.
    """
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    tab.evaluate(f"() => {{ {source} }}")
    run = """async ([where, only]) =>
        (await axe.run(where, only)).violations.map(v => [v.id, v.nodes[0].html])"""
    tab.emulate_media(color_scheme="light")
    seen = tab.evaluate(run, ["html" if whole else part, WANTED])
    tab.emulate_media(color_scheme="dark")
    seen += tab.evaluate(run, [part, {**WANTED, "runOnly": COLOURS}])
    tab.emulate_media(color_scheme="light")
    return seen
