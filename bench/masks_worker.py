"""One engine in one process: compiles schemas and feeds instances through masks, timed by the CPU.

    python -m bench.masks_worker ENGINE         (started by bench.masks, not by hand)

Jobs come as JSON lines on standard input, reports leave as JSON lines on standard output. The first line in is the vocabulary;
then every line is a schema with its instances as token ids. Beside the standard library, numpy and tokenizers only the engine
itself is imported, so that an engine can run in an interpreter of its own.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, Protocol

import numpy as np

from bench.masks_vocabulary import Tokens

MEMORY_LIMIT_BYTES = 16 << 30       # of addresses, which engines reserve freely


class Refused(Exception):
    """The engine says, cleanly, that it can't do this schema."""


class State(Protocol):
    """One answer so far."""

    def fill(self) -> np.ndarray: ...               # [n_words] 32 bits each; stays as it is until the next fill
    def accept(self, token: int) -> bool: ...


class Engine(Protocol):
    version: str

    def compile(self, schema: Any) -> Callable[[], State]: ...      # -> what makes a fresh state; raises Refused


class Ours:
    """This repository's engine; options go to `compile_json_schema`."""

    def __init__(self, tokens: Tokens, **options: Any) -> None:
        import grammar

        self._grammar, self._options = grammar, options
        self._vocabulary = grammar.Vocabulary(tokens.spellings, eos_ids=[tokens.eos])
        self._row = np.zeros(tokens.n_words, dtype=np.uint32)
        self.version = "this checkout"

    def compile(self, schema: Any) -> Callable[[], State]:
        try:
            compiled = self._grammar.compile_json_schema(schema, self._vocabulary, **self._options)
        except self._grammar.SchemaError as error:
            raise Refused(str(error)) from None
        return lambda: _OurState(compiled.new_state(), self._row)


class _OurState:
    def __init__(self, matcher: Any, row: np.ndarray) -> None:
        self._matcher, self._row = matcher, row
        self.accept = matcher.accept

    def fill(self) -> np.ndarray:
        self._matcher.fill_mask(self._row)
        return self._row


class LLGuidance:
    def __init__(self, tokens: Tokens) -> None:
        import llguidance

        self._module = llguidance
        self._tokenizer = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_Spelling(tokens)), n_vocab=len(tokens.spellings), eos_token=tokens.eos)
        self._row = np.zeros(tokens.n_words, dtype=np.int32)
        self.version = _version_of("llguidance")

    def compile(self, schema: Any) -> Callable[[], State]:
        grammar = self._module.LLMatcher.grammar_from_json_schema(json.dumps(schema))
        root = self._module.LLMatcher(self._tokenizer, grammar, log_level=0)
        if root.is_error():
            raise Refused(root.get_error())
        return lambda: _LLGuidanceState(root.deep_copy(), self._row)


class _Spelling:
    """What llguidance asks of a tokenizer. It encodes forced text, of which it then allows only the first token."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = [spelling or b"\xff[%d]" % token for token, spelling in enumerate(tokens.spellings)]
        self.eos_token_id, self.bos_token_id = tokens.eos, None
        self.special_token_ids = [token for token, spelling in enumerate(tokens.spellings) if not spelling]
        self._encode = tokens.encode

    def __call__(self, text: str | bytes) -> list[int]:
        if isinstance(text, bytes):         # it asks which of the two is taken
            raise TypeError("texts only")
        return self._encode(text)


class _LLGuidanceState:
    def __init__(self, matcher: Any, row: np.ndarray) -> None:
        self._matcher, self._row, self._at, self._n_bytes = matcher, row, row.ctypes.data, row.nbytes
        self.accept = matcher.consume_token

    def fill(self) -> np.ndarray:
        self._matcher.unsafe_compute_mask_ptr(self._at, self._n_bytes)
        if self._matcher.is_error():
            raise RuntimeError(self._matcher.get_error())
        return self._row


class XGrammar:
    """With masks built on first use, and objects open where the schema leaves them open."""

    def __init__(self, tokens: Tokens) -> None:
        import xgrammar

        self._module = xgrammar
        info = xgrammar.TokenizerInfo(tokens.spellings, xgrammar.VocabType.RAW, vocab_size=len(tokens.spellings),
                                      stop_token_ids=[tokens.eos])
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, enable_dynamic_compilation=True)
        self._mask = xgrammar.allocate_token_bitmask(1, len(tokens.spellings))
        self.version = _version_of("xgrammar")

    def compile(self, schema: Any) -> Callable[[], State]:
        try:
            compiled = self._compiler.compile_json_schema(json.dumps(schema), strict_mode=False)
        except Exception as error:          # all errors of its front end are a clean no
            raise Refused(_short(error)) from None
        return lambda: _XGrammarState(self._module.GrammarMatcher(compiled), self._mask)


class _XGrammarState:
    def __init__(self, matcher: Any, mask: Any) -> None:
        self._matcher, self._mask = matcher, mask
        self._row: np.ndarray = mask.numpy()[0]
        self.accept = matcher.accept_token

    def fill(self) -> np.ndarray:
        if self._matcher.is_terminated():
            self._row[:] = 0
        else:
            self._matcher.fill_next_token_bitmask(self._mask)
        return self._row


def _version_of(package: str) -> str:
    from importlib.metadata import version

    return version(package)


ENGINES: dict[str, Callable[[Tokens], Engine]] = {
    "ours": Ours,
    "ours-any-order": lambda tokens: Ours(tokens, property_order="any"),
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
}


Report = Callable[[dict[str, Any]], None]


def run_job(engine: Engine, eos: int, job: dict[str, Any], report: Report, clock_cost_ns: int = 0) -> None:
    """Compile one schema and feed its instances; one report after the first mask, and one at the end.

    An instance counts as accepted when each of its tokens is in the mask before it, and `eos` in the mask behind the last.
    """
    clock = time.process_time_ns
    began_ns = clock()
    try:
        new_state = engine.compile(job["schema"])
    except Refused as error:
        report({"outcome": "refused", "error": str(error)[:300], "compile_ms": (clock() - began_ns) / 1e6})
        return
    compiled_ns = clock()
    new_state().fill()
    masked_ns = clock()
    report({"compile_ms": (compiled_ns - began_ns) / 1e6, "first_mask_ms": (masked_ns - began_ns) / 1e6})
    instances = []
    for ids, valid in job["instances"]:
        state, steps_us = "accepted", list[float]()
        try:
            state = _feed(new_state(), ids, eos, steps_us, clock_cost_ns)
        except Exception as error:
            state = f"error: {_short(error)}"
        instances.append({"valid": valid, "state": state, "tokens": len(ids), "steps_us": steps_us})
    report({"outcome": "ok", "instances": instances})


def _feed(state: State, ids: Sequence[int], eos: int, steps_us: list[float], cost_ns: int) -> str:
    """Appends the time between masks for each mask after the first: accept the last token, fill the next mask."""
    clock = time.process_time_ns
    if not _allows(state.fill(), ids[0] if ids else eos):
        return "refused"
    for n, token in enumerate(ids, 1):
        began_ns = clock()
        taken = state.accept(token)
        row = state.fill()
        steps_us.append(max(0, clock() - began_ns - cost_ns) / 1e3)
        if not taken:
            return "mask and accept disagree"
        if not _allows(row, ids[n] if n < len(ids) else eos):
            return "refused" if n < len(ids) else "refused at the end"
    return "accepted"


def _allows(row: np.ndarray, token: int) -> bool:
    return bool(int(row[token >> 5]) >> (token & 31) & 1)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def clock_cost_ns() -> int:
    """What reading the clock costs by itself."""
    clock = time.process_time_ns
    costs = []
    for _ in range(2000):
        began_ns = clock()
        costs.append(clock() - began_ns)
    return int(np.median(costs))


def serve(name: str, jobs: IO[str], reports: IO[str]) -> None:
    def report(message: dict[str, Any]) -> None:
        reports.write(json.dumps(message) + "\n")
        reports.flush()

    tokens = Tokens.from_json(json.loads(jobs.readline()))
    try:
        engine = ENGINES[name](tokens)
    except Exception as error:
        report({"unavailable": _short(error)})
        return
    report({"version": engine.version})
    gc.collect()
    gc.freeze()
    gc.disable()                            # collections between jobs, not within them
    cost_ns = clock_cost_ns()
    for line in jobs:
        try:
            run_job(engine, tokens.eos, json.loads(line), report, cost_ns)
        except Exception as error:
            report({"outcome": "failed", "error": _short(error)})
        gc.collect()


def main() -> None:
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)                           # what an engine prints is no report
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    serve(sys.argv[1], sys.stdin, reports)


if __name__ == "__main__":
    main()
