"""What axe-core, the checker of accessibility that browsers' own tools use, finds on a page."""

from importlib.resources import files

COLOURS = ["color-contrast", "link-in-text-block"]
"""Its rules that ask for colours: all that another theme changes."""


def violations(tab):
    """What it objects to on a screen, in both themes."""
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    tab.evaluate(f"() => {{ {source} }}")
    run = "async only => (await axe.run(only)).violations.map(v => [v.id, v.nodes[0].html])"
    tab.emulate_media(color_scheme="light")
    seen = tab.evaluate(run, {})
    tab.emulate_media(color_scheme="dark")
    seen += tab.evaluate(run, {"runOnly": COLOURS})
    tab.emulate_media(color_scheme="light")
    return seen
