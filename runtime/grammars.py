"""Compiles what requests ask of their answers, away from the step, once for each distinct ask."""

from __future__ import annotations

import json
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor

import grammar
from grammar import CompiledGrammar, Vocabulary

from .protocol import GrammarSpec


class GrammarShelf:
    """Compiled grammars by what they were compiled from; refusals are kept too.

    `get` returns at once; the future is done when the grammar is, or holds a grammar.SchemaError. Compiling
    runs in one thread, under the grammar's own budgets, so that a step never waits for it. Keeps the
    `capacity` last used.
    """

    def __init__(self, vocabulary: Vocabulary, capacity: int = 256) -> None:
        self._vocabulary = vocabulary
        self._capacity = capacity
        self._shelf: OrderedDict[GrammarSpec, Future[CompiledGrammar]] = OrderedDict()
        self._compiler = ThreadPoolExecutor(max_workers=1, thread_name_prefix="grammar")

    def get(self, spec: GrammarSpec) -> Future[CompiledGrammar]:
        future = self._shelf.get(spec)
        if future is None:
            future = self._shelf[spec] = self._compiler.submit(self._compile, spec)
            while len(self._shelf) > self._capacity:
                self._shelf.popitem(last=False)
        self._shelf.move_to_end(spec)
        return future

    def _compile(self, spec: GrammarSpec) -> CompiledGrammar:
        match spec.kind:
            case "json_schema":
                return grammar.compile_json_schema(json.loads(spec.source), self._vocabulary, style=spec.style)
            case "json_object":
                return grammar.compile_json_object(self._vocabulary, style=spec.style)
            case "regex":
                return grammar.compile_regex(spec.source, self._vocabulary)
            case "choice":
                return grammar.compile_choice(json.loads(spec.source), self._vocabulary)
