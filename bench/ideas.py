"""Tables with known sorts of dependence, on which ideas for `maxent` are tried and tuned."""

import numpy as np
from numpy.typing import NDArray

from shoal.core import Kind
from shoal.mechanism.attributes import Attribute

Integers = NDArray[np.int64]
Made = tuple[Integers, list[Attribute]]


def latent(seed: int, n: int, *, columns: int = 8, strength: float = 0.8) -> Made:
    """Ordinals cut from normal numbers that share two factors."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 17, columns)
    loads = rng.normal(size=(2, columns))
    loads *= np.sqrt(strength) / np.sqrt((loads**2).sum(axis=0))
    values = rng.normal(size=(n, 2)) @ loads
    values += rng.normal(size=(n, columns)) * np.sqrt(1 - strength)
    codes = []
    for j, size in enumerate(sizes):
        cuts = np.sort(rng.normal(0, 1.2, size - 1))
        codes.append(np.searchsorted(cuts, values[:, j]))
    return _table(codes, sizes, [Kind.ORDINAL] * columns)


def classes(seed: int, n: int, *, columns: int = 8, types: int = 6) -> Made:
    """Nominals of up to forty levels, independent within hidden types of people."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([2, 4, 8, 15, 25, 40], columns)
    hidden = rng.choice(types, n, p=rng.dirichlet(np.full(types, 3.0)))
    codes = []
    for size in sizes:
        shares = rng.dirichlet(np.full(size, 0.35), types)
        codes.append(_drawn(shares[hidden], rng))
    return _table(codes, sizes, [Kind.NOMINAL] * columns)


def chain(seed: int, n: int, *, columns: int = 8) -> Made:
    """Nominals of which each depends on an earlier one: a random tree."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([3, 6, 10, 16], columns)
    codes = [_drawn(np.tile(rng.dirichlet(np.full(sizes[0], 2.0)), (n, 1)), rng)]
    for j in range(1, columns):
        parent = int(rng.integers(0, j))
        shares = rng.dirichlet(np.full(sizes[j], 0.3), sizes[parent])
        codes.append(_drawn(shares[codes[parent]], rng))
    return _table(codes, sizes, [Kind.NOMINAL] * columns)


def sparse(seed: int, n: int, *, columns: int = 10) -> Made:
    """Two couples that nearly determine each other; the other columns stand alone."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([2, 5, 9, 12], columns)
    sizes[:4] = (12, 9, 14, 14)
    codes = [_drawn(np.tile(rng.dirichlet(np.full(s, 2.0)), (n, 1)), rng) for s in sizes]
    for first, second in ((0, 1), (2, 3)):
        wanted = rng.integers(0, sizes[second], sizes[first])[codes[first]]
        codes[second] = np.where(rng.random(n) < 0.85, wanted, codes[second])
    kinds = [Kind.NOMINAL, Kind.NOMINAL, Kind.ORDINAL, Kind.ORDINAL]
    return _table(codes, sizes, kinds + [Kind.ORDINAL, Kind.NOMINAL] * ((columns - 4) // 2))


def census(seed: int, n: int, *, columns: int = 8) -> Made:
    """A mixture as in a census: ordinals that bend with age, nominals by type, yes and no."""
    rng = np.random.default_rng(seed)
    age = rng.beta(2, 3, n)
    hidden = np.clip(rng.normal(age * 1.2, 0.35, n), 0, 1)
    sizes = np.array([15, 16, 10, 7, 14, 2, 2, 30])[:columns]
    skill = rng.normal(size=n)
    shares = rng.dirichlet(np.full(14, 0.5), 8)
    towns = rng.dirichlet(np.full(30, 0.7), 4)
    status = rng.dirichlet(np.full(7, 0.4), 6)
    band = np.clip(np.floor(4 + 1.5 * skill), 0, 7).astype(np.int64)
    codes = [
        np.clip(np.floor(age * 15), 0, 14),
        np.clip(np.floor(8 + 2.5 * skill - 3 * hidden), 0, 15),
        np.clip(np.floor(4 + 5 * age * (1 - age) + rng.normal(0, 1, n) + 0.5 * skill), 0, 9),
        _drawn(status[np.minimum((age * 6).astype(np.int64), 5)], rng),
        _drawn(shares[band], rng),
        rng.random(n) < 1 / (1 + np.exp(-skill)),
        rng.random(n) < 1 / (1 + np.exp(3 - 1.5 * skill - 4 * age)),
        _drawn(towns[np.clip(np.floor(2 + skill), 0, 3).astype(np.int64)], rng),
    ]
    kinds = [Kind.ORDINAL] * 3 + [Kind.NOMINAL] * 5
    return _table(codes[:columns], sizes, kinds[:columns])


MADE = {
    "latent": latent,
    "classes": classes,
    "chain": chain,
    "sparse": sparse,
    "census": census,
}


def _drawn(shares: NDArray[np.float64], rng: np.random.Generator) -> Integers:
    """One code a row, from the shares of its row."""
    ends = np.cumsum(shares, axis=1)
    return (rng.random(len(shares))[:, None] * ends[:, -1:] > ends).sum(axis=1)


def _table(codes: list[Integers], sizes: Integers, kinds: list[Kind]) -> Made:
    columns = [np.asarray(column).astype(np.int64) for column in codes]
    attributes = [
        Attribute(f"c{j}", kind, int(size))
        for j, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
    ]
    return np.column_stack(columns), attributes
