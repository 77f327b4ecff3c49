"""Regexes inside a grammar: what their flags, and inline flags, ask of the one dialect that `grammar.text.regex` reads."""

from __future__ import annotations

import re

_ANY = "[\\u{0}-\\u{10FFFF}]"
_INLINE = re.compile(r"\(\?([a-zA-Z]*)(:|\))")
_KNOWN = frozenset("isu")


class UnknownFlag(ValueError):
    """A flag that would change what the regex matches."""


def spelled_out(pattern: str, flags: str) -> tuple[str, bool]:
    """(pattern, either case): every `.` written as the class that it stands for, and no flags left in it.

    `.` is any character but a newline, and with flag s any character. Raises UnknownFlag.
    """
    _check(flags)
    folded = "i" in flags
    out: list[str] = []
    dot_is_any = ["s" in flags]      # one entry for each open group
    at, in_class = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            escaped = pattern[at:at + 2]
            out.append("/" if escaped == "\\/" else escaped)
            at += 2
            continue
        if in_class or char not in ".[()":
            in_class = in_class and char != "]"
            out.append(char)
        elif char == ".":
            out.append(_ANY if dot_is_any[-1] else "[^\\n]")
        elif char == "[":
            in_class = True
            end = 2 if pattern.startswith("[^", at) else 1
            out.append(pattern[at:at + end])
            at += end - 1
        elif char == ")":
            out.append(char)
            if len(dot_is_any) > 1:
                dot_is_any.pop()
        elif inline := _INLINE.match(pattern, at):
            _check(inline[1])
            folded = folded or _folds(inline, at)
            if inline[2] == ":":
                dot_is_any.append(dot_is_any[-1] or "s" in inline[1])
                out.append("(?:")
            else:
                dot_is_any[-1] = dot_is_any[-1] or "s" in inline[1]
            at = inline.end()
            continue
        else:
            dot_is_any.append(dot_is_any[-1])
            out.append(char)
        at += 1
    return "".join(out), folded


def _check(flags: str) -> None:
    unknown = sorted(set(flags) - _KNOWN)
    if unknown:
        raise UnknownFlag(f"the flag {unknown[0]!r} of a regex is not supported: there are i, s and u")


def _folds(inline: re.Match[str], at: int) -> bool:
    if "i" in inline[1] and (at > 0 or inline[2] == ":"):
        raise UnknownFlag("the flag 'i' holds for a whole regex: write it behind the closing slash")
    return "i" in inline[1]
