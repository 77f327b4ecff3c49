"""The doors from a schema, a regex or a list of choices to a compiled grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grammar import automata, regex
from grammar.budget import Budget, Limits
from grammar.emit import Style, emit_json, emit_text
from grammar.errors import PatternError, SchemaError
from grammar.matcher import CompiledGrammar
from grammar.normal import normal_form
from grammar.vocabulary import Vocabulary

_ORDERS = {"schema": True, "any": False}
_STYLES = {"free": True, "compact": False}


def compile_json_schema(
    schema: dict[str, Any] | bool, vocabulary: Vocabulary, *, property_order: str = "schema", style: str = "free",
    limits: Limits | None = None,
) -> CompiledGrammar:
    """The grammar of the JSON texts whose value satisfies `schema`.

    property_order: "schema" (properties come in the schema's order) or "any". style: "free" (every spelling of
    strings that JSON has; nothing, one space, or up to two newlines and an indent at every place between tokens of JSON) or
    "compact" (no whitespace, and one spelling for each character: the one of `json.dumps` with ensure_ascii=False).

    Raises SchemaError where the schema is malformed, satisfied by no value, or uses what is not enforced; GrammarTooLarge,
    one of those, where `limits` do not suffice; ValueError for an unknown option.
    """
    writing = _style(property_order, style)
    budget = Budget(limits)
    return CompiledGrammar(emit_json(normal_form(schema, budget), writing, budget), vocabulary)


def check_json_schema(schema: dict[str, Any] | bool, *, property_order: str = "schema", limits: Limits | None = None) -> None:
    """Raise what `compile_json_schema` would raise, without a vocabulary."""
    budget = Budget(limits)
    emit_json(normal_form(schema, budget), _style(property_order, "free"), budget)


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


def _style(property_order: str, style: str) -> Style:
    if property_order not in _ORDERS:
        raise ValueError(f"property_order must be one of {sorted(_ORDERS)}, not {property_order!r}")
    if style not in _STYLES:
        raise ValueError(f"style must be one of {sorted(_STYLES)}, not {style!r}")
    return Style(spaces=_STYLES[style], escapes=_STYLES[style], ordered=_ORDERS[property_order])
