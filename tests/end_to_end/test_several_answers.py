"""n, best_of and beam search over HTTP with the real model."""

from __future__ import annotations

import json

import openai

from tests.end_to_end.test_serving import ask, long_system

SCHEMA = {"type": "object", "properties": {"city": {"enum": ["Paris", "Lyon", "Nice"]}, "large": {"type": "boolean"}},
          "required": ["city", "large"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}


def test_n_answers_compute_their_prompt_once(client: openai.OpenAI, model: str) -> None:
    messages = [{"role": "system", "content": long_system("several")}, {"role": "user", "content": "Say a word."}]
    answer = client.chat.completions.create(model=model, messages=messages, n=6, seed=3, temperature=1.5, max_tokens=12)
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    assert len({choice.message.content for choice in answer.choices}) == 6
    again = client.chat.completions.create(model=model, messages=messages, n=6, seed=3, temperature=1.5, max_tokens=12)
    assert [c.message.content for c in again.choices] == [c.message.content for c in answer.choices]
    shared = again.usage.prompt_tokens_details.cached_tokens
    assert 0 < answer.usage.prompt_tokens - shared <= 16


def test_best_of_tells_the_likeliest_of_the_same_draws(client: openai.OpenAI, model: str) -> None:
    drawn = ask(client, model, "Name a colour.", n=4, seed=11, temperature=1.2, logprobs=True, max_tokens=16)
    best = ask(client, model, "Name a colour.", seed=11, temperature=1.2, max_tokens=16, extra_body={"best_of": 4})
    assert best.choices[0].message.content in {choice.message.content for choice in drawn.choices}
    assert best.usage.completion_tokens == drawn.usage.completion_tokens


def test_beams_are_likelier_than_the_greedy_answer_and_keep_their_schema(client: openai.OpenAI, model: str) -> None:
    beams = ask(client, model, "Which city?", n=3, response_format=FORMAT, logprobs=True,
                extra_body={"use_beam_search": True, "beam_width": 5, "length_penalty": 0})
    greedy = ask(client, model, "Which city?", response_format=FORMAT, logprobs=True)
    answers = [json.loads(choice.message.content) for choice in beams.choices]
    assert len({tuple(entry.token for entry in choice.logprobs.content) for choice in beams.choices}) == 3
    assert all(answer["city"] in SCHEMA["properties"]["city"]["enum"] for answer in answers)
    totals = [sum(entry.logprob for entry in choice.logprobs.content) for choice in beams.choices]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] >= sum(entry.logprob for entry in greedy.choices[0].logprobs.content) - 0.05


def test_a_beam_search_gives_the_same_twice(client: openai.OpenAI, model: str) -> None:
    def searched() -> list[str]:
        answer = ask(client, model, "Name three fruits.", n=3, extra_body={"use_beam_search": True}, max_tokens=12)
        return [choice.message.content for choice in answer.choices]

    alone = searched()
    assert len(set(alone)) == 3
    assert searched() == alone
