"""`turnstile serve` as a process: what it prints, how it ends, and that it takes its engine with it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.support.served import Server, children_of, serve

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(180)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_gone(pids: list[int], seconds: float = 10.0) -> list[int]:
    """Those of the processes that are still there after a while."""
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [pid for pid in pids if alive(pid)]


def ends_cleanly(server: Server, sent: signal.Signals) -> int:
    """Send the signal; the exit code, once the server's engine is gone too."""
    engines = children_of(server.process.pid)
    assert engines
    server.process.send_signal(sent)
    exit_code = server.process.wait(20)
    assert wait_gone(engines) == []
    assert "Traceback" not in server.log.read_text()
    return exit_code


def wait_for_banner(log: Path) -> str:
    deadline = time.monotonic() + 60
    while "Ctrl-C stops it" not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    return log.read_text()


def test_what_it_prints_is_true_and_ctrl_c_ends_it_with_its_engine(model_path, tmp_path):
    with serve(tmp_path, str(model_path), "--data-dir", str(tmp_path), "--kv-cache-tokens", "2048") as server:
        printed = wait_for_banner(server.log)
        for page in ("/dashboard", "/docs"):
            assert f"{server.url}{page}\n" in printed
            assert httpx.get(server.url + page).status_code == 200
        first, second = (line.strip() for line in printed.splitlines() if line.strip().startswith("curl"))
        answer = json.loads(subprocess.run(["bash", "-c", first], capture_output=True, text=True, check=True).stdout)
        assert "choices" in answer, answer
        assert set(json.loads(answer["choices"][0]["message"]["content"])) == {"city", "inhabitants"}
        cached = subprocess.run(["bash", "-c", second], capture_output=True, text=True, check=True).stdout
        assert int(re.fullmatch(r'"cached_tokens": *(\d+)\n', cached)[1]) > 0
        assert ends_cleanly(server, signal.SIGINT) == 130


def test_it_serves_under_the_name_it_was_given_and_sigterm_ends_it_with_its_engine(model_path, tmp_path):
    flags = [str(model_path), "--model-name", "small", "--data-dir", str(tmp_path), "--kv-cache-tokens", "2048"]
    with serve(tmp_path, *flags) as server:
        assert httpx.get(f"{server.url}/v1/models").json()["data"][0]["id"] == "small"
        assert ends_cleanly(server, signal.SIGTERM) == 0


def test_an_open_dashboard_does_not_hold_up_the_end(model_path, tmp_path):
    with serve(tmp_path, str(model_path), "--data-dir", str(tmp_path), "--kv-cache-tokens", "2048") as server, \
            httpx.stream("GET", f"{server.url}/dashboard/events", timeout=30) as events:
        next(events.iter_lines())
        began = time.monotonic()
        assert ends_cleanly(server, signal.SIGTERM) == 0
        assert time.monotonic() - began < 8, "the server waited for the event stream"


def test_a_model_that_can_t_be_loaded_is_one_message_and_exit_code_1(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\x03\x00\x00\x00" + b"\xff" * 64)
    command = [sys.executable, "-m", "gateway", "serve", str(broken), "--port", "0", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("turnstile: the engine could not start: ")
    assert str(broken) in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_port_that_another_turnstile_holds_is_told(model_path, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        command = [sys.executable, "-m", "gateway", "serve", str(model_path), "--port", port, "--data-dir", str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "in use" in done.stderr) == (1, True)
    assert os.listdir(tmp_path) == []
