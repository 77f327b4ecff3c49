"""Drawings of a machine's rules: as SVG, laid out here, or in the DOT language.

    svg = drawing(diagram(tables))

A rule is drawn in layers from left to right (after Sugiyama): a state stands one layer behind the furthest state that leads to
it, steps that lead back aside; within a layer, states come in the order of the states that they hang on (barycenters), which
keeps steps from crossing. A step over several layers goes through a point in each; a step back runs below all states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from grammar.explain.diagram import Diagram, Rule, Step
from kernels.pushdown_tables import POP

RADIUS, ROW, MARGIN, TITLE, LOOP = 13.0, 54.0, 16.0, 26.0, 34.0
LANE = 22.0                                         # between steps that lead back, below all states
CHAR, LEAST_GAP, MOST_GAP = 6.3, 64.0, 380.0        # width of a letter of a label; space between two layers
SWEEPS = 6
END = POP                                           # the place where a rule ends, drawn as a dot
MOST_LABEL = 44                                     # letters

_STYLE = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:var(--ink,#1c2733)}"
    ".t{font-weight:600;font-size:12.5px}.q{fill:var(--ink-soft,#5d6b7a);font-size:9.5px}.n{text-anchor:middle;font-size:9.5px}"
    ".l{text-anchor:middle;paint-order:stroke;stroke:var(--paper,#fff);stroke-width:4px;stroke-linejoin:round}"
    ".s{fill:var(--paper,#fff);stroke:var(--ink,#1c2733);stroke-width:1.3}.w{stroke-dasharray:3 2}"
    ".e{fill:var(--ink,#1c2733)}.p{fill:none;stroke:var(--ink-soft,#5d6b7a);stroke-width:1.2}"
    ".c{stroke:var(--accent,#0b6e99);stroke-dasharray:5 3}.k{fill:var(--accent,#0b6e99)}.b{fill:var(--paper,#fff)}")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where states stand: x and y of each. By number of a step: its points in between, where it spans layers, and how far down
    it goes, where it leads back."""

    at: dict[int, tuple[float, float]]
    bends: dict[int, list[tuple[float, float]]]
    lanes: dict[int, float]
    width: float
    height: float


def drawing(diagram: Diagram) -> str:
    """An SVG image of the rules, one below the other. It stands alone, or in a page that sets --ink, --paper, --accent."""
    parts, y, width = [], MARGIN, 360.0
    last = max((n for n, rule in enumerate(diagram.rules) if rule.drawn), default=-1)
    for rule in diagram.rules[:last + 1]:
        body, rule_width, rule_height = _rule(rule)
        parts.append(f'<g transform="translate({MARGIN:g} {y:g})">{body}</g>')
        y, width = y + rule_height + TITLE, max(width, rule_width)
    n_left_out = len(diagram.rules) - last - 1
    if n_left_out:
        note = f"{n_left_out} more rule{'s are' if n_left_out > 1 else ' is'} not drawn."
        parts.append(f'<text class="q" x="{MARGIN:g}" y="{y + 4:g}">{note}</text>')
        y += TITLE
    width += 2 * MARGIN
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y:.0f}" width="{width:.0f}" height="{y:.0f}" '
            f'role="img" aria-label="Automaton with {len(diagram.rules)} rules"><style>{_STYLE}</style>'
            '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path class="e" d="M0 0 8 4 0 8z"/></marker></defs>'
            f'<rect class="b" width="100%" height="100%"/>{"".join(parts)}</svg>\n')


def dot(diagram: Diagram) -> str:
    """The same rules in the language of Graphviz."""
    lines = ["digraph grammar {", "  rankdir=LR; node [shape=circle fontsize=10]; edge [fontsize=10];"]
    for rule in diagram.rules:
        lines.append(f"  subgraph cluster_{rule.number} {{ label={_quoted(_title(rule))};")
        for state in rule.drawn:
            lines.append(f"    s{state} [label={state}{' shape=doublecircle' if state in rule.finals else ''}];")
        if any(step.target == END for step in rule.steps):
            lines.append(f'    e{rule.number} [shape=point label=""];')
        for step in rule.steps:
            target = f"e{rule.number}" if step.target == END else f"s{step.target}"
            label = "\n".join(text for text in (step.label, step.asks) if text)
            lines.append(f"    s{step.source} -> {target} [label={_quoted(label)}{' style=dashed' if step.call else ''}];")
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _title(rule: Rule) -> str:
    return f"rule {rule.number}: {rule.title}"


def _rule(rule: Rule) -> tuple[str, float, float]:
    """(SVG, width, height) of one rule."""
    size = f"{len(rule.states)} state{'s' if len(rule.states) != 1 else ''}"
    note = size if rule.drawn else f"{size}, too many to draw"
    title = (f'<text class="t" y="10">{escape(_title(rule))}'
             f'<tspan class="q" dx="8">{note}</tspan></text>')
    if not rule.drawn:
        return title, CHAR * 60, 14.0
    layout = _lay_out(rule)
    paths = "".join(_step(step, layout, n) for n, step in enumerate(rule.steps))
    states = "".join(_state(state, rule, *layout.at[state]) for state in layout.at)
    top = TITLE + (10 if any(step.source == step.target for step in rule.steps) else -8)
    return f'{title}<g transform="translate(0 {top:g})">{paths}{states}</g>', layout.width, layout.height + top


def _state(state: int, rule: Rule, x: float, y: float) -> str:
    if state == END:
        return f'<circle class="e" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>the rule ends</title></circle>'
    words = [f"state {state}", *(["whitespace may come"] if state in rule.spaced else []),
             *(["the rule may end here"] if state in rule.finals else [])]
    inner = f'<circle class="s" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS - 3:g}"/>' if state in rule.finals else ""
    spaced = " w" if state in rule.spaced else ""
    return (f'<g><title>{", ".join(words)}</title><circle class="s{spaced}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS:g}"/>{inner}'
            f'<text class="n" x="{x:.1f}" y="{y + 3.4:.1f}">{state}</text></g>')


def _step(step: Step, layout: _Layout, number: int) -> str:
    start, end = layout.at[step.source], layout.at[step.target]
    call = " c" if step.call else ""
    if step.source == step.target:
        x, y = start
        top = y - LOOP - 8
        path = f"M{x - 8:.1f} {y - 10:.1f}C{x - 26:.1f} {top:.1f} {x + 26:.1f} {top:.1f} {x + 8:.1f} {y - 10:.1f}"
        label_at = x, y - LOOP
    elif number in layout.lanes:
        (x0, y0), (x1, y1), low = start, end, layout.lanes[number]
        path = (f"M{x0:.1f} {y0 + RADIUS:.1f}C{x0:.1f} {low:.1f} {x0:.1f} {low:.1f} {(x0 + x1) / 2:.1f} {low:.1f}"
                f"S{x1:.1f} {low:.1f} {x1:.1f} {y1 + RADIUS + 2:.1f}")
        label_at = (x0 + x1) / 2, low + 3
    else:
        path, label_at = _path(start, end, layout.bends.get(number, []), RADIUS if step.target != END else 5)
    return f'<path class="p{call}" marker-end="url(#a)" d="{path}"/>{_label(step, *label_at)}'


def _path(start: tuple[float, float], end: tuple[float, float], bends: list[tuple[float, float]],
          radius: float) -> tuple[str, tuple[float, float]]:
    """A smooth path to the right through the bends, and where its label stands: on its first stretch."""
    points = [(start[0] + RADIUS, start[1]), *bends, (end[0] - radius - 1, end[1])]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (x0 + x1) / 2
        path += f"C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
    (x0, y0), (x1, y1) = points[0], points[1]
    return path, ((x0 + x1) / 2, (y0 + y1) / 2 - 3)


def _label(step: Step, x: float, y: float) -> str:
    first = f'<text class="l{" k" if step.call else ""}" x="{x:.1f}" y="{y:.1f}">{escape(_cut(step.label))}</text>'
    second = f'<text class="l q" x="{x:.1f}" y="{y + 11:.1f}">{escape(_cut(step.asks))}</text>' if step.asks else ""
    return first + second


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LABEL else f"{text[:MOST_LABEL - 1]}…"


# --- layout


def _lay_out(rule: Rule) -> _Layout:
    layer = _layers(rule)
    columns, chains = _with_points(rule, layer)
    _order(columns, chains)
    rows = max(len(column) for column in columns)
    y_of = {node: (k + (rows - len(column)) / 2 + 0.5) * ROW for column in columns for k, node in enumerate(column)}
    gaps = _gaps(rule, layer, len(columns))
    x_of_layer, x = [], RADIUS + 4
    for gap in gaps:
        x_of_layer.append(x)
        x += gap
    at = {state: (x_of_layer[layer[state]], y_of[state]) for state in layer}
    bends = {n: [(x_of_layer[column], y_of[n, column]) for column in range(layer[source] + 1, layer[target])]
             for n, source, target in chains}
    back = [n for n, step in enumerate(rule.steps) if layer[step.target] < layer[step.source]]
    lanes = {n: rows * ROW + k * LANE for k, n in enumerate(back)}
    return _Layout(at, bends, lanes, x_of_layer[-1] + RADIUS + 60, rows * ROW + len(back) * LANE + (4 if back else 0))


def _layers(rule: Rule) -> dict[int, int]:
    """The layer of each state, and of END: behind all that leads to it, steps back to an open state aside."""
    out: dict[int, list[int]] = {state: [] for state in rule.drawn}
    for step in rule.steps:
        if step.target != step.source:
            out[step.source].append(step.target)
    backwards, order = _depth_first(rule.drawn[0], out)
    layer = dict.fromkeys(reversed(order), 0)
    for state in reversed(order):
        for target in out.get(state, ()):
            if (state, target) not in backwards:
                layer[target] = max(layer[target], layer[state] + 1)
    return layer


def _depth_first(start: int, out: dict[int, list[int]]) -> tuple[set[tuple[int, int]], list[int]]:
    """(the steps that lead back to a state still open, the states in the order in which they were left)."""
    backwards: set[tuple[int, int]] = set()
    order: list[int] = []
    open_states, seen = {start}, {start}
    stack = [(start, iter(out.get(start, ())))]
    while stack:
        state, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            stack.pop()
            open_states.discard(state)
            order.append(state)
        elif target in open_states:
            backwards.add((state, target))
        elif target not in seen:
            seen.add(target)
            open_states.add(target)
            stack.append((target, iter(out.get(target, ()))))
    return backwards, order


_Node = int | tuple[int, int]           # a state, or the point of a step (by number) in a layer
_Chain = tuple[int, int, int]           # a step that leads forwards: number, source, target


def _with_points(rule: Rule, layer: dict[int, int]) -> tuple[list[list[_Node]], list[_Chain]]:
    """The nodes of each layer, points of long steps included, and the steps that lead forwards."""
    columns: list[list[_Node]] = [[] for _ in range(max(layer.values()) + 1)]
    for state, column in layer.items():
        columns[column].append(state)
    chains = [(n, step.source, step.target) for n, step in enumerate(rule.steps) if layer[step.target] > layer[step.source]]
    for n, source, target in chains:
        for column in range(layer[source] + 1, layer[target]):
            columns[column].append((n, column))
    return columns, chains


def _order(columns: list[list[_Node]], chains: Iterable[_Chain]) -> None:
    """Sort each layer by the middle of what its nodes hang on, from left to right and back, some times."""
    column_of = {node: n for n, column in enumerate(columns) for node in column}
    before: dict[_Node, list[_Node]] = {node: [] for node in column_of}
    behind: dict[_Node, list[_Node]] = {node: [] for node in column_of}
    for n, source, target in chains:
        nodes: list[_Node] = [source, *((n, column) for column in range(column_of[source] + 1, column_of[target])), target]
        for left, right in pairwise(nodes):
            behind[left].append(right)
            before[right].append(left)
    for sweep in range(SWEEPS):
        neighbours = before if sweep % 2 == 0 else behind
        for column in columns if sweep % 2 == 0 else reversed(columns):
            place = {node: k - (len(other) - 1) / 2 for other in columns for k, node in enumerate(other)}
            here = {node: place[node] for node in column}
            middle = {node: sum(place[other] for other in neighbours[node]) / len(neighbours[node]) if neighbours[node]
                      else here[node] for node in column}
            column.sort(key=middle.__getitem__)


def _gaps(rule: Rule, layer: dict[int, int], n_layers: int) -> Sequence[float]:
    """The space behind each layer: room for the longest label that starts there."""
    longest = [0] * n_layers
    for step in rule.steps:
        if layer[step.target] > layer[step.source]:
            column = layer[step.source]
            longest[column] = max(longest[column], len(_cut(step.label)), int(len(_cut(step.asks)) * 0.87))
    return [min(MOST_GAP, max(LEAST_GAP, 2 * RADIUS + CHAR * letters + 26)) for letters in longest]
