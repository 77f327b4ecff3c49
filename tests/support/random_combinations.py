"""Random schemas over few names and few values, so that keywords meet one another often; and values that are near them."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

NAMES = ["a", "b", "c", "ab", "x1"]
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, 2.5, -1, "", "a", "ab", "b1", "abc"]
PATTERNS = ["^a", "b", "^[a-b]$", "1$", "^x"]


def random_value(r: Random, depth: int = 0) -> Any:
    kind = r.randrange(6 if depth < 2 else 4)
    if kind == 4:
        return [random_value(r, depth + 1) for _ in range(r.randint(0, 3))]
    if kind == 5:
        return {name: random_value(r, depth + 1) for name in r.sample(NAMES, r.randint(0, 3))}
    return r.choice(SCALARS)


def random_values(r: Random, schema: Any, n: int) -> Iterable[Any]:
    """`n` values, about half of them made from what the schema lists and names."""
    listed = [value for value in _listed(schema)] or [None]
    for _ in range(n):
        yield r.choice(listed) if r.random() < 0.15 else _near(r, schema, 0) if r.random() < 0.6 else random_value(r)


def _listed(schema: Any) -> Iterable[Any]:
    if isinstance(schema, dict):
        for keyword, value in schema.items():
            if keyword == "const":
                yield value
            elif keyword == "enum":
                yield from value
            else:
                yield from _listed(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _listed(item)


def _near(r: Random, schema: Any, depth: int) -> Any:
    """A value that has a good chance to satisfy a schema, looked at through one random branch of each combinator."""
    if not isinstance(schema, dict) or depth > 4 or r.random() < 0.1:
        return random_value(r, 1)
    if "const" in schema and r.random() < 0.8:
        return schema["const"]
    if schema.get("enum") and r.random() < 0.8:
        return r.choice(schema["enum"])
    merged = dict(schema)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            merged = {**r.choice([b if isinstance(b, dict) else {} for b in schema[keyword]]), **merged}
    for keyword in ("then", "else", "if"):
        if isinstance(schema.get(keyword), dict) and r.random() < 0.5:
            merged = {**schema[keyword], **merged}
    kind = merged.get("type")
    if kind is None:
        kind = "object" if _OF_OBJECTS & merged.keys() else "array" if _OF_ARRAYS & merged.keys() else None
    if kind == "object":
        return _near_object(r, merged, depth)
    if kind == "array":
        items = [*merged.get("prefixItems", ())]
        items += [merged.get("items", merged.get("contains", merged.get("unevaluatedItems", True)))] * 3
        return [_near(r, item, depth + 1) for item in items[:r.randint(0, 4)]]
    return random_value(r, 1)


_OF_OBJECTS = {"properties", "required", "patternProperties", "propertyNames", "minProperties", "maxProperties",
               "dependentRequired", "dependentSchemas", "additionalProperties", "unevaluatedProperties"}
_OF_ARRAYS = {"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"}


def _near_object(r: Random, schema: dict[str, Any], depth: int) -> Any:
    names = [name for name in [*schema.get("properties", {}), *schema.get("required", ())] if r.random() < 0.7]
    names += r.sample(NAMES, r.randint(0, 2))
    more = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
    return {name: _near(r, schema.get("properties", {}).get(name, more), depth + 1) for name in dict.fromkeys(names)}


def random_document(r: Random) -> dict[str, Any]:
    """A whole schema, with two definitions to refer to, which may refer to each other and to the whole."""
    schema = random_schema(r, 0)
    return {**(schema if isinstance(schema, dict) else {}), "$defs": {"p": random_schema(r, 2), "q": random_schema(r, 1)}}


def random_schema(r: Random, depth: int) -> Any:
    if depth > 3:
        return r.choice([True, True, False, {"type": "integer"}, {"type": "string"}, {"const": r.choice(SCALARS)}])
    schema: dict[str, Any] = {}
    for _ in range(r.choice([1, 1, 2, 2, 3])):
        schema.update(r.choice(_MAKERS)(r, depth + 1))
    return schema


def _types(r: Random, depth: int) -> dict[str, Any]:
    names = ["null", "boolean", "integer", "number", "string", "array", "object"]
    return {"type": r.choice(names) if r.random() < 0.7 else r.sample(names, 2)}


def _listing(r: Random, depth: int) -> dict[str, Any]:
    return {"const": random_value(r, 1)} if r.random() < 0.4 else {"enum": [random_value(r, 1) for _ in range(r.randint(1, 4))]}


def _numbers(r: Random, depth: int) -> dict[str, Any]:
    return r.choice([{"minimum": r.randint(-1, 3)}, {"maximum": r.randint(-1, 3)}, {"exclusiveMinimum": r.randint(-1, 2)},
                     {"multipleOf": r.choice([2, 3])},
                     {"type": "integer", "minimum": r.randint(0, 2), "maximum": r.randint(1, 3)}])


def _strings(r: Random, depth: int) -> dict[str, Any]:
    return r.choice([{"minLength": r.randint(0, 2)}, {"maxLength": r.randint(0, 2)}, {"pattern": r.choice(PATTERNS)}])


def _properties(r: Random, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"properties": {name: random_schema(r, depth) for name in r.sample(NAMES, r.randint(1, 3))}}
    if r.random() < 0.4:
        found["required"] = r.sample(NAMES, r.randint(1, 2))
    if r.random() < 0.4:
        found["additionalProperties"] = r.choice([False, False, random_schema(r, depth + 1)])
    return found


def _names(r: Random, depth: int) -> dict[str, Any]:
    return r.choice([
        lambda: {"required": r.sample(NAMES, r.randint(1, 2))},
        lambda: {"patternProperties": {p: random_schema(r, depth + 1) for p in r.sample(PATTERNS, r.randint(1, 2))}},
        lambda: {"propertyNames": r.choice([{"pattern": r.choice(PATTERNS)}, {"enum": r.sample(NAMES, 2)}, {"maxLength": 1},
                                            random_schema(r, depth + 1)])},
        lambda: {"minProperties": r.randint(1, 2)}, lambda: {"maxProperties": r.randint(0, 2)},
        lambda: {"dependentRequired": {r.choice(NAMES): r.sample(NAMES, r.randint(1, 2))}},
        lambda: {"dependentSchemas": {r.choice(NAMES): random_schema(r, depth)}}])()


def _items(r: Random, depth: int) -> dict[str, Any]:
    return r.choice([
        lambda: {"items": random_schema(r, depth)},
        lambda: {"prefixItems": [random_schema(r, depth) for _ in range(r.randint(1, 2))]},
        lambda: {"prefixItems": [random_schema(r, depth)], "items": r.choice([False, random_schema(r, depth)])},
        lambda: {"minItems": r.randint(0, 2)}, lambda: {"maxItems": r.randint(0, 3)},
        lambda: {"contains": random_schema(r, depth)},
        lambda: {"contains": random_schema(r, depth), "minContains": r.randint(0, 2), "maxContains": r.randint(1, 2)},
        lambda: {"uniqueItems": True}])()


def _combined(r: Random, depth: int) -> dict[str, Any]:
    return r.choice([
        lambda: {"anyOf": [random_schema(r, depth) for _ in range(r.randint(1, 3))]},
        lambda: {"oneOf": [random_schema(r, depth) for _ in range(r.randint(1, 3))]},
        lambda: {"allOf": [random_schema(r, depth) for _ in range(r.randint(1, 2))]},
        lambda: {"not": random_schema(r, depth)},
        lambda: {"if": random_schema(r, depth), "then": random_schema(r, depth), "else": random_schema(r, depth)},
        lambda: {"if": random_schema(r, depth), "then": random_schema(r, depth)}])()


def _reference(r: Random, depth: int) -> dict[str, Any]:
    return {"$ref": r.choice(["#/$defs/p", "#/$defs/q", "#"])}


def _unevaluated(r: Random, depth: int) -> dict[str, Any]:
    keyword = r.choice(["unevaluatedProperties", "unevaluatedItems"])
    makers = [_properties, _names, _combined] if keyword == "unevaluatedProperties" else [_items, _items, _combined]
    found: dict[str, Any] = {keyword: r.choice([False, False, random_schema(r, depth + 1)])}
    for maker in r.sample(makers, 2):
        found.update(maker(r, depth))
    return found


_MAKERS = [_types, _types, _listing, _numbers, _strings, _properties, _properties, _properties, _names, _names, _items, _items,
           _combined, _combined, _unevaluated, _reference]
