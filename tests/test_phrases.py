"""Every sentence that a user may read, in files that somebody who reads no code can edit by.

`python tests/test_phrases.py` writes tests/phrases anew: one file for each room, each sentence with
the file that it is in; what is filled in stands in braces. A change of a sentence shows there.
"""

import ast
import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "shoal"
KEPT = Path(__file__).with_name("phrases")
NO_SENTENCE = {"warn", "getLogger", "compile", "TypeVar", "deprecated"}
"""Calls whose texts nobody reads as sentences."""


def text_of(node):
    """A text of the code, with what is filled in as {name}; none for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            else:
                name = re.sub(r"\W+", " ", ast.unparse(part.value)).strip()
                parts.append(f"{{{name if len(name) < 24 else '...'}}}")
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        both = text_of(node.left), text_of(node.right)
        return None if None in both else "".join(both)
    return None


def docstrings(tree):
    """The expressions that are docstrings, or words about a constant; not those of commands."""
    shown = set()
    for node in ast.walk(tree):
        marks = " ".join(map(ast.unparse, getattr(node, "decorator_list", [])))
        if "command" in marks or "callback" in marks:  # a help text
            shown.add(id(node.body[0]))
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} - {
        id(node.value) for node in ast.walk(tree) if id(node) in shown
    }


def said(node, silent):
    """The texts of a program but for docstrings, in order."""
    called = ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""
    if called in NO_SENTENCE or (id(node) in silent and not isinstance(node, ast.Call)):
        return
    text = text_of(node)
    if text is not None:
        yield text
    inner = node.values if isinstance(node, ast.JoinedStr) else [] if text else [node]
    for part in inner:
        for child in ast.iter_child_nodes(part):
            yield from said(child, silent)


class Words(HTMLParser):
    """The texts of a template."""

    def __init__(self):
        super().__init__()
        self.found, self.quiet = [], 0

    def handle_starttag(self, tag, attrs):
        self.quiet += tag in {"script", "style"}
        shown = ("title", "alt", "placeholder", "aria-label")
        self.found += [value for name, value in attrs if name in shown and value]

    def handle_endtag(self, tag):
        self.quiet -= tag in {"script", "style"}

    def handle_data(self, data):
        if not self.quiet:
            self.found.append(data)


def in_template(path):
    """The texts of a template, with what is filled in as {name}."""
    text = re.sub(r"{#.*?#}|{%.*?%}", "\x00", path.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"{{-?\s*([^|(}]*).*?}}", r"{\1}", text, flags=re.DOTALL)
    words = Words()
    words.feed(text)
    return [part for found in words.found for part in found.split("\x00")]


def in_program(path):
    """The texts of a program."""
    tree = ast.parse(path.read_text("utf-8"))
    return said(tree, docstrings(tree))


def is_sentence(text):
    """Whether people read a text as words: two of them at least, and no code."""
    plain = " ".join(text.split())
    bare = re.sub(r"{[^}]*}", "", plain)
    words = re.findall(r"[A-Za-z]{2,}", bare)
    code = re.search(
        r"::|^#!|^[\w./-]+$|^\W*$|\\[a-z]|^(?:SELECT|PRAGMA|CREATE|INSERT|UPDATE)\b", plain
    )
    named = re.search(r"[_=]\w", bare) and len(words) < 5  # a name alone; some stand in sentences
    return len(words) >= 2 and not code and not named


def collected():
    """Room, then file, then its sentences."""
    rooms = {}
    for path in sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.html")]):
        name = path.relative_to(SOURCE).as_posix()
        texts = in_template(path) if path.suffix == ".html" else in_program(path)
        shown = dict.fromkeys(" ".join(text.split()) for text in texts if is_sentence(text))
        if shown:
            room = name.split("/")[0] if "/" in name else "top"
            rooms.setdefault(room.removesuffix(".py"), {})[name] = list(shown)
    return rooms


@cache
def pages():
    """The content of every file, by its name."""
    return {
        f"{room}.txt": "\n\n".join(
            "\n".join([f"## {name}", *texts]) for name, texts in files.items()
        )
        + "\n"
        for room, files in collected().items()
    }


def test_every_sentence_stands_in_the_files_for_review():
    kept = {path.name: path.read_text("utf-8") for path in KEPT.glob("*.txt")}

    assert kept == pages(), "write them anew, and read the difference: python tests/test_phrases.py"


SLIPS = {
    r"\bin silence\b": "silently",
    r"\bso that\b": "so",
    r"\bone row a person\b": "one row per person",
    r"(?<!there )(?<!There )\b(?:is|are) no (?!row|more|longer)[a-z]+\b": "is not a",
    r"\bof 1 [a-z]+s\b|\b1 times\b": "the singular",
    r"\blooked at\b|\ba look\b|\blooking costs\b": "inspected, read or checked",
    r"\bfound out\b": "detected",
    r"\b(?:cells?|rows?|values?) a (?:row|person|column|group|cell)\b": "per",
    r"\binternal report\b": "confidential report",
    r"\b(?:one|value|row|number) an? (?:column|record|row|bucket|group|person|cell)\b": "per",
    r"\btables? of (?:one|two|three|several|a few) columns?\b": "marginals",
    r"\bsurvives?\b": "is preserved",
    r", and only there\b": "only together with",
    r"\ba number from [01]\b": "a number of at least",
    r"(?<!doi:10)(?<!/)\b\d\.\d{4,}": "at most three significant digits",
}


@pytest.mark.parametrize("slip", SLIPS)
def test_no_sentence_has_a_slip_that_was_corrected_before(slip):
    found = [
        line for text in pages().values() for line in text.splitlines() if re.search(slip, line)
    ]

    assert not found, f"say {SLIPS[slip]}: {found}"


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for old in KEPT.glob("*.txt"):
        old.unlink()
    for name, page in pages().items():
        (KEPT / name).write_text(page, encoding="utf-8")
    sys.stdout.write(f"{sum(map(len, pages().values())):,} characters in {len(pages())} files\n")
