"""Finished mask rows, shared by all matchers of a vocabulary."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

import numpy as np

_OVERHEAD_BYTES = 400   # of one entry beside its row: key, dictionary slot, array header


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
            self.bytes_used += row.nbytes + _OVERHEAD_BYTES
            while self.bytes_used > self.bytes_limit and len(self._rows) > 1:
                _, oldest = self._rows.popitem(last=False)
                self.bytes_used -= oldest.nbytes + _OVERHEAD_BYTES
