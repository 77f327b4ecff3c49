"""Grammars: from a JSON schema, a regex, a list of choices, a context-free grammar or tagged tools to masks over a vocabulary.

    vocabulary = Vocabulary(token_bytes, eos_ids=[2])
    matcher = compile_json_schema({"type": "integer"}, vocabulary).new_state()
    matcher.fill_mask(row)          # row: uint32, one bit for each token
    matcher.accept(token_id)

Masks are sound (an answer they let through, ended where end-of-sequence is allowed, satisfies the schema), complete (every value
that satisfies it can be written) and without dead ends. What cannot be honoured is refused with a `SchemaError` when compiled.
"""

from grammar.algebra.enforcement import NotEnforced
from grammar.budget import Limits
from grammar.compile import check_json_schema, compile_choice, compile_json_object, compile_json_schema, compile_regex
from grammar.ebnf.compile import check_ebnf, compile_ebnf
from grammar.errors import EbnfError, GrammarTooLarge, SchemaError
from grammar.matcher import CompiledGrammar, Matcher, fill_masks
from grammar.tags.forms import read_structural_tags
from grammar.tags.structural_tags import check_structural_tags, compile_structural_tags
from grammar.tags.tools import CALL_FORMS, CallForm, Tool, tool_grammar, with_reasoning
from grammar.vocabulary import Vocabulary

__all__ = [
    "CALL_FORMS", "CallForm", "CompiledGrammar", "EbnfError", "GrammarTooLarge", "Limits", "Matcher", "NotEnforced",
    "SchemaError", "Tool", "Vocabulary", "check_ebnf", "check_json_schema", "check_structural_tags", "compile_choice",
    "compile_ebnf", "compile_json_object", "compile_json_schema", "compile_regex", "compile_structural_tags", "fill_masks",
    "read_structural_tags", "tool_grammar", "with_reasoning"]
