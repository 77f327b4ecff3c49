"""Bias and penalties, counted by hand."""

from __future__ import annotations

import pytest
import torch

from runtime.errors import RequestFaulted
from runtime.penalties import TokenCounts, add_bias_
from runtime.protocol import SamplingParams


def penalised(params: SamplingParams, prompt: list[int], answer: list[int], logits: list[float]) -> list[float]:
    counts = TokenCounts(params, prompt)
    for token in answer:
        counts.add(token)
    row = torch.tensor(logits)
    counts.penalise_(row)
    return row.tolist()


def test_presence_is_subtracted_once_from_what_the_answer_holds() -> None:
    params = SamplingParams(8, presence_penalty=0.5)
    assert penalised(params, [3], [0, 0, 2], [1.0, 1.0, -1.0, 1.0]) == [0.5, 1.0, -1.5, 1.0]


def test_frequency_is_subtracted_for_each_time() -> None:
    params = SamplingParams(8, frequency_penalty=0.25)
    assert penalised(params, [3], [0, 0, 0, 2], [1.0, 1.0, 1.0, 1.0]) == [0.25, 1.0, 0.75, 1.0]


def test_repetition_divides_positive_and_multiplies_negative_logits_of_prompt_and_answer() -> None:
    params = SamplingParams(8, repetition_penalty=2.0)
    assert penalised(params, [3, 3], [0, 0], [1.0, 1.0, -1.0, -1.0]) == [0.5, 1.0, -1.0, -2.0]


def test_all_three_together_start_with_repetition() -> None:
    params = SamplingParams(8, presence_penalty=1.0, frequency_penalty=0.5, repetition_penalty=2.0)
    assert penalised(params, [1], [0, 0], [8.0, 8.0, 8.0]) == [8 / 2 - 2 * 0.5 - 1, 4.0, 8.0]


def test_negative_penalties_encourage() -> None:
    params = SamplingParams(8, presence_penalty=-1.0, frequency_penalty=-1.0)
    assert penalised(params, [], [1, 1], [0.0, 0.0]) == [0.0, 3.0]


def test_a_long_answer_is_counted_across_the_growth_of_the_arrays() -> None:
    params = SamplingParams(8, frequency_penalty=1.0)
    answer = list(range(300)) + list(range(0, 300, 2))
    row = penalised(params, [], answer, [0.0] * 400)
    assert row == [-2.0 if token % 2 == 0 else -1.0 for token in range(300)] + [0.0] * 100


def test_without_penalties_nothing_is_kept_and_nothing_changes() -> None:
    counts = TokenCounts(SamplingParams(8), range(1000))
    counts.add(1)
    assert not counts.in_use
    assert penalised(SamplingParams(8), [0], [0, 1], [1.0, 2.0]) == [1.0, 2.0]


def test_bias_is_added_to_the_tokens_it_names() -> None:
    row = torch.zeros(4)
    add_bias_(row, SamplingParams(8, logit_bias=((1, 2.5), (3, -100.0))))
    assert row.tolist() == [0.0, 2.5, 0.0, -100.0]


@pytest.mark.parametrize("token", [-1, 4, 10**9])
def test_bias_on_a_token_outside_the_vocabulary_is_a_fault_that_names_it(token: int) -> None:
    with pytest.raises(RequestFaulted, match="outside the vocabulary") as fault:
        add_bias_(torch.zeros(4), SamplingParams(8, logit_bias=((token, 1.0),)))
    assert fault.value.param == "logit_bias"
