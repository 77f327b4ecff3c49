"""Beam search: the likeliest answers, found by keeping a few open and dropping the rest.

In each step all tokens that could follow the open answers are ranked by the sum of their answers' logprobs. Those of the best
`width` that end an answer are set aside with their score; the best `width` that end none are the open answers of the next step.
A score is the sum of an answer's logprobs divided by length ** length_penalty, where the length counts all its tokens, the end of
sequence too. With `width` answers set aside (worse ones are dropped for better ones) the search is over

    early_stopping=True      at once
    early_stopping=False     when the best open answer, if it ended now, would not be among them
    early_stopping="never"   when it would not be among them however it goes on: with a length_penalty above 0 that
                             supposes that it grows to its full length at no cost

and in any case when nothing is open, or the open ones are as long as they may be. These are the rules of `generate` in the
library transformers (Wolf et al., 2020), and answers and scores are the same. Of equal sums that of the better beam goes first,
so that the search is deterministic.

Every open answer is a sequence of its own in the scheduler. Whole blocks are shared through the prefix cache and never written
again; what lies behind them is copied when an answer divides. Nothing of a search is drawn, and no step waits for it: answers
whose next tokens are known rest until those of the others are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .answer import Answer
from .protocol import Beams, Delta, FinishReason, Found, GenerationRequest
from .sampler import Candidate, Sampled
from .scheduler import Copies, Scheduler
from .sequence import Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What an answer has said, from its last token backwards: answers that divide share what came before."""

    delta: Delta
    before: Said | None

    def deltas(self) -> list[Delta]:
        """In the order in which they were said."""
        said: Said | None = self
        backwards = []
        while said is not None:
            backwards.append(said.delta)
            said = said.before
        return backwards[::-1]


@dataclass(slots=True, eq=False)
class Beam:
    """An open answer. `seen` is what the model says after its last token, once that has been computed."""

    sequence: Sequence
    answer: Answer
    total: float = 0.0             # sum of its tokens' scores
    said: Said | None = None
    seen: Sampled | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Heir:
    """A beam gone on by one token."""

    parent: Beam
    token: int
    answer: Answer
    total: float
    said: Said


class BeamSearch:
    """One request's beams. Its owner tells it what was computed, and asks it to go on when it `is_due`."""

    def __init__(self, request: GenerationRequest, sequence: Sequence, answer: Answer, context_tokens: int) -> None:
        assert request.beams is not None
        self.request = request
        self.first = sequence                      # the sequence that computes the prompt
        self.n_tokens = 0                          # of all beams together, those dropped too
        self.recomputed_tokens = 0
        self._params = request.beams
        self._longest = min(request.sampling.max_tokens, context_tokens - len(request.prompt_tokens))
        self._beams = [Beam(sequence, answer)]     # best first
        self._ended: list[Found] = []              # best first, `width` at most

    @property
    def sequences(self) -> list[Sequence]:
        return [beam.sequence for beam in self._beams]

    @property
    def is_due(self) -> bool:
        """Whether it is known of each beam how it could go on."""
        return all(beam.seen is not None for beam in self._beams)

    def answer_of(self, sequence: Sequence) -> Answer:
        return self._beam(sequence).answer

    def see(self, sequence: Sequence, seen: Sampled) -> None:
        """What the model says after a beam's last token."""
        self._beam(sequence).seen = seen

    def settle(self, scheduler: Scheduler) -> None:
        """Let go of the room of beams that rest while others of theirs wait for room: else neither might ever go on."""
        resting = [beam.sequence for beam in self._beams if beam.seen is not None]
        if len(resting) < len(self._beams) and any(beam.sequence.lease is None for beam in self._beams):
            for sequence in resting:
                scheduler.park(sequence)

    def go_on(self, scheduler: Scheduler) -> tuple[Copies, bool]:
        """One step of the search; which blocks are to be copied now, from and to, and whether the search is over."""
        heirs = self._choose()
        if self._is_over(heirs):
            return [], True
        return self._divide(heirs, scheduler), False

    def result(self) -> Beams:
        return Beams(self.request.request_id, tuple(self._ended[:self._params.n]))

    def _beam(self, sequence: Sequence) -> Beam:
        return next(beam for beam in self._beams if beam.sequence is sequence)

    def _choose(self) -> list[Heir]:
        """The beams that go on, best first; what ends is set aside."""
        width = self._params.width
        ranked = self._ranked()
        if self._beams[0].answer.n_tokens + 1 == self._longest:
            ranked = ranked[:width]                # all of them end
        heirs: list[Heir] = []
        for rank, (total, beam, candidate) in enumerate(ranked):
            if len(heirs) == width:
                break
            heir = _heir(beam, candidate, total)
            reason = heir.answer.reason or ("length" if heir.answer.n_tokens >= self._longest else None)
            if reason is None:
                heirs.append(heir)
            elif rank < width:
                self._set_aside(heir, reason)
        self.n_tokens += len(heirs)
        return heirs

    def _ranked(self) -> list[tuple[float, Beam, Candidate]]:
        options = [(beam.total + candidate.score, beam, candidate) for beam in self._beams for candidate in _candidates(beam)]
        return sorted(options, key=lambda option: -option[0])      # stable: ties stay in the order of beams and tokens

    def _set_aside(self, heir: Heir, reason: FinishReason) -> None:
        held = heir.answer.close()
        deltas = [*heir.said.deltas(), *([held] if held else ())]
        found = Found("".join(delta.text for delta in deltas), tuple(t for delta in deltas for t in delta.token_ids), reason,
                      self._score(heir.total, heir.answer.n_tokens), tuple(entry for delta in deltas for entry in delta.logprobs))
        self._ended = sorted([*self._ended, found], key=lambda each: -each.score)[:self._params.width]
        self.n_tokens += 1

    def _score(self, total: float, n_tokens: int) -> float:
        return total / math.pow(n_tokens, self._params.length_penalty)

    def _is_over(self, heirs: list[Heir]) -> bool:
        params = self._params
        if not heirs:
            return True
        if len(self._ended) < params.width:
            return False
        if params.early_stopping is True:
            return True
        grows = params.early_stopping == "never" and params.length_penalty > 0
        n_tokens = self._longest if grows else heirs[0].answer.n_tokens
        return self._score(heirs[0].total, n_tokens) <= self._ended[-1].score

    def _divide(self, heirs: list[Heir], scheduler: Scheduler) -> Copies:
        """Give each heir a sequence: its parent's own, or where several have one parent, a copy of it."""
        heir_of = {id(heir.parent): heir for heir in reversed(heirs)}              # the best one of each parent
        for beam in self._beams:
            if id(beam) not in heir_of:
                scheduler.finish(beam.sequence)
        self._beams = [beam for beam in self._beams if id(beam) in heir_of]
        copies: Copies = []
        beams = []
        for heir in heirs:
            sequence = heir.parent.sequence
            if heir_of[id(heir.parent)] is not heir:
                sequence, needed = scheduler.fork(sequence, heir.token)
                copies += needed
            beams.append(Beam(sequence, heir.answer, heir.total, heir.said))
        self._beams = beams
        for heir in heir_of.values():              # last, since what is copied ends before the new token
            scheduler.extend(heir.parent.sequence, heir.token)
        return copies


def _candidates(beam: Beam) -> tuple[Candidate, ...]:
    assert beam.seen is not None
    return beam.seen.candidates


def _heir(beam: Beam, candidate: Candidate, total: float) -> Heir:
    assert beam.seen is not None
    answer = beam.answer.fork()
    delta = answer.take([replace(beam.seen, token_id=candidate.token_id, logprob=candidate.logprob, candidates=())], 1)
    return Heir(beam, candidate.token_id, answer, total, Said(delta, beam.said))
