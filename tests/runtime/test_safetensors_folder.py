"""Hugging Face folders: what is refused, and that the refusal says what and why."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from runtime.errors import ModelUnreadable
from runtime.safetensors_folder import SafetensorsFolder
from tests.support.tiny_models import save_folder, tiny_config, tiny_llama


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_folder(tmp_path, tiny_llama())


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


REFUSED_SETTINGS = {
    "architecture 'BloomForCausalLM' is not known. Known are: LlamaForCausalLM": {"architectures": ["BloomForCausalLM"]},
    r"architecture '\(none\)' is not known": {"architectures": None},
    "rope scaling of the type 'yarn' is not supported. Known are: default, llama3": {
        "rope_parameters": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 10000.0}},
    "attention_bias is not supported": {"attention_bias": True},
    "mlp_bias is not supported": {"mlp_bias": True},
    "activation 'gelu' is not supported": {"hidden_act": "gelu"},
    "quantised by 'gptq' can't be read": {"quantization_config": {"quant_method": "gptq", "bits": 4}},
    r"sliding-window attention \(128 tokens\) is not supported": {"sliding_window": 128},
    "'hidden_size' should be a number and is 'wide'": {"hidden_size": "wide"},
    "kv_heads is 0": {"num_key_value_heads": 0},
    "can't share 3 key and value heads": {"num_key_value_heads": 3},
    "a context of 1000000000000 tokens|context_tokens is 1000000000000": {"max_position_embeddings": 1_000_000_000_000},
}


@pytest.mark.parametrize("message", REFUSED_SETTINGS)
def test_settings_that_cant_be_honoured_are_refused_by_name(message: str, folder: Path) -> None:
    edit_json(folder / "config.json", **REFUSED_SETTINGS[message])
    with pytest.raises(ModelUnreadable, match=r"config\.json: .*" + f"(?:{message})"):
        SafetensorsFolder(folder)


def test_older_spelling_of_the_rope_settings_is_understood(folder: Path) -> None:
    raw = json.loads((folder / "config.json").read_text())
    del raw["rope_parameters"]
    scaling = {"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}
    raw |= {"rope_theta": 500000, "rope_scaling": scaling}
    (folder / "config.json").write_text(json.dumps(raw))
    config = SafetensorsFolder(folder).config
    assert config.rope_theta == 500000.0
    assert config.rope_scaling is not None
    assert (config.rope_scaling.factor, config.rope_scaling.original_context_tokens) == (8.0, 8192)


@pytest.mark.parametrize("content", ["", "[1]", '{"a":', "[" * 100_000, "\udcff"])
def test_settings_that_are_no_json_object_are_refused(content: str, folder: Path) -> None:
    (folder / "config.json").write_text(content, errors="surrogateescape")
    with pytest.raises(ModelUnreadable, match=r"config\.json: not "):
        SafetensorsFolder(folder)


def test_a_folder_without_settings_tells_what_a_model_needs(tmp_path: Path) -> None:
    with pytest.raises(ModelUnreadable, match=r"config\.json: the file is missing.*safetensors and tokenizer\.json"):
        SafetensorsFolder(tmp_path)


def test_pickled_weights_are_never_opened(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelUnreadable, match=r"only pickled weights are here.*never read.*safetensors"):
        SafetensorsFolder(folder)


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelUnreadable, match=r"neither model\.safetensors nor model\.safetensors\.index\.json is here"):
        SafetensorsFolder(folder)


def test_a_missing_tensor_is_named(folder: Path) -> None:
    edit_weights(folder, lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"))
    with pytest.raises(ModelUnreadable, match=r"'model\.layers\.1\.mlp\.up_proj\.weight' is missing"):
        SafetensorsFolder(folder).matrix("layers.1.up", (96, 64))


def test_a_wrong_shape_is_named_with_both_shapes(folder: Path) -> None:
    with pytest.raises(ModelUnreadable, match=r"up_proj\.weight' has the shape \(96, 64\); config\.json asks for \(95, 64\)"):
        SafetensorsFolder(folder).matrix("layers.1.up", (95, 64))


def test_integer_weights_are_refused(folder: Path) -> None:
    edit_weights(folder, lambda tensors: tensors.update({"model.norm.weight": torch.ones(64, dtype=torch.int8)}))
    with pytest.raises(ModelUnreadable, match=r"'model\.norm\.weight' is stored as torch\.int8"):
        SafetensorsFolder(folder).vector("norm", 64)


def test_a_tied_heads_copy_and_old_rotary_tables_are_no_extra_tensors(folder: Path) -> None:
    edit_weights(folder, lambda tensors: tensors.update({
        "lm_head.weight": tensors["model.embed_tokens.weight"].clone(),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8),
        "model.layers.0.strange": torch.ones(1)}))
    assert "model.layers.0.strange" in SafetensorsFolder(folder).unused()
    assert not {"lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq"} & set(SafetensorsFolder(folder).unused())


@pytest.mark.parametrize("name", ["../elsewhere.safetensors", "/etc/passwd", 3])
def test_an_index_may_only_name_files_of_its_folder(name: object, folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"model.norm.weight": name}}))
    with pytest.raises(ModelUnreadable, match="weight_map should name files of this folder"):
        SafetensorsFolder(folder)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = save_folder(tmp_path, tiny_llama(config=tiny_config()), max_shard_size="100KB")
    shard = sorted(folder.glob("*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(ModelUnreadable, match=f"{shard.name}: the file is listed in the index and missing"):
        SafetensorsFolder(folder)


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    folder = save_folder(tmp_path, tiny_llama(), max_shard_size="100KB")
    first, second = sorted(folder.glob("*.safetensors"))[:2]
    save_file(load_file(second) | {next(iter(load_file(first))): torch.ones(1)}, second)
    with pytest.raises(ModelUnreadable, match="is in another file of the folder, too"):
        SafetensorsFolder(folder)


def test_a_damaged_weight_file_is_refused_wherever_it_is_cut_or_changed(folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    header_bytes = 8 + int.from_bytes(whole[:8], "little")
    chance = random.Random(4)
    for _ in range(60):
        path.write_bytes(whole[:chance.randrange(len(whole))])
        with pytest.raises(ModelUnreadable, match="not a sound safetensors file"):
            SafetensorsFolder(folder)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[chance.randrange(header_bytes)] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            SafetensorsFolder(folder).matrix("layers.0.q", (64, 64))
        except ModelUnreadable as error:
            assert str(folder) in str(error)
