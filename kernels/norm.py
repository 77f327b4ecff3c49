"""Root-mean-square normalisation, alone and joined with the residual sum before it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels.library import bind

_ARGUMENTS = [
    ctypes.c_void_p,    # x
    ctypes.c_void_p,    # residual, may be null
    ctypes.c_void_p,    # weight
    ctypes.c_float,     # eps
    ctypes.c_int64,     # n
    ctypes.c_int64,     # d
    ctypes.c_void_p,    # total, may be null
    ctypes.c_void_p,    # out
]


def rms_norm_reference(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """[n, d] -> [n, d]: each row divided by the root of its mean square plus `eps`, times `weight` [d]."""
    _check(x, x, weight)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rms_norm_native(library: ctypes.CDLL) -> Callable[[Tensor, Tensor, float], Tensor]:
    """`rms_norm_reference` in one pass over memory."""
    run = bind(library, "turnstile_rms_norm", _ARGUMENTS)

    def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
        _check(x, x, weight)
        x, weight = x.contiguous(), weight.contiguous()
        n, d = x.shape
        out = torch.empty_like(x)
        run(x.data_ptr(), None, weight.data_ptr(), eps, n, d, None, out.data_ptr())
        return out

    return rms_norm


def add_rms_norm_reference(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(rms_norm(x + residual), x + residual); both inputs stay as they are."""
    _check(x, residual, weight)
    total = x + residual
    return rms_norm_reference(total, weight, eps), total


def add_rms_norm_native(library: ctypes.CDLL) -> Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]:
    """`add_rms_norm_reference` in one pass over memory."""
    run = bind(library, "turnstile_rms_norm", _ARGUMENTS)

    def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        _check(x, residual, weight)
        x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
        n, d = x.shape
        out, total = torch.empty_like(x), torch.empty_like(x)
        run(x.data_ptr(), residual.data_ptr(), weight.data_ptr(), eps, n, d, total.data_ptr(), out.data_ptr())
        return out, total

    return add_rms_norm


def _check(x: Tensor, residual: Tensor, weight: Tensor) -> None:
    shape = x.shape
    same_shapes = len(shape) == 2 and residual.shape == shape and weight.shape == shape[1:]
    if not same_shapes or not x.dtype == residual.dtype == weight.dtype == torch.float32:
        raise ValueError(
            f"rms_norm: x {tuple(x.shape)} {x.dtype}, residual {tuple(residual.shape)} and weight {tuple(weight.shape)} "
            f"{weight.dtype} do not fit; needed [n, d], [n, d] and [d], all float32"
        )
