"""Tables, a vocabulary that meets in corners, and walks: what the tests of the two machines share."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from grammar.algebra.normal import normal_form
from grammar.budget import Budget
from grammar.compile import style_of
from grammar.emission.emit import emit_json
from kernels.matching import MASK_STEPS, TOKEN_STEPS, extension
from kernels.pushdown import Frames, Tables
from kernels.trie import PlainMachine, TokenTrie

TOKENS = [bytes([b]) for b in range(255)] + [
    b"", b"ab", b"abc", b"abd", b"abc", b'{"', b'": ', b'"}', b"}}", b'", "', b"],[", b"\\u00e9", b"\\ud83d\\ude00", b"\\ud8",
    b"00", b"true", b'":', b'{"a":', b'"a', b'","', b'"]', b"]]", b'["', b"1,", b",2", b"\n  ", b"\n    ", b'",\n  "',
    "é".encode(), "日本語".encode(), "😀".encode(), "😀".encode()[:3], "😀".encode()[3:], b"e\xcc\x81", b"\xc3", b"a\n", b"a\"",
    b"\xed\xa0\x80", b"aaa", b"bbbb", b"x" * 40, b'"' * 5, b"a-b_c", b"-0", b"  ", b"\n\n\t"]
TRIE = TokenTrie.build(TOKENS)

SCHEMAS: list[Any] = [
    {},
    {"type": "string", "maxLength": 3},
    {"type": "array", "items": {"type": "array", "maxItems": 2, "items": {"type": "integer"}}, "minItems": 2, "maxItems": 100},
    {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
               {"type": "object", "properties": {"ab": {"type": "string", "pattern": "^[aé😀]*$", "maxLength": 9}},
                "additionalProperties": False},
               {"enum": ["ab", "é", 1, 12, 1.5, {"k": [1, "x"]}]}]},
    {"type": "object", "properties": {"next": {"$ref": "#"}, "v": {"enum": [1, 2]}}, "additionalProperties": False},
]

# Each bracket can be that of twelve arrays, whose items are of any of six such kinds.
AMBIGUOUS = {"$ref": "#/$defs/0", "$defs": {str(i): {"anyOf": [
    {"type": "array", "minItems": k, "maxItems": k + 3, "items": {"$ref": f"#/$defs/{(i + k) % 6}"}} for k in range(12)
]} for i in range(6)}}


class TooCostly(Exception):
    """What the native machines of the tests raise beyond a limit."""


def refuse(limit: str, allowed: int) -> Any:
    raise TooCostly(limit, allowed)


def tables_of(schema: Any, style: str = "free", order: str = "schema") -> Tables:
    budget = Budget()
    return emit_json(normal_form(schema, budget), style_of(style, order), budget)


def native(tables: Tables, tokens: list[bytes] = TOKENS, mask_steps: int = MASK_STEPS, token_steps: int = TOKEN_STEPS) -> Any:
    """A matcher of the extension module over a vocabulary of its own, without end tokens."""
    module = extension()
    vocabulary = module.Vocabulary(tokens, [], 1 << 24)
    return module.Matcher(module.Machine(tables, vocabulary, None, refuse, mask_steps, token_steps))


def bits(row: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def mask_of(matcher: Any) -> set[int]:
    """The tokens that a matcher allows."""
    row = np.full(TRIE.n_words, 0xFFFFFFFF, dtype=np.uint32)
    matcher.fill_mask(row)
    return bits(row)


def plain_mask(machine: PlainMachine, position: Frames) -> set[int]:
    row = np.full(TRIE.n_words, 0xFFFFFFFF, dtype=np.uint32)
    machine.fill(position, row)
    return bits(row)


def next_token(r: Random, allowed: set[int]) -> int:
    """One of the tokens, often a longer one."""
    longer = sorted(token for token in allowed if len(TOKENS[token]) > 1)
    return r.choice(longer) if longer and r.random() < 0.5 else r.choice(sorted(allowed))


def reference_walk(machine: PlainMachine, seed: int, n: int) -> Iterator[Frames]:
    """Positions along a random walk."""
    r, position = Random(seed), machine.start()
    yield position
    for _ in range(n):
        allowed = plain_mask(machine, position)
        if not allowed:
            return
        following = machine.advance(position, TOKENS[next_token(r, allowed)])
        assert following is not None
        yield (position := following)
