"""Schemas of our own to measure masks with: tools, API bodies, configurations and events as programs have them.

    cases = own_cases(n=240, seed=1)

Everything is drawn by a seed. A `Kind` is a schema together with what makes values for it, so valid instances exist by
construction; invalid ones are made by damaging valid ones. The jsonschema library judges all of them, and only instances on
which it agrees with their making are kept.
"""

from __future__ import annotations

import copy
import json
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "inlet", "jade", "kestrel", "lagoon", "meadow",
         "north", "orchid", "prairie", "quartz", "ridge", "summit", "tundra", "umbra", "valley", "willow", "zephyr")
FIELDS = ("id", "name", "title", "status", "owner", "amount", "currency", "quantity", "notes", "tags", "created", "updated",
          "email", "region", "priority", "color", "weight", "width", "height", "address", "phone", "language", "version",
          "enabled", "limit", "offset", "query", "path", "host", "port", "timeout", "retries", "level", "score", "rating",
          "source", "target", "reason", "label", "kind", "parent", "category", "discount", "tax", "total", "latitude",
          "longitude", "duration", "unit", "comment")
N_VALID, N_DAMAGED = 3, 6


@dataclass(frozen=True)
class Kind:
    """A schema, and what makes a value that satisfies it."""

    schema: dict[str, Any]
    make: Callable[[Random], Any]


@dataclass(frozen=True)
class Case:
    """A schema and exact texts of answers, each with whether it may be one."""

    name: str
    schema: Any
    instances: tuple[tuple[str, bool], ...]


def own_cases(n: int = 240, seed: int = 1) -> list[Case]:
    """`n` cases, each family as often as any other."""
    families = (tool, api_body, configuration, event, form, tree, table, settings_map, conditional, extended)
    return [_case(f"{family.__name__}-{k:03d}", family(Random(f"{seed} {family.__name__} {k}")), Random(f"{seed} {k}"))
            for k in range(-(-n // len(families))) for family in families][:n]


def _case(name: str, kind: Kind, rng: Random) -> Case:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(kind.schema)
    oracle = Draft202012Validator(kind.schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    made = [kind.make(rng) for _ in range(N_VALID)]
    damaged = [damage(rng.choice(made), rng) for _ in range(N_DAMAGED)]
    instances = {json.dumps(value, ensure_ascii=False): True for value in made if oracle.is_valid(value)}
    instances |= {json.dumps(value, ensure_ascii=False): False for value in damaged if not oracle.is_valid(value)}
    return Case(name, kind.schema, tuple(instances.items()))


# --- what is wrong with a value


def damage(value: Any, rng: Random) -> Any:
    """A copy of a value, changed at one place as faulty programs and models do."""
    root = [copy.deepcopy(value)]
    places = list(_places(root))
    container, step = rng.choice(places)
    hit = container[step]
    if isinstance(hit, dict) and hit and rng.random() < 0.8:
        name = rng.choice(list(hit))
        change = rng.randrange(3)
        if change == 0:
            del hit[name]
        elif change == 1:
            hit[f"{name}_"] = hit.pop(name)
        else:
            hit["unexpected"] = rng.choice([1, "x", None])
    elif isinstance(hit, list) and hit and rng.random() < 0.8:
        container[step] = rng.choice([hit * 2, hit * 12, [], hit[:-1], [*hit, None]])
    else:
        container[step] = _wrong(hit, rng)
    return root[0]


def _places(container: Any) -> Any:
    """(container, key or index) of every value within a container."""
    steps = list(container) if isinstance(container, dict) else range(len(container))
    for step in steps:
        yield container, step
        if isinstance(container[step], dict | list):
            yield from _places(container[step])


def _wrong(value: Any, rng: Random) -> Any:
    if isinstance(value, bool) or value is None:
        return rng.choice(["true", 0, "null", {}])
    if isinstance(value, int):
        return rng.choice([str(value), value + 0.5, -value - 10**9, value + 10**9, None])
    if isinstance(value, float):
        return rng.choice([str(value), value * 1e6 + 1, -value - 1e6, value + 0.001, None])
    if isinstance(value, str):
        return rng.choice(["", value * 40, f"{value}!", value[1:], 7, f" {value}", value.swapcase()])
    return rng.choice([None, "x", 1])


# --- scalars


def _drawn(schema: dict[str, Any], *values: Any) -> Kind:
    return Kind(schema, lambda rng: rng.choice(values))


def _words(rng: Random, least: int = 1, most: int = 4) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(least, most)))


def _text(rng: Random) -> Kind:
    most = rng.choice([20, 40, 80, 200, 2000])
    return Kind({"type": "string", **rng.choice([{}, {"maxLength": most}, {"minLength": 1, "maxLength": most}])},
                lambda r: _words(r, 1, 3)[:most])


def _sentence(rng: Random) -> Kind:
    del rng
    return Kind({"type": "string"}, lambda r: f"{_words(r, 5, 25).capitalize()}: “{_words(r)}”, {r.randint(1, 99)} %.\nÄ 日本 😀")


def _patterned(rng: Random) -> Kind:
    digits, lower, upper = string.digits, string.ascii_lowercase, string.ascii_uppercase
    patterns: tuple[tuple[str, Callable[[Random], str]], ...] = (
        ("^[A-Z]{3}-[0-9]{4}$", lambda r: "".join(r.choices(upper, k=3)) + "-" + "".join(r.choices(digits, k=4))),
        ("^[a-z][a-z0-9_]{0,30}$", lambda r: "".join(r.choices(lower, k=r.randint(1, 12)))),
        (r"^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$", lambda r: ".".join(str(r.randint(0, 30)) for _ in range(3))),
        ("^#([0-9a-fA-F]{3}){1,2}$", lambda r: "#" + "".join(r.choices("0123456789abcdef", k=6))),
        (r"^\+?[0-9 ()-]{7,16}$", lambda r: f"+{r.randint(10, 99)} {r.randint(100, 999)} {r.randint(1000, 9999)}"),
        ("^(GET|PUT|POST|DELETE) /", lambda r: f"{r.choice(['GET', 'PUT'])} /{r.choice(WORDS)}"),
        ("^[A-Z][a-z]+( [A-Z][a-z]+)*$", lambda r: _words(r, 1, 3).title()),
        (r"^[\w.+-]+/[\w.-]+:\w+$", lambda r: f"{r.choice(WORDS)}/{r.choice(WORDS)}:v{r.randint(1, 9)}"))
    pattern, make = rng.choice(patterns)
    return Kind({"type": "string", "pattern": pattern, **rng.choice([{}, {}, {"maxLength": 40}])}, make)


def _formatted(rng: Random) -> Kind:
    def octets(r: Random) -> str:
        return ".".join(str(r.randint(0, 255)) for _ in range(4))

    def hexadecimal(r: Random, *lengths: int) -> str:
        return "-".join("".join(r.choices("0123456789abcdef", k=n)) for n in lengths)

    def day(r: Random) -> str:
        return f"{r.randint(1990, 2040)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"

    formats: tuple[tuple[str, Callable[[Random], str]], ...] = (
        ("date", day), ("date-time", lambda r: f"{day(r)}T{r.randint(0, 23):02d}:{r.randint(0, 59):02d}:00Z"),
        ("email", lambda r: f"{r.choice(WORDS)}.{r.choice(WORDS)}@example.org"),
        ("uuid", lambda r: hexadecimal(r, 8, 4, 4, 4, 12)),
        ("ipv4", octets), ("ipv6", lambda r: f"2001:db8::{r.randint(1, 9999)}"))
    name, make = rng.choice(formats)
    return Kind({"type": "string", "format": name}, make)


def _integer(rng: Random) -> Kind:
    low, high = rng.choice([(0, 100), (1, 65535), (-90, 90), (1, 5), (0, 10**9), (1, 12)])
    return Kind({"type": "integer", "minimum": low, "maximum": high}, lambda r: r.randint(low, high))


def _number(rng: Random) -> Kind:
    if rng.random() < 0.3:
        step, most = rng.choice([(0.5, 200), (5, 100), (0.25, 400)])
        return Kind({"type": "number", "minimum": 0, "maximum": step * most, "multipleOf": step},
                    lambda r: r.randint(0, most) * step)
    low, high = rng.choice([(0, 1), (-180, 180), (0, 10_000), (-40, 60)])
    return Kind({"type": "number", "minimum": low, "maximum": high}, lambda r: round(r.uniform(low, high), 2))


def _choice(rng: Random) -> Kind:
    words = rng.sample(WORDS, rng.randint(2, 12))
    return _drawn(rng.choice([{"enum": words}, {"type": "string", "enum": words}]), *words)


def _flag(rng: Random) -> Kind:
    del rng
    return _drawn({"type": "boolean"}, True, False)


def _nullable(rng: Random) -> Kind:
    inner = _scalar(rng)
    if "enum" in inner.schema or rng.random() < 0.5:
        schema: dict[str, Any] = {"anyOf": [inner.schema, {"type": "null"}]}
    else:
        schema = {**inner.schema, "type": [inner.schema["type"], "null"]}
    return Kind(schema, lambda r: None if r.random() < 0.3 else inner.make(r))


def _scalar(rng: Random) -> Kind:
    kinds = (_text, _text, _text, _sentence, _patterned, _formatted, _formatted, _integer, _integer, _number, _choice, _choice,
             _flag)
    return rng.choice(kinds)(rng)


# --- containers


def _described(schema: dict[str, Any], rng: Random) -> dict[str, Any]:
    return {**schema, **rng.choice([{}, {"description": f"The {rng.choice(WORDS)} of the {rng.choice(FIELDS)}."}])}


def _object(rng: Random, fields: dict[str, Kind], *, share_required: float = 0.6, rest: Any = None) -> Kind:
    """`rest` is additionalProperties; by default left out or false."""
    required = [name for name in fields if rng.random() < share_required]
    schema: dict[str, Any] = {"type": "object", "properties": {n: _described(k.schema, rng) for n, k in fields.items()}}
    if required:
        schema["required"] = required
    if rest is not None or rng.random() < 0.6:
        schema["additionalProperties"] = False if rest is None else rest
    always = set(required)

    def make(r: Random) -> Any:
        return {name: kind.make(r) for name, kind in fields.items() if name in always or r.random() < 0.7}

    return Kind(schema, make)


def _array(rng: Random, item: Kind) -> Kind:
    least, most = rng.choice([(0, None), (1, 5), (0, 20), (2, 4), (1, None)])
    bounds = {**({"minItems": least} if least else {}), **({"maxItems": most} if most else {})}
    return Kind({"type": "array", "items": item.schema, **bounds},
                lambda r: [item.make(r) for _ in range(r.randint(least, min(most or 4, 4)))])


def _member(rng: Random, depth: int) -> Kind:
    draw = rng.random()
    if depth <= 0 or draw < 0.6:
        return _nullable(rng) if draw < 0.08 else _scalar(rng)
    if draw < 0.8:
        return _array(rng, _member(rng, depth - 1))
    return _record(rng, rng.randint(2, 6), depth - 1)


def _record(rng: Random, n_fields: int, depth: int, **options: Any) -> Kind:
    return _object(rng, {name: _member(rng, depth) for name in rng.sample(FIELDS, n_fields)}, **options)


# --- families


def tool(rng: Random) -> Kind:
    """The arguments of a tool, closed, all members required and nullable where optional, as strict modes want it."""
    return _record(rng, rng.randint(1, 9), rng.randint(0, 2), share_required=1.0, rest=False)


def api_body(rng: Random) -> Kind:
    """A response with paging and records that are a shared definition."""
    record = _record(rng, rng.randint(3, 12), 1)
    fields = {"items": Kind({"type": "array", "items": {"$ref": "#/$defs/Record"}, "maxItems": 50},
                            lambda r: [record.make(r) for _ in range(r.randint(0, 3))]),
              "next": _nullable(rng), "total": _integer(rng)}
    whole = _object(rng, fields)
    return Kind({**whole.schema, "$defs": {"Record": record.schema}}, whole.make)


def configuration(rng: Random) -> Kind:
    """Sections of options, all of them optional."""
    sections = {name: _record(rng, rng.randint(2, 8), 1, share_required=0.0) for name in rng.sample(WORDS, rng.randint(2, 6))}
    return _object(rng, sections, share_required=0.2, rest=False)


def event(rng: Random) -> Kind:
    """One of several records that a constant tells apart."""
    tag = rng.choice(["type", "event", "variant"])
    names = rng.sample(WORDS, rng.randint(2, 6))
    branches = [_tagged(tag, name, _record(rng, rng.randint(1, 5), 1, rest=False)) for name in names]
    return Kind({rng.choice(["oneOf", "anyOf"]): [b.schema for b in branches]}, lambda r: r.choice(branches).make(r))


def _tagged(tag: str, name: str, body: Kind) -> Kind:
    schema = {**body.schema, "properties": {tag: {"const": name}, **body.schema["properties"]},
              "required": [tag, *body.schema.get("required", ())]}
    return Kind(schema, lambda r: {tag: name, **body.make(r)})


def form(rng: Random) -> Kind:
    """Fields with patterns, formats and bounds, some of which go together."""
    kinds = [_patterned, _formatted, _integer, _number, _choice, _nullable]
    names = rng.sample(FIELDS, rng.randint(3, 8))
    whole = _object(rng, {name: rng.choice(kinds)(rng) for name in names}, share_required=0.4)
    if rng.random() < 0.5:
        whole.schema["dependentRequired"] = {names[0]: [names[1]]}
    return whole


def tree(rng: Random) -> Kind:
    """A recursive definition: menus, comments, expressions."""
    own, children = _member(rng, 1), rng.choice(["children", "replies", "operands"])
    node = {"type": "object", "properties": {"value": own.schema, children: {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["value"], "additionalProperties": False}

    def make(r: Random, depth: int = 0) -> Any:
        value: dict[str, Any] = {"value": own.make(r)}
        if depth < 3 and r.random() < 0.8:
            value[children] = [make(r, depth + 1) for _ in range(r.randint(0, 2))]
        return value

    return Kind({"title": f"The {rng.choice(WORDS)} {rng.choice(FIELDS)}", "$ref": "#/$defs/Node", "$defs": {"Node": node}}, make)


def table(rng: Random) -> Kind:
    """Rows of fixed cells, and lists without repetition."""
    cells = [_scalar(rng) for _ in range(rng.randint(2, 5))]
    row = Kind({"type": "array", "prefixItems": [cell.schema for cell in cells], "items": False, "minItems": len(cells)},
               lambda r: [cell.make(r) for cell in cells])
    words = rng.sample(WORDS, 8)
    columns = Kind({"type": "array", "items": {"enum": words}, "uniqueItems": True, "minItems": 1},
                   lambda r: r.sample(words, r.randint(1, 4)))
    return _object(rng, {"columns": columns, "rows": _array(rng, row)}, share_required=1.0)


def settings_map(rng: Random) -> Kind:
    """Names that nobody has declared, each with a value of one schema."""
    value = _member(rng, 1)
    name = rng.choice([{"pattern": "^[a-z]+$"}, {"maxLength": 12}, {"enum": list(WORDS)}])
    least = rng.randint(0, 2)
    schema = {"type": "object", "propertyNames": name, "additionalProperties": value.schema,
              **({"minProperties": least} if least else {})}
    if rng.random() < 0.4:
        schema = {"type": "object", "patternProperties": {"^[a-z]+$": value.schema}, "additionalProperties": False}
    return Kind(schema, lambda r: {w: value.make(r) for w in r.sample(WORDS, r.randint(2, 5))})


def conditional(rng: Random) -> Kind:
    """A member that decides what the others must be: if, not, contains."""
    word, other = rng.sample(WORDS, 2)
    amount, note = _integer(rng), _text(rng)
    marks = {"type": "array", "items": {"type": "string", "maxLength": 12}}
    members = {"mode": {"enum": [word, other]}, "amount": amount.schema, "note": note.schema, "marks": marks}
    base: dict[str, Any] = {"type": "object", "properties": members, "required": ["mode"]}
    rules: list[dict[str, Any]] = [
        {"if": {"properties": {"mode": {"const": word}}}, "then": {"required": ["amount"]}, "else": {"required": ["note"]}},
        {"not": {"required": ["amount", "note"]}},
        {"properties": {**members, "marks": {"type": "array", "contains": {"const": word}}}}]
    rule = rng.choice(rules)

    def make(r: Random) -> Any:
        mode = r.choice([word, other])
        member = {"amount": amount.make(r)} if mode == word else {"note": note.make(r)}
        return {"mode": mode, **member, **({"marks": [other, word]} if r.random() < 0.5 else {})}

    return Kind({**base, **rule}, make)


def extended(rng: Random) -> Kind:
    """A base definition, extended by another, and then closed."""
    names = rng.sample(FIELDS, 6)
    base = _object(rng, {name: _scalar(rng) for name in names[:3]}, rest=True)
    more = _object(rng, {name: _scalar(rng) for name in names[3:]}, rest=True)
    del base.schema["additionalProperties"], more.schema["additionalProperties"]
    schema = {"$defs": {"Base": base.schema}, "allOf": [{"$ref": "#/$defs/Base"}, more.schema], "unevaluatedProperties": False}
    return Kind(schema, lambda r: {**base.make(r), **more.make(r)})


def own_names(cases: Sequence[Case]) -> dict[str, int]:
    """How many cases each family has."""
    counts: dict[str, int] = {}
    for case in cases:
        family = case.name.rpartition("-")[0]
        counts[family] = counts.get(family, 0) + 1
    return counts
