"""From rules to the machine's tables.

A rule is a set of ways in, its *entries*: start states, and call lists of other rules. A sequence is a chain of states, each of
which calls what stands at its place and goes on behind it; a text that can't go on once it is complete is written into the chain
itself. What may be left out splits the chain: behind its place stand the ways to go on with it and without it, as rules of their
own. A loop is a state that calls its body and comes back to itself, so it needs no stack.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

from grammar.budget import Budget
from grammar.ebnf import expressions
from grammar.ebnf.closure import check_calls_before_a_byte
from grammar.ebnf.expressions import (
    Choice,
    Exit,
    Expression,
    FreeText,
    Json,
    Repeat,
    Rule,
    Rules,
    Sequence,
    Spelling,
    Text,
    Tokens,
    is_nullable,
    without_empty,
)
from grammar.ebnf.free_text import ByteStates, emit_free_text
from grammar.emission.emit import emit_json_into
from grammar.emission.tables import Call, TableBuilder
from grammar.errors import SchemaError
from grammar.text.automata import Dfa
from kernels.pushdown import ALWAYS, NO_CALLS, POP, RAW, TEXT, Tables

Entry = Call | int     # a start state with its registers, or the number of a call list


def emit_rules(rules: Rules, start: str, nullable: bool, budget: Budget) -> Tables:
    """The machine of the texts of `start`, and of the empty one if `nullable`. No rule has the empty text or begins with itself.
    """
    tables = TableBuilder(budget)
    emitter = _Emitter(rules, tables, budget)
    done = tables.state(final=True)
    root = tables.state(final=nullable, calls=emitter.rule(start) if start in rules else NO_CALLS, then=done)
    emitter.emit()
    return tables.build(root)


class _Emitter:
    def __init__(self, rules: Rules, tables: TableBuilder, budget: Budget) -> None:
        self._rules, self._tables, self._budget = rules, tables, budget
        self._done = tables.state(final=True)
        self._entries: dict[int, list[Entry]] = {}      # by call list, as they are found
        self._of_rule: dict[str, int] = {}
        self._of_tree: dict[int, int] = {}              # by the identity of an expression or an automaton
        self._kept: list[object] = []                   # so that identities stay theirs
        self._queue: list[str] = []
        self._tails: dict[tuple[int, int], int] = {}
        self._called_at: dict[int, int] = {}            # the call list of each state that has one

    def rule(self, name: str) -> int:
        """The call list of a rule; its states come when its turn comes."""
        if name not in self._of_rule:
            self._of_rule[name] = self._new_list([])
            self._queue.append(name)
        return self._of_rule[name]

    def emit(self) -> None:
        for name in self._queue:     # grows meanwhile
            self._entries[self._of_rule[name]].extend(self._ways(self._rules[name]))
        flat = {number: self._flat(number) for number in self._entries}
        for number, calls in flat.items():
            self._tables.fill_list(number, calls)
        starts = {number: [call[0] for call in calls] for number, calls in flat.items()}
        check_calls_before_a_byte(starts, self._called_at, self._budget)

    def _new_list(self, entries: list[Entry]) -> int:
        number = self._tables.reserve_list()
        self._entries[number] = entries
        return number

    def _flat(self, number: int) -> list[Call]:
        """All start states of a list, those of the lists in it included."""
        seen, calls = {number: None}, dict[Call, None]()
        for at in (queue := [number]):
            for entry in self._entries[at]:
                self._budget.spend("grammar_symbols")
                if not isinstance(entry, int):
                    calls[entry] = None
                elif entry not in seen:
                    seen[entry] = None
                    queue.append(entry)
        return list(calls)

    # --- ways in

    def _ways(self, expression: Expression) -> list[Entry]:
        """The entries of an expression, which has not the empty text."""
        self._budget.spend("grammar_symbols")
        match expression:
            case Rule(name):
                return [self.rule(name)]
            case Choice(parts):
                return [entry for part in parts for entry in self._ways(part)]
            case Json():
                return [(self._once(expression, lambda: self._before(expression, POP)), 0, 0)]
            case Sequence(parts):
                return self._ways_from(parts, 0)
            case Text(dfa):
                return [(self._once(dfa, lambda: self._tables.text(dfa, TEXT)), 0, 0)]
            case Repeat():
                return [(self._once(expression, lambda: self._loop(expression)), 0, 0)]
            case FreeText():
                return [(self._once(expression, lambda: self._free_text(expression)), 0, 0)]
            case Tokens() | Spelling():
                return [(self._once(expression, lambda: self._in_place(expression, POP)), 0, 0)]
        raise AssertionError("every kind of expression has its ways")

    def _once(self, tree: object, build: Callable[[], int]) -> int:
        if id(tree) not in self._of_tree:
            self._kept.append(tree)
            self._of_tree[id(tree)] = build()
        return self._of_tree[id(tree)]

    def _calls(self, expression: Expression) -> int:
        """The call list of an expression, which has not the empty text."""
        if isinstance(expression, Rule):
            return self.rule(expression.name)
        if isinstance(expression, Json):
            form, style = expression.form, expression.style
            return self._once(form, lambda: emit_json_into(self._tables, form, style, self._budget))
        return self._new_list(self._ways(expression))

    # --- sequences

    def _ways_from(self, parts: Seq[Expression], first: int) -> list[Entry]:
        """The ways through `parts` from number `first` on that take a byte: through each that may come next."""
        ways: list[Entry] = []
        for n in range(first, len(parts)):
            self._budget.spend("grammar_symbols")
            ways.append((self._chain(parts, n), 0, 0))
            if not is_nullable(parts[n]):
                break
        return ways

    def _chain(self, parts: Seq[Expression], first: int) -> int:
        """A start state that takes something of part `first`, then what follows."""
        end = first + 1
        while end < len(parts) and not is_nullable(parts[end]):
            end += 1
        state = self._tail(parts, end)
        for n in range(end - 1, first - 1, -1):
            state = self._before(without_empty(parts[n]) if n == first else parts[n], state)
        assert state != POP, "a chain takes something"
        return state

    def _tail(self, parts: Seq[Expression], first: int) -> int:
        """The state before parts that may be left out; POP where there are none."""
        if first == len(parts):
            return POP
        key = id(parts), first
        if key not in self._tails:
            self._kept.append(parts)
            calls = self._new_list([])
            final = all(map(is_nullable, parts[first:]))
            self._tails[key] = self._calling(calls, self._done, final)
            self._entries[calls].extend(self._ways_from(parts, first))
        return self._tails[key]

    def _before(self, part: Expression, following: int) -> int:
        """A state in which `part` comes next, and `following` behind it."""
        if isinstance(part, Tokens | Spelling) or (isinstance(part, Text) and _stands_alone(part.dfa)):
            return self._in_place(part, following)
        then = self._done if following == POP else following
        return self._calling(self._calls(part), then)

    def _calling(self, calls: int, then: int, final: bool = False) -> int:
        state = self._tables.state(final=final, calls=calls, then=then)
        self._called_at[state] = calls
        return state

    def _in_place(self, part: Tokens | Spelling | Text, following: int) -> int:
        """The states of a text that ends where it is complete, and goes on in `following`."""
        if isinstance(part, Tokens):
            states = ByteStates(self._tables)
            return self._tables.state(RAW, edges=states.edges([], dict.fromkeys(part.ids, following)))
        if isinstance(part, Spelling):
            return self._spelling(part, following)
        dfa = part.dfa
        states_of = [following if final else self._tables.state(TEXT) for final in dfa.accepting]
        for n, out in enumerate(dfa.edges):
            if not dfa.accepting[n]:
                self._tables.set_edges(states_of[n], [(low, high, states_of[target], ALWAYS, 0, 0) for low, high, target in out])
        return states_of[0]

    def _spelling(self, part: Spelling, following: int) -> int:
        """A fixed text, in bytes, with its special tokens as ways across."""
        begins: dict[int, dict[int, int]] = {}
        for begin, end, token in part.tokens:
            begins.setdefault(begin, {})[token] = end
        places = [*(self._tables.state(RAW) for _ in part.text), following]
        states = ByteStates(self._tables)
        for n, char in enumerate(part.text):
            by_token = {token: places[end] for token, end in begins.get(n, {}).items()}
            self._tables.set_edges(places[n], states.edges([(ord(char), ord(char), places[n + 1])], by_token))
        return places[0]

    # --- loops

    def _loop(self, expression: Repeat) -> int:
        """A body again and again: as many states as it has to come, and one that it may come back to."""
        calls = self._calls(expression.part)
        least, most = max(expression.least, 1), expression.most
        state = self._tables.state(final=True)
        if most is None:
            self._tables.set_calls(state, calls, state)
            self._called_at[state] = calls
        n_states = least if most is None else most
        for n in range(n_states - 1, -1, -1):
            state = self._calling(calls, state, final=n > 0 and n >= least)
        return state

    # --- free text

    def _free_text(self, free: FreeText) -> int:
        return emit_free_text(free, self._tables, self._exit, self._budget)

    def _exit(self, exits: list[Exit], root: int) -> int:
        """The state behind the complete cues of some exits."""
        if len({exit_.leaves for exit_ in exits}) > 1:
            names = " and ".join(repr(exit_.cue) for exit_ in exits)
            raise SchemaError(f"{names} end at the same place, but only one of them ends the free text")
        back = POP if exits[0].leaves else root
        if len(exits) == 1 and exits[0].then is expressions.EMPTY:
            return back
        if any(is_nullable(exit_.then) for exit_ in exits) and back == root:
            raise SchemaError(f"nothing has to follow {exits[0].cue!r}, so it can't be a tag")
        calls = self._calls(expressions.choice(without_empty(exit_.then) for exit_ in exits))
        then = self._done if back == POP else root
        return self._calling(calls, then, final=any(is_nullable(exit_.then) for exit_ in exits))


def _stands_alone(dfa: Dfa) -> bool:
    """Whether no text goes on once it is complete, so that it needs no rule of its own."""
    return not any(accepting and out for accepting, out in zip(dfa.accepting, dfa.edges, strict=True))
