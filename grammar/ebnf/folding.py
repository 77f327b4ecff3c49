"""Makes rules smaller before they are emitted: what can't be used is dropped, and what is regular becomes one automaton.

Folding is a matter of speed only, so it stops where an automaton would grow large: the parts then stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from grammar.budget import Budget, Limits
from grammar.ebnf import expressions, lexemes
from grammar.ebnf.expressions import (
    Choice,
    Exit,
    Expression,
    FreeText,
    Repeat,
    Rule,
    Rules,
    Sequence,
    Text,
    called,
    is_nothing,
)
from grammar.ebnf.lexemes import Weave
from grammar.errors import GrammarTooLarge
from grammar.text.automata import Dfa

_MOST_STATES = 1_000      # of an automaton made by folding
_MOST_STEPS = 20_000      # spent on one that may turn out too large


def pruned(rules: Rules, start: str, budget: Budget) -> Rules:
    """The rules that some text of `start` goes through, less the branches that have no text; {} where `start` has none."""
    productive = _productive(rules, budget)
    if start not in productive:
        return {}
    kept: Rules = {}
    calls = {name: Rule(name) for name in productive}
    queue = [start]
    for name in queue:
        if name not in kept:
            kept[name] = with_rules(rules[name], calls, budget)
            queue.extend(called(kept[name]))
    return kept


def _productive(rules: Rules, budget: Budget) -> set[str]:
    """The rules that have a text: a least fixed point, looked for again only where a needed rule has become one."""
    users: dict[str, set[str]] = {name: set() for name in rules}
    for name, body in rules.items():
        for other in called(body):
            budget.spend("grammar_symbols")
            users[other].add(name)
    found: set[str] = set()
    queue = dict.fromkeys(rules)
    while queue:
        name = next(iter(queue))
        del queue[name]
        budget.spend("grammar_symbols")
        if name not in found and _has_text(rules[name], found):
            found.add(name)
            queue.update(dict.fromkeys(users[name] - found))
    return found


def _has_text(expression: Expression, productive: set[str]) -> bool:
    match expression:
        case Rule(name):
            return name in productive
        case Sequence(parts):
            return all(_has_text(part, productive) for part in parts)
        case Choice(parts):
            return any(_has_text(part, productive) for part in parts)
        case Repeat(part, least, _):
            return least == 0 or _has_text(part, productive)
        case FreeText(exits, jumps=jumps):
            return expression.may_end or any(e.leaves and _has_text(e.then, productive) for e in (*exits, *jumps))
    return True


def with_rules(expression: Expression, bodies: Mapping[str, Expression], budget: Budget) -> Expression:
    """The tree with each rule replaced by what `bodies` has for it, and by nothing where it has nothing."""
    budget.spend("grammar_symbols")
    match expression:
        case Rule(name):
            return bodies.get(name, expressions.NOTHING)
        case Sequence(parts, some):
            joined = expressions.sequence(with_rules(part, bodies, budget) for part in parts)
            return expressions.without_empty(joined) if some else joined
        case Choice(parts):
            return expressions.choice(with_rules(part, bodies, budget) for part in parts)
        case Repeat(part, least, most):
            return expressions.repeat(with_rules(part, bodies, budget), least, most)
        case FreeText(exits, jumps=jumps):
            kept, jumping = ([Exit(e.cue, with_rules(e.then, bodies, budget), e.leaves) for e in some] for some in (exits, jumps))
            gone = tuple(e.cue for e in kept if is_nothing(e.then))
            return replace(expression, exits=tuple(e for e in kept if not is_nothing(e.then)), without=expression.without + gone,
                           jumps=tuple(e for e in jumping if not is_nothing(e.then)))
    return expression


def components(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected components, each after those that it leads to (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_names: dict[str, None] = {}
    found: list[list[str]] = []
    for root in graph:
        stack = [(root, iter(graph[root]))] if root not in index else []
        while stack:
            name, targets = stack[-1]
            if name not in index:
                index[name] = low[name] = len(index)
                open_names[name] = None
            for target in targets:
                if target not in index:
                    stack.append((target, iter(graph[target])))
                    break
                if target in open_names:
                    low[name] = min(low[name], index[target])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[name])
                if low[name] == index[name]:
                    members = [open_names.popitem()[0]]
                    while members[-1] != name:
                        members.append(open_names.popitem()[0])
                    found.append(members[::-1])
    return found


def folded(rules: Rules, budget: Budget) -> Rules:
    """The same rules with regular parts made one automaton each. Rules that become one are written into their callers."""
    graph = {name: list(called(body)) for name, body in rules.items()}
    folding = _Folding(budget)
    known: dict[str, Expression] = {name: Rule(name) for name in rules}
    out: Rules = {}
    for members in components(graph):
        for name in members:
            out[name] = folding.folded(with_rules(rules[name], known, budget))
        only = members[0]
        if len(members) == 1 and isinstance(out[only], Text) and only not in graph[only]:
            known[only] = out[only]
    return out


@dataclass(frozen=True, slots=True)
class _Folding:
    budget: Budget

    def folded(self, expression: Expression) -> Expression:
        match expression:
            case Sequence(parts, some):
                joined = self._sequence([self.folded(part) for part in parts])
                return expressions.without_empty(joined) if some else joined
            case Choice(parts):
                return self._choice([self.folded(part) for part in parts])
            case Repeat(part, least, most):
                return self._repeat(self.folded(part), least, most)
            case FreeText(exits, jumps=jumps):
                return replace(expression, exits=tuple(replace(e, then=self.folded(e.then)) for e in exits),
                               jumps=tuple(replace(e, then=self.folded(e.then)) for e in jumps))
        return expression

    def _sequence(self, parts: list[Expression]) -> Expression:
        """Texts that stand side by side are joined, as many as fit."""
        joined: list[Expression] = []
        for part in parts:
            both = None
            if joined and isinstance(part, Text) and isinstance(joined[-1], Text):
                both = self._joined(joined[-1].dfa, part.dfa)
            if both is None:
                joined.append(part)
            else:
                joined[-1] = both
        return expressions.sequence(joined)

    def _joined(self, left: Dfa, right: Dfa) -> Expression | None:
        return self._small(len(left.edges) + len(right.edges),
                           lambda weave, start: weave.text(right, weave.text(left, start)))

    def _choice(self, parts: list[Expression]) -> Expression:
        texts = [part for part in parts if isinstance(part, Text)]
        if len(texts) < 2:
            return expressions.choice(parts)

        def build(weave: Weave, start: int) -> int:
            end = weave.state()
            for text in texts:
                weave.join(weave.text(text.dfa, start), end)
            return end

        one = self._small(sum(len(text.dfa.edges) for text in texts), build)
        others = [part for part in parts if not isinstance(part, Text)]
        return expressions.choice(parts if one is None else [one, *others])

    def _repeat(self, part: Expression, least: int, most: int | None) -> Expression:
        if not isinstance(part, Text):
            return expressions.repeat(part, least, most)
        dfa, again = part.dfa, part.dfa.accepting[0]

        def build(weave: Weave, start: int) -> int:
            for _ in range(0 if again else least):
                start = weave.text(dfa, start)
            end = weave.state()
            if most is None:
                loop = weave.state()
                weave.join(start, loop)
                weave.join(weave.text(dfa, loop), loop)
                start = loop
            else:
                for _ in range(most - (0 if again else least)):
                    weave.join(start, end)
                    start = weave.text(dfa, start)
            weave.join(start, end)
            return end

        n_times = least + 1 if most is None else most
        one = self._small(n_times * len(dfa.edges), build)
        return expressions.repeat(part, least, most) if one is None else one

    def _small(self, n_states: int, build: lexemes.Build) -> Text | None:
        """The automaton of `build`, of about `n_states` before it is made deterministic; None where it is or grows large."""
        if n_states > _MOST_STATES:
            return None
        own = Budget(Limits(regex_states=4 * _MOST_STATES, automaton_states=_MOST_STATES, automaton_steps=_MOST_STEPS))
        try:
            dfa = lexemes.combined(build, own)
        except GrammarTooLarge:
            self.budget.spend("automaton_steps", _MOST_STEPS)
            return None
        assert dfa is not None, "joined automata have a text"
        self.budget.spend("automaton_steps", sum(1 + len(out) for out in dfa.edges))
        return Text(dfa)
