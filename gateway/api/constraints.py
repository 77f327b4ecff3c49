"""What the answer must look like: found in the body, checked before anything is queued.

A schema that can't be kept is a 400 that names the keyword and its place; no answer is ever made without it.
Checks run apart from the event loop and are remembered, the failures too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from gateway.api.body import parse_json
from gateway.api.wire import GenerationBody, JsonSchemaFormat, StructuredOutputs
from gateway.errors import InvalidRequest
from grammar import SchemaError, Vocabulary, check_json_schema, compile_choice, compile_regex
from runtime.protocol import GrammarKind, GrammarSpec

CODE = "invalid_json_schema"
REMEMBERED_CHECKS = 512
MAX_SOURCE_CHARACTERS = 1_048_576
CHECKING_THREADS = 2


@dataclass(frozen=True, slots=True)
class Constraint:
    """A grammar, and how the caller knows it."""

    spec: GrammarSpec
    param: str                         # its place in the body
    label: str                         # begins the message of a refusal: "Invalid schema for response_format 'bike'"

    def refusal(self, why: str) -> InvalidRequest:
        return InvalidRequest(f"{self.label}: {why}", self.param, CODE)


def constraint_of(body: GenerationBody, style: str) -> Constraint | None:
    """The body's one constraint; `style` holds where the body names none. Raises InvalidRequest where there are two."""
    found = [*_in_response_format(body), *_in_structured_outputs(body), *_in_guided(body)]
    if len(found) > 1:
        names = " and ".join(dict.fromkeys(param for param, *_ in found))
        raise InvalidRequest(
            f"The answer can be held to one constraint only; this request has {len(found)}: {names}.", found[1][0])
    if not found:
        return None
    param, kind, source, label = found[0]
    if len(source) > MAX_SOURCE_CHARACTERS:
        raise InvalidRequest(
            f"{label}: it has {len(source)} characters, {len(source) - MAX_SOURCE_CHARACTERS} more than this server takes.",
            param, CODE)
    chosen = body.structured_outputs.style if body.structured_outputs else None
    spec = GrammarSpec(kind, source, "free" if (chosen or style) == "free" else "compact")
    return Constraint(spec, param, label)


_Found = tuple[str, GrammarKind, str, str]     # param, kind, source, label


def _in_response_format(body: GenerationBody) -> list[_Found]:
    wanted = body.response_format
    if wanted is None:
        return []
    if wanted.type == "json_schema":
        if wanted.json_schema is None:
            raise InvalidRequest("Missing required parameter: 'response_format.json_schema'.", "response_format.json_schema",
                                 "missing_required_parameter")
        named: JsonSchemaFormat = wanted.json_schema
        return [("response_format", "json_schema", _text(named.schema_), f"Invalid schema for response_format '{named.name}'")]
    if wanted.json_schema is not None:
        raise InvalidRequest(f"response_format of type {wanted.type} takes no json_schema.", "response_format.json_schema")
    return [("response_format", "json_object", "", "Invalid response_format")] if wanted.type == "json_object" else []


def _in_structured_outputs(body: GenerationBody) -> list[_Found]:
    wanted: StructuredOutputs | None = body.structured_outputs
    if wanted is None:
        return []
    found = _three("structured_outputs", wanted.json_, wanted.regex, wanted.choice)
    if wanted.json_object:
        found.append(("structured_outputs", "json_object", "", "Invalid structured_outputs"))
    if not found and wanted.style is None:
        raise InvalidRequest("structured_outputs needs one of json, regex, choice, json_object.", "structured_outputs")
    return found


def _in_guided(body: GenerationBody) -> list[_Found]:
    return [
        *_three("guided_json", body.guided_json, None, None),
        *_three("guided_regex", None, body.guided_regex, None),
        *_three("guided_choice", None, None, body.guided_choice),
    ]


def _three(param: str, schema: Any, regex: str | None, choice: list[str] | None) -> list[_Found]:
    found: list[_Found] = []
    if schema is not None:
        found.append((param, "json_schema", _schema_text(schema, param), f"Invalid schema for {param}"))
    if regex is not None:
        found.append((param, "regex", regex, f"Invalid regex for {param}"))
    if choice is not None:
        found.append((param, "choice", _text(list(dict.fromkeys(choice))), f"Invalid choice for {param}"))
    return found


def _schema_text(schema: dict[str, Any] | bool | str, param: str) -> str:
    if not isinstance(schema, str):
        return _text(schema)
    try:
        parsed = parse_json(schema.encode())
    except InvalidRequest as error:
        raise InvalidRequest(f"{param} is a text that is no JSON schema. {error.message}", param, CODE) from None
    if not isinstance(parsed, dict | bool):
        raise InvalidRequest(f"{param} is a text that is no JSON schema: it must hold an object.", param, CODE)
    return _text(parsed)


def _text(value: Any) -> str:
    """JSON in one form, keys in the order they came in: the answer's keys follow it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# One token a byte: enough to learn whether an automaton can be built, and of what size.
_BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos_ids=[256])


def check_spec(spec: GrammarSpec) -> None:
    """Raise grammar.SchemaError where `spec` can't be kept, whatever the vocabulary."""
    if spec.kind == "json_schema":
        check_json_schema(json.loads(spec.source))
    elif spec.kind == "regex":
        compile_regex(spec.source, _BYTES)
    elif spec.kind == "choice":
        compile_choice(json.loads(spec.source), _BYTES)


class ConstraintChecker:
    """Checks each constraint once. Owned by the application, which must close it."""

    def __init__(self, check: Callable[[GrammarSpec], None] = check_spec, remembered: int = REMEMBERED_CHECKS) -> None:
        self._check = check
        self._remembered = remembered
        self._verdicts: OrderedDict[bytes, str | None] = OrderedDict()     # None: it can be kept
        self._threads = ThreadPoolExecutor(CHECKING_THREADS, thread_name_prefix="schema-check")

    async def check(self, constraint: Constraint) -> None:
        """Raise InvalidRequest (400) where `constraint` can't be kept."""
        key = hashlib.sha256(f"{constraint.spec.kind}\0{constraint.spec.source}".encode()).digest()
        if key not in self._verdicts:
            verdict = await asyncio.get_running_loop().run_in_executor(self._threads, self._verdict, constraint.spec)
            self._verdicts[key] = verdict
            while len(self._verdicts) > self._remembered:
                self._verdicts.popitem(last=False)
        self._verdicts.move_to_end(key)
        if (why := self._verdicts[key]) is not None:
            raise constraint.refusal(why)

    def _verdict(self, spec: GrammarSpec) -> str | None:
        try:
            self._check(spec)
        except SchemaError as error:
            return str(error)          # names the keyword and its place
        except RecursionError:
            return "it is nested too deeply."
        return None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
