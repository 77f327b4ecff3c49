"""An engine in memory for the gateway's tests: the real protocol, no model.

Its tokens are bytes. Without a grammar its answer is `You said: ` and the prompt's last line of text; with one it is a
small answer that fits. It remembers prompts per cache domain in blocks of 16 tokens, as the real cache does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.errors import EngineAsleep, EngineBusy, EngineUnavailable, RequestFaulted, RuntimeFault
from runtime.protocol import (
    Beams,
    Delta,
    EngineStats,
    Finished,
    Found,
    GenerationRequest,
    GrammarSpec,
    ModelInfo,
    PoolStats,
    TokenLogprob,
    Usage,
)

BLOCK_TOKENS = 16
TURN_START, TURN_END = 256, 257
VOCABULARY_SIZE = 258


class ByteTokenizer:
    """One token a byte, and two special ones around each turn."""

    token_bytes = (*(bytes([byte]) for byte in range(256)), b"", b"")

    def encode_prompt(self, text: str) -> list[int]:
        return list(text.encode("utf-8"))

    def encode_chat(self, messages: Sequence[dict[str, Any]]) -> list[int]:
        tokens: list[int] = []
        for message in messages:
            if message["content"] == "REFUSED BY TEMPLATE":
                raise ValueError("roles must alternate")
            tokens += [TURN_START, *f"{message['role']}\n{message['content']}".encode(), TURN_END, 10]
        return [*tokens, TURN_START, *b"assistant\n"]


def text_of(tokens: Sequence[int]) -> str:
    return bytes(token for token in tokens if token < 256).decode("utf-8", "replace")


def answer_text(request: GenerationRequest) -> str:
    """What the engine says to a prompt. The seed is part of it, so that choices differ."""
    if request.grammar is not None:
        return fitting(request.grammar)
    lines = [line for line in text_of(request.prompt_tokens).removesuffix("assistant\n").split("\n") if line]
    said = f"You said: {lines[-1] if lines else ''}"
    return said if request.sampling.seed is None else f"{said} [seed {request.sampling.seed}]"


def fitting(grammar: GrammarSpec) -> str:
    if grammar.kind == "json_schema":
        return json.dumps(smallest(json.loads(grammar.source)), separators=(",", ":"))
    if grammar.kind == "choice":
        return str(json.loads(grammar.source)[0])
    return "{}" if grammar.kind == "json_object" else grammar.source


def smallest(schema: dict[str, Any] | bool, root: dict[str, Any] | None = None) -> Any:
    """A small value of a plain schema."""
    if isinstance(schema, bool):
        return None
    root = schema if root is None else root
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return smallest(target, root)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return smallest(schema["anyOf"][-1], root)
    match schema.get("type"):
        case "object":
            return {key: smallest(value, root) for key, value in schema.get("properties", {}).items()}
        case "array":
            return [smallest(schema["items"], root)] * schema.get("minItems", 0)
        case kind:
            return {"string": "text", "integer": 1, "number": 1.5, "boolean": True}.get(kind)


@dataclass(eq=False)
class MemoryGeneration:
    """One answer, a byte a token."""

    engine: MemoryEngine
    request: GenerationRequest
    cancelled: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def cancel(self) -> None:
        if not self.cancelled and self in self.engine.active:
            self.cancelled = True
            self.engine.cancelled.append(self.request.request_id)
            self.engine.active.remove(self)
            self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Delta | Beams | Finished]:
        try:
            async for event in self._events():
                yield event
        finally:
            if self in self.engine.active:
                self.engine.active.remove(self)

    async def _events(self) -> AsyncIterator[Delta | Beams | Finished]:
        request, engine = self.request, self.engine
        if engine.first_delay_s:
            await asyncio.sleep(engine.first_delay_s)
        cached = engine.remember(request)
        said = answer_text(request).encode()
        stops = [at for stop in request.sampling.stop if (at := said.find(stop.encode())) >= 0]
        said = said[: min(stops)] if stops else said
        whole = said * engine.repeat
        if request.beams is not None:
            for event in self._searched(whole, cached):
                yield event
            return
        shown = whole[: request.sampling.max_tokens]
        pending = b""
        for n, byte in enumerate(shown, 1):
            if engine.fault_after is not None and n > engine.fault_after:
                raise engine.fault or RequestFaulted("this row raised")
            await asyncio.sleep(engine.token_delay_s)
            pending += bytes([byte])
            text, pending = _whole_characters(pending)
            yield Delta(request.request_id, text, (byte,), self._logprobs(byte))
        engine.generated_tokens += len(shown)
        n_prompt = len(request.prompt_tokens)
        usage = Usage(n_prompt, cached, n_prompt - cached, len(shown))
        reason = "length" if len(whole) > request.sampling.max_tokens else "stop"
        engine.active.remove(self)
        logprob = None if request.sampling.logprobs is None else -engine.surprise(request) * len(shown)
        yield Finished(request.request_id, reason, usage, 0.0, logprob)

    def _searched(self, said: bytes, cached: int) -> tuple[Beams, Finished]:
        """What a beam search tells: the answer, numbered."""
        request, beams = self.request, self.request.beams
        answers = tuple(
            Found(f"{said.decode()} #{i}", tuple(said), "stop", -float(i), self._logprobs(65)) for i in range(beams.n))
        n_prompt = len(request.prompt_tokens)
        self.engine.active.remove(self)
        usage = Usage(n_prompt, cached, n_prompt - cached, beams.width * len(said))
        return Beams(request.request_id, answers), Finished(request.request_id, "stop", usage, 0.0)

    def _logprobs(self, byte: int) -> tuple[TokenLogprob, ...]:
        wanted = self.request.sampling.logprobs
        if wanted is None:
            return ()
        others = [(byte, bytes([byte]), -0.25), (0, b"\0", float("-inf")), *((i, bytes([i]), -5.0 - i) for i in range(1, 20))]
        return (TokenLogprob(byte, bytes([byte]), -0.25, tuple(others[:wanted])),)


def _whole_characters(data: bytes) -> tuple[str, bytes]:
    """As much of `data` as is whole characters, and the rest."""
    for end in range(len(data), max(len(data) - 4, -1), -1):
        try:
            return data[:end].decode(), data[end:]
        except UnicodeDecodeError:
            continue
    return "", data


class MemoryEngine:
    """Fits `gateway.engine_port.Engine`. Its public fields are for tests to set and read."""

    def __init__(self, *, context_tokens: int = 4096, name: str = "memory", ready: bool = True) -> None:
        self.state: Any = "ready" if ready else "starting"
        self._info = ModelInfo(name, context_tokens, VOCABULARY_SIZE, "reference", "cpu", 0.1)
        self.model: ModelInfo | None = self._info if ready else None
        self.tokenizer: Any = ByteTokenizer() if ready else None
        self.started = self.stopped = 0
        self.may_start = asyncio.Event()
        self.first_delay_s = 0.0           # before the first token
        self.token_delay_s = 0.0           # before each token
        self.repeat = 1                    # how often the answer is said
        self.sleeps_lightly = False        # it fell asleep by itself, and the next request wakes it
        self.fault_after: int | None = None
        self.surprise: Callable[[GenerationRequest], float] = lambda _: 0.25     # of each token of an answer
        self.fault: RuntimeFault | None = None
        self.submit_fault: RuntimeFault | None = None
        self.requests: list[GenerationRequest] = []
        self.active: list[MemoryGeneration] = []
        self.cancelled: list[str] = []
        self.generated_tokens = 0
        self._prompts: dict[bytes, list[tuple[int, ...]]] = {}

    async def start(self) -> None:
        self.started += 1
        await self.may_start.wait()
        self.model, self.tokenizer, self.state = self._info, ByteTokenizer(), "ready"

    async def stop(self) -> None:
        self.stopped += 1

    @property
    def takes_requests(self) -> bool:
        return self.state == "ready" or self.sleeps_lightly

    async def rouse(self) -> None:
        if self.sleeps_lightly:
            await self.wake()

    async def sleep(self) -> None:
        if self.active:
            raise EngineBusy(f"{len(self.active)} requests are in the engine")
        self.state = "asleep"

    async def wake(self) -> None:
        self.state, self.sleeps_lightly = "ready", False

    def submit(self, request: GenerationRequest) -> MemoryGeneration:
        if self.state == "asleep":
            raise EngineAsleep("the engine was put to sleep")
        if self.state != "ready":
            raise EngineUnavailable(f"the engine is {self.state}")
        if self.submit_fault is not None:
            raise self.submit_fault
        self.requests.append(request)
        generation = MemoryGeneration(self, request)
        self.active.append(generation)
        return generation

    @property
    def stats(self) -> EngineStats:
        pool = PoolStats("device", 100, 60, 30, 10, BLOCK_TOKENS, 4096)
        return EngineStats(running=len(self.active), waiting=0, steps=7, generated_tokens=self.generated_tokens,
                           preemptions=2, evicted_blocks=5, expired_blocks=1, step_s=0.01, pools=(pool,))

    def remember(self, request: GenerationRequest) -> int:
        """How many of the prompt's tokens an earlier prompt of its domain had, in whole blocks; keeps the prompt."""
        known = self._prompts.setdefault(request.cache_domain, [])
        shared = max((_shared(request.prompt_tokens, earlier) for earlier in known), default=0)
        known.append(request.prompt_tokens)
        return min(shared, len(request.prompt_tokens) - 1) // BLOCK_TOKENS * BLOCK_TOKENS


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n
