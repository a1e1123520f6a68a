"""Take measures one after another; what these tables do not allow is skipped, and why."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

import numpy as np

from shoal.core import Progress
from shoal.errors import InputError
from shoal.evaluation.results import Figure

T = TypeVar("T")


def take(
    measures: Mapping[str, Callable[[T], Iterator[Figure]]],
    task: Callable[[np.random.Generator], T],
    *,
    which: Collection[str],
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """Figures of the named measures, and why others could not be taken.

    Each has draws of its own, so that it does not depend on which others are taken. No figure is
    infinite: where these tables give no number, it has none, and says why.

    Args:
        measures: all there are, by name.
        task: what a measure is handed, with its own generator.
        which: names of those to take.
        rng: from which the generators are drawn.
        progress: called with the measure's name.
    """
    figures: list[Figure] = []
    skipped: list[str] = []
    for number, (own, (name, measure)) in enumerate(
        zip(rng.spawn(len(measures)), measures.items(), strict=True)
    ):
        if name not in which:
            continue
        progress(name, number, len(measures))
        try:
            figures += [figure.settled() for figure in measure(task(own))]
        except InputError as reason:
            skipped.append(f"{name}: {reason}")
    return tuple(figures), tuple(skipped)
