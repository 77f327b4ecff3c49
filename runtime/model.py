"""The forward pass of a Llama-family decoder over one ragged batch and the paged key-value pool.

Per layer: norm, attention, add, norm, gated feed-forward, add (Touvron et al., "LLaMA", 2023). Each addition
to the residual is fused with the norm that follows it. The pass holds no state of its own: keys and values
go into the pool's slots that the batch names, and nothing else survives a call.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kernels.batch import RaggedBatch
from kernels.ops import Ops
from kernels.weights import PackedWeight

from .model_config import ModelConfig
from .rope import rotation_table
from .weights import LayerWeights, ModelWeights


class Model:
    """Weights on a device, ready to run. Not for use by two threads at once."""

    def __init__(self, config: ModelConfig, weights: ModelWeights, ops: Ops, device: torch.device) -> None:
        self.config = config
        self.device = device
        self._weights = weights
        self._ops = ops
        self._cos_sin = rotation_table(config, weights.rope_divisors, device)   # [context_tokens, head_dim]

    @property
    def kv_bytes_per_token(self) -> int:
        """What one position costs in the pool."""
        return self.config.layers * 2 * self.config.kv_heads * self.config.head_dim * 4

    def new_pool(self, n_blocks: int, block_tokens: int) -> Tensor:
        """[layers, 2, n_blocks, kv_heads, block_tokens, head_dim] f32: keys at [:, 0], values at [:, 1].

        Not initialised, so that memory is taken only as blocks are first written. A slot holds garbage until
        then, which is safe: attention reads a row's first `context_lens` positions and nothing beyond.
        """
        config = self.config
        shape = (config.layers, 2, n_blocks, config.kv_heads, block_tokens, config.head_dim)
        return torch.empty(shape, dtype=torch.float32, device=self.device)

    @torch.inference_mode()
    def forward(self, batch: RaggedBatch, pool: Tensor) -> Tensor:
        """Logits [m, vocabulary_size] f32 of the tokens at `batch.logit_rows`, in that order.

        Writes the keys and values of all the batch's tokens into the pool. The tokens are ids below
        vocabulary_size, the positions below context_tokens, as the scheduler has checked.
        """
        ops, weights, eps = self._ops, self._weights, self.config.norm_eps
        residual = ops.embed(batch.tokens, weights.embedding)                  # [n, hidden]
        normed = ops.rms_norm(residual, weights.layers[0].attention_norm, eps)
        for i, layer in enumerate(weights.layers):
            attended = self._attention(normed, layer, pool[i], batch)
            normed, residual = ops.add_rms_norm(attended, residual, layer.ffn_norm, eps)
            fed = ops.linear(ops.swiglu(self._projected(normed, layer.gate_up)), layer.down)
            last = i + 1 == len(weights.layers)
            next_norm = weights.norm if last else weights.layers[i + 1].attention_norm
            normed, residual = ops.add_rms_norm(fed, residual, next_norm, eps)
        if not batch.logit_rows.numel():                                       # a chunk amid a prompt
            return normed.new_empty(0, self.config.vocabulary_size)
        return ops.linear(normed[batch.logit_rows], weights.head)

    def _attention(self, normed: Tensor, layer: LayerWeights, layer_kv: Tensor, batch: RaggedBatch) -> Tensor:
        config, ops = self.config, self._ops
        qkv = self._projected(normed, layer.qkv)
        if layer.qkv_bias is not None:
            qkv += layer.qkv_bias
        heads = qkv.view(-1, config.heads + 2 * config.kv_heads, config.head_dim)
        q, k, v = torch.split(heads, [config.heads, config.kv_heads, config.kv_heads], dim=1)     # views: [n, heads, head_dim]
        ops.rotary_(q, k, batch.positions, self._cos_sin)
        ops.write_kv_(k, v, layer_kv, batch.slots)
        attended = ops.paged_attention(q, layer_kv, batch, config.head_dim ** -0.5)
        return ops.linear(attended, layer.out)

    def _projected(self, x: Tensor, parts: Sequence[PackedWeight]) -> Tensor:
        """x times weights that belong side by side: one, unless the file stores them in different types."""
        if len(parts) == 1:
            return self._ops.linear(x, parts[0])
        return torch.cat([self._ops.linear(x, part) for part in parts], dim=1)
