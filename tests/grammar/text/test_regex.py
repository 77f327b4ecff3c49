"""Regexes against Python's `re` (text by text), in both readings."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar import SchemaError, compile_choice, compile_regex
from grammar.budget import Budget, Limits
from grammar.errors import GrammarTooLarge, PatternError
from grammar.text import automata, regex

PATTERNS = [
    "", "a", "abc", "a|b|", "a*", "a+?b", "(ab)*?c", "a{2}", "a{2,}", "a{0,3}b", "(a|b){1,3}c?", "a{0}b", "[abc]", "[^abc]",
    "[a-c1-3]+", "[-a]", "[a-]", "[.]", "a.c", r"\d+", r"\D", r"\w\W", r"\s*\S+", r"[\d]x[^\d]", r"[\w-]+", r"\.\*\\",
    r"\x61\u0062", r"[\x61-\u0063]+", r"\-\_\/", r"[\b]",
    "^a", "a$", "^a$", "^(a|b$)", "(^a|b)c", "^", "$", "^$", "a|^b$|c$", "x*^a", "a$b*", "(a|ab)(c|bcd)", "(list|listen)ed",
    "((a))(?:b)", "(?:^a|b$)+", "(?:^|b)(?:c|$)", r"\Aa|b\Z",
    "(?P<name>a)b", r"\t|\n", "a{,", "a{x}", "}", "]", "[é-ü]", "😀+", "(a*)*b", "(a|aa)+$",
    r"(?:\B)+a", r"(?:(?=b)|^)*a", r"(?:(?=a)|^){2,3}b?a", r"[\]\\^]", r"\/",
    "(?=a)", "(?!a)", "a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", "(?<=ab|c1)1", "^(?!abc$).*$", "^(?=.*a)(?=.*b)(?!.*c).{2,4}$",
    "(?:(?=a)[abc])+b", "(?:a(?!b))*", "(?=(?=a)[ab]b)", "(?!(?!a))", "(?!(?!a)b)c", "(?=a$)a", "(?<=^a)b", "(?<!^)a",
    "(?<=(?<!b)a)c", "x(?=(?:a(?=b)|c)*$)", r"\ba", r"a\b", r"a\Bb", r"\B1", r"\b\B", r"(?:\ba+\b-?)+", r"(?=.*\bab\b)a",
    "(?s:.)a", "(?s).b", "(?m)^a", "(?m:a$)b*", "(?i)ab", "(?i:a)b", "(?i)[^a]b", "(?-i:a)b", "(?i:a(?-i:b))"]
ALPHABET = "abc123 .xé\n-^\\}{,]/d"


def whole(pattern: str) -> automata.Dfa | None:
    return automata.from_regex(regex.parse(pattern), Budget())


def search(pattern: str) -> automata.Dfa | None:
    return automata.from_regex(regex.searched(regex.parse(pattern)), Budget())


def outer_search(pattern: str) -> automata.Dfa | None:
    tree = regex.parse_outer(pattern)
    return search(pattern) if tree is None else automata.from_regex(regex.searched(tree), Budget())


def accepts(dfa: automata.Dfa | None, text: str) -> bool:
    return dfa is not None and dfa.accepts(text)


def texts(pattern: str, n: int = 400) -> list[str]:
    source = random.Random(pattern)
    letters = ALPHABET + "".join(c for c in pattern if c.isalnum()) * 2
    if re.search(r"\\[dDsSwWbB]", pattern):    # the dialects agree on these in ASCII only
        letters = "".join(c for c in letters if c.isascii())
    return ["", *("".join(source.choice(letters) for _ in range(source.randrange(7))) for _ in range(n))]


def with_strict_end(pattern: str) -> re.Pattern[str]:
    """Python's reading of a pattern, but $ is the very end, as in ECMA-262, where no flag says otherwise."""
    return re.compile(pattern if "(?m" in pattern else pattern.replace("$", r"\Z"), re.ASCII)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_texts_match_as_with_re(pattern):
    same, dfa = with_strict_end(pattern), whole(pattern)
    assert [t for t in texts(pattern) if bool(same.fullmatch(t)) != accepts(dfa, t)] == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_texts_are_found_in_as_with_re(pattern):
    same, dfa = with_strict_end(pattern), search(pattern)
    assert [t for t in texts(pattern) if bool(same.search(t)) != accepts(dfa, t)] == []


def patterns_of(depth: int) -> st.SearchStrategy[str]:
    """Random patterns that the dialects read alike on the texts over a, b and a hyphen."""
    leaf = st.sampled_from(["a", "b", "[ab]", "[^a]", "-", "^", r"\Z", "", r"\b", r"\B", "(?<=a)", "(?<!b)", "(?<=^a|b)"])
    if not depth:
        return leaf
    inner = patterns_of(depth - 1)
    return st.one_of(
        leaf, st.tuples(inner, inner, inner).map("".join), st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
        inner.map(lambda one: f"(?={one})"), inner.map(lambda one: f"(?!{one})"))


SHORT_TEXTS = ["".join(chars) for n in range(6) for chars in itertools.product("ab-", repeat=n)]


@given(patterns_of(4))
@settings(max_examples=150, deadline=None)
def test_random_patterns_with_look_around_find_what_re_finds(pattern):
    same, found = re.compile(pattern, re.ASCII), search(pattern)
    assert [t for t in SHORT_TEXTS[1:] if bool(same.search(t)) != accepts(found, t)] == []     # on "" Python's \B is odd


DOUBTFUL = [
    ".", "a.b", r"\d", r"\D", r"\w+", r"\W", r"\s", r"\S", r"^\w*$", "a$", "^a$", "(?!a|$)", r"[^\w-]", r"[\W\d]", r"\bé",
    r"é\b", r"\Bé", r"a\B",
    r"^(?!.*\d)", r"(?<!\w)a", r"(?=\W)", "(?i)k", "(?i)[^k]", "(?i)é", "(?i)ß", r"(?m)a$", r"(?!\b)", "^.$", r"(?<=\s)a",
    r"\ud83d\ude00"]
ECMA_SPACES = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
DOUBTFUL_LETTERS = "aké٣ⅧK\u017fẞßÉ1_- \n\r\u2028\u2003\ufeff\x1c\x85😀"


@pytest.mark.parametrize("pattern", DOUBTFUL)
def test_the_inner_reading_is_within_each_dialect_and_the_outer_one_around_them(pattern):
    """ECMA-262 is spelt in Python's dialect here: its spaces, its line ends, and $ at the very end."""
    ecma = pattern if "(?" in pattern and "i" in pattern else f"(?a:{pattern})" if "(?m" not in pattern else pattern
    for theirs, ours in ((r"\s", f"[{ECMA_SPACES}]"), (r"\S", f"[^{ECMA_SPACES}]"), ("$", "$" if "(?m" in pattern else r"\Z")):
        ecma = ecma.replace(theirs, ours)
    readings = [re.compile(pattern), re.compile(ecma)]
    inner, outer = search(pattern), outer_search(pattern)
    words = ["".join(chars) for n in range(4) for chars in itertools.product(DOUBTFUL_LETTERS, repeat=n)][:3000]
    for word in words:
        found = [bool(one.search(word)) for one in readings]
        assert not accepts(inner, word) or all(found), ascii(word)
        assert accepts(outer, word) or not any(found), ascii(word)


@pytest.mark.parametrize("pattern", ["abc", "^a+[b-d]*", "(?!a)b", "^a|b{3}", "[é-ü]", r"\x41", "(?=a)(?<=b)"])
def test_a_pattern_that_all_read_alike_has_one_reading(pattern):
    assert regex.parse_outer(pattern) is None


@pytest.mark.parametrize("pattern", ["^b^a", "a$b", "[^\\0-\\u{10FFFF}]", "(?:$a)", "[]", "a(?=b)c", "(?!)", r"a\Bé\b-(?<!-)"])
def test_a_regex_that_matches_nothing_has_no_automaton(pattern):
    assert whole(pattern) is None


@pytest.mark.parametrize(("pattern", "char", "matches"), [
    (r"\d", "٣", False), (r"\D", "٣", False), (r"\w", "é", False), (r"\W", "é", False), (r"\s", "\u2003", True),
    (r"\s", "\ufeff", False), (r"\S", "\ufeff", False), (r"\s", "\x1c", False), (r"\S", "\x85", False),
    (r"[^\d]", "٣", False), (r"[^\w]", "é", False), (r"\D", "x", True), (r"\W", "-", True), (".", "\u2028", False),
    (".", "\r", False), ("[^]", "\r", True), (r"(?s).", "\r", True)])
def test_where_dialects_differ_only_what_both_match_matches(pattern, char, matches):
    assert accepts(whole(pattern), char) == matches


@pytest.mark.parametrize(("pattern", "yes", "no"), [
    (r"\p{L}", "aЖ文", "1-_ "), (r"\p{Lu}", "AЖ", "aж1"), (r"\p{Letter}", "aé", "1"), (r"\p{gc=Nd}", "1٣", "aⅧ"),
    (r"\P{L}", "1-٣", "aé"), (r"\p{ASCII}", "a~\0", "é"), (r"\p{Any}", "a😀", ""), (r"[\p{Lu}\d]", "A1", "a"),
    (r"[^\p{L}]", "1 ", "aé"), (r"\p{Uppercase}", "AⅧ", "a"), (r"\p{White_Space}", " \u2003\x85", "\x1ca"), (r"\pL", "a", "1"),
    (r"\p{XID_Start}", "aé", "_1"), (r"\p{Cn}", "", "a"), (r"\u{1F600}", "😀", "a"), (r"\cA", "\x01", "A"), (r"\0", "\0", "0"),
    (r"[\w-.]", "a-.", "é "), (r"[a-\d]", "a-5", "b"), (r"[\d-x]", "-x1", "y"), (r"\_", "_", "\\"), ("(?i)K", "kK", "\u212a"),
    ("(?i)ß", "ßẞ", "s")])
def test_characters_of_properties_and_of_lenient_spellings(pattern, yes, no):
    """The expected characters are by the Unicode Character Database and by ECMA-262, Annex B."""
    dfa = whole(pattern)
    assert [c for c in yes if not accepts(dfa, c)] == []
    assert [c for c in no if accepts(dfa, c)] == []


@pytest.mark.parametrize(("pattern", "reason"), [
    (r"(a)\1", "backreference"), (r"\k<n>", "backreference"), (r"(?P=n)", "backreference"), ("a(?i)b", "inline flags"),
    ("(?x)a", "inline flags"), ("(?ii:a)", "twice"), ("(?a:b)", "inline flags"), ("(?>a)", "atomic"),
    ("(?(1)a|b)", "conditional"), ("(?#x)", "comment"), ("a++", "possessive"), (r"\p{Script=Greek}", "only general categories"),
    (r"\p{Greek}", "not supported"), (r"\p{L", "Unicode property"), (r"\07", "octal"), ("a{,3}", "two ways"), (r"a\z", "anchor"),
    (r"\N{DIGIT ONE}", "named"), ("(a", "never closed"), ("a)", "unbalanced"), ("*a", "nothing to repeat"),
    ("a**", "multiple repeat"), ("[a", "ends too early"), ("[]a]", "two ways"), ("[b-a]", "wrong order"),
    ("a{3,2}", "wrong order"), ("\\", "ends too early"),
    (r"\u12", "hexadecimal"), (r"\u{110000}", "escape"), (r"\y", "not supported"), ("^*", "anchor"), (r"\b+", "anchor"),
    ("(" * 200 + ")" * 200, "nested"), ("a{1000000}", "repetition"), ("(?<1a>b)", "group name")])
def test_what_is_not_supported_is_refused_by_name(pattern, reason):
    with pytest.raises(PatternError, match=re.escape(reason)):
        regex.parse(pattern)


@pytest.mark.parametrize("pattern", ["(?<=a(?=b))", r"(?<=\ba)", "(?<=a$)b"])
def test_a_look_behind_that_asks_what_comes_is_refused_by_name(pattern):
    with pytest.raises(PatternError, match="within a look-behind"):
        whole(pattern)


@pytest.mark.parametrize("pattern", [
    "(a+)+$", "(a|aa)+$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a|b|ab)*" * 30, "^[a-z]{0,5000}$", "^(ab?){1,3000}$",
    "(" * 99 + "a" + ")*" * 99, "|".join(f"word{n}" for n in range(2000)), "(?:(?=.*a.{12})(?=.*b.{12}).)*"])
def test_patterns_that_stall_backtracking_engines_compile_at_once(pattern):
    assert search(pattern) is not None


@pytest.mark.parametrize("pattern", [
    "^" + "".join(f"(?=.*{c})" for c in "abcdefghijklmnopqrstuvwxyz"), "(?!" * 40 + "a" + "a)" * 40,
    "".join(f"(?<={c}.{{10}})" for c in "abcdefgh"), "[01]*1[01]{20}x", "(?=(a|b)*a(a|b){12}c)(a|b|c)*", "(?:(?=a).){100000}"],
    ids=lambda pattern: pattern[:12])
def test_look_around_that_needs_too_many_states_is_refused(pattern):
    with pytest.raises(GrammarTooLarge):
        budget = Budget(Limits(automaton_steps=100_000))
        automata.from_regex(regex.searched(regex.parse(pattern, budget)), budget)


def test_a_compiled_regex_is_matched_as_a_whole(vocabulary, admits):
    grammar = compile_regex(r"(\d{3}-)?\d{4}|é+", vocabulary)
    for text in ("555-1234", "1234", "éé"):
        assert admits(grammar, text)
    for text in ("555-123", "12345", "", "x1234", "é1"):
        assert not admits(grammar, text)


def test_a_compiled_regex_may_look_around(vocabulary, admits):
    grammar = compile_regex(r"(?=.*\d)(?!.*--)[a-z\d-]{3,5}(?<!-)", vocabulary)
    for text in ("a-1", "1ab", "a1-b"):
        assert admits(grammar, text)
    for text in ("abc", "a--1", "a1-", "a1"):
        assert not admits(grammar, text)


def test_a_regex_of_the_empty_text_may_end_at_once(vocabulary, admits):
    assert admits(compile_regex("a*", vocabulary), "")
    assert admits(compile_regex("", vocabulary), "")


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "a$b"])
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
