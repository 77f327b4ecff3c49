"""From what a person calls a model to files on this disk: the embedded one, a folder, a .gguf file or a hub name."""

from __future__ import annotations

import errno
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from gateway.configuration import nearest
from gateway.model_sources import EMBEDDED, first_line
from gateway.model_store import DiskFull, ModelStore, PullFailed
from gateway.user_error import UserError

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_FILES = ("*.json", "*.safetensors", "*.jinja", "LICENSE*")


class NoSuchModel(UserError):
    """What was named is no model that can be served."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person meant. `path` is where it lies, or will lie once fetched."""

    kind: Literal["embedded", "file", "folder", "hub"]
    name: str
    path: Path


def choose(model: str, data_dir: Path) -> Choice:
    """What `model` means. Fetches nothing. Raises NoSuchModel where it means nothing, or its files are of no known kind."""
    try:
        return _choose(model, data_dir)
    except (OSError, RuntimeError) as error:        # a folder closed to us, a name too long, the home of nobody
        raise NoSuchModel(f"model {model!r} can't be read: {getattr(error, 'strerror', None) or error}") from error


def _choose(model: str, data_dir: Path) -> Choice:
    path = Path(model).expanduser()
    if model.lower() == EMBEDDED.name:
        return Choice("embedded", EMBEDDED.name, ModelStore(data_dir).path)
    if path.is_dir():
        return Choice("folder", path.resolve().name, _readable_folder(path))
    if path.is_file():
        return Choice("file", path.stem, _readable_gguf(path))
    if HUB_NAME.fullmatch(model) and path.suffix != ".gguf":
        return Choice("hub", model, data_dir / "hub" / model.replace("/", "--"))
    raise NoSuchModel(f"no model {model!r}: it is no folder, no .gguf file, no hub name (owner/name) "
                      f"and not {EMBEDDED.name}{nearest(model.lower(), [EMBEDDED.name])}")


def fetched(choice: Choice, data_dir: Path, out: TextIO) -> Path:
    """The chosen model's path on this disk, fetched if need be. Progress goes to `out`. Raises UserError."""
    if choice.kind == "embedded":
        return ModelStore(data_dir).ensure(out)
    if choice.kind == "hub":
        return _from_hub(choice, data_dir, out)
    return choice.path


def _readable_folder(path: Path) -> Path:
    if not (path / "config.json").is_file():
        raise NoSuchModel(f"{path} holds no config.json: it is no model folder of the Hugging Face form")
    if not any(path.glob("*.safetensors")):
        raise NoSuchModel(f"{path} holds no .safetensors file: other weight formats are not read")
    for needed in (path / "config.json", *path.glob("*.safetensors")):
        if not os.access(needed, os.R_OK):
            raise NoSuchModel(f"{needed} can't be read: check its permissions")
    return path


def _readable_gguf(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise NoSuchModel(f"{path} can't be read: {error.strerror}") from error
    if magic != b"GGUF":
        raise NoSuchModel(f"{path} is no GGUF file (it begins with {magic!r}): give a .gguf file, or a folder with config.json")
    return path


def _from_hub(choice: Choice, data_dir: Path, out: TextIO) -> Path:
    """A hub repository's files, in the data folder. Once whole, it is served from there without asking the hub again."""
    whole = choice.path / ".whole"
    if whole.exists():
        return _readable_folder(choice.path)
    from huggingface_hub import snapshot_download

    print(f"Fetching {choice.name} from the model hub into {choice.path}", file=out)
    try:
        choice.path.mkdir(parents=True, exist_ok=True)
        snapshot_download(choice.name, local_dir=choice.path, allow_patterns=list(HUB_FILES), etag_timeout=5.0)
    except Exception as error:      # the library's transport has errors of many families; the text tells them apart
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            shutil.rmtree(choice.path, ignore_errors=True)
            raise DiskFull(data_dir, f"it filled up while {choice.name} was fetched") from error
        raise PullFailed(
            f"{choice.name} could not be fetched from the model hub: {first_line(error).removeprefix('Got: ')}. "
            "Check the name and the network; what was fetched so far is kept, and the next try goes on from there"
        ) from error
    _readable_folder(choice.path)
    whole.touch()
    return choice.path
