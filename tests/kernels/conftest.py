"""Cases for the kernel tests: weights, paged batches, and the native operations at every instruction set this CPU runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import gguf
import numpy as np
import pytest
import torch
from torch import Tensor

from kernels import library
from kernels.batch import RaggedBatch
from kernels.ops import Ops, load_ops, native_ops
from kernels.quant import FLOAT_TYPES, QuantTensor

INSTRUCTION_SETS = ("portable", "avx2", "avx512")


def choose_instruction_set(native: ctypes.CDLL, name: str) -> bool:
    return bool(library.bind(native, "turnstile_use_instruction_set", [ctypes.c_char_p], ctypes.c_int32)(name.encode()))


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> Iterator[None]:
    """Fixed random numbers, and memory that nothing wrote holds NaN: torch fills it so in its deterministic mode."""
    torch.manual_seed(5)
    torch.use_deterministic_algorithms(True)
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def native_library() -> ctypes.CDLL:
    native = library.load()
    if native is None:
        pytest.skip(f"needs the native library: {library.why_missing()}")
    return native


@pytest.fixture(params=INSTRUCTION_SETS)
def native(request: pytest.FixtureRequest, native_library: ctypes.CDLL) -> Iterator[Ops]:
    """The native operations, once for each instruction set."""
    if not choose_instruction_set(native_library, request.param):
        pytest.skip(f"needs a CPU with {request.param}")
    yield native_ops(native_library)
    choose_instruction_set(native_library, "")


@pytest.fixture(scope="session")
def reference() -> Ops:
    return load_ops(torch.device("cpu"), "reference")


def quantised(kind: str, rows: int, columns: int, seed: int = 0) -> QuantTensor:
    """A random weight, quantised by the gguf package."""
    values = np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32) * 0.05
    if kind in FLOAT_TYPES:
        return QuantTensor(kind, (rows, columns), torch.from_numpy(values).to(FLOAT_TYPES[kind]))
    raw = gguf.quantize(values, gguf.GGMLQuantizationType[kind.upper()])
    return QuantTensor.from_bytes(kind, (rows, columns), torch.from_numpy(raw))


@pytest.fixture(scope="session")
def make_weight() -> Callable[..., QuantTensor]:
    return quantised


@dataclass(frozen=True)
class PagedCase:
    """A ragged batch over a pool whose unused slots hold NaN, and the plain keys and values behind it."""

    q: Tensor                               # [n, heads, d]
    layer_kv: Tensor
    batch: RaggedBatch
    keys_values: list[tuple[Tensor, Tensor]]    # a row's [context, kv_heads, d] each

    def alone(self, row: int, first: int = 0, last: int | None = None) -> tuple[Tensor, RaggedBatch]:
        """One row by itself, or only its queries first..last as a chunk of their own: (q, batch)."""
        begin, end = self.batch.query_starts[row : row + 2].tolist()
        last = end - begin if last is None else last
        context = int(self.batch.context_lens[row]) - (end - begin - last)
        return self.q[begin + first : begin + last], ragged([last - first], [context], self.batch.block_tables[row : row + 1])


def ragged(lengths: list[int], contexts: list[int], tables: Tensor) -> RaggedBatch:
    starts = torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32)
    runs = zip(lengths, contexts, strict=True)
    positions = torch.cat([torch.arange(context - n, context, dtype=torch.int32) for n, context in runs])
    empty = torch.zeros(len(positions), dtype=torch.int64)
    return RaggedBatch(empty, positions, empty, starts, torch.tensor(contexts, dtype=torch.int32), tables, empty[:1])


def paged(rows: list[tuple[int, int]], heads: int = 9, kv_heads: int = 3, d: int = 64, block_tokens: int = 16) -> PagedCase:
    """rows: (queries, context) of each."""
    generator = torch.Generator().manual_seed(17)
    needed = [-(-context // block_tokens) for _, context in rows]
    order = torch.randperm(sum(needed) + 3, generator=generator)
    layer_kv = torch.full((2, len(order), kv_heads, block_tokens, d), float("nan"))
    tables = torch.zeros((len(rows), max(needed) + 1), dtype=torch.int32)
    keys_values, taken = [], 0
    for row, (_, context) in enumerate(rows):
        blocks = order[taken : taken + needed[row]]
        taken += needed[row]
        tables[row, : len(blocks)] = blocks
        both = torch.randn(2, context, kv_heads, d, generator=generator)
        for t in range(context):
            layer_kv[:, blocks[t // block_tokens], :, t % block_tokens] = both[:, t]
        keys_values.append((both[0], both[1]))
    lengths = [queries for queries, _ in rows]
    q = torch.randn(sum(lengths), heads, d, generator=generator)
    return PagedCase(q, layer_kv, ragged(lengths, [context for _, context in rows], tables), keys_values)


@pytest.fixture(scope="session")
def make_paged() -> Callable[..., PagedCase]:
    return paged
