r"""The terminals that `%import common` knows, as regexes: the names and what they stand for are those of Lark's common library.

Two of them are written so that they end where one expects it: a string at its first bare quote, a C comment at its first */.
"""

from __future__ import annotations

_INT = r"[0-9]+"
_SIGN = r"[+\-]?"
_EXP = rf"[eE]{_SIGN}{_INT}"
_DECIMAL = rf"({_INT}\.({_INT})?|\.{_INT})"
_FLOAT = rf"({_INT}{_EXP}|{_DECIMAL}({_EXP})?)"
_NUMBER = rf"({_FLOAT}|{_INT})"

PATTERNS = {
    "DIGIT": r"[0-9]", "HEXDIGIT": r"[0-9a-fA-F]", "INT": _INT, "SIGNED_INT": _SIGN + _INT, "DECIMAL": _DECIMAL, "_EXP": _EXP,
    "FLOAT": _FLOAT, "SIGNED_FLOAT": _SIGN + _FLOAT, "NUMBER": _NUMBER, "SIGNED_NUMBER": _SIGN + _NUMBER,
    "ESCAPED_STRING": r'"([^"\\\n]|\\[^\n])*"',
    "LCASE_LETTER": r"[a-z]", "UCASE_LETTER": r"[A-Z]", "LETTER": r"[A-Za-z]", "WORD": r"[A-Za-z]+",
    "CNAME": r"[A-Za-z_][A-Za-z0-9_]*",
    "WS_INLINE": r"[ \t]+", "WS": r"[ \t\f\r\n]+", "CR": r"\r", "LF": r"\n", "NEWLINE": r"(\r?\n)+",
    "SH_COMMENT": r"#[^\n]*", "CPP_COMMENT": r"//[^\n]*", "SQL_COMMENT": r"--[^\n]*",
    "C_COMMENT": r"/\*([^*]|\*+[^*/])*\*+/",
}
