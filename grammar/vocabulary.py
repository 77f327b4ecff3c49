"""A tokenizer's vocabulary, prepared once for all grammars."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any

from grammar.masks import MaskCache
from kernels.matching import extension
from kernels.trie import TokenTrie

_MASK_CACHE_BYTES = 256 << 20
SPECIAL_IDS = range(1 << 24)   # what the spelling of a special token has room for
_SPECIAL = b"\xff"   # no byte of UTF-8: what begins the spelling of a special token


class Vocabulary:
    """What each token spells, and which tokens end an answer.

    `token_bytes[t]` is empty for a token that is never text (a control token); such a token is allowed only as one of `eos_ids`,
    where the answer may end, or as one of `special_tokens` (name -> token), where a grammar asks for it by name. No token is
    text that holds the byte 0xFF. `encode` gives the tokens of a text as the tokenizer writes it, without special tokens; without
    it `forced_tokens` knows only tokens that stand alone in their mask.
    Building takes a fraction of a second for 50,000 tokens. Any thread may use it.
    """

    def __init__(self, token_bytes: Sequence[bytes], eos_ids: Sequence[int], *, special_tokens: Mapping[str, int] | None = None,
                 encode: Callable[[str], list[int]] | None = None) -> None:
        self.size = len(token_bytes)
        self.eos_ids = frozenset(eos_ids)
        self.special_tokens = MappingProxyType(dict(special_tokens or {}))
        self.encode = encode
        self._check("eos_ids", self.eos_ids)
        self._check("special_tokens", frozenset(self.special_tokens.values()))
        self.token_bytes = [b"" if t in self.eos_ids else bytes(data) for t, data in enumerate(token_bytes)]
        for token in self.special_tokens.values():
            self.token_bytes[token] = b""
        self.spellings = self._spellings()
        self.n_words = (self.size + 31) // 32     # uint32 words of a mask row
        self.longest = max(map(len, self.spellings), default=0)
        self.masks = MaskCache(_MASK_CACHE_BYTES)
        module = extension()
        self.native: Any = module and module.Vocabulary(self.spellings, sorted(self.eos_ids), _MASK_CACHE_BYTES)

    @cached_property
    def trie(self) -> TokenTrie:
        """What the reference machine walks; made when it is first needed."""
        return TokenTrie.build(self.spellings)

    @cached_property
    def _in_order(self) -> list[bytes]:
        return sorted(set(self.spellings) - {b""})

    def longer_than(self, prefix: bytes) -> Iterator[bytes]:
        """The spellings that begin with `prefix` and go on."""
        for spelling in islice(self._in_order, bisect_left(self._in_order, prefix + b"\0"), None):
            if not spelling.startswith(prefix):
                return
            yield spelling

    def _check(self, what: str, tokens: frozenset[int]) -> None:
        out_of_range = [t for t in tokens if not 0 <= t < self.size]
        if out_of_range:
            raise ValueError(f"{what} {sorted(out_of_range)} are no tokens of a vocabulary of {self.size}")

    def _spellings(self) -> list[bytes]:
        """What grammars read for each token: its text, or what stands for a special one."""
        spellings = [b"" if _SPECIAL in data else data for data in self.token_bytes]
        for token in set(self.special_tokens.values()) - self.eos_ids:
            spellings[token] = special_spelling(token)
        return spellings


def special_spelling(token: int) -> bytes:
    """The bytes that stand for a special token in a grammar's machine; no text has them."""
    return _SPECIAL + token.to_bytes(3, "big")
