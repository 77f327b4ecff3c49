"""The worker process of one engine, as `bench.masks` sees it: a schema in, what the engine made of it out."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from bench.masks_vocabulary import Tokens

ROOT = Path(__file__).resolve().parent.parent
COMPILE_LIMIT_S, MASKS_LIMIT_S = 30.0, 60.0     # of wall time: a limit on CPU time makes the system's CPU clock coarse
START_LIMIT_S = 300.0
STOP_LIMIT_S = 10.0


class Host:
    """One warm worker of one engine, in the interpreter `python`; started again when it has died.

    `unavailable` says why the engine could not start, "" where it did.
    """

    def __init__(self, engine: str, python: str, tokens: Tokens) -> None:
        self.engine, self.version, self.unavailable = engine, "", ""
        self._python, self._tokens = python, tokens
        self._start()

    def run(self, schema: Any, instances: list[tuple[list[int], bool]]) -> dict[str, Any]:
        """What came of one schema: `outcome` ("ok", "refused", "failed", "timeout", "crash"), times, instances."""
        if self._worker.poll() is not None:
            self._start()
        row: dict[str, Any] = {}
        try:
            self._write({"schema": schema, "instances": instances})
            row |= self._read(COMPILE_LIMIT_S)
            if "outcome" not in row:
                row |= self._read(MASKS_LIMIT_S)
        except (EOFError, BrokenPipeError):
            row |= {"outcome": "crash", "error": f"exit code {self._end()}"}
        except TimeoutError:
            self._worker.kill()
            self._end()
            row |= {"outcome": "timeout", "error": "no answer in time"}
        return row

    def close(self) -> None:
        """Let the worker end."""
        self._end()

    def _start(self) -> None:
        self._worker = subprocess.Popen(
            [self._python, "-m", "bench.masks_worker", self.engine], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)})
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_listen, args=(self._worker, self._lines), daemon=True).start()
        try:
            self._write(self._tokens.to_json())
            hello = self._read(START_LIMIT_S)
        except (EOFError, BrokenPipeError, TimeoutError):
            hello = {"unavailable": f"its worker did not start: exit code {self._end()}"}
        self.version, self.unavailable = hello.get("version", ""), hello.get("unavailable", "")

    def _write(self, message: dict[str, Any]) -> None:
        assert self._worker.stdin is not None
        self._worker.stdin.write(json.dumps(message).encode() + b"\n")
        self._worker.stdin.flush()

    def _read(self, limit_s: float) -> dict[str, Any]:
        """The next report. Raises EOFError where the worker has ended, TimeoutError where it is silent for so long."""
        try:
            line = self._lines.get(timeout=limit_s)
        except queue.Empty:
            raise TimeoutError from None
        if not line:
            raise EOFError
        report: dict[str, Any] = json.loads(line)
        return report

    def _end(self) -> int:
        """The exit code of the worker, which is ended where it goes on by itself."""
        assert self._worker.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._worker.stdin.close()          # the end of its jobs
        try:
            return self._worker.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            return self._worker.wait()


def _listen(worker: subprocess.Popen[bytes], lines: queue.Queue[bytes]) -> None:
    """Hand on each line; b"" at the end."""
    assert worker.stdout is not None
    with worker.stdout:
        for line in worker.stdout:
            lines.put(line)
    lines.put(b"")
