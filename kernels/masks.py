"""Token masks: packed bits, bit t % 32 of word t // 32 of a row is 1 where token t is allowed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels.library import bind


def mask_logits_reference_(logits: Tensor, bits: Tensor) -> None:
    """Set logits[r, t] to -inf in place where bit t of row r of `bits` ([m, ceil(vocabulary / 32)] int32) is 0."""
    _check(logits, bits)
    shifts = torch.arange(32, dtype=torch.int32, device=bits.device)
    allowed = (bits.unsqueeze(-1) >> shifts) & 1                    # [m, words, 32]
    logits.masked_fill_(allowed.flatten(1)[:, : logits.shape[1]] == 0, float("-inf"))


def mask_logits_native_(library: ctypes.CDLL) -> Callable[[Tensor, Tensor], None]:
    """`mask_logits_reference_` without unpacking the bits."""
    run = bind(
        library,
        "turnstile_mask_logits",
        [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64],
    )

    def mask_logits_(logits: Tensor, bits: Tensor) -> None:
        _check(logits, bits)
        stride, inner = logits.stride()
        if inner != 1 or logits.dtype != torch.float32:
            raise ValueError("mask_logits_: the logits of a row must be float32 and lie side by side")
        bits = bits.contiguous()
        run(logits.data_ptr(), stride, bits.data_ptr(), logits.shape[0], logits.shape[1])

    return mask_logits_


def _check(logits: Tensor, bits: Tensor) -> None:
    words = -(-logits.shape[1] // 32)
    if bits.shape != (logits.shape[0], words) or bits.dtype != torch.int32:
        raise ValueError(
            f"mask_logits_: logits {tuple(logits.shape)} need bits [{logits.shape[0]}, {words}] int32, "
            f"not {tuple(bits.shape)} {bits.dtype}"
        )
