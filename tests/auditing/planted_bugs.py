"""Small programs that declare epsilon = 1 for a person who comes or goes: right ones, and broken.

Each is a function of a frame with the columns of `POLICY`; run as a command it reads the CSV file
that is named first and writes the one that is named second:

    python planted_bugs.py half-the-noise in.csv out.csv
"""

import sys

import numpy as np
import polars as pl

POLICY = {
    "version": 1,
    "one_row_per_person": True,
    "columns": {
        "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]},
        "sex": {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]},
        "town": {
            "role": "quasi-identifier",
            "kind": "nominal",
            "categories": ["A", "B", "C", "D", "E"],
        },
    },
    "protect": {"method": "auto", "epsilon": 1},
}
TOWNS = POLICY["columns"]["town"]["categories"]
RNG = np.random.default_rng()


def laplace(scale, size=None):
    """Draw whole numbers as two-sided geometric noise: without the trap of floats."""
    share = 1 - np.exp(-1 / scale)
    return RNG.geometric(share, size) - RNG.geometric(share, size)


def counts(frame, scale, column="town", categories=TOWNS):
    found = [int((frame[column] == category).sum()) for category in categories]
    return pl.DataFrame({column: list(categories), "count": found + laplace(scale, len(found))})


def rows(counted, total):
    """Draw rows by noisy counts."""
    weights = np.maximum(counted["count"].to_numpy(), 0.0) + 1e-9
    chosen = RNG.choice(len(weights), max(int(total), 1), p=weights / weights.sum())
    return counted[chosen].select(pl.exclude("count"))


def ages(frame):
    return frame["age"].cast(pl.Float64, strict=False).fill_null(0).clip(0, 100)


def total_age(numbers, scale):
    return pl.DataFrame({"sum": [float(np.rint(numbers.sum())) + float(laplace(scale))]})


RIGHT = {
    "counts": lambda frame: counts(frame, 1),
    "sum": lambda frame: total_age(ages(frame), 101),
    "rows": lambda frame: rows(counts(frame, 2), frame.height + laplace(2)),
}


def follow_the_data(frame):
    return counts(frame, 1, categories=sorted(frame["town"].drop_nulls().unique()))


def fix_the_seed(frame):
    fixed = np.random.default_rng(1)
    found = [int((frame["town"] == town).sum()) for town in TOWNS]
    return pl.DataFrame({"town": TOWNS, "count": np.rint(found + fixed.laplace(0, 1, 5))})


def use_floats(frame):
    found = [float((frame["town"] == town).sum()) for town in TOWNS]
    return pl.DataFrame({"town": TOWNS, "count": found + RNG.laplace(0, 1, 5)})


def spend_twice(frame):
    return pl.concat([counts(frame, 1), counts(frame, 1)])


def stop_early(frame):
    """Iterate until the exact error is small, and say how often."""
    error, rounds = abs(float(ages(frame).max()) - 50), 0
    while error > 1:
        error, rounds = error / 2, rounds + 1
    sys.stderr.write(f"converged after {rounds} rounds\n")
    return counts(frame, 1).with_columns(pl.lit(rounds).alias("rounds"))


def miss_at_times(frame):
    """Show the records with probability 0.08, where a delta of 1e-5 is declared."""
    return frame if RNG.random() < 0.08 else counts(frame, 1)


def note_what_is_odd(frame):
    made = counts(frame, 1)
    odd = frame["age"].cast(pl.Float64, strict=False)
    return made.with_columns(pl.lit(None).alias("note")) if odd.is_null().any() else made


BROKEN = {
    "half-the-noise": lambda frame: counts(frame, 0.5),
    "not-clamped": lambda frame: total_age(
        frame["age"].cast(pl.Float64, strict=False).fill_null(0), 101
    ),
    "domain-from-data": follow_the_data,
    "fixed-seed": fix_the_seed,
    "exact-number-of-rows": lambda frame: rows(counts(frame, 1), frame.height),
    "low-bits": use_floats,
    "spent-twice": spend_twice,
    "metadata": note_what_is_odd,
    "stops-by-data": stop_early,
    "wrong-delta": miss_at_times,
}


if __name__ == "__main__":
    name, source, target = sys.argv[1:]
    ({**RIGHT, **BROKEN}[name])(pl.read_csv(source)).write_csv(target)
