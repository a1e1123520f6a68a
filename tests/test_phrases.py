"""Every sentence that a user may read, in files that somebody who reads no code can edit by.

`python tests/test_phrases.py` rewrites tests/phrases: one file for each room, each sentence with
the file that it is in. What is filled in stands in braces, and alternatives stand in brackets:
[one | other]. A change of a sentence shows there.
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


COUNTING = {"count_noun", "_write_count", "phrases.count_noun"}
"""Calls that put a number before a word, in the singular or the plural."""
COMMON = {"len", "str", "int", "repr", "join", "sorted", "list", "map", "self", "abs", "max", "min"}
"""Names that say nothing about what is filled in."""


SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
"""Nodes that hold nothing, and are half of all."""


def parts_of(node):
    """The nodes below one but for signs, found once."""
    if "parts" not in node.__dict__:
        node.parts = [one for one in ast.iter_child_nodes(node) if not isinstance(one, SIGNS)]
    return node.parts


def walk(node):
    """A node and all below it, those nearer first, as `ast.walk` goes."""
    found = [node]
    for one in found:
        found += parts_of(one)
    return found


def name_of(node):
    """What is filled in, as {name}."""
    name = re.sub(r"\W+", " ", ast.unparse(node)).strip()
    if len(name) >= 24:  # what it is about, of a long expression
        names = [part.strip("_") for part in re.findall(r"[A-Za-z_]{3,}", ast.unparse(node))]
        name = next((part for part in names if part not in COMMON), "...")
    return f"{{{name}}}"


def either(texts):
    """Alternatives, as [one | other]."""
    return f"[{' | '.join(filter(None, dict.fromkeys(texts)))}]"


def choices(node):
    """The expressions that one chooses between; by itself, it is the only one."""
    if isinstance(node, ast.IfExp):
        return [*choices(node.body), *choices(node.orelse)]
    return node.values if isinstance(node, ast.BoolOp) else [node]


def values_of(name, line, given):
    """What a name in a line stands for: its last value before, or those of the branches before."""
    before = [(node, value) for known, node, value in given if known == name.id]
    before = [one for one in before if one[0].lineno <= line.lineno] or before
    last = max((node for node, _ in before), key=lambda node: node.lineno, default=None)
    one = last is not None and last.col_offset <= line.col_offset
    return [value for node, value in before if node is last or not one]


class Reader:
    """Reads the texts of one program whole, and knows which parts it joined into another."""

    def __init__(self, tree):
        self.joined, self.local = set(), {}
        for body in walk(tree):
            if isinstance(body, ast.FunctionDef):
                nodes = walk(body)
                taken = {one.arg for one in nodes if isinstance(one, ast.arg)}
                given = [
                    (name, node, value)
                    for node in nodes
                    for name, value in assigned(node)
                    if name
                    not in taken | {one.id for one in walk(value) if isinstance(one, ast.Name)}
                ]
                lines = {id(body): body}  # of each node, the innermost statement that it is in
                for node in nodes:
                    line = lines[id(node)]
                    if isinstance(node, ast.Name):
                        self.local[id(node)] = values_of(node, line, given)
                    for part in parts_of(node):
                        lines[id(part)] = part if isinstance(part, ast.stmt) else line

    def filled(self, node, depth):
        """What is filled into a text: alternatives and counted words in full, others by name."""
        parts = choices(node)
        if len(parts) > 1 and any(self.text(part, depth) for part in parts):
            return either(self.filled(part, depth) for part in parts)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in COUNTING and node.args[1:]:
            words = [self.text(part, depth) for part in node.args[1:]]
            if None not in words:
                return f"{name_of(node.args[0])} {either([*words, words[0] + 's'][:2])}"
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in {"lower", "strip", "rstrip"}:
            return self.filled(called.value, depth)
        own = self.text(node, depth)
        if own is not None:
            return own
        values = self.local.get(id(node), [])
        texts = [self.filled(value, depth + 1) for value in values] if depth < 3 else []
        named = any(re.fullmatch(r"{[^}]*}", text) for text in texts)
        if texts and not named and sum(map(len, texts)) < 240:
            for value in values:
                self.joined.update(map(id, walk(value)))
            return texts[0] if len(texts) == 1 else either(texts)
        return name_of(node)

    def text(self, node, depth=0):
        """A text of the code, with what is filled in; none for anything else."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else self.filled(part.value, depth)
                for part in node.values
            )
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            both = node.left, node.right
            if any(self.text(side, depth) is not None for side in both):
                return "".join(self.filled(side, depth) for side in both)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            mark, given = self.text(node.func.value, depth), node.args[0]
            if node.func.attr == "join" and mark is not None and isinstance(given, ast.List):
                return mark.join(self.filled(part, depth) for part in given.elts)
        return None


def assigned(node):
    """The names that a statement gives a value, each with the value."""
    if isinstance(node, ast.NamedExpr):
        return [(node.target.id, node.value)]
    targets = node.targets if isinstance(node, ast.Assign) else []
    pairs = []
    for target in targets:
        if isinstance(target, ast.Name):
            pairs.append((target.id, node.value))
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs += [
                (one.id, value)
                for one, value in zip(target.elts, node.value.elts, strict=True)
                if isinstance(one, ast.Name)
            ]
    return pairs


def docstrings(tree):
    """The expressions that are docstrings, or words about a constant; not those of commands."""
    shown, nodes = set(), walk(tree)
    for node in nodes:
        marks = " ".join(map(ast.unparse, getattr(node, "decorator_list", [])))
        if "command" in marks or "callback" in marks:  # a help text
            shown.add(id(node.body[0]))
    return {id(node.value) for node in nodes if isinstance(node, ast.Expr)} - {
        id(node.value) for node in nodes if id(node) in shown
    }


def called_by(node):
    """The last name of what a call calls; nothing for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    return getattr(func, "id", None) or getattr(func, "attr", "")


def said(node, silent, reader, found, outer=""):
    """The texts of a program but for docstrings and names of types, in order, with their nodes.

    They are appended to `found`. A part that its outer text shows is not shown again.
    """
    called = called_by(node)
    if called in NO_SENTENCE or (id(node) in silent and not isinstance(node, ast.Call)):
        return
    text = reader.text(node)
    if text is not None and text not in outer:
        found.append((node, text))
    types = [getattr(node, field, None) for field in ("annotation", "returns")]
    if called == "cast":
        types.append(node.args[0])
    for child in parts_of(node):
        if not (isinstance(child, ast.Constant) and child in types):
            said(child, silent, reader, found, text or outer)


IF, ELSE, END, FOR, CUT = "\x01", "\x02", "\x03", "\x04", "\x00"
INLINE = {"a", "abbr", "b", "br", "code", "em", "i", "kbd", "small", "span", "strong", "sub", "sup"}


def mark_of(tag):
    """A tag of a template as one character."""
    word = re.sub(r"^{%-?\s*|\W.*$", "", tag, flags=re.DOTALL)
    marks = {"if": IF, "for": FOR, "elif": ELSE, "else": ELSE, "endif": END, "endfor": END}
    return marks.get(word, CUT)


def shown_of(expression):
    """What an expression of a template fills in: the words that it chooses between, or a name."""
    if " if " in expression and " else " in expression:
        words = re.findall(r"(?:^{{-?\s*|else\s+)([\"'])([^\"']*)\1", expression)
        if len(words) > 1:
            return either([word for _, word in words])
    name, _, filters = expression.strip("{}- ").partition("|")
    counted = re.search(r"counted\(\s*[\"']([^\"']*)", filters)
    name = re.findall(r"[A-Za-z_]+", re.sub(r"[\"'].*?[\"']", "", name)) or ["..."]
    return f"{{{name[-1]}}}" + (f" [{counted[1]} | {counted[1]}s]" if counted else "")


def sentences_of(text):
    """The sentences of one element: choices inside it as [one | other], the rest cut apart."""
    inner = re.compile(f"([{IF}{FOR}])([^{IF}{FOR}{END}{CUT}]*){END}")
    whole = inner.fullmatch(text.strip())
    while not whole and inner.search(text):
        text = inner.sub(lambda found: either(found[2].split(ELSE)), text, count=1)
        whole = inner.fullmatch(text.strip())
    return re.split(f"[{IF}{ELSE}{END}{FOR}{CUT}]", text)


class Words(HTMLParser):
    """The texts of a template, one for each element that is not a part of a line."""

    def __init__(self):
        super().__init__()
        self.found, self.quiet = [""], 0

    def handle_starttag(self, tag, attrs):
        self.quiet += tag in {"script", "style"}
        shown = ("title", "alt", "placeholder", "aria-label")
        self.line(tag)
        held = [value for name, value in attrs if name in shown and value]
        self.found[-1:-1] = held

    def handle_endtag(self, tag):
        self.quiet -= tag in {"script", "style"}
        self.line(tag)

    def line(self, tag):
        if tag not in INLINE:
            self.found.append("")
        elif tag == "br":
            self.found[-1] += " "

    def handle_data(self, data):
        if not self.quiet:
            self.found[-1] += data


def in_template(path):
    """The texts of a template, with what is filled in as {name}."""
    text = re.sub(r"{#.*?#}", "", path.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"{{.*?}}(?!})", lambda part: shown_of(part[0]), text, flags=re.DOTALL)
    text = re.sub(r"{%.*?%}", lambda part: mark_of(part[0]), text, flags=re.DOTALL)
    words = Words()
    words.feed(text)
    words.close()
    return [part for found in words.found for part in sentences_of(found)]


def in_program(path):
    """The texts of a program; a part that stands in another is not shown again."""
    tree = ast.parse(path.read_text("utf-8"))
    reader, found = Reader(tree), []
    said(tree, docstrings(tree), reader, found)
    return [text for node, text in found if id(node) not in reader.joined]


def is_sentence(text):
    """Whether people read a text as words: two of them at least, and no code."""
    plain = " ".join(text.split())
    bare = re.sub(r"{[^}]*}", "", plain)
    words = re.findall(r"[A-Za-z]{2,}", re.sub(r"<[^>]*>|\S+/\S+", "", bare))
    code = re.search(
        r"::|^#!|^\S+$|^[\w./-]+$|^\W*$|\\[a-z]|^(?:SELECT|PRAGMA|CREATE|INSERT|UPDATE)\b", plain
    )
    named = (
        re.search(r"[_=][\w\"]", bare) and len(words) < 5
    )  # a name alone; some stand in sentences
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


def is_label(text):
    """Whether a text is a name or a word that is filled in, which stands in no sentence itself."""
    return len(text.split()) < 4 and not re.search(r"[.?!:;{\[]", text)


def listed(texts):
    """The sentences of a file, one per line; after them its labels, all in one."""
    labels = " | ".join(filter(is_label, texts))
    return [
        *(text for text in texts if not is_label(text)),
        *([f"Labels: {labels}"] if labels else []),
    ]


@cache
def pages():
    """The content of every file, by its name."""
    return {
        f"{room}.txt": "\n\n".join(
            "\n".join([f"## {name}", *listed(texts)]) for name, texts in files.items()
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
