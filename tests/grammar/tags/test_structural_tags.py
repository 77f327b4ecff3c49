"""Structural tags: free text, tags in it that are held to their contents, and tags that are special tokens of the model."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import numpy as np
import pytest

from grammar import CompiledGrammar, GrammarTooLarge, Limits, Matcher, SchemaError, Vocabulary
from grammar.tags.structural_tags import (
    AnyText,
    ConstText,
    EbnfText,
    InOrder,
    JsonValue,
    MatchingText,
    OneOf,
    SeparatedTags,
    SpecialToken,
    Tag,
    Times,
    TriggeredTags,
    check_structural_tags,
    compile_structural_tags,
)

EOS, CALL, END_CALL, THINK, END_THINK, OTHER = range(256, 262)
SPECIALS = {"<tool_call>": CALL, "</tool_call>": END_CALL, "<think>": THINK, "</think>": END_THINK, "<|other|>": OTHER}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
WEATHER = Tag("<function=weather>", JsonValue(CITY), ("</function>",))
CLOCK = Tag("<function=clock>", MatchingText("[0-9]{1,2}"), ("</function>",))
FUNCTIONS = TriggeredTags(("<function=",), (WEATHER, CLOCK))
TOOL = Tag("<tool_call>", JsonValue(CITY), ("</tool_call>",))


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    tokens = [bytes([b]) for b in range(256)] + [b""] * 6 + [b"<fun", b"function=", b"</", b">x", b'{"city', b"</function>"]
    return Vocabulary(tokens, eos_ids=[EOS], special_tokens=SPECIALS)


@pytest.fixture(scope="module")
def after(vocabulary: Vocabulary):
    """The matcher behind some texts, fed byte by byte, and special tokens; None where one is refused. Masks must agree."""

    def run(grammar: CompiledGrammar, *parts: str | bytes | int) -> Matcher | None:
        matcher = grammar.new_state()
        tokens: list[int] = []
        for part in parts:
            tokens += [part] if isinstance(part, int) else part.encode() if isinstance(part, str) else part
        for token in tokens:
            row = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
            matcher.fill_mask(row)
            allowed = bool(row[token >> 5] >> (token & 31) & 1)
            assert matcher.accept(token) == allowed
            if not allowed:
                return None
        return matcher

    return run


@pytest.fixture(scope="module")
def admits(vocabulary: Vocabulary, after):
    def run(tags: Any, *parts: str | bytes | int, **options: Any) -> bool:
        matcher = after(compile_structural_tags(tags, vocabulary, **options), *parts)
        return matcher is not None and matcher.may_end

    return run


@pytest.mark.parametrize("text", [
    "", "no tags at all", "< <f <function", "日本 😀", '<function=weather>{"city": "Rome"}</function>',
    'I look. <function=weather>{"city": "Rome"}</function> And the time: <function=clock>12</function> done < <',
    "<<function=clock>7</function>"])
def test_free_text_may_hold_tags_and_may_stop_anywhere_outside_them(admits, text):
    assert admits(FUNCTIONS, text)


@pytest.mark.parametrize("text", [
    "<function=", "<function=x>", "<function=clock>", "<function=clock>12", "<function=clock>12</function",
    "<function=clock>123</function>", '<function=weather>{"city": 1}</function>', "a <function=weather>{}</function>",
    "x<function= "])
def test_a_trigger_is_never_left_without_its_tag(admits, text):
    assert not admits(FUNCTIONS, text)


def test_behind_a_trigger_only_its_tags_go_on(vocabulary, after):
    grammar = compile_structural_tags(FUNCTIONS, vocabulary)
    assert after(grammar, "<function=").next_bytes() == b"cw"
    assert after(grammar, "<function=weather>{\"city\": \"R\"}").next_bytes() == b"<"


def test_malformed_utf8_is_no_text(vocabulary, after):
    grammar = compile_structural_tags(FUNCTIONS, vocabulary)
    for data in (b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xe6<"):
        assert after(grammar, data) is None
    assert not after(grammar, "日".encode()[:2]).may_end


@pytest.mark.parametrize(("at_least_one", "stop_after_first", "yes", "no"), [
    (True, False, ["<function=clock>1</function>", "<function=clock>1</function> x <function=clock>2</function>"], ["", "x"]),
    (False, True, ["", "x", "x<function=clock>1</function>"], ["<function=clock>1</function>x"]),
    (True, True, ["<function=clock>1</function>"], ["", "x<function=clock>1</function>", "<function=clock>1</function>x"]),
])
def test_how_many_tags_there_must_and_may_be(admits, at_least_one, stop_after_first, yes, no):
    tags = TriggeredTags(("<function=",), (CLOCK,), at_least_one, stop_after_first)
    assert [text for text in yes if not admits(tags, text)] == []
    assert [text for text in no if admits(tags, text)] == []


def test_excluded_texts_never_stand_in_free_text(admits):
    tags = TriggeredTags(("<f>",), (Tag("<f>", ConstText("x"), ("</f>",)),), without=("bad", "bäd"))
    assert admits(tags, "ba bäh <f>x</f> ad")
    assert not admits(tags, "so bad")
    assert not admits(tags, "so bäd")


def test_triggers_that_overlap_are_found_wherever_they_begin(admits):
    tags = TriggeredTags(("aab", "ba"), (Tag("aab", ConstText("1"), ("",)), Tag("ba", ConstText("2"), ("",))))
    assert admits(tags, "aaab1xba2ab")
    assert not admits(tags, "aaabx")
    assert not admits(tags, "xbaa")


def test_free_text_with_tags_against_a_plain_regex(vocabulary, after):
    """Random texts over few letters: what has no trigger outside a whole tag is exactly what is let through."""
    tags = (Tag("abc", MatchingText("a?"), ("c",)), Tag("bba", ConstText("b"), ("c",)))
    grammar = compile_structural_tags(TriggeredTags(("ab", "bba"), tags), vocabulary)
    whole = re.compile(r"(?:(?:(?!ab|bba)[abc])*(?:abca?c|bbabc))*(?:(?!ab|bba)[abc])*")
    rng = random.Random(7)
    counts = {True: 0, False: 0}
    for _ in range(1500):
        text = "".join(rng.choice("abc") for _ in range(rng.randint(0, 9)))
        matcher = after(grammar, text)
        expected = whole.fullmatch(text) is not None
        counts[expected] += 1
        assert (matcher is not None and matcher.may_end) == expected, text
    assert min(counts.values()) > 100


# --- special tokens


@pytest.mark.parametrize("begin", [CALL, "<tool_call>"])
@pytest.mark.parametrize("end", [END_CALL, "</tool_call>"])
def test_a_tag_that_is_a_special_token_may_be_written_as_it_or_spelled_out(admits, begin, end):
    tags = TriggeredTags(("<tool_call>",), (TOOL,))
    assert admits(tags, "I call ", begin, '{"city": "Rome"}', end, " done")


def test_special_tokens_that_begin_no_tag_never_stand_in_free_text(vocabulary, after):
    grammar = compile_structural_tags(TriggeredTags(("<tool_call>",), (TOOL,)), vocabulary)
    for token in (OTHER, THINK, END_CALL):
        assert after(grammar, "x", token) is None
    assert after(grammar, CALL, '{"city', CALL) is None


def test_a_special_token_may_hold_more_than_the_trigger(admits):
    tags = TriggeredTags(("<tool",), (TOOL,))
    assert admits(tags, "x", CALL, '{"city": "a"}', END_CALL)
    assert admits(tags, "x<tool_call>", '{"city": "a"}', END_CALL)
    assert not admits(tags, "x<tool")


def test_a_special_token_inside_a_trigger(admits):
    tag = Tag("\n<tool_call>\n", ConstText("go"), ("</tool_call>",))
    tags = TriggeredTags(("\n<tool_call>",), (tag,))
    for call in (CALL, "<tool_call>"):
        assert admits(tags, "x\n", call, "\ngo", END_CALL)
    assert not admits(tags, "x", CALL)     # without the line's end it is no trigger, and special tokens are no text
    assert admits(tags, "x<tool_call>")


def test_one_special_token_may_be_asked_for(admits):
    for token in ("<|other|>", OTHER):
        assert admits(InOrder((ConstText("a"), SpecialToken(token))), "a", OTHER)
        assert not admits(InOrder((ConstText("a"), SpecialToken(token))), "a<|other|>")


def test_a_special_token_cuts_no_character_in_two(vocabulary, after):
    grammar = compile_structural_tags(TriggeredTags(("<tool_call>",), (TOOL,)), vocabulary)
    assert after(grammar, "é".encode()[:1], CALL) is None


# --- parts put together


@pytest.mark.parametrize(("tags", "yes", "no"), [
    (ConstText("yes"), ["yes"], ["ye", "no"]),
    (InOrder(()), [""], ["a"]),
    (InOrder((ConstText("a"), MatchingText("b*"), ConstText("c"))), ["ac", "abbc"], ["ab"]),
    (OneOf((ConstText("a"), JsonValue({"type": "integer"}))), ["a", "12"], ["a1"]),
    (Times(ConstText("ab"), 1, 2), ["ab", "abab"], ["", "ababab"]),
    (Times(ConstText("ab"), 0, None), ["", "ababab"], ["aba"]),
    (AnyText(), ["", "any <thing>"], []),
    (AnyText(("stop",)), ["sto p"], ["a stop"]),
    (EbnfText('start: "a" start "b" | "c"'), ["aacbb"], ["aacb"]),
    (InOrder((EbnfText("start: x\nx: \"1\""), EbnfText("start: x\nx: \"2\""))), ["12"], ["11"]),
    (Tag("<a>", AnyText(), ("</a>", "</b>")), ["<a>x</b>", "<a></a>"], ["<a>x", "<a>x</a>y", "<a>x</b></a>"]),
    (Tag("<a>", InOrder((ConstText("n:"), AnyText())), ("</a>",)), ["<a>n:x</a>"], ["<a>x</a>"]),
    (Tag("<a>", OneOf((AnyText(), MatchingText("[0-9]+"))), ("</a>",)), ["<a>1</a>", "<a>x</a>"], ["<a>x</a>1"]),
    (Tag("<r>", TriggeredTags(("<f>",), (Tag("<f>", ConstText("x"), ("</f>",)),)), ("</r>",)),
     ["<r>a<f>x</f>b</r>", "<r></r>"], ["<r>a<f>x</f>b", "<r>a</r>b", "<r><f></r>"]),
    (SeparatedTags((CLOCK,), ", "), ["", "<function=clock>1</function>, <function=clock>2</function>"],
     ["x", "<function=clock>1</function>, "]),
    (SeparatedTags((CLOCK,), "", at_least_one=True, stop_after_first=True), ["<function=clock>1</function>"],
     ["", "<function=clock>1</function><function=clock>1</function>"]),
])
def test_the_formats(admits, tags, yes, no):
    assert [text for text in yes if not admits(tags, text)] == []
    assert [text for text in no if admits(tags, text)] == []


def test_the_styles_of_json_are_those_of_schemas(admits):
    assert not admits(JsonValue(CITY), '{ "city": "a"}', style="compact")
    assert admits(JsonValue(CITY), '{\n  "city": "a"\n}', style="pretty")
    two = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"],
           "additionalProperties": False}
    assert admits(JsonValue(two, any_order=True), '{"b":2,"a":1}')
    assert not admits(JsonValue(two), '{"b":2,"a":1}')
    assert admits(JsonValue(two), '{"b":2,"a":1}', property_order="any")


# --- errors


@pytest.mark.parametrize(("tags", "keyword", "pointer", "said"), [
    (Tag("<a>", JsonValue({"properties": {"x": {"type": "strnig"}}}, pointer="/tools/3"), ("</a>",)),
     "type", "/tools/3/properties/x", "strnig"),
    (MatchingText("(a", pointer="/format/pattern"), None, "/format/pattern", "never closed"),
    (EbnfText("start: b", pointer="/g"), None, "/g", "line 1, column 8"),
    (TriggeredTags(("<x>",), (WEATHER,)), None, "", "no trigger begins the tag"),
    (TriggeredTags(("<function=", "<x>"), (WEATHER,)), None, "", "begins no tag"),
    (SpecialToken("<|nope|>"), None, "", "no special token"),
    (SpecialToken(5), None, "", "no special token"),
    (Tag("<a>", AnyText(), ("",)), None, "", "can't be an empty text"),
    (Tag("<a>", TriggeredTags(("<f>",), (Tag("<f>", ConstText("x"), ("",)),)), ("<f>",)), None, "", "can't both begin a tag and"),
])
def test_what_is_wrong_is_told_by_its_place(vocabulary, tags, keyword, pointer, said):
    with pytest.raises(SchemaError, match=re.escape(said)) as refused:
        compile_structural_tags(tags, vocabulary)
    assert (refused.value.keyword, refused.value.pointer) == (keyword, pointer)


def test_what_is_left_out_of_a_schema_is_told_by_its_place(vocabulary):
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(a)\1$"}}}
    tags = Tag("<a>", JsonValue(schema, pointer="/structures/0/schema"), ("</a>",))
    with pytest.raises(SchemaError, match="backreference"):
        compile_structural_tags(tags, vocabulary)
    [left_out] = compile_structural_tags(tags, vocabulary, unsupported="ignore").not_enforced
    assert (left_out.keyword, left_out.pointer) == ("pattern", "/structures/0/schema/properties/a")
    assert check_structural_tags(tags, unsupported="ignore") == (left_out,)


@pytest.mark.parametrize("token", [-1, 1 << 24])
def test_an_id_beyond_every_vocabulary_is_refused_without_one(token):
    with pytest.raises(SchemaError, match=f"{token} is no special token"):
        check_structural_tags(SpecialToken(token))


def test_tags_are_checked_without_a_vocabulary():
    assert check_structural_tags(InOrder((SpecialToken("<|any|>"), FUNCTIONS))) == ()
    with pytest.raises(SchemaError):
        check_structural_tags(JsonValue({"type": "strnig"}))


def test_limits_hold_for_all_parts_together(vocabulary):
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(50)}}
    tags = OneOf(tuple(Tag(f"<{n}>", JsonValue(schema), ("</>",)) for n in range(20)))
    with pytest.raises(GrammarTooLarge):
        compile_structural_tags(tags, vocabulary, limits=Limits(table_states=5_000))


def test_sixty_tools_of_thirty_properties_compile_within_a_tenth_of_a_second(vocabulary):
    def schema(tool: int) -> dict[str, Any]:
        kinds: list[Any] = [{"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}, {"enum": ["a", "b"]}]
        properties = {f"property_{tool}_{n}": kinds[n % 4] for n in range(30)}
        return {"type": "object", "properties": properties, "required": list(properties)[::3], "additionalProperties": False}

    tags = TriggeredTags(("<function=",), tuple(
        Tag(f"<function=tool_{n}>", JsonValue(schema(n)), ("</function>",)) for n in range(60)))
    took_s = []
    for _ in range(3):
        began = time.process_time()
        compile_structural_tags(tags, vocabulary)
        took_s.append(time.process_time() - began)
    assert min(took_s) < 0.25     # a busy machine is given its share
