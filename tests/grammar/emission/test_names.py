"""Automata over member names: what a name is, and what names can still come of its beginning."""

from __future__ import annotations

import itertools
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grammar.budget import Budget
from grammar.emission.name_blocks import NameBlock, closed_block, open_block
from grammar.emission.names import by_bits, undeclared_names
from grammar.emission.names_beside import Undeclared, block_beside
from grammar.emission.tables import free_states
from grammar.text import automata, regex
from kernels.pushdown_tables import CLOSE, FREE, JSON_STRING

PATTERNS = ["^a", "b$", "^[ab]{2}$", "", "^(aa|b)*$", "^ab?$"]
WORDS = ["".join(letters) for n in range(5) for letters in itertools.product("abc", repeat=n)]
words = st.sampled_from(WORDS[:40])


def number_of(block: NameBlock, name: str) -> int | None:
    """The number of the member that has this name, as the states of a block read it."""
    cuts = np.concatenate([[0], np.cumsum(block.n_edges)])
    state = 0
    for point in [*map(ord, name), CLOSE]:
        found = [n for n in range(cuts[state], cuts[state + 1]) if block.edges[n, 0] <= point <= block.edges[n, 1]]
        if not found:
            return None
        if point == CLOSE:
            return block.numbers[block.ends.tolist().index(found[0])]
        state = block.edges[found[0], 2]
    raise AssertionError


@given(st.lists(words, max_size=5, unique=True), st.lists(words, max_size=2, unique=True),
       st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True))
def test_a_name_is_what_the_lists_and_patterns_say(declared, forbidden, patterns):
    forbidden = [name for name in forbidden if name not in declared]
    parts = [automata.from_regex(regex.searched(regex.parse(pattern)), Budget()) for pattern in patterns]
    names = undeclared_names([part for part in parts if part is not None], Budget())
    block = block_beside(declared, forbidden, Undeclared(names), JSON_STRING, conditional=False)
    for name in WORDS:
        found = frozenset(n for n, pattern in enumerate(patterns) if re.search(pattern, name))
        number = number_of(block, name)
        if name in declared:
            assert number == declared.index(name)
        elif name in forbidden or not found:
            assert number is None
        else:
            assert number is not None
            assert names.classes[number - len(declared)] == found


def members_behind(block: NameBlock, beginning: str) -> set[int] | None:
    """The members that the guards on the way still allow behind the beginning of a name; None where there is no way."""
    cuts = np.concatenate([[0], np.cumsum(block.n_edges)])
    state, members = 0, block.reachable
    for point in map(ord, beginning):
        found = [n for n in range(cuts[state], cuts[state + 1]) if block.edges[n, 0] <= point <= block.edges[n, 1]]
        if not found:
            return None
        if found[0] in block.guarded:
            members = block.possible[block.guards[block.guarded.tolist().index(found[0])]]
        state = block.edges[found[0], 2]
    return set(by_bits(members))


@given(st.lists(words, min_size=1, max_size=5, unique=True), st.lists(words, max_size=2, unique=True), st.sampled_from(PATTERNS))
def test_guards_tell_which_names_go_on_from_a_beginning(declared, forbidden, pattern):
    forbidden = [name for name in forbidden if name not in declared]
    part = automata.from_regex(regex.searched(regex.parse(pattern)), Budget())
    assert part is not None
    block = block_beside(declared, forbidden, Undeclared(undeclared_names([part], Budget())), JSON_STRING, conditional=True)
    for beginning in WORDS[:13]:
        expected = {n for n, name in enumerate(declared) if name.startswith(beginning)}
        if any(name.startswith(beginning) and name not in declared + forbidden and re.search(pattern, name) for name in WORDS):
            expected.add(len(declared))
        seen = members_behind(block, beginning) or set()
        assert expected <= seen
        assert seen - expected <= {len(declared)}      # longer names than those tried here


@given(st.lists(words, min_size=1, max_size=6, unique=True))
def test_guards_of_declared_names_alone_tell_them_too(declared):
    block = closed_block(declared, JSON_STRING)
    for beginning in WORDS[:40]:
        expected = {n for n, name in enumerate(declared) if name.startswith(beginning)}
        assert (members_behind(block, beginning) or set()) == expected


@given(st.lists(words, max_size=5, unique=True), st.lists(words, max_size=2, unique=True))
def test_closed_and_open_names_are_the_declared_ones_and_all_others(declared, forbidden):
    forbidden = [name for name in forbidden if name not in declared]
    closed, opened = closed_block(declared, JSON_STRING), open_block(declared, forbidden, JSON_STRING)
    for name in [*WORDS, "é", "\ue000", "\U0010ffff"]:
        own = declared.index(name) if name in declared else None
        assert number_of(closed, name) == own
        assert number_of(opened, name) == (own if own is not None else None if name in forbidden else len(declared))


def test_a_state_is_free_if_no_character_leads_to_a_condition():
    block = open_block(["ab", "ac", "b"], [], JSON_STRING)
    edges = block.edges.copy()
    assert (free_states(block.n_edges, edges) == FREE).all()
    a = next(n for n in range(len(edges)) if edges[n, 0] == edges[n, 1] == ord("b") and edges[n, 2] == 2)
    edges[a, 3] = 3     # some condition behind "a"
    free = free_states(block.n_edges, edges)
    assert free[[0, 1]].tolist() == [0, 0]
    assert (free[2:] == FREE).all()
