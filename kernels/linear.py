"""Linear layer and embedding: products with, and rows of, a quantised weight matrix."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from kernels.library import bind
from kernels.weights import PackedWeight


def linear_reference(x: Tensor, weight: PackedWeight) -> Tensor:
    """[n, in] float32 -> [n, out]: x times the transposed weight, in float32."""
    weight.require("dense")
    if x.dim() != 2 or x.shape[1] != weight.shape[1]:
        raise _unfit(x, weight)
    return functional.linear(x, weight.data)


def linear_native(library: ctypes.CDLL) -> Callable[[Tensor, PackedWeight], Tensor]:
    """`linear_reference` on packed panels: float32 sums in one fixed order, whatever the number of rows."""
    run = bind(library, "turnstile_linear", [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p])
    empty, float32 = torch.empty, torch.float32

    def linear(x: Tensor, weight: PackedWeight) -> Tensor:
        rows, columns = weight.shape
        if x.dim() != 2 or x.shape[1] != columns or x.dtype != float32 or weight.layout != "panels":
            weight.require("panels")
            raise _unfit(x, weight)
        stride, inner = x.stride()
        if inner != 1:
            x = x.contiguous()
            stride = columns
        n = x.shape[0]
        y = empty(n, rows, dtype=float32)
        run(x.data_ptr(), stride, n, weight.address, y.data_ptr())
        return y

    return linear


def embed_reference(tokens: Tensor, weight: PackedWeight) -> Tensor:
    """[n] int64 -> [n, in] float32: the weight's rows `tokens`. ValueError for a token that is no row."""
    weight.require("dense")
    if tokens.numel() and not tokens.is_cuda and (int(tokens.min()) < 0 or int(tokens.max()) >= weight.shape[0]):
        raise _no_row(tokens, weight)
    return weight.data[tokens]


def embed_native(library: ctypes.CDLL) -> Callable[[Tensor, PackedWeight], Tensor]:
    """`embed_reference` on packed panels, bit for bit."""
    run = bind(
        library, "turnstile_embed", [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p], ctypes.c_int64
    )

    def embed(tokens: Tensor, weight: PackedWeight) -> Tensor:
        weight.require("panels")
        if tokens.dim() != 1 or tokens.dtype != torch.int64:
            raise ValueError(f"embed: tokens must be [n] int64, not {tuple(tokens.shape)} {tokens.dtype}")
        tokens = tokens.contiguous()
        y = torch.empty(tokens.shape[0], weight.shape[1], dtype=torch.float32)
        if run(tokens.data_ptr(), tokens.shape[0], weight.address, y.data_ptr()):
            raise _no_row(tokens, weight)
        return y

    return embed


def _unfit(x: Tensor, weight: PackedWeight) -> ValueError:
    return ValueError(f"linear: x is {tuple(x.shape)} {x.dtype}, the weight {weight.shape} needs [n, {weight.shape[1]}] float32")


def _no_row(tokens: Tensor, weight: PackedWeight) -> ValueError:
    wrong = tokens[(tokens < 0) | (tokens >= weight.shape[0])][0]
    return ValueError(f"embed: token {int(wrong)} is not in a vocabulary of {weight.shape[0]}")
