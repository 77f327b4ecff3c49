"""Random schemas over the whole keyword list, and values made for them by hand of the schema alone.

Both are small and meet in corners: few names, few texts, constants near bounds. Most schemas have a value, many have several
keywords that work on the same members. `values_for` follows a schema's own words (constants, types, properties, references)
without any of the grammar's code, and is often wrong: whoever uses it asks a validator first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

NAMES = ["a", "b", "ab", "k", "é", "x-1", ""]
TEXTS = ["", "a", "ab", "aab", "b", "é😀", "x\ty", "b1", "yyx", "k12", "zz", "A-9", 'q"\\', "été", "0", "a b"]
PATTERNS = {    # each with texts in which it is found
    "^a+b*$": ["a", "aab", "ab"], "b": ["b", "ab", "b1"], "^[a-c]{2,}": ["ab", "abc1"], "\\d$": ["b1", "0", "k12"],
    "^(x|yy)*$": ["", "yyx", "xx"], "é|😀": ["é😀", "été"], "^\\S+$": ["ab", "x"], "[^a-z]": ["A-9", "0"],
    "^(?!x)": ["a", "", "yy"], "^(?=.*\\d)[a-z0-9]+$": ["b1", "k12"], "^\\w{1,3}$": ["ab", "k12"], "^$": [""],
    "\\bab\\b": ["ab", "ab c"], "^[^\"]*$": ["ab", ""], "^.{2}$": ["ab", "zz"], "(a|b){2,3}": ["ab", "aab"], "^x-": ["x-1", "x-"]}
FORMATS = {
    "date": ["2024-02-29", "1999-12-31"], "time": ["12:00:00Z", "23:59:59+01:00"], "date-time": ["2024-02-29T12:00:00Z"],
    "duration": ["P1D", "PT5M", "P2Y3M"], "email": ["a@b.co"], "hostname": ["example.org", "a"], "ipv4": ["10.0.0.1"],
    "ipv6": ["::1", "2001:db8::1"], "uri": ["http://a.b/c"], "uri-reference": ["/a", "b?c"], "iri": ["http://é.b/"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"], "json-pointer": ["/a/0", ""], "relative-json-pointer": ["0/a", "1#"],
    "regex": ["^a$", "b"], "uri-template": ["/a/{b}"], "unknown-format": ["ab"]}
NUMBERS = [0, 1, 2, 3, 5, 10, -1, -5, 0.5, 1.5, 0.1, 2.25, 9.99, 100, 1e-5]
DIVISORS = [1, 2, 3, 5, 7, 0.5, 0.1, 0.01, 0.25, 1.5, 10]

DRAFTS = {"2020-12": "https://json-schema.org/draft/2020-12/schema", "2019-09": "https://json-schema.org/draft/2019-09/schema",
          "7": "http://json-schema.org/draft-07/schema#", "6": "http://json-schema.org/draft-06/schema#",
          "4": "http://json-schema.org/draft-04/schema#"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which keywords a draft has."""

    draft: str = "2020-12"

    @property
    def defs(self) -> str:
        return "$defs" if self.draft in ("2020-12", "2019-09") else "definitions"

    @property
    def formats(self) -> list[str]:
        """The formats that it defines, and one that no draft does."""
        known = ["date-time", "email", "hostname", "ipv4", "ipv6", "uri", "unknown-format"]
        if self.draft != "4":
            known += ["uri-reference", "uri-template", "json-pointer"]
        if self.draft not in ("4", "6"):
            known += ["date", "time", "iri", "regex", "relative-json-pointer"]
        return list(FORMATS) if self.modern else known

    @property
    def modern(self) -> bool:
        """2019-09 or later: siblings of $ref count, dependentRequired, minContains."""
        return self.draft in ("2020-12", "2019-09")


def wide_document(r: Random) -> dict[str, Any]:
    """A whole schema. Now and then of an older draft, named by its `$schema`."""
    dialect = Dialect(r.choice(["2020-12"] * 7 + ["2019-09", "7", "6", "4"]))
    maker = _Maker(r, dialect)
    schema = maker.schema(0)
    while not isinstance(schema, dict):
        schema = maker.schema(0)
    if dialect.draft != "2020-12":
        schema = {"$schema": DRAFTS[dialect.draft], **schema}
    if maker.refers:
        if "$ref" in schema and not dialect.modern:
            schema = {"$schema": DRAFTS[dialect.draft], "allOf": [{"$ref": schema["$ref"]}]}
        schema = {**schema, dialect.defs: {name: maker.definition(name) for name in ("p", "q")}}
    return schema


class _Maker:
    def __init__(self, r: Random, dialect: Dialect) -> None:
        self.r, self.dialect = r, dialect
        self.refers = False
        self.deepest = r.choice([2, 2, 3])      # containers and combinations inside one another

    def schema(self, depth: int) -> Any:
        r = self.r
        makers: list[tuple[int, Callable[[int], Any]]] = [
            (2, self._simple), (4, self._number), (5, self._string), (3, self._listed), (1, self._untyped)]
        if depth <= self.deepest:
            makers += [(8, self._object), (6, self._array), (8, self._combined), (2, self._referring)]
        weights, functions = zip(*makers, strict=True)
        return r.choices(functions, weights)[0](depth)

    def definition(self, name: str) -> Any:
        found = self.schema(1)
        if isinstance(found, dict) and name == "q" and self.dialect.draft == "2020-12" and "$anchor" not in found:
            found = {**found, "$anchor": "here"}
        return found

    def some(self, share: float, **keywords: Callable[[], Any]) -> dict[str, Any]:
        return {name: make() for name, make in keywords.items() if self.r.random() < share}

    def boolean(self) -> Any:
        return self.r.choice([True, False, False])

    # --- scalars

    def _simple(self, depth: int) -> Any:
        choices: list[Any] = [{}, *({"type": kind} for kind in ("null", "boolean", "string", "integer", "number")),
                              {"type": ["string", "null"]}, {"type": ["integer", "boolean"]}]
        return self.r.choice(choices if self.dialect.draft == "4" else [True, *choices])

    def _number(self, depth: int) -> Any:
        r = self.r
        found: dict[str, Any] = {"type": r.choice(["integer", "number"])}
        found |= self.some(0.35, minimum=lambda: r.choice(NUMBERS), maximum=lambda: r.choice(NUMBERS[2:]))
        if self.dialect.draft != "4":
            found |= self.some(0.1, exclusiveMinimum=lambda: r.choice(NUMBERS), exclusiveMaximum=lambda: r.choice(NUMBERS[2:]))
        elif "minimum" in found:
            found |= self.some(0.3, exclusiveMinimum=lambda: r.random() < 0.5)
        return found | self.some(0.15, multipleOf=lambda: r.choice(DIVISORS))

    def _string(self, depth: int) -> Any:
        r = self.r
        found = {"type": "string", **self.some(0.3, minLength=lambda: r.randint(0, 3), maxLength=lambda: r.randint(0, 7))}
        found |= self.some(0.3, pattern=lambda: r.choice(list(PATTERNS)))
        return found | self.some(0.2 if len(found) == 1 else 0.02, format=lambda: r.choice(self.dialect.formats))

    def _listed(self, depth: int) -> Any:
        r = self.r
        if r.random() < 0.4 and self.dialect.draft != "4":
            return {"const": self.value()}
        listed: list[Any] = []
        for value in (self.value() for _ in range(r.randint(1, 5))):
            if not any(type(value) is type(other) and value == other for other in listed):
                listed.append(value)
        return {"enum": listed}

    def _untyped(self, depth: int) -> Any:
        r = self.r
        return r.choice([{"minLength": r.randint(0, 3)}, {"maxItems": r.randint(0, 3)}, {"minimum": r.randint(-3, 3)},
                         {"pattern": r.choice(list(PATTERNS))}, {"required": [r.choice(NAMES)]}, {"uniqueItems": True},
                         {"minProperties": r.randint(0, 2)}, {"multipleOf": r.choice(DIVISORS)}])

    def value(self, depth: int = 0) -> Any:
        r = self.r
        kind = r.randrange(10 if depth < 2 else 8)
        if kind == 8:
            return [self.value(depth + 1) for _ in range(r.randint(0, 2))]
        if kind == 9:
            return {name: self.value(depth + 1) for name in r.sample(NAMES, r.randint(0, 2))}
        return [None, r.random() < 0.5, r.randint(-5, 20), r.choice(NUMBERS), r.choice(TEXTS), r.choice(TEXTS), r.randint(0, 3),
                r.choice(TEXTS)][kind]

    # --- containers

    def _object(self, depth: int) -> Any:
        r, inner = self.r, depth + 1
        names = r.sample(NAMES, r.randint(0, 4))
        found: dict[str, Any] = {"type": "object"} if r.random() < 0.85 else {}
        if names and r.random() < 0.9:
            found["properties"] = {name: self.schema(inner) for name in names}
        required = r.sample([*names, r.choice(NAMES)], r.randint(0, min(len(names), 2))) if r.random() < 0.6 else []
        if required or self.dialect.draft != "4" and r.random() < 0.1:
            found["required"] = list(dict.fromkeys(required))
        found |= self.some(0.45, additionalProperties=lambda: r.choice([False, False, True, self.schema(inner)]))
        found |= self.some(0.12, patternProperties=lambda: {
            pattern: self.schema(inner) for pattern in r.sample(list(PATTERNS), r.randint(1, 2))})
        found |= self.some(0.12, minProperties=lambda: r.randint(0, 3), maxProperties=lambda: r.randint(0, 4))
        if self.dialect.draft != "4":
            found |= self.some(0.07, propertyNames=lambda: self.schema(3))
        names = names or NAMES[:2]
        if self.dialect.modern:
            found |= self.some(0.08, dependentRequired=lambda: {r.choice(names): [r.choice(NAMES)]},
                               dependentSchemas=lambda: {r.choice(names): self._object(inner)})
        if self.dialect.draft == "2020-12":     # the validator misreads those of 2019-09
            found |= self.some(0.07, unevaluatedProperties=lambda: r.choice([False, False, self.schema(inner)]))
        if not self.dialect.modern:
            found |= self.some(0.1, dependencies=lambda: {r.choice(names): r.choice([[r.choice(NAMES)], self._object(inner)])})
        return found

    def _array(self, depth: int) -> Any:
        r, inner = self.r, depth + 1
        found: dict[str, Any] = {"type": "array"} if r.random() < 0.9 else {}
        if self.dialect.draft == "2020-12":
            found |= self.some(0.8, items=lambda: self.schema(inner))
            found |= self.some(0.3, prefixItems=lambda: [self.schema(inner) for _ in range(r.randint(1, 3))])
        elif r.random() < 0.4:
            found |= {"items": [self.schema(inner) for _ in range(r.randint(1, 3))],
                      **self.some(0.5, additionalItems=lambda: r.choice([False, self.schema(inner)]))}
        else:
            found |= self.some(0.8, items=lambda: self.schema(inner))
        found |= self.some(0.35, minItems=lambda: r.randint(0, 3), maxItems=lambda: r.randint(0, 4))
        found |= self.some(0.15, uniqueItems=lambda: True)
        if self.dialect.draft != "4":
            found |= self.some(0.12, contains=lambda: self.schema(inner))
        if self.dialect.modern:
            if self.dialect.draft == "2020-12":
                found |= self.some(0.07, unevaluatedItems=lambda: r.choice([False, self.schema(inner)]))
            if "contains" in found:
                found |= self.some(0.4, minContains=lambda: r.randint(0, 2), maxContains=lambda: r.randint(1, 3))
        return found

    # --- combinations

    def _combined(self, depth: int) -> Any:
        r, inner = self.r, depth + 1
        siblings = self.schema(inner) if r.random() < 0.5 else {}
        found = dict(siblings) if isinstance(siblings, dict) and "$ref" not in siblings else {}
        keyword = r.choice(["anyOf", "anyOf", "allOf", "allOf", "oneOf", "oneOf", "not", "if"])
        if keyword == "not":
            found["not"] = self.schema(inner)
        elif keyword == "if" and self.dialect.draft not in ("4", "6"):
            found["if"] = self.schema(inner)
            found |= self.some(0.8, then=lambda: self.schema(inner))
            found |= {"else": self.schema(inner)} if r.random() < 0.5 or "then" not in found else {}
        else:
            found[keyword if keyword != "if" else "anyOf"] = [self.schema(inner) for _ in range(r.randint(1, 3))]
        return found

    def _referring(self, depth: int) -> Any:
        self.refers = True
        r, defs = self.r, self.dialect.defs
        targets = [f"#/{defs}/p", f"#/{defs}/q", *(["#"] if depth else [])]
        if self.dialect.draft == "2020-12":
            siblings = self.schema(depth + 1) if r.random() < 0.3 else {}
            found = dict(siblings) if isinstance(siblings, dict) else {}
            return found | ({"$dynamicRef": r.choice(targets)} if r.random() < 0.15 else {"$ref": r.choice(targets)})
        return {"$ref": r.choice(targets)}


# --- values

def values_for(schema: Any, r: Random) -> Iterator[Any]:
    """Endless guesses at values of a whole schema."""
    guess = _Guesser(schema, r)
    while True:
        yield guess.value(schema, 0)


class _Guesser:
    def __init__(self, root: Any, r: Random) -> None:
        self.root, self.r = root, r
        self._any = _Maker(r, Dialect())

    def value(self, schema: Any, depth: int) -> Any:
        """A value that some of a schema's words ask for."""
        r = self.r
        if not isinstance(schema, dict) or depth > 6 or r.random() < 0.03:
            return self._any.value(min(depth, 2))
        schema = self._flattened(schema, depth)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return r.choice(schema["enum"])
        match self._kind(schema):
            case "null":
                return None
            case "boolean":
                return r.random() < 0.5
            case "integer" | "number" as kind:
                return self._number(schema, kind)
            case "string":
                return self._text(schema)
            case "array":
                return self._array(schema, depth)
            case "object":
                return self._object(schema, depth)
        return self._any.value(min(depth, 2))

    def _flattened(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """The words of a schema, of what it refers to, and of one way through its combinations; those said first win."""
        found: dict[str, Any] = {}
        queue, steps = [schema], 0
        while queue and steps < 20:
            part, steps = queue.pop(0), steps + 1
            if not isinstance(part, dict):
                continue
            for keyword, value in part.items():
                if keyword in ("properties", "patternProperties") and isinstance(found.get(keyword), dict):
                    found[keyword] = {**value, **found[keyword]}
                elif keyword == "required" and isinstance(found.get(keyword), list):
                    found[keyword] = list(dict.fromkeys([*found[keyword], *value]))
                else:
                    found.setdefault(keyword, value)
            queue += self._asides(part)
        return found

    def _asides(self, part: dict[str, Any]) -> list[Any]:
        r = self.r
        found = [self._resolved(part[keyword]) for keyword in ("$ref", "$dynamicRef") if keyword in part]
        found += part.get("allOf", [])
        found += [r.choice(part[keyword]) for keyword in ("anyOf", "oneOf") if part.get(keyword)]
        if "if" in part:
            found += [part["if"], part.get("then", {})] if r.random() < 0.6 else [part.get("else", {})]
        for dependent in {**part.get("dependentSchemas", {}), **part.get("dependencies", {})}.values():
            if r.random() < 0.5:
                found.append(dependent if isinstance(dependent, dict) else {})
        return found

    def _resolved(self, reference: str) -> Any:
        target: Any = self.root
        for step in reference.lstrip("#").split("/")[1:]:
            target = target.get(step, {}) if isinstance(target, dict) else {}
        return target

    def _kind(self, schema: dict[str, Any]) -> str | None:
        stated = schema.get("type")
        if isinstance(stated, list):
            return str(self.r.choice(stated))
        if stated is not None:
            return str(stated)
        for kind, words in (("object", ("properties", "required", "patternProperties", "minProperties", "additionalProperties")),
                            ("array", ("items", "prefixItems", "minItems", "contains", "uniqueItems")),
                            ("string", ("pattern", "minLength", "format")), ("number", ("minimum", "multipleOf"))):
            if self.r.random() < 0.8 and any(word in schema for word in words):
                return kind
        return None

    def _number(self, schema: dict[str, Any], kind: str) -> int | float:
        r = self.r
        near = [schema[w] for w in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
                if w in schema and not isinstance(schema[w], bool)]
        value = r.choice(near or NUMBERS) + r.choice([0, 0, 1, -1, 2, 0.5, -0.25, 7])
        if "multipleOf" in schema:
            value = round(value / schema["multipleOf"]) * schema["multipleOf"]
        if kind == "integer" or r.random() < 0.3:
            return round(value)
        value = round(value, 4)
        return int(value) if value == int(value) and r.random() < 0.7 else value

    def _text(self, schema: dict[str, Any]) -> str:
        r = self.r
        likely = [*PATTERNS.get(schema.get("pattern", ""), []), *FORMATS.get(schema.get("format", ""), [])]
        text = r.choice(likely if likely and r.random() < 0.8 else TEXTS)
        least = schema.get("minLength", 0)
        return text + r.choice("abx1é") * (least - len(text)) if r.random() < 0.7 else text

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        r = self.r
        prefix = schema.get("prefixItems", schema["items"] if isinstance(schema.get("items"), list) else [])
        rest = schema.get("additionalItems", {}) if isinstance(schema.get("items"), list) else schema.get("items", {})
        least = schema.get("minItems", 0)
        count = min(max(least, r.choice([0, 1, 2, 2, 3])), schema.get("maxItems", 4))
        if rest is False:
            count = min(count, len(prefix))
        found = [self.value(prefix[n] if n < len(prefix) else rest, depth + 1) for n in range(count)]
        if "contains" in schema and found:
            for _ in range(r.randint(1, 2)):
                found[r.randrange(len(found))] = self.value(schema["contains"], depth + 1)
        return found

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        r = self.r
        declared, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        share = r.choice([0.3, 0.6, 0.9])
        names = [name for name in declared if r.random() < share] + list(schema.get("required", []))
        if schema.get("additionalProperties") is not False or patterns:
            others = [text for pattern in patterns for text in PATTERNS.get(pattern, [])] + NAMES
            names += r.sample(others, r.choice([0, 0, 1, 2]))
        r.shuffle(names)
        found = {}
        for name in dict.fromkeys(names):
            inner = declared.get(name, next((s for p, s in patterns.items() if name in PATTERNS.get(p, [])),
                                            schema.get("additionalProperties", {})))
            found[name] = self.value(inner, depth + 1)
        return found
