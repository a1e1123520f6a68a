"""Read the pages of a release as a reader does: line by line, with every figure in its sentence."""

import re
from html.parser import HTMLParser

BLOCKS = {"p", "li", "caption", "dt", "dd", "h1", "h2", "h3", "tr"}
UNREAD = {"style", "title", "pre"}
"""No text of the page, or code, which tests of its own run."""
NUMBER = r"[+-]?(?:\d[\d,]*\.?\d*)(?:e[+-]?\d+)?"


class Page(HTMLParser):
    """The lines of a page, in order: sentences, rows of tables, and pictures with their texts."""

    def __init__(self, html):
        super().__init__()
        self.lines, self.open, self.hidden, self.picture, self.within = [], [], 0, None, ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.hidden += tag in UNREAD
        if tag in BLOCKS:
            self.open.append("")
        elif tag in {"td", "th"} and self.open:
            self.open[-1] += " | "
        elif tag == "br" and self.open:
            self.open[-1] += " "
        if "aria-label" in given and (tag == "svg" or given.get("class") == "rates"):
            self.picture, self.within = [given["aria-label"]], tag

    def handle_endtag(self, tag):
        self.hidden -= tag in UNREAD
        if self.picture is not None and tag == self.within:
            self.lines.append(" | ".join(self.picture))
            self.picture = None
        if tag in BLOCKS and self.open:
            self.lines.append(" ".join(self.open.pop().split()))

    def handle_data(self, data):
        text = " ".join(data.split())
        if self.hidden:
            return
        if self.picture is not None:
            self.picture += [text] if text else []
        elif self.open:
            self.open[-1] += data
        elif text:
            self.lines.append(text)


def pattern(text):
    """A sentence as a regular expression: <n> is a figure, [name] is text, the rest stands there.

    So no figure of a line is outside a group, but the constants that the sentence itself has.
    """
    made, seen = [], set()
    for part in re.split(r"(<\w+>|\[\w+\])", text):
        name = part[1:-1]
        if not re.fullmatch(r"<\w+>|\[\w+\]", part):
            made.append(re.escape(part))
        elif name in seen:  # printed twice, it is the same twice
            made.append(f"(?P={name})")
        else:
            made.append(f"(?P<{name}>{NUMBER if part[0] == '<' else '.*?'})")
            seen.add(name)
    return re.compile("".join(made))


def is_printed(text, value, *, places=None):
    """Whether a number, written for people, is this one: to three digits, or to some places."""
    if value is None:
        return text == "none"
    if isinstance(value, tuple):  # between two numbers
        return value[0] <= float(text.replace(",", "")) <= value[1]
    shown = float(text.replace(",", ""))
    half = 0.5 * 10.0**-places if places is not None else 0.0
    return abs(shown - value) <= max(half, 0.00501 * abs(value), 1e-9) + 1e-12
