"""What a run of `bench.masks` says: figures of each engine, Markdown tables, and where they stand in the documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.masks_worst import Check

Rows = Mapping[str, dict[str, Any]]     # case -> what one engine did with it


def figures(rows: Rows) -> dict[str, float]:
    """The figures of one engine over one set of cases. Times are NaN where nothing was measured."""
    instances = [i for row in rows.values() for i in row.get("instances", ())]
    first = [row["first_mask_ms"] for row in rows.values() if "first_mask_ms" in row]
    steps = [step for i in instances for step in i["steps_us"]]
    valid, invalid = [i for i in instances if i["valid"]], [i for i in instances if not i["valid"]]
    outcomes = [row["outcome"] for row in rows.values()]
    return {
        "schemas": len(rows), "compiled": len(first), "refused": outcomes.count("refused"),
        "failed": sum(o not in ("ok", "refused") for o in outcomes),
        "schemas_right": sum(_all_right(row) for row in rows.values()),
        "valid": len(valid), "valid_refused": sum(i["state"] != "accepted" for i in valid),
        "invalid": len(invalid), "invalid_admitted": sum(i["state"] == "accepted" for i in invalid),
        "masks": len(steps), "step_us_mean": float(np.mean(steps)) if steps else float("nan"),
        **{f"step_us_p{name}": _percentile(steps, p) for name, p in PERCENTILES},
        **{f"first_mask_ms_p{name}": _percentile(first, p) for name, p in (("50", 50), ("99", 99), ("100", 100))},
    }


PERCENTILES = (("50", 50.0), ("90", 90.0), ("99", 99.0), ("999", 99.9), ("100", 100.0))
LINES = (
    ("schemas", "schemas"), ("refused by name", "refused"), ("failed or out of time", "failed"),
    ("schemas with every verdict right", "schemas_right"), ("valid refused", "valid_refused"),
    ("invalid admitted", "invalid_admitted"),
    ("time to first mask p50 (ms)", "first_mask_ms_p50"), ("p99 (ms)", "first_mask_ms_p99"), ("most (ms)", "first_mask_ms_p100"),
    ("time between masks mean (µs)", "step_us_mean"), ("p50 (µs)", "step_us_p50"), ("p90 (µs)", "step_us_p90"),
    ("p99 (µs)", "step_us_p99"), ("p99.9 (µs)", "step_us_p999"), ("most (µs)", "step_us_p100"), ("masks", "masks"))
OF = {"valid_refused": "valid", "invalid_admitted": "invalid"}


def table(of_engine: Mapping[str, dict[str, float]]) -> str:
    """One Markdown table, an engine a column."""
    lines = [f"| | {' | '.join(of_engine)} |", "|:--|" + "--:|" * len(of_engine)]
    for label, name in LINES:
        cells = [_shown(told[name]) + (f" of {told[OF[name]]:,}" if name in OF else "") for told in of_engine.values()]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def worst_table(of_engine: Mapping[str, Sequence[Check]]) -> str:
    """For each worst case and engine: compile time, slowest step, and what is not as it should be. Ours says why it refuses."""
    lines = [f"| | {' | '.join(of_engine)} |", "|:--|" + ":--|" * len(of_engine)]
    for checks in zip(*of_engine.values(), strict=True):
        cells = [f"{check[1]:,.1f} ms; {_outcome(check, with_reason=name.startswith('ours'))}"
                 for name, check in zip(of_engine, checks, strict=True)]
        lines.append(f"| {checks[0][0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _outcome(check: Check, with_reason: bool) -> str:
    _, _, step_ms, verdict = check
    step = f"step {step_ms:.3f} ms" if step_ms else "no step"
    if verdict == "ok":
        return step
    told = verdict if with_reason else ":".join(verdict.split(":")[:2 if verdict.startswith("FAULT") else 1])
    told = told.replace("|", "\\|").replace("\n", " ")[:110]
    return told if verdict.startswith("refused") else f"{step}; {told}"


def write_section(page: Path, name: str, text: str) -> None:
    """Put `text` between the marks of a section of a Markdown page; the section comes last where there is none of that name."""
    begin, end = f"<!-- bench.masks: {name} -->", "<!-- end -->"
    section = f"{begin}\n\n{text.strip()}\n\n{end}"
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    added = f"{before.rstrip()}\n\n{section}\n".lstrip()
    after = pattern.sub(lambda _: section, before) if pattern.search(before) else added
    page.write_text(after, encoding="utf-8")


def _all_right(row: dict[str, Any]) -> bool:
    return row["outcome"] == "ok" and all((i["state"] == "accepted") == i["valid"] for i in row["instances"])


def _percentile(values: Sequence[float], percent: float) -> float:
    return float(np.percentile(values, percent)) if values else float("nan")


def _shown(value: float) -> str:
    if value != value:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
