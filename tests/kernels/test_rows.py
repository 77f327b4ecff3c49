"""Normalisation, activation, rotation, masks and writing of keys and values: native against reference and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

ROWS = [1, 2, 3, 7, 17, 33, 64]
WIDTHS = [1, 15, 64, 577]


@pytest.mark.parametrize("width", WIDTHS)
def test_rms_norm_is_close_to_the_exact_one(native, width):
    x, weight = torch.randn(64, width), torch.randn(width)
    exact = x.double() / (x.double().square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    for rows in ROWS:
        error = (native.rms_norm(x[:rows], weight, 1e-5).double() - exact[:rows]).abs().max()
        assert error < 4e-7 * exact.abs().max(), f"{rows} rows"


def test_rms_norm_of_a_row_has_the_same_bits_in_any_batch(native):
    x, weight = torch.randn(64, 577), torch.randn(577)
    alone = torch.cat([native.rms_norm(x[i : i + 1], weight, 1e-5) for i in range(64)])
    assert torch.equal(native.rms_norm(x, weight, 1e-5), alone)


def test_add_rms_norm_gives_the_sum_and_its_norm(native, reference):
    x, residual, weight = torch.randn(7, 576), torch.randn(7, 576), torch.randn(576)
    before = x.clone(), residual.clone()
    normed, total = native.add_rms_norm(x, residual, weight, 1e-5)
    assert torch.equal(total, x + residual)
    assert torch.equal(normed, native.rms_norm(total, weight, 1e-5))
    assert torch.allclose(normed, reference.add_rms_norm(x, residual, weight, 1e-5)[0], rtol=1e-5, atol=1e-6)
    assert torch.equal(x, before[0]) and torch.equal(residual, before[1])


def test_norms_of_other_widths_are_refused(native, reference):
    for ops in (native, reference):
        with pytest.raises(ValueError, match=r"x \(2, 5\).*weight \(4,\)"):
            ops.rms_norm(torch.randn(2, 5), torch.randn(4), 1e-5)


@pytest.mark.parametrize("width", WIDTHS)
def test_swiglu_is_close_to_the_exact_one(native, width):
    gate_up = torch.randn(33, 2 * width) * 8
    gate, up = gate_up.double().chunk(2, dim=-1)
    exact = gate * torch.sigmoid(gate) * up
    for rows in (1, 3, 33):
        assert torch.allclose(native.swiglu(gate_up[:rows]).double(), exact[:rows], rtol=1e-6, atol=1e-30)


def test_swiglu_of_extreme_gates_is_their_limit(native):
    gates = torch.tensor([[-1e4, -200.0, 0.0, 200.0, 1e30], [float("nan"), float("inf"), 1.0, 1.0, 1.0]])
    out = native.swiglu(torch.cat([gates, torch.ones(2, 5)], dim=1))
    assert torch.allclose(out[0], torch.tensor([0.0, 0.0, 0.0, 200.0, 1e30]), atol=1e-30)
    assert out[1, 0].isnan() and out[1, 1] == float("inf")


def test_swiglu_of_an_odd_width_is_refused(native, reference):
    for ops in (native, reference):
        with pytest.raises(ValueError, match=r"\[n, 2 \* ff\] float32, not \(2, 5\)"):
            ops.swiglu(torch.randn(2, 5))


def angles(positions: int, d: int) -> torch.Tensor:
    turns = torch.outer(torch.arange(positions).double(), 10000.0 ** (-torch.arange(0, d, 2).double() / d))
    return torch.cat([turns.cos(), turns.sin()], dim=1).float()


@pytest.mark.parametrize("d", [2, 40, 64, 80, 128])
def test_rotation_is_that_of_complex_numbers(native, reference, d):
    cos_sin, positions = angles(50, d), torch.randint(0, 50, (19,), dtype=torch.int32)
    joint = torch.randn(19, 13 * d)
    q, k = joint[:, : 9 * d].view(19, 9, d), joint[:, 9 * d : 12 * d].view(19, 3, d)
    turn = torch.complex(*cos_sin.double()[positions.long()].chunk(2, dim=-1))[:, None]
    expected = [torch.complex(*part.double().chunk(2, dim=-1)) * turn for part in (q, k)]
    rest = joint[:, 12 * d :].clone()
    plain = q.clone(), k.clone()
    native.rotary_(q, k, positions, cos_sin)
    reference.rotary_(*plain, positions, cos_sin)
    for parts in ((q, k), plain):
        for actual, exact in zip(parts, expected, strict=True):
            assert torch.allclose(actual.double(), torch.cat([exact.real, exact.imag], dim=-1), atol=2e-6)
    assert torch.equal(joint[:, 12 * d :], rest)


@pytest.mark.parametrize("position", [-1, 50])
def test_a_position_without_angles_is_named_and_nothing_is_turned(native, reference, position):
    for ops in (native, reference):
        q, k = torch.randn(2, 3, 8), torch.randn(2, 1, 8)
        before = q.clone()
        with pytest.raises(ValueError, match=f"position {position} is not among the 50"):
            ops.rotary_(q, k, torch.tensor([1, position], dtype=torch.int32), angles(50, 8))
        assert torch.equal(q, before)


@pytest.mark.parametrize(("rows", "vocabulary"), [(1, 1), (3, 31), (2, 32), (5, 33), (4, 50_257)])
def test_masked_logits_are_minus_infinity_where_a_bit_is_clear(native, reference, rows, vocabulary):
    generator = np.random.default_rng(vocabulary)
    words = generator.integers(0, 2**32, (rows, -(-vocabulary // 32)), dtype=np.uint32)
    words[:, ::3] = generator.choice(np.array([0, 0xFFFFFFFF], dtype=np.uint32), words[:, ::3].shape)
    allowed = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :vocabulary].astype(bool)
    logits = torch.randn(rows, vocabulary)
    expected = torch.where(torch.from_numpy(allowed), logits, -torch.inf)
    for ops in (native, reference):
        masked = logits.clone()
        ops.mask_logits_(masked, torch.from_numpy(words.view(np.int32)))
        assert torch.equal(masked, expected)


def test_bits_that_do_not_cover_the_vocabulary_are_refused(native, reference):
    for ops in (native, reference):
        with pytest.raises(ValueError, match=r"need bits \[2, 2\] int32, not \(2, 1\)"):
            ops.mask_logits_(torch.randn(2, 33), torch.zeros((2, 1), dtype=torch.int32))


def test_keys_and_values_land_in_their_slots_and_nowhere_else(native, reference):
    joint = torch.randn(5, 6 * 40)
    k, v = joint[:, : 3 * 40].view(5, 3, 40), joint[:, 3 * 40 :].view(5, 3, 40)
    slots = torch.tensor([0, 79, 17, 16, 33])
    for ops in (native, reference):
        pool = torch.full((2, 5, 3, 16, 40), float("nan"))
        ops.write_kv_(k, v, pool, slots)
        for i, slot in enumerate(slots.tolist()):
            assert torch.equal(pool[0, slot // 16, :, slot % 16], k[i])
            assert torch.equal(pool[1, slot // 16, :, slot % 16], v[i])
        assert int(pool.isnan().sum()) == 2 * (80 - 5) * 3 * 40


@pytest.mark.parametrize("slot", [-1, 80])
def test_a_slot_outside_the_pool_is_named_and_nothing_is_written(native, reference, slot):
    k = torch.randn(2, 3, 8)
    for ops in (native, reference):
        pool = torch.zeros((2, 5, 3, 16, 8))
        with pytest.raises(ValueError, match=f"slot {slot} lies outside a pool of 5 blocks of 16 tokens"):
            ops.write_kv_(k, k, pool, torch.tensor([3, slot]))
        assert not pool.any()
