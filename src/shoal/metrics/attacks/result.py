"""The result of an attack: a success rate, with a baseline and, if possible, a control.

A rate alone says little. An attacker who never saw the release guesses too, and facts about a whole
population can be inferred about people who are not in the table. So a rate is shown with a baseline
and, where people not in the table are at hand, with a control.
"""

from dataclasses import dataclass

from shoal.core import Estimate
from shoal.errors import InputError
from shoal.metrics.intervals import difference, residual, wilson

DIFFERENCE = (
    "Only the difference between people in the table and people not in it is due to being in the "
    "table."
)
"""Shown with every rate of success."""


@dataclass(frozen=True)
class Attack:
    """Success rates of one attack.

    The intervals treat the people attacked as a sample of those who might have been; they do not
    cover other attackers, who may do better.

    Attributes:
        main: success rate on people in the table.
        baseline: success rate of guessing without the release, or blindly from it.
        control: success rate of the same attack on people not in the table, if given.
        difference: main minus control.
        residual: the difference over what was left to gain, (main - control) / (1 - control).
        attacks: how many people, or guesses, the main rate is over.
        note: how to read it; always ends with `DIFFERENCE`.
    """

    main: Estimate
    baseline: Estimate
    control: Estimate | None
    difference: Estimate | None
    residual: Estimate | None
    attacks: int
    note: str

    def __str__(self) -> str:
        rates = [f"main {self.main}", f"baseline {self.baseline}"]
        if self.control is not None:
            rates += [f"control {self.control}", f"residual {self.residual}"]
        return ", ".join(rates)


def attack(
    main: tuple[float, int],
    *,
    baseline: tuple[float, int] | float,
    control: tuple[float, int] | None = None,
    note: str = "",
    confidence: float = 0.95,
) -> Attack:
    """Make an `Attack` of successes and trials.

    Args:
        main: successes, which may be fractions where ties share one, and trials.
        baseline: the same, or a rate that is known exactly.
        control: the same, on people not in the table.
        note: what this attack is, in sentences; `DIFFERENCE` is added.
        confidence: of all intervals.

    >>> print(attack((300, 500), baseline=(50, 500), control=(100, 500)).residual)
    0.498 [0.440, 0.556]
    """
    if main[1] < 1 or (control is not None and control[1] < 1):
        raise InputError("An attack needs at least one person to attack; found none.")
    rate = wilson(*main, confidence)
    known = None if control is None else wilson(*control, confidence)
    if isinstance(baseline, tuple):
        blind = wilson(*baseline, confidence)
    else:
        blind = Estimate(baseline, baseline, baseline, confidence)
    return Attack(
        main=rate,
        baseline=blind,
        control=known,
        difference=None if known is None else difference(rate, known),
        residual=None if control is None else residual(*main, *control, confidence),
        attacks=main[1],
        note=f"{note} {DIFFERENCE}".strip(),
    )
