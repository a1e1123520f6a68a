"""Release tables with every method in every release form, and keep what a rename must not change.

    python -m tests.renames.capture

What was before cannot be captured any more once a word has changed: the program then refuses.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.renames import cases, running, translation

from shoal.errors import ShoalError

BEFORE = Path(__file__).parent / "before.json"


def said(policy: dict[str, Any]) -> set[str]:
    """The words of a policy, as `running.words` writes them."""
    found: set[str] = set()

    def walk(value: Any, at: str, *, names: bool = False) -> None:
        if isinstance(value, list):
            for one in value:
                walk(one, at)
        elif isinstance(value, dict):
            for key, one in value.items():
                path = f"{at}.{'*' if names else key}".lstrip(".")
                found.add(path)
                walk(one, path, names=path == "columns")
        elif isinstance(value, str):
            found.add(f"{at} = {value}")
            if at == "columns.*":
                found.add(f"{at}.role = {value}")

    walk(policy, "")
    method = policy["protect"]["method"]
    own = {word.removeprefix("protect.") for word in found if word.startswith("protect.")}
    return found | {f"{'*' if ' = ' in word else method}:{word}" for word in own}


def main() -> None:
    """Write `before.json`, one line for each case."""
    renames = translation.load()
    if renames != translation.from_text(translation.EMPTY):
        sys.exit("renames.toml names renames already: what was before cannot be captured any more.")
    every = [*cases.plain_cases(), *cases.VARIANTS]
    names = [one["name"] for one in every]
    assert len(set(names)) == len(names), "each case has its own name"
    silent = set(running.words()).difference(*(said(one["policy"]) for one in every))
    assert not silent, f"no case says: {sorted(silent)}"
    lines, spent = [], []
    for one in every:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = running.run(one, renames, Path(folder))
            except ShoalError as error:
                sys.exit(f"{one['name']}: {error}")
        spent.append((time.process_time() - start, one["name"]))
        lines.append(json.dumps({**one, **found}, ensure_ascii=False, separators=(",", ":")))
    head = json.dumps(
        {"machine": running.machine(), "forms": running.forms(), "words": running.words()}
    )
    text = head[:-1] + ',"cases":[\n' + ",\n".join(lines) + "\n]}\n"
    BEFORE.write_text(text, encoding="utf-8")
    told = f"{len(every)} cases, {sum(s for s, _ in spent):.1f} CPU seconds, {len(text):,} bytes"
    slow = ", ".join(f"{name} {s:.2f}" for s, name in sorted(spent)[:-5:-1])
    sys.stdout.write(f"{told}; slowest: {slow}\n")


if __name__ == "__main__":
    main()
