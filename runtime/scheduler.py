"""Which tokens of which sequences are computed in the next step.

Pure: no torch, no clock, no randomness. The engine, the tests and any simulator drive the same class:

    submit -> plan -> (forward) -> advance -> plan -> ... -> finish | cancel

Policy. One token budget a step. Decodes first, so that running answers never wait for a prompt: one token
each, and what a grammar has forced behind it as far as the budget goes. Then chunks of prompts already
admitted, in order of admission; then new ones, in the order of the queue (see queue.py). While others wait,
a chunk takes at most half of what is left of the budget. A very long prompt takes a fixed share of a step that
others need too, so that neither it nor they wait for the other.

Progress. A sequence is admitted only when the blocks of all its tokens so far are there, so prefill never
blocks. Decodes take blocks as they go; when none is left the sequence admitted last gives up all of its
blocks and goes back to the head of the queue, to be computed again. The oldest is never the victim of a
younger one, and alone it always fits (`submit` refuses what doesn't): so it ends, and then the next. A
sequence that has given way `MOST_PREEMPTIONS` times comes back only when the blocks of its whole answer are
there; it takes them all and gives way no more. A waiting sequence holds no blocks.

Beams. The sequences of one beam search wait for each other after each token. One that rests has nothing to compute; `park` takes
its room away while another one of its search waits for some, so that any one of them alone can always go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from prefix_cache import PoolExhausted, PrefixCache

from .errors import QueueFull, RequestTooLong
from .protocol import GenerationRequest
from .queue import Queue
from .sequence import Sequence
from .speculation import looked_up

MOST_PREEMPTIONS = 3            # of one sequence
Copies = list[tuple[int, int]]  # blocks: from, to
LONG_STEPS = 4                  # a prompt with more left than this many steps' budgets is long
LONG_SHARE = 12                 # long prompts take a twelfth of a step that others need too,
LONG_SHARE_ALONE = 3            # and alone a third, since others may come while it runs
POSITIONS_PER_TOKEN = 6_000     # attending to so many positions costs as much as all the rest of a token's work


@dataclass(frozen=True, slots=True)
class Row:
    """`n_tokens` of one sequence, from `start` on, to be computed in this step; behind its last token a guess to be checked."""

    sequence: Sequence
    start: int
    n_tokens: int
    guess: tuple[int, ...] = ()

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
    guessing: int = 0          # rows in a step up to which answers are guessed ahead; beyond, the step has work enough


class Scheduler:
    def __init__(self, cache: PrefixCache, limits: Limits) -> None:
        if limits.step_tokens < limits.running:
            raise ValueError(f"step_tokens ({limits.step_tokens}) is below max_running ({limits.running}): "
                             "every running sequence needs one token of the budget")
        self.cache = cache
        self.limits = limits
        self.waiting = Queue()
        self.running: list[Sequence] = []          # in order of admission
        self.parked: set[Sequence] = set()         # they rest, without blocks
        self.preemptions = 0

    def submit(self, request: GenerationRequest, now_s: float) -> Sequence:
        """Queue a request. Raises RequestTooLong for what can never fit, QueueFull when the queue is."""
        self.refuse_if_too_long(request)
        self.refuse_if_full()
        sequence = Sequence(request, now_s)
        self.waiting.arrive(sequence)
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
        whole = self._whole(request)
        if self._blocks_of(whole) > self.cache.pool.n_blocks:
            raise RequestTooLong(f"prompt and answer may take {whole} tokens and the whole KV cache holds "
                                 f"{self.cache.pool.n_blocks * self.cache.block_tokens}: ask for fewer tokens, or give the "
                                 "server a larger kv_cache_tokens", "max_tokens")

    def _whole(self, request: GenerationRequest) -> int:
        """Tokens of prompt and answer together, if the answer is as long as it may be."""
        return min(len(request.prompt_tokens) + request.sampling.max_tokens, self.limits.context_tokens)

    def plan(self, now_s: float) -> list[Row]:
        """The rows of the next step. Empty when there is nothing to compute."""
        rows = list(self._decodes())
        budget = self.limits.step_tokens - sum(row.n_tokens for row in rows)
        rows += self._prompts(budget, now_s, decoding=bool(rows))
        budget = self.limits.step_tokens - sum(row.n_tokens for row in rows)
        return [self._guessing(row, budget // len(rows)) for row in rows] if len(rows) <= self.limits.guessing else rows

    def advance(self, row: Row, drawn: Iterable[int] = (), n_right: int = 0) -> None:
        """Record that a row was computed, and what comes after it.

        drawn: the tokens drawn, and those that a grammar forces behind them. The first `n_right` of them are the row's guess, or
        its beginning: they are computed already.
        """
        sequence = row.sequence
        reached = row.start + row.n_tokens + n_right
        recomputed = max(0, min(reached, sequence.high_water) - row.start)
        sequence.recomputed_tokens += recomputed
        self.waiting.serve(sequence, row.n_tokens + n_right - recomputed)     # what the engine took back is no service
        sequence.high_water = max(sequence.high_water, reached)
        sequence.n_computed = reached
        sequence.tokens.extend(drawn)
        self._commit(sequence)

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is. Its whole blocks stay in the cache."""
        if sequence in self.running:
            self.running.remove(sequence)
            self._release(sequence)
        elif sequence in self.parked:
            self.parked.remove(sequence)
        else:
            self.waiting.withdraw(sequence)
        self.waiting.leave(sequence)

    def fork(self, sequence: Sequence, token: int) -> tuple[Sequence, Copies]:
        """A second sequence that goes on from a resting one by `token`, and the blocks that must be copied for it now.

        The two share their whole blocks. Where there is no room for the others, the new one waits like one that gave way.
        """
        twin = sequence.twin(token)
        self.waiting.join(twin)
        lease = self.cache.acquire(twin.request.cache_domain, twin.tokens)
        n_shared = len(lease.blocks)
        needed = self._blocks_of(len(twin.tokens)) - n_shared
        if sequence.lease is None or len(self.running) >= self.limits.running or needed > self.cache.available:
            self.cache.release(lease)
            self.waiting.put_back(twin)
            return twin, []
        twin.lease, twin.blocks = lease, [*lease.blocks, *self.cache.allocate(needed)]
        twin.n_computed, twin.n_committed = sequence.n_computed, n_shared
        self.running.append(twin)
        n_used = self._blocks_of(sequence.n_computed)
        return twin, list(zip(sequence.blocks[n_shared:n_used], twin.blocks[n_shared:n_used], strict=True))

    def extend(self, sequence: Sequence, token: int) -> None:
        """A resting sequence goes on by `token`; a parked one waits for room again."""
        sequence.tokens.append(token)
        if sequence in self.parked:
            self.parked.remove(sequence)
            self.waiting.put_back(sequence)

    def park(self, sequence: Sequence) -> None:
        """A sequence that rests, or waits though nothing of it is left to compute, gives up its room until it is extended."""
        if sequence in self.running:
            self.running.remove(sequence)
            self._release(sequence)
        elif sequence not in self.parked:
            self.waiting.withdraw(sequence)
        self.parked.add(sequence)

    def _decodes(self) -> Iterator[Row]:
        decoding = [sequence for sequence in self.running if sequence.decodes and sequence.n_left]
        spare = self.limits.step_tokens - len(decoding)    # every one of them has its one token
        for sequence in decoding:
            n = min(sequence.n_left, 1 + spare)
            if sequence.lease is not None and self._grow(sequence, n):
                spare -= n - 1
                yield Row(sequence, sequence.n_computed, n)

    def _guessing(self, row: Row, most: int) -> Row:
        """The row with a guess behind it, if there are blocks for that without taking any away."""
        sequence = row.sequence
        if sequence.eagerness is None or not row.draws or not sequence.decodes:
            return row
        room = self._whole(sequence.request) - len(sequence.tokens)
        guess = looked_up(sequence.tokens, min(sequence.eagerness.most, most, room))
        missing = self._blocks_of(len(sequence.tokens) + len(guess)) - len(sequence.blocks)
        if missing > self.cache.pool.n_free:
            return row
        sequence.blocks += self.cache.allocate(max(0, missing))
        return replace(row, guess=guess)

    def _grow(self, sequence: Sequence, n_tokens: int) -> bool:
        """Make room for the next tokens; False if the sequence itself had to give way."""
        while self._blocks_of(sequence.n_computed + n_tokens) > len(sequence.blocks):
            try:
                sequence.blocks += self.cache.allocate(1)
            except PoolExhausted:
                youngest = next(s for s in reversed(self.running) if not s.holds_all)
                self._preempt(youngest)
                if youngest is sequence:
                    return False
        return True

    def _prompts(self, budget: int, now_s: float, decoding: bool) -> list[Row]:
        """Chunks of the prompts already admitted, then of new ones; what is left over goes to the first long one."""
        prefilling = [s for s in self.running if not s.decodes]
        long = next((s for s in prefilling if self._is_long(s)), None)
        busy = decoding or len(prefilling) > 1 or len(self.waiting) > 0
        for_long = 0 if long is None else max(1, budget // (LONG_SHARE if busy else LONG_SHARE_ALONE))
        rows = self._chunks([s for s in prefilling if not self._is_long(s)], budget - for_long)
        rows += self._admissions(budget - for_long - sum(row.n_tokens for row in rows), now_s)
        if long is not None and budget > 0:
            rows.append(self._row(long, for_long))
        return rows

    def _chunks(self, prefilling: list[Sequence], budget: int) -> list[Row]:
        rows = []
        for i, sequence in enumerate(prefilling):
            others = i + 1 < len(prefilling) or len(self.waiting) > 0
            if budget <= 0:
                break
            rows.append(self._row(sequence, (budget + 1) // 2 if others else budget))
            budget -= rows[-1].n_tokens
        return rows

    def _admissions(self, budget: int, now_s: float) -> list[Row]:
        rows: list[Row] = []
        for sequence in self.waiting.in_order(self._cached):
            if budget <= 0 or len(self.running) >= self.limits.running:
                break
            if self._is_being_computed(sequence):
                continue
            if not self._admit(sequence, now_s):
                break
            rows.append(self._row(sequence, (budget + 1) // 2 if self.waiting else budget))
            budget -= rows[-1].n_tokens
        return rows

    def _row(self, sequence: Sequence, budget: int) -> Row:
        """A chunk of at least one token."""
        return Row(sequence, sequence.n_computed, max(1, min(sequence.n_left, int(budget / _weight(sequence)))))

    def _is_long(self, sequence: Sequence) -> bool:
        """Whether a prompt would keep many steps full: then it must not lengthen the steps of the others."""
        return sequence.n_left * _weight(sequence) > LONG_STEPS * self.limits.step_tokens

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

    def _cached(self, sequence: Sequence) -> int:
        return self.cache.peek(sequence.request.cache_domain, sequence.tokens)

    def _admit(self, sequence: Sequence, now_s: float) -> bool:
        lease = self.cache.acquire(sequence.request.cache_domain, sequence.tokens)
        holds_all = sequence.preemptions >= MOST_PREEMPTIONS
        n_tokens = self._whole(sequence.request) if holds_all else len(sequence.tokens)
        needed = self._blocks_of(n_tokens) - len(lease.blocks)
        if needed > self.cache.available:
            self.cache.release(lease)
            return False
        sequence.lease, sequence.holds_all = lease, holds_all
        sequence.blocks = [*lease.blocks, *self.cache.allocate(needed)]
        sequence.n_computed = lease.n_tokens
        sequence.n_committed = len(lease.blocks)
        if sequence.planned_s is None:
            sequence.planned_s = now_s
            sequence.cached_tokens = sequence.high_water = lease.n_tokens
        self.waiting.admit(sequence)
        self.running.append(sequence)
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._release(sequence)
        self.waiting.put_back(sequence)
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


def _weight(sequence: Sequence) -> float:
    """How many tokens of the budget one token counts: far behind a prompt's beginning it attends to so much."""
    return 1 + max(0, sequence.n_computed - 1_000) / POSITIONS_PER_TOKEN
