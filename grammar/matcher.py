"""A compiled grammar over a vocabulary, and one answer's position in it."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any

import numpy as np

from grammar.errors import GrammarTooLarge
from grammar.vocabulary import Vocabulary
from kernels.pushdown import Tables
from kernels.trie import MaskTooCostly, load_machine

_serials = itertools.count()


class CompiledGrammar:
    """What may be answered, token by token. Immutable; any thread may make matchers from it."""

    def __init__(self, tables: Tables, vocabulary: Vocabulary, machine: str = "auto") -> None:
        self.vocabulary, self.tables = vocabulary, tables
        self.machine = load_machine(tables, vocabulary.trie, machine)
        self._serial = next(_serials)

    def new_state(self) -> Matcher:
        """A matcher at the beginning of an answer."""
        return Matcher(self, self.machine.start())

    def mask(self, position: Any) -> np.ndarray:
        """The mask of a position, which must not be written to: [ceil(vocabulary / 32)] uint32."""
        key = self._serial, self.machine.mask_key(position)
        row = self.vocabulary.masks.get(key)
        if row is None:
            row = self._computed(position)
            self.vocabulary.masks.put(key, row)
        return row

    def advance(self, position: Any, data: bytes) -> Any | None:
        """The position after some bytes; None where they are not allowed. Raises GrammarTooLarge."""
        try:
            return self.machine.advance(position, data)
        except MaskTooCostly as error:
            raise GrammarTooLarge("steps_of_one_token", error.allowed, error.allowed + 1) from None

    def _computed(self, position: Hashable) -> np.ndarray:
        row = np.zeros(self.vocabulary.trie.n_words, dtype=np.uint32)
        try:
            self.machine.fill(position, row)
        except MaskTooCostly as error:
            raise GrammarTooLarge("steps_of_one_mask", error.allowed, error.allowed + 1) from None
        if self.machine.may_end(position):
            for token in self.vocabulary.eos_ids:
                row[token >> 5] |= np.uint32(1 << (token & 31))
        return row


class Matcher:
    """One answer so far. Not for two threads at once; forks are independent.

    `may_end` tells whether end-of-sequence is allowed now, `ended` whether it was accepted: then nothing else is.
    """

    __slots__ = ("_grammar", "_position", "_mask", "ended")

    def __init__(self, grammar: CompiledGrammar, position: Any, ended: bool = False) -> None:
        self._grammar, self._position, self.ended = grammar, position, ended
        self._mask: np.ndarray | None = None

    @property
    def may_end(self) -> bool:
        return not self.ended and self._grammar.machine.may_end(self._position)

    def fill_mask(self, row: np.ndarray) -> None:
        """Write the allowed tokens to `row`, [at least ceil(vocabulary / 32)] uint32: bit t % 32 of word t // 32 is token t's.

        Words beyond the vocabulary become 0; so does every word once the answer has ended. Raises GrammarTooLarge, and leaves
        `row` alone, where the grammar is so ambiguous at this point that the mask's budget does not suffice.
        """
        if self.ended:
            row[:] = 0
            return
        if self._mask is None:
            self._mask = self._grammar.mask(self._position)
        n_words = len(self._mask)
        if len(row) == n_words:
            row[:] = self._mask
        else:
            row[:n_words] = self._mask
            row[n_words:] = 0

    def accept(self, token_id: int) -> bool:
        """Move on by one token; False, and no move, where it is not allowed. Raises GrammarTooLarge like `fill_mask`."""
        vocabulary = self._grammar.vocabulary
        if self.ended or not 0 <= token_id < vocabulary.size:
            return False
        if token_id in vocabulary.eos_ids:
            self.ended = self.may_end
            return self.ended
        data = vocabulary.token_bytes[token_id]
        following = self._grammar.advance(self._position, data) if data else None
        if following is None:
            return False
        self._position, self._mask = following, None
        return True

    def fork(self) -> Matcher:
        """An independent matcher at the same position."""
        return Matcher(self._grammar, self._position, self.ended)
