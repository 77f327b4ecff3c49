"""Answers that are guessed ahead are, token for token, those that come without guessing; only the steps are fewer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime.protocol import Delta, Finished, GrammarSpec, Usage
from tests.runtime.test_engine import make_engine, prompts, request, run, text, tokens
from tests.support.counting_model import CountingModel

CIRCLES = {"sees": 2, "vocabulary_size": 300}


def both(asked, n_blocks: int = 128, model: dict | None = None, rows: int = 8):
    """(events, engine) without guessing and with it."""
    made = []
    for guessing_rows in (0, rows):
        counting = CountingModel(**(CIRCLES if model is None else model))
        engine = make_engine(n_blocks=n_blocks, model=counting, guessing_rows=guessing_rows)
        made.append((run(engine, *asked), engine))
    return made


def counted(finished: Finished) -> Usage:
    """The usage, less what a grammar forced: where a guess has named such a token already, it wasn't forced any more."""
    return replace(finished.usage, forced_tokens=0)


def assert_same(plain, guessed) -> None:
    assert plain.keys() == guessed.keys()
    for name in plain:
        assert tokens(guessed[name]) == tokens(plain[name])
        assert text(guessed[name]) == text(plain[name])
        assert guessed[name][-1].reason == plain[name][-1].reason
        assert counted(guessed[name][-1]) == counted(plain[name][-1])


def repeating(n: int = 90) -> list[int]:
    return [*range(40, 60)] * (n // 20)


def test_an_answer_in_circles_takes_fewer_steps_and_stays_the_same() -> None:
    (plain, slow), (guessed, fast) = both([request("a", [1, 2, 3], n=300)], model={"sees": 1, "vocabulary_size": 60})
    assert_same(plain, guessed)
    assert fast.stats().steps < slow.stats().steps / 3
    assert fast.stats().guessed_right_tokens > 200


def test_wrong_guesses_change_nothing_and_soon_stop() -> None:
    eight_tokens_at_random = {"vocabulary_size": 58}
    (plain, _), (guessed, engine) = both([request("a", [1, 2, 3], n=400)], model=eight_tokens_at_random)
    assert_same(plain, guessed)
    stats = engine.stats()
    assert 0 < stats.guessed_right_tokens < stats.guessed_tokens < 120


@pytest.mark.parametrize("temperature", [0.0, 0.7, 2.0])
def test_draws_at_random_are_the_same_for_the_same_seed(temperature: float) -> None:
    asked = [request(str(seed), [1, 2, seed], n=80, temperature=temperature, seed=seed) for seed in range(5)]
    (plain, _), (guessed, engine) = both(asked, model={"sees": 1, "doubt": 2, "vocabulary_size": 60})
    assert_same(plain, guessed)
    assert engine.stats().guessed_right_tokens > 0


def test_logprobs_are_the_same_and_one_for_each_token() -> None:
    asked = [request("a", [1, 2, 3], n=100, logprobs=2)]
    (plain, _), (guessed, _) = both(asked, model={"sees": 1, "vocabulary_size": 60})
    assert_same(plain, guessed)
    entries = [[entry for event in events["a"] if isinstance(event, Delta) for entry in event.logprobs]
               for events in (plain, guessed)]
    assert entries[0] == entries[1] and len(entries[1]) == 100


def test_a_stop_string_within_a_guess_ends_the_answer_where_it_would_have_ended() -> None:
    model = {"sees": 1, "vocabulary_size": 60}
    whole = text(both([request("a", [1, 2, 3], n=100)], model=model)[0][0]["a"])
    asked = [request("a", [1, 2, 3], n=100, stop=(whole[70:73],))]
    (plain, _), (guessed, _) = both(asked, model=model)
    assert_same(plain, guessed)
    assert plain["a"][-1].reason == "stop"


@pytest.mark.parametrize("n", range(1, 14))
def test_an_answer_ends_at_max_tokens_even_within_a_guess(n: int) -> None:
    (plain, _), (guessed, _) = both([request("a", repeating(), n=n)], model={"sees": 1, "vocabulary_size": 60})
    assert_same(plain, guessed)
    assert len(tokens(guessed["a"])) == n


def test_a_guess_that_the_grammar_refuses_is_cut_there() -> None:
    spec = GrammarSpec("regex", "(ab|cd|e){30}")
    asked = [request("a", [ord(c) for c in "abcde" * 6], n=200, grammar=spec)]
    (plain, _), (guessed, engine) = both(asked)
    assert_same(plain, guessed)
    assert engine.stats().guessed_tokens > 0


def test_penalties_switch_guessing_off() -> None:
    (plain, _), (guessed, engine) = both([request("a", repeating(), n=60, frequency_penalty=0.5)], model={"sees": 1})
    assert_same(plain, guessed)
    assert engine.stats().guessed_tokens == 0


def test_in_a_full_pool_nobody_gives_way_for_a_guess() -> None:
    asked = [request(str(i), [10 + i] * 9, n=40) for i in range(6)]
    (plain, slow), (guessed, fast) = both(asked, n_blocks=20, model={"sees": 1, "vocabulary_size": 60})
    for name in plain:
        assert tokens(guessed[name]) == tokens(plain[name])
        assert isinstance(guessed[name][-1], Finished)
    assert fast.stats().preemptions <= slow.stats().preemptions


def test_a_large_batch_is_not_guessed() -> None:
    asked = [request(str(i), [*repeating(), i], n=10) for i in range(6)]
    (_, _), (_, engine) = both(asked, n_blocks=300, model={"sees": 1, "vocabulary_size": 60}, rows=2)
    few = make_engine(n_blocks=300, model=CountingModel(sees=1, vocabulary_size=60), guessing_rows=2)
    run(few, *asked[:2])
    assert few.stats().guessed_tokens > engine.stats().guessed_tokens


def test_many_prompts_together_are_the_same_with_and_without_guessing() -> None:
    asked = [request(str(i), p + p, n=30) for i, p in enumerate(prompts(8, seed=5))]
    (plain, _), (guessed, _) = both(asked)
    for name in plain:
        assert tokens(guessed[name]) == tokens(plain[name])
