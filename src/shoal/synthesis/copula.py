"""One-way models of the columns, joined by a private Gaussian copula.

Each column is learnt as a sorted list of n values, from noisy means of blocks by rank or from the
leaves of a private tree. Kendall's tau of every two columns is learnt with noise. Rows are drawn
from a normal distribution with the correlations that these taus imply, and a row's rank in each
column picks from that column's list.

For numbers, foremost: a category takes part by its position in its public order. A public transform
of a skewed column (`Scale`) is made before: the mechanism sees codes on the transformed grid.

Theorem (ours, unreviewed): epsilon, change-one neighbours, n public. Proof.

Lists. With the column sorted, a changed record moves the values by at most the width W in all, and
so the sums of blocks whose ends depend on ranks alone (`microaggregate_noise` has the proof, Lemma
1 of sanchez2014). Noise of scale W / e costs e. A tree costs what `adaptive_tree` proves.

Links. S = sum over pairs of records of sign(x_i - x_j) sign(y_i - y_j) is whole, and
tau-a = 2 S / (n (n - 1)). A changed record is in n - 1 pairs, and each of their signs moves by at
most 2: S moves by at most 2 (n - 1), and in the worst case by as much (all others concordant with
it before and discordant after), which is 4 / n in tau-a. P pairs of columns make a vector that
moves by at most 2 (n - 1) P in L1.

The size of blocks follows from n, m and epsilon. The rest is post-processing. QED

Not promised: ties make tau-a smaller than the copula's tau; we divide by the share of untied pairs
in the noisy lists. Only rank correlation survives, no other dependence.

In mathematical notation: docs/explanation/proofs.md, "Copula".

References:
    Li, Xiong, Jiang, "Differentially private synthesization of multi-dimensional data using copula
    functions", EDBT 2014. doi:10.5441/002/edbt.2014.43
    sanchez2014 (Lemma 1); Zhang et al. 2016 for trees.
"""

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core import Neighbours, Noise, Price, PrivacyLoss, Progress, silent
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError, InternalError
from shoal.mechanism.microaggregate_noise import isotonic
from shoal.mechanism.noisy_answers import noisy_answers
from shoal.mechanism.records import Columns, HeldColumns
from shoal.mechanism.systematic_sampling import spread
from shoal.synthesis.adaptive_tree import tree_histogram
from shoal.synthesis.domain import Domain, Measurement, Sort, SyntheticRows, check_codes
from shoal.synthesis.kernels import concordance


class Margins(StrEnum):
    """How the distribution of a single column is learnt.

    `blocks`: means of blocks by rank; best for squared distance where n epsilon is small.
    `tree`: a private tree; best for counting.
    """

    BLOCKS = "blocks"
    TREE = "tree"


SHARES = {Margins.BLOCKS: Fraction(4, 5), Margins.TREE: Fraction(17, 20)}
"""Share of epsilon for the columns by themselves; the rest is for their links."""


def copula(
    codes: Sequence[NDArray[Any]] | Columns,
    domains: Sequence[Domain],
    *,
    price: Price,
    noise: Noise,
    rng: np.random.Generator,
    margins: Margins = Margins.BLOCKS,
    share: Fraction | None = None,
    progress: Progress = silent,
) -> SyntheticRows:
    """Draw as many rows as there are records; the module says how, and proves the price.

    The arguments are those of `maxent`, except that records in blocks are refused, and so are fewer
    than two columns or records. `share` is the part of epsilon for the one-way models, by default
    from `SHARES`.

    Cost: O(n log n) for every two columns.
    """
    if isinstance(codes, HeldColumns):
        codes = codes.columns
    elif not isinstance(codes, Sequence | np.ndarray):
        raise InternalError("A copula needs the records themselves, but they lie in blocks.")
    columns = [
        column if domain.positions is None else domain.positions[column]
        for column, domain in zip(check_codes(codes, domains), domains, strict=True)
    ]
    n, m = len(columns[0]), len(columns)
    if price.neighbours is not Neighbours.CHANGE_ONE:
        raise InternalError("A copula uses the number of records, and is proved for a change.")
    epsilon = price.amount
    if m < 2 or n < 2:
        raise InputError("A copula needs at least two columns and at least two records.")
    margin_budget = (SHARES[margins] if share is None else share) * epsilon
    lists: list[Floats] = []
    privacy_losses: list[PrivacyLoss] = []
    measurements: list[Measurement] = []
    for j, (column, domain) in enumerate(zip(columns, domains, strict=True)):
        progress("modelling columns", j, m)
        each = margin_budget / m
        if margins is Margins.TREE:
            tree = tree_histogram(HeldColumns(columns), j, domain, price=Price(each), noise=noise)
            drawn = spread(tree.edges, tree.project(n).astype(np.float64), n, rng)
            lists.append(drawn.astype(np.float64))
            privacy_losses += tree.privacy_losses
            measurements.append(Measurement((j,), (tree.edges,), tree.counts, tree.scale))
        else:
            size = block_size(n, m, margin_budget)
            values, sums, privacy_loss = _blocks(column, domain, size, epsilon=each, noise=noise)
            lists.append(values)
            privacy_losses.append(privacy_loss)
            ends = (_ends(n, size),)
            measurements.append(Measurement((j,), ends, sums, privacy_loss.scale, Sort.BLOCKS))
    concordances, privacy_loss = _links(
        columns, epsilon=epsilon - margin_budget, noise=noise, progress=progress
    )
    privacy_losses.append(privacy_loss)
    links = Measurement(tuple(range(m)), (), concordances, privacy_loss.scale, Sort.CONCORDANCES)
    measurements.append(links)
    taus = _taus(concordances, lists)
    progress("drawing rows", 0, 1)
    ranks = _ranks(_correlations(taus, m), n, rng)
    rows = tuple(
        _as_codes(values[ranks[:, j]], domain)
        for j, (values, domain) in enumerate(zip(lists, domains, strict=True))
    )
    facts = {
        "one-way models": margins.value,
        "share of epsilon for one-way models": float(margin_budget / epsilon),
        "noise scale of Kendall's tau": float(privacy_loss.scale * 2 / (n * (n - 1))),
    }
    return SyntheticRows(rows, tuple(privacy_losses), tuple(measurements), facts)


def block_size(n: int, m: int, epsilon: Fraction) -> int:
    """Return the records per block by rank: ceil(sqrt(m n / epsilon)), between 1 and n / 4.

    Longer blocks have less noise and more discretisation error. With epsilon / m for each of m
    columns, noise of a block's mean equals the width of a block over uniform values at that size.
    """
    return max(min(ceil(sqrt(m * n / epsilon)), n // 4), 1)


def kendall(first: Ints, second: Ints) -> int:
    """Count concordant minus discordant pairs of records; ties count 0. Cost O(n log n).

    >>> kendall(np.array([1, 2, 3]), np.array([1, 3, 2]))
    1
    """
    ranks = np.unique(second, return_inverse=True)[1].astype(np.int64)
    return _concordance(np.argsort(first, kind="stable"), first, ranks)


def _concordance(order: Ints, first: Ints, ranks: Ints) -> int:
    return int(concordance(order, first, ranks, int(ranks.max()) + 1))


def _ends(n: int, size: int) -> Ints:
    """Return the first rank of each block, and n; the last block has size to 2 size - 1 ranks."""
    return np.append(np.arange(n // size) * size, n).astype(np.int64)


def _blocks(
    column: Ints, domain: Domain, size: int, *, epsilon: Fraction, noise: Noise
) -> tuple[Floats, Ints, PrivacyLoss]:
    """Model a column as n sorted values: noisy block means, made monotone and interpolated."""
    n = len(column)
    ends = _ends(n, size)
    sums = np.add.reduceat(np.sort(column), ends[:-1])
    noisy, privacy_loss = noisy_answers(
        sums,
        reach=max(domain.size - 1, 1),
        price=Price(epsilon),
        target=f"{domain.name}: sums of rank blocks",
        noise=noise,
    )
    sizes = np.diff(ends)
    # Clamped after the fit: clamping each block first would bias the means inwards.
    means = np.clip(isotonic(noisy / sizes, sizes), 0, domain.size - 1)
    return np.interp(np.arange(n), ends[:-1] + (sizes - 1) / 2, means), noisy, privacy_loss


def _links(
    columns: Sequence[Ints], *, epsilon: Fraction, noise: Noise, progress: Progress
) -> tuple[Ints, PrivacyLoss]:
    """Measure the concordance of every two columns with noise."""
    n = len(columns[0])
    orders = [np.argsort(column, kind="stable") for column in columns]
    ranks = [np.unique(column, return_inverse=True)[1].astype(np.int64) for column in columns]
    pairs = list(combinations(range(len(columns)), 2))
    exact = np.zeros(len(pairs), dtype=np.int64)
    for number, (a, b) in enumerate(pairs):
        progress("measuring rank correlations", number, len(pairs))
        exact[number] = _concordance(orders[a], ranks[a], ranks[b])
    return noisy_answers(
        exact,
        reach=2 * (n - 1) * len(pairs),
        price=Price(epsilon),
        target="concordant pairs of records, for every two columns",
        noise=noise,
    )


def _taus(concordances: Ints, lists: Sequence[Floats]) -> Floats:
    """Estimate the copula's Kendall tau: tau-a over the share of pairs without ties."""
    n = len(lists[0])
    untied = []
    for values in lists:
        counts = np.unique(np.rint(values), return_counts=True)[1]
        untied.append(max(1 - float((counts / n) @ ((counts - 1) / (n - 1))), 0.05))
    pairs = combinations(range(len(lists)), 2)
    share = np.array([sqrt(untied[a] * untied[b]) for a, b in pairs])
    taus: Floats = np.clip(concordances / (n * (n - 1) / 2) / share, -1.0, 1.0)
    return taus


def _correlations(taus: Floats, m: int) -> Floats:
    """Convert taus to correlations sin(pi tau / 2), made positive definite by their eigenvalues."""
    R = np.eye(m)
    rows, columns = np.triu_indices(m, 1)
    R[rows, columns] = R[columns, rows] = np.sin(np.pi / 2 * taus)
    values, vectors = np.linalg.eigh(R)
    R = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    scale = np.sqrt(np.diag(R))
    fixed: Floats = R / np.outer(scale, scale)
    return fixed


def _ranks(R: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Draw n normal rows with sample correlations R, and return ranks 0 to n - 1 by column."""
    m = len(R)
    Z = rng.standard_normal((n, m))
    if n > 4 * m:
        # The sample's own random correlations would only add noise to those that were learnt.
        Z -= Z.mean(axis=0)
        Z = np.linalg.solve(np.linalg.cholesky(Z.T @ Z / n), Z.T).T
    Z = Z @ np.linalg.cholesky(R + 1e-9 * np.eye(m)).T
    return np.argsort(np.argsort(Z, axis=0), axis=0)


def _as_codes(values: Floats, domain: Domain) -> Ints | Floats:
    if domain.numeric:
        return values
    positions: Ints = np.clip(np.rint(values), 0, domain.size - 1).astype(np.int64)
    return positions if domain.order is None else np.array(domain.order)[positions]
