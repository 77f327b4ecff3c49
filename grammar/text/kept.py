"""What was made lately and may be asked for again, up to some weight."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Keeps values under their keys; beyond `most` in weight the one that was not asked for longest goes first. Any thread may
    use it. What is heavier than all that may be kept is not kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._found: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        """The value kept under a key, if there is one."""
        with self._lock:
            found = self._found.get(key)
            if found is None:
                return None
            self._found.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: T, weight: int) -> None:
        with self._lock:
            if key in self._found or weight > self._most:
                return
            self._found[key] = value, weight
            self._weight += weight
            while self._weight > self._most:
                self._weight -= self._found.popitem(last=False)[1][1]
