"""Writing keys and values into the paged pool. A layer's pool is [2, blocks, kv_heads, block_tokens, head_dim]."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels.library import bind

_Shape = ctypes.c_int64 * 7


def write_kv_reference_(k: Tensor, v: Tensor, layer_kv: Tensor, slots: Tensor) -> None:
    """Put token i's key k[i] and value v[i] ([n, kv_heads, d] each) at slot slots[i] = block * block_tokens + offset.

    Slots of one call must differ from each other. ValueError, with nothing written, for a slot outside the pool.
    """
    _check(k, v, layer_kv, slots)
    block_tokens = layer_kv.shape[3]
    if slots.numel() and not slots.is_cuda and (int(slots.min()) < 0 or int(slots.max()) >= layer_kv.shape[1] * block_tokens):
        raise _outside(layer_kv, slots)
    blocks, offsets = slots // block_tokens, slots % block_tokens
    layer_kv[0][blocks, :, offsets] = k
    layer_kv[1][blocks, :, offsets] = v


def write_kv_native_(library: ctypes.CDLL) -> Callable[[Tensor, Tensor, Tensor, Tensor], None]:
    """`write_kv_reference_`; k and v may be parts of wider rows, as they come out of a joint projection."""
    run = bind(library, "turnstile_write_kv", [ctypes.c_void_p] * 5, ctypes.c_int64)

    def write_kv_(k: Tensor, v: Tensor, layer_kv: Tensor, slots: Tensor) -> None:
        _check(k, v, layer_kv, slots)
        n, kv_heads, d = k.shape
        (k_stride, k_head, k_inner), (v_stride, v_head, v_inner) = k.stride(), v.stride()
        if k_head != d or v_head != d or k_inner != 1 or v_inner != 1 or not layer_kv.is_contiguous():
            raise ValueError("write_kv_: the heads of one token must lie side by side, and the pool without gaps")
        slots = slots.contiguous()
        shape = _Shape(n, kv_heads, d, layer_kv.shape[3], layer_kv.shape[1], k_stride, v_stride)
        if run(k.data_ptr(), v.data_ptr(), layer_kv.data_ptr(), slots.data_ptr(), shape):
            raise _outside(layer_kv, slots)

    return write_kv_


def _outside(layer_kv: Tensor, slots: Tensor) -> ValueError:
    blocks, block_tokens = layer_kv.shape[1], layer_kv.shape[3]
    wrong = slots[(slots < 0) | (slots >= blocks * block_tokens)][0]
    return ValueError(f"write_kv_: slot {int(wrong)} lies outside a pool of {blocks} blocks of {block_tokens} tokens")


def _check(k: Tensor, v: Tensor, layer_kv: Tensor, slots: Tensor) -> None:
    n, kv_heads, d = k.shape
    pool = layer_kv.shape
    if v.shape != k.shape or len(pool) != 5 or pool[0] != 2 or pool[2] != kv_heads or pool[4] != d or slots.shape != (n,):
        raise ValueError(
            f"write_kv_: k {tuple(k.shape)}, v {tuple(v.shape)}, pool {tuple(pool)} and slots {tuple(slots.shape)} do not fit; "
            f"needed [n, kv_heads, d] twice, [2, blocks, kv_heads, block_tokens, d], [n]"
        )
    float32 = torch.float32
    if k.dtype != float32 or v.dtype != float32 or layer_kv.dtype != float32 or slots.dtype != torch.int64:
        raise ValueError(
            f"write_kv_: k {k.dtype}, v {v.dtype} and the pool {layer_kv.dtype} must be float32, slots {slots.dtype} int64"
        )
