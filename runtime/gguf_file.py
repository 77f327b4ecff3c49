"""A GGUF file's header, and its tensors as they lie in the file.

Layout (GGUF version 2 and 3, little-endian): magic, version, counts of tensors and of metadata entries;
the entries (key, type, value); the tensors' names, dimensions, types and offsets; padding; the tensors' bytes.

The header is read in one pass over a memory map, with every length checked against the file's size before
it is used: a damaged file costs no more than a sound one, and always ends in `ModelUnreadable`. (The
`gguf` package's own reader keeps several arrays for each of 50,000 vocabulary strings, which takes seconds,
and never ends on some damaged files; its tables of tensor types are used here.) Imports no torch.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from .errors import ModelUnreadable

MAGIC = b"GGUF"
VERSIONS = (2, 3)
STRING, ARRAY = 8, 9
SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "|b1", 10: "<u8", 11: "<i8", 12: "<f8"}
MOST_DIMENSIONS = 4
U64 = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where one tensor lies. `shape` has the outermost dimension first, as torch does: (out, in) for a matrix."""

    name: str
    kind: str                # "q4_1", "f32", ...: GGML's name of the type in lower case
    shape: tuple[int, ...]
    row_bytes: int           # bytes of one run along the last dimension
    start: int               # place of the first byte in the file
    n_bytes: int


class GgufFile:
    """The metadata (`fields`) and the tensor table (`tensors`) of one file, which stays mapped while this lives."""

    def __init__(self, path: Path) -> None:
        """Raises ModelUnreadable if the file is missing, damaged, truncated or of an unknown version."""
        self.path = path
        try:
            self.bytes = np.memmap(path, dtype=np.uint8, mode="c")   # private: nothing is ever written back
        except (OSError, ValueError) as error:                       # ValueError: an empty file can't be mapped
            raise ModelUnreadable(f"{path}: the model file can't be opened: {error}. Check the path.") from None
        header = _Header(path, self.bytes)
        try:
            self.fields, self.tensors = header.read()
        except struct.error:
            raise header.damaged("it ends within its list of strings") from None
        except (UnicodeDecodeError, ValueError, OverflowError) as error:
            raise header.damaged(str(error)) from None

    def data(self, tensor: GgufTensor) -> np.ndarray:
        """The tensor's bytes, uncopied, one row of `row_bytes` for each run along the last dimension."""
        return self.bytes[tensor.start : tensor.start + tensor.n_bytes].view(np.ndarray).reshape(-1, tensor.row_bytes)

    def field(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """A metadata value of the wanted type; `default` if it's absent and a default was given.

        Raises ModelUnreadable if it's absent without a default, or of another type.
        """
        value = self.fields.get(key, default)
        if value is None:
            raise ModelUnreadable(f"{self.path}: the metadata has no {key!r}. Convert the model to GGUF again.")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ModelUnreadable(f"{self.path}: the metadata's {key!r} has the type {type(value).__name__}. "
                                  "Convert the model to GGUF again.")
        return value


class _Header:
    """One pass over the header's bytes."""

    def __init__(self, path: Path, data: np.ndarray) -> None:
        self.path = path
        self.view = data.data
        self.size = len(data)
        self.at = 0

    def read(self) -> tuple[dict[str, Any], dict[str, GgufTensor]]:
        if self.take(4) != MAGIC:
            raise ModelUnreadable(f"{self.path}: not a GGUF file (it doesn't begin with {MAGIC.decode()}). "
                                  "Give a GGUF file or a Hugging Face folder with config.json and safetensors.")
        version = self.u32()
        if version not in VERSIONS:
            raise ModelUnreadable(f"{self.path}: GGUF version {version} (or byte order) can't be read; "
                                  f"known are {', '.join(map(str, VERSIONS))}, little-endian.")
        n_tensors, n_fields = self.u64(), self.u64()
        fields: dict[str, Any] = {}
        for _ in range(n_fields):
            key = self.string()
            if key in fields:
                raise self.damaged(f"the metadata has {key!r} twice")
            fields[key] = self.value(self.u32())
        infos = [self.tensor_info() for _ in range(n_tensors)]
        return fields, self.tensor_table(infos, fields.get("general.alignment", 32))

    def take(self, n_bytes: int) -> bytes:
        end = self.at + n_bytes
        if end > self.size:
            raise self.damaged(f"a value at byte {self.at} is {n_bytes} bytes long, past the file's end")
        data = self.view[self.at : end].tobytes()
        self.at = end
        return data

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def string(self) -> str:
        return self.take(self.u64()).decode("utf-8")

    def value(self, kind: int) -> Any:
        """A scalar, a string, a list of strings, or a numpy array of scalars."""
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.numbers(kind, 1)[0].item()
        item_kind, length = self.u32(), self.u64()
        return self.strings(length) if item_kind == STRING else self.numbers(item_kind, length)

    def numbers(self, kind: int, length: int) -> np.ndarray:
        if kind not in SCALARS:
            raise self.damaged(f"unknown value type {kind} at byte {self.at}")
        dtype = np.dtype(SCALARS[kind])
        return np.frombuffer(self.take(length * dtype.itemsize), dtype=dtype)

    def strings(self, length: int) -> list[str]:
        """A vocabulary is 50,000 of these: the loop touches nothing but locals."""
        view, at, size, unpack = self.view, self.at, self.size, U64.unpack_from
        found = []
        for _ in range(length):
            start = at + 8
            at = start + unpack(view, at)[0]
            if at > size:
                raise self.damaged(f"a string at byte {start} runs past the file's end")
            found.append(str(view[start:at], "utf-8"))
        self.at = at
        return found

    def tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name, n_dimensions = self.string(), self.u32()
        if not 1 <= n_dimensions <= MOST_DIMENSIONS:
            raise self.damaged(f"tensor {name!r} has {n_dimensions} dimensions")
        innermost_first = [self.u64() for _ in range(n_dimensions)]
        return name, tuple(reversed(innermost_first)), self.u32(), self.u64()

    def tensor_table(self, infos: list[tuple[str, tuple[int, ...], int, int]], alignment: Any) -> dict[str, GgufTensor]:
        if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
            raise self.damaged(f"an alignment of {alignment!r}")
        data_start = -(-self.at // alignment) * alignment
        tensors: dict[str, GgufTensor] = {}
        for name, shape, type_number, offset in infos:
            if name in tensors:
                raise self.damaged(f"tensor {name!r} is there twice")
            tensors[name] = self.tensor(name, shape, type_number, data_start + offset)
        return tensors

    def tensor(self, name: str, shape: tuple[int, ...], type_number: int, start: int) -> GgufTensor:
        kind = GGMLQuantizationType(type_number)
        block, block_bytes = GGML_QUANT_SIZES[kind]
        if min(shape) < 1 or shape[-1] % block:
            raise self.damaged(f"tensor {name!r} of type {kind.name} has the shape {shape}")
        row_bytes = shape[-1] // block * block_bytes
        n_bytes = row_bytes * prod(shape[:-1])
        if start + n_bytes > self.size:
            raise self.damaged(f"tensor {name!r} would end at byte {start + n_bytes}")
        return GgufTensor(name, kind.name.lower(), shape, row_bytes, start, n_bytes)

    def damaged(self, what: str) -> ModelUnreadable:
        return ModelUnreadable(f"{self.path}: the file ({self.size} bytes) is truncated or damaged: {what}. "
                               "Fetch it again (`turnstile pull` for the embedded model).")
