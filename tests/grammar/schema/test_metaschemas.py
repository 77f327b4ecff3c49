"""The schemas of schemas accept what the published ones do, which the jsonschema library carries."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from grammar.errors import SchemaError
from grammar.schema.drafts import BY_URI
from grammar.schema.metaschemas import metaschema
from tests.support.modern import views_of, written_down

KEYWORDS = [
    "type", "items", "additionalItems", "prefixItems", "required", "enum", "const", "$id", "id", "$anchor",
    "$dynamicAnchor", "$ref", "$recursiveRef", "$recursiveAnchor", "$dynamicRef", "$vocabulary", "$schema",
    "exclusiveMinimum", "minimum", "multipleOf", "dependencies", "dependentRequired", "dependentSchemas", "pattern",
    "patternProperties", "format", "title", "$comment", "readOnly", "writeOnly", "deprecated", "examples", "contains",
    "minContains", "if", "then", "else", "not", "allOf", "properties", "definitions", "$defs", "contentSchema",
    "contentEncoding", "maxLength", "uniqueItems", "additionalProperties", "unevaluatedItems", "propertyNames", "default",
    "description"]
VALUES = [None, True, 0, -1, 1, 1.5, "", "a", "#a", "http://x/y", "(", "string", "#", [], {}, ["a"], ["a", "a"], ["string"],
          ["string", "string"], [{}], [{}, 1], {"a": {}}, {"a": 1}, {"a": ["b"]}, {"a": []}, {"a": ["b", "b"]}, {"(": {}},
          {"http://x": True}, {"x": 1}, "a b", "_a", "-a", "A:b"]


@pytest.mark.parametrize("uri", BY_URI)
def test_a_schema_is_well_formed_where_the_published_metaschema_says_so(uri):
    library = validator_for({"$schema": uri})
    published = library(library.META_SCHEMA, format_checker=library.FORMAT_CHECKER)
    own = Draft202012Validator(written_down(views_of({"$ref": uri})), format_checker=library.FORMAT_CHECKER)
    schemas = [{keyword: value} for keyword in KEYWORDS for value in VALUES]
    schemas += [{"minimum": 1, **schema} for schema in schemas[::7]] + [{"items": schema} for schema in schemas[::5]]
    expected = [published.is_valid(schema) for schema in schemas]
    assert [own.is_valid(schema) for schema in schemas] == expected
    assert True in expected
    assert False in expected


@pytest.mark.parametrize("uri", BY_URI)
@pytest.mark.parametrize("place", ["#/definitions/schemaArray", "#/definitions/stringArray", "#/properties/title"])
def test_what_old_drafts_define_by_name_can_be_referred_to(uri, place):
    assert views_of({"items": {"$ref": f"{uri}{place}"}}).root != {}


def test_a_dialect_may_extend_the_newest_draft():
    schema = {"$id": "https://example.com/dialect", "$dynamicAnchor": "meta", "properties": {"unit": {"type": "string"}},
              "$ref": "https://json-schema.org/draft/2020-12/schema"}
    own, library = Draft202012Validator(written_down(views_of(schema))), Draft202012Validator(schema)
    schemas = [{"unit": "m"}, {"unit": 1}, {"items": {"unit": "m"}}, {"items": {"unit": 1}}, {"items": {"not": {"minimum": "x"}}}]
    expected = [True, False, True, False, False]
    assert [own.is_valid(s) for s in schemas] == [library.is_valid(s) for s in schemas] == expected


def test_only_the_addresses_of_the_drafts_are_known():
    assert metaschema("https://json-schema.org/draft/2020-12/meta/core") is None
    with pytest.raises(SchemaError, match="never fetched"):
        views_of({"$ref": "https://json-schema.org/draft/2020-12/meta/core"})


def test_a_fault_within_is_told_with_the_address():
    with pytest.raises(SchemaError, match="leads nowhere"):
        views_of({"$ref": "http://json-schema.org/draft-07/schema#/definitions/none"})
    views = views_of({"not": {"$ref": "http://json-schema.org/draft-07/schema#"}})
    assert views.pointer(views.root["not"]["$ref"].view) == "http://json-schema.org/draft-07/schema#"
