"""A GGUF file as a checkpoint: its tensors, still quantised, under the names of `runtime.weights`."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from kernels.quant import FLOAT_TYPES, KINDS, QuantTensor

from .errors import ModelUnreadable
from .gguf_file import GgufFile, GgufTensor
from .model_config import ModelConfig, config_of_gguf

NAMES = {"embedding": "token_embd.weight", "norm": "output_norm.weight", "head": "output.weight",
         "rope_divisors": "rope_freqs.weight"}
LAYER_NAMES = {"attention_norm": "attn_norm.weight", "q": "attn_q.weight", "k": "attn_k.weight", "v": "attn_v.weight",
               "q_bias": "attn_q.bias", "k_bias": "attn_k.bias", "v_bias": "attn_v.bias", "out": "attn_output.weight",
               "ffn_norm": "ffn_norm.weight", "gate": "ffn_gate.weight", "up": "ffn_up.weight", "down": "ffn_down.weight"}


class GgufCheckpoint:
    """Reads tensors from the memory map as they are asked for, and remembers which."""

    def __init__(self, file: GgufFile) -> None:
        """Raises ModelUnreadable if the metadata doesn't describe a known model."""
        self.path: Path = file.path
        self.config: ModelConfig = config_of_gguf(file)
        self._file = file
        self._unused = dict.fromkeys(file.tensors)

    def has(self, name: str) -> bool:
        return _stored_name(name) in self._file.tensors

    def unused(self) -> list[str]:
        return list(self._unused)

    def matrix(self, name: str, shape: tuple[int, int]) -> QuantTensor:
        tensor = self._find(name, shape)
        stored = QuantTensor.from_bytes(tensor.kind, shape, torch.from_numpy(self._file.data(tensor)))
        heads = self._interleaved_heads(name)
        return stored.select_rows(_half_split_rows(heads, shape[0])) if heads else stored

    def vector(self, name: str, length: int) -> Tensor:
        tensor = self._find(name, (length,))
        if tensor.kind not in FLOAT_TYPES:
            raise ModelUnreadable(f"{self.path}: tensor {tensor.name!r} should hold plain numbers and is {tensor.kind.upper()}.")
        values = torch.from_numpy(self._file.data(tensor)).view(FLOAT_TYPES[tensor.kind]).reshape(length)
        heads = self._interleaved_heads(name)
        values = values[_half_split_rows(heads, length)] if heads else values
        return values.to(torch.float32, copy=True)      # a copy is aligned, and small

    def _interleaved_heads(self, name: str) -> int:
        """How many heads of a tensor the file stores with their rotary pairs side by side; 0 if it has none."""
        part = name.rpartition(".")[2].removesuffix("_bias")
        return {"q": self.config.heads, "k": self.config.kv_heads}.get(part, 0)

    def _find(self, name: str, shape: tuple[int, ...]) -> GgufTensor:
        stored = _stored_name(name)
        tensor = self._file.tensors.get(stored)
        if tensor is None:
            raise ModelUnreadable(f"{self.path}: tensor {stored!r} is missing. The file is incomplete: fetch it again.")
        if tensor.kind not in KINDS:
            raise ModelUnreadable(f"{self.path}: tensor {stored!r} is stored as {tensor.kind.upper()}, which can't be read. "
                                  f"Known are {', '.join(kind.upper() for kind in KINDS)}: take a file in one of these.")
        if tensor.shape != shape:
            raise ModelUnreadable(f"{self.path}: tensor {stored!r} has the shape {tensor.shape}; the metadata asks for {shape}.")
        self._unused.pop(stored, None)
        return tensor


def _half_split_rows(heads: int, rows: int) -> Tensor:
    """Where each row of a half-split projection lies in the file.

    llama.cpp rotates neighbouring dimensions (2i, 2i + 1), our kernels (i, i + head_dim / 2); its converter
    reorders the rows of each head for that, and this is the way back.
    """
    return torch.arange(rows).reshape(heads, -1, 2).transpose(1, 2).reshape(-1)


def _stored_name(name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    _, layer, part = name.split(".")
    return f"blk.{layer}.{LAYER_NAMES[part]}"
