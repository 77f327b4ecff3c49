"""The gated activation between the two halves of a feed-forward layer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from kernels.library import bind


def swiglu_reference(gate_up: Tensor) -> Tensor:
    """[n, 2 * ff] -> [n, ff]: silu of the first half times the second half."""
    _check(gate_up)
    gate, up = gate_up.chunk(2, dim=-1)
    return functional.silu(gate) * up


def swiglu_native(library: ctypes.CDLL) -> Callable[[Tensor], Tensor]:
    """`swiglu_reference` in one pass over memory."""
    run = bind(library, "turnstile_swiglu", [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p])

    def swiglu(gate_up: Tensor) -> Tensor:
        _check(gate_up)
        gate_up = gate_up.contiguous()
        n, ff = gate_up.shape[0], gate_up.shape[1] // 2
        out = torch.empty(n, ff, dtype=torch.float32)
        run(gate_up.data_ptr(), n, ff, out.data_ptr())
        return out

    return swiglu


def _check(gate_up: Tensor) -> None:
    if gate_up.dim() != 2 or gate_up.shape[1] % 2 or gate_up.dtype != torch.float32:
        raise ValueError(f"swiglu: needed [n, 2 * ff] float32, not {tuple(gate_up.shape)} {gate_up.dtype}")
