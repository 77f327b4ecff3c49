"""The page's text and marks, made from a snapshot.

The server writes every number once, here, for the first paint and for each live update alike: the browser only
puts the strings where they belong. A view is a dictionary of sections; each section is

    text         name -> string                     shown by elements with data-text="name"
    attributes   name -> {attribute: string|None}   set on elements with data-attributes="name"; None removes it
    lists        name -> rows                       each row {"key", "text", "attributes"}, shown by data-list="name"
    points       [[seconds before the end, cached/s, computed/s, hit TTFT, miss TTFT], ...]   only the charts'

and goes to a browser again only when it changed. All of it is plain text: whoever shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from gateway.dashboard import charts, formats
from gateway.dashboard.series import Step
from gateway.dashboard.snapshot import Percentiles, Snapshot, answered
from gateway.ledger import RequestRecord
from runtime.protocol import PoolStats

Section = dict[str, Any]
Row = dict[str, Any]

SHOWN_REQUESTS = 50
SHOWN_NAME_CHARS = 64
STATE_WORDS = {"ready": "Ready", "starting": "Starting", "restarting": "Restarting", "asleep": "Asleep", "waking": "Waking",
               "failed": "Failed"}


def view(snapshot: Snapshot) -> dict[str, Section]:
    """All sections of the page."""
    return {
        "cache": _cache(snapshot),
        "latency": _latency(snapshot),
        "engine": _engine(snapshot),
        "load": _load(snapshot),
        "tiers": _tiers(snapshot),
        "charts": _charts(snapshot),
        "requests": _requests(snapshot),
    }


def _cache(snapshot: Snapshot) -> Section:
    tokens, requests = snapshot.tokens, snapshot.requests
    return {
        "text": {
            "token_hit_rate": formats.percent(tokens.rate),
            "token_hit_of": f"{formats.count(tokens.part)} of {formats.counted(tokens.whole, 'prompt token')}",
            "cached_tokens": formats.count(tokens.part),
            "request_hit_rate": formats.percent(requests.rate),
            "request_hit_of": f"{formats.count(requests.part)} of {formats.counted(requests.whole, 'request')}",
        },
        "attributes": {"token_hit_bar": _width(tokens.rate)},
    }


def _latency(snapshot: Snapshot) -> Section:
    hit, miss = snapshot.hit_ttft, snapshot.miss_ttft
    ratio = miss.p50_s / hit.p50_s if hit.p50_s and miss.p50_s else None
    return {
        "text": {
            **_percentile_texts("hit", hit),
            **_percentile_texts("miss", miss),
            "ttft_ratio": formats.UNKNOWN if ratio is None else f"{ratio:.1f}×",
        }
    }


def _percentile_texts(kind: str, values: Percentiles) -> dict[str, str]:
    return {
        f"{kind}_n": formats.count(values.n),
        f"{kind}_p50": formats.seconds(values.p50_s),
        f"{kind}_p99": formats.seconds(values.p99_s),
    }


def _engine(snapshot: Snapshot) -> Section:
    model = snapshot.model
    state = STATE_WORDS.get(snapshot.engine_state, snapshot.engine_state)
    return {
        "text": {
            "engine_state": state,
            "model": _short(model.name) if model else formats.UNKNOWN,
            "kernels": model.kernels if model else formats.UNKNOWN,
            "device": model.device if model else formats.UNKNOWN,
            "context": formats.count(model.context_tokens) if model else formats.UNKNOWN,
            "uptime": formats.duration(snapshot.uptime_s),
        },
        "attributes": {
            "engine_state": {"data-state": snapshot.engine_state},
            "model": {"title": model.name if model else None},
        },
    }


def _load(snapshot: Snapshot) -> Section:
    stats = snapshot.stats
    prompt_rate, generated_rate = snapshot.rates or (None, None)
    running, waiting = formats.count(stats.running), formats.count(stats.waiting)
    return {
        "text": {
            "running": running,
            "waiting": waiting,
            "prompt_rate": formats.rate(prompt_rate),
            "generated_rate": formats.rate(generated_rate),
            "forced": formats.count(stats.forced_tokens),
            "guessed_right": formats.count(stats.guessed_right_tokens),
            "preemptions": formats.count(stats.preemptions),
            "recomputed": formats.count(stats.recomputed_tokens),
            "summary": f"Token hit rate {formats.percent(snapshot.tokens.rate)}. {running} running, {waiting} waiting.",
        }
    }


def _tiers(snapshot: Snapshot) -> Section:
    stats = snapshot.stats
    return {
        "text": {
            "evicted": formats.count(stats.evicted_blocks),
            "expired": formats.count(stats.expired_blocks),
        },
        "attributes": {"no_tiers": _hidden(bool(stats.pools))},
        "lists": {"tiers": [_tier(pool) for pool in stats.pools]},
    }


def _tier(pool: PoolStats) -> Row:
    used = _share(pool.blocks_used, pool.blocks_total)
    cached = _share(pool.blocks_cached, pool.blocks_total)
    label = f"{pool.tier}: {pool.blocks_used} used, {pool.blocks_cached} cached, {pool.blocks_free} free blocks"
    return {
        "key": pool.tier,
        "text": {
            "tier": pool.tier,
            "full": f"{formats.percent(_share(pool.blocks_used + pool.blocks_cached, pool.blocks_total))} full",
            "size": (
                f"{formats.counted(pool.blocks_total, 'block')} of {pool.block_tokens} tokens, "
                f"{formats.size(pool.blocks_total * pool.block_bytes)}"
            ),
            "used": formats.count(pool.blocks_used),
            "cached": formats.count(pool.blocks_cached),
            "free": formats.count(pool.blocks_free),
        },
        "attributes": {
            "bar": {"aria-label": label},
            "used": _width(used),
            "cached": {"x": _percent_number(used), **_width(cached)},
        },
    }


def _charts(snapshot: Snapshot) -> Section:
    steps, end_s = snapshot.steps, snapshot.steps_end_s
    token_top = charts.token_axis_top(steps)
    hits, misses = charts.medians(steps, hits=True), charts.medians(steps, hits=False)
    ttft_top = charts.round_up(max((y for _, y in hits + misses), default=0))
    cached_area, computed_area = charts.stacked_areas(steps, end_s, token_top)
    return {
        "text": {
            "token_top": formats.count(round(token_top)),
            "token_middle": formats.count(round(token_top / 2)),
            "ttft_top": formats.axis_seconds(ttft_top),
            "ttft_middle": formats.axis_seconds(ttft_top / 2),
            "token_chart": _token_sentence(steps),
            "ttft_chart": _ttft_sentence(steps),
        },
        "attributes": {
            "cached_area": {"d": cached_area},
            "computed_area": {"d": computed_area},
            "hit_line": {"d": charts.joined(hits, end_s, ttft_top)},
            "hit_dots": {"d": charts.dots(hits, end_s, ttft_top)},
            "miss_line": {"d": charts.joined(misses, end_s, ttft_top)},
            "miss_dots": {"d": charts.dots(misses, end_s, ttft_top)},
        },
        "lists": {
            "token_minutes": [_token_minute(ago, chosen) for ago, chosen in snapshot.minutes],
            "ttft_minutes": [_ttft_minute(ago, chosen) for ago, chosen in snapshot.minutes],
        },
        "points": [_point(step, end_s) for step in steps],
    }


def _token_sentence(steps: Sequence[Step]) -> str:
    cached = sum(step.tokens.cached_tokens for step in steps)
    computed = sum(step.tokens.computed_tokens for step in steps)
    return f"Last 15 minutes: {formats.count(cached)} prompt tokens from cache, {formats.count(computed)} computed."


def _ttft_sentence(steps: Sequence[Step]) -> str:
    hits = sum(len(step.hit_ttfts_s) for step in steps)
    misses = sum(len(step.miss_ttfts_s) for step in steps)
    return f"Last 15 minutes: {formats.counted(hits, 'hit')}, {formats.count(misses)} {'miss' if misses == 1 else 'misses'}."


def _token_minute(ago: int, steps: Sequence[Step]) -> Row:
    return _minute(
        ago,
        cached=formats.count(sum(step.tokens.cached_tokens for step in steps)),
        computed=formats.count(sum(step.tokens.computed_tokens for step in steps)),
        generated=formats.count(sum(step.tokens.generated_tokens for step in steps)),
    )


def _ttft_minute(ago: int, steps: Sequence[Step]) -> Row:
    hits = [value for step in steps for value in step.hit_ttfts_s]
    misses = [value for step in steps for value in step.miss_ttfts_s]
    return _minute(
        ago,
        hits=formats.count(len(hits)),
        hit_median=formats.seconds(median(hits) if hits else None),
        misses=formats.count(len(misses)),
        miss_median=formats.seconds(median(misses) if misses else None),
    )


def _minute(ago: int, **cells: str) -> Row:
    return {"key": str(ago), "text": {"minute": f"{ago + 1} to {ago} min ago", **cells}, "attributes": {}}


def _point(step: Step, end_s: float) -> list[float | None]:
    return [
        round(end_s - step.end_s, 1),
        round(step.tokens.cached_tokens / step.length_s, 1),
        round(step.tokens.computed_tokens / step.length_s, 1),
        round(median(step.hit_ttfts_s), 4) if step.hit_ttfts_s else None,
        round(median(step.miss_ttfts_s), 4) if step.miss_ttfts_s else None,
    ]


def _requests(snapshot: Snapshot) -> Section:
    shown = snapshot.recent[:SHOWN_REQUESTS]
    unanswered = f", {formats.count(snapshot.unanswered)} of them failed or cancelled" if snapshot.unanswered else ""
    listed = f". Shown: the last {len(shown)}" if shown else ""
    return {
        "text": {"request_count": f"{formats.counted(snapshot.ended, 'request')} so far{unanswered}{listed}"},
        "attributes": {"empty": _hidden(bool(shown)), "filled": _hidden(not shown)},
        "lists": {"requests": [_request(record) for record in shown]},
    }


def _request(record: RequestRecord) -> Row:
    # The engine counts a prompt when it takes it in: of a request that ended before, nothing is known.
    cached = _share(record.cached_tokens, record.prompt_tokens)
    of = f"{formats.count(record.cached_tokens)} of {formats.counted(record.prompt_tokens, 'prompt token')}"
    return {
        "key": record.request_id,
        "text": {
            "time": formats.clock_time(record.started_s),
            "endpoint": record.endpoint,
            "tenant": _short(record.tenant),
            "prompt": formats.count(record.prompt_tokens or None),
            "cached": formats.percent(cached),
            "output": formats.count(record.completion_tokens),
            "ttft": formats.seconds(record.ttft_s),
            "total": formats.seconds(record.total_s),
            "schema": "yes" if record.schema else "no",
            "finish": record.finish if answered(record) else f"✕ {record.error or record.finish}",
        },
        "attributes": {
            "time": {"datetime": formats.timestamp(record.started_s)},
            "tenant": {"title": record.tenant},
            "cached": {"title": of},
            "cached_bar": _width(cached),
            "finish": {"data-kind": "answer" if answered(record) else "error", "title": f"HTTP {record.status}"},
        },
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percent_number(share: float | None) -> str:
    return f"{(share or 0) * 100:.2f}"


def _width(share: float | None) -> dict[str, str | None]:
    return {"width": _percent_number(share)}


def _hidden(hidden: bool) -> dict[str, str | None]:
    return {"hidden": "" if hidden else None}


def _short(name: str) -> str:
    return name if len(name) <= SHOWN_NAME_CHARS else f"{name[: SHOWN_NAME_CHARS - 1]}…"
