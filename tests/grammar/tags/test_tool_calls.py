"""What may be answered where tools can be called, and where reasoning comes first."""

from __future__ import annotations

import pytest

from grammar import SchemaError, Vocabulary, compile_json_object
from grammar.tags.structural_tags import AnyText, JsonValue, compile_structural_tags
from grammar.tags.tools import CALL_FORMS, Tool, tool_grammar, with_reasoning

EOS, CALL, END_THINK = 256, 257, 258
HERMES, FUNCTION_TAG = CALL_FORMS["hermes"], CALL_FORMS["function_tag"]
TOOLS = [Tool("clock", {"type": "object", "properties": {}, "additionalProperties": False}),
         Tool("say", {"type": "object", "properties": {"text": {"$ref": "#/$defs/t"}}, "required": ["text"],
                      "additionalProperties": False, "$defs": {"t": {"type": "string", "maxLength": 3}}})]
ANSWER = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
CALL_CLOCK = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
CALL_SAY = '<tool_call>\n{"name": "say", "arguments": {"text": "hi"}}\n</tool_call>'


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary([*(bytes([b]) for b in range(256)), b"", b"", b""], [EOS],
                      special_tokens={"<tool_call>": CALL, "</think>": END_THINK})


@pytest.fixture(scope="module")
def admits(vocabulary):
    def run(tags, *parts: str | int) -> bool:
        matcher = compile_structural_tags(tags, vocabulary).new_state()
        tokens = [token for part in parts for token in ([part] if isinstance(part, int) else part.encode())]
        return all(matcher.accept(token) for token in tokens) and matcher.may_end

    return run


def test_auto_lets_the_model_talk_call_and_talk(admits):
    tags = tool_grammar(TOOLS, "auto", form=HERMES)
    for text in ("", "It is late.", CALL_CLOCK, f"Wait. {CALL_CLOCK}\n{CALL_SAY} Done."):
        assert admits(tags, text)
    for text in ("<tool_call>", CALL_CLOCK[:-1], CALL_SAY.replace("hi", "hello"), CALL_SAY.replace("say", "sing")):
        assert not admits(tags, text)


def test_with_a_response_schema_the_first_byte_is_a_call_or_the_answer(vocabulary):
    tags = tool_grammar(TOOLS, "auto", ANSWER, form=HERMES)
    assert compile_structural_tags(tags, vocabulary).new_state().next_bytes() == b"<{\xff"


def test_with_a_response_schema_there_is_a_call_or_an_answer(admits):
    tags = tool_grammar(TOOLS, "auto", ANSWER, form=HERMES)
    for text in ('{"ok": true}', CALL_CLOCK, f"{CALL_CLOCK}\n{CALL_SAY}"):
        assert admits(tags, text)
    for text in ("It is late.", '{"ok": 1}', CALL_CLOCK + '{"ok": true}'):
        assert not admits(tags, text)


@pytest.mark.parametrize(("tool_choice", "yes", "no"), [
    ("required", [CALL_CLOCK, f"{CALL_CLOCK}\n{CALL_SAY}"], ["", "x", f"x{CALL_CLOCK}"]),
    ("say", [CALL_SAY], ["", CALL_CLOCK, f"{CALL_SAY}\n{CALL_SAY}"]),
    ("none", ["", "<tool_call>"], []),
])
def test_the_choice_of_a_tool_is_kept(admits, tool_choice, yes, no):
    tags = tool_grammar(TOOLS, tool_choice, form=HERMES)
    assert [text for text in yes if not admits(tags, text)] == []
    assert [text for text in no if admits(tags, text)] == []


def test_calls_that_are_not_parallel_are_one_at_most(admits):
    for tool_choice in ("auto", "required"):
        tags = tool_grammar(TOOLS, tool_choice, form=FUNCTION_TAG, parallel=False)
        assert admits(tags, "<function=clock>{}</function>")
        assert not admits(tags, "<function=clock>{}</function>\n<function=clock>{}</function>")


def test_the_mark_of_a_call_may_be_a_special_token(admits):
    assert admits(tool_grammar(TOOLS, "auto", form=HERMES), "So: ", CALL, CALL_CLOCK.removeprefix("<tool_call>"))


def test_a_tool_that_is_not_there_is_refused():
    with pytest.raises(SchemaError, match="no tool 'sing'"):
        tool_grammar(TOOLS, "sing", form=HERMES)


def test_a_bad_schema_is_told_by_the_tools_place(vocabulary):
    tools = [*TOOLS, Tool("bad", {"properties": {"x": {"type": "strnig"}}}, "/tools/2/function/parameters")]
    with pytest.raises(SchemaError) as refused:
        compile_structural_tags(tool_grammar(tools, "auto", form=HERMES), vocabulary)
    assert refused.value.pointer == "/tools/2/function/parameters/properties/x"


@pytest.mark.parametrize("end", ["</think>", END_THINK])
def test_reasoning_comes_before_the_answer(admits, end):
    thinking = with_reasoning(JsonValue(ANSWER))
    assert admits(thinking, "<think>hm < </thin", end, '\n\n{"ok": true}')
    assert not admits(thinking, '{"ok": true}')
    assert not admits(thinking, "<think>hm", end)
    opened = with_reasoning(JsonValue(ANSWER), opened=True)
    assert admits(opened, "hm", end, '{"ok": true}')
    assert not admits(opened, "hm", end, "hm", end, '{"ok": true}')


def test_reasoning_may_come_before_calls(admits):
    tags = with_reasoning(tool_grammar(TOOLS, "auto", form=HERMES))
    assert admits(tags, f"<think>I call.</think>\nNow: {CALL_CLOCK}")
    assert not admits(tags, "<think>I call.</think>\nNow: <tool_call>")


def test_free_text_is_what_stands_where_no_tool_may_be_called(vocabulary):
    assert tool_grammar([], "auto", form=HERMES) == AnyText()
    assert tool_grammar(TOOLS, "none", ANSWER, form=HERMES) == JsonValue(ANSWER)
    assert compile_json_object(vocabulary).new_state().next_bytes() == b"{"
