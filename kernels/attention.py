"""Causal attention over a paged pool of keys and values, for a ragged batch of decode and prefill rows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels.batch import RaggedBatch
from kernels.library import bind

_Shape = ctypes.c_int64 * 9


def paged_attention_reference(q: Tensor, layer_kv: Tensor, batch: RaggedBatch, scale: float) -> Tensor:
    """[n, heads, d] -> [n, heads * d]: each token attends to its own sequence's keys up to its own position.

    layer_kv [2, blocks, kv_heads, block_tokens, d] already holds this step's keys and values. Query head h reads
    kv head h // (heads // kv_heads). Scores are q . k * scale. ValueError for a row whose blocks the pool does not have.
    """
    _check(q, layer_kv, batch, scale)
    starts, contexts = batch.query_starts.tolist(), batch.context_lens.tolist()
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    for row, context in enumerate(contexts):
        begin, end = starts[row], starts[row + 1]
        if begin < 0 or end < begin or end > q.shape[0] or context < end - begin:
            raise _unfit_row(row, layer_kv, batch)
        keys, values = _gather(layer_kv, batch.block_tables[row], context)
        out[begin:end] = _attend(q[begin:end], keys, values, scale)
    return out.flatten(1)


def _gather(layer_kv: Tensor, block_table: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """One row's keys and values, [kv_heads, context, d] each; slots past the context are never looked at."""
    _, _, kv_heads, block_tokens, d = layer_kv.shape
    needed = -(-context // block_tokens)
    blocks = block_table[:needed].long()
    gathered = layer_kv[:, blocks].transpose(1, 2).reshape(2, kv_heads, -1, d)[:, :, :context]
    return gathered[0], gathered[1]


def _attend(q: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """q [t, heads, d], the last t positions of the context -> [t, heads, d]."""
    t, heads, d = q.shape
    kv_heads, context, _ = keys.shape
    grouped = q.view(t, kv_heads, -1, d).permute(1, 2, 0, 3)                        # [kv_heads, group, t, d]
    scores = torch.matmul(grouped, keys.unsqueeze(1).transpose(-1, -2)) * scale     # [kv_heads, group, t, context]
    if t > 1:
        ahead = torch.ones(t, context, dtype=torch.bool, device=q.device).triu(context - t + 1)
        scores.masked_fill_(ahead, float("-inf"))
    attended = torch.matmul(scores.softmax(-1), values.unsqueeze(1))                # [kv_heads, group, t, d]
    return attended.permute(2, 0, 1, 3).reshape(t, heads, d)


def paged_attention_native(library: ctypes.CDLL) -> Callable[[Tensor, Tensor, RaggedBatch, float], Tensor]:
    """`paged_attention_reference` in one call for all rows; a token's bits depend on its own sequence only.

    Blocks are taken in the order of the sequence with a running softmax, so neither other rows nor the cutting of a prompt into
    chunks change a result. q may be a part of wider rows, as it comes out of a joint projection.
    """
    pointers, run_type = ctypes.c_void_p, ctypes.c_int64
    run = bind(library, "turnstile_attention", [*[pointers] * 6, ctypes.c_float, pointers], run_type)

    def paged_attention(q: Tensor, layer_kv: Tensor, batch: RaggedBatch, scale: float) -> Tensor:
        _check(q, layer_kv, batch, scale)
        n, heads, d = q.shape
        stride, head_stride, inner = q.stride()
        starts, contexts, tables = batch.query_starts.contiguous(), batch.context_lens.contiguous(), batch.block_tables
        if head_stride != d or inner != 1 or not (layer_kv.is_contiguous() and tables.is_contiguous()):
            raise ValueError("paged_attention: the heads of one token must lie side by side, pool and block tables without gaps")
        _, blocks, kv_heads, block_tokens, _ = layer_kv.shape
        rows, columns = tables.shape
        out = torch.empty(n, heads * d, dtype=torch.float32)
        shape = _Shape(n, heads, kv_heads, d, block_tokens, blocks, rows, columns, stride)
        wrong = run(
            q.data_ptr(), layer_kv.data_ptr(), out.data_ptr(),
            starts.data_ptr(), contexts.data_ptr(), tables.data_ptr(), scale, shape,
        )  # fmt: skip
        if wrong:
            raise _unfit_row(wrong - 1, layer_kv, batch)
        return out

    return paged_attention


def _unfit_row(row: int, layer_kv: Tensor, batch: RaggedBatch) -> ValueError:
    if row >= batch.context_lens.shape[0]:
        return ValueError(f"paged_attention: query_starts {batch.query_starts.tolist()} do not cover the queries")
    starts, table = batch.query_starts, batch.block_tables[row]
    return ValueError(
        f"paged_attention: row {row} with queries {int(starts[row])}..{int(starts[row + 1])}, "
        f"context {int(batch.context_lens[row])} and blocks {table.tolist()} does not fit a pool of {layer_kv.shape[1]} blocks "
        f"of {layer_kv.shape[3]} tokens"
    )


def _check(q: Tensor, layer_kv: Tensor, batch: RaggedBatch, scale: float) -> None:
    _, heads, d = q.shape
    pool = layer_kv.shape
    if len(pool) != 5 or pool[0] != 2 or pool[4] != d or heads % pool[2] or not q.dtype == layer_kv.dtype == torch.float32:
        raise ValueError(
            f"paged_attention: q {tuple(q.shape)} {q.dtype} and pool {tuple(pool)} {layer_kv.dtype} do not fit; needed "
            f"[n, heads, d] and [2, blocks, kv_heads, block_tokens, d] float32 with heads a multiple of kv_heads"
        )
    rows = batch.context_lens.shape[0]
    if batch.query_starts.shape[0] != rows + 1 or batch.block_tables.shape[0] != rows:
        raise ValueError(
            f"paged_attention: query_starts {tuple(batch.query_starts.shape)}, context_lens {tuple(batch.context_lens.shape)} "
            f"and block_tables {tuple(batch.block_tables.shape)} do not name the same rows"
        )
    int32 = torch.int32
    if batch.query_starts.dtype != int32 or batch.context_lens.dtype != int32 or batch.block_tables.dtype != int32:
        raise ValueError("paged_attention: query_starts, context_lens and block_tables must be int32")
    if not scale > 0:
        raise ValueError(f"paged_attention: the scale must be above 0, not {scale}")
