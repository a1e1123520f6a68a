# noqa: INP001 (a program beside the pages, not a package)
"""What three attackers learn under k, l, t and epsilon: one table and one picture, measured.

The people and the columns are those of method_examples.py; age, hours and education are known to
the attackers, marital status is what they want to learn. Every class is read off the release.
"""

import textwrap
from functools import cache
from math import exp
from typing import Any, NamedTuple

import polars as pl
from method_examples import COLUMNS, SEED, take_people

import shoal
from shoal.hazmat.fakes import SeededNoise
from shoal.report.shapes import SEA, SOFT, draw_line, draw_rect, draw_svg, draw_text

PEOPLE = 1000
WANTED = "marital"
KEYS = [name for name in COLUMNS if name != WANTED]
NEAR = {"column": WANTED, "distance": "equal"}
POLICIES: dict[str, dict[str, Any]] = {
    "k = 5": {"protect": {"method": "mondrian", "k": 5}},
    "k = 5, l = 3": {
        "protect": {"method": "mondrian", "k": 5},
        "require": {"l-diversity": {"column": WANTED, "l": 3}},
    },
    "k = 5, t = 0.2": {
        "protect": {"method": "mondrian", "k": 5},
        "require": {"t-closeness": {**NEAR, "t": 0.2}},
    },
    "epsilon = 1": {"protect": {"method": "auto", "epsilon": 1}},
}


class Learnt(NamedTuple):
    """What attackers learn from a release, as chances; None where rows are nobody's.

    Attributes:
        found: the mean chance that a row which matches a person's keys is that person's.
        certain: people whose matching rows all have one confidential value.
        guessed: people whose value a naive Bayes classifier guesses, trained on the release.
        excluded: the chance of being right, from evens, for somebody who knows all other people.
    """

    found: float | None
    certain: float | None
    guessed: float
    excluded: float


ATTACKERS = {
    "found": "matches age, hours and education: chance that the row is the person's",
    "certain": "the same: marital status is certain",
    "guessed": "learns a model from the release: guesses marital status right",
    "excluded": "knows everybody else's row: tells two values apart, from even chances",
}


@cache
def learnt() -> dict[str, Learnt]:
    """Release the people under each promise, and attack each release."""
    people = take_people(PEOPLE, list(COLUMNS))
    plain = {"version": 1, "one_row_per_person": True, "columns": COLUMNS}
    attacked = {"nothing": Learnt(*_match(people), _guess(people, people, plain), 1.0)}
    for name, stated in POLICIES.items():
        policy = {**plain, **stated}
        epsilon = stated["protect"].get("epsilon")
        noise = None if epsilon is None else SeededNoise(SEED)
        release = shoal.protect(people, policy, keep_order=epsilon is None, noise=noise)
        guessed = _guess(people, release, policy)
        if epsilon is None:
            # Classes show their members' values as they are: whoever knows all but one of a
            # class takes them off the list.
            attacked[name] = Learnt(*_match(release.data), guessed, 1.0)
        else:
            attacked[name] = Learnt(None, None, guessed, exp(epsilon) / (1 + exp(epsilon)))
    return attacked


def _guess(people: pl.DataFrame, released: Any, policy: dict[str, Any]) -> float:
    """Train a naive Bayes classifier on a release, and guess everybody's value."""
    stated = {"protect": {"method": "mdav", "k": 5}, **policy}
    scored = shoal.evaluate(people, released, stated, which=["naive Bayes"], jobs=1)
    return float(scored.of("naive Bayes")[0].value.value)


def _match(released: pl.DataFrame) -> tuple[float, float]:
    """Match everybody with the rows that share the keys: chance of the right one, certainty."""
    found, certain = (
        released.select(
            (1 / pl.len().over(KEYS)).mean().alias("found"),
            (pl.col(WANTED).n_unique().over(KEYS) == 1).mean().alias("certain"),
        )
    ).row(0)
    return found, certain


def common() -> float:
    """The share of the most frequent value, which anybody may guess."""
    people = take_people(PEOPLE, list(COLUMNS))
    return people[WANTED].value_counts()["count"].max() / PEOPLE


def written(_name: str) -> str:
    """Write the figures as a table."""
    rows = [
        f"| {name} | {' | '.join(_share(value) for value in figures)} |"
        for name, figures in learnt().items()
    ]
    heads = " | ".join(ATTACKERS.values())
    table = "\n".join([f"| promise | {heads} |", f"|---|{'---|' * len(ATTACKERS)}", *rows])
    base = f"Whoever always guesses the most frequent status is right for {_share(common())}."
    return f"{table}\n\n{base}"


def _share(value: float | None) -> str:
    return "no row is a person" if value is None else f"{100 * value:.0f}%"


WIDE, HIGH, LEFT = 820, 250, 12


def draw() -> str:
    """Draw the figures: a group of bars for each attacker, a bar for each promise."""
    many = len(learnt())
    group = (WIDE - LEFT) / len(ATTACKERS)
    wide = (group - 26) / many
    parts = [draw_rect("p-paper", "#ffffff", (0, 0, WIDE, HIGH + 84))]
    for place, attacker in enumerate(ATTACKERS):
        x = LEFT + place * group
        parts.append(draw_line(x, HIGH, x + wide * many, HIGH, faint=True))
        for number, (name, figures) in enumerate(learnt().items()):
            value = getattr(figures, attacker)
            left, high = x + number * wide, 0 if value is None else 200 * value
            colour = SOFT if number == 0 else SEA
            parts.append(draw_rect("p-after", colour, (left, HIGH - high, wide - 4, high), 0.8))
            said = "none" if value is None else f"{100 * value:.0f}%"
            middle = left + wide / 2 - 2
            parts.append(draw_text(middle, HIGH - high - 5, said, anchor="middle", size=10))
            for line, word in enumerate(name.split(", ")):
                y = HIGH + 13 + 12 * line
                short = word.replace("epsilon", "eps")
                parts.append(draw_text(middle, y, short, anchor="middle", size=9, soft=True))
        for line, words in enumerate(textwrap.wrap(ATTACKERS[attacker], 32)):
            parts.append(draw_text(x, HIGH + 44 + 14 * line, words, size=11))
    return str(draw_svg(WIDE, HIGH + 84, parts, "What attackers learn under each promise"))
