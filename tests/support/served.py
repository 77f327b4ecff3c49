"""A real gateway for the tests: `turnstile serve` as a process of its own on a free port."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True)
class Server:
    url: str
    process: subprocess.Popen[str]
    log: Path

    def json(self, path: str) -> dict:
        return httpx.get(self.url + path, timeout=60).json()

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = httpx.get(self.url + "/metrics", timeout=60).text.splitlines()
        found = [line for line in lines if line.split("{")[0].split(" ")[0] == name]
        assert found, f"/metrics has no {name}"
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)


def children_of(pid: int) -> list[int]:
    """The process's children, whichever of its threads started them."""
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serve(folder: Path, *flags: str, ready_s: float = 120.0) -> Iterator[Server]:
    """`turnstile serve` with these flags, ready; ended at the end, and its output kept in `folder`."""
    port, log = free_port(), folder / "serve.log"
    with log.open("w") as out:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TURNSTILE_")}
        process = subprocess.Popen([sys.executable, "-m", "gateway", "serve", "--port", str(port), *flags],
                                   stdout=out, stderr=subprocess.STDOUT, text=True, env=environment)
        server = Server(f"http://127.0.0.1:{port}", process, log)
        try:
            wait_ready(server, ready_s)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def wait_ready(server: Server, ready_s: float = 120.0) -> None:
    deadline = time.monotonic() + ready_s
    while time.monotonic() < deadline:
        assert server.process.poll() is None, f"the server ended: {server.log.read_text()[-2000:]}"
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(server.url + "/health/ready", timeout=5).status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError(f"not ready after {ready_s} s: {server.log.read_text()[-2000:]}")
