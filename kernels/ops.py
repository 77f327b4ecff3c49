"""The operations of a forward pass, as one table chosen at start: native where it can be, else the references."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kernels import library
from kernels.activation import swiglu_native, swiglu_reference
from kernels.attention import paged_attention_native, paged_attention_reference
from kernels.batch import RaggedBatch
from kernels.blocks import write_kv_native_, write_kv_reference_
from kernels.linear import embed_native, embed_reference, linear_native, linear_reference
from kernels.masks import mask_logits_native_, mask_logits_reference_
from kernels.norm import add_rms_norm_native, add_rms_norm_reference, rms_norm_native, rms_norm_reference
from kernels.quant import QuantTensor
from kernels.rotary import rotary_native_, rotary_reference_
from kernels.sampling import Choice, choose_native_, choose_reference_
from kernels.weights import PackedWeight, pack_native, pack_reference

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ops:
    """One implementation of every operation; the `*_reference` functions define what each one means.

    Names that end in an underscore write into an argument. All activations are float32. In the native operations
    the bits of a row depend on that row alone, never on its neighbours in the batch.
    """

    name: Literal["native", "reference"]
    device: torch.device
    pack: Callable[[QuantTensor], PackedWeight]
    linear: Callable[[Tensor, PackedWeight], Tensor]
    embed: Callable[[Tensor, PackedWeight], Tensor]
    rms_norm: Callable[[Tensor, Tensor, float], Tensor]
    add_rms_norm: Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]
    rotary_: Callable[[Tensor, Tensor, Tensor, Tensor], None]
    swiglu: Callable[[Tensor], Tensor]
    write_kv_: Callable[[Tensor, Tensor, Tensor, Tensor], None]
    paged_attention: Callable[[Tensor, Tensor, RaggedBatch, float], Tensor]
    mask_logits_: Callable[[Tensor, Tensor], None]
    choose_: Callable[[Tensor, Sequence[Choice]], list[int]]
    set_threads: Callable[[int], None]      # CPU threads of these operations; at least 1


class NativeUnavailable(RuntimeError):
    """The native operations were asked for and cannot run here; the message says why."""


def load_ops(device: torch.device, wanted: Literal["auto", "native", "reference"] = "auto") -> Ops:
    """The operations for `device`. "auto" takes the native ones on a CPU, and the references where those are missing.

    Raises NativeUnavailable if wanted is "native" and they cannot run. Logs one warning when "auto" has to fall back.
    """
    if wanted == "reference":
        return reference_ops(device)
    native = library.load() if device.type == "cpu" else None
    if native is not None:
        return native_ops(native)
    reason = library.why_missing() if device.type == "cpu" else f"they run on CPUs, not on {device.type}"
    if wanted == "native":
        raise NativeUnavailable(f"the native operations cannot run: {reason}")
    if device.type == "cpu":
        log.warning("running the plain torch operations, several times slower: %s", reason)
    return reference_ops(device)


def native_ops(native: ctypes.CDLL) -> Ops:
    """The operations of the native library, on the CPU."""
    return Ops(
        name="native",
        device=torch.device("cpu"),
        pack=pack_native(native),
        linear=linear_native(native),
        embed=embed_native(native),
        rms_norm=rms_norm_native(native),
        add_rms_norm=add_rms_norm_native(native),
        rotary_=rotary_native_(native),
        swiglu=swiglu_native(native),
        write_kv_=write_kv_native_(native),
        paged_attention=paged_attention_native(native),
        mask_logits_=mask_logits_native_(native),
        choose_=choose_native_(native),
        set_threads=library.bind(native, "turnstile_set_threads", [ctypes.c_int32]),
    )


def reference_ops(device: torch.device) -> Ops:
    """Plain torch on any device."""

    def pack(weight: QuantTensor) -> PackedWeight:
        return pack_reference(QuantTensor(weight.kind, weight.shape, weight.data.to(device)))

    return Ops(
        name="reference",
        device=device,
        pack=pack,
        linear=linear_reference,
        embed=embed_reference,
        rms_norm=rms_norm_reference,
        add_rms_norm=add_rms_norm_reference,
        rotary_=rotary_reference_,
        swiglu=swiglu_reference,
        write_kv_=write_kv_reference_,
        paged_attention=paged_attention_reference,
        mask_logits_=mask_logits_reference_,
        choose_=choose_reference_,
        set_threads=torch.set_num_threads,
    )
