"""The vocabularies that masks are measured over: a model's own, and the same made larger.

A larger one is made up: a new token is what two tokens spell together, chosen by a seed, as further merges of a byte-pair
encoding would have made it. Texts are then encoded by the model's tokenizer, and neighbours that have been merged become one.
"""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

COMMON = 12_000         # tokens with small numbers were merged first, so they are the common ones
LONGEST_BYTES = 40


@dataclass(frozen=True)
class Tokens:
    """What each token spells (b"" for control tokens), the one that ends an answer, and how texts are encoded.

    `tokenizer_json` is a tokenizer in the form of the `tokenizers` library; `pairs` are the merges that come on top.
    """

    name: str
    spellings: list[bytes]
    eos: int
    tokenizer_json: str
    pairs: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def n_words(self) -> int:
        """32-bit words of a mask."""
        return (len(self.spellings) + 31) // 32

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return _merged(ids, self.pairs) if self.pairs else ids

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "spellings": [base64.b64encode(data).decode() for data in self.spellings], "eos": self.eos,
                "tokenizer_json": self.tokenizer_json, "pairs": [[*pair, token] for pair, token in self.pairs.items()]}

    @classmethod
    def from_json(cls, sent: dict[str, Any]) -> Tokens:
        spellings = [base64.b64decode(data) for data in sent["spellings"]]
        pairs = {(first, second): token for first, second, token in sent["pairs"]}
        return cls(sent["name"], spellings, sent["eos"], sent["tokenizer_json"], pairs)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self.tokenizer_json)
        tokenizer.encode_special_tokens = True      # the library's name for: special tokens are text like any other
        return tokenizer


def model_tokens(path: Path) -> Tokens:
    """The vocabulary of a model file or folder. Raises runtime.errors.ModelUnreadable."""
    from runtime.folder_vocabulary import vocabulary_of_folder
    from runtime.gguf_file import GgufFile
    from runtime.gguf_vocabulary import vocabulary_of_gguf

    source = vocabulary_of_folder(path) if path.is_dir() else vocabulary_of_gguf(GgufFile(path))
    spellings = [bytes(data) for data in source.token_bytes]
    name = f"{path.stem.partition('.')[0]}, {len(spellings):,} tokens"
    return Tokens(name, spellings, min(source.eos_ids), source.backend.to_str())


def enlarged(small: Tokens, size: int, seed: int = 1) -> Tokens:
    """A vocabulary of `size` tokens whose first ones are those of `small`."""
    spellings = list(small.spellings)
    known, pairs, rng = set(spellings), {}, random.Random(seed)
    common = [token for token, data in enumerate(spellings[:COMMON]) if data]
    n_small = len(spellings)
    while len(spellings) < size:
        grown = len(spellings) > n_small and rng.random() < 1 / 3       # a merge of a merge
        pair = rng.randrange(n_small, len(spellings)) if grown else rng.choice(common), rng.choice(common)
        data = spellings[pair[0]] + spellings[pair[1]]
        if len(data) <= LONGEST_BYTES and data not in known:
            known.add(data)
            pairs[pair] = len(spellings)
            spellings.append(data)
    return replace(small, name=f"{small.name.partition(',')[0]} made larger, {size:,} tokens", spellings=spellings, pairs=pairs)


def _merged(ids: list[int], pairs: dict[tuple[int, int], int]) -> list[int]:
    """Neighbours that have become one token, from the left; what they became is tried with what follows."""
    out: list[int] = []
    for token in ids:
        if out and (out[-1], token) in pairs:
            out[-1] = pairs[out[-1], token]
        else:
            out.append(token)
    return out
