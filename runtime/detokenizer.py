"""Tokens to text, a token at a time: whole characters only, and nothing past a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Detokenizer:
    """The text of one answer as it grows.

    A token may end in the middle of a character, and a stop string may stretch over several tokens. So
    `push` gives out only what can't change any more: whole characters, less the longest end of the text
    that a stop string might still begin with. What never becomes a character is shown as U+FFFD, at the
    place where a decoder of the whole text would show it.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop = tuple(stop)
        self._held = ""
        self.stopped = False

    def fork(self) -> Detokenizer:
        """Another one that has seen the same."""
        other = Detokenizer(self._stop)
        other._decoder.setstate(self._decoder.getstate())
        other._held, other.stopped = self._held, self.stopped
        return other

    def push(self, token: bytes) -> str:
        """The text that has become certain. Once `stopped`, the answer ended before a stop string."""
        return self._give_out(self._decoder.decode(token))

    def finish(self) -> str:
        """The rest, when no more tokens come."""
        text = self._give_out(self._decoder.decode(b"", final=True))
        text, self._held = text + self._held, ""
        return text

    def _give_out(self, new: str) -> str:
        if self.stopped:
            return ""
        text = self._held + new
        at = min((i for i in map(text.find, self._stop) if i >= 0), default=-1)
        if at >= 0:
            self.stopped, self._held = True, ""
            return text[:at]
        n_held = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - n_held:]
        return text[: len(text) - n_held]


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that begins `stop` and is not the whole of it."""
    for n in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:n]):
            return n
    return 0
