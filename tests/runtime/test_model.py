"""The forward pass on tiny random models, held to `transformers` and to itself in other batches."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, MistralConfig, PreTrainedModel, Qwen2Config

from kernels.batch import RaggedBatch
from kernels.ops import Ops
from runtime.loading import load_model
from runtime.model import Model
from tests.support.paged import greedy
from tests.support.tiny_models import save_folder, save_gguf, tiny_config, tiny_llama

CPU = torch.device("cpu")
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
SIZES = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 256}
CONFIGS = {
    "tied embedding, two heads to a kv head": tiny_config(),
    "untied embedding": tiny_config(tie_word_embeddings=False),
    "a kv head for each head": tiny_config(num_key_value_heads=4),
    "one kv head": tiny_config(num_key_value_heads=1),
    "heads wider than hidden / heads": tiny_config(head_dim=32),
    "llama3 rope scaling": tiny_config(rope_parameters=LLAMA3),
    "another rope base": tiny_config(rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
    "another norm epsilon": tiny_config(rms_norm_eps=1e-2),
    "mistral": MistralConfig(**SIZES, sliding_window=None),
    "qwen2, with biases": Qwen2Config(**SIZES),
}
TOKENS = torch.randint(0, 320, (150,), generator=torch.Generator().manual_seed(3)).tolist()


def whole_batch(tokens: list[int], logit_rows: list[int], block_tokens: int = 16) -> RaggedBatch:
    n = len(tokens)
    n_blocks = -(-n // block_tokens)
    return RaggedBatch(
        tokens=torch.tensor(tokens), positions=torch.arange(n, dtype=torch.int32), slots=torch.arange(n),
        query_starts=torch.tensor([0, n], dtype=torch.int32), context_lens=torch.tensor([n], dtype=torch.int32),
        block_tables=torch.arange(n_blocks, dtype=torch.int32).unsqueeze(0),
        logit_rows=torch.tensor(logit_rows, dtype=torch.int64))


def expected_logits(judge: PreTrainedModel, tokens: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return judge(torch.tensor([tokens])).logits[0]


def all_logits(model: Model, tokens: list[int]) -> torch.Tensor:
    return model.forward(whole_batch(tokens, list(range(len(tokens)))), model.new_pool(10, 16))


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_of_a_folder_are_those_of_transformers(name: str, ops: Ops, tmp_path: Path) -> None:
    judge = tiny_llama(5, CONFIGS[name])
    model = load_model(save_folder(tmp_path, judge), CPU, ops)
    torch.testing.assert_close(all_logits(model, TOKENS), expected_logits(judge, TOKENS), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0", "F32", "F16", "BF16"])
def test_logits_of_a_gguf_file_are_those_of_the_values_in_it(kind: str, ops: Ops, tmp_path: Path) -> None:
    tiny = save_gguf(tmp_path / "tiny.gguf", seed=6, kind=kind)
    model = load_model(tiny.path, CPU, ops)
    torch.testing.assert_close(all_logits(model, TOKENS), expected_logits(tiny.model, TOKENS), atol=1e-4, rtol=1e-4)


def test_a_gguf_file_with_a_head_of_its_own_uses_it(ops: Ops, tmp_path: Path) -> None:
    tiny = save_gguf(tmp_path / "tiny.gguf", config=tiny_config(tie_word_embeddings=False))
    model = load_model(tiny.path, CPU, ops)
    assert not torch.equal(tiny.model.lm_head.weight, tiny.model.model.embed_tokens.weight)
    torch.testing.assert_close(all_logits(model, TOKENS), expected_logits(tiny.model, TOKENS), atol=1e-4, rtol=1e-4)


def test_projections_stored_in_different_types_are_computed_apart(ops: Ops, tmp_path: Path) -> None:
    tiny = save_gguf(tmp_path / "tiny.gguf", kinds={"attn_v": "Q8_0", "ffn_up": "F16"})
    model = load_model(tiny.path, CPU, ops)
    torch.testing.assert_close(all_logits(model, TOKENS), expected_logits(tiny.model, TOKENS), atol=1e-4, rtol=1e-4)


def test_rope_divisors_in_a_gguf_file_are_the_llama3_scaling_that_they_stand_for(ops: Ops, tmp_path: Path) -> None:
    tiny = save_gguf(tmp_path / "tiny.gguf", config=tiny_config(rope_parameters=LLAMA3))
    model = load_model(tiny.path, CPU, ops)
    torch.testing.assert_close(all_logits(model, TOKENS), expected_logits(tiny.model, TOKENS), atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def tiny_model(ops: Ops, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load_model(save_gguf(tmp_path_factory.mktemp("tiny") / "tiny.gguf", seed=8).path, CPU, ops)


def test_sharded_weights_are_the_same_model(ops: Ops, tmp_path: Path) -> None:
    judge = tiny_llama(9, LlamaConfig(**SIZES))
    folder = save_folder(tmp_path, judge, max_shard_size="100KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    assert (folder / "model.safetensors.index.json").exists()
    model = load_model(folder, CPU, ops)
    torch.testing.assert_close(all_logits(model, TOKENS), expected_logits(judge, TOKENS), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_computed_in_float32(dtype: torch.dtype, ops: Ops, tmp_path: Path) -> None:
    model = load_model(save_folder(tmp_path, tiny_llama(10).to(dtype)), CPU, ops)
    judge = tiny_llama(10)
    for weight in judge.parameters():
        weight.data = weight.data.to(dtype).float()
    torch.testing.assert_close(all_logits(model, TOKENS), expected_logits(judge, TOKENS), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("block_tokens", [1, 5, 16])
@pytest.mark.parametrize("chunk_tokens", [1, 7, 64])
def test_chunks_in_scattered_blocks_give_the_logits_of_one_whole_pass(
        chunk_tokens: int, block_tokens: int, tiny_model: Model) -> None:
    prompts = [TOKENS[:70], TOKENS[70:73], TOKENS[80:113]]
    rows = greedy(tiny_model, prompts, 6, chunk_tokens=chunk_tokens, block_tokens=block_tokens, join_every=3)
    for row in rows:
        whole = all_logits(tiny_model, row.tokens[:-1])[row.prompt_length - 1:]
        torch.testing.assert_close(torch.stack(row.logits), whole, atol=1e-4, rtol=1e-4)
        assert row.tokens[row.prompt_length:] == whole.argmax(-1).tolist()


def test_only_the_wanted_rows_logits_are_computed(tiny_model: Model) -> None:
    wanted = tiny_model.forward(whole_batch(TOKENS[:20], [19, 3]), tiny_model.new_pool(2, 16))
    torch.testing.assert_close(wanted, all_logits(tiny_model, TOKENS[:20])[[19, 3]], atol=1e-5, rtol=1e-5)


def test_a_chunk_amid_a_prompt_gives_no_logits_and_fills_the_pool(tiny_model: Model) -> None:
    pool = tiny_model.new_pool(2, 16).fill_(float("nan"))
    assert tiny_model.forward(whole_batch(TOKENS[:20], []), pool).shape == (0, 320)
    assert pool[:, :, 0].isfinite().all()
    assert pool[:, :, 1, :, :4].isfinite().all()
    assert pool[:, :, 1, :, 4:].isnan().all()


def test_a_pool_costs_what_the_model_says(tiny_model: Model) -> None:
    pool = tiny_model.new_pool(3, 16)
    assert pool.shape == (2, 2, 3, 2, 16, 16)
    assert pool.nbytes == 3 * 16 * tiny_model.kv_bytes_per_token
