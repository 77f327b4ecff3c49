"""A model without weights whose next token is a function of all tokens before it, read from the paged cache.

It writes each token's id into the slot that a real model would give its keys and values, and reads the whole
context back through the block tables. So a wrong slot, a wrong table, a block given to two owners or a stale
prefix changes the answer. `expected` says what the answer must be, without any cache.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import SimpleNamespace

import torch

from kernels.batch import RaggedBatch


@dataclass
class CountingModel:
    vocabulary_size: int = 300
    context_tokens: int = 512
    poison: int | None = None          # a token id that makes the forward pass raise
    sees: int | None = None            # how many of the last tokens decide; None: all. A few make answers run in circles
    doubt: int = 0                     # other tokens that are nearly as likely as the first

    def __post_init__(self) -> None:
        self.device = torch.device("cpu")
        self.config = SimpleNamespace(context_tokens=self.context_tokens)
        self.n_tokens_computed = 0
        self.batch_sizes: list[int] = []

    def new_pool(self, n_blocks: int, block_tokens: int) -> torch.Tensor:
        return torch.full((1, 2, n_blocks, 1, block_tokens, 1), float("nan"))

    def forward(self, batch: RaggedBatch, pool: torch.Tensor) -> torch.Tensor:
        if self.poison is not None and (batch.tokens == self.poison).any():
            raise RuntimeError(f"token {self.poison} is poison")
        self.n_tokens_computed += len(batch.tokens)
        self.batch_sizes.append(len(batch.context_lens))
        block_tokens = pool.shape[4]
        slots = pool[0, 0, :, 0, :, 0]
        slots.view(-1)[batch.slots] = batch.tokens.float()
        logits = torch.zeros(len(batch.logit_rows), self.vocabulary_size)
        rows = torch.searchsorted(batch.query_starts[1:].long(), batch.logit_rows, right=True)
        for i, row in enumerate(rows.tolist()):
            length = int(batch.positions[batch.logit_rows[i]]) + 1
            table = batch.block_tables[row, : -(-length // block_tokens)].long()
            context = slots[table].reshape(-1)[:length]
            assert not context.isnan().any(), "a slot was read that nothing had written"
            seen = [int(t) for t in context][-self.sees if self.sees else 0:]
            first = next_token(seen, self.vocabulary_size)
            for n in range(self.doubt + 1):
                logits[i, (first + n) % (self.vocabulary_size - 50)] = 10.0 - n
        return logits


def next_token(context: list[int], vocabulary_size: int) -> int:
    digest = hashlib.blake2b(repr(context).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % (vocabulary_size - 50)


def expected(prompt: list[int], n: int, vocabulary_size: int = 300) -> list[int]:
    """The greedy answer of `n` tokens."""
    tokens = list(prompt)
    for _ in range(n):
        tokens.append(next_token(tokens, vocabulary_size))
    return tokens[len(prompt):]
