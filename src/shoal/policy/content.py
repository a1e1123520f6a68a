"""Recognise personal data by the content of a column alone.

One table, `RECOGNISERS`, says what is looked for. A pattern suffices if hardly anything else is
written that way. Check digits do not: of random nine-digit numbers 89 in 100 pass as an American
social security number. So a validator counts only as far as it accepts more cells than values of
the same shape with random digits, drawn from a seed. The names of people are recognised by words
that occur in them (`people.toml`), in any script.

Check digits come from python-stdnum and phone numbers from phonenumbers, both of the extra
`recognise`; `not_looked_for` says what a draft without them does not notice.
"""

import ipaddress
import re
import tomllib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from shoal.policy.column_values import ColumnValues

SAMPLE = 1000
"""So many distinct values of a column are looked at."""
LEAST = 0.6
"""The share of them that must look alike."""
FEWER = 200
"""So many of them where a test is slow."""
BEYOND = 0.25
"""By so much the share must exceed that of other values of the same shape."""
ENOUGH = 8
"""Below this many distinct values, check digits say nothing."""
NATIONAL = (
    "at.vnr au.tfn be.nn bg.egn br.cpf ca.sin ch.ssn cl.rut cn.ric cz.rc de.idnr de.stnr dk.cpr "
    "ee.ik es.dni es.nie fi.hetu fr.nif fr.nir gb.nhs gr.amka hr.oib id.nik ie.pps il.idnr "
    "in_.aadhaar in_.pan is_.kennitala it.codicefiscale jp.in_ kr.rrn lt.asmens lv.pvn mx.curp "
    "mx.rfc my.nric nl.bsn no.fodselsnummer nz.ird pl.pesel pt.nif pt.cc ro.cnp ru.inn "
    "se.personnummer si.emso th.pin tr.tckimlik tw.ubn ua.rntrc us.ssn us.itin za.idnr"
)
"""Numbers that states give to persons, as modules of python-stdnum."""
REGIONS = "US GB DE FR ES IT NL BE CH AT PT BR MX PL SE NO DK FI IE AU CA IN JP CN KR RU TR ZA GR"
"""Where a telephone number without a country code may be from."""

NAMES = "names of persons"

Test = Callable[[str], bool]
Together = Callable[[Sequence[str]], bool]


@dataclass(frozen=True)
class Recogniser:
    """A kind of personal data, and how it is recognised.

    Attributes:
        what: the values in words, as a part of a sentence.
        recognises: whether distinct values are of that sort.
        fewest: as many are needed.
        needs: the package without which it is not looked for.
    """

    what: str
    recognises: Together
    fewest: int = 2
    needs: str = ""

    @property
    def there(self) -> bool:
        """Whether the package that it needs is installed."""
        return not self.needs or find_spec(self.needs) is not None


def most(accepts: Test) -> Together:
    """Make a test of a column: whether most of its values are accepted."""
    return lambda values: _share(accepts, values) >= LEAST


def match_pattern(pattern: str, flags: int = re.IGNORECASE) -> Together:
    """Make a test of a column: whether most of its values match a pattern."""
    compiled = re.compile(pattern, flags)
    return most(lambda value: compiled.fullmatch(value) is not None)


def beyond_chance(accepts: Test, values: Sequence[str]) -> bool:
    """Whether values are accepted far more often than random values of the same shape."""
    if (accepted := _share(accepts, values)) < LEAST:
        return False
    chance = _share(accepts, _of_the_same_shape(values))
    return accepted - chance >= max(BEYOND, LEAST * (1 - chance))


def identity(column: ColumnValues) -> str:
    """Name the personal data in a column; empty if none is recognised."""
    dtype = column.values.dtype
    if dtype.is_temporal() or dtype.is_float() or column.date_forms or not column.distinct:
        return ""
    some = column.text.gather_every(max(1, -(-column.distinct // SAMPLE)))
    values = [text.strip() for text in some.to_list()]
    return next(
        (
            sort.what
            for sort in RECOGNISERS
            if len(values) >= sort.fewest and sort.there and sort.recognises(values)
        ),
        "",
    )


def not_looked_for() -> tuple[str, ...]:
    """List the kinds of data that are not recognised because a package is not installed."""
    return tuple(sort.what for sort in RECOGNISERS if not sort.there)


def _share(accepts: Test, values: Sequence[str]) -> float:
    return sum(map(accepts, values)) / len(values)


def _of_the_same_shape(values: Sequence[str]) -> list[str]:
    """Permute the characters at each position among values of the same length; marks stay."""
    rng, drawn = np.random.default_rng(0), []
    for length in {len(value) for value in values}:
        rows = np.array([list(value) for value in values if len(value) == length])
        for place in range(length):
            rows[:, place] = rng.permutation(rows[:, place])
        drawn += ["".join(row) for row in rows]
    return drawn


# Tests of a value


def _is_ip(value: str) -> bool:
    try:
        ipaddress.ip_address(value.partition("/")[0])
    except ValueError:
        return False
    return True


def _is_coordinate(value: str) -> bool:
    pair = re.fullmatch(r"\(?\s*(-?\d{1,2}[.]\d{3,})\s*[,; ]\s*(-?\d{1,3}[.]\d{3,})\s*\)?", value)
    if pair is not None:
        return abs(float(pair[1])) <= 90 and abs(float(pair[2])) <= 180
    return re.match(r"(?i)point\s*\(|\d{1,3}\s*°\s*\d", value) is not None


def _is_hash(value: str) -> bool:
    """Whether a value is long, and of hexadecimal digits or of random letters and digits."""
    if re.fullmatch(r"(?i)(0x)?[0-9a-f]{16,128}", value):
        return bool(re.search(r"\d", value) and re.search(r"(?i)[a-f]", value))
    mixed = re.search(r"\d", value) and re.search("[a-z]", value) and re.search("[A-Z]", value)
    return bool(mixed and re.fullmatch(r"[A-Za-z0-9+/_=-]{16,}", value))


@cache
def _validators() -> tuple[Callable[[str], bool], ...]:
    return tuple(import_module(f"stdnum.{name}").is_valid for name in NATIONAL.split())


def _are_national(values: Sequence[str]) -> bool:
    some = values[:FEWER]
    if _share(lambda value: 6 <= sum(map(str.isdigit, value)) <= 18, some) < LEAST:
        return False
    return any(beyond_chance(is_valid, some) for is_valid in _validators())


def _are_cards(values: Sequence[str]) -> bool:
    is_valid = import_module("stdnum.luhn").is_valid
    digits = [re.sub(r"[ -]", "", value) for value in values]
    if not all(13 <= len(value) <= 19 and value.isdigit() for value in digits[:20]):
        return False
    return beyond_chance(is_valid, digits)


def _are_phones(values: Sequence[str]) -> bool:
    phonenumbers = import_module("phonenumbers")
    if not all(7 <= sum(map(str.isdigit, value)) <= 15 for value in values[:20]):
        return False

    def accept(region: str, value: str) -> bool:
        try:
            return bool(phonenumbers.is_valid_number(phonenumbers.parse(value, region)))
        except phonenumbers.NumberParseException:
            return False

    return any(beyond_chance(partial(accept, region), values[:FEWER]) for region in REGIONS.split())


# Names of persons, and streets


@cache
def _words() -> dict[str, frozenset[str]]:
    text = Path(__file__).with_name("people.toml").read_text(encoding="utf-8")
    return {key: frozenset(words.split()) for key, words in tomllib.loads(text).items()}


def _plain(text: str) -> str:
    """Convert to lower case without accents."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(mark for mark in apart if not unicodedata.combining(mark))


def _tokens(value: str) -> list[str]:
    return [token for token in re.split(r"[\s,;./()'\u2019-]+", value) if token]


def _capital(token: str) -> bool:
    """Whether a word begins with a capital letter, or its script has none."""
    return token[0].isupper() or token[0].lower() == token[0].upper()


def _is_street(value: str) -> bool:
    words = _words()
    tokens = [token.casefold() for token in re.split(r"[\s,;]+", value) if token]
    named = any(
        token in words["street"] or token.strip("0123456789-").endswith(_endings("street_ending"))
        for token in tokens
    )
    return named and bool(re.search(r"\d", value)) and len(tokens) >= 2


@cache
def _endings(key: str) -> tuple[str, ...]:
    return tuple(_words()[key])


def _names_somebody(value: str) -> bool:
    """Whether a value looks like a person's name and has a word known from names."""
    tokens, words = _tokens(value), _words()
    shaped = 1 <= len(tokens) <= 6 and all(t.isalpha() and _capital(t) for t in tokens)
    if not shaped:
        return False
    joined, plain = "".join(tokens), [_plain(token) for token in tokens]
    if words["firm"].intersection(plain):
        return False
    script = unicodedata.name(joined[0], "").partition(" ")[0]
    if script in {"CJK", "HANGUL"}:
        family = words["hangul" if script == "HANGUL" else "han"]
        named = any(joined.startswith(name) for name in family)
        return named and 2 <= len(joined) <= 6 and joined[-1] not in words["area"]
    if script in {"KATAKANA", "HIRAGANA"}:
        return len(tokens) == 2 and len(joined) <= 14
    known = words["given"] | words["surname"] | words["other_scripts"]
    if script in {"CYRILLIC", "GREEK"} and any(len(t) > 3 and _ends(t) for t in tokens):
        return True
    initial = len(tokens) > 1 and any(len(token) == 1 for token in tokens)
    listed = bool(known.intersection([*plain, *map(str.casefold, tokens)]))
    titled = len(tokens) > 1 and plain[0] in words["title"]
    return listed or initial or titled or (len(tokens) > 2 and value.startswith(f"{tokens[0]}. "))


def _ends(token: str) -> bool:
    return token.casefold().endswith(_endings("ending"))


def _are_names(values: Sequence[str]) -> bool:
    """Whether values are names of persons: a third has a known word, the rest the same shape."""
    shaped = [
        value
        for value in values
        if 1 <= len(_tokens(value)) <= 6
        and not re.search(r"[\d@/%<>=]", value)
        and all(map(_capital, _tokens(value)))
        and len(value) > 1
    ]
    if len(shaped) < 0.8 * len(values):
        return False
    known = _share(_names_somebody, values)
    several = _share(lambda value: len(_tokens(value)) > 1, values)
    return known >= (0.25 if several >= 0.5 else 0.4)


RECOGNISERS = (
    Recogniser("e-mail addresses", match_pattern(r"[^@\s]+@[^@\s]+\.[a-z]{2,}>?")),
    Recogniser("addresses of web pages", match_pattern(r"(https?://|ftp://|www\.)\S+")),
    Recogniser("addresses on the internet", most(_is_ip)),
    Recogniser(
        "addresses of devices",
        match_pattern(r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2}|([0-9a-f]{4}\.){2}[0-9a-f]{4}"),
    ),
    Recogniser("UUIDs", match_pattern(r"\{?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\}?")),
    Recogniser(
        "bank account numbers (IBAN)",
        match_pattern(r"[A-Z]{2}\d{2} ?[A-Z0-9]{4} ?([A-Z0-9]{4} ?){1,6}[A-Z0-9]{0,4}", 0),
    ),
    Recogniser("hashes or tokens", most(_is_hash)),
    Recogniser(
        "paths of files", match_pattern(r"([a-z]:\\|\\\\|~?/|\.{1,2}/)[^\s/\\]+([/\\][^/\\]+){2,}")
    ),
    Recogniser("coordinates", most(_is_coordinate)),
    Recogniser("social security numbers", match_pattern(r"\d{3}-\d{2}-\d{4}")),
    Recogniser(
        "telephone numbers",
        match_pattern(
            r"(\+|00)[1-9][\d\s()./-]{6,18}|\(\d{2,5}\)[\d\s/-]{5,12}|0\d{1,4}[ /-][\d -]{5,10}"
            r"|\d{3}[-. ]\d{3}[-. ]\d{4}"
        ),
    ),
    Recogniser("names of accounts", match_pattern(r"@[a-z0-9_.]{2,30}")),
    Recogniser(
        "licence plates",
        match_pattern(
            r"[A-ZÄÖÜ]{1,3}[- ][A-Z]{1,2} ?\d{1,4}[EH]?|[A-Z]{2}\d{2} [A-Z]{3}"
            r"|[A-Z]{2}[- ]\d{3}[- ][A-Z]{2}|\d{4} [B-DF-HJ-NP-TV-Z]{3}",
            0,
        ),
        fewest=ENOUGH,
    ),
    Recogniser("card numbers", _are_cards, fewest=ENOUGH, needs="stdnum"),
    Recogniser("identity, tax or health numbers", _are_national, fewest=ENOUGH, needs="stdnum"),
    Recogniser(
        "telephone numbers without a country code",
        _are_phones,
        fewest=ENOUGH,
        needs="phonenumbers",
    ),
    Recogniser("street addresses", most(_is_street)),
    Recogniser(NAMES, _are_names, fewest=3),
)
"""What is looked for, in this order."""
