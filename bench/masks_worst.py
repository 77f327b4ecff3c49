"""The schemas that break engines: each has either an answer, fed whole, or must fail fast with the limit named.

What is checked of our engine: compiling takes at most 2 s; no step (accept a token, fill the next mask) takes more than 5 ms;
where compiling fails, the error names a limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.masks_schemas import WORDS, Case

COMPILE_AT_MOST_MS, STEP_AT_MOST_MS = 2000.0, 5.0
Check = tuple[str, float, float, str]       # case, compile (ms), slowest step (ms), verdict


def worst_cases() -> list[Case]:
    return [
        _enum_of_5000(), _optional_500(), _optional_500(required=True), _long_text(), _counted_arrays(), _tools_60(),
        _nested_300(), _arrays_300(), _one_of_bomb(), _conjunction_bomb(), _catastrophic_pattern(), _counted_pattern(),
        _ref_cycle(), _ref_to_itself(), _unique_items(), _negations()]


def _texts(*valid: Any, invalid: Sequence[Any] = ()) -> tuple[tuple[str, bool], ...]:
    judged = [*((value, True) for value in valid), *((value, False) for value in invalid)]
    return tuple((json.dumps(value, ensure_ascii=False), ok) for value, ok in judged)


def _enum_of_5000() -> Case:
    words = [f"{WORDS[n % 24]}-{WORDS[n // 24 % 24]}-{n}" for n in range(5000)]
    return Case("enum of 5,000 texts", {"enum": words}, _texts(words[0], words[777], words[4999], invalid=["amber-amber-1"]))


def _optional_500(required: bool = False) -> Case:
    names = [f"option_{WORDS[n % 24]}_{n}" for n in range(500)]
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}, "additionalProperties": False,
              **({"required": names[::100]} if required else {})}
    whole, some = {name: n for n, name in enumerate(names)}, {name: 1 for name in names[::100]}
    return Case(f"500 properties, {'5 of them required' if required else 'all optional'}", schema,
                _texts(whole, some, invalid=[{"option": 1}, {names[0]: "1"}]))


def _long_text() -> Case:
    text = {"type": "string", "minLength": 1, "maxLength": 65536}
    schema = {"type": "object", "properties": {"text": text}, "required": ["text"]}
    return Case("maxLength 65,536", schema, _texts({"text": "words and é " * 1000}, {"text": "x"}, invalid=[{"text": ""}]))


def _counted_arrays() -> Case:
    cell = {"type": "array", "items": {"type": "string", "maxLength": 400}, "minItems": 2, "maxItems": 50}
    schema = {"type": "array", "items": cell, "minItems": 5, "maxItems": 50}
    row = [f"{word} cell" for word in WORDS]
    return Case("arrays of arrays with counts", schema, _texts([row] * 8, invalid=[[row] * 4, [["x"]] * 5]))


def _tools_60() -> Case:
    def tool(n: int) -> dict[str, Any]:
        kinds = [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 10**6}, {"enum": list(WORDS)},
                 {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}]
        arguments = {f"{WORDS[k % 24]}_{k}": kinds[(n + k) % 5] for k in range(30)}
        return {"type": "object", "properties": {"name": {"const": f"tool_{n}"}, "arguments": {
            "type": "object", "properties": arguments, "required": list(arguments)[:10], "additionalProperties": False}},
            "required": ["name", "arguments"], "additionalProperties": False}

    values = {0: "text", 1: 12, 2: "ember", 3: True, 4: ["a", "b"]}
    call = {"name": "tool_42", "arguments": {f"{WORDS[k % 24]}_{k}": values[(42 + k) % 5] for k in range(30)}}
    return Case("60 tools of 30 properties", {"anyOf": [tool(n) for n in range(60)]},
                _texts(call, invalid=[{"name": "tool_60", "arguments": {}}]))


def _nested_300() -> Case:
    schema: Any = {"type": "integer"}
    value: Any = 7
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
        value = {"a": value}
    return Case("300 nested objects", schema, _texts(value))


def _arrays_300() -> Case:
    text = "[" * 300 + "]" * 300
    return Case("300 nested arrays, recursive", {"type": "array", "items": {"$ref": "#"}}, ((text, True), (text[:-1], False)))


def _one_of_bomb() -> Case:
    schema: Any = {"type": "integer"}
    for n in range(12):
        sides = [{f"p{n}": schema, f"{side}{n}": {"type": "string"}} for side in "lr"]
        schema = {"oneOf": [{"type": "object", "properties": side} for side in sides]}
    value: Any = {"l7": 1}              # a wrong member is what tells one side from the other
    for n in range(8, 12):
        value = {f"p{n}": value, f"r{n}": 1}
    return Case("oneOf, 12 deep", schema, _texts({"l11": 1}, value, invalid=[{}, {"l11": "x"}, {"p11": {}, "r11": 1}]))


def _conjunction_bomb() -> Case:
    def part(n: int) -> dict[str, Any]:
        return {"anyOf": [{"properties": {f"x{n}": {"const": k}}, "required": [f"x{n}"]} for k in range(4)]}

    return Case("conjunction of 12 unions", {"type": "object", "allOf": [part(n) for n in range(12)]}, ())


def _catastrophic_pattern() -> Case:
    return Case("pattern of nested repetitions", {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"},
                _texts("abcabcabc Xyz", invalid=["abc" * 20]))


def _counted_pattern() -> Case:
    return Case("pattern of nested counts", {"type": "string", "pattern": "^((a{1,100}b{1,100}){1,100}c){1,100}$"}, ())


def _ref_cycle() -> Case:
    list_of = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]}},
               "additionalProperties": False, "required": ["next"]}
    value: Any = None
    for _ in range(40):
        value = {"next": value}
    return Case("$ref cycle through properties", {"$ref": "#/$defs/a", "$defs": {"a": list_of, "b": {"$ref": "#/$defs/a"}}},
                _texts(value, invalid=[{"next": {}}]))


def _ref_to_itself() -> Case:
    return Case("$ref cycle with nothing between", {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"},
                                                                                  "b": {"$ref": "#/$defs/a"}}}, ())


def _unique_items() -> Case:
    schema = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
              "uniqueItems": True}
    rows = [{"id": n} for n in range(120)]
    return Case("uniqueItems, 120 objects", schema, _texts(rows, invalid=[[*rows, rows[50]]]))


def _negations() -> Case:
    schema = {"type": "object", "properties": {"a": {"type": "string", "not": {"enum": list(WORDS)}}},
              "not": {"required": ["b"], "properties": {"b": {"type": "integer"}}}, "required": ["a"]}
    return Case("not over texts and members", schema,
                _texts({"a": "amberly", "b": "x"}, {"a": "x"}, invalid=[{"a": "amber"}, {"a": "x", "b": 3}]))


def checks(rows: Mapping[str, dict[str, Any]]) -> list[Check]:
    """What one engine made of the worst cases; a verdict is "ok", "refused: why" or what is wrong."""
    return [(name, row.get("compile_ms", 0.0), max(_steps_ms(row), default=0.0), _verdict(row)) for name, row in rows.items()]


def _steps_ms(row: dict[str, Any]) -> list[float]:
    return [step / 1e3 for instance in row.get("instances", ()) for step in instance["steps_us"]]


def _verdict(row: dict[str, Any]) -> str:
    if row.get("compile_ms", 0.0) > COMPILE_AT_MOST_MS:
        return f"FAULT: compiled for more than {COMPILE_AT_MOST_MS / 1e3:.0f} s"
    if row["outcome"] == "refused":
        return f"refused: {row['error']}"
    if row["outcome"] != "ok":
        return f"FAULT: {row['outcome']}: {row.get('error', '')}"
    wrong = [i["state"] for i in row["instances"] if (i["state"] == "accepted") != i["valid"]]
    if wrong:
        return f"FAULT: {len(wrong)} wrong verdicts"
    if max(_steps_ms(row), default=0.0) > STEP_AT_MOST_MS:
        return f"FAULT: a step above {STEP_AT_MOST_MS:.0f} ms"
    return "ok"
