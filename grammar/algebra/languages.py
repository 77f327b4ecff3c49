"""What the algebra asks of the texts of string shapes: is there one, is this one, and which ones where they are few."""

from __future__ import annotations

from collections.abc import Iterable

from grammar.algebra.shapes import String, StringSet
from grammar.text.dfa import Dfa
from grammar.text.texts import Texts

MOST_WORDS = 62    # a language of that many words at most is listed


class Languages:
    """The texts of string shapes and of names, each worked out once in a compilation."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._words: dict[tuple[String, int], tuple[str, ...] | None] = {}

    def matches(self, word: str, shape: String | StringSet) -> bool:
        """Whether a word has a shape, for every reader."""
        if isinstance(shape, StringSet):
            return word in shape.values
        return self._texts.accepts_inner(word, shape)

    def found(self, pattern: str, word: str) -> tuple[bool, bool]:
        """Whether a regex is found in a word: by every reader, and by some reader. Raises PatternError."""
        inner, outer = self._texts.search(pattern), self._texts.outer_search(pattern)
        sure = inner is not None and inner.accepts(word)
        return sure, sure or (outer is not inner and outer is not None and outer.accepts(word))

    def check(self, pattern: str) -> None:
        """Raise PatternError for a regex that is invalid or not supported."""
        self._texts.search(pattern)

    def shortest(self, shape: String) -> int | None:
        """The length of the shortest text of a shape; None where it has none."""
        if shape.plain:
            return None if shape.most is not None and shape.least > shape.most else shape.least
        automaton = self._texts.of(shape)
        if automaton is None:
            return None
        length = automaton.shortest()[0]
        return None if shape.most is not None and length > shape.most else length

    def words(self, shape: String | StringSet, most: int = MOST_WORDS) -> tuple[str, ...] | None:
        """The texts of a shape, where they are `most` at most; else None."""
        if isinstance(shape, StringSet):
            return shape.values if len(shape.values) <= most else None
        if shape.plain:
            return () if self.shortest(shape) is None else ("",) if shape.most == 0 else None
        if (shape, most) not in self._words:
            automaton = self._texts.of(shape)
            self._words[shape, most] = () if automaton is None else _words(automaton, shape.most, most)
        return self._words[shape, most]


def _words(automaton: Dfa, longest: int | None, most: int) -> tuple[str, ...] | None:
    """All texts of a trimmed automaton up to a length, breadth first; None where they are more than `most`."""
    found: list[str] = []
    layer: list[tuple[int, str]] = [(0, "")]
    length = 0
    while layer:
        found.extend(text for state, text in layer if automaton.accepting[state])
        if len(found) > most or len(layer) > 2 * most or length > len(automaton.edges) + most:
            return None
        if longest is not None and length == longest:
            break
        if sum(last - first + 1 for state, _ in layer for first, last, _ in automaton.edges[state]) > 4 * most:
            return None
        layer = [(target, text + char) for state, text in layer for char, target in _moves(automaton, state)]
        length += 1
    return tuple(found)


def _moves(automaton: Dfa, state: int) -> Iterable[tuple[str, int]]:
    for first, last, target in automaton.edges[state]:
        for point in range(first, last + 1):
            yield chr(point), target
