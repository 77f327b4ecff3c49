"""Putting an engine together: what is missing is a typed fault, so that nobody starts it again in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import library
from runtime.config import EngineConfig
from runtime.errors import EngineUnavailable
from runtime.start import start_engine


def test_native_kernels_that_are_not_there_are_a_typed_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "load", lambda: None)
    monkeypatch.setattr(library, "why_missing", lambda: "the native library was not built")
    with pytest.raises(EngineUnavailable, match=r"was not built.*kernels=auto"):
        start_engine(EngineConfig(Path("model.gguf"), "model", device="cpu", kernels="native"))
