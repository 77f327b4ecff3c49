"""The formats that are enforced, each as a regex over the whole string.

A format here is never wider than its RFC and never wider than what common validators accept. `hostname` has a length too.
"""

from __future__ import annotations

import functools

from grammar import automata, regex
from grammar.automata import Dfa
from grammar.budget import Budget

_DAY_31 = r"(0[13578]|1[02])-(0[1-9]|[12]\d|3[01])"
_DAY_30 = r"(0[469]|11)-(0[1-9]|[12]\d|30)"
_DAY_28 = r"02-(0[1-9]|1\d|2[0-8])"
_LEAP_OF_CENTURY = r"(0[48]|[2468][048]|[13579][26])"
_YEAR = r"(\d{3}[1-9]|\d{2}[1-9]0|\d[1-9]00|[1-9]000)"    # Python knows no year 0000
_LEAP_YEAR = rf"(\d\d{_LEAP_OF_CENTURY}|{_LEAP_OF_CENTURY}00)"
_DATE = rf"({_YEAR}-({_DAY_31}|{_DAY_30}|{_DAY_28})|{_LEAP_YEAR}-02-29)"
_TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,18})?([Zz]|[+\-]([01]\d|2[0-3]):[0-5]\d)"   # no leap seconds

_OCTET = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_OCTET}(\.{_OCTET}){{3}}"
_HEXTET = r"[0-9A-Fa-f]{1,4}"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_LOCAL = r"[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~]+"

_PCHAR = r"([A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})"
_USER = r"([A-Za-z0-9\-._~!$&'()*+,;=:]|%[0-9A-Fa-f]{2})*"
_NAME = r"([A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*"


def _ipv6() -> str:
    """All places of the one ::, with the last 32 bits as IPv4 or not."""
    tail = rf"({_HEXTET}:{_HEXTET}|{_IPV4})"
    forms = [rf"({_HEXTET}:){{6}}{tail}"]
    for before in range(8):
        head = rf"({_HEXTET}(:{_HEXTET}){{0,{before - 1}}})?" if before else ""
        after = 7 - before    # at least one group is what :: stands for
        if after >= 2:
            forms.append(rf"{head}::({_HEXTET}:){{0,{after - 2}}}{tail}")
        if after >= 1:
            forms.append(rf"{head}::{_HEXTET}")
        forms.append(rf"{head}::")
    return "|".join(f"({form})" for form in forms)


_IPV6 = _ipv6()

_WHOLE = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}[Tt]{_TIME}",
    "uuid": r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "email": rf"{_LOCAL}(\.{_LOCAL})*@{_LABEL}(\.{_LABEL})*",
    "hostname": rf"{_LABEL}(\.{_LABEL})*",
    "uri": rf"[A-Za-z][A-Za-z0-9+\-.]*:(//({_USER}@)?({_NAME}|\[({_IPV6})\])(:\d*)?(/{_PCHAR}*)*"
           rf"|/({_PCHAR}+(/{_PCHAR}*)*)?|{_PCHAR}+(/{_PCHAR}*)*|)(\?({_PCHAR}|[/?])*)?(#({_PCHAR}|[/?])*)?",
}

LONGEST = {"hostname": 253, "email": 254}   # characters

ENFORCED = frozenset(_WHOLE)
# Formats with a meaning that is not enforced. Any other name is an annotation, as the standard has it.
REFUSED = frozenset({
    "duration", "idn-email", "idn-hostname", "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer",
    "relative-json-pointer", "regex", "color"})


@functools.cache
def automaton(name: str) -> Dfa:
    """The strings of one enforced format (apart from `LONGEST`)."""
    found = automata.from_regex(regex.parse(_WHOLE[name]), Budget())
    assert found is not None
    return found
