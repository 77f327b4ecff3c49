"""The sampler against a plain reference that sorts the whole vocabulary and adds up in float64."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, nan
from typing import Literal

import pytest
import torch
from torch import Tensor

from kernels.ops import load_ops
from kernels.sampling import draw, keep_top_p_
from runtime.errors import RequestFaulted
from runtime.logprobs import leading
from runtime.protocol import SamplingParams
from runtime.randomness import uniform
from runtime.sampler import Sampled, Sampler, SamplingRow, TokenCounts

GREEDY = SamplingParams(16, temperature=0.0)


def choose_reference(logits: Sequence[float], params: SamplingParams, u: float, allowed: set[int] | None = None) -> int:
    """What the sampling rules say, in the plainest words: sort, cut, cut, cut, add up."""
    kept = [token for token, logit in enumerate(logits) if logit > -inf and (allowed is None or token in allowed)]
    kept.sort(key=lambda token: (-logits[token], token))
    if params.temperature == 0:
        return kept[0]
    weight = {token: exp((logits[token] - logits[kept[0]]) / params.temperature) for token in kept}
    if params.top_k > 0:
        kept = kept[: params.top_k]
    if params.top_p < 1:
        total, reached, nucleus = sum(weight[token] for token in kept), 0.0, []
        for token in kept:
            nucleus.append(token)
            reached += weight[token]
            if reached >= params.top_p * total:
                break
        kept = nucleus
    kept = [token for token in kept if weight[token] >= params.min_p * weight[kept[0]]]
    kept.sort()
    target, reached = u * sum(weight[token] for token in kept), 0.0
    for token in kept:
        reached += weight[token]
        if reached > target:
            return token
    return kept[-1]


def bits(allowed: Sequence[set[int] | None], vocabulary: int) -> Tensor:
    """Packed masks; None allows everything."""
    words = torch.zeros(len(allowed), -(-vocabulary // 32), dtype=torch.int64)
    for row, tokens in enumerate(allowed):
        for token in range(vocabulary) if tokens is None else tokens:
            words[row, token // 32] |= 1 << (token % 32)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def draw_one(logits: Sequence[float] | Tensor, params: SamplingParams, seed: int = 0, position: int = 0,
             allowed: set[int] | None = None, banned: tuple[int, ...] = (), counts: TokenCounts | None = None) -> Sampled:
    row = torch.as_tensor(logits, dtype=torch.float32).clone()[None]
    masks = None if allowed is None else bits([allowed], row.shape[1])
    (sampled,) = Sampler().draw(row, [SamplingRow(params, seed, position, counts, banned)], masks)
    assert isinstance(sampled, Sampled), sampled
    return sampled


def random_params(dice: random.Random) -> SamplingParams:
    return SamplingParams(
        16,
        temperature=dice.choice([0.0, 1e-5, 0.01, 0.3, 0.7, 1.0, 1.0, 1.5, 5.0]),
        top_k=dice.choice([0, 0, 0, 1, 2, 5, 40, 300, 5000]),
        top_p=dice.choice([1.0, 1.0, 0.01, 0.3, 0.9, 0.95, 0.999]),
        min_p=dice.choice([0.0, 0.0, 0.05, 0.5, 1.0]),
    )


def random_logits(dice: random.Random, vocabulary: int) -> Tensor:
    generator = torch.Generator().manual_seed(dice.randrange(2**31))
    logits = torch.randn(vocabulary, generator=generator) * dice.choice([0.1, 1.0, 3.0, 10.0])
    return (logits * 2).round() / 2 if dice.random() < 0.3 else logits    # many equal ones, a third of the time


def test_every_draw_is_that_of_the_full_sort_for_random_rows_and_parameters() -> None:
    dice = random.Random(1)
    for case in range(400):
        vocabulary = dice.choice([1, 2, 33, 257, 1000, 4000])
        logits, params = random_logits(dice, vocabulary), random_params(dice)
        allowed = None if dice.random() < 0.5 else set(dice.sample(range(vocabulary), dice.randint(1, vocabulary)))
        seed, position = dice.randrange(2**63), dice.randrange(1000)
        got = draw_one(logits, params, seed, position, allowed).token_id
        assert got == choose_reference(logits.tolist(), params, uniform(seed, position), allowed), (case, params)


@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 3.0])
def test_a_nucleus_wider_than_the_first_look_is_exact(spread: float) -> None:
    logits = torch.randn(6000, generator=torch.Generator().manual_seed(5)) * spread
    logits[100] = -1000.0
    for top_p in (0.02, 0.04, 0.045, 0.3, 0.6, 0.99, 0.999999):
        params = SamplingParams(16, top_p=top_p)
        for seed in range(5):
            assert draw_one(logits, params, seed).token_id == choose_reference(logits.tolist(), params, uniform(seed, 0))


def test_a_nucleus_that_ends_among_equal_tokens_keeps_the_lowest_ids() -> None:
    """2,000 equal tokens, of which 60 % is 1,200: the ids below it, and all of them."""
    logits = torch.full((4000,), -inf)
    logits[::2] = 1.5
    keep_top_p_(logits, 0.6 - 1e-9, 1.5, 1.0)
    assert (logits > -inf).nonzero().flatten().tolist() == list(range(0, 2400, 2))


def test_a_nucleus_at_the_lowest_temperature_is_found_where_float32_cannot_tell_its_bounds_apart() -> None:
    logits = torch.full((2000,), 100.0)
    keep_top_p_(logits, 0.5, 100.0, 1e-6)
    assert (logits > -inf).nonzero().flatten().tolist() == list(range(1000))


@pytest.mark.parametrize("first, last", [(300, 300), (10, 590), (255, 256), (0, 600)])
def test_the_ends_of_the_unit_interval_lead_to_the_first_and_last_token_that_is_left(first: int, last: int) -> None:
    logits = torch.full((601,), -inf)
    logits[[first, last]] = 1.0
    assert draw(logits, 1.0, 1.0, 0.0) == first
    assert draw(logits, 1.0, 1.0, 1 - 2.0**-53) == last


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 9, 10, 11, 50])
def test_the_leading_values_of_a_row_with_ties_are_those_of_a_stable_sort(k: int) -> None:
    row = torch.tensor([1.0, 3.0, 2.0, 3.0, 2.0, -inf, 2.0, 2.0, 3.0, 0.0, -inf])
    expected = sorted((token for token in range(11) if row[token] > -inf), key=lambda token: (-float(row[token]), token))[:k]
    values, ids = leading(row, k)
    assert ids.tolist() == expected
    assert values.tolist() == [float(row[token]) for token in expected]


@pytest.mark.parametrize(
    ("params", "kept"),
    [
        (SamplingParams(16), range(6)),
        (SamplingParams(16, temperature=2.0), range(6)),
        (SamplingParams(16, temperature=0.5), range(6)),
        (SamplingParams(16, top_k=3), [4, 0, 2]),
        (SamplingParams(16, top_p=0.8), [4, 0, 2]),
        (SamplingParams(16, min_p=0.3), [4, 0]),
    ],
    ids=["plain", "hot", "cold", "top_k", "top_p", "min_p"],
)
def test_many_seeds_draw_the_softmax_of_what_is_kept(params: SamplingParams, kept: Sequence[int]) -> None:
    """Chi-square; with at most 5 degrees of freedom a sum above 20.5 comes once in a thousand times."""
    logits = [1.0, -0.5, 0.5, -1.0, 2.0, 0.0]
    n = 6000
    rows = [SamplingRow(params, seed, position=seed % 7) for seed in range(n)]
    drawn = Counter(sampled.token_id for sampled in Sampler().draw(torch.tensor([logits] * n), rows))
    weights = {token: exp(logits[token] / params.temperature) for token in kept}
    expected = {token: n * weight / sum(weights.values()) for token, weight in weights.items()}
    assert set(drawn) <= set(expected)
    assert sum((drawn[token] - mean) ** 2 / mean for token, mean in expected.items()) < 20.5


def test_many_positions_of_one_seed_draw_the_softmax_too() -> None:
    logits, n = [0.0, 1.0, 2.0], 6000
    rows = [SamplingRow(SamplingParams(16), seed=11, position=position) for position in range(n)]
    drawn = Counter(sampled.token_id for sampled in Sampler().draw(torch.tensor([logits] * n), rows))
    expected = {token: n * exp(token) / (1 + exp(1) + exp(2)) for token in range(3)}
    assert sum((drawn[token] - mean) ** 2 / mean for token, mean in expected.items()) < 13.8    # 2 degrees, 1 in 1000


def mixed_rows(vocabulary: int) -> tuple[Tensor, list[SamplingRow], list[set[int] | None]]:
    dice = random.Random(3)
    logits = torch.stack([random_logits(dice, vocabulary) for _ in range(24)])
    rows = [
        SamplingRow(replace(random_params(dice), logprobs=dice.choice([None, 0, 3])), dice.randrange(99), position)
        for position in range(24)
    ]
    allowed = [None if dice.random() < 0.6 else set(dice.sample(range(vocabulary), 50)) for _ in range(24)]
    return logits, rows, allowed


def test_a_row_draws_the_same_alone_in_a_batch_and_in_another_order() -> None:
    vocabulary = 5003
    logits, rows, allowed = mixed_rows(vocabulary)
    masks = bits(allowed, vocabulary)
    together = Sampler().draw(logits.clone(), rows, masks)
    for at, row in enumerate(rows):
        assert Sampler().draw(logits[at : at + 1].clone(), [row], masks[at : at + 1]) == [together[at]]
    order = list(range(len(rows)))
    random.Random(4).shuffle(order)
    shuffled = Sampler().draw(logits[order], [rows[at] for at in order], masks[order])
    assert shuffled == [together[at] for at in order]
    assert Sampler().draw(logits.clone(), rows[:5] * 4 + rows[20:], masks)[:5] == together[:5]


@pytest.mark.parametrize("wanted", ["auto", "reference"])
def test_the_masking_operations_that_the_machine_offers_give_the_same_draws(wanted: Literal["auto", "reference"]) -> None:
    logits, rows, allowed = mixed_rows(5003)
    masks = bits(allowed, 5003)
    ops = load_ops(torch.device("cpu"), wanted)
    assert Sampler(ops).draw(logits.clone(), rows, masks) == Sampler().draw(logits.clone(), rows, masks)


def test_a_row_draws_the_same_whatever_was_drawn_before() -> None:
    sampler, logits = Sampler(), torch.randn(1, 1000, generator=torch.Generator().manual_seed(0))
    row = SamplingRow(SamplingParams(16, temperature=1.5), seed=5, position=9)
    first = sampler.draw(logits.clone(), [row])
    sampler.draw(logits.repeat(8, 1), [replace(row, position=at) for at in range(8)])
    assert sampler.draw(logits.clone(), [row]) == first


def test_seeds_and_positions_lead_to_different_draws() -> None:
    flat = torch.zeros(1000, 1000)
    by_seed = Sampler().draw(flat.clone(), [SamplingRow(SamplingParams(16), seed, 0) for seed in range(1000)])
    by_position = Sampler().draw(flat.clone(), [SamplingRow(SamplingParams(16), 0, position) for position in range(1000)])
    assert len({sampled.token_id for sampled in by_seed}) > 500
    assert len({sampled.token_id for sampled in by_position}) > 500


def test_greedy_takes_the_lowest_of_equally_likely_tokens() -> None:
    logits = [0.0] * 200
    for token in (7, 50, 190):
        logits[token] = 3.0
    assert draw_one(logits, GREEDY).token_id == 7
    assert draw_one(logits, GREEDY, allowed={50, 190}).token_id == 50
    assert draw_one(logits, replace(GREEDY, temperature=1e-9)).token_id == 7


def test_greedy_rows_among_others_draw_their_own_maximum() -> None:
    logits = torch.eye(6, 8) * 20
    rows = [SamplingRow(GREEDY if at % 2 else SamplingParams(16, temperature=0.5), at, 0) for at in range(6)]
    assert [sampled.token_id for sampled in Sampler().draw(logits, rows)] == list(range(6))


def test_a_mask_cannot_be_got_round_by_bias_penalties_or_top_k() -> None:
    logits = [5.0, 4.0, 0.0, 0.0]
    for params in (
        SamplingParams(16, logit_bias=((0, 100.0), (1, 100.0))),
        SamplingParams(16, top_k=1),
        SamplingParams(16, top_p=0.01),
        SamplingParams(16, min_p=1.0),
        replace(GREEDY, logit_bias=((0, 100.0), (3, 1e30))),
        SamplingParams(16, presence_penalty=-2.0),
    ):
        counts = TokenCounts(params, [])
        counts.add(0)
        for seed in range(20):
            assert draw_one(logits, params, seed, allowed={2}, counts=counts).token_id == 2


def test_banned_tokens_are_never_drawn() -> None:
    for params in (GREEDY, SamplingParams(16), SamplingParams(16, top_k=2), SamplingParams(16, logit_bias=((1, 100.0),))):
        for seed in range(20):
            assert draw_one([1.0, 9.0, 1.0], params, seed, banned=(1, 10**6)).token_id != 1


def test_bias_moves_the_choice() -> None:
    assert draw_one([3.0, 2.0, 1.0], replace(GREEDY, logit_bias=((2, 5.0),))).token_id == 2
    assert draw_one([3.0, 2.0, 1.0], replace(GREEDY, logit_bias=((0, -100.0),))).token_id == 1


def test_penalties_move_the_choice_as_counted() -> None:
    params = replace(GREEDY, frequency_penalty=0.6)
    counts = TokenCounts(params, [])
    said = []
    for position in range(4):
        said.append(draw_one([1.0, 0.5, -1.0], params, position=position, counts=counts).token_id)
        counts.add(said[-1])
    assert said == [0, 1, 0, 1]    # 1, .5 | .4, .5 | .4, -.1 | -.2, -.1


def test_a_row_of_nonsense_faults_alone() -> None:
    logits = torch.randn(5, 100, generator=torch.Generator().manual_seed(0))
    good = Sampler().draw(logits.clone(), [SamplingRow(SamplingParams(16), at, 0) for at in range(5)])
    for value in (nan, inf):
        bad = logits.clone()
        bad[1, 17] = value
        bad[3] = -inf
        drawn = Sampler().draw(bad, [SamplingRow(SamplingParams(16), at, 0) for at in range(5)])
        assert isinstance(drawn[1], RequestFaulted) and isinstance(drawn[3], RequestFaulted)
        assert [drawn[at] for at in (0, 2, 4)] == [good[at] for at in (0, 2, 4)]


@pytest.mark.parametrize("params", [GREEDY, SamplingParams(16), SamplingParams(16, top_k=3), SamplingParams(16, logprobs=2)])
def test_a_mask_that_leaves_nothing_faults_its_row_alone(params: SamplingParams) -> None:
    logits = torch.zeros(3, 40)
    rows = [SamplingRow(params, 0, 0), SamplingRow(params, 0, 0), SamplingRow(params, 0, 0, banned=(5,))]
    drawn = Sampler().draw(logits, rows, bits([None, set(), {5}], 40))
    assert isinstance(drawn[0], Sampled)
    for fault in drawn[1:]:
        assert isinstance(fault, RequestFaulted)
        assert "no token is allowed" in str(fault)


def test_a_bias_that_cannot_be_applied_faults_its_row_alone() -> None:
    biases = [(99, 1.0), (-1, 1.0), (0, inf), (0, nan)]
    rows = [SamplingRow(GREEDY, 0, 0), *(SamplingRow(replace(GREEDY, logit_bias=(bias,)), 0, 0) for bias in biases)]
    drawn = Sampler().draw(torch.tensor([[0.0, 1.0]] * 5), rows)
    assert drawn[0] == Sampled(1)
    assert all(isinstance(fault, RequestFaulted) and fault.param == "logit_bias" for fault in drawn[1:])


def test_logprobs_are_the_models_whatever_bias_mask_and_temperature_do() -> None:
    logits = torch.randn(1000, generator=torch.Generator().manual_seed(2)) * 3
    expected = torch.log_softmax(logits, -1)
    params = SamplingParams(16, temperature=0.4, top_k=5, logprobs=4, logit_bias=((3, 50.0),), frequency_penalty=1.0)
    sampled = draw_one(logits, params, allowed=set(range(0, 1000, 3)), counts=TokenCounts(params, []))
    assert sampled.logprob == pytest.approx(float(expected[sampled.token_id]), abs=1e-5)
    likeliest = sorted(range(1000), key=lambda token: -float(expected[token]))[:4]
    assert [token for token, _ in sampled.top] == likeliest
    assert [logprob for _, logprob in sampled.top] == pytest.approx([float(expected[token]) for token in likeliest], abs=1e-5)


def test_logprobs_without_alternatives_are_the_chosen_tokens_alone() -> None:
    sampled = draw_one([0.0, 0.0], replace(GREEDY, logprobs=0))
    assert sampled.logprob == pytest.approx(-0.6931472)
    assert sampled.top == ()
    assert draw_one([0.0, 0.0], GREEDY).logprob is None


def test_no_rows_draw_nothing() -> None:
    assert Sampler().draw(torch.zeros(0, 10), []) == []


def test_the_work_in_python_does_not_depend_on_the_vocabulary() -> None:
    def calls(vocabulary: int, params: SamplingParams) -> int:
        logits = torch.randn(4, vocabulary, generator=torch.Generator().manual_seed(0)) * 4
        rows = [SamplingRow(params, 0, 0)] * 4
        n_calls = 0

        def note(_frame: object, event: str, _argument: object) -> None:
            nonlocal n_calls
            n_calls += event in ("call", "c_call")

        sys.setprofile(note)
        try:
            Sampler().draw(logits, rows)
        finally:
            sys.setprofile(None)
        return n_calls

    for params in (GREEDY, SamplingParams(16), SamplingParams(16, top_k=40, logprobs=5), SamplingParams(16, top_p=0.5)):
        assert calls(30_000, params) <= 2 * calls(1000, params)


def test_logprobs_of_what_is_allowed_add_up_over_the_mask() -> None:
    logits = [1.0, 2.0, 3.0, 0.5]
    params = SamplingParams(16, temperature=0.0, logprobs=4, logprobs_of="allowed")
    sampled = draw_one(logits, params, allowed={0, 3})
    total = exp(1.0) + exp(0.5)
    assert sampled.token_id == 0
    assert [token for token, _ in sampled.top] == [0, 3]
    assert [exp(logprob) for _, logprob in sampled.top] == pytest.approx([exp(1.0) / total, exp(0.5) / total])
