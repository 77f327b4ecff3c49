"""The linear layer and the embedding: close to an exact product, and the same bits for any number of rows."""

from __future__ import annotations

import pytest
import torch

from kernels.quant import KINDS
from kernels.weights import pack_reference

SHAPES = [(48, 64), (37, 96), (1, 32), (130, 576), (16, 2080)]     # the last is longer than one stretch of the many-row path
ROWS = [1, 2, 3, 7, 17, 33, 64]


def relative_error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    return float((actual.double() - exact).abs().max() / exact.abs().max())


@pytest.mark.parametrize(("out", "columns"), SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_as_close_to_the_exact_ones_as_float32_allows(native, make_weight, kind, out, columns):
    weight = make_weight(kind, out, columns)
    packed, x = native.pack(weight), torch.randn(64, columns, generator=torch.Generator().manual_seed(3))
    exact = x.double() @ weight.dequantized().double().T
    for rows in ROWS:
        assert relative_error(native.linear(x[:rows], packed), exact[:rows]) < 3e-6, f"{rows} rows"


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_the_same_bits_alone_and_in_any_batch(native, make_weight, kind):
    packed = native.pack(make_weight(kind, 83, 576))
    x = torch.randn(64, 576, generator=torch.Generator().manual_seed(4))
    alone = torch.cat([native.linear(x[i : i + 1], packed) for i in range(64)])
    for rows in (2, 3, 5, 8, 9, 12, 13, 17, 64):
        for first in (0, 64 - rows):
            together = native.linear(x[first : first + rows], packed)
            assert torch.equal(together, alone[first : first + rows]), f"{rows} rows from {first}"


def test_a_row_longer_than_one_stretch_has_the_same_bits_in_a_batch(native, make_weight):
    packed, x = native.pack(make_weight("q4_1", 40, 4128)), torch.randn(20, 4128)
    assert torch.equal(native.linear(x, packed)[7:8], native.linear(x[7:8], packed))


def test_threads_do_not_change_a_bit(native, native_library, make_weight):
    packed, x = native.pack(make_weight("q4_1", 500, 576)), torch.randn(21, 576)
    before = native_library.turnstile_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            native.set_threads(threads)
            results.append((native.linear(x, packed), native.linear(x[:1], packed)))
    finally:
        native.set_threads(before)
    for many, one in results[1:]:
        assert torch.equal(many, results[0][0]) and torch.equal(one, results[0][1])


def test_the_reference_multiplies_by_the_dequantised_weight(reference, make_weight):
    weight, x = make_weight("q4_1", 20, 64), torch.randn(5, 64)
    exact = x.double() @ weight.dequantized().double().T
    assert relative_error(reference.linear(x, pack_reference(weight)), exact) < 3e-6


def test_rows_of_a_wider_tensor_are_read_in_place(native, make_weight):
    packed, wide = native.pack(make_weight("q8_0", 24, 64)), torch.randn(11, 200)
    assert torch.equal(native.linear(wide[:, 100:164], packed), native.linear(wide[:, 100:164].contiguous(), packed))


def test_columns_that_do_not_lie_side_by_side_are_copied_first(native, make_weight):
    packed, tall = native.pack(make_weight("q8_0", 24, 64)), torch.randn(64, 9)
    assert torch.equal(native.linear(tall.T, packed), native.linear(tall.T.contiguous(), packed))


def test_no_rows_give_no_rows(native, make_weight):
    assert native.linear(torch.empty(0, 32), native.pack(make_weight("q4_0", 24, 32))).shape == (0, 24)


def test_a_row_that_is_not_a_number_spoils_only_itself(native, make_weight):
    packed, x = native.pack(make_weight("q4_1", 24, 64)), torch.randn(20, 64)
    clean = native.linear(x, packed)
    x[3] = float("nan")
    spoiled = native.linear(x, packed)
    assert spoiled[3].isnan().all()
    others = [i for i in range(20) if i != 3]
    assert torch.equal(spoiled[others], clean[others])


@pytest.mark.parametrize("kind", KINDS)
def test_embedding_rows_are_the_exact_values(native, make_weight, kind):
    weight = make_weight(kind, 77, 96)
    tokens = torch.tensor([0, 76, 15, 16, 15])
    assert torch.equal(native.embed(tokens, native.pack(weight)), weight.dequantized()[tokens])


@pytest.mark.parametrize("token", [-1, 77])
def test_a_token_outside_the_vocabulary_is_named(native, reference, make_weight, token):
    weight = make_weight("q8_0", 77, 32)
    for ops in (native, reference):
        with pytest.raises(ValueError, match=f"token {token} is not in a vocabulary of 77"):
            ops.embed(torch.tensor([3, token]), ops.pack(weight))


def test_a_wrong_width_is_refused_with_both_shapes(native, reference, make_weight):
    for ops in (native, reference):
        with pytest.raises(ValueError, match=r"x is \(2, 33\).*\(24, 32\) needs \[n, 32\]"):
            ops.linear(torch.randn(2, 33), ops.pack(make_weight("q8_0", 24, 32)))


def test_a_weight_of_other_operations_is_refused(native, reference, make_weight):
    weight, x = make_weight("q8_0", 24, 32), torch.randn(2, 32)
    with pytest.raises(ValueError, match="packed as 'dense', not 'panels'"):
        native.linear(x, reference.pack(weight))
    with pytest.raises(ValueError, match="packed as 'panels', not 'dense'"):
        reference.linear(x, native.pack(weight))
