"""The modern view of a schema document: whatever draft it is written in, the rest of the compiler reads draft 2020-12.

A *view* is a dictionary with the keywords of a schema object that restrain something, each with its form checked, in the words
of draft 2020-12; its subschemas are views again, or True or False. Its `$ref` is a `Reference`, which leads to another view; a
`$dynamicRef` has become such a `$ref`, with a view of its target for each dynamic scope that it is seen in. Equal views are one
object. Only what can be reached from the root is looked at.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from grammar.budget import Budget
from grammar.errors import SchemaError
from grammar.schema import keywords
from grammar.schema.constants import Constants
from grammar.schema.drafts import Draft, modernised, named_draft
from grammar.schema.keywords import FORMS, REFERENCE, SCALAR, SCHEMA, SCHEMA_LIST, SCHEMA_MAP, VALUES, escaped
from grammar.schema.references import Location, References, Resource, Scope, entered, identifier

View = dict[str, Any]


class Notice(NamedTuple):
    """A name in the schema that restrains nothing, though its author may think it does."""

    keyword: str
    pointer: str
    reason: str


@dataclass(slots=True, eq=False)
class Context:
    """What the meaning of a schema object depends on beside itself. `views` are those made in it, by the id of their source."""

    draft: Draft
    resource: Resource
    scope: Scope | None     # None: the scope that the root resource starts with
    views: dict[int, View | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The `$ref` of a view; one object for each thing that can be referred to."""

    context: Context
    location: Location

    @property
    def view(self) -> View | bool:
        """What it leads to."""
        value = self.location.value
        return value if isinstance(value, bool) else self.context.views[id(value)]


# A schema that waits to be read: itself, its pointer, the context around it, the brackets around it, and the place of its view.
_Waiting = tuple[Any, str, Context, int, Any, Any]


@dataclass(slots=True)
class _Opened:
    """A schema object whose subschemas are being read; `context` is its own, `around` that of its place."""

    source: dict[str, Any]
    pointer: str
    context: Context
    around: Context
    holder: Any
    slot: Any
    view: View


class Views:
    """The views of one document, of which `root` is the whole. The document must not change meanwhile. Raises SchemaError.

    notices: names without effect that look as if they had one. decimal_integers: whether the type "integer" has 1.0, which
    draft-04 denies. schemas_evaluate: see `Draft`; False if any draft of the document says so, which is the stricter reading.
    """

    def __init__(self, root: Any, budget: Budget, constants: Constants) -> None:
        self.notices: list[Notice] = []
        self.decimal_integers = self.schemas_evaluate = True
        self._budget, self._constants = budget, constants
        self._references = References(root)
        self._contexts: dict[Hashable, Context] = {}
        self._by_structure: dict[Hashable, View] = {}
        self._known: dict[int, tuple[int, str]] = {}    # (number, pointer) of a view, by its id
        self._followed: dict[Hashable, Reference] = {}
        self._by_target: dict[Hashable, Reference] = {}
        self._unread: list[Reference] = []
        self._n_unspent = self._deepest = 0
        start = self._references.root
        self.root = self._read(root, "", self._context(start.draft, start, None))
        wrapped = keywords.wrapped_schema(root) if isinstance(root, dict) else None
        if wrapped:
            reason = f"no keyword restrains anything here; the schema may be the one at {wrapped}"
            self.notices.append(Notice(wrapped.split("/")[1], "", reason))
        for reference in self._unread:      # grows meanwhile
            if isinstance(reference.location.value, dict) and id(reference.location.value) not in reference.context.views:
                self._read(reference.location.value, reference.location.pointer, reference.context)
        budget.spend("schema_values", self._n_unspent)

    def number(self, view: View) -> int:
        """Which view it is. Views are equal where they say the same in the same order."""
        return self._known[id(view)][0]

    def pointer(self, view: View) -> str:
        """Where a view was first seen, in the schema as sent."""
        return self._known[id(view)][1]

    def of_source(self, source: Any) -> View | bool:
        """The view of a schema object of the document, in the first context that it is seen in. Raises LookupError."""
        if isinstance(source, bool):
            return source
        found = next((context.views[id(source)] for context in self._contexts.values() if id(source) in context.views), None)
        if found is None:
            raise LookupError("the schema is not reached from the root")
        return found

    def _read(self, source: Any, pointer: str, context: Context) -> View | bool:
        """The view of a schema, made from the inside out."""
        found: list[Any] = [None]
        stack: list[_Waiting | _Opened] = [(source, pointer, context, 1, found, 0)]
        while stack:
            top = stack.pop()
            if isinstance(top, _Opened):
                self._close(top)
            elif isinstance(top[0], dict):
                self._open(top, stack)
            elif isinstance(top[0], bool):
                top[4][top[5]] = top[0]
            else:
                raise SchemaError(keywords.no_schema(top[0]) or "", pointer=top[1])
        view: View | bool = found[0]
        return view

    def _open(self, waiting: _Waiting, stack: list[_Waiting | _Opened]) -> None:
        """Check a schema object, start its view, and put its subschemas on the stack."""
        source, pointer, around, depth, holder, slot = waiting
        context, draft = around, around.draft
        if draft.id_keyword in source or "$schema" in source:
            context = self._inside(source, pointer, around)
            draft = context.draft
        if id(source) in context.views:
            holder[slot] = around.views[id(source)] = context.views[id(source)]
            return
        self._spend(1 + len(source), depth)
        modern, sources = self._modern(source, pointer, draft) if draft.has_to_translate(source) else (source, _SAME_NAMES)
        view: View = {}
        says: list[Hashable] = []
        forms, n_waiting = draft.forms, len(stack)
        for keyword, value in modern.items():
            if keyword not in forms:
                if keyword not in keywords.ANNOTATIONS:
                    self._notice(keyword, pointer, draft)
                continue
            fault, kind = forms[keyword]
            reason = fault(value)
            if reason:
                raise SchemaError(reason, keyword=sources.get(keyword, keyword), pointer=pointer)
            if kind == SCALAR:
                view[keyword] = value
                says.append(tuple(value) if isinstance(value, list) else value)
            elif kind == VALUES:
                view[keyword] = value
                says.append(self._constants.number(value, pointer))
            elif kind == REFERENCE:
                view[keyword] = self._follow(keyword, value, pointer, context)
                says.append(view[keyword])
            else:
                self._hold(keyword, value, (f"{pointer}/{sources.get(keyword, keyword)}", context, depth, view), stack)
        if len(stack) > n_waiting or not _NOT_LEFT.isdisjoint(view):
            stack.insert(n_waiting, _Opened(source, pointer, context, around, holder, slot, view))
            return
        found = self._known_view(view, (tuple(view), tuple(says)), pointer)
        holder[slot] = context.views[id(source)] = around.views[id(source)] = found

    def _hold(self, keyword: str, value: Any, place: tuple[str, Context, int, View], stack: list[_Waiting | _Opened]) -> None:
        """Put the subschemas that a keyword holds on the stack, with their places in the view."""
        pointer, context, depth, view = place
        view[keyword] = None
        if isinstance(value, list):
            items = view[keyword] = [None] * len(value)
            self._spend(len(value), depth + 1)
            stack.extend([(item, f"{pointer}/{n}", context, depth + 2, items, n) for n, item in enumerate(value)])
        elif FORMS[keyword].kind == SCHEMA:
            stack.append((value, pointer, context, depth + 1, view, keyword))
        else:
            named = view[keyword] = dict.fromkeys(value)
            self._spend(len(value), depth + 1)
            stack.extend([(item, f"{pointer}/{escaped(name)}", context, depth + 2, named, name) for name, item in value.items()])

    def _spend(self, n_values: int, depth: int) -> None:
        """Count values of the document against the budget, a few hundred at a time."""
        self._n_unspent += n_values
        if self._n_unspent > 200 or depth > self._deepest:
            self._budget.spend("schema_values", self._n_unspent)
            self._budget.check("schema_depth", depth)
            self._n_unspent, self._deepest = 0, max(self._deepest, depth)

    def _close(self, opened: _Opened) -> None:
        """Finish the view of a schema object whose subschemas are views."""
        view = opened.view
        for keyword in _EMPTY_SAYS_NOTHING & view.keys():
            if not view[keyword]:
                del view[keyword]
        for keyword in _OTHER_REFERENCES:
            if keyword in view:
                self._add_reference(view, view.pop(keyword), opened.pointer)
        structure = tuple(view), tuple([self._structure(keyword, value) for keyword, value in view.items()])
        found = self._known_view(view, structure, opened.pointer)
        opened.holder[opened.slot] = opened.context.views[id(opened.source)] = opened.around.views[id(opened.source)] = found

    def _add_reference(self, view: View, reference: Reference, pointer: str) -> None:
        if "$ref" in view:
            alone = self._known_view({"$ref": reference}, (("$ref",), (reference,)), pointer)
            view["allOf"] = [*view.get("allOf", ()), alone]
        else:
            view["$ref"] = reference

    def _known_view(self, view: View, structure: Hashable, pointer: str) -> View | bool:
        """The one view that says what `view` says. True, if that is nothing."""
        if not view:
            return True
        known = self._by_structure.setdefault(structure, view)
        if known is view:
            self._known[id(view)] = len(self._known), pointer
        return known

    def _structure(self, keyword: str, value: Any) -> Hashable:
        """What a keyword says, in a form that can be compared."""
        kind = FORMS[keyword].kind
        if kind == VALUES:
            return self._constants.number(value, "")
        if kind == SCHEMA:
            return self._of_subschema(value)
        if kind == SCHEMA_LIST:
            return tuple(map(self._of_subschema, value))
        if kind == SCHEMA_MAP:
            return tuple(value), tuple(map(self._of_subschema, value.values()))
        comparable: Hashable = tuple(value) if isinstance(value, list) else value
        return comparable

    def _of_subschema(self, view: View | bool) -> int:
        return -1 - view if isinstance(view, bool) else self._known[id(view)][0]

    def _modern(self, source: dict[str, Any], pointer: str, draft: Draft) -> tuple[dict[str, Any], dict[str, str]]:
        """(the keywords in the words of draft 2020-12, their names in the source where those differ)."""
        if draft.lone_reference and "$ref" in source:
            return {"$ref": source["$ref"]}, _SAME_NAMES
        for keyword in source:
            if keyword in draft.absent and keyword in draft.forms:
                self._notice(keyword, pointer, draft)
        reading = modernised(source, draft, pointer)
        return reading.modern, reading.sources

    def _notice(self, keyword: Any, pointer: str, draft: Draft) -> None:
        if not isinstance(keyword, str):
            raise SchemaError(f"the schema is no JSON: the name {keywords.shown(keyword)} is no string", pointer=pointer)
        if keyword in draft.absent:
            reason = f"{draft.name} has no such keyword"
        else:
            meant = None if keywords.is_annotation(keyword) else keywords.meant_keyword(keyword)
            reason = f"there is no such keyword; {meant!r} may be meant" if meant else ""
        if reason and len(self.notices) < _MOST_NOTICES:
            self.notices.append(Notice(keyword, pointer, reason))

    def _inside(self, source: dict[str, Any], pointer: str, outer: Context) -> Context:
        """The context of what a schema object says, which may have a `$schema` or an `$id` of its own.

        Which keyword is its `$id` is for the draft around it to say: a `$schema` within decides what its keywords mean only.
        """
        draft = named_draft(source["$schema"], pointer, outer.draft) if "$schema" in source else outer.draft
        if source is not outer.resource.value and identifier(source, outer.draft) is not None:
            resource = self._references.resource_at(source, pointer, outer.resource)
            return self._context(draft, resource, self._scope_in(resource, outer))
        return outer if draft is outer.draft else self._context(draft, outer.resource, outer.scope)

    def _follow(self, keyword: str, text: str, pointer: str, context: Context) -> Reference:
        """The reference that `$ref`, `$dynamicRef` or `$recursiveRef` is in a context; its target is read later."""
        known = self._followed.get((context, keyword, text))
        if known is not None:
            return known
        if keyword == "$ref":
            location = self._references.follow(text, context.resource, pointer)
        else:
            follow = self._references.follow_dynamic if keyword == "$dynamicRef" else self._references.follow_recursive
            location = follow(text, context.resource, self._scope(context), pointer)
        resource = location.resource
        around = self._context(resource.draft, resource, self._scope_in(resource, context))
        reference = self._by_target.setdefault((around, id(location.value)), Reference(around, location))
        self._followed[context, keyword, text] = reference
        self._unread.append(reference)
        return reference

    def _scope(self, context: Context) -> Scope:
        return self._references.scope_of_root() if context.scope is None else context.scope

    def _scope_in(self, resource: Resource, outer: Context) -> Scope | None:
        """The scope in a resource that is reached from `outer`."""
        if resource is outer.resource:
            return outer.scope
        scope = entered(self._scope(outer), resource)
        self._spend(len(scope), 0)
        return scope

    def _context(self, draft: Draft, resource: Resource, scope: Scope | None) -> Context:
        if scope is not None and resource is self._references.root and scope == self._references.scope_of_root():
            scope = None
        identity = draft, resource, scope
        self.decimal_integers = self.decimal_integers and draft.decimal_integers
        self.schemas_evaluate = self.schemas_evaluate and draft.schemas_evaluate
        if identity not in self._contexts:
            self._contexts[identity] = Context(draft, resource, scope)
        return self._contexts[identity]


_SAME_NAMES: dict[str, str] = {}
_MOST_NOTICES = 100
_EMPTY_SAYS_NOTHING = frozenset({
    "uniqueItems", "minItems", "minLength", "minProperties", "required", "properties", "patternProperties", "dependentRequired",
    "dependentSchemas"})
_OTHER_REFERENCES = ("$recursiveRef", "$dynamicRef")
_NOT_LEFT = _EMPTY_SAYS_NOTHING.union(_OTHER_REFERENCES)
