r"""What the dialects mean by \d, \w, \s, by \p{...} and by ignoring case, as sets of characters.

Each class has two readings (see `grammar.text.regex_tree`): *inner*, the characters that every dialect counts in, and *outer*,
those that any does. All tables come from the standard library's `unicodedata`; a property that cannot be derived from it
exactly is refused by name. A character that this version of Unicode leaves unassigned may belong to any category in a later one.
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from grammar.errors import PatternError
from grammar.text import charset
from grammar.text.charset import CharSet

T = TypeVar("T")

# All code points: (first, last, whether they are alike). The planes without characters and those for private use are not looked
# through one by one.
_STRETCHES = ((0, 0x3FFFF, False), (0x40000, 0xDFFFF, True), (0xE0000, 0xEFFFF, False), (0xF0000, 0xFFFFD, True),
              (0xFFFFE, 0xFFFFF, True), (0x100000, 0x10FFFD, True), (0x10FFFE, 0x10FFFF, True))

_SPACE = charset.of("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000", (0x2000, 0x200A))   # in both dialects
_ECMA_SPACE = charset.join(_SPACE, charset.of("\ufeff"))

# Every general category of the standard: its short name, its long names, and its parts where it has some.
_GROUPS = {
    "L": "Lu Ll Lt Lm Lo", "LC": "Lu Ll Lt", "M": "Mn Mc Me", "N": "Nd Nl No", "P": "Pc Pd Ps Pe Pi Pf Po",
    "S": "Sm Sc Sk So", "Z": "Zs Zl Zp", "C": "Cc Cf Cs Co Cn"}
_LONG_NAMES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl",
    "Other_Number": "No", "Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd",
    "Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi", "Final_Punctuation": "Pf",
    "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk",
    "Other_Symbol": "So", "Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp",
    "Other": "C", "Control": "Cc", "cntrl": "Cc", "Format": "Cf", "Surrogate": "Cs", "Private_Use": "Co", "Unassigned": "Cn"}
_BINARY: dict[str, Callable[[str], bool]] = {
    "Lowercase": str.islower, "Lower": str.islower, "Uppercase": str.isupper, "Upper": str.isupper,
    "XID_Start": lambda c: c.isidentifier() and c != "_", "XIDS": lambda c: c.isidentifier() and c != "_",
    "XID_Continue": lambda c: f"a{c}".isidentifier(), "XIDC": lambda c: f"a{c}".isidentifier(),
    "White_Space": lambda c: c.isspace() and c not in "\x1c\x1d\x1e\x1f",
    "space": lambda c: c.isspace() and c not in "\x1c\x1d\x1e\x1f"}
_FIXED = {"Any": charset.ALL, "ASCII": charset.of((0, 0x7F)), "ASCII_Hex_Digit": charset.of("0123456789abcdefABCDEF"),
          "AHex": charset.of("0123456789abcdefABCDEF")}


@functools.cache
def escape_class(letter: str, outer: bool) -> CharSet:
    r"""One reading of \d, \w, \s or of \D, \W, \S.

    ECMA-262 reads \d and \w in ASCII and has its own list of spaces; Python reads all three in Unicode.
    """
    if letter.isupper():
        return charset.complement(escape_class(letter.lower(), not outer))
    if letter == "s":
        return charset.join(_ECMA_SPACE, _python_class("s")) if outer else _SPACE
    ascii_only = charset.DIGIT if letter == "d" else charset.WORD
    return _python_class(letter) if outer else ascii_only


def _python_class(letter: str) -> CharSet:
    """What Python's own regexes count as a digit, a word character or a space."""
    of_class = re.compile(rf"\{letter}+")
    found: list[tuple[int, int]] = []
    for first, last, alike in _STRETCHES:
        if not alike:
            found.extend((first + run.start(), first + run.end() - 1) for run in of_class.finditer(_characters(first, last)))
        elif of_class.match(chr(first)):
            found.append((first, last))
    return charset.of(*found)


def property_class(name: str, outer: bool) -> CharSet:
    r"""One reading of \p{name}. Raises PatternError for a property that is unknown or not derivable here."""
    key, equals, value = name.partition("=")
    if equals and key not in ("General_Category", "gc"):
        raise PatternError(f"the Unicode property {name[:60]!r} is not supported: only general categories are")
    short = _LONG_NAMES.get(value if equals else name, value if equals else name)
    if not equals and name in _FIXED:
        return _FIXED[name]
    if short in ("C", "Cn"):
        return category(short) if outer else charset.difference(category(short), category("Cn"))
    if short in _GROUPS or short in _categories():
        found = category(short)
    elif not equals and name in _BINARY:
        found = _where(_BINARY[name])
    elif name == "Assigned":
        found = charset.complement(category("Cn"))
    else:
        raise PatternError(f"the Unicode property {name[:60]!r} is not supported")
    return charset.join(found, category("Cn")) if outer else found


@functools.cache
def category(name: str) -> CharSet:
    """The characters of a general category, by its short name."""
    return charset.join(*(_categories().get(part, charset.EMPTY) for part in _GROUPS.get(name, name).split()))


@functools.cache
def _categories() -> dict[str, CharSet]:
    runs: dict[str, list[tuple[int, int]]] = {part: [] for parts in _GROUPS.values() for part in parts.split()}
    for first, last, name in _runs(unicodedata.category):
        runs[name].append((first, last))
    return {name: charset.of(*pairs) for name, pairs in runs.items()}


@functools.cache
def _where(test: Callable[[str], bool]) -> CharSet:
    return charset.of(*((first, last) for first, last, holds in _runs(test) if holds))


def _runs(value_of: Callable[[str], T]) -> Iterable[tuple[int, int, T]]:
    """Runs of code points with one value, the longest within each stretch: (first, last, value)."""
    for begin, end, alike in _STRETCHES:
        first, current = begin, value_of(chr(begin))
        if not alike:
            for point, value in enumerate(map(value_of, _characters(begin, end)), begin):
                if value != current:
                    yield first, point - 1, current
                    first, current = point, value
        yield first, end, current


@functools.cache
def _characters(first: int, last: int) -> str:
    return np.arange(first, last + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def ignoring_case(chars: CharSet, outer: bool) -> CharSet:
    """What a class becomes under the flag `i`.

    Inner: with the partners that are such one to one, in whatever way case is folded. Outer: with all that any case mapping
    connects, such as the Kelvin sign with k.
    """
    return charset.join(chars, _partners(chars, _case_partners()[outer]))


def _partners(chars: CharSet, table: dict[int, frozenset[int]]) -> CharSet:
    if sum(last - first for first, last in chars) < len(table):
        members = (point for first, last in chars for point in range(first, last + 1) if point in table)
    else:
        members = (point for point in table if charset.holds(chars, point))
    return charset.of(*((other, other) for point in members for other in table[point]))


@functools.cache
def _case_partners() -> tuple[dict[int, frozenset[int]], dict[int, frozenset[int]]]:
    """(strict, loose) partners of each character that has some. Loose ones share a lower, upper or folded form."""
    sharing: dict[str, set[int]] = {}
    for char in _characters_with_case():
        forms = {char, char.lower(), char.upper(), char.casefold()}
        if len(forms) > 1:
            for form in forms:
                sharing.setdefault(form, set()).add(ord(char))
    loose: dict[int, set[int]] = {}
    for points in sharing.values():
        for point in points:
            loose.setdefault(point, set()).update(points - {point})
    strict = {point: others for point, others in loose.items()
              if len(others) == 1 and loose[min(others)] == {point} and _are_a_pair(chr(point), chr(min(others)))}
    strict |= {ord(c): {ord(c.swapcase())} for c in string.ascii_letters}
    return ({point: frozenset(others) for point, others in strict.items() if others},
            {point: frozenset(others) for point, others in loose.items() if others})


def _characters_with_case() -> Iterable[str]:
    """Those of every block of 256 in which some mapping changes something."""
    everything = _characters(0, 0x3FFFF)
    for start in range(0, len(everything), 256):
        block = everything[start:start + 256]
        if not block == block.lower() == block.upper() == block.casefold():
            yield from block


def _are_a_pair(one: str, other: str) -> bool:
    """Whether simple lower casing connects them: what older versions of Unicode connect in no other way, some dialects do not."""
    return one.lower() == other or other.lower() == one
