"""Rotary position embedding: the table of rotations that `ops.rotary_` applies to queries and keys.

Su et al., "RoFormer", 2021. Pair i of a head's dimensions turns by `position * theta ** (-2i / head_dim)`.
All arithmetic is in float32, in the order in which the models were trained and are evaluated elsewhere.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .model_config import Llama3Rope, ModelConfig


def rotation_table(config: ModelConfig, divisors: Tensor | None, device: torch.device) -> Tensor:
    """Cosines and sines of every position: [context_tokens, head_dim], cosines in the first half of a row.

    `divisors` [head_dim / 2] slow the frequencies down one by one (GGUF files hold a scaling in this form).
    """
    frequencies = inverse_frequencies(config)
    if divisors is not None:
        frequencies = frequencies / divisors
    positions = torch.arange(config.context_tokens, dtype=torch.float32)
    angles = torch.outer(positions, frequencies)                              # [context_tokens, head_dim / 2]
    return torch.cat((angles.cos(), angles.sin()), dim=1).to(device)


def inverse_frequencies(config: ModelConfig) -> Tensor:
    """Radians per position of each pair of dimensions: [head_dim / 2]."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / (config.rope_theta ** exponents)
    return frequencies if config.rope_scaling is None else _stretched(frequencies, config.rope_scaling)


def _stretched(frequencies: Tensor, scaling: Llama3Rope) -> Tensor:
    """Llama 3.1: slow rotations are divided by `factor`, fast ones stay, those between are blended linearly."""
    turns = scaling.original_context_tokens * frequencies / (2 * math.pi)     # within the trained context
    share_kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    share_kept = share_kept.clamp(0.0, 1.0)
    return frequencies * share_kept + frequencies / scaling.factor * (1.0 - share_kept)
