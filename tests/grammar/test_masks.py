"""The mask cache: bounded by what it keeps, keys included."""

from __future__ import annotations

import numpy as np

from grammar.masks import MaskCache

ROW = np.zeros(16, dtype=np.uint32)


def test_the_row_used_longest_ago_goes_first():
    cache = MaskCache(bytes_limit=3 * (ROW.nbytes + 500))
    for name in (b"a", b"b", b"c"):
        cache.put((0, name), ROW)
    assert cache.get((0, b"a")) is ROW
    cache.put((0, b"d"), ROW)
    assert [cache.get((0, name)) is None for name in (b"a", b"b", b"c", b"d")] == [False, True, False, False]


def test_keys_count_as_well_as_rows():
    cache = MaskCache(bytes_limit=1_000_000)
    for i in range(50):
        cache.put((0, bytes([i]) * 100_000), ROW)
    assert len(cache) < 10
    assert cache.bytes_used <= cache.bytes_limit
