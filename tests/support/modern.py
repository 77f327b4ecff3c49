"""The modern view of a schema written down again as one plain schema of draft 2020-12, for the jsonschema library to read."""

from __future__ import annotations

from typing import Any

from grammar.budget import Budget
from grammar.schema.constants import Constants
from grammar.schema.views import Reference, Views

_HELD = frozenset({"items", "additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
                   "not", "if", "then", "else"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})


def views_of(schema: Any) -> Views:
    budget = Budget()
    return Views(schema, budget, Constants(budget))


def written_down(views: Views) -> dict[str, Any]:
    """A schema of draft 2020-12 in which every view that a reference leads to is one definition."""
    definitions: dict[str, Any] = {}
    names: dict[int, str] = {}
    waiting: list[Any] = []

    def named(view: Any) -> dict[str, str]:
        if id(view) not in names:
            names[id(view)] = str(len(names))
            waiting.append(view)
        return {"$ref": f"#/$defs/{names[id(view)]}"}

    def plain(view: Any) -> Any:
        return view if isinstance(view, bool) else {keyword: _content(keyword, value) for keyword, value in view.items()}

    def _content(keyword: str, value: Any) -> Any:
        if isinstance(value, Reference):
            return named(value.view)["$ref"]
        if keyword in _HELD:
            return plain(value)
        if keyword in _LISTED:
            return [plain(item) for item in value]
        return {name: plain(item) for name, item in value.items()} if keyword in _NAMED else value

    root = named(views.root)
    for view in waiting:    # grows meanwhile
        definitions[names[id(view)]] = plain(view)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": definitions}
