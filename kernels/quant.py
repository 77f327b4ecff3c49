"""Weights as they lie in a model file: quantised matrices in GGUF's block layouts, and their exact values.

A block is 32 neighbouring values of one row. In `q4_1` it is 20 bytes: scale d and minimum m as f16, then 16
bytes whose low nibbles are values 0..15 and high nibbles values 16..31, w = d * q + m. `q4_0` has no minimum
(w = d * (q - 8), 18 bytes), `q8_0` is d and 32 signed bytes (w = d * q, 34 bytes). In float32 the product d * q is exact,
so every correct decoder gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK_VALUES = 32
BLOCK_BYTES = {"q4_0": 18, "q4_1": 20, "q8_0": 34}
FLOAT_TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
KINDS = (*FLOAT_TYPES, *BLOCK_BYTES)


@dataclass(frozen=True, slots=True)
class QuantTensor:
    """A matrix [out, in] in one of KINDS. Rows are independent of each other.

    `data` is [out, in] of the float type for f32, f16 and bf16, else [out, bytes of a row] uint8.
    Raises ValueError if kind, shape and data do not fit together.
    """

    kind: str
    shape: tuple[int, int]
    data: Tensor

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"weights of kind {self.kind!r} are not known; known: {', '.join(KINDS)}")
        expected = (self.shape[0], row_bytes(self.kind, self.shape[1]) if self.kind in BLOCK_BYTES else self.shape[1])
        dtype = FLOAT_TYPES.get(self.kind, torch.uint8)
        if tuple(self.data.shape) != expected or self.data.dtype != dtype:
            raise ValueError(
                f"a {self.kind} matrix of shape {self.shape} needs data {expected} {dtype}, "
                f"not {tuple(self.data.shape)} {self.data.dtype}"
            )

    @classmethod
    def from_bytes(cls, kind: str, shape: tuple[int, int], raw: Tensor) -> QuantTensor:
        """The matrix whose bytes (uint8, any shape, row after row) are `raw`; shares its memory where it can."""
        if kind not in KINDS:
            raise ValueError(f"weights of kind {kind!r} are not known; known: {', '.join(KINDS)}")
        expected = shape[0] * row_bytes(kind, shape[1])
        if raw.dtype != torch.uint8 or raw.numel() != expected:
            raise ValueError(f"a {kind} matrix of shape {shape} has {expected} bytes, not {raw.numel()} of {raw.dtype}")
        rows = raw.reshape(shape[0], -1)
        return cls(kind, shape, rows.view(FLOAT_TYPES[kind]) if kind in FLOAT_TYPES else rows)

    def select_rows(self, index: Tensor) -> QuantTensor:
        """The rows `index` (int64), in that order, still quantised."""
        return QuantTensor(self.kind, (index.numel(), self.shape[1]), self.data[index])

    def dequantized(self) -> Tensor:
        """The exact values, [out, in] float32."""
        return dequantize_reference(self)


def row_bytes(kind: str, columns: int) -> int:
    """Bytes of one row of `columns` values; ValueError if blocks do not divide it."""
    if kind in FLOAT_TYPES:
        return columns * FLOAT_TYPES[kind].itemsize
    if columns % BLOCK_VALUES:
        raise ValueError(f"a row of {columns} values cannot be {kind}: its blocks have {BLOCK_VALUES} values")
    return columns // BLOCK_VALUES * BLOCK_BYTES[kind]


def concat_rows(parts: Sequence[QuantTensor]) -> QuantTensor:
    """One matrix of all rows of `parts`, which agree in kind and columns (e.g. the query, key and value projections)."""
    kinds = {(part.kind, part.shape[1]) for part in parts}
    if len(kinds) != 1:
        raise ValueError(f"rows of different kinds or widths cannot be joined: {sorted(kinds)}")
    rows = sum(part.shape[0] for part in parts)
    return QuantTensor(parts[0].kind, (rows, parts[0].shape[1]), torch.cat([part.data for part in parts]))


def dequantize_reference(weight: QuantTensor) -> Tensor:
    """[out, in] float32: the values that the bytes stand for. Defines the meaning of each kind."""
    if weight.kind in FLOAT_TYPES:
        return weight.data.to(torch.float32)
    rows, columns = weight.shape
    blocks = weight.data.reshape(rows, columns // BLOCK_VALUES, BLOCK_BYTES[weight.kind])
    scale = _half(blocks, 0)                                            # [out, blocks, 1]
    if weight.kind == "q8_0":
        values = blocks[..., 2:].view(torch.int8).to(torch.float32) * scale
    elif weight.kind == "q4_0":
        values = (_nibbles(blocks[..., 2:]) - 8.0) * scale
    else:
        values = _nibbles(blocks[..., 4:]) * scale + _half(blocks, 2)
    return values.reshape(rows, columns)


def _half(blocks: Tensor, offset: int) -> Tensor:
    """The f16 at `offset` of every block as float32, [out, blocks, 1]."""
    return blocks[..., offset : offset + 2].contiguous().view(torch.float16).to(torch.float32)


def _nibbles(packed: Tensor) -> Tensor:
    """[out, blocks, 16] bytes -> [out, blocks, 32] float32: all low nibbles, then all high ones."""
    return torch.cat([packed & 15, packed >> 4], dim=-1).to(torch.float32)
