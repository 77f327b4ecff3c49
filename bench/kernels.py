"""Time the native operations beside their references, on the shapes of the embedded model.

    python -m bench.kernels --threads 2
    python -m bench.kernels --threads 1 --clock cpu     # where other work shares the cores

Every figure is the best of `--repeat` calls (a tenth as many from 64 rows on), and native and reference calls alternate,
so that other work on the machine spoils both alike. A linear layer runs through weights of a whole model (30 layers), so
that one row at a time measures memory, not the cache; GB/s counts the bytes of the packed weights, GFLOP/s two operations
a weight and row. torch's waiting threads spin: set OMP_WAIT_POLICY=PASSIVE, or they take a core from the native call.
Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import gguf
import numpy as np
import torch
from torch import Tensor

from kernels import library
from kernels.batch import RaggedBatch
from kernels.ops import Ops, load_ops
from kernels.quant import QuantTensor
from kernels.weights import PackedWeight

LAYERS, HEADS, KV_HEADS, HEAD_DIM, BLOCK_TOKENS = 30, 9, 3, 64, 16
LAYER_SHAPES = ((960, 576), (576, 576), (3072, 576), (576, 1536))        # qkv, out, gate and up, down: [out, in]
HEAD_SHAPE = (49152, 576)
ROWS = (1, 4, 16, 64, 512)
ATTENTION = {
    "1 decode at 700": [(1, 700)],
    "16 decodes at 700": [(1, 700)] * 16,
    "24 new at 624": [(24, 624)],
    "512 new at 512": [(512, 512)],
}


@dataclass(frozen=True)
class Duel:
    """Times the same call with the native operations and with the references."""

    native: Ops
    reference: Ops
    clock: Callable[[], float]
    repeat: int

    def best_s(self, call: Callable[[Ops], object], repeat: int) -> tuple[float, float]:
        """The shortest of `repeat` alternating calls with each: (native, reference)."""
        shortest = [float("inf"), float("inf")]
        for _ in range(repeat):
            for i, ops in enumerate((self.native, self.reference)):
                started_s = self.clock()
                call(ops)
                shortest[i] = min(shortest[i], self.clock() - started_s)
        return shortest[0], shortest[1]


def random_weight(kind: str, shape: tuple[int, int]) -> QuantTensor:
    values = np.random.default_rng(0).standard_normal(shape, dtype=np.float32) * 0.05
    return QuantTensor.from_bytes(kind, shape, torch.from_numpy(gguf.quantize(values, gguf.GGMLQuantizationType[kind.upper()])))


def attention_case(rows: list[tuple[int, int]]) -> tuple[Tensor, Tensor, RaggedBatch]:
    """(queries, one layer's pool, batch) for rows of (queries, context), every row with blocks of its own."""
    per_row = -(-max(context for _, context in rows) // BLOCK_TOKENS)
    tables = torch.arange(len(rows) * per_row, dtype=torch.int32).view(len(rows), per_row)
    pool = torch.randn(2, len(rows) * per_row, KV_HEADS, BLOCK_TOKENS, HEAD_DIM)
    starts = torch.tensor([0, *np.cumsum([queries for queries, _ in rows])], dtype=torch.int32)
    contexts = torch.tensor([context for _, context in rows], dtype=torch.int32)
    unused = torch.zeros(int(starts[-1]), dtype=torch.int64)
    batch = RaggedBatch(unused, unused.int(), unused, starts, contexts, tables, unused[:0])
    return torch.randn(int(starts[-1]), HEADS, HEAD_DIM), pool, batch


def linear_lines(duel: Duel) -> list[str]:
    lines = []
    for kind, shapes, copies in (("q4_1", LAYER_SHAPES, LAYERS), ("q8_0", (HEAD_SHAPE,), 1)):
        weights = [random_weight(kind, shape) for shape in shapes] * copies
        packed = {ops.name: [ops.pack(weight) for weight in weights] for ops in (duel.native, duel.reference)}
        n_bytes, n_weights = sum(w.data.numel() for w in packed["native"]), sum(w.shape[0] * w.shape[1] for w in weights)
        for rows in ROWS if copies > 1 else ROWS[:3]:
            native_s, reference_s = linear_s(duel, packed, rows)
            speed = f"{2 * n_weights * rows / native_s / 1e9:.0f} GFLOP/s, {n_bytes / native_s / 1e9:.1f} GB/s"
            lines.append(table_line(f"linear {kind}, {rows} rows, {len(weights)} matrices", native_s, reference_s, speed))
    return lines


def linear_s(duel: Duel, packed: dict[str, list[PackedWeight]], rows: int) -> tuple[float, float]:
    inputs = {weight.shape[1]: torch.randn(rows, weight.shape[1]) for weight in packed["native"]}

    def call(ops: Ops) -> None:
        for weight in packed[ops.name]:
            ops.linear(inputs[weight.shape[1]], weight)

    return duel.best_s(call, duel.repeat if rows < 64 else max(2, duel.repeat // 10))


def attention_lines(duel: Duel) -> list[str]:
    lines = []
    for name, rows in ATTENTION.items():
        q, pool, batch = attention_case(rows)
        native_s, reference_s = duel.best_s(partial(attend, q, pool, batch), duel.repeat)
        seen = sum(sum(range(context - queries + 1, context + 1)) for queries, context in rows)
        speed = f"{4 * HEADS * HEAD_DIM * seen / native_s / 1e9:.0f} GFLOP/s"
        lines.append(table_line(f"attention, {name}", native_s, reference_s, speed))
    return lines


def attend(q: Tensor, pool: Tensor, batch: RaggedBatch, ops: Ops) -> Tensor:
    return ops.paged_attention(q, pool, batch, HEAD_DIM**-0.5)


def small_lines(duel: Duel) -> list[str]:
    """The operations that are mostly the cost of being called, for one row."""
    x, weight, gate_up = torch.randn(1, 576), torch.randn(576), torch.randn(1, 3072)
    q, k = torch.randn(1, HEADS, HEAD_DIM), torch.randn(1, KV_HEADS, HEAD_DIM)
    cos_sin, position = torch.randn(8, HEAD_DIM), torch.zeros(1, dtype=torch.int32)
    logits, bits = torch.randn(1, 49152), torch.full((1, 1536), 0x0F0F0F0F, dtype=torch.int32)
    calls: dict[str, Callable[[Ops], object]] = {
        "add_rms_norm": lambda ops: ops.add_rms_norm(x, x, weight, 1e-5),
        "rotary_": lambda ops: ops.rotary_(q, k, position, cos_sin),
        "swiglu": lambda ops: ops.swiglu(gate_up),
        "mask_logits_": lambda ops: ops.mask_logits_(logits, bits),
    }
    return [table_line(f"{name}, 1 row", *duel.best_s(call, duel.repeat * 20), "") for name, call in calls.items()]


def table_line(name: str, native_s: float, reference_s: float, speed: str) -> str:
    return f"| {name} | {native_s * 1e6:,.0f} | {reference_s * 1e6:,.0f} | {reference_s / native_s:.1f} | {speed} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: time of all threads together")
    arguments = parser.parse_args()
    clock = time.perf_counter if arguments.clock == "wall" else time.process_time
    cpu = torch.device("cpu")
    duel = Duel(load_ops(cpu, "native"), load_ops(cpu, "reference"), clock, arguments.repeat)
    for ops in (duel.native, duel.reference):
        ops.set_threads(arguments.threads)
    machine = f"{platform.machine()}, {library.instruction_set()}, torch {torch.__version__}"
    print(f"{machine}, {arguments.threads} threads, {arguments.clock} time\n")
    print("| operation | native us | reference us | ratio | native speed |\n|---|---|---|---|---|")
    for lines in (linear_lines, attention_lines, small_lines):
        print("\n".join(lines(duel)), flush=True)


if __name__ == "__main__":
    main()
