"""Answers as the wire protocols want them: plain dictionaries, keys always there.

`Shape` is what differs between the endpoints. One instance serves one answer: text offsets run on through it.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from grammar.algebra.enforcement import NotEnforced
from runtime.protocol import FinishReason, TokenLogprob, Usage

Json = dict[str, Any]
LEAST_LOGPROB = -9999.0                # stands for "impossible": JSON has no infinity


@dataclass(frozen=True, slots=True)
class Head:
    """What every body and chunk of one answer repeats."""

    id: str
    created_s: int
    model: str
    fingerprint: str

    def object(self, kind: str) -> Json:
        return {"id": self.id, "object": kind, "created": self.created_s, "model": self.model,
                "system_fingerprint": self.fingerprint}


class Shape(Protocol):
    body_kind: str
    chunk_kind: str

    def opening(self, index: int) -> Json | None:
        """The choice of the first chunk, where the protocol has one before the text."""
        ...

    def piece(self, index: int, text: str, logprobs: Sequence[TokenLogprob]) -> Json:
        """New text of a choice."""
        ...

    def ending(self, index: int, reason: FinishReason) -> Json:
        """The last choice of its index in a stream."""
        ...

    def whole(self, index: int, text: str, logprobs: Sequence[TokenLogprob] | None, reason: FinishReason) -> Json:
        """A choice of a body. `logprobs` is None where none were asked for."""
        ...


class ChatShape:
    body_kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def opening(self, index: int) -> Json:
        # The role comes here and nowhere else: clients join strings, and two would read "assistantassistant".
        return self._chunk(index, {"role": "assistant", "content": "", "refusal": None}, None, None)

    def piece(self, index: int, text: str, logprobs: Sequence[TokenLogprob]) -> Json:
        return self._chunk(index, {"content": text}, _chat_logprobs(logprobs) if logprobs else None, None)

    def ending(self, index: int, reason: FinishReason) -> Json:
        return self._chunk(index, {}, None, reason)

    def whole(self, index: int, text: str, logprobs: Sequence[TokenLogprob] | None, reason: FinishReason) -> Json:
        message: Json = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        told = None if logprobs is None else _chat_logprobs(logprobs)
        return {"index": index, "message": message, "logprobs": told, "finish_reason": reason}

    def _chunk(self, index: int, delta: Json, logprobs: Json | None, reason: str | None) -> Json:
        return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}


class CompletionShape:
    body_kind = chunk_kind = "text_completion"

    def __init__(self) -> None:
        self._offsets: dict[int, _Offsets] = {}

    def opening(self, index: int) -> None:
        return None

    def piece(self, index: int, text: str, logprobs: Sequence[TokenLogprob]) -> Json:
        return self._choice(index, text, self._logprobs(index, logprobs) if logprobs else None, None)

    def ending(self, index: int, reason: FinishReason) -> Json:
        return self._choice(index, "", None, reason)

    def whole(self, index: int, text: str, logprobs: Sequence[TokenLogprob] | None, reason: FinishReason) -> Json:
        return self._choice(index, text, None if logprobs is None else self._logprobs(index, logprobs), reason)

    def _choice(self, index: int, text: str, logprobs: Json | None, reason: str | None) -> Json:
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}

    def _logprobs(self, index: int, logprobs: Sequence[TokenLogprob]) -> Json:
        offsets = self._offsets.setdefault(index, _Offsets())
        return {
            "tokens": [_text(entry.token) for entry in logprobs],
            "token_logprobs": [_finite(entry.logprob) for entry in logprobs],
            "top_logprobs": [{_text(token): _finite(logprob) for _, token, logprob in entry.top} for entry in logprobs],
            "text_offset": [offsets.before(entry.token) for entry in logprobs],
        }


class _Offsets:
    """Where tokens begin in the text, in characters, though characters may be split over tokens."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._characters = 0

    def before(self, token: bytes) -> int:
        at = self._characters
        self._characters += len(self._decoder.decode(token))
        return at


def _chat_logprobs(logprobs: Sequence[TokenLogprob]) -> Json:
    return {
        "content": [
            {**_chat_token(entry.token, entry.logprob), "top_logprobs": [_chat_token(token, lp) for _, token, lp in entry.top]}
            for entry in logprobs
        ],
        "refusal": None,
    }


def _chat_token(token: bytes, logprob: float) -> Json:
    return {"token": _text(token), "logprob": _finite(logprob), "bytes": list(token)}


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace")


def _finite(logprob: float) -> float:
    return LEAST_LOGPROB if math.isnan(logprob) else max(logprob, LEAST_LOGPROB)


def usage(counted: Usage) -> Json:
    """All keys, zeros included: a missing `cached_tokens` is read as "not supported"."""
    return {
        "prompt_tokens": counted.prompt_tokens,
        "completion_tokens": counted.completion_tokens,
        "total_tokens": counted.prompt_tokens + counted.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": counted.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
            "forced_tokens": counted.forced_tokens},
    }


def not_enforced(left_out: Sequence[NotEnforced]) -> Json:
    """What in a schema restrains nothing: left out by best effort, or plainly a misspelling."""
    return {"not_enforced": [{"keyword": one.keyword, "pointer": one.pointer, "reason": one.reason} for one in left_out]}


def body(head: Head, shape: Shape, choices: Sequence[Json], counted: Usage) -> Json:
    return {**head.object(shape.body_kind), "choices": list(choices), "usage": usage(counted)}
