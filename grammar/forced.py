"""What comes next without any alternative, as the tokenizer would write it.

The bytes that are forced are the easy part: the machine goes on as long as one byte is possible. Turning them into tokens must
not take anything from the model: behind forced `order` may come `Id` or `Name`, and a tokenizer that has a token `orderId`
would have used it. So tokens are kept only as far as every allowed continuation begins with them; the rest is left to the
model.
"""

from __future__ import annotations

import codecs
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from grammar.vocabulary import Vocabulary

FORCED_BYTES_LIMIT = 4096
_LONELY_TOKENS_LIMIT = 256
_SAMPLED_CONTINUATIONS = 24
_SPECIAL_TOKEN = re.compile(rb"\xff(.{3})", re.DOTALL)


class Position(Protocol):
    """What is asked of a matcher here."""

    @property
    def ended(self) -> bool: ...
    def fill_mask(self, row: np.ndarray, /) -> None: ...
    def accept(self, token_id: int, /) -> bool: ...
    def advance(self, data: bytes, /) -> bool: ...
    def fork(self) -> Position: ...
    def next_bytes(self) -> bytes: ...
    def forced_bytes(self, most: int, /) -> tuple[bytes, bool]: ...


def forced_text(matcher: Position) -> str:
    """The characters that must come next; "" where there is a choice, or a special token is due."""
    data, _ = matcher.forced_bytes(FORCED_BYTES_LIMIT)
    return _whole_characters(data.partition(b"\xff")[0])


def forced_tokens(matcher: Position, vocabulary: Vocabulary) -> list[int]:
    """The tokens that must come next, end-of-sequence included where nothing else is possible."""
    if vocabulary.encode is None:
        return _lonely_tokens(matcher, vocabulary)
    data, ends = matcher.forced_bytes(FORCED_BYTES_LIMIT)
    *closed, last = _SPECIAL_TOKEN.split(data)     # text, special token, text, special token, ..., text
    last, cut_off, _ = last.partition(b"\xff")
    tokens: list[int] = []
    for text, special in zip(closed[::2], closed[1::2], strict=True):
        written = _written(text, vocabulary)
        if written is None:
            return tokens
        tokens += [*written, int.from_bytes(special, "big")]
    if ends or cut_off:
        written = _written(last, vocabulary)
        return tokens if written is None else tokens + written + (sorted(vocabulary.eos_ids)[:1] if ends else [])
    after = matcher.fork()
    after.advance(data)
    return tokens + _kept(last, after, vocabulary)


def _lonely_tokens(matcher: Position, vocabulary: Vocabulary) -> list[int]:
    """Tokens that stand alone in their mask."""
    matcher = matcher.fork()
    tokens: list[int] = []
    row = np.empty(vocabulary.n_words, dtype=np.uint32)
    while not matcher.ended and len(tokens) < _LONELY_TOKENS_LIMIT:
        matcher.fill_mask(row)
        words = np.flatnonzero(row)
        if len(words) != 1 or int(row[words[0]]).bit_count() != 1:
            break
        tokens.append(int(words[0]) * 32 + int(row[words[0]]).bit_length() - 1)
        matcher.accept(tokens[-1])
    return tokens


def _written(data: bytes, vocabulary: Vocabulary) -> list[int] | None:
    """A text as the tokenizer writes it; None where its tokens do not spell exactly that text."""
    assert vocabulary.encode is not None
    try:
        tokens = vocabulary.encode(data.decode())
    except UnicodeDecodeError:
        return None
    spelled = [vocabulary.spellings[token] for token in tokens]
    return tokens if all(spelled) and b"".join(spelled) == data else None


def _kept(data: bytes, after: Position, vocabulary: Vocabulary) -> list[int]:
    """The tokens with which the tokenizer writes `data` whatever comes `after` it."""
    text = _whole_characters(data)
    tokens = _written(text.encode(), vocabulary) if text else None
    if not tokens:
        return []
    ends = accumulate(len(vocabulary.spellings[token]) for token in tokens)
    limit = _first_bridge(data, after, vocabulary)
    kept = sum(end <= limit for end in ends)
    if len(text.encode()) == len(data):
        kept = min([kept, *(_common(tokens, longer) for longer in _continued(text, after, vocabulary))])
    return tokens[:kept]


def _first_bridge(data: bytes, after: Position, vocabulary: Vocabulary) -> int:
    """Where the first token may begin that goes on beyond `data`; its length where there is none."""
    for start in range(max(0, len(data) - vocabulary.longest + 1), len(data)):
        rest = data[start:]
        if any(after.fork().advance(spelling[len(rest):]) for spelling in vocabulary.longer_than(rest)):
            return start
    return len(data)


def _continued(text: str, after: Position, vocabulary: Vocabulary) -> list[list[int]]:
    """How the tokenizer writes the text with some characters that may come next: it may look further than tokens reach."""
    assert vocabulary.encode is not None
    following = [chr(byte) for byte in after.next_bytes() if byte < 0x80][:_SAMPLED_CONTINUATIONS]
    return [vocabulary.encode(text + char) for char in following]


def _common(left: list[int], right: list[int]) -> int:
    """How many tokens two lists begin with in common."""
    n = 0
    for x, y in zip(left, right, strict=False):
        if x != y:
            break
        n += 1
    return n


def _whole_characters(data: bytes) -> str:
    """The characters of a text that may be cut off within one; "" where it begins within one."""
    try:
        return codecs.utf_8_decode(data, "strict", False)[0]
    except UnicodeDecodeError:
        return ""
