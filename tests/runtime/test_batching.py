"""The ragged batch against one laid out by hand."""

from __future__ import annotations

import torch

from runtime.batching import ragged_batch
from runtime.protocol import GenerationRequest, SamplingParams
from runtime.scheduler import Row
from runtime.sequence import Sequence


def sequence(tokens: list[int], blocks: list[int]) -> Sequence:
    made = Sequence(GenerationRequest("r", tuple(tokens), SamplingParams(1), b""), 0.0)
    made.blocks = blocks
    return made


def test_rows_of_different_lengths_lie_end_to_end() -> None:
    prefill = sequence([10, 11, 12, 13, 14, 15], blocks=[7, 3])      # 4 tokens a block: all but the last token of a prompt
    decode = sequence([20, 21, 22, 23, 24], blocks=[5, 9, 2])
    batch = ragged_batch([Row(prefill, 2, 3), Row(decode, 4, 1)], block_tokens=4, device=torch.device("cpu"))
    assert batch.tokens.tolist() == [12, 13, 14, 24]
    assert batch.positions.tolist() == [2, 3, 4, 4]
    assert batch.slots.tolist() == [7 * 4 + 2, 7 * 4 + 3, 3 * 4 + 0, 9 * 4 + 0]
    assert batch.query_starts.tolist() == [0, 3, 4]
    assert batch.context_lens.tolist() == [5, 5]
    assert batch.block_tables.tolist() == [[7, 3, 0], [5, 9, 2]]
    assert batch.logit_rows.tolist() == [3]                          # the prompt is not done: nothing is drawn after it
