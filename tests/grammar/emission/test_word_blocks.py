"""The states of a list of words."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grammar.emission.word_blocks import word_block
from kernels.pushdown_tables import CLOSE, JSON_STRING, POP, RAW

words = st.lists(st.text("ab\u00e9\U0001f600", max_size=4), min_size=1, max_size=8)


def state_behind(block, word: str) -> int | None:
    cuts = np.concatenate([[0], np.cumsum(block.n_edges)])
    state = 0
    for point in map(ord, word):
        found = [edge for edge in block.edges[cuts[state]:cuts[state + 1]].tolist() if edge[0] <= point <= edge[1]]
        if not found:
            return None
        state = found[0][2]
    return state


def tried(listed: list[str]) -> set[str]:
    """The words, their beginnings, and what goes on behind them."""
    return {word[:n] + more for word in listed for n in range(len(word) + 1) for more in ("", "a", "b", "c", "\u00e9")}


@given(words)
def test_a_quoted_word_is_closed_where_it_ends_and_nowhere_else(listed):
    block = word_block(listed, JSON_STRING, quoted=True)
    cuts = np.concatenate([[0], np.cumsum(block.n_edges)])
    for word in tried(listed):
        state = state_behind(block, word)
        closing = state is not None and [CLOSE, CLOSE, POP, 0, 0, 0] in block.edges[cuts[state]:cuts[state + 1]].tolist()
        assert closing == (word in listed)
    assert not block.states[:, 1].any()


@given(words)
def test_a_bare_word_ends_in_a_final_state(listed):
    block = word_block(listed, RAW, quoted=False)
    for word in tried(listed):
        state = state_behind(block, word)
        assert (state is not None and bool(block.states[state, 1])) == (word in listed)


@given(words)
def test_edges_of_a_state_are_sorted_and_every_state_is_on_the_way_of_a_word(listed):
    block = word_block(listed, JSON_STRING, quoted=True)
    beginnings = {word[:n] for word in listed for n in range(len(word) + 1)}
    assert len(block.states) == len(beginnings)
    cuts = np.concatenate([[0], np.cumsum(block.n_edges)])
    for begin, end in itertools.pairwise(cuts):
        lows = block.edges[begin:end, 0].tolist()
        assert lows == sorted(set(lows))
