"""Guesses by look-up: what is found, and when guessing pauses."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from runtime.speculation import FIRST_GUESS, LONGEST_MATCH, LONGEST_PAUSE, MOST_GUESSED, SHORTEST_MATCH, SHORTEST_PAUSE, Eagerness
from runtime.speculation import looked_up as look_up


def looked_up_plainly(tokens: list[int], most: int) -> tuple[int, ...]:
    """Longest match first, the latest of equal ones."""
    for n in range(min(LONGEST_MATCH, len(tokens) - 1), SHORTEST_MATCH - 1, -1):
        for begin in range(len(tokens) - n - 1, -1, -1):
            if tokens[begin:begin + n] == tokens[-n:]:
                copy = list(tokens)
                for i in range(most):
                    copy.append(copy[begin + n + i])
                return tuple(copy[len(tokens):])
    return ()


@given(st.lists(st.sampled_from([0, 1, 256, 65536, 2**24, 257]), max_size=40), st.integers(0, 8))
def test_a_guess_is_what_followed_the_last_time(tokens: list[int], most: int) -> None:
    assert look_up(array("i", tokens), most) == looked_up_plainly(tokens, most)


def test_the_longest_match_wins_over_a_later_one() -> None:
    assert look_up(array("i", [1, 2, 3, 4, 50, 9, 3, 4, 60, 1, 2, 3, 4]), 1) == (50,)


def test_without_an_earlier_occurrence_nothing_is_guessed() -> None:
    assert look_up(array("i", range(100)), 4) == ()
    assert look_up(array("i", [5]), 4) == look_up(array("i"), 4) == ()


def test_right_guesses_grow_and_a_wrong_one_pauses_longer_each_time() -> None:
    eager = Eagerness()
    eager.learn(FIRST_GUESS, FIRST_GUESS, FIRST_GUESS + 1)
    assert eager.most == 2 * FIRST_GUESS
    for _ in range(10):
        eager.learn(eager.most, eager.most, eager.most + 1)
    assert eager.most == MOST_GUESSED
    pauses = []
    for _ in range(10):
        eager.learn(1, 0, 1)
        assert eager.most == 0
        pauses.append(eager.pause)
        while eager.pause:
            eager.learn(0, 0, 1)
        assert eager.most == FIRST_GUESS
    assert pauses[0] == SHORTEST_PAUSE and pauses[1] == 2 * SHORTEST_PAUSE and pauses[-1] == LONGEST_PAUSE


def test_a_guess_that_is_partly_right_sets_the_next_ones_length() -> None:
    eager = Eagerness(n=8)
    eager.learn(8, 5, 6)
    assert eager.most == 5
