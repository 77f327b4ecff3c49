"""Makes rules fit for the machine: no rule has the empty text, none calls itself at its left or right end.

A rule that begins with itself would be called without end before a byte is read, so left recursion has to go. One that ends
with itself could stay, but a list of a thousand items would then be a stack of a thousand frames. Both become loops: the rules
that call each other at one end are linear equations over languages, and Gauss' elimination with Arden's lemma (X = X B + C has
the least solution X = C B*) solves them, however deep the recursion is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grammar.budget import Budget
from grammar.ebnf.expressions import (
    EMPTY,
    NOTHING,
    Choice,
    Expression,
    Json,
    Repeat,
    Rule,
    Rules,
    Sequence,
    Spelling,
    Text,
    Tokens,
    called,
    choice,
    is_nothing,
    is_nullable,
    optional,
    repeat,
    sequence,
    without_empty,
)
from grammar.ebnf.folding import components, with_rules

_MOST_TAIL_CALLERS = 16     # in one circle; the calls of a larger one are left, which costs nothing but stack

# What goes through no member at one end; and by member what stands beside it.
Split = tuple[Expression, dict[str, Expression]]


def without_empty_rules(rules: Rules, budget: Budget) -> tuple[Rules, set[str]]:
    """Rules without the empty text, each call of one that had it made optional; and which had it. A rule may have no text then.
    """
    nullable = _nullable(rules, budget)
    calls: dict[str, Expression] = {name: repeat(Rule(name), 0, 1) if name in nullable else Rule(name) for name in rules}
    return {name: without_empty(with_rules(body, calls, budget)) for name, body in rules.items()}, nullable


def _nullable(rules: Rules, budget: Budget) -> set[str]:
    users: dict[str, set[str]] = {name: set() for name in rules}
    for name, body in rules.items():
        for other in called(body):
            users[other].add(name)
    found: dict[str, Expression] = {}
    queue = dict.fromkeys(rules)
    while queue:
        name = next(iter(queue))
        del queue[name]
        budget.spend("grammar_symbols")
        if name in found:
            continue
        body = with_rules(rules[name], {n: found.get(n, Rule(n)) for n in called(rules[name])}, budget)
        if is_nullable(body):
            found[name] = EMPTY
            queue.update(dict.fromkeys(n for n in users[name] if n not in found))
    return set(found)


def without_recursion_at_the_ends(rules: Rules, budget: Budget) -> Rules:
    """Rules, none of which has the empty text, with the same texts and loops instead of left and tail recursion."""
    return _Ends(_Ends(rules, budget, left=True).solved(), budget, left=False).solved()


class _Ends:
    """Takes recursion away at one end. Written for the left one; the right one is its mirror image."""

    def __init__(self, rules: Rules, budget: Budget, *, left: bool) -> None:
        self._rules, self._budget, self._left = dict(rules), budget, left
        self._n_new = 0

    def solved(self) -> Rules:
        names = set(self._rules)
        graph = {name: list(self._split(body, names)[1]) for name, body in self._rules.items()}
        for members in components(graph):
            if len(members) > 1 and (self._left or len(members) <= _MOST_TAIL_CALLERS):
                self._solve(members)
            elif members[0] in graph[members[0]]:
                self._solve_one(members[0])
        return self._rules

    # --- splitting an expression at its end

    def _beside(self, near: Expression, far: Expression) -> Expression:
        """`near` at the end that is looked at, `far` away from it."""
        return sequence([near, far] if self._left else [far, near])

    def _split(self, expression: Expression, members: Iterable[str]) -> Split:
        """Its texts but the empty one, by the member that they go through at this end."""
        self._budget.spend("grammar_symbols")
        match expression:
            case Rule(name) if name in members:
                return NOTHING, {name: EMPTY}
            case Choice(parts):
                return self._either([self._split(part, members) for part in parts])
            case Sequence(parts):
                return self._split_sequence(parts, members)
            case Repeat(part, least, most):
                again = 0 if is_nullable(part) else max(least - 1, 0)
                return self._moved(self._split(part, members), repeat(part, again, None if most is None else most - 1))
        return without_empty(expression), {}

    def _split_sequence(self, parts: tuple[Expression, ...], members: Iterable[str]) -> Split:
        """Through its first part, and through each that only parts with the empty text stand before."""
        found: list[Split] = []
        while parts:
            near, parts = (parts[0], parts[1:]) if self._left else (parts[-1], parts[:-1])
            self._budget.spend("grammar_symbols", len(parts))
            found.append(self._moved(self._split(near, members), sequence(parts)))
            if not is_nullable(near):
                break
        return self._either(found)

    def _moved(self, split: Split, far: Expression) -> Split:
        return self._beside(split[0], far), {name: self._beside(beside, far) for name, beside in split[1].items()}

    def _either(self, splits: list[Split]) -> Split:
        beside: dict[str, list[Expression]] = {}
        for _, found in splits:
            for name, other in found.items():
                beside.setdefault(name, []).append(other)
        return choice(constant for constant, _ in splits), {name: choice(others) for name, others in beside.items()}

    # --- solving

    def _loop(self, beside: Expression) -> Expression:
        inner = without_empty(beside)
        return EMPTY if is_nothing(inner) else repeat(inner, 0, None)

    def _solve_one(self, name: str) -> None:
        """X = C | X B. Where both ends of X call X, as in  e: e "+" e | "-" e | n,  the other end's calls become loops too."""
        constant, beside = self._split(self._rules[name], {name})
        other_end = _Ends({}, self._budget, left=not self._left)
        base, tails = other_end._split(constant, {name})
        step, step_tails = other_end._split(without_empty(beside[name]), {name})
        if tails or step_tails:
            if name in tails:
                base = other_end._beside(base, other_end._loop(tails[name]))
            constant = self._named(name, base)
            if name in step_tails:
                step = choice([step, other_end._beside(constant, step_tails[name])])
        else:
            step = beside[name]
        self._rules[name] = self._beside(constant, self._loop(step))

    def _solve(self, members: list[str]) -> None:
        """Gauss' elimination. Intermediate results are rules of their own, so that none is written out twice."""
        self._budget.spend("grammar_symbols", len(members) ** 2)
        known: dict[str, Expression] = {}
        beside: dict[str, dict[str, Expression]] = {}
        for name in members:
            known[name], beside[name] = self._split(self._rules[name], set(members))
        for name in members:
            loop = self._loop(beside[name].pop(name, EMPTY))
            known[name] = self._named(name, self._beside(known[name], loop))
            others = {other: self._named(name, self._beside(b, loop)) for other, b in beside[name].items()}
            beside[name] = others
            for user in members:
                if user != name and name in beside[user]:
                    via = self._named(user, beside[user].pop(name))
                    self._substitute(user, via, known, beside, name)
        self._rules.update(known)

    def _substitute(self, user: str, via: Expression, known: dict[str, Expression], beside: Mapping[str, dict[str, Expression]],
                    name: str) -> None:
        self._budget.spend("grammar_symbols", 1 + len(beside[name]))
        known[user] = choice([known[user], self._beside(known[name], via)])
        for other, b in beside[name].items():
            beside[user][other] = choice([beside[user].get(other, NOTHING), self._beside(b, via)])

    def _named(self, base: str, expression: Expression) -> Expression:
        """The expression, as a rule of its own where it is not small. The name can be that of no rule that was written."""
        inner = without_empty(expression)
        if is_nothing(inner):
            return EMPTY if is_nullable(expression) else NOTHING
        if isinstance(inner, Text | Tokens | Spelling | Json | Rule):
            return expression
        self._n_new += 1
        name = f"{base}/{'left' if self._left else 'right'}{self._n_new}"
        self._rules[name] = inner
        return optional(Rule(name)) if is_nullable(expression) else Rule(name)
