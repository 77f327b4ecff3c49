"""Lays the rows of a plan out as one ragged batch."""

from __future__ import annotations

from collections.abc import Sequence as Rows

import numpy as np
import torch

from kernels.batch import RaggedBatch

from .scheduler import Row


def ragged_batch(rows: Rows[Row], block_tokens: int, device: torch.device) -> RaggedBatch:
    """The rows' tokens end to end. Work in numpy, one copy to the device a tensor, no padding but of block tables.

    Logits are wanted after the last token of a row that draws, and after each token of its guess.
    """
    starts = np.array([row.start for row in rows], dtype=np.int64)
    lengths = np.array([row.n_tokens + len(row.guess) for row in rows], dtype=np.int64)
    query_starts = np.concatenate(([0], np.cumsum(lengths)))
    tables = np.zeros((len(rows), max(len(row.sequence.blocks) for row in rows)), dtype=np.int32)
    for r, row in enumerate(rows):
        tables[r, : len(row.sequence.blocks)] = row.sequence.blocks
    row_of = np.repeat(np.arange(len(rows)), lengths)
    positions = np.arange(query_starts[-1]) - query_starts[row_of] + starts[row_of]
    slots = tables[row_of, positions // block_tokens].astype(np.int64) * block_tokens + positions % block_tokens
    tokens = np.concatenate([
        part for row in rows for part in (row.sequence.tokens[row.start:row.start + row.n_tokens], row.guess)])
    drawn = [np.arange(end - len(row.guess) - 1, end) for row, end in zip(rows, query_starts[1:], strict=True) if row.draws]
    return RaggedBatch(
        tokens=_to(tokens, np.int64, device),
        positions=_to(positions, np.int32, device),
        slots=_to(slots, np.int64, device),
        query_starts=_to(query_starts, np.int32, device),
        context_lens=_to(starts + lengths, np.int32, device),
        block_tables=_to(tables, np.int32, device),
        logit_rows=_to(np.concatenate(drawn) if drawn else np.empty(0), np.int64, device),
    )


def _to(values: np.ndarray, dtype: type, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=dtype)).to(device)
