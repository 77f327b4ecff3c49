"""`turnstile doctor`: what it finds must be what is there, and what it misses must be said with its remedy."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from gateway import examination
from gateway.cli import main
from gateway.configuration import read_configuration
from gateway.examination import Finding, examine
from gateway.model_sources import EMBEDDED
from gateway.model_store import ModelStore
from kernels import library


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TURNSTILE_")]:
        monkeypatch.delenv(name)


def findings_with(data_dir: Path, **flags: str) -> dict[str, Finding]:
    settings = read_configuration({"data_dir": str(data_dir), "port": "0", **flags}, {}).settings
    return {finding.name: finding for finding in examine(settings)}


def test_an_empty_machine_can_serve_and_is_told_how_to_get_the_model(tmp_path, capsys):
    assert main(["doctor", "--data-dir", str(tmp_path), "--port", "0"]) == 0
    shown = capsys.readouterr().out
    assert "has not been fetched yet" in shown
    assert "turnstile pull" in shown
    assert shown.endswith("This machine can serve.\n")


def test_a_data_folder_within_one_that_is_closed_to_us_is_missing(tmp_path, monkeypatch):
    closed, stat, access = tmp_path / "closed", os.stat, os.access
    closed.mkdir()

    def stat_from_outside(path, *args, **kwargs):
        if str(path).startswith(f"{closed}/"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", stat_from_outside)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and access(path, mode))
    found = findings_with(closed / "data")
    assert (found["data folder"].state, found["model"].state) == ("missing", "note")


def test_it_looks_and_changes_nothing(tmp_path):
    findings_with(tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_json_says_the_same_to_a_program(tmp_path, capsys):
    assert main(["doctor", "--json", "--data-dir", str(tmp_path), "--port", "0"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["can_serve"] is True
    assert [finding["name"] for finding in told["findings"]] == [
        "Python", "torch", "device", "cores", "kernels", "memory", "data folder", "model", "Redis", "port"]
    assert {finding["state"] for finding in told["findings"]} <= {"ok", "note", "missing"}


def test_a_damaged_model_is_found_by_its_bytes_not_by_its_stamp(tmp_path, monkeypatch):
    content = b"GGUF" + bytes(1000)
    tiny = examination.ModelStore(tmp_path).model.__class__(
        EMBEDDED.name, "tiny.gguf", len(content), hashlib.sha256(content).hexdigest(), "a/b", "c", "d==1", 1)
    monkeypatch.setattr(examination, "ModelStore", lambda folder: ModelStore(folder, tiny))
    path = tmp_path / "tiny.gguf"
    path.write_bytes(content)
    ModelStore(tmp_path, tiny)._write_stamp()
    assert findings_with(tmp_path)["model"].state == "ok"

    times = path.stat()
    path.write_bytes(b"GGUF" + bytes(999) + b"!")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ModelStore(tmp_path, tiny).verified()
    found = findings_with(tmp_path)["model"]
    assert found.state == "missing"
    assert "damaged" in found.found
    assert "turnstile pull" in found.remedy


def test_a_model_that_is_not_there_means_it_can_t_serve(tmp_path, capsys):
    assert main(["doctor", "nowhere.gguf", "--data-dir", str(tmp_path), "--port", "0"]) == 1
    assert "MISSING  model" in capsys.readouterr().out


def test_a_data_folder_that_can_t_be_written_is_missing(tmp_path):
    (tmp_path / "file").write_text("")
    assert findings_with(tmp_path / "file" / "data")["data folder"].state == "missing"


def test_no_redis_is_fine_and_one_that_does_not_answer_is_noted(tmp_path):
    assert findings_with(tmp_path)["Redis"].state == "ok"
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        found = findings_with(tmp_path, redis_url=f"redis://127.0.0.1:{nobody_listens.getsockname()[1]}")["Redis"]
    assert found.state == "note"
    assert "redis-server" in found.remedy


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs Debian's redis-server")
def test_a_running_redis_is_found_with_its_version(tmp_path):
    path = tmp_path / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(path), "--dir", str(tmp_path), "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 20
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            found = findings_with(tmp_path, redis_url=f"unix://{path}")["Redis"]
        finally:
            server.terminate()
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    assert found.state == "ok"
    assert f"v={found.found.removeprefix('version ')} " in version


def test_missing_native_kernels_are_a_note_with_the_reason_and_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "load", lambda: None)
    monkeypatch.setattr(library, "why_missing", lambda: "the native library was not built; to get it, install a compiler")
    found = findings_with(tmp_path)["kernels"]
    assert (found.state, found.remedy) == ("note", "to get it, install a compiler")
    assert found.found.endswith("the native library was not built")
    assert findings_with(tmp_path, kernels="native")["kernels"].state == "missing"


def test_a_device_that_is_asked_for_and_not_there_is_missing(tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert findings_with(tmp_path)["device"] == Finding("device", "ok", "cpu")
    assert findings_with(tmp_path, device="cuda")["device"].state == "missing"


def test_more_threads_than_cores_are_noted(tmp_path):
    assert findings_with(tmp_path)["cores"].state == "ok"
    assert findings_with(tmp_path, threads="1000")["cores"].state == "note"


def test_a_taken_port_is_noted(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = findings_with(tmp_path, port=str(taken.getsockname()[1]))["port"]
    assert found.state == "note"
    assert "in use" in found.found


def test_little_memory_is_noted(tmp_path, monkeypatch):
    monkeypatch.setattr("runtime.memory.available_bytes", lambda: 300 << 20)
    found = findings_with(tmp_path)["memory"]
    assert (found.state, found.found) == ("note", "300 MiB free")


def test_wrong_settings_are_told_before_anything_is_examined(tmp_path, capsys):
    assert main(["doctor", "--port", "many"]) == 2
    assert "flag --port" in capsys.readouterr().err
