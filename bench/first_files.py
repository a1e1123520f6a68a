"""How well `shoal init` recognises files of people: shares of right guesses, file by file.

Whoever wrote `blind_files` had not seen the recogniser. It was improved by their first score, so
this score is no longer blind. bench/RESULTS.md has both.
"""

import sys
import tempfile
import time
from functools import reduce
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.conftest import DATA  # noqa: E402  # found by the line above
from tests.policy import blind_files, first_files  # noqa: E402
from tests.policy.first_files import Score, judged  # noqa: E402

from shoal import io, policy  # noqa: E402
from shoal.policy.draft import draft  # noqa: E402

WHAT = (
    "role", "kind", "date", "missing", "unit", "whole",
    "not published", "not averaged", "not needless",
)  # fmt: skip


def main() -> None:
    """Print the table."""
    scores = {}
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for name, file in (first_files.FILES | blind_files.FILES).items():
            path = Path(folder) / "people"
            answers = first_files.write(file, path)
            scores[name] = _scored(path.with_suffix(file.suffix), answers)
    for name, answers in first_files.REFERENCE.items():
        if (DATA / f"{name}.csv").exists():
            scores[name] = _scored(DATA / f"{name}.csv", answers)
    print("| file | columns | " + " | ".join(WHAT) + " |\n" + "|---" * (len(WHAT) + 2) + "|")
    for name, score in {**scores, "all": reduce(Score.__add__, scores.values())}.items():
        cells = (f"{score.right[what]}/{score.asked[what]}" for what in WHAT)
        print(f"| {name} | {score.asked['role']} | " + " | ".join(cells) + " |")
    print(f"\n{time.process_time() - started:.1f} CPU-s for {len(scores)} files, writing included")


def _scored(path: Path, answers: dict[str, str]) -> Score:
    made = draft(io.read(path), source=path.name)
    return judged(answers, policy.loads(made.text).schema)


if __name__ == "__main__":
    main()
