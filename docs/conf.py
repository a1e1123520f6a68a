# noqa: INP001 (Sphinx reads it; not a package)
"""The site: Sphinx, because scientific Python's manuals are made with it and it is well kept.

MyST reads our Markdown, Furo shows it in light and dark, autodoc writes the reference of the Python
interface from the docstrings. Nothing on a page comes from another host.
"""

import re
from importlib.metadata import version as version_of

from pygments.lexers.special import TextLexer

project = "Shoal"
author = "The Shoal developers"
copyright = author  # noqa: A001 (Sphinx's name)
release = version = version_of("shoal")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["papers/sample"]
html_theme = "furo"
html_title = "Shoal"
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["_static"]
html_theme_options = {"navigation_with_keys": True}
pygments_dark_style = "github-dark"
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
copybutton_prompt_text = "$ "


def _as_restructured(_app, _what, _name, _obj, _options, lines):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Docstrings are written in plain text with `code`; let Sphinx read them as such."""
    parts = re.split(r"(^ *(?:>>>|\.\.\.).*$|`[^`]+`)", "\n".join(lines), flags=re.MULTILINE)
    parts[::2] = [
        re.sub(r"([|*])", r"\\\1", re.sub(r"^(?=\w)", r"\\ ", part)) for part in parts[::2]
    ]
    parts[1::2] = [f"`{' '.join(p.split())}`" if p[0] == "`" else p for p in parts[1::2]]
    lines[:] = "".join(parts).removeprefix("\\ ").split("\n")
    # A block that is indented deeper, after an empty line, is a formula or a table.
    for number in range(len(lines) - 2, 0, -1):
        before, after = lines[number - 1], lines[number + 1]
        deeper = len(after) - len(after.lstrip()) >= 4 + len(before) - len(before.lstrip())
        if not lines[number].strip() and after.strip() and before.strip() and deeper:
            lines[number : number + 1] = ["", " " * (len(before) - len(before.lstrip())) + "::", ""]


def _captions(_app, _name, source):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Show the title of a code block, which is the name of a file, above it."""
    titled = r'^```(\w+) title="([^"]+)"$'
    source[0] = re.sub(titled, r"```{code-block} \1\n:caption: \2\n", source[0], flags=re.MULTILINE)


def setup(app):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """What Sphinx calls once."""
    app.connect("autodoc-process-docstring", _as_restructured, priority=100)
    app.connect("source-read", _captions)
    app.add_lexer("csv", TextLexer)
