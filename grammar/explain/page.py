"""An explanation of a schema as text for a terminal, and as a page of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from grammar.explain.diagram import Rule, characters
from grammar.explain.drawing import END, drawing
from grammar.explain.explanation import Explanation, Place

MOST_LINES = 60         # of one section in a terminal

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --ink-soft: #5d6b7a; --paper: #fff; --accent: #0b6e99; --line: #dde3e9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ee; --ink-soft: #94a3b2; --paper: #14191f; --accent: #5cc3ee; --line: #2c3641; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 76rem;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } p { color: var(--ink-soft); max-width: 46rem; }
table { border-collapse: collapse; }
td, th { border-bottom: 1px solid var(--line); padding: .25rem .8rem .25rem 0; text-align: left; vertical-align: top; }
td { font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; overflow-wrap: normal; }
figure { margin: 0; overflow-x: auto; }
"""


def in_words(told: Explanation, name: str, place: Place | None = None) -> str:
    """What a terminal shows."""
    lines = [f"{name}: {_verdict(told)}", f"compiled in {told.compile_ms:.1f} ms: {_sizes(told)}", ""]
    lines += _section("Parts: places in the schema", ((str(p.number), p.pointer or "the root", p.says) for p in told.parts))
    lines += _section("Shapes: what each place in an answer may be. A place is named by the parts that hold there",
                      ((line.key, shape) for line in told.shapes for shape in line.shapes))
    for rule in told.diagram.rules:
        if rule.drawn:
            lines += _section(f"Rule {rule.number}: {rule.title}, {_count(len(rule.states), 'state')}", _steps(rule))
    hidden = [rule for rule in told.diagram.rules if not rule.drawn]
    if hidden:
        lines += [f"Too large to show: {_listed(f'rule {r.number} ({r.title}, {len(r.states)} states)' for r in hidden)}", ""]
    if told.not_enforced:
        lines += _section("Not enforced", ((n.keyword, n.pointer or "the root", n.reason) for n in told.not_enforced))
    if place is not None:
        lines += _section(_heading(place), _of_place(place))
    return "\n".join(lines).rstrip() + "\n"


def page(told: Explanation, name: str, place: Place | None = None) -> str:
    """A page of HTML that stands alone."""
    sections = [
        ("Parts", "Places in the schema, and what is made of them. Equal ones are one part.",
         _table(("part", "where", "says"), ((str(p.number), p.pointer or "the root", p.says) for p in told.parts))),
        ("Shapes", "What each place in an answer may be, one JSON type each. A place is named by the parts that hold there.",
         _table(("place", "one of"), ((line.key, shape) for line in told.shapes for shape in line.shapes))),
        ("Automaton", "One rule for each shape. A dashed arrow calls a rule; a dot is the end of one; a dashed circle takes "
                      "whitespace; in a double circle the rule may end.", f"<figure>{drawing(told.diagram)}</figure>"),
        ("Not enforced", "" if told.not_enforced else "Everything in this schema is enforced exactly.",
         _table(("keyword", "where", "why"), ((n.keyword, n.pointer, n.reason) for n in told.not_enforced)))]
    if place is not None:
        sections.append((_heading(place), "", _table(("", ""), _of_place(place))))
    body = "".join(f"<h2>{escape(title)}</h2><p>{escape(note)}</p>{content}" for title, note, content in sections)
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(name)}</title><style>{_STYLE}</style>'
            f"<h1>{escape(name)}</h1><p>{escape(_verdict(told))}. Compiled in {told.compile_ms:.1f} ms: {_sizes(told)}.</p>"
            f"{body}</html>\n")


def _verdict(told: Explanation) -> str:
    n = len(told.not_enforced)
    return "answers can be held to this schema" + (f", except for {_count(n, 'keyword')} not enforced" if n else "")


def _sizes(told: Explanation) -> str:
    sizes = told.sizes
    named = ", ".join(_count(sizes[name], name.removesuffix("s")) for name in sizes if name != "bytes")
    return f"{named}, {sizes['bytes'] / 1024:,.1f} KiB of tables"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _listed(texts: Iterable[str]) -> str:
    found = list(texts)
    return ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")


def _steps(rule: Rule) -> Iterable[tuple[str, ...]]:
    for step in rule.steps:
        target = "end" if step.target == END else str(step.target)
        final = "  (may end)" if step.source in rule.finals else ""
        yield f"{step.source} → {target}", f"call {step.label}" if step.call else step.label, f"{step.asks}{final}".strip()


def _heading(place: Place) -> str:
    return f"After {place.read.decode('utf-8', 'backslashreplace')!r}"


def _of_place(place: Place) -> Iterable[tuple[str, str]]:
    if place.refused:
        yield "refused", f"{characters([(place.refused[0], place.refused[0])], raw=True)} may not come here"
    yield from (("alive", frame) for frame in place.frames)
    yield "next", characters(_ranges(place.following), raw=True, most=40) or "nothing"
    yield "may end", "yes" if place.may_end else "no"
    if place.forced:
        yield "forced", repr(place.forced)
    if place.n_tokens >= 0:
        examples = " ".join(repr(token.decode("utf-8", "backslashreplace")) for token in place.tokens)
        yield "tokens", f"{place.n_tokens:,} allowed, for example {examples}" if place.n_tokens else "none allowed"


def _ranges(values: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted numbers as ranges."""
    ranges: list[tuple[int, int]] = []
    for value in values:
        if ranges and ranges[-1][1] + 1 == value:
            ranges[-1] = ranges[-1][0], value
        else:
            ranges.append((value, value))
    return ranges


def _section(title: str, rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A title and aligned rows below it, cut to MOST_LINES."""
    all_rows = list(rows)
    shown = all_rows[:MOST_LINES]
    columns = max(map(len, shown), default=0)
    widths = [min(44, max((len(row[n]) for row in shown if n < len(row)), default=0)) for n in range(columns)]
    lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in shown]
    more = [f"  … and {len(all_rows) - MOST_LINES} more"] if len(all_rows) > MOST_LINES else []
    return [title, *lines, *more, ""]


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header) if any(header) else ""
    return f"<table><tr>{head}</tr>{body}</table>" if body else ""
