"""The sentences of Cormode et al. (2013) on all models together, and on classifiers."""

import math
from collections.abc import Sequence

import numpy as np
from _attacked import OWN_BOX, Mark
from _common import Sentence, once
from _said import Evidence, on_stand_in, pc
from _trees import HALTED, K, L

ERRORS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.75)
"""At which models are compared."""


def accuracy_at(curve: Sequence[Mark], error: float) -> float | None:
    """Accuracy of a curve at an error: straight between marks over the logarithm of the error."""
    ordered = sorted(curve, key=lambda m: m.error)
    if not ordered or not ordered[0].error <= error <= ordered[-1].error:
        return None
    xs = [math.log(max(m.error, 1e-6)) for m in ordered]
    return float(np.interp(math.log(max(error, 1e-6)), xs, [m.accuracy for m in ordered]))


def compared(tables: Sequence[Evidence]) -> list[Sentence]:
    """The sentences about Figures 5 and 6 and the conclusions, then about classifiers."""
    first, second = tables
    return [
        _converge(tables),
        _inevitable(tables),
        _diverge(tables),
        _preferred(first),
        _same_or_worse(tables),
        _private_first(first),
        *on_stand_in(second, _similar_trend(second), *_census(second)),
        _no_winner(tables),
        _not_lost(tables),
        *_advisable(tables),
        *_six(tables),
        *_concluded(tables),
        *_persons(tables),
    ]


def _at_errors(one: Evidence) -> dict[float, dict[str, float]]:
    """At each error the accuracy of every model that reaches it."""
    found = {}
    for error in ERRORS:
        read = {model: accuracy_at(one.curve(model), error) for model in one.models}
        known = {model: value for model, value in read.items() if value is not None}
        if len(known) > 1:
            found[error] = known
    return found


def _fall(curve: Sequence[Mark], low: float, high: float) -> tuple[float, float]:
    """Accuracy of a curve at two errors, or at the ends that it has."""
    ends = [min(m.error for m in curve), max(m.error for m in curve)]
    start, end = (accuracy_at(curve, float(np.clip(error, *ends))) for error in (low, high))
    return start or 0.0, end or 0.0


def _converge(tables: Sequence[Evidence]) -> Sentence:
    ends = {
        f"{model} ({one.study.name})": (one, min(one.curve(model), key=lambda m: m.error))
        for one in tables
        for model in one.models
        if model != L
    }
    return Sentence(
        "“all [...] models converge at the top-left corner (except l-diversity, for which "
        "l is at least 2), where privacy is sacrificed for high utility”",
        "the release of least error has an error below 10% and an accuracy within two points of "
        "that at k = 2",
        {
            case: m.error < 0.1 and abs(m.accuracy - one.at(K, 2).accuracy) <= 0.02
            for case, (one, m) in ends.items()
        },
        "; ".join(
            f"{case}, {m.parameter}: {pc(m.error)}, {pc(m.accuracy)}"
            for case, (_, m) in ends.items()
        ),
    )


def _inevitable(tables: Sequence[Evidence]) -> Sentence:
    outcome, numbers = {}, []
    for one in tables:
        best = one.at(K, 2).accuracy
        low = [m for model in one.models for m in one.curve(model) if m.error < 0.1]
        least = min((m.accuracy for m in low), default=best)
        outcome[one.study.name] = least >= 0.8 * best
        numbers.append(f"{one.study.name}: {len(low)} releases, least {pc(least)} of {pc(best)}")
    return Sentence(
        "“if low relative query error is needed, a large privacy compromise seems inevitable "
        "regardless of the [...] model”",
        "every release with an error below 10% has at least four fifths of the accuracy at k = 2",
        outcome,
        "; ".join(numbers),
    )


def _diverge(tables: Sequence[Evidence]) -> Sentence:
    outcome, numbers = {}, []
    for one in tables:
        spread = {e: max(a.values()) - min(a.values()) for e, a in _at_errors(one).items()}
        ends = (min(spread), max(e for e in spread if e <= 0.6))
        outcome[one.study.name] = spread[ends[1]] > spread[ends[0]]
        numbers.append(
            f"{one.study.name}: "
            + ", ".join(f"{100 * spread[e]:.1f} points at an error of {pc(e)}" for e in ends)
        )
    return Sentence(
        "“they start to diverge when moving towards the other end of the main diagonal”",
        "greatest less least accuracy of the models is larger at the largest of 10, 20, 40 and 60% "
        "that several models reach than at the least of these errors, or at 5%",
        outcome,
        "; ".join(numbers),
    )


def _gaps(one: Evidence, useful: Sequence[Mark], model: str) -> list[float]:
    pairs = [(m.accuracy, accuracy_at(one.curve(model), m.error)) for m in useful]
    return [mine - theirs for mine, theirs in pairs if theirs is not None]


def _preferred(one: Evidence) -> Sentence:
    outcome, numbers = {}, []
    for distance in one.distances:
        useful = [m for m in one.curve(HALTED[distance]) if m.error < 0.1]
        for model in (K, *one.trees):
            if gaps := _gaps(one, useful, model):
                outcome[f"{distance} against {model}"] = max(gaps) < 0
                numbers.append(
                    f"{distance} less {model}: {100 * min(gaps):+.1f} to {100 * max(gaps):+.1f} "
                    "points"
                )
    return Sentence(
        "“In Figure 5(a), t-closeness may be the preferred model when high utility (relative error "
        "< 10%) is required, providing the smaller increase in prediction accuracy”",
        "every tree under t with an error below 10% has a lower accuracy than the other "
        "model at the same error, which is read off between its marks",
        outcome or {"no such release": False},
        "; ".join(numbers),
    )


def _same_or_worse(tables: Sequence[Evidence]) -> Sentence:
    outcome, numbers = {}, []
    for one in tables:
        useful = [m for model in one.fixed[1:] for m in one.curve(model) if m.error < 0.1]
        for tree in one.trees:
            gaps = _gaps(one, useful, tree)
            outcome[f"{tree} ({one.study.name})"] = bool(gaps) and min(gaps) <= 0
            told = f"least {100 * min(gaps):+.1f} points" if gaps else "no such release"
            numbers.append(f"l or t less {tree} ({one.study.name}): {told}")
    return Sentence(
        "“differential privacy provides the same or even worse empirical privacy protection when "
        "single-digit relative error (high utility) is required. In this region either l-diversity "
        "or t-closeness can outperform differential privacy [...] in both plots”",
        "some tree under l or t with an error below 10% has an accuracy up to that of the private "
        "tree at the same error",
        outcome,
        "; ".join(numbers),
    )


def _least(one: Evidence, model: str, below: float) -> float:
    return min((m.error for m in one.curve(model) if m.accuracy < below), default=math.inf)


def _shown(errors: dict[str, float]) -> str:
    return "least error: " + "; ".join(
        f"{name}: {pc(e) if math.isfinite(e) else 'no such release'}" for name, e in errors.items()
    )


def _private_first(one: Evidence) -> Sentence:
    below = 2 * one.study.rho
    others = {model: _least(one, model, below) for model in one.fixed}
    mine = {model: _least(one, model, below) for model in one.trees}
    return Sentence(
        "“If privacy guarantee is of more concern, e.g., requiring less than 100% accuracy "
        "increase, the advantage of differential privacy definitely shows up and dominates”",
        f"of the releases with an accuracy below {pc(below)}, the private tree has the least "
        "error of all models",
        {model: error < min(others.values()) for model, error in mine.items()},
        _shown({**mine, **others}),
    )


def _similar_trend(one: Evidence) -> Sentence:
    rho = one.study.rho
    below = rho + (one.at(K, 2).accuracy - rho) / 2
    others = {model: _least(one, model, below) for model in one.fixed}
    mine = {model: _least(one, model, below) for model in one.trees}
    return Sentence(
        "“A similar trend can be observed on the *Census* dataset in Figure 5(b)”",
        f"of the releases with less than half of the increase at k = 2 (accuracy below {pc(below)})"
        ", the private tree has the least error of all models",
        {model: error < min(others.values()) for model, error in mine.items()},
        _shown({**mine, **others}),
    )


def _census(one: Evidence) -> list[Sentence]:
    """What the paper has for its second table alone."""
    rho, curve = one.study.rho, one.curve(K)
    start, middle = _fall(curve, 0.05, 0.4)
    end = max(curve, key=lambda m: m.error)
    ends = f"{pc(start)} at an error of {pc(max(0.05, min(m.error for m in curve)))}"
    drop = f"{ends}, {pc(middle)} at {pc(min(0.4, end.error))}, {pc(end.accuracy)} at "
    drop += pc(end.error)
    pairs, shown = {}, []
    for model in one.fixed[2:]:
        for error in (0.2, 0.3, 0.4, 0.5, 0.6):
            mine, theirs = (accuracy_at(one.curve(m), error) for m in (L, model))
            if mine is not None and theirs is not None:
                pairs[f"{model}, {pc(error)}"] = abs(mine - theirs) <= 0.1 * theirs
                shown.append(f"{model}, {pc(error)}: {pc(mine)} against {pc(theirs)}")
    slopes = {tree: _fall(one.curve(tree), 0.1, 0.4) for tree in one.trees}
    fixed = _fall(curve, 0.1, 0.4)
    near = 1.1 * rho
    tolerated = {
        tree: [m for m in one.curve(tree) if m.error <= 0.25 and m.accuracy <= near]
        for tree in one.trees
    }
    alike = {model: _least(one, model, near) for model in one.fixed}
    return [
        Sentence(
            "Census: “k-anonymity performs poorly on this dataset: relative error increases fairly "
            "consistently from 5% to 40%, but this only affects the classifier accuracy by about "
            "10%”",
            "from an error of 5%, or the least, to 40% the accuracy falls by at most 15% of itself",
            once(start - middle <= 0.15 * start),
            f"{drop}; a fall of {pc(1 - middle / start)}",
        ),
        Sentence(
            "Census: “Only when the relative error grows very high does the classifier accuracy "
            "drop off”",
            "the accuracy of k-anonymity falls more from an error of 40% on than up to it",
            once(middle - end.accuracy > start - middle),
            drop,
        ),
        Sentence(
            "Census: “The l-diversity and t-closeness models [...] are reasonably similar”",
            "at errors of 20, 30, 40, 50 and 60%, as far as both have them, accuracies are within "
            "a tenth of one another",
            pairs or {"no error in common": False},
            "; ".join(shown),
        ),
        Sentence(
            "Census: “Again, the curve of differential privacy has a higher slope, which helps to "
            "reduce the accuracy of classifier prediction”",
            "from an error of 10% to 40% the accuracy of the private tree falls by more than "
            "that of k-anonymity",
            {tree: a - b > fixed[0] - fixed[1] for tree, (a, b) in slopes.items()},
            "; ".join(f"{t}: {pc(a)} to {pc(b)}" for t, (a, b) in {**slopes, K: fixed}.items()),
        ),
        Sentence(
            "Census: “If one can tolerate 25% relative error, differential privacy can provide "
            "nearly zero classifier accuracy increase over the baseline”",
            f"a release with an error up to 25% has an accuracy up to 1.1 times {pc(rho)}",
            {tree: bool(marks) for tree, marks in tolerated.items()},
            "least accuracy up to 25%: "
            + "; ".join(
                f"{tree}: {pc(min(accuracies, default=math.nan))}"
                for tree in one.trees
                if (accuracies := [m.accuracy for m in one.curve(tree) if m.error <= 0.25]) or True
            ),
        ),
        Sentence(
            "Census: “while other deterministic models give poor utility (about 60% in relative "
            "error) to achieve the same level of privacy protection”",
            f"the least error of a deterministic model with an accuracy up to {pc(near)} is "
            "between 45% and 75%",
            once(0.45 <= min(alike.values()) <= 0.75),
            _shown(alike),
        ),
    ]


def _no_winner(tables: Sequence[Evidence]) -> Sentence:
    winners = {
        one.study.name: {e: min(a, key=lambda m: a[m]) for e, a in _at_errors(one).items()}
        for one in tables
    }
    return Sentence(
        "“no [...] model is able to win hands down across the whole range”",
        "no model has the least accuracy at errors of 5, 10, 20, 40, 60 and 75%, read off between "
        "marks",
        {name: len(set(found.values())) > 1 for name, found in winners.items()},
        "; ".join(f"{n}, {pc(e)}: {m}" for n, found in winners.items() for e, m in found.items()),
    )


def _not_lost(tables: Sequence[Evidence]) -> Sentence:
    outcome, errors = {}, {}
    for one in tables:
        for tree in one.trees:
            case = f"{tree} ({one.study.name})"
            errors[case] = _least(one, tree, 1.5 * one.study.rho)
            outcome[case] = errors[case] <= 0.5
    return Sentence(
        "“if a strong privacy guarantee is required, differential privacy does not lose too much "
        "query accuracy”",
        "of the releases with an increase below 50%, the least error is at most 50%",
        outcome,
        _shown(errors),
    )


def _advisable(tables: Sequence[Evidence]) -> list[Sentence]:
    better, kept, numbers = {}, {}, []
    for one in tables:
        for tree in one.trees:
            case = f"{tree} ({one.study.name})"
            lost = []
            for mark in one.curve(tree):
                read = [accuracy_at(one.curve(model), mark.error) for model in one.fixed]
                known = [value for value in read if value is not None]
                if known and min(known) < mark.accuracy - 2 * mark.accuracy_se:
                    lost.append(mark.value)
            better[case] = 1.0 in lost
            kept[case] = all(value > 0.5 for value in lost)
            numbers.append(
                f"{case}: a deterministic model lies lower at "
                + (", ".join(f"ε = {value:g}" for value in lost) or "no ε")
            )
    told = "; ".join(numbers)
    return [
        Sentence(
            "“using ε = 1 [...] may not be advisable: the empirical privacy here is not very high, "
            "and there are syntactic approaches providing better privacy-utility tradeoff in this "
            "region”",
            "a deterministic model has less accuracy at the same error than ε = 1, by two standard "
            "errors",
            better,
            told,
        ),
        Sentence(
            "“At least for these two datasets, ε ≤ 0.5 seems to be a suitable setting for "
            "differential privacy”",
            "no deterministic model has less accuracy at the same error than an ε ≤ 0.5, by two "
            "standard errors",
            kept,
            told,
        ),
    ]


def _six(tables: Sequence[Evidence]) -> list[Sentence]:
    same, grows, less, more = {}, {}, {}, {}
    told: list[list[str]] = [[], [], []]
    for number, one in enumerate(tables):
        fixed = one.six(K, height=False)
        for tree in one.grown():
            case = f"{tree} ({one.study.name})"
            gaps = [
                abs(m.accuracy - other) / other
                for m in one.six(tree, height=True)
                if (other := accuracy_at(one.six(K, height=True), m.error)) is not None
            ]
            near = sum(gap <= 0.1 for gap in gaps)
            told[0].append(
                f"{case}: {near} of {len(gaps)} heights, gaps "
                f"{pc(min(gaps, default=math.nan))} to {pc(max(gaps, default=math.nan))}"
            )
            sizes = one.six(tree, height=False)
            theirs = accuracy_at(fixed, sizes[-1].error)
            told[2].append(
                f"{case}: at 10% {pc(sizes[0].error)}, {pc(sizes[0].accuracy)} against "
                f"{pc(fixed[0].error)}, {pc(fixed[0].accuracy)}; at 100% {pc(sizes[-1].error)}, "
                f"{pc(sizes[-1].accuracy)} against {pc(fixed[-1].error)}, {pc(fixed[-1].accuracy)}"
            )
            if number:
                same[case] = near >= 5
                less[case] = (
                    sizes[0].error > fixed[0].error and sizes[0].accuracy < fixed[0].accuracy
                )
                more[case] = fixed[-1].error < sizes[-1].error and (
                    theirs is None or theirs <= sizes[-1].accuracy
                )
        for model in (K, *one.grown()):
            sizes, case = one.six(model, height=False), f"{model} ({one.study.name})"
            if number:
                grows[case] = (
                    sizes[-1].error < sizes[0].error and sizes[-1].accuracy > sizes[0].accuracy
                )
            told[1].append(
                f"{case}: {pc(sizes[0].error)} to {pc(sizes[-1].error)}, "
                f"{pc(sizes[0].accuracy)} to {pc(sizes[-1].accuracy)}"
            )
    return [
        Sentence(
            "Figure 6(a): “k-anonymity (with k = 8) and differential privacy (with ε = 1) provide "
            "almost the same privacy-utility tradeoff for a wide range of h values tested”",
            "on the second table, at five or more of the heights the accuracy is within a tenth "
            "of that of k-anonymity at the same error, read off between its marks",
            same,
            "; ".join(told[0]),
        ),
        Sentence(
            "Figure 6(b): “Increasing the dataset size without changing other parameters increases "
            "the accuracy of both query answering and the classifier”",
            "on the second table, less error and more accuracy with all rows than with a tenth",
            grows,
            "; ".join(told[1]),
        ),
        Sentence(
            "Figure 6(b): “when less data is provided, differential privacy occupies the bottom "
            "right of the plot (more privacy, less utility)”",
            "on the second table, with a tenth of the rows more error and less accuracy than k = 8",
            less,
            "; ".join(told[2]),
        ),
        Sentence(
            "Figure 6(b): “but when more data is provided, it is dominated by k-anonymity, in the "
            "region of less privacy but more utility”",
            "on the second table, with all rows more error than k = 8, and no less accuracy than "
            "k-anonymity at that error",
            more,
            "as above",
        ),
    ]


def _concluded(tables: Sequence[Evidence]) -> list[Sentence]:
    often, large, numbers, ratios = {}, {}, [], []
    for one in tables:
        found = _at_errors(one)
        first = [e for e, a in found.items() if min(a, key=lambda m: a[m]) in one.trees]
        often[one.study.name] = 2 * len(first) >= len(found)
        numbers.append(f"{one.study.name}: {len(first)} of {len(found)} errors")
        ratio = max(max(a.values()) / min(a.values()) for a in found.values())
        large[one.study.name] = ratio <= 2
        ratios.append(f"{one.study.name}: at most {ratio:.2f} times")
    return [
        Sentence(
            "“differential privacy often provides the best empirical privacy for a fixed "
            "(empirical) utility level”",
            "a private tree has the least accuracy at half or more of the errors 5, 10, 20, 40, 60 "
            "and 75% that several models reach",
            often,
            "; ".join(numbers),
        ),
        Sentence(
            "“by these measures, the difference between the methods is not so large”",
            "at none of these errors is the greatest accuracy of a model more than twice the least",
            large,
            "; ".join(ratios),
        ),
    ]


def _persons(tables: Sequence[Evidence]) -> list[Sentence]:
    rows = [
        (f"{name} ({one.study.name})", accuracy - found["naive Bayes"])
        for one in tables
        for found in one.guessed.values()
        for name, accuracy in found.items()
        if name != "naive Bayes"
    ]
    farthest: dict[str, float] = {}
    for case, gap in rows:
        farthest[case] = max(farthest.get(case, 0.0), gap, key=abs)
    told = "farthest: " + "; ".join(f"{c}: {100 * gap:+.1f} points" for c, gap in farthest.items())
    surest = {
        f"{model} ({one.study.name})": (one, max(one.curve(model), key=lambda m: m.surest))
        for one in tables
        for model in one.models
    }
    return [
        Sentence(
            "“different classifiers achieve similar levels of empirical privacy, varying only by "
            "low single digit percentages”",
            "on three releases, accuracies are within five points of naive Bayes",
            {case: abs(gap) <= 0.05 for case, gap in farthest.items()},
            told,
        ),
        Sentence(
            "“different classifiers achieve similar levels of empirical privacy, varying only by "
            "low single digit percentages”",
            "the same, without the most frequent value of the person's own box",
            {c: abs(gap) <= 0.05 for c, gap in farthest.items() if not c.startswith(OWN_BOX)},
            told,
            "a classifier learns from all boxes, and looks nobody up in one",
        ),
        Sentence(
            "“across all methods sensitive information of some individuals can often be inferred "
            "with relatively high accuracy”",
            "for some release of every model, of the hundredth of the people whom the classifier "
            "is surest of at least three times the baseline are guessed right",
            {case: m.surest >= 3 * one.study.rho for case, (one, m) in surest.items()},
            "; ".join(f"{case}: {pc(m.surest)} ({m.parameter})" for case, (_, m) in surest.items()),
        ),
    ]
