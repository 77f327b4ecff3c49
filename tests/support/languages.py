"""What a grammar lets through, found by trying every text; and what it ought to, found by sets of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grammar import CompiledGrammar, Matcher

# A tree of ("text", t), ("rule", name), ("sequence", [parts]), ("choice", [parts]), ("repeat", part, least, most or None).
Tree = tuple[Any, ...]


def language(grammar: CompiledGrammar, alphabet: str, longest: int) -> set[str]:
    """All texts of at most `longest` characters that a grammar over byte tokens lets through to its end."""
    found: set[str] = set()
    open_texts: list[tuple[str, Matcher]] = [("", grammar.new_state())]
    while open_texts:
        text, matcher = open_texts.pop()
        if matcher.may_end:
            found.add(text)
        if len(text) < longest:
            for char in alphabet:
                after = matcher.fork()
                if all(after.accept(byte) for byte in char.encode()):
                    open_texts.append((text + char, after))
    return found


def words(rules: Mapping[str, Tree], start: str, longest: int) -> set[str]:
    """All texts of at most `longest` characters of a rule: the least fixed point of its equations, by brute force."""
    known: dict[str, set[str]] = {name: set() for name in rules}
    while True:
        following = {name: _words(tree, known, longest) for name, tree in rules.items()}
        if following == known:
            return known[start]
        known = following


def _words(tree: Tree, known: Mapping[str, set[str]], longest: int) -> set[str]:
    match tree:
        case ("text", text):
            return {text}
        case ("rule", name):
            return known[name]
        case ("choice", parts):
            return set().union(*(_words(part, known, longest) for part in parts))
        case ("sequence", parts):
            found = {""}
            for part in parts:
                found = _joined(found, _words(part, known, longest), longest)
            return found
        case ("repeat", part, least, most):
            return _repeated(_words(part, known, longest), least, most, longest)
    raise AssertionError(tree)


def _repeated(part: set[str], least: int, most: int | None, longest: int) -> set[str]:
    found, last = set[str](), {""}
    for n in range(1 + (longest + least if most is None else most)):
        if n >= least:
            found |= last
        last = _joined(last, part, longest)
    return found


def _joined(left: set[str], right: set[str], longest: int) -> set[str]:
    return {x + y for x in left for y in right if len(x) + len(y) <= longest}


def written(tree: Tree, repeat: Callable[[str, int, int | None], str]) -> str:
    """A tree as a rule's body; `repeat` writes repetitions, which is where forms of grammars differ."""
    match tree:
        case ("text", text):
            return f'"{text}"'
        case ("rule", name):
            return str(name)
        case ("choice", parts):
            return f"({' | '.join(written(part, repeat) for part in parts)})"
        case ("sequence", parts):
            return f"({' '.join(written(part, repeat) for part in parts)})"
        case ("repeat", part, least, most):
            return repeat(f"({written(part, repeat)})", least, most)
    raise AssertionError(tree)
