"""What has been read at places where everything must be new: items of a distinct array, undeclared names of an object.

A *text* here is a sequence of code points as the machine's edges took them: escapes decoded, whitespace outside of strings left
out, `CLOSE` for the quote that ends a string (a quote within it is 0x22, as is the quote that opens it).
"""

from __future__ import annotations

from typing import NamedTuple

from kernels.pushdown_tables import CLOSE

Text = tuple[int, ...]

UNBEGUN = -1   # `Memory.start` where nothing distinct is being read
AT_ONCE = -2   # ... where it begins with the next character

_QUOTE, _COMMA, _OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = (ord(c) for c in '",[]{}')


class Memory(NamedTuple):
    """What a frame remembers. None stands for Memory(False, UNBEGUN, frozenset()).

    `inside`: a distinct item of some frame that this one returns to is being read, so what this one reads is recorded.
    `start`: where in the record the text begins that this frame itself is reading as one of its own distinct texts.
    `used`: its distinct texts so far, `normalised`.
    """

    inside: bool = False
    start: int = UNBEGUN
    used: frozenset[Text] = frozenset()

    @property
    def recording(self) -> bool:
        return self.inside or self.start != UNBEGUN


NOTHING = Memory()
INSIDE = Memory(inside=True)


def normalised(text: Text) -> Text:
    """The text of the same value with the members of every object sorted (by their own texts)."""
    if _OPEN_OBJECT not in text:
        return text
    outer: list[tuple[list[int], list[Text]] | None] = []   # open containers; of an object what stands before it, its members
    out: list[int] = []                                     # what is being put together: the answer, or one member
    at = 0
    while at < len(text):
        point, end = text[at], at + 1
        if point == _QUOTE:
            end = text.index(CLOSE, at) + 1
            out.extend(text[at:end])
        elif point == _OPEN_OBJECT:
            outer.append((out, []))
            out = []
        elif point in (_CLOSE_OBJECT, _COMMA) and outer and (within := outer[-1]) is not None:
            before, members = within
            if out:
                members.append(tuple(out))
            out = []
            if point == _CLOSE_OBJECT:
                outer.pop()
                out = [*before, _OPEN_OBJECT, *_joined(sorted(members)), _CLOSE_OBJECT]
        else:
            if point == _OPEN_ARRAY:
                outer.append(None)
            elif point == _CLOSE_ARRAY:
                outer.pop()
            out.append(point)
        at = end
    return tuple(out)


def _joined(members: list[Text]) -> list[int]:
    out: list[int] = []
    for n, member in enumerate(members):
        out.extend((_COMMA, *member) if n else member)
    return out


def extends(used: Text, text: Text) -> bool:
    """Whether the value of `used`, which is normalised, can be written, members in some order, so that it begins with `text`."""
    if _OPEN_OBJECT not in text:
        return used[:len(text)] == text
    at, i = 0, 0
    while True:    # the value of `used` at `at` against the one of `text` at `i`, which is the last in there and may be cut off
        if text[i] == _OPEN_OBJECT:
            found = _in_object(used, at, text, i)
        elif text[i] == _OPEN_ARRAY:
            found = _in_array(used, at, text, i)
        else:
            return used[at:at + len(text) - i] == text[i:]
        if isinstance(found, bool):
            return found
        at, i = found


def _in_array(used: Text, at: int, text: Text, i: int) -> bool | tuple[int, int]:
    """The answer, or where in `used` and `text` the last item stands, all before being equal."""
    if used[at] != _OPEN_ARRAY:
        return False
    at, i = at + 1, i + 1
    while i < len(text):
        if text[i] == _CLOSE_ARRAY:
            return used[at] == _CLOSE_ARRAY
        end = _value_end(text, i)
        if not 0 <= end < len(text):
            return at, i
        used_end = _value_end(used, at)
        if normalised(text[i:end]) != used[at:used_end] or used[used_end] != text[end]:
            return False
        at, i = (used_end + 1, end + 1) if text[end] == _COMMA else (used_end, end)
    return True


def _in_object(used: Text, at: int, text: Text, i: int) -> bool | tuple[int, int]:
    if used[at] != _OPEN_OBJECT:
        return False
    left, i = _members(used, at), i + 1
    while i < len(text):
        if text[i] == _CLOSE_OBJECT:
            return not left
        if CLOSE not in text[i:]:
            return any(name[:len(text) - i] == text[i:] for name in left)
        colon = text.index(CLOSE, i) + 1
        value_at = left.pop(text[i:colon], None)
        if value_at is None:
            return False
        i = colon + 1
        if i >= len(text):
            return True
        end = _value_end(text, i)
        if not 0 <= end < len(text):
            return value_at, i
        if normalised(text[i:end]) != used[value_at:_value_end(used, value_at)]:
            return False
        i = end
        if text[i] == _COMMA:
            if not left:
                return False
            i += 1
    return True


def _members(text: Text, at: int) -> dict[Text, int]:
    """Name with its quotes -> where its value stands, of the object at `at`."""
    found: dict[Text, int] = {}
    at += 1
    while text[at] != _CLOSE_OBJECT:
        colon = text.index(CLOSE, at) + 1
        found[text[at:colon]] = colon + 1
        end = _value_end(text, colon + 1)
        at = end + 1 if text[end] == _COMMA else end
    return found


def _value_end(text: Text, at: int) -> int:
    """Where the value at `at` ends; -1 where a string or container is cut off. A number may end with the text."""
    depth = 0
    while at < len(text):
        point = text[at]
        if point == _QUOTE:
            try:
                at = text.index(CLOSE, at)
            except ValueError:
                return -1
        elif point in (_OPEN_ARRAY, _OPEN_OBJECT):
            depth += 1
        elif point in (_CLOSE_ARRAY, _CLOSE_OBJECT):
            depth -= 1
            if depth < 0:
                return at
        elif point == _COMMA and not depth:
            return at
        at += 1
        if not depth and point in (_QUOTE, _CLOSE_ARRAY, _CLOSE_OBJECT):
            return at
    return -1 if depth else at
