"""What a release costs: the price of each draw, and how prices compose.

Everything is a fraction, so 0.1 ten times is 1.

Let each entry i cost e_i: between neighbouring tables its output's probabilities differ by at
most a factor exp(e_i).

Sequence. Entries on the same records cost the sum of their prices (Dwork et al. 2006,
composition), also when a later question depends on earlier outputs.

Parts. A division cuts the records into disjoint parts; each of its entries depends on one part.
Between neighbours, an entry's output changes only if its part changes. Its price is stated for
neighbours of the whole table (`PrivacyLoss.sensitivity`), so a changed part costs at most the sum
of its entries, and the division costs the most that parts changing together can cost:

    add-remove           one record comes or goes, one part changes: the dearest part
                         (McSherry 2009, Theorem 4)
    change-one, fixed    the record stays in its part: the dearest part
    change-one, else     the record may leave one part and enter another: the two dearest

Where a person has several rows, they may lie in several parts. Entries of a division are then
stated as r times the price of one row, and r_p rows in part p cost at most r_p / r of that part's
entries: over all parts no more than the dearest. Prices that are not in proportion to rows
would have to be added up.

Different divisions, and entries without one, are a sequence: they add up.

Neighbours. A price for add-remove is, doubled, a price for change-one: a change is a removal
and an addition. There is no way back: a price for change-one says nothing about tables of
another size.

References:
    Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006. doi:10.1007/11681878_14
    McSherry, "Privacy integrated queries", SIGMOD 2009. doi:10.1145/1559845.1559850
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction

from shoal.core import LAPLACE, RESPONSE, SELECTION, Neighbours, PrivacyLoss
from shoal.errors import InternalError

_FACTORS = {LAPLACE: 1, SELECTION: 2, RESPONSE: 1}  # Proved in `shoal.hazmat.noise`.


def composed(mechanism: str, *, sensitivity: Fraction, scale: Fraction) -> Fraction:
    """Epsilon of one entry, from its sensitivity and scale.

    >>> composed("discrete-laplace", sensitivity=Fraction(3), scale=Fraction(30))
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


def total(
    privacy_losses: Iterable[PrivacyLoss], *, neighbours: Neighbours | None = None
) -> Fraction:
    """Epsilon of all entries together, whatever their order.

    Args:
        privacy_losses: the entries of one release. Divisions are told apart by their names, so
            those of two releases must not meet here: a record may lie in another part of each.
        neighbours: for which the total is wanted. By default those of the entries, which must
            then agree.

    Raises:
        InternalError: if an entry's mechanism has no proof or costs more than it states; if
            entries for change-one are to be added up for add-remove; if neighbours differ and
            none were asked for; if a division's entries disagree about it.
    """
    divisions: defaultdict[str | int, list[PrivacyLoss]] = defaultdict(list)
    for number, privacy_loss in enumerate(privacy_losses):
        _check(privacy_loss)
        # An entry without a division is a division of one part.
        divisions[number if privacy_loss.parallel is None else privacy_loss.parallel].append(
            privacy_loss
        )
    kinds = {entry.neighbours for entries in divisions.values() for entry in entries}
    if neighbours is None and len(kinds) > 1:
        raise InternalError(
            "Privacy losses that are stated for different neighbours cannot be added up."
        )
    wanted = neighbours or next(iter(kinds), None)
    prices = (_convert(_division(d), d[0].neighbours, wanted) for d in divisions.values())
    return sum(prices, Fraction(0))


def verify(
    privacy_losses: Iterable[PrivacyLoss],
    epsilon: Fraction,
    *,
    neighbours: Neighbours,
    drawn: Mapping[tuple[str, Fraction], int],
) -> None:
    """Derive the price again and compare it with what a release is about to claim.

    The total must equal the claim, not merely stay below it: an entry that somebody forgot
    would lower the total.

    Args:
        privacy_losses: the entries of the release.
        epsilon: the claim.
        neighbours: of the claim.
        drawn: the noise's own account: how many values it drew, by mechanism and scale. The entries
            must state every draw, at the scale that it was drawn with.

    Raises:
        InternalError: on any mismatch. Nothing may be released.
    """
    entries = tuple(privacy_losses)
    derived = total(entries, neighbours=neighbours)
    if derived != epsilon:
        raise InternalError(f"The accounting derives epsilon {derived}; the claim says {epsilon}.")
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


def _check(privacy_loss: PrivacyLoss) -> None:
    derived = composed(
        privacy_loss.mechanism, sensitivity=privacy_loss.sensitivity, scale=privacy_loss.scale
    )
    if privacy_loss.epsilon < derived:
        raise InternalError(
            f"The entry of '{privacy_loss.target}' states epsilon {privacy_loss.epsilon}; its "
            f"noise costs {derived}."
        )


def _division(entries: list[PrivacyLoss]) -> Fraction:
    """Price of the entries of one division, for their own neighbours."""
    first = entries[0]
    if any((e.neighbours, e.fixed) != (first.neighbours, first.fixed) for e in entries):
        raise InternalError(
            f"The entries of the division '{first.parallel}' contradict each other."
        )
    parts: defaultdict[str | None, Fraction] = defaultdict(Fraction)
    for entry in entries:
        parts[entry.part] += entry.epsilon
    moves = first.neighbours is Neighbours.CHANGE_ONE and not first.fixed
    return sum(sorted(parts.values())[-2 if moves else -1 :], Fraction(0))


def _convert(epsilon: Fraction, stated: Neighbours, wanted: Neighbours | None) -> Fraction:
    if stated is wanted:
        return epsilon
    if wanted is Neighbours.CHANGE_ONE:
        return 2 * epsilon
    raise InternalError(
        "An epsilon that is proved for change-one neighbours does not hold for add-remove "
        "neighbours."
    )
