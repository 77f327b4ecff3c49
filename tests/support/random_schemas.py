"""Random schemas of the supported keywords, and random values to try them with. Both prefer what meets in corners."""

from __future__ import annotations

from random import Random
from typing import Any

NAMES = ["a", "b", "ab", "abc", "é", 'x"y', "", "k"]
TEXTS = ["", "a", "ab", "aab", "é😀", "x\ty", "b1", "yyx", "2024-02-29", 'q"\\']
PATTERNS = ["^a+b*$", "b", "^[a-c]{2,}", "\\d$", "^(x|yy)*$", "é|😀", "^\\S+$", "[^a-z]"]
FORMATS = ["date", "time", "uuid", "ipv4", "ipv6", "date-time", "email"]


def random_value(r: Random, depth: int = 0) -> Any:
    kind = r.randrange(8 if depth < 2 else 6)
    if kind == 6:
        return [random_value(r, depth + 1) for _ in range(r.randint(0, 3))]
    if kind == 7:
        return {name: random_value(r, depth + 1) for name in r.sample(NAMES, r.randint(0, 3))}
    return [None, r.random() < 0.5, r.randint(-5, 20), round(r.uniform(-3, 20), 2) + 0.001, r.choice(TEXTS),
            r.randint(0, 3)][kind]


def random_document(r: Random) -> dict[str, Any]:
    """A whole schema, with two definitions to refer to."""
    schema = random_schema(r, 0)
    return {**(schema if isinstance(schema, dict) else {}), "$defs": {"p": random_schema(r, 1), "q": random_schema(r, 1)}}


def random_schema(r: Random, depth: int) -> Any:
    makers = [_simple, _number, _string, _listed, _untyped]
    if depth <= 3:
        makers += [_object, _object, _array, _combined, _combined, _referring]
    return r.choice(makers)(r, depth)


def _simple(r: Random, depth: int) -> Any:
    return r.choice([True, {}, {"type": "null"}, {"type": "boolean"}, {"type": ["string", "null"]}])


def _some(r: Random, share: float, **keywords: Any) -> dict[str, Any]:
    return {name: make() for name, make in keywords.items() if r.random() < share}


def _number(r: Random, depth: int) -> Any:
    def bound() -> Any:
        return r.choice([r.randint(-20, 100), round(r.uniform(-5, 50), 2)])
    bounds = _some(r, 0.3, minimum=bound, maximum=bound, exclusiveMinimum=bound, exclusiveMaximum=bound)
    return {"type": r.choice(["integer", "number"]), **bounds, **_some(r, 0.15, multipleOf=lambda: r.choice([2, 3, 5, 7.0]))}


def _string(r: Random, depth: int) -> Any:
    return {"type": "string", **_some(r, 0.4, minLength=lambda: r.randint(0, 4), maxLength=lambda: r.randint(0, 7),
                                      pattern=lambda: r.choice(PATTERNS)), **_some(r, 0.1, format=lambda: r.choice(FORMATS))}


def _listed(r: Random, depth: int) -> Any:
    return {"enum": [random_value(r) for _ in range(r.randint(1, 5))]} if r.random() < 0.5 else {"const": random_value(r)}


def _untyped(r: Random, depth: int) -> Any:
    return r.choice([{"minLength": r.randint(0, 3)}, {"maxItems": r.randint(0, 3)},
                     {"minimum": r.randint(-3, 3), "maximum": r.randint(3, 20)}])


def _object(r: Random, depth: int) -> Any:
    names = r.sample(NAMES, r.randint(0, 5))
    return {"type": "object", "properties": {name: random_schema(r, depth + 1) for name in names},
            **_some(r, 0.6, required=lambda: r.sample([*names, "z"], r.randint(0, len(names)))),
            **_some(r, 0.5, additionalProperties=lambda: r.choice([False, False, {"type": "integer"}, True]))}


def _array(r: Random, depth: int) -> Any:
    return {"type": "array", **_some(r, 0.8, items=lambda: random_schema(r, depth + 1)),
            **_some(r, 0.3, prefixItems=lambda: [random_schema(r, depth + 1) for _ in range(r.randint(1, 3))]),
            **_some(r, 0.4, minItems=lambda: r.randint(0, 3), maxItems=lambda: r.randint(0, 4))}


def _combined(r: Random, depth: int) -> Any:
    siblings = random_schema(r, depth + 1) if r.random() < 0.4 else {}
    keyword = r.choice(["anyOf", "anyOf", "allOf", "oneOf"])
    branches = [random_schema(r, depth + 1) for _ in range(r.randint(1, 3))]
    return {**(siblings if isinstance(siblings, dict) else {}), keyword: branches}


def _referring(r: Random, depth: int) -> Any:
    siblings = random_schema(r, depth + 1)
    target = r.choice(["#/$defs/p", "#/$defs/q", *(["#"] if depth else [])])
    return {**(siblings if isinstance(siblings, dict) else {}), "$ref": target}
