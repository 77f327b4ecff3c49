"""Addresses of hosts and mailboxes: RFC 5321 and 6531, 1123, 2673, 4291, and UUIDs of RFC 4122."""

from __future__ import annotations

import functools

from grammar.budget import Budget
from grammar.text import automata, regex
from grammar.text.dfa import Dfa

_OCTET = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
IPV4 = rf"{_OCTET}(\.{_OCTET}){{3}}"
_HEXTET = r"[0-9A-Fa-f]{1,4}"
_GROUP = r"[0-9A-Fa-f]+"
_GROUPS = rf"{{1}}({_GROUP}:){{0}}({_GROUP}:{_GROUP}|[0-9]+\.[0-9.]+)"    # {0}: how many before the last two, {1}: before all
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(\.{_LABEL})*"
_LONGEST_LOCAL_PART = 64    # octets
PLACE = "\U0010FFFF"    # in a regex: where an IPv6 address stands


@functools.cache
def ipv6() -> Dfa:
    """All places of the one ::, with the last 32 bits as IPv4 or not."""
    forms = [_GROUPS.format("{6}", "")]
    for before in range(8):
        head = rf"({_GROUP}(:{_GROUP}){{0,{before - 1}}})?" if before else ""
        after = 7 - before    # at least one group is what :: stands for
        if after >= 2:
            forms.append(head + _GROUPS.format(f"{{0,{after - 2}}}", "::"))
        if after >= 1:
            forms.append(rf"{head}::{_GROUP}")
        forms.append(rf"{head}::")
    return _with_right_groups(forms)


@functools.cache
def ipv6_with_one_group_left_out() -> Dfa:
    """The IPv6 addresses with all eight groups, or with one in place of which :: stands."""
    forms = [_GROUPS.format("{6}", "")]
    for before in range(8):
        head = rf"{_GROUP}(:{_GROUP}){{{before - 1}}}" if before else ""
        after = 7 - before
        forms.append(head + (_GROUPS.format(f"{{{after - 2}}}", "::") if after >= 2 else "::" + _GROUP * after))
    return _with_right_groups(forms)


def _with_right_groups(forms: list[str]) -> Dfa:
    """What is in one of some forms, their groups as they should be: the forms count groups and do not look into them."""
    groups = made(rf"({_HEXTET})?(:({_HEXTET})?)*(:{IPV4})?")
    found = automata.minimised(automata.intersection(made("|".join(forms)), groups, Budget()), Budget())
    assert found is not None
    return found


INNER = {
    "uuid": r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    "ipv4": IPV4,
    "hostname": _HOST,
}
OUTER = {
    "uuid": r"(?s).{8}-.{4}-.{4}-.{4}-.*",        # Python drops braces and reads the digits of every script
    "ipv4": IPV4,
    "hostname": r"[\w\-]{1,63}(\.[\w\-]{1,63})*\.?\n?",   # a final dot is common; \w as Python folds case
    "email": r"(?s).*@.*",
    "idn-email": r"(?s).*@.*",
}

_LITERAL = rf"\[({IPV4}|[Ii][Pp][Vv]6:{PLACE})\]"
_ATEXT = r"A-Za-z0-9!#$%&'*+\-/=?^_`{|}~"
_QUOTED = r'"([ !#-\[\]-~%s]|\\[ -~])*"'


def mailbox(international: bool) -> Dfa:
    """`email`, or `idn-email`: a local part of 64 octets at most, plain or quoted, at a domain or an address literal."""
    more = r"\x80-\u{10FFFE}" if international else ""
    atoms, label = f"[{_ATEXT}{more}]+", _LABEL
    if international:
        label = rf"[A-Za-z0-9{more}]([A-Za-z0-9\-{more}]{{0,61}}[A-Za-z0-9{more}])?"
    local = made(rf"{atoms}(\.{atoms})*|{_QUOTED % more}")
    domain = automata.embedded(made(rf"{label}(\.{label})*|{_LITERAL}"), PLACE, ipv6())
    short = automata.at_most_weight(local, _octets, _LONGEST_LOCAL_PART, Budget())
    assert short is not None
    return automata.separated(short, "@", domain)


def _octets(point: int) -> int:
    """How many octets a character takes in UTF-8."""
    return 1 + (point > 0x7F) + (point > 0x7FF) + (point > 0xFFFF)


def made(pattern: str) -> Dfa:
    """The automaton of a regex that matches something."""
    found = automata.from_regex(regex.parse(pattern), Budget())
    assert found is not None
    return found
