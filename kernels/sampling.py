"""From rows of final logits to one token each: which tokens are kept, and which of them is drawn.

Every row, [vocabulary] float32, is looked at alone, and its sums are made in an order that depends on nothing else. So the choice
is the same whatever else is in the batch. The vocabulary is never sorted: what narrows a row needs to know where its tokens end,
not how they are ordered. The native version makes its sums in another order than the reference: where `u` falls within rounding
of the border between two tokens they may choose differently.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import e, inf, log, log2, nextafter

import numpy as np
import torch
from torch import Tensor

from kernels.library import bind

_FEW = 1024               # values that are sorted rather than halved again
_SMALL = 1e-30            # a probability that float32 sums can't tell from none
_BLOCK = 256              # tokens whose weights are summed before a block is looked into


@dataclass(frozen=True, slots=True)
class Choice:
    """How one row's token is drawn. `peak` is the row's largest logit, a finite one; `u` is uniform in [0, 1)."""

    row: int
    peak: float
    u: float
    temperature: float         # above 0
    top_k: int = 0             # 0: all
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0


def choose_reference_(logits: Tensor, choices: Sequence[Choice]) -> list[int]:
    """The token that each choice's `u` stands for. Overwrites the rows of `logits`, [rows, vocabulary] float32, that it looks at.

    temperature, top_k, top_p, min_p and typical_p narrow a row in this order, each looking at what the ones before it kept; of
    equally likely tokens the lower ids stay longer.
    """
    return [_choose_(logits[choice.row], choice) for choice in choices]


def choose_native_(library: ctypes.CDLL) -> Callable[[Tensor, Sequence[Choice]], list[int]]:
    """`choose_reference_` in one call."""
    run = bind(library, "turnstile_choose",
               [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p])

    def choose_(logits: Tensor, choices: Sequence[Choice]) -> list[int]:
        stride, inner = logits.stride()
        if inner != 1 or logits.dtype != torch.float32:
            raise ValueError("choose_: the logits of a row must be float32 and lie side by side")
        rules = np.array([(c.row, c.peak, c.u, c.temperature, c.top_k, c.top_p, c.min_p, c.typical_p) for c in choices],
                         dtype=np.float64)
        tokens = np.empty(len(choices), dtype=np.int32)
        run(logits.data_ptr(), stride, logits.shape[1], rules.ctypes.data, len(choices), tokens.ctypes.data)
        return tokens.tolist()

    return choose_


def _choose_(row: Tensor, choice: Choice) -> int:
    peak, temperature = choice.peak, choice.temperature
    if 0 < choice.top_k < len(row):
        keep_top_k_(row, choice.top_k)
    if choice.top_p < 1:
        keep_top_p_(row, choice.top_p, peak, temperature)
    if choice.min_p > 0:
        _cut_(row, peak + temperature * log(choice.min_p))
    if choice.typical_p < 1:
        keep_typical_(row, choice.typical_p, peak, temperature)
    return draw(row, peak, temperature, choice.u)


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


def keep_typical_(row: Tensor, typical_p: float, peak: float, temperature: float) -> None:
    """Set all logits to -inf but those of the fewest tokens whose probabilities reach `typical_p` of the whole.

    They are taken in the order of how near their surprise is to the expected one (Meister et al., "Locally typical
    sampling", 2023).
    """
    weights = _weights(row, peak, temperature).double()
    shares = weights / weights.sum()
    surprise = -shares.log()
    expected = (shares * surprise).nansum()
    order = (surprise - expected).abs().sort(stable=True).indices
    reached = shares[order].cumsum(0)
    last = min(int(torch.searchsorted(reached, typical_p)), int((shares > 0).sum()) - 1)
    row[order[last + 1:]] = -inf


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
