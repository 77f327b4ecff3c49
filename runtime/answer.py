"""What one sequence has said so far: its grammar's position, its text, and when it is over."""

from __future__ import annotations

from collections.abc import Sequence as Tokens
from copy import copy

import numpy as np

from grammar import Matcher

from .detokenizer import Detokenizer
from .errors import RequestFaulted
from .protocol import Delta, FinishReason, GenerationRequest, TokenLogprob
from .sampler import Sampled, SamplingRow, TokenCounts


class Answer:
    """Lives as long as its sequence. `reason` is set when the answer is over.

    `eos_ids` end an answer (unless the request ignores them); so do its stop tokens and stop strings, its
    grammar when nothing but an end is left, and `max_tokens`. With `jumps`, text that the grammar leaves no choice
    about is taken at once.
    """

    def __init__(self, request: GenerationRequest, seed: int, matcher: Matcher | None,
                 token_bytes: Tokens[bytes], eos_ids: Tokens[int], *, jumps: bool = True) -> None:
        self.request = request
        self.reason: FinishReason | None = None
        self.n_tokens = 0
        self.n_forced = 0                        # of them, tokens that the grammar left no choice about
        self.logprob: float | None = None        # of all tokens so far together, where logprobs were asked for
        self.matcher = matcher
        self._seed = seed
        self._token_bytes = token_bytes
        self._eos_ids = tuple(eos_ids)
        params = request.sampling
        self._ends = {*params.stop_token_ids, *(() if params.ignore_eos and matcher is None else eos_ids)}
        self._jumps = jumps and params.logprobs is None
        self._detokenizer = Detokenizer(params.stop)
        self._counts = TokenCounts(params, request.prompt_tokens)
        # Each beam may have to pass over all ends before it comes to a token by which an answer goes on.
        self._n_candidates = request.beams.width * (1 + len(self._ends)) if request.beams else 0

    def fork(self) -> Answer:
        """Another answer that has said the same so far. The two go on independently."""
        other = copy(self)
        other.matcher = None if self.matcher is None else self.matcher.fork()
        other._detokenizer, other._counts = self._detokenizer.fork(), self._counts.fork()
        return other

    @property
    def may_be_guessed(self) -> bool:
        """Whether the places after a guess can be drawn before it is known to be right: penalties would need to know."""
        return not self._counts.in_use

    def sampling_rows(self, n: int) -> list[SamplingRow]:
        """How the next `n` tokens are drawn, if each is the one guessed but the last."""
        return [self._sampling_row(position) for position in range(self.n_tokens, self.n_tokens + n)]

    def _sampling_row(self, position: int) -> SamplingRow:
        params = self.request.sampling
        banned: tuple[int, ...] = ()
        if self.matcher is None:                 # a grammar decides by itself when its answer may end
            if position < params.min_tokens:
                banned = (*self._eos_ids, *params.stop_token_ids)
            elif params.ignore_eos:
                banned = self._eos_ids
        return SamplingRow(params, self._seed, position, self._counts, banned, self._n_candidates)

    def take(self, drawn: list[Sampled], most: int) -> Delta:
        """Go on by the tokens drawn and by what the grammar leaves no choice about, `most` tokens in all at most.

        Sets `reason` if the answer is over, and then drops what comes after. Requests for logprobs go on by what was drawn: each
        token of theirs needs the model's word.
        """
        text = ""
        tokens: list[int] = []
        logprobs: list[TokenLogprob] = []
        for sampled in drawn[:most]:
            text += self._go_on(sampled.token_id)
            tokens.append(sampled.token_id)
            logprobs += self._logprobs(sampled)
            if sampled.logprob is not None:
                self.logprob = (self.logprob or 0.0) + sampled.logprob
            if self.reason is not None:
                break
        if self.matcher is not None and self._jumps and self.reason is None:
            for token in self.matcher.forced_tokens()[:most - len(tokens)]:
                if token in self._ends or self.reason is not None:
                    break
                text += self._go_on(token)
                tokens.append(token)
                self.n_forced += 1
        return Delta(self.request.request_id, text, tuple(tokens), tuple(logprobs))

    def _go_on(self, token: int) -> str:
        """Take one token; the text that can be told now."""
        self.n_tokens += 1
        self._counts.add(token)
        if self.matcher is not None and not self.matcher.accept(token):
            raise RequestFaulted(f"the grammar refused token {token}, which its own mask had allowed")
        text = ""
        if token in self._ends:
            self.reason = "stop"
        else:
            text = self._detokenizer.push(self._token_bytes[token])
            if self._detokenizer.stopped or self._only_the_end_is_left():
                self.reason = "stop"
            elif self.n_tokens >= self.request.sampling.max_tokens:
                self.reason = "length"
        if self.reason is not None:
            text += self._detokenizer.finish()
        return text

    def close(self) -> Delta | None:
        """The text held back, when the answer ends without a further token."""
        text = self._detokenizer.finish()
        return Delta(self.request.request_id, text, ()) if text else None

    def _only_the_end_is_left(self) -> bool:
        """Whether the grammar allows nothing but an end: then the step that would draw it is saved."""
        if self.matcher is None or not self.matcher.may_end:
            return False
        row = np.zeros((len(self._token_bytes) + 31) // 32, dtype=np.uint32)
        self.matcher.fill_mask(row)
        for token in self._eos_ids:
            row[token >> 5] &= ~np.uint32(1 << (token & 31))
        return not row.any()

    def _logprobs(self, sampled: Sampled) -> tuple[TokenLogprob, ...]:
        if sampled.logprob is None or sampled.token_id in self._ends:
            return ()
        top = tuple((t, self._token_bytes[t], lp) for t, lp in sampled.top)
        return (TokenLogprob(sampled.token_id, self._token_bytes[sampled.token_id], sampled.logprob, top),)
