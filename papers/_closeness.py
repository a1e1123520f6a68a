"""A table with one confidential column, its classes, and how far they are from the whole table.

And what the paper has, with its place in Shoal.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from _common import Floats
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Case:
    """A table with quasi-identifiers and one confidential column of categories.

    Attributes:
        bands: upper ends of public bands for each numeric quasi-identifier.
        secret: the confidential column.
        levels: its categories, in order.
        kind: nominal, with the EMD of equal distances; or ordinal, with the ordered one.
    """

    name: str
    frame: pl.DataFrame
    bands: Mapping[str, Sequence[float]]
    secret: str
    levels: Sequence[str]
    kind: str

    @property
    def keys(self) -> list[str]:
        """The quasi-identifiers."""
        return [name for name in self.frame.columns if name != self.secret]

    @property
    def ground(self) -> str:
        """The ground distance of its EMD."""
        return "equal" if self.kind == "nominal" else "ordered"

    @cached_property
    def totals(self) -> Ints:
        """How many people have each category."""
        return np.bincount(self.codes(self.frame), minlength=len(self.levels))

    @property
    def rarest(self) -> int:
        """How many people have the rarest value that occurs."""
        return int(self.totals[self.totals > 0].min())

    @property
    def title(self) -> str:
        """For pages and plots."""
        return f"{self.name}, {self.secret}"

    def codes(self, frame: pl.DataFrame) -> Ints:
        """The confidential column as positions in its levels."""
        return (
            frame[self.secret].cast(pl.String).cast(pl.Enum(self.levels)).to_physical().to_numpy()
        )

    def shown(self, data: pl.DataFrame) -> tuple[Ints, Floats]:
        """What stands in each row, and which distribution over the values it means.

        A bucket means its values in their shares of the whole table, which t-closeness takes to
        be public.
        """
        if set(data[self.secret].cast(pl.String)) <= set(self.levels):
            return self.codes(data), np.eye(len(self.levels))
        names = data[self.secret].cast(pl.String)
        place = {name: i for i, name in enumerate(sorted(names.unique()))}
        bucket = names.replace_strict(place, return_dtype=pl.Int64).to_numpy()
        held = table(bucket, self.codes(self.frame), len(self.levels))
        return bucket, held / held.sum(axis=1, keepdims=True)

    def cells(self, frame: pl.DataFrame) -> Ints:
        """Number the public bands of the quasi-identifiers that rows fall in."""
        cell = np.zeros(frame.height, dtype=np.int64)
        for name in self.keys:
            if name in self.bands:
                ends = self.bands[name]
                cell = cell * (len(ends) + 1) + np.searchsorted(ends, frame[name].to_numpy())
            else:
                values = sorted(self.frame[name].unique())
                place = {value: i for i, value in enumerate(values)}
                codes = frame[name].replace_strict(place, return_dtype=pl.Int64)
                cell = cell * len(values) + codes.to_numpy()
        return cell

    def policy(self, k: int, require: Mapping[str, Any] | None, **protect: Any) -> dict[str, Any]:
        """A policy; confidential categories are taken as public."""
        columns: dict[str, Any] = {
            name: {"role": "quasi-identifier", "kind": "numeric"}
            if name in self.bands
            else {"role": "quasi-identifier", "kind": "nominal"}
            for name in self.keys
        }
        columns[self.secret] = {
            "role": "confidential",
            "kind": self.kind,
            "categories": list(self.levels),
        }
        rules = {
            "version": 1,
            "one_row_per_person": True,
            "columns": columns,
            "protect": {"k": k, **protect},
        }
        if require is not None:
            rules["require"] = {"t-closeness": {**require, "column": self.secret}}
        return rules


def labels(data: pl.DataFrame, names: Sequence[str]) -> Ints:
    """Number the classes: rows that agree in all quasi-identifiers."""
    ranks = data.select(pl.struct(names).rank("dense").cast(pl.Int64) - 1)
    return ranks.to_series().to_numpy()


def table(classes: Ints, codes: Ints, width: int, number: int | None = None) -> Floats:
    """Counts by class and value; so many classes, or up to the last that has a record."""
    size = (number or int(classes.max()) + 1) * width
    counts = np.bincount(classes * width + codes, minlength=size).reshape(-1, width)
    return counts.astype(np.float64)


def apart(one: Floats, other: Floats) -> float:
    """Total variation between two distributions."""
    return float(np.abs(one - other).sum() / 2)


def emd_of(counts: Floats, *, ordered: bool) -> float:
    """Largest earth mover's distance between a class and the whole table."""
    gaps = counts / counts.sum(axis=1, keepdims=True) - counts.sum(axis=0) / counts.sum()
    if ordered:
        return float(np.abs(np.cumsum(gaps, axis=1)).sum(axis=1).max() / (counts.shape[1] - 1))
    return float(np.abs(gaps).sum(axis=1).max() / 2)


def local_error(alike: Ints, truth: Ints, classes: Ints, inside: Floats) -> float:
    """How far the values shown for a person's class are from those of people alike.

    Mean over persons of the total variation between the true values in the person's class of
    plain k-anonymity and the released values in the person's class of the release.
    """
    exact = table(alike, truth, inside.shape[1])
    exact /= exact.sum(axis=1, keepdims=True)
    shown = inside / inside.sum(axis=1, keepdims=True)
    met, counts = np.unique(alike * len(shown) + classes, return_counts=True)
    gaps = np.abs(exact[met // len(shown)] - shown[met % len(shown)]).sum(axis=1) / 2
    return float(gaps @ counts / counts.sum())


def quasi_identifier_loss(case: Case, data: pl.DataFrame) -> tuple[float, float]:
    """Mean over quasi-identifiers of SSE / SST, or of the share of changed categories.

    And the sum of squared errors of the numbers, each column divided by its deviation.
    """
    losses, total = [], 0.0
    for name in case.keys:
        if name not in case.bands:
            losses.append(float((case.frame[name] != data[name]).mean()))
            continue
        x, y = (f[name].cast(pl.Float64).to_numpy() for f in (case.frame, data))
        losses.append(float(((x - y) ** 2).sum() / ((x - x.mean()) ** 2).sum()))
        total += losses[-1] * len(x)
    return float(np.mean(losses)), total


def emd_for(t: float) -> Decimal:
    """The largest EMD that t-closeness by ratio allows: (t - 1) / (t + 1), rounded down.

    Let x be the share, in the whole table, of the values that a class has more often. What the
    class has too much of them is at most (t - 1) x, and what it lacks of the others, which is
    as much, at most (1 - 1/t) (1 - x). The smaller of the two is largest at x = 1 / (t + 1).
    It is the EMD with equal distances; the ordered one is not above it.
    """
    return Decimal(math.floor(1e6 * (t - 1) / (t + 1))) / 1_000_000


KANON_DP = "[`kanon-dp`](../reference/methods/kanon-dp.md)"
BUCKETIZATION = "[`bucketization`](../reference/methods/bucketization.md)"
MONDRIAN = "[`mondrian`](../reference/methods/mondrian.md)"
CLOSENESS = "[policy](../reference/policy.md#t-closeness)"
LATER = "[the page on section 8](domingoferrer2015-pram.md)"
COVERED = (
    (
        "k-anonymity (2.1)",
        "`[require] k-anonymity`; every method that groups",
        "[policy](../reference/policy.md#require), [methods](../reference/methods/index.md)",
    ),
    (
        "t-closeness, Definition 1",
        "`[require] t-closeness`, checked exactly; five distances",
        CLOSENESS,
    ),
    (
        "ε-differential privacy, Definition 2, change of one record",
        "claims with `change-one` neighbours",
        "[privacy](../explanation/differential-privacy.md)",
    ),
    (
        "Stochastic t-closeness, Definition 3",
        "`StochasticTCloseness`, `[require] stochastic-t-closeness`, `stochastic_t`",
        "[policy](../reference/policy.md#stochastic-t-closeness), `shoal.privacy_models`",
    ),
    ("The distance of Definition 4", '`distance = "ratio"`', CLOSENESS),
    (
        "Proposition 1, t from k, N and ε",
        "`kanon-dp` takes `epsilon` or `t`; `t_from_epsilon`, `epsilon_for_t`; `shoal closeness`",
        f"{KANON_DP}, [commands](../reference/commands.md)",
    ),
    (
        "Approach (i), attributes jointly",
        '`joint = true`, the default; `column = ["a", "b"]` in a requirement',
        KANON_DP,
    ),
    (
        "Approach (ii), each attribute separately",
        "`joint = false`; a list of requirements; `mondrian` for plain t-closeness",
        f"{KANON_DP}, {MONDRIAN}",
    ),
    ("Proposition 2", "what every check by ratio computes", "`shoal.privacy_models.k_l_and_t`"),
    (
        "Proposition 3, exp(ε/2)-closeness",
        "a conversion, stated as not claimed: `epsilon_from_t`, `t_for_epsilon`, `shoal closeness`",
        BUCKETIZATION,
    ),
    ("Fig. 1 and 2, the example", "run again", "this page"),
    ("Fig. 3 and 4, three buckets and two", "drawn again", "this page"),
    (
        "Optimal bucketization, t + 1 buckets (6.1)",
        "the default `b` of `bucketization`; `rank_buckets`",
        BUCKETIZATION,
    ),
    (
        "“In general, a clustering algorithm can be used”",
        "branches of a hierarchy stay together; several columns by `joint_buckets`",
        BUCKETIZATION,
    ),
    (
        "k, and l of k = N/((t+1) l) (6.2)",
        "`l` of `bucketization`, from which `k` follows",
        BUCKETIZATION,
    ),
    ("Sizes eᵢ, bounds of the counts (6.2)", "`class_sizes`, `count_bounds`", "`shoal.partition`"),
    ("Table 1", "tested, for l = 1 and 3", "this page"),
    ("The algorithm of 6.3", "`bucketization`, k-anonymity and t-closeness proved", BUCKETIZATION),
    (
        "Future: a construction for stochastic t-closeness other than by differential privacy",
        "`pram`",
        LATER,
    ),
    ("Future: utility of stochastic and plain t-closeness", "six ways compared on Adult", LATER),
    (
        "Future: does stochastic t-closeness yield ε-differential privacy?",
        "an answer with a proof and a counterexample that run",
        "this page; `tests/privacy_models/test_stochastic_t_closeness.py`",
    ),
    ("Future: this distance and the earth mover's", "both compared on Adult", LATER),
)
