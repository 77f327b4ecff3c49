"""The engine as the gateway sees it: exactly these members, nothing of processes, pipes or models.

`runtime.client.EngineClient` fits it; the gateway's own tests use an engine in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from runtime.protocol import Beams, Delta, EngineState, EngineStats, Finished, GenerationRequest, ModelInfo


class Tokenizer(Protocol):
    """The model's own tokenizer. Pure and safe to call from another thread."""

    @property
    def token_bytes(self) -> Sequence[bytes]:
        """What each token adds to a text; b"" for special ones."""
        ...

    def encode_prompt(self, text: str) -> list[int]:
        """A bare text as the model wants it to begin. What looks like a special token in it is plain text."""
        ...

    def encode_chat(self, messages: Sequence[dict[str, Any]]) -> list[int]:
        """The conversation in the model's own layout, ready for the assistant's turn.

        Each message has `role` and `content`, both text; nothing in them becomes a special token. Raises
        ValueError where the model's template refuses the conversation.
        """
        ...


class Generation(Protocol):
    """One sequence under way: any number of `Delta`s (of a beam search one `Beams`), then exactly one `Finished`.

    Iterating raises a `runtime.errors.RuntimeFault` where the sequence fails.
    """

    def __aiter__(self) -> AsyncIterator[Delta | Beams | Finished]: ...

    def cancel(self) -> None:
        """Stop it within one step. Idempotent; harmless once it has ended."""
        ...


class Engine(Protocol):
    """Generates. `model` and `tokenizer` are None until the first `ready`, and stay known across restarts."""

    @property
    def state(self) -> EngineState: ...
    @property
    def model(self) -> ModelInfo | None: ...
    @property
    def tokenizer(self) -> Tokenizer | None: ...
    @property
    def stats(self) -> EngineStats: ...
    @property
    def takes_requests(self) -> bool:
        """Whether `submit` would take a request now, after `rouse`."""
        ...

    async def rouse(self) -> None:
        """To be awaited before `submit`: an engine that fell asleep for want of requests is ready then."""
        ...

    async def sleep(self) -> None:
        """Give the engine's memory back until `wake`. Raises EngineBusy where requests are in it."""
        ...

    async def wake(self) -> None:
        """Returns when the engine is ready. Raises EngineUnavailable where it can't be."""
        ...

    async def start(self) -> None: ...
    async def stop(self) -> None: ...

    def submit(self, request: GenerationRequest) -> Generation:
        """Hand a sequence over. Raises RuntimeFault where it can't be taken."""
        ...
