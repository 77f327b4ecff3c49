"""Finds and loads the native library: plain C functions behind ctypes, no torch, no Python headers.

`ctypes.CDLL` releases the interpreter lock for the time of each call, so native code never blocks the
engine's other threads. The library is optional: without it every operation runs as its reference.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ABI_VERSION = 2
"""Raised whenever a function of the native library changes its arguments or its layouts; must equal abi.cpp's."""

HOW_TO_GET_IT = "install a C++17 compiler (Debian: apt install g++) and install turnstile-gateway again"


class LibraryUnusable(Exception):
    """The native library cannot be used; the message says why and what to do."""


def find(folder: Path) -> Path | None:
    """The library that the build put into `folder` for this interpreter, or None."""
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f"_native{suffix}"
        if path.is_file():
            return path
    return None


def open_library(path: Path) -> ctypes.CDLL:
    """Load the library at `path` and check that it speaks this version of the interface.

    Raises LibraryUnusable if it cannot be loaded or was built from other sources than this Python code.
    """
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise LibraryUnusable(f"the native library {path.name} cannot be loaded ({error}); to get it, {HOW_TO_GET_IT}") from error
    try:
        version = library.turnstile_abi_version()
    except AttributeError:
        version = None
    if version != ABI_VERSION:
        raise LibraryUnusable(
            f"the native library {path.name} has interface version {version}, this code needs {ABI_VERSION}: "
            f"it is left from another build; install turnstile-gateway again"
        )
    return library


def bind(
    library: ctypes.CDLL, name: str, argument_types: Sequence[type], result_type: type | None = None
) -> Callable[..., Any]:
    """The C function `name` with its argument types fixed, ready to be kept and called often.

    Each binding is its own object, so two users of one function cannot disturb each other's types.
    """
    function = library[name]
    function.argtypes = argument_types
    function.restype = result_type
    return function


@functools.cache
def _outcome() -> tuple[ctypes.CDLL | None, str | None]:
    path = find(Path(__file__).parent)
    if path is None:
        return None, f"the native library was not built; to get it, {HOW_TO_GET_IT}"
    try:
        return open_library(path), None
    except LibraryUnusable as error:
        return None, str(error)


def load() -> ctypes.CDLL | None:
    """The native library, loaded once per process, or None; then `why_missing` tells the reason."""
    return _outcome()[0]


def why_missing() -> str | None:
    """Why `load` gives None, and what to do about it; None if the library is there."""
    return _outcome()[1]


def instruction_set() -> str | None:
    """The instruction set that the native code chose for this CPU ("avx512", "avx2", "portable"); None without it."""
    library = load()
    if library is None:
        return None
    name: bytes = bind(library, "turnstile_instruction_set", [], ctypes.c_char_p)()
    return name.decode()
