"""The door to models on disk: a path in, a `Model` out."""

from __future__ import annotations

from pathlib import Path

import torch

from kernels.ops import Ops

from .errors import ModelUnreadable
from .gguf_file import GgufFile
from .gguf_weights import GgufCheckpoint
from .model import Model
from .safetensors_folder import SafetensorsFolder
from .weights import Checkpoint, read_weights


def load_model(path: Path, device: torch.device, ops: Ops) -> Model:
    """A GGUF file, or a Hugging Face folder with config.json and safetensors.

    Raises ModelUnreadable, saying which file, what is wrong with it and what to do, for anything that can't be
    served exactly.
    """
    checkpoint = open_checkpoint(path)
    with torch.inference_mode():
        return Model(checkpoint.config, read_weights(checkpoint, ops, device), ops, device)


def open_checkpoint(path: Path) -> Checkpoint:
    """Reads the header and the settings, not yet the weights. Raises ModelUnreadable."""
    if not path.exists():
        raise ModelUnreadable(f"{path}: no such file or folder. Give a GGUF file, a Hugging Face folder or a hub name; "
                              "`turnstile pull` fetches the embedded model.")
    return SafetensorsFolder(path) if path.is_dir() else GgufCheckpoint(GgufFile(path))
