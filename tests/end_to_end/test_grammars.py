"""Grammars, structural tags and best effort, asked for through the official SDK and answered by the real model."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lark
import openai
import pytest

SUM = 'start: NUMBER (op NUMBER)~1..3\nop: "+" | "-"\nNUMBER: /[1-9][0-9]?/\n%ignore " "'
SUM_GBNF = 'root ::= number ([+-] number){1,3}\nnumber ::= [1-9] [0-9]?'
CITY = {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"], "additionalProperties": False}
TAG = {"type": "tag", "begin": "<tool>", "content": {"type": "json_schema", "json_schema": CITY}, "end": "</tool>"}


def ask(client: openai.OpenAI, model: str, **params: Any) -> Any:
    return client.chat.completions.create(model=model, **{
        "messages": [{"role": "user", "content": "Add some small numbers."}], "max_tokens": 60, "temperature": 0, **params})


def schema_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


@pytest.mark.parametrize("field", ["structured_outputs", "guided_grammar"])
def test_an_answer_is_derived_from_a_grammar(client: openai.OpenAI, model: str, field: str) -> None:
    given = {"structured_outputs": {"grammar": SUM}} if field == "structured_outputs" else {"guided_grammar": SUM}
    choice = ask(client, model, extra_body=given).choices[0]
    assert choice.finish_reason == "stop"
    lark.Lark(SUM, parser="earley").parse(choice.message.content)


def test_a_grammar_in_gbnf_streams(client: openai.OpenAI, model: str) -> None:
    chunks = ask(client, model, extra_body={"structured_outputs": {"grammar": SUM_GBNF}}, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert re.fullmatch(r"[1-9][0-9]?([+\-][1-9][0-9]?){1,3}", text)


def test_a_mistake_in_a_grammar_is_a_400_with_its_line(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, model, extra_body={"structured_outputs": {"grammar": 'start: "a"\n  | b'}})
    assert "line 2, column 5: there is no rule b" in refused.value.body["message"]


def test_exactly_one_tag(client: openai.OpenAI, model: str) -> None:
    tags = {"type": "triggered_tags", "triggers": ["<tool"], "tags": [TAG], "at_least_one": True, "stop_after_first": True}
    choice = ask(client, model, response_format={"type": "structural_tag", "format": tags}).choices[0]
    assert choice.finish_reason == "stop"
    begin, value, end = re.fullmatch(r"(<tool>)(.*)(</tool>)", choice.message.content).groups()
    assert (begin, end) == ("<tool>", "</tool>")
    assert json.loads(value)["city"] in ("Rome", "Oslo")


def test_free_text_may_come_without_a_tag(client: openai.OpenAI, model: str) -> None:
    structures = [{"begin": "<function=city>", "schema": CITY, "end": "</function>"}]
    given = {"type": "structural_tag", "structures": structures, "triggers": ["<function="]}
    choice = ask(client, model, response_format=given, max_tokens=30).choices[0]
    assert choice.message.content
    assert "<function=" not in choice.message.content or "<function=city>" in choice.message.content


def test_special_tokens_of_a_tag_are_part_of_the_text(client: openai.OpenAI, model: str) -> None:
    """The model's own mark of a turn's beginning, in an answer that asks for it."""
    tags = {"type": "sequence", "elements": [
        {"type": "token", "token": "<|im_start|>"}, {"type": "regex", "pattern": "[a-z]{3}"}]}
    choice = ask(client, model, extra_body={"structured_outputs": {"structural_tag": json.dumps(
        {"type": "structural_tag", "format": tags})}}).choices[0]
    assert re.fullmatch(r"<\|im_start\|>[a-z]{3}", choice.message.content)


@pytest.mark.parametrize("stream", [False, True])
def test_best_effort_says_what_it_left_out(client: openai.OpenAI, model: str, stream: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(b)\1$", "maxLength": 5}}, "required": ["a"],
              "additionalProperties": False}
    answer = ask(client, model, response_format=schema_format(schema),
                 extra_body={"structured_outputs": {"unsupported": "ignore"}}, stream=stream)
    last = next(chunk for chunk in answer if chunk.choices[0].finish_reason) if stream else answer
    assert [(one["keyword"], one["pointer"]) for one in last.not_enforced] == [("pattern", "/properties/a")]


def bomb(n: int) -> dict[str, Any]:
    """Four patterns whose intersection has more states than any budget; a different one for each n."""
    return {"type": "string", "allOf": [{"pattern": f"{letter}.{{{9 + k}}}{n}"} for k, letter in enumerate("abcd")]}


def test_twenty_bombs_at_once_hold_up_no_ordinary_schema(client: openai.OpenAI, model: str) -> None:
    def explode(n: int) -> str:
        with pytest.raises(openai.BadRequestError) as refused:
            ask(client, model, response_format=schema_format(bomb(n)))
        return str(refused.value.body["message"])

    ordinary = {"type": "object", "properties": {"fresh": {"const": time.time_ns()}}, "required": ["fresh"],
                "additionalProperties": False}
    with ThreadPoolExecutor(20) as pool:
        bombs = [pool.submit(explode, n) for n in range(20)]
        answer = ask(client, model, response_format=schema_format(ordinary), timeout=20)
        told = [future.result() for future in bombs]
    assert json.loads(answer.choices[0].message.content) == {"fresh": ordinary["properties"]["fresh"]["const"]}
    assert all("too large: needs at least 30001 automaton states, the limit is 30000" in one for one in told)
