"""How much memory and how many cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

GIB = 1 << 30


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that the scheduler and the container's quota leave to this process; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _read(cgroup / "cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, max(1, int(quota[0]) // int(quota[1])))
    return cores


def available_bytes(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can be taken without swapping, within the container's limit; 2 GiB where nothing tells."""
    available = 2 * GIB
    for line in _read(meminfo).splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    limit, used = _read(cgroup / "memory.max").strip(), _read(cgroup / "memory.current").strip()
    if limit.isdigit() and used.isdigit():
        available = min(available, max(0, int(limit) - int(used)))
    return available


def cache_tokens(wanted: int, token_bytes: int, free_bytes: int, context_tokens: int, block_tokens: int) -> int:
    """Tokens of the KV cache, in whole blocks: `wanted`, or a share of free memory.

    Unasked, it is 30 % of free memory, at most eight contexts and at least 1,024 tokens.
    """
    if not wanted:
        wanted = max(1024, min(8 * context_tokens, int(0.3 * free_bytes) // token_bytes))
    return max(1, wanted // block_tokens) * block_tokens


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
