"""What a request changes about its logits before a token is drawn: bias and penalties."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import numpy as np
import torch
from torch import Tensor

from .errors import RequestFaulted
from .protocol import SamplingParams


class TokenCounts:
    """How often each token of one sequence's answer has come, and which tokens its prompt holds.

    Owned by the sequence, which adds each token once: no step counts anything again, and applying the
    penalties costs as much as there are different tokens, not the vocabulary. Keeps nothing for a request
    without penalties.
    """

    def __init__(self, params: SamplingParams, prompt_tokens: Iterable[int]) -> None:
        self._presence = params.presence_penalty
        self._frequency = params.frequency_penalty
        self._repetition = params.repetition_penalty
        self.in_use = self._presence != 0 or self._frequency != 0 or self._repetition != 1
        self._places: dict[int, int] = {}                  # token id -> place in the arrays
        if self._repetition != 1:
            self._places = {token: place for place, token in enumerate(dict.fromkeys(prompt_tokens))}
        self._ids = np.fromiter(self._places, dtype=np.int64, count=len(self._places))
        self._n_generated = np.zeros(len(self._places), dtype=np.float32)

    def add(self, token: int) -> None:
        """The answer goes on by `token`."""
        if not self.in_use:
            return
        place = self._places.setdefault(token, len(self._places))
        if place == len(self._ids):
            self._grow()
        self._ids[place] = token
        self._n_generated[place] += 1

    def fork(self) -> TokenCounts:
        """Counts that go on from these."""
        other = copy(self)
        if self.in_use:
            other._places, other._ids, other._n_generated = dict(self._places), self._ids.copy(), self._n_generated.copy()
        return other

    def _grow(self) -> None:
        more = max(64, len(self._ids))
        self._ids = np.concatenate([self._ids, np.zeros(more, dtype=np.int64)])
        self._n_generated = np.concatenate([self._n_generated, np.zeros(more, dtype=np.float32)])

    def penalise_(self, row: Tensor) -> None:
        """Apply the penalties to one row of logits, [vocabulary], in place.

        First repetition, for tokens of prompt and answer: positive logits are divided by it, others multiplied.
        Then, for tokens of the answer, presence once and frequency as often as the token has come.
        """
        n = len(self._places)
        if not self.in_use or n == 0:
            return
        ids = torch.from_numpy(self._ids[:n]).to(row.device)
        n_generated = torch.from_numpy(self._n_generated[:n]).to(row.device)
        logits = row[ids]
        if self._repetition != 1:
            logits = torch.where(logits > 0, logits / self._repetition, logits * self._repetition)
        row[ids] = logits - self._frequency * n_generated - self._presence * (n_generated > 0)


def add_bias_(row: Tensor, params: SamplingParams) -> None:
    """Add the request's logit_bias to one row of logits, [vocabulary], in place.

    Raises RequestFaulted for a token that the vocabulary doesn't have.
    """
    if not params.logit_bias:
        return
    ids, biases = zip(*params.logit_bias, strict=True)
    if min(ids) < 0 or max(ids) >= len(row):
        raise RequestFaulted(f"logit_bias names a token outside the vocabulary, which has {len(row)}", "logit_bias")
    row.index_add_(0, torch.tensor(ids, device=row.device), torch.tensor(biases, dtype=row.dtype, device=row.device))
