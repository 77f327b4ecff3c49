"""Structural tags: free text in which tagged parts are held to a schema, a regex or a grammar.

A *format* says what the answer is: a tree of the classes below. `compile_structural_tags` makes a grammar of one. What begins or
ends a tag may be a special token of the model; then it may be written as that token, and just as well spelled out as text.

In free text no trigger can stand without its tag: where the trigger is complete, the tag has to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from grammar.algebra.enforcement import Enforcement, NotEnforced
from grammar.algebra.normal import normal_form
from grammar.budget import Budget, Limits
from grammar.compile import style_of
from grammar.ebnf import expressions, lexemes
from grammar.ebnf.compile import first_rule, tables_of
from grammar.ebnf.expressions import EMPTY, Exit, Expression, FreeText, Json, Rule, Rules, Spelling, Text, Tokens
from grammar.ebnf.folding import with_rules
from grammar.ebnf.lowering import lowered
from grammar.ebnf.reader import read
from grammar.errors import EbnfError, GrammarTooLarge, PatternError, SchemaError
from grammar.matcher import CompiledGrammar
from grammar.text import automata, regex
from grammar.vocabulary import SPECIAL_IDS, Vocabulary
from kernels.pushdown import Tables


@dataclass(frozen=True, slots=True)
class ConstText:
    """This text."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A JSON text that satisfies `schema`; `pointer` is the schema's place in what the caller sent."""

    schema: Any
    any_order: bool = False
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class MatchingText:
    """A text that a regex matches as a whole."""

    pattern: str
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class EbnfText:
    """A text of a context-free grammar."""

    grammar: str
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class AnyText:
    """Any text in which none of `without` stands. In a tag it ends where the tag's end begins."""

    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """One special token of the model, by id or by its text; never spelled out."""

    token: int | str


@dataclass(frozen=True, slots=True)
class InOrder:
    parts: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    parts: tuple[Format, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """A part `least` to `most` times (None: no bound)."""

    part: Format
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Tag:
    """`begin`, the content, and one of `ends`. Empty texts are allowed where the content says by itself where it ends."""

    begin: str
    content: Format
    ends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TriggeredTags:
    """Free text until a trigger, then the tag that begins with it, then free text again.

    With `at_least_one` the answer begins with a tag; with `stop_after_first` it ends behind one.
    """

    triggers: tuple[str, ...]
    tags: tuple[Tag, ...]
    at_least_one: bool = False
    stop_after_first: bool = False
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeparatedTags:
    """Tags and nothing else, with `separator` between them."""

    tags: tuple[Tag, ...]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False


Format = (ConstText | JsonValue | MatchingText | EbnfText | AnyText | SpecialToken | InOrder | OneOf | Times | Tag | TriggeredTags
          | SeparatedTags)

_ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Writing:
    """How all schemas of a format are compiled: the options of `compile_json_schema`."""

    style: str = "free"
    property_order: str = "schema"
    unsupported: str = "refuse"


def compile_structural_tags(tags: Format, vocabulary: Vocabulary, *, style: str = "free", property_order: str = "schema",
                            unsupported: str = "refuse", limits: Limits | None = None) -> CompiledGrammar:
    """The grammar of the texts of a format. The options hold for all schemas in it, and are those of `compile_json_schema`.

    Raises SchemaError: for a schema in a tag its pointer leads there from the root of the request. GrammarTooLarge, one of those,
    where `limits` do not suffice for all parts together.
    """
    writing = Writing(style, property_order, unsupported)
    tables, not_enforced = _tables(tags, vocabulary.special_tokens, writing, Budget(limits))
    grammar = CompiledGrammar(tables, vocabulary)
    grammar.not_enforced = not_enforced
    return grammar


def check_structural_tags(tags: Format, *, unsupported: str = "refuse", limits: Limits | None = None) -> tuple[NotEnforced, ...]:
    """Raise what `compile_structural_tags` would raise, without a vocabulary: special tokens are taken to exist. Returns what it
    would leave out."""
    return _tables(tags, None, Writing(unsupported=unsupported), Budget(limits))[1]


def _tables(tags: Format, specials: Mapping[str, int] | None, writing: Writing,
            budget: Budget) -> tuple[Tables, tuple[NotEnforced, ...]]:
    lowering = _Lowering(specials, writing, budget)
    answer = lowering.lowered(tags, None)
    return tables_of({_ANSWER: answer, **lowering.rules}, _ANSWER, budget), tuple(lowering.not_enforced)


class _Lowering:
    """From formats to expressions. `ends` are the texts one of which must follow a format, and are then part of what is made."""

    def __init__(self, specials: Mapping[str, int] | None, writing: Writing, budget: Budget) -> None:
        self._specials, self._writing, self._budget = specials, writing, budget
        self.rules: Rules = {}
        self.not_enforced: list[NotEnforced] = []

    def lowered(self, format_: Format, ends: tuple[str, ...] | None) -> Expression:
        self._budget.spend("grammar_symbols")
        match format_:
            case AnyText(without):
                return self._any_text(without, ends)
            case TriggeredTags():
                return self._triggered(format_, ends)
            case OneOf(parts):
                return expressions.choice(self.lowered(part, ends) for part in parts)
            case InOrder(parts) if parts:
                return expressions.sequence([*(self.lowered(part, None) for part in parts[:-1]), self.lowered(parts[-1], ends)])
        return expressions.sequence([self._alone(format_), self._one_of(ends)])

    def _alone(self, format_: Format) -> Expression:
        """A format that knows by itself where it ends."""
        match format_:
            case ConstText(text):
                return self._spelled(text)
            case JsonValue():
                return self._json(format_)
            case MatchingText(pattern, pointer):
                return self._regex(pattern, pointer)
            case EbnfText(text, pointer):
                return self._ebnf(text, pointer)
            case SpecialToken(token):
                return Tokens((self._token(token),))
            case Times(part, least, most):
                return expressions.repeat(self.lowered(part, None), least, most)
            case Tag():
                return self._tag(format_, 0)
            case SeparatedTags():
                return self._separated(format_)
        return EMPTY     # an empty InOrder

    # --- parts

    def _spelled(self, text: str) -> Expression:
        """A text, whose parts may be written as special tokens."""
        self._budget.spend("grammar_symbols", len(text))
        places = [(at, at + len(special), token) for special, token in self._specials_in([text]) for at in _places(special, text)]
        return Spelling(text, tuple(places)) if places else Text(lexemes.of_text(text)) if text else EMPTY

    def _specials_in(self, texts: Iterable[str]) -> list[tuple[str, int]]:
        known = self._specials or {}
        return [(special, token) for special, token in known.items() if special and any(special in text for text in texts)]

    def _one_of(self, ends: tuple[str, ...] | None) -> Expression:
        return EMPTY if ends is None else expressions.choice(map(self._spelled, ends))

    def _json(self, value: JsonValue) -> Expression:
        try:
            form = normal_form(value.schema, self._budget, Enforcement(best_effort=self._writing.unsupported == "ignore"))
        except GrammarTooLarge as error:
            raise GrammarTooLarge(error.limit, error.allowed, error.needed, keyword=error.keyword,
                                  pointer=value.pointer + error.pointer) from None
        except SchemaError as error:
            raise SchemaError(error.reason, keyword=error.keyword, pointer=value.pointer + error.pointer) from None
        self.not_enforced += [replace(left, pointer=value.pointer + left.pointer) for left in form.not_enforced]
        return Json(form, style_of(self._writing.style, "any" if value.any_order else self._writing.property_order))

    def _regex(self, pattern: str, pointer: str) -> Expression:
        try:
            dfa = automata.from_regex(regex.parse(pattern, self._budget), self._budget)
        except PatternError as error:
            raise SchemaError(str(error), pointer=pointer) from None
        if dfa is None:
            raise SchemaError(f"no text matches the regex {pattern[:200]!r}", pointer=pointer)
        return Text(dfa)

    def _ebnf(self, text: str, pointer: str) -> Expression:
        try:
            source = read(text, self._budget)
            rules = lowered(source, self._specials, style_of(self._writing.style, self._writing.property_order), self._budget)
            start = first_rule(source)
        except EbnfError as error:
            raise SchemaError(str(error), pointer=pointer) from None
        names = {name: Rule(f"{len(self.rules)} {name}") for name in rules}
        self.rules.update({names[name].name: with_rules(body, names, self._budget) for name, body in rules.items()})
        return names[start]

    def _token(self, token: int | str) -> int:
        specials = self._specials
        if isinstance(token, int):
            if token not in (SPECIAL_IDS if specials is None else specials.values()):
                raise SchemaError(f"{token} is no special token of the model")
            return token
        if specials is None:
            return 0
        if token not in specials:
            raise SchemaError(f"the model has no special token {token[:200]!r}")
        return specials[token]

    # --- free text and tags

    def _any_text(self, without: tuple[str, ...], ends: tuple[str, ...] | None) -> Expression:
        if ends is None and not without:
            return Text(automata.ANY_TEXT)
        return self._free([], without, ends)

    def _free(self, exits: list[Exit], without: tuple[str, ...], ends: tuple[str, ...] | None,
              jumps: tuple[Exit, ...] = ()) -> Expression:
        stops = [Exit(end, EMPTY, leaves=True) for end in ends or ()]
        kept = tuple(text for text in without if text not in (ends or ()))
        cues = [exit_.cue for exit_ in (*exits, *stops, *jumps)]
        return FreeText((*exits, *stops), kept, may_end=ends is None, specials=tuple(self._specials_in(cues)), jumps=jumps)

    def _tag(self, tag: Tag, n_read: int) -> Expression:
        """A tag of whose beginning `n_read` characters are already there."""
        return expressions.sequence([self._spelled(tag.begin[n_read:]), self.lowered(tag.content, tag.ends)])

    def _triggered(self, format_: TriggeredTags, ends: tuple[str, ...] | None) -> Expression:
        of_trigger = _by_trigger(format_)
        behind = self._one_of(ends) if format_.stop_after_first else EMPTY
        exits = [Exit(trigger, expressions.sequence([expressions.choice(self._tag(tag, len(trigger)) for tag in tags), behind]),
                      format_.stop_after_first) for trigger, tags in of_trigger.items()]
        if not format_.at_least_one:
            return self._free(exits, format_.without, ends, self._jumps(of_trigger, behind, format_.stop_after_first))
        first = expressions.choice(self._tag(tag, 0) for tag in format_.tags)
        if format_.stop_after_first:
            return expressions.sequence([first, behind])
        return expressions.sequence([first, self._free(exits, format_.without, ends, self._jumps(of_trigger, behind, False))])

    def _jumps(self, of_trigger: dict[str, list[Tag]], behind: Expression, leaves: bool) -> tuple[Exit, ...]:
        """The special tokens that hold more of a tag's beginning than the trigger."""
        found: list[Exit] = []
        for special, _ in self._specials_in(tag.begin for tags in of_trigger.values() for tag in tags):
            begun = [tag for trigger, tags in of_trigger.items() for tag in tags
                     if tag.begin.startswith(special) and len(special) > len(trigger)]
            if begun:
                then = expressions.sequence([expressions.choice(self._tag(tag, len(special)) for tag in begun), behind])
                found.append(Exit(special, then, leaves))
        return tuple(found)

    def _separated(self, format_: SeparatedTags) -> Expression:
        one = expressions.choice(self._tag(tag, 0) for tag in format_.tags)
        if not format_.stop_after_first:
            another = expressions.sequence([self._spelled(format_.separator), one])
            one = expressions.sequence([one, expressions.repeat(another, 0, None)])
        return one if format_.at_least_one else expressions.optional(one)


def _places(part: str, text: str) -> Iterable[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _by_trigger(format_: TriggeredTags) -> dict[str, list[Tag]]:
    """The tags that each trigger begins: of two triggers that fit, the one that is complete first."""
    found: dict[str, list[Tag]] = {trigger: [] for trigger in format_.triggers}
    for tag in format_.tags:
        fitting = [trigger for trigger in found if tag.begin.startswith(trigger)]
        if not fitting:
            raise SchemaError(f"no trigger begins the tag {tag.begin[:200]!r}")
        found[min(fitting, key=len)].append(tag)
    for trigger, tags in found.items():
        if not tags:
            raise SchemaError(f"the trigger {trigger[:200]!r} begins no tag")
    return found
