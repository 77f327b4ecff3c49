"""Cuts the text of a grammar into tokens, in Lark's form or in GBNF's."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from grammar.budget import Budget
from grammar.ebnf.syntax import position
from grammar.errors import EbnfError
from grammar.text import charset
from grammar.text.charset import CharSet

Kind = Literal["head", "directive", "name", "number", "string", "regex", "class", "special", "json", "sign", "end"]

_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*"
_HEAD = re.compile(rf"(?P<marks>[?!]*)(?P<name>{_NAME})(?P<priority>\.-?\d+)?(?P<options>\[[^\]\n]*\]|\{{[^}}\n]*\}})?"
                   r"[ \t]*(?P<sign>::=|:(?!:))")
_GBNF = re.compile(rf"^[ \t]*{_NAME}[ \t]*::=", re.MULTILINE)
_BLANK = re.compile(r"(?:[ \t\r\f]+|#[^\n]*|//[^\n]*)+")
_WORD = re.compile(_NAME)
_NUMBER = re.compile(r"\d+")
_SIGN = re.compile(r"->|\.\.|[|()\[\]{}*+?~!,.&=]")
_REGEX = re.compile(r"/((?:[^/\\\n]|\\.)+)/([a-zA-Z]*)")
_SPECIAL = re.compile(r"<\[[^\]\n]*\]>|<[^<>\s][^<>\n]*>")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "b": "\b", "a": "\a", "0": "\0",
            "\\": "\\", '"': '"', "'": "'", "/": "/", "[": "[", "]": "]", "-": "-", "^": "^"}
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True, slots=True)
class Token:
    """`value` is a string's text, a class' characters, a JSON value, a head's match; else the text of the token itself."""

    kind: Kind
    value: Any
    place: int
    flags: str = ""      # behind a string or a regex


def is_gbnf(text: str) -> bool:
    """Whether a grammar is written in GBNF: its rules are defined with ::=."""
    return _GBNF.search(text) is not None


def tokens_of(text: str, gbnf: bool, budget: Budget) -> list[Token]:
    """All tokens, with one of kind "end" behind them. Raises EbnfError."""
    return _Scanner(text, gbnf, budget).tokens()


class _Scanner:
    def __init__(self, text: str, gbnf: bool, budget: Budget) -> None:
        self._text, self._gbnf, self._budget = text, gbnf, budget
        self._at, self._fresh = 0, True      # fresh: nothing but blanks since the line began

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while self._skip_blanks():
            token = self._token()
            self._budget.spend("grammar_symbols")
            found.append(token)
            self._fresh = False
        return [*found, Token("end", "", len(self._text))]

    def _skip_blanks(self) -> bool:
        """Move to the next token; False where there is none."""
        while self._at < len(self._text):
            if self._text[self._at] == "\n":
                self._at, self._fresh = self._at + 1, True
            elif blank := _BLANK.match(self._text, self._at):
                self._at = blank.end()
            else:
                return True
        return False

    def _token(self) -> Token:
        place, char = self._at, self._text[self._at]
        if self._fresh and (head := _HEAD.match(self._text, place)):
            return self._taken("head", head, head)
        if char == "%":
            return self._percent(place)
        if char == '"' or (char == "'" and self._gbnf):
            return self._string(place, char)
        if char == "[" and self._gbnf:
            return Token("class", self._class(), place)
        if char == "/" and (regex := _REGEX.match(self._text, place)):
            return self._taken("regex", regex, regex[1], regex[2])
        if char == "<" and (special := _SPECIAL.match(self._text, place)):
            return self._taken("special", special, special[0][1:-1])
        for kind, form in _PLAIN:
            if match := form.match(self._text, place):
                return self._taken(kind, match, match[0])
        raise self._error(f"unexpected {char!r}", place)

    def _taken(self, kind: Kind, match: re.Match[str], value: Any, flags: str = "") -> Token:
        self._at = match.end()
        return Token(kind, value, match.start(), flags)

    def _percent(self, place: int) -> Token:
        word = _WORD.match(self._text, place + 1)
        if word is None:
            raise self._error("expected the name of a directive behind %", place)
        self._at = word.end()
        if word[0] != "json":
            return Token("directive", word[0], place)
        return Token("json", self.json_value(), place)

    def json_value(self) -> Any:
        """The JSON value that begins at the next place that is not blank."""
        self._skip_blanks()
        try:
            value, self._at = json.JSONDecoder().raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise self._error(f"expected a JSON value: {error.msg}", error.pos) from None
        except RecursionError:
            raise self._error("a JSON value is nested too deeply", self._at) from None
        return value

    def _string(self, place: int, quote: str) -> Token:
        chars: list[str] = []
        self._at += 1
        while True:
            char = self._text[self._at:self._at + 1]
            if char in ("", "\n"):
                raise self._error(f"expected {quote} at the end of the string", place)
            self._at += 1
            if char == quote:
                break
            chars.append(self._escape() if char == "\\" else char)
        folded = not self._gbnf and self._text.startswith("i", self._at) and not self._text[self._at + 1:self._at + 2].isalnum()
        self._at += folded
        text = "".join(chars)
        if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
            text = self._paired(text, place)
        return Token("string", text, place, "i" if folded else "")

    def _paired(self, text: str, place: int) -> str:
        """Surrogates written as two escapes are one character."""
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._error("half a surrogate pair is no character", place) from None

    def _escape(self) -> str:
        """The character of an escape whose backslash is read."""
        char = self._text[self._at:self._at + 1]
        self._at += 1
        if char in _HEX_ESCAPES:
            digits = self._text[self._at:self._at + _HEX_ESCAPES[char]]
            if len(digits) < _HEX_ESCAPES[char] or not re.fullmatch("[0-9a-fA-F]+", digits) or int(digits, 16) > 0x10FFFF:
                raise self._error(f"expected {_HEX_ESCAPES[char]} hexadecimal digits of a character", self._at)
            self._at += len(digits)
            return chr(int(digits, 16))
        if char not in _ESCAPES or not char:
            raise self._error(f"unknown escape \\{char}", self._at - 2)
        return _ESCAPES[char]

    def _class(self) -> CharSet:
        """[...] of GBNF."""
        place = self._at
        self._at += 1
        negated = self._text.startswith("^", self._at)
        self._at += negated
        members: list[CharSet] = []
        while not self._text.startswith("]", self._at):
            low = high = self._member(place)
            if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
                self._at += 1
                high = self._member(place)
            if low > high:
                raise self._error("a range in the wrong order", place)
            self._budget.spend("grammar_symbols")
            members.append(charset.of((ord(low), ord(high))))
        self._at += 1
        chars = charset.join(*members)
        return charset.complement(chars) if negated else chars

    def _member(self, place: int) -> str:
        char = self._text[self._at:self._at + 1]
        if char in ("", "\n"):
            raise self._error("expected ] at the end of the class", place)
        self._at += 1
        return self._escape() if char == "\\" else char

    def _error(self, reason: str, place: int) -> EbnfError:
        return EbnfError(reason, *position(self._text, place))


_PLAIN: tuple[tuple[Kind, re.Pattern[str]], ...] = (("name", _WORD), ("number", _NUMBER), ("sign", _SIGN))
