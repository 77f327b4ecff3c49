"""What one sequence has said so far: its grammar's position, its text, and when it is over."""

from __future__ import annotations

from collections.abc import Sequence as Tokens

import numpy as np

from grammar import Matcher

from .detokenizer import Detokenizer
from .errors import RequestFaulted
from .protocol import Delta, FinishReason, GenerationRequest, TokenLogprob
from .sampler import Sampled, SamplingRow, TokenCounts


class Answer:
    """Lives as long as its sequence. `reason` is set when the answer is over.

    `eos_ids` end an answer (unless the request ignores them); so do its stop tokens and stop strings, its
    grammar when nothing but an end is left, and `max_tokens`.
    """

    def __init__(self, request: GenerationRequest, seed: int, matcher: Matcher | None,
                 token_bytes: Tokens[bytes], eos_ids: Tokens[int]) -> None:
        self.request = request
        self.reason: FinishReason | None = None
        self.n_tokens = 0
        self.matcher = matcher
        self._seed = seed
        self._token_bytes = token_bytes
        self._eos_ids = tuple(eos_ids)
        params = request.sampling
        self._ends = {*params.stop_token_ids, *(() if params.ignore_eos and matcher is None else eos_ids)}
        self._detokenizer = Detokenizer(params.stop)
        self._counts = TokenCounts(params, request.prompt_tokens)

    def sampling_row(self) -> SamplingRow:
        params = self.request.sampling
        banned: tuple[int, ...] = ()
        if self.matcher is None:                 # a grammar decides by itself when its answer may end
            if self.n_tokens < params.min_tokens:
                banned = (*self._eos_ids, *params.stop_token_ids)
            elif params.ignore_eos:
                banned = self._eos_ids
        return SamplingRow(params, self._seed, self.n_tokens, self._counts, banned)

    def take(self, sampled: Sampled) -> Delta:
        """Go on by one token. Sets `reason` if it was the last."""
        token = sampled.token_id
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
        return Delta(self.request.request_id, text, (token,), self._logprobs(sampled))

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
