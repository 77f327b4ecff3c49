"""How many answers are made of a prompt, and which of them are told.

    n                  each of the n is told
    best_of            best_of are made, and the n with the highest mean logprob per token are told
    use_beam_search    the engine looks for the likeliest answers, and the n with the highest scores are told
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from gateway.api.wire import GenerationBody
from gateway.errors import InvalidRequest
from runtime.protocol import BeamParams, Beams, Delta, Finished, FinishReason, SamplingParams, TokenLogprob

_DRAWING = {"temperature": (0, 1), "top_p": (1,), "top_k": (0, -1), "min_p": (0,), "typical_p": (1,)}   # what changes nothing


@dataclass(frozen=True, slots=True)
class Selection:
    """`made` sequences are run for each prompt, and `told` choices come of them: with `beams`, of the one that is run."""

    made: int
    told: int
    beams: BeamParams | None = None

    def sampling(self, given: SamplingParams) -> SamplingParams:
        """As the engine must do it: where answers are compared, it has to tell how likely they are."""
        if self.beams is not None:
            return replace(given, temperature=0.0)
        return replace(given, logprobs=0) if self.made > self.told and given.logprobs is None else given


def selection_of(body: GenerationBody) -> Selection:
    """Raises InvalidRequest where the body's fields contradict each other."""
    told = body.n or 1
    if body.use_beam_search:
        return Selection(1, told, _beams(body, told))
    for name, neutral in (("beam_width", None), ("length_penalty", 1), ("early_stopping", False)):
        if getattr(body, name) not in (None, neutral):
            raise InvalidRequest(f"{name} needs use_beam_search: true.", name)
    made = body.best_of or told
    _enough(made, told, "best_of")
    if body.stream and made > told:
        raise InvalidRequest("best_of can't be streamed: which answer is best is known when all have ended.", "stream")
    return Selection(made, told)


def _beams(body: GenerationBody, told: int) -> BeamParams:
    if body.beam_width and body.best_of and body.beam_width != body.best_of:
        raise InvalidRequest("beam_width and best_of both say how wide a beam search is: leave one out.", "best_of")
    width = body.beam_width or body.best_of or told
    _enough(width, told, "best_of" if body.best_of else "beam_width")
    if body.stream:
        raise InvalidRequest("A beam search can't be streamed: which answer is best is known at its end.", "stream")
    for name, neutral in _DRAWING.items():
        if getattr(body, name) not in (None, *neutral):
            raise InvalidRequest(f"A beam search draws nothing: leave {name} out.", name)
    penalty = 1.0 if body.length_penalty is None else body.length_penalty
    return BeamParams(width, told, penalty, body.early_stopping or False)


def _enough(made: int, told: int, param: str) -> None:
    if made < told:
        raise InvalidRequest(f"{param} ({made}) is less than n ({told}).", param)


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that is told."""

    text: str
    reason: FinishReason
    logprobs: tuple[TokenLogprob, ...]
    merit: float                       # by which answers of one prompt are ordered, where some are left out


@dataclass(slots=True)
class _Heard:
    """What one sequence has said so far."""

    texts: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    beams: Beams | None = None
    finished: Finished | None = None

    def choices(self) -> list[Choice]:
        if self.beams is not None:
            return [Choice(found.text, found.reason, found.logprobs, found.score) for found in self.beams.answers]
        assert self.finished is not None, "it has ended"
        n_tokens, logprob = self.finished.usage.completion_tokens, self.finished.logprob
        merit = -inf if logprob is None else logprob / max(n_tokens, 1)
        return [Choice("".join(self.texts), self.finished.reason, tuple(self.logprobs), merit)]


class Listener:
    """Hears the sequences of a run to their end, and then tells the choices."""

    def __init__(self, n_sequences: int, selection: Selection) -> None:
        self._heard = [_Heard() for _ in range(n_sequences)]
        self._selection = selection

    def hear(self, index: int, happened: Delta | Beams | Finished) -> None:
        heard = self._heard[index]
        if isinstance(happened, Delta):
            heard.texts.append(happened.text)
            heard.logprobs += happened.logprobs
        elif isinstance(happened, Beams):
            heard.beams = happened
        else:
            heard.finished = happened

    def choices(self) -> list[Choice]:
        """Those of the first prompt first; of each prompt, where some are left out, the best first."""
        made = self._selection.made
        return [choice for at in range(0, len(self._heard), made) for choice in self._of_prompt(self._heard[at:at + made])]

    def _of_prompt(self, heard: Sequence[_Heard]) -> list[Choice]:
        choices = [choice for each in heard for choice in each.choices()]
        if len(choices) > self._selection.told:
            choices.sort(key=lambda choice: -choice.merit)         # stable: of equal ones the first
        return choices[:self._selection.told]
