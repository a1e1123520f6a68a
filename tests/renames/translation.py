"""Read the rename map, and say a policy, a manifest or a name of before in the words of today."""

import json
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ECHOES = {
    "release_form": "protect.release_form",
    "claims.release_form": "protect.release_form",
    "audience": "release.audience",
    "**.guarantee.distance": "require.t-closeness.distance",
    "**.guarantee.kind": "require.l-diversity.kind",
}
"""Manifest fields that repeat a value of the policy: the policy's renames hold there too."""
PROTECT = ("method", "columns", "release_form")
"""Keys of `[protect]` that are no parameters of a method."""
MEANT = {"neighbours": ("**.neighbours",)}
"""Parameters of methods that manifests repeat elsewhere."""

EMPTY = """\
[policy.keys]
[policy.values]
[parameters.keys]
[parameters.values]
[manifest.keys]
[manifest.values]
[methods]
[tables]
"""
"""A map without a rename."""


def _shown(value: Any) -> str:
    """A value as the map writes it: true and 3 as texts, because keys of TOML are texts."""
    return value if isinstance(value, str) else json.dumps(value)


def _parts(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split("."))


def _fit(pattern: tuple[str, ...], path: tuple[str, ...]) -> tuple[int, list[str]] | None:
    """Where a pattern ends in a path, and what its stars stand for; none: it does not fit.

    `*` is one part; `**`, at the front only, is any number of parts.
    """
    if pattern[0] == "**":
        tail = pattern[1:]
        for start in range(len(path) - len(tail) + 1):
            if path[start : start + len(tail)] == tail:
                return start + len(tail), list(path[:start])
        return None
    if len(path) < len(pattern):
        return None
    pairs = list(zip(pattern, path, strict=False))
    if any(wanted not in {"*", part} for wanted, part in pairs):
        return None
    return len(pattern), [part for wanted, part in pairs if wanted == "*"]


@dataclass(frozen=True)
class Words:
    """Renames of one kind of document: of keys, by path, and of values, by the path of before."""

    keys: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)

    def path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The path of today: by the longest rule that fits, then by those that begin with `**`."""
        rules = sorted(self.keys, key=lambda one: (one.startswith("**"), -len(_parts(one)), one))
        changed = False
        for rule in rules:
            found = None if changed and not rule.startswith("**") else _fit(_parts(rule), path)
            if found is None:
                continue
            end, stars = found
            new = _parts(self.keys[rule])
            if new[0] == "**":
                path = (*stars, *new[1:], *path[end:])
            else:
                given = iter(stars)
                path = (*(next(given) if part == "*" else part for part in new), *path[end:])
                changed = True
        return path

    def value(self, path: tuple[str, ...], value: Any) -> Any:
        """The value of today, of a path of before."""
        for pattern, words in self.values.items():
            found = _fit(_parts(pattern), path)
            if found is not None and found[0] == len(path) and _shown(value) in words:
                return words[_shown(value)]
        return value

    def document(self, content: Any, at: tuple[str, ...] = ()) -> Any:
        """A whole document. Items of lists have the path of their list."""
        document: dict[str, Any] = {}
        for path, leaf in _leaves(content, at):
            new, place = self.path(path), document
            value = self._leaf(path, leaf)
            for part in new[:-1]:
                place = place.setdefault(part, {})
            assert new[-1] not in place, f"two keys of before are one today: {'.'.join(new)}"
            place[new[-1]] = value
        for part in self.path(at) if at else ():
            document = document[part]
        return document

    def _leaf(self, path: tuple[str, ...], leaf: Any) -> Any:
        if isinstance(leaf, list):
            return [self._item(path, item) for item in leaf]
        return self.value(path, leaf)

    def _item(self, path: tuple[str, ...], item: Any) -> Any:
        return self.document(item, path) if isinstance(item, dict) and item else (
            self._leaf(path, item)
        )  # fmt: skip


def _leaves(content: dict[str, Any], at: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    found = []
    for key, value in content.items():
        path = (*at, key)
        found += _leaves(value, path) if isinstance(value, dict) and value else [(path, value)]
    return found


def paths(content: dict[str, Any], at: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The paths of all leaves of a document; items of lists have the path of their list."""
    found = set()
    for path, leaf in _leaves(content, at):
        found.add(path)
        for item in leaf if isinstance(leaf, list) else ():
            found |= paths(item, path) if isinstance(item, dict) else set()
    return found


def fits(pattern: str, path: tuple[str, ...]) -> bool:
    """Whether a pattern says something of a path, or of a table above it."""
    return _fit(_parts(pattern), path) is not None


@dataclass(frozen=True)
class Renames:
    """The rename map, as `renames.toml` states it.

    Attributes:
        methods: names of methods.
        parameters: of methods: keys `parameter` or `method.parameter`, in the words of before.
        tables: names of tables that are published beside the rows.
    """

    policy: Words
    manifest: Words
    parameters: Words
    methods: dict[str, str]
    tables: dict[str, str]

    def policy_of(self, old: dict[str, Any]) -> dict[str, Any]:
        """A policy, or a manifest's echo of one."""
        content = json.loads(json.dumps(old))
        for name, column in content.get("columns", {}).items():
            if isinstance(column, str):  # a role alone
                content["columns"][name] = self.policy.value(("columns", name, "role"), column)
        stated = content["protect"]
        method = stated["method"]
        own = {key: value for key, value in stated.items() if key not in PROTECT}
        content["protect"] = {
            **{key: value for key, value in stated.items() if key in PROTECT},
            "method": self.methods.get(method, method),
            **self.parameters_of(method, own),
        }
        return self.policy.document(content)

    def parameters_of(self, method: str, old: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a method, whose name is that of before."""
        new = {}
        for key, value in old.items():
            own = f"{method}.{key}"
            words = self.parameters.values.get(own) or self.parameters.values.get(key, {})
            name = self.parameters.keys.get(own) or self.parameters.keys.get(key, key)
            new[name] = words.get(_shown(value), value) if not isinstance(value, list) else value
        return new

    def manifest_of(self, old: dict[str, Any]) -> dict[str, Any]:
        """What was kept of a manifest."""
        content, words = json.loads(json.dumps(old)), self._manifest()
        method = content["method"]
        content["method"] = self.methods.get(method, method)
        for account in content.get("budget", ()):
            for entry in account["entries"]:
                entry["method"] = self.methods.get(entry["method"], entry["method"])
        parts = {
            "policy": self.policy_of(content.pop("policy")),
            "parameters": self.parameters_of(method, content.pop("parameters")),
        }
        if "planned" in content:
            parts["planned"] = words.document(content.pop("planned"))
        return _with(words.document(content), {words.path((at,)): parts[at] for at in parts})

    def keys_of(self, document: dict[str, Any], *, back: bool = False) -> dict[str, Any]:
        """A manifest, or a part of one, with keys of today, or back with those of before.

        Values, and what follows the policy's words, stay as they are.
        """
        there = Words(self.manifest.keys)
        words = Words({new: old for old, new in there.keys.items()}) if back else there
        content, aside = json.loads(json.dumps(document)), {}
        if "planned" in content:  # claims, as the manifest has them
            aside["planned",] = self.keys_of(content.pop("planned"), back=back)
        for name in ("policy", "parameters"):
            today = there.path((name,))
            found = _taken(content, today if back else (name,))
            if found is not None:
                aside[(name,) if back else today] = found
        return _with(words.document(content), aside)

    def part(self, name: str, value: Any) -> Any:
        """A field of a manifest, by its name of before, back with the keys of before."""
        today = Words(self.manifest.keys).path((name,))
        return self.keys_of(_with({}, {today: value}), back=True)[name]

    def _manifest(self) -> Words:
        values = {
            place: self.policy.values[path]
            for place, path in ECHOES.items()
            if path in self.policy.values
        }
        for name, places in MEANT.items():
            if name in self.parameters.values:
                values |= dict.fromkeys(places, self.parameters.values[name])
        return Words(self.manifest.keys, values | self.manifest.values)

    def rules(self) -> list[tuple[str, str, str]]:
        """Every single rename that a policy may show: its table, the old word, the new word."""
        return [
            *(("policy.keys", old, new) for old, new in self.policy.keys.items()),
            *_each("policy.values", self.policy.values),
            *(("parameters.keys", old, new) for old, new in self.parameters.keys.items()),
            *_each("parameters.values", self.parameters.values),
            *(("methods", old, new) for old, new in self.methods.items()),
        ]

    def without(self, table: str, old: str) -> "Renames":
        """The same map, but for one rename of those that `rules` lists."""
        if table == "methods":
            return replace(self, methods=_less(self.methods, old))
        part, kind = table.split(".")
        words: Words = getattr(self, part)
        if kind == "keys":
            return replace(self, **{part: replace(words, keys=_less(words.keys, old))})
        path, value = old.split(" = ")
        left = words.values | {path: _less(words.values[path], value)}
        return replace(self, **{part: replace(words, values=left)})


def _taken(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    """Take what lies at a path out of a document; nothing where there is nothing."""
    for part in path[:-1]:
        document = document.get(part, {})
    return document.pop(path[-1], None)


def _with(document: dict[str, Any], parts: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    """A document with parts put in at their paths."""
    for path, part in parts.items():
        place = document
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = part
    return document


def _each(table: str, values: dict[str, dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (table, f"{path} = {old}", _shown(new))
        for path, words in values.items()
        for old, new in words.items()
    ]


def _less(words: dict[str, Any], old: str) -> dict[str, Any]:
    return {key: value for key, value in words.items() if key != old}


def load(path: Path = HERE / "renames.toml") -> Renames:
    """Read the map."""
    return from_text(path.read_text(encoding="utf-8"))


def from_text(text: str) -> Renames:
    """Read a map, and refuse what is not one."""
    content = tomllib.loads(text)
    assert set(content) == {"policy", "parameters", "manifest", "methods", "tables"}, set(content)
    parts = {}
    for name in ("policy", "parameters", "manifest"):
        assert set(content[name]) == {"keys", "values"}, f"[{name}.keys] and [{name}.values]"
        words = parts[name] = Words(content[name]["keys"], content[name]["values"])
        for old, new in words.keys.items():
            _well_formed(name, old, new)
        for path, values in words.values.items():
            assert isinstance(values, dict), f"[{name}.values] {path}: expected a table of values"
            _one_to_one(f"[{name}.values] {path}", values)
        _one_to_one(f"[{name}.keys]", words.keys)
    for name in ("methods", "tables"):
        _one_to_one(f"[{name}]", content[name])
    return Renames(**parts, methods=content["methods"], tables=content["tables"])


def _well_formed(name: str, old: str, new: str) -> None:
    for path in (old, new):
        assert isinstance(path, str), f"[{name}.keys] {old}: expected a path"
        assert re.fullmatch(r"(\*\*\.)?([\w-]+|\*)(\.([\w-]+|\*))*", path), f"no path: {path}"
    assert old.count("*") == new.count("*"), f"[{name}.keys] {old}: other stars in {new}"


def _one_to_one(where: str, words: dict[str, Any]) -> None:
    new = [_shown(word) for word in words.values()]
    twice = {word for word in new if new.count(word) > 1}
    assert not twice, f"{where}: two old words become one: {sorted(twice)}"
    same = [old for old, word in words.items() if old == _shown(word)]
    assert not same, f"{where}: no rename: {same}"
