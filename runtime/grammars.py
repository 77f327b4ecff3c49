"""Compiles what requests ask of their answers, away from the step, once for each distinct ask."""

from __future__ import annotations

import json
from collections import OrderedDict
from concurrent.futures import Future
from functools import partial

import grammar
from grammar import CompiledGrammar, Limits, Vocabulary
from grammar.ebnf.compile import compile_ebnf
from grammar.tags.forms import read_structural_tags
from grammar.tags.structural_tags import compile_structural_tags

from .compile_lanes import CompileLanes
from .protocol import GrammarSpec
from .tokenizer import Tokenizer


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    """The tokenizer's vocabulary, prepared for grammars."""
    return Vocabulary(tokenizer.token_bytes, tokenizer.eos_ids, special_tokens=tokenizer.special_tokens, encode=tokenizer.encode)


class GrammarShelf:
    """Compiled grammars by what they were compiled from; refusals are kept too, so nothing is compiled twice.

    `get` returns at once; the future is done when the grammar is, or holds a grammar.SchemaError. Compiling runs in threads of
    its own, under the grammar's own budgets, so that a step never waits for it. Keeps the `capacity` last used. Who got a future
    that is not done waits for it, or tells by `release` that it does not any more: what nobody waits for is not compiled.
    """

    def __init__(self, vocabulary: Vocabulary, capacity: int = 256) -> None:
        self._vocabulary = vocabulary
        self._capacity = capacity
        self._shelf: OrderedDict[GrammarSpec, Future[CompiledGrammar]] = OrderedDict()
        self._wanted: dict[GrammarSpec, int] = {}       # how many wait for what is not done
        self._lanes = CompileLanes("grammar")

    def get(self, spec: GrammarSpec, owner: str = "") -> Future[CompiledGrammar]:
        """The grammar, or the promise of one; owners take turns in having theirs compiled."""
        future = self._shelf.get(spec)
        if future is None:
            future = self._shelf[spec] = self._lanes.submit(owner, partial(compiled, spec, self._vocabulary))
            self._wanted[spec] = 0
            while len(self._shelf) > self._capacity:
                self._forget(next(iter(self._shelf)))
        if future.done():
            self._wanted.pop(spec, None)
        else:
            self._wanted[spec] += 1
        self._shelf.move_to_end(spec)
        return future

    def release(self, spec: GrammarSpec) -> None:
        """One who waited has gone."""
        future = self._shelf.get(spec)
        if future is None or future.done() or spec not in self._wanted:
            return
        self._wanted[spec] -= 1
        if self._wanted[spec] == 0 and future.cancel():
            self._forget(spec)

    def _forget(self, spec: GrammarSpec) -> None:
        del self._shelf[spec]
        self._wanted.pop(spec, None)


def compiled(spec: GrammarSpec, vocabulary: Vocabulary, limits: Limits) -> CompiledGrammar:
    """What `spec` asks for. Raises grammar.SchemaError."""
    match spec.kind:
        case "json_schema":
            return grammar.compile_json_schema(json.loads(spec.source), vocabulary, style=spec.style, limits=limits,
                                               property_order=spec.property_order, unsupported=spec.unsupported)
        case "json_object":
            return grammar.compile_json_object(vocabulary, style=spec.style)
        case "regex":
            return grammar.compile_regex(spec.source, vocabulary, limits=limits)
        case "choice":
            return grammar.compile_choice(json.loads(spec.source), vocabulary, limits=limits)
        case "ebnf":
            return compile_ebnf(spec.source, vocabulary, style=spec.style, limits=limits)
        case "structural_tag":
            tags = read_structural_tags(json.loads(spec.source))
            return compile_structural_tags(tags, vocabulary, style=spec.style, limits=limits,
                                           property_order=spec.property_order, unsupported=spec.unsupported)
