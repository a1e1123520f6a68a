"""The accounting of a release: the privacy loss of each draw, and how losses compose.

Everything is a fraction, so 0.1 ten times is 1.

Let each entry i cost e_i: between neighbouring tables its output's probabilities differ by at
most a factor exp(e_i).

Sequence. Entries on the same records cost the sum of their prices (Dwork et al. 2006,
composition), also when a later question depends on earlier outputs.

Parts. A division cuts the records into disjoint parts; each of its entries depends on one part.
Between neighbours, an entry's output changes only if its part changes. Its price is stated for
neighbours of the whole table (`PrivacyLoss.sensitivity`), so a changed part costs at most the sum
of its entries, and the division costs the most that parts changing together can cost:

    add-remove           one record comes or goes, one part changes: the costliest part
                         (McSherry 2009, Theorem 4)
    change-one, fixed    the record stays in its part: the costliest part
    change-one, else     the record may leave one part and enter another: the two costliest

Where a person has several rows, they may lie in several parts. Entries of a division are then
stated as r times the price of one row, and r_p rows in part p cost at most r_p / r of that part's
entries: over all parts no more than the costliest. Prices that are not in proportion to rows
would have to be added up.

Different divisions, and entries without one, are a sequence: they add up.

Neighbours. A price for add-remove is, doubled, a price for change-one: a change is a removal
and an addition. There is no way back: a price for change-one says nothing about tables of
another size.

Rho. A release with a delta may state its entries in zero-concentrated differential privacy. Prices
in rho add up over a sequence, adaptive or not, and a division costs its costliest part, or the two
costliest, by the same arguments (Bun and Steinke 2016, Lemma 1.7): a part that does not change has
divergence 0. A pure entry of e counts as e^2 / 2. A price for add-remove is, times 4, one for
change-one, because divergence grows with the square of the distance (Proposition 1.9). An epsilon
at a delta comes from the sum alone, once, by OpenDP's conversion: epsilons at deltas are never
added up.

Keys that are not known beforehand have a delta of their own (`shoal.hazmat.noise.release_keys`).
Those of all entries add up, and rho is converted at what is left of the delta that is claimed (Bun
and Steinke 2016, Lemmas 8.2 and 8.8).

In mathematical notation: docs/explanation/proofs.md, "Composition in one release".

References:
    Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006. doi:10.1007/11681878_14
    McSherry, "Privacy integrated queries", SIGMOD 2009. doi:10.1145/1559845.1559850
    Bun, Steinke, "Concentrated differential privacy: simplifications, extensions, and lower
    bounds", TCC 2016. arXiv:1605.02065
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import isqrt

from shoal.core import (
    EXPONENTIAL,
    GAUSSIAN,
    LAPLACE,
    RESPONSE,
    SELECTION,
    THRESHOLD,
    Neighbours,
    PrivacyLoss,
    PrivacyMeasure,
)
from shoal.core.concentrated import key_delta
from shoal.errors import InternalError
from shoal.hazmat.opendp_measurements import approximate_epsilon

_FACTORS = {LAPLACE: 1, SELECTION: 2, RESPONSE: 1}  # Proved in `shoal.hazmat.noise`.


def compose_epsilon(mechanism: str, *, sensitivity: Fraction, scale: Fraction) -> Fraction:
    """Compute epsilon of one entry from its sensitivity and scale.

    >>> compose_epsilon("discrete-laplace", sensitivity=Fraction(3), scale=Fraction(30))
    Fraction(1, 10)

    Raises:
        InternalError: for a mechanism without a proof.
    """
    if mechanism not in _FACTORS:
        raise InternalError(
            f"The accounting has no proof for the mechanism '{mechanism}'; it knows "
            f"{', '.join(_FACTORS)}."
        )
    return _FACTORS[mechanism] * Fraction(sensitivity) / Fraction(scale)


def compose_rho(mechanism: str, *, sensitivity: Fraction, scale: Fraction) -> Fraction:
    """Compute rho of one entry from its sensitivity and scale.

    The sensitivity of discrete Gaussian noise is the square of an L2 change, with and without a
    threshold. A mechanism with a pure price of e has rho e^2 / 2.

    >>> compose_rho("discrete-gaussian", sensitivity=Fraction(2), scale=Fraction(10))
    Fraction(1, 100)
    """
    if mechanism in {GAUSSIAN, THRESHOLD}:
        return Fraction(sensitivity) / (2 * Fraction(scale) ** 2)
    if mechanism == EXPONENTIAL:
        return Fraction(sensitivity) ** 2 / (2 * Fraction(scale) ** 2)
    return _as_rho(compose_epsilon(mechanism, sensitivity=sensitivity, scale=scale))


def _as_rho(epsilon: Fraction) -> Fraction:
    return epsilon * epsilon / 2


def total(
    privacy_losses: Iterable[PrivacyLoss],
    *,
    neighbours: Neighbours | None = None,
    measure: PrivacyMeasure = PrivacyMeasure.EPSILON,
) -> Fraction:
    """Compute epsilon, or rho, of all entries together, whatever their order.

    Args:
        privacy_losses: the entries of one release. Divisions are identified by their names,
            so do not mix two releases: a record may lie in another part of each.
        neighbours: for which the total is wanted. By default those of the entries, which must
            then agree.
        measure: epsilon or rho. Entries in rho have no epsilon to add.

    Raises:
        InternalError: if an entry's mechanism has no proof or costs more than it states; if
            entries for change-one are to be added up for add-remove; if neighbours differ and
            none were asked for; if a division's entries disagree about it.
    """
    divisions: defaultdict[str | int, list[PrivacyLoss]] = defaultdict(list)
    for number, privacy_loss in enumerate(privacy_losses):
        _check(privacy_loss)
        # An entry without a division is a division with a single part.
        divisions[number if privacy_loss.parallel is None else privacy_loss.parallel].append(
            privacy_loss
        )
    kinds = {entry.neighbours for entries in divisions.values() for entry in entries}
    if neighbours is None and len(kinds) > 1:
        raise InternalError(
            "Privacy losses that are stated for different neighbours cannot be added up."
        )
    wanted = neighbours or next(iter(kinds), None)
    times = 2 if measure is PrivacyMeasure.EPSILON else 4
    prices = (
        _convert(_division(d, measure), d[0].neighbours, wanted, times) for d in divisions.values()
    )
    return sum(prices, Fraction(0))


def verify(
    privacy_losses: Iterable[PrivacyLoss],
    epsilon: Fraction | None,
    *,
    neighbours: Neighbours,
    drawn: Mapping[tuple[str, Fraction], int],
    delta: Fraction = Fraction(0),
    rho: Fraction | None = None,
) -> None:
    """Derive the total loss again and compare it with what a release is about to claim.

    The total must equal the claim, not merely stay below it: an entry that somebody forgot
    would lower the total. It is a total of epsilon, or of rho where one is claimed; the epsilon of
    that rho at a claimed delta is derived by OpenDP and may not exceed the claim.

    Args:
        privacy_losses: the entries of the release.
        epsilon: the claim; none where it is a rho by itself.
        neighbours: of the claim.
        drawn: the noise's own account: how many values it drew, by mechanism and scale. The entries
            must state every draw, at the scale that it was drawn with.
        delta: of the claim.
        rho: of the claim.

    Raises:
        InternalError: on any mismatch. Nothing may be released.
    """
    entries = tuple(privacy_losses)
    measure = PrivacyMeasure.EPSILON if rho is None else PrivacyMeasure.RHO
    claimed = epsilon if rho is None else rho
    derived = total(entries, neighbours=neighbours, measure=measure)
    if derived != claimed:
        raise InternalError(
            f"The accounting derives {measure} {derived}; the claim says {claimed}."
        )
    spent = sum((entry.delta for entry in entries), Fraction(0))
    if spent and not spent < delta:
        raise InternalError(f"The entries have a delta of {spent} together; the claim has less.")
    if rho is not None and epsilon is not None:
        recomputed = approximate_epsilon(rho, delta - spent)
        if recomputed > epsilon:
            raise InternalError(
                f"Rho {rho} is epsilon {recomputed} at delta {delta}; the claim says {epsilon}."
            )
    stated: Counter[tuple[str, Fraction]] = Counter()
    for entry in entries:
        stated[entry.mechanism, entry.scale] += entry.draws
    for mechanism, scale in sorted({*stated, *drawn}):
        if stated[mechanism, scale] == drawn.get((mechanism, scale), 0):
            continue
        raise InternalError(
            f"The accounting lists {stated[mechanism, scale]:,} draws of {mechanism} at scale "
            f"{scale}; the noise drew {drawn.get((mechanism, scale), 0):,}."
        )


def _check_threshold(entry: PrivacyLoss) -> None:
    """Derive again the delta of keys that were unknown."""
    times = 2 if entry.neighbours is Neighbours.CHANGE_ONE else 1
    rows = isqrt(int(entry.sensitivity / times))
    if entry.threshold is None or rows * rows * times != entry.sensitivity or entry.parallel:
        raise InternalError(f"The entry of '{entry.target}' is not one of unknown keys.")
    derived = times * key_delta(entry.scale, entry.threshold, rows)
    if entry.delta < derived:
        raise InternalError(
            f"The entry of '{entry.target}' states a delta of {entry.delta}; its threshold has "
            f"{derived}."
        )


def _check(privacy_loss: PrivacyLoss) -> None:
    if privacy_loss.mechanism == THRESHOLD:
        _check_threshold(privacy_loss)
    elif privacy_loss.threshold is not None or privacy_loss.delta:
        raise InternalError(f"The entry of '{privacy_loss.target}' has a delta, and no threshold.")

    law = {"sensitivity": privacy_loss.sensitivity, "scale": privacy_loss.scale}
    if privacy_loss.epsilon is not None:
        stated, name = privacy_loss.epsilon, "epsilon"
        derived = compose_epsilon(privacy_loss.mechanism, **law)
    else:
        stated, name = privacy_loss.rho or Fraction(0), "rho"
        derived = compose_rho(privacy_loss.mechanism, **law)
    if stated < derived:
        raise InternalError(
            f"The entry of '{privacy_loss.target}' states {name} {stated}; its noise costs "
            f"{derived}."
        )


def _price(entry: PrivacyLoss, measure: PrivacyMeasure) -> Fraction:
    """Return the loss that an entry states, in this measure."""
    if measure is PrivacyMeasure.RHO:
        return _as_rho(entry.epsilon) if entry.epsilon is not None else entry.rho or Fraction(0)
    if entry.epsilon is None:
        raise InternalError(f"The entry of '{entry.target}' is one of rho, and has no epsilon.")
    return entry.epsilon


def _division(entries: list[PrivacyLoss], measure: PrivacyMeasure) -> Fraction:
    """Compose the entries of one division, for their neighbours."""
    first = entries[0]
    if any((e.neighbours, e.fixed) != (first.neighbours, first.fixed) for e in entries):
        raise InternalError(
            f"The entries of the division '{first.parallel}' contradict each other."
        )
    parts: defaultdict[str | None, Fraction] = defaultdict(Fraction)
    for entry in entries:
        parts[entry.part] += _price(entry, measure)
    moves = first.neighbours is Neighbours.CHANGE_ONE and not first.fixed
    return sum(sorted(parts.values())[-2 if moves else -1 :], Fraction(0))


def _convert(
    price: Fraction, stated: Neighbours, wanted: Neighbours | None, times: int
) -> Fraction:
    if stated is wanted:
        return price
    if wanted is Neighbours.CHANGE_ONE:
        return times * price
    raise InternalError(
        "A privacy loss that is proved for change-one neighbours does not hold for add-remove "
        "neighbours."
    )
