"""Regexes against Python's `re` (text by text) and interegular (as automata)."""

from __future__ import annotations

import random
import re

import interegular
import pytest

from grammar import SchemaError, automata, compile_choice, compile_regex, regex
from grammar.budget import Budget
from grammar.errors import PatternError

PATTERNS = [
    "", "a", "abc", "a|b|", "a*", "a+?b", "(ab)*?c", "a{2}", "a{2,}", "a{0,3}b", "(a|b){1,3}c?", "[abc]", "[^abc]", "[a-c1-3]+",
    "[-a]", "[a-]", "[.]", "a.c", r"\d+", r"\D", r"\w\W", r"\s*\S+", r"[\d]x[^\d]", r"[\w-]+", r"\.\*\\", r"\x61\u0062",
    r"[\x61-\u0063]+",
    "^a", "a$", "^a$", "^(a|b$)", "(^a|b)c", "^", "$", "^$", "a|^b$|c$", "x*^a", "a$b*", "(a|ab)(c|bcd)", "(list|listen)ed",
    "((a))(?:b)",
    "(?P<name>a)b", r"\t|\n", "a{,", "a{x}", "}", "]", "[é-ü]", "😀+", "(a*)*b", "(a|aa)+$", r"[\]\\^]", r"\/"]
ALPHABET = "abc123 .xé\n-^\\}{,]/d"


def whole(pattern: str) -> automata.Dfa | None:
    return automata.from_regex(regex.parse(pattern), Budget())


def search(pattern: str) -> automata.Dfa | None:
    return automata.from_regex(regex.searched(regex.parse(pattern)), Budget())


def texts(pattern: str, n: int = 400) -> list[str]:
    source = random.Random(pattern)
    letters = ALPHABET + "".join(c for c in pattern if c.isalnum()) * 2
    if re.search(r"\\[dDsSwW]", pattern):    # the dialects agree on these in ASCII only
        letters = "".join(c for c in letters if c.isascii())
    return ["".join(source.choice(letters) for _ in range(source.randrange(7))) for _ in range(n)]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_texts_match_as_with_re(pattern):
    same = re.compile(pattern.replace("$", r"\Z"), re.ASCII)    # ECMA's $ is the very end, Python's may stand before a newline
    dfa = whole(pattern)
    assert [t for t in texts(pattern) if bool(same.fullmatch(t)) != (dfa is not None and dfa.accepts(t))] == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_texts_are_found_in_as_with_re(pattern):
    same = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    dfa = search(pattern)
    assert [t for t in texts(pattern) if bool(same.search(t)) != (dfa is not None and dfa.accepts(t))] == []


@pytest.mark.parametrize("pattern", ["(a|b)*abb", "a{2,5}b{0,3}", "[a-c]+(x|yz)*", "(ab|a)(bc|c)?", "((a|b)c){1,4}", "a*b*c*"])
def test_the_automaton_accepts_just_the_words_of_interegulars(pattern):
    theirs, ours = interegular.parse_pattern(pattern).to_fsm(), whole(pattern)
    assert ours is not None
    words = [w for w, _ in zip(theirs.strings(), range(300), strict=False)]
    assert all(ours.accepts("".join(word)) for word in words)
    for text in texts(pattern, 2000):
        assert ours.accepts(text) == theirs.accepts(text)


def test_intersection_is_that_of_interegular():
    left, right = "(ab|c)*", "[a-c]{2,6}"
    theirs = interegular.parse_pattern(left).to_fsm() & interegular.parse_pattern(right).to_fsm()
    ours = automata.intersection(whole(left), whole(right), Budget())
    assert ours is not None
    for text in texts("abcabc", 3000):
        assert ours.accepts(text) == theirs.accepts(text)


@pytest.mark.parametrize("pattern", ["^b^a", "a$b", "[^\\s\\S]", "(?:$a)"])
def test_a_regex_that_matches_nothing_has_no_automaton(pattern):
    assert whole(pattern) is None


@pytest.mark.parametrize(("pattern", "char", "matches"), [
    (r"\d", "٣", False), (r"\D", "٣", False), (r"\w", "é", False), (r"\W", "é", False), (r"\s", "\u2003", False),
    (r"\S", "\u2003", False),
    (r"[^\d]", "٣", False), (r"[^\w]", "é", False), (r"\D", "x", True), (r"\W", "-", True), (".", "\u2028", False),
    (".", "\r", False)])
def test_where_dialects_differ_only_what_both_match_matches(pattern, char, matches):
    found = whole(pattern)
    assert found is not None
    assert found.accepts(char) == matches


@pytest.mark.parametrize(("pattern", "reason"), [
    ("(?=a)", "look-ahead"), ("(?!a)", "look-ahead"), ("(?<=a)", "look-behind"), ("(?<!a)b", "look-behind"),
    (r"(a)\1", "backreference"),
    (r"\k<n>", "backreference"), (r"(?P=n)", "backreference"), (r"\bx", "word boundary"), ("(?i)a", "inline flags"),
    ("(?>a)", "atomic"),
    ("a++", "possessive"), (r"\p{L}", "Unicode property"), (r"\Aa", "anchor"), (r"\07", "octal"), ("a{,3}", "two ways"),
    ("(a", "never closed"), ("a)", "unbalanced"), ("*a", "nothing to repeat"), ("a**", "multiple repeat"),
    ("[a", "ends too early"),
    ("[]a]", "empty class"), ("[b-a]", "wrong order"), (r"[\d-x]", "range"), ("a{3,2}", "wrong order"), ("\\", "ends too early"),
    (r"\u12", "hexadecimal"), (r"\y", "not supported"), ("^*", "anchor"), ("(" * 200 + ")" * 200, "nested"),
    ("a{1000000}", "repetition")])
def test_what_is_not_supported_is_refused_by_name(pattern, reason):
    with pytest.raises(PatternError, match=re.escape(reason)):
        regex.parse(pattern)


def test_a_compiled_regex_is_matched_as_a_whole(vocabulary, admits):
    grammar = compile_regex(r"(\d{3}-)?\d{4}|é+", vocabulary)
    for text in ("555-1234", "1234", "éé"):
        assert admits(grammar, text)
    for text in ("555-123", "12345", "", "x1234", "é1"):
        assert not admits(grammar, text)


def test_a_regex_of_the_empty_text_may_end_at_once(vocabulary, admits):
    assert admits(compile_regex("a*", vocabulary), "")
    assert admits(compile_regex("", vocabulary), "")


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a$b"])
def test_a_bad_regex_is_a_schema_error(vocabulary, pattern):
    with pytest.raises(SchemaError):
        compile_regex(pattern, vocabulary)


def test_a_choice_is_one_of_its_texts(vocabulary, admits):
    grammar = compile_choice(["yes", "yes!", "no", "日本", 'a "quoted" one'], vocabulary)
    for text in ("yes", "yes!", "no", "日本", 'a "quoted" one'):
        assert admits(grammar, text)
    for text in ("", "ye", "yess", "n", "日", "no!"):
        assert not admits(grammar, text)


@pytest.mark.parametrize("choices", [[], [1], ["\ud800"]])
def test_bad_choices_are_a_schema_error(vocabulary, choices):
    with pytest.raises(SchemaError):
        compile_choice(choices, vocabulary)
