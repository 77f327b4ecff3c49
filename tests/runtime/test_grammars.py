"""The shelf of compiled grammars: each kind, each once, and nothing for those who have gone."""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import Any

import pytest

from grammar import CompiledGrammar, SchemaError, Vocabulary
from runtime import grammars
from runtime.grammars import GrammarShelf
from runtime.protocol import GrammarSpec

WAIT_S = 20
EOS, CALL = 256, 257
TAG = {"type": "structural_tag", "format": {"type": "tag", "begin": "<call>", "end": "</call>", "content": {
    "type": "json_schema", "json_schema": {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
                                           "required": ["a", "b"], "additionalProperties": False}}}}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary([*(bytes([b]) for b in range(256)), b"", b""], [EOS], special_tokens={"<call>": CALL})


@pytest.fixture
def shelf(vocabulary: Vocabulary) -> GrammarShelf:
    return GrammarShelf(vocabulary, capacity=3)


def admits(compiled: CompiledGrammar, *parts: str | int) -> bool:
    matcher = compiled.new_state()
    tokens = [token for part in parts for token in ([part] if isinstance(part, int) else part.encode())]
    return all(matcher.accept(token) for token in tokens) and matcher.may_end


@pytest.mark.parametrize(("spec", "answer"), [
    (GrammarSpec("json_schema", '{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]}', property_order="any"),
     ['{"b":1,"a":2}']),
    (GrammarSpec("json_schema", '{"type":"array","items":{"type":"null"}}', "pretty"), ["[\n  null\n]"]),
    (GrammarSpec("json_schema", '{"type":"string","pattern":"^(a)\\\\1$"}', unsupported="ignore"), ['"b"']),
    (GrammarSpec("json_object", ""), ['{"x":[1]}']),
    (GrammarSpec("regex", "a+b"), ["aab"]),
    (GrammarSpec("choice", '["yes","no"]'), ["no"]),
    (GrammarSpec("ebnf", 'start: "a" start "b" | "c"'), ["aacbb"]),
    (GrammarSpec("structural_tag", json.dumps(TAG)), [CALL, '{"a":1,"b":2}</call>']),
    (GrammarSpec("structural_tag", json.dumps(TAG), "free", "any"), ["<call>", '{"b": 2, "a": 1}</call>']),
])
def test_each_kind_is_compiled(shelf: GrammarShelf, spec: GrammarSpec, answer: list[Any]) -> None:
    assert admits(shelf.get(spec).result(WAIT_S), *answer)


class Counted:
    """Stands in for the compiler; counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sources: list[str] = []
        monkeypatch.setattr(grammars, "compiled", self)

    def __call__(self, spec: GrammarSpec, vocabulary: Vocabulary, limits: Any) -> str:
        self.sources.append(spec.source)
        if spec.source == "bad":
            raise SchemaError("it is bad")
        return spec.source


def test_nothing_is_compiled_twice_failures_least_of_all(shelf: GrammarShelf, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    for _ in range(3):
        assert shelf.get(GrammarSpec("regex", "a")).result(WAIT_S) == "a"
        with pytest.raises(SchemaError):
            shelf.get(GrammarSpec("regex", "bad")).result(WAIT_S)
    assert counted.sources == ["a", "bad"]


def test_the_least_used_leaves_the_shelf(shelf: GrammarShelf, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    for source in "abcadba":
        shelf.get(GrammarSpec("regex", source)).result(WAIT_S)
    assert counted.sources == ["a", "b", "c", "d", "b"]


class Stuck:
    """Lanes in which nothing moves."""

    def submit(self, owner: str, compile_within: Any) -> Future[Any]:
        return Future()


def test_what_nobody_waits_for_any_more_is_given_up(shelf: GrammarShelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "_lanes", Stuck())
    spec = GrammarSpec("regex", "a")
    future = shelf.get(spec, "one")
    assert shelf.get(spec, "another") is future
    shelf.release(spec)
    assert not future.cancelled()
    shelf.release(spec)
    assert future.cancelled()
    assert shelf.get(spec) is not future
    shelf.release(GrammarSpec("regex", "never asked for"))
