"""Disclosure risk of a release: guesses of a secret, record links, unique people.

Every rate is shown for people in the table, with what guessing reaches, and for people not in it
where such people are handed in: only that difference is due to being in the table.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import polars as pl

from shoal.core import Estimate, EvaluationChoices, Policy, Progress, Role
from shoal.core._arrays import Floats
from shoal.engine import local
from shoal.errors import InputError
from shoal.evaluation.arrays import AlignedArrays
from shoal.evaluation.results import Better, Figure, Part, take
from shoal.io.raw import Raw
from shoal.metrics import uniqueness
from shoal.metrics.attacks import boosting, naive_bayes, record_linkage
from shoal.metrics.attacks.inference import inference
from shoal.metrics.attacks.linkability import linkability
from shoal.metrics.attacks.membership import membership
from shoal.metrics.attacks.result import Attack
from shoal.metrics.attacks.singling_out import singling_out

ATTACKS = 2000
"""The most people attacked, if an attack goes person by person."""
CLOSE = 10_000
"""The most people of either sort whose closest released record is sought."""
COMPARISONS = 1_000_000_000
"""The most people times released records, if every record is tried for everybody."""
FEWEST = 500
"""The fewest people attacked, however large the release; 50 of 100 is then known to within 4.4."""
SAMPLE = 100_000
"""The most people linked."""
LISTED = 10
"""Rows of people at risk that a sentence names."""
TREE_AXES = 10
"""The most columns for which so many are; beyond, a tree saves little."""
TOLERANCE = 0.05
"""Relative error up to which a number counts as guessed."""
NEAR = 0.1
"""Error, in standard deviations of the original, up to which a learner's number is right."""
WIDE = 0.15
"""Intervals wider than this are shown in sentences too."""
NO_CONTROL = (
    "people not in the table: none were given (--control), so what is due to being in the table "
    "cannot be separated from what anybody could infer"
)


@dataclass(frozen=True, eq=False)
class AttackTask:
    """The input of an attack.

    Attributes:
        secret: the axis that attacks try to guess.
        came: the original as handed in, before any step of the policy.
        choices: what the policy states about attacks.
    """

    sides: AlignedArrays
    secret: int | None
    rng: np.random.Generator
    came: pl.DataFrame
    choices: EvaluationChoices = field(default_factory=EvaluationChoices)

    @property
    def known(self) -> list[int]:
        """The axes that the attacker knows: the quasi-identifiers."""
        keys = [axis for axis in self.sides.keys if axis != self.secret]
        if not keys:
            raise InputError("the release has no quasi-identifier for an attacker to know.")
        return keys

    def secret_axis(self) -> int:
        """Return the axis of the secret, or refuse."""
        if self.secret is None:
            raise InputError("the release has no confidential column to guess.")
        return self.secret

    def rows(self) -> None:
        """Refuse spatial decompositions, whose rows are not records."""
        if self.sides.reading.tree is not None:
            raise InputError("a tree has boxes instead of records.")


def evaluate_risk(
    sides: AlignedArrays,
    policy: Policy,
    *,
    came: pl.DataFrame,
    which: Collection[str],
    rng: np.random.Generator,
    jobs: int,
    progress: Progress,
) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """Run the named attacks that these tables allow; also list what was skipped."""
    secret = _secret(sides, policy)
    figures, skipped = take(
        ATTACKS_BY_NAME,
        lambda own: AttackTask(sides, secret, own, came, policy.evaluate),
        which=which,
        rng=rng,
        jobs=jobs,
        progress=lambda name, done, all_: progress(f"evaluating risk: {name}", done, all_),
    )
    return figures, skipped if sides.control is not None else (NO_CONTROL + ".", *skipped)


def describe_sample(sides: AlignedArrays) -> str:
    """Say how many people the figures are of that do not cover everybody; "" for a small table."""
    rows, people = len(sides.places), _limit_people(sides, ATTACKS)
    linked = min(SAMPLE if len(sides.keys) <= TREE_AXES else people, rows)
    learnt = min(boosting.TRAINING_ROWS, rows)
    return "" if rows <= people else (
        f"Of {rows:,} people, a sample is attacked one by one, {people:,} in most attacks and "
        f"{linked:,} in record linkage; models learn from {learnt:,} rows. Such figures have "
        "intervals; all others are of all rows."
    )  # fmt: skip


def _limit_people(sides: AlignedArrays, most: int) -> int:
    """Return how many people can be attacked if every released record is tried for each."""
    return min(most, max(FEWEST, COMPARISONS // max(len(sides.released), 1)))


def _secret(sides: AlignedArrays, policy: Policy) -> int | None:
    stated = policy.evaluate.secret
    if stated is not None:
        if stated not in sides.names:
            raise InputError(f"[evaluate] secret: the release has no column '{stated}' to guess.")
        return sides.names.index(stated)
    confidential = sides.axes(sides.schema.with_role(Role.CONFIDENTIAL))
    with_categories = [axis for axis in confidential if sides.discrete[axis]]
    return next(iter(with_categories or confidential), None)


def _naive_bayes(task: AttackTask) -> Iterator[Figure]:
    """Run the attack of cormode2013: naive Bayes trained on the release."""
    sides, known, axis = task.sides, task.known, task.secret_axis()
    if not sides.discrete[axis]:
        raise InputError(f"'{sides.names[axis]}' has no categories.")
    model = naive_bayes.learn(
        sides.released.lower[:, known],
        sides.released.upper[:, known],
        sides.codes(axis, released=True),
        discrete=[sides.discrete[j] for j in known],
        domains=np.column_stack([sides.lows, sides.highs])[known],
        values=int(sides.highs[axis]),
        weights=sides.released.weights,
        smoothing=float(task.choices.smoothing),
        kernel=task.choices.kernel,
    )
    control, outside = None, sides.outside(known, axis)
    if outside is not None:
        control = (naive_bayes.guess(model, outside[0]), outside[1])
    guesses = naive_bayes.guess(model, sides.places[:, known])
    shown = naive_bayes.empirical_privacy(
        guesses, sides.codes(axis), control=control, surest=task.choices.surest
    )
    name = sides.names[axis]
    yield _rate(
        "naive Bayes", name, shown.attack, _guess_sentence(sides, known, axis, shown.attack)
    )
    text = f"Guesses of '{name}' are right {1 + shown.breach_increase.value:.2f} times as often as "
    yield Figure(
        Part.RISK, "breach increase", name, shown.breach_increase, Better.LOWER,
        f"{text}always guessing the most frequent value.",
        reason="too few guesses are right for a ratio",
    )  # fmt: skip
    text = f"Of the {shown.top_people:,} people about whom the attacker is most certain, "
    yield Figure(
        Part.RISK, "surest guesses", name, shown.top, Better.LOWER,
        f"{text}{_per_hundred(shown.top)} of 100 are guessed correctly.",
    )  # fmt: skip


def _boosting(task: AttackTask) -> Iterator[Figure]:
    """Run a stronger attack: gradient boosting, for categories or a number."""
    sides, known, axis = task.sides, task.known, task.secret_axis()
    boxes = (sides.released.lower[:, known], sides.released.upper[:, known])
    settings: dict[str, Any] = {
        "discrete": [sides.discrete[j] for j in known],
        "weights": sides.released.weights,
        "rng": task.rng,
    }
    name = sides.names[axis]
    if sides.discrete[axis]:
        control = sides.outside(known, axis)
        model = boosting.learn_codes(*boxes, sides.codes(axis, released=True), **settings)
        attack = boosting.code_attack(
            model, sides.places[:, known], sides.codes(axis), rng=task.rng, control=control
        ).attack
        yield _rate("gradient boosting", name, attack, _guess_sentence(sides, known, axis, attack))
        return
    model = boosting.learn_numbers(*boxes, sides.midpoints[:, axis], **settings)
    inside, outside = (
        None if people is None else _some(people, boosting.TARGETS, task.rng)
        for people in (sides.places, sides.control)
    )
    guesses, on_control = (
        None if people is None else (boosting.guess_numbers(model, people[:, known]),
                                     people[:, axis])
        for people in (inside, outside)
    )  # fmt: skip
    values = sides.places[:, axis]
    spread = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
    attack = boosting.number_attack(
        *cast("tuple[Floats, Floats]", guesses), tolerance=NEAR * spread, control=on_control
    )
    text = (
        f"An attacker who knows {_list_axes(sides, known)} guesses '{name}' to a tenth of its "
        f"standard deviation for {_per_hundred(attack.main)} of 100 people in the "
        f"table{_outside(attack)}."
    )
    yield _rate("gradient boosting", name, attack, text)


def _linkage(task: AttackTask) -> Iterator[Figure]:
    """Run distance-based record linkage, if rows correspond."""
    task.rows()
    sides, known = task.sides, task.known
    if sides.reading.aligned is not True:
        raise InputError("rows are not known to correspond. State it with --aligned if they do.")
    x, y = (_standard(sides, rows)[:, known] for rows in (sides.places, sides.midpoints))
    most = SAMPLE if len(known) <= TREE_AXES else _limit_people(sides, ATTACKS)
    discrete = np.asarray(sides.discrete)[known]
    attack = record_linkage.record_linkage(
        x, y, rng=task.rng, discrete=discrete, sample=min(most, len(x))
    )
    text = (
        f"For {_per_hundred(attack.main)} of 100 people, the released record nearest in "
        f"{_list_axes(sides, known)} is their own."
    )
    yield _rate("record linkage", _list_axes(sides, known), attack, text)
    numbers = [axis for axis in sides.numeric if not np.isnan(sides.midpoints[:, axis]).all()]
    if numbers:
        close = record_linkage.interval_disclosure(
            sides.places[:, numbers], sides.midpoints[:, numbers]
        )
        text = (
            f"For {_per_hundred(close)} of 100 people, every number that is not missing "
            "lies within 5% of a standard deviation of the released one."
        )
        yield Figure(Part.RISK, "interval disclosure", "the numbers", close,
                     Better.LOWER, text)  # fmt: skip


def _closeness(task: AttackTask) -> Iterator[Figure]:
    """Measure whether the release is nearer to people in the table than to others."""
    task.rows()
    if task.sides.control is None:
        return
    most = max(FEWEST, _limit_people(task.sides, CLOSE) // 2)  # of either sort
    released, inside, outside = (
        _standard(task.sides, rows)
        for rows in (
            task.sides.midpoints,
            _some(task.sides.places, most, task.rng),
            _some(task.sides.control, most, task.rng),
        )
    )
    closeness = record_linkage.closeness(
        released, inside, outside, rng=task.rng, discrete=task.sides.discrete, sample=None
    )
    text = (
        "A released row lies nearer to a person in the table than to a person not in it in "
        f"{_per_hundred(closeness.advantage)} of 100 comparisons; 50 would be chance."
    )
    yield Figure(Part.RISK, "closeness", "the table", closeness.advantage, Better.LOWER, text, 0.5)
    text = (
        f"A released row is equal to {_per_hundred(closeness.copies.main)} of 100 people in the "
        f"table, and to {_per_hundred(closeness.copies.control)} of 100 people not in it."
    )
    yield _rate("copies", "the table", closeness.copies, text)


def _membership(task: AttackTask) -> Iterator[Figure]:
    """Ask who is in the table, with half of the people not in it as the attacker's reference."""
    task.rows()
    sides = task.sides
    if sides.control is None:
        return
    people = max(FEWEST, _limit_people(sides, CLOSE) // 2)
    drawn = task.rng.permutation(len(sides.control))
    chosen = np.sort(task.rng.permutation(len(sides.places))[:people])
    half = len(drawn) // 2
    released, members, reference, others = (
        _standard(sides, rows)
        for rows in (
            _some(sides.midpoints, boosting.TRAINING_ROWS, task.rng),
            sides.places[chosen],
            sides.control[drawn[:half]][: boosting.TRAINING_ROWS],
            sides.control[drawn[half:]][:people],
        )
    )
    results = membership(released, members, reference, others, discrete=sides.discrete)
    for name, result in results.items():
        text = (
            f"By {name}, a person in the table looks more like one than a person not in it in "
            f"{_per_hundred(result.area)} of 100 comparisons; 50 would be chance."
        )
        yield Figure(Part.RISK, "membership", name, result.area, Better.LOWER, text, 0.5)
        text = (
            f"By {name}, {_per_hundred(result.rate)} of 100 people in the table are beyond what 1 "
            "of 100 people not in it reach."
        )
        yield Figure(Part.RISK, "membership at 1%", name, result.rate, Better.LOWER, text, 0.01)
        rows = chosen[result.recognised] + 1
        shown = ", ".join(str(row) for row in rows[:LISTED])
        which = f": rows {shown}{' and others' if len(rows) > LISTED else ''} of the original"
        text = (
            f"By {name}, {len(rows):,} of {len(members):,} people are recognised as members, of "
            f"whom 5 of 100 or fewer may be wrong{which if len(rows) else ''}."
        )
        yield Figure(Part.RISK, "members recognised", name, len(rows) / len(members),
                     Better.LOWER, text)  # fmt: skip


def _uniques(task: AttackTask) -> Iterator[Figure]:
    """Count people who are unique in the table and, by its weights, in the population."""
    task.rows()
    sides, known = task.sides, task.known
    names, rows = [sides.names[axis] for axis in known], task.came.height
    before = local.alone(Raw(task.came), sides.schema, names) or 0
    # Both ends of a cell go together; a suppressed cell matches any, a missing one is a value.
    released = np.column_stack([sides.released.classes([axis]) for axis in known])
    hidden = (sides.suppressed & ~sides.missing)[:, known]
    after = uniqueness.uniques(released, hidden=hidden)
    text = (
        f"{after.uniques:,} of {after.records:,} released rows "
        f"{'is' if after.uniques == 1 else 'are'} unique in {_list_axes(sides, known)}; {before:,} "
        f"of {rows:,} {'was' if before == 1 else 'were'} in the original."
    )
    yield Figure(Part.RISK, "uniques", _list_axes(sides, known), after.share, Better.LOWER, text,
                 before / rows)  # fmt: skip
    weights = sides.released.weights if sides.reading.weights is not None else None
    single = uniqueness.individual_risk(released, weights, hidden=hidden)
    whom = (
        "estimated from the sampling weights"
        if weights is not None
        else "if the table is the whole population"
    )
    text = (
        "A match on the released quasi-identifiers is correct with probability "
        f"{single.mean.value:.3g} on average, {whom}; {single.expected:,.1f} correct matches are "
        "expected."
    )
    yield Figure(Part.RISK, "individual risk", _list_axes(sides, known), single.mean,
                 Better.LOWER, text)  # fmt: skip
    if len(known) < 2:
        return
    parts = uniqueness.contributions(released, weights, hidden=hidden)
    for place in np.argsort([-part.added for part in parts]):
        name, part = sides.names[known[place]], parts[place]
        text = f"Without '{name}' the average risk would be {part.without:.3g}."
        yield Figure(Part.RISK, "contribution to risk", name, part.added, Better.LOWER, text)


def _singling_out(task: AttackTask) -> Iterator[Figure]:
    """Run singling out, the first question of Opinion 05/2014."""
    task.rows()
    sides = task.sides
    sorts = [("one column", 1)]
    if len(sides.names) > 1:
        sorts.append(("several columns", min(3, len(sides.names))))
    for subject, attributes in sorts:
        attack = singling_out(
            sides.released.lower, sides.released.upper, sides.places, discrete=sides.discrete,
            rng=task.rng, attributes=attributes, control=sides.control,
            attacks=_limit_people(sides, ATTACKS),
        )  # fmt: skip
        text = (
            f"Of 100 conditions on {subject} that match one released row, "
            f"{_per_hundred(attack.main)} match exactly one person in the table{_outside(attack)}."
        )
        yield _rate("singling out", subject, attack, text)


def _linkability(task: AttackTask) -> Iterator[Figure]:
    """Run linkability, its second question: two parties who each know half of the columns."""
    task.rows()
    sides = task.sides
    axes = list(range(len(sides.names)))
    if len(axes) < 2:
        raise InputError("linking needs at least two columns.")
    keys = sides.keys
    first = keys if 0 < len(keys) < len(axes) else axes[: len(axes) // 2]
    second = [axis for axis in axes if axis not in first]
    attack = linkability(
        sides.released.lower, sides.released.upper, sides.places, discrete=sides.discrete,
        first=first, second=second, rng=task.rng, control=sides.control,
        attacks=_limit_people(sides, ATTACKS),
    )  # fmt: skip
    text = (
        f"Two files, one with {_list_axes(sides, first)} and one with the rest, are linked through "
        f"the release for {_per_hundred(attack.main)} of 100 people in the table{_outside(attack)}."
    )
    yield _rate("linkability", f"{len(first)} columns to {len(second)}", attack, text)


def _inference(task: AttackTask) -> Iterator[Figure]:
    """Run inference, its third question: the secret of the nearest released row."""
    task.rows()
    sides, known = task.sides, task.known
    for axis in sides.axes(sides.schema.with_role(Role.CONFIDENTIAL)):
        if axis in known:
            continue
        control = None
        if sides.control is not None:
            control = (sides.control[:, known], sides.control[:, axis])
        attack = inference(
            sides.released.lower[:, known], sides.released.upper[:, known],
            sides.midpoints[:, axis], sides.places[:, known], sides.places[:, axis],
            discrete=[sides.discrete[j] for j in known], rng=task.rng,
            tolerance=None if sides.discrete[axis] else TOLERANCE, control=control,
            attacks=_limit_people(sides, ATTACKS),
        )  # fmt: skip
        near = "" if sides.discrete[axis] else " to within 5%"
        if sides.discrete[axis]:
            attack = replace(attack, baseline=_most_common(sides, axis, attack.baseline))
        text = (
            f"The released row nearest in {_list_axes(sides, known)} gives the right "
            f"'{sides.names[axis]}'{near} for {_per_hundred(attack.main)} of 100 people in the "
            f"table{_outside(attack)}."
        )
        yield _rate("inference", sides.names[axis], attack, text)


def _most_common(sides: AlignedArrays, axis: int, blind: Estimate) -> Estimate:
    """Return the success of guessing the most common value, or of blind guesses if larger."""
    codes = sides.codes(axis)
    known = codes[codes >= 0]
    share = float(np.bincount(known).max() / known.size) if known.size else 0.0
    return max(blind, Estimate(share, share, share, blind.confidence), key=lambda one: one.value)


def _rate(metric: str, subject: str, attack: Attack, text: str) -> Figure:
    rates = attack.baseline, attack.control, attack.residual
    return Figure(Part.RISK, metric, subject, attack.main, Better.LOWER, text, *rates)


def _guess_sentence(sides: AlignedArrays, known: list[int], axis: int, attack: Attack) -> str:
    contrast = "" if attack.control is None else (
        f", and for {_per_hundred(attack.control)} of 100 who are not in it")  # fmt: skip
    return (
        f"An attacker who knows {_list_axes(sides, known)} finds the right '{sides.names[axis]}' "
        f"for {_per_hundred(attack.main)} of 100 people in the table{contrast}; guessing the most "
        f"common value is right for {_per_hundred(attack.baseline)}."
    )


def _outside(attack: Attack) -> str:
    rate = (
        ""
        if attack.control is None
        else f", and for {_per_hundred(attack.control)} of 100 people not in it"
    )
    return f"{rate}; for {_per_hundred(attack.baseline)} by guessing without the release"


def _per_hundred(rate: Estimate | None) -> str:
    """Write a rate as a number out of 100, with its interval if few people were tried."""
    if rate is None:
        return "?"
    share = 100 * rate.value
    text = f"{share:.0f}" if share >= 10 or share == round(share) else f"{share:.1f}"
    if rate.high - rate.low > WIDE:
        text += f" (between {100 * rate.low:.0f} and {100 * rate.high:.0f})"
    return text


def _list_axes(sides: AlignedArrays, axes: list[int]) -> str:
    names = [sides.names[axis] for axis in axes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _some(rows: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Sample at most `most` rows without replacement, in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(rng.choice(len(rows), most, replace=False))]


def _standard(sides: AlignedArrays, rows: Floats) -> Floats:
    """Standardise numbers by the original, with -1 for a missing category.

    A missing or suppressed number gets the mean.
    """
    places, kinds = sides.places, np.asarray(sides.discrete, dtype=bool)
    numeric = ~np.isnan(places).all(axis=0) & ~kinds
    centres, spreads = np.zeros(places.shape[1]), np.ones(places.shape[1])
    centres[numeric] = np.nanmean(places[:, numeric], axis=0)
    spreads[numeric] = np.nanstd(places[:, numeric], axis=0)
    placed = (rows - centres) / np.where(spreads > 0, spreads, 1.0)
    codes = np.where((placed >= 0) & (placed < sides.highs), np.floor(placed), -1.0)
    return np.where(kinds, codes, np.nan_to_num(placed))


ATTACKS_BY_NAME: dict[str, Callable[[AttackTask], Iterator[Figure]]] = {
    "naive Bayes": _naive_bayes,
    "gradient boosting": _boosting,
    "singling out": _singling_out,
    "linkability": _linkability,
    "inference": _inference,
    "record linkage": _linkage,
    "closeness": _closeness,
    "membership": _membership,
    "uniques": _uniques,
}
