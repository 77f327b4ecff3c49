"""Choosing tokens: every version against a plain one that sorts the whole vocabulary in float64."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from torch import Tensor

from kernels.ops import Ops
from kernels.sampling import Choice


def plain_shares(row: Tensor, choice: Choice) -> np.ndarray:
    """Each token's share of [0, 1) after everything that narrows the row, [vocabulary] float64."""
    logits = row.double().numpy()
    weights = np.exp((logits - choice.peak) / choice.temperature)
    order = np.lexsort((np.arange(len(logits)), -logits))      # likeliest first, of equal ones the lowest id
    kept = order[:choice.top_k] if choice.top_k else order
    if choice.top_p < 1:
        reached = np.cumsum(weights[kept])
        kept = kept[: int(np.searchsorted(reached, choice.top_p * reached[-1])) + 1]
    if choice.min_p > 0:
        kept = kept[weights[kept] >= choice.min_p * (1 - 1e-9)]
    if choice.typical_p < 1:
        kept = kept[weights[kept] > 0]
        chances = weights[kept] / weights[kept].sum()
        surprise = -np.log(chances)
        distance = np.abs(surprise - (chances * surprise).sum()).round(6)
        order = np.lexsort((kept, distance))
        reached = np.cumsum(chances[order])
        kept = kept[order[: int(np.searchsorted(reached, choice.typical_p)) + 1]]
    shares = np.zeros(len(logits))
    shares[kept] = weights[kept]
    return shares / shares.sum()


def is_right(token: int, row: Tensor, choice: Choice) -> bool:
    """Whether `u` falls into the token's share, give or take what sums in float32 may be off."""
    ends = np.cumsum(plain_shares(row, choice))
    begin = ends[token - 1] if token else 0.0
    return begin - 2e-5 <= choice.u <= ends[token] + 2e-5


def case(seed: int, vocabulary: int) -> tuple[Tensor, Choice]:
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    row = torch.randn(vocabulary, generator=generator) * rng.choice([0.1, 1, 3, 8])
    if seed % 3 == 0:
        row = (row * 2).round() / 2                             # many equal logits
    if seed % 4 == 0:                                           # a grammar's mask
        row[torch.randperm(vocabulary, generator=generator)[rng.choice([1, 2, 3 + vocabulary // 4]):]] = -math.inf
    choice = Choice(0, float(row.max()), rng.random(), rng.choice([0.2, 0.7, 1.0, 1.9]),
                    rng.choice([0, 0, 1, 5, vocabulary, 10_000]), rng.choice([1.0, 1.0, 0.01, 0.5, 0.95]),
                    rng.choice([0.0, 0.0, 0.02, 0.5]), rng.choice([1.0, 1.0, 1.0, 0.2, 0.9]))
    return row, choice


@pytest.mark.parametrize("vocabulary", [1, 7, 255, 256, 257, 4099, 49_152])
def test_the_native_choice_is_the_plain_one(native: Ops, vocabulary: int) -> None:
    for seed in range(60):
        row, choice = case(seed, vocabulary)
        [token] = native.choose_(row.clone()[None], [choice])
        assert is_right(token, row, choice), (seed, token, choice)


@pytest.mark.parametrize("vocabulary", [1, 7, 257, 4099])
def test_the_reference_choice_is_the_plain_one(reference: Ops, vocabulary: int) -> None:
    for seed in range(60):
        row, choice = case(seed, vocabulary)
        [token] = reference.choose_(row.clone()[None], [choice])
        assert is_right(token, row, choice), (seed, token, choice)


def test_what_is_impossible_is_never_drawn_even_at_the_ends(native: Ops) -> None:
    row = torch.full((1, 1000), -math.inf)
    row[0, 300], row[0, 301] = 1.0, -60.0
    for u in (0.0, 0.5, math.nextafter(1.0, 0.0)):
        assert native.choose_(row.clone(), [Choice(0, 1.0, u, 1.0)])[0] in (300, 301)
    assert native.choose_(row.clone(), [Choice(0, 1.0, 0.999999, 0.01)]) == [300]


def test_a_row_is_chosen_alike_alone_and_among_others_and_in_a_gap(native: Ops) -> None:
    rows = [case(seed, 5000) for seed in range(8)]
    wide = torch.full((8, 5032), float("nan"))
    wide[:, :5000] = torch.stack([row for row, _ in rows])
    choices = [Choice(i, c.peak, c.u, c.temperature, c.top_k, c.top_p, c.min_p, c.typical_p) for i, (_, c) in enumerate(rows)]
    together = native.choose_(wide[:, :5000], choices)
    alone = [native.choose_(row.clone()[None], [choice])[0] for row, choice in rows]
    assert together == alone
    assert native.choose_(wide[:, :5000], choices[::-1]) == alone[::-1]


def test_draws_follow_the_distribution(native: Ops) -> None:
    row = torch.log(torch.tensor([[0.5, 0.25, 0.125, 0.125]]))
    n = 4000
    tokens = native.choose_(row, [Choice(0, float(row.max()), (i + 0.5) / n, 1.0) for i in range(n)])
    assert np.bincount(tokens, minlength=4).tolist() == [n // 2, n // 4, n // 8, n // 8]


def test_other_types_and_layouts_are_refused(native: Ops) -> None:
    with pytest.raises(ValueError, match="float32"):
        native.choose_(torch.zeros(1, 8, dtype=torch.float64), [Choice(0, 0.0, 0.5, 1.0)])
    with pytest.raises(ValueError, match="side by side"):
        native.choose_(torch.zeros(8, 4).T, [Choice(0, 0.0, 0.5, 1.0)])
