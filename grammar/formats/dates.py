"""Dates and times: RFC 3339, and its appendix A for durations.

Python's validators know no year 0000 and no leap seconds, so neither is written; both are excluded by a negation.
"""

from __future__ import annotations

_DAY_31 = r"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_DAY_30 = r"(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_DAY_28 = r"02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP_OF_CENTURY = r"(0[48]|[2468][048]|[13579][26])"
_YEAR = r"([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP_YEAR = rf"([0-9][0-9]{_LEAP_OF_CENTURY}|{_LEAP_OF_CENTURY}00)"
_DATE = rf"({_YEAR}-({_DAY_31}|{_DAY_30}|{_DAY_28})|{_LEAP_YEAR}-02-29)"
_ANY_DATE = rf"({_DATE}|0000-({_DAY_31}|{_DAY_30}|{_DAY_28}|02-29))"

_OFFSET = r"([Zz]|[+\-]([01][0-9]|2[0-3]):[0-5][0-9])"
_TIME = rf"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{{1,18}})?{_OFFSET}"
_ANY_TIME = rf"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?{_OFFSET}\n?"
_LOCAL_TIME = r"(2[0-3]|[01]\d|\d):([0-5]\d|\d):(6[01]|[0-5]\d|\d)"    # of draft 3, which some validators still read

_SECONDS = r"[0-9]+S"
_MINUTES = rf"[0-9]+M({_SECONDS})?"
_HOURS = rf"[0-9]+H({_MINUTES})?"
_CLOCK = rf"T({_HOURS}|{_MINUTES}|{_SECONDS})"
_DAYS = r"[0-9]+D"
_MONTHS = rf"[0-9]+M({_DAYS})?"
_YEARS = rf"[0-9]+Y({_MONTHS})?"

INNER = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}[Tt]{_TIME}",
    "duration": rf"P(({_DAYS}|{_MONTHS}|{_YEARS})({_CLOCK})?|{_CLOCK}|[0-9]+W)",
}
OUTER = {
    "date": _ANY_DATE,
    "time": rf"{_ANY_TIME}|{_LOCAL_TIME}",
    "date-time": rf"{_ANY_DATE}[Tt ]{_ANY_TIME}",
    "duration": r"[+\-]?P(?s:.)*[DMYWHS]",     # ISO 8601 has signs, fractions and an alternative form
}
