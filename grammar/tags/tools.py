"""Tools as formats: what an answer may be when some functions can be called, and when there is reasoning before it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grammar.errors import SchemaError
from grammar.tags.structural_tags import (
    AnyText,
    Format,
    InOrder,
    JsonValue,
    MatchingText,
    OneOf,
    SeparatedTags,
    Tag,
    TriggeredTags,
)

_SPACE_BEHIND_REASONING = "[ \\n]{0,4}"


@dataclass(frozen=True, slots=True)
class Tool:
    """A function: its name, and the schema of its arguments. `pointer` is the schema's place in what the caller sent."""

    name: str
    parameters: Any
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class CallForm:
    """How a model writes a call: `begin`, the arguments as JSON, `end`. {name} in `begin` stands for the function's name, and
    {json_name} for the name as a JSON string. A call starts where `trigger` stands; `separator` stands between two calls."""

    trigger: str
    begin: str
    end: str
    separator: str = "\n"

    def tag(self, tool: Tool) -> Tag:
        begin = self.begin.replace("{json_name}", json.dumps(tool.name, ensure_ascii=False)).replace("{name}", tool.name)
        return Tag(begin, JsonValue(tool.parameters, pointer=tool.pointer), (self.end,))


CALL_FORMS: Mapping[str, CallForm] = {
    "hermes": CallForm("<tool_call>", '<tool_call>\n{"name": {json_name}, "arguments": ', "}\n</tool_call>"),
    "function_tag": CallForm("<function=", "<function={name}>", "</function>"),
}


def tool_grammar(tools: Sequence[Tool], tool_choice: str, response_schema: Any = None, *, form: CallForm,
                 parallel: bool = True) -> Format:
    """What may be answered.

    tool_choice: "auto" (free text and calls; with a response schema, calls or a JSON text of it), "required" (one call or more),
    "none" (no call), or the name of the one tool to call. Not `parallel`: one call at most. Raises SchemaError for a name that no
    tool has.
    """
    answer: Format = AnyText() if response_schema is None else JsonValue(response_schema)
    if tool_choice == "none" or not tools:
        return answer
    tags = tuple(form.tag(tool) for tool in tools)
    if tool_choice not in ("auto", "required"):
        tags = tuple(form.tag(tool) for tool in tools if tool.name == tool_choice)
        if not tags:
            raise SchemaError(f"there is no tool {tool_choice[:200]!r}")
        return SeparatedTags(tags, form.separator, at_least_one=True, stop_after_first=True)
    calls = SeparatedTags(tags, form.separator, at_least_one=True, stop_after_first=not parallel)
    if tool_choice == "required":
        return calls
    if response_schema is not None:
        return OneOf((calls, answer))
    return TriggeredTags((form.trigger,), tags, stop_after_first=not parallel)


def with_reasoning(answer: Format, *, begin: str = "<think>", end: str = "</think>", opened: bool = False) -> Format:
    """Reasoning between its marks, a little whitespace, then the answer. `opened`: the prompt has written the first mark."""
    reasoning = Tag("" if opened else begin, AnyText(), (end,))
    return InOrder((reasoning, MatchingText(_SPACE_BEHIND_REASONING), answer))


__all__ = ["CALL_FORMS", "CallForm", "Tool", "tool_grammar", "with_reasoning"]
