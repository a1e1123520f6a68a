"""A stronger attacker than naive Bayes: gradient boosting, trained on the released rows.

Boosted trees find interactions of attributes, which naive Bayes cannot. The training rows are the
released boxes: an interval of numbers at its middle; of a box with several categories one is drawn,
since categories have no middle. Boxes with counts give one row for each value that was counted,
weighted by its count.

If the table exceeds the cap on rows, most people who are attacked have no row among those learnt
from: memorised rows then show less, and main tends towards control.

`shoal.metrics._sklearn` has the settings of the trees and their references.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.metrics import _sklearn
from shoal.metrics.attacks.naive_bayes import EmpiricalPrivacy, Guesses, empirical_privacy
from shoal.metrics.attacks.result import Attack, attack

TRAINING_ROWS = 20_000
"""Released rows that the attacker learns from, at most."""
TARGETS = 5000
"""People of either sort who are attacked, at most."""


@dataclass(frozen=True, eq=False)
class Boosting:
    """A trained attacker.

    Attributes:
        model: the trees, or None if the release shows only one value.
        only: that value; 0 if it shows none.
        rows: number of released rows that it learnt from.
    """

    model: _sklearn.BoostedTrees | None
    only: float
    rows: int


def learn_codes(
    lower: Floats,
    upper: Floats,
    counts: NDArray[np.generic],
    *,
    discrete: ArrayLike,
    rng: np.random.Generator,
    weights: Floats | None = None,
    cap: int = TRAINING_ROWS,
) -> Boosting:
    """Learn to guess a confidential category.

    Args:
        lower: released boxes by axes.
        upper: the other ends.
        counts: boxes by confidential values, or one code per box, -1 where unknown. Negative counts
            count as 0.
        discrete: which axes are categories.
        rng: draws rows beyond the cap, and categories of boxes.
        weights: of the boxes, with codes.
        cap: released rows to learn from, at most; drawn without replacement.
    """
    table = np.asarray(counts)
    if table.ndim == 2:
        rows, codes = np.nonzero(table > 0)
        mass = table[rows, codes].astype(np.float64)
    else:
        rows = np.flatnonzero(table >= 0)
        codes = table[rows].astype(np.int64)
        mass = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)[rows]
    if len(rows) > cap:
        chosen = np.sort(rng.choice(len(rows), cap, replace=False))
        rows, codes, mass = rows[chosen], codes[chosen], mass[chosen]
    seen = np.unique(codes)
    if len(seen) < 2:
        return Boosting(None, float(seen[0]) if len(seen) else 0.0, len(rows))
    places = _places(lower[rows], upper[rows], discrete, rng)
    model = _sklearn.boost(
        places, codes, categorical=discrete, classify=True, weights=mass / mass.mean()
    )
    return Boosting(model, 0.0, len(rows))


def learn_numbers(
    lower: Floats,
    upper: Floats,
    secret: Floats,
    *,
    discrete: ArrayLike,
    rng: np.random.Generator,
    weights: Floats | None = None,
    cap: int = TRAINING_ROWS,
) -> Boosting:
    """Learn to guess a confidential number, by least squares; NaN where it is unknown.

    The arguments are those of `learn_codes`; an interval of the secret comes as its middle.
    """
    secrets = np.asarray(secret, dtype=np.float64)
    rows = np.flatnonzero(np.isfinite(secrets))
    if len(rows) > cap:
        rows = np.sort(rng.choice(rows, cap, replace=False))
    if len(rows) < 2:
        return Boosting(None, float(secrets[rows[0]]) if len(rows) else 0.0, len(rows))
    mass = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)[rows]
    places = _places(lower[rows], upper[rows], discrete, rng)
    model = _sklearn.boost(
        places, secrets[rows], categorical=discrete, classify=False, weights=mass / mass.mean()
    )
    return Boosting(model, 0.0, len(rows))


def guess_codes(model: Boosting, targets: Floats) -> Guesses:
    """Return the most probable code of each target and its probability; ties to the lowest code."""
    places = np.asarray(targets, dtype=np.float64)
    if model.model is None:
        return Guesses(np.full(len(places), int(model.only)), np.ones(len(places)))
    chances = model.model.chances(places)
    best = chances.argmax(axis=1)
    codes = model.model.classes[best].astype(np.int64)
    return Guesses(codes, chances[np.arange(len(best)), best])


def guess_numbers(model: Boosting, targets: Floats) -> Floats:
    """Return the expected number of each target."""
    places = np.asarray(targets, dtype=np.float64)
    if model.model is None:
        return np.full(len(places), model.only)
    return model.model.predict(places)


def code_attack(
    model: Boosting,
    targets: Floats,
    truth: Ints,
    *,
    rng: np.random.Generator,
    control: tuple[Floats, Ints] | None = None,
    most: int = TARGETS,
    confidence: float = 0.95,
) -> EmpiricalPrivacy:
    """Compute `naive_bayes.empirical_privacy` for the boosted attacker of `learn_codes`.

    Codes are -1 where unknown. At most `most` people of either sort are attacked; `rng` draws them.
    """

    def run_attack(places: Floats, codes: Ints) -> tuple[Guesses, Ints]:
        if len(places) > most:
            chosen = np.sort(rng.choice(len(places), most, replace=False))
            places, codes = places[chosen], codes[chosen]
        return guess_codes(model, places), codes

    main = run_attack(np.asarray(targets, dtype=np.float64), np.asarray(truth))
    on_control = None
    if control is not None:
        on_control = run_attack(np.asarray(control[0], dtype=np.float64), np.asarray(control[1]))
    return empirical_privacy(*main, control=on_control, confidence=confidence)


def number_attack(
    guesses: Floats,
    truth: Floats,
    *,
    tolerance: float,
    control: tuple[Floats, Floats] | None = None,
    confidence: float = 0.95,
) -> Attack:
    """Measure the share of people whose number is guessed to within a tolerance.

    The baseline guesses one number for everybody, the one that is right most often: the middle of
    the window of twice the tolerance that holds the most true values.

    Args:
        guesses: for people in the table.
        truth: their numbers; those that are missing are left out.
        tolerance: largest absolute error of a right guess.
        control: guesses and true numbers of people not in the table.
        confidence: of all intervals.
    """
    if not tolerance >= 0:
        raise InputError(f"The tolerance of a guess must not be negative; got {tolerance}.")
    main = _within(guesses, truth, tolerance)
    if not main[1]:
        raise InputError(
            "No person in the table has a known confidential value, so there is nothing to guess."
        )
    ordered = np.sort(truth[np.isfinite(truth)])
    windows = np.searchsorted(ordered, ordered + 2 * tolerance, side="right")
    crowd = int((windows - np.arange(len(ordered))).max())
    return attack(
        main,
        baseline=(crowd, main[1]),
        control=None if control is None else _within(*control, tolerance),
        note=f"A guess within {tolerance:.3g} is right. The baseline names the best number.",
        confidence=confidence,
    )


def _within(guesses: Floats, truth: Floats, tolerance: float) -> tuple[int, int]:
    known = np.isfinite(truth)
    # Rounding must not lose a guess at the very end of the tolerance.
    room = tolerance * (1 + 1e-12)
    return int((np.abs(guesses - truth)[known] <= room).sum()), int(known.sum())


def _places(lower: Floats, upper: Floats, discrete: ArrayLike, rng: np.random.Generator) -> Floats:
    middle = (lower + upper) / 2
    drawn = np.floor(lower + (upper - lower) * rng.random(lower.shape))
    places: Floats = np.where(np.asarray(discrete, dtype=bool), drawn, middle)
    return places
