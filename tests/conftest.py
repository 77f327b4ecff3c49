"""What tests of several rooms share: where the real model lies. Keep it light: every test session imports it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before torch is first imported: its threads must sleep, not spin, while they wait for one that shares its core with another job.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The embedded model's GGUF file: $TEST_MODEL_FILE, or where `turnstile pull` puts it."""
    named = os.environ.get("TEST_MODEL_FILE")
    data_dir = Path(os.environ.get("TURNSTILE_DATA_DIR") or Path.home() / ".cache" / "turnstile")
    path = Path(named) if named else data_dir / MODEL_FILE
    if not path.is_file():
        pytest.fail(f"{path} is missing: run `turnstile pull` (`make test` does), or set TEST_MODEL_FILE to the file.")
    return path
