"""Whether a JSON value is in a normal form, decided by plain recursion over its shapes and Python's own `re`.

It knows nothing of automata and machines: with it the algebra of schemas is judged alone.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from jsonschema import FormatChecker

from grammar.algebra.choices import Choice, Extra
from grammar.algebra.normal import NormalForm
from grammar.algebra.shapes import Array, Boolean, Null, Number, NumberSet, Object, Shape, String, StringSet
from grammar.schema.document import Key

_FORMATS = FormatChecker()


def holds(form: NormalForm, value: Any, key: Key | None = None) -> bool:
    """Whether a value satisfies a key of a normal form, the root if none is named."""
    return any(_has(form, shape, value) for shape in form.shapes.get(form.root if key is None else key, ()))


def _has(form: NormalForm, shape: Shape, value: Any) -> bool:
    match shape, value:
        case Null(), None:
            return True
        case Boolean(values), bool():
            return value in values
        case Number() | NumberSet(), int() | float():
            return not isinstance(value, bool) and _has_number(shape, value)
        case String() | StringSet(), str():
            return _has_text(shape, value)
        case Array(), list():
            return _has_array(form, shape, value)
        case Object(), dict():
            return _has_object(form, shape, value)
    return False


def _has_number(shape: Number | NumberSet, value: int | float) -> bool:
    if isinstance(shape, NumberSet):
        return value in shape.values
    exact, decimal = Fraction(value), Fraction(str(value))
    return (shape.bounds.holds(exact) and shape.whole in (None, exact.denominator == 1) and exact not in shape.without
            and all(decimal % multiple == 0 for multiple in shape.multiples)
            and all(decimal % multiple for multiple in shape.not_multiples))


def _has_text(shape: String | StringSet, value: str) -> bool:
    if isinstance(shape, StringSet):
        return value in shape.values
    return (len(value) >= shape.least and (shape.most is None or len(value) <= shape.most) and value not in shape.without
            and all(re.search(pattern, value) for pattern in shape.patterns)
            and not any(re.search(pattern, value) for pattern in shape.not_patterns)
            and all(_FORMATS.conforms(value, name) for name in shape.formats)
            and not any(_FORMATS.conforms(value, name) for name in shape.not_formats))


def _has_array(form: NormalForm, shape: Array, items: list[Any]) -> bool:
    assert not shape.repeats, "no finished normal form asks for repeated items"
    if len(items) < shape.least or (shape.most is not None and len(items) > shape.most):
        return False
    if shape.unique and len({_canonical(item) for item in items}) < len(items):
        return False
    tallies = {(0,) * len(shape.some)}
    for place, item in enumerate(items):
        choices = _holding(form, form.item_choices(shape, place), item)
        tallies = {tuple(count + (choice.serves >> n & 1) for n, count in enumerate(tally))
                   for tally in tallies for choice in choices}
    return any(all(some.least <= count and (some.most is None or count <= some.most)
                   for count, some in zip(tally, shape.some, strict=True)) for tally in tallies)


def _has_object(form: NormalForm, shape: Object, members: dict[str, Any]) -> bool:
    own = dict(shape.properties)
    if not set(shape.required) <= members.keys() or len(members) < shape.least or (
            shape.most is not None and len(members) > shape.most):
        return False
    served = 0
    for n, some in enumerate(shape.some):
        assert set(some.absent) | {name for name, _ in some.named} <= own.keys(), "an obligation names what is not declared"
        served |= any(name not in members for name in some.absent) << n
    for name, value in members.items():
        if name in own:
            choices: list[Choice | Extra] = _holding(form, form.member_choices(shape, name, own[name]), value)
        else:
            choices = _holding(form, [extra for extra in form.extra_choices(shape) if _has_text(extra.names, name)], value)
        if not choices:
            return False
        for choice in choices:
            served |= choice.serves
    return served == (1 << len(shape.some)) - 1


def _holding(form: NormalForm, choices: Any, value: Any) -> list[Any]:
    return [choice for choice in choices if holds(form, value, choice.key)]


def _canonical(value: Any) -> str:
    """Equal JSON values in one spelling."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, int | float):
        return str(Fraction(value))
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return "{" + ",".join(f"{json.dumps(name)}:{_canonical(value[name])}" for name in sorted(value)) + "}"
