"""Finds the extension module that runs grammars, and knows what it can run.

Without it, or for tables with an operation that it lacks, grammars run on `PlainMachine`: slower, and otherwise the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from kernels.pushdown_tables import COUNT, HAS_CALLING_STARTS, HAS_DISTINCT, HAS_INDENT, HAS_WIDE_SETS, Tables

INTERFACE_VERSION = 1
"""Must equal the extension module's: raised whenever one of the two could not work with the other."""

MASK_STEPS = 1 << 22    # frame steps of one mask: about a quarter of a second
TOKEN_STEPS = 1 << 21   # of one token: some hundredths of a second

_OPERATIONS = frozenset({*range(COUNT + 1), HAS_WIDE_SETS, HAS_DISTINCT, HAS_INDENT, HAS_CALLING_STARTS})


@functools.cache
def extension() -> ModuleType | None:
    """The extension module `kernels._grammar`; None where it was not built, or was built from other sources than this code."""
    try:
        from kernels import _grammar
    except ImportError:
        return None
    return _grammar if getattr(_grammar, "INTERFACE_VERSION", None) == INTERFACE_VERSION else None


def native_machine(tables: Tables, vocabulary: Any, context: object, refuse: Callable[[str, int], NoReturn]) -> Any:
    """The extension's machine for `tables` over one of its vocabularies; None where it can't run them."""
    module = extension()
    if module is None or vocabulary is None or not tables.operations <= _OPERATIONS:
        return None
    return module.Machine(tables, vocabulary, context, refuse, MASK_STEPS, TOKEN_STEPS)
