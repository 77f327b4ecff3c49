"""The engine's settings, made once by the gateway and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class EngineConfig:
    model_path: Path                   # a GGUF file, or a Hugging Face folder
    model_name: str
    device: Literal["auto", "cpu", "cuda"] = "auto"
    kernels: Literal["auto", "native", "reference"] = "auto"
    threads: int = 0                   # 0: the cores that this process may use
    block_tokens: int = 16
    kv_cache_tokens: int = 0           # 0: from free memory
    max_context_tokens: int = 0        # 0: the model's own
    max_running: int = 32              # sequences in one step
    step_tokens: int = 256             # tokens in one step, decodes and prefill chunks together
    max_waiting: int = 256             # requests in the queue before a new one is refused
    step_timeout_s: float = 120.0      # a busy engine that says nothing for so long is ended and started again
    idle_sleep_s: float = 0.0          # an engine without requests for so long ends, and the next one starts it; 0: never
    cache_ttl_s: float = 3600.0        # how long an unused block stays reachable
    forced_runs: bool = True           # append what a grammar leaves no choice about without a step for each token
    guessing_rows: int = 2             # sequences in a step up to which answers are guessed ahead; 0: never
    seed: int = 0                      # of requests that name none
