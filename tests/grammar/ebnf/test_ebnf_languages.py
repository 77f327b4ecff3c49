"""The texts of context-free grammars, against Lark's Earley parser and against brute force."""

from __future__ import annotations

import itertools
import random

import lark
import pytest

from grammar import SchemaError, Vocabulary
from grammar.ebnf.compile import compile_ebnf
from tests.support.languages import Tree, language, words, written

# Each with the alphabet over which all texts of some length are tried.
GRAMMARS = {
    "no greedy lexer": ('start: ("li" | "lis") "ed"', "lised", 6),
    "direct left recursion": ('start: start "+" t | t\nt: "x" | "(" start ")"', "x+()", 5),
    "left recursion through another rule": ('start: a "x" | "y"\na: b "z" | "w"\nb: start "v" | a', "xyzwv", 4),
    "left recursion behind what may be missing": ('start: n start "x" | "y"\nn: "z" | ', "xyz", 6),
    "both ends": ('start: start "+" start | "-" start | "x"', "x+-", 6),
    "right recursion": ('start: "x" start | "y"', "xy", 6),
    "right recursion through another rule": ('start: "x" a | "z"\na: "y" start | "x" a | "w"', "xyzw", 5),
    "recursion in the middle": ('start: "x" start "y" | ', "xy", 8),
    "palindromes": ('start: "x" start "x" | "y" start "y" | "x" | "y" | ', "xy", 8),
    "optional parts in a row": ('start: ["x"] a? "y"? ["z"]\na: "w" a?', "xyzw", 5),
    "nested loops": ('start: (("x" a)* "y")+\na: "z" a "z" | "w"', "xyzw", 5),
    "counted": ('start: a~2..3 "y"~2\na: "x" a "z" | "x"', "xyz", 7),
    "a rule that leads to itself alone": ("start: a\na: a | start | \"x\"", "xy", 4),
    "ambiguous": ('start: start start | "x" | "xx"', "xy", 6),
    "several ways to the same text": ('start: a | b\na: "x"* "y"\nb: "x" "x" b | "y"', "xy", 6),
    "a terminal longer than its twin": ('start: A B\nA: "x"+\nB: "xy" | "y"', "xy", 6),
    "unused and useless rules": ('start: "x" | dead "y"\ndead: dead "z"\nunused: "q"', "xyz", 3),
    "precedence of calls": ('start: s ("+" s)*\ns: p ("*" p)*\np: "x" | "(" start ")"', "x+*(", 5),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_texts_are_those_of_larks_parser(vocabulary: Vocabulary, name: str) -> None:
    text, alphabet, longest = GRAMMARS[name]
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")

    def accepted(candidate: str) -> bool:
        try:
            parser.parse(candidate)
        except lark.exceptions.LarkError:
            return False
        return True

    chars = sorted(set(alphabet))
    candidates = ("".join(c) for n in range(longest + 1) for c in itertools.product(chars, repeat=n))
    ours = language(compile_ebnf(text, vocabulary), "".join(chars), longest)
    # Lark needs a millisecond for each text: all that we accept, and every seventh of those that we do not.
    checked = [c for n, c in enumerate(candidates) if c in ours or n % 7 == 0 or len(c) < 3]
    assert ours == {c for c in checked if accepted(c)}
    assert any(len(text) > 2 for text in ours) or name in ("unused and useless rules", "a rule that leads to itself alone")


def random_tree(rng: random.Random, names: list[str], depth: int) -> Tree:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return ("text", rng.choice(["x", "y", "z", "xy", ""])) if rng.random() < 0.55 else ("rule", rng.choice(names))
    if kind < 0.8:
        parts = [random_tree(rng, names, depth - 1) for _ in range(rng.choice([2, 2, 3]))]
        return "sequence" if kind < 0.55 else "choice", parts
    least, most = rng.choice([(0, 1), (0, None), (1, None), (1, 2), (0, 2), (2, 3)])
    return "repeat", random_tree(rng, names, depth - 1), least, most


def counted(body: str, least: int, most: int | None) -> str:
    return f"{body}{{{least},{'' if most is None else most}}}"


@pytest.mark.parametrize("seed", range(40))
def test_random_grammars_have_the_texts_that_brute_force_finds(vocabulary: Vocabulary, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        names = ["root", "a", "b"][:rng.randint(1, 3)]
        rules = {name: random_tree(rng, names, rng.randint(1, 3)) for name in names}
        expected = words(rules, "root", 5)
        text = "\n".join(f"{name} ::= {written(tree, counted)}" for name, tree in rules.items())
        try:
            grammar = compile_ebnf(text, vocabulary)
        except SchemaError as error:
            assert "no text can be derived" in str(error)
            assert expected == set()
        else:
            assert language(grammar, "xyz", 5) == expected, text
