"""A million records through the private spatial trees, from Parquet to release, with CPU by stage.

Five quasi-identifiers and one confidential column of ten values. Also what the trees do for Adult
as cormode2013 uses it: the median relative error of count queries that each cover half of the
domain of every attribute, for several epsilons; averages of eight releases.
"""

import platform
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from _stages import Stages

from shoal.hazmat.fakes import SeededNoise
from shoal.hazmat.noise import OpenDPNoise
from shoal.mechanism.spatial_trees import Design, MeasuredTree, SpatialAxis, grow, known_total
from shoal.pipeline import protect_file
from shoal.pipeline.options import OutputOptions

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
ADULT = Path(sys.argv[2]) if len(sys.argv) > 2 else None
SEED, RELEASES, QUERIES = 1, 8, 1000
COLUMNS = ("workclass", "education-num", "sex", "hours-per-week", "income")
POLICY = """
version = 1
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110], step = 1 }
income = { role = "quasi-identifier", kind = "numeric", bounds = [0, 500000] }
sex = { role = "quasi-identifier", kind = "nominal", categories = ["f", "m"] }
region = { role = "quasi-identifier", kind = "nominal", categories = [REGIONS] }
hours = { role = "quasi-identifier", kind = "numeric", bounds = [0, 100], step = 1 }
job = { role = "confidential", kind = "nominal", categories = [JOBS] }
[protect]
method = "METHOD"
epsilon = 1
output = "OUTPUT"
"""


class Timed(OpenDPNoise):
    """The real noise, with the CPU time that it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = 0.0

    def _timed(self, draw: Any, *given: Any) -> Any:
        start = time.process_time()
        drawn = draw(*given)
        self.spent += time.process_time() - start
        return drawn

    def discrete_laplace(self, values: Any, *, scale: Fraction) -> Any:
        """Draw, and look at the clock."""
        return self._timed(lambda: super(Timed, self).discrete_laplace(values, scale=scale))

    def select_many(self, scores: Any, *, sensitivity: Fraction, epsilon: Fraction) -> Any:
        """Choose, and look at the clock."""
        return self._timed(
            lambda: super(Timed, self).select_many(scores, sensitivity=sensitivity, epsilon=epsilon)
        )


def people() -> pl.DataFrame:
    """A table of people with skew and dependence."""
    rng = np.random.default_rng(SEED)
    age = np.minimum(rng.gamma(6, 7, ROWS), 110).astype(int)
    region = rng.zipf(1.5, ROWS) % 20
    return pl.DataFrame(
        {
            "age": age,
            "income": np.minimum(rng.lognormal(9.5 + age / 100, 0.8, ROWS), 500_000),
            "sex": rng.choice(["f", "m"], ROWS),
            "region": np.array([f"r{i}" for i in range(20)])[region],
            "hours": rng.binomial(100, 0.38, ROWS),
            "job": np.array([f"j{i}" for i in range(10)])[(region + rng.zipf(2, ROWS)) % 10],
        }
    )


def million() -> None:
    """One release of each method and output."""
    quoted = {
        "REGIONS": ", ".join(f'"r{i}"' for i in range(20)),
        "JOBS": ", ".join(f'"j{i}"' for i in range(10)),
    }
    frame = people()
    for method in ("dp-kdtree", "dp-quadtree"):
        for output in ("rows", "tree"):
            with tempfile.TemporaryDirectory() as folder:
                home = Path(folder)
                text = POLICY.replace("METHOD", method).replace("OUTPUT", output)
                for mark, levels in quoted.items():
                    text = text.replace(mark, levels)
                (home / "policy.toml").write_text(text)
                data = home / "people.parquet"
                frame.write_parquet(data)
                noise, stages = Timed(), Stages()
                start = time.process_time()
                protect_file.protect(
                    data,
                    home / "policy.toml",
                    home / "out",
                    output=OutputOptions(force=True),
                    progress=stages,
                    noise=noise,
                )
                stages("end", 0, 1)
                total = time.process_time() - start
            draws = ", ".join(f"{count:,} {name}" for name, count in noise.drawn.items())
            print(f"{method}, {output}, {ROWS:,} x 5 + 1, epsilon 1: {total:.1f} CPU-s, "
                  f"noise {noise.spent / total:.0%} of it ({draws})")  # fmt: skip
            for stage, seconds in stages.spent.items():
                print(f"  {stage:<20} {seconds:.2f} CPU-s")
            print(f"  of which noise       {noise.spent:.2f} CPU-s")


def adult(path: Path) -> None:
    """Median relative error of half-domain count queries on Adult."""
    frame = pl.read_csv(path)
    columns = [*COLUMNS, "occupation"]
    coded = [np.unique(frame[name].to_numpy(), return_inverse=True) for name in columns]
    cells = np.column_stack([codes for _, codes in coded]).astype(np.int64)
    sizes = np.array([len(levels) for levels, _ in coded])
    workload = _queries(cells, sizes)
    axes = [SpatialAxis(int(size)) for size in sizes[:-1]]
    print(f"\nAdult, {len(cells):,} x 5 + occupation, {QUERIES:,} queries, median relative error")
    for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(10)):
        line = f"epsilon {float(epsilon):<6}"
        for name, stride, structure in (("kd", 2, Fraction(3, 10)), ("quad", 4, Fraction(0))):
            height = max(1, int(np.log2(max(len(cells) * float(epsilon) / 2, 2))))
            design = Design(epsilon / 2, min(height, 14), min(stride, height), structure)
            errors = []
            for seed in range(RELEASES):
                tree = grow(
                    cells[:, :-1],
                    axes,
                    values=cells[:, -1],
                    bins=int(sizes[-1]),
                    root=known_total(len(cells)),
                    design=design,
                    noise=SeededNoise(seed),
                )
                errors.append(_error(tree, workload))
            line += f"  {name} {np.mean(errors):.3f}"
        print(line)


def _queries(cells: Any, sizes: Any) -> list[tuple[Any, Any, int]]:
    rng = np.random.default_rng(SEED)
    half = np.maximum(sizes // 2, 1)
    made: list[tuple[Any, Any, int]] = []
    while len(made) < QUERIES:
        low = rng.integers(0, sizes - half + 1)
        count = int(((cells >= low) & (cells < low + half)).all(axis=1).sum())
        if count:
            made.append((low, low + half, count))
    return made


def _error(tree: MeasuredTree, workload: list[tuple[Any, Any, int]]) -> float:
    counts = tree.estimates()
    errors = []
    for low, high, truth in workload:
        common = np.minimum(tree.upper, high[:-1]) - np.maximum(tree.lower, low[:-1])
        share = (np.maximum(common, 0) / (tree.upper - tree.lower)).prod(axis=1)
        answer = share @ counts[:, low[-1] : high[-1]].sum(axis=1)
        errors.append(abs(answer - truth) / truth)
    return float(np.median(errors))


if __name__ == "__main__":
    print(platform.platform(), platform.python_version(), "\n")
    million()
    if ADULT is not None:
        adult(ADULT)
