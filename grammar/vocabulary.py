"""A tokenizer's vocabulary, prepared once for all grammars."""

from __future__ import annotations

from collections.abc import Sequence

from grammar.masks import MaskCache
from kernels.trie import TokenTrie

_MASK_CACHE_BYTES = 256 << 20


class Vocabulary:
    """What each token spells, and which tokens end an answer.

    `token_bytes[t]` is empty for a token that is never text (a control token); such a token is allowed only as one of `eos_ids`,
    where the answer may end. Building takes well under a second for 50,000 tokens. Any thread may use it.
    """

    def __init__(self, token_bytes: Sequence[bytes], eos_ids: Sequence[int]) -> None:
        self.size = len(token_bytes)
        self.eos_ids = frozenset(eos_ids)
        out_of_range = [t for t in self.eos_ids if not 0 <= t < self.size]
        if out_of_range:
            raise ValueError(f"eos_ids {sorted(out_of_range)} are no tokens of a vocabulary of {self.size}")
        self.token_bytes = [b"" if t in self.eos_ids else bytes(data) for t, data in enumerate(token_bytes)]
        self.trie = TokenTrie.build(self.token_bytes)
        self.masks = MaskCache(_MASK_CACHE_BYTES)
