"""The proof that the real model is computed correctly: `transformers`, on the same weights in float32, is the judge.

The fixtures live as long as the session: pytest runs all tests of one set of operations before those of the next,
and comes back to this file for each.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import LlamaForCausalLM

from runtime.model import Model
from runtime.tokenizer import Tokenizer
from tests.support.paged import Row, greedy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]      # about a minute of work for two cores, most of it in the fixtures

N_NEW = 64
CHATS = [
    "What is the capital of France?", "Write a haiku about autumn leaves.", "Explain photosynthesis to a child.",
    "List three prime numbers above 100.", "Translate 'good morning' into Spanish.", "Who wrote Hamlet?",
    'Answer in JSON: {"name": ..., "age": ...} for a person called Ada, 36.', "Why is the sky blue? Be brief.",
    "Give me a recipe for pancakes with 2 eggs and 250 ml of milk.", "What comes after Wednesday?",
]
TEXTS = [
    "Once upon a time, in a village by the sea,", "def fibonacci(n):\n    ", "The three laws of thermodynamics are",
    "1, 1, 2, 3, 5, 8, 13,", "SELECT name, age FROM users WHERE", "Die Hauptstadt von Deutschland ist", "<html>\n<head>\n<title>",
    "Dear Sir or Madam,\n\nI am writing to", "東京は",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness,",
]


@pytest.fixture(scope="session")
def prompts(tokenizer: Tokenizer) -> list[list[int]]:
    chats = [tokenizer.encode_chat([{"role": "user", "content": text}]) for text in CHATS]
    return chats + [tokenizer.encode(text) for text in TEXTS]


@pytest.fixture(scope="session")
def continued(real_model: Model, prompts: list[list[int]]) -> list[Row]:
    """All prompts in one run: they join one after the other and are prefilled in chunks beside the others' decoding."""
    return greedy(real_model, prompts, N_NEW, chunk_tokens=24, join_every=1)


@pytest.fixture(scope="session")
def verdicts() -> dict[tuple[int, ...], torch.Tensor]:
    """What transformers said of a sequence: two sets of operations that write the same text are judged once."""
    return {}


@pytest.fixture(scope="session")
def judged(transformers_model: LlamaForCausalLM, continued: list[Row], verdicts: dict[tuple[int, ...], torch.Tensor],
           ) -> list[torch.Tensor]:
    """transformers' logits at each place that we drew from, given the prompt and our own tokens before it."""
    for row in continued:
        if tuple(row.tokens) not in verdicts:
            with torch.inference_mode():
                verdicts[tuple(row.tokens)] = transformers_model(torch.tensor([row.tokens[:-1]]), logits_to_keep=N_NEW).logits[0]
    return [verdicts[tuple(row.tokens)] for row in continued]


@pytest.fixture(scope="session")
def generated(transformers_model: LlamaForCausalLM, prompts: list[list[int]]) -> dict[int, list[int]]:
    """Three of the prompts, continued by transformers itself."""
    found = {}
    for which in (0, 6, 11):
        prompt = torch.tensor([prompts[which]])
        found[which] = transformers_model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                                                   eos_token_id=None, max_new_tokens=N_NEW, pad_token_id=2)[0].tolist()
    return found


def test_the_order_of_rows_that_both_assume_is_the_one_the_model_was_trained_with(
        transformers_model: LlamaForCausalLM, tokenizer: Tokenizer) -> None:
    """The file stores the rows of queries and keys in another order, undone by us and by the oracle alike. Text must tell."""
    text = torch.tensor([tokenizer.encode(TEXTS[-1] + " " + TEXTS[0] + " there lived an old man who had three daughters.")])

    def surprise() -> float:
        with torch.inference_mode():
            return transformers_model(text, labels=text).loss.item()

    def swap(order: Callable[[torch.Tensor], torch.Tensor]) -> None:
        for layer in transformers_model.model.layers:
            for weight in (layer.self_attn.q_proj.weight, layer.self_attn.k_proj.weight):
                by_head = weight.data.unflatten(0, (-1, transformers_model.config.head_dim))
                weight.data = order(by_head).flatten(0, 1)

    as_trained = surprise()
    swap(lambda heads: heads.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2))        # as the file has them
    try:
        assert as_trained < 0.7 * surprise()
    finally:
        swap(lambda heads: heads.unflatten(1, (-1, 2)).transpose(1, 2).flatten(1, 2))
    assert surprise() == as_trained


def test_greedy_continuations_are_those_of_transformers(continued: list[Row], judged: list[torch.Tensor]) -> None:
    # If at each place transformers' likeliest token is ours, its own greedy run can't leave ours anywhere.
    ours = [row.tokens[row.prompt_length:] for row in continued]
    assert [len(tokens) for tokens in ours] == [N_NEW] * 20
    assert ours == [logits.argmax(-1).tolist() for logits in judged]


def test_logits_of_prefill_and_decode_are_those_of_transformers(continued: list[Row], judged: list[torch.Tensor]) -> None:
    for row, expected in zip(continued, judged, strict=True):
        torch.testing.assert_close(torch.stack(row.logits), expected, atol=1e-3, rtol=1e-4)


def test_generate_of_transformers_writes_the_same(continued: list[Row], generated: dict[int, list[int]]) -> None:
    assert {which: continued[which].tokens for which in generated} == generated
