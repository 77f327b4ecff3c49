"""What the answer must look like: found in the body, checked before anything is queued.

What can't be kept is a 400 that names the keyword or the line, and its place; no answer is ever made without it, unless the
caller asks for what can be kept. Checks run apart from the event loop and are remembered, the failures too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

from gateway.api.body import parse_json
from gateway.api.wire import GenerationBody, JsonSchemaFormat, ResponseFormat, StructuredOutputs
from gateway.errors import InvalidRequest
from grammar import Limits, SchemaError, Vocabulary, check_json_schema, compile_choice, compile_regex
from grammar.algebra.enforcement import NotEnforced
from grammar.ebnf.compile import check_ebnf
from grammar.tags.forms import read_structural_tags
from grammar.tags.structural_tags import check_structural_tags
from runtime.compile_lanes import CompileLanes
from runtime.protocol import GrammarKind, GrammarSpec, Style

CODE = "invalid_json_schema"
REMEMBERED_CHECKS = 512
MAX_SOURCE_CHARACTERS = 1_048_576


@dataclass(frozen=True, slots=True)
class Constraint:
    """A grammar, and how the caller knows it."""

    spec: GrammarSpec
    param: str                         # its place in the body
    label: str                         # begins the message of a refusal: "Invalid schema for response_format 'bike'"

    def refusal(self, why: str) -> InvalidRequest:
        return InvalidRequest(f"{self.label}: {why}", self.param, CODE)


def constraint_of(body: GenerationBody, style: Style) -> Constraint | None:
    """The body's one constraint; `style` holds where the body names none. Raises InvalidRequest where there are two."""
    found = [*_in_response_format(body), *_in_structured_outputs(body), *_in_guided(body)]
    if len(found) > 1:
        names = " and ".join(dict.fromkeys(one.param for one in found))
        raise InvalidRequest(
            f"The answer can be held to one constraint only; this request has {len(found)}: {names}.", found[1].param)
    if not found:
        return None
    [one] = found
    size = len(one.source)
    if size > MAX_SOURCE_CHARACTERS:
        too_long = f"it has {size} characters, {size - MAX_SOURCE_CHARACTERS} more than this server takes."
        raise InvalidRequest(f"{one.label}: {too_long}", one.param, CODE)
    asked = body.structured_outputs or StructuredOutputs()
    spec = GrammarSpec(one.kind, one.source, asked.style or style, asked.property_order or "schema",
                       asked.unsupported or "refuse")
    return Constraint(spec, one.param, one.label)


@dataclass(frozen=True, slots=True)
class _Found:
    param: str
    kind: GrammarKind
    source: str
    label: str


def _in_response_format(body: GenerationBody) -> Iterable[_Found]:
    wanted = body.response_format
    if wanted is None:
        return
    _refuse_parts_of_other_types(wanted)
    if wanted.type == "json_schema":
        if wanted.json_schema is None:
            raise InvalidRequest("Missing required parameter: 'response_format.json_schema'.", "response_format.json_schema",
                                 "missing_required_parameter")
        named: JsonSchemaFormat = wanted.json_schema
        yield _Found("response_format", "json_schema", _text(named.schema_), f"Invalid schema for response_format '{named.name}'")
    elif wanted.type == "json_object":
        yield _Found("response_format", "json_object", "", "Invalid response_format")
    elif wanted.type == "structural_tag":
        parts = {name: value for name in ("format", "structures", "triggers") if (value := getattr(wanted, name)) is not None}
        source = _text({"type": "structural_tag", **parts})
        yield _Found("response_format", "structural_tag", source, "Invalid structural_tag for response_format")


_PARTS = {"json_schema": "json_schema", "format": "structural_tag", "structures": "structural_tag", "triggers": "structural_tag"}


def _refuse_parts_of_other_types(wanted: ResponseFormat) -> None:
    for name, of_type in _PARTS.items():
        if wanted.type != of_type and getattr(wanted, name) is not None:
            raise InvalidRequest(f"response_format of type {wanted.type} takes no {name}.", f"response_format.{name}")


def _in_structured_outputs(body: GenerationBody) -> Iterable[_Found]:
    wanted = body.structured_outputs
    if wanted is None:
        return
    param = "structured_outputs"
    found = [*_schema(param, wanted.json_), *_regex(param, wanted.regex), *_choice(param, wanted.choice),
             *_grammar(param, wanted.grammar), *_structural_tag(param, wanted.structural_tag)]
    if wanted.json_object:
        found.append(_Found(param, "json_object", "", f"Invalid {param}"))
    if not found and (wanted.style, wanted.property_order, wanted.unsupported) == (None, None, None):
        raise InvalidRequest("structured_outputs needs one of json, regex, choice, json_object, grammar, structural_tag.", param)
    yield from found


def _in_guided(body: GenerationBody) -> Iterable[_Found]:
    yield from _schema("guided_json", body.guided_json)
    yield from _regex("guided_regex", body.guided_regex)
    yield from _choice("guided_choice", body.guided_choice)
    yield from _grammar("guided_grammar", body.guided_grammar)


def _schema(param: str, schema: dict[str, Any] | bool | str | None) -> Iterable[_Found]:
    if schema is not None:
        parsed = _parsed(schema, param, "JSON schema", (dict, bool))
        yield _Found(param, "json_schema", _text(parsed), f"Invalid schema for {param}")


def _regex(param: str, regex: str | None) -> Iterable[_Found]:
    if regex is not None:
        yield _Found(param, "regex", regex, f"Invalid regex for {param}")


def _choice(param: str, choice: list[str] | None) -> Iterable[_Found]:
    if choice is not None:
        yield _Found(param, "choice", _text(list(dict.fromkeys(choice))), f"Invalid choice for {param}")


def _grammar(param: str, grammar: str | None) -> Iterable[_Found]:
    if grammar is not None:
        yield _Found(param, "ebnf", grammar, f"Invalid grammar for {param}")


def _structural_tag(param: str, tag: dict[str, Any] | str | None) -> Iterable[_Found]:
    if tag is not None:
        parsed = _parsed(tag, param, "structural tag", (dict,))
        yield _Found(param, "structural_tag", _text(parsed), f"Invalid structural_tag for {param}")


def _parsed(given: Any, param: str, what: str, types: tuple[type, ...]) -> Any:
    """A JSON value that may have been sent as its text."""
    if not isinstance(given, str):
        return given
    try:
        parsed = parse_json(given.encode())
    except InvalidRequest as error:
        raise InvalidRequest(f"{param} is a text that is no {what}. {error.message}", param, CODE) from None
    if not isinstance(parsed, types):
        raise InvalidRequest(f"{param} is a text that is no {what}: it must hold an object.", param, CODE)
    return parsed


def _text(value: Any) -> str:
    """JSON in one form, keys in the order they came in: the answer's keys follow it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# One token a byte: enough to learn whether an automaton can be built, and of what size.
_BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos_ids=[256])


def check_spec(spec: GrammarSpec, limits: Limits | None = None) -> tuple[NotEnforced, ...]:
    """Raise grammar.SchemaError where `spec` can't be kept, whatever the vocabulary; returns what is left out of it."""
    match spec.kind:
        case "json_schema":
            return check_json_schema(json.loads(spec.source), property_order=spec.property_order, unsupported=spec.unsupported,
                                     limits=limits)
        case "structural_tag":
            tags = read_structural_tags(json.loads(spec.source))
            return check_structural_tags(tags, unsupported=spec.unsupported, limits=limits)
        case "regex":
            compile_regex(spec.source, _BYTES, limits=limits)
        case "choice":
            compile_choice(json.loads(spec.source), _BYTES, limits=limits)
        case "ebnf":
            check_ebnf(spec.source, limits=limits)
    return ()


@dataclass(frozen=True, slots=True)
class _Verdict:
    """`why` it can't be kept, None where it can; and what is left out of it then."""

    why: str | None
    not_enforced: tuple[NotEnforced, ...] = ()


class ConstraintChecker:
    """Checks each constraint once. Owned by the application, which must close it."""

    def __init__(self, check: Callable[[GrammarSpec, Limits], tuple[NotEnforced, ...]] = check_spec,
                 remembered: int = REMEMBERED_CHECKS) -> None:
        self._check = check
        self._remembered = remembered
        self._verdicts: OrderedDict[bytes, asyncio.Task[_Verdict]] = OrderedDict()
        self._lanes = CompileLanes("schema-check")

    async def check(self, constraint: Constraint, owner: str = "") -> tuple[NotEnforced, ...]:
        """What is left out of `constraint`; owners take turns. Raises InvalidRequest (400) where it can't be kept."""
        key = hashlib.sha256("\0".join(map(str, astuple(constraint.spec))).encode()).digest()
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = asyncio.create_task(self._verdict(constraint.spec, owner))
            while len(self._verdicts) > self._remembered:
                self._verdicts.popitem(last=False)
        if key in self._verdicts:
            self._verdicts.move_to_end(key)
        verdict = await asyncio.shield(found)      # others may wait for it too
        if verdict.why is not None:
            raise constraint.refusal(verdict.why)
        return verdict.not_enforced

    async def _verdict(self, spec: GrammarSpec, owner: str) -> _Verdict:
        try:
            return _Verdict(None, await asyncio.wrap_future(self._lanes.submit(owner, partial(self._check, spec))))
        except SchemaError as error:
            return _Verdict(str(error))          # names the keyword, or the line, and its place
        except RecursionError:
            return _Verdict("it is nested too deeply.")

    def close(self) -> None:
        """What is being checked is given up."""
        self._lanes.close()
        for task in self._verdicts.values():
            task.cancel()
