"""The doors from a schema, a regex or a list of choices to a compiled grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from grammar.algebra.enforcement import Enforcement, NotEnforced
from grammar.algebra.normal import NormalForm, normal_form
from grammar.budget import Budget, Limits
from grammar.emission.emit import emit_json, emit_text
from grammar.emission.style import Style
from grammar.errors import PatternError, SchemaError
from grammar.matcher import CompiledGrammar
from grammar.text import automata, regex
from grammar.vocabulary import Vocabulary
from kernels.pushdown import Tables

T = TypeVar("T")

_ORDERS = {"schema": True, "any": False}
_STYLES = {"free": Style(), "compact": Style(spaces=False, escapes=False),
           "pretty": Style(spaces=False, escapes=False, pretty=True)}
_UNSUPPORTED = {"refuse": False, "ignore": True}


def compile_json_schema(
    schema: dict[str, Any] | bool, vocabulary: Vocabulary, *, property_order: str = "schema", style: str = "free",
    limits: Limits | None = None, unsupported: str = "refuse",
) -> CompiledGrammar:
    """The grammar of the JSON texts whose value satisfies `schema`.

    property_order: "schema" (properties come in the schema's order) or "any". style: "free" (every spelling of
    strings that JSON has; nothing, one space, or up to two newlines and an indent at every place between tokens of JSON),
    "compact" (no whitespace, and one spelling for each character: the one of `json.dumps` with ensure_ascii=False) or "pretty"
    (as compact, with the whitespace of `json.dumps` with indent=2). unsupported: "refuse" a schema of which something cannot be
    enforced exactly, or "ignore" that; the grammar's `not_enforced` then lists what was left out.

    Raises SchemaError where the schema is malformed, satisfied by no value, or refused; GrammarTooLarge, one of those, where
    `limits` do not suffice; ValueError for an unknown option.
    """
    tables, form = _compiled(schema, style_of(style, property_order), limits, unsupported)
    grammar = CompiledGrammar(tables, vocabulary)
    grammar.not_enforced = form.not_enforced
    return grammar


def check_json_schema(schema: dict[str, Any] | bool, *, property_order: str = "schema", limits: Limits | None = None,
                      unsupported: str = "refuse") -> tuple[NotEnforced, ...]:
    """Raise what `compile_json_schema` would raise, without a vocabulary; returns what it would leave out."""
    return _compiled(schema, style_of("free", property_order), limits, unsupported)[1].not_enforced


def _compiled(schema: Any, style: Style, limits: Limits | None, unsupported: str) -> tuple[Tables, NormalForm]:
    budget = Budget(limits)
    form = normal_form(schema, budget, Enforcement(_option("unsupported", _UNSUPPORTED, unsupported)))
    return emit_json(form, style, budget), form


def compile_json_object(vocabulary: Vocabulary, style: str = "free") -> CompiledGrammar:
    """The grammar of all JSON objects."""
    return compile_json_schema({"type": "object"}, vocabulary, style=style)


def compile_regex(pattern: str, vocabulary: Vocabulary, *, limits: Limits | None = None) -> CompiledGrammar:
    """The grammar of the texts that match `pattern` as a whole.

    Raises SchemaError, without pointer, for a regex that is invalid, not supported or matched by nothing.
    """
    budget = Budget(limits)
    try:
        dfa = automata.from_regex(regex.parse(pattern, budget), budget)
    except PatternError as error:
        raise SchemaError(str(error)) from None
    if dfa is None:
        raise SchemaError(f"no text matches the regex {pattern[:200]!r}")
    return CompiledGrammar(emit_text(dfa, budget), vocabulary)


def compile_choice(choices: Sequence[str], vocabulary: Vocabulary, *, limits: Limits | None = None) -> CompiledGrammar:
    """The grammar of a list of texts, one of which is the answer. Raises SchemaError."""
    if not choices or not all(isinstance(choice, str) for choice in choices):
        raise SchemaError("choices must be a list of at least one string")
    if any(0xD800 <= ord(char) <= 0xDFFF for choice in choices for char in choice):
        raise SchemaError("a choice holds a lone surrogate, which is no character")
    budget = Budget(limits)
    budget.check("table_states", sum(map(len, choices)))
    return CompiledGrammar(emit_text(automata.from_words(choices), budget), vocabulary)


def style_of(style: str, property_order: str = "schema") -> Style:
    """How JSON is written under these options. Raises ValueError for an unknown one."""
    return replace(_option("style", _STYLES, style), ordered=_option("property_order", _ORDERS, property_order))


def _option(name: str, choices: Mapping[str, T], chosen: str) -> T:
    if chosen not in choices:
        raise ValueError(f"{name} must be one of {sorted(choices)}, not {chosen!r}")
    return choices[chosen]
