"""The bodies of requests, field by field, as clients send them.

Types are strict: a number in quotes is no number. Null means: as if it were not there. Fields that are not listed are
let through and named in the answer's header `x-turnstile-ignored`; those in REFUSED would change the answer if they
were ignored, and are refused.

Reading happens on the event loop, so a body's size must not decide how long it takes to refuse one: lists end at their
first wrong item, and objects are counted before they are read. A million wrong items would be a million complaints.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from gateway.errors import InvalidRequest, Unsupported

Text = Annotated[str, Field(min_length=1)]
StopText = Annotated[str, Field(min_length=1, max_length=1024)]
Choices = Annotated[list[Text], Field(fail_fast=True, min_length=1, max_length=10_000)]
Triggers = Annotated[list[Text], Field(fail_fast=True, min_length=1, max_length=1024)]
Parts = Annotated[list[dict[str, Any]], Field(fail_fast=True)]
Tokens = Annotated[list[int], Field(fail_fast=True)]
Seed = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
MAX_MESSAGES = 4096
MAX_PROMPTS = 1024                     # of one body's list; what is served is less, see intake.MAX_CHOICES
MAX_BIASES = 1024
MAX_KEYS_OF_CLOSED = 64                # far more than any closed part has
LEAST_REPETITION_PENALTY = 0.01        # logits divided by much less are no numbers any more


def _few_biases(given: Any) -> Any:
    if isinstance(given, dict) and len(given) > MAX_BIASES:
        raise PydanticCustomError("too_long", "At most {most} tokens can be biased", {"most": MAX_BIASES})
    return given


Biases = Annotated[
    dict[str, Annotated[float, Field(ge=-100, le=100)]], Field(max_length=MAX_BIASES), BeforeValidator(_few_biases)]


class Wire(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class ClosedWire(BaseModel):
    """A part that says what the answer must be: nothing in it may be ignored."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > MAX_KEYS_OF_CLOSED:
            raise PydanticCustomError("too_long", "It has far more keys than are known here")
        return given


class JsonSchemaFormat(ClosedWire):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    schema_: Annotated[
        dict[str, Any] | bool, Field(alias="schema", description="The answer validates against it; keys keep its order.")]
    strict: Annotated[bool | None, Field(description="Every schema is kept strictly; both values mean the same here.")] = None
    description: str | None = None


class ResponseFormat(ClosedWire):
    """A structural_tag has a format, or structures and triggers."""

    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: JsonSchemaFormat | None = None
    format: Annotated[dict[str, Any] | None, Field(description="Of a structural_tag: what the answer is made of.")] = None
    structures: Annotated[Parts | None, Field(description="Of a structural_tag: {begin, schema, end} each.")] = None
    triggers: Annotated[Triggers | None, Field(description="Of a structural_tag: the texts that begin its structures.")] = None


class StructuredOutputs(ClosedWire):
    """Exactly one of json, regex, choice, json_object, grammar and structural_tag; and how JSON in it is written."""

    json_: Annotated[dict[str, Any] | bool | str | None, Field(alias="json", description="A JSON schema, or its text.")] = None
    regex: Annotated[Text | None, Field(description="The whole answer matches it.")] = None
    choice: Annotated[Choices | None, Field(description="The answer is one of these.")] = None
    json_object: Annotated[bool | None, Field(description="The answer is any JSON object.")] = None
    grammar: Annotated[Text | None, Field(description="The answer is derived from a grammar, in Lark's form or GBNF.")] = None
    structural_tag: Annotated[
        dict[str, Any] | str | None, Field(description="As response_format of type structural_tag, or its text.")] = None
    style: Annotated[
        Literal["compact", "free", "pretty"] | None, Field(description="How freely a JSON answer may be written.")] = None
    property_order: Annotated[
        Literal["schema", "any"] | None, Field(description="Whether properties keep the schema's order; they do by default.")
    ] = None
    unsupported: Annotated[
        Literal["refuse", "ignore"] | None,
        Field(description="What to do about keywords that can't be kept exactly. Ignored ones are listed in the answer.")] = None


class StreamOptions(Wire):
    include_usage: bool | None = None
    include_obfuscation: Annotated[Any, Field(description="Ignored.")] = None


class CacheOptions(ClosedWire):
    mode: Literal["implicit"] | None = None
    ttl: Literal["5m", "30m", "1h", "24h"] | None = None


class GenerationBody(Wire):
    """What both generation endpoints take."""

    model: Annotated[Text, Field(description="As listed by GET /v1/models.")]
    stream: Annotated[bool | None, Field(description="Answer in server-sent events.")] = None
    stream_options: StreamOptions | None = None
    n: Annotated[int | None, Field(ge=1, le=16, description="Answers to make of each prompt.")] = None
    best_of: Annotated[
        int | None, Field(ge=1, le=16, description="Answers to make of each prompt, of which the n likeliest are told.")] = None
    use_beam_search: Annotated[bool | None, Field(description="Look for the likeliest answers instead of drawing them.")] = None
    beam_width: Annotated[
        int | None, Field(ge=1, le=16, description="Answers a beam search keeps open. Default: best_of, or n.")] = None
    length_penalty: Annotated[
        float | None, Field(ge=-10, le=10, description="Beams compare by logprob / length ** length_penalty. Default 1.")] = None
    early_stopping: Annotated[
        bool | Literal["never"] | None, Field(description="When a beam search is over; see docs/api.md. Default false.")] = None
    max_tokens: Annotated[
        int | None, Field(ge=1, description="Most tokens of an answer; default: what the context has left.")] = None
    temperature: Annotated[float | None, Field(ge=0, le=2, description="0: always the likeliest token. Default 1.")] = None
    top_p: Annotated[float | None, Field(ge=0, le=1)] = None
    top_k: Annotated[int | None, Field(ge=-1, description="0 and -1: all tokens.")] = None
    min_p: Annotated[float | None, Field(ge=0, le=1)] = None
    typical_p: Annotated[float | None, Field(ge=0, le=1)] = None
    logprobs_of: Annotated[
        Literal["model", "allowed"] | None,
        Field(description="Logprobs of the model, or after bias, penalties and the constraint.")] = None
    seed: Annotated[Seed | None, Field(description="Same request and seed, same answer.")] = None
    stop: Annotated[
        StopText | Annotated[list[StopText], Field(max_length=4)] | None,
        Field(description="The answer ends before any of these.")] = None
    stop_token_ids: Annotated[list[int] | None, Field(max_length=64)] = None
    ignore_eos: bool | None = None
    min_tokens: Annotated[int | None, Field(ge=0)] = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float | None, Field(ge=LEAST_REPETITION_PENALTY, le=10)] = None
    logit_bias: Annotated[Biases | None, Field(description="Token id to what is added to its logit.")] = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Annotated[dict[str, Any] | bool | str | None, Field(description="As structured_outputs.json.")] = None
    guided_regex: Annotated[Text | None, Field(description="As structured_outputs.regex.")] = None
    guided_choice: Annotated[Choices | None, Field(description="As structured_outputs.choice.")] = None
    guided_grammar: Annotated[Text | None, Field(description="As structured_outputs.grammar.")] = None
    priority: Annotated[
        int | None, Field(ge=-1000, le=1000, description="Among this key's requests: lower goes first. Default 0.")] = None
    cache_salt: Annotated[
        str | None,
        Field(min_length=1, max_length=256, description="Share cached prefixes only with requests of this salt.")] = None
    prompt_cache_key: Annotated[Any, Field(description="A routing hint; one server has nowhere to route.")] = None
    prompt_cache_retention: Annotated[
        Literal["in_memory", "in-memory", "24h"] | None, Field(description="How long the prompt's blocks are kept.")] = None
    prompt_cache_options: CacheOptions | None = None
    ttl: Annotated[Literal["5m", "30m", "1h", "24h"] | None, Field(description="How long the prompt's blocks are kept.")] = None
    user: Annotated[Any, Field(description="Ignored.")] = None
    metadata: Annotated[Any, Field(description="Ignored.")] = None
    store: Annotated[Any, Field(description="Ignored.")] = None
    service_tier: Annotated[Any, Field(description="Ignored.")] = None
    safety_identifier: Annotated[Any, Field(description="Ignored.")] = None

    @property
    def ignored(self) -> list[str]:
        """Names of fields that this server does not know."""
        inner = self.stream_options.model_extra if self.stream_options else None
        return [*(self.model_extra or ()), *(f"stream_options.{name}" for name in inner or ())]


class Message(Wire):
    role: Literal["developer", "system", "user", "assistant", "tool", "function"]
    content: Annotated[str | Parts | None, Field(description="Text, or parts of type text.")] = None
    name: str | None = None
    tool_calls: Parts | None = None
    tool_call_id: str | None = None


class ChatBody(GenerationBody):
    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=MAX_MESSAGES)]
    max_completion_tokens: Annotated[int | None, Field(ge=1, description="As max_tokens, and goes before it.")] = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=20, description="Needs logprobs.")] = None
    tools: Annotated[list[Any] | None, Field(description="Refused, unless tool_choice is 'none'.")] = None
    tool_choice: Any = None
    parallel_tool_calls: Annotated[Any, Field(description="Ignored.")] = None
    modalities: Annotated[list[str] | None, Field(max_length=16, description="Only ['text'].")] = None


class CompletionBody(GenerationBody):
    prompt: Annotated[
        str
        | Annotated[list[str], Field(fail_fast=True, max_length=MAX_PROMPTS)]
        | Tokens
        | Annotated[list[Tokens], Field(fail_fast=True, max_length=MAX_PROMPTS)],
        Field(description="A text, token ids, or a list of either: each is answered.")]
    logprobs: Annotated[int | None, Field(ge=0, le=5)] = None


_USE_STRUCTURED_OUTPUTS = "Use structured_outputs with one of json, regex, choice, json_object, grammar, structural_tag."
REFUSED: dict[str, str] = {
    "audio": "This server writes text only.",
    "web_search_options": "This server does not search the web.",
    "functions": "Tool calling is not supported.",
    "function_call": "Tool calling is not supported.",
    "ebnf": _USE_STRUCTURED_OUTPUTS,
    "regex": _USE_STRUCTURED_OUTPUTS,
    "json_schema": "Use response_format with type json_schema.",
    "structural_tag": "Use response_format with type structural_tag, or structured_outputs.structural_tag.",
    "guided_whitespace_pattern": "Use structured_outputs.style with 'compact', 'free' or 'pretty'.",
    "allowed_token_ids": "Use structured_outputs or logit_bias.",
    "bad_words": "Use structured_outputs or logit_bias.",
    "include_stop_str_in_output": "Answers end before their stop string.",
    "chat_template": "The model's own template is used.",
    "continue_final_message": "An answer is always a new message.",
    "truncate_prompt_tokens": "A prompt is never cut: shorten it before sending.",
    "echo": "The prompt is not repeated.",
    "suffix": "Text can't be filled in before a given end.",
}


def refuse_unsupported(body: GenerationBody) -> None:
    """Raise Unsupported where `body` asks for what this server can't do and must not ignore."""
    for name, why in REFUSED.items():
        value = (body.model_extra or {}).get(name)
        if value is not None and value is not False:
            raise Unsupported(name, why)
    if body.stream_options is not None and not body.stream:
        raise InvalidRequest("stream_options are only for requests with stream: true.", "stream_options")
    if isinstance(body, ChatBody):
        _refuse_chat_only(body)


def _refuse_chat_only(body: ChatBody) -> None:
    if body.modalities and set(body.modalities) != {"text"}:
        raise Unsupported("modalities", "This server writes text only.")
    if body.tools and body.tool_choice != "none":
        raise Unsupported("tools", "Tool calling is not supported. Leave tools out, or send tool_choice 'none'.")
    if not body.tools and body.tool_choice not in (None, "none", "auto"):
        raise InvalidRequest("tool_choice asks for a tool, but there are no tools.", "tool_choice")
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidRequest("top_logprobs needs logprobs: true.", "top_logprobs")
