"""Tiny models with random weights, made on the spot by the libraries that define the formats.

Folders come from `transformers` (save_pretrained), GGUF files from the `gguf` package's writer, so that
what reads them is held to formats that it didn't write itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerFast
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from .gguf_oracle import halves_apart

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CORPUS = ["the cat sat on the mat and the dog sat on the log", "numbers 123 and 456", "hello there, general reader", "über größe"]
N_TOKENS = 320


def tiny_tokenizer() -> Tokenizer:
    """Byte-level BPE of N_TOKENS tokens, the specials first, cut like SmolLM2's: digits apart, no space before."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(CORPUS * 20, trainers.BpeTrainer(
        vocab_size=N_TOKENS, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in SPECIALS]))
    return backend


def tiny_config(**changes: Any) -> LlamaConfig:
    values = {
        "vocab_size": N_TOKENS, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    } | changes
    return LlamaConfig(**values)


def tiny_llama(seed: int = 0, config: LlamaConfig | None = None) -> PreTrainedModel:
    """Random weights, spread enough that attention is far from uniform."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config or tiny_config()).eval().float()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(1.0, 0.2) if "norm" in name else weight.normal_(0.0, 0.15)
    return model


def save_folder(folder: Path, model: PreTrainedModel, **save_options: Any) -> Path:
    """A Hugging Face folder: config, weights, generation settings, tokenizer and chat template."""
    model.generation_config.eos_token_id = [2, 0]
    model.save_pretrained(folder, **save_options)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), bos_token="<|im_start|>", eos_token="<|im_end|>",
                                        pad_token="<|endoftext|>", chat_template=CHAT_TEMPLATE)
    tokenizer.save_pretrained(folder)
    return folder


@dataclass(frozen=True, slots=True)
class TinyGguf:
    """A GGUF file, and the model that holds the very values which the file's quantised bytes stand for."""

    path: Path
    model: LlamaForCausalLM


def save_gguf(path: Path, seed: int = 0, kind: str = "Q4_1", fields: dict[str, Any] | None = None,
              config: LlamaConfig | None = None, kinds: dict[str, str] | None = None) -> TinyGguf:
    """Matrices of `kind` (or of what `kinds` says of a part, such as "attn_v"), embedding and head Q8_0, norms F32,
    as llama.cpp's converter lays them out. `fields` are metadata strings that replace or add to the usual ones.
    """
    kinds = {"token_embd": "Q8_0", "output": "Q8_0"} | (kinds or {})
    model = tiny_llama(seed, config)
    config = model.config
    fields = fields or {}
    writer = gguf.GGUFWriter(path, fields.get("general.architecture", "llama"))
    _write_metadata(writer, config, fields)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    state = model.state_dict()
    for name, stored in _gguf_names(config).items():
        weight = state[name].numpy()
        if weight.ndim == 1:
            writer.add_tensor(stored, weight)
            continue
        part = stored.split(".")[-2]
        if part in heads:
            weight = _interleave(weight, heads[part])
        quantization = gguf.GGMLQuantizationType[kinds.get(part, kind)]
        packed = gguf.quants.quantize(weight, quantization)
        writer.add_tensor(stored, packed, raw_dtype=quantization)
        exact = gguf.quants.dequantize(packed, quantization)
        state[name].copy_(torch.from_numpy(halves_apart(exact, heads[part]) if part in heads else exact))
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", _rope_divisors(config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return TinyGguf(path, model)


def _interleave(weight: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's converter: the halves of each head's rows, row by row in turn."""
    rows = len(weight)
    half = rows // heads // 2
    order = [h * 2 * half + half * j + i for h in range(heads) for i in range(half) for j in (0, 1)]
    return np.stack([weight[row] for row in order])


def _rope_divisors(config: LlamaConfig) -> np.ndarray:
    """How many times slower each frequency is than without scaling, by the rotary tables of transformers."""
    head_dim, theta = config.hidden_size // config.num_attention_heads, config.rope_parameters["rope_theta"]
    unscaled = theta ** -(np.arange(0, head_dim, 2) / head_dim)
    return (unscaled / LlamaRotaryEmbedding(config).inv_freq.numpy()).astype(np.float32)


def _gguf_names(config: LlamaConfig) -> dict[str, str]:
    names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if not config.tie_word_embeddings:
        names["lm_head.weight"] = "output.weight"
    parts = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    for i in range(config.num_hidden_layers):
        names |= {f"model.layers.{i}.{part}.weight": f"blk.{i}.{stored}.weight" for part, stored in parts.items()}
    return names


def _write_metadata(writer: gguf.GGUFWriter, config: LlamaConfig, fields: dict[str, Any]) -> None:
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    described = json.loads(tiny_tokenizer().to_str())
    tokens = sorted(described["model"]["vocab"], key=described["model"]["vocab"].get)
    texts = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.chat_template": CHAT_TEMPLATE} | fields
    for key, value in texts.items():
        if key != "general.architecture":
            writer.add_string(key, value)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIALS else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in described["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
