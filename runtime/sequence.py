"""One request on its way through the engine: its tokens, its blocks, and how far it has come."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from prefix_cache import Lease

from .protocol import GenerationRequest


@dataclass(slots=True, eq=False)
class Sequence:
    """Moved by the scheduler alone.

    `n_computed` is the only measure of progress: tokens whose keys and values lie in `blocks`. There is
    no phase beside it. A sequence prefills while n_computed < len(tokens) - 1 and decodes when one token
    is left; after a preemption it prefills its own answer too.

    Invariants: len(blocks) * block_tokens >= n_computed; no blocks without a lease; a waiting sequence
    holds neither.
    """

    request: GenerationRequest
    arrived_s: float
    tokens: array[int] = field(init=False)         # prompt, then answer, as the cache compares them: 32-bit integers
    n_computed: int = 0
    lease: Lease | None = None
    blocks: list[int] = field(default_factory=list)
    n_committed: int = 0                           # blocks offered to the cache so far
    planned_s: float | None = None                 # when its first chunk was planned
    cached_tokens: int = 0                         # found in the cache when it was first admitted
    high_water: int = 0                            # the most tokens it ever had computed
    recomputed_tokens: int = 0
    preemptions: int = 0

    def __post_init__(self) -> None:
        self.tokens = array("i", self.request.prompt_tokens)

    @property
    def n_prompt(self) -> int:
        return len(self.request.prompt_tokens)

    @property
    def n_generated(self) -> int:
        return len(self.tokens) - self.n_prompt

    @property
    def n_left(self) -> int:
        """Tokens still to compute before the next one can be drawn."""
        return len(self.tokens) - self.n_computed
