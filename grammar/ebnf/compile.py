"""The door from the text of a context-free grammar to a compiled grammar."""

from __future__ import annotations

from collections.abc import Mapping

from grammar.budget import Budget, Limits
from grammar.compile import style_of
from grammar.ebnf.emission import emit_rules
from grammar.ebnf.expressions import Rules
from grammar.ebnf.folding import folded, pruned
from grammar.ebnf.lowering import lowered
from grammar.ebnf.reader import read
from grammar.ebnf.recursion import without_empty_rules, without_recursion_at_the_ends
from grammar.ebnf.syntax import Source
from grammar.errors import EbnfError, SchemaError
from grammar.matcher import CompiledGrammar
from grammar.vocabulary import Vocabulary
from kernels.pushdown import Tables

SYNTAXES = ("lark", "gbnf")


def compile_ebnf(text: str, vocabulary: Vocabulary, *, start: str | None = None, syntax: str | None = None, style: str = "free",
                 limits: Limits | None = None) -> CompiledGrammar:
    """The grammar of the texts that a context-free grammar derives from its start rule.

    syntax: "lark", "gbnf", or None to tell by the text. start: the start rule; None takes `start`, in GBNF `root`. style: how
    JSON inside the grammar (%json) is written, as in `compile_json_schema`.

    Raises EbnfError, with line and column, where the text is wrong; SchemaError where no text can be derived; GrammarTooLarge,
    a SchemaError too, where `limits` do not suffice; ValueError for an unknown option.
    """
    tables = _tables(text, vocabulary.special_tokens, start, syntax, style, Budget(limits))
    return CompiledGrammar(tables, vocabulary)


def check_ebnf(text: str, *, start: str | None = None, syntax: str | None = None, limits: Limits | None = None) -> None:
    """Raise what `compile_ebnf` would raise, without a vocabulary: special tokens are taken to exist."""
    _tables(text, None, start, syntax, "free", Budget(limits))


def _tables(text: str, specials: Mapping[str, int] | None, start: str | None, syntax: str | None, style: str,
            budget: Budget) -> Tables:
    if syntax is not None and syntax not in SYNTAXES:
        raise ValueError(f"syntax must be one of {list(SYNTAXES)}, not {syntax!r}")
    source = read(text, budget, syntax)
    first = first_rule(source, start)
    return tables_of(lowered(source, specials, style_of(style), budget), first, budget)


def first_rule(source: Source, start: str | None = None) -> str:
    """The rule that a grammar starts from. Raises EbnfError where there is none of that name."""
    wanted = (start,) if start is not None else ("root", "start") if source.gbnf else ("start", "root")
    for name in wanted:
        if name in source.definitions and not source.is_terminal(name):
            return name
    raise EbnfError(f"there is no rule {wanted[0]!r} to start from", 1, 1)


def tables_of(rules: Rules, start: str, budget: Budget) -> Tables:
    """The machine of the texts of rule `start`."""
    rules = pruned(rules, start, budget)
    if not rules:
        raise SchemaError("no text can be derived from the grammar")
    rules, nullable = without_empty_rules(folded(rules, budget), budget)
    rest = pruned(rules, start, budget)
    if rest:
        rest = pruned(without_recursion_at_the_ends(rest, budget), start, budget)
        rest = folded(rest, budget)
    return emit_rules(rest, start, start in nullable, budget)
