"""The extension module, built from native/grammar: grammars over a vocabulary, with their positions, masks and caches.

Everything happens under the interpreter's lock but long walks, which let other threads go on.
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from kernels.pushdown import Tables

INTERFACE_VERSION: int

class Vocabulary:
    """What all machines over one tokenizer share: the tokens as a trie, and the finished masks.

    Masks, their keys and the masks of texts take at most about `bytes_limit` bytes beyond what live matchers hold.
    `token_bytes` is what each token spells.
    """

    def __new__(cls, token_bytes: Sequence[bytes], eos_ids: Sequence[int], bytes_limit: int) -> Self: ...
    @property
    def n_masks(self) -> int: ...
    @property
    def bytes_used(self) -> int: ...

class Machine:
    """Runs tables over a vocabulary. Immutable but for its caches; any thread may use it.

    `context` is what its matchers give back as theirs. `refuse` is called with "steps_of_one_mask" or "steps_of_one_token" and
    the limit that did not suffice, and must raise.
    """

    def __new__(
        cls, tables: Tables, vocabulary: Vocabulary, context: Any, refuse: Callable[[str, int], NoReturn], mask_steps: int,
        token_steps: int
    ) -> Self: ...

class Matcher:
    """One answer so far. Not for two threads at once; forks are independent. `grammar.Matcher` says what the methods do."""

    def __new__(cls, machine: Machine) -> Self: ...
    @property
    def may_end(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def context(self) -> Any: ...
    def fill_mask(self, row: np.ndarray, /) -> None: ...
    def accept(self, token_id: int, /) -> bool: ...
    def advance(self, data: bytes, /) -> bool: ...
    def rollback(self, n_tokens: int, /) -> None: ...
    def fork(self) -> Self: ...
    def next_bytes(self) -> bytes: ...
    def forced_bytes(self, most: int, /) -> tuple[bytes, bool]: ...
    def same_position(self, other: object, /) -> bool:
        """Whether both stand at the same place of the same machine."""

def fill_masks(matchers: Sequence[Matcher], rows: np.ndarray, n_threads: int, /) -> list[int]:
    """Write many masks, without the interpreter's lock; the indexes of those that took more steps than they may have."""
