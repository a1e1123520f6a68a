"""How long the studio's pages take with a table of a million rows while a job runs.

    python bench/studio.py [ROWS [COLUMNS]]

Starts `shoal studio` as a process, uploads invented people, with invented measurements if more
columns than theirs are wanted, starts a release of them, and asks for
the five screens in turn until it ends or a minute has passed. Prints the slowest and the median
answer of each screen, and what the server itself worked for one of them.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import polars as pl

from shoal import sample

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
COLUMNS = int(sys.argv[2]) if len(sys.argv) > 2 else 0
SCREENS = ("data", "roles", "protect", "compare", "release")
LONGEST = 60.0
MARGIN = 0.05
"""Seconds between two requests, as a quick reader makes them."""


def main() -> None:
    """Measure, and print one line for each screen."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "people.parquet"
        people, rng = sample.people(ROWS, seed=1), np.random.default_rng(1)
        more = [
            pl.Series(f"lab{j}", rng.integers(0, 50, ROWS)) for j in range(people.width, COLUMNS)
        ]
        people.with_columns(more).write_parquet(table)
        words = [sys.executable, "-m", "shoal", "studio", "--port", "0", "--no-browser"]
        with subprocess.Popen(
            [*words, "--data", f"{folder}/home"], stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            try:
                measure(server.stdout.readline().split()[-1], table, server.pid)
            finally:
                server.terminate()


def measure(address: str, table: Path, pid: int) -> None:
    """Go the way to a job under way, and ask for pages."""
    root, _, key = address.partition("/?")
    name = root.removeprefix("http://")  # Under .localhost, which browsers find without asking.
    reached = f"http://127.0.0.1:{name.rpartition(':')[2]}"
    headers = {"origin": root, "host": name}
    with httpx.Client(base_url=reached, headers=headers, timeout=600) as client:
        client.get(f"/?{key}")
        id_ = client.post("/api/workspaces").json()["id"]
        began = time.perf_counter()
        with table.open("rb") as file:
            kind = {"content-type": "application/octet-stream"}
            job = client.post(
                f"/api/workspaces/{id_}/data?label=people.parquet", content=file, headers=kind
            ).json()
        print(f"upload of {table.stat().st_size / 1e6:.0f} MB: {time.perf_counter() - began:.1f} s")
        while client.get(f"/api/jobs/{job['id']}").json()["state"] in {"waiting", "running"}:
            time.sleep(0.2)
        print(f"first look at {ROWS:,} rows: {time.perf_counter() - began:.1f} s")
        job = client.post(f"/api/workspaces/{id_}/jobs", json={"kind": "protect"}).json()
        times: dict[str, list[float]] = {name: [] for name in SCREENS}
        worked, asked, start = cpu(pid), 0, time.perf_counter()
        while time.perf_counter() - start < LONGEST:
            for name in SCREENS:
                before = time.perf_counter()
                assert client.get(f"/w/{id_}/{name}").status_code == 200
                times[name].append(time.perf_counter() - before)
                asked += 1
                time.sleep(MARGIN)
            if client.get(f"/api/jobs/{job['id']}").json()["state"] not in {"waiting", "running"}:
                break
        spent = (cpu(pid) - worked) / asked
    print(f"while a release was made, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores:")
    for name, seconds in times.items():
        print(f"  {name:8} median {statistics.median(seconds):.3f} s  slowest {max(seconds):.3f} s")
    every = [one for seconds in times.values() for one in seconds]
    print(f"  all      median {statistics.median(every):.3f} s  slowest {max(every):.3f} s, "
          f"of {asked} pages; the server worked {spent:.3f} s for a page")  # fmt: skip


def cpu(pid: int) -> float:
    """Seconds that a process has worked."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
