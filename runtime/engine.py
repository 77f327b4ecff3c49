"""The step loop: what the scheduler planned is computed, drawn, and told.

One step, always in this order:

    land compiled grammars -> plan -> batch -> mask -> forward -> draw -> apply

The engine owns every sequence from `submit` to its Finished or Failed. An exception that belongs to one
request ends that request, never the step. Knows nothing of processes or pipes (see process.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

import grammar
from grammar import CompiledGrammar, Vocabulary
from kernels.ops import Ops
from prefix_cache import PrefixCache

from .answer import Answer
from .batching import ragged_batch
from .config import EngineConfig
from .errors import GrammarRefused, RequestFaulted, RuntimeFault
from .grammars import GrammarShelf
from .model import Model
from .protocol import EngineStats, Event, Failed, Finished, FinishReason, GenerationRequest, PoolStats, Usage
from .sampler import Sampled, Sampler
from .scheduler import Limits, Row, Scheduler
from .sequence import Sequence
from .tokenizer import Tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compiling:
    """A request whose grammar is not compiled yet. It holds nothing of the cache and is not in the scheduler's queue."""

    request: GenerationRequest
    arrived_s: float
    grammar: Future[CompiledGrammar]


@dataclass(frozen=True, slots=True)
class Task:
    """A request that waits or runs: its tokens and its text."""

    sequence: Sequence
    answer: Answer


class Engine:
    def __init__(self, config: EngineConfig, model: Model, tokenizer: Tokenizer, ops: Ops, n_blocks: int,
                 clock: Callable[[], float]) -> None:
        self.config = config
        self.clock = clock
        self._model = model
        self._tokenizer = tokenizer
        self._ops = ops
        self._pool = model.new_pool(n_blocks, config.block_tokens)
        self._cache = PrefixCache(n_blocks, config.block_tokens, clock=clock, ttl_s=config.cache_ttl_s)
        self.context_tokens = min(config.max_context_tokens or model.config.context_tokens, n_blocks * config.block_tokens)
        self.scheduler = Scheduler(self._cache, Limits(self.context_tokens, config.max_running, config.step_tokens,
                                                       config.max_waiting))
        self._sampler = Sampler(ops)
        self._shelf = GrammarShelf(Vocabulary(tokenizer.token_bytes, eos_ids=tokenizer.eos_ids))
        self._tasks: dict[str, Task] = {}
        self._compiling: dict[str, Compiling] = {}
        self._n_seeded = 0
        self._totals = _Totals()

    @property
    def idle(self) -> bool:
        """Nothing to compute and nothing to wait for."""
        return not self._tasks and not self._compiling

    @property
    def waits_for_grammars_only(self) -> bool:
        return bool(self._compiling) and not self._tasks

    def submit(self, request: GenerationRequest) -> list[Event]:
        """Take a request. What comes of it, now or later, are events of `step`; a refusal comes at once."""
        request_id = request.request_id
        if request_id in self._tasks or request_id in self._compiling:
            return [_failed(request_id, RequestFaulted(f"a request with the id {request_id!r} is running already"))]
        return self._guarded(request_id, partial(self._take, request, self.clock()))

    def cancel(self, request_id: str) -> None:
        """Forget a request; its blocks are free at once. Unknown ids are ignored: it may just have ended."""
        self._compiling.pop(request_id, None)
        task = self._tasks.pop(request_id, None)
        if task is not None:
            self.scheduler.finish(task.sequence)

    def step(self) -> list[Event]:
        """Advance every admitted request by one plan."""
        events = self._land_grammars()
        started_s = self.clock()
        rows = self.scheduler.plan(started_s)
        if rows:
            events += self._compute(rows)
            self._totals.steps += 1
            self._totals.step_s = self.clock() - started_s
        return events

    def _take(self, request: GenerationRequest, now_s: float) -> list[Event]:
        self.scheduler.refuse_if_too_long(request)
        self.scheduler.refuse_if_full(len(self._compiling))
        if request.grammar is None:
            return self._enqueue(request, now_s, None)
        self._compiling[request.request_id] = Compiling(request, now_s, self._shelf.get(request.grammar))
        return []

    def _land_grammars(self) -> list[Event]:
        events: list[Event] = []
        for waiting in [c for c in self._compiling.values() if c.grammar.done()]:
            del self._compiling[waiting.request.request_id]
            events += self._guarded(waiting.request.request_id, partial(self._land, waiting))
        return events

    def _land(self, waiting: Compiling) -> list[Event]:
        return self._enqueue(waiting.request, waiting.arrived_s, waiting.grammar.result())

    def _enqueue(self, request: GenerationRequest, arrived_s: float, compiled: CompiledGrammar | None) -> list[Event]:
        seed = request.sampling.seed
        if seed is None:
            self._n_seeded += 1
            seed = self.config.seed + self._n_seeded
        matcher = compiled.new_state() if compiled is not None else None
        answer = Answer(request, seed, matcher, self._tokenizer.token_bytes, self._tokenizer.eos_ids)
        self._tasks[request.request_id] = Task(self.scheduler.submit(request, arrived_s), answer)
        return []

    def _compute(self, rows: list[Row]) -> list[Event]:
        """One forward pass over the rows. If it raises, each row is tried alone: the one at fault fails alone."""
        try:
            drawn = self._forward(rows)
        except Exception as error:
            if len(rows) == 1:
                request_id = rows[0].sequence.request.request_id
                log.exception("request %s failed in the forward pass", request_id)
                return self._fail(request_id, RequestFaulted(f"its forward pass failed: {error}"))
            return [event for row in rows for event in self._compute([row])]
        events: list[Event] = []
        for row, sampled in zip(rows, drawn, strict=True):
            events += self._guarded(row.sequence.request.request_id, partial(self._apply, row, sampled))
        return events

    def _forward(self, rows: list[Row]) -> list[Sampled | RuntimeFault | None]:
        """What is drawn after each row; None after a row that is not the last of its prompt."""
        batch = ragged_batch(rows, self.config.block_tokens, self._model.device)
        answers = [self._task(row).answer for row in rows if row.draws]
        masks, faults = self._masks(answers)
        with torch.inference_mode():
            logits = self._model.forward(batch, self._pool)
            drawn = self._sampler.draw(logits, [answer.sampling_row() for answer in answers], masks)
        results = iter(faults.get(i, sampled) for i, sampled in enumerate(drawn))
        return [next(results) if row.draws else None for row in rows]

    def _masks(self, answers: list[Answer]) -> tuple[torch.Tensor | None, dict[int, RuntimeFault]]:
        """The answers' masks, [answers, words], None where none has a grammar; and what went wrong, by answer."""
        if all(answer.matcher is None for answer in answers):
            return None, {}
        masks = np.full((len(answers), (self._tokenizer.vocabulary_size + 31) // 32), 0xFFFFFFFF, dtype=np.uint32)
        faults: dict[int, RuntimeFault] = {}
        for i, answer in enumerate(answers):
            if answer.matcher is not None:
                try:
                    answer.matcher.fill_mask(masks[i])
                except Exception as error:
                    faults[i] = _fault_of(error)
                else:
                    if not masks[i].any():
                        faults[i] = GrammarRefused("the grammar asks for a character here that the model's vocabulary has no "
                                                   "token for: leave it out of the schema, regex or choice")
        return torch.from_numpy(masks.view(np.int32)).to(self._model.device), faults

    def _apply(self, row: Row, sampled: Sampled | RuntimeFault | None) -> list[Event]:
        if isinstance(sampled, RuntimeFault):
            raise sampled
        if sampled is None:
            self._advance(row, None)
            return []
        task = self._task(row)
        delta = task.answer.take(sampled)
        self._advance(row, sampled.token_id)
        reason = task.answer.reason
        if reason is None and len(task.sequence.tokens) >= self.context_tokens:
            reason = "length"
        return [delta, *self._finished(task, reason)] if reason else [delta]

    def _advance(self, row: Row, drawn: int | None) -> None:
        sequence, totals = row.sequence, self._totals
        if sequence.high_water == sequence.cached_tokens:        # its first row
            totals.prompt_tokens += sequence.n_prompt
            totals.cached_tokens += sequence.cached_tokens
        recomputed = sequence.recomputed_tokens
        self.scheduler.advance(row, drawn)
        totals.recomputed_tokens += sequence.recomputed_tokens - recomputed
        totals.generated_tokens += drawn is not None

    def _finished(self, task: Task, reason: FinishReason) -> list[Event]:
        sequence = task.sequence
        assert sequence.planned_s is not None, "it has run"
        request_id = sequence.request.request_id
        self.cancel(request_id)
        held = task.answer.close()
        usage = Usage(sequence.n_prompt, sequence.cached_tokens, sequence.n_prompt - sequence.cached_tokens,
                      sequence.n_generated, sequence.recomputed_tokens)
        return [*([held] if held else ()), Finished(request_id, reason, usage, sequence.planned_s - sequence.arrived_s)]

    def _guarded(self, request_id: str, work: Callable[[], list[Event]]) -> list[Event]:
        """Do one request's work; whatever it raises is that request's end alone."""
        try:
            return work()
        except RuntimeFault as fault:
            return self._fail(request_id, fault)
        except Exception as error:
            return self._fail(request_id, _fault_of(error))

    def _fail(self, request_id: str, fault: RuntimeFault) -> list[Event]:
        self.cancel(request_id)
        return [_failed(request_id, fault)]

    def _task(self, row: Row) -> Task:
        return self._tasks[row.sequence.request.request_id]

    def stats(self) -> EngineStats:
        totals, cache = self._totals, self._cache.stats()
        pool = PoolStats("device", cache.blocks_total, cache.blocks_free, cache.blocks_cached, cache.blocks_used,
                         self.config.block_tokens, self._pool[:, :, 0].numel() * self._pool.element_size())
        return EngineStats(
            running=len(self.scheduler.running), waiting=len(self.scheduler.waiting) + len(self._compiling),
            steps=totals.steps, cached_tokens=totals.cached_tokens,
            computed_tokens=totals.prompt_tokens - totals.cached_tokens, generated_tokens=totals.generated_tokens,
            recomputed_tokens=totals.recomputed_tokens, preemptions=self.scheduler.preemptions,
            evicted_blocks=cache.evicted_pressure, expired_blocks=cache.evicted_expired, step_s=totals.step_s, pools=(pool,))

    def check(self) -> None:
        """Raises AssertionError on a broken invariant of the cache or the books. For tests and diagnosis."""
        self._cache.check()
        assert all(s.lease is None and not s.blocks for s in self.scheduler.waiting), "a waiting sequence holds blocks"
        assert all(s.lease is not None for s in self.scheduler.running), "a running sequence holds no lease"

    def expire(self) -> None:
        """Free blocks past their time. Cheap when there are none; call it now and then when idle."""
        self._cache.expire()


@dataclass(slots=True)
class _Totals:
    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    recomputed_tokens: int = 0
    step_s: float = 0.0


def _failed(request_id: str, fault: RuntimeFault) -> Failed:
    return Failed(request_id, fault.code, str(fault), fault.param)


def _fault_of(error: Exception) -> RuntimeFault:
    """What a request is told of an exception: the caller's mistake if its grammar is refused, else ours."""
    if isinstance(error, grammar.SchemaError):
        return GrammarRefused(str(error))
    log.error("a request failed", exc_info=error)
    return RequestFaulted(f"{type(error).__name__}: {error}")
