"""Puts an engine together: kernels, model, tokenizer, and a cache as large as memory allows."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from kernels.ops import NativeUnavailable, Ops, load_ops

from .config import EngineConfig
from .engine import Engine
from .epoch import epoch_of
from .errors import EngineUnavailable
from .loading import load_model
from .memory import GIB, available_bytes, cache_tokens, usable_cores
from .model import Model
from .protocol import ModelInfo
from .tokenizer import load_tokenizer


def start_engine(config: EngineConfig, clock: Callable[[], float] = time.monotonic) -> tuple[Engine, ModelInfo]:
    """Load everything. Raises ModelUnreadable, or EngineUnavailable when device, kernels or memory are missing."""
    started_s = clock()
    device = _device(config.device)
    ops = _ops(device, config)
    ops.set_threads(config.threads or usable_cores())
    model = load_model(config.model_path, device, ops)
    tokenizer = load_tokenizer(config.model_path)
    epoch = epoch_of(config.model_path, model.new_pool(1, config.block_tokens))
    engine = Engine(config, model, tokenizer, ops, _n_blocks(config, model), clock, epoch)
    return engine, ModelInfo(config.model_name, engine.context_tokens, tokenizer.vocabulary_size, ops.name, str(device),
                             clock() - started_s, epoch.hex())


def _device(wanted: str) -> torch.device:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise EngineUnavailable("device cuda was asked for and no CUDA device is found: use device=cpu, or check the driver")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def _ops(device: torch.device, config: EngineConfig) -> Ops:
    try:
        return load_ops(device, config.kernels)
    except NativeUnavailable as error:
        raise EngineUnavailable(f"kernels native was asked for: {error}. Or use kernels=auto") from None


def _n_blocks(config: EngineConfig, model: Model) -> int:
    token_bytes = model.kv_bytes_per_token
    free = torch.cuda.mem_get_info(model.device)[0] if model.device.type == "cuda" else available_bytes()
    context = config.max_context_tokens or model.config.context_tokens
    tokens = cache_tokens(config.kv_cache_tokens, token_bytes, free, context, config.block_tokens)
    if tokens * token_bytes > free:
        raise EngineUnavailable(f"a KV cache of {tokens} tokens needs {tokens * token_bytes / GIB:.1f} GiB and "
                                f"{free / GIB:.1f} GiB are free: ask for a smaller kv_cache_tokens")
    return tokens // config.block_tokens
