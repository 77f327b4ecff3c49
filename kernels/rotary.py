"""Rotary position embedding, half-split: place i of a head turns together with place i + d/2."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels.library import bind

_Shape = ctypes.c_int64 * 7


def rotary_reference_(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> None:
    """Turn q [n, heads, d] and k [n, kv_heads, d] in place by the angles of `positions` [n] int32.

    cos_sin [positions, d]: the cosines in its first half, the sines in its second. ValueError, with nothing turned, for a
    position that it does not have.
    """
    _check(q, k, positions, cos_sin)
    if positions.numel() and not positions.is_cuda and (int(positions.min()) < 0 or int(positions.max()) >= cos_sin.shape[0]):
        raise _no_position(positions, cos_sin)
    cos, sin = cos_sin[positions.long()].unsqueeze(1).chunk(2, dim=-1)      # [n, 1, d/2] each
    for heads in (q, k):
        first, second = heads.chunk(2, dim=-1)
        turned = first * cos - second * sin, second * cos + first * sin
        first.copy_(turned[0])
        second.copy_(turned[1])


def rotary_native_(library: ctypes.CDLL) -> Callable[[Tensor, Tensor, Tensor, Tensor], None]:
    """`rotary_reference_`; q and k may be parts of wider rows, as they come out of a joint projection."""
    run = bind(library, "turnstile_rotary", [ctypes.c_void_p] * 5, ctypes.c_int64)

    def rotary_(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> None:
        _check(q, k, positions, cos_sin)
        n, heads, d = q.shape
        (q_stride, q_head, q_inner), (k_stride, k_head, k_inner) = q.stride(), k.stride()
        if q_head != d or k_head != d or q_inner != 1 or k_inner != 1 or not cos_sin.is_contiguous():
            raise ValueError("rotary_: the heads of one token must lie side by side, and cos_sin without gaps")
        positions = positions.contiguous()
        shape = _Shape(n, heads, k.shape[1], d, q_stride, k_stride, cos_sin.shape[0])
        if run(q.data_ptr(), k.data_ptr(), positions.data_ptr(), cos_sin.data_ptr(), shape):
            raise _no_position(positions, cos_sin)

    return rotary_


def _no_position(positions: Tensor, cos_sin: Tensor) -> ValueError:
    wrong = positions[(positions < 0) | (positions >= cos_sin.shape[0])][0]
    return ValueError(f"rotary_: position {int(wrong)} is not among the {cos_sin.shape[0]} of cos_sin")


def _check(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> None:
    n, _, d = q.shape
    if k.shape[0] != n or k.shape[2] != d or positions.shape != (n,) or cos_sin.shape[1] != d or d % 2:
        raise ValueError(
            f"rotary_: q {tuple(q.shape)}, k {tuple(k.shape)}, positions {tuple(positions.shape)} and "
            f"cos_sin {tuple(cos_sin.shape)} do not fit; needed [n, heads, d], [n, kv_heads, d], [n], [positions, d], d even"
        )
    if q.dtype != torch.float32 or k.dtype != torch.float32 or cos_sin.dtype != torch.float32 or positions.dtype != torch.int32:
        raise ValueError(
            f"rotary_: q {q.dtype}, k {k.dtype} and cos_sin {cos_sin.dtype} must be float32, positions {positions.dtype} int32"
        )
