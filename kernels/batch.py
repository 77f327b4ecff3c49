"""The shape of one forward pass: many sequences, different lengths, no padding."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class RaggedBatch:
    """One step's tokens of all its rows, laid end to end, and where their keys and values live.

    A row is one sequence's share of the step: one token when it decodes, a run of prompt tokens when
    it prefills. All tensors lie on the model's device. `n` counts tokens, `rows` sequences.

    Invariants: query_starts[0] == 0 and query_starts[-1] == n; a row's tokens stand at the last
    positions of its context, so context_lens[r] == positions[query_starts[r + 1] - 1] + 1;
    block_tables[r] names at least ceil(context_lens[r] / block_size) blocks.
    """

    tokens: Tensor          # [n] int64, token ids
    positions: Tensor       # [n] int32, place of each token in its own sequence
    slots: Tensor           # [n] int64, block * block_size + offset: where each token's keys and values go
    query_starts: Tensor    # [rows + 1] int32
    context_lens: Tensor    # [rows] int32, tokens in the cache once this step has written its own
    block_tables: Tensor    # [rows, most blocks] int32, unused places hold 0
    logit_rows: Tensor      # [m] int64, the places in [0, n) whose logits are wanted
