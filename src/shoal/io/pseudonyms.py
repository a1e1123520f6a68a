"""Replace identifiers by keyed pseudonyms, and shift the dates of a person together.

    pseudonym = p and the first 128 bits of HMAC-SHA-256(key, recipient, column, identifier)
    shift     = HMAC-SHA-256(key, recipient, "shift", person) mod (2 d + 1) - d   days

Both are functions of a cell's own person and of a key that nobody else has. Another recipient gets
other pseudonyms, so two releases are linked only by whoever has the key. Equal identifiers, as
`spell_persons` reads them, have one pseudonym; two have the same with probability 2^-128.

Nothing is promised: rows of a person stay linked, days between them stay, and one known date of a
person gives the shift away.

References:
    Krawczyk, Bellare and Canetti, "HMAC: Keyed-Hashing for Message Authentication", RFC 2104.
"""

import hmac
import secrets
from dataclasses import replace
from pathlib import Path

import polars as pl

from shoal.core import Schema
from shoal.errors import InputError
from shoal.io.folders import FIGURES
from shoal.io.persons import spell_persons
from shoal.io.table import Table
from shoal.io.text_files import read_text

LEAST = 32
"""Characters of a key, at least."""


def read_key(file: Path, recipient: str) -> bytes:
    """Derive a recipient's key from the secret in a file, which is made where there is none."""
    if any((file.parent / name).exists() for name in ("manifest.json", FIGURES)):
        raise InputError(f"The pseudonym key '{file}' lies in a folder of a release: name a file "
                         "outside of both, which is never handed on.")  # fmt: skip
    try:
        if not file.exists():
            file.touch(mode=0o600, exist_ok=False)
            file.write_text(secrets.token_hex(32) + "\n", encoding="ascii")
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(f"Cannot make the pseudonym key '{file}': {reason}.") from None
    secret = read_text(file, f"the pseudonym key '{file}'").strip()
    if len(secret) < LEAST:
        raise InputError(
            f"The pseudonym key '{file}' is too short: expected at least {LEAST} characters that "
            "nobody can guess. Name a file that does not exist, and one is made."
        )
    return _digest(secret.encode(), recipient)


def disguise(table: Table, frame: pl.DataFrame, schema: Schema, key: bytes) -> Table:
    """Replace the pseudonymous columns of a table and shift its dates; `frame` has its cells."""
    for column in table.schema.columns:
        name = column.name
        if column.pseudonym:
            cells = spell_persons(frame[name], column)
            # A letter in front: one that is all digits would be a number to its readers.
            known = {text: f"p{_digest(key, name, text).hex()[:32]}" for text in _texts(cells)}
            made = cells.replace_strict(known, default=None, return_dtype=pl.String).alias(name)
            dtypes = {**table.dtypes, name: pl.String()}
            table = replace(table.with_series(made), dtypes=dtypes)
        if column.date_shift and schema.persons is not None:
            unit, most = schema[schema.persons.column], column.date_shift
            person = spell_persons(frame[unit.name], unit)
            days = {
                text: int.from_bytes(_digest(key, "shift", text)) % (2 * most + 1) - most
                for text in _texts(person)
            }
            by = person.replace_strict(days, default=None, return_dtype=pl.Int64)
            shifted = table.frame.select(pl.col(name) + pl.duration(days=pl.lit(by)))[name]
            table = table.with_series(shifted)
    return table


def _texts(cells: pl.Series) -> list[str]:
    return cells.drop_nulls().unique().to_list()


def _digest(key: bytes, *parts: str) -> bytes:
    # Lengths before the parts keep ("ab", "c") and ("a", "bc") apart.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256")
