"""A compiled grammar over a vocabulary, and one answer's position in it."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, cast

import numpy as np

from grammar import forced
from grammar.algebra.enforcement import NotEnforced
from grammar.errors import GrammarTooLarge
from grammar.vocabulary import Vocabulary
from kernels.matching import extension, native_machine
from kernels.pushdown import Frames, Tables
from kernels.trie import MaskTooCostly, PlainMachine

if TYPE_CHECKING:
    from kernels._grammar import Matcher as _NativeBase
else:
    _NativeBase = extension().Matcher if extension() else object

_REMEMBERED_TOKENS = 1024   # how many can be taken back; native/grammar/matcher_object.cpp has the same number

_serials = itertools.count()


class Matcher(ABC):
    """One answer so far. Not for two threads at once; forks are independent.

    `may_end` tells whether end-of-sequence is allowed now, `ended` whether it was accepted: then nothing else is.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def may_end(self) -> bool: ...

    @property
    @abstractmethod
    def ended(self) -> bool: ...

    @property
    @abstractmethod
    def context(self) -> Vocabulary:
        """What the tokens mean."""

    @abstractmethod
    def fill_mask(self, row: np.ndarray, /) -> None:
        """Write the allowed tokens to `row`, [at least ceil(vocabulary / 32)] uint32: bit t % 32 of word t // 32 is token t's.

        Words beyond the vocabulary become 0; so does every word once the answer has ended. Raises GrammarTooLarge, and leaves
        `row` alone, where the grammar is so ambiguous at this point that the mask's budget does not suffice.
        """

    @abstractmethod
    def accept(self, token_id: int, /) -> bool:
        """Move on by one token; False, and no move, where it is not allowed. Raises GrammarTooLarge like `fill_mask`."""

    @abstractmethod
    def advance(self, data: bytes, /) -> bool:
        """Move on by some bytes, as if they were one token."""

    @abstractmethod
    def rollback(self, n_tokens: int, /) -> None:
        """Take back the last tokens, end-of-sequence too. 1,024 are remembered; raises ValueError beyond."""

    @abstractmethod
    def fork(self) -> Matcher:
        """An independent matcher at the same position."""

    @abstractmethod
    def next_bytes(self) -> bytes:
        """The bytes that may come next."""

    @abstractmethod
    def forced_bytes(self, most: int, /) -> tuple[bytes, bool]:
        """At most so many bytes that have no alternative; and whether after them only the end is possible."""

    def forced_text(self) -> str:
        """The characters that must come next; "" where there is a choice, or a special token is due."""
        return forced.forced_text(self)

    def forced_tokens(self) -> list[int]:
        """The tokens that must come next, as the tokenizer writes them; end-of-sequence where nothing else is possible.

        No continuation that is still open is closed off: each would be written with these tokens first.
        """
        return forced.forced_tokens(self, self.context)


class NativeMatcher(_NativeBase, Matcher):
    """The extension module's."""

    __slots__ = ()


class CompiledGrammar:
    """What may be answered, token by token. Immutable; any thread may make matchers from it.

    machine: "auto" takes the native one where it was built and can run `tables`, "native" insists on it (ImportError),
    "reference" leaves it alone.
    """

    not_enforced: tuple[NotEnforced, ...] = ()     # what of a schema was left out, where that was asked for

    def __init__(self, tables: Tables, vocabulary: Vocabulary, machine: str = "auto") -> None:
        self.vocabulary, self.tables = vocabulary, tables
        self._native = None if machine == "reference" else native_machine(tables, vocabulary.native, vocabulary, _refuse)
        if self._native is None:
            if machine == "native":
                raise ImportError("the extension module is missing, or lacks an operation of this grammar")
            self._plain, self._serial = PlainMachine(tables, vocabulary.trie), next(_serials)

    def new_state(self) -> Matcher:
        """A matcher at the beginning of an answer."""
        if self._native is not None:
            return NativeMatcher(self._native)
        return PlainMatcher(self, self._plain.start())

    def plain_mask(self, position: Frames) -> np.ndarray:
        """The mask of a position of the plain machine, which must not be written to."""
        masks, key = self.vocabulary.masks, (self._serial, self._plain.mask_key(position))
        row = masks.get(key)
        if row is None:
            row = np.zeros(self.vocabulary.n_words, dtype=np.uint32)
            try:
                self._plain.fill(position, row)
            except MaskTooCostly as error:
                _refuse("steps_of_one_mask", error.allowed)
            if self._plain.may_end(position):
                for token in self.vocabulary.eos_ids:
                    row[token >> 5] |= np.uint32(1 << (token & 31))
            masks.put(key, row)
        return row

    @property
    def plain_machine(self) -> PlainMachine:
        return self._plain


def _refuse(limit: str, allowed: int) -> NoReturn:
    raise GrammarTooLarge(limit, allowed, allowed + 1)


class PlainMatcher(Matcher):
    """On the reference machine: what runs where the extension module was not built."""

    __slots__ = ("_ended", "_grammar", "_position", "_taken")

    def __init__(self, grammar: CompiledGrammar, position: Frames) -> None:
        self._grammar, self._position, self._ended = grammar, position, False
        self._taken: list[Frames] = []

    @property
    def context(self) -> Vocabulary:
        return self._grammar.vocabulary

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def may_end(self) -> bool:
        return not self._ended and self._grammar.plain_machine.may_end(self._position)

    def fill_mask(self, row: np.ndarray, /) -> None:
        mask = 0 if self._ended else self._grammar.plain_mask(self._position)
        n_words = self.context.n_words
        row[:n_words] = mask
        row[n_words:] = 0

    def accept(self, token_id: int, /) -> bool:
        vocabulary = self.context
        if self._ended or not 0 <= token_id < vocabulary.size:
            return False
        if token_id in vocabulary.eos_ids:
            if not self.may_end:
                return False
            self._move(self._position)
            self._ended = True
            return True
        data = vocabulary.spellings[token_id]
        return bool(data) and self.advance(data)

    def advance(self, data: bytes, /) -> bool:
        following = None if self._ended else self._grammar.plain_machine.advance(self._position, data)
        if following is None:
            return False
        self._move(following)
        return True

    def _move(self, position: Frames) -> None:
        self._taken.append(self._position)
        if len(self._taken) >= 2 * _REMEMBERED_TOKENS:
            del self._taken[:_REMEMBERED_TOKENS]
        self._position = position

    def rollback(self, n_tokens: int, /) -> None:
        if not 0 <= n_tokens <= len(self._taken):
            raise ValueError(f"can't take back {n_tokens} tokens: {len(self._taken)} are remembered")
        if n_tokens:
            self._position, self._ended = self._taken[-n_tokens], False
            del self._taken[-n_tokens:]

    def fork(self) -> PlainMatcher:
        other = PlainMatcher(self._grammar, self._position)
        other._ended, other._taken = self._ended, self._taken.copy()
        return other

    def next_bytes(self) -> bytes:
        step = self._grammar.plain_machine.step
        return b"" if self._ended else bytes(byte for byte in range(256) if step(self._position, byte) is not None)

    def forced_bytes(self, most: int, /) -> tuple[bytes, bool]:
        machine, matcher, data = self._grammar.plain_machine, self.fork(), bytearray()
        while not self._ended and len(data) < most:
            possible, may_end = matcher.next_bytes(), machine.may_end(matcher._position)
            if may_end or len(possible) != 1:
                return bytes(data), may_end and not possible
            data += possible
            matcher.advance(possible)
        return bytes(data), False


def fill_masks(matchers: Sequence[Matcher], rows: np.ndarray, n_threads: int = 1) -> list[int]:
    """Write the mask of each matcher to its row of `rows`, [matchers, words] uint32 contiguous; other threads go on meanwhile.

    Gives the indexes of the rows that could not be computed within their budget, where `fill_mask` raises GrammarTooLarge.
    What these rows hold is undefined; the others are right whatever happens to them.
    """
    if matchers and all(isinstance(matcher, NativeMatcher) for matcher in matchers):
        module = extension()
        assert module is not None
        return cast(list[int], module.fill_masks(matchers, rows, n_threads))
    failed = []
    for i, matcher in enumerate(matchers):
        try:
            matcher.fill_mask(rows[i])
        except GrammarTooLarge:
            failed.append(i)
    return failed
