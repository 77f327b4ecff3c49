"""Identifiers and pointers: RFC 3986, 3987, 6570 and 6901, and relative JSON pointers.

IRIs are written in the characters of the first plane, and an IPv6 host in them with at most one group left out: common
validators read no more.
"""

from __future__ import annotations

from collections.abc import Callable

from grammar.formats.addresses import PLACE, ipv6, ipv6_with_one_group_left_out, made
from grammar.text import automata
from grammar.text.dfa import Dfa

_SUB_DELIMS = r"!$&'()*+,;="
_UNRESERVED = r"A-Za-z0-9\-._~"
_PERCENT = r"%[0-9A-Fa-f]{2}"
_SCHEME = r"[A-Za-z][A-Za-z0-9+\-.]*"
_UCSCHAR = r"\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF"
_PRIVATE = r"\uE000-\uF8FF"


def _identifiers(more: str, private: str) -> tuple[str, str]:
    """(identifier, relative reference) with `more` unreserved characters, and `private` ones in a query."""
    plain = _UNRESERVED + more + _SUB_DELIMS
    pchar = rf"([{plain}:@]|{_PERCENT})"
    host = rf"(([{plain}]|{_PERCENT})*|\[({PLACE}|v[0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB_DELIMS}:]+)\])"
    authority = rf"//(([{plain}:]|{_PERCENT})*@)?{host}(:[0-9]*)?(/{pchar}*)*"
    absolute = rf"/({pchar}+(/{pchar}*)*)?"
    behind = rf"(\?([{plain}{private}:@/?]|{_PERCENT})*)?(#([{plain}:@/?]|{_PERCENT})*)?"
    rootless = rf"{pchar}+(/{pchar}*)*"
    no_scheme = rf"([{plain}@]|{_PERCENT})+(/{pchar}*)*"
    return rf"{_SCHEME}:({authority}|{absolute}|{rootless}|){behind}", rf"({authority}|{absolute}|{no_scheme}|){behind}"


_URI, _RELATIVE = _identifiers("", "")
_IRI, _IRI_RELATIVE = _identifiers(_UCSCHAR, _PRIVATE)
_URI_CHARS = rf"[{_UNRESERVED}{_SUB_DELIMS}:/?#\[\]@%]*\n?"
_IRI_CHARS = r'[^\0-\x09\x0b-\x20"<>\\^`{|}\x7f]*'

_LITERAL = r"!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~" + _UCSCHAR + r"\u{10000}-\u{EFFFD}\u{F0000}-\u{10FFFD}" + _PRIVATE
_VARIABLE_CHAR = rf"([A-Za-z0-9_]|{_PERCENT})"
_VARIABLE = rf"[A-Za-z0-9_](\.?{_VARIABLE_CHAR})*(:[1-9][0-9]{{0,2}}|\*)?"

_POINTER = r"(/([^/~]|~[01])*)*"

def _with_hosts(pattern: str, addresses: Callable[[], Dfa]) -> Dfa:
    return automata.embedded(made(pattern), PLACE, addresses())


BUILT = {
    "uri": lambda: _with_hosts(_URI, ipv6),
    "uri-reference": lambda: _with_hosts(f"{_URI}|{_RELATIVE}", ipv6),
    "iri": lambda: _with_hosts(_IRI, ipv6_with_one_group_left_out),
    "iri-reference": lambda: _with_hosts(f"{_IRI}|{_IRI_RELATIVE}", ipv6_with_one_group_left_out),
}
INNER = {
    "uri-template": rf"([{_LITERAL}]|{_PERCENT}|\{{[+#./;?&]?{_VARIABLE}(,{_VARIABLE})*\}})*",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(0|[1-9]+0?)(#|{_POINTER})",     # no digit behind a 0: a common validator reads none
}
OUTER = {
    "uri": rf"{_SCHEME}:{_URI_CHARS}",
    "uri-reference": _URI_CHARS,
    "iri": rf"{_SCHEME}:{_IRI_CHARS}",
    "iri-reference": _IRI_CHARS,
    "uri-template": r"([^{}]|\{[^}]+\})*",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"\d+(#|{_POINTER})",
}
