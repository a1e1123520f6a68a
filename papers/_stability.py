"""Definition 3.1 and Fig. 2 of Iftikhar et al. (2019) on data: what one changed record changes.

Records are changed one at a time, in turn to the values of another record and to a place drawn at
random in the public box. MDAV groups both tables by itself. I-MDAV does too. S-MDAV is Algorithm 1,
which takes the pair and groups the second table after the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import _common as common
import numpy as np
from _common import Floats, Line, Panel, Study
from scipy.optimize import linear_sum_assignment

from shoal.core import Partition
from shoal.partition import insensitive, mdav, stability, stable

MDAV, STABLE, INSENSITIVE = "MDAV", "S-MDAV", "I-MDAV"
STYLE = {MDAV: "blue", INSENSITIVE: "red", STABLE: "green"}
KS = (4, 10, 30, 100)
"""Of these the first is that of Fig. 2."""


@dataclass(frozen=True)
class Change:
    """What one changed record did to the groups of a method.

    Attributes:
        groups: pairs of corresponding groups that differ.
        most: records by which a pair differs at most.
        records: records in groups that differ.
        moved: how far all centroids move in all, mean over columns, in widths Δ; the least over
            all bijections between the groups.
        swapped: whether S-MDAV moved a record to another group.
    """

    table: str
    method: str
    k: int
    change: str
    groups: int
    most: int
    records: int
    moved: float
    swapped: bool

    @property
    def row(self) -> tuple[object, ...]:
        """For a CSV file."""
        return (self.table, self.method, self.k, self.change, self.groups, self.most, self.records,
                self.moved)  # fmt: skip


HEADER = ("table", "method", "k", "change", "groups", "most_records", "records", "moved")


def changed(study: Study, ks: Sequence[int], changes: int) -> list[Change]:
    """Change one record after another; the columns' scale stays that of the first table."""
    low, high = (np.array([pair[at] for pair in study.bounds.values()]) for at in (0, 1))
    U = (study.matrix - low) / (high - low)
    spread = U.std(axis=0)
    rng = np.random.default_rng(common.SEED)
    found = []
    for k in ks:
        grouped = {MDAV: mdav(U / spread, k), INSENSITIVE: insensitive(U, k, order="corners")}
        for number in range(changes):
            kind = "another record" if number % 2 else "anywhere"
            row, V = int(rng.integers(len(U))), U.copy()
            V[row] = rng.random(U.shape[1]) if number % 2 == 0 else U[rng.integers(len(U))]
            pairs = {
                MDAV: (grouped[MDAV], mdav(V / spread, k)),
                INSENSITIVE: (grouped[INSENSITIVE], insensitive(V, k, order="corners")),
                STABLE: stable(U / spread, V / spread, k),
            }
            for method, (before, after) in pairs.items():
                differ = stability(before, after, row)
                records, moved = _moved(U, V, before, after)
                swapped = bool((before.labels != after.labels).any())
                found.append(Change(study.name, method, k, kind, *differ, records, moved, swapped))
    return found


def _moved(U: Floats, V: Floats, before: Partition, after: Partition) -> tuple[int, float]:
    """Records in groups that differ, and the least total move of their centroids."""
    one, other = _sets(U, before), _sets(V, after)
    left = [g for key, g in one.items() if key not in other]
    right = [g for key, g in other.items() if key not in one]
    if not left:
        return 0, 0.0
    A, B = _centroids(U, before)[left], _centroids(V, after)[right]
    apart = np.abs(A[:, None] - B).mean(axis=2)
    pairs = linear_sum_assignment(apart)
    return int(before.sizes[left].sum()), float(apart[pairs].sum())


def _sets(U: Floats, partition: Partition) -> dict[bytes, int]:
    """Each group's number by its members and their values."""
    order = np.argsort(partition.labels, kind="stable")
    ends = np.cumsum(partition.sizes)
    members = np.split(order, ends[:-1])
    return {rows.tobytes() + U[rows].tobytes(): g for g, rows in enumerate(members)}


def _centroids(U: Floats, partition: Partition) -> Floats:
    sums = np.column_stack([np.bincount(partition.labels, u) for u in U.T])
    return sums / partition.sizes[:, None]


def of(found: Sequence[Change], table: str, method: str, k: int) -> list[Change]:
    """The changes of one table, method and k."""
    return [c for c in found if (c.table, c.method, c.k) == (table, method, k)]


def draw(path: Path, studies: Sequence[Study], found: Sequence[Change], ks: Sequence[int]) -> None:
    """Groups, and records in groups, that differ after one change, against k."""
    panels = []
    for name, words in (("groups", "groups that differ"), ("records", "records in them")):
        for study in studies:
            lines = []
            for method, colour in STYLE.items():
                values = {
                    k: [getattr(c, name) for c in of(found, study.name, method, k)] for k in ks
                }
                for label, middle, dash in (("median", np.median, ""), ("most", np.max, "6 4")):
                    points = [(k, float(middle(values[k]))) for k in ks]
                    lines.append(Line(f"{method}, {label}", points, colour, dash, mark=True))
            whole = [(k, float(study.frame.height // (k if name == "groups" else 1))) for k in ks]
            lines.append(Line("all", whole, "grey", "2 3"))
            panels.append(Panel(f"{study.name}: {words}", lines, words))
    common.write_chart(path, "What one changed record changes", panels)


def medians(studies: Sequence[Study], found: Sequence[Change], ks: Sequence[int]) -> str:
    """The share of its groups that MDAV changes, over tables and k."""
    shares = {
        (s.name, k): [100 * c.groups / (s.frame.height // k) for c in of(found, s.name, MDAV, k)]
        for s in studies
        for k in ks
    }
    middle = [float(np.median(some)) for some in shares.values()]
    most = max(map(max, shares.values()))
    return f"{min(middle):.0f}% to {max(middle):.0f}% of its groups, and at most {most:.0f}%"


def table(studies: Sequence[Study], found: Sequence[Change], ks: Sequence[int]) -> str:
    """Medians and largest values, for the page."""
    rows = []
    for study in studies:
        for k in ks:
            for method in STYLE:
                some = of(found, study.name, method, k)
                groups, records = [c.groups for c in some], [c.records for c in some]
                whole = study.frame.height // k
                rows.append([
                    study.name, str(k), method,
                    f"{np.median(groups):,.0f}, at most {max(groups):,} of {whole:,}",
                    f"{np.median(records):,.0f}, at most {max(records):,}",
                    str(max(c.most for c in some)),
                    common.show(max(c.moved for c in some)),
                ])  # fmt: skip
    header = ["table", "k", "method", "groups that differ: median", "records in them: median",
              "a pair differs by at most", "centroids move by at most, in Δ"]  # fmt: skip
    return common.grid_table(header, rows)
