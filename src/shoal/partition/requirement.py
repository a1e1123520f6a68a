"""Requirements of every group of a partition, besides its size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from shoal.core import Distance, Diversity, LDiversity, TCloseness, whole_numbers
from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.partition.kernels import requirement as kernels
from shoal.partition.kernels.requirement import Rules, meets

_WIDE = 2**62


@dataclass(frozen=True, eq=False)
class Requirement:
    """A privacy model with the confidential values that it applies to.

    Attributes:
        guarantee: what every group must meet. The names of columns in it are not used.
        codes: value of each record, as whole numbers from 0, a missing cell having its own;
            of several columns together, one code per combination. Under the ordered distance
            the codes are the order.
        width: number of values; None takes all up to the largest that occurs. It matters for
            the ordered distance, whose longest way is width - 1.
        edges: the hierarchy of a hierarchical distance, as `Hierarchy.edges` gives it: one row
            per value.
        totals: records of the whole table by value, if `codes` are of a part of it, such as one
            block of several; None if they are the whole table.
    """

    guarantee: LDiversity | TCloseness
    codes: Ints
    width: int | None = None
    edges: Ints | None = None
    totals: Ints | None = None

    def __post_init__(self) -> None:
        codes = whole_numbers(self.codes, "codes")
        needed = int(codes.max(initial=-1)) + 1
        width = needed if self.width is None else self.width
        if width < needed:
            raise InputError(
                f"The argument width, the number of different values, must be at least "
                f"{needed}, to cover all values that occur; found {width}."
            )
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "width", max(width, 1))
        if self.totals is not None:
            totals = whole_numbers(self.totals, "totals")
            held = np.bincount(codes, minlength=len(totals))
            if len(totals) != max(width, 1) or len(held) > width or (held > totals).any():
                raise InputError(
                    f"The totals of the whole table must count each of the {max(width, 1)} "
                    f"values at least as often as the codes of the records do."
                )
            object.__setattr__(self, "totals", totals)
        if getattr(self.guarantee, "distance", None) is Distance.HIERARCHICAL and (
            self.edges is None or len(self.edges) < width
        ):
            raise InputError(
                "A hierarchical distance needs the edges of the hierarchy, with one row for "
                f"each of its {width} values."
            )


def compile_requirements(requirements: Sequence[Requirement], n: int) -> tuple[Rules, Ints]:
    """Compile requirements on n records for the kernels: rules, and a row of codes for each."""
    codes = np.array([rule.codes for rule in requirements], np.int64).reshape(-1, n)
    return rules_of(requirements, n), codes


def rules_of(requirements: Sequence[Requirement], n: int) -> Rules:
    """Compile requirements on n records for the kernels, without the records' values."""
    wholes = {int(rule.totals.sum()) for rule in requirements if rule.totals is not None}
    if wholes:
        if len(wholes) > 1 or any(rule.totals is None for rule in requirements):
            raise InputError("All requirements must refer to the same whole table.")
        n = wholes.pop()
    for rule in requirements:
        # No distance sums more than n times n per value, twice that in a tree.
        if 2 * _width(rule) * n * n >= _WIDE and isinstance(rule.guarantee, TCloseness):
            raise InputError(
                f"A distance over {_width(rule)} values and {n} records is too large to be "
                "computed exactly; use fewer values."
            )
    first = np.cumsum([0, *[_width(rule) for rule in requirements]])
    paths = [_paths(rule) for rule in requirements]
    top = np.cumsum([0, *[len(length) for _, _, length in paths]])
    deepest = max([1, *[path.shape[1] for path, _, _ in paths]])
    rules = Rules(
        records=n,
        kind=np.array([_kind(rule) for rule in requirements], np.int64),
        first=first.astype(np.int64),
        whole=np.zeros(len(requirements), np.int64),
        part=np.zeros(len(requirements), np.int64),
        of=np.ones(len(requirements), np.int64),
        least=np.zeros(len(requirements), np.int64),
        log=np.zeros(len(requirements)),
        total=np.zeros(first[-1], np.int64),
        low=np.zeros((first[-1], 2), np.int64),
        high=np.zeros((first[-1], 2), np.int64),
        path=np.full((first[-1], deepest), -1, np.int64),
        top=top.astype(np.int64),
        below=np.concatenate([np.zeros(0, np.int64), *[below for _, below, _ in paths]]),
        length=np.concatenate([np.zeros(0, np.int64), *[length for _, _, length in paths]]),
    )
    for r, rule in enumerate(requirements):
        values = slice(first[r], first[r + 1])
        rules.total[values] = _totals(rule)
        path = paths[r][0]
        rules.path[values, : path.shape[1]] = np.where(path >= 0, path + top[r], -1)
        _threshold(rules, r, rule)
    return rules


def unmet(requirements: Sequence[Requirement]) -> Requirement | None:
    """Return the first requirement that all records together violate, or None.

    If there is, no grouping of these records meets it, see `mondrian_tree`. All requirements
    must be about the same records. Cost: O(n) per requirement.

    >>> many = LDiversity(Fraction(2), Diversity.DISTINCT, ("ill",), ("age",))
    >>> unmet([Requirement(many, [0, 1, 1])]) is None
    True
    """
    if not requirements:
        return None
    return find_unmet(requirements, rules_of(requirements, len(requirements[0].codes)))


def find_unmet(requirements: Sequence[Requirement], rules: Rules) -> Requirement | None:
    """Return the first requirement that all records together violate, or None.

    If the whole table violates a model, every grouping does, because merging groups preserves each
    model.
    """
    seen = np.arange(rules.total.size)
    for r, rule in enumerate(requirements):
        if rules.kind[r] == kernels.ENTROPY:
            counts = rules.total[rules.first[r] : rules.first[r + 1]]
            fine = _entropy_holds(counts[counts > 0].tolist(), rule.guarantee)
        else:
            width = int(rules.first[r + 1] - rules.first[r])
            fine = meets(rules, r, rules.records, rules.total, seen, width)
        if not fine:
            return rule
    return None


def _totals(own: Requirement) -> Ints:
    """Count the records of the whole table by value."""
    return np.bincount(own.codes, minlength=_width(own)) if own.totals is None else own.totals


def _width(own: Requirement) -> int:
    return own.width or 1


def _kind(own: Requirement) -> int:
    if isinstance(own.guarantee, LDiversity):
        return {
            Diversity.DISTINCT: kernels.DISTINCT,
            Diversity.FREQUENCY: kernels.FREQUENCY,
            Diversity.RECURSIVE: kernels.RECURSIVE,
            Diversity.ENTROPY: kernels.ENTROPY,
        }[own.guarantee.kind]
    return {
        Distance.EQUAL: kernels.VARIATION,
        Distance.VARIATION: kernels.VARIATION,
        Distance.ORDERED: kernels.ORDERED,
        Distance.RATIO: kernels.RATIO,
        Distance.HIERARCHICAL: kernels.HIERARCHICAL,
    }[own.guarantee.distance]


def longest_way(own: Requirement) -> int:
    """Return the unit of a distance: `moved_mass` returns this multiple of the distance."""
    if _kind(own) == kernels.ORDERED:
        return max(_width(own) - 1, 1)
    return 2 * _paths(own)[0].shape[1] if _kind(own) == kernels.HIERARCHICAL else 1


def _threshold(rules: Rules, r: int, own: Requirement) -> None:
    """Write the threshold of a rule, in the units that `meets` compares."""
    n = rules.records
    if isinstance(own.guarantee, LDiversity):
        l = own.guarantee.l  # noqa: E741 (as in the literature)
        rules.least[r] = min(math.ceil(l), n + 1)
        rules.log[r] = math.log(l)
        x = 1 / own.guarantee.c if own.guarantee.c is not None else 1 / l
        most = n + 1
    else:
        longest = longest_way(own)
        x = own.guarantee.t * longest * n
        most = longest * n + 1
        if rules.kind[r] == kernels.RATIO:
            _shares(rules, r, own.guarantee.t)
    x = below(min(x, Fraction(most)), n)
    rules.whole[r] = math.floor(x)
    rules.part[r] = (x - math.floor(x)).numerator
    rules.of[r] = x.denominator


def _shares(rules: Rules, r: int, t: Fraction) -> None:
    """Write the bounds of each value's share in a class: q/t and q t."""
    n = rules.records
    for v in range(rules.first[r], rules.first[r + 1]):
        q = Fraction(int(rules.total[v]), n)
        most = below(min(q * t, Fraction(1)), n)
        least = -below(-q / t, n)
        rules.high[v] = most.numerator, most.denominator
        rules.low[v] = least.numerator, least.denominator


def below(x: Fraction, most: int) -> Fraction:
    """Return the largest fraction up to x with a denominator of at most `most`.

    A fraction with such a denominator is at most x if and only if it is at most this one. The
    continued fraction of x gives its two neighbours, as in `Fraction.limit_denominator`.

    >>> below(Fraction(31415926, 10000000), 10)
    Fraction(25, 8)
    """
    if x.denominator <= most:
        return x
    p0, q0, p1, q1 = 0, 1, 1, 0
    top, bottom = x.numerator, x.denominator
    while True:
        a = top // bottom
        if q0 + a * q1 > most:
            break
        p0, q0, p1, q1 = p1, q1, p0 + a * p1, q0 + a * q1
        top, bottom = bottom, top - a * bottom
    a = (most - q0) // q1
    return min(Fraction(p0 + a * p1, q0 + a * q1), Fraction(p1, q1))


def _paths(own: Requirement) -> tuple[Ints, Ints, Ints]:
    """Return the edges above each value, and records below each edge and its length.

    The length of an edge is the difference in height of its two nodes; the height of a node is the
    longest path down from it.
    """
    width = _width(own)
    none = np.zeros(0, np.int64)
    if _kind(own) != kernels.HIERARCHICAL or own.edges is None:
        return np.full((width, 1), -1, np.int64), none, none
    edges = np.asarray(own.edges)
    rows, steps = np.nonzero(edges >= 0)
    node = edges[rows, steps]
    height = np.zeros(int(node.max(initial=-1)) + 1, np.int64)
    np.maximum.at(height, node, steps)
    above = np.pad(edges, ((0, 0), (0, 1)), constant_values=-1)[rows, steps + 1]
    tallest = int(steps.max(initial=-1)) + 1
    length = np.zeros_like(height)
    length[node] = np.where(above >= 0, height[above], tallest) - height[node]
    below_edge = np.zeros_like(height)
    counts = np.zeros(len(edges), np.int64)
    counts[:width] = _totals(own)
    np.add.at(below_edge, node, counts[rows])
    return edges[:width, :tallest].astype(np.int64), below_edge, length


def _entropy_holds(counts: list[int], guarantee: LDiversity | TCloseness) -> bool:
    """Whether n^n >= l^n prod n_i^n_i, to 200 digits of the logarithm."""
    l = getattr(guarantee, "l", Fraction(1))  # noqa: E741 (as in the literature)
    n = sum(counts)
    with localcontext() as context:
        context.prec = 220
        log = {c: Decimal(c).ln() for c in {*counts, n, l.numerator, l.denominator}}
        slack = n * (log[n] - log[l.numerator] + log[l.denominator])
        slack -= sum((c * log[c] for c in counts), Decimal())
        return slack > -(Decimal(10) ** -200) * n
