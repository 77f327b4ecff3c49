"""The algebra of automata against interegular's, and against sets of words."""

from __future__ import annotations

import itertools
import re

import interegular
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar.budget import Budget, Limits
from grammar.errors import GrammarTooLarge
from grammar.text import automata, regex
from grammar.text.automata import Dfa

LETTERS = "abc"
WORDS = ["".join(chars) for n in range(5) for chars in itertools.product(LETTERS + "x", repeat=n)]
PATTERNS = ["(a|b)*abb", "a{2,5}b{0,3}", "[a-c]+(x|yz)*", "(ab|a)(bc|c)?", "((a|b)c){1,4}", "a*b*c*", "[^a]*", "a?b?c?", "",
            "(abc|ab|a)*", "[ab]{3}", "a.*c"]


def made(pattern: str) -> Dfa:
    dfa = automata.from_regex(regex.parse(pattern), Budget())
    assert dfa is not None
    return dfa


def theirs(pattern: str) -> interegular.FSM:
    return interegular.parse_pattern(pattern).to_fsm()


def accepted(dfa: Dfa | None) -> set[str]:
    return {word for word in WORDS if dfa is not None and dfa.accepts(word)}


def as_fsm(dfa: Dfa | None) -> interegular.FSM:
    """Our automaton as one of interegular's over single characters, for its own test of equality."""
    characters = "abcxyz-\n"
    alphabet = interegular.fsm.Alphabet.from_groups(*characters, {interegular.fsm.anything_else})
    if dfa is None:
        return interegular.fsm.null(alphabet)
    table: dict[int, dict[object, int]] = {}
    for state, out in enumerate(dfa.edges):
        table[state] = {}
        for symbol in (*characters, interegular.fsm.anything_else):
            point = ord(symbol) if isinstance(symbol, str) else ord("é")
            for first, last, target in out:
                if first <= point <= last:
                    table[state][alphabet[symbol]] = target
    return interegular.FSM(
        alphabet=alphabet, states=set(range(len(dfa.edges))), initial=0, map=table,
        finals={state for state, final in enumerate(dfa.accepting) if final}, __no_validation__=True)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_automaton_is_equivalent_to_interegulars(pattern):
    assert as_fsm(made(pattern)).equivalent(theirs(pattern))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_automaton_has_as_few_states_as_interegulars_reduced_one(pattern):
    """Theirs keeps a state for what is refused; ours has none."""
    reduced = theirs(pattern).reduce()
    assert len(made(pattern).edges) == sum(reduced.islive(state) for state in reduced.states)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(PATTERNS, PATTERNS))[::7])
def test_intersection_union_and_difference_are_those_of_interegular(left, right):
    ours, other = made(left), made(right)
    a, b = theirs(left), theirs(right)
    assert as_fsm(automata.intersection(ours, other, Budget())).equivalent(a & b)
    assert as_fsm(automata.union([ours, other], Budget())).equivalent(a | b)
    assert as_fsm(automata.difference(ours, other, Budget())).equivalent(a - b)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_complement_is_all_other_texts(pattern):
    dfa = made(pattern)
    assert accepted(automata.complement(dfa, Budget())) == set(WORDS) - accepted(dfa)
    assert as_fsm(automata.complement(automata.complement(dfa, Budget()), Budget())).equivalent(theirs(pattern))


def test_the_complement_holds_no_surrogates():
    everything = automata.complement(made("a"), Budget())
    assert everything is not None
    assert not everything.accepts("\ud800")
    assert everything.accepts("\ud7ff\ue000")


def test_the_complement_of_nothing_is_everything_and_the_reverse():
    assert accepted(automata.complement(None, Budget())) == set(WORDS)
    assert automata.complement(automata.ANY_TEXT, Budget()) is None


patterns = st.recursive(
    st.sampled_from(["a", "b", "c", "[ab]", "[^b]", "x"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda p: f"({'|'.join(p)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}"])).map(lambda p: f"({p[0]}){p[1]}")), max_leaves=8)


@given(patterns)
@settings(max_examples=60, deadline=None)
def test_a_random_regex_is_equivalent_to_interegulars(pattern):
    assert as_fsm(made(pattern)).equivalent(theirs(pattern))


@given(patterns, patterns, st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_random_products_accept_what_sets_of_words_say(left, right, n):
    one, other = made(left), made(right)
    a, b = accepted(one), accepted(other)
    assert accepted(automata.intersection(one, other, Budget())) == a & b
    assert accepted(automata.difference(one, other, Budget())) == a - b
    assert accepted(automata.union([one, other], Budget())) == a | b
    assert accepted(automata.at_least(one, n, Budget())) == {word for word in a if len(word) >= n}
    assert accepted(automata.at_most(one, n, Budget())) == {word for word in a if len(word) <= n}
    assert (automata.intersection(one, other, Budget()) is None) == (as_fsm(one) & as_fsm(other)).empty()
    assert (automata.difference(one, other, Budget()) is None) == (as_fsm(one) - as_fsm(other)).empty()


@given(patterns, patterns)
@settings(max_examples=40, deadline=None)
def test_every_state_of_a_result_leads_to_an_accepting_one(left, right):
    for dfa in (automata.intersection(made(left), made(right), Budget()), automata.difference(made(left), made(right), Budget())):
        assert dfa is None or min(dfa.shortest()) >= 0


@given(patterns)
@settings(max_examples=60, deadline=None)
def test_minimising_keeps_the_texts_and_adds_no_states(pattern):
    doubled = automata.union([made(pattern), made(f"({pattern})|({pattern})")], Budget())
    fewest = automata.minimised(doubled, Budget())
    assert fewest is not None
    assert accepted(fewest) == accepted(doubled)
    assert len(fewest.edges) == len(made(pattern).edges)


@pytest.mark.parametrize(("pattern", "number"), [
    ("", 1), ("a?b?c?", 8), ("[a-z]{2}", 676), ("(ab|a)(bc|c)?", 5), ("[0-9]{20}", 10**20), ("a*", None), ("a(bc)+", None),
    ("ab|ac", 2)])
def test_texts_are_counted(pattern, number):
    assert automata.count(made(pattern)) == number


def test_nothing_has_no_texts():
    assert automata.count(None) == 0


@given(st.sets(st.text("ab", max_size=4), min_size=1, max_size=12))
def test_words_are_accepted_and_nothing_else(words):
    assert accepted(automata.from_words(words)) == words
    assert automata.count(automata.from_words(words)) == len(words)


def test_a_prefix_a_separator_and_a_list():
    dfa = made("a|bb")
    assert accepted(automata.prefixed("c", dfa)) == {"ca", "cbb"}
    joined = automata.separated(dfa, "x", dfa)
    assert automata.count(joined) == 4
    assert all(joined.accepts(text) for text in ("axa", "axbb", "bbxa", "bbxbb"))
    assert accepted(automata.listed(dfa, "c")) == {word for word in WORDS if re.fullmatch("(a|bb)(c(a|bb))*", word)}


def test_a_guest_stands_wherever_the_host_has_its_place():
    inside = automata.embedded(made("x(y1c|-1z)*"), "1", made("a|b+"))
    assert as_fsm(inside).equivalent(theirs("x(y(a|b+)c|-(a|b+)z)*"))


def test_weights_are_added_up_along_a_text():
    light = automata.at_most_weight(made("[aé日😀]*"), lambda point: len(chr(point).encode()), 5, Budget())
    assert light is not None
    words = ["".join(chars) for n in range(6) for chars in itertools.product("aé日😀", repeat=n)]
    assert [word for word in words if light.accepts(word)] == [word for word in words if len(word.encode()) <= 5]
    assert not light.accepts("aaaaaa")


def test_a_length_beyond_the_limit_of_states_is_refused():
    with pytest.raises(GrammarTooLarge):
        automata.at_least(made("a*"), 60_000, Budget())
    with pytest.raises(GrammarTooLarge):
        automata.intersection(made("(a{7})*"), made("(a{9})*"), Budget(Limits(automaton_states=62)))


def test_distances_are_the_fewest_characters_to_the_end():
    dfa = made("abc|b")
    assert dfa.shortest()[0] == 1
    assert sorted(dfa.shortest()) == [0, 1, 1, 2]
