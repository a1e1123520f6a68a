"""The whole pipeline against the cost of reading and writing the file.

A million rows of six columns as CSV through `individual-ranking`, from file to folder, in units of
Polars reading and writing the same file; then where the time goes. CPU seconds of this
process, all threads together; start-up and compilation are paid before.
"""

import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from shoal import sample
from shoal.pipeline import protect_file
from shoal.pipeline.options import OutputOptions

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
COLUMNS = ("age", "education", "hours", "income", "tax", "weight")
LEVELS = '["none", "primary", "secondary", "tertiary"]'


def cpu(work: Callable[[], Any], repeat: int = 3) -> float:
    """Least CPU seconds of some runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def policy(path: Path) -> Path:
    """A policy that protects all six columns."""
    lines = ["version = 1", "[columns]"]
    for name in COLUMNS:
        more = f', categories = {LEVELS}, kind = "ordinal"' if name == "education" else (
            ', kind = "numeric"'
        )  # fmt: skip
        lines.append(f'{name} = {{ role = "quasi-identifier"{more} }}')
    path.write_text("\n".join([*lines, "[protect]", 'method = "individual-ranking"', "k = 10"]))
    return path


def main() -> None:
    """Measure and print."""
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        data, rules = home / "people.csv", policy(home / "policy.toml")
        sample.people(20_000, 1).select(COLUMNS).write_csv(data)
        protect_file.protect(data, rules, home / "warm")  # compiles
        sample.people(ROWS, 1).select(COLUMNS).write_csv(data)
        yardstick = cpu(lambda: pl.read_csv(data).write_csv(home / "copy.csv"))
        print(
            f"Polars reads and writes the CSV of {ROWS:,} x {len(COLUMNS)}: {yardstick:.2f} CPU-s"
        )
        for form in ("csv", "parquet"):
            spent: dict[str, float] = {}
            state = {"stage": "planning", "since": time.process_time()}

            def watch(stage: str, _done: int, _total: int, *, spent: dict[str, float] = spent,
                      state: dict[str, Any] = state) -> None:  # fmt: skip
                now = time.process_time()
                spent[state["stage"]] = spent.get(state["stage"], 0.0) + now - state["since"]
                state.update(stage=stage, since=now)

            def run(form: str = form, watch: Any = watch) -> None:
                protect_file.protect(
                    data,
                    rules,
                    home / "out",
                    output=OutputOptions(file_format=form, force=True),
                    progress=watch,
                )
                watch("between runs", 0, 1)

            total = cpu(run)
            ratio = total / yardstick
            print(f"individual-ranking, k=10, to {form}: {total:.2f} CPU-s, {ratio:.1f} times")
            for stage, seconds in spent.items():
                if stage not in {"between runs", "planning"}:
                    print(f"  {stage:<20} {seconds / 3:.2f} CPU-s")


if __name__ == "__main__":
    main()
