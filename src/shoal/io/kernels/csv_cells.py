"""Compiled reading of plain CSV files: without quotes, with as many cells in every row."""

import numpy as np

from shoal.core._arrays import Array, Floats, Ints, Unsigned32, Unsigned64
from shoal.core.jit import kernel

UNKNOWN, WHOLE, FRACTION, TEXT, OTHER = range(5)
"""What a column is: nothing but empty cells so far, numbers, few different texts, or anything."""
MISSING = -(2**63)
DIGITS = 15
"""So many digits are exact in a float."""
PAST = 8
"""Bytes after the end of a cell that are looked at."""
_LINE, _RETURN, _POINT, _MINUS, _ZERO = 10, 13, 46, 45, 48
_NO_POINT, _POINT_ZERO = 1, 2


@kernel
def count_lines(raw: Array) -> int:
    """Count the line ends of a file."""
    lines = 0
    for i in range(raw.size):
        lines += raw[i] == _LINE
    return lines


@kernel
def read_cells(
    raw: Array,
    start: int,
    separator: int,
    powers: Floats,
    columns: Ints,
    words: Ints,
    numbers: Floats,
    slots: Unsigned32,
    places: Unsigned64,
) -> int:
    """Read the cells of all rows into words, by column.

    A cell is a number if it is one in its shortest spelling, of at most `DIGITS` and without an
    exponent: such a number is the quotient of two floats that are exact, so it is rounded once, as
    by any correct reader. A column has fractions if one of its numbers has a point. Texts of a
    column are numbered in the order in which they occur first, by a hash table. A column is
    `OTHER`, and its cells are passed over, where numbers are mixed with other cells, where some
    numbers have no point and others end in ".0", and where there is no room for a text.

    Args:
        raw: the file, without quotes, and `PAST` line ends after it.
        start: where the first row begins.
        separator: what stands between cells.
        powers: of ten, as many as a number has digits.
        columns: zeros; takes what each column is, how many of its cells are empty, how many
            texts it has, and how its numbers are spelled.
        words: takes whole numbers and the numbers of texts, or `MISSING`.
        numbers: the same memory, for fractions and NaN.
        slots: zeros, a power of two for each column, and more than there is room for texts.
        places: takes the hash of each text, and where it first begins and ends.

    Returns:
        How many rows there are; or -1 where one has another number of cells, or is blank.
    """
    sorts, missing, found, spelled = columns
    width = sorts.size
    one = np.uint64(1)
    at = np.uint64(start)
    row = 0
    while at < np.uint64(raw.size - PAST):
        for column in range(width):
            sort = sorts[column]
            begin = at
            if sort == WHOLE:  # nearly all of its cells are so, and nothing else need be asked
                value, at = digits_at(raw, at, np.uint64(0))
                digits = at - begin
                if (
                    digits - one < np.uint64(DIGITS)
                    and (raw[begin] != _ZERO or digits == one)
                    and ends_cell(raw[at], separator)
                ):
                    words[column, row] = np.int64(value)
                else:
                    at = begin
            if at == begin and ends_cell(raw[at], separator):
                missing[column] += 1
                if sort == FRACTION:
                    numbers[column, row] = np.nan
                else:
                    words[column, row] = MISSING
            elif at == begin and sort <= FRACTION:
                at, signed, decimals, form = number_at(raw, at, separator)
                if at == begin:
                    sort = TEXT if sort == UNKNOWN else OTHER
                    sorts[column] = sort
                elif sort == FRACTION:
                    numbers[column, row] = np.float64(signed) / powers[decimals]
                    spelled[column] |= form
                elif decimals == 0:
                    words[column, row] = signed
                    sorts[column] = WHOLE
                else:
                    for before in range(row):
                        whole = words[column, before]
                        numbers[column, before] = np.float64(whole)
                        if whole == MISSING:
                            numbers[column, before] = np.nan
                    numbers[column, row] = np.float64(signed) / powers[decimals]
                    spelled[column] = form | (_NO_POINT if sort == WHOLE else 0)
                    sorts[column] = FRACTION
            if sort >= TEXT and not ends_cell(raw[begin], separator):
                at, code = text_at(raw, begin, separator)
                if sort == TEXT:
                    known = number_of(
                        raw, begin, at, code, slots[column], places[:, column], found[column]
                    )
                    if known > places.shape[2]:
                        sorts[column] = OTHER
                    found[column] = max(found[column], min(known, places.shape[2]))
                    words[column, row] = known - 1
            if raw[at] == _RETURN:
                at += one
                if raw[at] != _LINE:
                    return -1
            if (raw[at] == _LINE) != (column == width - 1):
                return -1
            at += one
        row += 1
    for column in range(width):
        if sorts[column] == FRACTION and spelled[column] == _NO_POINT + _POINT_ZERO:
            sorts[column] = OTHER
    return row


@kernel
def number_at(
    raw: Array, begin: np.uint64, separator: int
) -> tuple[np.uint64, np.int64, np.uint64, int]:
    """Where a cell ends that is a number; it, without its point; its decimals; how it is spelled.

    It ends where it begins if it is none, or is not in its shortest spelling.
    """
    one = np.uint64(1)
    negative = raw[begin] == _MINUS
    first = begin + one if negative else begin
    value, at = digits_at(raw, first, np.uint64(0))
    digits = at - first
    number = digits > 0 and (raw[first] != _ZERO or digits == one)
    decimals = np.uint64(0)
    form = _NO_POINT
    if raw[at] == _POINT:
        point = at
        value, at = digits_at(raw, at + one, value)
        decimals = at - point - one
        digits += decimals
        form = 0
        if raw[at - one] == _ZERO:
            form = _POINT_ZERO
            number = number and decimals == one
        number = number and decimals > 0
    number = number and digits <= DIGITS and ends_cell(raw[at], separator)
    if not number or (negative and value == 0):
        at = begin
    signed = np.int64(value)
    return at, -signed if negative else signed, decimals, form


@kernel
def text_at(raw: Array, at: np.uint64, separator: int) -> tuple[np.uint64, np.uint64]:
    """Where a cell ends, and a hash of its bytes."""
    code = np.uint64(0)
    while not ends_cell(raw[at], separator):
        code = (code ^ np.uint64(raw[at])) * np.uint64(0x100000001B3)
        at += np.uint64(1)
    return at, code ^ (code >> np.uint64(32))


@kernel
def number_of(
    raw: Array,
    begin: np.uint64,
    end: np.uint64,
    code: np.uint64,
    slots: Unsigned32,
    places: Unsigned64,
    found: int,
) -> int:
    """The number of a text, from 1; of a new one the next, which is kept if there is room."""
    hashes, begins, ends = places
    mask = np.uint64(slots.size - 1)
    slot = code & mask
    known = np.int64(slots[slot])
    while known and not (
        hashes[known - 1] == code
        and ends[known - 1] - begins[known - 1] == end - begin
        and alike(raw, begins[known - 1], begin, end)
    ):
        slot = (slot + np.uint64(1)) & mask
        known = np.int64(slots[slot])
    if known:
        return int(known)
    if found < hashes.size:
        hashes[found], begins[found], ends[found] = code, begin, end
        slots[slot] = found + 1
    return found + 1


@kernel
def ends_cell(byte: int, separator: int) -> bool:
    """Whether a byte ends a cell."""
    return byte in (separator, _LINE, _RETURN)


@kernel
def alike(raw: Array, one: np.uint64, begin: np.uint64, end: np.uint64) -> bool:
    """Whether a cell is the text that begins at `one`."""
    size = end - begin
    same = np.uint64(0)
    while same < size and raw[one + same] == raw[begin + same]:
        same += np.uint64(1)
    return bool(same == size)


@kernel
def digits_at(raw: Array, at: np.uint64, value: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Append the digits from a place on to a number; and where they end.

    Eight bytes at a time: a digit keeps the highest bit of its byte clear when 0x46 is added and
    when 0x30 is subtracted, and the first other byte sets it in one of the two.
    """
    while True:
        chunk = eight_bytes(raw, at)
        low = chunk - np.uint64(0x3030303030303030)
        other = ((chunk + np.uint64(0x4646464646464646)) | low) & np.uint64(0x8080808080808080)
        if other == 0:
            value = value * np.uint64(100_000_000) + eight_digits(low)
            at += np.uint64(8)
            continue
        # The lowest bit that is set, times a number whose bytes count the places from it.
        first = (other & (~other + np.uint64(1))) >> np.uint64(7)
        many = (first * np.uint64(0x0001020304050607)) >> np.uint64(56)
        half = (np.uint64(8) - many) << np.uint64(2)  # twice, because a shift by 64 is none
        scale = np.uint64(1)
        if many & np.uint64(1):
            scale = np.uint64(10)
        if many & np.uint64(2):
            scale *= np.uint64(100)
        if many & np.uint64(4):
            scale *= np.uint64(10_000)
        return value * scale + eight_digits(low << half << half), at + many


@kernel
def eight_digits(digits: np.uint64) -> np.uint64:
    """The number that eight digits make, a byte each and the first one lowest."""
    pairs = digits * np.uint64(10) + (digits >> np.uint64(8))
    every = np.uint64(0x000000FF000000FF)
    outer = (pairs & every) * np.uint64(0x000F424000000064)
    inner = ((pairs >> np.uint64(16)) & every) * np.uint64(0x0000271000000001)
    return (outer + inner) >> np.uint64(32)


@kernel
def eight_bytes(raw: Array, at: np.uint64) -> np.uint64:
    """Eight bytes as a number, the first one lowest; compiled, that is one instruction."""
    return (
        np.uint64(raw[at])
        | np.uint64(raw[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(raw[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(raw[at + np.uint64(3)]) << np.uint64(24)
        | np.uint64(raw[at + np.uint64(4)]) << np.uint64(32)
        | np.uint64(raw[at + np.uint64(5)]) << np.uint64(40)
        | np.uint64(raw[at + np.uint64(6)]) << np.uint64(48)
        | np.uint64(raw[at + np.uint64(7)]) << np.uint64(56)
    )
