"""Paged attention: close to exact attention over the plain keys and values, and the same bits however a token comes along."""

from __future__ import annotations

import pytest
import torch

MIXED = [(1, 1), (1, 17), (20, 20), (1, 300), (33, 64), (5, 271)]       # (queries, context): decodes, prompts and chunks
SHAPES = {
    "group-3": {"heads": 9, "kv_heads": 3, "d": 64},
    "group-1": {"heads": 4, "kv_heads": 4, "d": 80},
    "group-8": {"heads": 8, "kv_heads": 1, "d": 128},
    "odd-head": {"heads": 2, "kv_heads": 1, "d": 40, "block_tokens": 5},
    "block-32": {"heads": 6, "kv_heads": 2, "d": 64, "block_tokens": 32},
}


def exact_attention(case, scale):
    """Float64 attention over the plain keys and values, row by row and head by head."""
    out, starts = [], case.batch.query_starts.tolist()
    for row, (keys, values) in enumerate(case.keys_values):
        q = case.q[starts[row] : starts[row + 1]].double()
        group = q.shape[1] // keys.shape[1]
        keys, values = keys.double().repeat_interleave(group, 1), values.double().repeat_interleave(group, 1)
        scores = torch.einsum("thd,chd->htc", q, keys) * scale
        seen = torch.ones(len(q), len(keys), dtype=torch.bool).tril(len(keys) - len(q))
        weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        out.append(torch.einsum("htc,chd->thd", weights, values).flatten(1))
    return torch.cat(out)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_native_attention_is_close_to_exact_attention(native, make_paged, shape):
    case = make_paged(MIXED, **shape)
    scale = shape["d"] ** -0.5
    out = native.paged_attention(case.q, case.layer_kv, case.batch, scale)
    assert (out.double() - exact_attention(case, scale)).abs().max() < 2e-6


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_reference_attention_is_close_to_exact_attention(reference, make_paged, shape):
    case = make_paged(MIXED, **shape)
    scale = shape["d"] ** -0.5
    out = reference.paged_attention(case.q, case.layer_kv, case.batch, scale)
    assert (out.double() - exact_attention(case, scale)).abs().max() < 2e-6


def test_large_scores_do_not_overflow(native, make_paged):
    case = make_paged([(1, 40), (9, 25)])
    out = native.paged_attention(case.q, case.layer_kv, case.batch, 30.0)
    # Scores reach 1,000, where float32 steps by 6e-5: a weight's relative error.
    assert (out.double() - exact_attention(case, 30.0)).abs().max() < 1e-3


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_row_has_the_same_bits_alone_and_in_a_batch(native, make_paged, shape):
    case = make_paged([*MIXED, (1, 700)], **shape)
    together = native.paged_attention(case.q, case.layer_kv, case.batch, 0.125)
    starts = case.batch.query_starts.tolist()
    for row in range(len(MIXED) + 1):
        q, batch = case.alone(row)
        assert torch.equal(native.paged_attention(q, case.layer_kv, batch, 0.125), together[starts[row] : starts[row + 1]]), row


@pytest.mark.parametrize("chunks", [[1] * 50, [16, 16, 16, 2], [7, 43], [49, 1]], ids=str)
def test_a_prompt_in_chunks_has_the_bits_of_the_whole(native, make_paged, chunks):
    case = make_paged([(50, 350)])
    whole, parts, first = native.paged_attention(case.q, case.layer_kv, case.batch, 0.125), [], 0
    for length in chunks:
        q, batch = case.alone(0, first, first + length)
        parts.append(native.paged_attention(q, case.layer_kv, batch, 0.125))
        first += length
    assert torch.equal(torch.cat(parts), whole)


def test_threads_do_not_change_a_bit(native, native_library, make_paged):
    case = make_paged([(1, 900)])
    before, results = native_library.turnstile_threads(), []
    try:
        for threads in (1, 2, 7):       # one thread walks the segments, more share them
            native.set_threads(threads)
            results.append(native.paged_attention(case.q, case.layer_kv, case.batch, 0.125))
    finally:
        native.set_threads(before)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


def test_queries_inside_a_joint_projection_are_read_in_place(native, make_paged):
    case = make_paged(MIXED)
    wide = torch.randn(len(case.q), 15 * 64)
    wide[:, : 9 * 64] = case.q.flatten(1)
    joint = wide[:, : 9 * 64].view(-1, 9, 64)
    assert not joint.is_contiguous()
    expected = native.paged_attention(case.q, case.layer_kv, case.batch, 0.125)
    assert torch.equal(native.paged_attention(joint, case.layer_kv, case.batch, 0.125), expected)


def test_a_key_that_is_not_a_number_reaches_those_who_see_it_only(native, make_paged):
    case = make_paged([(6, 30), (1, 12)])
    clean = native.paged_attention(case.q, case.layer_kv, case.batch, 0.125)
    case.layer_kv[0, case.batch.block_tables[0, 1], :, 27 - 16] = float("nan")     # position 27: for queries 27, 28 and 29
    spoiled = native.paged_attention(case.q, case.layer_kv, case.batch, 0.125)
    assert spoiled[3:6].isnan().all()
    assert torch.equal(spoiled[:3], clean[:3]) and torch.equal(spoiled[6:], clean[6:])


@pytest.mark.parametrize("block", [-1, 1000])
def test_a_block_outside_the_pool_is_refused(native, make_paged, block):
    case = make_paged([(1, 20), (2, 20)])
    case.batch.block_tables[1, 1] = block
    with pytest.raises(ValueError, match=r"row 1 .* does not fit a pool of"):
        native.paged_attention(case.q, case.layer_kv, case.batch, 0.125)


def test_a_context_longer_than_its_block_table_is_refused(native, make_paged):
    case = make_paged([(1, 20)])
    case.batch.context_lens[0] = 49      # three blocks of 16 in the table
    with pytest.raises(ValueError, match=r"row 0 .*context 49"):
        native.paged_attention(case.q, case.layer_kv, case.batch, 0.125)


@pytest.mark.parametrize("scale", [0.0, -0.125, float("nan")])
def test_a_scale_that_is_not_above_zero_is_refused(native, reference, make_paged, scale):
    case = make_paged([(1, 20)])
    for ops in (native, reference):
        with pytest.raises(ValueError, match="the scale must be above 0"):
            ops.paged_attention(case.q, case.layer_kv, case.batch, scale)


def test_a_pool_of_another_type_is_refused(native, reference, make_paged):
    case = make_paged([(1, 20)])
    for ops in (native, reference):
        with pytest.raises(ValueError, match="float16 do not fit"):
            ops.paged_attention(case.q, case.layer_kv.half(), case.batch, 0.125)


def test_heads_that_kv_heads_do_not_divide_are_refused(native, reference, make_paged):
    case = make_paged([(1, 20)])
    for ops in (native, reference):
        with pytest.raises(ValueError, match="multiple of kv_heads"):
            ops.paged_attention(torch.randn(1, 8, 64), case.layer_kv, case.batch, 0.125)
