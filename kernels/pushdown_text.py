"""How a state of the pushdown machine reads characters: UTF-8 and the escapes of JSON, byte by byte.

A state in TEXT, JSON_STRING or JSON_PLAIN mode has edges over code points. Halfway through a character the decoder keeps a
number (`Frame.partial`), and goes on only while some edge lies in the range that is still possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kernels.pushdown_tables import CLOSE, JSON_PLAIN, JSON_STRING, TEXT

# Decoder states: kind << 28 | count << 24 | value.
UTF8_2, UTF8_3, UTF8_4 = 1, 2, 3   # inside a character of that many bytes; count = bytes to come, value = bits so far
ESCAPE = 4                         # after a backslash
HEX = 5                            # after \u; count = digits so far, value = their number
HIGH = 6                           # after a high surrogate; value = its low ten bits
HIGH_ESCAPE = 7                    # ... and a backslash
HIGH_HEX = 8                       # ... and \u; count = digits so far, value = ten bits << 12 | digits (without the leading D)

MAX_NEWLINES = 2   # of one run of whitespace
MAX_INDENT = 64    # spaces or tabs after its newlines

_SHORT_ESCAPES = {0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 8, 0x66: 12, 0x6E: 10, 0x72: 13, 0x74: 9}
_ONLY_HEX = ((0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F))          # control characters without a short escape
_NEVER_BARE = ((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
_ANY = ((0x00, CLOSE - 1),)
_FIRST_OF_LENGTH = {UTF8_2: 0x80, UTF8_3: 0x800, UTF8_4: 0x10000}

IsOpen = Callable[[int, int], bool]   # whether some character of a range can be read
Ranges = Sequence[tuple[int, int]]


def next_space(partial: int, byte: int) -> int:
    """The whitespace counter after one more whitespace byte, or -1: at most one space, or newlines and an indent."""
    newlines, indent = partial >> 8, partial & 255
    if byte == 0x0A:
        return (newlines + 1) << 8 if indent == 0 and newlines < MAX_NEWLINES else -1
    if byte == 0x20 or (byte == 0x09 and newlines):
        return partial + 1 if indent < (MAX_INDENT if newlines else 1) else -1
    return -1


def decode(mode: int, partial: int, byte: int, is_open: IsOpen) -> tuple[bool, int]:
    """(True, code point) when the byte ends a character, else (False, next decoder state); 0 when refused."""
    kind, count, value = partial >> 28, partial >> 24 & 15, partial & 0xFFFFFF
    if kind == 0:
        return _first_byte(mode, byte, is_open)
    if kind <= UTF8_4:
        if not 0x80 <= byte <= 0xBF:
            return False, 0
        value, count = value << 6 | byte & 0x3F, count - 1
        if count == 0:
            return True, value   # overlong forms were refused with the byte before
        return False, _utf8(kind, count, value, is_open)
    if kind == ESCAPE:
        return _escaped(mode, byte, is_open)
    if kind == HIGH:
        return False, HIGH_ESCAPE << 28 | value if byte == 0x5C else 0
    if kind == HIGH_ESCAPE:
        return False, HIGH_HEX << 28 | value << 12 if byte == 0x75 else 0
    digit = int(chr(byte), 16) if chr(byte) in "0123456789abcdefABCDEF" else -1
    if digit < 0:
        return False, 0
    if mode == JSON_PLAIN:
        return _plain_hex_digit(count + 1, value << 4 | digit, is_open) if not chr(byte).isupper() else (False, 0)
    return _hex_digit(count, value, digit, is_open) if kind == HEX else _low_digit(count, value, digit, is_open)


def may_become(mode: int, partial: int) -> Ranges:
    """The code points that a character begun so can turn out to be."""
    kind, count, value = partial >> 28, partial >> 24 & 15, partial & 0xFFFFFF
    if kind == 0:
        return ((0, CLOSE),)
    if kind <= UTF8_4:
        return ((value << 6 * count, ((value + 1) << 6 * count) - 1),)
    if kind == ESCAPE:
        return _ANY if mode == JSON_STRING else _NEVER_BARE
    if kind == HEX:
        shift = 4 * (4 - count)
        low, high = value << shift, ((value + 1) << shift) - 1
        if mode == JSON_PLAIN:
            return [(max(low, first), min(high, last)) for first, last in _ONLY_HEX if max(low, first) <= min(high, last)]
        first, last = max(low, 0xD800) - 0xD800, min(high, 0xDBFF) - 0xD800
        return [(low, high), *([(0x10000 + (first << 10), 0x10000 + (last << 10) + 0x3FF)] if first <= last else [])]
    point = 0x10000 + ((value >> 12 if kind == HIGH_HEX else value) << 10)
    if kind != HIGH_HEX or count < 2:
        return ((point, point + 0x3FF),)
    low, shift = value & 0xFFF, 4 * (4 - count)
    return ((point | low << shift, point | ((low + 1) << shift) - 1),)


def _any_open(ranges: Iterable[tuple[int, int]], is_open: IsOpen) -> bool:
    return any(low <= high and is_open(low, high) for low, high in ranges)


def _first_byte(mode: int, byte: int, is_open: IsOpen) -> tuple[bool, int]:
    if mode != TEXT:
        if byte == 0x22:
            return True, CLOSE
        if byte == 0x5C:
            return False, ESCAPE << 28 if _any_open(_ANY if mode == JSON_STRING else _NEVER_BARE, is_open) else 0
        if byte < 0x20:
            return False, 0
    if byte < 0x80:
        return True, byte
    if 0xC2 <= byte <= 0xDF:
        return False, _utf8(UTF8_2, 1, byte & 0x1F, is_open)
    if 0xE0 <= byte <= 0xEF:
        return False, _utf8(UTF8_3, 2, byte & 0x0F, is_open)
    if 0xF0 <= byte <= 0xF4:
        return False, _utf8(UTF8_4, 3, byte & 0x07, is_open)
    return False, 0


def _escaped(mode: int, byte: int, is_open: IsOpen) -> tuple[bool, int]:
    """After a backslash."""
    if byte in _SHORT_ESCAPES:
        return (False, 0) if mode == JSON_PLAIN and byte == 0x2F else (True, _SHORT_ESCAPES[byte])
    return False, HEX << 28 if byte == 0x75 and (mode == JSON_STRING or _any_open(_ONLY_HEX, is_open)) else 0


def _plain_hex_digit(count: int, value: int, is_open: IsOpen) -> tuple[bool, int]:
    """After `count` digits of an escape that only a control character without a short one may have."""
    shift = 4 * (4 - count)
    low, high = value << shift, ((value + 1) << shift) - 1
    if not _any_open([(max(low, first), min(high, last)) for first, last in _ONLY_HEX], is_open):
        return False, 0
    return (True, value) if count == 4 else (False, HEX << 28 | count << 24 | value)


def _utf8(kind: int, count: int, value: int, is_open: IsOpen) -> int:
    low, high = max(value << 6 * count, _FIRST_OF_LENGTH[kind]), min(((value + 1) << 6 * count) - 1, CLOSE - 1)
    return kind << 28 | count << 24 | value if low <= high and is_open(low, high) else 0


def _hex_digit(count: int, value: int, digit: int, is_open: IsOpen) -> tuple[bool, int]:
    value, count = value << 4 | digit, count + 1
    if count == 4 and not 0xD800 <= value <= 0xDFFF:
        return True, value
    shift = 4 * (4 - count)
    low, high = value << shift, ((value + 1) << shift) - 1
    first, last = max(low, 0xD800) - 0xD800, min(high, 0xDBFF) - 0xD800
    pair = first <= last and is_open(0x10000 + (first << 10), 0x10000 + (last << 10) + 0x3FF)
    if count == 4:
        return False, HIGH << 28 | first if pair else 0
    return False, HEX << 28 | count << 24 | value if pair or is_open(low, high) else 0


def _low_digit(count: int, value: int, digit: int, is_open: IsOpen) -> tuple[bool, int]:
    if count == 0:
        return False, HIGH_HEX << 28 | 1 << 24 | value if digit == 0xD else 0
    if count == 1 and digit < 0xC:
        return False, 0
    high, low = value >> 12, value & 0xFFF
    low, count = low << 4 | (digit & 3 if count == 1 else digit), count + 1
    point = 0x10000 + (high << 10)
    if count == 4:
        return True, point | low
    shift = 4 * (4 - count)
    if not is_open(point | low << shift, point | ((low + 1) << shift) - 1):
        return False, 0
    return False, HIGH_HEX << 28 | count << 24 | high << 12 | low
