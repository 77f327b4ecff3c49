"""The real model, loaded once: by us, and by libraries that know nothing of us."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from gguf import GGUFReader
from transformers import LlamaForCausalLM

from kernels import library
from kernels.ops import Ops, load_ops
from runtime.loading import load_model
from runtime.model import Model
from runtime.tokenizer import Tokenizer, load_tokenizer
from tests.support.gguf_oracle import llama_of

CPU = torch.device("cpu")


@pytest.fixture(scope="session")
def gguf_reader(model_path: Path) -> GGUFReader:
    return GGUFReader(model_path)


@pytest.fixture(scope="session")
def tokenizer(model_path: Path) -> Tokenizer:
    return load_tokenizer(model_path)


@pytest.fixture(scope="session")
def transformers_model(gguf_reader: GGUFReader) -> LlamaForCausalLM:
    return llama_of(gguf_reader)


@pytest.fixture(scope="session", params=["reference"] if library.why_missing() else ["reference", "native"])
def ops(request: pytest.FixtureRequest) -> Ops:
    """Every set of operations that this machine can run."""
    return load_ops(CPU, request.param)


@pytest.fixture(scope="session")
def real_model(model_path: Path, ops: Ops) -> Model:
    return load_model(model_path, CPU, ops)
