"""Charts as SVG path data: pure functions from steps to strings.

A chart is `WINDOW_S` wide and `HEIGHT` high, whatever its size on the screen: the page stretches it and keeps
strokes at their width. Time runs to the right; y grows downwards, as in SVG.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from statistics import median

from gateway.dashboard.series import STEP_S, WINDOW_S, Step

HEIGHT = 100.0
LONGEST_JOIN_S = 60.0                  # medians further apart are not joined: nothing is known between them

Point = tuple[float, float]


def round_up(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 4, 6, 8 times a power of ten: the top of an axis whose half reads well, too."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next((power * m for m in (1, 1.5, 2, 3, 4, 6, 8, 10) if power * m >= value * (1 - 1e-9)), power * 10)


def token_axis_top(steps: Sequence[Step]) -> float:
    """Never below twenty tokens a second, so that neither the top nor its half is a fraction."""
    return round_up(max((20.0, *(cached + computed for *_, cached, computed in rates(steps)))))


def rates(steps: Iterable[Step]) -> list[tuple[float, float, float, float]]:
    """Each step as (start_s, end_s, cached, computed), the last two in tokens a second."""
    return [
        (s.start_s, s.end_s, s.tokens.cached_tokens / s.length_s, s.tokens.computed_tokens / s.length_s)
        for s in steps
    ]


def stacked_areas(steps: Sequence[Step], end_s: float, top: float) -> tuple[str, str]:
    """(cached, computed): cached tokens a second from the axis up, computed ones on top of them."""
    cached_edge: list[Point] = []
    total_edge: list[Point] = []
    for start_s, stop_s, cached, computed in rates(steps):
        for edge, value in ((cached_edge, cached), (total_edge, cached + computed)):
            y = _y(value, top)
            edge += [(_x(start_s, end_s), y), (_x(stop_s, end_s), y)]
    if not total_edge:
        return "", ""
    floor_edge = [(cached_edge[0][0], HEIGHT), (cached_edge[-1][0], HEIGHT)]
    return _area(cached_edge, floor_edge), _area(total_edge, cached_edge)


def medians(steps: Iterable[Step], *, hits: bool) -> list[Point]:
    """(end_s, median TTFT in seconds) of each step in which such a request finished."""
    pairs = ((step.end_s, step.hit_ttfts_s if hits else step.miss_ttfts_s) for step in steps)
    return [(end_s, median(values)) for end_s, values in pairs if values]


def dots(points: Iterable[Point], end_s: float, top: float) -> str:
    """A stroke of no length at each point: the line's cap draws the mark, so that stretching can't distort it."""
    return "".join(f"M{_n(_x(x, end_s))} {_n(_y(y, top))}h0" for x, y in points)


def joined(points: Iterable[Point], end_s: float, top: float) -> str:
    """A line through the points, broken where they are more than `LONGEST_JOIN_S` apart."""
    path: list[str] = []
    last_x = -WINDOW_S
    for x, y in points:
        verb = "L" if x - last_x <= LONGEST_JOIN_S + STEP_S / 2 and path else "M"
        path.append(f"{verb}{_n(_x(x, end_s))} {_n(_y(y, top))}")
        last_x = x
    return "".join(path)


def _area(upper: Sequence[Point], lower: Sequence[Point]) -> str:
    outline = [*_corners(upper), *reversed(_corners(lower))]
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in outline) + "Z"


def _corners(edge: Sequence[Point]) -> list[Point]:
    """Without the points inside a level run: an idle quarter of an hour is two points."""
    return [
        point
        for i, point in enumerate(edge)
        if i in (0, len(edge) - 1) or not edge[i - 1][1] == point[1] == edge[i + 1][1]
    ]


def _x(at_s: float, end_s: float) -> float:
    return min(max(WINDOW_S - (end_s - at_s), 0.0), WINDOW_S)


def _y(value: float, top: float) -> float:
    return HEIGHT * (1 - min(value / top, 1.0))


def _n(value: float) -> str:
    """One decimal at most: a tenth of a second, a thousandth of the height."""
    tenths = ceil(value * 10 - 0.5)
    return str(tenths // 10) if tenths % 10 == 0 else f"{tenths / 10:.1f}"
