"""What axe-core, the checker of accessibility that browsers' own tools use, finds on a page."""

from importlib.resources import files


def violations(tab):
    """What it objects to on a screen, in both themes."""
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    seen = []
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        tab.evaluate(f"() => {{ {source} }}")
        run = "async () => (await axe.run()).violations.map(v => [v.id, v.nodes[0].html])"
        seen += tab.evaluate(run)
    tab.emulate_media(color_scheme="light")
    return seen
