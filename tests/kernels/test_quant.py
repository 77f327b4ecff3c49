"""Weights as they lie in a file: values against the gguf package, rows as independent bytes."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch

from kernels.quant import KINDS, QuantTensor, concat_rows, row_bytes

BLOCK_KINDS = ("q4_0", "q4_1", "q8_0")


@pytest.mark.parametrize("kind", BLOCK_KINDS)
def test_values_are_those_of_the_gguf_package(kind):
    values = np.random.default_rng(1).standard_normal((7, 96), dtype=np.float32)
    raw = gguf.quantize(values, gguf.GGMLQuantizationType[kind.upper()])
    weight = QuantTensor.from_bytes(kind, (7, 96), torch.from_numpy(raw))
    expected = gguf.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()])
    assert np.array_equal(weight.dequantized().numpy(), expected)


@pytest.mark.parametrize("kind", BLOCK_KINDS)
def test_any_bytes_have_the_values_of_the_gguf_package(kind):
    raw = np.random.default_rng(2).integers(0, 256, (5, row_bytes(kind, 64)), dtype=np.uint8)
    raw[:, 1::2] &= 0x7B        # no scale is infinite or no number, wherever it stands
    weight = QuantTensor.from_bytes(kind, (5, 64), torch.from_numpy(raw))
    expected = gguf.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()])
    assert np.array_equal(weight.dequantized().numpy(), expected)


@pytest.mark.parametrize(("kind", "dtype"), [("f32", torch.float32), ("f16", torch.float16), ("bf16", torch.bfloat16)])
def test_float_kinds_are_their_values(kind, dtype):
    values = torch.randn(3, 5).to(dtype)
    from_bytes = QuantTensor.from_bytes(kind, (3, 5), values.view(torch.uint8))
    assert torch.equal(from_bytes.dequantized(), values.float())


@pytest.mark.parametrize("kind", KINDS)
def test_selected_rows_have_the_values_of_their_places(kind, make_weight):
    weight, index = make_weight(kind, 9, 64), torch.tensor([8, 0, 3, 3])
    assert torch.equal(weight.select_rows(index).dequantized(), weight.dequantized()[index])


@pytest.mark.parametrize("kind", KINDS)
def test_joined_rows_follow_each_other(kind, make_weight):
    first, second = make_weight(kind, 4, 32, seed=1), make_weight(kind, 3, 32, seed=2)
    joined = concat_rows([first, second])
    assert joined.shape == (7, 32)
    assert torch.equal(joined.dequantized(), torch.cat([first.dequantized(), second.dequantized()]))


def test_rows_of_different_kinds_are_not_joined(make_weight):
    with pytest.raises(ValueError, match="different kinds"):
        concat_rows([make_weight("q4_1", 4, 32), make_weight("q8_0", 4, 32)])


def test_rows_that_blocks_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="33 values cannot be q4_1"):
        row_bytes("q4_1", 33)


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(ValueError, match="'q3_k' are not known"):
        QuantTensor.from_bytes("q3_k", (1, 256), torch.zeros(110, dtype=torch.uint8))


def test_bytes_that_do_not_fit_the_shape_are_refused():
    with pytest.raises(ValueError, match="has 40 bytes, not 41"):
        QuantTensor.from_bytes("q4_1", (2, 32), torch.zeros(41, dtype=torch.uint8))


def test_data_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"needs data \(2, 20\)"):
        QuantTensor("q4_1", (2, 32), torch.zeros((2, 18), dtype=torch.uint8))
