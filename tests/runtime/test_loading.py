"""Loading whole models: fast, exact, and with a typed error that says what to do for whatever can't be served."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
import torch

from kernels.ops import Ops, load_ops
from runtime.errors import ModelUnreadable
from runtime.gguf_file import GgufFile
from runtime.loading import load_model
from runtime.tokenizer import load_tokenizer
from tests.support.tiny_models import save_folder, save_gguf, tiny_config, tiny_llama

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def plain_ops() -> Ops:
    return load_ops(CPU, "reference")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").path


def test_the_real_model_and_its_tokenizer_load_within_seconds(model_path: Path, ops: Ops) -> None:
    started_s = time.process_time()
    model = load_model(model_path, CPU, ops)
    tokenizer = load_tokenizer(model_path)
    assert time.process_time() - started_s < 8.0      # about 1.5 on a quiet machine; threads that wait for a busy one count, too
    assert model.config.vocabulary_size == tokenizer.vocabulary_size == 49152


def test_the_real_models_sizes_are_read_from_its_file(model_path: Path, plain_ops: Ops) -> None:
    config = load_model(model_path, CPU, plain_ops).config
    assert (config.layers, config.hidden, config.heads, config.kv_heads, config.head_dim, config.ff) == (30, 576, 9, 3, 64, 1536)
    assert (config.context_tokens, config.rope_theta, config.tied_embedding) == (8192, 100000.0, True)
    assert config.norm_eps == pytest.approx(1e-5)


def test_a_path_that_is_not_there_tells_what_can_be_given(plain_ops: Ops, tmp_path: Path) -> None:
    with pytest.raises(ModelUnreadable, match=r"nowhere: no such file or folder.*turnstile pull"):
        load_model(tmp_path / "nowhere", CPU, plain_ops)
    with pytest.raises(ModelUnreadable, match="nowhere: no such file or folder"):
        load_tokenizer(tmp_path / "nowhere")


def test_an_unknown_architecture_is_refused_with_the_known_ones(plain_ops: Ops, tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "m.gguf", fields={"general.architecture": "mamba"}).path
    with pytest.raises(ModelUnreadable, match=r"architecture 'mamba' is not known. Known are: llama"):
        load_model(path, CPU, plain_ops)


def test_an_unknown_rope_scaling_is_refused_by_name(plain_ops: Ops, tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "m.gguf", fields={"llama.rope.scaling.type": "yarn"}).path
    with pytest.raises(ModelUnreadable, match="rope scaling of the type 'yarn' is not supported"):
        load_model(path, CPU, plain_ops)


def test_a_quantisation_that_is_not_known_is_refused_with_the_known_ones(plain_ops: Ops, tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "m.gguf", kinds={"ffn_down": "Q5_0"}).path
    with pytest.raises(ModelUnreadable, match=r"'blk\.0\.ffn_down\.weight' is stored as Q5_0.*Q4_1"):
        load_model(path, CPU, plain_ops)


def renamed(path: Path, target: Path, old: str, new: str) -> Path:
    assert len(old) == len(new)
    target.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    return target


def test_a_missing_tensor_is_named(tiny: Path, plain_ops: Ops, tmp_path: Path) -> None:
    path = renamed(tiny, tmp_path / "m.gguf", "blk.1.attn_k.weight", "blk.7.attn_k.weight")
    with pytest.raises(ModelUnreadable, match=r"'blk\.1\.attn_k\.weight' is missing"):
        load_model(path, CPU, plain_ops)


def test_a_tensor_that_would_be_left_out_is_named(tiny: Path, plain_ops: Ops, tmp_path: Path) -> None:
    path = renamed(tiny, tmp_path / "m.gguf", "llama.block_count", "llama.block_c0unt")
    with pytest.raises(ModelUnreadable, match="block_count"):
        load_model(path, CPU, plain_ops)
    one_layer = GgufFile(tiny)
    data = bytearray(tiny.read_bytes())
    place = data.index(b"llama.block_count") + len("llama.block_count") + 4
    assert data[place] == one_layer.fields["llama.block_count"] == 2
    data[place] = 1
    path.write_bytes(data)
    with pytest.raises(ModelUnreadable, match=r"9 tensors have no place in a llama model \(blk\.1\."):
        load_model(path, CPU, plain_ops)


def test_a_wrong_shape_is_named_with_both_shapes(plain_ops: Ops, tmp_path: Path) -> None:
    data = bytearray(save_gguf(tmp_path / "m.gguf").path.read_bytes())
    place = data.index(b"llama.feed_forward_length") + len("llama.feed_forward_length") + 4
    assert data[place] == 96
    data[place] = 64
    (tmp_path / "m.gguf").write_bytes(data)
    with pytest.raises(ModelUnreadable, match=r"ffn_gate\.weight' has the shape \(96, 64\); the metadata asks for \(64, 64\)"):
        load_model(tmp_path / "m.gguf", CPU, plain_ops)


@pytest.mark.timeout(60)
def test_a_damaged_header_never_ends_in_anything_but_a_model_or_a_typed_error(tiny: Path, plain_ops: Ops, tmp_path: Path) -> None:
    whole = tiny.read_bytes()
    header_bytes = min(tensor.start for tensor in GgufFile(tiny).tensors.values())
    chance = random.Random(2)
    path = tmp_path / "damaged.gguf"
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for place in chance.sample(range(header_bytes), chance.choice([1, 1, 3, 10])):
            damaged[place] = chance.choice([0, 255, damaged[place] ^ (1 << chance.randrange(8))])
        path.write_bytes(damaged)
        for load in (lambda: load_model(path, CPU, plain_ops), lambda: load_tokenizer(path)):
            try:
                load()
            except ModelUnreadable as error:
                assert "damaged.gguf" in str(error)
                refused += 1
    assert refused > 100


def test_a_folder_and_its_tokenizer_have_one_vocabulary_size(plain_ops: Ops, tmp_path: Path) -> None:
    folder = save_folder(tmp_path, tiny_llama(config=tiny_config(vocab_size=384)))
    assert load_model(folder, CPU, plain_ops).config.vocabulary_size == load_tokenizer(folder).vocabulary_size == 384
