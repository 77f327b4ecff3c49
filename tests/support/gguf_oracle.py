"""The real model as `transformers` computes it, from the GGUF file as the `gguf` package reads it.

Nothing here goes through our reader, our dequantisation or our row order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from transformers import LlamaConfig, LlamaForCausalLM

PARTS = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def llama_of(reader: GGUFReader) -> LlamaForCausalLM:
    """Float32, attention in plain torch, embedding tied."""
    def field(key: str) -> Any:
        return reader.fields[f"llama.{key}"].contents()

    config = LlamaConfig(
        vocab_size=field("vocab_size"), hidden_size=field("embedding_length"), intermediate_size=field("feed_forward_length"),
        num_hidden_layers=field("block_count"), num_attention_heads=field("attention.head_count"),
        num_key_value_heads=field("attention.head_count_kv"), max_position_embeddings=field("context_length"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"), tie_word_embeddings=True, attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": field("rope.freq_base")},
        bos_token_id=1, eos_token_id=2, pad_token_id=2)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    state = {}
    for tensor in reader.tensors:
        part = tensor.name.split(".")[-2]
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if part in heads:
            values = halves_apart(values, heads[part])
        name = WHOLE.get(part) or f"model.layers.{tensor.name.split('.')[1]}.{PARTS[part]}"
        state[name + ".weight"] = torch.from_numpy(values.copy())
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.load_state_dict(state | {"lm_head.weight": state["model.embed_tokens.weight"]}, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)      # its table is no part of the state
    return model.eval()


def halves_apart(values: np.ndarray, heads: int) -> np.ndarray:
    """Rows of each head from llama.cpp's order (pairs side by side) to that of transformers (pairs half a head apart)."""
    size = len(values) // heads
    return np.concatenate([values[h * size + j : (h + 1) * size : 2] for h in range(heads) for j in (0, 1)])
