"""Finished mask rows, shared by all matchers of a vocabulary."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

import numpy as np

_OVERHEAD_BYTES = 400   # of one entry beside its row and its key: dictionary slot, headers


class MaskCache:
    """The last used rows, up to `bytes_limit` bytes. Rows in it are never written to. Thread-safe."""

    def __init__(self, bytes_limit: int) -> None:
        self.bytes_limit, self.bytes_used = bytes_limit, 0
        self._rows: OrderedDict[Hashable, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: Hashable) -> np.ndarray | None:
        with self._lock:
            row = self._rows.get(key)
            if row is not None:
                self._rows.move_to_end(key)
            return row

    def put(self, key: Hashable, row: np.ndarray) -> None:
        with self._lock:
            if key in self._rows:
                return
            self._rows[key] = row
            self.bytes_used += _bytes_of(key, row)
            while self.bytes_used > self.bytes_limit and len(self._rows) > 1:
                self.bytes_used -= _bytes_of(*self._rows.popitem(last=False))


def _bytes_of(key: Hashable, row: np.ndarray) -> int:
    """What an entry keeps: an ambiguous grammar's key can be a thousand times its row."""
    parts = key if isinstance(key, tuple) else (key,)
    return row.nbytes + sum(len(part) for part in parts if isinstance(part, bytes)) + _OVERHEAD_BYTES
