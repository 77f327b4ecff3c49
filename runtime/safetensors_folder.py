"""A Hugging Face folder as a checkpoint: one safetensors file, or several listed by an index.

Only safetensors are read: the older pickled formats can run code when they are opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from kernels.quant import QuantTensor

from .errors import ModelUnreadable
from .model_config import ModelConfig, config_of_folder, read_json

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
NAMES = {"embedding": "model.embed_tokens.weight", "norm": "model.norm.weight", "head": "lm_head.weight"}
LAYER_NAMES = {"attention_norm": "input_layernorm.weight", "q": "self_attn.q_proj.weight", "k": "self_attn.k_proj.weight",
               "v": "self_attn.v_proj.weight", "q_bias": "self_attn.q_proj.bias", "k_bias": "self_attn.k_proj.bias",
               "v_bias": "self_attn.v_proj.bias", "out": "self_attn.o_proj.weight", "ffn_norm": "post_attention_layernorm.weight",
               "gate": "mlp.gate_proj.weight", "up": "mlp.up_proj.weight", "down": "mlp.down_proj.weight"}


class SafetensorsFolder:
    """Reads tensors from memory-mapped files as they are asked for, as float32, and remembers which."""

    def __init__(self, path: Path) -> None:
        """Raises ModelUnreadable if a file is missing or damaged, or config.json isn't a known model's."""
        self.path = path
        self.config: ModelConfig = config_of_folder(path)
        self._files = {name: _open(path / name) for name in _file_names(path)}
        self._holders: dict[str, Any] = {}
        for name, file in self._files.items():
            for tensor in file.keys():    # noqa: SIM118 - no dictionary: it can't be iterated
                if tensor in self._holders:
                    raise ModelUnreadable(f"{path / name}: tensor {tensor!r} is in another file of the folder, too.")
                self._holders[tensor] = file
        self._unused = {tensor for tensor in self._holders if not _ignored(tensor, self.config)}

    def has(self, name: str) -> bool:
        return _stored_name(name) in self._holders

    def unused(self) -> list[str]:
        return sorted(self._unused)

    def matrix(self, name: str, shape: tuple[int, int]) -> QuantTensor:
        return QuantTensor("f32", shape, self._read(name, shape))

    def vector(self, name: str, length: int) -> Tensor:
        return self._read(name, (length,))

    def _read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        stored = _stored_name(name)
        if stored not in self._holders:
            raise ModelUnreadable(f"{self.path}: tensor {stored!r} is missing. The folder is incomplete; fetch it again.")
        try:
            values: Tensor = self._holders[stored].get_tensor(stored)
        except SafetensorError as error:
            raise ModelUnreadable(f"{self.path}: tensor {stored!r} can't be read: {error}. Fetch the folder again.") from None
        if tuple(values.shape) != shape:
            raise ModelUnreadable(f"{self.path}: tensor {stored!r} has the shape {tuple(values.shape)}; "
                                  f"config.json asks for {shape}.")
        if values.dtype not in FLOATS:
            raise ModelUnreadable(f"{self.path}: tensor {stored!r} is stored as {values.dtype}, which can't be read. "
                                  "Known are float32, float16 and bfloat16.")
        self._unused.discard(stored)
        return values.to(torch.float32)


def _file_names(path: Path) -> list[str]:
    if (path / INDEX).exists():
        weight_map = read_json(path / INDEX).get("weight_map")
        if not isinstance(weight_map, dict) or not all(_plain_name(name) for name in weight_map.values()):
            raise ModelUnreadable(f"{path / INDEX}: weight_map should name files of this folder. Fetch the model again.")
        return sorted(set(weight_map.values()))
    if (path / SINGLE).exists():
        return [SINGLE]
    if any(next(path.glob(pattern), None) for pattern in PICKLED):
        raise ModelUnreadable(f"{path}: only pickled weights are here (.bin, .pt), which can run code when opened and "
                              "are never read. Get the model's safetensors, or convert it once with save_pretrained.")
    raise ModelUnreadable(f"{path}: neither {SINGLE} nor {INDEX} is here. Fetch the model again.")


def _plain_name(name: object) -> bool:
    return isinstance(name, str) and Path(name).name == name


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except FileNotFoundError:
        raise ModelUnreadable(f"{path}: the file is listed in the index and missing. Fetch the model again.") from None
    except (SafetensorError, OSError) as error:
        raise ModelUnreadable(f"{path}: not a sound safetensors file: {error}. Fetch the model again.") from None


def _ignored(tensor: str, config: ModelConfig) -> bool:
    """Stored by some tools although it says nothing new: rotary tables, and the head where it's the embedding."""
    return tensor.endswith("rotary_emb.inv_freq") or (config.tied_embedding and tensor == NAMES["head"])


def _stored_name(name: str) -> str:
    if not name.startswith("layers."):
        return NAMES.get(name, name)
    _, layer, part = name.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}"
