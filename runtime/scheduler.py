"""Which tokens of which sequences are computed in the next step.

Pure: no torch, no clock, no randomness. The engine, the tests and any simulator drive the same class:

    submit -> plan -> (forward) -> advance -> plan -> ... -> finish | cancel

Policy. One token budget a step. Decodes first, one token each, so that running answers never wait for a
prompt; then chunks of prompts already admitted, in order of admission; then new ones from the queue, first
come first served. While others wait, a chunk takes at most half of what is left of the budget.

Progress. A sequence is admitted only when the blocks of all its tokens so far are there, so prefill never
blocks. Decodes take blocks as they go; when none is left the sequence admitted last gives up all of its
blocks and goes back to the head of the queue, to be computed again. The oldest is never the victim of a
younger one, and alone it always fits (`submit` refuses what doesn't): so it ends, and then the next.
A waiting sequence holds no blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from prefix_cache import PoolExhausted, PrefixCache

from .errors import QueueFull, RequestTooLong
from .protocol import GenerationRequest
from .sequence import Sequence


@dataclass(frozen=True, slots=True)
class Row:
    """`n_tokens` of one sequence, from `start` on, to be computed in this step."""

    sequence: Sequence
    start: int
    n_tokens: int

    @property
    def draws(self) -> bool:
        """Whether a new token is drawn after this row: it ends at the sequence's last token."""
        return self.start + self.n_tokens == len(self.sequence.tokens)


@dataclass(frozen=True, slots=True)
class Limits:
    context_tokens: int        # prompt and answer together
    running: int               # sequences in one step
    step_tokens: int           # tokens in one step; at least `running`
    waiting: int               # sequences in the queue


class Scheduler:
    def __init__(self, cache: PrefixCache, limits: Limits) -> None:
        if limits.step_tokens < limits.running:
            raise ValueError(f"step_tokens ({limits.step_tokens}) is below max_running ({limits.running}): "
                             "every running sequence needs one token of the budget")
        self.cache = cache
        self.limits = limits
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []          # in order of admission
        self.preemptions = 0

    def submit(self, request: GenerationRequest, now_s: float) -> Sequence:
        """Queue a request. Raises RequestTooLong for what can never fit, QueueFull when the queue is."""
        self.refuse_if_too_long(request)
        self.refuse_if_full()
        sequence = Sequence(request, now_s)
        self.waiting.append(sequence)
        return sequence

    def refuse_if_full(self, n_others: int = 0) -> None:
        """`n_others`: requests on their way here that are not in the queue yet."""
        if len(self.waiting) + n_others >= self.limits.waiting:
            raise QueueFull(f"{self.limits.waiting} requests are waiting already: try again in a moment")

    def refuse_if_too_long(self, request: GenerationRequest) -> None:
        n_prompt, context = len(request.prompt_tokens), self.limits.context_tokens
        if n_prompt == 0:
            raise RequestTooLong("the prompt is empty: at least one token is needed to go on from", "prompt")
        if n_prompt + 1 > context:
            raise RequestTooLong(f"the prompt has {n_prompt} tokens and the context holds {context}, "
                                 "of which at least one is for the answer: shorten the prompt", "messages")
        whole = min(n_prompt + request.sampling.max_tokens, context)
        if self._blocks_of(whole) > self.cache.pool.n_blocks:
            raise RequestTooLong(f"prompt and answer may take {whole} tokens and the whole KV cache holds "
                                 f"{self.cache.pool.n_blocks * self.cache.block_tokens}: ask for fewer tokens, or give the "
                                 "server a larger kv_cache_tokens", "max_tokens")

    def plan(self, now_s: float) -> list[Row]:
        """The rows of the next step. Empty when there is nothing to compute."""
        rows = list(self._decodes())
        budget = self.limits.step_tokens - len(rows)
        rows += self._chunks(budget)
        budget = self.limits.step_tokens - sum(row.n_tokens for row in rows)
        rows += self._admissions(budget, now_s)
        return rows

    def advance(self, row: Row, drawn: int | None) -> None:
        """Record that a row was computed, and the token drawn after it, if one was."""
        sequence = row.sequence
        reached = row.start + row.n_tokens
        sequence.recomputed_tokens += max(0, min(reached, sequence.high_water) - row.start)
        sequence.high_water = max(sequence.high_water, reached)
        sequence.n_computed = reached
        self._commit(sequence)
        if drawn is not None:
            sequence.tokens.append(drawn)

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is. Its whole blocks stay in the cache."""
        if sequence in self.running:
            self.running.remove(sequence)
            self._release(sequence)
        else:
            self.waiting.remove(sequence)

    def _decodes(self) -> Iterator[Row]:
        for sequence in list(self.running):
            if sequence.n_left == 1 and sequence.lease is not None and self._grow(sequence):
                yield Row(sequence, sequence.n_computed, 1)

    def _grow(self, sequence: Sequence) -> bool:
        """Make room for the next token; False if the sequence itself had to give way."""
        while self._blocks_of(sequence.n_computed + 1) > len(sequence.blocks):
            try:
                sequence.blocks += self.cache.allocate(1)
            except PoolExhausted:
                youngest = self.running[-1]
                self._preempt(youngest)
                if youngest is sequence:
                    return False
        return True

    def _chunks(self, budget: int) -> list[Row]:
        rows = []
        prefilling = [s for s in self.running if s.n_left > 1]
        for i, sequence in enumerate(prefilling):
            others = i + 1 < len(prefilling) or self.waiting
            n = self._share(sequence, budget, bool(others))
            if n == 0:
                break
            rows.append(Row(sequence, sequence.n_computed, n))
            budget -= n
        return rows

    def _admissions(self, budget: int, now_s: float) -> list[Row]:
        rows: list[Row] = []
        for sequence in list(self.waiting):
            if budget <= 0 or len(self.running) >= self.limits.running:
                break
            if self._is_being_computed(sequence):
                continue
            if not self._admit(sequence, now_s):
                break
            n = self._share(sequence, budget, bool(self.waiting))
            rows.append(Row(sequence, sequence.n_computed, n))
            budget -= n
        return rows

    def _share(self, sequence: Sequence, budget: int, others: bool) -> int:
        """How much of the budget a chunk may take: all that it needs, but half of a scarce budget."""
        return min(sequence.n_left, (budget + 1) // 2 if others else budget)

    def _is_being_computed(self, sequence: Sequence) -> bool:
        """Whether a running sequence is about to compute the block that this one needs next: then wait for it."""
        block = self.cache.block_tokens
        for other in self.running:
            n = (other.n_computed // block + 1) * block
            if (n <= other.n_prompt and n < len(sequence.tokens)
                    and other.request.cache_domain == sequence.request.cache_domain
                    and other.tokens[:n] == sequence.tokens[:n]):
                return True
        return False

    def _admit(self, sequence: Sequence, now_s: float) -> bool:
        lease = self.cache.acquire(sequence.request.cache_domain, sequence.tokens)
        needed = self._blocks_of(len(sequence.tokens)) - len(lease.blocks)
        if needed > self.cache.available:
            self.cache.release(lease)
            return False
        sequence.lease = lease
        sequence.blocks = [*lease.blocks, *self.cache.allocate(needed)]
        sequence.n_computed = lease.n_tokens
        sequence.n_committed = len(lease.blocks)
        if sequence.planned_s is None:
            sequence.planned_s = now_s
            sequence.cached_tokens = sequence.high_water = lease.n_tokens
        self.waiting.remove(sequence)
        self.running.append(sequence)
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._release(sequence)
        self.waiting.appendleft(sequence)
        sequence.preemptions += 1
        self.preemptions += 1

    def _commit(self, sequence: Sequence) -> None:
        """Offer blocks that have become whole to the cache, so that others can use them from the next step on."""
        assert sequence.lease is not None
        n_whole = sequence.n_computed // self.cache.block_tokens
        if n_whole > sequence.n_committed:
            n_tokens = n_whole * self.cache.block_tokens
            self.cache.commit(sequence.lease, sequence.tokens[:n_tokens], sequence.blocks[:n_whole], sequence.request.ttl_s)
            sequence.n_committed = n_whole

    def _release(self, sequence: Sequence) -> None:
        assert sequence.lease is not None
        self.cache.release(sequence.lease, sequence.blocks)
        sequence.lease, sequence.blocks, sequence.n_computed, sequence.n_committed = None, [], 0, 0

    def _blocks_of(self, n_tokens: int) -> int:
        return -(-n_tokens // self.cache.block_tokens)
