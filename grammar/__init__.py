"""Grammars: from a JSON schema, a regex or a list of choices to masks over a vocabulary's tokens.

    vocabulary = Vocabulary(token_bytes, eos_ids=[2])
    matcher = compile_json_schema({"type": "integer"}, vocabulary).new_state()
    matcher.fill_mask(row)          # row: uint32, one bit for each token
    matcher.accept(token_id)

Masks are sound (an answer they let through, ended where end-of-sequence is allowed, satisfies the schema), complete (every value
that satisfies it can be written) and without dead ends. What cannot be honoured is refused with a `SchemaError` when compiled.
"""

from grammar.budget import Limits
from grammar.compile import check_json_schema, compile_choice, compile_json_object, compile_json_schema, compile_regex
from grammar.errors import GrammarTooLarge, SchemaError
from grammar.matcher import CompiledGrammar, Matcher
from grammar.vocabulary import Vocabulary

__all__ = [
    "CompiledGrammar", "GrammarTooLarge", "Limits", "Matcher", "SchemaError", "Vocabulary", "check_json_schema", "compile_choice",
    "compile_json_object", "compile_json_schema", "compile_regex"]
