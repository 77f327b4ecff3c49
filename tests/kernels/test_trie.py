"""The token trie, and the reference walk along it: a mask is the set of tokens that the machine can be advanced by."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.trie import MaskTooCostly, PlainMachine, TokenTrie
from tests.support.matching import AMBIGUOUS, SCHEMAS, TOKENS, TRIE, plain_mask, reference_walk, tables_of


def test_the_trie_holds_every_token_once_and_no_other_text():
    texts, path = {}, []
    for node in range(len(TRIE.byte)):
        del path[TRIE.depth[node] - 1:]
        path.append(TRIE.byte[node])
        for token in TRIE.tokens[TRIE.token_begin[node]:TRIE.token_begin[node + 1]].tolist():
            texts[token] = bytes(path)
    assert texts == {token: data for token, data in enumerate(TOKENS) if data}


def test_a_subtree_is_the_nodes_up_to_its_end():
    for node in range(len(TRIE.byte)):
        inside = range(node + 1, TRIE.end[node])
        assert all(TRIE.depth[n] > TRIE.depth[node] for n in inside)
        assert TRIE.end[node] == len(TRIE.byte) or TRIE.depth[TRIE.end[node]] <= TRIE.depth[node]


def test_an_empty_vocabulary_has_an_empty_trie():
    trie = TokenTrie.build([b"", b""])
    assert len(trie.byte) == 0
    assert trie.n_words == 1


@pytest.mark.parametrize("style", ["free", "compact"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: str(s)[:30])
def test_a_mask_is_the_tokens_that_can_be_advanced_by(schema, style):
    machine = PlainMachine(tables_of(schema, style), TRIE)
    for position in reference_walk(machine, seed=1, n=12):
        expected = {t for t, data in enumerate(TOKENS) if data and machine.advance(position, data) is not None}
        assert plain_mask(machine, position) == expected


def test_a_mask_of_too_many_steps_is_given_up(monkeypatch):
    machine = PlainMachine(tables_of(AMBIGUOUS), TRIE)
    monkeypatch.setattr("kernels.trie._REFERENCE_STEP_LIMIT", 3)
    with pytest.raises(MaskTooCostly):
        machine.fill(machine.start(), np.zeros(TRIE.n_words, dtype=np.uint32))
