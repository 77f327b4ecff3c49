"""A weight matrix made ready for one set of operations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.library import bind
from kernels.quant import QuantTensor

# The numbers that calls.h gives the kinds.
KIND_NUMBERS = {"f32": 0, "f16": 1, "bf16": 2, "q4_0": 3, "q4_1": 4, "q8_0": 5}


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """What `ops.pack` makes of a QuantTensor, once, at load. Only the operations that packed it can use it.

    layout "dense": `data` is [out, in] float32. layout "panels": `data` is the header and the interleaved bytes that
    docs/kernels.md describes, and `address` is where they lie.
    """

    layout: str
    kind: str
    shape: tuple[int, int]
    data: Tensor
    address: int = 0

    def require(self, layout: str) -> None:
        """ValueError unless this weight was packed as `layout`."""
        if self.layout != layout:
            raise ValueError(f"this weight was packed as {self.layout!r}, not {layout!r}: pack it with the ops that use it")


def pack_reference(weight: QuantTensor) -> PackedWeight:
    """The exact values as one float32 matrix on the weight's own device."""
    return PackedWeight("dense", weight.kind, weight.shape, weight.dequantized().contiguous())


def pack_native(library: ctypes.CDLL) -> Callable[[QuantTensor], PackedWeight]:
    """Packing into panels of 16 interleaved rows, as quantised as they are."""
    packed_bytes = bind(library, "turnstile_packed_bytes", [ctypes.c_int32, ctypes.c_int64, ctypes.c_int64], ctypes.c_int64)
    interleave = bind(
        library, "turnstile_pack", [ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    )

    def pack(weight: QuantTensor) -> PackedWeight:
        number, (rows, columns) = KIND_NUMBERS[weight.kind], weight.shape
        source = weight.data.to("cpu").contiguous()
        data = torch.empty(packed_bytes(number, rows, columns) + 63, dtype=torch.uint8)
        address = (data.data_ptr() + 63) & ~63      # panels start at cache lines, wherever torch put the memory
        interleave(number, rows, columns, source.data_ptr(), address)
        return PackedWeight("panels", weight.kind, weight.shape, data, address)

    return pack
