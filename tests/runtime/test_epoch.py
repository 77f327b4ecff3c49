"""The epoch: blocks of other weights, or of another layout, are never found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from runtime.config import EngineConfig
from runtime.engine import Engine
from runtime.epoch import epoch_of
from runtime.start import start_engine
from tests.runtime.test_engine import request, run
from tests.support.tiny_models import save_folder, save_gguf, tiny_llama

POOL = torch.empty(2, 2, 8, 4, 16, 32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_folder(tmp_path_factory.mktemp("epoch"), tiny_llama())


def test_a_copy_has_the_epoch_of_its_original_and_any_changed_byte_another(tmp_path: Path) -> None:
    original = save_gguf(tmp_path / "a.gguf").path
    copied = Path(shutil.copy(original, tmp_path / "b.gguf"))
    assert epoch_of(copied, POOL) == epoch_of(original, POOL)
    data = bytearray(original.read_bytes())
    for at in (len(data) - 1, len(data) // 2, 200):
        data[at] ^= 1
        copied.write_bytes(data)
        assert epoch_of(copied, POOL) != epoch_of(original, POOL)
        data[at] ^= 1
    copied.write_bytes(data)
    assert epoch_of(copied, POOL) == epoch_of(original, POOL)


def test_weights_and_settings_of_a_folder_count_and_its_other_files_do_not(folder: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(folder, tmp_path / "copy"))
    before = epoch_of(folder, POOL)
    (copied / "README.md").write_text("words")
    assert epoch_of(copied, POOL) == before
    config = copied / "config.json"
    config.write_text(config.read_text().replace('"rms_norm_eps": 1e-05', '"rms_norm_eps": 2e-05'))
    assert epoch_of(copied, POOL) != before
    assert epoch_of(save_folder(tmp_path / "other", tiny_llama(seed=1)), POOL) != before


@pytest.mark.parametrize("other", [
    POOL.half(), torch.empty(3, 2, 8, 4, 16, 32), torch.empty(2, 2, 8, 4, 32, 32), torch.empty(2, 2, 8, 8, 16, 16)])
def test_type_and_layout_count(folder: Path, other: torch.Tensor) -> None:
    assert epoch_of(folder, other) != epoch_of(folder, POOL)


def test_the_number_of_blocks_does_not_count(folder: Path) -> None:
    assert epoch_of(folder, torch.empty(2, 2, 9, 4, 16, 32)) == epoch_of(folder, POOL)


def test_a_large_file_is_told_by_pieces_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    with path.open("wb") as file:
        file.truncate(700 << 20)                   # a hole: it takes no room
    before = epoch_of(path, POOL)
    for at in (0, (700 << 20) - 1):
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"x")
        after = epoch_of(path, POOL)
        assert after != before
        before = after


def started(folder: Path, **settings) -> tuple[Engine, str]:
    engine, info = start_engine(EngineConfig(
        folder, "tiny", kv_cache_tokens=1024, threads=1, device="cpu", kernels="reference", **settings))
    assert info.epoch == engine.epoch.hex()
    return engine, info.epoch


def test_an_engine_finds_nothing_that_one_with_other_weights_has_left(folder: Path, tmp_path: Path) -> None:
    prompt = list(range(5, 65))
    first, epoch = started(folder)
    run(first, request("a", prompt))
    for where, is_same in ((save_folder(tmp_path, tiny_llama(seed=1)), False), (folder, True)):
        second, other = started(where)
        assert (other == epoch) is is_same
        second.scheduler.cache = second._cache = first._cache        # as if a tier that outlives engines held the blocks
        second._pool = first._pool
        [*_, finished] = run(second, request(f"b-{where}", prompt))[f"b-{where}"]
        assert finished.usage.cached_tokens == (48 if is_same else 0)


def test_another_block_size_is_another_epoch(folder: Path) -> None:
    assert started(folder)[1] != started(folder, block_tokens=8)[1]
