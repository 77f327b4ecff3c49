"""What a model is: its sizes and the few choices in which Llama-family models differ.

Read from a GGUF file's metadata or a Hugging Face folder's config.json. Whatever the forward pass
can't honour is refused here by name: a model is served exactly or not at all. Imports no torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import ModelUnreadable
from .gguf_file import GgufFile

GGUF_ARCHITECTURES = ("llama",)      # Llama 2 and 3, Mistral, SmolLM2 and others are stored under this name
FOLDER_ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")
ROPE_TYPES = ("default", "llama3")
MOST_CONTEXT_TOKENS = 1 << 20        # the table of rotations grows with it: a damaged number must not claim the memory
LARGEST_SIZE = 1 << 24              # of any count below: more is a damaged number
MOST_CONFIG_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Llama3Rope:
    """How Llama 3.1 stretches the slow rotary frequencies to reach past the context that it was trained on."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context_tokens: int


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes count elements. `heads` is a multiple of `kv_heads`; `head_dim` is even."""

    architecture: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    ff: int
    vocabulary_size: int               # rows of the embedding, and logits of a row
    context_tokens: int
    rope_theta: float
    norm_eps: float
    tied_embedding: bool               # the embedding's rows are the output head's too
    qkv_bias: bool = False
    rope_scaling: Llama3Rope | None = None


def config_of_gguf(file: GgufFile) -> ModelConfig:
    """Raises ModelUnreadable if the metadata is incomplete, contradicts itself, or names what isn't known."""
    architecture = file.field("general.architecture", str)
    if architecture not in GGUF_ARCHITECTURES:
        raise _unknown_architecture(file.path, architecture, GGUF_ARCHITECTURES)
    prefix = f"{architecture}."
    _refuse_gguf_variants(file, prefix)
    heads = file.field(prefix + "attention.head_count", int)
    hidden = file.field(prefix + "embedding_length", int)
    embedding = file.tensors.get("token_embd.weight")
    config = ModelConfig(
        architecture=architecture,
        layers=file.field(prefix + "block_count", int),
        heads=heads,
        kv_heads=file.field(prefix + "attention.head_count_kv", int, heads),
        head_dim=file.field(prefix + "attention.key_length", int, hidden // heads if heads else 0),
        hidden=hidden,
        ff=file.field(prefix + "feed_forward_length", int),
        vocabulary_size=embedding.shape[0] if embedding else 0,
        context_tokens=file.field(prefix + "context_length", int),
        rope_theta=file.field(prefix + "rope.freq_base", float, 10000.0),
        norm_eps=file.field(prefix + "attention.layer_norm_rms_epsilon", float),
        tied_embedding="output.weight" not in file.tensors,
        qkv_bias="blk.0.attn_q.bias" in file.tensors,
    )
    rotated = file.field(prefix + "rope.dimension_count", int, config.head_dim)
    if rotated != config.head_dim:
        raise ModelUnreadable(f"{file.path}: rotary positions on {rotated} of {config.head_dim} dimensions are not supported.")
    return _checked(config, file.path)


def _refuse_gguf_variants(file: GgufFile, prefix: str) -> None:
    scaling = file.field(prefix + "rope.scaling.type", str, "none")
    if scaling != "none":
        raise _unknown_rope(file.path, scaling)
    if file.field(prefix + "expert_count", int, 0):
        raise ModelUnreadable(f"{file.path}: mixtures of experts are not supported.")


def config_of_folder(folder: Path) -> ModelConfig:
    """From config.json. Raises ModelUnreadable like `config_of_gguf`."""
    path = folder / "config.json"
    raw = read_json(path)
    named = raw.get("architectures")
    architecture = str(named[0]) if isinstance(named, list) and named else "(none)"
    if architecture not in FOLDER_ARCHITECTURES:
        raise _unknown_architecture(path, architecture, FOLDER_ARCHITECTURES)
    _refuse_folder_variants(path, raw)
    heads, hidden = _number(path, raw, "num_attention_heads"), _number(path, raw, "hidden_size")
    rope_theta, scaling = _rope(path, raw)
    return _checked(ModelConfig(
        architecture=architecture,
        layers=_number(path, raw, "num_hidden_layers"),
        heads=heads,
        kv_heads=_number(path, raw, "num_key_value_heads", heads),
        head_dim=_number(path, raw, "head_dim", hidden // heads if heads > 0 else 0),
        hidden=hidden,
        ff=_number(path, raw, "intermediate_size"),
        vocabulary_size=_number(path, raw, "vocab_size"),
        context_tokens=_number(path, raw, "max_position_embeddings"),
        rope_theta=rope_theta,
        norm_eps=_number(path, raw, "rms_norm_eps", kind=float),
        tied_embedding=bool(raw.get("tie_word_embeddings", False)),
        qkv_bias=architecture == "Qwen2ForCausalLM",
        rope_scaling=scaling,
    ), path)


def _refuse_folder_variants(path: Path, raw: dict[str, Any]) -> None:
    if raw.get("quantization_config"):
        settings = raw["quantization_config"]
        method = settings.get("quant_method", "unknown") if isinstance(settings, dict) else "unknown"
        raise ModelUnreadable(f"{path}: weights quantised by {method!r} can't be read. "
                              "Serve the unquantised folder or a GGUF file.")
    for flag in ("attention_bias", "mlp_bias"):
        if raw.get(flag):
            raise ModelUnreadable(f"{path}: {flag} is not supported.")
    if raw.get("hidden_act", "silu") != "silu":
        raise ModelUnreadable(f"{path}: the activation {raw['hidden_act']!r} is not supported; known is 'silu'.")
    windowed = raw.get("sliding_window") is not None and raw.get("use_sliding_window", True)
    window = _number(path, raw, "sliding_window") if windowed else None
    if window is not None and window < _number(path, raw, "max_position_embeddings"):
        raise ModelUnreadable(f"{path}: sliding-window attention ({window} tokens) is not supported. "
                              "Set max_position_embeddings to the window's size to serve the model up to there.")


def _rope(path: Path, raw: dict[str, Any]) -> tuple[float, Llama3Rope | None]:
    """Newer files hold everything in rope_parameters; older ones rope_theta and, if any, rope_scaling."""
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise ModelUnreadable(f"{path}: the rope parameters are not an object.")
    theta = _number(path, {"rope_theta": rope.get("rope_theta", raw.get("rope_theta", 10000.0))}, "rope_theta", kind=float)
    kind = str(rope.get("rope_type", rope.get("type", "default")))
    if kind not in ROPE_TYPES:
        raise _unknown_rope(path, kind)
    if rope.get("partial_rotary_factor", raw.get("partial_rotary_factor", 1.0)) != 1.0:
        raise ModelUnreadable(f"{path}: rotary positions on a part of the dimensions are not supported.")
    if kind == "default":
        return theta, None
    return theta, Llama3Rope(
        factor=_number(path, rope, "factor", kind=float),
        low_freq_factor=_number(path, rope, "low_freq_factor", kind=float),
        high_freq_factor=_number(path, rope, "high_freq_factor", kind=float),
        original_context_tokens=_number(path, rope, "original_max_position_embeddings"),
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a model's folder. Raises ModelUnreadable if it's missing, oversized, or no object."""
    try:
        if path.stat().st_size > MOST_CONFIG_BYTES:
            raise ModelUnreadable(f"{path}: too large to be a model's settings ({path.stat().st_size} bytes).")
        value = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelUnreadable(f"{path}: the file is missing. A model's folder needs config.json, *.safetensors "
                              "and tokenizer.json.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelUnreadable(f"{path}: not readable as JSON: {error}. Fetch the model again.") from None
    if not isinstance(value, dict):
        raise ModelUnreadable(f"{path}: not a JSON object. Fetch the model again.")
    return value


def _number(path: Path, raw: dict[str, Any], key: str, default: Any = None, kind: type = int) -> Any:
    value = raw.get(key)
    value = default if value is None else value
    if type(value) is int or (kind is float and type(value) is float):
        return kind(value)
    raise ModelUnreadable(f"{path}: {key!r} should be a number and is {value!r}.")


def _checked(config: ModelConfig, path: Path) -> ModelConfig:
    sizes = ("layers", "heads", "kv_heads", "head_dim", "hidden", "ff", "vocabulary_size", "context_tokens")
    for name in sizes:
        if not 1 <= getattr(config, name) <= LARGEST_SIZE:
            raise ModelUnreadable(f"{path}: {name} is {getattr(config, name)}. The file is damaged; fetch it again.")
    if config.heads % config.kv_heads or config.head_dim % 2:
        raise ModelUnreadable(f"{path}: {config.heads} heads of {config.head_dim} dimensions can't share {config.kv_heads} "
                              "key and value heads.")
    if config.context_tokens > MOST_CONTEXT_TOKENS:
        raise ModelUnreadable(f"{path}: a context of {config.context_tokens} tokens is more than {MOST_CONTEXT_TOKENS}. "
                              "The file is damaged, or the model is of an unknown kind.")
    scaling = config.rope_scaling
    if not (config.rope_theta > 0 and config.norm_eps >= 0):
        raise ModelUnreadable(f"{path}: a rope base of {config.rope_theta} or a norm epsilon of {config.norm_eps} "
                              "makes no sense.")
    if scaling and not (scaling.factor > 0 and 0 < scaling.low_freq_factor < scaling.high_freq_factor
                        and scaling.original_context_tokens > 0):
        raise ModelUnreadable(f"{path}: the llama3 rope scaling {scaling} makes no sense.")
    return config


def _unknown_architecture(path: Path, found: str, known: tuple[str, ...]) -> ModelUnreadable:
    return ModelUnreadable(f"{path}: the architecture {found!r} is not known. Known are: {', '.join(known)}.")


def _unknown_rope(path: Path, found: str) -> ModelUnreadable:
    return ModelUnreadable(f"{path}: rope scaling of the type {found!r} is not supported. Known are: {', '.join(ROPE_TYPES)}.")
