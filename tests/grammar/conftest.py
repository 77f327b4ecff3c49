"""A small vocabulary in which every byte is a token, so that a test can feed any text, and a few longer tokens."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grammar import CompiledGrammar, Matcher, Vocabulary, compile_json_schema

EOS, OTHER_EOS, CONTROL = 256, 257, 258
LONGER = [b'{"', b'":', b'": ', b'", "', b'"}', b'}}', b'"]', b'],', b"abc", b"ab", b"true", b"null", b"00", b"12", b" a",
          b'\\u00',
          "é".encode(), "日本".encode(), "😀".encode(), "é".encode()[:1], "😀".encode()[2:], b"\n  ", b'": [', b"}]}"]


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    return Vocabulary([bytes([b]) for b in range(256)] + [b"", b"", b""] + LONGER, eos_ids=[EOS, OTHER_EOS])


def allowed_tokens(matcher: Matcher, vocabulary: Vocabulary) -> list[int]:
    row = np.full((vocabulary.size + 31) // 32, 0xFFFFFFFF, dtype=np.uint32)
    matcher.fill_mask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


@pytest.fixture(scope="session")
def allowed(vocabulary: Vocabulary) -> Callable[[Matcher], list[int]]:
    """The tokens that a matcher's mask allows."""
    return lambda matcher: allowed_tokens(matcher, vocabulary)


@pytest.fixture(scope="session")
def feed(vocabulary: Vocabulary) -> Callable[[CompiledGrammar, str | bytes], Matcher | None]:
    """The matcher after a text, fed byte by byte; None where a byte is refused. Mask and accept() must agree at each."""

    def run(grammar: CompiledGrammar, text: str | bytes) -> Matcher | None:
        matcher = grammar.new_state()
        for byte in text.encode() if isinstance(text, str) else text:
            in_mask = byte in allowed_tokens(matcher, vocabulary)
            assert matcher.accept(byte) == in_mask
            if not in_mask:
                return None
        return matcher

    return run


@pytest.fixture(scope="session")
def admits(vocabulary: Vocabulary, feed: Any) -> Callable[..., bool]:
    """Whether a whole text may be the answer, for a schema (compiled with `options`) or a compiled grammar."""
    compiled: dict[str, CompiledGrammar] = {}

    def run(schema: Any, text: str | bytes, **options: Any) -> bool:
        if isinstance(schema, CompiledGrammar):
            grammar = schema
        else:
            name = repr((schema, options))
            if name not in compiled:
                compiled[name] = compile_json_schema(schema, vocabulary, **options)
            grammar = compiled[name]
        matcher = feed(grammar, text)
        if matcher is None:
            return False
        assert matcher.may_end == (EOS in allowed_tokens(matcher, vocabulary))
        return matcher.may_end

    return run


@pytest.fixture(scope="session")
def real_vocabulary() -> Vocabulary:
    """The embedded model's vocabulary; skips where the model file is not there."""
    named = os.environ.get("TEST_MODEL_FILE")
    data_dir = Path(os.environ.get("TURNSTILE_DATA_DIR") or Path.home() / ".cache" / "turnstile")
    path = Path(named) if named else data_dir / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.is_file():
        pytest.skip("the embedded model is not here: `turnstile pull` fetches it")
    from runtime.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(path)
    return Vocabulary(tokenizer.token_bytes, eos_ids=tokenizer.eos_ids)
