"""From one row's final logits to one token: which tokens are kept, and which of them is drawn.

Everything here looks at one row, [vocabulary] float32, with tensors whose shapes depend on nothing but the
row itself. Sums are then made in the same order whatever else is in the batch, and so is the choice. The
vocabulary is never sorted: what narrows a row needs to know where its tokens end, not how they are ordered.
"""

from __future__ import annotations

from math import e, inf, log, log2, nextafter

import torch
from torch import Tensor

from .protocol import SamplingParams

_FEW = 1024               # values that are sorted rather than halved again
_SMALL = 1e-30            # a probability that float32 sums can't tell from none
_BLOCK = 256              # tokens whose weights are summed before a block is looked into


def choose_(row: Tensor, peak: float, params: SamplingParams, u: float) -> int:
    """The token that the number `u`, uniform in [0, 1), stands for. Overwrites the row.

    `peak` is the row's largest logit, a finite one. temperature, top_k, top_p and min_p narrow the row in this
    order, each looking at what the ones before it kept; of equally likely tokens the lower ids stay longer.
    """
    if 0 < params.top_k < len(row):
        keep_top_k_(row, params.top_k)
    if params.top_p < 1:
        keep_top_p_(row, params.top_p, peak, params.temperature)
    if params.min_p > 0:
        _cut_(row, peak + params.temperature * log(params.min_p))
    return draw(row, peak, params.temperature, u)


def keep_top_k_(row: Tensor, k: int) -> None:
    """Set all but the `k` largest logits of a row to -inf."""
    _cut_after_(row, row.topk(min(k + 1, len(row))).values, k - 1)


def keep_top_p_(row: Tensor, top_p: float, peak: float, temperature: float) -> None:
    """Set all logits to -inf but those of the nucleus: the fewest tokens whose probabilities reach `top_p` of the whole."""
    total = _mass(row, peak, temperature)
    wanted = top_p * total
    # Tokens that each have less than an equal share of what may be left out can't be needed, all together.
    share = max(total - wanted, _SMALL) / (2 * len(row))
    low = _below(peak + temperature * log(share), row.dtype)
    values, above = _where_mass_ends(row, low, wanted, peak, temperature)
    ends = _weights(values, peak, temperature).cumsum(0, dtype=torch.float64) + above
    _cut_after_(row, values, min(int(torch.searchsorted(ends, wanted)), len(values) - 1))


def draw(row: Tensor, peak: float, temperature: float, u: float) -> int:
    """Lay the tokens along [0, 1) by id, each as long as its probability, and return the one at `u`.

    First the block of tokens in which `u` falls is found, then the token in the block: two short searches in
    place of a sum that runs through the vocabulary. Sums are float64. A token that is -inf is never returned.
    """
    n_blocks = -(-len(row) // _BLOCK)
    weights = torch.nn.functional.pad(_weights(row, peak, temperature), (0, n_blocks * _BLOCK - len(row)))
    blocks = weights.view(n_blocks, _BLOCK)
    ends = blocks.sum(1, dtype=torch.float64).cumsum(0)
    block, rest = _land(ends, u * float(ends[-1]))
    token, _ = _land(blocks[block].cumsum(0, dtype=torch.float64), rest)
    return block * _BLOCK + token


def _land(ends: Tensor, target: float) -> tuple[int, float]:
    """Which of the intervals that end at `ends` holds `target`, and how far into it. Never one without length.

    A target at or past the end, where rounding can put it, falls into the last interval.
    """
    target = min(target, nextafter(float(ends[-1]), 0.0))
    place = int(torch.searchsorted(ends, target, right=True))
    return place, target - (float(ends[place - 1]) if place else 0.0)


def _where_mass_ends(row: Tensor, low: float, wanted: float, peak: float, temperature: float) -> tuple[Tensor, float]:
    """Some of the row's values, falling, among which the mass of the largest reaches `wanted`; and the mass above them.

    Looks at what is larger than `low`. As long as that is much, it halves the range of values and goes on with
    the side in which the mass is reached. Equal values stay together.
    """
    values, high, above = row[row > low], peak, 0.0    # the values lie in (low, high]
    while len(values) > _FEW:
        middle = float(torch.tensor((low + high) / 2, dtype=row.dtype))
        if not low < middle < high:
            break
        larger = values[values > middle]
        mass = _mass(larger, peak, temperature)
        if above + mass >= wanted:
            values, low = larger, middle
        else:
            values, high, above = values[values <= middle], middle, above + mass
    return values.sort(descending=True).values, above


def _cut_after_(row: Tensor, values: Tensor, last: int) -> None:
    """Keep the tokens down to values[last], where `values` are some of the row's, falling, without a gap.

    Of the tokens with that very logit as many are kept as there are of it in values[: last + 1], by lowest id.
    """
    lowest = values[last]
    _cut_(row, float(lowest))
    if last + 1 < len(values) and values[last + 1] < lowest:
        return    # all tokens with that logit are kept, the usual case: there is no need to look for them
    n_equal = int((values[: last + 1] == lowest).sum())
    row[(row == lowest).nonzero().flatten()[n_equal:]] = -inf


def _cut_(row: Tensor, lowest: float) -> None:
    """Set what is less than `lowest` to -inf."""
    torch.threshold_(row, _below(lowest, row.dtype), -inf)


def _below(value: float, dtype: torch.dtype) -> float:
    """The next smaller number of `dtype`, in which the row is compared with it."""
    return float(torch.nextafter(torch.tensor(value, dtype=dtype), torch.tensor(-inf, dtype=dtype)))


def _weights(logits: Tensor, peak: float, temperature: float) -> Tensor:
    """Probabilities up to a common factor; the likeliest token's is 1.

    A power of two, because torch's `exp` takes ten times as long where it meets -inf or a result near zero.
    """
    return ((logits - peak) * (log2(e) / temperature)).exp2()


def _mass(logits: Tensor, peak: float, temperature: float) -> float:
    return float(_weights(logits, peak, temperature).sum(dtype=torch.float64))
