"""Reading GGUF headers: the same as the `gguf` package reads, and a typed error for every damaged file."""

from __future__ import annotations

import random
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

from runtime.errors import ModelUnreadable
from runtime.gguf_file import GgufFile
from tests.support.tiny_models import save_gguf


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").path


def plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_metadata_of_the_real_file_is_what_the_gguf_package_reads(model_path: Path, gguf_reader: GGUFReader) -> None:
    fields = {name: plain(value) for name, value in GgufFile(model_path).fields.items()}
    assert fields == {name: field.contents() for name, field in gguf_reader.fields.items() if not name.startswith("GGUF.")}


def test_tensors_of_the_real_file_are_those_that_the_gguf_package_reads(model_path: Path, gguf_reader: GGUFReader) -> None:
    file = GgufFile(model_path)
    assert list(file.tensors) == [tensor.name for tensor in gguf_reader.tensors]
    for expected in gguf_reader.tensors:
        ours = file.tensors[expected.name]
        assert (ours.kind, ours.shape) == (expected.tensor_type.name.lower(), tuple(reversed(expected.shape.tolist())))
        assert np.array_equal(file.data(ours).reshape(-1), expected.data.view(np.uint8).reshape(-1))


def test_the_header_of_the_real_file_is_read_in_well_under_a_second(model_path: Path) -> None:
    started_s = time.process_time()
    GgufFile(model_path)
    assert time.process_time() - started_s < 1.0


def test_tensor_bytes_are_mapped_not_copied(tiny: Path) -> None:
    file = GgufFile(tiny)
    data = file.data(file.tensors["token_embd.weight"])
    assert np.shares_memory(data, file.bytes)
    assert data.shape == (320, 64 // 32 * 34)


def test_a_file_that_is_no_gguf_is_refused_by_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04 something else entirely")
    with pytest.raises(ModelUnreadable, match=r"model\.gguf: not a GGUF file"):
        GgufFile(path)


@pytest.mark.parametrize("content", [None, b""])
def test_a_missing_or_empty_file_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelUnreadable, match=r"model\.gguf: the model file can't be opened"):
        GgufFile(path)


def test_an_unknown_version_is_named(tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<I", 9) + tiny.read_bytes()[8:])
    with pytest.raises(ModelUnreadable, match="GGUF version 9"):
        GgufFile(path)


def test_a_file_cut_anywhere_is_called_truncated(tiny: Path, tmp_path: Path) -> None:
    whole = tiny.read_bytes()
    path = tmp_path / "cut.gguf"
    for length in random.Random(1).sample(range(4, len(whole) - 32), 200):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelUnreadable, match=rf"cut\.gguf: the file \({length} bytes\) is truncated or damaged") as raised:
            GgufFile(path)
        assert "unpack" not in str(raised.value)


@pytest.mark.parametrize("length", [0xFFFF_FFFF_FFFF_FFFF, 1 << 40])
@pytest.mark.parametrize("item_kind", [0, 8, 9, 12])
def test_an_array_that_claims_more_than_the_file_holds_costs_nothing(item_kind: int, length: int, tmp_path: Path) -> None:
    path = tmp_path / "greedy.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q1sIIQ", 1, b"k", 9, item_kind, length) + bytes(64))
    started_s = time.process_time()
    with pytest.raises(ModelUnreadable, match="truncated or damaged"):
        GgufFile(path)
    assert time.process_time() - started_s < 1.0


def test_a_tensor_larger_than_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.gguf"
    info = struct.pack("<Q1sIQQIQ", 1, b"t", 2, 1 << 40, 1 << 40, 0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info + bytes(64))
    with pytest.raises(ModelUnreadable, match="tensor 't' would end at byte"):
        GgufFile(path)


def test_a_field_of_the_wrong_type_is_named(tiny: Path) -> None:
    file = GgufFile(tiny)
    with pytest.raises(ModelUnreadable, match=r"'tokenizer\.ggml\.model' has the type str"):
        file.field("tokenizer.ggml.model", int)
    with pytest.raises(ModelUnreadable, match=r"has no 'llama\.nothing'"):
        file.field("llama.nothing", int)
