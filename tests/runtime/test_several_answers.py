"""Several answers to one prompt: the prompt is computed once, and the answers don't notice each other."""

from __future__ import annotations

import pytest

from runtime.protocol import Delta, Finished
from tests.runtime.test_engine import make_engine, request, run, tokens
from tests.support.counting_model import CountingModel

BLOCK = 4           # tokens, as make_engine has it
N_TOKENS = 9        # of each answer


def choices(n: int, prompt: list[int], **params):
    return [request(f"a-{i}", prompt, n=N_TOKENS, temperature=1.5, seed=100 + i, **params) for i in range(n)]


def hot_engine(model: CountingModel | None = None, **settings):
    return make_engine(model=model or CountingModel(doubt=3), guessing_rows=0, **settings)


@pytest.mark.parametrize("n_prompt", [1, 3, 4, 5, 30, 31, 32, 33, 150])
@pytest.mark.parametrize("step_tokens", [8, 32, 256])
def test_answers_that_arrive_together_compute_their_prompt_once_but_for_its_last_block(n_prompt: int, step_tokens: int) -> None:
    model, n = CountingModel(doubt=3, context_tokens=1024), 6
    engine = hot_engine(model, n_blocks=200, step_tokens=step_tokens)
    finished = [events[-1].usage for events in run(engine, *choices(n, list(range(n_prompt)))).values()]
    shared = (n_prompt - 1) // BLOCK * BLOCK           # whole blocks, less the one with the last token, whose logits are wanted
    assert model.n_tokens_computed == n_prompt + (n - 1) * (n_prompt - shared) + n * (N_TOKENS - 1)
    assert [usage.cached_tokens for usage in finished] == [0] + [shared] * (n - 1)
    assert engine.stats().cached_tokens == (n - 1) * shared


def test_answers_hold_the_prompts_blocks_together() -> None:
    engine = hot_engine(n_blocks=100)
    for asked in choices(6, list(range(200))):
        engine.submit(asked)
    most = 0
    while not engine.idle:
        engine.step()
        engine.check()
        most = max(most, engine.stats().pools[0].blocks_used)
    assert most <= 200 // BLOCK + 6 * 3                # far from six times fifty


def test_the_answers_are_those_that_come_one_by_one_and_differ_by_their_seeds() -> None:
    asked = choices(6, list(range(30)))
    alone = [tokens(run(hot_engine(), each)[each.request_id]) for each in asked]
    together = run(hot_engine(), *asked)
    assert [tokens(together[each.request_id]) for each in asked] == alone
    assert len(set(map(tuple, alone))) == 6


@pytest.mark.parametrize("victim", [0, 2, 5])
@pytest.mark.parametrize("n_steps", [0, 1, 2, 5])
def test_one_that_is_cancelled_is_not_noticed_by_the_others(victim: int, n_steps: int) -> None:
    asked = choices(6, list(range(30)))
    whole = run(hot_engine(), *asked)
    engine = hot_engine()
    seen: dict[str, list] = {each.request_id: [] for each in asked}
    events = [event for each in asked for event in engine.submit(each)]
    for step in range(200):
        for event in events:
            seen[event.request_id].append(event)
        if engine.idle:
            break
        if step == n_steps:
            engine.cancel(f"a-{victim}")
            engine.check()
        events = engine.step()
        engine.check()
    for i, each in enumerate(asked):
        if i != victim:
            assert tokens(seen[each.request_id]) == tokens(whole[each.request_id])
            assert isinstance(seen[each.request_id][-1], Finished)
    assert not any(isinstance(event, Finished) for event in seen[f"a-{victim}"])
    assert engine.stats().pools[0].blocks_used == 0


def test_one_that_ends_early_is_not_noticed_by_the_others() -> None:
    asked = choices(4, list(range(30)))
    alone = [tokens(run(hot_engine(), each)[each.request_id]) for each in asked]
    short = request("a-1", list(range(30)), n=2, temperature=1.5, seed=101)
    seen = run(hot_engine(), asked[0], short, *asked[2:])
    assert tokens(seen["a-1"]) == alone[1][:2]
    assert [tokens(seen[f"a-{i}"]) for i in (0, 2, 3)] == [alone[i] for i in (0, 2, 3)]


def test_a_full_pool_changes_no_answer() -> None:
    asked = choices(6, list(range(30)))
    roomy = run(hot_engine(n_blocks=200), *asked)
    engine = hot_engine(n_blocks=13)
    narrow = run(engine, *asked)
    assert engine.stats().preemptions > 0
    for each in asked:
        assert [e.token_ids for e in narrow[each.request_id] if isinstance(e, Delta)] \
            == [e.token_ids for e in roomy[each.request_id] if isinstance(e, Delta)]
