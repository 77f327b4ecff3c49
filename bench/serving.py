"""Serve the model and load it over HTTP: TTFT cold and warm, tokens a second, with and without a schema.

    python -m bench.serving --json report.json

Starts `turnstile serve` on a free port of the loopback interface, loads it (bench/load.py) at each concurrency,
measures the effect of the prefix cache on its own (one prompt cold, then warm), and prints a Markdown table with the
machine's name. With --loadgen another program makes the load: one with the flags and the report of ours at hand.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx

from bench.load import run

START_TIMEOUT_S = 180.0
RULE = "Rule {i}: when a customer asks about item {a}, name shelf {b} and price {c} euros."


@contextlib.contextmanager
def server(flags: list[str]) -> Iterator[str]:
    """A gateway of our own, ready; its root URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen([sys.executable, "-m", "gateway", "serve", "--port", str(port), *flags],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _wait_until_ready(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_ready(url: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"the server ended with exit code {process.returncode}: {process.stderr.read()[-500:]}")
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url + "/health/ready").status_code == 200:
                return
        time.sleep(0.2)
    sys.exit(f"the server was not ready after {START_TIMEOUT_S:.0f} s")


def first_token(url: str, messages: list[dict[str, str]]) -> tuple[float, int, int]:
    """TTFT in seconds, prompt tokens, cached tokens of one streamed request."""
    body = {"model": model_of(url), "messages": messages, "max_tokens": 2, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True}}
    began, ttft_s, usage = time.perf_counter(), None, {}
    with httpx.stream("POST", url + "/v1/chat/completions", json=body, timeout=120) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            if ttft_s is None and any(c["delta"].get("content") for c in chunk["choices"]):
                ttft_s = time.perf_counter() - began
            usage = chunk.get("usage") or usage
    return ttft_s or float("nan"), usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def cold_and_warm(url: str, n_pairs: int) -> dict[str, float]:
    """Medians over prompts that nobody has sent before: first cold, then the same system prompt with another question."""
    cold, warm, ratios, tokens, cached = [], [], [], [], []
    for _ in range(n_pairs):
        rules = " ".join(RULE.format(i=i, a=i * 7 % 101, b=i * 13 % 59, c=i * 3 % 47) for i in range(1, 56))
        system = {"role": "system", "content": f"{uuid.uuid4().hex} {rules}"}
        cold_s, n_tokens, n_cached = first_token(url, [system, {"role": "user", "content": "Which shelf has item 7?"}])
        assert n_cached < 64, f"a new prompt found {n_cached} tokens in the cache"
        warm_s, _, n_warm = first_token(url, [system, {"role": "user", "content": "Which price has item 14?"}])
        cold.append(cold_s)
        warm.append(warm_s)
        ratios.append(warm_s / cold_s)
        tokens.append(n_tokens)
        cached.append(n_warm)
    return {"prompt_tokens": statistics.median(tokens), "cached_tokens": statistics.median(cached),
            "ttft_cold_ms": 1e3 * statistics.median(cold), "ttft_warm_ms": 1e3 * statistics.median(warm),
            "warm_over_cold": statistics.median(ratios)}


def load(url: str, args: argparse.Namespace) -> list[dict]:
    """Every workload at every concurrency."""
    model = model_of(url)
    if args.loadgen:
        return load_by_program(url, model, args)
    return [asyncio.run(run(url, model, workload, concurrency, args.requests or max(8, 4 * concurrency), seed=seed))
            for workload in ("chat", "schema", "unique") for seed, concurrency in enumerate(args.concurrency, 1)]


def load_by_program(url: str, model: str, args: argparse.Namespace) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(
            [sys.executable, str(args.loadgen), "--base-url", url + "/v1", "--model", model, "--ignore-eos",
             "--workload", "chat-shared-prefix", "json-schema", "unique-prompts", "--requests", str(args.requests),
             "--concurrency", *map(str, args.concurrency), "--json", str(report)], check=False)
        return json.loads(report.read_text())["runs"]


def model_of(url: str) -> str:
    return httpx.get(url + "/v1/models").json()["data"][0]["id"]


def machine() -> str:
    names = (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name"))
    model = next(names, platform.machine())
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def table(prefix: dict[str, float], runs: list[dict]) -> str:
    lines = [f"Machine: {machine()}", "",
             "| prompt tokens | cached when warm | TTFT cold (ms) | TTFT warm (ms) | warm : cold |", "|--:|--:|--:|--:|--:|",
             "| {prompt_tokens:.0f} | {cached_tokens:.0f} | {ttft_cold_ms:.0f} | {ttft_warm_ms:.0f} | {warm_over_cold:.3f} |"
             .format(**prefix), "",
             "| workload | concurrency | TTFT p50 (ms) | TPOT p50 (ms) | tokens/s | requests/s | cached share | valid |",
             "|:--|--:|--:|--:|--:|--:|--:|--:|"]
    for level in runs:
        valid = "" if level["schema_valid_ratio"] is None else f"{level['schema_valid_ratio']:.2f}"
        lines.append(f"| {level['workload']} | {level['concurrency']} | {level['ttft_ms_p50']:.0f} | "
                     f"{level['tpot_ms_p50']:.1f} | {level['output_tok_s']:.1f} | {level['req_s']:.2f} | "
                     f"{level['cached_ratio']:.2f} | {valid} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loadgen", type=Path, help="a load generator to use in place of bench/load.py")
    parser.add_argument("--concurrency", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--requests", type=int, default=0, help="a level; 0: max(8, 4 x concurrency)")
    parser.add_argument("--pairs", type=int, default=5, help="cold and warm prompts to compare")
    parser.add_argument("--serve-flag", action="append", default=[], help="passed on to turnstile serve")
    parser.add_argument("--json", type=Path, help="write everything here")
    args = parser.parse_args()
    if args.loadgen and not args.loadgen.is_file():
        parser.error(f"no load generator at {args.loadgen}")
    with server(args.serve_flag) as url:
        prefix = cold_and_warm(url, args.pairs)
        runs = load(url, args)
    print(table(prefix, runs))
    if args.json:
        args.json.write_text(json.dumps({"machine": machine(), "prefix": prefix, "runs": runs}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
