"""The machine itself, on machines built by hand."""

from __future__ import annotations

import pytest

from grammar.budget import Budget
from grammar.emission.tables import TableBuilder
from kernels.pushdown import ReferenceMachine
from kernels.pushdown_tables import (
    ALL_SEEN,
    ALWAYS,
    ANY_UNSEEN,
    DEEPER,
    HAS_CALLING_STARTS,
    HAS_DISTINCT,
    HAS_INDENT,
    HAS_WIDE_SETS,
    INDENT_INNER,
    INDENT_OUTER,
    POP,
    TEXT,
    UNSEEN,
    Tables,
)
from tests.support.machines import all_texts, machine_of


def tables_of(builder: TableBuilder, start: int, a: int = 0, b: int = 0) -> Tables:
    """A machine that is one rule."""
    calls = builder.reserve_list()
    builder.fill_list(calls, [(start, a, b)])
    return builder.build(builder.state(calls=calls, then=builder.state(final=True)))


def edge(char: str, target: int, op: int = ALWAYS, x: int = 0, y: int = 0):
    return ord(char), ord(char), target, op, x, y


def admits(tables: Tables, data: bytes) -> bool:
    machine = ReferenceMachine(tables)
    position = machine.advance(machine.start(), data)
    return position is not None and machine.may_end(position)


def test_the_start_of_a_called_rule_may_call_in_turn():
    builder = TableBuilder(Budget())
    letters = builder.reserve_list()
    builder.fill_list(letters, [(builder.literal("a"), 0, 0), (builder.literal("ab"), 0, 0)])
    pair = builder.state(calls=letters, then=builder.state(edges=[edge("c", POP)]))     # (a | ab) c
    pairs = builder.reserve_list()
    builder.fill_list(pairs, [(pair, 0, 0), (builder.literal("d"), 0, 0)])
    tables = tables_of(builder, builder.state(calls=pairs, then=builder.state(edges=[edge("!", POP)])))
    assert HAS_CALLING_STARTS in tables.operations
    assert sorted(all_texts(ReferenceMachine(tables))) == [b"abc!", b"ac!", b"d!"]


def test_a_rule_called_from_two_depths_at_once_returns_to_both():
    builder = TableBuilder(Budget())
    letter = builder.reserve_list()
    builder.fill_list(letter, [(builder.literal("a"), 0, 0)])
    inner = builder.state(calls=letter, then=builder.state(edges=[edge("1", POP)]))
    either = builder.reserve_list()
    builder.fill_list(either, [(inner, 0, 0), (builder.literal("a"), 0, 0)])
    tables = tables_of(builder, builder.state(calls=either, then=builder.state(edges=[edge("!", POP)])))
    assert sorted(all_texts(ReferenceMachine(tables))) == [b"a!", b"a1!"]


def test_a_special_token_is_read_as_its_four_bytes_and_by_no_text():
    builder = TableBuilder(Budget())
    any_text = builder.state(TEXT)
    builder.set_edges(any_text, [(0, 0xD7FF, any_text, ALWAYS, 0, 0), (0xE000, 0x10FFFF, any_text, ALWAYS, 0, 0)])
    calls = builder.reserve_list()
    builder.fill_list(calls, [(builder.special_token(300), 0, 0)])
    builder.set_calls(any_text, calls, builder.state(final=True))
    tables = builder.build(any_text)
    assert admits(tables, "é\n".encode() + b"\xff\x00\x01\x2c")
    for data in (b"\xff\x00\x01\x2d", b"\xff\x00", b"\xff", "é".encode()[:1] + b"\xff\x00\x01\x2c"):
        assert not admits(tables, data)


def test_names_beyond_one_register_are_seen_in_the_other():
    builder = TableBuilder(Budget())
    state = builder.state()
    low, high = 1 << 3, 1 << 5      # names 3 and 67
    builder.set_edges(state, [edge("a", state, UNSEEN, 3), edge("b", state, UNSEEN, 67), edge("?", state, ANY_UNSEEN, low, high),
                              edge(".", POP, ALL_SEEN, low, high)])
    tables = tables_of(builder, state)
    assert HAS_WIDE_SETS in tables.operations
    for data, expected in ((b"ab.", True), (b"b?a.", True), (b"a?b.", True), (b"b.", False), (b"a.", False), (b"bb", False),
                           (b"ab?", False)):
        assert admits(tables, data) == expected


def test_an_indent_follows_the_depth_of_calls():
    builder = TableBuilder(Budget())
    calls = builder.reserve_list()
    start = builder.state()
    after = builder.state(edges=[edge("\n", builder.state(space=INDENT_OUTER, edges=[edge("]", POP)]))])
    inner = builder.state(space=INDENT_INNER, marks=DEEPER, calls=calls, then=after)
    builder.set_edges(start, [edge("[", builder.state(edges=[edge("\n", inner), edge("]", POP)]))])
    builder.fill_list(calls, [(start, 0, 0)])
    tables = builder.build(builder.state(calls=calls, then=builder.state(final=True)))
    assert HAS_INDENT in tables.operations
    assert admits(tables, b"[]")
    assert admits(tables, b"[\n  [\n    []\n  ]\n]")
    for data in (b"[\n[]\n]", b"[\n   []\n]", b"[\n  [\n  []\n  ]\n]", b"[\n  []\n ]", b"[\n  []]"):
        assert not admits(tables, data)


def test_plain_machines_use_only_the_first_operations():
    builder = TableBuilder(Budget())
    tables = tables_of(builder, builder.literal("x"))
    assert tables.operations == {ALWAYS}
    assert HAS_DISTINCT not in tables.operations


@pytest.mark.parametrize("longest", [4, 40])
def test_positions_with_different_futures_have_different_keys(longest):
    """Distinct items: what was read before decides what may follow, so it is in the key."""
    schema = {"type": "array", "items": {"type": "string", "pattern": "^(a|b)c*$"}, "uniqueItems": True}
    machine = machine_of(schema, spaces=False)

    def key(text: bytes):
        position = machine.advance(machine.start(), text)
        assert position is not None
        return machine.mask_key(position, longest, 8)

    assert key(b'["ac","bc') == key(b'["ac","bc')
    assert len({key(b'["ac",'), key(b'["bc",'), key(b'["ac","b'), key(b'["ac","a'), key(b'["bc","b')}) == 5


def test_what_a_distinct_item_repeats_is_in_the_key_however_deep_it_is():
    schema: dict = {"enum": [1, 2]}
    for _ in range(12):
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": 1}
    machine = machine_of({"type": "array", "items": schema, "uniqueItems": True}, spaces=False)
    first, second = "[" * 13, "," + "[" * 12
    after_one, after_two = (machine.advance(machine.start(), (first + digit + "]" * 12 + second).encode()) for digit in "12")
    assert after_one is not None
    assert after_two is not None
    assert machine.step(after_one, ord("1")) is None
    assert machine.step(after_two, ord("1")) is not None
    assert machine.mask_key(after_one, 8, 4) != machine.mask_key(after_two, 8, 4)
