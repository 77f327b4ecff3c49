"""The next token of each row, from the row's logits.

What happens to a row, always in this order (docs/sampling.md has the reasons):

    logprobs -> logit_bias -> penalties -> mask and bans -> temperature -> top_k -> top_p -> min_p -> typical_p -> draw

A draw depends on the row's own logits, seed and position, and on nothing else: neither on its neighbours in
the batch nor on what was drawn before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, isnan

import torch
from torch import Tensor

from kernels.masks import mask_logits_reference_
from kernels.ops import Ops
from kernels.sampling import Choice, choose_reference_

from .errors import RequestFaulted, RuntimeFault
from .logprobs import Logprobs, leading
from .penalties import TokenCounts, add_bias_
from .protocol import SamplingParams
from .randomness import uniform

__all__ = ["Candidate", "Sampled", "Sampler", "SamplingRow", "TokenCounts"]

log = logging.getLogger(__name__)

# A lower temperature tells apart only logits that agree to the last digits; dividing by it would in the end overflow.
_COLDEST = 1e-6


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """How one row's token is drawn."""

    params: SamplingParams
    seed: int
    position: int                    # of the token to draw, in its answer
    counts: TokenCounts | None = None
    banned: tuple[int, ...] = ()     # not allowed here, whatever the mask says: an end before min_tokens
    n_candidates: int = 0            # how many of the likeliest tokens a beam search wants to see

    @property
    def is_greedy(self) -> bool:
        return self.params.temperature < _COLDEST or self.n_candidates > 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that a beam may go on by.

    score: its logit after bias and penalties, less the logarithm of the sum of all tokens' exponentials: of the model's own
    logits, or of those that are allowed here (`logprobs_of`). Without bias and penalties that is its logprob.
    """

    token_id: int
    score: float
    logprob: float | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """A token; with logprobs, if the row asked for them."""

    token_id: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()    # (id, logprob), likeliest first
    candidates: tuple[Candidate, ...] = ()     # best first; for rows of a beam search


class Sampler:
    """Draws one token for each row of a step. Keeps nothing from step to step.

    `ops` gives the operations of masking and choosing; without it the references are used.
    """

    def __init__(self, ops: Ops | None = None) -> None:
        self._mask_logits_ = mask_logits_reference_ if ops is None else ops.mask_logits_
        self._choose_ = choose_reference_ if ops is None else ops.choose_

    def draw(self, logits: Tensor, rows: Sequence[SamplingRow], masks: Tensor | None = None) -> list[Sampled | RuntimeFault]:
        """One token, or one fault, for each row. Overwrites `logits`.

        logits: [rows, vocabulary] float32. masks: [rows, ceil(vocabulary / 32)] int32, bit t % 32 of word
        t // 32 is 1 where token t is allowed; a row without a grammar holds all ones.

        A row faults, alone, if its logits aren't numbers, if nothing is left that it may say, or if its
        parameters can't be applied. What masks and bans forbid is never drawn, whatever bias and penalties say.
        """
        assert logits.shape[0] == len(rows), f"{logits.shape[0]} rows of logits for {len(rows)} sequences"
        if not rows:
            return []
        step = _Step(logits, rows)
        step.look_at_the_model()
        step.each(step.adjust_)
        if masks is not None:
            self._mask_logits_(logits, masks)
        step.ban_()
        step.look_at_what_is_left()
        step.find_peaks()
        step.choose_greedily()
        step.choose_at_random(self._choose_)
        return step.results()


class _Step:
    """The rows of one call, on their way from logits to tokens. Rows with a fault are left out of what follows it."""

    def __init__(self, logits: Tensor, rows: Sequence[SamplingRow]) -> None:
        self.logits = logits
        self.rows = rows
        self.faults: dict[int, RuntimeFault] = {}
        self.logprobs: dict[int, Logprobs] = {}
        self.peaks: list[float] = []               # each row's largest logit
        self.totals: dict[int, Tensor] = {}        # logsumexp of the rows of beam searches, where their scores begin
        self.tokens: dict[int, int] = {}

    def sound(self) -> Iterator[int]:
        return (i for i in range(len(self.rows)) if i not in self.faults)

    def each(self, work: Callable[[int], None]) -> None:
        """Do a row's work for each sound row; what it raises is that row's fault alone."""
        for i in self.sound():
            try:
                work(i)
            except RuntimeFault as fault:
                self.faults[i] = fault
            except Exception as error:
                log.exception("drawing position %d failed", self.rows[i].position)
                self.faults[i] = RequestFaulted(f"drawing a token failed: {type(error).__name__}: {error}")

    def look_at_the_model(self) -> None:
        """Refuse rows that hold no usable numbers; keep the logprobs of those that want them."""
        for i, peak in enumerate(self.logits.amax(1).tolist()):
            if not isfinite(peak):
                what = "not a number" if isnan(peak) else f"{peak} at the highest"
                self.faults[i] = RequestFaulted(f"the model's logits are {what}: send the request again; if it fails again, "
                                                "the model's weights or the prompt's cached blocks are damaged")
            elif self.rows[i].params.logprobs is not None and self.rows[i].params.logprobs_of == "model":
                self.logprobs[i] = Logprobs(self.logits[i])
        self._note_totals("model")

    def _note_totals(self, moment: str) -> None:
        for i in self.sound():
            if self.rows[i].n_candidates and self.rows[i].params.logprobs_of == moment:
                self.totals[i] = self.logits[i].logsumexp(-1)

    def adjust_(self, i: int) -> None:
        row = self.rows[i]
        add_bias_(self.logits[i], row.params)
        if row.counts is not None:
            row.counts.penalise_(self.logits[i])

    def ban_(self) -> None:
        """Take out the banned tokens of all rows at once."""
        vocabulary = self.logits.shape[1]
        places = [(i, token) for i, row in enumerate(self.rows) for token in row.banned if 0 <= token < vocabulary]
        if places:
            at_rows, at_tokens = torch.tensor(places, device=self.logits.device).T
            self.logits[at_rows, at_tokens] = -torch.inf

    def look_at_what_is_left(self) -> None:
        """The logprobs of rows that want those of what they may say here."""
        for i in self.sound():
            if self.rows[i].params.logprobs is not None and self.rows[i].params.logprobs_of == "allowed":
                self.logprobs[i] = Logprobs(self.logits[i])
        self._note_totals("allowed")

    def find_peaks(self) -> None:
        """Refuse rows of which nothing is left."""
        self.peaks = self.logits.amax(1).tolist()
        for i in list(self.sound()):
            if self.peaks[i] == -torch.inf:
                self.faults[i] = RequestFaulted("no token is allowed here: what the grammar admits, logit_bias, stop tokens or "
                                                "min_tokens exclude")
            elif not isfinite(self.peaks[i]):
                self.faults[i] = RequestFaulted("logit_bias or a penalty is too large for a logit", "logit_bias")

    def choose_greedily(self) -> None:
        """The likeliest tokens of all greedy rows in one pass; of equal ones the lowest id."""
        greedy = [i for i in self.sound() if self.rows[i].is_greedy]
        if greedy:
            logits = self.logits if len(greedy) == len(self.rows) else self.logits[greedy]
            self.tokens.update(zip(greedy, logits.max(1).indices.tolist(), strict=True))

    def choose_at_random(self, choose_: Callable[[Tensor, Sequence[Choice]], list[int]]) -> None:
        """The tokens of all other rows."""
        left = [i for i in self.sound() if i not in self.tokens]
        if left:
            self.tokens.update(zip(left, choose_(self.logits, [self._choice(i) for i in left]), strict=True))

    def _choice(self, i: int) -> Choice:
        row, params = self.rows[i], self.rows[i].params
        u = uniform(row.seed, row.position)
        return Choice(i, self.peaks[i], u, params.temperature, params.top_k, params.top_p, params.min_p, params.typical_p)

    def results(self) -> list[Sampled | RuntimeFault]:
        return [self.faults.get(i) or self._sampled(i) for i in range(len(self.rows))]

    def _sampled(self, i: int) -> Sampled:
        token, logprobs = self.tokens[i], self.logprobs.get(i)
        candidates = self._candidates(i) if self.rows[i].n_candidates else ()
        if logprobs is None:
            return Sampled(token, candidates=candidates)
        return Sampled(token, logprobs.of(token), logprobs.top(self.rows[i].params.logprobs or 0), candidates)

    def _candidates(self, i: int) -> tuple[Candidate, ...]:
        logits, ids = leading(self.logits[i], self.rows[i].n_candidates)
        logprobs = self.logprobs.get(i)
        scores = (logits - self.totals[i]).tolist()
        return tuple(Candidate(token, score, None if logprobs is None else logprobs.of(token))
                     for token, score in zip(ids.tolist(), scores, strict=True))
