"""From a grammar as it was written to rules: names are resolved, lexemes become automata, ignored text is put between them."""

from __future__ import annotations

from collections.abc import Mapping

from grammar.algebra.normal import normal_form
from grammar.budget import Budget
from grammar.ebnf import expressions, lexemes, syntax
from grammar.ebnf.common import PATTERNS
from grammar.ebnf.expressions import EMPTY, NOTHING, Expression, Json, Rule, Rules, Text, Tokens
from grammar.ebnf.lexemes import Weave
from grammar.ebnf.regexes import UnknownFlag, spelled_out
from grammar.ebnf.syntax import Node, Source
from grammar.emission.style import Style
from grammar.errors import EbnfError, GrammarTooLarge, PatternError, SchemaError
from grammar.text import automata, regex
from grammar.text.automata import Dfa
from grammar.vocabulary import SPECIAL_IDS

_LEXEME = "a rule can't stand in a terminal: terminals are regular"


def lowered(source: Source, specials: Mapping[str, int] | None, style: Style, budget: Budget) -> Rules:
    """The rules of a grammar, one for each definition that is no terminal.

    `specials` are the vocabulary's special tokens by their text; None where there is no vocabulary, and then every name of one is
    taken. Raises EbnfError, GrammarTooLarge.
    """
    return _Lowering(source, specials, style, budget).rules()


class _Lowering:
    def __init__(self, source: Source, specials: Mapping[str, int] | None, style: Style, budget: Budget) -> None:
        self._source, self._specials, self._style, self._budget = source, specials, style, budget
        self._terminals: dict[str, Dfa | None] = {}
        self._ignored: Expression = EMPTY

    def rules(self) -> Rules:
        for name in self._terminals_in_order():
            self._terminals[name] = self._terminal(name)
        self._ignored = self._ignored_text()
        return {name: self._rule(definition) for name, definition in self._source.definitions.items()
                if not self._source.is_terminal(name)}

    def _error(self, reason: str, place: int) -> EbnfError:
        return EbnfError(reason, *syntax.position(self._source.text, place))

    # --- terminals

    def _terminals_in_order(self) -> list[str]:
        """Each after those that it names."""
        needs = {name: list(self._names(definition.body)) for name, definition in self._source.definitions.items()
                 if self._source.is_terminal(name)}
        order: dict[str, None] = dict.fromkeys(self._source.imports)
        for first in needs:
            path: dict[str, None] = {}
            stack = [(first, False)]
            while stack:
                name, done = stack.pop()
                if done:
                    del path[name]
                    order[name] = None
                elif name in path:
                    raise self._error(f"the terminal {name} leads back to itself: terminals are regular",
                                      self._source.definitions[name].place)
                elif name in needs and name not in order:
                    path[name] = None
                    stack.append((name, True))
                    stack.extend((other, False) for other in needs[name])
        return list(order)

    def _names(self, node: Node) -> list[str]:
        stack, found = [node], []
        while stack:
            match stack.pop():
                case syntax.Name(name, place):
                    if not self._source.is_terminal(name):
                        raise self._error(_LEXEME, place)
                    found.append(name)
                case syntax.Series(parts) | syntax.Options(parts):
                    stack.extend(parts)
                case syntax.Times(part, _, _):
                    stack.append(part)
        return found

    def _terminal(self, name: str) -> Dfa | None:
        if name in self._source.imports:
            return self._regex(PATTERNS[self._source.imports[name]], "", 0)
        definition = self._source.definitions[name]
        dfa = self._lexeme(definition.body)
        return self._ended(dfa, definition) if definition.lazy and dfa is not None else dfa

    def _lexeme(self, node: Node) -> Dfa | None:
        return lexemes.combined(lambda weave, start: self._weave(weave, start, node), self._budget)

    def _weave(self, weave: Weave, start: int, node: Node) -> int:
        """The texts of a terminal's part behind `start`; the state behind them."""
        self._budget.spend("automaton_steps")
        match node:
            case syntax.Series(parts):
                for part in parts:
                    start = self._weave(weave, start, part)
                return start
            case syntax.Options(parts):
                end = weave.state()
                for part in parts:
                    begin = weave.state()
                    weave.join(start, begin)
                    weave.join(self._weave(weave, begin, part), end)
                return end
            case syntax.Times(part, least, most):
                return self._weave_times(weave, start, part, least, most)
        dfa = self._leaf(node)
        return weave.state() if dfa is None else weave.text(dfa, start)    # a state that nothing leads to

    def _weave_times(self, weave: Weave, start: int, part: Node, least: int, most: int | None) -> int:
        for _ in range(least):
            start = self._weave(weave, start, part)
        end = weave.state()
        if most is None:
            loop = weave.state()
            weave.join(start, loop)
            weave.join(self._weave(weave, loop, part), loop)
            weave.join(loop, end)
            return end
        for _ in range(most - least):
            weave.join(start, end)
            begin = weave.state()
            weave.join(start, begin)
            start = self._weave(weave, begin, part)
        weave.join(start, end)
        return end

    def _leaf(self, node: Node) -> Dfa | None:
        """The automaton of one lexeme."""
        match node:
            case syntax.Literal(text, folded):
                self._budget.check("automaton_states", len(text))
                plain = lexemes.of_text(text)
                return lexemes.in_either_case(plain, self._budget) if folded else plain
            case syntax.Pattern(pattern, flags, place):
                return self._regex(pattern, flags, place)
            case syntax.Class(chars, _):
                return lexemes.of_chars(chars) if chars else None
            case syntax.Name(name, place):
                return self._known(name, place)
            case syntax.Special(_, place) | syntax.Schema(_, place):
                raise self._error("only texts can stand in a terminal", place)
        raise AssertionError("a group is no lexeme")

    def _known(self, name: str, place: int) -> Dfa | None:
        if name not in self._terminals:
            raise self._error(f"there is no terminal {name}", place)
        return self._terminals[name]

    def _regex(self, pattern: str, flags: str, place: int) -> Dfa | None:
        try:
            plain, folded = spelled_out(pattern, flags)
            dfa = automata.from_regex(regex.parse(plain, self._budget), self._budget)
        except (PatternError, UnknownFlag) as error:
            raise self._error(str(error), place) from None
        return lexemes.in_either_case(dfa, self._budget) if folded and dfa is not None else dfa

    def _ended(self, dfa: Dfa, definition: syntax.Definition) -> Dfa | None:
        """A lazy terminal: as short as it can be, up to and with its suffix."""
        if definition.suffix is None:
            return lexemes.shortest_only(dfa, self._budget)
        suffix = lexemes.of_text(definition.suffix)
        both = lexemes.combined(lambda weave, start: weave.text(suffix, weave.text(dfa, start)), self._budget)
        return None if both is None else lexemes.shortest_only(both, self._budget)

    def _ignored_text(self) -> Expression:
        """Any number of ignored texts."""
        node = syntax.Times(syntax.Options(tuple(self._source.ignored)), 0, None)
        for name in self._names(node):
            if name not in self._terminals:
                raise self._error(f"there is no terminal {name}", 0)
        dfa = self._lexeme(node) if self._source.ignored else None
        return EMPTY if dfa is None else Text(dfa)

    # --- rules

    def _rule(self, definition: syntax.Definition) -> Expression:
        if not definition.lazy:
            return self._expression(definition.body)
        try:
            dfa = self._ended_rule(definition)
        except EbnfError as error:
            raise EbnfError(f"lazy rules hold terminals only: {error.reason}", error.line, error.column) from None
        return NOTHING if dfa is None else expressions.sequence([Text(dfa), self._ignored])

    def _ended_rule(self, definition: syntax.Definition) -> Dfa | None:
        self._names(definition.body)
        dfa = self._lexeme(definition.body)
        return None if dfa is None else self._ended(dfa, definition)

    def _expression(self, node: Node) -> Expression:
        self._budget.spend("grammar_symbols")
        match node:
            case syntax.Series(parts):
                return expressions.sequence(map(self._expression, parts))
            case syntax.Options(parts):
                return expressions.choice(map(self._expression, parts))
            case syntax.Times(part, least, most):
                return expressions.repeat(self._expression(part), least, most)
            case syntax.Name(name, place) if not self._source.is_terminal(name):
                if name not in self._source.definitions:
                    raise self._error(f"there is no rule {name}", place)
                return Rule(name)
            case syntax.Literal("", _, _):
                return EMPTY
            case syntax.Special(text, place):
                return expressions.sequence([Tokens(self._special(text, place)), self._ignored])
            case syntax.Schema(schema, place):
                return expressions.sequence([self._json(schema, place), self._ignored])
        dfa = self._leaf(node)
        return NOTHING if dfa is None else expressions.sequence([Text(dfa), self._ignored])

    def _json(self, schema: object, place: int) -> Json:
        if not isinstance(schema, dict | bool):
            raise self._error("a JSON schema is an object", place)
        try:
            return Json(normal_form(schema, self._budget), self._style)
        except GrammarTooLarge:
            raise
        except SchemaError as error:
            line, column = syntax.position(self._source.text, place)
            raise EbnfError(f"in the schema {error}", line, column) from None

    def _special(self, text: str, place: int) -> tuple[int, ...]:
        """The ids of <name>, or of <[1,5-7]>."""
        if not text.startswith("["):
            if self._specials is not None and f"<{text}>" not in self._specials:
                raise self._error(f"the model has no special token <{text}>", place)
            return (self._specials[f"<{text}>"],) if self._specials is not None else (0,)
        ids: set[int] = set()
        for item in text[1:-1].split(","):
            first, dash, last = item.strip().partition("-")
            if not (first.isdecimal() and (last.isdecimal() or not dash)) or max(len(first), len(last)) > 8:
                raise self._error("expected token ids and ranges of them, as in <[1,5-7]>", place)
            chosen = range(int(first), int(last or first) + 1)
            self._budget.spend("grammar_symbols", len(chosen))
            ids.update(chosen)
        allowed = SPECIAL_IDS if self._specials is None else frozenset(self._specials.values())
        known = {token for token in ids if token in allowed}
        if known != ids or not ids:
            raise self._error(f"{min(ids - known, default=0)} is no special token of the model; only those can be named", place)
        return tuple(sorted(ids))
