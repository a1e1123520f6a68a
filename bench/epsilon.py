"""A million records through the noisy methods, from Parquet to release, with CPU by stage."""

import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.hazmat.noise import OpenDPNoise
from shoal.pipeline import protect_file
from shoal.pipeline.options import OutputOptions

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
COLUMNS = ("a", "b", "c", "d")
CASES = {"mdav-laplace": "", "ir-laplace": 'release_form = "column-shuffled"'}


class Timed(OpenDPNoise):
    """The real noise, with the CPU time that it takes."""

    spent = 0.0

    def discrete_laplace(self, values: Any, *, scale: Any) -> Any:
        """Draw, and count the time."""
        start = time.process_time()
        try:
            return super().discrete_laplace(values, scale=scale)
        finally:
            self.spent += time.process_time() - start


def policy(path: Path, method: str, more: str) -> Path:
    """A policy that protects four numbers at k = 10 and epsilon = 1."""
    lines = ["version = 1", "[columns]"]
    column = '{ role = "quasi-identifier", kind = "numeric", bounds = [-6, 6] }'
    lines += [f"{name} = {column}" for name in COLUMNS]
    lines += ["[protect]", f'method = "{method}"', "k = 10", "epsilon = 1.0", more]
    path.write_text("\n".join(lines))
    return path


def main() -> None:
    """Measure and print."""
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        data = home / "table.parquet"
        for method, more in CASES.items():
            rules = policy(home / "policy.toml", method, more)
            for rows in (30_000, ROWS):  # the first run compiles
                pl.DataFrame(rng.normal(size=(rows, 4)), schema=list(COLUMNS)).write_parquet(data)
                spent: dict[str, float] = {}
                state: dict[str, Any] = {"stage": "planning", "since": time.process_time()}

                def watch(stage: str, _done: int, _total: int, *, spent: dict[str, float] = spent,
                          state: dict[str, Any] = state) -> None:  # fmt: skip
                    now = time.process_time()
                    last = state["stage"]
                    spent[last] = spent.get(last, 0.0) + now - state["since"]
                    state.update(stage=stage, since=now)

                noise = Timed()
                start = time.process_time()
                protect_file.protect(
                    data,
                    rules,
                    home / "out",
                    output=OutputOptions(force=True),
                    progress=watch,
                    noise=noise,
                )
                watch("end", 0, 1)
                total = time.process_time() - start
            share = noise.spent / total
            print(f"{method}, {ROWS:,} x 4, k=10: {total:.1f} CPU-s, noise {share:.0%} of it")
            for stage, seconds in spent.items():
                print(f"  {stage:<20} {seconds:.2f} CPU-s")
            print(f"  of which noise       {noise.spent:.2f} CPU-s")


if __name__ == "__main__":
    main()
