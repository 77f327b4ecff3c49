"""Byte-level BPE in plain Python, straight from its definition: the judge of the fast tokenizer.

Words are cut by GPT-2's pattern, after each digit has been set apart; in each word the pair with the
earliest merge is joined until no merge applies.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import regex

WORDS = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")
DIGIT = regex.compile(r"(\p{N})")


class PlainBpe:
    def __init__(self, tokens: list[str], merges: list[str]) -> None:
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        shown = [byte for byte in range(256) if chr(byte).isprintable() and not chr(byte).isspace() and byte != 0xAD]
        hidden = [byte for byte in range(256) if byte not in shown]
        self.characters = {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}

    def encode(self, text: str) -> list[int]:
        """Bytes that the vocabulary has no token for are left out."""
        return [self.ids[token] for word in self.words(text) for token in self.merged(word) if token in self.ids]

    def words(self, text: str) -> Iterator[str]:
        for piece in DIGIT.split(text):
            yield from WORDS.findall(piece)

    def merged(self, word: str) -> list[str]:
        parts = [self.characters[byte] for byte in word.encode("utf-8")]
        while True:
            ranked = [(self.ranks[pair], i) for i, pair in enumerate(pairwise(parts)) if pair in self.ranks]
            if not ranked:
                return parts
            _, i = min(ranked)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
