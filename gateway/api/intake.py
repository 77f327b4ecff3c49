"""From a checked body to `GenerationRequest`s: sampling, lengths, retention, one request a choice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from gateway.api.choices import Selection, selection_of
from gateway.api.wire import ChatBody, CompletionBody, GenerationBody, Message
from gateway.engine_port import Tokenizer
from gateway.errors import InvalidRequest
from runtime.protocol import GenerationRequest, GrammarSpec, ModelInfo, SamplingParams

SMALL_PROMPT_CHARACTERS = 4000         # tokenised in well under a millisecond: not worth a thread
HUGE_PROMPT_CHARACTERS = 100_000
MOST_SHRINKAGE = 4                     # a tokenizer that composes characters first makes at most a third of a text's bytes
MAX_CHOICES = 128                      # of one request: prompts times n or best_of
LEAST_TOP_P = 1e-6                     # OpenAI's clients may send 0 and mean the likeliest token
TTL_S = {"5m": 300.0, "30m": 1800.0, "1h": 3600.0, "24h": 86400.0}
T = TypeVar("T")
_TEMPLATE_ROLES = {"developer": "system", "function": "tool"}


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt as tokens, shorter than the model's context, and where it stands in the body."""

    tokens: tuple[int, ...]
    param: str


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as chat templates know them: `content` is text, roles are those of the template."""
    return [
        {
            "role": _TEMPLATE_ROLES.get(message.role, message.role),
            "content": _message_text(message, i),
            **{key: value for key in ("name", "tool_calls", "tool_call_id") if (value := getattr(message, key)) is not None},
        }
        for i, message in enumerate(messages)
    ]


def _message_text(message: Message, i: int) -> str:
    if message.content is None:
        if message.role != "assistant":
            raise InvalidRequest(f"Missing required parameter: 'messages[{i}].content'.", f"messages[{i}].content",
                                 "missing_required_parameter")
        return ""
    if isinstance(message.content, str):
        return message.content
    return "".join(_part_text(part, f"messages[{i}].content[{j}]") for j, part in enumerate(message.content))


def _part_text(part: dict[str, Any], param: str) -> str:
    kind = part.get("type")
    key = "refusal" if kind == "refusal" else "text"
    if kind not in ("text", "refusal"):
        shown = f"'{kind[:40]}'" if isinstance(kind, str) else "without a type"
        raise InvalidRequest(f"Invalid value for '{param}': this model reads text only, not parts of type {shown}.", param)
    if not isinstance(part.get(key), str):
        raise InvalidRequest(f"Invalid value for '{param}.{key}': it must be a text.", f"{param}.{key}", "invalid_type")
    return str(part[key])


async def chat_prompt(body: ChatBody, tokenizer: Tokenizer, model: ModelInfo) -> Prompt:
    messages = chat_messages(body.messages)
    size = sum(len(message["content"]) for message in messages)
    _check_size(size, "messages", tokenizer, model)
    try:
        tokens = await _tokenised(size, partial(tokenizer.encode_chat, messages))
    except ValueError as error:            # the template's own refusal, such as of two user turns in a row
        raise InvalidRequest(f"The model's chat template can't take these messages: {error}", "messages") from None
    _check_length(len(tokens), "messages", model)
    return Prompt(tuple(tokens), "messages")


async def completion_prompts(body: CompletionBody, tokenizer: Tokenizer, model: ModelInfo) -> list[Prompt]:
    """Each prompt of the body. Text never becomes a special token; token ids may name them."""
    items = _prompt_list(body.prompt)
    selection = selection_of(body)
    each = max(selection.made, selection.told)
    most = MAX_CHOICES // each
    if not 1 <= len(items) <= most:
        raise InvalidRequest(
            f"Invalid value for 'prompt': {len(items)} prompts with {each} answers each; give 1 to {most}.", "prompt")
    prompts = []
    for i, item in enumerate(items):
        param = "prompt" if len(items) == 1 else f"prompt[{i}]"
        if isinstance(item, str):
            _check_size(len(item), param, tokenizer, model)
            tokens = await _tokenised(len(item), partial(tokenizer.encode_prompt, item))
        else:
            tokens = item
        if not tokens:
            raise InvalidRequest(
                f"Invalid value for '{param}': it is empty, and an answer needs a token to begin from.", param)
        _check_length(len(tokens), param, model)
        prompts.append(Prompt(_token_ids(tokens, param, model), param))
    return prompts


def _check_size(n_characters: int, param: str, tokenizer: Tokenizer, model: ModelInfo) -> None:
    """A text that can't fit, whatever its tokens are, is refused before the seconds that finding them takes."""
    if n_characters > HUGE_PROMPT_CHARACTERS:
        longest = max(len(token) for token in tokenizer.token_bytes) * MOST_SHRINKAGE
        _check_length(n_characters // max(longest, 1), param, model, "at least ")


def _check_length(n_tokens: int, param: str, model: ModelInfo, precision: str = "") -> None:
    """The answer needs at least one token of the context."""
    if n_tokens >= model.context_tokens:
        raise InvalidRequest(
            f"This model's context is {model.context_tokens} tokens long. The {param} came to {precision}{n_tokens}, "
            f"and the answer needs at least one. Shorten the {param}.", param, "context_length_exceeded")


def _prompt_list(prompt: str | list[str] | list[int] | list[list[int]]) -> list[Any]:
    if isinstance(prompt, str):
        return [prompt]
    return [prompt] if prompt and isinstance(prompt[0], int) else list(prompt)


async def _tokenised(n_characters: int, encode: Callable[[], list[int]]) -> list[int]:
    return encode() if n_characters <= SMALL_PROMPT_CHARACTERS else await asyncio.to_thread(encode)


def sampling_of(body: GenerationBody, prompt: Prompt, model: ModelInfo) -> SamplingParams:
    """The body's sampling for one prompt; the answer gets at most what the prompt leaves of the context."""
    room = model.context_tokens - len(prompt.tokens)
    asked = _asked_tokens(body)
    max_tokens = min(asked or room, room)
    min_tokens = _or(body.min_tokens, 0)
    if asked is not None and min_tokens > asked:
        raise InvalidRequest(f"min_tokens ({min_tokens}) is more than max_tokens ({asked}).", "min_tokens")
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=_or(body.temperature, 1.0),
        top_p=max(_or(body.top_p, 1.0), LEAST_TOP_P),
        top_k=max(_or(body.top_k, 0), 0),
        min_p=_or(body.min_p, 0.0),
        typical_p=max(_or(body.typical_p, 1.0), LEAST_TOP_P),
        seed=body.seed,
        stop=(body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ()),
        stop_token_ids=_token_ids(body.stop_token_ids or (), "stop_token_ids", model),
        ignore_eos=bool(body.ignore_eos),
        min_tokens=min(min_tokens, max_tokens),
        presence_penalty=_or(body.presence_penalty, 0.0),
        frequency_penalty=_or(body.frequency_penalty, 0.0),
        repetition_penalty=_or(body.repetition_penalty, 1.0),
        logit_bias=_logit_bias(body.logit_bias or {}, model),
        logprobs=asked_logprobs(body),
        logprobs_of=body.logprobs_of or "model",
    )


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _asked_tokens(body: GenerationBody) -> int | None:
    return (body.max_completion_tokens if isinstance(body, ChatBody) else None) or body.max_tokens


def asked_logprobs(body: GenerationBody) -> int | None:
    """How many alternatives the caller wants beside each token's logprob; None: no logprobs at all."""
    if isinstance(body, ChatBody):
        return _or(body.top_logprobs, 0) if body.logprobs else None
    return body.logprobs if isinstance(body, CompletionBody) else None


def _token_ids(ids: Sequence[int], param: str, model: ModelInfo) -> tuple[int, ...]:
    if not all(0 <= token < model.vocabulary_size for token in ids):
        raise InvalidRequest(f"Invalid value for '{param}': token ids lie between 0 and {model.vocabulary_size - 1}.", param)
    return tuple(ids)


def _logit_bias(given: dict[str, float], model: ModelInfo) -> tuple[tuple[int, float], ...]:
    for key in given:
        if not (key.isascii() and key.isdigit() and len(key) < 10 and key == str(int(key))):     # "05" would be a second "5"
            raise InvalidRequest("Invalid key in 'logit_bias': keys are token ids.", "logit_bias")
    ids = _token_ids([int(key) for key in given], "logit_bias", model)
    return tuple(zip(ids, given.values(), strict=True))


def ttl_of(body: GenerationBody) -> float | None:
    """How long the caller wants the prompt's blocks kept, in seconds; None: the server's own time."""
    options = body.prompt_cache_options
    named = body.ttl or (options.ttl if options else None) or body.prompt_cache_retention
    return TTL_S.get(named) if named else None


def requests_of(
    body: GenerationBody, prompts: Sequence[Prompt], model: ModelInfo, *,
    selection: Selection, request_id: str, tenant: str, cache_domain: bytes, grammar: GrammarSpec | None,
) -> tuple[GenerationRequest, ...]:
    """One request a sequence: all those of the first prompt, then those of the next. Seeds rise from one to the next."""
    made: list[GenerationRequest] = []
    for prompt in prompts:
        sampling = selection.sampling(sampling_of(body, prompt, model))
        for _ in range(selection.made):
            own = sampling if sampling.seed is None else replace(sampling, seed=_seed(sampling.seed, len(made)))
            made.append(GenerationRequest(f"{request_id}-{len(made)}", prompt.tokens, own, cache_domain, grammar, ttl_of(body),
                                          tenant, body.priority or 0, selection.beams))
    return tuple(made)


def _seed(seed: int, index: int) -> int:
    """`seed + index`, kept within 64 bits with sign."""
    return (seed + index + 2**63) % 2**64 - 2**63
