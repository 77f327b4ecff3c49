"""What the process may use, read from files made for the test."""

from __future__ import annotations

from pathlib import Path

from runtime.memory import GIB, available_bytes, cache_tokens, usable_cores


def test_a_cpu_quota_bounds_the_cores(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert usable_cores(tmp_path) == 1


def test_no_quota_leaves_what_the_scheduler_gives(tmp_path: Path) -> None:
    without = usable_cores(tmp_path)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert usable_cores(tmp_path) == without >= 1


def test_memory_is_what_is_available_within_the_containers_limit(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:    4194304 kB\n")
    assert available_bytes(meminfo, tmp_path) == 4 * GIB
    (tmp_path / "memory.max").write_text(f"{2 * GIB}\n")
    (tmp_path / "memory.current").write_text(f"{GIB}\n")
    assert available_bytes(meminfo, tmp_path) == GIB


def test_unreadable_files_give_a_careful_guess(tmp_path: Path) -> None:
    assert available_bytes(tmp_path / "none", tmp_path) == 2 * GIB


def test_the_cache_takes_a_share_of_free_memory_in_whole_blocks() -> None:
    # 30 % of 1 GiB at 46,080 bytes a token: 6,990 tokens, 436 blocks of 16
    assert cache_tokens(0, 46_080, GIB, 8192, 16) == 436 * 16
    assert cache_tokens(0, 46_080, 1000 * GIB, 8192, 16) == 8 * 8192
    assert cache_tokens(0, 46_080, 0, 8192, 16) == 1024
    assert cache_tokens(1000, 46_080, GIB, 8192, 16) == 992
