"""A model's weights, put together from a checkpoint in the form in which the forward pass wants them.

Both kinds of checkpoint (a GGUF file, a folder of safetensors) answer to the same names:
`embedding`, `norm`, `head`, `layers.3.q` and so on, see `LAYER_PARTS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from kernels.ops import Ops
from kernels.quant import QuantTensor, concat_rows
from kernels.weights import PackedWeight

from .errors import ModelUnreadable
from .model_config import ModelConfig

LAYER_PARTS = ("attention_norm", "q", "k", "v", "q_bias", "k_bias", "v_bias", "out", "ffn_norm", "gate", "up", "down")


class Checkpoint(Protocol):
    """Named tensors in a file or folder. Both methods raise ModelUnreadable if the name or the shape isn't there."""

    path: Path
    config: ModelConfig

    def matrix(self, name: str, shape: tuple[int, int]) -> QuantTensor: ...

    def vector(self, name: str, length: int) -> Tensor: ...    # f32, on the CPU

    def has(self, name: str) -> bool: ...

    def unused(self) -> list[str]: ...                         # the file's names of the tensors not asked for


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weights that read the same input lie in one matrix (row blocks one under the other), unless their types differ."""

    attention_norm: Tensor                 # [hidden]
    qkv: tuple[PackedWeight, ...]          # [(heads + 2 * kv_heads) * head_dim, hidden] in all
    qkv_bias: Tensor | None                # [(heads + 2 * kv_heads) * head_dim]
    out: PackedWeight                      # [hidden, heads * head_dim]
    ffn_norm: Tensor                       # [hidden]
    gate_up: tuple[PackedWeight, ...]      # [2 * ff, hidden] in all
    down: PackedWeight                     # [hidden, ff]


@dataclass(frozen=True, slots=True)
class ModelWeights:
    embedding: PackedWeight                # [vocabulary_size, hidden]
    layers: tuple[LayerWeights, ...]
    norm: Tensor                           # [hidden]
    head: PackedWeight                     # [vocabulary_size, hidden]; the embedding itself where it's tied
    rope_divisors: Tensor | None           # [head_dim / 2]


def read_weights(checkpoint: Checkpoint, ops: Ops, device: torch.device) -> ModelWeights:
    """Raises ModelUnreadable for a missing tensor, a wrong shape, or a tensor that the forward pass wouldn't use."""
    config = checkpoint.config
    reading = _Reading(checkpoint, ops, device)
    table = (config.vocabulary_size, config.hidden)
    embedding = reading.packed([("embedding", table)])[0]
    weights = ModelWeights(
        embedding=embedding,
        layers=tuple(reading.layer(i) for i in range(config.layers)),
        norm=reading.vector("norm", config.hidden),
        head=embedding if config.tied_embedding else reading.packed([("head", table)])[0],
        rope_divisors=checkpoint.vector("rope_divisors", config.head_dim // 2) if checkpoint.has("rope_divisors") else None,
    )
    unused = checkpoint.unused()
    if unused:
        raise ModelUnreadable(f"{checkpoint.path}: {len(unused)} tensors have no place in a {config.architecture} model "
                              f"({', '.join(unused[:3])}{', ...' if len(unused) > 3 else ''}): it would be computed wrongly.")
    return weights


class _Reading:
    def __init__(self, checkpoint: Checkpoint, ops: Ops, device: torch.device) -> None:
        self.checkpoint = checkpoint
        self.config = checkpoint.config
        self.ops = ops
        self.device = device

    def layer(self, i: int) -> LayerWeights:
        config, at = self.config, f"layers.{i}."
        hidden, q_rows, kv_rows = config.hidden, config.heads * config.head_dim, config.kv_heads * config.head_dim
        qkv = {"q": q_rows, "k": kv_rows, "v": kv_rows}
        return LayerWeights(
            attention_norm=self.vector(at + "attention_norm", hidden),
            qkv=self.packed([(at + part, (rows, hidden)) for part, rows in qkv.items()]),
            qkv_bias=self.joined([(f"{at}{part}_bias", rows) for part, rows in qkv.items()]) if config.qkv_bias else None,
            out=self.packed([(at + "out", (hidden, q_rows))])[0],
            ffn_norm=self.vector(at + "ffn_norm", hidden),
            gate_up=self.packed([(at + "gate", (config.ff, hidden)), (at + "up", (config.ff, hidden))]),
            down=self.packed([(at + "down", (hidden, config.ff))])[0],
        )

    def packed(self, parts: Sequence[tuple[str, tuple[int, int]]]) -> tuple[PackedWeight, ...]:
        """The parts one under the other; neighbours stored in the same type become one matrix."""
        matrices = [self.placed(self.checkpoint.matrix(name, shape)) for name, shape in parts]
        runs = [list(run) for _, run in groupby(matrices, key=lambda matrix: matrix.kind)]
        return tuple(self.ops.pack(run[0] if len(run) == 1 else concat_rows(run)) for run in runs)

    def joined(self, parts: Sequence[tuple[str, int]]) -> Tensor:
        return torch.cat([self.vector(name, length) for name, length in parts])

    def placed(self, matrix: QuantTensor) -> QuantTensor:
        return QuantTensor(matrix.kind, matrix.shape, matrix.data.to(self.device))

    def vector(self, name: str, length: int) -> Tensor:
        return self.checkpoint.vector(name, length).to(self.device)
