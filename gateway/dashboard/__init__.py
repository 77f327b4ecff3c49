"""What the gateway does, live, for a person: `/dashboard`.

    series     the last quarter of an hour, in steps of five seconds
    snapshot   all numbers of one moment, from ledger, engine and series
    view       their text and marks, section by section (charts: as SVG paths; formats: as strings)
    board      the application's one instance of these, and its listeners
    page       the HTML around them; sessions: signing in; routes: the way in
"""

from __future__ import annotations

from gateway.dashboard.routes import end_streams, front_door, router

__all__ = ["end_streams", "front_door", "router"]
