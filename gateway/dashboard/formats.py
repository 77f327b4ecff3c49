"""Numbers as the dashboard writes them.

Unknown is an en dash, never 0; a count of nothing is 0, never a dash. Rounding never turns "almost all" into
"all" nor "hardly any" into "none".
"""

from __future__ import annotations

from datetime import UTC, datetime

UNKNOWN = "–"
SPACE = "\u00a0"                       # unbreakable: a number keeps its unit
NARROW_SPACE = "\u202f"                # the same before a percent sign


def count(value: int | None) -> str:
    """12345 -> "12,345"; from ten million on, three digits and a letter."""
    if value is None:
        return UNKNOWN
    for limit, divisor, letter in ((10_000_000_000, 1e9, "G"), (10_000_000, 1e6, "M")):
        if value >= limit:
            return f"{value / divisor:,.4g}{SPACE}{letter}"
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """A count and its noun: "1 request", "2 requests"."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def percent(share: float | None) -> str:
    """A share in [0, 1] with one decimal; only exactly 0 is "0 %", only exactly 1 is "100 %"."""
    if share is None:
        return UNKNOWN
    if share <= 0 or share >= 1:
        return f"{round(share) * 100}{NARROW_SPACE}%"
    return f"{min(max(share * 100, 0.1), 99.9):.1f}{NARROW_SPACE}%"


def rate(per_second: float | None) -> str:
    """Tokens a second, without the unit."""
    if per_second is None:
        return UNKNOWN
    return f"{per_second:,.1f}" if 0 < per_second < 10 else f"{per_second:,.0f}"


def seconds(value_s: float | None) -> str:
    """A latency with three digits at most: "8.4 ms", "84 ms", "1.24 s", "73 s"."""
    if value_s is None:
        return UNKNOWN
    if value_s < 0.9995:
        digits = 1 if value_s < 0.00995 else 0
        return f"{value_s * 1000:.{digits}f}{SPACE}ms"
    return f"{value_s:.{2 if value_s < 9.995 else 1 if value_s < 99.95 else 0}f}{SPACE}s"


def axis_seconds(value_s: float) -> str:
    """A round latency at an axis, without trailing zeros: "2 s", "1.5 s", "500 ms"."""
    return f"{value_s:g}{SPACE}s" if value_s >= 1 else f"{value_s * 1000:g}{SPACE}ms"


def duration(value_s: float) -> str:
    """How long something has been up, to the minute: text that changes once a minute at most."""
    minutes = int(value_s // 60)
    if minutes < 1:
        return "under a minute"
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days}{SPACE}d {hours}{SPACE}h"
    return f"{hours}{SPACE}h {minutes % 60}{SPACE}min" if hours else f"{minutes}{SPACE}min"


def size(n_bytes: int) -> str:
    """Binary units, one decimal below ten."""
    power = min(max(n_bytes.bit_length() - 1, 0) // 10, 4)
    value = n_bytes / 1024**power
    return f"{value:.{1 if power and value < 9.95 else 0}f}{SPACE}{('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def clock_time(wall_s: float) -> str:
    """Time of day in UTC."""
    return datetime.fromtimestamp(wall_s, UTC).strftime("%H:%M:%S")


def timestamp(wall_s: float) -> str:
    """Date and time in UTC, as `datetime` attributes want it."""
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
