"""Structural tags as clients send them: {"type": "structural_tag", "format": ...}, and the older form, with structures and
triggers in place of the format.

Every key is checked: one that is not known could change what the answer may be, so it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grammar.errors import SchemaError
from grammar.tags.structural_tags import (
    AnyText,
    ConstText,
    EbnfText,
    Format,
    InOrder,
    JsonValue,
    MatchingText,
    OneOf,
    SeparatedTags,
    SpecialToken,
    Tag,
    Times,
    TriggeredTags,
)

_DEEPEST = 64


def read_structural_tags(value: Any) -> Format:
    """The format that a request asks for. Raises SchemaError with the pointer of what is wrong in `value`."""
    form = _Form(value, "", 0)
    if form.get("type", str, "structural_tag") != "structural_tag":
        raise form.error("the type must be structural_tag", "/type")
    if "format" in form.value:
        form.known("type", "format")
        return _format(form.inside("format"))
    form.known("type", "structures", "triggers")
    triggers = form.texts("triggers")
    structures = form.list("structures")
    if not structures:
        raise form.error("there must be a format, or structures", "")
    return TriggeredTags(triggers, tuple(_structure(structure) for structure in structures))


class _Form:
    """A JSON object on its way into a format, and where it stands."""

    def __init__(self, value: Any, pointer: str, depth: int) -> None:
        self.value, self.pointer, self.depth = value, pointer, depth
        if not isinstance(value, dict):
            raise self.error("it must be an object", "")
        if depth > _DEEPEST:
            raise self.error(f"formats nested more than {_DEEPEST} deep", "")

    def error(self, reason: str, below: str) -> SchemaError:
        return SchemaError(reason, pointer=self.pointer + below)

    def known(self, *names: str) -> None:
        for name, given in self.value.items():
            if name not in names and given is not None:
                raise self.error(f"{name!r} is not supported here", f"/{name}")

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """A member of the right type; `default`, unless that is None, where it is missing or null."""
        given = self.value.get(name)
        if given is None and default is not None:
            return default
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(given, kinds) or (isinstance(given, bool) and bool not in kinds):
            wanted = " or ".join({"str": "text", "dict": "object"}.get(k.__name__, k.__name__) for k in kinds)
            raise self.error(f"{name!r} must be given, and be of type {wanted}", f"/{name}")
        return given

    def inside(self, name: str) -> _Form:
        return _Form(self.get(name, dict), f"{self.pointer}/{name}", self.depth + 1)

    def list(self, name: str) -> list[_Form]:
        return [_Form(item, f"{self.pointer}/{name}/{n}", self.depth + 1) for n, item in enumerate(self.get(name, list, []))]

    def texts(self, name: str) -> tuple[str, ...]:
        given = self.get(name, list, [])
        if not all(isinstance(item, str) and item for item in given):
            raise self.error(f"{name!r} must be a list of texts, none of them empty", f"/{name}")
        return tuple(given)

    def flag(self, name: str) -> bool:
        return bool(self.get(name, bool, False))


def _structure(form: _Form) -> Tag:
    form.known("begin", "schema", "end")
    schema = form.get("schema", (dict, bool))
    return Tag(form.get("begin", str), JsonValue(schema, pointer=f"{form.pointer}/schema"), (form.get("end", str),))


def _format(form: _Form) -> Format:
    name = form.get("type", str)
    if name not in _READERS:
        raise form.error(f"there is no format {name[:40]!r}: there are {', '.join(_READERS)}", "/type")
    return _READERS[name](form)


def _const_string(form: _Form) -> Format:
    form.known("type", "value")
    return ConstText(form.get("value", str))


def _json_schema(form: _Form) -> Format:
    form.known("type", "json_schema", "style", "any_order")
    if form.get("style", str, "json") != "json":
        raise form.error("the only style is json", "/style")
    return JsonValue(form.get("json_schema", (dict, bool)), form.flag("any_order"), f"{form.pointer}/json_schema")


def _grammar(form: _Form) -> Format:
    form.known("type", "grammar")
    return EbnfText(form.get("grammar", str), f"{form.pointer}/grammar")


def _regex(form: _Form) -> Format:
    form.known("type", "pattern")
    return MatchingText(form.get("pattern", str), f"{form.pointer}/pattern")


def _any_text(form: _Form) -> Format:
    form.known("type", "excludes")
    return AnyText(form.texts("excludes"))


def _any_tokens(form: _Form) -> Format:
    """Free text holds no special token anyway, so there is nothing to exclude."""
    form.known("type", "exclude_tokens")
    return AnyText()


def _token(form: _Form) -> Format:
    form.known("type", "token")
    return SpecialToken(form.get("token", (int, str)))


def _sequence(form: _Form) -> Format:
    form.known("type", "elements")
    return InOrder(tuple(_format(element) for element in form.list("elements")))


def _or(form: _Form) -> Format:
    form.known("type", "elements")
    elements = form.list("elements")
    if not elements:
        raise form.error("one of no elements is nothing", "/elements")
    return OneOf(tuple(_format(element) for element in elements))


def _times(least: int, most: int | None) -> Callable[[_Form], Format]:
    def read(form: _Form) -> Format:
        form.known("type", "content")
        return Times(_format(form.inside("content")), least, most)

    return read


def _repeat(form: _Form) -> Format:
    form.known("type", "min", "max", "content")
    least, most = form.get("min", int), form.get("max", int)
    if least < 0 or (most != -1 and most < least):
        raise form.error("min must be at least 0, and max at least min, or -1 for no bound", "")
    return Times(_format(form.inside("content")), least, None if most == -1 else most)


def _tag(form: _Form) -> Tag:
    form.known("type", "begin", "content", "end")
    if form.get("type", str, "tag") != "tag":
        raise form.error("only tags can stand here", "/type")
    ends = form.get("end", (str, list, dict))
    if isinstance(ends, list) and not (ends and all(isinstance(end, str) for end in ends)):
        raise form.error("'end' must be a text or a list of texts", "/end")
    marks = tuple(ends) if isinstance(ends, list) else (_mark(form, "end"),)
    return Tag(_mark(form, "begin"), _format(form.inside("content")), marks)


def _mark(form: _Form, name: str) -> str:
    """What begins or ends a tag: a text, or a special token by its text, which may then be spelled out too."""
    if isinstance(form.get(name, (str, dict)), str):
        return str(form.value[name])
    token = form.inside(name)
    token.known("type", "token")
    if token.get("type", str) != "token":
        raise token.error("it must be a text or a token", "/type")
    return str(token.get("token", str))


def _triggered_tags(form: _Form) -> Format:
    form.known("type", "triggers", "tags", "at_least_one", "stop_after_first", "excludes")
    return TriggeredTags(form.texts("triggers"), tuple(_tag(tag) for tag in form.list("tags")), form.flag("at_least_one"),
                         form.flag("stop_after_first"), form.texts("excludes"))


def _token_triggered_tags(form: _Form) -> Format:
    form.known("type", "trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first")
    return TriggeredTags(form.texts("trigger_tokens"), tuple(_tag(tag) for tag in form.list("tags")), form.flag("at_least_one"),
                         form.flag("stop_after_first"))


def _separated(form: _Form) -> Format:
    form.known("type", "tags", "separator", "at_least_one", "stop_after_first")
    return SeparatedTags(tuple(_tag(tag) for tag in form.list("tags")), form.get("separator", str), form.flag("at_least_one"),
                         form.flag("stop_after_first"))


_READERS: dict[str, Callable[[_Form], Format]] = {
    "const_string": _const_string, "json_schema": _json_schema, "grammar": _grammar, "regex": _regex, "any_text": _any_text,
    "any_tokens": _any_tokens, "token": _token, "sequence": _sequence, "or": _or, "optional": _times(0, 1),
    "plus": _times(1, None), "star": _times(0, None), "repeat": _repeat, "tag": _tag, "triggered_tags": _triggered_tags,
    "token_triggered_tags": _token_triggered_tags, "tags_with_separator": _separated}
