"""A plain driver of `Model.forward` for tests: greedy continuation of many prompts in one ragged, paged batch.

Independent of the scheduler: its own block bookkeeping, blocks in shuffled order, a pool full of NaN to begin with.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kernels.batch import RaggedBatch
from runtime.model import Model


@dataclass(slots=True)
class Row:
    tokens: list[int]
    prompt_length: int
    joins_at_step: int
    blocks: list[int] = field(default_factory=list)
    computed: int = 0
    logits: list[Tensor] = field(default_factory=list)      # one [vocabulary] for each token drawn


def greedy(model: Model, prompts: list[list[int]], n_new: int, *, chunk_tokens: int = 1 << 20, block_tokens: int = 16,
           join_every: int = 0) -> list[Row]:
    """Continue each prompt by `n_new` likeliest tokens. A prompt joins `join_every` steps after the one before it
    and is prefilled in chunks of `chunk_tokens`; rows that have their tokens leave."""
    rows = [Row(list(prompt), len(prompt), i * join_every) for i, prompt in enumerate(prompts)]
    n_blocks = sum(-(-(len(prompt) + n_new) // block_tokens) for prompt in prompts)
    pool = model.new_pool(n_blocks, block_tokens).fill_(float("nan"))
    free = random.Random(n_blocks).sample(range(n_blocks), n_blocks)
    step = 0
    while running := [row for row in rows if len(row.tokens) < row.prompt_length + n_new]:
        batch, parts = _batch([row for row in running if row.joins_at_step <= step], chunk_tokens, block_tokens, free)
        logits = iter(model.forward(batch, pool))
        for row, end in parts:
            row.computed = end
            if end == len(row.tokens):
                row.logits.append(next(logits))
                row.tokens.append(int(row.logits[-1].argmax()))
        step += 1
    return rows


def _batch(rows: list[Row], chunk_tokens: int, block_tokens: int, free: list[int]) -> tuple[RaggedBatch, list[tuple[Row, int]]]:
    tokens: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    starts, contexts, logit_rows, parts = [0], [], [], []
    for row in rows:
        end = min(len(row.tokens), row.computed + chunk_tokens)
        while len(row.blocks) * block_tokens < end:
            row.blocks.append(free.pop())
        for position in range(row.computed, end):
            tokens.append(row.tokens[position])
            positions.append(position)
            slots.append(row.blocks[position // block_tokens] * block_tokens + position % block_tokens)
        if end == len(row.tokens):
            logit_rows.append(len(tokens) - 1)
        starts.append(len(tokens))
        contexts.append(end)
        parts.append((row, end))
    width = max(len(row.blocks) for row in rows)
    tables = [row.blocks + [0] * (width - len(row.blocks)) for row in rows]
    return RaggedBatch(
        tokens=torch.tensor(tokens), positions=torch.tensor(positions, dtype=torch.int32), slots=torch.tensor(slots),
        query_starts=torch.tensor(starts, dtype=torch.int32), context_lens=torch.tensor(contexts, dtype=torch.int32),
        block_tables=torch.tensor(tables, dtype=torch.int32), logit_rows=torch.tensor(logit_rows, dtype=torch.int64),
    ), parts
