"""Small text files that people hand in beside the table, and numbers written as text.

Nothing here is trusted: a path may be a pipe that never ends, brackets may nest a million deep, and
`1e99999999` is seven bytes long and fills the memory once it is a fraction. All of that is
refused before anything is computed with it.
"""

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

from shoal.errors import InputError, visible

MOST_DIGITS = 100
MOST_EXPONENT = 400
"""A number is written with so many digits at most, and shifted by at most so many."""
MOST_BYTES = 64 << 20
"""Text files that people write are smaller than this."""
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**9), Fraction(10**9)
RANGES: Mapping[str, tuple[float, float]] = {
    "columns": (1, 10_000),
    "confidence": (1e-6, 1 - 1e-12),
    "epsilon": (1e-6, 700),
    "jobs": (1, 1_000),
    "k": (1, 1_000_000_000),
    "max_risk": (0, 1),
    "repeats": (1, 1_000),
    "rows": (1, 1_000_000_000),
    "seed": (0, 2**32 - 1),
    "t": (1, 1_000_000),
    "trials": (1, 10_000_000),
}
"""What the numbers of the command line, and of the functions behind it, may be."""


def refuse_special(path: Path) -> None:
    """Refuse a pipe, a device or a socket, which may never end; accept a path that is absent.

    `/dev/stdin` and the pipes of a shell's `<(...)` are such; a file is read more than once. A name
    that is not text is refused as well: reports and manifests could not hold it.
    """
    try:
        str(path).encode()
        mode = path.stat().st_mode
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise InputError(f"Expected a path in UTF-8, found '{shown}'. Rename it.") from None
    except (OSError, ValueError):
        return  # Opening it says why.
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        sort = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}.get(stat.S_IFMT(mode), "device")
        raise InputError(f"Expected a regular file, found the {sort} '{path}'.")


def read_bytes(path: Path, what: str) -> bytes:
    """Read a small file that a person wrote; `what` names it in errors: "the policy 'p.toml'"."""
    refuse_special(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(f"Cannot read {what}: {reason}.") from None
    except ValueError:
        raise InputError(f"Cannot read {what}: the path holds a zero byte.") from None
    if len(raw) > MOST_BYTES:
        raise InputError(f"Cannot read {what}: expected at most {MOST_BYTES >> 20} MB.")
    return raw


def read_text(path: Path, what: str) -> str:
    """Read a small text file that a person wrote; see `read_bytes`."""
    try:
        return read_bytes(path, what).decode()
    except UnicodeDecodeError:
        raise InputError(f"Cannot read {what}: it must be UTF-8 text.") from None


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Parse TOML with exact decimals, and refuse absurd values; `where` is named in errors."""
    try:
        content = tomllib.loads(text, parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = text.splitlines()[int(at[1]) - 1] if at else ""
        local = re.search(r"[\[=,]\s*\d+[./-]\d+[./-]\d+", line)
        form = " Write days as 2023-09-17." if local else ""
        raise InputError(f"{where} is not valid TOML: {error}.{form}") from None
    except RecursionError:
        raise InputError(f"{where} is not valid TOML: its brackets nest too deeply.") from None
    except ValueError:  # Python reads no whole number of thousands of digits.
        raise InputError(f"{where}: expected numbers of at most {MOST_DIGITS} digits.") from None
    refuse_absurd(content, where)
    return content


def refuse_absurd(content: Mapping[str, Any], where: str) -> None:
    """Refuse numbers with an absurd number of digits or an absurd exponent.

    They are refused as written, before they are compared or added up: a decimal of huge exponent is
    small until it becomes a fraction, and then has as many digits as the exponent says.
    """
    for path, value in _leaves(content):
        if not is_ordinary(value):
            raise InputError(
                f"{where}, {path}: expected a number of at most {MOST_DIGITS} digits, between "
                f"1e-{MOST_EXPONENT} and 1e{MOST_EXPONENT}."
            )


def is_ordinary(value: object) -> bool:
    """Whether a value is not a number, or a number of ordinary size."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return True
    if isinstance(value, int):
        return value.bit_length() <= 3.32 * MOST_DIGITS
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return True  # NaN and infinities are reported as such.
    return len(digits) <= MOST_DIGITS and abs(exponent) <= MOST_EXPONENT


def parse_epsilon(text: str, what: str = "epsilon") -> Fraction:
    """Parse an epsilon exactly: a decimal such as 0.5, or a fraction such as 1/3."""
    above, slash, below = text.partition("/")
    try:
        parts = [_finite(above), _finite(below) if slash else Decimal(1)]
        epsilon = Fraction(parts[0]) / Fraction(parts[1])
    except (InvalidOperation, ValueError, ZeroDivisionError):
        raise InputError(
            f"Expected {what} as a number such as 0.5, found '{brief(text)}'."
        ) from None
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise InputError(f"Expected {what} from 1e-9 to 1e9, found '{brief(text)}'.")
    return epsilon


def parse_delta(text: str) -> Fraction:
    """Parse a delta exactly."""
    try:
        delta = Fraction(_finite(text))
    except (InvalidOperation, ValueError):
        raise InputError(
            f"Expected delta as a number such as 1e-9, found '{brief(text)}'."
        ) from None
    if not Fraction(1, 10**30) <= delta <= Fraction(1, 1000):
        raise InputError(f"Expected delta from 1e-30 to 0.001, found '{brief(text)}'.")
    return delta


def check_options(**given: float | None) -> None:
    """Refuse numbers outside the range of their option, NaN included; none may pass.

    >>> check_options(jobs=2, seed=None)
    >>> check_options(jobs=0)
    Traceback (most recent call last):
    shoal.errors.InputError: Expected jobs from 1 to 1,000, found 0.
    """
    for name, value in given.items():
        low, high = RANGES[name]
        if value is not None and not low <= value <= high:
            shown = f"{value}" if abs(value) < 10**40 or value != value else "a longer number"  # noqa: PLR0124
            raise InputError(f"Expected {name} from {low:,} to {high:,}, found {shown}.")


def _finite(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite() or not is_ordinary(value):
        raise ValueError(text)
    return value


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of more than eighteen digits
        raise ValueError(text) from None


def _leaves(content: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value of a document with its path of keys; cost O(size)."""
    waiting = [(path, content)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(f"{path}.{key}" if path else str(key), i) for key, i in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(path, item) for item in value]
        else:
            yield path, value


def brief(value: object) -> str:
    """Shorten a value for a message."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def quote(text: str) -> str:
    """Quote text as in TOML, with escapes for invisible characters."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(
        f"\\U{ord(c):08x}" if ord(c) > 0xFFFF and visible(c) != c else visible(c) for c in written
    )


def bare(name: str) -> str:
    """Write a TOML key, quoted where necessary.

    >>> bare("k-anonymity"), bare("date of birth")
    ('k-anonymity', '"date of birth"')
    """
    plain = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if plain else quote(name)


def as_toml(value: Any) -> str:  # noqa: PLR0911 (one line a type)
    """Write a value as TOML on one line.

    >>> as_toml({"role": "other", "bounds": [0, Decimal("1.5")], "privacy_unit": True})
    '{ role = "other", bounds = [0, 1.5], privacy_unit = true }'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote(str(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return as_toml(Decimal(repr(value)))
    if isinstance(value, Decimal):
        return _digits(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        inner = ", ".join(f"{bare(key)} = {as_toml(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return _as_json(value) or f"[{', '.join(map(as_toml, value))}]"
    raise InputError(f"TOML cannot hold a value of the type {type(value).__name__}.")


def _as_json(values: Sequence[Any]) -> str | None:
    """Write an array as JSON, which is quick, where TOML writes it alike; None elsewhere."""
    try:
        written = json.dumps(values, ensure_ascii=False)
    except TypeError:  # such as a date
        return None
    texts = '"' in written
    if not texts:
        written = written.replace("Infinity", "inf").replace("NaN", "nan")
    unlike = r"\de|[{]|null" + ("|Infinity|NaN" if texts else "")
    return written if written.isprintable() and not re.search(unlike, written) else None


def _digits(value: Decimal) -> str:
    if value.is_nan():
        return "nan"
    if value.is_infinite():
        return "-inf" if value < 0 else "inf"
    plain = abs(value.adjusted()) < 20
    return format(value, "f") if plain else str(value).lower()
