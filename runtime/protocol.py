"""What the gateway says to the engine and what the engine answers.

Both processes import this module and nothing else of each other. Every message is a plain, immutable
value: text, numbers, tuples and bytes, so that it can cross a pipe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

FinishReason = Literal["stop", "length"]
EngineState = Literal["starting", "ready", "restarting", "asleep", "waking", "failed", "stopped"]
GrammarKind = Literal["json_schema", "json_object", "regex", "choice", "ebnf", "structural_tag"]
Style = Literal["compact", "free", "pretty"]
PropertyOrder = Literal["schema", "any"]
Unsupported = Literal["refuse", "ignore"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen. The defaults leave the model's distribution as it is."""

    max_tokens: int
    temperature: float = 1.0           # 0: the likeliest token
    top_p: float = 1.0                 # in (0, 1]
    top_k: int = 0                     # 0: all
    min_p: float = 0.0                 # in [0, 1]: share of the likeliest token's probability
    typical_p: float = 1.0             # in (0, 1]: share of the tokens whose surprise is nearest to the expected one
    seed: int | None = None            # None: the engine draws one
    stop: tuple[str, ...] = ()         # the text ends before the first of these
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False           # no end of sequence at all; a grammar's end goes before this
    min_tokens: int = 0                # no end of sequence or stop token before so many; a grammar's end goes before this
    presence_penalty: float = 0.0      # subtracted once from the logit of each token already generated
    frequency_penalty: float = 0.0     # subtracted for each time that it was generated
    repetition_penalty: float = 1.0    # divides positive logits of tokens in prompt or answer, multiplies negative ones
    logit_bias: tuple[tuple[int, float], ...] = ()
    logprobs: int | None = None        # None: none; k >= 0: the chosen token's, and the k likeliest beside it
    logprobs_of: Literal["model", "allowed"] = "model"    # before anything is changed; or after bias, penalties and mask


@dataclass(frozen=True, slots=True)
class GrammarSpec:
    """What the answer must look like, as text: compiled in the engine, where the vocabulary is."""

    kind: GrammarKind
    source: str                        # JSON of a schema, choices or structural tags; a regex; a grammar; "" for json_object
    style: Style = "compact"           # of JSON, as the next two: see grammar.compile_json_schema
    property_order: PropertyOrder = "schema"
    unsupported: Unsupported = "refuse"


@dataclass(frozen=True, slots=True)
class BeamParams:
    """Look for the likeliest answers instead of drawing one: see runtime/beams.py."""

    width: int                         # answers kept open from step to step
    n: int                             # answers told, at most `width`
    length_penalty: float = 1.0        # a score is the sum of logprobs divided by length ** length_penalty
    early_stopping: bool | Literal["never"] = False


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One sequence to generate, or one beam search. The same for every wire protocol."""

    request_id: str
    prompt_tokens: tuple[int, ...]
    sampling: SamplingParams
    cache_domain: bytes                # derived from the tenant by the gateway, never taken from the caller
    grammar: GrammarSpec | None = None
    ttl_s: float | None = None         # how long its blocks stay reachable after their last use; None: the engine's default
    tenant: str = ""                   # whose fair share it is served from
    priority: int = 0                  # among its tenant's: lower goes first
    beams: BeamParams | None = None    # with these, nothing is drawn, and the one answer is a `Beams`


@dataclass(frozen=True, slots=True)
class Submit:
    request: GenerationRequest


@dataclass(frozen=True, slots=True)
class Cancel:
    request_id: str


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Finish nothing more; leave the loop."""


Command = Submit | Cancel | Shutdown


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    token_id: int
    token: bytes
    logprob: float
    top: tuple[tuple[int, bytes, float], ...] = ()   # (id, bytes, logprob), likeliest first


@dataclass(frozen=True, slots=True)
class Usage:
    """The ledger's entry of one sequence.

    prompt_tokens == cached_tokens + computed_tokens; what the sequence computed a second time after a
    preemption counts in recomputed_tokens and nowhere else.
    """

    prompt_tokens: int
    cached_tokens: int                 # read from blocks that another request had put there
    computed_tokens: int
    completion_tokens: int
    recomputed_tokens: int = 0
    forced_tokens: int = 0             # of completion_tokens: the grammar left no choice, so no step was spent on them


@dataclass(frozen=True, slots=True)
class Delta:
    """New text of a sequence. `text` is valid UTF-8 and never the beginning of a stop string."""

    request_id: str
    text: str
    token_ids: tuple[int, ...]         # sampled or forced since the last delta; may be more or less than `text` shows
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """One answer of a beam search."""

    text: str
    token_ids: tuple[int, ...]
    reason: FinishReason
    score: float
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Beams:
    """All that a beam search tells, once, before its Finished: at most `n` answers, those with the highest scores first.

    Fewer where a grammar allows fewer. The usage of its Finished counts the tokens of all beams.
    """

    request_id: str
    answers: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    request_id: str
    reason: FinishReason
    usage: Usage
    queue_s: float                     # from its arrival in the engine until its first chunk was planned
    logprob: float | None = None       # of all its tokens together, the end of sequence too; where logprobs were asked for


@dataclass(frozen=True, slots=True)
class Failed:
    """The request ended without an answer. `code` is one of runtime.errors' codes."""

    request_id: str
    code: str
    message: str
    param: str | None = None


@dataclass(frozen=True, slots=True)
class PoolStats:
    """One tier's blocks: total == free + cached + used. Used: held by a running sequence."""

    tier: str
    blocks_total: int
    blocks_free: int
    blocks_cached: int
    blocks_used: int
    block_tokens: int
    block_bytes: int


@dataclass(frozen=True, slots=True)
class EngineStats:
    """What the engine counts since its start, and what it holds now."""

    running: int = 0
    waiting: int = 0
    steps: int = 0
    cached_tokens: int = 0             # of the prompts admitted so far: read from cache
    computed_tokens: int = 0           # ... and computed
    generated_tokens: int = 0
    forced_tokens: int = 0             # of those: appended without a step of their own
    guessed_tokens: int = 0            # put behind sequences to be checked
    guessed_right_tokens: int = 0      # of those: they were what was drawn
    recomputed_tokens: int = 0
    preemptions: int = 0
    evicted_blocks: int = 0
    expired_blocks: int = 0
    step_s: float = 0.0                # the last step's length
    pools: tuple[PoolStats, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the gateway must know of the model that the engine has loaded."""

    name: str
    context_tokens: int
    vocabulary_size: int
    kernels: str                       # "native" or "reference"
    device: str
    load_s: float
    epoch: str = ""                    # changes with the weights and the cache's layout: see runtime/epoch.py


@dataclass(frozen=True, slots=True)
class Ready:
    model: ModelInfo


@dataclass(frozen=True, slots=True)
class StartFailed:
    """The engine can't serve: an unreadable model, too little memory. No restart helps."""

    code: str
    message: str


Event = Delta | Beams | Finished | Failed | EngineStats | Ready | StartFailed
