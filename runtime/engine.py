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
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import torch

import grammar
from grammar import CompiledGrammar, Matcher
from kernels.ops import Ops
from prefix_cache import PrefixCache
from prefix_cache.domain import in_epoch

from .answer import Answer
from .batching import ragged_batch
from .beams import BeamSearch
from .config import EngineConfig
from .errors import GrammarRefused, RequestFaulted, RuntimeFault
from .grammars import GrammarShelf, vocabulary_of
from .model import Model
from .protocol import EngineStats, Event, Failed, Finished, FinishReason, GenerationRequest, PoolStats, Usage
from .sampler import Sampled, Sampler
from .scheduler import Limits, Row, Scheduler
from .sequence import Sequence
from .speculation import Eagerness
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
    """A request that waits or runs: its tokens and its text. A BeamSearch is the same with several of them."""

    sequence: Sequence
    answer: Answer

    @property
    def sequences(self) -> list[Sequence]:
        return [self.sequence]

    def answer_of(self, _: Sequence) -> Answer:
        return self.answer


class Engine:
    def __init__(self, config: EngineConfig, model: Model, tokenizer: Tokenizer, ops: Ops, n_blocks: int,
                 clock: Callable[[], float], epoch: bytes = b"") -> None:
        """`epoch`: of the model's weights and the pool's layout, see epoch.py."""
        self.config = config
        self.clock = clock
        self.epoch = epoch
        self._model = model
        self._tokenizer = tokenizer
        self._ops = ops
        self._pool = model.new_pool(n_blocks, config.block_tokens)
        self._cache = PrefixCache(n_blocks, config.block_tokens, clock=clock, ttl_s=config.cache_ttl_s)
        self.context_tokens = min(config.max_context_tokens or model.config.context_tokens, n_blocks * config.block_tokens)
        self.scheduler = Scheduler(self._cache, Limits(self.context_tokens, config.max_running, config.step_tokens,
                                                       config.max_waiting, config.guessing_rows))
        self._sampler = Sampler(ops)
        self._shelf = GrammarShelf(vocabulary_of(tokenizer))
        self._spelled_out = tokenizer.spelled_out()
        self._tasks: dict[str, Task | BeamSearch] = {}
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
        own = replace(request, cache_domain=in_epoch(request.cache_domain, self.epoch))
        return self._guarded(request_id, partial(self._take, own, self.clock()))

    def cancel(self, request_id: str) -> None:
        """Forget a request; its blocks are free at once. Unknown ids are ignored: it may just have ended."""
        waiting = self._compiling.pop(request_id, None)
        if waiting is not None and waiting.request.grammar is not None:
            self._shelf.release(waiting.request.grammar)
        task = self._tasks.pop(request_id, None)
        for sequence in task.sequences if task is not None else ():
            self.scheduler.finish(sequence)

    def step(self) -> list[Event]:
        """Advance every admitted request by one plan."""
        events = self._land_grammars()
        started_s = self.clock()
        rows = self.scheduler.plan(started_s)
        if rows:
            events += self._compute(rows)
            for task in self._tasks.values():
                if isinstance(task, BeamSearch):
                    task.settle(self.scheduler)
            self._totals.steps += 1
            self._totals.step_s = self.clock() - started_s
        return events

    def _take(self, request: GenerationRequest, now_s: float) -> list[Event]:
        self.scheduler.refuse_if_too_long(request)
        self.scheduler.refuse_if_full(len(self._compiling))
        if request.grammar is None:
            return self._enqueue(request, now_s, None)
        self._compiling[request.request_id] = Compiling(request, now_s, self._shelf.get(request.grammar, request.tenant))
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
        shows_tags = request.grammar is not None and request.grammar.kind in ("ebnf", "structural_tag")
        token_bytes = self._spelled_out if shows_tags else self._tokenizer.token_bytes
        answer = Answer(request, seed, matcher, token_bytes, self._tokenizer.eos_ids,
                        jumps=self.config.forced_runs and request.beams is None)
        sequence = self.scheduler.submit(request, arrived_s)
        if request.beams is not None:
            self._tasks[request.request_id] = BeamSearch(request, sequence, answer, self.context_tokens)
        else:
            sequence.eagerness = Eagerness() if answer.may_be_guessed else None
            self._tasks[request.request_id] = Task(sequence, answer)
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
            return [event for row in rows if self._is_here(row) for event in self._compute([row])]
        events: list[Event] = []
        for row, places in zip(rows, drawn, strict=True):
            if self._is_here(row):
                events += self._guarded(row.sequence.request.request_id, partial(self._apply, row, places))
        return events

    def _is_here(self, row: Row) -> bool:
        """False for what is left of a beam search of which another row has just failed."""
        return row.sequence.request.request_id in self._tasks

    def _forward(self, rows: list[Row]) -> list[list[Sampled | RuntimeFault]]:
        """What is drawn at each place of each row: after its last token, and after each of its guess. A row that ends before
        its prompt does has no places."""
        batch = ragged_batch(rows, self.config.block_tokens, self._model.device)
        drawing = [row for row in rows if row.draws]
        masks, faults = self._masks(drawing)
        asked = [place for row in drawing for place in self._answer(row).sampling_rows(1 + len(row.guess))]
        with torch.inference_mode():
            logits = self._model.forward(batch, self._pool)
            drawn = self._sampler.draw(logits, asked, masks)
        results = iter(faults.get(i, sampled) for i, sampled in enumerate(drawn))
        return [list(islice(results, 1 + len(row.guess))) if row.draws else [] for row in rows]

    def _masks(self, rows: list[Row]) -> tuple[torch.Tensor | None, dict[int, RuntimeFault]]:
        """The masks of all places, [places, words], None where no row has a grammar; and what went wrong, by place."""
        matchers = [self._answer(row).matcher for row in rows]
        if not any(matchers):
            return None, {}
        n_places = sum(1 + len(row.guess) for row in rows)
        masks = np.full((n_places, (self._tokenizer.vocabulary_size + 31) // 32), 0xFFFFFFFF, dtype=np.uint32)
        faults: dict[int, RuntimeFault] = {}
        first = 0
        for row, matcher in zip(rows, matchers, strict=True):
            places = range(first, first + 1 + len(row.guess))
            first = places.stop
            if matcher is not None:
                fault = _fill(masks[places.start:places.stop], matcher, row.guess)
                faults.update((place, fault) for place in places if fault is not None)
        return torch.from_numpy(masks.view(np.int32)).to(self._model.device), faults

    def _apply(self, row: Row, places: list[Sampled | RuntimeFault]) -> list[Event]:
        if not places:
            self._advance(row, (), 0)
            return []
        task = self._tasks[row.sequence.request.request_id]
        if isinstance(task, BeamSearch):
            return self._apply_to_beam(task, row, places)
        forced = task.answer.n_forced
        n_right = _n_right(places, row.guess)
        delta = task.answer.take(_without_fault(places[:n_right + 1]), self.context_tokens - len(task.sequence.tokens))
        if row.sequence.eagerness is not None:
            row.sequence.eagerness.learn(len(row.guess), n_right, len(delta.token_ids))
        totals = self._totals
        totals.forced_tokens += task.answer.n_forced - forced
        totals.guessed_tokens += len(row.guess)
        totals.guessed_right_tokens += n_right
        self._advance(row, delta.token_ids, min(n_right, len(delta.token_ids)))
        reason = task.answer.reason
        if reason is None and len(task.sequence.tokens) >= self.context_tokens:
            reason = "length"
        return [delta, *self._finished(task, reason)] if reason else [delta]

    def _apply_to_beam(self, search: BeamSearch, row: Row, places: list[Sampled | RuntimeFault]) -> list[Event]:
        self._advance(row, (), 0)
        [seen] = _without_fault(places)
        search.see(row.sequence, seen)
        if not search.is_due:
            return []
        n_tokens = search.n_tokens
        copies, is_over = search.go_on(self.scheduler)
        self._totals.generated_tokens += search.n_tokens - n_tokens
        if copies:
            sources, targets = zip(*copies, strict=True)
            self._pool[:, :, list(targets)] = self._pool[:, :, list(sources)]
        return self._found(search) if is_over else []

    def _found(self, search: BeamSearch) -> list[Event]:
        beams, request_id, first = search.result(), search.request.request_id, search.first
        assert first.planned_s is not None, "it has run"
        self.cancel(request_id)
        usage = Usage(first.n_prompt, first.cached_tokens, first.n_prompt - first.cached_tokens, search.n_tokens,
                      search.recomputed_tokens)
        return [beams, Finished(request_id, beams.answers[0].reason, usage, first.planned_s - first.arrived_s)]

    def _advance(self, row: Row, drawn: tuple[int, ...], n_right: int) -> None:
        sequence, totals = row.sequence, self._totals
        if sequence.high_water == sequence.cached_tokens:        # its first row
            totals.prompt_tokens += sequence.n_prompt
            totals.cached_tokens += sequence.cached_tokens
        recomputed = sequence.recomputed_tokens
        self.scheduler.advance(row, drawn, n_right)
        recomputed = sequence.recomputed_tokens - recomputed
        totals.recomputed_tokens += recomputed
        task = self._tasks[sequence.request.request_id]
        if isinstance(task, BeamSearch):
            task.recomputed_tokens += recomputed
        totals.generated_tokens += len(drawn)

    def _finished(self, task: Task, reason: FinishReason) -> list[Event]:
        sequence = task.sequence
        assert sequence.planned_s is not None, "it has run"
        request_id = sequence.request.request_id
        self.cancel(request_id)
        held = task.answer.close()
        usage = Usage(sequence.n_prompt, sequence.cached_tokens, sequence.n_prompt - sequence.cached_tokens,
                      sequence.n_generated, sequence.recomputed_tokens, task.answer.n_forced)
        finished = Finished(request_id, reason, usage, sequence.planned_s - sequence.arrived_s, task.answer.logprob)
        return [*([held] if held else ()), finished]

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

    def _answer(self, row: Row) -> Answer:
        return self._tasks[row.sequence.request.request_id].answer_of(row.sequence)

    def stats(self) -> EngineStats:
        totals, cache = self._totals, self._cache.stats()
        pool = PoolStats("device", cache.blocks_total, cache.blocks_free, cache.blocks_cached, cache.blocks_used,
                         self.config.block_tokens, self._pool[:, :, 0].numel() * self._pool.element_size())
        return EngineStats(
            running=len(self.scheduler.running),
            waiting=len(self.scheduler.waiting) + len(self.scheduler.parked) + len(self._compiling),
            steps=totals.steps, cached_tokens=totals.cached_tokens,
            computed_tokens=totals.prompt_tokens - totals.cached_tokens, generated_tokens=totals.generated_tokens,
            forced_tokens=totals.forced_tokens, guessed_tokens=totals.guessed_tokens,
            guessed_right_tokens=totals.guessed_right_tokens, recomputed_tokens=totals.recomputed_tokens,
            preemptions=self.scheduler.preemptions, evicted_blocks=cache.evicted_pressure,
            expired_blocks=cache.evicted_expired, step_s=totals.step_s, pools=(pool,))

    def check(self) -> None:
        """Raises AssertionError on a broken invariant of the cache or the books. For tests and diagnosis."""
        self._cache.check()
        idle = (*self.scheduler.waiting, *self.scheduler.parked)
        assert all(s.lease is None and not s.blocks for s in idle), "a waiting sequence holds blocks"
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
    forced_tokens: int = 0
    guessed_tokens: int = 0
    guessed_right_tokens: int = 0
    recomputed_tokens: int = 0
    step_s: float = 0.0


def _fill(masks: np.ndarray, matcher: Matcher, guess: tuple[int, ...]) -> RuntimeFault | None:
    """Write the masks at the matcher's place and after each token of a guess; what is not allowed leaves the rest as it is."""
    try:
        ahead = matcher.fork() if guess else matcher
        for place, mask in enumerate(masks):
            if place and not ahead.accept(guess[place - 1]):
                break
            ahead.fill_mask(mask)
    except Exception as error:
        return _fault_of(error)
    if masks[0].any():
        return None
    return GrammarRefused("the grammar asks for a character here that the model's vocabulary has no token for: leave it out of "
                          "the schema, regex or choice")


def _n_right(places: list[Sampled | RuntimeFault], guess: tuple[int, ...]) -> int:
    """How many tokens of a guess are what was drawn."""
    for n, (place, guessed) in enumerate(zip(places, guess, strict=False)):
        if isinstance(place, RuntimeFault) or place.token_id != guessed:
            return n
    return len(guess)


def _without_fault(places: list[Sampled | RuntimeFault]) -> list[Sampled]:
    """The places as they are. Raises the fault of one that has one."""
    sound = [place for place in places if isinstance(place, Sampled)]
    if len(sound) < len(places):
        raise next(place for place in places if isinstance(place, RuntimeFault))
    return sound


def _failed(request_id: str, fault: RuntimeFault) -> Failed:
    return Failed(request_id, fault.code, str(fault), fault.param)


def _fault_of(error: Exception) -> RuntimeFault:
    """What a request is told of an exception: the caller's mistake if its grammar is refused, else ours."""
    if isinstance(error, grammar.SchemaError):
        return GrammarRefused(str(error))
    log.error("a request failed", exc_info=error)
    return RequestFaulted(f"{type(error).__name__}: {error}")
