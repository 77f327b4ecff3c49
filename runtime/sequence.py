"""One request on its way through the engine: its tokens, its blocks, and how far it has come."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from prefix_cache import Lease

from .protocol import GenerationRequest
from .speculation import Eagerness


@dataclass(slots=True, eq=False)
class Sequence:
    """Moved by the scheduler alone.

    `n_computed` is the only measure of progress: tokens whose keys and values lie in `blocks`. There is
    no phase beside it. A sequence decodes when all is computed but what came last: the token drawn and
    those that a grammar forced behind it. Before that it prefills; after a preemption its own answer too.

    Invariants: len(blocks) * block_tokens >= n_computed; no blocks without a lease; a waiting sequence
    holds neither. With nothing left to compute it rests: it belongs to a beam search that waits for its others.
    """

    request: GenerationRequest
    arrived_s: float
    tokens: array[int] = field(init=False)         # prompt, then answer, as the cache compares them: 32-bit integers
    n_computed: int = 0
    lease: Lease | None = None
    blocks: list[int] = field(default_factory=list)
    holds_all: bool = False                        # the blocks of its whole answer are among them
    n_committed: int = 0                           # blocks offered to the cache so far
    planned_s: float | None = None                 # when its first chunk was planned
    cached_tokens: int = 0                         # found in the cache when it was first admitted
    high_water: int = 0                            # the most tokens it ever had computed
    recomputed_tokens: int = 0
    preemptions: int = 0
    eagerness: Eagerness | None = None             # how much of it to guess ahead; None: nothing
    n_passed_over: int = 0                         # times that a younger one was admitted before it for its cached prefix

    def __post_init__(self) -> None:
        self.tokens = array("i", self.request.prompt_tokens)

    def twin(self, token: int) -> Sequence:
        """Another sequence of the same request that goes on from here by `token`. It holds nothing yet."""
        other = Sequence(self.request, self.arrived_s, planned_s=self.planned_s, cached_tokens=self.cached_tokens,
                         high_water=self.high_water, preemptions=self.preemptions)
        other.tokens = self.tokens[:]
        other.tokens.append(token)
        return other

    @property
    def n_prompt(self) -> int:
        return len(self.request.prompt_tokens)

    @property
    def n_generated(self) -> int:
        return len(self.tokens) - self.n_prompt

    @property
    def decodes(self) -> bool:
        return self.n_left == 1 or self.n_computed >= max(self.n_prompt, self.high_water)

    @property
    def n_left(self) -> int:
        """Tokens still to compute before the next one can be drawn."""
        return len(self.tokens) - self.n_computed
