"""Draw a plausible table of people who do not exist.

Households are drawn first: district, members and standing. Then each person's columns are drawn in
this order, each given those before it:

    district -> household -> age, sex -> marital, education -> condition
             -> at work -> occupation, hours -> income -> tax
"""

from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core._arrays import Ints
from shoal.errors import InputError
from shoal.sample import households, lives
from shoal.sample.draws import TABLES, pick, whole

LARGEST: Final = 90_000_000
"""The most rows that `people` draws: as many as household numbers of eight digits."""

COLUMNS: Final = (
    *("name", "person", "household", "age", "sex", "region", "education", "marital", "hours"),
    *("occupation", "income", "tax", "condition", "weight", "batch"),
)
"""The columns of the table, in order."""

_BLOCK: Final = 8192  # households drawn at a time, so a block's arrays stay in the cache
_MISSING: Final = -1


def people(n: int, seed: int) -> pl.DataFrame:
    """Draw a table of n invented people.

    The same n and seed give the same table on every machine, and a smaller n gives its
    first rows: people(10, 1) is people(1000, 1).head(10). Members of a household stand
    together; the end of the table may cut the last household.

    Cost: about one microsecond of one core and 200 bytes of memory per row.

    Args:
        n: number of rows, from 0 to 90,000,000.
        seed: chooses the table; any whole number that is not negative.

    Returns:
        The columns name, person, household, age, sex, region, education, marital, hours,
        occupation, income, tax, condition, weight and batch. Education, hours, income and
        condition have some nulls. Tax is never above income; where income is missing, it
        is never above the income that was not reported.

    Raises:
        InputError: if n or seed is out of range.

    >>> people(3, seed=1).columns[:5]
    ['name', 'person', 'household', 'age', 'sex']
    """
    if not 0 <= n <= LARGEST:
        raise InputError(f"n must be between 0 and {LARGEST}; found n={n}.")
    if seed < 0:
        raise InputError(f"seed must not be negative; found seed={seed}.")
    codes = {name: np.empty(n, dtype=dtype) for name, dtype in _STORED.items()}
    done = block = 0
    while done < n:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(block,))))
        drawn = _draw(rng)
        drawn["household"] += block * _BLOCK
        stop = min(n, done + len(drawn["household"]))
        for name, column in codes.items():
            column[done:stop] = drawn[name][: stop - done]
        done, block = stop, block + 1
    return _frame(codes, seed)


# A block is kept as codes that index the lists of levels, and numbers; -1 is missing. Small types
# keep the memory of ten million rows below that of the finished table.
_LONG: Final = ("name", "household", "income", "tax", "weight")
_STORED: Final = {
    name: np.int32 if name in _LONG else np.int8 for name in COLUMNS if name != "person"
}


def _draw(rng: np.random.Generator) -> dict[str, Ints]:
    """Draw one block of households, with the missing cells of a survey."""
    who = households.draw(rng, _BLOCK)
    life = lives.draw(rng, who)
    n = len(who.age)
    reticent = np.where(life["income"] > 90_000, 0.06, 0.022) * (who.age >= 16)
    return {
        "name": _names(rng, who),
        "household": who.household,
        "age": who.age,
        "sex": who.sex,
        "region": who.district,
        "education": _gaps(life["education"], rng.random(n) < 0.010 + 0.0003 * who.age),
        "marital": who.marital,
        "hours": _gaps(life["hours"], rng.random(n) < np.where(life["hours"] > 0, 0.03, 0.004)),
        "occupation": life["occupation"],
        "income": _gaps(life["income"], rng.random(n) < reticent),
        "tax": life["tax"],
        "condition": _gaps(life["condition"], rng.random(n) < 0.03),
        "weight": _cents(rng, who),
        "batch": pick(TABLES["wave"], 0, rng.random(_BLOCK))[who.household],
    }


def _names(rng: np.random.Generator, who: households.Members) -> Ints:
    """Draw names as sex, given name and surname in one code; families mostly share the last."""
    n = len(who.age)
    generation = who.age // 27
    given = pick(TABLES["given"], who.sex * 4 + generation, rng.random(n))
    family = pick(TABLES["surname"], 0, rng.random(_BLOCK))[who.household]
    own_name = (who.place == households.SHARER) | (rng.random(n) < 0.12)
    surname = np.where(own_name, pick(TABLES["surname"], 0, rng.random(n)), family)
    half = len(TABLES["given_names"]) // 2
    return (who.sex * half + given) * len(TABLES["surnames"]) + surname


def _cents(rng: np.random.Generator, who: households.Members) -> Ints:
    """Draw sampling weights in hundredths: by region, by size of place and by age."""
    response = (0.85 + 0.3 * rng.random(_BLOCK))[who.household]
    return whole(
        100
        * TABLES["design"][who.district]
        * response
        * TABLES["response"][who.age]
        * (0.95 + 0.1 * rng.random(len(who.age)))
    )


def _gaps(values: Ints, missing: NDArray[np.bool_]) -> Ints:
    return np.where(missing, _MISSING, values)


def _frame(codes: dict[str, NDArray[Any]], seed: int) -> pl.DataFrame:
    """Turn codes into a frame, column by column; the codes are consumed."""
    person = np.arange(len(codes["name"]))
    columns = [
        pl.Series("person", _numbers(person, seed=seed, factor=271_828_183, digits=9)),
        pl.Series(
            "household",
            _numbers(codes.pop("household"), seed=seed, factor=31_415_927, digits=8),
        ),
        pl.Series("weight", codes.pop("weight") / 100),
    ]
    for name in ("age", "hours", "income", "tax"):
        values = pl.Series(name, codes.pop(name).astype(np.int64))
        columns.append(values.set(values == _MISSING, None))
    full = [f"{first} {last}" for first in TABLES["given_names"] for last in TABLES["surnames"]]
    levels = {
        name.removesuffix("_levels"): table.tolist()
        for name, table in TABLES.items()
        if name.endswith("_levels")
    }
    for name, categories in {"name": full, **levels}.items():
        # Index -1 takes the last entry, which is null: so a missing code becomes a null.
        column = pl.Series(name, [*categories, None], dtype=pl.String)
        columns.append(column.gather(codes.pop(name)))
    return pl.DataFrame(columns).select(COLUMNS)


def _numbers(index: NDArray[Any], *, seed: int, factor: int, digits: int) -> Ints:
    """Assign each index a distinct number of `digits` digits, in no visible order.

    With m = 9 10^(digits - 1), i -> (factor i + shift) mod m is one-to-one below m, because
    the factor shares no divisor with m: 2, 3 and 5 do not divide it.
    """
    start = 10 ** (digits - 1)
    shift = (seed + 1) * 6_180_339_887 % (9 * start)
    numbers: Ints = start + (index.astype(np.int64) * factor + shift) % (9 * start)
    return numbers
