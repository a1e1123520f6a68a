"""Release the tables of all cases, and keep what a change of the code's shape must not change.

    python -m tests.goldens.capture [PART OF A NAME]

writes `goldens.json`, one line for each case; where a part of a name is given, only the lines of
cases that have it. A commit that renews a line says why.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.goldens import cases, running

from shoal.errors import ShoalError

KEPT = Path(__file__).parent / "goldens.json"


def main() -> None:
    """Write `goldens.json`."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    old = json.loads(KEPT.read_text("utf-8"))["cases"] if part else {}
    lines = []
    for case in cases.every():
        held = old.get(case["name"])
        if held is None or part in case["name"]:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    held = running.run(case, Path(folder))
                except ShoalError as error:
                    sys.exit(f"{case['name']}: {error}")
        text = json.dumps(held, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        lines.append(f"{json.dumps(case['name'])}:{text}")
    head = json.dumps({"machine": running.machine()})
    KEPT.write_text(head[:-1] + ',"cases":{\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
