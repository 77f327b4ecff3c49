"""Log probabilities of a row, as it is when they are asked for."""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor


class Logprobs:
    """One row's log-softmax, kept while the row itself is changed."""

    def __init__(self, row: Tensor) -> None:
        self._logprobs = row.log_softmax(-1)    # [vocabulary]

    def of(self, token_id: int) -> float:
        return float(self._logprobs[token_id])

    def top(self, k: int) -> tuple[tuple[int, float], ...]:
        """The `k` likeliest tokens with their logprobs, likeliest first, equal ones by id. Impossible ones are left out."""
        if k == 0:
            return ()
        logprobs, ids = leading(self._logprobs, k)
        return tuple(zip(ids.tolist(), logprobs.tolist(), strict=True))


def leading(row: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The `k` largest finite values of a row and their places, largest first, equal ones by place.

    A partial selection. Exact also where the k-th value occurs more often than there is room for.
    """
    k = min(k, len(row))
    values, ids = row.topk(min(k + 1, len(row)))
    last = values[k - 1]
    if len(values) > k and last == values[k] and last > -inf:
        n_larger = int((values > last).sum())
        equal = (row == last).nonzero().flatten()[: k - n_larger]
        ids = torch.cat([ids[:n_larger], equal])
    ids = ids[:k].sort().values
    values, order = row[ids].sort(descending=True, stable=True)
    n_finite = int((values > -inf).sum())
    return values[:n_finite], ids[order[:n_finite]]
