"""The sentences of Cormode et al. (2013) as tests, with our numbers: one model at a time.

Nothing is bent: a threshold that is ours stands in the test's own words. What the paper leaves open
(which tree is its differential privacy, which ground distance its earth mover has, which columns a
query restricts) has a plainest reading, all of them at once; a sentence that fails there is
tried under each reading by itself, and those under which it holds are listed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from _attacked import Mark
from _common import Sentence, once
from _trees import CUT_TO_THE_END, HALTED, KD, LEAVES, PLAIN, QUAD, K, L, Study


@dataclass(frozen=True)
class Evidence:
    """What the tests look at.

    Attributes:
        selectivity: median share of people that half ranges of so many columns ask for.
        many: the same of half rounded down, columns with two values left alone; with or without
            the confidential column.
        beyond: how far boxes are from the table at t = 0.35, by distance.
        guessed: accuracy of other classifiers, by release and classifier.
        trees: which private trees differential privacy is.
        distances: which ground distances the rule for t has.
        swapped: errors are those of the second workload.
    """

    study: Study
    marks: Sequence[Mark]
    selectivity: Mapping[int, float]
    many: Mapping[bool, float]
    beyond: Mapping[str, float]
    guessed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    trees: tuple[str, ...] = (KD, QUAD)
    distances: tuple[str, ...] = tuple(HALTED)
    swapped: bool = False

    @property
    def fixed(self) -> tuple[str, ...]:
        """The deterministic models."""
        return (K, L, *(HALTED[distance] for distance in self.distances))

    @property
    def models(self) -> tuple[str, ...]:
        """All models of the paper."""
        return (*self.fixed, *self.trees)

    def curve(self, model: str) -> list[Mark]:
        """All marks of a model over its parameter."""
        return [self._seen(m) for m in self.marks if m.model == model and m.figure < 5]

    def at(self, model: str, value: float) -> Mark:
        """The mark of a model at a parameter."""
        return next(m for m in self.curve(model) if m.value == value)

    def six(self, model: str, *, height: bool) -> list[Mark]:
        """Marks of Figure 6, over the height or over the number of rows."""
        found = [self._seen(m) for m in self.marks if (m.figure, m.model) == (6, model)]
        return [m for m in found if ("height" in m.parameter) is height]

    def grown(self) -> tuple[str, ...]:
        """The private trees that Figure 6 has."""
        return tuple(tree for tree in self.trees if tree not in PLAIN) or (KD, QUAD)

    def _seen(self, mark: Mark) -> Mark:
        if not self.swapped:
            return mark
        return replace(mark, error=mark.second, error_se=mark.second_se)


Tests = Callable[[Sequence[Evidence]], list[Sentence]]


def readings() -> dict[str, dict[str, object]]:
    """What a sentence that fails in its plainest reading is tried with, one line at a time."""
    alone: dict[str, dict[str, object]] = {
        "differential privacy is both leaf-only trees": {"trees": tuple(LEAVES)},
        **{
            f"differential privacy is the {tree}": {"trees": (tree,)}
            for tree in (KD, QUAD, *CUT_TO_THE_END)
        },
        **{f"the ground distance is {name}": {"distances": (name,)} for name in HALTED},
    }
    words = "queries have the paper's selectivity (the second workload)"
    found = {words: {"swapped": True}, **alone}
    found |= {f"{words}, and {name}": {**how, "swapped": True} for name, how in alone.items()}
    return found


def judged(tables: Sequence[Evidence], tests: Tests) -> list[Sentence]:
    """Every sentence in its plainest reading, and where that fails each reading that holds.

    A sentence about both tables has a row for each. On a table that stands for one of the paper's
    no reading is tried: the row is beside, and does not count. A sentence about that table alone
    cannot be tested where it fails, in every reading, on the one that stands for it.
    """
    names = {one.study.name: one.study.stands_in for one in tables}

    def rows(some: Sequence[Evidence]) -> list[Sentence]:
        return [part for row in tests(some) for part in by_table(row, names)]

    views = {
        words: rows([replace(one, **how) for one in tables])  # type: ignore[arg-type]
        for words, how in readings().items()
    }
    found = []
    for place, row in enumerate(rows(tables)):
        if row.holds or row.reading or row.beside or not row.outcome:
            found.append(row)
            continue
        other = {words: view[place] for words, view in views.items()}
        held = [(words, one) for words, one in other.items() if one.holds]
        # Alone before together: a reading that needs two assumptions is listed if none needs one.
        single = [(words, one) for words, one in held if ", and " not in words]
        lost = not held and row.test.startswith(STAND_IN)
        found.append(untested(row) if lost else row)
        found += [replace(one, reading=words) for words, one in single or held[:1]]
    return found


STAND_IN = "on a table that stands for the paper's: "


def by_table(row: Sentence, names: Mapping[str, bool]) -> list[Sentence]:
    """Split a sentence about several tables; say of a table whether it stands for the paper's."""
    cases: dict[str, dict[str, bool]] = {}
    for case, held in row.outcome.items():
        name = next((n for n in names if case == n or case.endswith(f"({n})")), "")
        cases.setdefault(name, {})[case.removesuffix(f"({name})").strip()] = held
    own = any(not names.get(name, False) for name in cases)
    return [
        replace(
            row,
            test=(STAND_IN if names.get(name, False) else "")
            + (f"{name}: " if name else "")
            + row.test,
            outcome=once(outcome[name]) if name in outcome else outcome,
            beside=own and names.get(name, False),
        )
        for name, outcome in cases.items()
    ] or [row]


def untested(row: Sentence) -> Sentence:
    """A sentence about a table that we lack, which fails on the one that stands for it."""
    return replace(row, outcome={}, numbers=f"on the stand-in: {row.verdict}; {row.numbers}")


def on_stand_in(one: Evidence, *rows: Sentence) -> list[Sentence]:
    """Mark sentences about this table alone, if it stands for one of the paper's."""
    mark = f"{STAND_IN}{one.study.name}: " if one.study.stands_in else ""
    return [replace(row, test=mark + row.test) for row in rows]


def pc(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.1f}%"


def single(tables: Sequence[Evidence]) -> list[Sentence]:
    """The sentences about queries, the baseline, and Figures 1 to 4."""
    return [*_baseline(tables), *_k(tables), *_l(tables), *_t(tables), *_epsilon(tables)]


def selectivity(tables: Sequence[Evidence]) -> list[Sentence]:
    """The workload, under three readings."""
    found = []
    for one, name, stated, low, high in zip(
        tables, ("Adult", "Census"), (13, 8), (0.10, 0.05), (0.16, 0.11), strict=True
    ):
        quote = f"“The median selectivity is about {stated}% for *{name}* data”"
        inside = f"a median selectivity between {pc(low)} and {pc(high)}"
        last = max(one.selectivity)
        listed = "; ".join(f"{axes} columns: {pc(s)}" for axes, s in one.selectivity.items())
        found.append(
            Sentence(
                quote,
                f"half ranges of every column, rounded up: {inside}",
                once(low <= one.selectivity[last] <= high),
                listed,
            )
        )
        for secret, share in one.many.items():
            words = "every column" if secret else "the quasi-identifiers"
            found.append(
                Sentence(
                    quote,
                    inside,
                    once(low <= share <= high),
                    pc(share),
                    f"half, rounded down, of {words} with more than two values",
                )
            )
    return found


def _baseline(tables: Sequence[Evidence]) -> list[Sentence]:
    below = {
        one.study.name: [m for m in one.marks if m.figure < 5 and m.accuracy < one.study.rho]
        for one in tables
    }
    return [
        Sentence(
            "“For both datasets, the baseline accuracy is 11%”",
            "the most frequent value has between 10% and 12% of the rows",
            {one.study.name: 0.10 <= one.study.frequent <= 0.12 for one in tables},
            "; ".join(f"{one.study.name}: {pc(one.study.frequent)}" for one in tables),
        ),
        Sentence(
            "“For both datasets, the baseline accuracy is 11%”",
            "the sum of squared shares is between 10% and 12%",
            {one.study.name: 0.10 <= one.study.proportional <= 0.12 for one in tables},
            "; ".join(f"{one.study.name}: {pc(one.study.proportional)}" for one in tables),
            "values are guessed in proportion to their shares",
        ),
        Sentence(
            "“Occasionally, the accuracy of the classifier is worse than this baseline, leading to "
            "negative values of privacy breach increase in some plots”",
            "some release of Figures 1 to 4 has an accuracy below the baseline",
            {name: bool(marks) for name, marks in below.items()},
            "; ".join(f"{name}: {len(marks)} marks" for name, marks in below.items()),
        ),
    ]


def _k(tables: Sequence[Evidence]) -> list[Sentence]:
    first, second = tables
    found = []
    for one, name, times in ((first, "Adult", 2.8), (second, "Census", 1.5)):
        rho, low = one.study.rho, [one.at(K, k) for k in (2, 4, 8)]
        found += on_stand_in(
            one,
            Sentence(
                f"“more than {100 * (times - 1):.0f}% [...] increase in prediction accuracy for "
                f"k-anonymity on the *{name}* [...] data when k ≤ 8”",
                f"accuracy at least {times:g} times {pc(rho)} = {pc(times * rho)}",
                {m.parameter: m.accuracy >= times * rho for m in low},
                "; ".join(
                    f"{m.parameter}: {pc(m.accuracy)}, {m.accuracy / rho:.2f} times" for m in low
                )
                + f". Most frequent value: {pc(one.study.frequent)}",
            ),
        )
    large = {one.study.name: (one, one.at(K, 1024)) for one in tables}
    curves = {
        f"{name} ({one.study.name})": one.curve(model)
        for one in tables
        for name, model in (("k", K), ("l", L))
    }
    found += [
        Sentence(
            "“Even for a large k, e.g. k = 1024, the classifier performs 50% better than the "
            "baseline case for both datasets”",
            "accuracy at least 1.5 times the baseline",
            {name: m.accuracy >= 1.5 * one.study.rho for name, (one, m) in large.items()},
            "; ".join(
                f"{name}: {pc(m.accuracy)}, {m.accuracy / one.study.rho:.2f} times"
                for name, (one, m) in large.items()
            ),
        ),
        Sentence(
            "“the query accuracy suffers significantly with the increase of k and l”",
            "no step lowers the error by more than a tenth, and at the largest value it is at "
            "least three times that at the smallest",
            {name: _rises(curve) for name, curve in curves.items()},
            "; ".join(f"{n}: {pc(c[0].error)} to {pc(c[-1].error)}" for n, c in curves.items()),
        ),
    ]
    return found


def _rises(curve: Sequence[Mark]) -> bool:
    steps = all(b.error >= 0.9 * a.error for a, b in pairwise(curve))
    return steps and curve[-1].error >= 3 * curve[0].error


def _l(tables: Sequence[Evidence]) -> list[Sentence]:
    first, second = tables
    boxes = {
        one.study.name: "; ".join(f"l = {m.value:g}: {m.boxes:,.0f}" for m in one.curve(L))
        for one in tables
    }
    found = [
        Sentence(
            "“when l ≥ 6 for *Adult* dataset [...] it is not possible to achieve l-diversity on "
            "the data, hence the tree does not split beyond the root level”",
            "frequency kind (no share above 1/l): one box for l ≥ 6, more for l = 5",
            {
                f"l = {m.value:g}": (m.boxes == 1) is (m.value >= 6)
                for m in first.curve(L)
                if m.value >= 5
            },
            boxes[first.study.name]
            + ". At l = 6 and 7 the root itself is diverse, and none of its cuts; at l = 8 not "
            "even the root",
        ),
        *on_stand_in(
            second,
            Sentence(
                "“(l ≥ 8 for *Census* dataset)”, where the tree does not split beyond the root "
                "level",
                "frequency kind: one box for l = 8",
                once(second.at(L, 8).boxes == 1),
                boxes[second.study.name],
            ),
        ),
    ]
    pairs = {
        f"{m.value:g} ({one.study.name})": (m.boxes, one.at(K, m.value).boxes)
        for one in tables
        for m in one.curve(L)
        if m.value in {2, 4, 8}
    }
    found.append(
        Sentence(
            "“l-diversity is harder to achieve than k-anonymity”",
            "fewer boxes under l-diversity than under k-anonymity with the same number",
            {name: few < many for name, (few, many) in pairs.items()},
            "; ".join(f"{name}: {few:,.0f}, {many:,.0f}" for name, (few, many) in pairs.items()),
        )
    )
    outcome, numbers = {}, []
    for one in tables:
        curve = one.curve(L)
        whole = next((place for place, m in enumerate(curve) if m.boxes == 1), len(curve) - 1)
        steps = curve[: whole + 1]
        outcome[one.study.name] = all(
            b.accuracy < a.accuracy and b.error > a.error for a, b in pairwise(steps)
        )
        numbers += [
            f"{one.study.name}, l = {m.value:g}: {pc(m.error)}, {pc(m.accuracy)}" for m in steps
        ]
    found.append(
        Sentence(
            "“its query and prediction accuracy decrease sharply with each increment of l”",
            "until the root alone is left, the error rises and the accuracy falls at every step",
            outcome,
            "; ".join(numbers),
        )
    )
    floors = ((first, "20% for *Adult*", 0.15, 0.25), (second, "zero for *Census*", -0.05, 0.05))
    for one, name, low, high in floors:
        root, rho = one.curve(L)[-1].accuracy, one.study.rho
        found += on_stand_in(
            one,
            Sentence(
                f"“the lower bound of increase in prediction accuracy is about {name} data [...] "
                "when the classifier is applied directly on the root node”",
                f"the root's accuracy is between {1 + low:g} and {1 + high:g} times {pc(rho)}",
                once(low <= root / rho - 1 <= high),
                f"{pc(root)}, which is {root / rho:.2f} times {pc(rho)}",
            ),
        )
    return found


def _t(tables: Sequence[Evidence]) -> list[Sentence]:
    outcome, numbers, smaller = {}, [], {}
    for one in tables:
        for distance in one.distances:
            model, case = HALTED[distance], f"{distance} ({one.study.name})"
            curve = one.curve(model)
            base, later = one.at(model, 0.35), [m for m in curve if m.value > 0.35]
            outcome[case] = all(
                abs(m.error - base.error) <= 0.1 * base.error
                and abs(m.accuracy - base.accuracy) <= 0.01
                for m in later
            )
            smaller[case] = (
                curve[0].boxes < base.boxes
                and curve[0].error > base.error
                and curve[0].accuracy < base.accuracy
            )
            ends = "; ".join(
                f"t = {m.value:g}: {m.boxes:,.0f} boxes, {pc(m.error)}, {pc(m.accuracy)}"
                for m in (curve[0], base, later[-1])
            )
            numbers.append(f"{case}: {ends}")
    return [
        Sentence(
            "“The impact of this closeness requirement levels off when the EMD threshold is larger "
            "than 0.35”",
            "from t = 0.35 to 1 the error stays within a tenth of itself and the accuracy within "
            "one point, under the paper's rule for cuts",
            outcome,
            ". ".join(numbers),
        ),
        Sentence(
            "“a smaller EMD threshold will incur larger leaf nodes and affect the accuracy of both "
            "query answering and prediction”",
            "fewer boxes, more error and less accuracy at t = 0.05 than at 0.35",
            smaller,
            "as above",
        ),
    ]


def _epsilon(tables: Sequence[Evidence]) -> list[Sentence]:
    curves = {
        f"{tree} ({one.study.name})": (one, one.curve(tree)) for one in tables for tree in one.trees
    }
    least = {case: (one, curve[0]) for case, (one, curve) in curves.items()}
    return [
        Sentence(
            "“A smaller ε results in higher noise and thus more privacy”; “ε is inversely related "
            "to the privacy guarantees”",
            "from one ε to the next smaller one the accuracy does not rise by more than two "
            "standard errors of the difference, and it is less at 0.01 than at 10",
            {
                case: curve[0].accuracy < curve[-1].accuracy
                and all(
                    a.accuracy <= b.accuracy + 2 * (a.accuracy_se**2 + b.accuracy_se**2) ** 0.5
                    for a, b in pairwise(curve)
                )
                for case, (_, curve) in curves.items()
            },
            "; ".join(
                f"{case}: {', '.join(pc(m.accuracy) for m in curve)}"
                for case, (_, curve) in curves.items()
            ),
        ),
        Sentence(
            "“The experiments on differential privacy exhibit high variance due to the randomness "
            "involved (especially for small ε)”",
            "the standard errors of error and of accuracy at ε = 0.01 are at least five times "
            "those at 10",
            {
                case: curve[0].error_se >= 5 * curve[-1].error_se
                and curve[0].accuracy_se >= 5 * curve[-1].accuracy_se
                for case, (_, curve) in curves.items()
            },
            "; ".join(
                f"{case}: {pc(curve[0].error_se)} against {pc(curve[-1].error_se)}, "
                f"{pc(curve[0].accuracy_se)} against {pc(curve[-1].accuracy_se)}"
                for case, (_, curve) in curves.items()
            ),
        ),
        Sentence(
            "“Using a very small ε (e.g., 0.01) [...] approximately 100% of relative errors in "
            "query answering [...] for both data sets”",
            "mean error between 80% and 120%",
            {case: 0.8 <= m.error <= 1.2 for case, (_, m) in least.items()},
            "; ".join(f"{case}: {pc(m.error)} ± {pc(m.error_se)}" for case, (_, m) in least.items())
            + "; "
            + "; ".join(
                f"{tree} ({one.study.name}): {pc(one.at(tree, 0.01).error)}, "
                f"{pc(one.at(tree, 0.01).accuracy)} guessed right"
                for one in tables
                for tree in CUT_TO_THE_END
                if tree not in one.trees
            )
            + "; one box for all: "
            + ", ".join(f"{pc(one.curve(L)[-1].error)} ({one.study.name})" for one in tables),
        ),
        Sentence(
            "“and worse-than-baseline predictions for both data sets”",
            "ε = 0.01: mean accuracy at or below the baseline, up to two standard errors",
            {
                case: m.accuracy <= one.study.rho + 2 * m.accuracy_se
                for case, (one, m) in least.items()
            },
            "; ".join(
                f"{case}: {pc(m.accuracy)} ± {pc(m.accuracy_se)} (baseline {pc(one.study.rho)})"
                for case, (one, m) in least.items()
            ),
        ),
        Sentence(
            "“an extremely large privacy budget (e.g., ε = 10) adds almost zero noise [...] "
            "providing little query error at the cost of much compromise in privacy”",
            "ε = 10: error at most 5%, and accuracy within two points of k = 2",
            {
                case: curve[-1].error <= 0.05
                and abs(curve[-1].accuracy - one.at(K, 2).accuracy) <= 0.02
                for case, (one, curve) in curves.items()
            },
            "; ".join(
                f"{case}: {pc(curve[-1].error)}, {pc(curve[-1].accuracy)}"
                for case, (_, curve) in curves.items()
            )
            + "; k = 2: "
            + ", ".join(f"{pc(one.at(K, 2).error)}, {pc(one.at(K, 2).accuracy)}" for one in tables),
        ),
    ]
