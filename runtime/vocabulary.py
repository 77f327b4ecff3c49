"""What every tokenizer is made of, whichever files it came from, and the bytes that its tokens stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import tokenizers

from .errors import ModelUnreadable

BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
WORD_START = "\u2581"      # how SentencePiece vocabularies write a space


@dataclass(frozen=True, slots=True)
class VocabularySource:
    """Read from a model's files. `token_bytes[i]` is what token i adds to the text, b"" for special tokens and for
    rows of the embedding that no token uses; it has as many entries as the model has logits."""

    backend: tokenizers.Tokenizer
    token_bytes: list[bytes]
    specials: Mapping[str, int]            # text -> id of the tokens that no plain text may produce
    eos_ids: tuple[int, ...]               # any of these ends an answer; the most usual one first
    bos_id: int | None
    prompt_prefix: tuple[int, ...] = ()    # what the model expects before a bare text
    chat_template: str | None = None
    template_variables: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def refusing_what_the_library_refuses(path: Path) -> Iterator[None]:
    """Whatever the `tokenizers` library raises on a damaged vocabulary becomes ModelUnreadable.

    It raises bare Exceptions, and where its native code panics a BaseException that isn't one.
    """
    try:
        yield
    except (ModelUnreadable, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ModelUnreadable(f"{path}: not a sound tokenizer: {error}. Fetch the model again.") from None


def byte_level_alphabet() -> dict[str, int]:
    """The characters that stand for the 256 bytes in a byte-level vocabulary.

    Radford et al., GPT-2, 2019: printable Latin-1 characters stand for themselves, the other bytes, in order,
    for the characters from U+0100 on.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("\u00a1"), ord("\u00ac") + 1), *range(ord("\u00ae"), 256)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def byte_level_bytes(token: str, alphabet: Mapping[str, int]) -> bytes:
    """A token with a character outside of the alphabet is text that was added as it is."""
    try:
        return bytes([alphabet[character] for character in token])
    except KeyError:
        return token.encode("utf-8")


def sentencepiece_bytes(token: str) -> bytes:
    """`<0x0A>` is one byte; in all others the word-start sign is a space."""
    byte = BYTE_TOKEN.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(WORD_START, " ").encode("utf-8")
