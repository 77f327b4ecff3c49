"""Structural tags as clients write them become formats, and what is not known in them is refused by its place."""

from __future__ import annotations

from typing import Any

import pytest

from grammar import SchemaError
from grammar.tags.forms import read_structural_tags
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
)

A = {"type": "const_string", "value": "a"}
TAG = {"type": "tag", "begin": "<a>", "content": A, "end": "</a>"}
READ_TAG = Tag("<a>", ConstText("a"), ("</a>",))


def form(**format_: Any) -> dict[str, Any]:
    return {"type": "structural_tag", "format": format_}


@pytest.mark.parametrize(("sent", "read"), [
    ({"type": "structural_tag", "triggers": ["<f="],
      "structures": [{"begin": "<f=g>", "schema": {"type": "null"}, "end": "</f>"}]},
     TriggeredTags(("<f=",), (Tag("<f=g>", JsonValue({"type": "null"}, pointer="/structures/0/schema"), ("</f>",)),))),
    (form(**A), ConstText("a")),
    (form(type="json_schema", json_schema=True), JsonValue(True, pointer="/format/json_schema")),
    (form(type="json_schema", json_schema={}, style="json", any_order=True), JsonValue({}, True, "/format/json_schema")),
    (form(type="regex", pattern="a+"), MatchingText("a+", "/format/pattern")),
    (form(type="grammar", grammar="root ::= \"a\""), EbnfText('root ::= "a"', "/format/grammar")),
    (form(type="any_text", excludes=["x"], max_tokens=None), AnyText(("x",))),
    (form(type="any_tokens", exclude_tokens=["<s>"]), AnyText()),
    (form(type="token", token=7), SpecialToken(7)),
    (form(type="token", token="<s>"), SpecialToken("<s>")),
    (form(type="sequence", elements=[A, A]), InOrder((ConstText("a"), ConstText("a")))),
    (form(type="or", elements=[A]), OneOf((ConstText("a"),))),
    (form(type="optional", content=A), Times(ConstText("a"), 0, 1)),
    (form(type="plus", content=A), Times(ConstText("a"), 1, None)),
    (form(type="star", content=A), Times(ConstText("a"), 0, None)),
    (form(type="repeat", min=2, max=-1, content=A), Times(ConstText("a"), 2, None)),
    (form(type="repeat", min=0, max=3, content=A), Times(ConstText("a"), 0, 3)),
    (form(**TAG), READ_TAG),
    (form(**{**TAG, "end": ["</a>", "</b>"]}), Tag("<a>", ConstText("a"), ("</a>", "</b>"))),
    (form(**{**TAG, "begin": {"type": "token", "token": "<a>"}, "end": {"type": "token", "token": "</a>"}}), READ_TAG),
    (form(type="triggered_tags", triggers=["<a"], tags=[TAG], at_least_one=True, stop_after_first=True, excludes=["x"]),
     TriggeredTags(("<a",), (READ_TAG,), True, True, ("x",))),
    (form(type="token_triggered_tags", trigger_tokens=["<a>"], tags=[TAG]), TriggeredTags(("<a>",), (READ_TAG,))),
    (form(type="tags_with_separator", tags=[TAG], separator=",", at_least_one=True), SeparatedTags((READ_TAG,), ",", True)),
])
def test_each_form_is_read(sent, read):
    assert read_structural_tags(sent) == read


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = A
    for _ in range(depth):
        inner = {"type": "optional", "content": inner}
    return form(**inner)


@pytest.mark.parametrize(("sent", "pointer"), [
    ([], ""),
    ({"type": "structural_tags", "format": A}, "/type"),
    ({"type": "structural_tag"}, ""),
    ({"type": "structural_tag", "format": A, "triggers": []}, "/triggers"),
    ({"type": "structural_tag", "format": "any_text"}, "/format"),
    (form(type="haiku"), "/format/type"),
    (form(value="a"), "/format/type"),
    (form(type="const_string"), "/format/value"),
    (form(type="const_string", value=1), "/format/value"),
    (form(type="const_string", value="a", extra=1), "/format/extra"),
    (form(type="json_schema", json_schema={}, style="qwen_xml"), "/format/style"),
    (form(type="json_schema", json_schema="{}"), "/format/json_schema"),
    (form(type="any_text", max_tokens=5), "/format/max_tokens"),
    (form(type="any_text", excludes=[""]), "/format/excludes"),
    (form(type="token", token=True), "/format/token"),
    (form(type="or", elements=[]), "/format/elements"),
    (form(type="repeat", min=2, max=1, content=A), "/format"),
    (form(type="sequence", elements=[A, {"type": "tag"}]), "/format/elements/1/end"),
    (form(**{**TAG, "end": []}), "/format/end"),
    (form(**{**TAG, "begin": {"type": "text"}}), "/format/begin/type"),
    (form(type="triggered_tags", triggers=["<a"], tags=[A]), "/format/tags/0/value"),
    (form(type="triggered_tags", triggers=["<a"], tags=[TAG], at_least_one=1), "/format/at_least_one"),
    ({"type": "structural_tag", "triggers": ["<f"], "structures": [{"begin": "<f>", "end": "</f>"}]}, "/structures/0/schema"),
    ({"type": "structural_tag", "triggers": ["<f"], "structures": [5]}, "/structures/0"),
    (nested(70), "/format" + "/content" * 64),
])
def test_what_is_wrong_is_told_by_its_place(sent, pointer):
    with pytest.raises(SchemaError) as refused:
        read_structural_tags(sent)
    assert refused.value.pointer == pointer
