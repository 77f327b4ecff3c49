"""Where references lead: the resources of a schema document, their URIs and anchors, JSON pointers, and dynamic scopes.

A *resource* is the whole document, or a subschema with an `$id` and what lies in it. A *scope* is what `$dynamicRef` needs to
know of how evaluation came to where it is: for every dynamic anchor on the way, the outermost resource that has it. Nothing is
ever fetched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from grammar.errors import SchemaError
from grammar.schema.drafts import DRAFT_2020, UNDECLARED, Draft, named_draft
from grammar.schema.keywords import escaped, held_schemas, shown
from grammar.schema.metaschemas import metaschema


class Location(NamedTuple):
    """A value of the document: its resource, its JSON pointer, and the dynamic anchor by which it was found."""

    resource: Resource
    value: Any
    pointer: str
    dynamic: str | None = None


@dataclass(slots=True, eq=False)
class Resource:
    """`uri` is absolute, or "" where the document has none. Anchors are known once the document was searched."""

    uri: str
    value: Any
    pointer: str
    draft: Draft
    anchors: dict[str, Location] = field(default_factory=dict)
    dynamic: dict[str, Location] = field(default_factory=dict)


Scope = tuple[tuple[str, Resource], ...]
_RECURSIVE = ""     # no anchor has this name: it stands for "$recursiveAnchor": true


class References:
    """The resources of one document. They are searched for when first needed: most documents are one, with plain pointers."""

    def __init__(self, root: Any) -> None:
        draft = named_draft(root["$schema"], "", UNDECLARED) if isinstance(root, dict) and "$schema" in root else UNDECLARED
        own = identifier(root, draft) if isinstance(root, dict) else None
        self.root = Resource(_joined("", own, draft.id_keyword, "") if own else "", root, "", draft)
        self._by_uri = {self.root.uri: self.root}
        self._of_value: dict[int, Resource] = {id(root): self.root}
        self._searched: set[int] = set()

    def resource_at(self, value: dict[str, Any], pointer: str, outer: Resource) -> Resource:
        """The resource of a subschema that names itself."""
        if id(value) not in self._of_value:
            self._search(self.root.value, "", self.root)
            self._search(value, pointer, outer)     # for places where no schema is looked for
        return self._of_value.get(id(value), outer)

    def follow(self, reference: str, resource: Resource, pointer: str, keyword: str = "$ref") -> Location:
        """Where a reference in `resource`, at `pointer`, leads. Raises SchemaError."""
        place = self._resource_of(reference, resource, pointer, keyword)
        fragment = unquote(reference.partition("#")[2])
        if fragment and not fragment.startswith("/"):
            self._search(self.root.value, "", self.root)
            found = place.anchors.get(fragment)
            if found is None:
                raise SchemaError(f"there is no $anchor {shown(fragment)}", keyword=keyword, pointer=pointer)
        else:
            found = self._by_pointer(fragment, place, reference, pointer, keyword)
        if not isinstance(found.value, dict | bool):
            raise SchemaError(f"{shown(reference)} leads to no schema", keyword=keyword, pointer=pointer)
        return found

    def follow_dynamic(self, reference: str, resource: Resource, scope: Scope, pointer: str) -> Location:
        """Where a `$dynamicRef` leads: to the outermost resource of the scope that has the dynamic anchor, if it names one."""
        found = self.follow(reference, resource, pointer, "$dynamicRef")
        outermost = dict(scope).get(found.dynamic) if found.dynamic else None
        return outermost.dynamic[found.dynamic] if outermost and found.dynamic else found

    def follow_recursive(self, reference: str, resource: Resource, scope: Scope, pointer: str) -> Location:
        """Where a `$recursiveRef` leads: to the outermost of the resources around it that all have `$recursiveAnchor`."""
        if reference != "#":
            raise SchemaError(f"must be '#', not {shown(reference)}", keyword="$recursiveRef", pointer=pointer)
        self._search(self.root.value, "", self.root)
        target = dict(scope).get(_RECURSIVE, resource) if _RECURSIVE in resource.dynamic else resource
        return Location(target, target.value, target.pointer)

    def scope_of_root(self) -> Scope:
        self._search(self.root.value, "", self.root)
        return entered((), self.root)

    def _resource_of(self, reference: str, resource: Resource, pointer: str, keyword: str) -> Resource:
        if reference.startswith("#"):
            return resource
        uri = _joined(resource.uri, reference, keyword, pointer)
        if uri not in self._by_uri:
            self._search(self.root.value, "", self.root)
            self._add_published(uri)
        if uri not in self._by_uri:
            raise SchemaError(f"{shown(reference)} leads out of the schema, and remote schemas are never fetched",
                              keyword=keyword, pointer=pointer)
        return self._by_uri[uri]

    def _add_published(self, uri: str) -> None:
        """Have the schema of a draft's schemas at hand, if that is what a URI names. Its pointers begin with the URI."""
        published = None if uri in self._by_uri else metaschema(uri)
        if published is not None:
            draft = named_draft(published["$schema"], uri, DRAFT_2020)
            resource = self._by_uri[uri] = self._of_value[id(published)] = Resource(uri, published, f"{uri}#", draft)
            self._search(published, resource.pointer, resource)

    def _by_pointer(self, fragment: str, resource: Resource, reference: str, pointer: str, keyword: str) -> Location:
        value, place = resource.value, resource.pointer
        for step in fragment.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isascii() and step.isdecimal() and len(step) < 9 and int(step) < len(value):
                value = value[int(step)]
            else:
                raise SchemaError(f"{shown(reference)} leads nowhere", keyword=keyword, pointer=pointer)
            place = f"{place}/{escaped(step)}"
            if isinstance(value, dict) and identifier(value, resource.draft) is not None:
                self._search(self.root.value, "", self.root)
                resource = self._of_value.get(id(value), resource)
        return Location(resource, value, place)

    def _search(self, value: Any, pointer: str, resource: Resource) -> None:
        """Find the resources and anchors in a value, once."""
        stack = [(value, pointer, resource)]
        while stack:
            value, pointer, resource = stack.pop()
            if not isinstance(value, dict) or id(value) in self._searched:
                continue
            self._searched.add(id(value))
            resource = self._note_names(value, pointer, resource)
            stack.extend((item, pointer + step, resource) for step, item in held_schemas(value))

    def _note_names(self, schema: dict[str, Any], pointer: str, resource: Resource) -> Resource:
        """Take down what a schema object calls itself; the resource that its members belong to."""
        draft = named_draft(schema["$schema"], pointer, resource.draft) if "$schema" in schema else resource.draft
        own = identifier(schema, draft)
        if own is not None and schema is not resource.value:
            uri = _joined(resource.uri, own, draft.id_keyword, pointer)
            resource = Resource(uri, schema, pointer, draft)
            self._by_uri.setdefault(uri, resource)
            self._of_value[id(schema)] = resource
        id_keywords = ("$id", "id") if draft is UNDECLARED else (draft.id_keyword,)
        for name in (schema.get("$anchor"), *(_anchor_in_id(schema.get(keyword)) for keyword in id_keywords)):
            if isinstance(name, str):
                resource.anchors.setdefault(name, Location(resource, schema, pointer))
        name = schema.get("$dynamicAnchor")
        if isinstance(name, str) and name:
            resource.dynamic[name] = resource.anchors[name] = Location(resource, schema, pointer, name)
        if schema is resource.value and schema.get("$recursiveAnchor") is True:
            resource.dynamic[_RECURSIVE] = Location(resource, schema, pointer)
        return resource


def identifier(schema: dict[str, Any], draft: Draft) -> str | None:
    """The URI reference by which a schema object names a resource, or None."""
    own = schema.get(draft.id_keyword)
    if not isinstance(own, str) or own.startswith("#") or not own or (draft.lone_reference and "$ref" in schema):
        return None
    return own


def entered(scope: Scope, resource: Resource) -> Scope:
    """The scope inside a resource. Its names are sorted, so that equal scopes are equal."""
    outermost = dict(scope)
    if _RECURSIVE not in resource.dynamic:
        outermost.pop(_RECURSIVE, None)
    for name in resource.dynamic:
        outermost.setdefault(name, resource)
    return tuple(sorted(outermost.items(), key=lambda item: item[0]))


def _anchor_in_id(value: Any) -> str | None:
    """The anchor that drafts before 2019-09 write as an `$id` of "#" and a name."""
    return value[1:] if isinstance(value, str) and len(value) > 1 and value[0] == "#" and value[1] != "/" else None


def _joined(base: str, reference: str, keyword: str, pointer: str) -> str:
    """The URI that a reference stands for, less its fragment."""
    try:
        return urldefrag(urljoin(base, reference)).url
    except ValueError as error:
        raise SchemaError(f"{shown(reference)} is no URI reference: {error}", keyword=keyword, pointer=pointer) from None
